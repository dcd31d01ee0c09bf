/* Programs that are well typed by construction: they are accepted, what is printed of them reads as
   the same program, and the passes keep them well typed and their results' types.

   `typed --write SEED N DIR` writes N programs that compile, S.jaxpr with inputs S.in.npz, for
   compare.sh; --write-derived short ones of rows with derivatives, for compare_jax.py. `typed --rows` names the rows of
   prims.def that no program has. */
#include "gen.h"
#include "limit.h"
#include "compiler/options.h"
#include "compiler/parse/parse.h"
#include "compiler/passes/passes.h"
#include "compiler/typecheck/check.h"
#include "runtime/npz.h"
#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static Str printed(Ctx *cx, const Jaxpr *j) {
    Text text = {.arena = cx->arena};
    jaxpr_print(cx, j, &text);
    return (Str){text.at, text.n};
}

static _Noreturn void wrong(Ctx *cx, const char *what, Str why, Str text) {
    fprintf(stderr, "%s %.*s\n%.*s\n", what, SF(why), SF(text));
    diag_flush(cx->diags, stderr, false);
    abort();
}

/* It is well typed, and what is printed of it reads as the same. */
static void holds(Ctx *cx, Jaxpr *j, const char *whose) {
    Str text = printed(cx, j), why = S("");
    if (!check(cx, j)) wrong(cx, "it is refused:", str(whose), text);
    Jaxpr *again = parse(cx, diags_source(cx->diags, "printed", text), NULL);
    if (!again) wrong(cx, "what is printed of it does not parse:", str(whose), text);
    if (!check(cx, again)) wrong(cx, "what is printed of it is ill typed:", str(whose), text);
    if (!jaxpr_equal(cx, j, again, &why)) wrong(cx, "printed, it reads as another:", why, text);
}

/* Are there errors, and do they say that something is not supported, or that an option is missing? */
static bool unsupported(Ctx *cx) {
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    bool any = diag_errors(cx->diags);
    diag_flush(cx->diags, f, false);
    fclose(f);
    any = any &&
          (strstr(text, "supported") || strstr(text, " --") || strstr(text, "derivative") || strstr(text, "transpose"));
    if (!any) fputs(text, stderr);
    free(text);
    return any;
}

/* What passes made of `j`: `after`, or NULL if that is not supported. */
static Jaxpr *passed(Ctx *cx, const Jaxpr *j, Jaxpr *after) {
    if (!after && unsupported(cx)) return NULL;
    if (!after) wrong(cx, "the passes refuse it", S(""), printed(cx, j));
    bool outer = cx->passes;
    cx->passes = true;
    holds(cx, after, "a program that the passes wrote");
    cx->passes = outer;
    return after;
}
/* Half of the programs are differentiated, up to three times; most of these are of rows with derivatives alone. */
static Transforms draw_transforms(Ctx *cx, Dice *d) {
    static const Transform of[] = {{TRANSFORM_JVP, "--jvp", {0}}, {TRANSFORM_VJP, "--vjp", {0}}};
    Transforms all = {0};
    for (uint32_t n = dice_draw(d, 6); n > 2; n--) push(cx->arena, &all, of[dice_draw(d, 2)]);
    return all;
}

/* The results of `after` begin with those of `j`, or are those. */
static void same_results(Ctx *cx, const Jaxpr *j, Jaxpr *after, bool more) {
    if (more ? after->out.n < j->out.n : after->out.n != j->out.n)
        wrong(cx, "the passes change the results", S(""), printed(cx, j));
    for (uint32_t i = 0; i < j->out.n; i++)
        if (val_type(cx, j->out.at[i]) != val_type(cx, after->out.at[i]))
            wrong(cx, "the passes change a result's type", S(""), printed(cx, after));
}
/* Not after every pass, which would take most of the time. `normalised`: lowered after the first half of the passes. */
static void laws(Ctx *cx, Jaxpr *j, bool normalised, Transforms transforms) {
    holds(cx, j, "a well-typed program");
    Jaxpr *after = normalised ? passed(cx, j, passes_normalise(cx, j)) : j, *derived = after;
    if (after && transforms.n) derived = passed(cx, after, passes_transform(cx, after, transforms, NULL).at[0]);
    if (after && derived && derived != after) same_results(cx, after, derived, true);
    if (derived) after = passed(cx, derived, passes_lower(cx, derived));
    if (derived && after) same_results(cx, derived, after, false);
}

static const Options options = {.opt = 2, .name = "f"};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    Arena *arena = arena_open();
    Ctx *cx = ctx_new(arena);
    Dice dice = {bytes, n, 0};
    cx->options = &options;
    limit(1);
    Transforms transforms = draw_transforms(cx, &dice);
    Jaxpr *j = program_draw(cx, &dice, transforms.n && dice_draw(&dice, 4) ? DRAW_DERIVED : DRAW_ANY);
    laws(cx, j, n % 2, transforms);
    limit(0);
    arena_close(arena);
    return 0;
}

