#include "dot.h"
#include "kernel.h"

/* Planning of cond, while and scan. A body is planned like the program itself; its inputs are the
   operands' memory, and slots: pointers that the loop sets before each turn. A copy of the body is
   planned, since two equations may share one. */

static Val input_copy(ValMap *map, Val old) {
    Val new =
        val_new(map->cx, type_rewrite(map, val_type(map->cx, old)), val_info(map->cx, old)->span);
    valmap_put(map, old, new);
    return new;
}
static Jaxpr *fresh_copy(Plan *p, const Jaxpr *j, Span span) {
    Ctx *cx = p->cx;
    ValMap map = {.cx = cx};
    Eqns eqns = {0};
    Vals in = {arena_new(p->arena, Val, j->in.n + 1), j->in.n};
    for (uint32_t i = 0; i < in.n; i++)
        in.at[i] = input_copy(&map, j->in.at[i]);
    if (!jaxpr_splice(&map, &eqns, j, in, span)) return NULL;
    Jaxpr *copy = jaxpr_with(cx, j, eqns, vals_rewrite(&map, j->out));
    copy->in = in;
    plan_grow(p);
    return copy;
}
static Body *body_new(Plan *p, Body *outer, const Eqn *e, const Jaxpr *j) {
    Body *b = arena_new(p->arena, Body, 1);
    b->outer = outer;
    b->depth = outer->depth + 1;
    b->conditional = e->prim == P_cond;
    b->j = fresh_copy(p, j, e->span);
    b->out_slots = arena_new(p->arena, Buf *, j->out.n + 1);
    if (b->j)
        each(Val, c, b->j->consts)
            plan_constant(p, *c);
    return b->j ? b : NULL;
}
static bool scalar(Plan *p, Val v) { return val_array(p->cx, v)->rank == 0; }

