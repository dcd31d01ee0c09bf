/* Comparisons and selection. */
#include "narrow.h"
#include "ops.h"
#include <math.h>

/* setp: `kind` combines the truth with a third operand; the second destination gets the opposite truth so combined. */
enum { COMBINE_NOT, COMBINE_AND, COMBINE_OR, COMBINE_XOR };
static inline u32 combined(u32 kind, u32 truth, u32 other) {
    return kind == COMBINE_AND   ? truth & other
           : kind == COMBINE_OR  ? truth | other
           : kind == COMBINE_XOR ? truth ^ other
                                 : truth;
}
static void set_predicates(Warp *w, const Ins *i, u32 truth, u32 mask) {
    u32 other = i->kind == COMBINE_NOT ? 0 : *SLOT(u32, 4), p = combined(i->kind, truth, other),
        q = combined(i->kind, ~truth, other);
    keep_predicate(SLOT(u32, 0), p, mask);
    keep_predicate(SLOT(u32, 1), q, mask);
}
#define COMPARE_AS(name, T, IN, truth)                                                                                 \
    static void name(Warp *w, const Ins *i, u32 mask) {                                                                \
        const T *a = SLOT(T, 2), *b = SLOT(T, 3);                                                                      \
        u8 t[LANES];                                                                                                   \
        EACH_LANE {                                                                                                    \
            __typeof__(IN(a[l])) x = IN(a[l]), y = IN(b[l]);                                                           \
            t[l] = truth;                                                                                              \
        }                                                                                                              \
        set_predicates(w, i, pack_bits(t), mask);                                                                      \
    }
