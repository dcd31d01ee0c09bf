#include "../cost.h"
#include "dot_device.h"
#include "gemm.h"
#include "threads.h"
#include <assert.h>
#include <mlir-c/BuiltinAttributes.h>
#include <mlir-c/BuiltinTypes.h>
#include <mlir-c/Dialect/LLVM.h>

/* Who multiplies what of a tile, and where the sums are.

   DOT_FMA: 16 × 16 threads, each of which has high × wide elements: up to 4 neighbours, and as many 64 further on.
   Tensor cores: 2 × 4 warps, each of which has a half of the rows and a quarter of the columns, in parts of 16 × 8
   (f64: 8 × 8). Of such a part lane l has the rows l / 4 (and 8 + l / 4) of the columns 2 (l % 4) and the next one.
   Warpgroups: 4 warps have 64 rows, and if these are all, a half of the columns (dot_warpgroup.c). */

enum {
    SIDE_THREADS = 16, /* threads along the rows, and along the columns */
    GROUP = 4,
    GROUP_ROWS = GROUP * SIDE_THREADS, /* also the most rows of a slab */
    PART_ROWS = 16,                    /* of tensor cores */
    PART_COLUMNS = 8,
    TERM_BYTES = 32, /* of its terms */
    F64_ROWS = 8,
    F64_TERMS = 4,
    MOST_PARTS = 8,
    PART_OPERANDS = 10 /* registers: 4 of A, 2 of B, 4 of the sums */
};
static bool by_threads(const Product *p) { return p->dot->form == DOT_FMA; }
/* Has a warp 16 rows and all columns of them, or of its warpgroup? */
static bool by_rows(const Product *p) { return p->dot->warpgroups || p->dot->held; }
static uint32_t warps(const Product *p, uint32_t side) {
    uint32_t all = TILE_THREADS / WARP, high = by_rows(p) ? p->dot->tile.rows / PART_ROWS : 2;
    assert(high);
    return side ? all / high : high;
}
static uint32_t part_rows(const Product *p) { return p->dot->form == DOT_MMA ? PART_ROWS : F64_ROWS; }
/* Parts of a warp along a side; elements of a thread. */
static uint32_t parts(const Product *p, uint32_t side) {
    if (by_threads(p)) return tile_length(p, side) / SIDE_THREADS;
    return tile_length(p, side) / warps(p, side) / (side ? PART_COLUMNS : part_rows(p));
}
static uint32_t part_sums(const Product *p) { return by_threads(p) ? 1 : part_rows(p) / 4; }
uint32_t product_sums(const Product *p) { return parts(p, 0) * parts(p, 1) * part_sums(p); }

static V lane(const Product *p) { return rest(p, thread_number(p->k), WARP); }
/* Which rows or columns are the warp's; where they begin in the tile. */
static V warp_number(const Product *p, uint32_t side) {
    V warp = over(p, thread_number(p->k), WARP);
    uint32_t n = warps(p, by_rows(p) ? 0 : 1);
    return (side == 1) == by_rows(p) ? over(p, warp, n) : rest(p, warp, n);
}
static V warp_first(const Product *p, uint32_t side) {
    return times(p, warp_number(p, side), tile_length(p, side) / warps(p, side));
}
/* The first of the thread's group of rows or columns. */
static V thread_first(const Product *p, uint32_t side) {
    V at = side ? rest(p, thread_number(p->k), SIDE_THREADS) : over(p, thread_number(p->k), SIDE_THREADS);
    uint32_t n = parts(p, side);
    return times(p, at, n < GROUP ? n : GROUP);
}

/* ---- each thread its own */
static void read_group(const Product *p, uint32_t side, V slot, uint32_t term, V first, uint32_t n, V *to) {
    Emit *e = p->e;
    uint32_t bytes = dtype_bytes(p->acc);
    MlirType t = em_memory_type(e, p->acc);
    V m =
        em_load(e, em_vec(e, t, n), staged_at(p, side, slot, first, em_i64(e, term)), n * bytes < 16 ? n * bytes : 16);
    for (uint32_t i = 0; i < n; i++) to[i] = em_to_register(e, p->acc, n > 1 ? em_extract(e, m, i) : m);
}
static void read_own(const Product *p, uint32_t side, V slot, uint32_t term, V *to) {
    uint32_t all = parts(p, side), n = all < GROUP ? all : GROUP;
    V first = thread_first(p, side);
    for (uint32_t i = 0; i < all; i += n)
        read_group(p, side, slot, term, em_add(p->e, first, em_i64(p->e, i / n * GROUP_ROWS)), n, to + i);
}
static void multiply_threads(const Product *p, V slot, V *sums) {
    uint32_t high = parts(p, 0), wide = parts(p, 1);
    for (uint32_t t = 0; t < p->dot->tile.terms; t++) {
        V a[MOST_PARTS] = {{NULL}}, b[MOST_PARTS] = {{NULL}};
        read_own(p, 0, slot, t, a);
        read_own(p, 1, slot, t, b);
        for (uint32_t i = 0; i < high; i++)
            for (uint32_t j = 0; j < wide; j++)
                sums[i * wide + j] = gemm_fma(p->e, p->acc, a[i], b[j], sums[i * wide + j]);
    }
}

