/* Linear algebra that programs call (runtime_call): batches of dense row-major matrices. Eigenvalues and the like
   of large ones are LAPACK's, which is loaded when it is first needed. */
#ifndef JAXCC_RT_LINALG_H
#define JAXCC_RT_LINALG_H
#include "rt.h"
#include <complex.h>
#include <stdbool.h>
#include <string.h>

typedef float f32;
typedef double f64;
typedef float _Complex c64;
typedef double _Complex c128;

static inline c64 div_c64(c64 x, c64 y) {
    double a = crealf(x), b = cimagf(x), c = crealf(y), d = cimagf(y), n = c * c + d * d;
    return CMPLXF((float)((a * c + b * d) / n), (float)((b * c - a * d) / n));
}
/* Smith's algorithm: Algorithm 116, CACM 5 (1962). */
static inline c128 div_c128(c128 x, c128 y) {
    double a = creal(x), b = cimag(x), c = creal(y), d = cimag(y);
    if (__builtin_fabs(c) >= __builtin_fabs(d)) {
        double r = d / c, n = c + d * r;
        return CMPLX((a + b * r) / n, (b - a * r) / n);
    }
    double r = c / d, n = c * r + d;
    return CMPLX((a * r + b) / n, (b * r - a) / n);
}

/* A call on a batch: `one` runs for each i in [0, n), with `scratch` bytes that belong to its thread, aligned to 64. */
typedef struct Job Job;
struct Job {
    void *const *arrays;
    const int64_t *sizes;
    int64_t scratch;
    void (*one)(Job *, int64_t i, void *scratch);
    int level;            /* of vectors: SSE2, AVX2, AVX-512 */
    void (*lapack)(void); /* the routine that `one` calls; NULL: none */
    _Atomic bool failed;  /* out of memory */
};
/* `cost`: operations of one iteration, for the split over threads. */
void jaxcc_rt_each(jaxcc_rt_heap *, Job *, int64_t n, int64_t cost);
/* LAPACK's routine of that name ("dsyevd_"); ends the call if there is no LAPACK. */
void (*jaxcc_rt_lapack(jaxcc_rt_heap *, const char *name))(void);

/* Memory of linalg_blocks.h for one matrix, and if threads may share its work, where one of them without memory says
   so. */
typedef struct {
    void *at;
    _Atomic bool *failed;
} Room;
/* Batches are shared by matrices. */
static inline Room jaxcc_rt_job_room(Job *j, void *scratch) {
    return (Room){scratch, j->sizes[0] == 1 ? &j->failed : NULL};
}

/* Eigenvalues and the like of more rows or columns are LAPACK's, factors and solves linalg_blocks.h's. */
enum { SMALL = 32 };
/* linalg_blocks.h: what is packed for one product; */
enum { TERMS_AT_ONCE = 384, ROWS_AT_ONCE = 48, COLUMNS_AT_ONCE = 128, TERMS_BESIDE = 16 };
/* columns of Cholesky and LU that are not divided further, of a panel of QR; */
enum { BASE = 64, COLUMNS_OF_LU = 16, REFLECTORS = 32 };
/* steps of an LU factorization that are done to the rest of a panel at once, and columns of that; */
enum { LU_STEPS = 4, LU_COLUMNS = 2 };
/* the most rows and columns of a tile together; */
enum { TILE_MOST = 64 };
/* rows or columns of a product and columns of a solve that a thread does at least, multiples of those of tiles, and the
   products of numbers from which threads are worth their start (about 40 us of one). */
enum { PIECE_ROWS = ROWS_AT_ONCE, PIECE_COLUMNS = 256, PIECE_SOLVED = 32, WORK_OF_THREADS = 1 << 22 };
#define OUTLINED __attribute__((noinline)) /* keeps the frames of functions that call themselves small */
static inline __attribute__((always_inline)) int64_t jaxcc_rt_least(int64_t x, int64_t y) { return x < y ? x : y; }
/* Half of n, rounded up to a multiple of `unit`. */
static inline int64_t jaxcc_rt_half(int64_t n, int64_t unit) { return (n / 2 + unit - 1) / unit * unit; }
/* Elements of what is packed for a product: m × n results of so many terms, rounded up to whole tiles. */
static inline int64_t jaxcc_rt_product_room(int64_t m, int64_t n, int64_t terms) {
    int64_t both = jaxcc_rt_least(m, ROWS_AT_ONCE) + jaxcc_rt_least(n, COLUMNS_AT_ONCE) + TILE_MOST;
    return jaxcc_rt_least(terms, TERMS_AT_ONCE) * both;
}
/* Elements of `room` for a solve of n rows with r right-hand sides: what is solved of some columns, some packed rows. */
static inline int64_t jaxcc_rt_solve_room(int64_t n, int64_t r) {
    return n * (jaxcc_rt_least(r, COLUMNS_AT_ONCE) + TILE_MOST) +
           jaxcc_rt_least(n, TERMS_AT_ONCE) * (jaxcc_rt_least(n, ROWS_AT_ONCE) + TILE_MOST);
}
/* The same for a factorization of m × n: the packed operands of a product, or a solve of LU; QR's V and W (or LU's
   panel), its T (or what is packed of a panel of a Cholesky factor). */
_Static_assert(COLUMNS_OF_LU <= REFLECTORS && REFLECTORS <= BASE, "room");
static inline int64_t jaxcc_rt_room(int64_t m, int64_t n) {
    int64_t most = m > n ? m : n, solve = jaxcc_rt_solve_room(jaxcc_rt_least(m, n), n);
    int64_t product = jaxcc_rt_product_room(most, most, most);
    return (product > solve ? product : solve) + REFLECTORS * (m + n) + BASE * (BASE + TILE_MOST);
}
/* The counterparts of lapack.c's entries for at most SMALL rows and columns; some by element type. */
jaxcc_rt_function jaxcc_rt_small_eig, jaxcc_rt_small_schur, jaxcc_rt_small_hessenberg;
#define SMALL_OF(f)                                                                                                    \
    {jaxcc_rt_small_##f##_f32, jaxcc_rt_small_##f##_f64, jaxcc_rt_small_##f##_c64, jaxcc_rt_small_##f##_c128}
#define SMALL_BY_TYPE(f)                                                                                               \
    jaxcc_rt_function jaxcc_rt_small_##f##_f32, jaxcc_rt_small_##f##_f64, jaxcc_rt_small_##f##_c64,                    \
        jaxcc_rt_small_##f##_c128
SMALL_BY_TYPE(eigh);
SMALL_BY_TYPE(svd);
SMALL_BY_TYPE(geqp3);
SMALL_BY_TYPE(tridiagonal);
#endif
