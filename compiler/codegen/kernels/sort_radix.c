#include "../cost.h"
#include "atomic.h"
#include "sort_device.h"
#include "threads.h"
#include <assert.h>

/* Long rows are sorted by digits of their keys, the lowest first. In a pass one kernel counts how many elements of each
   tile have each digit; a second one adds up what the tiles before have; a third one moves the elements, those of one
   digit in their order. The first pass evaluates the keys, the last one need not store them.

   Before it moves its elements a tile sorts them in shared memory. A warp has neighbouring elements, 32 at a time; its
   lanes with the same digit find each other by votes. So nothing depends on the order of threads. */

enum { DIGITS = 1 << SORT_DIGIT, COUNT_BYTES = 4, RANK_BITS = 16 };
typedef struct {
    Sorting o;
    bool first; /* pass */
    uint32_t warps;
    V lane, warp;             /* i32 */
    V digit, own;             /* i32: each thread has a digit; i1: no thread before it has the same */
    V counts;                 /* shared memory, [warps, DIGITS]: elements of the warp with the digit */
    Keyed x[SORT_EACH_LONG];  /* elements of the thread … */
    V digits[SORT_EACH_LONG]; /* … i32: their digits … */
    V rank[SORT_EACH_LONG];   /* … and, below a digit, how many of the warp are before with the same */
} Radix;

static V i32(const Radix *r, int64_t n) { return sort_i32(&r->o, n); }
static void store_word(const Radix *r, V word, V words, V i) {
    em_store(r->o.e, word, em_gep(r->o.e, words, i, r->o.e->i32), COUNT_BYTES);
}
static Radix radix_of(Kernel *k, V item, bool first) {
    Emit *e = k->e;
    Radix r = {.o = sorting_of(k, item), .first = first, .warps = k->block.threads / WARP};
    V warp = i32(&r, WARP), digits = i32(&r, DIGITS);
    assert(k->block.threads >= DIGITS);
    r.lane = em_bin(e, "llvm.urem", r.o.thread, warp), r.warp = em_bin(e, "llvm.udiv", r.o.thread, warp);
    r.digit = em_bin(e, "llvm.urem", r.o.thread, digits), r.own = em_less(e, r.o.thread, digits);
    return r;
}
/* The digit of this pass. */
static V digit_of(const Radix *r, V key) {
    const Sorting *o = &r->o;
    Emit *e = o->e;
    V shift = frame_scalar(o->k->frame, o->so->shift);
    uint32_t bytes = dtype_bytes(o->so->key);
    key = sort_rank(o, key);
    if (bytes < 8) key = bytes == 4 ? key : em_cast(e, "llvm.zext", e->i32, key), shift = sort_narrowed(o, shift);
    V low = em_both(e, em_bin(e, "llvm.lshr", key, shift), em_int(e, mlirValueGetType(key), DIGITS - 1));
    return bytes < 8 ? low : sort_narrowed(o, low);
}

/* ---- elements and their ranks */
static V place_of(const Radix *r, uint32_t i) {
    Emit *e = r->o.e;
    V first = em_mul(e, r->warp, i32(r, (int64_t)WARP * r->o.each));
    return em_add(e, em_add(e, first, i32(r, (int64_t)WARP * i)), r->lane);
}
/* What is behind the row comes last. */
static void read_keys(Radix *r) {
    const Sorting *o = &r->o;
    Emit *e = o->e;
    for (uint32_t i = 0; i < o->each; i++) {
        V at = place_of(r, i);
        if (r->first) {
            r->x[i] = sort_given(o, at);
        } else {
            V inside = em_least(e, at, em_sub(e, o->count, i32(r, 1)));
            V from = em_add(e, em_add(e, o->row, o->first), sort_widened(o, inside));
            V key = sort_key_at(o, kernel_buffer(o->k, o->so->from[0]), from);
            r->x[i].key = key;
            r->x[i].place = from; /* where it is */
        }
        V inside = em_less(e, at, o->count);
        r->digits[i] = em_select(e, inside, digit_of(r, r->x[i].key), i32(r, DIGITS - 1));
    }
}
static void clear_counts(const Radix *r) {
    uint32_t threads = r->o.k->block.threads, each = r->warps * DIGITS / threads;
    for (uint32_t i = 0; i < each; i++)
        store_word(r, i32(r, 0), r->counts, em_add(r->o.e, r->o.thread, i32(r, (int64_t)i * threads)));
    threads_meet(r->o.k);
}
/* A bit for each lane of the warp with this digit. */
static V lanes_with(const Radix *r, V digit) {
    Emit *e = r->o.e;
    V lanes = i32(r, -1);
    for (uint32_t bit = 0; bit < SORT_DIGIT; bit++) {
        V set = em_cmpi(e, "ne", em_both(e, digit, i32(r, 1 << bit)), i32(r, 0));
        V votes = threads_intrinsic(e, "llvm.nvvm.vote.ballot.sync", e->i32, 2, (V[]){i32(r, -1), set});
        V others = em_select(e, set, i32(r, 0), i32(r, -1));
        lanes = em_both(e, lanes, em_bin(e, "llvm.xor", votes, others));
    }
    return lanes;
}
static V count_at(const Radix *r, V warp, V digit) {
    return em_add(r->o.e, em_mul(r->o.e, warp, i32(r, DIGITS)), digit);
}
static void rank_elements(Radix *r) {
    Emit *e = r->o.e;
    V before = em_sub(e, em_bin(e, "llvm.shl", i32(r, 1), r->lane), i32(r, 1));
    clear_counts(r);
    for (uint32_t i = 0; i < r->o.each; i++) {
        V lanes = lanes_with(r, r->digits[i]), earlier = em_un(e, "llvm.intr.ctpop", em_both(e, lanes, before));
        V at = count_at(r, r->warp, r->digits[i]), n = sort_word_at(&r->o, r->counts, at);
        threads_meet_in_warp(r->o.k);
        If first = em_if(e, em_cmpi(e, "eq", earlier, i32(r, 0)));
        store_word(r, em_add(e, n, em_un(e, "llvm.intr.ctpop", lanes)), r->counts, at);
        em_else(e, &first, 0, NULL);
        em_if_end(e, &first, NULL, NULL);
        threads_meet_in_warp(r->o.k);
        V digit = em_bin(e, "llvm.shl", r->digits[i], i32(r, RANK_BITS)); /* one register, as they are few */
        r->rank[i] = em_bin(e, "llvm.or", em_add(e, n, earlier), digit);
    }
    threads_meet(r->o.k);
}

