#include "../cost.h"
#include "../plan/scatter.h"
#include "grid.h"
#include "search.h"
#include "sort_device.h"
#include "threads.h"
#include <mlir-c/BuiltinTypes.h>

/* A block sorts a tile by a bitonic network, whose elements are in registers: a thread has neighbouring ones, which it
   compares itself; those of a warp meet by shuffles, others in shared memory. The network is not stable, so a word that
   is compared is a key and, below it, the place in the tile. Keys alone of equal bits need no order; where others are
   equal, zeros and NaNs, the few tiles that have several kinds of them write them again in the order in which they
   came. */

typedef struct {
    Sorting o;
    MlirType word;  /* i32 or i64 */
    uint32_t below; /* bits of a word that are the place; 0: it is a key */
    bool pairs;     /* keys of 64 bits: places are words of their own */
    uint32_t n;     /* registers: words of the thread's elements, then places, if there are pairs */
    V words, places;
} Tile;
enum {
    MOST_WORDS = SORT_EACH_ALONE, /* or 2 SORT_EACH */
    HALF_WORD = 16,
    BANKS = 32
};

static Tile tile_of(Kernel *k, V item) {
    Tile t = {.o = sorting_of(k, item)};
    Emit *e = k->e;
    uint32_t bits = 8 * dtype_bytes(t.o.so->key);
    bool places = !t.o.so->alone, is_short = bits <= (places ? HALF_WORD : 2 * HALF_WORD);
    t.word = is_short ? e->i32 : e->i64;
    t.pairs = places && bits == 64;
    t.below = !places || t.pairs ? 0 : is_short ? HALF_WORD : 2 * HALF_WORD;
    t.n = t.o.each * (t.pairs ? 2 : 1);
    t.words = threads_row(k, (int64_t)t.o.so->tile * (is_short ? 4 : 8));
    if (t.pairs) t.places = threads_row(k, (int64_t)t.o.so->tile * dtype_bytes(DT_u32));
    return t;
}
/* Do the threads of a row, and of other rows, make up a warp? Else they are warps of a block. */
static bool in_warp(const Tile *t) { return t->o.k->block.group <= WARP; }
static void meet(const Tile *t) { (in_warp(t) ? threads_meet_in_warp : threads_meet)(t->o.k); }
static uint32_t word_bytes(const Tile *t) { return mlirTypeEqual(t->word, t->o.e->i32) ? 4 : 8; }
static V sized(const Tile *t, MlirType to, V v) {
    MlirType from = mlirValueGetType(v);
    if (mlirTypeEqual(from, to)) return v;
    bool wider = mlirIntegerTypeGetWidth(to) > mlirIntegerTypeGetWidth(from);
    return em_cast(t->o.e, wider ? "llvm.zext" : "llvm.trunc", to, v);
}
static V word_of(const Tile *t, V key, V at) {
    Emit *e = t->o.e;
    V word = sized(t, t->word, sort_number(&t->o, key));
    if (!t->below) return word;
    return em_bin(e, "llvm.or", em_bin(e, "llvm.shl", word, em_int(e, t->word, t->below)), sized(t, t->word, at));
}
/* Its key, and the place in the tile. */
static Keyed keyed_of(const Tile *t, V word, V place) {
    Emit *e = t->o.e;
    Keyed x = {word, place};
    if (t->below) {
        x.key = em_bin(e, "llvm.lshr", word, em_int(e, t->word, t->below));
        x.place = em_both(e, word, em_int(e, t->word, ((int64_t)1 << t->below) - 1));
    }
    x.key = sort_bits(&t->o, sized(t, t->o.key, x.key));
    if (x.place.ptr) x.place = sized(t, e->i32, x.place);
    return x;
}

