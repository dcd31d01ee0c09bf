#include "nvptx_machine.h"
#include "roundpair.h"
#include "x86_machine.h"
#include <llvm-c/Target.h>

static const Target *const host = &x86_levels[0]; /* any x86-64 */
static LLVMTargetMachineRef open_host(const Target *t, uint32_t opt, char **why) {
    return x86_machine_open(host, opt, why);
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
static void mark(const Target *t, LLVMValueRef f) { x86_machine.mark(host, f); }
static void amend(const Target *t, LLVMValueRef f) { x86_machine.amend(host, f); }

const Machine nvptx_machine = {
    .kernels = {[STEP_LOOPS] = device_loops,
                [STEP_DOT] = device_dot,
                [STEP_CUM] = device_cumulative,
                [STEP_SCATTER] = device_scatter},
    .before = {[STEP_CUM] = device_cumulative_parts},
    .after = {[STEP_LOOPS] = device_combine, [STEP_DOT] = device_dot_combine},
    .launch = launch_device,
    .open = open_host,
    .open_device = open_device,
    .passes = clean_up,
    .mark = mark,
    .amend = amend,
    .amend_kernel = roundpair_use,
};
