/* Products of a sparse array and a dense one, and products of dense ones at the positions of a sparse array: work is
   proportional to the stored elements. */
#include "sparse.h"

typedef struct {
    int64_t at[MAX_RANK];
    uint32_t n;
} Axes;
static void axes_add(Axes *a, int64_t axis) { a->at[a->n++] = axis; }
static void axes_put(Axes *to, const Ints *from) {
    for (uint32_t i = 0; i < from->n; i++) axes_add(to, from->at[i]);
}
static bool axes_have(const int64_t *at, uint32_t n, int64_t axis) {
    for (uint32_t i = 0; i < n; i++)
        if (at[i] == axis) return true;
    return false;
}
/* Those below `n` that are in neither list, in order. */
static void axes_rest(Axes *to, uint32_t n, const Ints *a, const Ints *c) {
    for (uint32_t i = 0; i < n; i++)
        if (!axes_have(a->at, a->n, i) && !axes_have(c->at, c->n, i)) axes_add(to, i);
}
static Dim extent_of(Builder *b, const Dim *dims, const Axes *a) {
    Dim n = 1;
    for (uint32_t i = 0; i < a->n; i++) n = dim_mul(b_types(b), n, dims[a->at[i]]);
    return n;
}

/* The array with its axes in that order, as [rows, width] in memory: rows are read anywhere. */
static Val as_rows(Builder *b, Val x, const int64_t *order, const Dim *all) {
    Val y = b_transpose(b, x, order);
    return b_reshape(b, y == x ? x : b_stored(b, y), 2, all);
}
/* x [n, w], y [n, f] → [n, w, f]: all products of two elements of a row, as dot_general would give them in type
   `to`. */
static Val outer(Builder *b, Val x, Val y, Dtype to) {
    if (b->failed) return VAL_FAILED;
    const ArrayType *s = b_type(b, x), *t = b_type(b, y);
    Dim dims[3] = {s->dims[0], s->dims[1], t->dims[1]};
    int64_t row = 0;
    Ints rows = {&row, 1};
    Contraction c = {.batch = {rows, rows}, .preferred = to};
    if (s->dtype != t->dtype || s->dtype != to) return b_dot_general(b, x, y, c);
    x = b_broadcast(b, x, 3, dims, (int64_t[]){0, 1}), y = b_broadcast(b, y, 3, dims, (int64_t[]){0, 2});
    return b2(b, to == DT_bool ? P_and : P_mul, x, y);
}
/* The sum over axis 1 of [n, terms, w]; narrow floats are summed as f32. */
static Val summed(Builder *b, Val v) {
    int64_t one = 1;
    if (b_failed(b, v)) return VAL_FAILED;
    Dtype d = b_type(b, v)->dtype;
    bool narrow = dtype_info[d].kind == DK_FLOAT && dtype_info[d].bits < 32;
    return b_convert(
        b, b_reduce(b, d == DT_bool ? P_reduce_or : P_reduce_sum, narrow ? b_convert(b, v, DT_f32) : v, 1, &one), d);
}

/* ---- sparse times dense. Axes of the sparse array: of its batch those of the product's batch, those that stay and
   those that are contracted; with indices those that stay and those that are contracted; dense ones, which stay. */
