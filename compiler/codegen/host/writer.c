#include "writer.h"
#include "../../crash.h"
#include "../../options.h"
#include <llvm-c/Error.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <stdio.h>
#include <unistd.h>

_Noreturn void writer_failed(const Emit *e, const char *stage, const char *why) {
    crash_once();
    output_remove();
    fprintf(stderr, "jaxcc: internal error: %s: %s\n%.*s", stage, why, (int)e->messages.n,
            e->messages.at ? e->messages.at : "");
    _exit(3); /* other threads may be at work, under whom exit() would end LLVM */
}

/* That the function's code is for. */
static const Target *target_of(const Writer *w, LLVMValueRef f) {
    const Targets *ts = w->e->targets;
    LLVMAttributeRef cpu = LLVMGetStringAttributeAtIndex(f, LLVMAttributeFunctionIndex, "target-cpu", 10);
    unsigned n;
    const char *name = cpu ? LLVMGetStringAttributeValue(cpu, &n) : ts->at[0].cpu;
    for (uint32_t i = 0; i < ts->n; i++)
        if (str_is(cpu ? (Str){name, n} : str(name), ts->at[i].cpu)) return &ts->at[i];
    return w->target;
}
/* Functions of the runtime are hidden; ours never unwind. */
void writer_mark(Writer *w) {
    unsigned nounwind = LLVMGetEnumAttributeKindForName("nounwind", 8);
    LLVMAttributeRef quiet = LLVMCreateEnumAttribute(w->context, nounwind, 0);
    for (LLVMValueRef f = LLVMGetFirstFunction(w->module); f; f = LLVMGetNextFunction(f)) {
        size_t n;
        const char *name = LLVMGetValueName2(f, &n);
        if (LLVMIsDeclaration(f)) {
            if (!strncmp(name, "jaxcc_rt_", 9)) LLVMSetVisibility(f, LLVMHiddenVisibility);
            continue;
        }
        LLVMAddAttributeAtIndex(f, LLVMAttributeFunctionIndex, quiet);
        w->target->machine->mark(target_of(w, f), f);
    }
}
void writer_machine(Writer *w, OpenMachine *open) {
    char *why = NULL;
    w->machine = open(w->target, w->e->cx->options->opt, &why);
    if (!w->machine) writer_failed(w->e, "LLVM", why);
    if (!w->module) return;
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(w->machine);
    char *triple = LLVMGetTargetMachineTriple(w->machine);
    LLVMSetTarget(w->module, triple);
    LLVMDisposeMessage(triple);
    LLVMSetModuleDataLayout(w->module, layout);
    LLVMDisposeTargetData(layout);
}

void writer_passes(Writer *w, const char *list) {
    LLVMPassBuilderOptionsRef o = LLVMCreatePassBuilderOptions();
    LLVMErrorRef error = LLVMRunPasses(w->module, list, w->machine, o);
    LLVMDisposePassBuilderOptions(o);
    if (error) writer_failed(w->e, "LLVM", LLVMGetErrorMessage(error));
}
void writer_optimise(Writer *w) {
    const char *list = w->target->machine->passes[w->e->cx->options->opt];
    if (list) writer_passes(w, list);
}
void writer_amend(Writer *w) {
    for (LLVMValueRef f = LLVMGetFirstFunction(w->module); f; f = LLVMGetNextFunction(f))
        if (!LLVMIsDeclaration(f)) w->target->machine->amend(target_of(w, f), f);
}
LLVMMemoryBufferRef writer_code(Writer *w, LLVMCodeGenFileType type) {
    char *why = NULL;
    LLVMMemoryBufferRef bytes = NULL;
    if (LLVMTargetMachineEmitToMemoryBuffer(w->machine, w->module, type, &why, &bytes))
        writer_failed(w->e, "LLVM", why);
    return bytes;
}
bool writer_write(const Emit *e, LLVMMemoryBufferRef code, const Output *out) {
    size_t n = LLVMGetBufferSize(code);
    if (n > UINT32_MAX) return diag_plain(e->cx->diags, "the library is larger than 4 GiB");
    return output_write(e->cx->diags, out, (Str){LLVMGetBufferStart(code), (uint32_t)n});
}
void writer_close(Writer *w) {
    if (w->machine) LLVMDisposeTargetMachine(w->machine);
    LLVMDisposeModule(w->module);
    LLVMContextDispose(w->context);
}
