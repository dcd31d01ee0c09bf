/* cond, while and scan for a batch of examples. Only what depends on batched values is batched. */
#include "../../options.h"
#include "scan.h"

/* ---- masks: which of the examples take a branch, or are not done yet */

Type mask_type(const Tx *tx) { return type_of(tx->cx->types, DT_bool, 1, &tx->batch.size); }
static Val both(Builder *b, Val p, Val q) { return !p ? q : !q ? p : b_and(b, p, q); }
Val vmap_where(Builder *b, Val p, Val old, Val new) {
    if (b_failed(b, new) || old == new) return new;
    const ArrayType *t = b_type(b, old);
    if (t->dtype == DT_tok) return new;
    return b_select(b, b_broadcast(b, p, t->rank, t->dims, (int64_t[]){0}), old, new);
}
Val vmap_kept(const Vmap *v, Val old, Val new) { return vmap_where(v->b, v->tx->batch.mask, old, new); }
Val vmap_shielded(Tx *tx, Builder *b, Val p, Val x) {
    return has_tangent(tx->cx, val_type(tx->cx, x)) ? vmap_where(b, p, b_stop_gradient(b, x), x) : x;
}
static Vals all_shielded(Vmap *v, Val p, Vals in, const bool *batched) {
    Vals out = vals_new(v->tx->cx->arena, in.n);
    for (uint32_t i = 0; i < in.n; i++)
        vals_push(&out, batched[i] ? vmap_shielded(v->tx, v->b, p, in.at[i]) : in.at[i]);
    return out;
}
/* The carry of a loop's body, in which arrays that it writes into are shielded where they are read; the next carry, for
   the examples of `p`. Of carries that are not batched nothing is kept. */
static bool keeps_carry(Vmap *v, const Jaxpr *body, uint32_t first, uint32_t i) {
    return updated_input(v->tx, body, i) == first + i;
}
static Vals carry_shielded(Vmap *v, Val p, const Jaxpr *body, uint32_t first, Vals old, const bool *batched) {
    Vals out = all_shielded(v, p, old, batched);
    for (uint32_t i = 0; i < old.n; i++)
        if (keeps_carry(v, body, first, i)) out.at[i] = old.at[i];
    return out;
}
static Val carry_kept(Vmap *v, Val p, const Jaxpr *body, uint32_t first, uint32_t i, Val old, Val new) {
    return keeps_carry(v, body, first, i) ? new : vmap_where(v->b, p, old, new);
}
static Val nothing_of(Builder *b, Type t) {
    bool token = type_at(b_types(b), t)->dtype == DT_tok;
    return token ? build_many(b, P_create_token, 0, NULL, 0, NULL, 1, &t).at[0] : b_zeros(b, t);
}
/* The results of what is written between b_inner and this if `some`, else `otherwise`; 0: zeros. */
static Vals only_if(Builder *b, Val some, Inner *run, Vals out, const Val *otherwise) {
    Arena *arena = b->cx->arena;
    Inner branches[2] = {0};
    Type *types = arena_new(arena, Type, out.n + 1);
    for (uint32_t i = 0; i < out.n && !b->failed; i++) types[i] = val_type(b->cx, out.at[i]);
    b_inner_end(b, run, out.n, out.at);
    if (b->failed) return b_failures(b, out.n);
    branches[0] = b_inner(b, 0, NULL), branches[1] = *run;
    Vals old = vals_new(arena, out.n);
    for (uint32_t i = 0; i < out.n; i++) vals_push(&old, otherwise[i] ? otherwise[i] : nothing_of(b, types[i]));
    b_inner_end(b, &branches[0], old.n, old.at);
    return b_cond(b, some, 2, branches, 0, NULL);
}
static Val any_of(Builder *b, Val p) { return b_reduce(b, P_reduce_or, p, 1, (int64_t[]){0}); }

