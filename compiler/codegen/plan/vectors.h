/* Decisions for a machine with vector registers, whose cores share the units of a step. */
#ifndef JAXCC_VECTORS_H
#define JAXCC_VECTORS_H
#include "plan.h"

/* Target.decide */
void vectors_decide(Plan *, Step *);
/* The lanes of one vector of the step's widest elements. */
uint32_t vector_of(const Plan *, const Step *);
/* Are masks words of a vector, which all elements of the step are wide enough for? */
bool masks_words(const Plan *, const Step *);
/* Are all results of a LOOPS step real floats? What costs much of others is division of integers, and a vector of
   quotients, which has no instruction, takes as long as eight of them: idle lanes are no better than single elements. */
bool stores_floats(const Plan *, const Step *);
/* Cuts the sums of a LOOPS step (sums.h): a sum has `outermost` iterations of the outermost reduced loop, and each
   iteration of the lane loop adds up `lanes` elements. */
void cut_sums(Plan *, Step *, Dim outermost, uint32_t lanes);

#endif
