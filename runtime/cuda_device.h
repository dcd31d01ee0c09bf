/* The GPUs that the library uses, and what it keeps on each of them between calls. All functions but
   jaxcc_rt_cuda_device are called with the device's context pushed; those that return an int32_t return a status, with
   the text set. */
#ifndef JAXCC_CUDA_DEVICE_H
#define JAXCC_CUDA_DEVICE_H
#include "cuda.h"
#include "cuda_driver.h"
#include <pthread.h>
#include <stdbool.h>

/* Memory of the device. `done`: recorded when the block was given back; until then the stream may still use it. */
typedef struct Block {
    struct Block *next;
    CUdeviceptr at;
    int64_t bytes;
    CUstream stream;
    CUevent done;
    bool pending;
} Block;
/* What one call at a time uses: a stream; two pinned blocks of the host, which large arrays pass through in turn; room
   for the pointers of its outputs; an event that other streams wait for, NULL until it is needed. `busy`: until `done`
   the device may still use the block. */
typedef struct {
    char *at;
    int64_t bytes;
    CUevent done;
    bool busy;
} Half;
typedef struct Lane {
    struct Lane *next;
    CUstream stream;
    Half half[2];
    CUevent mark;
    CUstream inner[JAXCC_RT_CUDA_NESTED]; /* where turns of loops are recorded; NULL until they are needed */
    char *notes;                          /* of such a turn (cuda_task.c) */
    int64_t notes_room;
    void **outputs;
    int64_t n_outputs;
    void *solver; /* of cuda_solver.c; NULL until it is needed */
    void (*solver_end)(void *);
} Lane;
/* The library's code and constants on one device. */
typedef struct Loaded {
    struct Loaded *next;    /* of the library */
    struct Loaded *next_on; /* of the device */
    struct Device *device;
    jaxcc_rt_cuda_library *library;
    CUmodule module;
    CUdeviceptr memory, *constants;
    CUfunction *functions;
} Loaded;
/* What calls with these words enqueue, or a loop with this turn. */
typedef struct Graph {
    struct Graph *next;
    void (*body)(void *words, jaxcc_rt_heap *); /* of the program */
    CUgraphExec run;                            /* NULL: it has not been recorded */
    int failed;                                 /* attempts to do so */
    Block *workspace;                           /* that it uses, or NULL */
    const jaxcc_rt_cuda_kernel *last;           /* that it launches, or NULL */
    size_t bytes;                               /* of the words: dimensions, inputs and outputs; notes of the turn */
    void *words[];
} Graph;
typedef struct {
    Graph *first;
    int64_t n, most; /* with those that are not recorded yet */
} Graphs;
typedef struct Device {
    int ordinal, sm, most_shared; /* sm: 10 * major + minor */
    CUdevice number;
    char name[64];
    CUcontext context;
    pthread_mutex_t lock, loading; /* lock: of what follows */
    Block *blocks, *unfreed;       /* unfreed: to be freed when nobody captures a stream */
    Lane *lanes;
    Graphs calls, loops;
    int64_t n_blocks, n_lanes;
    int64_t n_taken, most_taken; /* blocks in use, now and at most so far */
    Loaded *loaded;
    CUmodule conditions; /* sets the conditions of loops; NULL until one is recorded */
    CUfunction set_condition;
    _Atomic int loops_failed; /* to be recorded: after some no more are tried */
    _Atomic uint64_t peers;   /* those whose memory it has asked to reach, a bit each */
    _Atomic bool failed;      /* for good: why says how */
    char why[256];
} Device;

enum { JAXCC_RT_CUDA_ALIGN = 256, JAXCC_RT_CUDA_DEFAULT = -1 };

/* The device of that number, ready for calls; JAXCC_RT_CUDA_DEFAULT: the one that the environment chooses. */
int32_t jaxcc_rt_cuda_device(int64_t ordinal, Device **);
int32_t jaxcc_rt_cuda_count(int *); /* how many there are */
/* The device, which is current, copies from and to the other one directly if the machine can; else the driver goes
   through the host's memory. */
void jaxcc_rt_cuda_reach(Device *, const Device *other);
/* While one is in progress on any thread, the end of the process leaves everything as it is. In between the thread may
   do what might wait while others capture streams. */
int32_t jaxcc_rt_cuda_enter(Device *);
void jaxcc_rt_cuda_leave(void);
bool jaxcc_rt_cuda_in_call(void); /* this thread, before it entered the last time */
/* From a device that stays the thread's own to another one, and back. */
int32_t jaxcc_rt_cuda_visit(Device *);
void jaxcc_rt_cuda_back(void);
bool jaxcc_rt_cuda_idle(void); /* none is, and the driver works */
/* Is called at the end of the process, or when the library is unloaded, before the devices end. */
bool jaxcc_rt_cuda_at_end(void (*)(void *));

