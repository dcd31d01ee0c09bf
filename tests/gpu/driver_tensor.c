/* Tensor maps: what cp.async.bulk.tensor knows of an array. */
#include "driver.h"
#include <string.h>

/* CUtensorMapDataType, CUtensorMapSwizzle */
static const uint8_t element_bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
static const uint16_t swizzles[] = {0, 32, 64, 128};
#define N(array) (sizeof(array) / sizeof *(array))
enum { MOST_BOX = 256, ALIGN = 16 };

static bool axis(PtxTensorMap *m, uint32_t a, const uint64_t *extents, const uint64_t *strides, const uint32_t *box,
                 const uint32_t *steps) {
    m->extents[a] = extents[a], m->box[a] = (uint16_t)box[a];
    m->strides[a] = a ? strides[a - 1] : m->element_bytes;
    return extents[a] >= 1 && extents[a] <= (uint64_t)1 << 32 && box[a] >= 1 && box[a] <= MOST_BOX && steps[a] == 1 &&
           (a == 0 || (m->strides[a] % ALIGN == 0 && m->strides[a] < (uint64_t)1 << 40));
}
static CUresult encode(PtxTensorMap *m, int type, uint32_t rank, uint64_t address, const uint64_t *extents,
                       const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int swizzle) {
    if (type < 0 || (size_t)type >= N(element_bytes) || swizzle < 0 || (size_t)swizzle >= N(swizzles) || rank < 1 ||
        rank > PTX_MAP_RANK || address % ALIGN)
        return misused(CUDA_ERROR_INVALID_VALUE, "cuTensorMapEncodeTiled: type, rank, address or swizzle");
    *m = (PtxTensorMap){.address = address,
                        .valid = PTX_MAP_VALID,
                        .element_bytes = element_bytes[type],
                        .rank = (uint8_t)rank,
                        .swizzle = swizzles[swizzle]};
    for (uint32_t a = 0; a < rank; a++)
        if (!axis(m, a, extents, strides, box, steps))
            return misused(CUDA_ERROR_INVALID_VALUE, "cuTensorMapEncodeTiled: extent, stride or box of axis %u", a);
    uint32_t line = (uint32_t)m->box[0] * m->element_bytes;
    if (line % ALIGN || (m->swizzle && line > m->swizzle))
        return misused(CUDA_ERROR_INVALID_VALUE, "cuTensorMapEncodeTiled: rows of %u bytes", line);
    return 0;
}
API cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, void *address, const uint64_t *extents,
                           const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave,
                           int swizzle, int promotion, int fill) {
    PtxTensorMap m = {0};
    CUresult r = begin(__func__, STARTED);
    if (!r && (interleave || fill)) r = NOT_SUPPORTED;
    if (!r) r = encode(&m, type, rank, (uint64_t)(uintptr_t)address, extents, strides, box, steps, swizzle);
    if (!r) memset(map, 0, PTX_MAP_BYTES), memcpy(map, &m, sizeof m);
    return done(r);
}
