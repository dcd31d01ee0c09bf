/* Derivatives of triangular and orthogonal factors. Each follows from the product that the factors are: a part of an
   equation's unknowns is strictly lower, the other one upper or antisymmetric, so that triangles separate them. */
#include "matrix.h"
#include "../transform/transform.h"

/* ---- cholesky: A = L Lᴴ. L⁻¹ Ȧ L⁻ᴴ = L⁻¹ L̇ + its adjoint (I. Murray, Differentiation of the Cholesky decomposition,
   arXiv:1602.07527) */
bool jvp_cholesky(Jvp *d) {
    Builder *b = d->b;
    Val l = mat_lower(b, jvp_result(d, 0), 0);
    Val x = mat_solve_triangular(b, l, d->t[0], SOLVE_LOWER | SOLVE_TURNED | SOLVE_CONJUGATE);
    x = mat_solve_triangular(b, l, x, SOLVE_LEFT | SOLVE_LOWER);
    if (b->failed) return false;
    Val ones = b_full_like(b, x, 1), factor = mat_with_diagonal(b, ones, b_full_like(b, x, 0.5));
    x = mat_lower(b, b_mul(b, x, factor), 0);
    d->out[0] = l;
    d->dt[0] = b_as_declared(b, mat_product(b, l, PLAIN, x, PLAIN), l);
    return !b->failed;
}

/* ---- lu: P A = L U, of k = min(m, n) columns of L and rows of U

       A₁₁ A₁₂     L₁                   X = L₁⁻¹ Ȧ₁₁ U₁⁻¹: its strictly lower triangle S belongs to L̇₁ = L₁ S,
       A₂₁      =  L₂ · U₁ U₂,          the rest T to U̇₁ = T U₁

   One of m - k, n - k is 0. (F. R. de Hoog, R. S. Anderssen and M. A. Lukas, Differentiation of matrix functionals
   using triangular factorization, Math. Comp. 80, 2011.) */
static Val lu_tangent(Builder *b, Val lu, Val g) {
    if (b_failed(b, lu) || b_failed(b, g)) return VAL_FAILED;
    Matrices a = matrices(b, g);
    Types *ts = b_types(b);
    Dim k = dim_min(ts, a.m, a.n);
    bool tall = dim_at_most(ts, a.m, a.n, true) != 1, wide = dim_at_most(ts, a.n, a.m, true) != 1;
    Val both = mat_columns(b, mat_rows(b, lu, 0, k), 0, k);
    Val top = mat_solve_triangular(b, both, mat_rows(b, g, 0, k), SOLVE_LEFT | SOLVE_LOWER | SOLVE_UNIT);
    Val left = mat_columns(b, top, 0, k); /* L₁⁻¹ Ȧ₁₁, below it Ȧ₂₁ */
    if (tall) left = b_concatenate(b, 2, (Val[]){left, mat_columns(b, mat_rows(b, g, k, a.m), 0, k)}, a.lead);
    left = mat_solve_triangular(b, both, left, 0);
    Val x = mat_rows(b, left, 0, k), s = mat_lower(b, x, 1), t = mat_upper(b, x, 0);
    Val of_l = b_add(b, s, mat_product(b, mat_lower(b, both, 1), PLAIN, s, PLAIN));
    Val out = b_add(b, of_l, mat_product(b, t, PLAIN, mat_upper(b, both, 0), PLAIN));
    if (wide) { /* U̇₂ = L₁⁻¹ Ȧ₁₂ - S U₂ */
        Val u2 = mat_columns(b, mat_rows(b, lu, 0, k), k, a.n);
        Val g2 = mat_columns(b, top, k, a.n);
        g2 = b_sub(b, g2, mat_product(b, s, PLAIN, u2, PLAIN));
        out = b_concatenate(b, 2, (Val[]){out, g2}, a.lead + 1);
    }
    if (tall) { /* L̇₂ = Ȧ₂₁ U₁⁻¹ - L₂ T */
        Val l2 = mat_columns(b, mat_rows(b, lu, k, a.m), 0, k);
        Val low = mat_rows(b, left, k, a.m);
        low = b_sub(b, low, mat_product(b, l2, PLAIN, t, PLAIN));
        if (wide) { /* the extents say that one of them is empty: so is this corner */
            Type corner = matrices_type(b, &a, a.t->dtype, 2, dim_sub(ts, a.m, k), dim_sub(ts, a.n, k));
            const ArrayType *c = type_at(ts, corner);
            Val zeros = b_full(b, b_number(b, c->dtype, 0), c->rank, c->dims);
            low = b_concatenate(b, 2, (Val[]){low, zeros}, a.lead + 1);
        }
        out = b_concatenate(b, 2, (Val[]){out, low}, a.lead);
    }
    return out;
}
bool jvp_lu(Jvp *d) {
    Builder *b = d->b;
    Vals out = {d->out, d->e->out.n};
    if (out.n == 2) { /* without the permutation */
        out = build_many(b, P_lu, 1, d->e->in.at, 0, NULL, 3, NULL);
        memcpy(d->out, out.at, 2 * sizeof *out.at);
    } else {
        jvp_result(d, 0);
    }
    Val t = lu_tangent(b, out.at[0], mat_take_rows(b, d->t[0], out.at[2]));
    d->dt[0] = b_as_declared(b, t, d->out[0]);
    return !b->failed;
}

