/* --consts: the values of constants that the text names but cannot hold. */
#ifndef JAXCC_CONSTS_H
#define JAXCC_CONSTS_H
#include "ir.h"

/* Binds const0, const1, … of an .npz file: first to the constvars of the program, then to those of
   nested programs and to array literals, in order of appearance. Sets their data, and their type
   where the text prints none. False after a diagnostic: too few, too many, or another type. */
bool consts_bind(Ctx *, Jaxpr *, const char *path);

#endif
