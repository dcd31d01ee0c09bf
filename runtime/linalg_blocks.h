/* Factors and triangular solves of one matrix of any size: solves by blocks of rows, Cholesky (linalg_cholesky.h) and
   LU on halves of the columns, QR by panels of REFLECTORS columns. Nearly all work is in `add_terms`. Included for
   each element type and kind of CPU, with N(name) and WIDE, the bytes of a vector. Threads change no bit: each
   element's sum has the same terms in the same order. Toledo, SIAM J. Matrix Anal. Appl. 18 (1997): LU on halves;
   Schreiber and Van Loan, SIAM J. Sci. Stat. Comput. 10 (1989): products of reflectors; Goto and van de Geijn, ACM TOMS
   34 (2008): panels. */
#pragma GCC push_options
#pragma GCC optimize("fp-contract=fast") /* products and sums by one instruction */
typedef R N(vec) __attribute__((vector_size(WIDE), aligned(sizeof(R)), may_alias));
typedef __typeof__(__builtin_choose_expr(KIND % 2, (int64_t)0, (int32_t)0)) N(int);
typedef N(int) N(ints) __attribute__((vector_size(WIDE)));
/* A tile has ROWS rows and COLUMNS columns in registers, of complex numbers the real and the imaginary part. */
enum {
    N(LANES_OF) = WIDE / sizeof(R),
    N(PARTS) = KIND < 2 ? 1 : 2,
    N(ROWS) = KIND < 2 ? (WIDE == 64   ? 12
                          : WIDE == 32 ? 6
                                       : 4)
                       : (WIDE == 64   ? 8
                          : WIDE == 32 ? 6
                                       : 4),
    N(VECTORS) = KIND < 2 ? 2 : 1,
    N(COLUMNS) = N(VECTORS) * N(LANES_OF),
    N(TILE) = N(PARTS) * N(COLUMNS), /* numbers of a term of a packed right operand */
};
_Static_assert(N(ROWS) + N(COLUMNS) <= TILE_MOST && PIECE_SOLVED % N(COLUMNS) == 0, "sizes of tiles");
_Static_assert(ROWS_AT_ONCE % N(ROWS) == 0 && COLUMNS_AT_ONCE % N(COLUMNS) == 0 && PIECE_COLUMNS % N(COLUMNS) == 0,
               "whole tiles");

/* op(A), element (i, k) at at[i·row + k·column], one of row and column 1 or -1; conjugated if `conj`. */
typedef struct {
    const T *at;
    int64_t row, column;
    bool conj;
} N(View);
static N(View) N(part)(N(View) a, int64_t i, int64_t k) {
    a.at += i * a.row + k * a.column;
    return a;
}

/* The left operand of a product, op(A) as it is or packed: number k of row i of the tile that begins at row y is at
   at[y·tile + i·row + k·term], of a complex one the real part, and the imaginary one `imag` after it. */
typedef struct {
    const R *at;
    int64_t tile, row, term, imag;
} N(Left);
static N(Left) N(left)(N(View) a) {
    return (N(Left)){(const R *)a.at, N(PARTS) * a.row, N(PARTS) * a.row, N(PARTS) * a.column, 1};
}
/* What is in registers: of complex numbers the real parts, then the imaginary ones. */
typedef N(vec) N(Tile)[N(ROWS)][2];
/* tile += Σ a[k]ᵀ b[k] of n terms: op(A) of m ≤ ROWS rows, in the place of others the last one; COLUMNS numbers of b,
   of complex ones the real parts first. */
