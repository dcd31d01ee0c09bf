/* Elementwise functions of complex numbers, as equations on their parts. Results for infinities, NaN and signed zeros
   are those of JAX on the CPU. Formulas for the inverse functions: W. Kahan, "Branch cuts for complex elementary
   functions, or much ado about nothing's sign bit" (1987). */
#include "complex.h"
#include "../typecheck/rule.h"
#include <math.h>

/* ---- shorthand: z = x + iy */
static Val when(Builder *b, Val c, Val yes, Val no) { return b_select(b, c, no, yes); }
static Pair when_pair(Builder *b, Val c, Pair yes, Pair no) {
    return (Pair){when(b, c, yes.re, no.re), when(b, c, yes.im, no.im)};
}
/* A constant of the type and shape of `like`. */
static Val all(Builder *b, Val like, double v) { return b_full_like(b, like, v); }
static Val less(Builder *b, Val x, double y) { return b_lt(b, x, all(b, x, y)); }
static Val is(Builder *b, Val x, double y) { return b_eq(b, x, all(b, x, y)); }
static Val scaled(Builder *b, Val x, double by) { return b_mul(b, x, all(b, x, by)); }
static Val plus(Builder *b, Val x, double y) { return b_add(b, x, all(b, x, y)); }
static bool wide(Builder *b, Val x) { return x && b_type(b, x)->dtype == DT_f64; }
static Pair minus(Builder *b, Pair z) { return (Pair){b_neg(b, z.re), b_neg(b, z.im)}; }
static Pair times_i(Builder *b, Pair z) { return (Pair){b_neg(b, z.im), z.re}; }
static Pair over_i(Builder *b, Pair z) { return (Pair){z.im, b_neg(b, z.re)}; }
/* |x| with the sign of y. */
static Val signed_as(Builder *b, Val x, Val y) {
    if (b->failed) return VAL_FAILED;
    const ArrayType *t = b_type(b, x);
    bool f64 = t->dtype == DT_f64;
    Dtype bits = f64 ? DT_u64 : DT_u32;
    Val rest = b_full(b, b_int(b, bits, f64 ? INT64_MAX : INT32_MAX), t->rank, t->dims), sign = b_not(b, rest);
    Val u = b_and(b, b_bitcast(b, x, bits), rest), s = b_and(b, b_bitcast(b, y, bits), sign);
    return b_bitcast(b, b_or(b, u, s), t->dtype);
}

/* A power of 2, 2^k with k even, so that x is between 2^(k-1) and 2^(k+1): numbers scaled by it neither overflow nor
   lose bits when squared. 0 and infinity are not scaled. */
typedef struct {
    Val down, up, root; /* 2^-k, 2^k, 2^(k/2) */
} Scale;
static Scale scale_of(Builder *b, Val x) {
    if (b->failed) return (Scale){VAL_FAILED, VAL_FAILED, VAL_FAILED};
    const ArrayType *t = b_type(b, x);
    bool f64 = t->dtype == DT_f64;
    Dtype bits = f64 ? DT_i64 : DT_i32;
    int64_t one = f64 ? INT64_C(1) << 52 : 1 << 23, bias = f64 ? 1023 : 127; /* of the exponent */
#define BITS(i) b_full(b, b_int(b, bits, i), t->rank, t->dims)
    Val k = b_or(b, b_and(b, b_bitcast(b, x, bits), BITS(-2 * one)), BITS(one));
    k = b_min(b, k, BITS((2 * bias - 1) * one));
    Val down = b_sub(b, BITS(2 * bias * one), k),
        half = b_shift_right_logical(b, b_add(b, k, BITS(bias * one)), BITS(1));
#undef BITS
    return (Scale){b_bitcast(b, down, t->dtype), b_bitcast(b, k, t->dtype), b_bitcast(b, half, t->dtype)};
}
static Pair by_scalar(Builder *b, Pair x, Val s) { return (Pair){b_mul(b, x.re, s), b_mul(b, x.im, s)}; }
static Pair sizes(Builder *b, Pair z) { return (Pair){b_abs(b, z.re), b_abs(b, z.im)}; }

