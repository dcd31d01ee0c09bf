/* Equations on arrays as equations on the scalars of one element: a rule finds the parts of the result, or returns
   false, and the loop stays as it is. */
#include "elements.h"

Parts splat(Split *s, Val v) {
    Parts p = {arena_new(s->cx->arena, Val, 1), 1, .splat = true};
    p.at[0] = v;
    return p;
}
void set_parts(Split *s, Val v, Parts p) {
    bool fresh;
    uint32_t i = intern(&s->values, &v, sizeof v, &fresh);
    Parts *own = arena_new(s->cx->arena, Parts, 1);
    *own = p;
    if (fresh) push(s->cx->arena, &s->parts, NULL);
    s->parts.at[i] = own;
}
const Parts *array_of(Split *s, Val v) {
    uint32_t i;
    if (val_info(s->cx, v)->lit && !intern_find(&s->values, &v, sizeof v, &i)) set_parts(s, v, splat(s, v));
    return intern_find(&s->values, &v, sizeof v, &i) ? s->parts.at[i] : NULL;
}

const Parts *parts_of(Split *s, Val v) {
    const Parts *p = array_of(s, v);
    return p && !p->table ? p : NULL;
}

/* ---- the places of an array that one element has */
bool begins_with_elements(const Split *s, const ArrayType *t) {
    return t->rank >= s->rank && !memcmp(t->dims, s->dims, s->rank * sizeof *s->dims);
}
bool is_element_axis(const Split *s, const Parts *p, uint32_t axis) {
    return p->along && axis >= p->first && axis < p->first + s->rank;
}
bool room_of(const Split *s, const ArrayType *t, const Parts *p, Room *r) {
    *r = (Room){.rank = t->rank, .size = 1};
    if (p->along && p->first + s->rank > t->rank) return false;
    for (uint32_t i = 0; i < t->rank; i++) {
        Dim n = t->dims[i];
        r->extent[i] = 1;
        if (is_element_axis(s, p, i)) {
            if (n != s->dims[i - p->first]) return false;
            continue;
        }
        if (!dim_is_const(n) || n < 1 || n > MOST_PARTS / r->size) return false;
        r->extent[i] = n;
        r->size *= (uint32_t)n;
    }
    return true;
}
void place_of(const Room *r, uint32_t number, int64_t *place) {
    for (uint32_t i = r->rank; i-- > 0;) {
        place[i] = number % r->extent[i];
        number /= (uint32_t)r->extent[i];
    }
}
static uint32_t number_of(const Room *r, const int64_t *place) {
    uint32_t number = 0;
    for (uint32_t i = 0; i < r->rank; i++) {
        assert(place[i] >= 0 && place[i] < r->extent[i]);
        number = number * (uint32_t)r->extent[i] + (uint32_t)place[i];
    }
    return number;
}
Val part_at(const Parts *p, const Room *r, const int64_t *place) { return p->at[p->splat ? 0 : number_of(r, place)]; }
Parts room_for(Split *s, Parts p, const Room *r) {
    p.at = arena_new(s->cx->arena, Val, r->size);
    p.n = r->size;
    return p;
}

bool spread_parts(Split *s, const ArrayType *t, const Parts *like, Parts *p) {
    Room r;
    if (!p->splat) return p->along == like->along && (!p->along || p->first == like->first);
    Val v = p->at[0];
    if (!room_of(s, t, like, &r)) return false;
    *p = room_for(s, *like, &r);
    for (uint32_t i = 0; i < r.size; i++) p->at[i] = v;
    return true;
}

/* ---- equations */

