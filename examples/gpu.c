/* Trains the network of train.jaxpr on a GPU, where its weights stay from call to call. --device-pointers made the library.
   It needs NVIDIA's driver alone, and so does this program, which finds the driver's functions when it runs; where CUDA is
   installed, #include <cuda.h> and -lcuda are simpler. */
#include "spirals.h"
#include "train_gpu.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the driver: its functions as <cuda.h> declares them, but that handles are void * */
typedef uint64_t CUdeviceptr;
#define FUNCTIONS(F)                                                                                                   \
    F(cuInit, unsigned flags)                                                                                          \
    F(cuDeviceGet, int *device, int number)                                                                            \
    F(cuDevicePrimaryCtxRetain, void **context, int device)                                                            \
    F(cuDevicePrimaryCtxRelease_v2, int device)                                                                        \
    F(cuCtxPushCurrent_v2, void *context)                                                                              \
    F(cuStreamCreate, void **stream, unsigned flags)                                                                   \
    F(cuStreamDestroy_v2, void *stream)                                                                                \
    F(cuStreamSynchronize, void *stream)                                                                               \
    F(cuMemAlloc_v2, CUdeviceptr *array, size_t bytes)                                                                 \
    F(cuMemFree_v2, CUdeviceptr array)                                                                                 \
    F(cuMemcpyHtoDAsync_v2, CUdeviceptr to, const void *from, size_t bytes, void *stream)                              \
    F(cuMemcpyDtoHAsync_v2, void *to, CUdeviceptr from, size_t bytes, void *stream)
#define VARIABLE(name, ...) static int (*name)(__VA_ARGS__);
FUNCTIONS(VARIABLE)

static void find(void *driver, const char *name, void *function, size_t size) {
    void *found = driver ? dlsym(driver, name) : NULL;
    if (!found) {
        fprintf(stderr, "NVIDIA's driver: %s\n", dlerror());
        exit(1);
    }
    memcpy(function, &found, size);
}
static void open_driver(void) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
#define FIND(name, ...) find(driver, #name, &name, sizeof name);
    FUNCTIONS(FIND)
}

/* A function of the driver that fails says so by its number. */
#define MUST(name, ...) cuda_must(name(__VA_ARGS__), #name)
static void cuda_must(int result, const char *name) {
    if (result == 0) return;
    fprintf(stderr, "%s: error %d\n", name, result);
    exit(1);
}

/* ---- arrays of the GPU: pointers that only the library and the driver can use */
static CUdeviceptr address(const float *array) { return (CUdeviceptr)(uintptr_t)array; }
static float *array_new(const float *from, size_t n, void *stream) {
    CUdeviceptr array;
    MUST(cuMemAlloc_v2, &array, n * sizeof *from);
    if (from) MUST(cuMemcpyHtoDAsync_v2, array, from, n * sizeof *from, stream);
    return (float *)(uintptr_t)array;
}
static float read_scalar(const float *array, void *stream) {
    float x;
    MUST(cuMemcpyDtoHAsync_v2, &x, address(array), sizeof x, stream);
    MUST(cuStreamSynchronize, stream); /* calls and copies of a stream are done one after the other */
    return x;
}

/* ---- weights and biases of the layers, two copies: a step reads one and writes the other */
enum { WEIGHTS = 6 };
static const size_t sizes[WEIGHTS] = {2 * H, H, H *H, H, H * 3, 3};
static const float scales[WEIGHTS] = {1.5f, 0, 0.4f, 0, 0.4f, 0};

static void step(float *const *w, const float *x, const float *arm, float *const *new, float *loss) {
    if (train_gpu(w[0], w[1], w[2], w[3], w[4], w[5], x, arm, new[0], new[1], new[2], new[3], new[4], new[5], loss)) {
        fprintf(stderr, "%s\n", train_gpu_error());
        exit(1);
    }
}

static void weights_new(float *w[2][WEIGHTS], void *stream) {
    float initial[H * H];
    for (int k = 0; k < WEIGHTS; k++) {
        fill(initial, sizes[k], scales[k]);
        w[0][k] = array_new(initial, sizes[k], stream);
        w[1][k] = array_new(NULL, sizes[k], stream);
        MUST(cuStreamSynchronize, stream); /* before `initial` changes */
    }
}
/* Prints the first loss and the last one, which is to be below half of it. */
static int train(void *stream) {
    int steps = 200;
    float *w[2][WEIGHTS], *loss = array_new(NULL, 1, stream);
    float *x = array_new(points[0], 2 * N, stream), *arm = array_new(arms[0], 3 * N, stream);
    weights_new(w, stream);
    step(w[0], x, arm, w[1], loss);
    float first = read_scalar(loss, stream);
    for (int i = 1; i < steps; i++) step(w[i % 2], x, arm, w[1 - i % 2], loss); /* returns before it is done */
    float last = read_scalar(loss, stream);
    printf("train on a GPU: loss %.4f, after %d steps %.4f\n", first, steps, last);
    float *others[] = {x, arm, loss};
    for (int k = 0; k < 2 * WEIGHTS; k++) MUST(cuMemFree_v2, address(w[k / WEIGHTS][k % WEIGHTS]));
    for (int k = 0; k < 3; k++) MUST(cuMemFree_v2, address(others[k]));
    return last < first / 2 ? 0 : 1;
}

int main(void) {
    int device;
    void *context, *stream;
    open_driver();
    MUST(cuInit, 0);
    MUST(cuDeviceGet, &device, 0);
    MUST(cuDevicePrimaryCtxRetain, &context, device); /* the one that the library uses */
    MUST(cuCtxPushCurrent_v2, context);
    MUST(cuStreamCreate, &stream, 0);
    train_gpu_stream(stream); /* where the calls of this thread go */
    spirals();
    int status = train(stream);
    MUST(cuStreamDestroy_v2, stream);
    MUST(cuDevicePrimaryCtxRelease_v2, device);
    return status;
}
