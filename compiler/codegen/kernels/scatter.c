#include "../../typecheck/index.h"
#include "gather.h"
#include "point.h"

/* Scatter: the result is in the memory of the operand or of a copy, and this kernel writes the updates over it. Loops
   over positions run in order, since two may be equal: the last one wins, sums are added in the order of the updates.
   Windows and batches are independent: units are batches, or parts of all windows. A window that is not inside the
   operand is dropped; with CLIP it is moved inside. */

/* ---- planning */
/* Only `scatter` needs its program, if JAX prints one. */
static const Jaxpr *program(const Eqn *e) {
    return prim_combiner[e->prim] == P_none ? param_jaxpr(e, K_update_jaxpr) : NULL;
}
void scatter_order(Plan *p, Step *s) {
    const ArrayType *u = val_array(p->cx, s->e->in.at[2]);
    IndexNumbers n;
    uint32_t axis = 0, position = 0;
    bool known = index_numbers(p->cx, s->e, &n);
    assert(known);
    for (uint32_t d = 0; d < u->rank; d++) {
        bool ordered = !ints_have(n.windows, d) && !ints_have(n.index_batch, position);
        position += !ints_have(n.windows, d);
        if (u->dims[d] != 1) s->reduced[axis++] = ordered;
    }
}
Ix scatter_address(Plan *p, const Eqn *e, const Ix *index) {
    const ArrayType *x = val_array(p->cx, e->in.at[0]);
    Window w;
    Ix at = 0;
    window_at(p, e, index, &w);
    for (uint32_t d = 0; d < x->rank; d++) at = ix_add(p->ix, ix_scale(p->ix, at, x->dims[d]), w.operand[d]);
    return at;
}
/* The window of the update at the step's own index. */
static Window *own_window(Plan *p, const Step *s) {
    Window *w = arena_new(p->arena, Window, 1);
    Ix index[MAX_RANK];
    step_at(p, s, s->e->in.at[2], index);
    window_at(p, s->e, index, w);
    return w;
}
static bool moves(Plan *p, const Window *w, Atom loop) {
    for (uint32_t i = 0; i < w->n; i++)
        for (uint32_t d = 0; d < w->position[i].rank; d++)
            if (ix_uses(p->ix, w->position[i].at[d], loop)) return true;
    return false;
}
void scatter_schedule(Plan *p, Step *s, LoopScore *score, const void *user) {
    const Window *w = own_window(p, s);
    Ix index[MAX_RANK];
    bool other;
    int64_t best = INT64_MIN;
    step_at(p, s, s->e->in.at[2], index);
    Ix to = scatter_address(p, s->e, index);
    for (uint32_t i = 0; i < s->nkept; i++) {
        Dim coef = ix_coef(p->ix, to, s->kept[i], &other);
        if (other || coef == 0 || moves(p, w, s->kept[i])) continue;
        int64_t n = score(user, s->kept[i]);
        if (n >= best) best = n, s->lane = s->kept[i];
    }
    Atom *sorted = arena_new(p->arena, Atom, s->nkept + 1);
    uint32_t n = 0;
    for (uint32_t pass = 0; pass < 3; pass++)
        for (uint32_t i = 0; i < s->nkept; i++) {
            Atom a = s->kept[i];
            if (pass == (a == s->lane ? 2u : moves(p, w, a) ? 0u : 1u)) sorted[n++] = a;
        }
    s->kept = sorted;
}

void store_place(Kernel *k, const Store *st, const Ix *index) {
    if (st->scatter) {
        Window w;
        window_at(k->plan, st->scatter, index, &w);
        window_inside(k, &w);
    }
    const IxExpr x = *ix_at(k->ix, st->offset);
    for (uint32_t i = 0; i < x.n; i++) {
        const AtomInfo *a = atom_at(k->ix, x.at[i].atom);
        if (a->kind == ATOM_VALUE) kernel_eval(k, a->value.v, a->value.at);
    }
}

/* ---- the kernel */
typedef struct {
    const Window *window;
    uint32_t batches; /* the number of leading kept loops, on which positions depend */
    V lo, hi;
} Scattering;

static void write_one(Kernel *k, void *user) {
    const Step *s = k->step;
    const Store *st = &s->stores.at[0];
    const Eqn *e = s->e;
    Dtype d = val_array(k->plan->cx, st->v)->dtype;
    Ix index[MAX_RANK];
    step_at(k->plan, s, st->v, index);
    Ix to = scatter_address(k->plan, e, index);
    Reg update = kernel_eval(k, st->v, index);
    if (prim_combiner[e->prim] != P_none || program(e)) {
        Reg old = kernel_load(k, st->buf, d, to, 0);
        V x[2] = {kernel_vector(k, old), kernel_vector(k, update)};
        if (program(e))
            kernel_run(k, program(e), x, k->w, &update.v);
        else
            update.v = kernel_binary(k, prim_combiner[e->prim], d, x);
        update.uniform = em_width(update.v) == 1 && old.uniform && update.uniform;
    }
    kernel_store(k, st->buf, d, to, update);
}
static void write_window(Kernel *k, Scattering *c) {
    const Step *s = k->step;
    Nesting n = {s->kept + c->batches, s->nkept - c->batches, write_one, NULL};
    V lo = c->lo, hi = c->hi;
    if (!n.n) {
        write_one(k, NULL);
        return;
    }
    if (c->batches) lo = em_i64(k->e, 0), hi = kernel_dim(k, loop_extent(k->ix, n.loops[0]));
    kernel_nest(k, n, lo, hi);
}
/* Is the window inside? NULL: certainly. */
static V placed(Kernel *k, const Eqn *e, const Window *w) {
    if (index_mode(e) != MODE_CLIP) return w->n ? window_inside(k, w).v : (V){NULL};
    V all = {NULL};
    for (uint32_t i = 0; i < w->n; i++) {
        Dim most = w->position[i].most;
        if (dim_is_const(most) && most >= 0) continue;
        V one = em_cmpi(k->e, "sge", kernel_dim(k, most), em_i64(k->e, 0));
        all = all.ptr ? em_bin(k->e, "llvm.and", all, one) : one;
    }
    return all;
}
static void write_position(Kernel *k, void *user) {
    Scattering *c = user;
    V ok = placed(k, k->step->e, c->window);
    if (!ok.ptr) {
        write_window(k, c);
        return;
    }
    If i = em_if(k->e, ok);
    kernel_enter(k);
    write_window(k, c);
    kernel_leave(k);
    em_else(k->e, &i, 0, NULL);
    em_if_end(k->e, &i, NULL, NULL);
}
static void write_batch(Kernel *k, void *user) {
    const Step *s = k->step;
    Nesting n = {s->red, s->nred, write_position, user};
    if (n.n)
        kernel_nest(k, n, em_i64(k->e, 0), kernel_dim(k, loop_extent(k->ix, s->red[0])));
    else
        write_position(k, user);
}
void kernel_scatter(Kernel *k, V lo, V hi) {
    Step *s = k->step;
    Scattering c = {.window = own_window(k->plan, s), .lo = lo, .hi = hi};
    k->lane = s->lane;
    while (c.batches < s->nkept && moves(k->plan, c.window, s->kept[c.batches])) c.batches++;
    if (c.batches)
        kernel_nest(k, (Nesting){s->kept, c.batches, write_batch, &c}, lo, hi);
    else {
        if (s->block > 1) kernel_blocks(k, s->lane, s->block, &c.lo, &c.hi);
        write_batch(k, &c);
    }
}
