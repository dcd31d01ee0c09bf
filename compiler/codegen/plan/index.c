#include "index.h"
#include <assert.h>

struct Indices {
    Ctx *cx;
    Intern table, values, quotients;
    struct {
        IxExpr *at;
        uint32_t n, cap;
    } all;
    struct {
        AtomInfo **at;
        uint32_t n, cap;
    } atoms;
    struct {
        Atom *at;
        uint32_t n, cap;
    } by_value, by_quotient;
};

typedef struct {
    IxTerm *at;
    uint32_t n, cap;
} Terms;

bool atom_data(const Indices *x, Atom atom) {
    const AtomInfo *a = x->atoms.at[atom];
    if (a->kind == ATOM_VALUE) return a->value.rank > 0;
    return a->kind != ATOM_LOOP && x->all.at[a->a].data;
}
static Ix make(Indices *x, Dim c, const IxTerm *t, uint32_t n) {
    size_t bytes = sizeof(Dim) + n * sizeof(IxTerm);
    char *key = arena_new(x->cx->arena, char, bytes);
    bool fresh;
    memcpy(key, &c, sizeof c);
    if (n) memcpy(key + sizeof c, t, n * sizeof *t);
    Ix id = intern(&x->table, key, bytes, &fresh);
    if (fresh) {
        IxTerm *copy = arena_new(x->cx->arena, IxTerm, n + 1);
        if (n) memcpy(copy, t, n * sizeof *t);
        IxExpr e = {c, n, copy, false};
        for (uint32_t i = 0; i < n; i++) e.data |= atom_data(x, t[i].atom);
        push(x->cx->arena, &x->all, e);
    }
    return id;
}
Indices *indices_new(Ctx *cx) {
    Indices *x = arena_new(cx->arena, Indices, 1);
    x->cx = cx;
    x->table.arena = x->values.arena = x->quotients.arena = cx->arena;
    make(x, 0, NULL, 0);
    AtomInfo *none = arena_new(cx->arena, AtomInfo, 1);
    push(cx->arena, &x->atoms, none); /* atom 0 is no atom */
    return x;
}
const IxExpr *ix_at(const Indices *x, Ix i) {
    assert(i < x->all.n);
    return &x->all.at[i];
}
AtomInfo *atom_at(const Indices *x, Atom a) {
    assert(a > 0 && a < x->atoms.n);
    return x->atoms.at[a];
}
Atom ix_loop(const Indices *x, Ix i) {
    const IxExpr *e = ix_at(x, i);
    assert(e->n == 1 && e->c == 0 && e->at[0].coef == 1 && atom_at(x, e->at[0].atom)->kind == ATOM_LOOP);
    return e->at[0].atom;
}

