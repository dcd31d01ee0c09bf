/* Bits of results from bits of inputs: which values may have a tangent, be unknown, or have a cotangent. Nothing is
   made. A program is walked once for each pattern of bits, and a loop's until the bits of its carries are stable. */
#include "flow.h"
#include "../../typecheck/rule.h"

enum { MARK_TAINT = 1, MARK_CT = 2 }; /* of a value; for cotangents TAINT says that it is linear */
static void mark(Tx *tx, Val v, uint8_t bits) {
    Flow *f = flow_of(tx);
    while (v >= f->marks.n) push(tx->cx->arena, &f->marks, 0);
    f->marks.at[v] = bits;
}
static bool marked(Tx *tx, Val v, uint8_t bit) {
    const Flow *f = flow_of(tx);
    return v < f->marks.n && !val_info(tx->cx, v)->lit && f->marks.at[v] & bit;
}
static bool *marks_of(Tx *tx, Vals vals, uint8_t bit) {
    bool *at = arena_new(tx->cx->arena, bool, vals.n + 1);
    for (uint32_t i = 0; i < vals.n; i++) at[i] = marked(tx, vals.at[i], bit);
    return at;
}
bool bits_some(Bits b) {
    bool some = false;
    each(const bool, bit, b) some |= *bit;
    return some;
}
Bits bits_copy(Tx *tx, Bits b) {
    bool *at = arena_new(tx->cx->arena, bool, b.n + 1);
    if (b.n) memcpy(at, b.at, b.n * sizeof *at);
    return (Bits){at, b.n};
}
Bits bits_part(Bits b, uint32_t from, uint32_t n) {
    assert(from + n <= b.n);
    return (Bits){b.at + from, n};
}
void bits_unite(bool *to, Bits with) {
    for (uint32_t i = 0; i < with.n; i++) to[i] |= with.at[i];
}

/* ---- what is known already */
static bool known_bits(Tx *tx, int what, const Jaxpr *j, const Bits in[2], Bits **slot) {
    Flow *f = flow_of(tx);
    bool fresh;
    uint32_t n = in[0].n + in[1].n;
    char *key = arena_new(tx->cx->arena, char, sizeof j + 1 + n);
    memcpy(key, &j, sizeof j);
    key[sizeof j] = (char)what;
    for (uint32_t i = 0; i < n; i++) key[sizeof j + 1 + i] = (char)(i < in[0].n ? in[0].at[i] : in[1].at[i - in[0].n]);
    uint32_t k = intern(&f->taint_keys, key, sizeof j + 1 + n, &fresh);
    if (fresh) push(tx->cx->arena, &f->taints, arena_new(tx->cx->arena, Bits, 1));
    *slot = f->taints.at[k];
    return !fresh;
}

