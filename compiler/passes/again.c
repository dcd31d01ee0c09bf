/* Removes `again`. inline writes it for the operands of what is computed a second time to save memory (remat), so that
   cse does not find that it was computed before; after cse it is its operand. */
#include "rewrite.h"

typedef struct {
    ValMap map;
    Memo memo;
} Again;

static Jaxpr *again_jaxpr(void *user, const Jaxpr *j);
static bool again_eqn(void *user, Eqns *to, Consts *consts, const Eqn *e) {
    Again *a = user;
    if (e->prim == P_again)
        results_replace(&a->map, to, e);
    else
        push(a->map.cx->arena, to, eqn_rewrite(&a->map, e, again_jaxpr, a));
    return true;
}
static Jaxpr *again_jaxpr(void *user, const Jaxpr *j) {
    Again *a = user;
    return jaxpr_rewrite(&a->map, &a->memo, j, again_eqn, a);
}
Jaxpr *pass_again(Ctx *cx, const Jaxpr *j) {
    Again a = {.map.cx = cx, .memo.arena = cx->arena};
    return again_jaxpr(&a, j);
}
