/* --emit=types: the types of a program's inputs and outputs, bound dimensions by position. */
#ifndef JAXCC_SIGNATURE_H
#define JAXCC_SIGNATURE_H
#include "../ir.h"

/* Appends `in_type:` and `out_type:` of a checked program, each type with its explicitness: an integer scalar that is
   an extent of a later type in the same list is implicit. With `nested` the nested programs follow in the order of the
   text, each once, headed by the place of its brace and by what contains it: `2:10 cond.branches`. */
void signature_print(Ctx *, const Jaxpr *, bool nested, Text *);

#endif
