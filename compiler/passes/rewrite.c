#include "rewrite.h"
#include "../typecheck/rule.h"

const uint8_t prim_lower[NPRIMS] = {
#define POINT(f) LOWER_POINT
#define STDLIB(f) LOWER_STDLIB
#define INDEX(f) LOWER_INDEX
#define REDUCE(f, z) LOWER_REDUCE
#define CUM(f, z) LOWER_CUM
#define ARG(f, z) LOWER_ARG
#define DOT LOWER_DOT
#define UPDATE LOWER_UPDATE
#define COND LOWER_COND
#define WHILE LOWER_WHILE
#define SCAN LOWER_SCAN
#define CALL LOWER_CALL
#define EXPAND(f) LOWER_EXPAND
#define SCATTER(f) LOWER_SCATTER
#define RUNTIME LOWER_RUNTIME
#define SORT LOWER_SORT
#define SPMD LOWER_SPMD
#define PROGRAM LOWER_PROGRAM
#define SAME LOWER_SAME
#define STATE(f) LOWER_STATE
#define NONE LOWER_NONE
#define PRIM(id, text, arity, type, simplify, facts, jvp, transpose, vmap, lowering) [P_##id] = lowering,
#include "../prims.def"
};

#define NO_LOWERING P_none
#define REDUCE(f, z) P_##f
#define CUM(f, z) P_##f
#define ARG(f, z) P_##f
#define SCATTER(f) P_##f
const uint16_t prim_combiner[NPRIMS] = {
#define PRIM(id, text, arity, type, simplify, facts, jvp, transpose, vmap, lowering) [P_##id] = lowering,
#include "../prims.def"
};

#define NO_LOWERING 0
#define REDUCE(f, z) NEUTRAL_##z
#define CUM(f, z) NEUTRAL_##z
#define ARG(f, z) NEUTRAL_##z
const uint8_t prim_neutral[NPRIMS] = {
#define PRIM(id, text, arity, type, simplify, facts, jvp, transpose, vmap, lowering) [P_##id] = lowering,
#include "../prims.def"
};

bool runs_programs(Prim p) {
    return is_control(p) || prim_lower[p] == LOWER_CALL || prim_lower[p] == LOWER_STATE || p == P_shard_map ||
           p == P_xla_pmap || p == P_spmd;
}

static Val sparse_get(const ValMap *m, Val v) {
    uint32_t i;
    return intern_find(&m->keys, &v, sizeof v, &i) ? m->at[i] : v;
}
Val valmap_get(const ValMap *m, Val v) {
    if (m->sparse) return sparse_get(m, v);
    return v < m->n && m->at[v] ? m->at[v] : v;
}

static void sparse_put(ValMap *m, Val v, Val with) {
    m->keys.arena = m->cx->arena;
    uint32_t i = intern(&m->keys, &v, sizeof v, NULL);
    if (i == m->n) {
        Val *at = arena_new(m->cx->arena, Val, m->n ? 2 * m->n : 8);
        if (m->n) memcpy(at, m->at, m->n * sizeof *at);
        m->at = at, m->n = m->n ? 2 * m->n : 8;
    }
    m->at[i] = with;
}
void valmap_put(ValMap *m, Val v, Val with) {
    if (m->sparse) {
        sparse_put(m, v, with);
        return;
    }
    if (v >= m->n) {
        uint32_t n = m->cx->nvals + m->cx->nvals / 2;
        Val *at = arena_new(m->cx->arena, Val, n);
        if (m->n) memcpy(at, m->at, m->n * sizeof *at);
        m->at = at;
        m->n = n;
    }
    m->at[v] = with;
}

Jaxpr **memo_at(Memo *m, const void *key, size_t n) {
    m->table.arena = m->arena;
    bool fresh;
    uint32_t k = intern(&m->table, key, n, &fresh);
    if (fresh) push(m->arena, &m->done, NULL);
    return &m->done.at[k];
}
Jaxpr **memo_slot(Memo *m, const Jaxpr *j) { return memo_at(m, &j, sizeof j); }

Vals vals_rewrite(const ValMap *map, Vals vs) {
    Vals new = {arena_new(map->cx->arena, Val, vs.n), vs.n};
    for (uint32_t i = 0; i < vs.n; i++) new.at[i] = valmap_get(map, vs.at[i]);
    return new;
}

