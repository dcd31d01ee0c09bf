/* Identities that make what transformations write short. All are exact but for the payload of a NaN, and change no
   order of summation but that inside a product of matrices. Those that would duplicate work are applied to values that
   are used once. */
#include "identities.h"

#define X e->in.at[0]
#define Y e->in.at[1]

static const ArrayType *array(const Defs *d, Val v) { return val_array(d->cx, v); }
static bool same_type(const Defs *d, Val a, Val b) {
    Types *ts = d->cx->types;
    return type_plain(ts, val_type(d->cx, a)) == type_plain(ts, val_type(d->cx, b));
}
static bool used_once(const Defs *d, Val v) { return v >= d->uses.n || d->uses.at[v] < 2; }
/* Powers of two have no negative values. */
static bool dtype_has_sign(Dtype t) { return float_format[t].special != FLOAT_POWER; }
static DtypeKind kind_of(const Defs *d, Val v) { return dtype_info[array(d, v)->dtype].kind; }
static Val reshaped(const Defs *d, Builder *b, Val x, Val like) {
    const ArrayType *t = array(d, like);
    return b_reshape(b, x, t->rank, t->dims);
}

/* ---- views: equations that move axes of extent 1 about, and broadcasts

   at[i] is the axis of the result that axis i of the operand becomes; NO_AXIS: it has extent 1 and is gone. */
enum { NO_AXIS = -1 };
typedef struct {
    Val of; /* 0: it is none */
    bool broadcasts;
    int64_t at[MAX_RANK];
} View;

static bool unit(Dim d) { return d == 1; }
/* The axes of x that become those of y if only axes of extent 1 differ. */
static bool unit_axes(const ArrayType *x, const ArrayType *y, int64_t *at) {
    uint32_t k = 0;
    for (uint32_t i = 0; i < x->rank; i++) {
        at[i] = NO_AXIS;
        if (unit(x->dims[i])) continue;
        while (k < y->rank && unit(y->dims[k])) k++;
        if (k == y->rank || y->dims[k] != x->dims[i]) return false;
        at[i] = k++;
    }
    while (k < y->rank && unit(y->dims[k])) k++;
    return k == y->rank;
}
static View view_of(const Defs *d, const Eqn *e) {
    View v = {0};
    if (!e || e->in.n != 1 || e->out.n != 1 || array(d, X)->rank > COMPILED_RANK) return v;
    const ArrayType *x = array(d, X), *y = array(d, e->out.at[0]);
    Ints axes = param_ints(e, K_broadcast_dimensions);
    bool moves = e->prim == P_squeeze || (e->prim == P_reshape && !param_has(e, K_dimensions));
    if (e->prim == P_broadcast_in_dim && axes.n == x->rank) {
        v.of = X, v.broadcasts = true;
        for (uint32_t i = 0; i < x->rank; i++) v.at[i] = axes.at[i];
    } else if (moves && unit_axes(x, y, v.at)) {
        v.of = X;
    }
    return v;
}
/* Axes that are gone get places between their neighbours; false if there are none. */
static bool place_gone(int64_t *at, uint32_t n, uint32_t rank) {
    int64_t last = NO_AXIS;
    for (uint32_t i = 0; i < n; last = at[i++]) {
        uint32_t next = i;
        while (next < n && at[next] == NO_AXIS) next++;
        int64_t limit = next < n ? at[next] : rank;
        if (at[i] == NO_AXIS) at[i] = last + 1;
        if (next != i && at[i] >= limit) return false;
    }
    return true;
}
/* A view of a view is one. */
static Val id_view(const Defs *d, Builder *b, const Eqn *e) {
    View outer = view_of(d, e), inner = outer.of ? view_of(d, def_of(d, X)) : (View){0};
    if (!inner.of) return 0;
    const ArrayType *x = array(d, inner.of), *y = array(d, e->out.at[0]);
    int64_t at[MAX_RANK];
    for (uint32_t i = 0; i < x->rank; i++) at[i] = inner.at[i] == NO_AXIS ? NO_AXIS : outer.at[inner.at[i]];
    if (same_type(d, inner.of, e->out.at[0]) && unit_axes(x, y, at)) return inner.of;
    int64_t unused[MAX_RANK];
    if (unit_axes(x, y, unused)) return reshaped(d, b, inner.of, e->out.at[0]);
    return place_gone(at, x->rank, y->rank) ? b_broadcast(b, inner.of, y->rank, y->dims, at) : 0;
}

