/* Calls and releases while somebody captures a stream, which they leave alone: scenarios of gpu_runtime.c. */
#ifndef GPU_CAPTURES_H
#define GPU_CAPTURES_H
#include "gpu_calls.h"
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { GLOBAL, THREAD_LOCAL, RELAXED, MODES, BLOCKING = 0, NON_BLOCKING = 1 };
/* What somebody captures: a fill of an array, which is then launched. */
typedef struct {
    CUcontext context;
    CUstream stream, calls; /* what is captured; that of the calls */
    CUdeviceptr array;
} Capture;
static Capture capture;
static void capture_open(void) {
    need(jaxcc_rt_cuda_open(), "open");
    need(DRIVER.cuDevicePrimaryCtxRetain(&capture.context, 0), "retain");
    need(DRIVER.cuCtxPushCurrent_v2(capture.context), "push");
    need(DRIVER.cuMemAlloc_v2(&capture.array, 4), "memory");
    need(DRIVER.cuStreamCreate(&capture.calls, NON_BLOCKING), "stream");
}
static void capture_close(void) {
    jaxcc_rt_cuda_set_stream(NULL);
    need(DRIVER.cuStreamSynchronize(capture.calls), "wait");
    need(DRIVER.cuStreamDestroy_v2(capture.calls), "stream");
    need(DRIVER.cuMemFree_v2(capture.array), "free");
    need(DRIVER.cuCtxPopCurrent_v2(NULL), "pop");
    need(DRIVER.cuDevicePrimaryCtxRelease_v2(0), "release");
}
static void capture_begin(unsigned flags, int mode) {
    need(DRIVER.cuStreamCreate(&capture.stream, flags), "stream");
    need(DRIVER.cuStreamBeginCapture_v2(capture.stream, mode), "begin");
    need(DRIVER.cuMemsetD32Async(capture.array, 9, 1, capture.stream), "fill");
}
static bool capture_end(void) {
    CUgraph graph = NULL;
    CUgraphExec run;
    int32_t filled = 0;
    CUresult r = DRIVER.cuStreamEndCapture(capture.stream, &graph);
    if (r) return printf("the capture has ended with %d\n", r), false;
    need(DRIVER.cuGraphInstantiateWithFlags(&run, graph, 0), "instantiate");
    need(DRIVER.cuGraphDestroy(graph), "graph");
    need(DRIVER.cuGraphLaunch(run, capture.stream), "launch");
    need(DRIVER.cuMemcpyDtoHAsync_v2(&filled, capture.array, 4, capture.stream), "copy");
    need(DRIVER.cuGraphExecDestroy(run), "graph");
    need(DRIVER.cuStreamDestroy_v2(capture.stream), "stream");
    return filled == 9;
}

static void no_work(void *args, jaxcc_rt_heap *h) { (void)args, (void)h; }
static const jaxcc_rt_cuda_program no_program = {&library, no_work, "", "", 0, 0, 0, JAXCC_RT_CUDA_DEVICE_POINTERS};

/* ---- calls with an output of a computed size */
static void late_body(void *args, jaxcc_rt_heap *h) {
    void **w = args; /* late, workspace */
    jaxcc_rt_cuda_fill(h, jaxcc_rt_cuda_array(h, w[0], 1, (int64_t[]){N}, 4 * N), 7, 4, N);
    if (fault) jaxcc_rt_stop(h, JAXCC_CHECK, "stopped");
}
static const jaxcc_rt_cuda_program late_program = {&library, late_body, "late", "",
                                                   0,        0,         1,      JAXCC_RT_CUDA_DEVICE_POINTERS};
static int32_t late_call(jaxcc_array *late) {
    return jaxcc_rt_cuda_run(&late_program, (void *[]){late, NULL}, (int64_t[]){-1, 0});
}
static bool is_freed(CUdeviceptr at) {
    int device;
    return DRIVER.cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, at);
}
/* One is released while a blocking stream is captured, or another one: is it freed when it should be? */
static bool released(jaxcc_array *late, bool blocking) {
    CUdeviceptr at = (CUdeviceptr)late->data;
    late->release(late);
    if (is_freed(at) != blocking) return true;
    return printf("it is %s\n", blocking ? "freed" : "not freed"), false;
}
static jaxcc_array first; /* of a call before the capture */
static bool blocking;
/* On a thread: calls, those that need more memory too, and releases. */
static void *use(void *nothing) {
    jaxcc_array late;
    bool good = true, is_right;
    (void)nothing;
    need(DRIVER.cuCtxPushCurrent_v2(capture.context), "push");
    jaxcc_rt_cuda_set_stream(capture.calls);
    good &= released(&first, blocking);
    good &= !late_call(&late) && released(&late, blocking);
    static int64_t more = 1; /* than all calls before */
    for (int i = 0; i < 3; i++) good &= !host_call(N * more++, &is_right) && is_right;
    if (!good) printf("%s\n", jaxcc_rt_error());
    need(DRIVER.cuCtxPopCurrent_v2(NULL), "pop");
    return good ? NULL : "";
}
/* What is captured on any stream in any mode, by the thread that calls or by another one, is as it would be without the
   calls; what could not be freed meanwhile is when the next call begins. */
