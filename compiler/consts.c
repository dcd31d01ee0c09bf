#include "consts.h"
#include "../runtime/npz.h"
#include <stdlib.h>

/* Values are given to constants in order of appearance. */
typedef struct {
    Ctx *cx;
    const char *path;
    Npz npz;
    uint32_t next;
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

/* Has the array the shape and the elements of the type? A key array has one dimension more, its
 * words. */
static bool fits(Binder *b, const NpzArray *a, Type type) {
    const ArrayType *t = type_at(b->cx->types, type);
    const NpzType *n = npz_type(dtype_info[t->dtype].name);
    if (!n || !npz_holds(a, n) || a->rank != t->rank + (n->words != 0)) return false;
    if (n->words && a->dims[t->rank] != n->words) return false;
    return memcmp(a->dims, t->dims, sizeof *t->dims * t->rank) == 0;
}

static Str array_text(Binder *b, const NpzArray *a) {
    Type type = natural_type(b, a);
    if (type) return ctx_type_text(b->cx, type);
    return str_format(b->cx->arena, "an array of %d-byte elements of kind '%c'", a->size, a->kind);
}

static bool bind(Binder *b, Val v) {
    Ctx *cx = b->cx;
    ValInfo *info = val_info(cx, v);
    Str name = str_format(cx->arena, "const%u", b->next++),
        of = info->lit ? S("[...]") : val_name(cx, v);
    const NpzArray *a = npz_find(&b->npz, name.at);
    if (!a)
        return diag(cx->diags, info->span, "'%s' has no %.*s for the constant %.*s", b->path,
                    SF(name), SF(of));
    if (!info->type) info->type = natural_type(b, a);
    if (!info->type || !fits(b, a, info->type))
        return diag(cx->diags, info->span, "the constant %.*s is %.*s, but %.*s in '%s' is %.*s",
                    SF(of), SF(ctx_type_text(cx, info->type)), SF(name), b->path,
                    SF(array_text(b, a)));
    void *data = arena_alloc(cx->arena, 1, 64, (size_t)a->bytes);
    if (a->bytes) memcpy(data, a->data, (size_t)a->bytes);
    info->data = data;
    return true;
}

/* What nested programs and array literals want, with the place in the text. */
typedef struct {
    uint32_t at;
    Val val;
} Wanted;
typedef struct {
    Wanted *at;
    uint32_t n, cap;
    Intern seen; /* programs: a hoisted one is reached more than once */
} Wants;

static void want(Ctx *cx, Wants *w, Val v) {
    push(cx->arena, w, ((Wanted){val_info(cx, v)->span.at, v}));
}

static void want_literals(Ctx *cx, Wants *w, Vals vals) {
    each(Val, v, vals) {
        const Lit *lit = val_info(cx, *v)->lit;
        if (lit && lit->kind == LIT_ARRAY) want(cx, w, *v);
    }
}

static void want_inner(Ctx *cx, Wants *w, const Jaxpr *j) {
    each(Eqn, e, j->eqns) {
        want_literals(cx, w, e->in);
        Jaxprs inner = eqn_jaxprs(cx->arena, e);
        for (uint32_t i = 0; i < inner.n; i++) {
            const Jaxpr *k = inner.at[i];
            bool fresh;
            intern(&w->seen, &k, sizeof k, &fresh);
            if (!fresh) continue;
            each(Val, v, k->consts)
                want(cx, w, *v);
            want_inner(cx, w, k);
        }
    }
    want_literals(cx, w, j->out);
}

static int by_place(const void *x, const void *y) {
    uint32_t a = ((const Wanted *)x)->at, b = ((const Wanted *)y)->at;
    return (a > b) - (a < b);
}

/* The first n of the only list are the constants: the text does not say how many, the file does. */
static void split_list(Jaxpr *j, uint32_t n) {
    if (n > j->in.n) n = j->in.n;
    j->consts = (Vals){j->in.at, n};
    j->in = (Vals){j->in.at + n, j->in.n - n};
}

bool consts_bind(Ctx *cx, Jaxpr *j, const char *path) {
    Binder b = {.cx = cx, .path = path};
    Wants wants = {.seen = {.arena = cx->arena}};
    NpzError error;
    if (!npz_read(path, &b.npz, &error)) return diag_plain(cx->diags, "--consts: %s", error.text);
    want_inner(cx, &wants, j);
    if (wants.n) qsort(wants.at, wants.n, sizeof *wants.at, by_place);
    if (j->one_list && b.npz.n >= wants.n) split_list(j, b.npz.n - wants.n);
    bool ok = true;
    each(Val, v, j->consts)
        ok = ok && bind(&b, *v);
    each(Wanted, w, wants)
        ok = ok && bind(&b, w->val);
    if (ok && b.next < b.npz.n)
        ok = diag(cx->diags, j->span, "'%s' has %u array%s, but the program has %u constant%s", path,
                  b.npz.n, plural(b.npz.n), b.next, plural(b.next));
    npz_free(&b.npz);
    return ok;
}