static Val scalar_eqn(Split *s, const Eqn *e, uint32_t n, Val *in) {
    s->written++;
    return build_many(&s->b, e->prim, n, in, e->params.n, e->params.at, 1, NULL).at[0];
}
static bool split_point(Split *s, const Eqn *e, const ArrayType *t, Parts *y) {
    const Parts *x[MOST_PARTS];
    Room to, from[MOST_PARTS] = {0};
    int64_t place[COMPILED_RANK], own[COMPILED_RANK] = {0};
    Val in[MOST_PARTS];
    DtypeKind kind = dtype_info[t->dtype].kind;
    if (e->in.n > MOST_PARTS || kind == DK_COMPLEX || kind == DK_KEY || e->prim == P_stored) return false;
    y->splat = true;
    for (uint32_t i = 0; i < e->in.n; i++) {
        x[i] = parts_of(s, e->in.at[i]);
        if (!x[i]) return false;
        const ArrayType *xt = val_array(s->cx, e->in.at[i]);
        if (xt->rank && xt->rank != t->rank) return false;
        y->splat = y->splat && x[i]->splat;
        if (!x[i]->along) continue;
        if (y->along && y->first != x[i]->first) return false;
        y->along = true, y->first = x[i]->first;
    }
    if (y->splat)
        to = (Room){.size = 1};
    else if (!room_of(s, t, y, &to))
        return false;
    *y = room_for(s, *y, &to);
    for (uint32_t i = 0; i < e->in.n; i++)
        if (!x[i]->splat && !room_of(s, val_array(s->cx, e->in.at[i]), x[i], &from[i])) return false;
    for (uint32_t k = 0; k < to.size; k++) {
        place_of(&to, k, place);
        for (uint32_t i = 0; i < e->in.n; i++) {
            for (uint32_t a = 0; a < from[i].rank; a++) {
                own[a] = from[i].extent[a] == 1 ? 0 : place[a];
                bool apart = from[i].extent[a] > 1 && from[i].extent[a] != to.extent[a];
                if (apart) return false; /* it would have another value at each element */
            }
            in[i] = part_at(x[i], &from[i], own);
        }
        y->at[k] = scalar_eqn(s, e, e->in.n, in);
    }
    return true;
}

/* An equation that only moves elements of x, or pads them. */
typedef struct {
    Split *s;
    const Eqn *e;
    const ArrayType *x, *y;
} View;
/* The place in the operand of the element at place `to` of the result; false: padding. */
typedef bool FindPlace(const View *, const int64_t *to, int64_t *from);

