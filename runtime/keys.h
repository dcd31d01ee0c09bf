/* Included by sort.c for each width of elements: U is the unsigned type of that width, KEY one wide enough for their
   keys, N(f) the name of a function for them. */

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
#undef SIGN
#undef ONES
#undef U
#undef KEY
#undef N
