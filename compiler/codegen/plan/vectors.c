#include "vectors.h"
#include "../cost.h"
#include "dot.h"
#include "places.h"
#include "scatter.h"
#include "sums.h"
#include <assert.h>

/* A remainder is done by one narrower masked vector, or element by element if the target has no suitable masks. */

static uint32_t pow2_floor(uint64_t n) {
    uint32_t p = 1;
    while ((uint64_t)p * 2 <= n && p < MAX_LANES) p *= 2;
    return p;
}
/* Elements of less than 4 bytes are done like those of 4, as which most are computed. */
static uint32_t lanes_of(const Plan *p, uint32_t bytes) { return p->target->vector_bytes / (bytes < 4 ? 4 : bytes); }
uint32_t vector_of(const Plan *p, const Step *s) { return lanes_of(p, s->widest ? s->widest : 4); }
/* Are there several stores, whose lanes lie apart, of what costs little? With a mask they would be branches for each
   lane. */
static bool stores_apart(const Step *s) { return s->apart && s->stores.n > 1 && s->cost <= LONG_COST; }
bool masks_words(const Plan *p, const Step *s) { return p->target->word_masks && s->narrowest >= 4; }
static bool has_masks(const Plan *p, const Step *s) {
    return p->target->masks || (masks_words(p, s) && !stores_apart(s));
}

/* ---- loops */
bool stores_floats(const Plan *p, const Step *s) {
    each(const Store, st, s->stores)
        if (dtype_info[val_array(p->cx, st->v)->dtype].kind != DK_FLOAT) return false;
    return true;
}
static bool stores_terms(const Step *s) {
    each(const Store, st, s->stores)
        if (!st->row) return true;
    return false;
}
static Dim bytes_of_terms(const Plan *p, const Step *s) {
    Dim bytes = s->widest;
    for (uint32_t i = 0; i < s->nkept; i++) bytes = dim_mul(p->cx->types, bytes, loop_extent(p->ix, s->kept[i]));
    for (uint32_t i = 0; i < s->nred; i++) bytes = dim_mul(p->cx->types, bytes, loop_extent(p->ix, s->red[i]));
    return bytes;
}
static bool sums_far(const Plan *p, const Step *s) {
    Dim bytes = bytes_of_terms(p, s);
    return dim_is_const(bytes) && bytes >= FAR_BYTES;
}
/* Are the terms of each sum far apart, but those of neighbouring sums beside each other? The more of them are read in a
   row, the faster memory is: this counts if little is computed with them, or if they are read and written several
   times. */
static bool sums_columns(const Plan *p, const Step *s, uint32_t w) {
    Dim n = loop_extent(p->ix, s->lane);
    if (s->kind != STEP_LOOPS || !s->nred || s->red[s->nred - 1] == s->lane || s->apart) return false;
    if (!dim_is_const(n) || n < w) return false;
    return (s->levels <= 2 && s->cost <= COLUMN_COST) || (s->levels > 1 && stores_terms(s) && sums_far(p, s));
}
/* Lanes that do not exceed the columns, if that leaves `least`: two passes over a row's halves read every line
   twice. */
