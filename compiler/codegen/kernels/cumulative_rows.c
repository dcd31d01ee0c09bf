#include "../cost.h"
#include "cumulative_device.h"
#include "point.h"
#include "threads.h"
#include "wide.h"
#include <assert.h>

/* Prefixes along another axis than the lanes, on a device: a thread has a few neighbouring rows for wide accesses and
   reads several elements of each ahead. It does all elements of a part of them or, where a block waits for the parts
   before its own, a chunk that stays in registers. */

typedef struct {
    const Cum *c;
    Atom first;         /* the first of the elements */
    uint32_t n, at, of; /* of each row; the one of all */
    V x[PREFIX_HELD];   /* by element, then by row */
    Pending *all;       /* by store, then as they are */
    uint32_t stores;
} Ahead;
uint32_t cum_rows(const Cum *c) { return c->k->x.step->columns ? c->k->x.step->columns : 1; }
/* The elements [from, to). */
static void each_ahead(Ahead *a, uint32_t from, uint32_t to, Inside *inside) {
    const Cum *c = a->c;
    Kernel *k = c->k;
    Step *s = k->x.step;
    Indices *x = k->x.ix;
    Dim last = dim_sub(k->x.plan->cx->types, loop_extent(x, c->axis), 1);
    Ix *axes = s->axes;
    for (a->at = from; a->at < to; a->at++) {
        uint32_t row = a->at % cum_rows(c);
        uint32_t i = a->at / cum_rows(c);
        Ix at = ix_add(x, ix_atom(x, a->first), ix_dim(x, i));
        if (c->reverse) at = ix_sub(x, ix_dim(x, last), at);
        if (s->columns) {
            Ix column = ix_add(x, ix_scale(x, ix_atom(x, s->runs), s->columns), ix_dim(x, row));
            s->axes = kernel_axes(k, s->run_loop, column);
            k->in_run = 1 + row;
        }
        if (s->run) k->in_run = 1 + (c->reverse ? s->run - 1 - i : i); /* all of the row */
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
/* The prefixes of a row from its carry. Sums of floats: within these elements, plus the wide form of everything
   before. */
static void prefixes_of_row(Ahead *a, uint32_t row, V *carry) {
    const Cum *c = a->c;
    Emit *e = c->k->e;
    V before = {NULL}, sum = {NULL};
    if (cum_widens(c)) before = cum_value(c, carry), sum = point_identity(e, c->e->prim, c->d, 1);
    for (uint32_t i = row; i < a->of; i += cum_rows(c)) {
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
    uint32_t rows = cum_rows(c), values = cum_values(c);
    V next[PREFIX_ROWS * WIDE_VALUES] = {{NULL}};
    Ahead a = {.c = c, .n = n, .of = n * rows};
    a.first = atom_loop(k->x.ix, dim_sub(ts, loop_extent(k->x.ix, c->axis), n - 1));
    For f = em_for(e, lo, hi, em_i64(e, n), rows * values, carry);
    for (uint32_t v = 0; v < rows * values; v++) next[v] = em_arg(&f.scope, v + 1);
    kernel_enter(k);
    kernel_bind(k, a.first, em_arg(&f.scope, 0));
    each_ahead(&a, 0, a.of, read_ahead);
    for (uint32_t r = 0; r < rows; r++) prefixes_of_row(&a, r, next + r * values);
    if (store) {
        a.all = arena_new(k->x.plan->arena, Pending, a.of * (k->x.step->stores.n + 1));
        each_ahead(&a, 0, a.of, finish_ahead);
        kernel_store_all(k, a.all, a.stores * a.of);
    }
    kernel_leave(k);
    em_for_end(e, &f, next, carry);
}
void cum_along_thread(const Cum *c, V lo, V hi, V *carry, bool store) {
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

/* ---- chunks of a part that is in the registers of a block */
/* Binds the rows of the item, or the last ones in their place; are they there? NULL: yes. */
static V bind_rows(Kernel *k) {
    Emit *e = k->e;
    const Step *s = k->x.step;
    Atom loop = s->grid.loops[s->grid.nloops - 1];
    if (loop == s->runs) return (V){NULL};
    V at = kernel_index(k, ix_atom(k->x.ix, loop)), n = kernel_dim(k, loop_extent(k->x.ix, s->runs));
    kernel_bind(k, s->runs, em_least(e, at, em_sub(e, n, em_i64(e, 1))));
    return em_less(e, at, n);
}
/* Is an element of the rows there? */
static V is_there(const Ahead *a, V first, uint32_t i) {
    Kernel *k = a->c->k;
    return em_less(k->e, em_add(k->e, first, em_i64(k->e, i)), kernel_dim(k, loop_extent(k->x.ix, a->c->axis)));
}
static void read_chunk(Ahead *a, V first, bool rest) {
    Kernel *k = a->c->k;
    uint32_t rows = cum_rows(a->c);
    V none[PREFIX_ROWS];
    for (uint32_t r = 0; r < rows; r++) none[r] = cum_nothing(a->c);
    if (!rest) each_ahead(a, 0, a->of, read_ahead);
    for (uint32_t i = 0; i < a->n && rest; i++) {
        If f = kernel_if(k, is_there(a, first, i));
        each_ahead(a, i * rows, (i + 1) * rows, read_ahead);
        kernel_leave(k);
        em_else(k->e, &f, rows, a->x + i * rows);
        em_if_end(k->e, &f, none, a->x + i * rows);
    }
}
static void store_chunk(Ahead *a, V first, bool rest) {
    Kernel *k = a->c->k;
    uint32_t rows = cum_rows(a->c);
    a->all = arena_new(k->x.plan->arena, Pending, a->of * (k->x.step->stores.n + 1));
    each_ahead(a, 0, a->of, finish_ahead);
    if (!rest) kernel_store_all(k, a->all, a->stores * a->of);
    for (uint32_t i = 0; i < a->n && rest; i++) {
        If f = kernel_if(k, is_there(a, first, i));
        for (uint32_t s = 0; s < a->stores; s++) kernel_store_all(k, a->all + s * a->of + i * rows, rows);
        kernel_if_end(k, &f);
    }
}
void cum_along_chunks(Cum *c, V lo) {
    Kernel *k = c->k;
    Emit *e = k->e;
    const Step *s = k->x.step;
    uint32_t n = s->terms, rows = cum_rows(c);
    Dim extent = loop_extent(k->x.ix, c->axis);
    bool rest = dim_mod(k->x.plan->cx->types, extent, s->division.length) != 0; /* the last part is shorter */
    Ahead a = {.c = c, .n = n, .of = n * rows};
    V base[PREFIX_ROWS], first = em_add(e, lo, em_mul(e, chunk_number(k), em_i64(e, n)));
    a.first = atom_loop(k->x.ix, extent);
    assert(a.of >= rows && a.of <= sizeof a.x / sizeof *a.x);
    kernel_enter(k);
    V exists = bind_rows(k);
    kernel_bind(k, a.first, first);
    read_chunk(&a, first, rest);
    for (uint32_t i = rows; i < a.of; i++) a.x[i] = cum_combine(c, a.x[i - rows], a.x[i]);
    for (uint32_t r = 0; r < rows; r++) base[r] = a.x[a.of - rows + r];
    cum_before_chunks(c, base);
    for (uint32_t i = 0; i < a.of; i++) a.x[i] = cum_combine(c, base[i % rows], a.x[i]);
    If f = {0};
    if (exists.ptr) f = kernel_if(k, exists);
    store_chunk(&a, first, rest);
    if (exists.ptr) kernel_if_end(k, &f);
    kernel_leave(k);
}
