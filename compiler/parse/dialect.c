/* Differences between versions of JAX: old spellings of equations become today's, with one rule for each old name or
   parameter. Later stages do not depend on the version that printed the text, except for random numbers: whether it was
   before JAX 0.5. */
#include "../control.h"
#include "parser.h"

/* ---- names and parameters that were renamed or removed */

static const struct {
    const char *old;
    Prim prim;
    bool before; /* removed before JAX 0.5 */
} renamed[] = {
    {"xla_call", P_jit, true},
    {"pjit", P_jit, false},
    {"custom_jvp_call_jaxpr", P_custom_jvp_call, false},
    {"custom_vjp_call_jaxpr", P_custom_vjp_call, false},
    {"tie_in", P_copy, true}, /* of its second operand */
    {"id", P_copy, true},
    {"select", P_select_n, true}, /* with the cases the other way round */
};

/* The row of the primitive's old name; the number of rows if it is not an old name. */
static unsigned renaming(const Eqn *e) {
    Str name = e->prim ? str(prim_name[e->prim]) : e->unknown;
    unsigned i = 0;
    while (i < sizeof renamed / sizeof *renamed && !str_is(name, renamed[i].old)) i++;
    return i;
}

/* ---- the version */

static uint32_t param_at(const Eqn *e, ParamKey key) {
    const Param *q = param_find(e, key);
    return q ? (uint32_t)(q - e->params.at) : UINT32_MAX;
}

/* Equations for which JAX prints `sharding` together with this shape; 0.4.36 was the first version to do so for all of
   them. */
static const struct {
    Prim prim;
    ParamKey shape;
    bool first; /* 0.4.36 was the first */
} sharded[] = {{P_broadcast_in_dim, K_shape, true}, {P_reshape, K_new_sizes, true}, {P_iota, K_shape, false}};

/* Do JAX 0.5 and later print the equation differently? They also print the name of a call first, unless all parameters
   are printed. */
static bool is_before(const Eqn *e, unsigned row) {
    if (row < sizeof renamed / sizeof *renamed) {
        uint32_t name = param_at(e, K_name), body = param_at(e, K_jaxpr);
        bool late = renamed[row].prim == P_jit && name != UINT32_MAX && body < name;
        return renamed[row].before || (late && !param_find(e, K_compiler_options_kvs));
    }
    for (unsigned i = 0; i < sizeof sharded / sizeof *sharded; i++)
        if (e->prim == sharded[i].prim && param_find(e, sharded[i].shape)) return !param_find(e, K_sharding);
    return false;
}

/* Was 0.4.36 the earliest version to print it like this? */
static bool is_recent(const Eqn *e) {
    if (e->prim == P_jit && !e->unknown.n) return true;
    for (unsigned i = 0; i < sizeof sharded / sizeof *sharded; i++)
        if (e->prim == sharded[i].prim && sharded[i].first) return param_find(e, K_sharding) != NULL;
    return false;
}

static void note_era(Parser *p, const Eqn *e, unsigned row) {
    p->recent |= is_recent(e);
    if (!p->before.n && is_before(e, row)) p->before = e->span;
}

/* Redundant parameters that old versions printed: shapes of the operands, backends, thunks. */
static bool says_nothing(const Eqn *e, const Param *q) {
    static const char *const old[] = {"old_dtype",       "old_sizes",       "input_shape",  "operand_shape",
                                      "operand_shapes",  "updates_shape",   "lhs_shape",    "rhs_shape",
                                      "jvp_jaxpr_thunk", "fwd_jaxpr_thunk", "jvp_jaxpr_fun"};
    static const char *const call[] = {"backend", "device", "inline", "donated_invars"};
    for (unsigned i = 0; i < sizeof old / sizeof *old; i++)
        if (str_is(q->name, old[i])) return e->prim != P_none;
    for (unsigned i = 0; i < sizeof call / sizeof *call && e->prim == P_jit && param_find(e, K_call_jaxpr); i++)
        if (str_is(q->name, call[i])) return true;
    return false;
}

static void rename_param(Eqn *e, ParamKey from, ParamKey to) {
    each(Param, q, e->params) {
        if (q->key != from || param_find(e, to)) continue;
        q->key = to;
        q->name = str(param_name[to]);
    }
}

