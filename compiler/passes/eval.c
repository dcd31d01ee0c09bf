/* Elementwise primitives on scalars, with JAX's meaning: integers wrap; x / 0 is -1 and x rem 0 is x; shifts by the
   width or more give 0 or the sign; conversions of floats to integers saturate, NaN gives 0; max and min propagate NaN.
   Floats below f32 are computed in f32 and rounded, narrow ones first to f16. */
#include "eval.h"
#include "rewrite.h"
#include <math.h>

/* ---- bits and numbers */

bool scalar_dtype(Dtype d) { return dtype_info[d].kind <= DK_FLOAT; }

static bool is_float(Dtype d) { return dtype_info[d].kind == DK_FLOAT; }
static bool is_signed(Dtype d) { return dtype_info[d].kind == DK_SINT; }
static unsigned width(Dtype d) { return dtype_info[d].width; }
static uint64_t mask(Dtype d) { return UINT64_MAX >> (64 - width(d)); }
static uint64_t top_bit(Dtype d) { return (uint64_t)1 << (width(d) - 1); }

static Scalar of_bits(Dtype d, uint64_t bits) { return (Scalar){d, bits & mask(d)}; }
static Scalar of_bool(bool b) { return (Scalar){DT_bool, b}; }

int64_t scalar_int(Scalar s) {
    bool negative = is_signed(s.dtype) && (s.bits & top_bit(s.dtype));
    return (int64_t)(negative ? s.bits | ~mask(s.dtype) : s.bits);
}

static double f64_of(Scalar s) {
    if (s.dtype != DT_f64 && s.dtype != DT_f32) return float_decode(&float_format[s.dtype], (uint32_t)s.bits);
    uint32_t low = (uint32_t)s.bits;
    double x;
    float y;
    memcpy(&x, &s.bits, sizeof x);
    memcpy(&y, &low, sizeof y);
    return s.dtype == DT_f64 ? x : (double)y;
}
static float f32_of(Scalar s) { return (float)f64_of(s); }

double scalar_float(Scalar s) { return f64_of(s); }

Scalar scalar_f64(double x) {
    Scalar s = {DT_f64, 0};
    memcpy(&s.bits, &x, sizeof x);
    return s;
}

Scalar scalar_f32(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (Scalar){DT_f32, bits};
}

/* Rounded once. */
static Scalar of_float(Dtype d, double x) {
    if (d == DT_f64) return scalar_f64(x);
    return d == DT_f32 ? scalar_f32((float)x) : of_bits(d, float_encode(&float_format[d], x));
}
/* What was computed in f32. */
static Scalar of_f32(Dtype d, float x) { return of_float(d, f64_of(of_float(dtype_arithmetic(d), x))); }

/* ---- literals */

bool scalar_of(const Ctx *cx, Val v, Scalar *s) {
    const ValInfo *info = val_info(cx, v);
    const ArrayType *a = type_at(cx->types, info->type);
    if (!info->lit || a->rank || !scalar_dtype(a->dtype)) return false;
    const Lit *lit = info->lit;
    double whole = lit->negative ? -(double)lit->i : (double)lit->i;
    double x = lit->kind == LIT_FLOAT ? lit->re : whole;
    if (lit->kind != LIT_FLOAT && lit->kind != LIT_INT && lit->kind != LIT_BOOL) return false;
    if (is_float(a->dtype))
        *s = of_float(a->dtype, x);
    else if (lit->kind == LIT_FLOAT)
        *s = of_bits(a->dtype, (uint64_t)(int64_t)lit->re);
    else
        *s = of_bits(a->dtype, a->dtype == DT_bool ? lit->i != 0 : lit->negative ? -lit->i : lit->i);
    return true;
}

Lit scalar_lit(Scalar s) {
    if (s.dtype == DT_bool) return (Lit){.kind = LIT_BOOL, .i = s.bits};
    if (is_float(s.dtype)) return (Lit){.kind = LIT_FLOAT, .re = f64_of(s)};
    int64_t i = scalar_int(s);
    bool negative = is_signed(s.dtype) && i < 0;
    return (Lit){.kind = LIT_INT, .negative = negative, .i = negative ? -(uint64_t)i : (uint64_t)i};
}

/* ---- the primitives: a row of prims.def says POINT(f), and eval_f computes it */

