/* runtime/cuda.c on the driver for tests, with kernels by hand: results, failures of each driver function at each of
   its first uses, what is said, what is left. Each scenario is a child, with its own environment. LD_LIBRARY_PATH finds
   the driver: gpu_runtime SCENARIO */
#include "gpu_captures.h"
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- scenarios, in a child: 0 if all is as it should be */
static int results(void) {
    static const int64_t sizes[] = {1, 3, N, 255, 256, 70000};
    bool good;
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (expect("host pointers", host_call(sizes[i], &good), 0, NULL) || !good) return 1;
        if (expect("device pointers", device_call(sizes[i], &good), 0, NULL) || !good) return 1;
    }
    return 0;
}
static int large(void) {
    bool good;
    return expect("large arrays", host_call(LARGE, &good), 0, NULL) || !good;
}
/* How many calls: MANY. */
static int many_of(int32_t (*host)(int64_t, bool *), int32_t (*device)(int64_t, bool *)) {
    bool good;
    for (int i = 0; i < atoi(getenv("MANY")); i++) {
        if (host(N, &good) || !good) return 1;
        if (device(N, &good) || !good) return 1;
    }
    return 0;
}
static int many(void) { return many_of(host_call, device_call); }
static int host_many(void) { return many_of(host_call, host_call); }
static int many_spmd(void) { return many_of(spmd_host_call, spmd_device_call); }
static void *caller(void *failed) {
    bool good;
    for (int i = 0; i < 20; i++)
        if ((i % 2 ? host_call : device_call)(N + 10 * i, &good) || !good) *(_Atomic int *)failed = 1;
    return NULL;
}
static void *spmd_caller(void *failed) {
    bool good;
    for (int i = 0; i < 4; i++)
        if ((i % 2 ? spmd_host_call : spmd_device_call)(N, &good) || !good) *(_Atomic int *)failed = 1;
    return NULL;
}
static int threads_of(void *(*of)(void *failed)) {
    enum { CALLERS = 8 };
    pthread_t at[CALLERS];
    _Atomic int failed = 0;
    for (int i = 0; i < CALLERS; i++) pthread_create(&at[i], NULL, of, (void *)&failed);
    for (int i = 0; i < CALLERS; i++) pthread_join(at[i], NULL);
    return failed;
}
static int threads(void) { return threads_of(caller); }
static int threads_spmd(void) { return threads_of(spmd_caller); }
/* A call leaves the contexts of the thread as they were: none. */
static bool context_left(void) {
    CUresult (*get)(CUcontext *);
    CUcontext context = NULL;
    void *f = dlsym(driver, "cuCtxGetCurrent");
    memcpy(&get, &f, sizeof f);
    return !get(&context) && context;
}
/* One function fails once: one call of four says so or does without, the others are right, as is the last. */
static int once(int32_t (*of)(int64_t, bool *)) {
    int failures = 0;
    bool good;
    for (int i = 0; i < 4; i++) {
        bool before = context_left();
        int32_t status = of(N, &good);
        if (context_left() != before) return printf("call %d leaves another context\n", i), 1;
        if (!status && !good) return printf("call %d is wrong\n", i), 1;
        if (!status) continue;
        printf("call %d: %d %s\n", i, status, jaxcc_rt_error());
        if (strlen(jaxcc_rt_error()) < 10 || strchr(jaxcc_rt_error(), '\n')) return 1;
        if (++failures > 1 || i == 3) return 1;
    }
    return 0;
}
/* Several fail: each call is right or says so, the last one is right. */
static int several_of(int32_t (*host)(int64_t, bool *), int32_t (*device)(int64_t, bool *)) {
    bool good;
    int32_t status = 0;
    for (int i = 0; i < 12; i++) {
        int32_t (*of)(int64_t, bool *) = i % 2 ? host : device;
        if (i == 11) unsetenv("FAIL");
        status = of(i % 3 ? N : 3 * N, &good);
        if (!status && !good) return printf("call %d is wrong\n", i), 1;
        if (status) printf("call %d: %d %s\n", i, status, jaxcc_rt_error());
    }
    return status;
}
static int several(void) { return several_of(host_call, device_call); }
static int several_spmd(void) { return several_of(spmd_host_call, spmd_device_call); }
static int once_host(void) { return once(host_call); }
static int once_device(void) { return once(device_call); }
static int sticky(void) {
    bool good;
    fault = getenv("FAULT");
    int32_t status = host_call(N, &good);
    printf("%d %s\n", status, jaxcc_rt_error());
    if (expect("a fault", status, JAXCC_INTERNAL, fault ? "GPU 0 failed in kernel '" : "GPU 0 failed")) return 1;
    char said[256];
    snprintf(said, sizeof said, "%s", jaxcc_rt_error());
    fault = false;
    return expect("after a fault", host_call(N, &good), JAXCC_INTERNAL, said);
}
static void wait_for(int gpu) {
    CUcontext context;
    DRIVER.cuDevicePrimaryCtxRetain(&context, gpu);
    DRIVER.cuCtxPushCurrent_v2(context);
    synchronize();
    DRIVER.cuCtxPopCurrent_v2(NULL);
    DRIVER.cuDevicePrimaryCtxRelease_v2(gpu);
}
/* With device pointers a fault shows after the call. */
static void only_fault(void *args, jaxcc_rt_heap *h) { jaxcc_rt_cuda_launch(h, FAULT, NULL, 1, 1, 1, 1, 0); }
static int sticky_device(void) {
    static const jaxcc_rt_cuda_program p = {&library, only_fault, "", "", 0, 0, 0, JAXCC_RT_CUDA_DEVICE_POINTERS};
    bool good;
    void *words[1];
    if (expect("a good call", device_call(N, &good), 0, NULL) || !good) return 1;
    if (expect("a call that does not wait", jaxcc_rt_cuda_run(&p, words, (int64_t[]){0}), 0, NULL)) return 1;
    wait_for(0);
    return expect("the call after it", host_call(N, &good), JAXCC_INTERNAL,
                  "GPU 0 failed in kernel 'fault' (t.jaxpr:2:5 scatter) or in one before or beside it: an address");
}
/* A kernel of another thread fails, and this one has launched but one that does not: it is not said to be the one. */
static void *faulty_caller(void *nothing) {
    static const jaxcc_rt_cuda_program p = {&library, only_fault, "", "", 0, 0, 0, JAXCC_RT_CUDA_DEVICE_POINTERS};
    void *words[1];
    (void)nothing;
    jaxcc_rt_cuda_run(&p, words, (int64_t[]){0});
    wait_for(0);
    return NULL;
}
static void only_axpy(void *args, jaxcc_rt_heap *h) {
    void **w = args; /* a, x, out, workspace */
    pthread_t other;
    axpy(h, w[1], w[1], w[2], N, w[0]);
    pthread_create(&other, NULL, faulty_caller, NULL);
    pthread_join(other, NULL);
}
static int innocent(void) {
    static const jaxcc_rt_cuda_program p = {&library, only_axpy, "a x out", "", 0, 2, 1, 0};
    static float x[N], out[N];
    void *words[] = {&half, x, out, NULL};
    int32_t status = jaxcc_rt_cuda_run(&p, words, (int64_t[]){4, sizeof x, sizeof out, 0});
    return expect("a call beside a fault", status, JAXCC_INTERNAL,
                  "GPU 0 failed in kernel 'axpy' (t.jaxpr:1:20 mul) or in one before or beside it: an address");
}
static int refused(void) {
    bool good;
    int32_t status = host_call(N, &good);
    const char *want = getenv("WANT");
    printf("%d %s\n", status, jaxcc_rt_error());
    return expect("the call", status, atoi(want), strchr(want, ' ') + 1);
}
/* Calls on two streams of the caller, none of which waits: each has a workspace of its own until it is done. */
static void through_workspace(void *args, jaxcc_rt_heap *h) {
    void **w = args; /* n, a, x, y, out, workspace */
    axpy(h, w[2], w[3], w[5], (int64_t)w[0], w[1]);
    jaxcc_rt_cuda_copy(h, w[4], w[5], 4 * (int64_t)w[0]);
}
static int streams(void) {
    enum { CALLS = 6 };
    static const jaxcc_rt_cuda_program p = {
        &library, through_workspace, "a x y out", "", 1, 3, 1, JAXCC_RT_CUDA_DEVICE_POINTERS};
    CUcontext context;
    CUstream stream[2];
    CUdeviceptr memory, all = 4096;
    float values[N], one = 1;
    int failed = 0;
    need(jaxcc_rt_cuda_open(), "open");
    need(DRIVER.cuDevicePrimaryCtxRetain(&context, 0), "retain");
    need(DRIVER.cuCtxPushCurrent_v2(context), "push");
    for (int i = 0; i < 2; i++) need(DRIVER.cuStreamCreate(&stream[i], 1), "stream");
    need(DRIVER.cuMemAlloc_v2(&memory, (2 * CALLS + 2) * all), "memory");
    CUdeviceptr a = memory, zeros = memory + all;
    need(DRIVER.cuMemsetD32Async(zeros, 0, N, stream[0]), "fill");
    need(DRIVER.cuMemcpyHtoDAsync_v2(a, &one, 4, stream[0]), "copy");
    for (int i = 0; i < CALLS; i++) {
        for (int k = 0; k < N; k++) values[k] = (float)(k + i);
        need(DRIVER.cuMemcpyHtoDAsync_v2(memory + (2 + 2 * (CUdeviceptr)i) * all, values, sizeof values, stream[0]),
             "copy");
        need(DRIVER.cuMemsetD32Async(memory + (3 + 2 * (CUdeviceptr)i) * all, 0, N, stream[0]), "fill");
    }
    need(DRIVER.cuStreamSynchronize(stream[0]), "wait");
    for (int i = 0; i < CALLS; i++) {
        CUdeviceptr x = memory + (2 + 2 * (CUdeviceptr)i) * all;
        void *words[6] = {(void *)N, (void *)a, (void *)x, (void *)zeros, (void *)(x + all)};
        jaxcc_rt_cuda_set_stream(stream[i % 2]);
        failed |= expect("a call", jaxcc_rt_cuda_run(&p, words, (int64_t[]){4, 4 * N, 4 * N, 4 * N, 4 * N}), 0, NULL);
    }
    for (int i = 0; i < CALLS; i++) {
        need(DRIVER.cuMemcpyDtoHAsync_v2(values, memory + (3 + 2 * (CUdeviceptr)i) * all, sizeof values, stream[i % 2]),
             "copy");
        for (int k = 0; k < N; k++) failed |= values[k] != (float)(k + i);
    }
    for (int i = 0; i < 2; i++) need(DRIVER.cuStreamDestroy_v2(stream[i]), "stream");
    need(DRIVER.cuMemFree_v2(memory), "free");
    need(DRIVER.cuCtxPopCurrent_v2(NULL), "pop");
    need(DRIVER.cuDevicePrimaryCtxRelease_v2(0), "release");
    return failed;
}
static int spmd(void) {
    bool good;
    for (int i = 0; i < 3; i++) {
        if (expect("host pointers", spmd_host_call(N, &good), 0, NULL) || !good) return 1;
        if (expect("device pointers", spmd_device_call(N, &good), 0, NULL) || !good) return 1;
    }
    return 0;
}
static int once_spmd_host(void) { return once(spmd_host_call); }
static int once_spmd_device(void) { return once(spmd_device_call); }
/* A device stops while others wait for it: the call says why, the next one is right. */
static int spmd_stops(void) {
    bool good;
    for (failing_device = 0; failing_device < DEVICES; failing_device++) {
        char said[40];
        snprintf(said, sizeof said, "device %d stops", failing_device);
        if (expect("host pointers", spmd_host_call(N, &good), JAXCC_CHECK, said)) return 1;
        if (expect("device pointers", spmd_device_call(N, &good), JAXCC_CHECK, said)) return 1;
    }
    return spmd();
}
static int spmd_fault(void) {
    bool good;
    fault = true;
    if (expect("a fault", spmd_host_call(N, &good), JAXCC_INTERNAL, "an address outside of its memory")) return 1;
    fault = false;
    return expect("after a fault", spmd_host_call(N, &good), JAXCC_INTERNAL, "an address outside of its memory");
}
/* While a call is between its exchanges, that of another call on the same GPUs fails: both say so, the next one is
   right. */
