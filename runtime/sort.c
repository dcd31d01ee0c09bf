/* Sorting along the last axis, and the first elements of the sorted axis.

   Elements become unsigned integers in the same order, keys; a key and the position it comes from form one record, so
   that any algorithm is stable. Short rows are sorted many at once, in the lanes of vectors, or by merging; long rows
   by radix. A single operand needs no positions: its sorted keys are converted back, and elements that keys do not
   distinguish (zeros of either sign, NaNs) are rewritten in their original order. */
#include "rt.h"
#include "sort.h"
#include <stdbool.h>
#include <string.h>

/* This file is compiled twice: sort_avx2.c includes it for wider vectors. */
jaxcc_rt_function jaxcc_rt_sort_narrow, jaxcc_rt_top_k_narrow, jaxcc_rt_sort_avx2, jaxcc_rt_top_k_avx2;
#ifndef VECTOR
#define VECTOR 16
#define NAME(f) f##_narrow
#endif

#define ALWAYS static inline __attribute__((always_inline))
enum { DIGIT = 11, BLOCK = 32768, MOST_BLOCKS = 16, MOST_DIGITS = 8, STRIDE = 16, CHUNK = 32, FEW = 32, MINIMA = 5 };
enum { CONVERTED = 1 << 18 }; /* keys that are worth waking a thread */
/* top_k: vectors of elements that bound the result, the least rows of as many that are worth it, the share of a row that
   has more, and the least k that is worth all of one; bytes from what is read to what is asked for. */
enum { FIRSTS = 8, FIRST_ROWS = 16, FIRST_SHARE = 8, FIRST_FEW = 4, AHEAD = 8192 };
enum { LINE = 64, FAR = 1 << 22 }; /* bytes of a line of the caches, and of an array that is not in them */
typedef unsigned __int128 uint128_t;
/* f, whose last parameters are an order and whether it is reversed, with a body of its own for each of them. */
#define BY_ORDER(f, ...)                                                                                               \
    (order == ORDER_UNSIGNED ? flip ? f(__VA_ARGS__, ORDER_UNSIGNED, true) : f(__VA_ARGS__, ORDER_UNSIGNED, false)     \
     : order == ORDER_SIGNED ? flip ? f(__VA_ARGS__, ORDER_SIGNED, true) : f(__VA_ARGS__, ORDER_SIGNED, false)         \
     : flip                  ? f(__VA_ARGS__, ORDER_TOTAL, true)                                                       \
                             : f(__VA_ARGS__, ORDER_TOTAL, false))

/* A pass over one digit: moves records from `from` to `to`. */
typedef struct {
    void *from, *to;
    int64_t n, blocks;
    int shift;
    uint32_t mask;
    uint64_t differs[MOST_BLOCKS];
    uint32_t (*count)[1 << DIGIT]; /* of each block; or, if they are counted at once, of each digit of one block */
    bool at_once;
} Digits;
static int64_t block_at(const Digits *d, int64_t k) { return d->n * k / d->blocks; }
/* Turns counts into the starting places of the blocks' records: by digit, then by block. */
static void places(Digits *d) {
    uint32_t sum = 0;
    for (uint32_t i = 0; i <= d->mask; i++)
        for (int64_t k = 0; k < d->blocks; k++) {
            uint32_t here = d->count[k][i];
            d->count[k][i] = sum;
            sum += here;
        }
}

#define T int32_t
#define N(f) f##_32
#include "lanes.h"
#define T int64_t
#define N(f) f##_64
#include "lanes.h"
static bool no_lanes(void *a, int64_t rows, int64_t n) { return false; }

#define R uint32_t
#define LOW 0
#define LANES by_lanes_32
#define F(f) f##_32
#include "records.h"
#define R uint64_t
#define LOW 0
#define LANES by_lanes_64
#define F(f) f##_64
#include "records.h"
#define R uint64_t
#define LOW 32
#define LANES by_lanes_64
#define F(f) f##_at_64
#include "records.h"
#define R uint128_t
#define LOW 64
#define LANES no_lanes
#define F(f) f##_at_128
#include "records.h"

