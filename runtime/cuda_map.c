/* Tensor maps: what a kernel knows of an array of which it copies boxes. */
#include "cuda_call.h"
#include <string.h>

enum { MOST_AXES = 5, MAP_BYTES = 128, MAP_ALIGN = 64, LONGEST_LINE = 128, SHORTEST_LINE = 32 };
static const int64_t most_stride = (int64_t)1 << 40;
/* CUtensorMapDataType: bits do not matter but their number; CUtensorMapSwizzle; CUtensorMapL2promotion */
enum { UINT8, UINT16, SWIZZLE_NONE = 0, PROMOTE_128 = 2 };

/* Pieces of 16 bytes of a line are exchanged. 1, 2, 3: of lines of 32, 64, 128 bytes. */
static int swizzle_of(int64_t line) {
    int swizzle = SWIZZLE_NONE;
    for (int64_t n = SHORTEST_LINE; n <= line && n <= LONGEST_LINE; n *= 2) swizzle++;
    return swizzle;
}
void jaxcc_rt_cuda_map(jaxcc_rt_heap *h, void *to, const void *array, const jaxcc_rt_cuda_axis *axes, int64_t rank,
                       int64_t bytes) {
    Call *c = call_of(h);
    _Alignas(MAP_ALIGN) uint64_t map[MAP_BYTES / 8] = {0};
    uint64_t extents[MOST_AXES], strides[MOST_AXES];
    uint32_t box[MOST_AXES], steps[MOST_AXES];
    bool empty = false, large = false;
    assert(rank >= 2 && rank <= MOST_AXES && bytes <= 2);
    if (!jaxcc_rt_cuda.cuTensorMapEncodeTiled)
        jaxcc_rt_stop(h, JAXCC_MISSING, "NVIDIA's driver is too old: libcuda.so.1 has no cuTensorMapEncodeTiled");
    for (int64_t i = 0; i < rank; i++) {
        extents[i] = (uint64_t)axes[i].extent, strides[i] = (uint64_t)axes[i].stride * (uint64_t)bytes;
        box[i] = (uint32_t)axes[i].box, steps[i] = 1;
        empty |= axes[i].extent <= 0;
        large |= axes[i].extent > INT32_MAX || axes[i].stride >= most_stride / bytes;
    }
    if (large && !empty) jaxcc_rt_stop(h, JAXCC_DIMENSION, "an operand of a product is too large for this GPU");
    if (!empty)
        must(h, CU(c->device, cuTensorMapEncodeTiled, map, bytes == 1 ? UINT8 : UINT16, (uint32_t)rank, (void *)array,
                   extents, strides + 1, box, steps, 0, swizzle_of(axes[0].box * bytes), PROMOTE_128, 0));
    memcpy(to, map, sizeof map);
}
