#include "exact.h"
#include <math.h>

#define N MPFR_RNDN
/* More bits than are wanted, for what a sum or a difference loses. */
static mpfr_prec_t more(mpfr_t y) { return mpfr_get_prec(y) + 128; }

/* ---- what MPFR has */
#define UNARY(name)                                                                                                    \
    bool exact_##name(mpfr_t y, const mpfr_t *x) {                                                                     \
        mpfr_##name(y, x[0], N);                                                                                       \
        return true;                                                                                                   \
    }
UNARY(exp)
UNARY(exp2)
UNARY(expm1)
UNARY(log)
UNARY(log1p)
UNARY(sin)
UNARY(cos)
UNARY(tan)
UNARY(asin)
UNARY(acos)
UNARY(atan)
UNARY(sinh)
UNARY(cosh)
UNARY(tanh)
UNARY(asinh)
UNARY(acosh)
UNARY(atanh)
UNARY(cbrt)
UNARY(erf)
UNARY(erfc)
UNARY(digamma)
UNARY(sqrt)

#define BINARY(name)                                                                                                   \
    bool exact_##name(mpfr_t y, const mpfr_t *x) {                                                                     \
        mpfr_##name(y, x[0], x[1], N);                                                                                 \
        return true;                                                                                                   \
    }
BINARY(pow)
BINARY(atan2)

bool exact_square(mpfr_t y, const mpfr_t *x) { return mpfr_sqr(y, x[0], N), true; }
bool exact_floor(mpfr_t y, const mpfr_t *x) { return mpfr_floor(y, x[0]), true; }
bool exact_ceil(mpfr_t y, const mpfr_t *x) { return mpfr_ceil(y, x[0]), true; }
bool exact_rsqrt(mpfr_t y, const mpfr_t *x) {
    mpfr_rec_sqrt(y, x[0], N);
    if (mpfr_zero_p(x[0])) mpfr_set_inf(y, mpfr_signbit(x[0]) ? -1 : 1);
    return true;
}
bool exact_lgamma(mpfr_t y, const mpfr_t *x) {
    int sign;
    mpfr_lgamma(y, &sign, x[0], N);
    return true;
}
/* 1 / (1 + e^-x) */
bool exact_logistic(mpfr_t y, const mpfr_t *x) {
    mpfr_neg(y, x[0], N);
    mpfr_exp(y, y, N);
    mpfr_add_ui(y, y, 1, N);
    mpfr_ui_div(y, 1, y, N);
    return true;
}

/* ---- by series and iteration */

/* Newton's method on erf(y) - |x|, which is concave: from below it never passes the zero. */
bool exact_erf_inv(mpfr_t y, const mpfr_t *x) {
    if (mpfr_nan_p(x[0]) || mpfr_cmpabs_ui(x[0], 1) > 0) return mpfr_set_nan(y), true;
    if (mpfr_cmpabs_ui(x[0], 1) == 0) return mpfr_set_inf(y, mpfr_sgn(x[0])), true;
    if (mpfr_zero_p(x[0])) return mpfr_set(y, x[0], N), true;
    mpfr_t a, f, d;
    mpfr_inits2(more(y), a, f, d, NULL);
    mpfr_abs(a, x[0], N);
    mpfr_set(y, a, N);
    for (int i = 0; i < 300; i++) {
        mpfr_erf(f, y, N);
        mpfr_sub(f, a, f, N);
        mpfr_sqr(d, y, N);
        mpfr_exp(d, d, N);
        mpfr_mul(f, f, d, N);
        mpfr_const_pi(d, N);
        mpfr_sqrt(d, d, N);
        mpfr_div_2ui(d, d, 1, N);
        mpfr_mul(f, f, d, N);
        mpfr_add(y, y, f, N);
        if (mpfr_zero_p(f) || mpfr_get_exp(f) < mpfr_get_exp(y) - 150) break;
    }
    mpfr_copysign(y, y, x[0], N);
    mpfr_clears(a, f, d, NULL);
    return true;
}

