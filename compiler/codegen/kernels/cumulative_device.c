#include "../cost.h"
#include "cumulative_device.h"
#include "point.h"
#include "threads.h"
#include "wide.h"

/* Prefixes on a device. Where neighbouring threads are neighbours beside the axis, or rows are short, a thread takes
   the elements of a row one after the other, or of a few neighbouring rows for wide accesses, and reads several ahead. Else
   threads share a row (cumulative_block.c). Long rows are divided into parts: one kernel reduces each, a second one begins
   each with what all parts before it give. Elements are counted in the order of the prefixes. */

void cum_take(const Cum *c, V *carry, V x) {
    if (cum_widens(c))
        wide_add(c->k->e, c->d, x, carry);
    else
        cum_add(c, carry, x);
}
V cum_nothing(const Cum *c) {
    Emit *e = c->k->e;
    V none = point_identity(e, c->e->prim, c->d, 1);
    return cum_widens(c) ? em_float(e, mlirValueGetType(none), -0.0) : none;
}

/* ---- rows of a thread: those of neighbouring columns, several elements of each at a time */
typedef struct {
    const Cum *c;
    Atom first;         /* the first of the elements */
    uint32_t n, at, of; /* of each row; the one of all */
    V x[PREFIX_HELD];   /* by element, then by row */
    Pending *all;       /* by store, then as they are */
    uint32_t stores;
} Ahead;
static uint32_t rows_of(const Cum *c) { return c->k->x.step->columns ? c->k->x.step->columns : 1; }
static void each_ahead(Ahead *a, Inside *inside) {
    const Cum *c = a->c;
    Kernel *k = c->k;
    Step *s = k->x.step;
    Indices *x = k->x.ix;
    Dim last = dim_sub(k->x.plan->cx->types, loop_extent(x, c->axis), 1);
    Ix *axes = s->axes;
    for (a->at = 0; a->at < a->of; a->at++) {
        uint32_t row = a->at % rows_of(c);
        Ix at = ix_add(x, ix_atom(x, a->first), ix_dim(x, a->at / rows_of(c)));
        if (c->reverse) at = ix_sub(x, ix_dim(x, last), at);
        if (s->columns) {
            Ix column = ix_add(x, ix_scale(x, ix_atom(x, s->runs), s->columns), ix_dim(x, row));
            s->axes = kernel_axes(k, s->run_loop, column);
            k->in_run = 1 + row;
        }
        kernel_substituted(k, c->axis, at, inside, a);
        s->axes = axes, k->in_run = 0;
    }
}
static void read_ahead(Kernel *k, void *user) {
    Ahead *a = user;
    a->x[a->at] = cum_operand(a->c);
}
static void finish_ahead(Kernel *k, void *user) {
    Ahead *a = user;
    cum_remember(a->c, a->x[a->at]);
    a->stores = kernel_pending(k, a->all + a->at, a->of);
}
/* The prefixes of a row from its carry. Sums of floats: within these elements, plus the wide form of everything before. */
static void prefixes_of_row(Ahead *a, uint32_t row, V *carry) {
    const Cum *c = a->c;
    Emit *e = c->k->e;
    V before = {NULL}, sum = {NULL};
    if (cum_widens(c)) before = cum_value(c, carry), sum = point_identity(e, c->e->prim, c->d, 1);
    for (uint32_t i = row; i < a->of; i += rows_of(c)) {
        if (cum_widens(c)) {
            sum = cum_combine(c, sum, a->x[i]);
            a->x[i] = cum_combine(c, before, sum);
        } else
            a->x[i] = cum_add(c, carry, a->x[i]);
    }
    if (cum_widens(c)) cum_take(c, carry, sum);
}
/* `n` elements at a time. */
static void ahead(const Cum *c, uint32_t n, V lo, V hi, V *carry, bool store) {
    Kernel *k = c->k;
    Emit *e = k->e;
    Types *ts = k->x.plan->cx->types;
    uint32_t rows = rows_of(c), values = cum_values(c);
    V next[PREFIX_ROWS * WIDE_VALUES] = {{NULL}};
    Ahead a = {.c = c, .n = n, .of = n * rows};
    a.first = atom_loop(k->x.ix, dim_sub(ts, loop_extent(k->x.ix, c->axis), n - 1));
    For f = em_for(e, lo, hi, em_i64(e, n), rows * values, carry);
    for (uint32_t v = 0; v < rows * values; v++) next[v] = em_arg(&f.scope, v + 1);
    kernel_enter(k);
    kernel_bind(k, a.first, em_arg(&f.scope, 0));
    each_ahead(&a, read_ahead);
    for (uint32_t r = 0; r < rows; r++) prefixes_of_row(&a, r, next + r * values);
    if (store) {
        a.all = arena_new(k->x.plan->arena, Pending, a.of * (k->x.step->stores.n + 1));
        each_ahead(&a, finish_ahead);
        kernel_store_all(k, a.all, a.stores * a.of);
    }
    kernel_leave(k);
    em_for_end(e, &f, next, carry);
}
static void along_thread(const Cum *c, V lo, V hi, V *carry, bool store) {
    Kernel *k = c->k;
    Emit *e = k->e;
    uint32_t n = k->x.step->terms;
    Dim extent = loop_extent(k->x.ix, c->axis);
    V mid = hi, turns = em_sub(e, hi, lo);
    bool rest = n > 1 && dim_mod(k->x.plan->cx->types, extent, n) != 0; /* of the last part: others are whole turns */
    if (rest) mid = em_sub(e, hi, em_bin(e, "llvm.urem", turns, em_i64(e, n)));
    ahead(c, n, lo, mid, carry, store);
    if (rest) ahead(c, 1, mid, hi, carry, store);
}

