/* The residuals of a loop: which values of an iteration the unknown loop gets, and how. What is there anyway costs
   nothing: constants and what depends on them alone, scanned operands, stacked results, a carry that counts. What is
   cheap to compute is computed again; of the rest the set is stacked that takes the least memory (cut.h). */
#include "../../control.h"
#include "cut.h"
#include "scan.h"

/* A value of the known iteration. */
typedef struct {
    Val v;
    uint32_t eqn; /* 1 + its position; 0: an input */
    Store store;
    bool invariant; /* depends on constants alone, and carries that never change; it can be computed before the loop */
    bool needed;    /* by the unknown program, or by what is computed again for it */
    bool inner;     /* an extent of its type is computed in the iteration: it cannot be stacked */
} Node;
typedef struct {
    Tx *tx;
    const Jaxpr *j; /* the known iteration, calls that give residuals inlined */
    const Eqn *e;
    Keep keep;
    uint32_t consts, carry; /* of its inputs */
    uint32_t captured;      /* of these constants: the first */
    uint32_t results;       /* of its results: carry and stacked ones */
    bool runs;              /* the loop has an iteration, whatever the inputs are */
    bool inner_extent;      /* has_inner_extent */
    bool varying_extent;    /* has_varying_extent */
    Intern numbers;         /* value → node */
    Node *nodes;
    uint32_t n;
    Effects effects;
    Search endless; /* eqn_runs_anywhere */
    Intern extents; /* that become constants */
    bool *again;    /* by equation: is it computed again? */
    struct {
        Val *at;
        uint32_t n, cap;
    } stacked, hoisted; /* added to the known results; computed before the loop */
} Residuals;

/* The node of a value; false: it is a literal or none of the iteration. */
static bool number_of(const Residuals *r, Val v, uint32_t *k) {
    return !val_info(r->tx->cx, v)->lit && intern_find(&r->numbers, &v, sizeof v, k);
}
static Node *node_of(const Residuals *r, Val v) {
    uint32_t k;
    return number_of(r, v, &k) ? &r->nodes[k] : NULL;
}
static bool invariant(const Residuals *r, Val v) {
    const Node *node = node_of(r, v);
    return !node || node->invariant;
}

/* ---- cost */
static int64_t extent_of(Dim d) {
    enum { USUAL_EXTENT = 64 };
    return dim_is_const(d) ? d : USUAL_EXTENT;
}
int64_t scan_bytes(const Ctx *cx, Val v) {
    const int64_t most = CUT_NEVER / 1024;
    const ArrayType *t = val_array(cx, v);
    int64_t bits = dtype_info[t->dtype].bits ? dtype_info[t->dtype].bits : 8;
    for (uint32_t d = 0; d < t->rank; d++) {
        int64_t n = extent_of(t->dims[d]);
        if (n > most / (bits + 1)) return most;
        bits *= n;
    }
    return (bits + 7) / 8;
}
static int64_t bytes_of_all(const Residuals *r, Vals vals) {
    int64_t sum = 0;
    each(const Val, v, vals)
        if (node_of(r, *v)) sum += scan_bytes(r->tx->cx, *v);
    return sum;
}
static bool may_repeat(Residuals *r, const Node *node) {
    if (!node->eqn) return false;
    const Eqn *e = &r->j->eqns.at[node->eqn - 1];
    bool inner = false;
    each(const Val, v, e->out) inner |= node_of(r, *v)->inner;
    return (inner || computed_again(r->tx, r->keep, e)) && !effect_kept(r->tx, e);
}

