/* Eigenvalues, singular values and the reductions before them; by LAPACK for matrices larger than SMALL. The library is
   the system's OpenBLAS or reference LAPACK, or the one that JAXCC_LAPACK names, loaded when a program first calls one
   of these functions. Arguments: LAPACK Users' Guide, 3rd ed. Our rows are LAPACK's columns: matrices are transposed on
   the way in and out. */
#include "linalg.h"
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- the library */
void (*jaxcc_rt_lapack(jaxcc_rt_heap *call, const char *name))(void) {
    static const char *const names[] = {"libopenblas.so.0", "liblapack.so.3", "libopenblas.so", "liblapack.so"};
    static void *_Atomic library;
    const char *chosen = secure_getenv("JAXCC_LAPACK"); /* no library of the user's choice in a set-user-ID program */
    void *l = atomic_load(&library);
    if (!l && chosen && *chosen) {
        l = dlopen(chosen, RTLD_NOW | RTLD_LOCAL);
        if (!l)
            jaxcc_rt_stop(call, JAXCC_MISSING, "this program needs LAPACK, but JAXCC_LAPACK is no library: %s", chosen);
    }
    for (unsigned i = 0; !l && i < sizeof names / sizeof *names; i++) l = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!l)
        jaxcc_rt_stop(call, JAXCC_MISSING,
                      "this program needs LAPACK, but neither libopenblas.so.0 nor liblapack.so.3 is installed");
    atomic_store(&library, l);
    void *f = dlsym(l, name);
    if (!f && chosen && *chosen)
        jaxcc_rt_stop(call, JAXCC_MISSING, "JAXCC_LAPACK is %s, which has no %s", chosen, name);
    if (!f) jaxcc_rt_stop(call, JAXCC_MISSING, "the LAPACK that is installed has no %s", name);
    void (*routine)(void);
    memcpy(&routine, &f, sizeof routine);
    return routine;
}

/* ---- element types: 0 f32, 1 f64, 2 c64, 3 c128; sizes[1] of every call */
enum { F32, F64, C64, C128 };
static bool is_complex(int64_t kind) { return kind >= C64; }
static bool is_double(int64_t kind) { return kind % 2; }
static int64_t real_bytes(int64_t kind) { return is_double(kind) ? 8 : 4; }
static int64_t bytes_of(int64_t kind) { return real_bytes(kind) << is_complex(kind); }
/* "ssyevd_" or "cheevd_": the names without the type's letter. */
static void (*routine(jaxcc_rt_heap *call, int64_t kind, const char *of_real, const char *of_complex))(void) {
    char name[16];
    snprintf(name, sizeof name, "%c%s_", "sdcz"[kind], is_complex(kind) ? of_complex : of_real);
    return jaxcc_rt_lapack(call, name);
}
/* All of LAPACK's arguments are pointers; lengths of texts follow, all 1. */
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
typedef void Routine();
#define CALL(j, ...) ((Routine *)(j)->lapack)(__VA_ARGS__, (size_t)1, (size_t)1, (size_t)1)

static void transposed(int64_t kind, void *to, const void *from, int64_t m, int64_t n) {
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            int64_t a = j * m + i, b = i * n + j;
            switch (bytes_of(kind)) {
            case 4: ((uint32_t *)to)[a] = ((const uint32_t *)from)[b]; break;
            case 8: ((uint64_t *)to)[a] = ((const uint64_t *)from)[b]; break;
            default: ((c128 *)to)[a] = ((const c128 *)from)[b];
            }
        }
}
static void fill_nan(int64_t kind, void *x, int64_t reals) {
    for (int64_t i = 0; i < reals; i++)
        if (is_double(kind))
            ((double *)x)[i] = __builtin_nan("");
        else
            ((float *)x)[i] = __builtin_nanf("");
}
static int64_t reals(int64_t kind, int64_t n) { return n << is_complex(kind); }
/* The part of the call's array k for iteration `i`, `n` elements of `bytes`. */
static void *part(Job *j, uint32_t k, int64_t i, int64_t n, int64_t bytes) {
    return (char *)j->arrays[k] + i * n * bytes;
}
/* Takes memory from scratch. */
static void *take(char **at, int64_t bytes) {
    void *p = *at;
    *at += (bytes + 63) / 64 * 64;
    return p;
}
static int64_t max(int64_t a, int64_t b) { return a > b ? a : b; }

