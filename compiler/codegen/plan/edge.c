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
    struct {
        Ix *at;
        uint32_t n, cap;
    } tests; /* of the row of a tile, and the row as a value */
} Edges;
static void tested(void *user, Val v, const Ix *index, Ix address) {
    Edges *e = user;
    if (!v && e->step->tile && ix_uses(e->p->ix, address, e->step->tile)) push(e->p->arena, &e->tests, address);
}
/* Kernels substitute iterations of these loops: of (2·i + j) / 2, with j one of them, i is left, of which an edge would
   be tested, too. */
static bool is_substituted(const Plan *p, const Step *s, Ix index) {
    const Atom loops[] = {s->unrolled, s->jam, s->tile};
    bool uses = false;
    for (uint32_t i = 0; i < sizeof loops / sizeof *loops; i++) uses |= loops[i] && ix_uses(p->ix, index, loops[i]);
    for (uint32_t i = 0; i < s->nred; i++) uses |= ix_uses(p->ix, index, s->red[i]);
    return uses;
}
static void found(void *user, Ix index, Dim lo, Dim hi) {
    Edges *e = user;
    if (!ix_is_loops(e->p->ix, index)) {
        if (is_substituted(e->p, e->step, index)) e->n = MOST_EDGES + 1;
        return;
    }
    for (uint32_t i = 0; i < e->n && i < MOST_EDGES; i++)
        if (e->at[i].index == index && e->at[i].lo == lo && e->at[i].hi == hi) return;
    if (e->n < MOST_EDGES) e->at[e->n] = (Edge){index, lo, hi};
    e->n++;
}
static void keep_edges(Plan *p, Step *s, const Edges *e) {
    if (e->n == 0 || e->n > MOST_EDGES) return;
    Dim lanes = s->lane ? loop_extent(p->ix, s->lane) : 1;
    for (uint32_t n = 0; n < e->n; n++) /* a vector is rarely inside a short row */
        if (ix_uses(p->ix, e->at[n].index, s->lane) && dim_is_const(lanes) && lanes < EDGE_LANES) return;
    s->edges = e->at, s->nedges = e->n;
    for (uint32_t i = 0; i < s->nkept; i++)
        for (uint32_t n = 0; n < e->n; n++)
            if (ix_uses(p->ix, e->at[n].index, s->kept[i])) s->edge_loop = s->kept[i];
}
static bool is_edge(const Step *s, Ix index) {
    uint32_t n = 0;
    while (n < s->nedges && s->edges[n].index != index) n++;
    return n < s->nedges;
}
void plan_edges(Plan *p, Step *s) {
    Edges e = {.p = p, .step = s, .at = arena_new(p->arena, Edge, MOST_EDGES)};
    Dim size = 1;
    for (uint32_t i = 0; i < s->domain.n; i++) size = dim_mul(p->cx->types, size, s->domain.at[i]);
    bool few = !p->fuse || (dim_is_const(size) && size < EDGE_SIZE);
    if (few && !s->tile) return;
    record(p, s, tested, &e);
    record_edges(p, found);
    step_reads(p, s, tested, &e);
    record_edges(p, NULL);
    if (!few) keep_edges(p, s, &e);
    s->tile_tested = e.tests.n > 0;
    for (uint32_t i = 0; i < e.tests.n; i++) s->tile_apart |= !is_edge(s, e.tests.at[i]);
}
