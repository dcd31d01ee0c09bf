/* What the runtime has instead of libm: the same numbers, bit for bit, in every rounding mode. */
#include "../../runtime/math.c"
#include <criterion/criterion.h>
#include <fenv.h>

static uint64_t state = 1;
static uint64_t draw(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
}
/* Any bits; or near 1, where exponents meet; or few bits, where ties are. */
static double number(void) {
    uint64_t u = draw(), kind = draw() % 4;
    if (kind == 1) u = (u & ~(0x7ffull << 52)) | (1023 - 40 + draw() % 80) << 52;
    if (kind == 2) u = (u & 0xfff8000000000000) | (draw() % 2 ? 0 : 1ull << draw() % 52);
    if (kind == 3) u &= 0x801fffffffffffff; /* small, subnormal */
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}
static float single(void) {
    uint32_t u = (uint32_t)draw(), kind = draw() % 3;
    if (kind == 1) u = (u & 0x807fffff) | (uint32_t)(127 - 20 + draw() % 40) << 23;
    if (kind == 2) u &= 0xfff80000 | 1u << draw() % 20;
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}
static int same(double x, double y) { return bits_of(x) == bits_of(y) || (x != x && y != y); }

static const int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
#define each_mode(m) for (const int *m = modes; m < modes + 4; m++)
enum { N = 200000 };

Test(math, fma_is_rounded_once) {
    each_mode(m) {
        fesetround(*m);
        for (int i = 0; i < N; i++) {
            volatile double x = number(), y = number(), z = number();
            if (i % 3 == 0) z = -(x * y) * (1 + (i % 5 - 2) * 0x1p-52);
            double want = fma(x, y, z), got = exact_fma(x, y, z);
            cr_assert(same(want, got), "fma(%a, %a, %a) is %a, not %a", x, y, z, want, got);
            volatile float a = single(), b = single(), c = single();
            if (i % 3 == 0) c = -(a * b);
            float f = fmaf(a, b, c), g = exact_fmaf(a, b, c);
            cr_assert(same(f, g), "fmaf(%a, %a, %a) is %a, not %a", a, b, c, f, g);
            cr_assert(same(want, jaxcc_rt_fma(x, y, z)) && same(f, jaxcc_rt_fmaf(a, b, c)));
        }
    }
    fesetround(FE_TONEAREST);
}
Test(math, fmod_is_exact) {
    each_mode(m) {
        fesetround(*m);
        for (int i = 0; i < N / 4; i++) {
            double x = number(), y = number();
            cr_assert(same(fmod(x, y), jaxcc_rt_fmod(x, y)), "fmod(%a, %a)", x, y);
            float a = single(), b = single();
            cr_assert(same(fmodf(a, b), jaxcc_rt_fmodf(a, b)), "fmodf(%a, %a)", a, b);
        }
    }
    fesetround(FE_TONEAREST);
}
Test(math, whole_numbers) {
    static const struct {
        const char *name;
        double (*libm)(double), (*ours)(double);
        float (*ours_f)(float);
    } rows[] = {{"floor", floor, jaxcc_rt_floor, jaxcc_rt_floorf},
                {"ceil", ceil, jaxcc_rt_ceil, jaxcc_rt_ceilf},
                {"trunc", trunc, jaxcc_rt_trunc, jaxcc_rt_truncf},
                {"round", round, jaxcc_rt_round, jaxcc_rt_roundf},
                {"roundeven", nearbyint, jaxcc_rt_roundeven, jaxcc_rt_roundevenf}};
    static const double special[] = {
        0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0x1.fffffffffffffp-2, 0x1p52 - 0.5, 0x1p52 + 1, INFINITY, -INFINITY, NAN};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (int i = 0; i < N; i++) {
            double x = i < (int)(sizeof special / sizeof *special) ? special[i] : number();
            cr_assert(same(rows[r].libm(x), rows[r].ours(x)), "%s(%a)", rows[r].name, x);
            float f = single();
            cr_assert(same(rows[r].libm(f), rows[r].ours_f(f)), "%sf(%a)", rows[r].name, f);
        }
}
