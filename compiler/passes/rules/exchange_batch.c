/* Collectives for a batch of examples: over other axes each example has its own; over the axis of --vmap-axis the
   examples themselves exchange data. */
#include "../../control.h"
#include "../../typecheck/rule.h"
#include "../transform/transform.h"

/* ---- axes: names, and numbers of axes of the array */
static const Param *axes_of(const Eqn *e) {
    const Param *p = param_find(e, K_axes);
    return p ? p : param_find(e, K_axis_name);
}
static bool is_name(const Value *v, Str name) {
    bool word = v->kind == V_STR || v->kind == V_WORD, quoted = v->kind == V_STR && v->s.n >= 2;
    return word && str_eq(quoted ? (Str){v->s.at + 1, v->s.n - 2} : v->s, name);
}
static bool names(const Value *v, Str name) {
    bool some = is_name(v, name);
    for (uint32_t i = 0; v->kind == V_LIST && i < v->list.n; i++) some |= is_name(&v->list.at[i], name);
    return some;
}
bool names_axis(const Eqn *e, Str name) {
    const Param *p = name.n && e->prim != P_xla_pmap ? axes_of(e) : NULL;
    return p && names(&p->value, name);
}
static bool over_examples(const Vmap *v) { return names_axis(v->e, vmap_axis(v)); }
/* The equation without the axis of the examples, whose own axes grow by `by`; how many axes it has. */
static Eqn over_others(const Vmap *v, int64_t by, uint32_t *n) {
    Arena *arena = v->b->cx->arena;
    Eqn e = *v->e;
    const Param *axes = axes_of(&e);
    e.params.at = arena_copy(arena, e.params.at, e.params.n * sizeof *e.params.at);
    const Value *all = &axes->value;
    Value *to = &e.params.at[axes - v->e->params.at].value;
    *n = !is_name(all, vmap_axis(v));
    if (all->kind == V_INTS) {
        to->ints.at = arena_new(arena, int64_t, all->ints.n + 1);
        for (uint32_t i = 0; i < all->ints.n; i++) to->ints.at[i] = all->ints.at[i] + by;
        *n = all->ints.n;
    }
    if (all->kind != V_LIST) return e;
    to->list.at = arena_new(arena, Value, all->list.n + 1), to->list.n = 0;
    for (uint32_t i = 0; i < all->list.n; i++) {
        if (is_name(&all->list.at[i], vmap_axis(v))) continue;
        Value *own = &to->list.at[to->list.n++];
        *own = all->list.at[i];
        if (own->kind == V_INT) own->i += by;
    }
    *n = to->list.n;
    return e;
}
static bool refused(const Vmap *v, const char *what) {
    return tx_error(v->tx, v->e->span, "%s over '%.*s', the axis of a batch, %s", prim_name[v->e->prim],
                    SF(vmap_axis(v)), what);
}
/* There are no groups; the primitive has this axis alone if it can have no other. */
static bool alone(const Vmap *v) {
    const Param *groups = param_find(v->e, K_axis_index_groups);
    uint32_t n;
    if (groups && groups->value.kind != V_NONE) return refused(v, "with axis_index_groups is not supported");
    over_others(v, 0, &n);
    bool sums = param_has(v->e, K_axes);
    return !n || sums || refused(v, "and other axes is not supported");
}
/* There are n examples. */
static bool want_examples(const Vmap *v, int64_t n) {
    Dim size = vmap_size(v);
    Ctx *cx = v->b->cx;
    Str name = vmap_axis(v), is = str(dim_c(cx, size));
    if (size == n) return true;
    if (dim_is_const(size))
        return tx_error(v->tx, v->e->span, "%s over '%.*s' needs %lld example%s, but there are %.*s",
                        prim_name[v->e->prim], SF(name), (long long)n, plural((uint64_t)n), SF(is));
    return tx_error(v->tx, v->e->span, "%s over '%.*s' needs %lld example%s, but %.*s is a symbol: -D %.*s=%lld",
                    prim_name[v->e->prim], SF(name), (long long)n, plural((uint64_t)n), SF(is), SF(is), (long long)n);
}

