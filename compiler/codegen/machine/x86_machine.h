/* Code for x86-64. */
#ifndef JAXCC_X86_MACHINE_H
#define JAXCC_X86_MACHINE_H
#include "../host/machine.h"

extern const Machine x86_machine;
/* LLVM's passes, by -O: kernels are already vectorized, what remains is to clean up after their construction. */
extern const char *const clean_up[OPT_LEVELS];

#endif
