/* Races: memory touched by two threads, once in writing, that nothing orders. Time is counted in epochs: a number that
   grows with every block and with every barrier of a block. In shared memory two threads are unordered in one epoch; in
   global memory threads of two blocks always are, unless a fence after an atomic operation took over what other blocks
   did. Barriers of a warp order its lanes: a thread's accesses carry how many its warp has passed. Atomic operations do
   not race with each other. What is known is kept by words; a word that is touched in part is split into its bytes for
   the rest of the block or launch. What a copy writes that its thread has not waited for is of a time that no barrier
   reaches: whoever touches it races. Where more orders threads than barriers of the block, shared memory is for
   touched.c, and what one thread did in global memory is known by clocks.c. */
#include "race.h"
#include <stdio.h>
#include <stdlib.h>

enum {
    THREAD_MASK = 0x1fff,
    ATOMIC = 0x4000,
    SEVERAL = 0x8000,
    SEVERAL_WARPS = SEVERAL | THREAD_MASK,
    SPLIT = 0x2000,
    WORD = 4
};
#define LAST_EPOCH (UINT32_MAX - (1u << 30))

static Shadow shared;
uint32_t race_epoch = 1, race_floor = 1, race_phase = 1, race_as;
static uint32_t flying; /* words of shared memory that copies are to write */

/* A barrier of all threads is complete. */
void touch_barrier(void) { race_floor = race_phase = ++race_epoch; }
void touch_begin(Launch *x) {
    if (race_epoch > LAST_EPOCH) {
        shadow_drop(&shared);
        shadow_reset();
        race_epoch = 1;
    }
    if (flying) shadow_forget(&shared), flying = 0; /* a launch was ended by a fault */
    race_as = 0;
    touch_barrier();
    x->first_epoch = race_epoch;
    clocks_on = x->f->clocks && ptx_options.races;
    if (clocks_on && (!clocks_begin(x) || !touched_begin(x))) abort();
    if (ptx_options.races & 1 && !clocks_on) shadow_make(&shared, (uint64_t)x->b.ranks * x->b.shared_bytes + WORD);
}
void touch_end(void) {
    if (clocks_on) clocks_end(), touched_end();
    clocks_on = false;
}
void touch_block(Block *b) {
    touch_barrier();
    b->first_epoch = race_epoch;
    if (clocks_on) touched_block(b);
}

#define INLINED inline __attribute__((always_inline)) /* most of the time of a launch is spent here */

/* What one access is to the cells it touches. */
typedef struct {
    Warp *w;
    Touch how;
    bool global;
    uint32_t first, block_first; /* epochs before `first` count for nothing */
    uint32_t lane;
    uint16_t me, syncs;
    uint64_t at; /* of the cell, for messages */
} Access;