/* 0 if r is. Else the thread's text says what failed: the function, on this device. */
int32_t jaxcc_rt_cuda_failed(Device *, CUresult r, const char *function);
#define CU(device, function, ...) jaxcc_rt_cuda_failed(device, jaxcc_rt_cuda.function(__VA_ARGS__), #function)
/* For messages: a launch by this thread; it has waited for the launches. */
void jaxcc_rt_cuda_launched(const jaxcc_rt_cuda_kernel *);
void jaxcc_rt_cuda_waited(void);

/* ---- memory (cuda_memory.c) */
/* At least so many bytes for work on the stream. hint: as in jaxcc_rt_cuda_program. */
int32_t jaxcc_rt_cuda_block_take(Device *, int64_t bytes, CUstream, const char *hint, Block **);
/* idle: the device has finished all work with it; else that on the stream may be in progress. */
void jaxcc_rt_cuda_block_give(Device *, Block *, CUstream, bool idle);
/* The first half of that, for a block that is kept, and the second. */
void jaxcc_rt_cuda_block_used(Block *, CUstream, bool idle);
void jaxcc_rt_cuda_block_put(Device *, Block *);
/* Memory outside the free list. */
int32_t jaxcc_rt_cuda_alloc(Device *, int64_t bytes, const char *hint, CUdeviceptr *);
/* Frees it, as soon as that is possible: work of any stream may use it, for which the driver waits. */
void jaxcc_rt_cuda_free(Device *, CUdeviceptr);
/* What was not possible. */
void jaxcc_rt_cuda_free_unfreed(Device *);
int32_t jaxcc_rt_cuda_lane_take(Device *, Lane **);
/* Copies the pointers to the lane. */
/* Makes the streams where turns of loops are recorded. */
int32_t jaxcc_rt_cuda_lane_inner(Device *, Lane *);
/* Room for so many bytes of notes, with those that are there. */
int32_t jaxcc_rt_cuda_lane_notes(Lane *, int64_t bytes);
int32_t jaxcc_rt_cuda_lane_keep(Lane *, void *const *outputs, int64_t n);
/* Marks how far the stream has come. */
int32_t jaxcc_rt_cuda_lane_mark(Device *, Lane *, CUstream);
/* good: its stream has come to its end. */
void jaxcc_rt_cuda_lane_give(Device *, Lane *, bool good);
/* Frees what the device keeps for later; the blocks with the graphs, which have some of them. */
void jaxcc_rt_cuda_release_blocks(Device *);
void jaxcc_rt_cuda_release_lanes(Device *);

/* Arrays of the host that lie one after the other on the device, each aligned to JAXCC_RT_CUDA_ALIGN: pointers and
   sizes are found in steps of so many bytes. A negative size counts as 0. */
typedef struct {
    const void *pointers, *sizes;
    int64_t pointer_step, size_step, n;
    int64_t k, at; /* the next byte: of which array, at which offset */
} Area;
int64_t jaxcc_rt_cuda_area_bytes(Area); /* INT64_MAX if that is too many */
/* The next array's pointer on the device, of an area that begins at *at, which is moved to its end. */
CUdeviceptr jaxcc_rt_cuda_area_next(Area *, CUdeviceptr *at);
/* Copies: to the device, which is enqueued; from it, which waits for its end and so for all of the stream. */
int32_t jaxcc_rt_cuda_copy_in(Device *, Lane *, CUstream, Area, CUdeviceptr to);
int32_t jaxcc_rt_cuda_copy_out(Device *, Lane *, CUstream, Area, CUdeviceptr from);

/* ---- graphs (cuda_graph.c) */
/* That of a call with these words, to be recorded if `run` is NULL. NULL: it is the first such call, another one has
   it, or what calls with these words do cannot be recorded; `at_once`: also the first one gets it, if there is room for
   more. */
Graph *jaxcc_rt_cuda_graph_take(Device *, Graphs *, const jaxcc_rt_cuda_program *, const void *words, size_t bytes,
                                bool at_once);
int32_t jaxcc_rt_cuda_graph_launch(Device *, Graph *, CUstream);
/* Back for the next call, or not to be used again. */
void jaxcc_rt_cuda_graph_give(Device *, Graphs *, Graph *);
void jaxcc_rt_cuda_graph_drop(Device *, Graph *);
/* Back after an attempt to record it, so that there are few. */
void jaxcc_rt_cuda_graph_failed(Device *, Graphs *, Graph *);
void jaxcc_rt_cuda_release_graphs(Device *);

/* ---- code (cuda_module.c) */
int32_t jaxcc_rt_cuda_load(Device *, jaxcc_rt_cuda_library *, Loaded **);
void jaxcc_rt_cuda_unload(Device *);

#endif
