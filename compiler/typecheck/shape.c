/* Shapes and layouts: rules about where elements are, for every element type. */
#include "rule.h"

/* The extent given by a dimension operand. */
static bool extent_of(Ctx *cx, const Eqn *e, const Type *in, unsigned i, Dim *d) {
    const ValInfo *v = val_info(cx, e->in.at[i]);
    if (!want_kind(cx, e, in, i, OF_INT) || !want_scalar(cx, e, in, i)) return false;
    *d = v->lit ? (v->lit->negative ? -(Dim)v->lit->i : (Dim)v->lit->i) : dim_bound(cx->types, e->in.at[i]);
    return true;
}

/* The shape that a parameter gives: each `None` takes one of the operands from `first` on, all of
   which must be taken. */
static bool shape_of(Ctx *cx, const Eqn *e, const Type *in, ParamKey k, unsigned first, Dims *shape) {
    if (!want_param(cx, e, k)) return false;
    Dims given = param_dims(e, k);
    shape->n = given.n;
    shape->at = arena_new(cx->arena, Dim, given.n);
    unsigned next = first;
    for (uint32_t i = 0; i < given.n; i++) {
        Dim d = given.at[i];
        if (!dim_is_const(d) && dim_at(cx->types, d)->kind == DIM_HOLE) {
            if (next == e->in.n)
                return diag(cx->diags, e->span, "%s: %s has more 'None' than there are operands", name_of(cx, e),
                            param_name[k]);
            if (!extent_of(cx, e, in, next++, &d)) return false;
        }
        if (dim_is_const(d) && d < 0)
            return diag(cx->diags, param_at(e, k), "%s: %s holds a negative extent, %lld", name_of(cx, e),
                        param_name[k], (long long)d);
        shape->at[i] = d;
    }
    return next == e->in.n || want_operands(cx, e, next);
}

bool type_iota(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    Dtype d;
    Dims shape;
    if (!want_results(cx, e, 1) || !want_param_dtype(cx, e, K_dtype, &d)) return false;
    if (!want_param(cx, e, K_dimension) || !shape_of(cx, e, in, K_shape, 0, &shape)) return false;
    if (!want_axis(cx, e, K_dimension, param_int(e, K_dimension, 0), shape.n)) return false;
    if (!(OF_NUM >> dtype_info[d].kind & 1))
        return diag(cx->diags, param_at(e, K_dtype), "iota: dtype=%s holds no numbers", dtype_info[d].long_name);
    out[0] = type_of(cx->types, d, shape.n, shape.at);
    return true;
}

/* An array with undefined content; a scalar if no shape is printed. */
bool type_empty(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    Dtype d;
    Dims shape = {NULL, 0};
    if (!want_results(cx, e, 1) || !want_param_dtype(cx, e, K_dtype, &d)) return false;
    if (param_has(e, K_shape) && !shape_of(cx, e, in, K_shape, 0, &shape)) return false;
    out[0] = type_of(cx->types, d, shape.n, shape.at);
    return true;
}

/* Axis i of the operand becomes axis broadcast_dimensions[i] of the result. If the text prints no shape (since 0.9.2)
   the binder gives it: then a disagreement is reported at the binder. */
bool type_broadcast_in_dim(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!want_results(cx, e, 1)) return false;
    if (!e->in.n) return want_operands(cx, e, 1);
    const ArrayType *x = type_at(cx->types, in[0]), *declared = type_at(cx->types, out[0]);
    Ints axes = param_ints(e, K_broadcast_dimensions);
    bool printed = param_has(e, K_shape) || !out[0];
    Dims shape = {(Dim *)declared->dims, declared->rank};
    if (printed ? !shape_of(cx, e, in, K_shape, 1, &shape) : !want_operands(cx, e, 1)) return false;
    bool *marked = arena_new(cx->arena, bool, shape.n);
    if (!want_length(cx, e, K_broadcast_dimensions, axes.n, x->rank)) return false;
    if (!want_axes(cx, e, K_broadcast_dimensions, axes, shape.n, marked)) return false;
    Span at = printed ? operand_at(cx, e, 0) : result_at(cx, e, 0);
    for (uint32_t i = 0; i < axes.n; i++) {
        Dim from = x->dims[i], to = shape.at[axes.at[i]];
        if (from == 1 || from == to || dims_agree(cx, from, to, at)) continue;
        diag(cx->diags, at, "broadcast_in_dim: axis %u of %s cannot become axis %lld: %s is not %s", i,
             type_c(cx, in[0]), (long long)axes.at[i], dim_c(cx, from), dim_c(cx, to));
        note_operand(cx, e, 0, in[0]);
        if (!printed) out[0] = 0; /* it is what may be wrong */
        return false;
    }
    out[0] = type_of(cx->types, x->dtype, shape.n, shape.at);
    return true;
}

