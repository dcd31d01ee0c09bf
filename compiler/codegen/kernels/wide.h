/* The wide forms of sums (plan/sums.h) in registers, with as many lanes as the accumulator. */
#ifndef JAXCC_WIDE_H
#define JAXCC_WIDE_H
#include "../emit/emit.h"
#include "../plan/sums.h"

void wide_zero(Emit *, Dtype d, uint32_t w, V *wide);
void wide_add(Emit *, Dtype d, V x, V *wide);
void wide_join(Emit *, Dtype d, const V *x, V *wide); /* adds another wide form; the order of the two does not matter */
V wide_value(Emit *, Dtype d, const V *wide);         /* rounded to a register of d */

#endif
