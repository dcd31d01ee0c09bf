#include "dot.h"
#include "../cost.h"
#include "../eval/record.h"
#include "sums.h"
#include <assert.h>

/* Reading in place or copying. An operand is read in place if its elements are at an affine address of the loops; if
   they are not of the accumulator's type and are read often, converting them once is cheaper. The columns of B must be
   contiguous: otherwise B is copied, before the loop if it is loop-invariant, unless there are few rows and both
   operands are contiguous along the contraction; then the lanes run along the contraction. With many rows and few
   columns the operands swap roles. */

/* An equation while it is planned. Side 0 has the rows, side 1 the columns. */
typedef struct {
    Plan *p;
    Body *body;
    Step *step;
    Dot *dot;
    Val v[2];
    Ints contracted[2], batch[2];
    Ix index[2][MAX_RANK]; /* of the operands, over the loops */
    Atom summed[MAX_RANK]; /* loops of the contraction */
    Dim free[2];           /* products of the free extents */
    Atom last_column;      /* the last free loop of the columns; 0: none */
    bool shared;           /* several loops do not move in the columns' operand */
} Dotter;

static const ArrayType *type_of_side(const Dotter *d, uint32_t side) { return val_array(d->p->cx, d->v[side]); }

/* ---- the equation's axes */

/* The result's axes: batch, free ones of the left operand, free ones of the right. */
static void find_index(Dotter *d, uint32_t side, const Ix *result, uint32_t first_free) {
    const ArrayType *t = type_of_side(d, side);
    for (uint32_t a = 0; a < t->rank; a++) {
        int64_t b = ints_find(d->batch[side], a), c = ints_find(d->contracted[side], a);
        d->index[side][a] = b >= 0 ? result[b] : c >= 0 ? ix_atom(d->p->ix, d->summed[c]) : result[first_free++];
    }
}
/* Replaces a broadcast or transposed array by the array itself. The lists name its axes; -1: none. */
static bool strip(Dotter *d, uint32_t side) {
    const Info *info = plan_info(d->p, d->v[side]);
    int64_t from[MAX_RANK]; /* the axis of v that is axis a of its operand */
    if (val_info(d->p->cx, d->v[side])->lit || info->class != VAL_VIRTUAL || info->buf) return false;
    const Eqn *e = info->e;
    if (e->prim != P_broadcast_in_dim && e->prim != P_transpose) return false;
    const ArrayType *x = val_array(d->p->cx, e->in.at[0]), *y = type_of_side(d, side);
    Ints list = param_ints(e, e->prim == P_transpose ? K_permutation : K_broadcast_dimensions);
    Ix index[MAX_RANK];
    for (uint32_t a = 0; a < x->rank; a++) {
        from[a] = e->prim == P_transpose ? ints_find(list, a) : list.at[a];
        assert(from[a] >= 0);
        bool stretched = x->dims[a] == 1 && y->dims[from[a]] != 1;
        index[a] = stretched ? 0 : d->index[side][from[a]];
    }
    memcpy(d->index[side], index, x->rank * sizeof *index);
    for (uint32_t l = 0; l < 2; l++) {
        Ints *s = l ? &d->batch[side] : &d->contracted[side], was = *s;
        s->at = arena_new(d->p->arena, int64_t, was.n + 1);
        for (uint32_t i = 0; i < was.n; i++) s->at[i] = ints_find((Ints){from, x->rank}, was.at[i]);
    }
    d->v[side] = e->in.at[0];
    return true;
}
static bool moves(const Dotter *d, uint32_t side, Ix axis) {
    Atom loop = ix_loop(d->p->ix, axis);
    for (uint32_t a = 0; a < type_of_side(d, side)->rank; a++)
        if (ix_uses(d->p->ix, d->index[side][a], loop)) return true;
    return false;
}
static void find_sides(Dotter *d, const Eqn *e, const Ix *result, bool swap) {
    const Value *v = &param_find(e, K_dimension_numbers)->value;
    const ArrayType *t = val_array(d->p->cx, e->in.at[0]), *y = val_array(d->p->cx, e->out.at[0]);
    d->dot->swapped = swap;
    uint32_t nbatch = v->list.at[2].ints.n, left = t->rank - v->list.at[0].ints.n - nbatch;
    for (uint32_t s = 0; s < 2; s++) {
        uint32_t from = s ^ swap;
        d->v[s] = e->in.at[from];
        d->contracted[s] = v->list.at[from].ints;
        d->batch[s] = v->list.at[2 + from].ints;
        find_index(d, s, result, from ? nbatch + left : nbatch);
        while (strip(d, s));
    }
    uint32_t nrows = 0;
    d->free[0] = d->free[1] = 1, d->last_column = 0;
    for (uint32_t a = 0; a < y->rank; a++) {
        if (!result[a]) continue;
        bool row = moves(d, 0, result[a]), column = moves(d, 1, result[a]);
        nrows += !column;
        if (row == column) continue;
        d->free[column] = dim_mul(d->p->cx->types, d->free[column], y->dims[a]);
        if (column) d->last_column = ix_loop(d->p->ix, result[a]);
    }
    d->shared = nrows > 1;
}
/* Floats below f32 are summed as f32, integers in the result's type, modulo its range. */
Dtype dot_accumulator(Dtype a, Dtype b, Dtype y) {
    bool any = dtype_info[a].kind == DK_FLOAT || dtype_info[b].kind == DK_FLOAT || dtype_info[y].kind == DK_FLOAT;
    if (!any) return y;
    return a == DT_f64 || b == DT_f64 || y == DT_f64 ? DT_f64 : DT_f32;
}

