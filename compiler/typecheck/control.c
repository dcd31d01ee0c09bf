/* Calls and control flow: operands must fit the inputs of nested programs, whose results must fit each other. A nested
   program is checked at its first use; in untyped text its inputs take the types of the operands there. */
#include "nested.h"

/* ---- entering */

Span jaxpr_at(const Eqn *e, const Jaxpr *j) { return j->span.n ? j->span : e->span; }

static Type without_leading(Ctx *cx, Type t) {
    const ArrayType *a = type_at(cx->types, t);
    if (!a->rank) return t;
    Type part = type_of(cx->types, a->dtype, a->rank - 1, a->dims + 1);
    return type_is_ref(cx, t) ? type_with_extra(cx->types, part, type_extra(cx->types, t)) : part;
}

static bool input_disagrees(Ctx *cx, const Eqn *e, const Nested *b, uint32_t i, Type has, Type wants) {
    unsigned k = operand_of(b, i);
    ValInfo *v = val_info(cx, b->j->in.at[i]);
    v->type = 0; /* either may be wrong: its uses in the program are not blamed */
    diag(cx->diags, operand_at(cx, e, k), "%s: operand %u gives %s the type %s, but it takes %s", name_of(cx, e), k,
         b->what, type_c(cx, has), type_c(cx, wants));
    if (v->span.n) diag_note(cx->diags, v->span, "input '%.*s' of %s", SF(v->name), b->what);
    return false;
}

bool enter_nested(Ctx *cx, const Eqn *e, const Nested *b, const Type *in) {
    Jaxpr *j = b->j;
    bool ok = true;
    for (uint32_t i = 0; i < b->n; i++) {
        unsigned k = operand_of(b, i);
        Type t = i >= b->sliced ? without_leading(cx, in[k]) : in[k];
        ValInfo *v = val_info(cx, j->in.at[i]);
        if (!v->type) {
            v->type = t;
            continue;
        }
        Type wants = outer_type(cx, e, b, v->type);
        if (!types_agree(cx, t, wants, operand_at(cx, e, k))) ok = input_disagrees(cx, e, b, i, t, wants);
    }
    check_nested(cx, j, e->span);
    return ok;
}

Type result_type(Ctx *cx, const Jaxpr *j, uint32_t i, Type like) {
    ValInfo *v = val_info(cx, j->out.at[i]);
    if (v->type || !v->lit) return v->type;
    v->type = literal_type(cx, v->lit);
    Type t = type_of(cx->types, type_at(cx->types, like)->dtype, 0, NULL);
    if (like && v->type && literal_fits(cx, v->lit, t)) v->type = t;
    return v->type;
}

Span inner_result_at(const Eqn *e, const Jaxpr *j, uint32_t i) { return j->out_at ? j->out_at[i] : jaxpr_at(e, j); }

bool want_program(Ctx *cx, const Eqn *e, ParamKey k, Jaxpr *j, const Type *takes, uint32_t n, uint32_t results) {
    if (j->in.n != n)
        return diag(cx->diags, param_at(e, k), "%s: %s takes %u input%s, but it must take %u", name_of(cx, e),
                    param_name[k], j->in.n, plural(j->in.n), n);
    for (uint32_t i = 0; i < n; i++) {
        ValInfo *v = val_info(cx, j->in.at[i]);
        if (!v->type) v->type = takes[i];
        if (takes[i] && !types_agree(cx, takes[i], v->type, param_at(e, k)))
            return diag(cx->diags, v->span.n ? v->span : param_at(e, k), "%s: input %u of %s is %s, but it is given %s",
                        name_of(cx, e), i, param_name[k], type_c(cx, v->type), type_c(cx, takes[i]));
    }
    check_nested(cx, j, e->span);
    return j->out.n == results || diag(cx->diags, jaxpr_at(e, j), "%s: %s must have %u result%s, but has %u",
                                       name_of(cx, e), param_name[k], results, plural(results), j->out.n);
}

/* ---- calls */

/* The body takes the operands, `skip` of them from operand `jump` on left out. One of its results that the caller
   drops, `_`, is not compared: JAX names the body's result `_` too, and which variable of that name it is the text does
   not say. */
