/* Tokens and float0 have no elements: inputs, operands and results of these types are removed, and equations with no
   other results. */
#include "rewrite.h"
#include "../control.h"

typedef struct {
    Ctx *cx;
    Memo memo;
    bool failed;
} Tokens;

static bool is_void(const Ctx *cx, Val v) {
    Dtype d = val_array(cx, v)->dtype;
    return d == DT_tok || d == DT_float0;
}
static Vals kept(void *user, Vals vs) {
    Ctx *cx = user;
    Vals some = {arena_new(cx->arena, Val, vs.n + 1), 0};
    each(const Val, v, vs)
        if (!is_void(cx, *v)) some.at[some.n++] = *v;
    return some;
}
static Jaxpr *tokens_jaxpr(void *user, const Jaxpr *j);

static void tokens_eqn(Tokens *t, Eqns *to, const Eqn *e) {
    Ctx *cx = t->cx;
    Eqn new = eqn_rewrite(&(ValMap){.cx = cx}, e, tokens_jaxpr, t);
    bool nested = is_control(e->prim) || calls_function(e);
    Eqn left = control_map(cx->arena, e, &new, kept, kept, cx);
    bool changes = left.in.n < e->in.n || left.out.n < e->out.n;
    if (changes && !left.out.n && !nested && !eqn_impure(e)) return;
    if (changes && !nested) {
        t->failed = !diag(cx->diags, e->span, "%s: operands and results of type Tok or float0 are not supported yet",
                          prim_name[e->prim]);
        return;
    }
    push(cx->arena, to, changes ? left : new);
}
static Jaxpr *tokens_jaxpr(void *user, const Jaxpr *j) {
    Tokens *t = user;
    if (*memo_slot(&t->memo, j)) return *memo_slot(&t->memo, j);
    Eqns eqns = eqns_for(t->cx, j);
    each(const Eqn, e, j->eqns) tokens_eqn(t, &eqns, e);
    Jaxpr *new = jaxpr_with(t->cx, j, eqns, kept(t->cx, j->out));
    new->in = kept(t->cx, j->in), new->consts = kept(t->cx, j->consts);
    return *memo_slot(&t->memo, j) = new;
}

static bool any_void(const Ctx *cx) {
    for (Val v = 1; v < cx->nvals; v++)
        if (val_type(cx, v) && is_void(cx, v)) return true;
    return false;
}
Jaxpr *pass_tokens(Ctx *cx, const Jaxpr *j) {
    Tokens t = {.cx = cx, .memo.arena = cx->arena};
    Jaxpr *new = any_void(cx) ? tokens_jaxpr(&t, j) : (Jaxpr *)j;
    return t.failed ? NULL : new;
}
