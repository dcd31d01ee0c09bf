/* The builder: programs written with each of its functions typecheck, and read again as they print. */
#include "passes/build.h"
#include "control.h"
#include "parse/parse.h"
#include "typecheck/check.h"
#include "crash.h"
#include "compiler/options.h"
#include <criterion/criterion.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>

static Arena *arena;
static Ctx *cx;
static Builder b;
static void open_builder(void) {
    static const Options defaults;
    cx = ctx_new(arena = arena_open());
    cx->options = &defaults;
    cx->dim_checks = arena_new(arena, DimChecks, 1);
    diags_source(cx->diags, "text", S(""));
    b = (Builder){.cx = cx};
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
    Jaxpr *again = parse(cx, diags_source(cx->diags, "again", text), NULL);
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
#define PRIM(id, text, arity, type, simplify, facts, jvp, transpose, vmap, lowering) B_FUNCTION(arity, lowering, id)
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
Test(build, no_value_is_no_operand, .exit_code = 3) {
    crash_report();
    b_sin(&b, 0);
}
#endif

/* ---- programs within programs */
static Type f32_of(uint32_t rank, const Dim *dims) { return type(DT_f32, rank, dims); }
static const Eqn *last(const Jaxpr *j) { return &j->eqns.at[j->eqns.n - 1]; }

Test(build, a_scan_captures_what_it_uses) {
    Val x = scalar(DT_f32), k = scalar(DT_f32), unused = scalar(DT_f32), xs = INPUT(DT_f32, 5);
    Val in[] = {x, k, unused, xs}, one = b_float(&b, DT_f32, 1);
    Inner turn = b_inner(&b, 2, (Type[]){f32_of(0, NULL), f32_of(0, NULL)});
    Val carry = b_add(&b, b_mul(&b, turn.in.at[0], k), b_mul(&b, turn.in.at[1], one));
    b_inner_end(&b, &turn, 2, (Val[]){carry, k});
    Vals y = b_scan(&b, &turn, (Loop){.length = 5, .carries = 1, .reverse = true, .unroll = 2}, 2, (Val[]){x, xs});
    const char *text = written(whole(4, in, y.n, y.at));
    Scan s = scan_of(last(whole(4, in, y.n, y.at)));
    cr_assert(s.body && s.reverse && s.consts.n == 1 && s.consts.at[0] == k, "%s", text);
    cr_assert(has(text, "num_consts=1") && has(text, "unroll=2") && has(text, "1.0:f32[]"), "%s", text);
    cr_assert(turn.captured.n == 1 && turn.captured.at[0] == k);
    cr_assert_neq(s.body->in.at[0], k); /* a value is bound once */
}
Test(build, a_scan_keeps_the_parameters_of_another) {
    Val x = scalar(DT_f32);
    Param other = {.key = K_other, .name = S("_split_transpose"), .value = {.kind = V_BOOL, .i = true}};
    Eqn like = {.prim = P_scan, .params = {&other, 1}};
    Inner turn = b_inner_like(&b, 1, &x);
    b_inner_end(&b, &turn, 1, (Val[]){b_sin(&b, turn.in.at[0])});
    Vals y = b_scan(&b, &turn, (Loop){.length = 5, .carries = 1, .like = &like}, 1, &x);
    cr_assert(has(written(whole(1, &x, 1, y.at)), "_split_transpose=True"));
}
Test(build, a_while_captures_in_both_programs) {
    Val n = scalar(DT_i32), step = scalar(DT_i32), x = INPUT(DT_f32, 3), in[] = {n, step, x};
    Val carry[] = {b_int(&b, DT_i32, 0), x};
    Inner test = b_inner_like(&b, 2, carry);
    b_inner_end(&b, &test, 1, (Val[]){b_lt(&b, test.in.at[0], n)});
    Inner turn = b_inner_like(&b, 2, carry);
    Val next[] = {b_add(&b, turn.in.at[0], step), b_add(&b, turn.in.at[1], x)};
    b_inner_end(&b, &turn, 2, next);
    Vals y = b_while(&b, &test, &turn, 2, carry);
    const char *text = written(whole(3, in, y.n, y.at));
    While w = while_of(last(whole(3, in, y.n, y.at)));
    cr_assert(w.body && w.cond_consts.n == 1 && w.cond_consts.at[0] == n, "%s", text);
    cr_assert(w.body_consts.n == 2 && w.body_consts.at[0] == step && w.body_consts.at[1] == x, "%s", text);
}
/* A branch that gives `v` times its input. */
static Inner times(Val v, Val like) {
    Inner i = b_inner_like(&b, 1, &like);
    b_inner_end(&b, &i, 1, (Val[]){b_mul(&b, i.in.at[0], v)});
    return i;
}
Test(build, branches_take_what_any_of_them_captures) {
    Val which = scalar(DT_i32), p = scalar(DT_bool), x = scalar(DT_f32), u = scalar(DT_f32), v = scalar(DT_f32);
    Val in[] = {which, p, x, u, v};
    Inner three[] = {times(u, x), times(v, x), times(x, x)};
    Val y = b_cond(&b, which, 3, three, 1, &x).at[0];
    Inner two[] = {times(u, x), times(u, x)};
    Val z = b_cond(&b, p, 2, two, 1, &x).at[0];
    const char *text = written(whole(5, in, 2, (Val[]){y, z}));
    Cond c = cond_of(&b.eqns.at[0]), d = cond_of(&b.eqns.at[1]);
    cr_assert(c.branches.n == 3 && c.in.n == 4, "%s", text);
    cr_assert(c.in.at[0] == u && c.in.at[1] == v && c.in.at[2] == x && c.in.at[3] == x, "%s", text);
    cr_assert(d.branches.n == 2 && d.in.n == 2 && d.in.at[0] == u, "%s", text);
}
Test(build, a_shared_branch_stays_shared) {
    Val which = scalar(DT_bool), x = scalar(DT_f32), u = scalar(DT_f32), in[] = {which, x, u};
    Inner f = b_inner_like(&b, 1, &x);
    Jaxpr *sine = b_inner_end(&b, &f, 1, (Val[]){b_sin(&b, f.in.at[0])});
    Val y[2];
    for (uint32_t i = 0; i < 2; i++) {
        Inner branches[] = {b_program(&b, sine, 0, NULL), times(u, x)};
        y[i] = b_cond(&b, which, 2, branches, 1, &x).at[0];
    }
    Inner same[] = {b_program(&b, sine, 0, NULL), b_program(&b, sine, 0, NULL)};
    Val z = b_cond(&b, which, 2, same, 1, &x).at[0];
    written(whole(3, in, 3, (Val[]){y[0], y[1], z}));
    for (uint32_t i = 0; i < 2; i++) {
        const Jaxpr *branch = cond_of(&b.eqns.at[i]).branches.at[0];
        cr_assert(branch->eqns.n == 1 && branch->eqns.at[0].prim == P_jit);
        cr_assert_eq(param_jaxpr(&branch->eqns.at[0], K_jaxpr), sine);
    }
    cr_assert_eq(cond_of(&b.eqns.at[2]).branches.at[1], sine);
}
Test(build, a_call_stays_a_call) {
    Val x = scalar(DT_f32), k = scalar(DT_f32), in[] = {x, k};
    Inner f = b_inner_like(&b, 1, &x);
    Jaxpr *j = b_inner_end(&b, &f, 1, (Val[]){b_mul(&b, f.in.at[0], k)});
    Val y = b_jit(&b, S("f"), &f, 1, &x).at[0];
    Inner again = b_program(&b, j, 1, &x); /* k is x here */
    Val z = b_jit(&b, S("f"), &again, 1, &y).at[0];
    const char *text = written(whole(2, in, 1, &z));
    cr_assert(b.eqns.n == 2 && has(text, "jit[") && has(text, "name=f"), "%s", text);
    const Eqn *e = b.eqns.at;
    cr_assert(e[0].in.n == 2 && e[0].in.at[0] == k && e[0].in.at[1] == x, "%s", text);
    cr_assert(e[1].in.at[0] == x && e[1].in.at[1] == y, "%s", text);
    cr_assert_eq(param_jaxpr(&e[0], K_jaxpr), param_jaxpr(&e[1], K_jaxpr));
    Vals copied = b_call(&b, j, 2, (Val[]){k, x});
    cr_assert(b.eqns.n == 3 && b.eqns.at[2].prim == P_mul && copied.at[0] == b.eqns.at[2].out.at[0]);
}
/* scan in while in cond: x, of an extent that is computed, a constant and k come from outside of all three. */
Test(build, captures_pass_through_nested_programs) {
    Val which = scalar(DT_bool), n = scalar(DT_i64), k = scalar(DT_f32), in[3] = {which, n, k}, y;
    Dim a = dim_bound(cx->types, n), two = 2;
    Val x = b_broadcast(&b, k, 1, &a, NULL), zero = b_int(&b, DT_i64, 0);
    Val table = b_const(&b, type(DT_f32, 1, &two), (float[]){1, 2});
    Inner yes = b_inner_like(&b, 1, &x);
    {
        Val carry[] = {zero, yes.in.at[0]};
        Inner test = b_inner_like(&b, 2, carry);
        b_inner_end(&b, &test, 1, (Val[]){b_lt(&b, test.in.at[0], n)});
        Inner turn = b_inner_like(&b, 2, carry);
        Inner add = b_inner(&b, 2, (Type[]){val_type(cx, x), f32_of(0, NULL)});
        Val factor = b_mul(&b, b_broadcast(&b, add.in.at[1], 1, &a, NULL), x);
        y = b_add(&b, add.in.at[0], b_mul(&b, factor, b_full(&b, k, 1, &a)));
        b_inner_end(&b, &add, 1, &y);
        y = b_scan(&b, &add, (Loop){.length = 2, .carries = 1}, 2, (Val[]){turn.in.at[1], table}).at[0];
        b_inner_end(&b, &turn, 2, (Val[]){b_add(&b, turn.in.at[0], b_int(&b, DT_i64, 1)), y});
        y = b_while(&b, &test, &turn, 2, carry).at[1];
    }
    b_inner_end(&b, &yes, 1, &y);
    Inner no = b_inner_like(&b, 1, &x);
    b_inner_end(&b, &no, 1, &x);
    Vals out = b_cond(&b, which, 2, (Inner[]){no, yes}, 1, &x);
    const char *text = written(whole(3, in, 1, out.at));
    Cond c = cond_of(last(whole(3, in, 1, out.at)));
    cr_assert(c.branches.n == 2, "%s", text);
    cr_assert_eq(c.in.at[0], n, "the scalar comes first: %s", text);
    bool captured[3] = {0};
    each(Val, v, c.in) {
        captured[0] |= *v == x, captured[1] |= *v == k, captured[2] |= *v == table;
        cr_assert_null(val_info(cx, *v)->lit, "a literal is captured: %s", text);
    }
    cr_assert(captured[0] && captured[1] && captured[2], "%s", text);
    cr_assert_eq(val_array(cx, c.branches.at[1]->out.at[0])->rank, 1);
    cr_assert_eq(b.consts.n, 1);
}
Test(build, inputs_may_be_extents_of_others) {
    Val n = scalar(DT_i64), k = scalar(DT_f32), in[2] = {n, k};
    Dim a = dim_bound(cx->types, n);
    Val x = b_broadcast(&b, k, 1, &a, NULL), both[] = {n, x};
    Inner f = b_inner_like(&b, 2, both);
    b_inner_end(&b, &f, 1, (Val[]){b_sin(&b, f.in.at[1])});
    cr_assert_eq(f.captured.n, 0);
    written(whole(2, in, 1, b_jit(&b, S("f"), &f, 2, both).at));
}
Test(build, many_inner_programs_take_linear_memory) {
    Val x = scalar(DT_f32), k = scalar(DT_f32), in[2] = {x, k}, y = x;
    for (uint32_t i = 0; i < 3000; i++) {
        Inner f = b_inner_like(&b, 1, &x);
        b_inner_end(&b, &f, 1, (Val[]){b_mul(&b, f.in.at[0], k)});
        y = b_jit(&b, S("f"), &f, 1, &y).at[0];
        Jaxpr *j = f.j;
        y = b_call(&b, j, 2, (Val[]){k, y}).at[0];
    }
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    cr_assert_lt(used.ru_maxrss, 150 << 10, "%ld KiB", used.ru_maxrss); /* a table by value each would take 400 MiB */
    cr_assert_eq(last(whole(2, in, 1, &y))->prim, P_mul);
}
Test(build, a_program_that_fails_leaves_the_one_around) {
    Val x = INPUT(DT_f32, 3), y = INPUT(DT_f32, 4);
    b_sin(&b, x);
    Inner f = b_inner_like(&b, 1, &x);
    Val z = b_add(&b, f.in.at[0], y);
    b_inner_end(&b, &f, 1, &z);
    cr_assert(b.failed && b.eqns.n == 1);
    cr_assert_eq(b_scan(&b, &f, (Loop){.length = 3, .carries = 1}, 1, &x).at[0], VAL_FAILED);
    cr_assert_eq(b_cond(&b, x, 1, &f, 1, &x).at[0], VAL_FAILED);
    cr_assert_eq(b_while(&b, &f, &f, 1, &x).at[0], VAL_FAILED);
    cr_assert_eq(b_jit(&b, S("f"), &f, 1, &x).at[0], VAL_FAILED);
    Inner g = b_inner_like(&b, 1, &z); /* what failed is an operand */
    b_inner_end(&b, &g, 1, (Val[]){b_sin(&b, g.in.at[0])});
    cr_assert_eq(b_jit(&b, S("g"), &g, 1, &z).at[0], VAL_FAILED);
    cr_assert_eq(b.eqns.n, 1);
}

/* Copies of an Inner, and the one they were copied from, mean the same wherever they run. */
Test(build, a_program_that_has_ended_never_changes) {
    Val which = scalar(DT_i32), x = scalar(DT_f32), u = scalar(DT_f32), v = scalar(DT_f32), in[] = {which, x, u, v};
    Inner f = times(u, x), three[] = {f, f, times(v, x)};
    Val y = b_cond(&b, which, 3, three, 1, &x).at[0];
    y = b_jit(&b, S("f"), &f, 1, &y).at[0];
    y = b_jit(&b, S("f"), &three[1], 1, &y).at[0];
    Inner again[] = {times(v, x), f};
    y = b_cond(&b, b_gt(&b, y, x), 2, again, 1, &y).at[0];
    Inner both[] = {f, three[2]}; /* as in the first cond, which captured the same */
    y = b_cond(&b, b_gt(&b, y, x), 2, both, 1, &y).at[0];
    const char *text = written(whole(4, in, 1, &y));
    const Eqn *e = b.eqns.at;
    cr_assert_eq(b.eqns.n, 7);
    Cond first = cond_of(&e[0]), last_one = cond_of(&e[6]);
    cr_assert_eq(first.branches.at[0], first.branches.at[1], "%s", text);
    cr_assert_eq(first.branches.at[0], last_one.branches.at[0], "%s", text);
    cr_assert_eq(param_jaxpr(&first.branches.at[0]->eqns.at[0], K_jaxpr), f.j, "%s", text);
    cr_assert(param_jaxpr(&e[1], K_jaxpr) == f.j && param_jaxpr(&e[2], K_jaxpr) == f.j, "%s", text);
    cr_assert(f.captured.n == 1 && f.j->in.n == 2 && f.j->eqns.n == 1);
}
/* f runs in a branch within a branch, beside its use in the program around; the branches have extents of their own. */
Test(build, one_inner_in_nested_programs) {
    Val which = scalar(DT_bool), n = scalar(DT_i64), k = scalar(DT_f32), in[] = {which, n, k};
    Dim a = dim_bound(cx->types, n);
    Val x = b_broadcast(&b, k, 1, &a, NULL), w = b_sin(&b, x);
    Inner f = times(x, x);
    Inner outer = b_inner_like(&b, 1, &x);
    Val y = b_cond(&b, which, 2, (Inner[]){f, times(w, x)}, 1, outer.in.at).at[0];
    y = b_jit(&b, S("f"), &f, 1, &y).at[0];
    b_inner_end(&b, &outer, 1, &y);
    y = b_cond(&b, which, 2, (Inner[]){f, outer}, 1, &x).at[0];
    y = b_jit(&b, S("f"), &f, 1, &y).at[0];
    const char *text = written(whole(3, in, 1, &y));
    cr_assert_eq(param_jaxpr(last(whole(3, in, 1, &y)), K_jaxpr), f.j, "%s", text);
}
/* The operands of existing programs may be literals, the same ones twice, and their extents may be operands too. */
Test(build, branches_with_operands_of_their_own) {
    Val which = scalar(DT_bool), n = scalar(DT_i64), k = scalar(DT_f32), in[] = {which, n, k};
    Dim a = dim_bound(cx->types, n);
    Val x = b_broadcast(&b, k, 1, &a, NULL), both[] = {n, x}, seven = b_float(&b, DT_f32, 7);
    Inner f = b_inner_like(&b, 2, both);
    Jaxpr *j = b_inner_end(&b, &f, 1, (Val[]){b_mul(&b, f.in.at[1], b_full(&b, k, 1, b_type(&b, f.in.at[1])->dims))});
    cr_assert(f.captured.n == 1 && f.captured.at[0] == k && j->in.n == 3);
    Inner scaled = b_inner_like(&b, 2, (Val[]){k, k}); /* two captured values become one */
    Jaxpr *product = b_inner_end(&b, &scaled, 1, (Val[]){b_mul(&b, scaled.in.at[0], scaled.in.at[1])});
    Inner two[] = {b_program(&b, product, 1, &seven), times(k, k)};
    Val y = b_cond(&b, which, 2, two, 1, &k).at[0];
    Inner twice[] = {b_program(&b, product, 2, (Val[]){k, k}), b_program(&b, product, 2, (Val[]){seven, y})};
    Val z = b_cond(&b, which, 2, twice, 0, NULL).at[0];
    Inner wide[] = {b_program(&b, j, 3, (Val[]){k, n, x}), b_program(&b, j, 3, (Val[]){z, n, x})};
    Val r = b_cond(&b, which, 2, wide, 0, NULL).at[0];
    written(whole(3, in, 1, &r));
}
Test(build, constants_need_no_driver) {
    Dim two = 2;
    Val t = b_const(&b, type(DT_f32, 1, &two), (float[]){1, 2}),
        u = b_const(&b, type(DT_f32, 1, &two), (float[]){1, 2});
    cr_assert(t == u && b.consts.n == 1);
    Tables shared = {0};
    Builder other[] = {{.cx = cx, .tables = &shared}, {.cx = cx, .tables = &shared}};
    Val v[2];
    for (uint32_t k = 0; k < 2; k++) v[k] = b_const(&other[k], type(DT_f32, 1, &two), (float[]){1, 2});
    cr_assert(v[0] == v[1] && v[0] != t && other[1].consts.n == 1);
}
#ifndef NDEBUG
/* Mistakes of a rule end the compiler. */
Test(build, the_last_program_ends_first, .exit_code = 3) {
    Val x = scalar(DT_f32);
    Inner f = b_inner_like(&b, 1, &x);
    b_inner_like(&b, 1, &x);
    crash_report();
    b_inner_end(&b, &f, 1, &x);
}
Test(build, a_program_ends_once, .exit_code = 3) {
    Val x = scalar(DT_f32);
    Inner outer = b_inner_like(&b, 1, &x), f = times(x, x);
    cr_assert(outer.depth == 1 && f.depth == 2);
    crash_report();
    b_inner_end(&b, &f, 1, &x);
}
Test(build, a_call_has_its_inputs, .exit_code = 3) {
    Val x = scalar(DT_f32);
    Inner f = times(x, x);
    crash_report();
    b_jit(&b, S("f"), &f, 2, (Val[]){x, x});
}
Test(build, branches_give_equally_many, .exit_code = 3) {
    Val p = scalar(DT_bool), x = scalar(DT_f32);
    Inner f = b_inner_like(&b, 1, &x);
    b_inner_end(&b, &f, 2, (Val[]){x, x});
    Inner two[] = {times(x, x), f};
    crash_report();
    b_cond(&b, p, 2, two, 1, &x);
}
Test(build, a_constant_has_numbers_as_extents, .exit_code = 3) {
    Dim n = dim_bound(cx->types, scalar(DT_i64));
    crash_report();
    b_const(&b, type(DT_f32, 1, &n), (float[]){1, 2});
}
Test(build, a_sum_to_a_lower_rank_names_its_axes, .exit_code = 3) {
    Val x = INPUT(DT_f32, 4, 3);
    Dim four = 4;
    crash_report();
    b_sum_to(&b, x, 1, &four, NULL);
}
#endif

/* ---- shapes */
static void is_type(Val v, const char *type_text) {
    cr_assert(str_is(ctx_type_text(cx, val_type(cx, v)), type_text), "%.*s is not %s",
              SF(ctx_type_text(cx, val_type(cx, v))), type_text);
}
Test(build, axes_of_extent_1) {
    Val x = INPUT(DT_f32, 3, 4), y = b_expand_dims(&b, x, 2, (int64_t[]){0, 2}),
        z = b_squeeze(&b, y, 1, (int64_t[]){2});
    is_type(y, "f32[1,3,1,4]"), is_type(z, "f32[1,3,4]");
    Val r = b_rev(&b, z, 2, (int64_t[]){1, 2});
    cr_assert(has(text_of(1, &x, r), "rev[dimensions=(1, 2)]"));
    cr_assert(b_expand_dims(&b, x, 0, NULL) == x && b_squeeze(&b, x, 0, NULL) == x && b_rev(&b, x, 0, NULL) == x);
}
Test(build, a_broadcast_is_undone) {
    static const struct {
        uint32_t rank, from;
        Dim dims[4], was[4];
        int64_t axes[4];
        bool named;      /* the axes are given */
        const char *sum; /* what is summed; NULL: nothing is */
        uint32_t eqns;
    } rows[] = {{3, 0, {2, 3, 4}, {0}, {0}, false, "axes=(0, 1, 2)", 1},          /* a scalar met an array */
                {3, 3, {2, 3, 4}, {2, 3, 4}, {0}, false, NULL, 0},                /* nothing stretched */
                {3, 3, {2, 3, 4}, {2, 1, 4}, {0}, false, "axes=(1,)", 2},         /* and 1 is put back */
                {3, 3, {2, 1, 4}, {2, 1, 1}, {0}, false, "axes=(2,)", 2},         /* 1 that is 1 is no sum */
                {3, 1, {2, 3, 4}, {3}, {1}, true, "axes=(0, 2)", 1},              /* new axes */
                {4, 2, {2, 3, 4, 5}, {1, 4}, {1, 2}, true, "axes=(0, 1, 3)", 2}}; /* both */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Val v = input(DT_f32, rows[i].rank, rows[i].dims);
        b.eqns = (Eqns){0};
        Val y = b_sum_to(&b, v, rows[i].from, rows[i].was, rows[i].named ? rows[i].axes : NULL);
        cr_assert_eq(val_type(cx, y), type(DT_f32, rows[i].from, rows[i].was), "row %zu", i);
        cr_assert_eq(b.eqns.n, rows[i].eqns, "row %zu", i);
        if (rows[i].sum) cr_assert(has(text_of(1, &v, y), rows[i].sum), "row %zu: %s", i, text_of(1, &v, y));
    }
}
Test(build, products_keep_what_they_are_told) {
    Val x = INPUT(DT_f32, 7, 2, 3), y = INPUT(DT_f32, 7, 3, 5), in[] = {x, y};
    int64_t zero = 0, one = 1, two = 2;
    Param how = {.key = K_precision, .value = {.kind = V_WORD, .s = S("Precision.HIGHEST")}};
    Contraction c = {{{&two, 1}, {&one, 1}}, {{&zero, 1}, {&zero, 1}}, DT_f64, &how};
    Val z = b_dot_general(&b, x, y, c);
    is_type(z, "f64[7,2,5]");
    const char *text = text_of(2, in, z);
    cr_assert(has(text, "dimension_numbers=(([2], [1]), ([0], [0]))") && has(text, "Precision.HIGHEST"), "%s", text);
    is_type(b_dot_general(&b, x, y, (Contraction){.batch = {{&zero, 1}, {&zero, 1}}}), "f32[7,2,3,3,5]");
}