/* ---- qr: A = Q R, of k = min(m, n) columns and rows, or all m. With C = Qᴴ Ȧ R⁻¹ of the first k columns, Qᴴ Q̇ is
   antihermitian and R being real on its diagonal stays so: W = Ṙ R⁻¹ is the upper triangle of C, its diagonal real,
   plus the adjoint of the strictly lower one (J. Townsend, Differentiating the QR decomposition, 2018). */
typedef struct {
    Val q, r;
} Factors;
static Factors thin_tangents(Builder *b, Factors f, Val g) {
    Val x = mat_solve_triangular(b, f.r, g, 0);
    Val c = mat_product(b, f.q, ADJOINT, x, PLAIN);
    Val w = mat_adjoint(b, mat_lower(b, c, 1));
    w = b_add(b, mat_upper(b, c, 0), w);
    if (b->failed) return (Factors){VAL_FAILED, VAL_FAILED};
    Val real = b_convert(b, mat_real(b, w), b_type(b, c)->dtype);
    if (real != w) w = mat_with_diagonal(b, w, real);
    Val dq = b_sub(b, x, mat_product(b, f.q, PLAIN, w, PLAIN));
    return (Factors){dq, mat_product(b, w, PLAIN, f.r, PLAIN)};
}
/* The tangent of the columns P of Q after its first k, N, a part that rotations of them do not reach: with N above and
   below row k, Z = N₂ (N₁ - I)⁻¹ and Ṗ = Ṅ Zᴴ - (N + P Z) (Ṅ₂ - Z Ṅ₁)ᴴ (arXiv:2409.13374, equations 32 and 33). */
static Val rest_tangent(Builder *b, Val q, Val t, Dim k) {
    if (b_failed(b, q) || b_failed(b, t)) return VAL_FAILED;
    Matrices all = matrices(b, q);
    Val n = mat_columns(b, q, 0, k), p = mat_columns(b, q, k, all.n);
    Val n1 = mat_rows(b, n, 0, k);
    n1 = mat_adjoint(b, b_sub(b, n1, mat_identity(b, &all, k)));
    Val zh = mat_solve(b, n1, mat_adjoint(b, mat_rows(b, n, k, all.m)));
    Val turn = mat_product(b, zh, ADJOINT, mat_rows(b, t, 0, k), PLAIN);
    turn = b_sub(b, mat_rows(b, t, k, all.m), turn);
    Val base = b_add(b, n, mat_product(b, p, PLAIN, zh, ADJOINT));
    base = mat_product(b, base, PLAIN, turn, ADJOINT);
    return b_sub(b, mat_product(b, t, PLAIN, zh, PLAIN), base);
}
/* Qᴴ A's other columns: Ṙ₂ = Q̇ᴴ A₂ + Qᴴ Ȧ₂. */
static Val wide_tangent(Builder *b, Factors f, Factors t, Val a2, Val g2) {
    Val by_q = mat_product(b, t.q, ADJOINT, a2, PLAIN);
    return b_add(b, by_q, mat_product(b, f.q, ADJOINT, g2, PLAIN));
}
bool jvp_qr(Jvp *d) {
    Builder *b = d->b;
    Types *ts = b_types(b);
    Val q = jvp_result(d, 0), r = jvp_result(d, 1), g = d->t[0], a = d->e->in.at[0];
    Matrices x = matrices(b, a);
    Dim k = dim_min(ts, x.m, x.n);
    if (param_bool(d->e, K_pivoting)) g = mat_take_columns(b, g, d->out[2]);
    bool wide = dim_at_most(ts, x.n, x.m, true) != 1;
    bool more = param_bool(d->e, K_full_matrices) && dim_at_most(ts, x.m, x.n, true) != 1;
    Factors f = {.q = mat_columns(b, q, 0, k)};
    f.r = mat_columns(b, mat_rows(b, r, 0, k), 0, k);
    Factors t = thin_tangents(b, f, mat_columns(b, g, 0, k));
    Val dr = t.r, dq = t.q;
    if (wide) {
        /* JAX 0.10.2 takes the last columns of `a` as they were before pivoting: its tangents are wrong here. */
        if (param_bool(d->e, K_pivoting)) a = mat_take_columns(b, a, d->out[2]);
        Val a2 = mat_columns(b, a, k, x.n), g2 = mat_columns(b, g, k, x.n);
        dr = b_concatenate(b, 2, (Val[]){dr, wide_tangent(b, f, t, a2, g2)}, x.lead + 1);
    }
    if (more) {
        dq = b_concatenate(b, 2, (Val[]){dq, rest_tangent(b, q, t.q, k)}, x.lead + 1);
        Dim below[3 * MAX_RANK] = {0};
        below[3 * x.lead + 1] = dim_sub(ts, x.m, k);
        dr = b_pad(b, dr, b_number(b, x.t->dtype, 0), below);
    }
    d->dt[0] = b_as_declared(b, dq, q);
    d->dt[1] = b_as_declared(b, dr, r);
    return !b->failed;
}
