/* Sparse arrays by coordinates whose elements are put into order: sorted, equal ones summed; products of two, whose
   elements are those of all pairs. The order of places is that of their indices, the first axis first. */
#include "sparse.h"
#include <assert.h>

/* ---- the batch in front: values […, nse], an axis of the batch 1 where all of it has the same */
static Val spread(Builder *b, Val v, uint32_t batch, const Dim *dims) {
    Dim all[MAX_RANK];
    int64_t axes[MAX_RANK];
    if (b_failed(b, v)) return VAL_FAILED;
    const ArrayType *t = b_type(b, v);
    for (uint32_t i = 0; i < t->rank; i++) all[i] = i < batch ? dims[i] : t->dims[i], axes[i] = i;
    return memcmp(all, t->dims, t->rank * sizeof *all) ? b_broadcast(b, v, t->rank, all, axes) : v;
}
/* [batches · n]: the row of x's own element of the batch with this number, of `rows` each; none where it has that
   number. */
static Val batch_rows(Builder *b, Dim batches, Dim n, Val number, Dim rows) {
    Rows r = {.n = dim_mul(b_types(b), batches, n), .rows = dim_mul(b_types(b), batches, rows)};
    if (batches != 1) rows_add(b, &r, numbers(b, 1, batches, n), batches, INDEX_INSIDE);
    rows_add(b, &r, b_reshape(b, number, 1, &r.n), rows, INDEX_CHECKED);
    return rows_end(b, &r);
}

