/* Where arrays lie, before they are planned.

   A concatenation that is only padded or reversed becomes one of padded or reversed operands:

     y = concatenate(a, b)                 w = concatenate(full v, a, b, full v)      along the axis that is padded,
     w = pad(y, v)                becomes  w = concatenate(pad(a, v), pad(b, v))      along another;
     w = rev(y)                            w = concatenate(rev(b), rev(a))

   A large concatenation is written to memory, operand by operand: so each element is written once, to its place in w.
   What is computed from one is computed operand by operand, too: a stencil over rolls has a part inside and thin ones
   at its edges.

     y = concatenate(a[1:], a[:1])         w = concatenate(add(a[1:], x[:-1]), add(a[:1], x[-1:]))
     w = add(y, x)                becomes

   A reduction over a short innermost axis, of what is computed from smaller arrays that are broadcast, has it
   outermost:

     d = sub(x[:, None], y[None])          d = sub(xt[:, :, None], yt[:, None]), where xt and yt are x and y transposed
     r = reduce_sum(d * d, -1)    becomes  r = reduce_sum(d * d, 0)

   The lanes of vectors then run along the results, not along the terms of one of them. A transposed product of matrices
   is the product of the operands in the other order. */
#include "simplify.h"

/* ---- concatenations */

/* Elements from which on a concatenation is written operand by operand; the most operands that are rewritten. */
enum { LEAST_JOINED = 4096, MOST_JOINED = 16, MOST_OPERANDS = 8, MOST_CUT = 128 };
/* Operands along the innermost axis: of at least so many elements, or at most this part of all. */
enum { LEAST_LONG = 64, THIN_PART = 16 };

static bool is_large(Ctx *cx, Val v) {
    Dim n = type_size(cx->types, val_type(cx, v));
    return !dim_is_const(n) || n > LEAST_JOINED;
}
static Val reversed(Builder *b, const Eqn *e, const Eqn *join) {
    Ints axes = param_ints(e, K_dimensions);
    int64_t along = param_number(join, K_dimension);
    uint32_t n = join->in.n;
    bool turns = false;
    Val pieces[MOST_JOINED];
    each(const int64_t, a, axes) turns |= *a == along;
    for (uint32_t i = 0; i < n; i++) pieces[turns ? n - 1 - i : i] = b_rev(b, join->in.at[i], axes.n, axes.at);
    return b_concatenate(b, n, pieces, along);
}
/* `extent` elements of padding along the axis of the concatenation. */
static Val padding(Builder *b, const Eqn *e, int64_t along, Dim extent) {
    const ArrayType *t = val_array(b->cx, e->out.at[0]);
    Dim dims[MAX_RANK];
    assert(t->rank <= MAX_RANK);
    memcpy(dims, t->dims, t->rank * sizeof *dims);
    dims[along] = extent;
    return b_full(b, e->in.at[1], t->rank, dims);
}
static Val padded(Builder *b, const Eqn *e, const Eqn *join) {
    Dims config = param_dims(e, K_padding_config);
    int64_t along = param_number(join, K_dimension);
    Dim inside[3 * MAX_RANK], *axis = inside + 3 * along, low = config.at[3 * along], high = config.at[3 * along + 1];
    Val pieces[MOST_JOINED + 2];
    uint32_t n = 0;
    bool others = false;
    if (config.at[3 * along + 2] != 0 || !dim_is_const(low) || !dim_is_const(high) || low < 0 || high < 0) return 0;
    memcpy(inside, config.at, config.n * sizeof *inside);
    axis[0] = axis[1] = 0;
    for (uint32_t i = 0; i < config.n; i++) others |= inside[i] != 0;
    if (low) pieces[n++] = padding(b, e, along, low);
    each(const Val, v, join->in) pieces[n++] = others ? b_pad(b, *v, e->in.at[1], inside) : *v;
    if (high) pieces[n++] = padding(b, e, along, high);
    return b_concatenate(b, n, pieces, along);
}
/* The concatenation that v is, if it is large and nothing is computed again where its operands are used in its
   place. */
