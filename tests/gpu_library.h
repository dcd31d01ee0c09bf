/* A library as the compiler would write it, with kernels by hand, and its program; for gpu_runtime.c. */
#ifndef GPU_LIBRARY_H
#define GPU_LIBRARY_H
#include "gpu/kernels.h"
#include "../runtime/cuda.h"
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { AXPY, LOOKUP, COUNT, REVERSE, FAULT, TURN, N_KERNELS, N = 1000, TURNS = 5, LARGE = 5 << 20, THREADS = 256 };
static const float table[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
static const double unused[3] = {1, 2, 3};
static const jaxcc_rt_cuda_constant_data constants[] = {{unused, sizeof unused}, {table, sizeof table}};
static const jaxcc_rt_cuda_kernel kernels[N_KERNELS] = {
    {"axpy", "t.jaxpr:1:20 mul", 40, 0},
    {"lookup", NULL, 24, 0},
    {"count", NULL, 24, 0},
    {"reverse", NULL, 8, 60000},
    {"fault", "t.jaxpr:2:5 scatter", 0, 0},
    {"turn", NULL, 32, 0},
};
static const jaxcc_rt_cuda_image image[] = {{"sm_80", KERNELS("7.0", "sm_80"), 80, JAXCC_RT_CUDA_LATER}};
static const jaxcc_rt_cuda_image newer[] = {{"sm_90a", KERNELS("7.8", "sm_90a"), 90, JAXCC_RT_CUDA_SAME},
                                            {"sm_90", KERNELS("7.8", "sm_90"), 90, JAXCC_RT_CUDA_LATER}};
static const jaxcc_rt_cuda_image newest[] = {{"sm_80", KERNELS("8.8", "sm_80"), 80, JAXCC_RT_CUDA_LATER}};
static const jaxcc_rt_cuda_image wrong[] = {{"sm_80", ".version 7.0\n.target sm_80\nnonsense;\n", 80, 0}};
#define LIBRARY(images)                                                                                                \
    {NULL, images, kernels, constants, sizeof images / sizeof *images, N_KERNELS, sizeof constants / sizeof *constants}
static jaxcc_rt_cuda_library library = LIBRARY(image), for_newer = LIBRARY(newer), for_newest = LIBRARY(newest),
                             not_ptx = LIBRARY(wrong);

static void axpy(jaxcc_rt_heap *h, void *x, void *y, void *out, int64_t n, void *a) {
    void *context[] = {x, y, out, (void *)n, a};
    jaxcc_rt_cuda_launch(h, AXPY, context, (n + THREADS - 1) / THREADS, 1, 1, THREADS, 0);
}
/* Counts *turns, which is followed by memory of the loop's own, LOOP_BYTES in all, up to `end`. In each turn a loop,
   whose memory follows, counts to `inner`, if that is not 0. */
enum { LOOP_BYTES = 64 };
static void count_turns(jaxcc_rt_heap *h, char *turns, int64_t end, int64_t inner) {
    enum { MOST = 4 };
    char *go = turns + 16;
    void *test[] = {turns, go, (void *)end, 0}, *turn[] = {turns, go, (void *)end, (void *)1};
    jaxcc_rt_cuda_fill(h, go, 0, 1, 1);
    for (int64_t n = 0, begun = 0; !begun || n; begun = 1) {
        for (int64_t i = 0; i < (n ? n : 1); i++) {
            if (n) jaxcc_rt_cuda_launch(h, TURN, turn, 1, 1, 1, 1, 0);
            if (n) jaxcc_rt_cuda_fill(h, turns + 32, 0x100000002, 8, 1);
            if (n) jaxcc_rt_cuda_copy(h, turns + 48, turns + 32, 8);
            if (n && inner) jaxcc_rt_cuda_fill(h, turns + LOOP_BYTES, 0, 4, 1);
            if (n && inner) count_turns(h, turns + LOOP_BYTES, inner, 0);
            jaxcc_rt_cuda_launch(h, TURN, test, 1, 1, 1, 1, 0);
        }
        n = jaxcc_rt_cuda_turns(h, go, n, inner ? 1 : MOST);
    }
}

/* words: n, x, y, a, out, negative, late, workspace */
enum { W_N, W_X, W_Y, W_A, W_OUT, W_NEGATIVE, W_LATE, W_WORK, WORDS };
static bool fault; /* run the kernel that fails */

static void negate(jaxcc_rt_heap *h, void *const *arrays, const int64_t *sizes) {
    for (int64_t i = 0; i < sizes[0]; i++) ((float *)arrays[1])[i] = -((const float *)arrays[0])[i];
    if (strcmp(arrays[2], "text") != 0) jaxcc_rt_stop(h, JAXCC_CHECK, "no text");
}
/* out = a x + y + table[i mod 16], its first 256 reversed twice; negative = -out; late = 3, then the turns of two loops
   and of one in the second */
static void body(void *args, jaxcc_rt_heap *h) {
    void **w = args;
    int64_t n = (int64_t)w[W_N], bytes = 4 * n, dims[] = {3};
    uint8_t go = 1;
    int32_t three[] = {3, 0, 0};
    axpy(h, w[W_X], w[W_Y], w[W_WORK], n, w[W_A]);
    void *lookup[] = {jaxcc_rt_cuda_constant(h, 1), w[W_WORK], (void *)n};
    jaxcc_rt_cuda_launch(h, LOOKUP, lookup, (n + THREADS - 1) / THREADS, 1, 1, THREADS, 0);
    for (int i = 0; i < 2 && n >= THREADS; i++) jaxcc_rt_cuda_launch(h, REVERSE, &w[W_WORK], 1, 1, 1, THREADS, 60000);
    jaxcc_rt_cuda_launch(h, FAULT, NULL, fault ? 1 : 0, 1, 1, 1, 0);
    jaxcc_rt_cuda_copy(h, w[W_OUT], w[W_WORK], bytes);
    void *arrays[] = {w[W_OUT], w[W_NEGATIVE], "text"};
    jaxcc_rt_cuda_host(h, negate, arrays, (int64_t[]){bytes, bytes}, 1, 1, &n);
    char *state = jaxcc_rt_cuda_get(h, 300);
    jaxcc_rt_cuda_fill(h, state, 0, 4, 1);
    jaxcc_rt_cuda_fill(h, state + 8, 0x100000002, 8, 1);
    jaxcc_rt_cuda_fill(h, state + 16, 1, 1, 1);
    void *count[] = {state, state + 16, (void *)TURNS};
    while (go) {
        jaxcc_rt_cuda_launch(h, COUNT, count, 1, 1, 1, 1, 0);
        jaxcc_rt_cuda_read(h, &go, state + 16, 1);
    }
    count_turns(h, state, 2 * TURNS, TURNS);
    char *late = jaxcc_rt_cuda_array(h, w[W_LATE], 1, dims, sizeof three);
    jaxcc_rt_cuda_upload(h, late, three, sizeof three);
    memset(three, 0xFF, sizeof three);
    jaxcc_rt_cuda_copy(h, late + 4, state, 4);
    jaxcc_rt_cuda_copy(h, late + 8, state + LOOP_BYTES, 4);
    jaxcc_rt_cuda_put(h, state);
    jaxcc_rt_cuda_put(h, jaxcc_rt_cuda_rows(h, 1000, 1, 1000, "no memory for {0} rows"));
}
static const jaxcc_rt_cuda_program host_program = {&library, body, "x y a out negative late", "", 1, 3, 3, 0},
                                   device_program = {&library, body, "x y a out negative late",    "", 1,
                                                     3,        3,    JAXCC_RT_CUDA_DEVICE_POINTERS};

#endif