/* The elements in row-major order, or in that of the axes `dimensions`, get new extents. */
bool type_reshape(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!want_results(cx, e, 1)) return false;
    if (!e->in.n) return want_operands(cx, e, 1);
    Dims shape;
    if (!shape_of(cx, e, in, K_new_sizes, 1, &shape)) return false;
    const ArrayType *x = type_at(cx->types, in[0]);
    if (param_has(e, K_dimensions)) {
        Ints order = param_ints(e, K_dimensions);
        bool *marked = arena_new(cx->arena, bool, x->rank);
        if (!want_length(cx, e, K_dimensions, order.n, x->rank)) return false;
        if (!want_axes(cx, e, K_dimensions, order, x->rank, marked)) return false;
    }
    Type t = type_of(cx->types, x->dtype, shape.n, shape.at);
    Dim had = type_size(cx->types, in[0]), has = type_size(cx->types, t);
    if (!dims_agree(cx, had, has, param_at(e, K_new_sizes))) {
        diag(cx->diags, param_at(e, K_new_sizes), "reshape: %s has %s element%s, but new_sizes makes %s with %s",
             type_c(cx, in[0]), dim_c(cx, had), plural(had), type_c(cx, t), dim_c(cx, has));
        return false;
    }
    out[0] = t;
    return true;
}

bool type_squeeze(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!want(cx, e, 1, 1) || !want_param(cx, e, K_dimensions)) return false;
    const ArrayType *x = type_at(cx->types, in[0]);
    bool *gone = arena_new(cx->arena, bool, x->rank);
    if (!want_axes(cx, e, K_dimensions, param_ints(e, K_dimensions), x->rank, gone)) return false;
    Dim *dims = dims_copy(cx, x);
    uint32_t n = 0;
    for (uint32_t i = 0; i < x->rank; i++) {
        if (!gone[i]) {
            dims[n++] = x->dims[i];
        } else if (!dims_agree(cx, x->dims[i], 1, param_at(e, K_dimensions))) {
            diag(cx->diags, param_at(e, K_dimensions),
                 "squeeze: axis %u of %s has extent %s; only axes of extent 1 can go", i, type_c(cx, in[0]),
                 dim_c(cx, x->dims[i]));
            return false;
        }
    }
    out[0] = type_of(cx->types, x->dtype, n, dims);
    return true;
}

/* `dimensions` are the axes of the result that have extent 1. */
bool type_expand_dims(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!want(cx, e, 1, 1) || !want_param(cx, e, K_dimensions)) return false;
    const ArrayType *x = type_at(cx->types, in[0]);
    Ints axes = param_ints(e, K_dimensions);
    uint32_t rank = x->rank + axes.n, from = 0;
    bool *fresh = arena_new(cx->arena, bool, rank);
    if (!want_axes(cx, e, K_dimensions, axes, rank, fresh)) return false;
    Dim *dims = arena_new(cx->arena, Dim, rank);
    for (uint32_t i = 0; i < rank; i++) dims[i] = fresh[i] ? 1 : x->dims[from++];
    out[0] = type_of(cx->types, x->dtype, rank, dims);
    return true;
}

