#include "../cost.h"
#include "cumulative_device.h"
#include "point.h"
#include "threads.h"
#include "wide.h"
#include <assert.h>

/* Prefixes along the lane loop, which the threads of an item share. In one turn a thread has a few runs of neighbouring
   elements, for wide accesses: neighbouring threads of a warp have neighbouring runs, a thread's runs are as many apart
   as these have together, and warps have as many neighbouring runs as their threads have. All of them are read before
   the first is combined, so that memory brings them at the same time. A thread combines the elements of each run, then
   what the threads have of all runs is scanned, and the carry goes along the row. Elements are counted in the order of
   the prefixes. */

/* Which runs are there? */
typedef enum {
    ALL_RUNS,
    WHOLE_RUNS, /* a run is there or not */
    PARTS_OF_RUNS
} Presence;
typedef struct {
    Cum *c;
    Presence presence;
    V first, end;       /* the thread's first run; where they end: the number of a run, or else of an element */
    V x[PREFIX_HELD];   /* elements by run, then what is combined of them */
    Pending *all;       /* by store, then by element of a part of them */
    uint32_t at, of, n; /* the element, of so many in that part; stores of one */
} Turn;
static uint32_t runs_of(const Turn *t) { return t->c->k->x.step->run_turns; }
static V *run_at(Turn *t, uint32_t run) { return t->x + run * t->c->k->x.step->run; }

/* Is an element there? */
static V is_there(const Turn *t, uint32_t i) {
    Kernel *k = t->c->k;
    Emit *e = k->e;
    uint32_t run = k->x.step->run;
    V at = em_add(e, t->first, em_i64(e, (int64_t)(i / run) * WARP));
    if (t->presence == PARTS_OF_RUNS) at = em_add(e, em_mul(e, at, em_i64(e, run)), em_i64(e, i % run));
    return em_less(e, at, t->end);
}
/* How many are there together. */
static uint32_t at_once(const Turn *t) {
    const Step *s = t->c->k->x.step;
    return t->presence == ALL_RUNS ? s->run * s->run_turns : t->presence == WHOLE_RUNS ? s->run : 1;
}
/* The thread's elements [from, from + n). */
static void each_element(Turn *t, uint32_t from, uint32_t n, Inside *inside) {
    const Cum *c = t->c;
    Kernel *k = c->k;
    const Step *s = k->x.step;
    Indices *x = k->x.ix;
    Dim last = dim_sub(k->x.plan->cx->types, loop_extent(x, c->axis), 1);
    for (t->at = from; t->at < from + n; t->at++) {
        uint32_t in_run = t->at % s->run;
        Dim place = (Dim)(t->at / s->run) * WARP * s->run + in_run;
        Ix at = ix_add(x, ix_scale(x, ix_atom(x, s->runs), s->run), ix_dim(x, place));
        if (c->reverse) at = ix_sub(x, ix_dim(x, last), at), in_run = s->run - 1 - in_run;
        if (t->presence != PARTS_OF_RUNS) k->in_run = 1 + in_run;
        kernel_substituted(k, c->axis, at, inside, t);
        k->in_run = 0;
    }
}
static void read_element(Kernel *k, void *user) {
    Turn *t = user;
    t->x[t->at] = cum_operand(t->c);
}
static void finish_element(Kernel *k, void *user) {
    Turn *t = user;
    cum_remember(t->c, t->x[t->at]);
    t->n = kernel_pending(k, t->all + t->at % t->of, t->of);
}
/* What is not there is not read. */
static void read_turn(Turn *t) {
    Kernel *k = t->c->k;
    Emit *e = k->e;
    uint32_t n = at_once(t), all = runs_of(t) * k->x.step->run;
    V none[PREFIX_HELD];
    assert(all <= PREFIX_HELD);
    for (uint32_t i = 0; i < n; i++) none[i] = cum_nothing(t->c);
    for (uint32_t i = 0; i < all; i += n) {
        if (n == all && t->presence == ALL_RUNS) {
            each_element(t, 0, n, read_element);
            return;
        }
        If f = kernel_if(k, is_there(t, i));
        each_element(t, i, n, read_element);
        kernel_leave(k);
        em_else(e, &f, n, t->x + i);
        em_if_end(e, &f, none, t->x + i);
    }
}
static void store_turn(Turn *t) {
    Kernel *k = t->c->k;
    uint32_t all = runs_of(t) * k->x.step->run;
    t->of = at_once(t);
    t->all = arena_new(k->x.plan->arena, Pending, t->of * (k->x.step->stores.n + 1));
    for (uint32_t i = 0; i < all; i += t->of) {
        V there = k->block.exists;
        if (t->presence != ALL_RUNS) there = there.ptr ? em_both(k->e, there, is_there(t, i)) : is_there(t, i);
        If f = {0};
        if (there.ptr) f = kernel_if(k, there);
        each_element(t, i, t->of, finish_element);
        kernel_store_all(k, t->all, t->n * t->of);
        if (there.ptr) kernel_if_end(k, &f);
    }
}

