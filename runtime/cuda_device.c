/* The GPUs of this process: their primary contexts, which are retained at first use and released when the library is
   unloaded or the process ends; and what is said when one of their functions fails. */
#include "cuda_device.h"
#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEVICES = 64, MOST_CALLS = 16, MOST_LOOPS = 64 }; /* graphs: of calls, of loops */
static struct {
    pthread_mutex_t lock;
    _Atomic(Device *) at[MOST_DEVICES];
    _Atomic int64_t preferred; /* 1 + the default's number, once it is known */
    _Atomic int64_t calls;     /* in progress */
    bool registered;           /* to be released at the end */
} devices = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- failures */
static _Thread_local const jaxcc_rt_cuda_kernel *last; /* that this thread has launched since it last waited, or NULL */
void jaxcc_rt_cuda_launched(const jaxcc_rt_cuda_kernel *k) { last = k; }
void jaxcc_rt_cuda_waited(void) { last = NULL; }

/* The device is lost. A fault is reported by whatever is called next, on any thread: the last kernel says where the
   work had come to, not that it is to blame. */
static void lose(Device *d, CUresult r, const char *says) {
    char where[176] = "";
    if (last)
        snprintf(where, sizeof where, " in kernel '%.50s'%s%.60s%s or in one before or beside it", last->name,
                 last->what ? " (" : "", last->what ? last->what : "", last->what ? ")" : "");
    pthread_mutex_lock(&d->lock);
    if (!d->failed)
        snprintf(d->why, sizeof d->why, "GPU %d failed%s: %s%s%s", d->ordinal, where, says ? says : "",
                 says ? ", " : "", jaxcc_rt_cuda_name_of(r));
    d->failed = true;
    pthread_mutex_unlock(&d->lock);
}
static int32_t fail_lost(const Device *d) { return jaxcc_rt_fail_text(JAXCC_INTERNAL, d->why); }
int32_t jaxcc_rt_cuda_failed(Device *d, CUresult r, const char *function) {
    if (!r) return 0;
    const jaxcc_rt_cuda_answer *a = jaxcc_rt_cuda_answer_to(r);
    if (a->sticky) {
        lose(d, r, a->says);
        return fail_lost(d);
    }
    return jaxcc_rt_fail(a->status, "GPU %d: %s%s%s in %s", d->ordinal, a->says ? a->says : "", a->says ? ", " : "",
                         jaxcc_rt_cuda_name_of(r), function);
}

/* ---- the end. The process runs this while the driver still works, as it was registered after the driver's own; the
   library, which may have no code of the C compiler's that does so, when it is unloaded. */
static char registrar;
int __cxa_atexit(void (*)(void *), void *, void *registrar);
void __cxa_finalize(void *registrar);

/* Waits for all work; false: not to be done. cuCtxSynchronize would end what anybody captures on a stream, to free
   memory does so on blocking ones alone. */
static bool wait_for_all(void) {
    int capturing = 0;
    CUdeviceptr some;
    if (jaxcc_rt_cuda.cuStreamIsCapturing(NULL, &capturing) == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) return false;
    if (!jaxcc_rt_cuda.cuMemAlloc_v2(&some, 1)) jaxcc_rt_cuda.cuMemFree_v2(some);
    return true;
}
static void device_close(Device *d) {
    if (!jaxcc_rt_cuda_enter(d)) {
        bool ended = wait_for_all();
        if (ended) {
            jaxcc_rt_cuda_release_blocks(d);
            jaxcc_rt_cuda_release_lanes(d);
            jaxcc_rt_cuda_unload(d);
        }
        jaxcc_rt_cuda_leave();
        if (!ended) return; /* all is left as it is */
    }
    jaxcc_rt_cuda.cuDevicePrimaryCtxRelease_v2(d->number);
    pthread_mutex_destroy(&d->lock);
    pthread_mutex_destroy(&d->loading);
    free(d);
}
static void close_all(void *nothing) {
    (void)nothing;
    if (!jaxcc_rt_cuda_idle()) return;
    for (int i = 0; i < MOST_DEVICES; i++) {
        Device *d = atomic_exchange(&devices.at[i], NULL);
        if (d) device_close(d);
    }
}
__attribute__((destructor)) static void unloaded(void) { __cxa_finalize(&registrar); }
bool jaxcc_rt_cuda_idle(void) { return jaxcc_rt_cuda_is_open() && !devices.calls; }
bool jaxcc_rt_cuda_at_end(void (*f)(void *)) { return !__cxa_atexit(f, NULL, &registrar); }