/* ---- reductions */

/* Nothing is combined along axes of extent 1, and axes of that extent before a reduction need not be there. */
static Val id_reduce(const Defs *d, Builder *b, const Eqn *e) {
    if (e->in.n != 1 || !param_has(e, K_axes)) return 0;
    Ints axes = param_ints(e, K_axes);
    const ArrayType *y = array(d, X);
    bool summed[MAX_RANK] = {0}, units = true;
    each(int64_t, a, axes) {
        summed[*a] = true;
        units &= unit(y->dims[*a]);
    }
    if (units) return reshaped(d, b, X, e->out.at[0]);
    View v = view_of(d, def_of(d, X));
    const ArrayType *x = v.of ? array(d, v.of) : NULL, *r = array(d, e->out.at[0]);
    int64_t left[MAX_RANK], unused[MAX_RANK];
    uint32_t n = 0, kept = 0;
    if (!x || !unit_axes(x, y, unused)) return 0;
    for (uint32_t i = 0; i < x->rank; i++) {
        if (v.at[i] == NO_AXIS || summed[v.at[i]]) {
            left[n++] = i;
            continue;
        }
        if (kept == r->rank || r->dims[kept] != x->dims[i]) return 0;
        kept++;
    }
    if (kept != r->rank) return 0;
    Eqn new = *e;
    new.in = (Vals){&v.of, 1};
    new.in = vals_joined(d->cx->arena, 1, &new.in);
    new.params.at = arena_new(d->cx->arena, Param, e->params.n);
    for (uint32_t i = 0; i < e->params.n; i++) {
        new.params.at[i] = e->params.at[i];
        if (e->params.at[i].key == K_axes) new.params.at[i].value = p_ints(b, K_axes, n, left).value;
    }
    return b_eqn(b, &new, 1, NULL).at[0];
}

/* ---- transposes */

/* The product with its operands exchanged. */
static Val exchanged(Builder *b, const Eqn *dot) {
    const Param *axes = param_find(dot, K_dimension_numbers), *precision = param_find(dot, K_precision);
    const Value *list = axes->value.list.at; /* of two operands: contracted, batch */
    Contraction c = {.contracted = {list[1].ints, list[0].ints},
                     .batch = {list[3].ints, list[2].ints},
                     .preferred = param_dtype(dot, K_preferred_element_type)};
    Param both;
    if (param_has(dot, K_out_sharding)) return 0;
    if (precision && precision->value.kind != V_NONE) {
        both = *precision;
        if (both.value.kind != V_WORD && (both.value.kind != V_LIST || both.value.list.n != 2)) return 0;
        if (both.value.kind == V_LIST) {
            Value *pair = both.value.list.at = arena_new(b->cx->arena, Value, 2);
            pair[0] = precision->value.list.at[1], pair[1] = precision->value.list.at[0];
        }
        c.precision = &both;
    }
    return b_dot_general(b, dot->in.at[1], dot->in.at[0], c);
}
/* Moving axes of extent 1 is a reshape; a product whose free axes change places is that of its operands exchanged. */
static Val id_transpose(const Defs *d, Builder *b, const Eqn *e) {
    Ints p = param_ints(e, K_permutation);
    const ArrayType *x = array(d, X);
    int64_t last = NO_AXIS;
    uint32_t ordered = 0;
    for (; ordered < p.n; ordered++) {
        if (unit(x->dims[p.at[ordered]])) continue;
        if (p.at[ordered] < last) break;
        last = p.at[ordered];
    }
    if (ordered == p.n) return reshaped(d, b, X, e->out.at[0]);
    const Eqn *dot = def_by(d, X, P_dot_general);
    if (!dot || !used_once(d, X)) return 0;
    const Value *list = param_find(dot, K_dimension_numbers)->value.list.at;
    uint32_t batch = list[2].ints.n, left = array(d, dot->in.at[0])->rank - batch - list[0].ints.n;
    for (uint32_t i = 0; i < p.n; i++) {
        uint32_t right = p.n - batch - left;
        uint32_t from = i < batch ? i : i < batch + right ? i + left : i - right;
        if (p.at[i] != from) return 0;
    }
    return exchanged(b, dot);
}

