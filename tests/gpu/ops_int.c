/* Integer arithmetic. */
#include "lanes.h"
#include "ops.h"

/* Division by zero gives what GPUs give: all ones, and the dividend as remainder. */
#define DEFINE(W)                                                                                                      \
    BINARY(add_##W, u##W, u##W, u##W, x + y)                                                                           \
    BINARY(sub_##W, u##W, u##W, u##W, x - y)                                                                           \
    BINARY(mul_lo_##W, u##W, u##W, u##W, (u64)x *y)                                                                    \
    TERNARY(mad_lo_##W, u##W, u##W, u##W, u##W, (u64)x *y + z)                                                         \
    BINARY(div_u##W, u##W, u##W, u##W, y ? x / y : (u##W) - 1)                                                         \
    BINARY(rem_u##W, u##W, u##W, u##W, y ? x % y : x)                                                                  \
    BINARY(div_s##W, s##W, s##W, s##W, y == 0 ? -1 : y == -1 ? (s##W)(0 - (u64)x) : x / y)                             \
    BINARY(rem_s##W, s##W, s##W, s##W, y == 0 ? x : y == -1 ? 0 : x % y)                                               \
    BINARY(min_u##W, u##W, u##W, u##W, x < y ? x : y)                                                                  \
    BINARY(max_u##W, u##W, u##W, u##W, x > y ? x : y)                                                                  \
    BINARY(min_s##W, s##W, s##W, s##W, x < y ? x : y)                                                                  \
    BINARY(max_s##W, s##W, s##W, s##W, x > y ? x : y)                                                                  \
    UNARY(neg_##W, u##W, u##W, 0 - x)                                                                                  \
    UNARY(abs_##W, u##W, s##W, x < 0 ? 0 - (u64)x : (u64)x)
DEFINE(16)
DEFINE(32)
DEFINE(64)
static s32 positive(s32 x) { return x > 0 ? x : 0; }
BINARY(min_relu_s32, s32, s32, s32, positive(x < y ? x : y))
BINARY(max_relu_s32, s32, s32, s32, positive(x > y ? x : y))

/* The upper half of products, and products of twice the width. */
#define DEFINE_WIDE(W, W2)                                                                                             \
    BINARY(mul_hi_u##W, u##W, u##W, u##W, (u##W2)x *y >> W)                                                            \
    BINARY(mul_hi_s##W, s##W, s##W, s##W, (s##W2)x *y >> W)                                                            \
    TERNARY(mad_hi_u##W, u##W, u##W, u##W, u##W, ((u##W2)x * y >> W) + z)                                              \
    TERNARY(mad_hi_s##W, u##W, s##W, s##W, u##W, (u##W)((s##W2)x * y >> W) + z)
DEFINE_WIDE(16, 32)
DEFINE_WIDE(32, 64)
DEFINE_WIDE(64, 128)
BINARY(mul_wide_u16, u32, u16, u16, (u32)x *y)
BINARY(mul_wide_s16, s32, s16, s16, (s32)x *y)
BINARY(mul_wide_u32, u64, u32, u32, (u64)x *y)
BINARY(mul_wide_s32, s64, s32, s32, (s64)x *y)
TERNARY(mad_wide_u16, u32, u16, u16, u32, (u32)x *y + z)
TERNARY(mad_wide_s16, u32, s16, s16, u32, (u32)((s32)x * y) + z)
TERNARY(mad_wide_u32, u64, u32, u32, u64, (u64)x *y + z)
TERNARY(mad_wide_s32, u64, s32, s32, u64, (u64)((s64)x * y) + z)
static inline s32 clamp_32(s64 x) { return x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : (s32)x; }
BINARY(add_sat, s32, s32, s32, clamp_32((s64)x + y))
BINARY(sub_sat, s32, s32, s32, clamp_32((s64)x - y))
TERNARY(sad_u32, u32, u32, u32, u32, (x < y ? y - x : x - y) + z)
TERNARY(sad_s32, u32, s32, s32, u32, (x < y ? (u32)y - (u32)x : (u32)x - (u32)y) + z)

/* Two 16-bit integers in 32 bits. */
#define EACH_HALF(T, op) (u32)(u16)(op((T)x, (T)y)) | (u32)(u16)(op((T)(x >> 16), (T)(y >> 16))) << 16
#define PLUS(p, q) (p) + (q)
#define LESS(p, q) (p) < (q) ? (p) : (q)
#define MORE(p, q) (p) > (q) ? (p) : (q)
BINARY(add_16x2, u32, u32, u32, EACH_HALF(u16, PLUS))
BINARY(min_s16x2, u32, u32, u32, EACH_HALF(s16, LESS))
BINARY(max_s16x2, u32, u32, u32, EACH_HALF(s16, MORE))
BINARY(min_u16x2, u32, u32, u32, EACH_HALF(u16, LESS))
BINARY(max_u16x2, u32, u32, u32, EACH_HALF(u16, MORE))

/* Sums of four products of bytes. */
#define BYTE_OF(T, v, k) (T)((v) >> 8 * (k))
#define DOT4(A, B)                                                                                                     \
    (u32)(BYTE_OF(A, x, 0) * BYTE_OF(B, y, 0) + BYTE_OF(A, x, 1) * BYTE_OF(B, y, 1) +                                  \
          BYTE_OF(A, x, 2) * BYTE_OF(B, y, 2) + BYTE_OF(A, x, 3) * BYTE_OF(B, y, 3)) +                                 \
        z
TERNARY(dp4a_uu, u32, u32, u32, u32, DOT4(u8, u8))
TERNARY(dp4a_us, u32, u32, u32, u32, DOT4(u8, s8))
TERNARY(dp4a_su, u32, u32, u32, u32, DOT4(s8, u8))
TERNARY(dp4a_ss, u32, u32, u32, u32, DOT4(s8, s8))

/* Chains of carries: the condition code is a bit of each lane of the warp. x, y: operands, c: carry or borrow in. */
#define CARRY(name, W, uses, sets, result, out)                                                                        \
    static void name(Warp *w, const Ins *i, u32 mask) {                                                                \
        u##W *d = SLOT(u##W, 0);                                                                                       \
        const u##W *a = SLOT(u##W, 1), *b = SLOT(u##W, 2);                                                             \
        u32 next = 0;                                                                                                  \
        each_lane(l, mask) {                                                                                           \
            u##W x = a[l], y = b[l];                                                                                   \
            bool c = uses && (w->carry >> l & 1);                                                                      \
            (void)c;                                                                                                   \
            u##W r = result;                                                                                           \
            next |= (u32)(out) << l;                                                                                   \
            d[l] = r;                                                                                                  \
        }                                                                                                              \
        if (sets) keep_predicate(&w->carry, next, mask);                                                               \
    }
#define DEFINE_CARRY(W)                                                                                                \
    CARRY(add_cc_##W, W, false, true, x + y, r < x)                                                                    \
    CARRY(addc_##W, W, true, false, x + y + c, r < x)                                                                  \
    CARRY(addc_cc_##W, W, true, true, x + y + c, c ? r <= x : r < x)                                                   \
    CARRY(sub_cc_##W, W, false, true, x - y, x < y)                                                                    \
    CARRY(subc_##W, W, true, false, x - y - c, x < y)                                                                  \
    CARRY(subc_cc_##W, W, true, true, x - y - c, c ? x <= y : x < y)
DEFINE_CARRY(32)
DEFINE_CARRY(64)

#define EITHER(name, run, W, operands)                                                                                 \
    {name "s" #W, run, operands}, { name "u" #W, run, operands }
#define ROWS(W, c)                                                                                                     \
    EITHER("add.", add_##W, W, c c c), EITHER("sub.", sub_##W, W, c c c), EITHER("mul.lo.", mul_lo_##W, W, c c c),     \
        EITHER("mad.lo.", mad_lo_##W, W, c c c c), {"div.u" #W, div_u##W, c c c}, {"div.s" #W, div_s##W, c c c},       \
        {"rem.u" #W, rem_u##W, c c c}, {"rem.s" #W, rem_s##W, c c c}, {"min.u" #W, min_u##W, c c c},                   \
        {"max.u" #W, max_u##W, c c c}, {"min.s" #W, min_s##W, c c c}, {"max.s" #W, max_s##W, c c c},                   \
        {"neg.s" #W, neg_##W, c c}, {"abs.s" #W, abs_##W, c c}, {"mul.hi.u" #W, mul_hi_u##W, c c c},                   \
        {"mul.hi.s" #W, mul_hi_s##W, c c c}, {"mad.hi.u" #W, mad_hi_u##W, c c c c}, {                                  \
        "mad.hi.s" #W, mad_hi_s##W, c c c c                                                                            \
    }
#define CARRY_ROWS(W, c)                                                                                               \
    EITHER("add.cc.", add_cc_##W, W, c c c), EITHER("addc.", addc_##W, W, c c c),                                      \
        EITHER("addc.cc.", addc_cc_##W, W, c c c), EITHER("sub.cc.", sub_cc_##W, W, c c c),                            \
        EITHER("subc.", subc_##W, W, c c c), EITHER("subc.cc.", subc_cc_##W, W, c c c)
static const Row rows[] = {
    ROWS(16, "h"),
    ROWS(32, "w"),
    ROWS(64, "x"),
    CARRY_ROWS(32, "w"),
    CARRY_ROWS(64, "x"),
    {"mul.wide.u16", mul_wide_u16, "whh"},
    {"mul.wide.s16", mul_wide_s16, "whh"},
    {"mul.wide.u32", mul_wide_u32, "xww"},
    {"mul.wide.s32", mul_wide_s32, "xww"},
    {"mad.wide.u16", mad_wide_u16, "whhw"},
    {"mad.wide.s16", mad_wide_s16, "whhw"},
    {"mad.wide.u32", mad_wide_u32, "xwwx"},
    {"mad.wide.s32", mad_wide_s32, "xwwx"},
    {"add.sat.s32", add_sat, "www"},
    {"sub.sat.s32", sub_sat, "www"},
    {"sad.u32", sad_u32, "wwww"},
    {"sad.s32", sad_s32, "wwww"},
    {"add.u16x2", add_16x2, "www"},
    {"add.s16x2", add_16x2, "www"},
    {"min.relu.s32", min_relu_s32, "www"},
    {"max.relu.s32", max_relu_s32, "www"},
    {"min.s16x2", min_s16x2, "www"},
    {"max.s16x2", max_s16x2, "www"},
    {"min.u16x2", min_u16x2, "www"},
    {"max.u16x2", max_u16x2, "www"},
    {"dp4a.u32.u32", dp4a_uu, "wwww"},
    {"dp4a.u32.s32", dp4a_us, "wwww"},
    {"dp4a.s32.u32", dp4a_su, "wwww"},
    {"dp4a.s32.s32", dp4a_ss, "wwww"},
};
const Rows rows_int = {rows, sizeof rows / sizeof *rows};
