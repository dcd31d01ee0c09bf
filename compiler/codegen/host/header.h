/* The C header of a library. */
#ifndef JAXCC_HEADER_H
#define JAXCC_HEADER_H
#include "../codegen.h"
#include "../plan/interface.h"

/* Appends model.h, which declares the functions of the programs: self-contained C99 and C++. */
void header_text(Ctx *, Programs, Text *);

#endif
