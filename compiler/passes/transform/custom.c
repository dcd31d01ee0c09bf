/* Functions with derivative rules of their own: custom_jvp_call, custom_vjp_call, linear_call, custom_linear_solve. */
#include "flow.h"
#include "rules.h"
#include "../../control.h"

/* ---- programs as equations */

static Vals part_from(Vals v, uint32_t from) { return vals_part(v, from, v.n - from); }
static bool float_value(const Tx *tx, Val v) { return has_tangent(tx->cx, val_type(tx->cx, v)); }

/* ---- custom_jvp_call, custom_vjp_call */

static bool jvp_unknown_rule(Jvp *d) {
    Str name = rule_name(d->e);
    Ctx *cx = d->tx->cx;
    diag_warn(cx->diags, W_unknown_rule, d->e->span,
              "no derivative rule of '%.*s' is known: its body is differentiated; --rule %.*s=%s gives one", SF(name),
              SF(name), d->e->prim == P_custom_vjp_call ? "FWD.jaxpr,BWD.jaxpr" : "FILE.jaxpr");
    return jvp_call(d);
}
/* The operands that a rule takes, then their tangents, zeros for those that are zero. */
static Vals rule_inputs(Jvp *d, bool whole) {
    uint32_t consts = d->e->in.n - rule_operands(d->e).n, from = whole ? 0 : consts;
    bool *some = arena_new(d->tx->cx->arena, bool, d->e->in.n + 1);
    for (uint32_t i = consts; i < d->e->in.n; i++) some[i] = float_value(d->tx, d->e->in.at[i]);
    return jvp_operands(d, from, (Bits){some + from, d->e->in.n - from});
}
/* Results of the rule: those of the equation, then the tangents. */
static void take_results(Jvp *d, Vals r, uint32_t tangents) {
    for (uint32_t i = 0; i < d->e->out.n; i++) {
        d->out[i] = r.at[i];
        if (float_value(d->tx, d->e->out.at[i])) d->dt[i] = r.at[tangents++];
    }
}
/* Of equinox: the identity, which stands for an error if it is differentiated. */
static bool must_not_be_differentiated(const Eqn *e) {
    const Jaxpr *body = eqn_program(e);
    return body && !body->eqns.n && str_is(rule_name(e), "_nondifferentiable");
}
bool jvp_custom_jvp(Jvp *d) {
    CustomRule rule = rule_of(d->tx->cx, d->e);
    if (!rule.jvp && must_not_be_differentiated(d->e))
        return tx_error(d->tx, d->e->span, "differentiated, though the program says it must not be");
    if (!rule.jvp) return jvp_unknown_rule(d);
    Vals in = rule_inputs(d, rule.whole), r = b_call(d->b, rule.jvp, in.n, in.at);
    if (d->b->failed) return false;
    take_results(d, r, d->e->out.n);
    return true;
}

/* The map from tangents to tangents of which `bwd` is the transpose, given the residuals. */
static Inner forward_of(Jvp *d, const Jaxpr *bwd, uint32_t nres, Vals like) {
    Ctx *cx = d->tx->cx;
    Inner map = b_inner_like(d->b, like.n, like.at); /* residuals, tangents */
    Vals t = part_from(map.in, nres);
    Val *in = arena_new(cx->arena, Val, bwd->in.n + 1), *out = arena_new(cx->arena, Val, bwd->in.n + 1);
    memcpy(in, map.in.at, nres * sizeof *in);
    bool ok = transpose_into(d->tx, d->b, bwd, in, t.at, out);
    uint32_t n = bwd->in.n - nres;
    for (uint32_t i = 0; i < n && ok; i++)
        if (!out[nres + i])
            out[nres + i] =
                b_full(d->b, b_number(d->b, val_array(cx, bwd->in.at[nres + i])->dtype, 0),
                       val_array(cx, bwd->in.at[nres + i])->rank, val_array(cx, bwd->in.at[nres + i])->dims);
    for (uint32_t i = 0; i < n && !ok; i++) out[nres + i] = VAL_FAILED;
    b_inner_end(d->b, &map, n, out + nres);
    return map;
}
/* In a program that will be transposed the map is known by its transpose only: custom_lin. Elsewhere it is
   linear_call. */
