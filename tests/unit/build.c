/* The builder: programs written with each of its functions typecheck, and read again as they print. */
#include "passes/build.h"
#include "parse/parse.h"
#include "typecheck/check.h"
#include <criterion/criterion.h>
#include <signal.h>

static Arena *arena;
static Ctx *cx;
static Builder b;
static Tables tables;
static void open_builder(void) {
    cx = ctx_new(arena = arena_open());
    diags_source(cx->diags, "text", S(""));
    tables = (Tables){0};
    b = (Builder){.cx = cx, .tables = &tables};
}
static void close_builder(void) { arena_close(arena); }
TestSuite(build, .init = open_builder, .fini = close_builder);

static Type type(Dtype d, uint32_t rank, const Dim *dims) { return type_of(cx->types, d, rank, dims); }
static Val input(Dtype d, uint32_t rank, const Dim *dims) { return val_new(cx, type(d, rank, dims), (Span){0}); }
#define INPUT(d, ...) input(d, sizeof((Dim[]){__VA_ARGS__}) / sizeof(Dim), (Dim[]){__VA_ARGS__})
static Val scalar(Dtype d) { return input(d, 0, NULL); }

/* What was built, as a program, is well typed and reads again as it prints; its text. */
static Jaxpr *whole(uint32_t nin, const Val *in, uint32_t nout, const Val *out) {
    Jaxpr *j = arena_new(arena, Jaxpr, 1);
    *j =
        (Jaxpr){.consts = {b.consts.at, b.consts.n}, .in = {(Val *)in, nin}, .out = {(Val *)out, nout}, .eqns = b.eqns};
    return j;
}
static const char *written(const Jaxpr *j) {
    cr_assert_not(b.failed, "building failed");
    cr_assert(check(cx, (Jaxpr *)j), "it does not typecheck");
    Text t = {.arena = arena};
    jaxpr_print(cx, j, &t);
    Str text = {t.at, t.n}, why;
    cx->passes = true; /* what passes write may hold their own primitives */
    Jaxpr *again = parse(cx, diags_source(cx->diags, "again", text));
    cr_assert(again && check(cx, again), "%s", str_c(arena, text));
    cr_assert(jaxpr_equal(cx, j, again, &why), "%.*s: %s", SF(why), str_c(arena, text));
    return str_c(arena, text);
}
static const char *text_of(uint32_t nin, const Val *in, Val out) { return written(whole(nin, in, 1, &out)); }
static bool has(const char *text, const char *part) { return strstr(text, part) != NULL; }

