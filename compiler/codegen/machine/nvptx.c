#include "nvptx.h"
#include "../../../runtime/cuda.h"
#include "../../options.h"
#include "../plan/threads.h"
#include "x86_machine.h"
#include <llvm-c/Target.h>

/* Compute capabilities that LLVM 22 knows, from 8.0 on: tensor cores with bf16, asynchronous copies, redux. */
static const Device devices[] = {
    {"sm_80", 80, JAXCC_RT_CUDA_LATER},   {"sm_86", 86, JAXCC_RT_CUDA_LATER},   {"sm_87", 87, JAXCC_RT_CUDA_LATER},
    {"sm_89", 89, JAXCC_RT_CUDA_LATER},   {"sm_90", 90, JAXCC_RT_CUDA_LATER},   {"sm_90a", 90, JAXCC_RT_CUDA_SAME},
    {"sm_100", 100, JAXCC_RT_CUDA_LATER}, {"sm_100a", 100, JAXCC_RT_CUDA_SAME}, {"sm_103", 103, JAXCC_RT_CUDA_LATER},
    {"sm_120", 120, JAXCC_RT_CUDA_LATER}, {"sm_121", 121, JAXCC_RT_CUDA_LATER},
};

/* ---- the machine */
static const Target *host_of(const Target *t) {
    static Target host; /* any x86-64 */
    host = x86_levels[0];
    return &host;
}
static LLVMTargetMachineRef open_host(const Target *t, uint32_t opt, char **why) {
    return x86_machine.open(host_of(t), opt, why);
}
static LLVMTargetMachineRef open_device(const Target *t, uint32_t opt, char **why) {
    static const char triple[] = "nvptx64-nvidia-cuda";
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    LLVMTargetRef target;
    if (LLVMGetTargetFromTriple(triple, &target, why)) return NULL;
    LLVMCodeGenOptLevel level = opt == OPT_LEVELS - 1 ? LLVMCodeGenLevelAggressive : LLVMCodeGenLevelDefault;
    return LLVMCreateTargetMachine(target, triple, t->device->name, "", level, LLVMRelocPIC, LLVMCodeModelDefault);
}
static void mark(const Target *t, LLVMValueRef f) { x86_machine.mark(host_of(t), f); }
static void amend(const Target *t, LLVMModuleRef m) { x86_machine.amend(host_of(t), m); }

static const Machine nvptx_machine = {
    .kernels = {[STEP_LOOPS] = device_loops,
                [STEP_DOT] = device_dot,
                [STEP_CUM] = device_cumulative,
                [STEP_SCATTER] = device_scatter},
    .launch = launch_device,
    .open = open_host,
    .open_device = open_device,
    .passes = {NULL, "function(sroa,early-cse,simplifycfg)",
               "function(sroa,early-cse,instcombine<no-verify-fixpoint>,simplifycfg,loop-mssa(licm))",
               "function(sroa,early-cse,instcombine<no-verify-fixpoint>,simplifycfg,loop-mssa(licm),gvn,dse)"},
    .mark = mark,
    .amend = amend,
};

/* ---- options */
bool nvptx_triple(const char *triple) {
    return !strcmp(triple, "nvptx64") || !strcmp(triple, "nvptx64-nvidia-cuda");
}
bool nvptx_target(Ctx *cx, Target *t) {
    enum { LETTERS = 2, VECTOR_BYTES = 16 };
    const Options *o = cx->options;
    Str name = str(o->march ? o->march : o->mcpu ? o->mcpu : devices[0].name);
    Similar near = similar_to(name, edits_of(name, LETTERS));
    *t = x86_levels[0];
    t->vector_bytes = VECTOR_BYTES;
    t->rounds = t->fma = true;
    t->decide = threads_decide, t->machine = &nvptx_machine;
    for (unsigned i = 0; i < sizeof devices / sizeof *devices; i++) {
        if (str_is(name, devices[i].name)) t->device = &devices[i];
        similar_offer(&near, str(devices[i].name));
    }
    return t->device || diag_plain(cx->diags, "unknown GPU '%.*s'%s%.*s%s", SF(name), near.best.n ? "; did you mean '" : "",
                                   SF(near.best), near.best.n ? "'?" : "");
}
