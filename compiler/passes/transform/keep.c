/* --remat: what loops keep for the backward part, unless equations of the program say what is computed again. */
#include "scan.h"

static bool is_remat(const Eqn *e, Jaxprs within) { return prim_is(e->prim, REMAT); }
static bool is_dot(const Eqn *e, Jaxprs within) {
    return e->prim == P_dot_general || e->prim == P_conv_general_dilated;
}

Keep keeps(const Tx *tx, const Jaxpr *body) {
    Keep keep = tx->cx->options->keep;
    Search remats = {.cx = tx->cx};
    return keep == KEEP_LEAST || tx->in_remat || jaxpr_contains(&remats, body, is_remat) ? KEEP_LEAST : keep;
}
/* Also a call with a rule of its own, which stays one, if all that it runs is cheap. */
static bool cheap(Ctx *cx, Intern *seen, const Eqn *e, bool within) {
    Vals in;
    const Jaxpr *body = within || has_own_rule(e->prim) ? eqn_body(cx->arena, e, &in) : NULL;
    bool fresh = false, all = body || eqn_cheap(e);
    if (body) intern(seen, &body, sizeof body, &fresh);
    for (uint32_t i = 0; fresh && all && i < body->eqns.n; i++) all = cheap(cx, seen, &body->eqns.at[i], true);
    return all;
}
bool computed_again(const Tx *tx, Keep keep, const Eqn *e) {
    Search dots = {.cx = tx->cx};
    Intern seen = {.arena = tx->cx->arena};
    return keep == KEEP_CARRY || (keep == KEEP_DOTS && !eqn_contains(&dots, e, is_dot)) ||
           cheap(tx->cx, &seen, e, false);
}
