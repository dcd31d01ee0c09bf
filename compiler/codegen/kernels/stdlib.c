/* Elementwise equations that are programs of stdlib/, run on registers. */
#include "kernel.h"
#include "../cost.h"
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
static V body_all(Kernel *k, const char *name, const V *x, uint32_t n, uint32_t w) {
    return stdlib_run(k, stdlib_program(k->x.plan->cx, name), x, w);
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
    Str symbol = str_format(k->e->arena, "stdlib.%s.%u", name, w);
    return stdlib_function(k, body_all, symbol, name, x, n, w);
}
/* The result y of the fast program or, if a lane exceeds its bound, that of the full program for the whole vector. */
static V choose(Kernel *k, const char *name, V y, const V *x, uint32_t n, uint32_t w) {
    Emit *e = k->e;
    V size = em_un(e, "llvm.intr.fabs", x[0]);
    V beyond = em_cmpf(e, "uge", size, em_float(e, mlirValueGetType(size), stdlib_fast_bound(name)));
    if (w > 1) beyond = em_1(e, "llvm.intr.vector.reduce.or", e->i1, 1, &beyond, 0, NULL);
    If i = em_if(e, beyond);
    V all = stdlib_all(k, str_format(e->arena, "%s_full", name).at, x, n, w);
    em_else(e, &i, 1, &all);
    V r;
    em_if_end(e, &i, &y, &r);
    return r;
}
static V body_chosen(Kernel *k, const char *name, const V *x, uint32_t n, uint32_t w) {
    return choose(k, name, body_all(k, name, x, n, w), x, n, w);
}
/* Inlined while there are few uses of small programs: thousands of them would take long to compile. */
static V stdlib_call(Kernel *k, const char *name, const V *x, uint32_t n, uint32_t w) {
    const Jaxpr *j = stdlib_program(k->x.plan->cx, name);
    bool large = j->eqns.n > STDLIB_LARGE, chosen = stdlib_fast_bound(name) > 0;
    bool many = k->e->nstdlib > STDLIB_INLINE;
    each(Eqn, q, j->eqns) large |= q->prim == P_while;
    if (many && chosen) {
        Str symbol = str_format(k->e->arena, "stdlib.%s_chosen.%u", name, w);
        return stdlib_function(k, body_chosen, symbol, name, x, n, w);
    }
    if (!large) k->e->nstdlib++;
    V y = (large || many ? stdlib_all : body_all)(k, name, x, n, w);
    return chosen ? choose(k, name, y, x, n, w) : y;
}
/* A program being evaluated: its values, including those of its loop bodies, by number less `first`. */
typedef struct {
    Kernel *k;
    V *env;
    bool *varies;       /* it is a vector; else a scalar, the same in all lanes */
    uint8_t *uses;      /* at most 2 */
    const Eqn **makers; /* what computes it, or NULL */
    Val first;
    uint32_t w;
    V exists; /* the lanes that have an element; NULL: all */
} Run;
static bool varies(const Run *r, Val v) { return !val_info(r->k->x.plan->cx, v)->lit && r->varies[v - r->first]; }
/* The value, as a vector if `vector`. */
static V run_value(const Run *r, Val v, bool vector) {
    if (val_info(r->k->x.plan->cx, v)->lit) return kernel_literal(r->k, v, vector ? r->w : 1);
    assert(v >= r->first && r->env[v - r->first].ptr);
    V x = r->env[v - r->first];
    return vector && !varies(r, v) ? em_broadcast(r->k->e, x, r->w) : x;
}
static void run_bind(const Run *r, Vals to, const V *from) {
    for (uint32_t i = 0; i < to.n; i++) r->env[to.at[i] - r->first] = from[i];
}

/* ---- which values differ between the lanes, and which are used */
static bool mark(const Run *r, Vals to, uint32_t i, bool yes) {
    bool *at = &r->varies[to.at[i] - r->first], changed = yes && !*at;
    *at |= yes;
    return changed;
}
static bool mark_eqns(const Run *r, Eqns eqns);
/* A carry that the loop counts is the same in all lanes that still run. If the others go on without it, it is so only
   where no result says how far each lane got. */
