/* Each maker draws operands and parameters for the rows of one type rule; infer() gives the
   results' types. What it refuses is thrown away, so that makers need not know every demand. */
#include "gen.h"
#include "compiler/typecheck/check.h"
#include <stdlib.h>

enum {
    BOOL = 1 << DK_BOOL,
    SINT = 1 << DK_SINT,
    INT = SINT | 1 << DK_UINT,
    FLOAT = 1 << DK_FLOAT,
    REAL = INT | FLOAT,
    COMPLEX = 1 << DK_COMPLEX,
    NUM = REAL | COMPLEX,
    ANY = NUM | BOOL,
    MOST_ELEMENTS = 5000,
    MOST_DEPTH = 3
};

typedef struct {
    Val *at;
    uint32_t n, cap;
} Pool;
typedef struct {
    Pool pool;
    Eqns eqns;
} Scope;
typedef struct {
    Ctx *cx;
    Dice *dice;
    bool runs;
    uint32_t depth;
    Scope *s;
} Gen;

uint32_t dice_draw(Dice *d, uint32_t n) {
    if (n < 2) return 0;
    if (d->n) {
        uint32_t x = *d->at++;
        if (--d->n && n > 256) d->n--, x = x << 8 | *d->at++;
        return x % n;
    }
    if (!d->state) return 0;
    d->state ^= d->state << 13, d->state ^= d->state >> 7, d->state ^= d->state << 17;
    return (uint32_t)((d->state >> 11) % n);
}

static uint32_t draw(Gen *g, uint32_t n) { return dice_draw(g->dice, n); }
static bool coin(Gen *g) { return draw(g, 2); }

/* ---- parameters */

typedef struct {
    Param *at;
    uint32_t n, cap;
} Set;

static void put(Gen *g, Set *s, ParamKey k, Value v) {
    push(g->cx->arena, s, ((Param){.key = k, .value = v}));
}
static void put_int(Gen *g, Set *s, ParamKey k, int64_t i) {
    Value v = {.kind = V_INT, .i = i};
    if (param_kind[k] == PK_DIM) v = (Value){.kind = V_DIM, .dim = i};
    if (param_kind[k] == PK_BOOL) v = (Value){.kind = V_BOOL, .i = i};
    put(g, s, k, v);
}
static void put_dtype(Gen *g, Set *s, ParamKey k, Dtype d) {
    put(g, s, k, (Value){.kind = V_DTYPE, .i = d});
}
static void put_ints(Gen *g, Set *s, ParamKey k, const int64_t *at, uint32_t n) {
    int64_t *copy = arena_new(g->cx->arena, int64_t, n + 1);
    if (n) memcpy(copy, at, n * sizeof *at);
    bool dims = param_kind[k] == PK_DIMS || param_kind[k] == PK_PADDING;
    Value v = {.kind = dims ? V_DIMS : V_INTS, .open = '('};
    if (dims)
        v.dims = (Dims){copy, n};
    else
        v.ints = (Ints){copy, n};
    put(g, s, k, v);
}
static void put_jaxpr(Gen *g, Set *s, ParamKey k, Jaxpr *j) {
    put(g, s, k, (Value){.kind = V_JAXPR, .jaxpr = j});
}

/* ---- types */

static bool compiles(Dtype d) {
    unsigned kind = 1u << dtype_info[d].kind;
    return kind & BOOL || (kind & INT && d != DT_i2 && d != DT_i4 && d != DT_u2 && d != DT_u4) ||
           d == DT_f16 || d == DT_bf16 || d == DT_f32 || d == DT_f64;
}

static Dtype draw_dtype(Gen *g, unsigned kinds) {
    static const Dtype usual[] = {DT_f32, DT_i32, DT_bool, DT_f64, DT_u8, DT_i64, DT_bf16};
    for (unsigned tries = 0; tries < 8; tries++) {
        Dtype d = coin(g) ? usual[draw(g, 7)] : (Dtype)(1 + draw(g, NDTYPES - 1));
        if (kinds >> dtype_info[d].kind & 1 && (compiles(d) || !g->runs)) return d;
    }
    return kinds & FLOAT ? DT_f32 : kinds & SINT ? DT_i32 : kinds & BOOL ? DT_bool : DT_u32;
}

static Dim draw_dim(Gen *g) {
    static const Dim usual[] = {2, 3, 1, 4, 5, 7, 0, 8, 16, 17, 33};
    Types *ts = g->cx->types;
    if (draw(g, 8) != 1) return usual[draw(g, sizeof usual / sizeof *usual)];
    Dim b = dim_symbol(ts, coin(g) ? S("b") : S("c"));
    return draw(g, 4) ? b : dim_add(ts, b, 1 + draw(g, 3));
}

