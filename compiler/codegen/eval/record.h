/* The planner's instance of the operations: nothing is computed, what would be read is reported. */
#ifndef JAXCC_RECORD_H
#define JAXCC_RECORD_H
#include "evaluate.h"

/* Ready to evaluate values of `step` (NULL: reads of all members are reported). A plan has one, of use until it is
   asked for again; values are reported once. Of an index that is used as a value `seen` gets no value and, as the
   address, the index. */
Eval *record(Plan *, Step *step, Seen *, void *user);
/* From now on the edges of padding are reported too. */
typedef void SeenEdge(void *user, Ix index, Dim lo, Dim hi);
void record_edges(Plan *, SeenEdge *);
/* And the equations that are evaluated, of one element. */
typedef void SeenPoint(void *user, const Eqn *);
void record_points(Plan *, SeenPoint *);
/* What is read to find the place of a store. */
void record_place(Eval *, const Store *, const Ix *index);

#endif
