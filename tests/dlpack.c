/* dlpack: calls tensors_dlpack, which is right, and with each thing that can be wrong. With -DGPU the arrays are memory
   of the GPU. */
#include "tensors.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef GPU
#include "gpu/open.h"
static void begin(void) { gpu_open(); }
static char *array(size_t n) {
    CUdeviceptr p;
    CU(cuMemAlloc_v2, &p, n);
    return (char *)(uintptr_t)p;
}
static void put(void *to, const void *from, size_t n) {
    CU(cuMemcpyHtoDAsync_v2, (CUdeviceptr)(uintptr_t)to, from, n, NULL);
}
static void get(void *to, const void *from, size_t n) {
    CU(cuMemcpyDtoHAsync_v2, to, (CUdeviceptr)(uintptr_t)from, n, NULL);
    CU(cuStreamSynchronize, NULL);
}
static void drop(void *p) { CU(cuMemFree_v2, (CUdeviceptr)(uintptr_t)p); }
enum { HERE = kDLCUDA, ALSO = kDLCUDAManaged, ELSEWHERE = kDLCPU };
#define WHERE "has device type 1 (kDLCPU), but must have 2 (kDLCUDA)"
#define ALIGNED "is not aligned to 16 bytes"
#else
static void begin(void) {}
static char *array(size_t n) { return calloc(n, 1); }
static void put(void *to, const void *from, size_t n) { memcpy(to, from, n); }
static void get(void *to, const void *from, size_t n) { memcpy(to, from, n); }
static void drop(void *p) { free(p); }
enum { HERE = kDLCPU, ALSO = kDLCUDAHost, ELSEWHERE = kDLCUDA };
#define WHERE "has device type 2 (kDLCUDA), but must have 1 (kDLCPU)"
#define ALIGNED "is not aligned to 4 bytes"
#endif

/* The arguments, of which b is 3. */
enum { X, M, H, E, Z, K, I, OUT_X, OUT_M, N, N_IN = OUT_X, B = 3, BEFORE = 32, ROOM = 256, MOST_RANK = 2 };
typedef struct {
    DLTensor t;
    int64_t shape[MOST_RANK], strides[MOST_RANK];
} Tensor;
static const struct {
    DLDataType dtype;
    int32_t ndim;
    int64_t shape[MOST_RANK];
} types[N] = {[X] = {{kDLFloat, 32, 1}, 2, {B, 4}},   [M] = {{kDLBool, 8, 1}, 1, {B + 1}},
              [H] = {{kDLBfloat, 16, 1}, 1, {2 * B}}, [E] = {{kDLFloat8_e4m3fn, 8, 1}, 1, {3}},
              [Z] = {{kDLComplex, 64, 1}, 0, {0}},    [K] = {{kDLUInt, 32, 1}, 2, {1, 2}},
              [I] = {{kDLInt, 8, 1}, 1, {5}},         [OUT_X] = {{kDLFloat, 32, 1}, 2, {B, 4}},
              [OUT_M] = {{kDLBool, 8, 1}, 1, {B + 1}}};
static char *memory[N];

static void fill(Tensor *a, int k) {
    *a =
        (Tensor){{memory[k], {(DLDeviceType)HERE, 0}, types[k].ndim, types[k].dtype, a->shape, NULL, BEFORE}, {0}, {0}};
    memcpy(a->shape, types[k].shape, sizeof a->shape);
    a->strides[0] = a->t.ndim == 2 ? a->shape[1] : 1;
    a->strides[1] = 1;
}
static int32_t call(Tensor *a) {
    DLTensor *in[N_IN], *out[N - N_IN];
    for (int k = 0; k < N; k++) *(k < N_IN ? in + k : out + k - N_IN) = a[k].t.ndim < 0 ? NULL : &a[k].t;
    return tensors_dlpack(in, out);
}

