#include "scatter.h"
#include "../cost.h"

/* y = x with some elements overwritten: in the memory of x, if nothing reads that any more, or in a copy. */

typedef struct {
    Plan *p;
    const Buf *buf;
    bool yes;
} Touches;
static void touches(void *user, Val v, const Ix *index, Ix address) {
    Touches *t = user;
    if (!v) return;
    const Info *info = plan_info(t->p, v);
    t->yes |= info->class != VAL_SCALAR && same_buf(info->buf, t->buf);
}
/* Does evaluating v read the buffer? */
static bool reads_buffer(Plan *p, Val v, const Buf *b) {
    Touches t = {.p = p, .buf = b};
    plan_reads(p, v, plan_any_index(p, v), touches, &t);
    return t.yes;
}
static bool larger(Plan *p, Val a, Val b) {
    Dim over =
        dim_sub(p->cx->types, type_size(p->cx->types, val_type(p->cx, a)), type_size(p->cx->types, val_type(p->cx, b)));
    return dim_is_const(over) && over > 0;
}
/* May x's memory become that of the result? Yes if x is not read later, and if the elements written over it are not
   computed from it at the same time. */
static Buf *own_memory(Plan *p, Body *b, const Eqn *e) {
    Val x = e->in.at[0];
    const Info *old = plan_info(p, x);
    if (old->uses || val_info(p->cx, x)->lit || old->class == VAL_VIRTUAL) return NULL;
    Buf *from = plan_stored(p, b, x);
    if (old->borrowed || old->strides || old->offset) return NULL;
    if (from->kind != BUF_WORK && !(from->kind == BUF_SLOT && from->k)) return NULL;
    for (uint32_t i = 1; i < e->in.n; i++) {
        Val v = e->in.at[i];
        if (!reads_buffer(p, v, from)) continue;
        if (plan_info(p, v)->class != VAL_VIRTUAL || larger(p, v, x)) return NULL;
        plan_cut(p, b, v);
        plan_stored(p, b, v);
    }
    from->written = true;
    return from;
}
Buf *plan_copied(Plan *p, Body *b, Val x) {
    const Info *old = plan_info(p, x);
    Buf *buf = buf_for(p, BUF_WORK, x);
    if (old->class == VAL_MEMBER && !val_info(p->cx, x)->lit) {
        step_store(p, step_of(b, old), x, buf, 0, NULL, DT_none);
        return buf;
    }
    Step *s = step_new(p, b, STEP_LOOPS, NULL, val_array(p->cx, x));
    step_evaluates(p, b, s, x);
    step_store(p, s, x, buf, 0, NULL, DT_none);
    return buf;
}
/* Memory for the result that contains x: its own or a copy. */
static Buf *written_over(Plan *p, Body *b, const Eqn *e) {
    Buf *own = own_memory(p, b, e);
    return own ? own : plan_copied(p, b, e->in.at[0]);
}
void plan_update(Plan *p, Body *b, const Eqn *e) {
    Val x = e->in.at[0], update = e->in.at[1], y = e->out.at[0];
    const ArrayType *t = val_array(p->cx, x), *u = val_array(p->cx, update);
    Info *info = plan_info(p, y);
    Buf *buf = written_over(p, b, e);
    Dim *strides = arena_new(p->arena, Dim, t->rank + 1), stride = 1;
    Ix offset = 0;
    for (uint32_t d = t->rank; d-- > 0;) {
        Val start = e->in.at[2 + d];
        Dim most = dim_sub(p->cx->types, t->dims[d], u->dims[d]);
        offset = ix_add(p->ix, offset, ix_scale(p->ix, index_start(p, start, most), stride));
        strides[d] = stride;
        stride = dim_mul(p->cx->types, stride, t->dims[d]);
    }
    Step *s = step_new(p, b, STEP_LOOPS, NULL, u);
    for (uint32_t i = 1; i < e->in.n; i++) step_evaluates(p, b, s, e->in.at[i]);
    step_store(p, s, update, buf, offset, strides, DT_none);
    *info = (Info){.class = VAL_STORED, .e = e, .step = s->number, .uses = info->uses, .buf = buf};
}
bool plan_scatter(Plan *p, Body *b, const Eqn *e) {
    Val y = e->out.at[0], update = e->in.at[2];
    Info *info = plan_info(p, y);
    Buf *buf = written_over(p, b, e);
    Step *s = step_new(p, b, STEP_SCATTER, e, val_array(p->cx, update));
    scatter_order(p, s);
    s->cost = SCATTER_COST;
    for (uint32_t i = 1; i < e->in.n; i++) step_evaluates(p, b, s, e->in.at[i]);
    step_store(p, s, update, buf, 0, NULL, DT_none);
    s->stores.at[0].scatter = e;
    ValClass class = plan_register(p, y) ? VAL_SCALAR : VAL_STORED;
    *info = (Info){.class = class, .e = e, .step = s->number, .uses = info->uses, .buf = buf};
    return true;
}
