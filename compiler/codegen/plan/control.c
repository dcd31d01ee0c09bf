#include "call.h"
#include "dot.h"
#include "guard.h"
#include "known.h"
#include <assert.h>

/* Planning of cond, while and scan. A body is planned like the program itself; its inputs are the operands' memory, or
   slots: pointers that the loop sets before each iteration. A copy of the body is planned, since two equations may
   share one. */

static Val input_copy(ValMap *map, Val old) {
    Val new = val_new(map->cx, type_rewrite(map, val_type(map->cx, old)), val_info(map->cx, old)->span);
    valmap_put(map, old, new);
    return new;
}
static Jaxpr *fresh_copy(Plan *p, const Jaxpr *j, Span span) {
    Ctx *cx = p->cx;
    ValMap *map = &p->copies;
    Eqns eqns = {0};
    Vals in = {arena_new(p->arena, Val, j->in.n + 1), j->in.n};
    for (uint32_t i = 0; i < in.n; i++) in.at[i] = input_copy(map, j->in.at[i]);
    map->spliced = 0;
    if (!jaxpr_splice(map, &eqns, j, in, span)) return NULL;
    Jaxpr *copy = jaxpr_with(cx, j, eqns, vals_rewrite(map, j->out));
    copy->in = in;
    plan_grow(p);
    return copy;
}
/* Its k-th program, j. */
static Body *body_new(Plan *p, Body *outer, const Eqn *e, uint32_t k, const Jaxpr *j) {
    Body *b = arena_new(p->arena, Body, 1);
    b->outer = outer;
    b->depth = outer->depth + 1;
    b->conditional = e->prim == P_cond;
    b->j = fresh_copy(p, j, e->span);
    b->out_slots = arena_new(p->arena, Buf *, j->out.n + 1);
    if (b->j && p->target->device) known_mark(p, b->j, known_inputs(p, e, k));
    if (b->j)
        each(Val, c, b->j->consts) plan_constant(p, *c);
    return b->j ? b : NULL;
}

/* Makes the input the operand: the same memory, or the same register. */
static void pass(Plan *p, Body *outer, Val operand, Val input) {
    Info *in = plan_info(p, input);
    in->borrowed = true;
    if (plan_register(p, input)) {
        in->class = VAL_SCALAR;
        return;
    }
    in->class = VAL_STORED;
    in->home = plan_info(p, operand)->home ? plan_info(p, operand)->home : outer;
    in->buf = plan_stored(p, outer, operand);
    in->offset = plan_info(p, operand)->offset;
    in->strides = plan_info(p, operand)->strides;
}
static Buf *slot(Plan *p, Buf *behind, bool writable) {
    Buf *b = buf_new(p, BUF_SLOT, 0);
    b->k = writable;
    b->behind[0] = behind;
    return b;
}
static void computed(Plan *p, const Step *s, Val v, Buf *b) {
    Info *info = plan_info(p, v);
    info->class = plan_register(p, v) ? VAL_SCALAR : VAL_STORED;
    info->e = s->e;
    info->step = s->number;
    info->buf = plan_register(p, v) ? NULL : b;
}
uint32_t step_slices(const Step *s) { return s->kind == STEP_SCAN ? scan_of(s->e).xs.n : 0; }
static bool sliced(const Eqn *e, const Val *v) {
    Vals xs = e->prim == P_scan ? scan_of(e).xs : (Vals){0};
    return v >= xs.at && v < xs.at + xs.n;
}
/* Scalar operands are in registers by now; operands that a step needs in memory are stored before it. */
static Step *control_step(Plan *p, Body *b, StepKind kind, const Eqn *e, uint32_t nbodies) {
    Step *s = arena_new(p->arena, Step, 1);
    *s = (Step){.kind = kind, .e = e, .nbodies = nbodies};
    s->bodies = arena_new(p->arena, Body *, nbodies + 1);
    each(Val, v, e->in)
        if (!sliced(e, v) && (!plan_register(p, *v) || plan_info(p, *v)->class == VAL_MEMBER)) plan_stored(p, b, *v);
    return s;
}
static void append(Plan *p, Body *b, Step *s) {
    s->number = b->steps.n + 1;
    push(p->arena, &b->steps, s);
}

