/* jaxcc: text in, library out. */
#include "options.h"
#include "codegen/codegen.h"
#include "codegen/host/header.h"
#include "consts.h"
#include "crash.h"
#include "dims.h"
#include "file.h"
#include "lift.h"
#include "lint.h"
#include "output.h"
#include "parse/parse.h"
#include "passes/passes.h"
#include "timer.h"
#include "typecheck/check.h"
#include "typecheck/signature.h"
#include <assert.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef JAXCC_VERIFY
#define JAXCC_VERIFY 0 /* 1: the verifier is always on */
#endif

enum { HEAP = 64 << 20 };

/* The types of --in-type. */
typedef struct {
    Type *at;
    uint32_t n;
    Span span;
} InTypes;

static bool in_types(Ctx *cx, InTypes *t) {
    if (!cx->options->in_type) return true;
    Str text = str(cx->options->in_type);
    t->span = (Span){diags_source(cx->diags, "--in-type", text), 0, text.n};
    return parse_types(cx, t->span.file, &t->at, &t->n);
}

/* Is more asked for than the program as it was read? */
static bool compiles(const Options *o) {
    return o->check_only || (o->emit != EMIT_types && (o->emit != EMIT_jaxpr || o->passes));
}

static bool derives(const Options *o) {
    bool some = o->transforms.n > 0;
    each(const LibraryEntry, e, o->entries) some |= e->transforms.n > 0;
    return some;
}

/* What --vmap-axis names may be used by collectives. */
static void bind_axes(Ctx *cx, const Transforms *all) {
    each(const Transform, t, *all)
        if (t->axis) axis_bind(cx, str(t->axis), 0);
}
/* Text to program; typed, unless --no-check. */
static Jaxpr *front(Ctx *cx) {
    const Options *o = cx->options;
    Str text;
    timer_stage(cx->timer, "read");
    if (!file_read(cx->arena, cx->diags, o->input, MOST_BYTES, &text)) return NULL;
    uint32_t file = diags_source(cx->diags, strcmp(o->input, "-") ? o->input : "<stdin>", text);
    assert(file == INPUT_FILE);
    timer_stage(cx->timer, "parse");
    Jaxpr *misnamed = NULL, *read = parse(cx, file, &misnamed), *j = read ? read : misnamed;
    if (!j || o->no_check) return read;
    timer_stage(cx->timer, "typecheck");
    InTypes in = {0};
    if (!in_types(cx, &in)) return NULL;
    dims_fix(cx, j, in.at, in.n);
    if (o->consts && !consts_bind(cx, j, o->consts)) return NULL;
    if (!o->consts && (compiles(o) || derives(o))) consts_warn(cx, j), consts_lift(cx, j);
    if (o->in_type && !check_inputs(cx, j, in.at, in.n, in.span)) return NULL;
    bind_axes(cx, &o->transforms);
    for (uint32_t i = 0; i < o->entries.n; i++) bind_axes(cx, &o->entries.at[i].transforms);
    if (!check(cx, j) || !read) return NULL;
    lint(cx, j);
    return j;
}

static bool write_text(Ctx *cx, const char *path, const Text *t) {
    const Output *out = output_open(cx->arena, cx->diags, path, false);
    return out && output_write(cx->diags, out, (Str){t->at, t->n});
}

static bool write_header(Ctx *cx, Programs programs, const char *path) {
    Text text = {.arena = cx->arena};
    header_text(cx, programs, &text);
    return write_text(cx, path, &text);
}

/* Generates code and writes it as `kind`. */
static bool back(Ctx *cx, Programs programs, EmitKind kind, const char *path) {
    bool binary = kind == EMIT_so || kind == EMIT_a || kind == EMIT_obj;
    const Output *out = output_open(cx->arena, cx->diags, path, binary);
    return out && codegen(cx, programs, kind, out);
}

/* A name as Makefiles write it. */
static void put_name(Text *text, const char *name) {
    for (const char *c = name; *c; c++) text_add(text, strchr(" #", *c) ? "\\%c" : *c == '$' ? "$%c" : "%c", *c);
}

