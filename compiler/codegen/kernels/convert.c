#include "point.h"
#include <math.h>
#include <mlir-c/BuiltinTypes.h>

/* ---- bits */
static MlirType bits_type(Emit *e, Dtype d, uint32_t w) {
    return d == DT_bool ? em_vec(e, e->i1, w) : em_vec(e, mlirIntegerTypeGet(e->mlir, dtype_info[d].bits), w);
}
V point_bits(Emit *e, Dtype d, V reg) {
    if (!point_is_float(d)) return reg;
    return em_cast(e, "llvm.bitcast", bits_type(e, d, em_width(reg)), em_to_memory(e, d, reg));
}
V point_of_bits(Emit *e, Dtype d, V bits) {
    if (!point_is_float(d)) return bits;
    MlirType memory = em_vec(e, em_memory_type(e, d), em_width(bits));
    return em_to_register(e, d, em_cast(e, "llvm.bitcast", memory, bits));
}
V point_bitcast_convert_type(Emit *e, const Point *p, const V *x) {
    return p->in == p->out ? x[0] : point_of_bits(e, p->out, point_bits(e, p->in, x[0]));
}

/* ---- values */
/* Clamps a float, whose type represents these integers exactly, to the range of the integer type `to`; NaN becomes
   0. */
static V limit(Emit *e, Dtype to, V x) {
    uint32_t bits = dtype_info[to].width;
    bool has_sign = point_is_signed(to);
    V low = em_float(e, point_type(x), has_sign ? -ldexp(1, (int)bits - 1) : 0);
    V high = em_float(e, point_type(x), ldexp(1, (int)bits - has_sign) - 1);
    V zero = em_float(e, point_type(x), 0);
    V r = em_select(e, em_cmpf(e, "ogt", x, low), x, low);
    r = em_select(e, em_cmpf(e, "olt", r, high), r, high);
    return em_select(e, em_cmpf(e, "ord", x, x), r, zero);
}
/* Truncates; values out of range become the nearest integer of the type, NaN 0. */
static V float_to_integer(Emit *e, Dtype to, V x) {
    uint32_t bits = dtype_info[to].width, w = em_width(x);
    bool has_sign = point_is_signed(to);
    MlirType f = point_type(x), t = em_vec(e, em_register_type(e, to), w);
    const char *cast = has_sign ? "llvm.fptosi" : "llvm.fptoui";
    if (bits < 32) /* through i32: vectors have no other conversion */
        return em_cast(e, "llvm.trunc", t, em_cast(e, "llvm.fptosi", em_vec(e, e->i32, w), limit(e, to, x)));
    if (bits == 32 && mlirTypeIsAF64(em_elem(x))) return em_cast(e, cast, t, limit(e, to, x));
    V low = em_float(e, f, has_sign ? -ldexp(1, (int)bits - 1) : 0);
    V high = em_float(e, f, ldexp(1, (int)bits - has_sign));
    V enough = em_cmpf(e, "oge", x, low), small = em_cmpf(e, "olt", x, high);
    V inside = em_select(e, em_bin(e, "llvm.and", enough, small), x, em_float(e, f, 0));
    V r = em_cast(e, cast, t, inside);
    r = em_select(e, em_cmpf(e, "oge", x, high), em_int(e, t, dtype_limit(to, true)), r);
    if (!has_sign) return r;
    return em_select(e, em_cmpf(e, "olt", x, low), em_int(e, t, dtype_limit(to, false)), r);
}
/* A format without infinities has its largest value in their place, with which XLA compares: values as large become the
   largest integer, if that is larger. */
static V finite_to_integer(Emit *e, Dtype from, Dtype to, V x) {
    V r = float_to_integer(e, to, x);
    double most = float_decode(&float_format[from], float_most(&float_format[from]));
    if (ldexp(1, (int)dtype_info[to].width - point_is_signed(to)) <= most) return r;
    V above = em_cmpf(e, "oge", x, em_float(e, point_type(x), most));
    r = em_select(e, above, em_int(e, point_type(r), dtype_limit(to, true)), r);
    if (!point_is_signed(to)) return r;
    V below = em_cmpf(e, "ole", x, em_float(e, point_type(x), -most));
    return em_select(e, below, em_int(e, point_type(r), dtype_limit(to, false)), r);
}
static V integer_to_integer(Emit *e, Dtype from, Dtype to, V x) {
    uint32_t a = dtype_info[from].bits, b = dtype_info[to].bits;
    MlirType t = em_vec(e, em_register_type(e, to), em_width(x));
    if (from == DT_bool) return em_cast(e, "llvm.zext", t, x);
    if (a == b) return x;
    return em_cast(e, a > b ? "llvm.trunc" : point_is_signed(from) ? "llvm.sext" : "llvm.zext", t, x);
}
/* An f32 with 20 bits of the mantissa of an f64, the last one sticky, so that rounding it again is rounding the f64
   once. */
