/* Where the lanes of an instruction read and write. */
#include "lanes.h"
#include "memory.h"

enum { BANKS = 32, BANK_BYTES = 4 };
static const char *const space_names[] = {"generic", "global", "shared", "local", "parameter", "call parameter"};

const u64 *addresses(const Warp *w, const Ins *i, u32 slot, s64 offset, u64 room[LANES]) {
    const u64 *a = (const u64 *)(w->frame + slot);
    if (i->short_address) {
        const u32 *b = (const u32 *)a;
        EACH_LANE room[l] = b[l] + (u64)offset;
        return room;
    }
    if (offset == 0) return a;
    EACH_LANE room[l] = a[l] + (u64)offset;
    return room;
}

/* Of memory that is not global: where the bytes of one lane begin, and how many there are. */
typedef struct {
    u8 *at, *written; /* written: may be NULL */
    u64 first, end;   /* addresses that are allowed */
    u64 stride;       /* from the bytes of one lane to those of the next */
    bool constant;
} Bank;
static Bank bank_of(const Warp *w, Space space) {
    const Activation *a = w->top;
    switch (space) {
    case SPACE_SHARED: return (Bank){w->block->shared, w->block->shared_written, 0, w->block->shared_bytes, 0, false};
    case SPACE_LOCAL:
        return (Bank){w->local, w->local_written, 0, a->local_base + a->f->local_bytes, w->local_bytes, false};
    case SPACE_CALL: return (Bank){a->calls, NULL, 0, a->f->call_bytes, a->f->call_bytes, false};
    default: return (Bank){(u8 *)a->params, NULL, 0, a->params_bytes, a->params_stride, a->caller == NULL};
    }
}
static Space window(u64 *address) {
    u64 top = *address & WINDOW_MASK;
    *address &= ~WINDOW_MASK;
    switch (top) {
    case SHARED_WINDOW: return SPACE_SHARED;
    case LOCAL_WINDOW: return SPACE_LOCAL;
    case PARAM_WINDOW: return SPACE_PARAM;
    default: *address |= top; return SPACE_GLOBAL;
    }
}
/* Where a place of this block, or of the one of the cluster that the address names, is in the memory of all. */
static u64 in_cluster(Warp *w, u32 lane, u64 address, u32 bytes) {
    const Block *b = w->block;
    u64 rank = address / RANK_BYTES ? address / RANK_BYTES - 1 : rank_of(w), at = address % RANK_BYTES;
    u32 each = b->nwarps / b->ranks, live = 0;
    if (rank >= b->ranks || at + bytes > b->shared_bytes)
        fault(w, lane, "%u bytes at %#llx are not in the %u bytes of shared memory of %u blocks", bytes,
              (unsigned long long)address, b->shared_bytes, b->ranks);
    for (u64 k = rank * each; k < (rank + 1) * each; k++) live |= b->warps[k].entry.live;
    if (!live) fault(w, lane, "block %u of the cluster has ended", (u32)rank);
    return rank * b->shared_bytes + at;
}
static bool clustered(const Warp *w, Space space) { return space == SPACE_SHARED && w->block->ranks > 1; }
static bool writes(Touch how) { return how == TOUCH_WRITE || how == TOUCH_ATOMIC_WRITE; }
static bool reads(Touch how) { return how == TOUCH_READ || how == TOUCH_ATOMIC_READ || how == TOUCH_ATOMIC_WRITE; }
static _Noreturn void unaligned(Warp *w, u32 lane, u64 address, u32 bytes) {
    fault(w, lane, "address %#llx is not a multiple of %u", (unsigned long long)address, bytes);
}
static void check_written(Warp *w, Space space, u32 lane, u64 address, u8 *written, u32 bytes) {
    if (memchr(written, 0, bytes))
        fault(w, lane, "%u bytes at %#llx of %s memory are read and were never written", bytes,
              (unsigned long long)address, space_names[space]);
}
static void mark(u8 *written, u32 bytes) {
    switch (bytes) {
    case 4: memcpy(written, "\1\1\1\1", 4); break;
    case 8: memcpy(written, "\1\1\1\1\1\1\1\1", 8); break;
    default: memset(written, 1, bytes);
    }
}
static void visit(Warp *w, Space space, u32 lane, u64 address, u8 *written, u32 bytes, Touch how) {
    if (!written) return;
    if (ptx_options.uninitialised && reads(how)) check_written(w, space, lane, address, written, bytes);
    if (writes(how)) mark(written, bytes);
}
static void count_global(Touch how, u64 bytes) {
    if (reads(how)) ptx_counts.global_read += bytes;
    if (writes(how)) ptx_counts.global_written += bytes;
}

