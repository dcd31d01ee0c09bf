/* Infers one equation, checks a program. The results of an equation with an error keep their declared types or have
   none; equations that use a value without type are skipped, so that one mistake gives one message. */
#include "rule.h"

static TypeRule *const type_rule[NPRIMS] = {
#define PRIM(id, text, arity, type, simplify, facts, jvp, transpose, vmap, lowering) [P_##id] = type_##type,
#include "../prims.def"
};

static bool unknown_primitive(Ctx *cx, const Eqn *e) {
    Prim near = prim_similar(e->unknown);
    if (near == P_none) return diag(cx->diags, e->span, "unknown primitive '%.*s'", SF(e->unknown));
    return diag(cx->diags, e->span, "unknown primitive '%.*s'; did you mean '%s'?", SF(e->unknown), prim_name[near]);
}

bool infer(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (e->prim == P_none) return unknown_primitive(cx, e);
    if (prim_arity[e->prim] >= 0 && !want(cx, e, (unsigned)prim_arity[e->prim], 1)) return false;
    return type_rule[e->prim](cx, e, in, out);
}

/* ---- one equation */

/* Reports a literal that its type cannot represent. */
static bool want_literal(Ctx *cx, Val v, Span at) {
    const ValInfo *i = val_info(cx, v);
    if (!i->lit || !i->type || literal_fits(cx, i->lit, i->type)) return true;
    const Lit *lit = i->lit;
    Str text = str_format(cx->arena, "%s%llu", lit->negative ? "-" : "", (unsigned long long)lit->i);
    if (lit->kind == LIT_FLOAT) text = str_format(cx->arena, "%.17g", lit->re);
    if (lit->kind == LIT_COMPLEX) text = S("a complex number");
    if (lit->kind == LIT_BOOL) text = lit->i ? S("True") : S("False");
    return diag(cx->diags, at, "%.*s is no value of type %s", SF(text), type_c(cx, i->type));
}

static bool want_literals(Ctx *cx, const Eqn *e) {
    for (unsigned i = 0; i < e->in.n; i++)
        if (!want_literal(cx, e->in.at[i], operand_at(cx, e, i))) return false;
    return true;
}

/* Has it more bytes than an address can count? */
static bool too_large(Ctx *cx, Type t) {
    Dim n = type_size(cx->types, t);
    uint32_t bytes = dtype_info[type_at(cx->types, t)->dtype].bits / 8;
    return dim_is_const(n) && n > INT64_MAX / (bytes ? bytes : 1);
}

/* Gives the inferred types to the results, or compares them with the declared ones. */
static bool settle(Ctx *cx, const Eqn *e, const Type *out) {
    bool ok = true;
    for (unsigned i = 0; i < e->out.n; i++) {
        ValInfo *v = val_info(cx, e->out.at[i]);
        if (!out[i]) continue;
        if (too_large(cx, out[i]))
            ok = diag(cx->diags, result_at(cx, e, i), "%s: a result of type %s is too large", name_of(cx, e),
                      type_c(cx, out[i]));
        else if (!v->type)
            v->type = out[i];
        else if (v->type != out[i] && !types_agree(cx, v->type, out[i], result_at(cx, e, i))) {
            ok = diag(cx->diags, result_at(cx, e, i), "%s gives %s, but '%.*s' is declared as %s", name_of(cx, e),
                      type_c(cx, out[i]), SF(val_name(cx, e->out.at[i])), type_c(cx, v->type));
            const ArrayType *gives = type_at(cx->types, out[i]), *is = type_at(cx->types, v->type);
            note_params(cx, e, gives->dtype != is->dtype, !shapes_agree(cx, out[i], v->type, result_at(cx, e, i)));
            v->type = 0; /* either may be wrong: its uses are not blamed */
        }
    }
    return ok;
}

