/* cp.async.bulk and cp.async.bulk.tensor: bytes, or a box of an array, to shared memory. */
#include "bulk.h"
#include "lanes.h"
#include "race.h"
#include <stdlib.h>

enum { MAP_ALIGN = 64, BOX_ALIGN = 128 };
/* Written by a copy, or by threads before a fence of this kind: products of a warpgroup may read it. */
enum { SEEN_BY_ALL = 3 };

struct Bulk {
    Warp *w;
    u32 lane, bytes, phase; /* phase: of the barrier */
    u64 to, from, barrier;
    PtxTensorMap map; /* rank 0: `bytes` from `from` */
    s32 at[PTX_MAP_RANK];
};

u64 swizzled(u64 address, u32 swizzle) {
    u64 rows = swizzle ? swizzle / CHUNK - 1 : 0;
    return address ^ (address >> 7 & rows) << 4;
}
static void add(Warp *w, Bulk b) {
    Block *x = w->block;
    if (x->nbulk == x->bulk_cap) {
        x->bulk_cap = x->bulk_cap ? 2 * x->bulk_cap : 16;
        Bulk *more = realloc(x->bulk, x->bulk_cap * sizeof *more);
        if (!more) fault(w, b.lane, "no memory for asynchronous copies");
        x->bulk = more;
    }
    x->bulk[x->nbulk++] = b;
}
/* From now on nobody may touch what is written, until it is waited for. */
static void ask(Warp *w, Bulk b) {
    if (b.to % BOX_ALIGN && b.map.rank) fault(w, b.lane, "a box at %#llx of shared memory", (unsigned long long)b.to);
    b.phase = mbarrier_copy(w, b.lane, b.barrier);
    u32 barrier = mbarrier_number(w, b.lane, b.barrier);
    for (u32 at = 0; at < b.bytes; at += CHUNK) {
        u64 to = swizzled(b.to + at, b.map.swizzle);
        place_of(w, SPACE_SHARED, b.lane, to, CHUNK, TOUCH_NOT);
        if (ptx_options.races & 1) touched_box(w, b.lane, barrier, to, CHUNK);
    }
    add(w, b);
}
/* o: to, from, barrier, each with its offset; then bytes, or a list of coordinates. */
static Bulk bulk_of(Warp *w, const Ins *i, u32 l) {
    return (Bulk){.w = w,
                  .lane = l,
                  .to = (SLOT(u64, 0)[l] + (u64)i->offset) & ~WINDOW_MASK,
                  .from = SLOT(u64, 1)[l] + (u64)(s32)i->target,
                  .barrier = (SLOT(u64, 2)[l] + (u64)i->offset2) & ~WINDOW_MASK};
}
void run_bulk(Warp *w, const Ins *i, u32 mask) {
    each_lane(l, mask) {
        Bulk b = bulk_of(w, i, l);
        b.bytes = SLOT(u32, 3)[l];
        if (b.bytes % CHUNK) fault(w, l, "a copy of %u bytes, not of a multiple of 16", b.bytes);
        if (b.from % CHUNK) fault(w, l, "a copy from address %#llx, not a multiple of 16", (unsigned long long)b.from);
        ask(w, b);
    }
}
static PtxTensorMap map_of(Warp *w, u32 lane, u64 address) {
    PtxTensorMap m;
    if (address % MAP_ALIGN) fault(w, lane, "a tensor map at %#llx", (unsigned long long)address);
    const u8 *p = place_of(w, SPACE_GENERIC, lane, address, MAP_ALIGN, TOUCH_READ);
    place_of(w, SPACE_GENERIC, lane, address + MAP_ALIGN, MAP_ALIGN, TOUCH_READ);
    memcpy(&m, p, sizeof m);
    if (m.valid != PTX_MAP_VALID) fault(w, lane, "there is no tensor map at %#llx", (unsigned long long)address);
    return m;
}
static u32 box_bytes(const PtxTensorMap *m) {
    u32 bytes = m->element_bytes;
    for (u32 a = 0; a < m->rank; a++) bytes *= m->box[a];
    return bytes;
}
void run_bulk_tensor(Warp *w, const Ins *i, u32 mask) {
    const u32 *list = w->top->f->lists.at + i->list;
    each_lane(l, mask) {
        Bulk b = bulk_of(w, i, l);
        b.map = map_of(w, l, b.from);
        if (b.map.rank != i->n) fault(w, l, "%u coordinates for a tensor map of rank %u", i->n, b.map.rank);
        for (u32 a = 0; a < i->n; a++) b.at[a] = ((const s32 *)(w->frame + list[a]))[l];
        b.bytes = box_bytes(&b.map);
        ask(w, b);
    }
}

