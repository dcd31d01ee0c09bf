/* A thread's part of a row that is in its registers (plan/rows.c). */
#ifndef JAXCC_KERNEL_ROWS_H
#define JAXCC_KERNEL_ROWS_H
#include "kernel.h"

/* Before the first stage, in the scope of all of them. */
void rows_bind(Kernel *);
/* One stage: each element's terms into the n accumulators, then what it stores. */
enum { MAX_HELD = 2 * STEP_REDUCTIONS };
typedef void RowTerms(Kernel *, void *user, V *acc);
void rows_held(Kernel *, uint32_t n, V *acc, RowTerms *, void *user);

#endif
