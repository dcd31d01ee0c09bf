/* Elementwise equations that are programs of stdlib/, run on registers. */
#include "kernel.h"
#include "point.h"
#include <assert.h>

enum { STDLIB_INLINE = 40, STDLIB_LARGE = 160, MOST_OPERANDS = 8 /* of a program */ };
static V stdlib_run(Kernel *k, const Jaxpr *j, const V *x, uint32_t w) {
    k->in_stdlib++; /* -ffast-math would fold its error terms to 0 */
    V y = kernel_run(k, j, x, w);
    k->in_stdlib--;
    return y;
}

/* Computes a function of a program's operands. */
typedef V StdlibBody(Kernel *, const char *name, const V *x, uint32_t n, uint32_t w);
static V body_all(Kernel *k, const char *name, const V *x, uint32_t n, uint32_t w) {
    return stdlib_run(k, stdlib_program(k->plan->cx, name), x, w);
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
    const Jaxpr *j = stdlib_program(k->plan->cx, name);
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
    Val first;
    uint32_t w;
} Run;
static V run_value(const Run *r, Val v) {
    if (val_info(r->k->plan->cx, v)->lit) return kernel_literal(r->k, v, r->w);
    assert(v >= r->first && r->env[v - r->first].ptr);
    return r->env[v - r->first];
}
static void run_bind(const Run *r, Vals to, const V *from) {
    for (uint32_t i = 0; i < to.n; i++) r->env[to.at[i] - r->first] = from[i];
}
static void run_values(const Run *r, Vals from, V *to) {
    for (uint32_t i = 0; i < from.n; i++) to[i] = run_value(r, from.at[i]);
}
static void run_eqns(const Run *r, Eqns eqns);

/* The loop runs while the condition holds in any lane; the other lanes keep their carry. The condition is carried too,
   as the last value: it is computed once per iteration. */
static void run_while(const Run *r, const Eqn *q) {
    Emit *e = r->k->e;
    const While w = while_of(q), turn = while_turn(&w, w.cond, w.body);
    const Jaxpr *cond = w.cond, *body = w.body;
    uint32_t n = w.carry.n;
    V *carry = arena_new(e->arena, V, q->in.n + 1), *next = arena_new(e->arena, V, n + 1);
    run_values(r, q->in, carry);
    run_bind(r, turn.cond_consts, carry);
    run_bind(r, turn.body_consts, carry + w.cond_consts.n);
    carry += w.cond_consts.n + w.body_consts.n;
    run_bind(r, turn.tested, carry);
    run_eqns(r, cond->eqns);
    carry[n] = run_value(r, cond->out.at[0]);
    MlirType *types = arena_new(e->arena, MlirType, n + 1);
    for (uint32_t i = 0; i <= n; i++) types[i] = mlirValueGetType(carry[i]);

    Scope before = em_begin(e, n + 1, types);
    V *o = arena_new(e->arena, V, n + 2);
    for (uint32_t i = 0; i <= n; i++) o[i + 1] = em_arg(&before, i);
    o[0] = o[n + 1];
    if (r->w > 1) o[0] = em_1(e, "llvm.intr.vector.reduce.or", e->i1, 1, &o[n + 1], 0, NULL);
    em_op(e, "scf.condition", &(Op){0, NULL, n + 2, o, 0, NULL, 0, NULL});
    em_end(e, &before);

    Scope after = em_begin(e, n + 1, types);
    for (uint32_t i = 0; i <= n; i++) o[i] = em_arg(&after, i);
    run_bind(r, turn.carry, o);
    run_eqns(r, body->eqns);
    run_values(r, body->out, next);
    for (uint32_t i = 0; i < n; i++) next[i] = em_select(e, o[n], next[i], o[i]);
    run_bind(r, turn.tested, next);
    run_eqns(r, cond->eqns);
    next[n] = run_value(r, cond->out.at[0]);
    em_op(e, "scf.yield", &(Op){0, NULL, n + 1, next, 0, NULL, 0, NULL});
    em_end(e, &after);
    run_bind(r, q->out, em_while(e, n + 1, carry, &before, &after));
}
static void run_eqns(const Run *r, Eqns eqns) {
    each(Eqn, q, eqns) {
        if (q->prim == P_while) {
            run_while(r, q);
            continue;
        }
        V *a = arena_new(r->k->plan->arena, V, q->in.n + 1);
        run_values(r, q->in, a);
        r->env[q->out.at[0] - r->first] = kernel_point(r->k, q, a, r->w);
    }
}
V kernel_run(Kernel *k, const Jaxpr *j, const V *x, uint32_t w) {
    Val first, last;
    jaxpr_range(k->plan->cx, j, &first, &last);
    Run r = {k, arena_new(k->plan->arena, V, last - first + (size_t)1), first, w};
    run_bind(&r, j->in, x);
    run_eqns(&r, j->eqns);
    return run_value(&r, j->out.at[0]);
}
V kernel_stdlib(Kernel *k, const char *name, Dtype d, const V *x, uint32_t n, uint32_t w) {
    Str file = str_format(k->plan->arena, "%s_%s", name, d == DT_f64 ? "f64" : "f32");
    return stdlib_call(k, file.at, x, n, w);
}
V kernel_program(Kernel *k, const Eqn *e, const V *x, uint32_t w) {
    Ctx *cx = k->plan->cx;
    Dtype out = val_array(cx, e->out.at[0])->dtype, in = stdlib_dtype(cx, e->prim, out);
    V f[MOST_OPERANDS];
    assert(e->in.n && e->in.n <= MOST_OPERANDS);
    for (uint32_t i = 0; i < e->in.n; i++) { /* pow's exponent may be an integer */
        Reg r = kernel_convert(k, (Reg){.v = x[i]}, val_array(cx, e->in.at[i])->dtype, out);
        f[i] = kernel_convert(k, r, out, in).v;
    }
    V y = kernel_stdlib(k, prim_name[e->prim], in, f, e->in.n, w);
    if (in == DT_f64 && out != DT_f64) y = em_cast(k->e, "llvm.fptrunc", em_vec(k->e, k->e->f32, w), y);
    return point_result(k->e, e->prim, out, y);
}
