/* Gather and scatter: the correspondence of axes of the operand, the indices and the windows. The last axis of the
   indices holds a position. */
#include "index.h"
#include "rule.h"
#include <stdlib.h>

const IndexFields gather_fields = {"offset_dims", "collapsed_slice_dims", "start_index_map", "operand_batching_dims",
                                   "start_indices_batching_dims"};
const IndexFields scatter_fields = {"update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims",
                                    "operand_batching_dims", "scatter_indices_batching_dims"};

typedef struct {
    const IndexFields *names;
    const ArrayType *x, *indices; /* operand 0 and 1 */
    IndexNumbers n;
    bool *gone;      /* axes of the operand that are not in windows: dropped or batch */
    bool *is_window; /* axes of the result of gather, of the updates of scatter */
    uint32_t rank;   /* of that */
} Numbers;

static bool bad_numbers(Ctx *cx, const Eqn *e, const char *field, const char *what) {
    return diag(cx->diags, param_at(e, K_dimension_numbers), "%s: dimension_numbers: %s %s", name_of(cx, e), field,
                what);
}

static bool want_sorted(Ctx *cx, const Eqn *e, const char *field, Ints axes) {
    for (uint32_t i = 1; i < axes.n; i++)
        if (axes.at[i] <= axes.at[i - 1]) return bad_numbers(cx, e, field, "must be in increasing order");
    return true;
}

static bool read_numbers(Ctx *cx, const Eqn *e, const IndexFields *f, IndexNumbers *n) {
    const ParamKey k = K_dimension_numbers;
    return want_field(cx, e, k, f->windows, &n->windows) && want_field(cx, e, k, f->dropped, &n->dropped) &&
           want_field(cx, e, k, f->map, &n->map) && want_field(cx, e, k, f->batch, &n->batch) &&
           want_field(cx, e, k, f->index_batch, &n->index_batch);
}
bool index_numbers(Ctx *cx, const Eqn *e, IndexNumbers *n) {
    return read_numbers(cx, e, e->prim == P_gather ? &gather_fields : &scatter_fields, n);
}

/* Axes of the operand: each is in a window, dropped, or batched; the map's are not batched. */
static bool want_operand_axes(Ctx *cx, const Eqn *e, Numbers *d) {
    const ParamKey k = K_dimension_numbers;
    const IndexFields *f = d->names;
    uint32_t rank = d->x->rank;
    bool *mapped = arena_new(cx->arena, bool, rank);
    d->gone = arena_new(cx->arena, bool, rank);
    if (!want_field_axes(cx, e, k, f->dropped, d->n.dropped, rank, d->gone) ||
        !want_field_axes(cx, e, k, f->batch, d->n.batch, rank, d->gone) ||
        !want_field_axes(cx, e, k, f->map, d->n.map, rank, mapped) ||
        !want_field_axes(cx, e, k, f->batch, d->n.batch, rank, mapped) ||
        !want_sorted(cx, e, f->dropped, d->n.dropped) || !want_sorted(cx, e, f->batch, d->n.batch))
        return false;
    return d->n.windows.n + d->n.dropped.n + d->n.batch.n == rank ||
           diag(cx->diags, param_at(e, k), "%s: dimension_numbers: %s, %s and %s have %u %s, but operand 0 has %u",
                name_of(cx, e), f->windows, f->dropped, f->batch, d->n.windows.n + d->n.dropped.n + d->n.batch.n,
                axes_word(d->n.windows.n + d->n.dropped.n + d->n.batch.n), rank);
}

/* Axes of the indices: batched ones have the operand's extent; the last one has an entry for each
   axis that the map names. */
