#include "emit.h"
#include <math.h>
#include <mlir-c/BuiltinAttributes.h>
#include <mlir-c/BuiltinTypes.h>

/* Element types without registers. Floats of 16 bits and less are f32 in registers, rounded after each operation;
   integers of 4 and 2 bits are i8, extended from their bits. */

/* ---- floats of any format: conversions by integer operations, for which vectors have instructions */
typedef struct {
    Emit *e;
    const FloatFormat *f;
    int drop;     /* mantissa bits of f32 that the format lacks */
    int exponent; /* f32's exponent bias less the format's */
    MlirType i32, f32;
} Format;
static Format format_of(Emit *e, Dtype d, V x) {
    const FloatFormat *f = &float_format[d];
    uint32_t w = em_width(x);
    return (Format){e, f, 23 - f->mantissa, 127 - f->bias, em_vec(e, e->i32, w), em_vec(e, e->f32, w)};
}
static V number(const Format *t, int64_t v) { return em_int(t->e, t->i32, v); }
static V op(const Format *t, const char *name, V x, int64_t y) { return em_bin(t->e, name, x, number(t, y)); }
static V bits_of(const Format *t, V x) { return em_cast(t->e, "llvm.bitcast", t->i32, x); }
static V float_of(const Format *t, V bits) { return em_cast(t->e, "llvm.bitcast", t->f32, bits); }
static int magnitude(const Format *t) { return t->f->exponent + t->f->mantissa; } /* bits of it */

/* Powers of two are the exponents of f32; its 0 stands for 2^-127. */
static V decode_power(const Format *t, V bits) {
    V r = op(t, "llvm.shl", bits, 23);
    r = em_select(t->e, em_cmpi(t->e, "eq", bits, number(t, 0)), number(t, 0x400000), r);
    return em_select(t->e, em_cmpi(t->e, "eq", bits, number(t, 255)), number(t, 0x7fc00000), r);
}
/* Rounding carries half of a place into the exponent; if that is 0, anything above 2^-127 does. Values that are not
   positive and finite become NaN. */
static V encode_power(const Format *t, V x) {
    Emit *e = t->e;
    V bits = bits_of(t, x);
    V tiny = em_cmpi(e, "ult", bits, number(t, 1 << 23));
    V half = em_select(e, tiny, number(t, 0x3fffff), number(t, 0x400000));
    V r = op(t, "llvm.lshr", em_bin(e, "llvm.add", bits, half), 23);
    r = op(t, "llvm.intr.umin", r, 255);
    return em_select(e, em_cmpi(e, "sgt", bits, number(t, 0)), r, number(t, 255));
}

/* With the bits moved in place the exponent is too small: a product corrects it, for subnormals too; infinities and NaN
   get the highest exponent. */
static V decode(const Format *t, V bits) {
    Emit *e = t->e;
    const FloatFormat *f = t->f;
    if (f->special == FLOAT_POWER) return float_of(t, decode_power(t, bits));
    V size = op(t, "llvm.and", bits, (1 << magnitude(t)) - 1);
    V sign = op(t, "llvm.shl", em_bin(e, "llvm.xor", bits, size), 31 - magnitude(t));
    V small = float_of(t, op(t, "llvm.shl", size, t->drop));
    V r = bits_of(t, em_bin(e, "llvm.fmul", small, em_float(e, t->f32, ldexp(1, t->exponent))));
    if (f->special == FLOAT_IEEE || f->special == FLOAT_FN) {
        V special = em_cmpi(e, "ugt", size, number(t, float_most(f)));
        r = em_select(e, special, op(t, "llvm.or", r, 0x7f800000), r);
    }
    r = em_bin(e, "llvm.or", r, sign);
    if (f->special == FLOAT_FNUZ)
        r = em_select(e, em_cmpi(e, "eq", bits, number(t, float_nan(f))), number(t, 0xffc00000), r);
    return float_of(t, r);
}
/* To nearest, ties to even. Normal results: half of the last kept place, less one if that is even, and the correction
   of the exponent are added in one sum. Subnormal results: adding a power of two whose last place is theirs rounds
   them. */
