/* Gather and scatter: windows of an operand at positions that an array of integers has. */
#ifndef JAXCC_GATHER_H
#define JAXCC_GATHER_H
#include "kernel.h"

/* jax's GatherScatterMode, in its order; first what text has that is older than modes are. */
typedef enum { MODE_NONE, MODE_CLIP, MODE_FILL_OR_DROP, MODE_PROMISE_IN_BOUNDS, MODE_ONE_HOT } IndexMode;
IndexMode index_mode(const Eqn *);
/* Where one element of a window lies. */
typedef struct {
    uint32_t n;           /* entries of the position */
    IxValue position[32]; /* they are in [0, most], or the window is not inside */
    Ix operand[32];       /* the index in the operand, of the window moved inside */
    Ix at[32][32];        /* where `position` is read */
} Window;
/* At an index of the result of gather, of the updates of scatter. */
void window_at(Plan *, const Eqn *, const Ix *index, Window *);
/* Is the whole window inside? In dry mode the position's reads are told. */
Reg window_inside(Kernel *, const Window *);

IndexRule index_gather;

/* ---- scatter.c */
/* Where the update at an index goes, in elements. */
Ix scatter_address(Plan *, const Eqn *, const Ix *index);
/* Marks the axes of the domain, that of the updates, whose turns may meet at one place. */
void scatter_order(Plan *, Step *);
/* The lanes' loop, by `score`, and the order of the other kept loops: first those that positions
   depend on. */
typedef int64_t LoopScore(const void *user, Atom loop);
void scatter_schedule(Plan *, Step *, LoopScore *, const void *user);
/* In dry mode: what finding the place of a store reads. */
void store_place(Kernel *, const Store *, const Ix *index);

#endif