/* e^-|x| I_n(x): the power series (DLMF 10.25.2) up to 300, the asymptotic one (10.40.1) beyond. */
static bool bessel(mpfr_t y, const mpfr_t *x, unsigned long n) {
    if (!mpfr_number_p(x[0])) return false;
    mpfr_t a, t, u, sum;
    mpfr_inits2(more(y), a, t, u, sum, NULL);
    mpfr_abs(a, x[0], N);
    mpfr_set_ui(t, 1, N);
    mpfr_set_ui(sum, 1, N);
    bool near = mpfr_cmp_ui(a, 300) <= 0;
    mpfr_sqr(u, a, N);
    mpfr_div_2ui(u, u, 2, N);
    for (unsigned long k = 1; mpfr_zero_p(t) || mpfr_get_exp(t) > mpfr_get_exp(sum) - 300; k++) {
        if (near) { /* t (x^2/4) / (k (k + n)) */
            mpfr_mul(t, t, u, N);
            mpfr_div_ui(t, t, k, N);
            mpfr_div_ui(t, t, k + n, N);
        } else { /* t ((2 k - 1)^2 - 4 n^2) / (8 k x) */
            long q = (long)((2 * k - 1) * (2 * k - 1)) - 4 * (long)(n * n);
            mpfr_mul_si(t, t, q, N);
            mpfr_div_ui(t, t, 8 * k, N);
            mpfr_div(t, t, a, N);
        }
        mpfr_add(sum, sum, t, N);
        if (mpfr_zero_p(t)) break;
    }
    if (near) {
        mpfr_neg(t, a, N);
        mpfr_exp(t, t, N);
        mpfr_mul(sum, sum, t, N);
        mpfr_div_2ui(a, a, 1, N);
        if (n) mpfr_mul(sum, sum, a, N);
    } else {
        mpfr_const_pi(t, N);
        mpfr_mul(t, t, a, N);
        mpfr_mul_2ui(t, t, 1, N);
        mpfr_rec_sqrt(t, t, N);
        mpfr_mul(sum, sum, t, N);
    }
    mpfr_set(y, sum, N);
    if (n) mpfr_copysign(y, y, x[0], N);
    mpfr_clears(a, t, u, sum, NULL);
    return true;
}
bool exact_bessel_i0e(mpfr_t y, const mpfr_t *x) { return bessel(y, x, 0); }
bool exact_bessel_i1e(mpfr_t y, const mpfr_t *x) { return bessel(y, x, 1); }

/* The Euler-Maclaurin formula (DLMF 25.11.5) after 60 terms, with 60. */
bool exact_zeta(mpfr_t y, const mpfr_t *x) {
    enum { TERMS = 60 };
    if (mpfr_cmp_ui(x[0], 1) <= 0 || mpfr_sgn(x[1]) <= 0) return false;
    if (mpfr_cmp_ui(x[0], 1000) > 0 || mpfr_cmp_d(x[1], 1e30) > 0) return false;
    mpfr_t a, t, u, s, w, pi;
    mpfr_inits2(more(y), a, t, u, s, w, pi, NULL);
    mpfr_neg(u, x[0], N);
    mpfr_set_ui(s, 0, N);
    for (unsigned long k = 0; k < TERMS; k++) {
        mpfr_add_ui(a, x[1], k, N);
        mpfr_pow(t, a, u, N);
        mpfr_add(s, s, t, N);
    }
    mpfr_add_ui(a, x[1], TERMS, N);
    mpfr_pow(w, a, u, N);
    mpfr_sub_ui(u, x[0], 1, N); /* a^(1 - x) / (x - 1) + a^-x / 2 */
    mpfr_div(t, a, u, N);
    mpfr_add_d(t, t, 0.5, N);
    mpfr_mul(t, t, w, N);
    mpfr_add(s, s, t, N);
    /* B_2k / (2 k)! = ±2 zeta(2 k) / (2 pi)^2k, times x (x + 1) … (x + 2 k - 2) a^(1 - x - 2 k) */
    mpfr_const_pi(pi, N);
    mpfr_mul_2ui(pi, pi, 1, N);
    mpfr_mul(pi, pi, a, N);
    mpfr_sqr(pi, pi, N);
    mpfr_mul(w, w, a, N);
    mpfr_mul_2ui(w, w, 1, N);
    for (unsigned long k = 1; k <= TERMS; k++) {
        mpfr_div(w, w, pi, N);
        for (unsigned long i = k == 1 ? 0 : 2 * k - 3; i <= 2 * k - 2; i++) {
            mpfr_add_ui(t, x[0], i, N);
            mpfr_mul(w, w, t, N);
        }
        mpfr_zeta_ui(t, 2 * k, N);
        mpfr_mul(t, t, w, N);
        if (k % 2)
            mpfr_add(s, s, t, N);
        else
            mpfr_sub(s, s, t, N);
    }
    mpfr_set(y, s, N);
    mpfr_clears(a, t, u, s, w, pi, NULL);
    return true;
}
/* (-1)^(n+1) n! zeta(n + 1, x) */
bool exact_polygamma(mpfr_t y, const mpfr_t *x) {
    if (!mpfr_integer_p(x[0]) || mpfr_sgn(x[0]) < 0 || mpfr_cmp_ui(x[0], 100) > 0) return false;
    if (mpfr_zero_p(x[0])) return exact_digamma(y, x + 1);
    mpfr_t at[2], f;
    mpfr_inits2(more(y), at[0], at[1], f, NULL);
    mpfr_add_ui(at[0], x[0], 1, N);
    mpfr_set(at[1], x[1], N);
    bool known = exact_zeta(y, (const mpfr_t *)at);
    unsigned long n = mpfr_get_ui(x[0], N);
    mpfr_fac_ui(f, n, N);
    mpfr_mul(y, y, f, N);
    if (n % 2 == 0) mpfr_neg(y, y, N);
    mpfr_clears(at[0], at[1], f, NULL);
    return known;
}

