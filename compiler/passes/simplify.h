/* Identities of single equations that are exact in IEEE arithmetic; fold.c applies them to each equation it keeps. */
#ifndef JAXCC_SIMPLIFY_H
#define JAXCC_SIMPLIFY_H
#include "rewrite.h"

typedef struct {
    Ctx *cx;
    const Eqn **defs; /* by value: the earlier equation that computes it; NULL: none */
    uint32_t n;
} Defs;
const Eqn *def_of(const Defs *, Val);

/* A value equal to the only result of `e`, or 0. May change *e, which is a copy, into a simpler equation with the same
   result. */
Val simplify(const Defs *, Eqn *e);

#endif