static inline __attribute__((always_inline)) void N(add_terms)(N(Tile) tile, const N(Left) * left, int64_t m,
                                                               const R *restrict b, int64_t n) {
    const R *a[N(ROWS)];
    const int64_t term = left->term;
#if KIND > 1
    const int64_t imag = left->imag;
#endif
#pragma GCC unroll 12
    for (int i = 0; i < N(ROWS); i++) a[i] = left->at + jaxcc_rt_least(i, m - 1) * left->row;
    for (int64_t k = 0, at = 0; k < n; k++, at += term, b += N(TILE)) {
        const N(vec) x = *(const N(vec) *)b, y = *(const N(vec) *)(b + N(LANES_OF));
#pragma GCC unroll 12
        for (int i = 0; i < N(ROWS); i++) {
            tile[i][0] += a[i][at] * x, tile[i][1] += a[i][at] * y;
#if KIND > 1
            tile[i][0] -= a[i][at + imag] * y, tile[i][1] += a[i][at + imag] * x;
#endif
        }
    }
}
/* A row of a tile from memory, and back: of complex numbers the real parts, then the imaginary ones. */
static inline __attribute__((always_inline)) void N(load_row)(N(vec) * row, const T *c) {
    const N(vec) x = ((const N(vec) *)c)[0], y = ((const N(vec) *)c)[1];
    row[0] = x, row[1] = y;
#if KIND > 1
    N(ints) at;
    for (int e = 0; e < N(LANES_OF); e++) at[e] = 2 * e;
    row[0] = __builtin_shuffle(x, y, at), row[1] = __builtin_shuffle(x, y, at + 1);
#endif
}
static inline __attribute__((always_inline)) void N(store_row)(T *c, const N(vec) * row) {
    N(vec) x = row[0], y = row[1];
#if KIND > 1
    N(ints) at;
    for (int e = 0; e < N(LANES_OF); e++) at[e] = e / 2 + e % 2 * N(LANES_OF);
    x = __builtin_shuffle(row[0], row[1], at), y = __builtin_shuffle(row[0], row[1], at + N(LANES_OF) / 2);
#endif
    ((N(vec) *)c)[0] = x, ((N(vec) *)c)[1] = y;
}
/* row = c - row. */
static inline __attribute__((always_inline)) void N(subtract_from)(const T *c, N(vec) * row) {
    N(vec) x[2];
    N(load_row)(x, c);
    row[0] = x[0] - row[0], row[1] = x[1] - row[1];
}
static void N(copy_rows)(T *to, int64_t ldto, const T *from, int64_t ld, int64_t m, int64_t n) {
    for (int64_t i = 0; i < m; i++) memcpy(to + i * ldto, from + i * ld, sizeof(T) * (size_t)n);
}
/* tile = C - tile, and C = tile: m ≤ ROWS rows, ldc apart, and n ≤ COLUMNS columns. */
static inline __attribute__((always_inline)) void N(subtract_tile)(const T *c, int64_t ldc, int64_t m, int64_t n,
                                                                   N(Tile) tile) {
    T some[N(ROWS) * N(COLUMNS)];
    if (n < N(COLUMNS)) {
        memset(some, 0, sizeof some);
        N(copy_rows)(some, N(COLUMNS), c, ldc, m, n);
        c = some, ldc = N(COLUMNS);
    }
#pragma GCC unroll 12
    for (int i = 0; i < N(ROWS); i++) N(subtract_from)(c + jaxcc_rt_least(i, m - 1) * ldc, tile[i]);
}
static inline __attribute__((always_inline)) void N(store_tile)(T *c, int64_t ldc, int64_t m, int64_t n, N(Tile) tile) {
    T some[N(ROWS) * N(COLUMNS)], *to = n < N(COLUMNS) ? some : c;
    const int64_t ld = n < N(COLUMNS) ? N(COLUMNS) : ldc;
#pragma GCC unroll 12
    for (int i = 0; i < N(ROWS); i++)
        if (i < m) N(store_row)(to + i * ld, tile[i]);
    if (n < N(COLUMNS)) N(copy_rows)(c, ldc, some, N(COLUMNS), m, n);
}
/* C -= Σ a[k]ᵀ b[k] of n terms, m ≤ ROWS × columns ≤ COLUMNS. */
static OUTLINED void N(multiply)(const N(Left) * a, const R *restrict b, int64_t n, T *c, int64_t ldc, int64_t m,
                                 int64_t columns) {
    N(Tile) tile = {0};
    N(add_terms)(tile, a, m, b, n);
    N(subtract_tile)(c, ldc, m, columns, tile);
    N(store_tile)(c, ldc, m, columns, tile);
}
#include "linalg_transpose.h"
/* `count` ≤ `all` numbers, `step` apart, of each of n terms, `next` apart, zeros after them. Reads along what is
   contiguous: rows of a large matrix fall into the same sets of a cache. */
static inline __attribute__((always_inline)) void N(put)(R *to, const T *from, int64_t step, int64_t next,
                                                         int64_t count, int64_t all, int64_t n, bool conj) {
    const int64_t apart = N(PARTS) * all;
#if KIND < 2
    if (step == 1 && count == all) {
        for (int64_t k = 0; k < n; k++) memcpy(to + k * all, from + k * next, sizeof(T) * (size_t)all);
        return;
    }
    if (step == -1 && count == all) {
        for (int64_t k = 0; k < n; k++)
            for (int64_t i = 0; i < all; i++) to[k * all + i] = from[k * next - i];
        return;
    }
    if (next == 1 && count == all) {
        N(transpose)(to, all, from, step, all, n);
        return;
    }
#endif
    if (count < all) memset(to, 0, sizeof(R) * (size_t)(apart * n));
    const bool beside = step == 1 || step == -1;
    int64_t outer = beside ? n : count, inner = beside ? count : n;
    for (int64_t x = 0; x < outer; x++)
        for (int64_t y = 0; y < inner; y++) {
            int64_t k = beside ? x : y, i = beside ? y : x;
            T v = from[i * step + k * next];
            to[k * apart + i] = RE(v);
            if (N(PARTS) == 2) to[k * apart + all + i] = conj ? -IM(v) : IM(v);
        }
}

/* op(A), m rows of n terms, as a left operand: packed if it is conjugated or its rows are not contiguous,
   TERMS_BESIDE terms of every tile before the next ones: lines of a cache may have numbers of several tiles. */
static N(Left) N(as_left)(N(View) a, int64_t m, int64_t n, R *packed) {
    if ((a.column == 1 || a.column == -1) && !a.conj) return N(left)(a);
    for (int64_t k = 0; k < n; k += TERMS_BESIDE)
        for (int64_t y = 0; y < m; y += N(ROWS))
            N(put)(packed + N(PARTS) * (y * n + k * N(ROWS)), N(part)(a, y, k).at, a.row, a.column,
                   jaxcc_rt_least(m - y, N(ROWS)), N(ROWS), jaxcc_rt_least(n - k, TERMS_BESIDE), a.conj);
    return (N(Left)){packed, N(PARTS) * n, 1, N(PARTS) * N(ROWS), N(ROWS)};
}

