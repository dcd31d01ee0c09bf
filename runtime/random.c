/* The seed of rng_uniform. */
#include "rt.h"
#include <stdatomic.h>
#include <time.h>

/* sizes: how many numbers are drawn. Result: two 64-bit numbers, the seed of the process and the current count. */
void jaxcc_rt_rng_state(jaxcc_rt_heap *call, void *const *arrays, const int64_t *sizes) {
    static _Atomic uint64_t own, drawn;
    uint64_t *out = arrays[0], mine = atomic_load(&own), none = 0;
    (void)call;
    if (!mine) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        uint64_t first = ((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec) | 1;
        mine = atomic_compare_exchange_strong(&own, &none, first) ? first : none;
    }
    out[0] = mine;
    out[1] = atomic_fetch_add(&drawn, (uint64_t)sizes[0] + 1);
}
