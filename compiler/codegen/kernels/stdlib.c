/* Elementwise equations that are programs of stdlib/, run on registers. */
#include "kernel.h"
#include "../cost.h"
#include "../eval/program.h"
#include "point.h"
#include <assert.h>

enum { MOST_OPERANDS = 8 /* of a program */ };
static V stdlib_run(Kernel *k, const Jaxpr *j, const V *x, uint32_t w) {
    k->in_stdlib++; /* -ffast-math would fold its error terms to 0 */
    V y = {NULL};
    assert(j->out.n == 1);
    kernel_run(k, j, x, w, &y);
    k->in_stdlib--;
    return y;
}

/* Computes a function of a program's operands. */
typedef V StdlibBody(Kernel *, const char *name, const V *x, uint32_t n, uint32_t w);
/* Programs that divide 1 alone, by numbers that are not small, and not so large that the quotients are. */
static const char *const inverting[] = {"tanh_f32", "logistic_f32"};
static V body_all(Kernel *k, const char *name, const V *x, uint32_t n, uint32_t w) {
    bool was = k->normal_divisors;
    k->normal_divisors = false;
    for (uint32_t i = 0; i < sizeof inverting / sizeof *inverting; i++)
        k->normal_divisors |= k->e->target->device && str_is(str(name), inverting[i]);
    V y = stdlib_run(k, stdlib_program(k->x.plan->cx, name), x, w);
    k->normal_divisors = was;
    return y;
}
/* As a separate function, for operands of these types. */
static V stdlib_function(Kernel *k, StdlibBody *body, Str symbol, const char *name, const V *x, uint32_t n,
                         uint32_t w) {
    Emit *e = k->e;
    bool fresh;
    intern(&e->declared, symbol.at, symbol.n, &fresh);
    MlirType t[MOST_OPERANDS];
    assert(n <= MOST_OPERANDS);
    for (uint32_t i = 0; i < n; i++) t[i] = mlirValueGetType(x[i]);
    if (fresh) {
        V args[MOST_OPERANDS];
        MlirType *types = arena_new(e->arena, MlirType, n);
        memcpy(types, t, n * sizeof *t);
        Function f = em_function(e, symbol, t[0], n, types, false);
        for (uint32_t i = 0; i < n; i++) args[i] = em_arg(&f.scope, i);
        em_function_end(e, &f, body(k, name, args, n, w));
    }
    return em_call_local(e, symbol, t[0], n, x);
}
static V stdlib_all(Kernel *k, const char *name, const V *x, uint32_t n, uint32_t w) {
    Str symbol = str_format(k->e->arena, "stdlib.%s.%u%s", name, w, k->e->level);
    return stdlib_function(k, body_all, symbol, name, x, n, w);
}
/* The result y of the fast program or, for lanes beyond its bound (see stdlib_suits), that of the full program: what a
   lane has does not depend on the others. */
static V choose(Kernel *k, const char *name, V y, const V *x, uint32_t n, uint32_t w) {
    Emit *e = k->e;
    const StdlibFast *fast = stdlib_fast(name);
    V bound = em_float(e, mlirValueGetType(x[0]), fast->bound), beyond, any;
    beyond = fast->above ? em_cmpf(e, "ule", x[0], bound) : em_cmpf(e, "uge", em_un(e, "llvm.intr.fabs", x[0]), bound);
    any = w > 1 ? em_1(e, "llvm.intr.vector.reduce.or", e->i1, 1, &beyond, 0, NULL) : beyond;
    If i = em_if(e, any);
    V all = stdlib_all(k, str_format(e->arena, "%s_full", name).at, x, n, w);
    if (w > 1) all = em_select(e, beyond, all, y);
    em_else(e, &i, 1, &all);
    V r;
    em_if_end(e, &i, &y, &r);
    return r;
}
static V body_chosen(Kernel *k, const char *name, const V *x, uint32_t n, uint32_t w) {
    return choose(k, name, body_all(k, name, x, n, w), x, n, w);
}
static uint32_t *uses_so_far(Emit *e) { return &e->nstdlib[e->target - e->targets->at]; }
/* How many are inlined: thousands of them would take long to compile. On a device, a call in a kernel of many elements
   keeps accesses apart. */
