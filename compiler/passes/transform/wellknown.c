/* The rules of stdlib/rules/ for functions of JAX's own libraries. Each is a jvp program that begins with the
   custom_jvp_call with the body that it is for: one applies if names and bodies are equal, for the types of the call,
   after both bodies are simplified. A function of the user's that is only called `relu` has no rule here. */
#include "rules.h"
#include "../../consts.h"
#include "../../lift.h"
#include "../stdlib.h"
#include "../../typecheck/check.h"

/* Rows of rule_files are called NAME_1, NAME_2, … */
struct WellKnown {
    uint32_t n; /* rows of rule_files */
    Jaxpr **at; /* two for each row of rule_files, the second with lifted constants; NULL until used */
    Memo found; /* by body, whose inputs have the types, and names: the rule, or &none */
    Memo plain; /* simplified bodies of calls, by body */
    Jaxpr none; /* stands for no rule */
};
static struct WellKnown *known_of(Ctx *cx) {
    if (cx->wellknown) return cx->wellknown;
    uint32_t n = 0;
    while (rule_files[n].name) n++;
    cx->wellknown = arena_new(cx->arena, struct WellKnown, 1);
    *cx->wellknown = (struct WellKnown){.n = n, .at = arena_new(cx->arena, Jaxpr *, 2 * n + 1)};
    cx->wellknown->found.arena = cx->wellknown->plain.arena = cx->arena;
    return cx->wellknown;
}
/* The call that a rule is for: before it there may be constants only. */
static uint32_t pattern_of(const Jaxpr *rule) {
    uint32_t i = 0;
    while (i < rule->eqns.n && rule->eqns.at[i].prim != P_custom_jvp_call) i++;
    assert(i < rule->eqns.n);
    return i;
}
/* Constants inside become inputs, in the order in which the call takes them, as they do in programs without --consts.
   False: the call does not take all of them. */
