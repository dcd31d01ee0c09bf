/* Streams and events. Work has numbers in the order in which it comes; to wait for an event is to do the work of its
   stream up to the number at which it was recorded. */
#include "driver.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct Event {
    int device;
    Stream *stream; /* where it was recorded last, or NULL */
    uint64_t number;
    Graph *capture; /* while the graph that it was recorded in is captured */
    double time;    /* when that was done, in ms */
    bool timed, pending;
} Event;

static Stream *streams; /* all, also destroyed ones */
static uint64_t newest;
static _Thread_local Stream *own[MOST_DEVICES]; /* the threads' default streams */

/* ---- streams by handle */
static Stream *stream_new(int device, bool blocking) {
    Stream *s = calloc(1, sizeof *s);
    if (!s) abort();
    *s = (Stream){.device = device, .blocking = blocking, .last = &s->first, .next = streams};
    streams = s;
    return s;
}
static Stream *default_stream(Stream **s) {
    if (!*s) *s = stream_new(current_device(), true);
    return *s;
}
Stream *stream_of(CUstream handle, const char *name) {
    Device *d = &devices[current_device()];
    if ((uintptr_t)handle <= 1) return default_stream(&d->legacy);
    if ((uintptr_t)handle == 2) return default_stream(&own[current_device()]);
    Stream *s = handle_object(STREAM, handle);
    if (s && s->device != current_device()) {
        misused(0, "the stream is of device %d, the context of %d", s->device, current_device());
        return NULL;
    }
    return s;
}
/* ---- what captures forbid. The thread's mode: */
static _Thread_local enum { GLOBAL, THREAD_LOCAL, RELAXED } thread_mode;
static bool forbids_unsafe(const Stream *s) {
    bool own_thread = s->capture_thread == (uint64_t)gettid();
    if (thread_mode == RELAXED || s->capture_mode == RELAXED) return false;
    return own_thread || (thread_mode == GLOBAL && s->capture_mode == GLOBAL);
}
static bool any(const Stream *s) { return true; }
static bool is_blocking(const Stream *s) { return s->blocking; }
static CUresult conflict(int device, bool (*with)(const Stream *), CUresult r) {
    bool found = false;
    for (Stream *s = streams; s; s = s->next) {
        if (!s->capture || (device >= 0 && s->device != device) || !with(s)) continue;
        found = s->invalid = true;
    }
    return found ? r : 0;
}
CUresult stream_unsafe(void) { return conflict(-1, forbids_unsafe, CAPTURE_UNSUPPORTED); }
CUresult stream_waits(int device) { return conflict(device, any, CAPTURE_UNSUPPORTED); }
CUresult stream_waits_blocking(int device) { return conflict(device, is_blocking, CAPTURE_IMPLICIT); }
static CUresult exchange_mode(int *mode) {
    int before = (int)thread_mode;
    if (*mode < GLOBAL || *mode > RELAXED) return CUDA_ERROR_INVALID_VALUE;
    thread_mode = *mode;
    *mode = before;
    return 0;
}
API cuThreadExchangeStreamCaptureMode(int *mode) { return done(begin(__func__, STARTED) ?: exchange_mode(mode)); }
bool stream_captures(const Graph *g) {
    for (const Stream *s = streams; s; s = s->next)
        if (s->capture == g) return true;
    return false;
}

