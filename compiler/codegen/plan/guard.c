#include "guard.h"
#include "sort.h"
#include "../../../runtime/cuda.h"
#include "../cost.h"
#include "call.h"

/* What decides how a while or a cond goes on is computed by a kernel, and the host would have to wait for it. If
   kernels do all that the bodies do, they begin by testing it, and the host enqueues them whether they will run or not.
   It enqueues several turns of a while before it reads whether that goes on; turns after its end change nothing. So
   carries stay where they are, and what the loop changes is unknown to the host. For newer drivers the runtime makes a
   graph of a turn, in which loops of the turn are nodes; that needs no test in the kernels. The predicate of a while is
   computed by every turn, also after the end: then from the same values as before. */

/* The kernels that a body launches, at most; more than MOST_LAUNCHES if the host waits for the device, or does
   something itself. `calls`: functions may be called and loops may follow, whose kernels do not test what is around
   them. */
static int64_t body_launches(const Plan *p, const Body *b, bool calls);
static int64_t bodies_launches(const Plan *p, const Step *s, bool calls) {
    int64_t n = 0;
    for (uint32_t i = 0; i < s->nbodies && n <= MOST_LAUNCHES; i++) n += body_launches(p, s->bodies[i], calls);
    return n;
}
static int64_t scan_launches(const Plan *p, const Step *s, bool calls) {
    Scan scan = scan_of(s->e);
    Dim turns = scan_length(p->cx, &scan);
    if (!dim_is_const(turns) || turns > MOST_LAUNCHES) return MOST_LAUNCHES + 1;
    return turns * bodies_launches(p, s, calls);
}
static int64_t cond_launches(const Plan *p, const Step *s, bool calls) {
    Vals index = cond_of(s->e).index;
    bool known = true;
    each(Val, v, index) known = known && plan_register(p, *v);
    return known || s->decides ? bodies_launches(p, s, calls) : MOST_LAUNCHES + 1;
}
/* Merging copies, and has as many launches as its rows are long. */
static int64_t sort_launches(const Sort *so) {
    enum { OTHERS = 2 }; /* of a scatter: parts, the updates */
    return so->by_digits && dim_is_const(so->n) ? 3 * so->passes + OTHERS : GUARDED_LAUNCHES + 1;
}
static int64_t step_launches(const Plan *p, const Step *s, bool calls) {
    static const bool kernel[STEP_KINDS] = {
        [STEP_LOOPS] = true, [STEP_DOT] = true, [STEP_CUM] = true, [STEP_SCATTER] = true, [STEP_SORT] = true};
    if (s->sort && s->sort->from[0]) return sort_launches(s->sort);
    bool parts = s->parts || (s->sort && s->sort->parts);
    if (kernel[s->kind]) return parts ? 3 : s->claims.buf || s->sort ? 2 : 1;
    if (s->kind == STEP_SCALAR) return 0;
    if (s->kind == STEP_SCAN) return scan_launches(p, s, calls);
    if (s->kind == STEP_COND) return cond_launches(p, s, calls);
    if (s->kind == STEP_WHILE && s->decides && calls) return GRAPH_LAUNCHES + bodies_launches(p, s, calls);
    return s->kind == STEP_CALL && calls ? s->call->callee->launches : MOST_LAUNCHES + 1;
}
static int64_t body_launches(const Plan *p, const Body *b, bool calls) {
    int64_t n = 0;
    for (uint32_t i = 0; i < b->steps.n && n <= MOST_LAUNCHES; i++) n += step_launches(p, b->steps.at[i], calls);
    return n;
}
static uint32_t larger(uint32_t a, uint32_t b) { return a > b ? a : b; }
uint32_t guard_loops(const Body *b) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < b->steps.n; i++) {
        const Step *s = b->steps.at[i];
        uint32_t deep = s->kind == STEP_CALL ? s->call->callee->loops : 0;
        if (s->kind == STEP_WHILE && !s->decides) return JAXCC_RT_CUDA_NESTED;
        for (uint32_t k = 0; k < s->nbodies; k++) deep = larger(deep, guard_loops(s->bodies[k]));
        most = larger(most, deep + (s->kind == STEP_WHILE));
    }
    return most;
}
int64_t guard_launches(const Plan *p) { return p->heap ? MOST_LAUNCHES + 1 : body_launches(p, p->top, true); }
void guard_branches(Plan *p, Step *s, Buf *index) {
    Vals out = s->e->out;
    each(Val, v, out)
        if (plan_register(p, *v)) return;
    if (bodies_launches(p, s, false) <= GUARDED_BRANCHES) s->decides = index;
}

/* A scalar in a register is the same in every turn, and arrays keep their size. */
static bool carries_stay(const Step *s) {
    While w = while_of(s->e), turn = while_turn(&w, s->bodies[0]->j, s->bodies[1]->j);
    for (uint32_t i = 0; i < s->ncarries; i++) {
        if (s->carries[i].kind == CARRY_HEAP) return false;
        if (s->carries[i].kind == CARRY_SCALAR && turn.end.at[i] != turn.carry.at[i]) return false;
    }
    return true;
}
/* Turns of a loop with loops or calls, or with many kernels, are enqueued one at a time, as the host knows that they
   are to run. */
void guard_turns(Plan *p, Step *s, Dim copied) {
    int64_t launches = bodies_launches(p, s, false), turns = GUARDED_LAUNCHES / (launches ? launches : 1);
    if (!carries_stay(s) || (dim_is_const(copied) && copied > GUARDED_BYTES)) return;
    if (launches > MOST_LAUNCHES && bodies_launches(p, s, true) > MOST_LAUNCHES) return;
    if (guard_loops(s->bodies[1]) >= JAXCC_RT_CUDA_NESTED) return;
    s->decides = s->bodies[0]->out_slots[0];
    s->at_once = turns < 2 ? 1 : turns < GUARDED_TURNS ? (uint32_t)turns : GUARDED_TURNS;
}

/* Values of one shape are copied by one step, if the latest ones include it; `first`: the first step that copies. */
static Step *copying_step(Plan *p, Body *b, Val v, uint32_t first) {
    const ArrayType *t = val_array(p->cx, v);
    for (uint32_t i = b->steps.n, tries = 0; i > first && tries < JOIN_TRIES; i--, tries++) {
        Step *s = b->steps.at[i - 1];
        const ArrayType *other = val_array(p->cx, s->stores.at[0].v);
        bool same = t->rank == other->rank && !memcmp(t->dims, other->dims, t->rank * sizeof *t->dims);
        if (same && s->stores.n < STEP_READS) return s;
    }
    return step_new(p, b, STEP_LOOPS, NULL, t);
}
void guard_copies(Plan *p, Step *s) {
    Body *b = s->bodies[1];
    uint32_t first = b->steps.n;
    for (uint32_t i = 0; i < s->ncarries; i++) {
        const Carry *c = &s->carries[i];
        if (c->kind != CARRY_COPIED) continue;
        Val out = b->j->out.at[i], next = val_new(p->cx, val_type(p->cx, out), val_info(p->cx, out)->span);
        plan_grow(p);
        *plan_info(p, next) = (Info){.class = VAL_STORED, .buf = c->next, .borrowed = true};
        step_store(p, copying_step(p, b, next, first), next, c->current, 0, NULL, DT_none);
    }
    for (uint32_t i = first; i < b->steps.n; i++) schedule_step(p, b, b->steps.at[i]);
}
