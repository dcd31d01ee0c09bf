/* --remat: what loops keep for the backward part, unless equations of the program say what is computed again. */
#include "scan.h"

typedef struct {
    Ctx *cx;
    bool (*is)(const Eqn *);
    Intern seen;
} Walk;
static bool walk(Walk *w, const Jaxpr *j);
static bool walk_eqn(Walk *w, const Eqn *e) {
    Jaxprs within = e->params.n ? eqn_jaxprs(w->cx->arena, e) : (Jaxprs){0};
    bool found = w->is(e);
    for (uint32_t k = 0; k < within.n && !found; k++) found = walk(w, within.at[k]);
    return found;
}
static bool walk(Walk *w, const Jaxpr *j) {
    bool fresh, found = false;
    intern(&w->seen, &j, sizeof j, &fresh);
    for (uint32_t i = 0; fresh && !found && i < j->eqns.n; i++) found = walk_eqn(w, &j->eqns.at[i]);
    return found;
}
static bool is_remat(const Eqn *e) { return prim_is(e->prim, REMAT); }
static bool is_dot(const Eqn *e) { return e->prim == P_dot_general || e->prim == P_conv_general_dilated; }

Keep keeps(const Tx *tx, const Jaxpr *body) {
    Keep keep = tx->cx->options->keep;
    Walk w = {tx->cx, is_remat, {.arena = tx->cx->arena}};
    return keep == KEEP_LEAST || tx->in_remat || walk(&w, body) ? KEEP_LEAST : keep;
}
/* Also a call with a rule of its own, which stays one, if all that it runs is cheap. */
static bool cheap(Walk *w, const Eqn *e, bool within) {
    Vals in;
    const Jaxpr *body = within || has_own_rule(e->prim) ? eqn_body(w->cx->arena, e, &in) : NULL;
    bool fresh = false, all = body || eqn_cheap(e);
    if (body) intern(&w->seen, &body, sizeof body, &fresh);
    for (uint32_t i = 0; fresh && all && i < body->eqns.n; i++) all = cheap(w, &body->eqns.at[i], true);
    return all;
}
bool computed_again(const Tx *tx, Keep keep, const Eqn *e) {
    Walk w = {tx->cx, is_dot, {.arena = tx->cx->arena}};
    if (keep == KEEP_CARRY || (keep == KEEP_DOTS && !walk_eqn(&w, e))) return true;
    w.seen = (Intern){.arena = tx->cx->arena};
    return cheap(&w, e, false);
}
