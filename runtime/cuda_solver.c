/* Linear algebra by cuSOLVER and cuBLAS, which the first call that needs them loads. Their functions have LAPACK's
   names and meaning; our rows are their columns. What a function says of a matrix, `info`, is read by the host, so that
   a lane's handles have no work when the call gives it back. */
#include "cuda_solver.h"
#include "cuda_call.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the libraries, and their handles. At the end of the process the handles go before the libraries do: each is in a
   list, and whoever ends a lane finds it without them. */
typedef struct Solver {
    struct Solver *next;
    Device *device;
    void *solver, *blas; /* handles; NULL: gone */
} Solver;
static struct {
    pthread_mutex_t lock;
    void *library; /* libcusolver, which depends on libcublas */
    bool searched, registered;
    uint64_t unfit; /* for these GPUs, a bit each */
    Tries starts;
    Solver *all;
} solvers = {.lock = PTHREAD_MUTEX_INITIALIZER};

#pragma GCC diagnostic ignored "-Wstrict-prototypes"
typedef int Routine();
static Routine *find(const char *name) {
    Routine *f = NULL;
    void *found = dlsym(solvers.library, name);
    memcpy(&f, &found, sizeof f);
    return f;
}
static bool search(void) {
    static const char *const names[] = {"libcusolver.so.12", "libcusolver.so.11"};
    static const char *const needed[] = {"cusolverDnCreate", "cusolverDnDestroy", "cusolverDnSetStream",
                                         "cublasCreate_v2",  "cublasDestroy_v2",  "cublasSetStream_v2"};
    for (unsigned i = 0; i < sizeof names / sizeof *names && !solvers.library && !solvers.searched; i++)
        solvers.library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    solvers.searched = true;
    for (unsigned i = 0; i < sizeof needed / sizeof *needed && solvers.library; i++)
        if (!find(needed[i])) solvers.library = NULL;
    return solvers.library;
}

static void drop_handles(Solver *s) {
    if (s->solver) find("cusolverDnDestroy")(s->solver);
    if (s->blas) find("cublasDestroy_v2")(s->blas);
    s->solver = s->blas = NULL;
}
/* With the device's context pushed, as a lane ends. */
static void solver_end(void *solver) {
    Solver *s = solver, **at = &solvers.all;
    pthread_mutex_lock(&solvers.lock);
    while (*at != s) at = &(*at)->next;
    *at = s->next;
    drop_handles(s);
    pthread_mutex_unlock(&solvers.lock);
    free(s);
}
static void end_all(void *nothing) {
    (void)nothing;
    if (!jaxcc_rt_cuda_idle()) return;
    for (Solver *s = solvers.all; s; s = s->next) {
        if (jaxcc_rt_cuda_enter(s->device)) continue;
        drop_handles(s);
        jaxcc_rt_cuda_leave();
    }
}
enum { ALLOC_FAILED = 2, ALLOC_FAILED_BLAS = 3 }; /* cusolverStatus_t, cublasStatus_t */
enum { ARCH_MISMATCH = 4, NOT_SUPPORTED = 9, ARCH_MISMATCH_BLAS = 8, NOT_SUPPORTED_BLAS = 15 }; /* the same */
/* Makes the handles, or none. */
static bool start(Solver *s) {
    int solver = find("cusolverDnCreate")(&s->solver), blas = solver ? 0 : find("cublasCreate_v2")(&s->blas);
    if (solver == ARCH_MISMATCH || solver == NOT_SUPPORTED || blas == ARCH_MISMATCH_BLAS || blas == NOT_SUPPORTED_BLAS)
        solvers.unfit |= (uint64_t)1 << s->device->ordinal;
    if (solver || blas) drop_handles(s);
    return !solver && !blas;
}
/* NULL: this call does without. */
static Solver *solver_new(Device *d) {
    Solver *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    s->device = d;
    bool good = start(s);
    tried(&solvers.starts, good);
    if (!good) {
        free(s);
        return NULL;
    }
    if (!solvers.registered) solvers.registered = jaxcc_rt_cuda_at_end(end_all);
    s->next = solvers.all;
    return solvers.all = s;
}
/* That of the call's lane. */
static Solver *solver_of(Call *c) {
    Lane *l = c->lane;
    pthread_mutex_lock(&solvers.lock);
    bool fit = !(solvers.unfit >> c->device->ordinal & 1) && !c->without_solver && search();
    if (!l->solver && fit && try_now(&solvers.starts)) l->solver = solver_new(c->device);
    if (l->solver) l->solver_end = solver_end;
    c->without_solver = !l->solver;
    pthread_mutex_unlock(&solvers.lock);
    return l->solver;
}

