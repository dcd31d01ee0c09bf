/* Factors and triangular solves of one matrix of any size: Cholesky, LU and solves on halves, until they have at most
   BASE rows, or COLUMNS_OF_LU columns; QR by panels of REFLECTORS columns. Nearly all work is in `update`. Included for each element type and kind of CPU, with
   N(name) and WIDE, the bytes of a vector. `room`: memory for jaxcc_rt_room elements. Toledo, SIAM J. Matrix Anal. Appl.
   18 (1997): LU on halves; Schreiber and Van Loan, SIAM J. Sci. Stat. Comput. 10 (1989): products of reflectors; Goto
   and van de Geijn, ACM TOMS 34 (2008): panels. */
#pragma GCC push_options
#pragma GCC optimize("fp-contract=fast") /* products and sums by one instruction */
typedef R N(vec) __attribute__((vector_size(WIDE), aligned(sizeof(R)), may_alias));
/* A tile has ROWS rows and COLUMNS columns in registers, of complex numbers the real and the imaginary part. */
enum {
    N(LANES_OF) = WIDE / sizeof(R),
    N(PARTS) = KIND < 2 ? 1 : 2,
    N(ROWS) = KIND < 2 ? (WIDE == 64   ? 12
                          : WIDE == 32 ? 6
                                       : 4)
                       : (WIDE == 64 ? 8 : 4),
    N(VECTORS) = KIND < 2 ? 2 : 1,
    N(COLUMNS) = N(VECTORS) * N(LANES_OF),
};
_Static_assert(N(ROWS) * N(COLUMNS) <= TILE_MOST, "room for a tile");

/* op(A), element (i, k) at at[i·row + k·column], conjugated. */
typedef struct {
    const T *at;
    int64_t row, column;
    bool conj;
} N(View);
static N(View) N(part)(N(View) a, int64_t i, int64_t k) {
    a.at += i * a.row + k * a.column;
    return a;
}

