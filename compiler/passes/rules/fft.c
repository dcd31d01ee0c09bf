/* Fourier transforms, expanded into equations on real and imaginary parts; for unknown lengths, a call of
   runtime/fft.c.

   A transform of n = r₁ r₂ … goes through its radices: each pass is one kernel that reads r elements, turns them by
   roots of unity, transforms them by sums that are written out, and stores. After passes whose product is P, with n =
   P·Q,
       z[k, q] = Σ_t x[q + Q t] w_P^(t k),   w_P = exp(-2πi / P),   k < P, q < Q,
   and the pass of radix r, Q = r Q', turns it into
       z'[k + P k', q'] = Σ_j w_r^(j k') (w_(P r)^(j k) z[k, q' + Q' j]):
   the data come out in order, and what is next to each other in memory stays so, q' in vector lanes (Stockham's method:
   W. T. Cochran et al., What is the fast Fourier transform?, Proc. IEEE 55, 1967; C. Van Loan, Computational Frameworks
   for the FFT, 1992, 1.7). A larger prime is a product with the matrix of its roots, one larger still a convolution (C.
   M. Rader, Discrete Fourier transforms when the number of data samples is prime, Proc. IEEE 56, 1968; L. Bluestein, A
   linear filtering approach to the computation of discrete Fourier transform, IEEE Trans. AU 18, 1970). */
#include "../../typecheck/rule.h"
#include "../transform/transform.h"
#include "fft.h"
#include <assert.h>
#include <math.h>

enum { MOST_RADIX = 16 };
enum { MOST_FACTORS = 64 };

/* ---- arithmetic of pairs */
static Val add(Builder *b, Val x, Val y) { return b_add(b, x, y); }
static Val sub(Builder *b, Val x, Val y) { return b_sub(b, x, y); }
static Val mul(Builder *b, Val x, Val y) { return b_mul(b, x, y); }
static Val times(Builder *b, Val x, double c) { return mul(b, x, b_full_like(b, x, c)); }

/* ---- unrolled transforms of n arrays of one shape */
/* z exp(-2πi a / n) */
static Pair turned(Builder *b, Pair z, int64_t a, int64_t n) {
    a %= n;
    if (a == 0) return z;
    if (4 * a == n) return (Pair){z.im, b_neg(b, z.re)};
    if (2 * a == n) return (Pair){b_neg(b, z.re), b_neg(b, z.im)};
    if (4 * a == 3 * n) return (Pair){b_neg(b, z.im), z.re};
    Number w = number_root(a, n);
    if (8 * a % n == 0) { /* both parts of w have one size */
        Val sum = times(b, add(b, z.re, z.im), sqrt(0.5)), difference = times(b, sub(b, z.im, z.re), sqrt(0.5));
        if (8 * a == n) return (Pair){sum, difference};
        if (8 * a == 3 * n) return (Pair){difference, b_neg(b, sum)};
        if (8 * a == 5 * n) return (Pair){b_neg(b, sum), b_neg(b, difference)};
        return (Pair){b_neg(b, difference), sum};
    }
    return product(b, z, (Pair){b_full_like(b, z.re, w.re), b_full_like(b, z.re, w.im)});
}
/* For an odd prime: x_j and x_(p-j) are multiplied by cosines in their sum and by sines in their difference. */
static void odd_sums(Builder *b, int64_t p, const Pair *x, Pair *y) {
    Pair sum[FFT_WRITTEN_OUT], difference[FFT_WRITTEN_OUT];
    y[0] = x[0];
    for (int64_t j = 1; 2 * j < p; j++) {
        sum[j] = plus(b, x[j], x[p - j]), difference[j] = minus(b, x[j], x[p - j]);
        y[0] = plus(b, y[0], sum[j]);
    }
    for (int64_t k = 1; 2 * k < p; k++) {
        Pair even = x[0], odd = {0};
        for (int64_t j = 1; 2 * j < p; j++) {
            Number w = number_root(j * k, p);
            Val c = b_full_like(b, x[0].re, w.re), s = b_full_like(b, x[0].re, -w.im);
            even = (Pair){b_fma(b, sum[j].re, c, even.re), b_fma(b, sum[j].im, c, even.im)};
            if (j == 1)
                odd = (Pair){mul(b, difference[j].re, s), mul(b, difference[j].im, s)};
            else
                odd = (Pair){b_fma(b, difference[j].re, s, odd.re), b_fma(b, difference[j].im, s, odd.im)};
        }
        y[k] = (Pair){add(b, even.re, odd.im), sub(b, even.im, odd.re)};
        y[p - k] = (Pair){sub(b, even.re, odd.im), add(b, even.im, odd.re)};
    }
}
/* x[0], x[step], … into y[n]; n ≤ MOST_RADIX or a prime ≤ FFT_WRITTEN_OUT. */
static void sums(Builder *b, int64_t n, const Pair *x, int64_t step, Pair *y) {
    Pair part[MOST_RADIX], column[MOST_RADIX] = {{0}}, out[MOST_RADIX];
    int64_t a = n % 4 == 0 && n > 4 ? 4 : 2;
    while (n % a) a++;
    if (n == 1) {
        y[0] = x[0];
    } else if (n == 2) {
        y[0] = plus(b, x[0], x[step]), y[1] = minus(b, x[0], x[step]);
    } else if (n == a) {
        for (int64_t j = 0; j < n; j++) column[j] = x[j * step];
        odd_sums(b, n, column, y);
    } else {
        int64_t m = n / a;
        for (int64_t j = 0; j < a; j++) {
            sums(b, m, x + j * step, a * step, part + j * m);
            for (int64_t k = 0; k < m; k++) part[j * m + k] = turned(b, part[j * m + k], j * k, n);
        }
        for (int64_t k = 0; k < m; k++) {
            sums(b, a, part + k, m, out);
            for (int64_t j = 0; j < a; j++) y[k + m * j] = out[j];
        }
    }
}

