#include "consts.h"
#include "options.h"
#include "output.h"
#include "../runtime/npz.h"
#include <ctype.h>
#include <stdlib.h>

/* ---- finding them */

typedef struct {
    Ctx *cx;
    Constants found;
    Intern seen; /* programs: a hoisted one is reached more than once */
    bool unused; /* are those found now unused? */
} Finder;

static void found(Finder *f, Val v, const Jaxpr *holder) {
    push(f->cx->arena, &f->found, ((Constant){v, holder, f->unused}));
    f->found.unused += f->unused;
}

static void find_literals(Finder *f, const Jaxpr *j, Vals vals) {
    each(Val, v, vals) {
        const Lit *lit = val_info(f->cx, *v)->lit;
        if (lit && lit->kind == LIT_ARRAY) found(f, *v, j);
    }
}

/* Units (of type *, 2019) have no value. */
static void find_constvars(Finder *f, const Jaxpr *j) {
    each(Val, v, j->consts)
        if (val_array(f->cx, *v)->dtype != DT_unit) found(f, *v, NULL);
}

static void find_inner(Finder *, const Jaxpr *);

static void find_in(Finder *f, const Jaxpr *j) {
    bool fresh;
    intern(&f->seen, &j, sizeof j, &fresh);
    if (!fresh) return;
    find_constvars(f, j);
    find_inner(f, j);
}

static void find_inner(Finder *f, const Jaxpr *j) {
    each(Eqn, e, j->eqns) {
        find_literals(f, j, e->in);
        Jaxprs inner = eqn_jaxprs(f->cx->arena, e);
        each(Jaxpr *, k, inner) find_in(f, *k);
    }
    find_literals(f, j, j->out);
}

/* Values are numbered in the order of the text. */
static int by_place(const void *x, const void *y) {
    Val a = ((const Constant *)x)->val, b = ((const Constant *)y)->val;
    return (a > b) - (a < b);
}

Constants consts_of(Ctx *cx, const Jaxpr *j) {
    Finder f = {.cx = cx, .seen = {.arena = cx->arena}};
    find_constvars(&f, j);
    uint32_t own = f.found.own = f.found.n;
    find_inner(&f, j);
    f.unused = true;
    for (uint32_t i = 0; i < j->nlets; i++) find_in(&f, j->lets[i]);
    if (f.found.n > own) qsort(f.found.at + own, f.found.n - own, sizeof *f.found.at, by_place);
    return f.found;
}

static Str constant_name(Ctx *cx, Val v) { return val_info(cx, v)->lit ? S("[...]") : val_name(cx, v); }

Str constant_text(Ctx *cx, Val v) {
    const ValInfo *info = val_info(cx, v);
    Str name = constant_name(cx, v);
    if (!info->type) return name;
    return str_format(cx->arena, "%.*s:%.*s", SF(name), SF(ctx_type_text(cx, info->type)));
}

void consts_warn(Ctx *cx, const Jaxpr *j) {
    Constants all = consts_of(cx, j);
    uint32_t n = all.n - all.own - all.unused, k = all.own;
    if (!n) return;
    while (all.at[k].unused) k++;
    Val first = all.at[k].val;
    if (!val_type(cx, first)) return;
    Str text = constant_text(cx, first);
    if (n == 1)
        diag_warn(cx->diags, W_nested_constants, val_info(cx, first)->span,
                  "the constant %.*s inside the program becomes an input: --consts=FILE gives its value", SF(text));
    else
        diag_warn(cx->diags, W_nested_constants, val_info(cx, first)->span,
                  "%u constants inside the program become inputs, the first is %.*s: --consts=FILE gives "
                  "their values",
                  n, SF(text));
}

/* ---- their values */

typedef struct {
    Ctx *cx;
    const char *path;
    Npz npz;
    const char *prefix; /* of the names of the arrays: "const" or "arr_" */
} Binder;

