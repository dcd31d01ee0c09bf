/* Sparse arrays (jax.experimental.sparse): to dense ones, from them, and by other layouts. */
#include "sparse.h"
#include "../transform/transform.h"

Dim product(Builder *b, const Dim *dims, uint32_t n) {
    Dim p = 1;
    for (uint32_t i = 0; i < n; i++) p = dim_mul(b_types(b), p, dims[i]);
    return p;
}
Dtype number_type(Dim n) { return dim_is_const(n) && n <= INT32_MAX ? DT_i32 : DT_i64; }

Val flattened(Builder *b, Val v, uint32_t batch, const Dim *dims, const int64_t *order, bool narrow) {
    Dim all[MAX_RANK], to[2];
    int64_t axes[MAX_RANK], permutation[MAX_RANK];
    if (b_failed(b, v)) return VAL_FAILED;
    const ArrayType *t = b_type(b, v);
    for (uint32_t i = 0; i < t->rank; i++) {
        all[i] = i < batch ? dims[i] : t->dims[i], axes[i] = i;
        permutation[i] = order && i < batch ? order[i] : i;
    }
    to[0] = product(b, all, batch + 1), to[1] = product(b, all + batch + 1, t->rank - batch - 1);
    if (memcmp(all, t->dims, t->rank * sizeof *all)) v = b_broadcast(b, v, t->rank, all, axes);
    if (order) v = b_transpose(b, v, permutation);
    return b_reshape(b, v, narrow ? 1 : 2, to);
}
Val numbers(Builder *b, Dim before, Dim n, Dim after) {
    Dim dims[3] = {before, n, after}, all = product(b, dims, 3);
    return b_reshape(b, b_iota(b, DT_i64, 3, dims, 1), 1, &all);
}

/* ---- rows */
void rows_add(Builder *b, Rows *r, Val index, Dim extent, Trust trust) {
    if (b_failed(b, index)) return;
    bool sign = dtype_info[b_type(b, index)->dtype].kind == DK_SINT;
    Val x = b_convert(b, index, DT_i64), n = b_full(b, b_dim(b, DT_i64, extent), 1, &r->n), zero = b_full_like(b, x, 0);
    if (trust != INDEX_INSIDE && sign) x = b_select(b, b_lt(b, x, zero), x, b_add(b, x, n));
    if (trust == INDEX_CHECKED) {
        Val out = b_or(b, b_lt(b, x, zero), b_ge(b, x, n));
        r->outside = r->outside ? b_or(b, r->outside, out) : out;
    }
    r->at = r->at ? b_add(b, b_mul(b, r->at, n), x) : x;
}
Val rows_end(Builder *b, Rows *r) {
    Dim column[2] = {r->n, 1};
    Val at = r->at ? r->at : b_full(b, b_int(b, DT_i64, 0), 1, &r->n);
    if (r->outside) at = b_select(b, r->outside, at, b_full(b, b_dim(b, DT_i64, r->rows), 1, &r->n));
    return b_reshape(b, at, 2, column);
}
/* Whole rows, by their numbers. */
static Places of_rows(const char *mode) {
    static int64_t first_axis = 0, second_axis = 1;
    const Ints first = {&first_axis, 1}, second = {&second_axis, 1};
    return (Places){.n = {.windows = second, .dropped = first, .map = first}, .mode = str(mode), .zeros = true};
}
static Val gather(Builder *b, Val x, Val row, const char *mode) {
    if (b_failed(b, x) || b_failed(b, row)) return VAL_FAILED;
    const ArrayType *t = b_type(b, x);
    Dim sizes[2] = {1, t->dims[1]}, dims[2] = {b_type(b, row)->dims[0], t->dims[1]};
    if (b_empty(b, x)) return b_full(b, b_number(b, t->dtype, 0), 2, dims);
    return b_gather(b, x, row, sizes, of_rows(mode));
}
Val gathered(Builder *b, Val x, Val row) { return gather(b, x, row, "GatherScatterMode.FILL_OR_DROP"); }
Val gathered_nearest(Builder *b, Val x, Val row) { return gather(b, x, row, "GatherScatterMode.CLIP"); }
Val scattered(Builder *b, Prim how, Val x, Val row, Val updates) {
    if (b_failed(b, x) || b_failed(b, row) || b_failed(b, updates)) return VAL_FAILED;
    if (b_empty(b, x) || b_empty(b, updates)) return x;
    return b_scatter(b, how, x, row, updates, of_rows("GatherScatterMode.FILL_OR_DROP"));
}

