#include "approximate.h"
#include "point.h"
#include <math.h>
#include <mlir-c/BuiltinAttributes.h>
#include <mlir-c/BuiltinTypes.h>

/* Semantics are those of XLA on the CPU, including its odd cases, which are noted at each rule. */

#define POINT(f) point_##f
PointRule *const point_rule[NPRIMS] = {
#define PRIM(id, text, arity, type, simplify, facts, jvp, transpose, vmap, lowering) [P_##id] = lowering,
#include "../../prims.def"
};

static uint32_t bits_of(V x) { return mlirIntegerTypeGetWidth(em_elem(x)); }
static V with_flag(Emit *e, const char *name, const char *flag, V x) {
    Attr a = {flag, mlirIntegerAttrGet(e->i1, 0)};
    return em_1(e, name, point_type(x), 1, &x, 1, &a);
}

/* ---- arithmetic: one operation for each kind of element; NULL: bool has none */
typedef struct {
    const char *bools, *sints, *uints, *floats;
} ByKind;
static const char *by_kind(ByKind op, Dtype d) {
    switch (dtype_info[d].kind) {
    case DK_BOOL: return op.bools;
    case DK_SINT: return op.sints;
    case DK_UINT: return op.uints;
    default: return op.floats;
    }
}
static V binary(Emit *e, const Point *p, const V *x, ByKind op) { return em_bin(e, by_kind(op, p->in), x[0], x[1]); }
V point_add(Emit *e, const Point *p, const V *x) {
    return binary(e, p, x, (ByKind){"llvm.or", "llvm.add", "llvm.add", "llvm.fadd"});
}
V point_sub(Emit *e, const Point *p, const V *x) {
    return binary(e, p, x, (ByKind){"llvm.xor", "llvm.sub", "llvm.sub", "llvm.fsub"});
}
static V product(Emit *e, const Point *p, const V *x) {
    return binary(e, p, x, (ByKind){"llvm.and", "llvm.mul", "llvm.mul", "llvm.fmul"});
}
/* With out_dtype the operands, of any types, are converted to it first. */
V point_mul(Emit *e, const Point *p, const V *x) {
    if (!p->e || !param_has(p->e, K_out_dtype)) return product(e, p, x);
    Dtype to = p->out;
    V y[2];
    for (uint32_t i = 0; i < 2; i++) {
        Point convert = {.in = val_array(e->cx, p->e->in.at[i])->dtype, .out = to};
        y[i] = em_round(e, to, point_convert_element_type(e, &convert, &x[i]));
    }
    return product(e, &(Point){.in = to, .out = to}, y);
}
/* NaN wins; -0 < +0. On CPUs, LLVM has branches for two scalars: instructions that have the second operand where the
   first is not better are NaN of both orders where one is NaN, and differ otherwise in the signs of zeros at most. */
