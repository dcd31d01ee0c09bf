/* Cholesky: L in the lower triangle, L Lᴴ = A, for linalg_blocks.h, which includes this for each element type and kind
   of CPU. On halves of the columns; at most BASE of them tile by tile: what the columns before give is
   subtracted and the rest is solved while it is in registers. What is solved is divided by its pivots: if
   such a quotient is larger than the largest number, all is NaN. */
_Static_assert(BASE % N(COLUMNS) == 0, "halves of whole tiles");
_Static_assert((BASE + N(COLUMNS) + 2) * BASE / 2 <= BASE * (BASE + TILE_MOST), "room for what is packed of a panel");
/* Numbers that are packed before those of the tile of columns that begins with column j. These are as many terms as
   there are columns before it, then its rows of Lᴴ, each divided by its pivot and without it, then the reciprocals of
   the pivots. */
static int64_t N(packed)(int64_t j) { return N(TILE) * (j / N(COLUMNS)) * (j + N(COLUMNS) + 2) / 2; }
/* tile = tile L⁻ᴴ, columns from left to right; divided by pivots at the end. */
static inline __attribute__((always_inline)) void N(solve_in_registers)(N(Tile) tile, const R *restrict u) {
#pragma GCC unroll 32
    for (int j = 0; j < N(COLUMNS) - 1; j++) {
        const int l = j % N(LANES_OF), v = j / N(LANES_OF);
        const N(vec) x = *(const N(vec) *)(u + j * N(TILE)), y = *(const N(vec) *)(u + j * N(TILE) + N(LANES_OF));
#pragma GCC unroll 12
        for (int i = 0; i < N(ROWS); i++) {
            const R f = tile[i][v][l];
#if KIND < 2
            if (v == 0 && l + 1 < N(LANES_OF)) tile[i][0] -= f * x;
            tile[i][1] -= f * y;
#else
            const R g = tile[i][1][l];
            tile[i][0] -= f * x, tile[i][1] -= f * y;
            tile[i][0] += g * y, tile[i][1] -= g * x;
#endif
        }
    }
    const N(vec) *reciprocals = (const N(vec) *)(u + N(TILE) * N(COLUMNS));
#pragma GCC unroll 12
    for (int i = 0; i < N(ROWS); i++) tile[i][0] *= reciprocals[0], tile[i][1] *= reciprocals[N(VECTORS) - 1];
}
/* m ≤ ROWS rows of a panel, of which the first n columns are done and the next ones follow: less what these give, and
   if `solved` times L⁻ᴴ. */
