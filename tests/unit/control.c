#include "control.h"
#include "parse/parse.h"
#include "typecheck/check.h"
#include <criterion/criterion.h>

static Arena *arena;
static Ctx *cx;
static void open_ctx(void) { cx = ctx_new(arena = arena_open()); }
static void close_ctx(void) { arena_close(arena); }
TestSuite(control, .init = open_ctx, .fini = close_ctx);

/* The last equation of a program that typechecks. */
static const Eqn *equation(const char *text) {
    Jaxpr *j = parse(cx, diags_source(cx->diags, "text", str(text)), NULL);
    cr_assert(j && j->eqns.n && check(cx, j), "%s", text);
    return &j->eqns.at[j->eqns.n - 1];
}
/* The names of the values: "a b". */
static void are(Vals v, const char *names) {
    Text t = {.arena = arena};
    for (uint32_t i = 0; i < v.n; i++) text_add(&t, "%s%.*s", i ? " " : "", SF(val_name(cx, v.at[i])));
    cr_assert(str_is((Str){t.at, t.n}, names), "'%.*s' is not '%s'", (int)t.n, t.at, names);
}
/* A parameter as a number; -1: there is none. */
static int64_t number(const Eqn *e, ParamKey k) { return param_int(e, k, -1); }
static Vals values(uint32_t n, const Val *at) {
    Vals v = {arena_new(arena, Val, n), n};
    memcpy(v.at, at, n * sizeof *at);
    return v;
}

/* ---- scan */
#define SCAN_BODY "{ lambda ; k:f32[] c:f32[] x:f32[]. let d:f32[] = add c x; y:f32[] = mul d k in (d, y) }"

static void is_scan(const Eqn *e, bool reverse) {
    Scan s = scan_of(e);
    cr_assert(s.body);
    Scan turn = scan_turn(&s, s.body);
    are(s.consts, "a"), are(s.carry, "b"), are(s.xs, "e"), are(s.end, "f"), are(s.ys, "g");
    are(turn.consts, "k"), are(turn.carry, "c"), are(turn.xs, "x"), are(turn.end, "d"), are(turn.ys, "y");
    cr_assert_eq(s.reverse, reverse);
    cr_assert_eq(scan_length(cx, &s), 5);
}
Test(control, scan_of_every_era) {
    is_scan(
        equation(
            "{ lambda ; a:f32[] b:f32[] e:f32[5]. let f:f32[] g:f32[5] = scan[_split_transpose=False jaxpr=" SCAN_BODY
            " length=5 linear=(False, False, False) num_carry=1 num_consts=1 reverse=True unroll=1] a b e in "
            "(f, g) }"),
        true);
    /* 2019: forward; types and counts are left out */
    is_scan(
        equation("{ lambda ; a:f32[] b:f32[] e:f32[5]. let f g = scan[ forward=True length=5 jaxpr={ lambda ; k c x. "
                 "let d = add c x; y = mul d k in (d, y) } num_consts=1 num_carry=1 ] a b e in (f, g) }"),
        false);
    is_scan(
        equation("{ lambda ; a:f32[] b:f32[] e:f32[5]. let f g = scan[ jaxpr={ lambda ; k c x. let d = add c x; y = "
                 "mul d k in (d, y) } num_consts=1 reverse=False ] a b e in (f, g) }"),
        false);
}
Test(control, scan_without_arrays_has_its_length) {
    Scan s = scan_of(equation("{ lambda ; n:i32[] a:f32[]. let b:f32[] = scan[jaxpr={ lambda ; c:f32[]. let in (c,) } "
                              "length=7 num_carry=1 num_consts=0 reverse=False] a in (b,) }"));
    cr_assert_eq(s.length, 7);
    cr_assert_eq(scan_length(cx, &s), 7);
}
Test(control, no_scan_where_it_does_not_fit) {
    Eqn e = *equation("{ lambda ; a:f32[] b:f32[] e:f32[5]. let f:f32[] g:f32[5] = scan[jaxpr=" SCAN_BODY
                      " length=5 num_carry=1 num_consts=1 reverse=False] a b e in (f, g) }");
    e.in.n--;
    cr_assert_null(scan_of(&e).body);
    cr_assert_null(while_of(&e).body);
    cr_assert_eq(cond_of(&e).branches.n, 0);
    e.in.n++;
    static const ParamKey counts[] = {K_num_carry, K_num_consts};
    static const int64_t wrong[] = {-1, 3, 4, (int64_t)1 << 32};
    for (size_t i = 0; i < 2; i++) {
        Param *p = (Param *)param_find(&e, counts[i]);
        for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
            p->value.i = wrong[k];
            cr_assert_null(scan_of(&e).body, "%lld", (long long)wrong[k]);
        }
        p->value.i = 1;
    }
    cr_assert(scan_of(&e).body);
}
Test(control, scan_written) {
    const Eqn *e =
        equation("{ lambda ; a:f32[] b:f32[] e:f32[5]. let f:f32[] g:f32[5] = scan[jaxpr=" SCAN_BODY
                 " length=5 linear=(False, False, False) num_carry=1 num_consts=1 reverse=False unroll=2] a b "
                 "e in (f, g) }");
    Scan s = scan_of(e);
    s.consts = values(2, (Val[]){e->in.at[0], e->in.at[1]});
    s.reverse = true;
    s.length = 9;
    Eqn new = scan_eqn(arena, e, &s);
    are(new.in, "a b b e"), are(new.out, "f g");
    cr_assert_eq(number(&new, K_num_consts), 2);
    cr_assert_eq(number(&new, K_num_carry), 1);
    cr_assert_eq(number(&new, K_length), 9);
    cr_assert_eq(number(&new, K_unroll), 2);
    cr_assert(param_bool(&new, K_reverse));
    cr_assert_not(param_has(&new, K_linear));
    s.consts.n = 0; /* what is left of the operands keeps what it said of them */
    new = scan_eqn(arena, e, &s);
    are(new.in, "b e");
    cr_assert_eq(param_ints(&new, K_linear).n, 2);
    cr_assert_null(new.in_at);
    cr_assert_eq(param_ints(e, K_linear).n, e->in.n, "the equation that was read stays as it was");
    /* from nothing, and back */
    s = scan_of(e);
    Eqn fresh = scan_eqn(arena, &(Eqn){.span = e->span}, &s);
    is_scan(&fresh, false);
    cr_assert_eq(fresh.span.at, e->span.at);
}