/* Heap memory for v, allocated where v is computed; its receiver frees it. */
static Buf *heap(Plan *p, Val v) {
    Buf *b = buf_for(p, BUF_HEAP, v);
    b->k = 1;
    return b;
}
/* Is one of its extents among these values? */
static bool bound_to(Plan *p, Val v, const Val *among, uint32_t n) {
    const ArrayType *t = val_array(p->cx, v);
    for (uint32_t d = 0; d < t->rank; d++)
        for (uint32_t i = 0; i < n; i++)
            if (t->dims[d] == dim_bound(p->cx->types, among[i])) return true;
    return false;
}
/* Memory of a loop in that body. In a branch of a device it stays the loop's: what the host copies there, whether the
   branch runs or not, must not be the memory of a result. */
static Buf *loop_buf(Plan *p, const Body *b, Val v) {
    Buf *own = buf_for(p, BUF_WORK, v);
    own->k = p->target->device && b->conditional && !dim_has_bound(p->cx->types, own->bytes);
    return own;
}
/* ---- overwritten memory */

Buf *plan_owned(Plan *p, Val v, const Eqn *e) {
    const Info *info = plan_info(p, v);
    uint32_t here = 0;
    each(Val, x, e->in) here += *x == v;
    Buf *b = info->buf;
    bool mine = b && !b->lent && (b->kind == BUF_WORK || (b->kind == BUF_SLOT && b->k));
    return mine && info->uses == 1 && here == 1 && !info->borrowed && !info->offset && !info->strides ? b : NULL;
}
static Val origin_of_result(const Callees *cs, const Eqn *e, uint32_t k) {
    const Callee *called = callee_of(cs, e);
    switch (prim_lower[e->prim]) {
    case LOWER_UPDATE:
    case LOWER_SCATTER: return e->in.at[0];
    case LOWER_SCAN: {
        Vals carry = scan_of(e).carry;
        return k < carry.n ? carry.at[k] : 0;
    }
    case LOWER_CALL: return called->over[k] == NOT_OVER ? 0 : e->in.at[called->over[k]];
    case LOWER_WHILE: return while_of(e).carry.at[k];
    case LOWER_COND: {
        Cond c = cond_of(e);
        const Jaxpr *j = c.branches.at[0];
        Val v = plan_origin(cs, j, j->out.at[k]);
        for (uint32_t i = 0; v && i < j->in.n; i++)
            if (j->in.at[i] == v) return c.in.at[i];
        return 0;
    }
    default: return 0;
    }
}
Val plan_origin(const Callees *cs, const Jaxpr *j, Val v) {
    for (uint32_t i = j->eqns.n; i-- > 0 && v;)
        for (uint32_t k = 0; k < j->eqns.at[i].out.n; k++)
            if (j->eqns.at[i].out.at[k] == v) v = origin_of_result(cs, &j->eqns.at[i], k);
    return v;
}

/* ---- cond */

/* The operand that each branch returns as result `o` with some elements overwritten: the result may use its memory. */
static Val written_over(Plan *p, const Cond *c, uint32_t o) {
    uint32_t found = UINT32_MAX;
    for (uint32_t k = 0; k < c->branches.n; k++) {
        const Jaxpr *j = c->branches.at[k];
        Val v = plan_origin(p->callees, j, j->out.at[o]);
        uint32_t i = 0;
        while (i < j->in.n && j->in.at[i] != v) i++;
        if (i == j->in.n || (k && i != found)) return 0;
        found = i;
    }
    Val operand = c->in.at[found];
    return dim_has_bound(p->cx->types, plan_bytes(p, operand)) ? 0 : operand;
}
typedef struct {
    Step *s;
    Cond parts;
    Val *over; /* by result: the operand whose memory it uses; 0: it has its own */
} Choice;
static void cond_results(Plan *p, const Eqn *e, Choice *c) {
    Step *s = c->s;
    s->ys = arena_new(p->arena, Buf *, e->out.n + 1);
    s->ys_slots = arena_new(p->arena, Buf *, e->out.n + 1);
    c->over = arena_new(p->arena, Val, e->out.n + 1);
    for (uint32_t o = 0; o < e->out.n; o++) {
        if (plan_register(p, e->out.at[o])) continue;
        bool sized = bound_to(p, e->out.at[o], e->out.at, e->out.n); /* by the branch */
        Val over = sized ? 0 : written_over(p, &c->parts, o);
        Buf *memory = over ? plan_owned(p, over, e) : NULL;
        for (uint32_t i = 0; i < o; i++)
            if (c->over[i] == over) memory = NULL;
        c->over[o] = memory ? over : 0;
        if (memory) memory->written = true;
        s->ys[o] = memory ? memory : sized ? slot(p, NULL, false) : buf_for(p, BUF_WORK, e->out.at[o]);
        s->ys_slots[o] = sized ? s->ys[o] : slot(p, s->ys[o], memory != NULL);
    }
}
/* A result that a branch did not write over the given memory is computed elsewhere, and copied once that memory is no
   longer read. */