static void drop_params(Eqn *e) {
    uint32_t n = 0;
    Eqn before = *e;
    for (uint32_t i = 0; i < e->params.n; i++)
        if (!says_nothing(&before, &e->params.at[i])) n++;
    if (n == e->params.n) return;
    n = 0;
    for (uint32_t i = 0; i < before.params.n; i++)
        if (!says_nothing(&before, &before.params.at[i])) e->params.at[n++] = before.params.at[i];
    e->params.n = n;
}

static Param *find(Eqn *e, ParamKey key) {
    each(Param, q, e->params)
        if (q->key == key) return q;
    return NULL;
}

/* ---- operands */

static void keep_operands(Eqn *e, const bool *keep) {
    uint32_t n = 0;
    Span *at = (Span *)e->in_at;
    for (uint32_t i = 0; i < e->in.n; i++) {
        if (!keep[i]) continue;
        e->in.at[n] = e->in.at[i];
        at[n++] = e->in_at[i];
    }
    e->in.n = n;
}

static bool uses(const Jaxpr *j, Val v) {
    each(const Eqn, e, j->eqns)
        for (uint32_t i = 0; i < e->in.n; i++)
            if (e->in.at[i] == v) return true;
    for (uint32_t i = 0; i < j->out.n; i++)
        if (j->out.at[i] == v) return true;
    return false;
}

static bool is_unit(const Parser *p, Val v) {
    const Lit *l = val_info(p->cx, v)->lit;
    return l && l->kind == LIT_UNIT;
}

/* `*` stood for an elided value. If the body does not use it, operand and input are dropped. */
static void drop_units(Parser *p, Eqn *e, Jaxpr *j) {
    if (!j || j->in.n != e->in.n) return;
    bool *keep = arena_new(p->arena, bool, e->in.n);
    OwnConsts own;
    int64_t consts = own_consts(e, 0, &own) && own.n ? *own.n : 0, consts_gone = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < e->in.n; i++) {
        keep[i] = !is_unit(p, e->in.at[i]) || uses(j, j->in.at[i]);
        consts_gone += !keep[i] && i < consts;
        if (keep[i]) j->in.at[n++] = j->in.at[i];
    }
    if (n == e->in.n) return;
    Param *linear = find(e, K_linear);
    if (consts_gone) *own.n -= consts_gone;
    if (linear && linear->value.kind == V_INTS && linear->value.ints.n == e->in.n) {
        uint32_t k = 0;
        for (uint32_t i = 0; i < e->in.n; i++)
            if (keep[i]) linear->value.ints.at[k++] = linear->value.ints.at[i];
        linear->value.ints.n = k;
    }
    keep_operands(e, keep);
    j->in.n = n;
}

/* ---- equations that were spelt differently */

/* forward=True is reverse=False. */
static void scan_forward(Eqn *e) {
    Param *q = find(e, K_forward);
    if (!q || q->value.kind != V_BOOL) return;
    q->value.i = !q->value.i;
    rename_param(e, K_forward, K_reverse);
}

static Eqn convert(Parser *p, const Eqn *e, Val x, Span at, Dtype to, Val *result) {
    Arena *a = p->arena;
    Eqn c = {.prim = P_convert_element_type, .span = e->span, .whole = e->whole};
    Type type = val_type(p->cx, x) ? type_of(p->cx->types, to, 0, NULL) : 0;
    *result = val_new(p->cx, type, at);
    c.in = (Vals){arena_new(a, Val, 1), 1};
    c.out = (Vals){arena_new(a, Val, 1), 1};
    Span *in_at = arena_new(a, Span, 1);
    c.in.at[0] = x;
    c.out.at[0] = *result;
    in_at[0] = at;
    c.in_at = in_at;
    c.params = (Params){arena_new(a, Param, 2), 2};
    c.params.at[0] = (Param){K_new_dtype, e->span, S("new_dtype"), {.kind = V_DTYPE, .span = e->span, .i = to}};
    c.params.at[1] = (Param){K_weak_type, e->span, S("weak_type"), {.kind = V_BOOL, .span = e->span}};
    return c;
}

