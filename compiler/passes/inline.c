/* Calls become their bodies: jit, remat, custom_jvp_call and so on, and a cond whose index is a
   literal. Bodies are inlined bottom-up and remembered, so that a body called in many places is
   worked on once; each call then gets a copy with values of its own. What gives its operands back
   (SAME in prims.def) goes.

   Functions that call functions twice grow as 2^depth: the program that comes out has a limit. */
#include "rewrite.h"

typedef struct {
    Ctx *cx;
    ValMap map;
    Memo memo;
    bool failed;
} Inline;

static Jaxpr *inline_jaxpr(void *user, const Jaxpr *j);

static bool known(Vals consts, const Ctx *cx) {
    each(Val, v, consts)
        if (!val_info(cx, *v)->data) return false;
    return true;
}
/* What control flow cannot have yet: constants of its programs' own whose values are not known. */
static bool nested_ok(Ctx *cx, const Eqn *e) {
    Jaxprs subs = eqn_jaxprs(cx->arena, e);
    each(Jaxpr *, j, subs)
        if (*j && !known((*j)->consts, cx))
            return diag(cx->diags, (*j)->span.n ? (*j)->span : e->span,
                        "%s: constants inside a nested program are not supported yet", prim_name[e->prim]);
    return true;
}

/* Appends what `e` becomes; false after a diagnostic. */
static bool inline_eqn(Inline *in, Eqns *to, Consts *consts, const Eqn *e) {
    Vals operands;
    const Jaxpr *body = call_body(&in->map, e, &operands);
    if (body) {
        body = inline_jaxpr(in, body);
        if (!body) return false;
        add_consts(in->cx->arena, consts, body->consts);
        if (!jaxpr_splice_call(&in->map, to, body, vals_rewrite(&in->map, operands), e)) return false;
    } else if (prim_lower[e->prim] == LOWER_SAME) {
        for (uint32_t i = 0; i < e->out.n; i++)
            val_replace(&in->map, to, e->out.at[i], valmap_get(&in->map, e->in.at[i]));
    } else if (prim_lower[e->prim] != LOWER_CALL) {
        Eqn new = eqn_rewrite(&in->map, e, inline_jaxpr, in);
        if (in->failed || !nested_ok(in->cx, &new)) return false;
        name_indices(in->cx, to, &new);
        push(in->cx->arena, to, new);
    } else {
        return diag(in->cx->diags, e->span, "primitive '%s' is not supported yet", prim_name[e->prim]);
    }
    return true;
}

static Jaxpr *inline_jaxpr(void *user, const Jaxpr *j) {
    Inline *in = user;
    Ctx *cx = in->cx;
    if (*memo_slot(&in->memo, j)) return *memo_slot(&in->memo, j);
    Eqns eqns = {0};
    Consts consts = {0};
    add_consts(cx->arena, &consts, j->consts);
    for (uint32_t i = 0; i < j->eqns.n && !in->failed; i++)
        in->failed = !inline_eqn(in, &eqns, &consts, &j->eqns.at[i]) || in->failed;
    if (in->failed) return NULL;
    Jaxpr *new = jaxpr_with(cx, j, eqns, vals_rewrite(&in->map, j->out));
    new->consts = (Vals){consts.at, consts.n};
    return *memo_slot(&in->memo, j) = new;
}

Jaxpr *pass_inline(Ctx *cx, const Jaxpr *j) {
    Inline in = {.cx = cx, .map.cx = cx, .memo.arena = cx->arena};
    return inline_jaxpr(&in, j);
}