static const Eqn *join_of(const Defs *d, Val v) {
    const Eqn *join = def_by(d, v, P_concatenate);
    if (!join || join->in.n > MOST_JOINED || !is_large(d->cx, v)) return NULL;
    if (d->uses.at[v] == 1) return join;
    each(const Val, x, join->in) {
        const Eqn *e = def_of(d, *x);
        if (e && !prim_is(e->prim, VIEW)) return NULL;
    }
    return join;
}
static Val moved_join(const Defs *d, Builder *b, const Eqn *e) {
    const Eqn *join = join_of(d, e->in.at[0]);
    if (!join || d->uses.at[e->in.at[0]] != 1) return 0;
    return e->prim == P_rev ? reversed(b, e, join) : padded(b, e, join);
}
/* Is each operand long along the axis, or thin? Of what is neither, the vectors would be cut. */
static bool is_even(const Defs *d, const Eqn *join) {
    int64_t along = param_number(join, K_dimension);
    const ArrayType *y = val_array(d->cx, join->out.at[0]);
    if (along + 1 != y->rank) return true;
    each(const Val, v, join->in) {
        Dim n = val_array(d->cx, *v)->dims[along];
        bool thin = dim_is_const(n) && dim_is_const(y->dims[along]) && n * THIN_PART <= y->dims[along];
        if (!thin && dim_is_const(n) && n < LEAST_LONG) return false;
    }
    return true;
}
/* Elements [lo, hi) along an axis, of what is computed where it is used: of all that it is computed from. */
typedef struct {
    const Defs *d;
    Builder *b;
    int64_t axis;
    uint32_t visits;
} Cut;
static Val cut(Cut *c, Val v, Dim lo, Dim hi);
static Val cut_eqn(Cut *c, const Eqn *e, Dim lo, Dim hi) {
    Val in[MOST_OPERANDS];
    for (uint32_t i = 0; i < e->in.n; i++) in[i] = cut(c, e->in.at[i], lo, hi);
    return build(c->b, e->prim, e->in.n, in, e->params.n, e->params.at);
}
/* 0: the extents are not known. */
static Val cut_join(Cut *c, const Eqn *join, Dim lo, Dim hi) {
    int64_t along = param_number(join, K_dimension);
    Val pieces[MOST_JOINED];
    uint32_t n = 0;
    if (along == c->axis && (!dim_is_const(lo) || !dim_is_const(hi))) return 0;
    each(const Val, v, join->in) {
        Dim extent = val_array(c->d->cx, *v)->dims[along];
        if (along != c->axis) {
            pieces[n++] = cut(c, *v, lo, hi);
            continue;
        }
        if (!dim_is_const(extent)) return 0;
        if (lo < extent && hi > 0) pieces[n++] = cut(c, *v, lo < 0 ? 0 : lo, hi > extent ? extent : hi);
        lo -= extent, hi -= extent;
    }
    return n ? b_concatenate(c->b, n, pieces, along) : 0;
}
static Val cut(Cut *c, Val v, Dim lo, Dim hi) {
    const ArrayType *t = val_array(c->d->cx, v);
    const Eqn *e = def_of(c->d, v), *join = join_of(c->d, v);
    bool here = e && prim_elementwise(e->prim) && e->out.n == 1 && e->in.n <= MOST_OPERANDS && c->d->uses.at[v] == 1;
    if (!t->rank || t->dims[c->axis] == 1) return v;
    if (here && c->visits++ < MOST_CUT) return cut_eqn(c, e, lo, hi);
    Val joined = join && c->visits++ < MOST_CUT ? cut_join(c, join, lo, hi) : 0;
    return joined ? joined : b_slice_axis(c->b, v, c->axis, lo, hi);
}
static Val split(const Defs *d, Builder *b, const Eqn *e) {
    const Eqn *join = NULL;
    Val pieces[MOST_JOINED], in[MOST_OPERANDS];
    Dim lo = 0;
    if (e->in.n > MOST_OPERANDS || e->out.n != 1) return 0;
    for (uint32_t i = 0; i < e->in.n && !join; i++) join = join_of(d, e->in.at[i]);
    if (!join || !is_even(d, join)) return 0;
    int64_t along = param_number(join, K_dimension);
    if (val_array(d->cx, join->out.at[0])->dims[along] == 1) return 0; /* of one piece and empty ones */
    Cut c = {.d = d, .b = b, .axis = along};
    for (uint32_t k = 0; k < join->in.n; k++) {
        Dim extent = val_array(d->cx, join->in.at[k])->dims[along], hi = dim_add(b_types(b), lo, extent);
        for (uint32_t i = 0; i < e->in.n; i++)
            in[i] = e->in.at[i] == join->out.at[0] ? join->in.at[k] : cut(&c, e->in.at[i], lo, hi);
        pieces[k] = build(b, e->prim, e->in.n, in, e->params.n, e->params.at);
        lo = hi;
    }
    return b_concatenate(b, join->in.n, pieces, along);
}
/* A slice of a concatenation: of each operand that it has elements of. */
static Val sliced(const Defs *d, Builder *b, const Eqn *e) {
    const Eqn *join = join_of(d, e->in.at[0]);
    if (!join || param_ints(e, K_strides).n) return 0;
    Dims from = param_dims(e, K_start_indices), to = param_dims(e, K_limit_indices);
    int64_t along = param_number(join, K_dimension);
    Dim start[MAX_RANK], limit[MAX_RANK], at = 0;
    Val pieces[MOST_JOINED];
    uint32_t n = 0;
    memcpy(start, from.at, from.n * sizeof *start);
    memcpy(limit, to.at, to.n * sizeof *limit);
    each(const Val, v, join->in) {
        Dim extent = val_array(d->cx, *v)->dims[along];
        if (!dim_is_const(extent) || !dim_is_const(from.at[along]) || !dim_is_const(to.at[along])) return 0;
        Dim lo = from.at[along] - at, hi = to.at[along] - at;
        start[along] = lo < 0 ? 0 : lo, limit[along] = hi > extent ? extent : hi;
        at += extent;
        if (start[along] < limit[along]) pieces[n++] = b_slice(b, *v, start, limit, NULL);
    }
    return n ? b_concatenate(b, n, pieces, along) : 0;
}

