/* while under jvp and split. */
#include "scan.h"

/* The condition as a program of the carry and its tangents, which it does not look at. */
static Inner condition(Tx *tx, Builder *b, const While *w, Vals carry) {
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
    ValList consts = {0};
    add_nonzero(tx, &consts, m->program.captured.n, m->program.captured.at);
    add_nonzero(tx, &consts, nb, w.body_consts.at);
    add_nonzero(tx, &consts, nb, d->t + first);
    Vals carry = jvp_operands(d, first + nb, carried);
    While new = w;
    Inner test = condition(tx, d->b, &w, carry);
    new.cond = test.j, new.cond_consts = test.captured;
    new.body = m->program.j, new.body_consts = list_vals(consts), new.carry = carry;
    Eqn e = while_eqn(tx->cx->arena, d->e, &new);
    return jvp_run(d, &e, carried, 0);
}

/* ---- split: the loop becomes a scan of as many iterations, whose residuals are stacked and which runs backwards

   The number of iterations is computed before the scan: from the bounds if the loop counts, or else by the loop itself,
   of what is known, which carries the number. dce leaves of that what the condition needs. Within another loop, the
   stacks are not kept but computed again, so that the scan disappears from the known program: there, the results are
   those of the counting loop. */

typedef struct {
    SplitEqn *s;
    While w;
    Bits in;             /* of the inputs of the body: are they unknown? */
    const MadeSplit *of; /* the body */
} Reverse;

/* Which carries are unknown. */
static Bits unknown_carry(const Reverse *r) { return bits_part(r->in, r->w.body_consts.n, r->w.carry.n); }

/* The whole carry for the condition, which does not look at what is unknown. */
static Vals tested(const Reverse *r, Builder *b, Vals known) {
    Vals all = {arena_new(b->cx->arena, Val, r->w.carry.n + 1), r->w.carry.n};
    Bits unknown = unknown_carry(r);
    put_where(all.at, unknown, false, known.at);
    for (uint32_t i = 0; i < all.n; i++)
        if (unknown.at[i]) all.at[i] = b_zeros_like(b, r->w.carry.at[i]);
    return vals_joined(b->cx->arena, 2, (Vals[]){r->w.cond_consts, all});
}
/* Runs what is known of the loop: the results of the known carry, then the number of iterations. */
static Vals run_known(const Reverse *r) {
    Tx *tx = r->s->tx;
    Builder *b = r->s->b;
    Arena *arena = tx->cx->arena;
    const Inner *known = &r->of->known;
    const Eqn *effect = effect_kept_in(tx, known->j);
    ValList carry = {0}, consts = {0};
    if (effect) {
        tx_error(tx, r->s->e->span,
                 "the reverse-mode derivative of while would run %s, which has effects, twice; see --tape=bound",
                 prim_name[effect->prim]);
        return (Vals){0};
    }
    add_where(tx, &carry, r->w.carry.at, unknown_carry(r), false);
    add_where(tx, &consts, r->w.body_consts.at, bits_part(r->in, 0, r->w.body_consts.n), false);
    uint32_t n = carry.n;
    push(arena, &carry, b_int(b, DT_i64, 0));
    Inner test = b_inner_like(b, carry.n, carry.at);
    Vals all = tested(r, b, vals_part(test.in, 0, n)), go = b_call(b, r->w.cond, all.n, all.at);
    b_inner_end(b, &test, go.n, go.at);
    Inner turn = b_inner_like(b, carry.n, carry.at);
    all = vals_joined(arena, 3, (Vals[]){known->captured, list_vals(consts), vals_part(turn.in, 0, n)});
    Vals y = b_call(b, jaxpr_pure(tx, known->j), all.n, all.at); /* effects happen in the scan */
    Val more = b_add(b, turn.in.at[n], b_int(b, DT_i64, 1));
    y = vals_joined(arena, 2, (Vals[]){vals_part(y, 0, n), {&more, 1}});
    b_inner_end(b, &turn, y.n, y.at);
    return b_while(b, &test, &turn, carry.n, carry.at);
}