/* C -= op(A) op(B)ᵀ: C is m × n, its rows ldc apart. */
typedef struct {
    T *c;
    int64_t ldc;
    N(View) a, b;
    int64_t m, n, terms;
} N(Product);
/* Rows [row, row + m) and columns [column, column + n) of C, as far as there are. */
static N(Product) N(block)(N(Product) p, int64_t row, int64_t column, int64_t m, int64_t n) {
    p.c += row * p.ldc + column, p.a = N(part)(p.a, row, 0), p.b = N(part)(p.b, column, 0);
    p.m = jaxcc_rt_least(p.m - row, m), p.n = jaxcc_rt_least(p.n - column, n);
    return p;
}
/* From packed terms of op(B), tiles of columns `apart`. Elements (i, j) with i < j + kept may stay as they are. */
static OUTLINED void N(subtract_packed)(const N(Product) * p, N(Left) a, const R *b, int64_t apart, int64_t terms,
                                        int64_t kept) {
    const R *first_row = a.at;
    for (int64_t x = 0; x < p->n; x += N(COLUMNS)) {
        int64_t n = jaxcc_rt_least(p->n - x, N(COLUMNS)), first = x + kept > 0 ? x + kept : 0;
        for (int64_t y = first - first % N(ROWS); y < p->m; y += N(ROWS)) {
            T *c = p->c + y * p->ldc + x;
            for (int64_t i = 0; i < N(ROWS); i++) /* what is needed after the product */
                for (int64_t e = 0; e < N(COLUMNS); e += 64 / (int64_t)sizeof(T))
                    __builtin_prefetch(c + i * p->ldc + e, 1);
            a.at = first_row + y * a.tile;
            N(multiply)(&a, b + x / N(COLUMNS) * apart, terms, c, p->ldc, jaxcc_rt_least(p->m - y, N(ROWS)), n);
        }
    }
}
/* On one thread; if `lower`, at least what is below the diagonal of a triangle, or on it; C's first row is
   its row `above`. */
static OUTLINED void N(subtract_here)(N(Product) p, bool lower, int64_t above, R *packed_a) {
    for (int64_t k = 0; k < p.terms; k += TERMS_AT_ONCE) {
        int64_t n = jaxcc_rt_least(p.terms - k, TERMS_AT_ONCE), most = jaxcc_rt_least(p.m, ROWS_AT_ONCE) + N(ROWS) - 1;
        R *packed_b = packed_a + N(PARTS) * n * (most - most % N(ROWS));
        for (int64_t column = 0; column < p.n; column += COLUMNS_AT_ONCE) {
            N(Product) slab = N(block)(p, 0, column, p.m, COLUMNS_AT_ONCE);
            for (int64_t x = 0; x < slab.n; x += N(COLUMNS))
                N(put)(packed_b + N(PARTS) * x * n, N(part)(slab.b, x, k).at, slab.b.row, slab.b.column,
                       jaxcc_rt_least(slab.n - x, N(COLUMNS)), N(COLUMNS), n, slab.b.conj);
            int64_t first = lower && column > above ? column - above : 0;
            for (int64_t row = first - first % ROWS_AT_ONCE; row < p.m; row += ROWS_AT_ONCE) {
                N(Product) at = N(block)(slab, row, 0, ROWS_AT_ONCE, slab.n);
                N(Left) left = N(as_left)(N(part)(at.a, 0, k), at.m, n, packed_a);
                N(subtract_packed)(&at, left, packed_b, N(TILE) * n, n, lower ? column - row - above : -p.n);
            }
        }
    }
}
/* In pieces: of a whole matrix some rows, or if it has few, some columns; of a lower triangle rows as far as the
   diagonal. */
typedef struct {
    const N(Product) * p;
    bool lower;
    _Atomic bool *failed;
} N(Pieces);
static int64_t N(pieces)(const N(Pieces) * s) {
    bool rows = s->lower || s->p->m > ROWS_AT_ONCE;
    return ((rows ? s->p->m : s->p->n) - 1) / (rows ? PIECE_ROWS : PIECE_COLUMNS) + 1;
}
static N(Product) N(piece)(const N(Pieces) * s, int64_t lo, int64_t hi) {
    int64_t row = lo * PIECE_ROWS, rows = (hi - lo) * PIECE_ROWS;
    if (s->lower) return N(block)(*s->p, row, 0, rows, row + rows);
    if (s->p->m > ROWS_AT_ONCE) return N(block)(*s->p, row, 0, rows, s->p->n);
    return N(block)(*s->p, 0, lo * PIECE_COLUMNS, s->p->m, (hi - lo) * PIECE_COLUMNS);
}
static void N(subtract_pieces)(const N(Pieces) * s, int64_t lo, int64_t hi, T *room) {
    N(subtract_here)(N(piece)(s, lo, hi), s->lower, s->lower ? lo * PIECE_ROWS : 0, (R *)room);
}
static void N(subtract_some)(void *pieces, int64_t lo, int64_t hi) {
    const N(Pieces) *s = pieces;
    T *room = jaxcc_rt_workspace_get(jaxcc_rt_product_room(s->p->m, s->p->n, s->p->terms) * (int64_t)sizeof(T));
    if (room)
        N(subtract_pieces)(s, lo, hi, room), jaxcc_rt_workspace_put(room);
    else
        *s->failed = true;
}
static OUTLINED void N(subtract)(const N(Product) * p, bool lower, Room room) {
    N(Pieces) s = {p, lower, room.failed};
    if (p->m <= 0 || p->n <= 0) return;
    if (room.failed && p->m * p->n * p->terms >= WORK_OF_THREADS)
        jaxcc_rt_parallel_for(N(subtract_some), &s, N(pieces)(&s), 1);
    else
        N(subtract_pieces)(&s, 0, N(pieces)(&s), room.at);
}

/* The m × n panel `a` as columns of m numbers one after the other, and back. */
static void N(to_columns)(T *columns, const T *a, int64_t lda, int64_t m, int64_t n) {
    N(transpose)(columns, m, a, lda, m, n);
}
static void N(from_columns)(T *a, int64_t lda, const T *columns, int64_t m, int64_t n) {
    N(transpose)(a, lda, columns, m, n, m);
}