static V extremum_of(Emit *e, const Point *p, const V *x, bool max, ByKind op) {
    MlirType type = point_type(x[0]);
    bool f32 = mlirTypeEqual(type, e->f32), f64 = mlirTypeEqual(type, e->f64);
    if (e->target->device || (!f32 && !f64)) return binary(e, p, x, op);
    const char *better = max ? "ogt" : "olt";
    V one = em_select(e, em_cmpf(e, better, x[0], x[1]), x[0], x[1]), nan = em_cmpf(e, "uno", x[0], x[1]);
    V other = em_select(e, em_cmpf(e, better, x[1], x[0]), x[1], x[0]);
    MlirType bits = f32 ? e->i32 : e->i64;
    V both = em_bin(e, max ? "llvm.and" : "llvm.or", em_cast(e, "llvm.bitcast", bits, one),
                    em_cast(e, "llvm.bitcast", bits, other));
    if (max) both = em_bin(e, "llvm.or", both, em_cast(e, "llvm.sext", bits, nan));
    return em_cast(e, "llvm.bitcast", type, both);
}
V point_max(Emit *e, const Point *p, const V *x) {
    return extremum_of(e, p, x, true, (ByKind){"llvm.or", "llvm.intr.smax", "llvm.intr.umax", "llvm.intr.maximum"});
}
V point_min(Emit *e, const Point *p, const V *x) {
    return extremum_of(e, p, x, false, (ByKind){"llvm.and", "llvm.intr.smin", "llvm.intr.umin", "llvm.intr.minimum"});
}
V point_clamp(Emit *e, const Point *p, const V *x) {
    V above[2] = {x[1], x[0]};
    V both[2] = {point_max(e, p, above), x[2]};
    return point_min(e, p, both);
}
V point_fma(Emit *e, const Point *p, const V *x) { return em_fma(e, x[0], x[1], x[2]); }
V point_copy(Emit *e, const Point *p, const V *x) { return x[0]; }
V point_square(Emit *e, const Point *p, const V *x) { return product(e, p, (V[]){x[0], x[0]}); }
/* The high half of the product of twice the width; XLA has 4 bits in a byte here. */
V point_mulhi(Emit *e, const Point *p, const V *x) {
    uint32_t bits = bits_of(x[0]), drop = dtype_info[p->in].width == 2 ? 2 : bits;
    MlirType wide = em_vec(e, mlirIntegerTypeGet(e->mlir, 2 * bits), em_width(x[0]));
    const char *extend = point_is_signed(p->in) ? "llvm.sext" : "llvm.zext";
    V product = em_bin(e, "llvm.mul", em_cast(e, extend, wide, x[0]), em_cast(e, extend, wide, x[1]));
    V high = em_bin(e, "llvm.lshr", product, em_int(e, wide, drop));
    return em_cast(e, "llvm.trunc", point_type(x[0]), high);
}
V point_neg(Emit *e, const Point *p, const V *x) {
    if (point_is_float(p->in)) return em_un(e, "llvm.fneg", x[0]);
    return em_bin(e, "llvm.sub", em_int(e, point_type(x[0]), 0), x[0]);
}
/* The least integer is its own absolute value. */
V point_abs(Emit *e, const Point *p, const V *x) {
    if (point_is_float(p->in)) return em_un(e, "llvm.intr.fabs", x[0]);
    return point_is_signed(p->in) ? with_flag(e, "llvm.intr.abs", "is_int_min_poison", x[0]) : x[0];
}
/* Zeros and NaN are their own sign. */
V point_sign(Emit *e, const Point *p, const V *x) {
    MlirType t = point_type(x[0]);
    if (!point_is_float(p->in)) {
        V one = em_int(e, t, 1);
        if (!point_is_signed(p->in)) return em_bin(e, "llvm.intr.umin", x[0], one);
        V below = em_bin(e, "llvm.intr.smin", x[0], one);
        return em_bin(e, "llvm.intr.smax", below, em_int(e, t, -1));
    }
    V unit = em_bin(e, "llvm.intr.copysign", em_float(e, t, 1), x[0]);
    return em_select(e, em_cmpf(e, "one", x[0], em_float(e, t, 0)), unit, x[0]);
}

/* By repeated multiplication, each product rounded to the type, as in JAX: by the bits of y from the lowest up; 1 /
   x^-y for negative y. */
V point_integer_pow(Emit *e, const Point *p, const V *x) {
    int64_t y = param_number(p->e, K_y);
    uint64_t n = y < 0 ? -(uint64_t)y : (uint64_t)y;
    bool floats = point_is_float(p->in), first = true;
    V one = floats ? em_float(e, point_type(x[0]), 1) : em_int(e, point_type(x[0]), 1);
    V power = x[0], all = one;
    for (; n; n >>= 1) {
        if (n & 1) {
            all = first ? power : em_round(e, p->in, product(e, p, (V[]){all, power}));
            first = false;
        }
        if (n > 1) power = em_round(e, p->in, product(e, p, (V[]){power, power}));
    }
    return y < 0 ? point_div(e, p, (V[]){one, all}) : all;
}

