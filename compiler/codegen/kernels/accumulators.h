/* The accumulators of the reductions of one stage. */
#ifndef JAXCC_ACCUMULATORS_H
#define JAXCC_ACCUMULATORS_H
#include "kernel.h"

enum { MAX_ACCS = 2 * STEP_REDUCTIONS /* argmax has two values */ };

typedef struct {
    Val v;
    const Eqn *e;
    Dtype in, out;
    bool arg;
    MlirType index;  /* ARG: type of positions */
    MlirType mask;   /* of a vector's booleans while they are accumulated, all bits equal; NULL: they stay i1 */
    uint32_t column; /* of those that a thread has beside each other: Step.columns */
} Acc;
typedef struct {
    Acc at[STEP_REDUCTIONS];
    uint32_t n, nv; /* nv: carried values for one width */
    uint32_t depth;
} Accs;

void accs_collect(Kernel *, Accs *);
void accs_initial(Kernel *, const Accs *, uint32_t w, V *out);
/* A vector of booleans as the accumulator has them, and back as i1. */
V acc_mask(Emit *, const Acc *, V x);
void accs_booleans(Emit *, const Accs *, V *acc);
/* y before x: strictly better, or the first NaN. */
V acc_better(Emit *, Prim, Dtype, V y, V x);
/* Combines all lanes into one, by halves. */
void accs_horizontal(Emit *, const Accs *, V *acc);
/* Combines two sets of scalars into the first. */
void accs_merge(Emit *, const Accs *, V *x, const V *y);

#endif