/* ---- reading in place */

/* The operand of a virtual value that is an index operation or, if `converted`, an exact conversion; 0: it is something
   else. */
static Val viewed(Plan *p, Val v, bool converted) {
    const Eqn *e = plan_info(p, v)->e;
    bool exact = converted && e->prim == P_convert_element_type &&
                 dtype_is_exact(val_array(p->cx, e->in.at[0])->dtype, val_array(p->cx, v)->dtype);
    return exact || prim_is(e->prim, VIEW) ? e->in.at[0] : 0;
}
static bool is_virtual(Plan *p, Val v) {
    return v && !val_info(p->cx, v)->lit && plan_info(p, v)->class == VAL_VIRTUAL;
}
/* The non-virtual value under them; 0: something is computed. */
static Val under(Plan *p, Val v, bool converted) {
    for (uint32_t depth = 0; depth < 100 && is_virtual(p, v); depth++) v = viewed(p, v, converted);
    return v && !val_info(p->cx, v)->lit && !is_virtual(p, v) && plan_info(p, v)->class != VAL_SCALAR ? v : 0;
}
bool dot_reads_in_place(Plan *p, Val v) { return under(p, v, false) != 0; }
Val dot_computed(Plan *p, Val v, bool *windows) {
    for (Val x = v; is_virtual(p, v) && x; v = x ? x : v) {
        *windows |= plan_info(p, v)->e->prim == P_windows;
        x = viewed(p, v, true);
    }
    return is_virtual(p, v) ? v : 0;
}
/* The same if it is in memory. */
static Val leaf(Plan *p, Val v) {
    Val x = under(p, v, true);
    return x && plan_info(p, x)->buf ? x : 0;
}
static Dim coefficient(const Plan *p, Ix address, Atom loop) {
    bool other;
    return ix_coef(p->ix, address, loop, &other);
}
typedef struct {
    Plan *p;
    Val array;
    Ix address;
    uint32_t n;
} Reads;
/* The start of a slice: a scalar's value, on a device that of an array without axes. */
static bool is_start(const Reads *s, Val v) {
    return s->p->target->device && v && v != s->array && val_array(s->p->cx, v)->rank == 0;
}
static void saw(void *user, Val v, const Ix *index, Ix address) {
    Reads *s = user;
    if (!index || is_start(s, v)) return;
    s->address = address;
    s->n++;
}
static bool affine(const Indices *x, Ix i) {
    const IxExpr *p = ix_at(x, i);
    for (uint32_t t = 0; t < p->n; t++) {
        AtomKind kind = atom_at(x, p->at[t].atom)->kind;
        if (kind == ATOM_DIV || kind == ATOM_MOD) return false;
    }
    return true;
}
Val dot_operand(Plan *p, Val v, const Ix *index, DotOperand *o) {
    Val x = leaf(p, v);
    Reads s = {.p = p, .array = x};
    if (!x) return 0;
    plan_reads(p, v, index, saw, &s);
    if (s.n != 1 || !affine(p->ix, s.address)) return 0;
    *o = (DotOperand){plan_info(p, x)->buf, val_array(p->cx, x)->dtype, s.address};
    return x;
}
static bool read_in_place(const Dotter *d, uint32_t side, DotOperand *o) {
    return dot_operand(d->p, d->v[side], d->index[side], o) != 0;
}

/* Are the columns contiguous, in a copy of what is computed, too, but so few that vectors along them have idle
   lanes? */
static bool columns_are_few(const Dotter *d) {
    DotOperand o;
    bool copied = !read_in_place(d, 1, &o);
    bool lie = d->last_column && (copied || coefficient(d->p, o.address, d->last_column) == 1);
    return lie && dot_at_most(atom_at(d->p->ix, d->last_column)->extent, DOT_SHORT);
}
static int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }
/* Has the last vector of each row of windows so many idle lanes that it is worth it to copy A by columns, and to store
   elements apart? Rows of 28 have 4 of 32: a convolution with 128 features takes 2.9 ms with these as columns, not 3.3. */
