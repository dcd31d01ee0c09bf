/* A program for other types of its inputs: symbols become extents, and for the rules of stdlib/ the leading axis `n`
   becomes any number of axes and the element types become others. */
#include "rules.h"
#include "../../typecheck/rule.h"
#include "../eval.h"

enum { MOST_SYMBOLS = 32 };
struct Fit {
    Ctx *cx;
    FitKind kind;
    struct {
        Dim symbol, is;
    } bound[MOST_SYMBOLS];
    uint32_t nbound;
    Dim lead;             /* `n` */
    Dims leading;         /* the axes that it stands for */
    bool led;             /* which are known */
    Dtype dtype[NDTYPES]; /* DT_none: itself */
    ValMap vals;
    Memo programs;
    bool failed;
};

Fit *fit_new(Ctx *cx, FitKind kind) {
    Fit *f = arena_new(cx->arena, Fit, 1);
    *f = (Fit){.cx = cx, .kind = kind, .vals = {.cx = cx, .sparse = true}, .programs.arena = cx->arena};
    f->lead = dim_symbol(cx->types, S("n"));
    return f;
}
static bool begins_with_lead(const Fit *f, uint32_t rank, const Dim *dims) {
    return f->kind == FIT_LEADING && rank && dims[0] == f->lead;
}
static bool leads(const Fit *f, Type t) {
    const ArrayType *a = type_at(f->cx->types, t);
    return begins_with_lead(f, a->rank, a->dims);
}

/* ---- what symbols stand for */

static bool is_symbol(const Fit *f, Dim d) { return !dim_is_const(d) && dim_at(f->cx->types, d)->kind == DIM_SYMBOL; }
static Dim substituted(void *user, Dim atom) {
    const Fit *f = user;
    for (uint32_t i = 0; i < f->nbound; i++)
        if (f->bound[i].symbol == atom) return f->bound[i].is;
    if (atom == f->lead && f->led && f->leading.n == 1) return f->leading.at[0];
    return dim_at(f->cx->types, atom)->kind == DIM_BOUND
               ? valmap_get(&f->vals, dim_at(f->cx->types, atom)->val) == dim_at(f->cx->types, atom)->val
                     ? atom
                     : dim_bound(f->cx->types, valmap_get(&f->vals, dim_at(f->cx->types, atom)->val))
               : atom;
}
static Dim fitted_dim(Fit *f, Dim d) {
    if (dim_is_const(d)) return d;
    if (f->kind == FIT_LEADING && d == f->lead && f->leading.n != 1) f->failed = true;
    return dim_substitute(f->cx->types, d, substituted, f);
}
static bool fit_dim(Fit *f, Dim of, Dim is) {
    bool known = !is_symbol(f, of);
    for (uint32_t i = 0; i < f->nbound; i++) known |= f->bound[i].symbol == of;
    if (known || f->nbound == MOST_SYMBOLS) return fitted_dim(f, of) == is;
    f->bound[f->nbound].symbol = of;
    f->bound[f->nbound++].is = is;
    return true;
}
static bool fit_leading(Fit *f, const Dim *dims, uint32_t n) {
    if (f->led) return f->leading.n == n && (!n || memcmp(f->leading.at, dims, n * sizeof *dims) == 0);
    f->leading = (Dims){arena_new(f->cx->arena, Dim, n + 1), n};
    if (n) memcpy(f->leading.at, dims, n * sizeof *dims);
    return f->led = true;
}
static bool inexact(Dtype t) { return dtype_info[t].kind == DK_FLOAT || dtype_info[t].kind == DK_COMPLEX; }
static bool fit_dtype(Fit *f, Dtype of, Dtype is) {
    if (f->kind == FIT_SYMBOLS || !inexact(of) || dtype_info[of].kind != dtype_info[is].kind) return of == is;
    if (!f->dtype[of]) f->dtype[of] = is;
    Dtype part = dtype_real(of); /* of a complex number: the same width */
    if (part != of && !f->dtype[part]) f->dtype[part] = dtype_real(is);
    return f->dtype[of] == is;
}
bool fit_type(Fit *f, Type of, Type is) {
    const ArrayType *p = type_at(f->cx->types, of), *t = type_at(f->cx->types, is);
    if (!fit_dtype(f, p->dtype, t->dtype)) return false;
    uint32_t lead = begins_with_lead(f, p->rank, p->dims);
    if (lead ? t->rank + 1 < p->rank : t->rank != p->rank) return false;
    uint32_t n = t->rank - (p->rank - lead);
    if (lead && !fit_leading(f, t->dims, n)) return false;
    for (uint32_t i = lead; i < p->rank; i++)
        if (!fit_dim(f, p->dims[i], t->dims[n + i - lead])) return false;
    return true;
}

/* ---- rewriting */

