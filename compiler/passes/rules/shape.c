/* Derivatives of shapes and layouts: the primitives move elements, so that a cotangent moves back. */
#include "../transform/transform.h"

/* The elements in row-major order with the extents of operand i. */
static Val shaped_as(Transpose *t, uint32_t i, Val v) {
    const ArrayType *x = ct_type(t, i);
    return b_reshape(t->b, v, x->rank, x->dims);
}

/* Sums over the axes that are new or stretched. */
bool transpose_broadcast_in_dim(Transpose *t) {
    const ArrayType *x = ct_type(t, 0);
    Ints axes = param_ints(t->e, K_broadcast_dimensions);
    int64_t sorted[MAX_RANK], from[MAX_RANK];
    Dim dims[MAX_RANK];
    uint32_t n = 0;
    for (uint32_t a = 0; a < b_type(t->b, t->ct[0])->rank; a++)
        for (uint32_t i = 0; i < axes.n; i++)
            if (axes.at[i] == a) sorted[n] = a, dims[n] = x->dims[i], from[i] = n++;
    assert(n == x->rank);
    ct_add(t, 0, b_transpose(t->b, b_sum_to(t->b, t->ct[0], n, dims, sorted), from));
    return true;
}

/* ---- the same elements in the same order */
/* Of the axes of the operand in the order `dimensions`, if that is given. */
bool transpose_reshape(Transpose *t) {
    const ArrayType *x = ct_type(t, 0);
    if (!param_has(t->e, K_dimensions)) return ct_add(t, 0, shaped_as(t, 0, t->ct[0])), true;
    Ints order = param_ints(t->e, K_dimensions);
    int64_t from[MAX_RANK];
    Dim dims[MAX_RANK];
    for (uint32_t i = 0; i < order.n; i++) dims[i] = x->dims[order.at[i]], from[order.at[i]] = i;
    ct_add(t, 0, b_transpose(t->b, b_reshape(t->b, t->ct[0], x->rank, dims), from));
    return true;
}
bool transpose_squeeze(Transpose *t) {
    Ints axes = param_ints(t->e, K_dimensions);
    Val v = b_expand_dims(t->b, t->ct[0], axes.n, axes.at);
    ct_add(t, 0, shaped_as(t, 0, v)); /* an axis that went may have an extent that is 1 in every call */
    return true;
}
bool transpose_expand_dims(Transpose *t) {
    Ints axes = param_ints(t->e, K_dimensions);
    ct_add(t, 0, b_squeeze(t->b, t->ct[0], axes.n, axes.at));
    return true;
}

/* ---- axes */
bool transpose_transpose(Transpose *t) {
    Ints order = param_ints(t->e, K_permutation);
    int64_t back[MAX_RANK];
    for (uint32_t i = 0; i < order.n; i++) back[order.at[i]] = i;
    ct_add(t, 0, b_transpose(t->b, t->ct[0], back));
    return true;
}
bool transpose_rev(Transpose *t) {
    Ints axes = param_ints(t->e, K_dimensions);
    ct_add(t, 0, b_rev(t->b, t->ct[0], axes.n, axes.at));
    return true;
}

