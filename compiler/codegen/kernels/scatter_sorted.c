#include "../cost.h"
#include "../plan/scatter.h"
#include "../plan/sort.h"
#include "grid.h"
#include "scatter.h"
#include "search.h"

/* Positions of a scatter on a device, sorted by place: a slot has the number of a position, and its key. The thread
   that comes to the first slot of a place does the updates of its slots, one after the other; if they are more than
   SLOT_PART and the updates can be combined among themselves, only the first of these, then the results of the
   following parts, which other threads have computed. A thread has one element of the windows, or a run of them. */

enum { MOST_RUN = DEVICE_ALIGN, STATE = 1 + MOST_RUN /* a slot, and what its elements are combined with */ };

typedef struct {
    Kernel *k;
    Emit *e;
    const Step *s;
    const Sort *so;
    Dtype d;     /* of the elements */
    uint32_t n;  /* of a run */
    V key, end;  /* of the place; where the part ends at the latest */
    bool parted; /* updates are combined among themselves */
} Place;

static V behind(const Place *p, V a, int64_t n) { return em_add(p->e, a, em_i64(p->e, n)); }
static MlirType key_type(const Place *p) { return em_memory_type(p->e, p->so->key); }
static V slots_of(const Place *p) { return kernel_dim(p->k, p->so->n); }
static Place place_new(Kernel *k) {
    const Step *s = k->x.step;
    Dtype d = val_array(k->x.plan->cx, s->stores.at[0].v)->dtype;
    return (Place){.k = k, .e = k->e, .s = s, .so = s->sort, .d = d, .n = s->run ? s->run : 1};
}
V scatter_key(Kernel *k, Dtype key) {
    Emit *e = k->e;
    const Step *s = k->x.step;
    const Window *w = scatter_window(k->x.plan, s);
    MlirType t = em_memory_type(e, key);
    V ok = scatter_placed(k, s->e, w), place = kernel_index(k, s->sort->place);
    if (!mlirTypeEqual(t, e->i64)) place = em_cast(e, "llvm.trunc", t, place);
    return ok.ptr ? em_select(e, ok, place, em_int(e, t, -1)) : place;
}
/* The position in this slot. */
static V position_in(const Place *p, V slot) {
    Emit *e = p->e;
    if (p->so->given) return slot;
    V from = em_gep(e, kernel_buffer(p->k, p->so->places[0]), slot, e->i32);
    return em_cast(e, "llvm.zext", e->i64, em_load(e, e->i32, from, dtype_bytes(DT_u32)));
}
static void bind_position(const Place *p, V position) { grid_bind_point(p->k, &p->so->elements, position); }
/* That of the last slot, if there are fewer. */
static V key_at(const Place *p, V slot) {
    Kernel *k = p->k;
    V at = em_least(p->e, slot, behind(p, slots_of(p), -1));
    if (p->so->given) {
        kernel_enter(k);
        bind_position(p, at);
        V key = scatter_key(k, p->so->key);
        kernel_leave(k);
        return key;
    }
    V from = em_gep(p->e, kernel_buffer(k, p->so->keys[0]), at, key_type(p));
    return em_load(p->e, key_type(p), from, dtype_bytes(p->so->key));
}
/* Does the slot have this place? No if its position is not inside. */
static V has_key(const Place *p, V slot) {
    V same = em_cmpi(p->e, "eq", key_at(p, slot), p->key);
    V inside = em_cmpi(p->e, "ne", p->key, em_int(p->e, key_type(p), -1));
    return em_both(p->e, em_both(p->e, em_less(p->e, slot, slots_of(p)), inside), same);
}
/* For each element of the run. */
static void each_element(const Place *p, Inside *inside, void *user) {
    Kernel *k = p->k;
    Indices *x = k->x.ix;
    if (!p->s->run) {
        inside(k, user);
        return;
    }
    for (uint32_t i = 0; i < p->n; i++) {
        Ix at = ix_add(x, ix_scale(x, ix_atom(x, p->s->runs), p->n), ix_dim(x, i));
        k->in_run = 1 + i;
        kernel_substituted(k, p->s->run_loop, at, inside, user);
    }
    k->in_run = 0;
}
static void add_update(Kernel *k, void *user) {
    V **next = user;
    Val v = k->x.step->stores.at[0].v;
    Ix index[MAX_RANK];
    step_at(k->x.plan, k->x.step, v, index);
    *(*next)++ = reg_v(eval_value(&k->x, v, index));
}
static void updates_of(const Place *p, V position, V *out) {
    kernel_enter(p->k);
    bind_position(p, position);
    each_element(p, add_update, &out);
    kernel_leave(p->k);
}
static V combined(const Place *p, V old, V update) {
    if (!p->parted) return scatter_combined(p->k, p->d, old, update);
    Prim how = prim_combiner[p->s->e->prim];
    return kernel_binary(p->k, how == P_sub ? P_add : how, p->d, (V[]){old, update});
}
/* A loop over slots as long as `go` gives a condition for one: x is the slot and what its elements are combined
   with. */