/* ---- eigh: sizes batch, kind, n, lower; vectors, values */
static void eigh_one(Job *j, int64_t i, void *scratch) {
    int64_t kind = j->sizes[1], n = j->sizes[2], b = bytes_of(kind), r = real_bytes(kind);
    int32_t n32 = (int32_t)n, info = 0, lwork = (int32_t)(1 + 6 * n + 2 * n * n), liwork = (int32_t)(3 + 5 * n);
    int32_t lrwork = (int32_t)(1 + 5 * n + 2 * n * n);
    char *at = scratch, *uplo = j->sizes[3] ? "L" : "U";
    void *a = take(&at, n * n * b), *work = take(&at, lwork * b), *iwork = take(&at, liwork * 4),
         *rwork = take(&at, lrwork * r);
    void *v = part(j, 1, i, n * n, b), *w = part(j, 2, i, n, r);
    transposed(kind, a, part(j, 0, i, n * n, b), n, n);
    if (is_complex(kind))
        CALL(j, "V", uplo, &n32, a, &n32, w, work, &lwork, rwork, &lrwork, iwork, &liwork, &info);
    else
        CALL(j, "V", uplo, &n32, a, &n32, w, work, &lwork, iwork, &liwork, &info);
    transposed(kind, v, a, n, n);
    if (info) fill_nan(kind, v, reals(kind, n * n)), fill_nan(kind, w, n);
}
void jaxcc_rt_eigh(jaxcc_rt_heap *call, void *const *arrays, const int64_t *sizes) {
    static jaxcc_rt_function *const small[] = SMALL_OF(eigh);
    int64_t n = sizes[2], b = bytes_of(sizes[1]);
    Job j = {
        .arrays = arrays, .sizes = sizes, .one = eigh_one, .scratch = (4 * n * n + 20 * n + 20) * b + 12 * n + 1024};
    if (!n) return;
    if (n <= SMALL) return small[sizes[1]](call, arrays, sizes);
    j.lapack = routine(call, sizes[1], "syevd", "heevd");
    jaxcc_rt_each(call, &j, sizes[0], 20 * n * n * n);
}

/* ---- svd: sizes batch, kind, m, n, vectors (0 none, 1 min(m, n), 2 all), words of work; values, and u, vt */
static void svd_one(Job *j, int64_t i, void *scratch) {
    const int64_t *s = j->sizes;
    int64_t kind = s[1], m = s[2], n = s[3], k = m < n ? m : n, b = bytes_of(kind), r = real_bytes(kind);
    int64_t um = s[4] == 2 ? m : k, vn = s[4] == 2 ? n : k,
            lrw = max(5 * k * k + 5 * k, 2 * max(m, n) * k + 2 * k * k + k) + 7 * k;
    int32_t m32 = (int32_t)m, n32 = (int32_t)n, vn32 = (int32_t)vn, info = 0, lwork = -1;
    char *at = scratch, *job = s[4] == 0 ? "N" : s[4] == 1 ? "S" : "A";
    void *a = take(&at, m * n * b), *u = take(&at, m * um * b), *vt = take(&at, vn * n * b),
         *iwork = take(&at, 8 * k * 4);
    void *rwork = take(&at, lrw * r), *values = part(j, 1, i, k, r);
    transposed(kind, a, part(j, 0, i, m * n, b), m, n);
    union {
        double d;
        float f;
        char room[16];
    } size = {0};
    for (int turn = 0; turn < 2; turn++) { /* the size of its workspace, then the computation */
        void *work = turn ? (void *)at : &size;
        if (turn) lwork = (int32_t)(is_double(kind) ? size.d : (double)size.f);
        if (turn && (char *)scratch + j->scratch - at < lwork * b)
            lwork = (int32_t)(((char *)scratch + j->scratch - at) / b);
        if (is_complex(kind))
            CALL(j, job, &m32, &n32, a, &m32, values, u, &m32, vt, &vn32, work, &lwork, rwork, iwork, &info);
        else
            CALL(j, job, &m32, &n32, a, &m32, values, u, &m32, vt, &vn32, work, &lwork, iwork, &info);
    }
    if (s[4]) {
        transposed(kind, part(j, 2, i, m * um, b), u, um, m);
        transposed(kind, part(j, 3, i, vn * n, b), vt, n, vn);
    }
    if (!info) return;
    fill_nan(kind, values, k);
    if (s[4])
        fill_nan(kind, part(j, 2, i, m * um, b), reals(kind, m * um)),
            fill_nan(kind, part(j, 3, i, vn * n, b), reals(kind, vn * n));
}
void jaxcc_rt_svd(jaxcc_rt_heap *call, void *const *arrays, const int64_t *sizes) {
    static jaxcc_rt_function *const small[] = SMALL_OF(svd);
    int64_t m = sizes[2], n = sizes[3], b = bytes_of(sizes[1]), x = max(m, n), k = m < n ? m : n;
    /* gesdd's documented minimum is 4·k² + 7·k + x (real); more is faster */
    Job j = {.arrays = arrays,
             .sizes = sizes,
             .one = svd_one,
             .scratch =
                 (m * n + m * m + n * n + 5 * k * k + 2 * x * k + 2 * k * k + 20 * k + 6 * k * k + 80 * (m + n) + 100) *
                     b +
                 32 * k + 4096};
    if (x <= SMALL) return small[sizes[1]](call, arrays, sizes);
    j.lapack = routine(call, sizes[1], "gesdd", "gesdd");
    jaxcc_rt_each(call, &j, sizes[0], 20 * m * n * k);
}

