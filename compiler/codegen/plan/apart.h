/* Few long rows on a device: what reads the result of a reduction along with the terms. */
#ifndef JAXCC_PLAN_APART_H
#define JAXCC_PLAN_APART_H
#include "plan.h"

/* The step reduces so few rows, of so many terms, that blocks of a device that do whole rows would leave most of it
   idle: its sums are done in parts, and what goes over the same elements afterwards is another step; unless clusters
   of blocks have rows as long as these. */
bool apart_step(Plan *, const Step *);
/* Is v, of the body, a value of one of the rows of such a step? Other steps read it in no time. */
bool apart_result(Plan *, Body *, Val v);

#endif
