/* Memory: of devices, pinned on the host, in pools; copies and fills. */
#include "driver.h"
#include <stdlib.h>
#include <string.h>

/* An array, of a device or pinned on the host. */
typedef struct Array {
    struct Array *next;
    uint64_t at;
    size_t bytes;
    int device;
    bool pinned;
} Array;
static Array *arrays;

static Array *find(uint64_t at, size_t bytes, bool pinned) {
    for (Array *a = arrays; a; a = a->next)
        if (a->pinned == pinned && at >= a->at && at - a->at < a->bytes && bytes <= a->bytes - (at - a->at)) return a;
    return NULL;
}
int memory_device(CUdeviceptr at, size_t bytes) {
    const Array *a = find(at, bytes, false);
    return a ? a->device : -1;
}
bool memory_pinned(const void *at, size_t bytes) { return find((uint64_t)at, bytes, true); }
static void add(uint64_t at, size_t bytes, bool pinned) {
    Array *a = malloc(sizeof *a);
    if (!a) abort();
    *a = (Array){arrays, at, bytes, current_device(), pinned};
    arrays = a;
}
static void cut(const Array *gone) {
    Array **a = &arrays;
    while (*a != gone) a = &(*a)->next;
    *a = gone->next;
    free((void *)gone);
}
void memory_report(FILE *f) {
    for (const Array *a = arrays; a; a = a->next)
        fprintf(f, "leak: %zu bytes of %s %d\n", a->bytes, a->pinned ? "pinned memory, device" : "device", a->device);
}
static void drop(Array *a) {
    if (a->pinned)
        free((void *)a->at);
    else
        ptx_free(a->at);
    if (!a->pinned) devices[a->device].used -= a->bytes;
    cut(a);
}
void memory_forget(int d) {
    for (Array *a = arrays, *next; a; a = next) {
        next = a->next;
        if (a->device != d) continue;
        if (!devices[d].error)
            misused(0, "%zu bytes of %s were not freed", a->bytes, a->pinned ? "pinned memory" : "memory");
        drop(a);
    }
}

/* ---- allocation */
static CUresult allocate(CUdeviceptr *at, size_t bytes) {
    Device *d = &devices[current_device()];
    if (!bytes) return misused(CUDA_ERROR_INVALID_VALUE, "0 bytes are asked for");
    if (bytes > settings.memory - d->used) return CUDA_ERROR_OUT_OF_MEMORY;
    *at = ptx_alloc(bytes);
    if (!*at) return CUDA_ERROR_OUT_OF_MEMORY;
    add(*at, bytes, false);
    d->used += bytes;
    counts.allocations++;
    if (d->used > counts.peak) counts.peak = d->used;
    return 0;
}
API cuMemAlloc_v2(CUdeviceptr *at, size_t bytes) {
    return done(begin(__func__, CURRENT) ?: stream_unsafe() ?: allocate(at, bytes));
}
API cuMemAllocManaged(CUdeviceptr *at, size_t bytes, unsigned flags) {
    return done(begin(__func__, CURRENT) ?: NOT_SUPPORTED);
}
CUresult memory_free(CUdeviceptr at) {
    Array *a = find(at, 1, false);
    if (!a || a->at != at) return misused(CUDA_ERROR_INVALID_VALUE, "%p was not allocated, or was freed", (void *)at);
    drop(a);
    return 0;
}
/* As NVIDIA's guide says, work on all streams of the device ends before. Nothing says that it is not waited for by the
   default stream. Work that comes later finds the memory gone. */
