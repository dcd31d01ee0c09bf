#include "part.h"
#include "../cost.h"

/* LLVM's time and memory grow faster than the length of a function and of its blocks. Values computed in one part and
   used in another are in words of memory before the workspace (frame.c). */

bool part_cuts(const Plan *p, const Signature *s) {
    return p->top->weight > CUT_WEIGHT || s->dims.n + s->in.n + s->out.n > CUT_ARGUMENTS;
}

static void part_begin(Host *h, Part *p) {
    Emit *e = h->e;
    MlirType *t = arena_new(e->arena, MlirType, ARGUMENT_BASES + 2);
    uint32_t n = arguments_types(e, h->signature, true, t);
    t[n] = t[n + 1] = e->ptr;
    p->name = str_format(e->arena, "%.*s.part_%u", SF(h->name), h->nparts++);
    p->was = h->frame, p->context = h->context, p->room = h->room;
    p->fn = em_function(e, p->name, no_type, n + 2, t, false);
    p->open = true;
    h->context = (V){NULL}, h->room = 0;
    host_enter(h, &p->fn.scope);
}
void part_end(Host *h, Part *p) {
    V args[ARGUMENT_BASES + 2];
    if (!p->open) return;
    em_function_end(h->e, &p->fn, (V){NULL});
    h->frame = p->was, h->context = p->context, h->room = p->room;
    uint32_t n = arguments_pass(&h->frame.arguments, args);
    args[n] = h->frame.workspace, args[n + 1] = h->frame.heap;
    em_call_local(h->e, p->name, no_type, n + 2, args);
    p->open = false;
}
void part_next(Host *h, const Body *b, Part *p) {
    if (!h->cut || b->weight <= PART_WEIGHT) return;
    if (p->open && h->e->written > PART_WRITTEN) part_end(h, p);
    if (!p->open) part_begin(h, p);
}
