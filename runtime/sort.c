/* Sorting along the last axis, and the first elements of the sorted axis.

   Elements become unsigned integers that are in the same order, keys; a key and the position it comes from become one
   record, so that any algorithm is stable. Long rows are sorted by digits, short ones by merging. A single operand needs no
   positions: its sorted keys are turned back, and what keys do not tell apart (zeros of either sign, NaNs) is written
   again in its old order. */
#include "rt.h"
#include "sort.h"
#include <stdbool.h>
#include <string.h>

enum { DIGIT = 11, SHORT = 256 };
typedef unsigned __int128 uint128_t;

#define R uint32_t
#define LOW 0
#define F(f) f##_32
#include "records.h"
#define R uint64_t
#define LOW 0
#define F(f) f##_64
#include "records.h"
#define R uint64_t
#define LOW 32
#define F(f) f##_at_64
#include "records.h"
#define R uint128_t
#define LOW 64
#define F(f) f##_at_128
#include "records.h"

/* ---- keys */
typedef struct {
    int64_t bytes, order;
} Kind;

#define ALWAYS static inline __attribute__((always_inline))
ALWAYS uint64_t load(const void *x, int64_t i, int64_t bytes) {
    switch (bytes) {
    case 1: return ((const uint8_t *)x)[i];
    case 2: return ((const uint16_t *)x)[i];
    case 4: return ((const uint32_t *)x)[i];
    default: return ((const uint64_t *)x)[i];
    }
}
ALWAYS void store(void *x, int64_t i, int64_t bytes, uint64_t v) {
    switch (bytes) {
    case 1: ((uint8_t *)x)[i] = (uint8_t)v; break;
    case 2: ((uint16_t *)x)[i] = (uint16_t)v; break;
    case 4: ((uint32_t *)x)[i] = (uint32_t)v; break;
    default: ((uint64_t *)x)[i] = v;
    }
}
ALWAYS uint64_t sign_of(Kind k) { return (uint64_t)1 << (8 * k.bytes - 1); }
ALWAYS uint64_t ones_of(Kind k) { return sign_of(k) | (sign_of(k) - 1); }
ALWAYS bool is_nan(uint64_t x, Kind k) { return (x & ~sign_of(k)) > (uint64_t)k.order; }
ALWAYS bool is_zero(uint64_t x, Kind k) { return (x & ~sign_of(k)) == 0; }
ALWAYS uint64_t key_of(uint64_t x, Kind k) {
    if (k.order == ORDER_UNSIGNED) return x;
    if (k.order == ORDER_SIGNED) return x ^ sign_of(k);
    if (k.order != ORDER_TOTAL && is_nan(x, k)) return ones_of(k);
    if (k.order != ORDER_TOTAL && is_zero(x, k)) return sign_of(k);
    return x & sign_of(k) ? ~x & ones_of(k) : x | sign_of(k);
}
ALWAYS uint64_t of_key(uint64_t x, Kind k) {
    if (k.order == ORDER_UNSIGNED) return x;
    if (k.order == ORDER_SIGNED) return x ^ sign_of(k);
    return x & sign_of(k) ? x ^ sign_of(k) : ~x & ones_of(k);
}

/* Writes a loop once for each kind that has one of its own: f(..., kind), inlined for a constant kind. */
#define EACH_ORDER(b, k, f, ...)                                                                                       \
    switch ((k).order) {                                                                                               \
    case ORDER_UNSIGNED: f(__VA_ARGS__, (Kind){b, ORDER_UNSIGNED}); break;                                             \
    case ORDER_SIGNED: f(__VA_ARGS__, (Kind){b, ORDER_SIGNED}); break;                                                 \
    case ORDER_TOTAL: f(__VA_ARGS__, (Kind){b, ORDER_TOTAL}); break;                                                   \
    default: f(__VA_ARGS__, (Kind){b, (k).order > ORDER_TOTAL ? (k).order : INT64_MAX});                               \
    }
#define EACH_KIND(k, f, ...)                                                                                           \
    switch ((k).bytes) {                                                                                               \
    case 1: EACH_ORDER(1, k, f, __VA_ARGS__) break;                                                                    \
    case 2: EACH_ORDER(2, k, f, __VA_ARGS__) break;                                                                    \
    case 4: EACH_ORDER(4, k, f, __VA_ARGS__) break;                                                                    \
    default: EACH_ORDER(8, k, f, __VA_ARGS__)                                                                          \
    }

