/* A while whose condition is an array, as vmap prints it: the loop runs while any lane does, and each lane keeps its
   carry once its own condition is false. It becomes a while with a scalar condition:

     cond  = reduce_or(cond(carry))
     body  = select_n(cond(carry), carry, body(carry)), the condition broadcast along the leading axes of each carry */
#include "../typecheck/rule.h"
#include "rewrite.h"

typedef struct {
    Ctx *cx;
    ValMap map;
    Memo memo;
    bool failed;
} Lanes;

static Param int_list(ParamKey key, uint32_t n, const int64_t *at) {
    return (Param){.key = key, .value = {.kind = V_INTS, .open = '(', .ints = {(int64_t *)at, n}}};
}
/* 0, 1, …, rank - 1 */
static int64_t *axes(Ctx *cx, uint32_t rank) {
    int64_t *at = arena_new(cx->arena, int64_t, rank + 1);
    for (uint32_t i = 0; i < rank; i++) at[i] = i;
    return at;
}
static Val append(Ctx *cx, Eqns *to, Prim prim, Type type, Span span, uint32_t n, const Val *in, Params params) {
    Eqn e = {.prim = prim, .span = span, .whole = span};
    e.in = (Vals){arena_new(cx->arena, Val, n + 1), n};
    if (n) memcpy(e.in.at, in, n * sizeof *in);
    e.out = (Vals){arena_new(cx->arena, Val, 1), 1};
    e.out.at[0] = val_new(cx, type, span);
    e.params = (Params){arena_new(cx->arena, Param, params.n + 1), params.n};
    if (params.n) memcpy(e.params.at, params.at, params.n * sizeof *params.at);
    push(cx->arena, to, e);
    return e.out.at[0];
}
static Vals fresh(Ctx *cx, Vals like) {
    Vals v = {arena_new(cx->arena, Val, like.n + 1), like.n};
    for (uint32_t i = 0; i < v.n; i++) v.at[i] = val_new(cx, val_type(cx, like.at[i]), val_info(cx, like.at[i])->span);
    return v;
}
/* The condition for these inputs, as an array. */
static Val condition(Lanes *l, Eqns *to, const Jaxpr *cond, Vals in, Span span) {
    if (!jaxpr_splice(&l->map, to, cond, in, span)) l->failed = true;
    return valmap_get(&l->map, cond->out.at[0]);
}
static Jaxpr *any_lane(Lanes *l, const Jaxpr *cond, Span span) {
    Ctx *cx = l->cx;
    const Jaxpr *key[2] = {cond};
    if (*memo_at(&l->memo, key, sizeof key)) return *memo_at(&l->memo, key, sizeof key);
    Eqns eqns = {0};
    Vals in = fresh(cx, cond->in);
    Val p = condition(l, &eqns, cond, in, span);
    uint32_t rank = val_array(cx, p)->rank;
    Param all = int_list(K_axes, rank, axes(cx, rank));
    Val any = append(cx, &eqns, P_reduce_or, type_of(cx->types, DT_bool, 0, NULL), span, 1, &p, (Params){&all, 1});
    Vals out = {arena_new(cx->arena, Val, 1), 1};
    out.at[0] = any;
    Jaxpr *j = jaxpr_with(cx, cond, eqns, out);
    j->in = in;
    return *memo_at(&l->memo, key, sizeof key) = j;
}
/* Does the value have the lanes as its leading axes? The other axes are those of each lane. */
static bool has_lanes(Lanes *l, const ArrayType *t, const ArrayType *lanes, Span span) {
    bool ok = t->rank >= lanes->rank;
    for (uint32_t i = 0; ok && i < lanes->rank; i++) ok = dims_agree(l->cx, t->dims[i], lanes->dims[i], span);
    if (ok) return true;
    l->failed = true;
    return diag(l->cx->diags, span, "while: the condition has lanes, but not every carried value has them leading");
}
static Val selected(Lanes *l, Eqns *to, Val p, Val old, Val new, Span span) {
    Ctx *cx = l->cx;
    const ArrayType *t = val_array(cx, old), *lanes = val_array(cx, p);
    if (l->failed || !has_lanes(l, t, lanes, span)) return new;
    bool same = t->rank == lanes->rank;
    for (uint32_t i = 0; same && i < t->rank; i++) same = t->dims[i] == lanes->dims[i];
    if (!same) {
        Param params[2] = {int_list(K_broadcast_dimensions, lanes->rank, axes(cx, lanes->rank)),
                           {.key = K_shape, .value = {.kind = V_DIMS, .open = '(', .dims = {(Dim *)t->dims, t->rank}}}};
        p = append(cx, to, P_broadcast_in_dim, type_of(cx->types, DT_bool, t->rank, t->dims), span, 1, &p,
                   (Params){params, 2});
    }
    Val in[3] = {p, old, new};
    return append(cx, to, P_select_n, val_type(cx, old), span, 3, in, (Params){0});
}
static Jaxpr *masked(Lanes *l, const While *w, Span span) {
    Ctx *cx = l->cx;
    const Jaxpr *key[2] = {w->cond, w->body};
    if (*memo_at(&l->memo, key, sizeof key)) return *memo_at(&l->memo, key, sizeof key);
    Eqns eqns = {0};
    Vals cond_consts = fresh(cx, vals_part(w->cond->in, 0, w->cond_consts.n)), in = fresh(cx, w->body->in);
    Vals carry = vals_part(in, w->body_consts.n, w->carry.n);
    Val p = condition(l, &eqns, w->cond, vals_joined(cx->arena, 2, (Vals[]){cond_consts, carry}), span);
    if (!jaxpr_splice(&l->map, &eqns, w->body, in, span)) l->failed = true;
    Vals next = vals_rewrite(&l->map, w->body->out);
    assert(next.n == carry.n);
    for (uint32_t i = 0; i < next.n; i++) next.at[i] = selected(l, &eqns, p, carry.at[i], next.at[i], span);
    Jaxpr *j = jaxpr_with(cx, w->body, eqns, next);
    j->in = vals_joined(cx->arena, 2, (Vals[]){cond_consts, in});
    Consts consts = {0}; /* of both */
    add_consts(cx->arena, &consts, w->body->consts);
    add_consts(cx->arena, &consts, w->cond->consts);
    j->consts = (Vals){consts.at, consts.n};
    return *memo_at(&l->memo, key, sizeof key) = j;
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
    Eqns eqns = {0};
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
