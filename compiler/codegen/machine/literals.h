/* Keeps the literals of a long computation out of the registers that its values need. */
#ifndef JAXCC_LITERALS_H
#define JAXCC_LITERALS_H
#include <stddef.h>
#include <stdint.h>
#include <llvm-c/Core.h>

/* Called on an optimised function, before code generation, with the number of vector registers. */
void literals_load(LLVMValueRef function, uint32_t registers);

#endif
