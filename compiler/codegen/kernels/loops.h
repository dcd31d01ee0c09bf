/* Loops of a LOOPS step (loops.c). */
#ifndef JAXCC_KERNEL_LOOPS_H
#define JAXCC_KERNEL_LOOPS_H
#include "accumulators.h"

enum { MAX_CARRIED = 4 * MAX_ACCS };
typedef void Inner(Kernel *, void *user, V *acc);

/* for i = lo … hi by w; the tail: in lanes of which some may be beyond hi. */
typedef struct {
    Atom loop;
    V lo, hi;
    uint32_t w;
    bool tail;
} Count;
/* The inner part with `n` carried values. */
void loops_counted(Kernel *, const Count *, uint32_t n, V *acc, Inner *, void *user);
/* Where the loop over main vectors in [lo, hi) ends. */
V loops_main_end(Kernel *, V lo, V hi, const Widths *);
/* The stages of the step at the current index. */
void loops_stages(Kernel *);

#endif
