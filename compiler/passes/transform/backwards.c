/* scan transposed: a loop over the iterations in the opposite order, which carries the cotangents of the carry and the
   sums of those of the constants, takes the scanned operands that are not linear and the cotangents of the stacked
   results, and stacks the cotangents of the scanned operands. */
#include "../../control.h"
#include "accumulate.h"

typedef struct {
    Inner turn;      /* takes constants, cotangents of the carry, sums, scanned operands, cotangents of results */
    Bits in, ct;     /* inputs and results of the body that have a cotangent; the carry: all that get one */
    const bool *sum; /* by constant: is it summed in the loop? */
    uint32_t nsums;
    const Accumulate *later;
} MadeBack;
/* The body of a linear loop. */
typedef struct {
    Tx *tx;
    const Jaxpr *body;
    uint32_t consts, carry;
    const bool *linear; /* by input */
    bool *ct;           /* by result */
} Body;

/* Which carries get a cotangent, and which inputs. */
static Bits cotangents(Body *l) {
    Bits linear = {l->linear, l->body->in.n}, in;
    for (bool grows = true; grows;) {
        grows = false;
        in = taint_transpose(l->tx, l->body, linear, (Bits){l->ct, l->body->out.n});
        for (uint32_t k = 0; k < l->carry; k++) {
            if (!in.at[l->consts + k] || l->ct[k]) continue;
            l->ct[k] = grows = true;
        }
    }
    return in;
}
static Val *values(const Body *l, uint32_t n) { return arena_new(l->tx->cx->arena, Val, n + 1); }

