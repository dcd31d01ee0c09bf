/* Eigenvalues, singular values and related factorizations of matrices of up to SMALL rows and columns, for one element
   type: part of linalg_ops.h. Called by lapack.c, which does the larger ones, with the sizes that it is called with. */

/* Puts a matrix of the batch into lane l of W, transposed if `turned`. */
static void F(put_lane)(T *to, const T *from, int64_t m, int64_t n, bool turned, int64_t w) {
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) to[(turned ? j * m + i : i * n + j) * w] = from[i * n + j];
}
/* `order`: the positions of the n values of a lane, smallest first. */
static void F(ranked)(const R *values, int64_t n, int64_t w, int64_t *order) {
    for (int64_t k = 0; k < n; k++) {
        int64_t at = k;
        for (; at > 0 && values[order[at - 1] * w] > values[k * w]; at--) order[at] = order[at - 1];
        order[at] = k;
    }
}
static void F(nan_values)(R *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) x[i] = __builtin_nan("");
}

/* ---- eigh: sizes batch, kind, n, lower; vectors, values */
typedef void F(Jacobi)(T *a, T *v, R *values, int64_t n, bool lower, R *bad);
static void F(eigh)(Job *j, int64_t first, int64_t w, void *scratch, F(Jacobi) * jacobi) {
    int64_t n = j->sizes[2], count = j->sizes[0] - first < w ? j->sizes[0] - first : w;
    T *a = scratch, *v = a + n * n * w;
    R *values = (R *)(v + n * n * w), *bad = values + n * w;
    for (int64_t l = 0; l < w; l++)
        F(put_lane)(a + l, (const T *)j->arrays[0] + (first + (l < count ? l : count - 1)) * n * n, n, n, false, w);
    jacobi(a, v, values, n, j->sizes[3], bad);
    for (int64_t l = 0; l < count; l++) {
        int64_t order[SMALL];
        T *vectors = (T *)j->arrays[1] + (first + l) * n * n;
        R *out = (R *)j->arrays[2] + (first + l) * n;
        F(ranked)(values + l, n, w, order);
        for (int64_t k = 0; k < n; k++) {
            out[k] = values[order[k] * w + l];
            for (int64_t i = 0; i < n; i++) vectors[i * n + k] = v[(order[k] * n + i) * w + l];
        }
        if (bad[l] != 0) F(nan_values)(out, n), F(fill_nan)(vectors, n * n);
    }
}
/* Implicit QL on the tridiagonal matrix of diagonal d and subdiagonal e (e[n - 1]: scratch); the rotations are applied
   to the rows of v. False: no convergence. Bowdler, Martin, Reinsch and Wilkinson, Numerische Mathematik 11 (1968). */
