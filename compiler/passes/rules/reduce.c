/* Reductions by a program. */
#include "../build.h"

/* The equation that result i of the program is, if it does nothing but combine the values of operand i. */
static const Eqn *combines(const Jaxpr *j, uint32_t i) {
    uint32_t n = j->out.n;
    each(Eqn, e, j->eqns) {
        if (e->out.n != 1 || e->out.at[0] != j->out.at[i] || e->in.n != 2 || !b_reduction(e->prim)) continue;
        Val x = j->in.at[i], y = j->in.at[n + i];
        return (e->in.at[0] == x && e->in.at[1] == y) || (e->in.at[0] == y && e->in.at[1] == x) ? e : NULL;
    }
    return NULL;
}
static bool combine_all(Builder *b, const Eqn *e, const Jaxpr *j, Ints axes, Val *out) {
    uint32_t n = e->out.n;
    for (uint32_t i = 0; i < n; i++)
        if (!combines(j, i)) return false;
    for (uint32_t i = 0; i < n; i++) {
        Prim p = combines(j, i)->prim;
        Val y = b_reduce(b, b_reduction(p), e->in.at[i], axes.n, axes.at);
        if (b->failed) return true;
        const ArrayType *t = b_type(b, y);
        out[i] = b2(b, p, b_full(b, e->in.at[n + i], t->rank, t->dims), y);
    }
    return true;
}

/* ---- any other program: a scan over what is reduced, in its order, of arrays of what is kept */
/* Axes of extent 1: XLA takes the initial value for the neutral one then. */
static bool drop_axes(Builder *b, const Eqn *e, const bool *gone, Val *out) {
    const ArrayType *t = b_type(b, e->in.at[0]);
    Dim shape[32];
    uint32_t rank = 0;
    for (uint32_t i = 0; i < t->rank; i++)
        if (!gone[i]) shape[rank++] = t->dims[i];
    for (uint32_t i = 0; i < e->out.n; i++) out[i] = b_reshape(b, e->in.at[i], rank, shape);
    return true;
}
bool expand_reduce(Builder *b, const Eqn *e, Val *out) {
    Jaxpr *j = param_jaxpr(e, K_jaxpr);
    Ints axes = param_ints(e, K_dimensions);
    uint32_t n = e->out.n, rank = b_type(b, e->in.at[0])->rank, nkept = 0, nreduced = 0;
    bool gone[32] = {0}, nothing = true;
    each(int64_t, a, axes) gone[*a] = true, nothing &= b_type(b, e->in.at[0])->dims[*a] == 1;
    if (nothing) return drop_axes(b, e, gone, out);
    if (combine_all(b, e, j, axes, out)) return true;
    int64_t permutation[32];
    Dim shape[33], length = 1; /* the scanned axis, then those that are kept */
    for (uint32_t i = 0; i < rank; i++) {
        Dim extent = b_type(b, e->in.at[0])->dims[i];
        if (gone[i]) permutation[nreduced++] = i, length = dim_mul(b_types(b), length, extent);
    }
    for (uint32_t i = 0; i < rank; i++)
        if (!gone[i]) permutation[nreduced + nkept] = i, shape[1 + nkept++] = b_type(b, e->in.at[0])->dims[i];
    shape[0] = length;
    Val *in = arena_new(b->cx->arena, Val, 2 * n);
    Type *types = arena_new(b->cx->arena, Type, 2 * n);
    for (uint32_t i = 0; i < n; i++) {
        in[i] = b_full(b, e->in.at[n + i], nkept, shape + 1);
        in[n + i] = b_reshape(b, b_transpose(b, e->in.at[i], permutation), 1 + nkept, shape);
        if (b->failed) return false;
        types[i] = types[n + i] = val_type(b->cx, in[i]);
    }
    Inner body = b_inner(b, 2 * n, types);
    Vals y = b_map(b, j, 2 * n, body.in.at);
    Vals result = b_scan(b, b_inner_end(b, &body, n, y.at), 0, n, length, 2 * n, in);
    memcpy(out, result.at, n * sizeof *out);
    return true;
}
