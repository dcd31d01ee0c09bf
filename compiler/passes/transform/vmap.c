/* vmap: a program for a batch of examples. Equations without batched operands are copied: what does not differ between
   the examples is computed once. */
#include "flow.h"

VmapRule *const vmap_rules[NPRIMS] = {
#define PRIM(id, text, arity, type, simplify, facts, jvp, transpose, vmap, lowering) [P_##id] = vmap_##vmap,
#include "../../prims.def"
};

/* ---- operands and results */
Dim vmap_size(const Vmap *v) { return v->tx->batch.size; }
Str vmap_axis(const Vmap *v) { return v->tx->batch.axis; }
static const ArrayType *written_type(const Tx *tx, Val read) {
    return type_at(tx->cx->types, type_rewrite(&tx->map, val_type(tx->cx, read)));
}
const ArrayType *vmap_type(const Vmap *v, uint32_t i) { return written_type(v->tx, v->read->in.at[i]); }
const ArrayType *vmap_result_type(const Vmap *v, uint32_t k) { return written_type(v->tx, v->read->out.at[k]); }
Type vmap_batched(const Tx *tx, const ArrayType *one) {
    Dim dims[MAX_RANK + 1] = {tx->batch.size};
    if (one->dtype == DT_tok) return type_of(tx->cx->types, DT_tok, 0, NULL); /* one for all */
    assert(one->rank < MAX_RANK);
    if (one->rank) memcpy(dims + 1, one->dims, one->rank * sizeof *dims);
    return type_of(tx->cx->types, one->dtype, one->rank + 1, dims);
}
Val vmap_broadcast(Tx *tx, Builder *b, Val v) {
    if (b_failed(b, v)) return VAL_FAILED;
    const ArrayType *one = b_type(b, v), *all = type_at(b_types(b), vmap_batched(tx, one));
    if (one->dtype == DT_tok) return v;
    int64_t axes[MAX_RANK];
    for (uint32_t d = 0; d < one->rank; d++) axes[d] = d + 1;
    return b_broadcast(b, v, all->rank, all->dims, axes);
}
Val vmap_operand(Vmap *v, uint32_t i) {
    Val x = v->e->in.at[i];
    return v->batched[i] ? x : vmap_broadcast(v->tx, v->b, x);
}
Val vmap_stretched(Vmap *v, uint32_t i, uint32_t rank) {
    Val x = v->e->in.at[i];
    uint32_t own = vmap_type(v, i)->rank;
    int64_t axes[MAX_RANK] = {0};
    if (!v->batched[i]) return own ? b_expand_dims(v->b, x, 1, axes) : x;
    for (uint32_t d = 0; d < rank; d++) axes[d] = d + 1;
    return own ? x : b_expand_dims(v->b, x, rank, axes);
}
Val vmap_folded(Vmap *v, Val x, const ArrayType *one, uint32_t axis) {
    Dim dims[MAX_RANK];
    assert(axis < one->rank);
    memcpy(dims, one->dims, one->rank * sizeof *dims);
    dims[axis] = dim_mul(b_types(v->b), vmap_size(v), dims[axis]);
    return b_reshape(v->b, b_move_axis(v->b, x, 0, axis), one->rank, dims);
}
Val vmap_unfolded(Vmap *v, Val x, const ArrayType *one, uint32_t axis) {
    Dim dims[MAX_RANK + 1];
    for (uint32_t d = 0; d <= one->rank; d++) dims[d] = d == axis ? vmap_size(v) : one->dims[d - (d > axis)];
    return b_move_axis(v->b, b_reshape(v->b, x, one->rank + 1, dims), axis, 0);
}
bool vmap_apply(Vmap *v, const Eqn *e, const Val *in) {
    Tx *tx = v->tx;
    Eqn new = *e;
    Type *types = arena_new(tx->cx->arena, Type, e->out.n + 1);
    for (uint32_t k = 0; k < e->out.n; k++) types[k] = vmap_batched(tx, vmap_result_type(v, k));
    new.in = vals_joined(tx->cx->arena, 1, (Vals[]){{(Val *)in, e->in.n}});
    Vals out = b_eqn(v->b, &new, e->out.n, types);
    memcpy(v->out, out.at, out.n * sizeof *out.at);
    return !v->b->failed;
}

