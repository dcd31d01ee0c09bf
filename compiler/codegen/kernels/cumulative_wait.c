#include "../cost.h"
#include "cumulative_device.h"
#include "messages.h"
#include "threads.h"
#include "wide.h"
#include <assert.h>

/* Parts of prefixes that one kernel does: a part leaves its sums for others, then waits for those of all parts before
   it, which it adds up in an order that depends on nothing but their number. If there are very many, the last part of a
   group leaves the sums of the group too, for parts of later groups. Blocks take parts in the order in which they
   begin, so that what a block waits for is left by one that has begun before it. */

/* Threads that need the sums of all parts before their own, of one row of an item: each reads some of them. */
typedef struct {
    Cum *c;
    V part, items, item, row; /* items: of each part; item: in the first one; row: of those of the item */
    V first, leaves;          /* the number of this thread; i1: does it write? */
    uint32_t apart;           /* of the threads: all of the item's, … */
    bool block;               /* … or lanes of a warp, which has all rows of an item */
} Reader;
static Reader reader(Cum *c, V item) {
    Kernel *k = c->k;
    Emit *e = k->e;
    const Division *d = &k->x.step->division;
    Reader r = {.c = c, .part = kernel_index(k, ix_atom(k->x.ix, d->loop)), .items = kernel_dim(k, d->items)};
    r.item = em_sub(e, item, em_mul(e, r.part, r.items));
    return r;
}
/* Where a part leaves its sums, or, after all parts, a group. */
static V place_of(const Reader *r, V number, bool group) {
    Kernel *k = r->c->k;
    Emit *e = k->e;
    int64_t words = cum_part_words(k->x.plan, k->x.step);
    V item = em_add(e, em_mul(e, number, r->items), r->item);
    if (group) item = em_add(e, item, kernel_dim(k, k->x.step->grid.items));
    V row = em_add(e, em_mul(e, item, em_i64(e, cum_rows(r->c))), r->row), first = em_i64(e, DEVICE_ALIGN);
    V at = em_add(e, em_mul(e, row, em_i64(e, 8 * words)), first); /* behind the number of the next part */
    return em_gep(e, kernel_buffer(k, k->x.step->parts), at, e->i8);
}
static void leave(const Reader *r, V number, bool group, const V *sums) {
    Kernel *k = r->c->k;
    V leaves = r->leaves;
    if (group) {
        V size = em_i64(k->e, k->x.step->division.group), end = em_bin(k->e, "llvm.urem", r->part, size);
        leaves = em_both(k->e, leaves, em_cmpi(k->e, "eq", end, em_sub(k->e, size, em_i64(k->e, 1))));
    }
    If f = kernel_if(k, leaves);
    message_leave(k, place_of(r, number, group), cum_part_values(r->c), sums);
    kernel_if_end(k, &f);
}
/* Adds up what the parts, or groups, [from, to) leave. */
static void add_up(const Reader *r, V from, V to, bool groups, V *carry) {
    const Cum *c = r->c;
    Kernel *k = c->k;
    Emit *e = k->e;
    uint32_t n = cum_part_values(c);
    V next[WIDE_VALUES], none[WIDE_VALUES], x[PARTS_READ * WIDE_VALUES], place[PARTS_READ], there[PARTS_READ];
    cum_start(c, 1, carry);
    memcpy(none, carry, n * sizeof *carry);
    V last = em_sub(e, to, em_i64(e, 1));
    For f = em_for(e, em_add(e, from, r->first), to, em_i64(e, (int64_t)r->apart * PARTS_READ), n, carry);
    for (uint32_t i = 0; i < PARTS_READ; i++) {
        V number = em_add(e, em_arg(&f.scope, 0), em_i64(e, (int64_t)i * r->apart));
        there[i] = em_less(e, number, to);
        place[i] = place_of(r, em_least(e, number, last), groups);
    }
    for (uint32_t v = 0; v < n; v++) x[v] = next[v] = em_arg(&f.scope, v + 1);
    message_wait(k, PARTS_READ, place, n, x);
    for (uint32_t i = 0; i < PARTS_READ; i++) {
        for (uint32_t v = 0; v < n && i; v++) x[i * n + v] = em_select(e, there[i], x[i * n + v], none[v]);
        cum_add_part(c, next, x + i * n);
    }
    em_for_end(e, &f, next, carry);
    if (r->block)
        threads_merge(k, n, carry, cum_join, r->c);
    else
        threads_merge_apart(k, WARP / r->apart, n, carry, cum_join, r->c);
}
/* Leaves what this part has in all; the carry after those before it. */
static void before(const Reader *r, V all, V *carry) {
    Kernel *k = r->c->k;
    Emit *e = k->e;
    V own[WIDE_VALUES], sums[WIDE_VALUES], zero = em_i64(e, 0), size = em_i64(e, k->x.step->division.group);
    uint32_t n = cum_part_values(r->c);
    cum_start(r->c, 1, own);
    cum_take(r->c, own, all);
    assert(message_words(e, n, own) == cum_part_words(k->x.plan, k->x.step));
    leave(r, r->part, false, own);
    if (!k->x.step->division.group) {
        add_up(r, zero, r->part, false, carry);
        return;
    }
    V group = em_bin(e, "llvm.udiv", r->part, size);
    add_up(r, em_mul(e, group, size), r->part, false, sums);
    cum_add_part(r->c, own, sums);
    leave(r, group, true, own);
    add_up(r, zero, group, true, carry);
    cum_add_part(r->c, carry, sums);
}
void cum_before_part(Cum *c, V all, V *carry) {
    Kernel *k = c->k;
    Emit *e = k->e;
    Reader r = reader(c, c->item);
    r.row = em_i64(e, 0), r.first = member_number(k), r.apart = k->block.group, r.block = true;
    r.leaves = em_cmpi(e, "eq", r.first, r.row);
    before(&r, all, carry);
}
static void combine_chunks(Emit *e, void *c, V *x, const V *y) { x[0] = cum_combine(c, x[0], y[0]); }
void cum_before_chunks(Cum *c, V *rows) {
    Kernel *k = c->k;
    Emit *e = k->e;
    uint32_t n = cum_rows(c), values = cum_part_values(c);
    V all[PREFIX_ROWS], carry[WIDE_VALUES], start[WIDE_VALUES], lane = thread_lane(k), rows_of_item = em_i64(e, n);
    V own = em_bin(e, "llvm.urem", thread_number(k), em_i64(e, k->block.threads / k->block.chunks));
    Reader r = reader(c, em_add(e, em_sub(e, c->item, own), thread_warp(k)));
    r.row = em_bin(e, "llvm.urem", lane, rows_of_item), r.first = em_bin(e, "llvm.udiv", lane, rows_of_item);
    r.apart = WARP / n, r.leaves = em_less(e, lane, rows_of_item);
    threads_swap_chunks(k, false, n, rows);
    threads_prefixes_apart(k, n, rows, cum_nothing(c), combine_chunks, c, all);
    V mine = all[0];
    for (uint32_t i = 1; i < n; i++) mine = em_select(e, em_cmpi(e, "eq", r.row, em_i64(e, i)), all[i], mine);
    before(&r, mine, carry);
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t v = 0; v < values; v++) start[v] = threads_from_lane(k, carry[v], i);
        cum_take(c, start, rows[i]);
        rows[i] = cum_value(c, start);
    }
    threads_swap_chunks(k, true, n, rows);
}
