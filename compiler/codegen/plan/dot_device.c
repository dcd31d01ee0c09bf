#include "dot.h"
#include "../cost.h"

/* A product on a device: blocks of threads compute tiles of rows × columns of the result. Operands are evaluated where
   they are read, at an index over the loops of the result and of the contraction, whatever lies between them and
   memory. */

typedef struct {
    Ints contracted, batch;
    uint32_t first_free; /* the result's first axis that is one of the operand's own */
} Side;
static Side side_of(Plan *p, const Eqn *e, uint32_t side) {
    const Value *v = &param_find(e, K_dimension_numbers)->value;
    Side s = {v->list.at[side].ints, v->list.at[2 + side].ints, v->list.at[2 + side].ints.n};
    const ArrayType *left = val_array(p->cx, e->in.at[0]);
    if (side) s.first_free += left->rank - v->list.at[0].ints.n - v->list.at[2].ints.n;
    return s;
}
void dot_device_index(Plan *p, const Step *s, uint32_t side, Ix *index) {
    const ArrayType *t = val_array(p->cx, s->e->in.at[side]);
    Side of = side_of(p, s->e, side);
    Ix result[MAX_RANK];
    step_at(p, s, s->e->out.at[0], result);
    for (uint32_t a = 0; a < t->rank; a++) {
        int64_t batch = ints_find(of.batch, a), term = ints_find(of.contracted, a);
        index[a] = batch >= 0  ? result[batch]
                   : term >= 0 ? ix_atom(p->ix, s->dot->device->summed[term])
                               : result[of.first_free++];
    }
}
void dot_device_plan(Plan *p, Step *s) {
    const Eqn *e = s->e;
    const ArrayType *a = val_array(p->cx, e->in.at[0]), *b = val_array(p->cx, e->in.at[1]);
    const ArrayType *y = val_array(p->cx, e->out.at[0]);
    Side left = side_of(p, e, 0), right = side_of(p, e, 1);
    Dot *dot = s->dot = arena_new(p->arena, Dot, 1);
    DeviceDot *d = dot->device = arena_new(p->arena, DeviceDot, 1);
    dot->acc = dot_accumulator(a->dtype, b->dtype, y->dtype);
    d->nsummed = left.contracted.n;
    d->summed = arena_new(p->arena, Atom, d->nsummed + 1);
    dot->k = 1;
    for (uint32_t i = 0; i < d->nsummed; i++) {
        d->summed[i] = atom_loop(p->ix, a->dims[left.contracted.at[i]]);
        dot->k = dim_mul(p->cx->types, dot->k, a->dims[left.contracted.at[i]]);
    }
    d->role = arena_new(p->arena, uint8_t, s->domain.n + 1);
    for (uint32_t axis = 0, n = 0; axis < y->rank; axis++) {
        if (y->dims[axis] == 1) continue;
        d->role[n++] = axis < left.batch.n ? DOT_BATCHES : axis < right.first_free ? DOT_ROWS : DOT_COLUMNS;
    }
}

/* ---- once the loops are final */
static void choose_tile(DeviceDot *d) {
    bool low = dot_at_most(d->loops[DOT_ROWS].extent, TILE_SHORT),
         narrow = dot_at_most(d->loops[DOT_COLUMNS].extent, TILE_SHORT);
    d->tile.rows = low ? TILE_SHORT : TILE_LONG, d->tile.high = low ? 1 : TILE_SQUARE;
    d->tile.columns = narrow ? TILE_SHORT : TILE_LONG, d->tile.wide = narrow ? 1 : TILE_SQUARE;
}
Dim dot_device_units(Plan *p, const Step *s) {
    const DeviceDot *d = s->dot->device;
    Dim rows = dot_blocks(p, d->loops[DOT_ROWS].extent, d->tile.rows);
    Dim columns = dot_blocks(p, d->loops[DOT_COLUMNS].extent, d->tile.columns);
    return dim_mul(p->cx->types, dim_mul(p->cx->types, rows, columns), d->loops[DOT_BATCHES].extent);
}
static uint32_t role_of(const Plan *p, const Step *s, Atom loop) {
    uint32_t d = 0;
    while (d < s->domain.n && !ix_uses(p->ix, s->axes[d], loop)) d++;
    assert(d < s->domain.n);
    return s->dot->device->role[d];
}
typedef struct {
    Plan *p;
    Atom last;
    bool contiguous;
} Along;
static void saw(void *user, Val v, const Ix *index, Ix address) {
    Along *s = user;
    bool other;
    if (v && index) s->contiguous |= ix_coef(s->p->ix, address, s->last, &other) == 1 && !other;
}
void dot_device_schedule(Plan *p, Step *s) {
    DeviceDot *d = s->dot->device;
    for (uint32_t r = 0; r < DOT_ROLES; r++) d->loops[r].extent = 1;
    for (uint32_t i = 0; i < s->nkept; i++) {
        uint32_t r = role_of(p, s, s->kept[i]);
        d->loops[r].at[d->loops[r].n++] = s->kept[i];
        d->loops[r].extent = dim_mul(p->cx->types, d->loops[r].extent, loop_extent(p->ix, s->kept[i]));
    }
    choose_tile(d);
    for (uint32_t side = 0; side < 2 && d->nsummed; side++) {
        Along seen = {.p = p, .last = d->summed[d->nsummed - 1]};
        Ix index[MAX_RANK];
        dot_device_index(p, s, side, index);
        plan_reads(p, s->e->in.at[side], index, saw, &seen);
        d->along_terms[side] = seen.contiguous;
    }
}