static CUresult wait_and_free(CUdeviceptr at) {
    int device = current_device();
    return stream_waits_blocking(device) ?: stream_drain_all(device) ?: memory_free(at);
}
API cuMemFree_v2(CUdeviceptr at) {
    return done(begin(__func__, CURRENT) ?: stream_unsafe() ?: at ? wait_and_free(at) : 0);
}
static CUresult pin(void **at, size_t bytes) {
    if (!bytes) return misused(CUDA_ERROR_INVALID_VALUE, "0 bytes are asked for");
    *at = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    if (!*at) return CUDA_ERROR_OUT_OF_MEMORY;
    memset(*at, 0xA5, bytes);
    add((uint64_t)*at, bytes, true);
    return 0;
}
API cuMemHostAlloc(void **at, size_t bytes, unsigned flags) {
    return done(begin(__func__, CURRENT) ?: stream_unsafe() ?: pin(at, bytes));
}
API cuMemAllocHost_v2(void **at, size_t bytes) {
    return done(begin(__func__, CURRENT) ?: stream_unsafe() ?: pin(at, bytes));
}
static CUresult unpin(void *at) {
    Array *a = find((uint64_t)at, 1, true);
    if (!a || a->at != (uint64_t)at) return misused(CUDA_ERROR_INVALID_VALUE, "%p was not allocated, or was freed", at);
    drop(a);
    return 0;
}
API cuMemFreeHost(void *at) { return done(begin(__func__, CURRENT) ?: stream_unsafe() ?: unpin(at)); }
static CUresult sizes(size_t *unused, size_t *all) {
    *all = settings.memory;
    *unused = settings.memory - devices[current_device()].used;
    return 0;
}
API cuMemGetInfo_v2(size_t *unused, size_t *all) { return done(begin(__func__, CURRENT) ?: sizes(unused, all)); }

/* ---- pools, which keep nothing here */
typedef struct {
    int device;
    uint64_t values[8]; /* of attributes */
} Pool;
static CUmemoryPool default_pools[MOST_DEVICES];

static CUresult pool_new(CUmemoryPool *pool, int d) {
    Pool *p = calloc(1, sizeof *p);
    if (!p) abort();
    p->device = d;
    *pool = handle_new(POOL, d, p);
    return 0;
}
static CUresult default_pool(CUmemoryPool *pool, int d) {
    static Pool pools[MOST_DEVICES];
    if (d < 0 || d >= settings.n_devices) return INVALID_DEVICE;
    pools[d].device = d;
    if (!default_pools[d]) default_pools[d] = handle_new(POOL, -1, &pools[d]);
    *pool = default_pools[d];
    return 0;
}
API cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice d) {
    return done(begin(__func__, STARTED) ?: default_pool(pool, d));
}
API cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice d) {
    return done(begin(__func__, STARTED) ?: default_pool(pool, d));
}
/* properties: ..., CUmemLocation {type, id} at word 2 */
API cuMemPoolCreate(CUmemoryPool *pool, const int *properties) {
    return done(begin(__func__, STARTED) ?: pool_new(pool, properties[3]));
}
static CUresult pool_end(CUmemoryPool pool) {
    Pool *p = handle_object(POOL, pool);
    if (!p || pool == default_pools[p->device]) return CUDA_ERROR_INVALID_VALUE;
    handle_end(pool);
    free(p);
    return 0;
}
API cuMemPoolDestroy(CUmemoryPool pool) { return done(begin(__func__, STARTED) ?: pool_end(pool)); }
static CUresult pool_value(CUmemoryPool pool, int which, void *value, bool set) {
    Pool *p = handle_object(POOL, pool);
    if (!p || which < 1 || which > 7) return CUDA_ERROR_INVALID_VALUE;
    size_t bytes = which <= 3 ? sizeof(int) : sizeof(uint64_t);
    if (set)
        memcpy(&p->values[which], value, bytes);
    else
        memcpy(value, &p->values[which], bytes);
    return 0;
}
API cuMemPoolSetAttribute(CUmemoryPool pool, int which, void *value) {
    return done(begin(__func__, STARTED) ?: pool_value(pool, which, value, true));
}
API cuMemPoolGetAttribute(CUmemoryPool pool, int which, void *value) {
    return done(begin(__func__, STARTED) ?: pool_value(pool, which, value, false));
}
API cuMemPoolTrimTo(CUmemoryPool pool, size_t bytes) {
    return done(begin(__func__, STARTED) ?: handle_object(POOL, pool) ? 0 : CUDA_ERROR_INVALID_VALUE);
}
static CUresult allocate_on(CUdeviceptr *at, size_t bytes, CUstream stream, const char *name) {
    const Stream *s = stream_of(stream, name);
    if (!s) return INVALID_HANDLE;
    return s->capture ? NOT_SUPPORTED : allocate(at, bytes);
}
API cuMemAllocAsync(CUdeviceptr *at, size_t bytes, CUstream stream) {
    return done(begin(__func__, CURRENT) ?: allocate_on(at, bytes, stream, __func__));
}
API cuMemAllocFromPoolAsync(CUdeviceptr *at, size_t bytes, CUmemoryPool pool, CUstream stream) {
    return done(begin(__func__, CURRENT)
                    ?: !handle_object(POOL, pool) ? INVALID_HANDLE
                                                  : allocate_on(at, bytes, stream, __func__));
}
static CUresult perform_free(Work *w) { return memory_free(w->to); }
static CUresult add_work(CUstream stream, Work w, const char *name) {
    Stream *s = stream_of(stream, name);
    return s ? stream_add(s, w) : INVALID_HANDLE;
}
API cuMemFreeAsync(CUdeviceptr at, CUstream stream) {
    Work w = {.perform = perform_free, .to = at, .graph_type = -1};
    return done(begin(__func__, CURRENT)
                    ?: memory_device(at, 1) < 0
                       ? misused(CUDA_ERROR_INVALID_VALUE, "%p was not allocated, or was freed", (void *)at)
                       : add_work(stream, w, __func__));
}

