/* Operations that not every CPU has an instruction for, and whose functions in libm a host may replace: exact, in the
   caller's rounding mode. codegen/machine/libcalls.c writes the calls. */
#include "rt.h"
#include <math.h>
#include <string.h>

/* ---- rounding to whole numbers. From 2^52 on every number is whole; NaN and infinities stay the same. */
static int has_fraction(double x) { return __builtin_fabs(x) < 0x1p52; }
static double towards_zero(double x) { return (double)(int64_t)x; }

double jaxcc_rt_trunc(double x) { return has_fraction(x) ? __builtin_copysign(towards_zero(x), x) : x; }
double jaxcc_rt_floor(double x) {
    if (!has_fraction(x)) return x;
    double y = towards_zero(x);
    return __builtin_copysign(y > x ? y - 1 : y, x);
}
double jaxcc_rt_ceil(double x) {
    if (!has_fraction(x)) return x;
    double y = towards_zero(x);
    return __builtin_copysign(y < x ? y + 1 : y, x);
}
/* Halves round away from zero. */
double jaxcc_rt_round(double x) {
    if (!has_fraction(x)) return x;
    double y = towards_zero(x);
    return __builtin_copysign(__builtin_fabs(x - y) >= 0.5 ? y + __builtin_copysign(1, x) : y, x);
}
double jaxcc_rt_roundeven(double x) {
    if (!has_fraction(x)) return x;
    double y = towards_zero(x), d = __builtin_fabs(x - y);
    int up = d > 0.5 || (d == 0.5 && ((int64_t)x & 1));
    return __builtin_copysign(up ? y + __builtin_copysign(1, x) : y, x);
}
float jaxcc_rt_floorf(float x) { return (float)jaxcc_rt_floor(x); }
float jaxcc_rt_ceilf(float x) { return (float)jaxcc_rt_ceil(x); }
float jaxcc_rt_truncf(float x) { return (float)jaxcc_rt_trunc(x); }
float jaxcc_rt_roundf(float x) { return (float)jaxcc_rt_round(x); }
float jaxcc_rt_roundevenf(float x) { return (float)jaxcc_rt_roundeven(x); }

