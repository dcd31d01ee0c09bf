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

/* Checks that the text of a pass's output reads back as the same program. */
static void verify_text(Ctx *cx, const char *pass, const Jaxpr *j) {
    Str text = print(cx, j), why;
    Jaxpr *again = parse(cx, diags_source(cx->diags, pass, text), NULL);
    if (!again || !check(cx, again)) broken(cx, pass, "a program that cannot be read again", text);
    if (!jaxpr_equal(cx, j, again, &why))
        broken(cx, pass, str_format(cx->arena, "a program that reads as another (%.*s)", SF(why)).at, text);
}
/* Checks that the output of a pass is well typed and can be printed; what that takes is freed again. Only types and
   numbers of values last, because types name both. */
static void verify(Ctx *cx, const char *pass, Jaxpr *j) {
    if (!check(cx, j)) broken(cx, pass, "an ill-typed program", print(cx, j));
    Ctx own = *cx;
    own.arena = arena_open();
    own.diags = diags_new(own.arena);
    verify_text(&own, pass, j);
    arena_close(own.arena);
    cx->blocks = own.blocks, cx->nvals = own.nvals;
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
static const char *flag_named(Ctx *cx, const Transforms *all, uint32_t n, const char *entry) {
    Text text = {.arena = cx->arena};
    text_add(&text, "for %s", all->at[n].text);
    if (entry) text_add(&text, " of --entry %s", entry);
    for (uint32_t i = 0; i < n; i++) text_add(&text, "%s%s", i ? " " : ", after ", all->at[i].text);
    return str_c(cx->arena, (Str){text.at, text.n});
}
/* The passes of this half. */
static Jaxpr *run(Ctx *cx, Jaxpr *j, unsigned half) {
    for (unsigned i = 0; i < NPASSES && j; i++)
        if (list[i].half & half) j = passed(cx, list[i].name, j, list[i].run(cx, j));
    return j;
}
/* The transformations, each tidied. */
static void run_transforms(Ctx *cx, Jaxprs *made, const Transforms *all, const char *entry) {
    for (uint32_t i = 0; i < all->n && made->n; i++) {
        const Transform *t = &all->at[i];
        const Jaxpr *in = made->at[0];
        assert(made->n == 1);
        diag_context(cx->diags, flag_named(cx, all, i, entry));
        made->n = transform(cx, in, t, made->at);
        if (!made->n) passed(cx, t->text, in, NULL);
        for (uint32_t k = 0; k < made->n; k++) {
            passed(cx, t->text, in, made->at[k]);
            made->at[k] = passed(cx, "tidy", made->at[k], pass_tidy(cx, made->at[k]));
            if (!made->at[k]) made->n = 0;
        }
    }
    diag_context(cx->diags, NULL);
    for (uint32_t k = 0; k < made->n; k++) /* prune wants it checked */
        if (!check(cx, made->at[k])) broken(cx, "tidy", "an ill-typed program", print(cx, made->at[k]));
}
/* Passes run on a program of their own, in which they may use what only passes write. */
typedef struct {
    DimChecks *checks;
    bool passes;
} Outer;
static Outer begin(Ctx *cx, const Jaxpr *own) {
    Outer outer = {cx->dim_checks, cx->passes};
    cx->passes = true, cx->dim_checks = own->dim_checks;
    return outer;
}
static void end(Ctx *cx, Outer outer) { cx->passes = outer.passes, cx->dim_checks = outer.checks; }

static Jaxpr *run_half(Ctx *cx, const Jaxpr *in, unsigned half) {
    Jaxpr *j = own(cx, in);
    Outer outer = begin(cx, j);
    j = run(cx, j, half);
    end(cx, outer);
    return j;
}
Jaxpr *passes_normalise(Ctx *cx, const Jaxpr *in) { return run_half(cx, in, NORMALISE); }
Jaxpr *passes_lower(Ctx *cx, const Jaxpr *in) { return run_half(cx, in, LOWER); }
Jaxprs passes_transform(Ctx *cx, const Jaxpr *in, Transforms all, const char *entry) {
    Jaxprs made = {arena_new(cx->arena, Jaxpr *, MOST_TRANSFORMED), 1};
    made.at[0] = all.n ? own(cx, in) : (Jaxpr *)in;
    if (!all.n) return made;
    Outer outer = begin(cx, made.at[0]);
    made.at[0] = run(cx, made.at[0], NORMALISE);
    made.n = made.at[0] != NULL;
    run_transforms(cx, &made, &all, entry);
    if (!made.n) made.at[0] = NULL;
    end(cx, outer);
    return made;
}
