/* Vector clocks: what each thread knows to be done before what it does now. Time is a number that all threads share and
   that grows with every release; what a thread did until then is known by the latest such time. An arrival at a barrier
   takes what its thread knows to the barrier, and who waits there takes it over; so does a phase of a mbarrier, for
   those alone who wait for it with success. A barrier of all threads is simpler: all that was done before `race_floor`
   is known to all; but not copies and products that are not waited for.

   The same is kept of what a fence.proxy.async has shown to copies and products. */
#include "lanes.h"
#include "race.h"
#include <stdio.h>
#include <stdlib.h>

bool clocks_on;
enum { PENDING, ENDED, HALVES };
static struct {
    u32 threads, warps, n; /* n: numbers of who does something */
    u32 *seen, *shown;     /* rows of n numbers: of threads, barriers, mbarriers, and one more */
    u32 *all_shown;        /* to all threads, by barriers of them */
} clocks;

static u32 rows(void) { return clocks.threads + ALL_BARRIERS + HALVES * MOST_MBARRIERS + 1; }
static u32 barrier_row(u32 barrier) { return clocks.threads + barrier; }
static u32 mbarrier_row(u32 mbarrier, u32 half) { return clocks.threads + ALL_BARRIERS + HALVES * mbarrier + half; }
static u32 thread_row(const Warp *w, u32 lane) { return w->index * LANES + lane; }
static u32 *seen(u32 row) { return clocks.seen + (size_t)row * clocks.n; }
static u32 *shown(u32 row) { return clocks.shown + (size_t)row * clocks.n; }

bool clocks_begin(Launch *x) {
    clocks.threads = x->b.nwarps * LANES, clocks.warps = x->b.nwarps;
    clocks.n = clocks.threads + MOST_MBARRIERS + clocks.warps;
    clocks.seen = calloc((size_t)rows() * clocks.n, sizeof(u32));
    clocks.shown = calloc((size_t)rows() * clocks.n, sizeof(u32));
    clocks.all_shown = calloc(clocks.n, sizeof(u32));
    return clocks.seen && clocks.shown && clocks.all_shown;
}
void clocks_end(void) {
    free(clocks.seen), free(clocks.shown), free(clocks.all_shown);
    clocks.seen = clocks.shown = clocks.all_shown = NULL;
}
u32 clocks_copies(u32 mbarrier) { return clocks.threads + mbarrier; }
u32 clocks_products(u32 warp) { return clocks.threads + MOST_MBARRIERS + warp; }

const char *clocks_name(u32 by, u32 when, char text[CLOCKS_NAME]) {
    if (by < clocks.threads)
        snprintf(text, CLOCKS_NAME, "%sthread %u of this block", when == IN_FLIGHT ? "a copy, not waited for, of " : "",
                 by);
    else if (by < clocks_products(0))
        snprintf(text, CLOCKS_NAME, "a copy that a mbarrier waits for");
    else
        snprintf(text, CLOCKS_NAME, "a product of warp %u", by - clocks_products(0));
    return text;
}

static void join(u32 *to, const u32 *from) {
    for (u32 k = 0; k < clocks.n; k++) to[k] = to[k] > from[k] ? to[k] : from[k];
}
static void join_rows(u32 to, u32 from) { join(seen(to), seen(from)), join(shown(to), shown(from)); }
/* What a thread knows goes to a row, and all that it has done until now. */
static void release(const Warp *w, u32 lane, u32 to) {
    u32 thread = thread_row(w, lane);
    join_rows(to, thread);
    seen(to)[thread] = race_epoch;
}
static void clear(u32 row) {
    memset(seen(row), 0, clocks.n * sizeof(u32));
    memset(shown(row), 0, clocks.n * sizeof(u32));
}

/* ---- questions */
View clocks_view(const Warp *w, u32 lane) {
    u32 row = thread_row(w, lane);
    return (View){seen(row), shown(row), row, 1};
}
View clocks_warp_view(const Warp *w) {
    u32 last = rows() - 1;
    clear(last);
    for (u32 l = 0; l < LANES; l++) join_rows(last, thread_row(w, l));
    return (View){seen(last), shown(last), w->index * LANES, LANES};
}
bool clocks_ordered(const View *v, u32 by, u32 when) {
    if (when == IN_FLIGHT) return false;
    if (by < clocks.threads && (when < race_floor || by - v->first < v->n)) return true;
    return v->seen[by] >= when;
}
bool clocks_shown(const View *v, u32 by, u32 when) {
    return by >= clocks.threads || v->shown[by] >= when || clocks.all_shown[by] >= when;
}

/* ---- events */
void clocks_fence(const Warp *w, u32 mask) {
    each_lane(l, mask) {
        u32 thread = thread_row(w, l), *of = shown(thread);
        const u32 *known = seen(thread);
        for (u32 k = 0; k < clocks.threads; k++) {
            u32 when = known[k] >= race_floor ? known[k] : race_floor - 1;
            of[k] = of[k] > when ? of[k] : when;
        }
        of[thread] = race_epoch;
    }
    race_epoch++;
}
void clocks_warp_sync(const Warp *w, u32 mask) {
    u32 last = rows() - 1;
    clear(last);
    each_lane(l, mask) release(w, l, last);
    each_lane(l, mask) join_rows(thread_row(w, l), last);
    race_epoch++;
}
void clocks_meet(const Warp *w, u32 mask, u32 barrier) {
    each_lane(l, mask) release(w, l, barrier_row(barrier));
    race_epoch++;
}
void clocks_leave(const Warp *w, u32 mask, u32 barrier) {
    each_lane(l, mask) join_rows(thread_row(w, l), barrier_row(barrier));
}
void clocks_met(u32 barrier, bool all) {
    u32 row = barrier_row(barrier), first = clocks.threads;
    race_phase = ++race_epoch;
    if (all) {
        race_floor = race_epoch;
        join(clocks.all_shown, shown(row));
        for (u32 t = 0; t < clocks.threads; t++)
            memcpy(seen(t) + first, seen(row) + first, (clocks.n - first) * sizeof(u32));
    }
    clear(row);
}
void clocks_open(u32 mbarrier) {
    for (u32 half = 0; half < HALVES; half++) clear(mbarrier_row(mbarrier, half));
}
void clocks_arrive(const Warp *w, u32 lane, u32 mbarrier) { release(w, lane, mbarrier_row(mbarrier, PENDING)); }
void clocks_copied(u32 mbarrier) { seen(mbarrier_row(mbarrier, PENDING))[clocks_copies(mbarrier)] = race_epoch; }
void clocks_phase(u32 mbarrier) {
    join_rows(mbarrier_row(mbarrier, ENDED), mbarrier_row(mbarrier, PENDING));
    race_phase = ++race_epoch;
}
void clocks_wait(const Warp *w, u32 lane, u32 mbarrier) {
    join_rows(thread_row(w, lane), mbarrier_row(mbarrier, ENDED));
}
void clocks_products_done(const Warp *w, u32 when) {
    u32 by = clocks_products(w->index);
    for (u32 l = 0; l < LANES; l++) {
        u32 *of = seen(thread_row(w, l));
        of[by] = of[by] > when ? of[by] : when;
    }
}
