/* Powers with exponents that are small multiples of 1/2 become products and square roots:

     x^(1/2) = sqrt x      x^(-1/2) = rsqrt x      x^(3/2) = x sqrt x      x^3 = x x x

   Each is rounded at most twice. A power of -0 is one of +0, unless the exponent is an odd integer, and one of -inf is
   one of +inf (IEEE 754-2019, 9.2.1), whereas sqrt -0 is -0 and sqrt -inf is NaN. */
#include "simplify.h"
#include <math.h>

/* x, of which zeros are positive and infinities too. */
static Val positive(Builder *b, Val x) {
    Val infinite = b_eq(b, x, b_full_like(b, x, -INFINITY));
    return b_select(b, infinite, b_add(b, x, b_zeros_like(b, x)), b_full_like(b, x, INFINITY));
}
static Val rewrite(const Defs *d, Builder *b, const Eqn *e) {
    Scalar s;
    if (e->prim != P_pow || !is_splat(d, e->in.at[1], &s)) return 0;
    Val x = e->in.at[0];
    Dtype type = b_type(b, x)->dtype;
    bool same = type_plain(d->cx->types, val_type(d->cx, x)) == type_plain(d->cx->types, val_type(d->cx, e->out.at[0]));
    if (!same || (type != DT_f32 && type != DT_f64) || dtype_info[s.dtype].kind != DK_FLOAT) return 0;
    double y = scalar_float(s);
    if (y == 3) return b_mul(b, b_mul(b, x, x), x);
    if (y == 0.5) return b_sqrt(b, positive(b, x));
    if (y == -0.5) return b_rsqrt(b, positive(b, x));
    if (y != 1.5) return 0;
    x = positive(b, x);
    return b_mul(b, x, b_sqrt(b, x));
}
Jaxpr *pass_powers(Ctx *cx, const Jaxpr *j) {
    return jaxpr_uses(cx->arena, j, P_pow) ? fold_with(cx, j, rewrite) : jaxpr_with(cx, j, j->eqns, j->out);
}
