/* Identities of single equations that are exact in IEEE arithmetic; fold.c applies them to each equation it keeps. */
#ifndef JAXCC_SIMPLIFY_H
#define JAXCC_SIMPLIFY_H
#include "build.h"
#include "eval.h"

typedef struct {
    Ctx *cx;
    const Eqn **defs; /* by value: the earlier equation that computes it; NULL: none */
    uint32_t n;
    struct { /* by value: how many operands and results it is; for a Rewrite only */
        uint32_t *at;
        uint32_t n, cap;
    } uses;
} Defs;
const Eqn *def_of(const Defs *, Val);
/* The equation of primitive `p` that computes `v`, or NULL. */
const Eqn *def_by(const Defs *, Val, Prim p);
/* The literal whose value every element of `v` has; false if there is none. */
bool is_splat(const Defs *, Val, Scalar *);
/* Axes whose extent is not known to be 1. */
uint32_t long_axes(const ArrayType *);

/* A value equal to the only result of `e`, or 0. May change *e, which is a copy, into a simpler equation with the same
   result. */
Val simplify(const Defs *, Eqn *e);

/* A value equal to the only result of `e`, which new equations in the builder compute, or 0. */
typedef Val Rewrite(const Defs *, Builder *, const Eqn *e);
/* The pass fold, with one more rule. */
Jaxpr *fold_with(Ctx *, const Jaxpr *, Rewrite *);

#endif
