/* Equations with small results come as early as their operands allow:

     y = sub x m                      v = rsqrt u
     v = rsqrt u           becomes    y = sub x m
     z = mul y v[None]                z = mul y v[None]

   An equation joins the kernel that computes its operands only if all else that it reads is computed before it: here y
   and z are one kernel, though the program has something small between them. The others stay in their order. */
#include "../options.h"
#include "rewrite.h"
#include <assert.h>

enum { SMALL_RESULT = 4096 }; /* elements of the largest result that counts as small */

typedef struct {
    Ctx *cx;
    Memo memo;
    Effects effects;
    uint32_t *after; /* by value: how many equations with large results come before it, one that computes it included */
} Order;

static bool is_large(const Order *o, const Eqn *e) {
    each(const Val, v, e->out) {
        Dim n = type_size(o->cx->types, val_type(o->cx, *v));
        if (!dim_is_const(n) || n > SMALL_RESULT) return true;
    }
    return false;
}
static bool moves(Order *o, const Eqn *e) {
    Lower how = prim_lower[e->prim];
    bool simple = prim_elementwise(e->prim) || how == LOWER_INDEX || how == LOWER_REDUCE || how == LOWER_ARG;
    return simple && e->out.n && !is_large(o, e) && !eqn_has_effects(&o->effects, e);
}
typedef struct {
    const uint32_t *after;
    uint32_t latest;
} Latest;
static void latest(void *user, Val v) {
    Latest *l = user;
    if (l->after[v] > l->latest) l->latest = l->after[v];
}

static Jaxpr *order_jaxpr(void *user, const Jaxpr *j) {
    Order *o = user;
    const ValMap same = {.cx = o->cx};
    if (*memo_slot(&o->memo, j)) return *memo_slot(&o->memo, j);
    uint32_t n = j->eqns.n, stay = 0;
    uint32_t *group = arena_new(o->cx->arena, uint32_t, n + 1), *place = arena_new(o->cx->arena, uint32_t, n + 2);
    for (uint32_t i = 0; i < n; i++) {
        const Eqn *e = &j->eqns.at[i];
        Latest l = {.after = o->after};
        eqn_takes(o->cx, e, latest, &l);
        assert(l.latest <= stay);
        stay += is_large(o, e);
        group[i] = moves(o, e) ? l.latest : stay;
        each(const Val, v, e->out) o->after[*v] = group[i];
        place[group[i] + 1]++;
    }
    for (uint32_t g = 1; g <= stay; g++) place[g] += place[g - 1];
    Eqns eqns = eqns_for(o->cx, j);
    eqns.n = n;
    for (uint32_t i = 0; i < n; i++) eqns.at[place[group[i]]++] = eqn_rewrite(&same, &j->eqns.at[i], order_jaxpr, o);
    return *memo_slot(&o->memo, j) = jaxpr_with(o->cx, j, eqns, j->out);
}

Jaxpr *pass_order(Ctx *cx, const Jaxpr *j) {
    if (options_for_device(cx->options)) return jaxpr_with(cx, j, j->eqns, j->out);
    Order o = {
        .cx = cx, .memo.arena = cx->arena, .effects.cx = cx, .after = arena_new(cx->arena, uint32_t, cx->nvals + 1)};
    return order_jaxpr(&o, j);
}
