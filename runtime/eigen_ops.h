/* Hessenberg and Schur forms and eigenvectors of n × n matrices, n ≤ SMALL, of double (KIND 1) or c128 (3): included
   for each after linalg_type.h, with V the type's name. Row-major; the basis of a form is kept transposed, a vector per
   row. Golub and Van Loan, Matrix Computations, 4th ed.: 5.1 (reflectors), 7.4, 7.5, 7.6. Storage is as in LAPACK. */
#define J2(a, b) a##b
#define J1(a, b) J2(a, b)
#define F(f) J1(f##_, V)
#define H(i, j) h[(i) * n + (j)]
#if KIND == 1
#define NARROW float
#else
#define NARROW c64
#endif

static void F(load)(T *to, const void *from, int64_t n, bool narrow) {
    for (int64_t i = 0; i < n; i++) to[i] = narrow ? (T)((const NARROW *)from)[i] : ((const T *)from)[i];
}
/* Stores the elements times `factor`, which is NaN after a failure. */
static void F(store)(void *to, const T *from, int64_t n, bool narrow, double factor) {
    for (int64_t i = 0; i < n; i++)
        if (narrow)
            ((NARROW *)to)[i] = (NARROW)(from[i] * factor);
        else
            ((T *)to)[i] = from[i] * factor;
}
/* The 2-norm of x[0], x[step] …, scaled if squares overflow or vanish. */
static double F(norm)(const T *x, int64_t n, int64_t step) {
    double sum = 0, most = 0;
    for (int64_t i = 0; i < n; i++) sum += NORM2(x[i * step]);
    if (sum > 0x1p-900 && sum < 0x1p900) return SQRT(sum);
    for (int64_t i = 0; i < n; i++) most = SIZE1(x[i * step]) > most ? SIZE1(x[i * step]) : most;
    if (most == 0) return sum;
    sum = 0;
    for (int64_t i = 0; i < n; i++) sum += NORM2(x[i * step] / most);
    return most * SQRT(sum);
}

/* ---- reflectors and the forms that they produce */
/* H = I - tau·v·vᴴ with Hᴴ x = beta·e0: returns beta; v replaces x, with v[0] = 1. */
static double F(reflector)(T *x, int64_t n, T *tau) {
    T alpha = x[0];
    bool some = IM(alpha) != 0;
    for (int64_t i = 1; i < n; i++) some |= x[i] != 0;
    x[0] = 1, *tau = 0;
    if (!some) return RE(alpha);
    x[0] = alpha;
    double norm = F(norm)(x, n, 1), up = norm < 0x1p-900 ? 0x1p600 : 1; /* scales to numbers with all their bits */
    for (int64_t i = 0; up > 1 && i < n; i++) x[i] *= up;
    if (up > 1) alpha = x[0], norm = F(norm)(x, n, 1);
    double beta = SIGNBIT(RE(alpha)) ? norm : -norm;
    for (int64_t i = 1; i < n; i++) x[i] = DIV(x[i], alpha - beta);
    x[0] = 1, *tau = (beta - alpha) / beta;
    return beta / up;
}
typedef struct {
    int64_t n;
    T *h, *z; /* the form; its basis, or NULL */
} F(Form);
/* (I - tau·v·vᴴ) A for the m rows of A from a on, columns c0 … c1 - 1. */
static inline void F(reflect)(T *a, int64_t n, int64_t m, const T *v, T tau, int64_t c0, int64_t c1) {
    for (int64_t c = c0; c < c1; c++) {
        T w = 0;
        for (int64_t i = 0; i < m; i++) w += CONJ(v[i]) * a[i * n + c];
        w *= tau;
        for (int64_t i = 0; i < m; i++) a[i * n + c] -= v[i] * w;
    }
}
/* A ← Hᴴ A H, where H acts on rows k … k + m - 1: on columns k … c1 - 1, then on rows r0 … r1 - 1. Updates the basis
   too. */