static bool infer_call(Ctx *cx, const Eqn *e, uint32_t jump, uint32_t skip, const Type *in, Type *out) {
    Jaxpr *j = eqn_program(e);
    uint32_t n = e->in.n - skip;
    if (!j) return diag(cx->diags, e->span, "%s needs the parameter 'jaxpr'", name_of(cx, e));
    if (j->in.n != n)
        return diag(cx->diags, e->span, "%s: the body takes %u operand%s, but there %s %u", name_of(cx, e), j->in.n,
                    plural(j->in.n), is_are(n), n);
    Nested b = {"the body", j, n, 0, jump, skip, UINT32_MAX, 0};
    if (!enter_nested(cx, e, &b, in) || !want_results(cx, e, j->out.n)) return false;
    for (uint32_t i = 0; i < j->out.n; i++) {
        Type t = outer_type(cx, e, &b, result_type(cx, j, i, out[i]));
        const ValInfo *result = val_info(cx, e->out.at[i]);
        bool dropped = str_is(result->name, "_") && !result->used;
        if (!dropped || !out[i]) out[i] = t;
    }
    return true;
}
bool type_call(Ctx *cx, const Eqn *e, const Type *in, Type *out) { return infer_call(cx, e, UINT32_MAX, 0, in, out); }

/* Operands: the callee's constants, residuals, and linear operands. Up to JAX 0.5 its transpose is a program too, whose
   constants come after the callee's: it takes them, the residuals and the callee's results, and returns the linear
   operands. */
bool type_linear_call(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    uint32_t own = 0, others, residuals;
    Jaxpr *j = param_jaxpr(e, K_transpose);
    if (!want_param(cx, e, K_callee)) return false;
    if (!param_has(e, K_num_transpose_consts)) {
        if (param_has(e, K_num_callee_consts) && !want_count(cx, e, K_num_callee_consts, e->in.n, &own)) return false;
        if (param_has(e, K_num_res) && !want_count(cx, e, K_num_res, e->in.n - own, &residuals)) return false;
        return type_call(cx, e, in, out);
    }
    if (!want_count(cx, e, K_num_callee_consts, e->in.n, &own) ||
        !want_count(cx, e, K_num_transpose_consts, e->in.n - own, &others) ||
        !want_count(cx, e, K_num_res, e->in.n - own - others, &residuals))
        return false;
    if (!infer_call(cx, e, own, others, in, out)) return false;
    uint32_t given = others + residuals, n = given + e->out.n;
    Type *takes = arena_new(cx->arena, Type, (size_t)n + 1);
    for (uint32_t i = 0; i < n; i++) takes[i] = i < given ? in[own + i] : out[i - given];
    return !j || want_program(cx, e, K_transpose, j, takes, n, e->in.n - own - given);
}

/* ---- cond */

static bool want_index(Ctx *cx, const Eqn *e, const Type *in, uint32_t branches) {
    const ArrayType *x = type_at(cx->types, in[0]);
    if (x->rank == 0 && (x->dtype == DT_i32 || (x->dtype == DT_bool && branches == 2))) return true;
    diag(cx->diags, operand_at(cx, e, 0), "cond: operand 0, the index of the branch, must be i32[], but is %s",
         type_c(cx, in[0]));
    note_operand(cx, e, 0, in[0]);
    return false;
}

/* Result i of each branch, some extent of which is a variable. */
static bool extents_agree(Ctx *cx, const Eqn *e, Jaxprs branches, uint32_t i, Type *out) {
    for (uint32_t k = 0; k < branches.n; k++) {
        Jaxpr *j = branches.at[k];
        Nested b = {"branch", j, e->in.n - 1, 1, UINT32_MAX, 0, UINT32_MAX, 0};
        if (!result_outside(cx, e, &b, j->out.n, i, result_type(cx, j, i, *out), out)) return false;
    }
    return true;
}

