/* Parameters of programs are changed, and the first error must name the parameter.

       params DIR...

   Of each primitive with each of its parameters some programs are taken. The name of the parameter is misspelt, its
   value gets another form, or is out of range; the rest stays as it is. What the compiler does not read may have any
   value. */
#include "cases.h"
#include "file.h"
#include "options.h"
#include "parse/parse.h"
#include "passes/passes.h"
#include "typecheck/check.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef enum { MISSPELT, OTHER_FORM, OUT_OF_RANGE, NCHANGES } Change;
enum {
    EACH = 2, /* programs for a change of one parameter of one primitive */
    MOST_CHANGES = 1 << 14,
    LEAST_PROGRAMS = 200
};
static const char *const change_name[NCHANGES] = {"misspelt", "another form", "out of range"};

/* Parameters that change nothing in what is computed: their values are not looked at. */
/* clang-format off */
static const char *const unread[] = {
    "accuracy", "algorithm", "axis_index_groups", "bwd", "call", "check_vma", "compiler_options_kvs", "computation", "consts",
    "context_mesh", "copy_semantics", "ctx_mesh", "devices", "differentiated", "donated_invars", "dst_sharding", "effect",
    "enable_eigvec_derivs", "fmt", "fun_jaxpr_thunk", "fwd", "fwd_jaxpr_thunk", "has_placeholders", "in_layouts", "in_shardings",
    "in_tree", "implementation", "jvp", "jvp_jaxpr_fun", "jvp_jaxpr_thunk", "kind", "layout", "linear", "memory_space", "name",
    "np_printoptions", "out_layouts", "out_sharding", "out_shardings", "out_tree", "out_trees", "policy", "precision", "recall_target",
    "reduction_input_size_override", "rule", "select_callable", "sharding", "srcs", "static_args", "transpose_thunk", "unconstrained_dims",
    "update_consts", "use_magma", "attributes", "version", "error_message", "newly_manual_axes", "input_dtype", "num_callee_consts", "logging_record", "partitioned", "num_consts", NULL};
/* clang-format on */

typedef struct {
    Arena *arena;
    Intern seen;     /* primitive, parameter, change: */
    uint32_t *count; /* how many programs */
    uint32_t programs, passed, failed;
} Tool;

typedef struct {
    Span name, value;
    ParamKey key;
    Prim prim;
    Str text; /* the name */
} Place;
typedef struct {
    Place *at;
    uint32_t n, cap;
} Places;

static void collect(Ctx *cx, const Jaxpr *j, Places *places) {
    each(const Eqn, e, j->eqns) {
        each(const Param, p, e->params)
            if (e->prim != P_none && p->span.n && p->value.span.n)
                push(cx->arena, places,
                     ((Place){p->span, p->value.span, p->key, e->prim,
                              p->key == K_other ? p->name : str(param_name[p->key])}));
        Jaxprs inner = eqn_jaxprs(cx->arena, e);
        each(Jaxpr *, i, inner)
            if ((*i)->span.n) collect(cx, *i, places);
    }
}

/* Parses, types and transforms a text; its messages. */
static char *messages(Ctx *cx, Str text, Jaxpr **j) {
    uint32_t file = diags_source(cx->diags, "program", text);
    *j = parse(cx, file, NULL);
    bool ok = *j && check(cx, *j);
    if (ok) passes_lower(cx, *j);
    char *said = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&said, &n);
    diag_flush(cx->diags, out, false);
    fclose(out);
    return said;
}

static Str replaced(Arena *arena, Str text, Span at, const char *with) {
    return str_format(arena, "%.*s%s%.*s", (int)at.at, text.at, with, (int)(text.n - at.at - at.n),
                      text.at + at.at + at.n);
}

/* The last two letters swapped, or the last one doubled. */
static const char *misspelt(Arena *arena, Str name) {
    char *c = str_c(arena, name);
    char last = c[name.n - 1];
    if (name.n < 2 || last == c[name.n - 2]) return str_format(arena, "%s%c", c, last).at;
    c[name.n - 1] = c[name.n - 2];
    c[name.n - 2] = last;
    return c;
}

static const char *other_form(ParamKey key, ParamKind kind) {
    if (key == K_fill_value) return "(1, 2)";
    switch (kind) {
    case PK_BOOL: return "7";
    case PK_DTYPE: return "(3, 4)";
    case PK_INT:
    case PK_DIM: return "'one'";
    default: return "True";
    }
}

