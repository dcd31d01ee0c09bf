/* Keeps the literals of a long computation out of the registers that its values need. */
#ifndef JAXCC_LITERALS_H
#define JAXCC_LITERALS_H
#include "../emit/emit.h"
#include <llvm-c/Core.h>

/* Called on an optimised function, before code generation. */
void literals_load(LLVMValueRef function, const Target *);

#endif