/* ---- while */
#define WHILE_PROGRAMS                                                                                                 \
    "body_jaxpr={ lambda ; k:f32[] i:i32[] x:f32[]. let j:i32[] = add i 1:i32[]; y:f32[] = mul x k in (j, y) } "       \
    "cond_jaxpr={ lambda ; n:i32[] o:i32[] p:f32[]. let q:bool[] = lt o n in (q,) } "

static While is_while(const Eqn *e) {
    While w = while_of(e);
    cr_assert(w.cond && w.body);
    While turn = while_turn(&w, w.cond, w.body);
    are(w.cond_consts, "a"), are(w.body_consts, "b"), are(w.carry, "c d"), are(w.end, "e f");
    are(turn.cond_consts, "n"), are(turn.body_consts, "k"), are(turn.carry, "i x"), are(turn.end, "j y");
    are(turn.tested, "o p");
    return w;
}
Test(control, while_of_every_era) {
    is_while(equation("{ lambda ; a:i32[] b:f32[] c:i32[] d:f32[]. let e:i32[] f:f32[] = while[" WHILE_PROGRAMS
                      "body_nconsts=1 cond_nconsts=1] a b c d in (e, f) }"));
    is_while(
        equation("{ lambda ; a:i32[] b:f32[] c:i32[] d:f32[]. let e f = while[ cond_jaxpr={ lambda ; n o p. let q = "
                 "lt o n in (q,) } body_jaxpr={ lambda ; k i x. let j = add i 1; y = mul x k in (j, y) } ] a b c d "
                 "in (e, f) }")); /* 2020: a text without counts */
    const Eqn *catalyst =
        equation("{ lambda ; a:i32[] b:f32[] c:i32[] d:f32[]. let e:i32[] f:f32[] = while_loop[" WHILE_PROGRAMS
                 "preserve_dimensions=True num_implicit_inputs=1] a b c d in (e, f) }");
    While w = is_while(catalyst);
    cr_assert(w.resizes);
    cr_assert_eq(w.implicit, 1);

    w.cond_consts.n = 0;
    Eqn new = while_eqn(arena, catalyst, &w);
    are(new.in, "b c d"), are(new.out, "e f");
    cr_assert_eq(new.prim, P_while);
    cr_assert_eq(number(&new, K_cond_nconsts), 0);
    cr_assert_eq(number(&new, K_body_nconsts), 1);
    cr_assert_eq(number(&new, K_num_implicit_inputs), 1);
    w.resizes = false;
    new = while_eqn(arena, catalyst, &w);
    cr_assert_eq(number(&new, K_num_implicit_inputs), -1);
}

