#include "dot_device.h"
#include "../cost.h"
#include "gemm.h"
#include "grid.h"
#include "threads.h"
#include "wide.h"
#include <assert.h>

/* A block of threads computes a tile of rows × columns elements, in registers. The terms come in turns: while those of
   one turn are multiplied (dot_multiply.c), the next are brought into shared memory by all threads together
   (dot_stage.c). Indices beyond the operands are moved inside, and terms beyond the last are 0. In the end the sums go
   through shared memory, so that neighbouring threads finish neighbouring elements, all by one piece of code. */

/* ---- the terms */
static void bring_first(const Product *p, V turns) {
    if (p->dot->boxed) {
        ring_open(p, turns);
        return;
    }
    for (uint32_t i = 0; i < stage_ahead(p); i++) {
        Held h;
        V turn = em_add(p->e, p->from, em_i64(p->e, i));
        stage_begin(p, turn, turns, &h);
        stage_end(p, turn, &h);
    }
}
/* Those of a turn. */
static void add_staged(const Product *p, V turn, V turns, V *sums) {
    V later = em_add(p->e, turn, em_i64(p->e, stage_ahead(p)));
    Held h;
    stage_wait(p, false);
    stage_begin(p, later, turns, &h);
    product_multiply(p, stage_slot(p, turn), sums);
    stage_end(p, later, &h);
}
static void add_boxes(const Product *p, V turn, V turns, V *sums) {
    ring_wait(p, turn);
    product_multiply(p, stage_slot(p, turn), sums);
    ring_turn(p, turn, turns);
}
/* Those of a turn, of which the first step has been read; afterwards that of the next turn. */
static void add_read(const Product *p, V turn, V turns, V *sums, V *read) {
    Emit *e = p->e;
    V last = em_bin(e, "llvm.sub", turns, em_i64(e, 1)), after = em_add(e, turn, em_i64(e, 1)), next[MOST_READ];
    Held none;
    product_multiply_read(p, stage_slot(p, turn), read, sums);
    stage_wait(p, false);
    stage_begin(p, em_add(e, turn, em_i64(e, p->dot->tile.turns)), turns, &none);
    product_read(p, stage_slot(p, em_bin(e, "llvm.intr.smin", after, last)), next);
    product_multiply_last(p, read, sums);
    memcpy(read, next, product_reads(p) * sizeof *read);
}
/* The first step is read before the loop. */
static void add_turns_read(const Product *p, V turns, uint32_t n, V *sums) {
    Emit *e = p->e;
    uint32_t all = n + product_reads(p);
    V first[TILE_SUMS + MOST_READ], next[TILE_SUMS + MOST_READ];
    Held none;
    stage_wait(p, false);
    stage_begin(p, em_add(e, p->from, em_i64(e, stage_ahead(p))), turns, &none);
    memcpy(first, sums, n * sizeof *sums);
    product_read(p, stage_slot(p, p->from), first + n);
    For f = em_for(e, p->from, turns, em_i64(e, 1), all, first);
    kernel_enter(p->k);
    for (uint32_t i = 0; i < all; i++) next[i] = em_arg(&f.scope, i + 1);
    add_read(p, em_arg(&f.scope, 0), turns, next, next + n);
    kernel_leave(p->k);
    em_for_end(e, &f, next, first);
    memcpy(sums, first, n * sizeof *sums);
}
/* Would ptxas write out the turns? It takes all registers for it then and, with two blocks on a multiprocessor, spills
   some: of f64 products of up to 200 terms 4 to 216 bytes. */