/* ---- parts */
bool transpose_slice(Transpose *t) {
    Ints strides = param_has(t->e, K_strides) ? param_ints(t->e, K_strides) : (Ints){0};
    bool dense = true;
    each(const int64_t, s, strides) dense &= *s == 1;
    ct_add_slice(t, 0, t->ct[0], param_dims(t->e, K_start_indices).at, param_dims(t->e, K_limit_indices).at,
                 dense ? NULL : strides.at);
    return true;
}
/* A value for elements lo … hi - 1 of one axis of operand 0. */
static void add_slice_axis(Transpose *t, Val v, int64_t axis, Dim lo, Dim hi) {
    Dim start[MAX_RANK] = {0}, limit[MAX_RANK];
    const ArrayType *x = ct_type(t, 0);
    memcpy(limit, x->dims, x->rank * sizeof *limit);
    start[axis] = lo, limit[axis] = hi;
    ct_add_slice(t, 0, v, start, limit, NULL);
}
bool transpose_split(Transpose *t) {
    int64_t axis = param_int(t->e, K_axis, 0);
    Dims sizes = param_dims(t->e, K_sizes);
    Dim at = 0;
    for (uint32_t k = 0; k < sizes.n; k++) {
        Dim end = dim_add(b_types(t->b), at, sizes.at[k]);
        if (t->ct[k]) add_slice_axis(t, t->ct[k], axis, at, end);
        at = end;
    }
    return true;
}
bool transpose_unstack(Transpose *t) {
    int64_t axis = param_int(t->e, K_axis, 0);
    uint32_t n = t->e->out.n, some = 0;
    for (uint32_t k = 0; k < n; k++) some += t->ct[k] != 0;
    if (some == n) {
        ct_add(t, 0, build(t->b, P_stack, n, t->ct, 1, (Param[]){p_int(K_axis, axis)}));
        return true;
    }
    for (uint32_t k = 0; k < n; k++)
        if (t->ct[k]) add_slice_axis(t, b_expand_dims(t->b, t->ct[k], 1, &axis), axis, k, (Dim)k + 1);
    return true;
}
static bool all_linear(const Transpose *t) {
    bool all = true;
    for (uint32_t i = 0; i < t->e->in.n; i++) all &= t->linear[i];
    return all;
}
bool transpose_concatenate(Transpose *t) {
    int64_t axis = param_int(t->e, K_dimension, 0);
    uint32_t n = t->e->in.n;
    if (n > 1 && all_linear(t)) {
        Dim *sizes = arena_new(t->b->cx->arena, Dim, n);
        for (uint32_t i = 0; i < n; i++) sizes[i] = ct_type(t, i)->dims[axis];
        Param p[2] = {p_int(K_axis, axis), p_dims(t->b, K_sizes, n, sizes)};
        Vals parts = build_many(t->b, P_split, 1, &t->ct[0], 2, p, n, NULL);
        for (uint32_t i = 0; i < n; i++) ct_add(t, i, parts.at[i]);
        return true;
    }
    Dim at = 0;
    for (uint32_t i = 0; i < n; i++) {
        Dim end = dim_add(b_types(t->b), at, ct_type(t, i)->dims[axis]);
        if (t->linear[i]) ct_add(t, i, b_slice_axis(t->b, t->ct[0], axis, at, end));
        at = end;
    }
    return true;
}
bool transpose_stack(Transpose *t) {
    uint32_t n = t->e->in.n;
    Param p = p_int(K_axis, param_int(t->e, K_axis, 0));
    Vals parts = build_many(t->b, P_unstack, 1, &t->ct[0], 1, &p, n, NULL);
    for (uint32_t i = 0; i < n; i++)
        if (t->linear[i]) ct_add(t, i, parts.at[i]);
    return true;
}

/* ---- pad */
/* The elements of v, a result of pad, that come from the operand, of this type: the padding is cut off, where it was
   negative 0 is put back; then every (interior + 1)-th. */
