#include "emit.h"
#include <mlir-c/BuiltinTypes.h>

/* f16 and f32. Processors have instructions for it from x86-64-v3 on, where fma comes too; LLVM
   calls a library elsewhere, that a program of its own must not need. */
typedef struct {
    MlirType i16, i32, f16, f32;
} HalfTypes;
static HalfTypes types_of_width(Emit *e, uint32_t w) {
    return (HalfTypes){em_vec(e, e->i16, w), em_vec(e, e->i32, w), em_vec(e, e->f16, w),
                       em_vec(e, e->f32, w)};
}

/* The exponent is 112 too small when the bits are moved in place: a product corrects it, of
   subnormals too; infinities and NaN get the highest one. */
static V from_half(Emit *e, HalfTypes t, V h) {
    V bits = em_cast(e, "llvm.zext", t.i32, em_cast(e, "llvm.bitcast", t.i16, h));
    V size = em_bin(e, "llvm.and", bits, em_int(e, t.i32, 0x7fff));
    V sign = em_bin(e, "llvm.shl", em_bin(e, "llvm.xor", bits, size), em_int(e, t.i32, 16));
    V small = em_cast(e, "llvm.bitcast", t.f32, em_bin(e, "llvm.shl", size, em_int(e, t.i32, 13)));
    V scaled = em_bin(e, "llvm.fmul", small, em_float(e, t.f32, 0x1p112));
    V r = em_cast(e, "llvm.bitcast", t.i32, scaled);
    V special = em_cmpi(e, "uge", size, em_int(e, t.i32, 0x7c00));
    V highest = em_bin(e, "llvm.or", r, em_int(e, t.i32, 0x7f800000));
    r = em_bin(e, "llvm.or", em_select(e, special, highest, r), sign);
    return em_cast(e, "llvm.bitcast", t.f32, r);
}
/* Nearest, ties to even. Normal results: half of the last kept place, less one if that is even, and
   the exponent's correction are one sum. Subnormal ones: added to 1/2, whose last place is theirs.
 */
static V to_half(Emit *e, HalfTypes t, V x) {
    V bits = em_cast(e, "llvm.bitcast", t.i32, x);
    V size = em_bin(e, "llvm.and", bits, em_int(e, t.i32, 0x7fffffff));
    V sign = em_bin(e, "llvm.lshr", em_bin(e, "llvm.xor", bits, size), em_int(e, t.i32, 16));
    V odd = em_bin(e, "llvm.and", em_bin(e, "llvm.lshr", size, em_int(e, t.i32, 13)),
                   em_int(e, t.i32, 1));
    V bias = em_bin(e, "llvm.add", odd, em_int(e, t.i32, 0xfff - (112 << 23)));
    V normal = em_bin(e, "llvm.lshr", em_bin(e, "llvm.add", size, bias), em_int(e, t.i32, 13));
    V shifted =
        em_bin(e, "llvm.fadd", em_cast(e, "llvm.bitcast", t.f32, size), em_float(e, t.f32, 0.5));
    V subnormal = em_bin(e, "llvm.sub", em_cast(e, "llvm.bitcast", t.i32, shifted),
                         em_int(e, t.i32, 0x3f000000));
    V tiny = em_cmpi(e, "ult", size, em_int(e, t.i32, 113 << 23));
    V r = em_select(e, tiny, subnormal, normal);
    V huge = em_cmpi(e, "uge", size, em_int(e, t.i32, 143 << 23));
    r = em_select(e, huge, em_int(e, t.i32, 0x7c00), r);
    V payload = em_bin(e, "llvm.and", em_bin(e, "llvm.lshr", size, em_int(e, t.i32, 13)),
                       em_int(e, t.i32, 0x3ff));
    V nan = em_bin(e, "llvm.or", payload, em_int(e, t.i32, 0x7e00));
    r = em_select(e, em_cmpf(e, "uno", x, x), nan, r);
    V h = em_cast(e, "llvm.trunc", t.i16, em_bin(e, "llvm.or", r, sign));
    return em_cast(e, "llvm.bitcast", t.f16, h);
}

V em_from_half(Emit *e, V h) {
    HalfTypes t = types_of_width(e, em_width(h));
    return e->target.fma ? em_cast(e, "llvm.fpext", t.f32, h) : from_half(e, t, h);
}
V em_to_half(Emit *e, V x) {
    HalfTypes t = types_of_width(e, em_width(x));
    return e->target.fma ? em_cast(e, "llvm.fptrunc", t.f16, x) : to_half(e, t, x);
}