/* ---- tensor cores */
static MlirType several(Emit *e, MlirType t, uint32_t n) {
    MlirType all[4] = {t, t, t, t};
    return mlirLLVMStructTypeLiteralGet(e->mlir, n, all, false);
}
static void take(Emit *e, V all, MlirType t, uint32_t n, V *to) {
    for (int64_t i = 0; i < n; i++) {
        Attr at = {"position", mlirDenseI64ArrayGet(e->mlir, 1, &i)};
        to[i] = em_1(e, "llvm.extractvalue", t, 1, &all, 1, &at);
    }
}
/* What lane l reads the address of: matrix l / 8 of four of 8 rows of 16 bytes. Those of A are two of rows for the
   first half of the terms, then for the second; those of B two halves of the terms of columns, then of the next 8. */
static void read_parts(const Product *p, uint32_t side, V slot, uint32_t part, uint32_t step, uint32_t n, V *to) {
    Emit *e = p->e;
    bool along = staged_along(p, side);
    uint32_t half_terms = TERM_BYTES / dtype_bytes(p->dot->as) / 2, first_term = 2 * step * half_terms;
    V matrix = rest(p, over(p, lane(p), 8), 4), own = rest(p, lane(p), 8);
    V low = rest(p, matrix, 2), high = over(p, matrix, 2);
    V at = em_add(p->e, warp_first(p, side), em_i64(e, part * (side ? PART_COLUMNS : PART_ROWS)));
    at = em_add(p->e, at, times(p, side ? high : low, 8));
    V term = em_add(p->e, em_i64(e, first_term), times(p, side ? low : high, half_terms));
    V address = along ? staged_at(p, side, slot, em_add(p->e, at, own), term)
                      : staged_at(p, side, slot, at, em_add(p->e, term, own));
    V shared = em_cast(e, "llvm.addrspacecast", mlirLLVMPointerTypeGet(e->mlir, SHARED_SPACE), address);
    static const char *const name[2][2] = {
        {"llvm.nvvm.ldmatrix.sync.aligned.m8n8.x2.trans.b16.p3",
         "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.trans.b16.p3"},
        {"llvm.nvvm.ldmatrix.sync.aligned.m8n8.x2.b16.p3", "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16.p3"}};
    take(e, threads_intrinsic(e, name[along][n == 4], several(e, e->i32, n), 1, &shared), e->i32, n, to);
}
static V word_as(const Product *p, V word) {
    Emit *e = p->e;
    return p->dot->as == DT_f16 ? em_cast(e, "llvm.bitcast", em_vec(e, e->f16, 2), word) : word;
}
static void multiply_part(const Product *p, const V *a, const V *b, V *sums) {
    Emit *e = p->e;
    static const char *const name[NDTYPES] = {[DT_bf16] = "llvm.nvvm.mma.m16n8k16.row.col.bf16",
                                              [DT_f16] = "llvm.nvvm.mma.m16n8k16.row.col.f32.f32",
                                              [DT_i8] = "llvm.nvvm.mma.m16n8k32.row.col.s8",
                                              [DT_u8] = "llvm.nvvm.mma.m16n8k32.row.col.u8"};
    V o[PART_OPERANDS];
    for (uint32_t i = 0; i < 6; i++) o[i] = word_as(p, i < 4 ? a[i] : b[i - 4]);
    memcpy(o + 6, sums, 4 * sizeof *sums);
    MlirType t = mlirValueGetType(sums[0]);
    take(e, threads_intrinsic(e, name[p->dot->as], several(e, t, 4), PART_OPERANDS, o), t, 4, sums);
}
static uint32_t warp_steps(const Product *p) { return p->dot->tile.terms * dtype_bytes(p->dot->as) / TERM_BYTES; }
/* The registers of a step: four of each part of the rows, then two of each of the columns. */
static void read_step(const Product *p, V slot, uint32_t step, V *to) {
    uint32_t high = parts(p, 0), wide = parts(p, 1);
    for (uint32_t i = 0; i < high; i++) read_parts(p, 0, slot, i, step, 4, to + 4 * i);
    to += 4 * high;
    for (uint32_t j = 0; j < wide; j += 2) read_parts(p, 1, slot, j, step, wide - j > 1 ? 4 : 2, to + 2 * j);
}
static void multiply_step(const Product *p, const V *read, V *sums) {
    uint32_t high = parts(p, 0), wide = parts(p, 1);
    for (uint32_t i = 0; i < high; i++)
        for (uint32_t j = 0; j < wide; j++)
            multiply_part(p, read + 4 * i, read + 4 * high + 2 * j, &sums[4 * (i * wide + j)]);
}
static void multiply_warps(const Product *p, V slot, V *sums) {
    for (uint32_t s = 0; s < warp_steps(p); s++) {
        V read[MOST_READ];
        read_step(p, slot, s, read);
        multiply_step(p, read, sums);
    }
}
uint32_t product_reads(const Product *p) {
    const DeviceDot *d = p->dot;
    bool copied = dot_device_copied(d), some = dim_is_const(d->k) && d->k > 0;
    if (d->form != DOT_MMA || d->warpgroups || d->boxed || d->block || !copied || !some) return 0;
    return d->tile.columns == TILE_WIDE ? 4 * parts(p, 0) + 2 * parts(p, 1) : 0;
}
void product_read(const Product *p, V slot, V *read) { read_step(p, slot, 0, read); }
void product_multiply_read(const Product *p, V slot, V *read, V *sums) {
    V next[MOST_READ];
    for (uint32_t s = 1; s < warp_steps(p); s++) {
        read_step(p, slot, s, next);
        multiply_step(p, read, sums);
        memcpy(read, next, product_reads(p) * sizeof *read);
    }
}
void product_multiply_last(const Product *p, const V *read, V *sums) { multiply_step(p, read, sums); }
/* Lane l has row l / 4 of A and column l / 4 of B, and of both term l % 4. */
static V read_f64(const Product *p, uint32_t side, V slot, uint32_t part, uint32_t step) {
    V at = em_add(p->e, em_add(p->e, warp_first(p, side), em_i64(p->e, part * F64_ROWS)), over(p, lane(p), 4));
    V term = em_add(p->e, em_i64(p->e, step * F64_TERMS), rest(p, lane(p), 4));
    return em_load(p->e, p->e->f64, staged_at(p, side, slot, at, term), 8);
}
/* 16 × 8 of as many terms as a tile has in shared memory, which LLVM has no intrinsic for: two parts of the rows. */
enum { LONG_STEPS = TILE_TERMS / F64_TERMS, LONG_OPERANDS = 3 * LONG_STEPS + 4 };
static bool multiplies_long(const Product *p) {
    return p->k->x.plan->target->device->sm >= 90 && p->dot->tile.terms == TILE_TERMS && parts(p, 0) % 2 == 0;
}
static void multiply_long(const Product *p, const V *operands, V *low, V *high) {
    static const char text[] = "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {$0, $1, $2, $3}, {$4, $5, $6, $7, "
                               "$8, $9, $10, $11}, {$12, $13, $14, $15}, {$16, $17, $18, $19};";
    Emit *e = p->e;
    V o[LONG_OPERANDS], r[4];
    memcpy(o, operands, 3 * LONG_STEPS * sizeof *o);
    memcpy(o + 3 * LONG_STEPS, low, 2 * sizeof *o);
    memcpy(o + 3 * LONG_STEPS + 2, high, 2 * sizeof *o);
    Attr attrs[3] = {{"asm_string", mlirStringAttrGet(e->mlir, mlirStringRefCreateFromCString(text))},
                     {"constraints", mlirStringAttrGet(e->mlir, mlirStringRefCreateFromCString(
                                                                    "=d,=d,=d,=d,d,d,d,d,d,d,d,d,d,d,d,d,0,1,2,3"))},
                     {"has_side_effects", mlirUnitAttrGet(e->mlir)}}; /* so that all lanes of the warp are there */
    take(e, em_1(e, "llvm.inline_asm", several(e, e->f64, 4), LONG_OPERANDS, o, 3, attrs), e->f64, 4, r);
    memcpy(low, r, 2 * sizeof *r);
    memcpy(high, r + 2, 2 * sizeof *r);
}
static void multiply_f64_long(const Product *p, V slot, V *sums) {
    uint32_t high = parts(p, 0) / 2, wide = parts(p, 1);
    V a[MOST_PARTS / 2][2 * LONG_STEPS] = {{{NULL}}}, b[MOST_PARTS][LONG_STEPS] = {{{NULL}}};
    for (uint32_t s = 0; s < LONG_STEPS; s++) {
        for (uint32_t i = 0; i < 2 * high; i++) a[i / 2][2 * s + i % 2] = read_f64(p, 0, slot, i, s);
        for (uint32_t j = 0; j < wide; j++) b[j][s] = read_f64(p, 1, slot, j, s);
    }
    for (uint32_t i = 0; i < high * wide; i++) {
        V o[3 * LONG_STEPS], *low = &sums[2 * (i / wide * 2 * wide + i % wide)];
        memcpy(o, a[i / wide], sizeof a[0]);
        memcpy(o + 2 * LONG_STEPS, b[i % wide], sizeof b[0]);
        multiply_long(p, o, low, low + 2 * wide);
    }
}
static void multiply_f64(const Product *p, V slot, V *sums) {
    Emit *e = p->e;
    uint32_t high = parts(p, 0), wide = parts(p, 1);
    if (multiplies_long(p)) {
        multiply_f64_long(p, slot, sums);
        return;
    }
    for (uint32_t s = 0; s < p->dot->tile.terms / F64_TERMS; s++) {
        V a[MOST_PARTS] = {{NULL}}, b[MOST_PARTS] = {{NULL}};
        for (uint32_t i = 0; i < high; i++) a[i] = read_f64(p, 0, slot, i, s);
        for (uint32_t j = 0; j < wide; j++) b[j] = read_f64(p, 1, slot, j, s);
        for (uint32_t i = 0; i < high * wide; i++) {
            V o[4] = {a[i / wide], b[i % wide], sums[2 * i], sums[2 * i + 1]};
            V both = threads_intrinsic(e, "llvm.nvvm.mma.m8n8k4.row.col.f64", several(e, e->f64, 2), 4, o);
            take(e, both, e->f64, 2, &sums[2 * i]);
        }
    }
}
void product_multiply(const Product *p, V slot, V *sums) {
    static void (*const rule[])(const Product *, V, V *) = {
        [DOT_FMA] = multiply_threads, [DOT_MMA] = multiply_warps, [DOT_MMA_F64] = multiply_f64};
    if (p->dot->warpgroups) {
        product_warpgroups(p, slot, product_sums(p), sums);
        return;
    }
    assert(parts(p, 0) <= MOST_PARTS && parts(p, 1) <= MOST_PARTS);
    rule[p->dot->form](p, slot, sums);
}
void product_end(const Product *p, V *sums) {
    if (p->dot->warpgroups) product_warpgroups_end(p, 0, product_sums(p), sums);
}
/* By each warp for its own rows. */
static void multiply_all(const Product *p, const V *rows, V *sums) {
    uint32_t wide = parts(p, 1), steps = warp_steps(p);
    for (uint32_t i = 0; i < p->dot->tile.turns * steps; i++) {
        V turn = em_i64(p->e, i / steps), own[4], both[4];
        V slot = stage_slot(p, em_add(p->e, p->from, turn));
        V from = rows ? slot : em_gep(p->e, p->rows, times(p, turn, staged_bytes(p, 0)), p->e->i8);
        if (!rows) read_parts(p, 0, from, 0, i % steps, 4, own);
        for (uint32_t j = 0; j < wide; j += 2) {
            uint32_t n = wide - j > 1 ? 2 : 1;
            read_parts(p, 1, slot, j, i % steps, 2 * n, both);
            for (uint32_t m = 0; m < n; m++)
                multiply_part(p, rows ? rows + 4 * i : own, both + 2 * m, &sums[4 * (j + m)]);
        }
    }
}
void product_all(const Product *p, const V *rows, bool fresh, V *sums) {
    uint32_t n = product_sums(p);
    assert(p->dot->held && parts(p, 0) == 1);
    if (p->dot->warpgroups) {
        product_warpgroups_all(p, rows, rows ? 4 * p->dot->tile.turns * warp_steps(p) : 0, fresh, n, sums);
        return;
    }
    for (uint32_t i = 0; fresh && i < n; i++) sums[i] = gemm_zero(p->e, p->acc, 1);
    multiply_all(p, rows, sums);
}
void product_all_end(const Product *p, uint32_t since, V *sums) {
    if (p->dot->warpgroups) product_warpgroups_end(p, since, product_sums(p), sums);
}