/* A loop that counts: while i < bound, or one of the other comparisons, with i + 1 or i - 1 after each iteration. */
typedef struct {
    Val first, bound; /* at the equation */
    bool down, equal; /* i - 1; the bound is reached */
} Counter;
/* The value at the equation of an input of the condition or a literal, which is the same in each iteration; 0: it is
   not. */
static Val same_each_time(const Reverse *r, const While *turn, Val v) {
    const Ctx *cx = r->s->tx->cx;
    if (val_info(cx, v)->lit) return v;
    for (uint32_t i = 0; i < turn->cond_consts.n; i++)
        if (turn->cond_consts.at[i] == v) return r->w.cond_consts.at[i];
    for (uint32_t i = 0; i < turn->tested.n; i++)
        if (turn->tested.at[i] == v && turn->carry.at[i] == turn->end.at[i]) return r->w.carry.at[i];
    return 0;
}
static bool literal_int(const Ctx *cx, Val v, int64_t *n) {
    const Lit *lit = val_info(cx, v)->lit;
    if (!lit || lit->kind != LIT_INT || lit->i > INT32_MAX) return false;
    *n = lit->negative ? -(int64_t)lit->i : (int64_t)lit->i;
    return true;
}
/* What each iteration adds to a carry: 1 or -1; 0: anything else. */
static int64_t step_of(const Reverse *r, const While *turn, uint32_t k) {
    const Ctx *cx = r->s->tx->cx;
    int64_t n;
    each(const Eqn, e, r->w.body->eqns) {
        if (e->out.n != 1 || e->out.at[0] != turn->end.at[k] || (e->prim != P_add && e->prim != P_sub)) continue;
        bool swapped = e->prim == P_add && e->in.at[1] == turn->carry.at[k];
        Val i = e->in.at[swapped], step = e->in.at[!swapped];
        if (i != turn->carry.at[k] || !literal_int(cx, step, &n) || (n != 1 && n != -1)) return 0;
        return e->prim == P_add ? n : -n;
    }
    return 0;
}
/* Has every value of the type one as i64? */
static bool fits_i64(const ArrayType *t) {
    const DtypeInfo *d = &dtype_info[t->dtype];
    return !t->rank && (d->kind == DK_SINT || (d->kind == DK_UINT && d->bits < 64));
}
static bool find_counter(const Reverse *r, Counter *c) {
    static const struct {
        Prim prim, swapped; /* with the bound as first operand */
        bool down, equal;
    } tests[] = {
        {P_lt, P_gt, false, false}, {P_le, P_ge, false, true}, {P_gt, P_lt, true, false}, {P_ge, P_le, true, true}};
    const Ctx *cx = r->s->tx->cx;
    const Eqns eqns = r->w.cond->eqns;
    While turn = while_turn(&r->w, r->w.cond, r->w.body);
    if (eqns.n != 1 || eqns.at[0].in.n != 2 || eqns.at[0].out.at[0] != r->w.cond->out.at[0]) return false;
    for (uint32_t k = 0; k < turn.tested.n; k++) {
        if (!fits_i64(val_array(cx, turn.tested.at[k])) || unknown_carry(r).at[k]) continue;
        for (uint32_t side = 0; side < 2; side++) {
            Val i = eqns.at[0].in.at[side], bound = same_each_time(r, &turn, eqns.at[0].in.at[1 - side]);
            int64_t step = i == turn.tested.at[k] && bound ? step_of(r, &turn, k) : 0;
            for (uint32_t t = 0; step && t < sizeof tests / sizeof *tests; t++) {
                if (eqns.at[0].prim != (side ? tests[t].swapped : tests[t].prim) || (step < 0) != tests[t].down)
                    continue;
                *c = (Counter){r->w.carry.at[k], bound, tests[t].down, tests[t].equal};
                return true;
            }
        }
    }
    return false;
}
/* The number of iterations of such a loop. */
static Dim iterations(Builder *b, Counter c) {
    int64_t from, to;
    Val first = c.down ? c.bound : c.first, last = c.down ? c.first : c.bound;
    if (literal_int(b->cx, first, &from) && literal_int(b->cx, last, &to)) {
        int64_t n = to - from + c.equal;
        return n > 0 ? (Dim)n : 0;
    }
    Val n = b_sub(b, b_convert(b, last, DT_i64), b_convert(b, first, DT_i64));
    if (c.equal) n = b_add(b, n, b_int(b, DT_i64, 1));
    n = b_max(b, n, b_int(b, DT_i64, 0));
    return b->failed ? 0 : dim_bound(b_types(b), n);
}