static uint32_t most_inlined(const Kernel *k) {
    const Step *s = k->x.step;
    if (!k->x.plan->target->device || !s) return STDLIB_INLINE;
    Dim n = 1;
    for (uint32_t d = 0; d < s->domain.n; d++) n = dim_mul(k->x.plan->cx->types, n, s->domain.at[d]);
    return dim_is_const(n) && n < RUN_POINTS ? STDLIB_INLINE : STDLIB_ROWS;
}
bool kernel_calls(const Kernel *k) { return *uses_so_far(k->e) > most_inlined(k); }
static V stdlib_call(Kernel *k, const char *name, const V *x, uint32_t n, uint32_t w) {
    const Jaxpr *j = stdlib_program(k->x.plan->cx, name);
    bool large = j->eqns.n > STDLIB_LARGE, chosen = stdlib_fast(name), many = kernel_calls(k);
    each(Eqn, q, j->eqns) large |= q->prim == P_while;
    if (many && chosen) {
        Str symbol = str_format(k->e->arena, "stdlib.%s_chosen.%u%s", name, w, k->e->level);
        return stdlib_function(k, body_chosen, symbol, name, x, n, w);
    }
    if (!large && k->in_run <= 1) ++*uses_so_far(k->e); /* once for a run */
    V y = (large || many ? stdlib_all : body_all)(k, name, x, n, w);
    return chosen ? choose(k, name, y, x, n, w) : y;
}

/* ---- running programs */
/* A program being evaluated: its values, including those of its loop bodies, by number as in the marks. */
typedef struct {
    Kernel *k;
    Marks m;
    V *env; /* a vector if the value varies; else a scalar, the same in all lanes */
    uint32_t w;
    V exists; /* the lanes that have an element; NULL: all */
} Run;
static bool varies(const Run *r, Val v) { return program_varies(&r->m, v); }
/* The value, as a vector if `vector`. */
static V run_value(const Run *r, Val v, bool vector) {
    if (val_info(r->k->x.plan->cx, v)->lit) return kernel_literal(r->k, v, vector ? r->w : 1);
    assert(v >= r->m.first && r->env[v - r->m.first].ptr);
    V x = r->env[v - r->m.first];
    return vector && !varies(r, v) ? em_broadcast(r->k->e, x, r->w) : x;
}
static void run_bind(const Run *r, Vals to, const V *from) {
    for (uint32_t i = 0; i < to.n; i++) r->env[to.at[i] - r->m.first] = from[i];
}
/* Constants of a loop: registers, or operands that are read at computed places. */
static void run_consts(const Run *r, Vals to, Vals from) {
    V *x = arena_new(r->k->e->arena, V, to.n + 1);
    for (uint32_t i = 0; i < to.n; i++)
        if (!program_array(&r->m, from.at[i])) x[i] = run_value(r, from.at[i], varies(r, to.at[i]));
    run_bind(r, to, x);
}

/* ---- arrays: read at places that the program computes, and stacked */
static void run_enter(const Run *r) {
    if (r->m.arrays) kernel_enter(r->k);
}
static void run_leave(const Run *r) {
    if (r->m.arrays) kernel_leave(r->k);
}
/* The registers of its places are what the elements of arrays that they stand for are. */
static Reg run_read(const Run *r, const Eqn *q) {
    Kernel *k = r->k;
    for (uint32_t i = 1; i < q->in.n; i++) {
        Val v = q->in.at[i];
        if (val_info(k->x.plan->cx, v)->lit) continue;
        bool vector = varies(r, v);
        eval_remember(&k->x, v, NULL, reg(run_value(r, v, vector), !vector, k->x.depth));
    }
    return program_read(&k->x, &r->m, q);
}
/* The result of the whole program that v is. */
static Val run_result(const Run *r, Val v) {
    Vals out = param_jaxpr(r->m.e, K_jaxpr)->out;
    uint32_t i = 0;
    while (i < out.n && out.at[i] != v) i++;
    assert(i < out.n);
    return r->m.e->out.at[i];
}
/* Writes what a turn stacks to all places where the step stores it; `ys`: the stacks, `at`: the turn. */
static void run_stacks(const Run *r, Vals ys, Vals turn, V at) {
    Kernel *k = r->k;
    Pending *all = arena_new(k->x.plan->arena, Pending, k->x.step->stores.n + 1);
    Ix index[MAX_RANK];
    uint32_t n = 0;
    for (uint32_t i = 0; i < ys.n; i++) {
        Val y = run_result(r, ys.at[i]), v = turn.at[i];
        Dtype d = val_array(k->x.plan->cx, y)->dtype;
        Reg x = reg(run_value(r, v, varies(r, v)), !varies(r, v), k->x.depth);
        kernel_bind(k, ix_loop(k->x.ix, plan_info(k->x.plan, y)->turn), at);
        each(Store, s, k->x.step->stores) {
            if (s->v != y || s->level != k->x.level) continue;
            step_at(k->x.plan, k->x.step, y, index);
            Ix address = store_address(k->x.plan, s, index);
            all[n++] = (Pending){s->buf, s->as ? s->as : d, address, kernel_convert(k, x, d, s->as), false};
        }
    }
    kernel_store_all(k, all, n);
}