/* ---- a call on a batch */
enum { F32, F64, C64, C128 };
typedef struct {
    jaxcc_rt_heap *h;
    const Solver *s;
    void *const *arrays;
    const int64_t *sizes;
    int kind;
    int64_t bytes, real_bytes; /* of an element, and of its real part */
    void *work;                /* of lwork elements */
    int lwork;
    int32_t *info; /* on the device, one for each matrix */
} Work;
enum { LOWER, UPPER };           /* cublasFillMode_t */
enum { PLAIN, TRANSPOSED };      /* cublasOperation_t */
enum { RIGHT = 1, VECTORS = 1 }; /* cublasSideMode_t, cusolverEigMode_t */

static Routine *routine(const Work *w, const char *format, const char *of_real, const char *of_complex) {
    char name[40];
    snprintf(name, sizeof name, format, "SDCZ"[w->kind], w->kind < C64 ? of_real : of_complex);
    Routine *f = find(name);
    if (!f) jaxcc_rt_stop(w->h, JAXCC_MISSING, "the cuSOLVER that is installed has no %s", name);
    return f;
}
static void check(const Work *w, const char *what, int result, int no_memory) {
    if (!result) return;
    jaxcc_rt_stop(w->h, result == no_memory ? JAXCC_MEMORY : JAXCC_INTERNAL, "GPU %d: %s failed with status %d",
                  w->s->device->ordinal, what, result);
}
#define BLAS(w, name, ...)                                                                                             \
    check(w, "cuBLAS' " name, routine(w, "cublas%c%s_v2", name, name)((w)->s->blas, __VA_ARGS__), ALLOC_FAILED_BLAS)
/* The workspace that a function asks for, and the function. */
#define ROOM(w, of_real, of_complex, ...)                                                                              \
    check(w, "cuSOLVER's " of_real "_bufferSize",                                                                      \
          routine(w, "cusolverDn%c%s_bufferSize", of_real, of_complex)((w)->s->solver, __VA_ARGS__, &(w)->lwork),      \
          ALLOC_FAILED);                                                                                               \
    (w)->work = jaxcc_rt_cuda_get((w)->h, (w)->lwork * (w)->bytes)
#define SOLVE(w, of_real, of_complex, ...)                                                                             \
    check(w, "cuSOLVER's " of_real, routine(w, "cusolverDn%c%s", of_real, of_complex)((w)->s->solver, __VA_ARGS__),    \
          ALLOC_FAILED)

/* Matrix i of array k, whose matrices have `n` elements of `bytes`. */
static void *part(const Work *w, int k, int64_t i, int64_t n, int64_t bytes) {
    return (char *)w->arrays[k] + i * n * bytes;
}
static const void *number(const Work *w, int n) {
    static const float f[2][2] = {{0, 0}, {1, 0}};
    static const double d[2][2] = {{0, 0}, {1, 0}};
    return w->kind % 2 ? (const void *)d[n] : f[n];
}
/* `to`: the transpose of m rows of n elements. */
static void transpose(const Work *w, void *to, const void *from, int64_t m, int64_t n) {
    int rows = (int)m, columns = (int)n;
    Routine *geam = routine(w, "cublas%c%s", "geam", "geam");
    check(w, "cuBLAS' geam",
          geam(w->s->blas, TRANSPOSED, PLAIN, rows, columns, number(w, 1), from, columns, number(w, 0), to, rows, to,
               rows),
          ALLOC_FAILED_BLAS);
}
/* Bits that are a NaN in each half of a double too. */
static void fill_nan(const Work *w, void *x, int64_t bytes) {
    if (w->kind % 2)
        jaxcc_rt_cuda_fill(w->h, x, 0x7ff800007ff80000, 8, bytes / 8);
    else
        jaxcc_rt_cuda_fill(w->h, x, 0x7fc00000, 4, bytes / 4);
}
/* Where `info` says that it failed, matrix i of the arrays from k on is NaN: of these sizes, until one is 0. */
static void fail_nan(const Work *w, int k, const int64_t *bytes) {
    int64_t batch = w->sizes[0];
    int32_t *info = jaxcc_rt_heap_get(w->h, batch * (int64_t)sizeof *info);
    jaxcc_rt_cuda_read(w->h, info, w->info, batch * (int64_t)sizeof *info);
    for (int64_t i = 0; i < batch; i++)
        for (int a = 0; info[i] && bytes[a]; a++) fill_nan(w, part(w, k + a, i, 1, bytes[a]), bytes[a]);
    jaxcc_rt_heap_put(w->h, info);
}

