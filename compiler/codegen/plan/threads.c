#include "threads.h"
#include "../cost.h"
#include "dot.h"
#include "scatter.h"
#include "vectors.h"

/* A LOOPS step whose lane loop is kept: a thread computes one point of the kept loops, all of which are collapsed, so
   that neighbouring threads are neighbours along the lane loop and their accesses are coalesced. If the lane loop is
   reduced, a block computes one point, its threads sharing the iterations of that loop, unless it is short. Prefixes and
   scatters: a thread for each point of the loops that are independent. Products: a block for each tile. What is left when
   each block or thread has an item begins anew with the first one. */

enum { THREADS = 256, SHORT_ROW = 16, MOST_BLOCKS = 1 << 30 };

static uint32_t threads_for(Dim n) {
    uint32_t threads = WARP;
    while (threads < THREADS && (!dim_is_const(n) || threads < n)) threads *= 2;
    return threads;
}
static bool shares_lanes(const Plan *p, const Step *s) {
    if (!s->nred || s->red[s->nred - 1] != s->lane || s->written_out) return false;
    Dim n = loop_extent(p->ix, s->lane);
    return !dim_is_const(n) || n > SHORT_ROW;
}
/* Must a thread do all its iterations, in a step that is not LOOPS? */
static bool in_order(Plan *p, const Step *s, Atom loop) {
    return s->kind == STEP_CUM ? loop == cum_axis(p, s) : s->kind == STEP_SCATTER && scatter_overlaps(p, s, loop);
}
/* A thread for each point of the kept loops whose iterations are independent. */
static void points(Plan *p, Step *s) {
    Atom *loops = arena_new(p->arena, Atom, s->nkept + 1);
    Grid *g = &s->grid;
    g->items = 1, g->loops = loops;
    for (uint32_t i = 0; i < s->nkept; i++) {
        if (in_order(p, s, s->kept[i])) continue;
        loops[g->nloops++] = s->kept[i];
        g->items = dim_mul(p->cx->types, g->items, loop_extent(p->ix, s->kept[i]));
    }
}
static void decide_loops(Plan *p, Step *s) {
    s->grid.together = shares_lanes(p, s);
    if (s->parts)
        s->block = s->red[0] == s->lane ? PART_LANES : 1, s->grid.items = step_parts(p, s);
    else
        points(p, s);
    s->grid.threads = threads_for(s->grid.together ? loop_extent(p->ix, s->lane) : s->grid.items);
    cut_sums(p, s, s->grid.together ? s->grid.threads : 1);
}
static void decide_dot(Plan *p, Step *s) {
    dot_device_schedule(p, s);
    s->grid = (Grid){.items = dot_device_units(p, s), .together = true, .threads = THREADS};
}
void threads_decide(Plan *p, Step *s) {
    s->widths = (Widths){1, 0};
    s->units = s->block = 1;
    switch (s->kind) {
    case STEP_LOOPS: decide_loops(p, s); break;
    case STEP_DOT: decide_dot(p, s); break;
    case STEP_SCATTER:
    case STEP_CUM:
        if (s->kind == STEP_CUM) s->lane = s->kept[s->nkept - 1];
        points(p, s);
        s->grid.threads = threads_for(s->grid.items);
        break;
    default: break;
    }
}
Dim grid_blocks(Plan *p, const Grid *g) {
    Types *ts = p->cx->types;
    Dim n = g->together ? g->items : dim_floordiv(ts, dim_add(ts, g->items, g->threads - 1), g->threads);
    return dim_min(ts, n, MOST_BLOCKS);
}