static OUTLINED void N(finish_tile)(T *x, int64_t ld, int64_t m, int64_t n, int64_t columns, const R *b, bool solved) {
    const N(Left) left = N(left)((N(View)){x, ld, 1, false});
    N(Tile) tile = {0};
    N(add_terms)(tile, &left, m, b, n);
    N(subtract_tile)(x + n, ld, m, columns, tile);
    if (solved) N(solve_in_registers)(tile, b + N(TILE) * n);
    N(store_tile)(x + n, ld, m, columns, tile);
}
/* The tile on the diagonal, of n columns; what solving with it needs is packed in u. */
static OUTLINED void N(factor_tile)(T *a, int64_t lda, int64_t n, R *u, uint8_t *bad) {
    T rows[N(COLUMNS)][N(COLUMNS)] = {0}; /* of Lᵀ, right of the diagonal */
    R *reciprocal = u + N(TILE) * N(COLUMNS), pivot[N(COLUMNS)];
    memset(u + N(TILE) * n, 0, sizeof(R) * (size_t)(N(TILE) * (N(COLUMNS) + 1 - n)));
    N(transpose)(rows[0], N(COLUMNS), a, lda, n, n);
    for (int64_t j = 0; j < n; j++, u += N(TILE)) {
        const R square = RE(rows[j][j]), by = reciprocal[j] = 1 / (pivot[j] = SQRT(square));
        *bad |= !(square > 0);
        for (int i = 0; i < N(COLUMNS); i++) {
            T x = rows[j][i] = i > j ? rows[j][i] * by : 0;
            u[i] = RE(x) * by;
            if (N(PARTS) == 2) u[N(COLUMNS) + i] = -IM(x) * by;
        }
        for (int64_t k = j + 1; k < n; k++) {
            T f = CONJ(rows[j][k]);
            for (int i = 0; i < N(COLUMNS); i++) rows[k][i] -= f * rows[j][i];
        }
    }
    N(transpose)(a, lda, rows[0], N(COLUMNS), n, n);
    for (int64_t j = 0; j < n; j++) a[j * (lda + 1)] = pivot[j];
}
/* All columns of some rows below the diagonal. */
typedef struct {
    T *a;
    int64_t lda, m, n;
    const R *packed;
} N(Below);
static void N(finish_rows)(void *below, int64_t lo, int64_t hi) {
    const N(Below) *s = below;
    int64_t end = jaxcc_rt_least(hi * PIECE_ROWS, s->m);
    for (int64_t piece = lo * PIECE_ROWS; piece < end; piece += PIECE_ROWS)
        for (int64_t j = 0; j < s->n; j += N(COLUMNS))
            for (int64_t y = piece; y < jaxcc_rt_least(piece + PIECE_ROWS, end); y += N(ROWS))
                N(finish_tile)(s->a + y * s->lda, s->lda, jaxcc_rt_least(end - y, N(ROWS)), j,
                               jaxcc_rt_least(s->n - j, N(COLUMNS)), s->packed + N(packed)(j), true);
}
/* n ≤ BASE columns of m rows, the first of them with the diagonal. */
static OUTLINED void N(cholesky_panel)(T *a, int64_t lda, int64_t m, int64_t n, uint8_t *bad, Room room) {
    R *packed = room.at;
    for (int64_t j = 0; j < n; j += N(COLUMNS)) {
        int64_t columns = jaxcc_rt_least(n - j, N(COLUMNS)), next = j + columns;
        R *b = packed + N(packed)(j);
        N(put)(b, a + j * lda, lda, 1, columns, N(COLUMNS), j, KIND > 1);
        for (int64_t y = j; y < next; y += N(ROWS))
            N(finish_tile)(a + y * lda, lda, jaxcc_rt_least(next - y, N(ROWS)), j, columns, b, false);
        N(factor_tile)(a + j * (lda + 1), lda, columns, b + N(TILE) * j, bad);
        for (int64_t y = next; y < n; y += N(ROWS))
            N(finish_tile)(a + y * lda, lda, jaxcc_rt_least(n - y, N(ROWS)), j, columns, b, true);
    }
    N(Below) below = {a + n * lda, lda, m - n, n, packed};
    int64_t pieces = (m - n + PIECE_ROWS - 1) / PIECE_ROWS;
    if (room.failed && below.m * n * n >= WORK_OF_THREADS)
        jaxcc_rt_parallel_for(N(finish_rows), &below, pieces, 1);
    else
        N(finish_rows)(&below, 0, pieces);
}
static void N(cholesky_lower)(T *a, int64_t lda, int64_t m, int64_t n, uint8_t *bad, Room room) {
    if (n <= BASE) {
        N(cholesky_panel)(a, lda, m, n, bad, room);
        return;
    }
    int64_t half = jaxcc_rt_half(n, BASE);
    T *low = a + half * lda, *corner = low + half;
    N(cholesky_lower)(a, lda, m, half, bad, room);
    N(Product) p = {corner, lda, {low, lda, 1, false}, {low, lda, 1, KIND > 1}, m - half, n - half, half};
    N(subtract)(&p, true, room);
    N(cholesky_lower)(corner, lda, m - half, n - half, bad, room);
}
/* As N(cholesky) for one matrix, `given`, of which the upper triangle stays as it is: tiles on the diagonal, of at most
   ROWS and COLUMNS, change what is above it, too. */
static void N(cholesky_blocks)(T *a, const T *given, int64_t n, uint8_t *bad, Room room) {
    jaxcc_rt_copy(a, given, (int64_t)sizeof(T) * n * n);
    N(cholesky_lower)(a, n, n, n, bad, room);
    for (int64_t i = 0; i < n; i++)
        memcpy(a + i * (n + 1) + 1, given + i * (n + 1) + 1,
               sizeof(T) * (size_t)jaxcc_rt_least(n - 1 - i, N(ROWS) + N(COLUMNS)));
}
