/* scan under jvp, split and transpose. */
#include "scan.h"

/* The parameters that stay. */
static Loop loop_of(const Tx *tx, const Eqn *e, uint32_t carries) {
    Scan s = scan_of(e);
    Loop how = {s.length, carries, s.reverse, param_int(e, K_unroll, 1), NULL};
    Vals arrays = s.xs.n ? s.xs : s.ys; /* stacked arrays are results as read */
    if (!arrays.n) return how;
    const Types *types = tx->cx->types;
    const ArrayType *t = type_at(types, type_rewrite(&tx->map, val_type(tx->cx, arrays.at[0])));
    if (t->rank) how.length = t->dims[0];
    return how;
}
Vals scan_run(const Tx *tx, Builder *b, const Eqn *e, const Inner *turn, ScanIn in) {
    Arena *arena = b->cx->arena;
    uint32_t consts = in.consts.n;
    assert(turn->in.n == consts + in.carry.n + in.xs.n);
    Inner closed = {.j = turn->j, .in = vals_part(turn->in, consts, turn->in.n - consts)};
    closed.captured = vals_joined(arena, 2, (Vals[]){turn->captured, in.consts});
    Vals rest = vals_joined(arena, 2, (Vals[]){in.carry, in.xs});
    Loop how = loop_of(tx, e, in.carry.n);
    how.reverse ^= in.backwards;
    add_consts(arena, &b->consts, turn->captured);
    return b_scan(b, &closed, how, rest.n, rest.at);
}
void vals_push(Vals *vs, Val v) { vs->at[vs->n++] = v; }
Vals vals_new(Arena *arena, uint32_t cap) { return (Vals){arena_new(arena, Val, cap + 1), 0}; }

/* ---- what is made for loops, once for each pattern */
struct Loops {
    Intern keys;
    struct {
        const void ***at; /* slots, which stay where they are */
        uint32_t n, cap;
    } made;
};
const void **loop_slot(Tx *tx, const void *key, size_t n) {
    Arena *arena = tx->cx->arena;
    if (!tx->loops) {
        tx->loops = arena_new(arena, struct Loops, 1);
        tx->loops->keys.arena = arena;
    }
    uint32_t k = intern(&tx->loops->keys, key, n, NULL);
    if (k == tx->loops->made.n) push(arena, &tx->loops->made, arena_new(arena, const void *, 1));
    return tx->loops->made.at[k];
}

/* ---- jvp: [constants, their tangents, carry, its tangents, scanned, their tangents] */

bool jvp_scan(Jvp *d) {
    Tx *tx = d->tx;
    Arena *arena = tx->cx->arena;
    const Scan s = scan_of(d->e);
    const Jaxpr *body = scan_of(d->read).body;
    uint32_t nin = d->e->in.n, nout = d->e->out.n, first = s.consts.n;
    bool *given = arena_new(arena, bool, nin + 1), *force = arena_new(arena, bool, nout + 1);
    for (uint32_t i = 0; i < nin; i++) given[i] = d->t[i] != 0;
    Bits in = taint_loop(tx, TAINT_JVP, body, (Bits){given, nin}, first, s.carry.n);
    for (uint32_t k = 0; k < s.carry.n; k++) force[k] = in.at[first + k];
    Groups groups = {{s.consts.n, s.carry.n}, s.carry.n};
    const MadeJvp *m = made_jvp(tx, d->b, body, in, (Bits){force, nout}, groups);
    if (!m) return false;
    uint32_t nconsts = s.consts.n, ncarry = s.carry.n;
    ScanIn operands = {.consts = jvp_operands(d, 0, bits_part(in, 0, nconsts))};
    operands.carry = jvp_operands(d, nconsts, bits_part(in, nconsts, ncarry));
    operands.xs = jvp_operands(d, nconsts + ncarry, bits_part(in, nconsts + ncarry, s.xs.n));
    Vals out = scan_run(tx, d->b, d->e, &m->program, operands);
    uint32_t k = 0;
    for (uint32_t i = 0; i < s.carry.n; i++) d->out[i] = out.at[k++];
    for (uint32_t i = 0; i < s.carry.n; i++) d->dt[i] = m->out.at[i] ? out.at[k++] : 0;
    for (uint32_t i = s.carry.n; i < nout; i++) d->out[i] = out.at[k++];
    for (uint32_t i = s.carry.n; i < nout; i++) d->dt[i] = m->out.at[i] ? out.at[k++] : 0;
    return !d->b->failed;
}

/* ---- split */