/* ---- copies */
/* The host's address of device memory that work uses; NULL after it was freed. */
static void *reach(const Work *w, CUdeviceptr at, size_t bytes) {
    if (memory_device(at, bytes) >= 0) return ptx_host(at, bytes);
    misused(0, "%zu bytes at %p were freed before they were copied", bytes, (void *)at);
    lost(w->device, ILLEGAL_ADDRESS);
    return NULL;
}
static CUresult perform_in(Work *w) {
    void *to = reach(w, w->to, w->n);
    if (!to) return ILLEGAL_ADDRESS;
    if (!w->own && w->graph_type < 0 && !memory_pinned(w->host, w->n))
        return misused(CUDA_ERROR_INVALID_VALUE, "pinned memory was freed before it was copied");
    memcpy(to, w->host, w->n);
    ptx_mark_written(w->to, w->n);
    return 0;
}
/* What is copied to the host was written, but what arrays that are copied together have behind them: the next one
   begins at a multiple of ALIGN, and the last one ends with the copy. */
enum { ALIGN = 256 };
static CUresult check_written(const Work *w) {
    for (size_t at = 0, n; at < w->n && ptx_options.uninitialised; at += n) {
        n = ALIGN - (w->from + at) % ALIGN;
        bool last = w->n - at <= n;
        if (last) n = w->n - at;
        size_t there = ptx_run(w->from + at, n, true);
        if (there == n || (there && !last && ptx_run(w->from + at + there, n - there, false) == n - there)) continue;
        misused(0, "byte %zu of %zu was never written", at + there, w->n);
        return lost(w->device, ILLEGAL_ADDRESS);
    }
    return 0;
}
static CUresult perform_out(Work *w) {
    const void *from = reach(w, w->from, w->n);
    if (!from) return ILLEGAL_ADDRESS;
    if (!w->own && w->graph_type < 0 && !memory_pinned(w->host, w->n))
        return misused(CUDA_ERROR_INVALID_VALUE, "pinned memory was freed before it was copied to");
    memcpy(w->host, from, w->n);
    return check_written(w);
}
static CUresult perform_copy(Work *w) {
    void *to = reach(w, w->to, w->n);
    const void *from = to ? reach(w, w->from, w->n) : NULL;
    if (!from) return ILLEGAL_ADDRESS;
    if (w->to < w->from + w->n && w->from < w->to + w->n && w->to != w->from) misused(0, "the copied arrays overlap");
    memmove(to, from, w->n);
    if (ptx_written(w->from, w->n)) ptx_mark_written(w->to, w->n);
    return 0;
}
static CUresult bad_range(CUdeviceptr at, size_t bytes) {
    if (memory_device(at, bytes) >= 0) return 0;
    return misused(CUDA_ERROR_INVALID_VALUE, "%zu bytes at %p are not of one array", bytes, (void *)at);
}
static CUresult wait_for(Stream *s) {
    counts.waits++;
    return stream_drain(s, UINT64_MAX);
}
/* From memory that is not pinned the driver copies at once. */
static CUresult copy_in(CUdeviceptr to, const void *from, size_t n, CUstream stream, const char *name) {
    Stream *s = stream_of(stream, name);
    if (!s) return INVALID_HANDLE;
    CUresult r = bad_range(to, n);
    if (r || !n) return r;
    counts.to_device += n;
    Work w = {.perform = perform_in, .to = to, .host = (void *)from, .n = n, .graph_type = -1};
    if (!s->capture && !memory_pinned(from, n)) {
        w.host = malloc(n);
        if (!w.host) abort();
        memcpy(w.host, from, n);
        w.own = true;
    }
    if (s->capture) w.graph_type = GRAPH_COPY;
    return stream_add(s, w);
}
/* To memory that is not pinned the driver waits for the end. */
static CUresult copy_out(void *to, CUdeviceptr from, size_t n, CUstream stream, bool wait, const char *name) {
    Stream *s = stream_of(stream, name);
    if (!s) return INVALID_HANDLE;
    CUresult r = bad_range(from, n);
    if (r || !n) return r;
    counts.to_host += n;
    bool pinned = memory_pinned(to, n);
    int type = s->capture || !pinned ? GRAPH_COPY : -1; /* its memory is not looked for */
    r = stream_add(s, (Work){.perform = perform_out, .from = from, .host = to, .n = n, .graph_type = type});
    return r || s->capture || (pinned && !wait) ? r : wait_for(s);
}
static CUresult copy(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream stream, const char *name) {
    CUresult r = bad_range(to, n) ?: bad_range(from, n);
    if (r || !n) return r;
    counts.on_device += n;
    return add_work(stream, (Work){.perform = perform_copy, .to = to, .from = from, .n = n, .graph_type = GRAPH_COPY},
                    name);
}
API cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t n, CUstream stream) {
    return done(begin(__func__, CURRENT) ?: copy_in(to, from, n, stream, __func__));
}
API cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t n, CUstream stream) {
    return done(begin(__func__, CURRENT) ?: copy_out(to, from, n, stream, false, __func__));
}
static CUresult copy_here(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream stream, const char *name) {
    if (memory_device(to, n) != memory_device(from, n))
        return misused(CUDA_ERROR_INVALID_VALUE, "the arrays are on two devices");
    return copy(to, from, n, stream, name);
}
API cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream stream) {
    return done(begin(__func__, CURRENT) ?: copy_here(to, from, n, stream, __func__));
}
static CUresult legacy(void) {
    Stream *s = stream_of(NULL, "");
    return s ? wait_for(s) : INVALID_HANDLE;
}
API cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t n) {
    return done(begin(__func__, CURRENT) ?: stream_unsafe() ?: copy_in(to, from, n, NULL, __func__) ?: legacy());
}
API cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t n) {
    return done(begin(__func__, CURRENT) ?: stream_unsafe() ?: copy_out(to, from, n, NULL, true, __func__));
}
API cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t n) {
    return done(begin(__func__, CURRENT) ?: stream_unsafe() ?: copy(to, from, n, NULL, __func__));
}
static CUresult peer_copy(CUdeviceptr to, CUcontext a, CUdeviceptr from, CUcontext b, size_t n, CUstream stream,
                          const char *name) {
    if (!handle_object(CONTEXT, a) || !handle_object(CONTEXT, b)) return INVALID_CONTEXT;
    if (memory_device(to, n) != handle_device(a) || memory_device(from, n) != handle_device(b))
        return misused(CUDA_ERROR_INVALID_VALUE, "an array is on another device than its context");
    if (handle_device(a) != handle_device(b)) counts.received[handle_device(a)] += n;
    return copy(to, from, n, stream, name);
}
API cuMemcpyPeerAsync(CUdeviceptr to, CUcontext a, CUdeviceptr from, CUcontext b, size_t n, CUstream stream) {
    return done(begin(__func__, CURRENT) ?: peer_copy(to, a, from, b, n, stream, __func__));
}

