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
/* How many of n elements, a multiple of CHUNK, come after the one that this key is of: all before the first CHUNK with
   one that may not. Floats are compared as numbers: NaN and what is equal may not. */
ALWAYS int64_t N(after_of)(const U *x, int64_t n, KEY key, int64_t order, bool flip) {
    typedef U Ints __attribute__((vector_size(VECTOR)));
    typedef SIGNED Signed __attribute__((vector_size(VECTOR)));
    typedef FLOAT Floats __attribute__((vector_size(VECTOR)));
    typedef uint64_t Words __attribute__((vector_size(VECTOR)));
    U last, bias = order == ORDER_UNSIGNED ? SIGN : 0;
    uint64_t any = 0;
    key ^= flip ? ONES : 0;
    N(values)(&last, &key, 1, order);
    Ints end = (Ints){0} + last;
    Signed b = (Signed)(end ^ bias);
    int64_t i = 0;
    for (; i + CHUNK <= n; i += CHUNK) {
        Ints found = {0}, v;
        for (int64_t k = 0; k < CHUNK; k += VECTOR / (int64_t)sizeof(U)) {
            memcpy(&v, x + i + k, sizeof v);
            Signed a = (Signed)(v ^ bias);
            Floats f = (Floats)v, g = (Floats)end;
            if (order > ORDER_SIGNED)
                found |= ~(flip ? (Ints)(f < g) : (Ints)(f > g));
            else
                found |= ~(flip ? (Ints)(a < b) : (Ints)(a > b));
        }
        for (size_t k = 0; k < VECTOR / sizeof any; k++) any |= ((Words)found)[k];
        if (any) break;
    }
    return i;
}
static int64_t N(after)(const void *x, int64_t n, uint64_t key, int64_t order, bool flip) {
    switch (order * 2 + flip) {
    case ORDER_UNSIGNED * 2: return N(after_of)(x, n, (KEY)key, ORDER_UNSIGNED, false);
    case ORDER_UNSIGNED * 2 + 1: return N(after_of)(x, n, (KEY)key, ORDER_UNSIGNED, true);
    case ORDER_SIGNED * 2: return N(after_of)(x, n, (KEY)key, ORDER_SIGNED, false);
    case ORDER_SIGNED * 2 + 1: return N(after_of)(x, n, (KEY)key, ORDER_SIGNED, true);
    default:
        return flip ? N(after_of)(x, n, (KEY)key, ORDER_TOTAL, true) : N(after_of)(x, n, (KEY)key, ORDER_TOTAL, false);
    }
}
#undef FLOAT
#undef SIGNED
#endif
#undef SIGN
#undef ONES
#undef U
#undef KEY
#undef N
