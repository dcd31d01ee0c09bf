/* -ftime-report: how long each stage took. */
#ifndef JAXCC_TIMER_H
#define JAXCC_TIMER_H
#include "arena.h"
#include <stdio.h>

typedef struct Timer Timer;

Timer *timer_new(Arena *);
/* The stage before ends, `name` (a literal; NULL: none) begins; a name that comes again is added
   to. A NULL timer does nothing. */
void timer_stage(Timer *, const char *name);
void timer_print(const Timer *, FILE *);

#endif