bool type_transpose(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!want(cx, e, 1, 1) || !want_param(cx, e, K_permutation)) return false;
    const ArrayType *x = type_at(cx->types, in[0]);
    Ints order = param_ints(e, K_permutation);
    bool *marked = arena_new(cx->arena, bool, x->rank);
    if (!want_length(cx, e, K_permutation, order.n, x->rank)) return false;
    if (!want_axes(cx, e, K_permutation, order, x->rank, marked)) return false;
    Dim *dims = arena_new(cx->arena, Dim, x->rank);
    for (uint32_t i = 0; i < x->rank; i++) dims[i] = x->dims[order.at[i]];
    out[0] = type_of(cx->types, x->dtype, x->rank, dims);
    return true;
}

bool type_rev(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!want(cx, e, 1, 1) || !want_param(cx, e, K_dimensions)) return false;
    uint32_t rank = type_at(cx->types, in[0])->rank;
    bool *marked = arena_new(cx->arena, bool, rank);
    if (!want_axes(cx, e, K_dimensions, param_ints(e, K_dimensions), rank, marked)) return false;
    out[0] = type_plain(cx->types, in[0]);
    return true;
}

/* 0 ≤ start ≤ limit ≤ extent along one axis. */
static bool slice_bounds(Ctx *cx, const Eqn *e, const Type *in, uint32_t axis, Dim start, Dim limit) {
    Dim extent = type_at(cx->types, in[0])->dims[axis];
    if (!dims_at_most(cx, 0, start, param_at(e, K_start_indices)))
        return diag(cx->diags, param_at(e, K_start_indices), "slice: start_indices[%u] is %s, but must not be negative",
                    axis, dim_c(cx, start));
    if (!dims_at_most(cx, limit, extent, param_at(e, K_limit_indices)))
        return diag(cx->diags, param_at(e, K_limit_indices),
                    "slice: limit_indices[%u] is %s, but that axis of %s has extent %s", axis, dim_c(cx, limit),
                    type_c(cx, in[0]), dim_c(cx, extent));
    return dims_at_most(cx, start, limit, param_at(e, K_start_indices)) ||
           diag(cx->diags, param_at(e, K_start_indices),
                "slice: start_indices[%u] is %s, which is above limit_indices[%u], %s", axis, dim_c(cx, start), axis,
                dim_c(cx, limit));
}

/* Elements start, start + stride, … below limit: max(0, (limit − start − 1) // stride + 1) of them. */
bool type_slice(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!want(cx, e, 1, 1) || !want_param(cx, e, K_start_indices)) return false;
    if (!want_param(cx, e, K_limit_indices)) return false;
    const ArrayType *x = type_at(cx->types, in[0]);
    Dims start = param_dims(e, K_start_indices), limit = param_dims(e, K_limit_indices);
    Ints stride = param_ints(e, K_strides);
    bool strided = param_has(e, K_strides);
    if (!want_length(cx, e, K_start_indices, start.n, x->rank)) return false;
    if (!want_length(cx, e, K_limit_indices, limit.n, x->rank)) return false;
    if (strided && !want_length(cx, e, K_strides, stride.n, x->rank)) return false;
    Dim *dims = arena_new(cx->arena, Dim, x->rank);
    for (uint32_t i = 0; i < x->rank; i++) {
        if (!slice_bounds(cx, e, in, i, start.at[i], limit.at[i])) return false;
        dims[i] = dim_sub(cx->types, limit.at[i], start.at[i]);
        if (!strided || stride.at[i] == 1) continue;
        if (stride.at[i] < 1)
            return diag(cx->diags, param_at(e, K_strides), "slice: strides[%u] is %lld, but must be positive", i,
                        (long long)stride.at[i]);
        Dim last = dim_sub(cx->types, dims[i], 1);
        Dim n = dim_add(cx->types, dim_floordiv(cx->types, last, stride.at[i]), 1);
        dims[i] = dim_max(cx->types, n, 0);
    }
    out[0] = type_of(cx->types, x->dtype, x->rank, dims);
    return true;
}

