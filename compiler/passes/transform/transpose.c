/* transpose: a linear program backwards. */
#include "tx.h"

TransposeRule *const transpose_rules[NPRIMS] = {
#define PRIM(id, text, arity, type, simplify, facts, jvp, transpose, vmap, lowering) [P_##id] = transpose_##transpose,
#include "../../prims.def"
};

/* ---- the program */
static bool some_linear(const Tx *tx, Vals vals) {
    bool some = false;
    each(const Val, v, vals) some |= tx_marked(tx, *v);
    return some;
}
static void transpose_eqn(Tx *tx, Builder *b, const Eqn *e) {
    Arena *arena = tx->cx->arena;
    bool *linear = arena_new(arena, bool, e->in.n + 1), some = false;
    Val *ct = arena_new(arena, Val, e->out.n + 1);
    b->span = e->span, b->whole = e->whole;
    for (uint32_t i = 0; i < e->out.n; i++) some |= (ct[i] = acc_close(tx, b, e->out.at[i])) != 0;
    if (!some || tx->failed || b->failed) return;
    for (uint32_t i = 0; i < e->in.n; i++) linear[i] = tx_marked(tx, e->in.at[i]);
    Eqn here = eqn_rewrite(&tx->map, e, NULL, NULL);
    here.out = vals_rewrite(&tx->map, e->out);
    Transpose t = {.tx = tx, .b = b, .e = &here, .read = e, .linear = linear, .ct = ct};
    if (!transpose_rules[e->prim](&t)) tx->failed = true;
}
bool transpose_into(Tx *tx, Builder *b, const Jaxpr *j, const Val *in, const Val *ct, Val *ct_in) {
    Arena *arena = tx->cx->arena;
    Span span = b->span, whole = b->whole;
    add_consts(arena, &b->consts, j->consts);
    for (uint32_t i = 0; i < j->in.n; i++) {
        tx_mark(tx, j->in.at[i], !in[i]);
        valmap_put(&tx->map, j->in.at[i], in[i] ? in[i] : tx_placeholder(tx, j->in.at[i]));
    }
    each(const Eqn, e, j->eqns) {
        bool linear = some_linear(tx, e->in);
        b->span = e->span, b->whole = e->whole;
        if (!linear) tx_copy(tx, b, e);
        each(const Val, v, e->out) {
            tx_mark(tx, *v, linear);
            if (linear) valmap_put(&tx->map, *v, tx_placeholder(tx, *v));
        }
    }
    for (uint32_t i = 0; i < j->out.n; i++) {
        Val v = j->out.at[i];
        if (tx_marked(tx, v)) acc_add(tx, v, ct[i]);
    }
    for (uint32_t i = j->eqns.n; i-- > 0;) {
        const Eqn *e = &j->eqns.at[i];
        if (some_linear(tx, e->in)) transpose_eqn(tx, b, e);
    }
    b->span = span, b->whole = whole;
    for (uint32_t i = 0; i < j->in.n; i++) ct_in[i] = in[i] ? 0 : acc_close(tx, b, j->in.at[i]);
    tx->failed |= b->failed;
    each(const Eqn, e, j->eqns)
        each(const Val, v, e->out) assert(tx->failed || acc_empty(tx, *v));
    return !tx->failed;
}

bool transpose_none(Transpose *t) {
    return tx_error(t->tx, t->e->span, "%s of this program has no transpose", prim_name[t->e->prim]);
}
