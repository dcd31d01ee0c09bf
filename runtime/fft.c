/* Fourier transforms of lengths that are only known at run time; the compiler writes out the others
   (passes/rules/fft.c). Numbers are doubles here, for all types of arrays.

   A length whose prime factors are small is transformed radix by radix: after passes whose product is P, n = P·Q,
       z[k, q] = Σ_t x[q + Q t] w_P^(t k),   w_P = exp(-2πi / P),   k < P, q < Q,
   and the pass of radix r, Q = r Q', turns it into
       z'[k + P k', q'] = Σ_j w_r^(j k') (w_(P r)^(j k) z[k, q' + Q' j])
   (W. T. Cochran et al., What is the fast Fourier transform?, Proc. IEEE 55, 1967). Any other length is a convolution
   (L. Bluestein, A linear filtering approach to the computation of discrete Fourier transform, IEEE Trans. AU 18,
   1970). */
#pragma GCC optimize("O3")
#include "rt.h"
#include <stdbool.h>
#include <string.h>

enum { MOST_PRIME = 61, MOST_PASSES = 64, MOST_AXES = 3 };
typedef struct {
    double re, im;
} Number;
typedef struct {
    double *re, *im;
} Parts;

static Number product(Number x, Number y) { return (Number){x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re}; }
static Number part(Parts z, int64_t i) { return (Number){z.re[i], z.im[i]}; }
static void put(Parts z, int64_t i, Number x) { z.re[i] = x.re, z.im[i] = x.im; }

/* ---- roots of unity */
/* exp(-2πi a / n), 0 ≤ a < n < 2^40: π/2 · (quarter + rest / n), the sum of two doubles, and Taylor's series. */
static Number root(int64_t a, int64_t n) {
    int64_t quarter = (8 * a + n) / (2 * n), rest = 4 * a - quarter * n, grid = (int64_t)1 << 20, q = rest * grid / n;
    double high = (double)q / (double)grid, low = (double)(rest * grid - q * n) / (double)n / (double)grid;
    double first = 0x1.921fb544p0 * high, more = 0x1.0b4611a626331p-34 * high + 0x1.921fb54442d18p0 * low;
    double t = first + more, d = first - t + more, s = t * t;
    double sine =
        t * s *
        (-1. / 6 + s * (1. / 120 +
                        s * (-1. / 5040 + s * (1. / 362880 + s * (-1. / 39916800 + s * (1. / 6227020800 +
                                                                                        s * (-1. / 1307674368000)))))));
    double cosine =
        s * s *
        (1. / 24 +
         s * (-1. / 720 +
              s * (1. / 40320 +
                   s * (-1. / 3628800 + s * (1. / 479001600 + s * (-1. / 87178291200 + s * (1. / 20922789888000)))))));
    sine = t + (sine + d), cosine = 1 + (cosine - s / 2 - t * d);
    switch (quarter & 3) {
    case 0: return (Number){cosine, -sine};
    case 1: return (Number){-sine, -cosine};
    case 2: return (Number){-cosine, sine};
    default: return (Number){sine, cosine};
    }
}
/* All n roots are products of two computed ones: w^(step·i) · w^j, j < step. Room for 2 · roots_step(n) numbers. */
typedef struct {
    int shift; /* of step */
    Parts far, near;
} Roots;
static int64_t roots_step(int64_t n) {
    int64_t step = 1;
    while (step * step < n) step *= 2;
    return step;
}
static Roots roots_of(int64_t n, double *room) {
    int64_t s = roots_step(n);
    Roots r = {__builtin_ctzll((uint64_t)s), {room, room + s}, {room + 2 * s, room + 3 * s}};
    for (int64_t i = 0; i < s; i++) {
        put(r.near, i, i < n ? root(i, n) : (Number){0});
        put(r.far, i, i * s < n ? root(i * s, n) : (Number){0});
    }
    return r;
}
static Number root_at(const Roots *r, int64_t i) {
    return product(part(r->far, i >> r->shift), part(r->near, i & (((int64_t)1 << r->shift) - 1)));
}

