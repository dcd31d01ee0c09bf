/* The accuracy of stdlib/: its programs, run by the evaluator of passes/, against the C library in
 * a wider type. */
#include "options.h"
#include "passes/eval.h"
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>

#ifndef SAMPLES
#define SAMPLES 3000 /* of each of three distributions */
#endif

typedef long double Real;
typedef Real Unary(Real);

static Real rsqrt_l(Real x) { return 1 / sqrtl(x); }
static Real logistic_l(Real x) { return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x)); }

/* Newton's method on erf below 1/2, on erfc beyond, where 1 - |x| is exact. */
static Real erf_inv_l(Real x) {
    Real a = fabsl(x), y = a;
    if (a >= 1) return a == 1 ? copysignl(INFINITY, x) : NAN;
    if (a > 0.9L) y = sqrtl(-logl(1 - a));
    for (int i = 0; i < 60; i++) {
        Real f = a < 0.5L ? erfl(y) - a : (1 - a) - erfcl(y);
        y -= f / (1.12837916709551257390L * expl(-y * y));
    }
    return copysignl(x == 0 ? 0 : y, x);
}

/* 1/pi times the integral over [0, pi] of e^(x cos t - |x|) cos n t (DLMF 10.32.3) by the trapezoid
   rule, right where n is small against the number of points; the power series near 0. */
static Real bessel_l(Real x, int n) {
    enum { POINTS = 200 };
    Real a = fabsl(x), sum = (1 + (n % 2 ? -1 : 1) * expl(-2 * a)) / 2;
    if (a > 1e4L) { /* DLMF 10.40.1 */
        Real term = 1;
        sum = 1;
        for (int k = 1; k < 12; k++) sum += term *= ((2 * k - 1) * (2 * k - 1) - 4 * n * n) / (8 * k * a);
        return copysignl(a > LDBL_MAX ? 0 : sum / sqrtl(2 * acosl(-1) * a), n ? x : 1);
    }
    if (a < 1e-3L) {
        Real z = a * a / 4;
        sum = n ? a / 2 * (1 + z / 2 * (1 + z / 6)) : 1 + z * (1 + z / 4 * (1 + z / 9));
        return copysignl(expl(-a) * sum, n ? x : 1);
    }
    int points = POINTS + 4 * (int)a;
    for (int k = 1; k < points; k++) {
        Real t = acosl(-1) * k / points;
        sum += expl(-2 * a * sinl(t / 2) * sinl(t / 2)) * cosl(n * t);
    }
    return copysignl(sum / points, n ? x : 1);
}
static Real bessel_i0e_l(Real x) { return isnan(x) ? x : bessel_l(x, 0); }
static Real bessel_i1e_l(Real x) { return isnan(x) ? x : bessel_l(x, 1); }

/* Absolute errors in ulp of the result; `most` for f32 and f64. Samples are taken from [lo, hi]
 * too. */
static const struct {
    const char *name;
    Unary *exact;
    double most, lo, hi;
} unary[] = {
    {"exp", expl, 1.5, -20, 20},
    {"exp2", exp2l, 2.5, -30, 30},
    {"expm1", expm1l, 2.5, -5, 5},
    {"log", logl, 1.5, 0, 4},
    {"log1p", log1pl, 2.5, -1, 3},
    {"tanh", tanhl, 2.5, -4, 4},
    {"logistic", logistic_l, 2.5, -20, 20},
    {"sin", sinl, 2.5, -30, 30},
    {"cos", cosl, 2.5, -30, 30},
    {"tan", tanl, 2.5, -30, 30},
    {"asin", asinl, 2.5, -1, 1},
    {"acos", acosl, 2.5, -1, 1},
    {"atan", atanl, 2.5, -5, 5},
    {"sinh", sinhl, 2.5, -5, 5},
    {"cosh", coshl, 2.5, -5, 5},
    {"asinh", asinhl, 2.5, -5, 5},
    {"acosh", acoshl, 2.5, 1, 5},
    {"atanh", atanhl, 2.5, -1, 1},
    {"cbrt", cbrtl, 2.5, -10, 10},
    {"rsqrt", rsqrt_l, 2.5, 0, 10},
    {"erf", erfl, 2.5, -4, 4},
    {"erfc", erfcl, 2.5, -3, 10},
    {"erf_inv", erf_inv_l, 2.5, -1, 1},
    {"bessel_i0e", bessel_i0e_l, 4, -20, 20},
    {"bessel_i1e", bessel_i1e_l, 4, -20, 20},
};
enum { NUNARY = sizeof unary / sizeof *unary };