static bool F(ql)(double *d, double *e, T *v, int64_t n) {
    e[n - 1] = 0;
    for (int64_t k = 0, turns = 0; k < n;) {
        int64_t m = k; /* the end of the block that begins at k */
        while (m + 1 < n && __builtin_fabs(e[m]) > 0x1p-52 * (__builtin_fabs(d[m]) + __builtin_fabs(d[m + 1]))) m++;
        if (m == k) {
            k++, turns = 0;
            continue;
        }
        if (++turns > 60) return false;
        double half = (d[k + 1] - d[k]) / (2 * e[k]), r = __builtin_sqrt(half * half + 1);
        double g = d[m] - d[k] + e[k] / (half + (half < 0 ? -r : r)), s = 1, c = 1, p = 0; /* Wilkinson's shift */
        for (int64_t i = m - 1; i >= k; i--) {
            double f = s * e[i], b = c * e[i];
            r = e[i + 1] = __builtin_sqrt(f * f + g * g);
            if (r == 0) { /* the block splits here */
                d[i + 1] -= p;
                e[m] = 0;
                break;
            }
            s = f / r, c = g / r;
            g = d[i + 1] - p;
            r = (d[i] - g) * s + 2 * c * b;
            p = s * r;
            d[i + 1] = g + p;
            g = c * r - b;
            T *x = v + i * n, *y = x + n;
            R cr = (R)c, sr = (R)s;
            for (int64_t l = 0; l < n; l++) {
                T a = x[l], z = y[l];
                x[l] = cr * a - sr * z, y[l] = sr * a + cr * z;
            }
            if (i > k) continue;
            d[k] -= p;
            e[k] = g;
            e[m] = 0;
        }
    }
    return true;
}
/* The columns of the product of the reflectors below a's subdiagonal, as rows. */
static void F(reflectors_rows)(const T *a, const T *taus, T *v, int64_t n) {
    F(identity)(v, n);
    for (int64_t j = n - 1; j-- > 0;) {
        T x[SMALL];
        for (int64_t i = j + 1; i < n; i++) x[i] = i == j + 1 ? (T)1 : a[i * n + j];
        for (int64_t row = j + 1; row < n; row++) {
            T w = 0, *y = v + row * n;
            for (int64_t i = j + 1; i < n; i++) w += CONJ(x[i]) * y[i];
            w *= taus[j];
            for (int64_t i = j + 1; i < n; i++) y[i] -= w * x[i];
        }
    }
}
/* Through a tridiagonal matrix: faster than rotations of the matrix itself, but not in lanes. */
static void F(by_ql)(T *a, T *v, R *values, int64_t n, bool lower, R *bad) {
    T taus[SMALL], room[SMALL];
    R d[SMALL], e[SMALL], most, back;
    double dd[SMALL], ee[SMALL];
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++) {
            T x = lower ? a[i * n + j] : CONJ(a[j * n + i]);
            a[j * n + i] = 0, a[i * n + j] = i == j ? (T)RE(x) : x;
        }
    F(scaled)(a, n * n, &most, &back, bad);
    F(tridiagonal)(a, n, d, e, taus, room);
    F(reflectors_rows)(a, taus, v, n);
    for (int64_t i = 0; i < n; i++) dd[i] = d[i], ee[i] = i + 1 < n ? e[i] : 0;
    if (!F(ql)(dd, ee, v, n)) *bad = 1;
    for (int64_t i = 0; i < n; i++) values[i] = (R)dd[i] * back;
}
static void F(eigh_one)(Job *j, int64_t i, void *scratch) {
    F(eigh)(j, i, 1, scratch, j->sizes[2] > 3 ? F(by_ql) : F(jacobi));
}
enum {
    F(ROTATED) = KIND < 2 ? LANES : LANES / 2
}; /* up to these sizes, rotations of the matrices themselves are faster for a batch in lanes */
static void F(eigh_lanes)(Job *j, int64_t block, void *scratch) {
    static F(Jacobi) *const level[] = LEVELS(jacobi);
    F(eigh)(j, block * LANES, LANES, scratch, level[j->level]);
}
ENTRY(small_eigh) {
    int64_t n = sizes[2], bytes = (2 * n * n + n + 1) * (int64_t)sizeof(T), cost = 30 * n * n * n;
    if (IN_LANES(n) && n <= F(ROTATED)) {
        RUN_LANES(eigh, bytes, cost);
        return;
    }
    RUN(eigh, bytes, cost);
}