/* ---- programs to run */

/* What the symbols are. */
typedef struct {
    const Types *types;
    Dim b, c;
} Extents;
static Dim extent(void *user, Dim atom) {
    const Extents *x = user;
    return str_is(dim_at(x->types, atom)->name, "b") ? x->b : x->c;
}

/* Small numbers for the most part; a few that are not. */
static void fill(Dice *d, Dtype dtype, uint8_t *at) {
    static const double few[] = {0, -0.0, 1, INFINITY, -INFINITY, NAN, 1e30, 1e-42};
    const DtypeInfo *info = &dtype_info[dtype];
    uint32_t kind = dice_draw(d, 40);
    double x = kind < 8 ? few[kind] : ((int)dice_draw(d, 2048) - 1024) / 256.0;
    int64_t i = kind < 2 ? -1 - (int64_t)kind : kind < 4 ? INT64_MIN >> kind : (int64_t)dice_draw(d, 12) - 3;
    float f = (float)x;
    uint32_t bits;
    memcpy(&bits, &f, 4);
    if (info->kind == DK_BOOL) {
        *at = (uint8_t)dice_draw(d, 2);
    } else if (dtype == DT_f64) {
        memcpy(at, &x, 8);
    } else if (dtype == DT_f32) {
        memcpy(at, &f, 4);
    } else if (dtype == DT_bf16) {
        memcpy(at, (uint8_t *)&bits + 2, 2);
    } else if (dtype == DT_f16) {
        _Float16 h = (_Float16)f;
        memcpy(at, &h, 2);
    } else {
        memcpy(at, &i, info->bits / 8);
    }
}

static bool write_inputs(Ctx *cx, const Jaxpr *j, Dice *d, const Extents *of, const char *path) {
    NpzArray *arrays = arena_new(cx->arena, NpzArray, j->in.n + 1);
    NpzError why;
    for (uint32_t i = 0; i < j->in.n; i++) {
        const ArrayType *t = val_array(cx, j->in.at[i]);
        const NpzType *held = npz_type(dtype_info[t->dtype].name);
        NpzArray *a = &arrays[i];
        *a = (NpzArray){.kind = held->kind, .size = held->size, .rank = t->rank};
        a->name = (char *)str_format(cx->arena, "in%u", i).at;
        a->bytes = held->size;
        for (uint32_t k = 0; k < t->rank; k++)
            a->bytes *= a->dims[k] = dim_substitute(cx->types, t->dims[k], extent, (void *)of);
        a->data = arena_new(cx->arena, uint64_t, (size_t)a->bytes / 8 + 1);
        for (int64_t at = 0; at < a->bytes; at += held->size) fill(d, t->dtype, (uint8_t *)a->data + at);
    }
    return npz_write(path, false, arrays, j->in.n, &why);
}

static bool write_program(unsigned kind, uint64_t seed, const char *dir) {
    Arena *arena = arena_open();
    Ctx *cx = ctx_new(arena);
    Dice dice = {NULL, 0, seed * 0x9E3779B97F4A7C15 + 1};
    cx->options = &options;
    for (unsigned i = 0; i < 8; i++) dice_draw(&dice, 2);
    Jaxpr *j = program_draw(cx, &dice, DRAW_RUNS | kind);
    laws(cx, j, false, (Transforms){0});
    Str text = printed(cx, j);
    const char *stem = str_format(arena, "%s/%llu", dir, (unsigned long long)seed).at;
    Extents of = {cx->types, dice_draw(&dice, 8), 3 + dice_draw(&dice, 20)};
    FILE *f = fopen(str_format(arena, "%s.jaxpr", stem).at, "w");
    bool ok = f && fwrite(text.at, 1, text.n, f) == text.n &&
              fprintf(f, "\n# b=%lld c=%lld\n", (long long)of.b, (long long)of.c) > 0 && fclose(f) == 0 &&
              write_inputs(cx, j, &dice, &of, str_format(arena, "%s.in.npz", stem).at);
    arena_close(arena);
    return ok;
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    char **a = *argv;
    if (*argc == 2 && !strcmp(a[1], "--rows")) {
        rows_missing(stdout);
        exit(0);
    }
    bool derived = *argc == 5 && !strcmp(a[1], "--write-derived");
    if (*argc != 5 || (strcmp(a[1], "--write") != 0 && !derived)) return 0;
    uint64_t seed = strtoull(a[2], NULL, 10), n = strtoull(a[3], NULL, 10);
    for (uint64_t i = 0; i < n; i++)
        if (!write_program(derived ? DRAW_DERIVED : DRAW_ANY, seed + i, a[4])) {
            perror(a[4]);
            exit(1);
        }
    exit(0);
}