static bool lift_constants(Ctx *cx, Jaxpr *j) {
    uint32_t n = j->consts.n;
    consts_lift(cx, j);
    const Eqn *call = &j->eqns.at[pattern_of(j)];
    uint32_t lifted = j->consts.n - n;
    if (call->in.n - rule_operands(call).n != lifted) return false;
    j->in = vals_joined(cx->arena, 2, (Vals[]){vals_part(call->in, 0, lifted), j->in});
    j->consts.n = n;
    return true;
}
/* The rule of a row, or of row + the number of rows: with its constants lifted. */
static const Jaxpr *rule_text(Ctx *cx, uint32_t row) {
    struct WellKnown *known = known_of(cx);
    if (known->at[row]) return known->at[row];
    uint32_t n = known->n;
    Jaxpr *j = text_file_read(cx, &rule_files[row % n], "<stdlib>/rules");
    DimChecks *checks = cx->dim_checks;
    if (j && row >= n && !lift_constants(cx, j)) return known->at[row] = (Jaxpr *)rule_text(cx, row - n);
    bool ok = j && check(cx, j);
    cx->dim_checks = checks;
    assert(ok);
    return known->at[row] = j;
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
static bool has_pvary(Ctx *cx, const Jaxpr *j) {
    Jaxprs all = jaxprs_within(cx->arena, j);
    each(Jaxpr *, k, all)
        each(const Eqn, e, (*k)->eqns)
            if (e->prim == P_pvary) return true;
    return false;
}
/* Without pvary, which a body has where a function is called by devices: it changes no values. Programs without it stay
   the same ones: what several equations call is told by its address. */
static Jaxpr *unvaried_program(void *user, const Jaxpr *j) {
    Ctx *cx = user;
    if (!has_pvary(cx, j)) return (Jaxpr *)j;
    ValMap map = {.cx = cx, .sparse = true};
    Jaxpr *to = arena_new(cx->arena, Jaxpr, 1);
    *to = *j;
    to->eqns = (Eqns){0};
    each(const Eqn, e, j->eqns) {
        Eqn new = eqn_rewrite(&map, e, unvaried_program, cx);
        if (e->prim != P_pvary) push(cx->arena, &to->eqns, new);
        for (uint32_t i = 0; e->prim == P_pvary && i < e->out.n; i++) valmap_put(&map, e->out.at[i], new.in.at[i]);
    }
    to->out = vals_rewrite(&map, j->out);
    return to;
}
static Jaxpr *pass_unvary(Ctx *cx, const Jaxpr *j) { return unvaried_program(cx, j); }
static Jaxpr *simplified(Ctx *cx, const Jaxpr *body) {
    static Pass *const passes[] = {pass_inline, pass_unvary, pass_fold, pass_cse, pass_fold, pass_cse, pass_dce};
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
/* A rule for other types than those of its text, as programs are that transformations take; NULL if it is ill typed
   for them. */
static Jaxpr *well_typed(Ctx *cx, Jaxpr *j) {
    Diags *diags = cx->diags;
    DimChecks *checks = cx->dim_checks;
    cx->diags = diags_aside(diags);
    bool ok = j && check(cx, j) && (j = pass_lanes(cx, j)) && check(cx, j);
    cx->diags = diags, cx->dim_checks = checks;
    return ok ? j : NULL;
}
/* The call that it is for is the one that is differentiated, so that its rule is found again. */
static void put_call(Eqn *call, const Eqn *e) {
    call->params = e->params;
    call->span = e->span, call->whole = e->whole;
}
/* The rule's constants, which its text does not have, are those of the call's body, if --consts gives them. */
static void give_values(Ctx *cx, const Jaxpr *own, const Jaxpr *body) {
    assert(own->consts.n == body->consts.n);
    for (uint32_t i = 0; i < own->consts.n; i++)
        if (!val_info(cx, own->consts.at[i])->data)
            val_info(cx, own->consts.at[i])->data = val_info(cx, body->consts.at[i])->data;
}
/* Has the rule constants inside that are not the call's, without values? */
static bool has_tables(Ctx *cx, const Jaxpr *rule, const Eqn *e) {
    Constants all = consts_of(cx, rule), own = consts_of(cx, eqn_program(e));
    bool among = true;
    for (uint32_t i = 0; i < all.n && among; i++) {
        among = all.at[i].unused || val_info(cx, all.at[i].val)->data;
        for (uint32_t k = 0; k < own.n && !among; k++) among = all.at[i].val == own.at[k].val;
    }
    return !among;
}
static Jaxpr *without_tables(Ctx *cx, Jaxpr *rule, const Eqn *e) {
    return rule && !has_tables(cx, rule, e) ? rule : NULL;
}
/* The rule in this row for the types of the call, its first equation being the call itself; NULL if it is for other
   functions. */
static Jaxpr *fitting(Ctx *cx, uint32_t row, const Eqn *e, const Jaxpr *body) {
    const Jaxpr *rule = rule_text(cx, row);
    uint32_t at = pattern_of(rule);
    const Eqn *pattern = &rule->eqns.at[at];
    Fit *fit = fit_new(cx, FIT_LEADING);
    for (uint32_t i = 0; i < e->in.n; i++)
        if (!fit_type(fit, val_type(cx, pattern->in.at[i]), val_type(cx, e->in.at[i]))) return NULL;
    for (uint32_t i = 0; i < e->out.n; i++)
        if (!fit_type(fit, val_type(cx, pattern->out.at[i]), val_type(cx, e->out.at[i]))) return NULL;
    Jaxpr *fitted = well_typed(cx, fit_program(fit, rule));
    if (!fitted) return NULL;
    const Jaxpr *own = simplified(cx, eqn_program(&fitted->eqns.at[at]));
    if (!own || !jaxpr_equal(cx, own, body, NULL)) return NULL;
    give_values(cx, own, body);
    put_call(&fitted->eqns.at[at], e);
    return without_tables(cx, fitted, e);
}

/* ---- functions of numbers, for arrays of any rank: their rule is for the vector of all elements */

typedef struct {
    Ctx *cx;
    Fit *fit;
    Dims lead; /* of all arrays */
    Dim all;   /* how many elements these have */
    bool known;
} Flat;
static bool elementwise(const Flat *f, const ArrayType *p) {
    return p->rank == 1 && p->dims[0] == dim_symbol(f->cx->types, S("n"));
}
/* The type `is` as the rule sees it, where its text has `of`; 0: it is for other functions. */
static Type flat_type(Flat *f, Type of, Type is) {
    const ArrayType *p = type_at(f->cx->types, of), *t = type_at(f->cx->types, is);
    if (!elementwise(f, p)) { /* a number or a table */
        Dim n = 1, m = 1;
        for (uint32_t i = 0; i < p->rank; i++) n = dim_mul(f->cx->types, n, p->dims[i]);
        for (uint32_t i = 0; i < t->rank; i++) m = dim_mul(f->cx->types, m, t->dims[i]);
        return n == m && (p->rank || !t->rank) ? type_of(f->cx->types, t->dtype, p->rank, p->dims) : 0;
    }
    if (!f->known) { /* the first result */
        f->known = true, f->lead = (Dims){(Dim *)t->dims, t->rank}, f->all = 1;
        for (uint32_t i = 0; i < t->rank; i++) f->all = dim_mul(f->cx->types, f->all, t->dims[i]);
    }
    bool same = !t->rank || (f->lead.n == t->rank && !memcmp(f->lead.at, t->dims, t->rank * sizeof(Dim)));
    return same ? type_of(f->cx->types, t->dtype, 1, &f->all) : 0;
}
static bool fit_flat(Flat *f, Vals of, Vals is) {
    bool fits = of.n == is.n;
    for (uint32_t i = 0; i < of.n && fits; i++) {
        Type t = flat_type(f, val_type(f->cx, of.at[i]), val_type(f->cx, is.at[i]));
        fits = t && fit_type(f->fit, val_type(f->cx, of.at[i]), t);
    }
    return fits;
}
/* These values with these types, which have as many elements; numbers are repeated. */
static Val *shaped(Builder *b, Vals from, const Type *types) {
    Val *to = arena_new(b->cx->arena, Val, from.n + 1);
    for (uint32_t i = 0; i < from.n; i++) {
        const ArrayType *t = type_at(b->cx->types, types[i]);
        Val v = b_convert(b, from.at[i], t->dtype);
        bool number = !b->failed && !b_type(b, v)->rank;
        to[i] = val_type(b->cx, v) == types[i] ? v
                : number                       ? b_broadcast(b, v, t->rank, t->dims, NULL)
                                               : b_reshape(b, v, t->rank, t->dims);
    }
    return to;
}
static Type *types_of(Ctx *cx, Vals v) {
    Type *t = arena_new(cx->arena, Type, v.n + 1);
    for (uint32_t i = 0; i < v.n; i++) t[i] = val_type(cx, v.at[i]);
    return t;
}
/* A program on the call's types: the call, then the rest of the fitted rule on vectors. */
static Jaxpr *on_vectors(Ctx *cx, const Jaxpr *fitted, uint32_t at, const Eqn *e) {
    Builder b = {.cx = cx, .span = e->span, .whole = e->whole};
    Vals operands = rule_operands(e), all = {arena_new(cx->arena, Val, 2 * (size_t)e->in.n + 1), e->in.n};
    memcpy(all.at, e->in.at, e->in.n * sizeof *all.at);
    each(const Val, v, operands)
        if (has_tangent(cx, val_type(cx, *v))) all.at[all.n++] = *v;
    Vals results = {arena_new(cx->arena, Val, 2 * (size_t)e->out.n + 1), e->out.n};
    memcpy(results.at, e->out.at, e->out.n * sizeof *results.at);
    each(const Val, v, e->out)
        if (has_tangent(cx, val_type(cx, *v))) results.at[results.n++] = *v;
    if (all.n != fitted->in.n || results.n != fitted->out.n) return NULL;
    Inner whole = b_inner(&b, all.n, types_of(cx, all));
    const Eqn *pattern = &fitted->eqns.at[at];
    Eqn call = *e;
    call.in = vals_part(whole.in, 0, e->in.n);
    Vals y = b_eqn(&b, &call, e->out.n, types_of(cx, e->out));
    Jaxpr rest = *fitted;
    rest.eqns = (Eqns){0};
    each(const Eqn, q, fitted->eqns)
        if (q != pattern) push(cx->arena, &rest.eqns, *q);
    rest.in = vals_joined(cx->arena, 2, (Vals[]){fitted->in, pattern->out});
    Vals given = vals_joined(cx->arena, 2, (Vals[]){whole.in, y});
    Vals r = b_call(&b, &rest, given.n, shaped(&b, given, types_of(cx, rest.in)));
    if (b.failed) return NULL;
    Jaxpr *j = b_inner_end(&b, &whole, r.n, shaped(&b, r, types_of(cx, results)));
    return b.failed || whole.captured.n ? NULL : j;
}
static Jaxpr *fitting_flat(Ctx *cx, uint32_t row, const Eqn *e, const Jaxpr *body) {
    const Jaxpr *rule = rule_text(cx, row);
    uint32_t at = pattern_of(rule);
    const Eqn *pattern = &rule->eqns.at[at];
    Flat f = {.cx = cx, .fit = fit_new(cx, FIT_LEADING)};
    /* The body says what the function takes: its constants may be printed as wider ones where it is called. */
    if (!fit_flat(&f, pattern->out, e->out) || !fit_flat(&f, pattern->in, eqn_program(e)->in)) return NULL;
    Jaxpr *raw = fit_program(f.fit, rule), *fitted = raw ? well_typed(cx, raw) : NULL;
    if (!fitted) return NULL;
    /* Of numbers, loops are as they were: their conditions are no arrays. */
    const Jaxpr *own = simplified(cx, eqn_program(&(f.lead.n ? fitted : raw)->eqns.at[at]));
    if (!own || !programs_alike(cx, own, body, f.lead)) return NULL;
    give_values(cx, own, body);
    return without_tables(cx, on_vectors(cx, fitted, at, e), e);
}
/* Is the row for calls of this name with as many operands? */
static bool row_for(Ctx *cx, uint32_t row, const Eqn *e) {
    if (!row_of_name(row % known_of(cx)->n, rule_name(e))) return false;
    const Jaxpr *rule = rule_text(cx, row);
    const Eqn *pattern = &rule->eqns.at[pattern_of(rule)];
    return same_names(pattern, e) && same_sizes(cx, rule, pattern, e);
}
typedef Jaxpr *Fitting(Ctx *, uint32_t row, const Eqn *, const Jaxpr *body);
Jaxpr *wellknown_rule(Ctx *cx, const Eqn *e) {
    static Fitting *const ways[] = {fitting, fitting_flat};
    struct WellKnown *known = known_of(cx);
    Jaxpr *body = eqn_program(e), *found = NULL;
    if (!body || body->in.n != e->in.n) return NULL;
    Text key = {.arena = cx->arena}; /* functions of other names may share the body */
    text_put(&key, (Str){(const char *)&body, sizeof body});
    text_put(&key, rule_name(e)), text_put(&key, S(" ")), text_put(&key, param_word(e, K_jvp));
    found = *memo_at(&known->found, key.at, key.n);
    if (found) return found == &known->none ? NULL : found;
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++)
        for (uint32_t i = 0; i < 2 * known->n && !found; i++) {
            const Jaxpr *own = row_for(cx, i, e) ? simplified_body(cx, e) : NULL;
            found = own ? ways[way](cx, i, e, own) : NULL;
        }
    *memo_at(&known->found, key.at, key.n) = found ? found : &known->none;
    return found;
}
