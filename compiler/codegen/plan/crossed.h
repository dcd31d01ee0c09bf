/* Reads and stores that are apart along the lane loop and beside each other along another, on a GPU: through shared
   memory. */
#ifndef JAXCC_CROSSED_H
#define JAXCC_CROSSED_H
#include "plan.h"

/* Has a LOOPS step such places, and does a block do tiles of the two loops? Sets s->crossed, its grid and its runs. */
bool crossed_decide(Plan *, Step *);
/* Elements of a thread's runs along the lanes, of one word of shared memory, and of a read of 16 bytes. */
uint32_t crossed_together(const Crossed *);
uint32_t crossed_read(const Crossed *);
/* The address in the loops that run: those that were collapsed into others stay 0. */
Ix crossed_address(Indices *, const Step *, Ix);

#endif