/* low + high + extent with `interior` elements between neighbours. */
static Dim padded(Types *ts, Dim extent, const Dim *config) {
    if (config[2] != 0) {
        Dim gaps = dim_mul(ts, dim_add(ts, config[2], 1), dim_sub(ts, extent, 1));
        extent = dim_max(ts, dim_add(ts, gaps, 1), 0);
    }
    return dim_add(ts, dim_add(ts, config[0], config[1]), extent);
}

bool type_pad(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!want(cx, e, 2, 1) || !want_param(cx, e, K_padding_config)) return false;
    if (!want_dtype_of(cx, e, in, 1, 0) || !want_scalar(cx, e, in, 1)) return false;
    const ArrayType *x = type_at(cx->types, in[0]);
    Dims config = param_dims(e, K_padding_config);
    if (!want_length(cx, e, K_padding_config, config.n / 3, x->rank)) return false;
    Dim *dims = arena_new(cx->arena, Dim, x->rank);
    for (uint32_t i = 0; i < x->rank; i++) {
        const Dim *axis = config.at + 3 * (size_t)i;
        if (!dims_at_most(cx, 0, axis[2], param_at(e, K_padding_config)))
            return diag(cx->diags, param_at(e, K_padding_config),
                        "pad: padding_config has the negative interior %s for axis %u", dim_c(cx, axis[2]), i);
        dims[i] = padded(cx->types, x->dims[i], axis);
        if (!dims_at_most(cx, 0, dims[i], param_at(e, K_padding_config)))
            return diag(cx->diags, param_at(e, K_padding_config),
                        "pad: padding_config leaves axis %u of %s the extent %s", i, type_c(cx, in[0]),
                        dim_c(cx, dims[i]));
    }
    out[0] = type_of(cx->types, x->dtype, x->rank, dims);
    return true;
}

/* Operands i and 0 agree except for the extent of `axis` (-1: none). */
static bool agree_but(Ctx *cx, const Eqn *e, const Type *in, unsigned i, int64_t axis) {
    const ArrayType *x = type_at(cx->types, in[0]), *y = type_at(cx->types, in[i]);
    if (x->dtype != y->dtype || x->rank != y->rank) return operands_disagree(cx, e, in, i, 0);
    for (uint32_t k = 0; k < x->rank; k++)
        if (k != axis && !dims_agree(cx, x->dims[k], y->dims[k], operand_at(cx, e, i)))
            return operands_disagree(cx, e, in, i, 0);
    return true;
}

bool type_concatenate(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!want_results(cx, e, 1) || !want_param(cx, e, K_dimension)) return false;
    if (!e->in.n) return diag(cx->diags, e->span, "concatenate takes at least 1 operand, but has 0");
    const ArrayType *x = type_at(cx->types, in[0]);
    int64_t axis = param_int(e, K_dimension, 0);
    if (!want_axis(cx, e, K_dimension, axis, x->rank)) return false;
    Dim *dims = dims_copy(cx, x);
    for (unsigned i = 1; i < e->in.n; i++) {
        if (!agree_but(cx, e, in, i, axis)) return false;
        dims[axis] = dim_add(cx->types, dims[axis], type_at(cx->types, in[i])->dims[axis]);
    }
    out[0] = type_of(cx->types, x->dtype, x->rank, dims);
    return true;
}

/* Equal operands along a new axis. */
bool type_stack(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!want_results(cx, e, 1) || !want_param(cx, e, K_axis)) return false;
    if (!e->in.n) return diag(cx->diags, e->span, "stack takes at least 1 operand, but has 0");
    const ArrayType *x = type_at(cx->types, in[0]);
    int64_t axis = param_int(e, K_axis, 0);
    if (!want_axis(cx, e, K_axis, axis, x->rank + 1)) return false;
    for (unsigned i = 1; i < e->in.n; i++)
        if (!agree_but(cx, e, in, i, -1)) return false;
    Dim *dims = dims_copy(cx, x);
    memmove(dims + axis + 1, dims + axis, (x->rank - axis) * sizeof *dims);
    dims[axis] = e->in.n;
    out[0] = type_of(cx->types, x->dtype, x->rank + 1, dims);
    return true;
}

