/* Floating point of 32 and 64 bits. Results are rounded as named: to nearest, or in the direction of .rz, .rm, .rp. */
#include "narrow.h"
#include "ops.h"
#include <fenv.h>
#include <math.h>

static inline f32 flushed(f32 x) { return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x; }
static inline f32 saturated_f32(f32 x) { return x > 0 ? (x < 1 ? x : 1) : 0; }
static inline f64 saturated_f64(f64 x) { return x > 0 ? (x < 1 ? x : 1) : 0; }
#define SAME(x) x
#define FLUSH(x) flushed(x)
#define SATURATE(x) saturated_f32(x)
#define FLUSH_SATURATE(x) saturated_f32(flushed(x))

static inline f64 quiet_f64(f64 x) { return x; }

/* min and max take the number beside a NaN, .NaN gives NaN; -0 is below 0. */
#define BELOW(x, y) ((x) < (y) || ((x) == (y) && signbit(x) && !signbit(y)))
#define DEFINE_LEAST(T)                                                                                                \
    static inline T least_##T(T x, T y) { return x != x ? y : y != y ? x : BELOW(x, y) ? x : y; }                      \
    static inline T most_##T(T x, T y) { return x != x ? y : y != y ? x : BELOW(y, x) ? x : y; }
DEFINE_LEAST(f32)
DEFINE_LEAST(f64)
static inline f32 either_nan(f32 x, f32 y, f32 r) { return x != x || y != y ? NAN : r; }

