/* Identities for programs that transformations wrote. */
#ifndef JAXCC_IDENTITIES_H
#define JAXCC_IDENTITIES_H
#include "../simplify.h"

Rewrite identity;

#endif