bool type_unstack(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!want_operands(cx, e, 1) || !want_param(cx, e, K_axis)) return false;
    const ArrayType *x = type_at(cx->types, in[0]);
    int64_t axis = param_int(e, K_axis, 0);
    if (!want_axis(cx, e, K_axis, axis, x->rank)) return false;
    if (!dims_agree(cx, x->dims[axis], e->out.n, result_at(cx, e, 0)))
        return diag(cx->diags, result_at(cx, e, 0), "unstack: axis %lld of %s gives %s result%s, but %u %s bound",
                    (long long)axis, type_c(cx, in[0]), dim_c(cx, x->dims[axis]), plural(x->dims[axis]), e->out.n,
                    is_are(e->out.n));
    Dim *dims = dims_copy(cx, x);
    memmove(dims + axis, dims + axis + 1, (x->rank - axis - 1) * sizeof *dims);
    Type t = type_of(cx->types, x->dtype, x->rank - 1, dims);
    for (unsigned i = 0; i < e->out.n; i++) out[i] = t;
    return true;
}

bool type_split(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!want_operands(cx, e, 1) || !want_param(cx, e, K_axis)) return false;
    if (!want_param(cx, e, K_sizes)) return false;
    const ArrayType *x = type_at(cx->types, in[0]);
    int64_t axis = param_int(e, K_axis, 0);
    Dims sizes = param_dims(e, K_sizes);
    if (!want_axis(cx, e, K_axis, axis, x->rank)) return false;
    if (e->out.n != sizes.n)
        return diag(cx->diags, result_at(cx, e, 0), "split: sizes has %u %s, but %u result%s bound", sizes.n,
                    entries(sizes.n), e->out.n, e->out.n == 1 ? " is" : "s are");
    Dim *dims = dims_copy(cx, x), sum = 0;
    for (uint32_t i = 0; i < sizes.n; i++) {
        if (!dims_at_most(cx, 0, sizes.at[i], param_at(e, K_sizes)))
            return diag(cx->diags, param_at(e, K_sizes), "split: sizes[%u] is negative", i);
        sum = dim_add(cx->types, sum, sizes.at[i]);
        dims[axis] = sizes.at[i];
        out[i] = type_of(cx->types, x->dtype, x->rank, dims);
    }
    return dims_agree(cx, sum, x->dims[axis], param_at(e, K_sizes)) ||
           diag(cx->diags, param_at(e, K_sizes), "split: the sizes add up to %s, but axis %lld of %s has extent %s",
                dim_c(cx, sum), (long long)axis, type_c(cx, in[0]), dim_c(cx, x->dims[axis]));
}

bool type_tile(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!want(cx, e, 1, 1) || !want_param(cx, e, K_reps)) return false;
    const ArrayType *x = type_at(cx->types, in[0]);
    Ints reps = param_ints(e, K_reps);
    if (!want_length(cx, e, K_reps, reps.n, x->rank)) return false;
    Dim *dims = dims_copy(cx, x);
    for (uint32_t i = 0; i < x->rank; i++) {
        if (reps.at[i] < 0) return diag(cx->diags, param_at(e, K_reps), "tile: reps[%u] is negative", i);
        dims[i] = dim_mul(cx->types, dims[i], reps.at[i]);
    }
    out[0] = type_of(cx->types, x->dtype, x->rank, dims);
    return true;
}

/* The operands from `first` on begin with one integer scalar for each axis, all of one type. */
static bool want_indices(Ctx *cx, const Eqn *e, const Type *in, unsigned first, uint32_t rank) {
    if (e->in.n < first + rank)
        return diag(cx->diags, e->span, "%s: an array of rank %u takes %u %s, but %u %s given", name_of(cx, e), rank,
                    rank, rank == 1 ? "index" : "indices", e->in.n - first, is_are(e->in.n - first));
    for (unsigned i = first; i < first + rank; i++)
        if (!want_kind(cx, e, in, i, OF_INT) || !want_scalar(cx, e, in, i) || !want_dtype_of(cx, e, in, i, first))
            return false;
    return true;
}

