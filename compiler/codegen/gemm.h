/* Register tiles of matrix products; nothing here knows of the program. */
#ifndef JAXCC_GEMM_H
#define JAXCC_GEMM_H
#include "emit.h"

#define GEMM_UNKNOWN DIM_SYMBOLIC_BASE /* no constant extent */
enum { GEMM_LOOPS = 32, GEMM_TILE = 64, GEMM_LANES = 256 };

/* The loops that are summed over, outermost first, and how far one step goes in each operand, in
 * elements. */
typedef struct {
    Dtype a, b; /* of the elements in memory */
    Dtype acc;  /* of the sums; bool: or of ands */
    uint32_t n;
    Dim known[GEMM_LOOPS]; /* extents; what is not a constant is in count alone */
    V count[GEMM_LOOPS], sa[GEMM_LOOPS], sb[GEMM_LOOPS];
} Contraction;

/* acc[r] = Σ A[r][k] · B[k][0 … w): lanes along the columns, which are neighbours in B. `a[r]` is
   the address of a row, `b` that of the first column; lanes off the mask (ptr NULL: none are) are
   not read. `sets`: how many partial sums. */
void gemm_outer(Emit *, const Contraction *, const V *a, uint32_t rows, V b, uint32_t w, V mask,
                uint32_t sets, V *acc);
/* acc[r], of `columns` lanes (a power of two ≤ w): Σ A[r][k] · B[column][k]: w lanes along the
   innermost loop, whose elements are neighbours in both operands. */
void gemm_inner(Emit *, const Contraction *, const V *a, uint32_t rows, const V *b,
                uint32_t columns, uint32_t w, uint32_t sets, V *acc);

/* The sum of products: x·y + sum in the type of the accumulator. */
V gemm_fma(Emit *, Dtype acc, V x, V y, V sum);
V gemm_add(Emit *, Dtype acc, V x, V y);
V gemm_zero(Emit *, Dtype acc, uint32_t w);
/* A register of element type `from` as one of the accumulator's; of integers below 8 bits the high
 * bits of sums do not count. */
V gemm_convert(Emit *, Dtype from, Dtype acc, V);

#endif
