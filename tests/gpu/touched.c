/* Shared memory of blocks with vector clocks: of each word who wrote it last and when, and of each warp, and of the
   products of each, who read it last. A word that is touched in part is split into its bytes for the rest of the block.
   Lanes of one warp that read a word at several times, with nothing between them, count as if all read it last. */
#include "lanes.h"
#include "race.h"
#include <sys/mman.h>

enum { WORD = 4 };
typedef struct {
    u32 when;
    u16 by;
    bool atomic;
} LastWrite;
typedef struct {
    u32 when, lanes;
} LastRead;
typedef struct {
    LastWrite write;
    LastRead reads[]; /* by warp, then by the products of a warp */
} Cell;
static struct {
    u8 *words, *bytes, *split;
    u64 size, stride; /* size: bytes of shared memory */
    u32 warps, first; /* first: when the block began */
} touched;

static u8 *map(size_t bytes) {
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}
bool touched_begin(Launch *x) {
    touched.warps = x->b.nwarps;
    touched.stride = sizeof(LastWrite) + 2 * touched.warps * sizeof(LastRead);
    touched.size = ((u64)x->b.ranks * x->b.shared_bytes + WORD) & ~(u64)(WORD - 1);
    touched.words = map(touched.size / WORD * touched.stride);
    touched.bytes = map(touched.size * touched.stride);
    touched.split = map(touched.size / WORD);
    return touched.words && touched.bytes && touched.split;
}
void touched_end(void) {
    if (touched.words) munmap(touched.words, touched.size / WORD * touched.stride);
    if (touched.bytes) munmap(touched.bytes, touched.size * touched.stride);
    if (touched.split) munmap(touched.split, touched.size / WORD);
    touched.words = touched.bytes = touched.split = NULL;
}
void touched_block(const Block *b) {
    touched.first = b->first_epoch;
    memset(touched.split, 0, touched.size / WORD);
}

/* One access of a lane, of a copy or of a product. */
typedef struct {
    Warp *w;
    const View *v;
    u32 lane, by;
    bool write, atomic, async; /* async: what threads wrote must have been shown */
} Access;
static _Noreturn void race(const Access *a, u64 at, const char *was, u32 by, u32 when) {
    char text[CLOCKS_NAME];
    fault(a->w, a->lane, "race: shared byte %#llx was %s by %s, and no barrier is between", (unsigned long long)at, was,
          clocks_name(by, when, text));
}
static void check_write(const Access *a, const Cell *c, u64 at) {
    const LastWrite *x = &c->write;
    if (x->when < touched.first) return;
    if (!(a->atomic && x->atomic) && !clocks_ordered(a->v, x->by, x->when)) race(a, at, "written", x->by, x->when);
    if (a->async && !clocks_shown(a->v, x->by, x->when))
        fault(a->w, a->lane, "byte %llu of shared memory was written by thread %u, and no fence.proxy.async is between",
              (unsigned long long)at, x->by);
}
static bool read_before(const View *v, u32 warp, const LastRead *r) {
    if (r->when < race_floor) return true;
    each_lane(l, r->lanes) if (!clocks_ordered(v, warp * LANES + l, r->when)) return false;
    return true;
}
static void check_reads(const Access *a, const Cell *c, u64 at) {
    for (u32 k = 0; k < touched.warps; k++) {
        const LastRead *r = &c->reads[k];
        if (r->when < touched.first || read_before(a->v, k, r)) continue;
        each_lane(l, r->lanes) if (!clocks_ordered(a->v, k * LANES + l, r->when))
            race(a, at, "read", k * LANES + l, r->when);
    }
    for (u32 k = 0; k < touched.warps; k++) {
        const LastRead *r = &c->reads[touched.warps + k];
        if (r->when >= touched.first && !clocks_ordered(a->v, clocks_products(k), r->when))
            race(a, at, "read", clocks_products(k), r->when);
    }
}
static void keep_read(const Access *a, Cell *c) {
    if (a->by >= clocks_products(0)) {
        c->reads[touched.warps + a->w->index] = (LastRead){race_epoch, 1};
        return;
    }
    LastRead *r = &c->reads[a->w->index];
    u32 bit = 1u << a->lane;
    bool replaced = r->when < touched.first || r->lanes == bit;
    if (!replaced && r->when != race_epoch) replaced = read_before(a->v, a->w->index, r);
    *r = (LastRead){race_epoch, replaced ? bit : r->lanes | bit};
}
static void touch_cell(const Access *a, Cell *c, u64 at) {
    check_write(a, c, at);
    if (!a->write) {
        if (!a->atomic) keep_read(a, c);
        return;
    }
    check_reads(a, c, at);
    /* It stays a plain write to others. */
    if (a->atomic && c->write.when >= touched.first && c->write.by == a->by && !c->write.atomic) return;
    c->write = (LastWrite){race_epoch, (u16)a->by, a->atomic};
}
static Cell *word_at(u64 at) { return (Cell *)(touched.words + at / WORD * touched.stride); }
static Cell *byte_at(u64 at) { return (Cell *)(touched.bytes + at * touched.stride); }
static bool is_split(u64 at) { return touched.split[at / WORD]; }
static void split(u64 at) {
    if (is_split(at)) return;
    touched.split[at / WORD] = 1;
    for (u32 k = 0; k < WORD; k++) memcpy(byte_at((at & ~(u64)(WORD - 1)) + k), word_at(at), touched.stride);
}
static void touch(const Access *a, u64 at, u32 bytes) {
    if (bytes < WORD) split(at);
    for (u64 end = at + bytes; at < end;) {
        if (is_split(at)) {
            touch_cell(a, byte_at(at), at);
            at++;
        } else {
            touch_cell(a, word_at(at), at);
            at += WORD;
        }
    }
}
void touched_access(Warp *w, u32 mask, const u64 *at, u32 bytes, Touch how) {
    Access a = {.w = w,
                .write = how == TOUCH_WRITE || how == TOUCH_ATOMIC_WRITE,
                .atomic = how == TOUCH_ATOMIC_READ || how == TOUCH_ATOMIC_WRITE};
    each_lane(l, mask) {
        View v = clocks_view(w, l);
        a.v = &v, a.lane = l, a.by = w->index * LANES + l;
        touch(&a, at[l], bytes);
    }
}
static void stamp(u64 at, u32 bytes, u32 by, u32 when) {
    for (u64 end = at + bytes; at < end; at += is_split(at) ? 1 : WORD) {
        Cell *c = is_split(at) ? byte_at(at) : word_at(at);
        c->write = (LastWrite){when, (u16)by, false};
    }
}
void touched_asked(Warp *w, u32 mask, const u64 *at, u32 bytes) {
    touched_access(w, mask, at, bytes, TOUCH_WRITE);
    each_lane(l, mask) stamp(at[l], bytes, w->index * LANES + l, IN_FLIGHT);
}
void touched_copied(Warp *w, u32 lane, u64 at, u32 bytes) { stamp(at, bytes, w->index * LANES + lane, race_epoch); }
void touched_box(Warp *w, u32 lane, u32 mbarrier, u64 at, u32 bytes) {
    View v = clocks_view(w, lane);
    Access a = {.w = w, .v = &v, .lane = lane, .by = clocks_copies(mbarrier), .write = true, .async = true};
    touch(&a, at, bytes);
}
void touched_factor(Warp *w, const View *v, u64 at, u32 bytes) {
    Access a = {.w = w, .v = v, .by = clocks_products(w->index), .async = true};
    touch(&a, at, bytes);
}
