/* -D: symbolic dimensions fixed from the command line. */
#ifndef JAXCC_DIMS_H
#define JAXCC_DIMS_H
#include "ir.h"
#include "options.h"

/* Substitutes the numbers of -D for the symbols in all types and parameters of the program just read and in the n types
   of --in-type. A name that does not occur gives a warning. */
void dims_fix(Ctx *, Jaxpr *, Type *in, uint32_t n);
/* Has the program just read a dimension of this name, fixed or not? The number of a --vmap's dimension, for batch_name:
   the program and the --vmap before this one have none of this name. */
bool dims_has(const Ctx *, Str name);
uint32_t dims_batch(Ctx *, const Transform *);

#endif