/* ---- as the functions of linalg_ops.h and lapack.c, with their sizes */
static void cholesky(Work *w) {
    int64_t batch = w->sizes[0], elements = w->sizes[1] * w->sizes[1];
    int n = (int)w->sizes[1];
    jaxcc_rt_cuda_copy(w->h, w->arrays[1], w->arrays[0], batch * elements * w->bytes);
    ROOM(w, "potrf", "potrf", UPPER, n, w->arrays[1], n);
    for (int64_t i = 0; i < batch; i++)
        SOLVE(w, "potrf", "potrf", UPPER, n, part(w, 1, i, elements, w->bytes), n, w->work, w->lwork, w->info + i);
    fail_nan(w, 1, (int64_t[]){elements * w->bytes, 0});
}

/* Row swaps from 1 on become those from 0 on. */
static void from_zero(const Work *w, int32_t *pivots, int64_t n) {
    int64_t bytes = n * (int64_t)sizeof *pivots;
    int32_t *host = jaxcc_rt_heap_get(w->h, bytes);
    jaxcc_rt_cuda_read(w->h, host, pivots, bytes);
    for (int64_t i = 0; i < n; i++) host[i]--;
    jaxcc_rt_cuda_upload(w->h, pivots, host, bytes);
    jaxcc_rt_heap_put(w->h, host);
}
static void lu(Work *w) {
    int64_t m = w->sizes[1], n = w->sizes[2], k = m < n ? m : n;
    void *x = jaxcc_rt_cuda_get(w->h, m * n * w->bytes);
    ROOM(w, "getrf", "getrf", (int)m, (int)n, x, (int)m);
    for (int64_t i = 0; i < w->sizes[0]; i++) {
        transpose(w, x, part(w, 0, i, m * n, w->bytes), m, n);
        SOLVE(w, "getrf", "getrf", (int)m, (int)n, x, (int)m, w->work, part(w, 2, i, k, sizeof(int32_t)), w->info + i);
        transpose(w, part(w, 1, i, m * n, w->bytes), x, n, m);
    }
    from_zero(w, w->arrays[2], w->sizes[0] * k);
    jaxcc_rt_cuda_put(w->h, x);
}
static void geqrf(Work *w) {
    int64_t m = w->sizes[1], n = w->sizes[2], k = m < n ? m : n;
    void *x = jaxcc_rt_cuda_get(w->h, m * n * w->bytes);
    ROOM(w, "geqrf", "geqrf", (int)m, (int)n, x, (int)m);
    for (int64_t i = 0; i < w->sizes[0]; i++) {
        transpose(w, x, part(w, 0, i, m * n, w->bytes), m, n);
        SOLVE(w, "geqrf", "geqrf", (int)m, (int)n, x, (int)m, part(w, 2, i, k, w->bytes), w->work, w->lwork,
              w->info + i);
        transpose(w, part(w, 1, i, m * n, w->bytes), x, n, m);
    }
    fail_nan(w, 1, (int64_t[]){m * n * w->bytes, 0});
    jaxcc_rt_cuda_put(w->h, x);
}
static void orgqr(Work *w) {
    int64_t m = w->sizes[1], n = w->sizes[2], k = w->sizes[3];
    void *x = jaxcc_rt_cuda_get(w->h, m * n * w->bytes);
    ROOM(w, "orgqr", "ungqr", (int)m, (int)n, (int)k, x, (int)m, w->arrays[1]);
    for (int64_t i = 0; i < w->sizes[0]; i++) {
        transpose(w, x, part(w, 0, i, m * n, w->bytes), m, n);
        SOLVE(w, "orgqr", "ungqr", (int)m, (int)n, (int)k, x, (int)m, part(w, 1, i, k, w->bytes), w->work, w->lwork,
              w->info + i);
        transpose(w, part(w, 2, i, m * n, w->bytes), x, n, m);
    }
    fail_nan(w, 2, (int64_t[]){m * n * w->bytes, 0});
    jaxcc_rt_cuda_put(w->h, x);
}
/* Xᵀ op(A)ᵀ = Bᵀ */
static void triangular(Work *w) {
    const int64_t *s = w->sizes;
    int64_t n = s[1], r = s[2];
    jaxcc_rt_cuda_copy(w->h, w->arrays[2], w->arrays[1], s[0] * n * r * w->bytes);
    for (int64_t i = 0; i < s[0]; i++)
        BLAS(w, "trsm", RIGHT, s[3] ? UPPER : LOWER, s[4] ? TRANSPOSED : PLAIN, (int)!!s[5], (int)r, (int)n,
             number(w, 1), part(w, 0, i, n * n, w->bytes), (int)n, part(w, 2, i, n * r, w->bytes), (int)r);
    fail_nan(w, 2, (int64_t[]){0}); /* waits */
}
static void eigh(Work *w) {
    int64_t n = w->sizes[2], lower = w->sizes[3] ? LOWER : UPPER;
    void *x = jaxcc_rt_cuda_get(w->h, n * n * w->bytes);
    ROOM(w, "syevd", "heevd", VECTORS, (int)lower, (int)n, x, (int)n, w->arrays[2]);
    for (int64_t i = 0; i < w->sizes[0]; i++) {
        transpose(w, x, part(w, 0, i, n * n, w->bytes), n, n);
        SOLVE(w, "syevd", "heevd", VECTORS, (int)lower, (int)n, x, (int)n, part(w, 2, i, n, w->real_bytes), w->work,
              w->lwork, w->info + i);
        transpose(w, part(w, 1, i, n * n, w->bytes), x, n, n);
    }
    fail_nan(w, 1, (int64_t[]){n * n * w->bytes, n * w->real_bytes, 0});
    jaxcc_rt_cuda_put(w->h, x);
}