/* ---- counts: of the row's tiles, [rows, tiles, DIGITS]; of whole rows, [rows, DIGITS] */
static V row_digit(const Radix *r) {
    Emit *e = r->o.e;
    return em_add(e, em_mul(e, r->o.number, em_i64(e, DIGITS)), sort_widened(&r->o, r->digit));
}
static V tile_digit(const Radix *r) {
    Emit *e = r->o.e;
    V tile = em_add(e, em_mul(e, r->o.number, r->o.tiles), r->o.tile);
    return em_add(e, em_mul(e, tile, em_i64(e, DIGITS)), sort_widened(&r->o, r->digit));
}
static void count_tile(Kernel *k, V item, bool first) {
    Emit *e = k->e;
    Radix r = radix_of(k, item, first);
    V counts = threads_share(k, DIGITS * COUNT_BYTES), last = em_cmpi(e, "eq", r.digit, i32(&r, DIGITS - 1));
    read_keys(&r);
    If clears = kernel_if(k, r.own);
    store_word(&r, i32(&r, 0), counts, r.digit);
    kernel_if_end(k, &clears);
    threads_meet(k);
    for (uint32_t i = 0; i < r.o.each; i++)
        atomic_combine(k, P_add, DT_u32, em_gep(e, counts, r.digits[i], e->i32), i32(&r, 1));
    threads_meet(k);
    V behind = em_sub(e, i32(&r, r.o.so->tile), r.o.count), n = sort_word_at(&r.o, counts, r.digit);
    If own = kernel_if(k, r.own);
    n = em_sub(e, n, em_select(e, last, behind, i32(&r, 0)));
    store_word(&r, n, kernel_buffer(k, r.o.so->counts), tile_digit(&r));
    kernel_if_end(k, &own);
    threads_meet(k);
}
void device_count_first(Kernel *k, V item, V end) { count_tile(k, item, true); }
void device_count(Kernel *k, V item, V end) { count_tile(k, item, false); }

static void add_to(Emit *e, void *user, V *x, const V *y) { x[0] = em_add(e, x[0], y[0]); }
/* ---- moving */
/* Of two numbers that each digit has: their sums for all digits below the thread's one. */
static void below(const Radix *r, V *x, V *y) {
    Emit *e = r->o.e;
    V all, zero = em_i64(e, 0), word = em_i64(e, 32);
    V both = em_bin(e, "llvm.or", sort_widened(&r->o, *x), em_bin(e, "llvm.shl", sort_widened(&r->o, *y), word));
    both = threads_prefix(r->o.k, em_select(e, r->own, both, zero), zero, add_to, NULL, &all);
    *x = sort_narrowed(&r->o, both), *y = sort_narrowed(&r->o, em_bin(e, "llvm.lshr", both, word));
}
static V of_warp(const Radix *r, uint32_t warp) {
    return sort_word_at(&r->o, r->counts, count_at(r, i32(r, warp), r->digit));
}
/* Afterwards counts has where in the sorted tile the warp's elements of a digit begin. Returns shared memory: by digit,
   what is added to a place in the sorted tile to give that in the row. */