/* Small enough, as far as that is known. */
static bool is_small(Gen *g, Type t) {
    const ArrayType *a = type_at(g->cx->types, t);
    uint32_t symbols = 0;
    int64_t n = 1;
    for (uint32_t i = 0; i < a->rank; i++) {
        if (!dim_is_const(a->dims[i])) symbols++;
        if (dim_is_const(a->dims[i]) && a->dims[i] > MOST_ELEMENTS) return false;
        if (dim_is_const(a->dims[i]) && a->dims[i]) n *= a->dims[i];
        if (n > MOST_ELEMENTS) return false;
    }
    return a->rank <= 6 && symbols <= 2;
}

static Type draw_type(Gen *g, unsigned kinds) {
    Dim dims[4];
    uint32_t rank = draw(g, 5) % 4;
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = draw_dim(g);
    Type t = type_of(g->cx->types, draw_dtype(g, kinds), rank, dims);
    return is_small(g, t) ? t : type_of(g->cx->types, draw_dtype(g, kinds), 0, NULL);
}

static const ArrayType *array(const Gen *g, Val v) { return val_array(g->cx, v); }
static unsigned kind_of(const Gen *g, Val v) { return 1u << dtype_info[array(g, v)->dtype].kind; }

/* ---- equations */

/* Adds the equation where it types and, unless `large`, its results are small; they join the pool.
   Result 0, or no value. */
static Val add(Gen *g, Prim p, const Val *in, uint32_t n, Set params, uint32_t results,
               bool large) {
    Ctx *cx = g->cx;
    Eqn e = {.prim = p, .in = {arena_new(cx->arena, Val, n + 1), n}};
    if (n) memcpy(e.in.at, in, n * sizeof *in);
    e.out = (Vals){arena_new(cx->arena, Val, results + 1), results};
    e.params = (Params){params.at, params.n};
    Type *types = arena_new(cx->arena, Type, n + 1), *out = arena_new(cx->arena, Type, results + 1);
    for (uint32_t i = 0; i < n; i++)
        types[i] = val_type(cx, in[i]);
    bool ok = infer(cx, &e, types, out) && !diag_errors(cx->diags);
    for (uint32_t i = 0; ok && i < results; i++)
        ok = out[i] && (large || is_small(g, out[i])) &&
             (!g->runs || compiles(type_at(cx->types, out[i])->dtype));
    if (!ok) {
        cx->diags = diags_new(cx->arena);
        diags_source(cx->diags, "drawn", S(" "));
        return 0;
    }
    for (uint32_t i = 0; i < results; i++) {
        e.out.at[i] = val_new(cx, out[i], (Span){0});
        push(cx->arena, &g->s->pool, e.out.at[i]);
    }
    push(cx->arena, &g->s->eqns, e);
    return results ? e.out.at[0] : 0;
}

static Val emit(Gen *g, Prim p, const Val *in, uint32_t n, Set params, uint32_t results) {
    return add(g, p, in, n, params, results, false);
}

static Val literal(Gen *g, Dtype d) {
    static const double reals[] = {1, 0, 2, -1.5, 0.5, 3, -2, 0.25};
    Lit lit = {.kind = LIT_INT, .i = draw(g, 4)};
    const DtypeInfo *info = &dtype_info[d];
    if (info->kind == DK_BOOL) lit = (Lit){.kind = LIT_BOOL, .i = draw(g, 2)};
    if (info->kind == DK_SINT) lit.i = draw(g, 2), lit.negative = lit.i && coin(g);
    if (info->kind == DK_FLOAT) lit = (Lit){.kind = LIT_FLOAT, .re = reals[draw(g, 8)]};
    if (info->kind == DK_COMPLEX)
        lit = (Lit){.kind = LIT_COMPLEX, .re = reals[draw(g, 8)], .im = reals[draw(g, 8)]};
    if (d == DT_f8_e8m0fnu || d == DT_f4_e2m1fn) lit.re = 1;
    return val_literal(g->cx, type_of(g->cx->types, d, 0, NULL), lit, (Span){0});
}

/* A value of the type: a new one. */
static Val make(Gen *g, Type t) {
    const ArrayType *a = type_at(g->cx->types, t);
    Val x = literal(g, a->dtype);
    if (!a->rank) return x;
    Set params = {0};
    put_ints(g, &params, K_broadcast_dimensions, NULL, 0);
    put_ints(g, &params, K_shape, a->dims, a->rank);
    Val y = add(g, P_broadcast_in_dim, &x, 1, params, 1, true);
    if (!y) abort();
    return y;
}

/* A value of the type: of the pool, where there is one, most of the time. */
static Val need(Gen *g, Type t) {
    Pool *p = &g->s->pool;
    uint32_t from = draw(g, p->n);
    for (uint32_t i = 0; i < p->n && i < 64; i++) {
        Val v = p->at[(from + i) % p->n];
        if (val_type(g->cx, v) == t && draw(g, 4)) return v;
    }
    return make(g, t);
}

