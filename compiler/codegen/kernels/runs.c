#include "runs.h"
#include "../cost.h"
#include "../eval/record.h"
#include "loops.h"
#include "reduce.h"
#include <assert.h>

/* All values, then all stores: on a device LLVM makes wide accesses of those of neighbouring elements, else those that
   lie beside each other are stored together. */

typedef struct {
    Pending *all;   /* by store, then by iteration */
    uint32_t i, of; /* the iteration */
    uint32_t n;     /* stores of one */
    Inside *inside;
} Run;
/* The elements of the runs that a thread does at once. */
static uint32_t rows_of(const Step *s) { return s->run_rows ? s->run_rows : 1; }
static uint32_t run_elements(const Step *s) { return s->run * s->run_turns * rows_of(s); }
static void enter_run(Kernel *k, const Run *r) {
    const Step *s = k->x.step;
    k->in_run = s->run && !s->narrow_run ? 1 + r->i % s->run : 0;
}
/* Reads what an element needs whatever values are, before a branch of a program separates it from its neighbours'
   reads. */
typedef struct {
    Kernel *k;
    const Eval *recorder;
} Reader;
static void read_always(void *user, Val v, const Ix *index, Ix address) {
    const Reader *r = user;
    if (v && plan_info(r->k->x.plan, v)->buf && !r->recorder->guard_id) eval_value(&r->k->x, v, index);
}
static void read_early(Kernel *k, void *user) {
    Step *s = k->x.step;
    Reader r = {.k = k};
    Eval *x = record(k->x.plan, s, read_always, &r);
    r.recorder = x;
    enter_run(k, user);
    each(Store, st, s->stores) {
        Ix index[MAX_RANK];
        step_at(k->x.plan, s, st->v, index);
        eval_value(x, st->v, index);
    }
    record(k->x.plan, NULL, NULL, NULL);
    k->in_run = 0;
}
static void evaluate(Kernel *k, void *user) {
    Run *r = user;
    const Step *s = k->x.step;
    enter_run(k, r);
    k->x.level = 0;
    if (s->reduces) reduce_stage(k), k->x.level = 1; /* only sums are stored */
    k->rows = s->reduces;
    r->n = kernel_pending(k, r->all + r->i, r->of);
    k->in_run = 0;
}
static Run run_of(const Kernel *k, uint32_t elements) {
    Pending *all = arena_new(k->x.plan->arena, Pending, elements * (k->x.step->stores.n + 1));
    return (Run){.all = all, .of = elements};
}
static void each_of_row(Kernel *k, void *user) {
    Run *r = user;
    const Step *s = k->x.step;
    Indices *x = k->x.ix;
    for (uint32_t i = 0; i < s->run * s->run_turns; i++, r->i++) {
        Dim place = (Dim)(i / s->run) * s->grid.threads * s->run + i % s->run;
        Ix at = ix_add(x, ix_scale(x, ix_atom(x, s->runs), s->run), ix_dim(x, place));
        kernel_substituted(k, s->run_loop, at, r->inside, r);
    }
}
static void each_of_runs(Kernel *k, Run *r, Inside *inside) {
    const Step *s = k->x.step;
    Indices *x = k->x.ix;
    r->i = 0, r->inside = inside;
    if (!s->run_rows) each_of_row(k, r);
    for (uint32_t i = 0; i < s->run_rows; i++) {
        Ix at = ix_add(x, ix_scale(x, ix_atom(x, s->row_runs), s->run_rows), ix_dim(x, i));
        kernel_substituted(k, s->row_loop, at, each_of_row, r);
    }
}
void kernel_whole_run(Kernel *k) {
    const Step *s = k->x.step;
    Run r = run_of(k, run_elements(s));
    if (!s->reduces && s->cost >= STDLIB_COST) each_of_runs(k, &r, read_early);
    each_of_runs(k, &r, evaluate);
    for (uint32_t i = 0; s->run_rows && i < r.n * r.of; i += s->run) kernel_stream(k, r.all + i, s->run);
    kernel_store_all(k, r.all, r.n * r.of);
}
/* The same one by one, as far as there are any. */
static void single_run(Kernel *k, V from, V n) {
    Emit *e = k->e;
    V to = em_bin(e, "llvm.intr.smin", em_bin(e, "llvm.add", from, em_i64(e, k->x.step->run)), n);
    For f = em_for(e, from, to, em_i64(e, 1), 0, NULL);
    kernel_enter(k);
    kernel_bind(k, k->x.step->run_loop, em_arg(&f.scope, 0));
    loops_stages(k);
    kernel_leave(k);
    em_for_end(e, &f, NULL, NULL);
}
static void single_elements(Kernel *k, V first, V n) {
    Emit *e = k->e;
    const Step *s = k->x.step;
    if (s->run_turns == 1) {
        single_run(k, first, n);
        return;
    }
    V apart = em_i64(e, (int64_t)s->grid.threads * s->run);
    V end = em_bin(e, "llvm.add", first, em_bin(e, "llvm.mul", apart, em_i64(e, s->run_turns)));
    For f = em_for(e, first, em_bin(e, "llvm.intr.smin", end, n), apart, 0, NULL);
    kernel_enter(k);
    single_run(k, em_arg(&f.scope, 0), n);
    kernel_leave(k);
    em_for_end(e, &f, NULL, NULL);
}
/* A block has run_turns times its threads' runs: neighbouring threads have neighbouring ones. */
static void bind_run(Kernel *k) {
    Emit *e = k->e;
    const Step *s = k->x.step;
    V item = kernel_index(k, ix_atom(k->x.ix, s->grid.loops[s->grid.nloops - 1])), n = em_i64(e, s->grid.threads);
    if (s->run_turns == 1) return;
    V block = em_bin(e, "llvm.udiv", item, n), more = em_i64(e, (int64_t)s->grid.threads * (s->run_turns - 1));
    kernel_bind(k, s->runs, em_bin(e, "llvm.add", item, em_bin(e, "llvm.mul", block, more)));
}
void kernel_runs(Kernel *k) {
    Emit *e = k->e;
    Step *s = k->x.step;
    Dim n = loop_extent(k->x.ix, s->run_loop),
        all = (Dim)s->run * (s->run_turns > 1 ? s->run_turns * s->grid.threads : 1);
    bind_run(k);
    if (dim_mod(k->x.plan->cx->types, n, all) == 0) {
        kernel_whole_run(k);
        return;
    }
    int64_t last = (int64_t)s->run * ((s->run_turns - 1) * s->grid.threads + 1);
    V run = em_i64(e, s->run), first = em_bin(e, "llvm.mul", kernel_index(k, ix_atom(k->x.ix, s->runs)), run);
    uint32_t least = k->least;
    If f = em_if(e, em_cmpi(e, "sle", em_bin(e, "llvm.add", first, em_i64(e, last)), kernel_dim(k, n)));
    kernel_enter(k);
    k->least = k->x.depth;
    kernel_whole_run(k);
    k->least = least;
    kernel_leave(k);
    em_else(e, &f, 0, NULL);
    kernel_enter(k);
    single_elements(k, first, kernel_dim(k, n));
    kernel_leave(k);
    em_if_end(e, &f, NULL, NULL);
}

void kernel_turns(Kernel *k, Atom loop, Ix first, uint32_t n) {
    const Step *s = k->x.step;
    Run r = run_of(k, n);
    assert(!s->reduces && s->levels == 1 && !s->run && !s->held.turns && !s->columns);
    for (; r.i < r.of; r.i++) {
        if (k->tile) k->tile_at = r.i;
        kernel_substituted(k, loop, ix_add(k->x.ix, first, ix_dim(k->x.ix, r.i)), evaluate, &r);
    }
    kernel_store_all(k, r.all, r.n * r.of);
}
