#include "../cost.h"
#include "../plan/dot.h"
#include "gemm.h"
#include "grid.h"
#include "point.h"
#include "threads.h"
#include <assert.h>

/* A block of threads computes a tile of ROWS × COLUMNS elements, of which each thread has a square of them in
   registers. The terms come in blocks: all threads together read those of both operands into shared memory, then each
   multiplies what it needs. Indices beyond the operands are moved inside, and terms beyond the last are 0. */

enum { TILE_THREADS = 256, PAD = 4, MOST_SQUARE = 16 };
typedef struct {
    Kernel *k;
    Emit *e;
    const Step *step;
    const DeviceDot *dot;
    Dtype acc;
    __typeof__(((DeviceDot *)0)->tile) tile;
    V first[2];            /* row and column of the tile */
    V shared[2];           /* [TILE_TERMS][rows + PAD], [TILE_TERMS][columns + PAD] */
    Ix index[2][MAX_RANK]; /* of the operands */
    Ix result[MAX_RANK];
} Product;

static V plus(const Product *p, V a, V b) { return em_bin(p->e, "llvm.add", a, b); }
static V times(const Product *p, V a, int64_t n) { return em_bin(p->e, "llvm.mul", a, em_i64(p->e, n)); }
static V div(const Product *p, V a, int64_t n) { return em_bin(p->e, "llvm.udiv", a, em_i64(p->e, n)); }
static V mod(const Product *p, V a, int64_t n) { return em_bin(p->e, "llvm.urem", a, em_i64(p->e, n)); }

/* ---- loops */
static void bind_role(const Product *p, uint32_t role, V at) {
    grid_bind(p->k, p->dot->loops[role].at, p->dot->loops[role].n, p->dot->loops[role].extent, at);
}
static V extent_of(const Product *p, uint32_t role) { return kernel_dim(p->k, p->dot->loops[role].extent); }
/* The last index of n, at least 0. */
static V clamped(const Product *p, V at, V n) {
    V last = em_bin(p->e, "llvm.sub", n, em_i64(p->e, 1));
    return em_bin(p->e, "llvm.intr.smin", at, last);
}

/* ---- terms */
static uint32_t length_of(const Product *p, uint32_t side) { return side ? p->tile.columns : p->tile.rows; }
static V place(const Product *p, uint32_t side, V term, V at) {
    V word = plus(p, times(p, term, length_of(p, side) + PAD), at);
    return em_gep(p->e, p->shared[side], word, em_memory_type(p->e, p->acc));
}
/* One element of an operand, at a row or column and a term that may be beyond the last. */
static V element(const Product *p, uint32_t side, V at, V term, V terms) {
    Kernel *k = p->k;
    Emit *e = p->e;
    uint32_t role = side ? DOT_COLUMNS : DOT_ROWS;
    kernel_enter(k);
    bind_role(p, role, clamped(p, at, extent_of(p, role)));
    grid_bind(k, p->dot->summed, p->dot->nsummed, p->step->dot->k, clamped(p, term, terms));
    Val v = p->step->e->in.at[side];
    V x = reg_v(eval_value(&k->x, v, p->index[side]));
    kernel_leave(k);
    x = gemm_convert(e, val_array(k->x.plan->cx, v)->dtype, p->acc, x);
    return em_select(e, em_cmpi(e, "slt", term, terms), x, gemm_zero(e, p->acc, 1));
}
/* The threads' share of an operand's next TILE_TERMS terms, into shared memory. */
static void stage(const Product *p, uint32_t side, V from, V terms) {
    uint32_t length = length_of(p, side), each_thread = length * TILE_TERMS / TILE_THREADS;
    bool along = p->dot->along_terms[side];
    for (uint32_t i = 0; i < each_thread; i++) {
        V number = plus(p, thread_number(p->k), em_i64(p->e, (int64_t)i * TILE_THREADS));
        V term = along ? mod(p, number, TILE_TERMS) : div(p, number, length);
        V at = along ? div(p, number, TILE_TERMS) : mod(p, number, length);
        V x = element(p, side, plus(p, p->first[side], at), plus(p, from, term), terms);
        em_store(p->e, em_to_memory(p->e, p->acc, x), place(p, side, term, at), dtype_bytes(p->acc));
    }
}
static void read_part(const Product *p, uint32_t side, uint32_t term, V first, V *to) {
    uint32_t n = side ? p->tile.wide : p->tile.high;
    for (uint32_t i = 0; i < n; i++) {
        V at = place(p, side, em_i64(p->e, term), plus(p, first, em_i64(p->e, i)));
        V m = em_load(p->e, em_memory_type(p->e, p->acc), at, dtype_bytes(p->acc));
        to[i] = em_to_register(p->e, p->acc, m);
    }
}
/* Where the thread's part begins in the tile. */
static V own_row(const Product *p) {
    return times(p, div(p, thread_number(p->k), p->tile.columns / p->tile.wide), p->tile.high);
}
static V own_column(const Product *p) {
    return times(p, mod(p, thread_number(p->k), p->tile.columns / p->tile.wide), p->tile.wide);
}
static void multiply(const Product *p, V row, V column, V *sums) {
    V a[MOST_SQUARE] = {{NULL}}, b[MOST_SQUARE] = {{NULL}};
    for (uint32_t t = 0; t < TILE_TERMS; t++) {
        read_part(p, 0, t, row, a);
        read_part(p, 1, t, column, b);
        for (uint32_t i = 0; i < p->tile.high; i++)
            for (uint32_t j = 0; j < p->tile.wide; j++) {
                V *sum = &sums[i * p->tile.wide + j];
                *sum = gemm_fma(p->e, p->acc, a[i], b[j], *sum);
            }
    }
}
static void add_terms(const Product *p, V row, V column, V *sums) {
    Emit *e = p->e;
    Kernel *k = p->k;
    uint32_t n = p->tile.high * p->tile.wide;
    V terms = kernel_dim(k, p->step->dot->k), next[MOST_SQUARE] = {{NULL}};
    For f = em_for(e, em_i64(e, 0), terms, em_i64(e, TILE_TERMS), n, sums);
    kernel_enter(k);
    for (uint32_t i = 0; i < n; i++) next[i] = em_arg(&f.scope, i + 1);
    for (uint32_t side = 0; side < 2; side++) stage(p, side, em_arg(&f.scope, 0), terms);
    threads_meet(k);
    multiply(p, row, column, next);
    threads_meet(k);
    kernel_leave(k);
    em_for_end(e, &f, next, sums);
}