static void copy_over(Plan *p, Body *branch, const Choice *c) {
    uint32_t from = branch->steps.n;
    for (int copy = 0; copy < 2; copy++)
        for (uint32_t o = 0; o < branch->j->out.n; o++) {
            Val v = branch->j->out.at[o];
            Buf *to = c->s->ys_slots[o];
            if (!c->over[o] || same_buf(plan_stored(p, branch, v), to)) continue;
            assert(to);
            if (!copy) continue;
            Step *s = step_new(p, branch, STEP_LOOPS, NULL, val_array(p->cx, v));
            step_store(p, s, v, to, 0, NULL, DT_none);
        }
    for (uint32_t i = from; i < branch->steps.n; i++) schedule_step(p, branch, branch->steps.at[i]);
}
static Body *cond_branch(Plan *p, Body *b, const Eqn *e, const Choice *c, uint32_t k) {
    Body *branch = body_new(p, b, e, k, c->parts.branches.at[k]);
    if (!branch) return NULL;
    for (uint32_t i = 0; i < branch->j->in.n; i++) pass(p, b, c->parts.in.at[i], branch->j->in.at[i]);
    for (uint32_t o = 0; o < e->out.n; o++) {
        Buf *to = c->s->ys_slots[o];
        if (!to) continue;
        bool sized = same_buf(c->s->ys[o], to);
        branch->out_slots[o] = c->over[o] ? NULL : sized ? heap(p, branch->j->out.at[o]) : to;
        for (uint32_t i = 0; i < branch->j->in.n; i++)
            if (c->parts.in.at[i] == c->over[o])
                *plan_info(p, branch->j->in.at[i]) = (Info){.class = VAL_STORED, .buf = to};
    }
    if (!plan_body(p, branch)) return NULL;
    copy_over(p, branch, c);
    return branch;
}
static bool plan_cond(Plan *p, Body *b, const Eqn *e) {
    Choice c = {.parts = cond_of(e)};
    Jaxprs branches = c.parts.branches;
    c.s = control_step(p, b, STEP_COND, e, branches.n);
    Buf *index = p->target->device && known_guarded(p, e) ? plan_dense(p, b, c.parts.index.at[0]) : NULL;
    cond_results(p, e, &c);
    for (uint32_t k = 0; k < branches.n; k++)
        if (!(c.s->bodies[k] = cond_branch(p, b, e, &c, k))) return false;
    append(p, b, c.s);
    if (index) guard_branches(p, c.s, index);
    for (uint32_t i = 0; i < e->out.n; i++) computed(p, c.s, e->out.at[i], c.s->ys[i]);
    return true;
}

/* ---- carries */
static void carry_open(Plan *p, Body *outer, const Eqn *e, Carry *c, Val operand, Val input, Body *body, uint32_t out) {
    Info *in = plan_info(p, input);
    if (plan_register(p, input)) {
        c->kind = CARRY_SCALAR;
        in->class = VAL_SCALAR;
        return;
    }
    c->operand = plan_dense(p, outer, operand);
    c->current = slot(p, c->operand, true);
    in->class = VAL_STORED;
    in->buf = c->current;
    if (c->kind == CARRY_HEAP && body->j->out.at[out] != input) {
        in->borrowed = true;
        body->out_slots[out] = c->next = heap(p, body->j->out.at[out]);
        return;
    }
    c->kind = body->j->out.at[out] == input ? CARRY_FIXED : CARRY_SWAP;
    in->borrowed = c->kind == CARRY_FIXED;
    if (c->kind == CARRY_FIXED) return;
    c->next = slot(p, NULL, false);
    c->next->before = c->current;
    body->out_slots[out] = c->next;
}
/* May the next value overwrite the current one? Yes if every step that reads the current one runs before the step that
   writes, or is that step, computes each element for itself and reads each exactly where it writes it. */