static uint32_t lanes_within(const Plan *p, const Step *s, uint32_t w, uint32_t least) {
    Dim n = loop_extent(p->ix, s->lane);
    while (dim_is_const(n) && n < w && w > least) w /= 2;
    return w;
}
static uint32_t column_lanes(const Plan *p, const Step *s, uint32_t one) {
    uint32_t w =
        COLUMN_VECTORS * one < MAX_LANES / 2 ? COLUMN_VECTORS * one : MAX_LANES / 2; /* strides take twice that */
    return lanes_within(p, s, w, VECTORS * one);
}
/* Can accumulators of all members be in memory? */
static bool accumulators_lie(Plan *p, const Step *s) {
    each(const Val, v, s->members) {
        const Eqn *e = plan_info(p, *v)->e;
        if (!eqn_reduces(e)) continue;
        const DtypeInfo *d = &dtype_info[val_array(p->cx, e->in.at[0])->dtype];
        if (d->bits < 32 || d->kind == DK_COMPLEX || e->prim == P_argmax || e->prim == P_argmin) return false;
    }
    return true;
}
/* Does each of the terms lie at an address of its own? */
typedef struct {
    Plan *p;
    const Step *s;
    bool found;
} TermReads;
static void saw_read(void *user, Val v, const Ix *index, Ix address) {
    TermReads *t = user;
    t->found |= ix_uses(t->p->ix, address, t->s->lane) && ix_uses(t->p->ix, address, t->s->red[0]);
}
static bool reads_terms(Plan *p, Step *s) {
    TermReads t = {p, s, false};
    step_reads(p, s, saw_read, &t);
    return t.found;
}
/* Of accumulators and of wide forms: kernels/reduce.c says where they are. */
static Dim lines_bytes(const Step *s, Dim columns) {
    return (columns + MAX_LANES) * 8 * (1 + WIDE_VALUES) * s->nreductions;
}
static bool long_terms(const Step *s) { return s->cost - s->row_cost > COLUMN_COST; }
/* Sums of columns of a large array: a few rows of terms at a time, from end to end, so that memory is read in order;
   their accumulators are in memory. Not if all columns are in registers at once. If the number of rows is not known,
   only where bodies are long, so that loading and storing the accumulators costs little. Strips of columns are no
   faster even where all rows of one would fit the nearer caches and are read again: rows of 4096 bytes have few places
   there. Softmax of 4096 columns of 4096 takes 67 ms so, not 154; sums of exp of 1024 columns of 2048 2.8, not 7.0. */
static bool sums_lines(Plan *p, Step *s) {
    Dim n = loop_extent(p->ix, s->lane), bytes = bytes_of_terms(p, s);
    bool plain = s->nred == 1 && s->nkept == 1 && s->kept[0] == s->lane && s->levels > 1;
    if (s->kind != STEP_LOOPS || !plain || s->apart || s->edge_loop || s->unrolled || s->written_out || s->parts)
        return false;
    uint32_t w = column_lanes(p, s, vector_of(p, s));
    if (!dim_is_const(n) || n == w || n < LINE_LEAST) return false;
    Dim least = n % w || long_terms(s) ? FAR_BYTES : LINE_BYTES;
    bool many = dim_is_const(bytes) ? bytes >= least && lines_bytes(s, n) <= bytes / LINE_MEMORY
                                    : long_terms(s) && n <= LINE_CHUNK;
    return many && accumulators_lie(p, s) && reads_terms(p, s);
}
/* Those of a line: few that the last vectors have and its columns do not. */
static uint32_t line_lanes(const Plan *p, const Step *s, uint32_t one) {
    Dim n = loop_extent(p->ix, s->lane);
    uint32_t vectors = s->cost > LONG_COST ? VECTORS / 2 : s->cost > COLUMN_COST ? VECTORS : LINE_VECTORS;
    uint32_t w = lanes_within(p, s, vectors * one, one);
    while (w > one && n % w && pow2_floor((uint64_t)(n % w) * 2 - 1) - n % w >= one) w /= 2;
    return w;
}
/* The cache lines that one iteration reads and writes, by their place in the first cache. */
typedef struct {
    const Buf *b;
    uint64_t at;
} CacheLine;
typedef struct {
    const Indices *ix;
    CacheLine lines[CACHE_PAGE / CACHE_LINE][CACHE_WAYS];
    uint32_t n[CACHE_PAGE / CACHE_LINE];
    bool full; /* some place */
} CacheLines;
static void add_line(void *user, const ArrayPlace *a) {
    CacheLines *l = user;
    Dim first = ix_at(l->ix, a->address)->c;
    uint64_t at = dim_is_const(first) ? (uint64_t)first * dtype_bytes(a->dtype) / CACHE_LINE : 0;
    uint64_t place = at % (CACHE_PAGE / CACHE_LINE);
    CacheLine *line = l->lines[place], *end = line + l->n[place];
    while (line < end && (line->b != a->buf || line->at != at)) line++;
    if (line == end && !l->full) *line = (CacheLine){a->buf, at}, l->n[place]++;
    l->full |= l->n[place] == CACHE_WAYS;
}
static bool fill_a_place(Plan *p, Step *s) {
    CacheLines l = {.ix = p->ix};
    step_places(p, s, false, add_line, &l);
    return l.full;
}
/* One vector of results where registers hold at least half of them, but less of w lanes: 64 rows of 1000, by radix
   10, are transformed 1.15 times as fast, those with radix 16 are not. But whole cache lines where many have one
   place in the cache: what is left of them would be gone before the next iteration. A transform of 512 × 512 takes
   1.0 ms so, not 1.3. */