/* ---- keys */
#define U uint8_t
#define KEY uint32_t
#define N(f) f##_u8
#include "keys.h"
#define U uint16_t
#define KEY uint32_t
#define N(f) f##_u16
#include "keys.h"
#define U uint32_t
#define SIGNED int32_t
#define FLOAT float
#define KEY uint32_t
#define N(f) f##_u32
#include "keys.h"
#define U uint64_t
#define SIGNED int64_t
#define FLOAT double
#define KEY uint64_t
#define N(f) f##_u64
#include "keys.h"

static const struct {
    bool (*keys)(void *to, const void *x, int64_t n, int64_t order, bool flip);
    void (*values)(void *to, const void *keys, int64_t n, int64_t order);
    void (*restore)(void *to, const void *x, int64_t n, int64_t order);
    int64_t (*after)(const void *x, int64_t n, uint64_t key, bool equals, int64_t order, bool flip); /* NULL: 0; … */
    uint64_t (*bound)(const void *x, int64_t n, int64_t k, int64_t order, bool flip);                /* … all ones */
} width[] = {[1] = {keys_u8, values_u8, restore_u8, NULL, NULL},
             [2] = {keys_u16, values_u16, restore_u16, NULL, NULL},
             [4] = {keys_u32, values_u32, restore_u32, after_u32, bound_u32},
             [8] = {keys_u64, values_u64, restore_u64, after_u64, bound_u64}};
typedef struct {
    int64_t bytes, order;
} Kind;
static int64_t key_bytes(Kind k) { return k.bytes <= 4 ? 4 : 8; }

/* Long arrays are converted by several threads. */
typedef struct {
    Kind kind;
    char *to;
    const char *from;
    bool flip, lost;
} Convert;
static void some_keys(void *ctx, int64_t lo, int64_t hi) {
    Convert *c = ctx;
    int64_t size = c->kind.bytes;
    if (width[size].keys(c->to + lo * key_bytes(c->kind), c->from + lo * size, hi - lo, c->kind.order, c->flip))
        __atomic_store_n(&c->lost, true, __ATOMIC_RELAXED);
}
static void some_values(void *ctx, int64_t lo, int64_t hi) {
    Convert *c = ctx;
    int64_t size = c->kind.bytes;
    width[size].values(c->to + lo * size, c->from + lo * key_bytes(c->kind), hi - lo, c->kind.order);
}
static bool keys_of(void *to, const void *x, int64_t n, Kind k, bool flip) {
    Convert c = {k, to, x, flip, false};
    jaxcc_rt_parallel_for(some_keys, &c, n, CONVERTED);
    return c.lost;
}
static void values_of(void *to, const void *keys, int64_t n, Kind k) {
    Convert c = {k, to, keys, false, false};
    jaxcc_rt_parallel_for(some_values, &c, n, CONVERTED);
}

/* ---- rows over threads: groups of rows that are sorted together, and a slot of scratch memory for each part of the
   groups */
typedef struct Rows Rows;
struct Rows {
    void (*group)(const Rows *, int64_t first, int64_t count, char *scratch);
    int64_t rows, n, slots, slot; /* slot: bytes of scratch memory */
    int64_t groups, blocks;       /* blocks: those that a row is cut into for the threads */
    char *scratch;
    char *const *in, *const *out;
    const Kind *kind;
    int64_t operands, keys; /* of sort */
    int64_t k;              /* of top_k */
    bool largest;
};
static void some_slots(void *ctx, int64_t lo, int64_t hi) {
    const Rows *s = ctx;
    int64_t size = s->n <= SHORT ? GROUP : 1;
    for (int64_t i = lo; i < hi; i++)
        for (int64_t g = s->groups * i / s->slots; g < s->groups * (i + 1) / s->slots; g++) {
            int64_t left = s->rows - g * size;
            s->group(s, g * size, left < size ? left : size, s->scratch + i * s->slot);
        }
}
/* Every call's sizes begin with: rows, extent, slots, bytes of a slot. */
static void each_group(jaxcc_rt_heap *call, const char *what, Rows *s, const int64_t *sizes) {
    s->rows = sizes[0], s->n = sizes[1], s->slots = sizes[2], s->slot = sizes[3];
    if (s->n > UINT32_MAX)
        jaxcc_rt_stop(call, JAXCC_DIMENSION, "%s: an axis of %lld elements is too long", what, (long long)s->n);
    s->groups = s->n <= SHORT ? (s->rows + GROUP - 1) / GROUP : s->rows;
    bool whole = s->groups > 1 || s->n < 2 * BLOCK || jaxcc_rt_alone();
    s->blocks = whole ? 1 : s->n / BLOCK < MOST_BLOCKS ? s->n / BLOCK : MOST_BLOCKS;
    if (s->rows * s->n < BLOCK || s->groups == 1) /* which shares out its blocks itself */
        some_slots(s, 0, s->slots);
    else
        jaxcc_rt_parallel_for(some_slots, s, s->slots, 1);
}

