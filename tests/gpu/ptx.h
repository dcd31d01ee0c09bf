/* An interpreter of PTX: the subset that LLVM writes, run warp by warp and checked. One launch at a time; nothing here
   is thread-safe. */
#ifndef PTX_H
#define PTX_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct PtxModule PtxModule;
typedef struct PtxFunc PtxFunc;
typedef struct {
    uint32_t x, y, z;
} PtxDim3;
typedef struct {
    uint32_t registers16, registers32, registers64, predicates; /* as declared, before any allocation */
    uint32_t shared_bytes, local_bytes;      /* static shared memory of a block, local memory of a thread */
    PtxDim3 maxntid, reqntid;                /* 0: not given */
    uint32_t minnctapersm, maxnreg, cluster; /* cluster: blocks of one, 0: not given */
} PtxInfo;

PtxModule *ptx_load(const char *text, char *error,
                    size_t size); /* NULL: not understood; error says what and where (line) */
void ptx_unload(PtxModule *);
PtxFunc *ptx_function(PtxModule *, const char *name);              /* an entry; NULL: none of that name */
uint64_t ptx_global(PtxModule *, const char *name, size_t *bytes); /* device address of a module variable, 0: none */
uint32_t ptx_param_count(const PtxFunc *);
size_t ptx_param_size(const PtxFunc *, uint32_t i);
void ptx_func_info(const PtxFunc *, PtxInfo *);
/* Runs all blocks. params: a pointer to each argument; shared: bytes of dynamic shared memory. False after a fault. */
bool ptx_launch(PtxFunc *, PtxDim3 grid, PtxDim3 block, uint32_t shared, const void *const *params);
const char *ptx_fault(void); /* what, PTX line, function, block, thread of the last fault */

/* Device memory. A device address is a host address plus 2^52: the host faults on it. */
#define PTX_DEVICE_BIAS ((uint64_t)1 << 52)
extern int ptx_device;            /* where memory is allocated and kernels run, which may not touch that of others */
uint64_t ptx_alloc(size_t bytes); /* 0: no memory; its bytes are 0xA5 and count as never written */
bool ptx_free(uint64_t device);
void *ptx_host(uint64_t device, size_t bytes);               /* NULL: not all of it is allocated memory */
bool ptx_written(uint64_t device, size_t bytes);             /* false: a byte of it was never written */
size_t ptx_run(uint64_t device, size_t bytes, bool written); /* how many from there on are written, or are not */
void ptx_mark_written(uint64_t device, size_t bytes);        /* by copies of the driver */

/* A tensor map, which the driver writes and cp.async.bulk.tensor reads. Innermost axis first; strides in bytes. */
enum { PTX_MAP_BYTES = 128, PTX_MAP_RANK = 5, PTX_MAP_VALID = 0x70616d };
typedef struct {
    uint64_t address, extents[PTX_MAP_RANK], strides[PTX_MAP_RANK];
    uint32_t valid;
    uint16_t box[PTX_MAP_RANK], swizzle; /* swizzle: bytes of a row, 0, 32, 64, 128 */
    uint8_t element_bytes, rank;
} PtxTensorMap;
_Static_assert(sizeof(PtxTensorMap) <= PTX_MAP_BYTES, "as large as the driver's");

typedef struct {
    int races;          /* looked for in: 1 shared memory, 2 global memory, 3 both */
    int order;          /* of blocks and warps: 0 forward, 1 backward, else a seed */
    bool host;          /* host memory is device memory, unchecked */
    bool uninitialised; /* reads of memory that was never written are faults */
    uint64_t most;      /* warp instructions of a launch, 0: no limit */
} PtxOptions;
extern PtxOptions ptx_options;

typedef struct {
    uint64_t launches, warp_instructions, lane_instructions;
    uint64_t global_read,
        global_written;        /* bytes: each once a launch if global races are looked for, else per access */
    uint64_t shared_conflicts; /* accesses beyond one, counted if shared races are looked for */
    uint64_t divergent_branches;
} PtxCounts;
extern PtxCounts ptx_counts;

/* What a kernel's cudaGraphSetConditional calls; NULL: nothing happens. */
extern void (*ptx_set_conditional)(uint64_t handle, uint32_t value);
void ptx_opcodes(const PtxModule *, void (*seen)(void *, const char *name, uint32_t uses), void *);
#endif
