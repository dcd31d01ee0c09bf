/* libcusolver.so.12 for tests, with the functions of libcublas too: computes by LAPACK on the host what it is called
   for, on the memory of libcuda.so.1. It checks its arguments: an answer other than 0 is NVIDIA's. Of the environment:

   JAXCC_SOLVER_LOG=FILE    a line for each function that has computed, and for each handle that is left at the end
   JAXCC_SOLVER_FAIL=A:7:1  the function whose name contains A answers 7, in its first use; without :1 in all */
#include "runtime/cuda_driver.h"
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NOT_INITIALIZED = 1, INVALID_VALUE_SOLVER = 3, INVALID_VALUE_BLAS = 7, EXECUTION_FAILED = 6, MAGIC = 0x5eed };
typedef struct {
    int magic, told, told_kind; /* told: the last answer of a _bufferSize */
    CUstream stream;
    bool streamed; /* somebody has set it */
} Handle;
static int handles;

#pragma GCC diagnostic ignored "-Wstrict-prototypes"
typedef int Routine();
static Routine *of(const char *library, const char *name) {
    void *l = dlopen(library, RTLD_NOW), *found = l ? dlsym(l, name) : NULL;
    Routine *f;
    if (!found) fprintf(stderr, "cusolver: %s: %s\n", name, dlerror()), exit(1);
    memcpy(&f, &found, sizeof f);
    return f;
}
static Routine *lapack(int kind, const char *of_real, const char *of_complex) {
    char name[16];
    snprintf(name, sizeof name, "%c%s_", "sdcz"[kind], kind < 2 ? of_real : of_complex);
    return of("liblapack.so.3", name);
}
static size_t real_bytes(int kind) { return kind % 2 ? 8 : 4; }
static size_t bytes_of(int kind) { return real_bytes(kind) << (kind / 2); }
static void say(const char *what) {
    const char *path = getenv("JAXCC_SOLVER_LOG");
    FILE *f = path ? fopen(path, "a") : NULL;
    if (!f) return;
    fprintf(f, "%s\n", what);
    fclose(f);
}
/* What the function answers before it computes. */
static int begin(const Handle *h, const char *name) {
    const char *fail = getenv("JAXCC_SOLVER_FAIL"), *colon = fail ? strchr(fail, ':') : NULL;
    char part[40];
    static int calls;
    if (h && (h->magic != MAGIC || !h->streamed)) return NOT_INITIALIZED;
    say(name);
    if (!colon) return 0;
    snprintf(part, sizeof part, "%.*s", (int)(colon - fail), fail);
    const char *at = strchr(colon + 1, ':');
    return strstr(name, part) && (!at || ++calls == atoi(at + 1)) ? atoi(colon + 1) : 0;
}

/* ---- memory of the device: a copy of it, which is written back and freed */
static void *get(const Handle *h, const void *at, size_t bytes) {
    void *copy = calloc(bytes + 1, 1);
    if (of("libcuda.so.1", "cuMemcpyDtoHAsync_v2")(copy, at, bytes, h->stream) ||
        of("libcuda.so.1", "cuStreamSynchronize")(h->stream))
        fprintf(stderr, "cusolver: no memory of the device\n"), exit(1);
    return copy;
}
static void put(const Handle *h, const void *at, void *copy, size_t bytes) {
    if (!bytes) {
        free(copy);
        return;
    }
    if (of("libcuda.so.1", "cuMemcpyHtoDAsync_v2")(at, copy, bytes, h->stream) ||
        of("libcuda.so.1", "cuStreamSynchronize")(h->stream))
        fprintf(stderr, "cusolver: no memory of the device\n"), exit(1);
    free(copy);
}
/* The workspace has the size that was told, and is written to. */
static int used(const Handle *h, void *work, int kind, int lwork) {
    size_t bytes = (size_t)h->told * bytes_of(kind);
    if (lwork != h->told || kind != h->told_kind) return INVALID_VALUE_SOLVER;
    put(h, work, memset(malloc(bytes + 1), 0xa5, bytes), bytes);
    return 0;
}
static int tell(Handle *h, int kind, int room, int *lwork) {
    h->told_kind = kind;
    return *lwork = h->told = room, 0;
}

