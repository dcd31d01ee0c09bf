/* What a GPU decides about the steps. */
#ifndef JAXCC_PLAN_THREADS_H
#define JAXCC_PLAN_THREADS_H
#include "plan.h"

enum { WARP = 32 };
void threads_decide(Plan *, Step *);
/* The number of blocks to launch. */
Dim grid_blocks(Plan *, const Grid *);

#endif
