/* How an operation is written: a function over all lanes, which the compiler turns into vector code. Lanes that are
   not in the mask compute too, and what they compute is dropped: an expression must be defined for all operands. */
#ifndef PTX_LANES_H
#define PTX_LANES_H
#include "machine.h"
#include <string.h>

typedef uint8_t u8;
typedef int8_t s8;
typedef uint16_t u16;
typedef int16_t s16;
typedef uint32_t u32;
typedef int32_t s32;
typedef uint64_t u64;
typedef int64_t s64;
typedef float f32;
typedef double f64;
typedef __int128 s128;
typedef unsigned __int128 u128;

/* Names made of types, after the types of the letters of a row. */
#define PTX_h u16
#define PTX_w u32
#define PTX_x u64

#define SLOT(T, k) ((T *)(w->frame + i->o[k]))
#define EACH_LANE _Pragma("GCC ivdep") for (u32 l = 0; l < LANES; l++)

/* Lanes of the mask from r to d. */
static inline void keep_16(u16 *d, const u16 *r, u32 mask) { EACH_LANE d[l] = mask >> l & 1 ? r[l] : d[l]; }
static inline void keep_32(u32 *d, const u32 *r, u32 mask) { EACH_LANE d[l] = mask >> l & 1 ? r[l] : d[l]; }
static inline void keep_64(u64 *d, const u64 *r, u32 mask) { EACH_LANE d[l] = mask >> l & 1 ? r[l] : d[l]; }
static inline __attribute__((always_inline)) void keep(void *d, const void *r, u32 mask, size_t width) {
    if (width == 2)
        keep_16(d, r, mask);
    else if (width == 4)
        keep_32(d, r, mask);
    else
        keep_64(d, r, mask);
}
static inline void keep_predicate(u32 *d, u32 r, u32 mask) { *d = (*d & ~mask) | (r & mask); }

/* The lanes' result of type D is `...`, of x, y, z, which are lanes of the operands after the destination. */
#define LANES_OF(D, ...)                                                                                               \
    D other[LANES], *d = SLOT(D, 0), *to = mask == ALL_LANES ? d : other;                                              \
    EACH_LANE { __VA_ARGS__; }                                                                                         \
    if (to == other) keep(d, other, mask, sizeof(D));
#define UNARY(name, D, A, ...)                                                                                         \
    static void name(Warp *w, const Ins *i, u32 mask) {                                                                \
        const A *a = SLOT(A, 1);                                                                                       \
        LANES_OF(D, A x = a[l]; to[l] = (D)(__VA_ARGS__))                                                              \
    }
#define BINARY(name, D, A, B, ...)                                                                                     \
    static void name(Warp *w, const Ins *i, u32 mask) {                                                                \
        const A *a = SLOT(A, 1);                                                                                       \
        const B *b = SLOT(B, 2);                                                                                       \
        LANES_OF(D, A x = a[l]; B y = b[l]; to[l] = (D)(__VA_ARGS__))                                                  \
    }
#define TERNARY(name, D, A, B, C, ...)                                                                                 \
    static void name(Warp *w, const Ins *i, u32 mask) {                                                                \
        const A *a = SLOT(A, 1);                                                                                       \
        const B *b = SLOT(B, 2);                                                                                       \
        const C *c = SLOT(C, 3);                                                                                       \
        LANES_OF(D, A x = a[l]; B y = b[l]; C z = c[l]; to[l] = (D)(__VA_ARGS__))                                      \
    }
/* A word of bits from 32 truths. */
static inline u32 pack_bits(const u8 *t) {
    u32 r = 0;
    for (u32 k = 0; k < LANES / 8; k++) {
        u64 eight;
        memcpy(&eight, t + 8 * k, 8);
        r |= (u32)(eight * 0x0102040810204080u >> 56) << 8 * k;
    }
    return r;
}
#endif