static bool lanes_are_idle(const Dotter *d, Dim w) {
    if (!d->last_column || dot_at_most(d->free[1], DOT_MANY)) return false;
    Dim n = atom_at(d->p->ix, d->last_column)->extent;
    return dim_is_const(n) && n >= w && round_up(n, w) - n >= n / DOT_IDLE;
}
static void find_axes(Dotter *d, const Eqn *e) {
    Ints summed = param_find(e, K_dimension_numbers)->value.list.at[0].ints;
    const ArrayType *t = val_array(d->p->cx, e->in.at[0]);
    Ix result[MAX_RANK];
    step_at(d->p, d->step, e->out.at[0], result);
    Dtype acc =
        dot_accumulator(t->dtype, val_array(d->p->cx, e->in.at[1])->dtype, val_array(d->p->cx, e->out.at[0])->dtype);
    Dim terms = 1, w = d->p->target->vector_bytes / dtype_bytes(acc);
    for (uint32_t i = 0; i < summed.n; i++) {
        d->summed[i] = atom_loop(d->p->ix, t->dims[summed.at[i]]);
        terms = dim_mul(d->p->cx->types, terms, t->dims[summed.at[i]]);
    }
    find_sides(d, e, result, false);
    bool narrow = dot_at_most(d->free[1], DOT_NARROW - 1) && !dot_at_most(d->free[0], d->free[1]);
    bool few = columns_are_few(d), windows = false;
    dot_computed(d->p, d->v[1], &windows);
    bool idle = windows && !d->p->target->device && !dot_at_most(terms, DOT_LASTING) && lanes_are_idle(d, w);
    find_sides(d, e, result, true);
    /* otherwise roles are not swapped, even if B is packed again and again: lanes would lie apart in the result and in
       what is computed with it. An encoder's gradient takes 494 us, not 667 */
    bool better = few && !dot_at_most(d->free[1], DOT_NARROW - 1) && !columns_are_few(d);
    bool fuller = idle && !dot_at_most(d->free[1], DOT_WIDE - 1) && !lanes_are_idle(d, w);
    if (!narrow && !better && !fuller) find_sides(d, e, result, false);
}

/* ---- copies */

/* The panels of B: a tile of columns with all terms lies in one piece, as it is read. `apart` is set when they are
   copied. Width 0: a copy in the order of the axes, or B itself, will do. A larger B that is copied `once` is packed by
   units anyway (find_blocks); else the gradient of a convolution's input takes 3.1 ms, not 3.5. */
static Panels panels(const Dotter *d, bool once) {
    const ArrayType *t = type_of_side(d, 1);
    Panels none = {0}, l = {.width = 2 * d->p->target->vector_bytes / dtype_bytes(d->dot->acc)};
    if (!d->last_column || dot_at_most(d->free[0], FEW_TILES) || !l.width) return none;
    Dim elements = 1, extent = atom_at(d->p->ix, d->last_column)->extent;
    bool found = false;
    for (uint32_t a = 0; a < t->rank; a++) {
        elements = dim_mul(d->p->cx->types, elements, t->dims[a]);
        if (d->index[1][a] == ix_atom(d->p->ix, d->last_column)) l.axis = a, found = true;
    }
    uint32_t bytes = dtype_bytes(d->dot->acc);
    bool whole = dim_is_const(extent) && extent % l.width == 0 && extent > l.width;
    bool suits = !dot_at_most(elements, PANEL_BYTES / bytes) && (!once || dot_at_most(elements, PACK_BYTES / bytes));
    return found && whole && suits ? l : none;
}
/* A dense copy in the accumulator's type, with the contracted axes innermost, or the free ones; or in panels. */
static void copy(const Dotter *d, uint32_t side, bool contracted_innermost, Panels *l, DotOperand *o) {
    Plan *p = d->p;
    Types *ts = p->cx->types;
    const ArrayType *t = type_of_side(d, side);
    Dim *strides = arena_new(p->arena, Dim, t->rank + 1), stride = l ? l->width : 1;
    uint32_t order[MAX_RANK], n = 0; /* innermost first */
    for (uint32_t part = 0; part < 2; part++) {
        if (contracted_innermost == (part == 0))
            for (uint32_t c = d->contracted[side].n; c-- > 0;) {
                if (d->contracted[side].at[c] >= 0) order[n++] = (uint32_t)d->contracted[side].at[c];
            }
        else
            for (uint32_t a = t->rank; a-- > 0;)
                if (ints_find(d->contracted[side], a) < 0 && ints_find(d->batch[side], a) < 0) order[n++] = a;
    }
    for (uint32_t b = d->batch[side].n; b-- > 0;)
        if (d->batch[side].at[b] >= 0) order[n++] = (uint32_t)d->batch[side].at[b];
    Ix address = 0;
    for (uint32_t i = 0; i < n; i++) {
        Ix index = d->index[side][order[i]];
        bool cut = l && l->axis == order[i];
        strides[order[i]] = stride;
        if (cut) l->apart = stride;
        address = ix_add(p->ix, address, cut ? panels_at(p, l, index) : ix_scale(p->ix, index, stride));
        stride = dim_mul(ts, stride, cut ? dim_floordiv(ts, t->dims[order[i]], l->width) : t->dims[order[i]]);
    }
    Buf *b = plan_materialise(p, d->body, d->v[side], strides, l, stride, d->dot->acc);
    *o = (DotOperand){b, d->dot->acc, address};
}

