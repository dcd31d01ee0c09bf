/* Identities, a function per primitive. All are exact: results keep their bits, including the sign of zero and NaN,
   except the payload of a NaN. So x - 0 is x, but x + 0 is not, since -0 + 0 is +0; x + -0 is x. */
#include "simplify.h"
#include <math.h>
#include <stdlib.h>

const Eqn *def_of(const Defs *d, Val v) { return v < d->n ? d->defs[v] : NULL; }

const Eqn *def_by(const Defs *d, Val v, Prim p) {
    const Eqn *e = def_of(d, v);
    return e && e->prim == p ? e : NULL;
}

static const ArrayType *array(const Defs *d, Val v) { return val_array(d->cx, v); }
static Dtype dtype(const Defs *d, Val v) { return array(d, v)->dtype; }

static bool same_type(const Defs *d, Val a, Val b) {
    Types *ts = d->cx->types;
    return type_plain(ts, val_type(d->cx, a)) == type_plain(ts, val_type(d->cx, b));
}

bool is_splat(const Defs *d, Val v, Scalar *s) {
    const Eqn *e = def_by(d, v, P_broadcast_in_dim);
    return scalar_of(d->cx, e && e->in.n == 1 ? e->in.at[0] : v, s);
}

uint32_t long_axes(const ArrayType *t) {
    uint32_t n = 0;
    for (uint32_t a = 0; a < t->rank; a++) n += t->dims[a] != 1;
    return n;
}

/* Is every element of `v` equal to `x`, including the sign of zero? */
static bool is_number(const Defs *d, Val v, double x) {
    Scalar s;
    if (!is_splat(d, v, &s)) return false;
    if (dtype_info[s.dtype].kind != DK_FLOAT) return (double)scalar_int(s) == x;
    double y = scalar_float(s);
    return y == x && signbit(y) == signbit(x);
}

/* Are all bits ones? */
static bool is_ones(const Defs *d, Val v) {
    Scalar s;
    if (!is_splat(d, v, &s) || dtype_info[s.dtype].kind == DK_FLOAT) return false;
    return s.bits == UINT64_MAX >> (64 - dtype_info[s.dtype].width);
}

/* Is every element the smallest value of its type, or the greatest? */
static bool is_limit(const Defs *d, Val v, bool least) {
    Scalar s;
    if (!is_splat(d, v, &s)) return false;
    const DtypeInfo *t = &dtype_info[s.dtype];
    uint64_t ones = UINT64_MAX >> (64 - t->width), top = ones / 2 + 1;
    if (t->kind == DK_FLOAT) return scalar_float(s) == (least ? -INFINITY : INFINITY);
    if (t->kind == DK_SINT) return s.bits == (least ? top : ones - top);
    return s.bits == (least ? 0 : ones);
}

static bool is_floating(const Defs *d, Val v) { return dtype_info[dtype(d, v)].kind == DK_FLOAT; }
static bool is_complex(const Defs *d, Val v) { return dtype_info[dtype(d, v)].kind == DK_COMPLEX; }

#define X e->in.at[0]
#define Y e->in.at[1]

/* `e` becomes an equation without parameters. */
static Val becomes(const Defs *d, Eqn *e, Prim prim, Val x, Val y) {
    e->prim = prim;
    e->params = (Params){0};
    e->in_at = NULL;
    e->in = (Vals){arena_new(d->cx->arena, Val, 2), y ? 2 : 1};
    e->in.at[0] = x;
    if (y) e->in.at[1] = y;
    return 0;
}

/* A literal with the element type of `like`. */
static Val number(const Defs *d, const Eqn *e, Val like, double x) {
    Type t = type_of(d->cx->types, dtype(d, like), 0, NULL);
    return val_literal(d->cx, t, (Lit){.kind = LIT_FLOAT, .re = x}, e->span);
}

/* ---- arithmetic */

/* ---- the rules of the `simplify` column of prims.def */

typedef Val Rule(const Defs *, Eqn *);
#define PRIM(id, text, arity, type, simplify, ...) static Rule s_##simplify;
#include "../prims.def"

static Val s_none(const Defs *d, Eqn *e) { return 0; }
static Val s_same(const Defs *d, Eqn *e) { return X; }

