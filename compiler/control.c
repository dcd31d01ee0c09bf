#include "control.h"

/* ---- slices */
static Vals rest(Vals v, uint32_t from) { return vals_part(v, from, v.n - from); }

Vals vals_joined(Arena *arena, uint32_t n, const Vals *parts) {
    Vals all = {0};
    for (uint32_t i = 0; i < n; i++) all.n += parts[i].n;
    Val *at = all.at = arena_new(arena, Val, (size_t)all.n + 1);
    for (uint32_t i = 0; i < n; at += parts[i++].n)
        if (parts[i].at) memcpy(at, parts[i].at, parts[i].n * sizeof *at);
    return all;
}

Vals vals_where(Arena *arena, Vals vs, const bool *which, bool want) {
    Vals some = {arena_new(arena, Val, vs.n + 1), 0};
    for (uint32_t i = 0; i < vs.n; i++)
        if (which[i] == want) some.at[some.n++] = vs.at[i];
    return some;
}

/* A count of operands, at most `all`; false if it is not one. */
static bool count_among(const Eqn *e, ParamKey key, uint32_t all, uint32_t *n) {
    int64_t count = param_int(e, key, 0);
    *n = (uint32_t)count;
    return count >= 0 && count <= all;
}

/* Is a count that the program determines the one in the text, if it has one? */
static bool says(const Eqn *e, ParamKey key, uint32_t n) { return param_int(e, key, n) == n; }

/* ---- equations */

/* The parameters that writers write. */
static const bool written[NPARAMS] = {
    [K_jaxpr] = true,
    [K_length] = true,
    [K_num_carry] = true,
    [K_num_consts] = true,
    [K_reverse] = true,
    [K_cond_jaxpr] = true,
    [K_body_jaxpr] = true,
    [K_cond_nconsts] = true,
    [K_branches] = true,
    [K_body_nconsts] = true,
    [K_branch_jaxprs] = true,
    [K_nimplicit] = true,
    [K_num_implicit_inputs] = true,
};
static Param p_count(ParamKey key, uint32_t n) { return (Param){.key = key, .value = {.kind = V_INT, .i = n}}; }
static Param p_program(ParamKey key, Jaxpr *j) { return (Param){.key = key, .value = {.kind = V_JAXPR, .jaxpr = j}}; }

/* `linear`, a bool for each operand but the index of a cond, for those that are left, in their order; false if there
   are others. Of an operand that is given several times and of which some are left, these have the flags of the first:
   a function is linear in a value or it is not, and JAX gives the same value the same flag. */
static bool linear_left(Arena *arena, const Eqn *like, Vals in, Value *linear) {
    Ints old = linear->kind == V_INTS ? linear->ints : (Ints){0};
    uint32_t index = like->in.n - old.n, k = 0;
    if (old.n > like->in.n) return false;
    linear->ints = (Ints){arena_new(arena, int64_t, old.n + 1), 0};
    for (uint32_t i = 0; i < in.n; i++, k++) {
        while (k < like->in.n && like->in.at[k] != in.at[i]) k++;
        if (k == like->in.n) return false;
        if (k >= index) linear->ints.at[linear->ints.n++] = old.at[k - index];
    }
    return true;
}
static bool same_vals(Vals a, Vals b) { return a.n == b.n && (!a.n || memcmp(a.at, b.at, a.n * sizeof *a.at) == 0); }
static Eqn equation(Arena *arena, Prim prim, const Eqn *like, Vals in, Vals out, uint32_t n, const Param *own) {
    Eqn e = *like;
    bool same = same_vals(in, like->in);
    e.prim = prim, e.in = in, e.out = out;
    if (!same) e.in_at = NULL;
    e.params = (Params){arena_new(arena, Param, like->params.n + n), 0};
    each(const Param, p, like->params) {
        Param *to = &e.params.at[e.params.n];
        *to = *p;
        if (!written[p->key] && (same || p->key != K_linear || linear_left(arena, like, in, &to->value))) e.params.n++;
    }
    for (uint32_t i = 0; i < n; i++) {
        const Param *old = param_find(like, own[i].key);
        Param *p = &e.params.at[e.params.n++];
        *p = own[i];
        if (old) p->span = old->span, p->value.span = old->value.span;
    }
    return e;
}