static bool want_index_axes(Ctx *cx, const Eqn *e, const Type *in, Numbers *d) {
    const IndexFields *f = d->names;
    uint32_t last = d->indices->rank - 1;
    bool *marked = arena_new(cx->arena, bool, d->indices->rank);
    if (d->n.index_batch.n != d->n.batch.n)
        return bad_numbers(cx, e, f->index_batch, "must be as many as operand_batching_dims");
    if (!want_field_axes(cx, e, K_dimension_numbers, f->index_batch, d->n.index_batch, last, marked)) return false;
    for (uint32_t i = 0; i < d->n.batch.n; i++) {
        Dim a = d->x->dims[d->n.batch.at[i]], b = d->indices->dims[d->n.index_batch.at[i]];
        if (!dims_agree(cx, a, b, operand_at(cx, e, 1)))
            return diag(cx->diags, operand_at(cx, e, 1),
                        "%s: batch axis %lld of the indices, %s, has extent %s, but axis %lld of "
                        "operand 0, %s, has %s",
                        name_of(cx, e), (long long)d->n.index_batch.at[i], type_c(cx, in[1]), dim_c(cx, b),
                        (long long)d->n.batch.at[i], type_c(cx, in[0]), dim_c(cx, a));
    }
    return dims_agree(cx, d->indices->dims[last], d->n.map.n, operand_at(cx, e, 1)) ||
           diag(cx->diags, param_at(e, K_dimension_numbers),
                "%s: dimension_numbers: %s names %u %s, but the last axis of the indices, %s, has "
                "extent %s",
                name_of(cx, e), f->map, d->n.map.n, axes_word(d->n.map.n), type_c(cx, in[1]),
                dim_c(cx, d->indices->dims[last]));
}

static const char *const modes[] = {"CLIP", "FILL_OR_DROP", "PROMISE_IN_BOUNDS", "ONE_HOT", NULL};

/* The common demands of gather and scatter; `rank` is that of the array of windows. */
static bool want_numbers(Ctx *cx, const Eqn *e, const Type *in, Numbers *d) {
    if (!want_kind(cx, e, in, 1, OF_INT) || !read_numbers(cx, e, d->names, &d->n) || !want_word(cx, e, K_mode, modes))
        return false;
    d->x = type_at(cx->types, in[0]);
    d->indices = type_at(cx->types, in[1]);
    if (!d->indices->rank)
        return diag(cx->diags, operand_at(cx, e, 1),
                    "%s: the indices need an axis for the position, but operand 1 is %s", name_of(cx, e),
                    type_c(cx, in[1]));
    if (!want_operand_axes(cx, e, d) || !want_index_axes(cx, e, in, d)) return false;
    d->rank = d->indices->rank - 1 + d->n.windows.n;
    d->is_window = arena_new(cx->arena, bool, d->rank);
    return want_field_axes(cx, e, K_dimension_numbers, d->names->windows, d->n.windows, d->rank, d->is_window) &&
           want_sorted(cx, e, d->names->windows, d->n.windows);
}

/* Is there no position where an axis has this extent and it is 0? */
static bool none_if_empty(const Numbers *d, Dim extent) {
    bool none = false;
    for (uint32_t i = 0; i + 1 < d->indices->rank; i++) none = none || d->indices->dims[i] == extent;
    return none;
}
/* Extents of windows: at most the operand's, and 1 if the axis is dropped or batched. */
static bool want_slices(Ctx *cx, const Eqn *e, const Type *in, const Numbers *d, Dims sizes) {
    Span at = param_at(e, K_slice_sizes);
    if (!want_length(cx, e, K_slice_sizes, sizes.n, d->x->rank)) return false;
    bool some = true; /* positions: without one nothing is read */
    for (uint32_t i = 0; i + 1 < d->indices->rank; i++) some = some && d->indices->dims[i] != 0;
    for (uint32_t i = 0; i < sizes.n; i++) {
        Dim extent = d->x->dims[i];
        bool fits =
            !some || (sizes.at[i] == 1 && none_if_empty(d, extent)) || dims_at_most(cx, sizes.at[i], extent, at);
        if (!dims_at_most(cx, 0, sizes.at[i], at) || !fits)
            return diag(cx->diags, at,
                        "gather: slice_sizes[%u] is %s, but that axis of %s has "
                        "extent %s",
                        i, dim_c(cx, sizes.at[i]), type_c(cx, in[0]), dim_c(cx, extent));
        if (d->gone[i] && !dims_at_most(cx, sizes.at[i], 1, at))
            return diag(cx->diags, at,
                        "gather: slice_sizes[%u] is %s, but an axis that the result does not have "
                        "can have only 1",
                        i, dim_c(cx, sizes.at[i]));
    }
    each(int64_t, axis, d->n.dropped)
        if (!dims_agree(cx, sizes.at[*axis], 1, at))
            return diag(cx->diags, at, "gather: slice_sizes[%lld] is %s, but an axis that is dropped has 1",
                        (long long)*axis, dim_c(cx, sizes.at[*axis]));
    return true;
}

