/* Sums of many terms. A partial sum in a register loses a digit each time the number of its terms grows a hundredfold,
   so it covers one block of terms only; the sums of the blocks are added up in a wider form. */
#ifndef JAXCC_SUMS_H
#define JAXCC_SUMS_H
#include "../../ir.h"

/* The number of values in the wide form of an accumulator of type d: for f32 an f64; for f64 two values, a sum and its
   accumulated rounding errors; 0: the type has no wide form. The size of the forms of this many accumulators. */
enum { WIDE_VALUES = 2 };
uint32_t wide_values(Dtype d);
uint32_t wide_bytes(Dtype d, uint32_t lanes);

/* Cuts a nest of loops over the terms, outermost first, into blocks: block[i] iterations of loop i, with all of the
   loops in it, make at most `most` iterations of the innermost loop, or are a single iteration, whose inner loops are
   cut too. block[i] = 0: the loop and those in it have no more than `most`. The loops that are cut are outermost. */
void sum_blocks(Types *, const Dim *turns, uint32_t n, int64_t most, Dim *block);

#endif
