#include "sums.h"

uint32_t wide_values(Dtype d) { return d == DT_f32 ? 1 : d == DT_f64 ? 2 : 0; }

void wide_zero(Emit *e, Dtype d, uint32_t w, V *wide) {
    for (uint32_t i = 0; i < wide_values(d); i++) wide[i] = em_float(e, em_vec(e, e->f64, w), 0);
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

void sum_blocks(Types *ts, const Dim *turns, uint32_t n, int64_t most, Dim *block) {
    Dim inner = 1; /* iterations of the innermost loop in one of loop i */
    for (uint32_t i = n; i-- > 0;) {
        Dim all = dim_mul(ts, inner, turns[i]);
        block[i] = 0;
        if (!dim_is_const(all) || all > most) block[i] = dim_max(ts, dim_floordiv(ts, most, dim_max(ts, inner, 1)), 1);
        if (block[i] && dim_is_const(block[i]) && dim_is_const(turns[i])) { /* equal ones */
            Dim blocks = (turns[i] + block[i] - 1) / block[i];
            if (blocks) block[i] = (turns[i] + blocks - 1) / blocks;
        }
        inner = dim_is_const(all) && all > most ? most + 1 : all;
    }
}
