/* Symbolic dimensions: polynomials with integer coefficients over atoms, in the normal form and the order of jax.export
   (shape_poly.py of JAX 0.10), so that equal polynomials are one number and print as JAX prints them.

   Every dimension is at least 0 when a program runs; the bounds of expressions follow from this, and max, min and
   inequalities are decided by them. In JAX a symbol is at least 1: in the input, a relation that holds only where a
   symbol is 0 counts as false. Arithmetic that overflows int64 gives DIM_TOO_LARGE, which no array can have. */
#include "dim.h"
#include <assert.h>
#include <stdlib.h>

enum { MAX_TERMS = 256, MAX_ATOMS = 64, MAX_WEIGHT = 1024 };
#define INF INT64_MAX

/* Over all values of the symbols; -INF, INF: unbounded. */
typedef struct {
    int64_t lo, hi;
} Bounds;
enum { ANY_SIZE, NO_ZERO }; /* of symbols */

typedef struct {
    DimExpr e;
    uint32_t factor_size, expr_size; /* what the order compares first */
    uint32_t weight;                 /* leaves of the expression when written out: limits recursion and text */
    Bounds bounds[2];                /* for ANY_SIZE, NO_ZERO */
} DimNode;

struct DimTable {
    Arena *arena;
    Intern keys;
    struct {
        DimNode *at;
        uint32_t n, cap;
    } all;
    struct {
        bool *at;
        uint32_t n, cap;
    } bound; /* by value: is there a DIM_BOUND for it? */
};

typedef struct {
    DimTerm *at;
    uint32_t n;
} Terms;

DimTable *dim_table_new(Arena *arena) {
    DimTable *t = arena_new(arena, DimTable, 1);
    t->arena = t->keys.arena = arena;
    return t;
}

static const DimNode *node(const DimTable *t, Dim d) {
    assert(!dim_is_const(d) && DIM_SYMBOLIC_BASE - d < t->all.n);
    return &t->all.at[DIM_SYMBOLIC_BASE - d];
}
const DimExpr *dim_at(const Types *ts, Dim d) { return &node(types_dims(ts), d)->e; }

/* ---- saturating arithmetic */

