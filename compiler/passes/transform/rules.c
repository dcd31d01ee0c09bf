/* --rule: the programs in the files, and which of them a custom call gets. */
#include "rules.h"
#include "../../control.h"
#include "../../file.h"
#include "../../parse/parse.h"
#include "../../typecheck/check.h"

typedef struct {
    Str name;
    Jaxpr *program[2]; /* the second: NULL, or bwd */
    Str path[2];
    bool used; /* a custom call has its name */
} Rule;
struct Rules {
    Rule *at;
    uint32_t n;
    Intern programs; /* already compared with the rules */
    Similar *near;   /* by rule, while it is unused: names of custom calls */
    bool failed;
};

static bool is_custom(const Eqn *e) { return e->prim == P_custom_jvp_call || e->prim == P_custom_vjp_call; }
Str rule_name(const Eqn *e) {
    Str name = param_word(e, K_name);
    const Jaxpr *body = name.n ? NULL : eqn_program(e); /* JAX 0.4 names only the function called in it */
    if (body && body->eqns.n == 1 && calls_function(&body->eqns.at[0])) name = param_word(&body->eqns.at[0], K_name);
    return name.n ? name : str(prim_name[e->prim]);
}

/* ---- what a rule takes and gives */

typedef struct {
    Type *at;
    uint32_t n, cap;
} TypeList;
/* The types of these values; only those that have tangents if `floats`. */
static void add_types(Ctx *cx, TypeList *to, Vals from, bool floats) {
    each(const Val, v, from)
        if (!floats || has_tangent(cx, val_type(cx, *v))) push(cx->arena, to, val_type(cx, *v));
}
typedef struct {
    Ctx *cx;
    const Rule *rule;
    const Eqn *e;
    Fit *fit;
    const Jaxpr *j;
    const char *what; /* "rule", "fwd", "bwd" */
} Comparison;
/* The file whose program is compared: a note at its place. */
static bool note_rule(const Comparison *c, Span at) {
    diag_note(c->cx->diags, at.n ? at : c->j->span, "the %s of --rule %.*s", c->what, SF(c->rule->name));
    return false;
}
static bool number_differs(const Comparison *c, const char *verb, const char *whose, uint32_t has, uint32_t wants,
                           const char *thing) {
    diag_error(c->cx->diags, c->e->span, "the %s of '%.*s' %s %u %s%s, but the call %s %u", c->what, SF(c->rule->name),
               verb, has, thing, plural(has), whose, wants);
    return note_rule(c, (Span){0});
}
static Str fitted_text(const Comparison *c, Type t) { return ctx_type_text(c->cx, fitted_type(c->fit, t)); }
static bool takes(const Comparison *c, TypeList given) {
    if (c->j->in.n != given.n) return number_differs(c, "takes", "gives it", c->j->in.n, given.n, "input");
    for (uint32_t i = 0; i < given.n; i++) {
        Val v = c->j->in.at[i];
        if (fit_type(c->fit, val_type(c->cx, v), given.at[i])) continue;
        diag_error(c->cx->diags, c->e->span, "the %s of '%.*s' takes %.*s, but the call gives it %.*s", c->what,
                   SF(c->rule->name), SF(fitted_text(c, val_type(c->cx, v))), SF(ctx_type_text(c->cx, given.at[i])));
        return note_rule(c, val_info(c->cx, v)->span);
    }
    return true;
}
/* Are the leading results of these types? */
static bool gives(const Comparison *c, TypeList wanted) {
    for (uint32_t i = 0; i < wanted.n; i++) {
        Val v = c->j->out.at[i];
        Type t = val_type(c->cx, v);
        if (fit_type(c->fit, t, wanted.at[i])) continue;
        diag_error(c->cx->diags, c->e->span, "the %s of '%.*s' gives %.*s as result %u, but the call wants %.*s",
                   c->what, SF(c->rule->name), SF(fitted_text(c, t)), i, SF(ctx_type_text(c->cx, wanted.at[i])));
        return note_rule(c, c->j->out_at ? c->j->out_at[i] : (Span){0});
    }
    return true;
}

