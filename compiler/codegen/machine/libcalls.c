#include <assert.h>
#include "libcalls.h"
#include "intrinsic.h"

/* A host may define its own fmod or floor, which a library must not call. */

typedef struct {
    const char *operation; /* of LLVM */
    const char *function;  /* of the runtime, for f64; with an f appended for f32 */
    unsigned id;           /* of the intrinsic; 0: an instruction */
} Row;
enum { NROWS = 7 };

typedef struct {
    Row rows[NROWS];
    unsigned n;
    LLVMModuleRef module;
    LLVMBuilderRef b;
} Calls;

static void add_rows(Calls *c, const Target *t) {
    const struct {
        Row row;
        bool instruction; /* of the machine */
    } all[NROWS] = {
        {{"", "jaxcc_rt_fmod", 0}, false},
        {{"llvm.fma", "jaxcc_rt_fma", 0}, t->fma},
        {{"llvm.floor", "jaxcc_rt_floor", 0}, t->rounds},
        {{"llvm.ceil", "jaxcc_rt_ceil", 0}, t->rounds},
        {{"llvm.trunc", "jaxcc_rt_trunc", 0}, t->rounds},
        {{"llvm.round", "jaxcc_rt_round", 0}, t->rounds},
        {{"llvm.roundeven", "jaxcc_rt_roundeven", 0}, t->rounds},
    };
    for (unsigned i = 0; i < NROWS; i++) {
        if (all[i].instruction) continue;
        Row *r = &c->rows[c->n++];
        *r = all[i].row;
        if (*r->operation) r->id = LLVMLookupIntrinsicID(r->operation, strlen(r->operation));
    }
}

/* The row for an instruction; NULL: none. */
static const Row *row_of(const Calls *c, LLVMValueRef i) {
    if (LLVMGetInstructionOpcode(i) == LLVMFRem) return &c->rows[0];
    unsigned id = intrinsic_of(i);
    for (unsigned k = 0; k < c->n && id; k++)
        if (c->rows[k].id == id) return &c->rows[k];
    return NULL;
}

enum { MOST_OPERANDS = 3 };

static LLVMValueRef call(const Calls *c, const Row *r, LLVMTypeRef t, LLVMValueRef *x, unsigned n) {
    enum { MOST_NAME = 32 };
    char name[MOST_NAME];
    int length = snprintf(name, sizeof name, "%s%s", r->function, LLVMGetTypeKind(t) == LLVMFloatTypeKind ? "f" : "");
    assert(length < MOST_NAME && n <= MOST_OPERANDS);
    LLVMTypeRef type = LLVMFunctionType(t, (LLVMTypeRef[MOST_OPERANDS]){t, t, t}, n, 0);
    LLVMValueRef f = LLVMGetNamedFunction(c->module, name);
    if (!f) f = LLVMAddFunction(c->module, name, type);
    LLVMSetVisibility(f, LLVMHiddenVisibility);
    return LLVMBuildCall2(c->b, type, f, x, n, "");
}

static void replace(const Calls *c, const Row *r, LLVMValueRef i) {
    LLVMTypeRef t = LLVMTypeOf(i), index = LLVMInt32TypeInContext(LLVMGetTypeContext(t));
    bool vector = LLVMGetTypeKind(t) == LLVMVectorTypeKind;
    LLVMTypeRef lane = vector ? LLVMGetElementType(t) : t;
    unsigned n = r->id ? LLVMGetNumArgOperands(i) : 2, w = vector ? LLVMGetVectorSize(t) : 1;
    LLVMPositionBuilderBefore(c->b, i);
    LLVMValueRef result = vector ? LLVMGetPoison(t) : NULL, x[MOST_OPERANDS];
    for (unsigned l = 0; l < w; l++) {
        LLVMValueRef at = LLVMConstInt(index, l, 0);
        for (unsigned k = 0; k < n; k++) {
            x[k] = LLVMGetOperand(i, k);
            if (vector) x[k] = LLVMBuildExtractElement(c->b, x[k], at, "");
        }
        LLVMValueRef y = call(c, r, lane, x, n);
        result = vector ? LLVMBuildInsertElement(c->b, result, y, at, "") : y;
    }
    LLVMReplaceAllUsesWith(i, result);
    LLVMInstructionEraseFromParent(i);
}

static void in_block(const Calls *c, LLVMBasicBlockRef block) {
    for (LLVMValueRef i = LLVMGetFirstInstruction(block), next; i; i = next) {
        next = LLVMGetNextInstruction(i);
        const Row *r = row_of(c, i);
        if (r) replace(c, r, i);
    }
}

void libcalls_avoid(LLVMValueRef f, const Target *t) {
    LLVMModuleRef m = LLVMGetGlobalParent(f);
    Calls c = {.module = m, .b = LLVMCreateBuilderInContext(LLVMGetModuleContext(m))};
    add_rows(&c, t);
    for (LLVMBasicBlockRef k = LLVMGetFirstBasicBlock(f); k; k = LLVMGetNextBasicBlock(k)) in_block(&c, k);
    LLVMDisposeBuilder(c.b);
}
