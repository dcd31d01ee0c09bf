/* Matrix products: how dot_general reads its operands, and the tiles that compute it.

   The sums over the contracted axes form a product A·B for every index of the other loops: rows of A, columns of B. The
   row loop moves only in A; the column loop moves only in B, by one element, and vectors run along it. Other loops that
   do not move in B act as more rows. */
#ifndef JAXCC_DOT_H
#define JAXCC_DOT_H
#include "plan.h"

typedef struct {
    Buf *buf;
    Dtype dtype;
    Ix address; /* over the loops of the result and of the contraction */
} DotOperand;
typedef struct {
    Dim extent, a, b; /* a, b: the strides in each operand */
} DotSum;
typedef struct Dot {
    Dtype acc;
    DotOperand a, b;
    bool halves;     /* of two numbers of 16 bits are the operands */
    bool words;      /* of four bytes each are the operands: unsigned ones of the left, signed ones of the right */
    bool swapped;    /* A is the right operand */
    bool inner;      /* lanes run along the contraction, where both operands are contiguous */
    bool packed;     /* B must be packed: its type is not the accumulator's, or it is */
    bool transposed; /* contiguous along the innermost loop of the contraction, not along its
                        columns */
    struct {
        DotSum *at;
        uint32_t n;
    } sums;   /* outermost first */
    Dim k;    /* all terms of one sum */
    Ix *axes; /* the result's loops when the addresses were made, by axis of the step's domain */
    /* set by dot_schedule */
    Atom row, column;    /* 0: none, one row or column */
    Atom *outer, *again; /* the other loops: those that move in B, and the rest */
    uint32_t nouter, nagain;
    Dim rows, columns, points;   /* extents; of all `again` together */
    uint32_t lanes;              /* sums in a vector register */
    uint32_t mr, w, sets;        /* a tile: mr × w */
    Dim row_block, column_block; /* of a unit; multiples of mr and w */
    Dim point_block;             /* of the points of `again`, in a unit */
    Buf *pack;      /* B packed by w columns, for each unit: [unit][packed_terms][w]; NULL: read in place */
    Buf *pack_rows; /* A packed by mr rows, for a group of tiles at a time: [unit][tile][packed_terms][mr]; NULL: read
                       in place */
    uint32_t group_rows; /* the rows of these tiles */
    bool row_neighbours; /* the rows of A are at neighbouring elements */
    bool rows_meet;      /* an element of A is one of several rows, some terms later, as in windows */
    Dim packed_terms;    /* all; with `partial`: of a block */
    Buf *partial;        /* few rows or many terms, large B: sums over blocks of the terms:
                     [unit][tile of columns][point][row][w]; NULL: sums stay in registers */
    Buf *folded;   /* their wide forms (sums.h), to which they are added every SUMMED_BLOCKS blocks; NULL: there are
                            no more blocks */
    bool together; /* the units are blocks of columns alone: those of a thread are computed as one */
    uint32_t cut;  /* without `partial`: how many of the sums run in blocks … */
    Dim *block;    /* … and their iterations; those of the innermost in elements */
    bool several;  /* certainly more than one block */
    Buf *wide;     /* the wide forms of a tile */
    uint32_t k_level;
    int64_t k_block;        /* a block: k_block iterations of the sum k_level, with all inner ones */
    int64_t stored_columns; /* of a unit in `pack` and `partial`: whole tiles */
    Buf *tile;              /* the sums of a tile, if they are computed by a call … */
    bool in_loop;           /* … or their rows are finished in a loop, not written out */
    struct DeviceDot *device;
} Dot;
/* B lies in the workspace and is read in place, in whole vectors also where its columns end within one: past the last
   column there is more of the workspace, and sums of what lies there are made 0. Masked loads take ten times as long as
   others on AMD's first Zen. */
static inline bool dot_reads_past(const Dot *d) {
    if (d->device || d->inner || d->pack || !d->b.buf || d->b.buf->kind != BUF_WORK) return false;
    return !dim_is_const(d->columns) || d->columns % d->w != 0;
}
/* The same for a device (dot_device.c): operands are evaluated wherever they are read; `a`, `b` and tiles are not
   used. */
enum { DOT_ROWS, DOT_COLUMNS, DOT_BATCHES, DOT_ROLES };
/* Elements between the rows of terms in shared memory, if threads multiply; between those of sums. */
enum { TILE_PAD = 4, SLAB_PAD = 8 };
enum { HELD_PLACES = 2 };                     /* of tiles of keys in shared memory */
enum { WARPGROUP_ROWS = 64, WARP_ROWS = 16 }; /* that a warpgroup multiplies at once; a warp */
/* What multiplies: each thread its own elements; or warps, by tensor cores, 16 × 8 at a time, or 8 × 8 of f64. */
typedef enum { DOT_FMA, DOT_MMA, DOT_MMA_F64 } DotForm;
typedef struct {
    Atom at[STEP_NEST];
    uint32_t n;
    Dim extent; /* of all of them */
} DotLoops;
/* An operand as an array of which boxes are copied (dot_box.c): its axes, the innermost first, in elements. The first
   two are terms and rows or columns; a box has one element of each other axis. `at` is where a box begins; 0: at its
   first term, row or column, counted over all loops. */