/* ---- plans */
typedef struct Plan Plan;
struct Plan {
    int64_t n;
    int64_t radix[MOST_PASSES];
    int passes;
    Parts w; /* roots of n */
    /* for Bluestein's method: a longer plan, exp(-πi k² / n), and the transform of its inverse */
    Plan *longer;
    Parts chirp, filter;
};
/* The passes of n; false if a prime factor is too large. */
static bool factor(int64_t n, int64_t *radix, int *passes) {
    *passes = 0;
    for (int64_t p = 3; p <= MOST_PRIME; p += 2)
        for (; n % p == 0; n /= p) radix[(*passes)++] = p;
    for (; n % 4 == 0; n /= 4) radix[(*passes)++] = 4;
    for (; n % 2 == 0; n /= 2) radix[(*passes)++] = 2;
    return n == 1;
}
/* The smallest of 2^k, 3·2^k, 5·2^k, 9·2^k, 15·2^k that is at least n. */
static int64_t length_above(int64_t n) {
    static const int64_t odd[] = {1, 3, 5, 9, 15};
    int64_t best = INT64_MAX;
    for (int i = 0; i < 5; i++) {
        int64_t m = odd[i];
        while (m < n) m *= 2;
        if (m < best) best = m;
    }
    return best;
}
/* The longest transform that one of length n needs. */
static int64_t longest(int64_t n) {
    int64_t radix[MOST_PASSES];
    int passes;
    return factor(n, radix, &passes) ? n : length_above(2 * n - 1);
}
/* The number of doubles in a plan, and in a line of it. */
static int64_t plan_room(int64_t n) {
    int64_t m = longest(n);
    return m == n ? 2 * n + 4 * roots_step(n) : 2 * n + 4 * roots_step(2 * n) + 4 * m + 4 * roots_step(m);
}
static int64_t line_room(int64_t n) { return 4 * longest(n); }

/* ---- passes: from x to y, P and Q' as above */
static void pass_2(const Plan *p, Parts x, Parts y, int64_t P, int64_t Q) {
    for (int64_t k = 0; k < P; k++) {
        Number w = part(p->w, p->n / (2 * P) * k);
        const double *re = x.re + 2 * k * Q, *im = x.im + 2 * k * Q;
        double *restrict to_re = y.re + k * Q, *restrict to_im = y.im + k * Q;
        for (int64_t q = 0; q < Q; q++) {
            double ar = re[q], ai = im[q], br = re[q + Q] * w.re - im[q + Q] * w.im,
                   bi = re[q + Q] * w.im + im[q + Q] * w.re;
            to_re[q] = ar + br, to_im[q] = ai + bi;
            to_re[q + P * Q] = ar - br, to_im[q + P * Q] = ai - bi;
        }
    }
}
static void pass_4(const Plan *p, Parts x, Parts y, int64_t P, int64_t Q) {
    int64_t next = P * Q, turn = p->n / (4 * P);
    for (int64_t k = 0; k < P; k++) {
        Number u = part(p->w, turn * k), v = part(p->w, 2 * turn * k), w = part(p->w, 3 * turn * k);
        const double *re = x.re + 4 * k * Q, *im = x.im + 4 * k * Q;
        double *restrict to_re = y.re + k * Q, *restrict to_im = y.im + k * Q;
        for (int64_t q = 0; q < Q; q++) {
            const double *r = re + q, *i = im + q;
            double br = r[Q] * u.re - i[Q] * u.im, bi = r[Q] * u.im + i[Q] * u.re;
            double cr = r[2 * Q] * v.re - i[2 * Q] * v.im, ci = r[2 * Q] * v.im + i[2 * Q] * v.re;
            double dr = r[3 * Q] * w.re - i[3 * Q] * w.im, di = r[3 * Q] * w.im + i[3 * Q] * w.re;
            double sr = r[0] + cr, si = i[0] + ci, tr = r[0] - cr, ti = i[0] - ci;
            double mr = br + dr, mi = bi + di, nr = br - dr, ni = bi - di;
            to_re[q] = sr + mr, to_im[q] = si + mi;
            to_re[q + next] = tr + ni, to_im[q + next] = ti - nr;
            to_re[q + 2 * next] = sr - mr, to_im[q + 2 * next] = si - mi;
            to_re[q + 3 * next] = tr - ni, to_im[q + 3 * next] = ti + nr;
        }
    }
}
/* For an odd prime: x_j and x_(r-j) are multiplied by cosines in their sum and by sines in their difference. The sums s
   and differences d of one point become its results. */
