/* The first GPU, as hosts open it: its primary context becomes the thread's. */
#ifndef GPU_OPEN_H
#define GPU_OPEN_H
#include "../../runtime/cuda_driver.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void *gpu_driver;
/* Calls a function of the driver. */
#define CU(name, ...)                                                                                                  \
    do {                                                                                                               \
        __typeof__(&name) f = (__typeof__(&name))dlsym(gpu_driver, #name);                                             \
        if (!f || f(__VA_ARGS__)) fprintf(stderr, "%s failed\n", #name), exit(1);                                      \
    } while (0)
#define CUDA(name, ...) CUresult name(__VA_ARGS__);
#include "../../runtime/cuda_driver.def"
#undef CUDA

static void gpu_open(void) {
    CUdevice device;
    CUcontext context;
    gpu_driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!gpu_driver) fprintf(stderr, "%s\n", dlerror()), exit(1);
    CU(cuInit, 0);
    CU(cuDeviceGet, &device, 0);
    CU(cuDevicePrimaryCtxRetain, &context, device);
    CU(cuCtxPushCurrent_v2, context);
}

#endif
