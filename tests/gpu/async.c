/* cp.async: a copy is done when its thread waits for it, so that a program which forgets to wait reads what was there
   before. Nobody may touch what it writes until then. */
#include "lanes.h"
#include "memory.h"
#include "tensor.h"
#include <stdlib.h>

#define NOT_COMMITTED UINT32_MAX

static void add_copy(Warp *w, u32 lane, Copy c) {
    Copies *x = &w->copies;
    if (x->n == x->cap) {
        x->cap = x->cap ? 2 * x->cap : 256;
        Copy *more = realloc(x->at, x->cap * sizeof *more);
        if (!more) fault(w, lane, "no memory for asynchronous copies");
        x->at = more;
    }
    x->at[x->n++] = c;
}
/* o: destination, source, bytes that are read or NO_SLOT; the rest of `bytes` is zeros. */
void run_cp_async(Warp *w, const Ins *i, u32 mask) {
    u64 to_room[LANES], from_room[LANES];
    const u64 *to = addresses(w, i, i->o[0], i->offset, to_room),
              *from = addresses(w, i, i->o[1], i->offset2, from_room);
    u64 places[LANES] = {0};
    each_lane(l, mask) {
        u32 valid = i->o[2] == NO_SLOT ? i->bytes : SLOT(u32, 2)[l];
        if (valid > i->bytes) fault(w, l, "cp.async reads %u of %u bytes", valid, i->bytes);
        places[l] = (u64)(place_of(w, SPACE_SHARED, l, to[l], i->bytes, TOUCH_NOT) - w->block->shared);
        if (from[l] & (i->bytes - 1u))
            fault(w, l, "address %#llx is not a multiple of %u", (unsigned long long)from[l], i->bytes);
        if (valid) place_of(w, SPACE_GLOBAL, l, from[l], 1, TOUCH_NOT);
        add_copy(w, l, (Copy){places[l], from[l], i->bytes, valid, l, NOT_COMMITTED});
    }
    if (ptx_options.races & 1) touch_asked(w, mask, places, i->bytes);
}
void run_cp_commit(Warp *w, const Ins *i, u32 mask) {
    for (u32 k = 0; k < w->copies.n; k++) {
        Copy *c = &w->copies.at[k];
        if (mask >> c->lane & 1 && c->group == NOT_COMMITTED) c->group = w->copies.groups[c->lane];
    }
    each_lane(l, mask) w->copies.groups[l]++;
}
static void do_copy(Warp *w, const Copy *c) {
    u8 *to = w->block->shared + c->to;
    if (ptx_options.races & 1) touch_copied(w, c->lane, c->to, c->bytes);
    memset(w->block->shared_written + c->to, 1, c->bytes);
    memset(to, 0, c->bytes);
    for (u32 at = 0, piece; at < c->valid; at += piece) { /* pieces that are aligned */
        u32 left = c->valid - at;
        piece = 1u << (31 - __builtin_clz(left));
        memcpy(to + at, place_of(w, SPACE_GLOBAL, c->lane, c->from + at, piece, TOUCH_READ), piece);
    }
}
/* Copies of groups but the last `pending` of each lane, or of all; the others are kept. */
static void complete(Warp *w, u32 mask, u32 pending, bool all) {
    Copies *x = &w->copies;
    u32 kept = 0;
    for (u32 k = 0; k < x->n; k++) {
        Copy c = x->at[k];
        u32 groups = x->groups[c.lane];
        bool due = all || (c.group != NOT_COMMITTED && groups > pending && c.group < groups - pending);
        if (mask >> c.lane & 1 && due)
            do_copy(w, &c);
        else
            x->at[kept++] = c;
    }
    x->n = kept;
}
/* target: how many groups may be pending; kind: wait for all. */
void run_cp_wait(Warp *w, const Ins *i, u32 mask) { complete(w, mask, i->target, i->kind); }
void copies_end(Warp *w) {
    if (w->copies.n) fault(w, w->copies.at[0].lane, "the block ends, and nobody has waited for a copy");
}
