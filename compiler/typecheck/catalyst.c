/* Catalyst's control flow, whose arrays may change their extents. The implicit inputs and results
   of a body are the extents of the explicit ones and come before them. An extent of a result is
   either one of the equation's operands (InDBIdx) or one of its results (OutDBIdx). */
#include "nested.h"

typedef struct {
    Nested body;
    uint32_t consts, implicit; /* inputs */
    uint32_t carried;          /* where they begin, the index of for_loop left out: the implicit ones,
                         then from `later` on the explicit ones */
    uint32_t later;
} Loop;

static uint32_t carried_input(const Loop *l, uint32_t i) {
    return i < l->implicit ? l->carried + i : l->later + i - l->implicit;
}

/* ---- counts: those that the text omits follow from the body */

static bool is_index(const Ctx *cx, Val v) {
    const ArrayType *t = val_array(cx, v);
    return !val_type(cx, v) || (t->rank == 0 && (OF_INT >> dtype_info[t->dtype].kind & 1));
}

static ParamKey implicit_key(const Eqn *e) { return param_has(e, K_nimplicit) ? K_nimplicit : K_num_implicit_inputs; }

/* Is result `n` of the body the extent of a later one? */
static bool is_extent(const Ctx *cx, const Jaxpr *j, uint32_t n) {
    for (uint32_t i = n + 1; i < j->out.n && i < n + 64; i++) {
        const ArrayType *t = val_array(cx, j->out.at[i]);
        for (uint32_t k = 0; k < t->rank; k++)
            if (t->dims[k] == dim_bound(cx->types, j->out.at[n])) return true;
    }
    return false;
}

/* The number of leading results that are extents of others, as far as the index of a for_loop allows. */
static uint32_t guess_implicit(const Ctx *cx, const Eqn *e, const Jaxpr *j, uint32_t consts, uint32_t most) {
    uint32_t n = 0;
    while (n < most && is_extent(cx, j, n)) n++;
    while (e->prim == P_for_loop && n < most && !is_index(cx, j->in.at[consts + n])) n++;
    return n;
}

static bool implicit_count(Ctx *cx, const Eqn *e, const Jaxpr *j, uint32_t consts, uint32_t most, uint32_t *n) {
    if (param_has(e, implicit_key(e))) return want_count(cx, e, implicit_key(e), most, n);
    *n = guess_implicit(cx, e, j, consts, most);
    return true;
}

/* The inputs of a for_loop's body without the index and the carried ones. */
static uint32_t loop_consts(const Jaxpr *j) { return j->in.n > j->out.n ? j->in.n - 1 - j->out.n : 0; }

Val for_loop_input(const Ctx *cx, const Eqn *e, uint32_t i) {
    const Jaxpr *j = param_jaxpr(e, K_body_jaxpr);
    if (!j || !j->in.n) return 0;
    int64_t consts = param_int(e, K_body_nconsts, loop_consts(j));
    if (consts < 0 || consts >= j->in.n) return 0;
    uint32_t most = j->in.n - 1 - (uint32_t)consts;
    int64_t implicit = param_int(e, implicit_key(e), -1);
    if (implicit < 0) implicit = guess_implicit(cx, e, j, (uint32_t)consts, most);
    int64_t index = consts + implicit, k = i < index ? i : i < index + 3 ? index : i - 3;
    return k < j->in.n ? j->in.at[k] : 0;
}

/* The input after the constants and extents is the index; otherwise a count is wrong: that of the constants if it does
   not fit the number of results. */
static bool want_loop_index(Ctx *cx, const Eqn *e, const Loop *l) {
    const Jaxpr *j = l->body.j;
    Val v = j->in.at[l->consts + l->implicit];
    if (is_index(cx, v)) return true;
    bool fits = j->in.n == l->consts + 1 + j->out.n;
    ParamKey key = implicit_key(e);
    if (!fits && param_has(e, K_body_nconsts)) key = K_body_nconsts;
    return diag(cx->diags, param_at(e, key), "%s: %s=%lld makes '%.*s', %s, the index, which must be an integer",
                name_of(cx, e), param_name[key], (long long)param_int(e, key, 0), SF(val_name(cx, v)),
                type_c(cx, val_type(cx, v)));
}

/* ---- extents that are declared later */

/* The place of a word inside the brackets of a binder's type. */
static Span word_in_type(const Ctx *cx, Span binder, Str word) {
    Str text = diags_text(cx->diags, binder.file);
    uint32_t from = binder.at + binder.n;
    for (uint32_t i = from; i + word.n <= text.n && text.at[i] != ']' && text.at[i] != '\n'; i++) {
        bool starts = i > from && strchr("[,( ", text.at[i - 1]);
        bool stops = i + word.n == text.n || strchr("],) ", text.at[i + word.n]);
        if (starts && stops && memcmp(text.at + i, word.at, word.n) == 0) return (Span){binder.file, i, word.n};
    }
    return binder;
}