#define ALWAYS static inline __attribute__((always_inline))
ALWAYS void odd_point(int64_t r, Number x0, const Number *s, const Number *d, const Number *w, Parts y, int64_t next) {
    Number all = x0;
    int64_t h = r / 2;
    for (int64_t j = 1; j <= h; j++) all.re += s[j].re, all.im += s[j].im;
    put(y, 0, all);
    for (int64_t k = 1; k <= h; k++) {
        Number even = x0, odd = {0, 0};
        for (int64_t j = 1, at = k; j <= h; j++, at = at + k < r ? at + k : at + k - r) {
            even.re += s[j].re * w[at].re, even.im += s[j].im * w[at].re;
            odd.re += d[j].re * w[at].im, odd.im += d[j].im * w[at].im;
        }
        put(y, k * next, (Number){even.re - odd.im, even.im + odd.re});
        put(y, (r - k) * next, (Number){even.re + odd.im, even.im - odd.re});
    }
}
ALWAYS void odd_points(const Plan *p, Parts x, Parts y, int64_t P, int64_t Q, int64_t r) {
    Number w[MOST_PRIME], turn[MOST_PRIME], s[MOST_PRIME / 2 + 1], d[MOST_PRIME / 2 + 1];
    for (int64_t j = 0; j < r; j++) w[j] = part(p->w, p->n / r * j);
    for (int64_t k = 0; k < P; k++) {
        for (int64_t j = 0; j < r; j++) turn[j] = part(p->w, p->n / (r * P) * j * k);
        for (int64_t q = 0; q < Q; q++) {
            int64_t at = r * k * Q + q;
            for (int64_t j = 1; j <= r / 2; j++) {
                Number a = product(part(x, at + j * Q), turn[j]), b = product(part(x, at + (r - j) * Q), turn[r - j]);
                s[j] = (Number){a.re + b.re, a.im + b.im}, d[j] = (Number){a.re - b.re, a.im - b.im};
            }
            odd_point(r, part(x, at), s, d, w, (Parts){y.re + k * Q + q, y.im + k * Q + q}, P * Q);
        }
    }
}
static void pass_odd(const Plan *p, Parts x, Parts y, int64_t P, int64_t Q, int64_t r) {
    switch (r) { /* written out for the smallest primes */
    case 3: odd_points(p, x, y, P, Q, 3); break;
    case 5: odd_points(p, x, y, P, Q, 5); break;
    case 7: odd_points(p, x, y, P, Q, 7); break;
    default:
        if (r < 3 || r > MOST_PRIME) __builtin_unreachable(); /* the factors of a plan */
        odd_points(p, x, y, P, Q, r);
    }
}
/* Transforms x; both x and y are overwritten, and the result is in one of them. */
static Parts by_passes(const Plan *p, Parts x, Parts y) {
    int64_t P = 1, Q = p->n;
    for (int i = 0; i < p->passes; i++) {
        int64_t r = p->radix[i];
        Q /= r;
        if (r == 4)
            pass_4(p, x, y, P, Q);
        else if (r == 2)
            pass_2(p, x, y, P, Q);
        else
            pass_odd(p, x, y, P, Q, r);
        P *= r;
        Parts t = x;
        x = y, y = t;
    }
    return x;
}
static Parts swapped(Parts z) { return (Parts){z.im, z.re}; }
static Parts transform(const Plan *p, Parts x, Parts y) {
    if (!p->longer) return by_passes(p, x, y);
    int64_t n = p->n, m = p->longer->n;
    for (int64_t k = 0; k < n; k++) put(x, k, product(part(x, k), part(p->chirp, k)));
    memset(x.re + n, 0, (size_t)(m - n) * sizeof *x.re);
    memset(x.im + n, 0, (size_t)(m - n) * sizeof *x.im);
    Parts z = by_passes(p->longer, x, y);
    for (int64_t k = 0; k < m; k++) put(z, k, product(part(z, k), part(p->filter, k)));
    z = swapped(by_passes(p->longer, swapped(z), swapped(z.re == x.re ? y : x)));
    for (int64_t k = 0; k < n; k++) put(z, k, product(part(z, k), part(p->chirp, k)));
    return z;
}

