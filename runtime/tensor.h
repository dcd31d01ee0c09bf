/* Calls with tensors of DLPack: NAME_dlpack. */
#ifndef JAXCC_TENSOR_H
#define JAXCC_TENSOR_H
#include "dlpack.h"
#include "rt.h"
#include <stdbool.h>

typedef struct {
    const char *what; /* "input" or "output" */
    const jaxcc_type *type;
    const DLTensor *tensor;
    const void *data; /* where the tensor begins */
} jaxcc_rt_tensor;

/* Where the arrays of a library are. */
typedef struct {
    DLDeviceType usual, also;                  /* devices whose memory it is */
    int32_t align;                             /* bytes, at least; elements may ask for more */
    bool host;                                 /* it can be read here */
    int32_t (*check)(const jaxcc_rt_tensor *); /* a status; or NULL */
} jaxcc_rt_memory;

/* Checks the tensors, one for each input and output, and calls the program with their data. JAXCC_ARGUMENT: a tensor
   that the program cannot take; JAXCC_DIMENSION: shapes that do not fit. */
int32_t jaxcc_rt_dlpack_in(const jaxcc_rt_memory *, const jaxcc_program *, DLTensor *const *in, DLTensor *const *out);
/* The same in memory of the host, and of a GPU. */
int32_t jaxcc_rt_dlpack(const jaxcc_program *, DLTensor *const *in, DLTensor *const *out);
int32_t jaxcc_rt_dlpack_cuda(const jaxcc_program *, DLTensor *const *in, DLTensor *const *out);

/* JAXCC_ARGUMENT: "input 'x' " and what is wrong with it. */
__attribute__((format(printf, 2, 3), cold)) int32_t jaxcc_rt_fail_tensor(const jaxcc_rt_tensor *, const char *, ...);

#endif
