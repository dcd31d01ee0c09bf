/* The module of one compilation: opened, given its constants, lowered, optimised, written. */
#include "constants.h"
#include "device.h"
#include "machine.h"
#include "../emit/lower.h"
#include "metadata.h"
#include "../../options.h"
#include "../../timer.h"
#include <llvm-c/Core.h>
#include <llvm-c/Error.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <mlir-c/BuiltinAttributes.h>
#include <mlir-c/BuiltinTypes.h>
#include <mlir-c/Diagnostics.h>
#include <mlir-c/Dialect/LLVM.h>
#include <mlir-c/Dialect/SCF.h>
#include <mlir-c/RegisterEverything.h>
#include <mlir-c/Target/LLVMIR.h>
#include <stdio.h>
#include <stdlib.h>

static MlirStringRef ref(const char *s) { return mlirStringRefCreateFromCString(s); }

/* ---- any failure here is a bug of ours */
static void append(MlirStringRef s, void *text) { text_put(text, (Str){s.data, (uint32_t)s.length}); }
static MlirLogicalResult message(MlirDiagnostic d, void *user) {
    Emit *e = user;
    text_put(&e->messages, S("  "));
    mlirLocationPrint(mlirDiagnosticGetLocation(d), append, &e->messages);
    text_put(&e->messages, S(": "));
    mlirDiagnosticPrint(d, append, &e->messages);
    text_put(&e->messages, S("\n"));
    return mlirLogicalResultSuccess();
}
_Noreturn static void internal_error(Emit *e, const char *stage, const char *why) {
    fprintf(stderr, "jaxcc: internal error: %s: %s\n%.*s", stage, why, (int)e->messages.n,
            e->messages.at ? e->messages.at : "");
    exit(3);
}

/* ---- opening */
static void load_dialects(Emit *e) {
    MlirDialectHandle handles[] = {mlirGetDialectHandle__llvm__(), mlirGetDialectHandle__scf__()};
    for (unsigned i = 0; i < sizeof handles / sizeof *handles; i++) mlirDialectHandleLoadDialect(handles[i], e->mlir);
    mlirRegisterAllLLVMTranslations(e->mlir);
}
static void open_debug(Emit *e) {
    Str path = str(diag_path(e->cx->diags, 0)), dir = S(".");
    MlirAttribute none = {NULL};
    e->file = mlirLLVMDIFileAttrGet(e->mlir, mlirStringAttrGet(e->mlir, mlirStringRefCreate(path.at, path.n)),
                                    mlirStringAttrGet(e->mlir, mlirStringRefCreate(dir.at, dir.n)));
    enum { DW_LANG_C = 2 };
    e->unit = mlirLLVMDICompileUnitAttrGet(e->mlir, mlirDisctinctAttrCreate(mlirUnitAttrGet(e->mlir)), DW_LANG_C,
                                           e->file, mlirStringAttrGet(e->mlir, ref("jaxcc " JAXCC_VERSION)), true,
                                           MlirLLVMDIEmissionKindLineTablesOnly, MlirLLVMDINameTableKindDefault, none);
}
Emit *emit_open(Ctx *cx, const Targets *targets) {
    Emit *e = arena_new(cx->arena, Emit, 1);
    timer_stage(cx->timer, "build");
    e->cx = cx;
    e->arena = cx->arena;
    e->targets = targets;
    em_target(e, 0);
    e->messages.arena = e->declared.arena = e->texts.arena = e->functions.arena = cx->arena;
    e->constant_ids.arena = cx->arena;
    e->mlir = mlirContextCreateWithThreading(false);
    mlirContextAttachDiagnosticHandler(e->mlir, message, e, NULL);
    load_dialects(e);
    e->loc = mlirLocationUnknownGet(e->mlir);
    e->module = mlirModuleCreateEmpty(e->loc);
    e->other.declared.arena = e->other.texts.arena = cx->arena;
    if (e->target->device) e->other.module = mlirModuleCreateEmpty(e->loc);
    e->block = mlirModuleGetBody(e->module);
    e->i1 = mlirIntegerTypeGet(e->mlir, 1);
    e->i8 = mlirIntegerTypeGet(e->mlir, 8);
    e->i16 = mlirIntegerTypeGet(e->mlir, 16);
    e->i32 = mlirIntegerTypeGet(e->mlir, 32);
    e->i64 = mlirIntegerTypeGet(e->mlir, 64);
    e->i128 = mlirIntegerTypeGet(e->mlir, 128);
    e->f16 = mlirF16TypeGet(e->mlir);
    e->bf16 = mlirBF16TypeGet(e->mlir);
    e->f32 = mlirF32TypeGet(e->mlir);
    e->f64 = mlirF64TypeGet(e->mlir);
    e->ptr = mlirLLVMPointerTypeGet(e->mlir, 0);
    if (cx->options->debug) {
        open_debug(e);
        em_at(e, (Span){0}); /* operations of no equation: the start of the text */
    }
    return e;
}
void emit_close(Emit *e) {
    mlirModuleDestroy(e->module);
    if (e->target->device) mlirModuleDestroy(e->other.module);
    mlirContextDestroy(e->mlir);
}