/* ---- triangular solves */
/* X in the place of B (n × r, its rows ldb apart), op(A) X = B; op(A) is lower triangular. */
typedef struct {
    N(View) a;
    bool unit;
    T *b;
    int64_t ldb, n, r;
    _Atomic bool *failed;
} N(Solve);
/* Of an upper triangle the rows and columns from the last to the first one. */
static N(Solve) N(from_below)(N(Solve) s) {
    s.a = N(part)(s.a, s.n - 1, s.n - 1), s.a.row = -s.a.row, s.a.column = -s.a.column;
    s.b += (s.n - 1) * s.ldb, s.ldb = -s.ldb;
    return s;
}
/* Of a pivot, by which numbers are multiplied, as in LAPACK, or 0 if it is not a normal number. */
static T N(reciprocal)(T pivot) {
    const R small = ((const R[]){0x1p-126, 0x1p-1022, 0x1p-100, 0x1p-900})[KIND];
    const T f = IM(pivot) == 0 ? 1 / RE(pivot) : DIV((T)1, pivot);
    return SIZE1(f) >= small && SIZE1(f) <= 1 / small ? f : 0;
}
static void N(divide_by_real)(R *x, int64_t n, R pivot) {
    const R f = RE(N(reciprocal)(pivot));
    if (f != 0)
        for (int64_t i = 0; i < n; i++) x[i] *= f;
    else
        for (int64_t i = 0; i < n; i++) x[i] /= pivot;
}
/* The same for complex numbers; those of floats in f64. */
static void N(divide)(T *x, int64_t n, T pivot) {
    if (IM(pivot) == 0) {
        N(divide_by_real)((R *)x, N(PARTS) * n, RE(pivot));
        return;
    }
#if KIND == 2
    c128 f = div_c128(1, pivot);
    for (int64_t i = 0; i < n; i++) x[i] = (T)((c128)x[i] * f);
#elif KIND == 3
    T f = N(reciprocal)(pivot);
    for (int64_t i = 0; i < n; i++) x[i] = f != 0 ? x[i] * f : DIV(x[i], pivot);
#endif
}
/* A row of a tile, times the reciprocal of the pivot if there is one. */
static inline __attribute__((always_inline)) void N(divide_row)(N(vec) * row, T by, T pivot) {
    if (by == 0) {
        T x[N(COLUMNS)];
        N(store_row)(x, row);
        N(divide)(x, N(COLUMNS), pivot);
        N(load_row)(row, x);
        return;
    }
    const N(vec) x = row[0], y = row[1];
    row[0] *= RE(by), row[1] *= RE(by);
    if (IM(by) != 0) row[0] -= y * IM(by), row[1] += x * IM(by);
}
/* tile = A⁻¹ tile, m × m numbers of A; `by`: the reciprocals of its pivots, or NULL, if these are 1. */
static inline __attribute__((always_inline)) void N(solve_rows)(N(Tile) tile, const N(Left) * a, int64_t m,
                                                                const T *by) {
#pragma GCC unroll 12
    for (int i = 0; i < N(ROWS); i++) {
        if (i == m) return;
        const R *x = a->at + i * a->row;
#pragma GCC unroll 12
        for (int j = 0; j < i; j++, x += a->term) {
            tile[i][0] -= x[0] * tile[j][0], tile[i][1] -= x[0] * tile[j][1];
#if KIND > 1
            tile[i][0] += x[a->imag] * tile[j][1], tile[i][1] -= x[a->imag] * tile[j][0];
#endif
        }
        if (!by) continue;
        T pivot = x[0];
#if KIND > 1
        __imag__ pivot = x[a->imag];
#endif
        N(divide_row)(tile[i], by[i], pivot);
    }
}
/* ROWS rows of X from row y on and some columns of them from column c on, of which b has the rows before and gets
   these. */
