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
    for (uint32_t i = 0; i + 1 < p->dot->tile.turns; i++) {
        Held h;
        stage_begin(p, em_i64(p->e, i), turns, &h);
        stage_end(p, em_i64(p->e, i), &h);
    }
}
/* Those of the turns [from, to), of `turns`. */
static void add_turns(const Product *p, V from, V to, V turns, uint32_t n, V *sums) {
    Emit *e = p->e;
    V next[TILE_SUMS];
    For f = em_for(e, from, to, em_i64(e, 1), n, sums);
    kernel_enter(p->k);
    for (uint32_t i = 0; i < n; i++) next[i] = em_arg(&f.scope, i + 1);
    V turn = em_arg(&f.scope, 0), later = plus(p, turn, em_i64(e, p->dot->tile.turns - 1));
    Held h;
    stage_wait(p, false);
    stage_begin(p, later, turns, &h);
    product_multiply(p, stage_slot(p, turn), next);
    stage_end(p, later, &h);
    kernel_leave(p->k);
    em_for_end(e, &f, next, sums);
}
static void clear(const Product *p, uint32_t n, V *sums) {
    for (uint32_t i = 0; i < n; i++) sums[i] = gemm_zero(p->e, p->acc, 1);
}
/* Blocks of them; their sums are added to wide forms in the thread's own memory. */
static void add_blocks(const Product *p, V turns, uint32_t n, V *sums) {
    Emit *e = p->e;
    V block = em_i64(e, p->dot->block / p->dot->tile.terms), at[TILE_SUMS];
    uint32_t bytes = wide_bytes(p->acc, n);
    MlirBlock was = kernel_at(p->k, 0);
    V wide = em_alloca(e, bytes, 8);
    e->block = was;
    for (uint32_t i = 0; i < n; i++) at[i] = em_gep(e, wide, em_i64(e, (int64_t)i * wide_values(p->acc)), e->f64);
    gemm_clear(e, wide, bytes);
    For f = em_for(e, em_i64(e, 0), turns, block, 0, NULL);
    kernel_enter(p->k);
    clear(p, n, sums);
    V from = em_arg(&f.scope, 0), to = em_bin(e, "llvm.intr.smin", plus(p, from, block), turns);
    add_turns(p, from, to, turns, n, sums);
    for (uint32_t i = 0; i < n; i++) gemm_widen(e, p->acc, at[i], sums[i]);
    kernel_leave(p->k);
    em_for_end(e, &f, NULL, NULL);
    clear(p, n, sums);
    for (uint32_t i = 0; i < n; i++) sums[i] = gemm_narrow(e, p->acc, at[i], sums[i]);
}
static void add_terms(const Product *p, uint32_t n, V *sums) {
    V turns = kernel_dim(p->k, dot_blocks(p->k->x.plan, p->step->dot->k, p->dot->tile.terms));
    bring_first(p, turns);
    clear(p, n, sums);
    if (p->dot->block)
        add_blocks(p, turns, n, sums);
    else
        add_turns(p, em_i64(p->e, 0), turns, turns, n, sums);
    stage_wait(p, true);
}

/* ---- results */
static V extent_of(const Product *p, uint32_t role) { return kernel_dim(p->k, p->dot->loops[role].extent); }
static void finish(const Product *p, V row, V column, V sum) {
    Kernel *k = p->k;
    Emit *e = p->e;
    V inside = em_bin(e, "llvm.and", em_cmpi(e, "slt", row, extent_of(p, DOT_ROWS)),
                      em_cmpi(e, "slt", column, extent_of(p, DOT_COLUMNS)));
    If f = em_if(e, inside);
    kernel_enter(k);
    for (uint32_t r = DOT_ROWS; r <= DOT_COLUMNS; r++)
        grid_bind(k, p->dot->loops[r].at, p->dot->loops[r].n, p->dot->loops[r].extent, r == DOT_ROWS ? row : column);
    Reg y = kernel_convert(k, reg(sum, true, k->x.depth), p->acc, p->step->dot->acc);
    eval_remember(&k->x, p->step->e->out.at[0], p->result, dot_result(k, p->step->dot->acc, y));
    kernel_stores(k);
    kernel_leave(k);
    em_else(e, &f, 0, NULL);
    em_if_end(e, &f, NULL, NULL);
}
static void finish_slab(const Product *p, uint32_t slab, const V *sums) {
    Emit *e = p->e;
    uint32_t columns = p->dot->tile.columns;
    slab_store(p, slab, sums);
    threads_meet(p->k);
    For f =
        em_for(e, thread_number(p->k), em_i64(e, (int64_t)slab_rows(p) * columns), em_i64(e, TILE_THREADS), 0, NULL);
    kernel_enter(p->k);
    V row = over(p, em_arg(&f.scope, 0), columns), column = rest(p, em_arg(&f.scope, 0), columns);
    V m = em_load(e, em_memory_type(e, p->acc), slab_at(p, row, column), dtype_bytes(p->acc));
    finish(p, plus(p, p->first[0], slab_row(p, slab, row)), plus(p, p->first[1], column), em_to_register(e, p->acc, m));
    kernel_leave(p->k);
    em_for_end(e, &f, NULL, NULL);
    threads_meet(p->k);
}
static void write_tile(const Product *p) {
    V sums[TILE_SUMS];
    uint32_t n = product_sums(p);
    assert(n <= TILE_SUMS);
    add_terms(p, n, sums);
    for (uint32_t i = 0; i < product_slabs(p); i++) finish_slab(p, i, sums);
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
/* Neighbouring units share columns. */
void device_dot(Kernel *k, V unit, V end) {
    Emit *e = k->e;
    const DeviceDot *d = k->x.step->dot->device;
    Product p = {.k = k, .e = e, .step = k->x.step, .dot = d, .acc = k->x.step->dot->acc};
    if (d->form == DOT_MMA && dtype_info[d->as].kind != DK_FLOAT) p.acc = DT_i32;
    V rows = tiles_along(&p, 0), columns = tiles_along(&p, 1), other = em_bin(e, "llvm.udiv", unit, rows);
    p.first[0] = times(&p, em_bin(e, "llvm.urem", unit, rows), d->tile.rows);
    p.first[1] = times(&p, em_bin(e, "llvm.urem", other, columns), d->tile.columns);
    V batch = em_bin(e, "llvm.udiv", other, columns);
    grid_bind(k, d->loops[DOT_BATCHES].at, d->loops[DOT_BATCHES].n, d->loops[DOT_BATCHES].extent, batch);
    for (uint32_t side = 0; side < 2; side++) dot_device_index(k->x.plan, k->x.step, side, p.index[side]);
    p.shared = threads_share(k, shared_bytes(&p));
    k->lane = 0, k->x.level = 0, k->rows = false;
    step_at(k->x.plan, k->x.step, k->x.step->e->out.at[0], p.result);
    write_tile(&p);
}
