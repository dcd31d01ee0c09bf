/* f(-x) of an odd f is -f(x), of an even one f(x): a program that has both, also of (-x) c and x c, or x / c and x /
   -c, computes one. Exact, but for the sign of a NaN: roundings are symmetric, and so are the programs of stdlib/. */
#include "rewrite.h"
#include <math.h>

/* Equal to `v`, or to -v. */
typedef struct {
    Val v;
    bool negative;
} Signed;
typedef struct {
    Ctx *cx;
    ValMap map;
    Memo memo;
    Effects effects;
    Intern numbers; /* literals without their sign */
    struct {
        Signed *at;
        uint32_t n, cap;
    } known; /* by Val; v is 0: nothing is */
} Signs;
/* The equations of one program, by primitive and operands without their signs. */
typedef struct {
    Intern table;
    struct {
        Signed *at; /* what such an equation gives: the result of the first, or -1 times it */
        uint32_t n, cap;
    } results;
} Scope;

static Signed signed_of(const Signs *s, Val v) {
    bool known = v < s->known.n && s->known.at[v].v;
    return known ? s->known.at[v] : (Signed){v, false};
}
static void learn(Signs *s, Val v, Signed is) {
    while (s->known.n <= v) push(s->cx->arena, &s->known, (Signed){0});
    s->known.at[v] = is;
}
/* A number for the operand without its sign, and the sign. */
static uint64_t magnitude(Signs *s, Val v, bool *negative) {
    const ValInfo *info = val_info(s->cx, v);
    const Lit *lit = info->lit;
    *negative = false;
    if (!lit) {
        Signed is = signed_of(s, v);
        *negative = is.negative;
        return is.v;
    }
    if ((lit->kind != LIT_FLOAT && lit->kind != LIT_INT) || isnan(lit->re)) return v;
    *negative = lit->kind == LIT_FLOAT ? signbit(lit->re) : lit->negative;
    double re = fabs(lit->re);
    uint64_t key[] = {info->type, lit->kind, lit->i, 0};
    memcpy(&key[3], &re, sizeof re);
    return (uint64_t)intern(&s->numbers, key, sizeof key, NULL) + ((uint64_t)1 << 32);
}

static bool has_sign(const Signs *s, const Eqn *e) {
    if (e->out.n != 1 || dim_is_bound(s->cx->types, e->out.at[0])) return false; /* types refer to extents */
    const ArrayType *t = val_array(s->cx, e->out.at[0]);
    return dtype_info[t->dtype].kind == DK_FLOAT && float_format[t->dtype].special != FLOAT_POWER;
}
/* What the equation gives, if an earlier one gives the same or its negative; v is 0: none does. */
static Signed earlier(Signs *s, Scope *scope, const Eqn *e) {
    bool odd = prim_is(e->prim, ODD), even = prim_is(e->prim, EVEN), pair = e->prim == P_mul || e->prim == P_div;
    if (!odd && !even && !pair) return (Signed){0};
    bool negative[2] = {false, false}, fresh;
    uint64_t key[4] = {e->prim, val_type(s->cx, e->out.at[0])};
    for (uint32_t i = 0; i < (pair ? 2 : 1); i++) key[2 + i] = magnitude(s, e->in.at[i], &negative[i]);
    if (e->prim == P_mul && key[2] > key[3]) {
        uint64_t first = key[2];
        key[2] = key[3], key[3] = first;
    }
    Signed here = {e->out.at[0], !even && negative[0] != negative[1]};
    uint32_t n = intern(&scope->table, key, sizeof key, &fresh);
    if (fresh) {
        push(s->cx->arena, &scope->results, here);
        return (Signed){0};
    }
    Signed found = scope->results.at[n];
    return (Signed){found.v, found.negative != here.negative};
}
static void eqn_signs(Signs *s, Scope *scope, Eqns *to, Eqn e) {
    bool point = has_sign(s, &e) && !eqn_has_effects(&s->effects, &e);
    Signed is = {0};
    if (point && e.prim == P_neg && !val_info(s->cx, e.in.at[0])->lit) {
        is = signed_of(s, e.in.at[0]);
        is.negative = !is.negative;
    } else if (point) {
        is = earlier(s, scope, &e);
    }
    if (is.v) learn(s, e.out.at[0], is);
    bool function = (prim_is(e.prim, ODD) || prim_is(e.prim, EVEN));
    if (is.v && function && !is.negative) {
        valmap_put(&s->map, e.out.at[0], is.v);
        return;
    }
    if (is.v && function) {
        Val *in = arena_new(s->cx->arena, Val, 1);
        *in = is.v;
        e.prim = P_neg, e.in = (Vals){in, 1}, e.in_at = NULL, e.params = (Params){0};
    }
    push(s->cx->arena, to, e);
}
static Jaxpr *signs_jaxpr(void *user, const Jaxpr *j) {
    Signs *s = user;
    if (*memo_slot(&s->memo, j)) return *memo_slot(&s->memo, j);
    Scope scope = {.table.arena = s->cx->arena};
    Eqns eqns = eqns_for(s->cx, j);
    each(const Eqn, e, j->eqns) eqn_signs(s, &scope, &eqns, eqn_rewrite(&s->map, e, signs_jaxpr, s));
    return *memo_slot(&s->memo, j) = jaxpr_with(s->cx, j, eqns, vals_rewrite(&s->map, j->out));
}
Jaxpr *pass_signs(Ctx *cx, const Jaxpr *j) {
    Signs s = {.cx = cx, .map.cx = cx, .memo.arena = cx->arena, .numbers.arena = cx->arena, .effects.cx = cx};
    return signs_jaxpr(&s, j);
}