/* A value of one of the kinds and of at least that rank. */
static Val pick(Gen *g, unsigned kinds, uint32_t rank) {
    Pool *p = &g->s->pool;
    uint32_t from = draw(g, p->n);
    for (uint32_t i = 0; i < p->n; i++) {
        Val v = p->at[(from + i) % p->n];
        if (kind_of(g, v) & kinds && array(g, v)->rank >= rank) return v;
    }
    Type t = draw_type(g, kinds);
    const ArrayType *a = type_at(g->cx->types, t);
    Dim dims[4] = {2, 3, 2, 1};
    return make(g, a->rank >= rank ? t : type_of(g->cx->types, a->dtype, rank, dims));
}

static Val scalar(Gen *g, Dtype d) { return need(g, type_of(g->cx->types, d, 0, NULL)); }

/* ---- makers: elementwise */

typedef void Make(Gen *, Prim, unsigned kinds);
static Jaxpr *nested(Gen *, const Type *in, uint32_t n, const Type *out, uint32_t results);

static void make_unary(Gen *g, Prim p, unsigned kinds) {
    Val x = pick(g, kinds, 0);
    emit(g, p, &x, 1, (Set){0}, 1);
}
static void make_binary(Gen *g, Prim p, unsigned kinds) {
    Val in[2] = {pick(g, kinds, 0)};
    in[1] = draw(g, 4) ? need(g, val_type(g->cx, in[0])) : scalar(g, array(g, in[0])->dtype);
    uint32_t flip = draw(g, 2);
    emit(g, p, (Val[]){in[flip], in[!flip]}, 2, (Set){0}, 1);
}
static void make_ternary(Gen *g, Prim p, unsigned kinds) {
    Val x = pick(g, kinds, 0);
    Type t = val_type(g->cx, x);
    Val low = p == P_clamp && coin(g) ? scalar(g, array(g, x)->dtype) : need(g, t);
    emit(g, p, (Val[]){low, x, need(g, t)}, 3, (Set){0}, 1);
}
static void make_integer_pow(Gen *g, Prim p, unsigned kinds) {
    Set s = {0};
    Val x = pick(g, kinds, 0);
    put_int(g, &s, K_y, (int64_t)draw(g, 8) - (kind_of(g, x) & INT ? 0 : 3));
    emit(g, p, &x, 1, s, 1);
}
static void make_round(Gen *g, Prim p, unsigned kinds) {
    Set s = {0};
    Val x = pick(g, kinds, 0);
    put(g, &s, K_rounding_method, (Value){.kind = V_WORD, .s = coin(g) ? S("1") : S("0")});
    emit(g, p, &x, 1, s, 1);
}
static void make_reduce_precision(Gen *g, Prim p, unsigned kinds) {
    Set s = {0};
    Val x = pick(g, kinds, 0);
    put_int(g, &s, K_exponent_bits, 2 + draw(g, 8));
    put_int(g, &s, K_mantissa_bits, 1 + draw(g, 30));
    emit(g, p, &x, 1, s, 1);
}
static void make_convert(Gen *g, Prim p, unsigned kinds) {
    Set s = {0};
    Val x = pick(g, kinds, 0);
    put_dtype(g, &s, K_new_dtype, draw_dtype(g, kinds));
    put_int(g, &s, K_weak_type, draw(g, 2));
    if (p == P_bitcast_convert_type) s.n = 1;
    emit(g, p, &x, 1, s, 1);
}
static void make_select_n(Gen *g, Prim p, unsigned kinds) {
    Val x = pick(g, kinds, 0), in[5];
    const ArrayType *a = array(g, x);
    Dtype d = coin(g) ? DT_bool : DT_i32;
    uint32_t n = d == DT_bool ? 2 : 1 + draw(g, 4);
    in[0] = draw(g, 3) ? need(g, type_of(g->cx->types, d, a->rank, a->dims)) : scalar(g, d);
    in[1] = x;
    for (uint32_t i = 2; i <= n; i++)
        in[i] = need(g, val_type(g->cx, x));
    emit(g, p, in, n + 1, (Set){0}, 1);
}
static void make_barrier(Gen *g, Prim p, unsigned kinds) {
    Val in[3] = {pick(g, kinds, 0), pick(g, kinds, 0), pick(g, kinds, 0)};
    uint32_t n = 1 + draw(g, 3);
    emit(g, p, in, n, (Set){0}, n);
}

/* ---- makers: shapes */