static Dims fitted_dims(Fit *f, const Dim *dims, uint32_t rank) {
    bool lead = begins_with_lead(f, rank, dims);
    Dims to = {arena_new(f->cx->arena, Dim, rank + f->leading.n + 1), 0};
    for (uint32_t i = 0; lead && i < f->leading.n; i++) to.at[to.n++] = f->leading.at[i];
    for (uint32_t i = lead; i < rank; i++) to.at[to.n++] = fitted_dim(f, dims[i]);
    return to;
}
static Dtype fitted_dtype(const Fit *f, Dtype t) { return f->dtype[t] ? f->dtype[t] : t; }
Type fitted_type(Fit *f, Type t) {
    const ArrayType *a = type_at(f->cx->types, t);
    Dims dims = fitted_dims(f, a->dims, a->rank);
    return type_of(f->cx->types, fitted_dtype(f, a->dtype), dims.n, dims.at);
}
static Val fitted_literal(Fit *f, Val v) {
    const ValInfo *info = val_info(f->cx, v);
    const Lit *lit = info->lit;
    Span span = info->span;
    Scalar rounded;
    Val new = val_literal(f->cx, fitted_type(f, info->type), *lit, span);
    return scalar_of(f->cx, new, &rounded) ? val_literal(f->cx, val_type(f->cx, new), scalar_lit(rounded), span) : new;
}
static Val fitted_val(Fit *f, Val v) {
    const ValInfo *info = val_info(f->cx, v);
    if (info->lit) return info->type ? fitted_literal(f, v) : v;
    if (valmap_get(&f->vals, v) != v) return valmap_get(&f->vals, v);
    Type t = fitted_type(f, info->type);
    Span span = val_info(f->cx, v)->span;
    Val new = val_new(f->cx, t, span);
    valmap_put(&f->vals, v, new);
    return new;
}
static Vals fitted_vals(Fit *f, Vals from) {
    Vals to = {arena_new(f->cx->arena, Val, from.n + 1), from.n};
    for (uint32_t i = 0; i < from.n; i++) to.at[i] = fitted_val(f, from.at[i]);
    return to;
}

/* ---- parameters: axes after the leading ones move; lists with an entry for each axis repeat the first */

/* Which array a parameter is about: one whose first axis is `n` has more axes now. */
typedef enum { OF_NOTHING, OF_OPERAND, OF_RESULT, OF_BROADCAST } About;
typedef enum { AXES, AXIS, PER_AXIS, PER_AXIS_3 } AxisForm;
static const struct {
    ParamKey key;
    AxisForm form;
    About about;
} axis_params[] = {
    {K_axes, AXES, OF_OPERAND},
    {K_dimensions, AXES, OF_OPERAND},
    {K_axis, AXIS, OF_OPERAND},
    {K_index_dtype, AXIS, OF_NOTHING},
    {K_dimension, AXIS, OF_RESULT},
    {K_broadcast_dimensions, AXES, OF_BROADCAST},
    {K_start_indices, PER_AXIS, OF_OPERAND},
    {K_strides, PER_AXIS, OF_OPERAND},
    {K_padding_config, PER_AXIS_3, OF_OPERAND},
};
static int64_t moved(const Fit *f, int64_t axis) { return axis + (int64_t)f->leading.n - 1; }