/* ---- one axis */
static Pair in_place(Builder *b, Pair z, Axis a, int64_t n) { return reshaped(b, z, 3, (Dim[]){a.outer, n, a.inner}); }
Pair fft_joined(Builder *b, Prim how, ParamKey key, int64_t axis, uint32_t n, const Pair *x) {
    Val *part = arena_new(b->cx->arena, Val, n), out[2];
    Param p = p_int(key, axis);
    for (uint32_t k = 0; k < 2; k++) {
        for (uint32_t i = 0; i < n; i++) part[i] = k ? x[i].im : x[i].re;
        out[k] = build(b, how, n, part, 1, &p);
    }
    return (Pair){out[0], out[1]};
}
/* Along the axis: x reversed. */

/* The largest divisor of n that is at most `most` and a multiple of `unit`; 0: there is none. */
static int64_t divisor(int64_t n, int64_t most, int64_t unit) {
    int64_t d = most - most % unit;
    while (d > 0 && n % d) d -= unit;
    return d;
}
/* The number of passes for n, whose prime factors are small. */
static uint32_t passes_of(int64_t n) {
    uint32_t count = 0;
    for (; n > 1; count++) n /= divisor(n, MOST_RADIX, 1);
    return count;
}
/* The radices, from the first pass to the last: primes above FFT_WRITTEN_OUT, then as few others as possible, of like
   size. */
static uint32_t radices(int64_t n, int64_t *r) {
    uint32_t count = 0;
    for (int64_t rest = n, p; rest > 1; rest /= p) {
        p = numbers_least_prime(rest);
        if (p > FFT_WRITTEN_OUT) r[count++] = p, n /= p;
    }
    while (n > 1) {
        uint32_t left = passes_of(n);
        int64_t best = divisor(n, MOST_RADIX, 1);
        for (int64_t k = best; k > 1; k--)
            if (n % k == 0 && pow((double)k, left) >= (double)n * 0.999 && passes_of(n / k) < left) best = k;
        r[count++] = best, n /= best;
    }
    return count;
}
/* The passes: [outer, P, r, Q, inner] → [outer, r, P, Q, inner]. */
static Pair written_out(Builder *b, Pair z, const Dim *all, int64_t P, int64_t r) {
    Dim one[3] = {all[0], all[1], all[3]};
    Pair x[MOST_RADIX] = {{0}}, y[MOST_RADIX], w = {0};
    if (P > 1) w = numbers_roots(b, shape(b, z)->dtype, 1, r, P, P * r, false);
    for (int64_t j = 0; j < r; j++) {
        x[j] = reshaped(b, sliced(b, z, 2, j, j + 1), 3, one);
        if (P == 1 || j == 0) continue;
        Pair row = reshaped(b, sliced(b, w, 0, j - 1, j), 1, &one[1]);
        x[j] = product(b, x[j], spread(b, row, 3, one, (int64_t[]){1}));
    }
    sums(b, r, x, 1, y);
    return fft_joined(b, P_stack, K_axis, 1, (uint32_t)r, y);
}
static Pair large_prime(Builder *b, Pair z, const Dim *all, int64_t P, int64_t r) {
    Axis a = {dim_mul(b_types(b), all[0], P), r, all[3]};
    static const int64_t there[4] = {0, 2, 1, 3};
    if (P > 1)
        z = product(b, z,
                    spread(b, numbers_roots(b, shape(b, z)->dtype, 0, r, P, P * r, true), 4, all, (int64_t[]){1, 2}));
    z = reshaped(b, fft_prime(b, reshaped(b, z, 3, (Dim[]){a.outer, r, a.inner}), a), 4, all);
    return P == 1 ? z : (Pair){b_transpose(b, z.re, there), b_transpose(b, z.im, there)};
}
Pair fft_transform(Builder *b, Pair z, Axis a) {
    int64_t r[MOST_FACTORS], P = 1, Q = a.n;
    uint32_t n = radices(a.n, r);
    for (uint32_t i = 0; i < n && !b->failed; i++) {
        Q /= r[i];
        Dim all[4] = {a.outer, P, r[i], dim_mul(b_types(b), Q, a.inner)};
        z = (r[i] <= MOST_RADIX ? written_out : large_prime)(b, reshaped(b, z, 4, all), all, P, r[i]);
        P *= r[i];
    }
    return in_place(b, z, a, a.n);
}
/* Of the complex numbers that n real ones are transformed as. */
static int64_t complex_length(int64_t n) { return n % 2 ? n : n / 2; }
/* X_k, 0 < k < h, of `transform_real`. */
static Pair inner_results(Builder *b, Pair z, Axis a) {
    int64_t n = a.n, h = n / 2;
    Dim most[3] = {a.outer, h - 1, a.inner};
    Number *w = arena_new(b->cx->arena, Number, h);
    for (int64_t k = 1; k < h; k++) w[k - 1] = number_product(number_root(k, n), (Number){0, -0.5});
    z = sliced(b, z, 1, 1, h);
    Pair other = conjugate(b, reversed(b, z, 1)), sum = plus(b, z, other);
    Pair turn = spread(b, numbers_table(b, shape(b, z)->dtype, 1, &most[1], w), 3, most, (int64_t[]){1});
    return plus(b, (Pair){times(b, sum.re, 0.5), times(b, sum.im, 0.5)}, product(b, minus(b, z, other), turn));
}
/* How many sequences `transform_odd` has. 0: it is not done so; without rows side by side, for so few results that they
   would not be written where they belong, and on a device, where it would take more launches. */
