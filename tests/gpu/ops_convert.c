/* Conversions. Those of registers as wide as the types have rows; any other goes through run_convert, lane by lane. */
#include "narrow.h"
#include "convert.h"
#include "ops.h"
#include "runtime/float.h"
#include <fenv.h>
#include <math.h>

/* Integers: the value kept modulo the width. */
#define INT_TO(T, F) UNARY(T##_##F, T, F, x)
#define INTS_TO(T, A, B, C, D) INT_TO(T, A) INT_TO(T, B) INT_TO(T, C) INT_TO(T, D)
INTS_TO(u16, u32, s32, u64, s64)
INTS_TO(s16, u32, s32, u64, s64)
INTS_TO(u32, u16, s16, u64, s64)
INTS_TO(s32, u16, s16, u64, s64)
INTS_TO(u64, u16, s16, u32, s32)
INTS_TO(s64, u16, s16, u32, s32)

/* Integers to floats, to nearest. */
#define FLOAT_FROM(T) INTS_TO(T, u16, s16, u32, s32) INT_TO(T, u64) INT_TO(T, s64)
FLOAT_FROM(f32)
FLOAT_FROM(f64)

/* Between floats. */
static inline u16 f16_of_f64(f64 x) { return to_f16(odd_f32(x)); }
static inline u16 bf16_of_f64(f64 x) { return to_bf16(odd_f32(x)); }
UNARY(f64_f32, f64, f32, x)
UNARY(f32_f64, f32, f64, quiet_f32((f32)x))
UNARY(f32_f16, f32, u16, quiet_f32(from_f16(x)))
UNARY(f64_f16, f64, u16, from_f16(x))
UNARY(f32_bf16, f32, u16, quiet_f32(from_bf16(x)))
UNARY(f64_bf16, f64, u16, from_bf16(x))
UNARY(f16_f32, u16, f32, to_f16(x))
UNARY(bf16_f32, u16, f32, to_bf16(x))
UNARY(f16_f64, u16, f64, f16_of_f64(x))
UNARY(bf16_f64, u16, f64, bf16_of_f64(x))
UNARY(f32_rni, f32, f32, rintf(x))
UNARY(f32_rzi, f32, f32, truncf(x))
UNARY(f32_rmi, f32, f32, floorf(x))
UNARY(f32_rpi, f32, f32, ceilf(x))
UNARY(f64_rni, f64, f64, rint(x))
UNARY(f64_rzi, f64, f64, trunc(x))
UNARY(f64_rmi, f64, f64, floor(x))
UNARY(f64_rpi, f64, f64, ceil(x))

