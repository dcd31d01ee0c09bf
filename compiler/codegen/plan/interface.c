#include "interface.h"
#include "../../cname.h"

/* ---- the symbols of a program, in order of first appearance */

typedef struct {
    Ctx *cx;
    Intern seen_dims, seen_types, seen_jaxprs;
    struct {
        Dim *at;
        uint32_t n, cap;
    } found;
} Walk;

static bool is_new(Intern *seen, const void *key, size_t n) {
    bool fresh;
    intern(seen, key, n, &fresh);
    return fresh;
}

static void walk_dim(Walk *w, Dim d) {
    if (dim_is_const(d) || !is_new(&w->seen_dims, &d, sizeof d)) return;
    const DimExpr *e = dim_at(w->cx->types, d);
    switch (e->kind) {
    case DIM_SYMBOL: push(w->cx->arena, &w->found, d); break;
    case DIM_SUM:
        for (uint32_t i = 0; i < e->nterms; i++)
            for (uint32_t k = 0; k < e->terms[i].natoms; k++) walk_dim(w, e->terms[i].atoms[k]);
        break;
    case DIM_FLOORDIV:
    case DIM_MOD:
    case DIM_MAX:
    case DIM_MIN:
        walk_dim(w, e->a);
        walk_dim(w, e->b);
        break;
    default: break;
    }
}

static void walk_vals(Walk *w, Vals vals) {
    each(Val, v, vals) {
        Type t = val_type(w->cx, *v);
        if (!t || !is_new(&w->seen_types, &t, sizeof t)) continue;
        const ArrayType *a = type_at(w->cx->types, t);
        for (uint32_t i = 0; i < a->rank; i++) walk_dim(w, a->dims[i]);
    }
}

static void walk_body(Walk *w, const Jaxpr *j) {
    if (!is_new(&w->seen_jaxprs, &j, sizeof(Jaxpr *))) return;
    walk_vals(w, j->consts);
    walk_vals(w, j->in);
    each(Eqn, e, j->eqns) {
        walk_vals(w, e->in);
        walk_vals(w, e->out);
        each(Param, p, e->params) {
            if (p->value.kind == V_DIM) walk_dim(w, p->value.dim);
            if (p->value.kind == V_DIMS)
                each(Dim, d, p->value.dims) walk_dim(w, *d);
        }
        Jaxprs inner = eqn_jaxprs(w->cx->arena, e);
        for (uint32_t i = 0; i < inner.n; i++) walk_body(w, inner.at[i]);
    }
}

Dims program_symbols(Ctx *cx, const Jaxpr *j) {
    Walk w = {.cx = cx, .seen_dims.arena = cx->arena, .seen_types.arena = cx->arena, .seen_jaxprs.arena = cx->arena};
    walk_vals(&w, j->consts);
    walk_vals(&w, j->in);
    walk_vals(&w, j->out);
    walk_body(&w, j);
    return (Dims){w.found.at, w.found.n};
}

/* ---- names */

/* `name` as a C identifier that is not in `used`, with `_` appended until it is not. */
static Str fresh_name(Ctx *cx, Intern *used, Str name) {
    Text t = {.arena = cx->arena};
    text_put(&t, cname_from(cx->arena, name));
    while (!is_new(used, t.at, t.n)) text_put(&t, S("_"));
    return (Str){str_c(cx->arena, (Str){t.at, t.n}), t.n};
}

static Str *parameter_names(Ctx *cx, const Signature *s) {
    Intern used = {.arena = cx->arena};
    intern(&used, s->name, strlen(s->name), NULL);
    Str *names = arena_new(cx->arena, Str, s->dims.n + s->in.n + s->out.n + 1), *next = names;
    each(Dim, d, s->dims) *next++ = fresh_name(cx, &used, dim_at(cx->types, *d)->name);
    each(Val, v, s->in) *next++ = fresh_name(cx, &used, val_name(cx, *v));
    for (uint32_t i = 0; i < s->out.n; i++) *next++ = fresh_name(cx, &used, str_format(cx->arena, "out%u", i));
    return names;
}

/* ---- the signature */

static bool has_parameter(Ctx *cx, Val v) {
    return dtype_info[val_array(cx, v)->dtype].kind != DK_VOID && !val_info(cx, v)->data;
}

Signature signature_within(Ctx *cx, Dims symbols, const Jaxpr *j) {
    Signature s = {.dims = symbols};
    s.in.at = arena_new(cx->arena, Val, j->consts.n + j->in.n + 1);
    s.out.at = arena_new(cx->arena, Val, j->out.n + 1);
    s.is = arena_new(cx->arena, Str, j->out.n + 1);
    each(Val, v, j->consts)
        if (has_parameter(cx, *v)) s.in.at[s.in.n++] = *v;
    each(Val, v, j->in)
        if (has_parameter(cx, *v)) s.in.at[s.in.n++] = *v;
    for (uint32_t i = 0; i < j->out.n; i++) {
        if (dtype_info[val_array(cx, j->out.at[i])->dtype].kind == DK_VOID) continue;
        if (j->out_is) s.is[s.out.n] = j->out_is[i];
        s.out.at[s.out.n++] = j->out.at[i];
    }
    return s;
}
Signature signature_of(Ctx *cx, const char *name, const Jaxpr *j) {
    Signature s = signature_within(cx, program_symbols(cx, j), j);
    s.name = name;
    s.names = parameter_names(cx, &s);
    return s;
}

typedef struct {
    Ctx *cx;
    const Signature *s;
    bool computed; /* met a bound scalar that is not an input */
} BoundNames;

static Str bound_name(const void *user, uint32_t val) {
    const BoundNames *b = user;
    for (uint32_t i = 0; i < b->s->in.n; i++)
        if (b->s->in.at[i] == val) return b->s->names[b->s->dims.n + i];
    for (uint32_t i = 0; i < b->s->out.n; i++)
        if (b->s->out.at[i] == val) return b->s->names[b->s->dims.n + b->s->in.n + i];
    return val_name(b->cx, val);
}

Str signature_dim_text(Ctx *cx, const Signature *s, Dim d) {
    BoundNames names = {.cx = cx, .s = s};
    return dim_text(cx->arena, cx->types, d, bound_name, &names);
}

Str signature_type_text(Ctx *cx, const Signature *s, Val v) {
    BoundNames names = {.cx = cx, .s = s};
    return type_text(cx->arena, cx->types, type_plain(cx->types, val_type(cx, v)), bound_name, &names);
}

static Dim note_computed(void *user, Dim atom) {
    BoundNames *b = user;
    const DimExpr *e = dim_at(b->cx->types, atom);
    bool given = e->kind != DIM_BOUND;
    for (uint32_t i = 0; i < b->s->in.n && !given; i++) given = b->s->in.at[i] == e->val;
    b->computed |= !given;
    return atom;
}

bool signature_computed(Ctx *cx, const Signature *s, Val out) {
    BoundNames b = {.cx = cx, .s = s};
    const ArrayType *t = val_array(cx, out);
    for (uint32_t i = 0; i < t->rank; i++)
        if (!dim_is_const(t->dims[i])) dim_substitute(cx->types, t->dims[i], note_computed, &b);
    return b.computed;
}
