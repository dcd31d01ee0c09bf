/* Sparse arrays by coordinates (jax.experimental.sparse.bcoo): data […, nse, dense…] at indices […, nse, axes] of an
   array […, axes…, dense…]. A batch axis may be 1 where the array has more. The other layouts are in csr.c. */
#include "sparse.h"

bool want_sparse_shape(Ctx *cx, const Eqn *e, ParamKey k, Dims *shape) {
    if (!want_param(cx, e, k)) return false;
    const Value *v = value_field(&param_find(e, k)->value, "shape");
    bool good = v && v->kind == V_LIST;
    *shape = (Dims){arena_new(cx->arena, Dim, good ? v->list.n : 0), good ? v->list.n : 0};
    for (uint32_t i = 0; i < shape->n; i++) {
        good = good && v->list.at[i].kind == V_INT && v->list.at[i].i >= 0 && dim_is_const(v->list.at[i].i);
        shape->at[i] = v->list.at[i].i;
    }
    return good || diag(cx->diags, param_at(e, k), "%s: %s has no shape of numbers", name_of(cx, e), param_name[k]);
}

bool want_batch(Ctx *cx, const Eqn *e, const Type *in, unsigned i, uint32_t n, Type array) {
    const ArrayType *t = type_at(cx->types, in[i]), *a = type_at(cx->types, array);
    for (uint32_t k = 0; k < n; k++)
        if (t->dims[k] != 1 && !dims_agree(cx, t->dims[k], a->dims[k], operand_at(cx, e, i)))
            return diag(cx->diags, operand_at(cx, e, i), "%s: operand %u is %s, but axis %u of %s has %s element%s",
                        name_of(cx, e), i, type_c(cx, in[i]), k, type_c(cx, array), dim_c(cx, a->dims[k]),
                        plural(a->dims[k]));
    return true;
}

/* Operand `i` has indices into an array; gives the type of the data. */
static bool want_indices(Ctx *cx, const Eqn *e, const Type *in, unsigned i, Type array, Type *data) {
    const ArrayType *t = type_at(cx->types, in[i]), *a = type_at(cx->types, array);
    if (!want_kind(cx, e, in, i, OF_INT)) return false;
    if (t->rank < 2 || !dim_is_const(t->dims[t->rank - 1]) || t->rank - 2 + t->dims[t->rank - 1] > a->rank)
        return diag(cx->diags, operand_at(cx, e, i), "%s: operand %u, %s, are no coordinates in %s", name_of(cx, e), i,
                    type_c(cx, in[i]), type_c(cx, array));
    uint32_t batch = t->rank - 2, front = batch + (uint32_t)t->dims[t->rank - 1], n = 0;
    if (!want_batch(cx, e, in, i, batch, array)) return false;
    Dim *dims = arena_new(cx->arena, Dim, (size_t)a->rank + 1);
    for (uint32_t k = 0; k < batch; k++) dims[n++] = a->dims[k];
    dims[n++] = t->dims[batch];
    for (uint32_t k = front; k < a->rank; k++) dims[n++] = a->dims[k];
    *data = type_of(cx->types, a->dtype, n, dims);
    return true;
}

bool want_bcoo(Ctx *cx, const Eqn *e, const Type *in, unsigned at, Type array) {
    Type all;
    if (!want_indices(cx, e, in, at + 1, array, &all)) return false;
    const ArrayType *t = type_at(cx->types, in[at]), *want = type_at(cx->types, all);
    uint32_t batch = type_at(cx->types, in[at + 1])->rank - 2;
    bool good = t->rank == want->rank;
    for (uint32_t k = batch; good && k < t->rank; k++)
        good = dims_agree(cx, t->dims[k], want->dims[k], operand_at(cx, e, at));
    if (good) return want_batch(cx, e, in, at, batch, array);
    diag(cx->diags, operand_at(cx, e, at), "%s: operand %u is %s, but data at operand %u, %s, of %s is %s",
         name_of(cx, e), at, type_c(cx, in[at]), at + 1, type_c(cx, in[at + 1]), type_c(cx, array), type_c(cx, all));
    note_operand(cx, e, at + 1, in[at + 1]);
    return false;
}

Type sparse_array(Ctx *cx, const Type *in, unsigned i, Dims shape) {
    return type_of(cx->types, type_at(cx->types, in[i])->dtype, shape.n, shape.at);
}

