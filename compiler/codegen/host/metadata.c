/* The description of a library: the structures built here are those of runtime/jaxcc.h. */
#include "metadata.h"
#include "arguments.h"
#include "header.h"
#include "../../options.h"
#include "../../../runtime/jaxcc.h"
#include <assert.h>

enum { PROGRAM_VERSION = 1, NOTE_PROGRAM = 1 };

typedef struct {
    Ctx *cx;
    const Signature *s; /* of the program at hand */
    const char *name;
    LLVMModuleRef m;
    LLVMContextRef c;
    LLVMTypeRef i32, i64, ptr, type; /* type: jaxcc_type */
} Meta;

/* ---- constants */

static LLVMValueRef num(const Meta *e, uint64_t n) { return LLVMConstInt(e->i32, n, 0); }

static LLVMValueRef private_constant(const Meta *e, const char *name, LLVMValueRef init) {
    LLVMValueRef g = LLVMAddGlobal(e->m, LLVMTypeOf(init), name);
    LLVMSetInitializer(g, init);
    LLVMSetGlobalConstant(g, 1);
    LLVMSetLinkage(g, LLVMPrivateLinkage);
    LLVMSetUnnamedAddress(g, LLVMGlobalUnnamedAddr);
    return g;
}

static LLVMValueRef string(const Meta *e, Str s) {
    LLVMValueRef g = private_constant(e, "", LLVMConstStringInContext2(e->c, s.at, s.n, 0));
    LLVMSetAlignment(g, 1);
    return g;
}

/* The address of a table; NULL if it is empty. */
static LLVMValueRef table(const Meta *e, LLVMTypeRef of, LLVMValueRef *at, uint32_t n) {
    return n ? private_constant(e, "", LLVMConstArray2(of, at, n)) : LLVMConstNull(e->ptr);
}

static LLVMValueRef type_row(const Meta *e, Str name, Val v) {
    const ArrayType *t = val_array(e->cx, v);
    LLVMValueRef *extents = arena_new(e->cx->arena, LLVMValueRef, t->rank + 1);
    for (uint32_t i = 0; i < t->rank; i++) extents[i] = string(e, signature_dim_text(e->cx, e->s, t->dims[i]));
    const DtypeInfo *d = &dtype_info[t->dtype];
    LLVMValueRef row[] = {string(e, name), string(e, str(d->kind == DK_KEY ? d->long_name : d->name)), num(e, t->rank),
                          table(e, e->ptr, extents, t->rank)};
    return LLVMConstNamedStruct(e->type, row, 4);
}

static LLVMValueRef type_table(const Meta *e, Vals vals, const Str *names) {
    LLVMValueRef *rows = arena_new(e->cx->arena, LLVMValueRef, vals.n + 1);
    for (uint32_t i = 0; i < vals.n; i++) rows[i] = type_row(e, names[i], vals.at[i]);
    return table(e, e->type, rows, vals.n);
}

static LLVMValueRef dim_table(const Meta *e) {
    LLVMValueRef *rows = arena_new(e->cx->arena, LLVMValueRef, e->s->dims.n + 1);
    for (uint32_t i = 0; i < e->s->dims.n; i++) rows[i] = string(e, dim_at(e->cx->types, e->s->dims.at[i])->name);
    return table(e, e->ptr, rows, e->s->dims.n);
}

/* ---- functions */

/* ---- The library's interface consists of aliases of its internal functions: code in it refers to the internal names,
   so that it calls itself even if other libraries define the same names. */

/* Renames an internal symbol that has the name. */
static void give_up(const Meta *e, const char *name) {
    LLVMValueRef v = LLVMGetNamedFunction(e->m, name);
    if (!v) v = LLVMGetNamedGlobal(e->m, name);
    assert(!v || !LLVMIsAGlobalAlias(v)); /* the interface of another program */
    if (v) LLVMSetValueName2(v, "", 0);
}

static void export(const Meta *e, const char *suffix, LLVMValueRef f) {
    Str name = str_format(e->cx->arena, "%s%s", e->name, suffix);
    give_up(e, name.at);
    LLVMAddAlias2(e->m, LLVMGlobalGetValueType(f), 0, f, name.at);
}