/* ---- one operand */
static void sort_alone(const Rows *s, int64_t first, int64_t rows, char *scratch) {
    Kind k = s->kind[0];
    int64_t n = s->n, all = rows * n, at = first * n * k.bytes;
    const char *x = s->in[0] + at;
    char *y = s->out[0] + at;
    bool lost = keys_of(scratch, x, all, k, false);
    void *sorted = key_bytes(k) == 4
                       ? (void *)sort_32((uint32_t *)scratch, (uint32_t *)scratch + all, rows, n, s->blocks)
                       : (void *)sort_64((uint64_t *)scratch, (uint64_t *)scratch + all, rows, n, s->blocks);
    values_of(y, sorted, all, k);
    for (int64_t r = 0; r < rows && lost; r++)
        width[k.bytes].restore(y + r * n * k.bytes, x + r * n * k.bytes, n, k.order);
}

/* ---- several operands: sorted positions, then each operand gathered by them */
static void take(void *y, const void *x, const uint32_t *at, int64_t n, int64_t bytes) {
    switch (bytes) {
#define TAKE(T)                                                                                                        \
    for (int64_t i = 0; i < n; i++) ((T *)y)[i] = ((const T *)x)[at[i]];
    case 1: TAKE(uint8_t) break;
    case 2: TAKE(uint16_t) break;
    case 4: TAKE(uint32_t) break;
    default: TAKE(uint64_t)
#undef TAKE
    }
}
/* Sorts rows by a key: equal elements keep the order of the positions `at` (NULL: 0, 1, …). `records` has room for
   twice the records. */
static void positions_by(const Rows *s, const char *x, Kind k, int64_t rows, const uint32_t *at, uint32_t *to,
                         void *records) {
    int64_t n = s->n, all = rows * n;
#define RECORDS(R, KEY, LOW, SORT)                                                                                     \
    R *record = records;                                                                                               \
    KEY *key = (KEY *)(record + all);                                                                                  \
    keys_of(key, x, all, k, s->largest);                                                                               \
    for (int64_t r = 0; r < all; r += n)                                                                               \
        for (int64_t i = 0; i < n; i++) record[r + i] = (R)key[r + (at ? at[r + i] : i)] << LOW | (R)i;                \
    record = SORT(record, record + all, rows, n, s->blocks);                                                           \
    for (int64_t r = 0; r < all; r += n)                                                                               \
        for (int64_t i = 0; i < n; i++) to[r + i] = at ? at[r + (uint32_t)record[r + i]] : (uint32_t)record[r + i];
    if (key_bytes(k) == 4) {
        RECORDS(uint64_t, uint32_t, 32, sort_at_64)
    } else {
        RECORDS(uint128_t, uint64_t, 64, sort_at_128)
    }
#undef RECORDS
}
static void sort_together(const Rows *s, int64_t first, int64_t rows, char *scratch) {
    int64_t n = s->n, all = rows * n, round = (all + 3) / 4 * 4;
    uint32_t *at = NULL, *p = (uint32_t *)scratch, *q = p + round, *to = p;
    for (int64_t i = s->keys; i-- > 0;) {
        positions_by(s, s->in[i] + first * n * s->kind[i].bytes, s->kind[i], rows, at, to, q + round);
        at = to, to = to == p ? q : p;
    }
    if (!at) return; /* there is a key */
    for (int64_t i = 0; i < s->operands; i++)
        for (int64_t r = 0; r < rows; r++) {
            int64_t bytes = s->kind[i].bytes, from = (first + r) * n * bytes;
            take(s->out[i] + from, s->in[i] + from, at + r * n, n, bytes);
        }
}
void NAME(jaxcc_rt_sort)(jaxcc_rt_heap *call, void *const *arrays, const int64_t *sizes) {
    int64_t m = sizes[4];
    Rows s = {.operands = m, .keys = sizes[5], .kind = (const Kind *)(sizes + 6), .scratch = arrays[2 * m]};
    s.in = (char *const *)arrays, s.out = s.in + m;
    s.group = m == 1 ? sort_alone : sort_together;
    each_group(call, "sort", &s, sizes);
}