static const char *out_of_range(ParamKind kind) {
    switch (kind) {
    case PK_INT:
    case PK_DIM: return "-77";
    case PK_INTS:
    case PK_DIMS: return "(-77, -77, -77, -77, -77, -77, -77)";
    case PK_DTYPE: return "key<fry>";
    default: return NULL;
    }
}

static bool is_unread(Str name) {
    for (const char *const *u = unread; *u; u++)
        if (str_is(name, *u)) return true;
    return false;
}

static const char *changed_text(Arena *arena, const Place *p, Change change, Str text, Str *to) {
    bool printed = p->name.n >= p->text.n &&
                   memcmp(text.at + p->name.at, p->text.at, p->text.n) == 0; /* not that of a reference */
    if (!printed || p->key == K_fmt || str_is(p->text, "has_placeholders"))
        return NULL; /* fmt is any text, up to has_placeholders */
    if (change == MISSPELT) {
        if (!prim_has(p->prim, p->text)) return NULL;
        return *to = replaced(arena, text, p->name, misspelt(arena, p->text)), to->at;
    }
    bool any =
        change == OUT_OF_RANGE && (p->key == K_y || p->key == K_unroll || p->key == K_dim || p->key == K_num_res);
    if (any || is_unread(p->text) || p->key == K_other) return NULL;
    const char *value =
        change == OTHER_FORM ? other_form(p->key, param_kind[p->key]) : out_of_range(param_kind[p->key]);
    if (!value || (p->value.n == 4 && memcmp(text.at + p->value.at, "None", 4) == 0)) return NULL;
    return *to = replaced(arena, text, p->value, value), to->at;
}

/* Does the first error, or a note of it, have the name of the parameter? */
static bool names_it(const char *said, Str name) {
    const char *at = strstr(said, "error: ");
    while (at) {
        const char *end = strchr(at, '\n'), *note = end ? strstr(end, "note: ") : NULL,
                   *next = end ? strstr(end, "error: ") : NULL;
        for (const char *c = at; end && c + name.n <= end; c++)
            if (memcmp(c, name.at, name.n) == 0) return true;
        at = note && (!next || note < next) ? note : NULL;
    }
    return false;
}

static void try(Tool *t, const char *path, Str text, const Place *p, Change change) {
    Arena *arena = arena_open();
    Ctx *cx = ctx_new(arena);
    Options o = {.input = path};
    Str to;
    Jaxpr *j;
    cx->options = &o;
    if (changed_text(arena, p, change, text, &to)) {
        char *said = messages(cx, to, &j);
        bool ok = names_it(said, p->text);
        t->passed += ok;
        t->failed += !ok;
        if (!ok)
            printf("FAIL params: %s: %s of %s: %s\n%.600s", path, p->text.at ? str_c(arena, p->text) : "",
                   prim_name[p->prim], change_name[change], said);
        free(said);
    }
    arena_close(arena);
}

static void program(Tool *t, const char *path) {
    Arena *arena = arena_open();
    Ctx *cx = ctx_new(arena);
    Options o = {.input = path};
    Str text;
    Jaxpr *j;
    Places places = {0};
    cx->options = &o;
    if (file_read(arena, cx->diags, path, MOST_BYTES, &text)) {
        char *said = messages(cx, text, &j);
        bool right = !strstr(said, "error: ") && !strstr(said, "warning: ");
        if (right) collect(cx, j, &places);
        t->programs += right;
        free(said);
    }
    each(const Place, p, places)
        for (Change change = 0; change < NCHANGES; change++) {
            Str key = str_format(arena, "%u %.*s %u", p->prim, SF(p->text), change);
            bool fresh;
            uint32_t id = intern(&t->seen, key.at, key.n, &fresh);
            if (id < MOST_CHANGES && t->count[id]++ < EACH) try(t, path, text, p, change);
        }
    arena_close(arena);
}

int main(int argc, char **argv) {
    Tool t = {.arena = arena_open()};
    Cases cases = {0};
    t.seen.arena = t.arena;
    t.count = arena_new(t.arena, uint32_t, MOST_CHANGES);
    for (int i = 1; i < argc; i++) cases_find(&cases, argv[i], true);
    each(const Case, c, cases) program(&t, c->path);
    if (t.programs < LEAST_PROGRAMS) printf("FAIL params: only %u programs\n", t.programs), t.failed++;
    printf("%u programs\nparams: %u passed, %u failed\n", t.programs, t.passed, t.failed);
    fflush(stdout);
    _exit(t.failed > 0); /* paths go with it */
}
