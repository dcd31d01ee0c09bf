#include "../cost.h"
#include "cumulative.h"
#include "point.h"
#include "threads.h"
#include "wide.h"

/* Prefixes on a device. Where neighbouring threads are neighbours beside the axis, or rows are short, a thread takes
   the elements of a row one after the other. Else a block takes PREFIX_ITEMS neighbouring ones for each thread at a
   time: a thread combines its own, the threads' results are scanned, and the carry goes along the row. Long rows are
   divided into parts: one kernel reduces each, a second one begins each with what all parts before it give. Elements
   are counted in the order of the prefixes. */

/* Takes one more element, or a result of several, into the carry. */
static void take(const Cum *c, V *carry, V x) {
    if (cum_widens(c))
        wide_add(c->k->e, c->d, x, carry);
    else
        cum_add(c, carry, x);
}
/* No elements: −0 is neutral for every sum. */
static V nothing(const Cum *c) {
    Emit *e = c->k->e;
    V none = point_identity(e, c->e->prim, c->d, 1);
    return cum_widens(c) ? em_float(e, mlirValueGetType(none), -0.0) : none;
}
/* Binds the axis to element `i`, or to the last one before `end`. */
static V bind_element(const Cum *c, V i, V end) {
    Kernel *k = c->k;
    Emit *e = k->e;
    V one = em_i64(e, 1), inside = em_cmpi(e, "slt", i, end);
    i = em_bin(e, "llvm.intr.smin", i, em_bin(e, "llvm.sub", end, one));
    if (c->reverse) {
        V last = em_bin(e, "llvm.sub", kernel_dim(k, loop_extent(k->x.ix, c->axis)), one);
        i = em_bin(e, "llvm.sub", last, i);
    }
    kernel_bind(k, c->axis, i);
    return inside;
}

/* ---- what a thread has of PREFIX_ITEMS elements for each */
typedef struct {
    V first, end;
    V sums[PREFIX_ITEMS]; /* prefixes among its own */
} Items;
static void read_items(const Cum *c, Items *t, V from, V end) {
    Kernel *k = c->k;
    Emit *e = k->e;
    V none = nothing(c), mine = em_bin(e, "llvm.mul", thread_number(k), em_i64(e, PREFIX_ITEMS));
    t->first = em_bin(e, "llvm.add", from, mine), t->end = end;
    for (uint32_t i = 0; i < PREFIX_ITEMS; i++) {
        kernel_enter(k);
        V inside = bind_element(c, em_bin(e, "llvm.add", t->first, em_i64(e, i)), end);
        t->sums[i] = em_select(e, inside, cum_operand(c), none);
        kernel_leave(k);
    }
    for (uint32_t i = 1; i < PREFIX_ITEMS; i++) t->sums[i] = cum_combine(c, t->sums[i - 1], t->sums[i]);
}
static void write_items(const Cum *c, const Items *t, const V *start) {
    Kernel *k = c->k;
    Emit *e = k->e;
    for (uint32_t i = 0; i < PREFIX_ITEMS; i++) {
        V at = em_bin(e, "llvm.add", t->first, em_i64(e, i)), before[WIDE_VALUES];
        memcpy(before, start, cum_values(c) * sizeof *start);
        V y = cum_widens(c) ? cum_combine(c, cum_value(c, start), t->sums[i]) : cum_add(c, before, t->sums[i]);
        If f = em_if(e, em_cmpi(e, "slt", at, t->end));
        kernel_enter(k);
        bind_element(c, at, t->end);
        cum_store(c, y);
        kernel_leave(k);
        em_else(e, &f, 0, NULL);
        em_if_end(e, &f, NULL, NULL);
    }
}
static void combine_threads(Emit *e, void *c, V *x, const V *y) { x[0] = cum_combine(c, x[0], y[0]); }
static void with_items(Cum *c, Items *t, V *carry) {
    V all, start[WIDE_VALUES],
        before = threads_prefix(c->k, t->sums[PREFIX_ITEMS - 1], nothing(c), combine_threads, c, &all);
    memcpy(start, carry, cum_values(c) * sizeof *carry);
    take(c, start, before);
    take(c, carry, all);
    write_items(c, t, start);
}
static void sum_items(Cum *c, Items *t, V *carry) { take(c, carry, t->sums[PREFIX_ITEMS - 1]); }
/* The elements [lo, hi), which the threads of a block share. */
typedef void WithItems(Cum *, Items *, V *carry);
static void along_block(Cum *c, V lo, V hi, V *carry, WithItems *rule) {
    Kernel *k = c->k;
    Emit *e = k->e;
    uint32_t values = cum_values(c);
    V next[WIDE_VALUES] = {{NULL}};
    Items t;
    For f = em_for(e, lo, hi, em_i64(e, (int64_t)k->block.group * PREFIX_ITEMS), values, carry);
    for (uint32_t v = 0; v < values; v++) next[v] = em_arg(&f.scope, v + 1);
    kernel_enter(k);
    read_items(c, &t, em_arg(&f.scope, 0), hi);
    rule(c, &t, next);
    kernel_leave(k);
    em_for_end(e, &f, next, carry);
}
static void along_thread(const Cum *c, V lo, V hi, V *carry) {
    Kernel *k = c->k;
    Emit *e = k->e;
    uint32_t values = cum_values(c);
    V next[WIDE_VALUES] = {{NULL}};
    For f = em_for(e, lo, hi, em_i64(e, 1), values, carry);
    for (uint32_t v = 0; v < values; v++) next[v] = em_arg(&f.scope, v + 1);
    kernel_enter(k);
    bind_element(c, em_arg(&f.scope, 0), hi);
    take(c, next, cum_operand(c));
    kernel_leave(k);
    em_for_end(e, &f, next, carry);
}

