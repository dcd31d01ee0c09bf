#include "grid.h"
#include "messages.h"
#include "threads.h"

void grid_bind(Kernel *k, const Atom *loops, uint32_t nloops, Dim points, V at) {
    Emit *e = k->e;
    bool small = dim_is_const(points) && points < INT32_MAX;
    if (small) at = em_cast(e, "llvm.trunc", e->i32, at);
    for (uint32_t i = nloops; i-- > 0;) {
        Dim extent = loop_extent(k->x.ix, loops[i]);
        V n = small ? em_int(e, e->i32, extent) : kernel_dim(k, extent), index = at;
        if (i) index = em_bin(e, "llvm.urem", at, n), at = em_bin(e, "llvm.udiv", at, n);
        kernel_bind(k, loops[i], small ? em_cast(e, "llvm.zext", e->i64, index) : index);
    }
}
/* Which of the items that the block does at once is this thread's? */
static V own_item(Kernel *k, const Grid *g) {
    V n = em_i64(k->e, grid_at_once(g)), apart = em_i64(k->e, g->threads / grid_at_once(g));
    return em_bin(k->e, g->chunks ? "llvm.urem" : "llvm.udiv", thread_number(k), g->chunks ? n : apart);
}
/* Threads that do an item together all take the same turns, as they meet: where there is no item for them they have
   the last one, and write nothing. */
static V common_item(Kernel *k, const Grid *g, V first, V items) {
    Emit *e = k->e;
    if (grid_at_once(g) == 1) return first;
    V item = em_bin(e, "llvm.add", first, own_item(k, g));
    if (dim_mod(k->x.plan->cx->types, g->items, grid_at_once(g)) == 0) return item; /* there is one for all of them */
    k->block.exists = em_cmpi(e, "slt", item, items);
    return em_bin(e, "llvm.intr.smin", item, em_bin(e, "llvm.sub", items, em_i64(e, 1)));
}
static void write_item(Kernel *k, const Grid *g, KernelRule *rule, V item) {
    kernel_enter(k);
    if (g->together && !g->once) item = common_item(k, g, item, kernel_dim(k, g->items));
    grid_bind_point(k, g, item);
    rule(k, item, em_bin(k->e, "llvm.add", item, em_i64(k->e, 1)));
    kernel_leave(k);
}
void grid_write(Kernel *k, const Grid *g, KernelRule *rule) {
    Emit *e = k->e;
    k->block.threads = g->threads;
    k->block.together = g->together;
    k->block.group = g->group, k->block.chunks = g->chunks, k->block.cluster = g->cluster;
    k->lane = k->x.step->lane;
    if (g->cluster) {
        write_item(k, g, rule, cluster_number(k));
        return;
    }
    V at_once = em_i64(e, grid_at_once(g));
    if (g->once || g->in_turn) {
        V block = g->in_turn ? message_turn(k, kernel_buffer(k, k->x.step->parts)) : block_number(k);
        write_item(k, g, rule, em_mul(e, block, at_once));
        return;
    }
    V first = em_bin(e, "llvm.mul", block_number(k), at_once), all = em_bin(e, "llvm.mul", block_count(k), at_once);
    if (!g->together) first = em_bin(e, "llvm.add", first, thread_number(k));
    For f = em_for(e, first, kernel_dim(k, g->items), all, 0, NULL);
    write_item(k, g, rule, em_arg(&f.scope, 0));
    em_for_end(e, &f, NULL, NULL);
}
