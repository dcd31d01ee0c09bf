/* Eigenvalues and singular values of W small matrices at a time by plane rotations, laid out and included as
   linalg_small.h. Jacobi's method in sweeps over all pairs: Golub and Van Loan, Matrix Computations, 4th ed., 8.5 and
   8.6.3. The columns that are rotated are rows here. All lanes sweep as often as the slowest needs; lanes that have
   converged are rotated by the identity. */

/* x, y := c·x - conj(u)·s·y, s·x + conj(u)·c·y, rows of n elements */
static inline void N(turn)(T *x, T *y, int64_t n, const R *c, const R *s, const T *u) {
    for (int64_t i = 0; i < n; i++) LANES_L {
            T p = x[i * W + l], q = CONJ(u[l]) * y[i * W + l];
            x[i * W + l] = c[l] * p - s[l] * q;
            y[i * W + l] = s[l] * p + c[l] * q;
        }
}
/* The rotation that makes ((p, g), (conj(g), q)) diagonal: t = s/c of the smaller angle, u = g/|g|; the identity if
   some[l] is 0. */
static inline void N(angle)(const R *p, const R *q, const T *g, const R *some, R *c, R *s, R *t, T *u) {
    LANES_L {
        R size = some[l] != 0 ? ABS(g[l]) : 1, theta = (q[l] - p[l]) / (2 * size);
        R x = 1 / (FABS(theta) + SQRT(theta * theta + 1));
        x = theta < 0 ? -x : x;
        t[l] = some[l] != 0 ? x : 0;
        c[l] = 1 / SQRT(t[l] * t[l] + 1);
        s[l] = c[l] * t[l];
        u[l] = some[l] != 0 ? g[l] / size : (T)1;
    }
}
/* Scales n elements so that squares neither overflow nor vanish, by a power of two that back[l] undoes. bad[l]: there
   is a NaN or an infinity, and all elements become 0. */
static void N(scaled)(T *a, int64_t n, R *most, R *back, R *bad) {
    LANES_L most[l] = bad[l] = 0;
    for (int64_t i = 0; i < n; i++) LANES_L {
            R x = SIZE1(a[i * W + l]);
            most[l] = x > most[l] ? x : most[l];
            bad[l] = x * 0 == 0 ? bad[l] : 1;
        }
    R by[W];
    LANES_L {
        by[l] = most[l] > FAR ? 1 / SHIFT : most[l] < 1 / FAR ? SHIFT : 1;
        back[l] = 1 / by[l];
        most[l] *= by[l];
    }
    for (int64_t i = 0; i < n; i++) LANES_L a[i * W + l] = bad[l] != 0 ? (T)0 : a[i * W + l] * by[l];
}
static void N(identity)(T *v, int64_t n) {
    for (int64_t i = 0; i < n * n; i++) LANES_L v[i * W + l] = i % (n + 1) == 0;
}

/* A Hermitian, one triangle given → its eigenvalues and, in the rows of V, its eigenvectors, unordered. */
static void N(jacobi)(T *a, T *v, R *values, int64_t n, bool lower, R *bad) {
    R most[W], back[W];
    for (int64_t i = 0; i < n; i++) /* row i becomes column i */
        for (int64_t j = 0; j <= i; j++) LANES_L {
                T x = lower ? AT(a, i, j, n)[l] : CONJ(AT(a, j, i, n)[l]);
                x = i == j ? (T)RE(x) : x;
                AT(a, j, i, n)[l] = x, AT(a, i, j, n)[l] = CONJ(x);
            }
    N(scaled)(a, n * n, most, back, bad);
    N(identity)(v, n);
    for (int sweep = 0, moved = 1; sweep < MOST_SWEEPS && moved; sweep++) {
        moved = 0;
        for (int64_t p = 0; p + 1 < n; p++)
            for (int64_t q = p + 1; q < n; q++) {
                R c[W], s[W], t[W], x[W], y[W], some[W], any = 0;
                T u[W], *g = AT(a, q, p, n);
                LANES_L {
                    x[l] = RE(AT(a, p, p, n)[l]), y[l] = RE(AT(a, q, q, n)[l]);
                    some[l] = SIZE1(g[l]) > most[l] * (EPS / 4) ? 1 : 0;
                }
                LANES_L any += some[l];
                if (any == 0) continue;
                moved = 1;
                N(angle)(x, y, g, some, c, s, t, u);
                LANES_L {
                    R size = some[l] != 0 ? t[l] * ABS(g[l]) : 0;
                    x[l] -= size, y[l] += size;
                    g[l] = some[l] != 0 ? (T)0 : g[l];
                }
                T kept[W];
                LANES_L kept[l] = g[l];
                N(turn)(AT(a, p, 0, n), AT(a, q, 0, n), n, c, s, u);
                N(turn)(AT(v, p, 0, n), AT(v, q, 0, n), n, c, s, u);
                for (int64_t k = 0; k < n; k++)
                    LANES_L AT(a, k, p, n)[l] = CONJ(AT(a, p, k, n)[l]), AT(a, k, q, n)[l] = CONJ(AT(a, q, k, n)[l]);
                LANES_L {
                    AT(a, p, p, n)[l] = x[l], AT(a, q, q, n)[l] = y[l];
                    AT(a, q, p, n)[l] = kept[l], AT(a, p, q, n)[l] = CONJ(kept[l]);
                }
            }
    }
    for (int64_t k = 0; k < n; k++) LANES_L values[k * W + l] = RE(AT(a, k, k, n)[l]) * back[l];
}

