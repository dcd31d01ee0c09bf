/* Programs for several devices (spmd), which run once for each device, on a thread of its own. Devices exchange data only
   by the functions at the end of comm.c. Where their data lies and how it is moved, a table says: that of comm.c itself
   for memory of the host, that of cuda_spmd.c for GPUs. */
#ifndef JAXCC_RT_COMM_H
#define JAXCC_RT_COMM_H
#include "rt.h"

/* What all devices of a program run. */
typedef struct {
    int64_t devices, n_in, n_out, workspace, n_dims; /* workspace: bytes that a device needs */
    const int64_t *dims, *out_bytes, *in_bytes;      /* of a device's parts; in_bytes: for GPUs alone */
    void *const *arrays;                             /* the whole inputs, then the whole outputs: parts by device */
    void (*body)(void *args, jaxcc_rt_heap *);
    void *user; /* of the table */
} jaxcc_rt_spmd_program;

/* One device. `args`: the extents, inputs, parts of outputs, workspace, which `run` sets. */
struct jaxcc_rt_comm {
    int64_t device, devices; /* its number, and how many there are */
    int64_t level;           /* nesting depth of such programs: a device of one may run an inner one on several */
    int64_t place;           /* its number among those of its program */
    void *state;
    const struct jaxcc_rt_devices *how;
    const jaxcc_rt_spmd_program *program;
    void **args;
};

/* How devices run and move data; all return a status, with the text set. */
typedef struct jaxcc_rt_devices {
    int32_t (*run)(jaxcc_rt_comm *); /* the program, on the device's thread */
    /* Work may be asynchronous: what this device does after it follows another one begins when that has come to its
       last mark. */
    int32_t (*mark)(jaxcc_rt_heap *);
    int32_t (*follow)(jaxcc_rt_heap *, const jaxcc_rt_comm *other);
    int32_t (*copy)(jaxcc_rt_heap *, void *to, const jaxcc_rt_comm *owner, const void *from, int64_t bytes);
    int32_t (*zero)(jaxcc_rt_heap *, void *to, int64_t bytes);
} jaxcc_rt_devices;

/* Runs the program on all devices. The status of the first one that failed, with its text. */
int32_t jaxcc_rt_spmd_run(jaxcc_rt_heap *call, const jaxcc_rt_devices *, const jaxcc_rt_spmd_program *);
/* sizes: devices, inputs, outputs, bytes of workspace, how many extents, the extents, bytes of each output's part, and
   for GPUs what jaxcc_rt_cuda_spmd says of the inputs. arrays: inputs, outputs. */
jaxcc_rt_spmd_program jaxcc_rt_spmd_program_of(void *const *arrays, const int64_t *sizes,
                                               void (*body)(void *args, jaxcc_rt_heap *));

#endif
