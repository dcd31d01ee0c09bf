/* Memory of a device between calls, and copies between it and the host. Blocks of device memory are in a free list; a
   block may be taken by whoever uses the stream that used it last, or by anyone once the device has finished with
   it. */
#include "cuda_device.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_BLOCKS = 32, MOST_LANES = 64 }; /* in the lists; as many blocks as were in use at once are always kept */
#define LEAST_HALF ((int64_t)64 << 10)
#define MOST_HALF ((int64_t)8 << 20)
#define WASTE ((int64_t)1 << 20) /* a block may be larger than what is asked for, by this and ... */
#define MOST_BYTES ((int64_t)1 << 60)
enum { WASTE_TIMES = 4 }; /* ... by this factor */

static int32_t fail_memory(const Device *d, int64_t bytes, const char *hint) {
    if (bytes == INT64_MAX)
        return jaxcc_rt_fail(JAXCC_MEMORY, "no memory for 2^63 bytes or more on GPU %d%s", d->ordinal, hint);
    return jaxcc_rt_fail(JAXCC_MEMORY, "no memory for %lld bytes on GPU %d%s", (long long)bytes, d->ordinal, hint);
}
static int32_t fail_host_memory(void) { return jaxcc_rt_fail_text(JAXCC_MEMORY, "no memory"); }

/* ---- freeing, which waits for the device. It ends what is captured on streams that CUDA's default stream waits for,
   whoever captures them: until that has ended, memory is kept. What is captured on others does not mind, as the
   thread's mode says (jaxcc_rt_cuda_enter). */
static bool free_now(CUdeviceptr at) {
    int capturing = 0;
    CUresult r = jaxcc_rt_cuda.cuStreamIsCapturing(NULL, &capturing);
    if (r == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) return false;
    r = jaxcc_rt_cuda.cuMemFree_v2(at); /* a device that has failed frees nothing any more */
    return r != CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && r != CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}
static void keep(Device *d, Block *b) {
    pthread_mutex_lock(&d->lock);
    b->next = d->unfreed;
    d->unfreed = b;
    pthread_mutex_unlock(&d->lock);
}
static void block_free(Device *d, Block *b) {
    if (!b) return;
    if (b->pending) jaxcc_rt_cuda.cuEventSynchronize(b->done);
    if (b->done) jaxcc_rt_cuda.cuEventDestroy_v2(b->done);
    b->pending = false;
    b->done = NULL;
    if (!b->at || free_now(b->at))
        free(b);
    else
        keep(d, b);
}
static void blocks_free(Device *d, Block *list) {
    for (Block *next; list; list = next) {
        next = list->next;
        block_free(d, list);
    }
}
void jaxcc_rt_cuda_free_unfreed(Device *d) {
    pthread_mutex_lock(&d->lock);
    Block *all = d->unfreed;
    d->unfreed = NULL;
    pthread_mutex_unlock(&d->lock);
    blocks_free(d, all);
}
/* A call that fails waits for its work after it has released its outputs. */
void jaxcc_rt_cuda_free(Device *d, CUdeviceptr at) {
    Block *b = calloc(1, sizeof *b);
    if (!b) {
        free_now(at);
        return;
    }
    b->at = at;
    keep(d, b);
    if (!jaxcc_rt_cuda_in_call()) jaxcc_rt_cuda_free_unfreed(d);
}

