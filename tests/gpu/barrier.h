#ifndef PTX_BARRIER_H
#define PTX_BARRIER_H
#include "machine.h"

enum { BARRIER_SYNC, BARRIER_ARRIVE, BARRIER_RED, BARRIER_RED_AND, BARRIER_RED_OR };
void run_barrier(Warp *, const Ins *, uint32_t mask);
/* Of a cluster. */
void run_cluster_arrive(Warp *, const Ins *, uint32_t mask);
void run_cluster_wait(Warp *, const Ins *, uint32_t mask);

#endif
