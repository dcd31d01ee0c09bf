/* Elements of memory that threads of a GPU change at the same time. */
#ifndef JAXCC_ATOMIC_H
#define JAXCC_ATOMIC_H
#include "kernel.h"

/* place := place ∘ x, x in a register. A byte or two are changed with the word that they lie in. */
void atomic_combine(Kernel *, Prim, Dtype, V place, V x);
/* Counts: an i32 in memory becomes one more; what it was. */
V atomic_count(Emit *, V place);
/* A word of 64 bits that other blocks write and read. */
V atomic_load_word(Emit *, V place);
void atomic_store_word(Emit *, V word, V place);

#endif
