/* Matrix products expanded into dot_general: scaled operands, groups; and dot_general of mixed element types. */
#include "some.h"
#include "../transform/transform.h"
#include "../../typecheck/rule.h"

/* ---- element types. JAX converts operands of two types to the result's, but for floats of 8 bits; XLA multiplies and
   sums in the most precise type of operands and result (HigherPrecisionType), and converts the sum where that is not
   the result's. */

/* The types of operands and result as XLA sees them. */
typedef struct {
    Dtype in[2], out;
} DotTypes;
static bool stays_mixed(Dtype d) {
    return dtype_info[d].kind == DK_FLOAT && dtype_info[d].width == 8 && d != DT_f8_e4m3b11fnuz;
}
static void apply(const DotAlgorithm *a, DotTypes *t) {
    for (uint32_t i = 0; i < 2 && a->types[0]; i++)
        if (t->in[i] != a->types[0] && t->in[i] != a->types[1]) t->in[i] = a->types[0];
    if (a->sum) t->out = a->sum;
}
Dtype dtype_of_products(Dtype x, Dtype y, Dtype result) {
    Dtype both = dtype_of_product(x, y), products = dtype_of_product(both, result);
    return products ? products : both;
}
/* The type that an operand is converted to: for complex products, real numbers become floats of that precision. */
static Dtype for_products(Dtype d, Dtype products) {
    return dtype_info[d].kind == DK_COMPLEX ? products : dtype_real(products);
}
bool dtype_goes_into(Dtype from, Dtype to) {
    return from == to || (dtype_info[to].kind != DK_COMPLEX && dtype_is_exact(from, to));
}
static bool is_left(const Dtype *given, const DotTypes *t, Dtype products, Dtype result) {
    for (uint32_t i = 0; i < 2; i++)
        if (!dtype_goes_into(given[i], for_products(given[i], t->in[i])) ||
            !dtype_goes_into(given[i], for_products(given[i], products)))
            return false;
    return products == t->out && t->out == result;
}
bool some_dot_general(Builder *b, const Eqn *e, Val *out) {
    const DotAlgorithm *a = dot_algorithm(e);
    const Dtype given[2] = {b_type(b, e->in.at[0])->dtype, b_type(b, e->in.at[1])->dtype};
    Dtype result = val_array(b->cx, e->out.at[0])->dtype;
    DotTypes t = {{given[0], given[1]}, result};
    if (a)
        apply(a, &t);
    else if (given[0] != given[1] && !(stays_mixed(given[0]) && stays_mixed(given[1])))
        t.in[0] = t.in[1] = result;
    Dtype products = dtype_of_products(t.in[0], t.in[1], t.out);
    if (is_left(given, &t, products, result)) return true;
    Val x[2];
    for (uint32_t i = 0; i < 2; i++) {
        Val v = e->in.at[i];
        x[i] = b_convert(b, b_convert(b, v, for_products(given[i], t.in[i])), for_products(given[i], products));
    }
    Param *params = arena_new(b->cx->arena, Param, e->params.n);
    uint32_t n = 0;
    each(Param, p, e->params)
        if (p->key != K_precision) params[n++] = p->key == K_preferred_element_type ? p_dtype(p->key, products) : *p;
    out[0] = b_convert(b, b_convert(b, build(b, P_dot_general, 2, x, n, params), t.out), result);
    return true;
}

/* ---- scales: dequantized operands */

