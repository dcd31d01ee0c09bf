/* Opens NVIDIA's driver, and says what its errors mean. */
#include "cuda_driver.h"
#include "rt.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

jaxcc_rt_cuda_driver jaxcc_rt_cuda;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic pid_t owner; /* the process that has opened it, or 0 */

/* ---- errors: a row for each that means something of its own; the last row is for the others */
static const jaxcc_rt_cuda_answer answers[] = {
    {CUDA_ERROR_OUT_OF_MEMORY, JAXCC_MEMORY, 0, NULL},
    {3, JAXCC_MISSING, 0, "CUDA is not usable in this process"}, /* NOT_INITIALIZED: also after fork */
    {4, JAXCC_MISSING, 0, "the process is ending"},              /* DEINITIALIZED */
    {34, JAXCC_MISSING, 0, "libcuda.so.1 is a stub"},            /* STUB_LIBRARY */
    {46, JAXCC_MISSING, 0, "another process has the GPU"},       /* DEVICE_UNAVAILABLE */
    {CUDA_ERROR_NO_DEVICE, JAXCC_MISSING, 0, "there is no NVIDIA GPU"},
    {101, JAXCC_MISSING, 0, NULL},                                 /* INVALID_DEVICE */
    {102, JAXCC_MISSING, 0, NULL},                                 /* DEVICE_NOT_LICENSED */
    {209, JAXCC_CPU, 0, "the library has no code for this GPU"},   /* NO_BINARY_FOR_GPU */
    {214, JAXCC_INTERNAL, 1, "uncorrectable error of its memory"}, /* ECC_UNCORRECTABLE */
    {CUDA_ERROR_INVALID_PTX, JAXCC_INTERNAL, 0, "the driver rejects the code"},
    {220, JAXCC_INTERNAL, 1, "uncorrectable error of NVLink"},                 /* NVLINK_UNCORRECTABLE */
    {221, JAXCC_MISSING, 0, "libnvidia-ptxjitcompiler.so.1 is not installed"}, /* JIT_COMPILER_NOT_FOUND */
    {CUDA_ERROR_UNSUPPORTED_PTX_VERSION, JAXCC_MISSING, 0, "a newer driver is needed"},
    {223, JAXCC_MISSING, 0, "CUDA_DISABLE_PTX_JIT is set"},                   /* JIT_COMPILATION_DISABLED */
    {226, JAXCC_INTERNAL, 1, NULL},                                           /* CONTAINED */
    {700, JAXCC_INTERNAL, 1, "an address outside of its memory"},             /* ILLEGAL_ADDRESS */
    {702, JAXCC_INTERNAL, 1, "it took too long"},                             /* LAUNCH_TIMEOUT */
    {709, JAXCC_INTERNAL, 1, "somebody has destroyed the primary context"},   /* CONTEXT_IS_DESTROYED */
    {710, JAXCC_INTERNAL, 1, NULL},                                           /* ASSERT */
    {714, JAXCC_INTERNAL, 1, NULL},                                           /* HARDWARE_STACK_ERROR */
    {715, JAXCC_INTERNAL, 1, NULL},                                           /* ILLEGAL_INSTRUCTION */
    {716, JAXCC_INTERNAL, 1, NULL},                                           /* MISALIGNED_ADDRESS */
    {717, JAXCC_INTERNAL, 1, NULL},                                           /* INVALID_ADDRESS_SPACE */
    {718, JAXCC_INTERNAL, 1, NULL},                                           /* INVALID_PC */
    {719, JAXCC_INTERNAL, 1, NULL},                                           /* LAUNCH_FAILED */
    {721, JAXCC_INTERNAL, 1, NULL},                                           /* TENSOR_MEMORY_LEAK */
    {802, JAXCC_MISSING, 0, "the system is not ready for CUDA"},              /* SYSTEM_NOT_READY */
    {803, JAXCC_MISSING, 0, "libcuda.so.1 does not fit the kernel's driver"}, /* SYSTEM_DRIVER_MISMATCH */
    {804, JAXCC_MISSING, 0, "libcuda.so.1 does not fit the kernel's driver"}, /* COMPAT_NOT_SUPPORTED_ON_DEVICE */
    {0, JAXCC_INTERNAL, 0, NULL},
};
const jaxcc_rt_cuda_answer *jaxcc_rt_cuda_answer_to(CUresult r) {
    const jaxcc_rt_cuda_answer *a = answers;
    while (a->error && a->error != r) a++;
    return a;
}
const char *jaxcc_rt_cuda_name_of(CUresult r) {
    const char *name = NULL;
    jaxcc_rt_cuda.cuGetErrorName(r, &name);
    return name ? name : "an unknown error";
}

