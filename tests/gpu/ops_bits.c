/* Bits: logic, shifts, fields, permutations of bytes. */
#include "lanes.h"
#include "ops.h"

/* Shifts by the width or more leave nothing, or the sign. */
#define DEFINE(W)                                                                                                      \
    BINARY(and_##W, u##W, u##W, u##W, x &y)                                                                            \
    BINARY(or_##W, u##W, u##W, u##W, x | y)                                                                            \
    BINARY(xor_##W, u##W, u##W, u##W, x ^ y)                                                                           \
    UNARY(not_##W, u##W, u##W, ~x)                                                                                     \
    UNARY(cnot_##W, u##W, u##W, x == 0)                                                                                \
    BINARY(shl_##W, u##W, u##W, u32, y < W ? (u64)x << (y & (W - 1)) : 0)                                              \
    BINARY(shr_u##W, u##W, u##W, u32, y < W ? x >> (y & (W - 1)) : 0)                                                  \
    BINARY(shr_s##W, s##W, s##W, u32, x >> (y < W ? y : W - 1))                                                        \
    UNARY(mov_##W, u##W, u##W, x)
DEFINE(16)
DEFINE(32)
DEFINE(64)

#define PREDICATE(name, result)                                                                                        \
    static void name(Warp *w, const Ins *i, u32 mask) {                                                                \
        u32 x = *SLOT(u32, 1), y = *SLOT(u32, 2);                                                                      \
        keep_predicate(SLOT(u32, 0), result, mask);                                                                    \
    }
PREDICATE(and_pred, x &y)
PREDICATE(or_pred, x | y)
PREDICATE(xor_pred, x ^ y)
static void not_pred(Warp *w, const Ins *i, u32 mask) { keep_predicate(SLOT(u32, 0), ~*SLOT(u32, 1), mask); }
static void mov_pred(Warp *w, const Ins *i, u32 mask) { keep_predicate(SLOT(u32, 0), *SLOT(u32, 1), mask); }

static inline u32 reverse_32(u32 x) {
    x = (x >> 1 & 0x55555555) | (x & 0x55555555) << 1;
    x = (x >> 2 & 0x33333333) | (x & 0x33333333) << 2;
    x = (x >> 4 & 0x0f0f0f0f) | (x & 0x0f0f0f0f) << 4;
    return __builtin_bswap32(x);
}
UNARY(clz_32, u32, u32, x ? __builtin_clz(x) : 32)
UNARY(clz_64, u32, u64, x ? __builtin_clzll(x) : 64)
UNARY(popc_32, u32, u32, __builtin_popcount(x))
UNARY(popc_64, u32, u64, __builtin_popcountll(x))
UNARY(brev_32, u32, u32, reverse_32(x))
UNARY(brev_64, u64, u64, (u64)reverse_32((u32)x) << 32 | reverse_32((u32)(x >> 32)))

/* The most significant bit that is not the sign's; counted from the top with .shiftamt. All ones: none. */
static inline u32 top_bit(u64 x) { return x ? 63 - (u32)__builtin_clzll(x) : UINT32_MAX; }
static inline u64 magnitude_bits(s64 x) { return (u64)(x < 0 ? ~x : x); }
static inline u32 from_top(u32 bit, u32 width) { return bit == UINT32_MAX ? bit : width - 1 - bit; }
UNARY(bfind_u32, u32, u32, top_bit(x))
UNARY(bfind_s32, u32, s32, top_bit(magnitude_bits(x)))
UNARY(bfind_u64, u32, u64, top_bit(x))
UNARY(bfind_s64, u32, s64, top_bit(magnitude_bits(x)))
UNARY(bfind_amount_u32, u32, u32, from_top(top_bit(x), 32))
UNARY(bfind_amount_s32, u32, s32, from_top(top_bit(magnitude_bits(x)), 32))
UNARY(bfind_amount_u64, u32, u64, from_top(top_bit(x), 64))
UNARY(bfind_amount_s64, u32, s64, from_top(top_bit(magnitude_bits(x)), 64))

/* Fields: position and length are bytes of their operands. Bits beyond the top are the sign's, or zeros. */
static inline u64 low_bits(u32 n) { return n < 64 ? ((u64)1 << n) - 1 : UINT64_MAX; }
static inline u64 field_unsigned(u64 x, u32 at, u32 n) { return at < 64 ? x >> at & low_bits(n) : 0; }
static inline u64 field_signed(s64 x, u32 at, u32 n, u32 width) {
    if (n == 0) return 0;
    u64 bits = (u64)(x >> (at < 64 ? at : 63)), top = at + n < width ? n - 1 : 63;
    u64 sign = top < 63 ? bits >> top & 1 : (u64)x >> 63;
    return sign ? bits | ~low_bits(n) : bits & low_bits(n);
}
TERNARY(bfe_u32, u32, u32, u32, u32, field_unsigned(x, y & 255, z & 255))
TERNARY(bfe_u64, u64, u64, u32, u32, field_unsigned(x, y & 255, z & 255))
TERNARY(bfe_s32, u32, s32, u32, u32, field_signed(x, y & 255, z & 255, 32))
TERNARY(bfe_s64, u64, s64, u32, u32, field_signed(x, y & 255, z & 255, 64))
static inline u64 insert(u64 field, u64 into, u32 at, u32 n, u32 width) {
    if (at >= width) return into;
    u64 bits = low_bits(n) << at;
    return (into & ~bits) | (field << at & bits);
}
#define INSERT(W)                                                                                                      \
    static void bfi_##W(Warp *w, const Ins *i, u32 mask) {                                                             \
        const u##W *field = SLOT(u##W, 1), *into = SLOT(u##W, 2);                                                      \
        const u32 *at = SLOT(u32, 3), *n = SLOT(u32, 4);                                                               \
        LANES_OF(u##W, to[l] = (u##W)insert(field[l], into[l], at[l] & 255, n[l] & 255, W))                            \
    }
INSERT(32)
INSERT(64)

/* Funnels: the upper, or lower, half of z:y shifted by up to 31, or 32 with .clamp. */
static inline u64 joined(u32 low, u32 high) { return (u64)high << 32 | low; }
static inline u32 at_most_32(u32 n) { return n < 32 ? n : 32; }
TERNARY(shf_l_wrap, u32, u32, u32, u32, joined(x, y) << (z & 31) >> 32)
TERNARY(shf_r_wrap, u32, u32, u32, u32, joined(x, y) >> (z & 31))
TERNARY(shf_l_clamp, u32, u32, u32, u32, joined(x, y) << at_most_32(z) >> 32)
TERNARY(shf_r_clamp, u32, u32, u32, u32, joined(x, y) >> at_most_32(z))

/* Four of the eight bytes of y:x, chosen by a digit each; its upper bit asks for copies of the sign. */
static inline u32 chosen_byte(u64 bytes, u32 choice) {
    u32 b = bytes >> 8 * (choice & 7) & 255;
    return choice & 8 ? (b & 128 ? 255 : 0) : b;
}
static inline u32 permute(u32 x, u32 y, u32 choice) {
    u64 bytes = joined(x, y);
    return chosen_byte(bytes, choice) | chosen_byte(bytes, choice >> 4) << 8 | chosen_byte(bytes, choice >> 8) << 16 |
           chosen_byte(bytes, choice >> 12) << 24;
}
/* The other modes choose by two bits of z: digits of each choice. */
static const u16 forward_4[4] = {0x3210, 0x4321, 0x5432, 0x6543}, backward_4[4] = {0x5670, 0x6701, 0x7012, 0x0123},
                 replicate_8[4] = {0x0000, 0x1111, 0x2222, 0x3333}, clamp_left[4] = {0x3210, 0x3211, 0x3222, 0x3333},
                 clamp_right[4] = {0x0000, 0x1110, 0x2210, 0x3210}, replicate_16[4] = {0x1010, 0x3232, 0x1010, 0x3232};
TERNARY(prmt, u32, u32, u32, u32, permute(x, y, z))
TERNARY(prmt_f4e, u32, u32, u32, u32, permute(x, y, forward_4[z & 3]))
TERNARY(prmt_b4e, u32, u32, u32, u32, permute(x, y, backward_4[z & 3]))
TERNARY(prmt_rc8, u32, u32, u32, u32, permute(x, y, replicate_8[z & 3]))
TERNARY(prmt_ecl, u32, u32, u32, u32, permute(x, y, clamp_left[z & 3]))
TERNARY(prmt_ecr, u32, u32, u32, u32, permute(x, y, clamp_right[z & 3]))
TERNARY(prmt_rc16, u32, u32, u32, u32, permute(x, y, replicate_16[z & 3]))

/* Any function of three bits: the table is the fourth operand. */
static void lop3(Warp *w, const Ins *i, u32 mask) {
    const u32 *a = SLOT(u32, 1), *b = SLOT(u32, 2), *c = SLOT(u32, 3), *table = SLOT(u32, 4);
    u32 ones[8];
    for (u32 k = 0; k < 8; k++) ones[k] = table[0] >> k & 1 ? UINT32_MAX : 0;
    LANES_OF(u32, u32 x = a[l]; u32 y = b[l]; u32 z = c[l]; to[l] = (ones[0] & ~x & ~y & ~z) | (ones[1] & ~x & ~y & z) |
                                                                    (ones[2] & ~x & y & ~z) | (ones[3] & ~x & y & z) |
                                                                    (ones[4] & x & ~y & ~z) | (ones[5] & x & ~y & z) |
                                                                    (ones[6] & x & y & ~z) | (ones[7] & x & y & z))
}

#define ROWS(W, c)                                                                                                     \
    {"and.b" #W, and_##W, c c c}, {"or.b" #W, or_##W, c c c}, {"xor.b" #W, xor_##W, c c c},                            \
        {"not.b" #W, not_##W, c c}, {"cnot.b" #W, cnot_##W, c c}, {"shl.b" #W, shl_##W, c c "w"},                      \
        {"shr.b" #W, shr_u##W, c c "w"}, {"shr.u" #W, shr_u##W, c c "w"}, {"shr.s" #W, shr_s##W, c c "w"},             \
        {"mov.b" #W, mov_##W, c c}, {"mov.u" #W, mov_##W, c c}, {                                                      \
        "mov.s" #W, mov_##W, c c                                                                                       \
    }
static const Row rows[] = {
    ROWS(16, "h"),
    ROWS(32, "w"),
    ROWS(64, "x"),
    {"mov.f32", mov_32, "ww"},
    {"mov.f64", mov_64, "xx"},
    {"mov.pred", mov_pred, "pp"},
    {"and.pred", and_pred, "ppp"},
    {"or.pred", or_pred, "ppp"},
    {"xor.pred", xor_pred, "ppp"},
    {"not.pred", not_pred, "pp"},
    {"clz.b32", clz_32, "ww"},
    {"clz.b64", clz_64, "wx"},
    {"popc.b32", popc_32, "ww"},
    {"popc.b64", popc_64, "wx"},
    {"brev.b32", brev_32, "ww"},
    {"brev.b64", brev_64, "xx"},
    {"bfind.u32", bfind_u32, "ww"},
    {"bfind.s32", bfind_s32, "ww"},
    {"bfind.u64", bfind_u64, "wx"},
    {"bfind.s64", bfind_s64, "wx"},
    {"bfind.shiftamt.u32", bfind_amount_u32, "ww"},
    {"bfind.shiftamt.s32", bfind_amount_s32, "ww"},
    {"bfind.shiftamt.u64", bfind_amount_u64, "wx"},
    {"bfind.shiftamt.s64", bfind_amount_s64, "wx"},
    {"bfe.u32", bfe_u32, "wwww"},
    {"bfe.s32", bfe_s32, "wwww"},
    {"bfe.u64", bfe_u64, "xxww"},
    {"bfe.s64", bfe_s64, "xxww"},
    {"bfi.b32", bfi_32, "wwwww"},
    {"bfi.b64", bfi_64, "xxxww"},
    {"shf.l.wrap.b32", shf_l_wrap, "wwww"},
    {"shf.r.wrap.b32", shf_r_wrap, "wwww"},
    {"shf.l.clamp.b32", shf_l_clamp, "wwww"},
    {"shf.r.clamp.b32", shf_r_clamp, "wwww"},
    {"prmt.b32", prmt, "wwww"},
    {"prmt.b32.f4e", prmt_f4e, "wwww"},
    {"prmt.b32.b4e", prmt_b4e, "wwww"},
    {"prmt.b32.rc8", prmt_rc8, "wwww"},
    {"prmt.b32.ecl", prmt_ecl, "wwww"},
    {"prmt.b32.ecr", prmt_ecr, "wwww"},
    {"prmt.b32.rc16", prmt_rc16, "wwww"},
    {"lop3.b32", lop3, "wwwww"},
};
const Rows rows_bits = {rows, sizeof rows / sizeof *rows};