/* ---- the contraction */
/* Merges two loops that can be one in both operands; false if there are none. */
static bool merge_sums(Plan *p, Dot *dot) {
    Types *ts = p->cx->types;
    DotSum *s = dot->sums.at;
    for (uint32_t i = 0; i < dot->sums.n; i++)
        for (uint32_t j = 0; j < dot->sums.n; j++)
            if (i != j && s[i].a == dim_mul(ts, s[j].a, s[j].extent) && s[i].b == dim_mul(ts, s[j].b, s[j].extent)) {
                s[j].extent = dim_mul(ts, s[i].extent, s[j].extent);
                s[i] = s[--dot->sums.n];
                return true;
            }
    return false;
}
/* The better innermost loop: contiguous in both operands; else the longer one. */
static bool better_innermost(const Dot *dot, const DotSum *x, const DotSum *than) {
    bool x1 = x->b == 1 && (x->a == 1 || dot->transposed || (x->a == -1 && !dot->inner));
    bool y1 = than->b == 1 && (than->a == 1 || dot->transposed || (than->a == -1 && !dot->inner));
    if (x1 != y1) return x1;
    return !dim_is_const(x->extent) || (dim_is_const(than->extent) && x->extent > than->extent);
}
static void find_sums(const Dotter *d) {
    Plan *p = d->p;
    Dot *dot = d->dot;
    uint32_t n = d->contracted[0].n;
    dot->sums.at = arena_new(p->arena, DotSum, n + 1);
    dot->k = 1;
    for (uint32_t i = 0; i < n; i++) {
        Atom k = d->summed[i];
        Dim extent = atom_at(p->ix, k)->extent;
        dot->k = dim_mul(p->cx->types, dot->k, extent);
        if (extent == 1) continue;
        dot->sums.at[dot->sums.n++] =
            (DotSum){extent, coefficient(p, dot->a.address, k), coefficient(p, dot->b.address, k)};
        dot->a.address = ix_substitute(p->ix, dot->a.address, k, 0);
        dot->b.address = ix_substitute(p->ix, dot->b.address, k, 0);
    }
    while (merge_sums(p, dot));
    if (!dot->sums.n) dot->sums.at[dot->sums.n++] = (DotSum){1, 1, 1};
    for (uint32_t i = 0; i + 1 < dot->sums.n; i++) {
        DotSum *last = &dot->sums.at[dot->sums.n - 1], was = *last;
        if (!better_innermost(dot, &dot->sums.at[i], last)) continue;
        *last = dot->sums.at[i];
        dot->sums.at[i] = was;
    }
}
/* The position in the list of a contracted axis of at least `least` elements along which an operand is contiguous; -1:
   none. */
static int64_t contiguous_sum(const Dotter *d, const DotOperand *o, int64_t least) {
    for (uint32_t i = 0; i < d->contracted[0].n; i++)
        if (coefficient(d->p, o->address, d->summed[i]) == 1 &&
            !dot_at_most(atom_at(d->p->ix, d->summed[i])->extent, least - 1))
            return i;
    return -1;
}

/* ---- the decision */

/* Lanes along the contraction: both operands are contiguous there, if necessary after a copy of the few rows. */
static bool plan_inner(const Dotter *d, bool in_place[2]) {
    Dot *dot = d->dot;
    if (!in_place[1] || !dot_at_most(d->free[0], DOT_FEW)) return false;
    int64_t k = contiguous_sum(d, &dot->b, DOT_LONG);
    if (k < 0) return false;
    if (!in_place[0] || contiguous_sum(d, &dot->a, DOT_LONG) != k) {
        if (k + 1 != d->contracted[0].n || d->contracted[0].at[k] < 0) return false;
        copy(d, 0, true, NULL, &dot->a);
    }
    return dot->inner = true;
}
static bool neighbours(const Dotter *d) {
    return d->last_column && coefficient(d->p, d->dot->b.address, d->last_column) == 1;
}
static void plan_outer(const Dotter *d, bool in_place[2]) {
    Dot *dot = d->dot;
    bool a_often = dot->a.dtype != dot->acc && !dot_at_most(d->free[1], DOT_WIDE);
    if (!in_place[0] || a_often) copy(d, 0, true, NULL, &dot->a);
    bool b_often = in_place[1] && dot->b.dtype != dot->acc && !dot_at_most(d->free[0], DOT_OFTEN);
    bool lies = in_place[1] && (!d->last_column || neighbours(d));
    bool invariant = plan_home(d->p, d->body, d->v[1]) != d->body, again = d->shared || (in_place[1] && invariant);
    bool copied = again && (b_often || !lies);
    Panels cut = invariant ? panels(d, false) : (Panels){0};
    if (cut.width)
        copy(d, 1, true, &cut, &dot->b);
    else if (!copied && !lies && in_place[1] && contiguous_sum(d, &dot->b, DOT_SQUARE) >= 0)
        dot->packed = dot->transposed = true;
    else if (lies && !copied)
        dot->packed = b_often;
    else {
        if (!d->p->target->device) cut = panels(d, true);
        copy(d, 1, cut.width, cut.width ? &cut : NULL, &dot->b);
    }
}
void dot_plan(Plan *p, Body *b, Step *s) {
    const Eqn *e = s->e;
    Dot *dot = s->dot = arena_new(p->arena, Dot, 1);
    Dotter *d = arena_new(p->arena, Dotter, 1);
    *d = (Dotter){.p = p, .body = b, .step = s, .dot = dot};
    find_axes(d, e);
    dot->words = e->prim == P_dot_words, dot->halves = e->prim == P_dot_halves;
    dot->acc =
        dot_accumulator(type_of_side(d, 0)->dtype, type_of_side(d, 1)->dtype, val_array(p->cx, e->out.at[0])->dtype);
    bool in_place[2] = {read_in_place(d, 0, &dot->a), read_in_place(d, 1, &dot->b)};
    if ((in_place[1] && neighbours(d)) || !plan_inner(d, in_place)) plan_outer(d, in_place);
    find_sums(d);
    dot->axes = arena_new(p->arena, Ix, s->domain.n + 1);
    memcpy(dot->axes, s->axes, s->domain.n * sizeof *s->axes);
}

