/* Removes `again`. inline writes it for the operands of what is computed a second time to save memory (remat), so that
   cse does not find that it was computed before; after cse it is its operand. */
#include "rewrite.h"

typedef struct {
    ValMap map;
    Memo memo;
} Again;

static Jaxpr *again_jaxpr(void *user, const Jaxpr *j) {
    Again *a = user;
    Ctx *cx = a->map.cx;
    if (*memo_slot(&a->memo, j)) return *memo_slot(&a->memo, j);
    Eqns eqns = {0};
    each(const Eqn, e, j->eqns) {
        if (e->prim == P_again)
            val_replace(&a->map, &eqns, e->out.at[0], valmap_get(&a->map, e->in.at[0]));
        else
            push(cx->arena, &eqns, eqn_rewrite(&a->map, e, again_jaxpr, a));
    }
    return *memo_slot(&a->memo, j) = jaxpr_with(cx, j, eqns, vals_rewrite(&a->map, j->out));
}
Jaxpr *pass_again(Ctx *cx, const Jaxpr *j) {
    Again a = {.map.cx = cx, .memo.arena = cx->arena};
    return again_jaxpr(&a, j);
}
