/* Linear algebra: the operands are batches of matrices or vectors with equal leading axes. */
#include "rule.h"

/* […, m, n], or […, n] with m = 0. */
typedef struct {
    const ArrayType *t;
    uint32_t batch; /* leading axes */
    Dim m, n;
} Matrix;

/* Operand `i` is a batch of arrays of rank `own`, 1 or 2, of the element type and with the batch of
   operand 0. */
static bool want_matrix(Ctx *cx, const Eqn *e, const Type *in, unsigned i, uint32_t own, Matrix *x) {
    const ArrayType *t = type_at(cx->types, in[i]);
    if (!want_kind(cx, e, in, i, OF_INEXACT) || !want_dtype_of(cx, e, in, i, 0)) return false;
    if (t->rank < own)
        return diag(cx->diags, operand_at(cx, e, i), "%s: operand %u must be a %s, but is %s", name_of(cx, e), i,
                    own == 2 ? "matrix" : "vector", type_c(cx, in[i]));
    *x = (Matrix){t, t->rank - own, own == 2 ? t->dims[t->rank - 2] : 0, t->dims[t->rank - 1]};
    return true;
}

static bool want_batch(Ctx *cx, const Eqn *e, const Type *in, unsigned i, const Matrix *x, const Matrix *first) {
    if (x->batch != first->batch) return operands_disagree(cx, e, in, i, 0);
    for (uint32_t k = 0; k < x->batch; k++)
        if (!dims_agree(cx, x->t->dims[k], first->t->dims[k], operand_at(cx, e, i)))
            return operands_disagree(cx, e, in, i, 0);
    return true;
}

/* An extent that operand `i` does not have. */
static bool want_extent(Ctx *cx, const Eqn *e, const Type *in, unsigned i, const char *what, Dim has, Dim need) {
    if (dims_agree(cx, has, need, operand_at(cx, e, i))) return true;
    diag(cx->diags, operand_at(cx, e, i), "%s: operand %u is %s, but must have %s %s", name_of(cx, e), i,
         type_c(cx, in[i]), dim_c(cx, need), what);
    if (i) note_operand(cx, e, 0, in[0]);
    return false;
}

static bool want_square(Ctx *cx, const Eqn *e, const Type *in, unsigned i, Matrix *x) {
    return want_matrix(cx, e, in, i, 2, x) &&
           (dims_agree(cx, x->m, x->n, operand_at(cx, e, i)) ||
            diag(cx->diags, operand_at(cx, e, i), "%s takes square matrices, but operand %u is %s", name_of(cx, e), i,
                 type_c(cx, in[i])));
}

/* The batch of `x` with matrices of m × n, or vectors of n. */
static Type matrices(Ctx *cx, const Matrix *x, Dtype d, Dim m, Dim n) {
    Dim *dims = dims_copy(cx, x->t);
    dims[x->batch] = m;
    dims[x->batch + 1] = n;
    return type_of(cx->types, d, x->batch + 2, dims);
}
static Type vectors(Ctx *cx, const Matrix *x, Dtype d, Dim n) {
    Dim *dims = dims_copy(cx, x->t);
    dims[x->batch] = n;
    return type_of(cx->types, d, x->batch + 1, dims);
}

/* How many of the values from–to a subset keeps: all `n` where the parameter is None. */
static bool subset(Ctx *cx, const Eqn *e, Dim n, Dim *kept) {
    *kept = n;
    if (!param_has(e, K_subset_by_index)) return true;
    const Value *v = &param_find(e, K_subset_by_index)->value;
    bool pair = v->kind == V_LIST && v->list.n == 2 && v->list.at[0].kind == V_INT && v->list.at[1].kind == V_INT;
    if (!pair || v->list.at[0].i < 0 || v->list.at[1].i < v->list.at[0].i)
        return diag(cx->diags, param_at(e, K_subset_by_index), "%s: subset_by_index is no pair (from, to)",
                    name_of(cx, e));
    *kept = dim_min(cx->types, n, v->list.at[1].i - v->list.at[0].i);
    return true;
}

/* ---- triangular factors */

bool type_cholesky(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    Matrix x;
    if (!want(cx, e, 1, 1) || !want_square(cx, e, in, 0, &x)) return false;
    out[0] = type_plain(cx->types, in[0]);
    return true;
}

/* The factor of A + w wᵀ from that of A. */
bool type_cholesky_update(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    Matrix x, w;
    if (!want(cx, e, 2, 1) || !want_square(cx, e, in, 0, &x) || !want_matrix(cx, e, in, 1, 1, &w) ||
        !want_batch(cx, e, in, 1, &w, &x) || !want_extent(cx, e, in, 1, "elements", w.n, x.n))
        return false;
    out[0] = type_plain(cx->types, in[0]);
    return true;
}

