/* What printing and comparing programs share: which parameters say something. */
#ifndef JAXCC_PRINT_H
#define JAXCC_PRINT_H
#include "ir.h"

/* Does it print? What today's printer leaves out says nothing that the equation does not say
 * otherwise. */
bool param_prints(const Ctx *, const Eqn *, const Param *);
Str param_text(const Param *);
/* Those that print, as they do. */
const Param **params_in_order(Arena *, const Ctx *, const Eqn *, uint32_t *n);

#endif