/* x times its scales, one for each block along the contracted axes, in element type d. */
static Val scaled(Builder *b, Val x, Val scales, Ints contracted, Dtype d) {
    const ArrayType *t = b_type(b, x), *s = b_type(b, scales);
    Dim dims[2 * MAX_RANK];
    int64_t to[MAX_RANK];
    uint32_t n = 0;
    bool in_blocks[MAX_RANK] = {false};
    each(int64_t, a, contracted) in_blocks[*a] = s->dims[*a] != t->dims[*a];
    for (uint32_t i = 0; i < t->rank; i++) {
        to[i] = n;
        dims[n++] = s->dims[i];
        if (in_blocks[i]) dims[n++] = dim_floordiv(b_types(b), t->dims[i], s->dims[i]);
    }
    Val blocks = b_reshape(b, b_convert(b, x, d), n, dims),
        factors = b_broadcast(b, b_convert(b, scales, d), n, dims, to);
    return b_reshape(b, b2(b, d == DT_bool ? P_and : P_mul, blocks, factors), t->rank, t->dims);
}
static bool scaled_product(Builder *b, const Eqn *e, Dtype d, Val *out) {
    Dot a;
    if (!scaled_axes(b->cx, e, &a)) return false;
    Val x = scaled(b, e->in.at[0], e->in.at[2], a.contracted[0], d),
        y = scaled(b, e->in.at[1], e->in.at[3], a.contracted[1], d);
    Dtype result = val_array(b->cx, e->out.at[0])->dtype;
    out[0] = b_dot_general(b, x, y,
                           (Contraction){.contracted = {a.contracted[0], a.contracted[1]},
                                         .batch = {a.batch[0], a.batch[1]},
                                         .preferred = result});
    return true;
}
bool expand_scaled_dot(Builder *b, const Eqn *e, Val *out) { return scaled_product(b, e, DT_bf16, out); }
/* JAX supports it only on GPUs: computes what XLA does there (BlockScalingRewriter). */
bool expand_scaled_matmul(Builder *b, const Eqn *e, Val *out) {
    return scaled_product(b, e, val_array(b->cx, e->out.at[0])->dtype, out);
}

/* ---- groups */

/* Groups along an axis of `x` become an axis of their own, the first one: elements that are not of the group are 0.
   `sizes` has the groups along its last axis, and before it the axes `prefix` of x. */
static Val in_groups(Builder *b, Val x, int64_t axis, Val sizes, uint32_t nprefix, const int64_t *prefix) {
    if (b_failed(b, x) || b_failed(b, sizes)) return VAL_FAILED;
    const ArrayType *t = b_type(b, x), *g = b_type(b, sizes);
    Dim dims[MAX_RANK];
    int64_t same[MAX_RANK], to[MAX_RANK];
    dims[0] = g->dims[g->rank - 1];
    for (uint32_t i = 0; i < t->rank; i++) dims[1 + i] = t->dims[i], same[i] = 1 + i;
    for (uint32_t i = 0; i < nprefix; i++) to[i] = 1 + prefix[i];
    to[nprefix] = 0;
    Param p[2] = {p_int(K_axis, nprefix), p_bool(K_reverse, false)};
    Val ends = build(b, P_cumsum, 1, &sizes, 2, p), starts = b_sub(b, ends, sizes);
    Val at = b_iota(b, g->dtype, 1 + t->rank, dims, 1 + axis);
    Val after = b_le(b, b_place(b, starts, 1 + t->rank, dims, to), at);
    Val before = b_lt(b, at, b_place(b, ends, 1 + t->rank, dims, to));
    Val all = b_broadcast(b, x, 1 + t->rank, dims, same);
    return b_select(b, b_and(b, after, before), b_full_like(b, all, 0), all);
}
/* Each plus `by`, with `first` before them and `last` after them (-1: none). */
static Ints moved(Builder *b, Ints s, int64_t by, int64_t first, int64_t last) {
    Ints out = {arena_new(b->cx->arena, int64_t, s.n + 3), 0};
    if (first >= 0) out.at[out.n++] = first;
    each(int64_t, a, s) out.at[out.n++] = *a + by;
    if (last >= 0) out.at[out.n++] = last;
    return out;
}
/* As in JAX: the groups become an axis, which is contracted if the rows are in groups, and a batch axis if the
   contracted elements are. */
