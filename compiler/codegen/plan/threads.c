#include "threads.h"
#include "../cost.h"
#include "crossed.h"
#include "dot.h"
#include "places.h"
#include "rows.h"
#include "scatter.h"
#include "sort.h"
#include "vectors.h"

/* How the work of a step is divided among blocks and threads. A LOOPS step whose lane loop is kept: a thread computes
   one point of the kept loops, all of which are collapsed, so that neighbouring threads are neighbours along the lane
   loop and their accesses are coalesced; if few points reduce many terms, each thread of a block sums a chunk of them.
   If the lane loop is reduced, a block, a warp or a part of a warp computes one point, its threads sharing the
   iterations of that loop, unless it is short. Prefixes: a block for each row along the lane loop, else a thread. Long
   sums and prefixes, if there are few, are done in parts. Scatters: a thread for each point of the loops that are
   independent. Products: a block for each tile. What is left when each block or thread has an item begins anew with
   the first one. */

/* As many as there is work for, a power of two. */
static uint32_t threads_for(Dim n, uint32_t least) {
    uint32_t threads = least;
    while (threads < BLOCK_THREADS && (!dim_is_const(n) || threads < n)) threads *= 2;
    return threads;
}
/* n / by, rounded up */
static Dim times(Plan *p, Dim n, Dim by) {
    Types *ts = p->cx->types;
    return dim_floordiv(ts, dim_add(ts, n, dim_sub(ts, by, 1)), by);
}
/* Must a thread do all its iterations, in a step that is not LOOPS? */
static bool in_order(Plan *p, const Step *s, Atom loop) { return s->kind == STEP_CUM && loop == cum_axis(p, s); }
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
/* Parts of a loop of n iterations, one more loop of the grid: of so many iterations at least, as many parts at most;
   their length is a multiple of `turn`. */
typedef struct {
    int64_t least, most;
    Dim turn;
} Parts;
static void divide(Plan *p, Step *s, Dim n, const Parts *by) {
    Types *ts = p->cx->types;
    Grid *g = &s->grid;
    Dim length = dim_max(ts, times(p, n, by->most), by->least);
    if (by->turn > 1) length = dim_mul(ts, times(p, length, by->turn), by->turn);
    Dim parts = times(p, n, length);
    Atom *loops = arena_new(p->arena, Atom, g->nloops + 1);
    s->division = (Division){.loop = atom_loop(p->ix, parts), .length = length, .items = g->items};
    loops[0] = s->division.loop;
    memcpy(loops + 1, g->loops, g->nloops * sizeof *loops);
    g->loops = loops, g->nloops++;
    g->items = dim_mul(p->cx->types, g->items, parts);
}
/* ---- LOOPS: threads share the lane loop, if it is reduced, or chunks of the outermost reduced loop, unless those are
   short or there are enough points for all threads */