/* ---- the loops: after others may have split the result's axes */
void dot_addresses(Plan *p, const Step *s, Ix address[2]) {
    address[0] = s->dot->a.address, address[1] = s->dot->b.address;
    for (uint32_t i = 0; i < s->domain.n; i++) {
        if (s->axes[i] == s->dot->axes[i]) continue;
        Atom was = ix_loop(p->ix, s->dot->axes[i]);
        for (uint32_t x = 0; x < 2; x++) address[x] = ix_substitute(p->ix, address[x], was, s->axes[i]);
    }
}
static bool longer(const Plan *p, Atom x, Atom than) {
    if (!than) return true;
    Dim a = loop_extent(p->ix, x), b = loop_extent(p->ix, than);
    return !dim_is_const(a) || (dim_is_const(b) && a >= b);
}
/* Are these rows beside each other, and so many that a tile of them reads few cache lines for each term? */
static bool rows_beside(const Plan *p, const Dot *dot, Atom row) {
    bool apart = !dot_at_most(dot->sums.at[dot->sums.n - 1].a, DOT_BESIDE);
    return row && apart && !dot_at_most(loop_extent(p->ix, row), DOT_FULL - 1) &&
           coefficient(p, dot->a.address, row) == 1;
}
/* Those beside each other (60 products of 128 × 600 by 600 × 16 in 2.1 ms, not 6.0); the longer one; one known to fill
   a tile is better than an unknown one. */
static bool better_row(const Plan *p, const Dot *dot, Atom x, Atom than) {
    Dim a = loop_extent(p->ix, x), b = than ? loop_extent(p->ix, than) : 1;
    bool beside = rows_beside(p, dot, x);
    if (beside != rows_beside(p, dot, than)) return beside;
    if (dim_is_const(a) != dim_is_const(b)) return dim_is_const(a) ? a >= DOT_FULL : !(b >= DOT_FULL);
    return longer(p, x, than);
}
static void find_roles(Plan *p, Step *s) {
    Dot *dot = s->dot;
    Ix at[2];
    dot_addresses(p, s, at);
    dot->a.address = at[0], dot->b.address = at[1];
    for (uint32_t i = 0; i < s->nkept; i++) {
        bool other;
        Dim a = coefficient(p, at[0], s->kept[i]), b = ix_coef(p->ix, at[1], s->kept[i], &other);
        assert(!other); /* panels have loops of their own */
        bool columns = a == 0 && (dot->inner || dot->transposed ? b != 0 : b == 1);
        /* the last one that is long enough: the result is contiguous there */
        bool enough = !dot_at_most(loop_extent(p->ix, s->kept[i]), DOT_LONG - 1);
        if (columns && (enough || longer(p, s->kept[i], dot->column))) dot->column = s->kept[i];
    }
    for (uint32_t i = 0; i < s->nkept; i++)
        if (s->kept[i] != dot->column && coefficient(p, at[1], s->kept[i]) == 0 &&
            better_row(p, dot, s->kept[i], dot->row))
            dot->row = s->kept[i];
    dot->outer = arena_new(p->arena, Atom, s->nkept + 1);
    dot->again = arena_new(p->arena, Atom, s->nkept + 1);
    dot->points = 1;
    for (uint32_t i = 0; i < s->nkept; i++) {
        Atom loop = s->kept[i];
        if (loop == dot->column || loop == dot->row) continue;
        if (dot->inner || coefficient(p, at[1], loop) != 0) {
            dot->outer[dot->nouter++] = loop;
            continue;
        }
        dot->again[dot->nagain++] = loop;
        dot->points = dim_mul(p->cx->types, dot->points, loop_extent(p->ix, loop));
    }
    dot->rows = dot->row ? loop_extent(p->ix, dot->row) : 1;
    dot->columns = dot->column ? loop_extent(p->ix, dot->column) : 1;
    s->lane = dot->column;
}

