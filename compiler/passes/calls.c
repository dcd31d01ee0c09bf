/* Calls that take or give references become their bodies, since references become values (state.c) along loops and
   branches, but not through calls. An equation that only gives its operands back (SAME in prims.def) goes if one of
   them is a reference. All other calls stay, and with them their names, rules, policies and the bodies that they
   share. */
#include "../typecheck/rule.h"
#include "rewrite.h"

typedef struct {
    Ctx *cx;
    ValMap map;
    Memo memo;
    bool failed;
} Calls;

static Jaxpr *calls_jaxpr(void *user, const Jaxpr *j);

static bool some_ref(const Ctx *cx, Vals vs) {
    each(const Val, v, vs)
        if (type_is_ref(cx, val_type(cx, *v))) return true;
    return false;
}

/* Appends what `e` becomes; false after a diagnostic. */
static bool calls_eqn(void *user, Eqns *to, Consts *consts, const Eqn *e) {
    Calls *c = user;
    Vals operands;
    bool refs = some_ref(c->cx, e->in) || some_ref(c->cx, e->out);
    const Jaxpr *body = eqn_body(c->cx->arena, e, &operands);
    if (body && (refs || some_ref(c->cx, body->consts))) {
        body = calls_jaxpr(c, body);
        if (!body) return false;
        add_consts(c->cx->arena, consts, body->consts);
        return jaxpr_splice_call(&c->map, to, body, vals_rewrite(&c->map, operands), e);
    }
    if (refs && prim_lower[e->prim] == LOWER_SAME) {
        results_replace(&c->map, to, e);
        return true;
    }
    Eqn new = eqn_rewrite(&c->map, e, calls_jaxpr, c);
    name_indices(c->cx, to, &new);
    push(c->cx->arena, to, new);
    return !c->failed;
}

static Jaxpr *calls_jaxpr(void *user, const Jaxpr *j) {
    Calls *c = user;
    Jaxpr *new = c->failed ? NULL : jaxpr_rewrite(&c->map, &c->memo, j, calls_eqn, c);
    c->failed = !new;
    return new;
}

Jaxpr *pass_calls(Ctx *cx, const Jaxpr *j) {
    Calls c = {.cx = cx, .map.cx = cx, .memo.arena = cx->arena};
    return calls_jaxpr(&c, j);
}
