/* What emitted code of libraries for NVIDIA GPUs calls. The driver is opened at the first call (libcuda.so.1); a
   library that needs it depends on libc and libm alone. Everything here belongs to the library that contains it but the
   primary context, which it shares with the other users of the GPU in this process.

   A call: NAME checks its arguments, then calls jaxcc_rt_cuda_run, which makes the GPU ready, gives the arrays and the
   workspace addresses on the device and runs the schedule, `body`. That calls the functions below with the
   jaxcc_rt_heap that it was given. They enqueue work on the call's stream and return at once, unless said otherwise;
   each begins after the ones before it have ended. If one fails it ends the body (as jaxcc_rt_stop does), and
   jaxcc_rt_cuda_run returns the status. Only the thread that runs the body calls them. A pointer of the device has the
   type void *, and the host must not read it. */
#ifndef JAXCC_CUDA_H
#define JAXCC_CUDA_H
#include "rt.h"

/* ---- what the library consists of: constants of the library, and one word of data */

/* Which GPUs run code compiled for compute capability `sm`: */
enum {
    JAXCC_RT_CUDA_LATER, /* this one and all later ones (PTX) */
    JAXCC_RT_CUDA_MAJOR, /* later ones of the same major version (a cubin) */
    JAXCC_RT_CUDA_SAME   /* this one alone (sm_90a) */
};
typedef struct {
    const char *name; /* "sm_90a", for messages */
    const void *data; /* PTX, ending with 0, or a cubin */
    int32_t sm;       /* 10 * major + minor */
    int32_t runs_on;
} jaxcc_rt_cuda_image;

enum { JAXCC_RT_CUDA_NESTED = 4 };     /* loops in loops that call jaxcc_rt_cuda_turns, at most */
enum { JAXCC_RT_CUDA_CONTEXT = 4096 }; /* bytes of a kernel's parameter, at most */
typedef struct {
    const char *name; /* of the .entry; takes one parameter by value, or none if `context` is 0 */
    const char *what; /* what it computes and where that is written, for messages; or NULL */
    int64_t context;  /* bytes of its parameter */
    int64_t shared;   /* bytes of dynamic shared memory that a launch may give it, at most */
} jaxcc_rt_cuda_kernel;

typedef struct {
    const void *data; /* on the host; aligned to 256 on the device */
    int64_t bytes;
} jaxcc_rt_cuda_constant_data;

/* One for all programs of the library. The code is loaded and the constants are copied once for each GPU. */
typedef struct {
    _Atomic(void *) loaded;            /* the runtime's; NULL at first */
    const jaxcc_rt_cuda_image *images; /* the first one that the GPU runs is loaded; all have the same kernels */
    const jaxcc_rt_cuda_kernel *kernels;
    const jaxcc_rt_cuda_constant_data *constants;
    int64_t n_images, n_kernels, n_constants;
} jaxcc_rt_cuda_library;

/* ---- calls */
enum {
    JAXCC_RT_CUDA_DEVICE_POINTERS = 1, /* arrays are memory of the device; the call does not wait for its end */
    JAXCC_RT_CUDA_LOOPS = 4,           /* the body calls jaxcc_rt_cuda_turns */
    JAXCC_RT_CUDA_GRAPH = 2            /* the body only launches, copies and fills, and so for all calls whose words are
                                          equal: with device pointers its work is kept as a graph */
};
typedef struct {
    jaxcc_rt_cuda_library *library;
    void (*body)(void *words, jaxcc_rt_heap *);
    const char *names; /* of the inputs and outputs, separated by blanks */
    const char *hint;  /* what follows "no memory for … bytes"; or "" */
    int64_t n_dims, n_in, n_out;
    int64_t flags;
} jaxcc_rt_cuda_program;

/* Runs a call and returns its status. `words`: what the body gets: n_dims numbers, n_in and n_out pointers as the
   caller gave them, and one more word. The pointers are replaced by those of the device, aligned to 256, or to 16 if
   the caller gave device pointers; the last word becomes the address of the workspace, aligned to 256 (NULL if that has
   0 bytes). What must be read on the host is read before. `bytes`: of each input, each output and the workspace. An
   array of 0 bytes may be NULL and then stays so. An output of a computed size has -1: its word, a jaxcc_array *, stays
   as it is. With device pointers, which must be aligned to 16 (JAXCC_ARGUMENT), the GPU is the one that they belong to;
   else that of JAXCC_CUDA_DEVICE, or the first. */
int32_t jaxcc_rt_cuda_run(const jaxcc_rt_cuda_program *, void **words, const int64_t *bytes);

/* The stream of this thread's calls with device pointers (a CUstream; at first NULL, CUDA's default stream): NAME_stream.
 */
void jaxcc_rt_cuda_set_stream(void *stream);

/* Before jaxcc_rt_cuda_run, with device pointers: copies the bytes of argument number k, counted from the first input,
   to the host, when the thread's stream has come so far. Waits. NULL gives zeros. */
