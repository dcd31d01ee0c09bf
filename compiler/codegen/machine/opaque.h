/* Keeps LLVM's loop strength reduction, which would take up to a third of the time of code generation, to where it
   gains. */
#ifndef JAXCC_OPAQUE_H
#define JAXCC_OPAQUE_H
#include <llvm-c/Core.h>

/* Called on an optimised function, before code generation. Emits no instruction of the machine. */
void opaque_hide(LLVMValueRef function);

#endif
