/* Data of constants in modules and in what is made of them (em_constant, emit.h). */
#ifndef JAXCC_CONSTANTS_H
#define JAXCC_CONSTANTS_H
#include "emit.h"
#include <llvm-c/Core.h>

/* Defines what em_constant declared; false after a diagnostic. */
bool constants_define(Emit *, EmitKind, LLVMModuleRef);
/* Gives an object, archive or library the bytes of large constants; false after a diagnostic. */
bool constants_fill(Emit *, EmitKind, const Output *);

#endif