int32_t jaxcc_rt_cuda_peek(const jaxcc_rt_cuda_program *, int64_t k, void *to, const void *from, int64_t bytes);

/* ---- what the body calls */

/* Launches the kernel of that number with x * y * z blocks of `threads` threads, unless that is 0. `context` is copied
   at once; its size is in the table. x < 2^31, y and z < 2^16. `shared`: bytes of dynamic shared memory. */
void jaxcc_rt_cuda_launch(jaxcc_rt_heap *, int64_t kernel, const void *context, int64_t x, int64_t y, int64_t z,
                          int64_t threads, int64_t shared);

/* A tensor map of an array, 128 bytes, for the context of a kernel that copies boxes of it: lines of boxes have their
   pieces of 16 bytes exchanged as products of warpgroups read them. Axes: the innermost first, whose stride is 1; in
   elements of 1 or 2 bytes. */
typedef struct {
    int64_t extent, stride, box; /* box: extent of a box */
} jaxcc_rt_cuda_axis;
void jaxcc_rt_cuda_map(jaxcc_rt_heap *, void *to, const void *array, const jaxcc_rt_cuda_axis *axes, int64_t rank,
                       int64_t bytes);

/* Ends the call unless rows of n elements can be sorted there: their places are numbers of 32 bits. `what` sorts
   them. */
void jaxcc_rt_cuda_sortable(jaxcc_rt_heap *, const char *what, int64_t n);

/* A loop that a predicate in memory of the device ends, a byte that its test computes. The body enqueues the test and
   calls this with turns = 0; then, as long as the result is not 0, as many turns as it says, each the work of a turn
   and the test, and calls this with their number. At most `most` turns follow each other so; if that is more than 1,
   turns must change nothing when the predicate is false, else they are only asked for when it is true. They launch,
   copy and fill only, the same in each turn, and may have such loops. Waits now and then, or never: the turn need not
   be enqueued. */
int64_t jaxcc_rt_cuda_turns(jaxcc_rt_heap *, const void *predicate, int64_t turns, int64_t most);

/* The library's constant of that number, on the device. */
void *jaxcc_rt_cuda_constant(jaxcc_rt_heap *, int64_t number);

/* Device to device; the two may be equal, but not overlap otherwise. */
void jaxcc_rt_cuda_copy(jaxcc_rt_heap *, void *to, const void *from, int64_t bytes);
/* n elements of `width` bytes (1, 2, 4 or 8), each the low bytes of `value`. If they are of 8 bytes, n is 1 or the
   halves of the value are equal. A scalar of the host is stored by n = 1. */
void jaxcc_rt_cuda_fill(jaxcc_rt_heap *, void *to, int64_t value, int64_t width, int64_t n);

/* Host to device: `from` may change when this returns. */
void jaxcc_rt_cuda_upload(jaxcc_rt_heap *, void *to, const void *from, int64_t bytes);
/* Device to host. Waits. */
void jaxcc_rt_cuda_read(jaxcc_rt_heap *, void *to, const void *from, int64_t bytes);
/* Runs a function of the runtime on the host. arrays: n_in operands and n_out results on the device, whose sizes are
   `bytes`, then one pointer that the function gets as it is (its text, or anything). Waits for the operands. */
void jaxcc_rt_cuda_host(jaxcc_rt_heap *, jaxcc_rt_function *, void *const *arrays, const int64_t *bytes, int64_t n_in,
                        int64_t n_out, const int64_t *sizes);

/* A program for several devices (comm.h), as jaxcc_rt_spmd: arrays lie on this GPU. sizes end with the bytes that a
   device gets of each input; the number of axes of the mesh of devices, and their extents, the slowest first; for each
   input, for each axis, by how many bytes the parts along it follow each other (0: all get the same). Device number d
   runs on GPU (g + d) modulo the number of GPUs, where g is that of the call, on a thread and a stream of its own; a
   GPU may so run several. Waits. What devices exchange, jaxcc_rt_all_gather and the like of comm.c do, with arrays on
   their GPUs. */
void jaxcc_rt_cuda_spmd(jaxcc_rt_heap *, void *const *arrays, const int64_t *sizes,
                        void (*body)(void *args, jaxcc_rt_heap *));

/* Memory of the device that the call itself asks for: as jaxcc_rt_heap_get, _rows and _put. Aligned to 256. What is put
   back may be used again by what the call enqueues later. */
void *jaxcc_rt_cuda_get(jaxcc_rt_heap *, int64_t bytes);
void *jaxcc_rt_cuda_rows(jaxcc_rt_heap *, int64_t bytes, int64_t turns, int64_t row, const char *error);
void jaxcc_rt_cuda_put(jaxcc_rt_heap *, void *);
/* Memory for an output of a computed size, on the device. With host pointers the caller gets a copy in memory of the
   host, else the memory itself, which its release() frees. */
void *jaxcc_rt_cuda_array(jaxcc_rt_heap *, jaxcc_array *out, int32_t rank, const int64_t *dims, int64_t bytes);

#endif
