/* Reductions: those by a program are expanded; derivatives. */
#include "../transform/transform.h"
#include "pairs.h"

/* The equation that result i of the program is, if it does nothing but combine the values of operand i. */
static const Eqn *combines(const Jaxpr *j, uint32_t i) {
    uint32_t n = j->out.n;
    each(Eqn, e, j->eqns) {
        if (e->out.n != 1 || e->out.at[0] != j->out.at[i] || e->in.n != 2 || !b_reduction(e->prim)) continue;
        Val x = j->in.at[i], y = j->in.at[n + i];
        return (e->in.at[0] == x && e->in.at[1] == y) || (e->in.at[0] == y && e->in.at[1] == x) ? e : NULL;
    }
    return NULL;
}
static bool combine_all(Builder *b, const Eqn *e, const Jaxpr *j, Ints axes, Val *out) {
    uint32_t n = e->out.n;
    for (uint32_t i = 0; i < n; i++)
        if (!combines(j, i)) return false;
    for (uint32_t i = 0; i < n; i++) {
        Prim p = combines(j, i)->prim;
        Val y = b_reduce(b, b_reduction(p), e->in.at[i], axes.n, axes.at);
        if (b->failed) return true;
        const ArrayType *t = b_type(b, y);
        out[i] = b2(b, p, b_full(b, e->in.at[n + i], t->rank, t->dims), y);
    }
    return true;
}

/* Axes of extent 1: XLA takes the initial value for the neutral one then. */
static bool drop_axes(Builder *b, const Eqn *e, const bool *gone, Val *out) {
    const ArrayType *t = b_type(b, e->in.at[0]);
    Dim shape[MAX_RANK];
    uint32_t rank = 0;
    for (uint32_t i = 0; i < t->rank; i++)
        if (!gone[i]) shape[rank++] = t->dims[i];
    for (uint32_t i = 0; i < e->out.n; i++) out[i] = b_reshape(b, e->in.at[i], rank, shape);
    return true;
}

/* ---- any other program: a scan over what is reduced, in its order, of arrays of what is kept */
typedef struct {
    Dim shape[MAX_RANK + 1]; /* the scanned axis, then those that are kept */
    int64_t permutation[MAX_RANK];
    uint32_t nkept;
} Split;
static Split split(Builder *b, const ArrayType *t, const bool *gone) {
    Split s = {.shape[0] = 1};
    uint32_t at = 0;
    for (uint32_t i = 0; i < t->rank; i++)
        if (gone[i]) s.permutation[at++] = i, s.shape[0] = dim_mul(b_types(b), s.shape[0], t->dims[i]);
    for (uint32_t i = 0; i < t->rank; i++)
        if (!gone[i]) s.permutation[at++] = i, s.shape[1 + s.nkept++] = t->dims[i];
    return s;
}
/* The program's results for carries, then what is scanned along axis 0. */
static Vals fold(Builder *b, const Jaxpr *j, Dim length, Val *in) {
    uint32_t n = j->out.n;
    Type *types = arena_new(b->cx->arena, Type, 2 * n);
    for (uint32_t i = 0; i < n && !b->failed; i++) types[i] = types[n + i] = val_type(b->cx, in[i]);
    Inner turn = b_inner(b, 2 * n, types);
    Vals y = b_map(b, j, 2 * n, turn.in.at);
    b_inner_end(b, &turn, n, y.at);
    return b_scan(b, &turn, (Loop){.length = length, .carries = n}, 2 * n, in);
}

/* Few long rows: `parts` of each side by side, [parts · n, kept] → [parts, kept]; what becomes of the parts is in
   order. */