static bool stays_rolled(const DeviceDot *d) { return d->sums == DT_f64; }
/* Those of the turns [from, to); there are none after `turns`. */
static void add_turns(const Product *p, V from, V to, V turns, uint32_t n, V *sums) {
    Emit *e = p->e;
    V next[TILE_SUMS];
    For f = em_for(e, from, to, em_i64(e, 1), n, sums);
    f.rolled = stays_rolled(p->dot);
    kernel_enter(p->k);
    for (uint32_t i = 0; i < n; i++) next[i] = em_arg(&f.scope, i + 1);
    (p->dot->boxed ? add_boxes : add_staged)(p, em_arg(&f.scope, 0), turns, next);
    kernel_leave(p->k);
    em_for_end(e, &f, next, sums);
    product_end(p, sums);
}
static void clear(const Product *p, uint32_t n, V *sums) {
    for (uint32_t i = 0; i < n; i++) sums[i] = gemm_zero(p->e, p->acc, 1);
}
/* Blocks of them; their sums are added to wide forms in the thread's own memory, a few at a time: ptxas reads as many
   of those ahead as it has registers for, and spilled 4 to 116 bytes. */
enum { WIDE_AT_ONCE = 8 };
static void add_blocks(const Product *p, V turns, uint32_t n, V *sums) {
    Emit *e = p->e;
    V block = em_i64(e, p->dot->block / p->dot->tile.terms), at[TILE_SUMS];
    uint32_t bytes = wide_bytes(p->acc, n);
    MlirBlock was = kernel_at(p->k, 0);
    V wide = em_alloca(e, bytes, 8);
    e->block = was;
    for (uint32_t i = 0; i < n; i++) at[i] = em_gep(e, wide, em_i64(e, (int64_t)i * wide_values(p->acc)), e->f64);
    gemm_clear(e, wide, bytes);
    For f = em_for(e, p->from, turns, block, 0, NULL);
    kernel_enter(p->k);
    clear(p, n, sums);
    V from = em_arg(&f.scope, 0), to = em_bin(e, "llvm.intr.smin", em_add(p->e, from, block), turns);
    add_turns(p, from, to, turns, n, sums);
    for (uint32_t i = 0; i < n; i++) {
        if (i && i % WIDE_AT_ONCE == 0) threads_meet_in_warp(p->k);
        gemm_widen(e, p->acc, at[i], sums[i]);
    }
    kernel_leave(p->k);
    em_for_end(e, &f, NULL, NULL);
    clear(p, n, sums);
    for (uint32_t i = 0; i < n; i++) sums[i] = gemm_narrow(e, p->acc, at[i], sums[i]);
}
static void add_terms(Product *p, uint32_t n, V *sums) {
    V turns = kernel_dim(p->k, dot_blocks(p->k->x.plan, p->dot->k, p->dot->tile.terms));
    if (p->part.ptr) {
        p->from = times(p, p->part, p->dot->part_turns);
        turns = em_bin(p->e, "llvm.intr.smin", turns, em_add(p->e, p->from, em_i64(p->e, p->dot->part_turns)));
    }
    bring_first(p, turns);
    clear(p, n, sums);
    if (p->dot->block)
        add_blocks(p, turns, n, sums);
    else if (product_reads(p))
        add_turns_read(p, turns, n, sums);
    else
        add_turns(p, p->from, turns, turns, n, sums);
    if (p->dot->boxed)
        ring_close(p);
    else
        stage_wait(p, true);
}

