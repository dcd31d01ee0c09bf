/* What fft.c and fft_primes.c share: arithmetic of pairs, and one axis of them. */
#ifndef JAXCC_FFT_H
#define JAXCC_FFT_H
#include "numbers.h"

static inline Pair plus(Builder *b, Pair x, Pair y) { return (Pair){b_add(b, x.re, y.re), b_add(b, x.im, y.im)}; }
static inline Pair minus(Builder *b, Pair x, Pair y) { return (Pair){b_sub(b, x.re, y.re), b_sub(b, x.im, y.im)}; }
static inline Pair conjugate(Builder *b, Pair z) { return (Pair){z.re, b_neg(b, z.im)}; }
static inline Pair swapped(Pair z) { return (Pair){z.im, z.re}; }
/* x y, one rounding less in each part. */
static inline Pair product(Builder *b, Pair x, Pair y) {
    return (Pair){b_fma(b, x.re, y.re, b_neg(b, b_mul(b, x.im, y.im))), b_fma(b, x.re, y.im, b_mul(b, x.im, y.re))};
}
static inline const ArrayType *shape(Builder *b, Pair z) { return b_type(b, z.re); }

/* One axis: parts of shape [outer, n, inner]. */
typedef struct {
    Dim outer;
    int64_t n;
    Dim inner;
} Axis;
static inline Pair reshaped(Builder *b, Pair z, uint32_t rank, const Dim *dims) {
    return (Pair){b_reshape(b, z.re, rank, dims), b_reshape(b, z.im, rank, dims)};
}
static inline Pair sliced(Builder *b, Pair z, int64_t axis, int64_t lo, int64_t hi) {
    return (Pair){b_slice_axis(b, z.re, axis, lo, hi), b_slice_axis(b, z.im, axis, lo, hi)};
}
static inline Pair reversed(Builder *b, Pair z, int64_t axis) {
    return (Pair){b_rev(b, z.re, 1, &axis), b_rev(b, z.im, 1, &axis)};
}
static inline Pair spread(Builder *b, Pair z, uint32_t rank, const Dim *dims, const int64_t *axes) {
    return (Pair){b_broadcast(b, z.re, rank, dims, axes), b_broadcast(b, z.im, rank, dims, axes)};
}
/* Concatenates or stacks pairs: the parameter `key` is the axis. */
Pair fft_joined(Builder *, Prim how, ParamKey key, int64_t axis, uint32_t n, const Pair *);
/* The transform along an axis, by radices. */
Pair fft_transform(Builder *, Pair, Axis);
/* The same of a prime length above FFT_WRITTEN_OUT, by other means (fft_primes.c). */
Pair fft_prime(Builder *, Pair, Axis);
/* Of n = p m real numbers, both odd, n // 2 + 1 results. The first pass makes z_k[q], k < p, of real numbers, and
   transforms of length m of z_k[q] w_n^(k q) are X_(k + p k'). Those with k > p / 2 are left out: they are the
   conjugates of X_(p - k + p (m - 1 - k')). */
bool fft_is_real_prime(int64_t p);
Pair fft_real_prime(Builder *, Val x, Axis, int64_t p);
enum { FFT_WRITTEN_OUT = NUMBERS_PRIME }; /* primes up to this are written out as sums */

#endif
