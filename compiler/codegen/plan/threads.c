#include "threads.h"
#include "../cost.h"
#include "dot.h"
#include "scatter.h"
#include "vectors.h"

/* A LOOPS step whose lane loop is kept: a thread computes one point of the kept loops, all of which are collapsed, so
   that neighbouring threads are neighbours along the lane loop and their accesses are coalesced. If the lane loop is
   reduced, a block computes one point, its threads sharing the iterations of that loop, unless it is short. Prefixes: a
   block for each row along the lane loop, else a thread; long rows in parts. Scatters: a thread for each point of the
   loops that are independent. Products: a block for each tile. What is left when each block or thread has an item begins
   anew with the first one. */

static uint32_t threads_for(Dim n) {
    uint32_t threads = WARP;
    while (threads < BLOCK_THREADS && (!dim_is_const(n) || threads < n)) threads *= 2;
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
/* Parts of a loop of n iterations, one more loop of the grid. */
static void divide(Plan *p, Step *s, Dim n, int64_t least, int64_t most) {
    Types *ts = p->cx->types;
    Grid *g = &s->grid;
    Dim length = dim_max(ts, dim_floordiv(ts, dim_add(ts, n, most - 1), most), least);
    Dim parts = dim_floordiv(ts, dim_add(ts, n, dim_sub(ts, length, 1)), length);
    Atom *loops = arena_new(p->arena, Atom, g->nloops + 1);
    s->division = (Division){atom_loop(p->ix, parts), length, g->items};
    loops[0] = s->division.loop;
    memcpy(loops + 1, g->loops, g->nloops * sizeof *loops);
    g->loops = loops, g->nloops++;
    g->items = dim_mul(p->cx->types, g->items, parts);
}
static void decide_prefixes(Plan *p, Step *s) {
    Types *ts = p->cx->types;
    Grid *g = &s->grid;
    Atom axis = cum_axis(p, s);
    Dim n = loop_extent(p->ix, axis);
    Dtype d = val_array(p->cx, s->e->out.at[0])->dtype;
    points(p, s);
    g->threads = threads_for(g->items);
    if (prim_in_order(s->e->prim, d) || (dim_is_const(n) && n <= SHORT_ROW)) return;
    g->together = s->lane == axis;
    if (g->together) g->threads = threads_for(dim_floordiv(ts, dim_add(ts, n, PREFIX_ITEMS - 1), PREFIX_ITEMS));
    int64_t rows = g->together ? BLOCK_ROWS : THREAD_ROWS, least = g->together ? BLOCK_PART : THREAD_PART;
    if ((dim_is_const(g->items) && g->items >= rows) || (dim_is_const(n) && n < 2 * least)) return;
    divide(p, s, n, least, g->together ? BLOCK_PARTS : THREAD_PARTS);
    if (!g->together) g->threads = threads_for(g->items);
    s->parts = buf_new(p, BUF_WORK, dim_mul(ts, g->items, PART_BYTES));
}
static void decide_dot(Plan *p, Step *s) {
    dot_device_schedule(p, s);
    s->grid = (Grid){.items = dot_device_units(p, s), .together = true, .threads = BLOCK_THREADS};
}
void threads_decide(Plan *p, Step *s) {
    s->widths = (Widths){1, 0};
    s->units = s->block = 1;
    switch (s->kind) {
    case STEP_LOOPS: decide_loops(p, s); break;
    case STEP_DOT: decide_dot(p, s); break;
    case STEP_CUM:
        s->lane = s->kept[s->nkept - 1];
        decide_prefixes(p, s);
        break;
    case STEP_SCATTER:
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