enum { BOX_RANK = 5 /* at most */, BOX_LINE = 128 /* bytes of its innermost axis, at most */ };
typedef struct {
    Dim extent, stride;
    uint32_t box; /* extent of a box */
    Ix at;
} BoxAxis;
typedef struct {
    BoxAxis axis[BOX_RANK];
    uint32_t rank;
    Dim offset; /* of the array in its buffer */
} DotBox;
typedef struct DeviceDot {
    Atom *summed; /* a loop for each contracted axis */
    uint32_t nsummed;
    uint8_t *role; /* of each axis of the step's domain */
    const Eqn *e;
    bool swapped; /* the rows are those of its right operand */
    Dim k;        /* all terms of one sum */
    DotLoops loops[DOT_ROLES];
    DotForm form;
    bool warpgroups; /* DOT_MMA: four warps multiply together, from shared memory */
    bool boxed;      /* warpgroups: the terms come as boxes of both arrays */
    /* of attention: a warp has WARP_ROWS rows of the tile and all columns, whose sums stay in registers; what rows
       multiply by stays in shared memory, or is in registers: only columns have places of a ring */
    bool held;
    Dtype as;   /* of both operands while they are multiplied, which holds all their values */
    Dtype sums; /* of the sums while they are added up */
    struct {
        uint32_t rows, columns, terms; /* of a tile, and how many terms of it are in shared memory at a time */
        uint32_t turns;                /* how often that is: what is multiplied and what comes next */
    } tile;
    struct {
        bool along_terms; /* the elements are contiguous along the innermost summed loop */
        bool plain; /* they are in memory as they are: what is 16 bytes and begins at a multiple of them is so there */
        DotOperand at; /* … where */
        DotBox box;    /* boxed: the same as an array */
    } side[2];
    uint32_t blocks; /* that a multiprocessor has registers for; 0: any number */
    uint32_t run;    /* neighbouring columns of the result that a thread finishes at once */
    Atom runs;       /* the last loop of the columns, over runs */
    bool across;     /* neighbouring threads finish elements of neighbouring rows, not columns */
    uint32_t parts;  /* of the terms, which tiles add up apart: [part][batch][row][column] in the step's `parts` … */
    uint32_t part_turns;         /* … and how often a part brings terms into shared memory */
    Dim block;                   /* terms of a sum in a register, then added to a wide form (sums.h); 0: all */
    struct Attention *attention; /* the rows' operand is a softmax of another product (attention.h); NULL: it is not */
} DeviceDot;
/* The operand of side 0, which has the rows, or 1, which has the columns. */
static inline Val dot_device_operand(const DeviceDot *d, uint32_t side) { return d->e->in.at[side ^ d->swapped]; }
/* The index of an operand over the loops of the result and of the contraction; the same where the result is at an
   index. */
void dot_device_index(Plan *, const Step *, uint32_t side, Ix *index);
void dot_device_index_at(Plan *, const DeviceDot *, uint32_t side, const Ix *result, Ix *index);
/* Makes the loops over the contracted axes of its equation. */
void dot_device_terms(Plan *, DeviceDot *);
void dot_device_plan(Plan *, Body *, Step *);
void dot_device_schedule(Plan *, Step *);
/* Which elements of the result are finished by one thread, and by its neighbours. */
void dot_device_run(Plan *, const Step *, DeviceDot *);
/* Are the terms of both operands copied as they lie? Else they go through registers. */
bool dot_device_copied(const DeviceDot *);
/* How many of the terms are added in registers before their sum is added to a wide form; 0: all. */
uint32_t dot_device_block(Dim terms);
/* How the operands at these indices are read, and what multiplies them. */
void dot_device_form(Plan *, const Step *, DeviceDot *, Ix at[2][MAX_RANK]);
/* Is it a product, and this axis of its result the last one of the rows or columns of a tile? Those beside each other
   there are stored beside each other then. */
bool dot_device_stores_along(Plan *, const Step *, int64_t axis);
Dim dot_device_units(Plan *, const Step *);         /* tiles, of each part */
Dim dot_device_elements(Plan *, const DeviceDot *); /* of the result */
/* Sets `boxed`, and then boxes and the turns of the tile, which is otherwise known. */
void dot_box_plan(Plan *, const Step *, DeviceDot *);
/* Is the operand v at this index one element of an array that is in memory, but for exact conversions? The array; 0:
   no. */
Val dot_operand(Plan *, Val v, const Ix *index, DotOperand *);
/* The type in which terms of these types are added up. */
Dtype dot_accumulator(Dtype a, Dtype b, Dtype y);

/* Decides how the operands are read; schedules copies of those that must be copied. */
void dot_plan(Plan *, Body *, Step *);
/* Can an operand be read in place, once the value it is derived from is in memory? */
bool dot_reads_in_place(Plan *, Val);
/* The value that is computed wherever v is read, of which v is a view or exact conversion; 0: none is. *windows: set if
   each of its elements is read for several of v. */
Val dot_computed(Plan *, Val v, bool *windows);
/* The addresses of both operands over the step's loops, for collapsing them. */
void dot_addresses(Plan *, const Step *, Ix address[2]);
/* The number of units of a scheduled product; the number of blocks of n. */
Dim dot_units(Plan *, const Dot *);
Dim dot_blocks(Plan *, Dim n, Dim block);
static inline bool dot_at_most(Dim d, int64_t most) { return dim_is_const(d) && d <= most; }
/* Are its terms so few in all that the time of a call for each tile, or of tiles that are not full, does not matter? */
bool product_is_small(const Plan *, const Step *);
/* Tiles and units, once the step's loops are final. */
void dot_schedule(Plan *, Step *);

#endif
