/* NVIDIA's driver as the runtime uses it: types and numbers of its interface, and its functions, found at first use. */
#ifndef JAXCC_CUDA_DRIVER_H
#define JAXCC_CUDA_DRIVER_H
#include <stddef.h>
#include <stdint.h>

typedef int CUresult, CUdevice;
typedef uint64_t CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUgraphNode_st *CUgraphNode;

enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_INVALID_PTX = 218,
    CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
    CUDA_ERROR_NOT_READY = 600,
    CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
    CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
    CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906
};
enum {
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
    CU_JIT_ERROR_LOG_BUFFER = 5,
    CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
    CU_STREAM_NON_BLOCKING = 1,
    CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
    CU_STREAM_CAPTURE_MODE_RELAXED = 2,
    CU_STREAM_CAPTURE_STATUS_ACTIVE = 1,
    CU_STREAM_SET_CAPTURE_DEPENDENCIES = 1,
    CU_GRAPH_COND_ASSIGN_DEFAULT = 1,
    CU_GRAPH_COND_TYPE_WHILE = 1,
    CU_GRAPH_NODE_TYPE_CONDITIONAL = 13,
    CU_EVENT_DISABLE_TIMING = 2
};

/* CUgraphNodeParams of a node with a condition */
typedef struct {
    int32_t type, reserved[3];
    uint64_t condition;
    int32_t kind;
    uint32_t n_bodies;
    CUgraph *bodies; /* the driver's */
    CUcontext context;
    int64_t rest[26]; /* 0 */
} jaxcc_rt_cuda_node;
_Static_assert(sizeof(jaxcc_rt_cuda_node) == 256, "CUgraphNodeParams has 256 bytes");

typedef struct {
#define CUDA(name, ...) CUresult (*name)(__VA_ARGS__);
#include "cuda_driver.def"
} jaxcc_rt_cuda_driver;
extern jaxcc_rt_cuda_driver jaxcc_rt_cuda;

/* Opens the driver if nobody has; a status. */
int32_t jaxcc_rt_cuda_open(void);
/* Has the driver that was opened all functions of cuda_driver.def that are for this? */
typedef enum {
    JAXCC_RT_CUDA_OF_ALL,
    JAXCC_RT_CUDA_OF_MAPS,
    JAXCC_RT_CUDA_OF_GRAPHS,
    JAXCC_RT_CUDA_OF_LOOPS
} jaxcc_rt_cuda_part;
int jaxcc_rt_cuda_has(jaxcc_rt_cuda_part);
/* Can the driver be called, which a child cannot do whose parent has used it? */
int jaxcc_rt_cuda_is_open(void);

/* The number of the GPU whose memory this is, -1 if it is not memory of one; a status. */
int32_t jaxcc_rt_cuda_gpu_of(const void *, int *ordinal);

/* How a failure of the driver is answered. */
typedef struct {
    CUresult error;
    int32_t status;
    int32_t sticky;   /* every later call fails too */
    const char *says; /* what that means to the user, or NULL */
} jaxcc_rt_cuda_answer;
const jaxcc_rt_cuda_answer *jaxcc_rt_cuda_answer_to(CUresult);
/* "CUDA_ERROR_OUT_OF_MEMORY" */
const char *jaxcc_rt_cuda_name_of(CUresult);

#endif
