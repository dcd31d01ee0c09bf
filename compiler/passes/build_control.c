/* The builder: calls of programs, and nested programs. */
#include "../control.h"
#include "build.h"

static Vals values(uint32_t n, const Val *at) { return (Vals){(Val *)at, n}; }
static Vals none(Builder *b, uint32_t n) { return (Vals){arena_new(b->cx->arena, Val, n + 1), n}; }

/* ---- existing programs */
Vals b_call(Builder *b, const Jaxpr *j, uint32_t n, const Val *in) {
    ValMap map = {.cx = b->cx, .sparse = true};
    if (b_any_failed(b, n, in)) return b_failures(b, j->out.n);
    if (!jaxpr_splice(&map, &b->eqns, j, (Vals){(Val *)in, n}, b->span)) {
        b->failed = true;
        return b_failures(b, j->out.n);
    }
    add_consts(b->cx->arena, &b->consts, j->consts);
    return vals_rewrite(&map, j->out);
}
/* Calls of such programs included. */
static bool elementwise(Arena *arena, const Jaxpr *j) {
    each(Eqn, e, j->eqns) {
        Vals in;
        if (prim_elementwise(e->prim)) continue;
        const Jaxpr *body = eqn_body(arena, e, &in);
        if (!body || !elementwise(arena, body)) return false;
    }
    return true;
}
/* Equation by equation, on whole arrays; calls become their bodies. */
static Vals map_equations(Builder *b, const Jaxpr *j, const Val *in, const ArrayType *like) {
    ValMap map = {.cx = b->cx, .sparse = true};
    for (uint32_t i = 0; i < j->in.n; i++) valmap_put(&map, j->in.at[i], in[i]);
    add_consts(b->cx->arena, &b->consts, j->consts);
    each(Eqn, e, j->eqns) {
        Vals x = vals_rewrite(&map, e->in);
        bool arrays = false;
        for (uint32_t i = 0; i < x.n; i++) arrays |= b_type(b, x.at[i])->rank > 0;
        for (uint32_t i = 0; i < x.n && arrays; i++)
            if (!b_type(b, x.at[i])->rank) x.at[i] = b_full(b, x.at[i], like->rank, like->dims);
        Vals operands, y;
        const Jaxpr *body = eqn_body(b->cx->arena, e, &operands);
        if (body)
            y = map_equations(b, body, vals_rewrite(&map, operands).at, like);
        else
            y = build_many(b, e->prim, x.n, x.at, e->params.n, e->params.at, e->out.n, NULL);
        if (b->failed) return b_failures(b, j->out.n);
        for (uint32_t i = 0; i < e->out.n; i++) valmap_put(&map, e->out.at[i], y.at[i]);
    }
    Vals out = vals_rewrite(&map, j->out);
    for (uint32_t i = 0; i < out.n; i++)
        if (!b_type(b, out.at[i])->rank) out.at[i] = b_full(b, out.at[i], like->rank, like->dims);
    return out;
}
/* Element by element, in a loop. */
static Vals map_elements(Builder *b, const Jaxpr *j, const Val *in, const ArrayType *like) {
    Dim size = 1;
    Val *flat = arena_new(b->cx->arena, Val, j->in.n + 1);
    for (uint32_t i = 0; i < like->rank; i++) size = dim_mul(b_types(b), size, like->dims[i]);
    for (uint32_t i = 0; i < j->in.n; i++) flat[i] = b_reshape(b, in[i], 1, &size);
    Inner turn = b_program(b, j, 0, NULL);
    Vals y = b_scan(b, &turn, (Loop){.length = size}, j->in.n, flat);
    Vals out = {arena_new(b->cx->arena, Val, j->out.n + 1), j->out.n};
    for (uint32_t i = 0; i < out.n; i++)
        out.at[i] = b_reshape(b, y.at[i], like->rank, like->dims); /* y: the loop's own */
    return out;
}
Vals b_map(Builder *b, const Jaxpr *j, uint32_t n, const Val *in) {
    if (b_any_failed(b, n, in)) return b_failures(b, j->out.n);
    const ArrayType like = *b_type(b, in[0]);
    if (elementwise(b->cx->arena, j)) return map_equations(b, j, in, &like);
    return like.rank ? map_elements(b, j, in, &like) : b_call(b, j, n, in);
}

/* ---- what an inner program captures */
typedef struct {
    Ctx *cx;
    Intern own;    /* its inputs and the results of its equations */
    ValMap within; /* captured value → its input */
    struct {
        Val *at;
        uint32_t n, cap;
    } captured, inputs;
} Capture;

