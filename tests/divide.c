#include "divide.h"
#include "passes/transform/tx.h"
#include "program.h"
#include <stdio.h>

static Jaxpr *differentiated(Ctx *cx, const char *path) {
    static Transform jvp = {.kind = TRANSFORM_JVP, .text = "--jvp"};
    const Jaxpr *j = read_program(cx, path);
    return j ? passes_transform(cx, j, (Transforms){.at = &jvp, .n = 1}, NULL).at[0] : NULL;
}
/* `of` primals come first; a bit of `seed` for each tangent. */
static Jaxpr *divided(Ctx *cx, const Jaxpr *j, uint64_t seed) {
    Arena *arena = cx->arena;
    Tx tx = {.cx = cx, .map.cx = cx, .tangent.cx = cx};
    Builder b = {.cx = cx, .span = j->span};
    Inner lin;
    Vals in = {arena_new(arena, Val, j->in.n + 1), j->in.n}, unknown = {arena_new(arena, Val, j->in.n + 1), 0};
    Val *known = arena_new(arena, Val, j->in.n + 1), *out = arena_new(arena, Val, j->out.n + 1);
    for (uint32_t i = 0; i < in.n; i++) {
        Str name = val_info(cx, j->in.at[i])->name;
        known[i] = in.at[i] = tx_placeholder(&tx, j->in.at[i]);
        val_info(cx, in.at[i])->name = name;
        valmap_put(&tx.map, j->in.at[i], in.at[i]);
        bool tangent = name.n > 2 && memcmp(name.at + name.n - 2, "_t", 2) == 0;
        if (tangent && (seed >> (i % 64) & 1)) known[i] = 0, unknown.at[unknown.n++] = in.at[i];
    }
    if (!split_into(&tx, &b, j, known, NULL, out, &lin)) return NULL;
    Vals args = vals_joined(arena, 2, (Vals[]){lin.captured, unknown}), rest = b_call(&b, lin.j, args.n, args.at);
    for (uint32_t i = 0, k = 0; i < j->out.n; i++)
        if (!out[i]) out[i] = rest.at[k++];
    Jaxpr *new = jaxpr_with(cx, j, b.eqns, (Vals){out, j->out.n});
    new->in = in;
    return b.failed ? NULL : new;
}
bool divide(const char *from, const char *to, uint64_t seed) {
    Arena *arena = arena_open();
    Ctx *cx = ctx_new(arena);
    Options o = {.input = from};
    Text text = {.arena = arena};
    cx->options = &o, cx->verify = true;
    Jaxpr *j = differentiated(cx, from);
    bool outer = cx->passes;
    cx->passes = true;
    if (j) cx->dim_checks = j->dim_checks, j = divided(cx, j, seed);
    cx->passes = outer;
    diag_flush(cx->diags, stderr, false);
    if (j) jaxpr_print(cx, j, &text);
    FILE *f = j ? fopen(to, "w") : NULL;
    bool good = f && fwrite(text.at, 1, text.n, f) == text.n;
    good = f && fclose(f) == 0 && good;
    arena_close(arena);
    return good;
}
