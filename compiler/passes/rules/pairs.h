/* Derivatives of reductions by a program: the program combines values and tangents. */
#ifndef JAXCC_PAIRS_H
#define JAXCC_PAIRS_H
#include "../transform/transform.h"

/* The program f of such an equation, x₁ … xₙ y₁ … yₙ → r₁ … rₙ, becomes one of the values and the tangents of those
   that have one: x₁ … xₙ x₁' … y₁ … yₙ y₁' … → r₁ … rₙ r₁' …; NULL after an error. */
Jaxpr *jvp_of_pairs(Jvp *, const Jaxpr *f);
/* What it takes: the operands of the equation, n arrays and as many initial values, and their tangents. */
void pair_operands(Jvp *, Val *arrays, Val *init);

#endif