/* The dimension for an integer scalar. */
static Dim bound_dim(void *user, Dim atom) {
    const ValMap *map = user;
    Types *ts = map->cx->types;
    const DimExpr *x = dim_at(ts, atom);
    if (x->kind != DIM_BOUND) return atom;
    Val v = valmap_get(map, x->val);
    if (v == x->val) return atom;
    const Lit *lit = val_info(map->cx, v)->lit;
    if (lit && lit->kind == LIT_INT && lit->i <= INT64_MAX) return lit->negative ? -(int64_t)lit->i : (int64_t)lit->i;
    return dim_bound(ts, v);
}

static Dim dim_rewrite(const ValMap *map, Dim d) {
    return dim_is_const(d) ? d : dim_substitute(map->cx->types, d, bound_dim, (void *)map);
}

Type type_rewrite(const ValMap *map, Type t) {
    const ArrayType *a = type_at(map->cx->types, t);
    for (uint32_t i = 0; i < a->rank; i++)
        if (!dim_is_const(a->dims[i])) return type_substitute(map->cx->types, t, bound_dim, (void *)map);
    return t;
}

/* ---- values that are extents */
typedef struct {
    const Ctx *cx;
    ValVisit *visit;
    void *user;
} Visit;
static Dim visit_atom(void *user, Dim atom) {
    Visit *x = user;
    const DimExpr *d = dim_at(x->cx->types, atom);
    if (d->kind == DIM_BOUND) x->visit(x->user, d->val);
    return atom;
}
static void visit_dims(Visit *x, uint32_t n, const Dim *dims) {
    for (uint32_t i = 0; i < n; i++)
        if (!dim_is_const(dims[i])) dim_substitute(x->cx->types, dims[i], visit_atom, x);
}
static void visit_value(Visit *x, const Value *v) {
    if (v->kind == V_DIM) visit_dims(x, 1, &v->dim);
    if (v->kind == V_DIMS) visit_dims(x, v->dims.n, v->dims.at);
    for (uint32_t i = 0; (v->kind == V_LIST || v->kind == V_PAIR) && i < v->list.n; i++) visit_value(x, &v->list.at[i]);
}
void type_extents(const Ctx *cx, Type t, ValVisit *visit, void *user) {
    const ArrayType *a = type_at(cx->types, t);
    visit_dims(&(Visit){cx, visit, user}, a->rank, a->dims);
}
void eqn_extents(const Ctx *cx, const Eqn *e, ValVisit *visit, void *user) {
    Visit x = {cx, visit, user};
    each(const Param, p, e->params) visit_value(&x, &p->value);
}
void eqn_takes(const Ctx *cx, const Eqn *e, ValVisit *visit, void *user) {
    each(const Val, v, e->in) visit(user, *v);
    eqn_extents(cx, e, visit, user);
    each(const Val, v, e->out) type_extents(cx, val_type(cx, *v), visit, user);
}

/* ---- copies */
typedef struct {
    const ValMap *map;
    JaxprMap *sub;
    void *user;
} Change;

static bool value_change(const Change *c, Value *v);

static bool dims_change(const Change *c, Dims *dims) {
    Dim *at = NULL;
    for (uint32_t i = 0; i < dims->n; i++) {
        Dim d = dim_rewrite(c->map, dims->at[i]);
        if (d == dims->at[i]) continue;
        if (!at) {
            at = arena_new(c->map->cx->arena, Dim, dims->n);
            memcpy(at, dims->at, dims->n * sizeof *at);
        }
        at[i] = d;
    }
    if (at) dims->at = at;
    return at;
}

static bool jaxprs_change(const Change *c, Value *v) {
    if (!c->sub) return false;
    Jaxpr **at = arena_new(c->map->cx->arena, Jaxpr *, v->jaxprs.n);
    for (uint32_t i = 0; i < v->jaxprs.n; i++) at[i] = c->sub(c->user, v->jaxprs.at[i]);
    v->jaxprs.at = at;
    return true;
}

