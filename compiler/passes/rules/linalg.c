/* Linear algebra: calls of runtime/linalg.c and runtime/lapack.c, with what JAX does around them. */
#include "../../typecheck/rule.h"
#include "matrix.h"

static int64_t kind_of(Dtype d) { return d == DT_f32 ? 0 : d == DT_f64 ? 1 : d == DT_c64 ? 2 : d == DT_c128 ? 3 : -1; }
/* The call `name`, whose first size is the batch: to types of the results of `e`. If the name ends in _, that of the
   type follows: f32 …; else it is the second size. */
static bool call(Builder *b, const Eqn *e, const char *name, Vals in, Dims sizes, uint32_t nout, const Type *types,
                 Val *out) {
    static const char *const suffix[] = {"f32", "f64", "c64", "c128"};
    enum { MOST_SIZES = 12 };
    Dim all[MOST_SIZES];
    Dtype d = b_type(b, in.at[0])->dtype;
    int64_t kind = kind_of(d);
    if (kind < 0)
        return diag(b->cx->diags, e->span, "%s of %s is not supported", prim_name[e->prim], dtype_info[d].name);
    bool by_type = name[strlen(name) - 1] == '_';
    assert(sizes.n && sizes.n < MOST_SIZES);
    all[0] = sizes.at[0], all[1] = kind;
    memcpy(all + (by_type ? 1 : 2), sizes.at + 1, (sizes.n - 1) * sizeof *sizes.at);
    Str full = str_format(b->cx->arena, "%s%s", name, by_type ? suffix[kind] : "");
    Vals v = b_runtime(b, full.at, sizes.n + !by_type, all, in.n, in.at, nout, types);
    if (nout) memcpy(out, v.at, nout * sizeof *out);
    return true;
}
static const Type *result_types(Builder *b, const Eqn *e) {
    Type *t = arena_new(b->cx->arena, Type, e->out.n + 1);
    for (uint32_t i = 0; i < e->out.n; i++) t[i] = type_plain(b_types(b), val_type(b->cx, e->out.at[i]));
    return t;
}

