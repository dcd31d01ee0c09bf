/* mma.sync. A register holds neighbours of a row of A, or of a column of B. Lane l is at g = l / 4 and t = l % 4:
   register r of A begins at row g + 8 (r % (M / 8)), column (r / (M / 8)) 4 n + t n, of n elements in a register;
   register r of B at row r 4 n + t n, column g; C and D have two columns, 2 t and 2 t + 1, of the rows g and g + 8.
   Floats are summed exactly up to f64's rounding and rounded once: the order of the hardware's sums is its own. */
#include "narrow.h"
#include "runtime/float.h"
#include "tensor.h"

const struct ElementInfo element_info[ELEMENTS] = {
    [ELEMENT_F16] = {"f16", 16, 4, false},   [ELEMENT_BF16] = {"bf16", 16, 4, false},
    [ELEMENT_TF32] = {"tf32", 32, 4, false}, [ELEMENT_F32] = {"f32", 32, 4, false},
    [ELEMENT_F64] = {"f64", 64, 8, false},   [ELEMENT_S8] = {"s8", 8, 4, true},
    [ELEMENT_U8] = {"u8", 8, 4, true},       [ELEMENT_S4] = {"s4", 4, 4, true},
    [ELEMENT_U4] = {"u4", 4, 4, true},       [ELEMENT_E4M3] = {"e4m3", 8, 4, false},
    [ELEMENT_E5M2] = {"e5m2", 8, 4, false},  [ELEMENT_S32] = {"s32", 32, 4, true}};
static const FloatFormat e4m3 = {4, 3, 7, FLOAT_FN}, e5m2 = {5, 2, 15, FLOAT_IEEE};
#define TF32_MASK 0xffffe000

static f64 f64_of_bits(u64 b) {
    f64 d;
    memcpy(&d, &b, 8);
    return d;
}
f64 element_value(Element e, u64 bits, u32 k) {
    u64 v = bits >> k * element_info[e].bits % 64;
    switch (e) {
    case ELEMENT_F16: return from_f16((u16)v);
    case ELEMENT_BF16: return from_bf16((u16)v);
    case ELEMENT_TF32: return f32_of_bits((u32)v & TF32_MASK);
    case ELEMENT_F32: return f32_of_bits((u32)v);
    case ELEMENT_S8: return (s8)v;
    case ELEMENT_U8: return (u8)v;
    case ELEMENT_S4: return (s8)(v << 4) >> 4;
    case ELEMENT_U4: return v & 15;
    case ELEMENT_E4M3: return float_decode(&e4m3, v & 255);
    case ELEMENT_E5M2: return float_decode(&e5m2, v & 255);
    case ELEMENT_S32: return (s32)v;
    default: return f64_of_bits(v);
    }
}
/* Sums are in s64 modulo 2^32 for integers; a saturating one is clamped. */
static u64 element_bits(Element e, f64 x, bool saturate) {
    u64 b;
    switch (e) {
    case ELEMENT_F16: return to_f16(odd_f32(x));
    case ELEMENT_F32: return bits_of_f32(quiet_f32((f32)x));
    case ELEMENT_S32:
        if (saturate) x = x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : x;
        return (u32)(s64)x;
    default: memcpy(&b, &x, 8); return b;
    }
}

u64 mma_bits(Element e, f64 x) { return element_bits(e, x, false); }

static u32 in_register(Element e) { return 8 * element_info[e].register_bytes / element_info[e].bits; }
u32 a_registers(const MmaShape *s) { return s->m / 8 * s->k / (4 * in_register(s->a)); }
u32 b_registers(const MmaShape *s) { return s->k / (4 * in_register(s->b)); }
u32 c_registers(const MmaShape *s, Element e) { return s->m / 8 * 2 / in_register(e); }

u32 mma_encoded(MmaShape s) { return s.m | s.k << 8 | s.a << 16 | s.b << 20 | s.c << 24 | (u32)s.d << 28; }
static MmaShape mma_decoded(u32 v) {
    return (MmaShape){v & 255, v >> 8 & 255, v >> 16 & 15, v >> 20 & 15, v >> 24 & 15, v >> 28};
}