/* ---- what is done with the elements of a turn */
static void combine_runs(Turn *t) {
    uint32_t run = t->c->k->x.step->run;
    for (uint32_t r = 0; r < runs_of(t); r++)
        for (uint32_t i = 1; i < run; i++) run_at(t, r)[i] = cum_combine(t->c, run_at(t, r)[i - 1], run_at(t, r)[i]);
}
static void combine_threads(Emit *e, void *c, V *x, const V *y) { x[0] = cum_combine(c, x[0], y[0]); }
/* The prefixes of a run, from the carry before it. */
static void finish_run(const Cum *c, const V *start, V *x, uint32_t n) {
    V before[WIDE_VALUES], base = cum_widens(c) ? cum_value(c, start) : (V){NULL};
    for (uint32_t i = 0; i < n; i++) {
        memcpy(before, start, cum_values(c) * sizeof *start);
        x[i] = cum_widens(c) ? cum_combine(c, base, x[i]) : cum_add(c, before, x[i]);
    }
}
static void with_prefixes(Turn *t, V *carry) {
    const Cum *c = t->c;
    uint32_t run = c->k->x.step->run;
    V all, start[WIDE_VALUES], before[MOST_PREFIXES];
    assert(run && runs_of(t) <= MOST_PREFIXES);
    for (uint32_t r = 0; r < runs_of(t); r++) before[r] = run_at(t, r)[run - 1];
    threads_prefixes(c->k, runs_of(t), before, cum_nothing(c), combine_threads, t->c, &all);
    if (c->k->x.step->division.waits) cum_before_part(t->c, all, carry);
    for (uint32_t r = 0; r < runs_of(t); r++) {
        memcpy(start, carry, cum_values(c) * sizeof *carry);
        cum_take(c, start, before[r]);
        finish_run(c, start, run_at(t, r), run);
    }
    cum_take(c, carry, all);
    store_turn(t);
}
static void add_up(Turn *t, V *carry) {
    uint32_t run = t->c->k->x.step->run;
    assert(run);
    V all = run_at(t, 0)[run - 1];
    for (uint32_t r = 1; r < runs_of(t); r++) all = cum_combine(t->c, all, run_at(t, r)[run - 1]);
    cum_take(t->c, carry, all);
}
/* The number of the thread's first run in a turn. */
static V first_run(Kernel *k) {
    Emit *e = k->e;
    V thread = member_number(k), warp = em_i64(e, WARP);
    V before = em_mul(e, em_bin(e, "llvm.udiv", thread, warp), em_i64(e, (int64_t)k->x.step->run_turns * WARP));
    return em_add(e, before, em_bin(e, "llvm.urem", thread, warp));
}
static void in_turns(Cum *c, Presence presence, V lo, V hi, V *carry, bool store) {
    Kernel *k = c->k;
    Emit *e = k->e;
    const Step *s = k->x.step;
    uint32_t values = cum_values(c);
    V next[WIDE_VALUES] = {{NULL}}, run = em_i64(e, s->run);
    Turn t = {.c = c, .presence = presence};
    t.end = presence == PARTS_OF_RUNS ? hi : em_bin(e, "llvm.udiv", hi, run);
    For f = em_for(e, lo, hi, em_i64(e, (int64_t)k->block.group * s->run_turns * s->run), values, carry);
    for (uint32_t v = 0; v < values; v++) next[v] = em_arg(&f.scope, v + 1);
    kernel_enter(k);
    t.first = em_add(e, em_bin(e, "llvm.udiv", em_arg(&f.scope, 0), run), first_run(k));
    kernel_bind(k, s->runs, t.first);
    read_turn(&t);
    combine_runs(&t);
    (store ? with_prefixes : add_up)(&t, next);
    kernel_leave(k);
    em_for_end(e, &f, next, carry);
}
void cum_along_block(Cum *c, V lo, V hi, V *carry, bool store) {
    Kernel *k = c->k;
    Emit *e = k->e;
    Types *ts = k->x.plan->cx->types;
    const Step *s = k->x.step;
    Dim n = loop_extent(k->x.ix, c->axis), length = s->parts ? s->division.length : n;
    Dim all = (Dim)k->block.group * s->run_turns * s->run;
    bool whole = !dim_is_const(length) || length >= all,
         rest = dim_mod(ts, n, all) != 0 || dim_mod(ts, length, all) != 0;
    V mid = lo;
    if (whole) {
        V left = em_bin(e, "llvm.urem", em_sub(e, hi, lo), em_i64(e, all));
        mid = rest ? em_sub(e, hi, left) : hi;
        in_turns(c, ALL_RUNS, lo, mid, carry, store);
    }
    if (rest) in_turns(c, dim_mod(ts, n, s->run) == 0 ? WHOLE_RUNS : PARTS_OF_RUNS, mid, hi, carry, store);
}