/* ---- svd: sizes batch, kind, m, n, vectors (0 none, 1 min(m, n), 2 all); values, u, vt */
/* Adds orthonormal columns to q (m × n, element (i, k) at i·row + k·column) for those not yet known. */
static void F(completed)(T *q, int64_t m, int64_t n, int64_t row, int64_t column, bool *known) {
    for (int64_t k = 0; k < n; k++) {
        if (known[k]) continue;
        T x[SMALL] = {0};
        int64_t best = 0;
        R rest = -1;
        for (int64_t i = 0; i < m; i++) { /* the unit vector farthest from the known ones */
            R r = 1;
            for (int64_t c = 0; c < n; c++) r -= known[c] ? NORM2(q[i * row + c * column]) : 0;
            if (r > rest) rest = r, best = i;
        }
        x[best] = 1;
        for (int again = 0; again < 2; again++)
            for (int64_t c = 0; c < n; c++) {
                if (!known[c]) continue;
                T f = 0;
                for (int64_t i = 0; i < m; i++) f += CONJ(q[i * row + c * column]) * x[i];
                for (int64_t i = 0; i < m; i++) x[i] -= f * q[i * row + c * column];
            }
        R norm = 0;
        for (int64_t i = 0; i < m; i++) norm += NORM2(x[i]);
        for (int64_t i = 0; i < m; i++) q[i * row + k * column] = x[i] / SQRT(norm);
        known[k] = true;
    }
}
/* The reflector I - tau·x·xᴴ that leaves x[0] alone: x becomes its vector, of about unit length, so that neither that
   nor tau is lost however short x is; the result is the size of what is left. What is too short to be squared is
   nothing. */
static double F(reflected)(T *x, int64_t n, R *tau) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)RE(x[i]) * RE(x[i]) + (double)IM(x[i]) * IM(x[i]);
    *tau = 0;
    if (sum < 0x1p-960) return 0;
    double norm = __builtin_sqrt(sum), by = 1 / norm;
    for (int64_t i = 0; i < n; i++) x[i] = (T)(x[i] * by);
    R first = ABS(x[0]);
    x[0] += first > EPS * EPS ? x[0] / first : 1;
    *tau = 1 / (1 + first);
    return norm;
}
/* A, the n rows of a being its columns of m ≥ n elements, with reflectors from both sides: the sizes of a bidiagonal
   matrix's elements, which phases of its rows and columns make real. */
static void F(bidiagonal)(T *a, int64_t m, int64_t n, double *d, double *e) {
    for (int64_t k = 0; k < n; k++) {
        T *x = a + k * m + k, row[SMALL], sum[SMALL];
        R tau;
        int64_t rows = m - k - 1, columns = n - k - 1;
        d[k] = F(reflected)(x, rows + 1, &tau), e[k] = 0;
        for (int64_t j = k + 1; j < n; j++) {
            T *y = a + j * m + k, w = 0;
            for (int64_t i = 0; i <= rows; i++) w += CONJ(x[i]) * y[i];
            w *= tau;
            for (int64_t i = 0; i <= rows; i++) y[i] -= w * x[i];
            row[j - k - 1] = CONJ(y[0]);
        }
        if (!columns) return;
        e[k] = F(reflected)(row, columns, &tau);
        for (int64_t i = 0; i < rows; i++) sum[i] = 0;
        for (int64_t j = 0; j < columns; j++)
            for (int64_t i = 0; i < rows; i++) sum[i] += a[(k + 1 + j) * m + k + 1 + i] * row[j];
        for (int64_t j = 0; j < columns; j++) {
            T by = tau * CONJ(row[j]);
            for (int64_t i = 0; i < rows; i++) a[(k + 1 + j) * m + k + 1 + i] -= sum[i] * by;
        }
    }
}
static void F(rotation)(double f, double g, double *c, double *s, double *r) {
    *r = __builtin_sqrt(f * f + g * g);
    *c = *r > 0 ? f / *r : 1, *s = *r > 0 ? g / *r : 0;
}
/* The smaller singular value of ((f, g), (0, h)). */
static double F(smaller)(double f, double g, double h) {
    f = __builtin_fabs(f), h = __builtin_fabs(h);
    double least = f < h ? f : h, most = f < h ? h : f, sum = least + most, more = most - least;
    if (least == 0) return 0;
    return 2 * least * most / (__builtin_sqrt(sum * sum + g * g) + __builtin_sqrt(more * more + g * g));
}
/* A step of QR on rows lo … hi of the bidiagonal matrix (d, e). Demmel and Kahan, SIAM J. Sci. Stat. Comput. 11 (1990):
   without a shift it keeps small values and finds zeros. */