enum { FEW_RESULTS = 4096 };
static int64_t sequences(const Builder *b, Axis a) {
    int64_t r = MOST_RADIX;
    while (r * r > a.n || a.n % r) r--;
    bool many = a.inner != 1 && a.outer * a.inner * (a.n / 2) > FEW_RESULTS;
    return a.n % 2 && r > 1 && many && !options_for_device(b->cx->options) ? r : 0;
}
/* One more zero along the second of four axes. */
static Val one_more(Builder *b, Val x) {
    enum { AXES = 4, HIGH = 1 };
    return b_pad(b, x, b_float(b, b_type(b, x)->dtype, 0), (Dim[3 * AXES]){[3 + HIGH] = 1});
}
/* x_j, x_(j+r), … as the parts of complex numbers, two of them of each: [outer, r // 2 + 1, m, inner]. */
static Pair paired(Builder *b, Val x, Axis a, int64_t r) {
    int64_t m = a.n / r;
    Dim all[4] = {a.outer, m, r, a.inner}, limit[4] = {a.outer, r, m, a.inner};
    static const int64_t there[4] = {0, 2, 1, 3}, every_other[4] = {1, 2, 1, 1};
    x = b_transpose(b, b_reshape(b, x, 4, all), there);
    Val re = b_slice(b, x, (Dim[4]){0}, limit, every_other);
    Val im = b_slice(b, x, (Dim[4]){0, 1}, limit, every_other);
    return (Pair){re, one_more(b, im)};
}
/* S_j w_n^(j k), 0 < k <= m / 2, of the transforms Z of all pairs: twice the first of a pair is Z_k + conj Z_(m-k), 2i
   times the second Z_k - conj Z_(m-k). */
static void turned_sequences(Builder *b, Pair z, Axis a, int64_t r, Pair *turned) {
    int64_t m = a.n / r, h = m / 2;
    Dim one[3] = {a.outer, m, a.inner}, half[3] = {a.outer, h, a.inner};
    Number *w = arena_new(b->cx->arena, Number, r * h);
    for (int64_t j = 0; j < r; j++) {
        Number scale = j + 1 == r ? (Number){1, 0} : j % 2 ? (Number){0, -0.5} : (Number){0.5, 0};
        for (int64_t k = 1; k <= h; k++) w[j * h + k - 1] = number_product(number_root(j * k, a.n), scale);
    }
    Pair all = numbers_table(b, shape(b, z)->dtype, 2, (Dim[]){r, h}, w);
    for (int64_t j = 0; j < r; j++) {
        Pair row = reshaped(b, sliced(b, all, 0, j, j + 1), 1, &half[1]);
        Pair two = reshaped(b, sliced(b, z, 1, j / 2, j / 2 + 1), 3, one), own = sliced(b, two, 1, 1, h + 1);
        Pair other = conjugate(b, reversed(b, sliced(b, two, 1, m - h, m), 1));
        if (j + 1 < r) own = j % 2 ? minus(b, own, other) : plus(b, own, other);
        turned[j] = product(b, own, spread(b, row, 3, half, (int64_t[]){1}));
    }
}
/* S_j[0], which are real. */
static void first_of_sequences(Builder *b, Pair z, Axis a, int64_t r, Pair *first) {
    Dim one[3] = {a.outer, 1, a.inner};
    z = sliced(b, z, 2, 0, 1);
    for (int64_t j = 0; j < r; j++) {
        Pair two = reshaped(b, sliced(b, z, 1, j / 2, j / 2 + 1), 3, one);
        first[j].re = j % 2 ? two.im : two.re;
        first[j].im = b_full_like(b, two.re, 0);
    }
}
/* Of n = r m real numbers, both odd, n // 2 + 1 results. Of the r sequences x_j, x_(j+r), … the transforms S_j give
       X_(k + m k') = Σ_j w_r^(j k') w_n^(j k) S_j[k],   k < m, k' < r.
   Those with k <= m / 2 are enough, the others are their conjugates: X_(m - k + m k') = conj X_(k + m (r - 1 - k')). */
static Pair transform_odd(Builder *b, Val x, Axis a, int64_t r) {
    assert(dim_is_const(a.outer) && dim_is_const(a.inner)); /* rows side by side */
    assert(r % 2 && a.n % (2 * r) == r && r <= MOST_RADIX);
    int64_t m = a.n / r, c = r / 2 + 1;
    Dim all[3] = {dim_mul(b_types(b), a.outer, c), m, a.inner}, pairs[4] = {a.outer, c, m, a.inner};
    Pair z = fft_transform(b, reshaped(b, paired(b, x, a, r), 3, all), (Axis){all[0], m, a.inner});
    Pair in[MOST_RADIX], y[MOST_RADIX], part[3];
    z = reshaped(b, z, 4, pairs);
    first_of_sequences(b, z, a, r, in);
    sums(b, r, in, 1, y);
    part[0] = fft_joined(b, P_stack, K_axis, 1, (uint32_t)c, y);
    turned_sequences(b, z, a, r, in);
    sums(b, r, in, 1, y);
    z = fft_joined(b, P_stack, K_axis, 1, (uint32_t)r, y);
    part[1] = sliced(b, z, 1, 0, c);
    z = conjugate(b, reversed(b, reversed(b, sliced(b, z, 1, c, r), 1), 2));
    part[2] = (Pair){one_more(b, z.re), one_more(b, z.im)}; /* without meaning: as many rows as of the others */
    z = fft_joined(b, P_concatenate, K_dimension, 2, 3, part);
    z = reshaped(b, z, 3, (Dim[]){a.outer, c * m, a.inner});
    return sliced(b, z, 1, 0, a.n / 2 + 1);
}
/* Of real numbers x, n // 2 + 1 results. An even number of them are the parts of half as many complex ones z, z_k =
   x_2k + i x_(2k+1), whose transform Z gives
       X_k = (Z_k + conj Z_(h-k)) / 2 - i w_n^k (Z_k - conj Z_(h-k)) / 2,   h = n / 2, 0 < k < h;
   X_0 and X_h are the sum and the difference of the parts of Z_0. */
