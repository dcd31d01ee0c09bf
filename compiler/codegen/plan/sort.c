#include "sort.h"
#include "../cost.h"
#include "threads.h"

static uint32_t tile_for(Dim n, uint32_t least) {
    uint32_t tile = least;
    while (tile < SORT_TILE && (!dim_is_const(n) || tile < n)) tile *= 2;
    return tile;
}
Dim sort_tiles(Plan *p, const Sort *so) {
    return dim_floordiv(p->cx->types, dim_add(p->cx->types, so->n, so->tile - 1), so->tile);
}
static Dtype key_for(uint32_t bits) { return bits <= 8 ? DT_u8 : bits <= 16 ? DT_u16 : bits <= 32 ? DT_u32 : DT_u64; }

/* ---- merging or by digits: a kernel takes as long as its memory or its instructions take, whichever is more; costs
   are in bytes that memory moves meanwhile */
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t place_bytes(const Sort *so) { return so->alone ? 0 : dtype_bytes(DT_u32); }
static double merging_cost(const Sort *so, double elements, int64_t n) {
    int64_t key = dtype_bytes(so->key), place = place_bytes(so), turns = 0;
    while ((int64_t)so->tile << turns < n) turns++;
    int64_t sorted = so->alone && key < 8 ? SORT_SORTED_ALONE : SORT_SORTED;
    double each = (double)(larger(2 * key + place, sorted) + turns * larger(2 * (key + place), SORT_MERGED));
    return elements * each + (double)(1 + turns) * SORT_LAUNCH;
}
static double digits_cost(const Sort *so, double elements) {
    int64_t key = dtype_bytes(so->key), place = place_bytes(so);
    double each = (double)so->passes * (double)larger(key + 2 * (key + place), SORT_MOVED);
    return elements * each + (double)(3 * so->passes) * SORT_LAUNCH;
}
static bool digits_pay(const Sort *so, int64_t n) {
    double elements = (double)n * (dim_is_const(so->rows) ? (double)so->rows : 1);
    return n > so->tile && digits_cost(so, elements) < merging_cost(so, elements, n);
}
static int64_t by_digits_from(const Sort *so) {
    if (dim_is_const(so->n)) return digits_pay(so, so->n) ? so->n : 0;
    for (int64_t n = so->tile; n < UINT32_MAX; n *= 2)
        if (digits_pay(so, n)) return n;
    return 0;
}

