#include "wide.h"

void wide_zero(Emit *e, Dtype d, uint32_t w, V *wide) {
    for (uint32_t i = 0; i < wide_values(d); i++) wide[i] = em_float(e, em_vec(e, e->f64, w), 0);
}
void wide_join(Emit *e, Dtype d, const V *x, V *wide) {
    if (d == DT_f32) {
        wide[0] = em_bin(e, "llvm.fadd", wide[0], x[0]);
        return;
    }
    V sum[WIDE_VALUES] = {wide[0], em_float(e, mlirValueGetType(wide[0]), 0)};
    wide_add(e, d, x[0], sum);
    wide[0] = sum[0];
    wide[1] = em_bin(e, "llvm.fadd", sum[1], em_bin(e, "llvm.fadd", wide[1], x[1]));
}
/* f64: adds x and, exactly, the rounding error of that addition: Knuth's TwoSum. */
void wide_add(Emit *e, Dtype d, V x, V *wide) {
    V a = wide[0];
    if (d == DT_f32) {
        x = em_cast(e, "llvm.fpext", mlirValueGetType(a), x);
        wide[0] = em_bin(e, "llvm.fadd", a, x);
        return;
    }
    V sum = em_bin(e, "llvm.fadd", a, x), of_x = em_bin(e, "llvm.fsub", sum, a);
    V of_a = em_bin(e, "llvm.fsub", sum, of_x);
    V lost = em_bin(e, "llvm.fadd", em_bin(e, "llvm.fsub", a, of_a), em_bin(e, "llvm.fsub", x, of_x));
    wide[0] = sum;
    wide[1] = em_bin(e, "llvm.fadd", wide[1], lost);
}
/* The error of an infinite sum is a NaN, which is ignored. */
V wide_value(Emit *e, Dtype d, const V *wide) {
    uint32_t w = em_width(wide[0]);
    if (d == DT_f32) return em_cast(e, "llvm.fptrunc", em_vec(e, e->f32, w), wide[0]);
    V y = em_bin(e, "llvm.fadd", wide[0], wide[1]);
    return em_select(e, em_cmpf(e, "uno", y, y), wide[0], y);
}