/* ---- division */
/* The value of an integer that is a constant, or the broadcast of one; 0: it is not known, or 0. */
static int64_t known_integer(V x) {
    if (!mlirValueIsAOpResult(x)) return 0;
    MlirOperation op = mlirOpResultGetOwner(x);
    MlirStringRef name = mlirIdentifierStr(mlirOperationGetName(op));
    Str s = {name.data, (uint32_t)name.length};
    if (str_is(s, "llvm.shufflevector")) return known_integer(mlirOperationGetOperand(op, 0));
    if (str_is(s, "llvm.insertelement")) return known_integer(mlirOperationGetOperand(op, 1));
    if (!str_is(s, "llvm.mlir.constant")) return 0;
    MlirAttribute value = mlirOperationGetAttributeByName(op, mlirStringRefCreateFromCString("value"));
    if (mlirAttributeIsADenseElements(value)) {
        if (!mlirDenseElementsAttrIsSplat(value)) return 0;
        value = mlirDenseElementsAttrGetSplatValue(value);
    }
    return mlirIntegerAttrGetValueInt(value);
}
/* Truncated a / b, where b is not 0 and the quotient fits. There are no vector instructions: up to 32 bits, floats of
   more than twice as many bits give it exactly (a/b is at least 1/b below the next integer, which is more than half an
   ulp). */
static V raw_quotient(Emit *e, const Point *p, V a, V b) {
    bool has_sign = point_is_signed(p->in);
    uint32_t w = em_width(a), bits = bits_of(a);
    if (w == 1 || bits == 64 || known_integer(b)) return em_bin(e, has_sign ? "llvm.sdiv" : "llvm.udiv", a, b);
    MlirType f = em_vec(e, bits <= 16 ? e->f32 : e->f64, w);
    const char *to = has_sign ? "llvm.sitofp" : "llvm.uitofp";
    V q = em_bin(e, "llvm.fdiv", em_cast(e, to, f, a), em_cast(e, to, f, b));
    return em_cast(e, has_sign ? "llvm.fptosi" : "llvm.fptoui", point_type(a), q);
}
/* a / b; a itself where b is 0 (*zero) or the quotient does not fit: there the smallest a is divided as a + 1, and one
   is added again. Sums keep the conditions in lanes of a's width, which selections would not. */
static V guarded_quotient(Emit *e, const Point *p, V a, V b, V *zero) {
    MlirType t = point_type(a);
    int64_t known = known_integer(b);
    if (known && known != -1) {
        *zero = em_int(e, em_vec(e, e->i1, em_width(a)), 0);
        return raw_quotient(e, p, a, b);
    }
    *zero = em_cmpi(e, "eq", b, em_int(e, t, 0));
    V divisor = em_bin(e, "llvm.add", b, em_cast(e, "llvm.zext", t, *zero));
    if (!point_is_signed(p->in)) return raw_quotient(e, p, a, divisor);
    V least = em_cmpi(e, "eq", a, em_int(e, t, INT64_MIN >> (64 - bits_of(a))));
    V minus = em_cmpi(e, "eq", b, em_int(e, t, -1));
    V one = em_cast(e, "llvm.zext", t, em_bin(e, "llvm.and", least, minus));
    V q = raw_quotient(e, p, em_bin(e, "llvm.add", a, one), divisor);
    return em_bin(e, "llvm.add", q, one);
}
/* Integers: x / 0 has all bits set, the smallest one / -1 is itself. */
V point_div(Emit *e, const Point *p, const V *x) {
    if (point_is_float(p->in) && p->k && p->k->normal_divisors) return normal_inverse(e, x[1]);
    if (point_is_float(p->in)) return em_bin(e, "llvm.fdiv", x[0], x[1]);
    V zero, q = guarded_quotient(e, p, x[0], x[1], &zero);
    return em_select(e, zero, em_int(e, point_type(q), -1), q);
}

