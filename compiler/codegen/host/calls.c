#include "host.h"
#include "../../timer.h"
#include "../cost.h"
#include "../plan/guard.h"
#include "../plan/report.h"
#include "part.h"

/* Functions of the library and their calls, as plan/call.c has planned them. */

bool callees_write(Callees *cs, Emit *e) {
    for (uint32_t n = 0; n < cs->all.n; n++) {
        Callee *c = cs->all.at[n];
        timer_stage(cs->cx->timer, "plan");
        Plan *p = callee_plan(cs, c);
        if (!p) return false;
        timer_stage(cs->cx->timer, "build");
        Str name = callee_name(cs, c), of_level = str_format(e->arena, "%.*s%s", SF(name), e->level);
        c->heap = p->heap;
        if (p->target->device) c->launches = guard_launches(p), c->loops = guard_loops(p->top);
        Written *w = arena_new(e->arena, Written, 1);
        *w = host_write(p, e, c->program, &c->signature, of_level);
        c->written = w, c->workspace = w->workspace;
        if (cs->cx->report) report_plan(cs->cx->report, p, name);
    }
    return true;
}

/* LLVM's time is quadratic in the length of a block of loads and stores: many arguments are written by code that is cut
   like the body. */
static void call_next(Host *h, const Body *b, const Step *s, Part *part) {
    if (s->narrays > MOST_TOGETHER) part_next(h, b, part);
}
/* The arguments of a function that takes them from memory; their address. */
static V write_arguments(Host *h, const Body *b, const Step *s, uint32_t n) {
    Part part = {.open = false};
    const Signature *sig = &s->call->callee->signature;
    uint32_t last = frame_call_words(&h->frame, n);
    for (uint32_t i = 0; i < n; i++) {
        call_next(h, b, s, &part);
        if (i < sig->dims.n)
            frame_store(&h->frame, last - i, DT_none, frame_dim(&h->frame, sig->dims.at[i]));
        else
            frame_store(&h->frame, last - i, DT_none, frame_buffer(&h->frame, s->arrays[i - sig->dims.n]));
    }
    part_end(h, &part);
    return frame_word(&h->frame, last);
}
static void store_operands(Host *h, const Body *b, const Step *s) {
    Part part = {.open = false};
    for (uint32_t i = 0; i < s->e->in.n; i++) {
        if (!s->call->registers[i]) continue;
        call_next(h, b, s, &part);
        host_store(h, s->e->in.at[i], frame_buffer(&h->frame, s->arrays[i]));
    }
    part_end(h, &part);
}
static void load_results(Host *h, const Body *b, const Step *s) {
    Part part = {.open = false};
    for (uint32_t k = 0; k < s->e->out.n; k++) {
        if (!plan_register(h->plan, s->e->out.at[k])) continue;
        call_next(h, b, s, &part);
        host_load(h, s->e->out.at[k], s->arrays[s->e->in.n + k]);
    }
    part_end(h, &part);
}
void host_call(Host *h, const Body *b, Step *s) {
    Emit *e = h->e;
    const Callee *c = s->call->callee;
    const Signature *sig = &c->signature;
    uint32_t n = 0, nargs = sig->dims.n + s->e->in.n + s->e->out.n;
    V *args = arena_new(e->arena, V, nargs + ARGUMENT_BASES + 2);
    store_operands(h, b, s);
    if (c->written->in_memory) {
        Arguments a = arguments_at(e, sig, write_arguments(h, b, s, nargs));
        n = arguments_pass(&a, args);
    } else {
        each(Dim, d, sig->dims) args[n++] = frame_dim(&h->frame, *d);
        for (uint32_t i = 0; i < s->e->in.n + s->e->out.n; i++) args[n++] = frame_buffer(&h->frame, s->arrays[i]);
    }
    V workspace = s->call->workspace ? frame_buffer(&h->frame, s->call->workspace) : h->frame.workspace;
    bool device = h->plan->target->device;
    V given = device ? written_homes_new(e, c->written, h->frame.heap, workspace)
                     : written_past_homes(e, c->written, workspace);
    args[n++] = given;
    args[n++] = h->frame.heap;
    em_call_local(e, c->written->name, no_type, n, args);
    if (device) written_homes_put(e, c->written, h->frame.heap, given);
    load_results(h, b, s);
}
