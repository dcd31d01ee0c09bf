/* Catalyst's control flow becomes JAX's. Its loops pass the extents of their arrays as implicit
   arguments, ahead of the explicit ones; here these are carries like the others.

     for_loop: consts, implicit, lower, upper, step, first index, explicit; body: consts, implicit, index, explicit
         → while over (index, implicit, explicit), as long as the index is before upper in the direction of step
     while_loop: the same carries without an index → while

   num_implicit_inputs stays where extents of the carries may change from one iteration to the next. */
#include "../typecheck/rule.h"
#include "rewrite.h"

typedef struct {
    Ctx *cx;
    ValMap map;
    Memo memo;
    bool failed;
} Catalyst;

static Val append(Ctx *cx, Eqns *to, Prim prim, Dtype d, Span span, uint32_t n, const Val *in) {
    Eqn e = {.prim = prim, .span = span, .whole = span};
    e.in = (Vals){arena_new(cx->arena, Val, n + 1), n};
    memcpy(e.in.at, in, n * sizeof *in);
    e.out = (Vals){arena_new(cx->arena, Val, 1), 1};
    e.out.at[0] = val_new(cx, type_of(cx->types, d, 0, NULL), span);
    push(cx->arena, to, e);
    return e.out.at[0];
}
static Val integer(Ctx *cx, Dtype d, int64_t v, Span span) {
    Lit l = {.kind = LIT_INT, .i = (uint64_t)v};
    return val_literal(cx, type_of(cx->types, d, 0, NULL), l, span);
}
static Dtype dtype(const Ctx *cx, Val v) { return val_array(cx, v)->dtype; }
static Vals list(Ctx *cx, uint32_t cap) { return (Vals){arena_new(cx->arena, Val, cap + 1), 0}; }
static void add(Vals *to, const Val *v, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) to->at[to->n++] = v[i];
}
/* Fresh inputs for those of `j`, with extents renamed likewise. */
static Val *fresh_inputs(Catalyst *c, const Jaxpr *j) {
    Val *in = arena_new(c->cx->arena, Val, j->in.n + 1);
    for (uint32_t i = 0; i < j->in.n; i++) {
        in[i] = val_new(c->cx, type_rewrite(&c->map, val_type(c->cx, j->in.at[i])), val_info(c->cx, j->in.at[i])->span);
        valmap_put(&c->map, j->in.at[i], in[i]);
    }
    return in;
}

/* ---- for_loop */

/* The program that a loop becomes, for all loops with this body: the condition or the body of the while. */
static Jaxpr **made_of(Catalyst *c, const ForLoop *l, bool condition) {
    uint64_t key[] = {(uintptr_t)l->body, l->consts.n, l->implicit.n, condition};
    return memo_at(&c->memo, key, sizeof key);
}
/* One iteration on new values. */
static ForLoop fresh_turn(Catalyst *c, const ForLoop *l) {
    Jaxpr renamed = *l->body;
    renamed.in.at = fresh_inputs(c, l->body);
    return for_turn(l, &renamed);
}
static Jaxpr *for_condition(Catalyst *c, const ForLoop *l, Span span) {
    Ctx *cx = c->cx;
    Eqns eqns = {0};
    if (*made_of(c, l, true)) return *made_of(c, l, true);
    ForLoop turn = fresh_turn(c, l);
    Val index = turn.bounds.at[0];
    Dtype d = dtype(cx, index);
    Type t = type_of(cx->types, d, 0, NULL);
    Val upper = val_new(cx, t, span), step = val_new(cx, t, span);
    Val up = append(cx, &eqns, P_lt, DT_bool, span, 2, (Val[]){index, upper});
    Val down = append(cx, &eqns, P_gt, DT_bool, span, 2, (Val[]){index, upper});
    Val forward = append(cx, &eqns, P_gt, DT_bool, span, 2, (Val[]){step, integer(cx, d, 0, span)});
    Vals out = list(cx, 1);
    out.at[out.n++] = append(cx, &eqns, P_select_n, DT_bool, span, 3, (Val[]){forward, down, up});
    Jaxpr *j = jaxpr_with(cx, l->body, eqns, out);
    Vals given = {(Val[]){upper, step}, 2}; /* extents of the carries may be among the constants */
    j->in = vals_joined(cx->arena, 5, (Vals[]){turn.consts, given, turn.bounds, turn.implicit, turn.carry});
    j->out_at = NULL;
    return *made_of(c, l, true) = j;
}
static Jaxpr *for_body(Catalyst *c, const ForLoop *l, Span span) {
    Ctx *cx = c->cx;
    Eqns eqns = {0};
    if (*made_of(c, l, false)) return *made_of(c, l, false);
    ForLoop turn = fresh_turn(c, l);
    Val index = turn.bounds.at[0], step = val_new(cx, val_type(cx, index), span);
    Vals inner = vals_joined(cx->arena, 4, (Vals[]){turn.consts, turn.implicit, turn.bounds, turn.carry});
    if (!jaxpr_splice(&c->map, &eqns, l->body, inner, span)) c->failed = true;
    Val next = append(cx, &eqns, P_add, dtype(cx, index), span, 2, (Val[]){index, step});
    Vals out = vals_joined(cx->arena, 2, (Vals[]){{&next, 1}, vals_rewrite(&c->map, l->body->out)});
    Jaxpr *j = jaxpr_with(cx, l->body, eqns, out);
    j->in = vals_joined(cx->arena, 5, (Vals[]){turn.consts, {&step, 1}, turn.bounds, turn.implicit, turn.carry});
    j->out_at = NULL;
    return *made_of(c, l, false) = j;
}

