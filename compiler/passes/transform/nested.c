/* What nested programs need not compute. Results that are known outside become operands of the equation, earlier
   results or literals, so that dce drops them; carries that never change become constants of their loop; what is the
   same in each turn of a loop is computed before it, unless it is so cheap that it is better fused than stored, or
   takes much more memory than what it is computed from; a call of one equation becomes it.

   A body that several equations run stays shared: it gets other inputs only if all of them divide its inputs alike.
   Programs of custom rules stay as they are. */
#include "identities.h"

/* How the equations that run a program divide its inputs. */
typedef struct {
    uint32_t prim, consts, carry; /* P_none: not always alike */
    uint32_t body;                /* of a condition: 1 + the number of the body that it belongs to */
    uint32_t runs;                /* a scan is known to have an iteration */
} Division;
typedef struct {
    Ctx *cx;
    ValMap map;
    Memo memo;
    Memo loops; /* bodies with other inputs */
    Effects effects;
    Search endless;       /* eqn_runs_anywhere */
    Intern left, numbers; /* of programs */
    struct {
        Division *at;
        uint32_t n, cap;
    } divisions; /* by number */
    bool failed;
} Nested;

/* ---- divisions */
static void divide(Nested *n, const Jaxpr *j, Division d) {
    bool fresh;
    uint32_t number = intern(&n->numbers, &j, sizeof j, &fresh);
    if (!fresh) {
        if (memcmp(&n->divisions.at[number], &d, sizeof d) != 0) n->divisions.at[number].prim = P_none;
        return;
    }
    push(n->cx->arena, &n->divisions, d);
    each(const Eqn, e, j->eqns) {
        Scan s = scan_of(e);
        While w = while_of(e);
        Jaxprs inner = e->params.n ? eqn_jaxprs(n->cx->arena, e) : (Jaxprs){0};
        if (s.body) {
            divide(n, s.body, (Division){P_scan, s.consts.n, s.carry.n, 0, scan_runs(n->cx, &s)});
        } else if (w.body) {
            divide(n, w.body, (Division){P_while, w.body_consts.n, w.carry.n, 0, 0});
            uint32_t body = intern(&n->numbers, &w.body, sizeof w.body, NULL);
            divide(n, w.cond, (Division){P_while, w.cond_consts.n, w.carry.n, 1 + body, 0});
        } else {
            each(Jaxpr *, k, inner) divide(n, *k, (Division){0});
        }
    }
}
static bool divided_alike(Nested *n, const Jaxpr *j) {
    uint32_t number;
    bool known = intern_find(&n->numbers, &j, sizeof j, &number);
    return known && n->divisions.at[number].prim != P_none;
}

/* ---- results that are known outside */
static bool is_extent(const Ctx *cx, Val v) { return dim_is_bound(cx->types, v); }
static void replace(Nested *n, Val old, Val v) {
    Ctx *cx = n->cx;
    bool same = type_plain(cx->types, val_type(cx, old)) == type_plain(cx->types, val_type(cx, v));
    if (same && !is_extent(cx, old)) valmap_put(&n->map, old, valmap_get(&n->map, v));
}
/* Of programs each of which gives the results of `e` and takes `operands`. */
static void forward(Nested *n, const Eqn *e, Jaxprs programs, Vals operands) {
    Arena *arena = n->cx->arena;
    Intern results = {.arena = arena}, *inputs = arena_new(arena, Intern, programs.n);
    Val *key = arena_new(arena, Val, programs.n), *first = arena_new(arena, Val, e->out.n);
    for (uint32_t i = 0; i < programs.n; i++) {
        inputs[i].arena = arena;
        each(const Val, v, programs.at[i]->in) intern(&inputs[i], v, sizeof *v, NULL);
    }
    for (uint32_t k = 0; k < e->out.n; k++) {
        uint32_t place = 0, p;
        bool passed = true, fresh;
        for (uint32_t i = 0; i < programs.n; i++) {
            key[i] = programs.at[i]->out.at[k];
            passed = passed && intern_find(&inputs[i], &key[i], sizeof *key, &p) && (i == 0 || p == place);
            if (passed) place = p;
        }
        uint32_t number = intern(&results, key, programs.n * sizeof *key, &fresh);
        if (fresh) first[number] = e->out.at[k];
        if (passed)
            replace(n, e->out.at[k], operands.at[place]);
        else if (programs.n == 1 && val_info(n->cx, key[0])->lit)
            replace(n, e->out.at[k], key[0]);
        else if (!fresh)
            replace(n, e->out.at[k], first[number]);
    }
}
/* Stacked results of a scan that are equal to scanned arrays or to each other. */
static void forward_stacks(Nested *n, const Scan *s) {
    Scan turn = scan_turn(s, s->body);
    Intern known = {.arena = n->cx->arena};
    Val *first = arena_new(n->cx->arena, Val, s->xs.n + s->ys.n + 1);
    for (uint32_t k = 0; k < s->xs.n; k++) first[intern(&known, &turn.xs.at[k], sizeof(Val), NULL)] = s->xs.at[k];
    for (uint32_t k = 0; k < s->ys.n; k++) {
        bool fresh;
        uint32_t number = intern(&known, &turn.ys.at[k], sizeof(Val), &fresh);
        if (fresh) first[number] = s->ys.at[k];
        if (!fresh) replace(n, s->ys.at[k], first[number]);
    }
}

