/* Passes: a program in, a new program out, NULL after a diagnostic. A pass never writes to its
 * input. */
#ifndef JAXCC_PASSES_H
#define JAXCC_PASSES_H
#include "../ir.h"

enum {
    COMPILED_RANK = 30,           /* the most axes of an array that compiles */
    MAX_RANK = COMPILED_RANK + 2, /* with room for two that a rule adds */
};
/* False with a diagnostic where an array has more. */
bool rank_compiles(Ctx *, Type, Span);

typedef Jaxpr *Pass(Ctx *, const Jaxpr *in);

/* Runs the passes of passes.def in order, verifying after each when cx->verify. */
Jaxpr *passes_run(Ctx *, const Jaxpr *in);
/* Can code be made of what they wrote? Says what cannot. */
bool supported(Ctx *, const Jaxpr *);

/* A program of stdlib/ by name, "exp_f32"; parsed and typechecked on first use. NULL when there is
 * none. */
const Jaxpr *stdlib_program(Ctx *, const char *name);

/* What a function with results of that type is computed in, by the program NAME_TYPE: f64 and f32 in
 * themselves, narrower types in f32; in f64 whatever has no program in f32. */
Dtype stdlib_dtype(Ctx *, Prim, Dtype result);
/* The least and the greatest value of a program, those of the bodies of its loops included. */
void jaxpr_range(const Ctx *, const Jaxpr *, Val *first, Val *last);

/* sin, cos and tan are two programs: NAME is right where |x| < bound, NAME_full everywhere. 0 for
 * the other programs. */
double stdlib_fast_bound(const char *name);

#endif