/* ---- computed places */
Test(build, blocks_at_computed_places) {
    Val x = INPUT(DT_f32, 5, 6), i = scalar(DT_i32), j = scalar(DT_i32), in[] = {x, i, j};
    Val block = b_dynamic_slice(&b, x, (Val[]){i, j}, (Dim[]){2, 3});
    Val y = b_dynamic_update_slice(&b, x, b_neg(&b, block), (Val[]){j, i});
    is_type(block, "f32[2,3]"), is_type(y, "f32[5,6]");
    cr_assert(has(text_of(3, in, y), "slice_sizes=(2, 3)"));
    const Eqn *e = b.eqns.at + 2;
    cr_assert(e->in.n == 4 && e->in.at[0] == x && e->in.at[2] == j && e->in.at[3] == i);
    Val s = scalar(DT_f32);
    is_type(b_dynamic_slice(&b, s, NULL, NULL), "f32[]");
}
/* Rows of a batch of matrices, in every mode; a scatter writes to what a gather reads, with the same Places. */
Test(build, gather_and_scatter_are_of_one_form) {
    static const char *const modes[] = {"CLIP", "FILL_OR_DROP", "PROMISE_IN_BOUNDS"};
    static const Prim how[] = {P_scatter, P_scatter_add, P_scatter_sub, P_scatter_mul, P_scatter_min, P_scatter_max};
    int64_t zero = 0, one = 1, two = 2;
    Val x = INPUT(DT_f32, 7, 5, 6), index = INPUT(DT_i32, 7, 4, 1), in[] = {x, index};
    Places at = {.n = {{&two, 1}, {&one, 1}, {&one, 1}, {&zero, 1}, {&zero, 1}}, .sorted = true};
    for (uint32_t m = 0; m < 3; m++) {
        at.mode = str_format(arena, "GatherScatterMode.%s", modes[m]);
        at.unique = m % 2, at.zeros = m != 1;
        Val rows = b_gather(&b, x, index, (Dim[]){1, 1, 6}, at), y = rows;
        is_type(rows, "f32[7,4,6]");
        Places read;
        cr_assert(places_of(cx, &b.eqns.at[b.eqns.n - 1], &read));
        cr_assert(read.zeros == at.zeros && read.sorted && read.unique == at.unique && str_is(read.mode, at.mode.at));
        for (uint32_t k = 0; k < sizeof how / sizeof *how; k++) {
            y = b_scatter(&b, how[k], x, index, rows, read);
            is_type(y, "f32[7,5,6]");
            cr_assert(places_of(cx, &b.eqns.at[b.eqns.n - 1], &read));
            cr_assert(read.n.map.at[0] == 1 && read.n.batch.n == 1 && read.n.windows.at[0] == 2);
        }
        const char *text = text_of(2, in, y);
        cr_assert(has(text, modes[m]) && has(text, "operand_batching_dims=(0,)"), "%s", text);
        cr_assert(has(text, at.zeros ? "fill_value=0" : "fill_value=None"), "%s", text);
    }
}
Test(build, a_scatter_combines_by_a_program) {
    int64_t zero = 0;
    Val x = INPUT(DT_f32, 5), index = INPUT(DT_i32, 4, 1), u = INPUT(DT_f32, 4), in[] = {x, index, u};
    Inner f = b_inner(&b, 2, (Type[]){f32_of(0, NULL), f32_of(0, NULL)});
    b_inner_end(&b, &f, 1, (Val[]){b_mul(&b, f.in.at[0], f.in.at[1])});
    Places at = {.n = {.dropped = {&zero, 1}, .map = {&zero, 1}}, .update = f.j};
    Val y = b_scatter(&b, P_scatter, x, index, u, at);
    cr_assert(has(text_of(3, in, y), "mul"));
    Places read;
    cr_assert(places_of(cx, last(whole(3, in, 1, &y)), &read) && read.update == f.j);
    cr_assert(str_is(read.mode, "GatherScatterMode.FILL_OR_DROP"));
}