/* ---- work */
void work_free(Work *w) {
    if (w->own) free(w->host);
    free(w->parameters);
    if (w->exec) exec_free(w->exec);
    free(w);
}
static CUresult perform(Work *w) {
    if (devices[w->device].error) return devices[w->device].error;
    return w->perform(w);
}
static CUresult perform_first(Stream *s) {
    Work *w = s->first;
    s->first = w->next;
    if (!s->first) s->last = &s->first;
    s->busy++;
    CUresult r = perform(w);
    s->busy--;
    work_free(w);
    return r;
}
/* Faults are of one device: they end what waits there, and no more. */
static CUresult perform_wait(Work *w) {
    CUresult r = stream_drain(w->waits, w->until);
    return w->waits->device == w->device ? r : 0;
}
/* ---- work that ends when somebody says so, for tests: *held is false */
static int n_held;
static CUresult perform_held(Work *w) {
    n_held--;
    if (!*(volatile bool *)w->host) return 0;
    return lost(w->device, misused(702, "it waits for what does not come"));
}
static bool is_held(const Work *w, uint64_t until) {
    for (; n_held && w && w->number <= until; w = w->next)
        if (w->perform == perform_held   ? *(volatile bool *)w->host
            : w->perform == perform_wait ? is_held(w->waits->first, w->until)
                                         : false)
            return true;
    return false;
}
/* May its first work begin? Not while what came before is in progress, or what it waits for. */
static bool can_begin(const Stream *s) {
    const Work *w = s->first;
    if (!w || s->busy || is_held(w, w->number)) return false;
    if (w->perform != perform_wait) return true;
    return !w->waits->busy && (!w->waits->first || w->waits->first->number > w->until);
}
/* Streams run at the same time: one piece of work of each of the others. */
static void interleave(const Stream *s) {
    static bool inside;
    if (settings.lazy < 2 || inside) return;
    inside = true;
    for (Stream *other = streams; other; other = other->next)
        if (other != s && can_begin(other)) perform_first(other);
    inside = false;
}
CUresult stream_drain(Stream *s, uint64_t until) {
    CUresult r = devices[s->device].error;
    while (s->first && s->first->number <= until) {
        interleave(s);
        if (!s->first || s->first->number > until) break; /* another one has waited for it */
        CUresult one = perform_first(s);
        if (!r) r = one;
    }
    return r ?: devices[s->device].error;
}
CUresult stream_drain_all(int device) {
    CUresult r = 0;
    for (Stream *s = streams; s; s = s->next)
        if (s->device == device) r = r ?: stream_drain(s, UINT64_MAX);
    return r ?: devices[device].error;
}
bool stream_uses(const void *module) {
    for (const Stream *s = streams; s; s = s->next)
        for (const Work *w = s->first; w; w = w->next)
            if (w->module == module) return true;
    return false;
}
void stream_forget(int device) {
    for (Stream *s = streams; s; s = s->next) {
        if (s->device != device) continue;
        while (s->first) {
            Work *w = s->first;
            s->first = w->next;
            work_free(w);
        }
        s->last = &s->first;
        s->dead = true;
    }
}
static void enqueue(Stream *s, const Work *w) {
    Work *one = malloc(sizeof *one);
    if (!one) abort();
    *one = *w;
    one->next = NULL;
    one->number = s->newest = ++newest;
    one->device = s->device;
    *s->last = one;
    s->last = &one->next;
}
static void wait_stream(Stream *s, Stream *other) {
    if (!other || other == s || !other->first) return;
    enqueue(s, &(Work){.perform = perform_wait, .waits = other, .until = other->newest});
}
/* The default stream of a device waits for its blocking streams, and they for it. */
static void wait_default(Stream *s) {
    Stream *legacy = devices[s->device].legacy;
    if (s != legacy) {
        if (s->blocking) wait_stream(s, legacy);
        return;
    }
    for (Stream *other = streams; other; other = other->next)
        if (other->device == s->device && other->blocking) wait_stream(s, other);
}
static CUresult invalidate(Stream *s) {
    s->invalid = true;
    return CAPTURE_INVALIDATED;
}
CUresult stream_add(Stream *s, Work w) {
    w.device = s->device;
    if (s->capture) {
        CUresult r = s->invalid ? CAPTURE_INVALIDATED : w.graph_type < 0 ? invalidate(s) : graph_add(s->capture, w);
        return r;
    }
    CUresult refused = s == devices[s->device].legacy ? stream_waits_blocking(s->device) : 0;
    if (refused) return refused;
    if (!settings.lazy && !s->first && !is_held(&w, 0)) {
        Work *one = malloc(sizeof *one);
        if (!one) abort();
        *one = w;
        CUresult r = perform(one);
        s->newest = ++newest;
        work_free(one);
        return w.perform == perform_launch && !settings.blocking ? 0 : r; /* faults show later */
    }
    wait_default(s);
    enqueue(s, &w);
    return w.perform == perform_launch && settings.blocking ? stream_drain(s, UINT64_MAX) : 0;
}