/* ---- scan */
Scan scan_of(const Eqn *e) {
    Scan s = {0};
    if (e->prim != P_scan) return s;
    const Param *length = param_find(e, K_length);
    Jaxpr *body = param_jaxpr(e, K_jaxpr);
    uint32_t consts, carry;
    if (!body || body->in.n != e->in.n || body->out.n != e->out.n) return s;
    if (!count_among(e, K_num_consts, e->in.n, &consts) || !count_among(e, K_num_carry, e->in.n - consts, &carry))
        return s;
    if (carry > e->out.n) return s;
    s.body = body;
    s.length = length && length->value.kind == V_DIM ? length->value.dim : param_int(e, K_length, 0);
    s.reverse = param_bool(e, K_reverse);
    s.consts = vals_part(e->in, 0, consts);
    s.carry = vals_part(e->in, consts, carry);
    s.xs = rest(e->in, consts + carry);
    s.end = vals_part(e->out, 0, carry);
    s.ys = rest(e->out, carry);
    return s;
}
Eqn scan_eqn(Arena *arena, const Eqn *like, const Scan *s) {
    Param own[] = {p_program(K_jaxpr, s->body),
                   {.key = K_length, .value = {.kind = V_DIM, .dim = s->length}},
                   p_count(K_num_carry, s->carry.n),
                   p_count(K_num_consts, s->consts.n),
                   {.key = K_reverse, .value = {.kind = V_BOOL, .i = s->reverse}}};
    Vals in = vals_joined(arena, 3, (Vals[]){s->consts, s->carry, s->xs});
    Vals out = vals_joined(arena, 2, (Vals[]){s->end, s->ys});
    return equation(arena, P_scan, like, in, out, sizeof own / sizeof *own, own);
}
Scan scan_turn(const Scan *s, const Jaxpr *body) {
    Scan turn = *s;
    Vals in = body->in, out = body->out;
    turn.consts = vals_part(in, 0, s->consts.n);
    turn.carry = vals_part(in, s->consts.n, s->carry.n);
    turn.xs = vals_part(in, s->consts.n + s->carry.n, s->xs.n);
    turn.end = vals_part(out, 0, s->end.n);
    turn.ys = vals_part(out, s->end.n, s->ys.n);
    return turn;
}
Dim scan_length(const Ctx *cx, const Scan *s) {
    const Vals arrays[2] = {s->xs, s->ys};
    for (uint32_t k = 0; k < 2; k++)
        for (uint32_t i = 0; i < arrays[k].n; i++)
            if (val_array(cx, arrays[k].at[i])->rank) return val_array(cx, arrays[k].at[i])->dims[0];
    return s->length;
}