/* ---- scan */
/* The axis of the examples and that of the iterations, exchanged. */
static Val exchanged(Builder *b, Val x) {
    int64_t order[MAX_RANK + 1] = {1, 0};
    if (b_failed(b, x)) return VAL_FAILED;
    for (uint32_t d = 2; d < b_type(b, x)->rank; d++) order[d] = d;
    return b_transpose(b, x, order);
}
static Type row_type(const Builder *b, Val stack) {
    const ArrayType *t = b_type(b, stack);
    return type_of(b->cx->types, t->dtype, t->rank - 1, t->dims + 1);
}
bool vmap_scan(Vmap *v) {
    Tx *tx = v->tx;
    const Scan s = scan_of(v->e), read = scan_of(v->read);
    uint32_t nin = v->e->in.n, first = s.consts.n;
    Bits in = taint_loop(tx, TAINT_VMAP, read.body, (Bits){v->batched, nin}, first, s.carry.n);
    bool *force = arena_new(tx->cx->arena, bool, v->e->out.n + 1);
    if (s.carry.n) memcpy(force, in.at + first, s.carry.n);
    const MadeVmap *m = made_vmap(tx, v->b, read.body, in, (Bits){force, v->e->out.n}, takes_shield(tx, read.body));
    if (!m) return false;
    ScanIn operands = {
        .consts = s.consts, .carry = vals_new(tx->cx->arena, s.carry.n), .xs = vals_new(tx->cx->arena, s.xs.n)};
    if (m->masked) operands.consts = vals_joined(tx->cx->arena, 2, (Vals[]){{&tx->batch.mask, 1}, s.consts});
    for (uint32_t i = first; i < first + s.carry.n; i++)
        vals_push(&operands.carry, in.at[i] ? vmap_operand(v, i) : v->e->in.at[i]);
    for (uint32_t i = first + s.carry.n; i < nin; i++)
        vals_push(&operands.xs, v->batched[i] ? exchanged(v->b, v->e->in.at[i]) : v->e->in.at[i]);
    Eqn one = *v->e;
    one.in = v->read->in; /* their types say how many iterations there are */
    Vals out = scan_run(tx, v->b, &one, &m->program, operands);
    for (uint32_t k = 0; k < out.n; k++) {
        v->out_batched[k] = m->out.at[k];
        v->out[k] = m->out.at[k] && k >= s.carry.n ? exchanged(v->b, out.at[k]) : out.at[k];
    }
    return !v->b->failed;
}
/* One iteration: `all` are the carry, what carries that are not batched were at the end of each example, the slices and
   the number of the iteration. */
static Vals turn_apart(Vmap *v, const MadeVmap *m, Bits carry, Val turns, Vals all) {
    Tx *tx = v->tx;
    Builder *b = v->b;
    Arena *arena = tx->cx->arena;
    const Scan s = scan_of(v->e);
    const Jaxpr *body = scan_of(v->read).body;
    uint32_t n = s.carry.n, nxs = s.xs.n, first = s.consts.n, ndone = all.n - n - nxs - 1;
    Val outer = tx->batch.mask, p = both(b, outer, b_lt(b, vmap_broadcast(tx, b, all.at[all.n - 1]), turns));
    const Val *done = all.at + n;
    Vals old = vals_part(all, 0, n), out = vals_new(arena, n + ndone + v->e->out.n);
    tx->batch.mask = p;
    Vals consts = all_shielded(v, p, s.consts, v->batched);
    Vals in = carry_shielded(v, p, body, first, old, carry.at);
    Vals rows = all_shielded(v, p, vals_part(all, n + ndone, nxs), v->batched + first + n);
    Vals new = vmap_run(v, m, vals_joined(arena, 3, (Vals[]){consts, in, rows}));
    tx->batch.mask = outer;
    for (uint32_t i = 0; i < n; i++)
        vals_push(&out, carry.at[i] ? carry_kept(v, p, body, first, i, old.at[i], new.at[i]) : new.at[i]);
    for (uint32_t i = 0; i < n; i++)
        if (!carry.at[i]) vals_push(&out, vmap_where(b, p, *done++, vmap_broadcast(tx, b, new.at[i])));
    return vals_joined(arena, 2, (Vals[]){out, vals_part(new, n, new.n - n)});
}
/* Which inputs of the body are batched. Backwards, the iterations that an example does not have come first: a carry must
   wait for its own. */
static Bits inputs_apart(Vmap *v) {
    const Scan read = scan_of(v->read);
    uint32_t first = read.consts.n;
    Bits in = bits_copy(v->tx, (Bits){v->batched, v->read->in.n});
    bool *carry = (bool *)in.at + first;
    for (uint32_t k = 0; k < read.carry.n && read.reverse; k++)
        carry[k] |= read.body->out.at[k] != read.body->in.at[first + k];
    return taint_loop(v->tx, TAINT_VMAP, read.body, in, first, read.carry.n);
}
/* Its iterations are as many as the example with the most of them has: those of an example come first, in the order of
   the stacks, the others change nothing. Carries that are not batched run on, as those of while_apart. What is stacked by
   the iterations that the example does not have is padding. */
