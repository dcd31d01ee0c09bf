/* Are two programs the same for arrays of any rank? JAX writes the body of a function of numbers with other reshapes
   and axes for each rank of its operands. The first program is for the vector of all elements, the second for the
   array: an axis of the vector stands for all axes of the array, axes of extent 1 count nowhere, every other axis for
   one of the same extent in the same place. Equations and their parameters correspond one to one under this. */
#include "rules.h"
#include "../../control.h"
#include "../../typecheck/rule.h"
#include <math.h>

/* A value that is another one with its axes arranged anew. */
typedef struct {
    Val of;
    int64_t *axis; /* by axis: that of `of`; -1: one along which it is repeated, or of extent 1 */
} Arranged;
typedef struct {
    Intern index; /* of arranged values: their place in `at` */
    Arranged *at;
    uint32_t n, cap;
} Arrangements;
typedef struct {
    Ctx *cx;
    Arrangements arranged[2]; /* of each program */
    ValMap partner;           /* of a value of the first: that of the second */
    Dim all;                  /* extent of the vector */
    Dims lead;                /* axes of the array, without those of extent 1 */
} Alike;

/* ---- axes that correspond */

/* In order: axes of a value of the first program, and those of the value of the second that correspond to them. An axis
   of the first that stands for several comes several times. */
typedef struct {
    uint32_t n, of[MAX_RANK], is[MAX_RANK];
} Axes;
static bool add_axis(Axes *axes, uint32_t of, uint32_t is) {
    if (axes->n == MAX_RANK) return false;
    axes->of[axes->n] = of, axes->is[axes->n++] = is;
    return true;
}
static uint32_t skip_units(const ArrayType *t, uint32_t i) {
    while (i < t->rank && t->dims[i] == 1) i++;
    return i;
}
/* Are the axes of the array next in `t`? Then `*end` is the one after them. */
static bool lead_next(const Alike *a, const ArrayType *t, uint32_t i, uint32_t *end) {
    uint32_t k = 0;
    for (; k < a->lead.n && (i = skip_units(t, i)) < t->rank && t->dims[i] == a->lead.at[k]; k++) i++;
    *end = i;
    return k == a->lead.n;
}
static bool align(const Alike *a, Val v, Val w, Axes *axes) {
    const ArrayType *t = val_array(a->cx, v), *u = val_array(a->cx, w);
    uint32_t k = skip_units(u, 0), end;
    axes->n = 0;
    for (uint32_t i = skip_units(t, 0); i < t->rank; i = skip_units(t, i + 1)) {
        if (t->dims[i] != a->all || !lead_next(a, u, k, &end)) {
            if (k == u->rank || u->dims[k] != t->dims[i]) return false;
            end = k + 1;
        }
        for (; k < end; k = skip_units(u, k + 1))
            if (!add_axis(axes, i, k)) return false;
    }
    return k == u->rank && t->dtype == u->dtype;
}
/* How many axes before it stand for the same one. */
static uint32_t place(const Axes *axes, uint32_t i) {
    uint32_t first = i;
    while (first && axes->of[first - 1] == axes->of[i]) first--;
    return i - first;
}
/* Does the axis of the vector stand for several? */
static bool several(const Axes *axes, int64_t of) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < axes->n; i++) n += axes->of[i] == of;
    return n > 1;
}
static bool correspond(const Axes *axes, int64_t of, int64_t is, uint32_t at) {
    for (uint32_t i = 0; i < axes->n; i++)
        if (axes->of[i] == of && axes->is[i] == is) return place(axes, i) == at;
    return false;
}

/* ---- equations that only arrange their operand anew */

