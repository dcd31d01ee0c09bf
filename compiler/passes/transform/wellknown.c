/* The rules of stdlib/rules/ for functions of JAX's own libraries. Each is a jvp program that begins with the
   custom_jvp_call with the body that it is for: one applies if names and bodies are equal, for the types of the call,
   after both bodies are simplified. A function of the user's that is only called `relu` has no rule here. */
#include "rules.h"
#include "../../parse/parse.h"
#include "../../typecheck/check.h"

Pass pass_inline, pass_fold, pass_cse, pass_dce;

/* Written by the Makefile, in order of their names, NAME_1, NAME_2, …; ended by a row of zeros. */
extern const struct {
    const char *name, *text;
    uint32_t n;
} rule_files[];

struct WellKnown {
    Jaxpr **at; /* by row of rule_files; NULL until used */
    Memo found; /* by body, whose inputs have the types, and names: the rule */
    Memo plain; /* simplified bodies of calls, by body */
};
static struct WellKnown *known_of(Ctx *cx) {
    if (cx->wellknown) return cx->wellknown;
    uint32_t n = 0;
    while (rule_files[n].name) n++;
    cx->wellknown = arena_new(cx->arena, struct WellKnown, 1);
    *cx->wellknown = (struct WellKnown){.at = arena_new(cx->arena, Jaxpr *, n + 1)};
    cx->wellknown->found.arena = cx->wellknown->plain.arena = cx->arena;
    return cx->wellknown;
}
static const Jaxpr *rule_text(Ctx *cx, uint32_t row) {
    struct WellKnown *known = known_of(cx);
    if (known->at[row]) return known->at[row];
    Str path = str_format(cx->arena, "<stdlib>/rules/%s.jaxpr", rule_files[row].name);
    Jaxpr *j = parse(cx, diags_source(cx->diags, path.at, (Str){rule_files[row].text, rule_files[row].n}), NULL);
    DimChecks *checks = cx->dim_checks;
    bool ok = j && check(cx, j);
    cx->dim_checks = checks;
    assert(ok);
    return known->at[row] = j;
}

/* The call that a rule is for: before it there may be constants only. */
static uint32_t pattern_of(const Jaxpr *rule) {
    uint32_t i = 0;
    while (i < rule->eqns.n && rule->eqns.at[i].prim != P_custom_jvp_call) i++;
    assert(i < rule->eqns.n);
    return i;
}

/* ---- names */

static Str bare(Str name) { return name.n && name.at[0] == '_' ? (Str){name.at + 1, name.n - 1} : name; }
/* A text that names no jvp rule, as of JAX 0.4, may mean any. */
static bool same_names(const Eqn *pattern, const Eqn *e) {
    Str rule = param_word(pattern, K_jvp), own = param_word(e, K_jvp);
    return str_eq(rule_name(pattern), rule_name(e)) && (!own.n || !rule.n || str_eq(bare(rule), bare(own)));
}
/* Is the row NAME_<number>? */
static bool row_of_name(uint32_t row, Str name) {
    const char *file = rule_files[row].name;
    return strlen(file) > name.n && memcmp(file, name.at, name.n) == 0 && file[name.n] == '_' &&
           strspn(file + name.n + 1, "0123456789") == strlen(file + name.n + 1);
}

/* ---- bodies */