/* ---- the network */
/* Is element i of y before that of x? */
static V comes_before(const Tile *t, const V *y, const V *x, uint32_t i, uint32_t k) {
    Emit *e = t->o.e;
    V less = em_cmpi(e, "ult", y[i], x[k]);
    if (!t->pairs) return less;
    V equal = em_both(e, em_cmpi(e, "eq", y[i], x[k]), em_cmpi(e, "ult", y[i + t->o.each], x[k + t->o.each]));
    return em_bin(e, "llvm.or", less, equal);
}
static void in_order(const Tile *t, V *x, uint32_t i, uint32_t k) {
    Emit *e = t->o.e;
    V swap = comes_before(t, x, x, k, i);
    for (uint32_t m = 0; m < t->n; m += t->o.each) {
        V a = x[i + m], b = x[k + m];
        x[i + m] = em_select(e, swap, b, a), x[k + m] = em_select(e, swap, a, b);
    }
}
/* Neighbours at half the distance, … */
static void merge_own(const Tile *t, V *x, uint32_t distance) {
    for (; distance; distance /= 2)
        for (uint32_t i = 0; i < t->o.each; i++)
            if (!(i & distance)) in_order(t, x, i, i | distance);
}
static void sort_own_elements(const Tile *t, V *x) {
    for (uint32_t length = 2; length <= t->o.each; length *= 2) {
        for (uint32_t i = 0; i < t->o.each; i++) /* the second half the other way round */
            if ((i ^ (length - 1)) > i) in_order(t, x, i, i ^ (length - 1));
        merge_own(t, x, length / 4);
    }
}
static void put_words(const Tile *t, const V *x) {
    Emit *e = t->o.e;
    for (uint32_t i = 0; i < t->n; i++) {
        V at = sort_own(&t->o, i % t->o.each);
        if (i < t->o.each)
            em_store(e, x[i], em_gep(e, t->words, at, t->word), word_bytes(t));
        else
            em_store(e, x[i], em_gep(e, t->places, at, e->i32), dtype_bytes(DT_u32));
    }
}
static V get_word(const Tile *t, bool place, V at) {
    Emit *e = t->o.e;
    if (place) return sort_word_at(&t->o, t->places, at);
    return em_load(e, t->word, em_gep(e, t->words, at, t->word), word_bytes(t));
}
/* The elements of the thread whose number differs in the bits `mask`; `mirrored`: the last one first. */
static void exchange(const Tile *t, V mask, bool mirrored, const V *x, V *y) {
    Kernel *k = t->o.k;
    Emit *e = t->o.e;
    uint32_t each = t->o.each;
    V other[MOST_WORDS];
    If near = {0};
    if (!in_warp(t)) near = em_if(e, em_cmpi(e, "ult", mask, sort_i32(&t->o, WARP)));
    for (uint32_t i = 0; i < t->n; i++) {
        uint32_t from = mirrored ? i / each * each + each - 1 - i % each : i;
        y[i] = threads_shuffle(k, "bfly", x[from], mask);
    }
    if (in_warp(t)) return;
    em_else(e, &near, t->n, y);
    threads_meet(k);
    put_words(t, x);
    threads_meet(k);
    V thread = em_bin(e, "llvm.xor", t->o.thread, mask);
    for (uint32_t i = 0; i < t->n; i++) {
        uint32_t from = mirrored ? each - 1 - i % each : i % each;
        V at = em_add(e, thread, sort_i32(&t->o, (int64_t)from * k->block.group));
        other[i] = get_word(t, i >= each, at);
    }
    em_if_end(e, &near, other, y);
}
/* Of each two elements `lower` threads keep the first. */
static void compare(const Tile *t, V mask, bool mirrored, V lower, V *x) {
    Emit *e = t->o.e;
    V y[MOST_WORDS];
    exchange(t, mask, mirrored, x, y);
    for (uint32_t i = 0; i < t->o.each; i++) {
        V takes = em_cmpi(e, "eq", comes_before(t, y, x, i, i), lower);
        for (uint32_t m = 0; m < t->n; m += t->o.each) x[i + m] = em_select(e, takes, y[i + m], x[i + m]);
    }
}
static V is_clear(const Tile *t, V bit) {
    Emit *e = t->o.e;
    return em_cmpi(e, "eq", em_both(e, t->o.thread, bit), sort_i32(&t->o, 0));
}
/* Runs of 1, 2, 4, … threads are merged. */
static void sort_words(const Tile *t, V *x) {
    Emit *e = t->o.e;
    uint32_t turns = 0;
    while (1u << turns < t->o.k->block.group) turns++;
    V zero = em_i64(e, 0), one = em_i64(e, 1), step = sort_i32(&t->o, 1);
    sort_own_elements(t, x);
    For f = em_for(e, zero, em_i64(e, turns), one, t->n, x);
    V turn = em_arg(&f.scope, 0), half = em_bin(e, "llvm.shl", step, sort_narrowed(&t->o, turn));
    for (uint32_t i = 0; i < t->n; i++) x[i] = em_arg(&f.scope, i + 1);
    compare(t, em_sub(e, em_add(e, half, half), step), true, is_clear(t, half), x);
    For g = em_for(e, zero, turn, one, t->n, x);
    V by = em_add(e, sort_narrowed(&t->o, em_arg(&g.scope, 0)), step), distance = em_bin(e, "llvm.lshr", half, by);
    for (uint32_t i = 0; i < t->n; i++) x[i] = em_arg(&g.scope, i + 1);
    compare(t, distance, false, is_clear(t, distance), x);
    em_for_end(e, &g, x, x);
    merge_own(t, x, t->o.each / 2);
    em_for_end(e, &f, x, x);
}

