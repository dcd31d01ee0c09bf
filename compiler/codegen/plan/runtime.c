#include "call.h"
#include "known.h"

/* Calls of C code, and programs for several devices: their operands and results are dense, in memory. */

/* A number that the host has. */
static bool plan_device_number(Plan *p, Body *b, const Eqn *e) {
    step_result(p, step_new(p, b, STEP_RUNTIME, e, NULL), 0, NULL);
    return true;
}
Val plan_same_order(Plan *p, Val v) {
    for (;;) {
        const Info *info = plan_info(p, v);
        if (val_info(p->cx, v)->lit || info->class != VAL_VIRTUAL || info->buf) return v;
        bool order = param_ints(info->e, K_dimensions).n > 0;
        bool reshape = info->e->prim == P_reshape && !order;
        if (!reshape && info->e->prim != P_squeeze && info->e->prim != P_expand_dims) return v;
        v = info->e->in.at[0];
    }
}
Buf *plan_reshaped(Plan *p, Body *b, Val v) {
    Val under = plan_same_order(p, v);
    bool memory = !val_info(p->cx, under)->lit && !plan_register(p, under) && plan_info(p, under)->class != VAL_VIRTUAL;
    return plan_dense(p, b, memory ? under : v);
}
bool plan_runtime(Plan *p, Body *b, const Eqn *e) {
    if (p->target->device && known_device_number(e)) return plan_device_number(p, b, e);
    bool devices = prim_lower[e->prim] == LOWER_SPMD;
    Plan *device = devices ? plan(p->callees, param_jaxpr(e, K_call_jaxpr), NULL) : NULL;
    if (devices && !device) return false;
    plan_grow(p); /* values were created */
    Buf **arrays = arena_new(p->arena, Buf *, e->in.n + e->out.n + 1);
    for (uint32_t i = 0; i < e->in.n; i++) arrays[i] = plan_reshaped(p, b, e->in.at[i]);
    Step *s = step_new(p, b, devices ? STEP_SPMD : STEP_RUNTIME, e, NULL);
    s->arrays = arrays;
    s->narrays = e->in.n + e->out.n;
    s->device = device;
    p->heap = true; /* it may end the call */
    for (uint32_t i = 0; i < e->out.n; i++)
        step_result(p, s, i, arrays[e->in.n + i] = buf_for(p, BUF_WORK, e->out.at[i]));
    return true;
}