static Val unpadded(Builder *b, Val v, const ArrayType *x, Dims config) {
    Types *ts = b_types(b);
    Dim back[3 * MAX_RANK] = {0}, start[MAX_RANK], limit[MAX_RANK];
    int64_t strides[MAX_RANK];
    bool cut = false, strided = false;
    for (uint32_t d = 0; d < x->rank; d++) {
        Dim lo = config.at[3 * d], hi = config.at[3 * d + 1], interior = config.at[3 * d + 2];
        bool inside = dim_at_most(ts, 0, lo, false) == 1 && dim_at_most(ts, 0, hi, false) == 1;
        assert(dim_is_const(interior));
        if (!inside) back[3 * d] = dim_sub(ts, 0, lo), back[3 * d + 1] = dim_sub(ts, 0, hi);
        start[d] = inside ? lo : 0;
        limit[d] = dim_add(ts, start[d], dim_dilated(ts, x->dims[d], interior + 1));
        strides[d] = interior + 1;
        strided |= interior != 0;
        cut |= inside && (lo != 0 || hi != 0);
    }
    v = b_pad(b, v, b_number(b, x->dtype, 0), back);
    return cut || strided ? b_slice(b, v, start, limit, strided ? strides : NULL) : v;
}
static Val total(Builder *b, Val v) {
    int64_t axes[MAX_RANK];
    if (b_failed(b, v)) return VAL_FAILED;
    uint32_t n = b_type(b, v)->rank;
    for (uint32_t d = 0; d < n; d++) axes[d] = d;
    return b_reduce(b, P_reduce_sum, v, n, axes);
}
/* The padding value gets what the operand does not. */
bool transpose_pad(Transpose *t) {
    Dims config = param_dims(t->e, K_padding_config);
    for (uint32_t d = 0; 3 * d < config.n; d++)
        if (!dim_is_const(config.at[3 * d + 2]))
            return tx_error(t->tx, t->e->span, "pad with an interior that is not a number has no transpose");
    Val x = unpadded(t->b, t->ct[0], ct_type(t, 0), config);
    if (t->linear[0]) ct_add(t, 0, x);
    if (!t->linear[1]) return true;
    Val all = total(t->b, t->ct[0]), kept = total(t->b, x);
    ct_add(t, 1, b_sub(t->b, all, kept));
    return true;
}

/* Sums over the copies. */
bool transpose_tile(Transpose *t) {
    const ArrayType *x = ct_type(t, 0);
    Ints reps = param_ints(t->e, K_reps);
    Dim dims[2 * MAX_RANK];
    int64_t copies[MAX_RANK];
    uint32_t rank = 0, n = 0;
    for (uint32_t d = 0; d < x->rank; d++) {
        if (reps.at[d] != 1) copies[n++] = rank, dims[rank++] = reps.at[d];
        dims[rank++] = x->dims[d];
    }
    ct_add(t, 0, b_reduce(t->b, P_reduce_sum, b_reshape(t->b, t->ct[0], rank, dims), n, copies));
    return true;
}

/* ---- for a batch of examples */
bool vmap_broadcast_in_dim(Vmap *v) {
    const ArrayType *one = vmap_result_type(v, 0);
    Ints axes = param_ints(v->e, K_broadcast_dimensions);
    Dim dims[MAX_RANK + 1] = {vmap_size(v)};
    int64_t to[MAX_RANK + 1] = {0};
    if (one->rank) memcpy(dims + 1, one->dims, one->rank * sizeof *dims);
    for (uint32_t i = 0; i < axes.n; i++) to[1 + i] = axes.at[i] + 1;
    v->out[0] = b_broadcast(v->b, vmap_operand(v, 0), one->rank + 1, dims, to);
    return !v->b->failed;
}
/* If the examples have padding of their own, it is put where a padded array of truth values says. */
bool vmap_pad(Vmap *v) {
    Builder *b = v->b;
    const ArrayType *x = vmap_type(v, 0), *one = vmap_result_type(v, 0);
    Dims config = param_dims(v->e, K_padding_config);
    Dim all[3 * (MAX_RANK + 1)] = {0}, dims[MAX_RANK + 1] = {vmap_size(v)};
    int64_t axes[MAX_RANK + 1];
    if (config.n) memcpy(all + 3, config.at, config.n * sizeof *all);
    if (!v->batched[1]) {
        v->out[0] = b_pad(b, v->e->in.at[0], v->e->in.at[1], all);
        return !b->failed;
    }
    Val padded = b_pad(b, vmap_operand(v, 0), b_number(b, x->dtype, 0), all);
    Val own = b_pad(b, b_full(b, b_number(b, DT_bool, 1), x->rank, x->dims), b_number(b, DT_bool, 0), config.at);
    memcpy(dims + 1, one->dims, one->rank * sizeof *dims);
    for (uint32_t d = 0; d < one->rank; d++) axes[d] = d + 1;
    own = b_broadcast(b, own, one->rank + 1, dims, axes);
    v->out[0] = b_select(b, own, b_broadcast(b, v->e->in.at[1], one->rank + 1, dims, (int64_t[]){0}), padded);
    return !b->failed;
}