/* ---- code */
static void run_eqn(const Run *r, const Eqn *q);
static void run_eqns(const Run *r, const Jaxpr *);

/* ---- scans. On a device several turns are done at once: what they read at places that do not depend on anything else
   that the loop carries is read first, so that memory brings it at the same time. */
typedef struct {
    Scan c, turn;
    Eqns eqns;   /* of a turn */
    bool *early; /* by value of the program: an earlier turn need only count for it; NULL: it is not known */
} Turns;
static bool is_early(const Run *r, const bool *early, Val v) {
    return val_info(r->k->x.plan->cx, v)->lit || early[v - r->m.first];
}
static bool is_whole(const Run *r, Val v) {
    DtypeKind kind = dtype_info[val_array(r->k->x.plan->cx, v)->dtype].kind;
    return kind == DK_SINT || kind == DK_UINT || kind == DK_BOOL;
}
/* Elements of arrays, and whole numbers, of what is early. */
static bool computed_early(const Run *r, const bool *early, const Eqn *q) {
    bool yes = q->out.n == 1 && (q->prim == P_element || (prim_elementwise(q->prim) && is_whole(r, q->out.at[0])));
    for (uint32_t i = q->prim == P_element; i < q->in.n; i++) yes &= is_early(r, early, q->in.at[i]);
    return yes;
}
static void find_early(const Run *r, Turns *t) {
    bool *early = arena_new(r->k->x.plan->arena, bool, r->m.n), again = true;
    each(Val, v, t->turn.consts) early[*v - r->m.first] = true;
    each(Val, v, t->turn.carry) early[*v - r->m.first] = is_whole(r, *v);
    while (again) {
        again = false;
        each(Eqn, q, t->eqns)
            each(Val, v, q->out) early[*v - r->m.first] = computed_early(r, early, q);
        for (uint32_t i = 0; i < t->turn.carry.n; i++) {
            bool *carry = &early[t->turn.carry.at[i] - r->m.first];
            if (!*carry || is_early(r, early, t->turn.end.at[i])) continue;
            *carry = false, again = true;
        }
    }
    t->early = early;
}
/* How many turns at once. */
static uint32_t turns_at_once(const Run *r, Turns *t, Dim length) {
    uint32_t cost = 1, reads = 0, n = SCAN_TURNS;
    if (!r->k->e->target->device || r->w > 1) return 1;
    each(Eqn, q, t->eqns) {
        if (q->prim == P_while || q->prim == P_scan) return 1;
        cost += prim_lower[q->prim] == LOWER_STDLIB ? STDLIB_COST : 1;
    }
    find_early(r, t);
    each(Eqn, q, t->eqns) reads += q->prim == P_element && t->early[q->out.at[0] - r->m.first];
    while (n > 1 && (n * reads > SCAN_READS || n * cost > RUN_COST || (dim_is_const(length) && length < n))) n /= 2;
    return reads ? n : 1;
}
static void run_these(const Run *r, const Turns *t, bool early) {
    each(Eqn, q, t->eqns)
        if (t->early[q->out.at[0] - r->m.first] == early) run_eqn(r, q);
}
/* Binds the carries that are early, or the others, as `before` leaves them. */
static void run_carries(const Run *r, const Turns *t, const Run *before, bool early) {
    for (uint32_t i = 0; i < t->turn.carry.n; i++) {
        Val v = t->turn.carry.at[i];
        if (t->early[v - r->m.first] == early)
            r->env[v - r->m.first] = run_value(before, t->turn.end.at[i], varies(r, v));
    }
}
/* n turns from number `at` on; the values after the last one. */
static Run run_several(const Run *r, const Turns *t, uint32_t n, V at) {
    Kernel *k = r->k;
    V step = em_i64(k->e, t->c.reverse ? -1 : 1);
    Run *turn = arena_new(k->e->arena, Run, n);
    for (uint32_t i = 0; i < n; i++) {
        turn[i] = *r;
        turn[i].env = arena_new(k->e->arena, V, r->m.n);
        memcpy(turn[i].env, r->env, r->m.n * sizeof *r->env);
        run_enter(r);
        if (i) run_carries(&turn[i], t, &turn[i - 1], true);
        run_these(&turn[i], t, true);
        run_leave(r);
    }
    for (uint32_t i = 0; i < n; i++) {
        run_enter(r);
        if (i) run_carries(&turn[i], t, &turn[i - 1], false);
        run_these(&turn[i], t, false);
        run_stacks(&turn[i], t->c.ys, t->turn.ys, em_add(k->e, at, em_mul(k->e, step, em_i64(k->e, i))));
        run_leave(r);
    }
    return turn[n - 1];
}
/* The turns [lo, hi), n at once, and the carries after them. */
static void run_turns(const Run *r, const Turns *t, uint32_t n, V lo, V hi, V *carry) {
    Kernel *k = r->k;
    Emit *e = k->e;
    uint32_t carries = t->turn.carry.n;
    V *next = arena_new(e->arena, V, carries + 1), length = kernel_dim(k, scan_length(k->x.plan->cx, &t->c));
    For f = em_for(e, lo, hi, em_i64(e, n), carries, carry);
    run_enter(r);
    V at = em_arg(&f.scope, 0);
    if (t->c.reverse) at = em_sub(e, em_sub(e, length, em_i64(e, 1)), at);
    for (uint32_t i = 0; i < carries; i++) next[i] = em_arg(&f.scope, 1 + i);
    run_bind(r, t->turn.carry, next);
    Run end = *r;
    if (n > 1) {
        end = run_several(r, t, n, at);
    } else {
        run_eqns(r, t->c.body);
        run_stacks(r, t->c.ys, t->turn.ys, at);
    }
    for (uint32_t i = 0; i < carries; i++) next[i] = run_value(&end, t->turn.end.at[i], varies(r, t->turn.carry.at[i]));
    run_leave(r);
    em_for_end(e, &f, next, carry);
}
/* A loop that stacks: its turns are counted, and all lanes take all of them. */
static void run_scan(const Run *r, const Eqn *q) {
    Kernel *k = r->k;
    Emit *e = k->e;
    Turns t = {.c = scan_of(q)};
    t.turn = scan_turn(&t.c, t.c.body), t.eqns = t.c.body->eqns;
    Dim length = scan_length(k->x.plan->cx, &t.c);
    uint32_t carries = t.c.carry.n, n = turns_at_once(r, &t, length);
    V *carry = arena_new(e->arena, V, carries + 1), lo = em_i64(e, 0), hi = kernel_dim(k, length), mid = hi;
    run_consts(r, t.turn.consts, t.c.consts);
    for (uint32_t i = 0; i < carries; i++) carry[i] = run_value(r, t.c.carry.at[i], varies(r, t.turn.carry.at[i]));
    if (n > 1) mid = em_sub(e, hi, em_bin(e, "llvm.urem", hi, em_i64(e, n)));
    run_turns(r, &t, n, lo, mid, carry);
    uint32_t rest = n > 1 && dim_is_const(length) ? (uint32_t)(length % n) : n > 1;
    if (rest) run_turns(r, &t, rest, mid, hi, carry);
    run_bind(r, t.c.end, carry);
}

