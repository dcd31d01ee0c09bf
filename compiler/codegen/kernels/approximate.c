#include "approximate.h"
#include "threads.h"
#include <math.h>

/* Instructions that approximate f32 have more than 20 right bits, and bf16 and f16 keep 8 and 11 of them. So such
   results are as good as those of programs of stdlib/, which take 20 instructions, or of exact divisions, which branch.
   That for tanh has 11, which is enough for bf16: less than 0.7 of a unit in the last place. Of f32 only exp is
   computed so: 2^r near 1 has an error of 1 ulp. */

static const double LOG2_E = 1.4426950408889634;
/* The f32 next to it and the rest. */
static const double LOG2_E_HIGH = 1.44269502162933349609375, LOG2_E_LOW = 1.9259629911266174e-8;

static V unary(Kernel *k, const char *name, V x) { return threads_intrinsic(k->e, name, k->e->f32, 1, &x); }
static V constant(Kernel *k, double v) { return em_float(k->e, k->e->f32, v); }
static V times(Kernel *k, V x, double by) { return em_bin(k->e, "llvm.fmul", x, constant(k, by)); }
static V exp2_of(Kernel *k, V x) { return unary(k, "llvm.nvvm.ex2.approx.f32", x); }
/* Without subnormal numbers: one instruction, not four. */
static V normal_exp2(Kernel *k, V x) { return unary(k, "llvm.nvvm.ex2.approx.ftz.f32", x); }

typedef V Rule(Kernel *, const V *x);
static V quotient(Kernel *k, const V *x) { return threads_intrinsic(k->e, "llvm.nvvm.div.full", k->e->f32, 2, x); }
static V power_of_e(Kernel *k, const V *x) { return exp2_of(k, times(k, x[0], LOG2_E)); }
/* With the sign of x, of |x|: (1 − t)/(1 + t), t = e^(−2x); near 0, where 1 − t has few bits, x − x³/3. */
static V tangent(Kernel *k, const V *x) {
    Emit *e = k->e;
    V size = em_un(e, "llvm.intr.fabs", x[0]), one = constant(k, 1), square = em_bin(e, "llvm.fmul", size, size);
    V t = normal_exp2(k, times(k, size, -2 * LOG2_E));
    V ends = unary(k, "llvm.nvvm.rcp.approx.ftz.f", em_bin(e, "llvm.fadd", one, t));
    V far = em_bin(e, "llvm.fmul", em_bin(e, "llvm.fsub", one, t), ends);
    V near = em_fma(e, em_bin(e, "llvm.fmul", square, size), constant(k, -1.0 / 3), size);
    V small = em_cmpf(e, "olt", size, constant(k, 1.0 / 32));
    return em_bin(e, "llvm.intr.copysign", em_select(e, small, near, far), x[0]);
}
static V short_tangent(Kernel *k, const V *x) {
    Emit *e = k->e;
    MlirStringRef approximate = mlirStringRefCreateFromCString("#llvm.fastmath<afn>");
    Attr flags = {"fastmathFlags", mlirAttributeParseGet(e->mlir, approximate)};
    return em_1(e, "llvm.intr.tanh", e->f32, 1, x, 1, &flags);
}
static V power_of_two(Kernel *k, const V *x) { return exp2_of(k, x[0]); }
/* 1 / (1 + e^-x), or e^x / (1 + e^x) for negative x. */
static V logistic(Kernel *k, const V *x) {
    Emit *e = k->e;
    V one = constant(k, 1), power = exp2_of(k, times(k, em_un(e, "llvm.intr.fabs", x[0]), -LOG2_E));
    V above = em_select(e, em_cmpf(e, "olt", x[0], constant(k, 0)), power, one);
    return em_bin(e, "llvm.fmul", above, unary(k, "llvm.nvvm.rcp.approx.ftz.f", em_bin(e, "llvm.fadd", power, one)));
}
static V inverse_root(Kernel *k, const V *x) { return unary(k, "llvm.nvvm.rsqrt.approx.f", x[0]); }
static Rule *const rule[NPRIMS] = {[P_div] = quotient,      [P_exp] = power_of_e, [P_exp2] = power_of_two,
                                   [P_logistic] = logistic, [P_tanh] = tangent,   [P_rsqrt] = inverse_root};

/* e^x in f32, within 2 ulp as NVIDIA's: 2^n 2^r, n + r = x log2 e, which is taken in two parts. Adding 1.5 2^23 + 127
   leaves n with the exponent's bias in the low bits; n is a normal number's exponent, and beyond these 2^r does the
   rest. Nine instructions instead of 22, which took as long as memory gives the rows of a softmax. */
static V power_of_e_f32(Kernel *k, const V *x) {
    static const double round = 12582912 + 127, least = round - 126, most = round + 127 - 1;
    Emit *e = k->e;
    V high = constant(k, LOG2_E_HIGH), t = em_fma(e, x[0], high, constant(k, round));
    t = em_bin(e, "llvm.intr.maxnum", t, constant(k, least));
    t = em_bin(e, "llvm.intr.minnum", t, constant(k, most));
    V r = em_fma(e, x[0], high, em_bin(e, "llvm.fsub", constant(k, round), t));
    r = normal_exp2(k, em_fma(e, x[0], constant(k, LOG2_E_LOW), r));
    V bits = em_bin(e, "llvm.shl", em_cast(e, "llvm.bitcast", e->i32, t), em_int(e, e->i32, 23));
    return em_bin(e, "llvm.fmul", r, em_cast(e, "llvm.bitcast", e->f32, bits));
}

V approximate(Kernel *k, Prim prim, Dtype d, const V *x) {
    if (k->e->target->device && d == DT_f32 && prim == P_exp && !k->in_stdlib) return power_of_e_f32(k, x);
    bool narrow = dtype_info[d].kind == DK_FLOAT && dtype_info[d].bits <= 16;
    if (!k->e->target->device || !narrow || !rule[prim]) return (V){NULL};
    assert(k->w == 1);
    if (prim == P_tanh && d == DT_bf16) return short_tangent(k, x);
    return rule[prim](k, x);
}
/* One step of Newton's: what NVIDIA's division does after its tests. */
V normal_inverse(Emit *e, V x) {
    V y = threads_intrinsic(e, "llvm.nvvm.rcp.approx.ftz.f", e->f32, 1, &x), one = em_float(e, e->f32, 1);
    return em_fma(e, y, em_fma(e, em_un(e, "llvm.fneg", x), y, one), y);
}
