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
    Lane *lane;                          /* with device pointers NULL until something is copied */
    Block *blocks;                       /* taken for this call */
    CUdeviceptr outputs;                 /* with host pointers: what is copied out at the end */
    struct Late *late;                   /* outputs of computed sizes */
    const jaxcc_rt_cuda_kernel *last;    /* launched */
    int64_t noted;                       /* bytes of notes */
    int open, recorded;                  /* loops that are being noted, and recorded; 0: work is enqueued */
    int64_t loops[JAXCC_RT_CUDA_NESTED]; /* their notes: where they begin */
    bool recording;                      /* as a graph */
    bool started;                        /* there may be work on the stream */
    bool good;                           /* of one device of several: its stream has come to its end */
    struct Call *whole;                  /* the call that it is a part of; NULL: it is a call */
    uint64_t cliques;                    /* of cuda_nccl.c, that it has used */
    int32_t (*patience)(struct Call *);  /* waits for its stream, which may not come to its end by itself; or NULL */
    bool without_nccl;                   /* a whole call: GPUs copy */
    bool without_solver;                 /* the host computes */
    bool without_loops;                  /* the host enqueues their turns */
    _Atomic(struct Members *) failed;    /* of a call: devices of inner programs, to be given back at the end */
} Call;

/* Starts of a library that may fail, for lack of memory or of something else that may be there later, and that take
   time. */
typedef struct {
    int failed;  /* one after the other */
    int without; /* calls that do not try before the next one does */
} Tries;
static inline bool try_now(Tries *t) {
    if (!t->without) return true;
    t->without--;
    return false;
}
/* The next call tries; if it fails too, twice as many as before do without. */
static inline void tried(Tries *t, bool good) {
    enum { MOST_DOUBLED = 10 };
    t->without = good ? 0 : (1 << t->failed) - 1;
    t->failed = good ? 0 : t->failed < MOST_DOUBLED ? t->failed + 1 : MOST_DOUBLED;
}

static inline Call *call_of(jaxcc_rt_heap *h) {
    Call *c = jaxcc_rt_cuda_of(h);
    assert(c);
    return c;
}
/* Ends the body if something has failed. */
static inline void must(jaxcc_rt_heap *h, int32_t status) {
    if (status) jaxcc_rt_heap_end(h, status);
}
/* NOLINTNEXTLINE(performance-no-int-to-ptr): the driver gives addresses as integers */
static inline void *pointer(CUdeviceptr p) { return (void *)(uintptr_t)p; }
static inline CUdeviceptr address(const void *p) { return (CUdeviceptr)(uintptr_t)p; }
static inline Area area(void **pointers, const int64_t *bytes, int64_t n) {
    return (Area){pointers, bytes, sizeof *pointers, sizeof *bytes, n, 0, 0};
}

/* What one device of a program for several does. */
Call *jaxcc_rt_cuda_member(const jaxcc_rt_comm *);
/* What the body does to the device (cuda_task.c). `bytes`: of what is behind it, a kernel's parameter, a turn. */
typedef struct {
    enum { TASK_LAUNCH, TASK_COPY, TASK_FILL, TASK_LOOP } kind;
    int32_t unused; /* 0: notes are compared byte by byte */
    int64_t bytes;
    const jaxcc_rt_cuda_kernel *kernel;
    CUfunction function;
    int64_t x, y, z, threads, shared;
    CUdeviceptr to, from; /* from: also the address of a loop's predicate */
    int64_t n, value, width;
} Task;
/* From now on tasks are noted: those of a turn of a loop. */
void jaxcc_rt_cuda_note_loop(jaxcc_rt_heap *, const void *predicate);
/* The turn ends. The loop with its notes, which stay until there are others, and their bytes in all; NULL: it is in the
   turn of another one. */
const Task *jaxcc_rt_cuda_noted(Call *, int64_t *bytes);
/* Does on the stream what is noted of the turn. */
int32_t jaxcc_rt_cuda_do_turn(Call *, const Task *loop, CUstream);
/* Records the loop on the stream. */
int32_t jaxcc_rt_cuda_record_loop(Call *, const Task *loop, const void *, CUstream);
/* Can loops be recorded on the call's device (cuda_loop.c)? */
bool jaxcc_rt_cuda_loops_ready(Call *);

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