/* The place of the condition among the carries, if it is one of them. */
static uint32_t carried_condition(const Jaxpr *cond) {
    uint32_t i = 0;
    while (i < cond->in.n && (cond->eqns.n || cond->in.at[i] != cond->out.at[0])) i++;
    return i;
}
static V run_and(const Run *r, V a, V b) { return a.ptr && b.ptr ? em_bin(r->k->e, "llvm.and", a, b) : a.ptr ? a : b; }
/* The loop runs while the condition holds in any lane; the other lanes keep their carry. The condition is carried too,
   as the last value unless the program carries it: it is computed once per iteration. */
static void run_while(const Run *r, const Eqn *q) {
    Emit *e = r->k->e;
    const While w = while_of(q), turn = while_turn(&w, w.cond, w.body);
    const Jaxpr *cond = w.cond, *body = w.body;
    uint32_t n = w.carry.n, nc = w.cond_consts.n, at = carried_condition(cond), all = n;
    bool masked = varies(r, cond->out.at[0]);
    V *carry = arena_new(e->arena, V, n + 1), *next = arena_new(e->arena, V, n + 1);
    run_consts(r, turn.cond_consts, w.cond_consts);
    run_consts(r, turn.body_consts, w.body_consts);
    for (uint32_t i = 0; i < n; i++) carry[i] = run_value(r, w.carry.at[i], varies(r, turn.carry.at[i]));
    run_bind(r, turn.tested, carry);
    if (at < nc || at == cond->in.n) {
        at = all++;
        run_enter(r); /* the same values are computed again in the loop */
        run_eqns(r, cond);
        carry[at] = run_value(r, cond->out.at[0], masked);
        run_leave(r);
    } else
        at -= nc;
    MlirType *types = arena_new(e->arena, MlirType, all + 1);
    for (uint32_t i = 0; i < all; i++) types[i] = mlirValueGetType(carry[i]);

    Scope before = em_begin(e, all, types);
    run_enter(r);
    V *o = arena_new(e->arena, V, all + 2);
    for (uint32_t i = 0; i < all; i++) o[i + 1] = em_arg(&before, i);
    o[0] = masked || r->w == 1 ? run_and(r, o[at + 1], r->exists) : o[at + 1];
    if (em_width(o[0]) > 1) o[0] = em_1(e, "llvm.intr.vector.reduce.or", e->i1, 1, &o[0], 0, NULL);
    em_op(e, "scf.condition", &(Op){0, NULL, all + 1, o, 0, NULL, 0, NULL});
    run_leave(r);
    em_end(e, &before);

    Scope after = em_begin(e, all, types);
    run_enter(r);
    for (uint32_t i = 0; i < all; i++) o[i] = em_arg(&after, i);
    run_bind(r, turn.carry, o);
    run_eqns(r, body);
    for (uint32_t i = 0; i < n; i++) {
        bool vector = varies(r, turn.carry.at[i]);
        next[i] = run_value(r, turn.end.at[i], vector);
        if (masked && vector && i != at) next[i] = em_select(e, o[at], next[i], o[i]);
    }
    if (at == n) {
        run_bind(r, turn.tested, next);
        run_eqns(r, cond);
        next[n] = run_value(r, cond->out.at[0], masked);
    }
    if (masked) next[at] = run_and(r, run_and(r, o[at], r->exists), next[at]);
    em_op(e, "scf.yield", &(Op){0, NULL, all, next, 0, NULL, 0, NULL});
    run_leave(r);
    em_end(e, &after);
    run_bind(r, q->out, em_while(e, all, carry, &before, &after));
}
static Summand summand(const Run *r, Val v) {
    if (val_info(r->k->x.plan->cx, v)->lit) return (Summand){0};
    return (Summand){r->m.makers[v - r->m.first], r->m.uses[v - r->m.first] == 1};
}
static void run_eqn(const Run *r, const Eqn *q) {
    if (q->prim == P_while || q->prim == P_scan) {
        (q->prim == P_while ? run_while : run_scan)(r, q);
        return;
    }
    bool vector = varies(r, q->out.at[0]);
    V *a = arena_new(r->k->x.plan->arena, V, q->in.n + 2), *y = &r->env[q->out.at[0] - r->m.first];
    if (q->prim == P_element) {
        Reg x = run_read(r, q);
        *y = vector ? kernel_vector(r->k, x) : reg_v(x);
        return;
    }
    uint32_t product = 2;
    if (q->in.n == 2)
        product = kernel_contracts(r->k, q, (Summand[]){summand(r, q->in.at[0]), summand(r, q->in.at[1])});
    if (product < 2) {
        const Eqn *maker = r->m.makers[q->in.at[product] - r->m.first];
        assert(maker);
        Vals factors = maker->in;
        Val x[] = {factors.at[0], factors.at[factors.n - 1], q->in.at[1 - product]};
        for (uint32_t i = 0; i < 3; i++) a[i] = run_value(r, x[i], vector);
        *y = kernel_contracted(r->k, q, product, a);
        return;
    }
    for (uint32_t i = 0; i < q->in.n; i++) a[i] = run_value(r, q->in.at[i], vector);
    *y = kernel_point(r->k, q, a, vector ? r->w : 1);
}
/* Each case with what it alone needs. */
static void run_cases(const Run *r, const Jaxpr *j, const Case *of, const Eqn *select) {
    Emit *e = r->k->e;
    V *y = &r->env[select->out.at[0] - r->m.first], x;
    If f = em_if(e, run_value(r, select->in.at[0], false));
    for (uint32_t taken = 2; taken-- > 0;) {
        for (uint32_t i = of[select - j->eqns.at].first[taken]; i; i = of[i - 1].next) run_eqn(r, &j->eqns.at[i - 1]);
        x = run_value(r, select->in.at[1 + taken], true);
        if (taken) em_else(e, &f, 1, &x);
    }
    em_if_end(e, &f, &x, y);
}
static void run_eqns(const Run *r, const Jaxpr *j) {
    bool few = r->w == 1 || r->k->in_stdlib || r->k->e->target->device;
    const Case *of = few ? NULL : program_cases(&r->m, j);
    each(Eqn, q, j->eqns) {
        const Case *c = of ? &of[q - j->eqns.at] : NULL;
        if (c && c->parted)
            run_cases(r, j, of, q);
        else if (!c || !c->select)
            run_eqn(r, q);
    }
}
/* Lanes beyond the end must not keep a loop running. Programs of stdlib always end, and may be functions of their
   own. */
