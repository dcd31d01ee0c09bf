#include "../cost.h"
#include "../eval/record.h"
#include "attention.h"
#include "sort.h"
#include <assert.h>
#include <stdlib.h>

/* The offsets of buffers in the workspace. Steps have positions in the order they run; a buffer is live from the first
   step that touches it to the last; buffers that a loop's body reads from outside are live during the whole loop.
   Buffers that are never live together share memory: a released block goes to the next buffer that it is large enough
   for, or that has the same size if sizes are known only at run time. */

Buf *buf_new(Plan *p, BufKind kind, Dim bytes) {
    Buf *b = arena_new(p->arena, Buf, 1);
    *b = (Buf){.kind = kind, .number = p->bufs.n, .bytes = bytes};
    push(p->arena, &p->bufs, b);
    return b;
}
Dim plan_bytes(const Plan *p, Val v) {
    Dim n = type_size(p->cx->types, val_type(p->cx, v));
    return dim_mul(p->cx->types, n, dtype_bytes(val_array(p->cx, v)->dtype));
}
Buf *buf_for(Plan *p, BufKind kind, Val v) { return buf_new(p, kind, plan_bytes(p, v)); }

typedef struct {
    Plan *p;
    struct {
        Buf **at;
        uint32_t n, cap;
    } touched; /* since the outermost open loop began; may repeat */
    uint32_t position;
    Body *body; /* being walked, and which of its steps */
    uint32_t step;
    const Eqn *loop; /* whose stacked result `rows` is touched, or NULL */
    Val rows;
    bool *taken;  /* by number of a buffer: it has an Alloc */
    int64_t past; /* bytes that a product reads past a buffer, at most */
} Walk;

/* For computed sizes the memory is allocated before the first step that touches it. */
static void take(Walk *w, Buf *b) {
    Alloc a = {.step = w->step, .buf = b, .loop = w->loop, .rows = w->rows};
    if (w->taken[b->number]) return;
    w->taken[b->number] = true;
    w->p->heap = true;
    a.kept = b->kind == BUF_HEAP && b->k;
    if (b->kind == BUF_OUT) a.like = w->p->top->j->out.at[b->k];
    push(w->p->arena, &w->body->allocs, a);
}
static void touch(Walk *w, Buf *b) {
    if (!b) return;
    if (b->kind == BUF_WORK && dim_has_bound(w->p->cx->types, b->bytes)) b->kind = BUF_HEAP;
    if (b->kind == BUF_HEAP || (b->kind == BUF_OUT && w->p->computed[b->k])) take(w, b);
    for (uint32_t i = 0; i < 3; i++) touch(w, b->behind[i]);
    if (b->kind != BUF_WORK) return;
    if (!b->first) b->first = w->position;
    b->last = w->position;
    push(w->p->arena, &w->touched, b);
}
static void touch_read(void *user, Val v, const Ix *index, Ix address) {
    Walk *w = user;
    if (v) touch(w, plan_info(w->p, v)->buf);
}
static void walk_body(Walk *w, Body *b);

void step_reads(Plan *p, Step *s, Seen *seen, void *user) {
    Ix index[MAX_RANK];
    if (s->kind == STEP_SCALAR) plan_scalar_reads(p, s, seen, user);
    each(Store, st, s->stores) {
        step_at(p, s, st->v, index);
        plan_reads(p, st->v, index, seen, user);
        record_place(record(p, NULL, seen, user), st, index);
    }
    each(Val, v, s->members) {
        const Eqn *e = plan_info(p, *v)->e;
        const ArrayType *y = val_array(p->cx, *v);
        bool reduces = eqn_reduces(e), opaque = !reduces && !eqn_point(e);
        if (!opaque) step_at(p, s, reduces ? e->in.at[0] : *v, index);
        if (prim_lower[e->prim] == LOWER_PROGRAM) {
            eval_program(record(p, NULL, seen, user), e, index + plan_info(p, *v)->stack);
            continue;
        }
        each(Val, x, e->in) {
            const ArrayType *t = val_array(p->cx, *x);
            Ix at[MAX_RANK];
            for (uint32_t d = 0; d < t->rank; d++) {
                bool stretched = !reduces && !opaque && t->dims[d] == 1 && y->dims[d] != 1;
                at[d] = opaque ? ix_atom(p->ix, atom_loop(p->ix, t->dims[d])) : stretched ? 0 : index[d];
            }
            plan_reads(p, *x, at, seen, user);
        }
    }
    const DeviceDot *d = s->dot ? s->dot->device : NULL;
    if (d && d->attention) attention_reads(p, d->attention, seen, user);
}
/* What is there before a step with bodies and after it: carries, what a loop slices and stacks, the results of a cond,
   what decides. */