typedef V Go(const Place *, V slot, uint32_t n);
typedef void Turn(const Place *, uint32_t n, V *x);
static void over_slots(const Place *p, Go *go, Turn *turn, uint32_t n, V *x) {
    Emit *e = p->e;
    Kernel *k = p->k;
    uint32_t all = 1 + p->n;
    MlirType types[STATE] = {e->i64};
    V o[1 + STATE], next[STATE];
    for (uint32_t i = 1; i < all; i++) types[i] = mlirValueGetType(x[i]);
    Scope before = em_begin(e, all, types);
    kernel_enter(k);
    for (uint32_t i = 0; i < all; i++) o[1 + i] = em_arg(&before, i);
    o[0] = go(p, o[1], n);
    em_op(e, "scf.condition", &(Op){0, NULL, 1 + all, o, 0, NULL, 0, NULL});
    kernel_leave(k);
    em_end(e, &before);
    Scope after = em_begin(e, all, types);
    kernel_enter(k);
    for (uint32_t i = 0; i < all; i++) next[i] = em_arg(&after, i);
    turn(p, n, next);
    em_op(e, "scf.yield", &(Op){0, NULL, all, next, 0, NULL, 0, NULL});
    kernel_leave(k);
    em_end(e, &after);
    memcpy(x, em_while(e, all, x, &before, &after), all * sizeof *x);
}
static V has_slots(const Place *p, V slot, uint32_t n) {
    V last = behind(p, slot, n - 1);
    return em_both(p->e, em_less(p->e, last, p->end), has_key(p, last));
}
static void do_slots(const Place *p, uint32_t n, V *x) {
    V updates[SLOTS_AT_ONCE][MOST_RUN], positions[SLOTS_AT_ONCE];
    for (uint32_t i = 0; i < n; i++) positions[i] = position_in(p, behind(p, x[0], i));
    for (uint32_t i = 0; i < n; i++) updates_of(p, positions[i], updates[i]);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < p->n; j++) x[1 + j] = combined(p, x[1 + j], updates[i][j]);
    x[0] = behind(p, x[0], n);
}
/* The updates of the place from a slot on. */
static void do_part(const Place *p, V *x) {
    for (uint32_t n = SLOTS_AT_ONCE; n; n /= 2) over_slots(p, has_slots, do_slots, n, x);
}

