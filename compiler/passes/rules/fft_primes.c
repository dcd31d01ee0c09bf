/* Fourier transforms of prime lengths, by longer or shorter ones without large primes, or by products with matrices. */
#include "fft.h"

enum { BY_MATRIX = 61 }; /* primes up to this */

/* A power of 2 of at least n. */
static int64_t power_above(int64_t n) {
    int64_t m = 1;
    while (m < n) m *= 2;
    return m;
}
/* The transform of x, n numbers along the axis, as a constant of that shape. */
static Pair spectrum(Builder *b, Dtype d, Axis a, const Number *x) {
    Number *w = arena_new(b->cx->arena, Number, a.n), *y = arena_new(b->cx->arena, Number, a.n);
    for (int64_t k = 0; k < a.n; k++) w[k] = number_root(k, a.n);
    numbers_transform(a.n, x, 1, w, y);
    Dim dims[3] = {a.outer, a.n, a.inner};
    return spread(b, numbers_table(b, d, 1, &dims[1], y), 3, dims, (int64_t[]){1});
}
/* 2jk = j² + k² - (j - k)² turns the sum of a transform into a convolution with exp(πi k²/n), which a longer transform
   computes. */
static Pair bluestein(Builder *b, Pair z, Axis a) {
    Dtype d = shape(b, z)->dtype;
    int64_t n = a.n, m = power_above(2 * n - 1);
    Arena *arena = b->cx->arena;
    Number *chirp = arena_new(arena, Number, n), *x = arena_new(arena, Number, m);
    for (int64_t k = 0; k < m; k++) x[k] = (Number){0, 0};
    for (int64_t k = 0; k < n; k++) {
        chirp[k] = number_root((int64_t)((unsigned __int128)k * (uint64_t)k % (uint64_t)(2 * n)), 2 * n);
        x[k] = x[(m - k) % m] = (Number){chirp[k].re / (double)m, -chirp[k].im / (double)m};
    }
    Dim dims[3] = {a.outer, n, a.inner};
    Axis padded = {a.outer, m, a.inner};
    Pair c = spread(b, numbers_table(b, d, 1, &dims[1], chirp), 3, dims, (int64_t[]){1});
    Dim pads[9] = {0, 0, 0, 0, m - n};
    z = product(b, z, c);
    z = (Pair){b_pad(b, z.re, b_float(b, d, 0), pads), b_pad(b, z.im, b_float(b, d, 0), pads)};
    z = fft_transform(b, z, padded);
    z = fft_transform(b, swapped(product(b, z, spectrum(b, d, padded, x))), padded);
    return product(b, sliced(b, swapped(z), 1, 0, n), c);
}
/* Along axis 1: the elements at these places, n of them. */
static Pair taken(Builder *b, Pair z, const int32_t *places, Dim n) {
    static int64_t outer_inner[2] = {0, 2}, axis = 1;
    const ArrayType *t = shape(b, z);
    Ints along = {&axis, 1};
    Places at = {.n = {.windows = {outer_inner, 2}, .dropped = along, .map = along},
                 .mode = S("GatherScatterMode.PROMISE_IN_BOUNDS"),
                 .unique = true};
    Val indices = b_const(b, type_of(b_types(b), DT_i32, 2, (Dim[]){n, 1}), places);
    Dim sizes[3] = {t->dims[0], 1, t->dims[2]};
    return (Pair){b_gather(b, z.re, indices, sizes, at), b_gather(b, z.im, indices, sizes, at)};
}
/* Elements but the first are powers of g modulo the prime n, of which jk = g^(p - q) for j = g^p, k = g^-q: what they
   add to the sums is a convolution of n - 1 terms, whose length has small factors alone. */
static Pair rader(Builder *b, Pair z, Axis a) {
    int64_t n = a.n, m = n - 1, g = number_generator(n);
    Arena *arena = b->cx->arena;
    int32_t *from = arena_new(arena, int32_t, m), *to = arena_new(arena, int32_t, n);
    Number *x = arena_new(arena, Number, m);
    for (int64_t p = 0, power = 1; p < m; p++, power = power * g % n) from[p] = (int32_t)power;
    for (int64_t q = 0; q < m; q++) {
        int64_t k = from[(m - q) % m];
        Number root = number_root(k, n);
        x[q] = (Number){root.re / (double)m, root.im / (double)m}, to[k] = (int32_t)q + 1;
    }
    to[0] = 0;
    Dim dims[3] = {a.outer, n, a.inner};
    Axis others = {a.outer, m, a.inner};
    Pair first = sliced(b, z, 1, 0, 1), all = fft_transform(b, taken(b, z, from, m), others);
    Pair c = fft_transform(b, swapped(product(b, all, spectrum(b, shape(b, z)->dtype, others, x))), others);
    Pair part[2] = {sliced(b, all, 1, 0, 1), swapped(c)};
    Pair sums = taken(b, fft_joined(b, P_concatenate, K_dimension, 1, 2, part), to, n);
    return plus(b, sums, spread(b, first, 3, dims, (int64_t[]){0, 1, 2}));
}
/* Σ_j m[k, j] x[o, j, i] as [o, k, i]. */
static Val by_rows(Builder *b, Val m, Val x) {
    static int64_t axis = 1;
    Contraction c = {.contracted = {{&axis, 1}, {&axis, 1}}};
    return b_transpose(b, b_dot_general(b, m, x, c), (int64_t[]){1, 0, 2});
}
/* Of real numbers x_j, j < n = 2h + 1: x_0 + Σ cos(2πjk/n) s_j for k ≤ h, and -Σ sin(2πjk/n) d_j for 0 < k ≤ h, with
   s, d = x_j ± x_(n-j) for 0 < j ≤ h: a quarter of the operations of the whole matrix. */
