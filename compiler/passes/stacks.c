/* A reduction along the axis of a stack is arithmetic on its operands, so that no stack is written and read:

     s = stack[axis=0] a b c
     r = reduce_sum[axes=(0,)] s       becomes   r = add (add a b) c
     i = argmax[axes=(0,)] s           becomes   i = select_n (gt c m) (select_n (gt b a) 0 1) 2,  m = max a b

   A concatenation of operands that have extent 1 along its axis is a stack, too. */
#include "simplify.h"

enum { MOST_STACKED = 16 };
typedef struct {
    Val at[MOST_STACKED];
    uint32_t n;
} Layers;

/* The operands of a stack along this axis, which nothing else uses. */
static bool layers_of(const Defs *d, Builder *b, Val v, int64_t axis, Layers *l) {
    const Eqn *e = def_of(d, v);
    if (!e || d->uses.at[v] != 1 || e->in.n > MOST_STACKED) return false;
    bool stack = e->prim == P_stack && param_number(e, K_axis) == axis;
    if (!stack && (e->prim != P_concatenate || param_number(e, K_dimension) != axis)) return false;
    each(const Val, x, e->in)
        if (!stack && val_array(d->cx, *x)->dims[axis] != 1) return false;
    each(const Val, x, e->in) l->at[l->n++] = stack ? *x : b_squeeze(b, *x, 1, &axis);
    return true;
}
/* Narrow floats are added in wider ones, and rounded once. */
static bool adds_as_it_is(Dtype d) {
    DtypeKind k = dtype_info[d].kind;
    return d == DT_f32 || d == DT_f64 || k == DK_SINT || k == DK_UINT || k == DK_BOOL;
}
static bool is_reduction(Prim p) { return prim_lower[p] == LOWER_REDUCE || prim_lower[p] == LOWER_ARG; }

static Val reduced(Builder *b, const Eqn *e, const Layers *l) {
    Val v = l->at[0];
    for (uint32_t i = 1; i < l->n; i++) v = b2(b, prim_combiner[e->prim], v, l->at[i]);
    return v;
}
/* Is x before the best of those before it? The first NaN is. */
static Val is_better(Builder *b, Prim p, Val x, Val best) {
    Dtype d = b_type(b, x)->dtype;
    if (d == DT_bool) return p == P_argmax ? b_and(b, x, b_not(b, best)) : b_and(b, b_not(b, x), best);
    Val better = p == P_argmax ? b_gt(b, x, best) : b_lt(b, x, best);
    if (dtype_info[d].kind != DK_FLOAT) return better;
    return b_or(b, better, b_and(b, b_ne(b, x, x), b_eq(b, best, best)));
}
static Val position(Builder *b, const Eqn *e, const Layers *l) {
    const ArrayType *t = val_array(b->cx, e->out.at[0]);
    Val best = l->at[0], at = b_full(b, b_int(b, t->dtype, 0), t->rank, t->dims);
    for (uint32_t i = 1; i < l->n; i++) {
        Val better = is_better(b, e->prim, l->at[i], best);
        if (i + 1 < l->n) best = b_select(b, better, best, l->at[i]);
        at = b_select(b, better, at, b_full(b, b_int(b, t->dtype, i), t->rank, t->dims));
    }
    return at;
}
/* The axis of a stack among those of a reduction. */
static Val rewrite(const Defs *d, Builder *b, const Eqn *e) {
    if (!is_reduction(e->prim)) return 0;
    const ArrayType *x = val_array(d->cx, e->in.at[0]), *y = val_array(d->cx, e->out.at[0]);
    Ints axes = param_ints(e, K_axes);
    Layers l = {.n = 0};
    bool arg = prim_lower[e->prim] == LOWER_ARG, narrow = arg && dtype_info[y->dtype].bits < 8;
    uint32_t k = 0;
    int64_t others[MAX_RANK];
    if (x->rank < 2 || !adds_as_it_is(x->dtype) || narrow) return 0;
    while (k < axes.n && !layers_of(d, b, e->in.at[0], axes.at[k], &l)) k++;
    if (k == axes.n || l.n == 0) return 0;
    if (arg) return position(b, e, &l);
    Val v = reduced(b, e, &l);
    for (uint32_t i = 0, n = 0; i < axes.n; i++)
        if (i != k) others[n++] = axes.at[i] - (axes.at[i] > axes.at[k]);
    return axes.n > 1 ? b_reduce(b, e->prim, v, axes.n - 1, others) : v;
}
Jaxpr *pass_stacks(Ctx *cx, const Jaxpr *j) {
    bool any = jaxpr_uses(cx->arena, j, P_stack) || jaxpr_uses(cx->arena, j, P_concatenate);
    return any ? fold_with(cx, j, rewrite) : jaxpr_with(cx, j, j->eqns, j->out);
}
