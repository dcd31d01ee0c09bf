/* A workaround: for AVX2, LLVM 22 loads all lanes where it finds out late that no lane of a register exists. */
#ifndef JAXCC_LOADMASK_H
#define JAXCC_LOADMASK_H
#include <llvm-c/Core.h>

/* Called on an optimised function, before code generation. */
void loadmask_avoid(LLVMValueRef function);

#endif
