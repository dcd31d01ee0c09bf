/* Elementwise primitives that are written with others for some types only; for others a rule leaves
   out[0] = 0. */
#include "../build.h"
#include <math.h>

#define X e->in.at[0]
static Dtype dtype(const Builder *b, const Eqn *e) { return b_type(b, X)->dtype; }

/* ---- bits of another width: the parts of a wider element, lowest first, are an axis, the last one
 */
static Dtype unsigned_of(uint32_t width) {
    Dtype d = DT_u2;
    while (dtype_info[d].width != width)
        d++;
    return d;
}
/* Where in the wider element each part lies, of the shape of the parts. */
static Val places(Builder *b, const ArrayType *parts, Dtype wide) {
    Val part = b_iota(b, wide, parts->rank, parts->dims, parts->rank - 1);
    return b2(b, P_mul, part, b_full_like(b, part, dtype_info[parts->dtype].width));
}
static bool split(Builder *b, const Eqn *e, Val *out) {
    const ArrayType *y = val_array(b->cx, e->out.at[0]);
    Dtype wide = unsigned_of(dtype_info[dtype(b, e)].width);
    int64_t axes[32];
    for (uint32_t i = 0; i + 1 < y->rank; i++)
        axes[i] = i;
    Val all = b_broadcast(b, b_bitcast(b, X, wide), y->rank, y->dims, axes);
    Val parts = b2(b, P_shift_right_logical, all, places(b, y, wide));
    out[0] = b_bitcast(b, b_convert(b, parts, unsigned_of(dtype_info[y->dtype].width)), y->dtype);
    return true;
}
static bool join(Builder *b, const Eqn *e, Val *out) {
    const ArrayType *x = b_type(b, X), *y = val_array(b->cx, e->out.at[0]);
    Dtype wide = unsigned_of(dtype_info[y->dtype].width);
    Val parts = b_convert(b, b_bitcast(b, X, unsigned_of(dtype_info[x->dtype].width)), wide);
    Val placed = b2(b, P_shift_left, parts, places(b, x, wide));
    int64_t last = x->rank - 1;
    out[0] = b_bitcast(b, b_reduce(b, P_reduce_or, placed, 1, &last), y->dtype);
    return true;
}
static bool some_bitcast(Builder *b, const Eqn *e, Val *out) {
    uint32_t from = dtype_info[dtype(b, e)].width;
    uint32_t to = dtype_info[val_array(b->cx, e->out.at[0])->dtype].width;
    return from == to || (from > to ? split : join)(b, e, out);
}

/* ---- functions of narrow floats that XLA has as formulas, each step of which is rounded
   (StableHLO's chlo-legalize-to-stablehlo; JAX's lowerings of exp2 and logistic) */
static bool is_narrow_float(Dtype d) {
    return dtype_info[d].kind == DK_FLOAT && dtype_is_narrow(d);
}
static Val add(Builder *b, Val x, Val y) { return b2(b, P_add, x, y); }
static Val mul(Builder *b, Val x, Val y) { return b2(b, P_mul, x, y); }
static Val number(Builder *b, const Eqn *e, double x) { return b_full_like(b, X, x); }
static double ln2(void) { return 0x1.62e42fefa39efp-1; }

static bool some_logistic(Builder *b, const Eqn *e, Val *out) {
    Val one = number(b, e, 1);
    out[0] = b2(b, P_div, one, add(b, one, b1(b, P_exp, b1(b, P_neg, X))));
    return true;
}
static bool some_exp2(Builder *b, const Eqn *e, Val *out) {
    out[0] = b1(b, P_exp, mul(b, number(b, e, ln2()), X));
    return true;
}
/* √((1 - x)(1 + x)) */
static Val other_side(Builder *b, const Eqn *e) {
    Val one = number(b, e, 1);
    return b1(b, P_sqrt, mul(b, b2(b, P_sub, one, X), add(b, one, X)));
}
/* 2 atan2(x, 1 + √(1 - x²)) */
static bool some_asin(Builder *b, const Eqn *e, Val *out) {
    Val half = b2(b, P_atan2, X, add(b, number(b, e, 1), other_side(b, e)));
    out[0] = add(b, half, half);
    return true;
}
/* atan2(√(1 - x²), x) */
static bool some_acos(Builder *b, const Eqn *e, Val *out) {
    out[0] = b2(b, P_atan2, other_side(b, e), X);
    return true;
}
/* log1p(|x| + x² / (1 + √(1 + x²))), from the root of the largest number on log|x| + log 2 */
static bool some_asinh(Builder *b, const Eqn *e, Val *out) {
    Val one = number(b, e, 1), size = b1(b, P_abs, X), square = mul(b, size, size);
    Val root = b1(b, P_sqrt, add(b, square, one));
    Val small = b1(b, P_log1p, add(b, size, b2(b, P_div, square, add(b, root, one))));
    Val large = add(b, b1(b, P_log, size), number(b, e, ln2()));
    double most = float_decode(&float_format[dtype(b, e)], float_most(&float_format[dtype(b, e)]));
    Val far = b2(b, P_ge, size, number(b, e, sqrt(most)));
    out[0] = mul(b, b1(b, P_sign, X), b_select(b, far, small, large));
    return true;
}
/* log1p(√(x - 1) (√(x + 1) + √(x - 1))), from half of the largest number on log x + log 2 */
static bool some_acosh(Builder *b, const Eqn *e, Val *out) {
    Val one = number(b, e, 1), low = b1(b, P_sqrt, b2(b, P_sub, X, one));
    Val high = b1(b, P_sqrt, add(b, X, one));
    Val small = b1(b, P_log1p, mul(b, low, add(b, high, low)));
    Val large = add(b, b1(b, P_log, X), number(b, e, ln2()));
    double most = float_decode(&float_format[dtype(b, e)], float_most(&float_format[dtype(b, e)]));
    out[0] = b_select(b, b2(b, P_ge, X, number(b, e, most / 2)), small, large);
    return true;
}
/* (log1p x - log1p -x) / 2 */
static bool some_atanh(Builder *b, const Eqn *e, Val *out) {
    Val twice = b2(b, P_sub, b1(b, P_log1p, X), b1(b, P_log1p, b1(b, P_neg, X)));
    Val outside = b2(b, P_gt, b1(b, P_abs, X), number(b, e, 1));
    Val half = mul(b, twice, number(b, e, 0.5));
    out[0] = b_select(b, outside, half, number(b, e, (double)NAN));
    return true;
}
/* In f32. */
static bool some_in_f32(Builder *b, const Eqn *e, Val *out) {
    out[0] = b_convert(b, b1(b, e->prim, b_convert(b, X, DT_f32)), dtype(b, e));
    return true;
}

static const struct {
    ExpandRule *rule;
    bool narrow; /* of narrow floats only */
} some[NPRIMS] = {
    [P_bitcast_convert_type] = {some_bitcast, false},
    [P_logistic] = {some_logistic, true},
    [P_exp2] = {some_exp2, true},
    [P_asin] = {some_asin, true},
    [P_acos] = {some_acos, true},
    [P_asinh] = {some_asinh, true},
    [P_acosh] = {some_acosh, true},
    [P_atanh] = {some_atanh, true},
    [P_sinh] = {some_in_f32, true},
    [P_cosh] = {some_in_f32, true},
};
bool expand_some(Builder *b, const Eqn *e, Val *out) {
    ExpandRule *rule = some[e->prim].rule;
    return !rule || (some[e->prim].narrow && !is_narrow_float(dtype(b, e))) || rule(b, e, out);
}