static bool list_change(const Change *c, Value *v) {
    Value *at = NULL;
    for (uint32_t i = 0; i < v->list.n; i++) {
        Value item = v->list.at[i];
        if (!value_change(c, &item)) continue;
        if (!at) {
            at = arena_new(c->map->cx->arena, Value, v->list.n);
            memcpy(at, v->list.at, v->list.n * sizeof *at);
        }
        at[i] = item;
    }
    if (at) v->list.at = at;
    return at;
}

/* Changes *v, which is a copy, without writing to memory that it points to. */
static bool value_change(const Change *c, Value *v) {
    switch (v->kind) {
    case V_DIM: {
        Dim d = dim_rewrite(c->map, v->dim);
        bool changed = d != v->dim;
        v->dim = d;
        return changed;
    }
    case V_DIMS: return dims_change(c, &v->dims);
    case V_JAXPR:
        if (!c->sub || !v->jaxpr) return false;
        v->jaxpr = c->sub(c->user, v->jaxpr);
        return true;
    case V_JAXPRS: return jaxprs_change(c, v);
    case V_LIST:
    case V_PAIR: return list_change(c, v);
    default: return false;
    }
}

Eqn eqn_rewrite(const ValMap *map, const Eqn *e, JaxprMap *sub, void *user) {
    Change c = {map, sub, user};
    Eqn new = *e;
    new.in = vals_rewrite(map, e->in);
    bool copied = false;
    for (uint32_t i = 0; i < e->params.n; i++) {
        Value v = e->params.at[i].value;
        if (!value_change(&c, &v)) continue;
        if (!copied) {
            new.params.at = arena_new(map->cx->arena, Param, e->params.n);
            memcpy(new.params.at, e->params.at, e->params.n * sizeof(Param));
            copied = true;
        }
        new.params.at[i].value = v;
    }
    return new;
}

/* to = copy from */
static void push_copy(Ctx *cx, Eqns *eqns, Val to, Val from, Span span, Span whole) {
    Val *both = arena_new(cx->arena, Val, 2);
    both[0] = from, both[1] = to;
    push(cx->arena, eqns, ((Eqn){.prim = P_copy, .span = span, .whole = whole, .in = {both, 1}, .out = {both + 1, 1}}));
}
void name_indices(Ctx *cx, Eqns *to, Eqn *e) {
    if (e->prim != P_get && e->prim != P_swap && e->prim != P_addupdate) return;
    for (uint32_t i = e->prim == P_get ? 1 : 2; i < e->in.n; i++) {
        if (!val_info(cx, e->in.at[i])->lit) continue;
        Val number = e->in.at[i];
        e->in.at[i] = val_new(cx, val_type(cx, number), e->span);
        push_copy(cx, to, e->in.at[i], number, e->span, e->whole);
    }
}

/* Results of a call that are extents of other results: the values that compute them in the called program are given
   their names. */
typedef struct {
    const Eqn *call;
    const Jaxpr *body;
    bool some;
} Names;
static Names names_of(const Ctx *cx, const Eqn *call, const Jaxpr *body) {
    Names n = {call, body, false};
    each(const Val, v, call->out) n.some |= dim_is_bound(cx->types, *v);
    return n;
}
static Val name_of_result(const Ctx *cx, const Names *n, Val inner) {
    for (uint32_t i = 0; n && n->some && i < n->call->out.n; i++)
        if (n->body->out.at[i] == inner && dim_is_bound(cx->types, n->call->out.at[i])) return n->call->out.at[i];
    return 0;
}

static bool splice(ValMap *map, Eqns *to, const Jaxpr *j, Vals in, Span call, const Names *names) {
    Ctx *cx = map->cx;
    if (j->eqns.n > MOST_EQNS - map->spliced)
        return diag(cx->diags, call, "more than %d equations once calls are inlined", MOST_EQNS);
    map->spliced += j->eqns.n;
    for (uint32_t i = 0; i < in.n; i++) valmap_put(map, j->in.at[i], in.at[i]);
    each(const Eqn, e, j->eqns) {
        Eqn new = eqn_rewrite(map, e, NULL, NULL);
        new.out = (Vals){arena_new(cx->arena, Val, e->out.n), e->out.n};
        for (uint32_t i = 0; i < e->out.n; i++) {
            const ValInfo *old = val_info(cx, e->out.at[i]);
            Span span = old->span;
            Val known = name_of_result(cx, names, e->out.at[i]);
            new.out.at[i] = known ? known : val_new(cx, type_rewrite(map, old->type), span);
            valmap_put(map, e->out.at[i], new.out.at[i]);
        }
        name_indices(cx, to, &new);
        push(cx->arena, to, new);
    }
    return true;
}

