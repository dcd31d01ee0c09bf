/* Programs of elements in the plan: what their loops keep, stack and scan. */
#include "../cost.h"
#include "../eval/record.h"

uint32_t program_rank(const Ctx *cx, const Eqn *e) {
    return val_array(cx, e->out.at[0])->rank - val_array(cx, param_jaxpr(e, K_jaxpr)->out.at[0])->rank;
}
static const Jaxpr *body_of_loop(const Eqn *e) {
    return e->prim == P_while ? while_of(e).body : e->prim == P_scan ? scan_of(e).body : NULL;
}
/* The most values that a loop in the program keeps. */
uint32_t program_carries(const Jaxpr *j) {
    uint32_t most = 0;
    each(Eqn, e, j->eqns) {
        if (!body_of_loop(e)) continue;
        uint32_t inner = program_carries(body_of_loop(e));
        uint32_t own = e->in.n > inner ? e->in.n : inner;
        most = own > most ? own : most;
    }
    return most;
}
static uint32_t used(Plan *p, Vals at) {
    uint32_t n = 0;
    each(Val, v, at) n += plan_info(p, *v)->uses > 0;
    return n;
}
/* The cost of the longest path that ends with the equation. */
static uint32_t longest_path(Plan *p, const Eqn *e) {
    uint32_t most = 0;
    each(Val, v, e->in) most = plan_info(p, *v)->cost > most ? plan_info(p, *v)->cost : most;
    return most + eqn_cost(e);
}
/* Are more values in use at once than several vectors of each leave registers for, while enough operations do not wait
   for each other? No step reads the values of such a body, so that what is known of them is free for this. */
static bool crowded(Plan *p, const Jaxpr *j) {
    plan_count_uses(p, j);
    uint32_t now = used(p, j->in), live = now, cost = 0, path = 0;
    each(Eqn, e, j->eqns) {
        uint32_t here = longest_path(p, e);
        cost += eqn_cost(e), path = here > path ? here : path;
        each(Val, v, e->out) plan_info(p, *v)->cost = here;
        now += used(p, e->out);
        live = now > live ? now : live;
        each(Val, v, e->in) now -= !--plan_info(p, *v)->uses && !val_info(p->cx, *v)->lit;
    }
    each(Val, v, j->out) plan_info(p, *v)->uses = 0;
    return 2 * live >= p->target->registers && CROWD_OF * cost > CROWD_COST * path;
}
bool program_crowded(Plan *p, const Jaxpr *j) {
    each(Eqn, e, j->eqns)
        if (body_of_loop(e) && (crowded(p, body_of_loop(e)) || program_crowded(p, body_of_loop(e)))) return true;
    return false;
}
/* Stacks of a program, which its only loop writes, have the turn of the loop as their first axis. */
void program_stacks(Plan *p, const Eqn *e) {
    Ix turn = 0;
    each(Val, v, e->out) {
        const ArrayType *t = val_array(p->cx, *v);
        Info *info = plan_info(p, *v);
        info->stack = t->rank > program_rank(p->cx, e);
        if (!info->stack) continue;
        if (!turn) turn = ix_atom(p->ix, atom_loop(p->ix, t->dims[0]));
        assert(turn); /* what is beside each other in an array is read at an index of its own */
        info->turn = turn;
    }
}

typedef struct {
    Plan *p;
    Atom lane;
    bool apart; /* neighbours along this loop are apart in memory */
} Neighbours;
static void look_apart(void *user, Val v, const Ix *index, Ix address) {
    Neighbours *n = user;
    bool other;
    if (!v) return;
    address = eval_address(n->p, v, index); /* what a step computes has its place in memory only when it is cut */
    n->apart |= ix_uses(n->p->ix, address, n->lane) && ix_coef(n->p->ix, address, n->lane, &other) != 1;
}
/* An array that is `stored` is copied if the elements along its last axis are not beside each other. */
void program_stored(Plan *p, Body *b, const Eqn *e) {
    Val v = e->out.at[0];
    const ArrayType *t = val_array(p->cx, v);
    Ix index[MAX_RANK];
    uint32_t last = t->rank;
    if (plan_info(p, v)->class != VAL_VIRTUAL) return;
    while (last > 0 && t->dims[last - 1] == 1) last--;
    if (!last) return;
    for (uint32_t d = 0; d < t->rank; d++) index[d] = ix_atom(p->ix, atom_loop(p->ix, t->dims[d]));
    Neighbours n = {.p = p, .lane = ix_loop(p->ix, index[last - 1])};
    plan_reads(p, v, index, look_apart, &n);
    if (n.apart) plan_cut(p, b, v);
}