/* On a device, where frem is not exact, fmod by a program; else by the runtime, lane by lane. */
static V slow_fmod(Emit *e, const Point *p, V x, V y) {
    uint32_t w = em_width(x);
    if (e->target->device) {
        V r = kernel_stdlib(p->k, "fmod", p->in == DT_f64 ? DT_f64 : DT_f32, (V[]){x, y}, 2, w);
        return em_bin(e, "llvm.intr.copysign", r, x);
    }
    if (w == 1) return em_bin(e, "llvm.frem", x, y);
    For f = em_for(e, em_i64(e, 0), em_i64(e, w), em_i64(e, 1), 1, &x);
    V lane = em_arg(&f.scope, 0), so_far = em_arg(&f.scope, 1);
    V a = em_1(e, "llvm.extractelement", em_elem(x), 2, (V[]){so_far, lane}, 0, NULL);
    V b = em_1(e, "llvm.extractelement", em_elem(x), 2, (V[]){y, lane}, 0, NULL);
    V o[3] = {so_far, em_bin(e, "llvm.frem", a, b), lane};
    V next = em_1(e, "llvm.insertelement", point_type(x), 3, o, 0, NULL), result;
    em_for_end(e, &f, &next, &result);
    return result;
}
/* The quotient of magnitudes, rounded and truncated, is off by at most one if it is below 2^22 (f32) or 2^51; then x -
   q·y is a multiple of y's last place and below 2·y, hence exact, and so is one correction by y. All other cases are
   rare. */
static V fast_fmod(Emit *e, V x, V y, V *rare) {
    MlirType t = point_type(x);
    bool f64 = mlirTypeIsAF64(em_elem(x));
    V a = em_un(e, "llvm.intr.fabs", x), b = em_un(e, "llvm.intr.fabs", y);
    V zero = em_float(e, t, 0), inf = em_float(e, t, (double)INFINITY);
    V q = em_un(e, "llvm.intr.trunc", em_bin(e, "llvm.fdiv", a, b));
    V r = em_fma(e, em_un(e, "llvm.fneg", q), b, a);
    r = em_select(e, em_cmpf(e, "olt", r, zero), em_bin(e, "llvm.fadd", r, b), r);
    r = em_select(e, em_cmpf(e, "oge", r, b), em_bin(e, "llvm.fsub", r, b), r);
    r = em_select(e, em_cmpf(e, "olt", a, b), a, r);
    V large = em_cmpf(e, "oge", q, em_float(e, t, f64 ? 0x1p51 : 0x1p22));
    V proper = em_bin(e, "llvm.and", em_cmpf(e, "olt", a, inf), em_cmpf(e, "ogt", b, zero));
    *rare = em_bin(e, "llvm.and", large, proper);
    return em_bin(e, "llvm.intr.copysign", r, x);
}
/* Integers: x rem 0 is x. Floats: C's fmod. */
V point_rem(Emit *e, const Point *p, const V *x) {
    if (!point_is_float(p->in)) {
        V zero, q = guarded_quotient(e, p, x[0], x[1], &zero);
        return em_bin(e, "llvm.sub", x[0], em_bin(e, "llvm.mul", q, x[1]));
    }
    V rare, r = fast_fmod(e, x[0], x[1], &rare), result;
    V any = em_width(rare) == 1 ? rare : em_cast(e, "llvm.intr.vector.reduce.or", e->i1, rare);
    If slow = em_if(e, any);
    V all = slow_fmod(e, p, x[0], x[1]);
    em_else(e, &slow, 1, &all);
    em_if_end(e, &slow, &r, &result);
    return result;
}

