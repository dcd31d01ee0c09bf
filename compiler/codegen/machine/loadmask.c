#include "loadmask.h"
#include <stdbool.h>
#include <string.h>

/* Of a mask of more lanes than a register has, as of (c and a constant), LLVM 22 may find out late that a register's lanes
   are all false, and then loads all of them: outside the array, or into lanes that should have another value. It does
   not if the mask is computed in lanes as wide as those that are loaded. */

enum { MOST_DEPTH = 4 };

static LLVMValueRef signs(LLVMBuilderRef b, LLVMValueRef mask, LLVMTypeRef lanes, int depth) {
    LLVMOpcode op = LLVMIsAInstruction(mask) && depth < MOST_DEPTH ? LLVMGetInstructionOpcode(mask) : 0;
    LLVMValueRef at[2];
    switch ((int)op) {
    case LLVMAnd:
    case LLVMOr:
    case LLVMXor:
        for (unsigned i = 0; i < 2; i++) at[i] = signs(b, LLVMGetOperand(mask, i), lanes, depth + 1);
        return LLVMBuildBinOp(b, op, at[0], at[1], "");
    case LLVMSelect:
        for (unsigned i = 0; i < 2; i++) at[i] = signs(b, LLVMGetOperand(mask, i + 1), lanes, depth + 1);
        return LLVMBuildSelect(b, LLVMGetOperand(mask, 0), at[0], at[1], "");
    default: return LLVMBuildSExt(b, mask, lanes, "");
    }
}
/* Integers as wide as the lanes; NULL: the machine has no such masks, and LLVM loads lane by lane. */
static LLVMTypeRef lanes_like(LLVMTypeRef vector) {
    LLVMContextRef cx = LLVMGetTypeContext(vector);
    LLVMTypeRef lane = LLVMGetElementType(vector);
    LLVMTypeKind kind = LLVMGetTypeKind(lane);
    unsigned bits = kind == LLVMFloatTypeKind     ? 32
                    : kind == LLVMDoubleTypeKind  ? 64
                    : kind == LLVMIntegerTypeKind ? LLVMGetIntTypeWidth(lane)
                                                  : 0;
    return bits == 32 || bits == 64 ? LLVMVectorType(LLVMIntTypeInContext(cx, bits), LLVMGetVectorSize(vector)) : NULL;
}
static bool is_masked_load(LLVMValueRef i) {
    static const char name[] = "llvm.masked.load";
    if (LLVMGetInstructionOpcode(i) != LLVMCall || !LLVMIsAFunction(LLVMGetCalledValue(i))) return false;
    return LLVMGetIntrinsicID(LLVMGetCalledValue(i)) == LLVMLookupIntrinsicID(name, sizeof name - 1);
}
static void in_block(LLVMBuilderRef b, LLVMBasicBlockRef block) {
    enum { MASK = 1 }; /* the operands are the address, the mask and what other lanes have */
    for (LLVMValueRef i = LLVMGetFirstInstruction(block); i; i = LLVMGetNextInstruction(i)) {
        if (!is_masked_load(i) || LLVMIsConstant(LLVMGetOperand(i, MASK))) continue;
        LLVMTypeRef lanes = lanes_like(LLVMTypeOf(i));
        if (!lanes) continue;
        LLVMPositionBuilderBefore(b, i);
        LLVMValueRef x = signs(b, LLVMGetOperand(i, MASK), lanes, 0);
        LLVMSetOperand(i, MASK, LLVMBuildICmp(b, LLVMIntSLT, x, LLVMConstNull(lanes), ""));
    }
}
void loadmask_avoid(LLVMValueRef f) {
    LLVMBuilderRef b = LLVMCreateBuilderInContext(LLVMGetModuleContext(LLVMGetGlobalParent(f)));
    for (LLVMBasicBlockRef k = LLVMGetFirstBasicBlock(f); k; k = LLVMGetNextBasicBlock(k)) in_block(b, k);
    LLVMDisposeBuilder(b);
}