static Vals linear_map(Jvp *d, Jaxpr *bwd, Vals residuals, Vals tangents, uint32_t nout, const Type *types) {
    Arena *arena = d->tx->cx->arena;
    if (d->tx->reverse) {
        Eqn e = custom_lin_eqn(arena, &(CustomLin){bwd, residuals, tangents});
        return b_eqn(d->b, &e, nout, types);
    }
    Inner map = forward_of(d, bwd, residuals.n, vals_joined(arena, 2, (Vals[]){residuals, tangents}));
    if (d->tx->failed || d->b->failed) return b_failures(d->b, nout);
    assert(!map.captured.n);
    Eqn e = linear_call_eqn(arena, &(LinearCall){map.j, bwd, .residuals = residuals, .linear = tangents});
    return b_eqn(d->b, &e, nout, NULL);
}
bool jvp_custom_vjp(Jvp *d) {
    Ctx *cx = d->tx->cx;
    CustomRule rule = rule_of(cx, d->e);
    if (!rule.fwd || !rule.bwd) return jvp_unknown_rule(d);
    Vals all = rule_inputs(d, false), in = rule_operands(d->e), r = b_call(d->b, rule.fwd, in.n, all.at);
    if (d->b->failed) return false;
    uint32_t nout = d->e->out.n, n = 0;
    Type *types = arena_new(cx->arena, Type, nout + 1);
    for (uint32_t i = 0; i < nout; i++)
        if (float_value(d->tx, d->e->out.at[i])) types[n++] = val_type(cx, r.at[i]);
    Vals t = linear_map(d, rule.bwd, part_from(r, nout), part_from(all, in.n), n, types);
    if (d->b->failed || d->tx->failed) return false;
    take_results(d, vals_joined(cx->arena, 2, (Vals[]){vals_part(r, 0, nout), t}), nout);
    return true;
}

/* ---- the maps that bwd is the transpose of */

/* Residuals, or what stands in their place, then the cotangents of all results. */
static Vals with_cotangents(Transpose *t, Vals residuals) {
    Vals ct = {arena_new(t->tx->cx->arena, Val, t->e->out.n + 1), t->e->out.n};
    for (uint32_t k = 0; k < ct.n; k++) ct.at[k] = ct_result(t, k);
    return vals_joined(t->tx->cx->arena, 2, (Vals[]){residuals, ct});
}
static bool add_from(Transpose *t, uint32_t first, Vals ct) {
    for (uint32_t i = 0; i < ct.n && !t->b->failed; i++)
        if (t->linear[first + i]) ct_add(t, first + i, ct.at[i]);
    return !t->b->failed;
}
static bool some_linear_before(const Transpose *t, uint32_t n) {
    bool some = false;
    for (uint32_t i = 0; i < n; i++) some |= t->linear[i];
    return some;
}
bool transpose_custom_lin(Transpose *t) {
    CustomLin c = custom_lin_of(t->e);
    if (!c.bwd || some_linear_before(t, c.residuals.n)) return transpose_none(t);
    Vals in = with_cotangents(t, c.residuals);
    return add_from(t, c.residuals.n, b_call(t->b, c.bwd, in.n, in.at));
}

/* ---- linear_call */