static OUTLINED void N(solve_tile)(const N(Solve) * s, N(Left) a, const T *by, R *b, int64_t y, int64_t c) {
    const int64_t m = jaxcc_rt_least(s->n - y, N(ROWS)), columns = jaxcc_rt_least(s->r - c, N(COLUMNS));
    T *x = s->b + y * s->ldb + c;
    N(Tile) tile = {0};
    a.at += y * a.tile;
    N(add_terms)(tile, &a, m, b, y);
    N(subtract_tile)(x, s->ldb, m, columns, tile);
    a.at += y * a.term;
    N(solve_rows)(tile, &a, m, by ? by + y : NULL);
    N(store_tile)(x, s->ldb, m, columns, tile);
    N(vec) *packed = (N(vec) *)(b + y * N(TILE));
#pragma GCC unroll 12
    for (int i = 0; i < N(ROWS); i++)
        if (i < m) packed[2 * i] = tile[i][0], packed[2 * i + 1] = tile[i][1];
}
/* Rows from `first` on, as many as a product has at once; x has those before, tiles of columns `apart`, and gets these. */
static OUTLINED void N(solve_block)(const N(Solve) * s, int64_t first, R *x, int64_t apart, R *room) {
    N(Solve) rows = *s;
    T by[ROWS_AT_ONCE];
    rows.a = N(part)(s->a, first, first), rows.b += first * s->ldb;
    rows.n = jaxcc_rt_least(s->n - first, ROWS_AT_ONCE);
    const N(Product) p = {.c = rows.b, .ldc = s->ldb, .m = rows.n, .n = s->r};
    for (int64_t k = 0; k < first; k += TERMS_AT_ONCE) {
        const int64_t n = jaxcc_rt_least(first - k, TERMS_AT_ONCE);
        const N(Left) a = N(as_left)(N(part)(s->a, first, k), rows.n, n, room);
        N(subtract_packed)(&p, a, x + k * N(TILE), apart, n, -s->r);
    }
    for (int64_t i = 0; i < rows.n; i++) by[i] = N(reciprocal)(*N(part)(rows.a, i, i).at);
    const N(Left) a = N(as_left)(rows.a, rows.n, rows.n, room);
    for (int64_t c = 0; c < s->r; c += N(COLUMNS))
        for (int64_t y = 0; y < rows.n; y += N(ROWS))
            N(solve_tile)(&rows, a, s->unit ? NULL : by, x + c / N(COLUMNS) * apart + first * N(TILE), y, c);
}
static void N(solve_here)(const N(Solve) * s, Room room) {
    const bool once = s->n <= ROWS_AT_ONCE;
    const int64_t columns = once ? s->r : COLUMNS_AT_ONCE, apart = once ? 0 : N(TILE) * s->n;
    R *x = room.at, *packed = x + N(PARTS) * s->n * (jaxcc_rt_least(s->r, COLUMNS_AT_ONCE) + N(COLUMNS));
    for (int64_t c = 0; c < s->r; c += columns) {
        N(Solve) some = *s;
        some.b += c, some.r = jaxcc_rt_least(s->r - c, columns);
        for (int64_t first = 0; first < s->n; first += ROWS_AT_ONCE) N(solve_block)(&some, first, x, apart, packed);
    }
}
static void N(solve_some)(void *solve, int64_t lo, int64_t hi) {
    N(Solve) s = *(const N(Solve) *)solve;
    s.b += lo * PIECE_SOLVED;
    s.r = jaxcc_rt_least(s.r - lo * PIECE_SOLVED, (hi - lo) * PIECE_SOLVED);
    T *room = jaxcc_rt_workspace_get(jaxcc_rt_solve_room(s.n, s.r) * (int64_t)sizeof(T));
    if (room)
        N(solve_here)(&s, (Room){room, NULL}), jaxcc_rt_workspace_put(room);
    else
        *s.failed = true;
}
static OUTLINED void N(solve)(const N(Solve) * s, Room room) {
    N(Solve) parts = *s;
    parts.failed = room.failed;
    if (room.failed && s->r > PIECE_SOLVED && s->n * s->n * s->r >= WORK_OF_THREADS)
        jaxcc_rt_parallel_for(N(solve_some), &parts, (s->r - 1) / PIECE_SOLVED + 1, 1);
    else
        N(solve_here)(s, room);
}
#if KIND > 1
/* Real parts in the place of imaginary ones. */
static N(vec) N(swapped)(N(vec) x) {
    N(vec) y;
#pragma GCC unroll 16
    for (int i = 0; i < N(LANES_OF); i++) y[i] = x[i ^ 1];
    return y;
}
#endif
/* Σ conj?(x) y of n numbers. */
static T N(dot)(const T *x, const T *y, int64_t n, bool conj) {
    enum { SUMS = 4, ONE = N(LANES_OF) / N(PARTS) };
    const N(vec) *u = (const N(vec) *)x, *v = (const N(vec) *)y;
    T s = 0;
    int64_t k = 0;
    N(vec) sum[SUMS] = {0};
#if KIND < 2
    for (; k + SUMS * ONE <= n; k += SUMS * ONE, u += SUMS, v += SUMS)
        for (int i = 0; i < SUMS; i++) sum[i] += u[i] * v[i];
    for (; k + ONE <= n; k += ONE) sum[0] += *u++ * *v++;
    sum[0] += sum[1] + sum[2] + sum[3];
    for (int l = 0; l < ONE; l++) s += sum[0][l];
#else
    /* sum[0]: products of real and of imaginary parts, sum[1]: of one with the other; sum[2], sum[3] as these */
    for (; k + 2 * ONE <= n; k += 2 * ONE, u += 2, v += 2)
        for (int i = 0; i < 2; i++) sum[2 * i] += u[i] * v[i], sum[2 * i + 1] += u[i] * N(swapped)(v[i]);
    sum[0] += sum[2], sum[1] += sum[3];
    R re = 0, im = 0;
    for (int l = 0; l < N(LANES_OF); l += 2) {
        re += conj ? sum[0][l] + sum[0][l + 1] : sum[0][l] - sum[0][l + 1];
        im += conj ? sum[1][l] - sum[1][l + 1] : sum[1][l] + sum[1][l + 1];
    }
    __real__ s = re, __imag__ s = im;
#endif
    for (; k < n; k++) s += (conj ? CONJ(x[k]) : x[k]) * y[k];
    return s;
}
/* As `solve` for one column, x: by dot products with rows of op(A), or by multiples
   of its columns where these are what is contiguous. */
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
/* Are so few columns faster one by one? Complex ones only where tiles have to pack a large matrix: otherwise a tile
   takes 2.4 us for 40 × 1 of c64, and a column 7. */
static bool N(by_columns)(int64_t n, int64_t r, bool transposed) {
    enum { SHORT = 64 };
    return KIND < 2 ? r < N(LANES_OF) / 2 : transposed && n > SHORT && r <= N(LANES_OF) / 4;
}
/* As N(triangular) for one matrix. */
static void N(solve_blocks)(const T *a, T *b, int64_t n, int64_t r, bool lower, bool transposed, bool unit, Room room) {
    N(View) view = {a, transposed ? 1 : n, transposed ? n : 1, false};
    if (!N(by_columns)(n, r, transposed)) {
        N(Solve) s = {view, unit, b, r, n, r, NULL};
        if (lower == transposed) s = N(from_below)(s);
        N(solve)(&s, room);
        return;
    }
    T *x = room.at;
    for (int64_t c = 0; c < r; c++) {
        for (int64_t i = 0; i < n; i++) x[i] = b[i * r + c];
        N(solve_column)(view, lower != transposed, unit, x, n);
        for (int64_t i = 0; i < n; i++) b[i * r + c] = x[i];
    }
}

