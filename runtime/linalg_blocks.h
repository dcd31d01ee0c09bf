/* Cholesky factors and triangular solves of one real matrix in blocks of BLOCK rows, for matrices of up to MIDDLE rows.
   Included for each real element type and kind of CPU, with N(name). The rows of a block that are solved are subtracted
   from the others by one kernel, 4 rows and 2 vectors of columns at a time, in registers. */
typedef T N(vec) __attribute__((vector_size(64), aligned(sizeof(T)), may_alias));
enum { N(LANES_OF) = 64 / sizeof(T) };

/* Row i of y, of `rows` ≤ 4 rows `ldy` apart: y[i] -= Σ f[4·k + i]·x[k] for n rows of x, `ldx` apart, r columns. */
static void N(subtract)(T *y, int64_t ldy, int64_t rows, const T *f, const T *x, int64_t ldx, int64_t n, int64_t r) {
    int64_t c = 0;
    const int64_t two = 2 * N(LANES_OF);
    for (; rows == 4 && c + two <= r; c += two) {
        N(vec) a[4][2];
        for (int i = 0; i < 4; i++)
            for (int v = 0; v < 2; v++) a[i][v] = *(const N(vec) *)(y + i * ldy + c + v * N(LANES_OF));
        for (int64_t k = 0; k < n; k++) {
            const N(vec) *row = (const N(vec) *)(x + k * ldx + c), left = row[0], right = row[1];
            a[0][0] -= f[4 * k] * left, a[0][1] -= f[4 * k] * right;
            a[1][0] -= f[4 * k + 1] * left, a[1][1] -= f[4 * k + 1] * right;
            a[2][0] -= f[4 * k + 2] * left, a[2][1] -= f[4 * k + 2] * right;
            a[3][0] -= f[4 * k + 3] * left, a[3][1] -= f[4 * k + 3] * right;
        }
        for (int i = 0; i < 4; i++)
            for (int v = 0; v < 2; v++) *(N(vec) *)(y + i * ldy + c + v * N(LANES_OF)) = a[i][v];
    }
    for (int64_t i = 0; i < rows; i++) {
        int64_t at = c;
        for (; at + N(LANES_OF) <= r; at += N(LANES_OF)) {
            N(vec) a = *(const N(vec) *)(y + i * ldy + at);
            for (int64_t k = 0; k < n; k++) a -= f[4 * k + i] * *(const N(vec) *)(x + k * ldx + at);
            *(N(vec) *)(y + i * ldy + at) = a;
        }
        for (; at < r; at++)
            for (int64_t k = 0; k < n; k++) y[i * ldy + at] -= f[4 * k + i] * x[k * ldx + at];
    }
}
/* As N(triangular) for one matrix; `lda`, `ldb`: from row to row. */
static void N(solve_blocks)(const T *a, int64_t lda, T *b, int64_t ldb, int64_t n, int64_t r, bool lower,
                            bool transposed, bool unit) {
    bool down = lower != transposed;
    int64_t right = transposed ? lda : 1, next = transposed ? 1 : lda; /* from column to column of op(A), row to row */
    T f[4 * BLOCK];
    for (int64_t from = 0; from < n; from += BLOCK) {
        int64_t size = n - from < BLOCK ? n - from : BLOCK, lo = down ? from : n - from - size;
        for (int64_t step = 0; step < size; step++) {
            int64_t i = down ? lo + step : lo + size - 1 - step, first = down ? lo : i + 1;
            for (int64_t k = 0; k < step; k++) f[4 * k] = a[i * next + (first + k) * right];
            N(subtract)(b + i * ldb, ldb, 1, f, b + first * ldb, ldb, step, r);
            for (int64_t c = 0; c < r && !unit; c++) b[i * ldb + c] /= a[i * (lda + 1)];
        }
        int64_t rest = down ? lo + size : 0, end = down ? n : lo;
        for (int64_t i = rest; i < end; i += 4) {
            int64_t rows = end - i < 4 ? end - i : 4;
            for (int64_t k = 0; k < size; k++)
                for (int64_t q = 0; q < rows; q++) f[4 * k + q] = a[(i + q) * next + (lo + k) * right];
            N(subtract)(b + i * ldb, ldb, rows, f, b + lo * ldb, ldb, size, r);
        }
    }
}
/* As N(cholesky) for one matrix; `panel` has room for BLOCK × n. */
static void N(cholesky_blocks)(T *a, int64_t n, uint8_t *bad, T *panel) {
    for (int64_t j = 0; j < n; j += BLOCK) {
        int64_t size = n - j < BLOCK ? n - j : BLOCK, m = n - j - size;
        T *corner = a + j * (n + 1), *below = corner + size * n, *rest = below + size;
        for (int64_t i = 0; i < size; i++)
            for (int64_t c = 0; c <= i; c++) {
                T s = corner[i * n + c];
                for (int64_t k = 0; k < c; k++) s -= corner[i * n + k] * corner[c * n + k];
                *bad |= i == c && !(s > 0);
                corner[i * n + c] = i == c ? SQRT(s) : s / corner[c * (n + 1)];
            }
        for (int64_t i = 0; i < m; i++)
            for (int64_t c = 0; c < size; c++) panel[c * m + i] = below[i * n + c];
        N(solve_blocks)(corner, n, panel, m, size, m, true, false, false);
        for (int64_t i = 0; i < m; i++)
            for (int64_t c = 0; c < size; c++) below[i * n + c] = panel[c * m + i];
        for (int64_t i = 0; i < m; i += 4) {
            T f[4 * BLOCK];
            int64_t rows = m - i < 4 ? m - i : 4;
            for (int64_t k = 0; k < size; k++)
                for (int64_t q = 0; q < rows; q++) f[4 * k + q] = panel[k * m + i + q];
            N(subtract)(rest + i * n, n, rows, f, panel, m, size, i + 1);
            for (int64_t q = 1; q < rows; q++)
                for (int64_t k = 0; k < size; k++)
                    for (int64_t c = i + 1; c <= i + q; c++) rest[(i + q) * n + c] -= f[4 * k + q] * panel[k * m + c];
        }
    }
}