static void make_iota(Gen *g, Prim p, unsigned kinds) {
    Set s = {0};
    const ArrayType *a = type_at(g->cx->types, draw_type(g, kinds));
    if (p == P_iota) put_int(g, &s, K_dimension, draw(g, a->rank));
    put_dtype(g, &s, K_dtype, a->dtype);
    put_ints(g, &s, K_shape, a->dims, a->rank);
    if (g->runs && p != P_iota) return; /* any content */
    emit(g, p, NULL, 0, s, 1);
}
/* Distinct axes of [0, rank), in increasing order; some of those that `may` (NULL: all) says. */
static uint32_t some_axes(Gen *g, uint32_t rank, const bool *may, int64_t *axes) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < rank; i++)
        if ((!may || may[i]) && coin(g)) axes[n++] = i;
    return n;
}
static void permute(Gen *g, int64_t *axes, uint32_t n) {
    for (uint32_t i = n; i > 1; i--) {
        uint32_t k = draw(g, i);
        int64_t t = axes[k];
        axes[k] = axes[i - 1], axes[i - 1] = t;
    }
}
static void make_broadcast(Gen *g, Prim p, unsigned kinds) {
    Set s = {0};
    Val x = pick(g, kinds, 0);
    const ArrayType *a = array(g, x);
    int64_t axes[8], dims[16];
    uint32_t n = 0, rank = 0;
    while (n < a->rank || (rank < 5 && draw(g, 3) == 1)) {
        bool old = n < a->rank && draw(g, 4);
        if (old) axes[n] = rank;
        dims[rank++] = old && (a->dims[n] != 1 || coin(g)) ? a->dims[n] : draw_dim(g);
        n += old;
        if (rank == 15) return;
    }
    put_ints(g, &s, K_broadcast_dimensions, axes, n);
    put_ints(g, &s, K_shape, dims, rank);
    emit(g, p, &x, 1, s, 1);
}
/* Extents merged, split and moved; extents 1 come. */
static void make_reshape(Gen *g, Prim p, unsigned kinds) {
    Set s = {0};
    Val x = pick(g, kinds, 0);
    const ArrayType *a = array(g, x);
    int64_t dims[16];
    uint32_t n = 0;
    for (uint32_t i = 0; i < a->rank; i++) {
        Dim d = a->dims[i];
        if (n && coin(g)) {
            dims[n - 1] = dim_mul(g->cx->types, dims[n - 1], d);
        } else if (dim_is_const(d) && d > 2 && d % 2 == 0 && coin(g)) {
            dims[n++] = 2, dims[n++] = d / 2;
        } else {
            dims[n++] = d;
        }
        if (draw(g, 5) == 1) dims[n++] = 1;
    }
    if (!a->rank && coin(g)) dims[n++] = 1;
    permute(g, dims, draw(g, 4) == 1 ? n : 0);
    put_ints(g, &s, K_new_sizes, dims, n);
    emit(g, p, &x, 1, s, 1);
}
static void make_squeeze(Gen *g, Prim p, unsigned kinds) {
    Set s = {0};
    Val x = pick(g, kinds, 0);
    const ArrayType *a = array(g, x);
    int64_t axes[16];
    bool one[16];
    for (uint32_t i = 0; i < a->rank; i++)
        one[i] = a->dims[i] == 1;
    uint32_t n = p == P_squeeze ? some_axes(g, a->rank, one, axes) : some_axes(g, 3, NULL, axes);
    put_ints(g, &s, K_dimensions, axes, n);
    emit(g, p, &x, 1, s, 1);
}
static void make_transpose(Gen *g, Prim p, unsigned kinds) {
    Set s = {0};
    Val x = pick(g, kinds, 2);
    int64_t axes[16];
    uint32_t n = array(g, x)->rank;
    for (uint32_t i = 0; i < n; i++)
        axes[i] = i;
    permute(g, axes, n);
    put_ints(g, &s, K_permutation, axes, n);
    emit(g, p, &x, 1, s, 1);
}
static void make_rev(Gen *g, Prim p, unsigned kinds) {
    Set s = {0};
    Val x = pick(g, kinds, 1);
    int64_t axes[16];
    put_ints(g, &s, K_dimensions, axes, some_axes(g, array(g, x)->rank, NULL, axes));
    emit(g, p, &x, 1, s, 1);
}
static void make_slice(Gen *g, Prim p, unsigned kinds) {
    Set s = {0};
    Val x = pick(g, kinds, 1);
    const ArrayType *a = array(g, x);
    int64_t start[16], limit[16], stride[16];
    for (uint32_t i = 0; i < a->rank; i++) {
        uint32_t n = dim_is_const(a->dims[i]) ? (uint32_t)a->dims[i] : 0;
        start[i] = draw(g, n + 1);
        limit[i] = n ? start[i] + draw(g, n - (uint32_t)start[i] + 1) : a->dims[i];
        stride[i] = 1 + draw(g, 3);
    }
    put_ints(g, &s, K_start_indices, start, a->rank);
    put_ints(g, &s, K_limit_indices, limit, a->rank);
    put_ints(g, &s, K_strides, stride, a->rank);
    if (coin(g)) s.at[2].value = (Value){.kind = V_NONE};
    emit(g, p, &x, 1, s, 1);
}
static void make_pad(Gen *g, Prim p, unsigned kinds) {
    Set s = {0};
    Val x = pick(g, kinds, 1), in[2] = {x, scalar(g, array(g, x)->dtype)};
    int64_t config[48];
    uint32_t n = 3 * array(g, x)->rank;
    for (uint32_t i = 0; i < n; i++)
        config[i] = i % 3 == 2 ? draw(g, 3) : (int64_t)draw(g, 5) - 2;
    put_ints(g, &s, K_padding_config, config, n);
    emit(g, p, in, 2, s, 1);
}
static void make_concatenate(Gen *g, Prim p, unsigned kinds) {
    Set s = {0};
    Val in[4] = {pick(g, kinds, p == P_stack ? 0 : 1)};
    const ArrayType *a = array(g, in[0]);
    uint32_t n = 1 + draw(g, 4), axis = draw(g, a->rank + (p == P_stack));
    for (uint32_t i = 1; i < n; i++) {
        Dim dims[8];
        for (uint32_t k = 0; k < a->rank; k++)
            dims[k] = k == axis && p != P_stack && coin(g) ? draw_dim(g) : a->dims[k];
        in[i] = need(g, type_of(g->cx->types, a->dtype, a->rank, dims));
    }
    put_int(g, &s, p == P_stack ? K_axis : K_dimension, axis);
    emit(g, p, in, n, s, 1);
}
static void make_split(Gen *g, Prim p, unsigned kinds) {
    Set s = {0};
    Val x = pick(g, kinds, 1);
    const ArrayType *a = array(g, x);
    uint32_t axis = draw(g, a->rank);
    Dim extent = a->dims[axis];
    if (!dim_is_const(extent)) return;
    int64_t first = draw(g, (uint32_t)extent + 1), sizes[2] = {first, extent - first};
    if (p == P_split) put_ints(g, &s, K_sizes, sizes, 2);
    put_int(g, &s, K_axis, axis);
    if (p == P_split || extent <= 8) emit(g, p, &x, 1, s, p == P_split ? 2 : (uint32_t)extent);
}
static void make_tile(Gen *g, Prim p, unsigned kinds) {
    Set s = {0};
    Val x = pick(g, kinds, 1);
    int64_t reps[8];
    for (uint32_t i = 0; i < array(g, x)->rank; i++)
        reps[i] = draw(g, 4);
    put_ints(g, &s, K_reps, reps, array(g, x)->rank);
    emit(g, p, &x, 1, s, 1);
}
/* dynamic_slice and dynamic_update_slice */
static void make_dynamic(Gen *g, Prim p, unsigned kinds) {
    Set s = {0};
    Val in[16] = {pick(g, kinds, 0)};
    const ArrayType *a = array(g, in[0]);
    Dim sizes[8];
    uint32_t n = 1;
    for (uint32_t i = 0; i < a->rank; i++)
        sizes[i] =
            dim_is_const(a->dims[i]) && coin(g) ? draw(g, (uint32_t)a->dims[i] + 1) : a->dims[i];
    if (p == P_dynamic_slice)
        put_ints(g, &s, K_slice_sizes, sizes, a->rank);
    else
        in[n++] = need(g, type_of(g->cx->types, a->dtype, a->rank, sizes));
    Dtype d = draw_dtype(g, INT);
    for (uint32_t i = 0; i < a->rank; i++)
        in[n++] = scalar(g, d);
    emit(g, p, in, n, s, 1);
}
static void make_dim_as_value(Gen *g, Prim p, unsigned kinds) {
    Set s = {0};
    put_int(g, &s, K_dim, draw_dim(g));
    if (!dim_is_const(s.at[0].value.dim) || coin(g)) emit(g, p, NULL, 0, s, 1);
}

