/* Functions with rules of their own for a batch of examples: the rules are batched with them, so that derivatives of
   the batch follow them. */
#include "flow.h"
#include "rules.h"

static bool float_value(const Tx *tx, Val v) { return has_tangent(tx->cx, val_type(tx->cx, v)); }
static Bits bits_new(Tx *tx, uint32_t n) { return (Bits){arena_new(tx->cx->arena, bool, n + 1), n}; }
static void bit_push(Bits *b, bool bit) { ((bool *)b->at)[b->n++] = bit; }

/* ---- custom_jvp_call, custom_vjp_call: constants of the body, then the operands of the rules */
typedef struct {
    Vmap *v;
    CustomRule rule;
    uint32_t first; /* the first operand of the rules */
    bool *out;      /* by result: is it batched? */
} Custom;
static Bits batched_of(const Custom *c) { return (Bits){c->v->batched + c->first, c->v->e->in.n - c->first}; }
/* The operands, then their tangents or those of results: batched as what they belong to. */
static void add_floats(const Custom *c, Bits *to, Vals like, const bool *batched) {
    for (uint32_t i = 0; i < like.n; i++)
        if (float_value(c->v->tx, like.at[i])) bit_push(to, batched[i]);
}
static Vals read_operands(const Custom *c) { return vals_part(c->v->read->in, c->first, c->v->read->in.n - c->first); }
/* Results are batched if they are so in the body or, with their tangents, in the rule. */
static void unite_results(Custom *c, const Jaxpr *body, const Jaxpr *rule, Bits rule_in) {
    Tx *tx = c->v->tx;
    const Vals results = c->v->read->out;
    bits_unite(c->out, taint(tx, TAINT_VMAP, body, (Bits){c->v->batched, c->v->e->in.n}));
    Bits of_rule = taint(tx, TAINT_VMAP, rule, rule_in);
    bits_unite(c->out, bits_part(of_rule, 0, results.n));
    for (uint32_t i = 0, k = results.n; i < results.n && c->rule.jvp; i++)
        if (float_value(tx, results.at[i])) c->out[i] |= of_rule.at[k++];
}
/* The equation with the body and rules for a batch. */
static bool write_custom(Custom *c, const Jaxpr *body, uint32_t n, const Param *rules) {
    Vmap *v = c->v;
    Tx *tx = v->tx;
    Arena *arena = tx->cx->arena;
    const MadeVmap *m = made_vmap(
        tx, v->b, body,
        (Batched){.in = {v->batched, v->e->in.n}, .force = {c->out, v->e->out.n}, .masked = takes_mask(tx, body)});
    if (!m) return false;
    Vals given = vals_part(v->e->in, 0, c->first), mask = {&tx->batch.mask, m->masked};
    Vals consts = vals_joined(arena, 3, (Vals[]){m->program.captured, mask, given});
    Vals operands = vals_part(v->e->in, c->first, v->e->in.n - c->first);
    Eqn e = custom_call_eqn(arena, v->e, m->program.j, consts, operands, (Params){(Param *)rules, n});
    Vals out = tx_run(tx, v->b, &e, e.in, m->program.j->in, m->program.j->out);
    memcpy(v->out, out.at, out.n * sizeof *out.at);
    memcpy(v->out_batched, c->out, v->e->out.n);
    return !v->b->failed;
}
/* The rule for a batch. Rules hold the calls that they are for, so that these find them again; in a rule they stay
   without one, to be known by their form. */
static const MadeVmap *made_rule(Vmap *v, const Jaxpr *rule, Bits in, Bits force) {
    Tx *tx = v->tx;
    bool before = tx->batch.in_rule;
    tx->batch.in_rule = true;
    const MadeVmap *m = made_vmap(tx, v->b, rule, (Batched){.in = in, .force = force});
    tx->batch.in_rule = before;
    return m;
}
static bool batch_jvp(Custom *c, const Jaxpr *body) {
    Tx *tx = c->v->tx;
    const Vals results = c->v->read->out;
    Bits own = batched_of(c), in = bits_new(tx, 2 * own.n), force = bits_new(tx, 2 * results.n);
    in.n = force.n = 0;
    each(const bool, bit, own) bit_push(&in, *bit);
    add_floats(c, &in, read_operands(c), own.at);
    unite_results(c, body, c->rule.jvp, in);
    for (uint32_t i = 0; i < results.n; i++) bit_push(&force, c->out[i]);
    add_floats(c, &force, results, c->out);
    const MadeVmap *m = made_rule(c->v, c->rule.jvp, in, force);
    if (!m) return false;
    if (m->program.captured.n) return vmap_call(c->v);
    Param rule = p_jaxpr(K_jvp_jaxpr, m->program.j);
    return write_custom(c, body, 1, &rule);
}

