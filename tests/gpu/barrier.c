/* Barriers of a block. */
#include "lanes.h"
#include "barrier.h"
#include "race.h"

static void arrive(Warp *w, u32 mask, u32 number, u32 expected, u32 threads) {
    Block *b = w->block;
    Barrier *x = &b->barriers[number];
    if (x->arrived == 0) x->expected = expected;
    if (x->expected != expected)
        fault(w, first_lane(mask), "barrier %u waits for %u threads, not for %u", number, x->expected, expected);
    x->arrived += threads;
    if (x->arrived > expected)
        fault(w, first_lane(mask), "%u threads are at barrier %u, which waits for %u", x->arrived, number, expected);
}
/* The last one lets all go; the mask: who of this warp comes to wait. */
static void complete(Warp *w, u32 mask, u32 number) {
    Block *b = w->block;
    Barrier *x = &b->barriers[number];
    if (x->arrived < x->expected) return;
    u32 found[] = {x->holding, x->holding == x->arrived, x->holding != 0};
    memcpy(b->reduced[number], found, sizeof found);
    bool all = x->waiting == b->threads;
    *x = (Barrier){0};
    w->waits = 0;
    if (clocks_on && !all) clocks_leave(w, mask, number);
    release_barrier(b, number, all);
}
/* o: the barrier, how many threads or NO_SLOT, result and operand of a reduction. */
void run_barrier(Warp *w, const Ins *i, u32 mask) {
    u32 lane = first_lane(mask), number = SLOT(u32, 0)[lane];
    bool counted = i->o[1] != NO_SLOT;
    if (number >= MAX_BARRIERS) fault(w, lane, "barrier %u", number);
    w->block->failed_tests = 0;
    number += MAX_BARRIERS * rank_of(w);
    u32 expected = counted ? SLOT(u32, 1)[lane] : w->block->threads / w->block->ranks,
        here = (u32)__builtin_popcount(mask);
    if (counted && (expected == 0 || expected % LANES)) fault(w, lane, "a barrier for %u threads", expected);
    arrive(w, mask, number, expected, counted && i->sign ? LANES : here);
    Barrier *x = &w->block->barriers[number];
    if (i->kind >= BARRIER_RED) x->holding += (u32)__builtin_popcount(*SLOT(u32, 3) & mask);
    if (clocks_on) clocks_meet(w, mask, number);
    if (i->kind == BARRIER_ARRIVE)
        mask = 0;
    else
        x->waiting += here;
    w->waits = mask ? number + 1 : 0;
    complete(w, mask, number);
}
/* All threads of the cluster meet where they wait. */
void run_cluster_arrive(Warp *w, const Ins *i, u32 mask) {
    if (w->arrived & mask) fault(w, first_lane(w->arrived & mask), "it has arrived at the cluster's barrier already");
    w->arrived |= mask;
}
void run_cluster_wait(Warp *w, const Ins *i, u32 mask) {
    Barrier *x = &w->block->barriers[CLUSTER_BARRIER];
    u32 here = (u32)__builtin_popcount(mask);
    if (mask & ~w->arrived) fault(w, first_lane(mask & ~w->arrived), "it has not arrived at the cluster's barrier");
    w->arrived &= ~mask;
    arrive(w, mask, CLUSTER_BARRIER, w->block->threads, here);
    if (clocks_on) clocks_meet(w, mask, CLUSTER_BARRIER);
    x->waiting += here;
    w->waits = CLUSTER_BARRIER + 1;
    complete(w, mask, CLUSTER_BARRIER);
}
void give_reduced(Warp *w, const Ins *i, u32 mask) {
    if (i->kind < BARRIER_RED) return;
    u32 lane = first_lane(mask), number = MAX_BARRIERS * rank_of(w) + ((const u32 *)(w->entry.frame + i->o[0]))[lane],
        found = w->block->reduced[number][i->kind - BARRIER_RED];
    u32 *d = (u32 *)(w->entry.frame + i->o[2]);
    if (i->kind == BARRIER_RED)
        each_lane(l, mask) d[l] = found;
    else
        keep_predicate(d, found ? ALL_LANES : 0, mask);
}
