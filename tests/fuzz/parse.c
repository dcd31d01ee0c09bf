/* Any bytes: parsed, printed, typechecked; a crash, a hang or a leak is a bug. `make MODE=fuzz
   fuzz`, then build/fuzz/fuzz/parse -dict=… FOLDER-OF-JAXPRS */
#include "compiler/options.h"
#include "compiler/parse/parse.h"
#include "compiler/passes/passes.h"
#include "compiler/typecheck/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    Arena *arena = arena_open();
    Ctx *cx = ctx_new(arena);
    Options o = {.opt = 2, .name = "f"};
    Text text = {.arena = arena};
    cx->options = &o;
    Jaxpr *j = parse(cx, diags_source(cx->diags, "fuzz", (Str){(const char *)bytes, (uint32_t)n}));
    if (j) jaxpr_print(cx, j, &text);
    if (j && check(cx, j)) passes_run(cx, j);
    arena_close(arena);
    return 0;
}