/* ---- parts */
Pair pair_real(Builder *b, const Eqn *e, const Pair *x) { return (Pair){x->re, 0}; }
Pair pair_imag(Builder *b, const Eqn *e, const Pair *x) { return (Pair){x->im, 0}; }
Pair pair_complex(Builder *b, const Eqn *e, const Pair *x) { return (Pair){x[0].re, x[1].re}; }
Pair pair_conj(Builder *b, const Eqn *e, const Pair *x) {
    return (Pair){x->re, x->im ? b_neg(b, x->im) : all(b, x->re, 0)};
}
/* A bitcast of complex numbers is to the same type only. */
Pair pair_same(Builder *b, const Eqn *e, const Pair *x) { return *x; }
/* To a real type: the real part; to bool: whether it is nonzero. */
Pair pair_convert(Builder *b, const Eqn *e, const Pair *x) {
    Dtype to = param_dtype(e, K_new_dtype), part = dtype_real(to);
    Val re = b_convert(b, x->re, part);
    if (to == DT_bool) return (Pair){b_or(b, re, b_convert(b, x->im, DT_bool)), 0};
    if (part == to) return (Pair){re, 0};
    return (Pair){re, x->im ? b_convert(b, x->im, part) : all(b, re, 0)};
}

/* ---- comparisons; the order is that of the real parts, then of the imaginary ones */
Pair pair_eq(Builder *b, const Eqn *e, const Pair *x) {
    return (Pair){b_and(b, b_eq(b, x[0].re, x[1].re), b_eq(b, x[0].im, x[1].im)), 0};
}
Pair pair_ne(Builder *b, const Eqn *e, const Pair *x) {
    return (Pair){b_or(b, b_ne(b, x[0].re, x[1].re), b_ne(b, x[0].im, x[1].im)), 0};
}
static Pair first(Builder *b, Prim order, Pair x, Pair y) {
    Val same = b_eq(b, x.re, y.re);
    return when_pair(b, when(b, same, b2(b, order, x.im, y.im), b2(b, order, x.re, y.re)), x, y);
}
Pair pair_max(Builder *b, const Eqn *e, const Pair *x) { return first(b, P_gt, x[0], x[1]); }
Pair pair_min(Builder *b, const Eqn *e, const Pair *x) { return first(b, P_lt, x[0], x[1]); }
Pair pair_clamp(Builder *b, const Eqn *e, const Pair *x) { return first(b, P_lt, first(b, P_gt, x[1], x[0]), x[2]); }

/* ---- arithmetic */
Pair pair_parts(Builder *b, Pair x, Dtype d) { return (Pair){b_convert(b, x.re, d), x.im ? b_convert(b, x.im, d) : 0}; }
Pair pair_product(Builder *b, Pair x, Pair y) {
    if (!x.im) return (Pair){b_mul(b, x.re, y.re), y.im ? b_mul(b, x.re, y.im) : 0};
    if (!y.im) return (Pair){b_mul(b, x.re, y.re), b_mul(b, x.im, y.re)};
    return (Pair){b_sub(b, b_mul(b, x.re, y.re), b_mul(b, x.im, y.im)),
                  b_add(b, b_mul(b, x.re, y.im), b_mul(b, x.im, y.re))};
}
/* Operands may be real if out_dtype is complex. */
Pair pair_mul(Builder *b, const Eqn *e, const Pair *x) {
    Dtype d = dtype_real(val_array(b->cx, e->out.at[0])->dtype);
    Pair y[2];
    for (uint32_t i = 0; i < 2; i++) y[i] = pair_parts(b, x[i], d);
    if (!y[0].im && !y[1].im) return (Pair){b_mul(b, y[0].re, y[1].re), all(b, y[0].re, 0)};
    return pair_product(b, y[0], y[1]);
}
Pair pair_square(Builder *b, const Eqn *e, const Pair *x) {
    Val xy = b_mul(b, x->re, x->im);
    return (Pair){b_mul(b, b_sub(b, x->re, x->im), b_add(b, x->re, x->im)), b_add(b, xy, xy)};
}