/* ---- factors */
bool expand_cholesky(Builder *b, const Eqn *e, Val *out) {
    Matrices x = matrices(b, e->in.at[0]);
    return call(b, e, "cholesky_", (Vals){e->in.at, 1}, (Dims){(Dim[]){x.batch, x.n}, 2}, 1, result_types(b, e), out);
}
bool expand_cholesky_update(Builder *b, const Eqn *e, Val *out) {
    Matrices x = matrices(b, e->in.at[0]);
    if (kind_of(x.t->dtype) > 1)
        return diag(b->cx->diags, e->span, "cholesky_update of %s is not supported", dtype_info[x.t->dtype].name);
    return call(b, e, "cholesky_update_", (Vals){e->in.at, 2}, (Dims){(Dim[]){x.batch, x.n}, 2}, 1, result_types(b, e),
                out);
}
static Val permutation(Builder *b, Val pivots, Dim size) {
    const ArrayType *t = b_type(b, pivots);
    Dim dims[MAX_RANK], batch = 1;
    memcpy(dims, t->dims, t->rank * sizeof *dims);
    for (uint32_t i = 0; i + 1 < t->rank; i++) batch = dim_mul(b_types(b), batch, dims[i]);
    Dim k = dims[t->rank - 1];
    dims[t->rank - 1] = size;
    Type type = type_of(b_types(b), DT_i32, t->rank, dims);
    return b_runtime(b, "pivots_to_permutation", 3, (Dim[]){batch, k, size}, 1, &pivots, 1, &type).at[0];
}
bool expand_lu(Builder *b, const Eqn *e, Val *out) {
    Matrices x = matrices(b, e->in.at[0]);
    if (!call(b, e, "lu_", (Vals){e->in.at, 1}, (Dims){(Dim[]){x.batch, x.m, x.n}, 3}, 2, result_types(b, e), out))
        return false;
    if (e->out.n == 3 && !b->failed) out[2] = permutation(b, out[1], x.m);
    return true;
}
bool expand_lu_pivots_to_permutation(Builder *b, const Eqn *e, Val *out) {
    out[0] = permutation(b, e->in.at[0], param_number(e, K_permutation_size));
    return true;
}
bool expand_geqrf(Builder *b, const Eqn *e, Val *out) {
    Matrices x = matrices(b, e->in.at[0]);
    return call(b, e, "geqrf_", (Vals){e->in.at, 1}, (Dims){(Dim[]){x.batch, x.m, x.n}, 3}, 2, result_types(b, e), out);
}
bool expand_geqp3(Builder *b, const Eqn *e, Val *out) {
    Matrices x = matrices(b, e->in.at[0]);
    return call(b, e, "geqp3", (Vals){e->in.at, 2}, (Dims){(Dim[]){x.batch, x.m, x.n}, 3}, 3, result_types(b, e), out);
}
bool expand_householder_product(Builder *b, const Eqn *e, Val *out) {
    Matrices x = matrices(b, e->in.at[0]);
    const ArrayType *taus = b_type(b, e->in.at[1]);
    Dim sizes[4] = {x.batch, x.m, x.n, taus->dims[taus->rank - 1]};
    return call(b, e, "orgqr_", (Vals){e->in.at, 2}, (Dims){sizes, 4}, 1, result_types(b, e), out);
}
bool expand_ormqr(Builder *b, const Eqn *e, Val *out) {
    Matrices x = matrices(b, e->in.at[0]), c = matrices(b, e->in.at[2]);
    const ArrayType *taus = b_type(b, e->in.at[1]);
    bool left = param_bool(e, K_left);
    Dim sizes[7] = {x.batch, x.m, x.n, taus->dims[taus->rank - 1], left ? c.n : c.m, left, param_bool(e, K_transpose)};
    return call(b, e, "ormqr_", (Vals){e->in.at, 3}, (Dims){sizes, 7}, 1, result_types(b, e), out);
}
bool expand_qr(Builder *b, const Eqn *e, Val *out) {
    Val a = e->in.at[0], r, taus;
    Matrices x = matrices(b, a);
    bool pivoting = param_bool(e, K_pivoting), full = param_bool(e, K_full_matrices);
    const ArrayType *q = val_array(b->cx, e->out.at[0]);
    if (x.m == 0 || x.n == 0) { /* nothing to do: Q is the identity */
        Dim dims[2] = {x.m, q->dims[q->rank - 1]};
        Val one = b_eq(b, b_iota(b, DT_i32, 2, dims, 0), b_iota(b, DT_i32, 2, dims, 1));
        out[0] = b_broadcast(b, b_convert(b, one, x.t->dtype), q->rank, q->dims, (int64_t[]){x.lead, x.lead + 1});
        for (uint32_t i = 1; i < e->out.n; i++) {
            const ArrayType *t = val_array(b->cx, e->out.at[i]);
            out[i] = b_full(b, b_number(b, t->dtype, 0), t->rank, t->dims);
        }
        return true;
    }
    if (pivoting) {
        Val free = b_full(b, b_int(b, DT_i32, 0), x.lead + 1,
                          type_at(b_types(b), matrices_type(b, &x, DT_i32, 1, x.n, 0))->dims);
        Vals v = build_many(b, P_geqp3, 2, (Val[]){a, free}, 1, (Param[]){p_none(K_use_magma)}, 3, NULL);
        r = v.at[0], taus = v.at[2];
        if (!b->failed) out[2] = b_sub(b, v.at[1], b_full_like(b, v.at[1], 1));
    } else {
        Vals v = build_many(b, P_geqrf, 1, &a, 0, NULL, 2, NULL);
        r = v.at[0], taus = v.at[1];
    }
    Dim k = full ? x.m : dim_min(b_types(b), x.m, x.n), config[3 * MAX_RANK] = {0};
    Val q_of = r;
    if (full) { /* as many columns as rows */
        config[3 * (x.lead + 1) + 1] = dim_max(b_types(b), dim_sub(b_types(b), x.m, x.n), 0);
        q_of = b_pad(b, r, b_number(b, x.t->dtype, 0), config);
    }
    out[0] = b2(b, P_householder_product, mat_columns(b, q_of, 0, k), taus);
    out[1] = mat_upper(b, mat_rows(b, r, 0, k), 0);
    return true;
}