static inline void F(similar)(const F(Form) * f, int64_t k, int64_t m, const T *v, T tau, int64_t c1, int64_t r0,
                              int64_t r1) {
    T other[SMALL];
    int64_t n = f->n;
    for (int64_t i = 0; i < m; i++) other[i] = CONJ(v[i]);
    F(reflect)(f->h + k * n, n, m, v, CONJ(tau), k, c1);
    for (int64_t r = r0; r < r1; r++) {
        T w = 0, *row = f->h + r * n + k;
        for (int64_t i = 0; i < m; i++) w += row[i] * v[i];
        w *= tau;
        for (int64_t i = 0; i < m; i++) row[i] -= w * other[i];
    }
    if (f->z) F(reflect)(f->z + k * n, n, m, other, tau, 0, n);
}
/* Replaces A by its Hessenberg form, with the reflectors below it and their factors in taus, or with zeros below it. */
static void F(reduce)(const F(Form) * f, T *taus) {
    int64_t n = f->n;
    T v[SMALL], tau, *h = f->h;
    for (int64_t k = 0; k + 1 < n; k++) {
        int64_t m = n - k - 1;
        for (int64_t i = 0; i < m; i++) v[i] = H(k + 1 + i, k);
        H(k + 1, k) = F(reflector)(v, m, &tau);
        for (int64_t i = 1; i < m; i++) H(k + 1 + i, k) = taus ? v[i] : 0;
        if (taus) taus[k] = tau;
        if (tau != 0) F(similar)(f, k + 1, m, v, tau, n, 0, n);
    }
}

/* ---- QR iteration */
/* The first row of the last unreduced block, which ends at row hi. Subdiagonal elements count as zero by the criterion
   of Ahues and Tisseur, LAPACK Working Note 122 (1997). */
static int64_t F(block)(const T *h, int64_t n, int64_t hi) {
    int64_t k = hi;
    for (; k > 0; k--) {
        double c = SIZE1(H(k, k - 1)), b = SIZE1(H(k - 1, k)), d = SIZE1(H(k, k)), sum = SIZE1(H(k - 1, k - 1)) + d;
        if (c <= 0x1p-960) break;
        if (sum == 0) sum = (k > 1 ? SIZE1(H(k - 1, k - 2)) : 0) + (k < hi ? SIZE1(H(k + 1, k)) : 0);
        if (c > 0x1p-52 * sum) continue;
        double gap = SIZE1(H(k - 1, k - 1) - H(k, k)), most = d > gap ? d : gap, least = d > gap ? gap : d;
        double more = b > c ? b : c, less = b > c ? c : b, s = most + more;
        if (less * (more / s) <= 0x1p-52 * (least * (most / s))) break;
    }
    return k;
}
#if KIND == 1
/* The rotation that standardises the block of rows k, k + 1: to (a, b; c, a) with b·c < 0, or c = 0. A rotation by an
   angle turns the point (p, s), p = (a - d)/2, s = (b + c)/2, by twice that angle, and keeps (a + d)/2 and (b - c)/2 =:
   u: complex eigenvalues need p = 0, real ones s = u. */
static void F(standardise)(const F(Form) * f, int64_t k, int64_t c1, int64_t r0) {
    int64_t n = f->n;
    double *h = f->h, a = H(k, k), b = H(k, k + 1), c = H(k + 1, k), d = H(k + 1, k + 1), cs, sn;
    double p = (a - d) / 2, s = (b + c) / 2, mean = d + p, most = FABS(p);
    most = FABS(b) > most ? FABS(b) : most, most = FABS(c) > most ? FABS(c) : most;
    double det =
        (p / most) * (p / most) + (b / most) * (c / most); /* the square of the eigenvalues' distance from their mean */
    if (det >= 0) {
        double q = p + (p < 0 ? -1 : 1) * SQRT(det) * most, norm = F(norm)((double[]){q, c}, 2, 1);
        cs = q / norm, sn = c / norm;
        a = d + q, d -= q != 0 ? b / q * c : 0, b -= c, c = 0;
    } else {
        double r = F(norm)((double[]){p, s}, 2, 1), u = (b - c) / 2;
        cs = r > 0 ? SQRT((1 + FABS(s) / r) / 2) : 1, sn = r > 0 ? (s < 0 ? p : -p) / (2 * r * cs) : 0;
        s = s < 0 ? -r : r, a = d = mean;
        if ((s < 0) == (u < 0))
            b = s + u, c = det * most / b * most;
        else
            c = s - u, b = det * most / c * most;
    }
    for (int64_t j = k + 2; j < c1; j++) {
        double x = H(k, j), y = H(k + 1, j);
        H(k, j) = cs * x + sn * y, H(k + 1, j) = cs * y - sn * x;
    }
    for (int64_t i = r0; i < k; i++) {
        double x = H(i, k), y = H(i, k + 1);
        H(i, k) = cs * x + sn * y, H(i, k + 1) = cs * y - sn * x;
    }
    for (int64_t i = 0; f->z && i < n; i++) {
        double *x = &f->z[k * n + i], *y = x + n, t = *x;
        *x = cs * t + sn * *y, *y = cs * *y - sn * t;
    }
    H(k, k) = a, H(k, k + 1) = b, H(k + 1, k) = c, H(k + 1, k + 1) = d;
}
enum { F(BULGE) = 3 };
/* The first column of (H - x)(H - y), up to a factor, where x and y are the eigenvalues of the last two rows of lo …
   hi, or others every tenth iteration; returns the row in which the sweep may begin: after two small subdiagonal
   elements. */