/* x · conj y */
static Pair turned_back(Builder *b, Pair x, Pair y) {
    return (Pair){b_add(b, b_mul(b, x.re, y.re), b_mul(b, x.im, y.im)),
                  b_sub(b, b_mul(b, x.im, y.re), b_mul(b, x.re, y.im))};
}
static Val infinite(Builder *b, Val x) { return is(b, b_abs(b, x), INFINITY); }
static Val any_infinite(Builder *b, Pair x) { return b_or(b, infinite(b, x.re), infinite(b, x.im)); }
static Val finite_pair(Builder *b, Pair x) { return b_and(b, b_is_finite(b, x.re), b_is_finite(b, x.im)); }
static Val is_nan(Builder *b, Val x) { return b_ne(b, x, x); }
/* Infinite parts become ±1, the others ±0. */
static Pair boxed(Builder *b, Pair x) {
    Val none = all(b, x.re, 0), unit = all(b, x.re, 1);
    return (Pair){signed_as(b, when(b, infinite(b, x.re), unit, none), x.re),
                  signed_as(b, when(b, infinite(b, x.im), unit, none), x.im)};
}
/* x · conj y / |y|², both scaled by powers of 2 so that no intermediate value overflows. Then results that are NaN +
   NaN i because of a division by 0, an infinite dividend or an infinite divisor are corrected, as in annex G of C. */
static Pair quotient(Builder *b, Pair x, Pair y) {
    Val s = scale_of(b, b_max(b, b_abs(b, y.re), b_abs(b, y.im))).down;
    Pair d = by_scalar(b, y, s), n = turned_back(b, by_scalar(b, x, scaled(b, s, 0.125)), d);
    Val dd = b_add(b, b_mul(b, d.re, d.re), b_mul(b, d.im, d.im));
    Pair q = {scaled(b, b_div(b, n.re, dd), 8), scaled(b, b_div(b, n.im, dd), 8)};
    Val lost = b_and(b, is_nan(b, q.re), is_nan(b, q.im)), inf = all(b, s, INFINITY);
    Val by_0 = b_and(b, is(b, y.re, 0), is(b, y.im, 0));
    Pair over = by_scalar(b, turned_back(b, boxed(b, x), y), inf);
    Pair under = by_scalar(b, turned_back(b, x, boxed(b, y)), all(b, s, 0));
    q = when_pair(b, b_and(b, lost, b_and(b, any_infinite(b, y), finite_pair(b, x))), under, q);
    q = when_pair(b, b_and(b, lost, b_and(b, any_infinite(b, x), finite_pair(b, y))), over, q);
    return when_pair(b, b_and(b, lost, by_0), by_scalar(b, x, signed_as(b, inf, y.re)), q);
}
Pair pair_div(Builder *b, const Eqn *e, const Pair *x) { return quotient(b, x[0], x[1]); }
static Pair one(Builder *b, Pair like) { return (Pair){all(b, like.re, 1), all(b, like.re, 0)}; }

/* By repeated multiplication, by the bits of y from the lowest up; 1 / z^-y for negative y. */
Pair pair_integer_pow(Builder *b, const Eqn *e, const Pair *x) {
    int64_t y = param_number(e, K_y);
    Pair power = *x, result = one(b, *x);
    bool any = false;
    for (uint64_t n = y < 0 ? -(uint64_t)y : (uint64_t)y; n; n >>= 1) {
        if (n & 1) result = any ? pair_product(b, result, power) : power, any = true;
        if (n > 1) power = pair_product(b, power, power);
    }
    return y < 0 ? quotient(b, one(b, *x), result) : result;
}

