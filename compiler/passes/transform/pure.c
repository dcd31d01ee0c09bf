/* Programs without their effects: what runs a second time, to count iterations or because it is computed again, prints
   and checks nothing again. What has an effect and results cannot be left out. */
#include "scan.h"

typedef struct {
    Ctx *cx;
    Intern seen;
} Walk;
static const Eqn *kept_in(Walk *w, const Jaxpr *j);
static const Eqn *kept_by(Walk *w, const Eqn *e) {
    if (!e->out.n) return NULL;
    if (eqn_impure(e)) return e;
    Jaxprs within = e->params.n ? eqn_jaxprs(w->cx->arena, e) : (Jaxprs){0};
    const Eqn *kept = NULL;
    for (uint32_t k = 0; k < within.n && !kept; k++) kept = kept_in(w, within.at[k]);
    return kept;
}
static const Eqn *kept_in(Walk *w, const Jaxpr *j) {
    const Eqn *kept = NULL;
    bool fresh;
    intern(&w->seen, &j, sizeof j, &fresh);
    for (uint32_t i = 0; fresh && i < j->eqns.n && !kept; i++) kept = kept_by(w, &j->eqns.at[i]);
    return kept;
}
const Eqn *effect_kept(Tx *tx, const Eqn *e) {
    Walk w = {tx->cx, {.arena = tx->cx->arena}};
    return eqn_has_effects(&flow_of(tx)->effects, e) ? kept_by(&w, e) : NULL;
}
const Eqn *effect_kept_in(Tx *tx, const Jaxpr *j) {
    Walk w = {tx->cx, {.arena = tx->cx->arena}};
    return kept_in(&w, j);
}

static Jaxpr *without_effects(void *user, const Jaxpr *j) {
    Tx *tx = user;
    Flow *f = flow_of(tx);
    if (!jaxpr_has_effects(&f->effects, j)) return (Jaxpr *)j;
    if (*memo_slot(&f->pure, j)) return *memo_slot(&f->pure, j);
    Eqns eqns = {0};
    ValMap own = {.cx = tx->cx, .sparse = true}, same = own;
    const Jaxpr *copy = program_copied(tx->cx, j, &own, NULL, 0);
    each(const Eqn, e, copy->eqns)
        if (e->out.n) push(tx->cx->arena, &eqns, eqn_rewrite(&same, e, without_effects, tx));
    return *memo_slot(&f->pure, j) = jaxpr_with(tx->cx, copy, eqns, copy->out);
}
const Jaxpr *jaxpr_pure(Tx *tx, const Jaxpr *j) { return without_effects(tx, j); }
void b_copied_pure(Tx *tx, Builder *b, ValMap *map, const Eqn *old) {
    const ValMap same = {.cx = tx->cx, .sparse = true};
    const Eqn pure = eqn_rewrite(&same, old, without_effects, tx);
    b_copied(b, map, &pure);
}
