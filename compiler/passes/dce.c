/* Drops what no result needs: equations, and results, carries and operands of calls, loops and branches.

   One worklist over the whole program, sub-programs included, so that the time is linear: a needed value makes its
   equation needed, and that its operands; a result of a scan makes the result of its body needed, an input of the body
   the operand. The needs of several uses of one body are united, so that the body stays shared. A carry is needed if
   its result or its input is: `{ c ← c + 1; d ← d + c } in d` needs c although no result of the loop does. */
#include "rewrite.h"

typedef struct Node Node;
typedef struct Site Site;

/* A program and its needed parts. */
typedef struct {
    const Jaxpr *j;
    bool *in, *out; /* inputs and results that are kept */
    bool impure, entered;
    Node *eqns;
    struct {
        Site *at;
        uint32_t n, cap;
    } sites; /* needed equations that contain it */
    Jaxpr *new;
} Prog;

/* An equation. */
struct Node {
    const Eqn *e;
    Prog **subs; /* cond: branches; while: cond, body; scan, jit: body; others: any */
    uint32_t nsubs;
    bool live, impure;
};
struct Site {
    Node *node;
    uint32_t role; /* which of its programs */
};

typedef struct {
    Node *eqn;  /* the equation that computes it */
    Prog *prog; /* the program whose input it is */
    uint32_t k; /* which result, which input */
    bool live;
} Def;

typedef enum { NEED_VAL, NEED_IN, NEED_OUT } NeedKind;
typedef struct {
    NeedKind kind;
    Prog *prog;
    uint32_t k; /* the value, the position */
} Need;

typedef struct {
    Ctx *cx;
    Def *defs; /* by value */
    Effects effects;
    Intern table;
    struct {
        Prog **at;
        uint32_t n, cap;
    } progs;
    struct {
        Need *at;
        uint32_t n, cap;
    } todo;
} Dce;

/* ---- the program as nodes */

static Prog *prog_of(Dce *d, const Jaxpr *j);

static void node_of(Dce *d, Node *node, const Eqn *e) {
    Jaxprs subs = eqn_jaxprs(d->cx->arena, e);
    if (prim_lower[e->prim] == LOWER_WHILE) { /* in this order */
        subs.n = 2;
        subs.at = arena_new(d->cx->arena, Jaxpr *, 2);
        subs.at[0] = param_jaxpr(e, K_cond_jaxpr);
        subs.at[1] = param_jaxpr(e, K_body_jaxpr);
    }
    *node = (Node){e, arena_new(d->cx->arena, Prog *, subs.n), subs.n, false, eqn_has_effects(&d->effects, e)};
    for (uint32_t i = 0; i < subs.n; i++) node->subs[i] = prog_of(d, subs.at[i]);
    for (uint32_t i = 0; i < e->out.n; i++) d->defs[e->out.at[i]] = (Def){.eqn = node, .k = i};
}

static Prog *prog_of(Dce *d, const Jaxpr *j) {
    bool fresh;
    uint32_t number = intern(&d->table, &j, sizeof j, &fresh);
    if (!fresh) return d->progs.at[number];
    Arena *arena = d->cx->arena;
    Prog *p = arena_new(arena, Prog, 1);
    push(arena, &d->progs, p);
    p->j = j;
    p->in = arena_new(arena, bool, j->in.n);
    p->out = arena_new(arena, bool, j->out.n);
    p->eqns = arena_new(arena, Node, j->eqns.n);
    for (uint32_t i = 0; i < j->in.n; i++) d->defs[j->in.at[i]] = (Def){.prog = p, .k = i};
    for (uint32_t i = 0; i < j->eqns.n; i++) {
        node_of(d, &p->eqns[i], &j->eqns.at[i]);
        p->impure = p->impure || p->eqns[i].impure;
    }
    return p;
}

/* ---- needs */

static void need(Dce *d, NeedKind kind, Prog *p, uint32_t k) { push(d->cx->arena, &d->todo, ((Need){kind, p, k})); }