static bool known_from(Dim n, int64_t least) { return dim_is_const(n) && n >= least; }
static bool known_below(Dim n, int64_t most) { return dim_is_const(n) && n < most; }
bool threads_share_lanes(const Plan *p, const Step *s) {
    if (!s->nred || s->red[s->nred - 1] != s->lane || s->written_out) return false;
    Dim n = loop_extent(p->ix, s->lane);
    return !dim_is_const(n) || n > (rows_read_again(s) ? SHORT_AGAIN : SHORT_ROW);
}
static void share_lanes(Plan *p, Step *s) {
    Grid *g = &s->grid;
    Dim n = loop_extent(p->ix, s->lane);
    bool many = !dim_is_const(g->items) || g->items >= LEAST_WARP_ROWS;
    uint32_t group = threads_for(times(p, loop_extents(p, s->red, s->nred), ROW_ITEMS), LEAST_GROUP);
    uint32_t most = threads_for(n, LEAST_GROUP);
    if (group > most) group = most;
    if (group > WARP && many && known_below(n, WARP_ROW + 1)) group = WARP;
    if (s->held.turns) group = s->held.group;
    g->together = true, g->group = group;
    g->cluster = s->held.cluster, g->once = g->cluster;
    if (g->cluster) group /= g->cluster;
    if ((s->held.nnear || g->cluster) && group == HELD_TWICE) g->blocks = 2;
    g->threads = group > WARP ? group : threads_for(dim_mul(p->cx->types, g->items, group), WARP);
    while (g->threads > WARP && g->threads / group * s->row_bytes > SHARED_ROWS) g->threads /= 2;
}
static bool shares_chunks(Plan *p, const Step *s) {
    Dim n = s->nred ? loop_extent(p->ix, s->red[0]) : 1, points = s->grid.items;
    if (!s->reduces || s->written_out || s->nreductions > CHUNK_SUMS) return false;
    if (step_in_order(p, s) || known_from(points, MOST_COLUMNS)) return false;
    return !known_below(n, dim_is_const(points) ? LONG_COLUMN : VERY_LONG_COLUMN);
}
static void share_chunks(Plan *p, Step *s) {
    Grid *g = &s->grid;
    uint32_t columns = LEAST_COLUMNS;
    while (columns < WARP && !known_below(g->items, columns + 1)) columns *= 2;
    g->together = true, g->threads = BLOCK_THREADS, g->chunks = BLOCK_THREADS / columns;
}
/* Few sums of many terms are done in parts. */
static void divide_sums(Plan *p, Step *s) {
    Types *ts = p->cx->types;
    Grid *g = &s->grid;
    uint32_t words = step_part_words(p, s) * (s->columns ? s->columns : 1);
    int64_t terms = g->chunks ? COLUMN_PART : BLOCK_PART, most = g->chunks ? COLUMN_PARTS : BLOCK_PARTS;
    Dim n = loop_extent(p->ix, s->red[0]);
    int64_t least = loop_turns(loop_extents(p, s->red + 1, s->nred - 1), terms);
    Dim blocks = grid_blocks(p, g);
    if (!words || known_from(blocks, BLOCK_ROWS) || known_below(n, 2 * least)) return;
    if (g->chunks && dim_is_const(blocks) && blocks > 0) {
        /* shorter parts, but no more blocks than keep a device busy */
        int64_t enough = (COLUMN_BLOCKS + blocks - 1) / blocks;
        most = enough < most ? enough : most, least = (least + COLUMN_SHORTER - 1) / COLUMN_SHORTER;
    }
    divide(p, s, n, &(Parts){least, most, 1});
    s->division.chunks = BLOCK_THREADS / LEAST_COLUMNS;
    s->parts = buf_new(p, BUF_WORK, dim_mul(ts, g->items, 8 * (Dim)words));
}
/* ---- runs: a thread has neighbouring elements that wide accesses read and write: along the lane loop, or if some are
   apart along that and beside each other along another loop, as in a transpose, along the latter */