/* ---- while: the body has as many results as there are carries, so that the counts are determined */
While while_of(const Eqn *e) {
    While w = {0};
    if (e->prim != P_while && e->prim != P_while_loop) return w;
    Jaxpr *cond = param_jaxpr(e, K_cond_jaxpr), *body = param_jaxpr(e, K_body_jaxpr);
    uint32_t n = e->out.n;
    if (!cond || !body || body->out.n != n || body->in.n < n || cond->in.n < n) return w;
    uint32_t nc = cond->in.n - n, nb = body->in.n - n;
    if (e->in.n != nc + nb + n || !says(e, K_cond_nconsts, nc) || !says(e, K_body_nconsts, nb)) return w;
    if (implicit_inputs(e) > n) return w;
    w.cond = cond;
    w.body = body;
    w.cond_consts = vals_part(e->in, 0, nc);
    w.body_consts = vals_part(e->in, nc, nb);
    w.carry = w.tested = rest(e->in, nc + nb);
    w.end = e->out;
    int64_t implicit = implicit_inputs(e);
    w.resizes = implicit >= 0;
    w.implicit = w.resizes ? (uint32_t)implicit : 0;
    return w;
}
Eqn while_eqn(Arena *arena, const Eqn *like, const While *w) {
    Param own[] = {p_program(K_body_jaxpr, w->body), p_count(K_body_nconsts, w->body_consts.n),
                   p_program(K_cond_jaxpr, w->cond), p_count(K_cond_nconsts, w->cond_consts.n),
                   p_count(K_num_implicit_inputs, w->implicit)};
    Vals in = vals_joined(arena, 3, (Vals[]){w->cond_consts, w->body_consts, w->carry});
    uint32_t n = sizeof own / sizeof *own - !w->resizes;
    return equation(arena, P_while, like, in, vals_joined(arena, 1, &w->end), n, own);
}
While while_turn(const While *w, const Jaxpr *cond, const Jaxpr *body) {
    While turn = *w;
    turn.cond_consts = vals_part(cond->in, 0, w->cond_consts.n);
    turn.tested = vals_part(cond->in, w->cond_consts.n, w->carry.n);
    turn.body_consts = vals_part(body->in, 0, w->body_consts.n);
    turn.carry = vals_part(body->in, w->body_consts.n, w->carry.n);
    turn.end = vals_part(body->out, 0, w->end.n);
    return turn;
}

/* ---- for_loop: the body has as many results as there are carries, extents included */
static bool same_kind(const Ctx *cx, Val a, Val b) {
    const ArrayType *x = val_array(cx, a), *y = val_array(cx, b);
    return x->dtype == y->dtype && x->rank == y->rank;
}
/* Are all extents of the inputs from `first` on among the `n` first inputs? */
static bool extents_among(const Ctx *cx, const Jaxpr *body, uint32_t first, uint32_t n) {
    for (uint32_t i = first; i < body->in.n; i++) {
        const ArrayType *t = val_array(cx, body->in.at[i]);
        for (uint32_t d = 0; d < t->rank; d++) {
            if (dim_is_const(t->dims[d]) || dim_at(cx->types, t->dims[d])->kind != DIM_BOUND) continue;
            uint32_t k = 0;
            while (k < n && body->in.at[k] != dim_at(cx->types, t->dims[d])->val) k++;
            if (k == n) return false;
        }
    }
    return true;
}
/* The text in Catalyst's documentation has no counts: implicit inputs are as few as the types allow; an array's extent
   must come before the index. */
static uint32_t fewest_implicit(const Ctx *cx, const Jaxpr *body, uint32_t consts) {
    uint32_t n = 0;
    for (; n < body->out.n; n++) {
        bool fits = extents_among(cx, body, consts + n + 1, consts + n);
        for (uint32_t i = n; i < body->out.n; i++) fits &= same_kind(cx, body->in.at[consts + 1 + i], body->out.at[i]);
        if (fits) break;
    }
    return n;
}
ForLoop for_of(const Ctx *cx, const Eqn *e) {
    ForLoop l = {0};
    Jaxpr *body = e->prim == P_for_loop ? param_jaxpr(e, K_body_jaxpr) : NULL;
    if (!body || body->in.n <= body->out.n || e->in.n != body->in.n + NFOR_BOUNDS - 1) return l;
    uint32_t n = body->out.n, consts = body->in.n - 1 - n;
    int64_t said = implicit_inputs(e);
    if (!says(e, K_body_nconsts, consts) || said > n) return l;
    uint32_t implicit = said < 0 ? fewest_implicit(cx, body, consts) : (uint32_t)said;
    if (e->out.n != n && e->out.n != n - implicit) return l;
    l.body = body;
    l.consts = vals_part(e->in, 0, consts);
    l.implicit = vals_part(e->in, consts, implicit);
    l.bounds = vals_part(e->in, consts + implicit, NFOR_BOUNDS);
    l.carry = rest(e->in, consts + implicit + NFOR_BOUNDS);
    l.end_implicit = vals_part(e->out, 0, e->out.n - l.carry.n);
    l.end = rest(e->out, l.end_implicit.n);
    return l;
}
ForLoop for_turn(const ForLoop *l, const Jaxpr *body) {
    ForLoop turn = *l;
    uint32_t index = l->consts.n + l->implicit.n;
    turn.consts = vals_part(body->in, 0, l->consts.n);
    turn.implicit = vals_part(body->in, l->consts.n, l->implicit.n);
    turn.bounds = vals_part(body->in, index, 1);
    turn.carry = vals_part(body->in, index + 1, l->carry.n);
    turn.end_implicit = vals_part(body->out, 0, l->implicit.n);
    turn.end = vals_part(body->out, l->implicit.n, l->carry.n);
    return turn;
}