static Dim need_atom(void *user, Dim atom);

static void need_dim(Dce *d, Dim dim) {
    if (!dim_is_const(dim)) dim_substitute(d->cx->types, dim, need_atom, d);
}

static void need_val(Dce *d, Val v) {
    if (d->defs[v].live) return;
    d->defs[v].live = true;
    need(d, NEED_VAL, NULL, v);
    const ArrayType *a = val_array(d->cx, v);
    for (uint32_t i = 0; i < a->rank; i++) need_dim(d, a->dims[i]);
}

/* Marks the scalars that are extents. */
static Dim need_atom(void *user, Dim atom) {
    Dce *d = user;
    const DimExpr *x = dim_at(d->cx->types, atom);
    if (x->kind == DIM_BOUND) need_val(d, x->val);
    return atom;
}

static void need_in(Dce *d, Prog *p, uint32_t k) {
    if (k >= p->j->in.n || p->in[k]) return;
    p->in[k] = true;
    need(d, NEED_IN, p, k);
    need_val(d, p->j->in.at[k]);
}

static void need_out(Dce *d, Prog *p, uint32_t k) {
    if (k >= p->j->out.n || p->out[k]) return;
    p->out[k] = true;
    need(d, NEED_OUT, p, k);
    need_val(d, p->j->out.at[k]);
}

static uint32_t count(const Eqn *e, ParamKey key) { return (uint32_t)param_int(e, key, 0); }

/* Carry `c` of a while is needed: its operand, and its place in both programs. */
static void need_carry(Dce *d, Node *node, uint32_t c) {
    uint32_t cn = count(node->e, K_cond_nconsts), bn = count(node->e, K_body_nconsts);
    need_out(d, node->subs[1], c);
    need_in(d, node->subs[0], cn + c);
    need_in(d, node->subs[1], bn + c);
    if (cn + bn + c < node->e->in.n) need_val(d, node->e->in.at[cn + bn + c]);
}

/* Input `k` of program number `role` of `node` is needed. */
static void site_in(Dce *d, Node *node, uint32_t role, uint32_t k) {
    const Eqn *e = node->e;
    uint32_t operand = k;
    switch (prim_lower[e->prim]) {
    case LOWER_COND:
        operand = 1 + k;
        for (uint32_t i = 0; i < node->nsubs; i++) need_in(d, node->subs[i], k);
        break;
    case LOWER_SCAN:
        if (k >= count(e, K_num_consts)) {
            uint32_t carry = k - count(e, K_num_consts);
            if (carry < count(e, K_num_carry)) need_out(d, node->subs[0], carry);
        }
        break;
    case LOWER_WHILE: {
        uint32_t cn = count(e, K_cond_nconsts), n = role ? count(e, K_body_nconsts) : cn;
        if (k >= n) {
            need_carry(d, node, k - n);
            return;
        }
        operand = role ? cn + k : k;
        break;
    }
    default: break;
    }
    if (operand < e->in.n) need_val(d, e->in.at[operand]);
}

/* Result `k` of program number `role` of `node` is needed. */
static void site_out(Dce *d, Node *node, uint32_t role, uint32_t k) {
    const Eqn *e = node->e;
    switch (prim_lower[e->prim]) {
    case LOWER_COND:
        for (uint32_t i = 0; i < node->nsubs; i++) need_out(d, node->subs[i], k);
        break;
    case LOWER_SCAN:
        if (k < count(e, K_num_carry)) need_in(d, node->subs[0], count(e, K_num_consts) + k);
        break;
    case LOWER_WHILE:
        if (role == 1) need_carry(d, node, k);
        break;
    default: break;
    }
}

static void need_eqn(Dce *d, Node *node);

static void enter(Dce *d, Prog *p) {
    if (p->entered) return;
    p->entered = true;
    for (uint32_t i = 0; i < p->j->eqns.n && p->impure; i++)
        if (p->eqns[i].impure) need_eqn(d, &p->eqns[i]);
}