#define SAME(x) (x)
#define COMPARE(name, T, truth) COMPARE_AS(name, T, SAME, truth)
#define DEFINE_INTEGERS(W)                                                                                             \
    COMPARE(eq_b##W, u##W, x == y)                                                                                     \
    COMPARE(ne_b##W, u##W, x != y)                                                                                     \
    COMPARE(lt_s##W, s##W, x < y)                                                                                      \
    COMPARE(le_s##W, s##W, x <= y)                                                                                     \
    COMPARE(gt_s##W, s##W, x > y)                                                                                      \
    COMPARE(ge_s##W, s##W, x >= y)                                                                                     \
    COMPARE(lt_u##W, u##W, x < y)                                                                                      \
    COMPARE(le_u##W, u##W, x <= y)                                                                                     \
    COMPARE(gt_u##W, u##W, x > y)                                                                                      \
    COMPARE(ge_u##W, u##W, x >= y)
DEFINE_INTEGERS(16)
DEFINE_INTEGERS(32)
DEFINE_INTEGERS(64)

/* Ordered comparisons are false beside a NaN, those with u are true. */
#define DEFINE_FLOATS(suffix, T, IN)                                                                                   \
    COMPARE_AS(eq_##suffix, T, IN, x == y)                                                                             \
    COMPARE_AS(ne_##suffix, T, IN, x<y || x> y)                                                                        \
    COMPARE_AS(lt_##suffix, T, IN, x < y)                                                                              \
    COMPARE_AS(le_##suffix, T, IN, x <= y)                                                                             \
    COMPARE_AS(gt_##suffix, T, IN, x > y)                                                                              \
    COMPARE_AS(ge_##suffix, T, IN, x >= y)                                                                             \
    COMPARE_AS(equ_##suffix, T, IN, !(x < y || x > y))                                                                 \
    COMPARE_AS(neu_##suffix, T, IN, x != y)                                                                            \
    COMPARE_AS(ltu_##suffix, T, IN, !(x >= y))                                                                         \
    COMPARE_AS(leu_##suffix, T, IN, !(x > y))                                                                          \
    COMPARE_AS(gtu_##suffix, T, IN, !(x <= y))                                                                         \
    COMPARE_AS(geu_##suffix, T, IN, !(x < y))                                                                          \
    COMPARE_AS(num_##suffix, T, IN, x == x && y == y)                                                                  \
    COMPARE_AS(nan_##suffix, T, IN, x != x || y != y)
static inline f32 flushed(f32 x) { return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x; }
static inline f32 flushed_f16(u16 b) { return (b & 0x7c00) == 0 ? 0 : from_f16(b); }
DEFINE_FLOATS(f32, f32, SAME)
DEFINE_FLOATS(f32_ftz, f32, flushed)
DEFINE_FLOATS(f64, f64, SAME)
DEFINE_FLOATS(f16, u16, from_f16)
DEFINE_FLOATS(f16_ftz, u16, flushed_f16)
DEFINE_FLOATS(bf16, u16, from_bf16)

/* Pairs: a predicate for each half. */
#define COMPARE_PAIR(name, IN, truth)                                                                                  \
    static void name(Warp *w, const Ins *i, u32 mask) {                                                                \
        const u32 *a = SLOT(u32, 2), *b = SLOT(u32, 3);                                                                \
        for (u32 k = 0; k < 2; k++) {                                                                                  \
            u8 t[LANES];                                                                                               \
            EACH_LANE {                                                                                                \
                f32 x = IN((u16)(a[l] >> 16 * k)), y = IN((u16)(b[l] >> 16 * k));                                      \
                t[l] = truth;                                                                                          \
            }                                                                                                          \
            keep_predicate(SLOT(u32, k), pack_bits(t), mask);                                                          \
        }                                                                                                              \
    }
#define DEFINE_PAIRS(suffix, IN)                                                                                       \
    COMPARE_PAIR(eq_##suffix, IN, x == y)                                                                              \
    COMPARE_PAIR(ne_##suffix, IN, x<y || x> y)                                                                         \
    COMPARE_PAIR(lt_##suffix, IN, x < y)                                                                               \
    COMPARE_PAIR(le_##suffix, IN, x <= y)                                                                              \
    COMPARE_PAIR(gt_##suffix, IN, x > y)                                                                               \
    COMPARE_PAIR(ge_##suffix, IN, x >= y)                                                                              \
    COMPARE_PAIR(equ_##suffix, IN, !(x < y || x > y))                                                                  \
    COMPARE_PAIR(neu_##suffix, IN, x != y)                                                                             \
    COMPARE_PAIR(ltu_##suffix, IN, !(x >= y))                                                                          \
    COMPARE_PAIR(leu_##suffix, IN, !(x > y))                                                                           \
    COMPARE_PAIR(gtu_##suffix, IN, !(x <= y))                                                                          \
    COMPARE_PAIR(geu_##suffix, IN, !(x < y))                                                                           \
    COMPARE_PAIR(num_##suffix, IN, x == x && y == y)                                                                   \
    COMPARE_PAIR(nan_##suffix, IN, x != x || y != y)
DEFINE_PAIRS(f16x2, from_f16)
DEFINE_PAIRS(bf16x2, from_bf16)

#define SELECT(W)                                                                                                      \
    static void selp_##W(Warp *w, const Ins *i, u32 mask) {                                                            \
        const u##W *a = SLOT(u##W, 1), *b = SLOT(u##W, 2);                                                             \
        u32 p = *SLOT(u32, 3);                                                                                         \
        LANES_OF(u##W, to[l] = p >> l & 1 ? a[l] : b[l])                                                               \
    }
SELECT(16)
SELECT(32)
SELECT(64)
/* slct: a where c is not negative. */
TERNARY(slct_32, u32, u32, u32, s32, z >= 0 ? x : y)
TERNARY(slct_64, u64, u64, u64, s32, z >= 0 ? x : y)

/* Every comparison with the conjunctions of a third operand. */
#define COMBINED(op, type, run, c)                                                                                     \
    {"setp." op "." type, run, "p|p" c c}, {"setp." op ".and." type, run, "p|p" c c "p", .kind = COMBINE_AND},         \
        {"setp." op ".or." type, run, "p|p" c c "p", .kind = COMBINE_OR}, {                                            \
        "setp." op ".xor." type, run, "p|p" c c "p", .kind = COMBINE_XOR                                               \
    }
#define INTEGER_ROWS(W, c)                                                                                             \
    COMBINED("eq", "b" #W, eq_b##W, c), COMBINED("ne", "b" #W, ne_b##W, c), COMBINED("eq", "s" #W, eq_b##W, c),        \
        COMBINED("ne", "s" #W, ne_b##W, c), COMBINED("eq", "u" #W, eq_b##W, c), COMBINED("ne", "u" #W, ne_b##W, c),    \
        COMBINED("lt", "s" #W, lt_s##W, c), COMBINED("le", "s" #W, le_s##W, c), COMBINED("gt", "s" #W, gt_s##W, c),    \
        COMBINED("ge", "s" #W, ge_s##W, c), COMBINED("lt", "u" #W, lt_u##W, c), COMBINED("le", "u" #W, le_u##W, c),    \
        COMBINED("gt", "u" #W, gt_u##W, c), COMBINED("ge", "u" #W, ge_u##W, c), COMBINED("lo", "u" #W, lt_u##W, c),    \
        COMBINED("ls", "u" #W, le_u##W, c), COMBINED("hi", "u" #W, gt_u##W, c), COMBINED("hs", "u" #W, ge_u##W, c)
#define FLOAT_ROWS(ROW, type, T, c)                                                                                    \
    ROW("eq", type, eq_##T, c), ROW("ne", type, ne_##T, c), ROW("lt", type, lt_##T, c), ROW("le", type, le_##T, c),    \
        ROW("gt", type, gt_##T, c), ROW("ge", type, ge_##T, c), ROW("equ", type, equ_##T, c),                          \
        ROW("neu", type, neu_##T, c), ROW("ltu", type, ltu_##T, c), ROW("leu", type, leu_##T, c),                      \
        ROW("gtu", type, gtu_##T, c), ROW("geu", type, geu_##T, c), ROW("num", type, num_##T, c),                      \
        ROW("nan", type, nan_##T, c)
#define PAIR(op, type, run, c) {"setp." op "." type, run, "p|p" c c}
#define SELECT_ROWS(W, c)                                                                                              \
    {"selp.b" #W, selp_##W, c c c "p"}, {"selp.u" #W, selp_##W, c c c "p"}, {"selp.s" #W, selp_##W, c c c "p"}
static const Row rows[] = {
    INTEGER_ROWS(16, "h"),
    INTEGER_ROWS(32, "w"),
    INTEGER_ROWS(64, "x"),
    FLOAT_ROWS(COMBINED, "f32", f32, "w"),
    FLOAT_ROWS(COMBINED, "ftz.f32", f32_ftz, "w"),
    FLOAT_ROWS(COMBINED, "f64", f64, "x"),
    FLOAT_ROWS(COMBINED, "f16", f16, "h"),
    FLOAT_ROWS(COMBINED, "ftz.f16", f16_ftz, "h"),
    FLOAT_ROWS(COMBINED, "bf16", bf16, "h"),
    FLOAT_ROWS(PAIR, "f16x2", f16x2, "w"),
    FLOAT_ROWS(PAIR, "bf16x2", bf16x2, "w"),
    SELECT_ROWS(16, "h"),
    SELECT_ROWS(32, "w"),
    SELECT_ROWS(64, "x"),
    {"selp.f32", selp_32, "wwwp"},
    {"selp.f64", selp_64, "xxxp"},
    {"slct.b32.s32", slct_32, "wwww"},
    {"slct.u32.s32", slct_32, "wwww"},
    {"slct.s32.s32", slct_32, "wwww"},
    {"slct.f32.s32", slct_32, "wwww"},
    {"slct.b64.s32", slct_64, "xxxw"},
};
const Rows rows_compare = {rows, sizeof rows / sizeof *rows};