/* ---- cond */
Jaxprs cond_branches(const Eqn *e, uint32_t *first) {
    bool bools = e->prim == P_cond && param_has(e, K_branch_jaxprs);
    Jaxprs branches = e->prim == P_cond ? param_jaxprs(e, bools ? K_branch_jaxprs : K_branches) : (Jaxprs){0};
    *first = bools && branches.n ? branches.n - 1 : 1;
    return branches;
}
Cond cond_of(const Eqn *e) {
    Cond c = {0};
    uint32_t n;
    Jaxprs branches = cond_branches(e, &n);
    if (!branches.n || e->in.n < n) return c;
    each(Jaxpr *, j, branches)
        if (!*j || (*j)->in.n != e->in.n - n || (*j)->out.n != e->out.n) return c;
    c.branches = branches;
    c.bools = param_has(e, K_branch_jaxprs);
    c.index = vals_part(e->in, 0, n);
    c.in = rest(e->in, n);
    c.out = e->out;
    return c;
}
Param cond_param(Jaxprs branches, bool bools) {
    ParamKey key = bools ? K_branch_jaxprs : K_branches;
    return (Param){.key = key,
                   .name = str(param_name[key]),
                   .value = {.kind = V_JAXPRS, .open = '(', .jaxprs = {branches.at, branches.n}}};
}
Eqn cond_eqn(Arena *arena, const Eqn *like, const Cond *c) {
    Jaxpr **branches = arena_new(arena, Jaxpr *, c->branches.n);
    memcpy(branches, c->branches.at, c->branches.n * sizeof *branches);
    Param own = cond_param((Jaxprs){branches, c->branches.n}, c->bools);
    Vals in = vals_joined(arena, 2, (Vals[]){c->index, c->in});
    return equation(arena, P_cond, like, in, vals_joined(arena, 1, &c->out), 1, &own);
}

/* ---- calls with other operands */

/* The parameters that list operands or results. */
static const bool lists[NPARAMS] = {[K_donated_invars] = true,
                                    [K_in_shardings] = true,
                                    [K_out_shardings] = true,
                                    [K_in_layouts] = true,
                                    [K_out_layouts] = true};
Eqn call_eqn(Arena *arena, const Eqn *like, Vals in, Vals out) {
    Eqn e = *like;
    bool same = in.n == like->in.n && out.n == like->out.n;
    e.in = in, e.out = out;
    if (!same_vals(in, like->in)) e.in_at = NULL;
    e.params = (Params){arena_new(arena, Param, like->params.n + 1), 0};
    each(const Param, p, like->params) {
        bool list = lists[p->key] || (p->key == K_prevent_cse && p->value.kind != V_BOOL); /* one for each operand */
        if (same || !list) e.params.at[e.params.n++] = *p;
    }
    return e;
}
Eqn call_of(Arena *arena, const Eqn *like, Jaxpr *program, Vals in) {
    static const char *const listing[] = {"in_axis_resources", "in_positional_semantics", "out_axis_resources",
                                          "out_positional_semantics", "out_memory_spaces"};
    const Jaxpr *old = eqn_program(like);
    Eqn e = *like;
    e.in = in, e.out = (Vals){0}, e.in_at = NULL;
    e.params = (Params){arena_new(arena, Param, like->params.n + 1), 0};
    each(const Param, p, like->params) {
        bool drop = lists[p->key];
        for (size_t i = 0; i < sizeof listing / sizeof *listing && p->key == K_other; i++)
            drop |= str_is(p->name, listing[i]);
        if (drop) continue;
        Param *to = &e.params.at[e.params.n++];
        *to = *p;
        if (p->value.kind == V_JAXPR && p->value.jaxpr == old) to->value.jaxpr = program;
    }
    return e;
}

