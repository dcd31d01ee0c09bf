/* How a value moves with loops: an instance of the operations that computes nothing. */
#ifndef JAXCC_TREND_H
#define JAXCC_TREND_H
#include "evaluate.h"

enum { TREND_LOOPS = 2, TREND_NONE = 2 };
/* For each of two loops: 1: where the loop goes on, the value stays or grows; -1: stays or falls; 0: it does not depend
   on the loop; TREND_NONE: nothing is known. False is less than true. */
typedef struct {
    int8_t of[TREND_LOOPS];
} Trend;
/* That of a value of the step, of integers or bool, at an index. */
Trend trend_of(Plan *, Step *, Val, const Ix *index, const Atom loops[TREND_LOOPS]);

#endif