static Val s_add(const Defs *d, Eqn *e) {
    double zero = is_floating(d, X) ? -0.0 : 0.0;
    if (is_complex(d, X)) return 0;
    return is_number(d, Y, zero) ? X : is_number(d, X, zero) ? Y : 0;
}

static Val s_sub(const Defs *d, Eqn *e) { return !is_complex(d, X) && is_number(d, Y, 0.0) ? X : 0; }

static Val s_mul(const Defs *d, Eqn *e) {
    if (is_complex(d, X)) return 0;
    if (is_number(d, Y, 1)) return X;
    if (is_number(d, X, 1)) return Y;
    Val other = is_number(d, Y, -1) ? X : is_number(d, X, -1) ? Y : 0;
    return other && same_type(d, other, e->out.at[0]) ? becomes(d, e, P_neg, other, 0) : 0;
}

/* x / 2^k = x 2^-k: both round the same real number once, if 2^-k exists. */
static Val s_div(const Defs *d, Eqn *e) {
    Scalar s;
    int k;
    if (is_complex(d, X)) return 0;
    if (is_number(d, Y, 1)) return X;
    if (!is_floating(d, X) || !is_splat(d, Y, &s) || float_format[s.dtype].exponent < 8) return 0;
    if (!same_type(d, X, e->out.at[0])) return 0; /* a scalar divided by an array */
    double y = scalar_float(s);
    if (!isfinite(y) || fabs(frexp(y, &k)) != 0.5 || abs(k) > (s.dtype == DT_f64 ? 1000 : 120)) return 0;
    return becomes(d, e, P_mul, X, number(d, e, Y, 1 / y));
}

/* Powers of two have no negative values. */
static Val s_neg(const Defs *d, Eqn *e) {
    const Eqn *inner = def_by(d, X, P_neg);
    bool power = float_format[dtype(d, X)].special == FLOAT_POWER;
    return inner && !power ? inner->in.at[0] : 0;
}

static Val s_not(const Defs *d, Eqn *e) {
    const Eqn *inner = def_by(d, X, P_not);
    return inner ? inner->in.at[0] : 0;
}

static Val s_and(const Defs *d, Eqn *e) {
    if (X == Y || is_ones(d, Y) || is_number(d, X, 0)) return X;
    return is_ones(d, X) || is_number(d, Y, 0) ? Y : 0;
}

static Val s_or(const Defs *d, Eqn *e) {
    if (X == Y || is_number(d, Y, 0) || is_ones(d, X)) return X;
    return is_number(d, X, 0) || is_ones(d, Y) ? Y : 0;
}

static Val s_xor(const Defs *d, Eqn *e) { return is_number(d, Y, 0) ? X : is_number(d, X, 0) ? Y : 0; }

static Val s_shift(const Defs *d, Eqn *e) { return is_number(d, Y, 0) ? X : 0; }

/* The smallest value of a type is neutral for max, the greatest for min; NaN stays NaN. */
static Val extremum(const Defs *d, const Eqn *e, bool least) {
    if (X == Y) return X;
    return is_limit(d, Y, least) ? X : is_limit(d, X, least) ? Y : 0;
}
static Val s_max(const Defs *d, Eqn *e) { return extremum(d, e, true); }
static Val s_min(const Defs *d, Eqn *e) { return extremum(d, e, false); }

static Val s_integer_pow(const Defs *d, Eqn *e) { return param_number(e, K_y) == 1 ? X : 0; }

/* x^2 = x x and x^-1 = 1 / x are rounded once: no pow is more accurate. */
static Val s_pow(const Defs *d, Eqn *e) {
    if (!is_floating(d, X)) return 0;
    if (is_number(d, Y, 1)) return X;
    if (!same_type(d, X, e->out.at[0])) return 0;
    if (is_number(d, Y, 2)) return becomes(d, e, P_mul, X, X);
    if (is_number(d, Y, -1)) return becomes(d, e, P_div, number(d, e, X, 1), X);
    return 0;
}

static Val s_select_n(const Defs *d, Eqn *e) {
    Scalar s;
    if (is_splat(d, X, &s)) {
        int64_t i = scalar_int(s), last = (int64_t)e->in.n - 2;
        return e->in.at[1 + (i < 0 ? 0 : i > last ? last : i)];
    }
    for (uint32_t i = 2; i < e->in.n; i++)
        if (e->in.at[i] != e->in.at[1]) return 0;
    return e->in.at[1];
}

/* ---- conversions */

