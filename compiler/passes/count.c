/* Programs share nested programs, so that a short text may stand for 2^n equations. Three walks, which visit each
   program once, count them without writing them out: enclosing programs first, to count the occurrences of each
   program; nested ones first, for sizes. Small programs are better copied, since nothing is fused across a call. */
#include "count.h"
#include "../control.h"
#include <assert.h>

static const struct {
    bool called;     /* calls that are left are of functions */
    uint32_t least;  /* equations of a function, at least */
    uint32_t most;   /* equations of all copies of a program, at most */
    uint32_t scalar; /* an equation without arrays counts as so many eighths of another */
} limits[NCOUNTINGS] = {
#ifdef JAXCC_FEW_COPIES /* for tests: programs of a few equations become functions too */
    [COUNT_CALLS] = {false, 2, 6, 8},
    [COUNT_BRANCHES] = {true, 2, 6, 8},
    [COUNT_LOOPS] = {true, 2, 6, 8},
#else
    [COUNT_CALLS] = {false, 64, 4096, 8},
    [COUNT_BRANCHES] = {true, 64, 4096, 8},
    [COUNT_LOOPS] = {true, 20, 1024, 1},
#endif
};

typedef struct {
    const Jaxpr *program;
    bool called; /* by an equation that is nothing but a call of it */
} Held;
typedef struct {
    Held *at;
    uint32_t n, cap;
} Helds;
typedef struct {
    Ctx *cx;
    Counts counts; /* a program comes after its nested programs */
    Helds *held;   /* by number: with repetitions */
} Walk;

static uint32_t sum(uint32_t a, uint32_t b) { return a + b < COUNT_MOST ? a + b : COUNT_MOST; }
static uint64_t product(uint32_t a, uint32_t b) { return (uint64_t)a * b; }

static Count *count_at(Counts *c, const Jaxpr *j) {
    uint32_t number = 0;
    bool known = intern_find(&c->numbers, &j, sizeof j, &number);
    assert(known);
    (void)known;
    return &c->all.at[number];
}
const Count *count_of(Counts *c, const Jaxpr *j) { return count_at(c, j); }

void count_as(Counts *c, const Jaxpr *new, const Jaxpr *j) {
    bool fresh;
    Count known = *count_of(c, j);
    intern(&c->numbers, &new, sizeof new, &fresh);
    if (fresh) push(c->numbers.arena, &c->all, known);
}

static Helds held_by(Ctx *cx, const Jaxpr *j) {
    Helds all = {0};
    each(const Eqn, e, j->eqns) {
        Jaxprs some = e->params.n ? eqn_jaxprs(cx->arena, e) : (Jaxprs){0};
        each(Jaxpr *, k, some) push(cx->arena, &all, ((Held){*k, *k == eqn_program(e) && prim_calls(e->prim)}));
    }
    return all;
}
static void visit(Walk *c, const Jaxpr *j) {
    Arena *arena = c->cx->arena;
    Jaxprs all = jaxprs_within(arena, j);
    c->held = arena_new(arena, Helds, all.n);
    for (uint32_t i = 0; i < all.n; i++) {
        intern(&c->counts.numbers, &all.at[i], sizeof all.at[i], NULL);
        push(arena, &c->counts.all, ((Count){.program = all.at[i]}));
        c->held[i] = held_by(c->cx, all.at[i]);
    }
}

/* In eighths: most equations without arrays are one instruction of the code that loops and branches become. */
enum { EIGHTHS = 8 };
static uint32_t own_size(const Ctx *cx, const Jaxpr *j, Counting what) {
    uint32_t size = 0;
    each(const Eqn, e, j->eqns) {
        bool one = !eqn_program(e) && all_scalars(cx, e->in) && all_scalars(cx, e->out);
        size = sum(size, one ? limits[what].scalar : EIGHTHS);
    }
    return size;
}
static bool too_much(const Count *c, Counting what) {
    return c->places > 1 && c->size >= EIGHTHS * limits[what].least &&
           product(c->copies, c->size) > product(EIGHTHS, limits[what].most);
}

/* Marks the programs that jit calls. */
static void mark_called(Walk *c) {
    each(const Count, k, c->counts.all)
        each(const Eqn, e, k->program->eqns)
            if (calls_function(e)) count_at(&c->counts, param_jaxpr(e, K_jaxpr))->function = true;
}

Counts counts_of(Ctx *cx, const Jaxpr *j, Counting what, MayBeFunction *may, void *user) {
    Walk c = {.cx = cx, .counts.numbers.arena = cx->arena};
    visit(&c, j);
    if (limits[what].called) mark_called(&c);
    count_at(&c.counts, j)->copies = 1;
    for (uint32_t i = c.counts.all.n; i-- > 0;) {
        Count *holder = &c.counts.all.at[i];
        Helds held = c.held[i];
        if (holder->function) holder->copies = 1;
        each(Held, k, held) {
            Count *inner = count_at(&c.counts, k->program);
            inner->places++;
            inner->copies = sum(inner->copies, holder->copies);
        }
    }
    for (uint32_t i = 0; i < c.counts.all.n; i++) {
        Count *holder = &c.counts.all.at[i];
        Helds held = c.held[i];
        holder->size = own_size(cx, holder->program, what);
        each(Held, k, held) {
            const Count *inner = count_of(&c.counts, k->program);
            if (!inner->function) holder->size = sum(holder->size - (k->called ? EIGHTHS : 0), inner->size);
        }
        holder->function = holder->function || (too_much(holder, what) && may(user, holder->program));
    }
    return c.counts;
}
