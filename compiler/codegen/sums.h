/* Sums of many terms. A partial sum in a register loses a digit for every hundredfold of its terms,
   so it is kept over a block of them only; what the blocks give is added up in a wider form. */
#ifndef JAXCC_SUMS_H
#define JAXCC_SUMS_H
#include "emit.h"

/* The wide form of an accumulator of type d, of as many lanes: of an f32 an f64; of an f64 two, a
   sum and what its roundings lost. How many values; 0: the type has none. */
enum { WIDE_VALUES = 2 };
uint32_t wide_values(Dtype d);
void wide_zero(Emit *, Dtype d, uint32_t w, V *wide);
void wide_add(Emit *, Dtype d, V x, V *wide);
V wide_value(Emit *, Dtype d, const V *wide); /* rounded to a register of d */

/* Blocks of a nest of loops over the terms, the outermost first: block[i] turns of loop i, all of
   the loops in it included, have at most `most` turns of the innermost, or are a single turn, after
   whose blocks the sum is folded; 0: the loop and those in it have no more than `most`. Loops that
   are cut are the outermost ones. */
void sum_blocks(Types *, const Dim *turns, uint32_t n, int64_t most, Dim *block);

#endif
