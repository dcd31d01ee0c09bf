/* A program in a parameter that no type rule has looked at becomes an empty one: nothing runs it, and it may be ill typed. */
#include "rewrite.h"

typedef struct {
    Ctx *cx;
    Memo memo;
} Prune;

static Jaxpr *prune_jaxpr(void *user, const Jaxpr *j) {
    Prune *p = user;
    if (*memo_slot(&p->memo, j)) return *memo_slot(&p->memo, j);
    if (!j->checked) return *memo_slot(&p->memo, j) = arena_new(p->cx->arena, Jaxpr, 1);
    Eqns eqns = {0};
    each(const Eqn, e, j->eqns) {
        bool some = e->params.n && eqn_jaxprs(p->cx->arena, e).n;
        push(p->cx->arena, &eqns, some ? eqn_rewrite(&(ValMap){.cx = p->cx}, e, prune_jaxpr, p) : *e);
    }
    return *memo_slot(&p->memo, j) = jaxpr_with(p->cx, j, eqns, j->out);
}
Jaxpr *pass_prune(Ctx *cx, const Jaxpr *j) { return prune_jaxpr(&(Prune){.cx = cx, .memo.arena = cx->arena}, j); }
