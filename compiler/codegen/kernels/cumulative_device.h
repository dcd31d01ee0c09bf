/* Prefixes on a device (cumulative_device.c): a row by the threads of an item (cumulative_block.c), or rows by a thread
   (cumulative_rows.c); parts of them that wait for others (cumulative_wait.c). */
#ifndef JAXCC_CUMULATIVE_DEVICE_H
#define JAXCC_CUMULATIVE_DEVICE_H
#include "cumulative.h"

/* No elements: −0 is neutral for every sum. */
V cum_nothing(const Cum *);
/* Neighbouring rows that a thread has, and their carries. */
uint32_t cum_rows(const Cum *);
void cum_start_all(const Cum *, V *carry);
/* The elements [lo, hi), and the carries after them; without `store` nothing but the carries. By the threads of an
   item, where lo is the beginning of a turn; by one thread. */
void cum_along_block(Cum *, V lo, V hi, V *carry, bool store);
void cum_along_thread(const Cum *, V lo, V hi, V *carry, bool store);
/* The part that begins there, by chunks. */
void cum_along_chunks(Cum *, V lo);

/* ---- parts: y into x (a Merge) */
void cum_join(Emit *, void *cum, V *x, const V *y);
/* Leaves what this part has in all for later ones; the carry after those before it. */
void cum_before_part(Cum *, V all, V *carry);
/* The same for chunks: from what each has of its rows to what is before it. */
void cum_before_chunks(Cum *, V *rows);

#endif