bool jaxpr_splice(ValMap *map, Eqns *to, const Jaxpr *j, Vals in, Span call) {
    return splice(map, to, j, in, call, NULL);
}
bool jaxpr_splice_call(ValMap *map, Eqns *to, const Jaxpr *j, Vals in, const Eqn *e) {
    Names names = names_of(map->cx, e, j);
    if (!splice(map, to, j, in, e->span, &names)) return false;
    for (uint32_t i = 0; i < e->out.n; i++) val_replace(map, to, e->out.at[i], valmap_get(map, j->out.at[i]));
    return true;
}
void results_replace(ValMap *map, Eqns *to, const Eqn *e) {
    for (uint32_t i = 0; i < e->out.n; i++) val_replace(map, to, e->out.at[i], valmap_get(map, e->in.at[i]));
}
void val_replace(ValMap *map, Eqns *to, Val old, Val v) {
    Ctx *cx = map->cx;
    if (old == v) return;
    if (!dim_is_bound(cx->types, old)) {
        valmap_put(map, old, v);
        return;
    }
    Span span = val_info(cx, old)->span;
    push_copy(cx, to, old, v, span, span);
}

Jaxpr *jaxpr_with(Ctx *cx, const Jaxpr *j, Eqns eqns, Vals out) {
    Jaxpr *new = arena_new(cx->arena, Jaxpr, 1);
    *new = *j;
    new->eqns = eqns;
    new->out = out;
    if (out.n != j->out.n) new->out_at = NULL, new->out_is = NULL;
    new->checked = false;
    return new;
}

void add_consts(Arena *arena, Consts *to, Vals consts) {
    to->seen.arena = arena;
    each(Val, c, consts) {
        bool fresh;
        intern(&to->seen, c, sizeof *c, &fresh);
        if (fresh) push(arena, to, *c);
    }
}

Jaxpr *jaxpr_rewrite(ValMap *map, Memo *memo, const Jaxpr *j, EqnMap *write, void *user) {
    Ctx *cx = map->cx;
    if (*memo_slot(memo, j)) return *memo_slot(memo, j);
    Eqns eqns = eqns_for(cx, j);
    Consts consts = {0};
    add_consts(cx->arena, &consts, j->consts);
    each(const Eqn, e, j->eqns)
        if (!write(user, &eqns, &consts, e)) return NULL;
    Jaxpr *new = jaxpr_with(cx, j, eqns, vals_rewrite(map, j->out));
    new->consts = (Vals){consts.at, consts.n};
    return *memo_slot(memo, j) = new;
}

/* The index is clamped. */
const Jaxpr *known_branch(const ValMap *map, const Eqn *e, Vals *in) {
    Cond c = cond_of(e);
    if (!c.branches.n || c.bools) return NULL;
    const Lit *lit = val_info(map->cx, valmap_get(map, c.index.at[0]))->lit;
    if (!lit || (lit->kind != LIT_INT && lit->kind != LIT_BOOL)) return NULL;
    uint64_t i = lit->negative ? 0 : lit->i;
    *in = c.in;
    return c.branches.at[i < c.branches.n ? i : c.branches.n - 1];
}

/* ---- calls that stay */
typedef struct {
    Vals in;
    bool inside; /* an extent is computed inside */
} Extents;
static void visit_extent(void *user, Val v) {
    Extents *x = user;
    bool input = false;
    for (uint32_t i = 0; i < x->in.n && !input; i++) input = x->in.at[i] == v;
    x->inside = x->inside || !input;
}
/* Does a caller know the types: no references, and no extents that are computed inside? */
static bool is_plain(Ctx *cx, const Jaxpr *j, Vals vs) {
    Extents x = {j->in, false};
    each(const Val, v, vs) {
        Type t = val_type(cx, *v);
        if (type_is_ref(cx, t)) return false;
        type_extents(cx, t, visit_extent, &x);
    }
    return !x.inside;
}
bool may_stay_call(void *cx, const Jaxpr *j) { return is_plain(cx, j, j->in) && is_plain(cx, j, j->out); }