/* ---- parts */
/* Where the result of a part is: of each element of a window, by the number of SLOT_PART slots in which it begins. */
static V result_at(const Place *p, V number) {
    Indices *ix = p->k->x.ix;
    const Grid *g = &p->s->grid;
    Dim window = 1;
    Ix at = 0;
    for (uint32_t i = 1; i < g->nloops; i++) {
        at = ix_add(ix, ix_scale(ix, at, loop_extent(ix, g->loops[i])), ix_atom(ix, g->loops[i]));
        window = dim_mul(p->k->x.plan->cx->types, window, loop_extent(ix, g->loops[i]));
    }
    V row = em_mul(p->e, number, kernel_dim(p->k, window));
    V i = em_add(p->e, row, kernel_index(p->k, at));
    i = em_mul(p->e, i, em_i64(p->e, p->n));
    return em_gep(p->e, kernel_buffer(p->k, p->so->parts), i, em_memory_type(p->e, p->d));
}
/* The elements of a run, which lie beside each other; `align`: where the first one does. */
static void load_run(const Place *p, V from, uint32_t align, V *x) {
    MlirType t = em_memory_type(p->e, p->d);
    for (uint32_t i = 0; i < p->n; i++) {
        V at = i ? em_gep(p->e, from, em_i64(p->e, i), t) : from;
        x[i] = em_to_register(p->e, p->d, em_load(p->e, t, at, i ? dtype_align(p->d) : align));
    }
}
static void store_run(const Place *p, V to, uint32_t align, const V *x) {
    MlirType t = em_memory_type(p->e, p->d);
    for (uint32_t i = 0; i < p->n; i++) {
        V at = i ? em_gep(p->e, to, em_i64(p->e, i), t) : to;
        em_store(p->e, em_to_memory(p->e, p->d, x[i]), at, i ? dtype_align(p->d) : align);
    }
}
static uint32_t result_align(const Place *p) { return p->s->run ? DEVICE_ALIGN : dtype_align(p->d); }
/* Positions that are not inside may come first, if the order was given. */
static V is_earlier(const void *p, V slot) {
    const Place *of = p;
    V key = key_at(of, slot), outside = em_cmpi(of->e, "eq", key, em_int(of->e, key_type(of), -1));
    return em_bin(of->e, "llvm.or", outside, em_cmpi(of->e, "ult", key, of->key));
}
/* The first slot that has the key, which `slot` has. */
static V first_slot(const Place *p, V slot) { return search_first(p->e, em_i64(p->e, 0), slot, is_earlier, p); }
/* Can a part begin in these SLOT_PART slots that is not the first one of its place? The part before it and its own
   first slot have one place, and either the slot half as many before these, or the one half as many behind, is among
   them. */
static V may_begin(const Place *p, V slot) {
    Emit *e = p->e;
    V before = behind(p, slot, -SLOT_PART / 2), zero = em_i64(e, 0);
    V same = em_cmpi(e, "eq", key_at(p, em_most(e, before, zero)), p->key);
    V far = has_key(p, behind(p, slot, SLOT_PART / 2 - 1));
    return em_bin(e, "llvm.or", em_both(e, em_cmpi(e, "sge", before, zero), same), far);
}
/* The part that begins in these SLOT_PART slots, if it is not the first one of its place. */
void device_parts(Kernel *k, V lo, V hi) {
    Emit *e = k->e;
    Place p = place_new(k);
    V number = kernel_index(k, ix_atom(k->x.ix, p.so->part)), part = em_i64(e, SLOT_PART);
    V slot = em_mul(e, number, part);
    p.parted = true, p.key = key_at(&p, slot);
    If some = kernel_if(k, may_begin(&p, slot));
    V first = first_slot(&p, slot), into = em_bin(e, "llvm.urem", em_sub(e, slot, first), part);
    V skipped = em_bin(e, "llvm.urem", em_sub(e, part, into), part);
    V from = em_add(e, slot, skipped);
    p.end = behind(&p, from, SLOT_PART);
    If i = kernel_if(k, em_both(e, em_cmpi(e, "ne", from, first), has_key(&p, from)));
    V x[STATE] = {behind(&p, from, 1)};
    updates_of(&p, position_in(&p, from), x + 1);
    do_part(&p, x);
    store_run(&p, result_at(&p, number), result_align(&p), x + 1);
    kernel_if_end(k, &i);
    kernel_if_end(k, &some);
}
static V has_slot(const Place *p, V slot, uint32_t n) { return has_key(p, slot); }
static void add_part(const Place *p, uint32_t n, V *x) {
    V results[MOST_RUN], from = result_at(p, em_bin(p->e, "llvm.udiv", x[0], em_i64(p->e, SLOT_PART)));
    load_run(p, from, result_align(p), results);
    for (uint32_t i = 0; i < p->n; i++) x[1 + i] = scatter_combined(p->k, p->d, x[1 + i], results[i]);
    x[0] = behind(p, x[0], SLOT_PART);
}

