/* What GPUs exchange, moved by NCCL. */
#ifndef JAXCC_CUDA_NCCL_H
#define JAXCC_CUDA_NCCL_H
#include "comm.h"
#include "cuda_call.h"

/* `together` of jaxcc_rt_devices: false in `done` if there is no NCCL, or if two of the members are on the same GPU. */
int32_t jaxcc_rt_nccl_exchange(jaxcc_rt_heap *, const jaxcc_rt_exchange *, bool *done);
/* Others no longer wait for what a GPU that has failed was to give them. */
void jaxcc_rt_nccl_lost(const Device *);
/* Has what the device exchanges failed? */
int32_t jaxcc_rt_nccl_check(const Call *);
/* A device of an inner program waits for what the one around it exchanges. */
void jaxcc_rt_nccl_join(Call *, const Call *around);
/* A device of a program for several has waited for its work, and exchanges no more. `status`: how it has ended; the
   result is another one if what it exchanged has not come, as another call has failed. */
int32_t jaxcc_rt_nccl_leave(Call *, int32_t status);

#endif