/* ---- functions of streams */
static CUresult create(CUstream *handle, unsigned flags) {
    if (flags > 1) return CUDA_ERROR_INVALID_VALUE;
    Stream *s = stream_new(current_device(), !flags);
    s->handle = handle_again(STREAM, s->device, s);
    *handle = s->handle;
    return 0;
}
API cuStreamCreate(CUstream *handle, unsigned flags) { return done(begin(__func__, CURRENT) ?: create(handle, flags)); }
API cuStreamCreateWithPriority(CUstream *handle, unsigned flags, int priority) {
    return done(begin(__func__, CURRENT) ?: create(handle, flags));
}
/* Work that it still has is done when the device is waited for. */
static CUresult destroy(CUstream handle) {
    Stream *s = handle_object(STREAM, handle);
    if (!s) return INVALID_HANDLE;
    handle_end(handle);
    s->dead = true;
    return 0;
}
API cuStreamDestroy_v2(CUstream handle) { return done(begin(__func__, CURRENT) ?: destroy(handle)); }
static CUresult synchronize(CUstream handle, const char *name) {
    Stream *s = stream_of(handle, name);
    if (!s) return INVALID_HANDLE;
    if (s->capture) return invalidate(s), CAPTURE_UNSUPPORTED;
    CUresult r = s == devices[s->device].legacy ? stream_waits_blocking(s->device) : 0;
    if (r) return r;
    counts.waits++;
    wait_default(s);
    return stream_drain(s, UINT64_MAX);
}
API cuStreamSynchronize(CUstream handle) {
    return done(begin(__func__, CURRENT) ?: stream_unsafe() ?: synchronize(handle, __func__));
}
/* Who asks again and again will see the work done. */
static CUresult one_step(Stream *s) {
    if (!s->first) return devices[s->device].error;
    if (is_held(s->first, s->first->number)) return CUDA_ERROR_NOT_READY;
    CUresult r = stream_drain(s, s->first->number);
    return r ?: CUDA_ERROR_NOT_READY;
}
static CUresult query(CUstream handle, const char *name) {
    Stream *s = stream_of(handle, name);
    return !s ? INVALID_HANDLE : s->capture ? CAPTURE_UNSUPPORTED : one_step(s);
}
API cuStreamQuery(CUstream handle) {
    return done(begin(__func__, CURRENT) ?: stream_unsafe() ?: query(handle, __func__));
}
static CUresult context_of(CUstream handle, CUcontext *context, const char *name) {
    const Stream *s = stream_of(handle, name);
    if (!s) return INVALID_HANDLE;
    *context = devices[s->device].context;
    return 0;
}
API cuStreamGetCtx(CUstream handle, CUcontext *context) {
    return done(begin(__func__, CURRENT) ?: context_of(handle, context, __func__));
}
static CUresult perform_call(Work *w) { return w->call(w->host), 0; }
static CUresult host_function(CUstream handle, HostFunction *f, void *data, const char *name) {
    Stream *s = stream_of(handle, name);
    if (!s) return INVALID_HANDLE;
    return stream_add(s, (Work){.perform = perform_call, .call = f, .host = data, .graph_type = GRAPH_HOST});
}
API cuLaunchHostFunc(CUstream handle, HostFunction *f, void *data) {
    return done(begin(__func__, CURRENT) ?: host_function(handle, f, data, __func__));
}

static CUresult hold(CUstream handle, volatile bool *held) {
    Stream *s = stream_of(handle, "jaxcc_gpu_hold");
    n_held += s != NULL;
    return s ? stream_add(s, (Work){.perform = perform_held, .host = (void *)held, .graph_type = -1}) : INVALID_HANDLE;
}
API jaxcc_gpu_hold(CUstream handle, volatile bool *held) {
    return done(begin(__func__, CURRENT) ?: hold(handle, held));
}