ALWAYS void keys_32(uint32_t *to, const void *x, int64_t n, Kind k) {
    for (int64_t i = 0; i < n; i++)
        to[i] = (uint32_t)key_of(load(x, i, k.bytes), k);
}
ALWAYS void keys_64(uint64_t *to, const void *x, int64_t n, Kind k) {
    for (int64_t i = 0; i < n; i++)
        to[i] = key_of(load(x, i, k.bytes), k);
}
ALWAYS void values_32(void *y, const uint32_t *from, int64_t n, Kind k) {
    for (int64_t i = 0; i < n; i++)
        store(y, i, k.bytes, of_key(from[i], k));
}
ALWAYS void values_64(void *y, const uint64_t *from, int64_t n, Kind k) {
    for (int64_t i = 0; i < n; i++)
        store(y, i, k.bytes, of_key(from[i], k));
}
/* Records of element at[i], or i where `at` is NULL, and i; `flip`: the largest comes first. */
ALWAYS void records_64(uint64_t *to, const void *x, const uint32_t *at, int64_t n, uint64_t flip, Kind k) {
    for (int64_t i = 0; i < n; i++)
        to[i] = ((key_of(load(x, at ? at[i] : i, k.bytes), k) ^ flip) << 32) | (uint64_t)i;
}
ALWAYS void records_128(uint128_t *to, const void *x, const uint32_t *at, int64_t n, uint64_t flip, Kind k) {
    for (int64_t i = 0; i < n; i++)
        to[i] = ((uint128_t)(key_of(load(x, at ? at[i] : i, k.bytes), k) ^ flip) << 64) | (uint128_t)i;
}

/* ---- rows over threads: a slot of scratch memory each */
typedef struct Rows Rows;
struct Rows {
    void (*row)(const Rows *, int64_t row, char *scratch);
    int64_t rows, n, slots, slot; /* slot: bytes of scratch */
    char *scratch;
    /* of sort and of top_k */
    void *const *in, *const *out;
    const int64_t *kinds;
    int64_t operands, keys, k;
    bool descending;
};
static void some_slots(void *ctx, int64_t lo, int64_t hi) {
    const Rows *s = ctx;
    for (int64_t i = lo; i < hi; i++)
        for (int64_t r = s->rows * i / s->slots; r < s->rows * (i + 1) / s->slots; r++)
            s->row(s, r, s->scratch + i * s->slot);
}
static void each_row(const Rows *s) {
    jaxcc_rt_parallel_for(some_slots, (void *)s, s->slots, s->rows * s->n < 8192 ? s->slots : 1);
}
static Kind kind_of(const Rows *s, int64_t operand) {
    return (Kind){s->kinds[2 * operand], s->kinds[2 * operand + 1]};
}

/* ---- one operand */
ALWAYS void restore(const void *x, void *y, int64_t n, Kind k) {
    /* where zeros and NaNs begin */
    int64_t zero = 0, nan = n;
    for (int64_t end = n; zero < end;) {
        int64_t mid = (zero + end) / 2;
        if (key_of(load(y, mid, k.bytes), k) < sign_of(k)) zero = mid + 1;
        else end = mid;
    }
    for (int64_t begin = zero; begin < nan;) {
        int64_t mid = (begin + nan) / 2;
        if (key_of(load(y, mid, k.bytes), k) < ones_of(k)) begin = mid + 1;
        else nan = mid;
    }
    for (int64_t i = 0; i < n; i++) {
        uint64_t v = load(x, i, k.bytes);
        if (is_zero(v, k)) store(y, zero++, k.bytes, v);
        if (is_nan(v, k)) store(y, nan++, k.bytes, v);
    }
}
static void sort_alone(const Rows *s, int64_t row, char *scratch) {
    Kind k = kind_of(s, 0);
    int64_t n = s->n;
    const void *x = (const char *)s->in[0] + row * n * k.bytes;
    void *y = (char *)s->out[0] + row * n * k.bytes;
    if (k.bytes <= 4) {
        uint32_t *a = (uint32_t *)scratch, *b = a + n;
        EACH_KIND(k, keys_32, a, x, n)
        a = sort_32(a, b, n);
        EACH_KIND(k, values_32, y, a, n)
    } else {
        uint64_t *a = (uint64_t *)scratch, *b = a + n;
        EACH_KIND(k, keys_64, a, x, n)
        a = sort_64(a, b, n);
        EACH_KIND(k, values_64, y, a, n)
    }
    if (k.order > ORDER_TOTAL) EACH_KIND(k, restore, x, y, n)
}