/* ---- what is there anyway */
static void add_node(Residuals *r, Val v, uint32_t eqn) {
    bool fresh;
    uint32_t k = intern(&r->numbers, &v, sizeof v, &fresh);
    if (fresh) r->nodes[k] = (Node){.v = v, .eqn = eqn};
    r->n = r->numbers.n;
}
static void put_store(Residuals *r, Val v, Store store) {
    Node *node = node_of(r, v);
    store.v = v;
    if (node && node->store.kind == STORE_NONE) node->store = store;
}
static void note_inner(void *user, Val extent) {
    Residuals *r = user;
    const Node *node = node_of(r, extent);
    r->inner_extent |= node && node->store.kind != STORE_CONST;
    r->varying_extent |= node && !node->invariant;
}
/* Is an extent of its type a value of the iteration other than a constant? */
static bool has_inner_extent(Residuals *r, Val v) {
    r->inner_extent = false;
    type_extents(r->tx->cx, val_type(r->tx->cx, v), note_inner, r);
    return r->inner_extent;
}
/* Does an extent of the equation or of its results depend on more than constants? */
static bool has_varying_extent(Residuals *r, const Eqn *e) {
    r->varying_extent = false;
    eqn_extents(r->tx->cx, e, note_inner, r);
    each(const Val, v, e->out) type_extents(r->tx->cx, val_type(r->tx->cx, *v), note_inner, r);
    return r->varying_extent;
}
/* An invariant that only repeats constants is repeated in the loop: memory is slower. */
static bool worth_hoisting(const Residuals *r, const Eqn *e) {
    return prim_lower[e->prim] != LOWER_INDEX || bytes_of_all(r, e->out) <= bytes_of_all(r, e->in);
}
static void find_nodes(Residuals *r) {
    const Jaxpr *j = r->j;
    uint32_t most = j->in.n;
    each(const Eqn, e, j->eqns) most += e->out.n;
    r->nodes = arena_new(r->tx->cx->arena, Node, most + 1);
    for (uint32_t i = 0; i < j->in.n; i++) add_node(r, j->in.at[i], 0);
    for (uint32_t i = 0; i < j->eqns.n; i++) {
        const Eqn *e = &j->eqns.at[i];
        each(const Val, v, e->out) add_node(r, *v, i + 1);
    }
    for (uint32_t i = 0; i < r->consts; i++) {
        put_store(r, j->in.at[i], (Store){.kind = STORE_CONST, .at = i});
        node_of(r, j->in.at[i])->invariant = true;
    }
    for (uint32_t k = 0; k < r->carry; k++) {
        Val in = j->in.at[r->consts + k];
        if (j->out.at[k] != in) continue;
        put_store(r, in, (Store){.kind = STORE_KEPT, .at = k});
        node_of(r, in)->invariant = true;
    }
    for (uint32_t i = r->consts + r->carry; i < j->in.n; i++)
        put_store(r, j->in.at[i], (Store){.kind = STORE_SCANNED, .at = i - r->consts - r->carry});
    each(const Eqn, e, j->eqns) {
        bool all = !eqn_has_effects(&r->effects, e) && !has_varying_extent(r, e);
        all = all && (r->runs || eqn_runs_anywhere(&r->endless, e));
        each(const Val, v, e->in) all &= invariant(r, *v);
        each(const Val, v, e->out) {
            Node *node = node_of(r, *v);
            node->invariant = all, node->inner = has_inner_extent(r, *v);
            if (all && worth_hoisting(r, e)) put_store(r, *v, (Store){.kind = STORE_HOISTED});
        }
    }
    for (uint32_t i = r->carry; i < r->results; i++)
        put_store(r, j->out.at[i], (Store){.kind = STORE_RESULT, .at = i - r->carry});
}
static const Eqn *defined_by(const Residuals *r, Val v) {
    const Node *node = node_of(r, v);
    return node && node->eqn ? &r->j->eqns.at[node->eqn - 1] : NULL;
}
/* Is carry k an integer to which each iteration adds the same? */
static bool is_counter(const Residuals *r, uint32_t k, Store *store) {
    const Val in = r->j->in.at[r->consts + k], out = r->j->out.at[k];
    const ArrayType *t = val_array(r->tx->cx, in);
    const Eqn *e = defined_by(r, out);
    DtypeKind kind = dtype_info[t->dtype].kind;
    if (!e || e->prim != P_add || t->rank || (kind != DK_SINT && kind != DK_UINT)) return false;
    uint32_t at = e->in.at[0] == in ? 1 : 0;
    Val step = e->in.at[at];
    if (e->in.at[1 - at] != in || step == in) return false;
    const Node *node = node_of(r, step);
    *store = (Store){.kind = STORE_INDEX, .at = k, .step = step};
    if (!node) return val_info(r->tx->cx, step)->lit != NULL;
    store->step_const = true, store->from = node->store.at - r->captured;
    return node->store.kind == STORE_CONST && node->store.at >= r->captured;
}
/* Carries that count; carries that are stacked after the iteration, so that they are before it one place further. */
static void find_carries(Residuals *r) {
    for (uint32_t k = 0; k < r->carry; k++) {
        Val in = r->j->in.at[r->consts + k], out = r->j->out.at[k];
        const Node *after = node_of(r, out);
        Store store;
        if (is_counter(r, k, &store))
            put_store(r, in, store);
        else if (after && after->store.kind == STORE_RESULT)
            put_store(r, in, (Store){.kind = STORE_BEFORE, .at = k, .from = after->store.at});
    }
}
/* Stacks a value of the known iteration. */
static void stack(Residuals *r, Node *node) {
    node->store = (Store){.kind = STORE_RESULT, .at = r->results - r->carry + r->stacked.n, .v = node->v};
    push(r->tx->cx->arena, &r->stacked, node->v);
}
/* Carries that are needed as they are before the iteration must be stacked, and are then there after it too. */
static void stack_carries(Residuals *r) {
    for (uint32_t k = 0; k < r->carry; k++) {
        Val in = r->j->in.at[r->consts + k], out = r->j->out.at[k];
        Node *before = node_of(r, in);
        if (!before->needed || before->store.kind != STORE_NONE) continue;
        stack(r, before);
        put_store(r, out, (Store){.kind = STORE_AFTER, .at = k, .from = before->store.at});
    }
}