static bool compare_jvp(Ctx *cx, const Rule *r, const Eqn *e, Fit *fit) {
    Comparison c = {cx, r, e, fit, r->program[0], "rule"};
    TypeList in = {0}, out = {0};
    add_types(cx, &in, rule_operands(e), false), add_types(cx, &in, rule_operands(e), true);
    add_types(cx, &out, e->out, false), add_types(cx, &out, e->out, true);
    if (!takes(&c, in)) return false;
    if (c.j->out.n != out.n) return number_differs(&c, "gives", "wants", c.j->out.n, out.n, "result");
    return gives(&c, out);
}
/* Of bwd, cotangents of inputs that have none may be there, as float0, or not. */
static bool compare_vjp(Ctx *cx, const Rule *r, const Eqn *e, Fit *fit) {
    Comparison fwd = {cx, r, e, fit, r->program[0], "fwd"}, bwd = {cx, r, e, fit, r->program[1], "bwd"};
    TypeList in = {0}, out = {0}, takes_back = {0}, floats = {0}, all = {0};
    add_types(cx, &in, rule_operands(e), false), add_types(cx, &out, e->out, false);
    if (!takes(&fwd, in)) return false;
    if (fwd.j->out.n < out.n) return number_differs(&fwd, "gives", "wants", fwd.j->out.n, out.n, "result");
    if (!gives(&fwd, out)) return false;
    Vals residuals = vals_part(fwd.j->out, out.n, fwd.j->out.n - out.n);
    each(const Val, v, residuals) push(cx->arena, &takes_back, fitted_type(fit, val_type(cx, *v)));
    add_types(cx, &takes_back, e->out, true);
    if (!takes(&bwd, takes_back)) return false;
    add_types(cx, &floats, rule_operands(e), true), add_types(cx, &all, rule_operands(e), false);
    if (bwd.j->out.n == all.n && all.n != floats.n) return true; /* bwd_of picks */
    if (bwd.j->out.n == floats.n) return gives(&bwd, floats);
    diag_error(cx->diags, e->span, "the bwd of '%.*s' gives %u cotangent%s, but '%.*s' takes %u float input%s",
               SF(r->name), bwd.j->out.n, plural(bwd.j->out.n), SF(r->name), floats.n, plural(floats.n));
    return note_rule(&bwd, (Span){0});
}
static bool compare(Ctx *cx, const Rule *r, const Eqn *e, Fit *fit) {
    bool jvp = e->prim == P_custom_jvp_call, one = !r->program[1];
    if (jvp != one) {
        diag_error(cx->diags, e->span, "the rule of '%.*s' is %s, but %s takes %s", SF(r->name),
                   one ? "one program" : "two programs", prim_name[e->prim],
                   jvp ? "one: primals and tangents to results and tangents" : "two: fwd and bwd");
        diag_note(cx->diags, r->program[0]->span, "--rule %.*s", SF(r->name));
        return false;
    }
    return jvp ? compare_jvp(cx, r, e, fit) : compare_vjp(cx, r, e, fit);
}

/* ---- reading */

