/* The description of a library, added to the LLVM module of a program. */
#ifndef JAXCC_METADATA_H
#define JAXCC_METADATA_H
#include "../codegen.h"
#include <llvm-c/Core.h>

/* Defines NAME_program and its tables, NAME_error and the adapter `call` of each program, and the ELF notes that list
   them. The module defines NAME.entry and NAME.workspace. The code defined here runs on every CPU of the
   architecture. */
void metadata_emit(Ctx *, Programs, LLVMModuleRef);
/* The function of the module that a program of this name is. */
LLVMValueRef metadata_entry(Ctx *, LLVMModuleRef, const char *name);

#endif
