/* cond under jvp and transpose; split is in split_cond.c. The index is an integer: it has no tangent. */
#include "flow.h"

Val b_variable(Builder *b, Val v) {
    bool extent = val_info(b->cx, v)->lit && !b_type(b, v)->rank;
    return extent ? build(b, P_copy, 1, &v, 0, NULL) : v;
}
static Inner *inners(Tx *tx, uint32_t n) { return arena_new(tx->cx->arena, Inner, n + 1); }
Eqn cond_like(Tx *tx, Builder *b, const Eqn *like, const Inner *branches, ValList in) {
    Cond c = cond_of(like);
    c.branches.at = arena_new(tx->cx->arena, Jaxpr *, c.branches.n);
    Vals captured = b_branches(b, c.branches.n, branches, c.branches.at);
    c.in = vals_joined(tx->cx->arena, 2, (Vals[]){captured, list_vals(in)});
    c.out = (Vals){0};
    Eqn e = cond_eqn(tx->cx->arena, like, &c);
    e.in_at = NULL, e.span = b->span, e.whole = b->whole.n ? b->whole : b->span;
    return e;
}

/* ---- jvp: the branches give tangents of all results that have one in some branch */
bool jvp_cond(Jvp *d) {
    Tx *tx = d->tx;
    Cond c = cond_of(d->e);
    Bits in = bits_of(tx, c.in.n, d->t + 1);
    bool *some = arena_new(tx->cx->arena, bool, c.out.n + 1);
    Bits out = {some, c.out.n};
    each(Jaxpr *, j, c.branches) bits_unite(some, taint(tx, TAINT_JVP, *j, in));
    if (!bits_some(out)) return true;
    Inner *branches = inners(tx, c.branches.n);
    for (uint32_t k = 0; k < c.branches.n; k++) {
        const MadeJvp *m = made_jvp(tx, d->b, c.branches.at[k], in, out, (Groups){0});
        if (!m) return false;
        branches[k] = m->program;
    }
    ValList operands = {0};
    add_nonzero(tx, &operands, c.in.n, c.in.at);
    add_nonzero(tx, &operands, c.in.n, d->t + 1);
    Eqn e = cond_like(tx, d->b, d->e, branches, operands);
    return jvp_run(d, &e, out, 0);
}

/* A cotangent has the type of the result as the branch sees it: the branch cannot take it if the equation alone, which
   has results of several branches, knows an extent. */
static bool same_extents(Transpose *t, const Cond *c) {
    Tx *tx = t->tx;
    for (uint32_t k = 0; k < c->branches.n; k++) {
        const Jaxpr *j = c->branches.at[k];
        ValMap outside = {.cx = tx->cx, .sparse = true};
        for (uint32_t i = 0; i < j->in.n; i++) valmap_put(&outside, j->in.at[i], c->in.at[i]);
        for (uint32_t i = 0; i < c->out.n; i++) {
            if (!t->ct[i]) continue;
            Type inside = type_rewrite(&outside, val_type(tx->cx, j->out.at[i]));
            if (type_plain(tx->cx->types, inside) != type_plain(tx->cx->types, val_type(tx->cx, t->ct[i])))
                return tx_error(tx, t->e->span,
                                "the reverse-mode derivative of a %s that computes extents of its results is not "
                                "supported yet",
                                prim_name[t->e->prim]);
        }
    }
    return true;
}
/* ---- transpose: the branches give cotangents of all operands that get one in some branch */
bool transpose_cond(Transpose *t) {
    Tx *tx = t->tx;
    Cond c = cond_of(t->e);
    Bits linear = {t->linear + 1, c.in.n}, ct = bits_of(tx, c.out.n, t->ct);
    bool *some = arena_new(tx->cx->arena, bool, c.in.n + 1);
    Bits in = {some, c.in.n};
    assert(!t->linear[0]);
    if (!same_extents(t, &c)) return false;
    each(Jaxpr *, j, c.branches) bits_unite(some, taint_transpose(tx, *j, linear, ct));
    if (!bits_some(in)) return true;
    Inner *branches = inners(tx, c.branches.n);
    const Val *sums = take_sums(t, 1, in);
    for (uint32_t k = 0; k < c.branches.n; k++) {
        Jaxpr *j = c.branches.at[k];
        const MadeTranspose *m = made_transpose(tx, t->b, j, linear, ct, in, bits_of(tx, c.in.n, sums));
        if (!m) return false;
        branches[k] = m->program;
    }
    ValList operands = {0}, out = {0};
    add_where(tx, &operands, c.in.at, linear, false);
    add_nonzero(tx, &operands, c.out.n, t->ct);
    add_nonzero(tx, &operands, c.in.n, sums);
    Eqn e = cond_like(tx, t->b, t->e, branches, operands);
    for (uint32_t i = 0; i < c.in.n; i++)
        if (some[i]) push(tx->cx->arena, &out, val_new(tx->cx, val_type(tx->cx, c.in.at[i]), t->b->span));
    e.out = list_vals(out);
    push(tx->cx->arena, &t->b->eqns, e);
    give_sums(t, 1, in, sums, out.at);
    return true;
}