/* ---- what is stacked */
/* The value, and the scalars that are its extents. */
static void need(void *user, Val v) {
    Residuals *r = user;
    Node *node = node_of(r, v);
    if (!node || node->needed) return;
    node->needed = true;
    type_extents(r->tx->cx, val_type(r->tx->cx, v), need, r);
}
/* What may be stored or computed again. */
typedef struct {
    Residuals *r;
    Cut cut;
    bool *reached; /* by node */
    uint32_t user; /* the node that is computed */
} Network;
static void note_use(void *user, Val v) {
    Network *n = user;
    uint32_t from;
    if (!number_of(n->r, v, &from)) return;
    n->reached[from] = true;
    if (n->r->nodes[from].store.kind == STORE_NONE) cut_uses(&n->cut, n->user, from);
}
/* The network of the values that may be stored or computed again for those of `wanted`. */
static Cut network(Residuals *r, const bool *wanted) {
    Ctx *cx = r->tx->cx;
    Network n = {.r = r, .cut = cut_new(cx->arena, r->n), .reached = arena_new(cx->arena, bool, r->n + 1)};
    memcpy(n.reached, wanted, r->n * sizeof *n.reached);
    for (uint32_t k = r->n; k-- > 0;) {
        Node *node = &r->nodes[k];
        if (!n.reached[k] || node->store.kind != STORE_NONE) continue;
        bool repeated = may_repeat(r, node), stored = !node->inner && !(repeated && r->keep == KEEP_DOTS);
        cut_cost(&n.cut, k, stored ? scan_bytes(cx, node->v) : CUT_NEVER);
        if (wanted[k]) cut_needed(&n.cut, k);
        n.user = k;
        if (repeated)
            eqn_takes(cx, &r->j->eqns.at[node->eqn - 1], note_use, &n);
        else
            cut_source(&n.cut, k);
    }
    return n.cut;
}
static void choose(Residuals *r) {
    bool *wanted = arena_new(r->tx->cx->arena, bool, r->n + 1), *stored = arena_new(r->tx->cx->arena, bool, r->n + 1);
    for (uint32_t k = 0; k < r->n; k++) wanted[k] = r->nodes[k].needed;
    Cut c = network(r, wanted);
    const bool *set = cut_least(&c, stored) ? stored : wanted;
    for (uint32_t k = 0; k < r->n; k++)
        if (set[k] && r->nodes[k].store.kind == STORE_NONE && !r->nodes[k].inner) stack(r, &r->nodes[k]);
}
/* Its result can neither be stored nor computed again. */
static bool once_only(const Residuals *r, const Eqn *e) {
    return tx_error(r->tx, e->span,
                    "the reverse-mode derivative of a loop around this would run %s, which has effects, twice; see "
                    "--tape=bound",
                    prim_name[effect_kept(r->tx, e)->prim]);
}
/* Which equations are computed again, and so which values are needed. The cut stores what cannot be, but if there was
   none that could be found: that is stored here. */