/* The loop with a number in place of a parameter's. */
static While while_with(const Eqn *e, ParamKey k, int64_t n) {
    Param *p = (Param *)param_find(e, k);
    int64_t old = p->value.i;
    p->value.i = n;
    While w = while_of(e);
    p->value.i = old;
    return w;
}
Test(control, no_while_where_it_does_not_fit) {
    const Eqn *e = equation("{ lambda ; a:i32[] b:f32[] c:i32[] d:f32[]. let e:i32[] f:f32[] = while[" WHILE_PROGRAMS
                            "body_nconsts=1 cond_nconsts=1] a b c d in (e, f) }");
    static const int64_t wrong[] = {-1, 0, 2, 5, (int64_t)1 << 32, ((int64_t)1 << 32) + 1};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        While w = while_with(e, K_cond_nconsts, wrong[i]);
        cr_assert(!w.cond && !w.body, "%lld", (long long)wrong[i]);
        cr_assert_null(while_with(e, K_body_nconsts, wrong[i]).body);
    }
    cr_assert(while_with(e, K_cond_nconsts, 1).body);
    for (uint32_t i = 0; i < 2; i++) { /* an operand or a result too few */
        Eqn few = *e;
        i ? few.in.n-- : few.out.n--;
        cr_assert_null(while_of(&few).body);
    }
    Eqn none = *e;
    none.params.n = 0;
    cr_assert_null(while_of(&none).body);
    const Eqn *catalyst =
        equation("{ lambda ; a:i32[] b:f32[] c:i32[] d:f32[]. let e:i32[] f:f32[] = while_loop[" WHILE_PROGRAMS
                 "preserve_dimensions=True num_implicit_inputs=1] a b c d in (e, f) }");
    cr_assert_null(while_with(catalyst, K_num_implicit_inputs, 3).body);
    cr_assert(while_with(catalyst, K_num_implicit_inputs, 2).body);
}

/* ---- for_loop */
static const Eqn *for_loop(const char *counts) {
    return equation(str_c(
        arena, str_format(arena,
                          "{ lambda ; a:f64[] n:i64[] l:i64[] u:i64[] s:i64[] f:i64[] x:f64[n]. let m:i64[] y:f64[m] = "
                          "for_loop[apply_reverse_transform=False body_jaxpr={ lambda ; k:f64[] p:i64[] i:i64[] "
                          "z:f64[p]. let in (p, z) } %s] a n l u s f x in (m, y) }",
                          counts)));
}
Test(control, for_loop_with_and_without_counts) {
    static const char *const texts[] = {"body_nconsts=1 preserve_dimensions=True num_implicit_inputs=1",
                                        "preserve_dimensions=True"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const Eqn *e = for_loop(texts[i]);
        ForLoop l = for_of(cx, e);
        cr_assert(l.body);
        are(l.consts, "a"), are(l.implicit, "n"), are(l.bounds, "l u s f"), are(l.carry, "x");
        are(l.end_implicit, "m"), are(l.end, "y");
        ForLoop turn = for_turn(&l, l.body);
        are(turn.consts, "k"), are(turn.implicit, "p"), are(turn.bounds, "i"), are(turn.carry, "z");
        are(turn.end_implicit, "p"), are(turn.end, "z");
    }
}
Test(control, no_for_loop_where_it_does_not_fit) {
    const Eqn *e = for_loop("body_nconsts=1 preserve_dimensions=True num_implicit_inputs=1");
    Param *consts = (Param *)param_find(e, K_body_nconsts), *implicit = (Param *)param_find(e, K_num_implicit_inputs);
    for (int64_t n = -1; n < 7; n++) {
        consts->value.i = n;
        cr_assert_eq(for_of(cx, e).body != NULL, n == 1);
    }
    consts->value.i = 1;
    implicit->value.i = 3;
    cr_assert_null(for_of(cx, e).body);
    implicit->value.i = 1;
    Eqn few = *e;
    few.in.n--;
    cr_assert_null(for_of(cx, &few).body);
    few = *e;
    few.out.n = 0;
    cr_assert_null(for_of(cx, &few).body);
    few = *e;
    few.params.n = 0;
    cr_assert_null(for_of(cx, &few).body);
}

