/* Derivatives of eigenvalues and singular values, and of their vectors: perturbation theory of values that are all
   different (M. Giles, An extended collection of matrix derivative results for forward and reverse mode AD, 2008). */
#include "matrix.h"
#include "../transform/transform.h"

/* False, after an error, if the equation computes some of the values only. */
static bool all_values(Jvp *d, Dim n) {
    const Param *p = param_find(d->e, K_subset_by_index);
    if (!p || p->value.kind == V_NONE) return true;
    const Value *v = &p->value;
    return (v->list.at[0].i == 0 && v->list.at[1].i == n) ||
           tx_error(d->tx, d->e->span, "%s with subset_by_index has no derivative", prim_name[d->e->prim]);
}
/* The equation with another operand, these parameters set, and nout results. */
static Vals with_params(Jvp *d, Val in, uint32_t n, const Param *set, uint32_t nout) {
    Arena *arena = d->b->cx->arena;
    Param *p = arena_new(arena, Param, d->e->params.n + n);
    uint32_t m = 0;
    each(const Param, old, d->e->params) {
        bool kept = true;
        for (uint32_t i = 0; i < n; i++) kept &= set[i].key != old->key;
        if (kept) p[m++] = *old;
    }
    for (uint32_t i = 0; i < n; i++) p[m++] = set[i];
    return build_many(d->b, d->e->prim, 1, &in, m, p, nout, NULL);
}
/* 1 / (v[j] - v[i]), and 0 on the diagonal. */
static Val inverse_gaps(Builder *b, Val differences) {
    if (b_failed(b, differences)) return VAL_FAILED;
    Matrices x = matrices(b, differences);
    Val one = mat_identity(b, &x, x.n);
    return b_sub(b, b_integer_pow(b, b_add(b, one, differences), -1), one);
}
static Val differences(Builder *b, Val v) {
    if (b_failed(b, v)) return VAL_FAILED;
    const ArrayType *t = b_type(b, v);
    Dim n = t->dims[t->rank - 1];
    Val columns = mat_of_row(b, v, n);
    return b_sub(b, columns, mat_of_column(b, v, n));
}
/* Sums along rows of the elements' products: the diagonal of X Yᵀ. */
static Val row_products(Builder *b, Val x, Val y) {
    if (b_failed(b, x)) return VAL_FAILED;
    int64_t last = matrices(b, x).lead + 1;
    Val p = b_mul(b, x, y);
    return b_reduce(b, P_reduce_sum, p, 1, &last);
}

/* ---- eigh: of (A + Aᴴ) / 2, which JAX decomposes where it differentiates. P = Vᴴ Ȧ V */
bool jvp_eigh(Jvp *d) {
    Builder *b = d->b;
    Val a = d->e->in.at[0];
    Matrices x = matrices(b, a);
    if (!all_values(d, x.n)) return false;
    Val sum = b_add(b, a, b_as_declared(b, mat_adjoint(b, a), a));
    Vals out = with_params(d, b_div(b, sum, b_number(b, x.t->dtype, 2)), 0, NULL, 2);
    Val v = out.at[0], w = out.at[1];
    Val va = mat_product(b, v, ADJOINT, d->t[0], PLAIN), p = mat_product(b, va, PLAIN, v, PLAIN);
    Val gaps = inverse_gaps(b, differences(b, b_convert(b, w, x.t->dtype)));
    Val dv = mat_product(b, v, PLAIN, b_mul(b, gaps, p), PLAIN);
    d->out[0] = b_as_declared(b, v, d->e->out.at[0]);
    d->out[1] = b_as_declared(b, w, d->e->out.at[1]);
    d->dt[0] = b_as_declared(b, dv, d->out[0]);
    d->dt[1] = b_as_declared(b, mat_real(b, row_products(b, va, mat_turned(b, v))), d->out[1]);
    return !b->failed;
}