typedef struct {
    Plan *p;
    const Buf *current; /* the slot of the current value */
    Ix address;         /* where the writer writes; valid if `writer` */
    bool writer, ok, reads;
} Aliases;
static void aliases(void *user, Val v, const Ix *index, Ix address) {
    Aliases *a = user;
    if (!v || !a->ok) return;
    const Info *info = plan_info(a->p, v);
    if (!same_buf(info->buf, a->current)) return;
    a->reads = true;
    if (a->writer && address != a->address) a->ok = false;
}
static bool may_overwrite(Plan *p, Body *body, const Carry *c, Val out) {
    const Info *made = plan_info(p, out);
    if (val_info(p->cx, out)->lit || made->class != VAL_MEMBER || !same_buf(made->buf, c->next)) return false;
    Step *w = step_of(body, made);
    bool each = (w->kind == STEP_LOOPS || w->kind == STEP_DOT) && w->levels <= 1 && !w->reduces;
    if (!each && !p->target->device) return false;
    if (w->dot && (same_buf(w->dot->a.buf, c->current) || same_buf(w->dot->b.buf, c->current))) return false;
    Aliases a = {.p = p, .current = c->current, .ok = true};
    each(Store, st, w->stores)
        if (same_buf(st->buf, c->next)) {
            Ix index[MAX_RANK];
            step_at(p, w, st->v, index);
            a.address = store_address(p, st, index);
        }
    for (uint32_t i = made->step - 1; i < body->steps.n && a.ok; i++) {
        Step *s = body->steps.at[i];
        a.writer = s == w && each;
        a.reads = false;
        step_reads(p, s, aliases, &a);
        if (s->nbodies || s->dot)
            each(Val, v, s->e->in) {
                const Info *info = plan_info(p, *v);
                a.reads |= s != w && same_buf(info->buf, a.current);
            }
        for (uint32_t k = 0; k < s->narrays; k++) a.reads |= same_buf(s->arrays[k], a.current);
        for (uint32_t k = 0, n = step_slices(s); k < n; k++) a.reads |= same_buf(s->xs[k], a.current);
        if (a.reads && (s != w || !each)) return false;
    }
    return a.ok;
}
/* Of the carries whose next value is not computed in the memory of the current one. */
static Dim copied_bytes(Plan *p, const Step *s, Body *body) {
    Dim all = 0;
    for (uint32_t i = 0; i < s->ncarries; i++) {
        const Carry *c = &s->carries[i];
        Val out = body->j->out.at[i];
        if (c->kind != CARRY_SWAP || same_buf(plan_info(p, out)->buf, c->current)) continue;
        if (!may_overwrite(p, body, c, out)) all = dim_add(p->cx->types, all, plan_bytes(p, out));
    }
    return all;
}
/* The current value stays where it is, in memory of the loop's own, which is that of the result. */
static void carry_stays(Plan *p, const Body *outer, const Eqn *e, Carry *c, Val operand, Val result) {
    c->a = plan_owned(p, operand, e) ? c->operand : loop_buf(p, outer, operand);
    c->operand->written |= same_buf(c->a, c->operand);
    c->current->behind[0] = c->a;
    plan_info(p, result)->buf = c->a;
}
static void carry_close(Plan *p, const Eqn *e, Step *s, Carry *c, Val operand, Val result, Body *body, uint32_t out) {
    computed(p, s, result, NULL);
    if (c->kind == CARRY_SCALAR) return;
    Info *info = plan_info(p, result);
    const Info *made = plan_info(p, body->j->out.at[out]);
    if (c->kind == CARRY_HEAP) {
        info->buf = c->result = slot(p, c->operand, false);
        info->borrowed = c->operand->lent = true;
        return;
    }
    if (c->kind == CARRY_FIXED) {
        info->buf = c->operand;
        info->borrowed = !plan_owned(p, operand, e);
        c->operand->lent |= info->borrowed;
        return;
    }
    if (may_overwrite(p, body, c, body->j->out.at[out])) *made->buf = *c->next = *c->current;
    if (same_buf(made->buf, c->current)) {
        c->kind = CARRY_IN_PLACE;
        carry_stays(p, body->outer, e, c, operand, result);
        return;
    }
    if (s->decides) {
        c->kind = CARRY_COPIED;
        carry_stays(p, body->outer, e, c, operand, result);
        c->b = c->next->behind[0] = loop_buf(p, body->outer, operand);
        return;
    }
    c->a = loop_buf(p, body->outer, operand);
    c->b = loop_buf(p, body->outer, operand);
    c->result = slot(p, c->operand, false);
    Buf *slots[3] = {c->current, c->next, c->result};
    for (uint32_t i = 0; i < 3; i++)
        slots[i]->behind[0] = c->operand, slots[i]->behind[1] = c->a, slots[i]->behind[2] = c->b;
    info->buf = c->result;
    info->borrowed = c->operand->lent = true;
}

