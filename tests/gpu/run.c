/* Running a warp. Its lanes are in groups, each at one place of the program; the group at the lowest place runs until
   it comes to the next one, which brings lanes together again after every branch that LLVM writes. Lanes at a
   synchronising operation are parked until all that it names have come. */
#include "race.h"
#include <assert.h>

enum { SLICE = 1 << 16, SHORTEST_SLICE = 64 }; /* instructions before others have their turn */

static void remove_group(Activation *a, uint32_t k) {
    memmove(a->groups + k, a->groups + k + 1, (--a->ngroups - k) * sizeof *a->groups);
}
/* Lanes join those that are ready, or parked, at the same place. */
static void put(Activation *a, Group g) {
    if (g.mask == 0) return;
    uint32_t k = 0;
    for (; k < a->ngroups && a->groups[k].pc <= g.pc; k++)
        if (a->groups[k].pc == g.pc && a->groups[k].state == g.state && a->groups[k].barrier == g.barrier) {
            a->groups[k].mask |= g.mask;
            return;
        }
    assert(a->ngroups < LANES);
    memmove(a->groups + k + 1, a->groups + k, (a->ngroups++ - k) * sizeof *a->groups);
    a->groups[k] = g;
}
static void put_ready(Activation *a, uint32_t pc, uint32_t mask) { put(a, (Group){pc, mask, LANES_READY, 0}); }
/* Takes the lanes that wait in this way at that place. */
static uint32_t take(Activation *a, uint32_t pc, GroupState state) {
    for (uint32_t k = 0; k < a->ngroups; k++)
        if (a->groups[k].pc == pc && a->groups[k].state == state) {
            uint32_t mask = a->groups[k].mask;
            remove_group(a, k);
            return mask;
        }
    return 0;
}
/* The lowest place, from `pc` on, where lanes are ready. */
static uint32_t next_ready(const Activation *a, uint32_t pc) {
    for (uint32_t k = 0; k < a->ngroups; k++)
        if (a->groups[k].state == LANES_READY && a->groups[k].pc >= pc) return a->groups[k].pc;
    return UINT32_MAX;
}
/* The lowest ready group; after a slice of it, or a failed test of an mbarrier, another one for a slice, so that lanes
   that wait for others in a loop do not wait for ever. */
static bool choose(Activation *a, Group *g) {
    uint32_t ready[LANES], n = 0;
    for (uint32_t k = 0; k < a->ngroups; k++)
        if (a->groups[k].state == LANES_READY) ready[n++] = k;
    if (n == 0) return false;
    uint32_t k = ready[a->turn && n > 1 ? 1 + a->turn % (n - 1) : 0];
    *g = a->groups[k];
    remove_group(a, k);
    return true;
}

/* A group while it runs. */
typedef struct {
    Warp *w;
    Activation *a;
    uint32_t pc, mask, limit;
    bool in_turn; /* it is not the lowest one, but its turn */
} Cursor;
static bool stop(Cursor *c) {
    put_ready(c->a, c->pc, c->mask);
    return false;
}
/* The group goes to `pc`. Does it go on running? */
static bool go(Cursor *c, uint32_t pc) {
    c->pc = pc;
    if (c->a->ngroups == 0) return true;
    if (!c->in_turn && next_ready(c->a, 0) <= pc) return stop(c);
    c->limit = next_ready(c->a, pc);
    return true;
}
static bool branch(Cursor *c, const Ins *i, uint32_t m) {
    if (m == c->mask) return go(c, i->target);
    if (m == 0) return c->pc++, true;
    ptx_counts.divergent_branches++;
    put_ready(c->a, i->target, m);
    c->mask &= ~m;
    return go(c, c->pc + 1);
}
/* Lanes go to the target of the list that their operand says. */
static bool choose_target(Cursor *c, const Ins *i, uint32_t m) {
    const uint32_t *index = (const uint32_t *)(c->w->frame + i->o[0]), *targets = c->a->f->lists.at + i->list;
    each_lane(l, m) {
        if (index[l] >= i->n) fault(c->w, l, "branch %u of %u", index[l], i->n);
        put_ready(c->a, targets[index[l]], 1u << l);
    }
    c->mask &= ~m;
    return c->mask ? go(c, c->pc + 1) : false;
}
static bool end_lanes(Cursor *c, const Ins *i, uint32_t m) {
    c->w->block->failed_tests = 0;
    c->a->live &= ~m, c->mask &= ~m;
    if (i->flow == FLOW_EXIT) c->a->exited |= m;
    return c->mask ? go(c, c->pc + 1) : false;
}
static bool call(Cursor *c, const Ins *i, uint32_t m) {
    if (m) run_call(c->w, i, m);
    c->mask &= c->a->live;
    return c->mask ? go(c, c->pc + 1) : false;
}
/* Have all members come? Then they are the group; else those that are here are parked. */
static bool gather(Cursor *c, const Ins *i, uint32_t m) {
    if (m != c->mask)
        fault(c->w, first_lane(c->mask & ~m), "lanes differ in the predicate of a synchronising operation");
    uint32_t parked = take(c->a, c->pc, LANES_PARKED), here = m | parked;
    uint32_t members =
        i->members == NO_SLOT ? c->a->started : ((const uint32_t *)(c->w->frame + i->members))[first_lane(m)];
    c->mask = here;
    if (!(members & c->a->live & ~here)) return true;
    put(c->a, (Group){c->pc, here, LANES_PARKED, 0});
    return false;
}
static bool synchronise(Cursor *c, const Ins *i, uint32_t m) {
    if (m == 0) return c->pc++, true;
    if (!gather(c, i, m)) return false;
    i->run(c->w, i, c->mask);
    return go(c, c->pc + 1);
}
static bool barrier(Cursor *c, const Ins *i, uint32_t m) {
    if (m == 0) return c->pc++, true;
    if (c->w->depth) fault(c->w, first_lane(m), "a barrier in a function that is called");
    if (i->sign && !gather(c, i, m)) return false; /* aligned */
    if (m != c->mask && !i->sign) put_ready(c->a, c->pc + 1, c->mask & ~m), c->mask = m;
    i->run(c->w, i, c->mask);
    if (c->w->waits == 0) {
        give_reduced(c->w, i, c->mask);
        return go(c, c->pc + 1);
    }
    put(c->a, (Group){c->pc, c->mask, LANES_AT_BARRIER, c->w->waits - 1});
    return false;
}
static bool poll(Cursor *c, const Ins *i, uint32_t m) {
    if (m) i->run(c->w, i, m);
    c->pc++;
    return c->w->poll && c->w->depth == 0 ? stop(c) : true;
}
typedef bool Step(Cursor *, const Ins *, uint32_t m);
static Step *const steps[] = {
    [FLOW_SYNC] = synchronise,     [FLOW_BARRIER] = barrier, [FLOW_POLL] = poll,        [FLOW_BRANCH] = branch,
    [FLOW_SWITCH] = choose_target, [FLOW_CALL] = call,       [FLOW_RETURN] = end_lanes, [FLOW_EXIT] = end_lanes,
};

