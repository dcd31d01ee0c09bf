/* -D: symbolic dimensions fixed from the command line. */
#ifndef JAXCC_DIMS_H
#define JAXCC_DIMS_H
#include "ir.h"

/* Substitutes the numbers of -D for the symbols in all types and parameters of the program just read and in the n types
   of --in-type. A name that does not occur gives a warning. */
void dims_fix(Ctx *, Jaxpr *, Type *in, uint32_t n);

#endif
