/* What the host of a library may set, while no call is in progress: the number of threads, or a
   pool of its own. */
#include "pool.h"

_Atomic int jaxcc_rt_threads_wanted;
jaxcc_parallel_for *_Atomic jaxcc_rt_host_for;
void *_Atomic jaxcc_rt_host_pool;

void jaxcc_rt_set_num_threads(int n) { jaxcc_rt_threads_wanted = n > 0 ? n : 0; }

void jaxcc_rt_set_parallel_for(jaxcc_parallel_for *parallel_for, void *pool) {
    jaxcc_rt_host_pool = pool;
    jaxcc_rt_host_for = parallel_for;
}
