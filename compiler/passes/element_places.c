/* Reads and updates at computed places, on the scalars of one element. A value in scalars is chosen among them by
   comparing the place with each that it may be; an array that has more of them stays in memory, and its element is read
   there. */
#include "elements.h"
#include "../typecheck/index.h"
#include "../typecheck/rule.h"
#include "eval.h"
#include <math.h>

/* Where a window begins along an axis of the array, and the place within it. */
typedef struct {
    Val start;    /* a scalar, moved into [0, most]; 0: it begins at 0 */
    Dim most;     /* the array's extent less the window's */
    int64_t plus; /* the place in the window */
} At;
typedef struct {
    Split *s;
    const Parts *x;
    const ArrayType *t;
    Room room; /* of scalars */
} Source;
static bool source_of(Split *s, Val v, Source *a) {
    *a = (Source){.s = s, .x = array_of(s, v), .t = val_array(s->cx, v)};
    return a->x && (a->x->table || a->x->splat || room_of(s, a->t, a->x, &a->room));
}
static Val integer_like(Split *s, Val v, int64_t i) { return b_int(&s->b, val_array(s->cx, v)->dtype, i); }
/* A start that is known becomes a place. */
static At at_new(Split *s, Val start, Dim most, int64_t plus) {
    Scalar known = {0};
    bool literal = start && val_info(s->cx, start)->lit && scalar_of(s->cx, start, &known);
    int64_t i = literal ? scalar_int(known) : 0;
    if (!start || most == 0 || (literal && i <= 0)) return (At){.plus = plus};
    if (literal && dim_is_const(most)) return (At){.plus = plus + (i < most ? i : most)};
    return (At){start, most, plus};
}

/* ---- reads */
static Val choose(const Source *a, const At *at, int64_t *place, uint32_t axis) {
    if (axis == a->t->rank) return part_at(a->x, &a->room, place);
    place[axis] = at[axis].plus;
    Val y = choose(a, at, place, axis + 1), start = at[axis].start;
    for (int64_t i = 1; start && i <= at[axis].most; i++) {
        Val least = b_ge(&a->s->b, start, integer_like(a->s, start, i));
        place[axis] = at[axis].plus + i;
        Val other = choose(a, at, place, axis + 1);
        y = b_select(&a->s->b, least, y, other);
        a->s->written += 2;
    }
    return y;
}
static Val place_in_memory(Split *s, const At *at, Dtype d) {
    Builder *b = &s->b;
    if (!at->start) return b_int(b, d, at->plus);
    Val start = b_convert(b, at->start, d);
    if (!at->plus) return start;
    start = b_clamp(b, b_int(b, d, 0), start, b_dim(b, d, at->most));
    return b_add(b, start, b_int(b, d, at->plus));
}
static Val read_memory(const Source *a, const At *at) {
    Split *s = a->s;
    Val in[COMPILED_RANK + 1] = {a->x->at[0]};
    uint32_t n = 1;
    Dtype d = DT_none;
    for (uint32_t i = 0; i < a->t->rank; i++) {
        Dtype own = at[i].start ? val_array(s->cx, at[i].start)->dtype : DT_none;
        if (own) d = (!d || d == own) && dtype_info[own].bits >= 32 ? own : DT_i64;
    }
    for (uint32_t i = 0; i < a->t->rank; i++) {
        if (is_element_axis(s, a->x, i)) continue;
        in[n++] = place_in_memory(s, &at[i], d ? d : DT_i64);
    }
    s->arrays = true;
    s->written += n;
    return build(&s->b, P_element, n, in, 0, NULL);
}
static Val read_place(const Source *a, const At *at) {
    int64_t place[COMPILED_RANK] = {0};
    if (a->x->splat) return a->x->at[0];
    return a->x->table ? read_memory(a, at) : choose(a, at, place, 0);
}
/* The slice of a scanned array in one turn. */
bool split_scanned(Split *s, Val v, Val counter, const ArrayType *t, Parts *y) {
    Source a;
    Room to;
    int64_t place[COMPILED_RANK];
    At at[COMPILED_RANK] = {0};
    if (!source_of(s, v, &a) || (a.x->along && !a.x->first)) return false;
    if (a.x->splat) return *y = *a.x, true;
    *y = (Parts){.along = a.x->along, .first = a.x->along ? a.x->first - 1 : 0};
    if (!room_of(s, t, y, &to)) return false;
    *y = room_for(s, *y, &to);
    at[0] = at_new(s, counter, dim_sub(s->cx->types, a.t->dims[0], 1), 0);
    for (uint32_t k = 0; k < to.size; k++) {
        place_of(&to, k, place);
        for (uint32_t i = 0; i < t->rank; i++) at[1 + i].plus = place[i];
        y->at[k] = read_place(&a, at);
    }
    return true;
}
/* The scalar that a value without axes is; 0: it has none. */
static Val scalar_part(Split *s, Val v) {
    const Parts *p = parts_of(s, v);
    return p && p->n == 1 ? p->at[0] : 0;
}
bool split_dynamic_slice(Split *s, const Eqn *e, const ArrayType *t, Parts *y) {
    Source a;
    Room to;
    Val start[COMPILED_RANK];
    At at[COMPILED_RANK] = {0};
    int64_t place[COMPILED_RANK];
    if (!source_of(s, e->in.at[0], &a)) return false;
    for (uint32_t i = 0; i < t->rank; i++) {
        start[i] = scalar_part(s, e->in.at[1 + i]);
        if (!start[i] || (is_element_axis(s, a.x, i) && t->dims[i] != a.t->dims[i])) return false;
    }
    if (a.x->splat) return *y = *a.x, true;
    *y = (Parts){.along = a.x->along, .first = a.x->first};
    if (!room_of(s, t, y, &to)) return false;
    *y = room_for(s, *y, &to);
    for (uint32_t k = 0; k < to.size; k++) {
        place_of(&to, k, place);
        for (uint32_t i = 0; i < t->rank; i++)
            at[i] = at_new(s, start[i], dim_sub(s->cx->types, a.t->dims[i], t->dims[i]), place[i]);
        y->at[k] = read_place(&a, at);
    }
    return true;
}