typedef struct {
    Plan *p;
    const Step *step;
    Neighbours lanes;
    Atom across;   /* the other loop; 0: there is none */
    uint32_t far;  /* bytes of the elements beside each other along it */
    bool computed; /* a place depends on an element of an array */
} Run;
static void add_across(Run *r, const ArrayPlace *a) {
    const Step *s = r->step;
    for (uint32_t i = 0; i < s->nkept; i++) {
        bool other;
        if (s->kept[i] == s->lane || ix_coef(r->p->ix, a->address, s->kept[i], &other) != 1 || other) continue;
        r->across = s->kept[i];
        if (dtype_bytes(a->dtype) > r->far) r->far = dtype_bytes(a->dtype);
    }
}
static void add(void *user, const ArrayPlace *a) {
    Run *r = user;
    r->computed |= ix_at(r->p->ix, a->address)->data;
    Dim moves = neighbours_add(r->p, r->step, &r->lanes, a);
    if (moves != 0 && moves != 1) add_across(r, a);
}
static uint32_t length_of(const Run *r, uint32_t cost) {
    uint32_t bytes = r->lanes.apart ? r->far : r->lanes.widest,
             run = bytes ? (r->lanes.apart ? SECTOR_BYTES : DEVICE_ALIGN) / bytes : 1;
    if (r->lanes.apart && run > MOST_ACROSS) run = MOST_ACROSS;
    while (run > 1 && run * cost > RUN_COST) run /= 2;
    return run;
}
/* Are twice as many runs at once cheap, and still enough for all threads? */
static bool more_runs(const Step *s, Dim n) {
    uint32_t elements = 2 * s->run_turns * s->run;
    return elements * s->cost <= CHEAP_RUN && !known_below(n, (int64_t)elements * RUN_THREADS);
}
/* The loops of the grid, one of which is replaced. */
static Atom *with_loop(Plan *p, const Step *s, Atom loop, Atom by) {
    const Grid *g = &s->grid;
    Atom *loops = arena_new(p->arena, Atom, g->nloops);
    for (uint32_t i = 0; i < g->nloops; i++) loops[i] = g->loops[i] == loop ? by : g->loops[i];
    return loops;
}
static Atom *with_runs(Plan *p, const Step *s, Atom loop) { return with_loop(p, s, loop, s->runs); }
static void set_run(Plan *p, Step *s, Atom loop, uint32_t run) {
    Grid *g = &s->grid;
    Dim n = loop_extent(p->ix, loop);
    s->run = run, s->run_turns = 1, s->run_loop = loop, s->runs = atom_loop(p->ix, times(p, n, run));
    Atom *loops = with_runs(p, s, loop);
    while (s->nkept == 1 && s->run_turns < RUN_TURNS && more_runs(s, n)) s->run_turns *= 2;
    if (s->run_turns > 1) {
        Dim blocks = times(p, loop_extent(p->ix, s->runs), (Dim)s->run_turns * BLOCK_THREADS);
        loops[0] = atom_loop(p->ix, dim_mul(p->cx->types, blocks, BLOCK_THREADS));
    }
    g->loops = loops, g->items = loop_extents(p, loops, g->nloops);
}
/* Accesses that are not wide: a thread has elements of the same place in neighbouring rows or, of the only row, as
   far apart as a block has threads, so that several are in flight, and what neighbouring rows read in common is read
   once. */
