/* Formats of floats: bit patterns and their values. */
#ifndef JAXCC_FLOAT_H
#define JAXCC_FLOAT_H
#include <stdint.h>

/* The meaning of the largest patterns. */
typedef enum {
    FLOAT_IEEE,   /* infinities and NaNs */
    FLOAT_FN,     /* NaN at all ones, no infinities */
    FLOAT_FNUZ,   /* NaN at minus zero, no infinities, one zero */
    FLOAT_FINITE, /* numbers only */
    FLOAT_POWER   /* no sign, no zero: powers of two, NaN at all ones */
} FloatSpecial;
typedef struct {
    int exponent, mantissa, bias; /* their numbers of bits; exponent 0: not a float */
    FloatSpecial special;
} FloatFormat;

/* For formats of at most 16 bits; a pattern is sign, exponent, mantissa, in the low bits. */
double float_decode(const FloatFormat *, uint32_t bits);
/* Rounds to the nearest value, ties to even (POWER: up); beyond the largest one to infinity, NaN or, for FINITE, the
   largest. NaN is quiet and keeps its sign if possible; FINITE gives -0 for it. */
uint32_t float_encode(const FloatFormat *, double);
/* The patterns of the largest finite value, of infinity or what replaces it, and of NaN. */
uint32_t float_most(const FloatFormat *);
uint32_t float_overflow(const FloatFormat *);
uint32_t float_nan(const FloatFormat *);

#endif
