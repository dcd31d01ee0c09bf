/* f16 and bf16, alone and in pairs: a pair of registers of 32 bits is twice as many lanes of 16. All is computed in
   f32, which has more than twice the bits, so that rounding again does no harm; fma is rounded to odd first. */
#include "narrow.h"
#include "ops.h"
#include <math.h>

static inline f32 flushed_f16(f32 x) { return fabsf(x) < 0x1p-14f ? copysignf(0, x) : x; }
static inline f32 saturated(f32 x) { return x > 0 ? (x < 1 ? x : 1) : 0; }
#define BELOW(x, y) ((x) < (y) || ((x) == (y) && signbit(x) && !signbit(y)))
static inline f32 least(f32 x, f32 y) { return x != x ? y : y != y ? x : BELOW(x, y) ? x : y; }
static inline f32 most(f32 x, f32 y) { return x != x ? y : y != y ? x : BELOW(y, x) ? x : y; }
static inline f32 least_nan(f32 x, f32 y) { return x != x || y != y ? NAN : least(x, y); }
static inline f32 most_nan(f32 x, f32 y) { return x != x || y != y ? NAN : most(x, y); }

/* The same for one and for two in each lane; d, a, b, c point to 16 bits. */
#define ONE_AND_TWO(name, ...)                                                                                         \
    static void name(Warp *w, const Ins *i, u32 mask) {                                                                \
        const u16 *a = SLOT(u16, 1), *b = SLOT(u16, 2), *c = SLOT(u16, 3);                                             \
        u16 r[LANES];                                                                                                  \
        EACH_LANE { r[l] = __VA_ARGS__; }                                                                              \
        keep_16(SLOT(u16, 0), r, mask);                                                                                \
        (void)a, (void)b, (void)c;                                                                                     \
    }                                                                                                                  \
    static void name##x2(Warp *w, const Ins *i, u32 mask) {                                                            \
        const u16 *a = SLOT(u16, 1), *b = SLOT(u16, 2), *c = SLOT(u16, 3);                                             \
        union {                                                                                                        \
            u16 half[2 * LANES];                                                                                       \
            u32 word[LANES];                                                                                           \
        } r;                                                                                                           \
        _Pragma("GCC ivdep") for (u32 l = 0; l < 2 * LANES; l++) r.half[l] = __VA_ARGS__;                              \
        keep_32(SLOT(u32, 0), r.word, mask);                                                                           \
        (void)a, (void)b, (void)c;                                                                                     \
    }
