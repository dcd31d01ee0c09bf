#include "rows.h"
#include "../cost.h"
#include "threads.h"

/* All elements of a thread are evaluated in the scope of the stages, where they are remembered: a later stage has them in
   registers. A thread without a last run has that of the row instead, which no sum counts and which it does not store. */

static bool last_may_lack(const Kernel *k) {
    const HeldRow *h = &k->x.step->held;
    return !h->rest && loop_extent(k->x.ix, k->x.step->lane) % ((Dim)h->group * h->run) != 0;
}
/* The number in the row of the thread's last run, if it has one. */
static V last_run(Kernel *k) {
    const HeldRow *h = &k->x.step->held;
    return em_bin(k->e, "llvm.add", member_number(k), em_i64(k->e, (int64_t)h->group * (h->turns - 1)));
}
static V runs_in_row(Kernel *k) { return em_i64(k->e, loop_extent(k->x.ix, k->x.step->lane) / k->x.step->held.run); }
void rows_bind(Kernel *k) {
    const HeldRow *h = &k->x.step->held;
    kernel_bind(k, h->first, member_number(k));
    if (!last_may_lack(k)) return;
    V end = em_bin(k->e, "llvm.sub", runs_in_row(k), em_i64(k->e, 1));
    kernel_bind(k, h->last, em_bin(k->e, "llvm.intr.umin", last_run(k), end));
}

/* ---- one stage */
typedef struct {
    RowTerms *terms;
    void *user;
    V *acc;
    Pending *all;      /* by store, then by element */
    uint32_t i, of, n; /* the element; stores of one */
} Stage;
static void element(Kernel *k, void *user) {
    Stage *g = user;
    k->in_run = 1 + g->i % k->x.step->held.run;
    g->n = kernel_pending(k, g->all + g->i, g->of);
    g->terms(k, g->user, g->acc);
    k->in_run = 0;
}
/* The elements of so many runs from the first one on. */
static void elements(Kernel *k, Stage *g, Atom first, uint32_t runs) {
    const HeldRow *h = &k->x.step->held;
    Indices *x = k->x.ix;
    g->of = runs * h->run;
    g->all = arena_new(k->x.plan->arena, Pending, g->of * (k->x.step->stores.n + 1));
    for (g->i = 0; g->i < g->of; g->i++) {
        Dim place = (Dim)(g->i / h->run) * h->group * h->run + g->i % h->run;
        Ix at = ix_add(x, ix_scale(x, ix_atom(x, first), h->run), ix_dim(x, place));
        kernel_substituted(k, k->x.step->lane, at, element, g);
    }
}
static void store_if(Kernel *k, const Stage *g, V condition) {
    if (!g->n) return;
    if (!condition.ptr) {
        kernel_store_all(k, g->all, g->n * g->of);
        return;
    }
    If f = kernel_if(k, condition);
    kernel_store_all(k, g->all, g->n * g->of);
    kernel_if_end(k, &f);
}
/* Turns of the loop over what is not in registers. */
static void rest_of_row(Kernel *k, uint32_t n, V *acc, RowTerms *terms, void *user) {
    Emit *e = k->e;
    const HeldRow *h = &k->x.step->held;
    V step = em_i64(e, (int64_t)h->group * HELD_TURNS), next[MAX_HELD];
    Dim at_once = (Dim)h->group * h->run * HELD_TURNS, length = loop_extent(k->x.ix, k->x.step->lane);
    Dim end = h->rest + (length - h->rest) / at_once * at_once;
    For f = em_for(e, em_i64(e, h->rest / h->run), em_i64(e, end / h->run), step, n, acc);
    kernel_enter(k);
    kernel_bind(k, h->last, em_bin(e, "llvm.add", em_arg(&f.scope, 0), member_number(k)));
    for (uint32_t i = 0; i < n; i++) next[i] = em_arg(&f.scope, i + 1);
    Stage part = {.terms = terms, .user = user, .acc = next};
    elements(k, &part, h->last, HELD_TURNS);
    store_if(k, &part, k->block.exists);
    kernel_leave(k);
    em_for_end(e, &f, next, acc);
    if (end == length) return;
    V first = em_bin(e, "llvm.add", em_i64(e, end), member_number(k));
    For g = em_for(e, first, em_i64(e, length), em_i64(e, h->group), n, acc);
    kernel_enter(k);
    kernel_bind(k, k->x.step->lane, em_arg(&g.scope, 0));
    for (uint32_t i = 0; i < n; i++) next[i] = em_arg(&g.scope, i + 1);
    Stage one = {.terms = terms, .user = user, .acc = next, .of = 1};
    one.all = arena_new(k->x.plan->arena, Pending, k->x.step->stores.n + 1);
    element(k, &one);
    store_if(k, &one, k->block.exists);
    kernel_leave(k);
    em_for_end(e, &g, next, acc);
}
void rows_held(Kernel *k, uint32_t n, V *acc, RowTerms *terms, void *user) {
    const HeldRow *h = &k->x.step->held;
    bool may_lack = last_may_lack(k);
    Stage all = {.terms = terms, .user = user, .acc = acc}, last = all;
    V exists = k->block.exists, has = exists;
    k->rows = false;
    elements(k, &all, h->first, h->turns - may_lack);
    if (may_lack) {
        V tail = k->tail;
        k->tail = em_cmpi(k->e, "ult", last_run(k), runs_in_row(k));
        has = exists.ptr ? em_bin(k->e, "llvm.and", exists, k->tail) : k->tail;
        elements(k, &last, h->last, 1);
        k->tail = tail;
    }
    store_if(k, &all, exists);
    if (may_lack) store_if(k, &last, has);
    if (h->rest) rest_of_row(k, n, acc, terms, user);
}
