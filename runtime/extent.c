#include "extent.h"
#include <stdio.h>
#include <string.h>

/* ---- an expression, evaluated as it is read */

enum { DEPTH = 24 }; /* of parentheses; what it takes of the stack, tests/stack.sh counts */
typedef struct {
    const jaxcc_rt_variables *v;
    const char *at;
    int depth;
} Reader;

static jaxcc_rt_extent known(int64_t c) { return (jaxcc_rt_extent){.kind = EXTENT_KNOWN, .c = c}; }
static jaxcc_rt_extent other(jaxcc_rt_extent_kind kind) { return (jaxcc_rt_extent){.kind = kind}; }

/* The result for two operands that are not both known: the worse kind. */
static jaxcc_rt_extent mixed(jaxcc_rt_extent a, jaxcc_rt_extent b) {
    if (a.kind == EXTENT_WRONG || b.kind == EXTENT_WRONG) return other(EXTENT_WRONG);
    return other(a.kind == EXTENT_FOREIGN || b.kind == EXTENT_FOREIGN ? EXTENT_FOREIGN : EXTENT_OTHER);
}

static jaxcc_rt_extent sum(jaxcc_rt_extent a, jaxcc_rt_extent b) {
    if (a.kind > EXTENT_LINEAR || b.kind > EXTENT_LINEAR) return mixed(a, b);
    if (a.kind == EXTENT_LINEAR && b.kind == EXTENT_LINEAR && a.variable != b.variable) return mixed(a, b);
    jaxcc_rt_extent r = a.kind == EXTENT_LINEAR ? a : b;
    if (__builtin_add_overflow(a.c, b.c, &r.c) || __builtin_add_overflow(a.k, b.k, &r.k)) return other(EXTENT_WRONG);
    if (r.k == 0) r.kind = EXTENT_KNOWN;
    return r;
}

static jaxcc_rt_extent product(jaxcc_rt_extent a, jaxcc_rt_extent b) {
    if (a.kind == EXTENT_LINEAR && b.kind == EXTENT_KNOWN) return product(b, a);
    if (a.kind != EXTENT_KNOWN || b.kind > EXTENT_LINEAR) return mixed(a, b);
    jaxcc_rt_extent r = b;
    if (__builtin_mul_overflow(a.c, b.c, &r.c) || __builtin_mul_overflow(a.c, b.k, &r.k)) return other(EXTENT_WRONG);
    if (r.k == 0) r.kind = EXTENT_KNOWN;
    return r;
}

/* floordiv and mod as in Python: the remainder has the divisor's sign. */
static jaxcc_rt_extent apply(const char *name, size_t n, jaxcc_rt_extent a, jaxcc_rt_extent b) {
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

static jaxcc_rt_extent read_sum(Reader *r);

static jaxcc_rt_extent read_number(Reader *r) {
    int64_t x = 0;
    for (; *r->at >= '0' && *r->at <= '9'; r->at++)
        if (__builtin_mul_overflow(x, 10, &x) || __builtin_add_overflow(x, *r->at - '0', &x))
            return other(EXTENT_WRONG);
    return known(x);
}

static jaxcc_rt_extent variable(const Reader *r, const char *name, size_t n) {
    for (uint32_t i = 0; i < r->v->n; i++) {
        const jaxcc_rt_variable *v = &r->v->at[i];
        if (strlen(v->name) != n || memcmp(v->name, name, n)) continue;
        return v->known ? known(v->value) : (jaxcc_rt_extent){EXTENT_LINEAR, 0, 1, i};
    }
    return other(EXTENT_FOREIGN);
}

static jaxcc_rt_extent read_primary(Reader *r) {
    jaxcc_rt_extent a, b;
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

static jaxcc_rt_extent read_power(Reader *r) {
    jaxcc_rt_extent base = read_primary(r), x = base;
    if (!skip(r, '^')) return x;
    jaxcc_rt_extent power = read_number(r);
    if (power.kind != EXTENT_KNOWN || power.c < 1 || power.c > 64) return other(EXTENT_WRONG);
    while (--power.c) x = product(x, base);
    return x;
}

static jaxcc_rt_extent read_product(Reader *r) {
    jaxcc_rt_extent x = read_power(r);
    while (skip(r, '*')) x = product(x, read_power(r));
    return x;
}

static jaxcc_rt_extent read_sum(Reader *r) {
    if (r->depth++ == DEPTH) return other(EXTENT_WRONG);
    jaxcc_rt_extent minus = known(-1), x = skip(r, '-') ? product(minus, read_product(r)) : read_product(r);
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

jaxcc_rt_extent jaxcc_rt_extent_of(const jaxcc_rt_variables *v, const char *text) {
    Reader r = {v, text, 0};
    jaxcc_rt_extent x = read_sum(&r);
    skip(&r, ' ');
    return *r.at ? other(EXTENT_WRONG) : x;
}

/* ---- solving */

bool jaxcc_rt_solve_more(const jaxcc_type *t, int32_t n, const int64_t *const *shapes, jaxcc_rt_variables *v) {
    bool more = false;
    for (int32_t i = 0; i < n; i++)
        for (int32_t k = 0; k < t[i].rank; k++) {
            jaxcc_rt_extent x = jaxcc_rt_extent_of(v, t[i].extents[k]);
            int64_t rest;
            if (x.kind != EXTENT_LINEAR || __builtin_sub_overflow(shapes[i][k], x.c, &rest)) continue;
            if (x.k == -1 ? rest == INT64_MIN : rest % x.k) continue;
            v->at[x.variable] = (jaxcc_rt_variable){v->at[x.variable].name, true, rest / x.k};
            more = true;
        }
    return more;
}

/* ", where b = 3": the variables that the extent is computed from. */
static void values_text(const jaxcc_rt_variables *v, const char *extent, char *to, size_t room) {
    size_t n = 0;
    for (uint32_t i = 0; i < v->n && n < room; i++)
        if (v->at[i].known && strstr(extent, v->at[i].name) && strcmp(extent, v->at[i].name))
            n += (size_t)snprintf(to + n, room - n, "%s%s = %lld", n ? ", " : ", where ", v->at[i].name,
                                  (long long)v->at[i].value);
}

static bool is_number(const char *text) {
    while ('0' <= *text && *text <= '9') text++;
    return !*text;
}
bool jaxcc_rt_extent_differs(const jaxcc_rt_variables *v, const jaxcc_type *t, int32_t k, int64_t is, char *why,
                             size_t room) {
    const char *text = t->extents[k];
    jaxcc_rt_extent x = jaxcc_rt_extent_of(v, text);
    if (x.kind == EXTENT_OTHER || (x.kind == EXTENT_KNOWN && x.c == is)) return false;
    if (x.kind == EXTENT_LINEAR)
        snprintf(why, room, "no value of '%s' makes extent %d, '%s', equal to %lld", v->at[x.variable].name, k, text,
                 (long long)is);
    else if (x.kind != EXTENT_KNOWN)
        snprintf(why, room, "extent %d, '%s', cannot be computed", k, text);
    else {
        int n = is_number(text) ? snprintf(why, room, "extent %d must be %s", k, text)
                                : snprintf(why, room, "extent %d, '%s', is %lld", k, text, (long long)x.c);
        if (n > 0 && (size_t)n < room) values_text(v, text, why + n, room - (size_t)n);
    }
    return true;
}