static bool find_repeated(Residuals *r) {
    Ctx *cx = r->tx->cx;
    r->again = arena_new(cx->arena, bool, r->j->eqns.n + 1);
    for (uint32_t k = r->n; k-- > 0;) {
        Node *node = &r->nodes[k];
        if (!node->needed || node->store.kind != STORE_NONE) continue;
        if (may_repeat(r, node)) {
            r->again[node->eqn - 1] = true;
            eqn_takes(cx, &r->j->eqns.at[node->eqn - 1], need, r);
        } else if (node->inner) {
            return once_only(r, &r->j->eqns.at[node->eqn - 1]);
        } else {
            stack(r, node);
        }
    }
    return true;
}

/* ---- the programs */
void b_copied(Builder *b, ValMap *map, const Eqn *old) {
    Eqn e = eqn_rewrite(map, old, NULL, NULL);
    e.out = (Vals){arena_new(b->cx->arena, Val, old->out.n + 1), old->out.n};
    for (uint32_t i = 0; i < old->out.n; i++) {
        Val v = old->out.at[i];
        e.out.at[i] = b_input_like(b, map, v);
    }
    push(b->cx->arena, &b->eqns, e);
}
Val b_input_like(Builder *b, ValMap *map, Val like) {
    Val v = val_new(b->cx, type_rewrite(map, val_type(b->cx, like)), val_info(b->cx, like)->span);
    val_info(b->cx, v)->name = val_info(b->cx, like)->name;
    valmap_put(map, like, v);
    return v;
}
static Inner hoisted_program(Residuals *r, Builder *b) {
    ValMap map = {.cx = r->tx->cx, .sparse = true};
    bool *live = arena_new(b->cx->arena, bool, r->j->eqns.n + 1);
    if (!r->hoisted.n) return (Inner){0};
    Intern wanted = {.arena = b->cx->arena};
    each(const Val, v, r->hoisted) intern(&wanted, v, sizeof *v, NULL);
    for (uint32_t i = r->j->eqns.n; i-- > 0;) {
        const Eqn *e = &r->j->eqns.at[i];
        each(const Val, v, e->out) live[i] |= is_among(&wanted, *v);
        for (uint32_t k = 0; live[i] && k < e->in.n; k++) intern(&wanted, &e->in.at[k], sizeof(Val), NULL);
    }
    Inner h = b_inner(b, 0, NULL);
    h.in = vals_new(b->cx->arena, r->consts + r->carry);
    for (uint32_t i = 0; i < r->consts + r->carry; i++) vals_push(&h.in, b_input_like(b, &map, r->j->in.at[i]));
    for (uint32_t i = 0; i < r->j->eqns.n; i++)
        if (live[i]) b_copied(b, &map, &r->j->eqns.at[i]);
    Vals out = vals_rewrite(&map, (Vals){r->hoisted.at, r->hoisted.n});
    b_inner_end(b, &h, out.n, out.at);
    return h;
}
/* The known iteration, its residuals replaced by the stacks. */
static Inner known_program(const Residuals *r, const Inner *known) {
    Arena *arena = r->tx->cx->arena;
    Inner i = *known;
    Vals out = vals_joined(arena, 2, (Vals[]){vals_part(r->j->out, 0, r->results), {r->stacked.at, r->stacked.n}});
    i.j = jaxpr_with(r->tx->cx, r->j, r->j->eqns, out);
    i.in = vals_part(r->j->in, r->captured, r->j->in.n - r->captured);
    return i;
}
/* The stores that the unknown iteration takes: constants first. */
static void list_stores(Residuals *r, MadeScan *m) {
    m->stores = arena_new(r->tx->cx->arena, Store, r->n + 1);
    for (int scanned = 0; scanned < 2; scanned++)
        for (uint32_t k = 0; k < r->n; k++) {
            Store *s = &r->nodes[k].store;
            bool constant = s->kind <= STORE_HOISTED;
            if (!r->nodes[k].needed || s->kind == STORE_NONE || constant == (scanned == 1)) continue;
            if (s->kind == STORE_HOISTED) {
                s->at = r->hoisted.n;
                push(r->tx->cx->arena, &r->hoisted, s->v);
            }
            m->stores[m->nstores++] = *s;
        }
}
/* `split`: its unknown program takes residuals[…] of the known one, as values of r->j. */
static Inner unknown_program(Residuals *r, Builder *b, const MadeScan *m, const MadeSplit *split, const Val *residuals,
                             const uint32_t *groups) {
    Arena *arena = b->cx->arena;
    ValMap map = {.cx = b->cx, .sparse = true};
    const Jaxpr *u = split->unknown.j;
    Vals part[4], in = {arena_new(arena, Val, u->in.n + 1), u->in.n};
    uint32_t at = split->nresiduals, s = 0;
    Inner turn = b_inner(b, 0, NULL);
    part[0] = vals_new(arena, m->nstores), part[2] = vals_new(arena, m->nstores);
    for (; s < m->nstores && m->stores[s].kind <= STORE_HOISTED; s++)
        vals_push(&part[0], b_input_like(b, &map, m->stores[s].v));
    for (uint32_t k = s; k < m->nstores; k++) vals_push(&part[2], b_input_like(b, &map, m->stores[k].v));
    for (uint32_t i = 0; i < r->j->eqns.n; i++)
        if (r->again[i]) b_copied_pure(r->tx, b, &map, &r->j->eqns.at[i]);
    for (uint32_t i = 0; i < split->nresiduals; i++) {
        in.at[i] = valmap_get(&map, residuals[i]);
        valmap_put(&map, u->in.at[i], in.at[i]);
    }
    for (uint32_t i = at; i < u->in.n; i++) in.at[i] = b_input_like(b, &map, u->in.at[i]);
    Vals unknown = vals_part(in, at, in.n - at);
    Vals consts = vals_part(unknown, 0, groups[0] + groups[1]), xs = vals_part(unknown, consts.n, unknown.n - consts.n);
    turn.in = vals_joined(arena, 4, (Vals[]){part[0], consts, part[2], xs});
    Vals out = b_call(b, u, in.n, in.at);
    b_inner_end(b, &turn, out.n, out.at);
    return turn;
}

