/* The program's arguments in the functions of a library: dimensions, inputs, outputs. A few are passed as parameters;
   many lie in memory, and every function gets their addresses. */
#ifndef JAXCC_ARGUMENTS_H
#define JAXCC_ARGUMENTS_H
#include "../emit/emit.h"
#include "../plan/interface.h"

/* In memory: the first ones lie apart from the others, as NAME receives them in registers; the others lie in one array
   for each list. */
enum { FIRST_ARGUMENTS = 6, ARGUMENT_BASES = 4 };
typedef struct {
    uint32_t ndims, nin, nout;
    bool in_memory;
    V *at;                   /* parameters */
    V bases[ARGUMENT_BASES]; /* in memory: addresses of the first ones, dimensions, inputs, outputs */
} Arguments;

/* The arguments of a function that takes them as parameters from number `from` on; the number of these parameters. */
Arguments arguments_open(Emit *, const Signature *, bool in_memory, Scope *, uint32_t from);
uint32_t arguments_count(const Signature *, bool in_memory);
/* The types of these parameters, and the operands of a call of such a function. */
uint32_t arguments_types(Emit *, const Signature *, bool in_memory, MlirType *);
uint32_t arguments_pass(const Arguments *, V *);

/* Argument i; input or output k. Written at e->block. */
V argument(Emit *, const Arguments *, uint32_t i);
V argument_in(Emit *, const Arguments *, uint32_t k);
V argument_out(Emit *, const Arguments *, uint32_t k);

/* Arguments that lie one after the other in memory, from `p` on; the address after them. */
Arguments arguments_at(Emit *, const Signature *, V p);
V arguments_behind(Emit *, const Signature *, V p);

/* Where arguments lie in memory, NAME.entry passes their addresses on to the function with this name. */
Str arguments_checked_name(Ctx *, const Signature *);
MlirOperation arguments_entry(Emit *, const Signature *);

#endif