/* ---- eig: sizes batch, kind, n, left, right; values, left and right vectors, all complex */
/* Column pairs of a real matrix as conjugate vectors. */
static void conjugates(int64_t kind, void *to, const void *v, const void *wi, int64_t n) {
    for (int64_t c = 0; c < n; c++) {
        double im = is_double(kind) ? ((const double *)wi)[c] : (double)((const float *)wi)[c];
        int64_t pair = im != 0 && c + 1 < n;
        for (int64_t r = 0; r < n; r++) {
            if (is_double(kind)) {
                const double *x = v;
                double p = x[c * n + r], q = pair ? x[(c + 1) * n + r] : 0;
                ((c128 *)to)[r * n + c] = CMPLX(p, q);
                if (pair) ((c128 *)to)[r * n + c + 1] = CMPLX(p, -q);
            } else {
                const float *x = v;
                float p = x[c * n + r], q = pair ? x[(c + 1) * n + r] : 0;
                ((c64 *)to)[r * n + c] = CMPLXF(p, q);
                if (pair) ((c64 *)to)[r * n + c + 1] = CMPLXF(p, -q);
            }
        }
        c += pair;
    }
}
static void eig_one(Job *j, int64_t i, void *scratch) {
    const int64_t *s = j->sizes;
    int64_t kind = s[1], n = s[2], b = bytes_of(kind), r = real_bytes(kind);
    int32_t n32 = (int32_t)n, info = 0, lwork = (int32_t)(n * 34 + 64);
    char *at = scratch, *jl = s[3] ? "V" : "N", *jr = s[4] ? "V" : "N";
    void *a = take(&at, n * n * b), *vl = take(&at, n * n * b), *vr = take(&at, n * n * b),
         *work = take(&at, lwork * b);
    void *wr = take(&at, n * b), *wi = take(&at, 2 * n * b), *w = part(j, 1, i, n, 2 * r);
    transposed(kind, a, part(j, 0, i, n * n, b), n, n);
    if (is_complex(kind))
        CALL(j, jl, jr, &n32, a, &n32, w, vl, &n32, vr, &n32, work, &lwork, wi, &info);
    else {
        CALL(j, jl, jr, &n32, a, &n32, wr, wi, vl, &n32, vr, &n32, work, &lwork, &info);
        for (int64_t k = 0; k < n; k++)
            if (is_double(kind))
                ((c128 *)w)[k] = CMPLX(((double *)wr)[k], ((double *)wi)[k]);
            else
                ((c64 *)w)[k] = CMPLXF(((float *)wr)[k], ((float *)wi)[k]);
    }
    for (int64_t side = 0; side < 2; side++) {
        if (!s[3 + side]) continue;
        void *to = part(j, side ? 2 + (uint32_t)s[3] : 2, i, n * n, 2 * r), *v = side ? vr : vl;
        if (is_complex(kind))
            transposed(kind, to, v, n, n);
        else
            conjugates(kind, to, v, wi, n);
        if (info) fill_nan(kind, to, 2 * n * n);
    }
    if (info) fill_nan(kind, w, 2 * n);
}
void jaxcc_rt_eig(jaxcc_rt_heap *call, void *const *arrays, const int64_t *sizes) {
    int64_t n = sizes[2], b = bytes_of(sizes[1]);
    Job j = {.arrays = arrays, .sizes = sizes, .one = eig_one, .scratch = (3 * n * n + 40 * n + 64) * b + 1024};
    if (!n) return;
    if (n <= SMALL) return jaxcc_rt_small_eig(call, arrays, sizes);
    j.lapack = routine(call, sizes[1], "geev", "geev");
    jaxcc_rt_each(call, &j, sizes[0], 50 * n * n * n);
}