bool expand_ragged_dot_general(Builder *b, const Eqn *e, Val *out) {
    Ragged r;
    if (!ragged_axes(b->cx, e, &r)) return false;
    if (param_has(e, K_group_offset))
        return diag(b->cx->diags, e->span, "ragged_dot_general with group_offset is not supported yet");
    Val x[2] = {e->in.at[0], e->in.at[1]}, sizes = e->in.at[2];
    const ArrayType *t = b_type(b, x[0]), *g = b_type(b, sizes);
    Dtype d = val_array(b->cx, e->out.at[0])->dtype;
    const Ints *contracted = r.dot.contracted, *batch = r.dot.batch;
    int64_t prefix[MAX_RANK];
    if (r.where == RAGGED_BATCH) {
        out[0] = b_dot_general(
            b, x[0], x[1],
            (Contraction){.contracted = {contracted[0], contracted[1]}, .batch = {batch[0], batch[1]}, .preferred = d});
        return true;
    }
    Ints free = {arena_new(b->cx->arena, int64_t, t->rank), 0};
    for (int64_t i = 0; i < t->rank; i++)
        if (ints_find(batch[0], i) < 0 && ints_find(contracted[0], i) < 0) free.at[free.n++] = i;
    uint32_t n = ragged_prefix(batch[0], r.where == RAGGED_FREE ? free : contracted[0], r.axis, prefix);
    if (g->rank == 1 && n) { /* the same groups everywhere */
        Dim dims[MAX_RANK];
        for (uint32_t i = 0; i < n; i++) dims[i] = t->dims[prefix[i]];
        dims[n] = g->dims[0];
        sizes = b_broadcast(b, sizes, n + 1, dims, (int64_t[]){n});
    }
    x[0] = in_groups(b, x[0], r.axis, sizes, n, prefix);
    if (r.where == RAGGED_FREE) {
        Ints summed[2] = {moved(b, contracted[0], 1, -1, 0), moved(b, contracted[1], 0, -1, r.group)};
        Ints left = moved(b, batch[0], 1, -1, -1);
        out[0] = b_dot_general(
            b, x[0], x[1],
            (Contraction){.contracted = {summed[0], summed[1]}, .batch = {left, batch[1]}, .preferred = d});
        return true;
    }
    int64_t other = contracted[1].at[ints_find(contracted[0], r.axis)];
    n = ragged_prefix(batch[1], contracted[1], other, prefix);
    x[1] = in_groups(b, x[1], other, sizes, n, prefix);
    Contraction all = {.preferred = d};
    for (uint32_t i = 0; i < 2; i++) {
        all.contracted[i] = moved(b, contracted[i], 1, -1, -1);
        all.batch[i] = moved(b, batch[i], 1, 0, -1);
    }
    out[0] = b_dot_general(b, x[0], x[1], all);
    return true;
}

/* ---- derivatives */
bool jvp_bilinear(Jvp *d) {
    if (!has_tangent(d->b->cx, val_type(d->b->cx, d->read->out.at[0]))) return true; /* of floats, as integers */
    for (uint32_t i = 0; i < 2; i++) {
        Val in[2] = {d->e->in.at[0], d->e->in.at[1]};
        if (!d->t[i]) continue;
        in[i] = d->t[i];
        d->dt[0] = tx_sum(d->b, d->dt[0], jvp_apply(d, in).at[0]);
    }
    return !d->b->failed;
}

/* The product with the cotangent over the other operand's own axes has the axes of the operand, those that were
   contracted in the order of the other operand. */
typedef struct {
    Builder *b;
    const Eqn *e;
    uint32_t side; /* of the operand whose cotangent is made */
    Dot a;
    Ints own, others; /* axes of one operand alone: of this one, of the other one */
    Ints summed;      /* the contracted axes of this one, in the order of those of the other one */
} DotBack;