static Atom atom_new(Indices *x, AtomInfo info) {
    AtomInfo *a = arena_new(x->cx->arena, AtomInfo, 1);
    *a = info;
    push(x->cx->arena, &x->atoms, a);
    return x->atoms.n - 1;
}
Atom atom_loop(Indices *x, Dim extent) { return atom_new(x, (AtomInfo){.kind = ATOM_LOOP, .extent = extent}); }
Ix ix_dim(Indices *x, Dim c) { return make(x, c, NULL, 0); }
Ix ix_atom(Indices *x, Atom a) {
    if (atom_at(x, a)->extent == 1) return 0; /* in [0, 1) */
    IxTerm t = {.atom = a, .coef = 1};
    return make(x, 0, &t, 1);
}
/* The sum; c (d ⌊a / d⌋ + a mod d) in it is c a. */
static Ix sum_of(Indices *x, Dim c, IxTerm *t, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        const AtomInfo *mod = atom_at(x, t[i].atom);
        if (mod->kind != ATOM_MOD) continue;
        Dim want = dim_mul(x->cx->types, t[i].coef, mod->b);
        for (uint32_t k = 0; k < n; k++) {
            const AtomInfo *div = atom_at(x, t[k].atom);
            if (div->kind != ATOM_DIV || div->a != mod->a || div->b != mod->b || t[k].coef != want) continue;
            Ix both = ix_scale(x, mod->a, t[i].coef);
            uint32_t rest = 0;
            for (uint32_t j = 0; j < n; j++)
                if (j != i && j != k) t[rest++] = t[j];
            return ix_add(x, make(x, c, t, rest), both);
        }
    }
    return make(x, c, t, n);
}
Ix ix_add(Indices *x, Ix a, Ix b) {
    if (!a || !b) return a ? a : b;
    Types *ts = x->cx->types;
    const IxExpr p = *ix_at(x, a), q = *ix_at(x, b);
    IxTerm *t = arena_new(x->cx->arena, IxTerm, p.n + q.n + 1);
    uint32_t n = 0, i = 0, j = 0;
    while (i < p.n || j < q.n) {
        if (j == q.n || (i < p.n && p.at[i].atom < q.at[j].atom))
            t[n++] = p.at[i++];
        else if (i == p.n || q.at[j].atom < p.at[i].atom)
            t[n++] = q.at[j++];
        else {
            t[n] = p.at[i++];
            t[n].coef = dim_add(ts, t[n].coef, q.at[j++].coef);
            if (t[n].coef != 0) n++;
        }
    }
    return sum_of(x, dim_add(ts, p.c, q.c), t, n);
}
Ix ix_scale(Indices *x, Ix a, Dim k) {
    if (k == 1 || !a) return a;
    if (k == 0) return 0;
    Types *ts = x->cx->types;
    const IxExpr p = *ix_at(x, a);
    IxTerm *t = arena_new(x->cx->arena, IxTerm, p.n + 1);
    for (uint32_t i = 0; i < p.n; i++) {
        t[i] = p.at[i];
        t[i].coef = dim_mul(ts, p.at[i].coef, k);
    }
    return make(x, dim_mul(ts, p.c, k), t, p.n);
}
Ix ix_sub(Indices *x, Ix a, Ix b) { return ix_add(x, a, ix_scale(x, b, -1)); }

/* 1: never negative; -1: never positive; 0: not known. Extents are never negative. */
static int sign(const Types *ts, Dim d) {
    if (dim_is_const(d)) return d >= 0 ? 1 : -1;
    const DimExpr *e = dim_at(ts, d);
    int all = 0;
    switch (e->kind) {
    case DIM_SYMBOL:
    case DIM_BOUND: return 1;
    case DIM_FLOORDIV: return sign(ts, e->a) > 0 && sign(ts, e->b) > 0;
    case DIM_MOD: return sign(ts, e->b) > 0;
    case DIM_MAX: return sign(ts, e->a) > 0 || sign(ts, e->b) > 0;
    case DIM_MIN: return sign(ts, e->a) > 0 && sign(ts, e->b) > 0;
    case DIM_SUM:
        for (uint32_t i = 0; i < e->nterms; i++) {
            int one = e->terms[i].coef >= 0 ? 1 : -1;
            for (uint32_t k = 0; k < e->terms[i].natoms; k++)
                if (sign(ts, e->terms[i].atoms[k]) <= 0) return 0;
            if (all && one != all) return 0;
            all = one;
        }
        return all;
    default: return 0;
    }
}
/* The largest or the smallest value of c + terms; false when a sign is not known. */
static bool extreme(Indices *x, Dim c, const IxTerm *t, uint32_t n, int which, Dim *out) {
    Types *ts = x->cx->types;
    for (uint32_t i = 0; i < n; i++) {
        int of = sign(ts, t[i].coef);
        if (!of) return false;
        if (of == which) c = dim_add(ts, c, dim_mul(ts, t[i].coef, dim_sub(ts, atom_at(x, t[i].atom)->extent, 1)));
    }
    *out = c;
    return true;
}
/* a = d·(multiple part) + rest; the terms of the rest are those whose coefficients d does not divide. The rest is not
   negative: if necessary, multiples of d, or all of the multiple part, are moved to it. */
