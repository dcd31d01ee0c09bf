/* Shared by host.c, which every library contains, and by thread.c and print.c, which only some do. */
#ifndef JAXCC_POOL_H
#define JAXCC_POOL_H
#include "rt.h"
#include <stdatomic.h>

extern _Atomic int jaxcc_rt_threads_wanted; /* 0: as many as there are CPUs */
extern jaxcc_parallel_for *_Atomic jaxcc_rt_host_for;
extern void *_Atomic jaxcc_rt_host_pool;
extern jaxcc_print *_Atomic jaxcc_rt_host_print; /* NULL: standard error */
extern void *_Atomic jaxcc_rt_host_printer;

int jaxcc_rt_cpus(void); /* how many this process may use */

#endif