/* |x|², |y|² and conj(x)·y of rows of n elements. Those of a single real matrix are eight sums each, as vectors: with
   one, each addition would wait for the one before. */
static inline void N(products)(const T *x, const T *y, int64_t n, R *xx, R *yy, T *xy) {
    int64_t i = 0;
    LANES_L xx[l] = yy[l] = 0, xy[l] = 0;
#if W == 1 && KIND < 2
    typedef R Eight __attribute__((vector_size(8 * sizeof(R)), aligned(sizeof(R)), may_alias));
    Eight a = {0}, b = {0}, c = {0};
    for (; i + 8 <= n; i += 8) {
        Eight e = *(const Eight *)(x + i), f = *(const Eight *)(y + i);
        a += e * e, b += f * f, c += e * f;
    }
    for (int l = 0; l < 8; l++) *xx += a[l], *yy += b[l], *xy += c[l];
#endif
    for (; i < n; i++) LANES_L {
            T e = x[i * W + l], f = y[i * W + l];
            xx[l] += NORM2(e), yy[l] += NORM2(f), xy[l] += CONJ(e) * f;
        }
}
/* A = U S Vᴴ, its n columns being the rows of a (of m ≥ n elements each): they are replaced by U's columns; S, and V's
   columns in the rows of V (NULL: they are not needed), unordered. A column of U that A does not determine is 0. */
static void N(hestenes)(T *a, T *v, R *values, int64_t m, int64_t n, R *bad) {
    R most[W], back[W], longest[W], none[W], least = EPS * SQRT((R)m);
    N(scaled)(a, m * n, most, back, bad);
    if (v) N(identity)(v, n);
    LANES_L longest[l] = 0;
    for (int64_t j = 0; j < n; j++) {
        R sum[W];
        LANES_L sum[l] = 0;
        for (int64_t i = 0; i < m; i++) LANES_L sum[l] += NORM2(AT(a, j, i, m)[l]);
        LANES_L longest[l] = sum[l] > longest[l] ? sum[l] : longest[l];
    }
    LANES_L none[l] = least * least * longest[l];
    for (int sweep = 0, moved = 1; sweep < MOST_SWEEPS && moved; sweep++) {
        moved = 0;
        for (int64_t p = 0; p + 1 < n; p++)
            for (int64_t q = p + 1; q < n; q++) {
                R c[W], s[W], t[W], x[W], y[W], some[W], any = 0;
                T u[W], g[W];
                N(products)(AT(a, p, 0, m), AT(a, q, 0, m), m, x, y, g);
                LANES_L { /* a dependent column is rounding error, which need not be orthogonal */
                    R less = x[l] < y[l] ? x[l] : y[l];
                    some[l] = SIZE1(g[l]) > least * SQRT(x[l]) * SQRT(y[l]) && less > none[l] ? 1 : 0;
                }
                LANES_L any += some[l];
                if (any == 0) continue;
                moved = 1;
                N(angle)(x, y, g, some, c, s, t, u);
                N(turn)(AT(a, p, 0, m), AT(a, q, 0, m), m, c, s, u);
                if (v) N(turn)(AT(v, p, 0, n), AT(v, q, 0, n), n, c, s, u);
            }
    }
    for (int64_t j = 0; j < n; j++) {
        R sum[W], over[W];
        LANES_L sum[l] = 0;
        for (int64_t i = 0; i < m; i++) LANES_L sum[l] += NORM2(AT(a, j, i, m)[l]);
        LANES_L {
            R norm = SQRT(sum[l]);
            values[j * W + l] = norm * back[l];
            over[l] = sum[l] > none[l] ? 1 / norm : 0;
        }
        for (int64_t i = 0; i < m; i++) LANES_L AT(a, j, i, m)[l] *= over[l];
    }
}
