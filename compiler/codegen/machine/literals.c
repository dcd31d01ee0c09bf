#include "literals.h"
#include "intrinsic.h"
#include <assert.h>

/* LLVM takes literals out of loops into registers before it orders the instructions. If a loop has more of them than
   there are registers, none seems left: the values of one vector are computed to the end before those of the next
   begin, each waiting for the one before, and the literals are read in the loop after all. Loads from variables, which
   the loop's stores might change, stay where they are. Measured on AVX2, where one instruction loads a number into all
   lanes: log of f32 1.26 times as fast, polynomials of 25 terms and more 1.4 to 2.9 times. Vectors of one register
   have nothing to be computed beside each other. */

enum { MOST_REGISTERS = 32, LEAST_BYTES = 32 /* of a register that is loaded so */ };

typedef struct {
    LLVMModuleRef module;
    LLVMBuilderRef b;
    LLVMTypeRef i32;
    unsigned fma;   /* the intrinsic */
    uint32_t bytes; /* of a vector register */
} Literals;

static uint32_t lane_bytes(LLVMTypeRef vector) {
    return LLVMGetTypeKind(LLVMGetElementType(vector)) == LLVMDoubleTypeKind ? 8 : 4;
}
/* The number that all lanes have; NULL: not a vector of one float, or of one register. Zero needs none. */
static LLVMValueRef lane_of(const Literals *l, LLVMValueRef v) {
    LLVMTypeRef t = LLVMTypeOf(v);
    if (!LLVMIsConstant(v) || LLVMGetTypeKind(t) != LLVMVectorTypeKind || LLVMIsNull(v)) return NULL;
    LLVMTypeKind lane = LLVMGetTypeKind(LLVMGetElementType(t));
    if (lane != LLVMFloatTypeKind && lane != LLVMDoubleTypeKind) return NULL;
    unsigned n = LLVMGetVectorSize(t);
    LLVMValueRef first = LLVMGetAggregateElement(v, 0);
    if (n * lane_bytes(t) <= l->bytes || !first || !LLVMIsAConstantFP(first)) return NULL;
    for (unsigned i = 1; i < n; i++)
        if (LLVMGetAggregateElement(v, i) != first) return NULL;
    return first;
}
/* What long computations consist of; divisions and roots wait for themselves, not for registers. */
static bool computes(const Literals *l, LLVMValueRef i) {
    switch (LLVMGetInstructionOpcode(i)) {
    case LLVMFAdd:
    case LLVMFSub:
    case LLVMFMul:
    case LLVMFCmp:
    case LLVMSelect: return true;
    default: return intrinsic_of(i) == l->fma;
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
    LLVMSetLinkage(variable, LLVMPrivateLinkage);
    LLVMSetInitializer(variable, lane_of(l, literal));
    LLVMValueRef x = LLVMBuildLoad2(l->b, lane, variable, ""), none = LLVMGetPoison(t);
    LLVMValueRef first = LLVMBuildInsertElement(l->b, none, x, LLVMConstNull(l->i32), "");
    return LLVMBuildShuffleVector(l->b, first, none, LLVMConstNull(LLVMVectorType(l->i32, LLVMGetVectorSize(t))), "");
}
static void replace(const Literals *l, LLVMValueRef i) {
    LLVMPositionBuilderBefore(l->b, i);
    for (uint32_t o = 0, n = operands_of(i); o < n; o++) {
        LLVMValueRef v = LLVMGetOperand(i, o);
        if (lane_of(l, v)) LLVMSetOperand(i, o, load(l, v));
    }
}
/* More literals than registers? Twice as many in f64: of no more than that exp takes 1.06 times as long, log 1.17. */
static bool has_more(const Literals *l, LLVMBasicBlockRef block, uint32_t registers) {
    LLVMValueRef seen[2 * MOST_REGISTERS];
    uint32_t n = 0;
    assert(registers <= MOST_REGISTERS);
    for (LLVMValueRef i = LLVMGetFirstInstruction(block); i; i = LLVMGetNextInstruction(i)) {
        for (uint32_t o = 0, k, operands = computes(l, i) ? operands_of(i) : 0; o < operands; o++) {
            LLVMValueRef v = LLVMGetOperand(i, o);
            for (k = 0; k < n && seen[k] != v;) k++;
            if (k < n || !lane_of(l, v)) continue;
            if (n >= registers * lane_bytes(LLVMTypeOf(v)) / 4) return true;
            seen[n++] = v;
        }
    }
    return false;
}
/* Its only successor is a condition that may branch back to it: it is a loop's body, whole. */
static bool is_body(LLVMBasicBlockRef block) {
    LLVMValueRef end = LLVMGetBasicBlockTerminator(block);
    if (LLVMGetNumSuccessors(end) != 1) return false;
    LLVMValueRef condition = LLVMGetBasicBlockTerminator(LLVMGetSuccessor(end, 0));
    for (unsigned s = 0, n = LLVMGetNumSuccessors(condition); s < n; s++)
        if (LLVMGetSuccessor(condition, s) == block) return true;
    return false;
}
void literals_load(LLVMValueRef f, const Target *t) {
    if (t->vector_bytes < LEAST_BYTES) return;
    LLVMModuleRef module = LLVMGetGlobalParent(f);
    LLVMContextRef context = LLVMGetModuleContext(module);
    Literals l = {.module = module,
                  .b = LLVMCreateBuilderInContext(context),
                  .i32 = LLVMInt32TypeInContext(context),
                  .fma = LLVMLookupIntrinsicID("llvm.fma", sizeof "llvm.fma" - 1),
                  .bytes = t->vector_bytes};
    for (LLVMBasicBlockRef k = LLVMGetFirstBasicBlock(f); k; k = LLVMGetNextBasicBlock(k)) {
        if (!is_body(k) || !has_more(&l, k, t->registers)) continue;
        for (LLVMValueRef i = LLVMGetFirstInstruction(k); i; i = LLVMGetNextInstruction(i))
            if (computes(&l, i)) replace(&l, i);
    }
    LLVMDisposeBuilder(l.b);
}
