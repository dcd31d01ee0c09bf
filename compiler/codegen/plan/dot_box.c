#include "dot.h"
#include "../cost.h"

/* Where both operands of a product by warpgroups are arrays in memory, the terms of a turn are boxes of these arrays: a
   tensor map says where an array is, its axes, and the size of a box, and one thread has boxes copied that begin at
   given indices. What is outside of the array is 0. Terms, and rows or columns, are an axis each. Loops of which a box
   never has more than one iteration are axes too, as are elements of arrays that the address depends on: batches, the
   start of a slice, and outer loops of terms, rows or columns, if boxes divide the inner ones. */

enum { MOST_EXTENT = INT32_MAX }; /* indices are of 32 bits */

static bool among(Atom a, const Atom *loops, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (loops[i] == a) return true;
    return false;
}
static bool fits(const Plan *p, Dim extent, Dim stride) {
    bool few = !dim_is_const(extent) || extent <= MOST_EXTENT;
    return few && stride != 0 && dim_at_most(p->cx->types, 0, stride, true) == 1; /* it is 0 where an extent is */
}
static bool add_axis(const Plan *p, DotBox *b, Dim extent, Dim stride, Ix at) {
    if (b->rank == BOX_RANK || !fits(p, extent, stride)) return false;
    b->axis[b->rank++] = (BoxAxis){extent, stride, 1, at};
    return true;
}
typedef struct {
    Ix address;
    const Atom *at; /* loops that it depends on, the outermost first */
    uint32_t n;
} Loops;
/* The last loop, with those before it that continue it, as an axis; how many there are, 0 if one of them also occurs
   inside an atom. */
static uint32_t joined(const Plan *p, Loops l, BoxAxis *a) {
    Dim next = 0;
    uint32_t found = 0;
    *a = (BoxAxis){.extent = 1};
    for (; found < l.n; found++) {
        Atom loop = l.at[l.n - 1 - found];
        bool other;
        Dim coef = ix_coef(p->ix, l.address, loop, &other);
        if (other) return 0;
        if (found && coef != next) break;
        if (!found) a->stride = coef;
        a->at = ix_add(p->ix, a->at, ix_scale(p->ix, ix_atom(p->ix, loop), a->extent));
        a->extent = dim_mul(p->cx->types, a->extent, loop_extent(p->ix, loop));
        next = dim_mul(p->cx->types, a->stride, a->extent);
    }
    return found;
}
/* Loops as the axis `main`, of which a box has `length` iterations, and further ones. */
static bool add_loops(const Plan *p, DotBox *b, uint32_t main, Loops l, uint32_t length) {
    BoxAxis a;
    uint32_t done = joined(p, l, &a);
    if (!done || !fits(p, a.extent, a.stride)) return false;
    b->axis[main] = a;
    if (done == l.n) b->axis[main].at = 0;
    if (done < l.n && dim_mod(p->cx->types, a.extent, length) != 0) return false;
    for (l.n -= done; l.n > 0; l.n -= done) {
        done = joined(p, l, &a);
        if (!done || (a.stride != 0 && !add_axis(p, b, a.extent, a.stride, a.at))) return false;
    }
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
static bool find_box(Plan *p, const DeviceDot *d, uint32_t side, uint32_t terms, DotBox *b) {
    const DotLoops *own = &d->loops[side ? DOT_COLUMNS : DOT_ROWS];
    Ix address = d->side[side].at.address;
    bool along = d->side[side].along_terms;
    *b = (DotBox){.rank = 2};
    Loops summed = {address, d->summed, d->nsummed}, rows = {address, own->at, own->n};
    bool good = add_loops(p, b, !along, summed, terms) &&
                add_loops(p, b, along, rows, side ? d->tile.columns : d->tile.rows) &&
                add_others(p, d, own, b, address);
    /* lines do not overlap, as those of windows do */
    return good && b->axis[0].stride == 1 && dim_at_most(p->cx->types, b->axis[0].extent, b->axis[1].stride, true) == 1;
}
static uint32_t at_most(uint32_t n, uint32_t most) { return n < most ? n : most; }
void dot_box_plan(Plan *p, const Step *s, DeviceDot *d) {
    uint32_t bytes = dtype_bytes(d->as), line = BOX_LINE / bytes;
    uint32_t terms = dot_at_most(s->dot->k, d->tile.terms) ? d->tile.terms : line;
    d->boxed = d->warpgroups;
    for (uint32_t side = 0; side < 2 && d->boxed; side++)
        d->boxed = d->side[side].plain && find_box(p, d, side, terms, &d->side[side].box);
    if (!d->boxed) return;
    d->tile.terms = terms;
    for (uint32_t side = 0; side < 2; side++) {
        bool along = d->side[side].along_terms;
        BoxAxis *axis = d->side[side].box.axis;
        uint32_t length = side ? d->tile.columns : d->tile.rows;
        axis[0].box = at_most(along ? terms : length, line);
        axis[1].box = along ? length : terms;
    }
    uint32_t room = d->tile.columns < TILE_WIDE ? RING_BYTES : TILE_BLOCKS * RING_BYTES;
    d->tile.turns = at_most(room / ((d->tile.rows + d->tile.columns) * terms * bytes), RING_TURNS);
}
