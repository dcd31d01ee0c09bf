/* Places of arrays that are joined: concatenate and stack. */
#include "../cost.h"
#include "plan.h"

static uint32_t axis_of(const Eqn *e) { return (uint32_t)param_number(e, e->prim == P_stack ? K_axis : K_dimension); }
/* Along the axis: 1 of what is stacked. */
static Dim extent_of(Plan *p, const Eqn *e, Val v) {
    return e->prim == P_stack ? 1 : val_array(p->cx, v)->dims[axis_of(e)];
}
Joined plan_part(Plan *p, const Eqn *e, uint32_t k, Dim *at, Joined whole) {
    Types *ts = p->cx->types;
    const ArrayType *t = val_array(p->cx, e->out.at[0]);
    bool stack = e->prim == P_stack;
    uint32_t axis = axis_of(e);
    Joined part = {whole.buf, whole.offset, arena_new(p->arena, Dim, t->rank + 1)};
    part.offset = ix_add(p->ix, whole.offset, ix_dim(p->ix, dim_mul(ts, *at, whole.strides[axis])));
    *at = dim_add(ts, *at, extent_of(p, e, e->in.at[k]));
    for (uint32_t d = 0, n = 0; d < t->rank; d++)
        if (!stack || d != axis) part.strides[n++] = whole.strides[d];
    return part;
}
Joined plan_join(Plan *p, const Eqn *e) {
    Val y = e->out.at[0];
    Info *info = plan_info(p, y);
    const ArrayType *t = val_array(p->cx, y);
    if (info->into) {
        const Eqn *into = info->into;
        uint32_t k = 0;
        Dim at = 0;
        for (; into->in.at[k] != y; k++) at = dim_add(p->cx->types, at, extent_of(p, into, into->in.at[k]));
        return plan_part(p, into, k, &at, plan_join(p, into));
    }
    if (!info->buf) info->buf = buf_for(p, BUF_WORK, y);
    Joined home = {info->buf, 0, arena_new(p->arena, Dim, t->rank + 1)};
    Dim stride = 1;
    for (uint32_t d = t->rank; d-- > 0;) home.strides[d] = stride, stride = dim_mul(p->cx->types, stride, t->dims[d]);
    return home;
}
Val joined_under(Plan *p, const Eqn *e, uint32_t k, Joined *part) {
    Val x = e->in.at[k], under = plan_same_order(p, x);
    const ArrayType *t = val_array(p->cx, x);
    Dim stride = 1;
    if (e->prim != P_concatenate || val_info(p->cx, under)->lit || plan_info(p, under)->class != VAL_MEMBER) return x;
    for (uint32_t d = t->rank; d-- > 0; stride = dim_mul(p->cx->types, stride, t->dims[d]))
        if (t->dims[d] != 1 && part->strides[d] != stride) return x;
    if (under != x) part->strides = NULL;
    return under;
}
bool joined_beside(Plan *p, const Eqn *e) {
    const ArrayType *t = val_array(p->cx, e->out.at[0]);
    each(Val, v, e->in)
        if (extent_of(p, e, *v) != 1) return false;
    return axis_of(e) + 1 == t->rank && e->in.n <= MOST_BESIDE;
}
bool joined_where_computed(Plan *p, const Eqn *e) {
    uint32_t n = 0;
    each(Val, v, e->in) n += !val_info(p->cx, *v)->lit && plan_info(p, *v)->class == VAL_MEMBER;
    return n == e->in.n || (n && joined_beside(p, e) && !p->target->device);
}
