#include "loadmask.h"
#include "intrinsic.h"
#include "../emit/emit.h"
#include <assert.h>

/* Of a mask of more lanes than a register has, as of (c and a constant), LLVM 22 may find out late that a register's
   lanes are all false, and then loads all of them: outside the array, or into lanes that should have another value. It
   does not if the mask is computed in lanes as wide as those that are loaded. */

enum { MOST_DEPTH = 8 };

static LLVMTypeRef lanes_of(LLVMValueRef mask, LLVMTypeRef lane) {
    return LLVMVectorType(lane, LLVMGetVectorSize(LLVMTypeOf(mask)));
}
static LLVMValueRef places_of(LLVMValueRef shuffle) {
    LLVMTypeRef i32 = LLVMInt32TypeInContext(LLVMGetTypeContext(LLVMTypeOf(shuffle)));
    LLVMValueRef at[MAX_LANES];
    unsigned n = LLVMGetNumMaskElements(shuffle);
    assert(n <= MAX_LANES);
    for (unsigned i = 0; i < n; i++) {
        int place = LLVMGetMaskValue(shuffle, i);
        at[i] = place == LLVMGetUndefMaskElem() ? LLVMGetPoison(i32) : LLVMConstInt(i32, (unsigned)place, 0);
    }
    return LLVMConstVector(at, n);
}
/* The mask as integers, -1 for true. */
static LLVMValueRef signs(LLVMBuilderRef b, LLVMValueRef mask, LLVMTypeRef lane, int depth) {
    int op = LLVMIsAInstruction(mask) && depth < MOST_DEPTH ? (int)LLVMGetInstructionOpcode(mask) : 0;
    unsigned first = op == LLVMSelect;
    LLVMValueRef at[2];
    if (op != LLVMAnd && op != LLVMOr && op != LLVMXor && op != LLVMSelect && op != LLVMShuffleVector)
        return LLVMBuildSExt(b, mask, lanes_of(mask, lane), "");
    for (unsigned i = 0; i < 2; i++) at[i] = signs(b, LLVMGetOperand(mask, first + i), lane, depth + 1);
    if (op == LLVMSelect) return LLVMBuildSelect(b, LLVMGetOperand(mask, 0), at[0], at[1], "");
    if (op == LLVMShuffleVector) return LLVMBuildShuffleVector(b, at[0], at[1], places_of(mask), "");
    return LLVMBuildBinOp(b, (LLVMOpcode)op, at[0], at[1], "");
}
/* An integer as wide as a lane; NULL: the machine has no such masks, and LLVM loads lane by lane. */
static LLVMTypeRef integer_like(LLVMTypeRef vector) {
    LLVMContextRef cx = LLVMGetTypeContext(vector);
    LLVMTypeRef lane = LLVMGetElementType(vector);
    LLVMTypeKind kind = LLVMGetTypeKind(lane);
    unsigned bits = kind == LLVMFloatTypeKind     ? 32
                    : kind == LLVMDoubleTypeKind  ? 64
                    : kind == LLVMIntegerTypeKind ? LLVMGetIntTypeWidth(lane)
                                                  : 0;
    return bits == 32 || bits == 64 ? LLVMIntTypeInContext(cx, bits) : NULL;
}
static void in_block(LLVMBuilderRef b, LLVMBasicBlockRef block, unsigned masked_load) {
    enum { MASK = 1 }; /* the operands are the address, the mask and what other lanes have */
    for (LLVMValueRef i = LLVMGetFirstInstruction(block); i; i = LLVMGetNextInstruction(i)) {
        if (intrinsic_of(i) != masked_load || LLVMIsConstant(LLVMGetOperand(i, MASK))) continue;
        LLVMTypeRef lane = integer_like(LLVMTypeOf(i));
        if (!lane) continue;
        LLVMPositionBuilderBefore(b, i);
        LLVMValueRef x = signs(b, LLVMGetOperand(i, MASK), lane, 0);
        LLVMSetOperand(i, MASK, LLVMBuildICmp(b, LLVMIntSLT, x, LLVMConstNull(LLVMTypeOf(x)), ""));
    }
}
void loadmask_avoid(LLVMValueRef f) {
    unsigned masked_load = LLVMLookupIntrinsicID("llvm.masked.load", sizeof "llvm.masked.load" - 1);
    LLVMBuilderRef b = LLVMCreateBuilderInContext(LLVMGetModuleContext(LLVMGetGlobalParent(f)));
    for (LLVMBasicBlockRef k = LLVMGetFirstBasicBlock(f); k; k = LLVMGetNextBasicBlock(k)) in_block(b, k, masked_load);
    LLVMDisposeBuilder(b);
}
