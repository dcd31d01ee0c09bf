/* Matrix products: how dot_general reads its operands, and in which tiles it is computed.

   The sums over the contracted axes form a product A·B for every index of the other loops: rows of
   A, columns of B. The row loop moves A alone; the column loop moves B alone, one element at a
   time, and its neighbours are the lanes. */
#ifndef JAXCC_DOT_H
#define JAXCC_DOT_H
#include "emit.h"
#include "plan.h"

typedef struct {
    Buf *buf;
    Dtype dtype;
    Ix address; /* over the loops of the result and of the contraction */
} DotOperand;
typedef struct {
    Dim extent, a, b; /* a, b: how far one step goes in each operand */
} DotSum;
typedef struct Dot {
    Dtype acc;
    DotOperand a, b;
    bool inner;      /* lanes along the contraction: both operands are contiguous there */
    bool packed;     /* B must be packed: it is not of the accumulator's type, or */
    bool transposed; /* it is contiguous along the innermost loop of the contraction, not along its
                        columns */
    struct {
        DotSum *at;
        uint32_t n;
    } sums;   /* outermost first */
    Dim k;    /* all terms of one sum */
    Ix *axes; /* the result's loops when the addresses were made, by axis of the step's domain */
    /* settled by dot_schedule */
    Atom row, column; /* 0: none, one row or column */
    Atom *outer;
    uint32_t nouter;
    Dim rows, columns;           /* extents */
    uint32_t mr, w, sets;        /* a tile: mr × w */
    Dim row_block, column_block; /* of a unit; multiples of mr and w */
    Buf *pack;    /* B by columns of w: [outer][column block][k][w]; NULL: as it lies */
    Buf *partial; /* few rows, large B: sums over blocks of k_block terms, so that B is read in
                     whole rows: [outer][column block][row][column]; NULL: sums stay in registers */
    int64_t k_block;
    int64_t stored_columns; /* of a unit, in those two: whole tiles */
    Buf *spill;             /* a tile, where its rows are finished in a loop; NULL: written out */
} Dot;

/* Decides how the operands are read; schedules copies of those that must be copied. */
void dot_plan(Plan *, Body *, Step *);
/* Can an operand be read in place, once what it comes from lies in memory? */
bool dot_reads_in_place(Plan *, Val);
/* The addresses of both operands over the step's loops, for collapsing them. */
void dot_addresses(Plan *, const Step *, Ix address[2]);
/* Tiles and units, once the step's loops are final. */
void dot_schedule(Plan *, Step *);

#endif
