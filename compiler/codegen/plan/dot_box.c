#include "dot.h"
#include "../cost.h"

/* Where both operands of a product by warpgroups are arrays in memory, the terms of a turn are boxes of these arrays: a tensor
   map says where an array is, its axes, and the size of a box, and one thread has boxes copied that begin at given indices.
   What is outside of the array is 0. Terms, and rows or columns, are an axis each; every other loop is an axis of which
   a box has one element, as is an element of an array that the address depends on. */

enum { MOST_EXTENT = INT32_MAX }; /* indices are of 32 bits */

/* The distance of neighbours along these loops, if all of them together are one axis, else 0. */
static Dim distance(const Plan *p, Ix address, const Atom *loops, uint32_t n) {
    Dim first = 0, next = 0;
    for (uint32_t i = n; i-- > 0;) {
        bool other;
        Dim coef = ix_coef(p->ix, address, loops[i], &other);
        if (other || (i + 1 < n && coef != next)) return 0;
        if (i + 1 == n) first = coef;
        next = dim_mul(p->cx->types, coef, loop_extent(p->ix, loops[i]));
    }
    return first;
}
static bool among(Atom a, const Atom *loops, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (loops[i] == a) return true;
    return false;
}
static bool add_axis(const Plan *p, DotBox *b, Dim extent, Dim stride, Ix at) {
    bool fits = (!dim_is_const(extent) || extent <= MOST_EXTENT) && stride != 0; /* it is 0 where an extent is */
    if (!fits || b->rank == BOX_RANK || dim_at_most(p->cx->types, 0, stride, true) != 1) return false;
    b->axis[b->rank++] = (BoxAxis){extent, stride, 1, at};
    return true;
}
/* The other atoms of the address. */
static bool add_others(Plan *p, const DeviceDot *d, const DotLoops *own, DotBox *b, Ix address) {
    const IxExpr x = *ix_at(p->ix, address);
    for (uint32_t i = 0; i < x.n; i++) {
        Atom a = x.at[i].atom;
        const AtomInfo *info = atom_at(p->ix, a);
        bool collapsed = info->kind == ATOM_LOOP && info->into;
        if (collapsed || among(a, d->summed, d->nsummed) || among(a, own->at, own->n)) continue;
        Dim extent = info->kind == ATOM_LOOP ? loop_extent(p->ix, a) : info->extent;
        if (!add_axis(p, b, extent, x.at[i].coef, ix_atom(p->ix, a))) return false;
    }
    b->offset = x.c;
    return true;
}
static bool find_box(Plan *p, const Step *s, const DeviceDot *d, uint32_t side, DotBox *b) {
    const DotLoops *own = &d->loops[side ? DOT_COLUMNS : DOT_ROWS];
    Ix address = d->side[side].at.address;
    bool along = d->side[side].along_terms;
    Dim terms = distance(p, address, d->summed, d->nsummed), rows = distance(p, address, own->at, own->n);
    Dim inner = along ? terms : rows, outer = along ? rows : terms;
    Dim extent[2] = {along ? s->dot->k : own->extent, along ? own->extent : s->dot->k};
    *b = (DotBox){0};
    /* lines do not overlap, as those of windows do */
    if (inner != 1 || dim_at_most(p->cx->types, extent[0], outer, true) != 1) return false;
    return add_axis(p, b, extent[0], inner, 0) && add_axis(p, b, extent[1], outer, 0) &&
           add_others(p, d, own, b, address);
}
static uint32_t at_most(uint32_t n, uint32_t most) { return n < most ? n : most; }
void dot_box_plan(Plan *p, const Step *s, DeviceDot *d) {
    uint32_t bytes = dtype_bytes(d->as), line = BOX_LINE / bytes;
    d->boxed = d->warpgroups;
    for (uint32_t side = 0; side < 2 && d->boxed; side++)
        d->boxed = d->side[side].plain && find_box(p, s, d, side, &d->side[side].box);
    if (!d->boxed) return;
    if (!dot_at_most(s->dot->k, d->tile.terms)) d->tile.terms = line;
    for (uint32_t side = 0; side < 2; side++) {
        bool along = d->side[side].along_terms;
        BoxAxis *axis = d->side[side].box.axis;
        uint32_t length = side ? d->tile.columns : d->tile.rows;
        axis[0].box = at_most(along ? d->tile.terms : length, line);
        axis[1].box = along ? length : d->tile.terms;
    }
    d->tile.turns = at_most(RING_BYTES / ((d->tile.rows + d->tile.columns) * d->tile.terms * bytes), RING_TURNS);
}
