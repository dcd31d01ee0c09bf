/* What instructions of a GPU give for elements of 16 bits and less. */
#ifndef JAXCC_APPROXIMATE_H
#define JAXCC_APPROXIMATE_H
#include "kernel.h"

/* The result, not yet rounded, of a primitive of floats of 16 bits or less; NULL: there is no such instruction, or they have more. */
V approximate(Kernel *, Prim, Dtype, const V *x);

#endif
