/* Calls on a GPU. A call's work is on one stream: with host pointers that of a lane, which the call has to itself and
   waits for, with device pointers that of the caller. */
#include "cuda_call.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An output of a computed size whose host memory gets its elements at the end. */
typedef struct Late {
    struct Late *next;
    void *host, *device;
    int64_t bytes;
} Late;

static _Thread_local CUstream thread_stream;
void jaxcc_rt_cuda_set_stream(void *stream) { thread_stream = stream; }

static bool on_device(const Call *c) { return c->program->flags & JAXCC_RT_CUDA_DEVICE_POINTERS; }
static void **inputs(const Call *c) { return c->words + c->program->n_dims; }
static void **outputs(const Call *c) { return inputs(c) + c->program->n_in; }
static const int64_t *output_bytes(const Call *c) { return c->bytes + c->program->n_in; }
static int64_t n_arrays(const jaxcc_rt_cuda_program *p) { return p->n_in + p->n_out; }
static void **workspace(const Call *c) { return outputs(c) + c->program->n_out; }

/* ---- the caller's pointers */
static int32_t fail_argument(const jaxcc_rt_cuda_program *p, int64_t k, const char *what) {
    const char *name = p->names;
    for (; k > 0; k--) name += strcspn(name, " ") + 1;
    return jaxcc_rt_fail(JAXCC_ARGUMENT, "argument '%.*s' %s", (int)strcspn(name, " "), name, what);
}
/* On which device is the array? */
static int32_t device_of(const jaxcc_rt_cuda_program *p, int64_t k, const void *array, int *ordinal) {
    if (address(array) % 16) return fail_argument(p, k, "is not aligned to 16 bytes");
    int32_t status = jaxcc_rt_cuda_gpu_of(array, ordinal);
    return !status && *ordinal < 0 ? fail_argument(p, k, "is not memory of a GPU") : status;
}
static int32_t device_of_arrays(const Call *c, int64_t *found) {
    int32_t status = 0;
    for (int64_t k = 0; k < n_arrays(c->program) && !status; k++) {
        int ordinal = 0;
        if (c->bytes[k] <= 0) continue;
        status = device_of(c->program, k, inputs(c)[k], &ordinal);
        if (!status && *found >= 0 && *found != ordinal)
            status = fail_argument(c->program, k, "is on another GPU than the arguments before it");
        *found = ordinal;
    }
    return status;
}

/* ---- memory of the call */
int32_t jaxcc_rt_cuda_take_lane(Call *c) { return c->lane ? 0 : jaxcc_rt_cuda_lane_take(c->device, &c->lane); }
int32_t jaxcc_rt_cuda_take_block(Call *c, int64_t bytes, const char *hint, CUdeviceptr *at) {
    Block *b;
    int32_t status = jaxcc_rt_cuda_block_take(c->device, bytes, c->stream, hint, &b);
    if (status) return status;
    b->next = c->blocks;
    c->blocks = b;
    *at = b->at;
    return 0;
}
static int64_t sum(int64_t a, int64_t b) { return a < 0 || b < 0 || a > INT64_MAX - b ? INT64_MAX : a + b; }

void jaxcc_rt_cuda_place(void **words, const int64_t *bytes, int64_t n, CUdeviceptr *at) {
    Area a = area(words, bytes, n);
    for (int64_t k = 0; k < n; k++) {
        CUdeviceptr p = jaxcc_rt_cuda_area_next(&a, at);
        if (bytes[k] > 0) words[k] = pointer(p);
    }
}
/* Host pointers: one block for copies of the arrays and for the workspace. */
static int32_t copy_arguments(Call *c) {
    const jaxcc_rt_cuda_program *p = c->program;
    Area in = area(inputs(c), c->bytes, p->n_in), out = area(outputs(c), output_bytes(c), p->n_out);
    int64_t most = c->bytes[n_arrays(p)];
    int64_t all = sum(sum(jaxcc_rt_cuda_area_bytes(in), jaxcc_rt_cuda_area_bytes(out)), most);
    if (!all) return 0;
    CUdeviceptr at;
    int32_t status = jaxcc_rt_cuda_take_block(c, all, p->hint, &at);
    if (!status) status = jaxcc_rt_cuda_copy_in(c->device, c->lane, c->stream, in, at);
    if (!status) status = jaxcc_rt_cuda_lane_keep(c->lane, outputs(c), p->n_out);
    if (status) return status;
    jaxcc_rt_cuda_place(inputs(c), c->bytes, p->n_in, &at);
    c->outputs = at;
    jaxcc_rt_cuda_place(outputs(c), output_bytes(c), p->n_out, &at);
    if (most) *workspace(c) = pointer(at);
    return 0;
}
static int32_t only_workspace(Call *c) {
    int64_t bytes = c->bytes[n_arrays(c->program)];
    CUdeviceptr at;
    if (!bytes) return 0;
    int32_t status = jaxcc_rt_cuda_take_block(c, bytes < 0 ? INT64_MAX : bytes, c->program->hint, &at);
    if (!status) *workspace(c) = pointer(at);
    return status;
}