/* The element type of an array whose text prints none. */
static Dtype natural_dtype(const NpzArray *a) {
    static const struct {
        char kind;
        uint8_t size;
        Dtype dtype;
    } table[] = {
        {'b', 1, DT_bool}, {'i', 1, DT_i8},  {'i', 2, DT_i16}, {'i', 4, DT_i32},   {'i', 8, DT_i64},
        {'u', 1, DT_u8},   {'u', 2, DT_u16}, {'u', 4, DT_u32}, {'u', 8, DT_u64},   {'f', 2, DT_f16},
        {'f', 4, DT_f32},  {'f', 8, DT_f64}, {'c', 8, DT_c64}, {'c', 16, DT_c128},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].kind == a->kind && table[i].size == a->size) return table[i].dtype;
    return DT_none;
}

static Type natural_type(Binder *b, const NpzArray *a) {
    Dtype dtype = natural_dtype(a);
    return dtype ? type_of(b->cx->types, dtype, a->rank, a->dims) : 0;
}

/* Do the array's shape and elements fit the type? A key array has one more dimension, the words of a key. */
static bool fits(Binder *b, const NpzArray *a, Type type) {
    const ArrayType *t = type_at(b->cx->types, type);
    const NpzType *n = npz_type(dtype_text(t->dtype));
    if (!n || !npz_holds(a, n) || a->rank != t->rank + (n->words != 0)) return false;
    if (n->words && a->dims[t->rank] != n->words) return false;
    return memcmp(a->dims, t->dims, sizeof *t->dims * t->rank) == 0;
}

static Str array_text(Binder *b, const NpzArray *a) {
    Type type = natural_type(b, a);
    if (type) return ctx_type_text(b->cx, type);
    return str_format(b->cx->arena, "an array of %d-byte elements of kind '%c'", a->size, a->kind);
}

/* The type as text; for keys also the array that holds them: ", held by u32[2]". */
static Str wanted_text(Ctx *cx, Type type) {
    const ArrayType *t = type_at(cx->types, type);
    const NpzType *n = npz_type(dtype_text(t->dtype));
    Str text = ctx_type_text(cx, type);
    if (!n || !n->words) return text;
    int64_t *dims = arena_new(cx->arena, int64_t, (size_t)t->rank + 1);
    if (t->rank) memcpy(dims, t->dims, sizeof *dims * t->rank);
    dims[t->rank] = n->words;
    Type words = type_of(cx->types, DT_u32, t->rank + 1, dims);
    return str_format(cx->arena, "%.*s, held by %.*s", SF(text), SF(ctx_type_text(cx, words)));
}

/* Advice if only the element types differ. */
static Str conversion(Binder *b, const NpzArray *a, Type type) {
    const ArrayType *t = type_at(b->cx->types, type);
    const NpzType *n = npz_type(dtype_text(t->dtype));
    bool shape = a->rank == t->rank && memcmp(a->dims, t->dims, sizeof *t->dims * t->rank) == 0;
    if (!n || n->words || !shape || npz_holds(a, n)) return S("");
    return str_format(b->cx->arena, "; convert it: .astype(%s)", n->python);
}

/* A literal becomes a constvar of the program that contains it. */
static void name_literal(Ctx *cx, const Constant *c) {
    ValInfo *info = val_info(cx, c->val);
    Jaxpr *j = (Jaxpr *)c->holder;
    Vals all = {arena_new(cx->arena, Val, (size_t)j->consts.n + 1), j->consts.n + 1};
    if (j->consts.n) memcpy(all.at, j->consts.at, sizeof *all.at * j->consts.n);
    all.at[j->consts.n] = c->val;
    j->consts = all;
    info->lit = NULL;
    info->name = S("const");
}

static bool bind(Binder *b, const Constant *c, uint32_t number) {
    Ctx *cx = b->cx;
    ValInfo *info = val_info(cx, c->val);
    Str name = str_format(cx->arena, "%s%u", b->prefix, number);
    const NpzArray *a = npz_find(&b->npz, name.at);
    if (!a)
        return diag(cx->diags, info->span, "'%s' has no %.*s for the constant %.*s", b->path, SF(name),
                    SF(constant_text(cx, c->val)));
    if (!info->type) info->type = natural_type(b, a);
    if (!info->type)
        return diag(cx->diags, info->span,
                    "the text does not print the type of the constant %.*s, and %.*s in '%s' is %.*s",
                    SF(constant_name(cx, c->val)), SF(name), b->path, SF(array_text(b, a)));
    if (!fits(b, a, info->type))
        return diag(cx->diags, info->span, "the constant %.*s is %.*s, but %.*s in '%s' is %.*s%.*s",
                    SF(constant_name(cx, c->val)), SF(wanted_text(cx, info->type)), SF(name), b->path,
                    SF(array_text(b, a)), SF(conversion(b, a, info->type)));
    info->data = a->data;
    if (c->holder) name_literal(cx, c);
    return true;
}