/* The callee, in place of a call that has constants of its transpose as well. */
static bool jvp_callee(Jvp *d, const LinearCall *c) {
    Arena *arena = d->tx->cx->arena;
    uint32_t own = c->callee_consts.n, skipped = c->transpose_consts.n;
    Vals in = vals_joined(arena, 3, (Vals[]){c->callee_consts, c->residuals, c->linear});
    Val *t = arena_new(arena, Val, in.n + 1);
    for (uint32_t i = 0; i < in.n; i++) t[i] = d->t[i < own ? i : i + skipped];
    return jvp_into(d->tx, d->b, c->callee, in.at, t, d->out, d->dt);
}
bool jvp_linear_call(Jvp *d) {
    LinearCall c = linear_call_of(d->e);
    uint32_t given = d->e->in.n - c.linear.n;
    bool others = !c.callee;
    for (uint32_t i = 0; i < given; i++) others |= d->t[i] != 0;
    if (others) return c.transpose_consts.n ? jvp_callee(d, &c) : jvp_call(d);
    Val *in = arena_new(d->tx->cx->arena, Val, d->e->in.n + 1);
    for (uint32_t i = 0; i < d->e->in.n; i++)
        in[i] = i >= given && float_value(d->tx, d->e->in.at[i]) ? jvp_tangent(d, i) : d->e->in.at[i];
    Vals out = jvp_apply(d, in);
    for (uint32_t i = 0; i < out.n && !d->b->failed; i++) d->dt[i] = float_value(d->tx, out.at[i]) ? out.at[i] : 0;
    return !d->b->failed;
}
/* The callee in place of the call: its transpose is not in the text, or it is not only linear operands that count. */
static bool transpose_callee(Transpose *t, const LinearCall *c) {
    Arena *arena = t->tx->cx->arena;
    uint32_t own = c->callee_consts.n, skipped = c->transpose_consts.n, n = t->e->in.n - skipped;
    Val *in = arena_new(arena, Val, n + 1), *ct_in = arena_new(arena, Val, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = i < own ? i : i + skipped;
        in[i] = t->linear[k] ? 0 : t->e->in.at[k];
    }
    if (!transpose_into(t->tx, t->b, c->callee, in, t->ct, ct_in)) return false;
    for (uint32_t i = 0; i < n; i++)
        if (!in[i]) ct_add(t, i < own ? i : i + skipped, ct_in[i]);
    return true;
}
/* The same call with callee and transpose exchanged. */
bool transpose_linear_call(Transpose *t) {
    LinearCall c = linear_call_of(t->e);
    uint32_t given = t->e->in.n - c.linear.n;
    if (!c.callee) return transpose_none(t);
    if (!c.transpose)
        diag_warn(t->tx->cx->diags, W_unknown_rule, t->e->span,
                  "the transpose of linear_call is not in the text: its callee is transposed");
    if (!c.transpose || some_linear_before(t, given)) return transpose_callee(t, &c);
    Vals ct = with_cotangents(t, (Vals){0});
    LinearCall back = {c.transpose, c.callee, c.transpose_consts, c.callee_consts, c.residuals, ct};
    Eqn e = linear_call_eqn(t->tx->cx->arena, &back);
    return add_from(t, given, b_eqn(t->b, &e, c.linear.n, NULL));
}

/* ---- custom_linear_solve: x with matvec(x) = b */

/* matvec(x) along the tangents of its constants; 0: none has one. The operands are known values of the program written,
   so the result is linear in the tangents alone. */