static int64_t F(start)(const double *h, int64_t n, int64_t lo, int64_t hi, int turn, double *v) {
    double x = H(hi, hi), y = H(hi - 1, hi - 1), b = H(hi - 1, hi), c = H(hi, hi - 1);
    if (turn % 10 == 9) {
        int64_t k = turn % 20 == 9 ? hi : lo + 2;
        c = FABS(H(k, k - 1)) + FABS(H(k - 1, k - 2)), b = -0.4375 * c;
        x = y = H(turn % 20 == 9 ? hi : lo, turn % 20 == 9 ? hi : lo) + 0.75 * c;
    } else {
        double p = (y - x) / 2, scale = FABS(p) + FABS(b) + FABS(c),
               det = p / scale * (p / scale) + b / scale * (c / scale);
        if (det >= 0) { /* real: the one closer to the last element, twice */
            p += p < 0 ? -SQRT(det) * scale : SQRT(det) * scale;
            x = y = x - (p != 0 ? b / p * c : 0), b = c = 0;
        }
    }
    for (int64_t m = hi - 2;; m--) {
        double z = H(m, m), r = x - z, s = y - z, below = H(m + 1, m);
        double scale = FABS(r) + FABS(s) + FABS(below) + FABS(c);
        v[0] = r / scale * s - c / scale * b + below / scale * H(m, m + 1);
        v[1] = below / scale * (H(m + 1, m + 1) - z - r - s);
        v[2] = below / scale * H(m + 2, m + 1);
        if (m == lo) return m;
        double rest = FABS(v[1]) + FABS(v[2]), sum = FABS(v[0]) + rest;
        double near = FABS(H(m - 1, m - 1)) + FABS(z) + FABS(H(m + 1, m + 1));
        if (FABS(H(m, m - 1)) * (rest / sum) <= 0x1p-52 * (FABS(v[0]) / sum * near)) return m;
    }
}
#else
enum { F(BULGE) = 2 };
/* A square root. */
static c128 root(c128 x) {
    double a = creal(x), b = cimag(x), m = SQRT((FABS(a) + SQRT(a * a + b * b)) / 2);
    if (m == 0) return 0;
    return a < 0 ? CMPLX(b / (2 * m), m) : CMPLX(m, b / (2 * m));
}
/* The same for H - x, where x is the eigenvalue of the last two rows that is closer to the last element (Wilkinson). */
static int64_t F(start)(const c128 *h, int64_t n, int64_t lo, int64_t hi, int turn, c128 *v) {
    c128 shift = H(hi, hi), b = H(hi - 1, hi), c = H(hi, hi - 1), p = (H(hi - 1, hi - 1) - shift) / 2;
    if (turn % 10 == 9) {
        bool last = turn % 20 == 9;
        shift = last ? H(hi, hi) + 0.75 * SIZE1(c) : H(lo, lo) + 0.75 * SIZE1(H(lo + 1, lo));
    } else {
        double scale = SIZE1(p) + SIZE1(b) + SIZE1(c);
        p /= scale;
        c128 bc = b / scale * (c / scale), q = root(p * p + bc);
        p += RE(p) * RE(q) + IM(p) * IM(q) < 0 ? -q : q;
        if (p != 0) shift -= scale * div_c128(bc, p);
    }
    for (int64_t m = hi - 1;; m--) {
        v[0] = H(m, m) - shift, v[1] = H(m + 1, m);
        if (m == lo) return m;
        double rest = SIZE1(v[1]), sum = SIZE1(v[0]) + rest, near = SIZE1(H(m, m)) + SIZE1(H(m + 1, m + 1));
        if (SIZE1(H(m, m - 1)) * (rest / sum) <= 0x1p-52 * (SIZE1(v[0]) / sum * near)) return m;
    }
}
#endif
/* From the Hessenberg to the Schur form; only its diagonal blocks unless `whole`. False: no convergence. */
static bool F(iterate)(const F(Form) * f, bool whole) {
    int64_t n = f->n, hi = n - 1;
    T *h = f->h, v[3], tau;
    for (int turn = 0; hi >= 0 && turn < 300; turn++) {
        int64_t lo = F(block)(h, n, hi), r0 = whole ? 0 : lo, c1 = whole ? n : hi + 1;
        if (lo > 0) H(lo, lo - 1) = 0;
        if (lo > hi + 1 - F(BULGE)) { /* one row; for real numbers one or two */
#if KIND == 1
            if (lo < hi) F(standardise)(f, lo, c1, r0);
#endif
            hi = lo - 1, turn = -1;
            continue;
        }
        int64_t first = F(start)(h, n, lo, hi, turn, v);
        for (int64_t k = first; k < hi; k++) {
            int64_t m = hi - k + 1 < F(BULGE) ? hi - k + 1 : F(BULGE), r1 = (k + F(BULGE) < hi ? k + F(BULGE) : hi) + 1;
            for (int64_t i = 0; k > first && i < m; i++) v[i] = H(k + i, k - 1), H(k + i, k - 1) = 0;
            double beta = F(reflector)(v, m, &tau);
            if (k > first)
                H(k, k - 1) = beta;
            else if (k > lo)
                H(k, k - 1) *= 1 - CONJ(tau);
            if (m == F(BULGE))
                F(similar)(f, k, F(BULGE), v, tau, c1, r0, r1);
            else
                F(similar)(f, k, 2, v, tau, c1, r0, r1);
        }
    }
    return hi < 0;
}
static bool F(schur)(const F(Form) * f, bool whole) {
    for (int64_t i = 0; f->z && i < f->n; i++)
        for (int64_t j = 0; j < f->n; j++) f->z[i * f->n + j] = i == j;
    F(reduce)(f, NULL);
    return F(iterate)(f, whole);
}