/* A program from residuals and cotangents, of which the first of these bits are for the residuals, to cotangents of
   values that are batched as `primals` says: what belongs to one that is not is summed over the examples. */
static Jaxpr *batch_backwards(Vmap *v, const Jaxpr *back, Bits in, Bits primals) {
    Tx *tx = v->tx;
    Builder *b = v->b;
    const MadeVmap *m = made_rule(v, back, in, primals);
    if (!m || m->program.captured.n) return NULL;
    const Jaxpr *j = m->program.j;
    bool same = true;
    for (uint32_t i = 0; i < primals.n; i++) same &= m->out.at[i] == primals.at[i];
    if (same) return m->program.j;
    Inner sums = b_inner_like(b, j->in.n, j->in.at);
    Val *out = arena_new(tx->cx->arena, Val, j->out.n + 1);
    Vals all = b_jit(b, j->name, &m->program, sums.in.n, sums.in.at);
    for (uint32_t i = 0; i < j->out.n; i++) {
        bool summed = i < primals.n && m->out.at[i] && !primals.at[i];
        out[i] = summed ? b_reduce(b, P_reduce_sum, all.at[i], 1, (int64_t[]){0}) : all.at[i];
    }
    return b_inner_end(b, &sums, j->out.n, out);
}
static bool batch_vjp(Custom *c, const Jaxpr *body) {
    Vmap *v = c->v;
    Tx *tx = v->tx;
    const Vals results = v->read->out;
    uint32_t nres = c->rule.fwd->out.n - results.n;
    Bits own = batched_of(c), back = bits_new(tx, nres + results.n), primals = bits_new(tx, own.n);
    unite_results(c, body, c->rule.fwd, own);
    const MadeVmap *fwd = made_rule(v, c->rule.fwd, own, (Bits){c->out, results.n});
    if (!fwd) return false;
    back.n = primals.n = 0;
    for (uint32_t i = 0; i < nres; i++) bit_push(&back, fwd->out.at[results.n + i]);
    add_floats(c, &back, results, c->out);
    add_floats(c, &primals, read_operands(c), own.at);
    Jaxpr *bwd = batch_backwards(v, c->rule.bwd, back, primals);
    if (tx->failed || v->b->failed) return false;
    if (!bwd || fwd->program.captured.n) return vmap_call(v);
    Param rules[2] = {p_jaxpr(K_fwd_jaxpr, fwd->program.j), p_jaxpr(K_bwd_jaxpr, bwd)};
    return write_custom(c, body, 2, rules);
}
/* What the rule computes from operands that the examples share has no derivative where an example is not here. */
static void shield_given(Vmap *v, uint32_t first) {
    if (v->tx->batch.mask && v->tx->batch.differentiated) vmap_shield(v, first, v->e->in, (bool *)v->batched);
}
/* Without a known rule the body is what is left, and where rules do not take the largest extents. */
bool vmap_custom(Vmap *v) {
    Tx *tx = v->tx;
    Custom c = {.v = v, .rule = rule_of(tx->cx, v->read), .first = v->e->in.n - rule_operands(v->e).n};
    const Jaxpr *body = eqn_program(v->read);
    c.out = arena_new(tx->cx->arena, bool, v->e->out.n + 1);
    bool carried = !tx->batch.in_rule;
    if (vmap_moves_padding(v)) return vmap_call(v);
    if (c.rule.jvp || c.rule.fwd || c.rule.whole) shield_given(v, c.first);
    if (c.rule.jvp && carried && !(c.rule.whole && c.first)) return batch_jvp(&c, body);
    if (c.rule.fwd && c.rule.bwd && carried) return batch_vjp(&c, body);
    if (!c.rule.whole) return vmap_call(v);
    bits_unite(c.out, taint(tx, TAINT_VMAP, body, (Bits){v->batched, v->e->in.n}));
    return write_custom(&c, body, 0, NULL);
}