static bool mark_while(const Run *r, const Eqn *q) {
    const While w = while_of(q), turn = while_turn(&w, w.cond, w.body);
    bool changed = false, again = true;
    for (uint32_t i = 0; i < w.cond_consts.n; i++)
        changed |= mark(r, turn.cond_consts, i, varies(r, w.cond_consts.at[i]));
    for (uint32_t i = 0; i < w.body_consts.n; i++)
        changed |= mark(r, turn.body_consts, i, varies(r, w.body_consts.at[i]));
    while (again) {
        again = mark_eqns(r, w.cond->eqns);
        bool masked = varies(r, w.cond->out.at[0]);
        for (uint32_t i = 0; i < w.carry.n; i++) {
            bool yes =
                varies(r, w.carry.at[i]) || varies(r, turn.end.at[i]) || (masked && r->uses[w.end.at[i] - r->first]);
            again |= mark(r, turn.carry, i, yes) | mark(r, turn.tested, i, yes) | mark(r, w.end, i, yes);
        }
        again |= mark_eqns(r, w.body->eqns);
        changed |= again;
    }
    return changed;
}
static bool mark_eqns(const Run *r, Eqns eqns) {
    bool changed = false;
    each(Eqn, q, eqns) {
        bool yes = false;
        if (q->prim == P_while) {
            changed |= mark_while(r, q);
            continue;
        }
        each(Val, v, q->in) yes |= varies(r, *v);
        changed |= mark(r, q->out, 0, yes);
    }
    return changed;
}
static void use_values(const Run *r, Vals vals) {
    each(Val, v, vals) {
        if (val_info(r->k->x.plan->cx, *v)->lit) continue;
        uint8_t *n = &r->uses[*v - r->first];
        *n += *n < 2;
    }
}
static void use_all(const Run *r, const Jaxpr *j) {
    each(Eqn, q, j->eqns) {
        use_values(r, q->in);
        each(Val, v, q->out) r->makers[*v - r->first] = q;
        if (q->prim != P_while) continue;
        use_all(r, while_of(q).cond);
        use_all(r, while_of(q).body);
    }
    use_values(r, j->out);
}

