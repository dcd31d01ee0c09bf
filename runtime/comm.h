/* Programs for several devices (spmd), which run once for each device, on a thread of its own. Devices exchange data
   only by the functions at the end of comm.c. Where their data lies and how it is moved, a table says: that of comm.c
   itself for memory of the host, that of cuda_spmd.c for GPUs. */
#ifndef JAXCC_RT_COMM_H
#define JAXCC_RT_COMM_H
#include "rt.h"
#include <stdbool.h>

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

/* What the members of a group exchange. Each gets pieces of the same number of bytes, one after the other. */
typedef enum {
    JAXCC_RT_GATHER, /* the data of each member, in order */
    JAXCC_RT_PARTS,  /* data are a piece for each member */
    JAXCC_RT_PERMUTE /* the data of one member, or zeros */
} jaxcc_rt_exchange_kind;
typedef struct {
    const jaxcc_rt_comm *comm;
    const void *data;
    void *result;
} jaxcc_rt_member;
typedef struct {
    jaxcc_rt_exchange_kind kind;
    int64_t n, bytes;    /* members; of a piece */
    const int64_t *from; /* PERMUTE: of each of `n_from` places the member whose data it gets, -1: none */
    int64_t n_from;
    const jaxcc_rt_member *members;
} jaxcc_rt_exchange;
/* Piece k of what member `me` gets: whose it is, -1: zeros; where it begins in the data of that one. */
typedef struct {
    int64_t member, offset;
} jaxcc_rt_piece;
int64_t jaxcc_rt_exchange_pieces(const jaxcc_rt_exchange *);
jaxcc_rt_piece jaxcc_rt_exchange_piece(const jaxcc_rt_exchange *, int64_t me, int64_t k);

/* How devices run and move data; all return a status, with the text set. */
typedef struct jaxcc_rt_devices {
    int32_t (*run)(jaxcc_rt_comm *); /* the program, on the device's thread */
    /* Work may be asynchronous: what this device does after it follows another one begins when that has come to its
       last mark. */
    int32_t (*mark)(jaxcc_rt_heap *);
    int32_t (*follow)(jaxcc_rt_heap *, const jaxcc_rt_comm *other);
    int32_t (*copy)(jaxcc_rt_heap *, void *to, const jaxcc_rt_comm *owner, const void *from, int64_t bytes);
    int32_t (*zero)(jaxcc_rt_heap *, void *to, int64_t bytes);
    /* NULL, or: moves the pieces of all members but zeros, when each of them has come to what it does next; sets `done`
       to false, and does nothing, if it cannot. One of the members calls it while the others wait. */
    int32_t (*together)(jaxcc_rt_heap *, const jaxcc_rt_exchange *, bool *done);
    /* NULL, or: what this device has begun has failed. It is asked now and then while the device waits for others,
       which may wait for what it has begun. */
    int32_t (*watch)(jaxcc_rt_heap *);
} jaxcc_rt_devices;

/* Runs the program on all devices. The status of the first one that failed, with its text. */
int32_t jaxcc_rt_spmd_run(jaxcc_rt_heap *call, const jaxcc_rt_devices *, const jaxcc_rt_spmd_program *);
/* sizes: devices, inputs, outputs, bytes of workspace, how many extents, the extents, bytes of each output's part, and
   for GPUs what jaxcc_rt_cuda_spmd says of the inputs. arrays: inputs, outputs. */
jaxcc_rt_spmd_program jaxcc_rt_spmd_program_of(void *const *arrays, const int64_t *sizes,
                                               void (*body)(void *args, jaxcc_rt_heap *));

#endif