static bool read_program(Ctx *cx, const char *path, Jaxpr **to) {
    Str text;
    if (!file_read(cx->arena, cx->diags, path, MOST_BYTES, &text)) return false;
    Jaxpr *j = *to = parse(cx, diags_source(cx->diags, path, text), NULL);
    if (!j || !check(cx, j)) return false;
    return !j->consts.n || diag(cx->diags, val_info(cx, j->consts.at[0])->span,
                                "a rule takes no constants: only the program's have values");
}
static Rule *rule_named(Ctx *cx, Str name) {
    struct Rules *rules = cx->rules;
    for (uint32_t i = 0; rules && i < rules->n; i++)
        if (str_eq(rules->at[i].name, name)) return &rules->at[i];
    return NULL;
}
static void compare_all(Ctx *cx, const Jaxpr *j) {
    bool fresh;
    intern(&cx->rules->programs, &j, sizeof j, &fresh);
    if (!fresh) return;
    each(const Eqn, e, j->eqns) {
        Rule *r = is_custom(e) ? rule_named(cx, rule_name(e)) : NULL;
        if (r) r->used = true;
        for (uint32_t i = 0; i < cx->rules->n && is_custom(e); i++) similar_offer(&cx->rules->near[i], rule_name(e));
        if (r && !compare(cx, r, e, fit_new(cx, FIT_SYMBOLS))) cx->rules->failed = true;
        Jaxprs inner = eqn_jaxprs(cx->arena, e);
        for (uint32_t i = 0; i < inner.n; i++)
            if (inner.at[i] && inner.at[i]->checked) compare_all(cx, inner.at[i]);
    }
}
/* A name that no custom call has. */
static bool unused(Ctx *cx, Str name, Str near) {
    if (!near.n) return diag(cx->diags, (Span){INPUT_FILE, 0, 0}, "--rule %.*s: no custom call of that name", SF(name));
    return diag(cx->diags, (Span){INPUT_FILE, 0, 0}, "--rule %.*s: no custom call of that name; did you mean '%.*s'?",
                SF(name), SF(near));
}
bool rules_read(Ctx *cx, const Jaxpr *j) {
    enum { LETTERS = 3 };
    uint32_t n = cx->options->rules.n;
    if (!n || !j->checked) return true;
    struct Rules *rules = cx->rules = arena_new(cx->arena, struct Rules, 1);
    *rules =
        (struct Rules){arena_new(cx->arena, Rule, n), n, {.arena = cx->arena}, arena_new(cx->arena, Similar, n), false};
    for (uint32_t i = 0; i < n; i++) {
        const RuleFiles *files = &cx->options->rules.at[i];
        rules->at[i].name = files->name;
        rules->near[i] = similar_to(files->name, edits_of(files->name, LETTERS));
        for (unsigned k = 0; k < 2 && files->file[k]; k++)
            if (!read_program(cx, files->file[k], &rules->at[i].program[k])) rules->failed = true;
    }
    if (rules->failed) return false;
    compare_all(cx, j);
    for (uint32_t i = 0; i < n; i++)
        if (!rules->at[i].used) rules->failed = !unused(cx, rules->at[i].name, rules->near[i].best);
    return !rules->failed;
}

/* ---- the rule of a call */

/* Without results for inputs that have no cotangent. */
static Jaxpr *bwd_of(Ctx *cx, const Jaxpr *j, const Eqn *e) {
    Vals in = rule_operands(e), out = {arena_new(cx->arena, Val, j->out.n + 1), 0};
    if (j->out.n != in.n) return (Jaxpr *)j;
    for (uint32_t i = 0; i < in.n; i++)
        if (has_tangent(cx, val_type(cx, in.at[i]))) out.at[out.n++] = j->out.at[i];
    Jaxpr *floats = jaxpr_with(cx, j, j->eqns, out);
    floats->checked = true; /* as `j` was */
    return floats;
}
CustomRule rule_of(Ctx *cx, const Eqn *e) {
    CustomRule own = {.jvp = param_jaxpr(e, K_jvp_jaxpr), .fwd = param_jaxpr(e, K_fwd_jaxpr)};
    own.bwd = param_jaxpr(e, K_bwd_jaxpr);
    if (own.jvp || (own.fwd && own.bwd)) return own;
    const Rule *r = rule_named(cx, rule_name(e));
    Fit *fit = fit_new(cx, FIT_SYMBOLS);
    if (r && compare(cx, r, e, fit)) {
        if (!r->program[1]) return (CustomRule){.jvp = fit_program(fit, r->program[0])};
        return (CustomRule){.fwd = fit_program(fit, r->program[0]),
                            .bwd = fit_program(fit, bwd_of(cx, r->program[1], e))};
    }
    return (CustomRule){.jvp = e->prim == P_custom_jvp_call ? wellknown_rule(cx, e) : NULL, .whole = true};
}