static int32_t other_status, read_it;
static void another_call(jaxcc_rt_heap *h) {
    bool good;
    (void)h;
    other_status = spmd_host_call(N, &good);
}
static int nccl_aborted(void) {
    bool good;
    in_device_0 = another_call;
    int failed = expect("the first call", spmd_host_call(N, &good), JAXCC_INTERNAL, "it has failed in another call");
    failed += expect("the other one", other_status, JAXCC_INTERNAL, NULL);
    return failed || expect("the next one", spmd_host_call(N, &good), 0, NULL) || !good;
}
/* Kernels of an exchange do not end: the call says why, the next one is right. Who waits for them: all devices at their
   end, or one that reads (IN=read), or those that meet while one does something else (IN=meet), or all as one stops
   (IN=stop). */
static bool known;
static void *of_nccl(const char *name) { return dlsym(dlopen("libnccl.so.2", RTLD_NOW | RTLD_NOLOAD), name); }
static void read_one(jaxcc_rt_heap *h) {
    int32_t one = 0;
    void *there = jaxcc_rt_cuda_get(h, sizeof one);
    jaxcc_rt_cuda_fill(h, there, 1, 4, 1);
    jaxcc_rt_cuda_read(h, &one, there, sizeof one);
    read_it = one;
}
static void until_known(jaxcc_rt_heap *h) {
    enum { MS = 1000, MOST = 5000 };
    bool (*holds)(void);
    void *f = of_nccl("jaxcc_nccl_holds");
    (void)h;
    memcpy(&holds, &f, sizeof f);
    for (int i = 0; i < MOST && holds(); i++) usleep(MS);
    known = !holds();
}
static void stop_it(jaxcc_rt_heap *h) { jaxcc_rt_stop(h, JAXCC_CHECK, "stopped"); }
static int nccl_lost(void) {
    bool good;
    const char *in = getenv("IN");
    in_device_0 = !in ? NULL : !strcmp(in, "read") ? read_one : !strcmp(in, "stop") ? stop_it : until_known;
    for (int i = 1; i < atoi(getenv("CALL")); i++)
        if (expect("a call before", spmd_host_call(N, &good), 0, NULL) || !good) return 1;
    int32_t status = spmd_host_call(N, &good);
    bool stopped = in && !strcmp(in, "stop") && status == JAXCC_CHECK; /* before anybody knows */
    int failed = stopped ? expect("the call", status, JAXCC_CHECK, "stopped")
                         : expect("the call", status, JAXCC_INTERNAL,
                                  "what GPUs exchange by NCCL has failed: remote process exited or there was");
    if (read_it) failed = printf("what was not there has been read\n");
    if (in && !strcmp(in, "meet") && !known) failed = printf("nobody has asked\n");
    return failed || expect("the next one", spmd_host_call(N, &good), 0, NULL) || !good;
}
/* It fails between calls, and after the last one: no call minds. */
static int nccl_lost_between(void) {
    bool good;
    void (*lose)(void);
    for (int i = 0; i < 2; i++) {
        if (expect("a call", spmd_host_call(N, &good), 0, NULL) || !good) return 1;
        void *f = of_nccl("jaxcc_nccl_lose");
        memcpy(&lose, &f, sizeof f);
        lose();
    }
    return 0;
}
/* The last device's GPU fails while its thread waits for the others, of which one goes on only when that is known, as
   it would if it waited for what the GPU was to give it. */
