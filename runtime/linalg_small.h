/* Unblocked factorizations and solves of W matrices at a time: element (i, j) of matrix l is a[(i·ld + j)·W + l].
   Included for each element type and vector width, after linalg_type.h, with W and N(name). The steps and conventions
   (signs, pivots, storage) are LAPACK's: Anderson et al., LAPACK Users' Guide, 3rd ed. */
#define AT(a, i, j, ld) (&(a)[((i) * (ld) + (j)) * W])
#define LANES_L for (int l = 0; l < W; l++)

/* Replaces the lower triangle by the lower factor; sums in double precision; bad[l]: not positive definite. */
static void N(cholesky)(T *a, int64_t n, uint8_t *bad) {
    for (int64_t j = 0; j < n; j++) {
        ACC_R d[W];
        LANES_L d[l] = RE(AT(a, j, j, n)[l]);
        for (int64_t k = 0; k < j; k++) LANES_L {
                ACC x = AT(a, j, k, n)[l];
                d[l] -= NORM2(x);
            }
        LANES_L {
            bad[l] |= !(d[l] > 0);
            d[l] = __builtin_sqrt(d[l]);
            AT(a, j, j, n)[l] = (R)d[l];
        }
        for (int64_t i = j + 1; i < n; i++) {
            ACC s[W];
            LANES_L s[l] = AT(a, i, j, n)[l];
            for (int64_t k = 0; k < j; k++) LANES_L s[l] -= (ACC)AT(a, i, k, n)[l] * CONJ(AT(a, j, k, n)[l]);
            LANES_L AT(a, i, j, n)[l] = (T)(s[l] / d[l]);
        }
    }
}

/* P A = L U, the factors in the place of A (m × n); pivots[j·W + l]: the row swapped with row j. */
static void N(lu)(T *a, int64_t m, int64_t n, int32_t *pivots) {
    for (int64_t j = 0; j < m && j < n; j++) {
        R best[W];
        int32_t at[W];
        LANES_L best[l] = SIZE1(AT(a, j, j, n)[l]), at[l] = (int32_t)j;
        for (int64_t i = j + 1; i < m; i++) LANES_L {
                R v = SIZE1(AT(a, i, j, n)[l]);
                bool more = v > best[l];
                best[l] = more ? v : best[l], at[l] = more ? (int32_t)i : at[l];
            }
        LANES_L {
            pivots[j * W + l] = at[l];
            if (at[l] == j) continue;
            for (int64_t c = 0; c < n; c++) {
                T *x = &AT(a, j, c, n)[l], *y = &AT(a, at[l], c, n)[l], t = *x;
                *x = *y, *y = t;
            }
        }
        for (int64_t i = j + 1; i < m; i++) {
            T f[W];
            LANES_L {
                bool some = best[l] != 0; /* a zero pivot: LAPACK continues */
                f[l] = some ? DIV(AT(a, i, j, n)[l], AT(a, j, j, n)[l]) : AT(a, i, j, n)[l];
                AT(a, i, j, n)[l] = f[l];
            }
            for (int64_t c = j + 1; c < n; c++) LANES_L AT(a, i, c, n)[l] -= f[l] * AT(a, j, c, n)[l];
        }
    }
}

/* op(A) X = B, X in the place of B (n × r); A is triangular, `lower` before op. */
static void N(triangular)(const T *a, T *b, int64_t n, int64_t r, bool lower, bool transposed, bool unit) {
    bool down = lower != transposed;
    for (int64_t step = 0; step < n; step++) {
        int64_t i = down ? step : n - 1 - step;
        int64_t from = down ? 0 : i + 1, to = down ? i : n;
        for (int64_t k = from; k < to; k++) {
            const T *f = transposed ? AT(a, k, i, n) : AT(a, i, k, n);
            for (int64_t c = 0; c < r; c++) LANES_L AT(b, i, c, r)[l] -= f[l] * AT(b, k, c, r)[l];
        }
        if (unit) continue;
        for (int64_t c = 0; c < r; c++) LANES_L AT(b, i, c, r)[l] = DIV(AT(b, i, c, r)[l], AT(a, i, i, n)[l]);
    }
}

/* Applies I - tau·v·vᴴ from the left to columns c0 … ld - 1 of C (ld), rows j … m - 1; v is column j of A (lda) below
   row j, and 1 there. */