/* ---- memory */
static void plan_digits(Plan *p, Sort *so, Span span) {
    enum { DIGITS = 1 << SORT_DIGIT };
    Types *ts = p->cx->types;
    Dim n = dim_mul(ts, so->rows, DIGITS), tiles = sort_tiles(p, so);
    bool few = dim_is_const(tiles) && tiles <= SORT_TILES;
    uint32_t threads = few ? BLOCK_THREADS : COUNTING_THREADS;
    so->digits = (Grid){.items = dim_mul(ts, so->rows, DIGITS * dtype_bytes(DT_u32) / SECTOR_BYTES),
                        .threads = threads,
                        .group = threads,
                        .together = true};
    so->counts = buf_new(p, BUF_WORK, dim_mul(ts, dim_mul(ts, n, tiles), dtype_bytes(DT_u32)));
    so->sums = buf_new(p, BUF_WORK, dim_mul(ts, n, dtype_bytes(DT_u32)));
    so->shift = val_new(p->cx, type_of(ts, DT_i64, 0, NULL), span);
}
/* The memory that is needed if rows may be longer than a tile: each pass goes from one to the other. */
static void plan_passes(Plan *p, Sort *so, Span span) {
    Types *ts = p->cx->types;
    bool merges = !so->by_digits || !dim_is_const(so->n), several = merges || so->passes > 1;
    Dim all = dim_mul(ts, so->rows, so->n), keys = dim_mul(ts, all, dtype_bytes(so->key));
    if (merges || so->passes > 2) so->keys[0] = buf_new(p, BUF_WORK, keys);
    if (several) so->keys[1] = buf_new(p, BUF_WORK, keys);
    if (several && !so->alone) so->places[1] = buf_new(p, BUF_WORK, dim_mul(ts, all, dtype_bytes(DT_u32)));
    for (uint32_t i = 0; i < 2; i++) so->from[i] = buf_new(p, BUF_SLOT, 0), so->to[i] = buf_new(p, BUF_SLOT, 0);
    so->run = val_new(p->cx, type_of(ts, DT_i64, 0, NULL), span);
    if (so->by_digits) plan_digits(p, so, span);
    plan_grow(p);
}
/* Places are numbers of 32 bits. */
static void check_length(Plan *p, Dim n, const Eqn *e) {
    if (!dim_is_const(n) || n <= UINT32_MAX) return;
    diag(p->cx->diags, e->span, "%s: %lld elements are too many to be sorted on a GPU", prim_name[e->prim],
         (long long)n);
    p->failed = true;
}
static bool sorts_words(const Sort *so) { return so->alone && dtype_bytes(so->key) <= dtype_bytes(DT_u32); }
/* Elements of a thread; of short rows as many as leave a warp for each. */
static uint32_t each_of(const Sort *so) {
    uint32_t n = SORT_EACH;
    if (so->tile > SORT_TILE) return SORT_EACH_LONG;
    while (sorts_words(so) && so->inside && n < SORT_EACH_ALONE && n * WARP < so->tile) n *= 2;
    return n;
}
/* Long rows of short keys alone: larger tiles, whose digits are more neighbours. */
static bool has_large_tiles(const Sort *so) {
    return sorts_words(so) && so->by_digits && dim_is_const(so->n) && so->n >= SORT_LONG;
}
Sort *sort_new(Plan *p, Dim rows, Dim n, uint32_t bits, SortGives gives, const Eqn *e) {
    Types *ts = p->cx->types;
    Sort *so = arena_new(p->arena, Sort, 1);
    bool sorts = prim_lower[e->prim] == LOWER_SORT;
    *so = (Sort){.rows = rows, .n = n, .key = key_for(bits), .tile = tile_for(n, sorts ? SORT_EACH : SORT_LEAST)};
    so->kept = gives != SORT_PLACES, so->alone = gives == SORT_KEYS;
    so->passes = (bits + SORT_DIGIT - 1) / SORT_DIGIT;
    so->by_digits = by_digits_from(so);
    if (has_large_tiles(so)) so->tile = SORT_TILE / SORT_EACH * SORT_EACH_LONG;
    check_length(p, n, e);
    Dim all = dim_mul(ts, rows, n);
    so->inside = sorts && dim_is_const(n) && n <= so->tile;
    if (so->inside) return so;
    if (!so->alone) so->places[0] = buf_new(p, BUF_WORK, dim_mul(ts, all, dtype_bytes(DT_u32)));
    if (!dim_is_const(n) || n > so->tile) plan_passes(p, so, e->span);
    if (so->kept && !so->keys[0]) so->keys[0] = buf_new(p, BUF_WORK, dim_mul(ts, all, dtype_bytes(so->key)));
    return so;
}
Sort *sort_in_order(Plan *p, Dim n, uint32_t bits, const Eqn *e) {
    Sort *so = arena_new(p->arena, Sort, 1);
    *so = (Sort){.rows = 1, .n = n, .key = key_for(bits), .given = true, .tile = SORT_LEAST};
    check_length(p, n, e);
    return so;
}
static void result_inside(Plan *p, Step *s) {
    Info *info = plan_info(p, s->e->out.at[0]);
    info->class = VAL_MEMBER, info->e = s->e, info->step = s->number;
    push(p->arena, &s->members, s->e->out.at[0]);
}
void plan_sort(Plan *p, Body *b, const Eqn *e) {
    const ArrayType *t = val_array(p->cx, e->in.at[0]);
    Step *s = step_new(p, b, STEP_SORT, e, t);
    Dim rows = 1, n = t->dims[t->rank - 1];
    bool alone = e->prim == P_sort_keys;
    for (uint32_t d = 0; d + 1 < t->rank; d++) rows = dim_mul(p->cx->types, rows, t->dims[d]);
    step_evaluates(p, b, s, e->in.at[0]);
    uint32_t bits = (uint32_t)param_int(e, K_bit_width, 0);
    Sort *so = s->sort = sort_new(p, rows, n, bits, alone ? SORT_KEYS : SORT_PLACES, e);
    so->order = (((int64_t)1 << param_int(e, K_exponent_bits, 0)) - 1) << param_int(e, K_mantissa_bits, 0);
    if (so->inside) {
        result_inside(p, s);
        return;
    }
    Buf *buf = alone ? so->keys[0] : so->places[0];
    step_store(p, s, e->in.at[0], buf, 0, NULL, DT_none);
    step_result(p, s, 0, buf);
}
bool sort_takes_members(const Step *s) {
    return s->kind == STEP_LOOPS || s->kind == STEP_DOT || (s->kind == STEP_SORT && s->sort->inside);
}
void sort_decide(Plan *p, Sort *so, const Atom *loops, uint32_t n) {
    Types *ts = p->cx->types;
    uint32_t group = so->tile / each_of(so), least = so->inside ? SORT_SHORT_ROWS : SORT_LEAST;
    uint32_t threads = group < least ? least : group;
    so->elements = (Grid){.loops = loops, .nloops = n, .items = dim_mul(ts, so->rows, so->n)};
    so->grid = (Grid){.items = dim_mul(ts, so->rows, sort_tiles(p, so)), .together = true};
    so->grid.threads = threads, so->grid.group = so->inside ? group : threads;
    if (so->by_digits) so->grid.blocks = SORT_BLOCKS;
    if (so->inside && sorts_words(so)) so->grid.blocks = SORT_THREADS / threads;
}