/* ---- coordinates */
Coordinates bcoo_coordinates(Builder *b, Val indices, uint32_t rank, const Dim *shape) {
    if (b_failed(b, indices)) return (Coordinates){0};
    const ArrayType *t = b_type(b, indices);
    uint32_t batch = t->rank - 2, n = (uint32_t)t->dims[t->rank - 1];
    Val *column = arena_new(b->cx->arena, Val, n + 1);
    for (uint32_t i = 0; i < n; i++)
        column[i] = b_reshape(b, b_slice_axis(b, indices, t->rank - 1, i, i + 1), t->rank - 1, t->dims);
    return (Coordinates){batch, n, rank, shape, t->dims[batch], column};
}
Coordinates coo_coordinates(Builder *b, Val row, Val column, const Dim *shape) {
    Val *columns = arena_new(b->cx->arena, Val, 2);
    columns[0] = row, columns[1] = column;
    return (Coordinates){0, 2, 2, shape, b->failed ? 0 : b_type(b, row)->dims[0], columns};
}
/* […, nse]: a 1 at the start of each row, summed from the left; elements after the last row are outside. */
static Val rows_of(Builder *b, Val begin, uint32_t batch, const Dim *shape, Dim nse, Dtype d) {
    Types *ts = b_types(b);
    Dim dims[MAX_RANK], batches = product(b, shape, batch), all[2] = {dim_mul(ts, batches, nse), 1};
    Dim starts = dim_add(ts, shape[batch], 1);
    memcpy(dims, shape, batch * sizeof *dims);
    dims[batch] = nse;
    Rows r = {.n = dim_mul(ts, batches, starts), .rows = all[0]};
    if (batch) rows_add(b, &r, numbers(b, 1, batches, starts), batches, INDEX_INSIDE);
    rows_add(b, &r, flattened(b, begin, batch, shape, NULL, true), nse, INDEX_CHECKED);
    Dim ones[2] = {r.n, 1};
    Val marks = scattered(b, P_scatter_add, b_full(b, b_int(b, d, 0), 2, all), rows_end(b, &r),
                          b_full(b, b_int(b, d, 1), 2, ones));
    marks = b_reshape(b, marks, batch + 1, dims);
    Val sums = build(b, P_cumsum, 1, &marks, 2, (Param[]){p_int(K_axis, batch), p_bool(K_reverse, false)});
    return b_sub(b, sums, b_full_like(b, sums, 1));
}
Coordinates bcsr_coordinates(Builder *b, Val indices, Val begin, uint32_t rank, const Dim *shape) {
    if (b->failed) return (Coordinates){0};
    const ArrayType *t = b_type(b, indices);
    assert(t->rank >= 1 && t->rank + 1 <= rank);
    Coordinates c = {t->rank - 1, 2, rank, shape, t->dims[t->rank - 1], NULL};
    Val *columns = arena_new(b->cx->arena, Val, 2);
    columns[0] = rows_of(b, begin, c.batch, shape, c.nse, t->dtype), columns[1] = indices;
    c.column = columns;
    return c;
}
static Dim batches_of(Builder *b, const Coordinates *c) { return product(b, c->shape, c->batch); }
/* Rows of the array that they are of, and its width. */
static void matrix_of(Builder *b, const Coordinates *c, Dim dims[2]) {
    dims[0] = product(b, c->shape, c->batch + c->n),
    dims[1] = product(b, c->shape + c->batch + c->n, c->rank - c->batch - c->n);
}
/* [batches · nse, 1] */
static Val rows(Builder *b, const Coordinates *c) {
    Dim batches = batches_of(b, c), all[2];
    matrix_of(b, c, all);
    Rows r = {.n = dim_mul(b_types(b), batches, c->nse), .rows = all[0]};
    if (c->batch) rows_add(b, &r, numbers(b, 1, batches, c->nse), batches, INDEX_INSIDE);
    for (uint32_t i = 0; i < c->n; i++)
        rows_add(b, &r, flattened(b, c->column[i], c->batch, c->shape, NULL, true), c->shape[c->batch + i],
                 INDEX_CHECKED);
    return rows_end(b, &r);
}