/* ---- the sorted tile, in shared memory */
/* Where its element is: what a warp writes at once, and what it reads, is in different banks. */
static V spread(const Tile *t, V at) {
    Emit *e = t->o.e;
    V other = em_both(e, em_bin(e, "llvm.udiv", at, sort_i32(&t->o, BANKS)), sort_i32(&t->o, BANKS - 1));
    return em_bin(e, "llvm.xor", at, other);
}
static void leave_words(const Tile *t, const V *x) {
    Emit *e = t->o.e;
    V first = em_mul(e, t->o.thread, sort_i32(&t->o, t->o.each));
    meet(t);
    for (uint32_t i = 0; i < t->n; i++) {
        V at = spread(t, em_add(e, first, sort_i32(&t->o, i % t->o.each)));
        if (i < t->o.each)
            em_store(e, x[i], em_gep(e, t->words, at, t->word), word_bytes(t));
        else
            em_store(e, x[i], em_gep(e, t->places, at, e->i32), dtype_bytes(DT_u32));
    }
    meet(t);
}

/* ---- keys that are equal although their bits differ */
static V is_nan(const Tile *t, V number) {
    return em_cmpi(t->o.e, "uge", number, em_int(t->o.e, t->o.key, sort_nan(&t->o)));
}
static V is_lost(const Tile *t, V key, V at) {
    Emit *e = t->o.e;
    V number = sort_number(&t->o, key), zero = em_cmpi(e, "eq", number, em_int(e, t->o.key, t->o.so->order));
    return em_both(e, em_bin(e, "llvm.or", zero, is_nan(t, number)), em_less(e, at, t->o.count));
}
typedef struct {
    const Tile *t;
    V number;
} Least;
static V is_below(const void *user, V i) {
    const Least *l = user;
    V word = get_word(l->t, false, spread(l->t, sort_narrowed(&l->t->o, i)));
    return em_cmpi(l->t->o.e, "ult", sized(l->t, l->t->o.key, word), l->number);
}
/* i32: the first element of the sorted tile that is not below this one. */
static V first_from(const Tile *t, int64_t number) {
    Least l = {t, em_int(t->o.e, t->o.key, number)};
    return sort_narrowed(&t->o, search_first(t->o.e, em_i64(t->o.e, 0), sort_widened(&t->o, t->o.count), is_below, &l));
}
/* Lanes of the warp that have the row: those with the bits of `mask`, which are below `lane` in `before`. */
typedef struct {
    V mask, before;
    uint32_t n;
} Lanes;
static Lanes lanes_of(const Tile *t) {
    Emit *e = t->o.e;
    Kernel *k = t->o.k;
    uint32_t n = in_warp(t) ? k->block.group : WARP;
    V one = sort_i32(&t->o, 1), lane = em_both(e, sort_narrowed(&t->o, thread_number(k)), sort_i32(&t->o, WARP - 1));
    V mask = em_bin(e, "llvm.shl", sort_i32(&t->o, (int64_t)(((uint64_t)1 << n) - 1)),
                    em_both(e, lane, sort_i32(&t->o, -(int64_t)n)));
    V before = em_sub(e, em_bin(e, "llvm.shl", one, lane), one);
    return (Lanes){mask, em_both(e, mask, before), n};
}
/* Writes those of the lanes' elements that are of the class, in their order, from *to on. */
static void write_class(const Tile *t, const Lanes *l, V number, V belongs, V *to) {
    Emit *e = t->o.e;
    V all = sort_i32(&t->o, -1);
    V votes = threads_intrinsic(e, "llvm.nvvm.vote.ballot.sync", e->i32, 2, (V[]){all, belongs});
    V at = spread(t, em_add(e, *to, em_un(e, "llvm.intr.ctpop", em_both(e, votes, l->before))));
    If f = em_if(e, belongs);
    em_store(e, sized(t, t->word, number), em_gep(e, t->words, at, t->word), word_bytes(t));
    em_else(e, &f, 0, NULL);
    em_if_end(e, &f, NULL, NULL);
    *to = em_add(e, *to, em_un(e, "llvm.intr.ctpop", em_both(e, votes, l->mask)));
}
/* The lanes of a warp read all elements of their rows again. */
static void write_rows_again(const Tile *t) {
    Kernel *k = t->o.k;
    Emit *e = k->e;
    Lanes l = lanes_of(t);
    V to[2] = {first_from(t, t->o.so->order), first_from(t, sort_nan(&t->o))}, two = em_int(e, t->o.key, 2);
    threads_meet_in_warp(k);
    For f = em_for(e, em_i64(e, 0), sort_widened(&t->o, t->o.count), em_i64(e, l.n), 2, to);
    kernel_enter(k);
    to[0] = em_arg(&f.scope, 1), to[1] = em_arg(&f.scope, 2);
    V at = em_add(e, sort_narrowed(&t->o, em_arg(&f.scope, 0)), t->o.thread), inside = em_less(e, at, t->o.count);
    V number = sort_number(&t->o, sort_given(&t->o, at).key);
    V zero = em_cmpi(e, "ult", em_sub(e, number, em_int(e, t->o.key, t->o.so->order)), two);
    write_class(t, &l, number, em_both(e, inside, zero), &to[0]);
    write_class(t, &l, number, em_both(e, inside, is_nan(t, number)), &to[1]);
    kernel_leave(k);
    em_for_end(e, &f, to, to);
}
/* The first warp does, if a row has several. */
static void write_again(const Tile *t) {
    Kernel *k = t->o.k;
    if (in_warp(t)) {
        write_rows_again(t);
    } else {
        If first = kernel_if(k, em_less(k->e, t->o.thread, sort_i32(&t->o, WARP)));
        write_rows_again(t);
        kernel_if_end(k, &first);
    }
    meet(t);
}
/* Has a row of the warp or block such elements? A block may have several. */
static V any_lost(const Tile *t, V lost) {
    Emit *e = t->o.e;
    const char *any = in_warp(t) ? "llvm.nvvm.vote.any.sync" : "llvm.nvvm.barrier.cta.red.or.aligned.all";
    V all = sort_i32(&t->o, in_warp(t) ? -1 : 0); /* lanes, or the barrier */
    return threads_intrinsic(e, any, e->i1, 2, (V[]){all, lost});
}

