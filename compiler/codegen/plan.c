#include "../options.h"
#include "header.h"
#include "kernel.h"

void plan_grow(Plan *p) {
    if (p->cx->nvals <= p->ninfo) return;
    uint32_t n = p->cx->nvals * 2;
    Info **at = arena_new(p->arena, Info *, n);
    if (p->ninfo) memcpy(at, p->info, p->ninfo * sizeof *at);
    p->info = at, p->ninfo = n;
}
void plan_constant(Plan *p, Val v) {
    Info *info = plan_info(p, v);
    info->class = VAL_STORED;
    info->borrowed = true;
    info->buf = buf_new(p, BUF_CONST, 0);
    info->buf->v = v;
}
static Buf *argument(Plan *p, BufKind kind, uint32_t k) {
    Buf *b = buf_new(p, kind, 0);
    b->k = k;
    return b;
}
Plan *plan(Ctx *cx, const Jaxpr *j, uint32_t vector_bytes) {
    Plan *p = arena_new(cx->arena, Plan, 1);
    *p = (Plan){.cx = cx, .arena = cx->arena, .ix = indices_new(cx), .vector_bytes = vector_bytes};
    p->fuse = cx->options->opt > 0;
    plan_grow(p);
    Body *b = p->top = arena_new(p->arena, Body, 1);
    Signature s = signature_of(cx, j);
    b->j = j;
    b->out_slots = arena_new(p->arena, Buf *, j->out.n + 1);
    each(Val, c, j->consts)
        if (val_info(cx, *c)->data) plan_constant(p, *c);
    for (uint32_t i = 0; i < s.in.n; i++) {
        Info *info = plan_info(p, s.in.at[i]);
        bool scalar = plan_register(p, s.in.at[i]);
        *info = (Info){.class = scalar ? VAL_SCALAR : VAL_STORED, .buf = argument(p, BUF_IN, i), .borrowed = true};
        info->home = b;
    }
    p->computed = arena_new(p->arena, bool, j->out.n + 1);
    for (uint32_t i = 0; i < s.out.n; i++) p->computed[i] = signature_computed(cx, &s, s.out.at[i]);
    for (uint32_t i = 0; i < j->out.n; i++)
        if (!plan_register(p, j->out.at[i])) b->out_slots[i] = argument(p, BUF_OUT, i);
    if (!plan_body(p, b)) return NULL;
    plan_buffers(p);
    return p;
}
