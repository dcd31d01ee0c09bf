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
enum { NUMBERS_PRIME = 13 };
/* The transform of x[0], x[step], … into y[n]; w: the roots of n·step. No prime factor of n is above NUMBERS_PRIME. */
void numbers_transform(int64_t n, const Number *x, int64_t step, const Number *w, Number *y);
int64_t numbers_least_prime(int64_t n), numbers_largest_prime(int64_t n); /* that divide n; 1 if n is 1 */
/* Of a prime n of at most 31 bits: the least g whose powers modulo n are 1, …, n - 1, in some order. */
int64_t number_generator(int64_t n);
/* A constant of these numbers, rounded to the type. */
Pair numbers_table(Builder *, Dtype, uint32_t rank, const Dim *dims, const Number *at);
/* Of these, roots w_n^(j k), rows j from `from` to `to`, k < P: [to - from, P], or the other way round. */
Pair numbers_roots(Builder *, Dtype, int64_t from, int64_t to, int64_t P, int64_t n, bool turn);

#endif
