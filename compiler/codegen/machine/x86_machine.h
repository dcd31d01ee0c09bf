/* Code for x86-64. */
#ifndef JAXCC_X86_MACHINE_H
#define JAXCC_X86_MACHINE_H
#include "../host/machine.h"

extern const Machine x86_machine;
/* As x86_machine.open, but LLVM's code generation has all its passes. */
LLVMTargetMachineRef x86_machine_open(const Target *, uint32_t opt, char **why);
/* LLVM's passes, by -O: kernels are already vectorized, what remains is to clean up after their construction. */
extern const char *const clean_up[OPT_LEVELS];

#endif
