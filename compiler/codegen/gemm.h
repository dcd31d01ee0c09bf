/* Register tiles of matrix products; nothing here knows of the program. */
#ifndef JAXCC_GEMM_H
#define JAXCC_GEMM_H
#include "emit.h"

#define GEMM_UNKNOWN DIM_SYMBOLIC_BASE /* no constant extent */
enum { GEMM_LOOPS = 32, GEMM_TILE = 64, GEMM_LANES = 256 };

/* The loops that are summed over, outermost first, and how far one step goes in each operand, in
   elements. The outermost `cut` of them are done in blocks (sums.h); with none of them all sums
   stay in registers. */
typedef struct {
    Dtype a, b; /* of the elements in memory */
    Dtype acc;  /* of the sums; bool: or of ands */
    uint32_t n;
    Dim known[GEMM_LOOPS]; /* extents; what is not a constant is in count alone */
    V count[GEMM_LOOPS], sa[GEMM_LOOPS], sb[GEMM_LOOPS];
    uint32_t cut;
    Dim known_block[GEMM_LOOPS];
    V block[GEMM_LOOPS];
    V wide;       /* memory of the sums' wide forms: gemm_wide_bytes for a tile */
    bool several; /* there is more than one block, whatever the extents that are not known */
} Contraction;

/* acc[r] = Σ A[r][k] · B[k][0 … w): lanes along the columns, which are neighbours in B. `a[r]` is
   the address of a row, `b` that of the first column; lanes off the mask (ptr NULL: none are) are
   not read. `sets`: how many partial sums. */
void gemm_outer(Emit *, const Contraction *, const V *a, uint32_t rows, V b, uint32_t w, V mask, uint32_t sets, V *acc);
/* acc[r], of `columns` lanes (a power of two ≤ w): Σ A[r][k] · B[column][k]: w lanes along the
   innermost loop, whose elements are neighbours in both operands. */
void gemm_inner(Emit *, const Contraction *, const V *a, uint32_t rows, const V *b, uint32_t columns, uint32_t w,
                uint32_t sets, V *acc);

/* What the wide forms of so many accumulators take; 0: they have none. */
uint32_t gemm_wide_bytes(Dtype acc, uint32_t lanes);
/* Adds registers to the wide forms that lie at p, f64s, and those to the registers. */
void gemm_widen(Emit *, Dtype acc, V p, V x);
V gemm_narrow(Emit *, Dtype acc, V p, V x);

/* The sum of products: x·y + sum in the type of the accumulator. */
V gemm_fma(Emit *, Dtype acc, V x, V y, V sum);
V gemm_add(Emit *, Dtype acc, V x, V y);
V gemm_zero(Emit *, Dtype acc, uint32_t w);
/* A register of element type `from` as one of the accumulator's; of integers below 8 bits the high
 * bits of sums do not count. */
V gemm_convert(Emit *, Dtype from, Dtype acc, V);

#endif
