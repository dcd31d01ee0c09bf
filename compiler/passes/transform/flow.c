/* Calls, branches and loops under jvp, split and transpose: what they share. */
#include "flow.h"

Flow *flow_of(Tx *tx) {
    if (!tx->flow) {
        Arena *arena = tx->cx->arena;
        tx->flow = arena_new(arena, Flow, 1);
        *tx->flow = (Flow){.taint_keys.arena = arena,
                           .made_keys.arena = arena,
                           .origins_keys.arena = arena,
                           .written = {.cx = tx->cx, .sparse = true},
                           .effects.cx = tx->cx,
                           .whiles.cx = tx->cx,
                           .masked.cx = tx->cx,
                           .heavy.cx = tx->cx,
                           .exchanging.cx = tx->cx,
                           .shielded.cx = tx->cx,
                           .loops.cx = tx->cx,
                           .pure.arena = arena};
    }
    return tx->flow;
}

SplitRule *split_rule(Prim p) {
    static SplitRule *const rules[NPRIMS] = {[P_cond] = split_cond,
                                             [P_scan] = split_scan,
                                             [P_while] = split_while,
                                             [P_shard_map] = split_devices,
                                             [P_xla_pmap] = split_devices};
    if (rules[p]) return rules[p];
    if (prim_is(p, REMAT)) return split_remat;
    return jvp_rules[p] == jvp_call ? split_call : NULL;
}

bool has_own_rule(Prim p) {
    static const bool has[NPRIMS] = {
        [P_custom_jvp_call] = true, [P_custom_vjp_call] = true, [P_linear_call] = true, [P_custom_linear_solve] = true};
    return has[p];
}

Bits bits_of(Tx *tx, uint32_t n, const Val *vals) {
    bool *at = arena_new(tx->cx->arena, bool, n + 1);
    for (uint32_t i = 0; i < n; i++) at[i] = vals[i] != 0;
    return (Bits){at, n};
}
void add_where(Tx *tx, ValList *to, const Val *vals, Bits bits, bool want) {
    for (uint32_t i = 0; i < bits.n; i++)
        if (bits.at[i] == want) push(tx->cx->arena, to, vals[i]);
}
void add_nonzero(Tx *tx, ValList *to, uint32_t n, const Val *vals) {
    for (uint32_t i = 0; i < n; i++)
        if (vals[i]) push(tx->cx->arena, to, vals[i]);
}
Vals jvp_operands(Jvp *d, uint32_t first, Bits some) {
    Vals part = vals_part(d->e->in, first, some.n);
    Vals all = {arena_new(d->tx->cx->arena, Val, 2 * (size_t)some.n + 1), 0};
    each(const Val, v, part) all.at[all.n++] = *v;
    for (uint32_t i = 0; i < some.n; i++)
        if (some.at[i]) all.at[all.n++] = jvp_tangent(d, first + i);
    return all;
}
void put_where(Val *to, Bits bits, bool want, const Val *from) {
    for (uint32_t i = 0; i < bits.n; i++)
        if (bits.at[i] == want) to[i] = *from++;
}

Val *residual_values(Tx *tx, const MadeSplit *m, const Val *operands, const Val *results) {
    Val *vals = arena_new(tx->cx->arena, Val, m->nresiduals + 1);
    for (uint32_t i = 0; i < m->nresiduals; i++) {
        const Residual *r = &m->residuals[i];
        vals[i] = r->kind == RESIDUAL_CONST ? r->value : r->kind == RESIDUAL_INPUT ? operands[r->at] : results[r->at];
    }
    return vals;
}
const Val *take_sums(Transpose *t, uint32_t first, Bits in) {
    Val *sums = arena_new(t->tx->cx->arena, Val, in.n + 1);
    for (uint32_t i = 0; i < in.n; i++)
        if (in.at[i]) sums[i] = ct_take(t, first + i);
    return sums;
}
void give_sums(Transpose *t, uint32_t first, Bits in, const Val *sums, const Val *y) {
    for (uint32_t i = 0; i < in.n; i++) {
        if (!in.at[i]) continue;
        if (sums[i])
            ct_give(t, first + i, sums[i], *y++);
        else
            ct_add(t, first + i, *y++);
    }
}
bool worth_running(Tx *tx, const Jaxpr *j) { return j->out.n > 0 || jaxpr_has_effects(&flow_of(tx)->effects, j); }