/* ---- results */
static void finish_inside(const Tile *t, V at, Keyed x) {
    Kernel *k = t->o.k;
    Emit *e = k->e;
    const Step *s = k->x.step;
    Val y = s->e->out.at[0];
    Ix index[MAX_RANK];
    V inside = em_less(e, at, t->o.count);
    if (k->block.exists.ptr) inside = em_both(e, inside, k->block.exists);
    If f = kernel_if(k, inside);
    grid_bind_point(k, &t->o.so->elements, em_add(e, t->o.row, sort_widened(&t->o, at)));
    step_at(k->x.plan, s, y, index);
    Dtype d = val_array(k->x.plan->cx, y)->dtype;
    V result = t->o.so->alone ? x.key : x.place;
    if (!mlirTypeIsAInteger(em_memory_type(e, d))) result = em_cast(e, "llvm.bitcast", em_memory_type(e, d), result);
    result = em_to_register(e, d, result);
    eval_remember(&k->x, y, index, reg(result, true, k->x.depth));
    kernel_stores(k);
    kernel_if_end(k, &f);
}
static void finish(const Tile *t) {
    const Sorting *o = &t->o;
    Emit *e = o->e;
    V keys = sort_buffer(o, o->so->keys[0]), places = sort_buffer(o, o->so->places[0]);
    for (uint32_t i = 0; i < o->each; i++) {
        V at = sort_own(o, i), from = spread(t, at);
        V place = t->pairs ? get_word(t, true, from) : (V){NULL};
        Keyed x = keyed_of(t, get_word(t, false, from), place);
        if (o->so->inside) {
            finish_inside(t, at, x);
            continue;
        }
        if (x.place.ptr) x.place = em_add(e, x.place, sort_narrowed(o, o->first));
        V to = em_add(e, em_add(e, o->row, o->first), sort_widened(o, at));
        sort_put_if(o, em_less(e, at, o->count), keys, places, to, x);
    }
}
void device_sort(Kernel *k, V item, V end) {
    Emit *e = k->e;
    Tile t = tile_of(k, item);
    V x[MOST_WORDS], lost = em_int(e, e->i1, 0);
    for (uint32_t i = 0; i < t.o.each; i++) {
        V at = sort_own(&t.o, i), key = sort_given(&t.o, at).key;
        x[i] = word_of(&t, key, at);
        if (t.pairs) x[i + t.o.each] = at;
        if (sort_is_float(&t.o)) lost = em_bin(e, "llvm.or", lost, is_lost(&t, key, at));
    }
    if (sort_is_float(&t.o)) lost = any_lost(&t, lost);
    sort_words(&t, x);
    leave_words(&t, x);
    if (sort_is_float(&t.o)) {
        If again = kernel_if(k, lost);
        write_again(&t);
        kernel_if_end(k, &again);
    }
    finish(&t);
    meet(&t);
}