/* A function of the runtime or of the module. */
static LLVMValueRef named(const Meta *e, const char *name, LLVMTypeRef type) {
    LLVMValueRef f = LLVMGetNamedFunction(e->m, name);
    if (f) return f;
    f = LLVMAddFunction(e->m, name, type);
    LLVMSetVisibility(f, LLVMHiddenVisibility);
    return f;
}

/* NAME.SUFFIX: code that must run on every CPU, so that a library for another one can say so. */
static LLVMValueRef define(const Meta *e, const char *suffix, LLVMTypeRef type, LLVMBuilderRef b) {
    Str name = str_format(e->cx->arena, "%s.%s", e->name, suffix);
    LLVMValueRef f = LLVMAddFunction(e->m, name.at, type);
    LLVMSetLinkage(f, LLVMInternalLinkage);
    if (!strncmp(LLVMGetTarget(e->m), "x86_64", 6)) {
        LLVMAttributeRef cpu = LLVMCreateStringAttribute(e->c, "target-cpu", 10, "x86-64", 6);
        LLVMAttributeRef none = LLVMCreateStringAttribute(e->c, "target-features", 15, "", 0);
        LLVMAddAttributeAtIndex(f, LLVMAttributeFunctionIndex, cpu);
        LLVMAddAttributeAtIndex(f, LLVMAttributeFunctionIndex, none);
    }
    unsigned kind = LLVMGetEnumAttributeKindForName("nounwind", 8);
    LLVMAddAttributeAtIndex(f, LLVMAttributeFunctionIndex, LLVMCreateEnumAttribute(e->c, kind, 0));
    LLVMPositionBuilderAtEnd(b, LLVMAppendBasicBlockInContext(e->c, f, ""));
    return f;
}

static void load_all(const Meta *e, LLVMBuilderRef b, LLVMTypeRef of, LLVMValueRef from, uint32_t n, LLVMValueRef *to) {
    for (uint32_t i = 0; i < n; i++) {
        LLVMValueRef at = LLVMConstInt(e->i64, i, 0);
        to[i] = LLVMBuildLoad2(b, of, LLVMBuildInBoundsGEP2(b, of, from, &at, 1, ""), "");
    }
}

/* The same, exported as NAME_SUFFIX. */
static LLVMValueRef define_visible(const Meta *e, const char *suffix, LLVMTypeRef type, LLVMBuilderRef b) {
    LLVMValueRef f = define(e, suffix, type, b);
    export(e, str_format(e->cx->arena, "_%s", suffix).at, f);
    return f;
}

LLVMValueRef metadata_entry(Ctx *cx, LLVMModuleRef m, const char *name) {
    return LLVMGetNamedFunction(m, str_format(cx->arena, "%s.entry", name).at);
}
static LLVMValueRef entry(const Meta *e) { return metadata_entry(e->cx, e->m, e->name); }