/* BCOO's operands 0 and 1, of the array that a parameter describes. */
static bool want_described(Ctx *cx, const Eqn *e, const Type *in, ParamKey k, Type *array) {
    Dims shape;
    if (!want_sparse_shape(cx, e, k, &shape)) return false;
    *array = sparse_array(cx, in, 0, shape);
    return want_bcoo(cx, e, in, 0, *array);
}

bool want_axes_of_dot(Ctx *cx, const Eqn *e, Dot *d) {
    return want_param(cx, e, K_dimension_numbers) &&
           dot_axes(cx, e, K_dimension_numbers, &param_find(e, K_dimension_numbers)->value, d);
}

bool want_sparse_axes(Ctx *cx, const Eqn *e, const Dot *d, uint32_t batch, uint32_t front) {
    for (unsigned i = 0; i < 2; i++)
        each(int64_t, axis, (i ? d->batch : d->contracted)[0])
            if (*axis >= (i ? batch : front))
                return diag(cx->diags, param_at(e, K_dimension_numbers), "%s: axis %lld of the sparse array is %s",
                            name_of(cx, e), (long long)*axis,
                            i ? "in the product's batch, but not in its own" : "contracted, but dense");
    return true;
}

/* ---- conversions */

bool type_bcoo_todense(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    return want(cx, e, 2, 1) && want_described(cx, e, in, K_spinfo, &out[0]);
}

bool type_bcoo_extract(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    return want(cx, e, 2, 1) && want_indices(cx, e, in, 0, in[1], &out[0]);
}

bool want_stored(Ctx *cx, const Eqn *e, const Type *in, bool batched, Stored *s) {
    const ArrayType *t = type_at(cx->types, in[0]);
    *s = (Stored){0};
    if (!want_kind(cx, e, in, 0, OF_NUM | OF_BOOL) || !want_int(cx, e, K_nse, 0, &s->nse)) return false;
    if (!want_param_dtype(cx, e, K_index_dtype, &s->index)) return false;
    if (!(OF_INT >> dtype_info[s->index].kind & 1))
        return diag(cx->diags, param_at(e, K_index_dtype), "%s: index_dtype=%s is no type of integers", name_of(cx, e),
                    dtype_info[s->index].long_name);
    if (!batched) return true;
    if (!want_int(cx, e, K_n_batch, 0, &s->batch) || !want_int(cx, e, K_n_dense, 0, &s->dense)) return false;
    bool good = s->batch <= t->rank && s->dense <= t->rank - s->batch;
    return good ||
           diag(cx->diags, param_at(e, K_n_batch), "%s: n_batch=%lld and n_dense=%lld are more axes than %s has",
                name_of(cx, e), (long long)s->batch, (long long)s->dense, type_c(cx, in[0]));
}

Type stored_data(Ctx *cx, Type array, const Stored *s) {
    const ArrayType *t = type_at(cx->types, array);
    Dim *dims = arena_new(cx->arena, Dim, (size_t)t->rank + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->batch; i++) dims[n++] = t->dims[i];
    dims[n++] = s->nse;
    for (uint32_t i = t->rank - (uint32_t)s->dense; i < t->rank; i++) dims[n++] = t->dims[i];
    return type_of(cx->types, t->dtype, n, dims);
}

bool type_bcoo_fromdense(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    Stored s;
    if (!want(cx, e, 1, 2) || !want_stored(cx, e, in, true, &s)) return false;
    const ArrayType *t = type_at(cx->types, in[0]);
    Dim *dims = dims_copy(cx, t);
    dims[s.batch] = s.nse, dims[s.batch + 1] = t->rank - s.batch - s.dense;
    out[0] = stored_data(cx, in[0], &s);
    out[1] = type_of(cx->types, s.index, (uint32_t)s.batch + 2, dims);
    return true;
}

/* ---- the same array with its elements rearranged */

