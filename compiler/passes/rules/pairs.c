/* Derivatives of programs that combine two lists of scalars. */
#include "pairs.h"
#include "../transform/tx.h"

/* Inputs for the values that these stand for, then for the tangents of those that have one; the number of both. */
static uint32_t add_inputs(Ctx *cx, const Val *read, uint32_t n, Val *in, Val *t) {
    uint32_t m = n;
    for (uint32_t i = 0; i < n; i++) {
        ValInfo info = *val_info(cx, read[i]);
        in[i] = val_new(cx, info.type, info.span);
    }
    for (uint32_t i = 0; i < n; i++) {
        ValInfo info = *val_info(cx, read[i]);
        t[i] = has_tangent(cx, info.type) ? in[m++] = val_new(cx, info.type, info.span) : 0;
    }
    return m;
}
Jaxpr *jvp_of_pairs(Jvp *d, const Jaxpr *f) {
    Ctx *cx = d->b->cx;
    uint32_t n = f->out.n, m = 0, made = n;
    Builder b = {.cx = cx, .mesh = d->b->mesh, .span = d->b->span, .whole = d->b->whole};
    Jaxpr *j = arena_new(cx->arena, Jaxpr, 1);
    Val *in = arena_new(cx->arena, Val, 4 * (size_t)n + 1), *out = arena_new(cx->arena, Val, 2 * (size_t)n + 1);
    Val *primal = arena_new(cx->arena, Val, 2 * (size_t)n + 1), *t = arena_new(cx->arena, Val, 2 * (size_t)n + 1);
    Val *dt = arena_new(cx->arena, Val, n + 1);
    for (uint32_t k = 0; k < 2; k++) {
        uint32_t more = add_inputs(cx, f->in.at + k * n, n, in + m, t + k * n);
        memcpy(primal + k * n, in + m, n * sizeof *in);
        m += more;
    }
    if (!jvp_into(d->tx, &b, f, primal, t, out, dt)) return NULL;
    for (uint32_t i = 0; i < n; i++)
        if (t[i]) out[made++] = dt[i] ? dt[i] : b_zeros_like(&b, out[i]);
    *j = (Jaxpr){.span = f->span, .in = {in, m}, .out = {out, made}, .eqns = b.eqns};
    j->consts = (Vals){b.consts.at, b.consts.n};
    return b.failed ? NULL : j;
}
void pair_operands(Jvp *d, Val *arrays, Val *init) {
    uint32_t n = d->e->in.n / 2, m = n;
    memcpy(arrays, d->e->in.at, n * sizeof *arrays);
    memcpy(init, d->e->in.at + n, n * sizeof *init);
    for (uint32_t i = 0; i < n; i++) {
        if (!has_tangent(d->b->cx, val_type(d->b->cx, d->e->in.at[i]))) continue;
        arrays[m] = jvp_tangent(d, i);
        init[m++] = b_number(d->b, b_type(d->b, init[i])->dtype, 0);
    }
}