static Val nth(Vals vs, uint32_t i) {
    assert(vs.at && i < vs.n);
    return vs.at[i];
}
/* The scanned operand from which an iteration gets a residual. `out`: the results of the known loop. */
static Val stacked(SplitEqn *eqn, const Store *s, const ScanIn *known, Vals out) {
    Builder *b = eqn->b;
    Vals ys = vals_part(out, known->carry.n, out.n - known->carry.n);
    Loop how = loop_of(eqn->tx, eqn->e, 0);
    switch (s->kind) {
    case STORE_SCANNED: return known->xs.at[s->at];
    case STORE_RESULT: return nth(ys, s->at);
    case STORE_BEFORE: return b_shifted(b, nth(ys, s->from), known->carry.at[s->at], !how.reverse);
    case STORE_AFTER: return b_shifted(b, nth(ys, s->from), out.at[s->at], how.reverse);
    default: break;
    }
    assert(s->kind == STORE_INDEX);
    Val first = known->carry.at[s->at], step = s->step_const ? known->consts.at[s->from] : s->step;
    return b_progression(b, first, step, how.length, how.reverse);
}
/* The operands of the unknown loop. */
static ScanIn unknown_operands(SplitEqn *s, const MadeScan *m, const ScanIn *known, Vals out) {
    Arena *arena = s->tx->cx->arena;
    const Scan read = scan_of(s->e);
    const Val *first = s->e->in.at;
    Vals consts = vals_joined(arena, 2, (Vals[]){m->known.captured, known->consts});
    Vals before = vals_joined(arena, 2, (Vals[]){consts, known->carry});
    Vals hoisted = m->hoist.j ? b_call(s->b, m->hoist.j, before.n, before.at) : (Vals){0};
    Vals invariant = vals_new(arena, m->nstores), xs = vals_new(arena, m->nstores);
    for (uint32_t i = 0; i < m->nstores; i++) {
        const Store *store = &m->stores[i];
        if (store->kind == STORE_CONST)
            vals_push(&invariant, consts.at[store->at]);
        else if (store->kind == STORE_KEPT)
            vals_push(&invariant, nth(known->carry, store->at));
        else if (store->kind == STORE_HOISTED)
            vals_push(&invariant, nth(hoisted, store->at));
        else
            vals_push(&xs, stacked(s, store, known, out));
    }
    ScanIn u = {.carry = part_where(arena, read.carry, first, m->unknown_in.at, true)};
    u.consts = vals_joined(arena, 2, (Vals[]){invariant, part_where(arena, read.consts, first, s->unknown, true)});
    u.xs = vals_joined(arena, 2, (Vals[]){xs, part_where(arena, read.xs, first, s->unknown, true)});
    return u;
}
bool split_scan(SplitEqn *s) {
    Tx *tx = s->tx;
    Arena *arena = tx->cx->arena;
    const Scan e = scan_of(s->e);
    uint32_t nin = s->e->in.n, first = e.consts.n;
    if (scan_divides(tx, &e)) return split_in_segments(s, loop_of(tx, s->e, 0).length);
    Bits unknown = taint_loop(tx, TAINT_SPLIT, e.body, (Bits){s->unknown, nin}, first, e.carry.n);
    const MadeScan *m = made_scan(tx, s->b, s->e, unknown);
    if (!m) return false;
    const Val *at = s->e->in.at;
    ScanIn known = {.consts = part_where(arena, e.consts, at, unknown.at, false)};
    known.carry = part_where(arena, e.carry, at, unknown.at, false);
    known.xs = part_where(arena, e.xs, at, unknown.at, false);
    if (m->extents.j) {
        Vals in = vals_joined(arena, 3, (Vals[]){m->known.captured, known.consts, known.carry});
        Vals extents = b_call(s->b, m->extents.j, in.n, in.at);
        known.consts = vals_joined(arena, 2, (Vals[]){extents, known.consts});
    }
    Vals out = scan_run(tx, s->b, s->e, &m->known, known);
    if (s->b->failed) return false;
    ScanIn rest = unknown_operands(s, m, &known, out);
    Vals late = s->b->failed ? (Vals){0} : scan_run(tx, s->u, s->e, &m->unknown, rest);
    if (s->b->failed || s->u->failed) return false;
    for (uint32_t i = 0, k = 0, l = 0; i < s->e->out.n; i++) {
        s->out_unknown[i] = m->out.at[i];
        s->out[i] = m->out.at[i] ? late.at[l++] : out.at[k++];
    }
    return true;
}