/* ---- absolute value */
static Val hypotenuse(Builder *b, Val x, Val y) {
    Pair a = sizes(b, (Pair){x, y});
    Scale s = scale_of(b, b_max(b, a.re, a.im));
    a = by_scalar(b, a, s.down);
    return b_mul(b, b_sqrt(b, b_add(b, b_mul(b, a.re, a.re), b_mul(b, a.im, a.im))), s.up);
}
Pair pair_abs(Builder *b, const Eqn *e, const Pair *x) { return (Pair){hypotenuse(b, x->re, x->im), 0}; }
Pair pair_sign(Builder *b, const Eqn *e, const Pair *x) {
    Val r = hypotenuse(b, x->re, x->im), zero = is(b, r, 0);
    return when_pair(b, zero, *x, (Pair){b_div(b, x->re, r), b_div(b, x->im, r)});
}

/* ---- square roots: (u, y / 2u) where x ≥ 0, (|y| / 2u, ±u) where x < 0, u = √((|x| + |z|) / 2) */
static Pair root_of_sizes(Builder *b, Pair z) {
    Pair a = sizes(b, z);
    Val m = b_max(b, a.re, a.im), inf = all(b, m, INFINITY);
    Scale s = scale_of(b, m);
    Pair n = by_scalar(b, a, s.down);
    Val h = b_sqrt(b, b_add(b, b_mul(b, n.re, n.re), b_mul(b, n.im, n.im)));
    Val u = b_mul(b, b_sqrt(b, scaled(b, b_add(b, n.re, h), 0.5)), s.root), v = b_div(b, a.im, b_add(b, u, u));
    Val all_inf = b_and(b, is(b, a.im, INFINITY), b_eq(b, a.re, a.re));
    u = when(b, all_inf, inf, u), v = when(b, all_inf, inf, when(b, is(b, m, 0), m, v));
    Val left = less(b, z.re, 0);
    return (Pair){when(b, left, v, u), when(b, left, u, v)};
}
/* With the sign of the imaginary part, including -0. */
static Pair square_root(Builder *b, Pair z) {
    Pair r = root_of_sizes(b, z);
    return (Pair){r.re, signed_as(b, r.im, z.im)};
}
/* In JAX -0 is on the upper side of the cut. */
static Pair upper_root(Builder *b, Pair z) {
    Pair r = root_of_sizes(b, z);
    return (Pair){r.re, when(b, less(b, z.im, 0), b_neg(b, r.im), r.im)};
}
Pair pair_sqrt(Builder *b, const Eqn *e, const Pair *x) { return upper_root(b, *x); }
/* 0 of an infinity, whatever its other part is. */
Pair pair_rsqrt(Builder *b, const Eqn *e, const Pair *x) {
    Pair s = square_root(b, *x), r = quotient(b, one(b, s), s);
    Val gone = b_and(b, any_infinite(b, *x), is_nan(b, r.re)), zero = all(b, r.re, 0);
    return (Pair){when(b, gone, zero, r.re), when(b, gone, zero, r.im)};
}