/* The axis of the operand that each axis of the result is; NULL if the equation does more. */
static int64_t *reshaped(Ctx *cx, const Eqn *e) {
    const ArrayType *from = val_array(cx, e->in.at[0]), *to = val_array(cx, e->out.at[0]);
    int64_t *axis = arena_new(cx->arena, int64_t, to->rank + 1);
    uint32_t k = skip_units(from, 0);
    for (uint32_t i = 0; i < to->rank; i++) {
        axis[i] = -1;
        if (to->dims[i] == 1) continue;
        if (k == from->rank || from->dims[k] != to->dims[i]) return NULL;
        axis[i] = k;
        k = skip_units(from, k + 1);
    }
    return k == from->rank ? axis : NULL;
}
static int64_t *repeated(Ctx *cx, const Eqn *e) {
    const ArrayType *from = val_array(cx, e->in.at[0]), *to = val_array(cx, e->out.at[0]);
    int64_t *axis = arena_new(cx->arena, int64_t, to->rank + 1);
    Ints places = param_ints(e, K_broadcast_dimensions);
    for (uint32_t i = 0; i < to->rank; i++) axis[i] = -1;
    for (uint32_t i = 0; i < places.n; i++)
        if (from->dims[i] != 1) axis[places.at[i]] = i;
    return axis;
}
static int64_t *permuted(Ctx *cx, const Eqn *e) {
    Ints permutation = param_ints(e, K_permutation);
    int64_t *axis = arena_new(cx->arena, int64_t, permutation.n + 1);
    for (uint32_t i = 0; i < permutation.n; i++)
        axis[i] = val_array(cx, e->out.at[0])->dims[i] == 1 ? -1 : permutation.at[i];
    return axis;
}
typedef int64_t *Arranging(Ctx *, const Eqn *);
static int64_t *arrangement(Ctx *cx, const Eqn *e) {
    static const struct {
        Prim prim;
        Arranging *axes;
    } rows[] = {{P_broadcast_in_dim, repeated}, {P_reshape, reshaped}, {P_squeeze, reshaped}, {P_expand_dims, reshaped},
                {P_transpose, permuted},        {P_copy, reshaped},    {P_copy_p, reshaped}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows && e->in.n == 1; i++)
        if (rows[i].prim == e->prim) return rows[i].axes(cx, e);
    return NULL;
}
static Arranged arranged(Alike *a, unsigned which, Val v) {
    const Arrangements *known = &a->arranged[which];
    uint32_t at;
    if (intern_find(&known->index, &v, sizeof v, &at)) {
        assert(known->at && at < known->n);
        return known->at[at];
    }
    uint32_t rank = val_array(a->cx, v)->rank;
    Arranged self = {v, arena_new(a->cx->arena, int64_t, rank + 1)};
    for (uint32_t i = 0; i < rank; i++) self.axis[i] = i;
    return self;
}
static bool arranges(Alike *a, unsigned which, const Eqn *e) {
    int64_t *axis = arrangement(a->cx, e);
    if (!axis) return false;
    Arranged from = arranged(a, which, e->in.at[0]), to = {from.of, axis};
    for (uint32_t i = 0; i < val_array(a->cx, e->out.at[0])->rank; i++)
        if (axis[i] >= 0) axis[i] = from.axis[axis[i]];
    Arrangements *known = &a->arranged[which];
    uint32_t at = intern(&known->index, e->out.at, sizeof *e->out.at, NULL);
    if (at == known->n) push(a->cx->arena, known, to);
    return true;
}
/* The next equation that computes something, at or after `i`. */
static uint32_t next_computing(Alike *a, unsigned which, const Jaxpr *j, uint32_t i) {
    while (i < j->eqns.n && arranges(a, which, &j->eqns.at[i])) i++;
    return i;
}

/* ---- values */

static bool alike_literals(const Alike *a, Val x, Val y) {
    const Lit *l = val_info(a->cx, x)->lit, *m = val_info(a->cx, y)->lit;
    if (!l || !m) return false;
    if (val_array(a->cx, x)->dtype != val_array(a->cx, y)->dtype) return false;
    if (l->kind != m->kind || l->i != m->i || l->negative != m->negative) return false;
    bool nan = l->kind == LIT_FLOAT && isnan(l->re) && isnan(m->re);
    return nan || l->kind < LIT_FLOAT || (l->re == m->re && l->im == m->im && !signbit(l->re) == !signbit(m->re));
}
/* Are x and y values that correspond, with corresponding axes? A number may be repeated in one and stretched in the
   other. */
static bool alike_val(Alike *a, Val x, Val y) {
    Arranged v = arranged(a, 0, x), w = arranged(a, 1, y);
    bool literal = val_info(a->cx, v.of)->lit;
    if (literal ? !alike_literals(a, v.of, w.of) : valmap_get(&a->partner, v.of) != w.of) return false;
    bool numbers = !val_array(a->cx, v.of)->rank && !val_array(a->cx, w.of)->rank;
    if (numbers && (!val_array(a->cx, x)->rank || !val_array(a->cx, y)->rank)) return true;
    Axes now, before;
    if (!align(a, x, y, &now) || !align(a, v.of, w.of, &before)) return false;
    for (uint32_t i = 0; i < now.n; i++) {
        int64_t of = v.axis[now.of[i]], is = w.axis[now.is[i]];
        if (of < 0 && is < 0) continue;
        if (!correspond(&before, of, is, place(&now, i))) return false;
    }
    return true;
}
static bool alike_vals(Alike *a, Vals x, Vals y) {
    bool same = x.n == y.n;
    for (uint32_t i = 0; i < x.n && same; i++) same = alike_val(a, x.at[i], y.at[i]);
    return same;
}
static bool bind(Alike *a, Vals x, Vals y) {
    bool same = x.n == y.n;
    Axes axes;
    for (uint32_t i = 0; i < x.n && same; i++) {
        same = align(a, x.at[i], y.at[i], &axes);
        valmap_put(&a->partner, x.at[i], y.at[i]);
    }
    return same;
}