/* ---- the order of places */
typedef struct {
    uint32_t batch, n;
    Dim dims[MAX_RANK]; /* […, nse] of the indices */
    Dim batches;
    Val column[MAX_RANK]; /* sorted; of places outside the array all are its extents, where `clean` */
    Val perm;             /* where in the batch each was */
    Val rank;             /* how many other places are before it */
    Val outside;          /* as given: is it outside of the array? */
} Order;
static Val compared(Builder *b, Val column, Dim extent, const Order *o) {
    Dtype d = b->failed ? DT_none : b_type(b, column)->dtype;
    return b->failed ? VAL_FAILED : b_ge(b, column, b_full(b, b_dim(b, d, extent), o->batch + 1, o->dims));
}
static Order order_of(Builder *b, const Coordinates *c, const Dim *dims, bool clean) {
    Order o = {.batch = c->batch, .n = c->n};
    memcpy(o.dims, dims, (c->batch + 1) * sizeof *dims);
    o.batches = product(b, dims, c->batch);
    Dtype d = number_type(c->nse);
    Val x[MAX_RANK];
    memcpy(x, c->column, c->n * sizeof *x);
    for (uint32_t i = 0; i < c->n && clean; i++) {
        Val out = compared(b, x[i], c->shape[c->batch + i], &o);
        o.outside = o.outside ? b_or(b, o.outside, out) : out;
    }
    for (uint32_t i = 0; i < c->n && o.outside && !b->failed; i++) {
        Val extent = b_full(b, b_dim(b, b_type(b, x[i])->dtype, c->shape[c->batch + i]), c->batch + 1, o.dims);
        x[i] = b_select(b, o.outside, x[i], extent);
    }
    x[c->n] = b_iota(b, d, c->batch + 1, o.dims, c->batch);
    if (!c->n) return o.perm = x[0], o; /* all are one place */
    Param p[3] = {p_int(K_dimension, c->batch), p_bool(K_is_stable, true), p_int(K_num_keys, c->n)};
    Vals sorted = build_many(b, P_sort, c->n + 1, x, 3, p, c->n + 1, NULL);
    memcpy(o.column, sorted.at, c->n * sizeof *x);
    o.perm = sorted.at[c->n];
    return o;
}
/* […, nse]: is it another place than the one before it? */
static Val begins(Builder *b, const Order *o) {
    Val other = 0;
    int64_t axis = o->batch;
    Dim n = o->dims[axis], config[3 * MAX_RANK] = {0};
    for (uint32_t i = 0; i < o->n; i++) {
        Val after = b_slice_axis(b, o->column[i], axis, 1, n),
            before = b_slice_axis(b, o->column[i], axis, 0, dim_sub(b_types(b), n, 1));
        Val x = b_ne(b, after, before);
        other = other ? b_or(b, other, x) : x;
    }
    config[3 * axis] = 1;
    if (other) return b_pad(b, other, b_number(b, DT_bool, 1), config);
    return b_eq(b, o->perm, b_full_like(b, o->perm, 0));
}
/* Fills in the ranks. */
static void rank_places(Builder *b, Order *o) {
    if (b->failed) return;
    Val first = b_convert(b, begins(b, o), b_type(b, o->perm)->dtype);
    Val sums = build(b, P_cumsum, 1, &first, 2, (Param[]){p_int(K_axis, o->batch), p_bool(K_reverse, false)});
    o->rank = b_sub(b, sums, b_full_like(b, sums, 1));
}
/* [batches · nse, n]: the first nse places of each element of the batch; the array's extents where there are fewer. */
static Val places(Builder *b, const Order *o, const Dim *shape, Dim nse) {
    Dim to[2] = {dim_mul(b_types(b), o->batches, nse), 1},
        from[2] = {dim_mul(b_types(b), o->batches, o->dims[o->batch]), 1};
    Val none[MAX_RANK], some[MAX_RANK];
    for (uint32_t i = 0; i < o->n && !b->failed; i++) {
        none[i] = b_full(b, b_dim(b, b_type(b, o->column[i])->dtype, shape[i]), 2, to);
        some[i] = b_reshape(b, o->column[i], 2, from);
    }
    if (b->failed) return VAL_FAILED;
    Val init = b_concatenate(b, o->n, none, 1);
    if (o->dims[o->batch] == 0) return init;
    Val row = batch_rows(b, o->batches, o->dims[o->batch], o->rank, nse);
    return scattered(b, P_scatter, init, row, b_concatenate(b, o->n, some, 1));
}
static Val shaped(Builder *b, Val v, const ArrayType *to) { return b_reshape(b, v, to->rank, to->dims); }
static Val zeros_of(Builder *b, const ArrayType *t) { return b_full(b, b_number(b, t->dtype, 0), t->rank, t->dims); }
/* [batches · nse, width]: data in the order of places, for each element of a batch that may be larger. */
static Val in_order(Builder *b, Val data, const Order *o, const Dim *dims) {
    if (b->failed) return VAL_FAILED;
    Dim nse = o->dims[o->batch], batches = product(b, dims, o->batch);
    Val x = flattened(b, data, o->batch, dims, NULL, false);
    return gathered(b, x, batch_rows(b, batches, nse, spread(b, o->perm, o->batch, dims), nse));
}
static Coordinates coordinates_of(Builder *b, const Eqn *e) {
    Dims shape;
    if (!want_sparse_shape(b->cx, e, K_spinfo, &shape)) b->failed = true;
    return bcoo_coordinates(b, e->in.at[1], shape.n, shape.at);
}
bool expand_bcoo_sort_indices(Builder *b, const Eqn *e, Val *out) {
    const ArrayType *t = b_type(b, e->in.at[1]), *data = val_array(b->cx, e->out.at[0]);
    Coordinates c = coordinates_of(b, e);
    if (b->failed) return false;
    if (!c.n) return memcpy(out, e->in.at, 2 * sizeof *out), true;
    Order o = order_of(b, &c, t->dims, false);
    Dim one[MAX_RANK];
    memcpy(one, t->dims, t->rank * sizeof *one);
    one[t->rank - 1] = 1;
    for (uint32_t i = 0; i < c.n; i++) o.column[i] = b_reshape(b, o.column[i], t->rank, one);
    out[0] = shaped(b, in_order(b, e->in.at[0], &o, data->dims), data);
    out[1] = b_concatenate(b, c.n, o.column, t->rank - 1);
    return true;
}
/* Equal places outside the array are one, behind all others. */
bool expand_bcoo_sum_duplicates(Builder *b, const Eqn *e, Val *out) {
    const ArrayType *t = b_type(b, e->in.at[1]), *data = val_array(b->cx, e->out.at[0]),
                    *indices = val_array(b->cx, e->out.at[1]);
    Coordinates c = coordinates_of(b, e);
    Dim nse = param_int(e, K_nse, 0);
    if (b->failed) return false;
    Order o = order_of(b, &c, t->dims, true);
    Dim batches = product(b, data->dims, c.batch), all[2] = {dim_mul(b_types(b), batches, nse), 1};
    if (c.nse != 0) rank_places(b, &o);
    out[1] = c.n ? shaped(b, places(b, &o, c.shape + c.batch, nse), indices) : zeros_of(b, indices);
    all[1] = product(b, data->dims + c.batch + 1, data->rank - c.batch - 1);
    Val zeros = b_full(b, b_number(b, data->dtype, 0), 2, all);
    if (c.nse != 0) {
        Val row = batch_rows(b, batches, c.nse, spread(b, o.rank, c.batch, data->dims), nse);
        zeros = scattered(b, P_scatter_add, zeros, row, in_order(b, e->in.at[0], &o, data->dims));
    }
    out[0] = shaped(b, zeros, data);
    return true;
}
/* [batches · nse, 1] in the order given: what the sorted elements have. */
static Val as_given(Builder *b, Val sorted, const Order *o) {
    if (b_failed(b, sorted)) return VAL_FAILED;
    Dim nse = o->dims[o->batch], all[2] = {dim_mul(b_types(b), o->batches, nse), 1};
    Val init = b_full(b, b_number(b, b_type(b, sorted)->dtype, 0), 2, all);
    return scattered(b, P_scatter, init, batch_rows(b, o->batches, nse, o->perm, nse), b_reshape(b, sorted, 2, all));
}
Val first_of_equal(Builder *b, Val indices, const Coordinates *c, Val y) {
    if (b->failed || c->nse == 0) return y;
    const ArrayType *t = b_type(b, y);
    Order o = order_of(b, c, b_type(b, indices)->dims, true);
    int64_t axes[MAX_RANK];
    for (uint32_t i = 0; i < MAX_RANK; i++) axes[i] = i;
    Val first = spread(b, b_reshape(b, as_given(b, begins(b, &o), &o), c->batch + 1, o.dims), c->batch, t->dims);
    return b_select(b, b_broadcast(b, first, t->rank, t->dims, axes), b_full_like(b, y, 0), y);
}

