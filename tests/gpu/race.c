/* Races: memory touched by two threads, once in writing, that nothing orders.
   Time is counted in epochs: a number that grows with every block and with every barrier of a block. In shared memory two threads are unordered
   in one epoch; in global memory threads of two blocks always are, unless a fence after an atomic operation took over what other blocks did.
   Barriers of a warp order its lanes: a thread's accesses carry how many its warp has passed. Atomic operations do not race with each other.
   What is known is kept by words; a word that is touched in part is split into its bytes for the rest of the block or launch. */
#include "memory.h"
#include <stdio.h>

enum {
    THREAD_MASK = 0x0fff,
    ATOMIC = 0x4000,
    SEVERAL = 0x8000,
    SEVERAL_WARPS = SEVERAL | THREAD_MASK,
    SPLIT = 0x2000,
    WORD = 4
};
#define LAST_EPOCH (UINT32_MAX - (1u << 30))

static Shadow shared;
static uint32_t epoch = 1;

void touch_begin(Launch *x) {
    if (epoch > LAST_EPOCH) {
        shadow_reset();
        shadow_drop(&shared);
        epoch = 1;
    }
    x->first_epoch = ++epoch;
    if (ptx_options.races & 1) shadow_make(&shared, x->b.shared_bytes + WORD);
}
void touch_block(Block *b) { b->first_epoch = ++epoch; }
void touch_barrier(void) { epoch++; }

/* What one access is to the cells it touches. */
typedef struct {
    Warp *w;
    uint32_t lane;
    uint16_t me;
    Touch how;
    bool global;
    uint32_t first; /* epochs before it count for nothing */
    uint64_t at;    /* of the cell, for messages */
} Access;

static bool same_warp(const Access *a, uint16_t who) {
    uint16_t id = who & THREAD_MASK;
    if (id == THREAD_MASK) return false;
    return who & SEVERAL ? id == a->w->index : (id - 1u) / LANES == a->w->index;
}
/* Is something done in that epoch by others unordered with this access? */
static bool unordered(const Access *a, uint32_t then, uint16_t who, uint16_t syncs) {
    if (then < a->first) return false;
    if (then < a->w->block->first_epoch) return !a->w->block->acquired;
    if (then != epoch || (who & (SEVERAL | THREAD_MASK)) == a->me) return false;
    return !same_warp(a, who) || syncs == (uint16_t)a->w->syncs;
}
static const char *name_of(const Access *a, uint32_t then, uint16_t who, char text[64]) {
    if (then < a->w->block->first_epoch) return "another block";
    if (who & SEVERAL) return "several threads";
    snprintf(text, 64, "thread %u of this block", (who & THREAD_MASK) - 1u);
    return text;
}
static void race(const Access *a, const char *was, uint32_t then, uint16_t who) {
    char text[64];
    fault(a->w, a->lane, "race: %s byte %#llx was %s by %s, and no barrier is between", a->global ? "global" : "shared",
          (unsigned long long)a->at, was, name_of(a, then, who, text));
}
static void read_cell(const Access *a, Touched *c) {
    bool atomic = a->how == TOUCH_ATOMIC_READ;
    if (!(atomic && c->writer & ATOMIC) && unordered(a, c->write_epoch, c->writer, c->write_syncs))
        race(a, "written", c->write_epoch, c->writer);
    if (atomic) return;
    uint16_t syncs = (uint16_t)a->w->syncs, reader = a->me;
    if (c->read_epoch == epoch) {
        if (c->reader != a->me && !same_warp(a, c->reader))
            reader = SEVERAL_WARPS;
        else if (c->reader != a->me && c->read_syncs == syncs)
            reader = (uint16_t)(SEVERAL | a->w->index);
    } else if (c->read_epoch >= a->first)
        c->others_epoch = c->read_epoch;
    c->read_epoch = epoch, c->reader = reader, c->read_syncs = syncs;
}
static void write_cell(const Access *a, Touched *c) {
    bool atomic = a->how == TOUCH_ATOMIC_WRITE;
    if (!(atomic && c->writer & ATOMIC) && unordered(a, c->write_epoch, c->writer, c->write_syncs))
        race(a, "written", c->write_epoch, c->writer);
    if (unordered(a, c->read_epoch, c->reader, c->read_syncs)) race(a, "read", c->read_epoch, c->reader);
    if (c->others_epoch >= a->first && c->others_epoch < a->w->block->first_epoch && !a->w->block->acquired)
        race(a, "read", c->others_epoch, c->reader);
    uint16_t writer = a->me;
    if (atomic && c->write_epoch == epoch && c->writer == a->me) return; /* it stays a plain write to others */
    if (atomic) {
        bool more = c->write_epoch == epoch && (c->writer & ~ATOMIC) != a->me;
        writer = ATOMIC | (more ? SEVERAL_WARPS : a->me);
    }
    c->write_epoch = epoch, c->writer = writer, c->write_syncs = (uint16_t)a->w->syncs;
}
/* Bytes of global memory count once in a launch. */
static void count_bytes(const Access *a, const Touched *c, uint32_t bytes) {
    bool write = a->how == TOUCH_WRITE || a->how == TOUCH_ATOMIC_WRITE;
    if ((write ? c->write_epoch : c->read_epoch) < a->first)
        *(write ? &ptx_counts.global_written : &ptx_counts.global_read) += bytes;
}
static void touch_cell(const Access *a, Touched *c, uint32_t bytes) {
    if (a->global) count_bytes(a, c, bytes);
    if (a->how == TOUCH_WRITE || a->how == TOUCH_ATOMIC_WRITE)
        write_cell(a, c);
    else
        read_cell(a, c);
}
static void touch_bytes(Access *a, Shadow *s, uint64_t at, uint32_t n) {
    Touched *word = &s->words[at / WORD];
    if (!(word->writer & SPLIT && word->write_epoch >= a->first)) {
        for (uint32_t k = 0; k < WORD; k++) s->bytes[(at & ~(uint64_t)(WORD - 1)) + k] = *word;
        *word = (Touched){.writer = SPLIT, .write_epoch = epoch};
    }
    for (uint32_t k = 0; k < n; k++, a->at++) touch_cell(a, &s->bytes[at + k], 1);
}
static void touch(Access *a, Shadow *s, uint64_t at, uint32_t bytes) {
    a->me = (uint16_t)(a->w->index * LANES + a->lane + 1);
    if (bytes < WORD) {
        touch_bytes(a, s, at, bytes);
        return;
    }
    for (uint32_t k = 0; k < bytes; k += WORD) {
        Touched *word = &s->words[(at + k) / WORD];
        if (word->writer & SPLIT && word->write_epoch >= a->first)
            touch_bytes(a, s, at + k, WORD);
        else
            touch_cell(a, word, WORD), a->at += WORD;
    }
}
void touch_shared(Warp *w, uint32_t lane, uint64_t at, uint32_t bytes, Touch how) {
    if (how == TOUCH_NOT) return;
    Access a = {.w = w, .lane = lane, .how = how, .first = w->block->first_epoch, .at = at};
    if (at + bytes <= shared.size) touch(&a, &shared, at, bytes);
}
void touch_global(Warp *w, uint32_t lane, Area *area, uint64_t at, uint32_t bytes, Touch how) {
    if (how == TOUCH_NOT) return;
    Access a = {
        .w = w, .lane = lane, .how = how, .global = true, .first = w->block->launch->first_epoch, .at = area->at + at};
    if (shadow_make(&area->shadow, area->bytes + WORD)) touch(&a, &area->shadow, at, bytes);
}
