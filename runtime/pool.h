/* Shared by host.c, which every library has, and thread.c, which only parallel ones have. */
#ifndef JAXCC_POOL_H
#define JAXCC_POOL_H
#include "rt.h"
#include <stdatomic.h>

extern _Atomic int jaxcc_rt_threads_wanted; /* 0: as many as there are CPUs */
extern jaxcc_parallel_for *_Atomic jaxcc_rt_host_for;
extern void *_Atomic jaxcc_rt_host_pool;

int jaxcc_rt_cpus(void); /* that this process may use */

#endif
