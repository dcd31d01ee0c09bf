#include "plan.h"
#include "../../options.h"
#include "../cost.h"
#include "call.h"
#include "known.h"
#include "interface.h"
#include <assert.h>

enum { INFO_BLOCK = 256 };
void plan_grow(Plan *p) {
    uint32_t need = p->cx->nvals / INFO_BLOCK + 1, n = 2 * need;
    if (need <= p->ninfo) return;
    Info ***at = arena_new(p->arena, Info **, n);
    if (p->ninfo) memcpy(at, p->info, p->ninfo * sizeof *at);
    p->info = at, p->ninfo = n;
}
Info *plan_info(Plan *p, Val v) {
    assert(v / INFO_BLOCK < p->ninfo);
    Info ***block = &p->info[v / INFO_BLOCK];
    if (!*block) *block = arena_new(p->arena, Info *, INFO_BLOCK);
    Info **info = &(*block)[v % INFO_BLOCK];
    if (!*info) *info = arena_new(p->arena, Info, 1);
    return *info;
}
void plan_bounds(const Plan *p, const Eqn *e, BoundSeen *seen, void *user) {
    each(const Param, q, e->params) {
        const Value *v = &q->value;
        if (v->kind == V_DIM) dim_bounds(p->cx->types, v->dim, seen, user);
        for (uint32_t i = 0; v->kind == V_DIMS && i < v->dims.n; i++)
            dim_bounds(p->cx->types, v->dims.at[i], seen, user);
    }
}
void plan_constant(Plan *p, Val v) {
    Info *info = plan_info(p, v);
    info->class = VAL_STORED;
    info->borrowed = true;
    info->buf = buf_new(p, BUF_CONST, 0);
    info->buf->v = v;
}
/* A start is clamped to [0, most]; JAX adds the extent to negative ones before it prints the equation. */
Ix index_start(Plan *p, Val start, Dim most) {
    const ValInfo *v = val_info(p->cx, start);
    if (!v->lit) return ix_value(p->ix, (IxValue){.v = start, .most = most});
    int64_t n = v->lit->negative ? 0 : (int64_t)v->lit->i;
    return ix_dim(p->ix, dim_min(p->cx->types, n, most));
}
static Buf *argument_buf(Plan *p, BufKind kind, uint32_t k) {
    Buf *b = buf_new(p, kind, 0);
    b->k = k;
    return b;
}
/* An input in whose memory result k is given back: it lies there, and may be written over. */
static void given(Plan *p, const Jaxpr *j, uint32_t input, uint32_t k) {
    p->over[k] = buf_new(p, BUF_SLOT, 0);
    p->over[k]->k = 1;
    *plan_info(p, j->in.at[input]) = (Info){.class = VAL_STORED, .buf = p->over[k]};
}
static void inputs(Plan *p, Body *b, const Signature *s) {
    for (uint32_t i = 0; i < s->in.n; i++) {
        Info *info = plan_info(p, s->in.at[i]);
        bool scalar = plan_register(p, s->in.at[i]);
        *info = (Info){.class = scalar ? VAL_SCALAR : VAL_STORED, .buf = argument_buf(p, BUF_IN, i), .borrowed = true};
        info->home = b;
    }
}
/* Most equations of rank 0 are one instruction, most others a call; a store is a few instructions. */
static uint32_t step_weight(const Step *s) {
    if (s->kind == STEP_SCALAR) return 1;
    uint32_t n = s->stores.n + s->narrays;
    return n > STEP_WEIGHT ? n : STEP_WEIGHT;
}
void plan_weigh(Body *b) {
    b->weight += b->j->out.n;
    each(Step *, s, b->steps) {
        b->weight += step_weight(*s);
        for (uint32_t i = 0; i < (*s)->nbodies; i++) b->weight += (*s)->bodies[i]->weight;
    }
}

Plan *plan(Callees *cs, const Jaxpr *j, const uint32_t *over) {
    Ctx *cx = cs->cx;
    Plan *p = arena_new(cx->arena, Plan, 1);
    *p = (Plan){.cx = cx, .arena = cx->arena, .ix = indices_new(cx), .callees = cs, .target = cs->target};
    p->copies.cx = cx;
    p->known.keys.arena = p->known.programs.arena = p->known.loops.arena = cx->arena;
    p->fuse = cx->options->opt > 0;
    p->function = over;
    plan_grow(p);
    if (p->target->device) known_mark_top(p, j);
    Body *b = p->top = arena_new(p->arena, Body, 1);
    Signature s = signature_within(cx, cs->symbols, j);
    b->j = j;
    b->out_slots = arena_new(p->arena, Buf *, j->out.n + 1);
    each(Val, c, j->consts)
        if (val_info(cx, *c)->data) plan_constant(p, *c);
    inputs(p, b, &s);
    p->computed = arena_new(p->arena, bool, j->out.n + 1);
    for (uint32_t i = 0; i < s.out.n; i++) p->computed[i] = signature_computed(cx, &s, s.out.at[i]);
    p->over = arena_new(p->arena, Buf *, j->out.n + 1);
    for (uint32_t i = 0; i < j->out.n; i++)
        if (over && over[i] != NOT_OVER)
            given(p, j, over[i], i);
        else if (!plan_register(p, j->out.at[i]))
            b->out_slots[i] = argument_buf(p, BUF_OUT, i);
    if (!plan_body(p, b) || p->failed) return NULL;
    for (uint32_t i = 0; i < j->out.n; i++)
        if (p->over[i]) b->out_slots[i] = p->over[i];
    plan_buffers(p);
    return p;
}