/* ---- sums and extrema */
static bool is_sum(Prim p) { return p != P_pmax && p != P_pmin; }
static Val times_examples(Vmap *v, Val x) {
    Builder *b = v->b;
    if (b_failed(b, x)) return VAL_FAILED;
    const ArrayType t = *b_type(b, x);
    Val n = b_convert(b, b_dim(b, DT_i64, vmap_size(v)), t.dtype);
    return b_mul(b, x, b_full(b, n, t.rank, t.dims));
}
static Val total(Vmap *v, uint32_t i) {
    Prim p = v->e->prim, reduction = p == P_pmax ? P_reduce_max : p == P_pmin ? P_reduce_min : P_reduce_sum;
    Val x = v->e->in.at[i];
    if (v->batched[i]) return b_reduce(v->b, reduction, x, 1, (int64_t[]){0});
    return is_sum(p) ? times_examples(v, x) : x;
}
static Val applied(Vmap *v, Eqn e, Val x) {
    e.in = (Vals){arena_copy(v->b->cx->arena, &x, sizeof x), 1};
    e.out.n = 1;
    return b_eqn(v->b, &e, 1, NULL).at[0];
}
bool vmap_all_reduce(Vmap *v) {
    bool over = over_examples(v);
    uint32_t n;
    if (over && !alone(v)) return false;
    for (uint32_t i = 0; i < v->e->in.n; i++) {
        Eqn e = over_others(v, v->batched[i] && !over, &n);
        Val x = over ? total(v, i) : v->e->in.at[i];
        v->out[i] = over && !n ? x : applied(v, e, x);
        v->out_batched[i] = v->batched[i] && !over;
    }
    return !v->b->failed;
}
/* What marks its operands, or their sum over other axes, leaves a batch as it is. */
bool vmap_pvary(Vmap *v) {
    uint32_t n;
    Eqn e = over_others(v, 0, &n);
    for (uint32_t i = 0; i < v->e->in.n; i++) {
        v->out[i] = n ? applied(v, e, v->e->in.at[i]) : v->e->in.at[i];
        v->out_batched[i] = v->batched[i];
    }
    return !v->b->failed;
}
bool vmap_axis_index(Vmap *v) {
    Dim n = vmap_size(v);
    v->out[0] = b_iota(v->b, vmap_result_type(v, 0)->dtype, 1, &n, 0);
    return !v->b->failed;
}

/* ---- parts */
bool vmap_all_gather(Vmap *v) {
    if (!over_examples(v)) return vmap_front(v);
    uint32_t axis = (uint32_t)param_int(v->e, K_all_gather_dimension, 0);
    if (!alone(v) || !want_examples(v, param_int(v->e, K_axis_size, 1))) return false;
    Val x = vmap_operand(v, 0);
    v->out[0] = param_bool(v->e, K_tiled) ? vmap_folded(v, x, vmap_type(v, 0), axis) : b_move_axis(v->b, x, 0, axis);
    v->out_batched[0] = false;
    return !v->b->failed;
}
bool vmap_reduce_scatter(Vmap *v) {
    if (!over_examples(v)) return vmap_front(v);
    uint32_t axis = (uint32_t)param_int(v->e, K_scatter_dimension, 0);
    if (!alone(v) || !want_examples(v, param_int(v->e, K_axis_size, 1))) return false;
    Val sum = total(v, 0);
    v->out[0] = param_bool(v->e, K_tiled) ? vmap_unfolded(v, sum, vmap_result_type(v, 0), axis)
                                          : b_move_axis(v->b, sum, axis, 0);
    return !v->b->failed;
}
/* Example i gets part i of each: the parts' axis becomes the first, and that of the examples comes before the axis
   along which they are put together. */
