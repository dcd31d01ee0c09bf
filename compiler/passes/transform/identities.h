/* Identities for programs that transformations wrote. */
#ifndef JAXCC_IDENTITIES_H
#define JAXCC_IDENTITIES_H
#include "../simplify.h"

Rewrite identity;
/* Drops from nested programs what is known outside of them (nested.c). */
Jaxpr *tidy_nested(Ctx *, const Jaxpr *);

#endif
