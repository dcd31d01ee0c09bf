/* Included by sort.c: many short rows at once, a row in each lane of a vector, by Batcher's merge exchange (Knuth, The
   Art of Computer Programming 3, 5.2.2, algorithm M), whose comparisons do not depend on the data. T: a signed integer,
   N(f): the name of a function for it. */
typedef T N(vector) __attribute__((vector_size(VECTOR), may_alias));
enum { N(lanes) = 64 / sizeof(T), N(parts) = 64 / VECTOR };

/* a: n vectors of 64 bytes. */
static void N(network)(T *a, int64_t n) {
    N(vector)(*v)[N(parts)] = (void *)a;
    int64_t top = 1;
    while (2 * top < n) top *= 2;
    for (int64_t p = top; p; p /= 2)
        for (int64_t q = top, r = 0, d = p;; d = q - p, q /= 2, r = p) {
            for (int64_t group = r; group + d < n; group += 2 * p)
                for (int64_t i = group; i < group + p && i + d < n; i++)
                    for (int part = 0; part < N(parts); part++) {
                        N(vector) x = v[i][part], y = v[i + d][part], less = x < y;
                        v[i][part] = (x & less) | (y & ~less);
                        v[i + d][part] = (y & less) | (x & ~less);
                    }
            if (q == p) break;
        }
}

/* Sorts each of `rows` rows of n ≤ SHORT elements, as unsigned numbers; false if there are too few to be worth it. */
static bool N(by_lanes)(void *rows_of, int64_t rows, int64_t n) {
    if (rows < N(lanes) / 4) return false;
    _Alignas(64) T lane[SHORT][N(lanes)];
    T *a = rows_of, sign = (T)((uint64_t)1 << (8 * sizeof(T) - 1));
    for (int64_t first = 0; first < rows; first += N(lanes)) {
        int64_t count = rows - first < N(lanes) ? rows - first : N(lanes);
        T *row = a + first * n;
        for (int64_t l = 0; l < N(lanes); l++)
            for (int64_t i = 0; i < n; i++) lane[i][l] = row[(l < count ? l : 0) * n + i] ^ sign;
        N(network)(lane[0], n);
        for (int64_t l = 0; l < count; l++)
            for (int64_t i = 0; i < n; i++) row[l * n + i] = lane[i][l] ^ sign;
    }
    return true;
}
#undef T
#undef N