static void split(Indices *x, Ix a, Dim d, Terms *multiple, Dim *mc, Terms *rest, Dim *rc) {
    Types *ts = x->cx->types;
    const IxExpr p = *ix_at(x, a);
    Dim least;
    multiple->at = arena_new(x->cx->arena, IxTerm, p.n + 1);
    rest->at = arena_new(x->cx->arena, IxTerm, p.n + 1);
    for (uint32_t i = 0; i < p.n; i++)
        if (dim_mod(ts, p.at[i].coef, d) == 0) {
            IxTerm t = p.at[i];
            t.coef = dim_floordiv(ts, t.coef, d);
            multiple->at[multiple->n++] = t;
        } else
            rest->at[rest->n++] = p.at[i];
    *mc = dim_floordiv(ts, p.c, d);
    *rc = dim_sub(ts, p.c, dim_mul(ts, *mc, d));
    bool known = extreme(x, 0, rest->at, rest->n, -1, &least); /* and 0 ≤ rc < d */
    if (known && least == 0) return;
    if (known && dim_is_const(least) && dim_is_const(d) && dim_is_const(*rc)) {
        int64_t under = -(*rc + least), more = under > 0 ? (under + d - 1) / d : 0;
        *mc = dim_sub(ts, *mc, more);
        *rc = dim_add(ts, *rc, dim_mul(ts, more, d));
        return;
    }
    multiple->n = rest->n = 0;
    *mc = 0, *rc = p.c;
    for (uint32_t i = 0; i < p.n; i++) rest->at[rest->n++] = p.at[i];
}
static bool below(Indices *x, Dim rc, const Terms *rest, Dim d) {
    Dim most;
    if (!extreme(x, rc, rest->at, rest->n, 1, &most)) return false;
    Dim room = dim_sub(x->cx->types, d, most);
    return dim_is_const(room) && room >= 1;
}
static Ix quotient(Indices *x, AtomKind kind, Ix a, Dim d) {
    struct {
        uint64_t kind, a;
        Dim d;
    } key = {kind, a, d};
    _Static_assert(sizeof key == 3 * sizeof(uint64_t), "bytes of a key have no padding");
    bool fresh;
    uint32_t id = intern(&x->quotients, &key, sizeof key, &fresh);
    if (fresh) {
        Types *ts = x->cx->types;
        Dim extent = d, most;
        const IxExpr p = *ix_at(x, a);
        if (kind == ATOM_DIV) {
            bool known = extreme(x, p.c, p.at, p.n, 1, &most);
            extent = known ? dim_add(ts, dim_floordiv(ts, most, d), 1) : INT64_MAX >> 2;
        }
        AtomInfo info = {.kind = kind, .extent = extent, .a = a, .b = d};
        Atom made = atom_new(x, info);
        push(x->cx->arena, &x->by_quotient, made);
    }
    return ix_atom(x, x->by_quotient.at[id]);
}
Ix ix_div(Indices *x, Ix a, Dim d) {
    Terms m = {0}, r = {0};
    Dim mc, rc;
    if (d == 1 || !a) return a;
    if (d == 0) return 0;
    split(x, a, d, &m, &mc, &r, &rc);
    Ix whole = make(x, mc, m.at, m.n);
    if (below(x, rc, &r, d)) return whole;
    return ix_add(x, whole, quotient(x, ATOM_DIV, make(x, rc, r.at, r.n), d));
}
Ix ix_mod(Indices *x, Ix a, Dim d) {
    Terms m = {0}, r = {0};
    Dim mc, rc;
    if (d == 1 || d == 0 || !a) return 0;
    split(x, a, d, &m, &mc, &r, &rc);
    Ix rest = make(x, rc, r.at, r.n);
    return below(x, rc, &r, d) ? rest : quotient(x, ATOM_MOD, rest, d);
}
Ix ix_value(Indices *x, IxValue v) {
    if (dim_is_const(v.most) && v.most <= 0) return 0;
    assert(v.rank <= MAX_RANK);
    uint32_t key[4 + MAX_RANK] = {v.v, v.wraps, (uint32_t)v.most, (uint32_t)((uint64_t)v.most >> 32)};
    bool fresh;
    if (v.rank) memcpy(key + 4, v.at, v.rank * sizeof *v.at);
    uint32_t id = intern(&x->values, key, (4 + v.rank) * sizeof *key, &fresh);
    if (fresh) {
        AtomInfo info = {.kind = ATOM_VALUE, .extent = dim_add(x->cx->types, v.most, 1)};
        Ix *at = arena_new(x->cx->arena, Ix, v.rank + 1);
        if (v.rank) memcpy(at, v.at, v.rank * sizeof *at);
        info.value = v;
        info.value.at = at;
        Atom made = atom_new(x, info);
        push(x->cx->arena, &x->by_value, made);
    }
    return ix_atom(x, x->by_value.at[id]);
}
static bool uses(const Indices *x, Ix i, Atom loop, bool elements);

