/* Types: infer the results of one equation; check a program, comparing what is inferred with what the text declares. */
#ifndef JAXCC_CHECK_H
#define JAXCC_CHECK_H
#include "../ir.h"

/* From here on, until Ctx.axes is restored, what is checked is inside a program that binds the axis over `size`
   devices, 0: unknown (collective.c). */
void axis_bind(Ctx *, Str name, int64_t size);

/* The result types of `e` for operands of types `in`, into out[e->out.n]; false after a diagnostic. On entry `out`
   holds the declared types, 0 for none: rules read them where operands and parameters do not determine the result.
   Conditions on symbols are added to Ctx.dim_checks. */
bool infer(Ctx *, const Eqn *e, const Type *in, Type *out);

/* Checks a whole program: gives types to values without one, compares where the text declares one; sets `checked`, and
   adds the conditions on symbols to the program's `dim_checks`. The types of the inputs must be known (check_inputs).
   It is the typechecker of the input, the type inference for untyped texts, and the verifier after each pass. */
bool check(Ctx *, Jaxpr *);

/* Adds a condition, once. */
void dim_checks_add(Arena *, DimChecks *, DimCheck);
/* A condition on symbolic dimensions that no call could meet, and the value that excludes it; NULL if
   there is none. */
typedef struct {
    Dim symbol, value;
    const DimCheck *because;
} DimKnown;
const DimCheck *dims_contradict(const Ctx *, const DimChecks *, DimKnown *with);

/* Sets the types of the inputs, or of the constants and then the inputs, from --in-type. */
bool check_inputs(Ctx *, Jaxpr *, const Type *types, uint32_t n, Span);

typedef bool TypeRule(Ctx *, const Eqn *, const Type *in, Type *out);
#define PRIM(id, text, arity, type, simplify, facts, jvp, transpose, vmap, lowering) TypeRule type_##type;
#include "../prims.def"

#endif