/* The extent of an input must not be a later input. */
static bool want_declared(Ctx *cx, const Jaxpr *j) {
    for (uint32_t i = 0; i < j->in.n; i++) {
        const ArrayType *t = val_array(cx, j->in.at[i]);
        for (uint32_t k = 0; k < t->rank; k++) {
            if (dim_is_const(t->dims[k]) || dim_at(cx->types, t->dims[k])->kind != DIM_SYMBOL) continue;
            Str name = dim_at(cx->types, t->dims[k])->name;
            for (uint32_t m = i + 1; m < j->in.n && m < i + 1000; m++) {
                Str later = val_info(cx, j->in.at[m])->name;
                if (later.n != name.n || memcmp(later.at, name.at, name.n) != 0) continue;
                Span at = word_in_type(cx, val_info(cx, j->in.at[i])->span, name);
                diag(cx->diags, at, "the extent '%.*s' is used before it is declared", SF(name));
                diag_note(cx->diags, val_info(cx, j->in.at[m])->span, "it is declared here");
                return false;
            }
        }
    }
    return true;
}

/* ---- loops */

static bool carried_agree(Ctx *cx, const Eqn *e, const Loop *l) {
    const Jaxpr *j = l->body.j;
    for (uint32_t i = 0; i < j->out.n; i++) {
        const ValInfo *v = val_info(cx, j->in.at[carried_input(l, i)]);
        Type t = result_type(cx, j, i, v->type);
        Type need = next_round(cx, j, l->carried, l->implicit, v->type);
        if (!t || types_agree(cx, t, need, inner_result_at(e, j, i))) continue;
        diag(cx->diags, inner_result_at(e, j, i), "%s: result %u of body_jaxpr is %s, but it is carried as %s",
             name_of(cx, e), i, type_c(cx, t), type_c(cx, need));
        if (v->span.n)
            diag_note(cx->diags, v->span, "the carried value enters as '%.*s', %s", SF(v->name), type_c(cx, v->type));
        return false;
    }
    return true;
}

/* The body has a result for each carried value. */
static bool want_carried(Ctx *cx, const Eqn *e, const Loop *l) {
    const Jaxpr *j = l->body.j;
    uint32_t carried = j->in.n - l->consts - (l->later > l->carried + l->implicit);
    return j->out.n == carried ||
           diag(cx->diags, jaxpr_at(e, j),
                "%s: %u implicit and %u explicit values are carried, but body_jaxpr has %u result%s "
                "(%lld explicit)",
                name_of(cx, e), l->implicit, carried - l->implicit, j->out.n, plural(j->out.n),
                (long long)j->out.n - l->implicit);
}

static bool loop_results(Ctx *cx, const Eqn *e, const Loop *l, Type *out) {
    const Jaxpr *j = l->body.j;
    if (!carried_agree(cx, e, l) || !want_results(cx, e, j->out.n)) return false;
    for (uint32_t i = 0; i < e->out.n; i++)
        if (!result_outside(cx, e, &l->body, l->implicit, i, result_type(cx, j, i, out[i]), &out[i])) return false;
    return true;
}

/* Operands: constants, implicit, lower, upper, step, first index, explicit. Body: constants,
   implicit, index, explicit → implicit, explicit. */
bool type_for_loop(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!want_param(cx, e, K_body_jaxpr)) return false;
    Jaxpr *j = param_jaxpr(e, K_body_jaxpr);
    Loop l = {.body = {"body_jaxpr", j, j->in.n, 0, 0, 3, UINT32_MAX, 0}};
    if (!j->in.n || j->in.n + 3 != e->in.n)
        return diag(cx->diags, jaxpr_at(e, j),
                    "for_loop: body_jaxpr takes %u input%s, and with lower, upper and step there "
                    "must be %u operands, but there %s %u",
                    j->in.n, plural(j->in.n), j->in.n + 3, is_are(e->in.n), e->in.n);
    if (!want_declared(cx, j)) return false;
    l.consts = loop_consts(j);
    if (param_has(e, K_body_nconsts) && !want_count(cx, e, K_body_nconsts, j->in.n - 1, &l.consts)) return false;
    if (!implicit_count(cx, e, j, l.consts, j->in.n - 1 - l.consts, &l.implicit)) return false;
    l.carried = l.consts;
    l.later = l.consts + l.implicit + 1;
    l.body.jump = l.later - 1;
    l.body.counter = l.later;
    if (!want_loop_index(cx, e, &l) || !want_carried(cx, e, &l)) return false;
    for (uint32_t i = l.body.jump; i < l.body.jump + 4; i++)
        if (!want_kind(cx, e, in, i, OF_INT) || !want_scalar(cx, e, in, i) || !want_dtype_of(cx, e, in, i, l.body.jump))
            return false;
    return enter_nested(cx, e, &l.body, in) && loop_results(cx, e, &l, out);
}

static bool want_condition(Ctx *cx, const Eqn *e, const Jaxpr *cond) {
    if (cond->out.n != 1)
        return diag(cx->diags, jaxpr_at(e, cond), "while_loop: cond_jaxpr must have 1 result, but has %u", cond->out.n);
    Type t = result_type(cx, cond, 0, 0);
    return !t || (type_at(cx->types, t)->dtype == DT_bool && !type_at(cx->types, t)->rank) ||
           diag(cx->diags, inner_result_at(e, cond, 0),
                "while_loop: the result of cond_jaxpr must be bool[], but is %s", type_c(cx, t));
}