/* ---- short axes */

/* The longest axis; the results and the lanes from which on it pays; how many times smaller the arrays are that are
   copied. */
enum { MOST_SHORT = 32, LEAST_RESULTS = 4096, LEAST_LANES = 16, COPIED_PART = 8, MOST_NODES = 32, MOST_VISITS = 128 };
enum { MOST_PLANES = 4 }; /* of pixels that vectors take apart (kernels/memory.c) */
typedef struct {
    const Defs *d;
    Builder *b;
    uint32_t place;          /* of the innermost axis, from now on */
    const ArrayType *domain; /* of what is reduced; NULL: arrays are read where they lie, not copied */
    Dim size;
    struct { /* values whose axis is there */
        Val from, to;
        uint32_t uses; /* by others of them and by the result */
    } node[MOST_NODES];
    struct { /* copies of arrays */
        Val of, to;
        uint32_t axis;
    } copy[MOST_NODES];
    uint32_t n, ncopies, visits;
} Turn;

static Val turned(Turn *t, Val v);
/* Is it much smaller than the domain? With unknown extents: has it fewer axes? */
static bool is_part(const Turn *t, Val v) {
    Dim n = type_size(t->b->cx->types, val_type(t->b->cx, v));
    if (dim_is_const(n) && dim_is_const(t->size)) return n <= t->size / COPIED_PART;
    return long_axes(val_array(t->b->cx, v)) < t->domain->rank;
}
/* The array with its axis `axis` at `place`, or a copy of it, if it is small. */
static Val moved(Turn *t, Val x, uint32_t axis, uint32_t place) {
    uint32_t i = 0;
    if (!t->domain) return b_move_axis(t->b, x, axis, place);
    while (i < t->ncopies && (t->copy[i].of != x || t->copy[i].axis != axis)) i++;
    if (i < t->ncopies) return t->copy[i].to;
    if (i == MOST_NODES || !is_part(t, x)) return 0;
    t->copy[i].of = x, t->copy[i].axis = axis, t->ncopies++;
    return t->copy[i].to = b_stored(t->b, b_move_axis(t->b, x, axis, place));
}
static Val turned_broadcast(Turn *t, const Eqn *e) {
    const ArrayType *y = val_array(t->b->cx, e->out.at[0]);
    Ints axes = param_ints(e, K_broadcast_dimensions);
    Dim dims[MAX_RANK];
    int64_t to[MAX_RANK], last = (int64_t)y->rank - 1;
    Val x = e->in.at[0];
    uint32_t own = axes.n, before = 0;
    if (e->in.n != 1) return 0;
    for (uint32_t i = 0; i < y->rank; i++) dims[i] = y->dims[i < t->place ? i : i == t->place ? last : i - 1];
    for (uint32_t i = 0; i < axes.n; i++) {
        if (axes.at[i] == last) own = i;
        before += axes.at[i] < t->place && axes.at[i] != last;
    }
    bool has = own < axes.n;
    if (has && !(x = moved(t, x, own, before))) return 0;
    if (has) to[before] = t->place;
    for (uint32_t i = 0, k = 0; i < axes.n; i++) {
        k += has && k == before;
        if (i != own) to[k++] = axes.at[i] < t->place ? axes.at[i] : axes.at[i] + 1;
    }
    return b_broadcast(t->b, x, y->rank, dims, to);
}
static Val turned_eqn(Turn *t, const Eqn *e) {
    Val in[MOST_NODES];
    if (e->in.n > MOST_NODES || e->out.n != 1) return 0;
    for (uint32_t i = 0; i < e->in.n; i++)
        if (!(in[i] = turned(t, e->in.at[i]))) return 0;
    return build(t->b, e->prim, e->in.n, in, e->params.n, e->params.at);
}
/* 0: it cannot be. */
static Val turned(Turn *t, Val v) {
    const ArrayType *x = val_array(t->b->cx, v);
    const Eqn *e = def_of(t->d, v);
    uint32_t k = 0;
    if (!x->rank) return v;
    if (t->visits++ >= MOST_VISITS) return 0;
    while (k < t->n && t->node[k].from != v) k++;
    if (k < t->n) return t->node[k].uses++, t->node[k].to;
    Val to = !e                              ? 0
             : e->prim == P_broadcast_in_dim ? turned_broadcast(t, e)
             : prim_elementwise(e->prim)     ? turned_eqn(t, e)
                                             : 0;
    if (!to) to = moved(t, v, x->rank - 1, t->place);
    if (!to || t->n == MOST_NODES) return 0;
    t->node[t->n].from = v, t->node[t->n].to = to, t->node[t->n++].uses = 1;
    return to;
}
/* The same if nothing of it is computed twice, for others too. */
static Val turned_all(Turn *t, Val v) {
    Val to = turned(t, v);
    for (uint32_t i = 0; to && i < t->n; i++)
        if (t->node[i].uses != t->d->uses.at[t->node[i].from] && def_of(t->d, t->node[i].from)) return 0;
    return to;
}
static Val turned_reduction(const Defs *d, Builder *b, const Eqn *e) {
    const ArrayType *x = val_array(d->cx, e->in.at[0]);
    Ints axes = param_ints(e, K_axes);
    uint32_t last = x->rank - 1;
    if (x->rank < 3 || axes.n != 1 || axes.at[0] != last || !dim_is_const(x->dims[last])) return 0;
    Dim size = type_size(d->cx->types, val_type(d->cx, e->in.at[0])), k = x->dims[last], lanes = x->dims[last - 1];
    bool few = (dim_is_const(lanes) && lanes < LEAST_LANES) || (dim_is_const(size) && size < LEAST_RESULTS * k);
    if (k < 2 || k > MOST_SHORT || few) return 0;
    Turn t = {.d = d, .b = b, .domain = x, .size = size};
    Val v = turned_all(&t, e->in.at[0]);
    return v ? b_reduce(b, e->prim, v, 1, (int64_t[]){0}) : 0;
}
/* Does only the innermost axis, which is short, change its place? */
static bool moves_innermost(const ArrayType *x, Ints permutation, uint32_t *place) {
    uint32_t last = x->rank - 1, n = 0;
    if (x->rank < 2 || !dim_is_const(x->dims[last]) || x->dims[last] > MOST_PLANES) return false;
    for (uint32_t i = 0; i <= last; i++) {
        if (permutation.at[i] == last)
            *place = i;
        else if (permutation.at[i] != n++)
            return false;
    }
    return *place < last;
}
/* Of what is computed of pixels, each plane is computed where it lies. */
static Val turned_transpose(const Defs *d, Builder *b, const Eqn *e) {
    Val x = e->in.at[0];
    const Eqn *made = def_of(d, x);
    Turn t = {.d = d, .b = b};
    if (!made || !prim_elementwise(made->prim) || !is_large(d->cx, x)) return 0;
    return moves_innermost(val_array(d->cx, x), param_ints(e, K_permutation), &t.place) ? turned_all(&t, x) : 0;
}