/* ---- makers: reductions and contractions */

static void make_reduce(Gen *g, Prim p, unsigned kinds) {
    Set s = {0};
    Val x = pick(g, kinds, 0);
    int64_t axes[16];
    put_ints(g, &s, K_axes, axes, some_axes(g, array(g, x)->rank, NULL, axes));
    emit(g, p, &x, 1, s, 1);
}
static void make_arg(Gen *g, Prim p, unsigned kinds) {
    Set s = {0};
    Val x = pick(g, kinds, 1);
    int64_t axis = draw(g, array(g, x)->rank);
    put_ints(g, &s, K_axes, &axis, 1);
    put_dtype(g, &s, K_index_dtype, draw(g, 3) ? DT_i32 : draw_dtype(g, INT));
    emit(g, p, &x, 1, s, 1);
}
static void make_cumulative(Gen *g, Prim p, unsigned kinds) {
    Set s = {0};
    Val x = pick(g, kinds, 1);
    put_int(g, &s, K_axis, draw(g, array(g, x)->rank));
    put_int(g, &s, K_reverse, draw(g, 2));
    emit(g, p, &x, 1, s, 1);
}
/* Axis i of the first operand is batched, contracted or free; the second has the former two, in an
 * order of its own. */
static void make_dot(Gen *g, Prim p, unsigned kinds) {
    Set s = {0};
    Val in[2] = {pick(g, kinds, draw(g, 3))};
    const ArrayType *a = array(g, in[0]);
    int64_t lists[4][16], order[16];
    uint32_t n[4] = {0}, rank = 0;
    Dim dims[16];
    for (uint32_t i = 0; i < a->rank; i++) {
        uint32_t role = draw(g, 3); /* 0 contracted, 1 batched, 2 free */
        if (role < 2) lists[2 * role][n[2 * role]++] = i, order[rank++] = i;
    }
    uint32_t shared = rank, fresh = draw(g, 3);
    for (uint32_t i = 0; i < fresh; i++)
        order[rank++] = -1;
    permute(g, order, rank);
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = order[i] < 0 ? draw_dim(g) : a->dims[order[i]];
    for (uint32_t role = 0; role < 4; role += 2)
        for (uint32_t i = 0; i < n[role]; i++)
            for (uint32_t k = 0; k < rank; k++)
                if (order[k] == lists[role][i]) lists[role + 1][n[role + 1]++] = k;
    if (shared > 6) return;
    in[1] = need(g, type_of(g->cx->types, a->dtype, rank, dims));
    Value v = {.kind = V_LIST, .open = '(', .list = {arena_new(g->cx->arena, Value, 4), 4}};
    for (uint32_t i = 0; i < 4; i++) {
        int64_t *at = arena_new(g->cx->arena, int64_t, n[i] + 1);
        memcpy(at, lists[i], n[i] * sizeof *at);
        v.list.at[i] = (Value){.kind = V_INTS, .open = '[', .ints = {at, n[i]}};
    }
    put(g, &s, K_dimension_numbers, v);
    if (coin(g))
        put_dtype(g, &s, K_preferred_element_type, draw(g, 3) ? a->dtype : draw_dtype(g, kinds));
    emit(g, p, in, 2, s, 1);
}

