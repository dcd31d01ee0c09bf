#include "literals.h"
#include <assert.h>
#include <stdbool.h>

/* LLVM takes literals out of loops into registers before it orders the instructions. If the loop has more of them than
   there are registers, none seems left: the values of one vector are computed to the end before those of the next
   begin, each waiting for the one before, and the literals are read in the loop after all. Loads from variables, which
   the loop's stores might change, stay where they are: measured on AVX2, 1.05 to 1.3 times as fast. */

enum { MOST_REGISTERS = 32 }; /* for vectors */

typedef struct {
    LLVMModuleRef module;
    LLVMBuilderRef b;
    LLVMTypeRef i32;
} Literals;

/* The number that all lanes have; NULL: not a vector of one float. Zero needs no register. */
static LLVMValueRef lane_of(LLVMValueRef v) {
    LLVMTypeRef t = LLVMTypeOf(v);
    if (!LLVMIsConstant(v) || LLVMGetTypeKind(t) != LLVMVectorTypeKind || LLVMIsNull(v)) return NULL;
    LLVMTypeKind lane = LLVMGetTypeKind(LLVMGetElementType(t));
    if (lane != LLVMFloatTypeKind && lane != LLVMDoubleTypeKind) return NULL;
    LLVMValueRef first = LLVMGetAggregateElement(v, 0);
    if (!first || !LLVMIsAConstantFP(first)) return NULL;
    for (unsigned i = 1, n = LLVMGetVectorSize(t); i < n; i++)
        if (LLVMGetAggregateElement(v, i) != first) return NULL;
    return first;
}
static bool computes(LLVMValueRef i) {
    switch (LLVMGetInstructionOpcode(i)) {
    case LLVMFAdd:
    case LLVMFSub:
    case LLVMFMul:
    case LLVMFCmp:
    case LLVMSelect: return true;
    case LLVMCall: {
        LLVMValueRef f = LLVMGetCalledValue(i);
        return LLVMIsAFunction(f) && LLVMGetIntrinsicID(f) == LLVMLookupIntrinsicID("llvm.fma", sizeof "llvm.fma" - 1);
    }
    default: return false;
    }
}
static uint32_t operands_of(LLVMValueRef i) {
    return LLVMGetInstructionOpcode(i) == LLVMCall ? LLVMGetNumArgOperands(i) : (uint32_t)LLVMGetNumOperands(i);
}
/* Before the instruction at which the builder is. Each use has a variable of its own: one load for several would take a
   register from the first to the last. */
static LLVMValueRef load(const Literals *l, LLVMValueRef literal) {
    LLVMTypeRef t = LLVMTypeOf(literal), lane = LLVMGetElementType(t);
    LLVMValueRef variable = LLVMAddGlobal(l->module, lane, "literal");
    LLVMSetLinkage(variable, LLVMInternalLinkage);
    LLVMSetInitializer(variable, lane_of(literal));
    LLVMValueRef x = LLVMBuildLoad2(l->b, lane, variable, ""), none = LLVMGetPoison(t);
    LLVMValueRef first = LLVMBuildInsertElement(l->b, none, x, LLVMConstNull(l->i32), "");
    return LLVMBuildShuffleVector(l->b, first, none, LLVMConstNull(LLVMVectorType(l->i32, LLVMGetVectorSize(t))), "");
}
static void replace(const Literals *l, LLVMValueRef i) {
    LLVMPositionBuilderBefore(l->b, i);
    for (uint32_t o = 0, n = operands_of(i); o < n; o++) {
        LLVMValueRef v = LLVMGetOperand(i, o);
        if (lane_of(v)) LLVMSetOperand(i, o, load(l, v));
    }
}
/* How many literals the block has, counted up to `most`. */
static uint32_t count(LLVMBasicBlockRef block, uint32_t most) {
    LLVMValueRef seen[MOST_REGISTERS + 1];
    uint32_t n = 0;
    assert(most <= MOST_REGISTERS + 1);
    for (LLVMValueRef i = LLVMGetFirstInstruction(block); i && n < most; i = LLVMGetNextInstruction(i)) {
        for (uint32_t o = 0, k, operands = computes(i) ? operands_of(i) : 0; o < operands && n < most; o++) {
            LLVMValueRef v = LLVMGetOperand(i, o);
            for (k = 0; k < n && seen[k] != v;) k++;
            if (k == n && lane_of(v)) seen[n++] = v;
        }
    }
    return n;
}
/* Is it all of a loop but the condition? */
static bool is_body(LLVMBasicBlockRef block) {
    LLVMValueRef end = LLVMGetBasicBlockTerminator(block);
    if (LLVMGetNumSuccessors(end) != 1) return false;
    LLVMValueRef condition = LLVMGetBasicBlockTerminator(LLVMGetSuccessor(end, 0));
    for (unsigned s = 0, n = LLVMGetNumSuccessors(condition); s < n; s++)
        if (LLVMGetSuccessor(condition, s) == block) return true;
    return false;
}
void literals_load(LLVMValueRef f, uint32_t registers) {
    LLVMModuleRef module = LLVMGetGlobalParent(f);
    LLVMContextRef context = LLVMGetModuleContext(module);
    Literals l = {.module = module, .b = LLVMCreateBuilderInContext(context), .i32 = LLVMInt32TypeInContext(context)};
    uint32_t most = registers + 1;
    for (LLVMBasicBlockRef k = LLVMGetFirstBasicBlock(f); k; k = LLVMGetNextBasicBlock(k)) {
        if (!is_body(k) || count(k, most) < most) continue;
        for (LLVMValueRef i = LLVMGetFirstInstruction(k); i; i = LLVMGetNextInstruction(i))
            if (computes(i)) replace(&l, i);
    }
    LLVMDisposeBuilder(l.b);
}