/* ---- to dense, and what a dense array has at coordinates */
static Val dense(Builder *b, Val data, const Coordinates *c) {
    Dim all[2];
    if (b->failed) return VAL_FAILED;
    matrix_of(b, c, all);
    Val zeros = b_full(b, b_number(b, b_type(b, data)->dtype, 0), 2, all);
    Val updates = flattened(b, data, c->batch, c->shape, NULL, false);
    return b_reshape(b, scattered(b, P_scatter_add, zeros, rows(b, c), updates), c->rank, c->shape);
}
Val extracted(Builder *b, const Coordinates *c, Val x, const ArrayType *to) {
    Dim all[2];
    if (b->failed) return VAL_FAILED;
    matrix_of(b, c, all);
    return b_reshape(b, gathered(b, b_reshape(b, x, 2, all), rows(b, c)), to->rank, to->dims);
}

/* ---- from dense: the first nse elements that are not 0 */
typedef struct {
    Dim batches, places, nse;
    Val sums;  /* [batches, places]: how many are not 0, up to here */
    Val place; /* [batches, nse], in order; `places` where there is none */
} Nonzero;
static Nonzero nonzero(Builder *b, Val x, uint32_t batch, uint32_t front, Dim nse) {
    const ArrayType *t = b_type(b, x);
    Types *ts = b_types(b);
    Nonzero z = {
        .batches = product(b, t->dims, batch), .places = product(b, t->dims + batch, front - batch), .nse = nse};
    Dim all[2] = {z.batches, z.places}, some[2] = {z.batches, nse}, column[2] = {dim_mul(ts, z.batches, z.places), 1};
    Dim to[2] = {dim_mul(ts, z.batches, nse), 1};
    Dtype d = number_type(z.places);
    int64_t axes[MAX_RANK];
    for (uint32_t i = front; i < t->rank; i++) axes[i - front] = i;
    Val is = b_reduce(b, P_reduce_or, b_ne(b, x, b_full_like(b, x, 0)), t->rank - front, axes);
    is = b_reshape(b, is, 2, all);
    Val counted = b_convert(b, is, d);
    z.sums = build(b, P_cumsum, 1, &counted, 2, (Param[]){p_int(K_axis, 1), p_bool(K_reverse, false)});
    Val at = b_select(b, is, b_full(b, b_dim(b, d, nse), 2, all), b_sub(b, z.sums, b_full_like(b, z.sums, 1)));
    Rows r = {.n = column[0], .rows = to[0]};
    if (batch) rows_add(b, &r, numbers(b, 1, z.batches, z.places), z.batches, INDEX_INSIDE);
    rows_add(b, &r, b_reshape(b, at, 1, column), nse, INDEX_CHECKED);
    Val own = b_reshape(b, b_convert(b, numbers(b, z.batches, z.places, 1), d), 2, column);
    z.place =
        b_reshape(b, scattered(b, P_scatter, b_full(b, b_dim(b, d, z.places), 2, to), rows_end(b, &r), own), 2, some);
    return z;
}
/* [batches, nse]: the index along the axis of that extent, whose elements are `stride` places apart; `none` where there
   is no element. JAX has 0 where the array has no places. */
static Val index_of(Builder *b, const Nonzero *z, Dim stride, Dim extent, Dim none, Dtype to) {
    if (b->failed) return VAL_FAILED;
    const ArrayType *t = b_type(b, z->place);
    Val zero = b_full(b, b_number(b, to, 0), 2, t->dims);
    if (z->places == 0) return zero;
    Val all = b_full(b, b_dim(b, t->dtype, z->places), 2, t->dims);
    Val x = b_div(b, z->place, b_full(b, b_dim(b, t->dtype, stride), 2, t->dims));
    x = b_convert(b, b_rem(b, x, b_full(b, b_dim(b, t->dtype, extent), 2, t->dims)), to);
    return b_select(b, b_eq(b, z->place, all), x, b_full(b, b_dim(b, to, none), 2, t->dims));
}
/* […, nse, width…] */
static Val stored(Builder *b, const Nonzero *z, Val x, Dim width, const ArrayType *to) {
    Types *ts = b_types(b);
    Dim all[2] = {dim_mul(ts, z->batches, z->places), width};
    Rows r = {.n = dim_mul(ts, z->batches, z->nse), .rows = all[0]};
    rows_add(b, &r, numbers(b, 1, z->batches, z->nse), z->batches, INDEX_INSIDE);
    rows_add(b, &r, b_reshape(b, z->place, 1, &r.n), z->places, INDEX_CHECKED);
    return b_reshape(b, gathered(b, b_reshape(b, x, 2, all), rows_end(b, &r)), to->rank, to->dims);
}
static Val shaped(Builder *b, Val v, const ArrayType *like) { return b_reshape(b, v, like->rank, like->dims); }
/* Data, and a column for each of the n axes with indices, in arrays of one type; what is missing stands at the extents
   of these axes, or, `inside`, at 0. */