static V lanes_that_exist(Kernel *k, uint32_t w) {
    if (k->in_stdlib || !k->tail.ptr) return (V){NULL};
    return w < em_width(k->tail) ? em_1(k->e, "llvm.intr.vector.reduce.or", k->e->i1, 1, &k->tail, 0, NULL) : k->tail;
}
static void run_all(Kernel *k, const Jaxpr *j, Marks m, const V *x, uint32_t w, V *out) {
    V *env = arena_new(k->x.plan->arena, V, m.n);
    const Run r = {k, m, env, w, lanes_that_exist(k, w)};
    run_enter(&r);
    run_bind(&r, j->in, x);
    run_eqns(&r, j);
    for (uint32_t i = 0; i < j->out.n; i++)
        if (!val_array(k->x.plan->cx, j->out.at[i])->rank) out[i] = run_value(&r, j->out.at[i], false);
    run_leave(&r);
}
void kernel_run(Kernel *k, const Jaxpr *j, const V *x, uint32_t w, V *out) {
    bool *varies_in = arena_new(k->x.plan->arena, bool, j->in.n + 1);
    for (uint32_t i = 0; i < j->in.n; i++) varies_in[i] = w > 1 && em_width(x[i]) > 1;
    run_all(k, j, program_marks(k->x.plan, j, varies_in), x, w, out);
}
void kernel_run_at(Kernel *k, const Eqn *e, const Ix *element, const V *x, uint32_t w, V *out) {
    const Ctx *cx = k->x.plan->cx;
    const Jaxpr *j = param_jaxpr(e, K_jaxpr);
    bool *varies_in = arena_new(k->x.plan->arena, bool, e->in.n + 1);
    for (uint32_t i = 0; i < j->in.n; i++) {
        uint32_t inner = val_array(cx, j->in.at[i])->rank;
        varies_in[i] = w > 1 && (inner ? val_array(cx, e->in.at[i])->rank > inner : em_width(x[i]) > 1);
    }
    run_all(k, j, program_marks_at(k->x.plan, e, element, varies_in), x, w, out);
}
V kernel_stdlib(Kernel *k, const char *name, Dtype d, const V *x, uint32_t n, uint32_t w) {
    Str file = str_format(k->x.plan->arena, "%s_%s", name, d == DT_f64 ? "f64" : "f32");
    return stdlib_call(k, file.at, x, n, w);
}
V kernel_program(Kernel *k, const Eqn *e, const V *x, uint32_t w) {
    Ctx *cx = k->x.plan->cx;
    Dtype out = val_array(cx, e->out.at[0])->dtype, in = stdlib_dtype(cx, e->prim, out);
    V f[MOST_OPERANDS] = {{NULL}};
    assert(e->in.n && e->in.n <= MOST_OPERANDS);
    for (uint32_t i = 0; i < e->in.n; i++) { /* pow's exponent may be an integer */
        Reg r = kernel_convert(k, reg(x[i], false, 0), val_array(cx, e->in.at[i])->dtype, out);
        f[i] = reg_v(kernel_convert(k, r, out, in));
    }
    V y = kernel_stdlib(k, prim_name[e->prim], in, f, e->in.n, w);
    if (in == DT_f64 && out != DT_f64) y = em_cast(k->e, "llvm.fptrunc", em_vec(k->e, k->e->f32, w), y);
    return point_result(k->e, e->prim, out, y);
}