Eqn eqn_call(const ValMap *map, const Eqn *e, Jaxpr *body, Vals operands) {
    Eqn new = {.prim = P_jit, .span = e->span, .whole = e->whole, .out = e->out};
    new.in = vals_rewrite(map, operands);
    const Param *own = param_find(e, K_name);
    Param name = {.key = K_name, .value = {.kind = V_WORD, .s = body->name.n ? body->name : str(prim_name[e->prim])}};
    if (own && own->value.kind == V_WORD) name = *own;
    new.params = (Params){arena_new(map->cx->arena, Param, 2), 2};
    new.params.at[0] = name;
    new.params.at[1] = (Param){.key = K_jaxpr, .value = {.kind = V_JAXPR, .jaxpr = body}};
    return new;
}

bool eqn_cheap(const Eqn *e) {
    Lower how = prim_lower[e->prim];
    int64_t y = param_int(e, K_y, 0);
    if (e->prim == P_integer_pow) return y >= 0 && y <= 3;
    return how == LOWER_INDEX || how == LOWER_SAME || (how == LOWER_POINT && !prim_is(e->prim, COSTLY));
}

bool eqn_impure(const Eqn *e) { return e->out.n == 0 || param_bool(e, K_has_side_effect); }
bool jaxpr_contains(Search *s, const Jaxpr *j, EqnTest *is) {
    bool fresh, found = false;
    s->programs.arena = s->cx->arena;
    uint32_t number = intern(&s->programs, &j, sizeof j, &fresh);
    if (!fresh) return s->found.at[number];
    push(s->cx->arena, &s->found, false);
    for (uint32_t i = 0; i < j->eqns.n && !found; i++) found = eqn_contains(s, &j->eqns.at[i], is);
    return s->found.at[number] = found;
}
bool eqn_contains(Search *s, const Eqn *e, EqnTest *is) {
    Jaxprs within = e->params.n ? eqn_jaxprs(s->cx->arena, e) : (Jaxprs){0};
    bool found = is(e, within);
    for (uint32_t i = 0; i < within.n && !found; i++) found = jaxpr_contains(s, within.at[i], is);
    return found;
}
static bool has_effects(const Eqn *e, Jaxprs within) {
    return eqn_impure(e) && !(within.n && (prim_calls(e->prim) || is_control(e->prim)));
}
bool eqn_has_effects(Effects *f, const Eqn *e) { return eqn_contains(f, e, has_effects); }
bool jaxpr_has_effects(Effects *f, const Jaxpr *j) { return jaxpr_contains(f, j, has_effects); }
static bool may_not_end(const Eqn *e, Jaxprs within) {
    static const bool may_not[NPRIMS] = {
        [P_while] = true, [P_pure_callback] = true, [P_io_callback] = true, [P_ffi_call] = true};
    return may_not[e->prim];
}
bool eqn_runs_anywhere(Search *s, const Eqn *e) {
    const Options *o = s->cx->options;
    return !o->debug_nans && !o->check_bounds && !eqn_contains(s, e, may_not_end);
}

typedef struct {
    Ctx *cx;
    Intern within, seen;
} RuleWalk;
static void rule_walk(RuleWalk *w, const Jaxpr *j, bool within) {
    bool fresh;
    intern(within ? &w->within : &w->seen, &j, sizeof j, &fresh);
    if (!fresh) return;
    each(const Eqn, e, j->eqns) {
        Jaxprs inner = e->params.n ? eqn_jaxprs(w->cx->arena, e) : (Jaxprs){0};
        bool rule = e->prim == P_custom_jvp_call || e->prim == P_custom_vjp_call;
        each(Jaxpr *, k, inner) rule_walk(w, *k, within || rule);
    }
}
Intern programs_of_rules(Ctx *cx, const Jaxpr *j) {
    RuleWalk w = {cx, {.arena = cx->arena}, {.arena = cx->arena}};
    rule_walk(&w, j, false);
    return w.within;
}
