#include "kernel.h"
#include "../../typecheck/index.h"
#include "../eval/gather.h"
#include "../plan/scatter.h"
#include "atomic.h"
#include "scatter.h"

/* Scatter: the result is in the memory of the operand or of a copy, and this kernel writes the updates over it. Loops
   over positions run in order, since two may be equal: the last one wins, sums are added in the order of the updates.
   Batches are independent, and so are elements of windows, unless windows of several positions overlap: units are
   batches, or parts of all windows. A window that is not inside the operand is dropped; with CLIP it is moved
   inside. */

/* Only `scatter` needs its program, if JAX prints one. */
static const Jaxpr *program(const Eqn *e) {
    return prim_combiner[e->prim] == P_none ? param_jaxpr(e, K_update_jaxpr) : NULL;
}
typedef struct {
    const Window *window;
    uint32_t batches;  /* the number of leading kept loops, on which positions depend */
    const Atom *loops; /* over the elements of a window */
    uint32_t nloops;
    V lo, hi; /* of the first of them, if there are no batches */
} Scattering;

V scatter_combined(Kernel *k, Dtype d, V old, V update) {
    const Eqn *e = k->x.step->e;
    V x[2] = {old, update}, y = update;
    if (program(e))
        kernel_run(k, program(e), x, k->w, &y);
    else if (prim_combiner[e->prim] != P_none)
        y = kernel_binary(k, prim_combiner[e->prim], d, x);
    return y;
}
static void write_one(Kernel *k, void *user) {
    const Step *s = k->x.step;
    const Store *st = &s->stores.at[0];
    const Eqn *e = s->e;
    Dtype d = val_array(k->x.plan->cx, st->v)->dtype;
    Ix index[MAX_RANK];
    step_at(k->x.plan, s, st->v, index);
    Ix to = scatter_address(k->x.plan, e, index);
    Reg update = eval_value(&k->x, st->v, index);
    if (s->meeting == MEET_ATOMIC) {
        V place = em_gep(k->e, kernel_buffer(k, st->buf), kernel_index(k, to), em_memory_type(k->e, d));
        atomic_combine(k, prim_combiner[e->prim], d, place, reg_v(update));
        return;
    }
    if (prim_combiner[e->prim] != P_none || program(e)) {
        Reg old = kernel_load(k, st->buf, d, to, (Dense){0});
        V y = scatter_combined(k, d, kernel_vector(k, old), kernel_vector(k, update));
        update = reg(y, em_width(y) == 1 && old.uniform && update.uniform, update.depth);
    }
    kernel_store(k, st->buf, d, to, update);
}
static void write_window(Kernel *k, Scattering *c) {
    Nesting n = {c->loops, c->nloops, write_one, NULL};
    V lo = c->lo, hi = c->hi;
    if (!n.n) {
        write_one(k, NULL);
        return;
    }
    if (c->batches || !lo.ptr) lo = em_i64(k->e, 0), hi = kernel_dim(k, loop_extent(k->x.ix, n.loops[0]));
    kernel_nest(k, n, lo, hi);
}
V scatter_placed(Kernel *k, const Eqn *e, const Window *w) {
    if (index_mode(e) != MODE_CLIP) return w->n ? reg_v(window_inside(&k->x, w)) : (V){NULL};
    V all = {NULL};
    for (uint32_t i = 0; i < w->n; i++) {
        Dim most = w->position[i].most;
        if (dim_is_const(most) && most >= 0) continue;
        V one = em_cmpi(k->e, "sge", kernel_dim(k, most), em_i64(k->e, 0));
        all = all.ptr ? em_bin(k->e, "llvm.and", all, one) : one;
    }
    return all;
}
typedef void Written(Kernel *, Scattering *);
static void only_if(Kernel *k, V condition, Written *inside, Scattering *c) {
    if (!condition.ptr) {
        inside(k, c);
        return;
    }
    If i = kernel_if(k, condition);
    inside(k, c);
    kernel_if_end(k, &i);
}
static void write_position(Kernel *k, void *user) {
    Scattering *c = user;
    only_if(k, scatter_placed(k, k->x.step->e, c->window), write_window, c);
}
static void write_turn(Kernel *k, void *user) {
    Scattering c = *(Scattering *)user;
    c.window = scatter_window(k->x.plan, k->x.step);
    write_position(k, &c);
}
static void write_positions(Kernel *k, void *user) {
    if (k->jam)
        kernel_jammed(k, write_turn, user);
    else
        write_position(k, user);
}
static void write_batch(Kernel *k, void *user) {
    const Step *s = k->x.step;
    Nesting n = {s->red, s->nred, write_positions, user};
    if (n.n)
        kernel_nest(k, n, em_i64(k->e, 0), kernel_dim(k, loop_extent(k->x.ix, s->red[0])));
    else
        write_position(k, user);
}
void kernel_scatter(Kernel *k, V lo, V hi) {
    Step *s = k->x.step;
    Scattering c = {.window = scatter_window(k->x.plan, s), .lo = lo, .hi = hi};
    k->lane = s->lane;
    while (c.batches < s->nkept && scatter_moves(k->x.plan, c.window, s->kept[c.batches])) c.batches++;
    c.loops = s->kept + c.batches, c.nloops = s->nkept - c.batches;
    if (c.batches)
        kernel_nest(k, (Nesting){s->kept, c.batches, write_batch, &c}, lo, hi);
    else {
        if (s->block > 1) kernel_blocks(k, s->lane, s->block, &c.lo, &c.hi);
        if (s->block == 0) c.lo = c.hi = (V){NULL};
        write_batch(k, &c);
    }
}