typedef struct {
    Val cosines, sines;
} Halves;
static Halves halves(Builder *b, Val x, Axis a) {
    int64_t n = a.n, h = n / 2, axis = 1;
    Dtype t = b_type(b, x)->dtype;
    Number *w = arena_new(b->cx->arena, Number, (h + 1) * h);
    for (int64_t k = 0; k <= h; k++)
        for (int64_t j = 0; j < h; j++) w[k * h + j] = number_root((j + 1) * k, n); /* cos, -sin */
    Val cosines = numbers_table(b, t, 2, (Dim[]){h + 1, h}, w).re;
    Val sines = numbers_table(b, t, 2, (Dim[]){h, h}, w + h).im;
    Val low = b_slice_axis(b, x, 1, 1, h + 1), high = b_rev(b, b_slice_axis(b, x, 1, h + 1, n), 1, &axis);
    Val first = b_broadcast(b, b_slice_axis(b, x, 1, 0, 1), 3, (Dim[]){a.outer, h + 1, a.inner}, (int64_t[]){0, 1, 2});
    return (Halves){b_add(b, first, by_rows(b, cosines, b_add(b, low, high))), by_rows(b, sines, b_sub(b, low, high))};
}
/* By products with the matrices of cosines and of sines: Z_k, Z_(n-k) = cosines ± i sines. */
static Pair by_matrix(Builder *b, Pair z, Axis a) {
    int64_t h = a.n / 2;
    Halves re = halves(b, z.re, a), im = halves(b, z.im, a);
    Pair even = {re.cosines, im.cosines}, rest = sliced(b, even, 1, 1, h + 1);
    Pair part[3] = {sliced(b, even, 1, 0, 1),
                    {b_sub(b, rest.re, im.sines), b_add(b, rest.im, re.sines)},
                    reversed(b, (Pair){b_add(b, rest.re, im.sines), b_sub(b, rest.im, re.sines)}, 1)};
    return fft_joined(b, P_concatenate, K_dimension, 1, 3, part);
}
bool fft_is_real_prime(int64_t p) { return p > FFT_WRITTEN_OUT && p <= BY_MATRIX; }
Pair fft_real_prime(Builder *b, Val x, Axis a, int64_t p) {
    int64_t m = a.n / p, h = p / 2;
    Dim rows[4] = {a.outer, h + 1, m, a.inner};
    Axis first = {a.outer, p, dim_mul(b_types(b), m, a.inner)},
         then = {dim_mul(b_types(b), a.outer, h + 1), m, a.inner};
    Halves z = halves(b, b_reshape(b, x, 3, (Dim[]){first.outer, p, first.inner}), first);
    Val sines = b_pad(b, z.sines, b_float(b, b_type(b, x)->dtype, 0), (Dim[9]){[3] = 1}); /* a zero for k = 0 */
    Pair w = numbers_roots(b, b_type(b, x)->dtype, 0, h + 1, m, a.n, false);
    Pair y = reshaped(b, (Pair){z.cosines, sines}, 4, rows);
    y = product(b, y, spread(b, w, 4, rows, (int64_t[]){1, 2}));
    y = reshaped(b, fft_transform(b, reshaped(b, y, 3, (Dim[]){then.outer, m, a.inner}), then), 4, rows);
    Pair other = conjugate(b, reversed(b, reversed(b, sliced(b, y, 1, 1, h + 1), 1), 2));
    Pair part[2] = {sliced(b, y, 2, 0, m / 2 + 1), sliced(b, other, 2, 0, m / 2 + 1)};
    y = fft_joined(b, P_concatenate, K_dimension, 1, 2, part);
    y = (Pair){b_transpose(b, y.re, (int64_t[]){0, 2, 1, 3}), b_transpose(b, y.im, (int64_t[]){0, 2, 1, 3})};
    return sliced(b, reshaped(b, y, 3, (Dim[]){a.outer, (m / 2 + 1) * p, a.inner}), 1, 0, a.n / 2 + 1);
}
/* What a transform costs: additions, of sums that are written out. */
static int64_t additions(int64_t n) {
    int64_t sum = 0;
    for (int64_t rest = n, p; rest > 1; rest /= p) p = numbers_least_prime(rest), sum += p - 1;
    return n * sum;
}
/* Is Rader's convolution faster? Where lengths are no multiples of vectors, it takes half as long again: 211 numbers by
   a transform of 210 take 1.3 times as long as by one of 512, 701 by one of 700 0.7 times as long as by 2048. */
static bool is_shorter(int64_t n) {
    int64_t m = n - 1;
    if (n > INT32_MAX || numbers_largest_prime(m) > FFT_WRITTEN_OUT) return false;
    int64_t cost = additions(m);
    if (m % 8) cost += cost / 2;
    return additions(power_above(2 * n - 1)) > cost + cost / 4;
}
Pair fft_prime(Builder *b, Pair z, Axis a) {
    return (a.n <= BY_MATRIX ? by_matrix : is_shorter(a.n) ? rader : bluestein)(b, z, a);
}