static V encode(const Format *t, V x) {
    Emit *e = t->e;
    const FloatFormat *f = t->f;
    if (f->special == FLOAT_POWER) return encode_power(t, x);
    V bits = bits_of(t, x), size = op(t, "llvm.and", bits, 0x7fffffff);
    V sign = op(t, "llvm.lshr", em_bin(e, "llvm.xor", bits, size), 31 - magnitude(t));
    V odd = op(t, "llvm.and", op(t, "llvm.lshr", size, t->drop), 1);
    V half = op(t, "llvm.add", odd, (1 << (t->drop - 1)) - 1 - ((int64_t)t->exponent << 23));
    V normal = op(t, "llvm.lshr", em_bin(e, "llvm.add", size, half), t->drop);
    int unit = 1 - f->bias + t->drop; /* 2^unit has the places of subnormal numbers */
    V sum = em_bin(e, "llvm.fadd", float_of(t, size), em_float(e, t->f32, ldexp(1, unit)));
    V subnormal = op(t, "llvm.sub", bits_of(t, sum), (int64_t)(127 + unit) << 23);
    V tiny = em_cmpi(e, "ult", size, number(t, (int64_t)(t->exponent + 1) << 23));
    V r = em_select(e, tiny, subnormal, normal);
    V huge = em_cmpi(e, "ugt", r, number(t, float_most(f)));
    r = em_select(e, huge, number(t, float_overflow(f)), r);
    V nan = em_cmpf(e, "uno", x, x), none = number(t, float_nan(f));
    if (f->special == FLOAT_IEEE) { /* keeps its bits, if one is left */
        V kept = op(t, "llvm.and", op(t, "llvm.lshr", size, t->drop), (1 << magnitude(t)) - 1);
        V infinite = em_cmpi(e, "eq", kept, number(t, float_overflow(f)));
        none = em_select(e, infinite, none, kept);
    }
    if (f->special != FLOAT_FINITE) r = em_select(e, nan, none, r);
    if (f->special == FLOAT_FNUZ) sign = em_select(e, em_cmpi(e, "eq", r, number(t, 0)), r, sign);
    r = em_bin(e, "llvm.or", r, sign);
    return f->special == FLOAT_FINITE ? em_select(e, nan, number(t, float_nan(f)), r) : r;
}

/* ---- f16: x86-64-v3, which has fma too, has instructions; for older levels LLVM would call a support library, which
   our libraries must not need. */
static V from_f16(Emit *e, V m) {
    Format t = format_of(e, DT_f16, m);
    if (e->target->fma) return em_cast(e, "llvm.fpext", t.f32, m);
    MlirType i16 = em_vec(e, e->i16, em_width(m));
    return decode(&t, em_cast(e, "llvm.zext", t.i32, em_cast(e, "llvm.bitcast", i16, m)));
}
static V to_f16(Emit *e, V r) {
    Format t = format_of(e, DT_f16, r);
    MlirType i16 = em_vec(e, e->i16, em_width(r)), f16 = em_vec(e, e->f16, em_width(r));
    if (e->target->fma) return em_cast(e, "llvm.fptrunc", f16, r);
    return em_cast(e, "llvm.bitcast", f16, em_cast(e, "llvm.trunc", i16, encode(&t, r)));
}

/* ---- bf16: the high half of f32. Devices have instructions, of which LLVM makes operations on bf16 itself where an
   operation on f32 is exact enough to be rounded once more. */