#include "linalg_cholesky.h"

/* ---- LU */
/* Where the size of x is larger, it is the new `most`: the lanes in which it is. */
static inline N(ints) N(enlarge)(N(vec) * most, N(vec) x) {
    N(ints) size = (N(ints))x & ~(N(ints))(-(N(vec)){0}), more = (N(vec))size > *most;
    *most = (N(vec))((size & more) | ((N(ints)) * most & ~more));
    return more;
}
/* The first of the largest of n numbers; x[0] is not NaN, others are passed over. */
static int64_t N(largest)(const T *x, int64_t n) {
    int64_t i = 0, first = 0;
    R best = SIZE1(x[0]);
#if KIND < 2
    N(vec) most = {0};
    N(ints) here = {0}, at = {0};
    for (int l = 0; l < N(LANES_OF); l++) here[l] = l;
    for (; i + N(LANES_OF) <= n; i += N(LANES_OF), here += N(LANES_OF)) {
        N(ints) more = N(enlarge)(&most, *(const N(vec) *)(x + i));
        at = (here & more) | (at & ~more);
    }
    for (int l = 0; l < N(LANES_OF); l++)
        if (most[l] > best || (most[l] == best && at[l] < first)) best = most[l], first = at[l];
#endif
    for (; i < n; i++)
        if (SIZE1(x[i]) > best) best = SIZE1(x[i]), first = i;
    return first;
}
/* Step j with the panel p, of n columns of m numbers one after the other: the pivot's row, which is swapped with row j
   and returned, and the factors below. */
static int64_t N(pivot)(T *p, int64_t m, int64_t n, int64_t j) {
    T *x = p + j * m;
    int64_t at = __builtin_isnan(SIZE1(x[j])) ? j : j + N(largest)(x + j, m - j); /* NaN stay in place */
    if (at != j)
        for (int64_t c = 0; c < n; c++) {
            T t = p[c * m + j];
            p[c * m + j] = p[c * m + at], p[c * m + at] = t;
        }
    if (SIZE1(x[j]) != 0) N(divide)(x + j + 1, m - j - 1, x[j]); /* LAPACK continues after a zero pivot */
    return at;
}
/* What `steps` steps from j on, whose columns begin at x, do to some columns from y on: these are read and written
   once. */
static inline __attribute__((always_inline)) void N(eliminate)(const T *x, T *y, int64_t m, int64_t j, int steps,
                                                               int columns) {
    T f[LU_STEPS][LU_COLUMNS];
    int64_t i = j + steps;
    for (int c = 0; c < columns; c++)
        for (int k = 0; k < steps; k++) {
            f[k][c] = y[c * m + j + k];
            for (int64_t e = j + k + 1; e < i; e++) y[c * m + e] -= x[k * m + e] * f[k][c];
        }
#if KIND < 2
    for (; i + N(LANES_OF) <= m; i += N(LANES_OF))
#pragma GCC unroll 4
        for (int c = 0; c < columns; c++) {
            N(vec) v = *(N(vec) *)(y + c * m + i);
#pragma GCC unroll 4
            for (int k = 0; k < steps; k++) v -= *(const N(vec) *)(x + k * m + i) * f[k][c];
            *(N(vec) *)(y + c * m + i) = v;
        }
#endif
    for (; i < m; i++)
        for (int c = 0; c < columns; c++)
            for (int k = 0; k < steps; k++) y[c * m + i] -= x[k * m + i] * f[k][c];
}
/* At most COLUMNS_OF_LU columns, which are copied to `p`, one after the other. */
static OUTLINED void N(lu_base)(T *a, int64_t lda, int64_t m, int64_t n, int32_t *pivots, T *p) {
    N(to_columns)(p, a, lda, m, n);
    int64_t k = jaxcc_rt_least(m, n);
    for (int64_t first = 0, last; first < k; first = last) {
        last = jaxcc_rt_least(first + LU_STEPS, k);
        for (int64_t j = first; j < last; j++) {
            pivots[j] = (int32_t)N(pivot)(p, m, n, j);
            for (int64_t c = j + 1; c < last; c++) N(eliminate)(p + j * m, p + c * m, m, j, 1, 1);
        }
        int64_t c = last;
        const T *x = p + first * m;
        for (; last - first == LU_STEPS && c + LU_COLUMNS <= n; c += LU_COLUMNS)
            N(eliminate)(x, p + c * m, m, first, LU_STEPS, LU_COLUMNS);
        for (; c < n; c++) N(eliminate)(x, p + c * m, m, first, (int)(last - first), 1);
    }
    N(from_columns)(a, lda, p, m, n);
}
static OUTLINED void N(swap_rows)(T *a, int64_t lda, int64_t n, const int32_t *pivots, int64_t count) {
    for (int64_t k = 0; k < count; k++) {
        T *x = a + k * lda, *y = a + pivots[k] * lda;
        for (int64_t c = 0; x != y && c < n; c++) {
            T t = x[c];
            x[c] = y[c], y[c] = t;
        }
    }
}
/* As N(lu) for one matrix, rows lda apart. */
static void N(lu_blocks)(T *a, int64_t lda, int64_t m, int64_t n, int32_t *pivots, Room room) {
    int64_t k = jaxcc_rt_least(m, n);
    if (n <= COLUMNS_OF_LU) {
        N(lu_base)(a, lda, m, n, pivots, room.at);
        return;
    }
    int64_t half = k <= COLUMNS_OF_LU ? k : jaxcc_rt_half(k, COLUMNS_OF_LU);
    T *right = a + half, *low = a + half * lda;
    N(lu_blocks)(a, lda, m, half, pivots, room);
    N(swap_rows)(right, lda, n - half, pivots, half);
    N(solve)(&(N(Solve)){{a, lda, 1, false}, true, right, lda, half, n - half, NULL}, room);
    if (m == half) return;
    N(View) left = {low, lda, 1, false}, above = {right, 1, lda, false};
    N(Product) p = {right + half * lda, lda, left, above, m - half, n - half, half};
    N(subtract)(&p, false, room);
    N(lu_blocks)(right + half * lda, lda, m - half, n - half, pivots + half, room);
    N(swap_rows)(low, lda, half, pivots + half, k - half);
    for (int64_t i = half; i < k; i++) pivots[i] += (int32_t)half;
}