static int64_t clip(__int128 x) { return x >= INF ? INF : x <= -INF ? -INF : (int64_t)x; }
static int64_t sat_add(int64_t a, int64_t b) { return clip((__int128)a + b); }
static int64_t sat_mul(int64_t a, int64_t b) { return clip((__int128)a * b); }
static uint32_t size_clip(uint64_t n) { return n > UINT32_MAX ? UINT32_MAX : (uint32_t)n; }
static Dim constant(__int128 x) { return x > -((__int128)1 << 61) && x < INF ? (Dim)x : DIM_TOO_LARGE; }
static int64_t floor_div(int64_t a, int64_t b) {
    int64_t q = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

static const char *const op_name[] = {
    [DIM_SYMBOL] = "",
    [DIM_BOUND] = "",
    [DIM_SUM] = "",
    [DIM_FLOORDIV] = "floordiv",
    [DIM_MOD] = "mod",
    [DIM_MAX] = "max",
    [DIM_MIN] = "min",
    [DIM_HOLE] = "None",
    [DIM_DBIDX] = "DBIdx",
    [DIM_INDBIDX] = "InDBIdx",
    [DIM_OUTDBIDX] = "OutDBIdx",
};

_Static_assert(sizeof op_name / sizeof *op_name == DIM_OUTDBIDX + 1, "a name for each kind");

/* ---- the order: sizes first, then the parts from the largest down */

static int compare_u(uint64_t a, uint64_t b) { return a < b ? -1 : a > b; }
static int compare_i(int64_t a, int64_t b) { return a < b ? -1 : a > b; }

static uint32_t expr_size(const DimTable *t, Dim d) { return dim_is_const(d) ? 1 : node(t, d)->expr_size; }

/* The number of atoms equal to the last of the first `n`. */
static uint32_t run(const Dim *atoms, uint32_t n) {
    uint32_t k = 1;
    while (k < n && atoms[n - 1 - k] == atoms[n - 1]) k++;
    return k;
}

static uint64_t term_size(const DimTable *t, const DimTerm *m) {
    uint64_t size = 0;
    for (uint32_t n = m->natoms, k; n; n -= k) {
        k = run(m->atoms, n);
        size += 1 + (uint64_t)k * node(t, m->atoms[n - 1])->factor_size;
    }
    return size;
}

static int compare_expr(const DimTable *t, Dim a, Dim b);

static int compare_str(Str a, Str b) {
    uint32_t n = a.n < b.n ? a.n : b.n;
    int c = n ? memcmp(a.at, b.at, n) : 0;
    return c ? c : compare_u(a.n, b.n);
}

static int compare_atom(const DimTable *t, Dim a, Dim b) {
    if (a == b) return 0;
    const DimNode *x = node(t, a), *y = node(t, b);
    int c = compare_u(x->factor_size, y->factor_size);
    if (!c) c = strcmp(op_name[x->e.kind], op_name[y->e.kind]);
    if (!c) c = compare_u(x->e.kind, y->e.kind);
    if (!c && x->e.kind == DIM_SYMBOL) return compare_str(x->e.name, y->e.name);
    if (!c) c = compare_u(x->e.val, y->e.val);
    if (!c) c = compare_expr(t, x->e.a, y->e.a);
    return c ? c : compare_expr(t, x->e.b, y->e.b);
}

static int compare_term(const DimTable *t, const DimTerm *a, const DimTerm *b) {
    int c = compare_u(term_size(t, a), term_size(t, b));
    uint32_t n = a->natoms, m = b->natoms;
    while (!c && n && m) {
        uint32_t j = run(a->atoms, n), k = run(b->atoms, m);
        c = compare_atom(t, a->atoms[n - 1], b->atoms[m - 1]);
        if (!c) c = compare_u(j, k);
        n -= j, m -= k;
    }
    return c ? c : compare_u(n, m);
}

/* The terms of any dimension, the largest first; `one` is room for the term of a constant or an atom. */
static Terms terms_of(const DimTable *t, Dim d, DimTerm *one, Dim *atom) {
    if (!dim_is_const(d) && node(t, d)->e.kind == DIM_SUM)
        return (Terms){(DimTerm *)node(t, d)->e.terms, node(t, d)->e.nterms};
    *atom = d;
    *one = dim_is_const(d) ? (DimTerm){d, 0, NULL} : (DimTerm){1, 1, atom};
    return (Terms){one, d != 0};
}

static int compare_expr(const DimTable *t, Dim a, Dim b) {
    if (a == b) return 0;
    int c = compare_u(expr_size(t, a), expr_size(t, b));
    if (dim_is_const(a) && dim_is_const(b)) return compare_i(a, b);
    DimTerm one[2];
    Dim atom[2];
    Terms x = terms_of(t, a, &one[0], &atom[0]), y = terms_of(t, b, &one[1], &atom[1]);
    for (uint32_t i = 0; !c && i < x.n && i < y.n; i++) {
        c = compare_term(t, &x.at[i], &y.at[i]);
        if (!c) c = compare_i(x.at[i].coef, y.at[i].coef);
    }
    return c ? c : compare_u(x.n, y.n);
}

/* ---- bounds */

static Bounds bounds(const DimTable *t, Dim d, int symbols) {
    return dim_is_const(d) ? (Bounds){d, d} : node(t, d)->bounds[symbols];
}

static int64_t scale(int64_t x, int64_t by) { return x == INF || x == -INF ? (by > 0 ? x : -x) : sat_mul(x, by); }

static Bounds bounds_product(const DimTable *t, const DimTerm *m, int symbols) {
    Bounds p = {1, 1};
    for (uint32_t i = 0; i < m->natoms; i++) {
        Bounds a = bounds(t, m->atoms[i], symbols);
        if (a.lo < 0) return (Bounds){-INF, INF};
        p = (Bounds){sat_mul(p.lo, a.lo), sat_mul(p.hi, a.hi)};
    }
    if (m->natoms == 1) p = bounds(t, m->atoms[0], symbols);
    return m->coef > 0 ? (Bounds){scale(p.lo, m->coef), scale(p.hi, m->coef)}
                       : (Bounds){scale(p.hi, m->coef), scale(p.lo, m->coef)};
}

static int64_t add_bound(int64_t a, int64_t b, int64_t infinite) {
    return a == infinite || b == infinite ? infinite : sat_add(a, b);
}

static Bounds bounds_sum(const DimTable *t, const DimExpr *e, int symbols) {
    Bounds s = {0, 0};
    for (uint32_t i = 0; i < e->nterms; i++) {
        Bounds p = bounds_product(t, &e->terms[i], symbols);
        s = (Bounds){add_bound(s.lo, p.lo, -INF), add_bound(s.hi, p.hi, INF)};
    }
    return s;
}

static Bounds bounds_expr(const DimTable *t, const DimExpr *e, int symbols) {
    if (e->kind == DIM_SUM) return bounds_sum(t, e, symbols);
    if (e->kind == DIM_SYMBOL) return (Bounds){symbols == NO_ZERO, INF};
    if (e->kind != DIM_FLOORDIV && e->kind != DIM_MOD && e->kind != DIM_MAX && e->kind != DIM_MIN)
        return (Bounds){0, INF};
    Bounds a = bounds(t, e->a, symbols), b = bounds(t, e->b, symbols);
    if (e->kind == DIM_MAX) return (Bounds){a.lo > b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi};
    if (e->kind == DIM_MIN) return (Bounds){a.lo < b.lo ? a.lo : b.lo, a.hi < b.hi ? a.hi : b.hi};
    if (e->kind == DIM_MOD) return b.lo >= 0 ? (Bounds){0, b.hi} : (Bounds){-INF, INF};
    if (b.lo == b.hi && b.lo > 0)
        return (Bounds){a.lo == -INF ? -INF : floor_div(a.lo, b.lo), a.hi == INF ? INF : floor_div(a.hi, b.lo)};
    return b.lo >= 0 && a.lo >= 0 ? (Bounds){0, a.hi} : (Bounds){-INF, INF};
}

/* ---- interning */

static uint32_t weight(const DimTable *t, Dim d) { return dim_is_const(d) ? 1 : node(t, d)->weight; }

static void measure(const DimTable *t, DimNode *n) {
    const DimExpr *e = &n->e;
    uint64_t size = 0;
    if (e->kind == DIM_SUM) {
        for (uint32_t i = 0; i < e->nterms; i++) {
            const DimTerm *m = &e->terms[i];
            size += 1 + (uint64_t)llabs(m->coef) % UINT32_MAX * (term_size(t, m) % UINT32_MAX);
            n->weight += 1;
            for (uint32_t j = 0; j < m->natoms; j++) n->weight += weight(t, m->atoms[j]);
        }
        n->expr_size = size_clip(size);
    } else {
        bool pair = e->kind >= DIM_FLOORDIV && e->kind <= DIM_MIN;
        n->weight = pair ? weight(t, e->a) + weight(t, e->b) : 1;
        size = 1 + (pair ? (uint64_t)expr_size(t, e->a) + expr_size(t, e->b) : 0);
        n->factor_size = size_clip(size);
        n->expr_size = size_clip(size + 2);
    }
    for (int symbols = ANY_SIZE; symbols <= NO_ZERO; symbols++) n->bounds[symbols] = bounds_expr(t, e, symbols);
}

/* The number of an expression in normal form. */
static Dim dim_add_node(DimTable *t, DimExpr e, const void *key, size_t size) {
    bool fresh;
    uint32_t id = intern(&t->keys, key, size, &fresh);
    if (!fresh) return DIM_SYMBOLIC_BASE - (Dim)id;
    DimNode n = {.e = e};
    measure(t, &n);
    push(t->arena, &t->all, n);
    return DIM_SYMBOLIC_BASE - (Dim)id;
}

static Dim dim_leaf(Types *ts, DimKind kind, int64_t number) {
    int64_t key[] = {kind, number};
    DimExpr e = {.kind = kind, .val = kind == DIM_BOUND ? (uint32_t)number : 0, .a = kind == DIM_BOUND ? 0 : number};
    return dim_add_node(types_dims(ts), e, key, sizeof key);
}

Dim dim_bound(Types *ts, uint32_t val) {
    DimTable *t = types_dims(ts);
    while (t->bound.n <= val) push(t->arena, &t->bound, false);
    t->bound.at[val] = true;
    return dim_leaf(ts, DIM_BOUND, val);
}
bool dim_is_bound(const Types *ts, uint32_t val) {
    const DimTable *t = types_dims(ts);
    return val < t->bound.n && t->bound.at[val];
}
Dim dim_special(Types *ts, DimKind kind, int64_t position) { return dim_leaf(ts, kind, position); }

Dim dim_symbol(Types *ts, Str name) {
    DimTable *t = types_dims(ts);
    Str key = str_format(t->arena, "s%.*s", SF(name));
    DimExpr e = {.kind = DIM_SYMBOL, .name = {key.at + 1, key.n - 1}};
    return dim_add_node(t, e, key.at, key.n);
}

bool dim_symbol_exists(Types *ts, Str name) {
    DimTable *t = types_dims(ts);
    Str key = str_format(t->arena, "s%.*s", SF(name));
    uint32_t id;
    return intern_find(&t->keys, key.at, key.n, &id);
}

static Dim dim_pair(Types *ts, DimKind kind, Dim a, Dim b) {
    DimTable *t = types_dims(ts);
    if (a == DIM_TOO_LARGE || b == DIM_TOO_LARGE) return DIM_TOO_LARGE;
    if (weight(t, a) + weight(t, b) > MAX_WEIGHT) return DIM_TOO_LARGE;
    int64_t key[] = {kind, a, b};
    return dim_add_node(t, (DimExpr){.kind = kind, .a = a, .b = b}, key, sizeof key);
}

/* A sum of sorted terms with nonzero coefficients. */
static Dim dim_of_terms(DimTable *t, Terms s) {
    if (s.n == 0) return 0;
    if (s.n == 1 && s.at[0].natoms == 0) return constant(s.at[0].coef);
    if (s.n == 1 && s.at[0].natoms == 1 && s.at[0].coef == 1) return s.at[0].atoms[0];
    if (s.n > MAX_TERMS) return DIM_TOO_LARGE;
    size_t words = 1;
    uint64_t heavy = 0;
    for (uint32_t i = 0; i < s.n; i++) {
        words += 2 + s.at[i].natoms;
        for (uint32_t j = 0; j < s.at[i].natoms; j++) heavy += weight(t, s.at[i].atoms[j]);
    }
    if (heavy > MAX_WEIGHT) return DIM_TOO_LARGE;
    int64_t *key = arena_new(t->arena, int64_t, words), *k = key;
    *k++ = DIM_SUM;
    for (uint32_t i = 0; i < s.n; i++) {
        const DimTerm *m = &s.at[i];
        if (m->natoms > MAX_ATOMS || m->coef == DIM_TOO_LARGE) return DIM_TOO_LARGE;
        *k++ = m->coef;
        *k++ = m->natoms;
        for (uint32_t j = 0; j < m->natoms; j++) *k++ = m->atoms[j];
    }
    DimExpr e = {.kind = DIM_SUM, .nterms = s.n, .terms = s.at};
    return dim_add_node(t, e, key, words * sizeof *key);
}

/* ---- arithmetic */

/* Σ a + by · Σ b, both sorted. */
static Terms terms_add(DimTable *t, Terms a, Terms b, int64_t by) {
    Terms s = {arena_new(t->arena, DimTerm, (size_t)a.n + b.n), 0};
    uint32_t i = 0, j = 0;
    while (i < a.n || j < b.n) {
        int c = i == a.n ? -1 : j == b.n ? 1 : compare_term(t, &a.at[i], &b.at[j]);
        DimTerm m = c >= 0 ? a.at[i] : b.at[j];
        __int128 coef = (c >= 0 ? a.at[i].coef : 0) + (c <= 0 ? (__int128)b.at[j].coef * by : 0);
        i += c >= 0, j += c <= 0;
        m.coef = constant(coef);
        if (coef) s.at[s.n++] = m;
    }
    return s;
}

static Dim linear(Types *ts, Dim a, Dim b, int64_t by) {
    if (a == DIM_TOO_LARGE || b == DIM_TOO_LARGE) return DIM_TOO_LARGE;
    if (dim_is_const(a) && dim_is_const(b)) return constant(a + (__int128)b * by);
    if (b == 0) return a;
    DimTable *t = types_dims(ts);
    DimTerm one[2];
    Dim atom[2] = {0};
    Terms x = terms_of(t, a, &one[0], &atom[0]), y = terms_of(t, b, &one[1], &atom[1]);
    Dim *own = arena_new(t->arena, Dim, 2); /* the sum keeps pointers to the atoms */
    own[0] = atom[0], own[1] = atom[1];
    if (x.at == one && one[0].natoms) one[0].atoms = &own[0];
    if (y.at == one + 1 && one[1].natoms) one[1].atoms = &own[1];
    return dim_of_terms(t, terms_add(t, x, y, by));
}

Dim dim_add(Types *ts, Dim a, Dim b) { return linear(ts, a, b, 1); }
Dim dim_sub(Types *ts, Dim a, Dim b) { return linear(ts, a, b, -1); }

static DimTerm term_mul(DimTable *t, const DimTerm *a, const DimTerm *b) {
    Dim *atoms = arena_new(t->arena, Dim, (size_t)a->natoms + b->natoms);
    uint32_t i = 0, j = 0, n = 0;
    while (i < a->natoms || j < b->natoms) {
        bool left = j == b->natoms || (i < a->natoms && compare_atom(t, a->atoms[i], b->atoms[j]) <= 0);
        atoms[n++] = left ? a->atoms[i++] : b->atoms[j++];
    }
    return (DimTerm){constant((__int128)a->coef * b->coef), n, atoms};
}

Dim dim_mul(Types *ts, Dim a, Dim b) {
    if (a == 0 || b == 0) return 0;
    if (a == 1) return b;
    if (b == 1) return a;
    if (a == DIM_TOO_LARGE || b == DIM_TOO_LARGE) return DIM_TOO_LARGE;
    if (dim_is_const(a) && dim_is_const(b)) return constant((__int128)a * b);
    DimTable *t = types_dims(ts);
    DimTerm one[2];
    Dim atom[2];
    Terms x = terms_of(t, a, &one[0], &atom[0]), y = terms_of(t, b, &one[1], &atom[1]);
    if ((uint64_t)x.n * y.n > MAX_TERMS) return DIM_TOO_LARGE;
    Terms sum = {NULL, 0};
    for (uint32_t i = 0; i < x.n; i++)
        for (uint32_t j = 0; j < y.n; j++) {
            DimTerm product = term_mul(t, &x.at[i], &y.at[j]);
            if (product.coef == DIM_TOO_LARGE || product.natoms > MAX_ATOMS) return DIM_TOO_LARGE;
            sum = terms_add(t, sum, (Terms){&product, 1}, 1);
        }
    return dim_of_terms(t, sum);
}

/* The term q with b·q = a, coefficients included; false if there is none. */
static bool term_divide(DimTable *t, const DimTerm *a, const DimTerm *b, DimTerm *q) {
    if (a->coef % b->coef != 0) return false;
    Dim *atoms = arena_new(t->arena, Dim, a->natoms);
    uint32_t n = 0, j = 0;
    for (uint32_t i = 0; i < a->natoms; i++)
        if (j < b->natoms && a->atoms[i] == b->atoms[j])
            j++;
        else
            atoms[n++] = a->atoms[i];
    *q = (DimTerm){a->coef / b->coef, n, atoms};
    return j == b->natoms;
}

/* Polynomial division: a = b·quotient + remainder, with 0 ≤ remainder < b for a constant b and
   remainder 0 otherwise; false if the coefficients would not be integers. */
static bool divide(Types *ts, Dim a, Dim b, Dim *quotient, Dim *remainder) {
    DimTable *t = types_dims(ts);
    DimTerm one[2];
    Dim atom[2], q = 0;
    DimTerm lead = *terms_of(t, b, &one[1], &atom[1]).at;
    for (int step = 0; !dim_is_const(a) && step < MAX_TERMS; step++) {
        DimTerm *factor = arena_new(t->arena, DimTerm, 1);
        if (!term_divide(t, terms_of(t, a, &one[0], &atom[0]).at, &lead, factor)) return false;
        Dim f = dim_of_terms(t, (Terms){factor, 1});
        q = dim_add(ts, q, f);
        a = dim_sub(ts, a, dim_mul(ts, f, b));
    }
    if (!dim_is_const(a) || a == DIM_TOO_LARGE) return false;
    if (!dim_is_const(b) && a != 0) return false;
    int64_t whole = dim_is_const(b) ? floor_div(a, b) : 0;
    *quotient = dim_add(ts, q, whole);
    *remainder = dim_is_const(b) ? a - whole * b : 0;
    return true;
}

Dim dim_floordiv(Types *ts, Dim a, Dim b) {
    Dim q, r;
    if (b == 1) return a;
    if (b == 0 || a == DIM_TOO_LARGE || b == DIM_TOO_LARGE) return DIM_TOO_LARGE;
    return divide(ts, a, b, &q, &r) ? q : dim_pair(ts, DIM_FLOORDIV, a, b);
}

Dim dim_mod(Types *ts, Dim a, Dim b) {
    Dim q, r;
    if (b == 0 || a == DIM_TOO_LARGE || b == DIM_TOO_LARGE) return DIM_TOO_LARGE;
    return divide(ts, a, b, &q, &r) ? r : dim_pair(ts, DIM_MOD, a, b);
}

static bool at_least(Types *ts, Dim a, Dim b) { return bounds(types_dims(ts), dim_sub(ts, a, b), ANY_SIZE).lo >= 0; }

Dim dim_max(Types *ts, Dim a, Dim b) {
    if (at_least(ts, a, b)) return a;
    if (at_least(ts, b, a)) return b;
    return dim_pair(ts, DIM_MAX, a, b);
}

Dim dim_min(Types *ts, Dim a, Dim b) {
    if (at_least(ts, a, b)) return b;
    if (at_least(ts, b, a)) return a;
    return dim_pair(ts, DIM_MIN, a, b);
}

Dim dim_dilated(Types *ts, Dim n, Dim step) {
    if (step == 1 || n == 0) return n;
    Dim last = dim_mul(ts, step, dim_sub(ts, n, 1));
    return dim_is_const(n) ? dim_add(ts, last, 1) : dim_max(ts, dim_add(ts, last, 1), 0);
}

/* ---- questions */

void dim_bounds(const Types *ts, Dim d, BoundSeen *seen, void *user) {
    if (dim_is_const(d)) return;
    const DimExpr *e = dim_at(ts, d);
    if (e->kind == DIM_BOUND) seen(user, e->val);
    if (e->kind >= DIM_FLOORDIV && e->kind <= DIM_MIN)
        dim_bounds(ts, e->a, seen, user), dim_bounds(ts, e->b, seen, user);
    for (uint32_t i = 0; e->kind == DIM_SUM && i < e->nterms; i++)
        for (uint32_t j = 0; j < e->terms[i].natoms; j++) dim_bounds(ts, e->terms[i].atoms[j], seen, user);
}
bool dim_has_bound(const Types *ts, Dim d) {
    if (dim_is_const(d)) return false;
    const DimExpr *e = dim_at(ts, d);
    if (e->kind == DIM_BOUND) return true;
    if (e->kind >= DIM_FLOORDIV && e->kind <= DIM_MIN) return dim_has_bound(ts, e->a) || dim_has_bound(ts, e->b);
    for (uint32_t i = 0; i < e->nterms; i++)
        for (uint32_t j = 0; j < e->terms[i].natoms; j++)
            if (dim_has_bound(ts, e->terms[i].atoms[j])) return true;
    return false;
}

int dim_equal(Types *ts, Dim a, Dim b, bool zero) {
    if (a == b) return 1;
    if (dim_is_const(a) && dim_is_const(b)) return 0;
    if (dim_has_bound(ts, a) || dim_has_bound(ts, b)) return 0; /* they are equal only as the same variable */
    Bounds d = bounds(types_dims(ts), dim_sub(ts, a, b), zero ? ANY_SIZE : NO_ZERO);
    return d.lo > 0 || d.hi < 0 ? 0 : -1;
}

int dim_at_most(Types *ts, Dim a, Dim b, bool zero) {
    if (a == b) return 1;
    Dim rest = dim_sub(ts, b, a);
    return bounds(types_dims(ts), rest, ANY_SIZE).lo >= 0                   ? 1
           : bounds(types_dims(ts), rest, zero ? ANY_SIZE : NO_ZERO).hi < 0 ? 0
                                                                            : -1;
}

Dim dim_substitute(Types *ts, Dim d, DimMap *map, void *user) {
    if (dim_is_const(d)) return d;
    DimExpr e = *dim_at(ts, d);
    switch (e.kind) {
    case DIM_FLOORDIV:
    case DIM_MOD:
    case DIM_MAX:
    case DIM_MIN: {
        Dim a = dim_substitute(ts, e.a, map, user), b = dim_substitute(ts, e.b, map, user);
        if (a == e.a && b == e.b) return d;
        return e.kind == DIM_FLOORDIV ? dim_floordiv(ts, a, b)
               : e.kind == DIM_MOD    ? dim_mod(ts, a, b)
               : e.kind == DIM_MAX    ? dim_max(ts, a, b)
                                      : dim_min(ts, a, b);
    }
    case DIM_SUM: {
        Dim sum = 0;
        for (uint32_t i = 0; i < e.nterms; i++) {
            Dim product = e.terms[i].coef;
            for (uint32_t j = 0; j < e.terms[i].natoms; j++)
                product = dim_mul(ts, product, dim_substitute(ts, e.terms[i].atoms[j], map, user));
            sum = dim_add(ts, sum, product);
        }
        return sum;
    }
    default: return map(user, d);
    }
}

/* ---- text */

static void put_term(Text *out, const Types *ts, const DimTerm *m, ValName *name, const void *user) {
    uint64_t coef = m->coef < 0 ? -(uint64_t)m->coef : (uint64_t)m->coef;
    if (coef != 1 || !m->natoms) text_add(out, "%llu%s", (unsigned long long)coef, m->natoms ? "*" : "");
    for (uint32_t i = 0, power; i < m->natoms; i += power) {
        for (power = 1; i + power < m->natoms && m->atoms[i + power] == m->atoms[i];) power++;
        if (i) text_put(out, S("*"));
        dim_put(out, ts, m->atoms[i], name, user);
        if (power > 1) text_add(out, "^%u", power);
    }
}

/* An operand of max, min, …, as a polynomial: hence "- 1". */
static void put_operand(Text *out, const Types *ts, Dim d, ValName *name, const void *user) {
    if (dim_is_const(d) && d < 0)
        text_add(out, "- %lld", -(long long)d);
    else
        dim_put(out, ts, d, name, user);
}

void dim_put(Text *out, const Types *ts, Dim d, ValName *name, const void *user) {
    if (dim_is_const(d)) {
        text_add(out, "%lld", (long long)d);
        return;
    }
    const DimExpr *e = dim_at(ts, d);
    switch (e->kind) {
    case DIM_SYMBOL: text_put(out, e->name); break;
    case DIM_BOUND:
        if (name)
            text_put(out, name(user, e->val));
        else
            text_add(out, "v%u", e->val);
        break;
    case DIM_SUM:
        for (uint32_t i = 0; i < e->nterms; i++) {
            const char *sign = e->terms[i].coef < 0 ? "- " : "+ ";
            text_add(out, "%s%s", i ? " " : "", i || e->terms[i].coef < 0 ? sign : "");
            put_term(out, ts, &e->terms[i], name, user);
        }
        break;
    case DIM_HOLE: text_put(out, str(op_name[e->kind])); break;
    case DIM_DBIDX:
    case DIM_INDBIDX:
    case DIM_OUTDBIDX: text_add(out, "%s(val=%lld)", op_name[e->kind], (long long)e->a); break;
    default:
        text_add(out, "%s(", op_name[e->kind]);
        put_operand(out, ts, e->a, name, user);
        text_put(out, S(", "));
        put_operand(out, ts, e->b, name, user);
        text_put(out, S(")"));
    }
}

Str dim_text(Arena *arena, const Types *ts, Dim d, ValName *name, const void *user) {
    Text out = {.arena = arena};
    dim_put(&out, ts, d, name, user);
    return (Str){out.at, out.n};
}