/* ---- elementwise */
typedef struct {
    Prim prim;
    uint32_t n; /* operands */
    union {
        Val (*f1)(Builder *, Val);
        Val (*f2)(Builder *, Val, Val);
        Val (*f3)(Builder *, Val, Val, Val);
    };
} Elementwise;
#undef B_unary_YES
#undef B_binary_YES
#undef B_ternary_YES
#define B_unary_YES(id) {P_##id, 1, {.f1 = b_##id}},
#define B_binary_YES(id) {P_##id, 2, {.f2 = b_##id}},
#define B_ternary_YES(id) {P_##id, 3, {.f3 = b_##id}},
static const Elementwise elementwise[] = {
#define NO_LOWERING NO
#define POINT(f) YES
#define STDLIB(f) YES
#define PRIM(id, text, arity, type, simplify, facts, lowering) B_FUNCTION(arity, lowering, id)
#include "prims.def"
};
/* An element type that the primitive takes. */
static Dtype operand_of(const Elementwise *e) {
    static const Dtype tried[] = {DT_f32, DT_c64, DT_i32};
    Diags *kept = cx->diags;
    Dtype d = DT_none;
    for (uint32_t i = 0; i < 3 && !d; i++) {
        Type t = type(tried[i], 0, NULL), in[3] = {t, t, t}, out = 0;
        Val v[3] = {scalar(tried[i]), scalar(tried[i]), scalar(tried[i])}, y = val_new(cx, 0, (Span){0});
        cx->diags = diags_new(arena);
        diags_source(cx->diags, "text", S(""));
        if (infer(cx, &(Eqn){.prim = e->prim, .in = {v, e->n}, .out = {&y, 1}}, in, &out)) d = tried[i];
    }
    cx->diags = kept;
    return d;
}
Test(build, each_elementwise_primitive_has_a_function) {
    enum { N = sizeof elementwise / sizeof *elementwise };
    cr_assert_gt(N, 60);
    for (const Elementwise *e = elementwise; e < elementwise + N; e++) {
        Dtype d = operand_of(e);
        cr_assert(d, "%s takes none of them", prim_name[e->prim]);
        Val in[3] = {INPUT(d, 3), INPUT(d, 3), INPUT(d, 3)};
        b.eqns = (Eqns){0};
        Val y = e->n == 1 ? e->f1(&b, in[0]) : e->n == 2 ? e->f2(&b, in[0], in[1]) : e->f3(&b, in[0], in[1], in[2]);
        cr_assert_eq(b.eqns.n, 1);
        const Eqn *made = &b.eqns.at[0];
        cr_assert_eq(made->prim, e->prim);
        cr_assert(made->in.n == e->n && memcmp(made->in.at, in, e->n * sizeof *in) == 0, "%s: the order of operands",
                  prim_name[e->prim]);
        text_of(e->n, in, y);
    }
}
Test(build, elementwise_with_parameters) {
    Val x = INPUT(DT_f32, 3), z = INPUT(DT_c64, 3), i = INPUT(DT_i32, 3), p = INPUT(DT_bool, 3);
    Val in[] = {x, z, i, p}, one = b_full_like(&b, x, 1), two = b_full_like(&b, x, 2);
    Val out[] = {b_integer_pow(&b, x, -2),
                 b_round(&b, x, true),
                 b_round(&b, x, false),
                 b_reduce_precision(&b, x, 5, 10),
                 b_conj(&b, z),
                 b_fma(&b, x, one, two),
                 b_clamp(&b, one, x, two),
                 b_select_n(&b, i, 3, (Val[]){x, one, two}),
                 b_select(&b, p, one, two),
                 b_convert(&b, x, DT_f64),
                 b_bitcast(&b, x, DT_u32),
                 b_zeros_like(&b, z),
                 b_add_any(&b, one, two)};
    const char *text = written(whole(4, in, sizeof out / sizeof *out, out));
    cr_assert(has(text, "integer_pow[y=-2]"));
    cr_assert(has(text, "rounding_method=RoundingMethod.TO_NEAREST_EVEN") || has(text, "rounding_method=1"), "%s",
              text);
    cr_assert(has(text, "exponent_bits=5"));
    cr_assert_eq(b_convert(&b, x, DT_f32), x);
}

/* ---- failures */
Test(build, a_failure_is_no_number) {
    Val x = INPUT(DT_f32, 3), y = INPUT(DT_f32, 4);
    uint32_t n;
    Val bad = b_add(&b, x, y);
    cr_assert(b.failed && diag_errors(cx->diags) == 1);
    cr_assert_eq(bad, VAL_FAILED);
    cr_assert_neq(bad, 0);
    n = b.eqns.n;
    cr_assert_eq(b_sin(&b, bad), VAL_FAILED);
    cr_assert_eq(b_mul(&b, x, x), VAL_FAILED); /* nothing more is written */
    cr_assert_eq(b_reshape(&b, bad, 1, (Dim[]){3}), VAL_FAILED);
    cr_assert_eq(b_convert(&b, bad, DT_f32), VAL_FAILED);
    Vals many = build_many(&b, P_sort, 2, (Val[]){x, bad}, 0, NULL, 2, NULL);
    cr_assert(many.n == 2 && many.at[0] == VAL_FAILED && many.at[1] == VAL_FAILED);
    cr_assert_eq(b.eqns.n, n);
    cr_assert_eq(diag_errors(cx->diags), 1); /* what follows from it is not reported */
}
#ifndef NDEBUG
Test(build, no_value_is_no_operand, .signal = SIGABRT) { b_sin(&b, 0); }
#endif
