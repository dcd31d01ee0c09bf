#include "x86_machine.h"
#include "bitselect.h"
#include "libcalls.h"
#include "literals.h"
#include "loadmask.h"
#include <llvm-c/Support.h>
#include <llvm-c/Target.h>
#include <pthread.h>

LLVMTargetMachineRef x86_machine_open(const Target *t, uint32_t opt, char **why) {
    static const LLVMCodeGenOptLevel level[OPT_LEVELS] = {LLVMCodeGenLevelLess, LLVMCodeGenLevelDefault,
                                                          LLVMCodeGenLevelDefault, LLVMCodeGenLevelAggressive};
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser();
    LLVMTargetRef target;
    if (LLVMGetTargetFromTriple(t->triple, &target, why)) return NULL;
    return LLVMCreateTargetMachine(target, t->triple, t->cpu, t->features, level[opt], LLVMRelocPIC,
                                   LLVMCodeModelDefault);
}
/* Loop strength reduction is a fifth of the time of code generation and finds little: addresses differ in constants
   alone (emit/fold.c, clean_up_split). LLVM's options are the process's, so this is not for a library with kernels of
   GPUs. */
static void no_strength_reduction(void) {
    LLVMParseCommandLineOptions(2, (const char *const[]){"jaxcc", "-disable-lsr"}, NULL);
}
static LLVMTargetMachineRef machine(const Target *t, uint32_t opt, char **why) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, no_strength_reduction);
    return x86_machine_open(t, opt, why);
}
static void add_attribute(LLVMValueRef f, const char *key, const char *value) {
    LLVMContextRef context = LLVMGetModuleContext(LLVMGetGlobalParent(f));
    LLVMAttributeRef a = LLVMCreateStringAttribute(context, key, (unsigned)strlen(key), value, (unsigned)strlen(value));
    LLVMAddAttributeAtIndex(f, LLVMAttributeFunctionIndex, a);
}
static void mark(const Target *t, LLVMValueRef f) {
    add_attribute(f, "tune-cpu", t->tune);
    if (t->vector_bytes == 64) add_attribute(f, "prefer-vector-width", "512");
}
/* Bytes that the caller aligns the stack to, and of a lane; values of a vector register in a function that spills. */
enum { STACK_ALIGN = 16, LANE_BYTES = 4, SPILLING = 400 };
/* Registers that are spilled lie across two lines of the caches unless the stack is aligned as they are, which costs a
   register: FFTs of 65,536 points in 297 us, not 311 to 351, as the caller's stack lies. */
static bool probably_spills(const Target *t, LLVMValueRef f) {
    uint64_t bytes = 0;
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
        for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i))
            if (LLVMGetTypeKind(LLVMTypeOf(i)) == LLVMVectorTypeKind)
                bytes += LANE_BYTES * LLVMGetVectorSize(LLVMTypeOf(i));
    return bytes >= (uint64_t)SPILLING * t->vector_bytes;
}
static void amend(const Target *t, LLVMValueRef f) {
    if (t->vector_bytes > STACK_ALIGN && probably_spills(t, f)) add_attribute(f, "stackrealign", "");
    if (t->masks)
        bitselect_avoid(f);
    else
        loadmask_avoid(f);
    libcalls_avoid(f, t);
    literals_load(f, t);
}

/* With `split` between simplifying and moving code out of loops. */
#define CLEAN "always-inline,function(sroa,early-cse,"
#define SIMPLIFY CLEAN "instcombine<no-verify-fixpoint>,simplifycfg,"
#define PASSES(split)                                                                                                  \
    {                                                                                                                  \
        NULL,                                                                                                          \
        CLEAN "simplifycfg)",                                                                                          \
        SIMPLIFY split "loop-mssa(licm),early-cse)",                                                                   \
        SIMPLIFY split "loop-mssa(licm),gvn,dse)",                                                                     \
    }
const char *const clean_up[OPT_LEVELS] = PASSES("");
static const char *const clean_up_split[OPT_LEVELS] = PASSES("separate-const-offset-from-gep<lower-gep>,early-cse,");

const Machine x86_machine = {
    .kernels = {[STEP_LOOPS] = kernel_loops,
                [STEP_DOT] = kernel_dot,
                [STEP_CUM] = kernel_cumulative,
                [STEP_SCATTER] = kernel_scatter},
    .before = {[STEP_CUM] = kernel_cumulative_totals},
    .launch = launch_threads,
    .open = machine,
    .passes = clean_up_split,
    .mark = mark,
    .amend = amend,
};