/* ---- events */
static CUresult event_create(CUevent *handle, unsigned flags) {
    Event *e = calloc(1, sizeof *e);
    if (!e) abort();
    e->device = current_device();
    e->timed = !(flags & 2);
    *handle = handle_new(EVENT, e->device, e);
    return 0;
}
API cuEventCreate(CUevent *handle, unsigned flags) {
    return done(begin(__func__, CURRENT) ?: event_create(handle, flags));
}
static CUresult event_destroy(CUevent handle) {
    if (!handle_object(EVENT, handle)) return INVALID_HANDLE;
    handle_end(handle);
    return 0;
}
API cuEventDestroy_v2(CUevent handle) { return done(begin(__func__, CURRENT) ?: event_destroy(handle)); }
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}
static CUresult perform_record(Work *w) {
    w->event->time = now();
    return 0;
}
static CUresult record(CUevent handle, CUstream stream, const char *name) {
    Event *e = handle_object(EVENT, handle);
    Stream *s = e ? stream_of(stream, name) : NULL;
    if (!s) return INVALID_HANDLE;
    e->capture = s->capture;
    if (s->capture) return 0;
    e->stream = s;
    CUresult r = stream_add(s, (Work){.perform = perform_record, .event = e, .graph_type = -1});
    e->number = s->newest;
    return r;
}
API cuEventRecord(CUevent handle, CUstream stream) {
    return done(begin(__func__, CURRENT) ?: record(handle, stream, __func__));
}
static bool is_done(const Event *e) { return !e->stream || !e->stream->first || e->stream->first->number > e->number; }
static CUresult event_wait(CUevent handle) {
    const Event *e = handle_object(EVENT, handle);
    if (!e) return INVALID_HANDLE;
    if (e->capture) return CAPTURED_EVENT;
    CUresult r = stream_unsafe();
    if (r) return r;
    counts.waits++;
    return e->stream ? stream_drain(e->stream, e->number) : 0;
}
API cuEventSynchronize(CUevent handle) { return done(begin(__func__, CURRENT) ?: event_wait(handle)); }
static CUresult event_query(CUevent handle) {
    const Event *e = handle_object(EVENT, handle);
    if (!e) return INVALID_HANDLE;
    if (e->capture) return CAPTURED_EVENT;
    CUresult r = stream_unsafe();
    if (r) return r;
    return is_done(e) ? devices[e->device].error : one_step(e->stream);
}
API cuEventQuery(CUevent handle) { return done(begin(__func__, CURRENT) ?: event_query(handle)); }
static CUresult elapsed(float *ms, CUevent a, CUevent b) {
    const Event *x = handle_object(EVENT, a), *y = handle_object(EVENT, b);
    if (!x || !y) return INVALID_HANDLE;
    if (!x->timed || !y->timed || !x->stream || !y->stream) return INVALID_HANDLE;
    if (!is_done(x) || !is_done(y)) return CUDA_ERROR_NOT_READY;
    *ms = (float)(y->time - x->time);
    return 0;
}
API cuEventElapsedTime(float *ms, CUevent a, CUevent b) { return done(begin(__func__, CURRENT) ?: elapsed(ms, a, b)); }
API cuEventElapsedTime_v2(float *ms, CUevent a, CUevent b) {
    return done(begin(__func__, CURRENT) ?: elapsed(ms, a, b));
}
static CUresult join(Stream *s, Graph *g, const Stream *from) {
    if (s->capture) return s->capture == g ? 0 : invalidate(s);
    s->capture = g;
    s->capture_mode = from ? from->capture_mode : 2;
    s->capture_thread = (uint64_t)gettid();
    return 0;
}
static CUresult wait_event(CUstream stream, CUevent handle, const char *name) {
    const Event *e = handle_object(EVENT, handle);
    Stream *s = e ? stream_of(stream, name) : NULL;
    if (!s) return INVALID_HANDLE;
    if (e->capture) return join(s, e->capture, NULL);
    if (s->capture) return invalidate(s), 905; /* STREAM_CAPTURE_ISOLATION */
    if (is_done(e)) return 0;
    return stream_add(s, (Work){.perform = perform_wait, .waits = e->stream, .until = e->number, .graph_type = -1});
}
API cuStreamWaitEvent(CUstream stream, CUevent handle, unsigned flags) {
    return done(begin(__func__, CURRENT) ?: wait_event(stream, handle, __func__));
}