static void F(qr_step)(double *d, double *e, int64_t lo, int64_t hi) {
    double shift = F(smaller)(d[hi - 1], e[hi - 1], d[hi]), c, s, r, f, g, c2 = 1, s2 = 0;
    if (d[lo] == 0 || shift / d[lo] * (shift / d[lo]) < 0x1p-52) {
        c = 1;
        for (int64_t i = lo; i < hi; i++) {
            F(rotation)(d[i] * c, e[i], &c, &s, &r);
            if (i > lo) e[i - 1] = s2 * r;
            F(rotation)(c2 * r, d[i + 1] * s, &c2, &s2, &d[i]);
        }
        e[hi - 1] = d[hi] * c * s2, d[hi] *= c * c2;
        return;
    }
    f = (d[lo] - shift) * (d[lo] + shift) / d[lo], g = e[lo];
    for (int64_t i = lo; i < hi; i++) {
        F(rotation)(f, g, &c, &s, &r);
        if (i > lo) e[i - 1] = r;
        f = c * d[i] + s * e[i], e[i] = c * e[i] - s * d[i];
        g = s * d[i + 1], d[i + 1] *= c;
        F(rotation)(f, g, &c, &s, &d[i]);
        f = c * e[i] + s * d[i + 1], d[i + 1] = c * d[i + 1] - s * e[i];
        if (i + 1 < hi) g = s * e[i + 1], e[i + 1] *= c;
    }
    e[hi - 1] = f;
}
typedef void F(Hestenes)(T *a, T *v, R *values, int64_t m, int64_t n, R *bad);
/* Values alone, of one matrix: those of 32 × 32 in f32 in 58 us, not 195. */
static void F(by_qr)(T *a, T *v, R *values, int64_t m, int64_t n, R *bad) {
    double d[SMALL], e[SMALL];
    R most, back;
    F(scaled)(a, m * n, &most, &back, bad);
    F(bidiagonal)(a, m, n, d, e);
    for (int64_t hi = n - 1, turns = 0; hi > 0;) {
        int64_t lo = hi;
        while (lo > 0 && __builtin_fabs(e[lo - 1]) > 0x1p-52 * (__builtin_fabs(d[lo - 1]) + __builtin_fabs(d[lo])))
            lo--;
        if (lo < hi && ++turns <= 60) {
            F(qr_step)(d, e, lo, hi);
            continue;
        }
        if (lo < hi) *bad = 1;
        hi--, turns = 0;
    }
    for (int64_t k = 0; k < n; k++) values[k] = (R)__builtin_fabs(d[k]) * back;
}
static void F(svd)(Job *j, int64_t first, int64_t w, void *scratch, F(Hestenes) * hestenes) {
    const int64_t *s = j->sizes;
    int64_t m = s[2], n = s[3], most = m > n ? m : n, k = m < n ? m : n, count = s[0] - first < w ? s[0] - first : w;
    int64_t um = s[4] == 2 ? m : k, vn = s[4] == 2 ? n : k;
    bool tall = m >= n; /* if not, Aᵀ = conj(V) S Uᵀ */
    T *a = scratch, *v = a + most * k * w;
    R *values = (R *)(v + k * k * w), *bad = values + k * w;
    for (int64_t l = 0; l < w; l++)
        F(put_lane)(a + l, (const T *)j->arrays[0] + (first + (l < count ? l : count - 1)) * m * n, m, n, tall, w);
    hestenes(a, s[4] ? v : NULL, values, most, k, bad);
    for (int64_t l = 0; l < count; l++) {
        int64_t order[SMALL];
        bool known[SMALL] = {false};
        R *out = (R *)j->arrays[1] + (first + l) * k;
        for (int64_t c = 0; c < k; c++)
            values[c * w + l] = -values[c * w + l]; /* largest first, equal ones in their order */
        F(ranked)(values + l, k, w, order);
        for (int64_t c = 0; c < k; c++) out[c] = -values[order[c] * w + l];
        if (bad[l] != 0) F(nan_values)(out, k);
        if (!s[4]) continue;
        T *u = (T *)j->arrays[2] + (first + l) * m * um, *vt = (T *)j->arrays[3] + (first + l) * vn * n;
        for (int64_t c = 0; c < k; c++) {
            const T *x = a + order[c] * most * w + l, *y = v + order[c] * k * w + l;
            for (int64_t i = 0; i < most; i++) known[c] |= x[i * w] != 0;
            for (int64_t i = 0; i < m; i++) u[i * um + c] = tall ? x[i * w] : CONJ(y[i * w]);
            for (int64_t i = 0; i < n; i++) vt[c * n + i] = tall ? CONJ(y[i * w]) : x[i * w];
        }
        if (tall)
            F(completed)(u, m, um, um, 1, known);
        else
            F(completed)(vt, n, vn, 1, n, known);
        if (bad[l] != 0) F(fill_nan)(u, m * um), F(fill_nan)(vt, vn * n);
    }
}
static void F(svd_one)(Job *j, int64_t i, void *scratch) {
    F(svd)(j, i, 1, scratch, j->sizes[4] ? F(hestenes) : F(by_qr));
}
static void F(svd_lanes)(Job *j, int64_t block, void *scratch) {
    static F(Hestenes) *const level[] = LEVELS(hestenes);
    F(svd)(j, block * LANES, LANES, scratch, level[j->level]);
}
ENTRY(small_svd) {
    int64_t m = sizes[2], n = sizes[3], most = m > n ? m : n, k = m < n ? m : n;
    int64_t bytes = (most * k + k * k + k + 1) * (int64_t)sizeof(T), cost = 30 * most * k * k;
    if (IN_LANES(most) && (sizes[4] || most < F(ROTATED))) {
        RUN_LANES(svd, bytes, cost);
        return;
    }
    RUN(svd, bytes, cost);
}