/* ---- on a device */
static V claim(Kernel *k, const Scattering *c, MlirType t) {
    Plan *p = k->x.plan;
    const Step *s = k->x.step;
    return em_gep(k->e, kernel_buffer(k, s->claims.buf), kernel_index(k, scatter_place(p, s, c->window)), t);
}
/* 1 + the number of the position */
static V claimant(Kernel *k, MlirType t) {
    V number = kernel_index(k, ix_add(k->x.ix, scatter_number(k->x.plan, k->x.step), ix_dim(k->x.ix, 1)));
    return mlirTypeEqual(t, k->e->i64) ? number : em_cast(k->e, "llvm.trunc", t, number);
}
static void claim_place(Kernel *k, Scattering *c) {
    Dtype d = k->x.step->claims.as;
    MlirType t = em_memory_type(k->e, d);
    atomic_combine(k, P_max, d, claim(k, c, t), claimant(k, t));
}
static void write_if_last(Kernel *k, Scattering *c) {
    Dtype d = k->x.step->claims.as;
    MlirType t = em_memory_type(k->e, d);
    V last = em_load(k->e, t, claim(k, c, t), dtype_bytes(d));
    only_if(k, em_cmpi(k->e, "eq", last, claimant(k, t)), write_window, c);
}
void device_claim(Kernel *k, V lo, V hi) {
    Scattering c = {.window = scatter_window(k->x.plan, k->x.step)};
    only_if(k, scatter_placed(k, k->x.step->e, c.window), claim_place, &c);
}
/* A thread writes one element of a window, or of each window of a batch, in the order of the positions; of windows that
   overlap all elements. */
void device_scatter(Kernel *k, V lo, V hi) {
    const Step *s = k->x.step;
    Atom *loops = arena_new(k->x.plan->arena, Atom, s->nkept + 1);
    Scattering c = {.window = scatter_window(k->x.plan, s), .loops = loops};
    if (s->meeting == MEET_SORTED || s->meeting == MEET_SHARED) {
        (s->meeting == MEET_SORTED ? scatter_slots : scatter_shared)(k, lo);
        return;
    }
    if (s->meeting != MEET_IN_ORDER) {
        only_if(k, scatter_placed(k, s->e, c.window), s->meeting == MEET_LAST ? write_if_last : write_window, &c);
        return;
    }
    for (uint32_t i = 0; i < s->nkept; i++)
        if (scatter_overlaps(k->x.plan, s, s->kept[i])) loops[c.nloops++] = s->kept[i];
    write_batch(k, &c);
}