/* ---- cond */
#define BRANCHES "({ lambda ; x:f32[] y:f32[]. let in (x,) } { lambda ; z:f32[] w:f32[]. let in (w,) })"

static Cond is_cond(const Eqn *e, const char *index, bool bools) {
    Cond c = cond_of(e);
    cr_assert_eq(c.branches.n, 2);
    are(c.index, index), are(c.in, "b c"), are(c.out, "d");
    cr_assert_eq(c.bools, bools);
    are(c.branches.at[1]->in, "z w");
    return c;
}
Test(control, cond_of_index_bool_and_catalyst) {
    is_cond(equation("{ lambda ; a:i32[] b:f32[] c:f32[]. let d:f32[] = cond[branches=" BRANCHES
                     " linear=(False, False)] a b c in (d,) }"),
            "a", false);
    is_cond(equation("{ lambda ; a:bool[] b:f32[] c:f32[]. let d:f32[] = cond[branches=" BRANCHES "] a b c in (d,) }"),
            "a", false);
    is_cond(equation("{ lambda ; a:bool[] b:f32[] c:f32[]. let d:f32[] = cond[branch_jaxprs=" BRANCHES
                     " num_implicit_outputs=0] a b c in (d,) }"),
            "a", true);
    /* February 2020: each branch has operands of its own */
    Cond c =
        cond_of(equation("{ lambda ; a:bool[] b:f32[] c:f32[]. let d = cond[ true_jaxpr={ lambda ; x. let in (x,) } "
                         "false_jaxpr={ lambda ; y. let in (y,) } linear=(False, False) ] a b c in (d,) }"));
    are(c.in, "b c");
    cr_assert_eq(c.branches.n, 2);
    are((Vals){&c.branches.at[0]->in.at[1], 1}, "y"), are((Vals){c.branches.at[1]->in.at, 1}, "x");
}
Test(control, cond_written) {
    static const char *const form[] = {"branches", "branch_jaxprs"};
    static const ParamKey key[] = {K_branches, K_branch_jaxprs};
    for (int bools = 0; bools < 2; bools++) {
        const Eqn *e =
            equation(str_c(arena, str_format(arena,
                                             "{ lambda ; a:bool[] b:f32[] c:f32[]. let d:f32[] = cond[%s=" BRANCHES
                                             " branches_platforms=None] a b c in (d,) }",
                                             form[bools])));
        Cond c = is_cond(e, "a", bools);
        c.in.n = 1;
        c.branches.n = 1;
        Eqn new = cond_eqn(arena, e, &c);
        are(new.in, "a b");
        cr_assert_eq(param_jaxprs(&new, key[bools]).n, 1);
        cr_assert_null(param_find(&new, key[!bools]));
        cr_assert(param_find(&new, K_branches_platforms));
    }
}

/* ---- all of them */
static Vals twice(void *user, Vals v) { return vals_joined(arena, 2, (Vals[]){v, v}); }
static Vals same(void *user, Vals v) { return v; }
Test(control, slices_mapped) {
    const Eqn *e = equation("{ lambda ; a:f32[] b:f32[] e:f32[5]. let f:f32[] g:f32[5] = scan[jaxpr=" SCAN_BODY
                            " length=5 num_carry=1 num_consts=1 reverse=False] a b e in (f, g) }");
    Eqn new = control_map(arena, e, e, twice, twice, NULL);
    are(new.in, "a a b b e e"), are(new.out, "f f g g");
    cr_assert_eq(number(&new, K_num_consts), 2);
    cr_assert_eq(number(&new, K_num_carry), 2);
    e = equation("{ lambda ; a:i32[] b:f32[] c:i32[] d:f32[]. let e:i32[] f:f32[] = while[" WHILE_PROGRAMS
                 "body_nconsts=1 cond_nconsts=1] a b c d in (e, f) }");
    new = control_map(arena, e, e, twice, twice, NULL);
    are(new.in, "a a b b c d c d"), are(new.out, "e f e f");
    cr_assert_eq(number(&new, K_cond_nconsts), 2);
    cr_assert_eq(number(&new, K_body_nconsts), 2);
    e = equation(
        "{ lambda ; a:i32[] b:f32[]. let c:f32[] = cond[branches=({ lambda ; x:f32[]. let in (x,) })] a b in (c,) }");
    new = control_map(arena, e, e, twice, same, NULL);
    are(new.in, "a a b b"), are(new.out, "c");
    e = equation("{ lambda ; a:f32[] b:f32[]. let c:f32[] = add a b in (c,) }");
    new = control_map(arena, e, e, twice, same, NULL);
    are(new.in, "a b a b"), are(new.out, "c");
}