/* The scan. */
static bool split_as_scan(const Reverse *r, Dim n) {
    SplitEqn s = *r->s;
    Scan scan = {.body = r->w.body, .length = n, .consts = r->w.body_consts, .carry = r->w.carry, .end = r->w.end};
    Eqn like = {.span = s.e->span, .whole = s.e->whole}, e = scan_eqn(s.tx->cx->arena, &like, &scan);
    s.e = &e, s.unknown = r->s->unknown + r->w.cond_consts.n;
    return split_scan(&s);
}
/* Does the condition depend on what is unknown? */
static bool unknown_condition(const Reverse *r) {
    const SplitEqn *s = r->s;
    uint32_t n = r->w.cond_consts.n;
    bool *in = arena_new(s->tx->cx->arena, bool, n + r->w.carry.n + 1);
    memcpy(in, s->unknown, n);
    bits_unite(in + n, unknown_carry(r));
    return bits_some(taint(s->tx, TAINT_SPLIT, r->w.cond, (Bits){in, n + r->w.carry.n}));
}
/* Of inputs for the same value, the first: types name it. */
static Vals first_inputs(Arena *arena, Vals like, Vals in) {
    Intern seen = {.arena = arena};
    Vals first = vals_new(arena, like.n), out = vals_new(arena, like.n);
    for (uint32_t i = 0; i < like.n; i++) {
        bool fresh;
        uint32_t k = intern(&seen, &like.at[i], sizeof(Val), &fresh);
        if (fresh) vals_push(&first, in.at[i]);
        vals_push(&out, first.at[k]);
    }
    return out;
}
/* --tape=bound:N: a scan of N iterations, each of which runs the body while the condition holds. Its constants are
   those of the body, then of the condition; whether the condition holds is carried first. */
