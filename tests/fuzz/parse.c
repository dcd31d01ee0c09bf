/* Any bytes: parsed, printed, read again, typechecked, warned of, rewritten by the passes, which are verified. A crash,
   a hang, a leak, or a well-typed program that reads otherwise than it was printed is a bug. A value that is kept as it
   stood and has fmt= in it is not read again: where the text of fmt ends is told by what stands behind the value. */
#include "compiler/lift.h"
#include "compiler/lint.h"
#include "compiler/options.h"
#include "compiler/parse/parse.h"
#include "compiler/passes/passes.h"
#include "compiler/typecheck/check.h"
#include "compiler/typecheck/signature.h"
#include "limit.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

/* What was printed of it reads as the same program. */
static void reread(Ctx *cx, const Jaxpr *j, Text text) {
    Str why = S("it is refused");
    Jaxpr *again = parse(cx, diags_source(cx->diags, "printed", (Str){text.at, text.n}), NULL);
    if (again && check(cx, again) && jaxpr_equal(cx, j, again, &why)) return;
    fprintf(stderr, "printed, it reads as another program: %.*s\n%.*s\n", SF(why), SF(((Str){text.at, text.n})));
    diag_flush(cx->diags, stderr, false);
    abort();
}

static bool value_has_fmt(const Value *v) {
    if (v->kind == V_TEXT) return v->s.n && memmem(v->s.at, v->s.n, "fmt=", 4);
    bool any = false;
    for (uint32_t i = 0; (v->kind == V_LIST || v->kind == V_PAIR) && i < v->list.n; i++)
        any |= value_has_fmt(&v->list.at[i]);
    return any;
}
static bool has_fmt(Ctx *cx, const Jaxpr *j, Intern *seen) {
    bool fresh, any = false;
    intern(seen, &j, sizeof j, &fresh);
    if (!fresh) return false;
    each(const Eqn, e, j->eqns) {
        each(const Param, p, e->params) any |= value_has_fmt(&p->value);
        Jaxprs programs = eqn_jaxprs(cx->arena, e);
        each(Jaxpr *, inner, programs) any |= has_fmt(cx, *inner, seen);
    }
    return any;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    limit(1);
    Arena *arena = arena_open();
    Ctx *cx = ctx_new(arena);
    Options o = {.opt = 2, .name = "f"};
    Text text = {.arena = arena};
    cx->options = &o;
    cx->verify = true;
    diag_option(cx->diags, S("all"));
    Jaxpr *misnamed = NULL,
          *j = parse(cx, diags_source(cx->diags, "fuzz", (Str){(const char *)bytes, (uint32_t)n}), &misnamed);
    if (j) jaxpr_print(cx, j, &text);
    if (misnamed) check(cx, misnamed);
    if (j && n % 2) consts_lift(cx, j);
    if (j && check(cx, j)) {
        text.n = 0;
        jaxpr_print(cx, j, &text);
        cx->verify = !has_fmt(cx, j, &(Intern){.arena = arena});
        if (cx->verify) reread(cx, j, text);
        lint(cx, j);
        signature_print(cx, j, true, &text);
        passes_lower(cx, j);
    }
    limit(0);
    arena_close(arena);
    return 0;
}