/* Is the loop inside the atom? `elements`: those of arrays count. */
static bool inside(const Indices *x, Atom atom, Atom loop, bool elements) {
    const AtomInfo *a = atom_at(x, atom);
    if (a->kind == ATOM_DIV || a->kind == ATOM_MOD) return uses(x, a->a, loop, elements);
    for (uint32_t d = 0; elements && a->kind == ATOM_VALUE && d < a->value.rank; d++)
        if (uses(x, a->value.at[d], loop, true)) return true;
    return false;
}
static bool uses(const Indices *x, Ix i, Atom loop, bool elements) {
    const IxExpr *p = ix_at(x, i);
    for (uint32_t k = 0; k < p->n; k++)
        if (p->at[k].atom == loop || inside(x, p->at[k].atom, loop, elements)) return true;
    return false;
}
bool ix_uses(const Indices *x, Ix i, Atom loop) { return uses(x, i, loop, true); }

static Dim coef_of(const Indices *x, Ix i, Atom loop, bool *other, bool elements) {
    const IxExpr *p = ix_at(x, i);
    Dim coef = 0;
    *other = false;
    for (uint32_t k = 0; k < p->n; k++)
        if (p->at[k].atom == loop)
            coef = p->at[k].coef;
        else if (inside(x, p->at[k].atom, loop, elements))
            *other = true;
    return coef;
}
Dim ix_coef(const Indices *x, Ix i, Atom loop, bool *other) { return coef_of(x, i, loop, other, true); }
Dim ix_coef_outside(const Indices *x, Ix i, Atom loop, bool *other) { return coef_of(x, i, loop, other, false); }
/* Does the divisor cut the loop, or the loop one turn of the divisor, into whole parts? Unknown extents may. */
static bool cuts_whole(Indices *x, const IxTerm *t, Dim by) {
    Types *ts = x->cx->types;
    const AtomInfo *loop = atom_at(x, t->atom);
    if (loop->kind != ATOM_LOOP) return false;
    if (!dim_is_const(t->coef) || !dim_is_const(by) || !dim_is_const(loop->extent)) return true;
    if (t->coef < 1) return false;
    return (by % t->coef == 0 && loop->extent % (by / t->coef) == 0) ||
           dim_mod(ts, by, dim_mul(ts, t->coef, loop->extent)) == 0;
}
bool ix_stays_divided(Indices *x, Ix i, Atom loop) {
    const IxExpr *p = ix_at(x, i);
    for (uint32_t k = 0; k < p->n; k++) {
        const AtomInfo *a = atom_at(x, p->at[k].atom);
        if ((a->kind != ATOM_DIV && a->kind != ATOM_MOD) || !ix_uses(x, a->a, loop)) continue;
        const IxExpr *of = ix_at(x, a->a);
        if (ix_stays_divided(x, a->a, loop)) return true;
        if (a->b == 2) continue;
        if (of->c != 0) return true;
        for (uint32_t t = 0; t < of->n; t++) {
            AtomKind kind = atom_at(x, of->at[t].atom)->kind;
            if (kind != ATOM_DIV && kind != ATOM_MOD && !cuts_whole(x, &of->at[t], a->b)) return true;
        }
    }
    return false;
}
bool ix_bounds(const Indices *x, Ix i, int64_t *lo, int64_t *hi) {
    const IxExpr *p = ix_at(x, i);
    if (!dim_is_const(p->c)) return false;
    __int128 l = p->c, h = p->c;
    for (uint32_t k = 0; k < p->n; k++) {
        Dim coef = p->at[k].coef, extent = atom_at(x, p->at[k].atom)->extent;
        if (!dim_is_const(coef) || !dim_is_const(extent) || extent < 1) return false;
        if (coef < 0)
            l += (__int128)coef * (extent - 1);
        else
            h += (__int128)coef * (extent - 1);
    }
    if (l < -(INT64_MAX >> 1) || h > INT64_MAX >> 1) return false;
    *lo = (int64_t)l, *hi = (int64_t)h;
    return true;
}
bool ix_is_loops(const Indices *x, Ix i) {
    const IxExpr *e = ix_at(x, i);
    for (uint32_t t = 0; t < e->n; t++)
        if (atom_at(x, e->at[t].atom)->kind != ATOM_LOOP || !dim_is_const(e->at[t].coef)) return false;
    return true;
}
static Ix value_substitute(Indices *x, IxValue v, Atom loop, Ix by) {
    Ix at[MAX_RANK];
    for (uint32_t d = 0; d < v.rank; d++) at[d] = ix_substitute(x, v.at[d], loop, by);
    v.at = at;
    return ix_value(x, v);
}
Ix ix_substitute(Indices *x, Ix i, Atom loop, Ix by) {
    if (!ix_uses(x, i, loop)) return i;
    const IxExpr p = *ix_at(x, i);
    Ix sum = ix_dim(x, p.c);
    for (uint32_t k = 0; k < p.n; k++) {
        const AtomInfo a = *atom_at(x, p.at[k].atom);
        Ix term = ix_atom(x, p.at[k].atom);
        if (p.at[k].atom == loop)
            term = by;
        else if (a.kind == ATOM_DIV)
            term = ix_div(x, ix_substitute(x, a.a, loop, by), a.b);
        else if (a.kind == ATOM_MOD)
            term = ix_mod(x, ix_substitute(x, a.a, loop, by), a.b);
        else if (a.kind == ATOM_VALUE)
            term = value_substitute(x, a.value, loop, by);
        sum = ix_add(x, sum, ix_scale(x, term, p.at[k].coef));
    }
    return sum;
}