typedef struct {
    const char **at;
    uint32_t n, cap;
} Files;
/* The files that the compilation reads; "-" is standard input. */
static Files read_files(const Ctx *cx) {
    const Options *o = cx->options;
    Files files = {0};
    push(cx->arena, &files, o->input);
    if (o->consts) push(cx->arena, &files, o->consts);
    each(const RuleFiles, r, o->rules) {
        push(cx->arena, &files, r->file[0]);
        if (r->file[1]) push(cx->arena, &files, r->file[1]);
    }
    return files;
}
/* -MD: the outputs and the files they are made from, as a Makefile rule; -MP: and, as C compilers do, an empty rule for
   each of these files but the program, so that make does not stop if one has been removed. */
static bool write_deps(Ctx *cx) {
    const Options *o = cx->options;
    const char *made[] = {o->output, o->header, o->report};
    Files from = read_files(cx);
    Text text = {.arena = cx->arena};
    put_name(&text, made[0]);
    for (uint32_t i = 1; i < sizeof made / sizeof *made; i++)
        if (made[i]) text_put(&text, S(" ")), put_name(&text, made[i]);
    text_put(&text, S(":"));
    for (uint32_t i = 0; i < from.n; i++)
        if (strcmp(from.at[i], "-") != 0) text_put(&text, S(" ")), put_name(&text, from.at[i]);
    text_put(&text, S("\n"));
    for (uint32_t i = 0; i < from.n && o->phony_deps; i++)
        if (from.at[i] != o->input) put_name(&text, from.at[i]), text_put(&text, S(":\n"));
    return write_text(cx, o->dep_file, &text);
}

/* -save-temps: the intermediate files, beside OUT. */
static bool write_temps(Ctx *cx, Programs programs) {
    static const struct {
        EmitKind kind;
        const char *suffix;
    } temps[] = {{EMIT_mlir, "mlir"}, {EMIT_llvm, "ll"}, {EMIT_asm, "s"}, {EMIT_obj, "o"}};
    Str stem = path_stem(str(cx->options->output));
    bool ok = true;
    for (size_t i = 0; i < sizeof temps / sizeof *temps && ok; i++)
        if (temps[i].kind != cx->options->emit)
            ok = back(cx, programs, temps[i].kind, str_format(cx->arena, "%.*s.%s", SF(stem), temps[i].suffix).at);
    return ok;
}

static bool library(Ctx *cx, Programs programs) {
    const Options *o = cx->options;
    if (o->save_temps && file_is_regular(o->output) && !write_temps(cx, programs)) return false;
    if (o->emit == EMIT_header) return write_header(cx, programs, o->output);
    return (!o->header || write_header(cx, programs, o->header)) && (!o->dep_file || write_deps(cx)) &&
           back(cx, programs, o->emit, o->output);
}

/* The programs as text, with an empty line between them. */
static bool print(Ctx *cx, Programs programs) {
    Text text = {.arena = cx->arena};
    const Options *o = cx->options;
    each(const Program, p, programs) {
        if (p > programs.at) text_put(&text, S("\n"));
        if (o->emit == EMIT_types)
            signature_print(cx, p->j, o->nested_types, &text);
        else
            jaxpr_print(cx, p->j, &text);
    }
    return write_text(cx, o->output, &text);
}

