/* Reads and stores across the lane loop on a GPU, through shared memory (plan/crossed.h). */
#ifndef JAXCC_KERNELS_CROSSED_H
#define JAXCC_KERNELS_CROSSED_H
#include "kernel.h"

/* A block's tile of a step that has such reads. */
void kernel_crossed(Kernel *);
/* While its runs are written: is the element at this address one of them? Then *r is it. */
bool crossed_load(Kernel *, const Buf *, Dtype, Ix address, Reg *r);
/* Is it to be written there? Then shared memory gets it, as memory would have it. */
bool crossed_store(Kernel *, const Buf *, Dtype, Ix address, V);

#endif