static int64_t common_divisor(int64_t a, int64_t b) { return b ? common_divisor(b, a % b) : a; }
void ix_divide_runs(Indices *x, Ix a, Dim d, Ix *quotient, Ix *rest) {
    const IxExpr p = *ix_at(x, a);
    int64_t run = dim_is_const(d) && dim_is_const(p.c) && p.n ? d : 1;
    for (uint32_t i = 0; i < p.n; i++) run = dim_is_const(p.at[i].coef) ? common_divisor(run, p.at[i].coef) : 1;
    if (run <= 1) {
        *quotient = ix_div(x, a, d), *rest = ix_mod(x, a, d);
        return;
    }
    Ix low = ix_dim(x, p.c % run), whole = ix_div(x, ix_sub(x, a, low), run);
    *quotient = ix_div(x, whole, d / run);
    *rest = ix_add(x, ix_scale(x, ix_mod(x, whole, d / run), run), low);
}
Ix ix_replaced(Indices *x, Ix i, Atom loop, Ix by, bool in_runs) {
    for (Atom a = loop; a; a = atom_at(x, a)->outer) {
        const AtomInfo info = *atom_at(x, a);
        Ix own = by, left = 0;
        if (info.outer && in_runs)
            ix_divide_runs(x, by, info.extent, &left, &own);
        else if (info.outer)
            own = ix_mod(x, by, info.extent), left = ix_div(x, by, info.extent);
        i = ix_substitute(x, i, a, own);
        by = left;
    }
    return i;
}
