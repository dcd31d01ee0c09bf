#include "gather.h"
#include "../cost.h"
#include <assert.h>

/* Index operations: no data moves; the result at an index is an operand at another. pad and
   concatenate read under a condition: outside it nothing is loaded. */

static const ArrayType *type_in(Eval *k, const Eqn *e, uint32_t i) { return val_array(k->plan->cx, e->in.at[i]); }
static const ArrayType *type_out(Eval *k, const Eqn *e) { return val_array(k->plan->cx, e->out.at[0]); }
static Types *types(Eval *k) { return k->plan->cx->types; }

/* ---- values made of indices */
static Reg index_iota(Eval *k, const Eqn *e, uint32_t out, const Ix *index) {
    return k->op->index(k, index[param_number(e, K_dimension)], type_out(k, e)->dtype);
}
static Reg index_empty(Eval *k, const Eqn *e, uint32_t out, const Ix *index) {
    return k->op->constant(k, type_out(k, e)->dtype, 0);
}
static Reg index_dim_as_value(Eval *k, const Eqn *e, uint32_t out, const Ix *index) {
    const Param *p = param_find(e, K_dim);
    Dim d = p && p->value.kind == V_DIM ? p->value.dim : param_int(e, K_dim, 0);
    return k->op->index(k, ix_dim(k->ix, d), type_out(k, e)->dtype);
}
/* Which of the listed platforms this is: the first list that names it, or None. */
static bool names_platform(const Value *v, Str platform) {
    if (v->kind == V_NONE) return true;
    if (v->kind == V_STR || v->kind == V_WORD) return memmem(v->s.at, v->s.n, platform.at, platform.n);
    if (v->kind == V_LIST)
        for (uint32_t i = 0; i < v->list.n; i++)
            if (names_platform(&v->list.at[i], platform)) return true;
    return false;
}
static Reg index_platform_index(Eval *k, const Eqn *e, uint32_t out, const Ix *index) {
    const Param *p = param_find(e, K_platforms);
    Str platform = str(k->plan->target->platform);
    uint32_t n = 0;
    if (p && p->value.kind == V_LIST)
        while (n + 1 < p->value.list.n && !names_platform(&p->value.list.at[n], platform)) n++;
    return k->op->constant(k, type_out(k, e)->dtype, n);
}

/* ---- an operand at another index */
static Reg index_broadcast_in_dim(Eval *k, const Eqn *e, uint32_t out, const Ix *index) {
    const ArrayType *x = type_in(k, e, 0), *y = type_out(k, e);
    Ints dims = param_ints(e, K_broadcast_dimensions);
    Ix at[MAX_RANK];
    for (uint32_t d = 0; d < x->rank && d < dims.n; d++)
        at[d] = x->dims[d] == 1 && y->dims[dims.at[d]] != 1 ? 0 : index[dims.at[d]];
    return eval_value(k, e->in.at[0], at);
}
/* From the index to the row-major position and back to the operand's axes; equal leading and trailing axes are kept.
   `dimensions` is the order in which the operand's axes are read. */
static Reg index_reshape(Eval *k, const Eqn *e, uint32_t out, const Ix *index) {
    const ArrayType *x = type_in(k, e, 0), *y = type_out(k, e);
    Ints order = param_ints(e, K_dimensions);
    Ix flat = 0, at[MAX_RANK], read[MAX_RANK];
    Dim dims[MAX_RANK];
    uint32_t lead = 0, xe = x->rank, ye = y->rank;
    for (uint32_t d = 0; d < x->rank; d++) dims[d] = x->dims[order.n ? order.at[d] : d];
    while (lead < xe && lead < ye && dims[lead] == y->dims[lead]) at[lead] = index[lead], lead++;
    while (xe > lead && ye > lead && dims[xe - 1] == y->dims[ye - 1]) xe--, ye--, at[xe] = index[ye];
    for (uint32_t d = lead; d < ye; d++) flat = ix_add(k->ix, ix_scale(k->ix, flat, y->dims[d]), index[d]);
    for (uint32_t d = xe; d-- > lead;) {
        at[d] = d == lead ? flat : ix_mod(k->ix, flat, dims[d]);
        flat = ix_div(k->ix, flat, dims[d]);
    }
    for (uint32_t d = 0; d < x->rank; d++) read[order.n ? order.at[d] : d] = at[d];
    return eval_value(k, e->in.at[0], read);
}