static Pair transform_real(Builder *b, Val x, Axis a) {
    int64_t n = a.n, h = n / 2;
    if (b->failed) return (Pair){VAL_FAILED, VAL_FAILED};
    int64_t r = sequences(b, a);
    if (r) return transform_odd(b, x, a, r);
    int64_t p[MOST_FACTORS];
    if (n % 2 && radices(n, p) && fft_is_real_prime(p[0]) && !options_for_device(b->cx->options))
        return fft_real_prime(b, x, a, p[0]);
    if (n % 2) {
        Pair z = fft_transform(b, (Pair){x, b_full_like(b, x, 0)}, a);
        return sliced(b, z, 1, 0, h + 1);
    }
    Dim pairs[4] = {a.outer, h, 2, a.inner}, half[3] = {a.outer, h, a.inner};
    x = b_reshape(b, x, 4, pairs);
    Pair z = reshaped(b, (Pair){b_slice_axis(b, x, 2, 0, 1), b_slice_axis(b, x, 2, 1, 2)}, 3, half);
    z = fft_transform(b, z, (Axis){a.outer, h, a.inner});
    Pair first = sliced(b, z, 1, 0, 1), part[3];
    Val none = b_full_like(b, first.re, 0);
    uint32_t parts = 0;
    part[parts++] = (Pair){add(b, first.re, first.im), none};
    if (h > 1) part[parts++] = inner_results(b, z, a);
    part[parts++] = (Pair){sub(b, first.re, first.im), none};
    return fft_joined(b, P_concatenate, K_dimension, 1, parts, part);
}
/* The inverse, times n, of n // 2 + 1 numbers; the imaginary part of the first is ignored, and for even n that of the
   last. */
static Val invert_real(Builder *b, Pair z, Axis a) {
    int64_t n = a.n, h = n / 2;
    if (b->failed) return VAL_FAILED;
    Dtype d = shape(b, z)->dtype;
    z.im = b_pad(b, b_slice_axis(b, z.im, 1, 1, n % 2 ? h + 1 : h), b_float(b, d, 0),
                 (Dim[]){0, 0, 0, 1, n % 2 ? 0 : 1, 0, 0, 0, 0});
    if (n % 2) {
        Pair rest = conjugate(b, reversed(b, sliced(b, z, 1, 1, h + 1), 1));
        if (h) z = fft_joined(b, P_concatenate, K_dimension, 1, 2, (Pair[]){z, rest});
        return fft_transform(b, swapped(z), a).im;
    }
    Dim half[3] = {a.outer, h, a.inner}, pairs[4] = {a.outer, h, 1, a.inner};
    Number *w = arena_new(b->cx->arena, Number, h);
    for (int64_t k = 0; k < h; k++) {
        Number back = number_root(k, n);
        w[k] = (Number){back.im, back.re}; /* i conj w_n^k */
    }
    Pair turn = spread(b, numbers_table(b, d, 1, &half[1], w), 3, half, (int64_t[]){1});
    Pair other = conjugate(b, sliced(b, reversed(b, z, 1), 1, 0, h));
    z = sliced(b, z, 1, 0, h);
    z = plus(b, plus(b, z, other), product(b, minus(b, z, other), turn));
    z = swapped(fft_transform(b, swapped(z), (Axis){a.outer, h, a.inner}));
    z = reshaped(b, z, 4, pairs);
    Val x = b_concatenate(b, 2, (Val[]){z.re, z.im}, 2);
    return b_reshape(b, x, 3, (Dim[]){a.outer, n, a.inner});
}

/* ---- rows side by side: [rows, n] is moved to [n, rows], where every pass has whole vectors */
enum { MANY_ROWS = 16, SHORT_ROW = 8, LONG_ROW = 200, LONGEST_ROW = 1000 };
static bool in_few_vectors(int64_t apart) { return apart <= 4 || apart == 8 || apart == 16; }
/* Is moving worth it? It is if q' is short in a pass before the last, or if the last, which reads elements r apart,
   does not read them as whole vectors; for a real transform, which has pairs of rows before or after, even with one
   pass. */
static bool side_by_side(const Builder *b, Axis a, int64_t n, bool real) {
    int64_t r[MOST_FACTORS], Q = n;
    uint32_t passes = radices(n, r);
    bool rows = a.inner == 1 && dim_is_const(a.outer) && a.outer >= MANY_ROWS;
    if (options_for_device(b->cx->options) || !rows || passes == 0) return false;
    if (passes == 1) return real && n > 2;
    for (uint32_t i = 0; i + 1 < passes; i++) {
        Q /= r[i];
        if (Q < SHORT_ROW) return true;
    }
    return !in_few_vectors(r[passes - 1]);
}
/* Rows move in groups that fill a cache line, so that what a pass reads lies near: 16,384 rows of 250 are 1.4 times
   as fast as in groups of 64. */