static void set_rows(Plan *p, Step *s, Atom loop, Dim cost, int64_t most) {
    uint32_t rows = RUN_TURNS;
    while (rows > 1 && (rows * cost > most || known_below(s->grid.items, (int64_t)rows * RUN_THREADS))) rows /= 2;
    bool narrow = known_below(loop_extent(p->ix, s->lane), WARP); /* a warp's accesses would be apart */
    if (rows <= 1 || narrow || known_below(loop_extent(p->ix, loop), rows)) return;
    set_run(p, s, loop, s->nkept == 1 ? 1 : rows);
    s->narrow_run = true;
}
static void choose_rows(Plan *p, Step *s) {
    set_rows(p, s, s->kept[s->nkept > 1 ? s->nkept - 2 : 0], s->cost, CHEAP_RUN);
}
/* Windows that overlap. */
static void choose_windows(Plan *p, Step *s) {
    bool stored_last = s->levels == 2;
    each(Store, st, s->stores) stored_last &= st->level == 1;
    if (s->jam && stored_last) set_rows(p, s, s->jam, loop_extents(p, s->red, s->nred), WINDOW_TERMS);
    if (!s->run) s->written_out = false, s->half = 0;
    s->jam = 0;
}
/* Rows of which a thread reads neighbouring elements, as in a stencil, are read once for several results. */
typedef struct {
    Plan *p;
    Atom loop;
    const Buf *buf[ROW_READS];
    Ix address[ROW_READS];
    uint32_t n;
    bool shared;
} RowReads;
static void add_read(void *user, const ArrayPlace *a) {
    RowReads *r = user;
    bool other;
    Dim row = ix_coef(r->p->ix, a->address, r->loop, &other);
    if (a->kind == PLACE_STORE || other || !dim_is_const(row) || !row || r->n == ROW_READS) return;
    for (uint32_t i = 0; i < r->n; i++) {
        const IxExpr *apart = ix_at(r->p->ix, ix_sub(r->p->ix, a->address, r->address[i]));
        r->shared |= same_buf(r->buf[i], a->buf) && !apart->n && dim_is_const(apart->c) && apart->c &&
                     apart->c % row == 0 && apart->c / row >= -MOST_RUN_ROWS && apart->c / row <= MOST_RUN_ROWS;
    }
    r->buf[r->n] = a->buf, r->address[r->n++] = a->address;
}
static bool rows_shared(Plan *p, Step *s) {
    RowReads r = {.p = p, .loop = s->kept[s->nkept - 2]};
    step_places(p, s, false, add_read, &r);
    return r.shared;
}
/* A thread has runs of as many rows as that, if they do not cost more. */
static void set_run_rows(Plan *p, Step *s, uint32_t rows, int64_t most) {
    Grid *g = &s->grid;
    Atom loop = s->kept[s->nkept - 2];
    Dim n = loop_extent(p->ix, loop);
    while (rows > 1 && (rows * s->run * s->cost > most || dim_mod(p->cx->types, n, rows) != 0 ||
                        known_below(g->items, (int64_t)rows * RUN_THREADS)))
        rows /= 2;
    if (rows <= 1) return;
    s->run_rows = rows, s->row_loop = loop, s->row_runs = atom_loop(p->ix, dim_floordiv(p->cx->types, n, rows));
    g->loops = with_loop(p, s, loop, s->row_runs), g->items = loop_extents(p, g->loops, g->nloops);
}
static void choose_run(Plan *p, Step *s) {
    Grid *g = &s->grid;
    Run r = {.p = p, .step = s};
    if (s->carried || !s->nkept || s->lane != s->kept[s->nkept - 1]) return;
    if (known_below(g->items, RUN_POINTS)) return;
    step_places(p, s, false, add, &r);
    Atom loop = r.lanes.apart ? r.across : s->lane;
    uint32_t run = loop ? length_of(&r, s->cost) : 1;
    while (r.lanes.apart && run > 1 && known_below(g->items, (int64_t)run * RUN_THREADS)) run /= 2;
    Dim n = loop ? loop_extent(p->ix, loop) : 1;
    bool rows = s->nkept > 1 && !r.lanes.apart; /* then all have to be aligned */
    if (run <= 1 || known_below(n, run) || (rows && dim_mod(p->cx->types, n, run) != 0))
        choose_rows(p, s);
    else {
        set_run(p, s, loop, run);
        if (rows && r.computed) /* reads at computed places wait for the place first: so both are in flight */
            set_run_rows(p, s, GATHERED_ROWS, RUN_COST);
        else if (rows && rows_shared(p, s))
            set_run_rows(p, s, MOST_RUN_ROWS, RUN_ROWS_COST);
    }
}
/* A thread, or those that share an item, has n neighbouring ones. */
static void share_columns(Plan *p, Step *s, Atom loop, uint32_t n) {
    Grid *g = &s->grid;
    s->columns = n, s->run_loop = loop;
    s->runs = atom_loop(p->ix, dim_floordiv(p->cx->types, loop_extent(p->ix, loop), n));
    g->loops = with_runs(p, s, loop), g->items = loop_extents(p, g->loops, g->nloops);
}
/* Neighbouring sums of one thread, for wide accesses. */
static void choose_columns(Plan *p, Step *s) {
    Dim n = loop_extent(p->ix, s->lane);
    Run r = {.p = p, .step = s};
    if (!s->nkept || s->lane != s->kept[s->nkept - 1] || s->carried || s->unrolled) return;
    step_places(p, s, false, add, &r);
    uint32_t columns = r.lanes.apart ? 1 : length_of(&r, s->cost);
    while (columns > 1 && columns * s->nreductions > CHUNK_SUMS) columns /= 2;
    if (columns <= 1 || known_below(n, (int64_t)columns * LEAST_COLUMNS)) return;
    if (dim_mod(p->cx->types, n, columns) != 0) return;
    share_columns(p, s, s->lane, columns);
}
/* The same for rows of few iterations, so that memory is asked for more at a time. */
static void choose_sums(Plan *p, Step *s) {
    const Grid *g = &s->grid;
    Dim n = loop_extent(p->ix, s->lane);
    uint32_t rows = 1;
    if (!s->nkept || s->nred != 1 || s->carried || s->unrolled || !dim_is_const(n) || !step_part_words(p, s)) return;
    int64_t each = (n + g->group - 1) / g->group, most = TERMS_HELD / each;
    Dim all = loop_extent(p->ix, s->kept[s->nkept - 1]);
    while (2 * rows <= most && 2 * rows * s->nreductions <= CHUNK_SUMS && 2 * rows * s->cost * each <= TERMS_COST &&
           known_from(g->items, (int64_t)2 * rows * RUN_THREADS / g->group) &&
           dim_mod(p->cx->types, all, 2 * rows) == 0)
        rows *= 2;
    if (rows > 1) share_columns(p, s, s->kept[s->nkept - 1], rows);
}
/* Terms are read several at a time if their loop is the thread's own: blocks of terms are then whole numbers of
   turns. */