/* Makes a branch take the operands of both: unused variables stand for those of the other branch. */
static void widen(Parser *p, Jaxpr *j, uint32_t before, uint32_t after) {
    Vals in = {arena_new(p->arena, Val, before + j->in.n + after), before + j->in.n + after};
    for (uint32_t i = 0; i < in.n; i++)
        in.at[i] = i >= before && i < before + j->in.n ? j->in.at[i - before] : val_new(p->cx, 0, j->span);
    j->in = in;
}

/* February 2020: a bool, operands of the true branch, operands of the false branch; today an index, false first, and
   the same operands for both. */
static void cond_of_bool(Parser *p, Eqn *e) {
    Param *t = find(e, K_true_jaxpr), *f = find(e, K_false_jaxpr), *linear = find(e, K_linear);
    if (!t || !f || t->value.kind != V_JAXPR || f->value.kind != V_JAXPR || !t->value.jaxpr || !f->value.jaxpr) return;
    Jaxpr *yes = t->value.jaxpr, *no = f->value.jaxpr;
    if (e->in.n != 1 + yes->in.n + no->in.n) return;
    uint32_t nyes = yes->in.n, nno = no->in.n;
    widen(p, yes, 0, nno);
    widen(p, no, nyes, 0);
    Jaxpr **both = arena_new(p->arena, Jaxpr *, 2);
    both[0] = no;
    both[1] = yes;
    Param branches = cond_param((Jaxprs){both, 2}, false);
    branches.span = f->span, branches.value.span = f->value.span;
    *f = branches;
    if (linear && linear->value.kind == V_INTS && linear->value.ints.n) {
        linear->value.ints.at++;
        linear->value.ints.n--;
    }
    *t = e->params.at[--e->params.n];
    Val index;
    eqn_add(p, convert(p, e, e->in.at[0], e->in_at[0], DT_i32, &index));
    e->in.at[0] = index;
}

/* select p x y gives x where p; select_n counts from false. */
static void swap_cases(Eqn *e) {
    if (e->in.n != 3) return;
    Val x = e->in.at[1];
    Span *at = (Span *)e->in_at, s = at[1];
    e->in.at[1] = e->in.at[2];
    e->in.at[2] = x;
    at[1] = at[2];
    at[2] = s;
}

/* 2019: a call returns a tuple, and `(d e) = id c` takes it apart: the call returns d and e. */
static bool untuple(Parser *p, const Eqn *e) {
    if (e->in.n != 1) return false;
    for (uint32_t i = p->eqns.n; i-- > scope_now(p)->eqns;) {
        Eqn *call = &p->eqns.at[i];
        if (call->out.n != 1 || call->out.at[0] != e->in.at[0]) continue;
        Jaxpr *j = param_jaxpr(call, K_jaxpr);
        if (!j || j->out.n != e->out.n) return false;
        call->out = e->out;
        return true;
    }
    return false;
}

/* ---- all rules */

static void rename_prim(Eqn *e, unsigned row) {
    if (row == sizeof renamed / sizeof *renamed) return;
    e->prim = renamed[row].prim;
    e->unknown = str(renamed[row].old); /* for messages */
}

void dialect_add(Parser *p, Eqn e) {
    bool select = str_is(e.unknown, "select"), tie_in = str_is(e.unknown, "tie_in"), id = str_is(e.unknown, "id");
    if (e.params.n == 0 && !e.unknown.n) {
        eqn_add(p, e);
        return;
    }
    unsigned row = renaming(&e);
    note_era(p, &e, row);
    rename_prim(&e, row);
    drop_params(&e);
    if (e.prim == P_jit) rename_param(&e, K_call_jaxpr, K_jaxpr);
    if (e.prim == P_custom_jvp_call || e.prim == P_custom_vjp_call) rename_param(&e, K_fun_jaxpr, K_call_jaxpr);
    if (e.prim == P_scan) scan_forward(&e);
    if (e.prim == P_scan || e.prim == P_jit) drop_units(p, &e, param_jaxpr(&e, K_jaxpr));
    if (e.prim == P_cond) cond_of_bool(p, &e);
    if (select) swap_cases(&e);
    if (tie_in && e.in.n == 2) keep_operands(&e, (const bool[]){false, true});
    if (id && untuple(p, &e)) return;
    eqn_add(p, e);
}