static V shortened(Emit *e, V x) {
    uint32_t w = em_width(x);
    MlirType i64 = em_vec(e, e->i64, w);
    V bits = em_cast(e, "llvm.bitcast", i64, x);
    V low = em_bin(e, "llvm.and", bits, em_int(e, i64, UINT32_MAX));
    V rest = em_cmpi(e, "ne", low, em_int(e, i64, 0)), zero = em_int(e, i64, 0);
    V last = em_select(e, rest, em_int(e, i64, (int64_t)1 << 32), zero);
    V high = em_bin(e, "llvm.or", em_bin(e, "llvm.xor", bits, low), last);
    V y = em_cast(e, "llvm.bitcast", point_type(x), high);
    return em_cast(e, "llvm.fptrunc", em_vec(e, e->f32, w), y);
}
/* XLA rounds f64 once, except through f32 for bf16; for e8m0, values out of f32's range are lost. */
static V shorter_float(Emit *e, Dtype to, V x) {
    MlirType f32 = em_vec(e, e->f32, em_width(x));
    if (to == DT_f32 || to == DT_bf16) return em_cast(e, "llvm.fptrunc", f32, x);
    V r = shortened(e, x);
    if (float_format[to].special != FLOAT_POWER) return r;
    V below = em_cmpf(e, "olt", x, em_float(e, point_type(x), 0x1p-127));
    return em_select(e, below, em_float(e, f32, 0), r);
}
/* Integers to floats below f32 through f32, possibly rounding twice, as XLA does. */
static V to_float(Emit *e, Dtype from, Dtype to, V x) {
    MlirType t = em_vec(e, em_register_type(e, to), em_width(x));
    if (from == DT_bool) return em_select(e, x, em_float(e, t, 1), em_float(e, t, 0));
    if (!point_is_float(from)) return em_cast(e, point_is_signed(from) ? "llvm.sitofp" : "llvm.uitofp", t, x);
    if ((from == DT_f64) == (to == DT_f64)) return x;
    return to == DT_f64 ? em_cast(e, "llvm.fpext", t, x) : shorter_float(e, to, x);
}
static V to_bool(Emit *e, Dtype from, V x) {
    if (point_is_float(from)) return em_cmpf(e, "une", x, em_float(e, point_type(x), 0));
    return em_cmpi(e, "ne", x, em_int(e, point_type(x), 0));
}
V point_convert_element_type(Emit *e, const Point *p, const V *x) {
    if (p->in == p->out) return x[0];
    if (p->out == DT_bool) return to_bool(e, p->in, x[0]);
    if (point_is_float(p->out)) return to_float(e, p->in, p->out, x[0]);
    if (!point_is_float(p->in)) return integer_to_integer(e, p->in, p->out, x[0]);
    return float_format[p->in].special == FLOAT_FINITE ? finite_to_integer(e, p->in, p->out, x[0])
                                                       : float_to_integer(e, p->out, x[0]);
}

/* ---- reduce_precision */
/* Exponent and mantissa bits of the type, and those to reduce to. */
typedef struct {
    int64_t exponent, mantissa, to_exponent, to_mantissa;
} Format;
/* Adds half of the last kept place, less one if that is even: a carry into the exponent is right. */
static V round_mantissa(Emit *e, const Format *f, V bits) {
    MlirType t = point_type(bits);
    int64_t drop = f->mantissa - f->to_mantissa, last = (int64_t)1 << drop;
    V odd = em_bin(e, "llvm.lshr", bits, em_int(e, t, drop));
    V bias = em_bin(e, "llvm.add", em_bin(e, "llvm.and", odd, em_int(e, t, 1)), em_int(e, t, (last >> 1) - 1));
    return em_bin(e, "llvm.and", em_bin(e, "llvm.add", bits, bias), em_int(e, t, -last));
}
/* Exponents above the range become infinity, those below (including subnormals) zero, of the same sign. */
static V limit_exponent(Emit *e, const Format *f, V bits) {
    MlirType t = point_type(bits);
    int64_t bias = ((int64_t)1 << (f->exponent - 1)) - 1;
    int64_t reach = ((int64_t)1 << (f->to_exponent - 1)) - 1;
    V all = em_int(e, t, (((int64_t)1 << f->exponent) - 1) << f->mantissa);
    V size = em_bin(e, "llvm.and", bits, all);
    V over = em_cmpi(e, "ugt", size, em_int(e, t, (bias + reach) << f->mantissa));
    V under = em_cmpi(e, "ule", size, em_int(e, t, (bias - reach) << f->mantissa));
    V sign = em_int(e, t, (int64_t)((uint64_t)1 << (f->exponent + f->mantissa)));
    V zero = em_bin(e, "llvm.and", bits, sign);
    V r = em_select(e, over, em_bin(e, "llvm.or", zero, all), bits);
    return em_select(e, under, zero, r);
}
/* Narrow floats are reduced in the type in which XLA computes them. */
V point_reduce_precision(Emit *e, const Point *p, const V *x) {
    Dtype d = dtype_arithmetic(p->in);
    Format f = {.exponent = float_format[d].exponent, .mantissa = float_format[d].mantissa};
    f.to_exponent = param_number(p->e, K_exponent_bits);
    f.to_mantissa = param_number(p->e, K_mantissa_bits);
    V r = point_bits(e, d, x[0]);
    if (f.to_mantissa < f.mantissa) r = round_mantissa(e, &f, r);
    if (f.to_exponent < f.exponent) r = limit_exponent(e, &f, r);
    return em_select(e, em_cmpf(e, "uno", x[0], x[0]), x[0], point_of_bits(e, d, r));
}