/* ---- results */
static V extent_of(const Product *p, uint32_t role) { return kernel_dim(p->k, p->dot->loops[role].extent); }
/* The address of a sum of a part. */
static V part_at(const Product *p, V part, V row, V column) {
    Emit *e = p->e;
    V at = em_add(p->e, em_bin(e, "llvm.mul", part, extent_of(p, DOT_BATCHES)), p->batch);
    at = em_add(p->e, em_bin(e, "llvm.mul", at, extent_of(p, DOT_ROWS)), row);
    at = em_add(p->e, em_bin(e, "llvm.mul", at, extent_of(p, DOT_COLUMNS)), column);
    return em_gep(e, kernel_buffer(p->k, p->step->parts), at, em_memory_type(e, p->acc));
}
/* Elements of a row of the result, whose columns begin at a multiple of their number. */
typedef struct {
    const Product *p;
    const V *sums;
    Pending *all; /* by store, then by element */
    uint32_t i, n;
} Run;
static void evaluate(Kernel *k, void *user) {
    Run *r = user;
    const Product *p = r->p;
    Dtype acc = p->step->dot->acc;
    Ix at[MAX_RANK];
    step_at(k->x.plan, p->step, p->step->e->out.at[0], at);
    Reg y = kernel_convert(k, reg(r->sums[r->i], true, k->x.depth), p->acc, acc);
    eval_remember(&k->x, p->step->e->out.at[0], at, dot_result(k, p->dot->e, acc, y));
    k->in_run = 1 + r->i;
    r->n = kernel_pending(k, r->all + r->i, p->run);
    k->in_run = 0;
}
static void store(const Product *p, V row, V column, const V *sums) {
    Kernel *k = p->k;
    Indices *x = k->x.ix;
    DotLoops rows = p->dot->loops[DOT_ROWS], columns = p->dot->loops[DOT_COLUMNS];
    Run r = {p, sums, arena_new(k->x.plan->arena, Pending, p->run * (p->step->stores.n + 1)), 0, 0};
    Atom last = columns.n ? columns.at[columns.n - 1] : 0;
    if (p->run > 1) columns.at[columns.n - 1] = p->dot->runs;
    grid_bind(k, rows.at, rows.n, rows.extent, row);
    grid_bind(k, columns.at, columns.n, columns.extent, over(p, column, p->run));
    if (p->run == 1) evaluate(k, &r);
    for (; p->run > 1 && r.i < p->run; r.i++) {
        Ix at = ix_add(x, ix_scale(x, ix_atom(x, p->dot->runs), p->run), ix_dim(x, r.i));
        kernel_substituted(k, last, at, evaluate, &r);
    }
    kernel_store_all(k, r.all, r.n * p->run);
}
static uint32_t run_align(const Product *p) {
    uint32_t bytes = p->run * dtype_bytes(p->acc);
    return bytes < DEVICE_ALIGN ? bytes : DEVICE_ALIGN;
}
/* Does the element exist? All of a tile that is whole do. */
static V within(const Product *p, V row, V column) {
    V at[2] = {row, column}, inside = em_int(p->e, p->e->i1, 1);
    for (uint32_t side = 0; side < 2; side++) {
        uint32_t role = side ? DOT_COLUMNS : DOT_ROWS;
        Dim extent = p->dot->loops[role].extent;
        if (dim_mod(p->k->x.plan->cx->types, extent, tile_length(p, side)) == 0) continue;
        inside = em_bin(p->e, "llvm.and", inside, em_cmpi(p->e, "slt", at[side], extent_of(p, role)));
    }
    return inside;
}
static void finish(const Product *p, V row, V column, V run) {
    Kernel *k = p->k;
    Emit *e = p->e;
    V inside = within(p, row, column);
    V sums[TILE_RUN];
    for (uint32_t i = 0; i < p->run; i++) sums[i] = em_to_register(e, p->acc, p->run > 1 ? em_extract(e, run, i) : run);
    If f = em_if(e, inside);
    kernel_enter(k);
    if (p->part.ptr)
        em_store(e, run, part_at(p, p->part, row, column), run_align(p));
    else
        store(p, row, column, sums);
    kernel_leave(k);
    em_else(e, &f, 0, NULL);
    em_if_end(e, &f, NULL, NULL);
}
/* How many runs of a slab a thread finishes at the same time: the results of cheap ones leave together. */
static uint32_t runs_at_once(const Product *p, uint32_t runs) {
    uint32_t n = FINISH_RUNS;
    while (n > 1 && (n * p->run * p->step->cost > TILE_RUN_COST || runs % (n * TILE_THREADS) != 0)) n /= 2;
    return n;
}
static void finish_slab(const Product *p, uint32_t slab, const V *sums) {
    Emit *e = p->e;
    uint32_t runs = p->dot->tile.columns / p->run, all = slab_rows(p) * runs, n = runs_at_once(p, all);
    V row[FINISH_RUNS], column[FINISH_RUNS], run[FINISH_RUNS];
    MlirType t = em_vec(e, em_memory_type(e, p->acc), p->run);
    slab_store(p, slab, sums);
    threads_meet(p->k);
    For f = em_for(e, thread_number(p->k), em_i64(e, all), em_i64(e, (int64_t)n * TILE_THREADS), 0, NULL);
    kernel_enter(p->k);
    for (uint32_t i = 0; i < n; i++) {
        V at = em_add(e, em_arg(&f.scope, 0), em_i64(e, (int64_t)i * TILE_THREADS));
        row[i] = over(p, at, runs), column[i] = times(p, rest(p, at, runs), p->run);
        if (p->dot->across) row[i] = rest(p, at, slab_rows(p)), column[i] = over(p, at, slab_rows(p));
        run[i] = em_load(e, t, slab_at(p, row[i], column[i]), run_align(p));
    }
    for (uint32_t i = 0; i < n; i++) {
        V at = em_add(e, p->first[0], slab_row(p, slab, row[i]));
        finish(p, at, em_add(e, p->first[1], column[i]), run[i]);
    }
    kernel_leave(p->k);
    em_for_end(e, &f, NULL, NULL);
    threads_meet(p->k);
}
void product_finish(const Product *p, const V *sums) {
    for (uint32_t i = 0; i < product_slabs(p); i++) finish_slab(p, i, sums);
}
static void write_tile(Product *p) {
    V sums[TILE_SUMS];
    uint32_t n = product_sums(p);
    assert(n <= TILE_SUMS);
    add_terms(p, n, sums);
    product_finish(p, sums);
}

