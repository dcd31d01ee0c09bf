#include "build.h"
#include <math.h>
#include "../typecheck/check.h"

/* ---- parameters */
Param p_int(ParamKey k, int64_t i) { return (Param){.key = k, .value = {.kind = V_INT, .i = i}}; }
Param p_bool(ParamKey k, bool i) { return (Param){.key = k, .value = {.kind = V_BOOL, .i = i}}; }
Param p_dtype(ParamKey k, Dtype d) { return (Param){.key = k, .value = {.kind = V_DTYPE, .i = d}}; }
Param p_impl(Dtype key) {
    static const char *const impl[] = {[DT_key_fry] = "fry", [DT_key_rbg] = "rbg", [DT_key_urbg] = "urbg"};
    return p_word(K_impl, impl[key]);
}
Param p_none(ParamKey k) { return (Param){.key = k, .value = {.kind = V_NONE}}; }
Param p_word(ParamKey k, const char *s) { return (Param){.key = k, .value = {.kind = V_WORD, .s = str(s)}}; }
Param p_jaxpr(ParamKey k, Jaxpr *j) { return (Param){.key = k, .value = {.kind = V_JAXPR, .jaxpr = j}}; }
Param p_text(Builder *b, ParamKey k, Str s) {
    return (Param){.key = k, .value = {.kind = V_STR, .s = str_quoted(b->cx->arena, s)}};
}
Param p_ints(Builder *b, ParamKey k, uint32_t n, const int64_t *at) {
    int64_t *own = arena_copy(b->cx->arena, at, n * sizeof *at);
    return (Param){.key = k, .value = {.kind = V_INTS, .open = '(', .ints = {own, n}}};
}
Param p_dims(Builder *b, ParamKey k, uint32_t n, const Dim *at) {
    Dim *own = arena_copy(b->cx->arena, at, n * sizeof *at);
    return (Param){.key = k, .value = {.kind = V_DIMS, .open = '(', .dims = {own, n}}};
}
Param p_record(Builder *b, ParamKey k, const char *name, uint32_t n, const char *const *fields, const Ints *at) {
    Arena *a = b->cx->arena;
    Value *list = arena_new(a, Value, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        Value *ints = arena_new(a, Value, at[i].n + 1), *one = arena_new(a, Value, 1);
        for (uint32_t e = 0; e < at[i].n; e++) ints[e] = (Value){.kind = V_INT, .i = at[i].at[e]};
        *one = (Value){.kind = V_LIST, .open = '(', .list = {ints, at[i].n}};
        list[i] = (Value){.kind = V_PAIR, .s = str(fields[i]), .list = {one, 1}};
    }
    return (Param){.key = k, .value = {.kind = V_LIST, .open = '(', .s = str(name), .list = {list, n}}};
}