/* Is every value of type `a` one of `b`, both being floats or neither? */
static bool holds(Dtype a, Dtype b) {
    const DtypeInfo *x = &dtype_info[a], *y = &dtype_info[b];
    if (!scalar_dtype(a) || !scalar_dtype(b)) return false;
    if (a == b || x->kind == DK_BOOL) return a == b || y->kind == DK_SINT || y->kind == DK_UINT;
    if (x->kind == DK_FLOAT)
        return y->kind == DK_FLOAT && y->bits > x->bits && float_format[b].mantissa > float_format[a].mantissa &&
               float_format[b].exponent >= float_format[a].exponent;
    if (x->kind == y->kind) return y->width > x->width;
    return x->kind == DK_UINT && y->kind == DK_SINT && y->width > x->width;
}

/* Are there values whose conversion differs if it goes through another float? The largest one of a format without
   infinities becomes the largest integer; an f64 below all powers of two becomes NaN. */
static bool at_its_limits(Dtype from, Dtype to) {
    if (dtype_info[from].kind != DK_FLOAT) return false;
    return float_format[from].special == FLOAT_FINITE || float_format[to].special == FLOAT_POWER;
}

/* A lossless conversion before another one can be dropped: bf16 → f32 → bf16 is x, i8 → i32 → f32 is i8 → f32. */
static Val s_convert(const Defs *d, Eqn *e) {
    if (same_type(d, X, e->out.at[0])) return X;
    const Eqn *inner = def_by(d, X, P_convert_element_type);
    if (!inner || !holds(dtype(d, inner->in.at[0]), dtype(d, X))) return 0;
    if (same_type(d, inner->in.at[0], e->out.at[0])) return inner->in.at[0];
    if (at_its_limits(dtype(d, inner->in.at[0]), dtype(d, e->out.at[0]))) return 0;
    X = inner->in.at[0];
    e->in_at = NULL;
    return 0;
}

static Val s_bitcast(const Defs *d, Eqn *e) {
    const Eqn *inner = def_by(d, X, P_bitcast_convert_type);
    if (!inner || array(d, inner->in.at[0])->rank != array(d, e->out.at[0])->rank) return X;
    if (same_type(d, inner->in.at[0], e->out.at[0])) return inner->in.at[0];
    X = inner->in.at[0];
    e->in_at = NULL;
    return 0;
}

/* ---- layouts */

/* Moving the elements of a broadcast scalar does not change them: `e` becomes the same broadcast with another shape. */
static Val rebroadcast(const Defs *d, Eqn *e) {
    const Eqn *inner = def_by(d, X, P_broadcast_in_dim);
    if (!inner || inner->in.n != 1 || array(d, inner->in.at[0])->rank) return 0;
    const ArrayType *t = array(d, e->out.at[0]);
    for (uint32_t i = 0; i < t->rank; i++)
        if (!dim_is_const(t->dims[i])) return 0;
    Dims dims = {(Dim *)t->dims, t->rank};
    e->prim = P_broadcast_in_dim;
    e->in = inner->in;
    e->in_at = NULL;
    e->params = (Params){arena_new(d->cx->arena, Param, 2), 2};
    e->params.at[0] = (Param){.key = K_broadcast_dimensions, .value.kind = V_INTS};
    e->params.at[1] = (Param){.key = K_shape, .value = {.kind = V_DIMS, .dims = dims}};
    return 0;
}

static bool is_iota(Ints s) {
    for (uint32_t i = 0; i < s.n; i++)
        if (s.at[i] != i) return false;
    return true;
}

static Val s_broadcast_in_dim(const Defs *d, Eqn *e) {
    if (same_type(d, X, e->out.at[0]) && is_iota(param_ints(e, K_broadcast_dimensions))) return X;
    return rebroadcast(d, e);
}

/* Of several reshapes only the last one counts; one with `dimensions` also transposes. */
static Val s_reshape(const Defs *d, Eqn *e) {
    if (param_has(e, K_dimensions)) return 0;
    if (same_type(d, X, e->out.at[0])) return X;
    const Eqn *inner = def_by(d, X, P_reshape);
    if (inner && inner->in.n == 1 && e->in.n == 1 && !param_has(inner, K_dimensions)) {
        X = inner->in.at[0];
        e->in_at = NULL;
        return same_type(d, X, e->out.at[0]) ? X : 0;
    }
    return rebroadcast(d, e);
}