/* ---- units: tiles */
static V tiles_along(const Product *p, uint32_t side) {
    Dim extent = p->dot->loops[side ? DOT_COLUMNS : DOT_ROWS].extent;
    return kernel_dim(p->k, dot_blocks(p->k->x.plan, extent, tile_length(p, side)));
}
static int64_t shared_bytes(const Product *p) {
    int64_t terms = (staged_bytes(p, 0) + staged_bytes(p, 1)) * p->dot->tile.turns, slab = slab_bytes(p);
    return terms > slab ? terms : slab;
}
static Product product(Kernel *k) {
    Step *s = k->x.step;
    Product p = {.k = k, .e = k->e, .step = s, .dot = s->dot->device, .acc = s->dot->device->sums};
    p.run = s->dot->device->run;
    k->lane = 0, k->x.level = 0, k->rows = false;
    return p;
}
static void bind_batch(Product *p, V batch) {
    p->batch = batch;
    grid_bind(p->k, p->dot->loops[DOT_BATCHES].at, p->dot->loops[DOT_BATCHES].n, p->dot->loops[DOT_BATCHES].extent,
              batch);
}
/* The row and column of tile number `at`. What is computed at the same time is near each other both ways, so that it
   shares what it reads: tiles are numbered in bands of rows, column by column. */
