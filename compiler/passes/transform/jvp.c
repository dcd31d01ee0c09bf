/* jvp: a program and its tangents. */
#include "tx.h"
#include "../../typecheck/rule.h"
#include <stdarg.h>

JvpRule *const jvp_rules[NPRIMS] = {
#define PRIM(id, text, arity, type, simplify, facts, jvp, transpose, vmap, lowering) [P_##id] = jvp_##jvp,
#include "../../prims.def"
};

bool has_tangent(const Ctx *cx, Type t) {
    DtypeKind kind = dtype_info[type_at(cx->types, t)->dtype].kind;
    return (kind == DK_FLOAT || kind == DK_COMPLEX) && !type_is_ref(cx, t);
}
bool tx_error(Tx *tx, Span span, const char *fmt, ...) {
    enum { MESSAGE = 1000 };
    char text[MESSAGE];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    diag_error(tx->cx->diags, span, "%s", text);
    tx->failed = true;
    return false;
}
Span operand_span(const Eqn *e, uint32_t i) { return e->in_at ? e->in_at[i] : e->span; }
Val tx_sum(Builder *b, Val x, Val y) { return !x ? y : !y ? x : b_add_any(b, x, y); }

/* ---- copies */
Val tx_placeholder(Tx *tx, Val read) {
    const ValInfo *info = val_info(tx->cx, read);
    Type t = info->type;
    Span span = info->span;
    return val_new(tx->cx, type_rewrite(&tx->map, t), span);
}
Vals tx_copy(Tx *tx, Builder *b, const Eqn *e) {
    Eqn new = eqn_rewrite(&tx->map, e, NULL, NULL);
    new.out = (Vals){arena_new(tx->cx->arena, Val, e->out.n + 1), e->out.n};
    for (uint32_t i = 0; i < e->out.n; i++) {
        new.out.at[i] = tx_placeholder(tx, e->out.at[i]);
        val_info(tx->cx, new.out.at[i])->name = val_info(tx->cx, e->out.at[i])->name;
        valmap_put(&tx->map, e->out.at[i], new.out.at[i]); /* types of later results may name it */
    }
    push(tx->cx->arena, &b->eqns, new);
    return new.out;
}

/* ---- one equation */
Val jvp_result(Jvp *d, uint32_t k) {
    if (!d->out[k]) {
        Vals out = tx_copy(d->tx, d->b, d->read);
        memcpy(d->out, out.at, out.n * sizeof *out.at);
    }
    return d->out[k];
}
Val jvp_tangent(Jvp *d, uint32_t i) { return d->t[i] ? d->t[i] : b_zeros_like(d->b, d->e->in.at[i]); }
Vals jvp_apply(Jvp *d, const Val *in) {
    Eqn e = *d->e;
    Type *types = arena_new(d->tx->cx->arena, Type, e.out.n + 1);
    for (uint32_t i = 0; i < e.out.n; i++) types[i] = val_type(d->tx->cx, jvp_result(d, i));
    e.in.at = (Val *)in;
    e.in = vals_joined(d->tx->cx->arena, 1, &e.in);
    return b_eqn(d->b, &e, e.out.n, types);
}
static Val tangent_of(const Tx *tx, Val read) {
    const ValMap *m = &tx->tangent;
    return read < m->n && !val_info(tx->cx, read)->lit ? m->at[read] : 0;
}
/* "x_t", for those who read the program. */
static void name_tangent(Ctx *cx, Val t, Val primal) {
    Str name = val_info(cx, primal)->name;
    if (t && !val_info(cx, t)->name.n && name.n && !str_is(name, "_"))
        val_info(cx, t)->name = str_format(cx->arena, "%.*s_t", SF(name));
}
static void jvp_eqn(Tx *tx, Builder *b, const Eqn *e) {
    Arena *arena = tx->cx->arena;
    Val *t = arena_new(arena, Val, e->in.n + 1), *new = arena_new(arena, Val, 2 * (size_t)e->out.n + 1);
    Val *dt = new + e->out.n;
    bool some = false;
    for (uint32_t i = 0; i < e->in.n; i++) some |= (t[i] = tangent_of(tx, e->in.at[i])) != 0;
    b->span = e->span, b->whole = e->whole;
    Eqn here = eqn_rewrite(&tx->map, e, NULL, NULL);
    Jvp d = {.tx = tx, .b = b, .e = &here, .read = e, .t = t, .out = new, .dt = dt};
    if (some && !jvp_rules[e->prim](&d)) {
        tx->failed = true;
        memset(dt, 0, e->out.n * sizeof *dt);
    }
    if (e->out.n == 0) tx_copy(tx, b, e); /* once, for its effects */
    tx->failed |= b->failed;
    for (uint32_t i = 0; i < e->out.n; i++) {
        Val v = jvp_result(&d, i);
        assert(!dt[i] || tx->failed || has_tangent(tx->cx, val_type(tx->cx, e->out.at[i])));
        valmap_put(&tx->map, e->out.at[i], v);
        valmap_put(&tx->tangent, e->out.at[i], dt[i]);
        name_tangent(tx->cx, dt[i], e->out.at[i]);
    }
}
bool jvp_into(Tx *tx, Builder *b, const Jaxpr *j, const Val *in, const Val *t, Val *out, Val *dt) {
    Span span = b->span, whole = b->whole;
    add_consts(tx->cx->arena, &b->consts, j->consts);
    for (uint32_t i = 0; i < j->in.n; i++) {
        assert(!t[i] || has_tangent(tx->cx, val_type(tx->cx, j->in.at[i])));
        valmap_put(&tx->map, j->in.at[i], in[i]);
        valmap_put(&tx->tangent, j->in.at[i], t[i]);
    }
    for (uint32_t i = 0; i < j->eqns.n; i++) {
        if (b->eqns.n > MOST_EQNS)
            return tx_error(tx, j->eqns.at[i].span, "more than %d equations in a derivative", MOST_EQNS);
        jvp_eqn(tx, b, &j->eqns.at[i]);
    }
    for (uint32_t i = 0; i < j->out.n; i++) {
        out[i] = valmap_get(&tx->map, j->out.at[i]);
        dt[i] = tangent_of(tx, j->out.at[i]);
    }
    b->span = span, b->whole = whole;
    return !tx->failed;
}