/* ---- signs */

static bool is_view(Prim p) {
    return p == P_broadcast_in_dim || p == P_reshape || p == P_squeeze || p == P_transpose || p == P_rev;
}
static Val with_operands(Builder *b, const Eqn *e, Val x, Val y) {
    Eqn new = *e;
    Val in[2] = {x, y};
    new.in = (Vals){in, y ? 2 : 1};
    new.in = vals_joined(b->cx->arena, 1, &new.in);
    Type type = val_type(b->cx, e->out.at[0]);
    return b_eqn(b, &new, 1, &type).at[0];
}
/* Is it the product or quotient of two numbers? Its sign is then that of either. The parts of a complex product are
   sums, and where they cancel the sign of their zero is not changed with that of a factor. */
static bool is_product(const Defs *d, const Eqn *e) {
    DtypeKind kind = kind_of(d, e->out.at[0]);
    return (e->prim == P_mul && !e->params.n && kind != DK_COMPLEX) || (e->prim == P_div && kind == DK_FLOAT);
}
/* -v, if v is computed with a sign that can be left out; else 0. Only `v` itself may be used elsewhere too if it is a
   negation, of which none is needed then. */
static Val negated(const Defs *d, Builder *b, Val v, uint32_t depth) {
    enum { MOST_DEPTH = 4 };
    const Eqn *e = def_of(d, v);
    if (!e || depth == MOST_DEPTH || e->out.n != 1 || !dtype_has_sign(array(d, v)->dtype)) return 0;
    if (e->prim == P_neg) return X;
    if (!used_once(d, v)) return 0;
    bool product = is_product(d, e);
    Val x = product || (is_view(e->prim) && e->in.n == 1) ? negated(d, b, X, depth + 1) : 0;
    if (x) return with_operands(b, e, x, product ? Y : 0);
    Val y = product ? negated(d, b, Y, depth + 1) : 0;
    return y ? with_operands(b, e, X, y) : 0;
}
static Val id_neg(const Defs *d, Builder *b, const Eqn *e) {
    Val v = negated(d, b, X, 0);
    const Eqn *of = def_of(d, X);
    if (v || !of || of->out.n != 1 || !is_product(d, of) || !used_once(d, X) || kind_of(d, X) != DK_FLOAT) return v;
    for (uint32_t i = 0; i < 2; i++) { /* the sign of a number */
        Scalar s;
        if (!scalar_of(d->cx, of->in.at[i], &s)) continue;
        Val minus = b_neg(b, of->in.at[i]);
        return with_operands(b, of, i ? of->in.at[0] : minus, i ? minus : of->in.at[1]);
    }
    return 0;
}
static Val id_add(const Defs *d, Builder *b, const Eqn *e) {
    Val y = negated(d, b, Y, 0);
    if (y) return b_sub(b, X, y);
    Val x = negated(d, b, X, 0);
    return x ? b_sub(b, Y, x) : 0;
}
static Val id_sub(const Defs *d, Builder *b, const Eqn *e) {
    Val y = negated(d, b, Y, 0);
    return y ? b_add(b, X, y) : 0;
}

/* ---- arrays of one value */

