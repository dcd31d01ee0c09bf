/* Passes: a program in, a new program out, NULL after a diagnostic. A pass never writes to its
 * input. */
#ifndef JAXCC_PASSES_H
#define JAXCC_PASSES_H
#include "../ir.h"

typedef Jaxpr *Pass(Ctx *, const Jaxpr *in);

/* Runs the passes of passes.def in order, verifying after each when cx->verify. */
Jaxpr *passes_run(Ctx *, const Jaxpr *in);

/* A program of stdlib/ by name, "exp_f32"; parsed and typechecked on first use. NULL when there is
 * none. */
const Jaxpr *stdlib_program(Ctx *, const char *name);

/* sin, cos and tan are two programs: NAME is right where |x| < bound, NAME_full everywhere. 0 for
 * the other programs. */
double stdlib_fast_bound(const char *name);

#endif
