#include "opaque.h"
#include "intrinsic.h"
#include "../../arena.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* Strength reduction tries the ways in which an address is a sum of terms that the loops around it step, of which there
   are many where units, tiles and rows of a tile are added up. Only innermost loops gain, and not beside calls; the
   index of any other loop is therefore hidden from it. */

typedef struct {
    LLVMBasicBlockRef block;
    uint32_t place; /* in the function */
} Place;
typedef struct {
    Arena *arena;
    uint32_t nblocks;
    LLVMBasicBlockRef *blocks;
    Place *places;  /* by address */
    uint32_t *last; /* by place, of a loop's header: the place of its last block; of others: 0 */
    LLVMBuilderRef b;
    LLVMValueRef expect; /* llvm.expect.i64, which code generation replaces by its operand after that pass */
    LLVMTypeRef expect_type, i64;
} Loops;

/* ---- which loops there are: a branch back to a block above */
static int by_address(const void *x, const void *y) {
    uintptr_t a = (uintptr_t)((const Place *)x)->block, b = (uintptr_t)((const Place *)y)->block;
    return (a > b) - (a < b);
}
static uint32_t place_of(const Loops *l, LLVMBasicBlockRef block) {
    const Place *p = bsearch(&(Place){block, 0}, l->places, l->nblocks, sizeof *l->places, by_address);
    return p->place;
}
static void find_loops(Loops *l) {
    for (uint32_t i = 0; i < l->nblocks; i++) {
        LLVMValueRef end = LLVMGetBasicBlockTerminator(l->blocks[i]);
        for (unsigned s = 0, n = LLVMGetNumSuccessors(end); s < n; s++) {
            uint32_t to = place_of(l, LLVMGetSuccessor(end, s));
            if (to <= i) l->last[to] = i;
        }
    }
}
static bool is_innermost(const Loops *l, uint32_t header) {
    for (uint32_t i = header + 1; i <= l->last[header]; i++)
        if (l->last[i]) return false;
    return true;
}
static bool is_call(LLVMValueRef i) { return LLVMGetInstructionOpcode(i) == LLVMCall && !intrinsic_of(i); }
static bool calls(const Loops *l, uint32_t header) {
    for (uint32_t k = header; k <= l->last[header]; k++)
        for (LLVMValueRef i = LLVMGetFirstInstruction(l->blocks[k]); i; i = LLVMGetNextInstruction(i))
            if (is_call(i)) return true;
    return false;
}

/* ---- indices */
/* What adds to it for the next iteration; NULL: it is no index. */
static LLVMValueRef step_of(const Loops *l, LLVMValueRef phi) {
    if (LLVMTypeOf(phi) != l->i64) return NULL;
    for (unsigned i = 0, n = LLVMCountIncoming(phi); i < n; i++) {
        LLVMValueRef next = LLVMGetIncomingValue(phi, i);
        if (LLVMIsABinaryOperator(next) && LLVMGetInstructionOpcode(next) == LLVMAdd &&
            (LLVMGetOperand(next, 0) == phi || LLVMGetOperand(next, 1) == phi))
            return next;
    }
    return NULL;
}
static void replace_in(LLVMValueRef user, LLVMValueRef v, LLVMValueRef by) {
    for (int i = 0, n = LLVMGetNumOperands(user); i < n; i++)
        if (LLVMGetOperand(user, (unsigned)i) == v) LLVMSetOperand(user, (unsigned)i, by);
}
/* The loop's own uses of it remain: its step, and what its header compares. */
static void hide_index(Loops *l, LLVMBasicBlockRef header, LLVMValueRef phi, LLVMValueRef step) {
    LLVMValueRef first = LLVMGetFirstInstruction(header);
    while (LLVMIsAPHINode(first)) first = LLVMGetNextInstruction(first);
    LLVMPositionBuilderBefore(l->b, first);
    LLVMValueRef x[] = {phi, LLVMConstInt(l->i64, 0, 0)};
    LLVMValueRef hidden = LLVMBuildCall2(l->b, l->expect_type, l->expect, x, 2, "");
    for (LLVMUseRef u = LLVMGetFirstUse(phi), next; u; u = next) {
        LLVMValueRef user = LLVMGetUser(u);
        next = LLVMGetNextUse(u);
        while (next && LLVMGetUser(next) == user) next = LLVMGetNextUse(next);
        bool compares = LLVMIsAICmpInst(user) && LLVMGetInstructionParent(user) == header;
        if (user != step && user != hidden && !compares) replace_in(user, phi, hidden);
    }
}
static void hide_indices(Loops *l, LLVMBasicBlockRef header) {
    for (LLVMValueRef i = LLVMGetFirstInstruction(header); LLVMIsAPHINode(i); i = LLVMGetNextInstruction(i)) {
        LLVMValueRef step = step_of(l, i);
        if (step) hide_index(l, header, i, step);
    }
}

static void prepare(Loops *l, LLVMValueRef f) {
    LLVMModuleRef module = LLVMGetGlobalParent(f);
    LLVMContextRef context = LLVMGetModuleContext(module);
    unsigned id = LLVMLookupIntrinsicID("llvm.expect", sizeof "llvm.expect" - 1);
    l->i64 = LLVMInt64TypeInContext(context);
    l->expect = LLVMGetIntrinsicDeclaration(module, id, &l->i64, 1);
    l->expect_type = LLVMIntrinsicGetType(context, id, &l->i64, 1);
    l->b = LLVMCreateBuilderInContext(context);
    l->nblocks = LLVMCountBasicBlocks(f);
    l->arena = arena_open();
    l->blocks = arena_new(l->arena, LLVMBasicBlockRef, l->nblocks);
    l->places = arena_new(l->arena, Place, l->nblocks);
    l->last = arena_new(l->arena, uint32_t, l->nblocks);
    LLVMGetBasicBlocks(f, l->blocks);
    for (uint32_t i = 0; i < l->nblocks; i++) l->places[i] = (Place){l->blocks[i], i};
    qsort(l->places, l->nblocks, sizeof *l->places, by_address);
}
static void release(Loops *l) {
    LLVMDisposeBuilder(l->b);
    arena_close(l->arena);
}
void opaque_hide(LLVMValueRef f) {
    Loops l;
    prepare(&l, f);
    find_loops(&l);
    for (uint32_t i = 0; i < l.nblocks; i++) {
        if (l.last[i] && (!is_innermost(&l, i) || calls(&l, i))) hide_indices(&l, l.blocks[i]);
    }
    release(&l);
}