static void check_eqn(Ctx *cx, Eqn *e) {
    enum { SMALL = 16 };
    Type small[2 * SMALL];
    Type *in = e->in.n <= SMALL ? small : arena_new(cx->arena, Type, e->in.n);
    Type *out = e->out.n < SMALL ? small + SMALL : arena_new(cx->arena, Type, (size_t)e->out.n + 1);
    out[0] = 0;
    for (unsigned i = 0; i < e->in.n; i++) in[i] = val_type(cx, e->in.at[i]);
    for (unsigned i = 0; i < e->out.n; i++) out[i] = val_type(cx, e->out.at[i]);
    if (e->prim != P_none && !want_params(cx, e)) return;
    if (e->prim != P_none) complete(cx, e, in);
    bool known = true;
    for (unsigned i = 0; i < e->in.n && e->prim != P_none; i++) known = known && in[i];
    if (!known && diag_errors(cx->diags)) { /* for an error: its programs may have others */
        Jaxprs programs = eqn_jaxprs(cx->arena, e);
        each(Jaxpr *, j, programs) check_nested(cx, *j, e->span);
    }
    if (!known || !want_literals(cx, e) || !want_no_refs(cx, e, in)) return;
    if (infer(cx, e, in, out)) {
        settle(cx, e, out);
        return;
    }
    for (unsigned i = 0; i < e->out.n; i++)
        if (!out[i]) val_info(cx, e->out.at[i])->type = 0;
}

/* ---- programs */

typedef struct {
    const Jaxpr *j;
    uint32_t results; /* those before the current one */
    bool nested;
    Types *types;
    Val missing;
} Extents;

static bool among(Vals vals, uint32_t n, Val v) {
    for (uint32_t i = 0; i < n; i++)
        if (vals.at[i] == v) return true;
    return false;
}

static Dim visit_extent(void *user, Dim atom) {
    Extents *x = user;
    const DimExpr *d = dim_at(x->types, atom);
    if (d->kind != DIM_BOUND || among(x->j->in, x->j->in.n, d->val) || among(x->j->consts, x->j->consts.n, d->val) ||
        among(x->j->out, x->results, d->val))
        return atom;
    if (x->nested || among(x->j->out, x->j->out.n, d->val)) x->missing = d->val;
    return atom;
}

/* A program that runs another one must know the extents of its results from the inputs and earlier results. A library
   tells its caller what an extent is that is no result, as where --vmap gives each example one. */
static void want_extents(Ctx *cx, const Jaxpr *j, bool nested) {
    for (uint32_t i = 0; i < j->out.n; i++) {
        Type t = val_type(cx, j->out.at[i]);
        if (!type_has_bound(cx, t)) continue;
        Extents x = {j, i, nested, cx->types, 0};
        const ArrayType *a = type_at(cx->types, t);
        for (uint32_t k = 0; k < a->rank; k++) dim_substitute(cx->types, a->dims[k], visit_extent, &x);
        if (x.missing)
            diag(cx->diags, j->out_at ? j->out_at[i] : j->span,
                 "result '%.*s' is %s, but '%.*s' is neither an input nor an earlier result",
                 SF(val_name(cx, j->out.at[i])), type_c(cx, t), SF(val_name(cx, x.missing)));
    }
}

static void check_body(Ctx *cx, Jaxpr *j, bool nested) {
    j->checking = true;
    each(Eqn, e, j->eqns) check_eqn(cx, e);
    for (uint32_t i = 0; i < j->out.n; i++) want_literal(cx, j->out.at[i], j->out_at ? j->out_at[i] : j->span);
    want_extents(cx, j, nested);
    check_refs(cx, j);
    j->checking = false;
    j->checked = true;
}

static void check_nested_body(Ctx *cx, Jaxpr *j) {
    uint32_t before = diag_errors(cx->diags);
    check_body(cx, j, true);
    each(Val, v, j->consts) {
        const ValInfo *i = val_info(cx, *v);
        if (!i->type && diag_errors(cx->diags) == before)
            diag(cx->diags, i->span, "the type of constant '%.*s' is not printed: --consts has it", SF(i->name));
    }
}

void check_nested(Ctx *cx, Jaxpr *j, Span caller) {
    if (j->checking)
        diag(cx->diags, caller, "'%.*s' calls itself", SF(j->name));
    else if (!j->checked)
        check_nested_body(cx, j);
}