#define DEFINE_ARITHMETIC(T, suffix, IN, OUT)                                                                          \
    ONE_AND_TWO(add_##T##suffix, OUT(IN(a[l]) + IN(b[l])))                                                             \
    ONE_AND_TWO(sub_##T##suffix, OUT(IN(a[l]) - IN(b[l])))                                                             \
    ONE_AND_TWO(mul_##T##suffix, OUT(IN(a[l]) * IN(b[l])))                                                             \
    ONE_AND_TWO(fma_##T##suffix, OUT(narrow_fma(IN(a[l]), IN(b[l]), IN(c[l]))))
#define DEFINE_LEAST(T, suffix, IN, OUT)                                                                               \
    ONE_AND_TWO(min_##T##suffix, OUT(least(IN(a[l]), IN(b[l]))))                                                       \
    ONE_AND_TWO(max_##T##suffix, OUT(most(IN(a[l]), IN(b[l]))))                                                        \
    ONE_AND_TWO(min_nan_##T##suffix, OUT(least_nan(IN(a[l]), IN(b[l]))))                                               \
    ONE_AND_TWO(max_nan_##T##suffix, OUT(most_nan(IN(a[l]), IN(b[l]))))
#define DEFINE_MORE(T, IN, OUT)                                                                                        \
    ONE_AND_TWO(fma_relu_##T, OUT(most_nan(0, narrow_fma(IN(a[l]), IN(b[l]), IN(c[l])))))                              \
    ONE_AND_TWO(ex2_##T, OUT(exp2f(IN(a[l]))))                                                                         \
    ONE_AND_TWO(tanh_##T, OUT(tanhf(IN(a[l]))))
#define FROM_FLUSHED(x) flushed_f16(from_f16(x))
#define TO_FLUSHED(x) to_f16(flushed_f16(from_f16(to_f16(x))))
#define TO_SATURATED(x) to_f16(saturated(x))
#define TO_FLUSHED_SATURATED(x) to_f16(saturated(flushed_f16(from_f16(to_f16(x)))))
DEFINE_ARITHMETIC(f16, , from_f16, to_f16)
DEFINE_ARITHMETIC(f16, _ftz, FROM_FLUSHED, TO_FLUSHED)
DEFINE_ARITHMETIC(f16, _sat, from_f16, TO_SATURATED)
DEFINE_ARITHMETIC(f16, _ftz_sat, FROM_FLUSHED, TO_FLUSHED_SATURATED)
DEFINE_ARITHMETIC(bf16, , from_bf16, to_bf16)
DEFINE_LEAST(f16, , from_f16, to_f16)
DEFINE_LEAST(f16, _ftz, FROM_FLUSHED, TO_FLUSHED)
DEFINE_LEAST(bf16, , from_bf16, to_bf16)
DEFINE_MORE(f16, from_f16, to_f16)
DEFINE_MORE(bf16, from_bf16, to_bf16)
ONE_AND_TWO(neg_half, a[l] ^ 0x8000)
ONE_AND_TWO(abs_half, a[l] & 0x7fff)
#define neg_f16 neg_half
#define abs_f16 abs_half
#define neg_f16x2 neg_halfx2
#define abs_f16x2 abs_halfx2
#define neg_bf16 neg_half
#define abs_bf16 abs_half
#define neg_bf16x2 neg_halfx2
#define abs_bf16x2 abs_halfx2

#define BOTH(name, T, run, one, two)                                                                                   \
    {name "." #T, run, one}, { name "." #T "x2", run##x2, two }
#define ROWS(T)                                                                                                        \
    BOTH("add.rn", T, add_##T, "hhh", "www"), BOTH("sub.rn", T, sub_##T, "hhh", "www"),                                \
        BOTH("mul.rn", T, mul_##T, "hhh", "www"), BOTH("add", T, add_##T, "hhh", "www"),                               \
        BOTH("sub", T, sub_##T, "hhh", "www"), BOTH("mul", T, mul_##T, "hhh", "www"),                                  \
        BOTH("fma.rn", T, fma_##T, "hhhh", "wwww"), BOTH("fma.rn.relu", T, fma_relu_##T, "hhhh", "wwww"),              \
        BOTH("neg", T, neg_##T, "hh", "ww"), BOTH("abs", T, abs_##T, "hh", "ww"),                                      \
        BOTH("min", T, min_##T, "hhh", "www"), BOTH("max", T, max_##T, "hhh", "www"),                                  \
        BOTH("min.NaN", T, min_nan_##T, "hhh", "www"), BOTH("max.NaN", T, max_nan_##T, "hhh", "www"),                  \
        BOTH("tanh.approx", T, tanh_##T, "hh", "ww")
#define SUFFIXES(name, op, one, two)                                                                                   \
    BOTH(name ".ftz", f16, op##_f16_ftz, one, two), BOTH(name ".sat", f16, op##_f16_sat, one, two),                    \
        BOTH(name ".ftz.sat", f16, op##_f16_ftz_sat, one, two)
static const Row rows[] = {
    ROWS(f16),
    ROWS(bf16),
    SUFFIXES("add.rn", add, "hhh", "www"),
    SUFFIXES("sub.rn", sub, "hhh", "www"),
    SUFFIXES("mul.rn", mul, "hhh", "www"),
    SUFFIXES("add", add, "hhh", "www"),
    SUFFIXES("sub", sub, "hhh", "www"),
    SUFFIXES("mul", mul, "hhh", "www"),
    SUFFIXES("fma.rn", fma, "hhhh", "wwww"),
    BOTH("min.ftz", f16, min_f16_ftz, "hhh", "www"),
    BOTH("max.ftz", f16, max_f16_ftz, "hhh", "www"),
    BOTH("min.ftz.NaN", f16, min_nan_f16_ftz, "hhh", "www"),
    BOTH("max.ftz.NaN", f16, max_nan_f16_ftz, "hhh", "www"),
    BOTH("ex2.approx", f16, ex2_f16, "hh", "ww"),
    BOTH("ex2.approx.ftz", bf16, ex2_bf16, "hh", "ww"),
};
const Rows rows_half = {rows, sizeof rows / sizeof *rows};
