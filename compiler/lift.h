/* Constants of nested programs without known values become constants of the program. */
#ifndef JAXCC_LIFT_H
#define JAXCC_LIFT_H
#include "ir.h"

/* Constvars of nested programs and array literals, [...], follow the program's own constants, in order of appearance;
   calls, loops and branches pass them down as operands. Runs before the program is checked. */
void consts_lift(Ctx *, Jaxpr *);

#endif