static const double special[] = {0.0,
                                 -0.0,
                                 INFINITY,
                                 -INFINITY,
                                 NAN,
                                 1,
                                 -1,
                                 0.5,
                                 -0.5,
                                 2,
                                 -2,
                                 3,
                                 -3,
                                 0x1p-1074,
                                 -0x1p-1074,
                                 0x1p-149,
                                 -0x1p-149,
                                 0x1p-127,
                                 0x1p-126,
                                 0x1p-1022,
                                 0x1.fffffep127,
                                 -0x1.fffffep127,
                                 0x1.fffffffffffffp1023,
                                 -0x1.fffffffffffffp1023,
                                 0x1.fffffep-1,
                                 0x1.000002p0,
                                 0x1.8p23,
                                 0x1p24,
                                 0x1.8p52,
                                 0x1p53,
                                 0x1p17,
                                 0x1p30,
                                 88.72,
                                 89,
                                 -87.4,
                                 -104,
                                 709.78,
                                 -745.2,
                                 0.75,
                                 1.5,
                                 0x1p-28,
                                 -0x1p-60,
                                 1e22,
                                 1e300,
                                 -3.5,
                                 4.25};
enum { NSPECIAL = sizeof special / sizeof *special };

static uint64_t seed;
static uint64_t next(void) {
    seed += 0x9e3779b97f4a7c15u;
    uint64_t z = (seed ^ seed >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static Scalar scalar(bool wide, double x) { return wide ? scalar_f64(x) : scalar_f32((float)x); }
static Scalar bits(bool wide) { return wide ? (Scalar){DT_f64, next()} : (Scalar){DT_f32, next() & 0xffffffff}; }

/* Sample number `i`: special values, any bits, uniform, tiny to small. */
static Scalar sample(bool wide, uint32_t i, double lo, double hi) {
    if (i < NSPECIAL) return scalar(wide, special[i]);
    double u = (double)(next() >> 11) * 0x1p-53;
    switch (i % 3) {
    case 0: return bits(wide);
    case 1: return scalar(wide, lo + u * (hi - lo));
    default: return scalar(wide, ldexp(u - 0.5, (int)(next() % 24) - 20));
    }
}

/* |got - exact| in units of the last place of `exact`, as a number of the type; a NaN or an
   infinity in the wrong place is an infinite error, and so is a zero of the wrong sign. */
static double ulps(bool wide, double got, Real exact) {
    double nearest = wide ? (double)exact : (double)(float)exact;
    if (isnan(got) || isnan(nearest)) return isnan(got) && isnan(nearest) ? 0 : INFINITY;
    if (got == nearest && (got == 0 || isinf(got))) return signbit(got) == signbit(nearest) ? 0 : INFINITY;
    int most = wide ? 1024 : 128, least = wide ? -1074 : -149, digits = wide ? 53 : 24, e;
    Real shown = isinf(got) ? copysignl(ldexpl(1, most), got) : (Real)got;
    frexpl(exact, &e);
    if (e > most) e = most;
    Real ulp = ldexpl(1, e - digits < least ? least : e - digits);
    return (double)(fabsl(shown - exact) / ulp);
}

static Ctx *cx;
static void open_context(void) {
    static const Options none;
    cx = ctx_new(arena_open());
    cx->options = &none;
    cx->verify = true;
    seed = 1;
}
static void close_context(void) { arena_close(cx->arena); }
TestSuite(stdlib, .init = open_context, .fini = close_context);

static Evaluator *program(const char *name, bool wide, const char *suffix) {
    char file[64];
    snprintf(file, sizeof file, "%s_%s%s", name, wide ? "f64" : "f32", suffix);
    const Jaxpr *j = stdlib_program(cx, file);
    return j ? evaluator_new(cx, j) : NULL;
}

static void test_unary(uint32_t f, bool wide) {
    char name[64];
    snprintf(name, sizeof name, "%s_%s", unary[f].name, wide ? "f64" : "f32");
    Evaluator *fast = program(unary[f].name, wide, ""), *full = program(unary[f].name, wide, "_full");
    cr_assert(fast, "%s: no program", name);
    const StdlibFast *bound = stdlib_fast(name);
    double worst = 0;
    for (uint32_t i = 0; i < NSPECIAL + 3 * SAMPLES; i++) {
        Scalar x = sample(wide, i, unary[f].lo, unary[f].hi), y;
        double v = scalar_float(x);
        cr_assert(evaluator_run(bound && !stdlib_suits(bound, v) ? full : fast, &x, &y), "%s", name);
        double error = ulps(wide, scalar_float(y), unary[f].exact(v));
        cr_assert(error <= unary[f].most, "%s: %a gives %a, which is wrong by %g ulp", name, v, scalar_float(y), error);
        worst = error > worst ? error : worst;
        if (full && evaluator_run(full, &x, &y))
            cr_assert(ulps(wide, scalar_float(y), unary[f].exact(v)) <= unary[f].most, "%s_full: %a", name, v);
    }
    if (getenv("ULPS")) printf("%-14s %.3f\n", name, worst);
}

Test(stdlib, unary_f32) {
    for (uint32_t f = 0; f < NUNARY; f++) test_unary(f, false);
}
Test(stdlib, unary_f64) {
    for (uint32_t f = 0; f < NUNARY; f++) test_unary(f, true);
}

typedef Real Binary(Real, Real);
static void test_binary(const char *name, Binary *exact, bool wide, double lo, double hi) {
    Evaluator *p = program(name, wide, "");
    cr_assert(p, "%s: no program", name);
    double worst = 0;
    for (uint32_t i = 0; i < NSPECIAL * NSPECIAL + 3 * SAMPLES; i++) {
        bool table = i < NSPECIAL * NSPECIAL;
        uint32_t k = NSPECIAL + (uint32_t)(next() % 1000);
        Scalar in[] = {sample(wide, table ? i / NSPECIAL : k, lo, hi), sample(wide, table ? i % NSPECIAL : k, -hi, hi)};
        Scalar out;
        double x = scalar_float(in[0]), y = scalar_float(in[1]);
        cr_assert(evaluator_run(p, in, &out), "%s", name);
        double error = ulps(wide, scalar_float(out), exact(x, y));
        cr_assert(error <= 2.5, "%s of %a, %a gives %a, which is wrong by %g ulp", name, x, y, scalar_float(out),
                  error);
        worst = error > worst ? error : worst;
    }
    if (getenv("ULPS")) printf("%s_%s %.3f\n", name, wide ? "f64" : "f32", worst);
}

Test(stdlib, pow) {
    test_binary("pow", powl, false, 0, 30);
    test_binary("pow", powl, true, 0, 100);
}
Test(stdlib, atan2) {
    test_binary("atan2", atan2l, false, -10, 10);
    test_binary("atan2", atan2l, true, -10, 10);
}

/* What holds of the special functions. `tests/accuracy` measures their errors. */
static double f(const char *name, double x, double y, double z) {
    Scalar in[] = {scalar_f64(x), scalar_f64(y), scalar_f64(z)}, out;
    Evaluator *p = program(name, true, "");
    cr_assert(p && evaluator_run(p, in, &out), "%s", name);
    return scalar_float(out);
}
static void near(double got, double want, double size, const char *what, double x, double y) {
    cr_assert(fabs(got - want) <= size * 0x1p-46, "%s of %a, %a: %a, not %a", what, x, y, got, want);
}
static void near_step(double got, double step, const char *what, double x, double y) {
    cr_assert(fabs(got - step) <= 1e-6 * fmax(1, fabs(step)), "%s of %a, %a: %a, not %a", what, x, y, got, step);
}
Test(stdlib, special) {
    for (int i = 0; i < 300; i++) {
        double x = ldexp((double)(next() >> 11) * 0x1p-53, (int)(next() % 8) - 2) + 0x1p-20;
        double y = ldexp((double)(next() >> 11) * 0x1p-53, (int)(next() % 8) - 2) + 0x1p-20;
        near(f("lgamma", x, 0, 0), (double)lgammal(x), fmax(1, fabs(lgamma(x))), "lgamma", x, 0);
        near(f("lgamma", -x, 0, 0), (double)lgammal(-x), fmax(1, fabs(lgamma(-x))), "lgamma", -x, 0);
        double psi = f("digamma", x, 0, 0), up = f("digamma", x + 1, 0, 0);
        near(psi, up - 1 / x, 1 + 1 / x, "digamma", x, 0);
        double trigamma = f("polygamma", 1, x, 0), zeta = f("zeta", x + 1.5, y, 0);
        near(trigamma, f("zeta", 2, x, 0), trigamma, "polygamma", 1, x);
        near(zeta, f("zeta", x + 1.5, y + 1, 0) + pow(y, -x - 1.5), zeta * (1 + x), "zeta", x, y);
        double p = f("igamma", x, y, 0), d = f("poisson", x, y, 0);
        near(p + f("igammac", x, y, 0), 1, 1, "igamma + igammac", x, y);
        near(p - f("igamma", x + 1, y, 0), d, 1, "igamma", x, y);
        double h = x * 0x1p-14, grad = f("igamma_grad_a", x, y, 0);
        double step = (f("igamma", x + h, y, 0) - f("igamma", x - h, y, 0)) / (2 * h);
        cr_assert(fabs(step - grad) < 1e-5 * fmax(1, 1 / x), "igamma_grad_a of %a, %a: %a, not %a", x, y, grad, step);
        double speed = f("random_gamma_grad", x, y, 0);
        step = (f("igamma", x + h, y + h * speed, 0) - f("igamma", x - h, y - h * speed, 0)) / (2 * h);
        cr_assert(fabs(step) < 1e-4 * fmax(1, 1 / x), "random_gamma_grad of %a, %a: %a, P moves by %a", x, y, speed,
                  step);
        step = (f("random_gamma_grad", x + h, y, 0) - f("random_gamma_grad", x - h, y, 0)) / (2 * h);
        near_step(f("random_gamma_grad_a", x, y, 0), step, "random_gamma_grad_a", x, y);
        h = y * 0x1p-14;
        step = (f("random_gamma_grad", x, y + h, 0) - f("random_gamma_grad", x, y - h, 0)) / (2 * h);
        near_step(f("random_gamma_grad_x", x, y, 0), step, "random_gamma_grad_x", x, y);
        double u = y / (x + y), beta = f("regularized_incomplete_beta", x, y, u);
        near(beta + f("regularized_incomplete_beta", y, x, x / (x + y)), 1, 64, "beta", x, y);
    }
    near(f("digamma", 1, 0, 0), -0.57721566490153286061, 1, "digamma", 1, 0);
    near(f("zeta", 2, 1, 0), 1.6449340668482264365, 1, "zeta", 2, 1);
    cr_assert(f("lgamma", -3, 0, 0) == INFINITY && isnan(f("digamma", -3, 0, 0)));
    cr_assert(f("zeta", 4, -1, 0) == INFINITY && isnan(f("zeta", 3, -1, 0)) && isnan(f("zeta", 0.5, 2, 0)));
    cr_assert(isnan(f("igamma", -1, 1, 0)) && f("igamma", 0, 2, 0) == 1 && f("igammac", 0, 2, 0) == 0);
    cr_assert(isnan(f("regularized_incomplete_beta", 1, 2, 1.5)));
}
