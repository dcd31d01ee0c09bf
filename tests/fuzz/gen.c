/* Well-typed programs, equation by equation: the tables say which maker draws a row of prims.def. */
#include "make.h"
#include "compiler/parse/parse.h"
#include "compiler/typecheck/rule.h"

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

/* ---- parameters */

void put(Gen *g, Set *s, ParamKey k, Value v) { push(g->cx->arena, s, ((Param){.key = k, .value = v})); }
void put_int(Gen *g, Set *s, ParamKey k, int64_t i) {
    Value v = {.kind = V_INT, .i = i};
    if (param_kind[k] == PK_DIM) v = (Value){.kind = V_DIM, .dim = i};
    if (param_kind[k] == PK_BOOL) v = (Value){.kind = V_BOOL, .i = i};
    put(g, s, k, v);
}
void put_dtype(Gen *g, Set *s, ParamKey k, Dtype d) { put(g, s, k, (Value){.kind = V_DTYPE, .i = d}); }
void put_ints(Gen *g, Set *s, ParamKey k, const int64_t *at, uint32_t n) {
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
void put_jaxpr(Gen *g, Set *s, ParamKey k, Jaxpr *j) { put(g, s, k, (Value){.kind = V_JAXPR, .jaxpr = j}); }
void put_text(Gen *g, Set *s, Prim p, Str text) {
    Ctx *cx = g->cx;
    if (!text.n) return;
    Str program = str_format(cx->arena, "{ lambda ; . let %s[%.*s] in () }", prim_name[p], SF(text));
    Jaxpr *j = parse(cx, diags_source(cx->diags, "drawn", program), NULL);
    if (!j || j->eqns.n != 1) fprintf(stderr, "%.*s\n", SF(program)), abort();
    each(Param, q, j->eqns.at[0].params) {
        q->span = (Span){0};
        push(cx->arena, s, *q);
    }
}

/* ---- types */

static bool compiles(Dtype d) {
    unsigned kind = 1u << dtype_info[d].kind;
    return kind & (BOOL | INT | FLOAT);
}

Dtype draw_dtype(Gen *g, unsigned kinds) {
    static const Dtype usual[] = {DT_f32, DT_i32, DT_bool, DT_f64, DT_u8, DT_i64, DT_bf16};
    static const Dtype smooth[2][6] = {{DT_f64, DT_f64, DT_f64, DT_f64, DT_i32, DT_c128},
                                       {DT_f64, DT_f32, DT_bf16, DT_f16, DT_i32, DT_c64}};
    for (unsigned tries = 0; g->derived && tries < 8; tries++) {
        Dtype d = smooth[g->narrow][draw(g, g->runs ? 5 : 6)];
        if (kinds >> dtype_info[d].kind & 1) return d;
    }
    for (unsigned tries = 0; tries < 8; tries++) {
        Dtype d = coin(g) ? usual[draw(g, 7)] : (Dtype)(1 + draw(g, NDTYPES - 1));
        if (kinds >> dtype_info[d].kind & 1 && (compiles(d) || !g->runs)) return d;
    }
    return kinds & FLOAT ? DT_f32 : kinds & SINT ? DT_i32 : kinds & BOOL ? DT_bool : DT_u32;
}

Dim draw_dim(Gen *g) {
    static const Dim usual[] = {2, 3, 1, 4, 5, 7, 0, 8, 16, 17, 33};
    Types *ts = g->cx->types;
    if (draw(g, 8) != 1) return usual[draw(g, g->derived ? 5 : sizeof usual / sizeof *usual)];
    Dim b = dim_symbol(ts, coin(g) ? S("b") : S("c"));
    return draw(g, 4) ? b : dim_add(ts, b, 1 + draw(g, 3));
}

/* Small enough, as far as that is known. */
bool is_small(Gen *g, Type t) {
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

Type draw_type(Gen *g, unsigned kinds) {
    Dim dims[4];
    uint32_t rank = draw(g, 5) % 4;
    for (uint32_t i = 0; i < rank; i++) dims[i] = draw_dim(g);
    Type t = type_of(g->cx->types, draw_dtype(g, kinds), rank, dims);
    return is_small(g, t) ? t : type_of(g->cx->types, draw_dtype(g, kinds), 0, NULL);
}

/* ---- equations */

static void forget_errors(Gen *g) {
    g->cx->diags = diags_new(g->cx->arena);
    diags_source(g->cx->diags, "drawn", S(" "));
}

/* Adds the equation where it types and, unless `large`, its results are small; arrays and keys join the pool. The
   results' types are `declared` where that is given. Result 0, or no value. */
static Val add(Gen *g, Prim p, const Val *in, uint32_t n, Set params, const Type *declared, uint32_t results,
               bool large) {
    Ctx *cx = g->cx;
    Eqn e = {.prim = p, .in = {arena_new(cx->arena, Val, n + 1), n}};
    if (n) memcpy(e.in.at, in, n * sizeof *in);
    e.out = (Vals){arena_new(cx->arena, Val, results + 1), results};
    e.params = (Params){params.at, params.n};
    Type *types = arena_new(cx->arena, Type, n + 1), *out = arena_new(cx->arena, Type, results + 1);
    for (uint32_t i = 0; i < n; i++) types[i] = val_type(cx, in[i]);
    for (uint32_t i = 0; declared && i < results; i++) out[i] = declared[i];
    DimChecks *all = cx->dim_checks, demands = {0};
    uint32_t before = all->n;
    DimKnown with;
    cx->dim_checks = &demands;
    bool ok = infer(cx, &e, types, out) && !diag_errors(cx->diags);
    cx->dim_checks = all;
    each(DimCheck, c, demands) push(cx->arena, all, *c);
    ok = ok && !(demands.n && dims_contradict(cx, all, &with));
    for (uint32_t i = 0; ok && i < results; i++)
        ok = out[i] && (large || is_small(g, out[i])) && (!g->runs || compiles(type_at(cx->types, out[i])->dtype));
    if (!ok) return all->n = before, forget_errors(g), 0;
    for (uint32_t i = 0; i < results; i++) {
        e.out.at[i] = val_new(cx, out[i], (Span){0});
        if (!type_is_ref(cx, out[i])) push(cx->arena, &g->s->pool, e.out.at[i]);
    }
    push(cx->arena, &g->s->eqns, e);
    return results ? e.out.at[0] : 0;
}

Val emit(Gen *g, Prim p, const Val *in, uint32_t n, Set params, uint32_t results) {
    return add(g, p, in, n, params, NULL, results, false);
}
Val emit_declared(Gen *g, Prim p, const Val *in, uint32_t n, Set params, const Type *types, uint32_t results) {
    return add(g, p, in, n, params, types, results, false);
}

Val literal(Gen *g, Dtype d) {
    static const double reals[] = {1, 0, 2, -1.5, 0.5, 3, -2, 0.25};
    Lit lit = {.kind = LIT_INT, .i = draw(g, 4)};
    const DtypeInfo *info = &dtype_info[d];
    if (info->kind == DK_BOOL) lit = (Lit){.kind = LIT_BOOL, .i = draw(g, 2)};
    if (info->kind == DK_SINT) lit.i = draw(g, 2), lit.negative = lit.i && coin(g);
    if (info->kind == DK_FLOAT) lit = (Lit){.kind = LIT_FLOAT, .re = reals[draw(g, 8)]};
    if (info->kind == DK_COMPLEX) lit = (Lit){.kind = LIT_COMPLEX, .re = reals[draw(g, 8)], .im = reals[draw(g, 8)]};
    if (d == DT_f8_e8m0fnu || d == DT_f4_e2m1fn) lit.re = 1;
    return val_literal(g->cx, type_of(g->cx->types, d, 0, NULL), lit, (Span){0});
}

static Val pooled(Gen *g, unsigned kinds, uint32_t rank);
/* A float that depends on what a value of the pool does: the sine of the sum of its elements. A literal if there is
   none. */
static Val dependent(Gen *g, Dtype d) {
    Val x = pooled(g, FLOAT | COMPLEX, 0);
    if (!x) return literal(g, d);
    int64_t *axes = arena_new(g->cx->arena, int64_t, array(g, x)->rank + 1);
    Set reduced = {0}, converted = {0};
    for (uint32_t i = 0; i < array(g, x)->rank; i++) axes[i] = i;
    put_ints(g, &reduced, K_axes, axes, array(g, x)->rank);
    put_dtype(g, &converted, K_new_dtype, d);
    put_int(g, &converted, K_weak_type, 0);
    Val sum = emit(g, P_reduce_sum, &x, 1, reduced, 1);
    Val sine = sum ? emit(g, P_sin, &sum, 1, (Set){0}, 1) : 0;
    Val y = sine ? emit(g, P_convert_element_type, &sine, 1, converted, 1) : 0;
    return y ? y : literal(g, d);
}

/* A value of the type: a new one. */
static Val make(Gen *g, Type t) {
    const ArrayType *a = type_at(g->cx->types, t);
    if (a->dtype == DT_tok) return emit(g, P_create_token, NULL, 0, (Set){0}, 1);
    bool depends = g->derived && (FLOAT | COMPLEX) >> dtype_info[a->dtype].kind & 1 && draw(g, 4);
    Val x = depends ? dependent(g, a->dtype) : literal(g, a->dtype);
    if (!a->rank) return x;
    Set params = {0};
    put_ints(g, &params, K_broadcast_dimensions, NULL, 0);
    put_ints(g, &params, K_shape, a->dims, a->rank);
    Val y = add(g, P_broadcast_in_dim, &x, 1, params, NULL, 1, true);
    if (!y) abort();
    return y;
}

/* A value of the type: of the pool, where there is one, most of the time. */
Val need(Gen *g, Type t) {
    Pool *p = &g->s->pool;
    uint32_t from = draw(g, p->n);
    for (uint32_t i = 0; i < p->n && i < 64; i++) {
        Val v = p->at[(from + i) % p->n];
        if (val_type(g->cx, v) == t && draw(g, 4)) return v;
    }
    return make(g, t);
}

/* A value of the pool of one of the kinds and of at least that rank; 0: there is none. In a program with derivatives
   one of the last. */
static Val pooled(Gen *g, unsigned kinds, uint32_t rank) {
    Pool *p = &g->s->pool;
    uint32_t from = draw(g, g->derived && p->n > 4 ? 4 : p->n);
    for (uint32_t i = 0; i < p->n; i++) {
        uint32_t at = (from + i) % p->n;
        Val v = p->at[g->derived ? p->n - 1 - at : at];
        if (kind_of(g, v) & kinds && array(g, v)->rank >= rank) return v;
    }
    return 0;
}
/* A value of one of the kinds and of at least that rank; in a program with derivatives most often a float. */
Val pick(Gen *g, unsigned kinds, uint32_t rank) {
    if (g->derived && kinds & FLOAT && draw(g, 8)) kinds &= FLOAT | COMPLEX;
    Val old = pooled(g, kinds, rank);
    if (old) return old;
    Type t = draw_type(g, kinds);
    const ArrayType *a = type_at(g->cx->types, t);
    Dim dims[4] = {2, 3, 2, 1};
    return make(g, a->rank >= rank ? t : type_of(g->cx->types, a->dtype, rank, dims));
}

/* ---- rows and programs */

/* What a type rule takes, and its maker; rows of a fixed arity need none. Rules that are not here are in make_text's
   table. */
static const struct {
    const char *rule;
    unsigned kinds;
    Make *make;
} makers[] = {
    {"num", NUM, NULL},
    {"add_any", NUM, NULL},
    {"mul", NUM, NULL},
    {"real", REAL, NULL},
    {"ordered", NUM | BOOL, NULL},
    {"integer", INT, NULL},
    {"pow", FLOAT | COMPLEX, NULL},
    {"inexact", FLOAT | COMPLEX, NULL},
    {"float", FLOAT, NULL},
    {"bits", INT | BOOL, NULL},
    {"abs", SINT | FLOAT | COMPLEX, NULL},
    {"equality", ANY, NULL},
    {"comparison", REAL | BOOL, NULL},
    {"is_finite", FLOAT, NULL},
    {"same", ANY, NULL},
    {"integer_pow", NUM, make_integer_pow},
    {"round", FLOAT, make_round},
    {"select_n", ANY, make_select_n},
    {"clamp", REAL | BOOL, make_ternary},
    {"fma", FLOAT, make_ternary},
    {"reduce_precision", FLOAT, make_reduce_precision},
    {"convert_element_type", REAL | BOOL, make_convert},
    {"bitcast_convert_type", REAL, make_convert},
    {"optimization_barrier", ANY, make_barrier},
    {"iota", NUM, make_iota},
    {"empty", ANY, make_iota},
    {"broadcast_in_dim", ANY, make_broadcast},
    {"reshape", ANY, make_reshape},
    {"squeeze", ANY, make_squeeze},
    {"expand_dims", ANY, make_squeeze},
    {"transpose", ANY, make_transpose},
    {"rev", ANY, make_rev},
    {"slice", ANY, make_slice},
    {"pad", ANY, make_pad},
    {"concatenate", ANY, make_concatenate},
    {"stack", ANY, make_concatenate},
    {"split", ANY, make_split},
    {"unstack", ANY, make_split},
    {"tile", ANY, make_tile},
    {"dynamic_slice", ANY, make_dynamic},
    {"dynamic_update_slice", ANY, make_dynamic},
    {"dim_as_value", ANY, make_dim_as_value},
    {"reduce_num", NUM, make_reduce},
    {"reduce_ordered", REAL | BOOL, make_reduce},
    {"reduce_bits", INT | BOOL, make_reduce},
    {"arg", REAL | BOOL, make_arg},
    {"cumulative", NUM, make_cumulative},
    {"cumulative_float", FLOAT, make_cumulative},
    {"dot_general", NUM, make_dot},
    {"scaled_dot", REAL | BOOL, make_scaled},
    {"cond", ANY, make_cond},
    {"while", ANY, make_while},
    {"scan", ANY, make_scan},
    {"call", ANY, make_call},
    {"linear_call", ANY, make_call},
    {"imag_part", COMPLEX, NULL},
    {"real_part", COMPLEX, NULL},
    {"complex", FLOAT, NULL},
    {"reduce", ANY, make_reduction},
    {"reduce_window", ANY, make_reduction},
    {"reduce_window_num", NUM, make_window},
    {"reduce_window_ordered", NUM | BOOL, make_window},
    {"select_and_scatter_add", FLOAT, make_window},
    {"select_and_gather_add", FLOAT, make_window},
    {"select_and_scatter", ANY, make_selected},
    {"gather", ANY, make_index},
    {"scatter", ANY, make_index},
    {"scatter_num", REAL, make_index},
    {"conv_general_dilated", NUM, make_conv},
    {"bcoo_todense", NUM, make_sparse},
    {"bcoo_fromdense", NUM, make_sparse},
    {"bcoo_extract", NUM, make_sparse},
    {"bcoo_transpose", NUM, make_sparse},
    {"bcoo_sort_indices", NUM, make_sparse},
    {"bcoo_sum_duplicates", NUM, make_sparse},
    {"bcoo_dot_general", NUM, make_sparse},
    {"bcoo_dot_general_sampled", NUM, make_sparse},
    {"bcoo_spdot_general", NUM, make_sparse},
    {"bcsr_todense", NUM, make_sparse},
    {"bcsr_fromdense", NUM, make_sparse},
    {"bcsr_extract", NUM, make_sparse},
    {"bcsr_dot_general", NUM, make_sparse},
    {"csr_todense", NUM, make_sparse},
    {"csr_fromdense", NUM, make_sparse},
    {"csr_matvec", NUM, make_sparse},
    {"csr_matmat", NUM, make_sparse},
    {"coo_todense", NUM, make_sparse},
    {"coo_fromdense", NUM, make_sparse},
    {"coo_matvec", NUM, make_sparse},
    {"coo_matmat", NUM, make_sparse},
    {"todense", NUM, make_sparse},
    {"spsolve", NUM, make_sparse},
    {"ragged_dot_general", FLOAT, make_ragged},
    {"new_ref", ANY, make_refs},
    {"empty_ref", ANY, make_refs},
    {"get", ANY, make_refs},
    {"swap", ANY, make_refs},
    {"addupdate", ANY, make_refs},
    {"freeze", ANY, make_refs},
    {"free_ref", ANY, make_refs},
    {"run_state", ANY, make_state},
    {"for", ANY, make_state},
    {"for_loop", ANY, make_catalyst},
    {"while_loop", ANY, make_catalyst},
    {"custom_linear_solve", FLOAT, make_solve},
    {"shard_map", ANY, make_devices},
    {"xla_pmap", ANY, make_devices},
    {"pallas_call", ANY, make_kernel},
};
enum { NMAKERS = sizeof makers / sizeof *makers };

/* The columns of prims.def that say which maker a row has, and whether it compiles. */
static const struct {
    const char *arity, *rule, *jvp, *lowering;
} rows[NPRIMS] = {
#define PRIM(id, text, arity, type, simplify, facts, jvp, transpose, vmap, lowering)                                   \
    [P_##id] = {#arity, #type, #jvp, #lowering},
#include "compiler/prims.def"
};
static bool row_compiles(Prim p) { return p && strcmp(rows[p].lowering, "NONE") != 0; }
/* Has it a rule of its own for tangents, which most programs fit? */
static bool row_derives(Prim p) {
    static const char *const others[] = {"none", "zero", "expand"};
    bool own = p != P_regularized_incomplete_beta && p != P_polygamma;
    for (unsigned i = 0; i < sizeof others / sizeof *others; i++) own &= strcmp(rows[p].jvp, others[i]) != 0;
    return own;
}

static Make *maker(Prim p, unsigned *kinds, bool *compared) {
    static const struct {
        const char *arity;
        Make *make;
    } of_arity[] = {{"unary", make_unary}, {"binary", make_binary}, {"ternary", make_ternary}};
    *compared = row_compiles(p);
    for (unsigned i = 0; p && i < NMAKERS; i++) {
        if (strcmp(makers[i].rule, rows[p].rule) != 0) continue;
        *kinds = makers[i].kinds;
        for (unsigned k = 0; k < 3; k++)
            if (!strcmp(of_arity[k].arity, rows[p].arity)) return of_arity[k].make;
        return makers[i].make;
    }
    bool runs;
    if (!p || !text_rule(rows[p].rule, &runs)) return NULL;
    *compared = *compared && runs;
    return make_text;
}

/* pjit reads as jit; what passes alone write has no name. */
static bool can_be_read(Prim p) { return p && p != P_pjit && !prim_is(p, INTERNAL); }

const char *type_rule_of(Prim p) { return rows[p].rule; }

void rows_missing(FILE *f) {
    unsigned kinds;
    bool compared;
    for (Prim p = 1; p < NPRIMS; p++)
        if (can_be_read(p) && !maker(p, &kinds, &compared)) fprintf(f, "%s\n", prim_name[p]);
}

static void equations(Gen *g, uint32_t n) {
    static const Prim nesting[] = {P_cond, P_while, P_scan, P_jit};
    for (uint32_t i = 0; i < n; i++) {
        if (draw(g, 8) == 1 && g->holders.n) {
            make_again(g, P_jit, ANY);
            continue;
        }
        Prim p = draw(g, 10) == 1 ? nesting[draw(g, 4)] : (Prim)(1 + draw(g, NPRIMS - 1));
        unsigned kinds = 0;
        bool compared = false;
        Make *make_one = maker(p, &kinds, &compared);
        if (!make_one || !can_be_read(p) || (g->runs && !compared) || (g->compiles && !row_compiles(p))) continue;
        if (g->derived && !row_derives(p)) continue;
        make_one(g, p, kinds);
    }
}

Jaxpr *nested(Gen *g, const Type *in, uint32_t n, const Type *out, uint32_t results) {
    Ctx *cx = g->cx;
    Jaxpr *j = arena_new(cx->arena, Jaxpr, 1);
    Scope s = {0}, *outer = g->s;
    j->in = (Vals){arena_new(cx->arena, Val, n + 1), n};
    for (uint32_t i = 0; i < n; i++) {
        j->in.at[i] = val_new(cx, in[i], (Span){0});
        if (!type_is_ref(cx, in[i])) push(cx->arena, &s.pool, j->in.at[i]);
    }
    g->s = &s;
    uint32_t few = g->derived ? 3 : 6, many = g->derived ? 8 : 30;
    if (g->depth++ < MOST_DEPTH) equations(g, (g->depth > 1 ? few : many) + draw(g, 8));
    j->out = (Vals){arena_new(cx->arena, Val, results + 1), results};
    for (uint32_t i = 0; i < results; i++) j->out.at[i] = out ? need(g, out[i]) : pick(g, ANY, 0);
    g->depth--;
    g->s = outer;
    j->eqns = s.eqns;
    return j;
}

Jaxpr *program_draw(Ctx *cx, Dice *dice, unsigned kind) {
    Gen g = {.cx = cx, .dice = dice, .runs = kind & DRAW_RUNS, .derived = kind & DRAW_DERIVED};
    bool runs = g.runs;
    g.narrow = g.derived && draw(&g, 4) == 1;
    Type in[6];
    cx->dim_checks = arena_new(cx->arena, DimChecks, 1);
    diags_source(cx->diags, "drawn", S(" "));
    g.compiles = runs || coin(&g);
    uint32_t n = 1 + draw(&g, 6);
    for (uint32_t i = 0; i < n; i++) in[i] = draw_type(&g, runs ? REAL | BOOL : ANY);
    return nested(&g, in, n, NULL, 1 + draw(&g, 5));
}
