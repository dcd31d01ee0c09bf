/* The program's arguments in the functions inside: dimensions, inputs, outputs. A few are
   parameters; many lie in memory, and every function is given where. */
#ifndef JAXCC_ARGUMENTS_H
#define JAXCC_ARGUMENTS_H
#include "emit.h"
#include "header.h"

/* In memory: the first ones are apart from the others, as NAME gets them; what follows in a list
   has its place in an array of that list. */
enum { FIRST_ARGUMENTS = 6, ARGUMENT_BASES = 4 };
typedef struct {
    uint32_t ndims, nin, nout;
    bool in_memory;
    V *at;                   /* parameters */
    V bases[ARGUMENT_BASES]; /* in memory: of the first ones, dimensions, inputs, outputs */
} Arguments;

/* Of a function whose parameters they are, from number `from` on; how many parameters that are. */
Arguments arguments_open(Emit *, const Signature *, bool in_memory, Scope *, uint32_t from);
uint32_t arguments_count(const Signature *, bool in_memory);
/* The types of these parameters, and what a call of such a function passes. */
uint32_t arguments_types(Emit *, const Signature *, bool in_memory, MlirType *);
uint32_t arguments_pass(const Arguments *, V *);

/* Argument i of all; input or output k. Written at e->block. */
V argument(Emit *, const Arguments *, uint32_t i);
V argument_in(Emit *, const Arguments *, uint32_t k);
V argument_out(Emit *, const Arguments *, uint32_t k);

/* Arguments that lie in memory one after the other from `p` on; what is behind them. */
Arguments arguments_at(Emit *, const Signature *, V p);
V arguments_behind(Emit *, const Signature *, V p);

/* NAME.entry where arguments lie in memory: calls the function of that name, which takes them there. */
Str arguments_checked_name(Ctx *);
void arguments_entry(Emit *, const Signature *);

#endif
