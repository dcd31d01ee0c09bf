/* Register tiles of matrix products, independent of the program. */
#ifndef JAXCC_GEMM_H
#define JAXCC_GEMM_H
#include "../emit/emit.h"

#define GEMM_UNKNOWN DIM_SYMBOLIC_BASE /* no constant extent */
/* At most: loops that are summed over; rows, or vectors, of a tile; registers of all sets of partial sums. */
enum { GEMM_LOOPS = 32, GEMM_TILE = 64, GEMM_SUMS = 4 * GEMM_TILE };

/* The loops over the terms, outermost first, and the strides of both operands, in elements. The outermost `cut` of them
   run in blocks (sums.h); with none, all sums stay in registers. */
typedef struct {
    Dtype a, b;       /* of the elements in memory */
    Dtype acc;        /* of the sums; bool: and for products, or for sums */
    bool halves;      /* each element is two signed numbers of 16 bits */
    bool words;       /* each element is four bytes, unsigned ones of A and signed ones of B … */
    bool swapped;     /* … or the other way round */
    uint32_t at_once; /* terms in a turn of the innermost loop, or as many as there are sets */
    bool whole_turns; /* their number is a multiple of that */
    uint32_t n;
    Dim known[GEMM_LOOPS]; /* constant extents; any others are only in `count` */
    V count[GEMM_LOOPS], sa[GEMM_LOOPS], sb[GEMM_LOOPS];
    uint32_t cut;
    Dim known_block[GEMM_LOOPS];
    V block[GEMM_LOOPS];
    V wide;       /* memory for the wide forms of the sums: wide_bytes for a tile */
    bool several; /* there is more than one block for all values of unknown extents */
} Contraction;

/* One register tile. */
typedef struct {
    const V *a, *b; /* addresses of the rows of A; of the columns of B, gemm_outer: of the first one */
    uint32_t rows, columns;
    uint32_t w, sets; /* lanes; the number of partial sums */
    /* gemm_outer's alone: */
    V mask; /* lanes outside it are not read; NULL: no mask */
    V area; /* memory for the sums, if one loop of whole turns is to be a call; else NULL */
    V row;  /* then: the distance of A's rows */
} GemmTile;
/* acc[r] = Σ A[r][k] · B[k][0 … w): lanes run along the columns, which are contiguous in B. */
void gemm_outer(Emit *, const Contraction *, const GemmTile *, V *acc);
/* acc[r], of `columns` lanes (a power of two ≤ w): Σ A[r][k] · B[column][k]: w lanes run along the innermost loop,
   whose elements are contiguous in both operands. */
void gemm_inner(Emit *, const Contraction *, const GemmTile *, V *acc);

/* The bytes at p, of f64s, become 0. */
void gemm_clear(Emit *, V p, int64_t bytes);
void gemm_clear_bytes(Emit *, V p, V bytes); /* on the CPU */
/* gemm_widen adds registers to the wide forms in memory at p, which are f64s; gemm_narrow returns x plus those. */
void gemm_widen(Emit *, Dtype acc, V p, V x);
V gemm_narrow(Emit *, Dtype acc, V p, V x);

/* The sum of products: x·y + sum in the type of the accumulator. */
V gemm_fma(Emit *, Dtype acc, V x, V y, V sum);
V gemm_add(Emit *, Dtype acc, V x, V y);
V gemm_zero(Emit *, Dtype acc, uint32_t w);
/* A register of element type `from` converted to the type of the accumulator; the high bits of sums of integers below 8
   bits do not matter. */
V gemm_convert(Emit *, Dtype from, Dtype acc, V);

#endif