/* May extents of the carry change from turn to turn? */
static bool changes_extents(Ctx *cx, const While *w) {
    const While turn = while_turn(w, w->cond, w->body);
    bool some = false;
    for (uint32_t i = 0; i < turn.carry.n; i++) {
        Type t = val_type(cx, turn.carry.at[i]);
        some |= type_has_bound(cx, t) || t != val_type(cx, turn.end.at[i]);
    }
    return some;
}
static Eqn counted_while(Catalyst *c, const Eqn *e) {
    Ctx *cx = c->cx;
    const ForLoop l = for_of(cx, e), turn = for_turn(&l, l.body);
    While w = {.cond = for_condition(c, &l, e->span), .body = for_body(c, &l, e->span)};
    w.cond_consts = vals_joined(cx->arena, 2, (Vals[]){l.consts, vals_part(l.bounds, FOR_UPPER, 2)});
    w.body_consts = vals_joined(cx->arena, 2, (Vals[]){l.consts, vals_part(l.bounds, FOR_STEP, 1)});
    w.carry = vals_joined(cx->arena, 3, (Vals[]){vals_part(l.bounds, FOR_LOWER, 1), l.implicit, l.carry});
    w.end = list(cx, l.implicit.n + l.end.n + 1);
    w.end.at[w.end.n++] = val_new(cx, val_type(cx, turn.bounds.at[0]), e->span);
    for (uint32_t i = l.end_implicit.n; i < l.implicit.n; i++) /* omitted */
        w.end.at[w.end.n++] = val_new(cx, val_type(cx, turn.end_implicit.at[i]), e->span);
    add(&w.end, l.end_implicit.at, l.end_implicit.n), add(&w.end, l.end.at, l.end.n);
    w.resizes = changes_extents(cx, &w);
    w.implicit = l.implicit.n + 1;
    return while_eqn(cx->arena, &(Eqn){.span = e->span, .whole = e->whole}, &w);
}

static Jaxpr *catalyst_jaxpr(void *user, const Jaxpr *j) {
    Catalyst *c = user;
    if (*memo_slot(&c->memo, j)) return *memo_slot(&c->memo, j);
    Eqns eqns = eqns_for(c->cx, j);
    each(const Eqn, e, j->eqns) {
        Eqn new = eqn_rewrite(&c->map, e, catalyst_jaxpr, c);
        if (e->prim == P_for_loop) new = counted_while(c, &new);
        if (e->prim == P_while_loop) {
            While w = while_of(&new);
            w.resizes &= changes_extents(c->cx, &w);
            new = while_eqn(c->cx->arena, &new, &w);
        }
        push(c->cx->arena, &eqns, new);
    }
    return *memo_slot(&c->memo, j) = jaxpr_with(c->cx, j, eqns, vals_rewrite(&c->map, j->out));
}
Jaxpr *pass_catalyst(Ctx *cx, const Jaxpr *j) {
    Catalyst c = {.cx = cx, .map.cx = cx, .memo.arena = cx->arena};
    Jaxpr *new = catalyst_jaxpr(&c, j);
    return c.failed ? NULL : new;
}
