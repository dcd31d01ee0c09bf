/* split: divides a program into what is computed from known inputs and the rest. */
#include "tx.h"

bool tx_marked(const Tx *tx, Val read) {
    return !val_info(tx->cx, read)->lit && read < tx->marked.n && tx->marked.at[read];
}
void tx_mark(Tx *tx, Val read, bool mark) {
    while (read >= tx->marked.n) push(tx->cx->arena, &tx->marked, false);
    tx->marked.at[read] = mark;
}

/* An equation with an unknown operand. */
static void split_eqn(Tx *tx, Builder *b, Builder *u, const Eqn *e) {
    Arena *arena = tx->cx->arena;
    SplitRule *rule = split_rule(e->prim);
    if (!rule) {
        tx_copy(tx, u, e);
        each(const Val, v, e->out) tx_mark(tx, *v, true);
        return;
    }
    Eqn here = eqn_rewrite(&tx->map, e, NULL, NULL);
    bool *unknown = arena_new(arena, bool, e->in.n + e->out.n + 1);
    SplitEqn s = {.tx = tx, .b = b, .u = u, .e = &here, .unknown = unknown, .out_unknown = unknown + e->in.n};
    s.out = arena_new(arena, Val, e->out.n + 1);
    for (uint32_t i = 0; i < e->in.n; i++) unknown[i] = tx_marked(tx, e->in.at[i]);
    tx->failed |= !rule(&s) || b->failed || u->failed;
    for (uint32_t i = 0; i < e->out.n && !tx->failed; i++) {
        valmap_put(&tx->map, e->out.at[i], s.out[i]);
        tx_mark(tx, e->out.at[i], s.out_unknown[i]);
    }
}
void split_eqns(Tx *tx, Builder *b, Builder *u, Eqns eqns) {
    each(const Eqn, e, eqns) {
        bool some = false;
        if (tx->failed) return;
        each(const Val, v, e->in) some |= tx_marked(tx, *v);
        b->span = u->span = e->span, b->whole = u->whole = e->whole;
        if (some && !e->out.n) { /* in a custom rule: it would have an effect in the linear program */
            tx_error(tx, e->span, "%s of a tangent has no transpose", prim_name[e->prim]);
        } else if (some) {
            split_eqn(tx, b, u, e);
        } else {
            tx_copy(tx, b, e);
            each(const Val, v, e->out) tx_mark(tx, *v, false);
        }
    }
}

/* ---- arrays of one literal, also as a varying one, and iota: the unknown program computes them itself, so that they
   are no residuals */
static bool is_free(const Ctx *cx, const Eqn *e) {
    bool is = e->prim == P_broadcast_in_dim || e->prim == P_iota || (e->prim == P_pvary && e->in.n == 1);
    each(const Val, v, e->in) is &= val_info(cx, *v)->lit != NULL;
    return is;
}
typedef struct {
    Ctx *cx;
    ValMap copies;
    Intern free; /* results of such equations of the known program */
    struct {
        const Eqn **at;
        uint32_t n, cap;
    } eqns;      /* by number of their result */
    Eqns copied; /* those that are used */
} Free;
static void use(Free *f, Val v) {
    uint32_t k;
    if (!intern_find(&f->free, &v, sizeof v, &k) || valmap_get(&f->copies, v) != v) return;
    Eqn e = *f->eqns.at[k];
    Span span = val_info(f->cx, v)->span;
    Val own = val_new(f->cx, val_type(f->cx, v), span);
    e.out = vals_joined(f->cx->arena, 1, (Vals[]){{&own, 1}});
    valmap_put(&f->copies, v, own);
    push(f->cx->arena, &f->copied, e);
}
/* `known`: the equations of the known program; `results` of the other one. */
static void repeat_free(Ctx *cx, Eqns known, Builder *u, Val *results, uint32_t n) {
    Free f = {.cx = cx, .copies = {.cx = cx, .sparse = true}, .free.arena = cx->arena};
    each(const Eqn, e, known) {
        bool fresh;
        if (!is_free(cx, e)) continue;
        intern(&f.free, e->out.at, sizeof *e->out.at, &fresh);
        push(cx->arena, &f.eqns, e);
    }
    if (!f.eqns.n) return;
    each(const Eqn, e, u->eqns)
        each(const Val, v, e->in) use(&f, *v);
    for (uint32_t i = 0; i < n; i++) use(&f, results[i]);
    if (!f.copied.n) return;
    each(const Eqn, e, u->eqns) push(cx->arena, &f.copied, eqn_rewrite(&f.copies, e, NULL, NULL));
    for (uint32_t i = 0; i < n; i++) results[i] = valmap_get(&f.copies, results[i]);
    u->eqns = f.copied;
}

bool split_into(Tx *tx, Builder *b, const Jaxpr *j, const Val *in, const bool *force, Val *out, Inner *lin) {
    Arena *arena = tx->cx->arena;
    Span span = b->span, whole = b->whole;
    Builder u = {.cx = tx->cx, .mesh = b->mesh, .tables = b_tables(b), .span = b->span};
    uint32_t before = b->eqns.n;
    Val *unknown = arena_new(arena, Val, j->in.n + 1), *results = arena_new(arena, Val, j->out.n + 1);
    uint32_t n = 0;
    add_consts(arena, &b->consts, j->consts);
    for (uint32_t i = 0; i < j->in.n; i++)
        if (in[i]) valmap_put(&tx->map, j->in.at[i], in[i]);
    for (uint32_t i = 0; i < j->in.n; i++) {
        tx_mark(tx, j->in.at[i], !in[i]);
        if (in[i]) continue;
        unknown[n++] = tx_placeholder(tx, j->in.at[i]);
        val_info(tx->cx, unknown[n - 1])->name = val_info(tx->cx, j->in.at[i])->name;
        valmap_put(&tx->map, j->in.at[i], unknown[n - 1]);
    }
    *lin = b_inner(&u, 0, NULL);
    lin->in = (Vals){unknown, n};
    split_eqns(tx, b, &u, j->eqns);
    n = 0;
    for (uint32_t i = 0; i < j->out.n; i++) {
        Val v = valmap_get(&tx->map, j->out.at[i]);
        bool known = !tx_marked(tx, j->out.at[i]);
        out[i] = known ? v : 0;
        if (!known || (force && force[i])) results[n++] = v;
    }
    repeat_free(tx->cx, (Eqns){.at = b->eqns.at + before, .n = b->eqns.n - before}, &u, results, n);
    b_inner_end(&u, lin, n, results);
    add_consts(arena, &b->consts, (Vals){u.consts.at, u.consts.n});
    b->span = span, b->whole = whole;
    return !tx->failed && !u.failed;
}