enum { LONG = 4096, FEW = 32, MOST_PARTS = 1024, LEAST_PARTS = 8 };
static Dim parts_of(Builder *b, const Split *s) {
    Dim size = 1, parts = MOST_PARTS;
    for (uint32_t i = 0; i < s->nkept; i++) size = dim_mul(b_types(b), size, s->shape[1 + i]);
    if (!dim_is_const(s->shape[0]) || s->shape[0] < LONG || !dim_is_const(size) || size > FEW) return 1;
    while (s->shape[0] % parts) parts--;
    return parts < LEAST_PARTS ? 1 : parts;
}
static void in_parts(Builder *b, const Jaxpr *j, Dim parts, Split *s, Val *x) {
    uint32_t n = j->out.n, rank = s->nkept + 2;
    Dim turns = s->shape[0] / parts, shape[MAX_RANK + 2] = {parts, turns};
    int64_t permutation[MAX_RANK + 2] = {1, 0};
    for (uint32_t i = 2; i < rank; i++) shape[i] = s->shape[i - 1], permutation[i] = i;
    s->shape[0] = parts;
    Val *in = arena_new(b->cx->arena, Val, 2 * n);
    for (uint32_t i = 0; i < n; i++) {
        Val y = b_transpose(b, b_reshape(b, x[i], rank, shape), permutation);
        in[i] = b_reshape(b, b_slice_axis(b, y, 0, 0, 1), rank - 1, s->shape);
        in[n + i] = b_slice_axis(b, y, 0, 1, turns);
    }
    memcpy(x, fold(b, j, turns - 1, in).at, n * sizeof *x);
}
static bool by_scan(Builder *b, const Eqn *e, const Jaxpr *j, Split s, Val *out) {
    uint32_t n = e->out.n;
    Val *in = arena_new(b->cx->arena, Val, 2 * n);
    for (uint32_t i = 0; i < n; i++) {
        in[i] = b_full(b, e->in.at[n + i], s.nkept, s.shape + 1);
        in[n + i] = b_reshape(b, b_transpose(b, e->in.at[i], s.permutation), 1 + s.nkept, s.shape);
    }
    Dim parts = parts_of(b, &s);
    if (parts > 1) in_parts(b, j, parts, &s, in + n);
    memcpy(out, fold(b, j, s.shape[0], in).at, n * sizeof *out);
    return true;
}
bool expand_reduce(Builder *b, const Eqn *e, Val *out) {
    const Jaxpr *j = param_jaxpr(e, K_jaxpr);
    Ints axes = param_ints(e, K_dimensions);
    const ArrayType *t = b_type(b, e->in.at[0]);
    bool gone[MAX_RANK] = {0}, nothing = true;
    each(int64_t, a, axes) gone[*a] = true, nothing &= t->dims[*a] == 1;
    if (nothing) return drop_axes(b, e, gone, out);
    return combine_all(b, e, j, axes, out) || by_scan(b, e, j, split(b, t, gone), out);
}

/* ---- derivatives */
/* The axes that a reduction keeps, of all `rank`. */
static uint32_t kept_axes(Ints gone, uint32_t rank, int64_t *kept) {
    bool dropped[MAX_RANK] = {0};
    uint32_t n = 0;
    each(int64_t, a, gone) dropped[*a] = true;
    for (uint32_t i = 0; i < rank; i++)
        if (!dropped[i]) kept[n++] = i;
    return n;
}
/* A result of reducing these axes, in the shape of `like`. */
static Val unreduced(Builder *b, Val y, Val like, Ints axes) {
    const ArrayType *t = b_type(b, like);
    int64_t kept[MAX_RANK];
    kept_axes(axes, t->rank, kept);
    return b_broadcast(b, y, t->rank, t->dims, kept);
}
bool transpose_reduce_sum(Transpose *t) {
    ct_add(t, 0, unreduced(t->b, t->ct[0], t->e->in.at[0], param_ints(t->e, K_axes)));
    return true;
}
/* The mean of the tangents where x is the result. */
static bool chosen(Jvp *d) {
    Builder *b = d->b;
    Ints axes = param_ints(d->e, K_axes);
    Val x = d->e->in.at[0], here = b_eq(b, x, unreduced(b, jvp_result(d, 0), x, axes));
    Val one = b_convert(b, here, b_type(b, x)->dtype), sum = b_mul(b, d->t[0], one);
    Val count = b_reduce(b, P_reduce_sum, one, axes.n, axes.at);
    d->dt[0] = b_div(b, b_reduce(b, P_reduce_sum, sum, axes.n, axes.at), count);
    return !b->failed;
}
bool jvp_reduce_max(Jvp *d) { return chosen(d); }
bool jvp_reduce_min(Jvp *d) { return chosen(d); }

/* The product of the elements before each one, or after it, along an axis. */
static Val products(Builder *b, Val x, int64_t axis, bool after) {
    Dim config[3 * MAX_RANK] = {0};
    if (b_failed(b, x)) return VAL_FAILED;
    config[3 * axis] = after ? -1 : 1, config[3 * axis + 1] = after ? 1 : -1;
    x = b_pad(b, x, b_number(b, b_type(b, x)->dtype, 1), config);
    return build(b, P_cumprod, 1, &x, 2, (Param[]){p_int(K_axis, axis), p_bool(K_reverse, after)});
}
/* Each tangent times the product of all other elements. */
bool jvp_reduce_prod(Jvp *d) {
    Builder *b = d->b;
    Ints axes = param_ints(d->e, K_axes);
    Val x = d->e->in.at[0], g = d->t[0];
    const ArrayType *t = b_type(b, x);
    int64_t axis = axes.n == 1 ? axes.at[0] : 0;
    bool gone[MAX_RANK] = {0};
    each(int64_t, a, axes) gone[*a] = true;
    if (axes.n != 1) {
        Split s = split(b, t, gone);
        x = b_reshape(b, b_transpose(b, x, s.permutation), 1 + s.nkept, s.shape);
        g = b_reshape(b, b_transpose(b, g, s.permutation), 1 + s.nkept, s.shape);
    }
    Val before = products(b, x, axis, false), after = products(b, x, axis, true);
    d->dt[0] = b_reduce(b, P_reduce_sum, b_mul(b, g, b_mul(b, before, after)), 1, &axis);
    return !b->failed;
}