/* Result i of each branch has one type. */
static bool branches_agree(Ctx *cx, const Eqn *e, Jaxprs branches, uint32_t i, Type *out) {
    Type first = 0;
    uint32_t known = 0;
    for (uint32_t k = 0; k < branches.n && !first; k++) {
        if (val_info(cx, branches.at[k]->out.at[i])->lit && k + 1 < branches.n) continue;
        Nested b = {"branch", branches.at[k], e->in.n - 1, 1, UINT32_MAX, 0, UINT32_MAX, 0};
        Type t = result_type(cx, branches.at[k], i, *out);
        if (type_has_bound(cx, t)) return extents_agree(cx, e, branches, i, out);
        first = outer_type(cx, e, &b, t);
        known = k;
    }
    for (uint32_t k = 0; k < branches.n && first; k++) {
        Jaxpr *j = branches.at[k];
        Nested b = {"branch", j, e->in.n - 1, 1, UINT32_MAX, 0, UINT32_MAX, 0};
        Type t = outer_type(cx, e, &b, result_type(cx, j, i, first));
        if (!t || types_agree(cx, t, first, inner_result_at(e, j, i))) continue;
        diag(cx->diags, inner_result_at(e, j, i), "cond: result %u of branch %u is %s, but that of branch %u is %s", i,
             k, type_c(cx, t), known, type_c(cx, first));
        diag_note(cx->diags, inner_result_at(e, branches.at[known], i), "the result of branch %u", known);
        return false;
    }
    *out = first;
    return true;
}

bool type_cond(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (param_has(e, K_branch_jaxprs)) return type_cond_catalyst(cx, e, in, out);
    if (!want_param(cx, e, K_branches)) return false;
    Jaxprs branches = param_jaxprs(e, K_branches);
    if (!branches.n) return diag(cx->diags, param_at(e, K_branches), "cond: branches is empty");
    if (!e->in.n) return diag(cx->diags, e->span, "cond takes an index, but has 0 operands");
    bool ok = want_index(cx, e, in, branches.n);
    for (uint32_t k = 0; k < branches.n; k++) {
        Jaxpr *j = branches.at[k];
        if (j->in.n != e->in.n - 1)
            return diag(cx->diags, jaxpr_at(e, j), "cond: branch %u takes %u operand%s, but there %s %u", k, j->in.n,
                        plural(j->in.n), is_are(e->in.n - 1), e->in.n - 1);
        Nested b = {"a branch", j, e->in.n - 1, 1, UINT32_MAX, 0, UINT32_MAX, 0};
        ok = enter_nested(cx, e, &b, in) && ok;
        if (j->out.n != branches.at[0]->out.n)
            return diag(cx->diags, jaxpr_at(e, j), "cond: branch 0 has %u result%s, but branch %u has %u",
                        branches.at[0]->out.n, plural(branches.at[0]->out.n), k, j->out.n);
    }
    if (!ok || !want_results(cx, e, branches.at[0]->out.n)) return false;
    for (uint32_t i = 0; i < e->out.n; i++)
        if (!branches_agree(cx, e, branches, i, &out[i])) return false;
    return true;
}

/* ---- while and scan */

bool want_count(Ctx *cx, const Eqn *e, ParamKey k, uint32_t most, uint32_t *n) {
    if (!want_param(cx, e, k)) return false;
    int64_t count = param_int(e, k, 0);
    if (count < 0 || count > most)
        return diag(cx->diags, param_at(e, k), "%s: %s is %lld, but there %s only %u operand%s left for it",
                    name_of(cx, e), param_name[k], (long long)count, is_are(most), most, plural(most));
    *n = (uint32_t)count;
    return true;
}

/* The number of inputs of the body must fit a count parameter, which is blamed if it does not. */
static bool want_inputs(Ctx *cx, const Eqn *e, ParamKey blamed, ParamKey body, const Jaxpr *j, uint32_t n) {
    return j->in.n == n ||
           diag(cx->diags, param_at(e, blamed), "%s: %s takes %u input%s, but %s=%lld makes it %u", name_of(cx, e),
                param_name[body], j->in.n, plural(j->in.n), param_name[blamed], (long long)param_int(e, blamed, 0), n);
}