typedef struct {
    Ctx *cx;
    const Eqn *e;
    const Scalar *in;
    Dtype out;
} Point;
typedef bool Eval(const Point *, Scalar *out);

#define X p->in[0]
#define Y p->in[1]

#define ARITHMETIC(name, op)                                                                                           \
    static bool eval_##name(const Point *p, Scalar *out) {                                                             \
        Dtype d = p->out;                                                                                              \
        if (d == DT_f64)                                                                                               \
            *out = scalar_f64(f64_of(X) op f64_of(Y));                                                                 \
        else if (is_float(d))                                                                                          \
            *out = of_f32(d, f32_of(X) op f32_of(Y));                                                                  \
        else                                                                                                           \
            *out = of_bits(d, X.bits op Y.bits);                                                                       \
        return true;                                                                                                   \
    }
ARITHMETIC(add, +)
ARITHMETIC(sub, -)
ARITHMETIC(mul, *)

static bool eval_div(const Point *p, Scalar *out) {
    Dtype d = p->out;
    if (d == DT_f64)
        *out = scalar_f64(f64_of(X) / f64_of(Y));
    else if (is_float(d))
        *out = of_f32(d, f32_of(X) / f32_of(Y));
    else if (Y.bits == 0)
        *out = of_bits(d, UINT64_MAX);
    else if (!is_signed(d))
        *out = of_bits(d, X.bits / Y.bits);
    else if (Y.bits == mask(d))
        *out = of_bits(d, -X.bits);
    else
        *out = of_bits(d, (uint64_t)(scalar_int(X) / scalar_int(Y)));
    return true;
}

static bool eval_rem(const Point *p, Scalar *out) {
    Dtype d = p->out;
    if (d == DT_f64)
        *out = scalar_f64(fmod(f64_of(X), f64_of(Y)));
    else if (is_float(d))
        *out = of_f32(d, fmodf(f32_of(X), f32_of(Y)));
    else if (Y.bits == 0)
        *out = X;
    else if (!is_signed(d))
        *out = of_bits(d, X.bits % Y.bits);
    else if (Y.bits == mask(d))
        *out = of_bits(d, 0);
    else
        *out = of_bits(d, (uint64_t)(scalar_int(X) % scalar_int(Y)));
    return true;
}

/* x < y; for floats false if one is NaN. */
static bool less(Scalar x, Scalar y) {
    if (is_float(x.dtype)) return f64_of(x) < f64_of(y);
    return is_signed(x.dtype) ? scalar_int(x) < scalar_int(y) : x.bits < y.bits;
}
static bool equal(Scalar x, Scalar y) { return is_float(x.dtype) ? f64_of(x) == f64_of(y) : x.bits == y.bits; }
static bool is_nan(Scalar x) { return is_float(x.dtype) && isnan(f64_of(x)); }

/* NaN wins; -0 is below +0. */
static Scalar greater_of(Scalar x, Scalar y) {
    if (is_nan(x) || is_nan(y)) return is_nan(x) ? x : y;
    if (equal(x, y)) return is_float(x.dtype) && x.bits & top_bit(x.dtype) ? y : x;
    return less(x, y) ? y : x;
}
static Scalar lesser_of(Scalar x, Scalar y) {
    if (is_nan(x) || is_nan(y)) return is_nan(x) ? x : y;
    if (equal(x, y)) return is_float(x.dtype) && x.bits & top_bit(x.dtype) ? x : y;
    return less(x, y) ? x : y;
}
static bool eval_max(const Point *p, Scalar *out) { return *out = greater_of(X, Y), true; }
static bool eval_min(const Point *p, Scalar *out) { return *out = lesser_of(X, Y), true; }
static bool eval_clamp(const Point *p, Scalar *out) {
    return *out = lesser_of(greater_of(p->in[1], p->in[0]), p->in[2]), true;
}

/* XLA keeps 4-bit integers in a byte here, and counts the bits of the byte. */
static bool eval_mulhi(const Point *p, Scalar *out) {
    unsigned __int128 product = is_signed(p->out) ? (unsigned __int128)((__int128)scalar_int(X) * scalar_int(Y))
                                                  : (unsigned __int128)X.bits * Y.bits;
    *out = of_bits(p->out, (uint64_t)(product >> (width(p->out) == 4 ? 8 : width(p->out))));
    return true;
}