static void capture(void *user, Val v) {
    Capture *c = user;
    uint32_t k;
    if (val_info(c->cx, v)->lit || intern_find(&c->own, &v, sizeof v, &k)) return;
    if (valmap_get(&c->within, v) != v) return;
    type_extents(c->cx, val_type(c->cx, v), capture, c);
    Val input = val_new(c->cx, type_rewrite(&c->within, val_type(c->cx, v)), val_info(c->cx, v)->span);
    valmap_put(&c->within, v, input);
    push(c->cx->arena, &c->captured, v);
    push(c->cx->arena, &c->inputs, input);
}
static void own(Capture *c, Vals vals) {
    each(Val, v, vals) intern(&c->own, v, sizeof *v, NULL);
}
static void capture_types(Capture *c, Vals vals) {
    each(Val, v, vals) type_extents(c->cx, val_type(c->cx, *v), capture, c);
}
static void capture_all(Capture *c, const Jaxpr *j) {
    own(c, j->in);
    each(const Eqn, e, j->eqns) own(c, e->out);
    capture_types(c, j->in);
    each(const Eqn, e, j->eqns) {
        each(Val, v, e->in) capture(c, *v);
        eqn_extents(c->cx, e, capture, c);
        capture_types(c, e->out);
    }
    each(Val, v, j->out) capture(c, *v);
}
static void retype(Capture *c, Vals vals) {
    each(Val, v, vals) {
        ValInfo *info = val_info(c->cx, *v);
        info->type = type_rewrite(&c->within, info->type);
    }
}
/* Replaces captured values by their inputs, and all values by the program's own. */
static void put_captured(Capture *c, Jaxpr *j) {
    retype(c, j->in);
    each(Eqn, e, j->eqns) {
        *e = eqn_rewrite(&c->within, e, NULL, NULL);
        retype(c, e->out);
    }
    j->out = vals_rewrite(&c->within, j->out);
    j->in = vals_joined(c->cx->arena, 2, (Vals[]){{c->inputs.at, c->inputs.n}, j->in});
}

/* ---- nested programs */
static Inner begin(Builder *b, uint32_t n) {
    Inner i = {.outer = b->eqns, .in = {arena_new(b->cx->arena, Val, n + 1), n}, .depth = ++b->depth};
    b->eqns = (Eqns){0};
    return i;
}
Inner b_inner(Builder *b, uint32_t n, const Type *types) {
    Inner i = begin(b, n);
    for (uint32_t k = 0; k < n; k++) i.in.at[k] = val_new(b->cx, types[k], b->span);
    return i;
}
/* Writes values with the types of `like` to `to`; `within` has what stands for their extents, and then for them: of
   values that are the same the first. */
static void inputs_like(Builder *b, ValMap *within, Vals like, Val *to) {
    each(Val, v, like) {
        *to = val_new(b->cx, type_rewrite(within, val_type(b->cx, *v)), b->span);
        if (valmap_get(within, *v) == *v) valmap_put(within, *v, *to);
        to++;
    }
}
Inner b_inner_like(Builder *b, uint32_t n, const Val *like) {
    Inner i = begin(b, n);
    ValMap within = {.cx = b->cx, .sparse = true};
    if (b_any_failed(b, n, like))
        i.in = b_failures(b, n);
    else
        inputs_like(b, &within, values(n, like), i.in.at);
    return i;
}
Jaxpr *b_inner_end(Builder *b, Inner *i, uint32_t n, const Val *out) {
    assert(i->depth && i->depth == b->depth && !i->j); /* the innermost one ends first, and once */
    b->depth--;
    Jaxpr *j = i->j = arena_new(b->cx->arena, Jaxpr, 1);
    *j = (Jaxpr){.span = b->span, .in = i->in, .eqns = b->eqns};
    j->out = vals_joined(b->cx->arena, 1, (Vals[]){values(n, out)});
    b->eqns = i->outer;
    if (b_any_failed(b, n, out)) return j;
    Capture c = {.cx = b->cx, .own.arena = b->cx->arena, .within = {.cx = b->cx, .sparse = true}};
    capture_all(&c, j);
    if (c.captured.n) put_captured(&c, j);
    i->captured = (Vals){c.captured.at, c.captured.n};
    return j;
}
Inner b_program(Builder *b, const Jaxpr *j, uint32_t n, const Val *consts) {
    assert(n <= j->in.n);
    Inner i = {.j = (Jaxpr *)j, .in = vals_part(j->in, n, j->in.n - n)};
    i.captured = vals_joined(b->cx->arena, 1, (Vals[]){values(n, consts)});
    return i;
}

