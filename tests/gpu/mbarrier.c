/* mbarrier: a barrier in shared memory. A phase ends when all that it expects have arrived and all bytes that it
   expects are written; then the next one begins. What threads did before they arrived is ordered before what those do
   who have waited for the phase (clocks.c). The block knows which of them live and what they hold, so that nothing else
   may write there. */
#include "bulk.h"
#include "lanes.h"
#include "race.h"
#include <stdlib.h>

enum { VALID = 1, MOST_ARRIVALS = (1 << 20) - 1, MOST_BYTES = (1 << 20) - 1, MOST_FAILED_TESTS = 1 << 16 };
typedef struct {
    u64 expected : 20, pending : 20;
    s64 bytes : 21;
    u64 phase : 1, valid : 2;
} Word;
_Static_assert(sizeof(Word) == 8, "a word of 64 bits");
struct Mbarrier {
    u64 address;
    Word word;   /* what memory must hold; not valid: it is no more */
    u32 phases;  /* that have ended */
    u32 thread;  /* that began it */
    u32 when;    /* it began */
    u32 meets;   /* barriers of the block before that */
    bool fenced; /* copies may see it */
};

static Mbarrier *find(const Block *b, u64 address) {
    for (u32 k = 0; k < b->mbarriers.n; k++)
        if (b->mbarriers.at[k].address == address && b->mbarriers.at[k].word.valid) return &b->mbarriers.at[k];
    return NULL;
}
/* A place for another one: that of one that is no more, or a new one. */
static Mbarrier *room_for(Warp *w, u32 lane) {
    Block *b = w->block;
    for (u32 k = 0; k < b->mbarriers.n; k++)
        if (!b->mbarriers.at[k].word.valid) return &b->mbarriers.at[k];
    if (b->mbarriers.n == MOST_MBARRIERS) fault(w, lane, "more than %d mbarriers", MOST_MBARRIERS);
    if (b->mbarriers.n == b->mbarriers.cap) {
        u32 cap = b->mbarriers.cap ? 2 * b->mbarriers.cap : 16;
        Mbarrier *more = realloc(b->mbarriers.at, cap * sizeof *more);
        if (!more) fault(w, lane, "no memory for mbarriers");
        b->mbarriers.at = more, b->mbarriers.cap = cap;
    }
    return &b->mbarriers.at[b->mbarriers.n++];
}
/* The one that is at the operand; *place: its memory. */
static Mbarrier *barrier_at(Warp *w, Space space, u32 lane, u64 address, Touch how, u8 **place) {
    u8 *p = place_of(w, space, lane, address, sizeof(Word), how);
    Mbarrier *x = find(w->block, address & ~WINDOW_MASK);
    if (!x) fault(w, lane, "there is no mbarrier at %#llx", (unsigned long long)address);
    if (memcmp(p, &x->word, sizeof x->word))
        fault(w, lane, "the mbarrier at %#llx was written to", (unsigned long long)address);
    if (place) *place = p;
    return x;
}
static u32 index_of(const Block *b, const Mbarrier *x) { return (u32)(x - b->mbarriers.at); }
static void keep_word(const Mbarrier *x, u8 *place) { memcpy(place, &x->word, sizeof x->word); }
static void settle(Warp *w, u32 lane, Mbarrier *x) {
    Word *m = &x->word;
    w->block->failed_tests = 0;
    if (m->pending == 0 && m->bytes < 0)
        fault(w, lane, "%d bytes more than the mbarrier at %#llx expects were copied", -(int)m->bytes,
              (unsigned long long)x->address);
    if (m->pending || m->bytes) return;
    m->phase ^= 1, m->pending = m->expected, x->phases++;
    if (clocks_on)
        clocks_phase(index_of(w->block, x));
    else
        touch_barrier();
}
static void check_bytes(Warp *w, u32 lane, const Mbarrier *x, const char *what) {
    if (!x->word.bytes) return;
    fault(w, lane, "%s, and the mbarrier at %#llx expects %d bytes", what, (unsigned long long)x->address,
          (int)x->word.bytes);
}
/* ---- a new barrier, for so many arrivals, and the end of one */
static void begin(Warp *w, Space space, u32 l, u64 address, u32 n) {
    if (n == 0 || n > MOST_ARRIVALS) fault(w, l, "an mbarrier for %u arrivals", n);
    u8 *p = place_of(w, space, l, address, sizeof(Word), TOUCH_WRITE);
    address &= ~WINDOW_MASK;
    if (find(w->block, address)) fault(w, l, "an mbarrier is at %#llx already", (unsigned long long)address);
    Mbarrier *x = room_for(w, l);
    *x = (Mbarrier){.address = address,
                    .word = {.expected = n, .pending = n, .valid = VALID},
                    .thread = w->index * LANES + l,
                    .when = race_epoch,
                    .meets = w->block->meets};
    keep_word(x, p);
    if (clocks_on) clocks_open(index_of(w->block, x));
}
static void end(Warp *w, Space space, u32 l, u64 address) {
    u8 *p;
    Mbarrier *x = barrier_at(w, space, l, address, TOUCH_WRITE, &p);
    if (bulk_waits(w->block, x->address)) fault(w, l, "the mbarrier ends before a copy that it waits for");
    check_bytes(w, l, x, "it ends");
    x->word = (Word){0};
    keep_word(x, p);
}
void run_mbarrier_set(Warp *w, const Ins *i, u32 mask) {
    u64 room[LANES];
    const u64 *a = addresses(w, i, i->o[1], i->offset, room);
    each_lane(l, mask) {
        if (i->kind == MBARRIER_INIT)
            begin(w, i->space, l, a[l], SLOT(u32, 2)[l]);
        else
            end(w, i->space, l, a[l]);
    }
    w->block->failed_tests = 0;
}
void mbarriers_end(Block *b) {
    for (u32 k = 0; k < b->mbarriers.n; k++) check_bytes(&b->warps[0], 0, &b->mbarriers.at[k], "the block ends");
}
/* A fence shows a new barrier to copies: of the thread that began it, or of one that is ordered behind. Without vector
   clocks that is whoever comes behind some barrier of the block. */
