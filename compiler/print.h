/* Shared by printing and comparing programs: which parameters are printed. */
#ifndef JAXCC_PRINT_H
#define JAXCC_PRINT_H
#include "ir.h"

/* Is it printed? Parameters that JAX's printer leaves out follow from the rest of the equation. */
bool param_prints(const Ctx *, const Eqn *, const Param *);
Str param_text(const Param *);
/* The parameters that are printed, in their order. */
const Param **params_in_order(Arena *, const Ctx *, const Eqn *, uint32_t *n);

#endif
