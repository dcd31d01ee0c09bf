/* Rows of a step whose lane loop is reduced, on a GPU: what each thread has of one. */
#ifndef JAXCC_PLAN_ROWS_H
#define JAXCC_PLAN_ROWS_H
#include "plan.h"

/* Is a row read by more than one stage? */
bool rows_read_again(const Step *);
/* Decides s->held if several stages read its elements, whose levels must be known. */
void rows_decide(Plan *, Step *);

/* Of `rest` elements of a row that are not in registers those of each of so many blocks, whose threads do `at_once`
   at once. */
Dim rows_near_elements(Dim rest, uint32_t blocks, Dim at_once);
/* An index or address at that element of a row. */
Ix row_at(Indices *, const Step *, Ix, Ix element);

#endif
