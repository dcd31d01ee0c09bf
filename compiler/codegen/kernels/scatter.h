/* What kernels of scatters have in common. */
#ifndef JAXCC_KERNELS_SCATTER_H
#define JAXCC_KERNELS_SCATTER_H
#include "../eval/gather.h"
#include "kernel.h"

/* An element after an update of it. */
V scatter_combined(Kernel *, Dtype, V old, V update);
/* Is the window inside? NULL: certainly. */
V scatter_placed(Kernel *, const Eqn *, const Window *);
/* On a device: the updates of all places whose first slot is one of those that are bound. */
void scatter_slots(Kernel *, V item);
/* On a device: a part of the updates, by a block. */
void scatter_shared(Kernel *, V item);

#endif
