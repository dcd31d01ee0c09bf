/* libcuda.so.1 for tests: NVIDIA's driver API over the interpreter of ptx.h. What programs see is what the API
   promises, and no more: with JAXCC_GPU_LAZY=1 the work of a stream is done only when somebody waits for it, so that a
   forgotten wait, or memory that is given back too early, shows. Every function runs under one lock. The environment is
   read by cuInit:

   JAXCC_GPU_LAZY=1         work is done when it is waited for; else at once; 2: and work of the other streams in
   between JAXCC_GPU_FAIL=A:2,B:1:719   the second use of A fails with its usual error, the first of B with 719; the
   0th: all JAXCC_GPU_DEVICES=2      how many devices there are (1); 0: cuInit answers CUDA_ERROR_NO_DEVICE
   JAXCC_GPU_SM=80,90       compute capabilities of the devices, the last one also of the others (80)
   JAXCC_GPU_DRIVER=12080   the driver's version: before 12030 graphs have no conditions JAXCC_GPU_REUSE=1        a new
   stream has the handle of one that was destroyed JAXCC_GPU_MEMORY=BYTES   of each device (8 GiB) JAXCC_GPU_LEAKS=FILE
   at the end a line is appended for all that was misused or not released JAXCC_GPU_COUNTS=FILE    at the end a line of
   counts is appended: name value name value ... JAXCC_GPU_RACES, _ORDER, _HOST, _UNINITIALISED, _MOST   the
   interpreter's options (ptx.h) CUDA_LAUNCH_BLOCKING=1   as NVIDIA's: each launch waits, and answers with its fault

   Handles are numbers in a table that forgets nothing: the use of one that was released is an error, with a message,
   unless it is used again. */
#ifndef DRIVER_H
#define DRIVER_H
#include "ptx.h"
#include "../../runtime/cuda_driver.h"
#include <stdbool.h>
#include <stdio.h>

#define API __attribute__((visibility("default"))) CUresult
typedef struct CUmemPool_st *CUmemoryPool;
typedef void HostFunction(void *);

enum {
    NOT_INITIALIZED = 3,
    DEINITIALIZED = 4,
    INVALID_DEVICE = 101,
    INVALID_CONTEXT = 201,
    NO_BINARY = 209,
    INVALID_HANDLE = 400,
    ILLEGAL_STATE = 401,
    NOT_FOUND = 500,
    ILLEGAL_ADDRESS = 700,
    PEER_ALREADY = 704,
    PEER_NOT_ENABLED = 705,
    LAUNCH_FAILED = 719,
    NOT_SUPPORTED = 801,
    CAPTURE_UNSUPPORTED = 900,
    CAPTURE_INVALIDATED = 901,
    CAPTURE_UNMATCHED = 903,
    CAPTURE_IMPLICIT = 906,
    CAPTURED_EVENT = 907,
    UNKNOWN = 999
};
enum { MOST_DEVICES = 16, GRAPH_KERNEL = 0, GRAPH_COPY = 1, GRAPH_FILL = 2, GRAPH_HOST = 3, GRAPH_CONDITIONAL = 13 };
enum { CONDITIONS_SINCE = 12030 }; /* the version of CUDA that has conditions of graphs and captures into them */

/* ---- driver.c */
typedef enum { CONTEXT = 1, MODULE, FUNCTION, STREAM, EVENT, GRAPH, NODE, EXEC, POOL } Kind;
/* A handle for the object; the object of a handle, or NULL with a message; from now on no handle. */
void *handle_new(Kind, int device, void *object);
void *handle_object(Kind, const void *handle);
int handle_device(const void *handle);
void handle_end(const void *handle);
/* With JAXCC_GPU_REUSE a handle of the kind that is none any more, else a new one. */
void *handle_again(Kind, int device, void *object);

typedef struct {
    int retained, error, sm;  /* of the primary context; error: what every call answers */
    void *context;            /* its handle */
    bool peers[MOST_DEVICES]; /* whose memory it may use */
    size_t used;              /* bytes */
    struct Stream *legacy;    /* the default stream */
} Device;
extern Device devices[MOST_DEVICES];
unsigned most_shared(int device); /* bytes that a block may have */
typedef struct {
    int lazy;
    bool blocking, reuse;
    int n_devices, version;
    size_t memory; /* of a device */
} Settings;
extern Settings settings;
typedef struct {
    uint64_t calls, waits, to_device, to_host, on_device; /* on_device: bytes copied within the device or filled */
    uint64_t graphs, instantiated, captures, allocations, peak, misuses;
    uint64_t received[MOST_DEVICES]; /* bytes that a device got from others */
} Counts;
extern Counts counts;