/* area: NULL for shared memory */
static void touch_one(Warp *w, u32 lane, Area *area, u64 address, u32 bytes, Touch how) {
    u64 at[LANES];
    at[lane] = address;
    if (area)
        touch_global(w, 1u << lane, area, at, bytes, how);
    else
        touch_shared(w, 1u << lane, at, bytes, how);
}
static u8 *global_place(Warp *w, u32 lane, u64 address, u32 bytes, Touch how) {
    if (ptx_options.host && address < PTX_DEVICE_BIAS) return (u8 *)address;
    Area *a = area_here(address, bytes);
    if (!a)
        fault(w, lane, "%u bytes at %#llx are not device memory%s", bytes, (unsigned long long)address,
              address < PTX_DEVICE_BIAS   ? " (an address of the host?)"
              : area_find(address, bytes) ? " of this device"
                                          : "");
    u64 at = address - PTX_DEVICE_BIAS - a->at;
    visit(w, SPACE_GLOBAL, lane, address - PTX_DEVICE_BIAS, a->written + at, bytes, how);
    if (ptx_options.races & 2)
        touch_one(w, lane, a, address, bytes, how);
    else
        count_global(how, bytes);
    return (u8 *)a->at + at;
}
u8 *place_of(Warp *w, Space space, u32 lane, u64 address, u32 bytes, Touch how) {
    if (space == SPACE_GENERIC) space = window(&address);
    if (address & (bytes - 1)) unaligned(w, lane, address, bytes);
    if (space == SPACE_GLOBAL) return global_place(w, lane, address, bytes, how);
    Bank b = bank_of(w, space);
    if (clustered(w, space)) address = in_cluster(w, lane, address, bytes), b.end *= w->block->ranks;
    if (address < b.first || address > b.end || bytes > b.end - address || (b.constant && writes(how)))
        fault(w, lane, "%u bytes at %lld are not in the %llu bytes of %s memory%s", bytes, (long long)address,
              (unsigned long long)(b.end - b.first), space_names[space],
              b.constant && writes(how) ? " that may be written" : "");
    u64 at = lane * b.stride + address;
    visit(w, space, lane, address, b.written ? b.written + at : NULL, bytes, how);
    if (space == SPACE_SHARED && ptx_options.races & 1) touch_one(w, lane, NULL, address, bytes, how);
    return b.at + at;
}

