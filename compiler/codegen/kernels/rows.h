/* A thread's part of a row that is in its registers (plan/rows.c). */
#ifndef JAXCC_KERNEL_ROWS_H
#define JAXCC_KERNEL_ROWS_H
#include "kernel.h"

/* Before the first stage, in the scope of all of them. */
void rows_bind(Kernel *);
/* One stage: each element's terms into the accumulators, then what it stores. */
typedef void RowTerms(Kernel *, void *user, V *acc);
void rows_held(Kernel *, V *acc, RowTerms *, void *user);

#endif
