/* Functions for runtime_call, for one element type: KIND, T and R as in linalg_small.h, V its name,
   LANES the number of matrices in a vector. */
#define F(f) J1(f##_, V) /* cholesky_f32 */
#define ENTRY(f) void J1(jaxcc_rt_##f##_, V)(jaxcc_rt_heap * call, void *const *arrays, const int64_t *sizes)

static void F(fill_nan)(T *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) x[i] = (T)__builtin_nan("") + (KIND > 1 ? (T)(__builtin_nan("") * 1.0i) : (T)0);
}
/* Matrix l of LANES goes to lane l; beyond the end of the batch its last matrix is repeated. */
static void F(pack)(T *to, const T *from, int64_t elements, int64_t count) {
    for (int64_t l = 0; l < LANES; l++) {
        const T *x = from + (l < count ? l : count - 1) * elements;
        for (int64_t e = 0; e < elements; e++) to[e * LANES + l] = x[e];
    }
}
static void F(unpack)(T *to, const T *from, int64_t elements, int64_t count) {
    for (int64_t l = 0; l < count; l++)
        for (int64_t e = 0; e < elements; e++) to[l * elements + e] = from[e * LANES + l];
}
static int64_t F(count)(const Job *j, int64_t block) {
    int64_t rest = j->sizes[0] - block * LANES;
    return rest < LANES ? rest : LANES;
}
#define LEVELS(f) {J1(f##_, J1(V, _v2)), J1(f##_, J1(V, _v3)), J1(f##_, J1(V, _v4))}
#define IN_LANES(n) (sizes[0] >= LANES / 2 && (n) <= SMALL)
#define RUN_LANES(f, bytes, cost)                                                                                      \
    Job j = {.arrays = arrays, .sizes = sizes, .scratch = (bytes) * LANES, .one = F(f##_lanes)};                       \
    jaxcc_rt_each(call, &j, (sizes[0] + LANES - 1) / LANES, (cost) * LANES / 4)
#define RUN(f, bytes, cost)                                                                                            \
    Job j = {.arrays = arrays, .sizes = sizes, .scratch = bytes, .one = F(f##_one)};                                   \
    jaxcc_rt_each(call, &j, sizes[0], cost)
/* What linalg_blocks.h needs of scratch. */
#define ROOM(m, n) ((m) > SMALL || (n) > SMALL ? jaxcc_rt_room(m, n) * (int64_t)sizeof(T) : 0)

/* ---- cholesky: sizes batch, n */
static void F(cholesky_one)(Job *j, int64_t i, void *scratch) {
    static void (*const level[])(T *, const T *, int64_t, uint8_t *, Room) = LEVELS(cholesky_blocks);
    int64_t n = j->sizes[1];
    uint8_t bad = 0;
    T *x = (T *)j->arrays[1] + i * n * n;
    const T *a = (const T *)j->arrays[0] + i * n * n;
    if (n > SMALL) {
        level[j->level](x, a, n, &bad, jaxcc_rt_job_room(j, scratch));
    } else {
        jaxcc_rt_copy(x, a, (int64_t)sizeof(T) * n * n);
        F(cholesky)(x, n, &bad);
    }
    if (bad) F(fill_nan)(x, n * n);
}
static void F(cholesky_lanes)(Job *j, int64_t block, void *scratch) {
    static void (*const level[])(T *, int64_t, uint8_t *) = LEVELS(cholesky);
    int64_t n = j->sizes[1], size = n * n, count = F(count)(j, block);
    T *x = scratch, *out = (T *)j->arrays[1] + block * LANES * size;
    uint8_t bad[LANES] = {0};
    F(pack)(x, (const T *)j->arrays[0] + block * LANES * size, size, count);
    level[j->level](x, n, bad);
    F(unpack)(out, x, size, count);
    for (int64_t l = 0; l < count; l++)
        if (bad[l]) F(fill_nan)(out + l * size, size);
}
ENTRY(cholesky) {
    int64_t n = sizes[1];
    if (IN_LANES(n)) {
        RUN_LANES(cholesky, n * n * (int64_t)sizeof(T), n * n * n);
        return;
    }
    RUN(cholesky, ROOM(n, n), n * n * n);
}

/* ---- lu: sizes batch, m, n; the factors, the pivots */
static void F(lu_one)(Job *j, int64_t i, void *scratch) {
    int64_t m = j->sizes[1], n = j->sizes[2], k = jaxcc_rt_least(m, n);
    static void (*const level[])(T *, int64_t, int64_t, int64_t, int32_t *, Room) = LEVELS(lu_blocks);
    T *x = (T *)j->arrays[1] + i * m * n;
    int32_t *pivots = (int32_t *)j->arrays[2] + i * k;
    jaxcc_rt_copy(x, (const T *)j->arrays[0] + i * m * n, (int64_t)sizeof(T) * m * n);
    if (m > SMALL || n > SMALL)
        level[j->level](x, n, m, n, pivots, jaxcc_rt_job_room(j, scratch));
    else
        F(lu)(x, m, n, pivots);
}
static void F(lu_lanes)(Job *j, int64_t block, void *scratch) {
    static void (*const level[])(T *, int64_t, int64_t, int32_t *) = LEVELS(lu);
    int64_t m = j->sizes[1], n = j->sizes[2], k = jaxcc_rt_least(m, n), count = F(count)(j, block);
    T *x = scratch;
    int32_t *pivots = (int32_t *)(x + m * n * LANES), *out = (int32_t *)j->arrays[2] + block * LANES * k;
    F(pack)(x, (const T *)j->arrays[0] + block * LANES * m * n, m * n, count);
    level[j->level](x, m, n, pivots);
    F(unpack)((T *)j->arrays[1] + block * LANES * m * n, x, m * n, count);
    for (int64_t l = 0; l < count; l++)
        for (int64_t p = 0; p < k; p++) out[l * k + p] = pivots[p * LANES + l];
}
ENTRY(lu) {
    int64_t m = sizes[1], n = sizes[2], most = m > n ? m : n;
    if (IN_LANES(most)) {
        RUN_LANES(lu, m * n * (int64_t)sizeof(T) + most * (int64_t)sizeof(int32_t), m * n * n);
        return;
    }
    RUN(lu, ROOM(m, n), m * n * n);
}

/* ---- triangular: sizes batch, n, r, lower, transposed, unit */
/* Where lanes, and blocks of one matrix, are fastest: 200 f64 of 32 × 32 by 32 in 0.8 ms by blocks, not 5.7 by lanes. */
enum {
    F(SOLVED_IN_LANES) = KIND == 0   ? 200
                         : KIND == 3 ? 16
                                     : 32, /* results */
    F(SOLVED_IN_BLOCKS) = KIND < 2 ? 160 : SMALL * SMALL,
    F(COLUMN_IN_BLOCKS) = KIND < 2 ? 24 : SMALL + 1, /* rows of a single right-hand side */
};
static bool F(solved_in_blocks)(int64_t n, int64_t r) {
    return n > SMALL || r > SMALL || n * r >= F(SOLVED_IN_BLOCKS) || (r == 1 && n >= F(COLUMN_IN_BLOCKS));
}
static void F(triangular_one)(Job *j, int64_t i, void *scratch) {
    const int64_t *s = j->sizes;
    int64_t n = s[1], r = s[2];
    const T *a = (const T *)j->arrays[0] + i * n * n;
    static void (*const level[])(const T *, T *, int64_t, int64_t, bool, bool, bool, Room) = LEVELS(solve_blocks);
    T *x = (T *)j->arrays[2] + i * n * r;
    jaxcc_rt_copy(x, (const T *)j->arrays[1] + i * n * r, (int64_t)sizeof(T) * n * r);
    if (F(solved_in_blocks)(n, r))
        level[j->level](a, x, n, r, s[3], s[4], s[5], jaxcc_rt_job_room(j, scratch));
    else
        F(triangular)(a, x, n, r, s[3], s[4], s[5]);
}
static void F(triangular_lanes)(Job *j, int64_t block, void *scratch) {
    static void (*const level[])(const T *, T *, int64_t, int64_t, bool, bool, bool) = LEVELS(triangular);
    const int64_t *s = j->sizes;
    int64_t n = s[1], r = s[2], count = F(count)(j, block);
    T *a = scratch, *x = a + n * n * LANES;
    F(pack)(a, (const T *)j->arrays[0] + block * LANES * n * n, n * n, count);
    F(pack)(x, (const T *)j->arrays[1] + block * LANES * n * r, n * r, count);
    level[j->level](a, x, n, r, s[3], s[4], s[5]);
    F(unpack)((T *)j->arrays[2] + block * LANES * n * r, x, n * r, count);
}
ENTRY(triangular) {
    int64_t n = sizes[1], r = sizes[2];
    bool blocks = F(solved_in_blocks)(n, r);
    if (IN_LANES(n) && n * r <= F(SOLVED_IN_LANES) && (r > 1 || !blocks)) {
        RUN_LANES(triangular, (n + r) * n * (int64_t)sizeof(T), n * n * r);
        return;
    }
    RUN(triangular, blocks ? jaxcc_rt_solve_room(n, r) * (int64_t)sizeof(T) : 0, n * n * r);
}

/* ---- geqrf: sizes batch, m, n; the reflectors, their factors */
static void F(geqrf_one)(Job *j, int64_t i, void *scratch) {
    int64_t m = j->sizes[1], n = j->sizes[2], k = jaxcc_rt_least(m, n);
    static void (*const level[])(T *, int64_t, int64_t, T *, Room) = LEVELS(qr_blocks);
    T *x = (T *)j->arrays[1] + i * m * n, *taus = (T *)j->arrays[2] + i * k;
    jaxcc_rt_copy(x, (const T *)j->arrays[0] + i * m * n, (int64_t)sizeof(T) * m * n);
    if (m > SMALL || n > SMALL)
        level[j->level](x, m, n, taus, jaxcc_rt_job_room(j, scratch));
    else
        F(geqrf)(x, m, n, taus);
}
static void F(geqrf_lanes)(Job *j, int64_t block, void *scratch) {
    static void (*const level[])(T *, int64_t, int64_t, T *) = LEVELS(geqrf);
    int64_t m = j->sizes[1], n = j->sizes[2], k = jaxcc_rt_least(m, n), count = F(count)(j, block);
    T *x = scratch, *taus = x + m * n * LANES;
    F(pack)(x, (const T *)j->arrays[0] + block * LANES * m * n, m * n, count);
    level[j->level](x, m, n, taus);
    F(unpack)((T *)j->arrays[1] + block * LANES * m * n, x, m * n, count);
    F(unpack)((T *)j->arrays[2] + block * LANES * k, taus, k, count);
}
ENTRY(geqrf) {
    int64_t m = sizes[1], n = sizes[2], most = m > n ? m : n;
    if (IN_LANES(most)) {
        RUN_LANES(geqrf, (m * n + most) * (int64_t)sizeof(T), 2 * m * n * n);
        return;
    }
    RUN(geqrf, ROOM(m, n), 2 * m * n * n);
}

/* ---- orgqr: sizes batch, m, n, k; reflectors and factors → the product's first n columns */
static void F(orgqr_one)(Job *j, int64_t i, void *scratch) {
    int64_t m = j->sizes[1], n = j->sizes[2], k = j->sizes[3];
    static void (*const level[])(T *, int64_t, int64_t, int64_t, const T *, Room) = LEVELS(q_blocks);
    T *x = (T *)j->arrays[2] + i * m * n;
    const T *taus = (const T *)j->arrays[1] + i * k;
    jaxcc_rt_copy(x, (const T *)j->arrays[0] + i * m * n, (int64_t)sizeof(T) * m * n);
    if (m > SMALL)
        level[j->level](x, m, n, k, taus, jaxcc_rt_job_room(j, scratch));
    else
        F(orgqr)(x, m, n, k, taus);
}
static void F(orgqr_lanes)(Job *j, int64_t block, void *scratch) {
    static void (*const level[])(T *, int64_t, int64_t, int64_t, const T *) = LEVELS(orgqr);
    int64_t m = j->sizes[1], n = j->sizes[2], k = j->sizes[3], count = F(count)(j, block);
    T *x = scratch, *taus = x + m * n * LANES;
    F(pack)(x, (const T *)j->arrays[0] + block * LANES * m * n, m * n, count);
    F(pack)(taus, (const T *)j->arrays[1] + block * LANES * k, k, count);
    level[j->level](x, m, n, k, taus);
    F(unpack)((T *)j->arrays[2] + block * LANES * m * n, x, m * n, count);
}
ENTRY(orgqr) {
    int64_t m = sizes[1], n = sizes[2];
    if (IN_LANES(m)) {
        RUN_LANES(orgqr, (m * n + sizes[3]) * (int64_t)sizeof(T), 2 * m * n * n);
        return;
    }
    RUN(orgqr, ROOM(m, n), 2 * m * n * n);
}

/* ---- ormqr: sizes batch, m (rows of the reflectors), n (their columns), k, r, left, transposed: Q C, C is m × r, or C
   Q, C is r × m; transposed: Qᴴ */
static void F(ormqr_one)(Job *j, int64_t i, void *scratch) {
    const int64_t *s = j->sizes;
    int64_t m = s[1], n = s[2], k = s[3], r = s[4];
    bool left = s[5], turned = s[6];
    const T *a = (const T *)j->arrays[0] + i * m * n, *taus = (const T *)j->arrays[1] + i * k;
    T *c = (T *)j->arrays[3] + i * m * r;
    jaxcc_rt_copy(c, (const T *)j->arrays[2] + i * m * r, (int64_t)sizeof(T) * m * r);
    for (int64_t step = 0; step < k; step++) {
        int64_t h = left == turned ? step : k - 1 - step;
        T tau = KIND > 1 && turned ? CONJ(taus[h]) : taus[h];
        if (left) {
            F(reflect)(a, n, h, &tau, c, r, m, 0);
            continue;
        }
        for (int64_t row = 0; row < r; row++) {
            T *x = c + row * m, w = x[h];
            for (int64_t e = h + 1; e < m; e++) w += x[e] * a[e * n + h];
            w *= tau;
            x[h] -= w;
            for (int64_t e = h + 1; e < m; e++) x[e] -= w * CONJ(a[e * n + h]);
        }
    }
}
ENTRY(ormqr) { RUN(ormqr, 0, 4 * sizes[1] * sizes[3] * sizes[4]); }

/* ---- gtsv: sizes batch, n, r, perturb: elimination with row swaps; a singular matrix gives NaN, or with `perturb` its
   zero pivots become the smallest that its size allows */
static void F(gtsv_one)(Job *j, int64_t i, void *scratch) {
    int64_t n = j->sizes[1], r = j->sizes[2];
    T *dl = scratch, *d = dl + n, *du = d + n, *du2 = du + n, *x = (T *)j->arrays[4] + i * n * r;
    memcpy(dl, (const T *)j->arrays[0] + i * n, sizeof(T) * (size_t)n);
    memcpy(d, (const T *)j->arrays[1] + i * n, sizeof(T) * (size_t)n);
    memcpy(du, (const T *)j->arrays[2] + i * n, sizeof(T) * (size_t)n);
    jaxcc_rt_copy(x, (const T *)j->arrays[3] + i * n * r, (int64_t)sizeof(T) * n * r);
    R most = 0;
    for (int64_t k = 0; k < n; k++) {
        R v = SIZE1(dl[k]) + SIZE1(d[k]) + SIZE1(du[k]);
        most = v > most ? v : most;
        du2[k] = 0;
    }
    R least = most * (KIND % 2 ? 0x1p-52 : 0x1p-23f);
    for (int64_t k = 0; k + 1 < n; k++) {
        T below = dl[k + 1];
        if (SIZE1(d[k]) < SIZE1(below)) { /* swap rows k and k + 1 */
            T t = d[k];
            dl[k + 1] = t, d[k] = below;
            t = du[k], du[k] = d[k + 1], d[k + 1] = t;
            du2[k] = k + 2 < n ? du[k + 1] : 0;
            if (k + 2 < n) du[k + 1] = 0;
            for (int64_t c = 0; c < r; c++) t = x[k * r + c], x[k * r + c] = x[(k + 1) * r + c], x[(k + 1) * r + c] = t;
            below = dl[k + 1];
        }
        if (SIZE1(d[k]) == 0) {
            if (j->sizes[3])
                d[k] = least;
            else {
                F(fill_nan)(x, n * r);
                return;
            }
        }
        T f = DIV(below, d[k]);
        d[k + 1] -= f * du[k];
        if (k + 2 < n) du[k + 1] -= f * du2[k];
        for (int64_t c = 0; c < r; c++) x[(k + 1) * r + c] -= f * x[k * r + c];
    }
    if (n && SIZE1(d[n - 1]) == 0) {
        d[n - 1] = least;
        if (!j->sizes[3]) {
            F(fill_nan)(x, n * r);
            return;
        }
    }
    for (int64_t k = n; k-- > 0;)
        for (int64_t c = 0; c < r; c++) {
            T v = x[k * r + c];
            if (k + 1 < n) v -= du[k] * x[(k + 1) * r + c];
            if (k + 2 < n) v -= du2[k] * x[(k + 2) * r + c];
            x[k * r + c] = DIV(v, d[k]);
        }
}
ENTRY(gtsv) { RUN(gtsv, 4 * (sizes[1] + 1) * (int64_t)sizeof(T), 10 * sizes[1] * sizes[2]); }

#if KIND < 2
/* ---- cholesky_update: sizes batch, n; the upper factor of RᵀR + z zᵀ by plane rotations */
static void F(update_one)(Job *j, int64_t i, void *scratch) {
    int64_t n = j->sizes[1];
    T *r = (T *)j->arrays[2] + i * n * n, *z = scratch;
    jaxcc_rt_copy(r, (const T *)j->arrays[0] + i * n * n, (int64_t)sizeof(T) * n * n);
    memcpy(z, (const T *)j->arrays[1] + i * n, sizeof(T) * (size_t)n);
    for (int64_t k = 0; k < n; k++) {
        T x = r[k * n + k], y = z[k], c = 1, s = 0;
        if (y != 0) {
            T most = SIZE1(x) > SIZE1(y) ? SIZE1(x) : SIZE1(y), a = x / most, b = y / most, h = 1 / SQRT(a * a + b * b);
            c = a * h, s = -b * h;
        }
        for (int64_t e = 0; e < n; e++) {
            T v = r[k * n + e], w = z[e];
            r[k * n + e] = c * v - s * w;
            z[e] = c * w + s * v;
        }
    }
}
ENTRY(cholesky_update) { RUN(update, (sizes[1] + 1) * (int64_t)sizeof(T), 4 * sizes[1] * sizes[1]); }
#endif

#include "linalg_values.h"
#include "linalg_undef.h"