static int beside_captures(void) {
    int failed = 0;
    capture_open();
    jaxcc_rt_cuda_set_stream(capture.calls);
    for (int k = 0; k < 4 * MODES; k++) {
        int mode = k / 4;
        pthread_t other;
        void *bad = NULL;
        blocking = k % 2;
        failed |= late_call(&first);
        CUdeviceptr at = (CUdeviceptr)first.data;
        capture_begin(blocking ? BLOCKING : NON_BLOCKING, mode);
        if (k / 2 % 2)
            bad = use(NULL);
        else
            pthread_create(&other, NULL, use, NULL), pthread_join(other, &bad);
        if (!capture_end() || bad) failed = 1, printf("blocking %d, mode %d, own %d\n", blocking, mode, k / 2 % 2);
        failed |= jaxcc_rt_cuda_run(&no_program, (void *[1]){0}, (int64_t[]){0}) != 0;
        if (blocking && !is_freed(at)) failed = 1, printf("what was released is there after the next call\n");
    }
    capture_close();
    return failed;
}
/* The same for what is released last: by the next release, or when the library goes. */
static int released_at_last(void) {
    jaxcc_array late[3];
    int failed = 0;
    capture_open();
    jaxcc_rt_cuda_set_stream(capture.calls);
    for (int i = 0; i < 3; i++) failed |= late_call(&late[i]);
    CUdeviceptr at = (CUdeviceptr)late[0].data;
    for (int i = 0; i < 3; i++) {
        if (i != 1) capture_begin(BLOCKING, GLOBAL);
        failed |= !released(&late[i], i != 1);
        if (i == 1 && !is_freed(at)) failed = 1, printf("the first one is not freed\n");
        if (i != 1) failed |= !capture_end();
    }
    capture_close();
    return failed;
}
/* The process ends, and what is captured on a stream with FLAGS goes on. */
static void still_captured(void) { _exit(capture_end() ? 0 : 1); }
static int end_beside_capture(void) {
    jaxcc_array late;
    atexit(still_captured); /* after the library */
    capture_open();
    jaxcc_rt_cuda_set_stream(capture.calls);
    int failed = late_call(&late);
    capture_begin((unsigned)atoi(getenv("FLAGS")), GLOBAL);
    return failed;
}

/* A call on a stream that is being captured is refused, also where it would read a scalar before, and so is one on
   CUDA's default stream while that waits for a stream that is being captured; the captures go on. */
static int refused_on(CUstream stream, const char *text) {
    float scalar;
    jaxcc_rt_cuda_set_stream(stream);
    return expect("a call", jaxcc_rt_cuda_run(&no_program, (void *[1]){0}, (int64_t[]){0}), JAXCC_ARGUMENT, text) |
           expect("a scalar", jaxcc_rt_cuda_peek(&device_program, 2, &scalar, (void *)capture.array, 4), JAXCC_ARGUMENT,
                  text);
}
static int captured(void) {
    jaxcc_array late;
    int failed = 0;
    capture_open();
    for (int mode = 0; mode < MODES; mode++) {
        jaxcc_rt_cuda_set_stream(capture.calls);
        if (expect("a call before", late_call(&late), 0, NULL)) return 1;
        late.release(&late);
        capture_begin(NON_BLOCKING, mode);
        failed |= refused_on(capture.stream, "the stream is being captured");
        failed |= !capture_end();
        capture_begin(BLOCKING, mode);
        failed |= refused_on(NULL, "CUDA's default stream waits for one that is being captured");
        failed |= refused_on(capture.stream, "the stream is being captured");
        failed |= !capture_end();
        jaxcc_rt_cuda_set_stream(NULL);
        if (expect("a call after it", late_call(&late), 0, NULL)) return 1;
        late.release(&late);
    }
    capture_close();
    return failed;
}

#endif
