/* Reading a program, as the compiler reads one. */
#ifndef JAXCC_TESTS_PROGRAM_H
#define JAXCC_TESTS_PROGRAM_H
#include "file.h"
#include "options.h"
#include "parse/parse.h"
#include "typecheck/check.h"

/* The program of a file, checked; NULL after diagnostics. */
static inline Jaxpr *read_program(Ctx *cx, const char *path) {
    Str text;
    if (!file_read(cx->arena, cx->diags, path, MOST_BYTES, &text)) return NULL;
    Jaxpr *j = parse(cx, diags_source(cx->diags, path, text), NULL);
    return j && check(cx, j) ? j : NULL;
}

#endif
