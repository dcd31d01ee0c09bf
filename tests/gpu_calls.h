/* Calls of the library of gpu_library.h, and of a program for several devices: for gpu_runtime.c. */
#ifndef GPU_CALLS_H
#define GPU_CALLS_H
#include "gpu_library.h"
#include "../runtime/comm.h"
#include "../runtime/cuda_device.h"
#include "../runtime/cuda_driver.h"
#include <dlfcn.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- calls of it */
typedef struct {
    int64_t n;
    float *x, *y, a, *out, *negative;
    jaxcc_array late;
} Arrays;
static Arrays arrays_new(int64_t n) {
    Arrays s = {.n = n, .a = 0.5f};
    s.x = malloc(16 * (size_t)n);
    if (!s.x) exit(9);
    s.y = s.x + n, s.out = s.y + n, s.negative = s.out + n;
    for (int64_t i = 0; i < n; i++) s.x[i] = (float)(i % 1000), s.y[i] = (float)(i % 7), s.out[i] = s.negative[i] = -99;
    return s;
}
static int32_t call(const jaxcc_rt_cuda_program *p, Arrays *s) {
    int64_t b = 4 * s->n, bytes[] = {b, b, 4, b, b, -1, b};
    void *words[WORDS] = {(void *)s->n, s->x, s->y, &s->a, s->out, s->negative, &s->late};
    return jaxcc_rt_cuda_run(p, words, bytes);
}
static bool right(const Arrays *s, const float *out, const float *negative, const int32_t *late) {
    for (int64_t i = 0; i < s->n; i++) {
        float want = 0.5f * (float)(i % 1000) + (float)(i % 7) + table[i % 16];
        if (out[i] != want || negative[i] != -want)
            return printf("out[%lld] is %g and %g, not %g\n", (long long)i, out[i], negative[i], want), false;
    }
    if (late[0] != 3 || late[1] != 2 * TURNS || late[2] != TURNS)
        return printf("late is %d, %d, %d\n", late[0], late[1], late[2]), false;
    return true;
}
/* With FAIL only the runtime's uses of the driver fail, in all calls, and count; the caller's do not. */
static void *driver;
static void can_fail(bool on) {
    void (*set)(const char *) = NULL;
    void *f = getenv("FAIL") ? dlsym(driver, "jaxcc_gpu_fail") : NULL;
    memcpy(&set, &f, sizeof f);
    if (set) set(on ? getenv("FAIL") : NULL);
}
static int32_t host_call(int64_t n, bool *is_right) {
    Arrays s = arrays_new(n);
    can_fail(true);
    int32_t status = call(&host_program, &s);
    can_fail(false);
    *is_right = !status && s.late.rank == 1 && s.late.dims[0] == 3 && right(&s, s.out, s.negative, s.late.data);
    if (!status) s.late.release(&s.late);
    free(s.x);
    return status;
}
static int expect(const char *what, int32_t status, int32_t want, const char *text) {
    if (status != want || (text && !strstr(jaxcc_rt_error(), text)))
        return printf("%s: status %d, '%s'; not %d, '%s'\n", what, status, jaxcc_rt_error(), want, text ? text : ""), 1;
    return 0;
}
#define DRIVER jaxcc_rt_cuda
static void need(CUresult r, const char *what) {
    if (r) printf("%s: error %d\n", what, r), exit(9);
}
/* What the runtime does not use. */
static CUresult synchronize(void) {
    CUresult (*f)(void);
    void *found = dlsym(driver, "cuCtxSynchronize");
    memcpy(&f, &found, sizeof f);
    return f();
}
/* The caller's own use of the GPU: a stream that does not block, memory, results after a wait. */
static void begin_stream(CUstream *stream, CUdeviceptr *memory, size_t bytes) {
    CUcontext context;
    need(DRIVER.cuDevicePrimaryCtxRetain(&context, 0), "retain");
    need(DRIVER.cuCtxPushCurrent_v2(context), "push");
    need(DRIVER.cuStreamCreate(stream, 1), "stream");
    need(DRIVER.cuMemAlloc_v2(memory, bytes), "memory");
}
static void end_stream(CUstream stream, CUdeviceptr memory) {
    jaxcc_rt_cuda_set_stream(NULL);
    DRIVER.cuStreamSynchronize(stream);
    DRIVER.cuStreamDestroy_v2(stream);
    DRIVER.cuMemFree_v2(memory);
    DRIVER.cuCtxPopCurrent_v2(NULL);
    DRIVER.cuDevicePrimaryCtxRelease_v2(0);
}
static int32_t device_call(int64_t n, bool *is_right) {
    CUstream stream;
    CUdeviceptr memory;
    Arrays s = arrays_new(n), d = s;
    size_t b = 4 * (size_t)n, step = (b + 255) / 256 * 256;
    int32_t late[3] = {0}, status = jaxcc_rt_cuda_open();
    if (status) return free(s.x), status;
    begin_stream(&stream, &memory, 4 * step + 256);
    d.x = (float *)memory, d.y = (float *)(memory + step), d.out = (float *)(memory + 2 * step);
    d.negative = (float *)(memory + 3 * step);
    CUdeviceptr a = memory + 4 * step;
    need(DRIVER.cuMemcpyHtoDAsync_v2((CUdeviceptr)d.x, s.x, b, stream), "copy");
    need(DRIVER.cuMemcpyHtoDAsync_v2((CUdeviceptr)d.y, s.y, b, stream), "copy");
    need(DRIVER.cuMemcpyHtoDAsync_v2(a, &s.a, 4, stream), "copy");
    jaxcc_rt_cuda_set_stream(stream);
    float peeked = 0;
    can_fail(true);
    status = jaxcc_rt_cuda_peek(&device_program, 2, &peeked, (void *)a, 4);
    int64_t bytes[] = {(int64_t)b, (int64_t)b, 4, (int64_t)b, (int64_t)b, -1, (int64_t)b};
    void *words[WORDS] = {(void *)n, d.x, d.y, (void *)a, d.out, d.negative, &d.late};
    if (!status) status = jaxcc_rt_cuda_run(&device_program, words, bytes);
    *is_right = !status;
    can_fail(false);
    if (!status) {
        need(DRIVER.cuMemcpyDtoHAsync_v2(s.out, (CUdeviceptr)d.out, b, stream), "copy");
        need(DRIVER.cuMemcpyDtoHAsync_v2(s.negative, (CUdeviceptr)d.negative, b, stream), "copy");
        need(DRIVER.cuMemcpyDtoHAsync_v2(late, (CUdeviceptr)d.late.data, sizeof late, stream), "copy");
        *is_right = peeked == s.a && right(&s, s.out, s.negative, late);
        d.late.release(&d.late);
    }
    end_stream(stream, memory);
    free(s.x);
    return status;
}