bool vmap_scan_apart(Vmap *v) {
    Tx *tx = v->tx;
    Builder *b = v->b;
    Arena *arena = tx->cx->arena;
    const Scan s = scan_of(v->e), read = scan_of(v->read);
    uint32_t first = s.consts.n, n = s.carry.n, nxs = s.xs.n;
    Val outer = tx->batch.mask, turns = vmap_length(v, scan_length(tx->cx, &read));
    if (b->failed || !turns) return false;
    Bits in = inputs_apart(v), carry = bits_part(in, first, n);
    bool *force = arena_new(arena, bool, v->e->out.n + 1);
    if (n) memcpy(force, carry.at, n);
    if (!outer) tx->batch.mask = val_new(tx->cx, mask_type(tx), b->span); /* that of each iteration */
    const MadeVmap *m = made_vmap(tx, b, read.body, in, (Bits){force, v->e->out.n}, takes_shield(tx, read.body));
    tx->batch.mask = outer;
    if (!m) return false;
    Vals start = vals_new(arena, 2 * n), xs = vals_new(arena, nxs + 1);
    for (uint32_t i = 0; i < n; i++) vals_push(&start, carry.at[i] ? vmap_operand(v, first + i) : s.carry.at[i]);
    for (uint32_t i = 0; i < n; i++)
        if (!carry.at[i]) vals_push(&start, vmap_broadcast(tx, b, s.carry.at[i]));
    for (uint32_t i = 0; i < nxs; i++)
        vals_push(&xs, v->batched[first + n + i] ? exchanged(b, s.xs.at[i]) : s.xs.at[i]);
    Loop how = {vmap_dim(tx, scan_length(tx->cx, &read)), start.n, s.reverse, param_int(v->e, K_unroll, 1), NULL};
    vals_push(&xs, b_iota(b, DT_i64, 1, &how.length, 0));
    if (b->failed) return false;
    Type *types = arena_new(arena, Type, start.n + xs.n);
    for (uint32_t i = 0; i < start.n; i++) types[i] = val_type(tx->cx, start.at[i]);
    for (uint32_t i = 0; i < xs.n; i++) types[start.n + i] = row_type(b, xs.at[i]);
    Inner turn = b_inner(b, start.n + xs.n, types);
    Vals out = turn_apart(v, m, carry, turns, turn.in), all = vals_joined(arena, 2, (Vals[]){start, xs});
    b_inner_end(b, &turn, out.n, out.at);
    out = b_scan(b, &turn, how, all.n, all.at);
    for (uint32_t i = 0, k = n; i < n; i++) v->out[i] = out.at[carry.at[i] ? i : k++];
    for (uint32_t k = n; k < v->e->out.n; k++) {
        Val y = out.at[start.n + k - n];
        v->out_batched[k] = m->out.at[k];
        v->out[k] = m->out.at[k] ? exchanged(b, y) : y;
    }
    return !b->failed;
}

/* ---- the equation as read, for one example after the other; not for those that are not really here */
bool vmap_in_turn(Vmap *v) {
    Tx *tx = v->tx;
    Builder *b = v->b;
    Arena *arena = tx->cx->arena;
    uint32_t n = v->e->in.n, nout = v->e->out.n;
    Vals in = vals_new(arena, n + 1);
    Type *one = arena_new(arena, Type, n + 1), *types = arena_new(arena, Type, nout + 1);
    Val mask = tx->batch.mask;
    if (mask) vals_push(&in, mask), one[0] = type_of(b_types(b), DT_bool, 0, NULL);
    for (uint32_t i = 0; i < n; i++) {
        if (!v->batched[i]) continue;
        one[in.n] = type_rewrite(&tx->map, val_type(tx->cx, v->read->in.at[i]));
        vals_push(&in, v->e->in.at[i]);
    }
    for (uint32_t k = 0; k < nout; k++) types[k] = type_rewrite(&tx->map, val_type(tx->cx, v->read->out.at[k]));
    Inner turn = b_inner(b, in.n, one), run;
    Eqn e = *v->e;
    e.in = vals_joined(arena, 1, &e.in);
    for (uint32_t i = 0, k = mask != 0; i < n; i++)
        if (v->batched[i]) e.in.at[i] = turn.in.at[k++];
    if (mask) run = b_inner(b, 0, NULL);
    Vals out = b_eqn(b, &e, nout, types);
    Val *old = arena_new(arena, Val, nout + 1);
    for (uint32_t k = 0; k < nout; k++) {
        uint32_t at = updated_operand(tx, v->read, k);
        old[k] = at == NOT_UPDATED ? 0 : e.in.at[at];
    }
    if (mask) out = only_if(b, turn.in.at[0], &run, out, old);
    b_inner_end(b, &turn, out.n, out.at);
    out = b_scan(b, &turn, (Loop){.length = vmap_size(v)}, in.n, in.at);
    if (nout) memcpy(v->out, out.at, nout * sizeof *out.at);
    return !b->failed;
}

