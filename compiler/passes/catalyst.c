/* Catalyst's control flow becomes JAX's. Its loops pass the extents of their arrays as implicit
   arguments, ahead of the explicit ones; here these are carries like the others.

     for_loop: consts, implicit, lower, upper, step, first index, explicit; body: consts, implicit, index, explicit
         → while over (index, implicit, explicit), as long as the index is before upper in the direction of step
     while_loop: the same carries without an index → while

   num_implicit_inputs stays: it says that extents of the carries may change from one iteration to the next. */
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
typedef struct {
    uint32_t consts, implicit, explicit_; /* how many */
} Parts;

static bool same_kind(const Ctx *cx, Val a, Val b) {
    return dtype(cx, a) == dtype(cx, b) && val_array(cx, a)->rank == val_array(cx, b)->rank;
}
/* The text in Catalyst's documentation has no counts: the constants are the inputs without results; implicit ones are
   as few as the types allow. */
static Parts parts_of(const Catalyst *c, const Eqn *e, const Jaxpr *body) {
    Parts p = {.consts = body->in.n - 1 - body->out.n};
    int64_t said = implicit_inputs(e);
    p.implicit = said < 0 ? 0 : (uint32_t)said;
    for (; said < 0 && p.implicit < body->out.n; p.implicit++) {
        bool fits = true;
        for (uint32_t i = p.implicit; i < body->out.n; i++)
            fits &= same_kind(c->cx, body->in.at[p.consts + 1 + i], body->out.at[i]);
        uint32_t scalars = 0; /* an array's extent must come before the index */
        for (uint32_t i = p.consts + p.implicit + 1; i < body->in.n; i++) {
            const ArrayType *t = val_array(c->cx, body->in.at[i]);
            for (uint32_t d = 0; d < t->rank; d++) {
                if (dim_is_const(t->dims[d]) || dim_at(c->cx->types, t->dims[d])->kind != DIM_BOUND) continue;
                bool found = false;
                for (uint32_t k = 0; k < p.consts + p.implicit; k++)
                    found |= body->in.at[k] == dim_at(c->cx->types, t->dims[d])->val;
                scalars += !found;
            }
        }
        if (fits && !scalars) break;
    }
    p.explicit_ = body->out.n - p.implicit;
    return p;
}
/* A program that a loop becomes, for all loops with this body: the condition or the body of the while. */
static Jaxpr **made_of(Catalyst *c, const Jaxpr *body, Parts p, bool condition) {
    uint64_t key[4] = {(uintptr_t)body, p.consts, p.implicit, condition};
    return memo_at(&c->memo, key, sizeof key);
}
static Jaxpr *for_condition(Catalyst *c, const Jaxpr *body, Parts p, Span span) {
    Ctx *cx = c->cx;
    Eqns eqns = {0};
    if (*made_of(c, body, p, true)) return *made_of(c, body, p, true);
    Dtype d = dtype(cx, body->in.at[p.consts + p.implicit]);
    Val *inner = fresh_inputs(c, body);
    Vals in = list(cx, body->in.n + 2);
    Type t = type_of(cx->types, d, 0, NULL);
    Val upper = val_new(cx, t, span), step = val_new(cx, t, span), index = inner[p.consts + p.implicit];
    add(&in, inner, p.consts); /* extents of the carries may be among them */
    add(&in, &upper, 1), add(&in, &step, 1), add(&in, &index, 1);
    add(&in, inner + p.consts, p.implicit), add(&in, inner + p.consts + p.implicit + 1, p.explicit_);
    Val up = append(cx, &eqns, P_lt, DT_bool, span, 2, (Val[]){index, upper});
    Val down = append(cx, &eqns, P_gt, DT_bool, span, 2, (Val[]){index, upper});
    Val forward = append(cx, &eqns, P_gt, DT_bool, span, 2, (Val[]){step, integer(cx, d, 0, span)});
    Vals out = list(cx, 1);
    out.at[out.n++] = append(cx, &eqns, P_select_n, DT_bool, span, 3, (Val[]){forward, down, up});
    Jaxpr *j = jaxpr_with(cx, body, eqns, out);
    j->in = in;
    j->out_at = NULL;
    return *made_of(c, body, p, true) = j;
}
static Jaxpr *for_body(Catalyst *c, const Jaxpr *body, Parts p, Span span) {
    Ctx *cx = c->cx;
    Eqns eqns = {0};
    if (*made_of(c, body, p, false)) return *made_of(c, body, p, false);
    Val *inner = fresh_inputs(c, body), index = inner[p.consts + p.implicit];
    Vals in = list(cx, body->in.n + 1), out = list(cx, body->out.n + 1);
    Val step = val_new(cx, val_type(cx, index), span);
    add(&in, inner, p.consts), add(&in, &step, 1), add(&in, &index, 1);
    add(&in, inner + p.consts, p.implicit), add(&in, inner + p.consts + p.implicit + 1, p.explicit_);
    if (!jaxpr_splice(&c->map, &eqns, body, (Vals){inner, body->in.n}, span)) c->failed = true;
    Val next = append(cx, &eqns, P_add, dtype(cx, index), span, 2, (Val[]){index, step});
    Vals results = vals_rewrite(&c->map, body->out);
    add(&out, &next, 1), add(&out, results.at, results.n);
    Jaxpr *j = jaxpr_with(cx, body, eqns, out);
    j->in = in;
    j->out_at = NULL;
    return *made_of(c, body, p, false) = j;
}