bool vmap_all_to_all(Vmap *v) {
    Builder *b = v->b;
    if (!over_examples(v)) return vmap_front(v);
    const ArrayType *x = vmap_type(v, 0), *y = vmap_result_type(v, 0);
    uint32_t split = (uint32_t)param_int(v->e, K_split_axis, 0), concat = (uint32_t)param_int(v->e, K_concat_axis, 0);
    Dim n = vmap_size(v), part = dim_floordiv(b_types(b), x->dims[split], n);
    Dim parts = split == concat ? n : dim_floordiv(b_types(b), x->dims[split], y->dims[split]);
    if (!param_bool(v->e, K_tiled)) parts = x->dims[split];
    if (!alone(v) || (dim_is_const(parts) && !want_examples(v, parts))) return false;
    if (!dim_is_const(n) || !dim_is_const(parts)) return refused(v, "needs a number of examples that -D fixes");
    if (dim_mul(b_types(b), part, n) != x->dims[split]) return refused(v, "needs equal parts");
    Dim dims[MAX_RANK + 2] = {n};
    int64_t order[MAX_RANK + 2] = {1 + split};
    uint32_t rank = 1, m = 1;
    for (uint32_t d = 0; d < x->rank; d++) {
        if (d == split) dims[rank++] = n;
        dims[rank++] = d == split ? part : x->dims[d];
    }
    for (uint32_t d = 0; d < x->rank; d++) {
        if (d == concat) order[m++] = 0;
        order[m++] = 1 + d + (d >= split);
    }
    Val parted = b_transpose(b, b_reshape(b, vmap_operand(v, 0), rank, dims), order);
    Dim to[MAX_RANK + 1] = {n};
    for (uint32_t d = 0; d < x->rank; d++) {
        Dim own = d == split ? part : x->dims[d];
        to[1 + d] = d == concat ? dim_mul(b_types(b), own, n) : own;
    }
    v->out[0] = b_reshape(b, parted, x->rank + 1, to);
    return !b->failed;
}

/* ---- copies of other examples' arrays */
static Val example(Vmap *v, Val x, int64_t i) {
    Builder *b = v->b;
    if (b_failed(b, x)) return VAL_FAILED;
    return b_slice_axis(b, x, 0, i, i + 1);
}
static int64_t place(const Value *pair, uint32_t i, int64_t n) {
    int64_t at = pair->kind == V_INTS ? pair->ints.at[i] : pair->list.at[i].i;
    return at < 0 ? at + n : at;
}
bool vmap_ppermute(Vmap *v) {
    Builder *b = v->b;
    if (!over_examples(v)) return vmap_pvary(v);
    const Param *perm = param_find(v->e, K_perm);
    int64_t n = perm->value.kind == V_LIST ? perm->value.list.n : 0;
    if (!alone(v) || !want_examples(v, n)) return false;
    Val *rows = arena_new(b->cx->arena, Val, n + 1), x = vmap_operand(v, 0);
    for (int64_t i = 0; i < n; i++) {
        const Value *pair = &perm->value.list.at[i];
        int64_t from = place(pair, 0, n), to = place(pair, 1, n);
        if (from < 0 || from >= n || to < 0 || to >= n || rows[to]) return refused(v, "needs a permutation");
        rows[to] = example(v, x, from);
    }
    v->out[0] = n ? b_concatenate(b, (uint32_t)n, rows, 0) : x;
    return !b->failed;
}
bool vmap_pbroadcast(Vmap *v) {
    Builder *b = v->b;
    if (!over_examples(v) || !param_has(v->e, K_source)) return vmap_pvary(v);
    int64_t source = param_int(v->e, K_source, 0), n = dim_is_const(vmap_size(v)) ? vmap_size(v) : 0;
    if (!alone(v) || (source >= n && !want_examples(v, source + 1))) return false;
    v->out_batched[0] = false;
    const ArrayType *one = vmap_type(v, 0);
    v->out[0] = v->batched[0] ? b_reshape(b, example(v, v->e->in.at[0], source), one->rank, one->dims) : v->e->in.at[0];
    return !b->failed;
}