/* Pairs: the first operand is the upper half. */
static inline u32 pair(u16 upper, u16 lower) { return (u32)upper << 16 | lower; }
static inline f32 relu(f32 x) { return x > 0 || x != x ? x : 0; }
BINARY(f16x2_f32, u32, f32, f32, pair(to_f16(x), to_f16(y)))
BINARY(bf16x2_f32, u32, f32, f32, pair(to_bf16(x), to_bf16(y)))
BINARY(f16x2_relu, u32, f32, f32, pair(to_f16(relu(x)), to_f16(relu(y))))
BINARY(bf16x2_relu, u32, f32, f32, pair(to_bf16(relu(x)), to_bf16(relu(y))))
static const FloatFormat e4m3 = {4, 3, 7, FLOAT_FN}, e5m2 = {5, 2, 15, FLOAT_IEEE};
static u16 finite_8(const FloatFormat *f, f64 x) {
    u32 b = float_encode(f, x), most = float_most(f);
    if (x != x) return 0x7f;
    return (u16)((b & 0x7f) > most ? (b & 0x80) | most : b);
}
#define DEFINE_8(T)                                                                                                    \
    BINARY(T##x2_f32, u16, f32, f32, finite_8(&T, x) << 8 | finite_8(&T, y))                                           \
    UNARY(T##x2_f16x2, u16, u32, finite_8(&T, from_f16((u16)(x >> 16))) << 8 | finite_8(&T, from_f16((u16)x)))         \
    UNARY(f16x2_##T##x2, u32, u16, pair(to_f16((f32)float_decode(&T, x >> 8)), to_f16((f32)float_decode(&T, x & 255))))
DEFINE_8(e4m3)
DEFINE_8(e5m2)
/* tf32: ten bits after the point, ties away from zero or to even. */
enum { TF32_DROPPED = 13 };
static inline u32 tf32_away(u32 b) { return (b + (1u << (TF32_DROPPED - 1))) & ~((1u << TF32_DROPPED) - 1); }
static inline u32 tf32_even(u32 b) {
    return (b + (1u << (TF32_DROPPED - 1)) - 1 + (b >> TF32_DROPPED & 1)) & ~((1u << TF32_DROPPED) - 1);
}
static inline u32 tf32(u32 b, u32 rounded) {
    return (b & 0x7fffffff) > 0x7f800000 ? 0x7fffffff : (b & 0x7f800000) == 0x7f800000 ? b : rounded;
}
UNARY(tf32_rna, u32, u32, tf32(x, tf32_away(x)))
UNARY(tf32_rn, u32, u32, tf32(x, tf32_even(x)))
UNARY(tf32_rz, u32, u32, tf32(x, x & ~((1u << TF32_DROPPED) - 1)))

/* Any other conversion: packed into the instruction. */
typedef struct {
    char to, from; /* kinds of TypeInfo */
    u8 to_bytes, from_bytes, to_width, from_width;
    ConvertRounding rounding;
    bool flush, saturate;
} Conversion;
enum { KIND_BITS = 7, LOG_BITS = 2 };
/* Fields from the lowest bit: kinds, logarithms of the four sizes, rounding, flags. */
static u32 log_of(u32 n) { return (u32)__builtin_ctz(n); }
static u32 encoded(const Conversion *c) {
    return (u32)c->to | (u32)c->from << 7 | log_of(c->to_bytes) << 14 | log_of(c->from_bytes) << 16 |
           log_of(c->to_width) << 18 | log_of(c->from_width) << 20 | (u32)c->rounding << 22 | (u32)c->flush << 26 |
           (u32)c->saturate << 27;
}
static Conversion decoded(u32 v) {
    return (Conversion){(char)(v & 127),
                        (char)(v >> 7 & 127),
                        (u8)(1u << (v >> 14 & 3)),
                        (u8)(1u << (v >> 16 & 3)),
                        (u8)(1u << (v >> 18 & 3)),
                        (u8)(1u << (v >> 20 & 3)),
                        (ConvertRounding)(v >> 22 & 15),
                        v >> 26 & 1,
                        v >> 27 & 1};
}
static bool is_float(char kind) { return kind == 'f' || kind == 'g'; }
static u64 low_bytes(u64 v, u32 bytes) { return bytes == 8 ? v : v & (((u64)1 << 8 * bytes) - 1); }
static s64 sign_extended(u64 v, u32 bytes) { return (s64)(v << (64 - 8 * bytes)) >> (64 - 8 * bytes); }

static f64 float_of(const Conversion *c, u64 v) {
    f64 d;
    if (c->from == 'g') return from_bf16((u16)v);
    if (c->from_bytes == 2) return from_f16((u16)v);
    if (c->from_bytes == 4) return f32_of_bits((u32)v);
    memcpy(&d, &v, 8);
    return d;
}
static f64 flush_f64(const Conversion *c, f64 x, u32 bytes) {
    return c->flush && bytes == 4 && fabs(x) < 0x1p-126 ? copysign(0, x) : x;
}
static f64 round_to_integer(ConvertRounding r, f64 x) {
    switch (r) {
    case ROUND_RN:
    case ROUND_RNI: return rint(x);
    case ROUND_RM:
    case ROUND_RMI: return floor(x);
    case ROUND_RP:
    case ROUND_RPI: return ceil(x);
    default: return trunc(x);
    }
}
/* Clamped; NaN is 0, or the middle of the range where one side has 64 bits. */
static u64 integer_of(const Conversion *c, f64 x) {
    u32 bits = 8u * c->to_bytes;
    bool sign = c->to == 's';
    f64 top = ldexp(1, (int)bits - sign);
    if (x != x) return c->from_bytes == 8 || c->to_bytes == 8 ? (u64)1 << (bits - 1) : 0;
    x = round_to_integer(c->rounding, x);
    if (x >= top) return low_bytes(UINT64_MAX, c->to_bytes) >> sign;
    if (sign) return x < -top ? (u64)1 << (bits - 1) : (u64)(s64)x;
    return x <= 0 ? 0 : (u64)x;
}
static u64 clamped(const Conversion *c, s128 v) {
    u32 bits = 8u * c->to_bytes;
    bool sign = c->to == 's';
    s128 low = sign ? -((s128)1 << (bits - 1)) : 0, high = ((s128)1 << (bits - sign)) - 1;
    return (u64)(v < low ? low : v > high ? high : v);
}
static int direction(ConvertRounding r) {
    return r == ROUND_RZ ? FE_TOWARDZERO : r == ROUND_RM ? FE_DOWNWARD : r == ROUND_RP ? FE_UPWARD : FE_TONEAREST;
}
/* The neighbour of the nearest pattern that lies where the rounding goes. x is exact, or rounded to odd. */
static u16 directed(ConvertRounding r, u16 nearest, f64 value, f64 x) {
    bool up = value > x && (r == ROUND_RM || (r == ROUND_RZ && x > 0)),
         down = value < x && (r == ROUND_RP || (r == ROUND_RZ && x < 0));
    bool smaller = (up && x > 0) || (down && x < 0), larger = (up && x < 0) || (down && x > 0);
    return (u16)(nearest - smaller + larger);
}
static u64 narrow_of(const Conversion *c, f64 x) {
    if (c->to == 'g') {
        u16 b = bf16_of_f64(x);
        return directed(c->rounding, b, from_bf16(b), x);
    }
    u16 b = f16_of_f64(x);
    return directed(c->rounding, b, from_f16(b), x);
}
static u64 float_bits(const Conversion *c, f64 x) {
    u64 v = 0;
    if (c->saturate) x = x > 0 ? (x < 1 ? x : 1) : 0;
    if (c->to_bytes == 2) return narrow_of(c, x);
    if (c->to_bytes == 8) return memcpy(&v, &x, 8), v;
    fesetround(direction(c->rounding));
    volatile f32 f = (f32)x;
    fesetround(FE_TONEAREST);
    return bits_of_f32(quiet_f32((f32)flush_f64(c, f, 4)));
}
/* An integer as f64, rounded to odd where it has too many bits; to f64 itself as asked. */
static f64 float_of_integer(const Conversion *c, s128 v) {
    if (c->to_bytes == 8) {
        fesetround(direction(c->rounding));
        volatile f64 d = v < 0 ? (f64)(s64)v : (f64)(u64)v;
        fesetround(FE_TONEAREST);
        return d;
    }
    f64 d = v < 0 ? (f64)(s64)v : (f64)(u64)v;
    s128 back = (s128)d;
    return back == v ? d : odd_sum(d, (f64)(v - back));
}
static u64 converted(const Conversion *c, u64 v) {
    v = low_bytes(v, c->from_bytes);
    if (is_float(c->from)) {
        f64 x = flush_f64(c, float_of(c, v), c->from_bytes);
        if (!is_float(c->to)) return integer_of(c, x);
        return float_bits(c,
                          c->rounding >= ROUND_RNI && c->rounding <= ROUND_RPI ? round_to_integer(c->rounding, x) : x);
    }
    s128 n = c->from == 's' ? sign_extended(v, c->from_bytes) : (s128)v;
    if (is_float(c->to)) return float_bits(c, float_of_integer(c, n));
    return c->saturate ? clamped(c, n) : (u64)n;
}
static void run_convert(Warp *w, const Ins *i, u32 mask) {
    Conversion c = decoded(i->target);
    each_lane(l, mask) {
        u64 v = 0;
        memcpy(&v, w->frame + i->o[1] + l * c.from_width, c.from_width);
        v = converted(&c, v);
        v = c.to == 's' ? (u64)sign_extended(v, c.to_bytes) : low_bytes(v, c.to_bytes);
        memcpy(w->frame + i->o[0] + l * c.to_width, &v, c.to_width);
    }
}
Run *convert_run(Ins *i, const TypeInfo *to, const TypeInfo *from, u32 to_width, u32 from_width, ConvertRounding r,
                 bool flush, bool saturate) {
    Conversion c = {to->kind, from->kind, to->bytes, from->bytes, (u8)to_width, (u8)from_width, r, flush, saturate};
    if (to->kind == '2' || from->kind == '2' || to->kind == 'b' || from->kind == 'b' || to_width < to->bytes ||
        from_width < from->bytes)
        return NULL;
    i->target = encoded(&c);
    return run_convert;
}

/* mov of parts. */
void run_pack(Warp *w, const Ins *i, u32 mask) {
    const u32 *list = w->top->f->lists.at + i->list;
    u64 r[LANES] = {0};
    for (u32 k = 0; k < i->n; k++)
        each_lane(l, mask) memcpy((u8 *)&r[l] + k * i->width, w->frame + list[k] + l * i->width, i->width);
    each_lane(l, mask) memcpy(w->frame + i->o[0] + l * i->bytes, &r[l], i->bytes);
}
void run_unpack(Warp *w, const Ins *i, u32 mask) {
    const u32 *list = w->top->f->lists.at + i->list;
    u64 r[LANES];
    each_lane(l, mask) memcpy(&r[l], w->frame + i->o[0] + l * i->bytes, i->bytes);
    for (u32 k = 0; k < i->n; k++)
        each_lane(l, mask) memcpy(w->frame + list[k] + l * i->width, (u8 *)&r[l] + k * i->width, i->width);
}

/* Windows of the spaces. */
static u64 window_of(u32 space) {
    return space == SPACE_SHARED  ? SHARED_WINDOW
           : space == SPACE_LOCAL ? LOCAL_WINDOW
           : space == SPACE_PARAM ? PARAM_WINDOW
                                  : 0;
}
void run_to_generic(Warp *w, const Ins *i, u32 mask) {
    const u64 *a = SLOT(u64, 1);
    u64 window = window_of(i->space);
    LANES_OF(u64, to[l] = a[l] | window)
}
void run_from_generic(Warp *w, const Ins *i, u32 mask) {
    const u64 *a = SLOT(u64, 1);
    u64 window = window_of(i->space);
    LANES_OF(u64, to[l] = a[l] - window)
}
void run_isspacep(Warp *w, const Ins *i, u32 mask) {
    const u64 *a = SLOT(u64, 1);
    u8 t[LANES];
    EACH_LANE t[l] = (a[l] & WINDOW_MASK) == window_of(i->space);
    keep_predicate(SLOT(u32, 0), pack_bits(t), mask);
}
void run_nothing(Warp *w, const Ins *i, u32 mask) {}

#define R_u16 "h"
#define R_s16 "h"
#define R_u32 "w"
#define R_s32 "w"
#define R_u64 "x"
#define R_s64 "x"
#define R_f32 "w"
#define R_f64 "x"
#define INT_ROW(T, F) {"cvt." #T "." #F, T##_##F, R_##T R_##F}
#define INT_ROWS(T, A, B, C, D) INT_ROW(T, A), INT_ROW(T, B), INT_ROW(T, C), INT_ROW(T, D)
#define FROM_ROW(T, F) {"cvt.rn." #T "." #F, T##_##F, R_##T R_##F}
#define FROM_ROWS(T)                                                                                                   \
    FROM_ROW(T, u16), FROM_ROW(T, s16), FROM_ROW(T, u32), FROM_ROW(T, s32), FROM_ROW(T, u64), FROM_ROW(T, s64)
#define ROWS_8(T)                                                                                                      \
    {"cvt.rn.satfinite." #T "x2.f32", T##x2_f32, "hww"}, {"cvt.rn.satfinite." #T "x2.f16x2", T##x2_f16x2, "hw"},       \
        {"cvt.rn.f16x2." #T "x2", f16x2_##T##x2, "wh"}
static const Row rows[] = {
    INT_ROWS(u16, u32, s32, u64, s64),
    INT_ROWS(s16, u32, s32, u64, s64),
    INT_ROWS(u32, u16, s16, u64, s64),
    INT_ROWS(s32, u16, s16, u64, s64),
    INT_ROWS(u64, u16, s16, u32, s32),
    INT_ROWS(s64, u16, s16, u32, s32),
    FROM_ROWS(f32),
    FROM_ROWS(f64),
    {"cvt.f64.f32", f64_f32, "xw"},
    {"cvt.rn.f32.f64", f32_f64, "wx"},
    {"cvt.f32.f16", f32_f16, "wh"},
    {"cvt.f64.f16", f64_f16, "xh"},
    {"cvt.f32.bf16", f32_bf16, "wh"},
    {"cvt.f64.bf16", f64_bf16, "xh"},
    {"cvt.rn.f16.f32", f16_f32, "hw"},
    {"cvt.rn.bf16.f32", bf16_f32, "hw"},
    {"cvt.rn.f16.f64", f16_f64, "hx"},
    {"cvt.rn.bf16.f64", bf16_f64, "hx"},
    {"cvt.rni.f32.f32", f32_rni, "ww"},
    {"cvt.rzi.f32.f32", f32_rzi, "ww"},
    {"cvt.rmi.f32.f32", f32_rmi, "ww"},
    {"cvt.rpi.f32.f32", f32_rpi, "ww"},
    {"cvt.rni.f64.f64", f64_rni, "xx"},
    {"cvt.rzi.f64.f64", f64_rzi, "xx"},
    {"cvt.rmi.f64.f64", f64_rmi, "xx"},
    {"cvt.rpi.f64.f64", f64_rpi, "xx"},
    {"cvt.rn.f16x2.f32", f16x2_f32, "www"},
    {"cvt.rn.bf16x2.f32", bf16x2_f32, "www"},
    {"cvt.rn.relu.f16x2.f32", f16x2_relu, "www"},
    {"cvt.rn.relu.bf16x2.f32", bf16x2_relu, "www"},
    ROWS_8(e4m3),
    ROWS_8(e5m2),
    {"cvt.rna.tf32.f32", tf32_rna, "ww"},
    {"cvt.rn.tf32.f32", tf32_rn, "ww"},
    {"cvt.rz.tf32.f32", tf32_rz, "ww"},
};
const Rows rows_convert = {rows, sizeof rows / sizeof *rows};