/* ---- transposed products */

/* The axes of each operand's results change places: so do the operands. */
static bool swaps_operands(const Defs *d, const Eqn *product, Ints permutation) {
    const Value *lists = param_find(product, K_dimension_numbers)->value.list.at;
    uint32_t batch = lists[2].ints.n, left = val_array(d->cx, product->in.at[0])->rank - batch - lists[0].ints.n;
    uint32_t n = permutation.n, right = n - batch - left;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t from = i < batch ? i : i < batch + right ? i + left : i - right;
        if (permutation.at[i] != from) return false;
    }
    return left && right;
}
/* Derivatives of products are transposed products. */
static Val transposed_product(const Defs *d, Builder *b, const Eqn *e) {
    const Eqn *product = def_by(d, e->in.at[0], P_dot_general);
    const ArrayType *t = val_array(d->cx, e->out.at[0]);
    Dim lanes = t->dims[t->rank - 1];
    if (!product || d->uses.at[e->in.at[0]] != 1 || !swaps_operands(d, product, param_ints(e, K_permutation))) return 0;
    if (dtype_info[t->dtype].kind != DK_FLOAT || (dim_is_const(lanes) && lanes < LEAST_LANES)) return 0;
    const Value *lists = param_find(product, K_dimension_numbers)->value.list.at;
    Contraction c = {.contracted = {lists[1].ints, lists[0].ints},
                     .batch = {lists[3].ints, lists[2].ints},
                     .preferred = t->dtype,
                     .precision = param_find(product, K_precision)};
    return b_dot_general(b, product->in.at[1], product->in.at[0], c);
}