static void lose_a_gpu(jaxcc_rt_heap *h) {
    enum { MS = 1000, MOST = 5000 };
    Device *d;
    (void)h;
    usleep(50 * MS); /* the others come to the next meeting */
    wait_for(DEVICES - 1);
    for (int i = 0; i < MOST && !known; i++, usleep(MS)) known = jaxcc_rt_cuda_device(DEVICES - 1, &d);
}
static int lost_while_waiting(void) {
    bool good;
    fault = fault_later = true;
    in_device_0 = lose_a_gpu;
    int failed = expect("the call", spmd_host_call(N, &good), JAXCC_INTERNAL, "GPU 3 failed");
    if (!known) printf("nobody knows that the GPU has failed\n");
    return failed || !known;
}
/* Calls on more and more groups of GPUs, ORDERS at a time: each device gives its number, and gets those of its
   group. */
enum { ORDERS = 5, MESHES = 20, ALL = 2 * DEVICES };
static int64_t first_order;
static void order_of(int64_t k, int64_t *places) {
    for (int64_t i = 0; i < ALL; i++) places[i] = i;
    for (int64_t i = ALL; i > 1; k /= i--) {
        int64_t at = k % i, swapped = places[at];
        places[at] = places[i - 1], places[i - 1] = swapped;
    }
}
static void meshes_device(void *args, jaxcc_rt_heap *h) {
    void **w = args; /* part of the output, workspace */
    jaxcc_rt_cuda_fill(h, w[1], jaxcc_rt_device_number(h), 4, 1);
    for (int64_t k = 0; k < ORDERS; k++) {
        int64_t sizes[6 + ALL] = {sizeof(int32_t), 1, ALL, 1, 1, ALL};
        order_of(first_order + k, sizes + 6);
        jaxcc_rt_all_gather(h, (void *[]){w[1], (int32_t *)w[0] + k * ALL}, sizes);
    }
}
static void meshes_body(void *args, jaxcc_rt_heap *h) {
    void **w = args; /* out, workspace */
    jaxcc_rt_cuda_spmd(h, w, (int64_t[]){ALL, 0, 1, 8, 0, 4 * ORDERS * ALL, 1, ALL}, meshes_device);
}
static int meshes(void) {
    static const jaxcc_rt_cuda_program p = {&library, meshes_body, "out", "", 0, 0, 1, 0};
    int32_t out[ALL][ORDERS][ALL];
    int64_t places[ALL];
    int failed = 0;
    for (int i = 0; i < 2 * MESHES && !failed; i++) {
        first_order = i % MESHES * ORDERS;
        failed = expect("a call", jaxcc_rt_cuda_run(&p, (void *[]){out, NULL}, (int64_t[]){sizeof out, 0}), 0, NULL);
        for (int k = 0; k < ORDERS && !failed; k++) {
            order_of(first_order + k, places);
            for (int j = 0; j < ALL * ALL; j++) failed |= out[j / ALL][k][j % ALL] != (int32_t)places[j % ALL];
        }
    }
    return failed;
}
static int32_t call_library(jaxcc_rt_cuda_library *l) {
    jaxcc_rt_cuda_program p = host_program;
    p.library = l;
    Arrays s = arrays_new(N);
    int32_t status = call(&p, &s);
    if (!status) s.late.release(&s.late);
    free(s.x);
    return status;
}
static int images(void) {
    int failed = expect("for sm_90", call_library(&for_newer), JAXCC_CPU,
                        "compiled for sm_90 and later, but GPU 0 (interpreter of sm_80) is sm_80");
    failed += expect("PTX 8.8", call_library(&for_newest), JAXCC_MISSING, "newer driver than that of CUDA 12.8");
    failed += expect("no PTX", call_library(&not_ptx), JAXCC_INTERNAL, "the driver rejects the code");
    printf("%s\n", jaxcc_rt_error());
    return failed + expect("for sm_80", call_library(&library), 0, NULL);
}
static int image_of_90(void) { return expect("for sm_90", call_library(&for_newer), 0, NULL); }
static int arguments(void) {
    void *words[WORDS] = {0};
    float host[8];
    bool good;
    int64_t bytes[] = {4, 4, 4, 4, 4, -1, 4};
    if (host_call(N, &good)) return 1;
    for (int i = W_X; i <= W_NEGATIVE; i++) words[i] = host;
    words[W_Y] = (char *)host + 4;
    words[W_X] = (void *)(((uintptr_t)host + 15) / 16 * 16);
    int failed = expect("host memory", jaxcc_rt_cuda_run(&device_program, words, bytes), JAXCC_ARGUMENT,
                        "argument 'x' is not memory of a GPU");
    bytes[0] = 0;
    words[W_X] = NULL;
    words[W_Y] = (void *)(((uintptr_t)host & ~(uintptr_t)15) + 8);
    return failed + expect("alignment", jaxcc_rt_cuda_run(&device_program, words, bytes), JAXCC_ARGUMENT,
                           "argument 'y' is not aligned to 16 bytes");
}
/* The arrays say which GPU it is, and must agree. */
static int32_t copy_on(const int *devices, CUdeviceptr *arrays) {
    static const jaxcc_rt_cuda_program p = {
        &library, through_workspace, "a x y out", "", 1, 3, 1, JAXCC_RT_CUDA_DEVICE_POINTERS};
    void *words[6] = {(void *)N};
    for (int i = 0; i < 4; i++) words[1 + i] = (void *)arrays[devices[i]];
    return jaxcc_rt_cuda_run(&p, words, (int64_t[]){4, 4 * N, 4 * N, 4 * N, 4 * N});
}
static int devices(void) {
    CUcontext context[2];
    CUdeviceptr arrays[2];
    bool good;
    need(jaxcc_rt_cuda_open(), "open");
    for (int i = 0; i < 2; i++) {
        need(DRIVER.cuDevicePrimaryCtxRetain(&context[i], i), "retain");
        need(DRIVER.cuCtxPushCurrent_v2(context[i]), "push");
        need(DRIVER.cuMemAlloc_v2(&arrays[i], 4 * N), "memory");
        need(DRIVER.cuMemsetD32Async(arrays[i], 0, N, NULL), "fill");
        need(synchronize(), "wait");
    }
    int failed = expect("device 1", copy_on((int[]){1, 1, 1, 1}, arrays), 0, NULL);
    failed += expect("device 0", copy_on((int[]){0, 0, 0, 0}, arrays), 0, NULL);
    failed += expect("both", copy_on((int[]){0, 0, 0, 1}, arrays), JAXCC_ARGUMENT,
                     "argument 'out' is on another GPU than the arguments before it");
    failed += expect("host pointers", host_call(N, &good), 0, NULL) || !good;
    for (int i = 1; i >= 0; i--) {
        need(synchronize(), "wait");
        need(DRIVER.cuMemFree_v2(arrays[i]), "free");
        need(DRIVER.cuCtxPopCurrent_v2(NULL), "pop");
        need(DRIVER.cuDevicePrimaryCtxRelease_v2(i), "release");
    }
    return failed;
}
/* What ends the body: more blocks than there are, more elements than can be sorted, no memory for rows, a function of
   the runtime. */
