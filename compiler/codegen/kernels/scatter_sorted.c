#include "../cost.h"
#include "../plan/scatter.h"
#include "../plan/sort.h"
#include "grid.h"
#include "scatter.h"
#include "search.h"

/* Positions of a scatter on a device, sorted by place: a slot has the number of a position, and its key. The thread of the
   first slot of a place does the updates of its slots, one after the other; if they are more than SLOT_PART and the
   updates can be combined among themselves, only the first of these, then the results of the following parts,
   which other threads have computed. */

typedef struct {
    Kernel *k;
    Emit *e;
    const Step *s;
    const Sort *so;
    Dtype d;     /* of the elements */
    V key, end;  /* of the place; where the part ends at the latest */
    bool parted; /* updates are combined among themselves */
} Place;

static V behind(const Place *p, V a, int64_t n) { return em_add(p->e, a, em_i64(p->e, n)); }
static MlirType key_type(const Place *p) { return em_memory_type(p->e, p->so->key); }
static V slots_of(const Place *p) { return kernel_dim(p->k, p->so->n); }
static Place place_new(Kernel *k) {
    const Step *s = k->x.step;
    Dtype d = val_array(k->x.plan->cx, s->stores.at[0].v)->dtype;
    return (Place){.k = k, .e = k->e, .s = s, .so = s->sort, .d = d};
}
V scatter_key(Kernel *k, Dtype key) {
    Emit *e = k->e;
    const Step *s = k->x.step;
    const Window *w = scatter_window(k->x.plan, s);
    MlirType t = em_memory_type(e, key);
    V ok = scatter_placed(k, s->e, w), place = kernel_index(k, scatter_sorted_place(k->x.plan, s));
    if (!mlirTypeEqual(t, e->i64)) place = em_cast(e, "llvm.trunc", t, place);
    return ok.ptr ? em_select(e, ok, place, em_int(e, t, -1)) : place;
}
/* That of the last slot, if there are fewer. */
static V key_at(const Place *p, V slot) {
    Kernel *k = p->k;
    V at = em_least(p->e, slot, behind(p, slots_of(p), -1));
    V from = em_gep(p->e, kernel_buffer(k, p->so->keys[0]), at, key_type(p));
    return em_load(p->e, key_type(p), from, dtype_bytes(p->so->key));
}
/* Does the slot have this place? No if its position is not inside. */
static V has_key(const Place *p, V slot) {
    V same = em_cmpi(p->e, "eq", key_at(p, slot), p->key);
    V inside = em_cmpi(p->e, "ne", p->key, em_int(p->e, key_type(p), -1));
    return em_both(p->e, em_both(p->e, em_less(p->e, slot, slots_of(p)), inside), same);
}
/* Sets the loops to the position in this slot. */
static void bind_slot(const Place *p, V slot) {
    Emit *e = p->e;
    V from = em_gep(e, kernel_buffer(p->k, p->so->places[0]), slot, e->i32);
    grid_bind_point(p->k, &p->so->elements,
                    em_cast(e, "llvm.zext", e->i64, em_load(e, e->i32, from, dtype_bytes(DT_u32))));
}
static V update_of(const Place *p, V slot) {
    Kernel *k = p->k;
    Val v = p->s->stores.at[0].v;
    Ix index[MAX_RANK];
    step_at(k->x.plan, p->s, v, index);
    kernel_enter(k);
    bind_slot(p, slot);
    V update = reg_v(eval_value(&k->x, v, index));
    kernel_leave(k);
    return update;
}
static V combined(const Place *p, V old, V update) {
    if (!p->parted) return scatter_combined(p->k, p->d, old, update);
    Prim how = prim_combiner[p->s->e->prim];
    return kernel_binary(p->k, how == P_sub ? P_add : how, p->d, (V[]){old, update});
}
/* The updates of the place from a slot on, `n` at once: x is the slot and what they are combined with, and becomes the
   next slot and the result. */