static bool matvec_tangents(Jvp *d, const LinearSolve *s, Vals x, Val *to) {
    Ctx *cx = d->tx->cx;
    const Jaxpr *matvec = s->program[SOLVE_MATVEC];
    Vals consts = s->consts[SOLVE_MATVEC], in = vals_joined(cx->arena, 2, (Vals[]){consts, x});
    Val *t = arena_new(cx->arena, Val, in.n + 1), *out = arena_new(cx->arena, Val, matvec->out.n + 1);
    bool some = false;
    for (uint32_t i = 0; i < consts.n; i++) some |= (t[i] = d->t[i]) != 0;
    return !some || jvp_into(d->tx, d->b, matvec, in.at, t, out, to);
}
/* The same solve of g_b - ∂matvec(x). */
bool jvp_custom_linear_solve(Jvp *d) {
    Ctx *cx = d->tx->cx;
    LinearSolve s = linear_solve_of(d->e);
    uint32_t n = s.b.n, first = d->e->in.n - n;
    Vals x = {arena_new(cx->arena, Val, n + 1), n};
    Val *change = arena_new(cx->arena, Val, n + 1), *in = arena_new(cx->arena, Val, d->e->in.n + 1);
    bool some = false;
    if (!s.program[SOLVE_MATVEC]) return jvp_none(d);
    for (uint32_t i = 0; i < n; i++) x.at[i] = jvp_result(d, i);
    if (!matvec_tangents(d, &s, x, change)) return false;
    memcpy(in, d->e->in.at, d->e->in.n * sizeof *in);
    for (uint32_t i = 0; i < n; i++) {
        Val rhs = tx_sum(d->b, d->t[first + i], change[i] ? b_neg(d->b, change[i]) : 0);
        some |= rhs != 0;
        in[first + i] = rhs ? rhs : b_zeros_like(d->b, s.b.at[i]);
    }
    if (!some || d->b->failed) return !d->b->failed;
    Vals out = jvp_apply(d, in);
    for (uint32_t i = 0; i < n && !d->b->failed; i++) d->dt[i] = float_value(d->tx, out.at[i]) ? out.at[i] : 0;
    return !d->b->failed;
}

static const SolveProgram transposed_solve[NSOLVES] = {SOLVE_VECMAT, SOLVE_MATVEC, SOLVE_TRANSPOSE, SOLVE_SOLVE};
static unsigned solve_number(Str field) {
    unsigned k = 0;
    while (k < NSOLVES && !str_is(field, solve_field[k])) k++;
    return k;
}
/* A record of the four with other names for its fields. */
static Param exchanged(Ctx *cx, const Eqn *e, ParamKey key) {
    Param p = *param_find(e, key);
    Value *at = arena_new(cx->arena, Value, p.value.list.n + 1);
    memcpy(at, p.value.list.at, p.value.list.n * sizeof *at);
    for (uint32_t i = 0; i < p.value.list.n; i++) {
        unsigned k = solve_number(at[i].s);
        if (k < NSOLVES) at[i].s = str(solve_field[transposed_solve[k]]);
    }
    p.value.list.at = at;
    return p;
}
bool transpose_custom_linear_solve(Transpose *t) {
    Ctx *cx = t->tx->cx;
    LinearSolve s = linear_solve_of(t->e);
    uint32_t n = s.b.n, first = t->e->in.n - n;
    if (some_linear_before(t, first)) return transpose_none(t);
    if (!s.program[SOLVE_TRANSPOSE])
        return tx_error(t->tx, t->e->span, "custom_linear_solve without transpose_solve has no transpose");
    Vals parts[NSOLVES + 1], ct = {arena_new(cx->arena, Val, n + 1), n};
    for (unsigned k = 0; k < NSOLVES; k++) parts[k] = s.consts[transposed_solve[k]];
    for (uint32_t i = 0; i < n; i++) ct.at[i] = ct_result(t, i);
    parts[NSOLVES] = ct;
    Vals in = vals_joined(cx->arena, NSOLVES + 1, parts);
    Eqn e = *t->e;
    Param *params = arena_new(cx->arena, Param, e.params.n + 1);
    for (uint32_t i = 0; i < e.params.n; i++) {
        ParamKey key = e.params.at[i].key;
        params[i] = key == K_jaxprs || key == K_const_lengths ? exchanged(cx, t->e, key) : e.params.at[i];
    }
    e.in = in, e.params.at = params;
    uint32_t nout = s.program[SOLVE_TRANSPOSE]->out.n;
    return add_from(t, first, vals_part(b_eqn(t->b, &e, nout, NULL), 0, n));
}