static int64_t blocks = 1, rows = 1, sorted = UINT32_MAX;
static void large_body(void *args, jaxcc_rt_heap *h) {
    jaxcc_rt_cuda_launch(h, FAULT, NULL, 0, 1, 1, 1, 0);
    jaxcc_rt_cuda_launch(h, FAULT, NULL, 1, blocks > 1 ? blocks : 0, 1, 1, 0);
    jaxcc_rt_cuda_sortable(h, "sort", sorted);
    jaxcc_rt_cuda_rows(h, rows * ((int64_t)1 << 40), rows, 1 << 20, "no memory for {0} rows of {1} bytes");
    jaxcc_rt_stop(h, JAXCC_CHECK, "stopped");
}
static int ends(void) {
    static const jaxcc_rt_cuda_program p = {&library, large_body, "", ": try less", 0, 0, 0, 0};
    void *words[1];
    blocks = 1 << 16;
    int failed = expect("blocks", jaxcc_rt_cuda_run(&p, words, (int64_t[]){64}), JAXCC_DIMENSION,
                        "kernel 'fault' needs more blocks than a GPU has: 1 x 65536 x 1");
    blocks = 1;
    sorted++;
    failed += expect("sorted", jaxcc_rt_cuda_run(&p, words, (int64_t[]){64}), JAXCC_DIMENSION,
                     "sort: 4294967296 elements are too many to be sorted on a GPU");
    sorted--;
    rows = 3;
    failed += expect("rows", jaxcc_rt_cuda_run(&p, words, (int64_t[]){64}), JAXCC_MEMORY,
                     "no memory for 3 rows of 1048576 bytes");
    rows = 0;
    failed += expect("stop", jaxcc_rt_cuda_run(&p, words, (int64_t[]){64}), JAXCC_CHECK, "stopped");
    failed += expect("workspace", jaxcc_rt_cuda_run(&p, words, (int64_t[]){INT64_MAX}), JAXCC_MEMORY,
                     "no memory for 2^63 bytes or more on GPU 0: try less");
    return failed + expect("workspace", jaxcc_rt_cuda_run(&p, words, (int64_t[]){(int64_t)1 << 50}), JAXCC_MEMORY,
                           "no memory for 1125899906842624 bytes on GPU 0: try less");
}
/* More memory than there is, then again what there is. */
static int memory(void) {
    bool good;
    if (expect("small", host_call(N, &good), 0, NULL) || !good) return 1;
    if (expect("too much", host_call(70000, &good), JAXCC_MEMORY, "no memory for 1400512 bytes on GPU 0")) return 1;
    for (int64_t n = 40000; n > 30000; n -= 1000) /* only by giving back what other sizes left */
        if (expect("tight", host_call(n, &good), 0, NULL) || !good) return 1;
    return 0;
}
static int after_fork(void) {
    bool good;
    if (host_call(N, &good) || !good) return 1;
    pid_t child = fork();
    if (!child) exit(expect("in a child", host_call(N, &good), JAXCC_MISSING, "child of a process that has used it"));
    int status;
    waitpid(child, &status, 0);
    return status || host_call(N, &good) || !good;
}
static int second_device(void) {
    bool good;
    return expect("GPU 1", host_call(N, &good), 0, NULL) || !good;
}