/* Gives y the parts of x that `find` says. */
static bool split_view(const View *v, const Parts *x, Parts *y, FindPlace *find, Val padding) {
    Room to, from = {0};
    int64_t place[COMPILED_RANK], own[COMPILED_RANK] = {0};
    if (!room_of(v->s, v->y, y, &to) || (!x->splat && !room_of(v->s, v->x, x, &from))) return false;
    *y = room_for(v->s, *y, &to);
    for (uint32_t k = 0; k < to.size; k++) {
        place_of(&to, k, place);
        y->at[k] = !find(v, place, own) ? padding : part_at(x, &from, own);
    }
    return true;
}
static bool find_transposed(const View *v, const int64_t *to, int64_t *from) {
    Ints order = param_ints(v->e, K_permutation);
    for (uint32_t i = 0; i < order.n; i++) from[order.at[i]] = to[i];
    return true;
}
static bool split_transpose(const View *v, const Parts *x, Parts *y) {
    Ints order = param_ints(v->e, K_permutation);
    while (y->along && order.at[y->first] != x->first) y->first++;
    for (uint32_t i = 0; y->along && i < v->s->rank; i++)
        if (y->first + i >= order.n || order.at[y->first + i] != x->first + i) return false;
    return split_view(v, x, y, find_transposed, 0);
}
static bool find_broadcast(const View *v, const int64_t *to, int64_t *from) {
    Ints axes = param_ints(v->e, K_broadcast_dimensions);
    for (uint32_t i = 0; i < v->x->rank; i++) from[i] = v->x->dims[i] == 1 ? 0 : to[axes.at[i]];
    return true;
}
/* An operand without the axes of the elements may get them, if none of its own become one of them. */
static bool split_broadcast(const View *v, const Parts *x, Parts *y) {
    Split *s = v->s;
    Ints axes = param_ints(v->e, K_broadcast_dimensions);
    if (x->along) {
        y->first = (uint32_t)axes.at[x->first];
        for (uint32_t i = 0; i < s->rank; i++)
            if (axes.at[x->first + i] != y->first + i) return false;
    } else {
        y->along = begins_with_elements(s, v->y);
        for (uint32_t i = 0; i < v->x->rank; i++)
            if (axes.at[i] < s->rank && v->x->dims[i] != 1) y->along = false;
    }
    return split_view(v, x, y, find_broadcast, 0);
}
static bool find_sliced(const View *v, const int64_t *to, int64_t *from) {
    Dims start = param_dims(v->e, K_start_indices);
    Ints strides = param_ints(v->e, K_strides);
    for (uint32_t i = 0; i < v->x->rank; i++) from[i] = start.at[i] + to[i] * (i < strides.n ? strides.at[i] : 1);
    return true;
}
static bool split_slice(const View *v, const Parts *x, Parts *y) {
    Dims start = param_dims(v->e, K_start_indices);
    for (uint32_t i = 0; i < v->x->rank; i++) {
        bool whole = v->x->dims[i] == v->y->dims[i];
        if (is_element_axis(v->s, x, i) ? !whole : !dim_is_const(start.at[i])) return false;
    }
    return split_view(v, x, y, find_sliced, 0);
}
static bool find_reversed(const View *v, const int64_t *to, int64_t *from) {
    Ints axes = param_ints(v->e, K_dimensions);
    for (uint32_t i = 0; i < v->x->rank; i++) from[i] = ints_have(axes, i) ? v->x->dims[i] - 1 - to[i] : to[i];
    return true;
}
static bool split_rev(const View *v, const Parts *x, Parts *y) {
    Ints axes = param_ints(v->e, K_dimensions);
    for (uint32_t i = 0; i < v->x->rank; i++)
        if (is_element_axis(v->s, x, i) && ints_have(axes, i)) return false;
    return split_view(v, x, y, find_reversed, 0);
}
/* The same scalars in the same order: the axes of the elements stay together. */
static bool split_reshape(const View *v, const Parts *x, Parts *y) {
    Room from, to;
    Dim before = 1, now = 1;
    if (param_ints(v->e, K_dimensions).n && v->e->prim == P_reshape) return false;
    for (uint32_t i = 0; i < x->first && x->along; i++) before *= v->x->dims[i];
    for (y->first = 0; x->along; y->first++) {
        if (now == before && room_of(v->s, v->y, y, &to)) break;
        if (y->first >= v->y->rank || !dim_is_const(v->y->dims[y->first])) return false;
        now *= v->y->dims[y->first];
    }
    if (!room_of(v->s, v->x, x, &from) || !room_of(v->s, v->y, y, &to) || from.size != to.size) return false;
    y->at = x->at, y->n = x->n;
    return true;
}
static bool find_unpadded(const View *v, const int64_t *to, int64_t *from) {
    Dims config = param_dims(v->e, K_padding_config); /* low, high, interior of each axis */
    for (uint32_t i = 0; i < v->x->rank; i++) {
        int64_t at = to[i] - config.at[3 * i], step = config.at[3 * i + 2] + 1;
        bool inside = at >= 0 && at % step == 0 && (!dim_is_const(v->x->dims[i]) || at / step < v->x->dims[i]);
        if (!inside) return false;
        from[i] = at / step;
    }
    return true;
}
static bool split_pad(const View *v, const Parts *x, Parts *y) {
    Dims config = param_dims(v->e, K_padding_config);
    const Parts *padding = parts_of(v->s, v->e->in.at[1]);
    for (uint32_t i = 0; i < config.n; i++)
        if (is_element_axis(v->s, x, i / 3) ? config.at[i] != 0 : !dim_is_const(config.at[i])) return false;
    return padding && split_view(v, x, y, find_unpadded, padding->at[0]);
}
typedef bool ViewRule(const View *, const Parts *x, Parts *y);
static ViewRule *const view_rule[NPRIMS] = {
    [P_broadcast_in_dim] = split_broadcast,
    [P_reshape] = split_reshape,
    [P_squeeze] = split_reshape,
    [P_expand_dims] = split_reshape,
    [P_slice] = split_slice,
    [P_transpose] = split_transpose,
    [P_rev] = split_rev,
    [P_pad] = split_pad,
};
static bool split_of_one(Split *s, const Eqn *e, const ArrayType *t, Parts *y) {
    const Parts *x = parts_of(s, e->in.at[0]);
    View v = {s, e, val_array(s->cx, e->in.at[0]), t};
    if (!x) return false;
    if ((x->splat || !v.x->rank) && e->prim != P_pad) {
        *y = splat(s, x->at[0]);
        return true;
    }
    if (x->splat) return false;
    y->along = x->along, y->first = e->prim == P_transpose ? 0 : x->first;
    return view_rule[e->prim](&v, x, y);
}
/* concatenate; stack, whose operands lack the axis. */
static bool split_join(Split *s, const Eqn *e, const ArrayType *t, Parts *y) {
    bool stack = e->prim == P_stack;
    uint32_t axis = (uint32_t)param_number(e, stack ? K_axis : K_dimension);
    int64_t place[COMPILED_RANK], start = 0;
    Room to, from;
    each(Val, v, e->in) {
        const Parts *x = parts_of(s, *v);
        if (!x) return false;
        if (x->along) y->along = true, y->first = x->first + (stack && axis <= x->first);
    }
    if (is_element_axis(s, y, axis) || !room_of(s, t, y, &to)) return false;
    *y = room_for(s, *y, &to);
    each(Val, v, e->in) {
        const Parts *x = parts_of(s, *v);
        Parts own = {.along = y->along, .first = y->first - (stack && axis < y->first)};
        bool fits = x->splat || (x->along == own.along && x->first == own.first);
        if (!fits || !room_of(s, val_array(s->cx, *v), &own, &from)) return false;
        for (uint32_t k = 0; k < from.size; k++) {
            place_of(&from, k, place);
            Val part = part_at(x, &from, place);
            if (stack) memmove(place + axis + 1, place + axis, (from.rank - axis) * sizeof *place);
            place[axis] = start + (stack ? 0 : place[axis]);
            y->at[number_of(&to, place)] = part;
        }
        start += stack ? 1 : from.extent[axis];
    }
    return true;
}
static bool split_iota(Split *s, const Eqn *e, const ArrayType *t, Parts *y) {
    uint32_t axis = (uint32_t)param_number(e, K_dimension);
    int64_t place[COMPILED_RANK];
    Room to;
    y->along = axis >= s->rank && begins_with_elements(s, t);
    if (!room_of(s, t, y, &to)) return false;
    *y = room_for(s, *y, &to);
    for (uint32_t k = 0; k < to.size; k++) {
        place_of(&to, k, place);
        y->at[k] = b_number(&s->b, t->dtype, (double)place[axis]);
    }
    return true;
}
/* Combined in order. */
static bool split_reduce(Split *s, const Eqn *e, const ArrayType *t, Parts *y) {
    Ints axes = param_ints(e, K_axes);
    const Parts *x = parts_of(s, e->in.at[0]);
    int64_t place[COMPILED_RANK], kept[COMPILED_RANK] = {0};
    Room to, from;
    if (!x || x->splat || prim_combiner[e->prim] == P_none) return false;
    y->along = x->along, y->first = x->first;
    each(int64_t, a, axes) {
        if (is_element_axis(s, x, (uint32_t)*a)) return false;
        y->first -= *a < x->first;
    }
    if (!room_of(s, t, y, &to) || !room_of(s, val_array(s->cx, e->in.at[0]), x, &from)) return false;
    *y = room_for(s, *y, &to);
    for (uint32_t k = 0; k < from.size; k++) {
        place_of(&from, k, place);
        for (uint32_t i = 0, n = 0; i < from.rank; i++)
            if (!ints_have(axes, i)) kept[n++] = place[i];
        Val *sum = &y->at[number_of(&to, kept)];
        *sum = *sum ? b2(&s->b, prim_combiner[e->prim], *sum, x->at[k]) : x->at[k];
        s->written++;
    }
    return true;
}
/* Of a product: the operands' axes by role, in the order of the result's. */
typedef struct {
    Ints batch, contracted;
    Room room;
    const Parts *x;
} Factor;
static bool role_free(const Factor *f, int64_t axis) {
    return !ints_have(f->batch, axis) && !ints_have(f->contracted, axis);
}
/* The axis of the result that a free or batch axis of the operand becomes; `before`: free axes of the other operand
   that come first. */
