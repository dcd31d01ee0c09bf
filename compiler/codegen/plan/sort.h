/* Sorting on a device: rows of keys, which are unsigned integers, give the positions of their elements in order. */
#ifndef JAXCC_PLAN_SORT_H
#define JAXCC_PLAN_SORT_H
#include "plan.h"

/* A block sorts a tile of each row; then runs of tiles, which are sorted, are merged two by two until a run is a row. */
typedef struct Sort {
    Dim rows, n;              /* the keys are [rows, n] */
    Dtype key;                /* u32 or u64 */
    uint32_t tile;            /* elements, a power of two */
    Buf *keys[2], *places[2]; /* of runs, sorted; places[0]: the result; the others: NULL if a row is one tile */
    Buf *from[2], *to[2];     /* SLOTs: keys and places before and after merging */
    Val run;                  /* the length of the runs to be merged */
    Grid elements;            /* all keys in their order */
} Sort;
void plan_sort(Plan *, Body *, const Eqn *);
void sort_decide(Plan *, Step *);
/* The tiles of a row. */
Dim sort_tiles(Plan *, const Sort *);

#endif
