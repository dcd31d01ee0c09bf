/* mbarrier: a barrier in shared memory. A phase ends when all that it expects have arrived and all bytes that it
   expects are written; then the next one begins. A phase that ends orders all before it and all after it, as a barrier
   of the block does. */
#include "bulk.h"
#include "lanes.h"
#include "memory.h"

enum { VALID = 1, MOST_ARRIVALS = (1 << 20) - 1, MOST_FAILED_TESTS = 1 << 16 };
typedef struct {
    u64 expected : 20, pending : 20;
    s64 bytes : 21;
    u64 phase : 1, valid : 2;
} Mbarrier;
_Static_assert(sizeof(Mbarrier) == 8, "a word of 64 bits");

static u8 *barrier_at(Warp *w, Space space, u32 lane, u64 address, Touch how, Mbarrier *m) {
    u8 *p = place_of(w, space, lane, address, sizeof *m, how);
    memcpy(m, p, sizeof *m);
    if (m->valid != VALID) fault(w, lane, "there is no mbarrier at %#llx", (unsigned long long)address);
    return p;
}
static void settle(Warp *w, Mbarrier *m) {
    w->block->failed_tests = 0;
    if (m->pending || m->bytes) return;
    m->phase ^= 1, m->pending = m->expected;
    touch_barrier();
}
/* A new barrier, for so many arrivals, or the end of one. */
void run_mbarrier_set(Warp *w, const Ins *i, u32 mask) {
    u64 room[LANES];
    const u64 *a = addresses(w, i, i->o[1], i->offset, room);
    each_lane(l, mask) {
        Mbarrier m;
        bool init = i->kind == MBARRIER_INIT;
        u32 n = init ? SLOT(u32, 2)[l] : 1;
        if (n == 0 || n > MOST_ARRIVALS) fault(w, l, "an mbarrier for %u arrivals", n);
        u8 *p = init ? place_of(w, i->space, l, a[l], sizeof m, TOUCH_WRITE)
                     : barrier_at(w, i->space, l, a[l], TOUCH_WRITE, &m);
        m = init ? (Mbarrier){.expected = n, .pending = n, .valid = VALID} : (Mbarrier){0};
        memcpy(p, &m, sizeof m);
    }
    w->block->failed_tests = 0;
}
/* The operand is the number of arrivals, or of bytes that are expected besides one arrival, or without any. */
void run_mbarrier_arrive(Warp *w, const Ins *i, u32 mask) {
    u64 room[LANES];
    const u64 *a = addresses(w, i, i->o[1], i->offset, room);
    each_lane(l, mask) {
        Mbarrier m;
        u8 *p = barrier_at(w, i->space, l, a[l], TOUCH_ATOMIC_WRITE, &m);
        u32 operand = SLOT(u32, 2)[l], n = i->kind == MBARRIER_ARRIVE ? operand : i->kind == MBARRIER_BOTH;
        memcpy(&SLOT(u64, 0)[l], &m, sizeof m);
        if (n > m.pending || (n == 0 && i->kind != MBARRIER_EXPECT))
            fault(w, l, "%u arrivals at an mbarrier that expects %u", n, (u32)m.pending);
        if (i->kind != MBARRIER_ARRIVE) m.bytes += operand;
        m.pending -= n;
        settle(w, &m);
        memcpy(p, &m, sizeof m);
    }
}
void mbarrier_complete(Warp *w, u32 lane, u64 address, u32 bytes) {
    Mbarrier m;
    u8 *p = barrier_at(w, SPACE_SHARED, lane, address, TOUCH_ATOMIC_WRITE, &m);
    m.bytes -= bytes;
    settle(w, &m);
    memcpy(p, &m, sizeof m);
}
/* Copies that could end the phase are done by its test, so that when all others wait too nothing ends it. */
static void check_others(Warp *w, u32 lane, u64 address, const Mbarrier *m) {
    w->busy = 0;
    if (w->depth) fault(w, lane, "a test of an mbarrier fails in a function that is called, where no other warp runs");
    if (++w->block->failed_tests < MOST_FAILED_TESTS) return;
    fault(w, lane, "deadlock: the mbarrier at %#llx waits for %u arrivals and %d bytes, and all other threads wait too",
          (unsigned long long)address, (u32)m->pending, (int)m->bytes);
}
/* Has the phase ended that the operand names: by its parity (kind), or by what an arrival gave? */
void run_mbarrier_wait(Warp *w, const Ins *i, u32 mask) {
    u64 room[LANES];
    const u64 *a = addresses(w, i, i->o[1], i->offset, room);
    u32 ended = 0;
    Mbarrier m = {0};
    each_lane(l, mask) {
        Mbarrier then = {0};
        barrier_at(w, i->space, l, a[l], TOUCH_ATOMIC_READ, &m);
        bulk_finish(w, a[l] & ~WINDOW_MASK);
        barrier_at(w, i->space, l, a[l], TOUCH_ATOMIC_READ, &m);
        if (!i->kind) memcpy(&then, &SLOT(u64, 2)[l], sizeof then);
        u32 phase = i->kind ? SLOT(u32, 2)[l] & 1 : (u32)then.phase;
        if (m.phase != phase) ended |= 1u << l;
    }
    keep_predicate(SLOT(u32, 0), ended, mask);
    w->poll = ended != mask;
    if (ended == mask) return;
    u32 l = first_lane(mask & ~ended);
    barrier_at(w, i->space, l, a[l], TOUCH_ATOMIC_READ, &m);
    check_others(w, l, a[l], &m);
}