/* ---- while */
typedef struct {
    Vmap *v;
    While now, read;
    Bits carry; /* which carries are batched */
    const MadeVmap *cond, *body;
} Turns;
/* Is there another iteration, for this carry? */
static Val another(const Turns *t, Vals carry) {
    Vals in = vals_joined(t->v->tx->cx->arena, 2, (Vals[]){t->now.cond_consts, vals_part(carry, 0, t->now.tested.n)});
    return vmap_run(t->v, t->cond, in).at[0];
}
static Vals next(const Turns *t, Vals consts, Vals carry) {
    Arena *arena = t->v->tx->cx->arena;
    Vals out = vmap_run(t->v, t->body, vals_joined(arena, 2, (Vals[]){consts, carry}));
    return vals_joined(arena, 1, &out);
}
static Vals first_carry(const Turns *t) {
    Vmap *v = t->v;
    uint32_t at = v->e->in.n - t->carry.n;
    Vals carry = vals_new(v->tx->cx->arena, t->carry.n);
    for (uint32_t i = 0; i < t->carry.n; i++)
        vals_push(&carry, t->carry.at[i] ? vmap_operand(v, at + i) : v->e->in.at[at + i]);
    return carry;
}
/* All examples take as many iterations. */
static bool while_together(const Turns *t) {
    Vmap *v = t->v;
    Builder *b = v->b;
    Vals carry = first_carry(t);
    Inner test = b_inner_like(b, carry.n, carry.at);
    Val more = another(t, test.in);
    b_inner_end(b, &test, 1, &more);
    Inner turn = b_inner_like(b, carry.n, carry.at);
    b_inner_end(b, &turn, carry.n, next(t, t->now.body_consts, turn.in).at);
    Vals end = b_while(b, &test, &turn, carry.n, carry.at);
    memcpy(v->out, end.at, end.n * sizeof *end.at);
    memcpy(v->out_batched, t->carry.at, t->carry.n);
    return !b->failed;
}
/* The carry is `p`, which examples are not done yet, then the carry, then what carries that are not batched were when each
   example was done. Those run on in lockstep: every example that is not done has taken as many iterations. */
