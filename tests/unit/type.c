#include "type.h"
#include <criterion/criterion.h>

static Types *ts;
static Arena *arena;
static void open_types(void) { ts = types_new(arena = arena_open()); }
static void close_types(void) { arena_close(arena); }
TestSuite(type, .init = open_types, .fini = close_types);

static void is_text(Type t, const char *want) {
    char *got = str_c(arena, type_text(arena, ts, t, NULL, NULL));
    cr_assert_str_eq(got, want);
}

Test(type, equal_types_are_one_number) {
    Dim a[] = {3, 4}, b[] = {3, 4}, c[] = {4, 3};
    cr_assert_eq(type_of(ts, DT_f32, 2, a), type_of(ts, DT_f32, 2, b));
    cr_assert_neq(type_of(ts, DT_f32, 2, a), type_of(ts, DT_f32, 2, c));
    cr_assert_neq(type_of(ts, DT_f32, 2, a), type_of(ts, DT_f64, 2, a));
    cr_assert_neq(type_of(ts, DT_f32, 2, a), type_of(ts, DT_f32, 1, a));
    cr_assert_neq(type_of(ts, DT_f32, 0, NULL), 0);
}

Test(type, many_types) {
    Type first[1000];
    for (int round = 0; round < 2; round++)
        for (Dim d = 0; d < 1000; d++) {
            Type t = type_of(ts, DT_i8, 1, &d);
            if (round) cr_assert_eq(t, first[d]);
            first[d] = t;
            cr_assert_eq(type_at(ts, t)->dims[0], d);
        }
}

Test(type, text) {
    Dim dims[] = {8, dim_symbol(ts, S("b"))};
    is_text(type_of(ts, DT_f32, 0, NULL), "f32[]");
    is_text(type_of(ts, DT_bf16, 2, dims), "bf16[8,b]");
    is_text(type_of(ts, DT_key_fry, 1, dims), "key<fry>[8]");
    is_text(type_of(ts, DT_float0, 1, dims), "float0[8]");
    is_text(type_of(ts, DT_tok, 0, NULL), "Tok");
    is_text(type_of(ts, DT_unit, 0, NULL), "*");
}

Test(type, extra_is_carried_and_dropped) {
    Dim dims[] = {8, 4};
    Type plain = type_of(ts, DT_f32, 2, dims);
    Str shards[] = {S("x"), {NULL, 0}};
    TypeExtra x = {.shards = shards, .nshards = 2, .varying = S("{V:y}")};
    Type t = type_with_extra(ts, plain, &x);
    is_text(t, "f32[8@x,4]{V:y}");
    cr_assert_neq(t, plain);
    cr_assert_eq(t, type_with_extra(ts, plain, &x));
    cr_assert_eq(type_plain(ts, t), plain);
    is_text(type_with_extra(ts, plain, &(TypeExtra){.ref = S("Ref<smem>")}), "Ref<smem>{f32[8,4]}");
    is_text(type_with_extra(ts, plain, &(TypeExtra){.space = S("<host>")}), "f32<host>[8,4]");
    is_text(type_with_extra(ts, plain, &(TypeExtra){.named = S(";i:4")}), "f32[8,4;i:4]");
    Type scalar = type_of(ts, DT_i32, 0, NULL);
    is_text(type_with_extra(ts, scalar, &(TypeExtra){.bound = S("{≤5}")}), "bint{≤5}[]");
    cr_assert_eq(type_with_extra(ts, plain, &(TypeExtra){0}), plain);
}

Test(type, dtypes_by_both_names) {
    cr_assert_eq(dtype_named(S("f32")), DT_f32);
    cr_assert_eq(dtype_named(S("float32")), DT_f32);
    cr_assert_eq(dtype_named(S("key<fry>")), DT_key_fry);
    cr_assert_eq(dtype_named(S("bool")), DT_bool);
    cr_assert_eq(dtype_named(S("f3")), DT_none);
}

static Dim to_seven(void *user, Dim d) { return d == *(Dim *)user ? 7 : d; }

Test(type, substitution_and_size) {
    Dim b = dim_symbol(ts, S("b")), dims[] = {3, dim_add(ts, b, 1)};
    Type t = type_of(ts, DT_f32, 2, dims);
    is_text(type_substitute(ts, t, to_seven, &b), "f32[3,8]");
    Str size = dim_text(arena, ts, type_size(ts, t), NULL, NULL);
    cr_assert(str_is(size, "3*b + 3"));
    Dim huge[] = {INT64_C(1) << 40, INT64_C(1) << 40};
    cr_assert_eq(type_size(ts, type_of(ts, DT_i8, 2, huge)), DIM_TOO_LARGE);
}
