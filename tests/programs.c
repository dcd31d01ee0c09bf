/* A library of programs of several files, which the compiler's command line cannot ask for:

       programs OUT.so NAME=FILE.jaxpr...

   reads all of them in one compilation, runs the passes on each, and writes OUT.so and its header OUT.h. */
#include "codegen/host/header.h"
#include "passes/passes.h"
#include "program.h"

static const Jaxpr *program(Ctx *cx, const char *path) {
    const Jaxpr *j = read_program(cx, path);
    if (j) j = passes_lower(cx, j);
    return j && supported(cx, j) ? j : NULL;
}

static bool write_header(Ctx *cx, Programs all, const char *path) {
    Text text = {.arena = cx->arena};
    header_text(cx, all, &text);
    const Output *out = output_open(cx->arena, cx->diags, path, false);
    return out && output_write(cx->diags, out, (Str){text.at, text.n});
}

static bool library(Ctx *cx, int n, char **args) {
    Program *at = arena_new(cx->arena, Program, (size_t)n);
    for (int i = 0; i < n; i++) {
        const char *equals = strchr(args[i], '=');
        if (!equals) return diag_plain(cx->diags, "'%s' is not NAME=FILE", args[i]);
        at[i].name = str_c(cx->arena, (Str){args[i], (uint32_t)(equals - args[i])});
        if (!(at[i].j = program(cx, equals + 1))) return false;
    }
    Programs all = {at, (uint32_t)n};
    const char *path = cx->options->output;
    const Output *out = output_open(cx->arena, cx->diags, path, true);
    return out && codegen(cx, all, EMIT_so, out) &&
           write_header(cx, all, str_format(cx->arena, "%.*s.h", SF(path_stem(str(path)))).at);
}

int main(int argc, char **argv) {
    if (argc < 3) return fputs("usage: programs OUT.so NAME=FILE.jaxpr...\n", stderr), 2;
    Arena *arena = arena_open();
    Ctx *cx = ctx_new(arena);
    Options o = {.output = argv[1], .opt = 2};
    cx->options = &o;
    cx->verify = true;
    bool good = library(cx, argc - 2, argv + 2);
    good = output_close(arena, cx->diags, good);
    diag_flush(cx->diags, stderr, false);
    arena_close(arena);
    return !good;
}