/* ---- geqp3: sizes batch, kind, m, n; matrix and pivots → reflectors, pivots from 1, factors */
typedef void F(Geqp3)(T *a, int64_t m, int64_t n, const int32_t *fixed, int32_t *pivots, T *taus);
static void F(pivoted)(Job *j, int64_t first, int64_t w, void *scratch, F(Geqp3) * geqp3) {
    int64_t m = j->sizes[2], n = j->sizes[3], k = m < n ? m : n,
            count = j->sizes[0] - first < w ? j->sizes[0] - first : w;
    T *a = scratch, *taus = a + m * n * w;
    int32_t *pivots = (int32_t *)(taus + k * w), *fixed = pivots + n * w;
    for (int64_t l = 0; l < w; l++) {
        int64_t i = first + (l < count ? l : count - 1);
        const T *from = (const T *)j->arrays[0] + i * m * n;
        const int32_t *chosen = (const int32_t *)j->arrays[1] + i * n;
        fixed[l] = 0;
        for (int64_t c = 0; c < n; c++) pivots[c * w + l] = (int32_t)c + 1;
        for (int64_t c = 0; c < n; c++) { /* chosen columns come first */
            if (!chosen[c]) continue;
            pivots[c * w + l] = pivots[fixed[l] * w + l], pivots[fixed[l] * w + l] = (int32_t)c + 1;
            fixed[l]++;
        }
        for (int64_t r = 0; r < m; r++)
            for (int64_t c = 0; c < n; c++) a[(r * n + c) * w + l] = from[r * n + pivots[c * w + l] - 1];
    }
    geqp3(a, m, n, fixed, pivots, taus);
    for (int64_t l = 0; l < count; l++) {
        T *out = (T *)j->arrays[2] + (first + l) * m * n, *factors = (T *)j->arrays[4] + (first + l) * k;
        int32_t *order = (int32_t *)j->arrays[3] + (first + l) * n;
        for (int64_t e = 0; e < m * n; e++) out[e] = a[e * w + l];
        for (int64_t c = 0; c < k; c++) factors[c] = taus[c * w + l];
        for (int64_t c = 0; c < n; c++) order[c] = pivots[c * w + l];
    }
}
static void F(pivoted_one)(Job *j, int64_t i, void *scratch) { F(pivoted)(j, i, 1, scratch, F(geqp3)); }
static void F(pivoted_lanes)(Job *j, int64_t block, void *scratch) {
    static F(Geqp3) *const level[] = LEVELS(geqp3);
    F(pivoted)(j, block * LANES, LANES, scratch, level[j->level]);
}
ENTRY(small_geqp3) {
    int64_t m = sizes[2], n = sizes[3], most = m > n ? m : n,
            bytes = (m * n + 3 * most) * (int64_t)sizeof(T) + 8 * n + 8;
    if (IN_LANES(most)) {
        RUN_LANES(pivoted, bytes, 4 * m * n * n);
        return;
    }
    RUN(pivoted, bytes, 4 * m * n * n);
}

