/* The data of constants in modules, objects and libraries (em_constant, emit.h). */
#ifndef JAXCC_CONSTANTS_H
#define JAXCC_CONSTANTS_H
#include "../emit/emit.h"
#include <llvm-c/Core.h>

/* The address of a constant's data, before constants_define. */
LLVMValueRef constants_address(Emit *, LLVMModuleRef, const Constant *);
/* Says where the large ones will be in an object. */
void constants_declare(Emit *, LLVMModuleRef);
/* Defines what em_constant declared; false after a diagnostic. `shared`: other objects of the library refer to it. */
bool constants_define(Emit *, EmitKind, LLVMModuleRef, bool shared);
/* Writes the bytes of large constants into an object, archive or library; false after a diagnostic. */
bool constants_fill(Emit *, EmitKind, const Output *);

#endif