/* ---- one equation */
static Eqn equation(Builder *b, Prim prim, uint32_t n, const Val *in, uint32_t nparams, const Param *params) {
    Arena *a = b->cx->arena;
    Eqn e = {.prim = prim};
    e.in = (Vals){arena_new(a, Val, n + 1), n};
    if (n) memcpy(e.in.at, in, n * sizeof *in);
    e.params = (Params){arena_new(a, Param, nparams + 1), nparams};
    if (nparams) memcpy(e.params.at, params, nparams * sizeof *params);
    return e;
}
bool b_any_failed(Builder *b, uint32_t n, const Val *in) {
    for (uint32_t i = 0; i < n; i++) b->failed = b_failed(b, in[i]);
    return b->failed;
}
Vals b_failures(Builder *b, uint32_t n) {
    Vals out = {arena_new(b->cx->arena, Val, n + 1), n};
    for (uint32_t i = 0; i < n; i++) out.at[i] = VAL_FAILED;
    return out;
}
Vals b_eqn(Builder *b, const Eqn *like, uint32_t nout, const Type *types) {
    Ctx *cx = b->cx;
    Eqn e = *like;
    if (b_any_failed(b, e.in.n, e.in.at)) return b_failures(b, nout);
    e.span = b->span, e.whole = b->whole.n ? b->whole : b->span, e.in_at = NULL;
    Type *from = arena_new(cx->arena, Type, e.in.n + 1), *to = arena_new(cx->arena, Type, nout + 1);
    for (uint32_t i = 0; i < e.in.n; i++) from[i] = val_type(cx, e.in.at[i]);
    for (uint32_t i = 0; i < nout; i++) to[i] = types ? types[i] : 0;
    e.out = (Vals){arena_new(cx->arena, Val, nout + 1), nout};
    for (uint32_t i = 0; i < nout; i++) e.out.at[i] = val_new(cx, to[i], b->span);
    b->failed = !infer(cx, &e, from, to);
    for (uint32_t i = 0; i < nout && !b->failed; i++) {
        b->failed = !rank_compiles(cx, to[i], b->span);
        val_info(cx, e.out.at[i])->type = to[i];
    }
    if (b->failed) return b_failures(b, nout);
    push(cx->arena, &b->eqns, e);
    return e.out;
}
Vals build_many(Builder *b, Prim prim, uint32_t n, const Val *in, uint32_t nparams, const Param *params, uint32_t nout,
                const Type *types) {
    Eqn e = equation(b, prim, n, in, nparams, params);
    return b_eqn(b, &e, nout, types);
}
Val build(Builder *b, Prim prim, uint32_t n, const Val *in, uint32_t nparams, const Param *params) {
    return build_many(b, prim, n, in, nparams, params, 1, NULL).at[0];
}

/* ---- elementwise */
Val b1(Builder *b, Prim p, Val x) { return build(b, p, 1, &x, 0, NULL); }
Val b2(Builder *b, Prim p, Val x, Val y) { return build(b, p, 2, (Val[]){x, y}, 0, NULL); }
Val b3(Builder *b, Prim p, Val x, Val y, Val z) { return build(b, p, 3, (Val[]){x, y, z}, 0, NULL); }
Val b_integer_pow(Builder *b, Val x, int64_t y) { return build(b, P_integer_pow, 1, &x, 1, (Param[]){p_int(K_y, y)}); }
Val b_round(Builder *b, Val x, bool to_even) {
    Param how = p_word(K_rounding_method, to_even ? "RoundingMethod.TO_NEAREST_EVEN" : "RoundingMethod.AWAY_FROM_ZERO");
    return build(b, P_round, 1, &x, 1, &how);
}
Val b_reduce_precision(Builder *b, Val x, int64_t exponent_bits, int64_t mantissa_bits) {
    Param p[2] = {p_int(K_exponent_bits, exponent_bits), p_int(K_mantissa_bits, mantissa_bits)};
    return build(b, P_reduce_precision, 1, &x, 2, p);
}
Val b_conj(Builder *b, Val x) {
    if (b_failed(b, x)) return VAL_FAILED;
    return build(b, P_conj, 1, &x, 1, (Param[]){p_word(K_input_dtype, dtype_info[b_type(b, x)->dtype].long_name)});
}
Val b_fma(Builder *b, Val x, Val y, Val z) { return b3(b, P_fma, x, y, z); }
Val b_clamp(Builder *b, Val least, Val x, Val most) { return b3(b, P_clamp, least, x, most); }
Val b_select_n(Builder *b, Val which, uint32_t n, const Val *cases) {
    Val *in = arena_new(b->cx->arena, Val, n + 1);
    in[0] = which;
    if (n) memcpy(in + 1, cases, n * sizeof *cases);
    return build(b, P_select_n, 1 + n, in, 0, NULL);
}
Val b_select(Builder *b, Val condition, Val no, Val yes) { return b3(b, P_select_n, condition, no, yes); }
Val b_convert(Builder *b, Val v, Dtype d) {
    if (b_failed(b, v)) return VAL_FAILED;
    if (b_type(b, v)->dtype == d) return v;
    return build(b, P_convert_element_type, 1, &v, 2, (Param[]){p_dtype(K_new_dtype, d), p_bool(K_weak_type, false)});
}
Val b_bitcast(Builder *b, Val v, Dtype d) {
    if (b_failed(b, v)) return VAL_FAILED;
    if (b_type(b, v)->dtype == d) return v;
    return build(b, P_bitcast_convert_type, 1, &v, 1, (Param[]){p_dtype(K_new_dtype, d)});
}