/* ---- places */
/* Where the first element of the place goes that a thread is at; how it is aligned. */
typedef struct {
    const Place *p;
    V at;
    uint32_t align;
} Goal;
static void find_goal(Kernel *k, void *user) {
    Goal *g = user;
    Emit *e = k->e;
    Indices *x = k->x.ix;
    const Sort *so = g->p->so;
    const Store *st = &k->x.step->stores.at[0];
    Dtype d = g->p->d;
    Ix index[MAX_RANK];
    if (k->in_run > 1) return;
    step_at(k->x.plan, k->x.step, st->v, index);
    Ix to = scatter_address(k->x.plan, k->x.step->e, index), beside = ix_sub(x, to, ix_scale(x, so->place, so->unit));
    bool by_key = !ix_at(x, beside)->data;
    V at = kernel_index(k, by_key ? beside : to), place = g->p->key;
    if (by_key) {
        if (dtype_bytes(so->key) < dtype_bytes(DT_i64)) place = em_cast(e, "llvm.zext", e->i64, place);
        at = em_add(e, em_mul(e, place, em_i64(e, so->unit)), at);
    }
    g->at = em_gep(e, kernel_buffer(k, st->buf), at, em_memory_type(e, d));
    g->align = k->in_run ? address_align(k->x.plan, st->buf, d, to) : dtype_align(d);
}
static Goal goal_of(const Place *p, V slot) {
    Goal g = {.p = p, .align = 1};
    kernel_enter(p->k);
    bind_position(p, position_in(p, slot));
    each_element(p, find_goal, &g);
    kernel_leave(p->k);
    return g;
}
/* All updates of the place of which this slot is the first one. Returns the slot behind those that this thread does. */
static V do_place(const Place *p, V slot) {
    Goal to = goal_of(p, slot);
    V x[STATE] = {slot};
    load_run(p, to.at, to.align, x + 1);
    do_part(p, x);
    V done = x[0];
    x[0] = behind(p, slot, SLOT_PART);
    if (p->so->parts) over_slots(p, has_slot, add_part, 1, x);
    store_run(p, to.at, to.align, x + 1);
    return done;
}
/* x: a slot and the key before it; both of the next slot that is looked at. */
static void next_slot(Place *p, V *x) {
    Emit *e = p->e;
    Kernel *k = p->k;
    V slot = x[0];
    p->key = key_at(p, slot), p->end = p->so->parts ? behind(p, slot, SLOT_PART) : slots_of(p);
    V other = em_bin(e, "llvm.or", em_cmpi(e, "eq", slot, em_i64(e, 0)), em_cmpi(e, "ne", x[1], p->key));
    If i = em_if(e, em_both(e, other, has_key(p, slot)));
    kernel_enter(k);
    V done = do_place(p, slot);
    kernel_leave(k);
    em_else(e, &i, 1, &done);
    V one = behind(p, slot, 1);
    em_if_end(e, &i, &one, x);
    x[1] = p->key;
}
void scatter_slots(Kernel *k, V item) {
    Emit *e = k->e;
    Place p = place_new(k);
    V n = em_i64(e, p.so->slots), number = kernel_index(k, ix_atom(k->x.ix, p.so->slot));
    V first = em_mul(e, number, n), last = em_least(e, em_add(e, first, n), slots_of(&p));
    V x[2] = {first, key_at(&p, em_most(e, behind(&p, first, -1), em_i64(e, 0)))};
    MlirType types[2] = {e->i64, key_type(&p)};
    Scope before = em_begin(e, 2, types);
    V go[3] = {em_less(e, em_arg(&before, 0), last), em_arg(&before, 0), em_arg(&before, 1)};
    em_op(e, "scf.condition", &(Op){0, NULL, 3, go, 0, NULL, 0, NULL});
    em_end(e, &before);
    Scope after = em_begin(e, 2, types);
    kernel_enter(k);
    V next[2] = {em_arg(&after, 0), em_arg(&after, 1)};
    next_slot(&p, next);
    em_op(e, "scf.yield", &(Op){0, NULL, 2, next, 0, NULL, 0, NULL});
    kernel_leave(k);
    em_end(e, &after);
    em_while(e, 2, x, &before, &after);
}