/* One part of "1.5", "-infj", "(1-2j)": digits and the letters of e, inf, nan and j. */
static bool read_part(const char **at, double part[2]) {
    char *end;
    double x = strtod(*at, &end);
    bool imaginary = *end == 'j';
    if (end == *at) return false;
    part[imaginary] = x;
    *at = end + imaginary;
    return true;
}
static bool read_number(Arena *arena, Str s, double part[2]) {
    bool inside = s.n > 2 && s.at[0] == '(' && s.at[s.n - 1] == ')';
    const char *at = str_c(arena, inside ? (Str){s.at + 1, s.n - 2} : s);
    if (at[strspn(at, "0123456789.+-efijan")] || !read_part(&at, part)) return false;
    if (!*at) return true;
    return at[-1] != 'j' && (*at == '+' || *at == '-') && read_part(&at, part) && !*at && at[-1] == 'j';
}
/* np.float32(nan) is the number inside. */
static bool number_of(Arena *arena, const Value *v, double part[2]) {
    if (v->kind == V_LIST) return v->s.n && v->list.n == 1 && number_of(arena, v->list.at, part);
    if (v->kind == V_INT || v->kind == V_BOOL) return part[0] = (double)v->i, true;
    if (v->kind == V_FLOAT) return part[0] = v->f, true;
    return (v->kind == V_WORD || v->kind == V_TEXT) && read_number(arena, v->s, part);
}
bool gather_fill(Ctx *cx, const Eqn *e, double part[2]) {
    const Param *p = param_find(e, K_fill_value);
    part[0] = part[1] = 0;
    return p && p->value.kind != V_NONE && number_of(cx->arena, &p->value, part);
}

IndexMode index_mode(const Eqn *e) {
    static const char *const names[] = {"", "CLIP", "FILL_OR_DROP", "PROMISE_IN_BOUNDS", "ONE_HOT"};
    Str s = param_word(e, K_mode);
    _Static_assert(sizeof names / sizeof *names == MODE_ONE_HOT + 1, "a name for each mode");
    for (uint32_t i = 1; i < sizeof names / sizeof *names; i++) {
        size_t n = strlen(names[i]);
        if (s.n >= n && !memcmp(s.at + s.n - n, names[i], n)) return (IndexMode)i;
        if (s.n == 1 && s.at[0] == (char)('0' + i)) return (IndexMode)i;
    }
    return MODE_NONE;
}
/* Does gather replace windows that are not inside? Without a mode or with a promise XLA moves them inside. */
bool gather_fills(const Eqn *e) {
    IndexMode m = index_mode(e);
    return m == MODE_FILL_OR_DROP || m == MODE_ONE_HOT;
}
/* JAX treats the positions of such a gather as 32-bit integers if every extent fits them (slicing.py, _gather_fill,
   0.10.2). */