/* ---- blocks */
void jaxcc_rt_cuda_release_blocks(Device *d) {
    jaxcc_rt_cuda_release_graphs(d);
    pthread_mutex_lock(&d->lock);
    Block *all = d->blocks;
    d->blocks = NULL;
    d->n_blocks = 0;
    pthread_mutex_unlock(&d->lock);
    blocks_free(d, all);
    jaxcc_rt_cuda_free_unfreed(d);
}
int32_t jaxcc_rt_cuda_alloc(Device *d, int64_t bytes, const char *hint, CUdeviceptr *at) {
    if (bytes > MOST_BYTES) return fail_memory(d, bytes, hint);
    CUresult r = jaxcc_rt_cuda.cuMemAlloc_v2(at, (size_t)bytes);
    if (r == CUDA_ERROR_OUT_OF_MEMORY) {
        jaxcc_rt_cuda_release_blocks(d);
        r = jaxcc_rt_cuda.cuMemAlloc_v2(at, (size_t)bytes);
    }
    if (r == CUDA_ERROR_OUT_OF_MEMORY) return fail_memory(d, bytes, hint);
    return jaxcc_rt_cuda_failed(d, r, "cuMemAlloc");
}
/* To the four leading bits, so that sizes which change little from call to call find a block. */
static int64_t rounded(int64_t bytes) {
    int64_t unit = 512;
    while (unit < bytes / 16) unit *= 2;
    return (bytes + unit - 1) / unit * unit;
}
static int32_t block_new(Device *d, int64_t bytes, const char *hint, Block **out) {
    if (bytes > MOST_BYTES) return fail_memory(d, bytes, hint);
    Block *b = calloc(1, sizeof *b);
    if (!b) return fail_host_memory();
    b->bytes = rounded(bytes);
    int32_t status = jaxcc_rt_cuda_alloc(d, b->bytes, hint, &b->at);
    if (status == JAXCC_MEMORY && b->bytes > bytes) {
        b->bytes = bytes;
        status = jaxcc_rt_cuda_alloc(d, bytes, hint, &b->at);
    }
    if (!status) status = CU(d, cuEventCreate, &b->done, CU_EVENT_DISABLE_TIMING);
    if (status) {
        block_free(d, b);
        return status;
    }
    *out = b;
    return 0;
}
/* May work on the stream use the block? */
static bool usable(Block *b, CUstream stream) {
    if (b->pending && !jaxcc_rt_cuda.cuEventQuery(b->done)) b->pending = false;
    return !b->pending || b->stream == stream;
}
static Block *block_find(Device *d, int64_t bytes, CUstream stream) {
    Block **best = NULL;
    pthread_mutex_lock(&d->lock);
    for (Block **b = &d->blocks; *b; b = &(*b)->next)
        if ((*b)->bytes >= bytes && ((*b)->bytes - WASTE) / WASTE_TIMES <= bytes &&
            (!best || (*b)->bytes < (*best)->bytes) && usable(*b, stream))
            best = b;
    Block *found = best ? *best : NULL;
    if (best) {
        *best = found->next;
        d->n_blocks--;
    }
    pthread_mutex_unlock(&d->lock);
    return found;
}
static int32_t block_any(Device *d, int64_t bytes, CUstream stream, const char *hint, Block **out) {
    Block *b = block_find(d, bytes, stream);
    if (!b) return block_new(d, bytes, hint, out);
    /* A handle may stand for another stream than it did: for a new one, or for one of this thread. */
    int32_t status = b->pending ? CU(d, cuStreamWaitEvent, stream, b->done, 0) : 0;
    if (status) {
        block_free(d, b);
        return status;
    }
    *out = b;
    return 0;
}
int32_t jaxcc_rt_cuda_block_take(Device *d, int64_t bytes, CUstream stream, const char *hint, Block **out) {
    int32_t status = block_any(d, bytes, stream, hint, out);
    if (status) return status;
    pthread_mutex_lock(&d->lock);
    if (++d->n_taken > d->most_taken) d->most_taken = d->n_taken;
    pthread_mutex_unlock(&d->lock);
    return 0;
}
void jaxcc_rt_cuda_block_used(Block *b, CUstream stream, bool idle) {
    b->stream = stream;
    b->pending = !idle && !jaxcc_rt_cuda.cuEventRecord(b->done, stream);
    if (!idle && !b->pending) jaxcc_rt_cuda.cuStreamSynchronize(stream);
}
void jaxcc_rt_cuda_block_put(Device *d, Block *b) {
    Block *old = NULL;
    pthread_mutex_lock(&d->lock);
    b->next = d->blocks;
    d->blocks = b;
    d->n_taken--;
    d->n_blocks++;
    if (d->n_blocks > MOST_BLOCKS && d->n_blocks > d->most_taken) {
        Block **last = &d->blocks;
        while ((*last)->next) last = &(*last)->next;
        old = *last;
        *last = NULL;
        d->n_blocks--;
    }
    pthread_mutex_unlock(&d->lock);
    block_free(d, old);
}
void jaxcc_rt_cuda_block_give(Device *d, Block *b, CUstream stream, bool idle) {
    jaxcc_rt_cuda_block_used(b, stream, idle);
    jaxcc_rt_cuda_block_put(d, b);
}

