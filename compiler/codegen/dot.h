/* Matrix products: how dot_general reads its operands, and in which tiles it is computed.

   The sums over the contracted axes form a product A·B for every index of the other loops: rows of
   A, columns of B. The row loop moves A alone; the column loop moves B alone, one element at a
   time, and its neighbours are the lanes. Other loops that do not move B make more rows for it. */
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
    Atom row, column;    /* 0: none, one row or column */
    Atom *outer, *again; /* the other loops: those that move B, and the others */
    uint32_t nouter, nagain;
    Dim rows, columns, points;   /* extents; of all `again` together */
    uint32_t mr, w, sets;        /* a tile: mr × w */
    Dim row_block, column_block; /* of a unit; multiples of mr and w */
    Dim point_block;             /* of the points of `again`, in a unit */
    Buf *pack;                   /* B by columns of w, of each unit: [unit][k][w]; NULL: as it lies */
    Buf *partial;                /* few rows or many terms, large B: sums over blocks of the terms, so that B is
                     read in whole rows: [unit][point][row][column]; NULL: sums stay in registers */
    bool wide_partial;           /* those are wide forms (sums.h) */
    uint32_t cut;                /* without `partial`: how many of the sums are done in blocks, */
    Dim *block;                  /* of so many turns; those of the innermost in elements */
    bool several;                /* surely more than one */
    Buf *wide;                   /* the wide forms of a tile */
    uint32_t k_level;
    int64_t k_block;        /* a block: k_block turns of the sum k_level, all of those within it */
    int64_t stored_columns; /* of a unit, in those two: whole tiles */
    Buf *spill;             /* a tile, where its rows are finished in a loop; NULL: written out */
} Dot;

/* Decides how the operands are read; schedules copies of those that must be copied. */
void dot_plan(Plan *, Body *, Step *);
/* Can an operand be read in place, once what it comes from lies in memory? */
bool dot_reads_in_place(Plan *, Val);
/* The addresses of both operands over the step's loops, for collapsing them. */
void dot_addresses(Plan *, const Step *, Ix address[2]);
/* Units of a scheduled product; blocks that n is cut in. */
Dim dot_units(Plan *, const Dot *);
Dim dot_blocks(Plan *, Dim n, Dim block);
/* Tiles and units, once the step's loops are final. */
void dot_schedule(Plan *, Step *);

#endif
