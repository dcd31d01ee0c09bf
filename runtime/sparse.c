/* spsolve: a sparse matrix, stored by rows, is factored with partial pivoting, in an order of rows and columns that
   keeps fill-in low. */
#pragma GCC optimize("O3", "cx-limited-range", "no-math-errno")
#include "sparse.h"

/* A diagonal element is the pivot if it has at least this fraction of the largest element's size. */
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
#define NOT_A_NUMBER CMPLX(__builtin_nan(""), 0) /* as in scipy */
#include "sparse_lu.h"
