/* Other primitives with programs than calls, cond and loops: reduce with a program as combiner, linear solves,
   callbacks; and sharding, which changes no type. */
#include "nested.h"

/* Arrays of equal shapes, then an initial value for each; the program takes two of every kind. */
bool type_reduce(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    unsigned n = e->in.n / 2;
    if (!n || e->in.n % 2)
        return diag(cx->diags, e->span, "reduce takes arrays and as many initial values, but has %u operand%s", e->in.n,
                    plural(e->in.n));
    if (!want_results(cx, e, n) || !want_param(cx, e, K_dimensions) || !want_param(cx, e, K_jaxpr)) return false;
    const ArrayType *x = type_at(cx->types, in[0]);
    bool *gone = arena_new(cx->arena, bool, x->rank);
    if (!want_axes(cx, e, K_dimensions, param_ints(e, K_dimensions), x->rank, gone)) return false;
    Dim *dims = arena_new(cx->arena, Dim, x->rank);
    uint32_t rank = 0;
    for (uint32_t i = 0; i < x->rank; i++)
        if (!gone[i]) dims[rank++] = x->dims[i];
    Type *takes = arena_new(cx->arena, Type, e->in.n);
    for (unsigned i = 0; i < n; i++) {
        if (!shapes_agree(cx, in[i], in[0], operand_at(cx, e, i))) return operands_disagree(cx, e, in, i, 0);
        if (!want_scalar(cx, e, in, n + i) || !want_dtype_of(cx, e, in, n + i, i)) return false;
        takes[i] = takes[n + i] = type_plain(cx->types, in[n + i]);
        out[i] = type_of(cx->types, type_at(cx->types, in[i])->dtype, rank, dims);
    }
    return want_program(cx, e, K_jaxpr, param_jaxpr(e, K_jaxpr), takes, e->in.n, n);
}

/* ---- custom_jvp_call, custom_vjp_call: the equation may hold its derivative rules */

typedef struct {
    Type *at;
    uint32_t n;
} TypeList;
static TypeList no_types(Ctx *cx, uint32_t most) { return (TypeList){arena_new(cx->arena, Type, (size_t)most + 1), 0}; }
/* Appends n types, or those of them that have tangents. */
static void add_types(const Ctx *cx, TypeList *to, const Type *types, uint32_t n, bool all) {
    for (uint32_t i = 0; i < n; i++)
        if (all || (types[i] && OF_INEXACT & 1 << dtype_info[type_at(cx->types, types[i])->dtype].kind))
            to->at[to->n++] = types[i];
}
/* The rule takes these types; its first results are of the others. */
static bool want_rule(Ctx *cx, const Eqn *e, ParamKey k, TypeList takes, TypeList gives, bool more) {
    Jaxpr *j = param_jaxpr(e, k);
    uint32_t results = more && j->out.n > gives.n ? j->out.n : gives.n;
    if (!want_program(cx, e, k, j, takes.at, takes.n, results)) return false;
    for (uint32_t i = 0; i < gives.n; i++) {
        Type has = result_type(cx, j, i, gives.at[i]);
        Span at = inner_result_at(e, j, i);
        if (has && gives.at[i] && !types_agree(cx, has, gives.at[i], at))
            return diag(cx->diags, at, "%s: result %u of %s is %s, but it must be %s", name_of(cx, e), i, param_name[k],
                        type_c(cx, has), type_c(cx, gives.at[i]));
    }
    return true;
}
/* jvp_jaxpr: operands, tangents → results, tangents. fwd_jaxpr: operands → results, residuals; bwd_jaxpr: residuals,
   cotangents of the results → of the operands. The constants of the function are no operands of a rule. */
bool type_custom_call(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!type_call(cx, e, in, out)) return false;
    uint32_t n = rule_operands(e).n, nout = e->out.n;
    const Type *given = in + e->in.n - n;
    Jaxpr *fwd = param_jaxpr(e, K_fwd_jaxpr);
    TypeList takes = no_types(cx, 2 * n), gives = no_types(cx, 2 * nout), back = no_types(cx, n);
    add_types(cx, &takes, given, n, true), add_types(cx, &gives, out, nout, true);
    if (fwd && !want_rule(cx, e, K_fwd_jaxpr, takes, gives, true)) return false;
    add_types(cx, &back, given, n, false);
    TypeList both = no_types(cx, (fwd ? fwd->out.n : 0) + nout);
    for (uint32_t i = nout; fwd && i < fwd->out.n; i++) both.at[both.n++] = result_type(cx, fwd, i, 0);
    add_types(cx, &both, out, nout, false);
    if (param_jaxpr(e, K_bwd_jaxpr) && !want_rule(cx, e, K_bwd_jaxpr, both, back, false)) return false;
    add_types(cx, &takes, given, n, false), add_types(cx, &gives, out, nout, false);
    return !param_jaxpr(e, K_jvp_jaxpr) || want_rule(cx, e, K_jvp_jaxpr, takes, gives, false);
}

/* ---- custom_linear_solve */

static bool want_lengths(Ctx *cx, const Eqn *e, uint32_t lengths[NSOLVES]) {
    const Value *record = &param_find(e, K_const_lengths)->value;
    uint64_t sum = 0;
    for (unsigned i = 0; i < NSOLVES; i++) {
        const Value *v = value_field(record, solve_field[i]);
        bool count = v && v->kind == V_INT && v->i >= 0 && v->i <= UINT32_MAX;
        if (!count)
            return diag(cx->diags, param_at(e, K_const_lengths), "%s: const_lengths has no count %s", name_of(cx, e),
                        solve_field[i]);
        lengths[i] = (uint32_t)v->i;
        sum += lengths[i];
    }
    return sum <= e->in.n ||
           diag(cx->diags, param_at(e, K_const_lengths), "%s: const_lengths are %llu, but there %s %u operand%s",
                name_of(cx, e), (unsigned long long)sum, is_are(e->in.n), e->in.n, plural(e->in.n));
}