/* The bits of a float as a signed number in the order of its values: -0 and +0 are neighbours. Narrow floats are
   ordered as f32: their bits may lack a sign, or use it for NaN. */
static int64_t ordered(Scalar s) {
    if (dtype_is_narrow(s.dtype)) s = scalar_f32(f32_of(s));
    int64_t rest = (int64_t)(s.bits & ~top_bit(s.dtype));
    return s.bits & top_bit(s.dtype) ? -rest - 1 : rest;
}

static bool eval_nextafter(const Point *p, Scalar *out) {
    uint64_t top = top_bit(p->out), x = X.bits & ~top, y = Y.bits & ~top;
    bool shrinks = ((X.bits ^ Y.bits) & top) || x > y;
    if (is_nan(X) || is_nan(Y))
        *out = is_nan(X) ? X : Y;
    else if (equal(X, Y))
        *out = Y;
    else if (x == 0)
        *out = of_bits(p->out, (Y.bits & top) | 1);
    else
        *out = of_bits(p->out, shrinks ? X.bits - 1 : X.bits + 1);
    return true;
}

#define BITWISE(name, expr)                                                                                            \
    static bool eval_##name(const Point *p, Scalar *out) {                                                             \
        *out = of_bits(p->out, expr);                                                                                  \
        return true;                                                                                                   \
    }
BITWISE(and, X.bits & Y.bits)
BITWISE(or, X.bits | Y.bits)
BITWISE(xor, X.bits ^ Y.bits)
BITWISE(not, ~X.bits)
BITWISE(shift_left, Y.bits < width(p->out) ? X.bits << Y.bits : 0)
BITWISE(shift_right_logical, Y.bits < width(p->out) ? X.bits >> Y.bits : 0)
BITWISE(population_count, (uint64_t)__builtin_popcountll(p->out == DT_i4 ? scalar_int(X) & 0xff : (int64_t)X.bits))
BITWISE(clz, X.bits ? (uint64_t)__builtin_clzll(X.bits) - (64 - width(p->out)) : width(p->out))

static bool eval_shift_right_arithmetic(const Point *p, Scalar *out) {
    unsigned n = Y.bits < width(p->out) ? (unsigned)Y.bits : width(p->out) - 1;
    bool negative = X.bits & top_bit(p->out);
    uint64_t wide = negative ? X.bits | ~mask(p->out) : X.bits;
    *out = of_bits(p->out, (uint64_t)((int64_t)wide >> n));
    return true;
}

static bool eval_neg(const Point *p, Scalar *out) {
    if (is_float(p->out) && dtype_is_narrow(p->out))
        *out = of_float(p->out, -f64_of(X)); /* there may be no such zero */
    else
        *out = of_bits(p->out, is_float(p->out) ? X.bits ^ top_bit(p->out) : -X.bits);
    return true;
}

static bool eval_abs(const Point *p, Scalar *out) {
    bool negative = X.bits & top_bit(X.dtype);
    if (is_float(p->out))
        *out =
            float_format[p->out].special == FLOAT_POWER || is_nan(X) ? X : of_bits(p->out, X.bits & ~top_bit(p->out));
    else
        *out = of_bits(p->out, is_signed(X.dtype) && negative ? -X.bits : X.bits);
    return true;
}

/* Zeros and NaN are their own sign. */
static bool eval_sign(const Point *p, Scalar *out) {
    if (is_float(p->out)) {
        double x = f64_of(X);
        *out = x == 0 || isnan(x) ? X
               : p->out == DT_f64 ? scalar_f64(copysign(1, x))
                                  : of_f32(p->out, copysignf(1, (float)x));
    } else {
        int64_t i = scalar_int(X);
        *out = of_bits(p->out, X.bits == 0 ? 0 : is_signed(p->out) && i < 0 ? UINT64_MAX : 1);
    }
    return true;
}

static Scalar product(Scalar x, Scalar y) {
    Scalar both[] = {x, y}, out;
    eval_mul(&(Point){.in = both, .out = x.dtype}, &out);
    return out;
}

static bool eval_square(const Point *p, Scalar *out) { return *out = product(X, X), true; }

static Scalar one(Dtype d) { return d == DT_f64 ? scalar_f64(1) : is_float(d) ? of_f32(d, 1) : of_bits(d, 1); }

