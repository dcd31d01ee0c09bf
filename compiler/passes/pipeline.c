/* The passes in the order of passes.def. */
#include "transform/tx.h"
#include "../parse/parse.h"
#include "../typecheck/check.h"
#include <stdlib.h>

enum { NORMALISE = 1, LOWER = 2, BOTH = NORMALISE | LOWER };
static const struct {
    const char *name;
    Pass *run;
    unsigned half;
} list[] = {
#define PASS(name, half, help) {#name, pass_##name, half},
#include "passes.def"
};
enum { NPASSES = sizeof list / sizeof *list };

static _Noreturn void broken(Ctx *cx, const char *pass, const char *what, Str text) {
    fprintf(stderr, "jaxcc: internal error: pass %s wrote %s:\n%.*s\n", pass, what, SF(text));
    diag_flush(cx->diags, stderr, false);
    exit(3);
}

static Str print(Ctx *cx, const Jaxpr *j) {
    Text text = {.arena = cx->arena};
    jaxpr_print(cx, j, &text);
    return (Str){text.at, text.n};
}

/* Checks that the output of a pass is well typed and that its text reads back as the same program. */
static void verify(Ctx *cx, const char *pass, Jaxpr *j) {
    Str text = print(cx, j);
    if (!check(cx, j)) broken(cx, pass, "an ill-typed program", text);
    Jaxpr *again = parse(cx, diags_source(cx->diags, pass, text), NULL);
    if (!again || !check(cx, again)) broken(cx, pass, "a program that cannot be read again", text);
    Str why;
    if (!jaxpr_equal(cx, j, again, &why))
        broken(cx, pass, str_format(cx->arena, "a program that reads as another (%.*s)", SF(why)).at, text);
}

bool rank_compiles(Ctx *cx, Type t, Span span) {
    return !t || type_at(cx->types, t)->rank <= COMPILED_RANK ||
           diag(cx->diags, span, "more than %d dimensions are not supported yet", COMPILED_RANK);
}

/* The same program, with a list of its own for the conditions on symbols that the passes add. */
static Jaxpr *own(Ctx *cx, const Jaxpr *in) {
    Jaxpr *j = arena_new(cx->arena, Jaxpr, 1);
    *j = *in;
    j->dim_checks = arena_new(cx->arena, DimChecks, 1);
    each(DimCheck, c, *in->dim_checks) dim_checks_add(cx->arena, j->dim_checks, *c);
    return j;
}

/* What a pass made of `in`, checked. */
static Jaxpr *passed(Ctx *cx, const char *name, const Jaxpr *in, Jaxpr *j) {
    if (!j && !diag_errors(cx->diags)) broken(cx, name, "nothing, and does not say why, for", print(cx, in));
    if (j && cx->verify) verify(cx, name, j);
    return j;
}
/* For messages: "for --grad, after --jvp --vjp". */
static const char *flag_named(Ctx *cx, const Transforms *all, uint32_t n) {
    Text text = {.arena = cx->arena};
    text_add(&text, "for %s", all->at[n].text);
    for (uint32_t i = 0; i < n; i++) text_add(&text, "%s%s", i ? " " : ", after ", all->at[i].text);
    return str_c(cx->arena, (Str){text.at, text.n});
}
/* What the passes of this half leave, and then these transformations. */
static Jaxpr *run(Ctx *cx, const Jaxpr *in, unsigned half, const Transforms *all) {
    Jaxpr *j = own(cx, in);
    DimChecks *checks = cx->dim_checks;
    bool outer = cx->passes;
    cx->passes = true, cx->dim_checks = j->dim_checks;
    for (unsigned i = 0; i < NPASSES && j; i++)
        if (list[i].half & half) j = passed(cx, list[i].name, j, list[i].run(cx, j));
    for (uint32_t i = 0; all && i < all->n && j; i++) {
        const Transform *t = &all->at[i];
        diag_context(cx->diags, flag_named(cx, all, i));
        j = passed(cx, t->text, j, transform(cx, j, t));
        if (j) j = passed(cx, "tidy", j, pass_tidy(cx, j));
    }
    diag_context(cx->diags, NULL);
    if (j && all && !check(cx, j))
        broken(cx, "tidy", "an ill-typed program", print(cx, j)); /* prune wants it checked */
    cx->passes = outer, cx->dim_checks = checks;
    return j;
}
Jaxpr *passes_normalise(Ctx *cx, const Jaxpr *in) { return run(cx, in, NORMALISE, NULL); }
Jaxpr *passes_lower(Ctx *cx, const Jaxpr *in) { return run(cx, in, LOWER, NULL); }
Jaxpr *passes_transform(Ctx *cx, const Jaxpr *in, Transforms all) {
    return all.n ? run(cx, in, NORMALISE, &all) : (Jaxpr *)in;
}
