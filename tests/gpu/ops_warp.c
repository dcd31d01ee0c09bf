/* Operations between the lanes of a warp, barriers and fences. */
#include "bulk.h"
#include "lanes.h"
#include "memory.h"
#include "ops.h"
#include "race.h"

void check_members(Warp *w, u32 mask, u32 members) {
    u32 away = members & w->top->live & ~mask, uninvited = mask & ~members;
    if (away)
        fault(w, first_lane(away), "this lane is named in the mask %#x but is elsewhere (here: %#x)", members, mask);
    if (uninvited) fault(w, first_lane(uninvited), "this lane is not named in the mask %#x", members);
}
static void check_named(Warp *w, const Ins *i, u32 mask) {
    if (i->members != NO_SLOT) check_members(w, mask, ((const u32 *)(w->frame + i->members))[first_lane(mask)]);
}

/* shfl: the lane that is read, and whether it is in range. d|p = a of the lane that b and c say. */
enum { SHFL_UP, SHFL_DOWN, SHFL_BFLY, SHFL_IDX };
static s32 source_lane(u32 kind, u32 l, u32 b, u32 c, bool *inside) {
    u32 segment = c >> 8 & 31, most = (l & segment) | (c & 31 & ~segment), by = b & 31;
    s32 from = kind == SHFL_UP     ? (s32)(l - by)
               : kind == SHFL_DOWN ? (s32)(l + by)
               : kind == SHFL_BFLY ? (s32)(l ^ by)
                                   : (s32)((l & segment) | (by & ~segment));
    *inside = kind == SHFL_UP ? from >= (s32)most : from <= (s32)most;
    return *inside ? from : (s32)l;
}
static void shfl(Warp *w, const Ins *i, u32 mask) {
    const u32 *a = SLOT(u32, 2), *b = SLOT(u32, 3), *c = SLOT(u32, 4);
    u32 r[LANES], p = 0;
    check_named(w, i, mask);
    each_lane(l, mask) {
        bool inside;
        u32 from = (u32)source_lane(i->kind, l, b[l], c[l], &inside);
        if (!(mask >> from & 1)) fault(w, l, "reads lane %u, which is not here", from);
        r[l] = a[from];
        p |= (u32)inside << l;
    }
    keep_32(SLOT(u32, 0), r, mask);
    keep_predicate(SLOT(u32, 1), p, mask);
}

static void vote_any(Warp *w, const Ins *i, u32 mask) {
    check_named(w, i, mask);
    keep_predicate(SLOT(u32, 0), *SLOT(u32, 1) & mask ? ALL_LANES : 0, mask);
}
static void vote_all(Warp *w, const Ins *i, u32 mask) {
    check_named(w, i, mask);
    keep_predicate(SLOT(u32, 0), ~*SLOT(u32, 1) & mask ? 0 : ALL_LANES, mask);
}
static void vote_uni(Warp *w, const Ins *i, u32 mask) {
    u32 p = *SLOT(u32, 1) & mask;
    check_named(w, i, mask);
    keep_predicate(SLOT(u32, 0), p == 0 || p == mask ? ALL_LANES : 0, mask);
}
static void give_all(Warp *w, const Ins *i, u32 mask, u32 value) {
    u32 *d = SLOT(u32, 0);
    each_lane(l, mask) d[l] = value;
}
static void vote_ballot(Warp *w, const Ins *i, u32 mask) {
    check_named(w, i, mask);
    give_all(w, i, mask, *SLOT(u32, 1) & mask);
}
static void activemask(Warp *w, const Ins *i, u32 mask) { give_all(w, i, mask, mask); }
/* The lane that is elected: the lowest one. */
static void elect(Warp *w, const Ins *i, u32 mask) {
    check_named(w, i, mask);
    give_all(w, i, mask, first_lane(mask));
    keep_predicate(SLOT(u32, 1), 1u << first_lane(mask), mask);
}

#define MATCH(W)                                                                                                       \
    static u32 equal_##W(const u##W *a, u##W x, u32 mask) {                                                            \
        u32 same = 0;                                                                                                  \
        each_lane(l, mask) same |= (u32)(a[l] == x) << l;                                                              \
        return same;                                                                                                   \
    }                                                                                                                  \
    static void match_any_##W(Warp *w, const Ins *i, u32 mask) {                                                       \
        const u##W *a = SLOT(u##W, 1);                                                                                 \
        u32 r[LANES];                                                                                                  \
        check_named(w, i, mask);                                                                                       \
        each_lane(l, mask) r[l] = equal_##W(a, a[l], mask);                                                            \
        keep_32(SLOT(u32, 0), r, mask);                                                                                \
    }                                                                                                                  \
    static void match_all_##W(Warp *w, const Ins *i, u32 mask) {                                                       \
        const u##W *a = SLOT(u##W, 2);                                                                                 \
        check_named(w, i, mask);                                                                                       \
        bool all = equal_##W(a, a[first_lane(mask)], mask) == mask;                                                    \
        give_all(w, i, mask, all ? mask : 0);                                                                          \
        keep_predicate(SLOT(u32, 1), all ? ALL_LANES : 0, mask);                                                       \
    }
MATCH(32)
MATCH(64)

#define REDUX(name, T, result)                                                                                         \
    static void name(Warp *w, const Ins *i, u32 mask) {                                                                \
        const T *a = SLOT(T, 1);                                                                                       \
        T x = a[first_lane(mask)];                                                                                     \
        check_named(w, i, mask);                                                                                       \
        each_lane(l, mask & (mask - 1)) {                                                                              \
            T y = a[l];                                                                                                \
            x = result;                                                                                                \
        }                                                                                                              \
        give_all(w, i, mask, (u32)x);                                                                                  \
    }