int32_t jaxcc_rt_cuda_gpu_of(const void *p, int *ordinal) {
    CUresult r =
        jaxcc_rt_cuda.cuPointerGetAttribute(ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, (CUdeviceptr)(uintptr_t)p);
    if (r) *ordinal = -1;
    if (!r || r == CUDA_ERROR_INVALID_VALUE) return 0;
    return jaxcc_rt_fail(jaxcc_rt_cuda_answer_to(r)->status, "%s in cuPointerGetAttribute", jaxcc_rt_cuda_name_of(r));
}

/* ---- opening */
static const struct {
    const char *name;
    size_t at; /* in the driver's struct */
    jaxcc_rt_cuda_part part;
} functions[] = {
#define FUNCTION(name, part) {#name, offsetof(jaxcc_rt_cuda_driver, name), part},
#define CUDA(name, ...) FUNCTION(name, JAXCC_RT_CUDA_OF_ALL)
#define CUDA_MAPS(name, ...) FUNCTION(name, JAXCC_RT_CUDA_OF_MAPS)
#define CUDA_GRAPHS(name, ...) FUNCTION(name, JAXCC_RT_CUDA_OF_GRAPHS)
#define CUDA_LOOPS(name, ...) FUNCTION(name, JAXCC_RT_CUDA_OF_LOOPS)
#include "cuda_driver.def"
};
static unsigned missing; /* parts, a bit each */
int jaxcc_rt_cuda_has(jaxcc_rt_cuda_part part) { return !(missing >> part & 1); }
static int32_t find_functions(void *library) {
    missing = 0;
    for (unsigned i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *f = dlsym(library, functions[i].name);
        if (!f && functions[i].part == JAXCC_RT_CUDA_OF_ALL)
            return jaxcc_rt_fail(JAXCC_MISSING, "NVIDIA's driver is too old: libcuda.so.1 has no %s",
                                 functions[i].name);
        if (!f) missing |= 1U << functions[i].part;
        memcpy((char *)&jaxcc_rt_cuda + functions[i].at, &f, sizeof f);
    }
    return 0;
}
static int32_t start(void) {
    CUresult r = jaxcc_rt_cuda.cuInit(0);
    if (!r) return 0;
    const char *says = jaxcc_rt_cuda_answer_to(r)->says, *name = jaxcc_rt_cuda_name_of(r);
    return jaxcc_rt_fail(JAXCC_MISSING, "this program needs an NVIDIA GPU, but %s%s%s%s",
                         says ? says : "CUDA does not start: ", says ? " (" : "", name, says ? ")" : "");
}
static int32_t open_driver(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return jaxcc_rt_fail(JAXCC_MISSING, "this program needs an NVIDIA GPU and its driver: %s", dlerror());
    int32_t status = find_functions(library);
    if (!status) status = start();
    if (status) dlclose(library); /* else it stays until the process ends */
    return status;
}
int jaxcc_rt_cuda_is_open(void) { return owner == getpid(); }
int32_t jaxcc_rt_cuda_open(void) {
    pid_t who = owner;
    if (who && who != getpid())
        return jaxcc_rt_fail_text(JAXCC_MISSING, "CUDA is not usable in a child of a process that has used it: "
                                                 "fork before the first call, or start a program");
    if (who) return 0;
    pthread_mutex_lock(&lock);
    int32_t status = owner ? 0 : open_driver();
    if (!status) owner = getpid();
    pthread_mutex_unlock(&lock);
    return status;
}