/* ---- any of them */
Eqn control_map(Arena *arena, const Eqn *e, const Eqn *new, ValsMap *in, ValsMap *out, void *user) {
    Scan s = scan_of(e);
    if (s.body) {
        s.body = param_jaxpr(new, K_jaxpr);
        s.consts = in(user, s.consts), s.carry = in(user, s.carry), s.xs = in(user, s.xs);
        s.end = out(user, s.end), s.ys = out(user, s.ys);
        return scan_eqn(arena, new, &s);
    }
    While w = while_of(e);
    if (w.body) {
        w.cond = param_jaxpr(new, K_cond_jaxpr), w.body = param_jaxpr(new, K_body_jaxpr);
        w.cond_consts = in(user, w.cond_consts), w.body_consts = in(user, w.body_consts);
        w.carry = in(user, w.carry);
        w.end = out(user, w.end);
        return while_eqn(arena, new, &w);
    }
    Cond c = cond_of(e);
    if (c.branches.n) {
        c.branches = param_jaxprs(new, c.bools ? K_branch_jaxprs : K_branches);
        c.index = in(user, c.index), c.in = in(user, c.in);
        c.out = out(user, c.out);
        return cond_eqn(arena, new, &c);
    }
    return call_eqn(arena, new, in(user, e->in), out(user, e->out));
}

int64_t implicit_inputs(const Eqn *e) { return param_int(e, K_num_implicit_inputs, param_int(e, K_nimplicit, -1)); }

/* ---- calls */
bool prim_calls(Prim p) {
    static const bool calls[NPRIMS] = {
#define NO_LOWERING false
#define CALL true
#define PRIM(id, text, arity, type, simplify, facts, jvp, transpose, vmap, lowering) [P_##id] = lowering,
#include "prims.def"
    };
    return calls[p];
}
Jaxpr *eqn_program(const Eqn *e) {
    static const ParamKey names[] = {K_jaxpr, K_call_jaxpr, K_fun_jaxpr, K_call, K_callee, K_fwd_jaxpr};
    Jaxpr *j = NULL;
    for (unsigned i = 0; i < sizeof names / sizeof *names && !j; i++) j = param_jaxpr(e, names[i]);
    return j;
}
Jaxpr *eqn_body(Arena *arena, const Eqn *e, Vals *in) {
    Jaxpr *j = NULL;
    *in = e->in;
    if (e->prim == P_linear_call) {
        LinearCall c = linear_call_of(e);
        j = c.callee;
        if (c.transpose_consts.n) *in = vals_joined(arena, 3, (Vals[]){c.callee_consts, c.residuals, c.linear});
    } else if (e->prim == P_custom_linear_solve) {
        LinearSolve s = linear_solve_of(e);
        j = s.program[SOLVE_SOLVE];
        *in = vals_joined(arena, 2, (Vals[]){s.consts[SOLVE_SOLVE], s.b});
    } else if (prim_calls(e->prim)) {
        j = eqn_program(e);
    }
    return j && j->in.n == in->n && j->out.n == e->out.n ? j : NULL;
}

