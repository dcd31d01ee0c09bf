/* while under jvp and split. */
#include "flow.h"

/* The condition as a program of the carry and its tangents, which it does not look at. */
static Inner with_tangents(Tx *tx, Builder *b, const While *w, Vals carry) {
    Inner i = b_inner_like(b, carry.n, carry.at);
    Vals in = vals_joined(tx->cx->arena, 2, (Vals[]){w->cond_consts, vals_part(i.in, 0, w->carry.n)});
    Vals y = b_call(b, w->cond, in.n, in.at);
    b_inner_end(b, &i, y.n, y.at);
    return i;
}
/* Carries: those of the loop, then the tangents of those that have one in some iteration. */
bool jvp_while(Jvp *d) {
    Tx *tx = d->tx;
    While w = while_of(d->e);
    uint32_t nb = w.body_consts.n, nc = w.carry.n, first = w.cond_consts.n;
    Bits in = taint_loop(tx, TAINT_JVP, w.body, bits_part(bits_of(tx, d->e->in.n, d->t), first, nb + nc), nb, nc);
    Bits carried = bits_part(in, nb, nc);
    if (!bits_some(carried)) return true;
    const MadeJvp *m = made_jvp(tx, d->b, w.body, in, carried, (Groups){.in = {nb}});
    if (!m) return false;
    ValList consts = {0}, carry = {0};
    add_nonzero(tx, &consts, m->program.captured.n, m->program.captured.at);
    add_nonzero(tx, &consts, nb, w.body_consts.at);
    add_nonzero(tx, &consts, nb, d->t + first);
    add_nonzero(tx, &carry, nc, w.carry.at);
    for (uint32_t i = 0; i < nc; i++)
        if (carried.at[i]) push(tx->cx->arena, &carry, jvp_tangent(d, first + nb + i));
    While new = w;
    Inner test = with_tangents(tx, d->b, &w, list_vals(carry));
    new.cond = test.j, new.cond_consts = test.captured;
    new.body = m->program.j, new.body_consts = list_vals(consts), new.carry = list_vals(carry);
    Eqn e = while_eqn(tx->cx->arena, d->e, &new);
    return jvp_run(d, &e, carried, 0);
}

bool split_while(SplitEqn *s) {
    return tx_error(s->tx, s->e->span, "the reverse-mode derivative of %s is not supported yet", prim_name[s->e->prim]);
}
