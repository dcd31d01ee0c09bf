/* gpu_pointers: calls axpy, compiled with --device-pointers, four times on a stream of its own with arrays of the GPU;
   an array that is not aligned is refused. Then several, a program for four devices, each of which gives the sum of
   what the others have. */
#include "gpu/open.h"
#include "axpy.h"
#include "several.h"

enum { N = 1000, DEVICES = 4, PART = N / DEVICES };

static CUdeviceptr array(CUstream stream, const float *from, size_t n) {
    CUdeviceptr p;
    CU(cuMemAlloc_v2, &p, n * sizeof *from);
    if (from) CU(cuMemcpyHtoDAsync_v2, p, from, n * sizeof *from, stream);
    return p;
}
static float *pointer(CUdeviceptr p) { return (float *)(uintptr_t)p; }

int main(void) {
    float a = 2, x[N], y[N], out[N];
    CUstream stream;
    for (int i = 0; i < N; i++) x[i] = (float)i, y[i] = 1;
    gpu_open();
    CU(cuStreamCreate, &stream, 0);
    CUdeviceptr p[] = {array(stream, &a, 1), array(stream, x, N), array(stream, y, N), array(stream, NULL, N)};
    axpy_stream(stream);
    for (int call = 0; call < 4; call++) {
        CU(cuMemsetD8Async, p[3], 0xFF, sizeof out, stream);
        if (axpy(pointer(p[0]), pointer(p[1]), pointer(p[2]), pointer(p[3])) != JAXCC_OK)
            return fprintf(stderr, "%s\n", axpy_error()), 1;
        CU(cuMemcpyDtoHAsync_v2, out, p[3], sizeof out, stream);
        CU(cuStreamSynchronize, stream);
        for (int i = 0; i < N; i++)
            if (out[i] != 2 * x[i] + 1) return fprintf(stderr, "out[%d] is %g\n", i, out[i]), 1;
    }
    if (axpy(pointer(p[0]), pointer(p[1]) + 1, pointer(p[2]), pointer(p[3])) != JAXCC_ARGUMENT)
        return fprintf(stderr, "an array that is not aligned is taken\n"), 1;
    several_stream(stream);
    for (int i = 0; i < 3; i++)
        if (several(pointer(p[1]), pointer(p[3])) != JAXCC_OK) return fprintf(stderr, "%s\n", several_error()), 1;
    CU(cuMemcpyDtoHAsync_v2, out, p[3], sizeof out, stream);
    CU(cuStreamSynchronize, stream);
    for (int i = 0; i < N; i++) {
        float sum = -x[i];
        for (int d = 0; d < DEVICES; d++) sum += x[d * PART + i % PART];
        if (out[i] != sum) return fprintf(stderr, "out[%d] of several is %g\n", i, out[i]), 1;
    }
    for (int i = 0; i < 4; i++) CU(cuMemFree_v2, p[i]);
    CU(cuStreamDestroy_v2, stream);
    return 0;
}