bool index_wraps(const Eqn *e, const ArrayType *x) {
    if (e->prim != P_gather || !gather_fills(e)) return false;
    for (uint32_t d = 0; d < x->rank; d++)
        if (!dim_is_const(x->dims[d]) || x->dims[d] > INT32_MAX) return false;
    return true;
}
/* A number, as Python writes one, or None. */
static bool want_fill(Ctx *cx, const Eqn *e, Dtype d) {
    double part[2];
    const Param *p = param_find(e, K_fill_value);
    if (!p || p->value.kind == V_NONE) return true;
    if (!gather_fill(cx, e, part)) return param_wrong(cx, e, K_fill_value, "a number or None");
    return part[1] == 0 || dtype_info[d].kind == DK_COMPLEX ||
           diag(cx->diags, param_at(e, K_fill_value), "%s: fill_value is complex, but operand 0 is %s", name_of(cx, e),
                dtype_info[d].name);
}

/* The result has a window for each position: at offset_dims its axes, elsewhere the indices'. */
bool type_gather(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    Numbers d = {.names = &gather_fields};
    if (!want(cx, e, 2, 1) || !want_fill(cx, e, type_at(cx->types, in[0])->dtype)) return false;
    if (!want_numbers(cx, e, in, &d)) return false;
    if (!want_param(cx, e, K_slice_sizes)) return false;
    Dims sizes = param_dims(e, K_slice_sizes);
    if (!want_slices(cx, e, in, &d, sizes)) return false;
    Dim *dims = arena_new(cx->arena, Dim, d.rank);
    uint32_t axis = 0, index = 0;
    for (uint32_t i = 0; i < d.rank; i++) {
        while (d.is_window[i] && d.gone[axis]) axis++;
        dims[i] = d.is_window[i] ? sizes.at[axis++] : d.indices->dims[index++];
    }
    out[0] = type_of(cx->types, d.x->dtype, d.rank, dims);
    return true;
}

/* Updates have at update_window_dims at most the operand's extents, elsewhere the indices'. */
static bool want_updates(Ctx *cx, const Eqn *e, const Type *in, const Numbers *d) {
    const ArrayType *u = type_at(cx->types, in[2]);
    if (u->rank != d->rank)
        return diag(cx->diags, operand_at(cx, e, 2), "%s: the updates need rank %u, but operand 2 is %s",
                    name_of(cx, e), d->rank, type_c(cx, in[2]));
    uint32_t axis = 0, index = 0;
    for (uint32_t i = 0; i < d->rank; i++) {
        while (d->is_window[i] && d->gone[axis]) axis++;
        Dim need = d->is_window[i] ? d->x->dims[axis++] : d->indices->dims[index++];
        bool ok = d->is_window[i] ? dims_at_most(cx, u->dims[i], need, operand_at(cx, e, 2))
                                  : dims_agree(cx, u->dims[i], need, operand_at(cx, e, 2));
        if (ok) continue;
        diag(cx->diags, operand_at(cx, e, 2), "%s: axis %u of the updates, %s, has extent %s, but must have %s%s",
             name_of(cx, e), i, type_c(cx, in[2]), dim_c(cx, u->dims[i]), d->is_window[i] ? "at most " : "",
             dim_c(cx, need));
        note_operand(cx, e, d->is_window[i] ? 0 : 1, in[!d->is_window[i]]);
        return false;
    }
    return true;
}

bool type_scatter(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    Numbers d = {.names = &scatter_fields};
    if (!want(cx, e, 3, 1) || !want_dtype_of(cx, e, in, 2, 0)) return false;
    if (!want_numbers(cx, e, in, &d) || !want_updates(cx, e, in, &d)) return false;
    Jaxpr *j = param_jaxpr(e, K_update_jaxpr);
    Type scalar = type_of(cx->types, d.x->dtype, 0, NULL);
    if (j && !want_program(cx, e, K_update_jaxpr, j, (Type[]){scalar, scalar}, 2, 1)) return false;
    out[0] = type_plain(cx->types, in[0]);
    return true;
}

/* The updates are combined with the old elements. */
bool type_scatter_num(Ctx *cx, const Eqn *e, const Type *in, Type *out) {
    return want(cx, e, 3, 1) && want_kind(cx, e, in, 0, OF_NUM | OF_BOOL) && type_scatter(cx, e, in, out);
}
