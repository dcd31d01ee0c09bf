/* Dimensions: extents are text such as "2*b + 1", "floordiv(b, 2)", "max(b - 1, 0)". */
#include "run.h"
#include <stdio.h>
#include <string.h>

/* ---- an expression, evaluated as it is read */

enum { DEPTH = 200 };
typedef struct {
    const Variables *v;
    const char *at;
    int depth;
} Reader;

static Extent known(int64_t c) { return (Extent){.kind = EXTENT_KNOWN, .c = c}; }
static Extent other(ExtentKind kind) { return (Extent){.kind = kind}; }

/* The result for two operands that are not both known: the worse kind. */
static Extent mixed(Extent a, Extent b) {
    if (a.kind == EXTENT_WRONG || b.kind == EXTENT_WRONG) return other(EXTENT_WRONG);
    return other(a.kind == EXTENT_FOREIGN || b.kind == EXTENT_FOREIGN ? EXTENT_FOREIGN : EXTENT_OTHER);
}

static Extent sum(Extent a, Extent b) {
    if (a.kind > EXTENT_LINEAR || b.kind > EXTENT_LINEAR) return mixed(a, b);
    if (a.kind == EXTENT_LINEAR && b.kind == EXTENT_LINEAR && a.variable != b.variable) return mixed(a, b);
    Extent r = a.kind == EXTENT_LINEAR ? a : b;
    if (__builtin_add_overflow(a.c, b.c, &r.c) || __builtin_add_overflow(a.k, b.k, &r.k)) return other(EXTENT_WRONG);
    if (r.k == 0) r.kind = EXTENT_KNOWN;
    return r;
}

static Extent product(Extent a, Extent b) {
    if (a.kind == EXTENT_LINEAR && b.kind == EXTENT_KNOWN) return product(b, a);
    if (a.kind != EXTENT_KNOWN || b.kind > EXTENT_LINEAR) return mixed(a, b);
    Extent r = b;
    if (__builtin_mul_overflow(a.c, b.c, &r.c) || __builtin_mul_overflow(a.c, b.k, &r.k)) return other(EXTENT_WRONG);
    if (r.k == 0) r.kind = EXTENT_KNOWN;
    return r;
}

/* floordiv and mod as in Python: the remainder has the divisor's sign. */
static Extent apply(const char *name, size_t n, Extent a, Extent b) {
    if (a.kind != EXTENT_KNOWN || b.kind != EXTENT_KNOWN) return mixed(a, b);
    if (n == 3 && !memcmp(name, "max", 3)) return known(a.c > b.c ? a.c : b.c);
    if (n == 3 && !memcmp(name, "min", 3)) return known(a.c < b.c ? a.c : b.c);
    if (b.c == 0 || (b.c == -1 && a.c == INT64_MIN)) return other(EXTENT_WRONG);
    int64_t q = a.c / b.c, r = a.c % b.c;
    bool down = r && (r < 0) != (b.c < 0);
    if (n == 8 && !memcmp(name, "floordiv", 8)) return known(q - down);
    if (n == 3 && !memcmp(name, "mod", 3)) return known(down ? r + b.c : r);
    return other(EXTENT_WRONG);
}

static bool skip(Reader *r, char c) {
    while (*r->at == ' ') r->at++;
    if (*r->at != c) return false;
    r->at++;
    return true;
}

static Extent read_sum(Reader *r);

static Extent read_number(Reader *r) {
    int64_t x = 0;
    for (; *r->at >= '0' && *r->at <= '9'; r->at++)
        if (__builtin_mul_overflow(x, 10, &x) || __builtin_add_overflow(x, *r->at - '0', &x))
            return other(EXTENT_WRONG);
    return known(x);
}

static Extent variable(const Reader *r, const char *name, size_t n) {
    for (uint32_t i = 0; i < r->v->n; i++) {
        const Variable *v = &r->v->at[i];
        if (strlen(v->name) != n || memcmp(v->name, name, n)) continue;
        return v->known ? known(v->value) : (Extent){EXTENT_LINEAR, 0, 1, i};
    }
    return other(EXTENT_FOREIGN);
}

static Extent read_primary(Reader *r) {
    Extent a, b;
    if (skip(r, '(')) {
        a = read_sum(r);
        return skip(r, ')') ? a : other(EXTENT_WRONG);
    }
    if (*r->at >= '0' && *r->at <= '9') return read_number(r);
    const char *name = r->at;
    size_t n = strcspn(name, " +-*^(),");
    r->at += n;
    if (!n) return other(EXTENT_WRONG);
    if (!skip(r, '(')) return variable(r, name, n);
    a = read_sum(r);
    if (!skip(r, ',')) return other(EXTENT_WRONG);
    b = read_sum(r);
    return skip(r, ')') ? apply(name, n, a, b) : other(EXTENT_WRONG);
}

