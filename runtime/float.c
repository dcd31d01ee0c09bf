#include "float.h"
#include <math.h>
#include <stdbool.h>

static uint32_t ones(int bits) { return (1u << bits) - 1; }
static uint32_t sign_bit(const FloatFormat *f) { return 1u << (f->exponent + f->mantissa); }

uint32_t float_most(const FloatFormat *f) {
    uint32_t all = ones(f->exponent + f->mantissa);
    if (f->special == FLOAT_IEEE) return all - ones(f->mantissa) - 1;
    return f->special == FLOAT_FN || f->special == FLOAT_POWER ? all - 1 : all;
}
uint32_t float_overflow(const FloatFormat *f) { return float_most(f) + (f->special != FLOAT_FINITE); }
uint32_t float_nan(const FloatFormat *f) {
    if (f->special == FLOAT_FINITE) return sign_bit(f);
    return float_overflow(f) | (f->special == FLOAT_IEEE ? 1u << (f->mantissa - 1) : 0);
}

double float_decode(const FloatFormat *f, uint32_t bits) {
    uint32_t m = bits & ones(f->mantissa), size = bits & ones(f->exponent + f->mantissa);
    int e = (int)(size >> f->mantissa);
    if (f->special == FLOAT_POWER) return size == ones(f->exponent) ? NAN : ldexp(1, e - f->bias);
    double sign = bits & sign_bit(f) ? -1 : 1;
    if (f->special == FLOAT_FNUZ && bits == float_nan(f)) return -NAN;
    if (f->special != FLOAT_FNUZ && size > float_most(f))
        return f->special == FLOAT_IEEE && !m ? sign * INFINITY : copysign(NAN, sign);
    return sign * (e ? ldexp(m + (1u << f->mantissa), e - f->bias - f->mantissa) : ldexp(m, 1 - f->bias - f->mantissa));
}

/* 2^-bias is the smallest value: a number below it becomes that value, or twice that. */
static uint32_t encode_power(const FloatFormat *f, double x) {
    int e;
    if (!(x > 0) || isinf(x)) return float_nan(f);
    double m = frexp(x, &e); /* in [1/2, 1) */
    int least = 1 - f->bias;
    int r = e < least ? x > ldexp(1, -f->bias) : e - 1 + (m >= 0.75) + f->bias;
    return r > (int)float_most(f) ? float_nan(f) : (uint32_t)r;
}
uint32_t float_encode(const FloatFormat *f, double x) {
    if (f->special == FLOAT_POWER) return encode_power(f, x);
    uint32_t sign = signbit(x) ? sign_bit(f) : 0;
    if (isnan(x)) return float_nan(f) | (f->special == FLOAT_FNUZ ? 0 : sign);
    int e = 0, least = 1 - f->bias;
    if (isinf(x)) return float_overflow(f) | sign;
    frexp(x, &e);
    if (--e < least || x == 0) e = least;
    /* The pattern is the number of units, plus the exponent's excess over the smallest one. */
    double units = nearbyint(ldexp(fabs(x), f->mantissa - e));
    double pattern = units + ldexp(e - least, f->mantissa);
    uint32_t r = pattern > float_most(f) ? float_overflow(f) : (uint32_t)pattern;
    return r == 0 && f->special == FLOAT_FNUZ ? 0 : r | sign;
}