static Nonzero stored_columns(Builder *b, const Eqn *e, uint32_t batch, uint32_t n, bool inside, Val *data,
                              Val *column) {
    uint32_t front = batch + n;
    const ArrayType *t = b_type(b, e->in.at[0]);
    Dtype index = param_dtype(e, K_index_dtype);
    Nonzero z = nonzero(b, e->in.at[0], batch, front, param_int(e, K_nse, 0));
    *data = stored(b, &z, e->in.at[0], product(b, t->dims + front, t->rank - front), val_array(b->cx, e->out.at[0]));
    for (uint32_t i = 0; i < n; i++) {
        Dim stride = product(b, t->dims + batch + i + 1, n - i - 1), extent = t->dims[batch + i];
        column[i] = index_of(b, &z, stride, extent, inside ? 0 : extent, index);
    }
    return z;
}
/* [batches, rows + 1]: where rows of the matrices begin; the last one ends after nse elements at most. */
static Val beginnings(Builder *b, const Nonzero *z, Dim rows, Dim columns, Dtype to) {
    Dim all[3] = {z->batches, rows, columns}, some[2] = {z->batches, rows}, config[6] = {0, 0, 0, 1, 0, 0};
    if (b->failed) return VAL_FAILED;
    Val ends = b_slice_axis(b, b_reshape(b, z->sums, 3, all), 2, dim_sub(b_types(b), columns, 1), columns);
    ends = b_reshape(b, ends, 2, some);
    Val most = b_full(b, b_dim(b, number_type(z->places), z->nse), 2, some);
    return b_pad(b, b_convert(b, b_min(b, ends, most), to), b_number(b, to, 0), config);
}
/* Matrices without columns: all nominally stored elements, `first`, are in the first row. */
static Val empty_beginnings(Builder *b, Dim batches, Dim rows, Dim first, Dtype to) {
    Dim all[2] = {batches, dim_add(b_types(b), rows, 1)};
    Val zero = b_full(b, b_number(b, to, 0), 2, all), start = b_eq(b, b_iota(b, to, 2, all, 1), zero);
    return b_select(b, start, b_full(b, b_dim(b, to, first), 2, all), zero);
}
bool expand_bcoo_fromdense(Builder *b, const Eqn *e, Val *out) {
    const ArrayType *t = b_type(b, e->in.at[0]), *to = val_array(b->cx, e->out.at[1]);
    uint32_t batch = (uint32_t)param_number(e, K_n_batch), front = t->rank - (uint32_t)param_number(e, K_n_dense);
    uint32_t n = front - batch;
    Val column[MAX_RANK];
    Nonzero z = stored_columns(b, e, batch, n, false, &out[0], column);
    Dim one[3] = {z.batches, z.nse, 1};
    for (uint32_t i = 0; i < n; i++) column[i] = b_reshape(b, column[i], 3, one);
    out[1] = n == 0 ? b_full(b, b_number(b, to->dtype, 0), to->rank, to->dims)
                    : shaped(b, b_concatenate(b, n, column, 2), to);
    return true;
}
bool expand_coo_fromdense(Builder *b, const Eqn *e, Val *out) {
    Val column[2];
    stored_columns(b, e, 0, 2, true, &out[0], column);
    for (uint32_t i = 0; i < 2; i++) out[1 + i] = shaped(b, column[i], val_array(b->cx, e->out.at[1]));
    return true;
}
/* `inside`: what is missing is in column 0 of no row; else in the last column, which is outside. */
static bool by_rows(Builder *b, const Eqn *e, uint32_t batch, bool inside, Val *out) {
    const ArrayType *t = b_type(b, e->in.at[0]), *to = val_array(b->cx, e->out.at[2]);
    Val column[2];
    Nonzero z = stored_columns(b, e, batch, 2, inside, &out[0], column);
    const Dim *shape = t->dims + batch;
    bool none = shape[0] == 0 || shape[1] == 0;
    Val begin = none ? empty_beginnings(b, z.batches, shape[0], inside || shape[0] == 0 ? 0 : z.nse, to->dtype)
                     : beginnings(b, &z, shape[0], shape[1], to->dtype);
    out[1] = shaped(b, column[1], val_array(b->cx, e->out.at[1])), out[2] = shaped(b, begin, to);
    return true;
}
bool expand_csr_fromdense(Builder *b, const Eqn *e, Val *out) { return by_rows(b, e, 0, true, out); }
bool expand_bcsr_fromdense(Builder *b, const Eqn *e, Val *out) {
    return by_rows(b, e, (uint32_t)param_number(e, K_n_batch), false, out);
}