/* The state of writing a module. */
typedef struct {
    Emit *e;
    const Target *target;
    EmitKind kind;
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMTargetMachineRef machine;
} Writer;

/* ---- MLIR → LLVM */
static bool write_mlir(Emit *, const Output *);

/* With -save-temps an invalid module can be examined. */
static void verify(Emit *e, const Output *out) {
    timer_stage(e->cx->timer, "verify");
    if (mlirOperationVerify(mlirModuleGetOperation(e->module))) return;
    const char *path = str_format(e->arena, "%s.mlir", out->path).at;
    if (e->cx->options->save_temps) write_mlir(e, &(Output){path, path});
    internal_error(e, "MLIR", "what was built is not valid");
}
static void lower(Emit *e) {
    timer_stage(e->cx->timer, "mlir");
    emit_lower(e);
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
static void set_attributes(Writer *w) {
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
typedef LLVMTargetMachineRef OpenMachine(const Target *, uint32_t opt, char **why);
static void open_machine(Writer *w, OpenMachine *open) {
    char *why = NULL;
    w->machine = open(w->target, w->e->cx->options->opt, &why);
    if (!w->machine) internal_error(w->e, "LLVM", why);
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(w->machine);
    char *triple = LLVMGetTargetMachineTriple(w->machine);
    LLVMSetTarget(w->module, triple);
    LLVMDisposeMessage(triple);
    LLVMSetModuleDataLayout(w->module, layout);
    LLVMDisposeTargetData(layout);
}
static void optimise(Writer *w) {
    const char *list = w->target->machine->passes[w->e->cx->options->opt];
    if (!list) return;
    timer_stage(w->e->cx->timer, "llvm");
    LLVMPassBuilderOptionsRef o = LLVMCreatePassBuilderOptions();
    LLVMErrorRef error = LLVMRunPasses(w->module, list, w->machine, o);
    LLVMDisposePassBuilderOptions(o);
    if (error) internal_error(w->e, "LLVM", LLVMGetErrorMessage(error));
}
static void translate_module(Writer *w) {
    Emit *e = w->e;
    lower(e);
    timer_stage(e->cx->timer, "translate");
    w->context = LLVMContextCreate();
    w->module = mlirTranslateModuleToLLVMIR(mlirModuleGetOperation(e->module), w->context);
    if (!w->module) internal_error(e, "MLIR", "translation to LLVM failed");
}
static bool translate(Writer *w, Programs programs, Str ptx) {
    Emit *e = w->e;
    translate_module(w);
    open_machine(w, w->target->machine->open);
    set_attributes(w);
    if (w->target->device) device_define(e, w->module, ptx);
    if (!constants_define(e, w->kind, w->module)) return false;
    metadata_emit(e->cx, programs, w->module);
    return true;
}

/* ---- LLVM → bytes */
static bool write_machine_code(Writer *w, const Output *out) {
    Ctx *cx = w->e->cx;
    char *why = NULL;
    LLVMMemoryBufferRef bytes = NULL;
    timer_stage(cx->timer, "codegen");
    LLVMCodeGenFileType type = w->kind == EMIT_asm ? LLVMAssemblyFile : LLVMObjectFile;
    if (LLVMTargetMachineEmitToMemoryBuffer(w->machine, w->module, type, &why, &bytes))
        internal_error(w->e, "LLVM", why);
    size_t n = LLVMGetBufferSize(bytes);
    timer_stage(cx->timer, "write");
    bool good = n <= UINT32_MAX ? output_write(cx->diags, out, (Str){LLVMGetBufferStart(bytes), (uint32_t)n})
                                : diag_plain(cx->diags, "the library is larger than 4 GiB");
    LLVMDisposeMemoryBuffer(bytes);
    return good;
}
static bool write_llvm(Writer *w, const Output *out) {
    char *text = LLVMPrintModuleToString(w->module);
    bool good = output_write(w->e->cx->diags, out, str(text));
    LLVMDisposeMessage(text);
    return good;
}
static bool write_mlir(Emit *e, const Output *out) {
    Text text = {.arena = e->arena};
    MlirOpPrintingFlags flags = mlirOpPrintingFlagsCreate();
    if (e->cx->options->debug) mlirOpPrintingFlagsEnableDebugInfo(flags, true, false);
    mlirOperationPrintWithFlags(mlirModuleGetOperation(e->module), flags, append, &text);
    mlirOpPrintingFlagsDestroy(flags);
    return output_write(e->cx->diags, out, (Str){text.at, text.n});
}
static void amend(Writer *w) {
    for (LLVMValueRef f = LLVMGetFirstFunction(w->module); f; f = LLVMGetNextFunction(f))
        if (!LLVMIsDeclaration(f)) w->target->machine->amend(target_of(w, f), f);
}
static void writer_close(Writer *w) {
    if (w->machine) LLVMDisposeTargetMachine(w->machine);
    LLVMDisposeModule(w->module);
    LLVMContextDispose(w->context);
}
/* Kernels that have tensor maps in their parameter, which is aligned for that, pass the address of it on: it is not to be
   copied. */
static void keep_maps(Writer *w) {
    static const char constant[] = "nvvm.grid_constant";
    enum { FIRST = 1, ALIGN = 64 };
    unsigned align = LLVMGetEnumAttributeKindForName("align", 5);
    LLVMAttributeRef keep = LLVMCreateStringAttribute(w->context, constant, sizeof constant - 1, "", 0);
    for (LLVMValueRef f = LLVMGetFirstFunction(w->module); f; f = LLVMGetNextFunction(f)) {
        LLVMAttributeRef a = LLVMCountParams(f) ? LLVMGetEnumAttributeAtIndex(f, FIRST, align) : NULL;
        if (a && LLVMGetEnumAttributeValue(a) == ALIGN) LLVMAddAttributeAtIndex(f, FIRST, keep);
    }
}
/* The kernels of a device as PTX. */
static Str device_code(Emit *e, const Output *out) {
    Writer w = {.e = e, .target = e->target};
    char *why = NULL;
    LLVMMemoryBufferRef text = NULL;
    em_device(e, true);
    verify(e, out);
    translate_module(&w);
    keep_maps(&w);
    open_machine(&w, w.target->machine->open_device);
    optimise(&w);
    timer_stage(e->cx->timer, "codegen");
    if (LLVMTargetMachineEmitToMemoryBuffer(w.machine, w.module, LLVMAssemblyFile, &why, &text))
        internal_error(e, "LLVM", why);
    Str ptx = str_format(e->arena, "%.*s", (int)LLVMGetBufferSize(text), LLVMGetBufferStart(text));
    LLVMDisposeMemoryBuffer(text);
    writer_close(&w);
    em_device(e, false);
    return ptx;
}
bool emit_write(Emit *e, Programs programs, EmitKind kind, const Output *out) {
    verify(e, out);
    if (kind == EMIT_mlir) return write_mlir(e, out);
    Str ptx = e->target->device ? device_code(e, out) : S("");
    if (kind == EMIT_ptx) return output_write(e->cx->diags, out, ptx);
    Writer w = {.e = e, .target = e->target, .kind = kind};
    bool good = translate(&w, programs, ptx);
    if (good) {
        optimise(&w);
        amend(&w);
        good = kind == EMIT_llvm ? write_llvm(&w, out) : write_machine_code(&w, out);
    }
    writer_close(&w);
    return good;
}
