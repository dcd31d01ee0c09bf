/* ld and st: elements of memory to registers, one for each element, and back. */
#include "lanes.h"
#include "memory.h"

static const Touch load_touch[] = {[ORDER_WEAK] = TOUCH_READ,
                                   [ORDER_RELAXED] = TOUCH_ATOMIC_READ,
                                   [ORDER_ACQUIRE] = TOUCH_ATOMIC_READ},
                   store_touch[] = {[ORDER_WEAK] = TOUCH_WRITE,
                                    [ORDER_RELAXED] = TOUCH_ATOMIC_WRITE,
                                    [ORDER_RELEASE] = TOUCH_ATOMIC_WRITE};

static const u32 *list_of(const Warp *w, const Ins *i) { return w->top->f->lists.at + i->list; }
static bool load_places(Warp *w, const Ins *i, u32 mask, u8 *place[LANES]) {
    u64 room[LANES];
    const u64 *a = addresses(w, i, i->o[0], i->offset, room);
    bool dense = places(w, i->space, mask, a, i->bytes * i->n, load_touch[i->order], place);
    if (i->order == ORDER_ACQUIRE) w->block->acquired = true;
    return dense;
}
static bool store_places(Warp *w, const Ins *i, u32 mask, u8 *place[LANES]) {
    u64 room[LANES];
    const u64 *a = addresses(w, i, i->o[0], i->offset, room);
    return places(w, i->space, mask, a, i->bytes * i->n, store_touch[i->order], place);
}
/* Elements of M in registers of R. */
#define LOAD(name, M, R)                                                                                               \
    static void name(Warp *w, const Ins *i, u32 mask) {                                                                \
        u8 *p[LANES];                                                                                                  \
        bool dense = load_places(w, i, mask, p);                                                                       \
        const u32 *list = list_of(w, i);                                                                               \
        if (dense && i->n == 1) {                                                                                      \
            R *d = (R *)(w->frame + list[0]);                                                                          \
            const M *m = (const M *)p[0];                                                                              \
            EACH_LANE d[l] = (R)m[l];                                                                                  \
            return;                                                                                                    \
        }                                                                                                              \
        for (u32 k = 0; k < i->n; k++) {                                                                               \
            R *d = (R *)(w->frame + list[k]);                                                                          \
            if (mask == ALL_LANES)                                                                                     \
                for (u32 l = 0; l < LANES; l++) d[l] = (R)((const M *)p[l])[k];                                        \
            else                                                                                                       \
                each_lane(l, mask) d[l] = (R)((const M *)p[l])[k];                                                     \
        }                                                                                                              \
    }
#define STORE(name, M, R)                                                                                              \
    static void name(Warp *w, const Ins *i, u32 mask) {                                                                \
        u8 *p[LANES];                                                                                                  \
        bool dense = store_places(w, i, mask, p);                                                                      \
        const u32 *list = list_of(w, i);                                                                               \
        if (dense && i->n == 1) {                                                                                      \
            const R *a = (const R *)(w->frame + list[0]);                                                              \
            M *m = (M *)p[0];                                                                                          \
            EACH_LANE m[l] = (M)a[l];                                                                                  \
            return;                                                                                                    \
        }                                                                                                              \
        each_lane(l, mask) for (u32 k = 0; k < i->n; k++)((M *)p[l])[k] = (M)((const R *)(w->frame + list[k]))[l];     \
    }
#define DEFINE(M, W)                                                                                                   \
    LOAD(load_u##M##_##W, u##M, u##W)                                                                                  \
    LOAD(load_s##M##_##W, s##M, s##W)                                                                                  \
    STORE(store_##M##_##W, u##M, u##W)
DEFINE(8, 16)
DEFINE(8, 32)
DEFINE(8, 64)
DEFINE(16, 16)
DEFINE(16, 32)
DEFINE(16, 64)
DEFINE(32, 32)
DEFINE(32, 64)
DEFINE(64, 64)

#define BOTH(M, W) {load_u##M##_##W, load_s##M##_##W}
Run *const load_runs[4][4][2] = {
    {{0}, BOTH(8, 16), BOTH(8, 32), BOTH(8, 64)},
    {{0}, BOTH(16, 16), BOTH(16, 32), BOTH(16, 64)},
    {{0}, {0}, BOTH(32, 32), BOTH(32, 64)},
    {{0}, {0}, {0}, BOTH(64, 64)},
};
Run *const store_runs[4][4] = {
    {NULL, store_8_16, store_8_32, store_8_64},
    {NULL, store_16_16, store_16_32, store_16_64},
    {NULL, NULL, store_32_32, store_32_64},
    {NULL, NULL, NULL, store_64_64},
};