/* ---- a program for several devices: each takes its part of x, times 1.5; they gather it, and each gets that of the
   one before it and a piece of each other's. Each has two inner devices, which gather their numbers across all. */
enum { DEVICES = 4, PART = N / DEVICES, PIECE = 60, INNER = 2 * DEVICES };
typedef struct {
    float all[N], before[PART], pieces[DEVICES * PIECE];
    int32_t number, inner[2 * INNER];
} Gathered;
static int failing_device = -1;              /* this one stops */
static void (*in_device_0)(jaxcc_rt_heap *); /* is called once, between its exchanges */
static bool fault_later;                     /* the kernel that fails comes after the first exchange */

static void inner_body(void *args, jaxcc_rt_heap *h) {
    void **w = args; /* part of the output, workspace */
    jaxcc_rt_cuda_fill(h, w[1], jaxcc_rt_device_number(h), 4, 1);
    jaxcc_rt_all_gather(h, (void *[]){w[1], w[0]}, (int64_t[]){sizeof(int32_t), 1, INNER, 1, 0, 0});
}
static void device_body(void *args, jaxcc_rt_heap *h) {
    void **w = args; /* part of x, a, part of the output, workspace */
    char *out = w[2];
    float *mine = w[3];
    int64_t place = jaxcc_rt_device_number(h);
    axpy(h, w[0], w[0], mine, PART, w[1]);
    if (place == failing_device) jaxcc_rt_stop(h, JAXCC_CHECK, "device %d stops", failing_device);
    jaxcc_rt_cuda_launch(h, FAULT, NULL, fault && !fault_later && place == DEVICES - 1, 1, 1, 1, 0);
    jaxcc_rt_all_gather(h, (void *[]){mine, out + offsetof(Gathered, all)}, (int64_t[]){4 * PART, 1, DEVICES, 1, 0, 0});
    jaxcc_rt_cuda_launch(h, FAULT, NULL, fault && fault_later && place == DEVICES - 1, 1, 1, 1, 0);
    void (*once)(jaxcc_rt_heap *) = place == 0 ? in_device_0 : NULL;
    if (once) in_device_0 = NULL;
    if (once) once(h);
    jaxcc_rt_permute(h, (void *[]){mine, out + offsetof(Gathered, before)},
                     (int64_t[]){4 * PART, DEVICES, -1, 0, 1, 2, 1, DEVICES, 1, 0, 0});
    jaxcc_rt_all_to_all(h, (void *[]){mine, out + offsetof(Gathered, pieces)},
                        (int64_t[]){4 * PIECE, 1, DEVICES, 1, 0, 0});
    jaxcc_rt_cuda_fill(h, out + offsetof(Gathered, number), place, 4, 1);
    jaxcc_rt_cuda_spmd(h, (void *[]){out + offsetof(Gathered, inner)}, (int64_t[]){2, 0, 1, 8, 0, 4 * INNER, 0},
                       inner_body);
}
static void spmd_body(void *args, jaxcc_rt_heap *h) {
    void **w = args; /* x, a, out, workspace */
    axpy(h, w[0], w[0], w[3], N, w[1]);
    jaxcc_rt_cuda_spmd(h, (void *[]){w[3], w[1], w[2]},
                       (int64_t[]){DEVICES, 2, 1, 4 * PART, 0, sizeof(Gathered), 4 * PART, 4, 1, DEVICES, 4 * PART, 0},
                       device_body);
}
static const int64_t spmd_bytes[] = {4 * N, 4, DEVICES * sizeof(Gathered), 4 * N};
static const jaxcc_rt_cuda_program spmd_host = {&library, spmd_body, "x a out", "", 0, 2, 1, 0},
                                   spmd_device = {&library, spmd_body, "x a out", "",
                                                  0,        2,         1,         JAXCC_RT_CUDA_DEVICE_POINTERS};
