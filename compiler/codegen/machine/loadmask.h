/* A workaround for masked loads that LLVM 22 selects wrongly for AVX2. */
#ifndef JAXCC_LOADMASK_H
#define JAXCC_LOADMASK_H
#include <llvm-c/Core.h>

/* Called on an optimised function, before code generation. */
void loadmask_avoid(LLVMValueRef function);

#endif