/* By repeated squaring, in the order of JAX's lowering. */
static bool eval_integer_pow(const Point *p, Scalar *out) {
    int64_t y = param_number(p->e, K_y);
    uint64_t n = y < 0 ? -(uint64_t)y : (uint64_t)y;
    Scalar x = X, power = one(p->out);
    for (bool first = true; n; n >>= 1, x = n ? product(x, x) : x)
        if (n & 1) {
            power = first ? x : product(power, x);
            first = false;
        }
    *out = power;
    Scalar quotient[] = {one(p->out), power};
    return y >= 0 || eval_div(&(Point){.in = quotient, .out = p->out}, out);
}

/* The functions for f32 are right for f16 and bf16 too, after rounding again: f32 has more than twice their digits. */
#define FLOATS(name, f32, f64)                                                                                         \
    static bool eval_##name(const Point *p, Scalar *out) {                                                             \
        *out = p->out == DT_f64 ? scalar_f64(f64(f64_of(X))) : of_f32(p->out, f32(f32_of(X)));                         \
        return true;                                                                                                   \
    }
FLOATS(floor, floorf, floor)
FLOATS(ceil, ceilf, ceil)
FLOATS(sqrt, sqrtf, sqrt)
FLOATS(round_even, rintf, rint)
FLOATS(round_away, roundf, round)

static bool eval_round(const Point *p, Scalar *out) {
    return rounds_to_even(p->e) ? eval_round_even(p, out) : eval_round_away(p, out);
}

static bool eval_fma(const Point *p, Scalar *out) {
    *out = p->out == DT_f64 ? scalar_f64(fma(f64_of(p->in[0]), f64_of(p->in[1]), f64_of(p->in[2])))
                            : of_f32(p->out, fmaf(f32_of(p->in[0]), f32_of(p->in[1]), f32_of(p->in[2])));
    return true;
}

#define PREDICATE(name, expr)                                                                                          \
    static bool eval_##name(const Point *p, Scalar *out) {                                                             \
        *out = of_bool(expr);                                                                                          \
        return true;                                                                                                   \
    }
PREDICATE(is_finite, isfinite(f64_of(X)))
PREDICATE(eq, equal(X, Y))
PREDICATE(ne, !equal(X, Y))
PREDICATE(lt, less(X, Y))
PREDICATE(gt, less(Y, X))
PREDICATE(le, less(X, Y) || equal(X, Y))
PREDICATE(ge, less(Y, X) || equal(X, Y))

/* In the total order of floats: -NaN, -inf, …, -0, +0, …, inf, NaN. */
#define TOTAL(name, op, plain)                                                                                         \
    static bool eval_##name(const Point *p, Scalar *out) {                                                             \
        *out = of_bool(is_float(X.dtype) ? ordered(X) op ordered(Y) : plain);                                          \
        return true;                                                                                                   \
    }
TOTAL(eq_to, ==, equal(X, Y))
TOTAL(lt_to, <, less(X, Y))
TOTAL(le_to, <=, less(X, Y) || equal(X, Y))

/* The first operand, bool or i32, selects; an index is clamped. */
static bool eval_select_n(const Point *p, Scalar *out) {
    int64_t i = scalar_int(X), last = (int64_t)p->e->in.n - 2;
    *out = p->in[1 + (i < 0 ? 0 : i > last ? last : i)];
    return true;
}

static bool eval_copy(const Point *p, Scalar *out) { return *out = X, true; }

static bool eval_bitcast_convert_type(const Point *p, Scalar *out) {
    *out = of_bits(p->out, X.bits);
    return width(p->out) == width(X.dtype);
}

/* Truncated; saturates, NaN is 0. A format without infinities has its largest value in their place. */
static Scalar float_to_int(Dtype from, Dtype d, double x) {
    const FloatFormat *f = &float_format[from];
    if (isnan(x)) return of_bits(d, 0);
    double most = ldexp(1, (int)width(d) - is_signed(d)); /* the smallest one that is too large */
    if (f->special == FLOAT_FINITE && most > float_decode(f, float_most(f)) &&
        fabs(x) == float_decode(f, float_most(f)))
        x = copysign(INFINITY, x);
    if (x >= most) return of_bits(d, is_signed(d) ? mask(d) >> 1 : mask(d));
    if (is_signed(d)) return of_bits(d, x < -most ? top_bit(d) : (uint64_t)(int64_t)x);
    return of_bits(d, x <= -1 ? 0 : (uint64_t)x);
}