/* ---- exponentials */
static Val e_to(Builder *b, Val x) { return b_exp(b, x); }
/* e^x (cos y + i sin y); e^x in two steps if it overflows; y = 0 stays 0. */
static Pair exponential(Builder *b, Pair z) {
    Val r = e_to(b, z.re), half = e_to(b, scaled(b, z.re, 0.5)), over = is(b, r, INFINITY);
    Val c = b_cos(b, z.im), s = b_sin(b, z.im), real = is(b, z.im, 0);
    Val re = when(b, over, b_mul(b, b_mul(b, half, c), half), b_mul(b, r, c));
    Val im = when(b, over, b_mul(b, b_mul(b, half, s), half), b_mul(b, r, s));
    return (Pair){when(b, real, r, re), when(b, real, z.im, im)};
}
Pair pair_exp(Builder *b, const Eqn *e, const Pair *x) { return exponential(b, *x); }
Pair pair_exp2(Builder *b, const Eqn *e, const Pair *x) {
    const double log_2 = 0.69314718055994530942;
    return exponential(b, pair_product(b, *x, (Pair){all(b, x->re, log_2), all(b, x->re, 0)}));
}
Pair pair_expm1(Builder *b, const Eqn *e, const Pair *x) {
    Val s = b_sin(b, scaled(b, x->im, 0.5)), less_1 = b_expm1(b, x->re);
    Val re = b_sub(b, b_mul(b, less_1, b_cos(b, x->im)), scaled(b, b_mul(b, s, s), 2));
    Val im = b_mul(b, plus(b, less_1, 1), b_sin(b, x->im));
    return (Pair){re, when(b, is(b, x->im, 0), x->im, im)};
}
Pair pair_logistic(Builder *b, const Eqn *e, const Pair *x) {
    Pair d = exponential(b, minus(b, *x));
    return quotient(b, one(b, d), (Pair){plus(b, d.re, 1), d.im});
}

/* ---- logarithms */
/* log √(1 + t + lost): t and its rounding error, each of the sums exact. */
static Val sum(Builder *b, Val x, Val y, Val *lost) {
    Val s = b_add(b, x, y), t = b_sub(b, s, x);
    *lost = b_add(b, *lost, b_add(b, b_sub(b, x, b_sub(b, s, t)), b_sub(b, y, t)));
    return s;
}
/* ½ log(1 + a + p² + q²) for arguments near 1: the rounding errors of the squares are added. */
static Val half_log1p(Builder *b, Val a, Val p, Val q) {
    Val pp = b_mul(b, p, p), qq = b_mul(b, q, q),
        lost = b_add(b, b_fma(b, p, p, b_neg(b, pp)), b_fma(b, q, q, b_neg(b, qq)));
    Val t = sum(b, sum(b, a, pp, &lost), qq, &lost);
    return scaled(b, b_log1p(b, b_add(b, t, lost)), 0.5);
}
/* log |z| */
static Val log_size(Builder *b, Val x, Val y) {
    Val ax = b_abs(b, x), ay = b_abs(b, y), m = b_max(b, ax, ay), n = b_min(b, ax, ay), q = b_div(b, n, m);
    Val far = b_add(b, b_log(b, m), scaled(b, b_log1p(b, b_mul(b, q, q)), 0.5));
    Val close = b_and(b, less(b, m, 1.5), b_gt(b, m, all(b, m, 0.5)));
    Val r = when(b, close, half_log1p(b, all(b, m, -1), m, n), far);
    return when(b, b_or(b, is(b, m, 0), is(b, m, INFINITY)), b_log(b, m), r);
}
static Pair logarithm(Builder *b, Pair z) { return (Pair){log_size(b, z.re, z.im), b_atan2(b, z.im, z.re)}; }
Pair pair_log(Builder *b, const Eqn *e, const Pair *x) { return logarithm(b, *x); }
static Pair logarithm_1p(Builder *b, Pair z) {
    Val x1 = plus(b, z.re, 1), m = b_max(b, b_abs(b, z.re), b_abs(b, z.im));
    Val close = b_and(b, less(b, m, 2), b_gt(b, z.re, all(b, m, -0.5)));
    Val re = when(b, close, half_log1p(b, b_add(b, z.re, z.re), z.re, z.im), log_size(b, x1, z.im));
    return (Pair){re, b_atan2(b, z.im, x1)};
}
Pair pair_log1p(Builder *b, const Eqn *e, const Pair *x) { return logarithm_1p(b, *x); }
/* log(e^x + e^y): the larger one + log(1 + e^difference), its imaginary part reduced to -π … π. */
Pair pair_logaddexp(Builder *b, const Eqn *e, const Pair *x) {
    const double pi = 3.14159265358979323846;
    Pair most = first(b, P_gt, x[0], x[1]), least = first(b, P_lt, x[0], x[1]);
    Pair l = logarithm_1p(b, exponential(b, (Pair){b_sub(b, least.re, most.re), b_sub(b, least.im, most.im)}));
    Val turns = b_rem(b, plus(b, b_add(b, most.im, l.im), pi), all(b, l.im, 2 * pi));
    turns = when(b, less(b, turns, 0), plus(b, turns, 2 * pi), turns);
    return when_pair(b, is(b, least.re, -INFINITY), most, (Pair){b_add(b, most.re, l.re), plus(b, turns, -pi)});
}
/* z^w = |z|^u e^(-v arg z) (cos t + i sin t), t = u arg z + v log |z|, w = u + iv */
static Val equals(Builder *b, Pair z, double x) { return b_and(b, is(b, z.re, x), is(b, z.im, 0)); }
static Pair power(Builder *b, Pair z, Pair w) {
    Val r = hypotenuse(b, z.re, z.im), arg = b_atan2(b, z.im, z.re);
    Val t = b_add(b, b_mul(b, w.re, arg), b_mul(b, w.im, log_size(b, z.re, z.im)));
    Val s = b_mul(b, b_pow(b, r, w.re), e_to(b, b_neg(b, b_mul(b, w.im, arg))));
    return (Pair){b_mul(b, s, b_cos(b, t)), b_mul(b, s, b_sin(b, t))};
}
Pair pair_pow(Builder *b, const Eqn *e, const Pair *x) {
    Dtype d = x[0].re ? b_type(b, x[0].re)->dtype : DT_f32;
    Pair w = {b_convert(b, x[1].re, d), x[1].im ? x[1].im : all(b, x[0].re, 0)};
    Pair z = x[0], zero = {all(b, z.re, 0), all(b, z.re, 0)}, none = {all(b, z.re, NAN), all(b, z.re, NAN)};
    Pair of_0 = when_pair(b, b_gt(b, w.re, zero.re), zero, when_pair(b, is(b, w.re, 0), one(b, z), none));
    of_0 = when_pair(b, is(b, w.im, 0), of_0, none);
    Pair r = when_pair(b, equals(b, z, 0), of_0, power(b, z, w));
    Val real_inf = b_and(b, b_and(b, is(b, z.re, INFINITY), is(b, z.im, 0)), is(b, w.im, 0));
    r = when_pair(b, real_inf, (Pair){b_pow(b, z.re, w.re), zero.re}, r);
    return when_pair(b, b_or(b, equals(b, w, 0), equals(b, z, 1)), one(b, z), r);
}

