/* Sorting on a device: rows of keys, which are unsigned integers, give the positions of their elements in order. */
#ifndef JAXCC_PLAN_SORT_H
#define JAXCC_PLAN_SORT_H
#include "plan.h"

/* A block sorts a tile of each row; then runs of tiles, which are sorted, are merged two by two until a run is a row.
   The keys are the operand of a STEP_SORT, or the places of a scatter's positions, all ones if they are not inside. */
typedef struct Sort {
    Dim rows, n;              /* the keys are [rows, n] */
    Dtype key;                /* u32 or u64 */
    bool kept;                /* sorted keys are needed, in keys[0] */
    uint32_t tile;            /* elements, a power of two */
    Buf *keys[2], *places[2]; /* of runs, sorted; places[0]: the result; NULL if they are not needed */
    Buf *from[2], *to[2];     /* SLOTs: keys and places before and after merging; NULL if a row is one tile */
    Val run;                  /* the length of the runs to be merged */
    Grid elements;            /* all keys in their order, by the loops of the step */
    Grid grid;                /* tiles */
    /* Of a scatter: */
    Atom slot;      /* the loop over its sorted positions */
    Buf *parts;     /* results of parts of the updates of one place; NULL: there are none */
    Atom part;      /* the loop over them */
    Grid part_grid; /* but for its threads */
} Sort;
void plan_sort(Plan *, Body *, const Eqn *);
/* Rows of n keys; `kept`: they are needed after sorting. */
Sort *sort_new(Plan *, Dim rows, Dim n, Dtype key, bool kept, Span);
/* Sets the grids; the loops over all elements. */
void sort_decide(Plan *, Sort *, const Atom *loops, uint32_t n);
/* The tiles of a row. */
Dim sort_tiles(Plan *, const Sort *);

#endif