/* ---- constants of loops */

static void see_extent(void *some, Val v) { *(bool *)some = true; }
/* Does the type of a value name another value? */
static bool names_extents(const Ctx *cx, Vals vs) {
    bool some = false;
    each(const Val, v, vs) type_extents(cx, val_type(cx, *v), see_extent, &some);
    return some;
}
/* Carries whose next value is their own; NULL: none. */
static bool *fixed_carries(Ctx *cx, Vals carry, Vals next) {
    bool *fixed = arena_new(cx->arena, bool, carry.n + 1), some = false;
    for (uint32_t i = 0; i < carry.n; i++) some |= fixed[i] = carry.at[i] == next.at[i];
    return some ? fixed : NULL;
}
/* The program with other inputs and results: once for each program. */
static Jaxpr *with_inputs(Nested *n, const Jaxpr *j, Eqns eqns, Vals in, Vals out) {
    Jaxpr **slot = memo_slot(&n->loops, j);
    if (*slot) return *slot;
    Jaxpr *new = jaxpr_with(n->cx, j, eqns, out);
    new->in = in;
    return *slot = new;
}
static void end_fixed(Nested *n, Eqns *to, Vals end, Vals start, const bool *fixed) {
    for (uint32_t i = 0; i < end.n; i++)
        if (fixed[i]) val_replace(&n->map, to, end.at[i], start.at[i]);
}
static Eqn scan_fixed(Nested *n, Eqns *to, const Eqn *e, Scan s) {
    Arena *arena = n->cx->arena;
    Scan turn = scan_turn(&s, s.body);
    bool *fixed = fixed_carries(n->cx, turn.carry, turn.end);
    if (!fixed) return *e;
    Vals in[] = {turn.consts, vals_where(arena, turn.carry, fixed, true), vals_where(arena, turn.carry, fixed, false),
                 turn.xs};
    Vals out[] = {vals_where(arena, turn.end, fixed, false), turn.ys};
    end_fixed(n, to, s.end, s.carry, fixed);
    s.body = with_inputs(n, s.body, s.body->eqns, vals_joined(arena, 4, in), vals_joined(arena, 2, out));
    s.consts = vals_joined(arena, 2, (Vals[]){s.consts, vals_where(arena, s.carry, fixed, true)});
    s.carry = vals_where(arena, s.carry, fixed, false);
    s.end = vals_where(arena, s.end, fixed, false);
    return scan_eqn(arena, e, &s);
}
static Eqn while_fixed(Nested *n, Eqns *to, const Eqn *e, While w) {
    Arena *arena = n->cx->arena;
    While turn = while_turn(&w, w.cond, w.body);
    bool *fixed = w.resizes ? NULL : fixed_carries(n->cx, turn.carry, turn.end);
    if (!fixed) return *e;
    Vals test[] = {turn.cond_consts, vals_where(arena, turn.tested, fixed, true),
                   vals_where(arena, turn.tested, fixed, false)};
    Vals in[] = {turn.body_consts, vals_where(arena, turn.carry, fixed, true),
                 vals_where(arena, turn.carry, fixed, false)};
    Vals start = vals_where(arena, w.carry, fixed, true);
    end_fixed(n, to, w.end, w.carry, fixed);
    w.cond = with_inputs(n, w.cond, w.cond->eqns, vals_joined(arena, 3, test), w.cond->out);
    w.body = with_inputs(n, w.body, w.body->eqns, vals_joined(arena, 3, in), vals_where(arena, turn.end, fixed, false));
    w.cond_consts = vals_joined(arena, 2, (Vals[]){w.cond_consts, start});
    w.body_consts = vals_joined(arena, 2, (Vals[]){w.body_consts, start});
    w.carry = w.tested = vals_where(arena, w.carry, fixed, false);
    w.end = vals_where(arena, w.end, fixed, false);
    return while_eqn(arena, e, &w);
}

/* ---- equations that are the same in each turn */

enum { FEW_ELEMENTS = 1 << 16 }; /* are stored even if they are computed from less */
/* Values that are the same in each turn, but literals, and the largest constant of the loop that each is computed
   from. */