/* Both factors in one matrix, the pivots, and the permutation, which JAX before 0.2 did not return. */
bool type_lu(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    Matrix x;
    if (!want(cx, e, 1, e->out.n == 2 ? 2 : 3) || !want_matrix(cx, e, in, 0, 2, &x)) return false;
    out[0] = type_plain(cx->types, in[0]);
    out[1] = vectors(cx, &x, DT_i32, dim_min(cx->types, x.m, x.n));
    if (e->out.n == 3) out[2] = vectors(cx, &x, DT_i32, x.m);
    return true;
}

/* Row swaps in order → the permutation that they make. */
bool type_lu_pivots_to_permutation(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    int64_t size;
    if (!want(cx, e, 1, 1) || !want_int(cx, e, K_permutation_size, 0, &size)) return false;
    const ArrayType *x = type_at(cx->types, in[0]);
    if (x->dtype != DT_i32 || !x->rank)
        return diag(cx->diags, operand_at(cx, e, 0),
                    "lu_pivots_to_permutation takes a vector of i32, but operand 0 is %s", type_c(cx, in[0]));
    if (!dims_at_most(cx, x->dims[x->rank - 1], size, param_at(e, K_permutation_size)))
        return diag(cx->diags, param_at(e, K_permutation_size),
                    "lu_pivots_to_permutation: permutation_size is %lld, but the pivots are %s", (long long)size,
                    type_c(cx, in[0]));
    Dim *dims = dims_copy(cx, x);
    dims[x->rank - 1] = size;
    out[0] = type_of(cx->types, DT_i32, x->rank, dims);
    return true;
}

/* A X = B, or X A = B. */
bool type_triangular_solve(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    Matrix a, b;
    if (!want(cx, e, 2, 1) || !want_square(cx, e, in, 0, &a) || !want_matrix(cx, e, in, 1, 2, &b) ||
        !want_batch(cx, e, in, 1, &b, &a))
        return false;
    bool left = param_bool(e, K_left_side);
    if (!want_extent(cx, e, in, 1, left ? "rows" : "columns", left ? b.m : b.n, a.n)) return false;
    out[0] = type_plain(cx->types, in[1]);
    return true;
}

/* Lower diagonal, diagonal, upper diagonal, and the right-hand side. */
bool type_tridiagonal_solve(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    Matrix dl, b;
    if (!want(cx, e, 4, 1) || !want_matrix(cx, e, in, 0, 1, &dl)) return false;
    for (unsigned i = 1; i < 3; i++)
        if (!types_agree(cx, in[i], in[0], operand_at(cx, e, i))) return operands_disagree(cx, e, in, i, 0);
    if (!want_matrix(cx, e, in, 3, 2, &b) || !want_batch(cx, e, in, 3, &b, &dl) ||
        !want_extent(cx, e, in, 3, "rows", b.m, dl.n))
        return false;
    out[0] = type_plain(cx->types, in[3]);
    return true;
}

/* α A Aᵀ + β C */
bool type_symmetric_product(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    Matrix a, c;
    double factor;
    if (!want_real(cx, e, K_alpha, 1, &factor) || !want_real(cx, e, K_beta, 0, &factor)) return false;
    if (!want(cx, e, 2, 1) || !want_kind(cx, e, in, 0, OF_FLOAT) || !want_matrix(cx, e, in, 0, 2, &a) ||
        !want_square(cx, e, in, 1, &c) || !want_batch(cx, e, in, 1, &c, &a) ||
        !want_extent(cx, e, in, 1, "rows", c.m, a.m))
        return false;
    out[0] = type_plain(cx->types, in[1]);
    return true;
}

/* ---- Householder reflectors */

bool type_qr(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    Matrix x;
    bool pivoting = param_bool(e, K_pivoting);
    if (!want(cx, e, 1, pivoting ? 3 : 2) || !want_matrix(cx, e, in, 0, 2, &x)) return false;
    Dim k = param_bool(e, K_full_matrices) ? x.m : dim_min(cx->types, x.m, x.n);
    out[0] = matrices(cx, &x, x.t->dtype, x.m, k);
    out[1] = matrices(cx, &x, x.t->dtype, k, x.n);
    if (pivoting) out[2] = vectors(cx, &x, DT_i32, x.n);
    return true;
}

bool type_geqrf(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    Matrix x;
    if (!want(cx, e, 1, 2) || !want_matrix(cx, e, in, 0, 2, &x)) return false;
    out[0] = type_plain(cx->types, in[0]);
    out[1] = vectors(cx, &x, x.t->dtype, dim_min(cx->types, x.m, x.n));
    return true;
}

/* With pivots: operand 1 says which columns come first. */
bool type_geqp3(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    Matrix x;
    if (!want(cx, e, 2, 3) || !want_matrix(cx, e, in, 0, 2, &x)) return false;
    Type pivots = vectors(cx, &x, DT_i32, x.n);
    if (!types_agree(cx, in[1], pivots, operand_at(cx, e, 1)))
        return diag(cx->diags, operand_at(cx, e, 1), "geqp3: operand 1 is %s, but must be %s", type_c(cx, in[1]),
                    type_c(cx, pivots));
    out[0] = type_plain(cx->types, in[0]);
    out[1] = pivots;
    out[2] = vectors(cx, &x, x.t->dtype, dim_min(cx->types, x.m, x.n));
    return true;
}

