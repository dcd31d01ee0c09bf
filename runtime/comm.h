/* Communication between devices. A program for several devices (spmd) runs once for each device; each has its end of a
   communicator and exchanges data with the others only by these functions. Here devices are threads of one process. */
#ifndef JAXCC_RT_COMM_H
#define JAXCC_RT_COMM_H
#include <stdint.h>

typedef struct jaxcc_rt_comm jaxcc_rt_comm;
struct jaxcc_rt_comm {
    int64_t device, devices; /* the number of this one, and how many there are */
    int64_t level;           /* nesting depth of such programs: a device of one may run an inner one on several */
    void *state;
    /* Each function is called by all of `members` (n devices, in the order of their parts) with the same members and
       sizes. Returns 0, or the status with which another device ended. */
    /* all: the `bytes` of the members, concatenated. */
    int32_t (*all_gather)(jaxcc_rt_comm *, const int64_t *members, int64_t n, const void *mine, void *all,
                          int64_t bytes);
    /* mine: n parts of `bytes`, the k-th for member k; all: the parts that the members have for this device. */
    int32_t (*all_to_all)(jaxcc_rt_comm *, const int64_t *members, int64_t n, const void *mine, void *all,
                          int64_t bytes);
    /* out: the data of member `from`; zeros if from < 0. */
    int32_t (*permute)(jaxcc_rt_comm *, const int64_t *members, int64_t n, int64_t from, const void *mine, void *out,
                       int64_t bytes);
};
#endif
