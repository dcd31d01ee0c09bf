#include "device.h"
#include "part.h"
#include "../cost.h"
#include <mlir-c/BuiltinTypes.h>

/* Control flow of the host: scf loops whose carried values are scalars and, for arrays, pointers to their current and
   next memory. */

static V slot(Host *h, const Buf *b) { return frame_slot(&h->frame, b); }
static void set_slot(Host *h, const Buf *b, V v) { frame_set_slot(&h->frame, b, v); }
static void set_scalar(Host *h, Val v, V r) { frame_set_scalar(&h->frame, v, r); }
/* An input of a body is its operand: a register, or a value that the host may have read. */
static void pass(Host *h, Val operand, Val input) {
    if (plan_register(h->plan, input)) {
        set_scalar(h, input, host_scalar(h, operand));
        return;
    }
    bool lit = val_info(h->plan->cx, operand)->lit;
    V known = h->plan->target->device && !lit ? frame_kept(&h->frame, operand) : (V){NULL};
    if (known.ptr) frame_keep(&h->frame, input, known);
}

/* ---- carries */

/* The carried values of a loop: a few are in registers, more than that in memory, where the next ones are collected
   after the current ones by code that is cut like the body. */
typedef struct {
    Host *h;
    Step *s;
    const Body *body;
    uint32_t n;     /* in registers */
    uint32_t words; /* in memory */
    uint32_t last;  /* the number of the last word */
    V *at;          /* registers, as they are collected */
    uint32_t next;  /* the next one to be bound or collected */
    Part part;
} Carried;
static Carried carried_new(Host *h, Step *s, const Body *body) {
    Carried c = {.h = h, .s = s, .body = body};
    for (uint32_t i = 0; i < s->ncarries; i++) {
        uint32_t kind = s->carries[i].kind;
        c.n += kind == CARRY_SWAP ? 2 : kind == CARRY_SCALAR || kind == CARRY_HEAP;
    }
    if (c.n > MOST_CARRIED) {
        c.words = c.n, c.n = 0;
        c.last = frame_words(&h->frame, 2 * c.words);
    }
    c.at = arena_new(h->e->arena, V, c.n + 1);
    return c;
}
/* Before each value is computed; after the last one. */
static void collect(Carried *c) {
    if (c->words) part_next(c->h, c->body, &c->part);
}
static void collected(Carried *c) { part_end(c->h, &c->part); }
static void put(Carried *c, bool later, Dtype d, V v) {
    if (!c->words)
        c->at[c->next++] = v;
    else
        frame_store(&c->h->frame, c->last - (later ? 0 : c->words) - c->next++, d, v);
}
static uint32_t word(Carried *c) { return c->last - c->words - c->next++; }
static void get_scalar(Carried *c, const V *from, Val v) {
    if (c->words)
        frame_scalar_at(&c->h->frame, v, word(c));
    else
        set_scalar(c->h, v, from[c->next++]);
}
static void get_slot(Carried *c, const V *from, const Buf *b) {
    if (c->words)
        frame_slot_at(&c->h->frame, b, word(c));
    else
        set_slot(c->h, b, from[c->next++]);
}
static void carries_open(Carried *all, const Val *operands) {
    Host *h = all->h;
    all->next = 0;
    for (uint32_t i = 0; i < all->s->ncarries; i++) {
        Carry *c = &all->s->carries[i];
        collect(all);
        if (c->kind == CARRY_SCALAR) {
            put(all, false, val_array(h->plan->cx, operands[i])->dtype, host_scalar(h, operands[i]));
            continue;
        }
        V from = frame_buffer(&h->frame, c->operand);
        if (c->kind == CARRY_FIXED) set_slot(h, c->current, from);
        if (c->kind == CARRY_IN_PLACE || c->kind == CARRY_COPIED) {
            V a = frame_buffer(&h->frame, c->a);
            if (!same_buf(c->a, c->operand)) host_copy(h, a, from, host_bytes(h, operands[i]));
            set_slot(h, c->current, a);
        }
        if (c->kind == CARRY_COPIED) set_slot(h, c->next, frame_buffer(&h->frame, c->b));
        if (c->kind == CARRY_HEAP) put(all, false, DT_none, from);
        if (c->kind != CARRY_SWAP) continue;
        if (c->current->written) {
            V b = frame_buffer(&h->frame, c->b);
            host_copy(h, b, from, host_bytes(h, operands[i]));
            from = b;
        }
        put(all, false, DT_none, from);
        put(all, false, DT_none, frame_buffer(&h->frame, c->a));
    }
    collected(all);
}
/* Registers, or what is in memory, become the body's inputs. */
static void carries_bind_to(Carried *all, const V *from, const Val *inputs) {
    all->next = 0;
    for (uint32_t i = 0; i < all->s->ncarries; i++) {
        Carry *c = &all->s->carries[i];
        if (c->kind == CARRY_SCALAR) get_scalar(all, from, inputs[i]);
        if (c->kind == CARRY_HEAP || c->kind == CARRY_SWAP) get_slot(all, from, c->current);
        if (c->kind == CARRY_SWAP) get_slot(all, from, c->next);
    }
}
/* The block's arguments become the body's inputs. */
static void carries_bind(Carried *all, Scope *scope, uint32_t first, const Val *inputs) {
    V *from = arena_new(all->h->e->arena, V, all->n + 1);
    for (uint32_t i = 0; i < all->n; i++) from[i] = em_arg(scope, first + i);
    carries_bind_to(all, from, inputs);
}
/* Frees the array of the previous iteration, unless it is the loop's operand. */
static void put_current(Host *h, const Carry *c) {
    V current = slot(h, c->current), operand = frame_buffer(&h->frame, c->operand);
    If mine = em_if(h->e, em_cmpi(h->e, "ne", current, operand));
    host_put(h, current);
    em_else(h->e, &mine, 0, NULL);
    em_if_end(h->e, &mine, NULL, NULL);
}
static void carries_next(Carried *all, const Val *results) {
    Host *h = all->h;
    Emit *e = h->e;
    all->next = 0;
    for (uint32_t i = 0; i < all->s->ncarries; i++) {
        Carry *c = &all->s->carries[i];
        collect(all);
        if (c->kind == CARRY_SCALAR)
            put(all, true, val_array(h->plan->cx, results[i])->dtype, host_scalar(h, results[i]));
        if (c->kind == CARRY_HEAP) {
            put_current(h, c);
            put(all, true, DT_none, slot(h, c->next));
        }
        if (c->kind != CARRY_SWAP) continue;
        V current = slot(h, c->current);
        put(all, true, DT_none, slot(h, c->next));
        if (!c->current->written) { /* the operand itself is never written */
            V first = em_cmpi(e, "eq", current, frame_buffer(&h->frame, c->operand));
            current = em_select(e, first, frame_buffer(&h->frame, c->b), current);
        }
        put(all, true, DT_none, current);
    }
    collected(all);
    if (!all->words) return;
    V now = frame_word(&h->frame, all->last - all->words), later = frame_word(&h->frame, all->last);
    host_copy_words(h, now, later, em_i64(e, 8 * (int64_t)all->words));
}
static void carries_close(Carried *all, const V *results, const Val *out) {
    all->next = 0;
    for (uint32_t i = 0; i < all->s->ncarries; i++) {
        Carry *c = &all->s->carries[i];
        if (c->kind == CARRY_SCALAR) get_scalar(all, results, out[i]);
        if (c->kind == CARRY_HEAP || c->kind == CARRY_SWAP) get_slot(all, results, c->result);
        if (c->kind == CARRY_SWAP) all->next++;
    }
}

