/* Which scalars the host knows where kernels run on a device. */
#ifndef JAXCC_KNOWN_H
#define JAXCC_KNOWN_H
#include "plan.h"

/* Whether each of some values is known. */
typedef struct {
    bool *at;
    uint32_t n;
} Known;

/* Marks what the host knows of a program whose inputs are known or not, its constants included: the extents of its
   arrays, the number of the device among several, and integers and bools computed from literals and from what is
   known. */
void known_mark(Plan *, const Jaxpr *, Known in);
/* The same for inputs of which only extents are known. */
void known_mark_top(Plan *, const Jaxpr *);
/* Does the equation give the number of the device? */
bool known_device_number(const Eqn *);
/* Which inputs of the k-th program of a cond, while or scan are known; at those of a while: the condition, the body. */
Known known_inputs(Plan *, const Eqn *, uint32_t k);

/* Is how the cond or while goes on not known, and is all that its programs do done by kernels? These may test it
   themselves, so that the host need not wait for it (guard.c): it knows nothing then of what the loop changes and of
   the results. */
bool known_guarded(Plan *, const Eqn *);

#endif