static void choose_terms(Plan *p, Step *s, Dim outermost) {
    Dim n = s->nred > 1 ? loop_extent(p->ix, s->red[s->nred - 1]) : outermost;
    if (!s->reduces || !s->nred || s->red[s->nred - 1] == s->lane || s->written_out || s->carried) return;
    uint32_t terms = TERMS_READ;
    uint32_t columns = s->columns ? s->columns : 1;
    while (terms > 1 && columns * terms > TERMS_HELD) terms /= 2;
    while (terms > 1 && (columns * terms * s->cost > TERMS_COST || known_below(n, terms))) terms /= 2;
    s->terms = terms;
}
static void whole_blocks(Step *s) {
    Dim *last = s->cuts.n == s->nred && s->nred ? &s->cuts.block[s->nred - 1] : NULL;
    if (s->terms > 1 && last && dim_is_const(*last)) *last = (*last + s->terms - 1) / s->terms * s->terms;
}
static void decide_loops(Plan *p, Step *s) {
    Grid *g = &s->grid;
    if (crossed_decide(p, s)) return;
    points(p, s);
    (s->reduces ? choose_windows : choose_run)(p, s);
    g->threads = threads_for(g->items, WARP);
    if (threads_share_lanes(p, s)) {
        share_lanes(p, s);
        choose_sums(p, s);
    } else if (shares_chunks(p, s)) {
        choose_columns(p, s);
        share_chunks(p, s);
    }
    if (g->chunks || g->group > WARP) divide_sums(p, s);
    Dim turns = s->parts ? s->division.length : s->nred ? loop_extent(p->ix, s->red[0]) : 1;
    if (g->chunks) turns = times(p, turns, g->chunks);
    choose_terms(p, s, turns);
    cut_sums(p, s, turns, g->group ? g->group : 1);
    whole_blocks(s);
}

/* ---- prefixes */
/* Neighbouring elements along the lane loop for wide accesses; 1: they are not beside each other. */
static uint32_t prefix_run(Plan *p, const Step *s, uint32_t most) {
    Run r = {.p = p, .step = s};
    Ix index[MAX_RANK];
    step_at(p, s, s->e->out.at[0], index);
    value_places(p, s->e->in.at[0], index, add, &r);
    each(Store, st, s->stores) {
        const ArrayPlace to = store_place(p, st, index);
        add(&r, &to);
    }
    uint32_t run = r.lanes.apart || !r.lanes.widest ? 1 : DEVICE_ALIGN / r.lanes.widest;
    return run > most ? most : run ? run : 1;
}
/* Combining two elements takes long. */
static bool combines_slowly(const Step *s) { return prim_combiner[s->e->prim] == P_none; }
/* May parts of n iterations wait for those before them? Each reads what all of these leave or, if there are more than
   `most`, what groups of them do. */
