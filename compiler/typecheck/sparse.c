/* Sparse arrays by coordinates (jax.experimental.sparse.bcoo): data […, nse, dense…] at indices […, nse, axes] of an array
   […, axes…, dense…]. An axis of the batch may be 1 where the array has more. */
#include "rule.h"

enum { DATA, INDICES };

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

/* Operand `i` has `n` axes of a batch as the array has them. */
static bool want_batch(Ctx *cx, const Eqn *e, const Type *in, unsigned i, uint32_t n, Type array) {
    const ArrayType *t = type_at(cx->types, in[i]), *a = type_at(cx->types, array);
    for (uint32_t k = 0; k < n; k++)
        if (t->dims[k] != 1 && !dims_agree(cx, t->dims[k], a->dims[k], operand_at(cx, e, i)))
            return diag(cx->diags, operand_at(cx, e, i), "%s: operand %u is %s, but axis %u of %s has %s element%s", name_of(cx, e), i,
                        type_c(cx, in[i]), k, type_c(cx, array), dim_c(cx, a->dims[k]), plural(a->dims[k]));
    return true;
}

/* Operand `i` are indices of an array; the type of data at them. */
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

/* Operands 0 and 1 are data and indices of an array. */
static bool want_sparse(Ctx *cx, const Eqn *e, const Type *in, Type array) {
    Type all;
    if (!want_indices(cx, e, in, INDICES, array, &all)) return false;
    const ArrayType *t = type_at(cx->types, in[DATA]), *want = type_at(cx->types, all);
    uint32_t batch = type_at(cx->types, in[INDICES])->rank - 2;
    bool good = t->rank == want->rank;
    for (uint32_t k = batch; good && k < t->rank; k++) good = dims_agree(cx, t->dims[k], want->dims[k], operand_at(cx, e, DATA));
    if (good) return want_batch(cx, e, in, DATA, batch, array);
    diag(cx->diags, operand_at(cx, e, DATA), "%s: operand 0 is %s, but data at operand 1, %s, of %s is %s", name_of(cx, e),
         type_c(cx, in[DATA]), type_c(cx, in[INDICES]), type_c(cx, array), type_c(cx, all));
    note_operand(cx, e, INDICES, in[INDICES]);
    return false;
}

static bool want_axes_of_dot(Ctx *cx, const Eqn *e, Dot *d) {
    return want_param(cx, e, K_dimension_numbers) &&
           dot_axes(cx, e, K_dimension_numbers, &param_find(e, K_dimension_numbers)->value, d);
}

bool type_bcoo_todense(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    Dims shape;
    if (!want(cx, e, 2, 1) || !want_sparse_shape(cx, e, K_spinfo, &shape)) return false;
    out[0] = type_of(cx->types, type_at(cx->types, in[DATA])->dtype, shape.n, shape.at);
    return want_sparse(cx, e, in, out[0]);
}

bool type_bcoo_extract(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    return want(cx, e, 2, 1) && want_indices(cx, e, in, 0, in[1], &out[0]);
}

/* Operand 0 at operand 1, times operand 2. Axes of the product's batch are of the sparse array's, no dense one is contracted. */
bool type_bcoo_dot_general(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    Dims shape;
    Dot d;
    if (!want(cx, e, 3, 1) || !want_sparse_shape(cx, e, K_lhs_spinfo, &shape) || !want_axes_of_dot(cx, e, &d)) return false;
    Type array = type_of(cx->types, type_at(cx->types, in[DATA])->dtype, shape.n, shape.at);
    if (!want_sparse(cx, e, in, array) || !want_dot(cx, e, in, array, 2, &d)) return false;
    const ArrayType *t = type_at(cx->types, in[INDICES]);
    int64_t batch = t->rank - 2, front = batch + t->dims[t->rank - 1];
    for (unsigned i = 0; i < 2; i++)
        each(int64_t, axis, (i ? d.batch : d.contracted)[0])
            if (*axis >= (i ? batch : front))
                return diag(cx->diags, param_at(e, K_dimension_numbers), "bcoo_dot_general: axis %lld of the sparse array is %s",
                            (long long)*axis, i ? "in the product's batch, but not in its own" : "contracted, but dense");
    out[0] = dot_type(cx, &d);
    return true;
}

/* Operand 0 times operand 1, at operand 2. */
bool type_bcoo_dot_general_sampled(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    Dot d;
    return want(cx, e, 3, 1) && want_axes_of_dot(cx, e, &d) && want_dot(cx, e, in, in[0], 1, &d) &&
           want_indices(cx, e, in, 2, dot_type(cx, &d), &out[0]);
}
