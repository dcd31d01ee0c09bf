/* Batches of matrices: what rules of linear algebra write. */
#ifndef JAXCC_MATRIX_H
#define JAXCC_MATRIX_H
#include "../build.h"

/* [batch…, m, n] */
typedef struct {
    const ArrayType *t;
    uint32_t lead; /* how many leading axes … */
    Dim batch;     /* … and their product */
    Dim m, n;
} Matrices;
Matrices matrices(Builder *, Val);
/* The type of as many m × n matrices, or vectors of m numbers (rank 1), of this element type. */
Type matrices_type(Builder *, const Matrices *, Dtype, uint32_t rank, Dim m, Dim n);

/* ---- parts */
Val mat_rows(Builder *, Val, Dim lo, Dim hi); /* lo … hi - 1 */
Val mat_columns(Builder *, Val, Dim lo, Dim hi);
/* Zeros but on and below the k-th diagonal below the main one; on and above the k-th above it. NaNs outside go. */
Val mat_lower(Builder *, Val, int64_t k);
Val mat_upper(Builder *, Val, int64_t k);
Val mat_with_diagonal(Builder *, Val, Val other);       /* with the diagonal of another matrix */
Val mat_identity(Builder *, const Matrices *, Dim n);   /* n × n */
Val mat_of_row(Builder *, Val vectors, Dim m);          /* [batch…, n]: m equal rows */
Val mat_of_column(Builder *, Val vectors, Dim n);       /* [batch…, m]: n equal columns */
Val mat_take_rows(Builder *, Val, Val permutations);    /* row p[i] as row i; p: [batch…, m] */
Val mat_take_columns(Builder *, Val, Val permutations); /* column p[j] as column j; p: [batch…, n] */

/* ---- algebra */
Val mat_turned(Builder *, Val);  /* Xᵀ */
Val mat_adjoint(Builder *, Val); /* Xᴴ */
Val mat_conj(Builder *, Val);    /* of real numbers, the numbers */
Val mat_real(Builder *, Val);
typedef enum { PLAIN, TURNED, CONJUGATE, ADJOINT } Form; /* X, Xᵀ, its conjugate, Xᴴ: a bit each */
Val mat_product(Builder *, Val x, Form, Val y, Form);    /* op(X) op(Y) */
/* Solves op(A) X = B or X op(A) = B. */
enum { SOLVE_LEFT = 1, SOLVE_LOWER = 2, SOLVE_TURNED = 4, SOLVE_CONJUGATE = 8, SOLVE_UNIT = 16 };
Val mat_solve_triangular(Builder *, Val a, Val c, unsigned how);
Val mat_solve(Builder *, Val a, Val c); /* A X = B */

#endif
