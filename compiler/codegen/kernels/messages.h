/* What a block of a GPU leaves for others of the same kernel. */
#ifndef JAXCC_MESSAGES_H
#define JAXCC_MESSAGES_H
#include "kernel.h"

/* A message is n values as words of 64 bits: so many. Where it is left they are 0 before. */
uint32_t message_words(Emit *, uint32_t n, const V *values);
void message_leave(Kernel *, V place, uint32_t n, const V *values);
/* Waits until n values are there at each of the places; before, the first n have the types. What leaves them must have
   begun. */
void message_wait(Kernel *, uint32_t places, const V *place, uint32_t n, V *values);

/* The number of this block among those that have asked, the first 0: those with smaller numbers have begun. `place`: an
   i32 in memory, which is 0 before. All threads must come here. */
V message_turn(Kernel *, V place);

#endif
