/* Calls under jvp, split and transpose. */
#include "flow.h"

/* ---- equations that run programs */
Vals tx_run(Tx *tx, Builder *b, const Eqn *like, Vals operands, Vals in, Vals out) {
    Arena *arena = tx->cx->arena;
    ValMap map = {.cx = tx->cx, .sparse = true};
    if (b_any_failed(b, operands.n, operands.at)) return b_failures(b, out.n);
    assert(operands.n >= in.n);
    for (uint32_t i = 0; i < in.n; i++) valmap_put(&map, in.at[i], operands.at[operands.n - in.n + i]);
    Eqn e = *like;
    e.in = operands, e.in_at = NULL, e.span = b->span, e.whole = b->whole.n ? b->whole : b->span;
    e.out = (Vals){arena_new(arena, Val, out.n + 1), out.n};
    for (uint32_t i = 0; i < out.n; i++) {
        e.out.at[i] = val_new(tx->cx, type_rewrite(&map, val_type(tx->cx, out.at[i])), b->span);
        if (valmap_get(&map, out.at[i]) == out.at[i]) valmap_put(&map, out.at[i], e.out.at[i]);
    }
    push(arena, &b->eqns, e);
    return e.out;
}
bool jvp_run(Jvp *d, const Eqn *like, Bits dt, uint32_t group) {
    Tx *tx = d->tx;
    Vals read = d->read->out;
    const uint32_t ends[] = {0, group, read.n};
    ValList out = {0};
    Eqn e = *like;
    if (d->b->failed) return false;
    for (int g = 0; g < 2; g++) {
        for (uint32_t i = ends[g]; i < ends[g + 1]; i++) {
            d->out[i] = tx_placeholder(tx, read.at[i]);
            valmap_put(&tx->map, read.at[i], d->out[i]); /* types of later results may name it */
            push(tx->cx->arena, &out, d->out[i]);
        }
        for (uint32_t i = ends[g]; i < ends[g + 1]; i++) {
            if (dt.at[i]) d->dt[i] = tx_placeholder(tx, read.at[i]);
            add_nonzero(tx, &out, 1, d->dt + i);
        }
    }
    e.in_at = NULL, e.out = list_vals(out);
    e.span = d->b->span, e.whole = d->b->whole.n ? d->b->whole : d->b->span;
    push(tx->cx->arena, &d->b->eqns, e);
    return true;
}
Vals tx_call(Tx *tx, Builder *b, const Eqn *e, const Inner *i, uint32_t n, const Val *in) {
    Arena *arena = tx->cx->arena;
    ValMap none = {.cx = tx->cx, .sparse = true};
    Vals operands = vals_joined(arena, 2, (Vals[]){i->captured, {(Val *)in, n}});
    bool plain = prim_is(e->prim, PLAIN_CALL);
    Eqn call = plain ? call_of(arena, e, i->j, operands) : eqn_call(&none, e, i->j, operands);
    assert(operands.n == i->j->in.n);
    return tx_run(tx, b, &call, operands, i->j->in, i->j->out);
}
static const Jaxpr *body_of(Tx *tx, const Eqn *e) {
    Vals in;
    const Jaxpr *body = eqn_body(tx->cx->arena, e, &in);
    assert(body && body->in.n == e->in.n);
    return body;
}

/* ---- jvp: the call of the program and its tangents along those operands that have one */
bool jvp_call(Jvp *d) {
    Tx *tx = d->tx;
    const Eqn *e = d->e;
    ValList in = {0};
    if (!e->out.n) return true;
    const MadeJvp *m = made_jvp(tx, d->b, body_of(tx, e), bits_of(tx, e->in.n, d->t), (Bits){0}, (Groups){0});
    if (!m) return false;
    if (!bits_some(m->out)) return true;
    add_nonzero(tx, &in, e->in.n, e->in.at);
    add_nonzero(tx, &in, e->in.n, d->t);
    Vals y = tx_call(tx, d->b, e, &m->program, in.n, in.at);
    memcpy(d->out, y.at, e->out.n * sizeof *y.at);
    put_where(d->dt, m->out, true, y.at + e->out.n);
    return true;
}

/* ---- split: the call of the known program, and of the rest with its residuals */
Vals split_known(SplitEqn *s, const Inner *known, Bits out) {
    ValList in = {0};
    Vals y = {0};
    add_where(s->tx, &in, s->e->in.at, (Bits){s->unknown, s->e->in.n}, false);
    if (worth_running(s->tx, known->j)) y = tx_call(s->tx, s->b, s->e, known, in.n, in.at);
    put_where(s->out, out, false, y.at);
    memcpy(s->out_unknown, out.at, out.n);
    return y;
}
bool split_unknown(SplitEqn *s, const Eqn *e, const Inner *unknown, Bits out, ValList in) {
    if (!unknown->j->out.n) return true;
    add_where(s->tx, &in, s->e->in.at, (Bits){s->unknown, s->e->in.n}, true);
    put_where(s->out, out, true, tx_call(s->tx, s->u, e, unknown, in.n, in.at).at);
    return !s->b->failed && !s->u->failed;
}
bool split_call(SplitEqn *s) {
    Tx *tx = s->tx;
    const MadeSplit *m = made_split(tx, s->b, body_of(tx, s->e), (Bits){s->unknown, s->e->in.n}, (Bits){0});
    ValList in = {0};
    if (!m) return false;
    Vals y = split_known(s, &m->known, m->out);
    add_nonzero(tx, &in, m->nresiduals, residual_values(tx, m, s->e->in.at, y.at));
    return split_unknown(s, s->e, &m->unknown, m->out, in);
}

/* ---- transpose: the call of the transposed program */
bool transpose_call(Transpose *t) {
    Tx *tx = t->tx;
    const Eqn *e = t->e;
    Bits linear = {t->linear, e->in.n}, ct = bits_of(tx, e->out.n, t->ct);
    const Jaxpr *body = body_of(tx, e);
    ValList in = {0};
    const Val *sums = take_sums(t, 0, taint_transpose(tx, body, linear, ct));
    const MadeTranspose *m = made_transpose(tx, t->b, body, linear, ct, (Bits){0}, bits_of(tx, e->in.n, sums));
    if (!m) return false;
    if (!bits_some(m->in)) return true;
    add_where(tx, &in, e->in.at, linear, false);
    add_nonzero(tx, &in, e->out.n, t->ct);
    add_nonzero(tx, &in, e->in.n, sums);
    give_sums(t, 0, m->in, sums, tx_call(tx, t->b, e, &m->program, in.n, in.at).at);
    return true;
}