/* Batch axes are permuted among themselves, and so are dense ones. */
bool type_bcoo_transpose(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    Type array;
    if (!want(cx, e, 2, 2) || !want_described(cx, e, in, K_spinfo, &array) || !want_param(cx, e, K_permutation))
        return false;
    const ArrayType *t = type_at(cx->types, array), *data = type_at(cx->types, in[0]),
                    *indices = type_at(cx->types, in[1]);
    Ints to = param_ints(e, K_permutation);
    int64_t batch = indices->rank - 2, front = batch + indices->dims[indices->rank - 1];
    bool *marked = arena_new(cx->arena, bool, t->rank);
    if (!want_length(cx, e, K_permutation, to.n, t->rank) || !want_axes(cx, e, K_permutation, to, t->rank, marked))
        return false;
    for (int64_t i = 0; i < to.n; i++)
        if ((i < batch) != (to.at[i] < batch) || (i >= front) != (to.at[i] >= front))
            return diag(cx->diags, param_at(e, K_permutation),
                        "%s: axis %lld of %s goes to %lld, but axes of the batch, axes with "
                        "indices and dense ones stay apart",
                        name_of(cx, e), (long long)to.at[i], type_c(cx, array), (long long)i);
    Dim *d = dims_copy(cx, data), *x = dims_copy(cx, indices);
    for (int64_t i = 0; i < batch; i++) d[i] = data->dims[to.at[i]], x[i] = indices->dims[to.at[i]];
    for (int64_t i = front; i < to.n; i++) d[batch + 1 + i - front] = data->dims[batch + 1 + to.at[i] - front];
    out[0] = type_of(cx->types, data->dtype, data->rank, d);
    out[1] = type_of(cx->types, indices->dtype, indices->rank, x);
    return true;
}

/* The type of data with other numbers of stored elements, for each element of the batch that data or indices have. */
static Type data_with(Ctx *cx, const Type *in, Dim nse) {
    const ArrayType *data = type_at(cx->types, in[0]), *indices = type_at(cx->types, in[1]);
    Dim *dims = dims_copy(cx, data);
    for (uint32_t i = 0; i + 2 < indices->rank; i++)
        if (dims[i] == 1) dims[i] = indices->dims[i];
    dims[indices->rank - 2] = nse;
    return type_of(cx->types, data->dtype, data->rank, dims);
}

bool type_bcoo_sort_indices(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    Type array;
    if (!want(cx, e, 2, 2) || !want_described(cx, e, in, K_spinfo, &array)) return false;
    const ArrayType *indices = type_at(cx->types, in[1]);
    bool nothing = indices->dims[indices->rank - 1] == 0;
    out[0] = nothing ? type_plain(cx->types, in[0]) : data_with(cx, in, indices->dims[indices->rank - 2]);
    out[1] = type_plain(cx->types, in[1]);
    return true;
}

bool type_bcoo_sum_duplicates(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    Type array;
    int64_t nse;
    if (!want(cx, e, 2, 2) || !want_described(cx, e, in, K_spinfo, &array) || !want_int(cx, e, K_nse, 0, &nse))
        return false;
    const ArrayType *indices = type_at(cx->types, in[1]);
    Dim *dims = dims_copy(cx, indices);
    dims[indices->rank - 2] = nse;
    out[0] = data_with(cx, in, nse);
    out[1] = type_of(cx->types, indices->dtype, indices->rank, dims);
    return true;
}

/* ---- products */

/* Operand 0 at operand 1, times operand 2. */
bool type_bcoo_dot_general(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    Type array;
    Dot d;
    if (!want(cx, e, 3, 1) || !want_described(cx, e, in, K_lhs_spinfo, &array) || !want_axes_of_dot(cx, e, &d))
        return false;
    if (!want_dot(cx, e, in, array, 2, &d)) return false;
    const ArrayType *t = type_at(cx->types, in[1]);
    if (!want_sparse_axes(cx, e, &d, t->rank - 2, t->rank - 2 + (uint32_t)t->dims[t->rank - 1])) return false;
    out[0] = dot_type(cx, &d);
    return true;
}

/* Operand 0 times operand 1, at operand 2. */
bool type_bcoo_dot_general_sampled(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    Dot d;
    return want(cx, e, 3, 1) && want_axes_of_dot(cx, e, &d) && want_dot(cx, e, in, in[0], 1, &d) &&
           want_indices(cx, e, in, 2, dot_type(cx, &d), &out[0]);
}