/* ---- a call */
/* A graph that runs later would use memory that belongs to other calls by then. CUDA's default stream would wait for
   what is captured on others. */
static int32_t not_captured(Device *d, CUstream stream) {
    int capturing = 0;
    CUresult r = jaxcc_rt_cuda.cuStreamIsCapturing(stream, &capturing);
    if (r == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT)
        return jaxcc_rt_fail_text(JAXCC_ARGUMENT, "CUDA's default stream waits for one that is being captured: "
                                                  "calls need another one");
    int32_t status = jaxcc_rt_cuda_failed(d, r, "cuStreamIsCapturing");
    if (status || !capturing) return status;
    return jaxcc_rt_fail_text(JAXCC_ARGUMENT, "the stream is being captured: a call cannot become part of a graph");
}
static int32_t begin(Call *c) {
    int32_t status = jaxcc_rt_cuda_load(c->device, c->program->library, &c->loaded);
    if (!status && !on_device(c)) status = jaxcc_rt_cuda_take_lane(c);
    if (status) return status;
    c->stream = on_device(c) ? thread_stream : c->lane->stream;
    if (on_device(c)) status = not_captured(c->device, c->stream);
    if (status) return status;
    c->started = true;
    *workspace(c) = NULL;
    return 0;
}
static int32_t be_patient(Call *c) { return c->patience ? c->patience(c) : 0; }
int32_t jaxcc_rt_cuda_wait(Call *c) {
    int32_t status = be_patient(c);
    if (!status) status = CU(c->device, cuStreamSynchronize, c->stream);
    if (!status) jaxcc_rt_cuda_waited();
    return status;
}
static int32_t copy_results(Call *c) {
    const jaxcc_rt_cuda_program *p = c->program;
    Area out = area(c->lane->outputs, output_bytes(c), p->n_out);
    int32_t status = jaxcc_rt_cuda_copy_out(c->device, c->lane, c->stream, out, c->outputs);
    for (Late *l = c->late; l && !status; l = l->next)
        status =
            jaxcc_rt_cuda_copy_out(c->device, c->lane, c->stream, area(&l->host, &l->bytes, 1), address(l->device));
    return status ? status : jaxcc_rt_cuda_wait(c);
}
static void body(void *args, jaxcc_rt_heap *h) {
    Call *c = args;
    c->program->body(c->words, h);
    if (!on_device(c)) must(h, copy_results(c));
}
static int32_t enqueue(Call *c) {
    int32_t status = on_device(c) ? only_workspace(c) : copy_arguments(c);
    return status ? status : jaxcc_rt_cuda_body(body, c, NULL, c);
}
/* The body's work is recorded on a stream where it does not run. */
static int32_t record(Call *c, CUgraph *graph) {
    CUstream stream = c->stream;
    int32_t status = CU(c->device, cuStreamBeginCapture_v2, c->lane->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    if (status) return status;
    c->stream = c->lane->stream;
    c->recording = true;
    status = jaxcc_rt_cuda_body(body, c, NULL, c);
    int32_t ended = CU(c->device, cuStreamEndCapture, c->stream, graph);
    c->stream = stream;
    c->recording = false;
    c->open = c->recorded = 0;
    return status ? status : ended;
}
static int32_t make_graph(Call *c, Graph *g) {
    const jaxcc_rt_cuda_program *p = c->program;
    int64_t bytes = c->bytes[n_arrays(p)];
    CUgraph graph = NULL;
    int32_t status = jaxcc_rt_cuda_take_lane(c);
    if (!status && bytes) status = jaxcc_rt_cuda_block_take(c->device, bytes, c->stream, p->hint, &g->workspace);
    if (status) return status;
    if (bytes) *workspace(c) = pointer(g->workspace->at);
    status = record(c, &graph);
    if (!status) status = CU(c->device, cuGraphInstantiateWithFlags, &g->run, graph, 0);
    if (graph) jaxcc_rt_cuda.cuGraphDestroy(graph);
    g->last = c->last;
    return status;
}
/* What cannot be recorded is enqueued as it is, as are later calls with these words unless there was no memory. */
static int32_t enqueue_graph(Call *c) {
    Graphs *all = &c->device->calls;
    size_t bytes = (size_t)(c->program->n_dims + n_arrays(c->program)) * sizeof *c->words;
    Graph *g = jaxcc_rt_cuda_graph_take(c->device, all, c->program, c->words, bytes, false);
    int32_t made = g && !g->run ? make_graph(c, g) : 0;
    int32_t status = g && !made ? jaxcc_rt_cuda_graph_launch(c->device, g, c->stream) : enqueue(c);
    if (g && made && made != JAXCC_MEMORY && !status)
        jaxcc_rt_cuda_graph_failed(c->device, all, g);
    else if (g && (made || status))
        jaxcc_rt_cuda_graph_drop(c->device, g);
    else if (g)
        jaxcc_rt_cuda_graph_give(c->device, all, g);
    return status;
}
static bool as_graph(Call *c) {
    int64_t flags = c->program->flags;
    if (!on_device(c) || !(flags & JAXCC_RT_CUDA_GRAPH) || !jaxcc_rt_cuda_has(JAXCC_RT_CUDA_OF_GRAPHS)) return false;
    return !(flags & JAXCC_RT_CUDA_LOOPS) || jaxcc_rt_cuda_loops_ready(c);
}
void jaxcc_rt_cuda_give_back(Call *c, bool idle, bool good) {
    for (Block *b = c->blocks, *next; b; b = next) {
        next = b->next;
        jaxcc_rt_cuda_block_give(c->device, b, c->stream, idle);
    }
    if (c->lane) jaxcc_rt_cuda_lane_give(c->device, c->lane, good);
}
/* A call that failed waits for what it has enqueued, as its memory goes to others. */
static void end(Call *c, int32_t status) {
    bool good = true;
    if (status && c->started) good = !jaxcc_rt_cuda.cuStreamSynchronize(c->stream);
    jaxcc_rt_cuda_give_back(c, status ? good : !on_device(c), good);
}
int32_t jaxcc_rt_cuda_run(const jaxcc_rt_cuda_program *p, void **words, const int64_t *bytes) {
    Call c = {.program = p, .words = words, .bytes = bytes};
    int64_t ordinal = JAXCC_RT_CUDA_DEFAULT;
    int32_t status = jaxcc_rt_cuda_open();
    if (!status && on_device(&c)) status = device_of_arrays(&c, &ordinal);
    if (!status) status = jaxcc_rt_cuda_device(ordinal, &c.device);
    if (!status) status = jaxcc_rt_cuda_enter(c.device);
    if (status) return status;
    jaxcc_rt_cuda_free_unfreed(c.device);
    status = begin(&c);
    if (!status) status = as_graph(&c) ? enqueue_graph(&c) : enqueue(&c);
    end(&c, status);
    if (status) jaxcc_rt_cuda_free_unfreed(c.device);
    jaxcc_rt_cuda_leave();
    return status;
}
int32_t jaxcc_rt_cuda_peek(const jaxcc_rt_cuda_program *p, int64_t k, void *to, const void *from, int64_t bytes) {
    Device *d;
    Lane *lane;
    int ordinal = 0;
    memset(to, 0, (size_t)bytes);
    if (!from) return 0;
    int32_t status = jaxcc_rt_cuda_open();
    if (!status) status = device_of(p, k, from, &ordinal);
    if (!status) status = jaxcc_rt_cuda_device(ordinal, &d);
    if (!status) status = jaxcc_rt_cuda_enter(d);
    if (status) return status;
    status = not_captured(d, thread_stream);
    if (!status) status = jaxcc_rt_cuda_lane_take(d, &lane);
    if (!status) {
        status = jaxcc_rt_cuda_copy_out(d, lane, thread_stream, area(&to, &bytes, 1), address(from));
        jaxcc_rt_cuda_lane_give(d, lane, !status);
    }
    jaxcc_rt_cuda_leave();
    return status;
}

/* ---- what the body calls */
void jaxcc_rt_cuda_upload(jaxcc_rt_heap *h, void *to, const void *from, int64_t bytes) {
    Call *c = call_of(h);
    void *host = (void *)from;
    assert(!c->open);
    if (bytes <= 0) return;
    must(h, jaxcc_rt_cuda_take_lane(c));
    if (c->lane->half[0].busy || c->lane->half[1].busy) must(h, be_patient(c));
    must(h, jaxcc_rt_cuda_copy_in(c->device, c->lane, c->stream, area(&host, &bytes, 1), address(to)));
}
void jaxcc_rt_cuda_read(jaxcc_rt_heap *h, void *to, const void *from, int64_t bytes) {
    Call *c = call_of(h);
    assert(!c->open);
    if (bytes <= 0) return;
    must(h, jaxcc_rt_cuda_take_lane(c));
    must(h, be_patient(c));
    must(h, jaxcc_rt_cuda_copy_out(c->device, c->lane, c->stream, area(&to, &bytes, 1), address(from)));
}
static int64_t aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }
void jaxcc_rt_cuda_host(jaxcc_rt_heap *h, jaxcc_rt_function *function, void *const *arrays, const int64_t *bytes,
                        int64_t n_in, int64_t n_out, const int64_t *sizes) {
    int64_t n = n_in + n_out, all = aligned((n + 1) * (int64_t)sizeof(void *));
    for (int64_t i = 0; i < n; i++) all = sum(all, bytes[i] > INT64_MAX - 64 ? INT64_MAX : aligned(bytes[i]));
    char *memory = jaxcc_rt_heap_get(h, all), *at = memory + aligned((n + 1) * (int64_t)sizeof(void *));
    void **host = (void **)memory;
    for (int64_t i = 0; i < n; i++) {
        host[i] = at;
        at += aligned(bytes[i]);
        if (i < n_in) jaxcc_rt_cuda_read(h, host[i], arrays[i], bytes[i]);
    }
    host[n] = arrays[n];
    function(h, host, sizes);
    for (int64_t i = n_in; i < n; i++) jaxcc_rt_cuda_upload(h, arrays[i], host[i], bytes[i]);
    jaxcc_rt_heap_put(h, memory);
}

