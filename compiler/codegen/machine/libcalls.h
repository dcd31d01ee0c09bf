/* Libraries do not call libm where the runtime has the function: LLVM's calls of libm become calls of the runtime. */
#ifndef JAXCC_LIBCALLS_H
#define JAXCC_LIBCALLS_H
#include "../emit/emit.h"
#include <llvm-c/Core.h>

/* Called on an optimised function, before code generation. */
void libcalls_avoid(LLVMValueRef function, const Target *);

#endif
