/* A call on a GPU, or what one device of a program for several does there: its memory and its stream. */
#ifndef JAXCC_CUDA_CALL_H
#define JAXCC_CUDA_CALL_H
#include "cuda_device.h"
#include <assert.h>

struct Late;
struct Members;
typedef struct Call {
    const jaxcc_rt_cuda_program *program;
    void **words;
    const int64_t *bytes;
    Device *device;
    Loaded *loaded;
    CUstream stream;
    Lane *lane;                       /* with device pointers NULL until something is copied */
    Block *blocks;                    /* taken for this call */
    CUdeviceptr outputs;              /* with host pointers: what is copied out at the end */
    struct Late *late;                /* outputs of computed sizes */
    const jaxcc_rt_cuda_kernel *last; /* launched */
    bool started;                     /* there may be work on the stream */
    bool good;                        /* of one device of several: its stream has come to its end */
    struct Call *whole;               /* the call that it is a part of; NULL: it is a call */
    _Atomic(struct Members *) failed; /* of a call: devices of inner programs, to be given back at the end */
} Call;

static inline Call *call_of(jaxcc_rt_heap *h) {
    Call *c = jaxcc_rt_cuda_of(h);
    assert(c);
    return c;
}
/* Ends the body if something has failed. */
static inline void must(jaxcc_rt_heap *h, int32_t status) {
    if (status) jaxcc_rt_heap_end(h, status);
}
static inline void *pointer(CUdeviceptr p) { return (void *)(uintptr_t)p; }
static inline CUdeviceptr address(const void *p) { return (CUdeviceptr)(uintptr_t)p; }
static inline Area area(void **pointers, const int64_t *bytes, int64_t n) {
    return (Area){pointers, bytes, sizeof *pointers, sizeof *bytes, n, 0, 0};
}

/* What one device of a program for several does. */
const Call *jaxcc_rt_cuda_member(const jaxcc_rt_comm *);
/* A lane, if the call has none. */
int32_t jaxcc_rt_cuda_take_lane(Call *);
int32_t jaxcc_rt_cuda_take_block(Call *, int64_t bytes, const char *hint, CUdeviceptr *);
/* The words of arrays that have bytes become addresses from *at on, which is moved to the end. */
void jaxcc_rt_cuda_place(void **words, const int64_t *bytes, int64_t n, CUdeviceptr *at);
/* Waits for the call's stream; a status. */
int32_t jaxcc_rt_cuda_wait(Call *);
/* Gives its memory and its lane back. idle: its stream has come to its end; good: it can be used again. */
void jaxcc_rt_cuda_give_back(Call *, bool idle, bool good);

#endif