/* Begins a call: takes the lock, and says why it cannot be made. `needs`: what must be there. */
enum { ANYTHING, STARTED, CURRENT }; /* nothing, cuInit, a current context */
CUresult begin(const char *function, int needs);
CUresult done(CUresult);  /* Ends it. */
int current_device(void); /* -1: none */
/* Says what the program did wrong, for stderr and for the leak report; returns the error. */
__attribute__((format(printf, 2, 3))) CUresult misused(CUresult, const char *format, ...);
/* The device's context fails for good. */
CUresult lost(int device, CUresult);

/* ---- driver_memory.c */
/* Is all of it one live array? Its device, or -1. */
int memory_device(CUdeviceptr, size_t bytes);
bool memory_pinned(const void *, size_t bytes);
CUresult memory_free(CUdeviceptr);
void memory_report(FILE *);
void memory_forget(int device); /* its context is gone */

/* ---- driver_stream.c: work */
typedef struct Work Work;
typedef CUresult Perform(Work *);
struct Work {
    Work *next;
    uint64_t number; /* in the order in which it came */
    Perform *perform;
    int device;
    int graph_type; /* of the node that it becomes when captured, or -1 */
    CUdeviceptr to, from;
    void *host;     /* of copies; its bytes if `own` */
    size_t n;       /* bytes of copies, elements of fills */
    uint32_t value; /* fills: the element, of `width` bytes, in rows `pitch` apart */
    uint32_t width, rows;
    size_t pitch;
    PtxFunc *function;
    const void *module; /* that the function is in */
    const char *name;   /* of the kernel */
    PtxDim3 grid, block;
    uint32_t shared;
    void **parameters;    /* one piece of memory with what they point to */
    struct Stream *waits; /* for work up to number `until` */
    uint64_t until;
    struct Event *event;
    struct Exec *exec; /* a graph, released after it has run */
    HostFunction *call;
    bool own;
};
typedef struct Stream {
    int device;
    bool blocking, dead, invalid; /* invalid: its capture failed */
    int busy;                     /* with work that waits for another stream: what comes next may not begin */
    Work *first, **last;
    uint64_t newest;       /* number of the last work that came */
    struct Graph *capture; /* being captured into it */
    int capture_mode;
    uint64_t capture_thread;
    bool capture_origin, captured_into; /* where it began; into a graph that is the caller's */
    void *handle;
    struct Stream *next;
} Stream;
Stream *stream_of(CUstream, const char *function); /* NULL after a message */
CUresult stream_add(Stream *, Work); /* does it, keeps it, or makes it a node of the graph that is captured */
CUresult stream_drain(Stream *, uint64_t until);
CUresult stream_drain_all(int device);
void stream_forget(int device);
bool stream_uses(const void *module); /* in work that is not done */
bool stream_captures(const struct Graph *);
/* What a call answers during captures, which are invalid if that is not 0: one that may wait, if the thread's mode and
   theirs forbid it; one that waits for the device, or for its blocking streams, whatever the modes are. */
CUresult stream_unsafe(void);
CUresult stream_waits(int device);
CUresult stream_waits_blocking(int device);
void work_free(Work *);

/* ---- driver_launch.c */
/* dims: of the grid, of a block */
CUresult launch_work(CUfunction, const unsigned dims[6], unsigned shared, void **parameters, void **extra, Work *);
CUresult perform_launch(Work *);
/* The launch's parameters, copied: what work_free frees. */
void **launch_parameters(const PtxFunc *, void *const *from);

/* ---- driver_graph.c */
typedef struct Graph Graph;
typedef struct Exec Exec;
CUresult graph_add(Graph *, Work); /* a node at its end */
Graph *graph_new(void);
void *graph_handle(Graph *);
void graph_free(Graph *);
CUresult graph_destroy(CUgraph);
/* The node that what is captured next follows, or NULL; now this one. */
CUgraphNode graph_end(const Graph *);
CUresult graph_follow(Graph *, CUgraphNode);
void exec_free(Exec *);
/* What kernels call to set the condition of a node. */
void graph_set_condition(uint64_t handle, uint32_t value);

#endif
