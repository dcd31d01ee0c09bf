/* Loops that treat each element of an array alone, as those of a batched program do, become one elementwise equation:

     y:f32[n] = while[… condition and body on arrays f32[n] …] x
     y:f32[n] = elementwise[jaxpr={ lambda ; a:f32[]. let b:f32[] = while[… the same on scalars …] a in (b,) }] x

   It is a part of a kernel like any other elementwise equation: carries stay in registers, and each vector of elements
   takes as many turns as its own elements need. The axes of the elements are those of the carries, the leading ones where
   a carry has more: an element then has several scalars, at most MOST_PARTS, such as the coordinates of a point or a small
   matrix. The body must be arithmetic on them, or move them between places that are known.

   A loop that runs while any element does must leave those alone that are done, as loops of a batch do: a carry becomes
   select_n(here, carry, …) or and(here, …), where `here` is the carry that is true for elements that are not done.
   Carries without the axes of the elements, such as counters, then have another value at the end for each element:
   nothing may use it. */
#include "../typecheck/rule.h"
#include "build.h"

enum { MOST_PARTS = 16, MOST_EQUATIONS = 1024 /* on scalars, of one loop */ };

/* What an element has of a value: its scalars, in the order of the axes that are not those of the elements. */
typedef struct {
    Val *at;
    uint32_t n;
    bool along;     /* the value has the axes of the elements, */
    uint32_t first; /* from this one on */
    bool splat;     /* it is this scalar everywhere, whatever its shape; n = 1 */
} Parts;
typedef struct {
    Ctx *cx;
    Builder b;
    uint32_t rank; /* the axes of the elements */
    const Dim *dims;
    Intern values; /* those that have parts, by number */
    struct {
        const Parts **at;
        uint32_t n, cap;
    } parts;
    Intern lengths; /* of scans, where they are symbols */
    struct {
        Val *at;
        uint32_t n, cap;
    } length;
    Intern bodies; /* of the loops so far */
    uint32_t written;
    bool test;        /* a condition is being split, */
    Val here;         /* which asks whether this is true of any element */
    const bool *used; /* by value: an equation or a program takes it */
} Split;

static Parts splat(Split *s, Val v) {
    Parts p = {arena_new(s->cx->arena, Val, 1), 1, .splat = true};
    p.at[0] = v;
    return p;
}
static void set_parts(Split *s, Val v, Parts p) {
    bool fresh;
    uint32_t i = intern(&s->values, &v, sizeof v, &fresh);
    Parts *own = arena_new(s->cx->arena, Parts, 1);
    *own = p;
    if (fresh) push(s->cx->arena, &s->parts, NULL);
    s->parts.at[i] = own;
}
/* NULL: it has none. */
static const Parts *parts_of(Split *s, Val v) {
    uint32_t i;
    if (val_info(s->cx, v)->lit && !intern_find(&s->values, &v, sizeof v, &i)) set_parts(s, v, splat(s, v));
    return intern_find(&s->values, &v, sizeof v, &i) ? s->parts.at[i] : NULL;
}

