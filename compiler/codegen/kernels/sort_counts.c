#include "../cost.h"
#include "sort_device.h"
#include "threads.h"

/* Counts of the digits of each tile, [rows, tiles, DIGITS], are replaced by what the tiles before have. A block has a
   few neighbouring digits, as many as memory gives at once; threads of one digit have a part of the tiles each. */

enum { DIGITS = 1 << SORT_DIGIT, COUNT_BYTES = 4, BESIDE = SECTOR_BYTES / COUNT_BYTES, AT_ONCE = 8 };
typedef struct {
    Kernel *k;
    Emit *e;
    V counts;     /* of the row, from the digit on */
    V first, end; /* i64: the thread's tiles */
} Part;

static V i32(const Part *p, int64_t n) { return em_int(p->e, p->e->i32, n); }
static V place_of(const Part *p, V tile) {
    return em_gep(p->e, p->counts, em_mul(p->e, tile, em_i64(p->e, DIGITS)), p->e->i32);
}
/* Of so many tiles from `tile` on; 0 where there are no more. */
static void read_counts(const Part *p, V tile, V *counts) {
    Emit *e = p->e;
    V last = em_sub(e, p->end, em_i64(e, 1));
    for (uint32_t i = 0; i < AT_ONCE; i++) {
        V at = em_add(e, tile, em_i64(e, i));
        V count = em_load(e, e->i32, place_of(p, em_least(e, at, last)), COUNT_BYTES);
        counts[i] = em_select(e, em_less(e, at, p->end), count, i32(p, 0));
    }
}
/* What all of the thread's tiles have, added to `sum`; `before`: each gets what those before it have. */
static V add_counts(const Part *p, V sum, bool before) {
    Emit *e = p->e;
    V counts[AT_ONCE];
    For f = em_for(e, p->first, p->end, em_i64(e, AT_ONCE), 1, &sum);
    V tile = em_arg(&f.scope, 0);
    sum = em_arg(&f.scope, 1);
    read_counts(p, tile, counts);
    for (uint32_t i = 0; i < AT_ONCE; i++) {
        V at = em_add(e, tile, em_i64(e, i));
        if (before) {
            If some = em_if(e, em_less(e, at, p->end));
            em_store(e, sum, place_of(p, at), COUNT_BYTES);
            em_else(e, &some, 0, NULL);
            em_if_end(e, &some, NULL, NULL);
        }
        sum = em_add(e, sum, counts[i]);
    }
    em_for_end(e, &f, &sum, &sum);
    return sum;
}
/* What the threads before this one have of its digit, which is that of every BESIDE-th; *own becomes its sum with
   that. */
static V count_before(const Part *p, V thread, V *own) {
    Kernel *k = p->k;
    Emit *e = p->e;
    uint32_t warps = k->block.threads / WARP;
    V lane = em_both(e, thread, i32(p, WARP - 1)), warp = em_bin(e, "llvm.udiv", thread, i32(p, WARP)), sum = *own;
    V digit = em_both(e, lane, i32(p, BESIDE - 1)), shared = threads_share(k, (int64_t)warps * BESIDE * COUNT_BYTES);
    for (uint32_t by = BESIDE; by < WARP; by *= 2) {
        V more = em_add(e, sum, threads_shuffle(k, "up", sum, i32(p, by)));
        sum = em_select(e, em_less(e, lane, i32(p, by)), sum, more);
    }
    V at = em_add(e, em_mul(e, warp, i32(p, BESIDE)), digit);
    If last = em_if(e, em_cmpi(e, "sge", lane, i32(p, WARP - BESIDE)));
    em_store(e, sum, em_gep(e, shared, at, e->i32), COUNT_BYTES);
    em_else(e, &last, 0, NULL);
    em_if_end(e, &last, NULL, NULL);
    threads_meet(k);
    for (uint32_t i = 0; i + 1 < warps; i++) {
        V more = em_load(e, e->i32, em_gep(e, shared, em_add(e, digit, i32(p, i * BESIDE)), e->i32), COUNT_BYTES);
        sum = em_add(e, sum, em_select(e, em_less(e, i32(p, i), warp), more, i32(p, 0)));
    }
    threads_meet(k);
    V before = em_sub(e, sum, *own);
    *own = sum;
    return before;
}
void device_count_before(Kernel *k, V item, V end) {
    Emit *e = k->e;
    const Sort *so = k->x.step->sort;
    V tiles = kernel_dim(k, sort_tiles(k->x.plan, so)), groups = em_i64(e, DIGITS / BESIDE);
    V thread = thread_number(k), beside = em_i64(e, BESIDE), parts = em_i64(e, k->block.threads / BESIDE);
    V row = em_bin(e, "llvm.udiv", item, groups), digit = em_mul(e, em_bin(e, "llvm.urem", item, groups), beside);
    digit = em_add(e, digit, em_bin(e, "llvm.urem", thread, beside));
    V from = em_add(e, em_mul(e, em_mul(e, row, tiles), em_i64(e, DIGITS)), digit);
    Part p = {.k = k, .e = e, .counts = em_gep(e, kernel_buffer(k, so->counts), from, e->i32)};
    V each = em_bin(e, "llvm.udiv", em_add(e, tiles, em_i64(e, k->block.threads / BESIDE - 1)), parts);
    p.first = em_mul(e, each, em_bin(e, "llvm.udiv", thread, beside));
    p.end = em_least(e, em_add(e, p.first, each), tiles);
    V sum = add_counts(&p, i32(&p, 0), false), all = sum;
    V before = count_before(&p, em_cast(e, "llvm.trunc", e->i32, thread), &all);
    add_counts(&p, before, true);
    If last = kernel_if(k, em_cmpi(e, "sge", thread, em_i64(e, k->block.threads - BESIDE)));
    V to = em_add(e, em_mul(e, row, em_i64(e, DIGITS)), digit);
    em_store(e, all, em_gep(e, kernel_buffer(k, so->sums), to, e->i32), COUNT_BYTES);
    kernel_if_end(k, &last);
}