/* ---- solves */
bool expand_triangular_solve(Builder *b, const Eqn *e, Val *out) {
    Dtype narrow = b_type(b, e->in.at[0])->dtype, wide = narrow == DT_f16 || narrow == DT_bf16 ? DT_f32 : narrow;
    Val a = b_convert(b, e->in.at[0], wide), c = b_convert(b, e->in.at[1], wide);
    Matrices x = matrices(b, a);
    bool left = param_bool(e, K_left_side), lower = param_bool(e, K_lower), turned = param_bool(e, K_transpose_a);
    if (param_bool(e, K_conjugate_a) && kind_of(x.t->dtype) > 1) a = b_conj(b, a);
    if (!left) c = mat_turned(b, c), turned = !turned; /* X A = B: Aᵀ Xᵀ = Bᵀ */
    if (b->failed) return false;
    Matrices rhs = matrices(b, c);
    Type type = val_type(b->cx, c);
    Dim sizes[6] = {x.batch, x.n, rhs.n, lower, turned, param_bool(e, K_unit_diagonal)};
    if (!call(b, e, "triangular_", (Vals){(Val[]){a, c}, 2}, (Dims){sizes, 6}, 1, &type, out)) return false;
    out[0] = b_convert(b, left ? out[0] : mat_turned(b, out[0]), narrow);
    return true;
}
bool expand_tridiagonal_solve(Builder *b, const Eqn *e, Val *out) {
    Matrices x = matrices(b, e->in.at[3]);
    Dim sizes[4] = {x.batch, x.m, x.n, param_bool(e, K_perturb_singular)};
    return call(b, e, "gtsv_", (Vals){e->in.at, 4}, (Dims){sizes, 4}, 1, result_types(b, e), out);
}
bool expand_symmetric_product(Builder *b, const Eqn *e, Val *out) {
    Matrices x = matrices(b, e->in.at[0]);
    int64_t axes[MAX_RANK], last = x.lead + 1;
    for (uint32_t i = 0; i < MAX_RANK; i++) axes[i] = i;
    double alpha, beta;
    Ints batch = {axes, x.lead}, sum = {&last, 1};
    Val y =
        b_dot_general(b, e->in.at[0], e->in.at[0], (Contraction){.contracted = {sum, sum}, .batch = {batch, batch}});
    if (!want_real(b->cx, e, K_alpha, 1, &alpha) || !want_real(b->cx, e, K_beta, 0, &beta)) return false;
    y = b_mul(b, b_full_like(b, y, alpha), y);
    out[0] = b_add(b, y, b_mul(b, b_full_like(b, e->in.at[1], beta), e->in.at[1]));
    return true;
}
/* In double precision for all types; a singular matrix gives NaN. The runtime chooses its own order of elimination, and
   `reorder` is ignored, as by scipy, which JAX calls. */
bool expand_spsolve(Builder *b, const Eqn *e, Val *out) {
    const ArrayType *t = b_type(b, e->in.at[3]);
    Dtype wide = dtype_info[t->dtype].kind == DK_COMPLEX ? DT_c128 : DT_f64;
    Type type = type_of(b_types(b), wide, 1, t->dims);
    Val in[4] = {b_convert(b, e->in.at[0], wide), b_convert(b, e->in.at[1], DT_i64), b_convert(b, e->in.at[2], DT_i64),
                 b_convert(b, e->in.at[3], wide)};
    Dim sizes[2] = {b_type(b, e->in.at[0])->dims[0], t->dims[0]};
    out[0] = b_convert(
        b, b_runtime(b, wide == DT_f64 ? "spsolve_f64" : "spsolve_c128", 2, sizes, 4, in, 1, &type).at[0], t->dtype);
    return true;
}

