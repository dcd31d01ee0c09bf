/* -ftime-report: how long each stage took. */
#ifndef JAXCC_TIMER_H
#define JAXCC_TIMER_H
#include "arena.h"
#include <stdio.h>

typedef struct Timer Timer;

Timer *timer_new(Arena *);
/* Ends the current stage and begins `name` (a string literal; NULL: none); times of the same name add up. A NULL timer
   does nothing. */
void timer_stage(Timer *, const char *name);
void timer_print(const Timer *, FILE *);

#endif
