/* Updates where not all examples are really here. Of the others the old value is kept: to select it from the whole
   array after each turn of a loop would copy the array, so what is written into it keeps their elements instead. */
#include "flow.h"

/* ---- which value an equation writes into */
static bool writes(Tx *tx, const Eqn *e) {
    static const bool are[NPRIMS] = {
        [P_dynamic_update_slice] = true, [P_scatter] = true,     [P_scatter_add] = true, [P_scatter_sub] = true,
        [P_scatter_mul] = true,          [P_scatter_min] = true, [P_scatter_max] = true,
    };
    if (!are[e->prim] || (e->prim == P_scatter && param_jaxpr(e, K_update_jaxpr))) return false;
    /* no product leaves every complex number as it is: inf + 1i times 1 + 0i is inf + NaN i */
    bool complex = dtype_info[val_array(tx->cx, e->in.at[0])->dtype].kind == DK_COMPLEX;
    return e->prim != P_scatter_mul || !complex;
}
/* Where result k of an equation or program comes from: an operand or input that it is, but for what is written into
   it. */
typedef struct Origin {
    uint32_t at;
    bool written;
} Origin;
static const Origin nowhere = {NOT_UPDATED, false};
static const Origin *origins(Tx *, const Jaxpr *);
static void note_updated(Tx *tx, Val v) {
    Flow *f = flow_of(tx);
    while (v >= f->updated.n) push(tx->cx->arena, &f->updated, false);
    f->updated.at[v] = true;
}
/* All branches give this operand, and nothing else of it; some write into it. */
static Origin origin_of_branches(Tx *tx, const Cond *c, uint32_t k) {
    Origin from = origins(tx, c->branches.at[0])[k];
    each(Jaxpr *, j, c->branches) {
        const Origin *of = origins(tx, *j);
        if (of[k].at != from.at) return nowhere;
        for (uint32_t r = 0; r < (*j)->out.n; r++)
            if (r != k && of[r].at == from.at) return nowhere;
        from.written |= of[k].written;
    }
    if (!from.written || from.at == NOT_UPDATED) return nowhere;
    each(Jaxpr *, j, c->branches) note_updated(tx, (*j)->in.at[from.at]);
    return from;
}
static Origin origin_of_carry(Tx *tx, const Jaxpr *body, uint32_t first, uint32_t k) {
    Origin from = origins(tx, body)[k];
    return from.written && from.at == first + k ? from : nowhere;
}
/* Of inputs of the body, which are the operands from `first` on. */
static Origin later(Origin from, uint32_t first) {
    from.at += from.at == NOT_UPDATED ? 0 : first;
    return from;
}
static Origin origin_of(Tx *tx, const Eqn *e, uint32_t k) {
    const Cond c = cond_of(e);
    const While w = while_of(e);
    const Scan s = scan_of(e);
    Vals in;
    if (writes(tx, e)) return (Origin){0, true};
    if (c.branches.n) return later(origin_of_branches(tx, &c, k), 1);
    if (w.body) return later(origin_of_carry(tx, w.body, w.body_consts.n, k), w.cond_consts.n);
    if (s.body) return k < s.carry.n ? origin_of_carry(tx, s.body, s.consts.n, k) : nowhere;
    const Jaxpr *body = vmap_rules[e->prim] == vmap_call ? eqn_body(tx->cx->arena, e, &in) : NULL;
    return body && body->in.n == e->in.n && origins(tx, body)[k].written ? origins(tx, body)[k] : nowhere;
}

/* ---- in a program */
static uint32_t place_of(const Jaxpr *j, Val v) {
    uint32_t i = 0;
    while (i < j->in.n && j->in.at[i] != v) i++;
    return i < j->in.n ? i : NOT_UPDATED;
}
static bool is_updated(Tx *tx, Val v) {
    const Flow *f = flow_of(tx);
    return v < f->updated.n && f->updated.at[v];
}
/* The operand from which the value comes; 0: it comes from none. */
static Val before(Tx *tx, Val v) {
    Val from = valmap_get(&flow_of(tx)->written, v);
    return from == v ? 0 : from;
}
static Origin *find_origins(Tx *tx, const Jaxpr *j) {
    Flow *f = flow_of(tx);
    Origin *of = arena_new(tx->cx->arena, Origin, j->out.n + 1);
    bool *written = arena_new(tx->cx->arena, bool, j->out.n + 1);
    Intern steps = {.arena = tx->cx->arena}; /* results of equations that write */
    uint32_t found;
    each(const Eqn, e, j->eqns)
        for (uint32_t k = 0; k < e->out.n; k++) {
            Origin from = origin_of(tx, e, k);
            if (from.at == NOT_UPDATED) continue;
            valmap_put(&f->written, e->out.at[k], e->in.at[from.at]);
            if (from.written) intern(&steps, &e->out.at[k], sizeof(Val), NULL);
        }
    for (uint32_t k = 0; k < j->out.n; k++) {
        Val v = j->out.at[k];
        for (Val from = v; from; from = before(tx, v = from))
            written[k] |= intern_find(&steps, &from, sizeof from, &found);
        of[k] = (Origin){place_of(j, v), written[k]};
        if (of[k].at != NOT_UPDATED && of[k].written)
            for (v = j->out.at[k]; v; v = before(tx, v)) note_updated(tx, v);
    }
    return of;
}
static const Origin *origins(Tx *tx, const Jaxpr *j) {
    Flow *f = flow_of(tx);
    bool fresh;
    uint32_t at = intern(&f->origins_keys, &j, sizeof j, &fresh);
    if (fresh) {
        push(tx->cx->arena, &f->origins, NULL);
        Origin *of = find_origins(tx, j);
        f->origins.at[at] = of;
    }
    return f->origins.at[at];
}
static uint32_t where_written(Origin of) { return of.written ? of.at : NOT_UPDATED; }
void find_updates(Tx *tx, const Jaxpr *j) { origins(tx, j); }
uint32_t updated_input(Tx *tx, const Jaxpr *j, uint32_t k) { return where_written(origins(tx, j)[k]); }
uint32_t updated_operand(Tx *tx, const Eqn *e, uint32_t k) { return where_written(origin_of(tx, e, k)); }

/* ---- its equations for a batch of examples */
/* Does operand i go on as a result? */
static bool goes_on(Tx *tx, const Eqn *e, uint32_t i) {
    bool some = false;
    each(const Val, y, e->out) some |= is_updated(tx, *y) && before(tx, *y) == e->in.at[i];
    return some;
}
bool vmap_reads_updated(const Vmap *v, uint32_t i) {
    return v->tx->batch.mask && v->batched[i] && is_updated(v->tx, v->read->in.at[i]) && !goes_on(v->tx, v->read, i);
}
bool vmap_keeps(const Vmap *v) { return v->tx->batch.mask && writes(v->tx, v->read) && goes_on(v->tx, v->read, 0); }