static bool same_warp(const Access *a, uint16_t who) {
    uint16_t id = who & THREAD_MASK;
    if (id == THREAD_MASK) return false;
    return who & SEVERAL ? id == a->w->index : (id - 1u) / LANES == a->w->index;
}
/* With vector clocks: of several threads it is enough that any phase or barrier has ended since. */
static __attribute__((noinline)) bool known(const Access *a, uint32_t then, uint16_t who) {
    View v = clocks_view(a->w, a->lane);
    return who & SEVERAL ? then < race_phase : clocks_ordered(&v, (who & THREAD_MASK) - 1u, then);
}
/* Is something done in that epoch by others unordered with this access? */
static INLINED bool unordered(const Access *a, uint32_t then, uint16_t who, uint16_t syncs) {
    if (then < a->first) return false;
    if (then < a->w->block->first_epoch) return !a->w->block->acquired;
    if (then == IN_FLIGHT) return true;
    if (then < race_floor || (who & (SEVERAL | THREAD_MASK)) == a->me) return false;
    if (clocks_on && known(a, then, who)) return false;
    return !same_warp(a, who) || syncs == (uint16_t)a->w->syncs;
}
static const char *name_of(const Access *a, uint32_t then, uint16_t who, char text[CLOCKS_NAME]) {
    if (then < a->w->block->first_epoch) return "another block";
    if (who & SEVERAL) return "several threads";
    if (clocks_on) return clocks_name((who & THREAD_MASK) - 1u, then, text);
    snprintf(text, CLOCKS_NAME, "%sthread %u of this block", then == IN_FLIGHT ? "a copy, not waited for, of " : "",
             (who & THREAD_MASK) - 1u);
    return text;
}
static _Noreturn void race(const Access *a, const char *was, uint32_t then, uint16_t who) {
    char text[CLOCKS_NAME];
    fault(a->w, a->lane, "race: %s byte %#llx was %s by %s, and no barrier is between", a->global ? "global" : "shared",
          (unsigned long long)a->at, was, name_of(a, then, who, text));
}
static INLINED void read_cell(const Access *a, Touched *c) {
    bool atomic = a->how == TOUCH_ATOMIC_READ;
    if (!(atomic && c->writer & ATOMIC) && unordered(a, c->write_epoch, c->writer, c->write_syncs))
        race(a, "written", c->write_epoch, c->writer);
    if (atomic) return;
    uint16_t syncs = (uint16_t)a->w->syncs, reader = a->me;
    if (c->read_epoch >= race_floor) {
        if (c->reader != a->me && !same_warp(a, c->reader))
            reader = SEVERAL_WARPS;
        else if (c->reader != a->me && c->read_syncs == syncs)
            reader = (uint16_t)(SEVERAL | a->w->index);
    } else if (c->read_epoch >= a->first)
        c->others_epoch = c->read_epoch;
    c->read_epoch = race_epoch, c->reader = reader, c->read_syncs = syncs;
}
static INLINED void write_cell(const Access *a, Touched *c) {
    bool atomic = a->how == TOUCH_ATOMIC_WRITE;
    if (!(atomic && c->writer & ATOMIC) && unordered(a, c->write_epoch, c->writer, c->write_syncs))
        race(a, "written", c->write_epoch, c->writer);
    if (unordered(a, c->read_epoch, c->reader, c->read_syncs)) race(a, "read", c->read_epoch, c->reader);
    if (c->others_epoch >= a->first && c->others_epoch < a->w->block->first_epoch && !a->w->block->acquired)
        race(a, "read", c->others_epoch, c->reader);
    uint16_t writer = a->me;
    if (atomic && c->write_epoch >= race_floor && c->writer == a->me) return; /* it stays a plain write to others */
    if (atomic) {
        bool more = c->write_epoch >= race_floor && (c->writer & ~ATOMIC) != a->me;
        writer = ATOMIC | (more ? SEVERAL_WARPS : a->me);
    }
    c->write_epoch = race_epoch, c->writer = writer, c->write_syncs = (uint16_t)a->w->syncs;
}
/* Bytes of global memory count once in a launch. */
static void count_bytes(const Access *a, const Touched *c, uint32_t bytes) {
    bool write = a->how == TOUCH_WRITE || a->how == TOUCH_ATOMIC_WRITE;
    if ((write ? c->write_epoch : c->read_epoch) < a->first)
        *(write ? &ptx_counts.global_written : &ptx_counts.global_read) += bytes;
}
static INLINED void touch_cell(const Access *a, Touched *c, uint32_t bytes) {
    if (a->global) count_bytes(a, c, bytes);
    if (a->how == TOUCH_WRITE || a->how == TOUCH_ATOMIC_WRITE)
        write_cell(a, c);
    else
        read_cell(a, c);
}
/* Is what was done in that epoch ordered before this access, whoever did it? */
static inline bool settled(const Access *a, uint32_t then) {
    return then < a->first || (then >= a->block_first && then < race_floor);
}
/* Most accesses: of a word that nobody else touches between barriers. False: it is not so simple. */
static inline bool touch_simply(const Access *a, Touched *c) {
    if (a->how == TOUCH_READ && settled(a, c->write_epoch)) {
        if (c->read_epoch < race_floor) {
            if (a->global && c->read_epoch < a->first) ptx_counts.global_read += WORD;
            if (c->read_epoch >= a->first) c->others_epoch = c->read_epoch;
            c->read_epoch = race_epoch, c->reader = a->me, c->read_syncs = a->syncs;
            return true;
        }
        return c->reader == a->me || c->reader == SEVERAL_WARPS ||
               (c->reader == (SEVERAL | a->w->index) && c->read_syncs == a->syncs);
    }
    if (a->how == TOUCH_WRITE && settled(a, c->write_epoch) && settled(a, c->read_epoch) &&
        settled(a, c->others_epoch)) {
        if (a->global && c->write_epoch < a->first) ptx_counts.global_written += WORD;
        c->write_epoch = race_epoch, c->writer = a->me, c->write_syncs = a->syncs;
        return true;
    }
    return false;
}
static void touch_bytes(Access *a, Shadow *s, uint64_t at, uint32_t n) {
    Touched *word = &s->words[at / WORD];
    if (!(word->writer & SPLIT && word->write_epoch >= a->first)) {
        for (uint32_t k = 0; k < WORD; k++) s->bytes[(at & ~(uint64_t)(WORD - 1)) + k] = *word;
        *word = (Touched){.writer = SPLIT, .write_epoch = race_epoch};
    }
    for (uint32_t k = 0; k < n; k++, a->at++) touch_cell(a, &s->bytes[at + k], 1);
}
static void touch(Access *a, Shadow *s, uint32_t lane, uint64_t at, uint32_t bytes) {
    a->lane = lane, a->me = (uint16_t)(race_as ? race_as : a->w->index * LANES + lane + 1);
    if (bytes < WORD) {
        touch_bytes(a, s, at, bytes);
        return;
    }
    for (uint32_t k = 0; k < bytes; k += WORD, a->at += WORD) {
        Touched *word = &s->words[(at + k) / WORD];
        if (word->writer & SPLIT && word->write_epoch >= a->first)
            touch_bytes(a, s, at + k, WORD), a->at -= WORD;
        else if (!touch_simply(a, word))
            touch_cell(a, word, WORD);
    }
}
/* The third lane and later ones that read the same place add nothing: it is known that several lanes of the warp read
   it. */