/* The first `n` results of the body are its inputs from `first` on in the next iteration. */
static bool carries_agree(Ctx *cx, const Eqn *e, ParamKey body, const Jaxpr *j, uint32_t first, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        Type carried = next_round(cx, j, first, n, val_type(cx, j->in.at[first + i]));
        Type t = result_type(cx, j, i, carried);
        if (!t || !carried || types_agree(cx, t, carried, inner_result_at(e, j, i))) continue;
        diag(cx->diags, inner_result_at(e, j, i), "%s: result %u of %s is %s, but it is carried as %s", name_of(cx, e),
             i, param_name[body], type_c(cx, t), type_c(cx, carried));
        const ValInfo *v = val_info(cx, j->in.at[first + i]);
        if (v->span.n) diag_note(cx->diags, v->span, "the carried value enters as '%.*s'", SF(v->name));
        return false;
    }
    return true;
}

/* The type of carried value i after an iteration. */
static Type next_carried(Ctx *cx, const Jaxpr *j, uint32_t first, uint32_t n, uint32_t i) {
    return type_plain(cx->types, next_round(cx, j, first, n, val_type(cx, j->in.at[first + i])));
}

/* The condition may return a bool for each element of a batch: the loop runs while any is true. */
static bool condition_is_bool(Ctx *cx, const Eqn *e, const Jaxpr *j) {
    if (j->out.n != 1)
        return diag(cx->diags, jaxpr_at(e, j), "while: cond_jaxpr must have 1 result, but has %u", j->out.n);
    Type t = result_type(cx, j, 0, 0);
    return !t || type_at(cx->types, t)->dtype == DT_bool ||
           diag(cx->diags, inner_result_at(e, j, 0), "while: the result of cond_jaxpr must be bool[], but is %s",
                type_c(cx, t));
}

/* If the condition has several lanes, they must be the leading axes of each carried value. */
static bool lanes_agree(Ctx *cx, const Eqn *e, const Jaxpr *cond, const Jaxpr *body, uint32_t nb) {
    Type type = result_type(cx, cond, 0, 0);
    const ArrayType *lanes = type_at(cx->types, type);
    for (uint32_t i = nb; type && i < body->in.n; i++) {
        const ArrayType *t = val_array(cx, body->in.at[i]);
        bool ok = !t->dtype || t->rank >= lanes->rank;
        for (uint32_t d = 0; ok && t->dtype && d < lanes->rank; d++)
            ok = dims_agree(cx, t->dims[d], lanes->dims[d], e->span);
        if (!ok)
            return diag(cx->diags, inner_result_at(e, cond, 0),
                        "while: the result of cond_jaxpr is %s, but the carried value %u is %s: its leading axes "
                        "must be those of the condition",
                        type_c(cx, type), i - nb, type_c(cx, val_type(cx, body->in.at[i])));
    }
    return true;
}
bool type_while(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (param_has(e, K_num_implicit_inputs)) return type_while_loop(cx, e, in, out);
    if (!want_param(cx, e, K_cond_jaxpr) || !want_param(cx, e, K_body_jaxpr)) return false;
    Jaxpr *cond = param_jaxpr(e, K_cond_jaxpr), *body = param_jaxpr(e, K_body_jaxpr);
    uint32_t nc, nb;
    if (!want_count(cx, e, K_cond_nconsts, e->in.n, &nc)) return false;
    if (!want_count(cx, e, K_body_nconsts, e->in.n - nc, &nb)) return false;
    uint32_t carry = e->in.n - nc - nb;
    if (body->out.n != carry)
        return diag(cx->diags, jaxpr_at(e, body), "while: %u value%s carried, but body_jaxpr has %u result%s", carry,
                    carry == 1 ? " is" : "s are", body->out.n, plural(body->out.n));
    if (!want_inputs(cx, e, K_cond_nconsts, K_cond_jaxpr, cond, nc + carry)) return false;
    if (!want_inputs(cx, e, K_body_nconsts, K_body_jaxpr, body, nb + carry)) return false;
    Nested c = {"cond_jaxpr", cond, nc + carry, 0, nc, nb, UINT32_MAX, 0};
    Nested b = {"body_jaxpr", body, nb + carry, nc, UINT32_MAX, 0, UINT32_MAX, 0};
    bool ok = enter_nested(cx, e, &c, in);
    ok = enter_nested(cx, e, &b, in) && ok;
    if (!ok) return false;
    ok = condition_is_bool(cx, e, cond);
    if (!carries_agree(cx, e, K_body_jaxpr, body, nb, carry) || !ok) return false;
    if (!lanes_agree(cx, e, cond, body, nb)) return false;
    if (!want_results(cx, e, carry)) return false;
    for (uint32_t i = 0; i < carry; i++)
        if (!result_outside(cx, e, &b, carry, i, next_carried(cx, body, nb, carry, i), &out[i])) return false;
    return true;
}