static Inner bounded_turn(const Reverse *r, Builder *b, Vals consts, Vals carry) {
    Arena *arena = b->cx->arena;
    const While *w = &r->w;
    Vals like = vals_joined(arena, 2, (Vals[]){consts, carry});
    Inner turn = b_inner_like(b, like.n, like.at);
    Vals given = first_inputs(arena, consts, vals_part(turn.in, 0, consts.n));
    Vals body_consts = vals_part(given, 0, w->body_consts.n), now = vals_part(turn.in, consts.n + 1, w->carry.n);
    Vals cond_consts = vals_part(given, w->body_consts.n, w->cond_consts.n);
    Val go = turn.in.at[consts.n], no = b_number(b, DT_bool, 0);
    Inner stay = b_inner(b, 0, NULL);
    Vals same = vals_joined(arena, 2, (Vals[]){{&no, 1}, now});
    b_inner_end(b, &stay, same.n, same.at);
    Inner run = b_inner(b, 0, NULL);
    Vals in = vals_joined(arena, 2, (Vals[]){body_consts, now}), next = b_call(b, w->body, in.n, in.at);
    in = vals_joined(arena, 2, (Vals[]){cond_consts, next});
    next = vals_joined(arena, 2, (Vals[]){b_call(b, w->cond, in.n, in.at), next});
    b_inner_end(b, &run, next.n, next.at);
    Vals out = b_cond(b, go, 2, (Inner[]){stay, run}, 0, NULL);
    b_inner_end(b, &turn, out.n, out.at);
    return turn;
}
/* The scan's equation, and which of its operands are unknown. */
static Eqn bounded_scan(const Reverse *r, int64_t bound, Val go, bool **unknown) {
    const While *w = &r->w;
    const SplitEqn *s = r->s;
    Ctx *cx = s->tx->cx;
    Builder own = {.cx = cx, .mesh = s->b->mesh, .span = s->e->span, .whole = s->e->whole};
    Vals consts = vals_joined(cx->arena, 2, (Vals[]){w->body_consts, w->cond_consts});
    Vals carry = vals_joined(cx->arena, 2, (Vals[]){{&go, 1}, w->carry});
    Inner turn = bounded_turn(r, &own, consts, carry);
    s->tx->failed |= own.failed;
    Scan scan = {.body = turn.j, .length = (Dim)bound, .carry = carry};
    scan.consts = vals_joined(cx->arena, 2, (Vals[]){turn.captured, consts});
    Val still = val_new(cx, val_type(cx, go), s->e->span);
    scan.end = vals_joined(cx->arena, 2, (Vals[]){{&still, 1}, w->end});
    bool *to = *unknown = arena_new(cx->arena, bool, scan.consts.n + carry.n + 1);
    memcpy(to + turn.captured.n, r->in.at, w->body_consts.n);
    memcpy(to + scan.consts.n + 1, unknown_carry(r).at, w->carry.n);
    return scan_eqn(cx->arena, &(Eqn){.span = s->e->span, .whole = s->e->whole}, &scan);
}
static bool split_bounded(const Reverse *r, int64_t bound) {
    SplitEqn s = *r->s;
    Arena *arena = s.tx->cx->arena;
    ValList known = {0};
    add_where(s.tx, &known, r->w.carry.at, unknown_carry(r), false);
    Vals in = tested(r, s.b, list_vals(known)), go = b_call(s.b, r->w.cond, in.n, in.at);
    if (s.b->failed) return false;
    bool *unknown;
    Eqn e = bounded_scan(r, bound, go.at[0], &unknown);
    s.e = &e, s.unknown = unknown;
    s.out = arena_new(arena, Val, e.out.n), s.out_unknown = arena_new(arena, bool, e.out.n);
    if (s.tx->failed || !split_scan(&s)) return false;
    memcpy(r->s->out, s.out + 1, r->w.carry.n * sizeof *s.out);
    memcpy(r->s->out_unknown, s.out_unknown + 1, r->w.carry.n);
    long long n = bound;
    Str text = str_format(arena, "while ran more than %lld turns (--tape=bound:%lld)", n, n);
    Param message = {.key = K_error_message, .value = {.kind = V_TEXT, .s = text}};
    Val done = b_not(s.b, s.out[0]);
    build_many(s.b, P_shape_assertion, 1, &done, 1, &message, 0, NULL);
    return !s.b->failed;
}
bool split_while(SplitEqn *s) {
    Tx *tx = s->tx;
    Reverse r = {.s = s, .w = while_of(s->e)};
    uint32_t first = r.w.cond_consts.n, nb = r.w.body_consts.n, nc = r.w.carry.n;
    if (r.w.resizes)
        return tx_error(tx, s->e->span,
                        "the reverse-mode derivative of a loop whose carry changes its extents is not supported");
    r.in = taint_loop(tx, TAINT_SPLIT, r.w.body, (Bits){s->unknown + first, nb + nc}, nb, nc);
    if (unknown_condition(&r)) return tx_error(tx, s->e->span, "the condition of while depends on a tangent");
    if (tx->cx->options->tape) return split_bounded(&r, tx->cx->options->tape);
    r.of = split_turn(tx, s->b, r.w.body, r.in, unknown_carry(&r));
    if (!r.of) return false;
    Counter c;
    if (find_counter(&r, &c)) return split_as_scan(&r, iterations(s->b, c));
    Vals end = run_known(&r);
    if (!end.n || s->b->failed || !split_as_scan(&r, dim_bound(b_types(s->b), end.at[end.n - 1]))) return false;
    if (tx->in_loop) put_where(s->out, unknown_carry(&r), false, end.at);
    return true;
}