static void need_all(Dce *d, Prog *p) {
    enter(d, p);
    for (uint32_t i = 0; i < p->j->in.n; i++) need_in(d, p, i);
    for (uint32_t i = 0; i < p->j->out.n; i++) need_out(d, p, i);
}

static bool is_control(const Eqn *e) {
    Lower lower = prim_lower[e->prim];
    return lower == LOWER_COND || lower == LOWER_WHILE || lower == LOWER_SCAN || e->prim == P_jit;
}

static void need_params(Dce *d, const Eqn *e) {
    each(const Param, p, e->params) {
        if (p->value.kind == V_DIM) need_dim(d, p->value.dim);
        for (uint32_t i = 0; p->value.kind == V_DIMS && i < p->value.dims.n; i++) need_dim(d, p->value.dims.at[i]);
    }
}

static void need_eqn(Dce *d, Node *node) {
    const Eqn *e = node->e;
    if (node->live) return;
    node->live = true;
    need_params(d, e);
    if (!is_control(e)) {
        each(const Val, v, e->in) need_val(d, *v);
        for (uint32_t i = 0; i < node->nsubs; i++) need_all(d, node->subs[i]);
        return;
    }
    if (prim_lower[e->prim] == LOWER_COND && e->in.n) need_val(d, e->in.at[0]);
    if (prim_lower[e->prim] == LOWER_WHILE) need_out(d, node->subs[0], 0);
    for (uint32_t r = 0; r < node->nsubs; r++) {
        Prog *p = node->subs[r];
        enter(d, p);
        push(d->cx->arena, &p->sites, ((Site){node, r}));
        for (uint32_t i = 0; i < p->j->in.n; i++)
            if (p->in[i]) site_in(d, node, r, i);
        for (uint32_t i = 0; i < p->j->out.n; i++)
            if (p->out[i]) site_out(d, node, r, i);
    }
}

static void need_def(Dce *d, Val v) {
    Def *def = &d->defs[v];
    if (def->prog) need_in(d, def->prog, def->k);
    if (!def->eqn) return;
    need_eqn(d, def->eqn);
    if (!is_control(def->eqn->e)) return;
    bool loop = prim_lower[def->eqn->e->prim] == LOWER_WHILE;
    need_out(d, def->eqn->subs[loop ? 1 : 0], def->k);
}

static void run(Dce *d) {
    while (d->todo.n) {
        Need n = d->todo.at[--d->todo.n];
        if (n.kind == NEED_VAL) need_def(d, n.k);
        for (uint32_t i = 0; n.prog && i < n.prog->sites.n; i++) {
            Site s = n.prog->sites.at[i];
            if (n.kind == NEED_IN)
                site_in(d, s.node, s.role, n.k);
            else
                site_out(d, s.node, s.role, n.k);
        }
    }
}

/* ---- the remaining program */

static Jaxpr *rebuild(Dce *d, Prog *p, bool top);

static Vals keep(Arena *arena, Vals vs, const bool *kept) {
    Vals new = {arena_new(arena, Val, vs.n), 0};
    for (uint32_t i = 0; i < vs.n; i++)
        if (kept[i]) new.at[new.n++] = vs.at[i];
    return new;
}

static uint32_t kept_of(const bool *kept, uint32_t from, uint32_t n) {
    uint32_t k = 0;
    for (uint32_t i = 0; i < n; i++) k += kept[from + i];
    return k;
}

/* The operands of a call or control-flow equation that are kept. */
static bool *kept_operands(Dce *d, const Node *node) {
    const Eqn *e = node->e;
    bool *kept = arena_new(d->cx->arena, bool, e->in.n + 1);
    if (prim_lower[e->prim] == LOWER_COND) {
        kept[0] = true;
        memcpy(kept + 1, node->subs[0]->in, e->in.n - 1);
    } else if (prim_lower[e->prim] != LOWER_WHILE) {
        memcpy(kept, node->subs[0]->in, e->in.n);
    } else {
        uint32_t cn = count(e, K_cond_nconsts);
        memcpy(kept, node->subs[0]->in, cn);
        memcpy(kept + cn, node->subs[1]->in, e->in.n - cn);
    }
    return kept;
}