/* JAX 0.4 printed a length that is a variable as the tracer itself, Traced<…>: nothing to compare. */
static bool is_tracer(const Ctx *cx, Dim length) {
    const DimExpr *d = dim_is_const(length) ? NULL : dim_at(cx->types, length);
    return d && d->kind == DIM_SYMBOL && d->name.n && memchr(d->name.at, '<', d->name.n);
}

/* Every array that is scanned has `length` as its leading extent. */
static bool scanned_agree(Ctx *cx, const Eqn *e, const Type *in, uint32_t first, Dim length) {
    for (uint32_t i = first; i < e->in.n; i++) {
        const ArrayType *x = type_at(cx->types, in[i]);
        if (x->dtype == DT_unit) continue;
        if (!x->rank)
            return diag(cx->diags, operand_at(cx, e, i), "scan: operand %u is scanned and cannot be the scalar %s", i,
                        type_c(cx, in[i]));
        if (!is_tracer(cx, length) && !dims_agree(cx, x->dims[0], length, operand_at(cx, e, i)))
            return diag(cx->diags, operand_at(cx, e, i), "scan: length is %s, but operand %u is %s", dim_c(cx, length),
                        i, type_c(cx, in[i]));
    }
    return true;
}

static Type with_leading(Ctx *cx, Type t, Dim n) {
    const ArrayType *a = type_at(cx->types, t);
    if (!t || a->dtype == DT_unit) return t;
    Dim *dims = arena_new(cx->arena, Dim, (size_t)a->rank + 1);
    dims[0] = n;
    if (a->rank) memcpy(dims + 1, a->dims, a->rank * sizeof *dims);
    return type_of(cx->types, a->dtype, a->rank + 1, dims);
}

static bool want_turns(Ctx *cx, const Eqn *e, Dim *length) {
    if (!want_param(cx, e, K_length)) return false;
    *length = param_find(e, K_length)->value.dim;
    return dims_at_most(cx, 0, *length, param_at(e, K_length)) ||
           diag(cx->diags, param_at(e, K_length), "scan: length is negative");
}

bool type_scan(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!want_param(cx, e, K_jaxpr)) return false;
    Jaxpr *j = param_jaxpr(e, K_jaxpr);
    uint32_t nconsts, ncarry;
    Dim length;
    if (!want_count(cx, e, K_num_consts, e->in.n, &nconsts)) return false;
    if (!want_count(cx, e, K_num_carry, e->in.n - nconsts, &ncarry)) return false;
    if (!want_turns(cx, e, &length)) return false;
    if (j->in.n != e->in.n)
        return diag(cx->diags, jaxpr_at(e, j), "scan: jaxpr takes %u input%s, but there %s %u operand%s", j->in.n,
                    plural(j->in.n), is_are(e->in.n), e->in.n, plural(e->in.n));
    if (j->out.n < ncarry)
        return diag(cx->diags, jaxpr_at(e, j), "scan: num_carry is %u, but jaxpr has only %u result%s", ncarry,
                    j->out.n, plural(j->out.n));
    uint32_t first = nconsts + ncarry;
    if (!scanned_agree(cx, e, in, first, length)) return false;
    Nested b = {"jaxpr", j, e->in.n, 0, UINT32_MAX, 0, first, 0};
    if (!enter_nested(cx, e, &b, in)) return false;
    if (!carries_agree(cx, e, K_jaxpr, j, nconsts, ncarry) || !want_results(cx, e, j->out.n)) return false;
    for (uint32_t i = 0; i < j->out.n; i++) {
        Type t =
            i < ncarry ? next_carried(cx, j, nconsts, ncarry, i) : with_leading(cx, result_type(cx, j, i, 0), length);
        if (!result_outside(cx, e, &b, ncarry, i, t, &out[i])) return false;
    }
    return true;
}