/* A matrix with more columns than rows is taken as its transpose, which has the singular vectors of both sides
   exchanged and needs no copy turned round; cuSOLVER wants no fewer rows than columns. */
typedef struct {
    int64_t m, n, k, um, vn; /* u is m × um, vt is vn × n */
    void *x, *u, *vt, *rest;
} Svd;
static void svd_of_wide(const Work *w, const Svd *v, int64_t i, int job) {
    void *u = job == 'N' ? NULL : part(w, 2, i, v->m * v->um, w->bytes);
    void *vt = job == 'N' ? NULL : part(w, 3, i, v->vn * v->n, w->bytes);
    jaxcc_rt_cuda_copy(w->h, v->x, part(w, 0, i, v->m * v->n, w->bytes), v->m * v->n * w->bytes);
    SOLVE(w, "gesvd", "gesvd", job, job, (int)v->n, (int)v->m, v->x, (int)v->n, part(w, 1, i, v->k, w->real_bytes), vt,
          (int)v->n, u, (int)v->um, w->work, w->lwork, v->rest, w->info + i);
}
static void svd_of_tall(const Work *w, const Svd *v, int64_t i, int job) {
    transpose(w, v->x, part(w, 0, i, v->m * v->n, w->bytes), v->m, v->n);
    SOLVE(w, "gesvd", "gesvd", job, job, (int)v->m, (int)v->n, v->x, (int)v->m, part(w, 1, i, v->k, w->real_bytes),
          v->u, (int)v->m, v->vt, (int)v->vn, w->work, w->lwork, v->rest, w->info + i);
    if (job == 'N') return;
    transpose(w, part(w, 2, i, v->m * v->um, w->bytes), v->u, v->um, v->m);
    transpose(w, part(w, 3, i, v->vn * v->n, w->bytes), v->vt, v->n, v->vn);
}
static void svd(Work *w) {
    const int64_t *s = w->sizes;
    Svd v = {.m = s[2], .n = s[3], .k = s[2] < s[3] ? s[2] : s[3]};
    int job = s[4] == 0 ? 'N' : s[4] == 1 ? 'S' : 'A';
    bool wide = v.m <= v.n, full = s[4] == 2;
    v.um = full ? v.m : v.k, v.vn = full ? v.n : v.k;
    int64_t u = wide ? 0 : v.m * v.um, vt = wide ? 0 : v.vn * v.n, all = v.m * v.n + u + vt + v.k;
    v.x = jaxcc_rt_cuda_get(w->h, all * w->bytes);
    v.u = (char *)v.x + v.m * v.n * w->bytes;
    v.vt = (char *)v.u + u * w->bytes;
    v.rest = (char *)v.vt + vt * w->bytes;
    ROOM(w, "gesvd", "gesvd", (int)(wide ? v.n : v.m), (int)v.k);
    for (int64_t i = 0; i < s[0]; i++) (wide ? svd_of_wide : svd_of_tall)(w, &v, i, job);
    fail_nan(w, 1, (int64_t[]){v.k * w->real_bytes, s[4] ? v.m * v.um * w->bytes : 0, v.vn * v.n * w->bytes, 0});
    jaxcc_rt_cuda_put(w->h, v.x);
}