/* ---- handles */
static int create(Handle **h, const char *name) {
    int answer = begin(NULL, name);
    if (answer) return answer;
    *h = calloc(1, sizeof **h);
    (*h)->magic = MAGIC;
    handles++;
    return 0;
}
static int destroy(Handle *h) {
    if (h->magic != MAGIC) return NOT_INITIALIZED;
    h->magic = 0;
    handles--;
    free(h);
    return 0;
}
static int set_stream(Handle *h, CUstream stream) {
    h->stream = stream;
    h->streamed = true;
    return h->magic == MAGIC ? 0 : NOT_INITIALIZED;
}
int cusolverDnCreate(Handle **h) { return create(h, "cusolverDnCreate"); }
int cublasCreate_v2(Handle **h) { return create(h, "cublasCreate"); }
int cusolverDnDestroy(Handle *h) { return destroy(h); }
int cublasDestroy_v2(Handle *h) { return destroy(h); }
int cusolverDnSetStream(Handle *h, CUstream s) { return set_stream(h, s); }
int cublasSetStream_v2(Handle *h, CUstream s) { return set_stream(h, s); }
__attribute__((destructor)) static void left(void) {
    for (; handles > 0; handles--) say("a handle is left");
}

/* ---- by LAPACK, by element type: 0 f32, 1 f64, 2 c64, 3 c128 */
static int potrf(const Handle *h, int kind, int uplo, int n, void *a, int lda, void *work, int lwork, int *info) {
    size_t bytes = (size_t)lda * (size_t)n * bytes_of(kind);
    int answer = n < 0 || lda < n ? INVALID_VALUE_SOLVER : used(h, work, kind, lwork), said = 0;
    if (answer) return answer;
    void *x = get(h, a, bytes);
    lapack(kind, "potrf", "potrf")(uplo ? "U" : "L", &n, x, &lda, &said, (size_t)1);
    put(h, a, x, bytes);
    put(h, info, memcpy(malloc(sizeof said), &said, sizeof said), sizeof said);
    return 0;
}
static int getrf(const Handle *h, int kind, int m, int n, void *a, int lda, void *work, int *pivots, int *info) {
    int k = m < n ? m : n, answer = lda < m ? INVALID_VALUE_SOLVER : used(h, work, kind, h->told), said = 0;
    size_t bytes = (size_t)lda * (size_t)n * bytes_of(kind);
    if (answer) return answer;
    void *x = get(h, a, bytes);
    int *p = calloc((size_t)k, sizeof *p);
    lapack(kind, "getrf", "getrf")(&m, &n, x, &lda, p, &said);
    put(h, a, x, bytes);
    put(h, pivots, p, (size_t)k * sizeof *p);
    put(h, info, memcpy(malloc(sizeof said), &said, sizeof said), sizeof said);
    return 0;
}
static int geqrf(const Handle *h, int kind, int m, int n, void *a, int lda, void *tau, void *work, int lwork,
                 int *info) {
    int k = m < n ? m : n, answer = lda < m ? INVALID_VALUE_SOLVER : used(h, work, kind, lwork), said = 0,
        room = 64 * n;
    size_t bytes = (size_t)lda * (size_t)n * bytes_of(kind);
    if (answer) return answer;
    void *x = get(h, a, bytes), *t = calloc((size_t)k, bytes_of(kind)), *own = malloc((size_t)room * bytes_of(kind));
    lapack(kind, "geqrf", "geqrf")(&m, &n, x, &lda, t, own, &room, &said);
    free(own);
    put(h, a, x, bytes);
    put(h, tau, t, (size_t)k * bytes_of(kind));
    put(h, info, memcpy(malloc(sizeof said), &said, sizeof said), sizeof said);
    return 0;
}
static int orgqr(const Handle *h, int kind, int m, int n, int k, void *a, int lda, const void *tau, void *work,
                 int lwork, int *info) {
    int answer = lda < m || n > m || k > n ? INVALID_VALUE_SOLVER : used(h, work, kind, lwork), said = 0, room = 64 * n;
    size_t bytes = (size_t)lda * (size_t)n * bytes_of(kind);
    if (answer) return answer;
    void *x = get(h, a, bytes), *t = get(h, tau, (size_t)k * bytes_of(kind)),
         *own = malloc((size_t)room * bytes_of(kind));
    lapack(kind, "orgqr", "ungqr")(&m, &n, &k, x, &lda, t, own, &room, &said);
    free(own);
    free(t);
    put(h, a, x, bytes);
    put(h, info, memcpy(malloc(sizeof said), &said, sizeof said), sizeof said);
    return 0;
}
static int syevd(const Handle *h, int kind, int job, int uplo, int n, void *a, int lda, void *w, void *work, int lwork,
                 int *info) {
    int answer = lda < n || job != 1 ? INVALID_VALUE_SOLVER : used(h, work, kind, lwork), said = 0,
        room = 1 + 6 * n + 2 * n * n;
    size_t bytes = (size_t)lda * (size_t)n * bytes_of(kind), values = (size_t)n * real_bytes(kind);
    if (answer) return answer;
    void *x = get(h, a, bytes), *v = calloc(values, 1), *own = malloc((size_t)room * bytes_of(kind)),
         *r = malloc(3 * values);
    if (kind < 2)
        lapack(kind, "syev", "")("V", uplo ? "U" : "L", &n, x, &lda, v, own, &room, &said, (size_t)1, (size_t)1);
    else
        lapack(kind, "", "heev")("V", uplo ? "U" : "L", &n, x, &lda, v, own, &room, r, &said, (size_t)1, (size_t)1);
    free(own);
    free(r);
    put(h, a, x, bytes);
    put(h, w, v, values);
    put(h, info, memcpy(malloc(sizeof said), &said, sizeof said), sizeof said);
    return 0;
}
static int gesvd(const Handle *h, int kind, int jobu, int jobvt, int m, int n, void *a, int lda, void *s, void *u,
                 int ldu, void *vt, int ldvt, void *work, int lwork, void *rwork, int *info) {
    int none = jobu == 'N', um = jobu == 'A' ? m : n, room = 8 * (m + n) * 64, said = 0;
    if (m < n || lda < m || (!none && (ldu < m || ldvt < n)) || !strchr("NSA", jobu) || jobvt != jobu)
        return INVALID_VALUE_SOLVER;
    int answer = used(h, work, kind, lwork);
    size_t bytes = (size_t)lda * (size_t)n * bytes_of(kind), values = (size_t)n * real_bytes(kind);
    size_t u_bytes = none ? 0 : (size_t)ldu * (size_t)um * bytes_of(kind),
           vt_bytes = none ? 0 : (size_t)ldvt * (size_t)n * bytes_of(kind);
    if (answer) return answer;
    char job[2] = {(char)jobu};
    void *x = get(h, a, bytes), *v = calloc(values, 1), *p = calloc(u_bytes + 1, 1), *q = calloc(vt_bytes + 1, 1);
    void *own = malloc((size_t)room * bytes_of(kind)), *r = malloc(5 * values);
    if (kind < 2)
        lapack(kind, "gesvd", "")(job, job, &m, &n, x, &lda, v, p, &ldu, q, &ldvt, own, &room, &said, (size_t)1,
                                  (size_t)1);
    else
        lapack(kind, "", "gesvd")(job, job, &m, &n, x, &lda, v, p, &ldu, q, &ldvt, own, &room, r, &said, (size_t)1,
                                  (size_t)1);
    free(own);
    put(h, rwork, r, values - real_bytes(kind)); /* min(m, n) - 1 */
    put(h, a, x, bytes);
    put(h, s, v, values);
    put(h, u, p, u_bytes);
    put(h, vt, q, vt_bytes);
    put(h, info, memcpy(malloc(sizeof said), &said, sizeof said), sizeof said);
    return 0;
}
static int trsm(const Handle *h, int kind, int side, int uplo, int trans, int diag, int m, int n, const void *alpha,
                const void *a, int lda, void *b, int ldb) {
    int k = side ? n : m;
    size_t bytes = (size_t)ldb * (size_t)n * bytes_of(kind);
    if (lda < k || ldb < m) return INVALID_VALUE_BLAS;
    void *t = get(h, a, (size_t)lda * (size_t)k * bytes_of(kind)), *x = get(h, b, bytes);
    lapack(kind, "trsm", "trsm")(side ? "R" : "L", uplo ? "U" : "L", trans ? trans == 1 ? "T" : "C" : "N",
                                 diag ? "U" : "N", &m, &n, alpha, t, &lda, x, &ldb, (size_t)1, (size_t)1, (size_t)1,
                                 (size_t)1);
    free(t);
    put(h, b, x, bytes);
    return 0;
}
/* Transposes alone. */
static int geam(const Handle *h, int kind, int ta, int tb, int m, int n, const void *alpha, const void *a, int lda,
                const void *beta, const void *b, int ldb, void *c, int ldc) {
    size_t size = bytes_of(kind), bytes = (size_t)ldc * (size_t)n * size;
    double one = kind % 2 ? *(const double *)alpha : (double)*(const float *)alpha;
    double zero = kind % 2 ? *(const double *)beta : (double)*(const float *)beta;
    if (ta != 1 || tb || lda < n || ldb < m || ldc < m || one != 1 || zero != 0 || (b == c && ldb != ldc))
        return INVALID_VALUE_BLAS;
    char *x = get(h, a, (size_t)lda * (size_t)m * size), *y = calloc(bytes + 1, 1);
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++)
            memcpy(y + ((size_t)j * (size_t)ldc + (size_t)i) * size, x + ((size_t)i * (size_t)lda + (size_t)j) * size,
                   size);
    free(x);
    put(h, c, y, bytes);
    return 0;
}

