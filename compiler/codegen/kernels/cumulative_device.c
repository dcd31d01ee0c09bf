#include "../cost.h"
#include "cumulative_device.h"
#include "point.h"
#include "threads.h"
#include "wide.h"
#include <assert.h>

/* Prefixes on a device. Where neighbouring threads are neighbours beside the axis, or rows are short, threads take the
   elements of rows one after the other (cumulative_rows.c). Else threads share a row (cumulative_block.c). Long rows
   are divided into parts. If their number is known, what a block has of one stays in its registers: it leaves what that
   gives for others and waits for what all parts before it have left (cumulative_wait.c). Else one kernel reduces each
   part, and a second one begins each with what all parts before it give. Elements are counted in the order of the
   prefixes. */

V cum_nothing(const Cum *c) {
    Emit *e = c->k->e;
    V none = point_identity(e, c->e->prim, c->d, 1);
    return cum_widens(c) ? em_float(e, mlirValueGetType(none), -0.0) : none;
}

/* ---- parts: each leaves one value, or the wide form of a sum, in PREFIX_PART; `row`: of those of the item */
void cum_join(Emit *e, void *user, V *x, const V *y) {
    const Cum *c = user;
    if (cum_widens(c))
        wide_join(e, c->d, y, x);
    else
        x[0] = cum_combine(c, x[0], y[0]);
}
static V part_word(const Cum *c, V item, uint32_t row, uint32_t value) {
    Kernel *k = c->k;
    Emit *e = k->e;
    uint32_t bytes = 8 * cum_part_values(c), within = row * bytes + 8 * value;
    assert(bytes <= PREFIX_PART);
    V at = em_add(e, em_mul(e, item, em_i64(e, cum_rows(c) * bytes)), em_i64(e, within));
    return em_gep(e, kernel_buffer(k, k->x.step->parts), at, e->i8);
}
static void part_range(const Cum *c, V *lo, V *hi) {
    Kernel *k = c->k;
    Emit *e = k->e;
    const Division *d = &k->x.step->division;
    V length = kernel_dim(k, d->length), n = kernel_dim(k, loop_extent(k->x.ix, c->axis));
    *lo = em_mul(e, kernel_index(k, ix_atom(k->x.ix, d->loop)), length);
    *hi = em_least(e, em_add(e, *lo, length), n);
}
/* The carries of all rows. */
void cum_start_all(const Cum *c, V *carry) {
    for (uint32_t r = 0; r < cum_rows(c); r++) cum_start(c, 1, carry + r * cum_values(c));
}
void device_cumulative_parts(Kernel *k, V item, V unused) {
    Emit *e = k->e;
    Cum c = cum_of(k);
    V lo, hi, carry[PREFIX_ROWS * WIDE_VALUES] = {{NULL}};
    part_range(&c, &lo, &hi);
    cum_start_all(&c, carry);
    if (k->block.together) {
        cum_along_block(&c, lo, hi, carry, false);
        threads_merge(k, cum_part_values(&c), carry, cum_join, &c);
    } else
        cum_along_thread(&c, lo, hi, carry, false);
    If one = by_one_thread(k);
    for (uint32_t r = 0; r < cum_rows(&c); r++)
        for (uint32_t i = 0; i < cum_part_values(&c); i++)
            em_store(e, carry[r * cum_values(&c) + i], part_word(&c, item, r, i), 8);
    by_one_thread_end(k, &one);
}
/* Adds the results of the parts [from, to), `n` at a time, to the carries; `items` of one part; `row`: the item in the
   first. */
typedef struct {
    V from, to, apart, items, row;
    uint32_t n;
} Before;
static void add_parts(Cum *c, const Before *b, V *carry) {
    Kernel *k = c->k;
    Emit *e = k->e;
    uint32_t values = cum_values(c), own = cum_part_values(c), n = b->n * cum_rows(c), carried = cum_rows(c) * values;
    V next[PREFIX_ROWS * WIDE_VALUES] = {{NULL}}, x[PARTS_READ * PREFIX_ROWS][WIDE_VALUES] = {{{NULL}}};
    For f = em_for(e, b->from, b->to, em_mul(e, b->apart, em_i64(e, b->n)), carried, carry);
    for (uint32_t v = 0; v < carried; v++) next[v] = em_arg(&f.scope, v + 1);
    for (uint32_t i = 0; i < n; i++) {
        V part = em_add(e, em_arg(&f.scope, 0), em_mul(e, b->apart, em_i64(e, i / cum_rows(c))));
        V at = em_add(e, em_mul(e, part, b->items), b->row);
        for (uint32_t v = 0; v < own; v++)
            x[i][v] = em_load(e, mlirValueGetType(carry[v]), part_word(c, at, i % cum_rows(c), v), 8);
    }
    for (uint32_t i = 0; i < n; i++) cum_add_part(c, next + i % cum_rows(c) * values, x[i]);
    em_for_end(e, &f, next, carry);
}
/* Threads have different rounding errors. */
static void from_one(const Cum *c, V *carry) {
    V x = carry[0];
    cum_start(c, 1, carry);
    carry[0] = x;
}
/* The carries after all parts of the rows before this one. */
static void before_part(Cum *c, V item, V *carry) {
    Kernel *k = c->k;
    Emit *e = k->e;
    bool shared = k->block.together;
    V part = kernel_index(k, ix_atom(k->x.ix, k->x.step->division.loop)), n = em_i64(e, PARTS_READ);
    V items = kernel_dim(k, k->x.step->division.items), row = em_sub(e, item, em_mul(e, part, items));
    Before b = {em_i64(e, 0), part, em_i64(e, 1), items, row, 1};
    if (shared) {
        b.from = member_number(k), b.apart = em_i64(e, k->block.group);
        add_parts(c, &b, carry);
        threads_merge(k, cum_part_values(c), carry, cum_join, c);
        if (!cum_widens(c)) from_one(c, carry);
        return;
    }
    b.to = em_sub(e, part, em_bin(e, "llvm.urem", part, n)), b.n = PARTS_READ;
    add_parts(c, &b, carry);
    b.from = b.to, b.to = part, b.n = 1;
    add_parts(c, &b, carry);
}
void device_cumulative(Kernel *k, V item, V unused) {
    Cum c = cum_of(k);
    assert(!k->x.step->columns || cum_values(&c) == cum_part_values(&c));
    V lo = em_i64(k->e, 0), hi = kernel_dim(k, loop_extent(k->x.ix, c.axis)),
      carry[PREFIX_ROWS * WIDE_VALUES] = {{NULL}};
    cum_start_all(&c, carry);
    c.item = item;
    if (k->x.step->parts) part_range(&c, &lo, &hi);
    if (k->x.step->parts && !k->x.step->division.waits) before_part(&c, item, carry);
    if (k->block.chunks)
        cum_along_chunks(&c, lo);
    else if (k->block.together)
        cum_along_block(&c, lo, hi, carry, true);
    else
        cum_along_thread(&c, lo, hi, carry, true);
}
