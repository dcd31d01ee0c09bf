/* spsolve: a sparse matrix by rows is factored with partial pivoting, its rows and columns in an order that keeps what
   fills in small. */
#pragma GCC optimize("O3", "cx-limited-range", "no-math-errno")
#include "sparse.h"

/* An element that is as large as this part of the largest is a pivot if it lies on the diagonal. */
#define PIVOT 0.1

#define T f64
#define F(f) f##_f64
#define SIZE(x) __builtin_fabs(x)
#define QUOTIENT(x, y) ((x) / (y))
#define NOT_A_NUMBER __builtin_nan("")
#include "sparse_lu.h"

#define T c128
#define F(f) f##_c128
#define SIZE(x) (__builtin_fabs(creal(x)) + __builtin_fabs(cimag(x)))
#define QUOTIENT(x, y) div_c128(x, y)
#define NOT_A_NUMBER CMPLX(__builtin_nan(""), 0) /* as scipy has it */
#include "sparse_lu.h"