/* ---- graphs: calls with the same pointers come again */
enum { SETS = 20, SET_BYTES = 3 * 4096, CHAIN_WORDS = 6, CHAIN_STATE = 8192 };
/* n, a, x, y, out, workspace: work = a x + y, but 0 first; out = a work + y + table; work = out; out = a x + work */
static void chain(void *args, jaxcc_rt_heap *h) {
    void **w = args;
    int64_t n = (int64_t)w[0];
    axpy(h, w[2], w[3], w[5], n, w[1]);
    jaxcc_rt_cuda_fill(h, w[5], 0, 4, 1);
    axpy(h, w[5], w[3], w[4], n, w[1]);
    void *lookup[] = {jaxcc_rt_cuda_constant(h, 1), w[4], (void *)n};
    jaxcc_rt_cuda_launch(h, LOOKUP, lookup, (n + THREADS - 1) / THREADS, 1, 1, THREADS, 0);
    jaxcc_rt_cuda_copy(h, w[5], w[4], 4 * n);
    axpy(h, w[2], w[5], w[4], n, w[1]);
}
/* The same, and out[0] becomes the turns of a loop. */
static void chain_and_loop(void *args, jaxcc_rt_heap *h) {
    void **w = args;
    char *turns = (char *)w[5] + CHAIN_STATE;
    chain(args, h);
    jaxcc_rt_cuda_fill(h, turns, 0, 4, 1);
    count_turns(h, turns, TURNS, 0);
    jaxcc_rt_cuda_copy(h, w[4], turns, 4);
}
static float chained(int64_t i, int set) {
    float x = (float)(i % 1000 + set), y = (float)(i % 7), work = i ? 0.5f * x + y : 0;
    return 0.5f * x + (0.5f * work + y + table[i % 16]);
}
/* The caller's own: two streams and, after `a`, the x, y and out of each set. */
static struct {
    CUcontext context;
    CUstream stream[2];
    CUdeviceptr memory;
} own;
static CUdeviceptr set_at(int set, int array) {
    return own.memory + 4096 + (CUdeviceptr)(set * SET_BYTES + array * 4096);
}
static void own_open(void) {
    float values[N], by = 0.5f;
    need(jaxcc_rt_cuda_open(), "open");
    need(DRIVER.cuDevicePrimaryCtxRetain(&own.context, 0), "retain");
    need(DRIVER.cuCtxPushCurrent_v2(own.context), "push");
    for (int i = 0; i < 2; i++) need(DRIVER.cuStreamCreate(&own.stream[i], 1), "stream");
    need(DRIVER.cuMemAlloc_v2(&own.memory, 4096 + SETS * SET_BYTES), "memory");
    need(DRIVER.cuMemcpyHtoDAsync_v2(own.memory, &by, 4, own.stream[0]), "copy");
    for (int set = 0; set < SETS; set++)
        for (int array = 0; array < 2; array++) {
            for (int i = 0; i < N; i++) values[i] = (float)(array ? i % 7 : i % 1000 + set);
            need(DRIVER.cuMemcpyHtoDAsync_v2(set_at(set, array), values, sizeof values, own.stream[0]), "copy");
        }
    need(DRIVER.cuStreamSynchronize(own.stream[0]), "wait");
}
static void own_close(void) {
    jaxcc_rt_cuda_set_stream(NULL);
    for (int i = 0; i < 2; i++) need(DRIVER.cuStreamSynchronize(own.stream[i]), "wait");
    for (int i = 0; i < 2; i++) need(DRIVER.cuStreamDestroy_v2(own.stream[i]), "stream");
    need(DRIVER.cuMemFree_v2(own.memory), "free");
    need(DRIVER.cuCtxPopCurrent_v2(NULL), "pop");
    need(DRIVER.cuDevicePrimaryCtxRelease_v2(0), "release");
}
static const jaxcc_rt_cuda_program chain_program = {
    &library, chain, "a x y out", "", 1, 3, 1, JAXCC_RT_CUDA_DEVICE_POINTERS | JAXCC_RT_CUDA_GRAPH};
