/* Primitives around control flow, expanded into others. */
#include "../build.h"

/* As numpy broadcasts: axes are matched from the last one. */
bool expand_broadcast_to(Builder *b, const Eqn *e, Val *out) {
    const ArrayType *x = b_type(b, e->in.at[0]);
    Dims shape = param_dims(e, K_shape);
    int64_t *axes = arena_new(b->cx->arena, int64_t, x->rank + 1);
    for (uint32_t i = 0; i < x->rank; i++) axes[i] = shape.n - x->rank + i;
    out[0] = b_broadcast(b, e->in.at[0], shape.n, shape.at, axes);
    return true;
}

/* The second operand, ordered after the first. */
bool expand_tie(Builder *b, const Eqn *e, Val *out) {
    out[0] = e->in.at[1];
    return true;
}
/* Only keeps its operand from being dropped. */
bool expand_nothing(Builder *b, const Eqn *e, Val *out) { return true; }
bool expand_zeros_like(Builder *b, const Eqn *e, Val *out) {
    out[0] = b_full_like(b, e->in.at[0], 0);
    return true;
}
/* 1 / x; if approximate, of x rounded to bf16, though XLA does not round the quotient. */
bool expand_reciprocal(Builder *b, const Eqn *e, Val *out) {
    Dtype d = b_type(b, e->in.at[0])->dtype;
    Val x = e->in.at[0];
    if (param_bool(e, K_approx)) x = b_convert(b, b_convert(b, x, DT_bf16), d);
    out[0] = b_div(b, b_full_like(b, x, 1), x);
    return true;
}