static Axis moved_axis(Axis a, int64_t n) {
    Dim group = a.outer % MANY_ROWS ? a.outer : MANY_ROWS;
    return (Axis){a.outer / group, n, group};
}
static Val moved(Builder *b, Val x, Dim groups, Dim rows, Dim columns) {
    return b_transpose(b, b_reshape(b, x, 3, (Dim[]){groups, rows, columns}), (int64_t[]){0, 2, 1});
}
static Val moved_there(Builder *b, Val x, Axis to) { return moved(b, x, to.outer, to.inner, to.n); }
static Val moved_back(Builder *b, Val x, Axis from, Dim n) { return moved(b, x, from.outer, n, from.inner); }
static Pair both_back(Builder *b, Pair z, Axis from, Dim n) {
    return (Pair){moved_back(b, z.re, from, n), moved_back(b, z.im, from, n)};
}
static Pair transform_rows(Builder *b, Val x, Axis a) {
    int64_t n = a.n;
    if (!side_by_side(b, a, complex_length(n), true))
        return transform_real(b, b_reshape(b, x, 3, (Dim[]){a.outer, n, a.inner}), a);
    Axis to = moved_axis(a, n);
    return both_back(b, transform_real(b, b_stored(b, moved_there(b, x, to)), to), to, n / 2 + 1);
}
static Pair both_there(Builder *b, Pair z, Axis to) {
    return (Pair){b_stored(b, moved_there(b, z.re, to)), b_stored(b, moved_there(b, z.im, to))};
}
static Pair transform_axis(Builder *b, Pair z, Axis a) {
    if (!side_by_side(b, a, a.n, false)) return fft_transform(b, in_place(b, z, a, a.n), a);
    Axis to = moved_axis(a, a.n);
    return both_back(b, fft_transform(b, both_there(b, z, to), to), to, a.n);
}
static Val invert_rows(Builder *b, Pair z, Axis a) {
    int64_t n = a.n, given = n / 2 + 1;
    if (!side_by_side(b, a, complex_length(n), true)) return invert_real(b, in_place(b, z, a, given), a);
    Axis to = moved_axis(a, n);
    z = both_there(b, z, (Axis){to.outer, given, to.inner});
    return moved_back(b, invert_real(b, z, to), to, n);
}

/* ---- the primitive */
typedef enum { FFT, IFFT, RFFT, IRFFT } Kind;
static Kind kind_of(Builder *b, const Eqn *e) {
    Str s = param_word(e, K_fft_type);
    const char *last = &s.at[s.n - 1];
    if (*last >= '0' && *last <= '3') return (Kind)(*last - '0');
    bool real = b_type(b, e->in.at[0])->dtype == dtype_real(b_type(b, e->in.at[0])->dtype);
    if (real) return RFFT;
    if (dtype_info[b_type(b, e->out.at[0])->dtype].kind != DK_COMPLEX) return IRFFT;
    return s.n >= 4 && s.at[s.n - 4] == 'I' ? IFFT : FFT;
}
/* The axis in an array of these extents. */
static Axis axis_of(Builder *b, uint32_t rank, const Dim *dims, uint32_t axis, int64_t n) {
    Axis a = {1, n, 1};
    for (uint32_t i = 0; i < rank; i++) {
        Dim *product = i < axis ? &a.outer : &a.inner;
        if (i != axis) *product = dim_mul(b_types(b), *product, dims[i]);
    }
    return a;
}
/* Unknown lengths: by runtime/fft.c. */
static Val by_runtime(Builder *b, const Eqn *e, Kind kind) {
    const ArrayType *t = b_type(b, e->out.at[0]);
    Dims lengths = param_dims(e, K_fft_lengths);
    Dim sizes[7] = {kind, dtype_info[dtype_real(t->dtype)].bits / 8, 1, lengths.n};
    for (uint32_t i = 0; i + lengths.n < t->rank; i++) sizes[2] = dim_mul(b_types(b), sizes[2], t->dims[i]);
    for (uint32_t i = 0; i < lengths.n; i++) sizes[4 + i] = lengths.at[i];
    Type type = val_type(b->cx, e->out.at[0]);
    return b_runtime(b, "fft", 4 + lengths.n, sizes, 1, e->in.at, 1, &type).at[0];
}
/* If there are more bytes than this, groups of rows go through all passes one after the other, each within the nearer
   caches, where threads share little work at a time: those of GROUP_BYTES (half of it is as fast at one thread, but
   leaves threads too little to share), or if the rows cannot be divided so, down to a GROUP_SHARE-th
   of it. With several axes, what is transformed together stands for a row: 16 real arrays of 256 x 256 take 2.1 ms
   so, not 3.2. */
enum { MOST_TOGETHER = 1 << 21, GROUP_BYTES = 1 << 17, GROUP_SHARE = 8 };
static Dim rows_of(Builder *b, const ArrayType *t, uint32_t axes) {
    return axis_of(b, t->rank, t->dims, t->rank - axes, 0).outer;
}
static int64_t row_bytes(Builder *b, const ArrayType *t, uint32_t axes) {
    Dim n = 1;
    for (uint32_t i = t->rank - axes; i < t->rank; i++) n = dim_mul(b_types(b), n, t->dims[i]);
    return dim_is_const(n) ? n * (int64_t)dtype_bytes(t->dtype) : 0;
}
/* Rows that are moved: whole groups of MANY_ROWS, which may have GROUP_MOST bytes, or else at least as many rows. 1000
   complex rows of 1000 in groups of 10 took 5.0 ms, of 25 3.2; 512 of 4000 in groups of 4 7.3 ms, of 16 5.5. */