static uint32_t lanes_held(Plan *p, Step *s, uint32_t w) {
    uint32_t bytes = 0, narrowest = UINT32_MAX, held = HELD_TIMES * p->target->vector_bytes * p->target->registers;
    each(Store, st, s->stores) {
        Dtype d = st->as ? st->as : val_array(p->cx, st->v)->dtype;
        uint32_t part = dtype_bytes(d) / (dtype_info[d].kind == DK_COMPLEX ? 2 : 1);
        bytes += dtype_bytes(d);
        if (part < narrowest) narrowest = part;
    }
    uint32_t least = lanes_of(p, narrowest);
    return bytes * w >= held && bytes * least < held && w > least && !fill_a_place(p, s) ? least : w;
}
static uint32_t lanes_for(Plan *p, Step *s) {
    uint32_t one = vector_of(p, s), w = VECTORS * one;
    if (s->tile || s->jam) return one;
    if (s->carried) return s->carried > 2 * LOOP_VALUES ? w / 4 : s->carried > LOOP_VALUES || s->crowded ? w / 2 : w;
    if (s->lines) return line_lanes(p, s, one);
    uint32_t columns = column_lanes(p, s, one);
    if (sums_columns(p, s, columns)) return columns;
    return s->stores.n >= (s->cost > LONG_COST ? LONG_STORES : MANY_STORES) ? lanes_held(p, s, w / 2) : w;
}
/* Extents of a few vectors, on targets whose masks are words that take instructions to make and are slow to store by:
   at most one vector has a mask. `one`: its lanes; `worth`: a mask costs less than several elements one by one. */
static Widths widths_short(Dim n, uint32_t one, bool worth, bool costly) {
    uint32_t w = n < one ? one / 2 : one;
    if (n % w == 0) return (Widths){w, 0};
    if (one > 2 && n % (one / 2) == 0) return costly && n > one ? (Widths){one, one / 2} : (Widths){one / 2, 0};
    bool masked = worth || n % w == w - 1;
    return (Widths){w, masked ? pow2_floor((uint64_t)(n % w) * 2 - 1) : 1};
}
/* Sums have masks for what they read alone, and several vectors at a time do more for them. */
static bool short_of_masks(const Plan *p, const Step *s, Dim n, uint32_t w) {
    uint32_t one = vector_of(p, s);
    bool slow = has_masks(p, s) && !p->target->masks && !s->tile && w > one;
    if (!slow || !dim_is_const(n) || n % w == 0 || pow2_floor((uint64_t)n) == n) return false;
    if (s->reduces && (!stores_terms(s) || n < w)) return n > one && n < w;
    return n > one / 2 && (n < w || (n < SHORT_EXTENT && pow2_floor((uint64_t)(n % w) * 2 - 1) > one));
}
/* `costly`: one vector at a time would wait for long chains of operations. */
static Widths widths_known(Dim n, uint32_t w, bool square, bool masks, bool costly) {
    if (n % w == 0) return (Widths){w, 0};
    if (n > w) {
        if (costly && masks && !square && pow2_floor((uint64_t)(n % w)) == n % w) return (Widths){w, (uint32_t)(n % w)};
        uint32_t least = costly && masks && n >= COSTLY_TURNS * w ? w / 2 : w / 4;
        for (uint32_t v = w; v >= least && v && !square; v /= 2)
            if (n % v == 0) return (Widths){v, 0};
        uint32_t rest = pow2_floor((uint64_t)(n % w) * 2 - 1);
        return (Widths){w, masks ? rest : 1};
    }
    uint32_t p = pow2_floor((uint64_t)(n > 0 ? n : 1));
    if (p == n) return (Widths){p, 0};
    return masks ? (Widths){0, p * 2} : (Widths){p, 1};
}
static Widths widths(Plan *p, Step *s) {
    Dim n = loop_extent(p->ix, s->lane);
    uint32_t w = lanes_for(p, s);
    bool masks = has_masks(p, s);
    bool costly = s->cost >= SPILL_COST;
    bool worth = s->reduces || (costly && stores_floats(p, s));
    if (short_of_masks(p, s, n, w)) return widths_short(n, vector_of(p, s), worth, costly);
    if (dim_is_const(n)) return widths_known(n, w, s->tile, masks, costly);
    if (dim_mod(p->cx->types, n, w) == 0) return (Widths){w, 0};
    return (Widths){w, masks ? (w < WIDEST_TAIL ? w : WIDEST_TAIL) : 1};
}
static Dim blocks_of(Plan *p, Atom loop, uint32_t block) {
    Types *ts = p->cx->types;
    return block == 1 ? loop_extent(p->ix, loop)
                      : dim_floordiv(ts, dim_add(ts, loop_extent(p->ix, loop), block - 1), block);
}
static void units_of(Plan *p, Step *s, bool blocked, uint32_t block) {
    assert(!blocked || s->kept[0] != s->lane || !s->widths.main ||
           block % s->widths.main == 0); /* units overlap else */
    s->block = blocked ? block : 1;
    s->units = s->nkept ? blocks_of(p, s->kept[0], s->block) : 1;
}
void cut_sums(Plan *p, Step *s, Dim outermost, uint32_t lanes) {
    Types *ts = p->cx->types;
    Dim turns[STEP_NEST], all = 1;
    Cuts *c = &s->cuts;
    bool lane_reduced = s->nred && s->red[s->nred - 1] == s->lane;
    int64_t most = lane_reduced ? SHARED_TURNS : OWN_TURNS;
    if (!s->reduces || s->written_out) return;
    for (uint32_t i = 0; i < s->nred; i++) {
        turns[i] = i ? loop_extent(p->ix, s->red[i]) : outermost;
        uint32_t w = s->red[i] == s->lane ? lanes : 1;
        turns[i] = dim_floordiv(ts, dim_add(ts, turns[i], w - 1), w);
        all = dim_mul(ts, all, turns[i]);
    }
    c->block = arena_new(p->arena, Dim, s->nred + 1);
    sum_blocks(ts, turns, s->nred, most, c->block);
    while (c->n < s->nred && c->block[c->n]) c->n++;
    c->several = dim_is_const(all) && all > most;
}
/* The columns of a unit: long runs of memory, but work for several threads, and for more of them where much is computed
   with each element. */