/* ---- tiles */
static uint32_t power_above(int64_t n) {
    uint32_t p = 1;
    while (p < n) p *= 2;
    return p;
}
static Dim bytes_of_b(Plan *p, const Dot *dot) {
    return dim_mul(p->cx->types, dim_mul(p->cx->types, dot->k, dot->columns), dtype_bytes(dot->acc));
}
/* One row, and a B that the caches do not hold. */
static bool is_streamed_row(Plan *p, const Dot *dot) {
    return dot_at_most(dot->rows, 1) && dot_at_most(dot->points, 1) && !dot_at_most(bytes_of_b(p, dot), LINE_ROW);
}
bool product_is_small(const Plan *p, const Step *s) {
    Dim n = s->dot->k;
    for (uint32_t d = 0; d < s->domain.n; d++) n = dim_mul(p->cx->types, n, s->domain.at[d]);
    return dot_at_most(n, PRODUCT_SMALL);
}
/* The rows of tiles that are all whole, at most `most` and more than half of it; 0: there are none. So a small product
   has the code of its tiles once, not twice, and is no slower: the module of unrolled_10k is 15 % shorter. */
static int64_t even_rows(const Dot *dot, int64_t most) {
    int64_t mr = most;
    while (mr > 0 && dot->rows % mr) mr--;
    return 2 * mr > most ? mr : 0;
}
/* A tile fills the registers with mr·w/lanes accumulators, a row of B and an element of A. */
static void outer_tile(Plan *p, const Step *s) {
    Dot *dot = s->dot;
    uint32_t lanes = dot->lanes, registers = p->target->registers;
    int64_t most = registers == 32 ? 8 : 6, room = registers == 32 ? 16 : 12;
    if (dot_at_most(dot->rows, 1)) room = is_streamed_row(p, dot) ? 8 : 16;
    int64_t mr = most;
    if (dot_at_most(dot->rows, most))
        mr = dot->rows > 1 ? dot->rows : 1;
    else if (dot_at_most(dot->rows, 3 * most)) { /* tiles of nearly the same height */
        int64_t tiles = (dot->rows + most - 1) / most;
        mr = (dot->rows + tiles - 1) / tiles;
    }
    int64_t even = !dot_at_most(dot->rows, most) && product_is_small(p, s) ? even_rows(dot, most) : 0;
    if (even) mr = even;
    uint32_t vectors = 1;
    while (vectors * 2 * mr <= room && vectors * 2 * lanes <= MOST_DOT_LANES) vectors *= 2;
    dot->mr = (uint32_t)mr;
    dot->w = vectors * lanes;
    if (dot_at_most(dot->columns, dot->w)) {
        dot->w = power_above(dot->columns);
        vectors = dot->w > lanes ? dot->w / lanes : 1;
    }
    dot->sets = 1;
    while (dot->sets * vectors * mr < DOT_SUMS && !dot_at_most(dot->k, dot->sets * DOT_SUMS)) dot->sets *= 2;
}
/* mr × w sums, each a vector along the contraction. */
static void inner_tile(Plan *p, Dot *dot) {
    uint32_t room = p->target->registers / 2;
    dot->mr = !dot_at_most(dot->rows, DOT_FEW) ? DOT_FEW : dot->rows > 1 ? (uint32_t)dot->rows : 1;
    dot->w = dot->mr == 1 ? 8 : room / 4 * (dot->mr == 2 ? 2 : 1);
    if (dot->w > dot->lanes) dot->w = dot->lanes;
    if (dot_at_most(dot->columns, dot->w)) dot->w = power_above(dot->columns);
    dot->sets = 1;
    while (dot->sets * dot->w * dot->mr < DOT_SUMS) dot->sets *= 2;
}

/* ---- units */
static Dim ceil_div(Plan *p, Dim n, int64_t by) {
    return dim_floordiv(p->cx->types, dim_add(p->cx->types, n, by - 1), by);
}