/* ---- making plans: plan_room doubles of `room`, line_room doubles of `line` */
static Parts parts_from(double **room, int64_t n) {
    Parts z = {*room, *room + n};
    *room += 2 * n;
    return z;
}
static void plan_passes(Plan *p, int64_t n, double **room) {
    p->n = n;
    factor(n, p->radix, &p->passes);
    p->w = parts_from(room, n);
    Roots r = roots_of(n, *room);
    *room += 4 * roots_step(n);
    for (int64_t k = 0; k < n; k++) put(p->w, k, root_at(&r, k));
}
/* 2jk = j² + k² - (j - k)² turns the sum of a transform into a convolution with exp(πi k² / n). */
static void plan_convolution(Plan *p, Plan *longer, int64_t n, double *room, double *line) {
    int64_t m = longest(n);
    *p = (Plan){.n = n, .longer = longer};
    plan_passes(longer, m, &room);
    p->chirp = parts_from(&room, n);
    p->filter = parts_from(&room, m);
    Roots r = roots_of(2 * n, room);
    Parts x = {line, line + m}, y = {line + 2 * m, line + 3 * m};
    memset(line, 0, (size_t)(2 * m) * sizeof *line);
    for (int64_t k = 0, square = 0; k < n; k++, square = (square + 2 * k - 1) % (2 * n)) {
        Number c = root_at(&r, square), inverse = {c.re / (double)m, -c.im / (double)m};
        put(p->chirp, k, c);
        put(x, k, inverse);
        put(x, k ? m - k : 0, inverse);
    }
    Parts z = by_passes(longer, x, y);
    memcpy(p->filter.re, z.re, (size_t)m * sizeof *z.re);
    memcpy(p->filter.im, z.im, (size_t)m * sizeof *z.im);
}

/* ---- one axis of arrays [outer, ·, inner] */
typedef enum { WHOLE, REAL, HALF } Form; /* n complex numbers, n real ones, the first n // 2 + 1 complex ones of n */
typedef struct {
    const Plan *plan;
    const char *from;
    char *to;
    Form reads, writes;
    int64_t n, inner, bytes; /* bytes: of a real number */
    bool inverse, failed;
} Axis;
static int64_t extent(Form f, int64_t n) { return f == HALF ? n / 2 + 1 : n; }
static inline double get(const char *from, int64_t i, int64_t bytes) {
    return bytes == 4 ? (double)((const float *)from)[i] : ((const double *)from)[i];
}
static inline void set(char *to, int64_t i, int64_t bytes, double x) {
    if (bytes == 4)
        ((float *)to)[i] = (float)x;
    else
        ((double *)to)[i] = x;
}
/* For HALF the imaginary part of the first number is ignored, and for even n that of the last. */
static void load(const Axis *a, int64_t line, Parts x) {
    int64_t n = a->n, count = extent(a->reads, n), first = line / a->inner * count * a->inner + line % a->inner;
    for (int64_t k = 0; k < count; k++) {
        int64_t i = first + k * a->inner;
        if (a->reads == REAL)
            put(x, k, (Number){get(a->from, i, a->bytes), 0});
        else
            put(x, k, (Number){get(a->from, 2 * i, a->bytes), get(a->from, 2 * i + 1, a->bytes)});
    }
    if (a->reads != HALF) return;
    x.im[0] = 0;
    if (n % 2 == 0) x.im[n / 2] = 0;
    for (int64_t k = count; k < n; k++) put(x, k, (Number){x.re[n - k], -x.im[n - k]});
}
static void store(const Axis *a, int64_t line, Parts x) {
    int64_t count = extent(a->writes, a->n), first = line / a->inner * count * a->inner + line % a->inner;
    double scale = a->inverse ? 1 / (double)a->n : 1;
    for (int64_t k = 0; k < count; k++) {
        int64_t i = first + k * a->inner;
        if (a->writes == REAL) {
            set(a->to, i, a->bytes, x.re[k] * scale);
        } else {
            set(a->to, 2 * i, a->bytes, x.re[k] * scale);
            set(a->to, 2 * i + 1, a->bytes, x.im[k] * scale);
        }
    }
}
static void lines(void *ctx, int64_t lo, int64_t hi) {
    Axis *a = ctx;
    int64_t m = longest(a->n);
    double *line = jaxcc_rt_workspace_get(line_room(a->n) * (int64_t)sizeof *line);
    if (!line) {
        __atomic_store_n(&a->failed, true, __ATOMIC_RELAXED);
        return;
    }
    Parts x = {line, line + m}, y = {line + 2 * m, line + 3 * m};
    for (int64_t i = lo; i < hi; i++) {
        load(a, i, x);
        store(a, i, a->inverse ? swapped(transform(a->plan, swapped(x), swapped(y))) : transform(a->plan, x, y));
    }
    jaxcc_rt_workspace_put(line);
}
/* All lines; false if memory runs out. */
static bool transform_axis(Axis *a, int64_t count) {
    int64_t m = longest(a->n), grain = 1 + JAXCC_RT_GRAIN / (m * 20);
    double *room = jaxcc_rt_workspace_get((plan_room(a->n) + (m > a->n ? line_room(a->n) : 0)) * (int64_t)sizeof *room),
           *rest = room;
    if (!room) return false;
    Plan plan = {0}, longer = {0};
    if (m == a->n)
        plan_passes(&plan, m, &rest);
    else
        plan_convolution(&plan, &longer, a->n, room + line_room(a->n), room);
    a->plan = &plan;
    jaxcc_rt_parallel_for(lines, a, count, grain);
    jaxcc_rt_workspace_put(room);
    return !a->failed;
}