/* The least and the greatest address of the lanes, and all their bits. */
typedef struct {
    u64 low, high, bits;
} Range;
static Range range_of(u32 mask, const u64 *a) {
    s64 low = INT64_MAX, high = INT64_MIN;
    u64 bits = 0;
    if (mask == ALL_LANES) {
        EACH_LANE {
            s64 x = (s64)a[l];
            low = x < low ? x : low;
            high = x > high ? x : high;
            bits |= a[l];
        }
        return (Range){(u64)low, (u64)high, bits};
    }
    each_lane(l, mask) {
        s64 x = (s64)a[l];
        low = x < low ? x : low;
        high = x > high ? x : high;
        bits |= a[l];
    }
    return (Range){(u64)low, (u64)high, bits};
}
static bool follow(u32 mask, const u64 *a, Range r, u32 bytes) {
    if (mask != ALL_LANES || r.high - r.low != (u64)bytes * (LANES - 1)) return false;
    u64 wrong = 0;
    EACH_LANE wrong |= a[l] ^ (r.low + l * (u64)bytes);
    return wrong == 0;
}
static bool one_by_one(Warp *w, Space space, u32 mask, const u64 *address, u32 bytes, Touch how, u8 *place[LANES]) {
    each_lane(l, mask) place[l] = place_of(w, space, l, address[l], bytes, how);
    return false;
}
/* The maps of written bytes, for all lanes: those of consecutive places at once. */
static void visit_all(Warp *w, Space space, u32 mask, const u64 *address, u8 *const *place, s64 map, u32 bytes,
                      Touch how, bool dense) {
    if (dense && how == TOUCH_WRITE) {
        memset(place[0] + map, 1, (size_t)bytes * LANES);
        return;
    }
    if (how == TOUCH_READ && !ptx_options.uninitialised) return;
    each_lane(l, mask) visit(w, space, l, address[l], place[l] + map, bytes, how);
}
static bool global_places(Warp *w, u32 mask, const u64 *address, u32 bytes, Touch how, u8 *place[LANES], Range r) {
    Area *a = r.high >= r.low ? area_here(r.low, r.high - r.low + bytes) : NULL;
    if (!a) return one_by_one(w, SPACE_GLOBAL, mask, address, bytes, how, place);
    EACH_LANE place[l] = (u8 *)(address[l] - PTX_DEVICE_BIAS);
    bool dense = follow(mask, address, r, bytes);
    visit_all(w, SPACE_GLOBAL, mask, address, place, (s64)((u64)a->written - a->at), bytes, how, dense);
    if (ptx_options.races & 2)
        touch_global(w, mask, a, address, bytes, how);
    else
        count_global(how, (u64)__builtin_popcount(mask) * bytes);
    return dense;
}
static bool bank_places(Warp *w, Space space, u32 mask, const u64 *address, u32 bytes, Touch how, u8 *place[LANES],
                        Range r) {
    Bank b = bank_of(w, space);
    if (clustered(w, space) || r.low > b.end || r.high > b.end || r.high + bytes > b.end || (b.constant && writes(how)))
        return one_by_one(w, space, mask, address, bytes, how, place);
    EACH_LANE place[l] = b.at + l * b.stride + address[l];
    if (b.written) visit_all(w, space, mask, address, place, b.written - b.at, bytes, how, false);
    if (space == SPACE_SHARED && ptx_options.races & 1) {
        count_conflicts(mask, address, bytes);
        touch_shared(w, mask, address, bytes, how);
    }
    return b.stride == 0 && follow(mask, address, r, bytes);
}
bool places(Warp *w, Space space, u32 mask, const u64 *address, u32 bytes, Touch how, u8 *place[LANES]) {
    Range r = range_of(mask, address);
    u64 away[LANES];
    if (space == SPACE_GENERIC) {
        u64 low = r.low, high = r.high;
        space = window(&low);
        if (window(&high) != space) return one_by_one(w, SPACE_GENERIC, mask, address, bytes, how, place);
        if (space != SPACE_GLOBAL) {
            EACH_LANE away[l] = address[l] & ~WINDOW_MASK;
            address = away, r.low = low, r.high = high;
        }
    }
    if (r.bits & (bytes - 1)) each_lane(l, mask) if (address[l] & (bytes - 1)) unaligned(w, l, address[l], bytes);
    return (space == SPACE_GLOBAL ? global_places(w, mask, address, bytes, how, place, r)
                                  : bank_places(w, space, mask, address, bytes, how, place, r));
}

/* How often shared memory must be accessed beyond once: a bank gives one word at a time. Lanes of 8 and 16 bytes go by
   halves and quarters, and their banks together. */
void count_conflicts(u32 mask, const u64 *address, u32 bytes) {
    u32 unit = bytes < BANK_BYTES ? BANK_BYTES : bytes, together = BANKS * BANK_BYTES / unit;
    for (u32 first = 0; first < LANES; first += together) {
        u64 units[BANKS][LANES], last = UINT64_MAX;
        u8 n[BANKS] = {0}, most = 0;
        for (u32 l = first; l < first + together; l++) {
            u64 at = address[l] / unit;
            u32 bank = at % together, j = 0;
            if (!(mask >> l & 1) || at == last) continue;
            last = at;
            while (j < n[bank] && units[bank][j] != at) j++;
            if (j == n[bank]) units[bank][n[bank]++] = at;
            if (n[bank] > most) most = n[bank];
        }
        if (most > 1) ptx_counts.shared_conflicts += most - 1u;
    }
}
