/* Kernels of a device: the items of a grid, divided among its blocks and threads. */
#ifndef JAXCC_GRID_H
#define JAXCC_GRID_H
#include "kernel.h"

/* Writes the kernel, at e->block; the rule writes what is done for one item. */
void grid_write(Kernel *, const Grid *, KernelRule *);

#endif
