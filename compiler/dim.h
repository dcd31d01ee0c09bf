/* Shared by type.c and dim.c: the table of symbolic dimensions that every Types has. */
#ifndef JAXCC_DIM_H
#define JAXCC_DIM_H
#include "type.h"

typedef struct DimTable DimTable;
DimTable *dim_table_new(Arena *);
DimTable *types_dims(const Types *);
/* Appends the text of a dimension, as jax.export prints it: "2*b + 1", "floordiv(b, 2)". */
void dim_put(Text *, const Types *, Dim, ValName *, const void *);

#endif
