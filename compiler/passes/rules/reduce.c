/* Reductions by a program. */
#include "../build.h"

/* The reduction that an operation is the step of; P_none for others. */
static Prim reduction_of(Prim p) {
    switch (p) {
    case P_add: return P_reduce_sum;
    case P_mul: return P_reduce_prod;
    case P_max: return P_reduce_max;
    case P_min: return P_reduce_min;
    case P_and: return P_reduce_and;
    case P_or: return P_reduce_or;
    case P_xor: return P_reduce_xor;
    default: return P_none;
    }
}
/* The equation that result i of the program is, if it does nothing but combine the values of operand i. */
static const Eqn *combines(const Jaxpr *j, uint32_t i) {
    uint32_t n = j->out.n;
    each(Eqn, e, j->eqns) {
        if (e->out.n != 1 || e->out.at[0] != j->out.at[i] || e->in.n != 2 || !reduction_of(e->prim)) continue;
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
        Val y = b_reduce(b, reduction_of(p), e->in.at[i], axes.n, axes.at);
        if (b->failed) return true;
        const ArrayType *t = b_type(b, y);
        out[i] = b2(b, p, b_full(b, e->in.at[n + i], t->rank, t->dims), y);
    }
    return true;
}

/* ---- any other program: a scan over what is reduced, in its order, of arrays of what is kept */
static bool elementwise(const Jaxpr *j) {
    each(Eqn, e, j->eqns)
        if (prim_lower[e->prim] != LOWER_POINT && prim_lower[e->prim] != LOWER_STDLIB) return false;
    return true;
}
/* The results of a program of scalars for arrays of these extents, element by element. */
static void batched(Builder *b, const Jaxpr *j, const Val *in, uint32_t rank, const Dim *dims, Val *out) {
    ValMap map = {.cx = b->cx};
    for (uint32_t i = 0; i < j->in.n; i++) valmap_put(&map, j->in.at[i], in[i]);
    each(Eqn, e, j->eqns) {
        Val *x = arena_new(b->cx->arena, Val, e->in.n + 1);
        bool arrays = false;
        for (uint32_t i = 0; i < e->in.n; i++) x[i] = valmap_get(&map, e->in.at[i]), arrays |= b_type(b, x[i])->rank > 0;
        for (uint32_t i = 0; i < e->in.n && arrays; i++)
            if (!b_type(b, x[i])->rank) x[i] = b_full(b, x[i], rank, dims);
        Vals y = build_many(b, e->prim, e->in.n, x, e->params.n, e->params.at, e->out.n, NULL);
        if (b->failed) return;
        for (uint32_t i = 0; i < e->out.n; i++) valmap_put(&map, e->out.at[i], y.at[i]);
    }
    for (uint32_t i = 0; i < j->out.n; i++) {
        out[i] = valmap_get(&map, j->out.at[i]);
        if (!b_type(b, out[i])->rank) out[i] = b_full(b, out[i], rank, dims);
    }
}
static Vals scan(Builder *b, Jaxpr *j, uint32_t carries, Dim length, uint32_t n, const Val *in) {
    Param p[] = {p_jaxpr(K_jaxpr, j),         {.key = K_length, .value = {.kind = V_DIM, .dim = length}},
                 p_int(K_num_carry, carries), p_int(K_num_consts, 0),
                 p_bool(K_reverse, false),    p_int(K_unroll, 1)};
    return build_many(b, P_scan, n, in, sizeof p / sizeof *p, p, j->out.n, NULL);
}
/* Where it is not elementwise, by a loop over the elements. */
static void each_element(Builder *b, Jaxpr *j, const Val *in, uint32_t rank, const Dim *dims, Val *out) {
    Dim size = 1;
    Val *flat = arena_new(b->cx->arena, Val, j->in.n);
    for (uint32_t i = 0; i < rank; i++) size = dim_mul(b_types(b), size, dims[i]);
    for (uint32_t i = 0; i < j->in.n; i++) flat[i] = b_reshape(b, in[i], 1, &size);
    Vals y = scan(b, j, 0, size, j->in.n, flat);
    for (uint32_t i = 0; i < j->out.n; i++) out[i] = b_reshape(b, y.at[i], rank, dims);
}
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
    Val *y = arena_new(b->cx->arena, Val, n);
    if (elementwise(j)) {
        batched(b, j, body.in.at, nkept, shape + 1, y);
    } else if (nkept == 0) {
        memcpy(y, b_call(b, j, 2 * n, body.in.at).at, n * sizeof *y);
    } else {
        each_element(b, j, body.in.at, nkept, shape + 1, y);
    }
    Vals result = scan(b, b_inner_end(b, &body, n, y), n, length, 2 * n, in);
    memcpy(out, result.at, n * sizeof *out);
    return true;
}