/* Calls NAME with its arguments taken from arrays. */
static LLVMValueRef call_directly(const Meta *e, LLVMBuilderRef b, LLVMValueRef f) {
    const Signature *s = e->s;
    uint32_t n = s->dims.n + s->in.n + s->out.n;
    LLVMValueRef callee = entry(e);
    LLVMTypeRef type = LLVMGlobalGetValueType(callee);
    LLVMValueRef *args = arena_new(e->cx->arena, LLVMValueRef, n + 1);
    load_all(e, b, e->i64, LLVMGetParam(f, 0), s->dims.n, args);
    load_all(e, b, e->ptr, LLVMGetParam(f, 1), s->in.n, args + s->dims.n);
    load_all(e, b, e->ptr, LLVMGetParam(f, 2), s->out.n, args + s->dims.n + s->in.n);
    return LLVMBuildCall2(b, type, callee, args, n, "");
}
/* Calls the function that takes NAME's arguments in memory (arguments.h), where they already are. */
static LLVMValueRef call_checked(const Meta *e, LLVMBuilderRef b, LLVMValueRef f, LLVMValueRef checked) {
    const uint32_t sizes[] = {e->s->dims.n, e->s->in.n, e->s->out.n};
    LLVMValueRef first[FIRST_ARGUMENTS], args[ARGUMENT_BASES];
    args[0] = LLVMBuildAlloca(b, LLVMArrayType2(e->i64, FIRST_ARGUMENTS), "");
    uint32_t n = 0;
    for (uint32_t list = 0; list < 3; list++) {
        args[1 + list] = LLVMGetParam(f, list);
        uint32_t room = FIRST_ARGUMENTS - n, take = sizes[list] < room ? sizes[list] : room;
        load_all(e, b, e->i64, args[1 + list], take, first + n);
        n += take;
    }
    for (uint32_t i = 0; i < n; i++) {
        LLVMValueRef k = LLVMConstInt(e->i64, i, 0);
        LLVMBuildStore(b, first[i], LLVMBuildInBoundsGEP2(b, e->i64, args[0], &k, 1, ""));
    }
    return LLVMBuildCall2(b, LLVMGlobalGetValueType(checked), checked, args, ARGUMENT_BASES, "");
}
/* int32_t call(dims, in, out) */
static LLVMValueRef define_call(const Meta *e, LLVMBuilderRef b) {
    LLVMValueRef f = define(e, "call", LLVMFunctionType(e->i32, (LLVMTypeRef[]){e->ptr, e->ptr, e->ptr}, 3, 0), b);
    LLVMValueRef checked = LLVMGetNamedFunction(e->m, arguments_checked_name(e->cx, e->s).at);
    LLVMBuildRet(b, checked ? call_checked(e, b, f, checked) : call_directly(e, b, f));
    return f;
}

/* const char *NAME_error(void) */
static LLVMValueRef define_error(const Meta *e, LLVMBuilderRef b) {
    LLVMTypeRef type = LLVMFunctionType(e->ptr, NULL, 0, 0);
    LLVMValueRef f = define_visible(e, "error", type, b);
    LLVMBuildRet(b, LLVMBuildCall2(b, type, named(e, "jaxcc_rt_error", type), NULL, 0, ""));
    return f;
}

/* void NAME_stream(void *): the stream of the thread's calls with device pointers */
static void define_stream(const Meta *e, LLVMBuilderRef b) {
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(e->c), (LLVMTypeRef[]){e->ptr}, 1, 0);
    LLVMValueRef f = define_visible(e, "stream", type, b), stream = LLVMGetParam(f, 0);
    LLVMBuildCall2(b, type, named(e, "jaxcc_rt_cuda_set_stream", type), &stream, 1, "");
    LLVMBuildRetVoid(b);
}

/* int32_t NAME_dlpack(in, out): calls the program that `about` describes */
static void define_dlpack(const Meta *e, LLVMBuilderRef b, LLVMValueRef about) {
    LLVMTypeRef type = LLVMFunctionType(e->i32, (LLVMTypeRef[]){e->ptr, e->ptr}, 2, 0);
    LLVMTypeRef callee = LLVMFunctionType(e->i32, (LLVMTypeRef[]){e->ptr, e->ptr, e->ptr}, 3, 0);
    LLVMValueRef f = define_visible(e, "dlpack", type, b), args[] = {about, LLVMGetParam(f, 0), LLVMGetParam(f, 1)};
    const char *by = e->cx->options->device_pointers ? "jaxcc_rt_dlpack_cuda" : "jaxcc_rt_dlpack";
    LLVMBuildRet(b, LLVMBuildCall2(b, callee, named(e, by, callee), args, 3, ""));
}