/* ---- opening */
static int32_t attributes(Device *d) {
    int major = 0, minor = 0;
    int32_t status = CU(d, cuDeviceGetName, d->name, sizeof d->name, d->number);
    if (!status) status = CU(d, cuDeviceGetAttribute, &major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, d->number);
    if (!status) status = CU(d, cuDeviceGetAttribute, &minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, d->number);
    if (!status)
        status = CU(d, cuDeviceGetAttribute, &d->most_shared, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
                    d->number);
    d->sm = 10 * major + minor;
    return status;
}
static int32_t device_open(int ordinal, Device **out) {
    Device *d = malloc(sizeof *d);
    if (!d) return jaxcc_rt_fail_text(JAXCC_MEMORY, "no memory");
    *d = (Device){.ordinal = ordinal,
                  .lock = PTHREAD_MUTEX_INITIALIZER,
                  .loading = PTHREAD_MUTEX_INITIALIZER,
                  .calls.most = MOST_CALLS,
                  .loops.most = MOST_LOOPS};
    int32_t status = CU(d, cuDeviceGet, &d->number, ordinal);
    if (!status) status = attributes(d);
    if (!status) status = CU(d, cuDevicePrimaryCtxRetain, &d->context, d->number);
    if (status) {
        free(d);
        return status;
    }
    if (!devices.registered) devices.registered = jaxcc_rt_cuda_at_end(close_all);
    *out = d;
    return 0;
}
int32_t jaxcc_rt_cuda_count(int *n) {
    *n = 0;
    CUresult r = jaxcc_rt_cuda.cuDeviceGetCount(n);
    if (r) return jaxcc_rt_fail(JAXCC_MISSING, "no GPU can be found: %s", jaxcc_rt_cuda_name_of(r));
    if (*n == 0) return jaxcc_rt_fail_text(JAXCC_MISSING, "this program needs an NVIDIA GPU, but there is none");
    if (*n > MOST_DEVICES) *n = MOST_DEVICES;
    return 0;
}
static int32_t checked_ordinal(int64_t k) {
    int n;
    int32_t status = jaxcc_rt_cuda_count(&n);
    if (status) return status;
    if (n > MOST_DEVICES) n = MOST_DEVICES;
    if (k < 0 || k >= n)
        return jaxcc_rt_fail(JAXCC_MISSING, "there is no GPU %lld: there %s %d, the first is 0", (long long)k,
                             n == 1 ? "is" : "are", n);
    return 0;
}
/* JAXCC_CUDA_DEVICE, else 0. */
static int32_t preferred(int64_t *k) {
    const char *text = getenv("JAXCC_CUDA_DEVICE");
    char *end = NULL;
    *k = devices.preferred - 1;
    if (*k >= 0) return 0;
    *k = text && *text ? strtol(text, &end, 10) : 0;
    if (end && *end) return jaxcc_rt_fail(JAXCC_MISSING, "JAXCC_CUDA_DEVICE is '%s', not the number of a GPU", text);
    int32_t status = checked_ordinal(*k);
    if (!status) devices.preferred = 1 + *k;
    return status;
}
int32_t jaxcc_rt_cuda_device(int64_t k, Device **d) {
    int32_t status = jaxcc_rt_cuda_open();
    if (!status && k == JAXCC_RT_CUDA_DEFAULT)
        status = preferred(&k);
    else if (!status && (k < 0 || k >= MOST_DEVICES))
        status = checked_ordinal(k);
    if (status) return status;
    assert(0 <= k && k < MOST_DEVICES);
    *d = devices.at[k];
    if (!*d) {
        pthread_mutex_lock(&devices.lock);
        *d = devices.at[k];
        if (!*d) status = device_open((int)k, d);
        if (!status) devices.at[k] = *d;
        pthread_mutex_unlock(&devices.lock);
    }
    if (status) return status;
    assert(*d);
    return (*d)->failed ? fail_lost(*d) : 0;
}
void jaxcc_rt_cuda_reach(Device *d, const Device *other) {
    uint64_t bit = (uint64_t)1 << other->ordinal;
    int can = 0;
    if (d == other || (d->peers & bit) || (atomic_fetch_or(&d->peers, bit) & bit)) return;
    if (!jaxcc_rt_cuda.cuDeviceCanAccessPeer(&can, d->number, other->number) && can)
        jaxcc_rt_cuda.cuCtxEnablePeerAccess(other->context, 0);
}
/* Streams that others capture have nothing to do with what calls do: the thread's mode says so. */
static _Thread_local struct {
    int depth; /* calls that it has entered */
    int mode;  /* before the first of them */
} thread;
int32_t jaxcc_rt_cuda_enter(Device *d) {
    int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    int32_t status = CU(d, cuCtxPushCurrent_v2, d->context);
    if (status) return status;
    if (!thread.depth) status = CU(d, cuThreadExchangeStreamCaptureMode, &mode);
    if (status) {
        jaxcc_rt_cuda_back();
        return status;
    }
    if (!thread.depth++) thread.mode = mode;
    devices.calls++;
    return 0;
}
void jaxcc_rt_cuda_leave(void) {
    int mode = thread.mode;
    if (!--thread.depth) jaxcc_rt_cuda.cuThreadExchangeStreamCaptureMode(&mode);
    devices.calls--;
    jaxcc_rt_cuda_back();
}
bool jaxcc_rt_cuda_in_call(void) { return thread.depth > 1; }
int32_t jaxcc_rt_cuda_visit(Device *d) { return CU(d, cuCtxPushCurrent_v2, d->context); }
/* The driver may answer with an error of earlier work. It says which context it was if it has popped it. */
void jaxcc_rt_cuda_back(void) {
    CUcontext popped = NULL;
    if (jaxcc_rt_cuda.cuCtxPopCurrent_v2(&popped) && !popped) jaxcc_rt_cuda.cuCtxPopCurrent_v2(NULL);
}