/* ---- parts: each leaves one value, or the wide form of a sum, in PREFIX_PART */
static uint32_t part_values(const Cum *c) { return cum_widens(c) ? cum_widens(c) : 1; }
static void join(Emit *e, void *user, V *x, const V *y) {
    const Cum *c = user;
    if (cum_widens(c))
        wide_join(e, c->d, y, x);
    else
        x[0] = cum_combine(c, x[0], y[0]);
}
static V part_word(const Cum *c, V item, uint32_t value) {
    Kernel *k = c->k;
    Emit *e = k->e;
    V at = em_bin(e, "llvm.add", em_bin(e, "llvm.mul", item, em_i64(e, PREFIX_PART)), em_i64(e, 8 * value));
    return em_gep(e, kernel_buffer(k, k->x.step->parts), at, e->i8);
}
static void part_range(const Cum *c, V *lo, V *hi) {
    Kernel *k = c->k;
    Emit *e = k->e;
    const Division *d = &k->x.step->division;
    V length = kernel_dim(k, d->length), n = kernel_dim(k, loop_extent(k->x.ix, c->axis));
    *lo = em_bin(e, "llvm.mul", kernel_index(k, ix_atom(k->x.ix, d->loop)), length);
    *hi = em_bin(e, "llvm.intr.smin", em_bin(e, "llvm.add", *lo, length), n);
}
void device_cumulative_parts(Kernel *k, V item, V unused) {
    Emit *e = k->e;
    Cum c = cum_of(k);
    V lo, hi, carry[WIDE_VALUES] = {{NULL}};
    part_range(&c, &lo, &hi);
    cum_start(&c, 1, carry);
    if (k->block.together) {
        along_block(&c, lo, hi, carry, sum_items);
        threads_merge(k, part_values(&c), carry, join, &c);
    } else
        along_thread(&c, lo, hi, carry);
    If one = by_one_thread(k);
    for (uint32_t i = 0; i < part_values(&c); i++) em_store(e, carry[i], part_word(&c, item, i), 8);
    by_one_thread_end(k, &one);
}
/* The carry after all parts of the row before this one. */
static void before_part(Cum *c, V item, V *carry) {
    Kernel *k = c->k;
    Emit *e = k->e;
    uint32_t values = part_values(c);
    bool shared = k->block.together;
    V part = kernel_index(k, ix_atom(k->x.ix, k->x.step->division.loop)), next[WIDE_VALUES] = {{NULL}},
      other[WIDE_VALUES] = {{NULL}};
    V rows = kernel_dim(k, k->x.step->division.items), first = shared ? thread_number(k) : em_i64(e, 0);
    V row = em_bin(e, "llvm.sub", item, em_bin(e, "llvm.mul", part, rows));
    For f = em_for(e, first, part, em_i64(e, shared ? k->block.group : 1), values, carry);
    V at = em_bin(e, "llvm.add", em_bin(e, "llvm.mul", em_arg(&f.scope, 0), rows), row);
    for (uint32_t i = 0; i < values; i++) {
        next[i] = em_arg(&f.scope, i + 1);
        other[i] = em_load(e, mlirValueGetType(carry[i]), part_word(c, at, i), 8);
    }
    join(e, c, next, other);
    em_for_end(e, &f, next, carry);
    if (shared) threads_merge(k, values, carry, join, c);
}
void device_cumulative(Kernel *k, V item, V unused) {
    Cum c = cum_of(k);
    V lo, hi, carry[WIDE_VALUES] = {{NULL}};
    if (!k->block.together && !k->x.step->parts) {
        cum_row(&c);
        return;
    }
    cum_start(&c, 1, carry);
    lo = em_i64(k->e, 0), hi = kernel_dim(k, loop_extent(k->x.ix, c.axis));
    if (k->x.step->parts) part_range(&c, &lo, &hi), before_part(&c, item, carry);
    if (k->block.together)
        along_block(&c, lo, hi, carry, with_items);
    else
        cum_along(&c, lo, hi, carry);
}