/* ---- the functions. Sizes from `first` on, `n` of them, are those of the matrices. */
typedef struct {
    void (*run)(Work *);
    int first, n;
} Solution;
static bool suits(const Solution *a, const int64_t *sizes) {
    bool large = false, some = sizes[0] > 0;
    for (int i = a->first; i < a->first + a->n; i++) {
        large |= sizes[i] >= JAXCC_RT_SOLVER_LEAST;
        some &= sizes[i] > 0 && sizes[i] <= INT32_MAX;
    }
    return large && some;
}
/* False: by the host. */
static bool solved(jaxcc_rt_heap *h, const Solution *a, int kind, void *const *arrays, const int64_t *sizes) {
    Call *c = call_of(h);
    if (!suits(a, sizes)) return false;
    must(h, jaxcc_rt_cuda_take_lane(c));
    Work w = {.h = h, .s = solver_of(c), .arrays = arrays, .sizes = sizes, .kind = kind};
    if (!w.s) return false;
    w.real_bytes = kind % 2 ? 8 : 4;
    w.bytes = kind < C64 ? w.real_bytes : 2 * w.real_bytes;
    check(&w, "cusolverDnSetStream", find("cusolverDnSetStream")(w.s->solver, c->stream), ALLOC_FAILED);
    check(&w, "cublasSetStream", find("cublasSetStream_v2")(w.s->blas, c->stream), ALLOC_FAILED_BLAS);
    int64_t bytes = sizes[0] * (int64_t)sizeof(int32_t);
    w.info = jaxcc_rt_cuda_get(h, bytes);
    jaxcc_rt_cuda_fill(h, w.info, 0, sizeof(int32_t), sizes[0]);
    a->run(&w);
    if (w.work) jaxcc_rt_cuda_put(h, w.work);
    jaxcc_rt_cuda_put(h, w.info);
    return true;
}
#define SOLVER(name, kind, ...)                                                                                        \
    void jaxcc_rt_cuda_##name(jaxcc_rt_heap *h, jaxcc_rt_function *host, void *const *arrays, const int64_t *bytes,    \
                              int64_t n_in, int64_t n_out, const int64_t *sizes) {                                     \
        static const Solution solution = {__VA_ARGS__};                                                                \
        if (!solved(h, &solution, (int)(kind), arrays, sizes))                                                         \
            jaxcc_rt_cuda_host(h, host, arrays, bytes, n_in, n_out, sizes);                                            \
    }
#define SOLVERS(name, ...)                                                                                             \
    SOLVER(name##_f32, F32, name, __VA_ARGS__)                                                                         \
    SOLVER(name##_f64, F64, name, __VA_ARGS__)                                                                         \
    SOLVER(name##_c64, C64, name, __VA_ARGS__)                                                                         \
    SOLVER(name##_c128, C128, name, __VA_ARGS__)
SOLVERS(cholesky, 1, 1)
SOLVERS(lu, 1, 2)
SOLVERS(geqrf, 1, 2)
SOLVERS(orgqr, 1, 3)
SOLVERS(triangular, 1, 2)
SOLVER(eigh, sizes[1], eigh, 2, 1)
SOLVER(svd, sizes[1], svd, 2, 2)