LinearCall linear_call_of(const Eqn *e) {
    LinearCall c = {0};
    uint32_t own, others, residuals;
    if (e->prim != P_linear_call || !count_among(e, K_num_callee_consts, e->in.n, &own) ||
        !count_among(e, K_num_transpose_consts, e->in.n - own, &others) ||
        !count_among(e, K_num_res, e->in.n - own - others, &residuals))
        return c;
    Jaxpr *callee = param_jaxpr(e, K_callee);
    if (!callee || callee->in.n != e->in.n - others || callee->out.n != e->out.n) return c;
    c.callee = callee;
    c.transpose = param_jaxpr(e, K_transpose);
    c.callee_consts = vals_part(e->in, 0, own);
    c.transpose_consts = vals_part(e->in, own, others);
    c.residuals = vals_part(e->in, own + others, residuals);
    c.linear = rest(e->in, own + others + residuals);
    return c;
}

static Params params_of(Arena *arena, uint32_t n, const Param *p) {
    Param *at = arena_new(arena, Param, n);
    memcpy(at, p, n * sizeof *at);
    return (Params){at, n};
}
Eqn linear_call_eqn(Arena *arena, const LinearCall *c) {
    Param p[] = {p_program(K_callee, c->callee), p_program(K_transpose, c->transpose),
                 p_count(K_num_callee_consts, c->callee_consts.n), p_count(K_num_res, c->residuals.n),
                 p_count(K_num_transpose_consts, c->transpose_consts.n)};
    Eqn e = {.prim = P_linear_call, .params = params_of(arena, sizeof p / sizeof *p, p)};
    e.in = vals_joined(arena, 4, (Vals[]){c->callee_consts, c->transpose_consts, c->residuals, c->linear});
    return e;
}

CustomLin custom_lin_of(const Eqn *e) {
    uint32_t residuals;
    CustomLin c = {.linear = e->in};
    if (e->prim != P_custom_lin || !count_among(e, K_num_res, e->in.n, &residuals)) return c;
    c.bwd = param_jaxpr(e, K_bwd);
    c.residuals = vals_part(e->in, 0, residuals), c.linear = rest(e->in, residuals);
    return c;
}
Eqn custom_lin_eqn(Arena *arena, const CustomLin *c) {
    Param p[] = {p_program(K_bwd, c->bwd), p_count(K_num_res, c->residuals.n)};
    Eqn e = {.prim = P_custom_lin, .params = params_of(arena, sizeof p / sizeof *p, p)};
    e.in = vals_joined(arena, 2, (Vals[]){c->residuals, c->linear});
    return e;
}

Vals rule_operands(const Eqn *e) {
    uint32_t consts;
    return count_among(e, K_num_consts, e->in.n, &consts) ? rest(e->in, consts) : e->in;
}

const char *const solve_field[NSOLVES] = {"matvec", "vecmat", "solve", "transpose_solve"};
LinearSolve linear_solve_of(const Eqn *e) {
    LinearSolve s = {.b = e->in};
    const Param *programs = param_find(e, K_jaxprs), *lengths = param_find(e, K_const_lengths);
    if (e->prim != P_custom_linear_solve || !programs || !lengths) return s;
    for (uint32_t i = 0; i < NSOLVES; i++) {
        const Value *n = value_field(&lengths->value, solve_field[i]);
        if (!n || n->kind != V_INT || n->i < 0 || n->i > s.b.n) return (LinearSolve){0};
        s.consts[i] = vals_part(s.b, 0, (uint32_t)n->i);
        s.b = rest(s.b, (uint32_t)n->i);
        s.program[i] = value_jaxpr(&programs->value, solve_field[i]);
    }
    return s;
}

