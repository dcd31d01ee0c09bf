/* Reductions by a program. */
#include "../build.h"

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