/* One change of one argument, and what the call says; NULL: it is right. */
typedef struct {
    int k;
    size_t at, size;
    int64_t value;
    int32_t status;
    const char *says;
} Change;
#define FIELD(field) offsetof(Tensor, field), sizeof(((Tensor *)NULL)->field)
static const Change changes[] = {
    {X, FIELD(t.device.device_type), HERE, 0, NULL},
    {X, FIELD(t.device.device_type), ALSO, 0, NULL},
    {X, FIELD(t.device.device_type), ELSEWHERE, JAXCC_ARGUMENT, "input 'x' " WHERE},
    {OUT_M, FIELD(t.device.device_type), ELSEWHERE, JAXCC_ARGUMENT, "output 'out1' " WHERE},
    {X, FIELD(t.device.device_type), kDLMetal, JAXCC_ARGUMENT, "has device type 8 (kDLMetal)"},
    {X, FIELD(t.device.device_type), 99, JAXCC_ARGUMENT, "has device type 99 (another)"},
    {X, FIELD(t.dtype.code), kDLInt, JAXCC_ARGUMENT, "input 'x' has elements of type int32, but must have float32"},
    {X, FIELD(t.dtype.code), 77, JAXCC_ARGUMENT, "has elements of type code 77"},
    {X, FIELD(t.dtype.bits), 64, JAXCC_ARGUMENT, "input 'x' has elements of type float64, but must have float32"},
    {X, FIELD(t.dtype.lanes), 4, JAXCC_ARGUMENT, "input 'x' has elements of type float32x4, but must have float32"},
    {X, FIELD(t.dtype.lanes), 0, JAXCC_ARGUMENT, "input 'x' has elements of type float32x0, but must have float32"},
    {M, FIELD(t.dtype.code), kDLUInt, JAXCC_ARGUMENT, "input 'm' has elements of type uint8, but must have bool"},
    {M, FIELD(t.dtype.bits), 1, JAXCC_ARGUMENT, "input 'm' has elements of type bool1, but must have bool"},
    {H, FIELD(t.dtype.code), kDLFloat, JAXCC_ARGUMENT,
     "input 'h' has elements of type float16, but must have bfloat16"},
    {E, FIELD(t.dtype.code), kDLFloat8_e4m3, JAXCC_ARGUMENT, "float8_e4m3, but must have float8_e4m3fn"},
    {Z, FIELD(t.dtype.bits), 128, JAXCC_ARGUMENT, "input 'z' has elements of type complex128, but must have complex64"},
    {I, FIELD(t.dtype.bits), 4, JAXCC_ARGUMENT, "input 'i' has elements of type int4, but must have int8"},
    {X, FIELD(t.ndim), 1, JAXCC_ARGUMENT, "input 'x' has 1 dimension, but must have 2"},
    {Z, FIELD(t.ndim), 1, JAXCC_ARGUMENT, "input 'z' has 1 dimension, but must have 0"},
    {K, FIELD(t.ndim), 1, JAXCC_ARGUMENT, "input 'k' has 1 dimension, but must have 2"},
    {OUT_X, FIELD(t.ndim), 0, JAXCC_ARGUMENT, "output 'out0' has 0 dimensions, but must have 2"},
    {H, FIELD(t.ndim), -1, JAXCC_ARGUMENT, "input 'h' is NULL"},
    {X, FIELD(t.shape), 0, JAXCC_ARGUMENT, "input 'x' has no shape"},
    {Z, FIELD(t.shape), 0, 0, NULL},
    {K, FIELD(shape[1]), 3, JAXCC_ARGUMENT, "input 'k' has 3 words for each key<fry>, but must have 2"},
    {X, FIELD(shape[1]), 5, JAXCC_DIMENSION, "input 'x' is float32[3,5], but extent 1 must be 4"},
    {X, FIELD(shape[0]), 4, JAXCC_DIMENSION, "input 'm' is bool[4], but extent 0, 'b + 1', is 5, where b = 4"},
    {H, FIELD(shape[0]), 7, JAXCC_DIMENSION, "input 'h' is bfloat16[7], but extent 0, '2*b', is 6, where b = 3"},
    {OUT_X, FIELD(shape[0]), 2, JAXCC_DIMENSION, "output 'out0' is float32[2,4], but extent 0, 'b', is 3"},
    {OUT_X, FIELD(shape[1]), -4, JAXCC_DIMENSION, "output 'out0' is float32[3,-4], but extent 1 must be 4"},
    {X, FIELD(strides[0]), 8, JAXCC_ARGUMENT,
     "'x' is not dense in row-major order: its stride along axis 0 is 8, not 4"},
    {X, FIELD(strides[1]), 3, JAXCC_ARGUMENT,
     "'x' is not dense in row-major order: its stride along axis 1 is 3, not 1"},
    {OUT_M, FIELD(strides[0]), -1, JAXCC_ARGUMENT,
     "'out1' is not dense in row-major order: its stride along axis 0 is -1"},
    {K, FIELD(strides[0]), 9, 0, NULL}, /* its extent is 1 */
    {X, FIELD(t.byte_offset), BEFORE + 2, JAXCC_ARGUMENT, "input 'x' " ALIGNED},
    {OUT_X, FIELD(t.byte_offset), BEFORE - 1, JAXCC_ARGUMENT, "output 'out0' " ALIGNED},
    {X, FIELD(t.data), 0, JAXCC_ARGUMENT, "input 'x' has no data"},
#ifdef GPU
    {X, FIELD(t.device.device_id), 1, JAXCC_ARGUMENT, "input 'x' has device id 1, but is memory of GPU 0"},
    {X, FIELD(t.data), 4096, JAXCC_ARGUMENT, "input 'x' is not memory of a GPU"},
#endif
};
static int changed(const Change *c) {
    Tensor a[N];
    for (int k = 0; k < N; k++) fill(&a[k], k);
    bool strides = c->at >= offsetof(Tensor, strides);
    if (strides) a[c->k].t.strides = a[c->k].strides;
    if (strides && call(a)) return fprintf(stderr, "dense strides: %s\n", tensors_error()), 1;
    memcpy((char *)&a[c->k] + c->at, &c->value, c->size);
    int32_t status = call(a);
    if (status == c->status && (!status || strstr(tensors_error(), c->says))) return 0;
    fprintf(stderr, "%s: status %d, %s\n", c->says ? c->says : "right", status, status ? tensors_error() : "nothing");
    return 1;
}