/* ---- QR, REFLECTORS at a time: I - V T Vᴴ for the product of the reflectors in the columns of V */
/* V, its columns of m numbers one after the other, with ones and zeros above the reflectors; T; W. */
typedef struct {
    T *v, *t, *w;
    Room room; /* the rest */
    int64_t m, count;
} N(Reflectors);
static N(Reflectors) N(reflectors)(Room room, int64_t m, int64_t n, int64_t count) {
    T *t = room.at, *v = t + REFLECTORS * REFLECTORS, *w = v + REFLECTORS * m;
    return (N(Reflectors)){v, t, w, {w + REFLECTORS * n, room.failed}, m, count};
}
/* Of columns y, `apart` numbers apart, with a column x, which is read once for four of them, or two; the last may be
   alone, and is added up in another order: */
#if KIND < 2
/* Σ x y of n numbers. */
static inline __attribute__((always_inline)) void N(some_dots)(const T *x, const T *y, int64_t apart, int64_t n,
                                                               int count, T *sums) {
    enum { MOST = 4, SUMS = 2 };
    N(vec) sum[MOST][SUMS] = {0};
    int64_t k = 0;
    for (; k + SUMS * N(LANES_OF) <= n; k += SUMS * N(LANES_OF))
        for (int s = 0; s < SUMS; s++)
            for (int c = 0; c < count; c++) {
                int64_t at = k + s * N(LANES_OF);
                sum[c][s] += *(const N(vec) *)(x + at) * *(const N(vec) *)(y + c * apart + at);
            }
    for (int c = 0; c < count; c++) {
        sum[c][0] += sum[c][1], sums[c] = 0;
        for (int l = 0; l < N(LANES_OF); l++) sums[c] += sum[c][0][l];
        for (int64_t e = k; e < n; e++) sums[c] += x[e] * y[c * apart + e];
    }
}
/* y -= x w of n numbers. */
static inline __attribute__((always_inline)) void N(some_multiples)(const T *x, T *y, int64_t apart, int64_t n,
                                                                    int count, const T *w) {
    int64_t k = 0;
    for (; k + N(LANES_OF) <= n; k += N(LANES_OF))
        for (int c = 0; c < count; c++) *(N(vec) *)(y + c * apart + k) -= *(const N(vec) *)(x + k) * w[c];
    for (; k < n; k++)
        for (int c = 0; c < count; c++) y[c * apart + k] -= x[k] * w[c];
}
#endif
/* Σ conj(x) y of n numbers. */
static void N(dots)(const T *x, const T *y, int64_t apart, int64_t n, int64_t count, T *sums) {
    int64_t c = 0;
#if KIND < 2
    for (; c + 4 <= count; c += 4) N(some_dots)(x, y + c * apart, apart, n, 4, sums + c);
    for (; c + 2 <= count; c += 2) N(some_dots)(x, y + c * apart, apart, n, 2, sums + c);
#endif
    for (; c < count; c++) sums[c] = N(dot)(x, y + c * apart, n, KIND > 1);
}
/* y -= x w of n numbers. */
static void N(subtract_multiples)(const T *x, T *y, int64_t apart, int64_t n, int64_t count, const T *w) {
    int64_t c = 0;
#if KIND < 2
    for (; c + 4 <= count; c += 4) N(some_multiples)(x, y + c * apart, apart, n, 4, w + c);
    for (; c + 2 <= count; c += 2) N(some_multiples)(x, y + c * apart, apart, n, 2, w + c);
#endif
    for (; c < count; c++)
        for (int64_t k = 0; k < n; k++) y[c * apart + k] -= x[k] * w[c];
}
/* The largest size of n numbers, or 0; NaN are passed over. */
static R N(largest_size)(const R *x, int64_t n) {
    R most = 0;
    int64_t k = 0;
    N(vec) all = {0};
    for (; k + N(LANES_OF) <= n; k += N(LANES_OF)) N(enlarge)(&all, *(const N(vec) *)(x + k));
    for (int l = 0; l < N(LANES_OF); l++) most = all[l] > most ? all[l] : most;
    for (; k < n; k++) most = FABS(x[k]) > most ? FABS(x[k]) : most;
    return most;
}
/* Σ (x by)² of n numbers. */
static ACC_R N(squares)(const R *x, int64_t n, R by) {
    enum { LANES_AT_ONCE = WIDE / sizeof(ACC_R), SUMS = 4 };
    typedef ACC_R Sums __attribute__((vector_size(WIDE)));
    typedef R Some __attribute__((vector_size(LANES_AT_ONCE * sizeof(R)), aligned(sizeof(R)), may_alias));
    Sums all[SUMS] = {0};
    ACC_R sum = 0;
    int64_t k = 0;
    for (; k + SUMS * LANES_AT_ONCE <= n; k += SUMS * LANES_AT_ONCE)
        for (int i = 0; i < SUMS; i++) {
            Sums v = __builtin_convertvector(*(const Some *)(x + k + i * LANES_AT_ONCE) * by, Sums);
            all[i] += v * v;
        }
    all[0] += all[1] + all[2] + all[3];
    for (int l = 0; l < LANES_AT_ONCE; l++) sum += all[0][l];
    for (; k < n; k++) sum += (ACC_R)(x[k] * by) * (x[k] * by);
    return sum;
}
/* As N(reflector) for a column of n numbers one after the other. */
static void N(reflector_of)(T *x, int64_t n, T *tau, T *turned) {
    R by, most = N(largest_size)((const R *)(x + 1), (n - 1) * N(PARTS));
    T scale;
    PLAIN(safely)(x, &most, &by);
    ACC_R sum = N(squares)((const R *)x, n * N(PARTS), by);
    PLAIN(reflect_to)(x, &most, &sum, &by, tau, turned, &scale);
    for (int64_t i = 1; i < n; i++) x[i] = x[i] * by * scale;
}
/* T from V and the factors, of which count are not 0. */
static void N(join_reflectors)(const N(Reflectors) * h, const T *taus) {
    for (int64_t j = 0; j < h->count; j++) {
        const T *x = h->v + j * h->m;
        T sums[REFLECTORS], *column = h->t + j;
        N(dots)(x + j, h->v + j, h->m, h->m - j, j, sums);
        for (int64_t i = 0; i < j; i++) sums[i] = CONJ(sums[i]);
        for (int64_t i = 0; i < j; i++) {
            T sum = 0;
            for (int64_t k = i; k < j; k++) sum += h->t[i * REFLECTORS + k] * sums[k];
            column[i * REFLECTORS] = -taus[j] * sum;
        }
        column[j * REFLECTORS] = taus[j];
    }
}
/* C (m × n) becomes (I - V op(T) Vᴴ) C, op(T) = Tᴴ if `turned`; its first columns, `ones` ≤ count of them, are those of
   I. */
