/* The description of a library, added to the LLVM module of a program. */
#ifndef JAXCC_METADATA_H
#define JAXCC_METADATA_H
#include "../ir.h"
#include <llvm-c/Core.h>

/* Defines NAME_program and its tables, NAME_error, the adapter `call`, and the ELF note that lists
   the program. The module defines NAME, and the hidden int64_t NAME_workspace_size(const int64_t
   *dims). The code defined here runs on every CPU of the architecture. */
void metadata_emit(Ctx *, const Jaxpr *, LLVMModuleRef);

#endif
