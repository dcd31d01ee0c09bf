/* Kernels of a device: the items of a grid, divided among its blocks and threads. */
#ifndef JAXCC_GRID_H
#define JAXCC_GRID_H
#include "kernel.h"

/* Sets the indices of n loops, the last of which is the innermost, at point number `at` of all `points` of them. */
void grid_bind(Kernel *, const Atom *loops, uint32_t n, Dim points, V at);
static inline void grid_bind_point(Kernel *k, const Grid *g, V at) { grid_bind(k, g->loops, g->nloops, g->items, at); }
/* Writes the kernel, at e->block; the rule writes what is done for one item. */
void grid_write(Kernel *, const Grid *, KernelRule *);

#endif