static void check_input(Ctx *cx, Val v) {
    Type t = val_type(cx, v);
    const DtypeInfo *d = &dtype_info[type_at(cx->types, t)->dtype];
    cx->wide = cx->wide || (OF_REAL >> d->kind & 1 && d->bits == 64) || d->bits == 128;
    if (too_large(cx, t)) diag(cx->diags, val_info(cx, v)->span, "an input of type %s is too large", type_c(cx, t));
}

/* If nothing else is wrong, the inputs need types. */
static bool want_known(Ctx *cx, Vals inputs, bool constants) {
    each(Val, v, inputs) {
        const ValInfo *i = val_info(cx, *v);
        if (!i->type)
            return diag(cx->diags, i->span,
                        "the type of %s '%.*s' is not printed: %sthe types of the inputs by --in-type",
                        constants ? "constant" : "input", SF(val_name(cx, *v)),
                        constants ? "--consts has it; or give " : "give ");
    }
    return true;
}

/* "b = 2" */
static const char *demand_c(const Ctx *cx, const DimCheck *c) {
    return str_format(cx->arena, "%s %s %s", dim_c(cx, c->a), c->at_most ? "<=" : "=", dim_c(cx, c->b)).at;
}
static void want_demands(Ctx *cx) {
    DimKnown with;
    const DimCheck *c = dims_contradict(cx, cx->dim_checks, &with);
    if (!c) return;
    diag(cx->diags, c->span, "this needs %s, but %s must be %s", demand_c(cx, c), dim_c(cx, with.symbol),
         dim_c(cx, with.value));
    diag_note(cx->diags, with.because->span, "because of %s", demand_c(cx, with.because));
}

static bool check_program(Ctx *cx, Jaxpr *j) {
    uint32_t before = diag_errors(cx->diags);
    each(Val, v, j->consts) check_input(cx, *v);
    each(Val, v, j->in) check_input(cx, *v);
    check_body(cx, j, false);
    each(Val, v, j->out) {
        ValInfo *i = val_info(cx, *v);
        if (!i->type && i->lit) i->type = literal_type(cx, i->lit);
    }
    if (diag_errors(cx->diags) == before && !cx->passes) want_demands(cx);
    return diag_errors(cx->diags) == before && want_known(cx, j->consts, true) && want_known(cx, j->in, false);
}
static DimChecks *checks_of(Ctx *cx, Jaxpr *j) {
    if (!j->dim_checks) j->dim_checks = arena_new(cx->arena, DimChecks, 1);
    return j->dim_checks;
}
bool check(Ctx *cx, Jaxpr *j) {
    DimChecks *outer = cx->dim_checks;
    bool wide = cx->wide;
    cx->dim_checks = checks_of(cx, j), cx->wide = false;
    bool good = check_program(cx, j);
    cx->dim_checks = outer, cx->wide = wide;
    return good;
}

static bool set_input(Ctx *cx, Val v, unsigned number, Type t, Span span) {
    ValInfo *i = val_info(cx, v);
    if (!i->type) i->type = t;
    return types_agree(cx, i->type, t, span) || diag(cx->diags, span, "type %u is %s, but '%.*s' is declared as %s",
                                                     number, type_c(cx, t), SF(i->name), type_c(cx, i->type));
}

bool check_inputs(Ctx *cx, Jaxpr *j, const Type *types, uint32_t n, Span span) {
    uint32_t consts = n == j->in.n ? 0 : j->consts.n;
    if (n != consts + j->in.n)
        return diag(cx->diags, span, "the program has %u input%s and %u constant%s, but %u type%s %s given", j->in.n,
                    plural(j->in.n), j->consts.n, plural(j->consts.n), n, plural(n), is_are(n));
    DimChecks *outer = cx->dim_checks;
    bool good = true;
    cx->dim_checks = checks_of(cx, j);
    for (uint32_t i = 0; i < n && good; i++)
        good = set_input(cx, i < consts ? j->consts.at[i] : j->in.at[i - consts], i, types[i], span);
    cx->dim_checks = outer;
    return good;
}