/* ---- parts: each leaves one value, or the wide form of a sum, in PREFIX_PART; `row`: of those of the item */
static uint32_t part_values(const Cum *c) { return cum_widens(c) ? cum_widens(c) : 1; }
static void join(Emit *e, void *user, V *x, const V *y) {
    const Cum *c = user;
    if (cum_widens(c))
        wide_join(e, c->d, y, x);
    else
        x[0] = cum_combine(c, x[0], y[0]);
}
static V part_word(const Cum *c, V item, uint32_t row, uint32_t value) {
    Kernel *k = c->k;
    Emit *e = k->e;
    uint32_t bytes = 8 * part_values(c), within = row * bytes + 8 * value;
    V at = em_add(e, em_mul(e, item, em_i64(e, rows_of(c) * bytes)), em_i64(e, within));
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
static void start(const Cum *c, V *carry) {
    for (uint32_t r = 0; r < rows_of(c); r++) cum_start(c, 1, carry + r * cum_values(c));
}
void device_cumulative_parts(Kernel *k, V item, V unused) {
    Emit *e = k->e;
    Cum c = cum_of(k);
    V lo, hi, carry[PREFIX_ROWS * WIDE_VALUES] = {{NULL}};
    part_range(&c, &lo, &hi);
    start(&c, carry);
    if (k->block.together) {
        cum_along_block(&c, lo, hi, carry, false);
        threads_merge(k, part_values(&c), carry, join, &c);
    } else
        along_thread(&c, lo, hi, carry, false);
    If one = by_one_thread(k);
    for (uint32_t r = 0; r < rows_of(&c); r++)
        for (uint32_t i = 0; i < part_values(&c); i++)
            em_store(e, carry[r * cum_values(&c) + i], part_word(&c, item, r, i), 8);
    by_one_thread_end(k, &one);
}
/* Adds the results of the parts [from, to), `n` at a time, to the carries; `items` of one part; `row`: the item in the
   first. */
typedef struct {
    V from, to, apart, items, row;
    uint32_t n;
} Before;
static void add_part(const Cum *c, V *carry, const V *part) {
    if (cum_widens(c))
        wide_join(c->k->e, c->d, part, carry);
    else
        cum_take(c, carry, part[0]);
}
static void add_parts(Cum *c, const Before *b, V *carry) {
    Kernel *k = c->k;
    Emit *e = k->e;
    uint32_t values = cum_values(c), own = part_values(c), n = b->n * rows_of(c), carried = rows_of(c) * values;
    V next[PREFIX_ROWS * WIDE_VALUES] = {{NULL}}, x[PARTS_READ * PREFIX_ROWS][WIDE_VALUES];
    For f = em_for(e, b->from, b->to, em_mul(e, b->apart, em_i64(e, b->n)), carried, carry);
    for (uint32_t v = 0; v < carried; v++) next[v] = em_arg(&f.scope, v + 1);
    for (uint32_t i = 0; i < n; i++) {
        V part = em_add(e, em_arg(&f.scope, 0), em_mul(e, b->apart, em_i64(e, i / rows_of(c))));
        V at = em_add(e, em_mul(e, part, b->items), b->row);
        for (uint32_t v = 0; v < own; v++)
            x[i][v] = em_load(e, mlirValueGetType(carry[v]), part_word(c, at, i % rows_of(c), v), 8);
    }
    for (uint32_t i = 0; i < n; i++) add_part(c, next + i % rows_of(c) * values, x[i]);
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
        threads_merge(k, part_values(c), carry, join, c);
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
    V lo = em_i64(k->e, 0), hi = kernel_dim(k, loop_extent(k->x.ix, c.axis)),
      carry[PREFIX_ROWS * WIDE_VALUES] = {{NULL}};
    start(&c, carry);
    if (k->x.step->parts) part_range(&c, &lo, &hi), before_part(&c, item, carry);
    if (k->block.together)
        cum_along_block(&c, lo, hi, carry, true);
    else
        along_thread(&c, lo, hi, carry, true);
}
