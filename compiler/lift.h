/* Constants of nested programs whose values nobody gave become constants of the program. */
#ifndef JAXCC_LIFT_H
#define JAXCC_LIFT_H
#include "ir.h"

/* Constvars of nested programs and array literals, [...], follow the program's own constants, in order of appearance;
   calls, loops and branches pass them down as operands. The program is not checked yet. */
void consts_lift(Ctx *, Jaxpr *);

#endif
