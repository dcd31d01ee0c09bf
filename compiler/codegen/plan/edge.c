#include "../cost.h"
#include "../eval/record.h"
#include "vectors.h"

/* Edges: where arrays that are read through padding end. Most points of a loop nest are inside all of them for all
   lanes and inner loops; there a kernel need not test for padding. Loops are not cut: the innermost loop that moves an
   index across an edge has two bodies, and a comparison of the index with bounds computed before the loop chooses
   one. A short lane loop is written out instead, in vectors from edge to edge, or from end to end if there are
   no edges; so is one of any length whose vectors cannot be masked: elements narrower than a word would be read one by
   one, each after a branch. */

/* ---- what is fused */
Edged eqn_edged(Plan *p, const Eqn *e) {
    if (prim_is(e->prim, JOINS)) return EDGED_JOINED;
    Edged most = EDGED_NOT;
    if (e->prim == P_pad) most = dtype_bytes(val_array(p->cx, e->out.at[0])->dtype) < 4 ? EDGED_JOINED : EDGED_PADDED;
    each(Val, v, e->in) {
        const Info *info = val_info(p->cx, *v)->lit ? NULL : plan_info(p, *v);
        if (info && info->class == VAL_VIRTUAL && !info->buf && info->edged > most) most = info->edged;
    }
    return most;
}
/* Loops that reduce the lanes have one body, which tests for all edges. To store is faster, unless that is much memory
   (of several axes of unknown extents it may be: they may be larger than all that is read) or padding is all that is
   tested for and there is a loop over rows besides. */
bool edges_apart(const Plan *p, Edged edged, uint32_t rank, const Dim *dims, const bool *reduced) {
    while (rank && dims[rank - 1] == 1) rank--;
    if (p->target->device || !edged || !rank || !reduced[rank - 1]) return false;
    Dim size = 1;
    bool all = true;
    for (uint32_t d = 0; d < rank; d++) {
        size = dim_mul(p->cx->types, size, dims[d]);
        all &= reduced[d] || dims[d] == 1;
    }
    bool large = dim_is_const(size) ? size >= EDGES_APART : rank > 1;
    return !large && (all || edged == EDGED_JOINED);
}

/* ---- where they are */
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
/* A place among those of a list in order; false: there are too many. */
static bool add_end(Step *s, Dim at) {
    uint32_t i = s->nends;
    while (i > 0 && s->ends[i - 1] > at) i--;
    if (i > 0 && s->ends[i - 1] == at) return true;
    if (s->nends == STEP_ENDS) return false;
    memmove(s->ends + i + 1, s->ends + i, (s->nends - i) * sizeof *s->ends);
    s->ends[i] = at, s->nends++;
    return true;
}
/* Places of the lane loop where edges are; false: one depends on something else. */
static bool find_ends(Plan *p, Step *s, const Edges *e, Dim lanes) {
    for (uint32_t i = 0; i < e->n; i++) {
        const IxExpr *x = ix_at(p->ix, e->at[i].index);
        if (!ix_uses(p->ix, e->at[i].index, s->lane)) continue;
        bool alone = x->n == 1 && x->at[0].atom == s->lane && x->at[0].coef == 1 && dim_is_const(x->c);
        Dim ends[] = {e->at[i].lo, e->at[i].hi};
        if (!alone) return false;
        for (uint32_t k = 0; k < sizeof ends / sizeof *ends; k++) {
            if (!dim_is_const(ends[k])) return false;
            Dim at = ends[k] - x->c;
            if (at > 0 && at < lanes && !add_end(s, at)) return false;
        }
    }
    return true;
}
/* The vectors of a register at most that the pieces are. */
static Dim vectors_of_pieces(const Step *s, Dim most) {
    Dim n = 0;
    for (uint32_t i = 0; i + 1 < s->nends; i++) {
        Dim piece = s->ends[i + 1] - s->ends[i], rest = piece % most;
        for (n += piece / most; rest; rest &= rest - 1) n++;
    }
    return n;
}
/* Are the pieces faster than a loop? Where vectors cannot be masked, they are if there are edges or several elements
   remain. Else a row of whole vectors, or of one element more, is read with masks if it has no edges, or if the masks
   are known because one iteration does all; one vector is no loop. */
static bool pieces_pay(const Plan *p, const Step *s, Dim lanes) {
    Dim one = vector_of(p, s), rest = lanes % one, more = vectors_of_pieces(s, one) - lanes / one;
    bool remain = lanes % (p->target->vector_bytes / s->narrowest) > 1;
    if (!masks_words(p, s) && (s->nends > 2 || remain)) return (s->nends - 1) * s->cost <= UNMASKED_COST;
    if (lanes > CUT_LANES) return false;
    bool no_rest = (lanes & (lanes - 1)) == 0;
    if (s->nends == 2 && no_rest) return false;
    bool masks_known = s->nends == 2 || (no_rest && lanes <= VECTORS * one);
    if (!masks_known) return vectors_of_pieces(s, one) * s->cost <= PIECES_COST;
    return s->cost <= CUT_COST && (rest <= 1 ? more <= rest + 1 : (more - 1) * s->cost <= CUT_COST);
}
/* May the lane loop be written out in pieces, as it is short or cannot be masked, where masks are slow? */
static bool may_cut(const Plan *p, const Step *s) {
    bool inner = s->lane && s->nkept > 1 && s->kept[s->nkept - 1] == s->lane;
    bool plain = !s->reduces && s->levels == 1 && !s->tile && !s->jam && !s->unrolled;
    Dim lanes = s->lane ? loop_extent(p->ix, s->lane) : 0;
    bool brief = !masks_words(p, s) || lanes <= CUT_LANES;
    return p->fuse && !p->target->masks && inner && plain && dim_is_const(lanes) && brief;
}
/* The edges of the pieces are left out of the list. */
static void cut_lanes(Plan *p, Step *s, Edges *e) {
    Dim lanes = loop_extent(p->ix, s->lane);
    uint32_t n = 0;
    if (e->n > MOST_EDGES) return;
    bool found = find_ends(p, s, e, lanes) && add_end(s, 0) && add_end(s, lanes);
    if (!found || !pieces_pay(p, s, lanes)) {
        s->nends = 0;
        return;
    }
    for (uint32_t i = 0; i < e->n; i++)
        if (!ix_uses(p->ix, e->at[i].index, s->lane)) e->at[n++] = e->at[i];
    e->n = n;
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
    if (few && !s->tile && !may_cut(p, s)) return;
    record(p, s, tested, &e);
    record_edges(p, found);
    step_reads(p, s, tested, &e);
    record_edges(p, NULL);
    if (may_cut(p, s)) cut_lanes(p, s, &e);
    if (!few) keep_edges(p, s, &e);
    s->tile_tested = e.tests.n > 0;
    for (uint32_t i = 0; i < e.tests.n; i++) s->tile_apart |= !is_edge(s, e.tests.at[i]);
}
