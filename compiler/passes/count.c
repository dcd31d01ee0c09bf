/* Programs share nested programs, so that a short text may stand for 2^n equations. Three walks, which visit each
   program once, count them without writing them out: enclosing programs first, to count the occurrences of each
   program; nested ones first, for sizes. Small programs are better copied, since nothing is fused across a call. */
#include "count.h"

enum {
    LEAST_SIZE = 24,    /* equations of a function, at least */
    MOST_COPIED = 1024, /* equations of all copies of a program, at most */
};

typedef struct {
    Ctx *cx;
    Counts counts;
    struct {
        uint32_t *at;
        uint32_t n, cap;
    } order; /* numbers: a program comes after its nested programs */
    struct {
        Jaxprs *at;
        uint32_t n, cap;
    } held; /* by number: with repetitions */
} Counting;

static uint32_t sum(uint32_t a, uint32_t b) { return a + b < COUNT_MOST ? a + b : COUNT_MOST; }
static uint64_t product(uint32_t a, uint32_t b) { return (uint64_t)a * b; }

static Count *count_at(Counts *c, const Jaxpr *j) { return &c->all.at[intern(&c->numbers, &j, sizeof j, NULL)]; }
const Count *count_of(Counts *c, const Jaxpr *j) { return count_at(c, j); }

void count_as(Counts *c, const Jaxpr *new, const Jaxpr *j) {
    bool fresh;
    Count known = *count_of(c, j);
    intern(&c->numbers, &new, sizeof new, &fresh);
    if (fresh) push(c->numbers.arena, &c->all, known);
}

static Jaxprs held_by(Ctx *cx, const Jaxpr *j) {
    struct {
        Jaxpr **at;
        uint32_t n, cap;
    } all = {0};
    each(const Eqn, e, j->eqns) {
        Jaxprs some = e->params.n ? eqn_jaxprs(cx->arena, e) : (Jaxprs){0};
        each(Jaxpr *, k, some) push(cx->arena, &all, *k);
    }
    return (Jaxprs){all.at, all.n};
}
static void visit(Counting *c, const Jaxpr *j) {
    bool fresh;
    Arena *arena = c->cx->arena;
    uint32_t number = intern(&c->counts.numbers, &j, sizeof j, &fresh);
    if (!fresh) return;
    push(arena, &c->counts.all, ((Count){.program = j}));
    push(arena, &c->held, held_by(c->cx, j));
    Jaxprs held = c->held.at[number];
    each(Jaxpr *, k, held) visit(c, *k);
    push(arena, &c->order, number);
}

static bool too_much(const Count *c) {
    return c->places > 1 && c->size >= LEAST_SIZE && product(c->copies, c->size) > MOST_COPIED;
}

/* Marks the programs that jit calls. */
static void mark_called(Counting *c) {
    for (uint32_t i = 0; i < c->order.n; i++) {
        const Jaxpr *j = c->counts.all.at[c->order.at[i]].program;
        each(const Eqn, e, j->eqns)
            if (e->prim == P_jit) count_at(&c->counts, param_jaxpr(e, K_jaxpr))->function = true;
    }
}

Counts counts_of(Ctx *cx, const Jaxpr *j, bool called, MayBeFunction *may, void *user) {
    Counting c = {.cx = cx, .counts.numbers.arena = cx->arena};
    visit(&c, j);
    if (called) mark_called(&c);
    count_at(&c.counts, j)->copies = 1;
    for (uint32_t i = c.order.n; i-- > 0;) {
        Count *holder = &c.counts.all.at[c.order.at[i]];
        Jaxprs held = c.held.at[c.order.at[i]];
        if (holder->function) holder->copies = 1;
        each(Jaxpr *, k, held) {
            Count *inner = count_at(&c.counts, *k);
            inner->places++;
            inner->copies = sum(inner->copies, holder->copies);
        }
    }
    each(uint32_t, number, c.order) {
        Count *holder = &c.counts.all.at[*number];
        Jaxprs held = c.held.at[*number];
        holder->size = sum(holder->program->eqns.n, 0);
        each(Jaxpr *, k, held) {
            const Count *inner = count_of(&c.counts, *k);
            if (!inner->function) holder->size = sum(holder->size, inner->size);
        }
        holder->function = holder->function || (may && too_much(holder) && may(user, holder->program));
    }
    return c.counts;
}
