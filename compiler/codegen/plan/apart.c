#include "../cost.h"
#include "apart.h"

/* Do clusters of blocks have such rows (rows.c)? Of the longest ones only if they are so many that nothing is lost
   where that is not so. */
static bool of_clusters(const Plan *p, Dim rows, Dim terms) {
    const Dim some = (Dim)HELD_CLUSTER * HELD_TWICE * HELD_WORDS;
    if (!p->target->device->clusters || !dim_is_const(terms) || rows <= 0) return false;
    return terms <= some || (rows >= APART_BLOCKS / 2 && terms <= CLUSTER_TERMS);
}
bool apart_step(Plan *p, const Step *s) {
    Types *ts = p->cx->types;
    Dim rows = 1, terms = 1;
    if (!p->target->device || !s->reduces || s->kind != STEP_LOOPS) return false;
    for (uint32_t d = 0; d < s->domain.n; d++) {
        Dim *n = s->reduced[d] ? &terms : &rows;
        *n = dim_mul(ts, *n, s->domain.at[d]);
    }
    bool columns = s->domain.n && !s->reduced[s->domain.n - 1];
    Dim most = columns ? APART_BLOCKS * APART_COLUMNS : FEW_ROWS,
        least = columns ? APART_TERMS / APART_COLUMNS : APART_TERMS;
    if (!dim_is_const(rows) || rows > most || (!columns && of_clusters(p, rows, terms))) return false;
    return !dim_is_const(terms) || terms >= least;
}
bool apart_result(Plan *p, Body *b, Val v) {
    const Info *info = plan_info(p, v);
    if (!b || val_info(p->cx, v)->lit || info->class != VAL_MEMBER || info->attention) return false;
    const Step *s = b->steps.at[info->step - 1];
    Ix index[MAX_RANK];
    bool row;
    return apart_step(p, s) && step_index(p, s, v, index, &row) && row;
}