#define DEFINE_OPS(T, suffix, IN, OUT, FMA)                                                                            \
    BINARY(add_##suffix, T, T, T, quiet_##T(OUT(IN(x) + IN(y))))                                                       \
    BINARY(sub_##suffix, T, T, T, quiet_##T(OUT(IN(x) - IN(y))))                                                       \
    BINARY(mul_##suffix, T, T, T, quiet_##T(OUT(IN(x) * IN(y))))                                                       \
    TERNARY(fma_##suffix, T, T, T, T, quiet_##T(OUT(FMA(IN(x), IN(y), IN(z)))))
DEFINE_OPS(f32, f32, SAME, SAME, __builtin_fmaf)
DEFINE_OPS(f32, f32_ftz, FLUSH, FLUSH, __builtin_fmaf)
DEFINE_OPS(f32, f32_sat, SAME, SATURATE, __builtin_fmaf)
DEFINE_OPS(f32, f32_ftz_sat, FLUSH, FLUSH_SATURATE, __builtin_fmaf)
DEFINE_OPS(f64, f64, SAME, SAME, __builtin_fma)

#define DEFINE_MORE(T, suffix, F, SQRT, ABS)                                                                           \
    BINARY(div_##suffix, T, T, T, quiet_##T(F(F(x) / F(y))))                                                           \
    UNARY(rcp_##suffix, T, T, quiet_##T(F(1 / F(x))))                                                                  \
    UNARY(sqrt_##suffix, T, T, quiet_##T(F(SQRT(F(x)))))                                                               \
    UNARY(neg_##suffix, T, T, F(-x))                                                                                   \
    UNARY(abs_##suffix, T, T, F(ABS(x)))                                                                               \
    BINARY(min_##suffix, T, T, T, quiet_##T(least_##T(F(x), F(y))))                                                    \
    BINARY(max_##suffix, T, T, T, quiet_##T(most_##T(F(x), F(y))))
#define DEFINE_NAN(suffix, F)                                                                                          \
    BINARY(min_nan_##suffix, f32, f32, f32, quiet_f32(either_nan(x, y, least_f32(F(x), F(y)))))                        \
    BINARY(max_nan_##suffix, f32, f32, f32, quiet_f32(either_nan(x, y, most_f32(F(x), F(y)))))
DEFINE_MORE(f32, f32, SAME, sqrtf, fabsf)
DEFINE_MORE(f32, f32_ftz, FLUSH, sqrtf, fabsf)
DEFINE_MORE(f64, f64, SAME, sqrt, fabs)
DEFINE_NAN(f32, SAME)
DEFINE_NAN(f32_ftz, FLUSH)
/* copysign a, b: the sign of a, the magnitude of b. */
BINARY(copysign_f32, u32, u32, u32, (x & 0x80000000) | (y & 0x7fffffff))
BINARY(copysign_f64, u64, u64, u64, (x & (u64)1 << 63) | (y & ~((u64)1 << 63)))

/* The other directions of rounding. */
#define ROUNDED(name, plain, direction)                                                                                \
    static void name(Warp *w, const Ins *i, u32 mask) {                                                                \
        fesetround(direction);                                                                                         \
        plain(w, i, mask);                                                                                             \
        fesetround(FE_TONEAREST);                                                                                      \
    }
#define DEFINE_ROUNDED(op)                                                                                             \
    ROUNDED(op##_rz, op, FE_TOWARDZERO)                                                                                \
    ROUNDED(op##_rm, op, FE_DOWNWARD)                                                                                  \
    ROUNDED(op##_rp, op, FE_UPWARD)
#define DEFINE_ROUNDED_OPS(T)                                                                                          \
    DEFINE_ROUNDED(add_##T)                                                                                            \
    DEFINE_ROUNDED(sub_##T)                                                                                            \
    DEFINE_ROUNDED(mul_##T)                                                                                            \
    DEFINE_ROUNDED(fma_##T)                                                                                            \
    DEFINE_ROUNDED(div_##T)                                                                                            \
    DEFINE_ROUNDED(rcp_##T)                                                                                            \
    DEFINE_ROUNDED(sqrt_##T)
DEFINE_ROUNDED_OPS(f32)
DEFINE_ROUNDED_OPS(f64)

/* Approximations: correctly rounded here, or nearly. */
#define DEFINE_APPROX(suffix, F)                                                                                       \
    UNARY(ex2_##suffix, f32, f32, quiet_f32(F(exp2f(F(x)))))                                                           \
    UNARY(lg2_##suffix, f32, f32, quiet_f32(F(log2f(F(x)))))                                                           \
    UNARY(sin_##suffix, f32, f32, quiet_f32(F(sinf(F(x)))))                                                            \
    UNARY(cos_##suffix, f32, f32, quiet_f32(F(cosf(F(x)))))                                                            \
    UNARY(rsqrt_##suffix, f32, f32, quiet_f32(F((f32)(1 / sqrt((f64)F(x))))))
DEFINE_APPROX(f32, SAME)
DEFINE_APPROX(f32_ftz, FLUSH)
UNARY(tanh_f32, f32, f32, tanhf(x))
UNARY(rsqrt_f64, f64, f64, 1 / sqrt(x))

/* Tests of one operand. */
#define TEST(name, T, truth)                                                                                           \
    static void name(Warp *w, const Ins *i, u32 mask) {                                                                \
        const T *a = SLOT(T, 1);                                                                                       \
        u8 t[LANES];                                                                                                   \
        EACH_LANE {                                                                                                    \
            T x = a[l];                                                                                                \
            t[l] = (truth) != 0;                                                                                       \
        }                                                                                                              \
        keep_predicate(SLOT(u32, 0), pack_bits(t), mask);                                                              \
    }
#define DEFINE_TESTS(T)                                                                                                \
    TEST(test_finite_##T, T, isfinite(x))                                                                              \
    TEST(test_infinite_##T, T, isinf(x))                                                                               \
    TEST(test_number_##T, T, x == x)                                                                                   \
    TEST(test_nan_##T, T, x != x)                                                                                      \
    TEST(test_normal_##T, T, isnormal(x) || x == 0)                                                                    \
    TEST(test_subnormal_##T, T, fpclassify(x) == FP_SUBNORMAL)
DEFINE_TESTS(f32)
DEFINE_TESTS(f64)

/* f32: with every suffix that PTX allows. */
#define ROUNDINGS(op, T, c)                                                                                            \
    {#op ".rn." #T, op##_##T, c}, {#op ".rz." #T, op##_##T##_rz, c}, {#op ".rm." #T, op##_##T##_rm, c}, {              \
        #op ".rp." #T, op##_##T##_rp, c                                                                                \
    }
#define PLAIN(op, T, c) {#op "." #T, op##_##T, c}
#define SUFFIXES(op, c)                                                                                                \
    {#op ".rn.ftz.f32", op##_f32_ftz, c}, {#op ".rn.sat.f32", op##_f32_sat, c},                                        \
        {#op ".rn.ftz.sat.f32", op##_f32_ftz_sat, c}, {#op ".ftz.f32", op##_f32_ftz, c},                               \
        {#op ".sat.f32", op##_f32_sat, c}, {                                                                           \
        #op ".ftz.sat.f32", op##_f32_ftz_sat, c                                                                        \
    }
#define FTZ(name, suffix_name, op, c)                                                                                  \
    {name suffix_name, op##_f32, c}, { name ".ftz" suffix_name, op##_f32_ftz, c }
#define TESTS(T, c)                                                                                                    \
    {"testp.finite." #T, test_finite_##T, c}, {"testp.infinite." #T, test_infinite_##T, c},                            \
        {"testp.number." #T, test_number_##T, c}, {"testp.notanumber." #T, test_nan_##T, c},                           \
        {"testp.normal." #T, test_normal_##T, c}, {                                                                    \
        "testp.subnormal." #T, test_subnormal_##T, c                                                                   \
    }
static const Row rows[] = {
    ROUNDINGS(add, f32, "www"),
    ROUNDINGS(sub, f32, "www"),
    ROUNDINGS(mul, f32, "www"),
    ROUNDINGS(fma, f32, "wwww"),
    ROUNDINGS(div, f32, "www"),
    ROUNDINGS(rcp, f32, "ww"),
    ROUNDINGS(sqrt, f32, "ww"),
    ROUNDINGS(add, f64, "xxx"),
    ROUNDINGS(sub, f64, "xxx"),
    ROUNDINGS(mul, f64, "xxx"),
    ROUNDINGS(fma, f64, "xxxx"),
    ROUNDINGS(div, f64, "xxx"),
    ROUNDINGS(rcp, f64, "xx"),
    ROUNDINGS(sqrt, f64, "xx"),
    PLAIN(add, f32, "www"),
    PLAIN(sub, f32, "www"),
    PLAIN(mul, f32, "www"),
    PLAIN(add, f64, "xxx"),
    PLAIN(sub, f64, "xxx"),
    PLAIN(mul, f64, "xxx"),
    SUFFIXES(add, "www"),
    SUFFIXES(sub, "www"),
    SUFFIXES(mul, "www"),
    {"fma.rn.ftz.f32", fma_f32_ftz, "wwww"},
    {"fma.rn.sat.f32", fma_f32_sat, "wwww"},
    {"fma.rn.ftz.sat.f32", fma_f32_ftz_sat, "wwww"},
    {"div.rn.ftz.f32", div_f32_ftz, "www"},
    {"rcp.rn.ftz.f32", rcp_f32_ftz, "ww"},
    {"sqrt.rn.ftz.f32", sqrt_f32_ftz, "ww"},
    FTZ("div.full", ".f32", div, "www"),
    FTZ("div.approx", ".f32", div, "www"),
    FTZ("rcp.approx", ".f32", rcp, "ww"),
    FTZ("sqrt.approx", ".f32", sqrt, "ww"),
    FTZ("rsqrt.approx", ".f32", rsqrt, "ww"),
    FTZ("ex2.approx", ".f32", ex2, "ww"),
    FTZ("lg2.approx", ".f32", lg2, "ww"),
    FTZ("sin.approx", ".f32", sin, "ww"),
    FTZ("cos.approx", ".f32", cos, "ww"),
    FTZ("neg", ".f32", neg, "ww"),
    FTZ("abs", ".f32", abs, "ww"),
    FTZ("min", ".f32", min, "www"),
    FTZ("max", ".f32", max, "www"),
    FTZ("min", ".NaN.f32", min_nan, "www"),
    FTZ("max", ".NaN.f32", max_nan, "www"),
    {"tanh.approx.f32", tanh_f32, "ww"},
    {"rsqrt.approx.f64", rsqrt_f64, "xx"},
    {"rcp.approx.ftz.f64", rcp_f64, "xx"},
    PLAIN(neg, f64, "xx"),
    PLAIN(abs, f64, "xx"),
    PLAIN(min, f64, "xxx"),
    PLAIN(max, f64, "xxx"),
    {"copysign.f32", copysign_f32, "www"},
    {"copysign.f64", copysign_f64, "xxx"},
    TESTS(f32, "pw"),
    TESTS(f64, "px"),
};
const Rows rows_float = {rows, sizeof rows / sizeof *rows};
