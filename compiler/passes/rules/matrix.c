/* Batches of matrices. */
#include "matrix.h"

Matrices matrices(Builder *b, Val v) {
    const ArrayType *t = b_type(b, v);
    assert(t->rank >= 2);
    Matrices x = {.t = t, .lead = t->rank - 2, .batch = 1, .m = t->dims[t->rank - 2], .n = t->dims[t->rank - 1]};
    for (uint32_t i = 0; i < x.lead; i++) x.batch = dim_mul(b_types(b), x.batch, t->dims[i]);
    return x;
}
Type matrices_type(Builder *b, const Matrices *x, Dtype d, uint32_t rank, Dim m, Dim n) {
    Dim dims[MAX_RANK];
    if (x->lead) memcpy(dims, x->t->dims, x->lead * sizeof *dims);
    dims[x->lead] = m, dims[x->lead + 1] = n;
    return type_of(b_types(b), d, x->lead + rank, dims);
}
static bool is_complex(const Builder *b, Val v) { return dtype_info[b_type(b, v)->dtype].kind == DK_COMPLEX; }
/* 0, 1, … */
static Ints first_axes(Builder *b, uint32_t n) {
    Ints s = {arena_new(b->cx->arena, int64_t, n + 1), n};
    for (uint32_t i = 0; i < n; i++) s.at[i] = i;
    return s;
}

/* ---- parts */
Val mat_rows(Builder *b, Val v, Dim lo, Dim hi) {
    return b_failed(b, v) ? VAL_FAILED : b_slice_axis(b, v, matrices(b, v).lead, lo, hi);
}
Val mat_columns(Builder *b, Val v, Dim lo, Dim hi) {
    return b_failed(b, v) ? VAL_FAILED : b_slice_axis(b, v, matrices(b, v).lead + 1, lo, hi);
}
/* Is the row's number, plus `shift`, greater than the column's (P_gt), equal (P_eq), …? */
static Val compare(Builder *b, const Matrices *x, Prim how, int64_t shift) {
    Dim dims[2] = {x->m, x->n};
    Val row = b_iota(b, DT_i32, 2, dims, 0), column = b_iota(b, DT_i32, 2, dims, 1);
    if (shift) row = b_add(b, row, b_full_like(b, row, (double)shift));
    Val mask = b2(b, how, row, column);
    return x->lead ? b_broadcast(b, mask, x->t->rank, x->t->dims, (int64_t[]){x->lead, x->lead + 1}) : mask;
}
static Val where(Builder *b, Val v, Prim how, int64_t shift) {
    if (b_failed(b, v)) return VAL_FAILED;
    Matrices x = matrices(b, v);
    Val mask = compare(b, &x, how, shift);
    return b_select(b, mask, b_zeros_like(b, v), v);
}
Val mat_lower(Builder *b, Val v, int64_t k) { return where(b, v, P_ge, -k); }
Val mat_upper(Builder *b, Val v, int64_t k) { return where(b, v, P_le, k); }
Val mat_with_diagonal(Builder *b, Val v, Val other) {
    if (b_failed(b, v) || b_failed(b, other)) return VAL_FAILED;
    Matrices x = matrices(b, v);
    return b_select(b, compare(b, &x, P_eq, 0), v, other);
}
Val mat_identity(Builder *b, const Matrices *like, Dim n) {
    Matrices x = *like;
    x.t = type_at(b_types(b), matrices_type(b, like, x.t->dtype, 2, n, n)), x.m = x.n = n;
    return b_convert(b, compare(b, &x, P_eq, 0), x.t->dtype);
}
/* Vectors along axis `along` of matrices (0: columns), n times. */
static Val spread(Builder *b, Val v, uint32_t along, Dim n) {
    if (b_failed(b, v)) return VAL_FAILED;
    const ArrayType *t = b_type(b, v);
    Dim dims[COMPILED_RANK + 1];
    uint32_t lead = t->rank - 1;
    memcpy(dims, t->dims, t->rank * sizeof *dims);
    dims[lead + along] = t->dims[lead], dims[lead + 1 - along] = n;
    Ints axes = first_axes(b, t->rank);
    axes.at[lead] = lead + along;
    return b_broadcast(b, v, t->rank + 1, dims, axes.at);
}
Val mat_of_row(Builder *b, Val v, Dim m) { return spread(b, v, 1, m); }
Val mat_of_column(Builder *b, Val v, Dim n) { return spread(b, v, 0, n); }
/* Reads along axis `along` of the matrices (0: rows). */
static Val take(Builder *b, Val v, Val permutations, uint32_t along) {
    if (b_failed(b, v) || b_failed(b, permutations)) return VAL_FAILED;
    Matrices x = matrices(b, v);
    Dim sizes[MAX_RANK];
    int64_t axis = x.lead + along, other = x.lead + 1 - along, last = x.lead + 1;
    for (uint32_t i = 0; i < x.lead; i++) sizes[i] = 1;
    sizes[axis] = 1, sizes[other] = x.t->dims[other];
    Ints batch = first_axes(b, x.lead);
    Places at = {.mode = S("GatherScatterMode.PROMISE_IN_BOUNDS"), .unique = true};
    at.n = (IndexNumbers){
        .windows = {&other, 1}, .dropped = {&axis, 1}, .map = {&axis, 1}, .batch = batch, .index_batch = batch};
    return b_gather(b, v, b_expand_dims(b, permutations, 1, &last), sizes, at);
}
Val mat_take_rows(Builder *b, Val v, Val permutations) { return take(b, v, permutations, 0); }
Val mat_take_columns(Builder *b, Val v, Val permutations) { return take(b, v, permutations, 1); }

