/* jaxcc: text in, library out. */
#include "options.h"
#include "codegen/header.h"
#include "consts.h"
#include "crash.h"
#include "dims.h"
#include "file.h"
#include "lift.h"
#include "lint.h"
#include "parse/parse.h"
#include "passes/passes.h"
#include "signature.h"
#include "timer.h"
#include "typecheck/check.h"
#include <stdlib.h>
#include <unistd.h>

#ifndef JAXCC_VERIFY
#define JAXCC_VERIFY 0 /* 1: the verifier is always on */
#endif

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

/* Is more asked for than the program that was read? */
static bool compiles(const Options *o) {
    return o->check_only || (o->emit != EMIT_types && (o->emit != EMIT_jaxpr || o->passes));
}

/* Text to program; typed, unless --no-check. */
static Jaxpr *front(Ctx *cx) {
    const Options *o = cx->options;
    Str text;
    timer_stage(cx->timer, "read");
    if (!file_read(cx->arena, cx->diags, o->input, MOST_BYTES, &text)) return NULL;
    uint32_t file = diags_source(cx->diags, strcmp(o->input, "-") ? o->input : "<stdin>", text);
    timer_stage(cx->timer, "parse");
    Jaxpr *read = parse(cx, file), *j = read ? read : cx->misnamed;
    if (!j || o->no_check) return read;
    timer_stage(cx->timer, "typecheck");
    InTypes in = {0};
    if (!in_types(cx, &in)) return NULL;
    dims_fix(cx, j, in.at, in.n);
    if (o->consts && !consts_bind(cx, j, o->consts)) return NULL;
    if (!o->consts && (compiles(o) || o->check_only)) consts_warn(cx, j);
    if (!o->consts && compiles(o)) consts_lift(cx, j);
    if (o->in_type && !check_inputs(cx, j, in.at, in.n, in.span)) return NULL;
    if (!check(cx, j) || !read) return NULL;
    lint(cx, j);
    return j;
}

/* Writes `kind`, made by the code generator; to a pipe or a device by way of a temporary file. */
static bool back(Ctx *cx, const Jaxpr *j) {
    const Options *o = cx->options;
    if (file_is_regular(o->output)) return codegen(cx, j, o->emit, o->output);
    char *temp = file_temporary(cx->arena, cx->diags);
    Str text;
    bool ok = temp && codegen(cx, j, o->emit, temp) &&
              file_read(cx->arena, cx->diags, temp, ALL_OF_IT, &text) &&
              file_write(cx->arena, cx->diags, o->output, text);
    if (temp) unlink(temp);
    return ok;
}

static bool write_header(Ctx *cx, const Jaxpr *j, const char *path) {
    Text text = {.arena = cx->arena};
    return header_text(cx, j, &text) &&
           file_write(cx->arena, cx->diags, path, (Str){text.at, text.n});
}

/* -MD: what OUT is made from, as a Makefile rule. */
static bool write_deps(Ctx *cx) {
    const Options *o = cx->options;
    const char *files[] = {o->output, strcmp(o->input, "-") ? o->input : NULL, o->consts};
    Text text = {.arena = cx->arena};
    for (unsigned i = 0; i < 3; i++) {
        if (i && files[i]) text_put(&text, S(" "));
        for (const char *c = files[i]; c && *c; c++)
            text_add(&text, strchr(" #", *c) ? "\\%c" : *c == '$' ? "$%c" : "%c", *c);
        if (i == 0) text_put(&text, S(":"));
    }
    text_put(&text, S("\n"));
    return file_write(cx->arena, cx->diags, o->dep_file, (Str){text.at, text.n});
}

/* -save-temps: what is made on the way, beside OUT. */
static bool write_temps(Ctx *cx, const Jaxpr *j) {
    static const struct {
        EmitKind kind;
        const char *suffix;
    } temps[] = {{EMIT_mlir, "mlir"}, {EMIT_llvm, "ll"}, {EMIT_asm, "s"}, {EMIT_obj, "o"}};
    Str stem = path_stem(str(cx->options->output));
    bool ok = true;
    for (size_t i = 0; i < sizeof temps / sizeof *temps && ok; i++)
        if (temps[i].kind != cx->options->emit)
            ok = codegen(cx, j, temps[i].kind,
                         str_format(cx->arena, "%.*s.%s", SF(stem), temps[i].suffix).at);
    return ok;
}

static bool library(Ctx *cx, const Jaxpr *j) {
    const Options *o = cx->options;
    if (o->save_temps && file_is_regular(o->output) && !write_temps(cx, j)) return false;
    if (o->emit == EMIT_header) return write_header(cx, j, o->output);
    if (o->header && !write_header(cx, j, o->header)) return false;
    if (back(cx, j) && (!o->dep_file || write_deps(cx))) return true;
    if (o->header) unlink(o->header);
    return false;
}

static bool print(Ctx *cx, const Jaxpr *j) {
    Text text = {.arena = cx->arena};
    const Options *o = cx->options;
    if (o->emit == EMIT_types)
        signature_print(cx, j, o->nested_types, &text);
    else
        jaxpr_print(cx, j, &text);
    return file_write(cx->arena, cx->diags, o->output, (Str){text.at, text.n});
}

static bool compile(Ctx *cx) {
    const Options *o = cx->options;
    if ((o->target && strncmp(o->target, "nvptx64", 7) == 0) || o->emit == EMIT_ptx)
        return diag_plain(cx->diags, "--target=nvptx64 is not supported yet");
    Jaxpr *j = front(cx);
    if (!j || diag_errors(cx->diags)) return false;
    if (!compiles(o)) return print(cx, j);
    timer_stage(cx->timer, "passes");
    j = passes_run(cx, j);
    if (!j || diag_errors(cx->diags)) return false;
    if (o->emit == EMIT_jaxpr && !o->check_only) return print(cx, j);
    if (!supported(cx, j)) return false;
    return o->check_only || (library(cx, j) && !diag_errors(cx->diags));
}

static bool colour(void) {
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return isatty(2) && !(no && *no) && term && strcmp(term, "dumb") != 0;
}

int main(int argc, char **argv) {
    crash_report();
    Arena *arena = arena_open();
    Ctx *cx = ctx_new(arena);
    Options o;
    int status = options_read(arena, cx->diags, argc, argv, &o);
    if (status == OPTIONS_GO) {
        cx->options = &o;
        cx->verify = o.verify || JAXCC_VERIFY;
        cx->timer = o.time_report ? timer_new(arena) : NULL;
        if (o.verbose) fputs("jaxcc " JAXCC_VERSION "\n", stderr);
        status = compile(cx) ? 0 : 1;
        timer_stage(cx->timer, NULL);
    }
    diag_flush(cx->diags, stderr, colour());
    if (cx->timer) timer_print(cx->timer, stderr);
    arena_close(arena);
    if (fflush(stdout) == 0) return status;
    perror("jaxcc: error: cannot write standard output");
    return 1;
}