/* ---- tridiagonal: sizes batch, kind, n, lower; the reflectors, the diagonal, the subdiagonal, the factors. The upper
   triangle is the same with rows and columns reversed. */
typedef void F(Tridiagonal)(T *a, int64_t n, R *d, R *e, T *taus, T *w);
static void F(reduced)(Job *j, int64_t first, int64_t w, void *scratch, F(Tridiagonal) * tridiagonal) {
    int64_t n = j->sizes[2], last = n * n - 1, count = j->sizes[0] - first < w ? j->sizes[0] - first : w;
    bool lower = j->sizes[3];
    T *a = scratch, *taus = a + n * n * w, *room = taus + n * w;
    R *d = (R *)(room + n * w), *e = d + n * w;
    for (int64_t l = 0; l < w; l++) {
        const T *from = (const T *)j->arrays[0] + (first + (l < count ? l : count - 1)) * n * n;
        for (int64_t i = 0; i <= last; i++) a[i * w + l] = from[lower ? i : last - i];
    }
    tridiagonal(a, n, d, e, taus, room);
    for (int64_t l = 0; l < count; l++) {
        T *out = (T *)j->arrays[1] + (first + l) * n * n, *factors = (T *)j->arrays[4] + (first + l) * (n - 1);
        R *main = (R *)j->arrays[2] + (first + l) * n, *beside = (R *)j->arrays[3] + (first + l) * (n - 1);
        for (int64_t i = 0; i <= last; i++) out[lower ? i : last - i] = a[i * w + l];
        for (int64_t i = 0; i < n; i++) main[lower ? i : n - 1 - i] = d[i * w + l];
        for (int64_t i = 0; i < n; i++) out[i * n + i] = main[i];
        for (int64_t i = 0; i + 1 < n; i++)
            beside[lower ? i : n - 2 - i] = e[i * w + l], factors[lower ? i : n - 2 - i] = taus[i * w + l];
    }
}
static void F(reduced_one)(Job *j, int64_t i, void *scratch) { F(reduced)(j, i, 1, scratch, F(tridiagonal)); }
static void F(reduced_lanes)(Job *j, int64_t block, void *scratch) {
    static F(Tridiagonal) *const level[] = LEVELS(tridiagonal);
    F(reduced)(j, block * LANES, LANES, scratch, level[j->level]);
}
ENTRY(small_tridiagonal) {
    int64_t n = sizes[2], bytes = (n * n + 4 * n) * (int64_t)sizeof(T);
    if (IN_LANES(n)) {
        RUN_LANES(reduced, bytes, 4 * n * n * n);
        return;
    }
    RUN(reduced, bytes, 4 * n * n * n);
}