enum { GROUP_MOST = 1 << 19 };
static Dim moved_together(Dim rows, int64_t bytes) {
    Dim most = GROUP_BYTES / bytes, group = 0;
    if (MANY_ROWS <= GROUP_MOST / bytes) group = divisor(rows, most > MANY_ROWS ? most : MANY_ROWS, MANY_ROWS);
    if (!group || GROUP_SHARE * group < most) group = divisor(rows, most, 1);
    if (group < MANY_ROWS) group = divisor(rows, 2 * most, 1);
    return group < MANY_ROWS ? 0 : group;
}
/* The bytes of a row before or after, whichever are more; 0: they are not known, or a device does all rows at once. */
static int64_t more_bytes(Builder *b, const Eqn *e, uint32_t axes) {
    int64_t from = row_bytes(b, b_type(b, e->in.at[0]), axes), to = row_bytes(b, b_type(b, e->out.at[0]), axes);
    return options_for_device(b->cx->options) || !from || !to ? 0 : from > to ? from : to;
}
/* Of the complex numbers that the first axis is transformed as. */
static int64_t length_of(const Eqn *e, Kind kind) {
    int64_t n = param_dims(e, K_fft_lengths).at[0];
    return kind == RFFT || kind == IRFFT ? complex_length(n) : n;
}
static bool are_moved(Builder *b, const Eqn *e, Kind kind, Dim rows) {
    int64_t n = length_of(e, kind);
    bool real = kind == RFFT || kind == IRFFT;
    return param_dims(e, K_fft_lengths).n == 1 && side_by_side(b, (Axis){rows, n, 1}, n, real);
}
/* The rows of such a group; 0: there are no groups. */
static Dim rows_together(Builder *b, const Eqn *e, Kind kind) {
    Dims lengths = param_dims(e, K_fft_lengths);
    Dim rows = rows_of(b, b_type(b, e->in.at[0]), lengths.n), group = 0;
    int64_t bytes = more_bytes(b, e, lengths.n);
    bool more = b_type(b, e->in.at[0])->rank > lengths.n; /* axes: of one array they are left out */
    if (!dim_is_const(rows) || !bytes || rows <= MOST_TOGETHER / bytes) return 0;
    if (rows == 1) return more && lengths.n > 1;
    int64_t most = GROUP_BYTES / bytes;
    if (lengths.n > 1 && !most) return 1;
    if (are_moved(b, e, kind, rows)) group = moved_together(rows, bytes);
    if (!group) group = divisor(rows, most, 1);
    return GROUP_SHARE * group >= most ? group : 0;
}
/* Rows that are moved, if whole groups of MANY_ROWS are transformed apart from the rest: where rows are long or many,
   and the rest thus small. 322 real rows of 625 take 0.54 ms so, not 0.95. The number of those in groups; 0: all are
   transformed together. */
static Dim rows_in_groups(Builder *b, const Eqn *e, Kind kind) {
    Dim rows = rows_of(b, b_type(b, e->in.at[0]), param_dims(e, K_fft_lengths).n);
    int64_t n = length_of(e, kind);
    if (!dim_is_const(rows) || rows % MANY_ROWS == 0) return 0;
    Dim least = n >= LONGEST_ROW ? MANY_ROWS : n >= LONG_ROW ? 4 * MANY_ROWS : 32 * MANY_ROWS;
    return rows > least && are_moved(b, e, kind, rows) ? rows - rows % MANY_ROWS : 0;
}
static Val in_two_parts(Builder *b, const Eqn *e, Dim first) {
    const ArrayType *from = b_type(b, e->in.at[0]), *to = b_type(b, e->out.at[0]);
    Dim dims[2] = {rows_of(b, from, 1), from->dims[from->rank - 1]};
    Val x = b_reshape(b, e->in.at[0], 2, dims), y[2];
    for (uint32_t i = 0; i < 2; i++) {
        Val part = b_slice_axis(b, x, 0, i ? first : 0, i ? dims[0] : first);
        y[i] = build(b, P_fft, 1, &part, e->params.n, e->params.at);
    }
    return b_reshape(b, b_concatenate(b, 2, y, 0), to->rank, to->dims);
}
static Val in_groups(Builder *b, const Eqn *e, Dim group) {
    const ArrayType *from = b_type(b, e->in.at[0]), *to = b_type(b, e->out.at[0]);
    uint32_t axes = param_dims(e, K_fft_lengths).n, more = group > 1 ? 2 : 1;
    Dim dims[MAX_RANK + 2] = {rows_of(b, from, axes) / group, group};
    memcpy(dims + more, from->dims + from->rank - axes, axes * sizeof *dims);
    Val x = b_reshape(b, e->in.at[0], axes + more, dims);
    Type part = type_of(b_types(b), from->dtype, axes + more - 1, dims + 1);
    Inner turn = b_inner(b, 1, &part);
    Val y = build(b, P_fft, 1, turn.in.at, e->params.n, e->params.at);
    b_inner_end(b, &turn, 1, &y);
    return b_reshape(b, b_scan(b, &turn, (Loop){.length = dims[0]}, 1, &x).at[0], to->rank, to->dims);
}

/* ---- several axes of one large array. Along the first, n = r m, the transforms of every r-th are all but the pass of
   radix r: with those along the other axes they are done one after the other, within the nearer caches. So memory is
   read and written twice, not by each pass: a real array of 1024 x 1024 takes 2.9 ms, not 3.8. */
