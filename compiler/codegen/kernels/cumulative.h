/* Prefixes of one equation: what kernels for CPUs (cumulative.c) and for devices (cumulative_device.c) share. */
#ifndef JAXCC_CUMULATIVE_H
#define JAXCC_CUMULATIVE_H
#include "kernel.h"

typedef struct {
    Kernel *k;
    const Eqn *e;
    Val y;
    Dtype d;
    Atom axis;
    bool reverse;
    V item; /* on a device */
} Cum;
Cum cum_of(Kernel *);

/* a ∘ b, unrounded. The element and the result at the index that is bound. */
V cum_combine(const Cum *, V a, V b);
V cum_operand(const Cum *);
void cum_store(const Cum *, V y);
/* It is the result, but not stored. */
void cum_remember(const Cum *, V y);

/* ---- the carry: one value, its wide form, or a logarithm and its rounding error */
uint32_t cum_widens(const Cum *); /* values of the wide form; 0: it has none */
uint32_t cum_values(const Cum *);
void cum_start(const Cum *, uint32_t w, V *carry);
V cum_value(const Cum *, const V *carry);
/* Takes one more element, or a result of several, into the carry. */
void cum_take(const Cum *, V *carry, V x);
/* What a part of a row leaves, so many values: one, or the wide form of a sum; into the carry. */
uint32_t cum_part_values(const Cum *);
void cum_add_part(const Cum *, V *carry, const V *part);
/* The prefix with x as its last element, from a carry that has no wide form. */
V cum_add(const Cum *, V *carry, V x);

#endif
