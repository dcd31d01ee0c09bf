/* What instructions of a GPU give. */
#ifndef JAXCC_APPROXIMATE_H
#define JAXCC_APPROXIMATE_H
#include "kernel.h"

/* The result, not yet rounded, of a primitive of floats of 16 bits or less, or of exp of f32; NULL: there is no such
   instruction. */
V approximate(Kernel *, Prim, Dtype, const V *x);
/* 1 / x in f32, rounded once, on a device, where both are normal numbers: a division for all numbers has a branch. */
V normal_inverse(Emit *, V x);

#endif