/* The iteration being written. */
typedef struct {
    Val *in;            /* by input: its value; 0: it is linear */
    Val *acc, *ct;      /* by constant: its sum so far; by result: its cotangent; 0: none */
    Val *ct_in;         /* by input */
    Vals consts, carry; /* the new inputs; the results after the carry's are in `later` */
    Accumulate *later;
} Turn;
static Turn begin(Body *l, const Bits *in, Builder *b) {
    Tx *tx = l->tx;
    const Jaxpr *j = l->body;
    Arena *arena = tx->cx->arena;
    Turn t = {.in = values(l, j->in.n), .acc = values(l, j->in.n)};
    t.ct = values(l, j->out.n), t.ct_in = values(l, j->in.n);
    t.consts = vals_new(arena, j->in.n), t.carry = vals_new(arena, j->in.n);
    t.later = arena_new(arena, Accumulate, 1);
    *t.later = (Accumulate){.cx = tx->cx, .b = b, .nacc = l->consts, .acc = t.acc, .continues = &tx->continues};
    Vals xs = vals_new(arena, j->in.n + j->out.n);
    for (uint32_t i = 0; i < j->in.n; i++) {
        if (l->linear[i]) continue;
        Val v = t.in[i] = tx_placeholder(tx, j->in.at[i]);
        valmap_put(&tx->map, j->in.at[i], v);
        vals_push(i < l->consts ? &t.consts : &xs, v);
    }
    t.later->residual = xs.n;
    for (uint32_t i = 0; i < l->consts; i++) {
        if (!l->linear[i] || !in->at[i]) continue;
        t.acc[i] = tx_placeholder(tx, j->in.at[i]);
        acc_begin(tx, j->in.at[i], t.acc[i]);
    }
    for (uint32_t i = 0; i < j->out.n; i++) {
        if (!l->ct[i]) continue;
        t.ct[i] = tx_placeholder(tx, j->out.at[i]);
        vals_push(i < l->carry ? &t.carry : &xs, t.ct[i]);
    }
    t.later->consts = t.consts, t.later->xs = xs;
    return t;
}
/* Ends the iteration. */
static void end(Body *l, Turn *t, Inner *turn, MadeBack *m, bool *has) {
    Arena *arena = l->tx->cx->arena;
    Builder *b = t->later->b;
    const Jaxpr *j = l->body;
    bool *sum = arena_new(arena, bool, l->consts + 1);
    Vals out = vals_new(arena, j->in.n + j->out.n), sums = vals_new(arena, l->consts);
    Vals end_sums = vals_new(arena, l->consts);
    for (uint32_t k = 0; k < l->carry; k++) {
        Val v = t->ct_in[l->consts + k];
        if (t->ct[k]) vals_push(&out, v ? v : b_zeros_like(b, t->ct[k]));
    }
    for (uint32_t i = l->consts + l->carry; i < j->in.n; i++) {
        if ((has[i] = t->ct_in[i] != 0)) push(arena, &t->later->ys, t->ct_in[i]);
    }
    accumulate_later(t->later);
    for (uint32_t i = 0; i < l->consts; i++) {
        Val v = t->acc[i] ? valmap_get(&t->later->map, t->ct_in[i]) : 0;
        has[i] = v && t->ct_in[i] != t->acc[i];
        if (!v || v == t->acc[i]) continue;
        sum[i] = true;
        vals_push(&sums, t->acc[i]);
        vals_push(&end_sums, v);
    }
    Vals ys = vals_rewrite(&t->later->map, (Vals){t->later->ys.at, t->later->ys.n});
    turn->in = vals_joined(arena, 4, (Vals[]){t->consts, t->carry, sums, t->later->xs});
    Vals all = vals_joined(arena, 3, (Vals[]){vals_rewrite(&t->later->map, out), end_sums, ys});
    b_inner_end(b, turn, all.n, all.at);
    m->turn = *turn, m->sum = sum, m->nsums = sums.n;
}
static const MadeBack *make(Body *l, const MeshAxis *mesh, Span span) {
    Tx *tx = l->tx;
    Arena *arena = tx->cx->arena;
    MadeBack *m = arena_new(arena, MadeBack, 1);
    Builder *b = arena_new(arena, Builder, 1);
    Bits in = cotangents(l);
    *b = (Builder){.cx = tx->cx, .mesh = mesh, .span = span};
    Inner turn = b_inner(b, 0, NULL);
    Turn t = begin(l, &in, b);
    if (!transpose_into(tx, b, l->body, t.in, t.ct, t.ct_in)) return NULL;
    bool *has = arena_new(arena, bool, l->body->in.n + 1);
    end(l, &t, &turn, m, has);
    for (uint32_t k = 0; k < l->carry; k++) has[l->consts + k] = l->ct[k];
    m->in = (Bits){has, l->body->in.n}, m->ct = (Bits){l->ct, l->body->out.n}, m->later = t.later;
    tx->failed |= b->failed;
    return b->failed ? NULL : m;
}
static const MadeBack *made_back(Body *l, const Transpose *t) {
    Text key = {.arena = l->tx->cx->arena};
    const uint64_t head[] = {(uintptr_t)l->body, l->consts, l->carry};
    text_put(&key, (Str){(const char *)head, sizeof head});
    text_put(&key, (Str){(const char *)l->linear, l->body->in.n});
    text_put(&key, (Str){(const char *)l->ct, l->body->out.n});
    const void **slot = loop_slot(l->tx, key.at, key.n);
    if (!*slot) *slot = make(l, t->b->mesh, t->e->span);
    return *slot;
}

/* ---- the equation */
static Vals not_linear(Arena *arena, Vals part, const Transpose *t) {
    Vals some = vals_new(arena, part.n);
    for (uint32_t i = 0; i < part.n; i++)
        if (!t->linear[part.at + i - t->e->in.at]) vals_push(&some, part.at[i]);
    return some;
}
/* Some of the carry does not depend on what the loop is linear in: the equation is divided first, then its linear part
   is transposed. */