/* ---- bits */
V point_and(Emit *e, const Point *p, const V *x) { return em_bin(e, "llvm.and", x[0], x[1]); }
V point_or(Emit *e, const Point *p, const V *x) { return em_bin(e, "llvm.or", x[0], x[1]); }
V point_xor(Emit *e, const Point *p, const V *x) { return em_bin(e, "llvm.xor", x[0], x[1]); }
V point_not(Emit *e, const Point *p, const V *x) {
    return em_bin(e, "llvm.xor", x[0], em_int(e, point_type(x[0]), -1));
}
/* Integers of 2 and 4 bits as signed or unsigned ones, which decides the other bits of their registers. */
static V as_signed(Emit *e, Dtype d, V x) { return em_round(e, d == DT_u2 ? DT_i2 : d == DT_u4 ? DT_i4 : d, x); }
static V as_unsigned(Emit *e, Dtype d, V x) { return em_round(e, d == DT_i2 ? DT_u2 : d == DT_i4 ? DT_u4 : d, x); }
/* Amounts are unsigned; shifts by the width or more give 0. */
static V logical_shift(Emit *e, const Point *p, const char *op, V x, V by) {
    MlirType t = point_type(x);
    V fits = em_cmpi(e, "ult", by, em_int(e, t, dtype_info[p->in].width));
    /* LLVM 22 drops the comparison for PTX, whose shifts have amounts of 32 bits */
    if (e->target->device) by = em_bin(e, "llvm.intr.umin", by, em_int(e, t, (int64_t)dtype_info[p->in].width - 1));
    return em_select(e, fits, em_bin(e, op, x, by), em_int(e, t, 0));
}
V point_shift_left(Emit *e, const Point *p, const V *x) { return logical_shift(e, p, "llvm.shl", x[0], x[1]); }
V point_shift_right_logical(Emit *e, const Point *p, const V *x) {
    return logical_shift(e, p, "llvm.lshr", as_unsigned(e, p->in, x[0]), x[1]);
}
/* The top bit is replicated, for unsigned integers too. */
V point_shift_right_arithmetic(Emit *e, const Point *p, const V *x) {
    V most = em_int(e, point_type(x[0]), (int64_t)dtype_info[p->in].width - 1);
    V by = em_bin(e, "llvm.intr.umin", x[1], most);
    return em_bin(e, "llvm.ashr", as_signed(e, p->in, x[0]), by);
}
V point_clz(Emit *e, const Point *p, const V *x) {
    V n = with_flag(e, "llvm.intr.ctlz", "is_zero_poison", as_unsigned(e, p->in, x[0]));
    int64_t more = (int64_t)bits_of(n) - dtype_info[p->in].width;
    return more ? em_bin(e, "llvm.sub", n, em_int(e, point_type(n), more)) : n;
}
/* For i4 XLA counts the bits of a byte. */
V point_population_count(Emit *e, const Point *p, const V *x) {
    return em_un(e, "llvm.intr.ctpop", p->in == DT_i4 ? x[0] : as_unsigned(e, p->in, x[0]));
}

/* ---- floats */
V point_floor(Emit *e, const Point *p, const V *x) { return em_un(e, "llvm.intr.floor", x[0]); }
V point_ceil(Emit *e, const Point *p, const V *x) { return em_un(e, "llvm.intr.ceil", x[0]); }
V point_sqrt(Emit *e, const Point *p, const V *x) { return em_un(e, "llvm.intr.sqrt", x[0]); }
/* rounding_method 0: halves away from zero; 1: to even. */
V point_round(Emit *e, const Point *p, const V *x) {
    return em_un(e, rounds_to_even(p->e) ? "llvm.intr.roundeven" : "llvm.intr.round", x[0]);
}
V point_is_finite(Emit *e, const Point *p, const V *x) {
    V size = em_un(e, "llvm.intr.fabs", x[0]);
    return em_cmpf(e, "olt", size, em_float(e, point_type(size), (double)INFINITY));
}
/* The next value of x's type towards y: its bits in sign and magnitude, plus or minus one. */
V point_nextafter(Emit *e, const Point *p, const V *x) {
    V a = point_bits(e, p->in, x[0]), b = point_bits(e, p->in, x[1]);
    MlirType t = point_type(a);
    V one = em_int(e, t, 1), zero = em_int(e, t, 0);
    V top = em_int(e, t, (int64_t)((uint64_t)1 << (dtype_info[p->in].width - 1)));
    V rest = em_bin(e, "llvm.xor", top, em_int(e, t, -1));
    V size_a = em_bin(e, "llvm.and", a, rest), size_b = em_bin(e, "llvm.and", b, rest);
    V signs = em_bin(e, "llvm.and", em_bin(e, "llvm.xor", a, b), top);
    V opposite = em_cmpi(e, "ne", signs, zero);
    V shrinks = em_bin(e, "llvm.or", opposite, em_cmpi(e, "ugt", size_a, size_b));
    V stepped = em_bin(e, "llvm.add", a, em_select(e, shrinks, em_int(e, t, -1), one));
    V least = em_bin(e, "llvm.or", em_bin(e, "llvm.and", b, top), one);
    V next = em_select(e, em_cmpi(e, "eq", size_a, zero), least, stepped);
    V r = em_select(e, em_cmpf(e, "oeq", x[0], x[1]), x[1], point_of_bits(e, p->in, next));
    V nan = em_bin(e, "llvm.fadd", x[0], x[1]);
    return em_select(e, em_cmpf(e, "uno", x[0], x[1]), nan, r);
}

