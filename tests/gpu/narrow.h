/* f16 and bf16 as bits, and f32. */
#ifndef PTX_NARROW_H
#define PTX_NARROW_H
#include "lanes.h"

#define PACKED_NAN 0x7fff
static inline f32 f32_of_bits(u32 b) {
    f32 f;
    memcpy(&f, &b, 4);
    return f;
}
static inline u32 bits_of_f32(f32 f) {
    u32 b;
    memcpy(&b, &f, 4);
    return b;
}
/* The NaN that operations give. */
static inline f32 quiet_f32(f32 x) { return x != x ? f32_of_bits(0x7fffffff) : x; }
static inline f32 from_bf16(u16 b) { return f32_of_bits((u32)b << 16); }
static inline u16 to_bf16(f32 f) {
    u32 b = bits_of_f32(f);
    return f != f ? PACKED_NAN : (u16)((b + 0x7fff + (b >> 16 & 1)) >> 16);
}
static inline f32 from_f16(u16 b) {
    _Float16 h;
    memcpy(&h, &b, 2);
    return (f32)h;
}
static inline u16 to_f16(f32 f) {
    _Float16 h = (_Float16)f;
    u16 b;
    memcpy(&b, &h, 2);
    return f != f ? PACKED_NAN : b;
}

/* Rounding to odd: an inexact result gets an odd last bit, so that rounding it again to fewer bits is right. */
static inline f64 odd_sum(f64 a, f64 b) {
    f64 s = a + b, t = s - a, error = (a - (s - t)) + (b - t);
    u64 bits;
    memcpy(&bits, &s, 8);
    if (error == 0 || error != error || bits & 1) return s;
    bits += (error > 0) == (s > 0) ? 1 : (u64)-1;
    memcpy(&s, &bits, 8);
    return s;
}
static inline f32 odd_f32(f64 d) {
    f32 f = (f32)d;
    u32 bits = bits_of_f32(f);
    if (f == d || d != d || bits & 1) return f;
    if ((bits & 0x7fffffff) == 0x7f800000) return f32_of_bits(bits - 1); /* the largest number is odd */
    bool further = d > 0 ? (f64)f < d : (f64)f > d;
    return f32_of_bits(bits + (further ? 1 : (u32)-1));
}
static inline f32 narrow_fma(f32 x, f32 y, f32 z) { return odd_f32(odd_sum((f64)x * y, z)); }

#endif
