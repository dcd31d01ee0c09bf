/* The module of one compilation: opened, given its constants, lowered, optimised, written. */
#include "constants.h"
#include "device.h"
#include "machine.h"
#include "../emit/lower.h"
#include "metadata.h"
#include "ptx.h"
#include "shards.h"
#include "../../options.h"
#include "../../timer.h"
#include <assert.h>
#include <mlir-c/BuiltinAttributes.h>
#include <mlir-c/BuiltinTypes.h>
#include <mlir-c/Diagnostics.h>
#include <mlir-c/Dialect/LLVM.h>
#include <mlir-c/Dialect/SCF.h>
#include <mlir-c/RegisterEverything.h>
#include <mlir-c/Target/LLVMIR.h>

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

/* ---- MLIR → LLVM */
static bool write_mlir(Emit *, const Output *);

/* With -save-temps an invalid module can be examined. */
static void verify(Emit *e, const Output *out) {
    timer_stage(e->cx->timer, "verify");
    if (mlirOperationVerify(mlirModuleGetOperation(e->module))) return;
    const char *path = str_format(e->arena, "%s.mlir", out->path).at;
    if (e->cx->options->save_temps) write_mlir(e, &(Output){path, path});
    writer_failed(e, "MLIR", "what was built is not valid");
}
static void lower(Emit *e) {
    timer_stage(e->cx->timer, "mlir");
    emit_lower(e);
}
static void translate_module(Writer *w) {
    Emit *e = w->e;
    lower(e);
    timer_stage(e->cx->timer, "translate");
    w->context = LLVMContextCreate();
    w->module = mlirTranslateModuleToLLVMIR(mlirModuleGetOperation(e->module), w->context);
    if (!w->module) writer_failed(e, "MLIR", "translation to LLVM failed");
}
/* Temporary files for n objects. */
static bool open_objects(Emit *e, uint32_t n, Objects *objects) {
    for (; objects->n < n; objects->n++)
        if (!(objects->at[objects->n] = output_scratch(e->arena, e->cx->diags, NULL))) return false;
    return true;
}
static bool translate(Writer *w, Programs programs, EmitKind kind, Str ptx, Objects *objects, Shards **shards) {
    Emit *e = w->e;
    translate_module(w);
    writer_machine(w, w->target->machine->open);
    writer_mark(w);
    uint32_t n = objects ? shards_of(w, programs) : 1;
    if (objects && !open_objects(e, n, objects)) return false;
    if (kind == EMIT_obj) constants_declare(e, w->module);
    if (n > 1) *shards = shards_start(w, programs, n);
    if (w->target->device) device_define(e, w->module, ptx);
    if (!constants_define(e, kind, w->module, n > 1)) return false;
    metadata_emit(e->cx, programs, w->module);
    return true;
}

/* ---- LLVM → bytes */
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
/* Kernels that have tensor maps in their parameter, which is aligned for that, pass the address of it on: it is not to
   be copied. */
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
    em_device(e, true);
    verify(e, out);
    translate_module(&w);
    keep_maps(&w);
    writer_machine(&w, w.target->machine->open_device);
    timer_stage(e->cx->timer, "llvm");
    writer_optimise(&w);
    for (LLVMValueRef f = LLVMGetFirstFunction(w.module); f; f = LLVMGetNextFunction(f))
        if (!LLVMIsDeclaration(f)) w.target->machine->amend_kernel(f);
    timer_stage(e->cx->timer, "codegen");
    LLVMMemoryBufferRef text = writer_code(&w, LLVMAssemblyFile);
    Str ptx = ptx_with_narrow_stores(e->arena, (Str){LLVMGetBufferStart(text), (uint32_t)LLVMGetBufferSize(text)});
    LLVMDisposeMemoryBuffer(text);
    writer_close(&w);
    em_device(e, false);
    return ptx;
}
/* As LLVM's text, assembly or an object; what is in other objects is in `shards`. */
static bool write_module(Writer *w, EmitKind kind, Shards *shards, const Output *out) {
    writer_optimise(w);
    writer_amend(w);
    if (kind == EMIT_llvm) return write_llvm(w, out);
    timer_stage(w->e->cx->timer, "codegen");
    LLVMMemoryBufferRef code = writer_code(w, kind == EMIT_asm ? LLVMAssemblyFile : LLVMObjectFile);
    if (shards) shards_wait(shards);
    timer_stage(w->e->cx->timer, "write");
    bool good = writer_write(w->e, code, out);
    LLVMDisposeMemoryBuffer(code);
    return good;
}
static bool emit(Emit *e, Programs programs, EmitKind kind, const Output *out, Objects *objects) {
    verify(e, out);
    if (kind == EMIT_mlir) return write_mlir(e, out);
    Str ptx = e->target->device ? device_code(e, out) : S("");
    if (kind == EMIT_ptx) return output_write(e->cx->diags, out, ptx);
    Writer w = {.e = e, .target = e->target};
    Shards *shards = NULL;
    bool good = translate(&w, programs, kind, ptx, objects, &shards);
    assert(good || !shards); /* which would still be made */
    timer_stage(e->cx->timer, "llvm");
    good = good && write_module(&w, kind, shards, out) && (!shards || shards_write(shards, out->path, objects->at));
    writer_close(&w);
    return good;
}
bool emit_write(Emit *e, Programs programs, EmitKind kind, const Output *out) {
    return emit(e, programs, kind, out, NULL);
}
bool emit_objects(Emit *e, Programs programs, const Output *library, Objects *objects) {
    Output first = {library->path, output_scratch(e->arena, e->cx->diags, NULL)};
    *objects = (Objects){1, {first.to}};
    return first.to && emit(e, programs, EMIT_obj, &first, objects);
}