/* ---- lanes */
static void lane_free(Lane *l) {
    if (l->stream) jaxcc_rt_cuda.cuStreamSynchronize(l->stream);
    if (l->solver) l->solver_end(l->solver);
    for (int i = 0; i < 2; i++) {
        if (l->half[i].busy) jaxcc_rt_cuda.cuEventSynchronize(l->half[i].done);
        if (l->half[i].at) jaxcc_rt_cuda.cuMemFreeHost(l->half[i].at);
        if (l->half[i].done) jaxcc_rt_cuda.cuEventDestroy_v2(l->half[i].done);
    }
    if (l->mark) jaxcc_rt_cuda.cuEventDestroy_v2(l->mark);
    for (int i = 0; i < JAXCC_RT_CUDA_NESTED; i++)
        if (l->inner[i]) jaxcc_rt_cuda.cuStreamDestroy_v2(l->inner[i]);
    if (l->stream) jaxcc_rt_cuda.cuStreamDestroy_v2(l->stream);
    free(l->notes);
    free(l->outputs);
    free(l);
}
void jaxcc_rt_cuda_release_lanes(Device *d) {
    pthread_mutex_lock(&d->lock);
    Lane *all = d->lanes;
    d->lanes = NULL;
    d->n_lanes = 0;
    pthread_mutex_unlock(&d->lock);
    for (Lane *next; all; all = next) {
        next = all->next;
        lane_free(all);
    }
}
int32_t jaxcc_rt_cuda_lane_take(Device *d, Lane **out) {
    pthread_mutex_lock(&d->lock);
    Lane *l = d->lanes;
    if (l) d->lanes = l->next, d->n_lanes--;
    pthread_mutex_unlock(&d->lock);
    *out = l;
    if (l) return 0;
    l = calloc(1, sizeof *l);
    if (!l) return fail_host_memory();
    int32_t status = CU(d, cuStreamCreate, &l->stream, CU_STREAM_NON_BLOCKING);
    for (int i = 0; i < 2 && !status; i++) status = CU(d, cuEventCreate, &l->half[i].done, CU_EVENT_DISABLE_TIMING);
    if (status)
        lane_free(l);
    else
        *out = l;
    return status;
}
int32_t jaxcc_rt_cuda_lane_inner(Device *d, Lane *l) {
    int32_t status = 0;
    for (int i = 0; i < JAXCC_RT_CUDA_NESTED && !status; i++)
        if (!l->inner[i]) status = CU(d, cuStreamCreate, &l->inner[i], CU_STREAM_NON_BLOCKING);
    return status;
}
int32_t jaxcc_rt_cuda_lane_notes(Lane *l, int64_t bytes) {
    enum { LEAST = 4096 };
    if (bytes <= l->notes_room) return 0;
    int64_t room = bytes < LEAST ? LEAST : 2 * bytes;
    char *more = realloc(l->notes, (size_t)room);
    if (!more) return fail_host_memory();
    l->notes = more;
    l->notes_room = room;
    return 0;
}
int32_t jaxcc_rt_cuda_lane_keep(Lane *l, void *const *outputs, int64_t n) {
    if (n > l->n_outputs) {
        void **more = realloc(l->outputs, (size_t)n * sizeof *more);
        if (!more) return fail_host_memory();
        l->outputs = more;
        l->n_outputs = n;
    }
    if (n) memcpy(l->outputs, outputs, (size_t)n * sizeof *outputs);
    return 0;
}
void jaxcc_rt_cuda_lane_give(Device *d, Lane *l, bool good) {
    pthread_mutex_lock(&d->lock);
    good = good && d->n_lanes < MOST_LANES;
    if (good) {
        l->next = d->lanes;
        d->lanes = l;
        d->n_lanes++;
    }
    pthread_mutex_unlock(&d->lock);
    if (!good) lane_free(l);
}
int32_t jaxcc_rt_cuda_lane_mark(Device *d, Lane *l, CUstream stream) {
    int32_t status = l->mark ? 0 : CU(d, cuEventCreate, &l->mark, CU_EVENT_DISABLE_TIMING);
    return status ? status : CU(d, cuEventRecord, l->mark, stream);
}
static int32_t half_wait(Device *d, Half *h) {
    if (!h->busy) return 0;
    int32_t status = CU(d, cuEventSynchronize, h->done);
    if (!status) h->busy = false;
    return status;
}
/* Makes it free, and large enough for `bytes` or as large as any. */
static int32_t half_ready(Device *d, Half *h, int64_t bytes) {
    int32_t status = half_wait(d, h);
    int64_t size = LEAST_HALF;
    while (size < bytes && size < MOST_HALF) size *= 2;
    if (status || h->bytes >= size) return status;
    void *p = NULL;
    if (h->at) jaxcc_rt_cuda.cuMemFreeHost(h->at);
    *h = (Half){.done = h->done};
    CUresult r = jaxcc_rt_cuda.cuMemHostAlloc(&p, (size_t)size, 0);
    if (r == CUDA_ERROR_OUT_OF_MEMORY) {
        jaxcc_rt_cuda_release_lanes(d);
        r = jaxcc_rt_cuda.cuMemHostAlloc(&p, (size_t)size, 0);
    }
    if (r == CUDA_ERROR_OUT_OF_MEMORY)
        return jaxcc_rt_fail(JAXCC_MEMORY, "no memory for %lld bytes that the GPU can read", (long long)size);
    status = jaxcc_rt_cuda_failed(d, r, "cuMemHostAlloc");
    if (status) return status;
    h->at = p;
    h->bytes = size;
    return 0;
}
static int32_t half_used(Device *d, Half *h, CUstream stream) {
    int32_t status = CU(d, cuEventRecord, h->done, stream);
    if (!status)
        h->busy = true;
    else
        jaxcc_rt_cuda.cuStreamSynchronize(stream);
    return status;
}