static V find_places(const Radix *r) {
    const Sorting *o = &r->o;
    Emit *e = o->e;
    Kernel *k = o->k;
    V apart = threads_share(k, DIGITS * COUNT_BYTES), in_tile = of_warp(r, 0);
    for (uint32_t w = 1; w < r->warps; w++) in_tile = em_add(e, in_tile, of_warp(r, w));
    V first = in_tile, in_row = sort_word_at(o, kernel_buffer(k, o->so->sums), row_digit(r));
    below(r, &first, &in_row);
    V in_tiles = sort_word_at(o, kernel_buffer(k, o->so->counts), tile_digit(r));
    If own = kernel_if(k, r->own);
    store_word(r, em_sub(e, em_add(e, in_row, in_tiles), first), apart, r->digit);
    for (uint32_t w = 0; w < r->warps; w++) { /* read again, as registers are few */
        V n = of_warp(r, w);
        store_word(r, first, r->counts, count_at(r, i32(r, w), r->digit));
        first = em_add(e, first, n);
    }
    kernel_if_end(k, &own);
    threads_meet(k);
    return apart;
}
/* What a pass writes; keys NULL: they are not needed any more. */
typedef struct {
    V keys, places;
} Moved;
static Keyed own_of(const Radix *r, uint32_t i) {
    const Sorting *o = &r->o;
    Keyed x = r->x[i];
    if (!r->first && !o->so->alone) x.place = sort_word_at(o, kernel_buffer(o->k, o->so->from[1]), x.place);
    return x;
}
/* i1: do all elements of the row have the same digit? Then they stay where they are. */
static V is_straight(const Radix *r) {
    const Sorting *o = &r->o;
    Emit *e = o->e;
    V n = sort_word_at(o, kernel_buffer(o->k, o->so->sums), row_digit(r));
    V all = em_cast(e, "llvm.zext", e->i32, em_cmpi(e, "eq", n, sort_narrowed(o, o->n)));
    threads_merge(o->k, 1, &all, add_to, NULL);
    return em_cmpi(e, "ne", all, i32(r, 0));
}
static void stay(const Radix *r, const Moved *to) {
    const Sorting *o = &r->o;
    Emit *e = o->e;
    for (uint32_t i = 0; i < o->each; i++) {
        V at = place_of(r, i), into = em_add(e, em_add(e, o->row, o->first), sort_widened(o, at));
        sort_put_if(o, em_less(e, at, o->count), to->keys, to->places, into, own_of(r, i));
    }
}
/* In shared memory the tile is sorted, so that neighbours go to neighbouring places. */
static void sort_tile(const Radix *r) {
    const Sorting *o = &r->o;
    Emit *e = o->e;
    for (uint32_t i = 0; i < o->each; i++) {
        V digit = em_bin(e, "llvm.lshr", r->rank[i], i32(r, RANK_BITS));
        V rank = em_both(e, r->rank[i], i32(r, (1 << RANK_BITS) - 1));
        V start = sort_word_at(o, r->counts, count_at(r, r->warp, digit));
        sort_put(o, o->keys, o->places, em_add(e, start, rank), own_of(r, i));
    }
    threads_meet(o->k);
}
static void move_apart(Radix *r, const Moved *to) {
    const Sorting *o = &r->o;
    Emit *e = o->e;
    rank_elements(r);
    V apart = find_places(r);
    sort_tile(r);
    for (uint32_t i = 0; i < o->each; i++) {
        V at = sort_own(o, i);
        Keyed x = sort_at(o, o->keys, o->places, at);
        V into = em_add(e, at, sort_word_at(o, apart, digit_of(r, x.key)));
        sort_put_if(o, em_less(e, at, o->count), to->keys, to->places, em_add(e, o->row, sort_widened(o, into)), x);
    }
}
static void move(Kernel *k, V item, bool first, bool with_keys) {
    Emit *e = k->e;
    Radix r = radix_of(k, item, first);
    const Sort *so = r.o.so;
    sorting_share(&r.o);
    r.counts = threads_share(k, (int64_t)r.warps * DIGITS * COUNT_BYTES);
    read_keys(&r);
    Moved to = {.places = sort_buffer(&r.o, so->alone ? NULL : so->to[1])};
    if (with_keys) to.keys = kernel_buffer(k, so->to[0]);
    V straight = is_straight(&r);
    If stays = kernel_if(k, straight);
    stay(&r, &to);
    kernel_if_end(k, &stays);
    If moves = kernel_if(k, em_bin(e, "llvm.xor", straight, em_int(e, e->i1, 1)));
    move_apart(&r, &to);
    kernel_if_end(k, &moves);
    threads_meet(k);
}
void device_move_first(Kernel *k, V item, V end) { move(k, item, true, true); }
void device_move(Kernel *k, V item, V end) { move(k, item, false, true); }
void device_move_last(Kernel *k, V item, V end) { move(k, item, false, false); }
void device_move_only(Kernel *k, V item, V end) { move(k, item, true, false); }
