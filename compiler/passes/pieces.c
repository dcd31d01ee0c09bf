/* A concatenation that is only padded or reversed becomes one of padded or reversed operands:

     y = concatenate(a, b)                 w = concatenate(full v, a, b, full v)      along the axis that is padded,
     w = pad(y, v)                becomes  w = concatenate(pad(a, v), pad(b, v))      along another;
     w = rev(y)                            w = concatenate(rev(b), rev(a))

   A large concatenation is written to memory, operand by operand: so each element is written once, to its place in w. */
#include "simplify.h"

/* Elements from which on a concatenation is written operand by operand; the most operands that are rewritten. */
enum { LEAST_JOINED = 4096, MOST_JOINED = 16 };

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
static Val rewrite(const Defs *d, Builder *b, const Eqn *e) {
    if (e->prim != P_rev && e->prim != P_pad) return 0;
    Val y = e->in.at[0];
    const Eqn *join = def_by(d, y, P_concatenate);
    if (!join || join->in.n > MOST_JOINED || d->uses.at[y] != 1 || !is_large(d->cx, y)) return 0;
    return e->prim == P_rev ? reversed(b, e, join) : padded(b, e, join);
}

static bool has(Ctx *cx, const Jaxpr *j, Prim p) {
    Jaxprs all = jaxprs_within(cx->arena, j);
    each(Jaxpr *, k, all)
        each(const Eqn, e, (*k)->eqns)
            if (e->prim == p) return true;
    return false;
}
Jaxpr *pass_pieces(Ctx *cx, const Jaxpr *j) {
    bool some = has(cx, j, P_concatenate) && (has(cx, j, P_pad) || has(cx, j, P_rev));
    return some ? fold_with(cx, j, rewrite) : jaxpr_with(cx, j, j->eqns, j->out);
}