/* ---- doing them */
static u8 *chunk_to(const Bulk *b, u64 offset) {
    Warp *w = b->w;
    u64 at = swizzled(b->to + offset, b->map.swizzle);
    memset(w->block->shared_written + at, SEEN_BY_ALL, CHUNK);
    return w->block->shared + at;
}
static void copy_bytes(const Bulk *b) {
    for (u32 at = 0; at < b->bytes; at += CHUNK)
        memcpy(chunk_to(b, at), place_of(b->w, SPACE_GLOBAL, b->lane, b->from + at, CHUNK, TOUCH_READ), CHUNK);
}
/* Elements from `x` on of the innermost axis, at this address; those outside the array are 0. */
static void copy_chunk(const Bulk *b, u8 *to, u64 row, s64 x, bool inside) {
    const PtxTensorMap *m = &b->map;
    u32 n = m->element_bytes;
    memset(to, 0, CHUNK);
    for (u32 k = 0; inside && k < CHUNK / n; k++)
        if (x + k >= 0 && (u64)(x + k) < m->extents[0])
            memcpy(to + k * n, place_of(b->w, SPACE_GLOBAL, b->lane, row + (u64)(x + k) * n, n, TOUCH_READ), n);
}
static void copy_box(const Bulk *b) {
    const PtxTensorMap *m = &b->map;
    u32 line = (u32)m->box[0] * m->element_bytes, lines = b->bytes / line;
    for (u32 y = 0; y < lines; y++) {
        u64 row = m->address;
        bool inside = true;
        for (u32 a = 1, left = y; a < m->rank; left /= m->box[a], a++) {
            s64 x = b->at[a] + (s64)(left % m->box[a]);
            inside &= x >= 0 && (u64)x < m->extents[a];
            row += (u64)x * m->strides[a];
        }
        for (u32 at = 0; at < line; at += CHUNK)
            copy_chunk(b, chunk_to(b, (u64)y * line + at), row, b->at[0] + (s64)(at / m->element_bytes), inside);
    }
}
bool bulk_waits(const Block *x, u64 barrier) {
    for (u32 k = 0; k < x->nbulk; k++)
        if (x->bulk[k].barrier == barrier) return true;
    return false;
}
void bulk_finish(Warp *w, u64 barrier) {
    Block *x = w->block;
    u32 kept = 0;
    for (u32 k = 0; k < x->nbulk; k++) {
        Bulk b = x->bulk[k];
        if (b.barrier != barrier) {
            x->bulk[kept++] = b;
            continue;
        }
        if (clocks_on) race_as = 1 + clocks_copies(mbarrier_number(b.w, b.lane, barrier));
        if (b.map.rank)
            copy_box(&b);
        else
            copy_bytes(&b);
        race_as = 0;
        mbarrier_complete(b.w, b.lane, barrier, b.bytes, b.phase);
    }
    x->nbulk = kept;
}
void bulk_end(Block *x) {
    if (x->nbulk) fault(x->bulk[0].w, x->bulk[0].lane, "the block ends, and nobody has waited for a copy");
}
/* fence.proxy.async: what threads have written to shared memory is seen by copies and products. */
void run_fence_async(Warp *w, const Ins *i, u32 mask) {
    Block *b = w->block;
    mbarriers_fence(w, mask, true);
    if (clocks_on) clocks_fence(w, mask);
    for (u32 k = 0; k < b->shared_bytes; k++)
        if (b->shared_written[k]) b->shared_written[k] = SEEN_BY_ALL;
}