/* ---- comparisons: unordered is false, but for ne */
static V comparison(Emit *e, const Point *p, const V *x, ByKind predicate) {
    const char *name = by_kind(predicate, p->in);
    return point_is_float(p->in) ? em_cmpf(e, name, x[0], x[1]) : em_cmpi(e, name, x[0], x[1]);
}
V point_eq(Emit *e, const Point *p, const V *x) { return comparison(e, p, x, (ByKind){"eq", "eq", "eq", "oeq"}); }
V point_ne(Emit *e, const Point *p, const V *x) { return comparison(e, p, x, (ByKind){"ne", "ne", "ne", "une"}); }
V point_lt(Emit *e, const Point *p, const V *x) { return comparison(e, p, x, (ByKind){"ult", "slt", "ult", "olt"}); }
V point_le(Emit *e, const Point *p, const V *x) { return comparison(e, p, x, (ByKind){"ule", "sle", "ule", "ole"}); }
V point_gt(Emit *e, const Point *p, const V *x) { return comparison(e, p, x, (ByKind){"ugt", "sgt", "ugt", "ogt"}); }
V point_ge(Emit *e, const Point *p, const V *x) { return comparison(e, p, x, (ByKind){"uge", "sge", "uge", "oge"}); }
/* Total order -NaN < -inf … -0 < +0 … +NaN: that of the bits as signed integers, negative ones
   mirrored. Narrow floats are ordered as f32: their bits may lack a sign, or have it for NaN. */
static V total_order(Emit *e, Dtype d, V x) {
    if (!point_is_float(d)) return x;
    V b = point_bits(e, dtype_is_narrow(d) ? DT_f32 : d, x);
    V sign = em_bin(e, "llvm.ashr", b, em_int(e, point_type(b), (int64_t)bits_of(b) - 1));
    return em_bin(e, "llvm.xor", b, em_bin(e, "llvm.lshr", sign, em_int(e, point_type(b), 1)));
}
static V total_comparison(Emit *e, const Point *p, const V *x, ByKind predicate) {
    V a = total_order(e, p->in, x[0]), b = total_order(e, p->in, x[1]);
    return em_cmpi(e, by_kind(predicate, p->in), a, b);
}
V point_eq_to(Emit *e, const Point *p, const V *x) {
    return total_comparison(e, p, x, (ByKind){"eq", "eq", "eq", "eq"});
}
V point_lt_to(Emit *e, const Point *p, const V *x) {
    return total_comparison(e, p, x, (ByKind){"ult", "slt", "ult", "slt"});
}
V point_le_to(Emit *e, const Point *p, const V *x) {
    return total_comparison(e, p, x, (ByKind){"ule", "sle", "ule", "sle"});
}