static bool while_apart(const Turns *t) {
    Vmap *v = t->v;
    Builder *b = v->b;
    Tx *tx = v->tx;
    uint32_t n = t->carry.n;
    Val outer = tx->batch.mask;
    Vals carry = first_carry(t), start = vals_new(tx->cx->arena, 1 + 2 * n);
    vals_push(&start, both(b, outer, another(t, carry)));
    each(const Val, x, carry) vals_push(&start, *x);
    for (uint32_t i = 0; i < n; i++)
        if (!t->carry.at[i]) vals_push(&start, vmap_broadcast(tx, b, carry.at[i]));
    if (b->failed) return false;
    Inner test = b_inner_like(b, start.n, start.at);
    Val any = any_of(b, test.in.at[0]);
    b_inner_end(b, &test, 1, &any);
    Inner turn = b_inner_like(b, start.n, start.at);
    Val p = tx->batch.mask = turn.in.at[0];
    Vals consts = all_shielded(v, p, t->now.body_consts, v->batched + t->now.cond_consts.n);
    const Jaxpr *body = t->read.body;
    uint32_t first = t->read.body_consts.n;
    Vals old = vals_part(turn.in, 1, n);
    Vals new = next(t, consts, carry_shielded(v, p, body, first, old, t->carry.at)),
         out = vals_new(tx->cx->arena, start.n);
    const Val *done = turn.in.at + 1 + n;
    for (uint32_t i = 0; i < n; i++)
        if (t->carry.at[i]) new.at[i] = carry_kept(v, p, body, first, i, old.at[i], new.at[i]);
    vals_push(&out, b_and(b, p, another(t, new)));
    each(const Val, x, new) vals_push(&out, *x);
    for (uint32_t i = 0; i < n; i++)
        if (!t->carry.at[i]) vals_push(&out, vmap_where(b, p, *done++, vmap_broadcast(tx, b, new.at[i])));
    tx->batch.mask = outer;
    b_inner_end(b, &turn, out.n, out.at);
    Vals end = b_while(b, &test, &turn, start.n, start.at);
    for (uint32_t i = 0, k = 1 + n; i < n; i++) v->out[i] = t->carry.at[i] ? end.at[1 + i] : end.at[k++];
    return !b->failed;
}
static Bits tested_by(const Turns *t) {
    uint32_t ncond = t->now.cond_consts.n, n = t->now.tested.n;
    bool *test = arena_new(t->v->tx->cx->arena, bool, ncond + n + 1);
    memcpy(test, t->v->batched, ncond);
    memcpy(test + ncond, t->carry.at, n);
    return (Bits){test, ncond + n};
}
/* Arrays that the body writes into, which in lockstep would be kept as a whole for each example when it is done. */
static Bits with_written(Vmap *v, const Jaxpr *body, Bits in, uint32_t first, uint32_t n) {
    Bits all = bits_copy(v->tx, in);
    for (uint32_t i = 0; i < n; i++) ((bool *)all.at)[first + i] |= updated_input(v->tx, body, i) == first + i;
    return taint_loop(v->tx, TAINT_VMAP, body, all, first, n);
}
bool vmap_while(Vmap *v) {
    Tx *tx = v->tx;
    Turns t = {.v = v, .now = while_of(v->e), .read = while_of(v->read)};
    uint32_t ncond = t.now.cond_consts.n, nbody = t.now.body_consts.n, n = t.now.carry.n;
    bool every = true;
    Bits body = bits_part((Bits){v->batched, v->e->in.n}, ncond, nbody + n);
    body = taint_loop(tx, TAINT_VMAP, t.read.body, body, nbody, n);
    t.carry = bits_part(body, nbody, n);
    bool apart = taint(tx, TAINT_VMAP, t.read.cond, tested_by(&t)).at[0];
    if (apart) {
        body = with_written(v, t.read.body, body, nbody, n);
        t.carry = bits_part(body, nbody, n);
    }
    Bits tested = tested_by(&t);
    Val outer = tx->batch.mask;
    if (apart && !outer) { /* the body's mask: p of each iteration */
        tx->batch.mask = val_new(tx->cx, mask_type(tx), v->b->span);
    }
    t.body = made_vmap(tx, v->b, t.read.body, body, t.carry, takes_shield(tx, t.read.body));
    tx->batch.mask = outer;
    t.cond = t.body ? made_vmap(tx, v->b, t.read.cond, tested, (Bits){apart ? &every : NULL, apart}, false) : NULL;
    return t.cond && (apart ? while_apart(&t) : while_together(&t));
}