static u64 register_bits(const Warp *w, u32 slot, Element e, u32 lane) {
    const u8 *at = w->frame + slot;
    return element_info[e].register_bytes == 8 ? ((const u64 *)at)[lane] : ((const u32 *)at)[lane];
}
typedef struct {
    f64 a[MAX_M][MAX_K], b[MAX_K][MAX_N], c[MAX_M][MAX_N];
} Matrices;
void mma_rows(const Warp *w, const MmaShape *s, const u32 *slots, f64 a[MAX_M][MAX_K]) {
    u32 n = in_register(s->a), rows = s->m / 8;
    for (u32 r = 0; r < a_registers(s); r++)
        for (u32 l = 0; l < LANES; l++) {
            u64 bits = register_bits(w, slots[r], s->a, l);
            f64 *to = &a[l / 4 + 8 * (r % rows)][r / rows * 4 * n + l % 4 * n];
            for (u32 k = 0; k < n; k++) to[k] = element_value(s->a, bits, k);
        }
}
static void gather_b(const Warp *w, const MmaShape *s, const u32 *slots, Matrices *x) {
    u32 n = in_register(s->b);
    for (u32 r = 0; r < b_registers(s); r++)
        for (u32 l = 0; l < LANES; l++) {
            u64 bits = register_bits(w, slots[r], s->b, l);
            for (u32 k = 0; k < n; k++) x->b[r * 4 * n + l % 4 * n + k][l / 4] = element_value(s->b, bits, k);
        }
}
/* Where the k-th element of register r of a lane is in C. */
static f64 *c_place(Matrices *x, u32 n, u32 r, u32 l, u32 k) {
    u32 at = r * n + k;
    return &x->c[l / 4 + 8 * (at / 2)][l % 4 * 2 + at % 2];
}
static void gather_c(const Warp *w, const MmaShape *s, const u32 *slots, Matrices *x) {
    u32 n = in_register(s->c);
    for (u32 r = 0; r < c_registers(s, s->c); r++)
        for (u32 l = 0; l < LANES; l++)
            for (u32 k = 0; k < n; k++)
                *c_place(x, n, r, l, k) = element_value(s->c, register_bits(w, slots[r], s->c, l), k);
}
static void scatter_d(Warp *w, const MmaShape *s, const u32 *slots, Matrices *x, bool saturate) {
    u32 n = in_register(s->d), width = element_info[s->d].bits;
    for (u32 r = 0; r < c_registers(s, s->d); r++)
        for (u32 l = 0; l < LANES; l++) {
            u64 bits = 0;
            for (u32 k = 0; k < n; k++) bits |= element_bits(s->d, *c_place(x, n, r, l, k), saturate) << k * width % 64;
            memcpy(w->frame + slots[r] + l * element_info[s->d].register_bytes, &bits,
                   element_info[s->d].register_bytes);
        }
}
void whole_warp(Warp *w, u32 mask) {
    if (mask != ALL_LANES) fault(w, first_lane(~mask), "only the lanes %#x of the warp are here", mask);
}
/* list: registers of D, A, B, C; kind: integers saturate. */
void run_mma(Warp *w, const Ins *i, u32 mask) {
    MmaShape s = mma_decoded(i->target);
    const u32 *d = w->top->f->lists.at + i->list, *a = d + c_registers(&s, s.d), *b = a + a_registers(&s),
              *c = b + b_registers(&s);
    Matrices x;
    whole_warp(w, mask);
    mma_rows(w, &s, a, x.a);
    gather_b(w, &s, b, &x);
    gather_c(w, &s, c, &x);
    for (u32 m = 0; m < s.m; m++)
        for (u32 k = 0; k < s.k; k++)
            for (u32 n = 0; n < MAX_N; n++) x.c[m][n] += x.a[m][k] * x.b[k][n];
    scatter_d(w, &s, d, &x, i->kind);
}