static bool is_numbered(const char *name, const char *prefix) {
    size_t n = strlen(prefix);
    if (strncmp(name, prefix, n) != 0 || !name[n]) return false;
    for (name += n; isdigit((unsigned char)*name); name++);
    return !*name;
}

/* The common prefix of the names of the arrays. */
static bool find_prefix(Binder *b) {
    static const char *const prefixes[] = {"const", "arr_"};
    const char *first[2] = {0};
    for (uint32_t i = 0; i < b->npz.n; i++) {
        const char *name = b->npz.at[i].name;
        if (!*name)
            return diag_plain(b->cx->diags,
                              "--consts: '%s' is one array; constants are in an .npz file, as np.savez writes it",
                              b->path);
        uint32_t k = is_numbered(name, prefixes[1]);
        if (!k && !is_numbered(name, prefixes[0]))
            return diag_plain(b->cx->diags,
                              "--consts: '%s' has an array '%s', but constants are called const0, const1, "
                              "... or arr_0, arr_1, ...",
                              b->path, name);
        first[k] = name;
    }
    if (first[0] && first[1])
        return diag_plain(b->cx->diags,
                          "--consts: '%s' has both %s and %s: call all constants const0, const1, ... or "
                          "all of them arr_0, arr_1, ...",
                          b->path, first[0], first[1]);
    b->prefix = prefixes[first[1] != NULL];
    return true;
}

/* The first n variables of a single list are the constants: the file, not the text, says how many. */
static void split_list(Jaxpr *j, uint32_t n) {
    if (n > j->in.n) n = j->in.n;
    j->consts = (Vals){j->in.at, n};
    j->in = (Vals){j->in.at + n, j->in.n - n};
}

static bool too_many(Binder *b, const Jaxpr *j, uint32_t n) {
    Arena *arena = b->cx->arena;
    Str first = str_format(arena, "%s%u", b->prefix, n), which = S("");
    const NpzArray *a = npz_find(&b->npz, first.at);
    if (a) which = str_format(arena, ": nothing takes %.*s, %.*s", SF(first), SF(array_text(b, a)));
    return diag(b->cx->diags, j->span, "'%s' has %u array%s, but the program has %u constant%s%.*s", b->path, b->npz.n,
                plural(b->npz.n), n, plural(n), SF(which));
}

/* A file may omit the constants of programs that no equation names. */
static bool bind_all(Binder *b, Jaxpr *j) {
    Constants all = consts_of(b->cx, j);
    if (j->one_list && b->npz.n >= all.n) {
        split_list(j, b->npz.n - all.n);
        all = consts_of(b->cx, j);
    }
    bool ok = true, left_out = b->npz.n == all.n - all.unused;
    for (uint32_t i = 0, number = 0; i < all.n; i++) {
        bool unused = all.at[i].unused;
        if (!unused) ok = bind(b, &all.at[i], number) && ok;
        number += !unused || !left_out;
    }
    return ok && (all.n >= b->npz.n || too_many(b, j, all.n));
}

bool consts_bind(Ctx *cx, Jaxpr *j, const char *path) {
    Binder b = {.cx = cx, .path = path};
    NpzError error;
    const char *folder = output_folder(cx->arena, cx->options->output);
    if (!npz_map(path, folder, &b.npz, &error)) return diag_plain(cx->diags, "--consts: %s", error.text);
    bool ok = find_prefix(&b) && bind_all(&b, j);
    for (uint32_t i = 0; i < b.npz.n; i++)
        if (b.npz.at[i].place == NPZ_MEMORY) arena_adopt(cx->arena, b.npz.at[i].data);
    npz_keep(&b.npz);
    npz_free(&b.npz);
    return ok;
}