/* ---- calls that give residuals become their bodies, if they are short and have no rules of their own, which further
   derivatives take */
static bool gives_residual(Ctx *cx, const Eqn *e, const Intern *residuals) {
    bool gives = false;
    each(const Val, v, e->out) gives |= is_among(residuals, *v);
    return gives;
}
const Jaxpr *program_copied(Ctx *cx, const Jaxpr *j, ValMap *map, Val *residuals, uint32_t n) {
    Builder b = {.cx = cx};
    Vals in = vals_new(cx->arena, j->in.n);
    each(const Val, v, j->in) vals_push(&in, b_input_like(&b, map, *v));
    each(const Eqn, e, j->eqns) b_copied(&b, map, e);
    Jaxpr *copy = jaxpr_with(cx, j, b.eqns, vals_rewrite(map, j->out));
    copy->in = in;
    for (uint32_t i = 0; i < n; i++) residuals[i] = valmap_get(map, residuals[i]);
    return copy;
}
const Jaxpr *calls_opened(Ctx *cx, const Jaxpr *j, ValMap *map, Val *residuals, uint32_t n) {
    enum { MOST_EQUATIONS = 1000, MOST_ROUNDS = 16 };
    uint32_t room = MOST_EQUATIONS;
    for (uint32_t round = 0; round < MOST_ROUNDS; round++) {
        Intern wanted = {.arena = cx->arena};
        Eqns eqns = {0};
        bool some = false;
        for (uint32_t i = 0; i < n; i++) intern(&wanted, &residuals[i], sizeof(Val), NULL);
        each(const Eqn, e, j->eqns) {
            Vals in;
            bool opens = gives_residual(cx, e, &wanted) && !has_own_rule(e->prim);
            const Jaxpr *body = opens ? eqn_body(cx->arena, e, &in) : NULL;
            if (!body || body->consts.n || body->eqns.n > room) {
                push(cx->arena, &eqns, eqn_rewrite(map, e, NULL, NULL));
                continue;
            }
            some = true, room -= body->eqns.n;
            if (!jaxpr_splice_call(map, &eqns, body, vals_rewrite(map, in), e)) return NULL;
        }
        if (!some) break;
        j = jaxpr_with(cx, j, eqns, vals_rewrite(map, j->out));
        for (uint32_t i = 0; i < n; i++) residuals[i] = valmap_get(map, residuals[i]);
    }
    return j;
}

