/* --emit=types: the types of a program's inputs and outputs, bound dimensions by position. */
#ifndef JAXCC_SIGNATURE_H
#define JAXCC_SIGNATURE_H
#include "ir.h"

/* Appends `in_type:` and `out_type:`, each type with its explicitness: an integer scalar that is an
   extent of a later type of the same list is implicit. With `nested` the programs inside follow in
   the order of the text, each once, headed by the place of its brace and what holds it: `2:10
   cond.branches`. The program is checked. */
void signature_print(Ctx *, const Jaxpr *, bool nested, Text *);

#endif