enum { LEAST_STEPS = 4, TO_REAL_FROM = 1 << 23 };
/* How many parts there are; 0: it is not done so. */
static int64_t steps_of(Builder *b, const Eqn *e, Kind kind) {
    Dims lengths = param_dims(e, K_fft_lengths);
    bool one = b_type(b, e->in.at[0])->rank == lengths.n && lengths.n > 1;
    if (!one || more_bytes(b, e, lengths.n) <= (kind == IRFFT ? TO_REAL_FROM : MOST_TOGETHER)) return 0;
    int64_t r = divisor(lengths.at[0], MOST_RADIX, 1);
    return r < LEAST_STEPS || r == lengths.at[0] ? 0 : r;
}
/* x[at], x[at + r], … */
static Val every(Builder *b, Val x, int64_t r, Val at) {
    const ArrayType *t = b_type(b, x);
    Val starts[MAX_RANK];
    Dim sizes[MAX_RANK], first[MAX_RANK] = {0};
    int64_t strides[MAX_RANK];
    for (uint32_t i = 0; i < t->rank; i++) {
        starts[i] = i ? b_number(b, DT_i32, 0) : at;
        sizes[i] = i ? t->dims[i] : t->dims[0] - r + 1, strides[i] = i ? 1 : r;
    }
    return b_slice(b, b_dynamic_slice(b, x, starts, sizes), first, sizes, strides);
}
/* The transform of each part along all axes. */
static Val transform_part(Builder *b, const Eqn *e, int64_t r, Val x) {
    Dims lengths = param_dims(e, K_fft_lengths);
    Dim shorter[MAX_RANK];
    memcpy(shorter, lengths.at, lengths.n * sizeof *shorter);
    shorter[0] /= r;
    Param params[2] = {p_dims(b, K_fft_lengths, lengths.n, shorter), *param_find(e, K_fft_type)};
    return build(b, P_fft, 1, &x, 2, params);
}
/* z[j], one of r that are [m, inner] each, times w_(m r)^(j k). */
static Pair turned_part(Builder *b, Pair z, Pair w, int64_t j, const Dim *part) {
    if (j == 0) return z;
    Pair row = reshaped(b, sliced(b, w, 0, j - 1, j), 1, part);
    return product(b, z, spread(b, row, 2, part, (int64_t[]){0}));
}
/* The transforms of the r parts, [r, m, inner]. */
static Pair parts_of(Builder *b, const Eqn *e, Kind kind, int64_t r, const Dim *all) {
    Val at = b_iota(b, DT_i32, 1, &all[0], 0);
    Type i32 = type_of(b_types(b), DT_i32, 0, NULL);
    Inner turn = b_inner(b, 1, &i32);
    Val y = transform_part(b, e, r, every(b, e->in.at[0], r, turn.in.at[0]));
    Pair z = reshaped(b, (Pair){b_real(b, y), b_imag(b, y)}, 2, &all[1]);
    if (kind == IFFT) z = swapped((Pair){times(b, z.re, 1 / (double)r), times(b, z.im, 1 / (double)r)});
    b_inner_end(b, &turn, 2, (Val[]){z.re, z.im});
    Vals parts = b_scan(b, &turn, (Loop){.length = r}, 1, &at);
    return (Pair){parts.at[0], parts.at[1]};
}
static Val in_steps(Builder *b, const Eqn *e, Kind kind, int64_t r) {
    const ArrayType *to = b_type(b, e->out.at[0]);
    Dim all[3] = {r, to->dims[0] / r, axis_of(b, to->rank, to->dims, 0, 0).inner};
    Pair z = parts_of(b, e, kind, r, all), w = numbers_roots(b, shape(b, z)->dtype, 1, r, all[1], all[1] * r, false);
    Pair x[MOST_RADIX], y[MOST_RADIX];
    for (int64_t j = 0; j < r; j++)
        x[j] = turned_part(b, reshaped(b, sliced(b, z, 0, j, j + 1), 2, &all[1]), w, j, &all[1]);
    sums(b, r, x, 1, y);
    z = reshaped(b, fft_joined(b, P_stack, K_axis, 0, (uint32_t)r, y), to->rank, to->dims);
    if (kind == IFFT) z = swapped(z);
    return b_complex(b, z.re, z.im);
}
/* The other way round for real results: first the pass of radix r, whose k-th results are those of which the others
   make the elements k, k + r, … These move once more, so that it is slower where the last cache holds all: from
   TO_REAL_FROM bytes on, as 2048 x 2048 results take 18 ms so, not 30, but 1024 x 1024 3.1 instead of 2.8. */
