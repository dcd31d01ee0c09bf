/* Equality of programs, by which the law print ∘ parse = identity is checked. Values correspond by position; types are
   compared after renaming the bound dimensions. */
#include "print.h"
#include <math.h>

typedef struct {
    const Ctx *cx;
    Arena *arena;
    Val *partner; /* by Val of the first program: the corresponding value of the second */
    Intern pairs; /* of jaxprs already compared */
    Str *why;
} Compare;

static bool differ(Compare *c, const char *what, Span at) {
    LineCol where = diag_where(c->cx->diags, at);
    if (c->why && !c->why->n) *c->why = str_format(c->cx->arena, "%s at %u:%u", what, where.line, where.col);
    return false;
}

static Dim to_partner(void *compare, Dim atom) {
    Compare *c = compare;
    const DimExpr *e = dim_at(c->cx->types, atom);
    return e->kind == DIM_BOUND && c->partner[e->val] ? dim_bound(c->cx->types, c->partner[e->val]) : atom;
}

static bool same_dim(Compare *c, Dim a, Dim b) { return a == b || dim_substitute(c->cx->types, a, to_partner, c) == b; }

static bool same_type(Compare *c, Type a, Type b) {
    if (a == b) return true;
    return a && b && type_substitute(c->cx->types, a, to_partner, c) == b;
}

static bool same_real(double a, double b) { return isnan(a) ? isnan(b) : a == b && !signbit(a) == !signbit(b); }

static double real_part(const Lit *l) {
    if (l->kind == LIT_BOOL) return (double)l->i;
    if (l->kind == LIT_INT) return l->negative ? -(double)l->i : (double)l->i;
    return l->re;
}

/* Untyped text may have 1 where the type inferred later asks for 1.0. */
static bool same_literal(const Lit *a, const Lit *b) {
    bool numbers = a->kind <= LIT_COMPLEX && b->kind <= LIT_COMPLEX;
    if (!numbers) return a->kind == b->kind;
    if (a->kind == LIT_INT && b->kind == LIT_INT) return a->i == b->i && (a->negative == b->negative || a->i == 0);
    return same_real(real_part(a), real_part(b)) && same_real(a->im, b->im);
}

static bool same_val(Compare *c, Val a, Val b, Span at) {
    const ValInfo *x = val_info(c->cx, a), *y = val_info(c->cx, b);
    if (!x->lit != !y->lit) return differ(c, "a literal and a variable", at);
    if (!x->lit) return c->partner[a] == b || differ(c, "another variable", at);
    return (same_literal(x->lit, y->lit) && same_type(c, x->type, y->type)) || differ(c, "another literal", at);
}

static bool bind(Compare *c, const Vals *a, const Vals *b, Span at) {
    if (a->n != b->n) return differ(c, "another number of variables", at);
    for (uint32_t i = 0; i < a->n; i++) {
        c->partner[a->at[i]] = b->at[i];
        if (!same_type(c, val_type(c->cx, a->at[i]), val_type(c->cx, b->at[i])))
            return differ(c, "another type", val_info(c->cx, a->at[i])->span);
    }
    return true;
}

static bool same_jaxpr(Compare *, const Jaxpr *, const Jaxpr *);

static bool same_value(Compare *c, const Value *a, const Value *b) {
    if (a->kind != b->kind) return false;
    switch (a->kind) {
    case V_NONE: return true;
    case V_BOOL:
    case V_INT:
    case V_DTYPE: return a->i == b->i;
    case V_FLOAT:
    case V_WORD:
    case V_STR:
    case V_TEXT: return str_eq(a->s, b->s);
    case V_DIM: return same_dim(c, a->dim, b->dim);
    case V_INTS:
        return a->ints.n == b->ints.n && (!a->ints.n || !memcmp(a->ints.at, b->ints.at, a->ints.n * sizeof(int64_t)));
    case V_DIMS:
        for (uint32_t i = 0; i < a->dims.n && a->dims.n == b->dims.n; i++)
            if (!same_dim(c, a->dims.at[i], b->dims.at[i])) return false;
        return a->dims.n == b->dims.n;
    case V_LIST:
    case V_PAIR:
        for (uint32_t i = 0; i < a->list.n && a->list.n == b->list.n; i++)
            if (!same_value(c, &a->list.at[i], &b->list.at[i])) return false;
        return a->list.n == b->list.n && a->open == b->open && str_eq(a->s, b->s);
    case V_JAXPR: return same_jaxpr(c, a->jaxpr, b->jaxpr);
    case V_JAXPRS:
        for (uint32_t i = 0; i < a->jaxprs.n && a->jaxprs.n == b->jaxprs.n; i++)
            if (!same_jaxpr(c, a->jaxprs.at[i], b->jaxprs.at[i])) return false;
        return a->jaxprs.n == b->jaxprs.n;
    }
    return false;
}

static bool same_params(Compare *c, const Eqn *a, const Eqn *b) {
    uint32_t n, m;
    const Param **x = params_in_order(c->arena, c->cx, a, &n), **y = params_in_order(c->arena, c->cx, b, &m);
    if (n != m) return differ(c, "another number of parameters", a->span);
    for (uint32_t i = 0; i < n; i++) {
        if (!str_eq(param_text(x[i]), param_text(y[i]))) return differ(c, "another parameter", x[i]->span);
        if (!same_value(c, &x[i]->value, &y[i]->value)) return differ(c, "another value of a parameter", x[i]->span);
    }
    return true;
}

static bool same_eqn(Compare *c, const Eqn *a, const Eqn *b) {
    if (a->prim != b->prim || (!a->prim && !str_eq(a->unknown, b->unknown)))
        return differ(c, "another primitive", a->span);
    if (a->in.n != b->in.n) return differ(c, "another number of operands", a->span);
    for (uint32_t i = 0; i < a->in.n; i++)
        if (!same_val(c, a->in.at[i], b->in.at[i], a->in_at ? a->in_at[i] : a->span)) return false;
    return bind(c, &a->out, &b->out, a->span) && same_params(c, a, b);
}

static bool same_jaxpr(Compare *c, const Jaxpr *a, const Jaxpr *b) {
    const Jaxpr *pair[2] = {a, b};
    _Bool fresh;
    intern(&c->pairs, pair, sizeof pair, &fresh);
    if (!fresh) return true;
    if (!bind(c, &a->consts, &b->consts, a->span) || !bind(c, &a->in, &b->in, a->span)) return false;
    if (a->eqns.n != b->eqns.n) return differ(c, "another number of equations", a->span);
    for (uint32_t i = 0; i < a->eqns.n; i++)
        if (!same_eqn(c, &a->eqns.at[i], &b->eqns.at[i])) return false;
    if (a->out.n != b->out.n) return differ(c, "another number of results", a->span);
    for (uint32_t i = 0; i < a->out.n; i++)
        if (!same_val(c, a->out.at[i], b->out.at[i], a->out_at ? a->out_at[i] : a->span)) return false;
    return str_eq(a->effects, b->effects) || differ(c, "other effects", a->span);
}

bool jaxpr_equal(const Ctx *cx, const Jaxpr *a, const Jaxpr *b, Str *why) {
    Arena *arena = arena_open();
    Compare c = {.cx = cx, .arena = arena, .pairs = {.arena = arena}, .why = why};
    if (why) *why = S("");
    c.partner = arena_new(arena, Val, cx->nvals);
    bool same = same_jaxpr(&c, a, b);
    arena_close(arena);
    return same;
}
