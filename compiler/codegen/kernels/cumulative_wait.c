#include "../cost.h"
#include "cumulative_device.h"
#include "messages.h"
#include "threads.h"
#include "wide.h"
#include <assert.h>

/* Parts of prefixes that one kernel does: a part leaves its sums for others, then waits for those of all parts before it, which
   it adds up in an order that depends on nothing but their number. Blocks take parts in the order in which they begin, so
   that what a block waits for is left by one that has begun before it. */

typedef struct {
    V part, items, row; /* items: of each part; row: the item in the first one */
} Place;
static Place place_of(const Cum *c, V item) {
    Kernel *k = c->k;
    Emit *e = k->e;
    const Division *d = &k->x.step->division;
    Place p = {.part = kernel_index(k, ix_atom(k->x.ix, d->loop)), .items = kernel_dim(k, d->items)};
    p.row = em_sub(e, item, em_mul(e, p.part, p.items));
    return p;
}
static V message_of(const Cum *c, V item) {
    Kernel *k = c->k;
    Emit *e = k->e;
    int64_t bytes = 8 * (int64_t)cum_rows(c) * cum_part_words(k->x.plan, k->x.step);
    V at =
        em_add(e, em_mul(e, item, em_i64(e, bytes)), em_i64(e, DEVICE_ALIGN)); /* after the number of the next part */
    return em_gep(e, kernel_buffer(k, k->x.step->parts), at, e->i8);
}
/* Of one thread: what this part has in all, by row. */
static void leave(const Cum *c, V item, const V *all) {
    uint32_t values = cum_part_values(c);
    V carry[PREFIX_ROWS * WIDE_VALUES];
    cum_start_all(c, carry);
    for (uint32_t r = 0; r < cum_rows(c); r++) cum_take(c, carry + r * values, all[r]);
    assert(message_words(c->k->e, values, carry) == cum_part_words(c->k->x.plan, c->k->x.step));
    message_leave(c->k, message_of(c, item), cum_rows(c) * values, carry);
}
/* Adds what every `apart`-th part before this one leaves, from number `first` on, to the carries. */
static void add_left(const Cum *c, const Place *p, V first, uint32_t apart, V *carry) {
    Emit *e = c->k->e;
    uint32_t values = cum_part_values(c), n = cum_rows(c) * values;
    V next[PREFIX_ROWS * WIDE_VALUES], x[PREFIX_ROWS * WIDE_VALUES];
    For f = em_for(e, first, p->part, em_i64(e, apart), n, carry);
    V item = em_add(e, em_mul(e, em_arg(&f.scope, 0), p->items), p->row);
    for (uint32_t v = 0; v < n; v++) x[v] = next[v] = em_arg(&f.scope, v + 1);
    message_wait(c->k, message_of(c, item), n, x);
    for (uint32_t v = 0; v < n; v += values) cum_add_part(c, next + v, x + v);
    em_for_end(e, &f, next, carry);
}
void cum_before_part(Cum *c, V all, V *carry) {
    Kernel *k = c->k;
    Place p = place_of(c, c->item);
    If one = by_one_thread(k);
    leave(c, c->item, &all);
    by_one_thread_end(k, &one);
    add_left(c, &p, member_number(k), k->block.group, carry);
    threads_merge(k, cum_part_values(c), carry, cum_join, c);
}
static void combine_chunks(Emit *e, void *c, V *x, const V *y) { x[0] = cum_combine(c, x[0], y[0]); }
static void join_rows(Emit *e, void *c, V *x, const V *y) {
    for (uint32_t r = 0; r < cum_rows(c); r++) cum_join(e, c, x + r * cum_part_values(c), y + r * cum_part_values(c));
}
void cum_before_chunks(Cum *c, V *rows) {
    Kernel *k = c->k;
    Emit *e = k->e;
    uint32_t n = cum_rows(c), values = cum_part_values(c);
    V all[PREFIX_ROWS], carry[PREFIX_ROWS * WIDE_VALUES];
    V own = em_bin(e, "llvm.urem", thread_number(k), em_i64(e, k->block.threads / k->block.chunks));
    V item = em_add(e, em_sub(e, c->item, own), thread_warp(k));
    Place p = place_of(c, item);
    threads_swap_chunks(k, false, n, rows);
    threads_prefixes_apart(k, n, rows, cum_nothing(c), combine_chunks, c, all);
    If first = kernel_if(k, em_cmpi(e, "eq", thread_lane(k), em_i64(e, 0)));
    leave(c, item, all);
    kernel_if_end(k, &first);
    cum_start_all(c, carry);
    add_left(c, &p, thread_lane(k), WARP, carry);
    threads_merge_lanes(k, WARP, n * values, carry, join_rows, c);
    for (uint32_t r = 0; r < n; r++) {
        cum_take(c, carry + r * values, rows[r]);
        rows[r] = cum_value(c, carry + r * values);
    }
    threads_swap_chunks(k, true, n, rows);
}