/* ---- the places of an array that one element has */
typedef struct {
    uint32_t rank, size;
    int64_t extent[COMPILED_RANK]; /* an axis of the elements: 1 */
} Room;
static bool is_element_axis(const Split *s, const Parts *p, uint32_t axis) {
    return p->along && axis >= p->first && axis < p->first + s->rank;
}
static bool room_of(const Split *s, const ArrayType *t, const Parts *p, Room *r) {
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
static void place_of(const Room *r, uint32_t number, int64_t *place) {
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
static Val part_at(const Parts *p, const Room *r, const int64_t *place) {
    return p->at[p->splat ? 0 : number_of(r, place)];
}
static Parts room_for(Split *s, Parts p, const Room *r) {
    p.at = arena_new(s->cx->arena, Val, r->size);
    p.n = r->size;
    return p;
}
static bool has(Ints s, int64_t v) {
    each(int64_t, i, s)
        if (*i == v) return true;
    return false;
}

/* ---- equations. A rule finds the parts of the result, or returns false: the loop stays as it is. */

static Val scalar_eqn(Split *s, const Eqn *e, uint32_t n, Val *in) {
    s->written++;
    return build_many(&s->b, e->prim, n, in, e->params.n, e->params.at, 1, NULL).at[0];
}
static bool split_point(Split *s, const Eqn *e, const ArrayType *t, Parts *y) {
    const Parts *x[MOST_PARTS];
    Room to, from[MOST_PARTS] = {0};
    int64_t place[COMPILED_RANK], own[COMPILED_RANK];
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

/* Where an axis of the operand's elements is in the result, and at which place of the operand the result's `to` is. */
typedef struct {
    Split *s;
    const Eqn *e;
    const ArrayType *x, *y;
} View;
typedef bool FindPlace(const View *, const int64_t *to, int64_t *from); /* false: padding */

/* Gives y the parts of x that `find` says. */
static bool split_view(const View *v, const Parts *x, Parts *y, FindPlace *find, Val padding) {
    Room to, from = {0};
    int64_t place[COMPILED_RANK], own[COMPILED_RANK];
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
        Room all;
        y->along = v->y->rank >= s->rank && !memcmp(v->y->dims, s->dims, s->rank * sizeof *s->dims);
        for (uint32_t i = 0; i < v->x->rank; i++)
            if (axes.at[i] < s->rank && v->x->dims[i] != 1) y->along = false;
        if (!y->along && !room_of(s, v->y, y, &all)) return false;
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
    for (uint32_t i = 0; i < v->x->rank; i++) from[i] = has(axes, i) ? v->x->dims[i] - 1 - to[i] : to[i];
    return true;
}
static bool split_rev(const View *v, const Parts *x, Parts *y) {
    Ints axes = param_ints(v->e, K_dimensions);
    for (uint32_t i = 0; i < v->x->rank; i++)
        if (is_element_axis(v->s, x, i) && has(axes, i)) return false;
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
        if (at < 0 || at % step || at / step >= v->x->dims[i]) return false;
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
    y->along = t->rank > s->rank && axis >= s->rank && !memcmp(t->dims, s->dims, s->rank * sizeof *s->dims);
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
    int64_t place[COMPILED_RANK], kept[COMPILED_RANK];
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
            if (!has(axes, i)) kept[n++] = place[i];
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
static bool role_free(const Factor *f, int64_t axis) { return !has(f->batch, axis) && !has(f->contracted, axis); }
/* The axis of the result that a free or batch axis of the operand becomes; `before`: free axes of the other operand that
   come first. */
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
    int64_t place[COMPILED_RANK], own[2][COMPILED_RANK];
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
            if (has(f[i].contracted, a) || result_axis(&f[i], a, before[i]) != first + a - f[i].x->first) return false;
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
                if (!has(f[i].contracted, a)) {
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
static bool split_eqns(Split *s, Eqns eqns);
static bool split_loop(Split *s, const Eqn *e);

static bool split_eqn(Split *s, const Eqn *e) {
    if (e->prim == P_while || e->prim == P_scan) return split_loop(s, e);
    if (e->out.n != 1) return false;
    Lower how = prim_lower[e->prim];
    const ArrayType *t = val_array(s->cx, e->out.at[0]);
    Parts y = {0};
    bool done = how == LOWER_POINT || how == LOWER_STDLIB ? split_point(s, e, t, &y)
                : view_rule[e->prim]                      ? split_of_one(s, e, t, &y)
                : prim_is(e->prim, JOINS)                 ? split_join(s, e, t, &y)
                : e->prim == P_reduce_or && s->test       ? split_any(s, e, &y)
                : e->prim == P_iota                       ? split_iota(s, e, t, &y)
                : e->prim == P_dot_general                ? split_dot(s, e, t, &y)
                : how == LOWER_REDUCE                     ? split_reduce(s, e, t, &y)
                                                          : false;
    if (!done || s->b.failed || s->written > MOST_EQUATIONS) return false;
    set_parts(s, e->out.at[0], y);
    return true;
}
static bool split_eqns(Split *s, Eqns eqns) {
    each(const Eqn, e, eqns)
        if (!split_eqn(s, e)) return false;
    return true;
}

/* ---- loops */
typedef struct {
    Val *at;
    uint32_t n, cap;
} List;
/* Parts of an array of this type as those of `like`: a splat is repeated. */
static bool spread(Split *s, const ArrayType *t, const Parts *like, Parts *p) {
    Room r;
    if (!p->splat) return p->along == like->along && (!p->along || p->first == like->first);
    Val v = p->at[0];
    if (!room_of(s, t, like, &r)) return false;
    *p = room_for(s, *like, &r);
    for (uint32_t i = 0; i < r.size; i++) p->at[i] = v;
    return true;
}
static bool begins_with_elements(const Split *s, const ArrayType *t) {
    return t->rank >= s->rank && !memcmp(t->dims, s->dims, s->rank * sizeof *s->dims);
}
/* A loop being split. The carries of scalars follow each other, a counter before them if it is a scan. */
typedef struct {
    Vals carry, end;
    Parts *parts; /* by carry: the operands', one list for each */
    List init;
    Type *types;
    Dim length; /* of a scan */
    bool counts;
} Loops;
static bool open_loop(Split *s, Loops *l) {
    Arena *arena = s->cx->arena;
    l->parts = arena_new(arena, Parts, l->carry.n + 1);
    if (l->counts) push(arena, &l->init, b_int(&s->b, DT_i64, 0));
    for (uint32_t i = 0; i < l->carry.n; i++) {
        const Parts *x = parts_of(s, l->carry.at[i]);
        const ArrayType *t = val_array(s->cx, l->carry.at[i]);
        if (!x) return false;
        l->parts[i] = *x;
        Parts like = {.along = t->rank > 0 && begins_with_elements(s, t)};
        if (!spread(s, t, x->splat ? &like : x, &l->parts[i])) return false;
        for (uint32_t k = 0; k < l->parts[i].n; k++) push(arena, &l->init, l->parts[i].at[k]);
    }
    l->types = arena_new(arena, Type, l->init.n + 1);
    for (uint32_t i = 0; i < l->init.n; i++)
        l->types[i] = type_of(s->cx->types, val_array(s->cx, l->init.at[i])->dtype, 0, NULL);
    return true;
}
/* Gives the inputs or results of a program, or of the loop, these scalars. */
static void bind(Split *s, const Loops *l, Vals to, const Val *scalars) {
    scalars += l->counts;
    for (uint32_t i = 0; i < to.n; i++) {
        Parts p = l->parts[i];
        p.at = (Val *)scalars;
        scalars += p.n;
        set_parts(s, to.at[i], p);
    }
}
/* One without parts ends the attempt where it is used. */
static void bind_consts(Split *s, Vals to, Vals operands) {
    for (uint32_t i = 0; i < to.n; i++) {
        const Parts *x = parts_of(s, operands.at[i]);
        if (x) set_parts(s, to.at[i], *x);
    }
}
/* In a program on scalars: the equation that computes v; NULL: none. */
static const Eqn *maker(const Jaxpr *j, Val v) {
    for (uint32_t i = j->eqns.n; i-- > 0;)
        if (j->eqns.at[i].out.at[0] == v) return &j->eqns.at[i];
    return NULL;
}
/* Is the bool v false wherever `here` is? */
static bool implies(const Jaxpr *j, Val v, Val here) {
    const Eqn *e = v == here ? NULL : maker(j, v);
    return v == here || (e && e->prim == P_and && (implies(j, e->in.at[0], here) || implies(j, e->in.at[1], here)));
}
/* Does it count how often an element is here? */
static bool adds_nothing(const Ctx *cx, const Jaxpr *j, const Eqn *add, Val here, Val old) {
    const Eqn *e = maker(j, add->in.at[add->in.at[0] == old]);
    bool both = add->in.at[0] == old || add->in.at[1] == old;
    if (!both || !e || e->prim != P_convert_element_type) return false;
    return (OF_INT >> dtype_info[val_array(cx, old)->dtype].kind & 1) && implies(j, e->in.at[0], here);
}
/* Does an element that is not here keep its carry? */
static bool keeps(const Ctx *cx, const Jaxpr *j, Val here, Val old, Val new) {
    const Eqn *e = maker(j, new);
    if (new == old || (old == here && implies(j, new, here))) return true;
    if (!e || e->prim == P_add) return e && adds_nothing(cx, j, e, here, old);
    return e->prim == P_select_n && e->in.n == 3 && e->in.at[1] == old && implies(j, e->in.at[0], here);
}
/* Does an iteration leave elements that are not here alone, as far as the results of the loop are used? `j` takes the
   carry last and returns the next one first. */
static bool leaves(const Split *s, const Loops *l, const Jaxpr *j, Val here) {
    uint32_t n = 0, first = j->in.n - l->init.n;
    for (uint32_t i = 0; i < l->carry.n; i++) {
        const Parts *p = &l->parts[i];
        if (!p->along && s->used[l->end.at[i]]) return false;
        for (uint32_t k = 0; k < p->n; k++, n++)
            if (p->along && !keeps(s->cx, j, here, j->in.at[first + n], j->out.at[n])) return false;
    }
    return true;
}
/* The condition, as a scalar, and in s->here what it asks of the elements; 0: nothing. It is false where that is. */
static bool split_test(Split *s, const Jaxpr *cond, Val *test) {
    bool inner = s->test;
    s->here = 0, s->test = true;
    bool ok = split_eqns(s, cond->eqns);
    const Parts *p = parts_of(s, cond->out.at[0]);
    s->test = inner;
    if (!ok || !p || p->n != 1 || p->along) return false;
    *test = p->at[0];
    return !s->here || implies(&(Jaxpr){.eqns = s->b.eqns}, *test, s->here);
}
/* The results of one iteration, as scalars. */
static bool split_turn(Split *s, const Loops *l, Vals out, const Inner *turn, Val *next) {
    uint32_t n = 0;
    if (l->counts) {
        Val counter = turn->in.at[0];
        next[n++] = b_add(&s->b, counter, b_int(&s->b, DT_i64, 1));
    }
    for (uint32_t i = 0; i < out.n; i++) {
        const Parts *x = parts_of(s, out.at[i]);
        if (!x) return false;
        Parts p = *x;
        if (!spread(s, val_array(s->cx, out.at[i]), &l->parts[i], &p) || p.n != l->parts[i].n) return false;
        for (uint32_t k = 0; k < p.n; k++) next[n++] = p.at[k];
    }
    return !s->b.failed;
}
static bool finish_loop(Split *s, Loops *l, const Inner *test, const Inner *turn) {
    Vals y = b_while(&s->b, test, turn, l->init.n, l->init.at);
    if (s->b.failed) return false;
    bind(s, l, l->end, y.at);
    return true;
}
/* What an inner program gives for these operands, beside those that it captured. */
static Val applied(Split *s, const Inner *program, Vals operands) {
    Vals in = vals_joined(s->cx->arena, 2, (Vals[]){program->captured, operands});
    return b_call(&s->b, program->j, in.n, in.at).at[0];
}
/* An iteration that computes itself, as the condition does, which elements are here gets this from the one before. */
static bool carry_condition(Split *s, Loops *l, const Inner *test, const Inner *turn) {
    Ctx *cx = s->cx;
    uint32_t n = l->init.n;
    Vals init = {l->init.at, n};
    Jaxpr *j = pass_cse(cx, turn->j);
    Val here = j->out.at[n];
    ValMap map = {.cx = cx, .sparse = true};
    Type *types = arena_new(cx->arena, Type, n + 1);
    if (!leaves(s, l, j, here)) return false;
    memcpy(types, l->types, n * sizeof *types);
    types[n] = type_of(cx->types, DT_bool, 0, NULL);
    push(cx->arena, &l->init, applied(s, test, init));
    Inner more = b_inner(&s->b, n + 1, types);
    b_inner_end(&s->b, &more, 1, &more.in.at[n]);
    Inner body = b_inner(&s->b, n + 1, types);
    Vals carry = vals_part(body.in, 0, n), in = vals_joined(cx->arena, 2, (Vals[]){turn->captured, carry});
    for (uint32_t i = 0; i < in.n; i++) valmap_put(&map, j->in.at[i], in.at[i]);
    each(const Eqn, e, j->eqns) {
        Eqn copy = eqn_rewrite(&map, e, NULL, NULL);
        Val y = e->out.n == 1 && e->out.at[0] == here ? body.in.at[n] : 0;
        Vals new = y ? (Vals){&y, 1} : b_eqn(&s->b, &copy, e->out.n, NULL);
        for (uint32_t i = 0; i < e->out.n; i++) valmap_put(&map, e->out.at[i], new.at[i]);
    }
    Vals next = vals_rewrite(&map, j->out);
    next.at[n] = b_and(&s->b, body.in.at[n], applied(s, test, vals_part(next, 0, n)));
    b_inner_end(&s->b, &body, n + 1, next.at);
    return finish_loop(s, l, &more, &body);
}
static bool split_while(Split *s, const Eqn *e) {
    While w = while_of(e), turn = while_turn(&w, w.cond, w.body);
    Loops l = {.carry = w.carry, .end = w.end};
    Val out;
    if (!open_loop(s, &l)) return false;
    uint32_t n = l.init.n, at = 0;
    Inner test = b_inner(&s->b, n, l.types);
    bind_consts(s, turn.cond_consts, w.cond_consts);
    bind(s, &l, turn.tested, test.in.at);
    if (!split_test(s, w.cond, &out)) return false;
    bool any = s->here != 0;
    while (at < n && test.in.at[at] != s->here) at++;
    b_inner_end(&s->b, &test, 1, &out);
    Inner body = b_inner(&s->b, n, l.types);
    Val *next = arena_new(s->cx->arena, Val, n + 1);
    if (any) next[n] = at < n ? body.in.at[at] : applied(s, &test, body.in);
    bind_consts(s, turn.body_consts, w.body_consts);
    bind(s, &l, turn.carry, body.in.at);
    if (!split_eqns(s, w.body->eqns) || !split_turn(s, &l, turn.end, &body, next)) return false;
    bool again = any && at == n;
    b_inner_end(&s->b, &body, n + again, next);
    if (again) return carry_condition(s, &l, &test, &body);
    return (!any || leaves(s, &l, body.j, body.j->in.at[body.captured.n + at])) && finish_loop(s, &l, &test, &body);
}
/* The number of iterations of a scan: a scalar of the program, or of the equations before it, which `add_lengths` has
   written; 0: it is neither. */
static Val length_of(Split *s, Dim n) {
    uint32_t i;
    if (dim_is_const(n)) return b_int(&s->b, DT_i64, n);
    const DimExpr *x = dim_at(s->cx->types, n);
    const Parts *p = x->kind == DIM_BOUND ? parts_of(s, x->val) : NULL;
    if (p) return b_convert(&s->b, p->at[0], DT_i64);
    return intern_find(&s->lengths, &n, sizeof n, &i) ? s->length.at[i] : 0;
}
static void add_length(Split *s, const Eqn *e) {
    Dim n = e->prim == P_scan ? scan_of(e).length : 0;
    bool fresh = false;
    if (!dim_is_const(n) && !dim_has_bound(s->cx->types, n)) intern(&s->lengths, &n, sizeof n, &fresh);
    if (fresh) push(s->cx->arena, &s->length, b_dim(&s->b, DT_i64, n));
}
static void add_lengths(Split *s, const Eqn *e) {
    add_length(s, e);
    Jaxprs all = jaxprs_within(s->cx->arena, e->prim == P_scan ? scan_of(e).body : while_of(e).body);
    each(Jaxpr *, j, all)
        each(const Eqn, q, (*j)->eqns) add_length(s, q);
}
/* A scan without scanned arrays, as a while that counts. */
static bool split_scan(Split *s, const Eqn *e) {
    Scan c = scan_of(e), turn = scan_turn(&c, c.body);
    Loops l = {.carry = c.carry, .end = c.end, .counts = true, .length = c.length};
    if (c.xs.n || c.ys.n || !open_loop(s, &l)) return false;
    Val length = length_of(s, c.length);
    if (!length) return false;
    Inner test = b_inner(&s->b, l.init.n, l.types);
    Val more = b_lt(&s->b, test.in.at[0], length);
    b_inner_end(&s->b, &test, 1, &more);
    Inner body = b_inner(&s->b, l.init.n, l.types);
    Val *next = arena_new(s->cx->arena, Val, l.init.n + 1);
    bind_consts(s, turn.consts, c.consts);
    bind(s, &l, turn.carry, body.in.at);
    if (!split_eqns(s, c.body->eqns) || !split_turn(s, &l, turn.end, &body, next)) return false;
    b_inner_end(&s->b, &body, l.init.n, next);
    return finish_loop(s, &l, &test, &body);
}
/* A program that several loops share, and that has loops itself, is not copied for each. */
static bool split_loop(Split *s, const Eqn *e) {
    const Jaxpr *body = e->prim == P_scan ? scan_of(e).body : while_of(e).body;
    bool fresh, loops = false;
    intern(&s->bodies, &body, sizeof body, &fresh);
    each(const Eqn, q, body->eqns) loops |= q->prim == P_while || q->prim == P_scan;
    if (++s->written > MOST_EQUATIONS || (!fresh && loops)) return false;
    return e->prim == P_while ? split_while(s, e) : split_scan(s, e);
}

/* ---- the pass */
typedef struct {
    Ctx *cx;
    ValMap map;
    Memo memo;
    bool *used;
} Elements;

/* The most axes that the elements may have: those that the condition asks about, else those that all carries begin
   with. */
static uint32_t common_axes(const Ctx *cx, Vals carry, const Dim **dims) {
    uint32_t n = UINT32_MAX;
    each(const Val, v, carry) {
        const ArrayType *t = val_array(cx, *v);
        if (!t->rank) continue;
        uint32_t k = 0;
        while (n != UINT32_MAX && k < n && k < t->rank && t->dims[k] == (*dims)[k]) k++;
        n = n == UINT32_MAX ? t->rank : k;
        *dims = t->dims;
    }
    return n == UINT32_MAX ? 0 : n;
}
static uint32_t element_axes(const Ctx *cx, const Eqn *e, const Dim **dims) {
    const Jaxpr *cond = e->prim == P_while ? while_of(e).cond : NULL;
    for (uint32_t i = 0; cond && i < cond->eqns.n; i++) {
        const Eqn *q = &cond->eqns.at[i];
        if (q->prim != P_reduce_or || val_array(cx, q->out.at[0])->rank) continue;
        const ArrayType *t = val_array(cx, q->in.at[0]);
        *dims = t->dims;
        return t->rank;
    }
    return common_axes(cx, e->prim == P_while ? while_of(e).carry : scan_of(e).carry, dims);
}
/* The operands of the elementwise equation: an array with the axes of the elements, or a scalar, for each part. */
static bool operand_parts(Split *s, Val v, Parts *p) {
    const ArrayType *t = val_array(s->cx, v);
    Builder *b = &s->b;
    Room r;
    *p = (Parts){.along = t->rank && begins_with_elements(s, t)};
    if (!room_of(s, t, p, &r)) return false;
    *p = room_for(s, *p, &r);
    uint32_t own = p->along ? s->rank : 0; /* its leading axes stay */
    for (uint32_t k = 0; k < r.size; k++) {
        int64_t place[COMPILED_RANK];
        Dim lo[COMPILED_RANK] = {0}, hi[COMPILED_RANK];
        place_of(&r, k, place);
        for (uint32_t i = 0; i < t->rank; i++) {
            lo[i] = i < own ? 0 : place[i];
            hi[i] = i < own ? t->dims[i] : place[i] + 1;
        }
        p->at[k] = own == t->rank ? v : b_reshape(b, b_slice(b, v, lo, hi, NULL), own, t->dims);
    }
    return true;
}
/* A result with the axes of the elements from its parts. */
static Val whole(Split *s, const ArrayType *t, uint32_t n, const Val *parts) {
    if (t->rank == s->rank) return parts[0];
    Val all = build(&s->b, P_stack, n, parts, 1, (Param[]){p_int(K_axis, s->rank)});
    return b_reshape(&s->b, all, t->rank, t->dims);
}
/* Appends what the loop becomes if the elements have these axes; false if it stays. */
static bool to_elements(Elements *m, Eqns *to, const Eqn *e, uint32_t rank, const Dim *dims) {
    Ctx *cx = m->cx;
    Split s = {.cx = cx, .rank = rank, .dims = dims, .used = m->used};
    s.b = (Builder){.cx = cx, .span = e->span, .whole = e->whole};
    s.values.arena = s.lengths.arena = s.bodies.arena = cx->arena;
    add_lengths(&s, e);
    List operands = {0}, results = {0};
    Parts *own = arena_new(cx->arena, Parts, e->in.n + 1);
    for (uint32_t i = 0; i < e->in.n; i++) {
        Val v = valmap_get(&m->map, e->in.at[i]);
        bool can = !val_info(cx, v)->lit && operand_parts(&s, v, &own[i]);
        for (uint32_t k = 0; k < own[i].n && can; k++) push(cx->arena, &operands, own[i].at[k]);
        if (!can) own[i].n = 0;
        if (val_info(cx, v)->lit) set_parts(&s, e->in.at[i], splat(&s, v));
    }
    Type *types = arena_new(cx->arena, Type, operands.n + 1);
    for (uint32_t i = 0; i < operands.n; i++)
        types[i] = type_of(cx->types, val_array(cx, operands.at[i])->dtype, 0, NULL);
    Inner program = b_inner(&s.b, operands.n, types);
    for (uint32_t i = 0, n = 0; i < e->in.n; i++) {
        if (!own[i].n) continue;
        Parts p = own[i];
        p.at = program.in.at + n;
        n += p.n;
        set_parts(&s, e->in.at[i], p);
    }
    if (!split_loop(&s, e)) return false;
    each(const Val, v, e->out) {
        const Parts *p = parts_of(&s, *v);
        if (!m->used[*v]) continue;
        if (!p->along) return false;
        for (uint32_t k = 0; k < p->n; k++) push(cx->arena, &results, p->at[k]);
    }
    if (!results.n) return false;
    b_inner_end(&s.b, &program, results.n, results.at);
    Vals in = vals_joined(cx->arena, 2, (Vals[]){program.captured, {operands.at, operands.n}});
    Vals y = build_many(&s.b, P_elementwise, in.n, in.at, 1, (Param[]){p_jaxpr(K_jaxpr, program.j)}, results.n, NULL);
    uint32_t n = 0;
    each(const Val, v, e->out) {
        if (!m->used[*v]) continue;
        valmap_put(&m->map, *v, whole(&s, val_array(cx, *v), parts_of(&s, *v)->n, y.at + n));
        n += parts_of(&s, *v)->n;
    }
    assert(!s.b.failed && !s.b.consts.n);
    each(const Eqn, q, s.b.eqns) push(cx->arena, to, *q);
    return true;
}

static Jaxpr *elements_jaxpr(void *user, const Jaxpr *j);
static bool elements_eqn(void *user, Eqns *to, Consts *consts, const Eqn *e) {
    Elements *m = user;
    bool loop = e->prim == P_while || e->prim == P_scan;
    const Dim *dims = NULL;
    for (uint32_t rank = loop ? element_axes(m->cx, e, &dims) : 0; rank > 0; rank--)
        if (to_elements(m, to, e, rank, dims)) return true;
    push(m->cx->arena, to, eqn_rewrite(&m->map, e, elements_jaxpr, m));
    return true;
}
static Jaxpr *elements_jaxpr(void *user, const Jaxpr *j) {
    Elements *m = user;
    return jaxpr_rewrite(&m->map, &m->memo, j, elements_eqn, m);
}
static void use(void *user, Val v) { ((Elements *)user)->used[v] = true; }

Jaxpr *pass_elements(Ctx *cx, const Jaxpr *j) {
    if (cx->stdlib_passes) return (Jaxpr *)j;
    Elements m = {.cx = cx, .map.cx = cx, .memo.arena = cx->arena, .used = arena_new(cx->arena, bool, cx->nvals)};
    Jaxprs all = jaxprs_within(cx->arena, j);
    each(Jaxpr *, k, all) {
        each(const Eqn, e, (*k)->eqns) eqn_takes(cx, e, use, &m);
        each(const Val, v, (*k)->out) use(&m, *v);
    }
    return elements_jaxpr(&m, j);
}