static const jaxcc_rt_cuda_program loop_program = {
    &library,    chain_and_loop,
    "a x y out", "",
    1,           3,
    1,           JAXCC_RT_CUDA_DEVICE_POINTERS | JAXCC_RT_CUDA_GRAPH | JAXCC_RT_CUDA_LOOPS};
static bool loops(void) { return getenv("LOOPS"); }
static int32_t chain_call(int set, int stream, int64_t n) {
    void *words[CHAIN_WORDS] = {(void *)n, (void *)own.memory, (void *)set_at(set, 0), (void *)set_at(set, 1),
                                (void *)set_at(set, 2)};
    jaxcc_rt_cuda_set_stream(own.stream[stream]);
    can_fail(true);
    int32_t status = jaxcc_rt_cuda_run(loops() ? &loop_program : &chain_program, words,
                                       (int64_t[]){4, 4 * n, 4 * n, 4 * n, loops() ? CHAIN_STATE + 64 : 4 * n});
    can_fail(false);
    return status;
}
/* The result of a call; then nothing is there. */
static bool chain_right(int set, int stream, int64_t n) {
    float out[N];
    need(DRIVER.cuMemcpyDtoHAsync_v2(out, set_at(set, 2), sizeof out, own.stream[stream]), "copy");
    need(DRIVER.cuMemsetD8Async(set_at(set, 2), 0xFF, sizeof out, own.stream[stream]), "fill");
    int32_t turns = 0;
    memcpy(&turns, out, sizeof turns);
    if (loops() && turns != TURNS) return printf("%d turns, not %d\n", turns, TURNS), false;
    for (int64_t i = loops(); i < n; i++)
        if (out[i] != chained(i, set))
            return printf("out[%lld] of set %d is %g, not %g\n", (long long)i, set, out[i], chained(i, set)), false;
    return true;
}
/* Each set three times: as it is, recorded, and launched again; another n is another graph. */
static int32_t chain_calls(int64_t n, bool *good) {
    int32_t status = 0;
    *good = true;
    for (int i = 0; i < 6 && !status; i++) {
        status = chain_call(i % 2, 0, n - i / 2 % 2);
        if (!status) status = chain_call(i % 2, 0, n);
        *good = !status && *good && chain_right(i % 2, 0, n);
    }
    need(DRIVER.cuStreamSynchronize(own.stream[0]), "wait");
    return status;
}
static int once_graph(void) {
    own_open();
    int failed = once(chain_calls);
    own_close();
    return failed;
}
static int once_loop(void) {
    setenv("LOOPS", "1", 1);
    return once_graph();
}
/* One call has many loops with memory of their own. */
enum { MANY_LOOPS = 100 };
static void many_body(void *args, jaxcc_rt_heap *h) {
    void **w = args; /* out, workspace */
    for (int64_t i = 0; i < MANY_LOOPS; i++) {
        char *turns = (char *)w[1] + i * LOOP_BYTES;
        jaxcc_rt_cuda_fill(h, turns, 0, 4, 1);
        count_turns(h, turns, i % TURNS, 0);
        jaxcc_rt_cuda_copy(h, (int32_t *)w[0] + i, turns, 4);
    }
}
static int many_loops(void) {
    static const jaxcc_rt_cuda_program p = {&library, many_body, "out", "", 0, 0, 1, 0};
    int32_t out[MANY_LOOPS];
    int failed = 0;
    for (int call = 0; call < 3; call++) {
        void *words[] = {out, NULL};
        memset(out, 0xFF, sizeof out);
        failed +=
            expect("a call", jaxcc_rt_cuda_run(&p, words, (int64_t[]){sizeof out, MANY_LOOPS * LOOP_BYTES}), 0, NULL);
        for (int i = 0; i < MANY_LOOPS; i++) failed += out[i] != i % TURNS;
    }
    return failed;
}
/* More sets than there are graphs, and two streams that do not wait for each other, where the second one has the graph
   of the first. */
