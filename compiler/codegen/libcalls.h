/* Libraries compute by themselves: what LLVM would make calls of libm are calls of the runtime. */
#ifndef JAXCC_LIBCALLS_H
#define JAXCC_LIBCALLS_H
#include "emit.h"
#include <llvm-c/Core.h>

/* To be called on a module that is optimised, before code is made of it. */
void libcalls_avoid(LLVMModuleRef, const Target *);

#endif