typedef struct {
    Program *at;
    uint32_t n, cap;
} Functions;
/* The functions that transformations make of the program read: NAME, or NAME_fwd and NAME_lin. */
static bool add_functions(Ctx *cx, Functions *to, const Jaxpr *j, Transforms transforms, const char *name, bool entry) {
    static const char *const halves[] = {"fwd", "lin"};
    Jaxprs made = passes_transform(cx, j, transforms, entry ? name : NULL);
    for (uint32_t i = 0; i < made.n; i++)
        push(cx->arena, to,
             ((Program){made.n > 1 ? str_format(cx->arena, "%s_%s", name, halves[i]).at : name, made.at[i]}));
    return made.n > 0;
}
static bool all_functions(Ctx *cx, Functions *to, const Jaxpr *j) {
    const Options *o = cx->options;
    bool good = add_functions(cx, to, j, o->transforms, o->name, false);
    each(const LibraryEntry, e, o->entries) good &= add_functions(cx, to, j, e->transforms, e->name, true);
    return good && !diag_errors(cx->diags);
}
/* Lowers the functions. */
static bool lower(Ctx *cx, Functions *f) {
    cx->words = compiles(cx->options) ? codegen_words(cx) : 0;
    each(Program, p, *f)
        if (!(p->j = passes_lower(cx, p->j)) || diag_errors(cx->diags)) return false;
    return true;
}
static bool all_supported(Ctx *cx, Programs programs) {
    bool good = true;
    each(const Program, p, programs) good &= supported(cx, p->j) && codegen_interface(cx, p);
    return good;
}

static bool compile(Ctx *cx) {
    const Options *o = cx->options;
    if (o->emit == EMIT_ptx && !options_for_device(o))
        return diag_plain(cx->diags, "--emit=ptx is for --target=nvptx64");
    Files files = read_files(cx);
    each(const char *, file, files) output_input(*file);
    Jaxpr *j = front(cx);
    if (!j || diag_errors(cx->diags)) return false;
    timer_stage(cx->timer, "transform");
    if (!rules_read(cx, j)) return false;
    Functions functions = {0};
    if (!all_functions(cx, &functions, j)) return false;
    Programs programs = {functions.at, functions.n};
    if (!compiles(o)) return print(cx, programs);
    timer_stage(cx->timer, "passes");
    if (!lower(cx, &functions)) return false;
    if (o->emit == EMIT_jaxpr && !o->check_only) return print(cx, programs);
    if (!all_supported(cx, programs)) return false;
    return o->check_only || (library(cx, programs) && !diag_errors(cx->diags));
}

static bool colour(void) {
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return isatty(2) && !(no && *no) && term && strcmp(term, "dumb") != 0;
}

typedef struct {
    int argc;
    char **argv;
} Command;

static int run(void *command) {
    const Command *c = command;
    Arena *arena = arena_open();
    Ctx *cx = ctx_new(arena);
    Options o;
    int status = options_read(arena, cx->diags, c->argc, c->argv, &o);
    if (status == OPTIONS_GO) {
        cx->options = &o;
        cx->verify = o.verify || JAXCC_VERIFY;
        cx->timer = o.time_report ? timer_new(arena) : NULL;
        if (o.verbose) fputs("jaxcc " JAXCC_VERSION "\n", stderr);
        bool good = compile(cx);
        status = output_close(arena, cx->diags, good) ? 0 : 1;
        timer_stage(cx->timer, NULL);
    }
    diag_flush(cx->diags, stderr, colour());
    if (cx->timer) timer_print(cx->timer, stderr);
    arena_close(arena);
    if (fflush(stdout) == 0) return status;
    perror("jaxcc: error: cannot write standard output");
    return 1;
}

/* The first HEAP bytes of the heap are of large pages, where the system has them, and are kept: page faults are a tenth
   of the time of a compilation. */
static void heap_in_large_pages(void) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *from = sbrk(0), *aligned = from + (page - (size_t)from % page) % page;
    mallopt(M_TOP_PAD, HEAP);
    mallopt(M_TRIM_THRESHOLD, 2 * HEAP);
    mallopt(M_MMAP_THRESHOLD, HEAP / 16);
    void *volatile first = malloc(1); /* volatile: compilers leave out what is not used */
    free(first);
    mallopt(M_TOP_PAD, HEAP / 64);
    char *to = sbrk(0);
    if (to > aligned) madvise(aligned, (size_t)(to - aligned), MADV_HUGEPAGE); /* which is but advice */
}

/* Runs before LLVM's constructors, which allocate. */
__attribute__((constructor(101))) static void guard(void) {
    heap_in_large_pages();
    output_guard();
    crash_report();
    codegen_no_memory(crash_no_memory);
}

int main(int argc, char **argv) { return crash_on_stack(run, &(Command){argc, argv}); }