/* ---- gamma and beta */

/* x^a e^-x / Gamma(a + 1) */
bool exact_poisson(mpfr_t y, const mpfr_t *x) {
    if (mpfr_sgn(x[0]) <= 0 || mpfr_sgn(x[1]) <= 0) return false;
    if (mpfr_cmp_d(x[0], 1e9) > 0 || mpfr_cmp_d(x[1], 1e9) > 0) return false;
    mpfr_t t, u;
    mpfr_inits2(more(y), t, u, NULL);
    mpfr_log(t, x[1], N);
    mpfr_mul(t, t, x[0], N);
    mpfr_sub(t, t, x[1], N);
    mpfr_add_ui(u, x[0], 1, N);
    mpfr_lngamma(u, u, N);
    mpfr_sub(t, t, u, N);
    mpfr_exp(y, t, N);
    mpfr_clears(t, u, NULL);
    return true;
}
/* The series of P (DLMF 8.7.1) for x < a + 1, MPFR's Gamma(a, x) / Gamma(a) beyond. */
static bool incomplete(mpfr_t y, const mpfr_t *x, bool upper) {
    if (!exact_poisson(y, x)) return false;
    if (mpfr_cmp_d(x[0], 1e-30) < 0 || mpfr_cmp_d(x[1], 1e-30) < 0) return false;
    if (mpfr_cmp_d(x[0], 1e4) > 0 || mpfr_cmp_d(x[1], 1e4) > 0) return false;
    mpfr_t a, t, s;
    mpfr_inits2(more(y), a, t, s, NULL);
    mpfr_add_ui(a, x[0], 1, N);
    bool series = mpfr_less_p(x[1], a);
    if (series) {
        const mpfr_t *at = x;
        exact_poisson(t, at);
        mpfr_set(s, t, N);
        while (mpfr_get_exp(t) > mpfr_get_exp(s) - (long)mpfr_get_prec(s)) {
            mpfr_mul(t, t, x[1], N);
            mpfr_div(t, t, a, N);
            mpfr_add(s, s, t, N);
            mpfr_add_ui(a, a, 1, N);
        }
    } else {
        mpfr_gamma_inc(s, x[0], x[1], N);
        mpfr_gamma(t, x[0], N);
        mpfr_div(s, s, t, N);
    }
    if (series == upper) mpfr_ui_sub(s, 1, s, N);
    mpfr_set(y, s, N);
    mpfr_clears(a, t, s, NULL);
    return true;
}
bool exact_igamma(mpfr_t y, const mpfr_t *x) { return incomplete(y, x, false); }
bool exact_igammac(mpfr_t y, const mpfr_t *x) { return incomplete(y, x, true); }

