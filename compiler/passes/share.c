/* A program that several loops and branches share is planned once for each of them, as a part of each; copies of a long
   one that is shared often would be too much code (count.h). Such a program becomes a function: each equation gets a
   program that calls it instead,

       { lambda ; a:T b:U. let c:V = jit[name=… jaxpr=…] a b in (a, c) }

   Results that are operands of the function, or known values, are available to its callers already: they are removed,
   here and in calls that other passes left, so that passing an array on does not copy it.

   Programs that cannot be called are copied nevertheless: those with a reference, those whose operands or results have
   an extent that is computed inside, for which a caller could not allocate memory, and those that say how elements are
   combined, which are part of a kernel. */
#include "count.h"
#include "rewrite.h"
#include "../control.h"

typedef struct {
    Ctx *cx;
    ValMap map;
    Counts counts;
    Memo shared;    /* programs, with nested programs shared */
    Memo functions; /* the same without results available to callers */
    Memo calls;     /* by function: the program that calls it */
} Share;

/* ---- which results remain */

static uint32_t input_number(const Jaxpr *j, Val v) {
    uint32_t i = 0;
    while (i < j->in.n && j->in.at[i] != v) i++;
    return i;
}
/* Does every caller have the result: is it an operand or a known value? */
static bool passed(const Share *s, const Jaxpr *j, Val v) {
    return val_info(s->cx, v)->lit || input_number(j, v) < j->in.n;
}
static Vals computed(const Share *s, const Jaxpr *j, Vals of) {
    Vals kept = {arena_new(s->cx->arena, Val, of.n + 1), 0};
    for (uint32_t i = 0; i < of.n; i++)
        if (!passed(s, j, j->out.at[i])) kept.at[kept.n++] = of.at[i];
    return kept;
}

/* ---- programs */

static Jaxpr *share_jaxpr(void *user, const Jaxpr *j);

static Jaxpr *function_of(Share *s, const Jaxpr *j) {
    if (*memo_slot(&s->functions, j)) return *memo_slot(&s->functions, j);
    Jaxpr *new = share_jaxpr(s, j);
    Vals out = computed(s, new, new->out);
    if (out.n < new->out.n) new = jaxpr_with(s->cx, new, new->eqns, out);
    return *memo_slot(&s->functions, j) = new;
}
/* The program that calls `j`; meanwhile the map has its values for those of `j`. */
static Jaxpr *caller_of(Share *s, const Jaxpr *j) {
    Ctx *cx = s->cx;
    if (*memo_slot(&s->calls, j)) return *memo_slot(&s->calls, j);
    Jaxpr *function = function_of(s, j), *caller = arena_new(cx->arena, Jaxpr, 1);
    Vals all = share_jaxpr(s, j)->out;
    *caller = (Jaxpr){.span = j->span, .in = {arena_new(cx->arena, Val, j->in.n + 1), j->in.n}};
    Vals out = {arena_new(cx->arena, Val, function->out.n + 1), function->out.n};
    for (uint32_t i = 0; i < j->in.n; i++) {
        caller->in.at[i] = val_new(cx, type_rewrite(&s->map, val_type(cx, j->in.at[i])), j->span);
        valmap_put(&s->map, j->in.at[i], caller->in.at[i]);
    }
    for (uint32_t i = 0; i < out.n; i++)
        out.at[i] = val_new(cx, type_rewrite(&s->map, val_type(cx, function->out.at[i])), j->span);
    caller->out = (Vals){arena_new(cx->arena, Val, all.n + 1), all.n};
    for (uint32_t i = 0, k = 0; i < all.n; i++)
        caller->out.at[i] = passed(s, function, all.at[i]) ? valmap_get(&s->map, all.at[i]) : out.at[k++];
    const Eqn like = {.prim = P_jit, .span = j->span, .whole = j->span, .out = out};
    push(cx->arena, &caller->eqns, eqn_call(&s->map, &like, function, caller->in));
    return *memo_slot(&s->calls, j) = caller;
}
/* ---- equations */

static Jaxpr *held(void *user, const Jaxpr *j) {
    Share *s = user;
    return count_of(&s->counts, j)->function ? caller_of(s, j) : share_jaxpr(s, j);
}
static Jaxpr *called(void *user, const Jaxpr *j) { return function_of(user, j); }

static void share_call(Share *s, Eqns *to, const Eqn *e) {
    const Jaxpr *whole = share_jaxpr(s, eqn_program(e));
    Eqn new = eqn_rewrite(&s->map, e, called, s);
    new.out = computed(s, whole, e->out);
    push(s->cx->arena, to, new);
    for (uint32_t i = 0; i < e->out.n; i++) {
        Val v = whole->out.at[i];
        if (!passed(s, whole, v)) continue;
        val_replace(&s->map, to, e->out.at[i], val_info(s->cx, v)->lit ? v : new.in.at[input_number(whole, v)]);
    }
}
static bool share_eqn(void *user, Eqns *to, Consts *consts, const Eqn *e) {
    Share *s = user;
    if (calls_function(e))
        share_call(s, to, e);
    else
        push(s->cx->arena, to, eqn_rewrite(&s->map, e, is_control(e->prim) ? held : share_jaxpr, s));
    return true;
}
static Jaxpr *share_jaxpr(void *user, const Jaxpr *j) {
    Share *s = user;
    return jaxpr_rewrite(&s->map, &s->shared, j, share_eqn, s);
}

Jaxpr *pass_share(Ctx *cx, const Jaxpr *j) {
    if (cx->stdlib_passes) return (Jaxpr *)j;
    Share s = {.cx = cx, .map.cx = cx};
    s.shared.arena = s.functions.arena = s.calls.arena = cx->arena;
    s.counts = counts_of(cx, j, COUNT_LOOPS, may_stay_call, cx);
    return share_jaxpr(&s, j);
}
