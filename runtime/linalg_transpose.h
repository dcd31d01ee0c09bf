/* Transposes of matrices, for linalg_blocks.h, which includes this for each element type and kind of CPU. */
#if KIND < 2
/* to[c·ldto + i] = from[i·ld + c] for four of each. */
static inline void N(transpose_four)(R *to, int64_t ldto, const R *from, int64_t ld) {
    typedef R Four __attribute__((vector_size(4 * sizeof(R)), aligned(sizeof(R)), may_alias));
    Four a = *(const Four *)from, b = *(const Four *)(from + ld), c = *(const Four *)(from + 2 * ld);
    Four d = *(const Four *)(from + 3 * ld);
#if KIND == 0 /* pairs of halves of 128 bits, or of f64 within each half */
    Four p = __builtin_shufflevector(a, b, 0, 4, 1, 5), q = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    Four r = __builtin_shufflevector(c, d, 0, 4, 1, 5), s = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    *(Four *)(to + ldto) = __builtin_shufflevector(p, r, 2, 3, 6, 7);
    *(Four *)(to + 2 * ldto) = __builtin_shufflevector(q, s, 0, 1, 4, 5);
#else
    Four p = __builtin_shufflevector(a, b, 0, 4, 2, 6), q = __builtin_shufflevector(a, b, 1, 5, 3, 7);
    Four r = __builtin_shufflevector(c, d, 0, 4, 2, 6), s = __builtin_shufflevector(c, d, 1, 5, 3, 7);
    *(Four *)(to + ldto) = __builtin_shufflevector(q, s, 0, 1, 4, 5);
    *(Four *)(to + 2 * ldto) = __builtin_shufflevector(p, r, 2, 3, 6, 7);
#endif
    *(Four *)to = __builtin_shufflevector(p, r, 0, 1, 4, 5);
    *(Four *)(to + 3 * ldto) = __builtin_shufflevector(q, s, 2, 3, 6, 7);
}
#if KIND == 0 && WIDE >= 32
/* The same for eight of each: columns of four rows are beside those of the next four. */
static inline void N(transpose_eight)(R *to, int64_t ldto, const R *from, int64_t ld) {
    typedef R Four __attribute__((vector_size(4 * sizeof(R)), aligned(sizeof(R)), may_alias));
    typedef R Eight __attribute__((vector_size(8 * sizeof(R)), aligned(sizeof(R)), may_alias));
    for (int half = 0; half < 2; half++, from += 4, to += 4 * ldto) {
        Eight x[4];
        for (int i = 0; i < 4; i++)
            x[i] = __builtin_shufflevector(*(const Four *)(from + i * ld), *(const Four *)(from + (i + 4) * ld), 0, 1,
                                           2, 3, 4, 5, 6, 7);
        Eight p = __builtin_shufflevector(x[0], x[1], 0, 8, 1, 9, 4, 12, 5, 13);
        Eight q = __builtin_shufflevector(x[0], x[1], 2, 10, 3, 11, 6, 14, 7, 15);
        Eight r = __builtin_shufflevector(x[2], x[3], 0, 8, 1, 9, 4, 12, 5, 13);
        Eight s = __builtin_shufflevector(x[2], x[3], 2, 10, 3, 11, 6, 14, 7, 15);
        *(Eight *)to = __builtin_shufflevector(p, r, 0, 1, 8, 9, 4, 5, 12, 13);
        *(Eight *)(to + ldto) = __builtin_shufflevector(p, r, 2, 3, 10, 11, 6, 7, 14, 15);
        *(Eight *)(to + 2 * ldto) = __builtin_shufflevector(q, s, 0, 1, 8, 9, 4, 5, 12, 13);
        *(Eight *)(to + 3 * ldto) = __builtin_shufflevector(q, s, 2, 3, 10, 11, 6, 7, 14, 15);
    }
}
#endif
#endif
/* to[c·ldto + i] = from[i·ld + c] for i < m, c < n; the last squares begin where they are whole. */
static void N(transpose)(T *to, int64_t ldto, const T *from, int64_t ld, int64_t m, int64_t n) {
#if KIND < 2
    const int64_t side = KIND == 0 && WIDE >= 32 && m >= 8 && n >= 8 ? 8 : 4;
    for (int64_t i = 0; m >= side && n >= side && i < m; i += side)
        for (int64_t c = 0, row = jaxcc_rt_least(i, m - side); c < n; c += side) {
            int64_t column = jaxcc_rt_least(c, n - side);
#if KIND == 0 && WIDE >= 32
            if (side == 8) {
                N(transpose_eight)(to + column * ldto + row, ldto, from + row * ld + column, ld);
                continue;
            }
#endif
            N(transpose_four)(to + column * ldto + row, ldto, from + row * ld + column, ld);
        }
    if (m >= side && n >= side) return;
#endif
    for (int64_t i = 0; i < m; i++)
        for (int64_t c = 0; c < n; c++) to[c * ldto + i] = from[i * ld + c];
}