typedef struct {
    Intern numbers;
    struct {
        Val *at;
        uint32_t n, cap;
    } from;
} Same;
static void same_put(Ctx *cx, Same *s, Val v, Val from) {
    bool fresh;
    intern(&s->numbers, &v, sizeof v, &fresh);
    if (fresh) push(cx->arena, &s->from, from);
}
static bool is_larger(Ctx *cx, Val v, Val than) {
    Dim n = type_size(cx->types, val_type(cx, v)), m = type_size(cx->types, val_type(cx, than));
    return dim_is_const(n) && dim_is_const(m) ? n > m : long_axes(val_array(cx, v)) > long_axes(val_array(cx, than));
}
/* *from: the largest constant that operands are computed from; 0: they are literals. False: not all are the same. */
static bool all_same(Ctx *cx, const Same *s, Vals in, Val *from) {
    *from = 0;
    each(const Val, v, in) {
        uint32_t number;
        if (val_info(cx, *v)->lit) continue;
        if (!intern_find(&s->numbers, v, sizeof *v, &number)) return false;
        Val one = s->from.at[number];
        if (one && (!*from || is_larger(cx, one, *from))) *from = one;
    }
    return true;
}
static bool takes_memory(Ctx *cx, Vals out, Val from) {
    each(const Val, v, out) {
        Dim n = type_size(cx->types, val_type(cx, *v));
        bool few = dim_is_const(n) && n <= FEW_ELEMENTS;
        if (!few && (!from || is_larger(cx, *v, from))) return true;
    }
    return false;
}
typedef struct {
    bool *moves, *copied; /* by equation: its results come from outside; it is computed outside */
    uint32_t nmoved;      /* results that come from outside */
} Invariant;
/* May the equation run outside of the loop, its operands permitting? `runs`: the loop is known to have an iteration. */
static bool may_move(Nested *n, const Eqn *e, bool runs) {
    bool extents = names_extents(n->cx, e->out);
    eqn_extents(n->cx, e, see_extent, &extents);
    each(const Val, v, e->out) extents |= is_extent(n->cx, *v);
    return !extents && !eqn_has_effects(&n->effects, e) && (runs || eqn_runs_anywhere(&n->endless, e));
}
static Invariant invariants_of(Nested *n, const Jaxpr *body, uint32_t consts, bool runs) {
    Ctx *cx = n->cx;
    Arena *arena = cx->arena;
    Invariant x = {arena_new(arena, bool, body->eqns.n + 1), arena_new(arena, bool, body->eqns.n + 1), 0};
    Same same = {.numbers.arena = arena};
    Intern needed = {.arena = arena};
    for (uint32_t i = 0; i < consts; i++) same_put(cx, &same, body->in.at[i], body->in.at[i]);
    for (uint32_t i = 0; i < body->eqns.n; i++) {
        const Eqn *e = &body->eqns.at[i];
        Val from;
        if (!may_move(n, e, runs) || !all_same(cx, &same, e->in, &from)) continue;
        each(const Val, v, e->out) same_put(cx, &same, *v, from);
        x.copied[i] = true;
        if (eqn_cheap(e) || all_scalars(cx, e->out) || takes_memory(cx, e->out, from)) continue;
        x.moves[i] = true;
        x.nmoved += e->out.n;
    }
    for (uint32_t i = body->eqns.n; i-- > 0;) { /* what these need */
        const Eqn *e = &body->eqns.at[i];
        bool some = x.moves[i];
        each(const Val, v, e->out) some |= intern_find(&needed, v, sizeof *v, &(uint32_t){0});
        x.copied[i] &= some;
        if (x.copied[i])
            each(const Val, v, e->in) intern(&needed, v, sizeof *v, NULL);
    }
    return x;
}
/* What becomes of a loop: its body with more inputs after the constants, and their values outside. */
typedef struct {
    Jaxpr *body;
    Vals outer;
} Moved;
/* Writes the invariant equations of a body, whose first inputs are these constants, to `to`. No body: there are
   none. */