/* ---- extents that are computed in the iteration, the same in each, become constants computed before the loop, so that
   what has them can be stacked */
static void note_extent(void *user, Val v) {
    Residuals *r = user;
    const Eqn *e = defined_by(r, v);
    if (e && e->out.n == 1 && invariant(r, v) && !is_among(&r->extents, v)) {
        intern(&r->extents, &v, sizeof v, NULL);
        push(r->tx->cx->arena, &r->hoisted, v);
    }
}
static void fix_extents(Residuals *r, Builder *own, MadeScan *m) {
    Ctx *cx = r->tx->cx;
    find_nodes(r);
    r->extents.arena = cx->arena;
    each(const Eqn, e, r->j->eqns) {
        eqn_extents(cx, e, note_extent, r);
        each(const Val, v, e->out) type_extents(cx, val_type(cx, *v), note_extent, r);
    }
    if (!r->hoisted.n) return;
    m->extents = hoisted_program(r, own);
    Vals in = r->j->in, extents = {r->hoisted.at, r->hoisted.n};
    Eqns eqns = eqns_for(cx, r->j);
    each(const Eqn, e, r->j->eqns)
        if (e->out.n != 1 || !is_among(&r->extents, e->out.at[0])) push(cx->arena, &eqns, *e);
    Jaxpr *j = jaxpr_with(cx, r->j, eqns, r->j->out);
    j->in = vals_joined(
        cx->arena, 3, (Vals[]){vals_part(in, 0, r->captured), extents, vals_part(in, r->captured, in.n - r->captured)});
    r->j = j, r->consts += extents.n, r->n = 0;
    r->numbers = (Intern){.arena = cx->arena};
    memset(&r->hoisted, 0, sizeof r->hoisted);
    find_nodes(r);
}