/* Results, of tensors that begin behind their data; then of none. */
static int results(void) {
    Tensor a[N];
    float x[B * 4], out_x[B * 4];
    uint8_t m[B + 1] = {1, 0, 0, 1}, out_m[B + 1];
    for (int k = 0; k < N; k++) fill(&a[k], k);
    for (int i = 0; i < B * 4; i++) x[i] = (float)i;
    put(memory[X] + BEFORE, x, sizeof x);
    put(memory[M] + BEFORE, m, sizeof m);
    if (call(a)) return fprintf(stderr, "%s\n", tensors_error()), 1;
    get(out_x, memory[OUT_X] + BEFORE, sizeof out_x);
    get(out_m, memory[OUT_M] + BEFORE, sizeof out_m);
    for (int i = 0; i < B * 4; i++)
        if (out_x[i] != -x[i]) return fprintf(stderr, "out0[%d] is %g\n", i, out_x[i]), 1;
    for (int i = 0; i < B + 1; i++)
        if (out_m[i] != !m[i]) return fprintf(stderr, "out1[%d] is %d\n", i, out_m[i]), 1;
    const int empty[] = {X, H, OUT_X};
    for (int i = 0; i < 3; i++) a[empty[i]].shape[0] = 0, a[empty[i]].t.data = NULL;
    a[M].shape[0] = a[OUT_M].shape[0] = 1;
    if (call(a)) return fprintf(stderr, "empty: %s\n", tensors_error()), 1;
    if (tensors_dlpack(NULL, NULL) != JAXCC_ARGUMENT) return fprintf(stderr, "NULL is taken\n"), 1;
    return 0;
}

int main(void) {
    begin();
    char zeros[ROOM] = {0};
    for (int k = 0; k < N; k++) {
        memory[k] = array(ROOM);
        put(memory[k], zeros, ROOM);
    }
    int wrong = results();
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) wrong += changed(&changes[i]);
    for (int k = 0; k < N; k++) drop(memory[k]);
    return wrong > 0;
}