/* ---- another order of axes */
bool expand_bcoo_transpose(Builder *b, const Eqn *e, Val *out) {
    const ArrayType *t = b_type(b, e->in.at[1]), *data = b_type(b, e->in.at[0]);
    Ints to = param_ints(e, K_permutation);
    uint32_t batch = t->rank - 2, n = (uint32_t)t->dims[batch + 1];
    assert(batch < MAX_RANK && data->rank <= MAX_RANK);
    int64_t order[MAX_RANK];
    Val column[MAX_RANK];
    for (uint32_t i = 0; i < t->rank; i++) order[i] = i < batch ? to.at[i] : i;
    for (uint32_t i = 0; i < n; i++)
        column[i] = b_slice_axis(b, e->in.at[1], batch + 1, to.at[batch + i] - batch, to.at[batch + i] - batch + 1);
    out[1] = b_transpose(b, n ? b_concatenate(b, n, column, batch + 1) : e->in.at[1], order);
    for (uint32_t i = batch + 1; i < data->rank; i++) order[i] = to.at[i + n - 1] - n + 1;
    order[batch] = batch;
    out[0] = b_transpose(b, e->in.at[0], order);
    return true;
}

/* ---- sparse times sparse. The result has the places of all pairs of elements, whether they meet or not: those of the
   axes that stay on the left, each with all of those on the right. [common, left, right, elements of the left, of the
   right] are the pairs. */