/* ---- fills */
static CUresult perform_fill(Work *w) {
    for (uint32_t i = 0; i < w->rows; i++) {
        CUdeviceptr row = w->to + i * w->pitch;
        char *to = reach(w, row, w->n * w->width);
        if (!to) return ILLEGAL_ADDRESS;
        for (size_t k = 0; k < w->n; k++) memcpy(to + k * w->width, &w->value, w->width);
        ptx_mark_written(row, w->n * w->width);
    }
    return 0;
}
static CUresult fill(CUdeviceptr to, uint32_t value, uint32_t width, size_t n, size_t pitch, size_t rows,
                     CUstream stream, const char *name) {
    if (!n || !rows) return 0;
    if (to % width) return misused(CUDA_ERROR_INVALID_VALUE, "%p is not aligned to %u", (void *)to, width);
    CUresult r = bad_range(to, (rows - 1) * pitch + n * width);
    if (r) return r;
    counts.on_device += n * width * rows;
    Work w = {.perform = perform_fill,
              .to = to,
              .n = n,
              .value = value,
              .width = width,
              .rows = (uint32_t)rows,
              .pitch = pitch,
              .graph_type = GRAPH_FILL};
    return add_work(stream, w, name);
}
#define FILL(name, T, width)                                                                                           \
    API name(CUdeviceptr to, T value, size_t n, CUstream stream) {                                                     \
        return done(begin(__func__, CURRENT) ?: fill(to, value, width, n, 0, 1, stream, __func__));                    \
    }
