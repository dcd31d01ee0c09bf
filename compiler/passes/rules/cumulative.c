/* Derivatives of cumulative reductions. */
#include "../transform/transform.h"
#include <math.h>

/* ---- pairs of a value and its tangent, combined: those of r = f(x, y) */
typedef struct {
    Val v, t;
} Pair;
typedef Pair CombinePairs(Builder *, Pair x, Pair y);

static Pair combine_mul(Builder *b, Pair x, Pair y) {
    Val left = b_mul(b, x.t, y.v), right = b_mul(b, x.v, y.t);
    return (Pair){b_mul(b, x.v, y.v), b_add_any(b, left, right)};
}
/* What x has of r, the greatest or least of x and y: all, half at a tie. */
static Val share(Builder *b, Val x, Val r, Val y) {
    Val mine = b_select(b, b_eq(b, x, r), b_full_like(b, r, 0), b_full_like(b, r, 1));
    Val both = b_select(b, b_eq(b, y, r), b_full_like(b, r, 1), b_full_like(b, r, 2));
    return b_div(b, mine, both);
}
static Pair combine_extremes(Builder *b, Prim p, Pair x, Pair y) {
    Val r = b2(b, p, x.v, y.v);
    Val left = b_mul(b, x.t, share(b, x.v, r, y.v)), right = b_mul(b, y.t, share(b, y.v, r, x.v));
    return (Pair){r, b_add_any(b, left, right)};
}
static Pair combine_max(Builder *b, Pair x, Pair y) { return combine_extremes(b, P_max, x, y); }
static Pair combine_min(Builder *b, Pair x, Pair y) { return combine_extremes(b, P_min, x, y); }

/* x with infinity, in the real part, replaced by 0. */
static Val without_infinity(Builder *b, Val x) {
    if (b_failed(b, x)) return VAL_FAILED;
    Val real = dtype_info[b_type(b, x)->dtype].kind == DK_COMPLEX ? b_real(b, x) : x;
    return b_select(b, b_eq(b, real, b_full_like(b, real, INFINITY)), x, b_full_like(b, x, 0));
}
/* g exp(x - r) as JAX's logaddexp evaluates it. */
static Val weighted(Builder *b, Val g, Val x, Val r) {
    return b_mul(b, g, b_exp(b, b_sub(b, without_infinity(b, x), r)));
}
/* log(exp x + exp y) = m + log(exp(x - m) + exp(y - m)) for any m, here the greater one, which has no derivative: so
   those of higher order are right where x = y as well. */
static Pair combine_logaddexp(Builder *b, Pair x, Pair y) {
    Val m = without_infinity(b, b_max(b, x.v, y.v));
    m = build(b, P_stop_gradient, 1, &m, 0, NULL);
    Val left = b_exp(b, b_sub(b, x.v, m)), right = b_exp(b, b_sub(b, y.v, m));
    Val r = b_add(b, m, b_log(b, b_add(b, left, right))), to = without_infinity(b, r);
    left = weighted(b, x.t, x.v, to), right = weighted(b, y.t, y.v, to);
    return (Pair){r, b_add(b, left, right)};
}

/* ---- JAX's associative_scan: neighbours are combined, what results is scanned, and between its elements come those
   combined with one more. Which elements meet determines what ties give. */
typedef struct {
    Builder *b;
    int64_t axis;
    CombinePairs *combine;
} Tree;