/* ---- while */

/* What a turn does before the test. Its kernels run if the loop still goes on, which is known if turns are enqueued one
   at a time. */
static void guarded_body(Host *h, Step *s) {
    Val predicate = s->bodies[0]->j->out.at[0];
    Guard guard = {h->guard, s->decides, val_array(h->plan->cx, predicate)->dtype, 1, 1};
    if (s->at_once > 1) h->guard = &guard;
    host_body(h, s->bodies[1]);
    h->guard = guard.outer;
}
/* The test, then as many turns as the runtime says, each of them the body and the test. */
static void host_turns(Host *h, Step *s, const While *w, const While *turn) {
    Emit *e = h->e;
    V zero = em_i64(e, 0), one = em_i64(e, 1), n, go[2];
    Carried c = carried_new(h, s, s->bodies[1]);
    carries_open(&c, w->carry.at);
    carries_bind_to(&c, c.at, turn->tested.at);
    carries_bind_to(&c, c.at, turn->carry.at);
    uint32_t kept = frame_nkept(&h->frame);
    Scope before = em_begin(e, 1, &e->i64);
    n = em_arg(&before, 0);
    For f = em_for(e, zero, em_bin(e, "llvm.intr.umax", n, one), one, 0, NULL);
    If begun = em_if(e, em_cmpi(e, "ne", n, zero));
    guarded_body(h, s);
    frame_forget(&h->frame, kept);
    em_else(e, &begun, 0, NULL);
    em_if_end(e, &begun, NULL, NULL);
    host_body(h, s->bodies[0]);
    em_for_end(e, &f, NULL, NULL);
    frame_forget(&h->frame, kept);
    go[1] = device_turns(h, s, n);
    go[0] = em_cmpi(e, "ne", go[1], zero);
    em_op(e, "scf.condition", &(Op){0, NULL, 2, go, 0, NULL, 0, NULL});
    em_end(e, &before);
    Scope after = em_begin(e, 1, &e->i64);
    n = em_arg(&after, 0);
    em_op(e, "scf.yield", &(Op){0, NULL, 1, &n, 0, NULL, 0, NULL});
    em_end(e, &after);
    em_while(e, 1, &zero, &before, &after);
    carries_close(&c, c.at, w->end.at);
}
static void host_while(Host *h, Step *s) {
    Emit *e = h->e;
    const While w = while_of(s->e), turn = while_turn(&w, s->bodies[0]->j, s->bodies[1]->j);
    for (uint32_t i = 0; i < w.cond_consts.n; i++) pass(h, w.cond_consts.at[i], turn.cond_consts.at[i]);
    for (uint32_t i = 0; i < w.body_consts.n; i++) pass(h, w.body_consts.at[i], turn.body_consts.at[i]);
    if (s->decides) {
        host_turns(h, s, &w, &turn);
        return;
    }
    Carried c = carried_new(h, s, s->bodies[1]);
    uint32_t n = c.n;
    carries_open(&c, w.carry.at);
    V *init = c.at;
    MlirType *types = arena_new(e->arena, MlirType, n + 1);
    for (uint32_t i = 0; i < n; i++) types[i] = mlirValueGetType(init[i]);
    uint32_t kept = frame_nkept(&h->frame);
    Scope before = em_begin(e, n, types);
    carries_bind(&c, &before, 0, turn.tested.at);
    host_body(h, s->bodies[0]);
    V *o = arena_new(e->arena, V, n + 1);
    o[0] = host_scalar(h, s->bodies[0]->j->out.at[0]);
    for (uint32_t i = 0; i < n; i++) o[i + 1] = em_arg(&before, i);
    em_op(e, "scf.condition", &(Op){0, NULL, n + 1, o, 0, NULL, 0, NULL});
    em_end(e, &before);
    frame_forget(&h->frame, kept);
    Scope after = em_begin(e, n, types);
    carries_bind(&c, &after, 0, turn.carry.at);
    host_body(h, s->bodies[1]);
    c.at = arena_new(e->arena, V, n + 1);
    carries_next(&c, turn.end.at);
    em_op(e, "scf.yield", &(Op){0, NULL, n, c.at, 0, NULL, 0, NULL});
    em_end(e, &after);
    frame_forget(&h->frame, kept);
    carries_close(&c, em_while(e, n, init, &before, &after), w.end.at);
}

