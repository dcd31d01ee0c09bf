/* Rows of a step whose lane loop is reduced, on a GPU: what each thread has of one. */
#ifndef JAXCC_PLAN_ROWS_H
#define JAXCC_PLAN_ROWS_H
#include "plan.h"

/* Is a row read by more than one stage? */
bool rows_read_again(const Step *);
/* Decides s->held if several stages read its elements, whose levels must be known. */
void rows_decide(Plan *, Step *);

/* An index or address at that element of a row. */
Ix row_at(Indices *, const Step *, Ix, Ix element);

#endif
