#include "../cost.h"
#include "../eval/record.h"

/* Edges: where arrays that are read through padding end. Most points of a loop nest are inside all of them for all
   lanes and inner loops; there a kernel need not test for padding. Loops are not cut: the innermost loop that moves an
   index across an edge has two bodies, and a comparison of the index with bounds computed before the loop chooses
   one. */

typedef struct {
    Plan *p;
    const Step *step;
    Edge *at;
    uint32_t n;
} Edges;
static void nothing(void *user, Val v, const Ix *index, Ix address) {}
/* Where a kernel writes out the iterations of a loop, (2·i + j) / 2 of the loop j is i, of which an edge would be tested,
   too. */
static bool becomes_loops(Plan *p, const Step *s, Ix index) {
    if (s->unrolled) index = ix_substitute(p->ix, index, s->unrolled, 0);
    for (uint32_t i = 0; i < s->nred; i++) index = ix_substitute(p->ix, index, s->red[i], 0);
    return ix_is_loops(p->ix, index);
}
static void found(void *user, Ix index, Dim lo, Dim hi) {
    Edges *e = user;
    if (!ix_is_loops(e->p->ix, index)) {
        if (becomes_loops(e->p, e->step, index)) e->n = MOST_EDGES + 1;
        return;
    }
    for (uint32_t i = 0; i < e->n && i < MOST_EDGES; i++)
        if (e->at[i].index == index && e->at[i].lo == lo && e->at[i].hi == hi) return;
    if (e->n < MOST_EDGES) e->at[e->n] = (Edge){index, lo, hi};
    e->n++;
}
void plan_edges(Plan *p, Step *s) {
    Edges e = {.p = p, .step = s, .at = arena_new(p->arena, Edge, MOST_EDGES)};
    Dim size = 1;
    for (uint32_t i = 0; i < s->domain.n; i++) size = dim_mul(p->cx->types, size, s->domain.at[i]);
    if (!p->fuse || (dim_is_const(size) && size < EDGE_SIZE)) return;
    record(p, s, nothing, &e);
    record_edges(p, found);
    step_reads(p, s, nothing, &e);
    record_edges(p, NULL);
    if (e.n == 0 || e.n > MOST_EDGES) return;
    Dim lanes = s->lane ? loop_extent(p->ix, s->lane) : 1;
    for (uint32_t n = 0; n < e.n; n++) /* a vector is rarely inside a short row */
        if (ix_uses(p->ix, e.at[n].index, s->lane) && dim_is_const(lanes) && lanes < EDGE_LANES) return;
    s->edges = e.at, s->nedges = e.n;
    for (uint32_t i = 0; i < s->nkept; i++)
        for (uint32_t n = 0; n < e.n; n++)
            if (ix_uses(p->ix, e.at[n].index, s->kept[i])) s->edge_loop = s->kept[i];
}