/* ---- circular and hyperbolic functions */
/* sin x cosh y + i cos x sinh y */
static Pair sine(Builder *b, Pair z) {
    Val re = b_mul(b, b_sin(b, z.re), b_cosh(b, z.im)), im = b_mul(b, b_cos(b, z.re), b_sinh(b, z.im));
    return (Pair){when(b, is(b, z.re, 0), z.re, re), im};
}
static Pair cosine(Builder *b, Pair z) {
    Val im = b_neg(b, b_mul(b, b_sin(b, z.re), b_sinh(b, z.im)));
    return (Pair){b_mul(b, b_cos(b, z.re), b_cosh(b, z.im)), when(b, is(b, z.re, 0), all(b, im, 0), im)};
}
static Pair sine_h(Builder *b, Pair z) {
    Val im = b_mul(b, b_cosh(b, z.re), b_sin(b, z.im));
    return (Pair){b_mul(b, b_sinh(b, z.re), b_cos(b, z.im)), when(b, is(b, z.im, 0), z.im, im)};
}
static Pair cosine_h(Builder *b, Pair z) {
    Val im = b_mul(b, b_sinh(b, z.re), b_sin(b, z.im));
    return (Pair){b_mul(b, b_cosh(b, z.re), b_cos(b, z.im)), when(b, is(b, z.im, 0), all(b, im, 0), im)};
}
/* With t = tan x, s = sinh y: (t + i (1 + t²) s √(1 + s²)) / (1 + (1 + t²) s²). Beyond |y| = 20: ±i, and
   4 sin x cos x e^-2|y|. */