static uint32_t result_axis(const Factor *f, uint32_t axis, uint32_t before) {
    for (uint32_t i = 0; i < f->batch.n; i++)
        if (f->batch.at[i] == axis) return i;
    uint32_t n = f->batch.n + before;
    for (uint32_t i = 0; i < axis; i++) n += role_free(f, i);
    return n;
}
static bool split_dot(Split *s, const Eqn *e, const ArrayType *t, Parts *y) {
    const Value *lists = param_find(e, K_dimension_numbers)->value.list.at;
    Factor f[2];
    Room to;
    uint32_t before[2] = {0, 0};
    int64_t place[COMPILED_RANK], own[2][COMPILED_RANK] = {0};
    for (uint32_t i = 0; i < 2; i++) {
        const ArrayType *xt = val_array(s->cx, e->in.at[i]);
        f[i] = (Factor){.contracted = lists[i].ints, .batch = lists[2 + i].ints, .x = parts_of(s, e->in.at[i])};
        if (!f[i].x || f[i].x->splat || xt->dtype != t->dtype || !room_of(s, xt, f[i].x, &f[i].room)) return false;
        for (uint32_t a = 0; a < xt->rank && i == 0; a++) before[1] += role_free(&f[0], a);
    }
    for (uint32_t i = 0; i < 2; i++) {
        if (!f[i].x->along) continue;
        uint32_t first = result_axis(&f[i], f[i].x->first, before[i]);
        if (y->along && y->first != first) return false;
        y->along = true, y->first = first;
        for (uint32_t a = f[i].x->first; a < f[i].x->first + s->rank; a++)
            if (ints_have(f[i].contracted, a) || result_axis(&f[i], a, before[i]) != first + a - f[i].x->first)
                return false;
    }
    if (!room_of(s, t, y, &to)) return false;
    *y = room_for(s, *y, &to);
    uint32_t terms = 1, n = f[0].contracted.n;
    for (uint32_t i = 0; i < n; i++) terms *= (uint32_t)f[0].room.extent[f[0].contracted.at[i]];
    for (uint32_t k = 0; k < to.size * terms; k++) {
        uint32_t term = k % terms;
        place_of(&to, k / terms, place);
        for (uint32_t i = 0; i < 2; i++)
            for (uint32_t a = 0; a < f[i].room.rank; a++)
                if (!ints_have(f[i].contracted, a)) {
                    own[i][a] = place[result_axis(&f[i], a, before[i])];
                    if (own[i][a] >= f[i].room.extent[a]) return false; /* one operand has the elements, one copies */
                }
        for (uint32_t c = n; c-- > 0;) {
            int64_t extent = f[0].room.extent[f[0].contracted.at[c]];
            for (uint32_t i = 0; i < 2; i++) own[i][f[i].contracted.at[c]] = term % extent;
            term /= (uint32_t)extent;
        }
        Val product = b_mul(&s->b, part_at(f[0].x, &f[0].room, own[0]), part_at(f[1].x, &f[1].room, own[1]));
        Val *sum = &y->at[k / terms];
        *sum = *sum ? b_add(&s->b, *sum, product) : product;
        s->written += 2;
    }
    return true;
}
/* In a condition: whether any element is here. The one asked about decides for itself. */
static bool split_any(Split *s, const Eqn *e, Parts *y) {
    const Parts *x = parts_of(s, e->in.at[0]);
    if (!x || !x->along || x->n != 1 || s->here || param_ints(e, K_axes).n != s->rank) return false;
    *y = splat(s, s->here = x->at[0]);
    return val_array(s->cx, e->in.at[0])->rank == s->rank;
}
static PlaceRule *place_rule(const Eqn *e) {
    return e->prim == P_dynamic_slice             ? split_dynamic_slice
           : e->prim == P_gather                  ? split_gather
           : e->prim == P_dynamic_update_slice    ? split_dynamic_update
           : prim_lower[e->prim] == LOWER_SCATTER ? split_scatter
                                                  : NULL;
}
/* `split`: results beside each other. */
static bool split_apart(Split *s, const Eqn *e) {
    uint32_t axis = (uint32_t)param_number(e, K_axis);
    const ArrayType *xt = val_array(s->cx, e->in.at[0]);
    const Parts *x = parts_of(s, e->in.at[0]);
    int64_t place[COMPILED_RANK], start = 0;
    Room from = {0}, to;
    if (!x || is_element_axis(s, x, axis) || (!x->splat && !room_of(s, xt, x, &from))) return false;
    each(Val, v, e->out) {
        Parts y = {.along = x->along, .first = x->first};
        if (x->splat || !room_of(s, val_array(s->cx, *v), &y, &to)) return false;
        y = room_for(s, y, &to);
        for (uint32_t k = 0; k < to.size; k++) {
            place_of(&to, k, place);
            place[axis] += start;
            y.at[k] = part_at(x, &from, place);
        }
        start += to.extent[axis];
        set_parts(s, *v, y);
    }
    return true;
}
bool split_element_eqn(Split *s, const Eqn *e) {
    if (e->prim == P_while || e->prim == P_scan) return split_element_loop(s, e);
    if (e->prim == P_runtime_call) return split_linalg(s, e);
    if (e->prim == P_split) return split_apart(s, e);
    if (e->out.n != 1) return split_none(s);
    const ArrayType *t = val_array(s->cx, e->out.at[0]);
    Parts y = {0};
    bool done = prim_elementwise(e->prim)             ? split_point(s, e, t, &y)
                : view_rule[e->prim]                  ? split_of_one(s, e, t, &y)
                : place_rule(e)                       ? place_rule(e)(s, e, t, &y)
                : prim_is(e->prim, JOINS)             ? split_join(s, e, t, &y)
                : e->prim == P_reduce_or && s->test   ? split_any(s, e, &y)
                : e->prim == P_iota                   ? split_iota(s, e, t, &y)
                : e->prim == P_dot_general            ? split_dot(s, e, t, &y)
                : prim_lower[e->prim] == LOWER_REDUCE ? split_reduce(s, e, t, &y)
                                                      : split_none(s);
    if (!done || s->b.failed || s->written > MOST_EQUATIONS) return false;
    set_parts(s, e->out.at[0], y);
    return true;
}
bool split_elements(Split *s, Eqns eqns) {
    each(const Eqn, e, eqns)
        if (!split_element_eqn(s, e)) return false;
    return true;
}