static Eqn counted_while(Catalyst *c, const Eqn *e) {
    Ctx *cx = c->cx;
    const Jaxpr *body = param_jaxpr(e, K_body_jaxpr);
    Parts p = parts_of(c, e, body);
    const Vals consts = vals_part(e->in, 0, p.consts), implicit = vals_part(e->in, p.consts, p.implicit);
    const Vals bounds = vals_part(e->in, p.consts + p.implicit, 4), /* lower, upper, step, first index */
        explicit_ = vals_part(e->in, p.consts + p.implicit + 4, p.explicit_);
    While w = {.cond = for_condition(c, body, p, e->span), .body = for_body(c, body, p, e->span)};
    w.resizes = true;
    w.implicit = p.implicit + 1;
    w.cond_consts = vals_joined(cx->arena, 2, (Vals[]){consts, vals_part(bounds, 1, 2)});
    w.body_consts = vals_joined(cx->arena, 2, (Vals[]){consts, vals_part(bounds, 2, 1)});
    w.carry = vals_joined(cx->arena, 3, (Vals[]){vals_part(bounds, 0, 1), implicit, explicit_});
    w.end = list(cx, e->out.n + p.implicit + 1);
    w.end.at[w.end.n++] = val_new(cx, val_type(cx, body->in.at[p.consts + p.implicit]), e->span);
    if (e->out.n == p.explicit_) /* the documentation omits implicit results */
        for (uint32_t i = 0; i < p.implicit; i++)
            w.end.at[w.end.n++] = val_new(cx, val_type(cx, body->out.at[i]), e->span);
    add(&w.end, e->out.at, e->out.n);
    return while_eqn(cx->arena, &(Eqn){.span = e->span, .whole = e->whole}, &w);
}

static Jaxpr *catalyst_jaxpr(void *user, const Jaxpr *j) {
    Catalyst *c = user;
    if (*memo_slot(&c->memo, j)) return *memo_slot(&c->memo, j);
    Eqns eqns = {0};
    each(const Eqn, e, j->eqns) {
        Eqn new = eqn_rewrite(&c->map, e, catalyst_jaxpr, c);
        if (e->prim == P_for_loop) new = counted_while(c, &new);
        if (e->prim == P_while_loop) {
            While w = while_of(&new);
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