/* ---- gather and scatter: windows of the array at the positions that the indices hold */
typedef struct {
    Split *s;
    const Eqn *e;
    IndexNumbers n;
    const ArrayType *x, *indices, *windows; /* windows: gather's result, scatter's updates */
    const Parts *index;
    Room positions;
    uint32_t batch[COMPILED_RANK];  /* the axis of `windows` that each axis of the indices but the last is */
    uint32_t window[COMPILED_RANK]; /* the one that an axis of the array is; UINT32_MAX: none */
} Windows;
static bool windows_of(Split *s, const Eqn *e, const ArrayType *windows, Windows *w) {
    *w = (Windows){.s = s, .e = e, .windows = windows};
    w->x = val_array(s->cx, e->in.at[0]), w->indices = val_array(s->cx, e->in.at[1]);
    w->index = parts_of(s, e->in.at[1]);
    if (!index_numbers(s->cx, e, &w->n) || !w->index) return false;
    if (!w->index->splat && !room_of(s, w->indices, w->index, &w->positions)) return false;
    for (uint32_t i = 0, n = 0; i < windows->rank; i++)
        if (!ints_have(w->n.windows, i)) w->batch[n++] = i;
    for (uint32_t i = 0, n = 0; i < w->x->rank; i++) {
        bool gone = ints_have(w->n.dropped, i) || ints_have(w->n.batch, i);
        w->window[i] = gone ? UINT32_MAX : (uint32_t)w->n.windows.at[n++];
    }
    return true;
}
/* Says that axis `to + i` of the windows is the elements' axis i, unless another one is. */
static bool along(Parts *y, uint32_t i, uint32_t to) {
    if (y->along && y->first + i != to) return false;
    if (to < i) return false;
    y->along = true, y->first = to - i;
    return true;
}
static bool among_elements(const Windows *w, const Parts *p, uint32_t axis) {
    return p->along && axis >= p->first && axis < p->first + w->s->rank;
}
/* An axis of the array that is one of the elements' in the windows must be one in the array: another is read at the
   same place for all elements. */