static Val in_steps_to_real(Builder *b, const Eqn *e, int64_t r) {
    const ArrayType *from = b_type(b, e->in.at[0]), *to = b_type(b, e->out.at[0]);
    Dim all[3] = {r, from->dims[0] / r, axis_of(b, from->rank, from->dims, 0, 0).inner},
        dims[MAX_RANK + 1] = {r, all[1]};
    memcpy(dims + 2, from->dims + 1, (from->rank - 1) * sizeof *dims);
    Pair x[MOST_RADIX], y[MOST_RADIX], z = {b_real(b, e->in.at[0]), b_imag(b, e->in.at[0])};
    z = reshaped(b, swapped((Pair){times(b, z.re, 1 / (double)r), times(b, z.im, 1 / (double)r)}), 3, all);
    Pair w = numbers_roots(b, shape(b, z)->dtype, 1, r, all[1], all[1] * r, false);
    for (int64_t j = 0; j < r; j++) x[j] = reshaped(b, sliced(b, z, 0, j, j + 1), 2, &all[1]);
    sums(b, r, x, 1, y);
    for (int64_t k = 0; k < r; k++) y[k] = turned_part(b, y[k], w, k, &all[1]);
    z = swapped(reshaped(b, fft_joined(b, P_stack, K_axis, 0, (uint32_t)r, y), from->rank + 1, dims));
    Val parts = b_complex(b, z.re, z.im);
    Type part = type_of(b_types(b), from->dtype, from->rank, &dims[1]);
    Inner turn = b_inner(b, 1, &part);
    Val real = transform_part(b, e, r, turn.in.at[0]);
    b_inner_end(b, &turn, 1, &real);
    parts = b_scan(b, &turn, (Loop){.length = r}, 1, &parts).at[0];
    all[2] = axis_of(b, to->rank, to->dims, 0, 0).inner;
    parts = b_transpose(b, b_reshape(b, parts, 3, all), (int64_t[]){1, 0, 2});
    return b_reshape(b, parts, to->rank, to->dims);
}
bool expand_fft(Builder *b, const Eqn *e, Val *out) {
    Val x = e->in.at[0];
    const ArrayType *from = b_type(b, x), *to = b_type(b, e->out.at[0]);
    Kind kind = kind_of(b, e);
    Dims lengths = param_dims(e, K_fft_lengths);
    uint32_t rank = from->rank, first = rank - lengths.n, last = rank - 1;
    Dim dims[MAX_RANK];
    assert(rank && rank <= MAX_RANK);
    double size = 1;
    for (uint32_t i = 0; i < rank; i++) dims[i] = i < first ? from->dims[i] : lengths.at[i - first];
    if (kind == IRFFT) dims[last] = dim_add(b_types(b), dim_floordiv(b_types(b), dims[last], 2), 1);
    if (b_empty(b, x) || b_empty(b, e->out.at[0])) {
        out[0] = b_full(b, b_number(b, to->dtype, 0), to->rank, to->dims);
        return true;
    }
    each(Dim, n, lengths) {
        if (!dim_is_const(*n)) {
            out[0] = by_runtime(b, e, kind);
            return true;
        }
        size *= (double)*n;
    }
    Dim group = rows_together(b, e, kind), rows = group ? 0 : rows_in_groups(b, e, kind);
    if (group || rows) {
        out[0] = group ? in_groups(b, e, group) : in_two_parts(b, e, rows);
        return true;
    }
    int64_t steps = steps_of(b, e, kind);
    if (steps) {
        out[0] = kind == IRFFT ? in_steps_to_real(b, e, steps) : in_steps(b, e, kind, steps);
        return true;
    }
    x = b_reshape(b, x, rank, dims); /* a symbol may equal a length only by a condition */
    bool inverse = kind == IFFT || kind == IRFFT;
    Pair z;
    if (kind == RFFT) {
        Axis a = axis_of(b, rank, dims, last, dims[last]);
        z = transform_rows(b, x, a);
        dims[last] = to->dims[last];
    } else {
        z = (Pair){b_real(b, x), b_imag(b, x)};
    }
    if (inverse) z = swapped((Pair){times(b, z.re, 1 / size), times(b, z.im, 1 / size)});
    for (uint32_t axis = kind == RFFT || kind == IRFFT ? last : rank; axis-- > first;) {
        Axis a = axis_of(b, rank, dims, axis, dims[axis]);
        z = transform_axis(b, z, a);
    }
    if (inverse) z = swapped(z);
    if (kind == IRFFT) {
        Axis a = axis_of(b, rank, dims, last, lengths.at[lengths.n - 1]);
        out[0] = b_reshape(b, invert_rows(b, z, a), to->rank, to->dims);
        return true;
    }
    z = reshaped(b, z, to->rank, to->dims);
    out[0] = b_complex(b, z.re, z.im);
    return true;
}

/* ---- the transpose. A complex result of a real transform stands for its conjugate too, which the real one of its
   cotangent would count twice: m is 2 there, 1 at frequency 0 and, for even n, n/2. */
static Val multiplicity(Builder *b, Dim n, const ArrayType *t) {
    const int64_t last = t->rank - 1;
    Dim size = t->dims[last];
    Val k = b_iota(b, DT_i32, 1, &size, 0), inner;
    if (dim_is_const(n)) {
        if (n % 2 == 0 && n > 0) k = b_rem(b, k, b_full_like(b, k, (double)n / 2));
        inner = b_ne(b, k, b_full_like(b, k, 0));
    } else {
        Val twice = b_mul(b, k, b_full_like(b, k, 2)), all = b_full(b, b_dim(b, DT_i32, n), 1, &size);
        Val first = b_ne(b, k, b_full_like(b, k, 0));
        inner = b_and(b, first, b_ne(b, twice, all));
    }
    Val m = b_convert(b, inner, t->dtype);
    return b_broadcast(b, b_add(b, m, b_full_like(b, m, 1)), t->rank, t->dims, &last);
}
static Val transform_of(Builder *b, Val x, const char *kind, const Param *lengths) {
    return build(b, P_fft, 1, &x, 2, (Param[]){*lengths, p_word(K_fft_type, kind)});
}
/* The number of elements that are transformed together. */
static Val count_of(Builder *b, Dims lengths, Dtype d) {
    Dim n = 1;
    each(Dim, k, lengths) n = dim_mul(b_types(b), n, *k);
    return dim_is_const(n) ? b_number(b, d, (double)n) : b_convert(b, b_dim(b, DT_i64, n), d);
}
bool transpose_fft(Transpose *t) {
    Builder *b = t->b;
    Kind kind = kind_of(b, t->e);
    const Param *lengths = param_find(t->e, K_fft_lengths);
    Dims dims = param_dims(t->e, K_fft_lengths);
    Val ct = t->ct[0];
    const ArrayType *x = ct_type(t, 0);
    if (b_empty(b, t->e->in.at[0]) || b_empty(b, t->e->out.at[0])) return true;
    if (kind == RFFT) {
        ct = b_div(b, b_conj(b, ct), multiplicity(b, dims.at[dims.n - 1], b_type(b, ct)));
        ct = b_mul(b, count_of(b, dims, x->dtype), transform_of(b, ct, "FftType.IRFFT", lengths));
    } else if (kind == IRFFT) {
        Val all = multiplicity(b, dims.at[dims.n - 1], x), n = count_of(b, dims, x->dtype);
        ct = b_mul(b, b_div(b, all, n), transform_of(b, ct, "FftType.RFFT", lengths));
        ct = b_conj(b, ct);
    } else {
        ct = build(b, P_fft, 1, &ct, t->e->params.n, t->e->params.at);
    }
    ct_add(t, 0, ct);
    return true;
}
