/* A way around a wrong instruction of LLVM 22 for AVX-512. */
#ifndef JAXCC_BITSELECT_H
#define JAXCC_BITSELECT_H
#include <stdbool.h>
#include <stddef.h>
#include <llvm-c/Core.h>

/* To be called on a module that is optimised, before code is made of it. */
void bitselect_avoid(LLVMModuleRef);

#endif