/* ---- eig: P = V⁻¹ Ȧ V */
/* Where is the largest component of a column, the first of equal ones? There may be none. */
static Val largest_places(Builder *b, Val v) {
    Matrices x = matrices(b, v);
    int64_t rows = x.lead;
    Val size = b_abs(b, v), row = b_iota(b, DT_i32, x.t->rank, x.t->dims, rows);
    Val largest = b_eq(b, size, mat_of_row(b, b_reduce(b, P_reduce_max, size, 1, &rows), x.m));
    Val first = b_reduce(b, P_reduce_min, b_select(b, largest, b_full_like(b, row, INT32_MAX), row), 1, &rows);
    return b_eq(b, row, mat_of_row(b, first, x.m));
}
/* The vectors are fixed up to factors, which LAPACK chooses: of norm 1, the largest component real. C = V (P ∘ gaps)
   plus multiples of the vectors that keep both. */
static Val eig_vectors(Builder *b, Val w, Val v, Val g) {
    Val p = mat_product(b, mat_solve(b, v, g), PLAIN, v, PLAIN);
    Val u = mat_product(b, v, PLAIN, b_mul(b, inverse_gaps(b, differences(b, w)), p), PLAIN);
    if (b->failed) return VAL_FAILED;
    int64_t rows = matrices(b, v).lead;
    Dim m = matrices(b, v).m;
    Val at = largest_places(b, v), zeros = b_zeros_like(b, v);
    Val of_u = b_reduce(b, P_reduce_sum, b_select(b, at, zeros, u), 1, &rows);
    Val of_v = b_reduce(b, P_reduce_sum, b_select(b, at, zeros, v), 1, &rows);
    Val along = b_reduce(b, P_reduce_sum, b_mul(b, b_conj(b, v), u), 1, &rows);
    Val angle = b_imag(b, of_u);
    angle = b_neg(b, b_div(b, angle, b_real(b, of_v)));
    Val c = b_complex(b, b_neg(b, b_real(b, along)), angle);
    return b_add(b, u, b_mul(b, v, mat_of_row(b, c, m)));
}
bool jvp_eig(Jvp *d) {
    Builder *b = d->b;
    const Eqn *e = d->e;
    bool left = param_bool(e, K_compute_left_eigenvectors), right = param_bool(e, K_compute_right_eigenvectors);
    if ((left || right) && !param_bool(e, K_enable_eigvec_derivs))
        return tx_error(d->tx, e->span, "eigenvectors of eig have no derivative without enable_eigvec_derivs=True");
    Vals out = with_params(d, e->in.at[0], 1, (Param[]){p_bool(K_compute_right_eigenvectors, true)}, 2 + left);
    Val w = out.at[0], v = out.at[1 + left];
    if (b->failed) return false;
    Val g = b_convert(b, d->t[0], b_type(b, v)->dtype);
    for (uint32_t i = 0; i < e->out.n; i++) d->out[i] = b_as_declared(b, out.at[i], e->out.at[i]);
    Val p = mat_solve(b, v, g);
    d->dt[0] = b_as_declared(b, row_products(b, p, mat_turned(b, v)), d->out[0]);
    if (left) { /* the vectors of Aᴴ */
        Val conjugates = b_conj(b, w);
        d->dt[1] = b_as_declared(b, eig_vectors(b, conjugates, out.at[1], mat_adjoint(b, g)), d->out[1]);
    }
    if (right) d->dt[1 + left] = b_as_declared(b, eig_vectors(b, w, v, g), d->out[1 + left]);
    return !b->failed;
}

/* ---- svd: A = U S Vᴴ. P = Uᴴ Ȧ V */
typedef struct {
    Val s, u, vh;
} Singular;
/* U with X = Ȧ V of m × n matrices, or V, the adjoint of what is given, with X = Ȧᴴ U of n × m ones. */
typedef struct {
    Val vectors;
    Form form;
    Val x;
    Dim rows, columns;
} Side;
/* What the tangent of U has outside of the space that its columns span: (X - U (Uᴴ X)) / s, if A is higher than wide,
   which the extents may not say before the call. */
