/* Memory, interning, strings, places. */
#include "diag.h"
#include "intern.h"
#include <criterion/criterion.h>
#include <stdint.h>

static Arena *arena;
static void open_arena(void) { arena = arena_open(); }
static void close_arena(void) { arena_close(arena); }
TestSuite(base, .init = open_arena, .fini = close_arena);

Test(base, memory_is_zero_and_aligned) {
    for (size_t n = 0; n < 3000; n += 7) {
        unsigned char *p = arena_alloc(arena, 1, 64, n);
        cr_assert_eq((uintptr_t)p % 64, 0);
        for (size_t i = 0; i < n; i++) cr_assert_eq(p[i], 0);
        memset(p, 255, n);
    }
    unsigned char *large = arena_new(arena, unsigned char, 50000000);
    cr_assert_eq(large[49999999], 0);
}

Test(base, growing_slices) {
    struct {
        int *at;
        uint32_t n, cap;
    } s = {0};
    for (int i = 0; i < 1000; i++) push(arena, &s, i);
    int sum = 0;
    each(int, x, s) sum += *x;
    cr_assert_eq(sum, 499500);
}

Test(base, equal_bytes_have_equal_numbers) {
    Intern t = {.arena = arena};
    for (uint32_t round = 0; round < 2; round++)
        for (uint32_t i = 0; i < 5000; i++) {
            _Bool fresh;
            cr_assert_eq(intern(&t, &i, sizeof i, &fresh), i);
            cr_assert_eq(fresh, round == 0);
        }
    cr_assert_neq(intern(&t, "", 0, NULL), intern(&t, "\0", 1, NULL));
}

Test(base, distance_of_spellings) {
    cr_assert_eq(str_distance(S("sin"), S("sin")), 0);
    cr_assert_eq(str_distance(S("sin"), S("sinh")), 1);
    cr_assert_eq(str_distance(S("weights"), S("wieghts")), 1);
    cr_assert_eq(str_distance(S(""), S("abc")), 3);
}

static bool meant(const char *given, const char *const *names, const char *want) {
    Similar s = similar_to(str(given), edits_of(str(given), 3));
    for (; *names; names++) similar_offer(&s, str(*names));
    return str_is(s.best, want);
}

Test(base, what_is_meant) {
    static const char *const prims[] = {"sign",   "sinh", "sin",  "cos",        "cosh",       "asin", "tan",
                                        "tanh",   "atan", "max",  "mul",        "sub",        "log",  "log1p",
                                        "lgamma", "exp",  "exp2", "reduce_sum", "reduce_max", NULL};
    static const struct {
        const char *given, *want;
    } cases[] = {{"sinn", "sin"},
                 {"sihn", "sinh"},
                 {"sgin", "sign"},
                 {"coss", "cos"},
                 {"tann", "tan"},
                 {"SIN", "sin"},
                 {"mmul", "mul"},
                 {"muul", "mul"},
                 {"mxa", "max"},
                 {"loog", "log"},
                 {"epx", "exp"},
                 {"expp", "exp"},
                 {"reduce_smu", "reduce_sum"},
                 {"reduce-sum", "reduce_sum"},
                 {"reducesum", "reduce_sum"},
                 {"banana", ""},
                 {"si", ""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_expect(meant(cases[i].given, prims, cases[i].want), "%s", cases[i].given);
    static const char *const names[] = {"weight", "weights", "axes", NULL};
    cr_expect(meant("weigths", names, "weights"));
    cr_expect(meant("weightt", names, "weight"));
    cr_expect(meant("axis", names, "axes"));
}

Test(base, places) {
    Diags *d = diags_new(arena);
    uint32_t f = diags_source(d, "f", S("ab\n\ncd"));
    LineCol a = diag_where(d, (Span){f, 1, 1}), b = diag_where(d, (Span){f, 3, 0}), c = diag_where(d, (Span){f, 6, 0});
    cr_assert(a.line == 1 && a.col == 2);
    cr_assert(b.line == 2 && b.col == 1);
    cr_assert(c.line == 3 && c.col == 3);
}

Test(base, warnings_by_option) {
    Diags *d = diags_new(arena);
    cr_assert(diag_option(d, S("error")));
    diag_warn(d, W_name, (Span){0}, "x");
    cr_assert_eq(diag_errors(d), 1);
    cr_assert(diag_option(d, S("no-name")));
    diag_warn(d, W_name, (Span){0}, "x");
    cr_assert_eq(diag_errors(d), 1);
    cr_assert_not(diag_option(d, S("nothing-like-it")));
}
