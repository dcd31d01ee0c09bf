/* Several elements of a LOOPS step at once. */
#ifndef JAXCC_RUNS_H
#define JAXCC_RUNS_H
#include "kernel.h"

/* A thread's runs of the step. */
void kernel_runs(Kernel *);
/* What a thread does of them at once, all of which is there. */
void kernel_whole_run(Kernel *);
/* n iterations of a loop that is not reduced, from this index on: those of the unrolled loop, or the rows of a tile,
   which may be stored transposed. */
void kernel_turns(Kernel *, Atom loop, Ix first, uint32_t n);

#endif
