/* A program in a parameter that no type rule has looked at becomes None: nothing runs it, and it may be ill typed. */
#include "rewrite.h"

typedef struct {
    Ctx *cx;
    Memo memo;
} Prune;

static Value pruned(const Prune *p, Value v) {
    bool gone = v.kind == V_JAXPR && v.jaxpr && !v.jaxpr->checked;
    for (uint32_t i = 0; v.kind == V_JAXPRS && i < v.jaxprs.n; i++) gone |= !v.jaxprs.at[i]->checked;
    if (gone) return (Value){.kind = V_NONE};
    if (v.kind != V_LIST && v.kind != V_PAIR) return v;
    Value *at = arena_new(p->cx->arena, Value, v.list.n);
    for (uint32_t i = 0; i < v.list.n; i++) {
        at[i] = pruned(p, v.list.at[i]);
        gone |= at[i].kind == V_NONE && v.list.at[i].kind != V_NONE;
    }
    if (gone && v.kind == V_LIST && !v.open) return (Value){.kind = V_NONE}; /* words in a row: None would be one of them */
    v.list.at = at;
    return v;
}
static Jaxpr *prune_jaxpr(void *user, const Jaxpr *j) {
    Prune *p = user;
    if (*memo_slot(&p->memo, j)) return *memo_slot(&p->memo, j);
    Eqns eqns = {0};
    each(const Eqn, e, j->eqns) {
        Eqn kept = *e;
        if (e->params.n && eqn_jaxprs(p->cx->arena, e).n) {
            kept.params.at = arena_new(p->cx->arena, Param, e->params.n);
            for (uint32_t i = 0; i < e->params.n; i++) {
                kept.params.at[i] = e->params.at[i];
                kept.params.at[i].value = pruned(p, e->params.at[i].value);
            }
            kept = eqn_rewrite(&(ValMap){.cx = p->cx}, &kept, prune_jaxpr, p);
        }
        push(p->cx->arena, &eqns, kept);
    }
    return *memo_slot(&p->memo, j) = jaxpr_with(p->cx, j, eqns, j->out);
}
Jaxpr *pass_prune(Ctx *cx, const Jaxpr *j) { return prune_jaxpr(&(Prune){.cx = cx, .memo.arena = cx->arena}, j); }
