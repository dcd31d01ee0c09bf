/* Decisions for a machine with vector registers, whose cores share the units of a step. */
#ifndef JAXCC_VECTORS_H
#define JAXCC_VECTORS_H
#include "plan.h"

/* Target.decide */
void vectors_decide(Plan *, Step *);

#endif