static void units_of_lines(Plan *p, Step *s) {
    Dim n = loop_extent(p->ix, s->lane), w = LINE_VECTORS * vector_of(p, s), block = n < 2 * LOOP_BLOCK ? n : n / 2;
    if (long_terms(s)) block = n / LINE_UNITS;
    if (block > LINE_COLUMNS) block = LINE_COLUMNS;
    assert(!s->tile && !s->jam);
    units_of(p, s, true, (uint32_t)((block + w - 1) / w * w));
}
static uint32_t strip_of(Plan *p, const Step *s) {
    uint32_t strip = STRIP_BYTES / s->widest;
    Dim n = loop_extent(p->ix, s->lane);
    return dim_is_const(n) && n <= strip ? 0 : strip;
}
static void decide_loops(Plan *p, Step *s) {
    if (s->lane && sums_lines(p, s)) s->lines = buf_new(p, BUF_WORK, lines_bytes(s, loop_extent(p->ix, s->lane)));
    if (s->lane) s->widths = s->nends ? (Widths){VECTORS * vector_of(p, s), 0} : widths(p, s);
    if (s->tile) s->rows = lanes_of(p, s->widest), s->strip = strip_of(p, s);
    if (s->jam) s->turns = JAM;
    Dim outermost = !s->nred ? 1 : s->parts ? (Dim)s->block : loop_extent(p->ix, s->red[0]);
    bool block = s->parts && s->nred == 1; /* a part of a full reduction is itself one */
    if (!block) cut_sums(p, s, outermost, s->widths.main ? s->widths.main : s->widths.tail);
    if (s->parts)
        s->units = step_parts(p, s);
    else if (s->lines)
        units_of_lines(p, s);
    else if (s->nred && s->nkept && s->kept[0] == s->lane && s->widths.main)
        units_of(p, s, true, s->widths.main); /* 8192 × 64 exp in 0.30 ms by two threads, not 0.58 */
    else
        units_of(p, s, s->nkept && (s->kept[0] == s->lane || s->kept[0] == s->tile), LOOP_BLOCK);
}
/* Several positions at once, in their order, whose windows are single elements. */
static void positions_at_once(Plan *p, Step *s) {
    const Window *w = scatter_window(p, s);
    for (uint32_t i = 0; i < s->nkept; i++)
        if (!scatter_moves(p, w, s->kept[i])) return;
    Dim n = s->nred ? loop_extent(p->ix, s->red[s->nred - 1]) : 0;
    bool several = !dim_is_const(n) || n >= POSITIONS;
    if (several && s->cost <= LONG_COST) s->jam = s->red[s->nred - 1], s->turns = POSITIONS;
}
/* The rest of a row is added one by one where masks are words: what was stored by a mask cannot be loaded again before
   it is in the cache, as the next update of the same row does. 30,000 rows of 3 in 45 us, not 98. */