/* ---- tangents and unknown values */
static void all_results(Tx *tx, TaintKind kind, const Eqn *e, bool *out) {
    for (uint32_t i = 0; i < e->out.n; i++)
        out[i] = kind != TAINT_JVP || has_tangent(tx->cx, val_type(tx->cx, e->out.at[i]));
}
static const Jaxpr *followed_body(Tx *tx, const Eqn *e) {
    Vals in;
    bool devices = e->prim == P_shard_map || e->prim == P_xla_pmap;
    const Jaxpr *body = has_own_rule(e->prim) ? NULL : devices ? eqn_program(e) : eqn_body(tx->cx->arena, e, &in);
    return body && body->in.n == e->in.n ? body : NULL;
}
/* In a batch a loop whose condition differs ends for each example by itself: all its results do. */
static void taint_while(Tx *tx, TaintKind kind, const Eqn *e, Bits in, bool *out) {
    While w = while_of(e);
    Bits body = bits_part(in, w.cond_consts.n, w.body_consts.n + w.carry.n);
    body = taint_loop(tx, kind, w.body, body, w.body_consts.n, w.carry.n);
    bits_unite(out, bits_part(body, w.body_consts.n, w.carry.n));
    if (kind != TAINT_VMAP) return;
    uint32_t ncond = w.cond_consts.n, n = w.tested.n;
    bool *test = arena_new(tx->cx->arena, bool, ncond + n + 1);
    bits_unite(test, bits_part(in, 0, ncond));
    bits_unite(test + ncond, bits_part(body, w.body_consts.n, n));
    if (taint(tx, kind, w.cond, (Bits){test, ncond + n}).at[0]) all_results(tx, kind, e, out);
}
static void taint_scan(Tx *tx, TaintKind kind, const Eqn *e, Bits in, bool *out) {
    Scan s = scan_of(e);
    Bits body = taint_loop(tx, kind, s.body, in, s.consts.n, s.carry.n);
    bits_unite(out, taint(tx, kind, s.body, body));
    bits_unite(out, bits_part(body, s.consts.n, s.carry.n));
}
/* An equation whose programs say which results get a bit; false: they do not, or it has none. */
static bool taint_programs(Tx *tx, TaintKind kind, const Eqn *e, Bits in, bool *out) {
    Cond c = cond_of(e);
    const Jaxpr *body = followed_body(tx, e);
    if (c.branches.n && in.at[0]) return false;
    if (c.branches.n)
        each(Jaxpr *, j, c.branches) bits_unite(out, taint(tx, kind, *j, bits_part(in, 1, c.in.n)));
    else if (while_of(e).body)
        taint_while(tx, kind, e, in, out);
    else if (scan_of(e).body)
        taint_scan(tx, kind, e, in, out);
    else if (body)
        bits_unite(out, taint(tx, kind, body, in));
    else
        return false;
    return true;
}
static bool is_collective(const Eqn *e, Jaxprs within) {
    return !within.n && (param_has(e, K_axis_name) || (param_has(e, K_axes) && prim_lower[e->prim] == LOWER_EXPAND));
}
bool examples_exchange(Tx *tx, const Eqn *e) {
    if (!tx->batch.axis.n) return false;
    return names_axis(e, tx->batch.axis) || (e->params.n && !is_collective(e, eqn_jaxprs(tx->cx->arena, e)) &&
                                             eqn_contains(&flow_of(tx)->exchanging, e, is_collective));
}
/* What the examples give each other: does each get something else? */
static bool gives_each(const Eqn *e, Bits in) {
    VmapRule *rule = vmap_rules[e->prim];
    if (rule == vmap_pvary) return bits_some(in);
    return rule != vmap_all_reduce && rule != vmap_all_gather && (rule != vmap_pbroadcast || !param_has(e, K_source));
}
/* An equation with a bit, or of a batch in which the examples exchange data. */
static void taint_eqn(Tx *tx, TaintKind kind, const Eqn *e, Bits in, bool *out) {
    if (kind == TAINT_JVP && jvp_rules[e->prim] == jvp_zero) return;
    if (kind == TAINT_VMAP && names_axis(e, tx->batch.axis) && !gives_each(e, in)) return;
    bool divided = kind != TAINT_SPLIT || split_rule(e->prim);
    if (!divided || !taint_programs(tx, kind, e, in, out)) all_results(tx, kind, e, out);
}
/* Has it an extent that differs between examples? */
typedef struct {
    Tx *tx;
    bool some;
} Extents;
static void see_extent(void *user, Val v) {
    Extents *x = user;
    x->some |= marked(x->tx, v, MARK_TAINT);
}
static bool has_tainted_extent(Tx *tx, const Eqn *e) {
    Extents x = {tx, false};
    eqn_extents(tx->cx, e, see_extent, &x);
    each(const Val, v, e->in) type_extents(tx->cx, val_type(tx->cx, *v), see_extent, &x);
    each(const Val, v, e->out) type_extents(tx->cx, val_type(tx->cx, *v), see_extent, &x);
    return x.some;
}
Bits taint(Tx *tx, TaintKind kind, const Jaxpr *j, Bits in) {
    Bits *slot;
    assert(in.n == j->in.n);
    if (known_bits(tx, kind, j, (Bits[2]){in}, &slot)) return *slot;
    for (uint32_t i = 0; i < in.n; i++) mark(tx, j->in.at[i], in.at[i]);
    each(const Eqn, e, j->eqns) {
        Bits from = {marks_of(tx, e->in, MARK_TAINT), e->in.n};
        bool *out = arena_new(tx->cx->arena, bool, e->out.n + 1);
        if (kind == TAINT_VMAP && has_tainted_extent(tx, e))
            all_results(tx, kind, e, out);
        else if (bits_some(from) || (kind == TAINT_VMAP && examples_exchange(tx, e)))
            taint_eqn(tx, kind, e, from, out);
        for (uint32_t i = 0; i < e->out.n; i++) mark(tx, e->out.at[i], out[i]);
    }
    return *slot = (Bits){marks_of(tx, j->out, MARK_TAINT), j->out.n};
}
/* What a result depends on is the union of what it gets from each input, so that each carry that gets a bit is followed
   alone, once. */