/* The demands on side `i` of a product of two sparse arrays: no dense axes, and contracted axes have indices. */
static bool want_side(Ctx *cx, const Eqn *e, const Type *in, const Dot *d, unsigned i) {
    const ArrayType *indices = type_at(cx->types, in[2 * i + 1]), *array = type_at(cx->types, d->type[i]);
    int64_t batch = indices->rank - 2, front = batch + indices->dims[indices->rank - 1];
    if (array->rank != front)
        return diag(cx->diags, operand_at(cx, e, 2 * i), "%s: operand %u, %s, has dense axes", name_of(cx, e), 2 * i,
                    type_c(cx, in[2 * i]));
    each(int64_t, axis, d->batch[i])
        if (*axis >= batch)
            return diag(cx->diags, param_at(e, K_dimension_numbers),
                        "%s: axis %lld of the %s array is in the product's batch, but not in "
                        "its own",
                        name_of(cx, e), (long long)*axis, i ? "right" : "left");
    each(int64_t, axis, d->contracted[i])
        if (*axis < batch)
            return diag(cx->diags, param_at(e, K_dimension_numbers),
                        "%s: axis %lld of the %s array is contracted, but of its batch", name_of(cx, e),
                        (long long)*axis, i ? "right" : "left");
    return true;
}

/* The number of batch axes of the product, of other batch axes of the left array, and of the right one. */
static uint32_t batch_of_both(Ctx *cx, const Eqn *e, const Type *in, const Dot *d, Dim *dims) {
    uint32_t n = 0;
    each(int64_t, axis, d->batch[0]) dims[n++] = type_at(cx->types, d->type[0])->dims[*axis];
    for (unsigned i = 0; i < 2; i++) {
        const ArrayType *data = type_at(cx->types, in[2 * i]), *indices = type_at(cx->types, in[2 * i + 1]);
        bool *used = arena_new(cx->arena, bool, indices->rank);
        each(int64_t, axis, d->batch[i]) used[*axis] = true;
        for (uint32_t k = 0; k + 2 < indices->rank; k++)
            if (!used[k]) dims[n++] = data->dims[k] == 1 ? indices->dims[k] : data->dims[k];
    }
    return n;
}

/* Operand 0 at operand 1, times operand 2 at operand 3: as many elements as pairs, but no more than there are
   places. */
bool type_bcoo_spdot_general(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    static const ParamKey keys[2] = {K_lhs_spinfo, K_rhs_spinfo};
    Type types[4];
    Dot d;
    if (!want(cx, e, 4, 2)) return false;
    memcpy(types, in, sizeof types);
    for (unsigned i = 0; i < 2; i++) {
        Dims shape;
        if (!want_sparse_shape(cx, e, keys[i], &shape)) return false;
        types[2 * i] = sparse_array(cx, in, 2 * i, shape);
        if (!want_bcoo(cx, e, in, 2 * i, types[2 * i])) return false;
    }
    if (!want_axes_of_dot(cx, e, &d) || !want_dot(cx, e, types, types[0], 2, &d)) return false;
    if (!want_side(cx, e, in, &d, 0) || !want_side(cx, e, in, &d, 1)) return false;
    size_t ranks = (size_t)type_at(cx->types, in[1])->rank + type_at(cx->types, in[3])->rank;
    Dim *dims = arena_new(cx->arena, Dim, ranks), nse = 1, places = 1;
    uint32_t n = batch_of_both(cx, e, in, &d, dims);
    int64_t axes[2];
    for (unsigned i = 0; i < 2; i++) {
        const ArrayType *t = type_at(cx->types, in[2 * i + 1]);
        axes[i] = t->dims[t->rank - 1] - d.contracted[i].n;
        if (axes[i]) nse = dim_mul(cx->types, nse, t->dims[t->rank - 2]);
    }
    if (axes[0] && type_at(cx->types, in[3])->rank - 2 > d.batch[1].n)
        return diag(cx->diags, param_at(e, K_dimension_numbers),
                    "%s: the right array has a batch of its own, and the left one axes "
                    "with indices that are not contracted",
                    name_of(cx, e));
    const ArrayType *y = type_at(cx->types, dot_type(cx, &d));
    for (uint32_t i = n; i < y->rank; i++) places = dim_mul(cx->types, places, y->dims[i]);
    dims[n] = dim_min(cx->types, nse, places), dims[n + 1] = axes[0] + axes[1];
    out[0] = type_of(cx->types, y->dtype, n + 1, dims);
    out[1] = type_of(cx->types, type_at(cx->types, in[1])->dtype, n + 2, dims);
    return true;
}