static bool apart_from_elements(const Windows *w, const Parts *x, const Parts *y) {
    for (uint32_t axis = 0; axis < w->x->rank; axis++) {
        uint32_t k = 0, to = w->window[axis];
        while (k < w->n.batch.n && w->n.batch.at[k] != axis) k++;
        if (k < w->n.batch.n) to = w->batch[w->n.index_batch.at[k]];
        if (to != UINT32_MAX && among_elements(w, y, to) && !among_elements(w, x, axis)) return false;
    }
    return true;
}
/* Where the windows have the elements' axes, if the array has them as `x` does. */
static bool windows_along(const Windows *w, const Parts *x, Parts *y) {
    for (uint32_t i = 0; i < w->s->rank && w->index->along; i++)
        if (w->index->first + i + 1 >= w->indices->rank || !along(y, i, w->batch[w->index->first + i])) return false;
    for (uint32_t i = 0; i < w->s->rank && x->along; i++) {
        uint32_t axis = x->first + i, k = 0;
        while (k < w->n.batch.n && w->n.batch.at[k] != axis) k++;
        bool batch = k < w->n.batch.n, whole = w->window[axis] != UINT32_MAX;
        if (!batch && (!whole || w->windows->dims[w->window[axis]] != w->x->dims[axis])) return false;
        if (!along(y, i, batch ? w->batch[w->n.index_batch.at[k]] : w->window[axis])) return false;
    }
    return x->splat || apart_from_elements(w, x, y);
}
static bool inside(Split *s, Val start, Dim most, Val *all) {
    Builder *b = &s->b;
    if (!dim_is_const(most) && most != 0) return false;
    Val low = b_ge(b, start, integer_like(s, start, 0)), high = b_le(b, start, integer_like(s, start, most));
    Val both = b_and(b, low, high);
    *all = *all ? b_and(b, *all, both) : both;
    s->written += 4;
    return true;
}
/* Where the element of the array lies that belongs to this place of the windows; in *all, if `x` is not NULL, whether
   the whole window is inside. */
static bool window_at(const Windows *w, const int64_t *place, At *at, Val *all) {
    Split *s = w->s;
    int64_t own[COMPILED_RANK] = {0};
    bool wraps = index_wraps(w->e, w->x);
    for (uint32_t i = 0; i + 1 < w->indices->rank; i++) own[i] = place[w->batch[i]];
    for (uint32_t i = 0; i < w->x->rank; i++)
        at[i] = (At){.plus = w->window[i] == UINT32_MAX ? 0 : place[w->window[i]]};
    for (uint32_t i = 0; i < w->n.batch.n; i++) at[w->n.batch.at[i]].plus = own[w->n.index_batch.at[i]];
    for (uint32_t i = 0; i < w->n.map.n; i++) {
        int64_t axis = w->n.map.at[i];
        own[w->indices->rank - 1] = w->index->splat || w->positions.extent[w->indices->rank - 1] == 1 ? 0 : i;
        Val start = part_at(w->index, &w->positions, own);
        if (wraps) start = b_convert(&s->b, start, DT_i32);
        Dim size = w->window[axis] == UINT32_MAX ? 1 : w->windows->dims[w->window[axis]];
        Dim most = dim_sub(s->cx->types, w->x->dims[axis], size);
        if (all && !inside(s, start, most, all)) return false;
        at[axis] = at_new(s, start, most, at[axis].plus);
    }
    return true;
}
/* What JAX fills windows with that are not inside; false: not a number of this type. */
static bool fill_of(Split *s, const Eqn *e, Dtype d, Val *y) {
    double part[2];
    bool given = gather_fill(s->cx, e, part), real = dtype_info[d].kind == DK_FLOAT;
    if (!real && (!(OF_INT >> dtype_info[d].kind & 1) || d == DT_u64)) return false;
    if (!real && given && !(fabs(part[0]) < 0x1p31)) return false;
    if (real)
        *y = b_float(&s->b, d, given ? part[0] : index_mode(e) == MODE_ONE_HOT ? 0 : NAN);
    else if (given || index_mode(e) == MODE_ONE_HOT)
        *y = b_int(&s->b, d, given ? (int64_t)part[0] : 0);
    else
        *y = b_int(&s->b, d, dtype_limit(d, dtype_info[d].kind != DK_SINT));
    return true;
}
bool split_gather(Split *s, const Eqn *e, const ArrayType *t, Parts *y) {
    Windows w;
    Source a;
    Room to;
    Val fill = 0;
    At at[COMPILED_RANK];
    int64_t place[COMPILED_RANK];
    bool fills = gather_fills(e);
    if (!source_of(s, e->in.at[0], &a) || !windows_of(s, e, t, &w) || !windows_along(&w, a.x, y)) return false;
    if ((fills && !fill_of(s, e, t->dtype, &fill)) || !room_of(s, t, y, &to)) return false;
    *y = room_for(s, *y, &to);
    for (uint32_t k = 0; k < to.size; k++) {
        Val all = 0;
        place_of(&to, k, place);
        if (!window_at(&w, place, at, fills ? &all : NULL)) return false;
        y->at[k] = read_place(&a, at);
        if (all) y->at[k] = b_select(&s->b, all, fill, y->at[k]);
    }
    return true;
}

