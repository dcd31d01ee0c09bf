/* Calls of functions, and the functions that the driver gives. The callee's lanes run to their end, and nothing else
   of the warp meanwhile. */
#include "memory.h"
#include <stdio.h>
#include <stdlib.h>

void (*ptx_set_conditional)(uint64_t handle, uint32_t value);

static size_t rounded(size_t n) { return (n + SLOT_ALIGN - 1) & ~(size_t)(SLOT_ALIGN - 1); }
static uint32_t arguments_bytes(const PtxFunc *f) { return f->param_base + f->param_bytes; }

static Activation *begin_call(Warp *w, const PtxFunc *f, uint32_t mask) {
    if (w->depth == MAX_CALLS) fault(w, first_lane(mask), "more than %d calls inside each other", MAX_CALLS);
    if (!w->called) w->called = calloc(MAX_CALLS, sizeof *w->called);
    Called *c = &w->called[w->depth];
    size_t frame = rounded(f->frame_bytes), arguments = rounded((size_t)LANES * arguments_bytes(f)),
           room = frame + arguments + rounded((size_t)LANES * f->call_bytes);
    if (c->room < room) {
        free(c->memory);
        c->memory = aligned_alloc(SLOT_ALIGN, room);
        c->room = c->memory ? room : 0;
        if (!c->memory) fault(w, first_lane(mask), "no memory for a call");
    }
    Activation *caller = w->top;
    c->a = (Activation){.f = f,
                        .frame = c->memory,
                        .started = mask,
                        .live = mask,
                        .groups = {{0, mask, LANES_READY, 0}},
                        .ngroups = 1,
                        .params = c->memory + frame,
                        .params_stride = arguments_bytes(f),
                        .params_bytes = arguments_bytes(f),
                        .calls = c->memory + frame + arguments,
                        .local_base = caller->local_base + rounded(caller->f->local_bytes),
                        .caller = caller};
    memcpy(c->a.frame, caller->frame, SPECIAL_REGISTERS * SPECIAL_BYTES);
    fill_frame(w->block->launch, f, c->a.frame, c->a.local_base);
    if (f->local_bytes)
        each_lane(l, mask) memset(w->local_written + (size_t)l * w->local_bytes + c->a.local_base, 0, f->local_bytes);
    return &c->a;
}
static void give_arguments(const Activation *caller, const Activation *a, const Ins *i) {
    const PtxFunc *f = a->f;
    for (uint32_t k = 0; k < i->n; k++)
        for (uint32_t l = 0; l < LANES; l++)
            memcpy((uint8_t *)a->params + (size_t)l * a->params_stride + f->param_base + f->params.at[k].offset,
                   caller->calls + (size_t)l * caller->f->call_bytes + caller->f->lists.at[i->list + k],
                   f->params.at[k].bytes);
}
static void take_result(const Activation *caller, const Activation *a, const Ins *i, uint32_t mask) {
    if (i->o[0] == NO_SLOT) return;
    each_lane(l, mask) memcpy(caller->calls + (size_t)l * caller->f->call_bytes + i->o[0],
                              a->params + (size_t)l * a->params_stride, a->f->result_bytes);
}
static void call_function(Warp *w, const Ins *i, const PtxFunc *f, uint32_t mask) {
    Activation *caller = w->top, *a = begin_call(w, f, mask);
    give_arguments(caller, a, i);
    w->top = a, w->frame = a->frame, w->depth++;
    run_activation(w, a);
    if (a->live) fault(w, first_lane(a->live), "lanes %#x wait in a function for lanes that do not come", a->live);
    w->top = caller, w->frame = caller->frame, w->depth--;
    take_result(caller, a, i, mask);
    caller->live &= ~a->exited, caller->exited |= a->exited;
}

/* An argument of the call. */
static uint64_t argument(const Warp *w, const Ins *i, uint32_t lane, uint32_t k, size_t bytes) {
    const Activation *a = w->top;
    uint64_t v = 0;
    memcpy(&v, a->calls + (size_t)lane * a->f->call_bytes + a->f->lists.at[i->list + k], bytes);
    return v;
}
static uint64_t read_generic(Warp *w, uint32_t lane, uint64_t address, uint32_t bytes) {
    uint64_t v = 0;
    memcpy(&v, place_of(w, SPACE_GENERIC, lane, address, bytes, TOUCH_READ), bytes);
    return v;
}
static void print_string(Warp *w, uint32_t lane, uint64_t at) {
    for (char c; (c = (char)read_generic(w, lane, at, 1)); at++) putchar(c);
}
enum { MAX_SPEC = 16 };
/* One conversion of printf's: %…c, whose text begins at `at`; the argument is read from *from. The address behind
   it. */
static uint64_t print_one(Warp *w, uint32_t lane, uint64_t at, uint64_t *from) {
    char spec[MAX_SPEC] = "%", c;
    uint32_t n = 1, longs = 0;
    do {
        c = (char)read_generic(w, lane, ++at, 1);
        spec[n++] = c;
        longs += c == 'l';
    } while (c && n < MAX_SPEC - 1 && !strchr("diouxXcsfeEgGp%", c));
    if (c == '%') {
        putchar('%');
        return at;
    }
    uint32_t bytes = longs || strchr("fFeEgGsp", c) ? 8 : 4;
    *from = (*from + bytes - 1) & ~(uint64_t)(bytes - 1);
    uint64_t v = read_generic(w, lane, *from, bytes);
    double f;
    memcpy(&f, &v, 8);
    *from += bytes;
    if (c == 's')
        print_string(w, lane, v);
    else if (strchr("fFeEgG", c))
        printf(spec, f);
    else if (bytes == 8)
        printf(spec, v);
    else
        printf(spec, (uint32_t)v);
    return at;
}
static void print(Warp *w, const Ins *i, uint32_t mask) {
    each_lane(l, mask) {
        uint64_t at = argument(w, i, l, 0, 8), from = argument(w, i, l, 1, 8);
        for (char c; (c = (char)read_generic(w, l, at, 1)); at++) {
            if (c == '%')
                at = print_one(w, l, at, &from);
            else
                putchar(c);
        }
    }
}
static void set_conditional(Warp *w, const Ins *i, uint32_t mask) {
    each_lane(l, mask) if (ptx_set_conditional)
        ptx_set_conditional(argument(w, i, l, 0, 8), (uint32_t)argument(w, i, l, 1, 4));
}
static void assert_fail(Warp *w, const Ins *i, uint32_t mask) { fault(w, first_lane(mask), "an assertion fails"); }

static const struct {
    const char *name;
    uint32_t arguments;
    Run *run;
} builtins[] = {
    {"vprintf", 2, print}, {"cudaGraphSetConditional", 2, set_conditional}, {"__assertfail", 5, assert_fail}};
void run_call(Warp *w, const Ins *i, uint32_t mask) {
    const PtxFunc *f = w->top->f->module->functions.at[i->target];
    if (f->defined) {
        call_function(w, i, f, mask);
        return;
    }
    for (size_t k = 0; k < sizeof builtins / sizeof *builtins; k++)
        if (str_is(f->name, builtins[k].name) && i->n == builtins[k].arguments) {
            builtins[k].run(w, i, mask);
            return;
        }
    fault(w, first_lane(mask), "function %.*s is not defined", SF(f->name));
}
void free_called(Warp *w) {
    for (uint32_t k = 0; w->called && k < MAX_CALLS; k++) free(w->called[k].memory);
    free(w->called);
}