/* ---- linear_call */
bool vmap_linear_call(Vmap *v) {
    Tx *tx = v->tx;
    Arena *arena = tx->cx->arena;
    LinearCall c = linear_call_of(v->e);
    if (!c.callee) return vmap_none(v);
    shield_given(v, 0);
    c = linear_call_of(v->e);
    uint32_t own = c.callee_consts.n, skipped = c.transpose_consts.n, nres = c.residuals.n, n = c.linear.n;
    const bool *at = v->batched, *residuals = at + own + skipped, *linear = residuals + nres;
    Bits in = bits_new(tx, v->e->in.n), back = bits_new(tx, v->e->in.n + v->e->out.n);
    in.n = back.n = 0;
    for (uint32_t i = 0; i < own; i++) bit_push(&in, at[i]);
    for (uint32_t i = 0; i < nres + n; i++) bit_push(&in, residuals[i]);
    const MadeVmap *m = made_vmap(tx, v->b, c.callee, (Batched){.in = in});
    if (!m) return false;
    for (uint32_t i = 0; i < skipped; i++) bit_push(&back, at[own + i]);
    for (uint32_t i = 0; i < nres; i++) bit_push(&back, residuals[i]);
    for (uint32_t k = 0; k < v->e->out.n; k++) bit_push(&back, m->out.at[k]);
    Jaxpr *transposed = c.transpose ? batch_backwards(v, c.transpose, back, (Bits){linear, n}) : NULL;
    if (tx->failed || v->b->failed) return false;
    memcpy(v->out_batched, m->out.at, m->out.n);
    Vals out;
    if (transposed && !m->program.captured.n) {
        c.callee = m->program.j, c.transpose = transposed;
        Eqn e = linear_call_eqn(arena, &c);
        out = b_eqn(v->b, &e, v->e->out.n, NULL);
    } else {
        Vals given = vals_joined(arena, 3, (Vals[]){c.callee_consts, c.residuals, c.linear});
        out = b_jit(v->b, m->program.j->name, &m->program, given.n, given.at);
    }
    memcpy(v->out, out.at, out.n * sizeof *out.at);
    return !v->b->failed;
}

/* ---- custom_linear_solve: all right-hand sides and solutions are batched */
bool vmap_custom_linear_solve(Vmap *v) {
    Tx *tx = v->tx;
    Arena *arena = tx->cx->arena;
    LinearSolve s = linear_solve_of(v->e), read = linear_solve_of(v->read);
    uint32_t n = s.b.n, at = 0;
    if (!s.program[SOLVE_MATVEC]) return vmap_none(v);
    for (unsigned k = 0; k < NSOLVES; k++) {
        const Jaxpr *j = read.program[k];
        uint32_t given = s.consts[k].n;
        Bits in = bits_new(tx, given + n), force = bits_new(tx, j ? j->out.n : 0);
        if (given) memcpy((bool *)in.at, v->batched + at, given);
        memset((bool *)in.at + given, true, n);
        memset((bool *)force.at, true, force.n);
        at += given;
        if (!j) continue;
        const MadeVmap *m = made_vmap(tx, v->b, j, (Batched){.in = in, .force = force, .masked = takes_shield(tx, j)});
        if (!m) return false;
        Vals mask = {&tx->batch.mask, m->masked};
        s.program[k] = m->program.j;
        s.consts[k] = vals_joined(arena, 3, (Vals[]){m->program.captured, mask, s.consts[k]});
    }
    s.b = (Vals){arena_new(arena, Val, n + 1), n};
    shield_given(v, v->e->in.n - n);
    for (uint32_t i = 0; i < n; i++) s.b.at[i] = vmap_operand(v, v->e->in.n - n + i);
    Eqn e = linear_solve_eqn(arena, v->e, &s);
    e.out = v->e->out;
    return vmap_apply(v, &e, e.in.at);
}