/* ---- balancing: Parlett and Reinsch, Numerische Mathematik 13 (1969), with 2-norms */
static void F(exchange)(T *a, int64_t n, int64_t i, int64_t j, Balance *b) {
    for (int64_t k = 0; k < n; k++) {
        T t = a[i * n + k];
        a[i * n + k] = a[j * n + k], a[j * n + k] = t;
    }
    for (int64_t k = 0; k < n; k++) {
        T t = a[k * n + i];
        a[k * n + i] = a[k * n + j], a[k * n + j] = t;
    }
    uint8_t at = b->from[i];
    b->from[i] = b->from[j], b->from[j] = at;
}
/* Is row j (column j) of lo … hi zero outside the diagonal? */
static bool F(alone)(const T *a, int64_t n, const Balance *b, int64_t j, bool row) {
    for (int64_t k = b->lo; k <= b->hi; k++)
        if (k != j && (row ? a[j * n + k] : a[k * n + j]) != 0) return false;
    return true;
}
/* Moves eigenvalues that need no iteration to the ends. */
static void F(permute)(T *a, int64_t n, Balance *b) {
    *b = (Balance){.hi = n - 1};
    for (int64_t i = 0; i < n; i++) b->from[i] = (uint8_t)i, b->scale[i] = 1;
    for (int64_t j = b->hi; j >= 0; j--)
        if (F(alone)(a, n, b, j, true)) F(exchange)(a, n, j, b->hi, b), j = b->hi--;
    for (int64_t j = b->lo; j <= b->hi; j++)
        if (F(alone)(a, n, b, j, false)) F(exchange)(a, n, j, b->lo, b), j = b->lo++;
}
/* Gives rows and columns similar norms. */
static void F(scale)(T *a, int64_t n, Balance *b) {
    int64_t m = b->hi - b->lo + 1;
    for (bool again = true; again;) {
        again = false;
        for (int64_t i = b->lo; i <= b->hi; i++) {
            double c = F(norm)(a + b->lo * n + i, m, n), r = F(norm)(a + i * n + b->lo, m, 1), sum = c + r, f = 1;
            if (c == 0 || r == 0) continue;
            while (c < r / 2) c *= 2, r /= 2, f *= 2;
            while (c / 2 >= r) c /= 2, r *= 2, f /= 2;
            double scale = f * b->scale[i];
            if (c + r >= 0.95 * sum || scale < 0x1p-500 || scale > 0x1p500) continue;
            again = true, b->scale[i] = scale;
            for (int64_t k = 0; k < n; k++) a[i * n + k] /= f;
            for (int64_t k = 0; k < n; k++) a[k * n + i] *= f;
        }
    }
}
/* Brings all elements below 2^100 in size, and the largest above 2^-200, by a power of two: returns the power, 0 if an
   element is not finite. */
