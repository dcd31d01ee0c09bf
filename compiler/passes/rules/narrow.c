/* Primitives that are expanded for some types only: bitcasts between widths, narrow floats, products of mixed types
   (dot.c). A rule leaves out[0] = 0 if the equation stays. */
#include "some.h"
#include <assert.h>
#include <math.h>

#define X e->in.at[0]
static Dtype dtype(const Builder *b, const Eqn *e) { return b_type(b, X)->dtype; }

/* ---- bits of another width: the parts of a wider element, lowest first, are an axis, the last one */
static Dtype unsigned_of(uint32_t width) {
    Dtype d = DT_u2;
    while (dtype_info[d].width != width) d++;
    return d;
}
/* The position of each part in the wider element, with the shape of the parts. */
static Val places(Builder *b, const ArrayType *parts, Dtype wide) {
    Val part = b_iota(b, wide, parts->rank, parts->dims, parts->rank - 1);
    return b_mul(b, part, b_full_like(b, part, dtype_info[parts->dtype].width));
}
static bool split(Builder *b, const Eqn *e, Val *out) {
    const ArrayType *y = val_array(b->cx, e->out.at[0]);
    Dtype wide = unsigned_of(dtype_info[dtype(b, e)].width);
    int64_t axes[MAX_RANK];
    for (uint32_t i = 0; i + 1 < y->rank; i++) axes[i] = i;
    Val all = b_broadcast(b, b_bitcast(b, X, wide), y->rank, y->dims, axes);
    Val parts = b_shift_right_logical(b, all, places(b, y, wide));
    out[0] = b_bitcast(b, b_convert(b, parts, unsigned_of(dtype_info[y->dtype].width)), y->dtype);
    return true;
}
static bool join(Builder *b, const Eqn *e, Val *out) {
    const ArrayType *x = b_type(b, X), *y = val_array(b->cx, e->out.at[0]);
    Dtype wide = unsigned_of(dtype_info[y->dtype].width);
    Val parts = b_convert(b, b_bitcast(b, X, unsigned_of(dtype_info[x->dtype].width)), wide);
    Val placed = b_shift_left(b, parts, places(b, x, wide));
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
static bool is_narrow_float(Dtype d) { return dtype_info[d].kind == DK_FLOAT && dtype_is_narrow(d); }
static Val add(Builder *b, Val x, Val y) { return b_add(b, x, y); }
static Val mul(Builder *b, Val x, Val y) { return b_mul(b, x, y); }
static Val number(Builder *b, const Eqn *e, double x) { return b_full_like(b, X, x); }
static double ln2(void) { return 0x1.62e42fefa39efp-1; }

static bool some_logistic(Builder *b, const Eqn *e, Val *out) {
    Val one = number(b, e, 1);
    out[0] = b_div(b, one, add(b, one, b_exp(b, b_neg(b, X))));
    return true;
}
static bool some_exp2(Builder *b, const Eqn *e, Val *out) {
    out[0] = b_exp(b, mul(b, number(b, e, ln2()), X));
    return true;
}
/* √((1 - x)(1 + x)) */
static Val other_side(Builder *b, const Eqn *e) {
    Val one = number(b, e, 1);
    return b_sqrt(b, mul(b, b_sub(b, one, X), add(b, one, X)));
}
/* 2 atan2(x, 1 + √(1 - x²)) */
static bool some_asin(Builder *b, const Eqn *e, Val *out) {
    Val half = b_atan2(b, X, add(b, number(b, e, 1), other_side(b, e)));
    out[0] = add(b, half, half);
    return true;
}
/* atan2(√(1 - x²), x) */
static bool some_acos(Builder *b, const Eqn *e, Val *out) {
    out[0] = b_atan2(b, other_side(b, e), X);
    return true;
}
/* log1p(|x| + x² / (1 + √(1 + x²))), from the root of the largest number on log|x| + log 2 */
static bool some_asinh(Builder *b, const Eqn *e, Val *out) {
    Val one = number(b, e, 1), size = b_abs(b, X), square = mul(b, size, size);
    Val root = b_sqrt(b, add(b, square, one));
    Val small = b_log1p(b, add(b, size, b_div(b, square, add(b, root, one))));
    Val large = add(b, b_log(b, size), number(b, e, ln2()));
    double most = float_decode(&float_format[dtype(b, e)], float_most(&float_format[dtype(b, e)]));
    Val far = b_ge(b, size, number(b, e, sqrt(most)));
    out[0] = mul(b, b_sign(b, X), b_select(b, far, small, large));
    return true;
}
/* log1p(√(x - 1) (√(x + 1) + √(x - 1))), from half of the largest number on log x + log 2 */
static bool some_acosh(Builder *b, const Eqn *e, Val *out) {
    Val one = number(b, e, 1), low = b_sqrt(b, b_sub(b, X, one));
    Val high = b_sqrt(b, add(b, X, one));
    Val small = b_log1p(b, mul(b, low, add(b, high, low)));
    Val large = add(b, b_log(b, X), number(b, e, ln2()));
    double most = float_decode(&float_format[dtype(b, e)], float_most(&float_format[dtype(b, e)]));
    out[0] = b_select(b, b_ge(b, X, number(b, e, most / 2)), small, large);
    return true;
}
/* (log1p x - log1p -x) / 2 */
static bool some_atanh(Builder *b, const Eqn *e, Val *out) {
    Val twice = b_sub(b, b_log1p(b, X), b_log1p(b, b_neg(b, X)));
    Val outside = b_gt(b, b_abs(b, X), number(b, e, 1));
    Val half = mul(b, twice, number(b, e, 0.5));
    out[0] = b_select(b, outside, half, number(b, e, (double)NAN));
    return true;
}
/* In f32. */
static bool some_in_f32(Builder *b, const Eqn *e, Val *out) {
    out[0] = b_convert(b, b1(b, e->prim, b_convert(b, X, DT_f32)), dtype(b, e));
    return true;
}

/* ---- sums and products of narrow floats, whose every step is rounded: the order is XLA's. It
   reduces long axes in windows, then what the windows gave (TreeReductionRewriter); and it scans
   long axes in blocks, adding to each what the blocks before it gave (ReduceWindowRewriter). */
enum { WINDOW = 32, BLOCK = 16 };
static double neutral(Prim p) { return p == P_reduce_prod || p == P_cumprod; }

/* `x` with `low` and `high` more elements on each axis, which are neutral. */
static Val padded(Builder *b, Prim p, Val x, const Dim *low, const Dim *high) {
    const ArrayType *t = b_type(b, x);
    Dim config[3 * MAX_RANK];
    for (uint32_t i = 0; i < t->rank; i++) config[3 * i] = low[i], config[3 * i + 1] = high[i], config[3 * i + 2] = 0;
    return b_pad(b, x, b_number(b, t->dtype, neutral(p)), config);
}
static bool some_reduction(Builder *b, const Eqn *e, Val *out) {
    const ArrayType *t = b_type(b, X);
    Ints axes = param_ints(e, K_axes);
    Dim low[MAX_RANK] = {0}, high[MAX_RANK] = {0}, shape[2 * MAX_RANK];
    bool windows[MAX_RANK] = {false}, any = false;
    int64_t inner[MAX_RANK];
    uint32_t rank = 0, n = 0;
    each(int64_t, a, axes) {
        Dim d = t->dims[*a];
        if (!dim_is_const(d)) return true;
        any |= d > WINDOW;
        windows[*a] = true;
    }
    if (!any) return true;
    for (uint32_t i = 0; i < t->rank; i++) {
        Dim d = t->dims[i], w = d > WINDOW ? WINDOW : d > 0 ? d : 1, more = windows[i] ? (w - d % w) % w : 0;
        low[i] = more / 2, high[i] = more - more / 2;
        if (windows[i])
            shape[rank++] = (d + more) / w, inner[n++] = rank, shape[rank++] = w;
        else
            shape[rank++] = d;
    }
    Val parts = b_reshape(b, padded(b, e->prim, X, low, high), rank, shape);
    out[0] = b_reduce(b, e->prim, b_reduce(b, e->prim, parts, n, inner), axes.n, axes.at);
    return true;
}

static Val scan(Builder *b, Prim p, Val x, int64_t axis, bool reverse) {
    return build(b, p, 1, &x, 2, (Param[]){p_int(K_axis, axis), p_bool(K_reverse, reverse)});
}
/* Sums from each element on, each in the order of the elements. */
static Val scan_back(Builder *b, Prim p, Prim op, Val x, int64_t axis) {
    assert(axis >= 0);
    Dim n = b_type(b, x)->dims[axis], low[MAX_RANK] = {0}, high[MAX_RANK] = {0};
    high[axis] = n - 1;
    Val all = padded(b, p, x, low, high), sum = x;
    for (Dim i = 1; i < n; i++) sum = b2(b, op, sum, b_slice_axis(b, all, axis, i, i + n));
    return sum;
}
static Val scan_blocks(Builder *b, Prim p, Prim op, Val x, int64_t axis, bool reverse) {
    const ArrayType *t = b_type(b, x);
    Dim n = t->dims[axis], k = (n + BLOCK - 1) / BLOCK, low[MAX_RANK] = {0}, high[MAX_RANK] = {0}, shape[MAX_RANK + 1];
    int64_t kept[MAX_RANK + 1];
    for (uint32_t i = 0; i <= t->rank; i++) {
        shape[i] = i < axis ? t->dims[i] : i == axis ? k : i == axis + 1 ? BLOCK : t->dims[i - 1];
        kept[i] = i <= axis ? i : i + 1;
    }
    assert(axis >= 0 && axis < t->rank);
    high[axis] = k * BLOCK - n;
    Val blocks = b_reshape(b, padded(b, p, x, low, high), t->rank + 1, shape);
    Val inner = scan(b, p, blocks, axis + 1, reverse);
    Val ends = b_slice_axis(b, inner, axis + 1, reverse ? 0 : BLOCK - 1, reverse ? 1 : BLOCK);
    shape[axis + 1] = 1;
    Dim flat[MAX_RANK], before[MAX_RANK];
    for (uint32_t i = 0; i < t->rank; i++)
        flat[i] = i == axis ? k : t->dims[i], before[i] = i == axis ? k * BLOCK : t->dims[i];
    Val sums = scan(b, p, b_reshape(b, ends, t->rank, flat), axis, reverse);
    high[axis] = reverse ? 1 : -1, low[axis] = -high[axis];
    Val outer = padded(b, p, sums, low, high); /* of the blocks before */
    shape[axis + 1] = BLOCK;
    Val all = b2(b, op, b_broadcast(b, outer, t->rank + 1, shape, kept), inner);
    return b_slice_axis(b, b_reshape(b, all, t->rank, before), axis, 0, n);
}
static bool some_scan(Builder *b, const Eqn *e, Val *out) {
    int64_t axis = param_number(e, K_axis);
    Dim n = b_type(b, X)->dims[axis];
    bool reverse = param_bool(e, K_reverse);
    Prim op = e->prim == P_cumsum ? P_add : P_mul;
    if (!dim_is_const(n) || n < 2 || (n <= BLOCK && !reverse)) return true;
    out[0] = n <= BLOCK ? scan_back(b, e->prim, op, X, axis) : scan_blocks(b, e->prim, op, X, axis, reverse);
    return true;
}

static const struct {
    ExpandRule *rule;
    bool narrow; /* of narrow floats only */
} some[NPRIMS] = {
    [P_bitcast_convert_type] = {some_bitcast, false},
    [P_dot_general] = {some_dot_general, false},
    [P_logistic] = {some_logistic, true},
    [P_exp2] = {some_exp2, true},
    [P_asin] = {some_asin, true},
    [P_acos] = {some_acos, true},
    [P_asinh] = {some_asinh, true},
    [P_acosh] = {some_acosh, true},
    [P_atanh] = {some_atanh, true},
    [P_sinh] = {some_in_f32, true},
    [P_cosh] = {some_in_f32, true},
    [P_reduce_sum] = {some_reduction, true},
    [P_reduce_prod] = {some_reduction, true},
    [P_cumsum] = {some_scan, true},
    [P_cumprod] = {some_scan, true},
};
bool expand_some(Builder *b, const Eqn *e, Val *out) {
    ExpandRule *rule = some[e->prim].rule;
    return !rule || (some[e->prim].narrow && !is_narrow_float(dtype(b, e))) || rule(b, e, out);
}