/* Case number `which` of n; the first below, the last above. */
static V choose(Emit *e, V which, const V *cases, uint32_t first, uint32_t n) {
    if (n == 1) return cases[first];
    uint32_t half = n / 2;
    V low = em_cmpi(e, "slt", which, em_int(e, point_type(which), first + half));
    V a = choose(e, which, cases, first, half), b = choose(e, which, cases, first + half, n - half);
    return em_select(e, low, a, b);
}
V point_select_n(Emit *e, const Point *p, const V *x) {
    uint32_t n = p->e->in.n - 1;
    bool two = mlirTypeEqual(em_elem(x[0]), e->i1) && n == 2;
    return two ? em_select(e, x[0], x[2], x[1]) : choose(e, x[0], x + 1, 0, n);
}

/* ---- results */
V point_result(Emit *e, Prim prim, Dtype d, V y) {
    /* exact bf16 and f16 need no rounding, narrower types do: they may lack a zero of one sign, or the negative of
       their smallest integer. */
    if (prim_is(prim, EXACT)) return dtype_is_narrow(d) ? em_round(e, d, y) : y;
    Dtype first = dtype_arithmetic(d);
    if (first != d && prim != P_convert_element_type) y = em_round(e, first, y);
    return em_round(e, d, y);
}

/* ---- reductions */
static PointRule *combine(Prim reduce) { return point_rule[prim_combiner[reduce]]; }
/* NaN wins; of -0 and +0 either may: the path from a to the result is one maximum and one or, whereas the exact order
   of zeros takes twice as long. LLVM 22 makes two comparisons of a selection instead of the or: a maximum of 128³ along
   two axes in 203 us, not 225. A GPU has an instruction for f32. */
static V extreme_of(Emit *e, const Point *p, bool max, V a, V b) {
    const char *better = max ? "ogt" : "olt";
    if (!e->target->device && em_width(a) == 1)
        return max ? point_max(e, p, (V[]){a, b}) : point_min(e, p, (V[]){a, b});
    if (e->target->device && mlirTypeEqual(mlirValueGetType(a), e->f32))
        return em_bin(e, max ? "llvm.intr.maximum" : "llvm.intr.minimum", a, b);
    MlirType type = mlirValueGetType(a), bits = mlirTypeEqual(em_elem(a), e->f64) ? e->i64 : e->i32;
    bits = em_vec(e, bits, em_width(a));
    V best = em_cast(e, "llvm.bitcast", bits, em_select(e, em_cmpf(e, better, b, a), b, a));
    V nan = em_cast(e, "llvm.sext", bits, em_cmpf(e, "uno", b, b));
    return em_cast(e, "llvm.bitcast", type, em_bin(e, "llvm.or", best, nan));
}
V point_combine(Emit *e, Prim reduce, Dtype d, V a, V b) {
    Point p = {.in = d, .out = d};
    PointRule *rule = combine(reduce);
    if (point_is_float(d) && rule == point_max) return extreme_of(e, &p, true, a, b);
    if (point_is_float(d) && rule == point_min) return extreme_of(e, &p, false, a, b);
    V r = rule(e, &p, (V[]){a, b});
    return prim_in_order(reduce, d) ? em_round(e, d, r) : r;
}
static double identity_float(Prim reduce, Dtype d) {
    switch (prim_neutral[reduce]) {
    case NEUTRAL_ONE: return 1;
    case NEUTRAL_LEAST:
    case NEUTRAL_MOST: return dtype_float_limit(d, prim_neutral[reduce] == NEUTRAL_MOST);
    default: /* powers of two have none */ return float_format[d].special == FLOAT_POWER ? (double)NAN : 0;
    }
}
V point_identity(Emit *e, Prim reduce, Dtype d, uint32_t w) {
    MlirType t = em_vec(e, em_register_type(e, d), w);
    if (point_is_float(d)) return em_float(e, t, identity_float(reduce, d));
    switch (prim_neutral[reduce]) {
    case NEUTRAL_ONE: return em_int(e, t, 1);
    case NEUTRAL_ONES: return em_int(e, t, point_is_signed(d) ? -1 : dtype_limit(d, true));
    case NEUTRAL_LEAST: return em_int(e, t, dtype_limit(d, false));
    case NEUTRAL_MOST: return em_int(e, t, dtype_limit(d, true));
    default: return em_int(e, t, 0);
    }
}
