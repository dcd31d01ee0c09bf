/* Linear algebra of our own: matrices of up to SMALL rows and columns, W of a batch at a time in vectors; larger ones,
   one after the other, in blocks. */
#pragma GCC optimize("O3", "cx-limited-range", "no-math-errno")
#include "linalg.h"

enum { MOST_SWEEPS = 40 }; /* of Jacobi's method; small matrices take five to ten */

static inline float abs_c64(c64 x) {
    double a = crealf(x), b = cimagf(x);
    return (float)__builtin_sqrt(a * a + b * b);
}
static inline double abs_c128(c128 x) {
    double a = __builtin_fabs(creal(x)), b = __builtin_fabs(cimag(x)), most = a > b ? a : b,
           r = (a > b ? b : a) / (most > 0 ? most : 1);
    return most * __builtin_sqrt(1 + r * r);
}

/* By element type; LANES of them fill a vector of AVX-512. */
#define KIND 0
#define V f32
#define LANES 16
#include "linalg_widths.h"

#define KIND 1
#define V f64
#define LANES 8
#include "linalg_widths.h"

#define KIND 2
#define V c64
#define LANES 8
#include "linalg_widths.h"

#define KIND 3
#define V c128
#define LANES 4
#include "linalg_widths.h"

/* ---- row swaps in order → the permutation they make: sizes batch, k, n */
void jaxcc_rt_pivots_to_permutation(jaxcc_rt_heap *call, void *const *arrays, const int64_t *sizes) {
    const int32_t *pivots = arrays[0];
    int32_t *out = arrays[1];
    for (int64_t i = 0; i < sizes[0]; i++, pivots += sizes[1], out += sizes[2]) {
        for (int64_t e = 0; e < sizes[2]; e++) out[e] = (int32_t)e;
        for (int64_t k = 0; k < sizes[1]; k++) {
            int64_t p = pivots[k];
            if (p < 0) p += sizes[2];
            if (p < 0 || p >= sizes[2]) continue; /* not a row */
            int32_t t = out[k];
            out[k] = out[p], out[p] = t;
        }
    }
}

/* ---- batches */
enum { SLOWER = 5 }; /* operations of small matrices are so much slower than those of vectors */
static void turns(void *ctx, int64_t lo, int64_t hi) {
    Job *j = ctx;
    void *scratch = j->scratch ? jaxcc_rt_workspace_get(j->scratch) : NULL;
    if (j->scratch && !scratch) {
        j->failed = true;
        return;
    }
    for (int64_t i = lo; i < hi; i++) j->one(j, i, scratch);
    if (scratch) jaxcc_rt_workspace_put(scratch);
}
void jaxcc_rt_each(jaxcc_rt_heap *call, Job *j, int64_t n, int64_t cost) {
    int64_t grain = JAXCC_RT_GRAIN / SLOWER / (cost + 1) + 1;
    j->level = jaxcc_rt_has("avx512bw") && jaxcc_rt_has("avx512vl") && jaxcc_rt_has("avx512dq")
                   ? 2
                   : jaxcc_rt_has("avx2") && jaxcc_rt_has("fma");
    if (n > 0) jaxcc_rt_parallel_for(turns, j, n, grain);
    if (j->failed) jaxcc_rt_stop(call, JAXCC_MEMORY, "no memory for %lld bytes", (long long)j->scratch);
}
