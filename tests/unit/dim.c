#include "type.h"
#include <criterion/criterion.h>

static Types *ts;
static Arena *arena;
static Dim a, b, c;
static void open_types(void) {
    ts = types_new(arena = arena_open());
    a = dim_symbol(ts, S("a"));
    b = dim_symbol(ts, S("b"));
    c = dim_symbol(ts, S("c"));
}
static void close_types(void) { arena_close(arena); }
TestSuite(dim, .init = open_types, .fini = close_types);

static void is_text(Dim d, const char *want) {
    char *got = str_c(arena, dim_text(arena, ts, d, NULL, NULL));
    cr_assert_str_eq(got, want);
}

Test(dim, polynomials_have_a_normal_form) {
    Dim x = dim_add(ts, dim_mul(ts, 2, b), 1);
    is_text(x, "2*b + 1");
    cr_assert_eq(x, dim_add(ts, dim_add(ts, b, 1), b));
    cr_assert_eq(dim_sub(ts, x, x), 0);
    cr_assert_eq(dim_sub(ts, x, dim_mul(ts, b, 2)), 1);
    cr_assert_eq(dim_mul(ts, x, 0), 0);
    is_text(dim_mul(ts, dim_add(ts, a, b), dim_add(ts, a, b)), "2*a*b + b^2 + a^2");
    is_text(dim_sub(ts, 3, b), "- b + 3");
    cr_assert_eq(dim_mul(ts, a, b), dim_mul(ts, b, a));
}

/* As shape_poly.py prints them. */
Test(dim, text_of_operations) {
    Dim cb = dim_sub(ts, c, b);
    is_text(dim_add(ts, dim_max(ts, -1, cb), 1), "max(- 1, c - b) + 1");
    Dim least = dim_min(ts, dim_sub(ts, c, 1), b);
    Dim inner = dim_max(ts, 0, dim_sub(ts, dim_add(ts, dim_sub(ts, 0, least), b), 1));
    is_text(dim_floordiv(ts, inner, b), "floordiv(max(0, - min(c - 1, b) + b - 1), b)");
    is_text(dim_mod(ts, b, 2), "mod(b, 2)");
}

Test(dim, division) {
    cr_assert_eq(dim_floordiv(ts, dim_add(ts, dim_mul(ts, 2, b), 1), 2), b);
    cr_assert_eq(dim_mod(ts, dim_add(ts, dim_mul(ts, 2, b), 1), 2), 1);
    cr_assert_eq(dim_floordiv(ts, dim_mul(ts, dim_mul(ts, a, b), 6), dim_mul(ts, 3, a)), dim_mul(ts, 2, b));
    is_text(dim_floordiv(ts, b, 2), "floordiv(b, 2)");
    cr_assert_eq(dim_floordiv(ts, -7, 2), -4);
    cr_assert_eq(dim_mod(ts, -7, 2), 1);
    cr_assert_eq(dim_floordiv(ts, b, 0), DIM_TOO_LARGE);
    cr_assert_eq(dim_floordiv(ts, dim_sub(ts, dim_mul(ts, a, a), dim_mul(ts, b, b)), dim_add(ts, a, b)),
                 dim_sub(ts, a, b));
}

Test(dim, bounds_decide) {
    cr_assert_eq(dim_max(ts, b, 0), b);
    cr_assert_eq(dim_min(ts, b, 0), 0);
    cr_assert_eq(dim_max(ts, b, dim_add(ts, b, 1)), dim_add(ts, b, 1));
    cr_assert_eq(dim_equal(ts, b, dim_add(ts, b, 1), false), 0);
    cr_assert_eq(dim_equal(ts, b, c, false), -1);
    cr_assert_eq(dim_equal(ts, b, 3, false), -1);
    cr_assert_eq(dim_equal(ts, b, 0, false), 0);
    cr_assert_eq(dim_equal(ts, b, 0, true), -1);
    cr_assert_eq(dim_at_most(ts, dim_mul(ts, 2, b), b, true), -1);
    cr_assert_eq(dim_equal(ts, dim_mul(ts, 2, b), dim_mul(ts, 3, b), false), 0);
    cr_assert_eq(dim_equal(ts, dim_mul(ts, 2, b), dim_add(ts, b, 1), false), -1);
    cr_assert_eq(dim_at_most(ts, dim_mul(ts, 2, b), b, false), 0);
    cr_assert_eq(dim_at_most(ts, 0, b, false), 1);
    cr_assert_eq(dim_equal(ts, dim_add(ts, b, 4), 3, false), 0);
    cr_assert_eq(dim_at_most(ts, dim_floordiv(ts, b, 2), dim_add(ts, b, 5), false), -1);
    cr_assert_eq(dim_at_most(ts, b, dim_mul(ts, 2, b), false), 1);
    cr_assert_eq(dim_at_most(ts, dim_add(ts, b, 1), b, false), 0);
}

Test(dim, bound_dimensions_agree_by_variable) {
    Dim v = dim_bound(ts, 1), w = dim_bound(ts, 2);
    is_text(v, "v1");
    cr_assert_eq(dim_bound(ts, 1), v);
    cr_assert_eq(dim_equal(ts, v, w, false), 0);
    cr_assert_eq(dim_equal(ts, v, 3, false), 0);
    cr_assert(dim_has_bound(ts, dim_add(ts, dim_mul(ts, v, b), 1)));
    cr_assert(!dim_has_bound(ts, b));
}

Test(dim, special) {
    is_text(dim_special(ts, DIM_HOLE, 0), "None");
    is_text(dim_special(ts, DIM_INDBIDX, 2), "InDBIdx(val=2)");
    cr_assert_neq(dim_special(ts, DIM_DBIDX, 0), dim_special(ts, DIM_DBIDX, 1));
}

static Dim five(void *user, Dim d) { return d == *(Dim *)user ? 5 : d; }

Test(dim, substitution) {
    Dim x = dim_add(ts, dim_mul(ts, b, c), dim_floordiv(ts, b, 2));
    is_text(dim_substitute(ts, x, five, &b), "5*c + 2");
}

Test(dim, too_large_stays_too_large) {
    Dim huge = INT64_C(1) << 61;
    cr_assert_eq(dim_add(ts, huge, huge), INT64_C(1) << 62);
    cr_assert_eq(dim_mul(ts, huge, 4), DIM_TOO_LARGE);
    cr_assert_eq(dim_mul(ts, DIM_TOO_LARGE, b), DIM_TOO_LARGE);
    cr_assert_eq(dim_sub(ts, DIM_TOO_LARGE, DIM_TOO_LARGE), DIM_TOO_LARGE);
    Dim x = dim_add(ts, a, b);
    for (int i = 0; i < 40; i++) x = dim_mul(ts, x, dim_add(ts, x, c));
    cr_assert_eq(x, DIM_TOO_LARGE);
    Dim y = b;
    for (int i = 0; i < 200; i++) y = dim_floordiv(ts, dim_add(ts, y, y), dim_add(ts, c, y));
    cr_assert_eq(y, DIM_TOO_LARGE);
}
