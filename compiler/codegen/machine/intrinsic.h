/* Calls of LLVM's intrinsics. */
#ifndef JAXCC_INTRINSIC_H
#define JAXCC_INTRINSIC_H
#include <llvm-c/Core.h>

/* The intrinsic that an instruction calls, by LLVMLookupIntrinsicID; 0: none. */
static inline unsigned intrinsic_of(LLVMValueRef i) {
    if (LLVMGetInstructionOpcode(i) != LLVMCall) return 0;
    LLVMValueRef f = LLVMGetCalledValue(i);
    return LLVMIsAFunction(f) ? LLVMGetIntrinsicID(f) : 0;
}

#endif