/* f64 is rounded once, except through f32 for bf16; for powers of two, smaller values are lost. */
static Scalar float_to_float(Scalar x, Dtype d) {
    double v = f64_of(x);
    bool twice = x.dtype == DT_f64 && d == DT_bf16;
    bool none = x.dtype == DT_f64 && float_format[d].special == FLOAT_POWER && v < 0x1p-127;
    return of_float(d, none ? 0 : twice ? (double)(float)v : v);
}

/* Floats below f32 are rounded through f32. */
static Scalar int_to_float(Scalar x, Dtype d) {
    int64_t i = scalar_int(x);
    bool is_wide = x.dtype == DT_u64;
    if (d == DT_f64) return scalar_f64(is_wide ? (double)x.bits : (double)i);
    return of_float(d, is_wide ? (float)x.bits : (float)i);
}

static bool eval_convert_element_type(const Point *p, Scalar *out) {
    Dtype d = p->out;
    bool from_float = is_float(X.dtype);
    if (d == DT_bool)
        *out = of_bool(from_float ? f64_of(X) != 0 : X.bits != 0);
    else if (is_float(d))
        *out = from_float ? float_to_float(X, d) : int_to_float(X, d);
    else
        *out = from_float ? float_to_int(X.dtype, d, f64_of(X)) : of_bits(d, (uint64_t)scalar_int(X));
    return true;
}

/* Rounds the fraction to even, then results out of the exponent's range become infinite or zero (XLA's definition);
   narrow floats in the type in which they are computed. */
static bool eval_reduce_precision(const Point *p, Scalar *out) {
    Dtype d = dtype_arithmetic(p->out);
    unsigned all = (unsigned)float_format[d].mantissa, exponent = (unsigned)float_format[d].exponent;
    int64_t f = param_number(p->e, K_mantissa_bits);
    int64_t x = param_number(p->e, K_exponent_bits);
    uint64_t bits = d == p->out ? X.bits : of_float(d, f64_of(X)).bits;
    uint64_t sign = bits & top_bit(d), rest = bits & ~sign;
    if (f < 0 || x < 1 || is_nan(X)) return *out = X, !(f < 0 || x < 1);
    if (f < all) {
        unsigned drop = all - (unsigned)f;
        uint64_t odd = rest >> drop & 1, half = (uint64_t)1 << (drop - 1);
        rest = (rest + half - 1 + odd) >> drop << drop;
    }
    if (x < exponent) {
        uint64_t bias = ((uint64_t)1 << (exponent - 1)) - 1, reach = ((uint64_t)1 << (x - 1)) - 1;
        if (rest >> all > bias + reach) rest = mask(d) >> 1 >> all << all;
        if (rest >> all <= bias - reach) rest = 0;
    }
    Scalar r = of_bits(d, sign | rest);
    *out = d == p->out ? r : of_float(p->out, f64_of(r));
    return true;
}

/* ---- programs */

struct Evaluator {
    Ctx *cx;
    const Jaxpr *j;
    Val first;      /* the values of the program lie in [first, first + n) */
    Scalar *values; /* by value, less `first` */
};

Evaluator *evaluator_new(Ctx *cx, const Jaxpr *j) {
    Val first, last;
    jaxpr_range(cx, j, &first, &last);
    Evaluator *ev = arena_new(cx->arena, Evaluator, 1);
    *ev = (Evaluator){cx, j, first, arena_new(cx->arena, Scalar, last - first + (size_t)1)};
    return ev;
}

static bool value(const Evaluator *ev, Val v, Scalar *s) {
    if (val_info(ev->cx, v)->lit) return scalar_of(ev->cx, v, s);
    *s = ev->values[v - ev->first];
    return s->dtype != DT_none;
}
/* Reads all before writing the first: a loop's results may be its inputs in another order. */
static bool move(Evaluator *ev, Vals from, Vals to) {
    enum { MOST_CARRIES = 32 };
    Scalar moved[MOST_CARRIES];
    if (from.n > MOST_CARRIES) return false;
    for (uint32_t i = 0; i < from.n; i++)
        if (!value(ev, from.at[i], &moved[i])) return false;
    for (uint32_t i = 0; i < from.n; i++) ev->values[to.at[i] - ev->first] = moved[i];
    return true;
}