/* ---- memory that the call asks for */
static int32_t get(jaxcc_rt_heap *h, int64_t bytes, CUdeviceptr *at) {
    return jaxcc_rt_cuda_take_block(call_of(h), bytes < 0 ? INT64_MAX : bytes + !bytes, "", at);
}
void *jaxcc_rt_cuda_get(jaxcc_rt_heap *h, int64_t bytes) {
    CUdeviceptr at = 0;
    must(h, get(h, bytes, &at));
    return pointer(at);
}
void *jaxcc_rt_cuda_rows(jaxcc_rt_heap *h, int64_t bytes, int64_t turns, int64_t row, const char *error) {
    CUdeviceptr at = 0;
    int32_t status = get(h, bytes, &at);
    if (status == JAXCC_MEMORY) jaxcc_rt_heap_no_rows(h, turns, row, error);
    must(h, status);
    return pointer(at);
}
void jaxcc_rt_cuda_put(jaxcc_rt_heap *h, void *p) {
    Call *c = call_of(h);
    Block **b = &c->blocks;
    while ((*b)->at != address(p)) b = &(*b)->next;
    Block *found = *b;
    *b = found->next;
    jaxcc_rt_cuda_block_give(c->device, found, c->stream, false);
}
/* Of an output of a computed size in memory of a device, which work may still use. */
static void release(jaxcc_array *a) {
    int ordinal = 0;
    Device *d;
    CUdeviceptr at = address(a->data);
    free((void *)a->dims);
    *a = (jaxcc_array){0};
    if (!at || !jaxcc_rt_cuda_is_open()) return;
    if (jaxcc_rt_cuda.cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, at)) return;
    if (jaxcc_rt_cuda_device(ordinal, &d) || jaxcc_rt_cuda_enter(d)) return;
    jaxcc_rt_cuda_free(d, at);
    jaxcc_rt_cuda_leave();
}
void *jaxcc_rt_cuda_array(jaxcc_rt_heap *h, jaxcc_array *out, int32_t rank, const int64_t *dims, int64_t bytes) {
    Call *c = call_of(h);
    CUdeviceptr at = 0;
    if (on_device(c)) {
        jaxcc_rt_heap_output(h, out, rank, dims, release);
        must(h, jaxcc_rt_cuda_alloc(c->device, bytes < 0 ? INT64_MAX : bytes + !bytes, "", &at));
        return out->data = pointer(at);
    }
    void *host = jaxcc_rt_heap_array(h, out, rank, dims, bytes);
    must(h, get(h, bytes, &at));
    Late *l = jaxcc_rt_heap_get(h, sizeof *l);
    *l = (Late){c->late, host, pointer(at), bytes};
    c->late = l;
    return pointer(at);
}
