/* Reductions of a LOOPS step (reduce.c). */
#ifndef JAXCC_REDUCE_H
#define JAXCC_REDUCE_H
#include "accumulators.h"

/* Those of stage k->x.level + 1; what stage k->x.level stores. */
void reduce_stage(Kernel *);
void reduce_store(Kernel *);
/* Sums of the columns [lo, hi), in lines (Step.lines). */
void reduce_lines(Kernel *, V lo, V hi);
/* Parts [lo, hi) of the step's; one, `length` long, into item `item` of Step.parts. */
void reduce_parts(Kernel *, V lo, V hi);
void reduce_part(Kernel *, Accs *, V part, V item, V length);

#endif
