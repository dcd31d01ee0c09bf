/* The programs of stdlib/, which the compiler contains as text. */
#include "eval.h"
#include "rewrite.h"
#include "stdlib.h"
#include "../parse/parse.h"
#include "../typecheck/check.h"
#include <assert.h>
#include <math.h>

struct Stdlib {
    Jaxpr **at;       /* by row of stdlib_files; NULL until used */
    Evaluator **runs; /* likewise */
    uint32_t n;
};

Jaxpr *text_file_read(Ctx *cx, const TextFile *file, const char *folder) {
    Str path = str_format(cx->arena, "%s/%s.jaxpr", folder, file->name);
    return parse(cx, diags_source(cx->diags, path.at, (Str){file->text, file->n}), NULL);
}
static Jaxpr *read(Ctx *cx, uint32_t row) { return text_file_read(cx, &stdlib_files[row], "<stdlib>"); }
/* After inlining, and without common or dead equations. */
static Jaxpr *load(Ctx *cx, uint32_t row) {
    Jaxpr *j = read(cx, row);
    if (!j || !check(cx, j)) return NULL;
    bool outer = cx->stdlib_passes;
    cx->stdlib_passes = true;
    j = passes_lower(cx, j);
    cx->stdlib_passes = outer;
    return j;
}

/* The number of rows if there is none. */
static uint32_t row_named(const char *name) {
    uint32_t i = 0;
    while (stdlib_files[i].name && strcmp(stdlib_files[i].name, name) != 0) i++;
    return i;
}
Jaxpr *stdlib_read(Ctx *cx, const char *name) {
    uint32_t row = row_named(name);
    return stdlib_files[row].name ? read(cx, row) : NULL;
}
/* Its row, loaded; the number of rows if there is none. */
static uint32_t row_of(Ctx *cx, const char *name) {
    struct Stdlib *s = cx->stdlib;
    if (!s) {
        s = cx->stdlib = arena_new(cx->arena, struct Stdlib, 1);
        while (stdlib_files[s->n].name) s->n++;
        s->at = arena_new(cx->arena, Jaxpr *, s->n);
        s->runs = arena_new(cx->arena, Evaluator *, s->n);
    }
    uint32_t i = row_named(name);
    if (i < s->n && !s->at[i]) s->at[i] = load(cx, i);
    return i;
}
const Jaxpr *stdlib_program(Ctx *cx, const char *name) {
    uint32_t i = row_of(cx, name);
    return i < cx->stdlib->n ? cx->stdlib->at[i] : NULL;
}
Evaluator *stdlib_evaluator(Ctx *cx, const char *name) {
    uint32_t i = row_of(cx, name);
    if (i == cx->stdlib->n || !cx->stdlib->at[i]) return NULL;
    if (!cx->stdlib->runs[i]) cx->stdlib->runs[i] = evaluator_new(cx, cx->stdlib->at[i]);
    return cx->stdlib->runs[i];
}

Dtype stdlib_dtype(Ctx *cx, Prim prim, Dtype result) {
    char name[STDLIB_NAME];
    int n = snprintf(name, sizeof name, "%s_f32", prim_name[prim]);
    assert(n < STDLIB_NAME);
    return result == DT_f64 || !stdlib_program(cx, name) ? DT_f64 : DT_f32;
}

static void extend(Vals vs, Val *first, Val *last) {
    each(const Val, v, vs) {
        if (*v < *first) *first = *v;
        if (*v > *last) *last = *v;
    }
}
void jaxpr_range(const Ctx *cx, const Jaxpr *j, Val *first, Val *last) {
    Jaxprs all = jaxprs_within(cx->arena, j);
    *first = UINT32_MAX, *last = 0;
    each(Jaxpr *, k, all) {
        extend((*k)->in, first, last);
        extend((*k)->out, first, last);
        each(const Eqn, e, (*k)->eqns) {
            extend(e->in, first, last);
            extend(e->out, first, last);
        }
    }
}

const StdlibFast *stdlib_fast(const char *name) {
    static const StdlibFast fast[] = {
        {"sin_f32", 0x1p17, false}, {"cos_f32", 0x1p17, false}, {"tan_f32", 0x1p17, false}, {"sin_f64", 0x1p30, false},
        {"cos_f64", 0x1p30, false}, {"tan_f64", 0x1p30, false}, {"lgamma_f32", -0.5, true}};
    for (unsigned i = 0; i < sizeof fast / sizeof *fast; i++)
        if (strcmp(fast[i].name, name) == 0) return &fast[i];
    return NULL;
}
bool stdlib_suits(const StdlibFast *fast, double x) { return fast->above ? x > fast->bound : fabs(x) < fast->bound; }
