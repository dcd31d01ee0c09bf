/* What gather and scatter say about axes. */
#ifndef JAXCC_TYPECHECK_INDEX_H
#define JAXCC_TYPECHECK_INDEX_H
#include "../ir.h"

/* The record dimension_numbers, by one set of names: gather's offset_dims are scatter's
   update_window_dims, and so on. */
typedef struct {
    Ints windows;     /* axes of the result of gather, of the updates of scatter */
    Ints dropped;     /* axes of the operand along which a window has one element */
    Ints map;         /* the axis of the operand that each entry of a position is along */
    Ints batch;       /* axes of the operand that go with axes of the indices … */
    Ints index_batch; /* … these */
} IndexNumbers;
/* False after a diagnostic. */
bool index_numbers(Ctx *, const Eqn *, IndexNumbers *);
/* The real and the imaginary part of gather's fill_value; false where it is no number. */
bool gather_fill(Ctx *, const Eqn *, double part[2]);

#endif