static Pair tangent(Builder *b, Pair z) {
    Val far = b_ge(b, b_abs(b, z.im), all(b, z.im, 20)), y = when(b, far, all(b, z.im, 1), z.im);
    Val t = b_tan(b, z.re), s = b_sinh(b, y), c = plus(b, b_mul(b, t, t), 1);
    Val d = plus(b, b_mul(b, c, b_mul(b, s, s)), 1),
        n = b_mul(b, b_mul(b, c, s), b_sqrt(b, plus(b, b_mul(b, s, s), 1)));
    Val tiny = scaled(b, b_mul(b, b_mul(b, b_sin(b, z.re), b_cos(b, z.re)), e_to(b, scaled(b, b_abs(b, z.im), -2))), 4);
    tiny = when(b, infinite(b, z.im), all(b, tiny, 0), tiny);
    Val re = when(b, is(b, z.re, 0), z.re, when(b, far, tiny, b_div(b, t, d))),
        unit = signed_as(b, all(b, z.im, 1), z.im);
    return (Pair){re, when(b, far, b_add(b, unit, tiny), b_div(b, n, d))}; /* NaN where the real part is, else ±1 */
}
Pair pair_sin(Builder *b, const Eqn *e, const Pair *x) { return sine(b, *x); }
Pair pair_cos(Builder *b, const Eqn *e, const Pair *x) { return cosine(b, *x); }
Pair pair_tan(Builder *b, const Eqn *e, const Pair *x) { return tangent(b, *x); }
Pair pair_sinh(Builder *b, const Eqn *e, const Pair *x) { return sine_h(b, *x); }
Pair pair_cosh(Builder *b, const Eqn *e, const Pair *x) { return cosine_h(b, *x); }
Pair pair_tanh(Builder *b, const Eqn *e, const Pair *x) { return over_i(b, tangent(b, times_i(b, *x))); }

/* ---- inverse functions */
static Pair from_one(Builder *b, Pair z) { return (Pair){b_sub(b, all(b, z.re, 1), z.re), b_neg(b, z.im)}; }
static Pair over_one(Builder *b, Pair z) { return (Pair){plus(b, z.re, 1), z.im}; }
/* Im (conj z · w) */
static Val turned(Builder *b, Pair z, Pair w) { return b_sub(b, b_mul(b, z.re, w.im), b_mul(b, z.im, w.re)); }

/* Selects one of two numbers by the sign of x; -0 counts as positive. */
static Val by_sign(Builder *b, Val x, double below, double above) {
    return when(b, less(b, x, 0), all(b, x, below), all(b, x, above));
}