/* ---- schur: sizes batch, kind, n, vectors; the triangular form, the vectors */
static void schur_one(Job *j, int64_t i, void *scratch) {
    const int64_t *s = j->sizes;
    int64_t kind = s[1], n = s[2], b = bytes_of(kind);
    int32_t n32 = (int32_t)n, info = 0, none = 0, lwork = (int32_t)(n * 34 + 64);
    char *at = scratch, *job = s[3] ? "V" : "N";
    void *a = take(&at, n * n * b), *vs = take(&at, n * n * b), *work = take(&at, lwork * b), *w = take(&at, 2 * n * b);
    void *wi = take(&at, 2 * n * b), *bwork = take(&at, 4 * n), *no = NULL;
    transposed(kind, a, part(j, 0, i, n * n, b), n, n);
    if (is_complex(kind))
        CALL(j, job, "N", no, &n32, a, &n32, &none, w, vs, &n32, work, &lwork, wi, bwork, &info);
    else
        CALL(j, job, "N", no, &n32, a, &n32, &none, w, wi, vs, &n32, work, &lwork, bwork, &info);
    for (uint32_t k = 0; k < 1 + (uint32_t)s[3]; k++) {
        void *to = part(j, 1 + k, i, n * n, b);
        transposed(kind, to, k ? vs : a, n, n);
        if (info) fill_nan(kind, to, reals(kind, n * n));
    }
}
void jaxcc_rt_schur(jaxcc_rt_heap *call, void *const *arrays, const int64_t *sizes) {
    int64_t n = sizes[2], b = bytes_of(sizes[1]);
    Job j = {
        .arrays = arrays, .sizes = sizes, .one = schur_one, .scratch = (2 * n * n + 40 * n + 64) * b + 4 * n + 1024};
    if (!n) return;
    if (n <= SMALL) return jaxcc_rt_small_schur(call, arrays, sizes);
    j.lapack = routine(call, sizes[1], "gees", "gees");
    jaxcc_rt_each(call, &j, sizes[0], 50 * n * n * n);
}

/* ---- hessenberg: sizes batch, kind, n; the form with its reflectors, their factors */
static void hessenberg_one(Job *j, int64_t i, void *scratch) {
    int64_t kind = j->sizes[1], n = j->sizes[2], b = bytes_of(kind);
    int32_t n32 = (int32_t)n, one = 1, info = 0, lwork = (int32_t)(64 * n + 65 * 64);
    char *at = scratch;
    void *a = take(&at, n * n * b), *work = take(&at, lwork * b), *to = part(j, 1, i, n * n, b),
         *taus = part(j, 2, i, n - 1, b);
    transposed(kind, a, part(j, 0, i, n * n, b), n, n);
    CALL(j, &n32, &one, &n32, a, &n32, taus, work, &lwork, &info);
    transposed(kind, to, a, n, n);
    if (info) fill_nan(kind, to, reals(kind, n * n)), fill_nan(kind, taus, reals(kind, n - 1));
}
void jaxcc_rt_hessenberg(jaxcc_rt_heap *call, void *const *arrays, const int64_t *sizes) {
    int64_t n = sizes[2], b = bytes_of(sizes[1]);
    Job j = {.arrays = arrays, .sizes = sizes, .one = hessenberg_one, .scratch = (n * n + 64 * n + 65 * 64) * b + 256};
    if (!n) return;
    if (n <= SMALL) return jaxcc_rt_small_hessenberg(call, arrays, sizes);
    j.lapack = routine(call, sizes[1], "gehrd", "gehrd");
    jaxcc_rt_each(call, &j, sizes[0], 5 * n * n * n);
}