/* ---- numbers */
/* What a program of literals alone computes. */
static double value_of(Val v) {
    Jaxpr *j = whole(0, NULL, 1, &v);
    written(j);
    const Lit *l = val_info(cx, pass_fold(cx, j)->out.at[0])->lit;
    cr_assert(l, "it is not known");
    return l->kind == LIT_FLOAT ? l->re : l->negative ? -(double)l->i : (double)l->i;
}
static Val f(double x) { return b_float(&b, DT_f64, x); }
static Val i(int64_t x) { return b_int(&b, DT_i32, x); }
Test(build, the_numbers_are_right) {
    const struct {
        Val v;
        double want;
    } rows[] = {{b_sub(&b, f(5), f(3)), 2},
                {b_div(&b, f(5), f(4)), 1.25},
                {b_pow(&b, f(2), f(5)), 32},
                {b_atan2(&b, f(0), f(-1)), 3.141592653589793},
                {b_shift_left(&b, i(3), i(4)), 48},
                {b_integer_pow(&b, f(2), -2), 0.25},
                {b_round(&b, f(2.5), true), 2},
                {b_round(&b, f(2.5), false), 3},
                {b_fma(&b, f(2), f(3), f(4)), 10},
                {b_clamp(&b, f(1), f(7), f(4)), 4},
                {b_select(&b, b_lt(&b, f(1), f(2)), f(10), f(20)), 20},
                {b_select_n(&b, i(2), 3, (Val[]){f(10), f(20), f(30)}), 30},
                {b_convert(&b, f(-7.9), DT_i32), -7},
                {b_bitcast(&b, b_float(&b, DT_f32, 1), DT_i32), 0x3f800000},
                {b_reduce_precision(&b, f(1.0009765625), 5, 8), 1},
                {b_nextafter(&b, f(1), f(2)), 1 + 0x1p-52},
                {b_igammac(&b, f(1), f(1)), 0.36787944117144233}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        double got = value_of(rows[k].v);
        cr_assert(fabs(got - rows[k].want) <= 1e-15 * fabs(rows[k].want), "row %zu: %.17g", k, got);
    }
}
Test(build, the_branch_and_the_call_that_run) {
    Val x = f(3);
    Inner branches[] = {times(f(10), x), times(f(20), x)};
    cr_assert_eq(value_of(b_cond(&b, b_lt(&b, f(1), f(2)), 2, branches, 1, &x).at[0]), 60);
    Inner three[] = {times(f(10), x), times(f(20), x), times(f(30), x)};
    cr_assert_eq(value_of(b_cond(&b, i(7), 3, three, 1, &x).at[0]), 90); /* clamped */
}

/* ---- what passes remember */
Test(build, a_program_is_made_once_for_a_key) {
    Memo memo = {.arena = arena};
    Jaxpr one = {0}, other = {0}, made[4];
    for (uint32_t round = 0; round < 2; round++)
        for (uint64_t k = 0; k < 4; k++) {
            uint64_t key[2] = {(uintptr_t)(k % 2 ? &one : &other), k / 2};
            cr_assert_eq(*memo_at(&memo, key, sizeof key), round ? &made[k] : NULL);
            *memo_at(&memo, key, sizeof key) = &made[k];
        }
    cr_assert_null(*memo_slot(&memo, &one)); /* another key */
}