typedef struct {
    Dim batches, own, n; /* common · own; elements of each */
    Val data;            /* [batches, n] */
    Val *sums;           /* columns that are contracted, [batches · n] */
    Coordinates free;    /* of the axes that stay, in an array [batches, …] */
    Val rank, outside,
        count; /* [batches, n]: which of the places, or of none; [batches]: of how many. 0: there is one place */
    Val table; /* [batches · n, axes]: these places */
} Side;
typedef struct {
    Side side[2];
    Dim common, nse; /* of the result */
    Dim pairs[5];
} Pairs;

/* The batch of side `i` in the order of the result's, [common…, own…]: its extents, where the axes come from. */
static uint32_t side_batch(const Dot *d, unsigned i, uint32_t rank, const Dim *result, uint32_t before, Dim *dims,
                           int64_t *order) {
    uint32_t n = 0, common = d->batch[i].n;
    bool used[MAX_RANK] = {false};
    for (uint32_t k = 0; k < common; k++) used[order[n++] = d->batch[i].at[k]] = true;
    for (uint32_t k = 0; k < rank; k++)
        if (!used[k]) order[n++] = k;
    for (uint32_t k = 0; k < n; k++) dims[order[k]] = result[k < common ? k : before + k - common];
    return n;
}
/* `before`: axes of the result's batch before those that are this side's own. */
static Side side_of(Builder *b, const Eqn *e, const Dot *d, unsigned i, uint32_t before) {
    Arena *a = b->cx->arena;
    Dims shape;
    Dim batch[MAX_RANK], *dims = arena_new(a, Dim, MAX_RANK);
    int64_t order[MAX_RANK] = {0};
    Side s = {0};
    if (!want_sparse_shape(b->cx, e, i ? K_rhs_spinfo : K_lhs_spinfo, &shape)) b->failed = true;
    Coordinates c = bcoo_coordinates(b, e->in.at[2 * i + 1], shape.n, shape.at);
    if (b->failed) return s;
    side_batch(d, i, c.batch, val_array(b->cx, e->out.at[0])->dims, before, batch, order);
    s.batches = product(b, batch, c.batch), s.n = c.nse, s.own = 1;
    for (uint32_t k = d->batch[i].n; k < c.batch; k++) s.own = dim_mul(b_types(b), s.own, batch[order[k]]);
    Dim two[2] = {s.batches, s.n};
    s.data = b_reshape(b, flattened(b, e->in.at[2 * i], c.batch, batch, order, true), 2, two);
    s.sums = arena_new(a, Val, c.n + 1);
    Val *columns = arena_new(a, Val, c.n + 1);
    uint32_t n = 0;
    dims[0] = s.batches;
    for (uint32_t k = 0; k < c.n; k++) {
        int64_t meets = -1;
        for (uint32_t m = 0; m < d->contracted[i].n; m++)
            if (d->contracted[i].at[m] == c.batch + k) meets = m;
        Val column = flattened(b, c.column[k], c.batch, batch, order, true);
        if (meets >= 0)
            s.sums[meets] = b_reshape(b, column, 2, two);
        else
            dims[1 + n] = shape.at[c.batch + k], columns[n++] = b_reshape(b, column, 2, two);
    }
    s.free = (Coordinates){1, n, n + 1, dims, s.n, columns};
    return s;
}
static void side_places(Builder *b, Side *s) {
    int64_t one = 1;
    Dim two[2] = {s->batches, s->n};
    if (b->failed || !s->free.n) return;
    Order o = order_of(b, &s->free, two, true);
    rank_places(b, &o);
    if (b->failed) return;
    Val most = b_reduce(b, P_reduce_max, o.rank, 1, &one),
        none = b_convert(b, b_reduce(b, P_reduce_or, o.outside, 1, &one), DT_i64);
    most = b_convert(b, most, DT_i64);
    s->rank = b_convert(b, b_reshape(b, as_given(b, o.rank, &o), 2, two), DT_i64);
    s->outside = o.outside;
    s->count = b_add(b, b_sub(b, most, none), b_full_like(b, most, 1));
    s->table = places(b, &o, s->free.shape + 1, s->n);
}
/* […] of side i → […, as that axis of the pairs or of the result's elements]: its batch, and its elements where
   `elements`. */