/* ---- the program */
/* ---- shields: where not all examples are really here, the others compute something from a value that is not batched
   too, whose derivative is a sum over all. Elementwise, the value itself is shielded, else the results. These selects
   are gone after the lowering if nothing is differentiated. */
static bool reads_block(Prim p) { return p == P_dynamic_slice || p == P_gather || p == P_slice; }
static bool has_shared(const Vmap *v, uint32_t i) {
    const ValInfo *x = val_info(v->tx->cx, v->e->in.at[i]);
    return !v->batched[i] && !x->lit && !x->data && has_tangent(v->tx->cx, x->type);
}
/* Is there one of a result or operand that must be shielded? */
static bool wants_shield(const Vmap *v) {
    bool shared = false, results = false;
    for (uint32_t i = 0; i < v->e->in.n; i++) shared |= has_shared(v, i);
    each(const Val, y, v->e->out) results |= has_tangent(v->tx->cx, val_type(v->tx->cx, *y));
    return v->tx->batch.mask && shared && results && !runs_programs(v->e->prim) && !vmap_keeps(v);
}
void vmap_shield(Vmap *v, uint32_t first, Vals in, bool *batched) {
    for (uint32_t i = first; i < in.n; i++) {
        if (!has_shared(v, i)) continue;
        in.at[i] = vmap_shielded(v->tx, v->b, v->tx->batch.mask, vmap_broadcast(v->tx, v->b, in.at[i]));
        batched[i] = true;
    }
}
/* Arrays that are written into come as they are, and are shielded where they are read. */
static void shield_updated(Vmap *v, Vals in) {
    for (uint32_t i = 0; i < in.n; i++)
        if (vmap_reads_updated(v, i)) in.at[i] = vmap_shielded(v->tx, v->b, v->tx->batch.mask, in.at[i]);
}
static void shield_results(Vmap *v) {
    for (uint32_t k = 0; k < v->e->out.n && !v->b->failed; k++)
        if (v->out_batched[k]) v->out[k] = vmap_shielded(v->tx, v->b, v->tx->batch.mask, v->out[k]);
}
/* The derivative of a product in one factor is the other one, by which cotangents that are 0 are multiplied. */
static void shield_factors(Vmap *v, Vals in) {
    Builder *b = v->b;
    for (uint32_t i = 0; i < in.n && !b->failed; i++)
        if (v->batched[i]) in.at[i] = vmap_where(b, v->tx->batch.mask, b_zeros_like(b, in.at[i]), in.at[i]);
}
bool vmap_solves(Prim p) {
    JvpRule *rule = jvp_rules[p];
    return rule == jvp_triangular_solve || rule == jvp_tridiagonal_solve || rule == jvp_spsolve;
}
/* If the matrix is the same for all, solutions of right-hand sides that are zero are. */
static void shield_solve(Vmap *v, Vals in, bool *batched) {
    bool shared = true;
    for (uint32_t i = 0; i + 1 < in.n; i++) shared &= !batched[i];
    if (shared)
        shield_factors(v, in);
    else
        vmap_shield(v, 0, in, batched);
}
static void shield_inputs(Vmap *v, Vals in, bool *batched) {
    Prim p = v->e->prim;
    bool products = v->tx->batch.differentiated && jvp_rules[p] == jvp_scatter_mul;
    if (prim_elementwise(p) || products)
        vmap_shield(v, 0, in, batched);
    else if (v->tx->batch.differentiated && jvp_rules[p] == jvp_bilinear)
        shield_factors(v, in);
    else if (v->tx->batch.differentiated && vmap_solves(p))
        shield_solve(v, in, batched);
}
static void vmap_eqn(Tx *tx, Builder *b, const Eqn *e) {
    Arena *arena = tx->cx->arena;
    bool *batched = arena_new(arena, bool, e->in.n + 1), *out_batched = arena_new(arena, bool, e->out.n + 1);
    each(const Val, v, e->out) tx_mark(tx, *v, false);
    bool differs = vmap_differs(tx, e), some = differs || examples_exchange(tx, e) || (tx->batch.mask && acts(e));
    for (uint32_t i = 0; i < e->in.n; i++) some |= batched[i] = tx_marked(tx, e->in.at[i]);
    b->span = e->span, b->whole = e->whole;
    if (!some) {
        tx_copy(tx, b, e);
        each(const Val, v, e->out) vmap_extent(tx, b, *v);
        return;
    }
    Eqn here = eqn_rewrite(&tx->map, e, NULL, NULL);
    for (uint32_t i = 0; i < e->in.n; i++) here.in.at[i] = vmap_written(tx, e->in.at[i]);
    Vmap v = {.tx = tx, .b = b, .e = &here, .read = e, .batched = batched, .out_batched = out_batched};
    v.out = arena_new(arena, Val, e->out.n + 1);
    memset(out_batched, true, e->out.n);
    bool block = reads_block(e->prim), shield = wants_shield(&v) || (block && vmap_reads_updated(&v, 0));
    if (!block) shield_updated(&v, here.in);
    if (shield) shield_inputs(&v, here.in, batched);
    tx->failed |= !(differs ? vmap_padded : vmap_rules[e->prim])(&v) || b->failed;
    if (shield && !prim_elementwise(e->prim) && !tx->failed) shield_results(&v);
    for (uint32_t k = 0; k < e->out.n && !tx->failed; k++) {
        ValInfo *info = val_info(tx->cx, v.out[k]);
        if (!info->name.n && !info->lit) info->name = val_info(tx->cx, e->out.at[k])->name;
        valmap_put(&tx->map, e->out.at[k], v.out[k]);
        tx_mark(tx, e->out.at[k], out_batched[k]);
        vmap_extent(tx, b, e->out.at[k]);
    }
}
bool vmap_into(Tx *tx, Builder *b, const Jaxpr *j, const Val *in, Bits batched, Val *out, bool *out_batched) {
    Span span = b->span, whole = b->whole;
    assert(batched.n == j->in.n);
    if (tx->batch.mask) find_updates(tx, j);
    add_consts(tx->cx->arena, &b->consts, j->consts);
    for (uint32_t i = 0; i < j->in.n; i++) {
        valmap_put(&tx->map, j->in.at[i], in[i]);
        tx_mark(tx, j->in.at[i], batched.at[i]);
    }
    for (uint32_t i = 0; i < j->in.n && !tx->failed; i++) vmap_extent(tx, b, j->in.at[i]);
    for (uint32_t i = 0; i < j->eqns.n && !tx->failed; i++) vmap_eqn(tx, b, &j->eqns.at[i]);
    for (uint32_t i = 0; i < j->out.n && !tx->failed; i++) {
        out[i] = vmap_written(tx, j->out.at[i]);
        out_batched[i] = tx_marked(tx, j->out.at[i]);
    }
    b->span = span, b->whole = whole;
    return !tx->failed;
}

