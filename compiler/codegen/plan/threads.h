/* What a GPU decides about the steps. */
#ifndef JAXCC_PLAN_THREADS_H
#define JAXCC_PLAN_THREADS_H
#include "plan.h"

enum { WARP = 32 };
void threads_decide(Plan *, Step *);
/* Do the threads of a group share the lane loop, which is reduced? */
bool threads_share_lanes(const Plan *, const Step *);
/* The number of items that a block does at once, and of blocks to launch. */
uint32_t grid_at_once(const Grid *);
Dim grid_blocks(Plan *, const Grid *);

#endif
