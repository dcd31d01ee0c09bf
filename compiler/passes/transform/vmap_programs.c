/* Programs made for a batch of examples: their operands and results. An extent that differs between the examples comes
   with the largest of all, which arrays have that are padded to it (vmap_extents.c). */
#include "scan.h"

static void add_extent(void *extents, Val v) { intern(extents, &v, sizeof v, NULL); }
Bits vmap_longest(Tx *tx, const Eqn *e, Vals read, Bits batched) {
    bool *at = arena_new(tx->cx->arena, bool, read.n + 1);
    Intern extents = {.arena = tx->cx->arena};
    assert(batched.n == read.n);
    each(const Val, v, e->in) type_extents(tx->cx, val_type(tx->cx, *v), add_extent, &extents);
    each(const Val, v, e->out) type_extents(tx->cx, val_type(tx->cx, *v), add_extent, &extents);
    for (uint32_t i = 0; i < read.n; i++) at[i] = batched.at[i] && is_among(&extents, read.at[i]);
    return (Bits){at, read.n};
}
bool vmap_moves_padding(const Vmap *v) {
    bool *all = arena_new(v->tx->cx->arena, bool, v->read->out.n + 1);
    memset(all, true, v->read->out.n);
    return bits_some(vmap_longest(v->tx, v->read, v->read->in, (Bits){v->batched, v->read->in.n})) ||
           bits_some(vmap_longest(v->tx, v->read, v->read->out, (Bits){all, v->read->out.n}));
}
Vals vmap_given(Tx *tx, const MadeVmap *m, Vals read) {
    Vals given = vals_new(tx->cx->arena, read.n + 1);
    if (m->masked) vals_push(&given, tx->batch.mask);
    for (uint32_t i = 0; i < m->longest_in.n; i++)
        if (m->longest_in.at[i]) vals_push(&given, valmap_get(&tx->map, read.at[i]));
    return given;
}
Vals vmap_results(Tx *tx, const MadeVmap *m, Vals read, Vals out) {
    const Val *at = out.at;
    for (uint32_t k = 0; k < read.n; k++)
        if (m->longest_out.at[k]) valmap_put(&tx->batch.longest, read.at[k], *at++);
    return vals_part(out, out.n - read.n, read.n);
}
Vals vmap_run(Vmap *v, const MadeVmap *m, Vals read, Vals in) {
    Vals all = vals_joined(v->tx->cx->arena, 2, (Vals[]){vmap_given(v->tx, m, read), in});
    return tx_call(v->tx, v->b, v->e, &m->program, all.n, all.at);
}