/* ---- values and vectors: LAPACK's */
/* On the CPU JAX itself supports no subset but all values. */
static bool whole(Builder *b, const Eqn *e, Dim n) {
    const Param *p = param_find(e, K_subset_by_index);
    if (!p || p->value.kind == V_NONE) return true;
    const Value *v = &p->value;
    return (v->list.at[0].i == 0 && v->list.at[1].i == n) ||
           diag(b->cx->diags, e->span, "%s: subset_by_index is not supported", prim_name[e->prim]);
}
bool expand_eigh(Builder *b, const Eqn *e, Val *out) {
    Matrices x = matrices(b, e->in.at[0]);
    if (!whole(b, e, x.n)) return false;
    return call(b, e, "eigh", (Vals){e->in.at, 1}, (Dims){(Dim[]){x.batch, x.n, param_bool(e, K_lower)}, 3}, 2,
                result_types(b, e), out);
}
bool expand_eig(Builder *b, const Eqn *e, Val *out) {
    Matrices x = matrices(b, e->in.at[0]);
    Dim sizes[4] = {x.batch, x.n, param_bool(e, K_compute_left_eigenvectors),
                    param_bool(e, K_compute_right_eigenvectors)};
    return call(b, e, "eig", (Vals){e->in.at, 1}, (Dims){sizes, 4}, e->out.n, result_types(b, e), out);
}
/* No values; requested vectors are the identity. */
static void empty_svd(Builder *b, const Eqn *e, Val *out) {
    for (uint32_t i = 0; i < e->out.n; i++) {
        const ArrayType *t = val_array(b->cx, e->out.at[i]);
        uint32_t lead = t->rank - 2;
        if (i == 0) {
            out[0] = b_full(b, b_number(b, t->dtype, 0), t->rank, t->dims);
            continue;
        }
        Val one = b_eq(b, b_iota(b, DT_i32, 2, t->dims + lead, 0), b_iota(b, DT_i32, 2, t->dims + lead, 1));
        out[i] = b_broadcast(b, b_convert(b, one, t->dtype), t->rank, t->dims, (int64_t[]){lead, lead + 1});
    }
}
bool expand_svd(Builder *b, const Eqn *e, Val *out) {
    Matrices x = matrices(b, e->in.at[0]);
    if (!whole(b, e, dim_min(b_types(b), x.m, x.n))) return false;
    if (x.m == 0 || x.n == 0) return empty_svd(b, e, out), true;
    int64_t vectors = !param_bool(e, K_compute_uv) ? 0 : param_bool(e, K_full_matrices) ? 2 : 1;
    return call(b, e, "svd", (Vals){e->in.at, 1}, (Dims){(Dim[]){x.batch, x.m, x.n, vectors}, 4}, e->out.n,
                result_types(b, e), out);
}
bool expand_schur(Builder *b, const Eqn *e, Val *out) {
    Matrices x = matrices(b, e->in.at[0]);
    if (param_bool(e, K_sort_eig_vals))
        return diag(b->cx->diags, e->span, "schur: sorted eigenvalues are not supported");
    return call(b, e, "schur", (Vals){e->in.at, 1}, (Dims){(Dim[]){x.batch, x.n, e->out.n > 1}, 3}, e->out.n,
                result_types(b, e), out);
}
bool expand_hessenberg(Builder *b, const Eqn *e, Val *out) {
    Matrices x = matrices(b, e->in.at[0]);
    return call(b, e, "hessenberg", (Vals){e->in.at, 1}, (Dims){(Dim[]){x.batch, x.n}, 2}, 2, result_types(b, e), out);
}
bool expand_tridiagonal(Builder *b, const Eqn *e, Val *out) {
    Matrices x = matrices(b, e->in.at[0]);
    return call(b, e, "tridiagonal", (Vals){e->in.at, 1}, (Dims){(Dim[]){x.batch, x.n, param_bool(e, K_lower)}, 3}, 4,
                result_types(b, e), out);
}
