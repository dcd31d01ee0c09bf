/* Reads and stores across the lane loop on a GPU, through shared memory (plan/crossed.h). */
#ifndef JAXCC_KERNELS_CROSSED_H
#define JAXCC_KERNELS_CROSSED_H
#include "kernel.h"

/* A block's tile of a step that has such places. */
void kernel_crossed(Kernel *);

#endif