bool type_dynamic_slice(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!want_results(cx, e, 1) || !want_param(cx, e, K_slice_sizes)) return false;
    if (!e->in.n) return want_operands(cx, e, 1);
    const ArrayType *x = type_at(cx->types, in[0]);
    Dims sizes;
    if (!want_indices(cx, e, in, 1, x->rank)) return false;
    if (!shape_of(cx, e, in, K_slice_sizes, 1 + x->rank, &sizes)) return false;
    if (!want_length(cx, e, K_slice_sizes, sizes.n, x->rank)) return false;
    for (uint32_t i = 0; i < x->rank; i++)
        if (!dims_at_most(cx, sizes.at[i], x->dims[i], param_at(e, K_slice_sizes)))
            return diag(cx->diags, param_at(e, K_slice_sizes),
                        "dynamic_slice: slice_sizes[%u] is %s, but that axis of %s has extent %s", i,
                        dim_c(cx, sizes.at[i]), type_c(cx, in[0]), dim_c(cx, x->dims[i]));
    out[0] = type_of(cx->types, x->dtype, x->rank, sizes.at);
    return true;
}

bool type_dynamic_update_slice(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!want_results(cx, e, 1)) return false;
    if (e->in.n < 2) return want_operands(cx, e, 2);
    const ArrayType *x = type_at(cx->types, in[0]), *y = type_at(cx->types, in[1]);
    if (x->dtype != y->dtype || x->rank != y->rank) return operands_disagree(cx, e, in, 1, 0);
    for (uint32_t i = 0; i < x->rank; i++)
        if (!dims_at_most(cx, y->dims[i], x->dims[i], operand_at(cx, e, 1))) return operands_disagree(cx, e, in, 1, 0);
    if (!want_indices(cx, e, in, 2, x->rank) || !want_operands(cx, e, 2 + x->rank)) return false;
    out[0] = type_plain(cx->types, in[0]);
    return true;
}

/* A dimension as a number: i32, or i64 if the binder says so (jax_enable_x64). */
static Type dim_value_type(Ctx *cx, Type declared) {
    return type_of(cx->types, type_at(cx->types, declared)->dtype == DT_i64 ? DT_i64 : DT_i32, 0, NULL);
}
bool type_dim_as_value(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!want(cx, e, 0, 1) || !want_param(cx, e, K_dim)) return false;
    out[0] = dim_value_type(cx, out[0]);
    return true;
}

/* An extent of the operand. */
bool type_dimension_size(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    int64_t axis;
    if (!want(cx, e, 1, 1) || !want_int(cx, e, K_dimension, 0, &axis)) return false;
    if (!want_axis(cx, e, K_dimension, axis, type_at(cx->types, in[0])->rank)) return false;
    out[0] = dim_value_type(cx, out[0]);
    return true;
}

/* The condition on the dimensions, then the numbers {0}, {1}, … of the message. */
bool type_shape_assertion(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!want_results(cx, e, 0)) return false;
    if (!e->in.n)
        return diag(cx->diags, e->span, "%s takes the condition as operand 0, but has no operands", name_of(cx, e));
    if (!want_kind(cx, e, in, 0, OF_BOOL) || !want_scalar(cx, e, in, 0) || !want_param(cx, e, K_error_message))
        return false;
    for (unsigned i = 1; i < e->in.n; i++)
        if (!want_kind(cx, e, in, i, OF_INT) || !want_scalar(cx, e, in, i)) return false;
    return true;
}

/* The position of the platform that the program is compiled for in `platforms`. */
bool type_platform_index(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!want(cx, e, 0, 1) || !want_param(cx, e, K_platforms)) return false;
    const Value *v = &param_find(e, K_platforms)->value;
    bool good = v->kind == V_LIST && v->list.n;
    for (uint32_t i = 0; good && i < v->list.n; i++)
        good = v->list.at[i].kind == V_LIST || v->list.at[i].kind == V_NONE;
    if (!good)
        return diag(cx->diags, param_at(e, K_platforms), "platform_index: platforms is no list of lists of names");
    out[0] = type_of(cx->types, DT_i32, 0, NULL);
    return true;
}