static bool divided(Transpose *t) {
    Tx *tx = t->tx;
    Ctx *cx = tx->cx;
    const Eqn *e = t->e;
    Jaxpr j = {.span = e->span};
    Eqn own = *e;
    Inner lin;
    ValMap map = {.cx = cx, .sparse = true};
    j.in = vals_new(cx->arena, e->in.n), j.out = vals_new(cx->arena, e->out.n);
    Val *in = arena_new(cx->arena, Val, e->in.n + 1), *out = arena_new(cx->arena, Val, e->out.n + 1);
    for (uint32_t i = 0; i < e->in.n; i++) {
        Val v = e->in.at[i], new = val_new(cx, type_rewrite(&map, val_type(cx, v)), e->span);
        valmap_put(&map, v, new);
        vals_push(&j.in, new);
        in[i] = t->linear[i] ? 0 : v;
    }
    own = eqn_rewrite(&map, &own, NULL, NULL);
    own.in = j.in;
    for (uint32_t i = 0; i < e->out.n; i++)
        vals_push(&j.out, val_new(cx, type_rewrite(&map, val_type(cx, e->out.at[i])), e->span));
    own.out = j.out;
    push(cx->arena, &j.eqns, own);
    bool *force = arena_new(cx->arena, bool, e->out.n + 1);
    memset(force, true, e->out.n);
    if (!split_into(tx, t->b, &j, in, force, out, &lin)) return false;
    uint32_t n = lin.j->in.n, captured = lin.captured.n;
    Val *lin_in = arena_new(cx->arena, Val, n + 1), *ct_in = arena_new(cx->arena, Val, n + 1);
    const Bits linear = {t->linear, e->in.n};
    const Val *sums = take_sums(t, 0, linear);
    if (captured) memcpy(lin_in, lin.captured.at, captured * sizeof *lin_in);
    for (uint32_t i = 0, k = captured; i < e->in.n; i++)
        if (t->linear[i]) acc_begin(tx, lin.j->in.at[k++], sums[i]);
    if (!transpose_into(tx, t->b, lin.j, lin_in, t->ct, ct_in)) return false;
    give_sums(t, 0, linear, sums, ct_in + captured);
    return true;
}
/* The operands of the loop that runs backwards. */
static ScanIn operands(Transpose *t, const MadeBack *m, const Val *sums) {
    const Scan s = scan_of(t->e);
    Arena *arena = t->tx->cx->arena;
    Vals carry = vals_new(arena, s.carry.n + m->nsums), ys = vals_new(arena, s.ys.n);
    for (uint32_t k = 0; k < s.carry.n; k++)
        if (m->ct.at[k]) vals_push(&carry, ct_result(t, k));
    for (uint32_t i = 0; i < s.consts.n; i++)
        if (m->sum[i]) vals_push(&carry, sums[i] ? sums[i] : b_zeros_like(t->b, s.consts.at[i]));
    for (uint32_t i = 0; i < s.ys.n; i++)
        if (m->ct.at[s.carry.n + i]) vals_push(&ys, t->ct[s.carry.n + i]);
    Vals xs = vals_joined(arena, 2, (Vals[]){not_linear(arena, s.xs, t), ys});
    return (ScanIn){not_linear(arena, s.consts, t), carry, xs, .backwards = true};
}
bool transpose_scan(Transpose *t) {
    Tx *tx = t->tx;
    Arena *arena = tx->cx->arena;
    const Scan s = scan_of(t->e);
    Body l = {tx, scan_of(t->read).body, s.consts.n, s.carry.n, .ct = arena_new(arena, bool, t->e->out.n + 1)};
    Bits linear = taint_loop(tx, TAINT_SPLIT, l.body, (Bits){t->linear, t->e->in.n}, l.consts, l.carry);
    for (uint32_t k = 0; k < l.carry; k++)
        if (!linear.at[l.consts + k]) return divided(t);
    for (uint32_t i = 0; i < t->e->out.n; i++) l.ct[i] = t->ct[i] != 0;
    l.linear = linear.at;
    const MadeBack *m = made_back(&l, t);
    if (!m) return false;
    const Val *sums = take_sums(t, 0, (Bits){m->sum, l.consts});
    ScanIn in = operands(t, m, sums);
    Vals out = scan_run(tx, t->b, t->e, &m->turn, in);
    if (t->b->failed) return false;
    uint32_t at = 0, ncarry = in.carry.n;
    Vals ys = vals_part(out, ncarry, out.n - ncarry);
    for (uint32_t k = 0; k < l.carry; k++) {
        Val ct = m->ct.at[k] ? out.at[at++] : 0;
        if (t->linear[l.consts + k]) ct_add(t, l.consts + k, ct);
    }
    for (uint32_t i = 0; i < l.consts; i++) {
        Val sum = m->sum[i] ? out.at[at++] : 0;
        if (sum && sums[i]) ct_give(t, i, sums[i], sum), sum = 0;
        for (uint32_t k = 0; k < m->later->deferred.n; k++)
            if (m->later->deferred.at[k].to == i)
                sum = tx_sum(t->b, sum, b_deferred(t->b, &m->later->deferred.at[k], in.xs, ys));
        if (sum) ct_add(t, i, sum);
    }
    for (uint32_t i = l.consts + l.carry; i < t->e->in.n; i++)
        if (m->in.at[i]) ct_add(t, i, out.at[at++]);
    return !t->b->failed;
}