/* ---- scan */
static V part(Host *h, Buf *whole, V turn, Val v) {
    V offset = em_bin(h->e, "llvm.mul", turn, host_bytes(h, v));
    return em_gep(h->e, frame_buffer(&h->frame, whole), offset, h->e->i8);
}
static void host_scan(Host *h, Step *s) {
    Emit *e = h->e;
    const Scan all = scan_of(s->e), scan = scan_turn(&all, s->bodies[0]->j);
    for (uint32_t i = 0; i < all.consts.n; i++) pass(h, all.consts.at[i], scan.consts.at[i]);
    Carried c = carried_new(h, s, s->bodies[0]);
    carries_open(&c, all.carry.at);
    V length = frame_dim(&h->frame, scan_length(h->plan->cx, &all)), one = em_i64(e, 1);
    uint32_t kept = frame_nkept(&h->frame);
    For f = em_for(e, em_i64(e, 0), length, one, c.n, c.at);
    V turn = em_arg(&f.scope, 0);
    if (all.reverse) turn = em_bin(e, "llvm.sub", em_bin(e, "llvm.sub", length, one), turn);
    carries_bind(&c, &f.scope, 1, scan.carry.at);
    for (uint32_t i = 0; i < scan.xs.n; i++) {
        Val x = scan.xs.at[i];
        V p = part(h, s->xs[i], turn, x);
        set_slot(h, s->xs_slots[i], p);
        Dtype d = val_array(h->plan->cx, x)->dtype;
        if (plan_register(h->plan, x)) set_scalar(h, x, frame_load(&h->frame, d, p));
    }
    for (uint32_t i = 0; i < scan.ys.n; i++) set_slot(h, s->ys_slots[i], part(h, s->ys[i], turn, scan.ys.at[i]));
    host_body(h, s->bodies[0]);
    for (uint32_t i = 0; i < scan.ys.n; i++)
        if (plan_register(h->plan, scan.ys.at[i])) host_store(h, scan.ys.at[i], slot(h, s->ys_slots[i]));
    V *results = arena_new(e->arena, V, c.n + 1);
    carries_next(&c, scan.end.at);
    em_for_end(e, &f, c.at, results);
    frame_forget(&h->frame, kept);
    carries_close(&c, results, all.end.at);
}