/* The input is the operand: the same memory, or the same register. */
static void pass(Plan *p, Body *outer, Val operand, Val input) {
    Info *in = plan_info(p, input);
    in->borrowed = true;
    if (scalar(p, input)) {
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
static Dim bytes_of(Plan *p, Val v) {
    Dim n = type_size(p->cx->types, val_type(p->cx, v));
    return dim_mul(p->cx->types, n, em_bytes(val_array(p->cx, v)->dtype));
}
static void computed(Plan *p, const Step *s, Val v, Buf *b) {
    Info *info = plan_info(p, v);
    info->class = scalar(p, v) ? VAL_SCALAR : VAL_STORED;
    info->e = s->e;
    info->step = s->number;
    info->buf = scalar(p, v) ? NULL : b;
}
/* Scalar operands are registers by now; what a step needs in memory is put there before it. */
static Step *control_step(Plan *p, Body *b, StepKind kind, const Eqn *e, uint32_t nbodies) {
    Step *s = arena_new(p->arena, Step, 1);
    *s = (Step){.kind = kind, .e = e, .nbodies = nbodies};
    s->bodies = arena_new(p->arena, Body *, nbodies + 1);
    each(Val, v, e->in)
        if (!scalar(p, *v) || plan_info(p, *v)->class == VAL_MEMBER) plan_stored(p, b, *v);
    return s;
}
static void append(Plan *p, Body *b, Step *s) {
    s->number = b->steps.n + 1;
    push(p->arena, &b->steps, s);
}

/* Memory for v, taken where it is made: whoever gets it gives it back. */
static Buf *heap(Plan *p, Val v) {
    Buf *b = buf_new(p, BUF_HEAP, bytes_of(p, v));
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
static bool plan_cond(Plan *p, Body *b, const Eqn *e) {
    bool bools =
        param_has(e, K_branch_jaxprs); /* one for each branch but the last; else an index */
    Jaxprs branches = param_jaxprs(e, bools ? K_branch_jaxprs : K_branches);
    uint32_t first = bools ? branches.n - 1 : 1;
    Step *s = control_step(p, b, STEP_COND, e, branches.n);
    Buf **results = arena_new(p->arena, Buf *, e->out.n + 1);
    s->ys = results;
    s->ys_slots = arena_new(p->arena, Buf *, e->out.n + 1);
    for (uint32_t i = 0; i < e->out.n; i++) {
        if (scalar(p, e->out.at[i])) continue;
        bool sized = bound_to(p, e->out.at[i], e->out.at, e->out.n); /* by the branch */
        results[i] = sized ? slot(p, NULL, false) : buf_new(p, BUF_WORK, bytes_of(p, e->out.at[i]));
        s->ys_slots[i] = sized ? results[i] : slot(p, results[i], false);
    }
    for (uint32_t k = 0; k < branches.n; k++) {
        Body *branch = s->bodies[k] = body_new(p, b, e, branches.at[k]);
        if (!branch) return false;
        for (uint32_t i = 0; i < branch->j->in.n; i++)
            pass(p, b, e->in.at[first + i], branch->j->in.at[i]);
        for (uint32_t i = 0; i < e->out.n; i++)
            branch->out_slots[i] = results[i] && results[i]->kind == BUF_SLOT
                                       ? heap(p, branch->j->out.at[i])
                                       : s->ys_slots[i];
        if (!plan_body(p, branch)) return false;
    }
    append(p, b, s);
    for (uint32_t i = 0; i < e->out.n; i++)
        computed(p, s, e->out.at[i], results[i]);
    return true;
}

/* ---- carries */
static bool dies(Plan *p, Val v, const Eqn *e) {
    const Info *info = plan_info(p, v);
    uint32_t here = 0;
    each(Val, x, e->in)
        here += *x == v;
    return info->uses == 1 && here == 1 && info->buf && info->buf->kind == BUF_WORK &&
           !info->borrowed && !info->offset && !info->strides;
}
static void carry_open(Plan *p, Body *outer, const Eqn *e, Carry *c, Val operand, Val input,
                       Body *body, uint32_t out) {
    Info *in = plan_info(p, input);
    if (scalar(p, input)) {
        c->kind = CARRY_SCALAR;
        in->class = VAL_SCALAR;
        return;
    }
    c->operand = plan_stored(p, outer, operand);
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
/* May the next value be written over the current one? If every step that reads the current one runs
   before the step that writes, or is that step and reads each element just where it writes it. */
typedef struct {
    Plan *p;
    uint32_t number; /* of the slot of the current one */
    Ix address;      /* where the writer writes; of use if `writer` */
    bool writer, ok, reads;
} Aliases;
static void aliases(void *user, Val v, const Ix *index, Ix address) {
    Aliases *a = user;
    if (!v || !a->ok) return;
    const Info *info = plan_info(a->p, v);
    if (!info->buf || info->buf->number != a->number) return;
    a->reads = true;
    if (a->writer && address != a->address) a->ok = false;
}
static bool may_overwrite(Plan *p, Body *body, const Carry *c, Val out) {
    const Info *made = plan_info(p, out);
    if (val_info(p->cx, out)->lit || made->class != VAL_MEMBER || made->buf != c->next)
        return false;
    Step *w = body->steps.at[made->step - 1];
    if ((w->kind != STEP_LOOPS && w->kind != STEP_DOT) || w->levels > 1 || w->reduces) return false;
    if (w->dot && (w->dot->a.buf->number == c->current->number ||
                   w->dot->b.buf->number == c->current->number))
        return false;
    Aliases a = {.p = p, .number = c->current->number, .ok = true};
    each(Store, st, w->stores)
        if (st->buf == c->next) {
            Ix index[32];
            bool row;
            step_index(p, w, st->v, index, &row);
            a.address = store_address(p, st, index);
        }
    for (uint32_t i = made->step - 1; i < body->steps.n && a.ok; i++) {
        Step *s = body->steps.at[i];
        a.writer = s == w;
        a.reads = false;
        step_reads(p, s, aliases, &a);
        if (s->nbodies || s->dot)
            each(Val, v, s->e->in) {
                const Info *info = plan_info(p, *v);
                a.reads |= s != w && info->buf && info->buf->number == a.number;
            }
        if (a.reads && s != w) return false;
    }
    return a.ok;
}
static void carry_close(Plan *p, const Eqn *e, Step *s, Carry *c, Val operand, Val result,
                        Body *body, uint32_t out) {
    computed(p, s, result, NULL);
    if (c->kind == CARRY_SCALAR) return;
    Info *info = plan_info(p, result);
    const Info *made = plan_info(p, body->j->out.at[out]);
    if (c->kind == CARRY_HEAP) {
        info->buf = c->result = slot(p, c->operand, false);
        info->borrowed = true;
        return;
    }
    if (c->kind == CARRY_FIXED) {
        info->buf = c->operand;
        info->borrowed = c->operand->kind != BUF_WORK;
        return;
    }
    if (may_overwrite(p, body, c, body->j->out.at[out])) *c->next = *c->current;
    if (made->buf && made->buf->number == c->current->number) {
        c->kind = CARRY_IN_PLACE;
        c->a = dies(p, operand, e) ? c->operand : buf_new(p, BUF_WORK, bytes_of(p, operand));
        c->current->behind[0] = c->a;
        info->buf = c->a;
        return;
    }
    c->a = buf_new(p, BUF_WORK, bytes_of(p, operand));
    c->b = buf_new(p, BUF_WORK, bytes_of(p, operand));
    c->result = slot(p, c->operand, false);
    Buf *slots[3] = {c->current, c->next, c->result};
    for (uint32_t i = 0; i < 3; i++)
        slots[i]->behind[0] = c->operand, slots[i]->behind[1] = c->a, slots[i]->behind[2] = c->b;
    info->buf = c->result;
    info->borrowed = true;
}

/* Is an extent of this input of a body a carried scalar that the body changes? */
static bool resized(Plan *p, const Jaxpr *body, uint32_t first, Val input) {
    for (uint32_t k = 0; k < body->out.n; k++)
        if (body->out.at[k] != body->in.at[first + k] &&
            bound_to(p, input, &body->in.at[first + k], 1))
            return true;
    return false;
}
static bool plan_while(Plan *p, Body *b, const Eqn *e) {
    const Jaxpr *cond = param_jaxpr(e, K_cond_jaxpr), *turn = param_jaxpr(e, K_body_jaxpr);
    uint32_t nc = (uint32_t)param_int(e, K_cond_nconsts, 0),
             nb = (uint32_t)param_int(e, K_body_nconsts, 0);
    if (!scalar(p, cond->out.at[0]))
        return diag(p->cx->diags, e->span,
                    "primitive 'while' with a batched condition is not supported yet");
    Step *s = control_step(p, b, STEP_WHILE, e, 2);
    Body *test = s->bodies[0] = body_new(p, b, e, cond),
         *body = s->bodies[1] = body_new(p, b, e, turn);
    if (!test || !body) return false;
    s->ncarries = e->out.n;
    s->carries = arena_new(p->arena, Carry, s->ncarries + 1);
    for (uint32_t i = 0; i < nc; i++)
        pass(p, b, e->in.at[i], test->j->in.at[i]);
    for (uint32_t i = 0; i < nb; i++)
        pass(p, b, e->in.at[nc + i], body->j->in.at[i]);
    for (uint32_t i = 0; i < s->ncarries; i++) {
        if (resized(p, body->j, nb, body->j->in.at[nb + i])) s->carries[i].kind = CARRY_HEAP;
        carry_open(p, b, e, &s->carries[i], e->in.at[nc + nb + i], body->j->in.at[nb + i], body, i);
        Val seen = test->j->in.at[nc + i];
        Info *in = plan_info(p, seen);
        in->class = scalar(p, seen) ? VAL_SCALAR : VAL_STORED;
        in->borrowed = true;
        in->buf = s->carries[i].current;
    }
    if (!plan_body(p, test) || !plan_body(p, body)) return false;
    append(p, b, s);
    for (uint32_t i = 0; i < s->ncarries; i++)
        carry_close(p, e, s, &s->carries[i], e->in.at[nc + nb + i], e->out.at[i], body, i);
    return true;
}
static bool plan_scan(Plan *p, Body *b, const Eqn *e) {
    const Jaxpr *turn = param_jaxpr(e, K_jaxpr);
    uint32_t nk = (uint32_t)param_int(e, K_num_consts, 0),
             nc = (uint32_t)param_int(e, K_num_carry, 0);
    Step *s = control_step(p, b, STEP_SCAN, e, 1);
    Body *body = s->bodies[0] = body_new(p, b, e, turn);
    if (!body) return false;
    uint32_t nx = e->in.n - nk - nc, ny = e->out.n - nc;
    s->ncarries = nc;
    s->carries = arena_new(p->arena, Carry, nc + 1);
    s->xs = arena_new(p->arena, Buf *, nx + 1), s->xs_slots = arena_new(p->arena, Buf *, nx + 1);
    s->ys = arena_new(p->arena, Buf *, ny + 1), s->ys_slots = arena_new(p->arena, Buf *, ny + 1);
    for (uint32_t i = 0; i < nk; i++)
        pass(p, b, e->in.at[i], body->j->in.at[i]);
    for (uint32_t i = 0; i < nc; i++)
        carry_open(p, b, e, &s->carries[i], e->in.at[nk + i], body->j->in.at[nk + i], body, i);
    for (uint32_t i = 0; i < nx; i++) {
        Val x = body->j->in.at[nk + nc + i];
        s->xs[i] = plan_stored(p, b, e->in.at[nk + nc + i]);
        s->xs_slots[i] = slot(p, s->xs[i], false);
        *plan_info(p, x) = (Info){.class = scalar(p, x) ? VAL_SCALAR : VAL_STORED,
                                  .buf = s->xs_slots[i],
                                  .borrowed = true};
    }
    for (uint32_t i = 0; i < ny; i++) {
        s->ys[i] = buf_new(p, BUF_WORK, bytes_of(p, e->out.at[nc + i]));
        s->ys_slots[i] = slot(p, s->ys[i], false);
        if (!scalar(p, body->j->out.at[nc + i])) body->out_slots[nc + i] = s->ys_slots[i];
    }
    if (!plan_body(p, body)) return false;
    append(p, b, s);
    for (uint32_t i = 0; i < nc; i++)
        carry_close(p, e, s, &s->carries[i], e->in.at[nk + i], e->out.at[i], body, i);
    for (uint32_t i = 0; i < ny; i++)
        computed(p, s, e->out.at[nc + i], s->ys[i]);
    return true;
}
bool plan_control(Plan *p, Body *b, const Eqn *e) {
    return e->prim == P_cond    ? plan_cond(p, b, e)
           : e->prim == P_while ? plan_while(p, b, e)
                                : plan_scan(p, b, e);
}