void mbarriers_fence(Warp *w, u32 mask, bool others) {
    Block *b = w->block;
    for (u32 k = 0; k < b->mbarriers.n; k++) {
        Mbarrier *x = &b->mbarriers.at[k];
        bool own = x->thread / LANES == w->index && mask >> x->thread % LANES & 1;
        if (own || (others && !clocks_on && x->meets < b->meets)) x->fenced = true;
    }
}
void run_fence_mbarrier(Warp *w, const Ins *i, u32 mask) { mbarriers_fence(w, mask, false); }

/* ---- arrivals, which are bytes too */
/* The operand is the number of arrivals, or of bytes that are expected besides one arrival, or without any. */
void run_mbarrier_arrive(Warp *w, const Ins *i, u32 mask) {
    u64 room[LANES];
    const u64 *a = addresses(w, i, i->o[1], i->offset, room);
    each_lane(l, mask) {
        u8 *p;
        Mbarrier *x = barrier_at(w, i->space, l, a[l], TOUCH_ATOMIC_WRITE, &p);
        u32 operand = SLOT(u32, 2)[l], n = i->kind == MBARRIER_ARRIVE ? operand : i->kind == MBARRIER_BOTH;
        memcpy(&SLOT(u64, 0)[l], &x->word, sizeof x->word);
        if (n > x->word.pending || (n == 0 && i->kind != MBARRIER_EXPECT))
            fault(w, l, "%u arrivals at an mbarrier that expects %u", n, (u32)x->word.pending);
        u32 bytes = i->kind == MBARRIER_ARRIVE ? 0 : operand;
        if (bytes > MOST_BYTES || x->word.bytes + (s64)bytes > MOST_BYTES)
            fault(w, l, "an mbarrier that expects %lld bytes", (long long)(x->word.bytes + (s64)bytes));
        x->word.bytes += bytes, x->word.pending -= n;
        if (clocks_on && n && i->order != ORDER_RELAXED) clocks_arrive(w, l, index_of(w->block, x));
        settle(w, l, x);
        keep_word(x, p);
    }
    race_epoch += clocks_on;
}
/* The phase that waits for a copy which is asked for now. */
u32 mbarrier_number(Warp *w, u32 lane, u64 address) {
    return index_of(w->block, barrier_at(w, SPACE_SHARED, lane, address, TOUCH_NOT, NULL));
}
u32 mbarrier_copy(Warp *w, u32 lane, u64 address) {
    const Mbarrier *x = barrier_at(w, SPACE_SHARED, lane, address, TOUCH_ATOMIC_READ, NULL);
    View v = {0};
    if (clocks_on) v = clocks_view(w, lane);
    if (!x->fenced && !(clocks_on && clocks_shown(&v, x->thread, x->when)))
        fault(w, lane, "no fence shows the mbarrier at %#llx to copies", (unsigned long long)address);
    return x->phases;
}
void mbarrier_complete(Warp *w, u32 lane, u64 address, u32 bytes, u32 phase) {
    u8 *p;
    Mbarrier *x = barrier_at(w, SPACE_SHARED, lane, address, TOUCH_ATOMIC_WRITE, &p);
    if (x->phases != phase)
        fault(w, lane, "%u bytes more than a phase of the mbarrier at %#llx expects were copied", bytes,
              (unsigned long long)address);
    if (x->word.bytes < (s64)bytes - MOST_BYTES) fault(w, lane, "an mbarrier misses more than %d bytes", MOST_BYTES);
    x->word.bytes -= bytes;
    if (clocks_on) clocks_copied(index_of(w->block, x));
    settle(w, lane, x);
    keep_word(x, p);
}