Dim dot_units(Plan *p, const Dot *dot) {
    Types *ts = p->cx->types;
    Dim n = dim_mul(ts, dot_blocks(p, dot->rows, dot->row_block), dot_blocks(p, dot->columns, dot->column_block));
    n = dim_mul(ts, n, dot_blocks(p, dot->points, dot->point_block));
    for (uint32_t i = 0; i < dot->nouter; i++) n = dim_mul(ts, n, loop_extent(p->ix, dot->outer[i]));
    return n;
}
Dim dot_blocks(Plan *p, Dim n, Dim block) { return block == n ? 1 : ceil_div(p, n, block); }
/* Workspace for every unit. */
static Buf *unit_buffer(Plan *p, const Dot *dot, Dim elements, uint32_t bytes) {
    Types *ts = p->cx->types;
    return buf_new(p, BUF_WORK, dim_mul(ts, dim_mul(ts, dot_units(p, dot), elements), bytes));
}
/* Columns of a unit: at most `most`, a quarter of them if there are that many, in whole tiles. */
static int64_t column_block(const Dot *dot, int64_t most) {
    if (dim_is_const(dot->columns) && most > dot->columns / UNIT_SHARE) most = dot->columns / UNIT_SHARE;
    return most < dot->w ? dot->w : most / dot->w * dot->w;
}
/* Columns of a unit whose rows of B are read one after another: long runs of memory, but work for several threads. */
static int64_t streamed_columns(const Dot *dot) {
    bool known = dim_is_const(dot->columns);
    int64_t n = known ? dot->columns / LINE_SHARE : LINE_COLUMNS;
    if (n < LINE_COLUMNS) n = LINE_COLUMNS;
    if (known && n > dot->columns / 2) n = dot->columns / 2;
    return n < dot->w ? dot->w : round_up(n, dot->w);
}
/* Rows of a unit: at most `most` tiles, a quarter of them if there are that many. */
static int64_t row_block(const Dot *dot, int64_t most) {
    int64_t tiles = dim_is_const(dot->rows) ? (dot->rows + dot->mr - 1) / dot->mr : 4 * most;
    if (most > tiles / UNIT_SHARE) most = tiles / UNIT_SHARE;
    return (most < 1 ? 1 : most) * dot->mr;
}
/* Points of `again` that amount to about `rows` rows. */
static Dim point_block(const Dot *dot, int64_t rows) {
    if (!dim_is_const(dot->rows)) return 1;
    int64_t n = dot->rows ? (rows + dot->rows - 1) / dot->rows : 1;
    return dot_at_most(dot->points, n) ? dot->points : n;
}
/* Blocks of about `terms` terms. */
static void term_blocks(Plan *p, Dot *dot, int64_t terms) {
    uint32_t level = dot->sums.n - 1;
    while (level > 0 && dot_at_most(dot->sums.at[level].extent, terms)) terms /= dot->sums.at[level--].extent;
    Dim extent = dot->sums.at[level].extent;
    dot->k_level = level, dot->k_block = terms;
    for (int64_t b = 2 * terms; b > terms / 2 && dim_is_const(extent); b--) /* equal blocks */
        if (extent % b == 0 && extent % dot->k_block) dot->k_block = b;
    dot->packed_terms = dot->k_block;
    for (uint32_t i = level + 1; i < dot->sums.n; i++)
        dot->packed_terms = dim_mul(p->cx->types, dot->packed_terms, dot->sums.at[i].extent);
}
static Dim partial_sums(Plan *p, const Dot *dot) {
    Dim n = dot_blocks(p, dot->sums.at[dot->k_level].extent, dot->k_block);
    for (uint32_t i = 0; i < dot->k_level; i++) n = dim_mul(p->cx->types, n, dot->sums.at[i].extent);
    return n;
}
/* Cuts sums that are kept in registers into blocks. */
static void cut_sums(Plan *p, Dot *dot) {
    Types *ts = p->cx->types;
    uint32_t lanes = dot->lanes, n = dot->sums.n;
    assert(lanes);
    uint32_t registers = dot->mr * (dot->w > lanes ? dot->w / lanes : 1);
    bool full = !dot->inner && registers >= DOT_SUMS;
    int64_t most = dot->inner ? SHARED_TERMS : full ? FULL_TERMS : OWN_TERMS;
    if (full && !dim_is_const(dot->k)) most *= 2;
    uint32_t stride = dot->inner ? lanes : 1;
    Dim *turns = arena_new(p->arena, Dim, n), all = 1;
    if (!wide_bytes(dot->acc, 1) || (full && dot_at_most(dot->k, LONG_SUM))) return;
    most *= dot->sets;
    dot->block = arena_new(p->arena, Dim, n);
    for (uint32_t i = 0; i < n; i++) {
        turns[i] = i + 1 < n ? dot->sums.at[i].extent : ceil_div(p, dot->sums.at[i].extent, stride);
        all = dim_mul(ts, all, turns[i]);
    }
    sum_blocks(ts, turns, n, most, dot->block);
    while (dot->cut < n && dot->block[dot->cut]) dot->cut++;
    dot->several = dim_is_const(all) && all > most;
    if (dot->cut == n) dot->block[n - 1] = round_up(dot->block[n - 1], BLOCK_STEPS) * stride;
    uint32_t width = dot->inner ? dot->w * lanes : dot->w;
    if (dot->cut) dot->wide = buf_new(p, BUF_ROW, wide_bytes(dot->acc, dot->mr * width));
}
/* The rows and columns of a unit, and how it reads B. A small B is read in place, and units are rows. For a large B
   units are columns, packed if there are many rows. If there are few rows or many terms, the sums run in blocks of the
   terms, which stay in the cache; with few rows, or if B's rows are near each other, even without packing them. A
   thread's units of columns are then one, so that whole rows of B are read and each block of A once: 48 × 100000 by
   100000 × 100 in 14.5 ms, not 29. */