typedef struct {
    const Coordinates *c;
    Axes batch;      /* the batch in the order: product's, free, contracted */
    Dim part[4];     /* extents of these three, and nse */
    Axes free, sums; /* that have indices */
    /* of the dense array: the product's batch, then the axes that meet contracted axes of the batch, then of `sums` */
    Axes right;
    Axes right_free;
} Roles;
static Roles roles_of(Builder *b, const Coordinates *c, const Dot *d, uint32_t right_rank) {
    Roles r = {.c = c};
    Axes left = {.n = 0}, group[3] = {{.n = 0}};
    for (uint32_t i = 0; i < d->batch[0].n; i++)
        axes_add(&group[0], d->batch[0].at[i]), axes_add(&r.right, d->batch[1].at[i]);
    for (uint32_t with_indices = 0; with_indices < 2; with_indices++)
        for (uint32_t i = 0; i < d->contracted[0].n; i++) {
            int64_t axis = d->contracted[0].at[i];
            if ((axis >= c->batch) != with_indices) continue;
            axes_add(with_indices ? &r.sums : &group[2], axis), axes_add(&r.right, d->contracted[1].at[i]);
        }
    axes_rest(&left, c->batch + c->n, &d->batch[0], &d->contracted[0]);
    for (uint32_t i = 0; i < left.n; i++) axes_add(left.at[i] < c->batch ? &group[1] : &r.free, left.at[i]);
    for (uint32_t i = 0; i < 3; i++) {
        r.part[i] = extent_of(b, c->shape, &group[i]);
        for (uint32_t k = 0; k < group[i].n; k++) axes_add(&r.batch, group[i].at[k]);
    }
    r.part[3] = c->nse;
    axes_rest(&r.right_free, right_rank, &d->batch[1], &d->contracted[1]);
    return r;
}
/* Number along part i of the batch, for every stored element. */
static Val part_numbers(Builder *b, const Roles *r, uint32_t i) {
    return numbers(b, product(b, r->part, i), r->part[i], product(b, r->part + i + 1, 3 - i));
}
static void add_part(Builder *b, const Roles *r, Rows *rows, uint32_t i) {
    if (r->part[i] != 1) rows_add(b, rows, part_numbers(b, r, i), r->part[i], INDEX_INSIDE);
}
static void add_indices(Builder *b, const Roles *r, Rows *rows, const Axes *axes, Trust trust) {
    const Coordinates *c = r->c;
    for (uint32_t i = 0; i < axes->n; i++) {
        Val column = flattened(b, c->column[axes->at[i] - c->batch], c->batch, c->shape, r->batch.at, true);
        rows_add(b, rows, column, c->shape[axes->at[i]], trust);
    }
}
/* What of the dense array each stored element meets: [elements, free]. */
static Val partners(Builder *b, const Roles *r, Val y, Trust trust) {
    if (b->failed) return VAL_FAILED;
    const ArrayType *t = b_type(b, y);
    int64_t order[MAX_RANK];
    Dim all[2] = {extent_of(b, t->dims, &r->right), extent_of(b, t->dims, &r->right_free)};
    memcpy(order, r->right.at, r->right.n * sizeof *order);
    memcpy(order + r->right.n, r->right_free.at, r->right_free.n * sizeof *order);
    y = as_rows(b, y, order, all);
    Rows rows = {.n = product(b, r->part, 4), .rows = all[0]};
    add_part(b, r, &rows, 0), add_part(b, r, &rows, 2), add_indices(b, r, &rows, &r->sums, trust);
    return (trust == INDEX_CHECKED ? gathered : gathered_nearest)(b, y, rows_end(b, &rows));
}
/* `trust` in indices along what is contracted: those outside meet 0, or, unchecked, the nearest element. */
static Val sparse_product(Builder *b, Val data, const Coordinates *c, Val y, const Dot *d, Trust trust,
                          const ArrayType *to) {
    if (b->failed) return VAL_FAILED;
    Types *ts = b_types(b);
    Roles r = roles_of(b, c, d, b_type(b, y)->rank);
    Val x = flattened(b, data, c->batch, c->shape, r.batch.at, false),
        terms = outer(b, x, partners(b, &r, y, trust), to->dtype);
    if (b->failed) return VAL_FAILED;
    const Dim *t = b_type(b, terms)->dims;
    Dim width = dim_mul(ts, t[1], t[2]), groups = dim_mul(ts, r.part[0], r.part[1]), n = product(b, r.part, 4);
    if (!r.free.n) {
        Dim three[3] = {groups, dim_mul(ts, r.part[2], c->nse), width};
        return b_reshape(b, summed(b, b_reshape(b, terms, 3, three)), to->rank, to->dims);
    }
    Dim two[2] = {n, width}, all[2] = {dim_mul(ts, groups, extent_of(b, c->shape, &r.free)), width};
    Rows rows = {.n = n, .rows = all[0]};
    add_part(b, &r, &rows, 0), add_part(b, &r, &rows, 1), add_indices(b, &r, &rows, &r.free, INDEX_CHECKED);
    Val zeros = b_full(b, b_number(b, to->dtype, 0), 2, all);
    return b_reshape(b, scattered(b, P_scatter_add, zeros, rows_end(b, &rows), b_reshape(b, terms, 2, two)), to->rank,
                     to->dims);
}
static bool by_dimensions(Builder *b, const Eqn *e, const Coordinates *c, Val y, Val *out) {
    Dot d;
    if (!dot_axes(b->cx, e, K_dimension_numbers, &param_find(e, K_dimension_numbers)->value, &d)) return false;
    out[0] = sparse_product(b, e->in.at[0], c, y, &d, INDEX_CHECKED, val_array(b->cx, e->out.at[0]));
    return true;
}
bool expand_bcoo_dot_general(Builder *b, const Eqn *e, Val *out) {
    Dims shape;
    if (!want_sparse_shape(b->cx, e, K_lhs_spinfo, &shape)) return false;
    Coordinates c = bcoo_coordinates(b, e->in.at[1], shape.n, shape.at);
    return by_dimensions(b, e, &c, e->in.at[2], out);
}
bool expand_bcsr_dot_general(Builder *b, const Eqn *e, Val *out) {
    Dims shape;
    if (!want_sparse_shape(b->cx, e, K_lhs_spinfo, &shape)) return false;
    Coordinates c = bcsr_coordinates(b, e->in.at[1], e->in.at[2], shape.n, shape.at);
    return by_dimensions(b, e, &c, e->in.at[3], out);
}
/* A matrix times operand 3. */
static bool matrix_product(Builder *b, const Eqn *e, const Coordinates *c, Val *out) {
    int64_t axis = !param_bool(e, K_transpose), first = 0;
    Dot d = {.contracted = {{&axis, 1}, {&first, 1}}};
    out[0] = sparse_product(b, e->in.at[0], c, e->in.at[3], &d, INDEX_WRAPS, val_array(b->cx, e->out.at[0]));
    return true;
}
bool expand_csr_matmat(Builder *b, const Eqn *e, Val *out) {
    Dims shape = param_dims(e, K_shape);
    Coordinates c = bcsr_coordinates(b, e->in.at[1], e->in.at[2], 2, shape.at);
    return matrix_product(b, e, &c, out);
}
bool expand_csr_matvec(Builder *b, const Eqn *e, Val *out) { return expand_csr_matmat(b, e, out); }
bool expand_coo_matmat(Builder *b, const Eqn *e, Val *out) {
    Dims shape;
    if (!want_sparse_shape(b->cx, e, K_spinfo, &shape)) return false;
    Coordinates c = coo_coordinates(b, e->in.at[1], e->in.at[2], shape.at);
    return matrix_product(b, e, &c, out);
}
bool expand_coo_matvec(Builder *b, const Eqn *e, Val *out) { return expand_coo_matmat(b, e, out); }