/* ---- capture */
enum { CAPTURE_ACTIVE = 1, CAPTURE_SET = 1 };
static CUresult capture(CUstream handle, Graph *into, int mode, const char *name) {
    Stream *s = stream_of(handle, name);
    if (!s) return INVALID_HANDLE;
    if (s == devices[s->device].legacy) return CAPTURE_UNSUPPORTED;
    if (s->capture) return CUDA_ERROR_INVALID_VALUE;
    counts.captures++;
    s->capture = into ? into : graph_new();
    s->captured_into = into;
    s->capture_origin = true;
    s->invalid = false;
    s->capture_mode = mode;
    s->capture_thread = (uint64_t)gettid();
    return 0;
}
API cuStreamBeginCapture_v2(CUstream handle, int mode) {
    return done(begin(__func__, CURRENT) ?: capture(handle, NULL, mode, __func__));
}
static CUresult capture_into(CUstream handle, CUgraph graph, int mode, const char *name) {
    Graph *g = handle_object(GRAPH, graph);
    if (settings.version < CONDITIONS_SINCE) return NOT_SUPPORTED;
    return g ? capture(handle, g, mode, name) : INVALID_HANDLE;
}
API cuStreamBeginCaptureToGraph(CUstream handle, CUgraph graph, const CUgraphNode *after, const void *edges, size_t n,
                                int mode) {
    return done(begin(__func__, CURRENT) ?: capture_into(handle, graph, mode, __func__));
}
static CUresult end_capture(CUstream handle, CUgraph *graph, bool *new, const char *name) {
    Stream *s = stream_of(handle, name);
    *graph = NULL;
    if (!s) return INVALID_HANDLE;
    if (!s->capture || !s->capture_origin) return CAPTURE_UNMATCHED;
    Graph *g = s->capture;
    bool invalid = false;
    for (Stream *other = streams; other; other = other->next) {
        if (other->capture != g) continue;
        invalid |= other->invalid;
        other->capture = NULL;
        other->capture_origin = other->invalid = false;
    }
    *new = !s->captured_into;
    if (invalid && *new) graph_free(g);
    if (invalid) return CAPTURE_INVALIDATED;
    *graph = graph_handle(g);
    return 0;
}
/* It ends, also if this fails. */
API cuStreamEndCapture(CUstream handle, CUgraph *graph) {
    bool new = false;
    CUresult r = begin(__func__, CURRENT), ended = end_capture(handle, graph, &new, __func__);
    if (r && new && *graph) graph_destroy(*graph), *graph = NULL;
    return done(r ?: ended);
}
static CUresult capture_info(CUstream handle, int *status, CUgraph *graph, const CUgraphNode **nodes, size_t *n,
                             const char *name) {
    static _Thread_local CUgraphNode last; /* the caller reads it before its next call */
    Stream *s = stream_of(handle, name);
    if (!s) return INVALID_HANDLE;
    if (settings.version < CONDITIONS_SINCE) return NOT_SUPPORTED;
    *status = !s->capture ? 0 : s->invalid ? 2 : CAPTURE_ACTIVE;
    if (*status != CAPTURE_ACTIVE) return 0;
    last = graph_end(s->capture);
    if (graph) *graph = graph_handle(s->capture);
    if (nodes) *nodes = &last;
    if (n) *n = last ? 1 : 0;
    return 0;
}
API cuStreamGetCaptureInfo_v3(CUstream handle, int *status, uint64_t *id, CUgraph *graph, const CUgraphNode **nodes,
                              const void **edges, size_t *n) {
    return done(begin(__func__, CURRENT) ?: capture_info(handle, status, graph, nodes, n, __func__));
}
static CUresult update_capture(CUstream handle, const CUgraphNode *nodes, size_t n, unsigned flags, const char *name) {
    Stream *s = stream_of(handle, name);
    if (!s) return INVALID_HANDLE;
    if (settings.version < CONDITIONS_SINCE) return NOT_SUPPORTED;
    if (!s->capture) return ILLEGAL_STATE;
    if (n != 1 || flags > CAPTURE_SET) return CUDA_ERROR_INVALID_VALUE;
    return graph_follow(s->capture, nodes[0]);
}
API cuStreamUpdateCaptureDependencies_v2(CUstream handle, CUgraphNode *nodes, const void *edges, size_t n,
                                         unsigned flags) {
    return done(begin(__func__, CURRENT) ?: update_capture(handle, nodes, n, flags, __func__));
}
static CUresult is_capturing(CUstream handle, int *status, const char *name) {
    const Stream *s = stream_of(handle, name);
    if (!s) return INVALID_HANDLE;
    for (const Stream *other = s == devices[s->device].legacy ? streams : NULL; other; other = other->next)
        if (other->device == s->device && other->blocking && other->capture) return CAPTURE_IMPLICIT;
    *status = !s->capture ? 0 : s->invalid ? 2 : 1;
    return 0;
}
API cuStreamIsCapturing(CUstream handle, int *status) {
    return done(begin(__func__, CURRENT) ?: is_capturing(handle, status, __func__));
}