static Reg index_squeeze(Eval *k, const Eqn *e, uint32_t out, const Ix *index) {
    const ArrayType *x = type_in(k, e, 0);
    Ints gone = param_ints(e, K_dimensions);
    Ix at[MAX_RANK];
    for (uint32_t d = 0, n = 0; d < x->rank; d++)
        at[d] = ints_have(gone, d) || ints_have(gone, (int64_t)d - x->rank) ? 0 : index[n++];
    return eval_value(k, e->in.at[0], at);
}
static Reg index_expand_dims(Eval *k, const Eqn *e, uint32_t out, const Ix *index) {
    const ArrayType *y = type_out(k, e);
    Ints made = param_ints(e, K_dimensions);
    Ix at[MAX_RANK];
    for (uint32_t d = 0, n = 0; d < y->rank; d++)
        if (!ints_have(made, d) && !ints_have(made, (int64_t)d - y->rank)) at[n++] = index[d];
    return eval_value(k, e->in.at[0], at);
}
static Reg index_transpose(Eval *k, const Eqn *e, uint32_t out, const Ix *index) {
    Ints p = param_ints(e, K_permutation);
    Ix at[MAX_RANK];
    for (uint32_t d = 0; d < p.n; d++) at[p.at[d]] = index[d];
    return eval_value(k, e->in.at[0], at);
}
static Reg index_rev(Eval *k, const Eqn *e, uint32_t out, const Ix *index) {
    const ArrayType *x = type_in(k, e, 0);
    Ints axes = param_ints(e, K_dimensions);
    Ix at[MAX_RANK];
    for (uint32_t d = 0; d < x->rank; d++) {
        Ix last = ix_dim(k->ix, dim_sub(types(k), x->dims[d], 1));
        at[d] = ints_have(axes, d) ? ix_sub(k->ix, last, index[d]) : index[d];
    }
    return eval_value(k, e->in.at[0], at);
}
static Reg index_slice(Eval *k, const Eqn *e, uint32_t out, const Ix *index) {
    Dims start = param_dims(e, K_start_indices);
    Ints strides = param_ints(e, K_strides);
    Ix at[MAX_RANK];
    for (uint32_t d = 0; d < start.n; d++) {
        Ix scaled = d < strides.n ? ix_scale(k->ix, index[d], strides.at[d]) : index[d];
        at[d] = ix_add(k->ix, ix_dim(k->ix, start.at[d]), scaled);
    }
    return eval_value(k, e->in.at[0], at);
}
static Reg index_windows(Eval *k, const Eqn *e, uint32_t out, const Ix *index) {
    const ArrayType *x = type_in(k, e, 0);
    Ints axes = param_ints(e, K_axes), strides = param_ints(e, K_window_strides);
    Dims dilation = param_dims(e, K_window_dilation);
    Ix at[MAX_RANK];
    memcpy(at, index, x->rank * sizeof *at);
    for (uint32_t i = 0; i < axes.n; i++) {
        Ix *a = &at[axes.at[i]];
        Ix within_window = ix_scale(k->ix, index[x->rank + i], dilation.at[i]);
        *a = ix_add(k->ix, ix_scale(k->ix, *a, strides.at[i]), within_window);
    }
    return eval_value(k, e->in.at[0], at);
}
static Reg index_dynamic_slice(Eval *k, const Eqn *e, uint32_t out, const Ix *index) {
    const ArrayType *x = type_in(k, e, 0), *y = type_out(k, e);
    Ix at[MAX_RANK];
    for (uint32_t d = 0; d < x->rank; d++) {
        Val start = e->in.at[1 + d];
        Dim most = dim_sub(types(k), x->dims[d], y->dims[d]);
        if (!val_info(k->plan->cx, start)->lit) k->op->place(k, &(IxValue){.v = start, .most = most});
        at[d] = ix_add(k->ix, index_start(k->plan, start, most), index[d]);
    }
    return eval_value(k, e->in.at[0], at);
}
static Reg index_element(Eval *k, const Eqn *e, uint32_t out, const Ix *index) {
    const ArrayType *x = type_in(k, e, 0);
    Ix at[MAX_RANK];
    for (uint32_t d = 0; d < x->rank; d++) {
        Val place = e->in.at[1 + d];
        Dim most = dim_sub(types(k), x->dims[d], 1);
        if (!val_info(k->plan->cx, place)->lit) k->op->place(k, &(IxValue){.v = place, .most = most});
        at[d] = index_start(k->plan, place, most);
    }
    return eval_value(k, e->in.at[0], at);
}
static Reg index_tile(Eval *k, const Eqn *e, uint32_t out, const Ix *index) {
    const ArrayType *x = type_in(k, e, 0), *y = type_out(k, e);
    Ix at[MAX_RANK];
    for (uint32_t d = 0; d < x->rank; d++)
        at[d] = x->dims[d] == y->dims[d] ? index[d] : ix_mod(k->ix, index[d], x->dims[d]);
    return eval_value(k, e->in.at[0], at);
}
static Reg index_split(Eval *k, const Eqn *e, uint32_t out, const Ix *index) {
    const ArrayType *x = type_in(k, e, 0);
    Dims sizes = param_dims(e, K_sizes);
    int64_t axis = param_number(e, K_axis);
    Dim start = 0;
    Ix at[MAX_RANK];
    assert(axis >= 0);
    for (uint32_t i = 0; i < out; i++) start = dim_add(types(k), start, sizes.at[i]);
    for (uint32_t d = 0; d < x->rank; d++) at[d] = index[d];
    at[axis] = ix_add(k->ix, index[axis], ix_dim(k->ix, start));
    return eval_value(k, e->in.at[0], at);
}
static Reg index_unstack(Eval *k, const Eqn *e, uint32_t out, const Ix *index) {
    const ArrayType *x = type_in(k, e, 0);
    int64_t axis = param_number(e, K_axis);
    Ix at[MAX_RANK];
    for (uint32_t d = 0, n = 0; d < x->rank; d++) at[d] = d == axis ? ix_dim(k->ix, out) : index[n++];
    return eval_value(k, e->in.at[0], at);
}