static void N(reflect)(const T *a, int64_t lda, int64_t j, const T *tau, T *c, int64_t ld, int64_t m, int64_t c0) {
    for (int64_t k = c0; k < ld; k++) {
        T w[W];
        LANES_L w[l] = AT(c, j, k, ld)[l];
        for (int64_t i = j + 1; i < m; i++) LANES_L w[l] += CONJ(AT(a, i, j, lda)[l]) * AT(c, i, k, ld)[l];
        LANES_L w[l] *= tau[l];
        LANES_L AT(c, j, k, ld)[l] -= w[l];
        for (int64_t i = j + 1; i < m; i++) LANES_L AT(c, i, k, ld)[l] -= AT(a, i, j, lda)[l] * w[l];
    }
}
/* One matrix may have any number of rows: its sums are in double precision. */
#if W == 1
typedef ACC_R N(Sum);
#else
typedef R N(Sum);
#endif
/* A power of two for a column with the element alpha, the others at most `most`: its squares neither overflow nor
   vanish. */
static void N(safely)(const T *alpha, R *most, R *by) {
    LANES_L {
        R v = SIZE1(alpha[l]);
        bool none = most[l] == 0 && IM(alpha[l]) == 0;
        most[l] = none ? 0 : v > most[l] ? v : most[l];
        by[l] = most[l] > FAR ? 1 / SHIFT : most[l] < 1 / FAR ? SHIFT : 1;
    }
}
/* The reflector for a column, given the sum of its squares after multiplication by `by`: the norm in the place of
   alpha, tau and its conjugate, and by what the other elements are to be multiplied after `by`. */
static void N(reflect_to)(T *alpha, const R *most, const N(Sum) * sum, R *by, T *tau, T *turned, T *scale) {
    LANES_L {
        bool none = most[l] == 0 && !__builtin_isnan(sum[l]); /* not where NaN are below */
        T first = alpha[l] * by[l];
        R norm = SQRT((R)sum[l]), beta = RE(first) < 0 || (RE(first) == 0 && SIGNBIT(RE(first))) ? norm : -norm;
        tau[l] = none ? (T)0 : (beta - first) / (none ? 1 : beta);
        turned[l] = CONJ(tau[l]);
        scale[l] = none ? (T)1 : DIV((T)1, none ? (T)1 : first - beta);
        by[l] = none ? 1 : by[l];
        if (!none) alpha[l] = beta / by[l];
    }
}
/* The reflector I - tau·v·vᴴ whose conjugate zeroes column j of A (ld) below row i0, rows up to m - 1: v in the place
   of the zeros, the norm with its sign at i0; tau[l] and its conjugate `turned`. */
static void N(reflector)(T *a, int64_t ld, int64_t i0, int64_t j, int64_t m, T *tau, T *turned) {
    N(Sum) sum[W];
    R most[W], by[W];
    T scale[W], *alpha = AT(a, i0, j, ld);
    LANES_L most[l] = 0, sum[l] = 0;
    for (int64_t i = i0 + 1; i < m; i++) LANES_L {
            R v = SIZE1(AT(a, i, j, ld)[l]);
            most[l] = v > most[l] ? v : most[l];
        }
    N(safely)(alpha, most, by);
    for (int64_t i = i0; i < m; i++) LANES_L sum[l] += NORM2(AT(a, i, j, ld)[l] * by[l]);
    N(reflect_to)(alpha, most, sum, by, tau, turned, scale);
    for (int64_t i = i0 + 1; i < m; i++) LANES_L AT(a, i, j, ld)[l] = AT(a, i, j, ld)[l] * by[l] * scale[l];
}
/* A = Q R in the place of A (m × n): R above, the reflectors below the diagonal; tau[j·W + l]: their factors. */
static void N(geqrf)(T *a, int64_t m, int64_t n, T *taus) {
    for (int64_t j = 0; j < m && j < n; j++) {
        T turned[W];
        N(reflector)(a, n, j, j, m, &taus[j * W], turned);
        N(reflect)(a, n, j, turned, a, n, m, j + 1);
    }
}
/* A P = Q R: the same, each step taking the longest of the remaining columns; the first fixed[l] stay. pivots[j·W + l]:
   the column of A that became column j, counted from 1; on entry, those of the given order. */