/* Says the parameter nothing about what is computed, or nothing that types do not say? */
static bool says_nothing(const Param *p) {
    static const ParamKey silent[] = {K_sharding, K_out_sharding,          K_weak_type, K_accuracy, K_precision, K_name,
                                      K_unroll,   K_split_transpose_dummy, K_linear};
    for (size_t i = 0; i < sizeof silent / sizeof *silent; i++)
        if (p->key == silent[i]) return true;
    return p->value.kind == V_NONE;
}
static Jaxpr *bare_program(void *user, const Jaxpr *j) {
    Ctx *cx = user;
    Jaxpr *to = arena_new(cx->arena, Jaxpr, 1);
    *to = *j;
    to->eqns = (Eqns){0}, to->effects = (Str){0}, to->name = (Str){0};
    each(const Eqn, e, j->eqns) {
        Eqn new = eqn_rewrite(&(ValMap){.cx = cx}, e, bare_program, cx);
        Param *params = arena_new(cx->arena, Param, new.params.n + 1);
        uint32_t n = 0;
        each(const Param, p, new.params)
            if (!says_nothing(p)) params[n++] = *p;
        new.params = (Params){params, n};
        push(cx->arena, &to->eqns, new);
    }
    return to;
}
static Jaxpr *simplified(Ctx *cx, const Jaxpr *body) {
    static Pass *const passes[] = {pass_inline, pass_fold, pass_cse, pass_dce};
    Jaxpr *j = (Jaxpr *)body;
    for (size_t i = 0; i < sizeof passes / sizeof *passes && j; i++) j = passes[i](cx, j);
    return j ? bare_program(cx, j) : NULL;
}
static const Jaxpr *simplified_body(Ctx *cx, const Eqn *e) {
    Jaxpr *body = eqn_program(e), **slot = memo_slot(&known_of(cx)->plain, body);
    if (*slot) return *slot;
    Jaxpr *j = simplified(cx, body);
    return *memo_slot(&known_of(cx)->plain, body) = j;
}

/* ---- the rule */

/* Does the rule take the operands and a tangent for each float one after the constants? */
static bool same_sizes(Ctx *cx, const Jaxpr *rule, const Eqn *pattern, const Eqn *e) {
    Vals in = rule_operands(e);
    uint32_t n = e->in.n;
    each(const Val, v, in) n += has_tangent(cx, val_type(cx, *v));
    return rule->in.n == n && pattern->in.n == e->in.n && pattern->out.n == e->out.n;
}
/* The rule in this row for the types of the call, its first equation being the call itself; NULL if it is for other
   functions. */
static Jaxpr *fitting(Ctx *cx, uint32_t row, const Eqn *e, const Jaxpr *body) {
    const Jaxpr *rule = rule_text(cx, row);
    uint32_t at = pattern_of(rule);
    const Eqn *pattern = &rule->eqns.at[at];
    if (!same_names(pattern, e) || !same_sizes(cx, rule, pattern, e)) return NULL;
    Fit *fit = fit_new(cx, FIT_LEADING);
    for (uint32_t i = 0; i < e->in.n; i++)
        if (!fit_type(fit, val_type(cx, pattern->in.at[i]), val_type(cx, e->in.at[i]))) return NULL;
    for (uint32_t i = 0; i < e->out.n; i++)
        if (!fit_type(fit, val_type(cx, pattern->out.at[i]), val_type(cx, e->out.at[i]))) return NULL;
    Jaxpr *fitted = fit_program(fit, rule);
    if (!fitted) return NULL;
    Eqn *call = &fitted->eqns.at[at];
    const Jaxpr *own = simplified(cx, eqn_program(call));
    if (!own || !jaxpr_equal(cx, own, body, NULL)) return NULL;
    call->params = e->params; /* the call as it is, so that its rule is found again */
    call->span = e->span, call->whole = e->whole;
    return fitted;
}
Jaxpr *wellknown_rule(Ctx *cx, const Eqn *e) {
    Str name = rule_name(e);
    Jaxpr *body = eqn_program(e), *found = NULL;
    if (!body || body->in.n != e->in.n) return NULL;
    Text key = {.arena = cx->arena}; /* functions of other names may share the body */
    text_put(&key, (Str){(const char *)&body, sizeof body});
    text_put(&key, name), text_put(&key, S(" ")), text_put(&key, param_word(e, K_jvp));
    if (*memo_at(&known_of(cx)->found, key.at, key.n)) return *memo_at(&known_of(cx)->found, key.at, key.n);
    for (uint32_t i = 0; rule_files[i].name && !found; i++) {
        if (!row_of_name(i, name)) continue;
        const Jaxpr *own = simplified_body(cx, e);
        found = own ? fitting(cx, i, e, own) : NULL;
    }
    return *memo_at(&known_of(cx)->found, key.at, key.n) = found;
}