static int graphs(void) {
    int failed = 0;
    own_open();
    for (int turn = 0; turn < 3; turn++)
        for (int set = 0; set < SETS; set++) failed |= chain_call(set, 0, N) || !chain_right(set, 0, N);
    for (int turn = 0; turn < 3; turn++)
        for (int set = 0; set < 3; set++) failed |= chain_call(set, 1, N) || !chain_right(set, 1, N);
    failed |= chain_call(1, 0, N) || chain_call(1, 1, N) || chain_call(1, 0, N);
    need(DRIVER.cuStreamSynchronize(own.stream[1]), "wait");
    failed |= !chain_right(1, 0, N);
    own_close();
    return failed;
}
/* How many calls of one set: MANY. */
static int graph_many(void) {
    int failed = 0;
    own_open();
    for (int i = 0; i < atoi(getenv("MANY")); i++) failed |= chain_call(0, 0, N) != 0;
    failed |= !chain_right(0, 0, N);
    own_close();
    return failed;
}
/* A stream ends while a graph is to run there, and another one has its handle: what is launched there waits for the
   former. */
static int graph_reused(void) {
    CUstream before;
    float out[N];
    own_open();
    before = own.stream[0];
    int failed = chain_call(0, 0, N) || chain_call(0, 0, N) || chain_call(0, 0, N);
    need(DRIVER.cuStreamDestroy_v2(before), "stream");
    need(DRIVER.cuStreamCreate(&own.stream[0], 1), "stream");
    if (own.stream[0] != before) return printf("the handle is another one\n"), 1;
    failed |= chain_call(0, 0, N) || !chain_right(0, 0, N);
    need(DRIVER.cuStreamSynchronize(own.stream[0]), "wait");
    need(synchronize(), "wait");
    need(DRIVER.cuMemcpyDtoHAsync_v2(out, set_at(0, 2), sizeof out, own.stream[0]), "copy");
    need(DRIVER.cuStreamSynchronize(own.stream[0]), "wait");
    for (unsigned i = 0; i < sizeof out; i++) failed |= ((unsigned char *)out)[i] != 0xFF; /* since chain_right */
    own_close();
    return failed;
}
static void *graph_caller(void *number) {
    int k = (int)(intptr_t)number, failed = 0;
    need(DRIVER.cuCtxPushCurrent_v2(own.context), "push");
    for (int i = 0; i < 20; i++) failed |= chain_call(k / 2, k % 2, N) != 0;
    need(DRIVER.cuStreamSynchronize(own.stream[k % 2]), "wait");
    need(DRIVER.cuCtxPopCurrent_v2(NULL), "pop");
    return (void *)(intptr_t)failed;
}
/* Two threads for each set, on different streams. */
static int graph_threads(void) {
    enum { CALLERS = 8 };
    pthread_t at[CALLERS];
    void *one;
    int failed = 0;
    own_open();
    for (intptr_t i = 0; i < CALLERS; i++) pthread_create(&at[i], NULL, graph_caller, (void *)i);
    for (int i = 0; i < CALLERS; i++) pthread_join(at[i], &one), failed |= one != NULL;
    for (int set = 0; set < CALLERS / 2; set++) failed |= !chain_right(set, 0, N);
    own_close();
    return failed;
}
/* The memory that graphs keep is there for other calls. */
static int graph_memory(void) {
    bool good;
    int failed = 0;
    own_open();
    for (int i = 0; i < 2 * SETS; i++) failed |= chain_call(i % SETS, 0, N) != 0;
    for (int i = 0; i < 2 * SETS; i++) failed |= chain_call(i / 2, 0, N) != 0;
    failed |= expect("a large call", host_call(36000, &good), 0, NULL) || !good;
    failed |= chain_call(0, 0, N) || chain_call(0, 0, N) || !chain_right(0, 0, N);
    own_close();
    return failed;
}