Vals b_jit(Builder *b, Str name, const Inner *i, uint32_t n, const Val *in) {
    if (b_any_failed(b, n, in)) return b_failures(b, i->j->out.n);
    assert(i->in.n == n);
    Param *p = arena_new(b->cx->arena, Param, 2);
    p[0] = (Param){.key = K_name, .value = {.kind = V_WORD, .s = name.n ? name : S("jit")}};
    p[1] = p_jaxpr(K_jaxpr, i->j);
    Eqn e = {.prim = P_jit, .params = {p, 2}};
    e.in = vals_joined(b->cx->arena, 2, (Vals[]){i->captured, values(n, in)});
    return b_eqn(b, &e, i->j->out.n, NULL);
}
Vals b_scan(Builder *b, const Inner *turn, Loop how, uint32_t n, const Val *in) {
    uint32_t nout = turn->j->out.n;
    if (b_any_failed(b, n, in)) return b_failures(b, nout);
    assert(how.carries <= n && how.carries <= nout && turn->in.n == n);
    Vals out = none(b, nout), all = values(n, in);
    Param unroll = p_int(K_unroll, how.unroll ? how.unroll : 1);
    Eqn plain = {.params = {&unroll, 1}};
    Scan s = {.body = turn->j, .length = how.length, .reverse = how.reverse, .consts = turn->captured};
    s.carry = vals_part(all, 0, how.carries), s.xs = vals_part(all, how.carries, n - how.carries);
    s.end = vals_part(out, 0, how.carries), s.ys = vals_part(out, how.carries, nout - how.carries);
    Eqn e = scan_eqn(b->cx->arena, how.like ? how.like : &plain, &s);
    return b_eqn(b, &e, nout, NULL);
}
Vals b_while(Builder *b, const Inner *test, const Inner *turn, uint32_t n, const Val *carry) {
    if (b_any_failed(b, n, carry)) return b_failures(b, n);
    assert(test->in.n == n && turn->in.n == n && turn->j->out.n == n && test->j->out.n == 1);
    While w = {.cond = test->j, .body = turn->j, .cond_consts = test->captured, .body_consts = turn->captured};
    w.carry = values(n, carry), w.end = none(b, n);
    Eqn e = while_eqn(b->cx->arena, &(Eqn){0}, &w);
    return b_eqn(b, &e, n, NULL);
}

/* ---- cond: all branches take what any of them captures */
typedef struct {
    Ctx *cx;
    Intern seen;
    struct {
        Val *at;
        uint32_t n, cap;
    } vals;
} Union;

/* Each value once, after its extents. */
static void unite(void *user, Val v) {
    Union *u = user;
    bool fresh;
    type_extents(u->cx, val_type(u->cx, v), unite, u);
    intern(&u->seen, &v, sizeof v, &fresh);
    if (fresh) push(u->cx->arena, &u->vals, v);
}
/* The slot of the program that takes all of these values before the inputs of `i`; as of memo_at. */
static Jaxpr **caller_of(Builder *b, const Inner *i, Vals all) {
    uint32_t n = 2;
    uint64_t *key = arena_new(b->cx->arena, uint64_t, 2 + i->captured.n + all.n);
    key[0] = (uintptr_t)i->j, key[1] = i->captured.n;
    each(Val, v, i->captured) key[n++] = *v;
    each(Val, v, all) key[n++] = *v;
    Memo *callers = &b_tables(b)->callers;
    callers->arena = b->cx->arena;
    return memo_at(callers, key, n * sizeof *key);
}
/* The program of `i` if it takes all of these values; or one that takes them and calls it: others may hold `i`. */
static Jaxpr *taking(Builder *b, const Inner *i, Vals all) {
    bool same = i->captured.n == all.n && (!all.n || memcmp(i->captured.at, all.at, all.n * sizeof *all.at) == 0);
    if (same) return i->j;
    if (*caller_of(b, i, all)) return *caller_of(b, i, all);
    Vals own = vals_part(i->j->in, i->captured.n, i->in.n);
    ValMap outside = {.cx = b->cx, .sparse = true}, called = outside; /* to inputs of the caller */
    Inner caller = begin(b, all.n + own.n);
    inputs_like(b, &outside, all, caller.in.at);
    for (uint32_t k = 0; k < i->captured.n; k++)
        valmap_put(&called, i->j->in.at[k], valmap_get(&outside, i->captured.at[k]));
    inputs_like(b, &called, own, caller.in.at + all.n);
    Inner program = b_program(b, i->j, 0, NULL);
    Vals in = vals_rewrite(&called, i->j->in), y = b_jit(b, i->j->name, &program, in.n, in.at);
    Jaxpr *j = b_inner_end(b, &caller, y.n, y.at);
    assert(!caller.captured.n);
    return *caller_of(b, i, all) = j;
}
Vals b_branches(Builder *b, uint32_t n, const Inner *branches, Jaxpr **programs) {
    Union all = {.cx = b->cx, .seen.arena = b->cx->arena};
    for (uint32_t i = 0; i < n; i++) {
        assert(branches[i].in.n == branches[0].in.n && branches[i].j->out.n == branches[0].j->out.n);
        each(Val, v, branches[i].captured) unite(&all, *v);
    }
    Vals captured = {all.vals.at, all.vals.n};
    for (uint32_t i = 0; i < n; i++) programs[i] = taking(b, &branches[i], captured);
    return captured;
}
Vals b_cond(Builder *b, Val which, uint32_t nbranches, const Inner *branches, uint32_t n, const Val *in) {
    assert(nbranches > 0 && branches[0].in.n == n);
    uint32_t nout = branches[0].j->out.n;
    Jaxpr **programs = arena_new(b->cx->arena, Jaxpr *, nbranches);
    if (b_failed(b, which) || b_any_failed(b, n, in)) return b_failures(b, nout);
    Vals captured = b_branches(b, nbranches, branches, programs);
    Cond c = {.branches = {programs, nbranches}, .index = values(1, &which), .out = none(b, nout)};
    c.in = vals_joined(b->cx->arena, 2, (Vals[]){captured, values(n, in)});
    Eqn e = cond_eqn(b->cx->arena, &(Eqn){0}, &c);
    return b_eqn(b, &e, nout, NULL);
}