/* ---- results */
static void finish(const Product *p, V row, V column, V sum) {
    Kernel *k = p->k;
    Emit *e = p->e;
    V inside = em_bin(e, "llvm.and", em_cmpi(e, "slt", row, extent_of(p, DOT_ROWS)),
                      em_cmpi(e, "slt", column, extent_of(p, DOT_COLUMNS)));
    If f = em_if(e, inside);
    kernel_enter(k);
    bind_role(p, DOT_ROWS, row);
    bind_role(p, DOT_COLUMNS, column);
    eval_remember(&k->x, p->step->e->out.at[0], p->result, dot_result(k, p->acc, reg(sum, true, k->x.depth)));
    kernel_stores(k);
    kernel_leave(k);
    em_else(e, &f, 0, NULL);
    em_if_end(e, &f, NULL, NULL);
}
static void write_tile(const Product *p) {
    V sums[MOST_SQUARE], row = own_row(p), column = own_column(p);
    uint32_t n = p->tile.high * p->tile.wide;
    assert(n <= MOST_SQUARE);
    for (uint32_t i = 0; i < n; i++) sums[i] = gemm_zero(p->e, p->acc, 1);
    add_terms(p, row, column, sums);
    for (uint32_t i = 0; i < n; i++) {
        V r = plus(p, plus(p, p->first[0], row), em_i64(p->e, i / p->tile.wide));
        V c = plus(p, plus(p, p->first[1], column), em_i64(p->e, i % p->tile.wide));
        finish(p, r, c, sums[i]);
    }
}

/* ---- units: tiles */
static V tiles_along(const Product *p, uint32_t role, uint32_t length) {
    return kernel_dim(p->k, dot_blocks(p->k->x.plan, p->dot->loops[role].extent, length));
}
/* Neighbouring units share columns. */
void device_dot(Kernel *k, V unit, V end) {
    Emit *e = k->e;
    const DeviceDot *d = k->x.step->dot->device;
    Product p = {.k = k, .e = e, .step = k->x.step, .dot = d, .acc = k->x.step->dot->acc, .tile = d->tile};
    V rows = tiles_along(&p, DOT_ROWS, p.tile.rows), columns = tiles_along(&p, DOT_COLUMNS, p.tile.columns);
    V rest = em_bin(e, "llvm.udiv", unit, rows);
    p.first[0] = times(&p, em_bin(e, "llvm.urem", unit, rows), p.tile.rows);
    p.first[1] = times(&p, em_bin(e, "llvm.urem", rest, columns), p.tile.columns);
    bind_role(&p, DOT_BATCHES, em_bin(e, "llvm.udiv", rest, columns));
    for (uint32_t side = 0; side < 2; side++) {
        dot_device_index(k->x.plan, k->x.step, side, p.index[side]);
        p.shared[side] = threads_share(k, (int64_t)TILE_TERMS * (length_of(&p, side) + PAD) * dtype_bytes(p.acc));
    }
    k->lane = 0, k->x.level = 0, k->rows = false;
    step_at(k->x.plan, k->x.step, k->x.step->e->out.at[0], p.result);
    write_tile(&p);
}