/* Operands: constants of the condition, of the body, implicit, explicit. */
bool type_while_loop(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!want_param(cx, e, K_body_jaxpr) || !want_param(cx, e, K_cond_jaxpr)) return false;
    Jaxpr *j = param_jaxpr(e, K_body_jaxpr), *cond = param_jaxpr(e, K_cond_jaxpr);
    uint32_t nc = cond->in.n > j->out.n ? cond->in.n - j->out.n : 0;
    Loop l = {.consts = j->in.n > j->out.n ? j->in.n - j->out.n : 0};
    if (param_has(e, K_cond_nconsts) && !want_count(cx, e, K_cond_nconsts, cond->in.n, &nc)) return false;
    if (param_has(e, K_body_nconsts) && !want_count(cx, e, K_body_nconsts, j->in.n, &l.consts)) return false;
    if (!want_declared(cx, j) || !want_declared(cx, cond)) return false;
    if (e->in.n != nc + j->in.n || cond->in.n != nc + j->in.n - l.consts)
        return diag(cx->diags, jaxpr_at(e, cond->in.n + l.consts == nc + j->in.n ? j : cond),
                    "while_loop: cond_jaxpr takes %u input%s and body_jaxpr %u, which does not fit "
                    "%u operand%s",
                    cond->in.n, plural(cond->in.n), j->in.n, e->in.n, plural(e->in.n));
    if (!implicit_count(cx, e, j, l.consts, j->in.n - l.consts, &l.implicit)) return false;
    l.carried = l.consts;
    l.later = l.consts + l.implicit;
    l.body = (Nested){"body_jaxpr", j, j->in.n, nc, UINT32_MAX, 0, UINT32_MAX, 0};
    Nested c = {"cond_jaxpr", cond, cond->in.n, 0, nc, l.consts, UINT32_MAX, 0};
    if (!want_carried(cx, e, &l) || !enter_nested(cx, e, &c, in)) return false;
    return enter_nested(cx, e, &l.body, in) && want_condition(cx, e, cond) && loop_results(cx, e, &l, out);
}

/* ---- cond */

static bool branch_result(Ctx *cx, const Eqn *e, Jaxpr *j, uint32_t first, uint32_t implicit, uint32_t i, Type *out) {
    Nested b = {"a branch", j, j->in.n, first, UINT32_MAX, 0, UINT32_MAX, 0};
    Type declared = *out;
    if (!result_outside(cx, e, &b, implicit, i, result_type(cx, j, i, declared), out)) return false;
    return !declared || types_agree(cx, declared, *out, inner_result_at(e, j, i)) ||
           diag(cx->diags, inner_result_at(e, j, i), "cond: result %u of this branch is %s, but it must be %s", i,
                type_c(cx, *out), type_c(cx, declared));
}

/* One bool for each branch but the last, then the operands of every branch. */
bool type_cond_catalyst(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!want_param(cx, e, K_branch_jaxprs)) return false;
    Jaxprs branches = param_jaxprs(e, K_branch_jaxprs);
    if (!branches.n || e->in.n + 1 < branches.n)
        return diag(cx->diags, param_at(e, K_branch_jaxprs),
                    "cond: %u branches take a bool for each but the last, but there %s %u operand%s", branches.n,
                    is_are(e->in.n), e->in.n, plural(e->in.n));
    uint32_t first = branches.n - 1, implicit = 0;
    for (uint32_t i = 0; i < first; i++)
        if (type_at(cx->types, in[i])->dtype != DT_bool || !want_scalar(cx, e, in, i))
            return diag(cx->diags, operand_at(cx, e, i), "cond: operand %u must be bool[], but is %s", i,
                        type_c(cx, in[i]));
    uint32_t results = branches.at[0]->out.n;
    if (param_has(e, K_num_implicit_outputs) && !want_count(cx, e, K_num_implicit_outputs, results, &implicit))
        return false;
    for (uint32_t k = 0; k < branches.n; k++) {
        Jaxpr *j = branches.at[k];
        Nested b = {"a branch", j, j->in.n, first, UINT32_MAX, 0, UINT32_MAX, 0};
        if (j->in.n != e->in.n - first || j->out.n != results)
            return diag(cx->diags, jaxpr_at(e, j),
                        "cond: branch %u takes %u operand%s and has %u result%s, but %u %s given and "
                        "branch 0 has %u",
                        k, j->in.n, plural(j->in.n), j->out.n, plural(j->out.n), e->in.n - first,
                        is_are(e->in.n - first), results);
        if (!want_declared(cx, j) || !enter_nested(cx, e, &b, in)) return false;
    }
    if (!want_results(cx, e, results)) return false;
    for (uint32_t i = 0; i < results; i++)
        for (uint32_t k = 0; k < branches.n; k++)
            if (!branch_result(cx, e, branches.at[k], first, implicit, i, &out[i])) return false;
    return true;
}
