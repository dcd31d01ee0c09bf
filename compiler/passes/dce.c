/* Drops what no result needs: equations, and results, carries and operands of calls, loops and branches.

   One worklist over the whole program, sub-programs included, so that the time is linear: a needed value makes its
   equation needed, and that its operands; a result of a scan makes the result of its body needed, an input of the body
   the operand. The needs of several uses of one body are united, so that the body stays shared. A carry is needed if
   its result or its input is: `{ c ← c + 1; d ← d + c } in d` needs c although no result of the loop does. */
#include "rewrite.h"
#include "../control.h"

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
    While w = while_of(e);
    if (w.cond) subs.at[0] = w.cond, subs.at[1] = w.body;
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

/* And the scalars that are its extents. */
static void need_val(void *user, Val v) {
    Dce *d = user;
    if (d->defs[v].live) return;
    d->defs[v].live = true;
    need(d, NEED_VAL, NULL, v);
    type_extents(d->cx, val_type(d->cx, v), need_val, d);
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

/* Carry `c` of a while is needed: its operand, and its place in both programs. */
static void need_carry(Dce *d, Node *node, uint32_t c) {
    While w = while_of(node->e);
    need_out(d, node->subs[1], c);
    need_in(d, node->subs[0], w.cond_consts.n + c);
    need_in(d, node->subs[1], w.body_consts.n + c);
    need_val(d, w.carry.at[c]);
}

/* Input `k` of program number `role` of `node` is needed. */
static void site_in(Dce *d, Node *node, uint32_t role, uint32_t k) {
    const Eqn *e = node->e;
    switch (prim_lower[e->prim]) {
    case LOWER_COND:
        for (uint32_t i = 0; i < node->nsubs; i++) need_in(d, node->subs[i], k);
        need_val(d, cond_of(e).in.at[k]);
        break;
    case LOWER_WHILE: {
        While w = while_of(e);
        Vals consts = role ? w.body_consts : w.cond_consts;
        if (k < consts.n)
            need_val(d, consts.at[k]);
        else
            need_carry(d, node, k - consts.n);
        break;
    }
    case LOWER_SCAN: {
        Scan s = scan_of(e);
        if (k >= s.consts.n && k < s.consts.n + s.carry.n) need_out(d, node->subs[0], k - s.consts.n);
        need_val(d, e->in.at[k]);
        break;
    }
    default: need_val(d, e->in.at[k]);
    }
}

/* Result `k` of program number `role` of `node` is needed. */
static void site_out(Dce *d, Node *node, uint32_t role, uint32_t k) {
    const Eqn *e = node->e;
    switch (prim_lower[e->prim]) {
    case LOWER_COND:
        for (uint32_t i = 0; i < node->nsubs; i++) need_out(d, node->subs[i], k);
        break;
    case LOWER_SCAN: {
        Scan s = scan_of(e);
        if (k < s.carry.n) need_in(d, node->subs[0], s.consts.n + k);
        break;
    }
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

/* The parameters of shard_map and pmap that have an entry for each operand, and for each result. */
static const ParamKey by_operand[] = {K_in_specs, K_in_axes, K_mapped_invars}, by_result[] = {K_out_specs, K_out_axes};
enum { NBY_OPERAND = sizeof by_operand / sizeof *by_operand, NBY_RESULT = sizeof by_result / sizeof *by_result };
/* Has the equation such lists, one of them at least, and all of this length? */
static bool lists_all(const Eqn *e, const ParamKey *keys, unsigned nkeys, uint32_t n) {
    bool some = false;
    for (unsigned i = 0; i < nkeys; i++) {
        const Param *p = param_find(e, keys[i]);
        if (p && (p->value.kind != V_LIST || p->value.list.n != n)) return false;
        some |= p != NULL;
    }
    return some;
}
/* Is it a program for several devices whose operands and results can be cut? */
static bool devices_cut(const Eqn *e) {
    bool known = e->prim == P_shard_map || (e->prim == P_xla_pmap && param_has(e, K_axis_size));
    return known && lists_all(e, by_operand, NBY_OPERAND, e->in.n) && lists_all(e, by_result, NBY_RESULT, e->out.n);
}
/* Is it control flow or a call, of which operands and results are cut? Rules of custom calls, and the names of others,
   stand for a signature: these keep all. */
static bool is_cut(const Eqn *e) { return is_control(e->prim) || prim_is(e->prim, PLAIN_CALL) || devices_cut(e); }

static void need_eqn(Dce *d, Node *node) {
    const Eqn *e = node->e;
    if (node->live) return;
    node->live = true;
    eqn_extents(d->cx, e, need_val, d);
    if (!is_cut(e)) {
        each(const Val, v, e->in) need_val(d, *v);
        for (uint32_t i = 0; i < node->nsubs; i++) need_all(d, node->subs[i]);
        return;
    }
    const Vals index = cond_of(e).index;
    each(const Val, v, index) need_val(d, *v);
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
    if (!is_cut(def->eqn->e)) return;
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

/* What is kept of a call or a control-flow equation: by operand, by result. */
typedef struct {
    Arena *arena;
    const Eqn *e;
    bool *in, *out;
} Kept;
static void keep_inputs(Kept *k, Vals operands, const bool *inputs) {
    if (operands.n) memcpy(k->in + (operands.at - k->e->in.at), inputs, operands.n * sizeof *inputs);
}
static Kept kept_of(Dce *d, const Node *node) {
    const Eqn *e = node->e;
    Kept k = {d->cx->arena, e, arena_new(d->cx->arena, bool, e->in.n + 1), node->subs[0]->out};
    const Cond c = cond_of(e);
    const While w = while_of(e);
    if (c.branches.n) {
        memset(k.in, true, c.index.n);
        keep_inputs(&k, c.in, node->subs[0]->in);
    } else if (w.body) {
        keep_inputs(&k, w.cond_consts, node->subs[0]->in);
        keep_inputs(&k, w.body_consts, node->subs[1]->in);
        keep_inputs(&k, w.carry, node->subs[1]->in + w.body_consts.n);
        k.out = node->subs[1]->out;
    } else {
        keep_inputs(&k, e->in, node->subs[0]->in);
    }
    return k;
}
static Vals kept_operands(void *user, Vals slice) {
    const Kept *k = user;
    return part_where(k->arena, slice, k->e->in.at, k->in, true);
}
static Vals kept_results(void *user, Vals slice) {
    const Kept *k = user;
    return part_where(k->arena, slice, k->e->out.at, k->out, true);
}

static Jaxpr *rebuilt(void *user, const Jaxpr *j) {
    Dce *d = user;
    return rebuild(d, prog_of(d, j), false);
}

/* The entries of the list that are kept, if it is one of these. */
static void cut_list(Arena *arena, Param *p, const ParamKey *keys, unsigned nkeys, const bool *kept) {
    bool lists = false;
    for (unsigned i = 0; i < nkeys; i++) lists |= p->key == keys[i];
    if (!lists) return;
    Value all = p->value;
    p->value.list.at = arena_new(arena, Value, all.list.n + 1), p->value.list.n = 0;
    for (uint32_t i = 0; i < all.list.n; i++)
        if (kept[i]) p->value.list.at[p->value.list.n++] = all.list.at[i];
}
static void cut_lists(const Kept *k, Eqn *e) {
    Params all = e->params;
    e->params = (Params){arena_new(k->arena, Param, all.n + 1), 0};
    each(const Param, p, all) {
        Param *to = &e->params.at[e->params.n];
        if (p->key == K_global_arg_shapes) continue; /* for each operand, but only information */
        *to = *p;
        cut_list(k->arena, to, by_operand, NBY_OPERAND, k->in);
        cut_list(k->arena, to, by_result, NBY_RESULT, k->out);
        e->params.n++;
    }
}
static Eqn eqn_left(Dce *d, const Node *node) {
    Arena *arena = d->cx->arena;
    const ValMap same = {.cx = d->cx};
    if (node->nsubs == 0) return *node->e;
    Eqn e = eqn_rewrite(&same, node->e, rebuilt, d);
    if (!is_cut(node->e)) return e;
    Kept kept = kept_of(d, node);
    Eqn left = control_map(arena, node->e, &e, kept_operands, kept_results, &kept);
    if (devices_cut(node->e)) cut_lists(&kept, &left);
    return left;
}

static Jaxpr *rebuild(Dce *d, Prog *p, bool top) {
    Ctx *cx = d->cx;
    if (p->new) return p->new;
    Eqns eqns = eqns_for(cx, p->j);
    for (uint32_t i = 0; i < p->j->eqns.n; i++)
        if (p->eqns[i].live) push(cx->arena, &eqns, eqn_left(d, &p->eqns[i]));
    Jaxpr *new = jaxpr_with(cx, p->j, eqns, vals_where(cx->arena, p->j->out, p->out, true));
    if (new->out.n != p->j->out.n) new->out_at = NULL, new->out_is = NULL;
    new->in = vals_where(cx->arena, p->j->in, p->in, true);
    bool *consts = arena_new(cx->arena, bool, p->j->consts.n);
    for (uint32_t i = 0; i < p->j->consts.n; i++) {
        Val c = p->j->consts.at[i];
        consts[i] = d->defs[c].live || (top && !val_info(cx, c)->data);
    }
    new->consts = vals_where(cx->arena, p->j->consts, consts, true);
    return p->new = new;
}

Jaxpr *pass_dce(Ctx *cx, const Jaxpr *j) {
    Dce d = {.cx = cx, .effects.cx = cx, .defs = arena_new(cx->arena, Def, cx->nvals), .table.arena = cx->arena};
    Prog *top = prog_of(&d, j);
    need_all(&d, top);
    run(&d);
    return rebuild(&d, top, true);
}
