/* Where the elements lie that the loops of a step read and write. */
#ifndef JAXCC_PLAN_PLACES_H
#define JAXCC_PLAN_PLACES_H
#include "plan.h"

typedef void SeenPlace(void *user, const ArrayPlace *);
/* Every place, once: with `terms` what the reductions read first, then for each store what its value and its index
   read, and where it goes. */
void step_places(Plan *, Step *, bool terms, SeenPlace *, void *user);
/* What evaluating v at an index reads, nothing of which a step computes itself; where a store puts an element of its
   value. */
void value_places(Plan *, Val v, const Ix *index, SeenPlace *, void *user);
ArrayPlace store_place(Plan *, const Store *, const Ix *index);

/* Neighbouring iterations of the lane loop. */
typedef struct {
    bool apart;      /* an element is elsewhere than beside its neighbour's, or an array begins anywhere */
    uint32_t widest; /* bytes of the elements that lie beside each other */
} Neighbours;
/* Adds a place; returns by how many elements it moves, 0 if not in proportion. */
Dim neighbours_add(Plan *, const Step *, Neighbours *, const ArrayPlace *);

#endif