/* ---- makers: control flow. A nested program takes the operands' types and gives what is asked */

enum { MOST_OPERANDS = 4 };
static uint32_t operands(Gen *g, Val *in, Type *types, uint32_t least) {
    uint32_t n = least + draw(g, MOST_OPERANDS - least);
    for (uint32_t i = 0; i < n; i++)
        in[i] = pick(g, ANY, 0), types[i] = val_type(g->cx, in[i]);
    return n;
}

static void make_call(Gen *g, Prim p, unsigned kinds) {
    Set s = {0};
    Val in[8];
    Type types[8];
    uint32_t n = operands(g, in, types, 0), results = 1 + draw(g, 3);
    Jaxpr *j = nested(g, types, n, NULL, results);
    put(g, &s, K_name, (Value){.kind = V_WORD, .s = S("f")});
    put_jaxpr(g, &s, p == P_custom_jvp_call || p == P_custom_vjp_call ? K_call_jaxpr : K_jaxpr, j);
    if (p == P_custom_jvp_call || p == P_custom_vjp_call) put_int(g, &s, K_num_consts, 0);
    emit(g, p, in, n, s, j->out.n);
}
static void make_cond(Gen *g, Prim p, unsigned kinds) {
    Set s = {0};
    Val in[9];
    Type types[8], out[8];
    Dtype d = coin(g) ? DT_i32 : DT_bool;
    uint32_t branches = d == DT_bool ? 2 : 1 + draw(g, 3), results = draw(g, 4);
    in[0] = scalar(g, d);
    uint32_t n = operands(g, in + 1, types, 0);
    Value v = {.kind = V_JAXPRS, .open = '('};
    v.jaxprs.at = arena_new(g->cx->arena, Jaxpr *, branches);
    v.jaxprs.n = branches;
    v.jaxprs.at[0] = nested(g, types, n, NULL, results);
    for (uint32_t i = 0; i < results; i++)
        out[i] = val_type(g->cx, v.jaxprs.at[0]->out.at[i]);
    for (uint32_t i = 1; i < branches; i++)
        v.jaxprs.at[i] = nested(g, types, n, out, results);
    put(g, &s, K_branches, v);
    emit(g, p, in, n + 1, s, results);
}
/* The first carried value counts to a small number. */
static void make_while(Gen *g, Prim p, unsigned kinds) {
    Set s = {0};
    Val in[24];
    Type types[24], cond_in[16], counter = type_of(g->cx->types, DT_i32, 0, NULL);
    uint32_t nc = operands(g, in, types, 0), nb = operands(g, in + nc, types + nc, 0);
    Val *carry = in + nc + nb;
    Type *carried = types + nc + nb;
    uint32_t n = operands(g, carry, carried, 1);
    carry[0] = literal(g, DT_i32), carried[0] = counter;
    memcpy(cond_in, types, nc * sizeof *types);
    memcpy(cond_in + nc, carried, n * sizeof *types);
    Type is_true = type_of(g->cx->types, DT_bool, 0, NULL);
    Jaxpr *test = nested(g, cond_in, nc + n, &is_true, 1);
    Jaxpr *body = nested(g, types + nc, nb + n, carried, n);
    Scope into = {.eqns = test->eqns}, *outer = g->s;
    Lit most = {.kind = LIT_INT, .i = 1 + draw(g, 4)}, one = {.kind = LIT_INT, .i = 1};
    g->s = &into;
    Val lt[2] = {test->in.at[nc], val_literal(g->cx, counter, most, (Span){0})};
    Val goes_on = emit(g, P_lt, lt, 2, (Set){0}, 1);
    test->out.at[0] = emit(g, P_and, (Val[]){goes_on, test->out.at[0]}, 2, (Set){0}, 1);
    if (!g->runs || coin(g)) test->out.at[0] = goes_on;
    test->eqns = into.eqns;
    into = (Scope){.eqns = body->eqns};
    Val next[2] = {body->in.at[nb], val_literal(g->cx, counter, one, (Span){0})};
    body->out.at[0] = emit(g, P_add, next, 2, (Set){0}, 1);
    body->eqns = into.eqns;
    g->s = outer;
    put_jaxpr(g, &s, K_cond_jaxpr, test);
    put_jaxpr(g, &s, K_body_jaxpr, body);
    put_int(g, &s, K_cond_nconsts, nc);
    put_int(g, &s, K_body_nconsts, nb);
    emit(g, p, in, nc + nb + n, s, n);
}
static void make_scan(Gen *g, Prim p, unsigned kinds) {
    Set s = {0};
    Val in[24];
    Type types[24], out[8];
    uint32_t consts = operands(g, in, types, 0), n = consts, ncarry, nys = draw(g, 3);
    n += ncarry = operands(g, in + n, types + n, 0);
    uint32_t nxs = draw(g, 3);
    Dim length = nxs ? array(g, in[n] = pick(g, ANY, 1))->dims[0] : (Dim)draw(g, 5);
    for (uint32_t i = 0; i < nxs; i++, n++) {
        const ArrayType *a = array(g, i ? pick(g, ANY, 1) : in[n]);
        Dim dims[16] = {length};
        if (a->rank > 1) memcpy(dims + 1, a->dims + 1, (a->rank - 1) * sizeof *dims);
        Type t = type_of(g->cx->types, a->dtype, a->rank, dims);
        if (!is_small(g, t)) t = type_of(g->cx->types, a->dtype, 1, dims);
        if (i) in[n] = need(g, t);
        a = array(g, in[n]);
        types[n] = type_of(g->cx->types, a->dtype, a->rank - 1, a->dims + 1);
    }
    for (uint32_t i = 0; i < ncarry + nys; i++)
        out[i] = i < ncarry ? types[consts + i] : draw_type(g, ANY);
    Jaxpr *j = nested(g, types, n, out, ncarry + nys);
    put_jaxpr(g, &s, K_jaxpr, j);
    put_int(g, &s, K_length, length);
    put_int(g, &s, K_num_carry, ncarry);
    put_int(g, &s, K_num_consts, consts);
    put_int(g, &s, K_reverse, draw(g, 2));
    put_int(g, &s, K_unroll, 1);
    emit(g, p, in, n, s, ncarry + nys);
}

