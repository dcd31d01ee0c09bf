/* Types: infer one equation, check a program: infer all and compare with what the text says. */
#ifndef JAXCC_CHECK_H
#define JAXCC_CHECK_H
#include "../ir.h"

/* The result types of `e` for operands of types `in`, into out[e->out.n]; false after a diagnostic.
   On entry out holds the declared types, 0 where there is none: rules read them where operands and
   parameters leave the result open. */
bool infer(Ctx *, const Eqn *e, const Type *in, Type *out);

/* Checks the whole program: gives types to values without one, compares where the text has one;
   sets `checked`. The inputs' types must be known (check_inputs). It is the typechecker of input,
   the type inference of untyped eras, and the verifier after each pass. */
bool check(Ctx *, Jaxpr *);

/* A demand on symbolic dimensions (Ctx.dim_checks) that no library could meet, and the value that excludes it; NULL
   where there is none. */
typedef struct {
    Dim symbol, value;
    const DimCheck *because;
} DimKnown;
const DimCheck *dims_contradict(const Ctx *, DimKnown *with);

/* Sets the types of the inputs, or of the constants and then the inputs, from --in-type. */
bool check_inputs(Ctx *, Jaxpr *, const Type *types, uint32_t n, Span);

typedef bool TypeRule(Ctx *, const Eqn *, const Type *in, Type *out);
#define PRIM(id, text, arity, type, simplify, facts, lowering) TypeRule type_##type;
#include "../prims.def"

#endif