/* ---- all axes */
typedef enum { FFT, IFFT, RFFT, IRFFT } Kind;
typedef struct {
    Kind kind;
    int64_t bytes, batch, axes, length[MOST_AXES];
    int64_t dims[MOST_AXES]; /* extents of the complex array */
} Shape;
static int64_t lines_of(const Shape *s, int64_t axis) {
    int64_t n = s->batch;
    for (int64_t i = 0; i < s->axes; i++)
        if (i != axis) n *= s->dims[i];
    return n;
}
static bool some_axis(const Shape *s, int64_t axis, Form reads, Form writes, const void *from, void *to) {
    Axis a = {
        .from = from, .to = to, .reads = reads, .writes = writes, .n = s->length[axis], .inner = 1, .bytes = s->bytes};
    a.inverse = s->kind == IFFT || s->kind == IRFFT;
    for (int64_t i = axis + 1; i < s->axes; i++) a.inner *= s->dims[i];
    return transform_axis(&a, lines_of(s, axis));
}
static bool all_axes(const Shape *s, const void *x, void *y, void *between) {
    int64_t last = s->axes - 1, axis = last;
    bool good = true;
    if (s->kind == RFFT) good = some_axis(s, axis--, REAL, HALF, x, y), x = y;
    if (s->kind == IRFFT) axis--;
    void *to = s->kind == IRFFT ? between : y;
    for (; axis >= 0 && good; axis--, x = to) good = some_axis(s, axis, WHOLE, WHOLE, x, to);
    return good && (s->kind != IRFFT || some_axis(s, last, HALF, REAL, x, y));
}
/* An empty operand gives zeros. sizes: kind, bytes of a real number, batch, axes, the lengths of the axes. */
void jaxcc_rt_fft(jaxcc_rt_heap *call, void *const *arrays, const int64_t *sizes) {
    Shape s = {.kind = (Kind)sizes[0], .bytes = sizes[1], .batch = sizes[2], .axes = sizes[3]};
    if (s.axes < 1 || s.axes > MOST_AXES) __builtin_unreachable(); /* the compiler calls it for no others */
    bool half = s.kind == RFFT || s.kind == IRFFT;
    int64_t reals = s.batch, numbers = s.batch;
    for (int64_t i = 0; i < s.axes; i++) {
        s.length[i] = sizes[4 + i];
        s.dims[i] = extent(half && i == s.axes - 1 ? HALF : WHOLE, s.length[i]);
        reals *= s.length[i], numbers *= s.dims[i];
    }
    int64_t results = s.kind == IRFFT ? reals * s.bytes : 2 * numbers * s.bytes;
    if (!reals || !numbers) {
        if (results) memset(arrays[1], 0, (size_t)results);
        return;
    }
    int64_t between = s.kind == IRFFT && s.axes > 1 ? 2 * numbers * s.bytes : 0;
    void *room = between ? jaxcc_rt_workspace_get(between) : NULL;
    bool good = (room || !between) && all_axes(&s, arrays[0], arrays[1], room);
    if (room) jaxcc_rt_workspace_put(room);
    if (!good) jaxcc_rt_stop(call, JAXCC_MEMORY, "no memory for a Fourier transform");
}