/* ---- products of bytes */

/* The least rows, columns and terms; bytes of a word, and the signs of all; bits of a half. */
enum { LEAST_WORDS = 16, WORD = 4, SIGNS_OF_BYTES = -0x7f7f7f80, HALF = 16 };
/* Words of neighbours along the axis, the first in the lowest bits: four bytes, or two halves with the values of bytes.
   `flip`: of bytes whose sign is inverted. */
static Val words_of(Builder *b, Val v, uint32_t axis, bool flip) {
    const ArrayType *t = val_array(b->cx, v);
    uint32_t n = b->cx->words, bits = 8 * WORD / n;
    Dtype d = n == WORD ? DT_u8 : t->dtype;
    Dim config[3 * MAX_RANK] = {0}, start[MAX_RANK] = {0}, limit[MAX_RANK], rest = t->dims[axis] % n;
    int64_t strides[MAX_RANK];
    Val word = 0;
    config[3 * axis + 1] = rest ? n - rest : 0;
    v = b_pad(b, b_bitcast(b, v, d), b_int(b, d, 0), config);
    memcpy(limit, val_array(b->cx, v)->dims, t->rank * sizeof *limit);
    for (uint32_t i = 0; i < t->rank; i++) strides[i] = i == axis ? n : 1;
    for (uint32_t i = 0; i < n; i++) {
        start[axis] = i;
        Val part = b_convert(b, b_slice(b, v, start, limit, strides), DT_i32);
        if (i) part = b_shift_left(b, part, b_int(b, DT_i32, bits * i));
        if (!i && bits == HALF) part = b_and(b, part, b_int(b, DT_i32, (1 << HALF) - 1));
        word = i ? b_or(b, word, part) : part;
    }
    return b_stored(b, flip ? b_xor(b, word, b_int(b, DT_i32, SIGNS_OF_BYTES)) : word);
}
static bool is_byte(Dtype d) { return d == DT_i8 || d == DT_u8; }
/* The words of what v is a view or an exact conversion of, seen in the same way; 0: these are not bytes. *of: their
   type. */