/* The scalar that a broadcast repeats; 0: it is none. */
static Val repeated(const Defs *d, Val v) {
    const Eqn *e = def_by(d, v, P_broadcast_in_dim);
    return e && e->in.n == 1 && !array(d, X)->rank ? X : 0;
}
/* An operand that repeats a scalar is that scalar; if all do, so does the result. */
static Val id_point(const Defs *d, Builder *b, const Eqn *e) {
    if (e->params.n || e->in.n > 2) return 0;
    const ArrayType *t = array(d, e->out.at[0]);
    Val in[2] = {0};
    bool all = true;
    for (uint32_t i = 0; i < e->in.n; i++) {
        in[i] = repeated(d, e->in.at[i]);
        all &= in[i] || !array(d, e->in.at[i])->rank;
    }
    if (!in[0] && !in[1]) return 0;
    if (all) {
        for (uint32_t i = 0; i < e->in.n; i++)
            if (!in[i]) in[i] = e->in.at[i];
        return b_full(b, e->in.n == 1 ? b1(b, e->prim, in[0]) : b2(b, e->prim, in[0], in[1]), t->rank, t->dims);
    }
    Prim p = e->prim == P_add_any ? P_add : e->prim; /* of add_any nothing stretches */
    uint32_t other = in[0] ? 1 : 0;
    const ArrayType *full = array(d, e->in.at[other]);
    if (full->rank != t->rank || memcmp(full->dims, t->dims, t->rank * sizeof *t->dims) != 0) return 0;
    return b2(b, p, in[0] ? in[0] : X, in[1] ? in[1] : Y);
}

/* ---- selections */

static bool same_number(const Defs *d, Val a, Val b) {
    Scalar x, y;
    return is_splat(d, a, &x) && is_splat(d, b, &y) && x.dtype == y.dtype && x.bits == y.bits && same_type(d, a, b);
}
/* The case that a select_n of the same condition takes where this one takes its case `i`. */
static Val chosen(const Defs *d, const Eqn *e, uint32_t i) {
    const Eqn *inner = def_by(d, e->in.at[1 + i], P_select_n);
    return inner && inner->in.n == e->in.n && inner->in.at[0] == X ? inner->in.at[1 + i] : e->in.at[1 + i];
}
static Val id_select_n(const Defs *d, Builder *b, const Eqn *e) {
    if (e->in.n != 3) return 0;
    if (same_number(d, Y, e->in.at[2])) return Y;
    const Eqn *inverse = array(d, X)->dtype == DT_bool ? def_by(d, X, P_not) : NULL;
    if (inverse) return b_select(b, inverse->in.at[0], e->in.at[2], Y);
    Val no = chosen(d, e, 0), yes = chosen(d, e, 1);
    return no != Y || yes != e->in.at[2] ? b_select(b, X, no, yes) : 0;
}

/* ---- */
static Rewrite *const arithmetic[NPRIMS] = {
    [P_add] = id_add,
    [P_add_any] = id_add,
    [P_sub] = id_sub,
    [P_neg] = id_neg,
};
static Rewrite *const others[NPRIMS] = {
    [P_broadcast_in_dim] = id_view, [P_reshape] = id_view,      [P_squeeze] = id_view,
    [P_reduce_sum] = id_reduce,     [P_reduce_max] = id_reduce, [P_reduce_min] = id_reduce,
    [P_reduce_prod] = id_reduce,    [P_reduce_and] = id_reduce, [P_reduce_or] = id_reduce,
    [P_transpose] = id_transpose,   [P_select_n] = id_select_n,
};
/* Primitives whose operands may be scalars beside arrays, or whose results repeat a number if operands do. */
static const bool points[NPRIMS] = {
    [P_add] = true, [P_add_any] = true, [P_sub] = true, [P_mul] = true, [P_div] = true, [P_neg] = true,
    [P_max] = true, [P_min] = true,     [P_gt] = true,  [P_ge] = true,  [P_lt] = true,  [P_le] = true,
    [P_eq] = true,  [P_ne] = true,      [P_not] = true, [P_pow] = true,
};
Val identity(const Defs *d, Builder *b, const Eqn *e) {
    Val v = others[e->prim] ? others[e->prim](d, b, e) : 0;
    if (!v && points[e->prim]) v = id_point(d, b, e);
    if (!v && arithmetic[e->prim]) v = arithmetic[e->prim](d, b, e);
    return v && !b->failed && !same_type(d, v, e->out.at[0]) ? 0 : v;
}
