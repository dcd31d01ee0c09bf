#include "parse/parse.h"
#include <criterion/criterion.h>

static Arena *arena;
static Ctx *cx;
static void open_ctx(void) { cx = ctx_new(arena = arena_open()); }
static void close_ctx(void) { arena_close(arena); }
TestSuite(parse, .init = open_ctx, .fini = close_ctx);

static Jaxpr *read_text(const char *text) { return parse(cx, diags_source(cx->diags, "text", str(text)), NULL); }

static void are_equal(const char *a, const char *b, bool want) {
    Jaxpr *x = read_text(a), *y = read_text(b);
    cr_assert(x && y);
    Str why;
    bool same = jaxpr_equal(cx, x, y, &why);
    cr_assert_eq(same, want, "%.*s", SF(why));
    cr_assert_eq(same, why.n == 0);
}

Test(parse, equality_is_up_to_names_and_layout) {
    are_equal("{ lambda ; a:f32[3]. let b:f32[3] = sin a in (b,) }",
              "{ lambda ; x:f32[3]. let\n    y:f32[3] = sin x  # here\n  in (y,) }", true);
    are_equal("{ lambda ; a:i64[] b:f64[a]. let in (b,) }", "{ lambda ; c:i64[] d:f64[c]. let in (d,) }", true);
    are_equal("let f = { lambda ; a:f32[]. let in (a,) } in { lambda ; a:f32[]. let b:f32[] = "
              "jit[name=f jaxpr=f] a in (b,) }",
              "{ lambda ; a:f32[]. let b:f32[] = jit[name=f jaxpr={ lambda ; a:f32[]. let in (a,) "
              "}] a in (b,) }",
              true);
}

Test(parse, equality_sees_differences) {
    const char *a = "{ lambda ; a:f32[3] b:f32[3]. let c:f32[3] = add a b in (c,) }";
    are_equal(a, "{ lambda ; a:f32[3] b:f32[3]. let c:f32[3] = add b a in (c,) }", false);
    are_equal(a, "{ lambda ; a:f32[3] b:f32[3]. let c:f32[3] = sub a b in (c,) }", false);
    are_equal(a, "{ lambda ; a:f32[3] b:f32[3]. let c:f32[3] = add a b in (a,) }", false);
    are_equal(a, "{ lambda ; a:f32[4] b:f32[3]. let c:f32[3] = add a b in (c,) }", false);
    are_equal("{ lambda ; a:f32[3]. let b:f32[3] = mul a 1.0:f32[] in (b,) }",
              "{ lambda ; a:f32[3]. let b:f32[3] = mul a -1.0:f32[] in (b,) }", false);
    are_equal("{ lambda ; a:i64[] b:i64[] c:f64[a]. let in (c,) }",
              "{ lambda ; a:i64[] b:i64[] c:f64[b]. let in (c,) }", false);
}

/* Of several variables called _ the one whose type fits is meant. */
Test(parse, underscore_with_a_fitting_type) {
    Jaxpr *j = read_text("{ lambda ; a:f32[3]. let _:f32[3] = sin a; _:i32[3] = iota[dimension=0]; "
                         "b:f32[3] = add _ a in (b,) }");
    cr_assert(j);
    cr_assert_eq(j->eqns.at[2].in.at[0], j->eqns.at[0].out.at[0]);
}

Test(parse, shared_jaxprs_are_one_object) {
    Jaxpr *j = read_text("let f = { lambda ; a:f32[]. let in (a,) } in { lambda ; a:f32[]. let\n"
                         "b:f32[] = jit[name=f jaxpr=f] a\nc:f32[] = jit[name=f jaxpr=f] b\nin (c,) }");
    cr_assert(j);
    cr_assert_eq(param_jaxpr(&j->eqns.at[0], K_jaxpr), param_jaxpr(&j->eqns.at[1], K_jaxpr));
}

Test(parse, spans_name_the_place) {
    const char *text = "{ lambda ; a:f32[3]. let\n  b:f32[3] = add a 1.0:f32[]\n  in (b,) }";
    Jaxpr *j = read_text(text);
    cr_assert(j);
    const Eqn *e = &j->eqns.at[0];
    LineCol where = diag_where(cx->diags, e->in_at[1]);
    cr_assert_eq(where.line, 2);
    cr_assert_eq(where.col, 20);
    cr_assert(strncmp(text + e->whole.at, "b:f32[3] = add a 1.0", e->whole.n) == 0);
}

static void nest(Text *t, uint32_t depth, const char *open, const char *close) {
    text_put(t, S("{ lambda ; a:f32[]. let b:f32[] = f[nested="));
    for (uint32_t i = 0; i < depth; i++) text_put(t, str(open));
    for (uint32_t i = 0; i < depth; i++) text_put(t, str(close));
    text_put(t, S("] a in (b,) }"));
}

Test(parse, nesting_is_limited) {
    Text shallow = {.arena = arena}, deep = {.arena = arena};
    nest(&shallow, 900, "(", ")");
    nest(&deep, 100000, "(", ")");
    cr_assert(read_text(str_c(arena, (Str){shallow.at, shallow.n})));
    cr_assert_not(read_text(str_c(arena, (Str){deep.at, deep.n})));
}

Test(parse, at_most_twenty_errors_are_kept) {
    Text t = {.arena = arena};
    text_put(&t, S("{ lambda ; a:f32[]. let\n"));
    for (int i = 0; i < 1000; i++) text_add(&t, "  b%d:f32[] = sin x%d\n", i, i);
    text_put(&t, S("  in (a,) }"));
    cr_assert_not(read_text(str_c(arena, (Str){t.at, t.n})));
    cr_assert_eq(diag_errors(cx->diags), 1000);
}

Test(parse, types_of_a_signature) {
    Type *types;
    uint32_t n;
    cr_assert(parse_types(cx, diags_source(cx->diags, "sig", S("f32[8], f32[b,4], bool[]")), &types, &n));
    cr_assert_eq(n, 3);
    cr_assert(str_is(ctx_type_text(cx, types[1]), "f32[b,4]"));
    cr_assert(parse_types(cx, diags_source(cx->diags, "sig", S("")), &types, &n));
    cr_assert_eq(n, 0);
    cr_assert_not(parse_types(cx, diags_source(cx->diags, "sig", S("f32[8] f32[]")), &types, &n));
}