/* ---- cond: branch 0, else branch 1, …, else the last */
/* Does the branch take the memory of this result? */
static bool sized(const Step *s, uint32_t o) { return s->ys_slots[o] && s->ys[o] == s->ys_slots[o]; }

typedef struct {
    Cond parts;
    V index; /* if the branch is selected by number */
} Choice;
/* Is it branch k, given that it is none before k? */
static V chosen(Host *h, const Choice *c, uint32_t k) {
    Emit *e = h->e;
    if (c->parts.bools) return host_scalar(h, c->parts.index.at[k]);
    V at = em_int(e, mlirValueGetType(c->index), k);
    bool boolean = mlirTypeEqual(mlirValueGetType(c->index), e->i1);
    return em_cmpi(e, boolean ? "eq" : "sle", c->index, at);
}
static void branch(Host *h, Step *s, const Choice *c, uint32_t k, V *results) {
    Emit *e = h->e;
    Body *b = s->bodies[k];
    If i = {0};
    bool last = k + 1 == s->nbodies;
    if (!last) i = em_if(e, chosen(h, c, k));
    uint32_t kept = frame_nkept(&h->frame);
    for (uint32_t n = 0; n < b->j->in.n; n++) pass(h, c->parts.in.at[n], b->j->in.at[n]);
    host_body(h, b);
    uint32_t n = 0;
    for (uint32_t o = 0; o < b->j->out.n; o++)
        if (!s->ys_slots[o])
            results[n++] = host_scalar(h, b->j->out.at[o]);
        else if (sized(s, o))
            results[n++] = slot(h, b->out_slots[o]);
    frame_forget(&h->frame, kept);
    if (last) return;
    V *no = arena_new(e->arena, V, n + 1);
    em_else(e, &i, n, results);
    kept = frame_nkept(&h->frame);
    branch(h, s, c, k + 1, no);
    frame_forget(&h->frame, kept);
    em_if_end(e, &i, no, results);
}
/* All branches, whose kernels run if theirs is chosen. */
static void guarded_branches(Host *h, Step *s, const Cond *c) {
    Guard guard = {h->guard, s->decides, val_array(h->plan->cx, c->index.at[0])->dtype, 0, s->nbodies - 1};
    for (uint32_t k = 0; k < s->nbodies; k++) {
        const Jaxpr *j = s->bodies[k]->j;
        for (uint32_t n = 0; n < j->in.n; n++) pass(h, c->in.at[n], j->in.at[n]);
        guard.branch = k;
        h->guard = &guard;
        host_body(h, s->bodies[k]);
    }
    h->guard = guard.outer;
}
static void host_cond(Host *h, Step *s) {
    Choice c = {.parts = cond_of(s->e)};
    Vals out = c.parts.out;
    for (uint32_t o = 0; o < out.n; o++)
        if (s->ys_slots[o] && !sized(s, o)) set_slot(h, s->ys_slots[o], frame_buffer(&h->frame, s->ys[o]));
    if (s->decides) {
        guarded_branches(h, s, &c.parts);
        return;
    }
    V *results = arena_new(h->e->arena, V, out.n + 1);
    if (!c.parts.bools) c.index = host_scalar(h, c.parts.index.at[0]);
    branch(h, s, &c, 0, results);
    for (uint32_t o = 0; o < out.n; o++)
        if (!s->ys_slots[o])
            set_scalar(h, out.at[o], *results++);
        else if (sized(s, o))
            set_slot(h, s->ys_slots[o], *results++);
}
void host_control(Host *h, Step *s) {
    if (s->kind == STEP_COND)
        host_cond(h, s);
    else if (s->kind == STEP_WHILE)
        host_while(h, s);
    else
        host_scan(h, s);
}