/* ---- scalars and arrays of one value */
static Val literal(Builder *b, Dtype d, Lit lit) {
    return b->failed ? VAL_FAILED : val_literal(b->cx, type_of(b->cx->types, d, 0, NULL), lit, b->span);
}
Val b_int(Builder *b, Dtype d, int64_t i) {
    return literal(b, d, (Lit){.kind = LIT_INT, .negative = i < 0, .i = i < 0 ? -(uint64_t)i : (uint64_t)i});
}
Val b_float(Builder *b, Dtype d, double f) { return literal(b, d, (Lit){.kind = LIT_FLOAT, .re = f}); }
Val b_number(Builder *b, Dtype d, double f) {
    switch (dtype_info[d].kind) {
    case DK_BOOL: return literal(b, d, (Lit){.kind = LIT_BOOL, .i = f != 0});
    case DK_SINT:
    case DK_UINT: return b_int(b, d, (int64_t)f);
    case DK_COMPLEX: return literal(b, d, (Lit){.kind = LIT_COMPLEX, .re = f});
    default: return b_float(b, d, f);
    }
}
Val b_dim(Builder *b, Dtype d, Dim n) {
    if (dim_is_const(n)) return b_int(b, d, n);
    const DimExpr *x = dim_at(b->cx->types, n);
    if (x->kind == DIM_BOUND) return b_convert(b, x->val, d);
    Param p = {.key = K_dim, .value = {.kind = V_DIM, .dim = n}};
    Type wide = type_of(b->cx->types, DT_i64, 0, NULL);
    return b_convert(b, build_many(b, P_dim_as_value, 0, NULL, 1, &p, 1, &wide).at[0], d);
}
Val b_full(Builder *b, Val scalar, uint32_t rank, const Dim *dims) {
    return rank ? b_broadcast(b, scalar, rank, dims, NULL) : scalar;
}
Val b_full_like(Builder *b, Val like, double value) {
    if (b_failed(b, like)) return VAL_FAILED;
    const ArrayType *t = b_type(b, like);
    return b_full(b, b_number(b, t->dtype, value), t->rank, t->dims);
}
Val b_zeros(Builder *b, Type type) {
    const ArrayType *t = type_at(b_types(b), type);
    Dim dims[MAX_RANK + 1];
    if (dtype_info[t->dtype].kind != DK_KEY) return b_full(b, b_number(b, t->dtype, 0), t->rank, t->dims);
    if (t->rank) memcpy(dims, t->dims, t->rank * sizeof *dims);
    dims[t->rank] = dtype_info[t->dtype].bits / 32;
    Val words = b_full(b, b_int(b, DT_u32, 0), t->rank + 1, dims);
    Param impl = p_impl(t->dtype);
    return build(b, P_random_wrap, 1, &words, 1, &impl);
}
Tables *b_tables(Builder *b) {
    if (!b->tables) b->tables = arena_new(b->cx->arena, Tables, 1);
    return b->tables;
}
Val b_const(Builder *b, Type type, const void *data) {
    Ctx *cx = b->cx;
    if (b->failed) return VAL_FAILED;
    Tables *tables = b_tables(b);
    const ArrayType *t = type_at(cx->types, type);
    size_t bytes = dtype_info[t->dtype].bits / 8, first = 64; /* the type, then the data */
    for (uint32_t i = 0; i < t->rank; i++) {
        assert(dim_is_const(t->dims[i]));
        bytes *= (size_t)t->dims[i];
    }
    char *key = arena_alloc(cx->arena, 1, first, first + bytes);
    memset(key, 0, first);
    memcpy(key, &type, sizeof type);
    if (bytes) memcpy(key + first, data, bytes);
    bool fresh;
    tables->seen.arena = cx->arena;
    uint32_t k = intern(&tables->seen, key, first + bytes, &fresh);
    if (fresh) {
        Val v = val_new(cx, type, b->span);
        val_info(cx, v)->data = key + first;
        push(cx->arena, &tables->vals, v);
    }
    add_consts(cx->arena, &b->consts, (Vals){&tables->vals.at[k], 1});
    return tables->vals.at[k];
}
bool b_empty(const Builder *b, Val v) {
    const ArrayType *t = b_type(b, v);
    for (uint32_t i = 0; i < t->rank; i++)
        if (t->dims[i] == 0) return true;
    return false;
}

