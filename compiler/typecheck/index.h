/* The axes of gather and scatter. */
#ifndef JAXCC_TYPECHECK_INDEX_H
#define JAXCC_TYPECHECK_INDEX_H
#include "../ir.h"

/* The record dimension_numbers, under common names: gather's offset_dims are scatter's update_window_dims, and so
   on. */
typedef struct {
    Ints windows;     /* axes of the result of gather, of the updates of scatter */
    Ints dropped;     /* axes of the operand along which a window has one element */
    Ints map;         /* the axis of the operand that each entry of a position indexes */
    Ints batch;       /* batch axes of the operand … */
    Ints index_batch; /* … and the axes of the indices that correspond to them */
} IndexNumbers;
/* What the record calls them. */
typedef struct {
    const char *windows, *dropped, *map, *batch, *index_batch;
} IndexFields;
extern const IndexFields gather_fields, scatter_fields;
/* False after a diagnostic. */
bool index_numbers(Ctx *, const Eqn *, IndexNumbers *);
/* The real and imaginary part of gather's fill_value; false if it is not a number. */
bool gather_fill(Ctx *, const Eqn *, double part[2]);

/* JAX's GatherScatterMode, in its order; MODE_NONE is that of texts older than modes. */
typedef enum { MODE_NONE, MODE_CLIP, MODE_FILL_OR_DROP, MODE_PROMISE_IN_BOUNDS, MODE_ONE_HOT } IndexMode;
IndexMode index_mode(const Eqn *);
/* Does gather replace windows that are not inside? If not, they are moved inside. */
bool gather_fills(const Eqn *);
/* Does a gather from an array of this type read its positions as numbers of 32 bits with a sign? */
bool index_wraps(const Eqn *, const ArrayType *);

#endif