static void find_blocks(Plan *p, Dot *dot) {
    Types *ts = p->cx->types;
    int64_t bytes = dtype_bytes(dot->acc);
    Dim rows = dim_mul(ts, dot->rows, dot->points);
    bool big = !dot_at_most(bytes_of_b(p, dot), PACK_BYTES);
    bool few = dot_at_most(rows, dot->nagain ? FEW_ROWS : 2 * dot->mr), some = dot_at_most(rows, FEW_ROWS);
    bool near = dot_at_most(rows, NEAR_ROWS) && dot_at_most(dot->sums.at[dot->sums.n - 1].b, NEAR_BYTES / bytes);
    int64_t at_once = few && !dot->packed ? 2 * TERM_BLOCK : some && dot->sums.n == 1 ? 2 * LONG_BLOCK : LONG_SUM;
    bool blocks = big && !dot->inner && dot_at_most(rows, MANY_ROWS) && !dot_at_most(dot->k, at_once);
    bool streamed = blocks && !dot->packed && (few || near);
    bool pack = !streamed && !dot->inner && (dot->packed || (big && !dot_at_most(rows, 2 * dot->mr)));
    dot->row_block = dot->rows, dot->column_block = dot->columns, dot->point_block = dot->points;
    dot->packed_terms = dot->k;
    bool lines = streamed && dot_at_most(rows, 2 * dot->mr) && (!dot_at_most(rows, 1) || is_streamed_row(p, dot));
    if (blocks) term_blocks(p, dot, lines ? LINE_TERMS : few && streamed ? TERM_BLOCK : LONG_BLOCK);
    if (dot->inner) {
        int64_t n = dim_is_const(dot->k) ? INNER_TERMS / (dot->k + 1) : UNKNOWN_COLUMNS;
        dot->column_block = round_up(n < 1 ? 1 : n > INNER_COLUMNS ? INNER_COLUMNS : n, dot->w);
    } else if (pack) {
        Dim terms = dot->packed_terms;
        int64_t most = (blocks ? TERMS_BYTES : BLOCK_BYTES) / bytes;
        dot->column_block = column_block(dot, dim_is_const(terms) ? most / (terms + 1) : 4 * dot->w);
    } else if (big) {
        dot->column_block = lines && dot_at_most(rows, dot->mr) ? streamed_columns(dot) : column_block(dot, WIDE_BLOCK);
    } else if (!dot_at_most(rows, dot->mr)) {
        dot->row_block = row_block(dot, UNIT_TILES);
        dot->point_block = point_block(dot, UNIT_TILES * dot->mr);
    } else {
        dot->column_block = dot->w;
    }
    if (dot_at_most(dot->rows, dot->row_block)) dot->row_block = dot->rows;
    if (dot_at_most(dot->columns, dot->column_block)) dot->column_block = dot->columns;
    if (dim_is_const(dot->column_block)) dot->stored_columns = round_up(dot->column_block, dot->w);
    Dim sums = dim_mul(ts, dot->stored_columns, dim_mul(ts, dot->rows, dot->point_block));
    if (blocks) {
        uint32_t wide = wide_bytes(dot->acc, 1);
        dot->partial = unit_buffer(p, dot, sums, (uint32_t)bytes);
        bool columns = !dot->nouter && dot->row_block == dot->rows && dot->point_block == dot->points;
        dot->together = columns && dot_at_most(dot->partial->bytes, TOGETHER_BYTES);
        if (wide && !dot_at_most(partial_sums(p, dot), SUMMED_BLOCKS)) dot->folded = unit_buffer(p, dot, sums, wide);
    } else {
        cut_sums(p, dot);
    }
    if (pack) dot->pack = unit_buffer(p, dot, dim_mul(ts, dot->stored_columns, dot->packed_terms), bytes);
}
/* Terms of A that lie apart are gathered once for all columns of a unit: cache lines that they share with other rows,
   and that lie at multiples of a power of two, would not stay in the cache. */
static void find_row_pack(Plan *p, Dot *dot) {
    const DotSum *last = &dot->sums.at[dot->sums.n - 1];
    bool apart = !dot_at_most(last->a, DOT_APART) && dot->row && dot->mr > 1;
    bool terms = dim_is_const(dot->packed_terms) && dot->packed_terms >= DOT_LONG && dot->packed_terms <= MOST_PACKED;
    Dim columns = dot->together ? dot->columns : dot->column_block;
    if (dot->inner || !apart || !terms || dot_at_most(columns, ROW_PANELS * (int64_t)dot->w - 1)) return;
    dot->row_neighbours = coefficient(p, dot->a.address, dot->row) == 1;
    dot->group_rows = ROW_TILES * dot->mr;
    dot->pack_rows = unit_buffer(p, dot, dot->group_rows * dot->packed_terms, dtype_bytes(dot->acc));
}
/* Is an element of one row that of another one so few terms later that one iteration of the innermost loop reads both?
   LLVM would keep it in a register until then, and sums on the stack. */
static bool rows_meet(Plan *p, const Dot *dot) {
    Dim row = dot->row && dot->mr > 1 ? coefficient(p, dot->a.address, dot->row) : 0;
    Dim term = dot->sums.at[dot->sums.n - 1].a;
    if (dot->inner || dot->pack_rows || !dim_is_const(row) || !dim_is_const(term) || !row || !term) return false;
    return row % term == 0 && row / term < TERMS_AT_ONCE && row / term > -TERMS_AT_ONCE;
}
void dot_schedule(Plan *p, Step *s) {
    Dot *dot = s->dot;
    find_roles(p, s);
    dot->lanes = p->target->vector_bytes / dtype_bytes(dot->acc);
    if (dot->inner)
        inner_tile(p, dot);
    else
        outer_tile(p, s);
    find_blocks(p, dot);
    find_row_pack(p, dot);
    dot->rows_meet = rows_meet(p, dot);
    dot->tile = buf_new(p, BUF_ROW, (Dim)dot->mr * dot->w * dtype_bytes(dot->acc));
    dot->in_loop = s->cost > DOT_SPILL_COST && dot->mr > 1;
}