/* ---- areas */
static char *area_host(const Area *a) { return *(char *const *)((const char *)a->pointers + a->k * a->pointer_step); }
static int64_t area_size(const Area *a) {
    int64_t n = *(const int64_t *)((const char *)a->sizes + a->k * a->size_step);
    return n > 0 ? n : 0;
}
static int64_t aligned(int64_t bytes) {
    return bytes > MOST_BYTES ? INT64_MAX
                              : (bytes + JAXCC_RT_CUDA_ALIGN - 1) / JAXCC_RT_CUDA_ALIGN * JAXCC_RT_CUDA_ALIGN;
}
int64_t jaxcc_rt_cuda_area_bytes(Area a) {
    int64_t all = 0;
    for (; a.k < a.n; a.k++) {
        int64_t n = aligned(area_size(&a));
        if (n > INT64_MAX - all) return INT64_MAX;
        all += n;
    }
    return all;
}
/* To the end of the last array: what is copied. */
static int64_t area_extent(Area a) {
    int64_t at = 0, end = 0;
    for (; a.k < a.n; a.k++) {
        if (area_size(&a)) end = at + area_size(&a);
        at += aligned(area_size(&a));
    }
    return end;
}
CUdeviceptr jaxcc_rt_cuda_area_next(Area *a, CUdeviceptr *at) {
    CUdeviceptr p = *at;
    *at += (CUdeviceptr)aligned(area_size(a));
    a->k++;
    return p;
}
/* Moves the next `n` bytes of the area: from the host's arrays to `block`, or back. */
static void area_move(Area *a, char *block, int64_t n, bool in) {
    while (n > 0 && a->k < a->n) {
        int64_t size = area_size(a), part = aligned(size) - a->at, data = size - a->at;
        if (part > n) part = n;
        if (data > part) data = part;
        if (data > 0 && in) memcpy(block, area_host(a) + a->at, (size_t)data);
        if (data > 0 && !in) memcpy(area_host(a) + a->at, block, (size_t)data);
        block += part;
        n -= part;
        a->at += part;
        if (a->at < aligned(size)) continue;
        a->k++;
        a->at = 0;
    }
}
static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

int32_t jaxcc_rt_cuda_copy_in(Device *d, Lane *l, CUstream stream, Area a, CUdeviceptr to) {
    int64_t all = area_extent(a);
    int32_t status = 0;
    for (int64_t at = 0, turn = 0; at < all && !status; at += MOST_HALF, turn++) {
        Half *h = &l->half[turn % 2];
        int64_t n = smaller(all - at, MOST_HALF);
        status = half_ready(d, h, n);
        if (status) break;
        area_move(&a, h->at, n, true);
        status = CU(d, cuMemcpyHtoDAsync_v2, to + (CUdeviceptr)at, h->at, (size_t)n, stream);
        if (!status) status = half_used(d, h, stream);
    }
    return status;
}
/* The device fills one half while the other one is emptied. */
int32_t jaxcc_rt_cuda_copy_out(Device *d, Lane *l, CUstream stream, Area a, CUdeviceptr from) {
    int64_t all = area_extent(a), turns = (all + MOST_HALF - 1) / MOST_HALF;
    int32_t status = 0;
    for (int64_t turn = 0; turn <= turns && !status; turn++) {
        Half *h = &l->half[turn % 2], *before = &l->half[(turn + 1) % 2];
        int64_t at = turn * MOST_HALF, n = smaller(all - at, MOST_HALF);
        if (n > 0) status = half_ready(d, h, n);
        if (n > 0 && !status) status = CU(d, cuMemcpyDtoHAsync_v2, h->at, from + (CUdeviceptr)at, (size_t)n, stream);
        if (n > 0 && !status) status = half_used(d, h, stream);
        if (turn == 0 || status) continue;
        status = half_wait(d, before);
        if (!status) area_move(&a, before->at, smaller(all - at + MOST_HALF, MOST_HALF), false);
    }
    if (!status) jaxcc_rt_cuda_waited();
    return status;
}