/* Is an extent of this body input a carried scalar that the body changes? */
static bool resized(Plan *p, const Jaxpr *body, uint32_t first, Val input) {
    for (uint32_t k = 0; k < body->out.n; k++)
        if (body->out.at[k] != body->in.at[first + k] && bound_to(p, input, &body->in.at[first + k], 1)) return true;
    return false;
}
static bool plan_while(Plan *p, Body *b, const Eqn *e) {
    While w = while_of(e);
    assert(val_array(p->cx, w.cond->out.at[0])->rank == 0); /* passes/lanes.c */
    Step *s = control_step(p, b, STEP_WHILE, e, 2);
    Body *test = s->bodies[0] = body_new(p, b, e, 0, w.cond), *body = s->bodies[1] = body_new(p, b, e, 1, w.body);
    if (!test || !body) return false;
    if (p->target->device && known_guarded(p, e)) test->out_slots[0] = buf_for(p, BUF_WORK, test->j->out.at[0]);
    While turn = while_turn(&w, test->j, body->j);
    uint32_t nb = w.body_consts.n;
    s->ncarries = w.carry.n;
    s->carries = arena_new(p->arena, Carry, s->ncarries + 1);
    for (uint32_t i = 0; i < w.cond_consts.n; i++) pass(p, b, w.cond_consts.at[i], turn.cond_consts.at[i]);
    for (uint32_t i = 0; i < nb; i++) pass(p, b, w.body_consts.at[i], turn.body_consts.at[i]);
    for (uint32_t i = 0; i < s->ncarries; i++) {
        if (resized(p, body->j, nb, turn.carry.at[i])) s->carries[i].kind = CARRY_HEAP;
        carry_open(p, b, e, &s->carries[i], w.carry.at[i], turn.carry.at[i], body, i);
        Info *in = plan_info(p, turn.tested.at[i]);
        in->class = plan_register(p, turn.tested.at[i]) ? VAL_SCALAR : VAL_STORED;
        in->borrowed = true;
        in->buf = s->carries[i].current;
    }
    if (!plan_body(p, test) || !plan_body(p, body)) return false;
    append(p, b, s);
    if (test->out_slots[0]) guard_turns(p, s, copied_bytes(p, s, body));
    for (uint32_t i = 0; i < s->ncarries; i++)
        carry_close(p, e, s, &s->carries[i], w.carry.at[i], w.end.at[i], body, i);
    if (s->decides) guard_copies(p, s);
    return true;
}
static bool plan_scan(Plan *p, Body *b, const Eqn *e) {
    Scan all = scan_of(e);
    Step *s = control_step(p, b, STEP_SCAN, e, 1);
    Body *body = s->bodies[0] = body_new(p, b, e, 0, all.body);
    if (!body) return false;
    Scan turn = scan_turn(&all, body->j);
    uint32_t nc = all.carry.n, nx = all.xs.n, ny = all.ys.n;
    s->ncarries = nc;
    s->carries = arena_new(p->arena, Carry, nc + 1);
    s->xs = arena_new(p->arena, Buf *, nx + 1), s->xs_slots = arena_new(p->arena, Buf *, nx + 1);
    s->ys = arena_new(p->arena, Buf *, ny + 1), s->ys_slots = arena_new(p->arena, Buf *, ny + 1);
    for (uint32_t i = 0; i < all.consts.n; i++) pass(p, b, all.consts.at[i], turn.consts.at[i]);
    for (uint32_t i = 0; i < nc; i++) carry_open(p, b, e, &s->carries[i], all.carry.at[i], turn.carry.at[i], body, i);
    for (uint32_t i = 0; i < nx; i++) {
        Val x = turn.xs.at[i];
        s->xs[i] = plan_reshaped(p, b, all.xs.at[i]);
        s->xs_slots[i] = slot(p, s->xs[i], false);
        *plan_info(p, x) =
            (Info){.class = plan_register(p, x) ? VAL_SCALAR : VAL_STORED, .buf = s->xs_slots[i], .borrowed = true};
    }
    for (uint32_t i = 0; i < ny; i++) {
        s->ys[i] = loop_buf(p, b, all.ys.at[i]);
        s->ys_slots[i] = slot(p, s->ys[i], false);
        if (!plan_register(p, turn.ys.at[i])) body->out_slots[nc + i] = s->ys_slots[i];
    }
    if (!plan_body(p, body)) return false;
    append(p, b, s);
    for (uint32_t i = 0; i < nc; i++) carry_close(p, e, s, &s->carries[i], all.carry.at[i], all.end.at[i], body, i);
    for (uint32_t i = 0; i < ny; i++) computed(p, s, all.ys.at[i], s->ys[i]);
    return true;
}
bool plan_control(Plan *p, Body *b, const Eqn *e) {
    return e->prim == P_cond ? plan_cond(p, b, e) : e->prim == P_while ? plan_while(p, b, e) : plan_scan(p, b, e);
}