/* Axis 0 of an operand that begins with `n` is all of the leading axes. */
static Ints moved_axes(Fit *f, Ints axes, bool broadcast, bool operand_led) {
    Ints to = {arena_new(f->cx->arena, int64_t, axes.n + f->leading.n + 1), 0};
    for (uint32_t i = 0; i < axes.n; i++) {
        bool all = axes.at[i] == 0 && (!broadcast || operand_led);
        if (axes.at[i] == 0 && !all) f->failed = true; /* a vector along the leading axes */
        for (uint32_t k = 0; all && k < f->leading.n; k++) to.at[to.n++] = k;
        if (!all) to.at[to.n++] = moved(f, axes.at[i]);
    }
    return to;
}
static Value repeated(Fit *f, Value v, uint32_t each_axis) {
    if (v.kind == V_DIMS && v.dims.n >= each_axis) {
        Dims to = {arena_new(f->cx->arena, Dim, v.dims.n + each_axis * f->leading.n + 1), 0};
        for (uint32_t k = 0; k < f->leading.n; k++)
            for (uint32_t i = 0; i < each_axis; i++) to.at[to.n++] = fitted_dim(f, v.dims.at[i]);
        for (uint32_t i = each_axis; i < v.dims.n; i++) to.at[to.n++] = fitted_dim(f, v.dims.at[i]);
        v.dims = to;
    } else if (v.kind == V_INTS && v.ints.n >= each_axis) {
        Ints to = {arena_new(f->cx->arena, int64_t, v.ints.n + each_axis * f->leading.n + 1), 0};
        for (uint32_t k = 0; k < f->leading.n; k++)
            for (uint32_t i = 0; i < each_axis; i++) to.at[to.n++] = v.ints.at[i];
        for (uint32_t i = each_axis; i < v.ints.n; i++) to.at[to.n++] = v.ints.at[i];
        v.ints = to;
    }
    return v;
}
static bool about_led(const Fit *f, const Eqn *e, About about) {
    if (about == OF_NOTHING) return false;
    Vals of = about == OF_OPERAND ? e->in : e->out;
    return of.n && leads(f, val_type(f->cx, of.at[0]));
}
static Value fitted_axes(Fit *f, const Eqn *e, const Param *p, AxisForm form, About about) {
    Value v = p->value;
    bool broadcast = about == OF_BROADCAST, operand = e->in.n && leads(f, val_type(f->cx, e->in.at[0]));
    if (form == AXES && v.kind == V_INTS) v.ints = moved_axes(f, v.ints, broadcast, operand);
    if (form == AXIS && v.kind == V_INT) {
        if (v.i == 0) f->failed |= f->leading.n != 1;
        v.i = moved(f, v.i);
    }
    if (form == PER_AXIS || form == PER_AXIS_3) v = repeated(f, v, form == PER_AXIS ? 1 : 3);
    return v;
}
static Jaxpr *fit_nested(Fit *f, const Jaxpr *j);
/* Any other parameter. */
static Value fitted_value(Fit *f, Value v) {
    if (v.kind == V_DTYPE) v.i = fitted_dtype(f, (Dtype)v.i);
    if (v.kind == V_DIM) v.dim = fitted_dim(f, v.dim);
    if (v.kind == V_DIMS) v.dims = fitted_dims(f, v.dims.at, v.dims.n);
    if (v.kind == V_JAXPR && v.jaxpr) v.jaxpr = fit_nested(f, v.jaxpr);
    if (v.kind == V_JAXPRS) {
        Jaxpr **at = arena_new(f->cx->arena, Jaxpr *, v.jaxprs.n + 1);
        for (uint32_t i = 0; i < v.jaxprs.n; i++) at[i] = fit_nested(f, v.jaxprs.at[i]);
        v.jaxprs.at = at;
    }
    if (v.kind == V_LIST || v.kind == V_PAIR) {
        Value *at = arena_new(f->cx->arena, Value, v.list.n + 1);
        for (uint32_t i = 0; i < v.list.n; i++) at[i] = fitted_value(f, v.list.at[i]);
        v.list.at = at;
    }
    return v;
}
static Param fitted_param(Fit *f, const Eqn *e, const Param *p) {
    Param to = *p;
    for (size_t i = 0; i < sizeof axis_params / sizeof *axis_params; i++)
        if (axis_params[i].key == p->key && about_led(f, e, axis_params[i].about)) {
            to.value = fitted_axes(f, e, p, axis_params[i].form, axis_params[i].about);
            return to;
        }
    to.value = fitted_value(f, p->value);
    return to;
}
/* Primitives with other parameters that number axes: they stay as they are. */
static bool numbers_axes(Prim p) {
    static const Prim prims[] = {
        P_gather,    P_scatter, P_scatter_add,   P_dot_general,          P_conv_general_dilated,
        P_transpose, P_sort,    P_dynamic_slice, P_dynamic_update_slice, P_fft};
    for (size_t i = 0; i < sizeof prims / sizeof *prims; i++)
        if (prims[i] == p) return true;
    return false;
}
static Eqn fitted_eqn(Fit *f, const Eqn *e) {
    Eqn to = *e;
    if (f->kind == FIT_LEADING && f->leading.n != 1 && numbers_axes(e->prim))
        each(const Val, v, e->in) f->failed |= leads(f, val_type(f->cx, *v));
    Param *params = arena_new(f->cx->arena, Param, e->params.n + 1);
    to.in = fitted_vals(f, e->in);
    for (uint32_t i = 0; i < e->params.n; i++) params[i] = fitted_param(f, e, &e->params.at[i]);
    to.params.at = params;
    to.out = fitted_vals(f, e->out);
    return to;
}
static Jaxpr *fit_nested(Fit *f, const Jaxpr *j) {
    if (!j) return NULL;
    if (*memo_slot(&f->programs, j)) return *memo_slot(&f->programs, j);
    Jaxpr *to = arena_new(f->cx->arena, Jaxpr, 1);
    *to = *j;
    to->checked = false, to->dim_checks = NULL, to->eqns = (Eqns){0};
    to->consts = fitted_vals(f, j->consts);
    to->in = fitted_vals(f, j->in);
    each(const Eqn, e, j->eqns) {
        if (!j->checked) f->failed = true; /* its types are not known */
        if (f->failed) return NULL;
        push(f->cx->arena, &to->eqns, fitted_eqn(f, e));
    }
    to->out = fitted_vals(f, j->out);
    return *memo_slot(&f->programs, j) = to;
}
Jaxpr *fit_program(Fit *f, const Jaxpr *j) {
    Jaxpr *to = fit_nested(f, j);
    return f->failed ? NULL : to;
}
