#include "numbers.h"
#include <assert.h>
#include <math.h>

Number number_root(int64_t a, int64_t n) {
    static const Number quarter[4] = {{1, 0}, {0, -1}, {-1, 0}, {0, 1}};
    a %= n;
    if (4 * a % n == 0) return quarter[4 * a / n];
    long double turn = 2 * 3.14159265358979323846264338327950288L * (long double)a / (long double)n;
    return (Number){(double)cosl(turn), (double)-sinl(turn)};
}
Number number_product(Number x, Number y) { return (Number){x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re}; }
int64_t numbers_least_prime(int64_t n) {
    for (int64_t p = 2; p * p <= n; p++)
        if (n % p == 0) return p;
    return n;
}
void numbers_transform(int64_t n, const Number *x, int64_t step, const Number *w, Number *y) {
    if (n == 1) {
        *y = *x;
        return;
    }
    int64_t p = numbers_least_prime(n), h = n / p;
    assert(p <= NUMBERS_PRIME);
    for (int64_t j = 0; j < p; j++) numbers_transform(h, x + j * step, p * step, w, y + j * h);
    for (int64_t k = 0; k < h; k++) {
        Number z[NUMBERS_PRIME];
        for (int64_t j = 0; j < p; j++) z[j] = number_product(y[j * h + k], w[j * k * step]);
        for (int64_t q = 0; q < p; q++) {
            Number sum = z[0];
            for (int64_t j = 1; j < p; j++) {
                Number term = number_product(z[j], w[j * q % p * h * step]);
                sum = (Number){sum.re + term.re, sum.im + term.im};
            }
            y[q * h + k] = sum;
        }
    }
}
int64_t numbers_largest_prime(int64_t n) {
    int64_t p = 1;
    for (; n > 1; n /= p) p = numbers_least_prime(n);
    return p;
}
static int64_t power_of(int64_t x, int64_t exponent, int64_t n) {
    int64_t power = 1;
    for (; exponent; exponent /= 2, x = x * x % n)
        if (exponent % 2) power = power * x % n;
    return power;
}
int64_t number_generator(int64_t n) {
    assert(n > 2 && n <= INT32_MAX);
    for (int64_t g = 2;; g++) {
        int64_t rest = n - 1, p = 1;
        bool all = true;
        for (; rest > 1 && all; rest /= p) p = numbers_least_prime(rest), all = power_of(g, (n - 1) / p, n) != 1;
        if (all) return g;
    }
}
Pair numbers_table(Builder *b, Dtype d, uint32_t rank, const Dim *dims, const Number *at) {
    size_t n = 1;
    for (uint32_t i = 0; i < rank; i++) n *= (size_t)dims[i];
    Val part[2];
    for (uint32_t k = 0; k < 2; k++) {
        double *wide = arena_new(b->cx->arena, double, n + 1);
        float *narrow = (float *)wide;
        for (size_t i = 0; i < n; i++) {
            double x = k ? at[i].im : at[i].re;
            if (d == DT_f64)
                wide[i] = x;
            else
                narrow[i] = (float)x;
        }
        part[k] = b_const(b, type_of(b_types(b), d, rank, dims), wide);
    }
    return (Pair){part[0], part[1]};
}
Pair numbers_roots(Builder *b, Dtype d, int64_t from, int64_t to, int64_t P, int64_t n, bool turn) {
    const int64_t rows = to - from;
    Number *w = arena_new(b->cx->arena, Number, rows * P);
    for (int64_t j = 0; j < rows; j++)
        for (int64_t k = 0; k < P; k++) w[turn ? k * rows + j : j * P + k] = number_root((from + j) * k, n);
    return numbers_table(b, d, 2, turn ? (Dim[]){P, rows} : (Dim[]){rows, P}, w);
}
