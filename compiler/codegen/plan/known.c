#include "known.h"
#include "../cost.h"
#include "call.h"
#include <assert.h>

/* A scalar that a kernel has computed lies in the device's memory: the host would have to wait for it. So only few
   scalars are registers of the host: extents of arrays, which it needs, and integers and bools that follow from
   literals alone, such as the counters of loops, or from the number of the device among several. Floats are not among
   them, since host and device need not round alike.

   As in every analysis of loops, a carry is taken to be known until an iteration shows that it is not. A program is
   walked once for each pattern of known inputs. */

/* ---- marks by value */
static bool has(const Plan *p, Val v) { return val_info(p->cx, v)->lit || (v < p->known.n && p->known.at[v]); }
static void set(Plan *p, Val v, bool known) {
    while (v >= p->known.n) push(p->arena, &p->known, false);
    p->known.at[v] = known;
}
static Known of_values(const Plan *p, Vals v) {
    Known k = {arena_new(p->arena, bool, v.n + 1), v.n};
    for (uint32_t i = 0; i < v.n; i++) k.at[i] = has(p, v.at[i]);
    return k;
}

/* ---- extents */
static void mark_bound(void *user, uint32_t v) { set(user, v, true); }
static void mark_extents(Plan *p, Dim d) { dim_bounds(p->cx->types, d, mark_bound, p); }
static void mark_extents_of(Plan *p, Vals vs) {
    each(const Val, v, vs) {
        const ArrayType *t = val_array(p->cx, *v);
        for (uint32_t d = 0; d < t->rank; d++) mark_extents(p, t->dims[d]);
    }
}

/* ---- equations */
static bool whole_number(const Plan *p, Val v) {
    const ArrayType *t = val_array(p->cx, v);
    DtypeKind kind = dtype_info[t->dtype].kind;
    return t->rank == 0 && (kind == DK_BOOL || kind == DK_SINT || kind == DK_UINT);
}
/* Does the equation compute whole numbers from known ones? */
static bool computed(const Plan *p, const Eqn *e) {
    Lower how = prim_lower[e->prim];
    if (how != LOWER_POINT && how != LOWER_INDEX) return false;
    each(const Val, v, e->in)
        if (!whole_number(p, *v) || !has(p, *v)) return false;
    return true;
}
static Known results(Plan *, const Jaxpr *, Known in);
/* The program and which of its inputs are known, as sizeof j + in.n bytes. */
static char *pattern(Plan *p, const Jaxpr *j, Known in) {
    char *key = arena_new(p->arena, char, sizeof j + in.n);
    memcpy(key, &j, sizeof j);
    for (uint32_t i = 0; i < in.n; i++) key[sizeof j + i] = (char)in.at[i];
    return key;
}

/* The inputs of a program that are extents of others. */
static Known extents_among(Plan *p, const Jaxpr *j) {
    each(const Val, v, j->in) set(p, *v, false);
    mark_extents_of(p, j->in);
    return of_values(p, j->in);
}
/* The constants, then the carries, then unknown operands. */
static Known loop_inputs(Plan *p, Vals consts, Vals carry, uint32_t n) {
    Known in = {arena_new(p->arena, bool, n + 1), n};
    assert(consts.n + carry.n <= n);
    for (uint32_t i = 0; i < consts.n; i++) in.at[i] = has(p, consts.at[i]);
    for (uint32_t i = 0; i < carry.n; i++) in.at[consts.n + i] = has(p, carry.at[i]);
    return in;
}
/* The inputs of a loop's body in every iteration. The host keeps extents whatever computes them. */
static Known every_turn(Plan *p, const Jaxpr *body, Vals consts, Vals carry) {
    Known in = loop_inputs(p, consts, carry, body->in.n), extents = extents_among(p, body);
    for (bool changed = true; changed;) {
        Known out = results(p, body, in);
        changed = false;
        for (uint32_t i = 0; i < carry.n; i++) {
            bool *now = &in.at[consts.n + i], stays = *now && out.at[i];
            changed |= stays != *now;
            *now = stays;
        }
    }
    for (uint32_t i = 0; i < carry.n; i++) in.at[consts.n + i] |= extents.at[consts.n + i];
    return in;
}
static Known scan_inputs(Plan *p, const Eqn *e) {
    Scan s = scan_of(e);
    return every_turn(p, s.body, s.consts, s.carry);
}
static Known test_inputs(Plan *p, const While *w, Known body) {
    Known test = loop_inputs(p, w->cond_consts, w->carry, w->cond->in.n);
    for (uint32_t i = 0; i < w->carry.n; i++) test.at[w->cond_consts.n + i] = body.at[w->body_consts.n + i];
    return test;
}