/* ---- parameters */

/* Two equations of one primitive with corresponding operands, and the axes of the array that a parameter is about. */
typedef struct {
    Alike *a;
    const Eqn *x, *y;
    Axes axes;
} Both;
static bool holds(Ints list, int64_t i) {
    for (uint32_t k = 0; k < list.n; k++)
        if (list.at[k] == i) return true;
    return false;
}
/* Numbers of axes. */
static Ints axes_of(Value *v) { return v->kind == V_INT ? (Ints){&v->i, 1} : v->ints; }
static bool alike_axes(const Both *b, const Param *p, const Param *q) {
    Value v = p->value, w = q->value;
    bool list = v.kind == V_INTS, number = v.kind == V_INT;
    if (v.kind != w.kind || !(list || number)) return false;
    for (uint32_t i = 0; i < b->axes.n; i++)
        if (holds(axes_of(&v), b->axes.of[i]) != holds(axes_of(&w), b->axes.is[i])) return false;
    return true;
}
static bool entry(const Value *v, uint32_t i, Dim *to) {
    bool ints = v->kind == V_INTS;
    if (i >= (ints ? v->ints.n : v->dims.n)) return false;
    *to = ints ? v->ints.at[i] : v->dims.at[i];
    return true;
}
/* `each` numbers for every axis, the same for corresponding ones; where several are one in the vector, nothing happens
   along them, and their limits are their extents. */
static bool alike_entries(const Both *b, const Param *p, const Param *q, uint32_t each) {
    for (uint32_t i = 0; i < b->axes.n; i++)
        for (uint32_t k = 0; k < each; k++) {
            Dim d, c;
            if (!entry(&p->value, b->axes.of[i] * each + k, &d) || !entry(&q->value, b->axes.is[i] * each + k, &c))
                return false;
            if (d != c && !(p->key == K_limit_indices && several(&b->axes, b->axes.of[i]))) return false;
        }
    return true;
}
/* Any other value; programs are compared apart. */
static bool alike_values(const Value *v, const Value *w) {
    if (v->kind != w->kind) return false;
    switch (v->kind) {
    case V_BOOL:
    case V_INT:
    case V_DTYPE: return v->i == w->i;
    case V_DIM: return v->dim == w->dim;
    case V_FLOAT:
    case V_WORD:
    case V_STR:
    case V_TEXT: return str_eq(v->s, w->s);
    case V_INTS: return v->ints.n == w->ints.n && !memcmp(v->ints.at, w->ints.at, v->ints.n * sizeof *v->ints.at);
    case V_DIMS: return v->dims.n == w->dims.n && !memcmp(v->dims.at, w->dims.at, v->dims.n * sizeof *v->dims.at);
    case V_LIST:
    case V_PAIR:
        for (uint32_t i = 0; i < v->list.n && v->list.n == w->list.n; i++)
            if (!alike_values(&v->list.at[i], &w->list.at[i])) return false;
        return v->list.n == w->list.n && str_eq(v->s, w->s);
    case V_NONE:
    case V_JAXPR:
    case V_JAXPRS: return true;
    }
    return false;
}
/* Contracted and batch axes of both operands. */
static bool alike_dot(const Both *b, const Param *p, const Param *q) {
    Ctx *cx = b->a->cx;
    Dot d, e;
    if (!dot_axes(cx, b->x, p->key, &p->value, &d) || !dot_axes(cx, b->y, q->key, &q->value, &e)) return false;
    for (unsigned i = 0; i < 4; i++) {
        Ints of = i < 2 ? d.contracted[i] : d.batch[i - 2], is = i < 2 ? e.contracted[i] : e.batch[i - 2];
        Axes axes;
        if (of.n != is.n || !align(b->a, b->x->in.at[i % 2], b->y->in.at[i % 2], &axes)) return false;
        for (uint32_t k = 0; k < of.n; k++)
            if (several(&axes, of.at[k]) || !correspond(&axes, of.at[k], is.at[k], 0)) return false;
    }
    return true;
}
/* What parameters say about axes. Others are equal, and those that say something about axes in another way equal for
   arrays of the same extents. */