/* ---- rows and programs */

static const struct {
    const char *rule;
    Make *unary, *binary, *other; /* by arity */
    unsigned kinds;
} makers[] = {
    {"num", make_unary, make_binary, NULL, NUM},
    {"mul", NULL, make_binary, NULL, NUM},
    {"real", NULL, make_binary, NULL, REAL},
    {"ordered", NULL, make_binary, NULL, NUM | BOOL},
    {"integer", make_unary, make_binary, NULL, INT},
    {"pow", NULL, make_binary, NULL, FLOAT | COMPLEX},
    {"inexact", make_unary, make_binary, NULL, FLOAT | COMPLEX},
    {"float", make_unary, make_binary, NULL, FLOAT},
    {"bits", make_unary, make_binary, NULL, INT | BOOL},
    {"abs", make_unary, NULL, NULL, SINT | FLOAT | COMPLEX},
    {"equality", NULL, make_binary, NULL, ANY},
    {"comparison", NULL, make_binary, NULL, REAL | BOOL},
    {"is_finite", make_unary, NULL, NULL, FLOAT},
    {"same", make_unary, NULL, NULL, ANY},
    {"integer_pow", NULL, NULL, make_integer_pow, NUM},
    {"round", NULL, NULL, make_round, FLOAT},
    {"select_n", NULL, NULL, make_select_n, ANY},
    {"clamp", NULL, NULL, make_ternary, REAL | BOOL},
    {"fma", NULL, NULL, make_ternary, FLOAT},
    {"reduce_precision", NULL, NULL, make_reduce_precision, FLOAT},
    {"convert_element_type", NULL, NULL, make_convert, REAL | BOOL},
    {"bitcast_convert_type", NULL, NULL, make_convert, REAL},
    {"optimization_barrier", NULL, NULL, make_barrier, ANY},
    {"iota", NULL, NULL, make_iota, NUM},
    {"empty", NULL, NULL, make_iota, ANY},
    {"broadcast_in_dim", NULL, NULL, make_broadcast, ANY},
    {"reshape", NULL, NULL, make_reshape, ANY},
    {"squeeze", NULL, NULL, make_squeeze, ANY},
    {"expand_dims", NULL, NULL, make_squeeze, ANY},
    {"transpose", NULL, NULL, make_transpose, ANY},
    {"rev", NULL, NULL, make_rev, ANY},
    {"slice", NULL, NULL, make_slice, ANY},
    {"pad", NULL, NULL, make_pad, ANY},
    {"concatenate", NULL, NULL, make_concatenate, ANY},
    {"stack", NULL, NULL, make_concatenate, ANY},
    {"split", NULL, NULL, make_split, ANY},
    {"unstack", NULL, NULL, make_split, ANY},
    {"tile", NULL, NULL, make_tile, ANY},
    {"dynamic_slice", NULL, NULL, make_dynamic, ANY},
    {"dynamic_update_slice", NULL, NULL, make_dynamic, ANY},
    {"dim_as_value", NULL, NULL, make_dim_as_value, ANY},
    {"reduce_num", NULL, NULL, make_reduce, NUM},
    {"reduce_ordered", NULL, NULL, make_reduce, REAL | BOOL},
    {"reduce_bits", NULL, NULL, make_reduce, INT | BOOL},
    {"arg", NULL, NULL, make_arg, REAL | BOOL},
    {"cumulative", NULL, NULL, make_cumulative, NUM},
    {"cumulative_float", NULL, NULL, make_cumulative, FLOAT},
    {"dot_general", NULL, NULL, make_dot, NUM},
    {"cond", NULL, NULL, make_cond, ANY},
    {"while", NULL, NULL, make_while, ANY},
    {"scan", NULL, NULL, make_scan, ANY},
    {"call", NULL, NULL, make_call, ANY},
};
enum { NMAKERS = sizeof makers / sizeof *makers };

