#include "../cost.h"
#include "../plan/scatter.h"
#include "atomic.h"
#include "grid.h"
#include "point.h"
#include "scatter.h"
#include "threads.h"
#include <assert.h>

/* Many updates of a small array on a device, such as a histogram: a block combines its part of them in shared memory,
   by atomic operations there, then combines the result with the array. */

typedef struct {
    Kernel *k;
    Emit *e;
    const Step *s;
    Prim how;
    Dtype d;
    V own, neutral; /* the block's array; what it begins with */
} Shared;
static V element(const Shared *b, V base, V i) { return em_gep(b->e, base, i, em_memory_type(b->e, b->d)); }
static V elements(const Shared *b) {
    const Plan *p = b->k->x.plan;
    return em_i64(b->e, type_size(p->cx->types, val_type(p->cx, b->s->e->in.at[0])));
}
/* The threads share the numbers from `lo` on. */
static For each_number(const Shared *b, V lo, V hi) {
    Emit *e = b->e;
    V threads = em_i64(e, b->k->block.threads);
    For f = em_for(e, em_bin(e, "llvm.add", lo, thread_number(b->k)), hi, threads, 0, NULL);
    kernel_enter(b->k);
    return f;
}
static void numbers_end(const Shared *b, For *f) {
    kernel_leave(b->k);
    em_for_end(b->e, f, NULL, NULL);
}
static void clear(const Shared *b) {
    For f = each_number(b, em_i64(b->e, 0), elements(b));
    em_store(b->e, b->neutral, element(b, b->own, em_arg(&f.scope, 0)), dtype_bytes(b->d));
    numbers_end(b, &f);
    threads_meet(b->k);
}
static void update(const Shared *b, const Window *w, V number) {
    Kernel *k = b->k;
    Val v = b->s->stores.at[0].v;
    Ix index[MAX_RANK];
    grid_bind_point(k, &b->s->updates, number);
    step_at(k->x.plan, b->s, v, index);
    V placed = scatter_placed(k, b->s->e, w);
    If i = kernel_if(k, placed.ptr ? placed : em_int(b->e, b->e->i1, 1));
    V to = element(b, b->own, kernel_index(k, scatter_address(k->x.plan, b->s->e, index)));
    atomic_combine(k, b->how, b->d, to, reg_v(eval_value(&k->x, v, index)));
    kernel_if_end(k, &i);
}
static void combine(const Shared *b) {
    Kernel *k = b->k;
    Emit *e = b->e;
    V all = kernel_buffer(k, b->s->stores.at[0].buf);
    threads_meet(k);
    For f = each_number(b, em_i64(e, 0), elements(b));
    V i = em_arg(&f.scope, 0), x = em_load(e, mlirValueGetType(b->neutral), element(b, b->own, i), dtype_bytes(b->d));
    If some = kernel_if(k, em_cmpi(e, "ne", x, b->neutral));
    atomic_combine(k, b->how, b->d, element(b, all, i), x);
    kernel_if_end(k, &some);
    numbers_end(b, &f);
    threads_meet(k);
}
void scatter_shared(Kernel *k, V item) {
    Emit *e = k->e;
    const Step *s = k->x.step;
    const Store *st = &s->stores.at[0];
    Shared b = {.k = k, .e = e, .s = s, .how = prim_combiner[s->e->prim]};
    const ArrayType *x = val_array(k->x.plan->cx, st->v);
    Prim reduce = scatter_reduction(b.how);
    b.d = x->dtype;
    assert(reduce != P_none);
    b.neutral = point_identity(e, reduce, b.d, 1);
    Dim n = type_size(k->x.plan->cx->types, val_type(k->x.plan->cx, s->e->in.at[0]));
    b.own = threads_share(k, n * dtype_bytes(b.d));
    clear(&b);
    V from = em_bin(e, "llvm.mul", item, em_i64(e, SHARED_UPDATES)),
      to = em_bin(e, "llvm.add", from, em_i64(e, SHARED_UPDATES));
    For f = each_number(&b, from, em_bin(e, "llvm.intr.smin", to, kernel_dim(k, s->updates.items)));
    update(&b, scatter_window(k->x.plan, s), em_arg(&f.scope, 0));
    numbers_end(&b, &f);
    combine(&b);
}