static float x_times_2_25(int64_t i) { return 2.25f * (float)(i % 100); }
static bool gathered(const Gathered *g) {
    for (int d = 0; d < DEVICES; d++, g++) {
        bool good = g->number == d;
        for (int i = 0; i < N; i++) good &= g->all[i] == x_times_2_25(i);
        for (int i = 0; i < PART; i++) good &= g->before[i] == (d ? x_times_2_25((d - 1) * PART + i) : 0);
        for (int i = 0; i < DEVICES * PIECE; i++)
            good &= g->pieces[i] == x_times_2_25(i / PIECE * PART + d * PIECE + i % PIECE);
        for (int i = 0; i < 2 * INNER; i++) good &= g->inner[i] == i % INNER;
        if (!good) return printf("device %d has other results\n", d), false;
    }
    return true;
}
static _Thread_local Gathered results_of[DEVICES];
static _Thread_local float x_of_all[N], half = 0.5f;
static void fill_x(void) {
    for (int i = 0; i < N; i++) x_of_all[i] = (float)(i % 100);
    memset(results_of, 0xFF, sizeof results_of);
}
static int32_t spmd_host_call(int64_t n, bool *is_right) {
    fill_x();
    can_fail(true);
    int32_t status = jaxcc_rt_cuda_run(&spmd_host, (void *[]){x_of_all, &half, results_of, NULL}, spmd_bytes);
    can_fail(false);
    *is_right = !status && gathered(results_of);
    return status;
}
static int32_t spmd_device_call(int64_t n, bool *is_right) {
    CUstream stream;
    CUdeviceptr memory, a, out;
    int32_t status = jaxcc_rt_cuda_open();
    if (status) return status;
    fill_x();
    begin_stream(&stream, &memory, 4 * N + 16 + sizeof results_of);
    a = memory + 4 * N, out = a + 16;
    need(DRIVER.cuMemcpyHtoDAsync_v2(memory, x_of_all, 4 * N, stream), "copy");
    need(DRIVER.cuMemcpyHtoDAsync_v2(a, &half, 4, stream), "copy");
    jaxcc_rt_cuda_set_stream(stream);
    can_fail(true);
    status = jaxcc_rt_cuda_run(&spmd_device, (void *[]){(void *)memory, (void *)a, (void *)out, NULL}, spmd_bytes);
    can_fail(false);
    if (!status) need(DRIVER.cuMemcpyDtoHAsync_v2(results_of, out, sizeof results_of, stream), "copy");
    end_stream(stream, memory);
    *is_right = !status && gathered(results_of);
    return status;
}

#endif