static void N(apply_reflectors)(const N(Reflectors) * h, bool turned, T *c, int64_t ldc, int64_t n, int64_t ones) {
    if (n <= 0) return;
    int64_t count = h->count;
    memset(h->w, 0, sizeof(T) * (size_t)(count * n));
    N(View) v = {h->v, h->m, 1, KIND > 1}, rest = {c + ones, 1, ldc, false};
    N(Product) p = {h->w + ones, n, v, rest, count, n - ones, h->m};
    N(subtract)(&p, false, h->room); /* -Vᴴ C */
    for (int64_t i = 0; i < count; i++)
        for (int64_t e = 0; e < ones; e++) h->w[i * n + e] = -CONJ(h->v[i * h->m + e]);
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
    N(subtract)(&(N(Product)){c, ldc, {h->v, 1, h->m, false}, {h->w, 1, n, false}, h->m, n, count}, false, h->room);
}
/* V's ones and zeros. */
static void N(unit_lower)(const N(Reflectors) * h) {
    for (int64_t c = 0; c < h->count; c++)
        for (int64_t i = 0; i <= c; i++) h->v[c * h->m + i] = i == c;
}
/* As N(geqrf) for one matrix. */
static void N(qr_blocks)(T *a, int64_t m, int64_t n, T *taus, Room room) {
    int64_t k = jaxcc_rt_least(m, n);
    for (int64_t j0 = 0; j0 < k; j0 += REFLECTORS) {
        T *corner = a + j0 * (n + 1);
        const N(Reflectors) h = N(reflectors)(room, m - j0, n, jaxcc_rt_least(k - j0, REFLECTORS));
        N(to_columns)(h.v, corner, n, h.m, h.count);
        for (int64_t j = 0; j < h.count; j++) {
            T *x = h.v + j * (h.m + 1), turned, beta, w[REFLECTORS];
            int64_t rows = h.m - j, later = h.count - 1 - j;
            N(reflector_of)(x, rows, &taus[j0 + j], &turned);
            beta = *x, *x = 1;
            N(dots)(x, x + h.m, h.m, rows, later, w);
            for (int64_t c = 0; c < later; c++) w[c] *= turned;
            N(subtract_multiples)(x, x + h.m, h.m, rows, later, w);
            *x = beta;
        }
        N(from_columns)(corner, n, h.v, h.m, h.count);
        N(unit_lower)(&h);
        N(join_reflectors)(&h, taus + j0);
        N(apply_reflectors)(&h, true, corner + h.count, n, n - j0 - h.count, 0);
    }
}
/* As N(orgqr) for one matrix. */
static void N(q_blocks)(T *a, int64_t m, int64_t n, int64_t k, const T *taus, Room room) {
    for (int64_t i = 0; i < m; i++)
        for (int64_t c = k; c < n; c++) a[i * n + c] = i == c;
    for (int64_t j0 = (k - 1) / REFLECTORS * REFLECTORS; k > 0 && j0 >= 0; j0 -= REFLECTORS) {
        T *corner = a + j0 * (n + 1);
        const N(Reflectors) h = N(reflectors)(room, m - j0, n, jaxcc_rt_least(k - j0, REFLECTORS));
        N(to_columns)(h.v, corner, n, h.m, h.count);
        N(unit_lower)(&h);
        if (h.count == n)
            memset(corner, 0, sizeof(T) * (size_t)(h.m * n));
        else
            for (int64_t i = 0; i < h.m; i++) memset(corner + i * n, 0, sizeof(T) * (size_t)h.count);
        for (int64_t i = 0; i < h.count; i++) corner[i * (n + 1)] = 1;
        for (int64_t i = 0; i < j0; i++)
            for (int64_t c = 0; c < h.count; c++) a[i * n + j0 + c] = 0;
        N(join_reflectors)(&h, taus + j0);
        N(apply_reflectors)(&h, false, corner, n, n - j0, h.count);
    }
}
#pragma GCC pop_options
#undef WIDE