/* ---- algebra */
Val mat_turned(Builder *b, Val v) {
    if (b_failed(b, v)) return VAL_FAILED;
    uint32_t n = b_type(b, v)->rank;
    Ints p = first_axes(b, n);
    p.at[n - 1] = n - 2, p.at[n - 2] = n - 1;
    return b_transpose(b, v, p.at);
}
Val mat_conj(Builder *b, Val v) { return b_failed(b, v) ? VAL_FAILED : is_complex(b, v) ? b_conj(b, v) : v; }
Val mat_real(Builder *b, Val v) { return b_failed(b, v) ? VAL_FAILED : is_complex(b, v) ? b_real(b, v) : v; }
Val mat_adjoint(Builder *b, Val v) { return mat_turned(b, mat_conj(b, v)); }
Val mat_product(Builder *b, Val x, Form of_x, Val y, Form of_y) {
    if (of_x & CONJUGATE) x = mat_conj(b, x);
    if (of_y & CONJUGATE) y = mat_conj(b, y);
    if (b_failed(b, x) || b_failed(b, y)) return VAL_FAILED;
    uint32_t lead = matrices(b, x).lead;
    Ints batch = first_axes(b, lead);
    int64_t axis[2] = {lead + !(of_x & TURNED), lead + !!(of_y & TURNED)};
    return b_dot_general(b, x, y,
                         (Contraction){.contracted = {{axis, 1}, {axis + 1, 1}},
                                       .batch = {batch, batch},
                                       .preferred = b_type(b, x)->dtype});
}
Val mat_solve_triangular(Builder *b, Val a, Val c, unsigned how) {
    Param p[5] = {p_bool(K_conjugate_a, how & SOLVE_CONJUGATE), p_bool(K_left_side, how & SOLVE_LEFT),
                  p_bool(K_lower, how & SOLVE_LOWER), p_bool(K_transpose_a, how & SOLVE_TURNED),
                  p_bool(K_unit_diagonal, how & SOLVE_UNIT)};
    return build(b, P_triangular_solve, 2, (Val[]){a, c}, 5, p);
}
Val mat_solve(Builder *b, Val a, Val c) {
    Vals lu = build_many(b, P_lu, 1, &a, 0, NULL, 3, NULL);
    Val x = mat_take_rows(b, c, lu.at[2]);
    x = mat_solve_triangular(b, lu.at[0], x, SOLVE_LEFT | SOLVE_LOWER | SOLVE_UNIT);
    return mat_solve_triangular(b, lu.at[0], x, SOLVE_LEFT);
}
