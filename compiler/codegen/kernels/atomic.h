/* Elements of memory that threads of a GPU change at the same time. */
#ifndef JAXCC_ATOMIC_H
#define JAXCC_ATOMIC_H
#include "kernel.h"

/* place := place ∘ x, x in a register. A byte or two are changed with the word that they lie in. */
void atomic_combine(Kernel *, Prim, Dtype, V place, V x);

#endif