static const struct {
    const char *name;
    int (*run)(void);
} scenarios[] = {{"results", results},
                 {"large", large},
                 {"many", many},
                 {"threads", threads},
                 {"streams", streams},
                 {"once_host", once_host},
                 {"several", several},
                 {"once_device", once_device},
                 {"spmd", spmd},
                 {"several_spmd", several_spmd},
                 {"many_spmd", many_spmd},
                 {"threads_spmd", threads_spmd},
                 {"once_spmd_host", once_spmd_host},
                 {"once_spmd_device", once_spmd_device},
                 {"spmd_stops", spmd_stops},
                 {"spmd_fault", spmd_fault},
                 {"lost_while_waiting", lost_while_waiting},
                 {"nccl_aborted", nccl_aborted},
                 {"nccl_lost", nccl_lost},
                 {"nccl_lost_between", nccl_lost_between},
                 {"meshes", meshes},
                 {"sticky", sticky},
                 {"sticky_device", sticky_device},
                 {"innocent", innocent},
                 {"captured", captured},
                 {"beside_captures", beside_captures},
                 {"released_at_last", released_at_last},
                 {"end_beside_capture", end_beside_capture},
                 {"refused", refused},
                 {"images", images},
                 {"image_of_90", image_of_90},
                 {"arguments", arguments},
                 {"devices", devices},
                 {"ends", ends},
                 {"graphs", graphs},
                 {"graph_many", graph_many},
                 {"graph_threads", graph_threads},
                 {"graph_reused", graph_reused},
                 {"graph_memory", graph_memory},
                 {"once_graph", once_graph},
                 {"once_loop", once_loop},
                 {"host_many", host_many},
                 {"many_loops", many_loops},
                 {"memory", memory},
                 {"after_fork", after_fork},
                 {"second_device", second_device}};

int main(int argc, char **argv) {
    driver =
        dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL); /* so that it keeps its counts, however often it is opened */
    for (unsigned i = 0; argc > 1 && i < sizeof scenarios / sizeof *scenarios; i++)
        if (!strcmp(argv[1], scenarios[i].name)) return scenarios[i].run();
    fprintf(stderr, "gpu_runtime: no scenario '%s'\n", argc > 1 ? argv[1] : "");
    return 2;
}
