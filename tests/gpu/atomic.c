/* atom and red: lanes one after the other, lowest first. */
#include "lanes.h"
#include "memory.h"
#include "narrow.h"

/* x: what memory holds, y and z: the operands. red is atom whose result goes to a slot that nobody reads. */
#define ATOMIC(name, T, ...)                                                                                           \
    static void name(Warp *w, const Ins *i, u32 mask) {                                                                \
        T *d = SLOT(T, 0);                                                                                             \
        const T *b = SLOT(T, 2), *c = SLOT(T, 3);                                                                      \
        u64 room[LANES];                                                                                               \
        const u64 *a = addresses(w, i, i->o[1], i->offset, room);                                                      \
        each_lane(l, mask) {                                                                                           \
            u8 *p = place_of(w, i->space, l, a[l], sizeof(T), TOUCH_ATOMIC_WRITE);                                     \
            T x, y = b[l], z = c[l];                                                                                   \
            memcpy(&x, p, sizeof x);                                                                                   \
            T r = (T)(__VA_ARGS__);                                                                                    \
            memcpy(p, &r, sizeof r);                                                                                   \
            d[l] = x;                                                                                                  \
            (void)y, (void)z;                                                                                          \
        }                                                                                                              \
        w->block->atomics = true;                                                                                      \
        if (i->order == ORDER_ACQUIRE || i->order == ORDER_ACQ_REL) w->block->acquired = true;                         \
    }
#define DEFINE(W)                                                                                                      \
    ATOMIC(add_##W, u##W, x + y)                                                                                       \
    ATOMIC(and_##W, u##W, x &y)                                                                                        \
    ATOMIC(or_##W, u##W, x | y)                                                                                        \
    ATOMIC(xor_##W, u##W, x ^ y)                                                                                       \
    ATOMIC(exch_##W, u##W, y)                                                                                          \
    ATOMIC(cas_##W, u##W, x == y ? z : x)                                                                              \
    ATOMIC(min_u##W, u##W, x < y ? x : y)                                                                              \
    ATOMIC(max_u##W, u##W, x > y ? x : y)                                                                              \
    ATOMIC(min_s##W, s##W, x < y ? x : y)                                                                              \
    ATOMIC(max_s##W, s##W, x > y ? x : y)
DEFINE(32)
DEFINE(64)
ATOMIC(cas_16, u16, x == y ? z : x)
ATOMIC(inc, u32, x >= y ? 0 : x + 1)
ATOMIC(dec, u32, x == 0 || x > y ? y : x - 1)
ATOMIC(add_f32, f32, x + y)
ATOMIC(add_f64, f64, x + y)
ATOMIC(add_f16, u16, to_f16(from_f16(x) + from_f16(y)))
ATOMIC(add_bf16, u16, to_bf16(from_bf16(x) + from_bf16(y)))
static u32 add_pair_f16(u32 x, u32 y) {
    return to_f16(from_f16((u16)x) + from_f16((u16)y)) | (u32)to_f16(from_f16(x >> 16) + from_f16(y >> 16)) << 16;
}
static u32 add_pair_bf16(u32 x, u32 y) {
    return to_bf16(from_bf16((u16)x) + from_bf16((u16)y)) | (u32)to_bf16(from_bf16(x >> 16) + from_bf16(y >> 16)) << 16;
}
ATOMIC(add_f16x2, u32, add_pair_f16(x, y))
ATOMIC(add_bf16x2, u32, add_pair_bf16(x, y))

static const struct {
    const char *operation, *type;
    Run *run;
} rows[] = {
    {"add", "u32", add_32},      {"add", "s32", add_32},        {"add", "u64", add_64},  {"add", "s64", add_64},
    {"add", "f32", add_f32},     {"add", "f64", add_f64},       {"add", "f16", add_f16}, {"add", "bf16", add_bf16},
    {"add", "f16x2", add_f16x2}, {"add", "bf16x2", add_bf16x2}, {"min", "u32", min_u32}, {"min", "s32", min_s32},
    {"min", "u64", min_u64},     {"min", "s64", min_s64},       {"max", "u32", max_u32}, {"max", "s32", max_s32},
    {"max", "u64", max_u64},     {"max", "s64", max_s64},       {"and", "b32", and_32},  {"and", "b64", and_64},
    {"or", "b32", or_32},        {"or", "b64", or_64},          {"xor", "b32", xor_32},  {"xor", "b64", xor_64},
    {"exch", "b32", exch_32},    {"exch", "b64", exch_64},      {"cas", "b16", cas_16},  {"cas", "b32", cas_32},
    {"cas", "b64", cas_64},      {"inc", "u32", inc},           {"dec", "u32", dec},
};
Run *atomic_run(Str operation, Str type) {
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (str_is(operation, rows[k].operation) && str_is(type, rows[k].type)) return rows[k].run;
    return NULL;
}
