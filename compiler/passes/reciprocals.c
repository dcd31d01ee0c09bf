/* A division by a number, or by a smaller array that is broadcast, becomes a multiplication by the reciprocal, which is
   computed once for many elements: so does XLA, whose results have the same bits.

     y = broadcast_in_dim s            r = div 1 s; z = broadcast_in_dim r
     w = div x y            becomes    w = mul x z

   It is not exact: the result is rounded twice. Numbers near the ends of the range are divided by as before, since
   their reciprocals have fewer bits or none. */
#include "simplify.h"
#include <math.h>
#include <stdlib.h>

/* Of the exponents of divisors. */
enum { MOST_EXPONENT_F32 = 120, MOST_EXPONENT_F64 = 1000 };

static bool is_smaller(Ctx *cx, Val v, Val than) {
    Dim n = type_size(cx->types, val_type(cx, v)), m = type_size(cx->types, val_type(cx, than));
    if (dim_is_const(n) && dim_is_const(m)) return n < m;
    return long_axes(val_array(cx, v)) < long_axes(val_array(cx, than));
}
static Val reciprocal(Builder *b, Val v) { return b_div(b, b_full_like(b, v, 1), v); }
/* The reciprocals of a divisor's elements; 0: they are as many as the quotients. */
static Val reciprocals(const Defs *d, Builder *b, Val divisor, Val quotient) {
    const Eqn *e = def_by(d, divisor, P_broadcast_in_dim);
    if (e && e->in.n == 1 && is_smaller(d->cx, e->in.at[0], divisor)) {
        const ArrayType *t = val_array(d->cx, divisor);
        return b_broadcast(b, reciprocal(b, e->in.at[0]), t->rank, t->dims, param_ints(e, K_broadcast_dimensions).at);
    }
    return is_smaller(d->cx, divisor, quotient) ? reciprocal(b, divisor) : 0;
}
/* 0: it is not a normal number. */
static Val number(Builder *b, Dtype type, double divisor) {
    int exponent, most = type == DT_f64 ? MOST_EXPONENT_F64 : MOST_EXPONENT_F32;
    frexp(divisor, &exponent);
    if (!isfinite(divisor) || divisor == 0 || abs(exponent) > most) return 0;
    return b_number(b, type, type == DT_f64 ? 1 / divisor : (float)(1 / divisor));
}
static Val rewrite(const Defs *d, Builder *b, const Eqn *e) {
    Scalar s;
    if (e->prim != P_div) return 0;
    Val divisor = e->in.at[1], quotient = e->out.at[0];
    Dtype type = val_array(d->cx, quotient)->dtype;
    if (type != DT_f32 && type != DT_f64) return 0;
    if (!is_splat(d, divisor, &s)) {
        Val r = reciprocals(d, b, divisor, quotient);
        return r ? b_mul(b, e->in.at[0], r) : 0;
    }
    Val r = is_smaller(d->cx, e->in.at[0], quotient) ? 0 : number(b, type, scalar_float(s));
    return r ? b_mul(b, e->in.at[0], r) : 0;
}
Jaxpr *pass_reciprocals(Ctx *cx, const Jaxpr *j) {
    return jaxpr_uses(cx->arena, j, P_div) ? fold_with(cx, j, rewrite) : jaxpr_with(cx, j, j->eqns, j->out);
}
