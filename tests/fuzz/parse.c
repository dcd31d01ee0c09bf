/* Any bytes: parsed, printed, read again, typechecked, warned of, rewritten by the passes, which are verified.
   A crash, a hang, a leak, or a well-typed program that reads otherwise than it was printed is a bug. */
#include "compiler/lift.h"
#include "compiler/lint.h"
#include "compiler/options.h"
#include "compiler/parse/parse.h"
#include "compiler/passes/passes.h"
#include "compiler/signature.h"
#include "compiler/typecheck/check.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

/* What was printed of it reads as the same program. */
static void reread(Ctx *cx, const Jaxpr *j, Text text) {
    Str why = S("it is refused");
    Jaxpr *again = parse(cx, diags_source(cx->diags, "printed", (Str){text.at, text.n}));
    if (again && check(cx, again) && jaxpr_equal(cx, j, again, &why)) return;
    fprintf(stderr, "printed, it reads as another program: %.*s\n%.*s\n", SF(why),
            SF(((Str){text.at, text.n})));
    diag_flush(cx->diags, stderr, false);
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    Arena *arena = arena_open();
    Ctx *cx = ctx_new(arena);
    Options o = {.opt = 2, .name = "f"};
    Text text = {.arena = arena};
    cx->options = &o;
    cx->verify = true;
    diag_option(cx->diags, S("all"));
    Jaxpr *j = parse(cx, diags_source(cx->diags, "fuzz", (Str){(const char *)bytes, (uint32_t)n}));
    if (j) jaxpr_print(cx, j, &text);
    if (j && n % 2) consts_lift(cx, j);
    if (j && check(cx, j)) {
        text.n = 0;
        jaxpr_print(cx, j, &text);
        reread(cx, j, text);
        lint(cx, j);
        signature_print(cx, j, true, &text);
        passes_run(cx, j);
    }
    arena_close(arena);
    return 0;
}