static void find_tile(Product *p, V at, V rows, V columns) {
    Emit *e = p->e;
    uint32_t most = p->dot->tile.columns < TILE_WIDE ? TILE_BAND : WIDE_BAND;
    V band = times(p, columns, most), first = times(p, em_bin(e, "llvm.udiv", at, band), most);
    V high = em_bin(e, "llvm.intr.smin", em_bin(e, "llvm.sub", rows, first), em_i64(e, most));
    V within = em_bin(e, "llvm.urem", at, band);
    V row = em_add(p->e, first, em_bin(e, "llvm.urem", within, high)), column = em_bin(e, "llvm.udiv", within, high);
    p->first[0] = times(p, row, p->dot->tile.rows);
    p->first[1] = times(p, column, p->dot->tile.columns);
}
Product product_of(Kernel *k, V unit) {
    Emit *e = k->e;
    Product p = product(k);
    V rows = tiles_along(&p, 0), columns = tiles_along(&p, 1), tiles = em_bin(e, "llvm.mul", rows, columns);
    find_tile(&p, em_bin(e, "llvm.urem", unit, tiles), rows, columns);
    V batch = em_bin(e, "llvm.udiv", unit, tiles), batches = extent_of(&p, DOT_BATCHES);
    if (k->x.step->parts)
        p.part = em_bin(e, "llvm.udiv", batch, batches), batch = em_bin(e, "llvm.urem", batch, batches);
    p.from = em_i64(e, 0);
    bind_batch(&p, batch);
    for (uint32_t side = 0; side < 2; side++) dot_device_index(k->x.plan, k->x.step, side, p.index[side]);
    return p;
}
static void write_product(Kernel *k, V unit) {
    Product p = product_of(k, unit);
    p.shared = threads_share(k, shared_bytes(&p));
    if (p.dot->boxed) p.barriers = threads_share(k, ring_bytes(&p));
    write_tile(&p);
}
/* Does a tile need all registers that a thread may have? Without this products of f32 with symbolic sizes of which a
   multiprocessor does two blocks at a time spilled 16 to 44 bytes, a convolution in wide tiles 56, and 19 kernels for
   attention, not 11. Wide tiles whose rows and columns are single loops spill with it, 8 to 16 bytes, and so do tiles of
   single blocks, 4 to 16. */
static bool is_tight(const DeviceDot *d) {
    bool places = d->loops[DOT_ROWS].n > 1 || d->loops[DOT_COLUMNS].n > 1;
    return d->attention || (d->form == DOT_FMA && d->blocks > 1) || (d->tile.columns == TILE_WIDE && places);
}
void device_dot(Kernel *k, V unit, V end) {
    const DeviceDot *d = k->x.step->dot->device;
    V thread = k->block.thread;
    if (is_tight(d)) k->block.thread = thread_number_again(k);
    if (d->attention)
        device_attention(k, unit, end);
    else
        write_product(k, unit);
    k->block.thread = thread;
}

/* ---- parts */
/* The sum of an element's parts, in order. */
static V combined(const Product *p, V row, V column) {
    Emit *e = p->e;
    uint32_t wide = wide_values(p->acc), n = wide ? wide : 1;
    V sums[WIDE_VALUES] = {gemm_zero(e, p->acc, 1)}, next[WIDE_VALUES];
    if (wide) wide_zero(e, p->acc, 1, sums);
    For f = em_for(e, em_i64(e, 0), em_i64(e, p->dot->parts), em_i64(e, 1), n, sums);
    kernel_enter(p->k);
    for (uint32_t i = 0; i < n; i++) next[i] = em_arg(&f.scope, i + 1);
    V at = part_at(p, em_arg(&f.scope, 0), row, column);
    V x = em_to_register(e, p->acc, em_load(e, em_memory_type(e, p->acc), at, dtype_bytes(p->acc)));
    if (wide)
        wide_add(e, p->acc, x, next);
    else
        next[0] = gemm_add(e, p->acc, next[0], x);
    kernel_leave(p->k);
    em_for_end(e, &f, next, sums);
    return wide ? wide_value(e, p->acc, sums) : sums[0];
}
/* A unit is an element for each thread. */
void device_dot_combine(Kernel *k, V unit, V end) {
    Emit *e = k->e;
    Product p = product(k);
    p.run = 1;
    V at = em_add(p.e, times(&p, unit, TILE_THREADS), thread_number(k)), columns = extent_of(&p, DOT_COLUMNS);
    If f = em_if(e, em_cmpi(e, "slt", at, kernel_dim(k, dot_device_elements(k->x.plan, p.dot))));
    kernel_enter(k);
    V other = em_bin(e, "llvm.udiv", at, columns), rows = extent_of(&p, DOT_ROWS);
    V row = em_bin(e, "llvm.urem", other, rows), column = em_bin(e, "llvm.urem", at, columns);
    bind_batch(&p, em_bin(e, "llvm.udiv", other, rows));
    V sum = combined(&p, row, column);
    store(&p, row, column, &sum);
    kernel_leave(k);
    em_else(e, &f, 0, NULL);
    em_if_end(e, &f, NULL, NULL);
}