/* ---- the first k of the order, each with its position. A minimum of a short row takes 21 ns and 0.25 for each
   element, sorting rows of 16 elements 90 ns, of 32 207, of 64 490, of 128 1200. */
/* Short rows, and many elements of long ones: by sorting. */
static void first_by_sorting(const Rows *s, const char *x, int64_t rows, char *scratch, uint32_t *at) {
    int64_t n = s->n, round = (rows * n + 3) / 4 * 4;
    uint32_t *all = (uint32_t *)scratch;
    positions_by(s, x, s->kind[0], rows, NULL, all, all + round);
    for (int64_t r = 0; r < rows; r++) memcpy(at + r * s->k, all + r * n, (size_t)s->k * sizeof *at);
}
/* Few elements: of long rows, and very few of short ones. */
#define R uint64_t
#define KEY uint32_t
#define SIGNED int32_t
#define LOW 32
#define SORT by_merging_at_64
#define N(f) f##_32
#include "select.h"
#define R uint128_t
#define KEY uint64_t
#define SIGNED int64_t
#define LOW 64
#define SORT by_merging_at_128
#define N(f) f##_64
#include "select.h"
static void top_k_group(const Rows *s, int64_t first, int64_t rows, char *scratch) {
    Kind kind = s->kind[0];
    int64_t n = s->n, k = s->k, bytes = kind.bytes;
    const char *x = s->in[0] + first * n * bytes;
    char *y = s->out[0] + first * k * bytes;
    uint32_t *at = (uint32_t *)s->out[1] + first * k;
    if (n <= SHORT && MINIMA * k <= n)
        for (int64_t r = 0; r < rows; r++)
            (key_bytes(kind) == 4 ? minima_32 : minima_64)(x + r * n * bytes, n, kind, s->largest, k, scratch,
                                                           at + r * k);
    else if (n <= SHORT || 4 * k > n)
        first_by_sorting(s, x, rows, scratch, at);
    else
        (key_bytes(kind) == 4 ? select_32 : select_64)(x, n, kind, s->largest, k, scratch, at);
    for (int64_t r = 0; r < rows; r++) take(y + r * k * bytes, x + r * n * bytes, at + r * k, k, bytes);
}
void NAME(jaxcc_rt_top_k)(jaxcc_rt_heap *call, void *const *arrays, const int64_t *sizes) {
    Rows s = {.k = sizes[4], .largest = sizes[5], .kind = (const Kind *)(sizes + 6), .scratch = arrays[3]};
    s.in = (char *const *)arrays, s.out = s.in + 1;
    s.group = top_k_group;
    if (s.k == 0) return;
    each_group(call, "top_k", &s, sizes);
}

#if VECTOR == 16
static bool wide(void) { return jaxcc_rt_has("avx2"); }
void jaxcc_rt_sort(jaxcc_rt_heap *call, void *const *arrays, const int64_t *sizes) {
    (wide() ? jaxcc_rt_sort_avx2 : jaxcc_rt_sort_narrow)(call, arrays, sizes);
}
void jaxcc_rt_top_k(jaxcc_rt_heap *call, void *const *arrays, const int64_t *sizes) {
    (wide() ? jaxcc_rt_top_k_avx2 : jaxcc_rt_top_k_narrow)(call, arrays, sizes);
}
#endif
