/* Several elements of a LOOPS step at once. */
#ifndef JAXCC_RUNS_H
#define JAXCC_RUNS_H
#include "kernel.h"

/* A thread's runs of the step; all iterations of its unrolled loop. */
void kernel_runs(Kernel *);
void kernel_turns(Kernel *);

/* loops.c: the stages of the step at the current index; the reductions of stage k->x.level + 1. */
void loops_stages(Kernel *);
void loops_reduce(Kernel *);

#endif
