/* Lowers scf to branches in all functions of the module. */
#ifndef JAXCC_LOWER_H
#define JAXCC_LOWER_H
#include "emit.h"

void emit_lower(Emit *);

#endif