/* m × n with m ≥ n, of at most n reflectors. */
bool type_householder_product(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    Matrix a, taus;
    if (!want(cx, e, 2, 1) || !want_matrix(cx, e, in, 0, 2, &a) || !want_matrix(cx, e, in, 1, 1, &taus) ||
        !want_batch(cx, e, in, 1, &taus, &a))
        return false;
    if (!dims_at_most(cx, a.n, a.m, operand_at(cx, e, 0)))
        return diag(cx->diags, operand_at(cx, e, 0), "householder_product: operand 0 has fewer rows than columns: %s",
                    type_c(cx, in[0]));
    if (!dims_at_most(cx, taus.n, a.n, operand_at(cx, e, 1))) return operands_disagree(cx, e, in, 1, 0);
    out[0] = type_plain(cx->types, in[0]);
    return true;
}

/* The product of reflectors times C, or C times it. */
bool type_ormqr(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    Matrix a, taus, c;
    if (!want(cx, e, 3, 1) || !want_matrix(cx, e, in, 0, 2, &a) || !want_matrix(cx, e, in, 1, 1, &taus) ||
        !want_batch(cx, e, in, 1, &taus, &a) || !want_matrix(cx, e, in, 2, 2, &c) || !want_batch(cx, e, in, 2, &c, &a))
        return false;
    bool left = param_bool(e, K_left);
    if (!want_extent(cx, e, in, 2, left ? "rows" : "columns", left ? c.m : c.n, a.m)) return false;
    out[0] = type_plain(cx->types, in[2]);
    return true;
}

bool type_hessenberg(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    Matrix x;
    if (!want(cx, e, 1, 2) || !want_square(cx, e, in, 0, &x)) return false;
    out[0] = type_plain(cx->types, in[0]);
    out[1] = vectors(cx, &x, x.t->dtype, dim_sub(cx->types, x.n, 1));
    return true;
}

/* The matrix of reflectors, the diagonal, the subdiagonal, and the factors of the reflectors. */
bool type_tridiagonal(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    Matrix x;
    if (!want(cx, e, 1, 4) || !want_square(cx, e, in, 0, &x)) return false;
    Dim beside = dim_sub(cx->types, x.n, 1);
    out[0] = type_plain(cx->types, in[0]);
    out[1] = vectors(cx, &x, dtype_real(x.t->dtype), x.n);
    out[2] = vectors(cx, &x, dtype_real(x.t->dtype), beside);
    out[3] = vectors(cx, &x, x.t->dtype, beside);
    return true;
}

/* ---- values and vectors */

bool type_eigh(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    Matrix x;
    Dim k;
    if (!want(cx, e, 1, 2) || !want_square(cx, e, in, 0, &x) || !subset(cx, e, x.n, &k)) return false;
    out[0] = matrices(cx, &x, x.t->dtype, x.n, k);
    out[1] = vectors(cx, &x, dtype_real(x.t->dtype), k);
    return true;
}

bool type_eig(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    Matrix x;
    unsigned vectors_of =
        (unsigned)param_bool(e, K_compute_left_eigenvectors) + param_bool(e, K_compute_right_eigenvectors);
    if (!want(cx, e, 1, 1 + vectors_of) || !want_square(cx, e, in, 0, &x)) return false;
    Dtype d = dtype_complex(x.t->dtype);
    out[0] = vectors(cx, &x, d, x.n);
    for (unsigned i = 1; i <= vectors_of; i++) out[i] = matrices(cx, &x, d, x.n, x.n);
    return true;
}

bool type_schur(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    Matrix x;
    bool both = param_bool(e, K_compute_schur_vectors);
    if (!want(cx, e, 1, both ? 2 : 1) || !want_square(cx, e, in, 0, &x)) return false;
    for (unsigned i = 0; i < e->out.n; i++) out[i] = type_plain(cx->types, in[0]);
    return true;
}

/* Singular values, and with compute_uv the left and right vectors. */
bool type_svd(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    Matrix x;
    Dim k;
    bool full = param_bool(e, K_full_matrices), uv = param_bool(e, K_compute_uv);
    if (!want(cx, e, 1, uv ? 3 : 1) || !want_matrix(cx, e, in, 0, 2, &x)) return false;
    if (!subset(cx, e, dim_min(cx->types, x.m, x.n), &k)) return false;
    out[0] = vectors(cx, &x, dtype_real(x.t->dtype), k);
    if (!uv) return true;
    out[1] = matrices(cx, &x, x.t->dtype, x.m, full ? x.m : k);
    out[2] = matrices(cx, &x, x.t->dtype, full ? x.n : k, x.n);
    return true;
}
