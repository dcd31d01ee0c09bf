/* Complex numbers as pairs of real ones: the arithmetic of pairs, written with a Builder. */
#ifndef JAXCC_COMPLEX_H
#define JAXCC_COMPLEX_H
#include "build.h"

/* The parts of a complex value, of one real type and shape; for a real value: itself, and im = 0 (no value). */
typedef struct {
    Val re, im;
} Pair;

/* With parts of that type. */
Pair pair_parts(Builder *, Pair, Dtype);
/* x · y; one of them may be real. */
Pair pair_product(Builder *, Pair x, Pair y);

/* The result of an elementwise equation. `x`: its operands, all of the result's shape. */
typedef Pair PairRule(Builder *, const Eqn *, const Pair *x);
PairRule pair_same, pair_mul, pair_div, pair_square, pair_integer_pow, pair_pow, pair_max, pair_min, pair_clamp,
    pair_eq, pair_ne, pair_real, pair_imag, pair_conj, pair_complex, pair_convert, pair_abs, pair_sign, pair_sqrt,
    pair_rsqrt, pair_exp, pair_exp2, pair_expm1, pair_log, pair_log1p, pair_logistic, pair_sin, pair_cos, pair_tan,
    pair_asin, pair_acos, pair_atan, pair_sinh, pair_cosh, pair_tanh, pair_asinh, pair_acosh, pair_atanh, pair_atan2,
    pair_logaddexp;

#endif
