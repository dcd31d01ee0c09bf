/* A workaround for an instruction that LLVM 22 selects wrongly for AVX-512. */
#ifndef JAXCC_BITSELECT_H
#define JAXCC_BITSELECT_H
#include <stdbool.h>
#include <stddef.h>
#include <llvm-c/Core.h>

/* Called on an optimised function, before code generation. */
void bitselect_avoid(LLVMValueRef function);

#endif