static void N(geqp3)(T *a, int64_t m, int64_t n, const int32_t *fixed, int32_t *pivots, T *taus) {
    for (int64_t j = 0; j < m && j < n; j++) {
        ACC_R best[W];
        int32_t at[W];
        LANES_L best[l] = -1, at[l] = (int32_t)j;
        for (int64_t c = j; c < n; c++) {
            ACC_R sum[W];
            LANES_L sum[l] = 0;
            for (int64_t i = j; i < m; i++) LANES_L {
                    ACC x = AT(a, i, c, n)[l];
                    sum[l] += NORM2(x);
                }
            LANES_L {
                bool more = sum[l] > best[l];
                best[l] = more ? sum[l] : best[l], at[l] = more ? (int32_t)c : at[l];
            }
        }
        LANES_L {
            if (at[l] == j || j < fixed[l]) continue;
            int32_t p = pivots[j * W + l];
            pivots[j * W + l] = pivots[at[l] * W + l], pivots[at[l] * W + l] = p;
            for (int64_t i = 0; i < m; i++) {
                T *x = &AT(a, i, j, n)[l], *y = &AT(a, i, at[l], n)[l], t = *x;
                *x = *y, *y = t;
            }
        }
        T turned[W];
        N(reflector)(a, n, j, j, m, &taus[j * W], turned);
        N(reflect)(a, n, j, turned, a, n, m, j + 1);
    }
}
/* A = Q T Qᴴ for a Hermitian matrix given by its lower triangle, which is replaced by the reflectors below the
   subdiagonal; the diagonal d, the subdiagonal e, the factors of the reflectors. w: room for n elements. */
static void N(tridiagonal)(T *a, int64_t n, R *d, R *e, T *taus, T *w) {
    for (int64_t j = 0; j + 1 < n; j++) {
        T *tau = &taus[j * W], turned[W], half[W];
        N(reflector)(a, n, j + 1, j, n, tau, turned);
        LANES_L {
            e[j * W + l] = RE(AT(a, j + 1, j, n)[l]);
            AT(a, j + 1, j, n)[l] = 1; /* v is the column now */
            half[l] = 0;
        }
        for (int64_t i = j + 1; i < n; i++) { /* w = tau·A·v */
            T sum[W];
            LANES_L sum[l] = 0;
            for (int64_t k = j + 1; k <= i; k++) LANES_L sum[l] += AT(a, i, k, n)[l] * AT(a, k, j, n)[l];
            for (int64_t k = i + 1; k < n; k++) LANES_L sum[l] += CONJ(AT(a, k, i, n)[l]) * AT(a, k, j, n)[l];
            LANES_L {
                w[i * W + l] = tau[l] * sum[l];
                half[l] += CONJ(w[i * W + l]) * AT(a, i, j, n)[l];
            }
        }
        LANES_L half[l] *= tau[l] / 2; /* w -= tau/2·(wᴴv)·v */
        for (int64_t i = j + 1; i < n; i++) LANES_L w[i * W + l] -= half[l] * AT(a, i, j, n)[l];
        for (int64_t i = j + 1; i < n; i++) /* A -= v·wᴴ + w·vᴴ */
            for (int64_t k = j + 1; k <= i; k++) LANES_L {
                    T x = AT(a, i, j, n)[l] * CONJ(w[k * W + l]) + w[i * W + l] * CONJ(AT(a, k, j, n)[l]);
                    AT(a, i, k, n)[l] -= x;
                }
        LANES_L AT(a, j + 1, j, n)[l] = e[j * W + l];
    }
    for (int64_t j = 0; j < n; j++) LANES_L d[j * W + l] = RE(AT(a, j, j, n)[l]);
}
/* The first n columns of the product of k reflectors, in the place of A (m × n, m ≥ n ≥ k). */
static void N(orgqr)(T *a, int64_t m, int64_t n, int64_t k, const T *taus) {
    for (int64_t j = k; j < n; j++)
        for (int64_t i = 0; i < m; i++) LANES_L AT(a, i, j, n)[l] = i == j;
    for (int64_t j = k; j-- > 0;) {
        const T *tau = &taus[j * W];
        N(reflect)(a, n, j, tau, a, n, m, j + 1);
        for (int64_t i = j + 1; i < m; i++) LANES_L AT(a, i, j, n)[l] *= -tau[l];
        LANES_L AT(a, j, j, n)[l] = 1 - tau[l];
        for (int64_t i = 0; i < j; i++) LANES_L AT(a, i, j, n)[l] = 0;
    }
}
#include "linalg_jacobi.h"
#undef AT
#undef LANES_L
#undef W
#undef SUFFIX