static Value kept_ints(Arena *arena, Value v, const bool *kept) {
    int64_t *at = arena_new(arena, int64_t, v.ints.n);
    uint32_t n = 0;
    for (uint32_t i = 0; i < v.ints.n; i++)
        if (kept[i]) at[n++] = v.ints.at[i];
    v.ints = (Ints){at, n};
    return v;
}

static Value value_int(Value v, uint32_t i) { return (Value){.kind = V_INT, .span = v.span, .i = i}; }

/* A parameter of such an equation, for the operands in `kept`. */
static Value cut_param(Dce *d, const Node *node, const Param *p, const bool *kept) {
    const Eqn *e = node->e;
    uint32_t cn = count(e, K_cond_nconsts), nc = count(e, K_num_consts);
    switch (p->key) {
    case K_num_consts: return value_int(p->value, kept_of(kept, 0, nc));
    case K_num_carry: return value_int(p->value, kept_of(kept, nc, count(e, K_num_carry)));
    case K_cond_nconsts: return value_int(p->value, kept_of(kept, 0, cn));
    case K_body_nconsts: return value_int(p->value, kept_of(kept, cn, count(e, K_body_nconsts)));
    case K_linear:
        if (p->value.kind != V_INTS || p->value.ints.n != e->in.n) return p->value;
        return kept_ints(d->cx->arena, p->value, kept);
    default: return p->value;
    }
}

static Jaxpr *rebuilt(void *user, const Jaxpr *j) {
    Dce *d = user;
    return rebuild(d, prog_of(d, j), false);
}

static Eqn eqn_left(Dce *d, const Node *node) {
    Arena *arena = d->cx->arena;
    const ValMap same = {.cx = d->cx};
    if (node->nsubs == 0) return *node->e;
    Eqn e = eqn_rewrite(&same, node->e, rebuilt, d);
    if (!is_control(node->e)) return e;
    bool *kept = kept_operands(d, node);
    Prog *body = node->subs[prim_lower[e.prim] == LOWER_WHILE ? 1 : 0];
    e.in = keep(arena, e.in, kept);
    e.out = keep(arena, e.out, body->out);
    if (e.in.n != node->e->in.n) e.in_at = NULL;
    Params params = {arena_new(arena, Param, e.params.n), e.params.n};
    for (uint32_t i = 0; i < e.params.n; i++) {
        params.at[i] = e.params.at[i];
        params.at[i].value = cut_param(d, node, &e.params.at[i], kept);
    }
    e.params = params;
    return e;
}

static Jaxpr *rebuild(Dce *d, Prog *p, bool top) {
    Ctx *cx = d->cx;
    if (p->new) return p->new;
    Eqns eqns = {0};
    for (uint32_t i = 0; i < p->j->eqns.n; i++)
        if (p->eqns[i].live) push(cx->arena, &eqns, eqn_left(d, &p->eqns[i]));
    Jaxpr *new = jaxpr_with(cx, p->j, eqns, keep(cx->arena, p->j->out, p->out));
    if (new->out.n != p->j->out.n) new->out_at = NULL;
    new->in = keep(cx->arena, p->j->in, p->in);
    bool *consts = arena_new(cx->arena, bool, p->j->consts.n);
    for (uint32_t i = 0; i < p->j->consts.n; i++) {
        Val c = p->j->consts.at[i];
        consts[i] = d->defs[c].live || (top && !val_info(cx, c)->data);
    }
    new->consts = keep(cx->arena, p->j->consts, consts);
    return p->new = new;
}

Jaxpr *pass_dce(Ctx *cx, const Jaxpr *j) {
    Dce d = {.cx = cx, .effects.cx = cx, .defs = arena_new(cx->arena, Def, cx->nvals), .table.arena = cx->arena};
    Prog *top = prog_of(&d, j);
    need_all(&d, top);
    run(&d);
    return rebuild(&d, top, true);
}
