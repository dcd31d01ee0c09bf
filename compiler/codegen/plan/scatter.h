/* Scatter: where updates go, and which of them are done in order. */
#ifndef JAXCC_SCATTER_H
#define JAXCC_SCATTER_H
#include "../eval/gather.h"

/* The address, in elements, to which the update at an index goes. */
Ix scatter_address(Plan *, const Eqn *, const Ix *index);
/* The window of the update at the step's own index; do its positions depend on the loop? */
const Window *scatter_window(Plan *, const Step *);
bool scatter_moves(Plan *, const Window *, Atom loop);
/* Is the loop over elements of windows that may overlap those of other positions? Then its iterations are not
   independent. */
bool scatter_overlaps(Plan *, const Step *, Atom loop);
/* Marks the axes of the domain (the updates) along which several updates may go to one place. */
void scatter_order(Plan *, Step *);
/* Do all positions certainly differ? */
bool scatter_apart(Plan *, const Step *);
/* On a device: how updates meet, and the grid, but for its threads. */
void scatter_decide(Plan *, Step *);
/* The reduction that combines so, if blocks may do it in shared memory; else P_none. */
Prim scatter_reduction(Prim how);
/* The number of the position that the loops are at; of the place that it claims. */
Ix scatter_number(Plan *, const Step *);
Ix scatter_place(Plan *, const Step *, const Window *);
/* Chooses the lane loop by `score` and orders the other kept loops: those that positions depend on come first, those of
   windows that overlap last. */
typedef int64_t LoopScore(const void *user, Atom loop);
void scatter_schedule(Plan *, Step *, LoopScore *, const void *user);

#endif