/* ---- calls */
Test(control, body_of_every_call) {
    static const char *const calls[] = {
        "jit[name=f jaxpr=%s]",
        "pjit[name=f jaxpr=%s]",
        "xla_call[ backend=None call_jaxpr=%s device=None name=f ]",
        "closed_call[call_jaxpr=%s]",
        "core_call[call_jaxpr=%s]",
        "call[call_jaxpr=%s]",
        "eval_jaxpr[jaxpr=%s]",
        "remat2[jaxpr=%s policy=None prevent_cse=True differentiated=False]",
        "remat[call_jaxpr=%s name=f concrete=False]",
        "checkpoint[jaxpr=%s policy=None prevent_cse=True differentiated=False]",
        "custom_jvp_call[name=f call_jaxpr=%s jvp=g symbolic_zeros=False]",
        "custom_jvp_call_jaxpr[ fun_jaxpr=%s jvp_jaxpr_thunk=g num_consts=0 ]",
        "custom_vjp_call[name=f call_jaxpr=%s fwd=g bwd=h symbolic_zeros=False]",
        "custom_vjp_call_jaxpr[ fun_jaxpr=%s bwd=g fwd_jaxpr_thunk=h num_consts=0 ]",
        "composite[attributes=() jaxpr=%s name=f version=1]",
        "compute_on[jaxpr=%s]",
        "custom_partitioning[call=%s]",
        "custom_vmap_call[call=%s rule=f]",
        "remat_opt[fwd_jaxpr=%s num_consts=0 num_res=0]",
        "xla_metadata_call[jaxpr=%s]",
        "linear_call[callee=%s num_callee_consts=1 num_res=0 transpose_thunk=f]",
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        Text t = {.arena = arena};
        text_put(&t, S("{ lambda ; a:f32[] b:f32[]. let c:f32[] = "));
        text_add(&t, calls[i], "{ lambda ; x:f32[] y:f32[]. let z:f32[] = add x y in (z,) }");
        text_put(&t, S(" a b in (c,) }"));
        const Eqn *e = equation(str_c(arena, (Str){t.at, t.n}));
        Vals in;
        Jaxpr *j = eqn_body(arena, e, &in);
        cr_assert(prim_calls(e->prim) && j, "%s", calls[i]);
        are(j->in, "x y"), are(in, "a b");
    }
    Vals in;
    cr_assert_null(eqn_body(arena, equation("{ lambda ; a:f32[]. let b:f32[] = sin a in (b,) }"), &in));
    const Eqn *cond =
        equation("{ lambda ; a:i32[] b:f32[] c:f32[]. let d:f32[] = cond[branches=" BRANCHES "] a b c in (d,) }");
    cr_assert_null(eqn_body(arena, cond, &in));
}
Test(control, call_written) {
    const Eqn *e =
        equation("{ lambda ; a:f32[] b:f32[]. let c:f32[] = pjit[name=f donated_invars=(False, False) jaxpr={ "
                 "lambda ; x:f32[] y:f32[]. let in (x,) }] a b in (c,) }");
    Eqn new = call_eqn(arena, e, e->in, e->out);
    cr_assert(param_has(&new, K_donated_invars) && new.in_at);
    new = call_eqn(arena, e, vals_part(e->in, 0, 1), e->out);
    cr_assert_not(param_has(&new, K_donated_invars));
    cr_assert(!new.in_at && eqn_program(&new) == eqn_program(e));
    are(new.in, "a");
}
Test(control, linear_call_leaves_the_constants_of_its_transpose_out) {
    const Eqn *e = equation(
        "{ lambda ; a:f32[] b:f32[] c:f32[] d:f32[]. let e:f32[] = linear_call[callee={ lambda ; k:f32[] r:f32[] "
        "x:f32[]. let y:f32[] = mul k x in (y,) } num_callee_consts=1 num_res=1 num_transpose_consts=1 "
        "transpose={ lambda ; l:f32[] s:f32[] ct:f32[]. let y:f32[] = mul l ct in (y,) }] a b c d in (e,) }");
    LinearCall c = linear_call_of(e);
    are(c.callee_consts, "a"), are(c.transpose_consts, "b"), are(c.residuals, "c"), are(c.linear, "d");
    are(c.transpose->in, "l s ct");
    Vals in;
    cr_assert(eqn_body(arena, e, &in));
    are(in, "a c d");
}
Test(control, linear_call_without_constants_of_a_transpose) {
    Eqn e = *equation(
        "{ lambda ; a:f32[] b:f32[] c:f32[]. let d:f32[] = linear_call[callee={ lambda ; k:f32[] r:f32[] x:f32[]. "
        "let y:f32[] = mul k x in (y,) } num_callee_consts=1 num_res=1 transpose_thunk=f] a b c in (d,) }");
    LinearCall c = linear_call_of(&e);
    are(c.callee_consts, "a"), are(c.transpose_consts, ""), are(c.residuals, "b"), are(c.linear, "c");
    cr_assert(c.callee && !c.transpose);
    OwnConsts consts;
    cr_assert(own_consts(&e, 0, &consts) && consts.first == 0 && *consts.n == 1);
    cr_assert_not(own_consts(&e, 1, &consts));
    static const int64_t wrong[] = {-1, 4, (int64_t)1 << 32};
    Param *n = (Param *)param_find(&e, K_num_callee_consts);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        n->value.i = wrong[i];
        cr_assert_null(linear_call_of(&e).callee);
    }
    n->value.i = 1;
    e.in.n--;
    cr_assert_null(linear_call_of(&e).callee);
}
Test(control, linear_solve_is_a_call_of_its_solver) {
    const Eqn *e = equation("{ lambda ; a:f32[] b:f32[] c:f32[]. let d:f32[] = "
                            "custom_linear_solve[const_lengths=LinearSolveTuple(matvec=1, vecmat=0, "
                            "solve=1, transpose_solve=0) jaxprs=LinearSolveTuple(matvec={ lambda ; k:f32[] x:f32[]. "
                            "let y:f32[] = mul k x in (y,) }, "
                            "vecmat=None, solve={ lambda ; l:f32[] y:f32[]. let x:f32[] = div y l in (x,) }, "
                            "transpose_solve=None)] a b c in (d,) }");
    LinearSolve s = linear_solve_of(e);
    are(s.consts[SOLVE_MATVEC], "a"), are(s.consts[SOLVE_SOLVE], "b"), are(s.b, "c");
    cr_assert_null(s.program[SOLVE_VECMAT]);
    Vals in;
    cr_assert_eq(eqn_body(arena, e, &in), s.program[SOLVE_SOLVE]);
    are(in, "b c");
}
Test(control, constants_of_programs) {
    const Eqn *e = equation("{ lambda ; a:i32[] b:f32[] c:i32[] d:f32[]. let e:i32[] f:f32[] = while[" WHILE_PROGRAMS
                            "body_nconsts=1 cond_nconsts=1] a b c d in (e, f) }");
    OwnConsts own;
    cr_assert(own_consts(e, 0, &own));
    are(own.program->in, "n o p");
    cr_assert_eq(own.first, 0);
    cr_assert_eq(*own.n, 1);
    *own.n += 2;
    cr_assert(own_consts(e, 1, &own));
    are(own.program->in, "k i x");
    cr_assert_eq(own.first, 3);
    cr_assert_eq(number(e, K_cond_nconsts), 3);
    cr_assert_not(own_consts(e, 2, &own));
    e = equation("{ lambda ; a:f32[]. let b:f32[] = jit[name=f jaxpr={ lambda ; x:f32[]. let in (x,) }] a in (b,) }");
    cr_assert(own_consts(e, 0, &own) && !own.n && !own.first);
    cr_assert_not(own_consts(e, 1, &own));
    /* an unknown number says nothing of their place */
    e = equation("{ lambda ; a:f32[] b:f32[] e:f32[5]. let f:f32[] g:f32[5] = scan[another=2 jaxpr=" SCAN_BODY
                 " length=5 num_carry=1 num_consts=1 reverse=False] a b e in (f, g) }");
    cr_assert(param_find(e, K_other));
    cr_assert(own_consts(e, 0, &own) && own.first == 0 && *own.n == 1);
}