static Ints free_axes(Builder *b, const Dot *a, uint32_t side, uint32_t rank) {
    Ints s = {arena_new(b->cx->arena, int64_t, rank + 1), 0};
    for (uint32_t i = 0; i < rank; i++)
        if (ints_find(a->contracted[side], i) < 0 && ints_find(a->batch[side], i) < 0) s.at[s.n++] = i;
    return s;
}
static Ints range(Builder *b, uint32_t from, uint32_t n) {
    Ints s = {arena_new(b->cx->arena, int64_t, n + 1), n};
    for (uint32_t i = 0; i < n; i++) s.at[i] = from + i;
    return s;
}
static Ints in_order_of(Builder *b, Ints s, Ints keys) {
    Ints out = {arena_new(b->cx->arena, int64_t, s.n + 1), s.n};
    for (uint32_t i = 0; i < s.n; i++) {
        uint32_t before = 0;
        for (uint32_t k = 0; k < s.n; k++) before += keys.at[k] < keys.at[i];
        out.at[before] = s.at[i];
    }
    return out;
}
/* The axes of the operand that the axes of the product are; `swapped`: of other operand · cotangent. */
static bool product_axes(const DotBack *d, bool swapped, int64_t *axis) {
    const Ints parts[3] = {d->a.batch[d->side], swapped ? d->summed : d->own, swapped ? d->own : d->summed};
    uint32_t n = 0;
    bool in_order = true;
    for (uint32_t k = 0; k < 3; k++)
        each(int64_t, a, parts[k]) in_order &= *a == n, axis[n++] = *a;
    return in_order;
}
static Val product_back(DotBack *d, Val ct) {
    Builder *b = d->b;
    const Ints *batch = d->a.batch;
    Val other = d->e->in.at[1 - d->side];
    uint32_t nbatch = batch[0].n, at = nbatch + (d->side ? 0 : d->own.n);
    int64_t axis[MAX_RANK], permutation[MAX_RANK];
    bool swapped = !product_axes(d, false, axis) && product_axes(d, true, axis);
    bool in_order = product_axes(d, swapped, axis);
    const Param *preferred = param_find(d->e, K_preferred_element_type), *precision = param_find(d->e, K_precision);
    Contraction all = {.precision = precision};
    if (preferred && preferred->value.kind != V_NONE) all.preferred = param_dtype(d->e, K_preferred_element_type);
    all.contracted[swapped] = range(b, at, d->others.n), all.contracted[!swapped] = d->others;
    all.batch[swapped] = range(b, 0, nbatch), all.batch[!swapped] = batch[1 - d->side];
    Val y = swapped ? b_dot_general(b, other, ct, all) : b_dot_general(b, ct, other, all);
    for (uint32_t i = 0; i < (uint32_t)(nbatch + d->own.n + d->summed.n); i++) permutation[axis[i]] = i;
    return in_order ? y : b_transpose(b, y, permutation);
}
bool transpose_dot_general(Transpose *t) {
    Builder *b = t->b;
    for (uint32_t i = 0; i < 2; i++) {
        if (!t->linear[i]) continue;
        DotBack d = {.b = b, .e = t->e, .side = i};
        if (!dot_axes(b->cx, t->e, K_dimension_numbers, &param_find(t->e, K_dimension_numbers)->value, &d.a))
            return false;
        d.own = free_axes(b, &d.a, i, ct_type(t, i)->rank);
        d.others = free_axes(b, &d.a, 1 - i, ct_type(t, 1 - i)->rank);
        d.summed = in_order_of(b, d.a.contracted[i], d.a.contracted[1 - i]);
        ct_add(t, i, b_convert(b, product_back(&d, t->ct[0]), ct_type(t, i)->dtype));
    }
    return true;
}

/* ---- for a batch of examples: a batch axis of both operands, or an axis of one */
static Value axis_list(Builder *b, Ints axes, bool later, bool with_0) {
    int64_t at[MAX_RANK + 1] = {0};
    for (uint32_t i = 0; i < axes.n; i++) at[with_0 + i] = axes.at[i] + later;
    return p_ints(b, K_axes, axes.n + with_0, at).value;
}
bool vmap_dot_general(Vmap *v) {
    Builder *b = v->b;
    Eqn e = vmap_axes(v, v->e);
    Dot a;
    Param *numbers = NULL;
    bool both = v->batched[0] && v->batched[1];
    each(Param, p, e.params)
        if (p->key == K_dimension_numbers) numbers = p;
    assert(numbers);
    if (!dot_axes(b->cx, v->e, K_dimension_numbers, &numbers->value, &a)) return false;
    Value *four = arena_new(b->cx->arena, Value, 4);
    for (uint32_t i = 0; i < 2; i++) {
        four[i] = axis_list(b, a.contracted[i], v->batched[i], false);
        four[2 + i] = axis_list(b, a.batch[i], v->batched[i], both);
    }
    numbers->value.list.at = four;
    if (both) return vmap_apply(v, &e, v->e->in.at);
    /* the axes of the result: batch, the left operand's own, the right one's own */
    const ArrayType *left = vmap_type(v, 0);
    uint32_t nbatch = a.batch[0].n, at = v->batched[0] ? nbatch : left->rank - a.contracted[0].n;
    int64_t order[MAX_RANK + 1] = {at};
    Val y = b_eqn(b, &e, 1, NULL).at[0];
    if (b->failed) return false;
    for (uint32_t d = 0, k = 1; d < b_type(b, y)->rank; d++)
        if (d != at) order[k++] = d;
    v->out[0] = b_transpose(b, y, order);
    return !b->failed;
}