/* At most `budget` instructions; how many. */
static inline __attribute__((always_inline)) uint64_t run_loop(Cursor *c, uint64_t budget, bool products) {
    const Ins *code = c->a->f->code.at;
    Warp *w = c->w;
    uint64_t n = 0, lanes = 0;
    while (n < budget) {
        if (c->pc == c->limit) break;
        const Ins *i = code + c->pc;
        uint32_t m = c->mask;
        if (i->guard != NO_SLOT) {
            uint32_t p = *(const uint32_t *)(w->frame + i->guard);
            m &= i->negated ? ~p : p;
        }
        w->at = i;
        if (products && m) check_registers(w, i);
        n++;
        lanes += (uint32_t)__builtin_popcount(m);
        if (i->flow == FLOW_NEXT) {
            if (m) i->run(w, i, m);
            c->pc++;
        } else if (!steps[i->flow](c, i, m)) {
            c->mask = 0;
            break;
        } else if (products != (w->products.n != 0))
            break;
    }
    put_ready(c->a, c->pc, c->mask);
    ptx_counts.warp_instructions += n;
    ptx_counts.lane_instructions += lanes;
    return n;
}
/* Products that are not done make the loop another one, so that others go on without looking for them. */
static uint64_t run_group(Cursor *c, uint64_t budget) {
    return c->w->products.n ? run_loop(c, budget, true) : run_loop(c, budget, false);
}
static uint64_t random_of(Launch *x) { /* splitmix64 */
    uint64_t z = x->random += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}
/* With a seed, warps take turns also between barriers. */
static uint64_t slice_of(Launch *x) {
    return x->random ? SHORTEST_SLICE + random_of(x) % (16 * SHORTEST_SLICE) : SLICE;
}
/* A warp that runs for long without a failed test does not only wait. */
static void count_work(Warp *w, uint64_t instructions) {
    w->busy += (uint32_t)instructions;
    if (w->busy >= SLICE) w->busy = w->block->failed_tests = 0;
}
void run_activation(Warp *w, Activation *a) {
    Launch *x = w->block->launch;
    Group g;
    while (choose(a, &g)) {
        Cursor c = {w, a, g.pc, g.mask, next_ready(a, g.pc), a->turn != 0};
        uint64_t slice = slice_of(x), n = run_group(&c, slice < x->left ? slice : x->left);
        x->left -= n;
        if (x->left == 0)
            fault(w, first_lane(g.mask), "more than %llu instructions of warps", (unsigned long long)ptx_options.most);
        a->turn = (n == slice || w->poll) && a->turn == 0 ? ++a->slices : 0;
        count_work(w, n);
        if (w->depth == 0 && (n == slice || w->poll)) return;
    }
}
void run_warp(Warp *w) {
    w->poll = false;
    w->frame = w->entry.frame;
    run_activation(w, &w->entry);
}
bool warp_ready(const Warp *w) { return next_ready(&w->entry, 0) != UINT32_MAX; }

/* The lanes that wait at this barrier of the block go on behind it. */
void release_barrier(Block *b, uint32_t number, bool all) {
    if (!clocks_on) touch_barrier();
    b->meets++;
    for (uint32_t k = 0; k < b->nwarps; k++) {
        Activation *a = &b->warps[k].entry;
        for (uint32_t j = 0; j < a->ngroups;) {
            Group g = a->groups[j];
            if (g.state != LANES_AT_BARRIER || g.barrier != number) {
                j++;
                continue;
            }
            remove_group(a, j);
            if (clocks_on && !all) clocks_leave(&b->warps[k], g.mask, number);
            give_reduced(&b->warps[k], &a->f->code.at[g.pc], g.mask);
            put_ready(a, g.pc + 1, g.mask);
            j = 0;
        }
    }
    if (clocks_on) clocks_met(number, all);
}
