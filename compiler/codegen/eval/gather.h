/* Gather and scatter: windows of an operand, at positions given by an array of integers. */
#ifndef JAXCC_GATHER_H
#define JAXCC_GATHER_H
#include "evaluate.h"

/* Where one element of a window lies. */
typedef struct {
    uint32_t n;                 /* entries of the position: axes of the operand that it is along */
    IxValue position[MAX_RANK]; /* they are in [0, most], or the window is not inside */
    Ix operand[MAX_RANK];       /* the index in the operand, of the window moved inside */
    Ix at[MAX_RANK][MAX_RANK];  /* where `position` is read */
} Window;
/* The element at an index of gather's result or scatter's updates. */
void window_at(Plan *, const Eqn *, const Ix *index, Window *);
/* Is the whole window inside the operand? */
Reg window_inside(Eval *, const Window *);

IndexRule index_gather;

#endif