/* ---- updates */
/* Whether the window begins so that the place is in it where `at` says; 0: it always is. */
static bool hits(Split *s, uint32_t rank, const At *at, const int64_t *place, Val *all) {
    Builder *b = &s->b;
    for (uint32_t i = 0; i < rank; i++) {
        int64_t k = place[i] - at[i].plus;
        Val start = at[i].start;
        if (k < 0 || (start ? k > at[i].most : k != 0)) return false;
        if (!start) continue;
        Val number = integer_like(s, start, k);
        Val one = k == 0 ? b_le(b, start, number) : k == at[i].most ? b_ge(b, start, number) : b_eq(b, start, number);
        *all = *all ? b_and(b, *all, one) : one;
        s->written += 2;
    }
    return true;
}
/* The places of the array that one update may go to. */
static void update(Split *s, const ArrayType *t, const Room *r, const At *at, Val given, Val new, Prim how, Parts *y) {
    int64_t place[COMPILED_RANK];
    for (uint32_t k = 0; k < r->size; k++) {
        Val all = given;
        place_of(r, k, place);
        if (!hits(s, t->rank, at, place, &all)) continue;
        Val value = how == P_none ? new : b2(&s->b, how, y->at[k], new);
        y->at[k] = all ? b_select(&s->b, all, y->at[k], value) : value;
        s->written += 2;
    }
}
/* The array as scalars that are this value's own. */
static bool own_parts(Split *s, Val v, Parts *y) {
    const Parts *x = parts_of(s, v);
    const ArrayType *t = val_array(s->cx, v);
    Room r;
    if (!x) return false;
    y->along = y->along || x->along;
    if (x->along) y->first = x->first;
    if (!room_of(s, t, y, &r)) return false;
    *y = room_for(s, *y, &r);
    for (uint32_t k = 0; k < r.size; k++) y->at[k] = x->at[x->splat ? 0 : k];
    return x->splat || x->along == y->along;
}
bool split_dynamic_update(Split *s, const Eqn *e, const ArrayType *t, Parts *y) {
    const ArrayType *u = val_array(s->cx, e->in.at[1]);
    const Parts *new = parts_of(s, e->in.at[1]);
    Room from, to;
    Val start[COMPILED_RANK];
    At at[COMPILED_RANK];
    int64_t place[COMPILED_RANK];
    if (!new) return false;
    y->along = new->along, y->first = new->first;
    if (!own_parts(s, e->in.at[0], y) || !room_of(s, t, y, &to)) return false;
    Parts like = {.along = y->along, .first = y->first};
    if (!room_of(s, u, &like, &from) || (!new->splat && new->along != y->along)) return false;
    if (new->along && new->first != y->first) return false;
    for (uint32_t i = 0; i < t->rank; i++)
        if (!(start[i] = scalar_part(s, e->in.at[2 + i]))) return false;
    for (uint32_t k = 0; k < from.size; k++) {
        place_of(&from, k, place);
        for (uint32_t i = 0; i < t->rank; i++)
            at[i] = at_new(s, start[i], dim_sub(s->cx->types, t->dims[i], u->dims[i]), place[i]);
        update(s, t, &to, at, 0, part_at(new, &from, place), P_none, y);
    }
    return true;
}
/* The updates in order, each where its window is inside the array; with CLIP it is moved there. */
bool split_scatter(Split *s, const Eqn *e, const ArrayType *t, Parts *y) {
    const ArrayType *u = val_array(s->cx, e->in.at[2]);
    const Parts *new = parts_of(s, e->in.at[2]), *x = parts_of(s, e->in.at[0]);
    Windows w;
    Room from, to;
    At at[COMPILED_RANK];
    Parts updates = {0};
    int64_t place[COMPILED_RANK];
    bool drops = index_mode(e) != MODE_CLIP;
    if (!new || !x || (prim_combiner[e->prim] == P_none && param_jaxpr(e, K_update_jaxpr))) return false;
    if (!windows_of(s, e, u, &w) || !windows_along(&w, x, &updates) || !x->along) return false;
    assert(w.x->rank == t->rank);
    if (!new->splat && (new->along != updates.along || new->first != updates.first)) return false;
    if (!own_parts(s, e->in.at[0], y) || !room_of(s, t, y, &to) || !room_of(s, u, &updates, &from)) return false;
    for (uint32_t k = 0; k < from.size; k++) {
        Val all = 0;
        place_of(&from, k, place);
        if (!window_at(&w, place, at, drops ? &all : NULL)) return false;
        update(s, t, &to, at, all, part_at(new, &from, place), prim_combiner[e->prim], y);
    }
    return true;
}