static bool may_wait(Plan *p, const Step *s, Dim n, int64_t part, int64_t most) {
    const Grid *g = &s->grid;
    bool known = dim_is_const(n) && dim_is_const(g->items) && g->items > 0 && !combines_slowly(s);
    return known && n >= 2 * part && n / part < MOST_GROUPS * most * PARTS_GROUP && n / part < MOST_BLOCKS / g->items;
}
static void wait_for_parts(Plan *p, Step *s, Dim n, int64_t part, int64_t most) {
    Types *ts = p->cx->types;
    Grid *g = &s->grid;
    divide(p, s, n, &(Parts){part, n, 1});
    s->division.waits = g->in_turn = true, s->division.group = n > most * part ? PARTS_GROUP : 0;
    Dim items = g->items, words = cum_part_words(p, s) * (s->columns ? s->columns : 1);
    if (s->division.group) items += (n / part / PARTS_GROUP + 1) * s->division.items;
    s->parts = buf_new(p, BUF_WORK, dim_add(ts, dim_mul(ts, items, 8 * words), DEVICE_ALIGN));
}
/* Registers of an element. */
static uint32_t words_of(Plan *p, const Step *s) {
    return (dtype_bytes(val_array(p->cx, s->e->out.at[0])->dtype) + 3) / 4;
}
/* Threads share the lane loop, of n iterations. */
static void share_prefixes(Plan *p, Step *s, Dim n) {
    Grid *g = &s->grid;
    bool begins = s->nkept == 1 && !param_bool(s->e, K_reverse); /* the only row, where its array does */
    s->run = prefix_run(p, s, DEVICE_ALIGN);
    while (s->run > 1 && !begins && dim_mod(p->cx->types, n, s->run) != 0) s->run /= 2;
    if (s->run == 1 && combines_slowly(s)) s->run = PREFIX_RUN;
    uint32_t most = combines_slowly(s) ? 1 : PREFIX_TURN / s->run;
    g->together = true, g->group = threads_for(times(p, n, (Dim)most * s->run), WARP);
    g->threads = g->group > WARP ? g->group : threads_for(dim_mul(p->cx->types, g->items, WARP), WARP);
    s->run_turns = 1, s->run_loop = s->lane, s->runs = atom_loop(p->ix, times(p, n, s->run));
    while (s->run_turns < most && !known_below(n, (int64_t)s->run_turns * s->run * g->group + 1)) s->run_turns *= 2;
    if (g->group == BLOCK_THREADS && s->run_turns * (s->run + 1) * words_of(p, s) <= PREFIX_FEW) g->blocks = 4;
}
/* Is a part what the threads of a block have in registers? */
static bool wait_with_runs(Plan *p, Step *s, Dim n) {
    int64_t least = (int64_t)s->grid.group * s->run_turns * s->run;
    if (!known_from(s->grid.items, 1)) return false;
    uint32_t longer = PREFIX_LONGER, words = s->run_turns * (s->run + 1) * words_of(p, s);
    while (longer > 1 && (longer * words > PREFIX_WORDS || longer * s->run_turns > MOST_RUNS ||
                          !known_from(n, ENOUGH_PARTS * longer * least / s->grid.items)))
        longer /= 2;
    if (s->grid.group != BLOCK_THREADS || !may_wait(p, s, n, longer * least, PARTS_LEFT)) return false;
    s->run_turns *= longer;
    wait_for_parts(p, s, n, longer * least, PARTS_LEFT);
    s->grid.blocks = 2 * longer * words > PREFIX_WORDS ? 2 : longer * words > PREFIX_FEW ? 3 : 4;
    return true;
}
/* A thread does whole rows, of n elements: some that are beside each other, if there are enough. */
static void choose_prefix_rows(Plan *p, Step *s, Dim n) {
    Dim beside = loop_extent(p->ix, s->lane), all = s->grid.items;
    uint32_t rows = 1;
    s->terms = combines_slowly(s) ? 1 : PREFIX_AHEAD;
    while (s->terms > 1 && known_below(n, s->terms)) s->terms /= 2;
    if (combines_slowly(s)) return;
    if (s->lane == cum_axis(p, s)) {
        if (s->nkept > 1 && known_below(n, SHORT_ROW + 1) && prefix_run(p, s, DEVICE_ALIGN) > 1)
            s->terms = s->run = (uint32_t)n, s->runs = s->kept[s->nkept - 2];
        return;
    }
    rows = prefix_run(p, s, PREFIX_ROWS);
    while (rows > 1 && (dim_mod(p->cx->types, beside, rows) != 0 || known_below(all, rows))) rows /= 2;
    if (rows > 1) share_columns(p, s, s->lane, rows);
}
/* The same with chunks of them; a block has whole items of one part, the last of which may not be there. */
static bool wait_with_chunks(Plan *p, Step *s, Dim n) {
    Grid *g = &s->grid;
    uint32_t items = BLOCK_THREADS / WARP;
    bool many =
        s->columns && known_from(g->items, 1) && known_from(n, ENOUGH_PARTS * 2 * WARP * s->terms * items / g->items);
    int64_t part = (int64_t)WARP * s->terms * (many ? 2 : 1);
    if (!s->columns || !may_wait(p, s, n, part, COLUMN_PARTS_LEFT)) return false;
    Dim runs = loop_extent(p->ix, s->runs);
    Atom *loops = arena_new(p->arena, Atom, g->nloops);
    memcpy(loops, g->loops, g->nloops * sizeof *loops);
    if (runs % items) loops[g->nloops - 1] = atom_loop(p->ix, (runs + items - 1) / items * items);
    g->loops = loops, g->items = loop_extents(p, loops, g->nloops);
    g->together = true, g->threads = BLOCK_THREADS, g->chunks = WARP;
    wait_for_parts(p, s, n, part, COLUMN_PARTS_LEFT);
    s->terms *= many ? 2 : 1, g->blocks = many ? 2 : 3;
    return true;
}
static void decide_prefixes(Plan *p, Step *s) {
    Types *ts = p->cx->types;
    Grid *g = &s->grid;
    Atom axis = cum_axis(p, s);
    Dim n = loop_extent(p->ix, axis);
    bool in_order = prim_in_order(s->e->prim, val_array(p->cx, s->e->out.at[0])->dtype);
    points(p, s);
    bool shared = s->lane == axis && !in_order && !known_below(n, SHORT_ROW + 1);
    (shared ? share_prefixes : choose_prefix_rows)(p, s, n);
    if (!g->together) g->threads = threads_for(g->items, WARP);
    if (in_order || known_from(g->items, shared ? BLOCK_ROWS : PREFIX_THREADS)) return;
    if ((shared ? wait_with_runs : wait_with_chunks)(p, s, n)) return;
    Parts by = {BLOCK_PART, BLOCK_PARTS, (Dim)s->run * s->run_turns * g->group};
    if (!shared) {
        int64_t most =
            dim_is_const(g->items) && g->items > 0 ? (PREFIX_THREADS + g->items - 1) / g->items : THREAD_PARTS;
        by = (Parts){THREAD_PART, most < THREAD_PARTS ? most : THREAD_PARTS, s->terms};
    }
    if (known_below(n, 2 * by.least)) return;
    divide(p, s, n, &by);
    s->parts = buf_new(p, BUF_WORK, dim_mul(ts, g->items, (Dim)PREFIX_PART * (s->columns ? s->columns : 1)));
    if (!shared) g->threads = threads_for(g->items, WARP);
}
static void decide_dot(Plan *p, Step *s) {
    dot_device_schedule(p, s);
    s->grid = (Grid){.items = dot_device_units(p, s),
                     .together = true,
                     .threads = BLOCK_THREADS,
                     .group = BLOCK_THREADS,
                     .blocks = s->dot->device->blocks};
    if (s->parts) s->division.items = dot_blocks(p, dot_device_elements(p, s->dot->device), BLOCK_THREADS);
    s->grid.once = dim_is_const(s->grid.items) && s->grid.items <= MOST_BLOCKS;
}
void threads_decide(Plan *p, Step *s) {
    s->widths = (Widths){1, 0};
    s->units = s->block = 1;
    switch (s->kind) {
    case STEP_LOOPS: decide_loops(p, s); break;
    case STEP_DOT: decide_dot(p, s); break;
    case STEP_SORT: sort_decide(p, s->sort, s->kept, s->nkept); break;
    case STEP_CUM:
        s->lane = s->kept[s->nkept - 1];
        decide_prefixes(p, s);
        break;
    case STEP_SCATTER:
        scatter_decide(p, s);
        if (!s->grid.together) s->grid.threads = threads_for(s->grid.items, WARP);
        s->claims.grid.threads = threads_for(s->claims.grid.items, WARP);
        if (s->sort) s->sort->part_grid.threads = threads_for(s->sort->part_grid.items, WARP);
        break;
    default: break;
    }
}
uint32_t grid_at_once(const Grid *g) {
    if (!g->together) return g->threads;
    if (g->cluster) return 1;
    return g->threads / (g->chunks ? g->chunks : g->group);
}
Dim grid_blocks(Plan *p, const Grid *g) {
    Types *ts = p->cx->types;
    Dim n = dim_floordiv(ts, dim_add(ts, g->items, grid_at_once(g) - 1), grid_at_once(g));
    if (g->cluster) return dim_mul(ts, n, g->cluster);
    return dim_min(ts, n, MOST_BLOCKS);
}