static bool repeats(const Access *a, uint32_t mask, const uint64_t *address, uint32_t l) {
    return a->how == TOUCH_READ && l >= 2 && address[l] == address[l - 1] && address[l] == address[l - 2] &&
           (mask >> (l - 2) & 3) == 3;
}
void touch_shared(Warp *w, uint32_t mask, const uint64_t *at, uint32_t bytes, Touch how) {
    uint32_t first = w->block->first_epoch;
    if (how != TOUCH_NOT && clocks_on) {
        touched_access(w, mask, at, bytes, how);
        return;
    }
    Access a = {.w = w, .how = how, .first = first, .block_first = first, .syncs = (uint16_t)w->syncs};
    if (how == TOUCH_NOT || !shared.words) return;
    each_lane(l, mask) {
        if (repeats(&a, mask, at, l)) continue;
        a.at = at[l];
        touch(&a, &shared, l, at[l], bytes);
    }
}
void touch_global(Warp *w, uint32_t mask, Area *area, const uint64_t *address, uint32_t bytes, Touch how) {
    Access a = {.w = w,
                .how = how,
                .global = true,
                .first = w->block->launch->first_epoch,
                .block_first = w->block->first_epoch,
                .syncs = (uint16_t)w->syncs};
    if (how == TOUCH_NOT || !shadow_make(&area->shadow, area->bytes + WORD)) return;
    each_lane(l, mask) {
        if (repeats(&a, mask, address, l)) continue;
        a.at = address[l] - PTX_DEVICE_BIAS;
        touch(&a, &area->shadow, l, a.at - area->at, bytes);
    }
}
static void touch_stamp(const Warp *w, uint32_t lane, uint64_t at, uint32_t bytes, uint32_t when) {
    uint32_t first = w->block->first_epoch;
    uint16_t syncs = (uint16_t)w->syncs, writer = (uint16_t)(w->index * LANES + lane + 1);
    Touched *word = &shared.words[at / WORD], *byte = &shared.bytes[at];
    for (uint32_t k = 0; k < bytes / WORD; k++) {
        bool split = word[k].writer & SPLIT && word[k].write_epoch >= first;
        Touched *cell = split ? byte + k * WORD : word + k, *end = cell + (split ? WORD : 1);
        for (; cell < end; cell++) cell->write_epoch = when, cell->writer = writer, cell->write_syncs = syncs;
    }
}
/* Copies of lanes to shared memory are asked for: they may write from now on. Words, all of them. */
void touch_asked(Warp *w, uint32_t mask, const uint64_t *at, uint32_t bytes) {
    if (clocks_on) {
        touched_asked(w, mask, at, bytes);
        return;
    }
    touch_shared(w, mask, at, bytes, TOUCH_WRITE);
    each_lane(l, mask) touch_stamp(w, l, at[l], bytes, IN_FLIGHT);
    flying += bytes / WORD * (uint32_t)__builtin_popcount(mask);
}
/* It was waited for, by its thread. */
void touch_copied(Warp *w, uint32_t lane, uint64_t at, uint32_t bytes) {
    if (clocks_on) {
        touched_copied(w, lane, at, bytes);
        return;
    }
    touch_stamp(w, lane, at, bytes, race_epoch);
    flying -= bytes / WORD;
}