/* ---- the rules */
bool expand_bcoo_todense(Builder *b, const Eqn *e, Val *out) {
    const ArrayType *t = val_array(b->cx, e->out.at[0]);
    Coordinates c = bcoo_coordinates(b, e->in.at[1], t->rank, t->dims);
    out[0] = dense(b, e->in.at[0], &c);
    return true;
}
bool expand_bcsr_todense(Builder *b, const Eqn *e, Val *out) {
    const ArrayType *t = val_array(b->cx, e->out.at[0]);
    Coordinates c = bcsr_coordinates(b, e->in.at[1], e->in.at[2], t->rank, t->dims);
    out[0] = dense(b, e->in.at[0], &c);
    return true;
}
bool expand_csr_todense(Builder *b, const Eqn *e, Val *out) { return expand_bcsr_todense(b, e, out); }
bool expand_coo_todense(Builder *b, const Eqn *e, Val *out) {
    Coordinates c = coo_coordinates(b, e->in.at[1], e->in.at[2], val_array(b->cx, e->out.at[0])->dims);
    out[0] = dense(b, e->in.at[0], &c);
    return true;
}
bool expand_todense(Builder *b, const Eqn *e, Val *out) {
    static ExpandRule *const rules[] = {[LAYOUT_BCOO] = expand_bcoo_todense,
                                        [LAYOUT_BCSR] = expand_bcsr_todense,
                                        [LAYOUT_COO] = expand_coo_todense,
                                        [LAYOUT_CSR] = expand_csr_todense};
    Layout layout;
    Dims shape;
    if (!want_sparse_tree(b->cx, e, &layout, &shape)) return false;
    if (layout == LAYOUT_DENSE) return out[0] = e->in.at[0], true;
    if (layout != LAYOUT_CSC) return rules[layout](b, e, out);
    Dim *turned = arena_new(b->cx->arena, Dim, 2);
    turned[0] = shape.at[1], turned[1] = shape.at[0];
    Coordinates c = bcsr_coordinates(b, e->in.at[1], e->in.at[2], 2, turned);
    out[0] = b_transpose(b, dense(b, e->in.at[0], &c), (int64_t[]){1, 0});
    return true;
}
bool expand_bcsr_extract(Builder *b, const Eqn *e, Val *out) {
    const ArrayType *t = b_type(b, e->in.at[2]);
    Coordinates c = bcsr_coordinates(b, e->in.at[0], e->in.at[1], t->rank, t->dims);
    out[0] = extracted(b, &c, e->in.at[2], val_array(b->cx, e->out.at[0]));
    return true;
}
bool expand_bcoo_extract(Builder *b, const Eqn *e, Val *out) {
    const ArrayType *t = b_type(b, e->in.at[1]);
    Coordinates c = bcoo_coordinates(b, e->in.at[0], t->rank, t->dims);
    out[0] = extracted(b, &c, e->in.at[1], val_array(b->cx, e->out.at[0]));
    if (!param_bool(e, K_assume_unique)) out[0] = first_of_equal(b, e->in.at[0], &c, out[0]);
    return true;
}

