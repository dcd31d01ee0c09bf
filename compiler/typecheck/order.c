/* Sorting, and the largest elements. */
#include "rule.h"
#include <math.h>

/* Operands of equal shapes are sorted together along one axis, by the first num_keys of them. */
bool type_sort(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    if (!e->in.n) return want_operands(cx, e, 1);
    if (!want_results(cx, e, e->in.n) || !want_param(cx, e, K_dimension)) return false;
    uint32_t rank = type_at(cx->types, in[0])->rank;
    if (!want_axis(cx, e, K_dimension, param_int(e, K_dimension, 0), rank)) return false;
    int64_t keys = param_int(e, K_num_keys, 1);
    if (keys < 1 || keys > e->in.n)
        return diag(cx->diags, param_at(e, K_num_keys), "sort: num_keys is %lld, but there %s %u operand%s",
                    (long long)keys, is_are(e->in.n), e->in.n, plural(e->in.n));
    for (unsigned i = 0; i < e->in.n; i++) {
        if (i && !shapes_agree(cx, in[i], in[0], operand_at(cx, e, i))) return operands_disagree(cx, e, in, i, 0);
        if (i < keys && !want_kind(cx, e, in, i, OF_NUM | OF_BOOL)) return false;
        out[i] = type_plain(cx->types, in[i]);
    }
    return true;
}

/* The type with another extent along one axis. */
static Type with_extent(Ctx *cx, Type t, int64_t axis, Dim n, Dtype d) {
    const ArrayType *x = type_at(cx->types, t);
    Dim *dims = dims_copy(cx, x);
    dims[axis] = n;
    return type_of(cx->types, d, x->rank, dims);
}

/* k elements of an axis, and their positions. */
static bool chosen(Ctx *cx, const Eqn *e, const Type *in, Type *out, ParamKey k_axis, unsigned kinds) {
    if (!want(cx, e, 1, 2) || !want_kind(cx, e, in, 0, kinds) || !want_param(cx, e, K_k)) return false;
    Dim k = param_find(e, K_k)->value.dim;
    const ArrayType *x = type_at(cx->types, in[0]);
    int64_t axis = param_int(e, k_axis, -1);
    if (axis < 0) axis += x->rank;
    if (!want_axis(cx, e, k_axis, axis, x->rank)) return false;
    if (!dims_at_most(cx, 0, k, param_at(e, K_k)) || !dims_at_most(cx, k, x->dims[axis], param_at(e, K_k)))
        return diag(cx->diags, param_at(e, K_k), "%s: k is %s, but axis %lld of %s has extent %s", name_of(cx, e),
                    dim_c(cx, k), (long long)axis, type_c(cx, in[0]), dim_c(cx, x->dims[axis]));
    out[0] = with_extent(cx, in[0], axis, k, x->dtype);
    out[1] = with_extent(cx, in[0], axis, k, DT_i32);
    return true;
}

bool type_top_k(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    return chosen(cx, e, in, out, K_axis, OF_REAL | OF_BOOL);
}

static int floor_log2(int64_t n) { return n > 1 ? 63 - __builtin_clzll((uint64_t)n) : 0; }

/* The number of elements left of n (`all`: of the whole) when the best of each window is kept, so that k of them have
   that recall: XLA's ApproxTopKReductionOutputSize, reconstructed from its results. Windows consist of whole tiles. */
static int64_t windows_left(int64_t n, int64_t all, uint32_t rank, int64_t k, double recall) {
    int64_t tile = rank == 1 ? 1024 : 128;
    if (n <= tile) return n;
    if (k == 1) return tile;
    if (recall == 1) return n;
    double least = (1 - (double)k) / log(recall);
    int64_t kept = least < (double)tile ? tile : least < (double)all ? (int64_t)least : all;
    int by = floor_log2(all / kept), most = n / tile > 1 ? floor_log2(n / tile - 1) + 1 : 0;
    assert(by >= 0 && most >= 0);
    if (by == 0) return n;
    if (by > most) by = most;
    int64_t tiles = (n - 1) / tile + 1;
    return (((tiles - 1) >> by) + 1) * tile;
}

/* Without aggregation, as many results as the approximation leaves. */
bool type_approx_top_k(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    Type declared = out[0];
    if (!chosen(cx, e, in, out, K_reduction_dimension, OF_FLOAT)) return false;
    Dim k = param_find(e, K_k)->value.dim;
    if (k == 0) return diag(cx->diags, param_at(e, K_k), "approx_top_k: k is 0, but must be at least 1");
    const Param *aggregate = param_find(e, K_aggregate_to_topk), *recall = param_find(e, K_recall_target);
    if (!aggregate || aggregate->value.i) return true;
    int64_t axis = param_int(e, K_reduction_dimension, -1), all = param_int(e, K_reduction_input_size_override, -1);
    const ArrayType *x = type_at(cx->types, in[0]), *y = declared ? type_at(cx->types, declared) : NULL;
    if (axis < 0) axis += x->rank;
    Dim n = x->dims[axis];
    double target = !recall                         ? 0.95
                    : recall->value.kind == V_FLOAT ? recall->value.f
                                                    : (double)param_int(e, K_recall_target, 0);
    if (!(target > 0 && target <= 1))
        return diag(cx->diags, param_at(e, K_recall_target),
                    "approx_top_k: recall_target is not above 0 and at most 1");
    if (dim_is_const(n) && all >= 0 && all < n)
        return diag(cx->diags, param_at(e, K_reduction_input_size_override),
                    "approx_top_k: reduction_input_size_override is %lld, but axis %lld of %s has extent %lld",
                    (long long)all, (long long)axis, type_c(cx, in[0]), (long long)n);
    if (dim_is_const(n) && dim_is_const(k))
        n = windows_left(n, all < 0 ? n : all, x->rank, k, target);
    else if (y && y->rank == x->rank)
        n = y->dims[axis]; /* of symbols nothing else says it */
    for (unsigned i = 0; i < 2; i++) out[i] = with_extent(cx, out[i], axis, n, type_at(cx->types, out[i])->dtype);
    return true;
}
