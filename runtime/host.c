/* What the host of a library may set while no call is in progress: the number of threads, a pool of its own, the
   function that receives printed text. */
#include "pool.h"

_Atomic int jaxcc_rt_threads_wanted;
jaxcc_parallel_for *_Atomic jaxcc_rt_host_for;
void *_Atomic jaxcc_rt_host_pool;
jaxcc_print *_Atomic jaxcc_rt_host_print;
void *_Atomic jaxcc_rt_host_printer;

void jaxcc_rt_set_num_threads(int n) { jaxcc_rt_threads_wanted = n > 0 ? n : 0; }

void jaxcc_rt_set_parallel_for(jaxcc_parallel_for *parallel_for, void *pool) {
    jaxcc_rt_host_pool = pool;
    jaxcc_rt_host_for = parallel_for;
}

void jaxcc_rt_set_print(jaxcc_print *print, void *user) {
    jaxcc_rt_host_printer = user;
    jaxcc_rt_host_print = print;
}