/* ---- their names */
#define BY_LAPACK(letter, kind, name, by, parameters, ...)                                                             \
    int cusolverDn##letter##name parameters {                                                                          \
        int answer = begin(h, "cusolverDn" #letter #name);                                                             \
        return answer ? answer : by(h, kind, __VA_ARGS__);                                                             \
    }
#define ROOM(letter, kind, name, room, ...)                                                                            \
    int cusolverDn##letter##name##_bufferSize(Handle *h, __VA_ARGS__, int *lwork) { return tell(h, kind, room, lwork); }
#define BLAS(letter, kind, symbol, by, parameters, ...)                                                                \
    int symbol parameters {                                                                                            \
        int answer = begin(h, #symbol);                                                                                \
        return answer ? answer : by(h, kind, __VA_ARGS__);                                                             \
    }
#define TYPE(L, kind, orgqr_, syevd_)                                                                                  \
    ROOM(L, kind, potrf, 3 * n + 1, int uplo, int n, void *a, int lda)                                                 \
    BY_LAPACK(L, kind, potrf, potrf,                                                                                   \
              (Handle * h, int uplo, int n, void *a, int lda, void *work, int lwork, int *info), uplo, n, a, lda,      \
              work, lwork, info)                                                                                       \
    ROOM(L, kind, getrf, m + n, int m, int n, void *a, int lda)                                                        \
    BY_LAPACK(L, kind, getrf, getrf, (Handle * h, int m, int n, void *a, int lda, void *work, int *pivots, int *info), \
              m, n, a, lda, work, pivots, info)                                                                        \
    ROOM(L, kind, geqrf, 2 * m + n, int m, int n, void *a, int lda)                                                    \
    BY_LAPACK(L, kind, geqrf, geqrf,                                                                                   \
              (Handle * h, int m, int n, void *a, int lda, void *tau, void *work, int lwork, int *info), m, n, a, lda, \
              tau, work, lwork, info)                                                                                  \
    ROOM(L, kind, orgqr_, m + 2 * n + k, int m, int n, int k, const void *a, int lda, const void *tau)                 \
    BY_LAPACK(L, kind, orgqr_, orgqr,                                                                                  \
              (Handle * h, int m, int n, int k, void *a, int lda, const void *tau, void *work, int lwork, int *info),  \
              m, n, k, a, lda, tau, work, lwork, info)                                                                 \
    ROOM(L, kind, syevd_, 5 * n + 2, int job, int uplo, int n, const void *a, int lda, const void *w)                  \
    BY_LAPACK(L, kind, syevd_, syevd,                                                                                  \
              (Handle * h, int job, int uplo, int n, void *a, int lda, void *w, void *work, int lwork, int *info),     \
              job, uplo, n, a, lda, w, work, lwork, info)                                                              \
    ROOM(L, kind, gesvd, 4 * m + n, int m, int n)                                                                      \
    BY_LAPACK(L, kind, gesvd, gesvd,                                                                                   \
              (Handle * h, signed char jobu, signed char jobvt, int m, int n, void *a, int lda, void *s, void *u,      \
               int ldu, void *vt, int ldvt, void *work, int lwork, void *rwork, int *info),                            \
              jobu, jobvt, m, n, a, lda, s, u, ldu, vt, ldvt, work, lwork, rwork, info)                                \
    BLAS(L, kind, cublas##L##trsm_v2, trsm,                                                                            \
         (Handle * h, int side, int uplo, int trans, int diag, int m, int n, const void *alpha, const void *a,         \
          int lda, void *b, int ldb),                                                                                  \
         side, uplo, trans, diag, m, n, alpha, a, lda, b, ldb)                                                         \
    BLAS(L, kind, cublas##L##geam, geam,                                                                               \
         (Handle * h, int ta, int tb, int m, int n, const void *alpha, const void *a, int lda, const void *beta,       \
          const void *b, int ldb, void *c, int ldc),                                                                   \
         ta, tb, m, n, alpha, a, lda, beta, b, ldb, c, ldc)
TYPE(S, 0, orgqr, syevd)
TYPE(D, 1, orgqr, syevd)
TYPE(C, 2, ungqr, heevd)
TYPE(Z, 3, ungqr, heevd)