/* ---- rules that many rows share */
bool vmap_none(Vmap *v) { return tx_error(v->tx, v->e->span, "%s has no batching rule", prim_name[v->e->prim]); }

bool vmap_point(Vmap *v) {
    const Eqn *e = v->e;
    Val *in = arena_new(v->tx->cx->arena, Val, e->in.n + 1);
    uint32_t rank = 0;
    for (uint32_t i = 0; i < e->in.n; i++)
        if (vmap_type(v, i)->rank > rank) rank = vmap_type(v, i)->rank;
    for (uint32_t i = 0; i < e->in.n; i++) in[i] = vmap_stretched(v, i, rank);
    Eqn new = vmap_axes(v, e);
    return vmap_apply(v, &new, in);
}
/* All operands have the shape of the result: scalars are no exception. */
bool vmap_alike(Vmap *v) {
    const Eqn *e = v->e;
    Val *in = arena_new(v->tx->cx->arena, Val, e->in.n + 1);
    const ArrayType *one = vmap_result_type(v, 0);
    Dim dims[MAX_RANK + 1] = {vmap_size(v)};
    if (one->rank) memcpy(dims + 1, one->dims, one->rank * sizeof *dims);
    for (uint32_t i = 0; i < e->in.n; i++) {
        Val x = vmap_stretched(v, i, one->rank);
        in[i] = b_stretch(v->b, x, one->rank + 1, dims);
    }
    return vmap_apply(v, e, in);
}
bool vmap_front(Vmap *v) {
    const Eqn *e = v->e;
    Val *in = arena_new(v->tx->cx->arena, Val, e->in.n + 1);
    for (uint32_t i = 0; i < e->in.n; i++) in[i] = vmap_operand(v, i);
    Eqn new = vmap_axes(v, e);
    return vmap_apply(v, &new, in);
}
/* Result i is operand i, placed or ordered in a way that says nothing of a batch. */
bool vmap_same(Vmap *v) {
    assert(v->e->out.n <= v->e->in.n);
    for (uint32_t i = 0; i < v->e->out.n; i++) v->out[i] = v->e->in.at[i], v->out_batched[i] = v->batched[i];
    return true;
}
/* Result i is made of operand i alone. */
bool vmap_each(Vmap *v) {
    const Eqn *e = v->e;
    assert(e->out.n == e->in.n);
    memcpy(v->out_batched, v->batched, e->out.n);
    Vals out = b_eqn(v->b, e, e->out.n, NULL);
    memcpy(v->out, out.at, out.n * sizeof *out.at);
    return !v->b->failed;
}
/* The EXPAND rule reads operands of one example. */
bool vmap_expand(Vmap *v) {
    Tx *tx = v->tx;
    Builder x = {.cx = tx->cx, .mesh = v->b->mesh, .span = v->e->span, .whole = v->e->whole};
    if (++tx->depth > MOST_DEPTH) return tx_error(tx, v->e->span, "%s: expanded too often", prim_name[v->e->prim]);
    Eqn e = *v->e;
    e.in = vals_joined(tx->cx->arena, 1, &e.in);
    for (uint32_t i = 0; i < e.in.n; i++) {
        if (!v->batched[i]) continue;
        e.in.at[i] = tx_placeholder(tx, v->read->in.at[i]);
        valmap_put(&tx->map, e.in.at[i], v->e->in.at[i]);
        tx_mark(tx, e.in.at[i], true);
    }
    if (!expand_rules[e.prim](&x, &e, v->out) || x.failed) return false;
    add_consts(tx->cx->arena, &v->b->consts, (Vals){x.consts.at, x.consts.n});
    for (uint32_t i = 0; i < x.eqns.n && !tx->failed; i++) vmap_eqn(tx, v->b, &x.eqns.at[i]);
    for (uint32_t k = 0; k < e.out.n && !tx->failed; k++) {
        v->out_batched[k] = tx_marked(tx, v->out[k]);
        v->out[k] = vmap_written(tx, v->out[k]);
    }
    tx->depth--;
    return !tx->failed;
}

