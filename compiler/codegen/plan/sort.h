/* Sorting on a device: rows of keys, which are unsigned integers, give the positions of their elements in order. */
#ifndef JAXCC_PLAN_SORT_H
#define JAXCC_PLAN_SORT_H
#include "plan.h"

/* A block sorts a tile of each row; then runs of tiles, which are sorted, are merged two by two until a run is a row.
   Longer rows are sorted by digits of the keys, the lowest first; each pass is stable. What reads the results element
   by element is computed by the step itself, if a row is one tile. The keys are the operand of a STEP_SORT, or the
   places of a scatter's positions, all ones if they are not inside. */
typedef struct Sort {
    Dim rows, n;              /* the keys are [rows, n] */
    Dtype key;                /* u8 to u64 */
    uint32_t passes;          /* digits by which keys differ, from the lowest on */
    bool kept;                /* sorted keys are needed, in keys[0] … */
    bool alone;               /* … and nothing else */
    int64_t order;            /* alone: keys are elements' bits, in an order of runtime/sort.h */
    bool inside;              /* the results are members of the step: no buffer has them */
    uint32_t tile;            /* elements, a power of two */
    int64_t by_digits;        /* from this length on rows are sorted so; 0: none is */
    Buf *keys[2], *places[2]; /* sorted, in part; places[0]: the result; NULL if they are not needed */
    Buf *from[2], *to[2];     /* SLOTs: keys and places before and after merging or a pass; NULL if a row is one tile */
    Val run;                  /* the length of the runs to be merged … */
    Val shift;                /* … or the first bit of the pass's digit */
    Buf *counts, *sums;       /* elements with a digit of each tile, of each row; NULL: not by digits */
    Grid elements;            /* all keys in their order, by the loops of the step */
    Grid grid;                /* tiles */
    Grid digits;              /* of rows */
    /* Of a scatter: */
    bool given;     /* its positions are in order: nothing is sorted */
    Ix place;       /* the key of a position: the address of its first element, in … */
    Dim unit;       /* … so many elements */
    uint32_t slots; /* sorted positions that a thread goes through */
    Atom slot;      /* the loop over so many */
    Buf *parts;     /* results of parts of the updates of one place; NULL: there are none */
    Atom part;      /* the loop over them */
    Grid part_grid; /* but for its threads */
} Sort;
void plan_sort(Plan *, Body *, const Eqn *);
typedef enum { SORT_PLACES, SORT_BOTH, SORT_KEYS } SortGives;
/* Rows of n keys; so many low bits have their order. */
Sort *sort_new(Plan *, Dim rows, Dim n, uint32_t bits, SortGives, const Eqn *);
/* The same of one row whose keys are in order. */
Sort *sort_in_order(Plan *, Dim n, uint32_t bits, const Eqn *e);
/* Sets the grids; the loops over all elements. */
void sort_decide(Plan *, Sort *, const Atom *loops, uint32_t n);
/* May others of the step's elements be computed from its results? They may if it is no sort but a step of loops or a
   product. */
bool sort_takes_members(const Step *);
/* The tiles of a row. */
Dim sort_tiles(Plan *, const Sort *);

#endif
