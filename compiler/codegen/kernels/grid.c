#include "grid.h"
#include "threads.h"

/* Sets the indices of the loops at point number `at`. */
static void bind_point(Kernel *k, const Grid *g, V at) {
    Emit *e = k->e;
    bool small = dim_is_const(g->items) && g->items < INT32_MAX;
    if (small) at = em_cast(e, "llvm.trunc", e->i32, at);
    for (uint32_t i = g->nloops; i-- > 0;) {
        Dim extent = loop_extent(k->x.ix, g->loops[i]);
        V n = small ? em_int(e, e->i32, extent) : kernel_dim(k, extent), index = at;
        if (i) index = em_bin(e, "llvm.urem", at, n), at = em_bin(e, "llvm.udiv", at, n);
        kernel_bind(k, g->loops[i], small ? em_cast(e, "llvm.zext", e->i64, index) : index);
    }
}
void grid_write(Kernel *k, const Grid *g, KernelRule *rule) {
    Emit *e = k->e;
    k->block.threads = g->threads;
    k->block.together = g->together;
    k->lane = k->x.step->lane;
    V first = block_number(k), all = block_count(k), threads = em_i64(e, g->threads);
    if (!g->together) {
        first = em_bin(e, "llvm.add", em_bin(e, "llvm.mul", first, threads), thread_number(k));
        all = em_bin(e, "llvm.mul", all, threads);
    }
    For f = em_for(e, first, kernel_dim(k, g->items), all, 0, NULL);
    kernel_enter(k);
    V item = em_arg(&f.scope, 0);
    bind_point(k, g, item);
    rule(k, item, em_bin(e, "llvm.add", item, em_i64(e, 1)));
    kernel_leave(k);
    em_for_end(e, &f, NULL, NULL);
}
