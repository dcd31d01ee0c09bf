/* Rules that depend on element types: products of mixed types, and rules of other files that the table in narrow.c
   names because they apply to some types only. */
#ifndef JAXCC_SOME_H
#define JAXCC_SOME_H
#include "../build.h"

/* dot_general whose operands differ in type from the sums (dot.c). */
ExpandRule some_dot_general;
/* The type that operands are converted to, and results from, if products of two types give a third one. */
Dtype dtype_of_products(Dtype, Dtype, Dtype result);
/* Is an operand of type `from` converted to `to` without loss? Then the multiplication does it. */
bool dtype_goes_into(Dtype from, Dtype to);

#endif