static void touch_around(Walk *w, Step *s) {
    for (uint32_t i = 0; i < s->ncarries; i++) {
        const Carry *c = &s->carries[i];
        touch(w, c->operand), touch(w, c->a), touch(w, c->b);
    }
    touch(w, s->decides);
    for (uint32_t i = 0, n = step_slices(s); i < n; i++) touch(w, s->xs[i]);
    for (uint32_t i = 0; s->nbodies && s->ys && i < s->e->out.n - s->ncarries; i++) {
        w->loop = s->kind == STEP_SCAN ? s->e : NULL, w->rows = s->e->out.at[s->ncarries + i];
        touch(w, s->ys[i]);
    }
    w->loop = NULL;
}
static void walk_step(Walk *w, Step *s) {
    s->start = ++w->position;
    step_reads(w->p, s, touch_read, w);
    each(Store, st, s->stores) touch(w, st->buf);
    touch(w, s->parts), touch(w, s->lines), touch(w, s->claims.buf);
    for (uint32_t i = 0; i < s->narrays; i++) touch(w, s->arrays[i]);
    for (uint32_t i = 0; s->sort && i < 2; i++) touch(w, s->sort->keys[i]), touch(w, s->sort->places[i]);
    if (s->sort) touch(w, s->sort->parts), touch(w, s->sort->counts), touch(w, s->sort->sums);
    if (s->dot)
        touch(w, s->dot->a.buf), touch(w, s->dot->b.buf), touch(w, s->dot->pack), touch(w, s->dot->partial),
            touch(w, s->dot->folded), touch(w, s->dot->pack_rows);
    if (s->dot && dot_reads_past(s->dot)) {
        int64_t tile = (int64_t)s->dot->w * dtype_bytes(s->dot->b.dtype);
        if (tile > w->past) w->past = tile;
    }
    assert(!s->nbodies || s->e);
    if (s->nbodies)
        each(Val, v, s->e->in) touch(w, plan_info(w->p, *v)->buf);
    touch_around(w, s);
    uint32_t from = w->touched.n;
    for (uint32_t i = 0; i < s->nbodies; i++) {
        walk_body(w, s->bodies[i]);
        w->position++;
    }
    s->end = w->position;
    for (uint32_t i = from; i < w->touched.n; i++)
        if (w->touched.at[i]->first < s->start + 1) w->touched.at[i]->last = s->end;
    if (s->nbodies) {
        touch_around(w, s);
        each(Val, v, s->e->in) touch(w, plan_info(w->p, *v)->buf);
    }
}
static void walk_body(Walk *w, Body *b) {
    Body *outer = w->body;
    uint32_t step = w->step;
    w->body = b;
    for (w->step = 0; w->step < b->steps.n; w->step++) walk_step(w, b->steps.at[w->step]);
    w->position++;
    each(Val, v, b->j->out)
        if (!val_info(w->p->cx, *v)->lit) touch(w, plan_info(w->p, *v)->buf);
    w->body = outer, w->step = step;
}

/* Does it begin where memory is aligned? */
static bool is_aligned(const Plan *p, const Buf *b) {
    switch (b->kind) {
    case BUF_CONST:
    case BUF_WORK:
    case BUF_HEAP: return true;
    case BUF_IN:
    case BUF_OUT: return !p->function;
    default: return false;
    }
}
static bool is_multiple(Plan *p, Ix address, Dim n) {
    const IxExpr *x = ix_at(p->ix, address);
    bool all = dim_mod(p->cx->types, x->c, n) == 0;
    for (uint32_t i = 0; i < x->n; i++) all &= dim_mod(p->cx->types, x->at[i].coef, n) == 0;
    return all;
}
uint32_t address_align(Plan *p, const Buf *b, Dtype d, Ix address) {
    uint32_t element = dtype_align(d), bytes = dtype_bytes(d), align = DEVICE_ALIGN;
    if (!p->target->device || !is_aligned(p, b)) return element;
    while (align > element && !is_multiple(p, address, align / bytes)) align /= 2;
    return align;
}

/* ---- blocks */
typedef struct {
    Dim bytes, offset;
    uint32_t free_from; /* position after which it is free */
} Block;
static Dim rounded(Plan *p, Dim bytes) {
    Types *ts = p->cx->types;
    return dim_mul(ts, dim_floordiv(ts, dim_add(ts, bytes, 63), 64), 64);
}
static bool fits(const Block *k, Dim bytes) {
    if (dim_is_const(k->bytes) && dim_is_const(bytes)) return k->bytes >= bytes;
    return k->bytes == bytes;
}
static int by_first(const void *a, const void *b) {
    const Buf *x = *(Buf *const *)a, *y = *(Buf *const *)b;
    return x->first != y->first ? (x->first < y->first ? -1 : 1) : (x->number < y->number ? -1 : 1);
}
void plan_buffers(Plan *p) {
    Walk w = {.p = p, .taken = arena_new(p->arena, bool, p->bufs.n + 1)};
    struct {
        Block *at;
        uint32_t n, cap;
    } blocks = {0};
    uint32_t n = 0;
    walk_body(&w, p->top);
    Buf **order = arena_new(p->arena, Buf *, p->bufs.n + 1);
    each(Buf *, b, p->bufs)
        if ((*b)->kind == BUF_WORK && (*b)->first) order[n++] = *b;
    qsort(order, n, sizeof *order, by_first);
    for (uint32_t i = 0; i < n; i++) {
        Buf *b = order[i];
        Dim bytes = rounded(p, b->bytes);
        Block *best = NULL;
        each(Block, k, blocks)
            if (k->free_from < b->first && fits(k, bytes) &&
                (!best || (dim_is_const(k->bytes) && k->bytes < best->bytes)))
                best = k;
        if (!best) {
            Block k = {.bytes = bytes, .offset = p->workspace};
            p->workspace = dim_add(p->cx->types, p->workspace, bytes);
            push(p->arena, &blocks, k);
            best = &blocks.at[blocks.n - 1];
        }
        best->free_from = b->last;
        b->offset = best->offset;
    }
    p->workspace = dim_add(p->cx->types, p->workspace, rounded(p, w.past));
}
