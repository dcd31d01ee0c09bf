/* Loops and branches of a device that go on without the host. */
#ifndef JAXCC_GUARD_H
#define JAXCC_GUARD_H
#include "plan.h"

/* The kernels that a program launches, at most; more than MOST_LAUNCHES if it needs anything of the host. */
int64_t guard_launches(const Plan *);
/* How deep loops are nested whose predicates the runtime tests; JAXCC_RT_CUDA_NESTED if the host does so for one. */
uint32_t guard_loops(const Body *);
/* A while whose predicate is stored for its kernels: sets `decides` and `at_once` if they can test it and it is worth
   it. `copied`: bytes of the carries whose next values cannot be computed in their memory. */
void guard_turns(Plan *, Step *, Dim copied);
/* The same for a cond whose index is there. */
void guard_branches(Plan *, Step *, Buf *index);
/* Copies the next values of COPIED carries at the end of the body. */
void guard_copies(Plan *, Step *);

#endif
