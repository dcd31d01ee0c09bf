#include "x86_machine.h"
#include "bitselect.h"
#include "libcalls.h"
#include "literals.h"
#include "loadmask.h"
#include "opaque.h"
#include <llvm-c/Target.h>

static LLVMTargetMachineRef machine(const Target *t, uint32_t opt, char **why) {
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
static void add_attribute(LLVMValueRef f, const char *key, const char *value) {
    LLVMContextRef context = LLVMGetModuleContext(LLVMGetGlobalParent(f));
    LLVMAttributeRef a = LLVMCreateStringAttribute(context, key, (unsigned)strlen(key), value, (unsigned)strlen(value));
    LLVMAddAttributeAtIndex(f, LLVMAttributeFunctionIndex, a);
}
static void mark(const Target *t, LLVMValueRef f) {
    add_attribute(f, "tune-cpu", t->tune);
    if (t->vector_bytes == 64) add_attribute(f, "prefer-vector-width", "512");
}
static void amend(const Target *t, LLVMValueRef f) {
    if (t->masks)
        bitselect_avoid(f);
    else
        loadmask_avoid(f);
    libcalls_avoid(f, t);
    literals_load(f, t);
    opaque_hide(f);
}

const char *const clean_up[OPT_LEVELS] = {
    NULL, "always-inline,function(sroa,early-cse,simplifycfg)",
    "always-inline,function(sroa,early-cse,instcombine<no-verify-fixpoint>,simplifycfg,loop-mssa(licm),early-cse)",
    "always-inline,function(sroa,early-cse,instcombine<no-verify-fixpoint>,simplifycfg,loop-mssa(licm),gvn,"
    "dse)"};

const Machine x86_machine = {
    .kernels = {[STEP_LOOPS] = kernel_loops,
                [STEP_DOT] = kernel_dot,
                [STEP_CUM] = kernel_cumulative,
                [STEP_SCATTER] = kernel_scatter},
    .launch = launch_threads,
    .open = machine,
    .passes = clean_up,
    .mark = mark,
    .amend = amend,
};
