/* Prefixes on a device: a row by the threads of an item (cumulative_block.c), or rows by a thread (cumulative_device.c). */
#ifndef JAXCC_CUMULATIVE_DEVICE_H
#define JAXCC_CUMULATIVE_DEVICE_H
#include "cumulative.h"

/* Takes one more element, or a result of several, into the carry. */
void cum_take(const Cum *, V *carry, V x);
/* No elements: −0 is neutral for every sum. */
V cum_nothing(const Cum *);
/* The elements [lo, hi) by the threads of an item, and the carry after them; without `store` nothing but the carry. lo is
   the beginning of a turn. */
void cum_along_block(Cum *, V lo, V hi, V *carry, bool store);

#endif
