/* The programs of stdlib/, which lie in the compiler as text. */
#include "rewrite.h"
#include "../parse/parse.h"
#include "../typecheck/check.h"

/* Written by the Makefile; ended by a row of zeros. */
extern const struct {
    const char *name, *text;
    uint32_t n;
} stdlib_files[];

struct Stdlib {
    Jaxpr **at; /* by row of stdlib_files; NULL until used */
    uint32_t n;
};

/* Inlined, without what is computed twice or for nothing. */
static Jaxpr *load(Ctx *cx, uint32_t row) {
    Str text = {stdlib_files[row].text, stdlib_files[row].n};
    Str path = str_format(cx->arena, "<stdlib>/%s.jaxpr", stdlib_files[row].name);
    Jaxpr *j = parse(cx, diags_source(cx->diags, path.at, text));
    if (!j || !check(cx, j)) return NULL;
    return passes_run(cx, j);
}

const Jaxpr *stdlib_program(Ctx *cx, const char *name) {
    if (!cx->stdlib) {
        cx->stdlib = arena_new(cx->arena, struct Stdlib, 1);
        while (stdlib_files[cx->stdlib->n].name)
            cx->stdlib->n++;
        cx->stdlib->at = arena_new(cx->arena, Jaxpr *, cx->stdlib->n);
    }
    for (uint32_t i = 0; i < cx->stdlib->n; i++) {
        if (strcmp(stdlib_files[i].name, name) != 0) continue;
        if (!cx->stdlib->at[i]) cx->stdlib->at[i] = load(cx, i);
        return cx->stdlib->at[i];
    }
    return NULL;
}

double stdlib_fast_bound(const char *name) {
    static const struct {
        const char *name;
        double bound;
    } bounds[] = {{"sin_f32", 0x1p17}, {"cos_f32", 0x1p17}, {"tan_f32", 0x1p17},
                  {"sin_f64", 0x1p30}, {"cos_f64", 0x1p30}, {"tan_f64", 0x1p30}};
    for (unsigned i = 0; i < sizeof bounds / sizeof *bounds; i++)
        if (strcmp(bounds[i].name, name) == 0) return bounds[i].bound;
    return 0;
}