/* ---- calls: of the program made for a batch */
bool vmap_call(Vmap *v) {
    Tx *tx = v->tx;
    Vals in;
    const Eqn *read = v->read;
    const Jaxpr *body = eqn_body(tx->cx->arena, v->e, &in);
    assert(body && body->in.n == v->e->in.n);
    Batched how = {.in = {v->batched, v->e->in.n}, .masked = takes_shield(tx, body)};
    how.longest_in = vmap_longest(tx, read, read->in, how.in);
    how.longest_out = vmap_longest(tx, read, read->out, (Bits){v->out_batched, read->out.n});
    const MadeVmap *m = made_vmap(tx, v->b, body, how);
    if (!m) return false;
    Vals out = vmap_results(tx, m, read->out, vmap_run(v, m, read->in, v->e->in));
    memcpy(v->out, out.at, out.n * sizeof *out.at);
    memcpy(v->out_batched, m->out.at, m->out.n);
    return !v->b->failed;
}

/* ---- select_n and clamp: operand 1 has the shape of the result, others may be scalars, which alone stretch */
static bool vmap_with_scalars(Vmap *v, uint32_t step) {
    const Eqn *e = v->e;
    const ArrayType *like = vmap_type(v, 1);
    Val *in = arena_new(v->tx->cx->arena, Val, e->in.n + 1);
    Dim dims[MAX_RANK + 1] = {vmap_size(v)};
    if (like->rank) memcpy(dims + 1, like->dims, like->rank * sizeof *dims);
    for (uint32_t i = 0; i < e->in.n; i++) {
        bool scalar = vmap_type(v, i)->rank == 0 && i % step == 0;
        if (scalar && !v->batched[i])
            in[i] = e->in.at[i];
        else if (scalar)
            in[i] = b_stretch(v->b, vmap_stretched(v, i, like->rank), like->rank + 1, dims);
        else
            in[i] = vmap_operand(v, i);
    }
    return vmap_apply(v, e, in);
}
bool vmap_select_n(Vmap *v) { return vmap_with_scalars(v, v->e->in.n); }
bool vmap_clamp(Vmap *v) { return vmap_with_scalars(v, 2); }
