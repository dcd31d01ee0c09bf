/* What depends on element types: products of several types, and rules of other files for the table of narrow.c, of
   primitives that are written with others for some types only. */
#ifndef JAXCC_SOME_H
#define JAXCC_SOME_H
#include "../build.h"

/* dot_general of element types that are not those of the sums (dot.c). */
ExpandRule some_dot_general;
/* What operands are converted to, and results from, where products of two types become a third one. */
Dtype dtype_of_products(Dtype, Dtype, Dtype result);
/* Is an operand of type `from` converted to `to` without a loss? The multiplication does it then. */
bool dtype_goes_into(Dtype from, Dtype to);

#endif