/* ---- waiting */
/* Copies that could end the phase are done by its test, so that when all others wait too nothing ends it. */
static void check_others(Warp *w, u32 lane, const Mbarrier *x) {
    w->busy = 0;
    if (w->depth) fault(w, lane, "a test of an mbarrier fails in a function that is called, where no other warp runs");
    if (++w->block->failed_tests < MOST_FAILED_TESTS) return;
    fault(w, lane, "deadlock: the mbarrier at %#llx waits for %u arrivals and %d bytes, and all other threads wait too",
          (unsigned long long)x->address, (u32)x->word.pending, (int)x->word.bytes);
}
/* Has the phase ended that the operand names: by its parity (kind), or by what an arrival gave? */
void run_mbarrier_wait(Warp *w, const Ins *i, u32 mask) {
    u64 room[LANES];
    const u64 *a = addresses(w, i, i->o[1], i->offset, room);
    u32 ended = 0;
    each_lane(l, mask) {
        Word then = {0};
        bulk_finish(w, a[l] & ~WINDOW_MASK);
        const Mbarrier *x = barrier_at(w, i->space, l, a[l], TOUCH_ATOMIC_READ, NULL);
        if (!i->kind) memcpy(&then, &SLOT(u64, 2)[l], sizeof then);
        u32 phase = i->kind ? SLOT(u32, 2)[l] & 1 : (u32)then.phase;
        if (x->word.phase == phase) continue;
        ended |= 1u << l;
        if (clocks_on && i->order != ORDER_RELAXED) clocks_wait(w, l, index_of(w->block, x));
    }
    keep_predicate(SLOT(u32, 0), ended, mask);
    w->poll = ended != mask;
    if (ended == mask) return;
    u32 l = first_lane(mask & ~ended);
    check_others(w, l, barrier_at(w, i->space, l, a[l], TOUCH_ATOMIC_READ, NULL));
}
