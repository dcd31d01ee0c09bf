/* On a GPU one update for each row of an array of equal numbers becomes a selection, which joins the steps around it,
   as in the gradient of a loss that takes one element of each row:

     z = broadcast_in_dim c            i = iota
     w = scatter-add z l u   becomes   w = select_n (eq i l) c (c + u)

   with the places l and the updates u stretched to the array. */
#include "../options.h"
#include "simplify.h"

/* Every axis of the array is one of the batch, except the one that positions index. */
static bool is_one_each(Ctx *cx, const Eqn *e, const IndexNumbers *n) {
    const ArrayType *t = val_array(cx, e->in.at[0]), *at = val_array(cx, e->in.at[1]);
    if (n->windows.n || n->map.n != 1 || n->dropped.n != 1 || n->dropped.at[0] != n->map.at[0]) return false;
    if (n->batch.n + 1 != t->rank || at->dims[at->rank - 1] != 1) return false;
    for (uint32_t a = 0; a + 1 < at->rank; a++)
        if (at->dims[a] != 1 && !ints_have(n->index_batch, a)) return false;
    return true;
}
/* The axes of the array that those of the indices are, the last of which does not count. */
static Val stretched(Builder *b, const IndexNumbers *n, Val v, uint32_t axes, const ArrayType *t) {
    int64_t *to = arena_new(b->cx->arena, int64_t, axes + 1), *ones = arena_new(b->cx->arena, int64_t, axes + 1);
    uint32_t nto = 0, nones = 0;
    for (uint32_t a = 0; a < axes; a++) {
        int64_t i = ints_find(n->index_batch, a);
        if (i >= 0)
            to[nto++] = n->batch.at[i];
        else
            ones[nones++] = a;
    }
    return b_place(b, nones ? b_squeeze(b, v, nones, ones) : v, t->rank, t->dims, to);
}
static bool is_number(Dtype d) {
    DtypeKind k = dtype_info[d].kind;
    return k == DK_FLOAT || k == DK_SINT || k == DK_UINT;
}
static Val rewrite(const Defs *d, Builder *b, const Eqn *e) {
    Scalar s;
    IndexNumbers n;
    if (e->prim != P_scatter_add || !is_splat(d, e->in.at[0], &s)) return 0;
    const ArrayType *t = val_array(d->cx, e->in.at[0]), *places = val_array(d->cx, e->in.at[1]);
    IndexMode mode = index_mode(e);
    bool dropped = mode == MODE_FILL_OR_DROP || mode == MODE_PROMISE_IN_BOUNDS;
    bool here = dtype_info[places->dtype].kind == DK_SINT && places->rank > 0;
    if (!dropped || !here || !is_number(t->dtype) || !index_numbers(d->cx, e, &n) || !is_one_each(d->cx, e, &n))
        return 0;
    Dim extent = t->dims[n.map.at[0]];
    Dtype as = dim_is_const(extent) && extent < INT32_MAX && places->dtype == DT_i32 ? DT_i32 : DT_i64;
    Val last = e->in.at[1], more = e->in.at[2];
    last = b_convert(b, b_reshape(b, last, places->rank - 1, places->dims), as);
    last = stretched(b, &n, last, places->rank - 1, t);
    more = stretched(b, &n, more, places->rank - 1, t);
    Val there = b_eq(b, b_iota(b, as, t->rank, t->dims, n.map.at[0]), last);
    return b_select(b, there, e->in.at[0], b_add(b, e->in.at[0], more));
}
Jaxpr *pass_scatters(Ctx *cx, const Jaxpr *j) {
    bool any = options_for_device(cx->options) && jaxpr_uses(cx->arena, j, P_scatter_add);
    return any ? fold_with(cx, j, rewrite) : jaxpr_with(cx, j, j->eqns, j->out);
}
