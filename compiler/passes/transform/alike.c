/* Are two programs the same but for the arrangement of axes? JAX writes the body of a function of numbers with other
   reshapes and axes for each rank of its operands: what is left without them is the same list of equations. */
#include "rules.h"
#include "../../control.h"
#include <math.h>

typedef struct {
    Ctx *cx;
    ValMap source[2]; /* of each program: where the value comes from that is only arranged anew */
    ValMap partner;   /* of a value of the first: that of the second */
} Alike;

/* Equations that only arrange their operand anew. */
static bool arranges(const Eqn *e) {
    static const Prim prims[] = {P_broadcast_in_dim, P_reshape, P_squeeze, P_expand_dims,
                                 P_transpose,        P_copy,    P_copy_p};
    for (size_t i = 0; i < sizeof prims / sizeof *prims; i++)
        if (prims[i] == e->prim) return e->in.n == 1;
    return false;
}
/* The next equation that computes something, at or after `i`. */
static uint32_t next(Alike *a, unsigned which, const Jaxpr *j, uint32_t i) {
    for (; i < j->eqns.n && arranges(&j->eqns.at[i]); i++) {
        const Eqn *e = &j->eqns.at[i];
        valmap_put(&a->source[which], e->out.at[0], valmap_get(&a->source[which], e->in.at[0]));
    }
    return i;
}
static bool alike_types(const Alike *a, Val x, Val y) {
    return val_array(a->cx, x)->dtype == val_array(a->cx, y)->dtype;
}
static bool alike_literals(const Alike *a, Val x, Val y) {
    const Lit *l = val_info(a->cx, x)->lit, *m = val_info(a->cx, y)->lit;
    if (l->kind != m->kind || l->i != m->i || l->negative != m->negative) return false;
    bool nan = l->kind == LIT_FLOAT && isnan(l->re) && isnan(m->re);
    return nan || l->kind < LIT_FLOAT || (l->re == m->re && l->im == m->im && !signbit(l->re) == !signbit(m->re));
}
static bool alike_vals(Alike *a, Vals x, Vals y) {
    bool same = x.n == y.n;
    for (uint32_t i = 0; i < x.n && same; i++) {
        Val v = valmap_get(&a->source[0], x.at[i]), w = valmap_get(&a->source[1], y.at[i]);
        bool literal = val_info(a->cx, v)->lit, other = val_info(a->cx, w)->lit;
        same = literal == other && alike_types(a, v, w) &&
               (literal ? alike_literals(a, v, w) : valmap_get(&a->partner, v) == w);
    }
    return same;
}
static bool bind(Alike *a, Vals x, Vals y) {
    bool same = x.n == y.n;
    for (uint32_t i = 0; i < x.n && same; i++) {
        same = alike_types(a, x.at[i], y.at[i]);
        valmap_put(&a->partner, x.at[i], y.at[i]);
    }
    return same;
}
/* Numbers, names and element types; not those that number or size axes. */
static bool alike_params(const Eqn *x, const Eqn *y) {
    each(const Param, p, x->params) {
        const Param *q = param_find(y, p->key);
        bool axes = p->key == K_axis || p->key == K_dimension;
        if (!q || p->value.kind != q->value.kind) return axes;
        if (axes) continue;
        ValueKind kind = p->value.kind;
        if ((kind == V_BOOL || kind == V_INT || kind == V_DTYPE) && p->value.i != q->value.i) return false;
        if ((kind == V_FLOAT || kind == V_WORD || kind == V_STR) && !str_eq(p->value.s, q->value.s)) return false;
    }
    return true;
}
static bool alike_programs(Alike *a, const Jaxpr *x, const Jaxpr *y);
static bool alike_eqns(Alike *a, const Eqn *x, const Eqn *y) {
    if (x->prim != y->prim || !alike_vals(a, x->in, y->in) || !alike_params(x, y)) return false;
    Jaxprs in_x = eqn_jaxprs(a->cx->arena, x), in_y = eqn_jaxprs(a->cx->arena, y);
    bool same = in_x.n == in_y.n;
    for (uint32_t i = 0; i < in_x.n && same; i++) same = alike_programs(a, in_x.at[i], in_y.at[i]);
    return same && bind(a, x->out, y->out);
}
static bool alike_programs(Alike *a, const Jaxpr *x, const Jaxpr *y) {
    if (!x || !y || !bind(a, x->consts, y->consts) || !bind(a, x->in, y->in)) return false;
    uint32_t i = next(a, 0, x, 0), k = next(a, 1, y, 0);
    while (i < x->eqns.n && k < y->eqns.n) {
        if (!alike_eqns(a, &x->eqns.at[i], &y->eqns.at[k])) return false;
        i = next(a, 0, x, i + 1), k = next(a, 1, y, k + 1);
    }
    return i == x->eqns.n && k == y->eqns.n && alike_vals(a, x->out, y->out);
}
bool programs_alike(Ctx *cx, const Jaxpr *x, const Jaxpr *y) {
    ValMap empty = {.cx = cx, .sparse = true};
    return alike_programs(&(Alike){cx, {empty, empty}, empty}, x, y);
}