/* Operands: the constants of four programs, then b. x has the types of b; further results of solve come after it. */
bool type_custom_linear_solve(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    uint32_t lengths[NSOLVES], consts = 0, at = 0;
    if (!want_param(cx, e, K_const_lengths) || !want_param(cx, e, K_jaxprs)) return false;
    if (!want_lengths(cx, e, lengths)) return false;
    for (unsigned i = 0; i < NSOLVES; i++) consts += lengths[i];
    uint32_t n = e->in.n - consts;
    Jaxpr *solve = value_jaxpr(&param_find(e, K_jaxprs)->value, solve_field[SOLVE_SOLVE]);
    for (unsigned k = 0; k < NSOLVES; at += lengths[k++]) {
        Jaxpr *j = value_jaxpr(&param_find(e, K_jaxprs)->value, solve_field[k]);
        if (!j) continue;
        Type *takes = arena_new(cx->arena, Type, (size_t)lengths[k] + n);
        if (lengths[k]) memcpy(takes, in + at, lengths[k] * sizeof *takes);
        if (n) memcpy(takes + lengths[k], in + consts, n * sizeof *takes);
        uint32_t results = k <= SOLVE_VECMAT ? n : j->out.n;
        if (!want_program(cx, e, K_jaxprs, j, takes, lengths[k] + n, results)) return false;
    }
    if (!want_results(cx, e, solve && solve->out.n > n ? solve->out.n : n)) return false;
    for (uint32_t i = 0; i < e->out.n; i++)
        out[i] = i < n ? type_plain(cx->types, in[consts + i]) : result_type(cx, solve, i, out[i]);
    return true;
}

/* ---- callbacks and effects */

/* debug_print, debug_callback, check: any arrays, no results. */
bool type_effect(Ctx *cx, const Eqn *e, const Type *in, Type *out) { return want_results(cx, e, 0); }

/* ---- tokens */
static bool want_token(Ctx *cx, const Eqn *e, const Type *in, unsigned i) {
    return type_at(cx->types, in[i])->dtype == DT_tok ||
           diag(cx->diags, operand_at(cx, e, i), "%s: operand %u must be a token, Tok, but is %s", name_of(cx, e), i,
                type_c(cx, in[i]));
}
/* Its operand, if it has one, does not matter. */
bool type_create_token(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!want_results(cx, e, 1)) return false;
    out[0] = type_of(cx->types, DT_tok, 0, NULL);
    return true;
}
bool type_after_all(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    for (unsigned i = 0; i < e->in.n; i++)
        if (!want_token(cx, e, in, i)) return false;
    return type_create_token(cx, e, in, out);
}
/* Operand 0, ordered after the token. */
bool type_add_dependency(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!want(cx, e, 2, 1) || !want_token(cx, e, in, 1)) return false;
    out[0] = in[0];
    return true;
}

/* Results whose types only the binders give: of callbacks, kernels, deferred derivatives. */
bool type_declared(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    for (unsigned i = 0; i < e->out.n; i++)
        if (!out[i])
            return diag(cx->diags, result_at(cx, e, i), "%s: the type of '%.*s' is not printed", name_of(cx, e),
                        SF(val_name(cx, e->out.at[i])));
    return true;
}

bool kernel_runs_once(const Eqn *e) {
    const Value *grid = NULL;
    each(const Param, p, e->params)
        if (str_is(p->name, "grid_mapping")) grid = value_field(&p->value, "grid");
    const Jaxpr *j = param_jaxpr(e, K_jaxpr);
    return j && grid && grid->kind == V_LIST && !grid->list.n && j->in.n >= e->in.n + e->out.n;
}

/* A kernel: its programs are checked separately. Its references are to the operands, then the results, then scratch;
   each holds a block of its array, hence elements of the same type. */
bool type_pallas_call(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    Jaxprs programs = eqn_jaxprs(cx->arena, e);
    each(Jaxpr *, j, programs) check_nested(cx, *j, e->span);
    if (!type_declared(cx, e, in, out)) return false;
    if (!kernel_runs_once(e)) return true;
    for (uint32_t i = 0; i < e->in.n + e->out.n; i++) {
        bool operand = i < e->in.n;
        Val v = param_jaxpr(e, K_jaxpr)->in.at[i];
        Type ref = val_type(cx, v), t = operand ? in[i] : out[i - e->in.n];
        if (!ref || type_at(cx->types, ref)->dtype == type_at(cx->types, t)->dtype) continue;
        diag(cx->diags, operand ? operand_at(cx, e, i) : result_at(cx, e, i - e->in.n),
             "%s: %s %u is %s, but '%.*s' of the kernel is %s", name_of(cx, e), operand ? "operand" : "result",
             operand ? i : i - e->in.n, type_c(cx, t), SF(val_name(cx, v)), type_c(cx, ref));
        diag_note(cx->diags, val_info(cx, v)->span, "'%.*s' of the kernel", SF(val_name(cx, v)));
        return false;
    }
    return true;
}

/* Two arrays; the result is the second. */
bool type_tie(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!want(cx, e, 2, 1)) return false;
    out[0] = type_plain(cx->types, in[1]);
    return true;
}

/* ---- placement of arrays */

/* Each result is its operand in another place. */
bool type_placed(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!want_results(cx, e, e->in.n)) return false;
    for (unsigned i = 0; i < e->in.n; i++) out[i] = type_plain(cx->types, in[i]);
    return true;
}
