/* Programs that transformations could run on:

       normalise DIR TO [tidy]

   runs passes_normalise, verified after each pass, on the program of each case of DIR that typechecks and can be
   lowered. What it leaves holds none of the primitives below, no condition with lanes, no reference, and the calls that
   take no references are still there. Programs that it changes are written under TO, for tests/runner. With `tidy`,
   pass_tidy runs after it, and may drop what no result needs. */
#include "cases.h"
#include "control.h"
#include "passes/transform/tx.h"
#include "program.h"
#include "typecheck/rule.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const Prim gone[] = {P_get,       P_swap,   P_addupdate, P_run_state,   P_for,      P_new_ref,
                            P_empty_ref, P_freeze, P_free_ref,  P_pallas_call, P_for_loop, P_while_loop};

/* What a program and those inside it, each once, hold. */
typedef struct {
    Ctx *cx;
    Intern seen;
    const char *left; /* what should be gone; NULL: nothing */
    uint32_t calls;   /* without references */
} Found;

static bool refs(const Found *f, Vals vs) {
    each(const Val, v, vs)
        if (type_is_ref(f->cx, val_type(f->cx, *v))) return true;
    return false;
}
static void find_eqn(Found *f, const Eqn *e) {
    bool ref = refs(f, e->in) || refs(f, e->out);
    While w = while_of(e);
    for (unsigned i = 0; i < sizeof gone / sizeof *gone; i++)
        if (e->prim == gone[i]) f->left = prim_name[e->prim];
    if (w.cond && val_array(f->cx, w.cond->out.at[0])->rank) f->left = "a condition with lanes";
    if (ref) f->left = "a reference";
    f->calls += prim_calls(e->prim) && !ref;
}
static void find(Found *f, const Jaxpr *j) {
    bool fresh;
    intern(&f->seen, &j, sizeof j, &fresh);
    if (!fresh || !j->checked) return;
    if (refs(f, j->in) || refs(f, j->consts)) f->left = "a reference";
    each(const Eqn, e, j->eqns) {
        find_eqn(f, e);
        Jaxprs inner = eqn_jaxprs(f->cx->arena, e);
        each(Jaxpr *, k, inner) find(f, *k);
    }
}
static Found found(Ctx *cx, const Jaxpr *j) {
    Found f = {.cx = cx, .seen.arena = cx->arena};
    find(&f, j);
    return f;
}

typedef struct {
    const char *from, *to;
    bool tidy;
    uint32_t programs, changed, failed;
} Tool;

static void fail(Tool *t, const Case *c, const char *why) {
    printf("FAIL normalise: %s: %s\n", c->path, why);
    t->failed++;
}

/* Is the case one that the whole pipeline takes? */
static bool lowers(const Case *c) {
    Arena *arena = arena_open();
    Ctx *cx = ctx_new(arena);
    Options o = {.input = c->path};
    cx->options = &o;
    const Jaxpr *j = read_program(cx, c->path);
    bool good = j && passes_lower(cx, j);
    arena_close(arena);
    return good;
}
static void normalise(Tool *t, const Case *c, Ctx *cx, Jaxpr *j) {
    Found before = found(cx, j);
    Text text = {.arena = cx->arena};
    Jaxpr *new = passes_normalise(cx, j);
    if (t->tidy && new) new = pass_tidy(cx, new);
    if (!new) {
        diag_flush(cx->diags, stdout, false);
        fail(t, c, "it is refused");
        return;
    }
    if (!check(cx, new)) fail(t, c, "what is left is ill typed");
    Found after = found(cx, new);
    if (after.left) fail(t, c, str_format(cx->arena, "%s is left", after.left).at);
    if (after.calls < before.calls && !t->tidy) fail(t, c, "calls are gone");
    if (jaxpr_equal(cx, j, new, NULL)) return;
    if (t->tidy && access(case_file(c, ".consts.npz"), R_OK) == 0) return; /* fewer constants may be left */
    t->changed++;
    jaxpr_print(cx, new, &text);
    if (!case_write(c, t->from, t->to, text.at, text.n)) t->failed++;
}

static void try(Tool *t, const Case *c) {
    Arena *arena = arena_open();
    Ctx *cx = ctx_new(arena);
    Options o = {.input = c->path};
    cx->options = &o;
    cx->verify = true;
    Jaxpr *j = lowers(c) ? read_program(cx, c->path) : NULL;
    if (j) {
        t->programs++;
        normalise(t, c, cx, j);
    }
    arena_close(arena);
}

int main(int argc, char **argv) {
    if (argc != 3 && argc != 4) return fputs("usage: see tests/normalise.c\n", stderr), 2;
    Tool t = {.from = argv[1], .to = argv[2], .tidy = argc == 4};
    Cases cases = {0};
    cases_find(&cases, t.from, false);
    cases_link_manifest(t.from, t.to);
    for (uint32_t i = 0; i < cases.n; i++) try(&t, &cases.at[i]);
    printf("%u programs, of which normalising changes %u\n", t.programs, t.changed);
    printf("normalise: %u passed, %u failed\n", t.programs - t.failed, t.failed);
    fflush(NULL);
    _exit(t.failed > 0 || t.changed == 0); /* paths go with it */
}
