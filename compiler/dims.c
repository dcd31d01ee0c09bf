#include "dims.h"
#include "options.h"

typedef struct {
    Ctx *cx;
    bool *used;  /* by number of the -D */
    Intern seen; /* programs: a hoisted one is reached more than once */
} Fix;

static Dim fix_atom(void *user, Dim atom) {
    Fix *f = user;
    const Options *o = f->cx->options;
    const DimExpr *e = dim_at(f->cx->types, atom);
    if (e->kind != DIM_SYMBOL) return atom;
    intern(&f->cx->dim_names, e->name.at, e->name.n, NULL);
    for (uint32_t i = o->ndims; i-- > 0;) /* the last -D for a name counts */
        if (str_eq(o->dims[i].name, e->name)) {
            f->used[i] = true;
            return o->dims[i].value;
        }
    return atom;
}

static void fix_value(Fix *f, Value *v) {
    Types *ts = f->cx->types;
    switch (v->kind) {
    case V_DIM:
        if (!dim_is_const(v->dim)) v->dim = dim_substitute(ts, v->dim, fix_atom, f);
        break;
    case V_DIMS:
        for (uint32_t i = 0; i < v->dims.n; i++)
            if (!dim_is_const(v->dims.at[i])) v->dims.at[i] = dim_substitute(ts, v->dims.at[i], fix_atom, f);
        break;
    case V_LIST:
    case V_PAIR:
        for (uint32_t i = 0; i < v->list.n; i++) fix_value(f, &v->list.at[i]);
        break;
    default: break;
    }
}

static void fix_jaxpr(Fix *f, Jaxpr *j) {
    bool fresh;
    intern(&f->seen, &j, sizeof j, &fresh);
    if (!fresh) return;
    each(Eqn, e, j->eqns) {
        each(Param, p, e->params) fix_value(f, &p->value);
        Jaxprs inner = eqn_jaxprs(f->cx->arena, e);
        for (uint32_t i = 0; i < inner.n; i++) fix_jaxpr(f, inner.at[i]);
    }
}

bool dims_has(const Ctx *cx, Str name) {
    uint32_t k;
    return intern_find(&cx->dim_names, name.at, name.n, &k);
}
uint32_t dims_batch(Ctx *cx, const Transform *t) {
    uint32_t number = 0;
    for (uint32_t i = 0; i <= t->nth; i++) {
        number++;
        while (!t->dim && dims_has(cx, batch_name(cx->arena, t, number))) number++;
    }
    return number;
}
/* Will a --vmap make a dimension of this name? */
static bool made_by(Ctx *cx, Transforms all, Str name) {
    bool made = false;
    each(const Transform, t, all)
        made |= t->kind == TRANSFORM_VMAP && str_eq(name, batch_name(cx->arena, t, dims_batch(cx, t)));
    return made;
}
static bool some_vmap(Transforms all) {
    bool some = false;
    each(const Transform, t, all) some |= t->kind == TRANSFORM_VMAP;
    return some;
}
static bool names_dims(const Options *o) {
    bool some = o->ndims || some_vmap(o->transforms);
    each(const LibraryEntry, entry, o->entries) some |= some_vmap(entry->transforms);
    return some;
}
static bool made_by_vmap(Ctx *cx, Str name) {
    bool made = made_by(cx, cx->options->transforms, name);
    each(const LibraryEntry, entry, cx->options->entries) made |= made_by(cx, entry->transforms, name);
    return made;
}
static bool given_again(const Fix *f, uint32_t i) {
    const Options *o = f->cx->options;
    for (uint32_t k = i + 1; k < o->ndims; k++)
        if (str_eq(o->dims[i].name, o->dims[k].name)) return true;
    return false;
}
void dims_fix(Ctx *cx, Jaxpr *j, Type *in, uint32_t n) {
    const Options *o = cx->options;
    if (!names_dims(o)) return;
    Fix f = {cx, arena_new(cx->arena, bool, o->ndims + 1), {.arena = cx->arena}};
    for (Val v = 1; v < cx->nvals; v++) {
        ValInfo *info = val_info(cx, v);
        if (info->type) info->type = type_substitute(cx->types, info->type, fix_atom, &f);
    }
    for (uint32_t i = 0; i < n; i++) in[i] = type_substitute(cx->types, in[i], fix_atom, &f);
    fix_jaxpr(&f, j);
    for (uint32_t i = 0; i < o->ndims; i++)
        if (given_again(&f, i))
            diag_warn(cx->diags, W_unknown_dimension, j->span,
                      "-D: '%.*s' is given more than once; the last value counts", SF(o->dims[i].name));
        else if (!f.used[i] && !made_by_vmap(cx, o->dims[i].name))
            diag_warn(cx->diags, W_unknown_dimension, j->span, "-D: the program has no dimension '%.*s'",
                      SF(o->dims[i].name));
}