static LLVMValueRef program(const Meta *e, LLVMBuilderRef b) {
    const Signature *s = e->s;
    LLVMTypeRef nothing = LLVMVoidTypeInContext(e->c);
    LLVMValueRef values[] = {
        num(e, PROGRAM_VERSION),
        num(e, sizeof(jaxcc_program)),
        string(e, str(e->name)),
        num(e, s->dims.n),
        num(e, s->in.n),
        num(e, s->out.n),
        dim_table(e),
        type_table(e, s->in, s->names + s->dims.n),
        type_table(e, s->out, s->names + s->dims.n + s->in.n),
        define_call(e, b),
        define_error(e, b),
        named(e, str_format(e->cx->arena, "%s.workspace", e->name).at,
              LLVMFunctionType(e->i64, (LLVMTypeRef[]){e->ptr}, 1, 0)),
        named(e, "jaxcc_rt_set_num_threads", LLVMFunctionType(nothing, (LLVMTypeRef[]){e->i32}, 1, 0)),
        named(e, "jaxcc_rt_set_parallel_for", LLVMFunctionType(nothing, (LLVMTypeRef[]){e->ptr, e->ptr}, 2, 0)),
        named(e, "jaxcc_rt_set_print", LLVMFunctionType(nothing, (LLVMTypeRef[]){e->ptr, e->ptr}, 2, 0)),
    };
    return private_constant(e, "", LLVMConstStructInContext(e->c, values, sizeof values / sizeof *values, 0));
}

/* ---- the notes, one for each program: readelf -n shows the owner "jaxcc"; the description is the program's name,
   terminated */

static LLVMValueRef bytes(const Meta *e, const char *text, uint32_t n, uint32_t room) {
    char *at = arena_new(e->cx->arena, char, room);
    memcpy(at, text, n);
    return LLVMConstStringInContext2(e->c, at, room, 1);
}

static LLVMValueRef note(const Meta *e) {
    uint32_t n = (uint32_t)strlen(e->name) + 1;
    LLVMValueRef parts[] = {num(e, 6), num(e, n), num(e, NOTE_PROGRAM), bytes(e, "jaxcc", 6, 8),
                            bytes(e, e->name, n, (n + 3) & ~3u)};
    LLVMValueRef g = private_constant(e, "jaxcc_note", LLVMConstStructInContext(e->c, parts, 5, 1));
    LLVMSetSection(g, ".note.jaxcc");
    LLVMSetAlignment(g, 4);
    LLVMSetUnnamedAddress(g, LLVMNoUnnamedAddr);
    return g;
}
/* The linker and LLVM keep them, although nothing refers to them. */
static void keep(const Meta *e, LLVMValueRef *at, uint32_t n) {
    LLVMValueRef used = LLVMAddGlobal(e->m, LLVMArrayType2(e->ptr, n), "llvm.compiler.used");
    LLVMSetInitializer(used, LLVMConstArray2(e->ptr, at, n));
    LLVMSetLinkage(used, LLVMAppendingLinkage);
    LLVMSetSection(used, "llvm.metadata");
}

/* Its description, and its note. */
static LLVMValueRef describe(const Meta *all, LLVMBuilderRef b, const Program *p) {
    Signature s = signature_of(all->cx, p->name, p->j);
    Meta own = *all;
    const Meta *e = &own;
    own.name = p->name, own.s = &s;
    export(e, "", entry(e));
    LLVMValueRef about = program(e, b);
    if (e->cx->options->device_pointers) define_stream(e, b);
    if (e->cx->options->dlpack) define_dlpack(e, b, about);
    define_visible(e, "program", LLVMFunctionType(e->ptr, NULL, 0, 0), b);
    LLVMBuildRet(b, about);
    return note(e);
}

void metadata_emit(Ctx *cx, Programs programs, LLVMModuleRef m) {
    LLVMContextRef c = LLVMGetModuleContext(m);
    Meta e = {.cx = cx, .m = m, .c = c};
    e.i32 = LLVMInt32TypeInContext(c);
    e.i64 = LLVMInt64TypeInContext(c);
    e.ptr = LLVMPointerTypeInContext(c, 0);
    e.type = LLVMStructCreateNamed(c, "jaxcc_type");
    LLVMStructSetBody(e.type, (LLVMTypeRef[]){e.ptr, e.ptr, e.i32, e.ptr}, 4, 0);
    LLVMBuilderRef b = LLVMCreateBuilderInContext(c);
    LLVMValueRef *notes = arena_new(cx->arena, LLVMValueRef, programs.n);
    for (uint32_t i = 0; i < programs.n; i++) notes[i] = describe(&e, b, &programs.at[i]);
    LLVMDisposeBuilder(b);
    keep(&e, notes, programs.n);
}