/* ---- shapes */
Val b_broadcast(Builder *b, Val v, uint32_t rank, const Dim *dims, const int64_t *axes) {
    if (b_failed(b, v)) return VAL_FAILED;
    uint32_t n = b_type(b, v)->rank;
    return build(b, P_broadcast_in_dim, 1, &v, 2,
                 (Param[]){p_ints(b, K_broadcast_dimensions, n, axes), p_dims(b, K_shape, rank, dims)});
}
static bool same_dims(const ArrayType *t, uint32_t rank, const Dim *dims) {
    return t->rank == rank && (!rank || memcmp(t->dims, dims, rank * sizeof *dims) == 0);
}
Val b_reshape(Builder *b, Val v, uint32_t rank, const Dim *dims) {
    if (b_failed(b, v)) return VAL_FAILED;
    if (same_dims(b_type(b, v), rank, dims)) return v;
    return build(b, P_reshape, 1, &v, 2, (Param[]){p_none(K_dimensions), p_dims(b, K_new_sizes, rank, dims)});
}
Val b_as_declared(Builder *b, Val v, Val like) {
    Types *ts = b_types(b);
    if (!v || b_failed(b, v)) return v;
    const ArrayType *t = val_array(b->cx, like), *own = val_array(b->cx, v);
    bool other = type_plain(ts, val_type(b->cx, v)) != type_plain(ts, val_type(b->cx, like));
    return other && own->dtype == t->dtype && own->rank == t->rank ? b_reshape(b, v, t->rank, t->dims) : v;
}
Val b_transpose(Builder *b, Val v, const int64_t *permutation) {
    if (b_failed(b, v)) return VAL_FAILED;
    uint32_t n = b_type(b, v)->rank, fixed = 0;
    while (fixed < n && permutation[fixed] == fixed) fixed++;
    if (fixed == n) return v;
    return build(b, P_transpose, 1, &v, 1, (Param[]){p_ints(b, K_permutation, n, permutation)});
}
Val b_move_axis(Builder *b, Val v, uint32_t from, uint32_t to) {
    int64_t order[MAX_RANK + 1] = {0};
    if (b_failed(b, v)) return VAL_FAILED;
    uint32_t rank = b_type(b, v)->rank, k = 0;
    assert(from < rank && to < rank);
    for (uint32_t d = 0; d < rank; d++) {
        if (d == to) order[d] = from;
        if (d == to) continue;
        k += k == from;
        order[d] = k++;
    }
    return b_transpose(b, v, order);
}
Val b_place(Builder *b, Val v, uint32_t rank, const Dim *dims, const int64_t *axes) {
    int64_t order[MAX_RANK] = {0}, to[MAX_RANK];
    if (b_failed(b, v)) return VAL_FAILED;
    uint32_t n = b_type(b, v)->rank, m = 0;
    for (uint32_t a = 0; a < rank; a++)
        for (uint32_t i = 0; i < n; i++)
            if (axes[i] == a) to[m] = a, order[m++] = i;
    v = b_transpose(b, v, order);
    return n == rank ? v : b_broadcast(b, v, rank, dims, to);
}
Val b_slice(Builder *b, Val v, const Dim *start, const Dim *limit, const int64_t *strides) {
    if (b_failed(b, v)) return VAL_FAILED;
    uint32_t n = b_type(b, v)->rank;
    Param p[3] = {p_dims(b, K_limit_indices, n, limit), p_dims(b, K_start_indices, n, start), p_none(K_strides)};
    if (strides) p[2] = p_ints(b, K_strides, n, strides);
    return build(b, P_slice, 1, &v, 3, p);
}
Val b_slice_axis(Builder *b, Val v, int64_t axis, Dim lo, Dim hi) {
    if (b_failed(b, v)) return VAL_FAILED;
    const ArrayType *t = b_type(b, v);
    if (lo == 0 && hi == t->dims[axis]) return v;
    Dim start[MAX_RANK] = {0}, limit[MAX_RANK];
    memcpy(limit, t->dims, t->rank * sizeof *limit);
    start[axis] = lo, limit[axis] = hi;
    return b_slice(b, v, start, limit, NULL);
}
Val b_pad(Builder *b, Val v, Val scalar, const Dim *config) {
    if (b_failed(b, v)) return VAL_FAILED;
    uint32_t n = b_type(b, v)->rank, none = 0;
    while (none < 3 * n && config[none] == 0) none++;
    if (none == 3 * n) return v;
    Val in[2] = {v, scalar};
    return build(b, P_pad, 2, in, 1, (Param[]){p_dims(b, K_padding_config, 3 * n, config)});
}
Val b_concatenate(Builder *b, uint32_t n, const Val *in, int64_t axis) {
    return n == 1 ? in[0] : build(b, P_concatenate, n, in, 1, (Param[]){p_int(K_dimension, axis)});
}
Val b_iota(Builder *b, Dtype d, uint32_t rank, const Dim *dims, int64_t axis) {
    Param p[3] = {p_int(K_dimension, axis), p_dtype(K_dtype, d), p_dims(b, K_shape, rank, dims)};
    return build(b, P_iota, 0, NULL, 3, p);
}
Val b_rev(Builder *b, Val v, uint32_t n, const int64_t *axes) {
    if (b_failed(b, v)) return VAL_FAILED;
    return n ? build(b, P_rev, 1, &v, 1, (Param[]){p_ints(b, K_dimensions, n, axes)}) : v;
}
Val b_expand_dims(Builder *b, Val v, uint32_t n, const int64_t *axes) {
    if (b_failed(b, v)) return VAL_FAILED;
    return n ? build(b, P_expand_dims, 1, &v, 1, (Param[]){p_ints(b, K_dimensions, n, axes)}) : v;
}
Val b_squeeze(Builder *b, Val v, uint32_t n, const int64_t *axes) {
    if (b_failed(b, v)) return VAL_FAILED;
    return n ? build(b, P_squeeze, 1, &v, 1, (Param[]){p_ints(b, K_dimensions, n, axes)}) : v;
}