FILL(cuMemsetD8Async, unsigned char, 1)
FILL(cuMemsetD16Async, unsigned short, 2)
FILL(cuMemsetD32Async, unsigned, 4)
#define FILL_ROWS(name, T, width)                                                                                      \
    API name(CUdeviceptr to, size_t pitch, T value, size_t n, size_t rows, CUstream stream) {                          \
        return done(begin(__func__, CURRENT) ?: fill(to, value, width, n, pitch, rows, stream, __func__));             \
    }
FILL_ROWS(cuMemsetD2D8Async, unsigned char, 1)
FILL_ROWS(cuMemsetD2D16Async, unsigned short, 2)
FILL_ROWS(cuMemsetD2D32Async, unsigned, 4)
API cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t n) {
    return done(begin(__func__, CURRENT) ?: stream_unsafe() ?: fill(to, value, 1, n, 0, 1, NULL, __func__));
}
API cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t n) {
    return done(begin(__func__, CURRENT) ?: stream_unsafe() ?: fill(to, value, 4, n, 0, 1, NULL, __func__));
}

/* ---- whose memory is it? */
enum { CONTEXT_OF = 1, TYPE_OF, DEVICE_POINTER, HOST_POINTER, MANAGED = 8, ORDINAL = 9, START = 11, BYTES = 12 };
static CUresult pointer_attribute(void *value, int which, CUdeviceptr at) {
    const Array *a = find(at, 1, false) ?: find(at, 1, true);
    if (!a) return CUDA_ERROR_INVALID_VALUE; /* memory of the host, as far as the driver knows */
    switch (which) {
    case CONTEXT_OF: *(void **)value = devices[a->device].context; return 0;
    case TYPE_OF: *(unsigned *)value = a->pinned ? 1 : 2; return 0;
    case DEVICE_POINTER: *(uint64_t *)value = at; return 0;
    case HOST_POINTER: return a->pinned ? *(uint64_t *)value = at, 0 : CUDA_ERROR_INVALID_VALUE;
    case MANAGED: *(unsigned *)value = 0; return 0;
    case ORDINAL: *(int *)value = a->device; return 0;
    case START: *(uint64_t *)value = a->at; return 0;
    case BYTES: *(size_t *)value = a->bytes; return 0;
    default: return NOT_SUPPORTED;
    }
}
API cuPointerGetAttribute(void *value, int which, CUdeviceptr at) {
    return done(begin(__func__, STARTED) ?: pointer_attribute(value, which, at));
}
static CUresult pointer_attributes(unsigned n, const int *which, void **values, CUdeviceptr at) {
    for (unsigned i = 0; i < n; i++)
        if (pointer_attribute(values[i], which[i], at)) memset(values[i], 0, 4);
    return 0;
}
API cuPointerGetAttributes(unsigned n, int *which, void **values, CUdeviceptr at) {
    return done(begin(__func__, STARTED) ?: pointer_attributes(n, which, values, at));
}