/* The identity if no axis is removed. */
static Val s_squeeze(const Defs *d, Eqn *e) { return same_type(d, X, e->out.at[0]) ? X : rebroadcast(d, e); }

static Val s_transpose(const Defs *d, Eqn *e) {
    Ints p = param_ints(e, K_permutation);
    if (is_iota(p)) return X;
    const Eqn *inner = def_by(d, X, P_transpose);
    Ints q = inner ? param_ints(inner, K_permutation) : (Ints){0};
    if (!inner || q.n != p.n) return rebroadcast(d, e);
    Ints both = {arena_new(d->cx->arena, int64_t, p.n), p.n};
    for (uint32_t i = 0; i < p.n; i++) both.at[i] = q.at[p.at[i]];
    X = inner->in.at[0];
    if (is_iota(both)) return X;
    e->in_at = NULL;
    Params params = {arena_new(d->cx->arena, Param, e->params.n), e->params.n};
    for (uint32_t i = 0; i < params.n; i++) {
        params.at[i] = e->params.at[i];
        if (params.at[i].key == K_permutation) params.at[i].value.ints = both;
    }
    e->params = params;
    return 0;
}

static Val s_rev(const Defs *d, Eqn *e) { return param_ints(e, K_dimensions).n == 0 ? X : rebroadcast(d, e); }

/* A slice of everything is the identity. */
static Val s_slice(const Defs *d, Eqn *e) {
    each(int64_t, s, param_ints(e, K_strides))
        if (*s != 1) return rebroadcast(d, e);
    return e->in.n == 1 && same_type(d, X, e->out.at[0]) ? X : rebroadcast(d, e);
}

/* Start indices are clamped. */
static Val s_dynamic_slice(const Defs *d, Eqn *e) { return same_type(d, X, e->out.at[0]) ? X : rebroadcast(d, e); }
static Val s_dynamic_update_slice(const Defs *d, Eqn *e) { return same_type(d, Y, e->out.at[0]) ? Y : 0; }

static Val s_pad(const Defs *d, Eqn *e) {
    Dims padding = param_dims(e, K_padding_config);
    each(Dim, p, padding)
        if (*p != 0) return 0;
    return padding.n == 3 * array(d, X)->rank ? X : 0;
}

static Val s_concatenate(const Defs *d, Eqn *e) { return e->in.n == 1 ? X : 0; }

static Val s_reduce(const Defs *d, Eqn *e) { return param_has(e, K_axes) && param_ints(e, K_axes).n == 0 ? X : 0; }

/* ---- results known without operands */

static Val s_dim_as_value(const Defs *d, Eqn *e) {
    const Param *p = param_find(e, K_dim);
    int64_t i = p && p->value.kind == V_DIM ? p->value.dim : param_int(e, K_dim, INT64_MIN);
    if (!dim_is_const(i)) return 0;
    Lit lit = {.kind = LIT_INT, .negative = i < 0, .i = i < 0 ? -(uint64_t)i : (uint64_t)i};
    return val_literal(d->cx, val_type(d->cx, e->out.at[0]), lit, e->span);
}

/* The index of the program that this platform runs: the first that names it or is for all platforms. */
static Val s_platform_index(const Defs *d, Eqn *e) {
    const Param *p = param_find(e, K_platforms);
    if (!p || p->value.kind != V_LIST) return 0;
    for (uint32_t i = 0; i < p->value.list.n; i++) {
        const Value *names = &p->value.list.at[i];
        bool mine = names->kind == V_NONE;
        for (uint32_t k = 0; names->kind == V_LIST && k < names->list.n; k++)
            mine = mine || str_is(names->list.at[k].s, "'cpu'");
        if (mine) return val_literal(d->cx, val_type(d->cx, e->out.at[0]), (Lit){.kind = LIT_INT, .i = i}, e->span);
    }
    return 0;
}

static Rule *const rules[NPRIMS] = {
#define PRIM(id, text, arity, type, simplify, ...) [P_##id] = s_##simplify,
#include "../prims.def"
};

Val simplify(const Defs *d, Eqn *e) {
    Prim prim = e->prim;
    Val v = prim != P_none && e->out.n == 1 ? rules[prim](d, e) : 0;
    if (v && !same_type(d, v, e->out.at[0])) return 0;
    return v;
}