/* Elements lo, lo + step, … < hi along the axis. */
static Val every(const Tree *s, Val v, int64_t lo, int64_t hi, int64_t step) {
    Builder *b = s->b;
    Dim start[MAX_RANK] = {0}, limit[MAX_RANK];
    int64_t strides[MAX_RANK];
    if (b_failed(b, v)) return VAL_FAILED;
    const ArrayType *t = b_type(b, v);
    for (uint32_t i = 0; i < t->rank; i++) limit[i] = t->dims[i], strides[i] = 1;
    start[s->axis] = lo, limit[s->axis] = hi, strides[s->axis] = step;
    return b_slice(b, v, start, limit, step == 1 ? NULL : strides);
}
static Pair every_pair(const Tree *s, Pair p, int64_t lo, int64_t hi, int64_t step) {
    p.v = every(s, p.v, lo, hi, step);
    p.t = every(s, p.t, lo, hi, step);
    return p;
}
/* The elements of n with gaps between them, after `low` zeros and before `high`. */
static Val spread(const Tree *s, Val v, Dim low, Dim high) {
    Builder *b = s->b;
    Dim config[3 * MAX_RANK] = {0};
    if (b_failed(b, v)) return VAL_FAILED;
    config[3 * s->axis] = low, config[3 * s->axis + 1] = high, config[3 * s->axis + 2] = 1;
    return b_pad(b, v, b_number(b, b_type(b, v)->dtype, 0), config);
}
/* n elements: even[0], odd[0], even[1], … */
static Val interleaved(const Tree *s, Val even, Val odd, int64_t n) {
    Val x = spread(s, even, 0, n % 2 == 0), y = spread(s, odd, 1, n % 2);
    return b_add(s->b, x, y);
}
static Val after(const Tree *s, Val first, Val rest) { return b_concatenate(s->b, 2, (Val[]){first, rest}, s->axis); }
static Pair scanned(const Tree *s, Pair x, int64_t n) {
    if (n < 2) return x;
    Pair left = every_pair(s, x, 0, n - 1, 2), right = every_pair(s, x, 1, n, 2);
    Pair odd = scanned(s, s->combine(s->b, left, right), n / 2), even = every_pair(s, x, 0, 1, 1);
    if (n > 2) {
        left = n % 2 ? odd : every_pair(s, odd, 0, n / 2 - 1, 1), right = every_pair(s, x, 2, n, 2);
        Pair rest = s->combine(s->b, left, right);
        even.v = after(s, even.v, rest.v);
        even.t = after(s, even.t, rest.t);
    }
    Val v = interleaved(s, even.v, odd.v, n), t = interleaved(s, even.t, odd.t, n);
    return (Pair){v, t};
}

/* ---- along an axis of any extent: from one end to the other */
static Pair one_by_one(const Tree *s, Pair x, bool reverse) {
    Builder *b = s->b;
    const ArrayType *t = b_type(b, x.v);
    int64_t forth[MAX_RANK], back[MAX_RANK];
    Dim rest[MAX_RANK];
    forth[0] = s->axis, back[s->axis] = 0;
    for (uint32_t i = 0, n = 1; i < t->rank; i++) {
        if (i == s->axis) continue;
        rest[n - 1] = t->dims[i];
        forth[n] = i, back[i] = n++;
    }
    Val none = b_full(b, b_number(b, t->dtype, 0), t->rank - 1, rest), first = b_number(b, DT_bool, 1);
    Val in[5] = {first, none, none, b_transpose(b, x.v, forth), b_transpose(b, x.t, forth)}, out[5];
    if (b->failed) return x;
    Type types[5] = {val_type(b->cx, first), val_type(b->cx, none), val_type(b->cx, none), val_type(b->cx, none),
                     val_type(b->cx, none)};
    Inner turn = b_inner(b, 5, types);
    const Val *at = turn.in.at;
    Pair next = {at[3], at[4]}, sum = s->combine(b, (Pair){at[1], at[2]}, next);
    out[0] = b_number(b, DT_bool, 0);
    out[1] = out[3] = b_select(b, at[0], sum.v, next.v);
    out[2] = out[4] = b_select(b, at[0], sum.t, next.t);
    b_inner_end(b, &turn, 5, out);
    Loop loop = {.length = t->dims[s->axis], .carries = 3, .reverse = reverse};
    Vals all = b_scan(b, &turn, loop, 5, in);
    return (Pair){b_transpose(b, all.at[3], back), b_transpose(b, all.at[4], back)};
}
static bool cumulative(Jvp *d, CombinePairs *combine) {
    Builder *b = d->b;
    Tree s = {b, param_int(d->e, K_axis, 0), combine};
    bool reverse = param_bool(d->e, K_reverse);
    Pair x = {d->e->in.at[0], d->t[0]};
    Dim n = b_type(b, x.v)->dims[s.axis];
    if (!dim_is_const(n)) {
        x = one_by_one(&s, x, reverse);
    } else {
        if (reverse) x.v = b_rev(b, x.v, 1, &s.axis), x.t = b_rev(b, x.t, 1, &s.axis);
        x = scanned(&s, x, n);
        if (reverse) x.v = b_rev(b, x.v, 1, &s.axis), x.t = b_rev(b, x.t, 1, &s.axis);
    }
    d->out[0] = x.v, d->dt[0] = x.t;
    return !b->failed;
}
bool jvp_cumprod(Jvp *d) { return cumulative(d, combine_mul); }
bool jvp_cummax(Jvp *d) { return cumulative(d, combine_max); }
bool jvp_cummin(Jvp *d) { return cumulative(d, combine_min); }
bool jvp_cumlogsumexp(Jvp *d) { return cumulative(d, combine_logaddexp); }

bool transpose_cumsum(Transpose *t) {
    Param p[2] = {p_int(K_axis, param_int(t->e, K_axis, 0)), p_bool(K_reverse, !param_bool(t->e, K_reverse))};
    ct_add(t, 0, build(t->b, P_cumsum, 1, t->ct, 2, p));
    return true;
}