static MlirType bf16(Emit *e, uint32_t w) { return em_vec(e, mlirBF16TypeGet(e->mlir), w); }
static V from_bf16(Emit *e, V m) {
    Format t = format_of(e, DT_bf16, m);
    uint32_t w = em_width(m);
    if (e->target->device) return em_cast(e, "llvm.fpext", t.f32, em_cast(e, "llvm.bitcast", bf16(e, w), m));
    return float_of(&t, op(&t, "llvm.shl", em_cast(e, "llvm.zext", t.i32, m), 16));
}
static V to_bf16(Emit *e, V r) {
    Format t = format_of(e, DT_bf16, r);
    uint32_t w = em_width(r);
    MlirType i16 = em_vec(e, e->i16, w);
    if (e->target->device) return em_cast(e, "llvm.bitcast", i16, em_cast(e, "llvm.fptrunc", bf16(e, w), r));
    return em_cast(e, "llvm.trunc", i16, op(&t, "llvm.lshr", bits_of(&t, r), 16));
}
/* Round to nearest even at bit 16: add 0x7fff and the lowest kept bit; NaN stays a (quiet) NaN. */
static V round_bf16(Emit *e, V x) {
    Format t = format_of(e, DT_bf16, x);
    if (e->target->device) return em_cast(e, "llvm.fpext", t.f32, em_cast(e, "llvm.fptrunc", bf16(e, em_width(x)), x));
    V bits = bits_of(&t, x);
    V odd = op(&t, "llvm.and", op(&t, "llvm.lshr", bits, 16), 1);
    V up = em_bin(e, "llvm.add", bits, op(&t, "llvm.add", odd, 0x7fff));
    V kept = em_select(e, em_cmpf(e, "uno", x, x), op(&t, "llvm.or", bits, 0x400000), up);
    return float_of(&t, op(&t, "llvm.and", kept, -65536));
}

/* ---- integers */
static V extend(Emit *e, Dtype d, V x) {
    MlirType t = mlirValueGetType(x);
    uint32_t width = dtype_info[d].width;
    if (dtype_info[d].kind == DK_UINT) return em_bin(e, "llvm.and", x, em_int(e, t, (1 << width) - 1));
    V gap = em_int(e, t, 8 - width);
    return em_bin(e, "llvm.ashr", em_bin(e, "llvm.shl", x, gap), gap);
}

/* ---- all of them */
static bool is_float(Dtype d) { return dtype_info[d].kind == DK_FLOAT; }

MlirType em_memory_type(Emit *e, Dtype d) {
    switch (d) {
    case DT_f32: return e->f32;
    case DT_f64: return e->f64;
    case DT_f16: return e->f16;
    default:
        switch (dtype_info[d].bits) {
        case 8: return e->i8;
        case 16: return e->i16;
        case 32: return e->i32;
        case 128: return e->i128;
        default: return e->i64;
        }
    }
}
MlirType em_register_type(Emit *e, Dtype d) {
    if (d == DT_bool) return e->i1;
    return is_float(d) && d != DT_f64 ? e->f32 : em_memory_type(e, d);
}
V em_to_register(Emit *e, Dtype d, V m) {
    uint32_t w = em_width(m);
    if (d == DT_bool) return em_cmpi(e, "ne", m, em_int(e, em_vec(e, e->i8, w), 0));
    if (d == DT_f16) return from_f16(e, m);
    if (d == DT_bf16) return from_bf16(e, m);
    if (!dtype_is_narrow(d)) return m;
    if (!is_float(d)) return extend(e, d, m);
    Format t = format_of(e, d, m);
    V bits = em_cast(e, "llvm.zext", t.i32, m);
    return decode(&t, d == DT_f4_e2m1fn ? op(&t, "llvm.and", bits, 15) : bits);
}
V em_to_memory(Emit *e, Dtype d, V r) {
    uint32_t w = em_width(r);
    if (d == DT_bool) return em_cast(e, "llvm.zext", em_vec(e, e->i8, w), r);
    if (d == DT_f16) return to_f16(e, r);
    if (d == DT_bf16) return to_bf16(e, r);
    if (!dtype_is_narrow(d) || !is_float(d)) return r;
    Format t = format_of(e, d, r);
    return em_cast(e, "llvm.trunc", em_vec(e, e->i8, w), encode(&t, r));
}
V em_round(Emit *e, Dtype d, V r) {
    if (d == DT_bf16) return round_bf16(e, r);
    if (d == DT_f16) return from_f16(e, to_f16(e, r));
    if (!dtype_is_narrow(d)) return r;
    if (!is_float(d)) return extend(e, d, r);
    Format t = format_of(e, d, r);
    return decode(&t, encode(&t, r));
}
