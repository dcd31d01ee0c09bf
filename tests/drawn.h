/* Inputs that transformations add to a program: drawn numbers. */
#ifndef JAXCC_DRAWN_H
#define JAXCC_DRAWN_H
#include <stdbool.h>
#include <stddef.h>

/* Writes the arrays of the file `in`, the first inputs of the program `name` of the library `so`, and numbers between
   -1 and 1 for its further inputs, whose extents are constants, to the file `out`. False with a reason in `why`. */
bool drawn_inputs(const char *so, const char *name, const char *in, const char *out, char *why, size_t n);

#endif
