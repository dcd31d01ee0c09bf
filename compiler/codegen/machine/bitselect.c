#include "bitselect.h"

/* select(k, r, (x & c) | (r & ~c)) with a constant c in all lanes of 32 or 64 bits becomes one masked vpternlog, of
   which LLVM 22 permutes the operands but not the table of results, so that r, c and x are confused. A selection
   between floats never becomes part of that instruction. */

static LLVMTypeRef float_lanes(LLVMTypeRef t) {
    if (LLVMGetTypeKind(t) != LLVMVectorTypeKind) return NULL;
    LLVMTypeRef lane = LLVMGetElementType(t);
    if (LLVMGetTypeKind(lane) != LLVMIntegerTypeKind) return NULL;
    LLVMContextRef cx = LLVMGetTypeContext(t);
    switch (LLVMGetIntTypeWidth(lane)) {
    case 32: return LLVMVectorType(LLVMFloatTypeInContext(cx), LLVMGetVectorSize(t));
    case 64: return LLVMVectorType(LLVMDoubleTypeInContext(cx), LLVMGetVectorSize(t));
    default: return NULL;
    }
}
/* May it select bits? A sum may, if its operands have no common bit. */
static bool mixes_bits(LLVMValueRef v) {
    if (!LLVMIsAInstruction(v)) return false;
    LLVMOpcode op = LLVMGetInstructionOpcode(v);
    return op == LLVMOr || op == LLVMXor || op == LLVMAdd;
}
static void select_floats(LLVMBuilderRef b, LLVMValueRef select, LLVMTypeRef floats) {
    LLVMPositionBuilderBefore(b, select);
    LLVMValueRef yes = LLVMBuildBitCast(b, LLVMGetOperand(select, 1), floats, "");
    LLVMValueRef no = LLVMBuildBitCast(b, LLVMGetOperand(select, 2), floats, "");
    LLVMValueRef chosen = LLVMBuildSelect(b, LLVMGetOperand(select, 0), yes, no, "");
    LLVMReplaceAllUsesWith(select, LLVMBuildBitCast(b, chosen, LLVMTypeOf(select), ""));
    LLVMInstructionEraseFromParent(select);
}
static void in_block(LLVMBuilderRef b, LLVMBasicBlockRef block) {
    for (LLVMValueRef i = LLVMGetFirstInstruction(block), next; i; i = next) {
        next = LLVMGetNextInstruction(i);
        if (LLVMGetInstructionOpcode(i) != LLVMSelect) continue;
        LLVMTypeRef floats = float_lanes(LLVMTypeOf(i));
        if (floats && (mixes_bits(LLVMGetOperand(i, 1)) || mixes_bits(LLVMGetOperand(i, 2))))
            select_floats(b, i, floats);
    }
}
void bitselect_avoid(LLVMValueRef f) {
    LLVMBuilderRef b = LLVMCreateBuilderInContext(LLVMGetModuleContext(LLVMGetGlobalParent(f)));
    for (LLVMBasicBlockRef k = LLVMGetFirstBasicBlock(f); k; k = LLVMGetNextBasicBlock(k)) in_block(b, k);
    LLVMDisposeBuilder(b);
}
