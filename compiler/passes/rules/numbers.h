/* Complex numbers known at compile time: the roots of unity of Fourier transforms, and tables of them. */
#ifndef JAXCC_NUMBERS_H
#define JAXCC_NUMBERS_H
#include "../complex.h"

typedef struct {
    double re, im;
} Number;

/* exp(-2πi a / n), exact where it is 1, -i, -1 or i. */
Number number_root(int64_t a, int64_t n);
Number number_product(Number x, Number y);
/* The transform of x[0], x[step], … (n of them, a power of 2) into y[n]; w: the roots of n·step. */
void numbers_transform(int64_t n, const Number *x, int64_t step, const Number *w, Number *y);
/* A constant of these numbers, rounded to the type. */
Pair numbers_table(Builder *, Dtype, uint32_t rank, const Dim *dims, const Number *at);

#endif