typedef enum { AXES, PER_AXIS, PER_AXIS_3, EXTENTS } Form;
static const struct {
    ParamKey key;
    Form form;
} forms[] = {
    {K_axes, AXES},
    {K_axis, AXES},
    {K_dimension, AXES},
    {K_dimensions, AXES},
    {K_start_indices, PER_AXIS},
    {K_limit_indices, PER_AXIS},
    {K_strides, PER_AXIS},
    {K_padding_config, PER_AXIS_3},
    {K_shape, EXTENTS},
    {K_new_sizes, EXTENTS},
};
static bool alike_param(const Both *b, const Param *p, const Param *q) {
    if (b->x->prim == P_dot_general && p->key == K_dimension_numbers) return alike_dot(b, p, q);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (forms[i].key == p->key) switch (forms[i].form) {
            case AXES: return alike_axes(b, p, q);
            case PER_AXIS: return alike_entries(b, p, q, 1);
            case PER_AXIS_3: return alike_entries(b, p, q, 3);
            case EXTENTS: return true; /* of the result */
            }
    return alike_values(&p->value, &q->value);
}
/* Primitives whose parameters say more about axes. */
static bool says_more(Prim p) {
    static const Prim prims[] = {P_gather,    P_scatter,       P_scatter_add,          P_conv_general_dilated,
                                 P_transpose, P_dynamic_slice, P_dynamic_update_slice, P_fft,
                                 P_top_k};
    for (size_t i = 0; i < sizeof prims / sizeof *prims; i++)
        if (prims[i] == p) return true;
    return false;
}
static bool same_extents(const Alike *a, Vals x, Vals y) {
    bool same = true;
    for (uint32_t i = 0; i < x.n && same; i++) {
        const ArrayType *t = val_array(a->cx, x.at[i]), *u = val_array(a->cx, y.at[i]);
        same = t->rank == u->rank && (!t->rank || !memcmp(t->dims, u->dims, t->rank * sizeof(Dim)));
    }
    return same;
}
/* Axes are numbered in the first result where the primitive adds one or changes an extent, else in the operand. */
static bool number_axes(Both *b) {
    static const Prim prims[] = {P_concatenate, P_pad, P_iota, P_stack};
    bool result = !b->x->in.n;
    for (size_t i = 0; i < sizeof prims / sizeof *prims; i++) result |= prims[i] == b->x->prim;
    Vals x = result ? b->x->out : b->x->in, y = result ? b->y->out : b->y->in;
    return !x.n || align(b->a, x.at[0], y.at[0], &b->axes);
}
static bool alike_params(Alike *a, const Eqn *x, const Eqn *y) {
    Both b = {.a = a, .x = x, .y = y};
    if (x->params.n != y->params.n || !number_axes(&b)) return false;
    if (says_more(x->prim) && !same_extents(a, x->in, y->in)) return false;
    each(const Param, p, x->params) {
        const Param *q = param_find(y, p->key);
        if (!q || !alike_param(&b, p, q)) return false;
    }
    return true;
}

/* ---- programs */

static bool alike_programs(Alike *a, const Jaxpr *x, const Jaxpr *y);
static bool alike_eqns(Alike *a, const Eqn *x, const Eqn *y) {
    if (x->prim != y->prim || !alike_vals(a, x->in, y->in) || !bind(a, x->out, y->out)) return false;
    if (!alike_params(a, x, y)) return false;
    Jaxprs in_x = eqn_jaxprs(a->cx->arena, x), in_y = eqn_jaxprs(a->cx->arena, y);
    bool same = in_x.n == in_y.n;
    for (uint32_t i = 0; i < in_x.n && same; i++) same = alike_programs(a, in_x.at[i], in_y.at[i]);
    return same;
}
static bool alike_programs(Alike *a, const Jaxpr *x, const Jaxpr *y) {
    if (!x || !y || !bind(a, x->consts, y->consts) || !bind(a, x->in, y->in)) return false;
    uint32_t i = next_computing(a, 0, x, 0), k = next_computing(a, 1, y, 0);
    while (i < x->eqns.n && k < y->eqns.n) {
        if (!alike_eqns(a, &x->eqns.at[i], &y->eqns.at[k])) return false;
        i = next_computing(a, 0, x, i + 1), k = next_computing(a, 1, y, k + 1);
    }
    return i == x->eqns.n && k == y->eqns.n && alike_vals(a, x->out, y->out);
}
bool programs_alike(Ctx *cx, const Jaxpr *x, const Jaxpr *y, Dims lead) {
    ValMap empty = {.cx = cx, .sparse = true};
    Intern seen = {.arena = cx->arena};
    Alike a = {.cx = cx, .arranged = {{.index = seen}, {.index = seen}}, .partner = empty, .all = 1};
    a.lead.at = arena_new(cx->arena, Dim, lead.n + 1);
    for (uint32_t i = 0; i < lead.n; i++) {
        a.all = dim_mul(cx->types, a.all, lead.at[i]);
        if (lead.at[i] != 1) a.lead.at[a.lead.n++] = lead.at[i];
    }
    return alike_programs(&a, x, y);
}