/* ---- under a condition */
/* lo ≤ i < hi, for all lanes if it can be decided now. */
typedef enum { NEVER, ALWAYS, MAYBE } When;
static When within(Eval *k, Ix i, Dim lo, Dim hi) {
    int64_t a, b;
    if (!ix_bounds(k->ix, i, &a, &b)) {
        const IxExpr *x = ix_at(k->ix, i);
        if (x->n) return MAYBE;
        Dim over = dim_sub(types(k), x->c, lo), under = dim_sub(types(k), hi, x->c);
        if (dim_is_const(over) && over < 0) return NEVER;
        if (dim_is_const(under) && under <= 0) return NEVER;
        return dim_is_const(over) && dim_is_const(under) ? ALWAYS : MAYBE;
    }
    if (dim_is_const(lo) && b < lo) return NEVER;
    if (dim_is_const(hi) && a >= hi) return NEVER;
    return dim_is_const(lo) && dim_is_const(hi) && a >= lo && b < hi ? ALWAYS : MAYBE;
}
/* x at index (i - low) / (interior + 1) if that is in x and not in a gap; else the padding value. */
static Reg index_pad(Eval *k, const Eqn *e, uint32_t out, const Ix *index) {
    const ArrayType *x = type_in(k, e, 0);
    Dims config = param_dims(e, K_padding_config);
    Ix at[MAX_RANK];
    bool any = false;
    Reg ok = {0};
    for (uint32_t d = 0; d < x->rank; d++) {
        Dim low = config.at[3 * d], step = dim_add(types(k), config.at[3 * d + 2], 1);
        Ix moved = ix_sub(k->ix, index[d], ix_dim(k->ix, low));
        Dim span = dim_add(types(k), dim_mul(types(k), dim_sub(types(k), x->dims[d], 1), step), 1);
        bool padded = low != 0 || config.at[3 * d + 1] != 0 ||
                      step != 1; /* else the loop may be one that others became a part of */
        When when = padded ? within(k, moved, 0, span) : ALWAYS;
        if (when == MAYBE) k->op->edge(k, moved, 0, span);
        if (when == MAYBE && k->inside && ix_is_loops(k->ix, moved)) when = ALWAYS;
        if (when == NEVER || x->dims[d] == 0) return eval_value(k, e->in.at[1], NULL);
        at[d] = moved;
        if (when == MAYBE) {
            Reg c = k->op->between(k, moved, 0, span);
            ok = any ? k->op->both(k, ok, c) : c;
            any = true;
        }
        if (step == 1) continue;
        Ix up = ix_add(k->ix, moved, ix_scale(k->ix, ix_dim(k->ix, step), 1 << 20)); /* not negative */
        at[d] = ix_sub(k->ix, ix_div(k->ix, up, step), ix_dim(k->ix, 1 << 20));
        Reg c = k->op->between(k, ix_mod(k->ix, up, step), 0, 1);
        ok = any ? k->op->both(k, ok, c) : c;
        any = true;
    }
    if (!any) return eval_value(k, e->in.at[0], at);
    Reg before = eval_guard(k, ok);
    Reg inside = eval_value(k, e->in.at[0], at);
    eval_unguard(k, before);
    return k->op->choose(k, ok, inside, eval_value(k, e->in.at[1], NULL));
}
/* Does nearly all of the result come from an operand of this extent? The rest is at its edges then, as padding is. */
static bool is_most(const ArrayType *y, int64_t axis, Dim n) {
    return dim_is_const(n) && dim_is_const(y->dims[axis]) && n > y->dims[axis] - y->dims[axis] / EDGE_PART;
}
/* The operand that contains the index; a chain of conditions if that varies. */
static Reg join_at(Eval *k, const Eqn *e, int64_t axis, bool stack, const Ix *index) {
    Ix at[MAX_RANK + 1];
    Reg r = {0};
    bool any = false;
    uint32_t rank = type_out(k, e)->rank;
    Dim start = 0;
    for (uint32_t i = 0; i < e->in.n; i++) {
        Dim n = stack ? 1 : type_in(k, e, i)->dims[axis];
        Dim end = dim_add(types(k), start, n);
        When when = n == 0 ? NEVER : within(k, index[axis], start, end);
        uint32_t m = 0;
        for (uint32_t d = 0; d < rank; d++)
            if (d != axis)
                at[m++] = index[d];
            else if (!stack)
                at[m++] = ix_sub(k->ix, index[d], ix_dim(k->ix, start));
        if (when == MAYBE && is_most(type_out(k, e), axis, n)) {
            k->op->edge(k, index[axis], start, end);
            if (k->inside && ix_is_loops(k->ix, index[axis])) return eval_value(k, e->in.at[i], at);
        }
        if (when == ALWAYS) return eval_value(k, e->in.at[i], at);
        if (when == MAYBE) {
            Reg c = k->op->between(k, index[axis], start, end), before = eval_guard(k, c);
            Reg x = eval_value(k, e->in.at[i], at);
            eval_unguard(k, before);
            r = any ? k->op->choose(k, c, x, r) : x;
            any = true;
        }
        start = end;
    }
    return any ? r : k->op->constant(k, type_out(k, e)->dtype, 0);
}
static Reg index_concatenate(Eval *k, const Eqn *e, uint32_t out, const Ix *index) {
    return join_at(k, e, param_number(e, K_dimension), false, index);
}
static Reg index_stack(Eval *k, const Eqn *e, uint32_t out, const Ix *index) {
    return join_at(k, e, param_number(e, K_axis), true, index);
}

/* ---- reductions of axes of extent 1 */
Reg reduce_unit(Eval *k, const Eqn *e, const Ix *index) {
    const ArrayType *x = type_in(k, e, 0);
    Ints axes = param_ints(e, K_axes);
    Ix at[MAX_RANK];
    if (e->prim == P_argmax || e->prim == P_argmin) return k->op->constant(k, type_out(k, e)->dtype, 0);
    for (uint32_t d = 0, n = 0; d < x->rank; d++) at[d] = ints_have(axes, d) ? 0 : index[n++];
    return eval_value(k, e->in.at[0], at);
}

/* ---- the tables of the lowering column */
#define INDEX(f) index_##f
IndexRule *const index_rule[NPRIMS] = {
#define PRIM(id, text, arity, type, simplify, facts, jvp, transpose, vmap, lowering) [P_##id] = lowering,
#include "../../prims.def"
};