/* ---- the loop */
static uint32_t count(Bits b, uint32_t from, uint32_t to, bool which) {
    uint32_t n = 0;
    for (uint32_t i = from; i < to; i++) n += b.at[i] == which;
    return n;
}
static const MadeScan *make(Tx *tx, Builder *b, const Eqn *e, const MadeSplit *split, Bits unknown) {
    Ctx *cx = tx->cx;
    const Scan s = scan_of(e);
    uint32_t first = s.consts.n, end = first + s.carry.n, n = split->nresiduals;
    MadeScan *m = arena_new(cx->arena, MadeScan, 1);
    Val *residuals = arena_new(cx->arena, Val, n + 1);
    ValMap opened = {.cx = cx, .sparse = true};
    for (uint32_t i = 0; i < n; i++) residuals[i] = split->residuals[i].value;
    Residuals r = {.tx = tx,
                   .e = e,
                   .keep = keeps(tx, s.body),
                   .captured = split->known.captured.n,
                   .runs = scan_runs(cx, &s),
                   .effects.cx = cx,
                   .endless.cx = cx};
    r.numbers.arena = cx->arena;
    r.j = calls_opened(cx, program_copied(cx, split->known.j, &opened, residuals, n), &opened, residuals, n);
    if (!r.j) return NULL;
    r.consts = r.captured + count(unknown, 0, first, false), r.carry = count(unknown, first, end, false);
    r.results = r.j->out.n - split->nmore;
    Builder own = {.cx = cx, .mesh = b->mesh, .span = e->span};
    fix_extents(&r, &own, m);
    for (uint32_t i = 0; i < n; i++) need(&r, residuals[i]);
    find_carries(&r);
    stack_carries(&r);
    choose(&r);
    if (!find_repeated(&r)) return NULL;
    list_stores(&r, m);
    uint32_t groups[] = {count(unknown, 0, first, true), count(unknown, first, end, true)};
    m->known = known_program(&r, &split->known);
    m->hoist = hoisted_program(&r, &own);
    m->unknown = unknown_program(&r, &own, m, split, residuals, groups);
    m->unknown_in = unknown, m->out = split->out;
    return own.failed ? NULL : m;
}
const MadeSplit *split_turn(Tx *tx, Builder *b, const Jaxpr *body, Bits unknown, Bits force) {
    bool outer = tx->in_loop;
    tx->in_loop = true;
    const MadeSplit *split = made_split(tx, b, body, unknown, force);
    tx->in_loop = outer;
    return split;
}
const MadeScan *made_scan(Tx *tx, Builder *b, const Eqn *e, Bits unknown) {
    Arena *arena = tx->cx->arena;
    const Scan s = scan_of(e);
    bool *force = arena_new(arena, bool, e->out.n + 1);
    for (uint32_t k = 0; k < s.carry.n; k++) force[k] = unknown.at[s.consts.n + k];
    const MadeSplit *split = split_turn(tx, b, s.body, unknown, (Bits){force, e->out.n});
    if (!split) return NULL;
    const uintptr_t key[] = {(uintptr_t)split, s.consts.n, s.carry.n, scan_runs(tx->cx, &s), keeps(tx, s.body)};
    const void **slot = loop_slot(tx, key, sizeof key);
    if (!*slot) *slot = make(tx, b, e, split, unknown);
    tx->failed |= !*slot;
    return *slot;
}

/* ---- arrays of an iteration's values */
Val b_shifted(Builder *b, Val stack, Val v, bool up) {
    enum { TIME };
    if (b_failed(b, stack) || b_failed(b, v)) return VAL_FAILED;
    const ArrayType t = *b_type(b, stack);
    Val row = b_expand_dims(b, v, 1, (int64_t[]){TIME});
    Val all = b_concatenate(b, 2, up ? (Val[]){row, stack} : (Val[]){stack, row}, TIME);
    return up ? b_slice_axis(b, all, TIME, 0, t.dims[TIME])
              : b_slice_axis(b, all, TIME, 1, dim_add(b_types(b), t.dims[TIME], 1));
}
Val b_progression(Builder *b, Val first, Val step, Dim n, bool backwards) {
    if (b_failed(b, first) || b_failed(b, step)) return VAL_FAILED;
    Dtype type = b_type(b, first)->dtype;
    Val k = b_iota(b, type, 1, &n, 0);
    if (backwards) k = b_rev(b, k, 1, (int64_t[]){0});
    return b_add(b, b_full(b, first, 1, &n), b_mul(b, b_full(b, step, 1, &n), k));
}