V product_row(const Product *p, uint32_t sum) {
    uint32_t part = sum / part_sums(p) / parts(p, 1), high = parts(p, 0), n = high < GROUP ? high : GROUP;
    if (by_threads(p)) return em_add(p->e, thread_first(p, 0), em_i64(p->e, part / n * GROUP_ROWS + part % n));
    V first = em_add(p->e, warp_first(p, 0), over(p, lane(p), 4));
    return em_add(p->e, first, em_i64(p->e, part * part_rows(p) + sum % part_sums(p) / 2 * 8));
}

/* ---- slabs: of all warps the same rows, GROUP_ROWS in all, or the whole tile */
static uint32_t warp_rows(const Product *p) { return by_threads(p) ? 1 : warps(p, 0); }
uint32_t slab_rows(const Product *p) {
    bool whole = by_rows(p) || p->dot->tile.rows < GROUP_ROWS;
    return whole ? p->dot->tile.rows : GROUP_ROWS;
}
uint32_t product_slabs(const Product *p) { return p->dot->tile.rows / slab_rows(p); }
V slab_row(const Product *p, uint32_t slab, V row) {
    uint32_t own = slab_rows(p) / warp_rows(p);
    V within = em_add(p->e, rest(p, row, own), em_i64(p->e, slab * own));
    return em_add(p->e, times(p, over(p, row, own), p->dot->tile.rows / warp_rows(p)), within);
}
int64_t slab_bytes(const Product *p) {
    return (int64_t)slab_rows(p) * (p->dot->tile.columns + SLAB_PAD) * dtype_bytes(p->acc);
}
V slab_at(const Product *p, V row, V column) {
    V at = em_add(p->e, times(p, row, p->dot->tile.columns + SLAB_PAD), column);
    return em_gep(p->e, p->shared, at, em_memory_type(p->e, p->acc));
}
/* n neighbours. */
static void store_sums(const Product *p, V row, V column, uint32_t n, const V *sums) {
    Emit *e = p->e;
    MlirType t = em_vec(e, em_memory_type(e, p->acc), n);
    V v = em_1(e, "llvm.mlir.poison", t, 0, NULL, 0, NULL);
    for (uint32_t i = 0; i < n; i++) {
        V m = em_to_memory(e, p->acc, sums[i]);
        v = n > 1 ? em_insert(e, m, v, i) : m;
    }
    uint32_t bytes = n * dtype_bytes(p->acc);
    em_store(e, v, slab_at(p, row, column), bytes < 16 ? bytes : 16);
}
static void store_threads(const Product *p, uint32_t slab, const V *sums) {
    uint32_t wide = parts(p, 1), n = wide < GROUP ? wide : GROUP, high = parts(p, 0),
             rows = high < GROUP ? high : GROUP;
    for (uint32_t i = 0; i < rows; i++)
        for (uint32_t j = 0; j < wide; j += n) {
            V row = em_add(p->e, thread_first(p, 0), em_i64(p->e, i));
            V column = em_add(p->e, thread_first(p, 1), em_i64(p->e, j / n * GROUP_ROWS));
            store_sums(p, row, column, n, &sums[(slab * rows + i) * wide + j]);
        }
}
static void store_warps(const Product *p, uint32_t slab, const V *sums) {
    uint32_t wide = parts(p, 1), own = slab_rows(p) / warps(p, 0), high = own / part_rows(p), pairs = part_sums(p) / 2;
    V first = em_add(p->e, times(p, warp_number(p, 0), own), over(p, lane(p), 4)),
      pair = times(p, rest(p, lane(p), 4), 2);
    for (uint32_t i = 0; i < high * wide * pairs; i++) {
        uint32_t part = i / pairs, part_row = part / wide, half = i % pairs;
        V row = em_add(p->e, first, em_i64(p->e, part_row * part_rows(p) + half * 8));
        V column = em_add(p->e, em_add(p->e, warp_first(p, 1), pair), em_i64(p->e, part % wide * PART_COLUMNS));
        store_sums(p, row, column, 2, &sums[(slab * high * wide + part) * part_sums(p) + 2 * half]);
    }
}
void slab_store(const Product *p, uint32_t slab, const V *sums) {
    (by_threads(p) ? store_threads : store_warps)(p, slab, sums);
}