static Moved invariants(Nested *n, Eqns *to, Jaxpr *body, Vals consts, bool runs) {
    Ctx *cx = n->cx;
    Arena *arena = cx->arena;
    Invariant x = invariants_of(n, body, consts.n, runs);
    if (!x.nmoved) return (Moved){0};
    ValMap outside = {.cx = cx, .sparse = true};
    Vals inner = {arena_new(arena, Val, x.nmoved), 0}, outer = {arena_new(arena, Val, x.nmoved), 0};
    Eqns rest = {0};
    for (uint32_t i = 0; i < consts.n; i++) valmap_put(&outside, body->in.at[i], consts.at[i]);
    for (uint32_t i = 0; i < body->eqns.n; i++) {
        const Eqn *old = &body->eqns.at[i];
        if (!x.moves[i]) push(arena, &rest, *old);
        if (!x.copied[i]) continue;
        Eqn new = eqn_rewrite(&outside, old, NULL, NULL);
        new.out = (Vals){arena_new(arena, Val, old->out.n + 1), old->out.n};
        for (uint32_t k = 0; k < old->out.n; k++) {
            new.out.at[k] = val_new(cx, val_type(cx, old->out.at[k]), old->span);
            valmap_put(&outside, old->out.at[k], new.out.at[k]);
            if (x.moves[i]) inner.at[inner.n++] = old->out.at[k], outer.at[outer.n++] = new.out.at[k];
        }
        push(arena, to, new);
    }
    Vals in[] = {vals_part(body->in, 0, consts.n), inner, vals_part(body->in, consts.n, body->in.n - consts.n)};
    return (Moved){with_inputs(n, body, rest, vals_joined(arena, 3, in), body->out), outer};
}
static Eqn scan_invariants(Nested *n, Eqns *to, const Eqn *e, Scan s) {
    Moved m = invariants(n, to, s.body, s.consts, scan_runs(n->cx, &s));
    if (!m.body) return *e;
    s.body = m.body;
    s.consts = vals_joined(n->cx->arena, 2, (Vals[]){s.consts, m.outer});
    return scan_eqn(n->cx->arena, e, &s);
}
static Eqn while_invariants(Nested *n, Eqns *to, const Eqn *e, While w) {
    Moved m = w.resizes ? (Moved){0} : invariants(n, to, w.body, w.body_consts, false);
    if (!m.body) return *e;
    w.body = m.body;
    w.body_consts = vals_joined(n->cx->arena, 2, (Vals[]){w.body_consts, m.outer});
    return while_eqn(n->cx->arena, e, &w);
}

/* ---- the program */

/* `e` runs a loop whose programs are final; `read` is the equation read. */
static Eqn loop_left(Nested *n, Eqns *to, const Eqn *read, Eqn e) {
    Ctx *cx = n->cx;
    Scan s = scan_of(&e), was = scan_of(read);
    While w = while_of(&e), before = while_of(read);
    if (s.body) {
        forward_stacks(n, &s);
        if (!divided_alike(n, was.body) || names_extents(cx, s.body->in)) return e;
        e = scan_fixed(n, to, &e, s);
        return scan_invariants(n, to, &e, scan_of(&e));
    }
    bool alike = w.body && divided_alike(n, before.body) && divided_alike(n, before.cond);
    if (!alike || names_extents(cx, w.body->in)) return e;
    e = while_fixed(n, to, &e, w);
    return while_invariants(n, to, &e, while_of(&e));
}
static bool is_small(const Eqn *e, const Jaxpr *body) { return body->eqns.n <= 1 && !prim_is(e->prim, REMAT); }
static bool nested_eqn(void *user, Eqns *to, Consts *consts, const Eqn *e);
static Jaxpr *nested_jaxpr(void *user, const Jaxpr *j) {
    Nested *n = user;
    if (intern_find(&n->left, &j, sizeof j, &(uint32_t){0})) return (Jaxpr *)j;
    Jaxpr *new = n->failed ? NULL : jaxpr_rewrite(&n->map, &n->memo, j, nested_eqn, n);
    n->failed = !new;
    return new;
}
static bool nested_eqn(void *user, Eqns *to, Consts *consts, const Eqn *e) {
    Nested *n = user;
    Eqn new = eqn_rewrite(&n->map, e, nested_jaxpr, n);
    if (n->failed) return false;
    Jaxpr *body = prim_is(e->prim, PLAIN_CALL) ? eqn_program(&new) : NULL;
    Cond c = cond_of(&new);
    if (body && is_small(e, body)) {
        add_consts(n->cx->arena, consts, body->consts);
        return jaxpr_splice_call(&n->map, to, body, new.in, &new);
    }
    if (body) forward(n, &new, (Jaxprs){&body, 1}, new.in);
    if (c.branches.n) forward(n, &new, c.branches, c.in);
    if (e->prim == P_scan || e->prim == P_while) new = loop_left(n, to, e, new);
    push(n->cx->arena, to, new);
    return true;
}

Jaxpr *tidy_nested(Ctx *cx, const Jaxpr *j) {
    Nested n = {.cx = cx, .map.cx = cx, .effects.cx = cx, .endless.cx = cx, .left = programs_of_rules(cx, j)};
    n.memo.arena = n.loops.arena = n.numbers.arena = cx->arena;
    divide(&n, j, (Division){0});
    return nested_jaxpr(&n, j);
}
Jaxpr *pass_nested(Ctx *cx, const Jaxpr *j) {
    bool loops = jaxpr_uses(cx->arena, j, P_scan) || jaxpr_uses(cx->arena, j, P_while);
    return loops ? tidy_nested(cx, j) : jaxpr_with(cx, j, j->eqns, j->out);
}