static Widths widths_scattered(Plan *p, Step *s) {
    Widths w = widths(p, s);
    Dim n = loop_extent(p->ix, s->lane);
    if (w.tail <= 1 || p->target->masks || !dim_is_const(n)) return w;
    return (Widths){w.main ? w.main : pow2_floor((uint64_t)n), 1};
}
static void decide_scatter(Plan *p, Step *s) {
    if (s->lane) s->widths = widths_scattered(p, s);
    positions_at_once(p, s);
    if (s->nkept && scatter_overlaps(p, s, s->kept[0]))
        s->block = 0, s->units = 1; /* all windows */
    else
        units_of(p, s, s->nkept && s->kept[0] == s->lane, WINDOW_BLOCK);
}

/* ---- prefixes: along the axis if that is the innermost loop; otherwise one for each lane */
/* One long row, which threads share. The totals of parts of logarithms of sums would take as long as their prefixes;
   the product of a part may overflow where no prefix does; the sum only of numbers beside the largest one. */
static void prefixes_in_parts(Plan *p, Step *s, Dim n) {
    Types *ts = p->cx->types;
    uint32_t cost = s->cost + PREFIX_COST;
    Prim by = prim_combiner[s->e->prim];
    DtypeKind kind = dtype_info[val_array(p->cx, s->e->out.at[0])->dtype].kind;
    if (kind == DK_COMPLEX || by == P_none || (by == P_mul && kind == DK_FLOAT)) return;
    if (dim_is_const(n) && n < 4 * AWAKE_COST / cost) return;
    Dim least = PREFIX_PART_COST / cost;
    least = least > PREFIX_PART_STEP ? least - least % PREFIX_PART_STEP : PREFIX_PART_STEP;
    Dim length = dim_mul(ts, least, dim_add(ts, dim_floordiv(ts, n, PREFIX_PARTS * least), 1));
    s->division.length = length, s->part_cost = dim_mul(ts, length, cost);
    s->units = dim_floordiv(ts, dim_add(ts, n, dim_sub(ts, length, 1)), length);
    s->parts = buf_new(p, BUF_WORK, dim_mul(ts, dim_add(ts, s->units, 1), PREFIX_PART));
}
static void decide_cumulative(Plan *p, Step *s) {
    Dtype d = val_array(p->cx, s->e->out.at[0])->dtype;
    Atom axis = cum_axis(p, s);
    Dim extent = loop_extent(p->ix, axis);
    uint32_t w = PREFIX_BYTES / (dtype_bytes(d) < 4 ? 4 : dtype_bytes(d)), first = 0;
    s->lane = s->kept[s->nkept - 1];
    s->widths = (Widths){w, 1};
    if (s->lane == axis) {
        bool in_order = prim_in_order(s->e->prim, d), masks = has_masks(p, s) && !in_order;
        if (in_order) w = 1;
        if (dim_is_const(extent) && extent % w == 1)
            masks = false; /* a constant mask of one lane: LLVM 22 stores too much */
        bool slow = !p->target->masks && s->e->prim != P_cumlogsumexp;
        if (slow && dim_is_const(extent) && extent % w && extent % w <= w / PREFIX_REST) masks = false;
        s->widths = (Widths){w, masks ? w : 1};
    }
    while (first < s->nkept && s->kept[first] == axis) first++;
    s->units = first < s->nkept ? loop_extent(p->ix, s->kept[first]) : 1;
    if (s->nkept == 1 && w > 1) prefixes_in_parts(p, s, extent);
}

void vectors_decide(Plan *p, Step *s) {
    switch (s->kind) {
    case STEP_LOOPS: decide_loops(p, s); break;
    case STEP_SCATTER: decide_scatter(p, s); break;
    case STEP_CUM: decide_cumulative(p, s); break;
    case STEP_DOT:
        dot_schedule(p, s);
        s->units = dot_units(p, s->dot);
        break;
    default: break;
    }
}