/* tile = Σ a[k]ᵀ b[k]: a has ROWS numbers, b COLUMNS for each of n terms, of complex ones the real parts first. */
static OUTLINED void N(multiply)(const R *restrict a, const R *restrict b, int64_t n, R *restrict tile) {
#if KIND < 2
    N(vec) sum[N(ROWS)][N(VECTORS)] = {0};
    for (int64_t k = 0; k < n; k++, a += N(ROWS), b += N(COLUMNS)) {
        const N(vec) left = *(const N(vec) *)b, right = *(const N(vec) *)(b + N(LANES_OF));
#pragma GCC unroll 12
        for (int i = 0; i < N(ROWS); i++) sum[i][0] += a[i] * left, sum[i][1] += a[i] * right;
    }
#pragma GCC unroll 12
    for (int i = 0; i < N(ROWS); i++) {
        *(N(vec) *)(tile + i * N(COLUMNS)) = sum[i][0];
        *(N(vec) *)(tile + i * N(COLUMNS) + N(LANES_OF)) = sum[i][1];
    }
#else
    N(vec) re[N(ROWS)] = {0}, im[N(ROWS)] = {0};
    for (int64_t k = 0; k < n; k++, a += 2 * N(ROWS), b += 2 * N(COLUMNS)) {
        const N(vec) x = *(const N(vec) *)b, y = *(const N(vec) *)(b + N(COLUMNS));
#pragma GCC unroll 8
        for (int i = 0; i < N(ROWS); i++) {
            re[i] += a[i] * x, im[i] += a[i] * y;
            re[i] -= a[N(ROWS) + i] * y, im[i] += a[N(ROWS) + i] * x;
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < N(ROWS); i++)
        for (int c = 0; c < N(COLUMNS); c++)
            tile[2 * (i * N(COLUMNS) + c)] = re[i][c], tile[2 * (i * N(COLUMNS) + c) + 1] = im[i][c];
#endif
}
/* `count` ≤ `all` numbers, `step` apart, of each of n terms, `next` apart, zeros after them. */
static void N(put)(R *to, const T *from, int64_t step, int64_t next, int64_t count, int64_t all, int64_t n, bool conj) {
    const R sign = conj ? -1 : 1;
    for (int64_t k = 0; k < n; k++, from += next, to += N(PARTS) * all) {
        if (step == 1 && count == all && N(PARTS) == 1) {
            memcpy(to, from, sizeof(T) * (size_t)all);
            continue;
        }
        for (int64_t i = 0; i < all; i++) {
            to[i] = i < count ? RE(from[i * step]) : 0;
            if (N(PARTS) == 2) to[all + i] = i < count ? sign * IM(from[i * step]) : 0;
        }
    }
}

/* C -= op(A) B, C m × n with rows ldc apart, n terms of B's rows, ldb apart. */
static OUTLINED void N(update)(T *c, int64_t ldc, N(View) a, const T *b, int64_t ldb, int64_t m, int64_t n,
                               int64_t terms, T *room) {
    const int64_t p = N(PARTS), tile_size = p * N(ROWS) * N(COLUMNS);
    R *tile = (R *)room, *packed_a = tile + tile_size;
    if (m <= 0 || n <= 0) return;
    for (int64_t k0 = 0; k0 < terms; k0 += TERMS_AT_ONCE) {
        int64_t kn = jaxcc_rt_least(terms - k0, TERMS_AT_ONCE), most = jaxcc_rt_least(m, ROWS_AT_ONCE) + N(ROWS) - 1;
        R *packed_b = packed_a + p * kn * (most - most % N(ROWS));
        for (int64_t c0 = 0; c0 < n; c0 += COLUMNS_AT_ONCE) {
            int64_t cn = jaxcc_rt_least(n - c0, COLUMNS_AT_ONCE);
            for (int64_t x = 0; x < cn; x += N(COLUMNS))
                N(put)(packed_b + p * x * kn, b + k0 * ldb + c0 + x, 1, ldb, jaxcc_rt_least(cn - x, N(COLUMNS)),
                       N(COLUMNS), kn, false);
            for (int64_t r0 = 0; r0 < m; r0 += ROWS_AT_ONCE) {
                int64_t rn = jaxcc_rt_least(m - r0, ROWS_AT_ONCE);
                for (int64_t y = 0; y < rn; y += N(ROWS))
                    N(put)(packed_a + p * y * kn, N(part)(a, r0 + y, k0).at, a.row, a.column,
                           jaxcc_rt_least(rn - y, N(ROWS)), N(ROWS), kn, a.conj);
                for (int64_t x = 0; x < cn; x += N(COLUMNS))
                    for (int64_t y = 0; y < rn; y += N(ROWS)) {
                        N(multiply)(packed_a + p * y * kn, packed_b + p * x * kn, kn, tile);
                        int64_t columns = jaxcc_rt_least(cn - x, N(COLUMNS)), rows = jaxcc_rt_least(rn - y, N(ROWS));
                        for (int64_t i = 0; i < rows; i++) {
                            T *to = c + (r0 + y + i) * ldc + c0 + x;
                            const T *from = (const T *)tile + i * N(COLUMNS);
                            if (columns == N(COLUMNS))
                                for (int64_t e = 0; e < N(COLUMNS); e++) to[e] -= from[e];
                            else
                                for (int64_t e = 0; e < columns; e++) to[e] -= from[e];
                        }
                    }
            }
        }
    }
}

/* The m × n panel `a` as columns of m numbers one after the other, and back. */
static void N(to_columns)(T *columns, const T *a, int64_t lda, int64_t m, int64_t n) {
    for (int64_t i = 0; i < m; i++)
        for (int64_t c = 0; c < n; c++) columns[c * m + i] = a[i * lda + c];
}
static void N(from_columns)(T *a, int64_t lda, const T *columns, int64_t m, int64_t n) {
    for (int64_t i = 0; i < m; i++)
        for (int64_t c = 0; c < n; c++) a[i * lda + c] = columns[c * m + i];
}

/* ---- triangular solves */
/* At most BASE rows of B: one after the other. */
static OUTLINED void N(solve_base)(N(View) a, bool down, bool unit, T *b, int64_t ldb, int64_t n, int64_t r) {
#if KIND < 2
    for (; r >= N(COLUMNS); r -= N(COLUMNS), b += N(COLUMNS)) /* the sums of two vectors in registers */
        for (int64_t step = 0; step < n; step++) {
            int64_t i = down ? step : n - 1 - step, from = down ? 0 : i + 1, to = down ? i : n;
            N(vec) *x = (N(vec) *)(b + i * ldb), left = x[0], right = x[1];
            for (int64_t k = from; k < to; k++) {
                const N(vec) *y = (const N(vec) *)(b + k * ldb);
                T f = *N(part)(a, i, k).at;
                left -= f * y[0], right -= f * y[1];
            }
            T d = *N(part)(a, i, i).at;
            if (!unit) left /= d, right /= d;
            x[0] = left, x[1] = right;
        }
#endif
    for (int64_t step = 0; step < n && r; step++) {
        int64_t i = down ? step : n - 1 - step, from = down ? 0 : i + 1, to = down ? i : n;
        T *x = b + i * ldb;
        for (int64_t k = from; k < to; k++) {
            T f = *N(part)(a, i, k).at;
            const T *y = b + k * ldb;
            if (a.conj) f = CONJ(f);
            for (int64_t c = 0; c < r; c++) x[c] -= f * y[c];
        }
        if (unit) continue;
        T d = *N(part)(a, i, i).at;
        if (a.conj) d = CONJ(d);
        for (int64_t c = 0; c < r; c++) x[c] = DIV(x[c], d);
    }
}
/* X in the place of B (n × r), op(A) X = B; op(A) is lower triangular if `down`. */
static void N(solve)(N(View) a, bool down, bool unit, T *b, int64_t ldb, int64_t n, int64_t r, T *room) {
    if (n <= BASE) {
        for (int64_t c = 0; c < r; c += SOLVED_AT_ONCE)
            N(solve_base)(a, down, unit, b + c, ldb, n, jaxcc_rt_least(r - c, SOLVED_AT_ONCE));
        return;
    }
    int64_t half = jaxcc_rt_half(n, BASE), rest = n - half;
    T *low = b + half * ldb;
    if (down) {
        N(solve)(a, down, unit, b, ldb, half, r, room);
        N(update)(low, ldb, N(part)(a, half, 0), b, ldb, rest, r, half, room);
    }
    N(solve)(N(part)(a, half, half), down, unit, low, ldb, rest, r, room);
    if (!down) {
        N(update)(b, ldb, N(part)(a, 0, half), low, ldb, half, r, rest, room);
        N(solve)(a, down, unit, b, ldb, half, r, room);
    }
}
/* Σ conj?(x) y of n numbers. */
static T N(dot)(const T *x, const T *y, int64_t n, bool conj) {
    T s = 0;
    int64_t k = 0;
#if KIND < 2
    N(vec) sum[4] = {0};
    for (; k + 4 * N(LANES_OF) <= n; k += 4 * N(LANES_OF))
        for (int v = 0; v < 4; v++)
            sum[v] += *(const N(vec) *)(x + k + v * N(LANES_OF)) * *(const N(vec) *)(y + k + v * N(LANES_OF));
    for (; k + N(LANES_OF) <= n; k += N(LANES_OF)) sum[0] += *(const N(vec) *)(x + k) * *(const N(vec) *)(y + k);
    sum[0] += sum[1] + sum[2] + sum[3];
    for (int l = 0; l < N(LANES_OF); l++) s += sum[0][l];
#endif
    for (; k < n; k++) s += (conj ? CONJ(x[k]) : x[k]) * y[k];
    return s;
}
/* As `solve` for one column, x, and an op that conjugates nothing: by dot products with rows of op(A), or by multiples of its columns where these are what is
   contiguous. */
static void N(solve_column)(N(View) a, bool down, bool unit, T *x, int64_t n) {
    bool by_rows = a.column == 1;
    for (int64_t step = 0; step < n; step++) {
        int64_t i = down ? step : n - 1 - step, from = down != by_rows ? i + 1 : 0, to = down != by_rows ? n : i;
        T d = *N(part)(a, i, i).at;
        if (by_rows) x[i] -= N(dot)(N(part)(a, i, from).at, x + from, to - from, false);
        if (!unit) x[i] = DIV(x[i], d);
        if (by_rows) continue;
        const T *column = N(part)(a, 0, i).at, f = x[i];
        for (int64_t k = from; k < to; k++) x[k] -= column[k] * f;
    }
}
/* As N(triangular) for one matrix, rows of A lda and of B ldb apart. */
static void N(solve_blocks)(const T *a, int64_t lda, T *b, int64_t ldb, int64_t n, int64_t r, bool lower,
                            bool transposed, bool unit, T *room) {
    N(View) view = {a, transposed ? 1 : lda, transposed ? lda : 1, false};
    if (r >= N(LANES_OF) / 2) {
        N(solve)(view, lower != transposed, unit, b, ldb, n, r, room);
        return;
    }
    for (int64_t c = 0; c < r; c++) {
        for (int64_t i = 0; i < n; i++) room[i] = b[i * ldb + c];
        N(solve_column)(view, lower != transposed, unit, room, n);
        for (int64_t i = 0; i < n; i++) b[i * ldb + c] = room[i];
    }
}

/* ---- Cholesky: U in the upper triangle, Uᴴ U = A */
static OUTLINED void N(cholesky_base)(T *a, int64_t lda, int64_t n, uint8_t *bad, T *u) {
    for (int64_t i = 0; i < BASE; i++)
        for (int64_t c = 0; c < BASE; c++) u[i * BASE + c] = i < n && c < n && c >= i ? a[i * lda + c] : 0;
    for (int64_t j = 0; j < n; j++) {
        T *x = u + j * BASE;
        int64_t from = j & -16;
        for (int64_t k = 0; k < j; k++) {
            const T *y = u + k * BASE, f = CONJ(y[j]);
            for (int64_t c = from; c < BASE; c++) x[c] -= f * y[c];
        }
        R d = RE(x[j]);
        *bad |= !(d > 0);
        d = SQRT(d);
        for (int64_t c = from; c < BASE; c++) x[c] /= d;
        x[j] = d;
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = i; c < n; c++) a[i * lda + c] = u[i * BASE + c];
}
/* The upper triangle of C -= Uᴴ U. */
static void N(update_upper)(T *c, int64_t ldc, const T *u, int64_t ldu, int64_t n, int64_t terms, T *room) {
    for (int64_t from = 0; from < n; from += UPPER_ROWS)
        N(update)(c + from * (ldc + 1), ldc, (N(View)){u + from, 1, ldu, KIND > 1}, u + from, ldu,
                  jaxcc_rt_least(n - from, UPPER_ROWS), n - from, terms, room);
}
static void N(cholesky_upper)(T *a, int64_t lda, int64_t n, uint8_t *bad, T *room) {
    if (n <= BASE) {
        N(cholesky_base)(a, lda, n, bad, room);
        return;
    }
    int64_t half = jaxcc_rt_half(n, BASE), rest = n - half;
    T *right = a + half, *low = right + half * lda;
    N(cholesky_upper)(a, lda, half, bad, room);
    N(solve)((N(View)){a, 1, lda, KIND > 1}, true, false, right, lda, half, rest, room);
    N(update_upper)(low, lda, right, lda, rest, half, room);
    N(cholesky_upper)(low, lda, rest, bad, room);
}
/* Copies the lower triangle's conjugates to the upper one, or if `back` from there. */
static void N(copy_triangle)(T *a, int64_t n, bool back) {
    for (int64_t i0 = 0; i0 < n; i0 += COPIED_AT_ONCE)
        for (int64_t c0 = 0; c0 <= i0; c0 += COPIED_AT_ONCE)
            for (int64_t i = i0; i < n && i < i0 + COPIED_AT_ONCE; i++)
                for (int64_t c = c0; c < i && c < c0 + COPIED_AT_ONCE; c++) {
                    T *low = &a[i * n + c], *high = &a[c * n + i];
                    if (back)
                        *low = CONJ(*high);
                    else
                        *high = CONJ(*low);
                }
}
/* As N(cholesky) for one matrix, `given`, of which the upper triangle stays as it is. */
static void N(cholesky_blocks)(T *a, const T *given, int64_t n, uint8_t *bad, T *room) {
    N(copy_triangle)(a, n, false);
    N(cholesky_upper)(a, n, n, bad, room);
    N(copy_triangle)(a, n, true);
    for (int64_t i = 0; i < n; i++)
        memcpy(a + i * (n + 1) + 1, given + i * (n + 1) + 1, sizeof(T) * (size_t)(n - 1 - i));
}

/* ---- LU */
/* The first of n numbers that is as large as the largest. */
static int64_t N(largest)(const T *x, int64_t n) {
    R most[N(LANES_OF)] = {0};
    int64_t i = 0, at = 0;
    for (; i + N(LANES_OF) <= n; i += N(LANES_OF))
        for (int l = 0; l < N(LANES_OF); l++) {
            R v = SIZE1(x[i + l]);
            most[l] = v > most[l] ? v : most[l];
        }
    for (; i < n; i++) most[0] = SIZE1(x[i]) > most[0] ? SIZE1(x[i]) : most[0];
    for (int l = 1; l < N(LANES_OF); l++) most[0] = most[l] > most[0] ? most[l] : most[0];
    while (at < n && SIZE1(x[at]) != most[0]) at++;
    return at < n ? at : 0; /* only NaN */
}
/* At most COLUMNS_OF_LU columns, which are copied to `p`, one after the other. */
static OUTLINED void N(lu_base)(T *a, int64_t lda, int64_t m, int64_t n, int32_t *pivots, T *p) {
    N(to_columns)(p, a, lda, m, n);
    for (int64_t j = 0; j < m && j < n; j++) {
        T *x = p + j * m;
        int64_t at = SIZE1(x[j]) == SIZE1(x[j]) ? j + N(largest)(x + j, m - j) : j; /* NaN stay in place */
        pivots[j] = (int32_t)at;
        if (at != j)
            for (int64_t c = 0; c < n; c++) {
                T t = p[c * m + j];
                p[c * m + j] = p[c * m + at], p[c * m + at] = t;
            }
        T d = x[j];
        if (SIZE1(d) != 0) /* LAPACK continues after a zero pivot */
            for (int64_t i = j + 1; i < m; i++) x[i] = DIV(x[i], d);
        for (int64_t c = j + 1; c < n; c++) {
            T *y = p + c * m, f = y[j];
            for (int64_t i = j + 1; i < m; i++) y[i] -= x[i] * f;
        }
    }
    N(from_columns)(a, lda, p, m, n);
}
static void N(swap_rows)(T *a, int64_t lda, int64_t n, const int32_t *pivots, int64_t count) {
    for (int64_t k = 0; k < count; k++) {
        T *x = a + k * lda, *y = a + pivots[k] * lda;
        for (int64_t c = 0; x != y && c < n; c++) {
            T t = x[c];
            x[c] = y[c], y[c] = t;
        }
    }
}
static void N(lu_halves)(T *a, int64_t lda, int64_t m, int64_t n, int32_t *pivots, T *room) {
    int64_t k = jaxcc_rt_least(m, n);
    if (n <= COLUMNS_OF_LU) {
        N(lu_base)(a, lda, m, n, pivots, room);
        return;
    }
    int64_t half = k <= COLUMNS_OF_LU ? k : jaxcc_rt_half(k, COLUMNS_OF_LU);
    T *right = a + half, *low = a + half * lda;
    N(lu_halves)(a, lda, m, half, pivots, room);
    N(swap_rows)(right, lda, n - half, pivots, half);
    N(solve)((N(View)){a, lda, 1, false}, true, true, right, lda, half, n - half, room);
    if (m == half) return;
    N(update)(right + half * lda, lda, (N(View)){low, lda, 1, false}, right, lda, m - half, n - half, half, room);
    N(lu_halves)(right + half * lda, lda, m - half, n - half, pivots + half, room);
    N(swap_rows)(low, lda, half, pivots + half, k - half);
    for (int64_t i = half; i < k; i++) pivots[i] += (int32_t)half;
}
/* As N(lu) for one matrix. */
static void N(lu_blocks)(T *a, int64_t m, int64_t n, int32_t *pivots, T *room) {
    N(lu_halves)(a, n, m, n, pivots, room);
}

/* ---- QR, REFLECTORS at a time: I - V T Vᴴ for the product of the reflectors in the columns of V */
/* Room: V, its columns of m numbers one after the other, with ones and zeros above the reflectors; T; W; the rest. */
typedef struct {
    T *v, *t, *w, *room;
    int64_t m, count;
} N(Reflectors);
static N(Reflectors) N(reflectors)(T *room, int64_t m, int64_t n, int64_t count) {
    T *v = room + REFLECTORS * REFLECTORS, *w = v + REFLECTORS * m;
    return (N(Reflectors)){v, room, w, w + REFLECTORS * n, m, count};
}
/* T from V and the factors, of which count are not 0. */
static void N(join_reflectors)(const N(Reflectors) * h, const T *taus) {
    for (int64_t j = 0; j < h->count; j++) {
        const T *x = h->v + j * h->m;
        T sums[REFLECTORS], *column = h->t + j;
        for (int64_t i = 0; i < j; i++) sums[i] = N(dot)(h->v + i * h->m + j, x + j, h->m - j, KIND > 1);
        for (int64_t i = 0; i < j; i++) {
            T sum = 0;
            for (int64_t k = i; k < j; k++) sum += h->t[i * REFLECTORS + k] * sums[k];
            column[i * REFLECTORS] = -taus[j] * sum;
        }
        column[j * REFLECTORS] = taus[j];
    }
}
/* C (m × n) becomes (I - V op(T) Vᴴ) C, op(T) = Tᴴ if `turned`. */
static void N(apply_reflectors)(const N(Reflectors) * h, bool turned, T *c, int64_t ldc, int64_t n) {
    if (n <= 0) return;
    int64_t count = h->count;
    memset(h->w, 0, sizeof(T) * (size_t)(count * n));
    N(update)(h->w, n, (N(View)){h->v, h->m, 1, KIND > 1}, c, ldc, count, n, h->m, h->room); /* -Vᴴ C */
    for (int64_t step = 0; step < count; step++) { /* W = -op(T) W, rows of T in the order that reads old rows of W */
        int64_t i = turned ? count - 1 - step : step, from = turned ? 0 : i + 1, to = turned ? i : count;
        T *x = h->w + i * n, f = h->t[i * (REFLECTORS + 1)];
        if (turned) f = CONJ(f);
        for (int64_t e = 0; e < n; e++) x[e] *= -f;
        for (int64_t k = from; k < to; k++) {
            const T *y = h->w + k * n;
            T g = turned ? CONJ(h->t[k * REFLECTORS + i]) : h->t[i * REFLECTORS + k];
            for (int64_t e = 0; e < n; e++) x[e] -= g * y[e];
        }
    }
    N(update)(c, ldc, (N(View)){h->v, 1, h->m, false}, h->w, n, h->m, n, count, h->room);
}
/* As N(geqrf) for one matrix. */
static void N(qr_blocks)(T *a, int64_t m, int64_t n, T *taus, T *room) {
    int64_t k = jaxcc_rt_least(m, n);
    for (int64_t j0 = 0; j0 < k; j0 += REFLECTORS) {
        T *corner = a + j0 * (n + 1);
        const N(Reflectors) h = N(reflectors)(room, m - j0, n, jaxcc_rt_least(k - j0, REFLECTORS));
        N(to_columns)(h.v, corner, n, h.m, h.count);
        for (int64_t j = 0; j < h.count; j++) {
            T *x = h.v + j * h.m, turned, beta;
            PLAIN(reflector)(x, 1, j, 0, h.m, &taus[j0 + j], &turned);
            beta = x[j], x[j] = 1;
            for (int64_t c = j + 1; c < h.count; c++) {
                T *y = h.v + c * h.m, w = N(dot)(x + j, y + j, h.m - j, KIND > 1) * turned;
                for (int64_t i = j; i < h.m; i++) y[i] -= x[i] * w;
            }
            x[j] = beta;
        }
        N(from_columns)(corner, n, h.v, h.m, h.count);
        for (int64_t c = 0; c < h.count; c++)
            for (int64_t i = 0; i <= c; i++) h.v[c * h.m + i] = i == c;
        N(join_reflectors)(&h, taus + j0);
        N(apply_reflectors)(&h, true, corner + h.count, n, n - j0 - h.count);
    }
}
/* As N(orgqr) for one matrix. */
static void N(q_blocks)(T *a, int64_t m, int64_t n, int64_t k, const T *taus, T *room) {
    for (int64_t i = 0; i < m; i++)
        for (int64_t c = k; c < n; c++) a[i * n + c] = i == c;
    for (int64_t j0 = (k - 1) / REFLECTORS * REFLECTORS; k > 0 && j0 >= 0; j0 -= REFLECTORS) {
        T *corner = a + j0 * (n + 1);
        const N(Reflectors) h = N(reflectors)(room, m - j0, n, jaxcc_rt_least(k - j0, REFLECTORS));
        for (int64_t i = 0; i < h.m; i++)
            for (int64_t c = 0; c < h.count; c++) {
                h.v[c * h.m + i] = i > c ? corner[i * n + c] : (T)(i == c);
                corner[i * n + c] = i == c;
            }
        for (int64_t i = 0; i < j0; i++)
            for (int64_t c = 0; c < h.count; c++) a[i * n + j0 + c] = 0;
        N(join_reflectors)(&h, taus + j0);
        N(apply_reflectors)(&h, false, corner, n, n - j0);
    }
}
#pragma GCC pop_options
#undef WIDE