/* ---- code */
static void run_eqns(const Run *r, Eqns eqns);

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
    V *carry = arena_new(e->arena, V, q->in.n + 1), *next = arena_new(e->arena, V, n + 1);
    for (uint32_t i = 0; i < nc; i++) carry[i] = run_value(r, w.cond_consts.at[i], varies(r, turn.cond_consts.at[i]));
    run_bind(r, turn.cond_consts, carry);
    for (uint32_t i = 0; i < w.body_consts.n; i++)
        carry[i] = run_value(r, w.body_consts.at[i], varies(r, turn.body_consts.at[i]));
    run_bind(r, turn.body_consts, carry);
    for (uint32_t i = 0; i < n; i++) carry[i] = run_value(r, w.carry.at[i], varies(r, turn.carry.at[i]));
    run_bind(r, turn.tested, carry);
    if (at < nc || at == cond->in.n) {
        at = all++;
        run_eqns(r, cond->eqns);
        carry[at] = run_value(r, cond->out.at[0], masked);
    } else
        at -= nc;
    MlirType *types = arena_new(e->arena, MlirType, all + 1);
    for (uint32_t i = 0; i < all; i++) types[i] = mlirValueGetType(carry[i]);

    Scope before = em_begin(e, all, types);
    V *o = arena_new(e->arena, V, all + 2);
    for (uint32_t i = 0; i < all; i++) o[i + 1] = em_arg(&before, i);
    o[0] = masked || r->w == 1 ? run_and(r, o[at + 1], r->exists) : o[at + 1];
    if (em_width(o[0]) > 1) o[0] = em_1(e, "llvm.intr.vector.reduce.or", e->i1, 1, &o[0], 0, NULL);
    em_op(e, "scf.condition", &(Op){0, NULL, all + 1, o, 0, NULL, 0, NULL});
    em_end(e, &before);

    Scope after = em_begin(e, all, types);
    for (uint32_t i = 0; i < all; i++) o[i] = em_arg(&after, i);
    run_bind(r, turn.carry, o);
    run_eqns(r, body->eqns);
    for (uint32_t i = 0; i < n; i++) {
        bool vector = varies(r, turn.carry.at[i]);
        next[i] = run_value(r, turn.end.at[i], vector);
        if (masked && vector && i != at) next[i] = em_select(e, o[at], next[i], o[i]);
    }
    if (at == n) {
        run_bind(r, turn.tested, next);
        run_eqns(r, cond->eqns);
        next[n] = run_value(r, cond->out.at[0], masked);
    }
    if (masked) next[at] = run_and(r, run_and(r, o[at], r->exists), next[at]);
    em_op(e, "scf.yield", &(Op){0, NULL, all, next, 0, NULL, 0, NULL});
    em_end(e, &after);
    run_bind(r, q->out, em_while(e, all, carry, &before, &after));
}
static Summand summand(const Run *r, Val v) {
    if (val_info(r->k->x.plan->cx, v)->lit) return (Summand){0};
    return (Summand){r->makers[v - r->first], r->uses[v - r->first] == 1};
}
static void run_eqns(const Run *r, Eqns eqns) {
    each(Eqn, q, eqns) {
        if (q->prim == P_while) {
            run_while(r, q);
            continue;
        }
        bool vector = varies(r, q->out.at[0]);
        V *a = arena_new(r->k->x.plan->arena, V, q->in.n + 2), *y = &r->env[q->out.at[0] - r->first];
        uint32_t product = 2;
        if (q->in.n == 2)
            product = kernel_contracts(r->k, q, (Summand[]){summand(r, q->in.at[0]), summand(r, q->in.at[1])});
        if (product < 2) {
            const Eqn *maker = r->makers[q->in.at[product] - r->first];
            assert(maker);
            Vals factors = maker->in;
            Val x[] = {factors.at[0], factors.at[factors.n - 1], q->in.at[1 - product]};
            for (uint32_t i = 0; i < 3; i++) a[i] = run_value(r, x[i], vector);
            *y = kernel_contracted(r->k, q, product, a);
            continue;
        }
        for (uint32_t i = 0; i < q->in.n; i++) a[i] = run_value(r, q->in.at[i], vector);
        *y = kernel_point(r->k, q, a, vector ? r->w : 1);
    }
}
/* Lanes beyond the end or where nothing is loaded must not keep a loop running. Programs of stdlib always end, and may be
   functions of their own. */
static V lanes_that_exist(Kernel *k, uint32_t w) {
    V guard = {NULL};
    if (k->in_stdlib) return guard;
    if (k->x.guard.v) guard = kernel_vector(k, k->x.guard);
    if (k->tail.ptr) guard = guard.ptr ? em_bin(k->e, "llvm.and", guard, k->tail) : k->tail;
    if (guard.ptr && w < em_width(guard))
        guard = em_1(k->e, "llvm.intr.vector.reduce.or", k->e->i1, 1, &guard, 0, NULL);
    return guard;
}
void kernel_run(Kernel *k, const Jaxpr *j, const V *x, uint32_t w, V *out) {
    Val first, last;
    jaxpr_range(k->x.plan->cx, j, &first, &last);
    uint32_t n = last - first + 1;
    Arena *arena = k->x.plan->arena;
    Run r = {k,
             arena_new(arena, V, n),
             arena_new(arena, bool, n),
             arena_new(arena, uint8_t, n),
             arena_new(arena, const Eqn *, n),
             first,
             w,
             lanes_that_exist(k, w)};
    run_bind(&r, j->in, x);
    for (uint32_t i = 0; i < j->in.n; i++) mark(&r, j->in, i, w > 1 && em_width(x[i]) > 1);
    use_all(&r, j);
    mark_eqns(&r, j->eqns);
    run_eqns(&r, j->eqns);
    for (uint32_t i = 0; i < j->out.n; i++) out[i] = run_value(&r, j->out.at[i], false);
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
