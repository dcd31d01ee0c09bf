/* Extents that are variables of a nested program, as the enclosing equation sees them. An extent of a result is one of
   the equation's operands (Catalyst's InDBIdx) or one of its results (OutDBIdx). */
#include "nested.h"

unsigned operand_of(const Nested *b, uint32_t i) { return b->first + i + (i >= b->jump ? b->skip : 0); }

typedef struct {
    Ctx *cx;
    const Eqn *e;
    const Nested *b;
    bool results_first;
    uint32_t extents; /* leading results that may be extents */
    bool by_result;   /* some extent became a result of the equation */
} Scope;

static Dim result_extent(Scope *s, uint32_t val) {
    for (uint32_t i = 0; i < s->extents && i < s->b->j->out.n && i < s->e->out.n; i++)
        if (s->b->j->out.at[i] == val) {
            s->by_result = true;
            return dim_bound(s->cx->types, s->e->out.at[i]);
        }
    return 0;
}

static Dim operand_extent(Scope *s, uint32_t val) {
    for (uint32_t i = 0; i < s->b->j->in.n && i < s->b->n; i++) {
        if (s->b->j->in.at[i] != val) continue;
        if (i + 1 == s->b->counter) return 0;
        Val v = s->e->in.at[operand_of(s->b, i)];
        const Lit *lit = val_info(s->cx, v)->lit;
        return !lit ? dim_bound(s->cx->types, v) : lit->negative ? -(Dim)lit->i : (Dim)lit->i;
    }
    return 0;
}

static Dim outward(void *user, Dim atom) {
    Scope *s = user;
    const DimExpr *d = dim_at(s->cx->types, atom);
    if (d->kind != DIM_BOUND) return atom;
    Dim first = s->results_first ? result_extent(s, d->val) : operand_extent(s, d->val);
    if (first) return first;
    Dim second = s->results_first ? operand_extent(s, d->val) : result_extent(s, d->val);
    return second ? second : atom;
}

Type outer_type(Ctx *cx, const Eqn *e, const Nested *b, Type t) {
    Scope s = {cx, e, b, false, b->j->out.n, false};
    return type_has_bound(cx, t) ? type_substitute(cx->types, t, outward, &s) : t;
}

bool result_outside(Ctx *cx, const Eqn *e, const Nested *b, uint32_t extents, uint32_t i, Type inner, Type *out) {
    Type outer[2];
    Scope s = {cx, e, b, false, extents, false};
    if (!type_has_bound(cx, inner)) return *out = inner, true;
    for (unsigned k = 0; k < 2; k++) {
        s.results_first = k;
        outer[k] = type_substitute(cx->types, inner, outward, &s);
        if (!*out || types_agree(cx, *out, outer[k], result_at(cx, e, i))) return *out = outer[k], true;
    }
    diag(cx->diags, result_at(cx, e, i), "%s gives %s, but '%.*s' is declared as %s", name_of(cx, e),
         type_c(cx, outer[0]), SF(val_name(cx, e->out.at[i])), type_c(cx, *out));
    if (s.by_result)
        diag_note(cx->diags, result_at(cx, e, i),
                  "its extent is a result of the equation itself (OutDBIdx), not an operand");
    return false;
}

typedef struct {
    Ctx *cx;
    const Jaxpr *j;
    uint32_t first, n;
} Round;

static Dim after_round(void *user, Dim atom) {
    Round *r = user;
    const DimExpr *d = dim_at(r->cx->types, atom);
    for (uint32_t i = 0; d->kind == DIM_BOUND && i < r->n && i < r->j->out.n; i++)
        if (r->j->in.at[r->first + i] == d->val) {
            Val v = r->j->out.at[i];
            const Lit *lit = val_info(r->cx, v)->lit;
            return !lit ? dim_bound(r->cx->types, v) : lit->negative ? -(Dim)lit->i : (Dim)lit->i;
        }
    return atom;
}

Type next_round(Ctx *cx, const Jaxpr *j, uint32_t first, uint32_t n, Type t) {
    Round r = {cx, j, first, n};
    return type_has_bound(cx, t) ? type_substitute(cx->types, t, after_round, &r) : t;
}
