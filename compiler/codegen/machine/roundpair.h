/* Rounding of f32 to bf16 on a GPU, for the sake of what is f32 again: by the instruction for two numbers. */
#ifndef JAXCC_ROUNDPAIR_H
#define JAXCC_ROUNDPAIR_H
#include <llvm-c/Core.h>

/* Called on an optimised function of a device, before code generation. */
void roundpair_use(LLVMValueRef function);

#endif
