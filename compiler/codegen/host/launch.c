#include "machine.h"
#include "../cost.h"
#include "../plan/dot.h"

/* A cheap step is a part of the schedule's function, a larger one a function, which threads share if it is worth it. */

static KernelRule *rule_of(const Host *h, const Step *s) { return h->e->target->machine->kernels[s->kind]; }
/* Operations of the whole step; -1 if known only at run time. The terms of a product are added to what follows its sums;
   with few rows, to read them takes longer. */
static int64_t known_cost(const Step *s) {
    const Dot *dot = s->kind == STEP_DOT ? s->dot : NULL;
    Dim terms = dot ? dot->k : 0, rows = dot ? dot->rows : 1;
    if (!dim_is_const(terms) || !dim_is_const(rows)) return -1;
    __int128 c = (__int128)terms + s->cost + 1;
    if (terms && rows) c += READ_COST * (__int128)terms / rows;
    for (uint32_t i = 0; i < s->domain.n; i++) {
        if (!dim_is_const(s->domain.at[i])) return -1;
        c *= s->domain.at[i];
    }
    return c > INT64_MAX / 2 ? INT64_MAX / 2 : (int64_t)c;
}
static void inline_kernel(Host *h, Step *s, KernelRule *write, Dim units) {
    Kernel *k = kernel_new(h->plan, h->e, &h->frame, s);
    write(k, em_i64(h->e, 0), frame_dim(&h->frame, units));
}
/* A separate function, kernel(context, lo, hi), which is called or, if worthwhile, split over threads; its context.
   Equal kernels are one function. */
static V outline(Host *h, Step *s, KernelRule *write) {
    Emit *e = h->e;
    MlirType args[3] = {e->ptr, e->i64, e->i64};
    Str name = str_format(e->arena, "kernel_%u", e->nkernels++);
    Function fn = em_function(e, name, no_type, 3, args, true);
    Frame f = {.plan = h->plan, .e = e, .parent = &h->frame, .entry = fn.scope.block};
    f.context = em_arg(&fn.scope, 0);
    f.keys.arena = e->arena;
    Kernel *k = kernel_new(h->plan, e, &f, s);
    write(k, em_arg(&fn.scope, 1), em_arg(&fn.scope, 2));
    MlirOperation op = em_function_end(e, &fn, (V){NULL});
    uint32_t number = em_shared_function(e, &fn, op);
    s->symbol = e->names.at[number];
    V context = host_context(h, f.captures.n);
    frame_pass(&f, context);
    return context;
}
static void on_this_thread(Host *h, const Step *s, V context) {
    V args[3] = {context, em_i64(h->e, 0), frame_dim(&h->frame, s->units)};
    em_call_local(h->e, s->symbol, no_type, 3, args);
}
static void in_parallel(Host *h, const Step *s, V context, V grain) {
    V args[4] = {em_address(h->e, s->symbol), context, frame_dim(&h->frame, s->units), grain};
    bool together = s->kind == STEP_DOT && s->dot->together;
    em_call(h->e, together ? "jaxcc_rt_parallel_ranges" : "jaxcc_rt_parallel_for", no_type, 4, args);
}
/* Units of PARALLEL_COST operations, or one of more. */
static V units_shared(Emit *e, V each_unit) {
    V n = em_bin(e, "llvm.udiv", em_i64(e, PARALLEL_COST), em_bin(e, "llvm.intr.umax", each_unit, em_i64(e, 1)));
    return em_bin(e, "llvm.intr.umax", n, em_i64(e, 1));
}
static V grain(Host *h, const Step *s, V units, int64_t cost) {
    Emit *e = h->e;
    V total;
    if (cost >= 0)
        total = em_i64(e, cost);
    else {
        total = em_i64(e, s->cost + 1);
        if (s->kind == STEP_DOT) total = em_bin(e, "llvm.add", total, frame_dim(&h->frame, s->dot->k));
        for (uint32_t i = 0; i < s->domain.n; i++)
            total = em_bin(e, "llvm.mul", total, frame_dim(&h->frame, s->domain.at[i]));
    }
    return units_shared(e, em_bin(e, "llvm.udiv", total, em_bin(e, "llvm.intr.umax", units, em_i64(e, 1))));
}
static void kernel_step(Host *h, Step *s) {
    int64_t cost = known_cost(s);
    if (cost >= 0 && cost < INLINE_COST && s->kind != STEP_DOT && h->inlined + s->cost < INLINE_CODE) {
        h->inlined += s->cost + INLINE_STEP;
        inline_kernel(h, s, rule_of(h, s), s->units);
        return;
    }
    h->calls = true;
    V context = outline(h, s, rule_of(h, s));
    if (cost >= 0 && cost < 2 * AWAKE_COST)
        on_this_thread(h, s, context);
    else
        in_parallel(h, s, context, grain(h, s, frame_dim(&h->frame, s->units), cost));
}
/* The totals of the parts come first. Their kernel says in the first word of `parts` whether threads share the parts; 0
   where there are none. A thread that does all parts needs no totals. */
static void launch_prefixes(Host *h, Step *s) {
    Emit *e = h->e;
    h->calls = true;
    V share = units_shared(e, frame_dim(&h->frame, s->part_cost)), parts = frame_buffer(&h->frame, s->parts);
    em_store(e, em_i64(e, 0), parts, 8);
    V context = outline(h, s, e->target->machine->before[s->kind]);
    in_parallel(h, s, context, share);
    V shared = em_load(e, e->i64, parts, 8);
    context = outline(h, s, rule_of(h, s));
    If f = em_if(e, em_cmpi(e, "ne", shared, em_i64(e, 0)));
    in_parallel(h, s, context, share);
    em_else(e, &f, 0, NULL);
    on_this_thread(h, s, context);
    em_if_end(e, &f, NULL, NULL);
}
void launch_threads(Host *h, Step *s) {
    if (s->parts && s->kind == STEP_CUM) {
        launch_prefixes(h, s);
        return;
    }
    kernel_step(h, s);
    if (s->parts) inline_kernel(h, s, kernel_combine, 1);
}