/* The columns of prims.def that say which maker a row has, and whether it compiles. */
static const struct {
    const char *arity, *rule, *lowering;
} rows[NPRIMS] = {
#define PRIM(id, text, arity, type, lowering) [P_##id] = {#arity, #type, #lowering},
#include "compiler/prims.def"
};
static bool row_compiles(Prim p) { return p && strcmp(rows[p].lowering, "NONE") != 0; }
static Make *maker(Prim p, unsigned *kinds) {
    for (unsigned i = 0; p && i < NMAKERS; i++) {
        if (strcmp(makers[i].rule, rows[p].rule) != 0) continue;
        *kinds = makers[i].kinds;
        return !strcmp(rows[p].arity, "unary")    ? makers[i].unary
               : !strcmp(rows[p].arity, "binary") ? makers[i].binary
                                                  : makers[i].other;
    }
    return NULL;
}
void rows_missing(FILE *f) {
    unsigned kinds;
    for (Prim p = 1; p < NPRIMS; p++)
        if (row_compiles(p) && !maker(p, &kinds)) fprintf(f, "%s\n", prim_name[p]);
}

static void equations(Gen *g, uint32_t n) {
    static const Prim nesting[] = {P_cond, P_while, P_scan, P_jit};
    for (uint32_t i = 0; i < n; i++) {
        Prim p = draw(g, 10) == 1 ? nesting[draw(g, 4)] : (Prim)(1 + draw(g, NPRIMS - 1));
        unsigned kinds = 0;
        Make *make_one = maker(p, &kinds);
        if (!make_one || p == P_pjit || (g->runs && !row_compiles(p)))
            continue; /* pjit reads as jit */
        if (g->depth >= MOST_DEPTH && make_one == maker(P_cond, &(unsigned){0})) continue;
        make_one(g, p, kinds);
    }
}

static Jaxpr *nested(Gen *g, const Type *in, uint32_t n, const Type *out, uint32_t results) {
    Ctx *cx = g->cx;
    Jaxpr *j = arena_new(cx->arena, Jaxpr, 1);
    Scope s = {0}, *outer = g->s;
    j->in = (Vals){arena_new(cx->arena, Val, n + 1), n};
    for (uint32_t i = 0; i < n; i++) {
        j->in.at[i] = val_new(cx, in[i], (Span){0});
        push(cx->arena, &s.pool, j->in.at[i]);
    }
    g->s = &s;
    bool deep = g->depth++ >= MOST_DEPTH;
    equations(g, deep ? 2 : (g->depth > 1 ? 6 : 30) + draw(g, 8));
    j->out = (Vals){arena_new(cx->arena, Val, results + 1), results};
    for (uint32_t i = 0; i < results; i++)
        j->out.at[i] = out ? need(g, out[i]) : pick(g, ANY, 0);
    g->depth--;
    g->s = outer;
    j->eqns = s.eqns;
    return j;
}

Jaxpr *program_draw(Ctx *cx, Dice *dice, bool runs) {
    Gen g = {.cx = cx, .dice = dice, .runs = runs};
    Type in[6];
    diags_source(cx->diags, "drawn", S(" "));
    uint32_t n = 1 + draw(&g, 6);
    for (uint32_t i = 0; i < n; i++)
        in[i] = draw_type(&g, runs ? REAL | BOOL : ANY);
    return nested(&g, in, n, NULL, 1 + draw(&g, 5));
}