/* ---- what goes on without the host */
static bool sized(const Plan *p, Vals vs) {
    each(const Val, v, vs)
        if (dim_has_bound(p->cx->types, type_size(p->cx->types, val_type(p->cx, *v)))) return true;
    return false;
}
/* loops: those that go on without the host may be among them, and calls of functions that do so. */
static bool by_kernels(Plan *, const Jaxpr *, bool loops);
static bool loop_by_kernels(Plan *p, const Eqn *e) {
    While w = while_of(e);
    return !w.resizes && by_kernels(p, w.cond, false) && by_kernels(p, w.body, true);
}
static bool eqn_by_kernels(Plan *p, const Eqn *e, bool loops) {
    static const bool host[] = {[LOWER_WHILE] = true, [LOWER_RUNTIME] = true, [LOWER_SPMD] = true, [LOWER_CALL] = true};
    Lower how = prim_lower[e->prim];
    if (sized(p, e->out)) return false;
    if (e->prim == P_while && loops) return loop_by_kernels(p, e);
    if (how == LOWER_CALL && loops) return callee_of(p->callees, e)->launches <= MOST_LAUNCHES;
    if (how < sizeof host / sizeof *host && host[how]) return false;
    if (e->prim == P_scan) return by_kernels(p, scan_of(e).body, loops);
    if (e->prim != P_cond) return true;
    Cond c = cond_of(e);
    each(Jaxpr *, j, c.branches)
        if (!by_kernels(p, *j, false)) return false;
    return true;
}
static bool by_kernels(Plan *p, const Jaxpr *j, bool loops) {
    bool fresh, all = !sized(p, j->in);
    uintptr_t key[2] = {(uintptr_t)j, loops};
    uint32_t id = intern(&p->known.programs, key, sizeof key, &fresh);
    if (!fresh) return p->known.by_kernels.at[id];
    push(p->arena, &p->known.by_kernels, false);
    each(const Eqn, e, j->eqns) all = all && eqn_by_kernels(p, e, loops);
    return p->known.by_kernels.at[id] = all;
}
static bool turns_guarded(Plan *p, const While *w, Known body) {
    if (w->resizes || !by_kernels(p, w->cond, false) || !by_kernels(p, w->body, true)) return false;
    Val predicate = w->cond->out.at[0];
    return !val_info(p->cx, predicate)->lit && !results(p, w->cond, test_inputs(p, w, body)).at[0];
}
static bool branches_guarded(Plan *p, const Eqn *e) {
    Cond c = cond_of(e);
    return !c.bools && !has(p, c.index.at[0]) && eqn_by_kernels(p, e, false);
}
static bool loops_guarded(Plan *, const Jaxpr *, Known in);
static Known while_inputs(Plan *p, const Eqn *e, bool *guarded) {
    While w = while_of(e);
    uint32_t first = w.body_consts.n;
    Known in = every_turn(p, w.body, w.body_consts, w.carry), stays = {arena_new(p->arena, bool, in.n + 1), in.n};
    memcpy(stays.at, in.at, in.n);
    for (uint32_t i = 0; i < w.carry.n; i++) stays.at[first + i] &= w.body->out.at[i] == w.body->in.at[first + i];
    *guarded = turns_guarded(p, &w, in) && loops_guarded(p, w.body, stays);
    return *guarded ? stays : in;
}
/* Do all loops of the program go on without the host, if these inputs are known? */
static bool loops_guarded(Plan *p, const Jaxpr *j, Known in) {
    bool fresh, all = true;
    if (by_kernels(p, j, false)) return true; /* it has none */
    uint32_t id = intern(&p->known.loops, pattern(p, j, in), sizeof j + in.n, &fresh);
    if (!fresh) return p->known.loops_guarded.at[id];
    push(p->arena, &p->known.loops_guarded, false);
    known_mark(p, j, in);
    for (uint32_t i = 0; i < j->eqns.n && all; i++) {
        const Eqn *e = &j->eqns.at[i];
        if (e->prim == P_while) while_inputs(p, e, &all);
        if (e->prim == P_scan) all = loops_guarded(p, scan_of(e).body, scan_inputs(p, e));
    }
    return p->known.loops_guarded.at[id] = all;
}
bool known_guarded(Plan *p, const Eqn *e) {
    bool guarded;
    if (e->prim == P_cond) return branches_guarded(p, e);
    assert(e->prim == P_while);
    while_inputs(p, e, &guarded);
    return guarded;
}
Known known_inputs(Plan *p, const Eqn *e, uint32_t k) {
    bool guarded;
    if (e->prim == P_scan) return scan_inputs(p, e);
    if (e->prim == P_cond) return of_values(p, cond_of(e).in);
    assert(e->prim == P_while);
    Known body = while_inputs(p, e, &guarded);
    if (k == 1) return body;
    const While w = while_of(e);
    return test_inputs(p, &w, body);
}
static void mark_cond(Plan *p, const Eqn *e) {
    Cond c = cond_of(e);
    Known in = of_values(p, c.in);
    if (branches_guarded(p, e)) return;
    for (uint32_t k = 0; k < c.branches.n; k++) {
        Known out = results(p, c.branches.at[k], in);
        for (uint32_t o = 0; o < c.out.n; o++) set(p, c.out.at[o], (k == 0 || has(p, c.out.at[o])) && out.at[o]);
    }
}
bool known_device_number(const Eqn *e) {
    return e->prim == P_runtime_call && str_eq(param_word(e, K_name), S("device"));
}
static void mark_eqn(Plan *p, const Eqn *e) {
    bool known = computed(p, e) || known_device_number(e);
    each(const Val, v, e->out) set(p, *v, known && whole_number(p, *v));
    if (e->prim == P_cond) {
        mark_cond(p, e);
        return;
    }
    if (e->prim != P_scan && e->prim != P_while) return;
    bool scan = e->prim == P_scan;
    Known in = known_inputs(p, e, 1);
    uint32_t first = scan ? scan_of(e).consts.n : while_of(e).body_consts.n;
    Vals carry = scan ? scan_of(e).end : while_of(e).end;
    for (uint32_t i = 0; i < carry.n; i++) set(p, carry.at[i], in.at[first + i]);
}
void known_mark(Plan *p, const Jaxpr *j, Known in) {
    assert(in.n == j->in.n);
    each(const Val, c, j->consts) set(p, *c, whole_number(p, *c) && val_info(p->cx, *c)->data);
    for (uint32_t i = 0; i < in.n; i++) set(p, j->in.at[i], in.at[i]);
    mark_extents_of(p, j->in);
    each(const Eqn, e, j->eqns) mark_eqn(p, e);
    each(const Eqn, e, j->eqns) mark_extents_of(p, e->out), plan_bounds(p, e, mark_bound, p);
}
void known_mark_top(Plan *p, const Jaxpr *j) {
    known_mark(p, j, (Known){arena_new(p->arena, bool, j->in.n + 1), j->in.n});
}

/* ---- nested programs */
static Known results(Plan *p, const Jaxpr *j, Known in) {
    bool fresh;
    uint32_t id = intern(&p->known.keys, pattern(p, j, in), sizeof j + in.n, &fresh);
    if (!fresh) return (Known){p->known.results.at[id], j->out.n};
    push(p->arena, &p->known.results, NULL);
    known_mark(p, j, in);
    Known out = of_values(p, j->out);
    p->known.results.at[id] = out.at;
    return out;
}
