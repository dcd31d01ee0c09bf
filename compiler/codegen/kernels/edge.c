#include "kernel.h"
#include "../cost.h"

/* Edges: where arrays that are read through padding end. Most points of a loop nest are inside all of them for all
   lanes and inner loops; there a kernel need not test for padding. Loops are not cut: the innermost loop that moves an
   index across an edge has two bodies, and a comparison of the index with bounds computed before the loop chooses
   one. */

typedef struct Edge {
    Ix index;
    Dim lo, hi;
} Edge;

bool edge_known(const Indices *x, Ix i) {
    const IxExpr *e = ix_at(x, i);
    for (uint32_t t = 0; t < e->n; t++)
        if (atom_at(x, e->at[t].atom)->kind != ATOM_LOOP || !dim_is_const(e->at[t].coef)) return false;
    return true;
}

typedef struct {
    Plan *p;
    Edge *at;
    uint32_t n;
} Edges;
static void nothing(void *user, Val v, const Ix *index, Ix address) {}
static void found(void *user, Ix index, Dim lo, Dim hi) {
    Edges *e = user;
    if (!edge_known(e->p->ix, index)) return;
    for (uint32_t i = 0; i < e->n && i < MOST_EDGES; i++)
        if (e->at[i].index == index && e->at[i].lo == lo && e->at[i].hi == hi) return;
    if (e->n < MOST_EDGES) e->at[e->n] = (Edge){index, lo, hi};
    e->n++;
}
void plan_edges(Plan *p, Step *s) {
    Edges e = {.p = p, .at = arena_new(p->arena, Edge, MOST_EDGES)};
    Dim size = 1;
    for (uint32_t i = 0; i < s->domain.n; i++) size = dim_mul(p->cx->types, size, s->domain.at[i]);
    if (!p->fuse || (dim_is_const(size) && size < EDGE_SIZE)) return;
    plan_dry(p, s, nothing, &e)->edge = found;
    step_reads(p, s, nothing, &e);
    p->dry->edge = NULL;
    if (e.n == 0 || e.n > MOST_EDGES) return;
    Dim lanes = s->lane ? loop_extent(p->ix, s->lane) : 1;
    for (uint32_t n = 0; n < e.n; n++) /* a vector is rarely inside a short row */
        if (ix_uses(p->ix, e.at[n].index, s->lane) && dim_is_const(lanes) && lanes < EDGE_LANES) return;
    s->edges = e.at, s->nedges = e.n;
    for (uint32_t i = 0; i < s->nkept; i++)
        for (uint32_t n = 0; n < e.n; n++)
            if (ix_uses(p->ix, e.at[n].index, s->kept[i])) s->edge_loop = s->kept[i];
}

/* The number of iterations of a loop done at once; 0: it is not bound, and all are. */
static Dim at_once(const Kernel *k, Atom loop) {
    const Step *s = k->step;
    for (uint32_t i = 0; i < s->nkept; i++) {
        if (s->kept[i] != loop) continue;
        uint32_t n = loop == s->lane ? k->w : loop == s->jam ? k->jam : loop == s->tile ? k->tile : 1;
        return n ? n : 1;
    }
    return 0;
}
V edge_inside(Kernel *k) {
    Types *ts = k->plan->cx->types;
    V all = {NULL};
    for (uint32_t i = 0; i < k->step->nedges; i++) {
        const Edge *edge = &k->step->edges[i];
        const IxExpr x = *ix_at(k->ix, edge->index);
        Ix base = edge->index;
        Dim below = 0, above = 0; /* how far the index gets from base */
        for (uint32_t t = 0; t < x.n; t++) {
            Atom loop = x.at[t].atom;
            if (atom_at(k->ix, loop)->into) continue;
            Dim n = at_once(k, loop);
            if (n == 0) base = ix_substitute(k->ix, base, loop, 0), n = loop_extent(k->ix, loop);
            Dim far = dim_mul(ts, x.at[t].coef, dim_sub(ts, n, 1));
            if (x.at[t].coef < 0)
                below = dim_add(ts, below, far);
            else
                above = dim_add(ts, above, far);
        }
        V at = kernel_index(k, base);
        V first = em_cmpi(k->e, "sge", at, kernel_dim(k, dim_sub(ts, edge->lo, below)));
        V last = em_cmpi(k->e, "slt", at, kernel_dim(k, dim_sub(ts, edge->hi, above)));
        V both = em_bin(k->e, "llvm.and", first, last);
        all = all.ptr ? em_bin(k->e, "llvm.and", all, both) : both;
    }
    return all;
}
