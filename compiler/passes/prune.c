/* A program in a parameter that no type rule has examined becomes an empty one: nothing runs it, and it may be ill
   typed. Arrays with more axes than passes have room for are refused. */
#include "rewrite.h"

typedef struct {
    Ctx *cx;
    Memo memo;
    bool failed;
} Prune;

static void ranks(Prune *p, Vals vals, Span span) {
    each(Val, v, vals)
        p->failed = p->failed || !rank_compiles(p->cx, val_type(p->cx, *v), span.n ? span : val_info(p->cx, *v)->span);
}

static Jaxpr *prune_jaxpr(void *user, const Jaxpr *j) {
    Prune *p = user;
    if (*memo_slot(&p->memo, j)) return *memo_slot(&p->memo, j);
    if (!j->checked) return *memo_slot(&p->memo, j) = arena_new(p->cx->arena, Jaxpr, 1);
    Eqns eqns = eqns_for(p->cx, j);
    ranks(p, j->consts, (Span){0});
    ranks(p, j->in, (Span){0});
    each(const Eqn, e, j->eqns) {
        ranks(p, e->in, e->span);
        ranks(p, e->out, e->span);
        bool some = e->params.n && eqn_jaxprs(p->cx->arena, e).n;
        push(p->cx->arena, &eqns, some ? eqn_rewrite(&(ValMap){.cx = p->cx}, e, prune_jaxpr, p) : *e);
    }
    return *memo_slot(&p->memo, j) = jaxpr_with(p->cx, j, eqns, j->out);
}
Jaxpr *pass_prune(Ctx *cx, const Jaxpr *j) {
    if (!j->checked) return (Jaxpr *)j; /* passes wrote it, for which the program that was read was pruned */
    Prune p = {.cx = cx, .memo.arena = cx->arena};
    Jaxpr *pruned = prune_jaxpr(&p, j);
    return p.failed ? NULL : pruned;
}
