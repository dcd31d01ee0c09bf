/* A library with the runtime in it, as the compiler links them (with -DLIBRARY), and its host, which loads, calls and
   unloads it twice: gpu_unload LIBRARY. Afterwards nobody has the GPU, and the process ends as any other. */
#ifdef LIBRARY
#include "gpu/kernels.h"
#include "../runtime/cuda.h"

static const jaxcc_rt_cuda_image image[] = {{"sm_80", KERNELS("7.0", "sm_80"), 80, JAXCC_RT_CUDA_LATER}};
static const jaxcc_rt_cuda_kernel kernels[] = {{"axpy", 0, 40, 0}};
static jaxcc_rt_cuda_library library = {0, image, kernels, 0, 1, 1, 0};
static void body(void *args, jaxcc_rt_heap *h) {
    void **w = args; /* a, x, y, out, workspace */
    void *context[] = {w[1], w[2], w[3], (void *)64, w[0]};
    jaxcc_rt_cuda_launch(h, 0, context, 1, 1, 1, 64, 0);
}
__attribute__((visibility("default"))) int call(const float *a, const float *x, const float *y, float *out) {
    static const jaxcc_rt_cuda_program p = {&library, body, "a x y out", "", 0, 3, 1, 0};
    void *words[5] = {(void *)a, (void *)x, (void *)y, out};
    return jaxcc_rt_cuda_run(&p, words, (int64_t[]){4, 256, 256, 256, 0});
}
#else
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static void *symbol(void *library, const char *name) {
    void *f = dlsym(library, name);
    if (!f) fprintf(stderr, "%s\n", dlerror());
    return f;
}
int main(int argc, char **argv) {
    float a = 2, x[64], y[64], out[64];
    int (*call)(const float *, const float *, const float *, float *), (*state)(int, unsigned *, int *);
    for (int i = 0; i < 64; i++) x[i] = (float)i, y[i] = 1;
    for (int turn = 0; turn < 2; turn++) {
        void *library = dlopen(argv[argc - 1], RTLD_NOW | RTLD_LOCAL);
        void *f = library ? symbol(library, "call") : NULL;
        if (!f) return 2;
        memcpy(&call, &f, sizeof f);
        int status = call(&a, x, y, out), active = 1;
        if (status || out[9] != 19) return printf("status %d, %g\n", status, out[9]), 3;
        dlclose(library);
        void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
        if (!driver || !(f = symbol(driver, "cuDevicePrimaryCtxGetState"))) return 4;
        memcpy(&state, &f, sizeof f);
        if (state(0, &(unsigned){0}, &active) || active) return printf("the context is still there\n"), 5;
    }
    return 0;
}
#endif