/* ---- arithmetic */
Val b_neutral(Builder *b, Prim reduce, Dtype d) {
    const DtypeInfo *t = &dtype_info[d];
    Neutral neutral = prim_neutral[reduce];
    bool most = neutral == NEUTRAL_MOST, ones = neutral == NEUTRAL_ONES;
    if (neutral == NEUTRAL_ZERO || neutral == NEUTRAL_ONE) return b_number(b, d, neutral == NEUTRAL_ONE);
    if (t->kind == DK_COMPLEX) return b_number(b, d, most ? (double)INFINITY : -(double)INFINITY);
    if (t->kind == DK_FLOAT) return b_number(b, d, dtype_float_limit(d, most));
    if (t->kind == DK_BOOL) return b_number(b, d, most || ones);
    if (t->kind == DK_UINT) return most || ones ? b_not(b, b_int(b, d, 0)) : b_int(b, d, 0);
    return b_int(b, d, ones ? -1 : dtype_limit(d, most));
}
Val b_reduce(Builder *b, Prim prim, Val v, uint32_t n, const int64_t *axes) {
    return n ? build(b, prim, 1, &v, 1, (Param[]){p_ints(b, K_axes, n, axes)}) : v;
}
Val b_sum_to(Builder *b, Val v, uint32_t rank, const Dim *dims, const int64_t *axes) {
    if (b_failed(b, v)) return VAL_FAILED;
    const ArrayType *t = b_type(b, v);
    assert(axes || rank == 0 || rank == t->rank);
    int64_t summed[MAX_RANK];
    uint32_t n = 0, k = 0;
    for (uint32_t d = 0; d < t->rank; d++) {
        bool kept = k < rank && (!axes || axes[k] == d), stretched = kept && dims[k] == 1 && t->dims[d] != 1;
        if (!kept || stretched) summed[n++] = d;
        k += kept;
    }
    assert(k == rank);
    return b_reshape(b, b_reduce(b, P_reduce_sum, v, n, summed), rank, dims);
}
Val b_dot_general(Builder *b, Val x, Val y, Contraction c) {
    Ints axes[4] = {c.contracted[0], c.contracted[1], c.batch[0], c.batch[1]};
    Value *four = arena_new(b->cx->arena, Value, 4);
    for (uint32_t i = 0; i < 4; i++) four[i] = p_ints(b, K_axes, axes[i].n, axes[i].at).value;
    Param p[3] = {{.key = K_dimension_numbers, .value = {.kind = V_LIST, .open = '(', .list = {four, 4}}},
                  c.preferred ? p_dtype(K_preferred_element_type, c.preferred) : p_none(K_preferred_element_type)};
    if (c.precision) p[2] = *c.precision;
    return build(b, P_dot_general, 2, (Val[]){x, y}, c.precision ? 3 : 2, p);
}
Val b_stretch(Builder *b, Val v, uint32_t rank, const Dim *dims) {
    if (b_failed(b, v)) return VAL_FAILED;
    const ArrayType *t = b_type(b, v);
    int64_t axes[MAX_RANK];
    Dim stretched[MAX_RANK];
    if (same_dims(t, rank, dims)) return v;
    assert(t->rank == 0 || t->rank == rank);
    for (uint32_t d = 0; d < rank; d++) axes[d] = d, stretched[d] = t->rank && t->dims[d] != 1 ? t->dims[d] : dims[d];
    if (!same_dims(t, rank, stretched)) v = b_broadcast(b, v, rank, stretched, axes);
    return b_reshape(b, v, rank, dims);
}
Prim b_reduction(Prim p) {
    for (Prim r = P_none + 1; r < NPRIMS; r++)
        if (prim_lower[r] == LOWER_REDUCE && prim_combiner[r] == p) return r;
    return P_none;
}
Vals b_runtime(Builder *b, const char *name, uint32_t nsizes, const Dim *sizes, uint32_t n, const Val *in,
               uint32_t nout, const Type *types) {
    Param p[2] = {p_word(K_name, name), p_dims(b, K_sizes, nsizes, sizes)};
    return build_many(b, P_runtime_call, n, in, 2, p, nout, types);
}