static Val outside(Builder *b, Val s, Side k) {
    if (b_failed(b, k.x)) return VAL_FAILED;
    Val inner = mat_product(b, k.vectors, k.form ^ ADJOINT, k.x, PLAIN);
    Val rest = b_sub(b, k.x, mat_product(b, k.vectors, k.form, inner, PLAIN));
    Val factor = b_integer_pow(b, s, -1);
    if (dim_at_most(b_types(b), k.rows, k.columns, true) != 0) {
        Val higher = b_dim(b, DT_i64, k.rows);
        higher = b_gt(b, higher, b_dim(b, DT_i64, k.columns));
        factor = b_select(b, higher, b_zeros_like(b, s), factor);
    }
    Val rows = mat_of_row(b, factor, matrices(b, k.x).m);
    return b->failed ? VAL_FAILED : b_mul(b, rest, b_convert(b, rows, b_type(b, k.x)->dtype));
}
/* The phases of the vectors are free: U has all of it, the imaginary part of P / s on the diagonal, or 0 where s is. */
static Val phases(Builder *b, Val s, Val p) {
    if (b_failed(b, p)) return VAL_FAILED;
    Val zero = b_convert(b, b_eq(b, s, b_zeros_like(b, s)), b_type(b, s)->dtype);
    Val inverse = b_sub(b, b_integer_pow(b, b_add(b, s, zero), -1), zero);
    Val imaginary = b_imag(b, p);
    imaginary = b_mul(b, imaginary, mat_of_row(b, inverse, matrices(b, p).m));
    return b_complex(b, b_zeros_like(b, imaginary), imaginary);
}
static void svd_vectors(Jvp *d, Singular f, Val ua, Matrices a) {
    Builder *b = d->b;
    Types *ts = b_types(b);
    Val g = d->t[0], p = mat_product(b, ua, PLAIN, f.vh, ADJOINT);
    if (b->failed) return;
    Dim k = b_type(b, f.s)->dims[a.lead];
    Dtype type = a.t->dtype;
    Val row = mat_of_row(b, f.s, k), column = mat_of_column(b, f.s, k);
    Val sums = b_add(b, row, column), gaps = inverse_gaps(b, b_mul(b, sums, b_sub(b, row, column)));
    gaps = b_convert(b, gaps, type);
    Val ps = b_mul(b, b_convert(b, row, type), p), sp = b_mul(b, b_convert(b, column, type), p);
    Val in_u = b_mul(b, gaps, b_add(b, ps, mat_adjoint(b, ps)));
    if (dtype_info[type].kind == DK_COMPLEX) in_u = mat_with_diagonal(b, in_u, phases(b, f.s, p));
    Val du = mat_product(b, f.u, PLAIN, in_u, PLAIN);
    Val in_v = b_mul(b, gaps, b_add(b, sp, mat_adjoint(b, sp)));
    Val dv = mat_product(b, f.vh, ADJOINT, in_v, PLAIN);
    if (dim_at_most(ts, a.m, a.n, true) != 1) {
        Val x = mat_product(b, g, PLAIN, f.vh, ADJOINT);
        du = b_add(b, du, outside(b, f.s, (Side){f.u, PLAIN, x, a.m, a.n}));
    }
    if (dim_at_most(ts, a.n, a.m, true) != 1) {
        Val x = mat_product(b, g, ADJOINT, f.u, PLAIN);
        dv = b_add(b, dv, outside(b, f.s, (Side){f.vh, ADJOINT, x, a.n, a.m}));
    }
    d->dt[1] = b_as_declared(b, du, d->out[1]);
    d->dt[2] = b_as_declared(b, mat_adjoint(b, dv), d->out[2]);
}
bool jvp_svd(Jvp *d) {
    Builder *b = d->b;
    const Eqn *e = d->e;
    bool vectors = param_bool(e, K_compute_uv);
    Matrices a = matrices(b, e->in.at[0]);
    if (!all_values(d, dim_min(b_types(b), a.m, a.n))) return false;
    if (vectors && param_bool(e, K_full_matrices) && dim_equal(b_types(b), a.m, a.n, true) != 1)
        return tx_error(d->tx, e->span, "svd with full_matrices=True of a matrix that is not square has no derivative");
    Vals out = with_params(d, e->in.at[0], 2, (Param[]){p_bool(K_compute_uv, true), p_bool(K_full_matrices, false)}, 3);
    Singular f = {out.at[0], out.at[1], out.at[2]};
    for (uint32_t i = 0; i < e->out.n; i++) d->out[i] = b_as_declared(b, out.at[i], e->out.at[i]);
    Val ua = mat_product(b, f.u, ADJOINT, d->t[0], PLAIN);
    d->dt[0] = b_as_declared(b, mat_real(b, row_products(b, ua, mat_conj(b, f.vh))), d->out[0]);
    if (vectors) svd_vectors(d, f, ua, a);
    return !b->failed;
}