static Extent read_power(Reader *r) {
    Extent base = read_primary(r), x = base;
    if (!skip(r, '^')) return x;
    Extent power = read_number(r);
    if (power.kind != EXTENT_KNOWN || power.c < 1 || power.c > 64) return other(EXTENT_WRONG);
    while (--power.c) x = product(x, base);
    return x;
}

static Extent read_product(Reader *r) {
    Extent x = read_power(r);
    while (skip(r, '*')) x = product(x, read_power(r));
    return x;
}

static Extent read_sum(Reader *r) {
    if (r->depth++ == DEPTH) return other(EXTENT_WRONG);
    Extent minus = known(-1), x = skip(r, '-') ? product(minus, read_product(r)) : read_product(r);
    for (;;) {
        if (skip(r, '+'))
            x = sum(x, read_product(r));
        else if (skip(r, '-'))
            x = sum(x, product(minus, read_product(r)));
        else
            break;
    }
    r->depth--;
    return x;
}

Extent extent_of(const Variables *v, const char *text) {
    Reader r = {v, text, 0};
    Extent x = read_sum(&r);
    skip(&r, ' ');
    return *r.at ? other(EXTENT_WRONG) : x;
}

/* ---- solving */

/* One pass over all extents; true if it found the value of another variable. */
static bool solve_more(const jaxcc_program *p, const NpzArray *const *in, Variables *v) {
    bool more = false;
    for (int32_t i = 0; i < p->n_in; i++)
        for (int32_t k = 0; k < p->in[i].rank; k++) {
            Extent x = extent_of(v, p->in[i].extents[k]);
            int64_t rest;
            if (x.kind != EXTENT_LINEAR || __builtin_sub_overflow(in[i]->dims[k], x.c, &rest)) continue;
            if (x.k == -1 ? rest == INT64_MIN : rest % x.k) continue;
            v->at[x.variable] = (Variable){v->at[x.variable].name, true, rest / x.k};
            more = true;
        }
    return more;
}

static void variables_text(const Variables *v, const char *extent, char *to, size_t room) {
    size_t n = 0;
    to[0] = 0;
    for (uint32_t i = 0; i < v->n && n < room; i++)
        if (v->at[i].known && strstr(extent, v->at[i].name) && strcmp(extent, v->at[i].name))
            n += (size_t)snprintf(to + n, room - n, "%s%s = %lld", n ? ", " : ", where ", v->at[i].name,
                                  (long long)v->at[i].value);
}

static bool check_extent(const jaxcc_type *t, int32_t k, const NpzArray *a, const Variables *v) {
    char where[200], shape[400];
    const char *text = t->extents[k];
    Extent x = extent_of(v, text);
    print_type(shape, sizeof shape, t->dtype, a);
    if (x.kind == EXTENT_WRONG) return run_error("input '%s': extent '%s' cannot be computed", t->name, text);
    if (x.kind == EXTENT_LINEAR)
        return run_error("input '%s' is %s, but no value of '%s' makes extent %d, '%s', equal to %lld", t->name, shape,
                         v->at[x.variable].name, k, text, (long long)a->dims[k]);
    if (x.kind != EXTENT_KNOWN || x.c == a->dims[k]) return true;
    variables_text(v, text, where, sizeof where);
    return run_error("input '%s' is %s, but extent %d, '%s', is %lld%s", t->name, shape, k, text, (long long)x.c,
                     where);
}

bool dims_solve(const jaxcc_program *p, const NpzArray *const *in, Variables *v) {
    while (solve_more(p, in, v)) continue;
    for (int32_t i = 0; i < p->n_in; i++)
        for (int32_t k = 0; k < p->in[i].rank; k++)
            if (!check_extent(&p->in[i], k, in[i], v)) return false;
    for (int32_t i = 0; i < p->n_dims; i++)
        if (!v->at[i].known)
            return run_error("dimension '%s' does not follow from the inputs' shapes; give it by -D %s=N",
                             v->at[i].name, v->at[i].name);
    return true;
}

bool dims_of(const jaxcc_type *t, const Variables *v, int64_t *dims, bool *computed) {
    *computed = false;
    for (int32_t i = 0; i < t->rank; i++) {
        Extent x = extent_of(v, t->extents[i]);
        if (x.kind == EXTENT_FOREIGN) *computed = true;
        if (x.kind != EXTENT_KNOWN && x.kind != EXTENT_FOREIGN)
            return run_error("'%s': extent '%s' cannot be computed", t->name, t->extents[i]);
        if (x.kind == EXTENT_KNOWN && x.c < 0)
            return run_error("'%s': extent '%s' is negative: %lld", t->name, t->extents[i], (long long)x.c);
        dims[i] = x.c;
    }
    return !*computed;
}
