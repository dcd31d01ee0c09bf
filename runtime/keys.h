/* Included by sort.c for each width of elements: U is the unsigned type of that width, KEY one wide enough for their
   keys, N(f) the name of a function for them; FLOAT, SIGNED: the other types of that width, if there is `after`. */

#define SIGN ((U)((U)1 << (8 * sizeof(U) - 1)))
#define ONES ((U) ~(U)0)

/* `lost` becomes nonzero for elements that cannot be recovered from their keys: negative zeros and NaNs. */
ALWAYS KEY N(key)(U x, U order, U *lost) {
    U key = x & SIGN ? (U)~x : (U)(x | SIGN), magnitude = x & (U)~SIGN;
    if (order == ORDER_UNSIGNED) return x;
    if (order == ORDER_SIGNED) return x ^ SIGN;
    if (order == ORDER_TOTAL) return key;
    U nan = magnitude > order ? ONES : 0, zero = x == SIGN ? ONES : 0;
    *lost |= nan | zero;
    return (U)((key | nan) + (zero & 1));
}
ALWAYS bool N(keys_of)(KEY *to, const U *x, int64_t n, U order, U flip) {
    U lost = 0;
    for (int64_t i = 0; i < n; i++) to[i] = N(key)(x[i], order, &lost) ^ flip;
    return lost != 0;
}
static bool N(keys)(void *to, const void *x, int64_t n, int64_t order, bool flip) {
    U f = flip ? ONES : 0;
    switch (order) {
    case ORDER_UNSIGNED: return N(keys_of)(to, x, n, ORDER_UNSIGNED, f);
    case ORDER_SIGNED: return N(keys_of)(to, x, n, ORDER_SIGNED, f);
    case ORDER_TOTAL: return N(keys_of)(to, x, n, ORDER_TOTAL, f);
    default: return N(keys_of)(to, x, n, (U)order, f);
    }
}
/* The elements of keys, `step` keys apart. */
static void N(values)(void *to, const void *from, int64_t n, int64_t order) {
    const KEY *key = from;
    U *y = to, positive = order == ORDER_UNSIGNED ? 0 : SIGN, negative = order > ORDER_SIGNED ? ONES : positive;
    for (int64_t i = 0; i < n; i++) y[i] = (U)key[i] ^ ((U)key[i] & SIGN ? positive : negative);
}
/* y has the n elements of x, sorted; rewrites its zeros and NaNs in their order in x. */
static void N(restore)(void *to, const void *of, int64_t n, int64_t order) {
    const U *x = of;
    U *y = to;
    int64_t zero = 0, nan = n;
    for (int64_t i = 0; i < n; i++) {
        U magnitude = x[i] & (U)~SIGN;
        zero += x[i] & SIGN && magnitude && magnitude <= (U)order;
        nan -= magnitude > (U)order;
    }
    for (int64_t i = 0; i < n; i++) {
        U magnitude = x[i] & (U)~SIGN;
        if (magnitude == 0) y[zero++] = x[i];
        if (magnitude > (U)order) y[nan++] = x[i];
    }
}
#ifdef FLOAT
typedef U N(Ints) __attribute__((vector_size(VECTOR)));
typedef SIGNED N(Signed) __attribute__((vector_size(VECTOR)));
typedef FLOAT N(Floats) __attribute__((vector_size(VECTOR)));
enum { N(LANES) = FIRSTS * VECTOR / sizeof(U) };
/* In which lanes v comes before w (ones). Floats are compared as numbers: NaN and what is equal does not. */
ALWAYS N(Ints) N(before)(N(Ints) v, N(Ints) w, int64_t order, bool flip) {
    U bias = order == ORDER_UNSIGNED ? SIGN : 0;
    N(Signed) a = (N(Signed))(v ^ bias), b = (N(Signed))(w ^ bias);
    N(Floats) f = (N(Floats))v, g = (N(Floats))w;
    if (order > ORDER_SIGNED) return flip ? (N(Ints))(f > g) : (N(Ints))(f < g);
    return flip ? (N(Ints))(a > b) : (N(Ints))(a < b);
}
ALWAYS bool N(any)(N(Ints) v) {
    typedef long long Words __attribute__((vector_size(VECTOR)));
#if defined __AVX__ && VECTOR == 32
    return !__builtin_ia32_ptestz256((Words)v, (Words)v);
#else
    long long all = 0;
    for (size_t i = 0; i < VECTOR / sizeof all; i++) all |= ((Words)v)[i];
    return all != 0;
#endif
}
/* How many of n elements, a multiple of CHUNK, come after the one that this key is of, or unless `equals` are the same:
   all before the first CHUNK with one that may not. */
ALWAYS int64_t N(after_of)(const U *x, int64_t n, KEY key, bool equals, int64_t order, bool flip) {
    U last;
    key ^= flip ? ONES : 0;
    N(values)(&last, &key, 1, order);
    N(Ints) end = (N(Ints)){0} + last, same = (N(Ints)){0} + (equals ? 0 : ONES);
    int64_t i = 0;
    for (; i + CHUNK <= n; i += CHUNK) {
        N(Ints) found = {0}, v;
        for (int64_t k = 0; k < CHUNK; k += VECTOR / (int64_t)sizeof(U)) {
            memcpy(&v, x + i + k, sizeof v);
            found |= ~(N(before)(end, v, order, flip) | ((N(Ints))(v == end) & same));
        }
        if (N(any)(found)) break;
    }
    return i;
}
static int64_t N(after)(const void *x, int64_t n, uint64_t key, bool equals, int64_t order, bool flip) {
    return BY_ORDER(N(after_of), x, n, (KEY)key, equals);
}
/* Of each lane of LANES elements, `step` apart, mostly the first one in order. */
ALWAYS void N(firsts_of)(N(Ints) * first, const U *x, int64_t n, int64_t step, int64_t order, bool flip) {
    memcpy(first, x, FIRSTS * sizeof *first);
    for (int64_t i = step; i + N(LANES) <= n; i += step)
        for (int64_t j = 0; j < FIRSTS; j++) {
            const U *from = x + i + j * (N(LANES) / FIRSTS);
            __builtin_prefetch((const void *)((uintptr_t)from + AHEAD)); /* beyond the array at its end */
            N(Ints) v, take;
            memcpy(&v, from, sizeof v);
            take = N(before)(v, first[j], order, flip);
            first[j] = (v & take) | (first[j] & ~take);
        }
}
/* A key that at least k of the n elements have or come before: the k-th of those first ones, which are looked for in an
   eighth of a long row. All ones: that is not worth the search. */
static uint64_t N(bound)(const void *x, int64_t n, int64_t k, int64_t order, bool flip) {
    N(Ints) first[FIRSTS];
    KEY key[N(LANES)], bound = ONES;
    const bool is_long = n >= FIRST_SHARE * FIRST_ROWS * N(LANES);
    if (2 * k > N(LANES) || n < FIRST_ROWS * N(LANES) || (k < FIRST_FEW && !is_long)) return bound;
    BY_ORDER(N(firsts_of), first, x, n, (is_long ? FIRST_SHARE : 1) * N(LANES));
    N(keys)(key, first, N(LANES), order, flip);
    for (int64_t i = 0; i < N(LANES); i++) {
        KEY rank = 0;
        for (int64_t j = 0; j < N(LANES); j++) rank += key[j] <= key[i];
        if (rank >= (KEY)k && key[i] < bound) bound = key[i];
    }
    return bound;
}
#undef FLOAT
#undef SIGNED
#endif
#undef SIGN
#undef ONES
#undef U
#undef KEY
#undef N
