/* Tensor maps: what cp.async.bulk.tensor knows of an array. What NVIDIA's driver refuses is refused with its error;
   what it takes and the interpreter does not know is not supported. */
#include "driver.h"
#include <string.h>

/* CUtensorMapDataType, CUtensorMapSwizzle */
static const uint8_t element_bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
static const uint16_t swizzles[] = {0, 32, 64, 128};
#define N(array) (sizeof(array) / sizeof *(array))
enum { MOST_BOX = 256, MOST_STEP = 8, ALIGN = 16, MAP_ALIGN = 64, INTERLEAVES = 3, PROMOTIONS = 4, FILLS = 2 };

static bool axis(PtxTensorMap *m, uint32_t a, const uint64_t *extents, const uint64_t *strides, const uint32_t *box,
                 const uint32_t *steps) {
    m->extents[a] = extents[a], m->box[a] = (uint16_t)box[a];
    m->strides[a] = a ? strides[a - 1] : m->element_bytes;
    return extents[a] >= 1 && extents[a] <= (uint64_t)1 << 32 && box[a] >= 1 && box[a] <= MOST_BOX && steps[a] >= 1 &&
           steps[a] <= MOST_STEP && (a == 0 || (m->strides[a] % ALIGN == 0 && m->strides[a] < (uint64_t)1 << 40));
}
static CUresult encode(PtxTensorMap *m, int type, uint32_t rank, uint64_t address, const uint64_t *extents,
                       const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int swizzle) {
    if (type < 0 || (size_t)type >= N(element_bytes) || swizzle < 0 || (size_t)swizzle >= N(swizzles) || rank < 1 ||
        rank > PTX_MAP_RANK || address % ALIGN)
        return misused(CUDA_ERROR_INVALID_VALUE, "type, rank, address or swizzle");
    if (!extents || !box || !steps || (rank > 1 && !strides))
        return misused(CUDA_ERROR_INVALID_VALUE, "an array is missing");
    *m = (PtxTensorMap){.address = address,
                        .valid = PTX_MAP_VALID,
                        .element_bytes = element_bytes[type],
                        .rank = (uint8_t)rank,
                        .swizzle = swizzles[swizzle]};
    for (uint32_t a = 0; a < rank; a++)
        if (!axis(m, a, extents, strides, box, steps))
            return misused(CUDA_ERROR_INVALID_VALUE, "extent, stride or box of axis %u", a);
    for (uint32_t a = 0; a < rank; a++)
        if (steps[a] != 1) return NOT_SUPPORTED;
    uint32_t line = (uint32_t)m->box[0] * m->element_bytes;
    if (line % ALIGN || (m->swizzle && line > m->swizzle))
        return misused(CUDA_ERROR_INVALID_VALUE, "rows of %u bytes", line);
    return 0;
}
API cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, void *address, const uint64_t *extents,
                           const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave,
                           int swizzle, int promotion, int fill) {
    PtxTensorMap m = {0};
    CUresult r = begin(__func__, STARTED);
    if (!r && (!map || (uintptr_t)map % MAP_ALIGN || (unsigned)interleave >= INTERLEAVES ||
               (unsigned)promotion >= PROMOTIONS || (unsigned)fill >= FILLS))
        r = misused(CUDA_ERROR_INVALID_VALUE, "map, interleave, promotion or fill");
    if (!r && (interleave || fill)) r = NOT_SUPPORTED;
    if (!r) r = encode(&m, type, rank, (uint64_t)(uintptr_t)address, extents, strides, box, steps, swizzle);
    if (!r) memset(map, 0, PTX_MAP_BYTES), memcpy(map, &m, sizeof m);
    return done(r);
}
