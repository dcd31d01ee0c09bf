/* Included by sort.c for each type of record: R, an unsigned integer that is compared as a whole; its key lies at bit LOW
   and above, below lies the position it comes from. F(f): the name of a function for this type. */

static void F(insert)(R *a, int64_t n) {
    for (int64_t i = 1; i < n; i++) {
        R x = a[i];
        int64_t j = i;
        for (; j > 0 && x < a[j - 1]; j--)
            a[j] = a[j - 1];
        a[j] = x;
    }
}
static void F(merge)(const R *a, int64_t middle, int64_t n, R *to) {
    int64_t i = 0, j = middle;
    while (i < middle && j < n) {
        R x = a[i], y = a[j];
        bool right = y < x;
        *to++ = right ? y : x;
        i += !right, j += right;
    }
    memcpy(to, a + i, (size_t)(middle - i) * sizeof *a);
    memcpy(to + (middle - i), a + j, (size_t)(n - j) * sizeof *a);
}
/* Runs of 8 by insertion, then merged. */
static R *F(sort_short)(R *a, R *b, int64_t n) {
    for (int64_t i = 0; i < n; i += 8)
        F(insert)(a + i, n - i < 8 ? n - i : 8);
    for (int64_t width = 8; width < n; width *= 2) {
        for (int64_t i = 0; i < n; i += 2 * width) {
            int64_t left = n - i;
            F(merge)(a + i, width < left ? width : left, 2 * width < left ? 2 * width : left, b + i);
        }
        R *t = a;
        a = b, b = t;
    }
    return a;
}
/* By digits, the least significant first. Only the bits in which keys differ count: few values need few passes. */
static R *F(sort_digits)(R *a, R *b, int64_t n) {
    R differs = 0;
    for (int64_t i = 1; i < n; i++)
        differs |= a[i] ^ a[0];
    uint64_t keys = (uint64_t)(differs >> LOW);
    if (!keys) return a;
    int low = __builtin_ctzll(keys), bits = 64 - __builtin_clzll(keys) - low;
    int most = n < 4096 ? 8 : DIGIT, digits = (bits + most - 1) / most, width = (bits + digits - 1) / digits;
    uint64_t mask = ((uint64_t)1 << width) - 1;
    uint32_t count[8][1 << DIGIT];
    for (int d = 0; d < digits; d++)
        memset(count[d], 0, (mask + 1) * sizeof count[d][0]);
    for (int64_t i = 0; i < n; i++) {
        uint64_t k = (uint64_t)(a[i] >> LOW) >> low;
        for (int d = 0; d < digits; d++, k >>= width)
            count[d][k & mask]++;
    }
    for (int d = 0; d < digits; d++) {
        uint32_t *c = count[d], sum = 0;
        int shift = low + d * width;
        bool constant = false;
        for (uint64_t i = 0; i <= mask; i++) {
            uint32_t here = c[i];
            constant |= here == n;
            c[i] = sum;
            sum += here;
        }
        if (constant) continue;
        for (int64_t i = 0; i < n; i++)
            b[c[(uint64_t)(a[i] >> LOW) >> shift & mask]++] = a[i];
        R *t = a;
        a = b, b = t;
    }
    return a;
}
/* The n records of a, sorted: in a or in b. */
static R *F(sort)(R *a, R *b, int64_t n) { return n <= SHORT ? F(sort_short)(a, b, n) : F(sort_digits)(a, b, n); }

#undef R
#undef F
#undef LOW