/* The equation as in the text, on one line; truncated if it is long. */
static void put_source(Builder *b, const Eqn *e, Text *to) {
    enum { MOST = 80 };
    Str text = diags_text(b->cx->diags, e->whole.file);
    bool blank = false;
    uint32_t n = 0;
    for (uint32_t i = e->whole.at; i < e->whole.at + e->whole.n && i < text.n; i++) {
        bool space = strchr(" \t\r\n", text.at[i]);
        if (!space && n >= MOST) return text_put(to, S("..."));
        if (!space) text_add(to, "%s%c", blank ? " " : "", text.at[i]);
        n += !space + (blank && !space);
        blank = space;
    }
}
Str b_stop_text(Builder *b, const Eqn *e, Str what) {
    Text text = {.arena = b->cx->arena};
    text_add(&text, "%s %.*s: ", prim_name[e->prim], SF(what));
    put_source(b, e, &text);
    return (Str){text.at, text.n};
}
void b_stop_if(Builder *b, Val condition, const Eqn *e, const char *what) {
    b_stop_with(b, condition, e->span, b_stop_text(b, e, str(what)), 0, NULL);
}
void b_stop_with(Builder *b, Val condition, Span place, Str what, uint32_t n, const Val *numbers) {
    Diags *d = b->cx->diags;
    LineCol at = diag_where(d, place);
    Str text = str_format(b->cx->arena, "%s:%u:%u: %.*s", diag_path(d, place.file), at.line, at.col, SF(what));
    Val *in = arena_new(b->cx->arena, Val, n + 1);
    in[0] = condition;
    for (uint32_t i = 0; i < n; i++) in[1 + i] = b_convert(b, numbers[i], DT_i64);
    Param p[3] = {p_word(K_name, "check"), p_dims(b, K_sizes, 1, (Dim[]){n}), p_text(b, K_text, text)};
    build_many(b, P_runtime_call, 1 + n, in, 3, p, 0, NULL);
}