/* ---- tridiagonal: sizes batch, kind, n, lower; the reflectors, the diagonal, the subdiagonal, the factors */
static void tridiagonal_one(Job *j, int64_t i, void *scratch) {
    int64_t kind = j->sizes[1], n = j->sizes[2], b = bytes_of(kind), r = real_bytes(kind);
    int32_t n32 = (int32_t)n, info = 0, lwork = (int32_t)(64 * n);
    char *at = scratch, *uplo = j->sizes[3] ? "L" : "U";
    void *a = take(&at, n * n * b), *work = take(&at, lwork * b), *to = part(j, 1, i, n * n, b),
         *d = part(j, 2, i, n, r);
    void *e = part(j, 3, i, n - 1, r), *taus = part(j, 4, i, n - 1, b);
    transposed(kind, a, part(j, 0, i, n * n, b), n, n);
    CALL(j, uplo, &n32, a, &n32, d, e, taus, work, &lwork, &info);
    transposed(kind, to, a, n, n);
    if (!info) return;
    fill_nan(kind, to, reals(kind, n * n)), fill_nan(kind, d, n), fill_nan(kind, e, n - 1);
    fill_nan(kind, taus, reals(kind, n - 1));
}
void jaxcc_rt_tridiagonal(jaxcc_rt_heap *call, void *const *arrays, const int64_t *sizes) {
    static jaxcc_rt_function *const small[] = SMALL_OF(tridiagonal);
    int64_t n = sizes[2], b = bytes_of(sizes[1]);
    Job j = {.arrays = arrays, .sizes = sizes, .one = tridiagonal_one, .scratch = (n * n + 64 * n) * b + 256};
    if (!n) return;
    if (n <= SMALL) return small[sizes[1]](call, arrays, sizes);
    j.lapack = routine(call, sizes[1], "sytrd", "hetrd");
    jaxcc_rt_each(call, &j, sizes[0], 5 * n * n * n);
}

/* ---- geqp3: sizes batch, kind, m, n; matrix and pivots → reflectors, pivots from 1, factors */
static void geqp3_one(Job *j, int64_t i, void *scratch) {
    int64_t kind = j->sizes[1], m = j->sizes[2], n = j->sizes[3], k = m < n ? m : n, b = bytes_of(kind);
    int32_t m32 = (int32_t)m, n32 = (int32_t)n, info = 0, lwork = (int32_t)(66 * (n + 1));
    char *at = scratch;
    void *a = take(&at, m * n * b), *work = take(&at, lwork * b), *rwork = take(&at, 2 * n * b),
         *to = part(j, 2, i, m * n, b);
    int32_t *pivots = part(j, 3, i, n, 4);
    void *taus = part(j, 4, i, k, b);
    transposed(kind, a, part(j, 0, i, m * n, b), m, n);
    memcpy(pivots, part(j, 1, i, n, 4), (size_t)n * 4);
    if (is_complex(kind))
        CALL(j, &m32, &n32, a, &m32, pivots, taus, work, &lwork, rwork, &info);
    else
        CALL(j, &m32, &n32, a, &m32, pivots, taus, work, &lwork, &info);
    transposed(kind, to, a, n, m);
}
void jaxcc_rt_geqp3(jaxcc_rt_heap *call, void *const *arrays, const int64_t *sizes) {
    static jaxcc_rt_function *const small[] = SMALL_OF(geqp3);
    int64_t m = sizes[2], n = sizes[3], b = bytes_of(sizes[1]);
    Job j = {.arrays = arrays, .sizes = sizes, .one = geqp3_one, .scratch = (m * n + 70 * (n + 1)) * b + 512};
    if (!m || !n) return;
    if (max(m, n) <= SMALL) return small[sizes[1]](call, arrays, sizes);
    j.lapack = routine(call, sizes[1], "geqp3", "geqp3");
    jaxcc_rt_each(call, &j, sizes[0], 4 * m * n * n);
}
