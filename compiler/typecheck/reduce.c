/* Reductions, argmax and argmin, cumulative reductions. */
#include "rule.h"

/* The axes in `axes` are removed. */
static bool reduce(Ctx *cx, const Eqn *e, const Type *in, Type *out, unsigned kinds) {
    if (!want(cx, e, 1, 1) || !want_kind(cx, e, in, 0, kinds) || !want_param(cx, e, K_axes)) return false;
    const ArrayType *x = type_at(cx->types, in[0]);
    bool *gone = arena_new(cx->arena, bool, x->rank);
    if (!want_axes(cx, e, K_axes, param_ints(e, K_axes), x->rank, gone)) return false;
    Dim *dims = arena_new(cx->arena, Dim, x->rank);
    uint32_t n = 0;
    for (uint32_t i = 0; i < x->rank; i++)
        if (!gone[i]) dims[n++] = x->dims[i];
    out[0] = type_of(cx->types, x->dtype, n, dims);
    return true;
}

bool type_reduce_num(Ctx *cx, const Eqn *e, const Type *in, Type *out) { return reduce(cx, e, in, out, OF_NUM); }
bool type_reduce_ordered(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    return reduce(cx, e, in, out, OF_NUM | OF_BOOL);
}
bool type_reduce_bits(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    return reduce(cx, e, in, out, OF_INT | OF_BOOL);
}

/* The position of the first extreme element along one axis, of type index_dtype. */
bool type_arg(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    Dtype d;
    if (!want_param_dtype(cx, e, K_index_dtype, &d)) return false;
    if (!reduce(cx, e, in, out, OF_REAL | OF_BOOL)) return false;
    Ints axes = param_ints(e, K_axes);
    if (axes.n != 1)
        return diag(cx->diags, param_at(e, K_axes), "%s works along one axis, but axes has %u", name_of(cx, e), axes.n);
    if (!(OF_INT >> dtype_info[d].kind & 1))
        return diag(cx->diags, param_at(e, K_index_dtype), "%s: index_dtype=%s is no integer type", name_of(cx, e),
                    dtype_info[d].long_name);
    Dim extent = type_at(cx->types, in[0])->dims[axes.at[0]];
    if (!dims_at_most(cx, 1, extent, operand_at(cx, e, 0)))
        return diag(cx->diags, operand_at(cx, e, 0), "%s: axis %lld of %s has no elements", name_of(cx, e),
                    (long long)axes.at[0], type_c(cx, in[0]));
    out[0] = type_like(cx, out[0], d);
    return true;
}

static bool cumulative(Ctx *cx, const Eqn *e, const Type *in, Type *out, unsigned kinds) {
    if (!want(cx, e, 1, 1) || !want_kind(cx, e, in, 0, kinds) || !want_param(cx, e, K_axis)) return false;
    uint32_t rank = type_at(cx->types, in[0])->rank;
    if (!want_axis(cx, e, K_axis, param_int(e, K_axis, 0), rank)) return false;
    out[0] = type_plain(cx->types, in[0]);
    return true;
}

bool type_cumulative(Ctx *cx, const Eqn *e, const Type *in, Type *out) { return cumulative(cx, e, in, out, OF_NUM); }
bool type_cumulative_float(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    return cumulative(cx, e, in, out, OF_INEXACT);
}
