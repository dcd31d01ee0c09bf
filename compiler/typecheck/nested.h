/* Nested programs whose inputs are operands of the enclosing equation: control.c, catalyst.c. */
#ifndef JAXCC_NESTED_H
#define JAXCC_NESTED_H
#include "../control.h"
#include "rule.h"

/* How the inputs of a nested program correspond to the operands of the equation: input i is operand first + i, or from
   `jump` on operand first + skip + i; from `sliced` on without its leading axis. */
typedef struct {
    const char *what; /* "the body", for messages */
    Jaxpr *j;
    uint32_t n; /* the number of inputs it must have */
    uint32_t first, jump, skip, sliced;
    uint32_t counter; /* 1 + the input that is the loop's counter, not an operand; 0: none */
} Nested;

unsigned operand_of(const Nested *, uint32_t i);
/* An inner type as the equation sees it: with operands for inputs and binders for results (extent.c). */
Type outer_type(Ctx *, const Eqn *, const Nested *, Type);
/* The type of result `i` of the equation, which is `inner` inside: in terms of the operands, or of the results where
   *out declares it so. The first `extents` results may be extents. */
bool result_outside(Ctx *, const Eqn *, const Nested *, uint32_t extents, uint32_t i, Type inner, Type *out);
/* The type of a carried value after an iteration: inputs [first, first + n) become the first results. */
Type next_round(Ctx *, const Jaxpr *, uint32_t first, uint32_t n, Type);
/* Gives the operands' types to the inputs, or compares them if the inputs have types, and checks the program. The
   number of inputs must be right. */
bool enter_nested(Ctx *, const Eqn *, const Nested *, const Type *in);

Span jaxpr_at(const Eqn *, const Jaxpr *);
Span inner_result_at(const Eqn *, const Jaxpr *, uint32_t i);
/* A number of operands that a parameter gives; at most `most`. */
bool want_count(Ctx *, const Eqn *, ParamKey, uint32_t most, uint32_t *n);

/* cond[branch_jaxprs=…] (catalyst.c) */
bool type_cond_catalyst(Ctx *, const Eqn *, const Type *in, Type *out);

#endif
