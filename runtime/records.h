/* Included by sort.c for each type of record: R, an unsigned integer that is compared as a whole, with its key from bit
   LOW up and the rest below. F(f): the name of a function for this type. */

/* ---- one row by merging: runs of 8 by insertion, then merged */
static void F(insert)(R *a, int64_t n) {
    for (int64_t i = 1; i < n; i++) {
        R x = a[i];
        int64_t j = i;
        for (; j > 0 && x < a[j - 1]; j--) a[j] = a[j - 1];
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
static R *F(by_merging)(R *a, R *b, int64_t n) {
    for (int64_t i = 0; i < n; i += 8) F(insert)(a + i, n - i < 8 ? n - i : 8);
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

/* ---- one row by radix sort: digits of the key, the least significant first, stable, using only bits in which keys
   differ. A row is cut into blocks for the threads; the counts of all blocks give the places of a digit's records. */
static void F(difference)(void *ctx, int64_t lo, int64_t hi) {
    Digits *d = ctx;
    const R *a = d->from;
    for (int64_t k = lo; k < hi; k++) {
        R differs = 0;
        for (int64_t i = block_at(d, k); i < block_at(d, k + 1); i++) differs |= a[i] ^ a[0];
        d->differs[k] = (uint64_t)(differs >> LOW);
    }
}
static void F(count)(void *ctx, int64_t lo, int64_t hi) {
    Digits *d = ctx;
    const R *a = d->from;
    int shift = d->shift + LOW;
    for (int64_t k = lo; k < hi; k++) {
        uint32_t *count = d->count[k];
        memset(count, 0, (d->mask + 1) * sizeof *count);
        for (int64_t i = block_at(d, k); i < block_at(d, k + 1); i++) count[(uint32_t)(a[i] >> shift) & d->mask]++;
    }
}
/* Tables of counts of so many digits, from the one at `shift` on, of a row that is one block. */
ALWAYS void F(count_some)(const Digits *d, uint32_t (*count)[1 << DIGIT], int shift, int width, int digits) {
    const R *a = d->from;
    uint32_t mask = d->mask;
    for (int p = 0; p < digits; p++) memset(count[p], 0, (mask + 1) * sizeof **count);
    for (int64_t i = 0, n = d->n; i < n; i++)
        for (int p = 0; p < digits; p++) count[p][(uint32_t)(a[i] >> (LOW + shift + p * width)) & mask]++;
}
static void F(count_all)(const Digits *d, int width, int digits) {
    for (int p = 0; p < digits; p += 3) {
        uint32_t (*count)[1 << DIGIT] = d->count + p;
        int shift = d->shift + p * width;
        switch (digits - p) {
        case 1: F(count_some)(d, count, shift, width, 1); break;
        case 2: F(count_some)(d, count, shift, width, 2); break;
        default: F(count_some)(d, count, shift, width, 3);
        }
    }
}
/* `far`: the line of memory after that which a record is moved to is fetched, since the 2^DIGIT places of a large array
   are too many for the hardware to foresee. 1.5 million keys in 9.2 ms, not 18; smaller arrays stay in the caches. */
ALWAYS void F(move_block)(const Digits *d, int64_t k, bool far) {
    const R *a = d->from;
    R *b = d->to;
    uint32_t *place = d->count[k], mask = d->mask;
    int shift = d->shift + LOW;
    for (int64_t i = block_at(d, k), end = block_at(d, k + 1); i < end; i++) {
        R x = a[i], *at = b + place[(uint32_t)(x >> shift) & mask]++;
        if (far) __builtin_prefetch((void *)((uintptr_t)at + LINE), 1); /* beyond the array at its end */
        *at = x;
    }
}
static void F(move)(void *ctx, int64_t lo, int64_t hi) {
    const Digits *d = ctx;
    for (int64_t k = lo; k < hi; k++) {
        if (d->n * (int64_t)sizeof(R) >= FAR)
            F(move_block)(d, k, true);
        else
            F(move_block)(d, k, false);
    }
}
static R *F(by_counts)(Digits *d) {
    jaxcc_rt_parallel_for(F(difference), d, d->blocks, 1);
    uint64_t differs = 0;
    for (int64_t k = 0; k < d->blocks; k++) differs |= d->differs[k];
    if (!differs) return d->from;
    int low = __builtin_ctzll(differs), bits = 64 - __builtin_clzll(differs) - low, most = d->n < 4096 ? 8 : DIGIT;
    int digits = (bits + most - 1) / most, width = (bits + digits - 1) / digits;
    d->mask = (1u << width) - 1, d->shift = low;
    if (d->at_once) F(count_all)(d, width, digits);
    for (int p = 0; p < digits; p++, d->shift += width) {
        if (d->at_once && p) d->count++;
        if (!d->at_once) jaxcc_rt_parallel_for(F(count), d, d->blocks, 1);
        places(d);
        jaxcc_rt_parallel_for(F(move), d, d->blocks, 1);
        void *t = d->from;
        d->from = d->to, d->to = t;
    }
    return d->from;
}
/* Without memory for more tables of counts the row is one block, whose digits are counted one after the other. */
static R *F(by_digits)(R *a, R *b, int64_t n, int64_t blocks) {
    uint32_t one[1][1 << DIGIT];
    void *many = jaxcc_rt_workspace_get((blocks > 1 ? blocks : MOST_DIGITS) * (int64_t)sizeof *one);
    Digits d = {.from = a, .to = b, .n = n, .blocks = many ? blocks : 1, .count = many ? many : one};
    d.at_once = many && blocks == 1;
    R *sorted = F(by_counts)(&d);
    if (many) jaxcc_rt_workspace_put(many);
    return sorted;
}

/* Sorts each of `rows` rows of n records in a; returns a or b, where the result is. More than SHORT records: one
   row. */
static R *F(sort)(R *a, R *b, int64_t rows, int64_t n, int64_t blocks) {
    if (n > SHORT) return F(by_digits)(a, b, n, blocks);
    if (LANES(a, rows, n)) return a;
    R *sorted = a;
    for (int64_t i = 0; i < rows; i++) sorted = F(by_merging)(a + i * n, b + i * n, n);
    return sorted - (rows - 1) * n;
}

#undef R
#undef F
#undef LOW
#undef LANES