/* arsinh (Im (conj p · q)); the product is halved if it could overflow. */
static Val arsinh_turned(Builder *b, Pair p, Pair q) {
    const double log_2 = 0.69314718055994530942;
    Val m = all(b, p.re, wide(b, p.re) ? 0x1p500 : 0x1p60), t = turned(b, by_scalar(b, p, all(b, m, 0.5)), q);
    Val large = b_gt(b, b_abs(b, t), m), s = b_asinh(b, when(b, large, t, b_add(b, t, t)));
    return when(b, large, b_add(b, s, signed_as(b, all(b, s, log_2), s)), s);
}
static Pair arcsine(Builder *b, Pair z) {
    z.im = plus(b, z.im, 0); /* not -0 */
    Pair p = square_root(b, from_one(b, z)), q = square_root(b, over_one(b, z));
    Val re = b_atan2(b, z.re, b_sub(b, b_mul(b, p.re, q.re), b_mul(b, p.im, q.im)));
    Pair far = {b_atan2(b, z.re, b_abs(b, z.im)), by_sign(b, z.im, -INFINITY, INFINITY)};
    return when_pair(b, any_infinite(b, z), far, (Pair){re, arsinh_turned(b, p, q)});
}
static Pair arccosine(Builder *b, Pair z) {
    z.im = plus(b, z.im, 0);
    Pair p = square_root(b, from_one(b, z)), q = square_root(b, over_one(b, z));
    Val re = scaled(b, b_atan2(b, p.re, q.re), 2);
    Pair far = {b_atan2(b, b_abs(b, z.im), z.re), by_sign(b, z.im, INFINITY, -INFINITY)};
    return when_pair(b, any_infinite(b, z), far, (Pair){re, arsinh_turned(b, q, p)});
}
/* (¼ log1p(4x / ((1 - x)² + y²)), ½ atan2(2y, (1 - x)(1 + x) - y²)); for large |z|: (x / |z|², ±π/2). */
static Pair arctangent_h(Builder *b, Pair z) {
    const double quarter_turn = 1.57079632679489661923;
    Val ax = b_abs(b, z.re), ay = b_abs(b, z.im), m = b_max(b, ax, ay), most = all(b, m, wide(b, m) ? 0x1p500 : 0x1p60);
    Val u = b_sub(b, all(b, ax, 1), ax), d = b_add(b, b_mul(b, u, u), b_mul(b, ay, ay));
    Val re = scaled(b, b_log1p(b, b_div(b, scaled(b, ax, 4), d)), 0.25);
    Val im = scaled(b, b_atan2(b, scaled(b, z.im, 2), b_sub(b, b_mul(b, u, plus(b, ax, 1)), b_mul(b, ay, ay))), 0.5);
    Val n = b_min(b, ax, ay), q = b_div(b, n, m),
        beyond = b_div(b, b_div(b, ax, m), b_mul(b, m, plus(b, b_mul(b, q, q), 1)));
    beyond = when(b, any_infinite(b, z), all(b, m, 0), beyond);
    Val near = b_le(b, m, most), up = b_ge(b, z.im, all(b, m, 0));
    Val right = when(b, up, all(b, m, quarter_turn), all(b, m, -quarter_turn));
    return (Pair){signed_as(b, when(b, near, re, beyond), z.re), when(b, near, im, right)};
}
Pair pair_asin(Builder *b, const Eqn *e, const Pair *x) { return arcsine(b, *x); }
Pair pair_acos(Builder *b, const Eqn *e, const Pair *x) { return arccosine(b, *x); }
Pair pair_atan(Builder *b, const Eqn *e, const Pair *x) { return over_i(b, arctangent_h(b, times_i(b, *x))); }
Pair pair_asinh(Builder *b, const Eqn *e, const Pair *x) { return over_i(b, arcsine(b, times_i(b, *x))); }
Pair pair_atanh(Builder *b, const Eqn *e, const Pair *x) { return arctangent_h(b, *x); }
/* ±i arccos z, with a nonnegative real part. */
Pair pair_acosh(Builder *b, const Eqn *e, const Pair *x) {
    Pair a = arccosine(b, *x);
    return (Pair){b_abs(b, a.im), when(b, less(b, x->im, 0), b_neg(b, a.re), a.re)};
}
/* -i log((x + iy) / √(x² + y²)) of complex x (operand 1) and y (operand 0). */
Pair pair_atan2(Builder *b, const Eqn *e, const Pair *x) {
    Pair xx = pair_product(b, x[1], x[1]), yy = pair_product(b, x[0], x[0]), i = times_i(b, x[0]);
    Pair r = square_root(b, (Pair){b_add(b, xx.re, yy.re), b_add(b, xx.im, yy.im)});
    return over_i(b, logarithm(b, quotient(b, (Pair){b_add(b, x[1].re, i.re), b_add(b, x[1].im, i.im)}, r)));
}
