/* A parameter that holds a program which no type rule has looked at becomes None: nothing runs it, and it may be ill typed. */
#include "rewrite.h"

typedef struct {
    Ctx *cx;
    Memo memo;
} Prune;

static bool checked(const Prune *p, const Value *v) {
    Jaxprs programs = value_jaxprs(p->cx->arena, v);
    each(Jaxpr *, j, programs)
        if (!(*j)->checked) return false;
    return true;
}
static Jaxpr *prune_jaxpr(void *user, const Jaxpr *j) {
    Prune *p = user;
    if (*memo_slot(&p->memo, j)) return *memo_slot(&p->memo, j);
    Eqns eqns = {0};
    each(const Eqn, e, j->eqns) {
        Eqn kept = *e;
        if (e->params.n && eqn_jaxprs(p->cx->arena, e).n) {
            kept.params.at = arena_new(p->cx->arena, Param, e->params.n);
            memcpy(kept.params.at, e->params.at, e->params.n * sizeof(Param));
            each(Param, param, kept.params)
                if (!checked(p, &param->value)) param->value = (Value){.kind = V_NONE};
            kept = eqn_rewrite(&(ValMap){.cx = p->cx}, &kept, prune_jaxpr, p);
        }
        push(p->cx->arena, &eqns, kept);
    }
    return *memo_slot(&p->memo, j) = jaxpr_with(p->cx, j, eqns, j->out);
}
Jaxpr *pass_prune(Ctx *cx, const Jaxpr *j) { return prune_jaxpr(&(Prune){.cx = cx, .memo.arena = cx->arena}, j); }