static void do_slots(const Place *p, uint32_t n, V *x) {
    Emit *e = p->e;
    Kernel *k = p->k;
    MlirType types[2] = {e->i64, mlirValueGetType(x[1])};
    V next[2], updates[SLOTS_AT_ONCE];
    Scope before = em_begin(e, 2, types);
    kernel_enter(k);
    V at = em_arg(&before, 0), last = behind(p, at, n - 1), go = em_both(e, em_less(e, last, p->end), has_key(p, last));
    em_op(e, "scf.condition", &(Op){0, NULL, 3, (V[]){go, at, em_arg(&before, 1)}, 0, NULL, 0, NULL});
    kernel_leave(k);
    em_end(e, &before);
    Scope after = em_begin(e, 2, types);
    kernel_enter(k);
    at = em_arg(&after, 0), next[0] = behind(p, at, n), next[1] = em_arg(&after, 1);
    for (uint32_t i = 0; i < n; i++) updates[i] = update_of(p, behind(p, at, i));
    for (uint32_t i = 0; i < n; i++) next[1] = combined(p, next[1], updates[i]);
    em_op(e, "scf.yield", &(Op){0, NULL, 2, next, 0, NULL, 0, NULL});
    kernel_leave(k);
    em_end(e, &after);
    memcpy(x, em_while(e, 2, x, &before, &after), 2 * sizeof *x);
}
static V do_part(const Place *p, V slot, V old) {
    V x[2] = {slot, old};
    do_slots(p, SLOTS_AT_ONCE, x);
    do_slots(p, 1, x);
    return x[1];
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
    return em_gep(p->e, kernel_buffer(p->k, p->so->parts), i, em_memory_type(p->e, p->d));
}
static V is_earlier(const void *p, V slot) {
    const Place *of = p;
    return em_cmpi(of->e, "ult", key_at(of, slot), of->key);
}
/* The first slot that has the key, which `slot` has. */
static V first_slot(const Place *p, V slot) { return search_first(p->e, em_i64(p->e, 0), slot, is_earlier, p); }
/* The part that begins in these SLOT_PART slots, if it is not the first one of its place. */
void device_parts(Kernel *k, V lo, V hi) {
    Emit *e = k->e;
    Place p = place_new(k);
    V number = kernel_index(k, ix_atom(k->x.ix, p.so->part)), part = em_i64(e, SLOT_PART);
    V slot = em_mul(e, number, part);
    p.parted = true, p.key = key_at(&p, slot);
    V first = first_slot(&p, slot), into = em_bin(e, "llvm.urem", em_sub(e, slot, first), part);
    V skipped = em_bin(e, "llvm.urem", em_sub(e, part, into), part);
    V from = em_add(e, slot, skipped);
    p.end = behind(&p, from, SLOT_PART);
    If i = kernel_if(k, em_both(e, em_cmpi(e, "ne", from, first), has_key(&p, from)));
    V result = do_part(&p, behind(&p, from, 1), update_of(&p, from));
    em_store(e, em_to_memory(e, p.d, result), result_at(&p, number), dtype_align(p.d));
    kernel_if_end(k, &i);
}
/* x after the results of all parts but the first one, which begins in this slot. */
static V add_parts(const Place *p, V slot, V x) {
    Emit *e = p->e;
    Kernel *k = p->k;
    MlirType types[2] = {e->i64, mlirValueGetType(x)};
    V init[2] = {behind(p, slot, SLOT_PART), x}, next[2];
    Scope before = em_begin(e, 2, types);
    kernel_enter(k);
    V at = em_arg(&before, 0);
    em_op(e, "scf.condition", &(Op){0, NULL, 3, (V[]){has_key(p, at), at, em_arg(&before, 1)}, 0, NULL, 0, NULL});
    kernel_leave(k);
    em_end(e, &before);
    Scope after = em_begin(e, 2, types);
    kernel_enter(k);
    at = em_arg(&after, 0);
    V from = result_at(p, em_bin(e, "llvm.udiv", at, em_i64(e, SLOT_PART)));
    V result = em_to_register(e, p->d, em_load(e, em_memory_type(e, p->d), from, dtype_align(p->d)));
    next[0] = behind(p, at, SLOT_PART), next[1] = scatter_combined(k, p->d, em_arg(&after, 1), result);
    em_op(e, "scf.yield", &(Op){0, NULL, 2, next, 0, NULL, 0, NULL});
    kernel_leave(k);
    em_end(e, &after);
    return em_while(e, 2, init, &before, &after)[1];
}

/* ---- places */
/* Where the position in this slot goes. */
static V address_of(const Place *p, V slot) {
    Kernel *k = p->k;
    const Store *st = &p->s->stores.at[0];
    Ix index[MAX_RANK];
    step_at(k->x.plan, p->s, st->v, index);
    kernel_enter(k);
    bind_slot(p, slot);
    V to = kernel_index(k, scatter_address(k->x.plan, p->s->e, index));
    kernel_leave(k);
    return em_gep(p->e, kernel_buffer(k, st->buf), to, em_memory_type(p->e, p->d));
}
void scatter_slot(Kernel *k, V item) {
    Emit *e = k->e;
    Place p = place_new(k);
    V slot = kernel_index(k, ix_atom(k->x.ix, p.so->slot)), zero = em_i64(e, 0);
    p.key = key_at(&p, slot), p.end = p.so->parts ? behind(&p, slot, SLOT_PART) : slots_of(&p);
    V before = em_most(e, behind(&p, slot, -1), zero);
    V other = em_bin(e, "llvm.or", em_cmpi(e, "eq", slot, zero), em_cmpi(e, "ne", key_at(&p, before), p.key));
    If i = kernel_if(k, em_both(e, other, has_key(&p, slot)));
    V to = address_of(&p, slot), x = em_to_register(e, p.d, em_load(e, em_memory_type(e, p.d), to, dtype_align(p.d)));
    x = do_part(&p, slot, x);
    if (p.so->parts) x = add_parts(&p, slot, x);
    em_store(e, em_to_memory(e, p.d, x), to, dtype_align(p.d));
    kernel_if_end(k, &i);
}
