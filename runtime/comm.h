/* What devices tell each other. A program for several devices (spmd) runs once for each; each has its end of a
   communicator, and all it knows of the others goes through these functions. Here devices are threads of one process.
   */
#ifndef JAXCC_RT_COMM_H
#define JAXCC_RT_COMM_H
#include <stdint.h>

typedef struct jaxcc_rt_comm jaxcc_rt_comm;
struct jaxcc_rt_comm {
    int64_t device, devices; /* this one's number, how many there are */
    int64_t level; /* how many such programs are around: each device of one runs a program within for several */
    void *state;
    /* Each is called by all of `members` (n devices, in the order of their parts) with the same members and sizes.
       0, or the status with which another device ended. */
    /* all: the members' `bytes` one after the other. */
    int32_t (*all_gather)(jaxcc_rt_comm *, const int64_t *members, int64_t n, const void *mine, void *all,
                          int64_t bytes);
    /* mine: n parts of `bytes`, the k-th for member k; all: what the members have for this one. */
    int32_t (*all_to_all)(jaxcc_rt_comm *, const int64_t *members, int64_t n, const void *mine, void *all,
                          int64_t bytes);
    /* out: what member `from` has; zeros where from < 0. */
    int32_t (*permute)(jaxcc_rt_comm *, const int64_t *members, int64_t n, int64_t from, const void *mine, void *out,
                       int64_t bytes);
};
#endif