/* ---- dense times dense, at the places of a sparse array */
/* The rows of operand `side` that stored elements meet, [elements, terms]. Of the result's axes, along which they are
   at `index`, it has its batch and its free ones. */
static Val sampled_rows(Builder *b, const Coordinates *c, const Dot *d, unsigned side, const Val *index, Val x) {
    if (b->failed) return VAL_FAILED;
    const Dim *dims = b_type(b, x)->dims;
    Axes kept = {.n = 0}, sums = {.n = 0}, order;
    axes_put(&kept, &d->batch[side]);
    axes_rest(&kept, b_type(b, x)->rank, &d->batch[side], &d->contracted[side]);
    axes_put(&sums, &d->contracted[side]);
    order = kept;
    axes_put(&order, &d->contracted[side]);
    Dim all[2] = {extent_of(b, dims, &kept), extent_of(b, dims, &sums)};
    Rows rows = {.n = dim_mul(b_types(b), product(b, c->shape, c->batch), c->nse), .rows = all[0]};
    uint32_t others =
        side ? c->rank - kept.n : 0; /* free axes of the other side lie between the batch and this one's */
    for (uint32_t i = 0; i < kept.n; i++) {
        uint32_t axis = i < d->batch[side].n ? i : i + others;
        assert(axis < c->rank && c->rank <= MAX_RANK);
        rows_add(b, &rows, index[axis], c->shape[axis], axis >= c->batch ? INDEX_CHECKED : INDEX_INSIDE);
    }
    return gathered(b, as_rows(b, x, order.at, all), rows_end(b, &rows));
}
/* An index along each of the result's axes for every stored element. */
static void sampled_index(Builder *b, const Coordinates *c, Val *index) {
    Dim before = 1;
    for (uint32_t i = 0; i < c->batch; i++) {
        Dim after = dim_mul(b_types(b), product(b, c->shape + i + 1, c->batch - i - 1), c->nse);
        index[i] = numbers(b, before, c->shape[i], after);
        before = dim_mul(b_types(b), before, c->shape[i]);
    }
    for (uint32_t i = 0; i < c->n; i++)
        index[c->batch + i] = flattened(b, c->column[i], c->batch, c->shape, NULL, true);
}
/* The extents of the product of two arrays; how many. */
static uint32_t product_shape(Builder *b, const Dot *d, Val x, Val y, Dim *shape) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < d->batch[0].n; i++) shape[n++] = b_type(b, x)->dims[d->batch[0].at[i]];
    for (unsigned side = 0; side < 2; side++) {
        const ArrayType *t = b_type(b, side ? y : x);
        Axes free = {.n = 0};
        axes_rest(&free, t->rank, &d->batch[side], &d->contracted[side]);
        for (uint32_t i = 0; i < free.n; i++) shape[n++] = t->dims[free.at[i]];
    }
    return n;
}
bool expand_bcoo_dot_general_sampled(Builder *b, const Eqn *e, Val *out) {
    Val x = e->in.at[0], y = e->in.at[1], index[MAX_RANK];
    const ArrayType *to = val_array(b->cx, e->out.at[0]);
    Dim shape[2 * MAX_RANK];
    Dot d;
    if (!dot_axes(b->cx, e, K_dimension_numbers, &param_find(e, K_dimension_numbers)->value, &d)) return false;
    Coordinates c = bcoo_coordinates(b, e->in.at[2], product_shape(b, &d, x, y, shape), shape);
    if (!c.n || c.batch + c.n < c.rank) { /* whole rows of the product are wanted */
        Val all = b_dot_general(
            b, x, y,
            (Contraction){.contracted = {d.contracted[0], d.contracted[1]}, .batch = {d.batch[0], d.batch[1]}});
        out[0] = extracted(b, &c, all, to);
        return true;
    }
    assert(c.batch + c.n == c.rank && c.rank <= MAX_RANK);
    sampled_index(b, &c, index);
    x = sampled_rows(b, &c, &d, 0, index, x), y = sampled_rows(b, &c, &d, 1, index, y);
    int64_t row = 0, term = 1;
    Ints rows = {&row, 1}, terms = {&term, 1};
    out[0] = b_reshape(
        b,
        b_dot_general(b, x, y,
                      (Contraction){.contracted = {terms, terms}, .batch = {rows, rows}, .preferred = to->dtype}),
        to->rank, to->dims);
    return true;
}