static double F(unit)(T *a, int64_t n) {
    double most = 0, f = 1;
    for (int64_t i = 0; i < n; i++) {
        double x = FABS(RE(a[i])), y = FABS(IM(a[i]));
        if (!__builtin_isfinite(x) || !__builtin_isfinite(y)) return 0;
        most = x > most ? x : most, most = y > most ? y : most;
    }
    while (most * f > 0x1p100) f *= 0x1p-64;
    while (most > 0 && most * f < 0x1p-100 && f < 0x1p900) f *= 0x1p64;
    if (f != 1)
        for (int64_t i = 0; i < n; i++) a[i] *= f;
    return f;
}

/* ---- eigenvectors */
/* x[0] … x[k + size - 1]: the eigenvector of the triangular T for w, whose block of `size` rows begins at k; `least`:
   smaller differences of eigenvalues are replaced by it. */
static void F(substitute)(const T *h, int64_t n, int64_t k, int64_t size, c128 w, double least, c128 *x) {
    int64_t end = k + size;
    x[k] = 1;
    if (size == 2) {
        double b = RE(H(k, k + 1)), c = RE(H(k + 1, k)), v = cimag(w);
        bool above = FABS(b) >= FABS(c);
        if (above)
            x[k + 1] = CMPLX(0, v / b);
        else
            x[k] = CMPLX(0, v / c), x[k + 1] = 1;
        if (above == (v < 0)) x[k] *= 1.0i, x[k + 1] *= 1.0i; /* LAPACK's choice */
    }
    for (int64_t j = k - 1; j >= 0; j--) {
        c128 sum = 0, gap = H(j, j) - w;
        for (int64_t e = j + 1; e < end; e++) sum -= H(j, e) * x[e];
        if (KIND > 1 || j == 0 || H(j, j - 1) == 0)
            x[j] = div_c128(sum, distance(gap, least));
        else { /* (a - w, b; c, a - w) x = sums; its determinant by the block's eigenvalues a ± i·v */
            c128 above = 0, b = H(j - 1, j), c = H(j, j - 1);
            for (int64_t e = j + 1; e < end; e++) above -= H(j - 1, e) * x[e];
            double v = SQRT(FABS(RE(H(j - 1, j)))) * SQRT(FABS(RE(H(j, j - 1))));
            c128 det = distance(gap + CMPLX(0, v), least) * distance(gap - CMPLX(0, v), least);
            x[j] = div_c128(gap * sum - c * above, det);
            x[j - 1] = div_c128(gap * above - b * sum, det);
            j--;
        }
        double most = size_c128(x[j]), other = size_c128(x[j + 1]);
        most = other > most ? other : most;
        if (most > 0x1p200)
            for (int64_t e = j; e < end; e++) x[e] /= most;
    }
}
/* All right or left eigenvectors as columns of `out`, of length 1, with the largest element real. */
static void F(vectors)(const F(Form) * f, const Balance *b, const c128 *w, bool left, T *flipped, c128 *out) {
    int64_t n = f->n;
    const T *h = f->h;
    double most = 0x1p-200;
    for (int64_t i = 0; i < n * n; i++) most = SIZE1(h[i]) > most ? SIZE1(h[i]) : most;
    if (left) { /* the right ones of Tᴴ, which is upper triangular with rows and columns reversed */
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++) flipped[i * n + j] = CONJ(H(n - 1 - j, n - 1 - i));
        h = flipped;
    }
    for (int64_t k = 0; k < n; k++) {
        int64_t size = KIND == 1 && cimag(w[k]) != 0 ? 2 : 1;
        double least = 0x1p-52 * size_c128(w[k]), bound = 0x1p-300 * most;
        c128 x[SMALL], v[SMALL] = {0};
        F(substitute)(h, n, left ? n - k - size : k, size, left ? ~w[k] : w[k], least > bound ? least : bound, x);
        for (int64_t e = 0; e < (left ? n - k : k + size); e++) {
            const T *z = f->z + (left ? n - 1 - e : e) * n;
            for (int64_t i = 0; i < n; i++) v[i] += x[e] * z[i];
        }
        for (int64_t i = 0; i < n; i++) left ? (v[i] /= b->scale[i]) : (v[i] *= b->scale[i]);
        normalise(v, n, KIND > 1 || size == 2, KIND > 1);
        for (int64_t i = 0; i < n; i++) {
            out[b->from[i] * n + k] = v[i];
            if (size == 2) out[b->from[i] * n + k + 1] = ~v[i];
        }
        k += size - 1;
    }
}