Eqn custom_call_eqn(Arena *arena, const Eqn *like, Jaxpr *body, Vals consts, Vals operands, Params rules) {
    static const bool replaced[NPARAMS] = {
        [K_jvp_jaxpr] = true, [K_fwd_jaxpr] = true, [K_bwd_jaxpr] = true, [K_num_consts] = true};
    Eqn e = call_of(arena, like, body, vals_joined(arena, 2, (Vals[]){consts, operands}));
    Params to = {arena_new(arena, Param, e.params.n + rules.n + 1), 0};
    each(const Param, p, e.params)
        if (!replaced[p->key]) to.at[to.n++] = *p;
    each(const Param, p, rules) to.at[to.n++] = *p;
    to.at[to.n++] = (Param){.key = K_num_consts, .value = {.kind = V_INT, .i = consts.n}};
    e.params = to;
    return e;
}
/* A record with a field for each of the four. */
static Value solve_record(Arena *arena, const Value *like, const Value *of) {
    Value v = *like;
    v.list.n = NSOLVES;
    v.list.at = arena_new(arena, Value, NSOLVES);
    for (unsigned k = 0; k < NSOLVES; k++)
        v.list.at[k] =
            (Value){.kind = V_PAIR, .s = str(solve_field[k]), .list = {arena_copy(arena, &of[k], sizeof *of), 1}};
    return v;
}
Eqn linear_solve_eqn(Arena *arena, const Eqn *like, const LinearSolve *s) {
    Value programs[NSOLVES], lengths[NSOLVES];
    Vals parts[NSOLVES + 1];
    Eqn e = *like;
    for (unsigned k = 0; k < NSOLVES; k++) {
        programs[k] = (Value){.kind = s->program[k] ? V_JAXPR : V_NONE, .jaxpr = s->program[k]};
        lengths[k] = (Value){.kind = V_INT, .i = s->consts[k].n};
        parts[k] = s->consts[k];
    }
    parts[NSOLVES] = s->b;
    e.in = vals_joined(arena, NSOLVES + 1, parts), e.in_at = NULL, e.out = (Vals){0};
    e.params.at = arena_copy(arena, like->params.at, like->params.n * sizeof *like->params.at);
    each(Param, p, e.params) {
        if (p->key == K_jaxprs) p->value = solve_record(arena, &p->value, programs);
        if (p->key == K_const_lengths) p->value = solve_record(arena, &p->value, lengths);
    }
    return e;
}

/* ---- programs that are still being completed */
static int64_t *written_count(const Eqn *e, ParamKey key) {
    each(Param, p, e->params)
        if (key != K_other && p->key == key && p->value.kind == V_INT) return &p->value.i;
    return NULL;
}
void count_consts(Arena *arena, Eqn *e, uint32_t n) {
    if (e->prim != P_custom_jvp_call && e->prim != P_custom_vjp_call) return;
    Param *to = arena_new(arena, Param, (size_t)e->params.n + 1);
    memcpy(to, e->params.at, e->params.n * sizeof *to);
    to[e->params.n] = (Param){.key = K_num_consts, .span = e->span, .value = {.kind = V_INT, .i = n}};
    e->params = (Params){to, e->params.n + 1};
}
bool own_consts(const Eqn *e, uint32_t k, OwnConsts *own) {
    static const struct {
        Prim prim;
        uint32_t k;
        ParamKey program, n, before; /* before: how many operands stand before them */
    } counted[] = {{P_scan, 0, K_jaxpr, K_num_consts, K_other},
                   {P_while, 0, K_cond_jaxpr, K_cond_nconsts, K_other},
                   {P_while, 1, K_body_jaxpr, K_body_nconsts, K_cond_nconsts},
                   {P_linear_call, 0, K_callee, K_num_callee_consts, K_other},
                   {P_linear_call, 1, K_transpose, K_num_transpose_consts, K_num_callee_consts}};
    for (size_t i = 0; i < sizeof counted / sizeof *counted; i++) {
        if (counted[i].prim != e->prim || counted[i].k != k) continue;
        const int64_t *before = written_count(e, counted[i].before);
        *own = (OwnConsts){param_jaxpr(e, counted[i].program), before ? (uint32_t)*before : 0,
                           written_count(e, counted[i].n)};
        return own->program && own->n && (before || counted[i].before == K_other);
    }
    bool other = e->prim == P_linear_call || e->prim == P_custom_linear_solve;
    *own = (OwnConsts){.program = eqn_program(e), .n = written_count(e, K_num_consts)};
    return prim_calls(e->prim) && !other && k == 0 && own->program;
}