/* ---- derivatives of reductions by a program: halves of the elements are combined, as in JAX */
static void halves(Builder *b, const Jaxpr *j, Val *x, const Val *init) {
    uint32_t n = j->out.n;
    Val *in = arena_new(b->cx->arena, Val, 2 * (size_t)n);
    for (Dim rows = b_type(b, x[0])->dims[0]; rows > 1 && !b->failed; rows = (rows + 1) / 2) {
        for (uint32_t i = 0; i < n; i++) {
            Dim first = (rows + 1) / 2, config[3 * MAX_RANK] = {0, rows % 2};
            in[i] = b_slice_axis(b, x[i], 0, 0, first);
            in[n + i] = b_slice_axis(b, x[i], 0, first, rows);
            if (rows % 2) in[n + i] = b_pad(b, in[n + i], init[i], config);
        }
        memcpy(x, b_map(b, j, 2 * n, in).at, n * sizeof *x);
    }
}
/* The value and tangent of each operand, then as many initial ones, reduced along axis 0 into x. */
static void reduce_pairs(Builder *b, const Jaxpr *j, const Split *s, Val *x, const Val *init) {
    uint32_t n = j->out.n;
    Val *in = arena_new(b->cx->arena, Val, 2 * (size_t)n);
    if (b->failed) return;
    bool empty = s->shape[0] == 0;
    if (dim_is_const(s->shape[0]) && !empty) halves(b, j, x, init);
    for (uint32_t i = 0; i < n; i++) {
        in[i] = b_full(b, init[i], s->nkept, s->shape + 1);
        in[n + i] = x[i];
    }
    if (empty || !dim_is_const(s->shape[0])) {
        memcpy(x, empty ? in : fold(b, j, s->shape[0], in).at, n * sizeof *x);
        return;
    }
    for (uint32_t i = 0; i < n; i++) x[i] = b_reshape(b, x[i], s->nkept, s->shape + 1);
}
bool jvp_reduce(Jvp *d) {
    Builder *b = d->b;
    Arena *arena = b->cx->arena;
    const Eqn *e = d->e;
    uint32_t n = e->out.n, m = 0;
    const ArrayType *t = b_type(b, e->in.at[0]);
    bool gone[MAX_RANK] = {0};
    for (uint32_t i = n; i < 2 * n; i++)
        if (d->t[i]) return tx_error(d->tx, operand_span(d->read, i), "reduce has no derivative in its initial values");
    Jaxpr *j = jvp_of_pairs(d, param_jaxpr(e, K_jaxpr));
    if (!j) return false;
    each(int64_t, a, param_ints(e, K_dimensions)) gone[*a] = true;
    Split s = split(b, t, gone);
    Val *x = arena_new(arena, Val, 2 * (size_t)j->out.n), *init = x + j->out.n;
    pair_operands(d, x, init);
    for (uint32_t i = 0; i < j->out.n; i++)
        x[i] = b_reshape(b, b_transpose(b, x[i], s.permutation), 1 + s.nkept, s.shape);
    reduce_pairs(b, j, &s, x, init);
    memcpy(d->out, x, n * sizeof *x); /* of a program that is not associative, the values that belong to the tangents */
    for (uint32_t i = 0; i < n; i++)
        if (has_tangent(b->cx, val_type(b->cx, e->in.at[i]))) d->dt[i] = x[n + m++];
    return !b->failed;
}

/* ---- for a batch of examples: of initial values of their own the program makes ordinary equations */
bool vmap_with_initial(Vmap *v) {
    uint32_t n = v->e->out.n;
    for (uint32_t i = n; i < v->e->in.n; i++)
        if (v->batched[i]) return vmap_expand(v);
    Val *in = arena_new(v->b->cx->arena, Val, v->e->in.n + 1);
    memcpy(in, v->e->in.at, v->e->in.n * sizeof *in);
    for (uint32_t i = 0; i < n; i++) in[i] = vmap_operand(v, i);
    Eqn e = vmap_axes(v, v->e);
    return vmap_apply(v, &e, in);
}
