/* Passes: a program in, a new program out, NULL after a diagnostic. A pass never writes to its input. */
#ifndef JAXCC_PASSES_H
#define JAXCC_PASSES_H
#include "../options.h"

enum {
    COMPILED_RANK = 30,           /* the most axes of an array that compiles */
    MAX_RANK = COMPILED_RANK + 2, /* with room for two axes that a rule may add */
};
/* False with a diagnostic if an array has more. */
bool rank_compiles(Ctx *, Type, Span);

typedef Jaxpr *Pass(Ctx *, const Jaxpr *in);
#define PASS(name, half, help) Pass pass_##name;
#include "passes.def"

/* All of these verify after each pass when cx->verify. `in` is a whole program that is typechecked. */
/* The passes that make a program ready for transformations: no references, no equations of Catalyst, no kernels of
   Pallas, conditions of loops that are scalars. Calls stay, with their names, rules and policies. */
Jaxpr *passes_normalise(Ctx *, const Jaxpr *in);
/* The files of --rule, typechecked and compared with the custom calls of the program; false after an error. */
bool rules_read(Ctx *, const Jaxpr *);
/* What transformations, in order, make of the normalised program: one program, or two of --linearize, fwd and lin; none
   after an error. Without any, `in` itself. `entry`: the function of --entry that they are for; NULL: the main one. */
Jaxprs passes_transform(Ctx *, const Jaxpr *in, Transforms, const char *entry);
/* The passes that lower a program, as read or transformed, to what the code generator takes. */
Jaxpr *passes_lower(Ctx *, const Jaxpr *in);
/* Can code be generated for the program after the passes? Reports what is not supported. */
bool supported(Ctx *, const Jaxpr *);

enum { STDLIB_NAME = 64 }; /* room for the name of a program of stdlib/ */
/* A program of stdlib/ by name ("exp_f32"), parsed and typechecked on first use; NULL if there is none. */
const Jaxpr *stdlib_program(Ctx *, const char *name);
/* The same as the text has it, read anew and not typechecked. */
Jaxpr *stdlib_read(Ctx *, const char *name);

/* The type TYPE in which the program NAME_TYPE computes a function with results of type `result`: f32 and f64
   themselves, f32 for narrower types, f64 for functions without a program for f32. */
Dtype stdlib_dtype(Ctx *, Prim, Dtype result);
/* The smallest and the largest number of the values in a program, including the bodies of its loops. */
void jaxpr_range(const Ctx *, const Jaxpr *, Val *first, Val *last);

/* Some functions are two programs: NAME is accurate for |x| < bound, or x > bound if `above`, NAME_full everywhere. */
typedef struct {
    const char *name;
    double bound;
    bool above;
} StdlibFast;
/* NULL for other programs. */
const StdlibFast *stdlib_fast(const char *name);
/* Is NAME accurate for x? kernels/stdlib.c asks the same of vectors. */
bool stdlib_suits(const StdlibFast *, double x);

#endif