/* A central difference of the smaller of P and -Q, whose error is the square of the step. */
bool exact_igamma_grad_a(mpfr_t y, const mpfr_t *x) {
    mpfr_t lo[2], hi[2], p, q, h;
    mpfr_inits2(600, lo[0], lo[1], hi[0], hi[1], p, q, h, NULL);
    mpfr_div_2ui(h, x[0], 150, N);
    mpfr_sub(lo[0], x[0], h, N);
    mpfr_add(hi[0], x[0], h, N);
    mpfr_set(lo[1], x[1], N);
    mpfr_set(hi[1], x[1], N);
    bool upper = mpfr_greater_p(x[1], x[0]);
    bool known = incomplete(p, (const mpfr_t *)lo, upper) && incomplete(q, (const mpfr_t *)hi, upper);
    mpfr_sub(p, q, p, N);
    mpfr_div(p, p, h, N);
    mpfr_div_2ui(y, p, 1, N);
    if (upper) mpfr_neg(y, y, N);
    mpfr_clears(lo[0], lo[1], hi[0], hi[1], p, q, h, NULL);
    return known;
}
/* -(dP/da) / (dP/dx), dP/dx = a poisson(a, x) / x */
bool exact_random_gamma_grad(mpfr_t y, const mpfr_t *x) {
    mpfr_t p;
    mpfr_inits2(more(y), p, NULL);
    bool known = exact_poisson(p, x) && exact_igamma_grad_a(y, x);
    if (known) {
        mpfr_mul(p, p, x[0], N);
        mpfr_div(y, y, p, N);
        mpfr_mul(y, y, x[1], N);
        mpfr_neg(y, y, N);
    }
    mpfr_clear(p);
    return known;
}

/* A central difference of it in operand k. */
static bool gamma_grad_moved(mpfr_t y, const mpfr_t *x, int k) {
    mpfr_t lo[2], hi[2], p, q, h;
    mpfr_inits2(600, lo[0], lo[1], hi[0], hi[1], p, q, h, NULL);
    mpfr_div_2ui(h, x[k], 80, N);
    for (int i = 0; i < 2; i++) mpfr_set(lo[i], x[i], N), mpfr_set(hi[i], x[i], N);
    mpfr_sub(lo[k], x[k], h, N);
    mpfr_add(hi[k], x[k], h, N);
    bool known = exact_random_gamma_grad(p, (const mpfr_t *)lo) && exact_random_gamma_grad(q, (const mpfr_t *)hi);
    mpfr_sub(p, q, p, N);
    mpfr_div(p, p, h, N);
    mpfr_div_2ui(y, p, 1, N);
    mpfr_clears(lo[0], lo[1], hi[0], hi[1], p, q, h, NULL);
    return known;
}
bool exact_random_gamma_grad_a(mpfr_t y, const mpfr_t *x) { return gamma_grad_moved(y, x, 0); }
bool exact_random_gamma_grad_x(mpfr_t y, const mpfr_t *x) { return gamma_grad_moved(y, x, 1); }

/* x^a (1 - x)^b / (a B(a, b)) (1 + (a + b) / (a + 1) x + …) (DLMF 8.17.8) for x < (a + 1) / (a + b
   + 2), else 1 less that of 1 - x, b, a. */
bool exact_regularized_incomplete_beta(mpfr_t y, const mpfr_t *x) {
    for (int i = 0; i < 2; i++)
        if (!(mpfr_cmp_d(x[i], 1e-30) > 0 && mpfr_cmp_d(x[i], 1e4) < 0)) return false;
    if (!(mpfr_sgn(x[2]) > 0 && mpfr_cmp_ui(x[2], 1) < 0)) return false;
    mpfr_t a, b, z, w, t, s, u;
    mpfr_inits2(more(y), a, b, z, w, t, s, u, NULL);
    mpfr_add(s, x[0], x[1], N);
    mpfr_add_ui(s, s, 2, N);
    mpfr_add_ui(t, x[0], 1, N);
    mpfr_div(t, t, s, N);
    bool swapped = !mpfr_less_p(x[2], t);
    mpfr_set(a, x[swapped], N);
    mpfr_set(b, x[!swapped], N);
    mpfr_ui_sub(w, 1, x[2], N);
    mpfr_set(z, x[2], N);
    if (swapped) mpfr_swap(z, w);
    mpfr_pow(t, z, a, N);
    mpfr_pow(u, w, b, N);
    mpfr_mul(t, t, u, N);
    mpfr_beta(u, a, b, N);
    mpfr_div(t, t, u, N);
    mpfr_div(t, t, a, N);
    mpfr_set(s, t, N);
    mpfr_add(b, b, a, N);
    while (!mpfr_zero_p(t) && mpfr_get_exp(t) > mpfr_get_exp(s) - (long)mpfr_get_prec(y)) {
        mpfr_add_ui(a, a, 1, N);
        mpfr_mul(t, t, b, N);
        mpfr_mul(t, t, z, N);
        mpfr_div(t, t, a, N);
        mpfr_add(s, s, t, N);
        mpfr_add_ui(b, b, 1, N);
    }
    if (swapped) mpfr_ui_sub(s, 1, s, N);
    mpfr_set(y, s, N);
    mpfr_clears(a, b, z, w, t, s, u, NULL);
    return true;
}
