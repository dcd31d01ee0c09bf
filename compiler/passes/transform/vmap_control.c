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
/* Of all examples, what the first one of `p` has; zeros if there is none. */
static Val of_first(Builder *b, Val p, Val x) {
    const ArrayType t = *b_type(b, x);
    Dim more[3 * MAX_RANK] = {0, 1}, sizes[MAX_RANK] = {0};
    Val starts[MAX_RANK], n = b_dim(b, DT_i64, t.dims[0]);
    Val here = b_select(b, p, b_full(b, n, 1, t.dims), b_iota(b, DT_i64, 1, t.dims, 0));
    memcpy(sizes, t.dims, t.rank * sizeof *sizes);
    sizes[0] = 1;
    starts[0] = b_min(b, b_reduce(b, P_reduce_min, here, 1, (int64_t[]){0}), n);
    for (uint32_t d = 1; d < t.rank; d++) starts[d] = b_int(b, DT_i64, 0);
    x = b_pad(b, x, b_zeros(b, type_of(b_types(b), t.dtype, 0, NULL)), more);
    return b_stretch(b, b_dynamic_slice(b, x, starts, sizes), t.rank, t.dims);
}
/* Where NaN or indices are checked, examples that are not here do what one does that is. */
static bool is_watched(const Tx *tx) { return tx->cx->options->debug_nans || tx->cx->options->check_bounds; }
Val vmap_shielded(Tx *tx, Builder *b, Val p, Val x) {
    if (b_failed(b, x)) return VAL_FAILED;
    DtypeKind kind = dtype_info[b_type(b, x)->dtype].kind;
    bool tangent = has_tangent(tx->cx, val_type(tx->cx, x)), keeps = kind == DK_KEY || kind == DK_VOID;
    Val other = is_watched(tx) && !keeps ? of_first(b, p, x) : x;
    return tangent || other != x ? vmap_where(b, p, tangent ? b_stop_gradient(b, other) : other, x) : x;
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
    ValMap extents = {.cx = b->cx, .sparse = true};
    for (uint32_t i = 0; i < out.n && !b->failed; i++) types[i] = val_type(b->cx, out.at[i]);
    b_inner_end(b, run, out.n, out.at);
    if (b->failed) return b_failures(b, out.n);
    branches[0] = b_inner(b, 0, NULL), branches[1] = *run;
    Vals old = vals_new(arena, out.n);
    for (uint32_t i = 0; i < out.n; i++) {
        Val v = otherwise[i] ? otherwise[i] : nothing_of(b, type_rewrite(&extents, types[i]));
        if (dim_is_bound(b_types(b), out.at[i])) valmap_put(&extents, out.at[i], v = b_variable(b, v));
        vals_push(&old, v);
    }
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
/* Is carry i an input of the body that it gives back? */
static bool carry_stays(const Jaxpr *body, uint32_t first, uint32_t i) {
    return body->out.at[i] == body->in.at[first + i];
}
/* Of the operands of a loop, which are the inputs of the body; n of them, from `first` on, are the carry: where it
   changes, it is no extent. */
static Bits longest_of_loop(Vmap *v, Vals read, Bits batched, const Jaxpr *body, uint32_t first, uint32_t n) {
    Bits longest = vmap_longest(v->tx, v->read, read, batched);
    for (uint32_t i = 0; i < n; i++) ((bool *)longest.at)[first + i] &= carry_stays(body, first, i);
    return longest;
}
bool vmap_scan(Vmap *v) {
    Tx *tx = v->tx;
    const Scan s = scan_of(v->e), read = scan_of(v->read);
    uint32_t nin = v->e->in.n, first = s.consts.n;
    Bits in = taint_loop(tx, TAINT_VMAP, read.body, (Bits){v->batched, nin}, first, s.carry.n);
    bool *force = arena_new(tx->cx->arena, bool, v->e->out.n + 1);
    if (s.carry.n) memcpy(force, in.at + first, s.carry.n);
    Batched how = {.in = in, .force = {force, v->e->out.n}, .masked = takes_shield(tx, read.body)};
    how.longest_in = longest_of_loop(v, v->read->in, in, read.body, first, s.carry.n);
    const MadeVmap *m = made_vmap(tx, v->b, read.body, how);
    if (!m) return false;
    ScanIn operands = {.carry = vals_new(tx->cx->arena, s.carry.n), .xs = vals_new(tx->cx->arena, s.xs.n)};
    operands.consts = vals_joined(tx->cx->arena, 2, (Vals[]){vmap_given(tx, m, v->read->in), s.consts});
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
/* Does carry i change, for all examples alike? */
static bool runs_on(const Jaxpr *body, uint32_t first, Bits carry, uint32_t i) {
    return !carry.at[i] && !carry_stays(body, first, i);
}
/* One iteration: `all` are the carry, what carries that run on were at the end of each example, the slices and
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
    Vals new = vmap_run(v, m, v->read->in, vals_joined(arena, 3, (Vals[]){consts, in, rows}));
    tx->batch.mask = outer;
    for (uint32_t i = 0; i < n; i++)
        vals_push(&out, carry.at[i] ? carry_kept(v, p, body, first, i, old.at[i], new.at[i]) : new.at[i]);
    for (uint32_t i = 0; i < n; i++)
        if (runs_on(body, first, carry, i))
            vals_push(&out, vmap_where(b, p, *done++, vmap_broadcast(tx, b, new.at[i])));
    return vals_joined(arena, 2, (Vals[]){out, vals_part(new, n, new.n - n)});
}
/* Which inputs of the body are batched. Backwards, the iterations that an example does not have come first: a carry
   must wait for its own. */
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
   the stacks, the others change nothing. Carries that are not batched run on, as in while_apart. What is stacked by
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
    Batched made = {.in = in, .force = {force, v->e->out.n}, .masked = takes_shield(tx, read.body)};
    made.longest_in = longest_of_loop(v, v->read->in, in, read.body, first, n);
    const MadeVmap *m = made_vmap(tx, b, read.body, made);
    tx->batch.mask = outer;
    if (!m) return false;
    Vals start = vals_new(arena, 2 * n), xs = vals_new(arena, nxs + 1);
    for (uint32_t i = 0; i < n; i++) vals_push(&start, carry.at[i] ? vmap_operand(v, first + i) : s.carry.at[i]);
    for (uint32_t i = 0; i < n; i++)
        if (runs_on(read.body, first, carry, i)) vals_push(&start, vmap_broadcast(tx, b, s.carry.at[i]));
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
    for (uint32_t i = 0, k = n; i < n; i++) {
        v->out_batched[i] = carry.at[i] || runs_on(read.body, first, carry, i);
        v->out[i] = runs_on(read.body, first, carry, i) ? out.at[k++] : carry.at[i] ? out.at[i] : s.carry.at[i];
    }
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
    Bits carry;                /* which carries are batched */
    Vals read_test, read_turn; /* operands of the condition, and of the body */
    const MadeVmap *cond, *body;
} Turns;
/* Is there another iteration, for this carry? */
static Val another(const Turns *t, Vals carry) {
    Vals in = vals_joined(t->v->tx->cx->arena, 2, (Vals[]){t->now.cond_consts, vals_part(carry, 0, t->now.tested.n)});
    return vmap_run(t->v, t->cond, t->read_test, in).at[0];
}
static Vals next(const Turns *t, Vals consts, Vals carry) {
    Arena *arena = t->v->tx->cx->arena;
    Vals out = vmap_run(t->v, t->body, t->read_turn, vals_joined(arena, 2, (Vals[]){consts, carry}));
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
/* The carry is `p`, which examples are not done yet, then the carry, then what carries that are not batched were when
   each example was done, unless they stay. They run on in lockstep: every example that is not done has taken as many
   iterations. */
static bool while_apart(const Turns *t) {
    Vmap *v = t->v;
    Builder *b = v->b;
    Tx *tx = v->tx;
    uint32_t n = t->carry.n;
    Val outer = tx->batch.mask;
    Vals carry = first_carry(t), start = vals_new(tx->cx->arena, 1 + 2 * n);
    vals_push(&start, both(b, outer, another(t, carry)));
    each(const Val, x, carry) vals_push(&start, *x);
    const Jaxpr *body = t->read.body;
    uint32_t first = t->read.body_consts.n;
    for (uint32_t i = 0; i < n; i++)
        if (runs_on(body, first, t->carry, i)) vals_push(&start, vmap_broadcast(tx, b, carry.at[i]));
    if (b->failed) return false;
    Inner test = b_inner_like(b, start.n, start.at);
    Val any = any_of(b, test.in.at[0]);
    b_inner_end(b, &test, 1, &any);
    Inner turn = b_inner_like(b, start.n, start.at);
    Val p = tx->batch.mask = turn.in.at[0];
    Vals consts = all_shielded(v, p, t->now.body_consts, v->batched + t->now.cond_consts.n);
    Vals old = vals_part(turn.in, 1, n);
    Vals new = next(t, consts, carry_shielded(v, p, body, first, old, t->carry.at)),
         out = vals_new(tx->cx->arena, start.n);
    const Val *done = turn.in.at + 1 + n;
    for (uint32_t i = 0; i < n; i++)
        if (t->carry.at[i]) new.at[i] = carry_kept(v, p, body, first, i, old.at[i], new.at[i]);
    vals_push(&out, b_and(b, p, another(t, new)));
    each(const Val, x, new) vals_push(&out, *x);
    for (uint32_t i = 0; i < n; i++)
        if (runs_on(body, first, t->carry, i))
            vals_push(&out, vmap_where(b, p, *done++, vmap_broadcast(tx, b, new.at[i])));
    tx->batch.mask = outer;
    b_inner_end(b, &turn, out.n, out.at);
    Vals end = b_while(b, &test, &turn, start.n, start.at);
    for (uint32_t i = 0, k = 1 + n; i < n; i++) {
        v->out_batched[i] = t->carry.at[i] || runs_on(body, first, t->carry, i);
        v->out[i] = runs_on(body, first, t->carry, i) ? end.at[k++] : t->carry.at[i] ? end.at[1 + i] : carry.at[i];
    }
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
    t.read_turn = vals_part(v->read->in, ncond, nbody + n);
    t.read_test = vals_joined(tx->cx->arena, 2, (Vals[]){t.read.cond_consts, t.read.tested});
    Batched how = {.in = body, .force = t.carry, .masked = takes_shield(tx, t.read.body)};
    how.longest_in = longest_of_loop(v, t.read_turn, body, t.read.body, nbody, n);
    t.body = made_vmap(tx, v->b, t.read.body, how);
    tx->batch.mask = outer;
    if (!t.body) return false;
    how = (Batched){.in = tested, .force = {apart ? &every : NULL, apart}};
    how.longest_in = vmap_longest(tx, v->read, t.read_test, tested);
    t.cond = made_vmap(tx, v->b, t.read.cond, how);
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
/* A program that returns largest extents returns those that it takes, or others: then 0. */
static Val extent_taken(const Inner *i, Vals in, uint32_t k) {
    const Jaxpr *j = i->j;
    for (uint32_t n = 0; n < j->in.n; n++)
        if (j->in.at[n] == j->out.at[k]) return n < i->captured.n ? i->captured.at[n] : in.at[n - i->captured.n];
    return 0;
}
/* Does a branch compute something from floats that the examples share alone, whose derivative may be infinite or
   NaN? */
static bool computes_shared(Vmap *v, const Jaxpr *j) {
    Ctx *cx = v->tx->cx;
    Intern apart = {.arena = cx->arena};
    uint32_t k;
    for (uint32_t i = 0; i < j->in.n; i++)
        if (v->batched[1 + i]) intern(&apart, &j->in.at[i], sizeof(Val), NULL);
    each(const Eqn, e, j->eqns) {
        bool differs = false, floats = false;
        each(const Val, x, e->in) {
            differs |= intern_find(&apart, x, sizeof *x, &k);
            floats |= !val_info(cx, *x)->lit && has_tangent(cx, val_type(cx, *x));
        }
        JvpRule *rule = jvp_rules[e->prim];
        if (floats && ((!differs && rule != jvp_linear && rule != jvp_zero) || vmap_solves(e->prim))) return true;
        each(const Val, y, e->out)
            if (differs) intern(&apart, y, sizeof *y, NULL);
    }
    return false;
}
/* If no example takes the branch, what they share has no derivative there. */
static void shield_shared(Vmap *v, Vals operands) {
    Builder *b = v->b;
    Val some = 0;
    for (uint32_t i = 0; i < operands.n && !b->failed; i++) {
        Val x = operands.at[i];
        const ValInfo *info = val_info(b->cx, x);
        if (v->batched[1 + i] || info->lit || info->data || !has_tangent(b->cx, info->type)) continue;
        if (!some) some = any_of(b, v->tx->batch.mask);
        operands.at[i] = b_select(b, some, b_stop_gradient(b, x), x);
    }
}
/* What branch `m` gives for the examples of `own`. */
static Vals run_branch(Vmap *v, const Jaxpr *read, const MadeVmap *m, Val own, Vals in) {
    Tx *tx = v->tx;
    Builder *b = v->b;
    const Vals operands_read = vals_part(v->read->in, 1, in.n);
    uint32_t nout = v->e->out.n, nlongest = m->program.j->out.n - nout, at;
    Val *old = arena_new(tx->cx->arena, Val, nlongest + nout + 1), some = 0;
    bool always = tx->cx->options->branches != BRANCHES_SKIP || !jaxpr_contains(&flow_of(tx)->heavy, read, takes_long);
    always &= !is_watched(tx);
    Inner run = {0};
    if (!always) some = any_of(b, tx->batch.mask), run = b_inner(b, 0, NULL);
    Vals operands = all_shielded(v, own, in, v->batched + 1);
    assert(operands.at && in.at);
    if (always && computes_shared(v, read)) shield_shared(v, operands);
    for (uint32_t k = 0; k < nout; k++)
        if ((at = written_operand(v, k))) old[nlongest + k] = operands.at[at - 1] = in.at[at - 1];
    Vals all = vals_joined(tx->cx->arena, 2, (Vals[]){vmap_given(tx, m, operands_read), operands});
    for (uint32_t k = 0; k < nlongest; k++) old[k] = extent_taken(&m->program, all, k);
    Vals out = tx_call(tx, b, v->e, &m->program, all.n, all.at);
    return always ? out : only_if(b, some, &run, out, old);
}
/* The branches for those examples that take them. */
typedef struct {
    Vals *out;     /* the results of each */
    Val **longest; /* the largest extents of these; 0: they are none */
    Vals now;      /* the operands, with what branches have written into them */
} Apart;
static bool run_branches(Vmap *v, Bits in, Val index, Apart *a) {
    Tx *tx = v->tx;
    Builder *b = v->b;
    Arena *arena = tx->cx->arena;
    const Cond read = cond_of(v->read);
    Val outer = tx->batch.mask;
    bool *force = arena_new(arena, bool, read.out.n + 1);
    memset(force, true, read.out.n);
    Batched how = {.in = in, .force = {force, read.out.n}};
    how.longest_in = vmap_longest(tx, v->read, read.in, in),
    how.longest_out = vmap_longest(tx, v->read, read.out, how.force);
    for (uint32_t k = 0; k < read.branches.n && !b->failed; k++) {
        const Jaxpr *j = read.branches.at[k];
        Val own = b_eq(b, index, b_int(b, DT_i32, k));
        tx->batch.mask = both(b, outer, own), how.masked = takes_shield(tx, j);
        const MadeVmap *m = made_vmap(tx, b, j, how);
        if (m) a->out[k] = vmap_results(tx, m, read.out, run_branch(v, j, m, own, vals_part(a->now, 1, in.n)));
        tx->batch.mask = outer;
        if (!m) return false;
        a->longest[k] = arena_new(arena, Val, read.out.n + 1);
        for (uint32_t r = 0, at; r < read.out.n; r++) {
            if (how.longest_out.at[r]) a->longest[k][r] = valmap_get(&tx->batch.longest, read.out.at[r]);
            if ((at = written_operand(v, r)))
                a->now.at[at] = a->out[k].at[r]; /* of other examples, other branches do */
        }
    }
    return !b->failed;
}
/* Result r is an extent: the largest one of all branches; there may be no example. */
static void unite_longest(Vmap *v, const Apart *a, uint32_t n, uint32_t r) {
    Builder *b = v->b;
    Val read = v->read->out.at[r], most = b_int(b, val_array(b->cx, read)->dtype, 1);
    for (uint32_t k = 0; k < n; k++) most = b_max(b, most, a->longest[k][r]);
    valmap_put(&v->tx->batch.longest, read, most);
    valmap_put(&v->tx->map, read, most);
}
/* An array with more padding. */
static Val with_padding(Builder *b, Val x, const ArrayType *t) {
    const ArrayType *own = b_type(b, x);
    Dim config[3 * MAX_RANK] = {0};
    bool same = true;
    assert(own->rank == t->rank && t->rank <= MAX_RANK);
    for (uint32_t d = 0; d < t->rank; d++) {
        if (own->dims[d] == t->dims[d]) continue;
        config[3 * d + 1] = dim_sub(b_types(b), t->dims[d], own->dims[d]), same = false;
    }
    return same ? x : b_pad(b, x, b_number(b, t->dtype, 0), config);
}
/* Result r, of which each example has that of its branch. */
static Val of_branches(Vmap *v, const Apart *a, Val index, uint32_t n, uint32_t r) {
    Builder *b = v->b;
    const ArrayType t = *type_at(b_types(b), vmap_batched(v->tx, vmap_result_type(v, r)));
    Val *cases = arena_new(b->cx->arena, Val, n);
    if (t.dtype == DT_tok) return a->out[n - 1].at[r];
    for (uint32_t k = 0; k < n && !b->failed; k++) cases[k] = with_padding(b, a->out[k].at[r], &t);
    Val which = n == 2 ? b_convert(b, index, DT_bool) : index;
    return n == 1 ? cases[0] : b_select_n(b, b_broadcast(b, which, t.rank, t.dims, (int64_t[]){0}), n, cases);
}
/* The results of the branches, of which each example has one. */
static bool cond_apart(Vmap *v, Bits in) {
    Tx *tx = v->tx;
    Builder *b = v->b;
    Arena *arena = tx->cx->arena;
    uint32_t n = cond_of(v->read).branches.n, nout = v->e->out.n;
    Val index = v->e->in.at[0];
    Dtype d = b_type(b, index)->dtype;
    if (d == DT_bool) index = b_convert(b, index, d = DT_i32);
    index = b_clamp(b, b_int(b, d, 0), index, b_int(b, d, n - 1));
    index = b_convert(b, index, DT_i32);
    Apart a = {arena_new(arena, Vals, n), arena_new(arena, Val *, n), vals_joined(arena, 1, &v->e->in)};
    if (!run_branches(v, in, index, &a)) return false;
    for (uint32_t r = 0; r < nout; r++)
        if (a.longest[0][r]) unite_longest(v, &a, n, r);
    for (uint32_t r = 0; r < nout && !b->failed; r++)
        v->out[r] = written_operand(v, r) ? a.now.at[written_operand(v, r)] : of_branches(v, &a, index, n, r);
    return !b->failed;
}
/* The results of the cond of batched branches, of which those are batched; the largest extents come first. */
static void add_results(Vmap *v, Eqn *e, const MadeVmap *m, const bool *batched) {
    Tx *tx = v->tx;
    const Vals read = v->read->out;
    e->out = vals_new(tx->cx->arena, 2 * read.n);
    for (uint32_t k = 0; k < read.n; k++) {
        if (!m->longest_out.at[k]) continue;
        Val longest = tx_placeholder(tx, read.at[k]);
        vals_push(&e->out, longest);
        valmap_put(&tx->batch.longest, read.at[k], longest);
        valmap_put(&tx->map, read.at[k], longest);
    }
    for (uint32_t k = 0; k < read.n; k++) {
        Val out = tx_placeholder(tx, read.at[k]);
        if (batched[k]) val_info(tx->cx, out)->type = vmap_batched(tx, vmap_result_type(v, k));
        vals_push(&e->out, v->out[k] = out);
        if (!m->longest_out.at[k]) valmap_put(&tx->map, read.at[k], out); /* types of later results may name it */
    }
}
static bool cond_together(Vmap *v, Bits in) {
    Tx *tx = v->tx;
    const Cond c = cond_of(v->e), read = cond_of(v->read);
    uint32_t n = c.branches.n, nout = c.out.n;
    bool *batched = arena_new(tx->cx->arena, bool, nout + 1);
    Inner *branches = arena_new(tx->cx->arena, Inner, n);
    Batched how = {.in = in, .force = {batched, nout}, .longest_in = vmap_longest(tx, v->read, read.in, in)};
    each(Jaxpr *, j, read.branches) {
        bits_unite(batched, taint(tx, TAINT_VMAP, *j, in));
        how.masked |= takes_shield(tx, *j);
    }
    how.longest_out = vmap_longest(tx, v->read, read.out, how.force);
    const MadeVmap *m = NULL;
    for (uint32_t k = 0; k < n; k++) {
        m = made_vmap(tx, v->b, read.branches.at[k], how);
        if (!m) return false;
        branches[k] = m->program;
    }
    assert(m); /* a cond has branches */
    ValList operands = {0};
    each(const Val, x, vmap_given(tx, m, read.in)) push(tx->cx->arena, &operands, *x);
    each(const Val, x, c.in) push(tx->cx->arena, &operands, *x);
    Eqn e = cond_like(tx, v->b, v->e, branches, operands);
    add_results(v, &e, m, batched);
    push(tx->cx->arena, &v->b->eqns, e);
    memcpy(v->out_batched, batched, nout);
    return !v->b->failed;
}
bool vmap_cond(Vmap *v) {
    Bits in = {v->batched + 1, v->e->in.n - 1};
    if (!v->batched[0]) return cond_together(v, in);
    bool in_turn = v->tx->cx->options->branches == BRANCHES_EACH && !vmap_moves_padding(v);
    return in_turn ? vmap_in_turn(v) : cond_apart(v, in);
}