/* ---- |x| = m · 2^e for a finite number; m < 2^53 */
typedef struct {
    uint64_t m;
    int e;
} Parts;
static uint64_t bits_of(double x) {
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}
static Parts parts(double x) {
    uint64_t u = bits_of(x), m = u & ((1ull << 52) - 1);
    int e = (int)(u >> 52 & 2047);
    return e ? (Parts){m | 1ull << 52, e - 1075} : (Parts){m, -1074};
}
/* 2^e, -1022 <= e <= 1023 */
static double power(int e) {
    uint64_t u = (uint64_t)(e + 1023) << 52;
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* ---- the remainder of a division that truncates, which is exact. The first remainder is below y's mantissa; each
   further step takes as many bits of the remaining exponent as fit in 64. */
double jaxcc_rt_fmod(double x, double y) {
    double a = __builtin_fabs(x), b = __builtin_fabs(y);
    if (!(a < INFINITY) || !(b > 0)) {
        double p = x * y, q = p;
        return p / q; /* NaN */
    }
    if (a < b) return x;
    Parts p = parts(a), q = parts(b);
    int zeros = __builtin_ctzll(q.m), more = p.e - q.e < zeros ? p.e - q.e : zeros;
    q.m >>= more, q.e += more; /* a larger exponent takes fewer steps */
    uint64_t r = p.m % q.m;
    int room = __builtin_clzll(q.m);
    for (int left = p.e - q.e; left > 0 && r;) {
        int k = left < room ? left : room;
        r = (r << k) % q.m;
        left -= k;
    }
    double scale = q.e >= -1022 ? power(q.e) : power(q.e + 60) * 0x1p-60;
    return __builtin_copysign((double)r * scale, x);
}
float jaxcc_rt_fmodf(float x, float y) { return (float)jaxcc_rt_fmod(x, y); }

/* ---- x·y + z with one rounding */
static int fused; /* the CPU has an instruction for it */
__attribute__((constructor(102))) static void look(void) { fused = jaxcc_rt_has("fma"); }
#ifdef __x86_64__
__attribute__((target("fma"))) static double fma_of_cpu(double x, double y, double z) { return __builtin_fma(x, y, z); }
__attribute__((target("fma"))) static float fmaf_of_cpu(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
#endif

typedef unsigned __int128 Wide;

/* x >> n; the last bit is set if a bit shifted out was (sticky). */
static Wide shift_sticky(Wide x, int n) {
    if (n > 127) return x != 0;
    return x >> n | ((x & (((Wide)1 << n) - 1)) != 0);
}
static int leading_zeros(Wide x) {
    uint64_t high = (uint64_t)(x >> 64);
    return high ? __builtin_clzll(high) : 64 + __builtin_clzll((uint64_t)x);
}
/* ± m · 2^e, m != 0, rounded once, by the conversion of an integer of at most 63 bits. Numbers below 2^-1022 have
   fewer bits: 2^62 is added, so that the last bit of the sum is 2^-1074. */
static double pack(Wide m, int e, int negative) {
    int shift = 65 - leading_zeros(m);
    int64_t n = (int64_t)(shift > 0 ? shift_sticky(m, shift) : m << -shift);
    e += shift;
    if (e >= -1084) { /* 2^62 <= n < 2^63 */
        double x = (double)(negative ? -n : n);
        int half = e / 2;
        return x * power(half) * power(e - half);
    }
    n = (int64_t)shift_sticky((Wide)n, -1084 - e) + (1ll << 62);
    double x = (double)(negative ? -n : n) + (negative ? 0x1p62 : -0x1p62);
    return x == 0 ? (negative ? -0.0 : 0.0) : x * 0x1p-1000 * 0x1p-84;
}
static double exact_fma(double x, double y, double z) {
    if (!__builtin_isfinite(x) || !__builtin_isfinite(y) || x == 0 || y == 0) return x * y + z;
    if (!__builtin_isfinite(z)) return z + z;
    if (z == 0) return x * y;
    Parts a = parts(x), b = parts(y), c = parts(z);
    int negative = (x < 0) != (y < 0), minus = (z < 0) != negative;
    Wide p = (Wide)a.m * b.m, q = c.m;
    int up = leading_zeros(p) - 2, ep = a.e + b.e - up, uq = leading_zeros(q) - 2, eq = c.e - uq;
    p <<= up, q <<= uq; /* both in [2^125, 2^126) */
    if (ep < eq) {
        p = shift_sticky(p, eq - ep);
        ep = eq;
    } else
        q = shift_sticky(q, ep - eq);
    if (!minus) return pack(p + q, ep, negative);
    if (p == q) return x * y + z; /* exact; the rounding mode gives the sign of zero */
    return p > q ? pack(p - q, ep, negative) : pack(q - p, ep, !negative);
}
double jaxcc_rt_fma(double x, double y, double z) {
#ifdef __x86_64__
    if (fused) return fma_of_cpu(x, y, z);
#endif
    return exact_fma(x, y, z);
}
/* The product is exact in f64. An inexact sum is rounded to odd: then rounding it again is rounding once
   (Boldo and Melquiond, Emulation of FMA and correctly rounded sums, 2008). */
static float exact_fmaf(float x, float y, float z) {
    double p = (double)x * y, s = p + z, t = s - p, rest = (p - (s - t)) + (z - t);
    uint64_t u = bits_of(s);
    if (__builtin_isfinite(s) && rest != 0 && !(u & 1)) {
        u += (rest > 0) == (s > 0) ? 1 : -1ull;
        memcpy(&s, &u, sizeof s);
    }
    return (float)s;
}
float jaxcc_rt_fmaf(float x, float y, float z) {
#ifdef __x86_64__
    if (fused) return fmaf_of_cpu(x, y, z);
#endif
    return exact_fmaf(x, y, z);
}
