/* Batched sparse arrays by coordinates (jax.experimental.sparse): data […, nse, dense…] at indices […, nse, axes], what lies
   outside the array dropped. Products are those of dense arrays. */
#include "../build.h"
#include "../../typecheck/rule.h"

typedef struct {
    Val indices;
    uint32_t batch, sparse; /* leading axes; axes that have indices */
    Dim nse, batches, places, width; /* elements of: the batch, the sparse axes, the dense ones */
    uint32_t rank;
    const Dim *shape; /* of the whole array */
} Coordinates;

static Dim product(Builder *b, const Dim *dims, uint32_t n) {
    Dim p = 1;
    for (uint32_t i = 0; i < n; i++) p = dim_mul(b_types(b), p, dims[i]);
    return p;
}
static Coordinates coordinates(Builder *b, Val indices, uint32_t rank, const Dim *shape) {
    const ArrayType *t = b_type(b, indices);
    Coordinates c = {.indices = indices, .batch = t->rank - 2, .sparse = (uint32_t)t->dims[t->rank - 1], .rank = rank, .shape = shape};
    c.nse = t->dims[t->rank - 2];
    c.batches = product(b, shape, c.batch);
    c.places = product(b, shape + c.batch, c.sparse);
    c.width = product(b, shape + c.batch + c.sparse, rank - c.batch - c.sparse);
    return c;
}
/* [batches · nse]: the row of the array as [batches · places, width]; no row where an index is outside. */
static Val rows(Builder *b, const Coordinates *c) {
    if (b->failed) return 0;
    Types *ts = b_types(b);
    Dim dims[MAX_RANK], flat = dim_mul(ts, c->batches, c->nse), whole = dim_mul(ts, c->batches, c->places);
    int64_t axes[MAX_RANK];
    memcpy(dims, c->shape, c->batch * sizeof *dims);
    dims[c->batch] = c->nse, dims[c->batch + 1] = c->sparse;
    for (uint32_t i = 0; i < MAX_RANK; i++) axes[i] = i;
    Val all = b_convert(b, b_broadcast(b, c->indices, c->batch + 2, dims, axes), DT_i64); /* a batch of 1 is for all */
    Dim two[2] = {flat, c->sparse};
    all = b_reshape(b, all, 2, two);
    Val row = b2(b, P_div, b_iota(b, DT_i64, 1, &flat, 0), b_full(b, b_dim(b, DT_i64, c->nse), 1, &flat));
    Val outside = b_full(b, b_number(b, DT_bool, 0), 1, &flat);
    for (uint32_t i = 0; i < c->sparse; i++) {
        Val x = b_reshape(b, b_slice_axis(b, all, 1, i, i + 1), 1, &flat), n = b_full(b, b_dim(b, DT_i64, c->shape[c->batch + i]), 1, &flat);
        outside = b2(b, P_or, outside, b2(b, P_or, b2(b, P_lt, x, b_full_like(b, x, 0)), b2(b, P_ge, x, n)));
        row = b2(b, P_add, b2(b, P_mul, row, n), x);
    }
    Dim column[2] = {flat, 1};
    return b_reshape(b, b_select(b, outside, row, b_full(b, b_dim(b, DT_i64, whole), 1, &flat)), 2, column);
}
static Val gathered(Builder *b, Val x, Val row) {
    static const char *const fields[] = {"offset_dims", "collapsed_slice_dims", "start_index_map", "operand_batching_dims",
                                         "start_indices_batching_dims"};
    int64_t zero = 0, one = 1;
    if (b->failed) return 0;
    Ints first = {&zero, 1}, second = {&one, 1}, none = {0};
    Dim sizes[2] = {1, b_type(b, x)->dims[1]};
    Param p[6] = {p_record(b, K_dimension_numbers, "GatherDimensionNumbers", 5, fields, (Ints[]){second, first, first, none, none}),
                  {.key = K_fill_value, .value = {.kind = V_INT}}, p_bool(K_indices_are_sorted, false),
                  p_word(K_mode, "GatherScatterMode.FILL_OR_DROP"), p_dims(b, K_slice_sizes, 2, sizes), p_bool(K_unique_indices, false)};
    return build(b, P_gather, 2, (Val[]){x, row}, 6, p);
}
static Val scattered(Builder *b, Prim how, Val x, Val row, Val updates) {
    static const char *const fields[] = {"update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims",
                                         "operand_batching_dims", "scatter_indices_batching_dims"};
    int64_t zero = 0, one = 1;
    Ints first = {&zero, 1}, second = {&one, 1}, none = {0};
    Param consts = {.key = K_update_consts, .value = {.kind = V_LIST, .open = '('}};
    Param p[6] = {p_record(b, K_dimension_numbers, "ScatterDimensionNumbers", 5, fields, (Ints[]){second, first, first, none, none}),
                  p_bool(K_indices_are_sorted, false), p_word(K_mode, "GatherScatterMode.FILL_OR_DROP"),
                  p_bool(K_unique_indices, false), consts, p_none(K_update_jaxpr)};
    return build(b, how, 3, (Val[]){x, row, updates}, 6, p);
}
/* The array that data and coordinates stand for. */
static Val dense(Builder *b, Val data, const Coordinates *c) {
    Types *ts = b_types(b);
    if (b->failed) return 0;
    const ArrayType *t = b_type(b, data);
    Dim dims[MAX_RANK], wide[2] = {dim_mul(ts, c->batches, c->nse), c->width}, all[2] = {dim_mul(ts, c->batches, c->places), c->width};
    int64_t axes[MAX_RANK];
    for (uint32_t i = 0; i < MAX_RANK; i++) axes[i] = i;
    memcpy(dims, c->shape, c->batch * sizeof *dims);
    memcpy(dims + c->batch, t->dims + c->batch, (t->rank - c->batch) * sizeof *dims);
    Val updates = b_reshape(b, b_broadcast(b, data, t->rank, dims, axes), 2, wide);
    Val zeros = b_full(b, b_number(b, t->dtype, 0), 2, all);
    return b_reshape(b, scattered(b, P_scatter_add, zeros, rows(b, c), updates), c->rank, c->shape);
}
/* What a dense array has at the coordinates; of equal coordinates only the first, unless they are said to differ. */
static Val extracted(Builder *b, const Coordinates *c, Val x, bool unique, const ArrayType *to) {
    if (b->failed) return 0;
    Types *ts = b_types(b);
    Dim all[2] = {dim_mul(ts, c->batches, c->places), c->width}, flat = dim_mul(ts, c->batches, c->nse), one[2] = {flat, 1};
    Val row = rows(b, c), y = gathered(b, b_reshape(b, x, 2, all), row);
    if (!unique && !b->failed) {
        Dim places[2] = {all[0], 1};
        Val own = b_iota(b, DT_i64, 2, one, 0), none = b_full(b, b_dim(b, DT_i64, flat), 2, places);
        Val first = b2(b, P_eq, gathered(b, scattered(b, P_scatter_min, none, row, own), row), own);
        Dim wide[2] = {flat, c->width};
        y = b_select(b, b_broadcast(b, b_reshape(b, first, 1, &flat), 2, wide, (int64_t[]){0}), b_full_like(b, y, 0), y);
    }
    return b_reshape(b, y, to->rank, to->dims);
}
static bool product_of(Builder *b, const Eqn *e, Val x, Val y, Dtype preferred, Val *out) {
    Dot d;
    if (!dot_axes(b->cx, e, K_dimension_numbers, &param_find(e, K_dimension_numbers)->value, &d)) return false;
    *out = b_dot(b, x, y, d.contracted[0], d.contracted[1], d.batch[0], d.batch[1], preferred);
    return true;
}
bool expand_bcoo_dot_general(Builder *b, const Eqn *e, Val *out) {
    Dims shape = {0};
    if (!want_sparse_shape(b->cx, e, K_lhs_spinfo, &shape)) return false;
    Coordinates c = coordinates(b, e->in.at[1], shape.n, shape.at);
    return product_of(b, e, dense(b, e->in.at[0], &c), e->in.at[2], val_array(b->cx, e->out.at[0])->dtype, out);
}
bool expand_bcoo_dot_general_sampled(Builder *b, const Eqn *e, Val *out) {
    Val y;
    if (!product_of(b, e, e->in.at[0], e->in.at[1], DT_none, &y) || b->failed) return false;
    Coordinates c = coordinates(b, e->in.at[2], b_type(b, y)->rank, b_type(b, y)->dims);
    out[0] = extracted(b, &c, y, true, val_array(b->cx, e->out.at[0]));
    return true;
}
bool expand_bcoo_extract(Builder *b, const Eqn *e, Val *out) {
    const ArrayType *t = b_type(b, e->in.at[1]);
    Coordinates c = coordinates(b, e->in.at[0], t->rank, t->dims);
    out[0] = extracted(b, &c, e->in.at[1], param_bool(e, K_assume_unique), val_array(b->cx, e->out.at[0]));
    return true;
}
bool expand_bcoo_todense(Builder *b, const Eqn *e, Val *out) {
    const ArrayType *t = val_array(b->cx, e->out.at[0]);
    Coordinates c = coordinates(b, e->in.at[1], t->rank, t->dims);
    out[0] = dense(b, e->in.at[0], &c);
    return true;
}