static Val of_side(Builder *b, const Pairs *p, unsigned i, Val v, bool elements, uint32_t rank, const Dim *dims) {
    Dim split[3] = {p->common, p->side[i].own, p->side[i].n};
    int64_t axes[3] = {0, 1 + i, 3 + i};
    return b_broadcast(b, b_reshape(b, v, elements ? 3 : 2, split), rank, dims, axes);
}
static Val pair(Builder *b, const Pairs *p, unsigned i, Val v, bool elements) {
    return of_side(b, p, i, v, elements, 5, p->pairs);
}
/* Products of the pairs that meet: the indices along all contracted axes are equal, and inside. */
static Val pair_products(Builder *b, const Pairs *p, const Dot *d, const Dim *extents, Dtype to) {
    Val meets = 0, x[2];
    for (uint32_t k = 0; k < d->contracted[0].n && !b->failed; k++) {
        Val l = b_convert(b, p->side[0].sums[k], DT_i64), r = b_convert(b, p->side[1].sums[k], DT_i64);
        Val inside = b_lt(b, l, b_full(b, b_dim(b, DT_i64, extents[k]), 2, b_type(b, l)->dims));
        Val equal = b_and(b, b_eq(b, pair(b, p, 0, l, true), pair(b, p, 1, r, true)), pair(b, p, 0, inside, true));
        meets = meets ? b_and(b, meets, equal) : equal;
    }
    for (unsigned i = 0; i < 2; i++) x[i] = pair(b, p, i, b_convert(b, p->side[i].data, to), true);
    Val y = b2(b, to == DT_bool ? P_and : P_mul, x[0], x[1]);
    return meets ? b_select(b, meets, b_full_like(b, y, 0), y) : y;
}
/* Which of the result's places each pair is at: behind all others where it is outside. */
static Val pair_ranks(Builder *b, const Pairs *p) {
    Val at = 0, outside = 0, count = 0;
    for (unsigned i = 0; i < 2; i++) {
        const Side *s = &p->side[i];
        if (!s->rank) continue;
        Val rank = pair(b, p, i, s->rank, true), n = pair(b, p, i, s->count, false),
            out = pair(b, p, i, s->outside, true);
        at = at ? b_add(b, b_mul(b, at, n), rank) : rank;
        outside = outside ? b_or(b, outside, out) : out;
        count = count ? b_mul(b, count, n) : n;
    }
    return at ? b_select(b, outside, at, count) : b_full(b, b_int(b, DT_i64, 0), 5, p->pairs);
}
/* The columns of side `i` in the result, [batches · nse, axes]: of the places of the left each, in turn, with all of
   the right. */