/* ---- several operands: the positions they come from, then each taken from there */
static void take(void *y, const void *x, const uint32_t *at, int64_t n, int64_t bytes) {
    switch (bytes) {
#define TAKE(T)                                                                                                        \
    for (int64_t i = 0; i < n; i++)                                                                                    \
        ((T *)y)[i] = ((const T *)x)[at[i]];
    case 1: TAKE(uint8_t) break;
    case 2: TAKE(uint16_t) break;
    case 4: TAKE(uint32_t) break;
    case 8: TAKE(uint64_t) break;
    default: TAKE(uint128_t)
    }
}
/* The positions in the order of one key: `at`, the order so far, NULL at first, is kept among equal keys. */
static uint32_t *sort_by(const void *x, Kind k, const uint32_t *at, uint32_t *to, void *a, int64_t n) {
    if (k.bytes <= 4) {
        uint64_t *r = a;
        EACH_KIND(k, records_64, r, x, at, n, 0)
        r = sort_at_64(r, r + n, n);
        for (int64_t i = 0; i < n; i++)
            to[i] = at ? at[(uint32_t)r[i]] : (uint32_t)r[i];
    } else {
        uint128_t *r = a;
        EACH_KIND(k, records_128, r, x, at, n, 0)
        r = sort_at_128(r, r + n, n);
        for (int64_t i = 0; i < n; i++)
            to[i] = at ? at[(uint32_t)r[i]] : (uint32_t)r[i];
    }
    return to;
}
static void sort_together(const Rows *s, int64_t row, char *scratch) {
    int64_t n = s->n;
    uint32_t *at = NULL, *p = (uint32_t *)scratch, *q = p + (n + 3) / 4 * 4;
    void *records = q + (n + 3) / 4 * 4;
    for (int64_t i = s->keys; i-- > 0;) {
        Kind k = kind_of(s, i);
        uint32_t *to = at == p ? q : p;
        at = sort_by((const char *)s->in[i] + row * n * k.bytes, k, at, to, records, n);
    }
    for (int64_t i = 0; i < s->operands; i++) {
        int64_t bytes = kind_of(s, i).bytes;
        take((char *)s->out[i] + row * n * bytes, (const char *)s->in[i] + row * n * bytes, at, n, bytes);
    }
}
static void want_positions(jaxcc_rt_heap *call, const char *what, int64_t n) {
    if (n > UINT32_MAX) jaxcc_rt_stop(call, JAXCC_DIMENSION, "%s: an axis of %lld elements is too long", what, (long long)n);
}

/* sizes: rows, extent, slots of scratch memory, bytes of one, operands, keys, then bytes and order of each operand.
   Operands and results [rows, extent], then the scratch memory, aligned to 16. The first `keys` operands decide, the first
   of them first. */
void jaxcc_rt_sort(jaxcc_rt_heap *call, void *const *arrays, const int64_t *sizes) {
    int64_t m = sizes[4];
    Rows s = {.rows = sizes[0], .n = sizes[1], .slots = sizes[2], .slot = sizes[3], .operands = m, .keys = sizes[5]};
    s.in = arrays, s.out = arrays + m, s.scratch = arrays[2 * m], s.kinds = sizes + 6;
    s.row = m == 1 ? sort_alone : sort_together;
    want_positions(call, "sort", s.n);
    each_row(&s);
}

/* ---- the first k of the order, each with its position */
static void top_k_row(const Rows *s, int64_t row, char *scratch) {
    Kind k = kind_of(s, 0);
    int64_t n = s->n;
    const char *x = (const char *)s->in[0] + row * n * k.bytes;
    char *y = (char *)s->out[0] + row * s->k * k.bytes;
    uint32_t *at = (uint32_t *)s->out[1] + row * s->k;
    uint64_t flip = s->descending ? ones_of(k) : 0;
    if (k.bytes <= 4) {
        uint64_t *r = (uint64_t *)scratch;
        EACH_KIND(k, records_64, r, x, NULL, n, flip)
        r = sort_at_64(r, r + n, n);
        for (int64_t i = 0; i < s->k; i++)
            at[i] = (uint32_t)r[i];
    } else {
        uint128_t *r = (uint128_t *)scratch;
        EACH_KIND(k, records_128, r, x, NULL, n, flip)
        r = sort_at_128(r, r + n, n);
        for (int64_t i = 0; i < s->k; i++)
            at[i] = (uint32_t)r[i];
    }
    take(y, x, at, s->k, k.bytes);
}

/* sizes: rows, extent, slots, bytes of one, k, whether the largest come first, bytes and order of the elements.
   [rows, extent] → [rows, k], their positions as 32 bit integers, the scratch memory. */
void jaxcc_rt_top_k(jaxcc_rt_heap *call, void *const *arrays, const int64_t *sizes) {
    Rows s = {.rows = sizes[0], .n = sizes[1], .slots = sizes[2], .slot = sizes[3], .k = sizes[4]};
    s.in = arrays, s.out = arrays + 1, s.scratch = arrays[3], s.kinds = sizes + 6, s.descending = sizes[5];
    s.row = top_k_row;
    want_positions(call, "top_k", s.n);
    each_row(&s);
}