/* ---- called by the entries, with their sizes (lapack.c) */
static void F(eig_one)(Job *j, int64_t i, void *scratch) {
    const int64_t *s = j->sizes;
    int64_t n = s[2];
    bool narrow = s[1] != KIND, some = s[3] || s[4];
    size_t bytes = narrow ? sizeof(c64) : sizeof(c128);
    c128 *out = scratch, *w = out + n * n;
    T *h = (T *)(w + n), *z = h + n * n, *flipped = z + n * n;
    F(Form) f = {n, h, some ? z : NULL};
    Balance b;
    F(load)(h, part(j, 0, i, n * n, narrow ? sizeof(NARROW) : sizeof(T)), n * n, narrow);
    double unit = F(unit)(h, n * n);
    bool good = unit != 0;
    if (good) {
        F(permute)(h, n, &b);
        F(scale)(h, n, &b);
        good = F(schur)(&f, some);
    }
    for (int64_t k = 0; k < n; k++) {
        w[k] = H(k, k);
#if KIND == 1
        if (k + 1 == n || H(k + 1, k) == 0) continue;
        double v = SQRT(FABS(H(k, k + 1))) * SQRT(FABS(H(k + 1, k)));
        w[k + 1] = CMPLX(H(k, k), -v), w[k] = ~w[k + 1], k++;
#endif
    }
    for (uint32_t side = 0, at = 2; side < 2; side++) {
        if (!s[3 + side]) continue;
        if (good) F(vectors)(&f, &b, w, side == 0, flipped, out);
        store_c128(part(j, at++, i, n * n, bytes), out, n * n, narrow, good ? 1 : __builtin_nan(""));
    }
    store_c128(part(j, 1, i, n, bytes), w, n, narrow, good ? 1 / unit : __builtin_nan(""));
}
static void F(schur_one)(Job *j, int64_t i, void *scratch) {
    const int64_t *s = j->sizes;
    int64_t n = s[2];
    bool narrow = s[1] != KIND;
    size_t bytes = narrow ? sizeof(NARROW) : sizeof(T);
    T *h = scratch, *z = h + n * n, *out = z + n * n;
    F(Form) f = {n, h, s[3] ? z : NULL};
    Balance b;
    F(load)(h, part(j, 0, i, n * n, bytes), n * n, narrow);
    double unit = F(unit)(h, n * n);
    bool good = unit != 0;
    if (good) {
        F(permute)(h, n, &b);
        good = F(schur)(&f, true);
    }
    F(store)(part(j, 1, i, n * n, bytes), h, n * n, narrow, good ? 1 / unit : __builtin_nan(""));
    if (!s[3]) return;
    for (int64_t k = 0; good && k < n; k++)
        for (int64_t e = 0; e < n; e++) out[b.from[e] * n + k] = z[k * n + e];
    F(store)(part(j, 2, i, n * n, bytes), out, n * n, narrow, good ? 1 : __builtin_nan(""));
}
static void F(hessenberg_one)(Job *j, int64_t i, void *scratch) {
    int64_t n = j->sizes[2];
    bool narrow = j->sizes[1] != KIND;
    size_t bytes = narrow ? sizeof(NARROW) : sizeof(T);
    T *h = scratch, taus[SMALL];
    F(Form) f = {n, h, NULL};
    F(load)(h, part(j, 0, i, n * n, bytes), n * n, narrow);
    F(reduce)(&f, taus);
    F(store)(part(j, 1, i, n * n, bytes), h, n * n, narrow, 1);
    F(store)(part(j, 2, i, n - 1, bytes), taus, n - 1, narrow, 1);
}
#undef H
#undef NARROW
#include "linalg_undef.h"
