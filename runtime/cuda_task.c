/* What the body of a program does to the device are tasks, which are enqueued, or noted while the body shows a turn of
   a loop (cuda_loop.c). Notes are the loop and, one after the other, the tasks of its turn, each with its bytes behind
   it. */
#include "cuda_call.h"
#include <stdio.h>
#include <string.h>

/* ---- doing it on a stream; each returns a status */
typedef int32_t Do(Call *, const Task *, const void *context, CUstream);

static int32_t launch(Call *c, const Task *w, const void *context, CUstream s) {
    void *parameters[] = {(void *)context};
    char what[96];
    CUresult r =
        jaxcc_rt_cuda.cuLaunchKernel(w->function, (unsigned)w->x, (unsigned)w->y, (unsigned)w->z, (unsigned)w->threads,
                                     1, 1, (unsigned)w->shared, s, w->bytes ? parameters : NULL, NULL);
    if (!r) return 0;
    snprintf(what, sizeof what, "the launch of kernel '%s'", w->kernel->name);
    return jaxcc_rt_cuda_failed(c->device, r, what);
}
static int32_t copy(Call *c, const Task *w, const void *context, CUstream s) {
    return CU(c->device, cuMemcpyDtoDAsync_v2, w->to, w->from, (size_t)w->n, s);
}
static int32_t fill_words(Call *c, CUdeviceptr to, int64_t value, int64_t n, CUstream s) {
    return CU(c->device, cuMemsetD32Async, to, (uint32_t)value, (size_t)n, s);
}
static int32_t fill(Call *c, const Task *w, const void *context, CUstream s) {
    int64_t high = (int64_t)((uint64_t)w->value >> 32);
    switch (w->width) {
    case 1: return CU(c->device, cuMemsetD8Async, w->to, (unsigned char)w->value, (size_t)w->n, s);
    case 2: return CU(c->device, cuMemsetD16Async, w->to, (unsigned short)w->value, (size_t)w->n, s);
    case 4: return fill_words(c, w->to, w->value, w->n, s);
    default:
        if (high == (int64_t)(uint32_t)w->value) return fill_words(c, w->to, w->value, 2 * w->n, s);
        assert(w->n == 1);
        int32_t status = fill_words(c, w->to, w->value, 1, s);
        return status ? status : fill_words(c, w->to + 4, high, 1, s);
    }
}
static Do *const doing[] = {
    [TASK_LAUNCH] = launch, [TASK_COPY] = copy, [TASK_FILL] = fill, [TASK_LOOP] = jaxcc_rt_cuda_record_loop};

/* ---- notes */
static Task *note(jaxcc_rt_heap *h, const Task *w, const void *context) {
    Call *c = call_of(h);
    int64_t at = c->noted, end = at + (int64_t)sizeof *w + w->bytes;
    must(h, jaxcc_rt_cuda_lane_notes(c->lane, end));
    Task *to = (Task *)(c->lane->notes + at);
    *to = *w;
    if (w->bytes) memcpy(to + 1, context, (size_t)w->bytes);
    c->noted = end;
    return to;
}
void jaxcc_rt_cuda_note_loop(jaxcc_rt_heap *h, const void *predicate) {
    Call *c = call_of(h);
    assert(c->open < JAXCC_RT_CUDA_NESTED);
    if (!c->open) c->noted = 0;
    c->loops[c->open++] = c->noted;
    note(h, &(Task){.kind = TASK_LOOP, .from = address(predicate)}, NULL);
}
const Task *jaxcc_rt_cuda_noted(Call *c, int64_t *bytes) {
    int64_t at = c->loops[--c->open];
    Task *loop = (Task *)(c->lane->notes + at);
    loop->bytes = c->noted - at - (int64_t)sizeof *loop;
    *bytes = c->noted;
    return c->open ? NULL : loop;
}
int32_t jaxcc_rt_cuda_do_turn(Call *c, const Task *loop, CUstream s) {
    const char *at = (const char *)(loop + 1), *end = at + loop->bytes;
    int32_t status = 0;
    while (at < end && !status) {
        const Task *w = (const Task *)at;
        if (w->kind == TASK_LAUNCH) c->last = w->kernel;
        status = doing[w->kind](c, w, w + 1, s);
        at += (int64_t)sizeof *w + w->bytes;
    }
    return status;
}

/* ---- what the body calls */
static void add(jaxcc_rt_heap *h, const Task *w, const void *context) {
    Call *c = call_of(h);
    if (c->open) {
        note(h, w, context);
        return;
    }
    if (w->kind == TASK_LAUNCH) jaxcc_rt_cuda_launched(c->last = w->kernel);
    must(h, doing[w->kind](c, w, context, c->stream));
}
void jaxcc_rt_cuda_launch(jaxcc_rt_heap *h, int64_t kernel, const void *context, int64_t x, int64_t y, int64_t z,
                          int64_t threads, int64_t shared) {
    const Call *c = call_of(h);
    const jaxcc_rt_cuda_kernel *k = &c->program->library->kernels[kernel];
    if (x <= 0 || y <= 0 || z <= 0) return;
    if (x > INT32_MAX || y > UINT16_MAX || z > UINT16_MAX)
        jaxcc_rt_stop(h, JAXCC_DIMENSION, "kernel '%s' needs more blocks than a GPU has: %lld x %lld x %lld", k->name,
                      (long long)x, (long long)y, (long long)z);
    add(h,
        &(Task){.kind = TASK_LAUNCH,
                .bytes = k->context,
                .kernel = k,
                .function = c->loaded->functions[kernel],
                .x = x,
                .y = y,
                .z = z,
                .threads = threads,
                .shared = shared},
        context);
}
void jaxcc_rt_cuda_sortable(jaxcc_rt_heap *h, const char *what, int64_t n) {
    if (n > UINT32_MAX)
        jaxcc_rt_stop(h, JAXCC_DIMENSION, "%s: %lld elements are too many to be sorted on a GPU", what, (long long)n);
}
void *jaxcc_rt_cuda_constant(jaxcc_rt_heap *h, int64_t number) {
    return pointer(call_of(h)->loaded->constants[number]);
}
void jaxcc_rt_cuda_copy(jaxcc_rt_heap *h, void *to, const void *from, int64_t bytes) {
    if (bytes <= 0 || to == from) return;
    add(h, &(Task){.kind = TASK_COPY, .to = address(to), .from = address(from), .n = bytes}, NULL);
}
void jaxcc_rt_cuda_fill(jaxcc_rt_heap *h, void *to, int64_t value, int64_t width, int64_t n) {
    if (n <= 0) return;
    add(h, &(Task){.kind = TASK_FILL, .to = address(to), .value = value, .width = width, .n = n}, NULL);
}