static bool run_eqns(Evaluator *ev, Eqns eqns);
static bool run_while(Evaluator *ev, const Eqn *e) {
    const While w = while_of(e), turn = while_turn(&w, w.cond, w.body);
    Vals carry = w.carry;
    if (!move(ev, w.cond_consts, turn.cond_consts) || !move(ev, w.body_consts, turn.body_consts)) return false;
    for (;; carry = turn.end) {
        Scalar more;
        if (!move(ev, carry, turn.tested) || !run_eqns(ev, w.cond->eqns)) return false;
        if (!value(ev, w.cond->out.at[0], &more)) return false;
        if (!more.bits) return move(ev, carry, w.end);
        if (!move(ev, carry, turn.carry) || !run_eqns(ev, w.body->eqns)) return false;
    }
}
static bool run_eqns(Evaluator *ev, Eqns eqns) {
    enum { MOST_OPERANDS = 8 };
    each(Eqn, e, eqns) {
        Scalar operands[MOST_OPERANDS];
        if (e->prim == P_while) {
            if (!run_while(ev, e)) return false;
            continue;
        }
        if (e->in.n > MOST_OPERANDS) return false;
        for (uint32_t i = 0; i < e->in.n; i++)
            if (!value(ev, e->in.at[i], &operands[i])) return false;
        if (!eval_point(ev->cx, e, operands, &ev->values[e->out.at[0] - ev->first])) return false;
    }
    return true;
}
bool evaluator_run(Evaluator *ev, const Scalar *in, Scalar *out) {
    const Jaxpr *j = ev->j;
    for (uint32_t i = 0; i < j->in.n; i++) ev->values[j->in.at[i] - ev->first] = in[i];
    return run_eqns(ev, j->eqns) && j->out.n == 1 && value(ev, j->out.at[0], out);
}

/* An elementary function: runs its program in stdlib/, in the type in which it is computed. */
static bool eval_stdlib(const Point *p, Scalar *out) {
    enum { MOST_OPERANDS = 3 };
    Dtype wide = stdlib_dtype(p->cx, p->e->prim, X.dtype);
    char name[STDLIB_NAME];
    int n = snprintf(name, sizeof name, "%s_%s", prim_name[p->e->prim], dtype_info[wide].name);
    assert(n + sizeof "_full" <= STDLIB_NAME);
    const StdlibFast *fast = stdlib_fast(name);
    if (fast && !stdlib_suits(fast, f64_of(X))) snprintf(name + n, sizeof name - (size_t)n, "_full");
    Evaluator *program = stdlib_evaluator(p->cx, name);
    Scalar in[MOST_OPERANDS];
    if (!program || program->j->in.n != p->e->in.n || p->e->in.n > MOST_OPERANDS) return false;
    for (uint32_t i = 0; i < p->e->in.n; i++) {
        if (p->in[i].dtype != X.dtype) return false;
        in[i] = wide == DT_f64 ? scalar_f64(f64_of(p->in[i])) : scalar_f32(f32_of(p->in[i]));
    }
    if (!evaluator_run(program, in, out)) return false;
    if (wide == DT_f64 && p->out != DT_f64) *out = scalar_f32((float)f64_of(*out));
    if (p->out != out->dtype) *out = of_f32(p->out, f32_of(*out));
    return true;
}

/* Complex numbers are not Scalars. */
static bool eval_real(const Point *p, Scalar *out) { return false; }
static bool eval_imag(const Point *p, Scalar *out) { return false; }
static bool eval_complex(const Point *p, Scalar *out) { return false; }

static Eval *const evals[NPRIMS] = {
#define POINT(f) eval_##f
#define STDLIB(f) eval_stdlib
#define PRIM(id, text, arity, type, simplify, facts, jvp, transpose, vmap, lowering) [P_##id] = lowering,
#include "../prims.def"
#include <assert.h>
};

bool eval_point(Ctx *cx, const Eqn *e, const Scalar *in, Scalar *out) {
    if (!evals[e->prim] || e->out.n != 1 || e->in.n == 0) return false;
    const ArrayType *t = val_array(cx, e->out.at[0]);
    if (t->rank || !scalar_dtype(t->dtype)) return false;
    for (uint32_t i = 0; i < e->in.n; i++)
        if (!scalar_dtype(in[i].dtype)) return false;
    return evals[e->prim](&(Point){cx, e, in, t->dtype}, out);
}