static Val side_columns(Builder *b, const Pairs *p, unsigned i, Dtype to) {
    const Side *s = &p->side[i];
    Dim dims[4] = {p->common, p->side[0].own, p->side[1].own, p->nse}, n = product(b, dims, 4), one[2] = {n, 1};
    Val at = b_iota(b, DT_i64, 4, dims, 3), count = b_full(b, b_int(b, DT_i64, 1), 4, dims), none[MAX_RANK],
        number = at;
    for (unsigned k = 0; k < 2; k++)
        if (p->side[k].count) count = b_mul(b, count, of_side(b, p, k, p->side[k].count, false, 4, dims));
    if (p->side[1].count) {
        Val right = of_side(b, p, 1, p->side[1].count, false, 4, dims);
        number = b2(b, i ? P_rem : P_div, at, b_max(b, right, b_full_like(b, right, 1)));
    }
    if (b->failed) return VAL_FAILED;
    Val batch = b_iota(b, DT_i64, 4, dims, 0), own = b_iota(b, DT_i64, 4, dims, 1 + i);
    Rows rows = {.n = n, .rows = dim_mul(b_types(b), s->batches, s->n)};
    rows_add(b, &rows, b_reshape(b, batch, 1, &n), p->common, INDEX_INSIDE);
    rows_add(b, &rows, b_reshape(b, own, 1, &n), s->own, INDEX_INSIDE);
    rows_add(b, &rows, b_reshape(b, number, 1, &n), s->n, INDEX_CHECKED);
    Val y = b_convert(b, gathered(b, s->table, rows_end(b, &rows)), to);
    for (uint32_t k = 0; k < s->free.n; k++) none[k] = b_full(b, b_dim(b, to, s->free.shape[1 + k]), 2, one);
    Val last = b_concatenate(b, s->free.n, none, 1), inside = b_reshape(b, b_lt(b, at, count), 1, &n);
    Dim wide[2] = {n, s->free.n};
    return b_select(b, b_broadcast(b, inside, 2, wide, (int64_t[]){0}), last, y);
}
/* No pair at all: every element is none. */
static void no_pairs(Builder *b, const Eqn *e, const Pairs *p, Val *out) {
    const ArrayType *data = val_array(b->cx, e->out.at[0]), *indices = val_array(b->cx, e->out.at[1]);
    Val column[MAX_RANK];
    Dim one[MAX_RANK];
    uint32_t n = 0;
    memcpy(one, indices->dims, indices->rank * sizeof *one);
    one[indices->rank - 1] = 1;
    for (unsigned i = 0; i < 2; i++)
        for (uint32_t k = 0; k < p->side[i].free.n; k++)
            column[n++] = b_full(b, b_dim(b, indices->dtype, p->side[i].free.shape[1 + k]), indices->rank, one);
    out[0] = zeros_of(b, data);
    out[1] = n ? b_concatenate(b, n, column, indices->rank - 1) : zeros_of(b, indices);
}
bool expand_bcoo_spdot_general(Builder *b, const Eqn *e, Val *out) {
    const ArrayType *data = val_array(b->cx, e->out.at[0]), *indices = val_array(b->cx, e->out.at[1]);
    Types *ts = b_types(b);
    Dims shape;
    Dot d;
    if (!dot_axes(b->cx, e, K_dimension_numbers, &param_find(e, K_dimension_numbers)->value, &d)) return false;
    if (!want_sparse_shape(b->cx, e, K_lhs_spinfo, &shape)) return false;
    Pairs p = {.common = product(b, data->dims, d.batch[0].n), .nse = data->dims[data->rank - 1]};
    uint32_t own = b_type(b, e->in.at[1])->rank - 2 - d.batch[0].n;
    p.side[0] = side_of(b, e, &d, 0, d.batch[0].n), p.side[1] = side_of(b, e, &d, 1, d.batch[0].n + own);
    if (b->failed) return false;
    if (p.side[0].n == 0 || p.side[1].n == 0) return no_pairs(b, e, &p, out), true;
    memcpy(p.pairs, (Dim[]){p.common, p.side[0].own, p.side[1].own, p.side[0].n, p.side[1].n}, sizeof p.pairs);
    side_places(b, &p.side[0]), side_places(b, &p.side[1]);
    Dim *extents = arena_new(b->cx->arena, Dim, d.contracted[0].n + 1), batches = product(b, p.pairs, 3);
    for (uint32_t k = 0; k < d.contracted[0].n; k++) extents[k] = shape.at[d.contracted[0].at[k]];
    Dim all[2] = {dim_mul(ts, batches, p.nse), 1}, terms[2] = {product(b, p.pairs, 5), 1};
    Val row = batch_rows(b, batches, dim_mul(ts, p.pairs[3], p.pairs[4]), pair_ranks(b, &p), p.nse);
    Val updates = b_reshape(b, pair_products(b, &p, &d, extents, data->dtype), 2, terms);
    out[0] = shaped(b, scattered(b, P_scatter_add, b_full(b, b_number(b, data->dtype, 0), 2, all), row, updates), data);
    Val column[2];
    uint32_t n = 0;
    for (unsigned i = 0; i < 2; i++)
        if (p.side[i].free.n) column[n++] = side_columns(b, &p, i, indices->dtype);
    out[1] = n ? shaped(b, b_concatenate(b, n, column, 1), indices) : zeros_of(b, indices);
    return true;
}