Bits taint_loop(Tx *tx, TaintKind kind, const Jaxpr *body, Bits in, uint32_t first, uint32_t n) {
    Bits now = bits_copy(tx, in), from = in;
    bool *carry = (bool *)now.at + first;
    uint32_t *grown = arena_new(tx->cx->arena, uint32_t, n + 1), ngrown = 0;
    for (uint32_t done = 0;; done++) {
        Bits out = taint(tx, kind, body, from);
        for (uint32_t i = 0; i < n; i++) {
            if (!out.at[i] || carry[i]) continue;
            carry[i] = true;
            grown[ngrown++] = first + i;
        }
        if (done == ngrown) return now;
        bool *one = arena_new(tx->cx->arena, bool, in.n + 1);
        one[grown[done]] = true;
        from = (Bits){one, in.n};
    }
}

/* ---- cotangents */
/* An equation with linear operands and a result that has a cotangent. */
static void taint_transpose_eqn(Tx *tx, const Eqn *e, Bits linear, Bits ct, bool *in) {
    Cond c = cond_of(e);
    const Jaxpr *body = followed_body(tx, e);
    if (c.branches.n && !linear.at[0])
        each(Jaxpr *, j, c.branches) bits_unite(in + 1, taint_transpose(tx, *j, bits_part(linear, 1, c.in.n), ct));
    else if (body)
        bits_unite(in, taint_transpose(tx, body, linear, ct));
    else
        bits_unite(in, linear);
}
Bits taint_transpose(Tx *tx, const Jaxpr *j, Bits linear, Bits ct) {
    enum { WHAT = TAINT_VMAP + 1 };
    Bits *slot;
    assert(linear.n == j->in.n && ct.n == j->out.n);
    if (known_bits(tx, WHAT, j, (Bits[2]){linear, ct}, &slot)) return *slot;
    for (uint32_t i = 0; i < linear.n; i++) mark(tx, j->in.at[i], linear.at[i]);
    each(const Eqn, e, j->eqns) {
        bool some = bits_some((Bits){marks_of(tx, e->in, MARK_TAINT), e->in.n});
        each(const Val, v, e->out) mark(tx, *v, some);
    }
    for (uint32_t i = 0; i < ct.n; i++)
        if (ct.at[i] && marked(tx, j->out.at[i], MARK_TAINT)) mark(tx, j->out.at[i], MARK_TAINT | MARK_CT);
    for (uint32_t k = j->eqns.n; k-- > 0;) {
        const Eqn *e = &j->eqns.at[k];
        Bits from = {marks_of(tx, e->in, MARK_TAINT), e->in.n}, back = {marks_of(tx, e->out, MARK_CT), e->out.n};
        bool *in = arena_new(tx->cx->arena, bool, e->in.n + 1);
        if (bits_some(from) && bits_some(back)) taint_transpose_eqn(tx, e, from, back, in);
        for (uint32_t i = 0; i < e->in.n; i++)
            if (in[i] && from.at[i]) mark(tx, e->in.at[i], MARK_TAINT | MARK_CT);
    }
    return *slot = (Bits){marks_of(tx, j->in, MARK_CT), j->in.n};
}