static Val words_under(const Defs *d, Builder *b, Val v, uint32_t axis, bool flip, Dtype *of) {
    const Eqn *e = def_of(d, v);
    *of = val_array(b->cx, v)->dtype;
    if (is_byte(*of)) return words_of(b, v, axis, flip && *of == DT_i8);
    if (!e || e->in.n != 1) return 0;
    const ArrayType *x = val_array(b->cx, e->in.at[0]);
    bool exact = e->prim == P_convert_element_type && dtype_is_exact(x->dtype, *of);
    if (exact || e->prim == P_stored) return words_under(d, b, e->in.at[0], axis, flip, of);
    if (e->prim == P_transpose) axis = (uint32_t)param_ints(e, K_permutation).at[axis];
    bool windows = e->prim == P_windows && axis < x->rank && ints_find(param_ints(e, K_axes), axis) < 0;
    if (e->prim != P_transpose && !windows) return 0;
    Val words = words_under(d, b, e->in.at[0], axis, flip, of);
    return words ? build(b, e->prim, 1, &words, e->params.n, e->params.at) : 0;
}
static bool is_long(const Defs *d, Val v, Ints contracted, Ints batch) {
    const ArrayType *t = val_array(d->cx, v);
    Dim free = 1;
    for (uint32_t a = 0; a < t->rank; a++) {
        if (!dim_is_const(t->dims[a])) return false;
        if (ints_find(contracted, a) < 0 && ints_find(batch, a) < 0) free *= t->dims[a];
    }
    return free >= LEAST_WORDS && t->dims[contracted.at[contracted.n - 1]] >= LEAST_WORDS;
}
/* The sums of the right operand over the contracted axes, for all rows of the product. */
static Val column_sums(Builder *b, Val right, Ints contracted, Ints batch, const ArrayType *product) {
    Val sums = b_reduce(b, P_reduce_sum, b_convert(b, right, DT_i32), contracted.n, contracted.at);
    uint32_t rank = val_array(b->cx, right)->rank, free = product->rank - (rank - contracted.n - batch.n), n = 0;
    int64_t to[MAX_RANK];
    for (uint32_t a = 0; a < rank; a++) {
        int64_t at = ints_find(batch, a);
        if (ints_find(contracted, a) < 0) to[n++] = at >= 0 ? at : free++;
    }
    return b_broadcast(b, sums, product->rank, product->dims, to);
}
/* Products of the bytes of words, along the last contracted axis. Of two, which have 16 bits each, all are exact. Of
   four, signed bytes of the left operand become unsigned ones by adding 128, so that 128 times the sums of the right
   one are too much. */
static Val worded(const Defs *d, Builder *b, const Eqn *e) {
    const Value *lists = param_find(e, K_dimension_numbers)->value.list.at;
    Val words[2];
    Dtype of[2];
    if (!d->cx->words || !lists[0].ints.n || val_array(d->cx, e->out.at[0])->dtype != DT_i32) return 0;
    for (uint32_t i = 0; i < 2; i++) {
        Ints contracted = lists[i].ints;
        if (!is_long(d, e->in.at[i], contracted, lists[2 + i].ints)) return 0;
        uint32_t axis = (uint32_t)contracted.at[contracted.n - 1];
        words[i] = words_under(d, b, e->in.at[i], axis, i == 0 && d->cx->words == WORD, &of[i]);
        if (!words[i]) return 0;
    }
    if (d->cx->words == WORD && of[1] != DT_i8) return 0;
    Param p[2] = {*param_find(e, K_dimension_numbers), p_dtype(K_preferred_element_type, DT_i32)};
    Val v = build(b, d->cx->words == WORD ? P_dot_words : P_dot_halves, 2, words, 2, p);
    if (of[0] == DT_u8 || d->cx->words != WORD) return v;
    Val sums = column_sums(b, e->in.at[1], lists[1].ints, lists[3].ints, val_array(d->cx, v));
    return b_sub(b, v, b_mul(b, sums, b_int(b, DT_i32, 128)));
}

/* ---- the pass */
static Val transposed(const Defs *d, Builder *b, const Eqn *e) {
    Val v = transposed_product(d, b, e);
    return v ? v : turned_transpose(d, b, e);
}
static Rewrite *const rules[NPRIMS] = {
    [P_rev] = moved_join,
    [P_pad] = moved_join,
    [P_slice] = sliced,
    [P_transpose] = transposed,
    [P_reduce_sum] = turned_reduction,
    [P_reduce_max] = turned_reduction,
    [P_reduce_min] = turned_reduction,
    [P_reduce_prod] = turned_reduction,
    [P_dot_general] = worded,
};
static Val rewrite(const Defs *d, Builder *b, const Eqn *e) {
    if (prim_elementwise(e->prim)) return split(d, b, e);
    return rules[e->prim] ? rules[e->prim](d, b, e) : 0;
}

static bool has_some(Ctx *cx, const Jaxpr *j) {
    Jaxprs all = jaxprs_within(cx->arena, j);
    each(Jaxpr *, k, all)
        each(const Eqn, e, (*k)->eqns)
            if (rules[e->prim] || e->prim == P_concatenate) return true;
    return false;
}
/* What the rules replace is dropped. */
Jaxpr *pass_layout(Ctx *cx, const Jaxpr *j) {
    if (!has_some(cx, j)) return jaxpr_with(cx, j, j->eqns, j->out);
    Jaxpr *new = fold_with(cx, j, rewrite);
    return new ? pass_dce(cx, new) : NULL;
}
