/* Hessenberg and Schur forms, eigenvalues and eigenvectors of matrices of up to SMALL rows: one at a time, in double
   precision for every type. */
#pragma GCC optimize("O3", "cx-limited-range", "no-math-errno")
#include "linalg.h"

/* The balancing of a matrix: row i was row from[i], columns were multiplied by scale[i] and rows divided by it; no
   permutation makes lo … hi triangular. */
typedef struct {
    int64_t lo, hi;
    uint8_t from[SMALL];
    double scale[SMALL];
} Balance;

/* The part of the call's array k for iteration i, n elements. */
static void *part(Job *j, uint32_t k, int64_t i, int64_t n, size_t bytes) {
    return (char *)j->arrays[k] + (size_t)(i * n) * bytes;
}
static double size_c128(c128 x) { return __builtin_fabs(creal(x)) + __builtin_fabs(cimag(x)); }
static c128 distance(c128 x, double least) { return size_c128(x) < least ? least : x; }
static void normalise(c128 *v, int64_t n, bool turn, bool positive);

#define KIND 3
#define V c128
#include "linalg_type.h"
#include "eigen_ops.h"
#define KIND 1
#define V f64
#include "linalg_type.h"
#include "eigen_ops.h"

/* Scales v to length 1; with `turn`, multiplies it so that the largest element is real, and positive or of the sign
   that its real part had. */
static void normalise(c128 *v, int64_t n, bool turn, bool positive) {
    double norm = norm_c128(v, n, 1), most = 0;
    int64_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        v[i] /= norm;
        double x = creal(v[i]) * creal(v[i]) + cimag(v[i]) * cimag(v[i]);
        if (x > most) most = x, at = i;
    }
    if (!turn) return;
    c128 f = ~v[at] / __builtin_sqrt(most);
    if (!positive && creal(v[at]) < 0) f = -f;
    for (int64_t i = 0; i < n; i++) v[i] *= f;
    v[at] = creal(v[at]);
}

#define ENTRY(f, elements, cost)                                                                                       \
    void jaxcc_rt_small_##f(jaxcc_rt_heap *call, void *const *arrays, const int64_t *sizes) {                          \
        int64_t n = sizes[2];                                                                                          \
        Job j = {.arrays = arrays, .sizes = sizes, .one = sizes[1] < 2 ? f##_one_f64 : f##_one_c128};                  \
        j.scratch = (elements) * (int64_t)sizeof(c128);                                                                \
        jaxcc_rt_each(call, &j, sizes[0], cost);                                                                       \
    }
ENTRY(eig, 4 * n * n + n, 50 * n * n * n)
ENTRY(schur, 3 * n * n, 50 * n * n * n)
ENTRY(hessenberg, n *n, 5 * n * n * n)
