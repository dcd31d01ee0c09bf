/* A while whose condition is an array, as vmap prints it: the loop runs while any lane does, and each lane keeps its
   carry once its own condition is false. It becomes a while with a scalar condition:

     cond  = reduce_or(cond(carry))
     body  = select_n(cond(carry), carry, body(carry)), the condition broadcast along the leading axes of each carry */
#include "../typecheck/rule.h"
#include "build.h"

typedef struct {
    Ctx *cx;
    ValMap map;
    Memo memo;
    bool failed;
} Lanes;

/* 0, 1, …, rank - 1 */
static const int64_t *axes(Ctx *cx, uint32_t rank) {
    int64_t *at = arena_new(cx->arena, int64_t, rank + 1);
    for (uint32_t i = 0; i < rank; i++) at[i] = i;
    return at;
}
static Vals fresh(Ctx *cx, Vals like) {
    Vals v = {arena_new(cx->arena, Val, like.n + 1), like.n};
    for (uint32_t i = 0; i < v.n; i++) v.at[i] = val_new(cx, val_type(cx, like.at[i]), val_info(cx, like.at[i])->span);
    return v;
}
/* A program like `j` with these inputs and what was built. */
static Jaxpr *built(Lanes *l, const Builder *b, const Jaxpr *j, Vals in, Vals out) {
    Jaxpr *new = jaxpr_with(l->cx, j, b->eqns, out);
    new->in = in;
    new->consts = (Vals){b->consts.at, b->consts.n};
    l->failed |= b->failed;
    return new;
}
static Jaxpr *any_lane(Lanes *l, const Jaxpr *cond, Span span) {
    const Jaxpr *key[2] = {cond};
    if (*memo_at(&l->memo, key, sizeof key)) return *memo_at(&l->memo, key, sizeof key);
    Builder b = {.cx = l->cx, .span = span};
    Vals in = fresh(l->cx, cond->in), out = b_call(&b, cond, in.n, in.at);
    uint32_t rank = b.failed ? 0 : b_type(&b, out.at[0])->rank;
    out.at[0] = b_reduce(&b, P_reduce_or, out.at[0], rank, axes(l->cx, rank));
    return *memo_at(&l->memo, key, sizeof key) = built(l, &b, cond, in, out);
}
/* Does the value have the lanes as its leading axes? The other axes are those of each lane. */
static bool has_lanes(Ctx *cx, const ArrayType *t, const ArrayType *lanes, Span span) {
    bool ok = t->rank >= lanes->rank;
    for (uint32_t i = 0; ok && i < lanes->rank; i++) ok = dims_agree(cx, t->dims[i], lanes->dims[i], span);
    return ok || diag(cx->diags, span, "while: the condition has lanes, but not every carried value has them leading");
}
static Val selected(Builder *b, Val p, Val old, Val new) {
    if (b_failed(b, new)) return VAL_FAILED;
    const ArrayType *t = b_type(b, old), *lanes = b_type(b, p);
    b->failed = !has_lanes(b->cx, t, lanes, b->span);
    bool same = t->rank == lanes->rank;
    for (uint32_t i = 0; same && i < t->rank; i++) same = t->dims[i] == lanes->dims[i];
    if (!same) p = b_broadcast(b, p, t->rank, t->dims, axes(b->cx, lanes->rank));
    return b_select(b, p, old, new);
}
static Jaxpr *masked(Lanes *l, const While *w, Span span) {
    Ctx *cx = l->cx;
    const Jaxpr *key[2] = {w->cond, w->body};
    if (*memo_at(&l->memo, key, sizeof key)) return *memo_at(&l->memo, key, sizeof key);
    Builder b = {.cx = cx, .span = span};
    Vals cond_consts = fresh(cx, vals_part(w->cond->in, 0, w->cond_consts.n)), in = fresh(cx, w->body->in);
    Vals carry = vals_part(in, w->body_consts.n, w->carry.n);
    Vals all = vals_joined(cx->arena, 2, (Vals[]){cond_consts, carry});
    Val p = b_call(&b, w->cond, all.n, all.at).at[0];
    Vals next = b_call(&b, w->body, in.n, in.at);
    assert(next.n == carry.n);
    for (uint32_t i = 0; i < next.n; i++) next.at[i] = selected(&b, p, carry.at[i], next.at[i]);
    Vals inputs = vals_joined(cx->arena, 2, (Vals[]){cond_consts, in});
    return *memo_at(&l->memo, key, sizeof key) = built(l, &b, w->body, inputs, next);
}
static Jaxpr *lanes_jaxpr(void *user, const Jaxpr *j);

/* `e` with this condition and body. */
static Eqn scalar_while(Lanes *l, const Eqn *e, While w) {
    Arena *arena = l->cx->arena;
    Jaxpr *test = any_lane(l, w.cond, e->span), *turn = masked(l, &w, e->span);
    w.body_consts = vals_joined(arena, 2, (Vals[]){w.cond_consts, w.body_consts});
    w.cond = test, w.body = turn;
    return while_eqn(arena, e, &w);
}
static Jaxpr *lanes_jaxpr(void *user, const Jaxpr *j) {
    Lanes *l = user;
    if (*memo_slot(&l->memo, j)) return *memo_slot(&l->memo, j);
    Eqns eqns = eqns_for(l->cx, j);
    each(const Eqn, e, j->eqns) {
        Eqn new = eqn_rewrite(&l->map, e, lanes_jaxpr, l);
        While w = while_of(&new);
        bool lanes = w.cond && val_array(l->cx, w.cond->out.at[0])->rank > 0;
        push(l->cx->arena, &eqns, lanes ? scalar_while(l, &new, w) : new);
    }
    return *memo_slot(&l->memo, j) = jaxpr_with(l->cx, j, eqns, j->out);
}
Jaxpr *pass_lanes(Ctx *cx, const Jaxpr *j) {
    Lanes l = {.cx = cx, .map.cx = cx, .memo.arena = cx->arena};
    Jaxpr *new = lanes_jaxpr(&l, j);
    return l.failed ? NULL : new;
}