/* ---- spsolve: x with A x = b, A by rows */

/* The square matrix of a spsolve. */
static Coordinates square(Builder *b, const Eqn *e, Dim shape[2]) {
    if (b->failed) return (Coordinates){0};
    shape[0] = shape[1] = b_type(b, e->in.at[3])->dims[0];
    return bcsr_coordinates(b, e->in.at[1], e->in.at[2], 2, shape);
}
/* [nse, 1]: rows by indices below `extent`, that number for those outside. */
static Val rows_at(Builder *b, Val index, Dim nse, Dim extent) {
    Rows r = {.n = nse, .rows = extent};
    rows_add(b, &r, index, extent, INDEX_CHECKED);
    return rows_end(b, &r);
}
/* The product of the matrix with these elements and x. */
static Val times(Builder *b, const Coordinates *c, Val data, Val x) {
    if (b->failed || b_failed(b, data)) return VAL_FAILED;
    Dim n = c->shape[0], vector[2] = {n, 1}, all[2] = {c->nse, 1};
    Val to = rows_at(b, c->column[0], c->nse, n), from = rows_at(b, c->column[1], c->nse, n);
    Val terms = b_mul(b, b_reshape(b, data, 2, all), gathered(b, b_reshape(b, x, 2, vector), from));
    Val zeros = b_full(b, b_number(b, b_type(b, data)->dtype, 0), 2, vector);
    return b_reshape(b, scattered(b, P_scatter_add, zeros, to, terms), 1, &n);
}
/* The same solve of db - dA x. */
bool jvp_spsolve(Jvp *d) {
    Builder *b = d->b;
    Dim shape[2];
    Val in[4], x = jvp_result(d, 0);
    memcpy(in, d->e->in.at, sizeof in);
    in[3] = d->t[3];
    if (d->t[0]) {
        Coordinates c = square(b, d->e, shape);
        in[3] = tx_sum(b, in[3], b_neg(b, times(b, &c, d->t[0], x)));
    }
    d->dt[0] = jvp_apply(d, in).at[0];
    return !b->failed;
}
/* data, indices and starts of the rows of the transposed matrix: its elements by their columns, those of no row
   last. */
static void transposed(Builder *b, const Eqn *e, Val out[3]) {
    Dim shape[2];
    Coordinates c = square(b, e, shape);
    if (b->failed) return;
    Dtype start = b_type(b, e->in.at[2])->dtype;
    Dim n = shape[0], starts[2] = {dim_add(b_types(b), n, 1), 1}, ones[2] = {c.nse, 1};
    Val row = b_convert(b, c.column[0], DT_i64), end = b_full(b, b_dim(b, DT_i64, n), 1, &c.nse);
    Val key = b_select(b, b_lt(b, row, end), end, b_convert(b, c.column[1], DT_i64));
    Val by_column[3] = {key, c.column[0], e->in.at[0]};
    Param p[3] = {p_int(K_dimension, 0), p_bool(K_is_stable, true), p_int(K_num_keys, 1)};
    Vals sorted = build_many(b, P_sort, 3, by_column, 3, p, 3, NULL);
    Val next = rows_at(b, b_add(b, key, b_full_like(b, key, 1)), c.nse, starts[0]);
    Val counts = scattered(b, P_scatter_add, b_full(b, b_int(b, start, 0), 2, starts), next,
                           b_full(b, b_int(b, start, 1), 2, ones));
    counts = b_reshape(b, counts, 1, starts);
    out[0] = sorted.at[2], out[1] = sorted.at[1];
    out[2] = build(b, P_cumsum, 1, &counts, 2, (Param[]){p_int(K_axis, 0), p_bool(K_reverse, false)});
}
/* The solve with the transposed matrix. */
bool transpose_spsolve(Transpose *t) {
    Builder *b = t->b;
    if (t->linear[0] || !t->linear[3]) return transpose_none(t);
    Eqn e = *t->e;
    Val in[4] = {0};
    transposed(b, t->e, in);
    if (b->failed) return false;
    in[3] = t->ct[0];
    e.in = vals_joined(b->cx->arena, 1, &(Vals){in, 4});
    ct_add(t, 3, b_eqn(b, &e, 1, NULL).at[0]);
    return !b->failed;
}