REDUX(redux_add, u32, x + y)
REDUX(redux_and, u32, x &y)
REDUX(redux_or, u32, x | y)
REDUX(redux_xor, u32, x ^ y)
REDUX(redux_min_u32, u32, x < y ? x : y)
REDUX(redux_max_u32, u32, x > y ? x : y)
REDUX(redux_min_s32, s32, x < y ? x : y)
REDUX(redux_max_s32, s32, x > y ? x : y)

static void warp_sync(Warp *w, const Ins *i, u32 mask) {
    check_named(w, i, mask);
    w->syncs++;
    if (clocks_on) clocks_warp_sync(w, mask);
}
static void nothing(Warp *w, const Ins *i, u32 mask) {}
/* After an atomic operation, a fence that other blocks see takes over what they did before theirs. */
static void device_fence(Warp *w, const Ins *i, u32 mask) {
    if (w->block->atomics) w->block->acquired = true;
}
/* The address of the same place in the memory of another block of the cluster. */
static u32 mapped(Warp *w, u32 lane, u64 address, u32 rank) {
    if (rank >= w->block->ranks) fault(w, lane, "block %u of a cluster of %u", rank, w->block->ranks);
    return (u32)(address % RANK_BYTES) + (rank + 1) * RANK_BYTES;
}
static void map_32(Warp *w, const Ins *i, u32 mask) {
    each_lane(l, mask) SLOT(u32, 0)[l] = mapped(w, l, SLOT(u32, 1)[l], SLOT(u32, 2)[l]);
}
static void map_64(Warp *w, const Ins *i, u32 mask) {
    each_lane(l, mask) SLOT(u64, 0)[l] = mapped(w, l, SLOT(u64, 1)[l], SLOT(u32, 2)[l]);
}
static void trap(Warp *w, const Ins *i, u32 mask) { fault(w, first_lane(mask), "trap"); }
static void pause(Warp *w, const Ins *i, u32 mask) { w->poll = true; }

#define SYNC(name, run, operands, mask, ...) {name, run, operands, FLOW_SYNC, (mask) + 1, __VA_ARGS__}
static const Row rows[] = {
    SYNC("shfl.sync.up.b32", shfl, "w|pwwww", 5, SHFL_UP),
    SYNC("shfl.sync.down.b32", shfl, "w|pwwww", 5, SHFL_DOWN),
    SYNC("shfl.sync.bfly.b32", shfl, "w|pwwww", 5, SHFL_BFLY),
    SYNC("shfl.sync.idx.b32", shfl, "w|pwwww", 5, SHFL_IDX),
    SYNC("vote.sync.any.pred", vote_any, "ppw", 2),
    SYNC("vote.sync.all.pred", vote_all, "ppw", 2),
    SYNC("vote.sync.uni.pred", vote_uni, "ppw", 2),
    SYNC("vote.sync.ballot.b32", vote_ballot, "wpw", 2),
    SYNC("match.any.sync.b32", match_any_32, "www", 2),
    SYNC("match.any.sync.b64", match_any_64, "wxw", 2),
    SYNC("match.all.sync.b32", match_all_32, "w|pww", 3),
    SYNC("match.all.sync.b64", match_all_64, "w|pxw", 3),
    SYNC("redux.sync.add.u32", redux_add, "www", 2),
    SYNC("redux.sync.add.s32", redux_add, "www", 2),
    SYNC("redux.sync.min.u32", redux_min_u32, "www", 2),
    SYNC("redux.sync.min.s32", redux_min_s32, "www", 2),
    SYNC("redux.sync.max.u32", redux_max_u32, "www", 2),
    SYNC("redux.sync.max.s32", redux_max_s32, "www", 2),
    SYNC("redux.sync.and.b32", redux_and, "www", 2),
    SYNC("redux.sync.or.b32", redux_or, "www", 2),
    SYNC("redux.sync.xor.b32", redux_xor, "www", 2),
    SYNC("elect.sync", elect, "w|pw", 2),
    SYNC("bar.warp.sync", warp_sync, "w", 0),
    {"activemask.b32", activemask, "w"},
    {"nanosleep.u32", pause, "w", FLOW_POLL},
    {"mapa.shared::cluster.u32", map_32, "www"},
    {"mapa.shared::cluster.u64", map_64, "xxw"},
    {"trap", trap, ""},
    {"brkpt", trap, ""},
    {"membar.cta", nothing, ""},
    {"membar.gl", device_fence, ""},
    {"membar.sys", device_fence, ""},
    {"fence.acq_rel.cta", nothing, ""},
    {"fence.acq_rel.cluster", nothing, ""},
    {"fence.acq_rel.gpu", device_fence, ""},
    {"fence.acq_rel.sys", device_fence, ""},
    {"fence.sc.cta", nothing, ""},
    {"fence.sc.cluster", nothing, ""},
    {"fence.sc.gpu", device_fence, ""},
    {"fence.sc.sys", device_fence, ""},
    {"fence.mbarrier_init.release.cluster", run_fence_mbarrier, ""},
    {"fence.proxy.async", run_fence_async, ""},
    {"fence.proxy.async.global", nothing, ""},
    {"fence.proxy.async.shared::cta", run_fence_async, ""},
    {"fence.proxy.async.shared::cluster", run_fence_async, ""},
    {"fence.proxy.alias", nothing, ""},
    {"griddepcontrol.wait", nothing, ""},
    {"griddepcontrol.launch_dependents", nothing, ""},
};
const Rows rows_warp = {rows, sizeof rows / sizeof *rows};