/* ---- cond */
/* Does it take so long that it had better not run for nothing? */
static bool takes_long(const Eqn *e, Jaxprs within) {
    static const bool how[] = {[LOWER_WHILE] = true, [LOWER_SCAN] = true, [LOWER_DOT] = true, [LOWER_EXPAND] = true};
    Lower lower = prim_lower[e->prim];
    return lower < sizeof how && how[lower];
}
/* The operand of the branches into which they write result k, of the examples that take them; 0: none. */
static uint32_t written_operand(Vmap *v, uint32_t k) {
    uint32_t at = updated_operand(v->tx, v->read, k);
    return at != NOT_UPDATED && v->batched[at] ? at : 0;
}
/* The results of branch `m` for the examples of `own`. */
static Vals run_branch(Vmap *v, const Jaxpr *read, const MadeVmap *m, Val own, Vals in) {
    Tx *tx = v->tx;
    Builder *b = v->b;
    uint32_t nout = v->e->out.n, at;
    Val *old = arena_new(tx->cx->arena, Val, nout + 1), some = 0;
    bool always = tx->cx->options->branches != BRANCHES_SKIP || !jaxpr_contains(&flow_of(tx)->heavy, read, takes_long);
    Inner run = {0};
    if (!always) some = any_of(b, tx->batch.mask), run = b_inner(b, 0, NULL);
    Vals operands = all_shielded(v, own, in, v->batched + 1);
    assert(operands.at && in.at);
    for (uint32_t k = 0; k < nout; k++)
        if ((at = written_operand(v, k))) old[k] = operands.at[at - 1] = in.at[at - 1];
    Vals out = vmap_run(v, m, operands);
    return always ? out : only_if(b, some, &run, out, old);
}
/* The results of the branches, of which each example has one. */
static bool cond_apart(Vmap *v, Bits in) {
    Tx *tx = v->tx;
    Builder *b = v->b;
    Arena *arena = tx->cx->arena;
    const Cond read = cond_of(v->read);
    uint32_t n = read.branches.n, nout = read.out.n;
    Val index = v->e->in.at[0], outer = tx->batch.mask;
    Dtype d = b_type(b, index)->dtype;
    if (d == DT_bool) index = b_convert(b, index, d = DT_i32);
    index = b_clamp(b, b_int(b, d, 0), index, b_int(b, d, n - 1));
    index = b_convert(b, index, DT_i32);
    bool *force = arena_new(arena, bool, nout + 1);
    memset(force, true, nout);
    Vals *out = arena_new(arena, Vals, n), now = vals_joined(arena, 1, &v->e->in);
    for (uint32_t k = 0; k < n && !b->failed; k++) {
        Val own = b_eq(b, index, b_int(b, DT_i32, k));
        tx->batch.mask = both(b, outer, own);
        const MadeVmap *m =
            made_vmap(tx, b, read.branches.at[k], in, (Bits){force, nout}, takes_shield(tx, read.branches.at[k]));
        if (m) out[k] = run_branch(v, read.branches.at[k], m, own, vals_part(now, 1, in.n));
        tx->batch.mask = outer;
        if (!m) return false;
        for (uint32_t r = 0, at; r < nout; r++) /* which other branches write into, for other examples */
            if ((at = written_operand(v, r))) now.at[at] = out[k].at[r];
    }
    for (uint32_t r = 0; r < nout && !b->failed; r++) {
        if (written_operand(v, r)) {
            v->out[r] = now.at[written_operand(v, r)];
            continue;
        }
        Val *cases = arena_new(arena, Val, n);
        for (uint32_t k = 0; k < n; k++) cases[k] = out[k].at[r];
        const ArrayType *t = b_type(b, cases[0]);
        if (t->dtype == DT_tok) {
            v->out[r] = cases[n - 1];
            continue;
        }
        Val which = n == 2 ? b_convert(b, index, DT_bool) : index;
        v->out[r] =
            n == 1 ? cases[0] : b_select_n(b, b_broadcast(b, which, t->rank, t->dims, (int64_t[]){0}), n, cases);
    }
    return !b->failed;
}
static bool cond_together(Vmap *v, Bits in) {
    Tx *tx = v->tx;
    const Cond c = cond_of(v->e), read = cond_of(v->read);
    uint32_t n = c.branches.n, nout = c.out.n;
    bool *batched = arena_new(tx->cx->arena, bool, nout + 1), masked = false;
    Inner *branches = arena_new(tx->cx->arena, Inner, n);
    each(Jaxpr *, j, read.branches) {
        bits_unite(batched, taint(tx, TAINT_VMAP, *j, in));
        masked |= takes_shield(tx, *j);
    }
    masked &= tx->batch.mask != 0;
    for (uint32_t k = 0; k < n; k++) {
        const MadeVmap *m = made_vmap(tx, v->b, read.branches.at[k], in, (Bits){batched, nout}, masked);
        if (!m) return false;
        branches[k] = m->program;
    }
    ValList operands = {0};
    if (masked) push(tx->cx->arena, &operands, tx->batch.mask);
    each(const Val, x, c.in) push(tx->cx->arena, &operands, *x);
    Eqn e = cond_like(tx, v->b, v->e, branches, operands);
    e.out = vals_new(tx->cx->arena, nout);
    for (uint32_t k = 0; k < nout; k++) {
        Val out = tx_placeholder(tx, v->read->out.at[k]);
        if (batched[k]) val_info(tx->cx, out)->type = vmap_batched(tx, vmap_result_type(v, k));
        vals_push(&e.out, v->out[k] = out);
        valmap_put(&tx->map, v->read->out.at[k], out); /* types of later results may name it */
    }
    push(tx->cx->arena, &v->b->eqns, e);
    memcpy(v->out_batched, batched, nout);
    return !v->b->failed;
}
bool vmap_cond(Vmap *v) {
    Bits in = {v->batched + 1, v->e->in.n - 1};
    if (!v->batched[0]) return cond_together(v, in);
    return v->tx->cx->options->branches == BRANCHES_EACH ? vmap_in_turn(v) : cond_apart(v, in);
}
