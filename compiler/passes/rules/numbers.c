#include "numbers.h"
#include <math.h>

Number number_root(int64_t a, int64_t n) {
    static const Number quarter[4] = {{1, 0}, {0, -1}, {-1, 0}, {0, 1}};
    a %= n;
    if (4 * a % n == 0) return quarter[4 * a / n];
    long double turn = 2 * 3.14159265358979323846264338327950288L * (long double)a / (long double)n;
    return (Number){(double)cosl(turn), (double)-sinl(turn)};
}
Number number_product(Number x, Number y) { return (Number){x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re}; }
void numbers_transform(int64_t n, const Number *x, int64_t step, const Number *w, Number *y) {
    if (n == 1) {
        *y = *x;
        return;
    }
    int64_t h = n / 2;
    numbers_transform(h, x, 2 * step, w, y);
    numbers_transform(h, x + step, 2 * step, w, y + h);
    for (int64_t k = 0; k < h; k++) {
        Number even = y[k], odd = number_product(y[k + h], w[k * step]);
        y[k] = (Number){even.re + odd.re, even.im + odd.im};
        y[k + h] = (Number){even.re - odd.re, even.im - odd.im};
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