/* ---- rules that many rows share */
bool jvp_none(Jvp *d) { return tx_error(d->tx, d->e->span, "%s has no derivative", prim_name[d->e->prim]); }
bool jvp_zero(Jvp *d) { return true; }

bool jvp_linear(Jvp *d) {
    const Eqn *e = d->e;
    Ctx *cx = d->tx->cx;
    Val *in = arena_new(cx->arena, Val, e->in.n + 1);
    for (uint32_t i = 0; i < e->in.n; i++)
        in[i] = has_tangent(cx, val_type(cx, e->in.at[i])) ? jvp_tangent(d, i) : e->in.at[i];
    Vals out = jvp_apply(d, in);
    for (uint32_t i = 0; i < out.n && !d->b->failed; i++)
        d->dt[i] = has_tangent(cx, val_type(cx, out.at[i])) ? out.at[i] : 0;
    return !d->b->failed;
}

/* The equation with operands of its own in place of those that have a tangent: what the EXPAND rule writes is read, and
   one value of the program that is written may be two operands with different tangents. */
static Eqn with_own_operands(Jvp *d) {
    Tx *tx = d->tx;
    Eqn e = *d->e;
    e.in = vals_joined(tx->cx->arena, 1, &e.in);
    for (uint32_t i = 0; i < e.in.n; i++) {
        if (!d->t[i]) continue;
        e.in.at[i] = val_new(tx->cx, val_type(tx->cx, d->e->in.at[i]), d->e->span);
        valmap_put(&tx->map, e.in.at[i], d->e->in.at[i]);
        valmap_put(&tx->tangent, e.in.at[i], d->t[i]);
    }
    return e;
}
bool jvp_expand(Jvp *d) {
    Tx *tx = d->tx;
    Builder x = {.cx = tx->cx, .mesh = d->b->mesh, .span = d->e->span, .whole = d->e->whole};
    if (++tx->depth > MOST_DEPTH) return tx_error(tx, d->e->span, "%s: expanded too often", prim_name[d->e->prim]);
    Eqn e = with_own_operands(d);
    if (!expand_rules[e.prim](&x, &e, d->out) || x.failed) return false;
    add_consts(tx->cx->arena, &d->b->consts, (Vals){x.consts.at, x.consts.n});
    for (uint32_t i = 0; i < x.eqns.n; i++) jvp_eqn(tx, d->b, &x.eqns.at[i]);
    for (uint32_t i = 0; i < d->e->out.n; i++) {
        d->dt[i] = tangent_of(tx, d->out[i]);
        d->out[i] = valmap_get(&tx->map, d->out[i]);
    }
    tx->depth--;
    return true;
}
