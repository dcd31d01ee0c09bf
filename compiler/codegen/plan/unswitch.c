#include "../cost.h"
#include "../eval/record.h"

/* Unswitching: a select_n whose predicate is a scalar takes the same case everywhere, and what is combined with a
   scalar by `and` or `or` may not matter anywhere. If it costs enough, the scalar is tested before the loops of the
   step, which have a body for each value of it. */

static bool is_predicate(const Ctx *cx, Val v) {
    const ArrayType *t = val_array(cx, v);
    return !val_info(cx, v)->lit && t->rank == 0 && t->dtype == DT_bool;
}
Val eqn_predicate(const Ctx *cx, const Eqn *e) {
    uint32_t n = e->prim == P_select_n && e->in.n == 3 ? 1 : e->prim == P_and || e->prim == P_or ? 2 : 0;
    for (uint32_t i = 0; i < n; i++)
        if (is_predicate(cx, e->in.at[i]) && val_array(cx, e->out.at[0])->rank > 0) return e->in.at[i];
    return 0;
}

enum { MOST_PREDICATES = 4 }; /* of a step, of which one is chosen */
typedef struct {
    Plan *p;
    const Step *step;
    uint32_t cost; /* of what is evaluated and read for one element */
    Val at[MOST_PREDICATES];
    uint32_t n;
    bool inside; /* a value of this step was read */
} Found;
static void reads(void *user, Val v, const Ix *index, Ix address) {
    Found *f = user;
    const Info *info = v ? plan_info(f->p, v) : NULL;
    f->cost += info != NULL;
    f->inside |= info && info->class == VAL_MEMBER && info->step == f->step->number;
}
static void evaluates(void *user, const Eqn *e) {
    Found *f = user;
    f->cost += eqn_cost(e);
    Val predicate = eqn_predicate(f->p->cx, e);
    uint32_t i = 0;
    while (i < f->n && f->at[i] != predicate) i++;
    if (predicate && i == f->n && i < MOST_PREDICATES) f->at[f->n++] = predicate;
}
/* What one element costs if the predicate is known to be `taken`; predicate 0: if none is known. */
static Found evaluated(Plan *p, Step *s, Val predicate, uint32_t taken) {
    Found f = {.p = p, .step = s};
    Ix index[MAX_RANK];
    Eval *x = record(p, s, reads, &f);
    record_points(p, evaluates);
    x->decided = (Decided){predicate, taken, 0};
    each(Store, st, s->stores) {
        step_at(p, s, st->v, index);
        eval_value(x, st->v, index);
    }
    each(Val, v, s->members) {
        const Eqn *e = plan_info(p, *v)->e;
        if (!eqn_reduces(e)) continue;
        step_at(p, s, e->in.at[0], index);
        eval_value(x, e->in.at[0], index);
    }
    x->decided = (Decided){0};
    record_points(p, NULL);
    return f;
}
/* Can it be evaluated before the loops? */
static bool outside(Plan *p, Step *s, Val predicate) {
    Found f = {.p = p, .step = s};
    plan_reads(p, predicate, NULL, reads, &f);
    return !f.inside;
}
void plan_unswitch(Plan *p, Step *s) {
    if (!p->unswitches || s->kind != STEP_LOOPS || p->target->device || !p->fuse) return;
    Found all = evaluated(p, s, 0, 0);
    uint32_t part = all.cost / UNSWITCH_PART, most = (part > UNSWITCH_COST ? part : UNSWITCH_COST) - 1;
    for (uint32_t i = 0; i < all.n; i++) {
        if (!outside(p, s, all.at[i])) continue;
        for (uint32_t taken = 0; taken < 2; taken++) {
            uint32_t left = evaluated(p, s, all.at[i], taken).cost, saved = all.cost > left ? all.cost - left : 0;
            if (saved > most) most = saved, s->unswitched = all.at[i];
        }
    }
}
