#include "attention.h"
#include "../cost.h"
#include "sums.h"

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
/* The loop of contracted axis i: those of the left operand are nested as its axes, so that the innermost is contiguous
   there if any is. */
static uint32_t nested(Plan *p, const Eqn *e, uint32_t i) {
    Ints contracted = side_of(p, e, 0).contracted;
    uint32_t n = 0;
    each(int64_t, a, contracted) n += *a < contracted.at[i];
    return n;
}
void dot_device_terms(Plan *p, DeviceDot *d) {
    const ArrayType *t = val_array(p->cx, d->e->in.at[0]);
    Ints contracted = side_of(p, d->e, 0).contracted;
    d->nsummed = contracted.n, d->k = 1;
    d->summed = arena_new(p->arena, Atom, d->nsummed + 1);
    for (uint32_t i = 0; i < d->nsummed; i++) {
        d->summed[nested(p, d->e, i)] = atom_loop(p->ix, t->dims[contracted.at[i]]);
        d->k = dim_mul(p->cx->types, d->k, t->dims[contracted.at[i]]);
    }
}
void dot_device_index_at(Plan *p, const DeviceDot *d, uint32_t side, const Ix *result, Ix *index) {
    const ArrayType *t = val_array(p->cx, dot_device_operand(d, side));
    Side of = side_of(p, d->e, side ^ d->swapped);
    for (uint32_t a = 0; a < t->rank; a++) {
        int64_t batch = ints_find(of.batch, a), term = ints_find(of.contracted, a);
        index[a] = batch >= 0  ? result[batch]
                   : term >= 0 ? ix_atom(p->ix, d->summed[nested(p, d->e, (uint32_t)term)])
                               : result[of.first_free++];
    }
}
void dot_device_index(Plan *p, const Step *s, uint32_t side, Ix *index) {
    Ix result[MAX_RANK];
    step_at(p, s, s->e->out.at[0], result);
    dot_device_index_at(p, s->dot->device, side, result, index);
}
/* The free elements of an operand: how often each of the other's is read, at most. */
static Dim free_elements(Plan *p, const Eqn *e, uint32_t side) {
    const ArrayType *t = val_array(p->cx, e->in.at[side]);
    Side of = side_of(p, e, side);
    Dim n = 1;
    for (uint32_t a = 0; a < t->rank; a++)
        if (!ints_have(of.batch, a) && !ints_have(of.contracted, a)) n = dim_mul(p->cx->types, n, t->dims[a]);
    return n;
}
/* What many tiles would compute is computed once. */
static void store_operands(Plan *p, Body *b, const Eqn *e) {
    for (uint32_t side = 0; side < 2; side++) {
        bool often = !dot_at_most(free_elements(p, e, !side), TILE_OFTEN);
        Val v = dot_computed(p, e->in.at[side], &often);
        if (!v || !often) continue;
        plan_cut(p, b, v);
        plan_stored(p, b, v);
    }
}
void dot_device_plan(Plan *p, Body *body, Step *s) {
    const Eqn *e = s->e;
    const ArrayType *a = val_array(p->cx, e->in.at[0]), *b = val_array(p->cx, e->in.at[1]);
    const ArrayType *y = val_array(p->cx, e->out.at[0]);
    Side left = side_of(p, e, 0), right = side_of(p, e, 1);
    Attention *attention = attention_of(p, e);
    if (!attention) store_operands(p, body, e);
    Dot *dot = s->dot = arena_new(p->arena, Dot, 1);
    DeviceDot *d = dot->device = arena_new(p->arena, DeviceDot, 1);
    d->e = e, d->attention = attention, d->swapped = attention && attention->side;
    dot->acc = dot_accumulator(a->dtype, b->dtype, y->dtype);
    dot_device_terms(p, d);
    dot->k = d->k;
    d->role = arena_new(p->arena, uint8_t, s->domain.n + 1);
    for (uint32_t axis = 0, n = 0; axis < y->rank; axis++) {
        if (y->dims[axis] == 1) continue;
        bool column = axis >= right.first_free;
        d->role[n++] = axis < left.batch.n ? DOT_BATCHES : column != d->swapped ? DOT_COLUMNS : DOT_ROWS;
    }
    if (attention) attention_plan(p, body, s);
}

/* ---- a transposed result */
/* Is the axis of the result the last one of its rows or columns? */
static bool last_axis(Plan *p, const Step *s, uint32_t axis) {
    const ArrayType *y = val_array(p->cx, s->e->out.at[0]);
    const uint8_t *role = s->dot->device->role;
    uint32_t at = 0;
    for (uint32_t d = 0; d < axis; d++) at += y->dims[d] != 1;
    return role[at] != DOT_BATCHES && (at + 1 == s->domain.n || role[at + 1] != role[at]);
}
bool dot_device_stores_along(Plan *p, const Step *s, int64_t axis) {
    return s->kind == STEP_DOT && axis >= 0 && last_axis(p, s, (uint32_t)axis);
}

/* ---- once the loops are final */
Dim dot_device_elements(Plan *p, const DeviceDot *d) {
    Types *ts = p->cx->types;
    return dim_mul(ts, dim_mul(ts, d->loops[DOT_BATCHES].extent, d->loops[DOT_ROWS].extent),
                   d->loops[DOT_COLUMNS].extent);
}
/* Tiles of one part. */
static Dim tiles(Plan *p, const Step *s) {
    const DeviceDot *d = s->dot->device;
    Dim rows = dot_blocks(p, d->loops[DOT_ROWS].extent, d->tile.rows);
    Dim columns = dot_blocks(p, d->loops[DOT_COLUMNS].extent, d->tile.columns);
    return dim_mul(p->cx->types, dim_mul(p->cx->types, rows, columns), d->loops[DOT_BATCHES].extent);
}
Dim dot_device_units(Plan *p, const Step *s) { return dim_mul(p->cx->types, tiles(p, s), s->dot->device->parts); }
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
/* A buffer begins at a multiple of 16 bytes, unless it is, or becomes, a row of a larger one and rows are no
   multiples. */
static bool begins_aligned(Plan *p, Val v) {
    const Info *info = plan_info(p, v);
    Types *ts = p->cx->types;
    if (info->buf->kind == BUF_CONST || info->buf->kind == BUF_HEAP) return true;
    if (info->buf->kind == BUF_WORK) return dim_mod(ts, info->buf->bytes, p->target->vector_bytes) == 0;
    Dim bytes = dim_mul(ts, type_size(ts, val_type(p->cx, v)), dtype_bytes(val_array(p->cx, v)->dtype));
    return !info->strides && !info->offset && dim_mod(ts, bytes, p->target->vector_bytes) == 0;
}
/* Along which loop the elements of an address are contiguous, in pieces of n of them that begin at multiples of n. */
static bool contiguous(Plan *p, Ix address, Atom loop, uint32_t n) {
    const IxExpr x = *ix_at(p->ix, address);
    Types *ts = p->cx->types;
    bool found = false;
    for (uint32_t i = 0; i < x.n; i++) {
        const AtomInfo *a = atom_at(p->ix, x.at[i].atom);
        if (a->kind == ATOM_LOOP && a->into) continue; /* it is in the loop that this one became a part of */
        bool here = x.at[i].atom == loop && x.at[i].coef == 1;
        if (!here && dim_mod(ts, x.at[i].coef, n) != 0) return false;
        found |= here;
    }
    return found && dim_mod(ts, x.c, n) == 0 && dim_mod(ts, loop_extent(p->ix, loop), n) == 0;
}
static void find_sides(Plan *p, const Step *s, DeviceDot *d, Ix index[2][MAX_RANK], Dtype type[2]) {
    for (uint32_t side = 0; side < 2; side++) {
        Val v = dot_device_operand(d, side);
        DotOperand *at = &d->side[side].at;
        Along seen = {.p = p, .last = d->nsummed ? d->summed[d->nsummed - 1] : 0};
        if (d->nsummed) plan_reads(p, v, index[side], saw, &seen);
        d->side[side].along_terms = seen.contiguous;
        Val x = dot_operand(p, v, index[side], at);
        if (x && info_virtual(plan_info(p, x), s)) x = 0; /* it is written later */
        type[side] = x ? at->dtype : val_array(p->cx, v)->dtype;
        d->side[side].plain = x && begins_aligned(p, x);
    }
}
/* Are pieces of 16 bytes contiguous, and of the type that is multiplied? */
static void find_plain(Plan *p, DeviceDot *d) {
    uint32_t n = p->target->vector_bytes / dtype_bytes(d->as);
    for (uint32_t side = 0; side < 2; side++) {
        const DotOperand *at = &d->side[side].at;
        uint32_t role = side ? DOT_COLUMNS : DOT_ROWS, loops = d->loops[role].n;
        Atom along = d->side[side].along_terms ? d->summed[d->nsummed - 1] : loops ? d->loops[role].at[loops - 1] : 0;
        bool plain = d->side[side].plain && at->dtype == d->as && along && contiguous(p, at->address, along, n);
        if (d->form == DOT_MMA && dtype_bytes(d->as) == 1) plain &= d->side[side].along_terms;
        d->side[side].plain = plain;
    }
}

/* ---- tensor cores: types that they multiply, the smallest first */
static bool holds(Dtype as, Dtype x) { return x == as || dtype_is_exact(x, as); }
static void choose_form(DeviceDot *d, Dtype acc, const Dtype type[2]) {
    static const Dtype floats[] = {DT_bf16, DT_f16}, integers[] = {DT_i8, DT_u8};
    d->form = DOT_FMA, d->as = acc;
    if (acc == DT_f64) d->form = DOT_MMA_F64;
    bool whole = dtype_info[acc].kind == DK_SINT || dtype_info[acc].kind == DK_UINT;
    for (uint32_t i = 0; i < 2 && d->form == DOT_FMA; i++) {
        Dtype as = acc == DT_f32 ? floats[i] : integers[i];
        if (acc != DT_f32 && (!whole || dtype_info[acc].bits > 32)) break;
        if (holds(as, type[0]) && holds(as, type[1])) d->form = DOT_MMA, d->as = as;
    }
}
static uint32_t length(Dim extent, uint32_t most, uint32_t least) {
    while (most > least && dot_at_most(extent, most / 2)) most /= 2;
    return most;
}
bool dot_device_copied(const DeviceDot *d) { return d->side[0].plain && d->side[1].plain; }
/* Is a tile so short one way that memory takes longer to bring its terms than tensor cores to multiply them? */
static bool streams(const DeviceDot *d) {
    bool is_short = d->tile.rows == MMA_SHORT || d->tile.columns == MMA_SHORT;
    return d->form == DOT_MMA && is_short && dot_device_copied(d);
}
static int64_t enough_tiles(const DeviceDot *d) { return streams(d) ? STREAM_TILES : ENOUGH_TILES; }
/* A wide tile has all registers of a multiprocessor: nothing is evaluated there while its products wait, so both
   operands are copied. Columns that it would have in vain are few. */
static void widen(Plan *p, const Step *s, DeviceDot *d) {
    Dim extent = d->loops[DOT_COLUMNS].extent;
    if (!dot_device_copied(d)) return;
    if (dim_is_const(extent) && 8 * (-extent & (TILE_WIDE - 1)) > extent) return;
    d->tile.columns = TILE_WIDE;
    if (dot_at_most(tiles(p, s), ENOUGH_TILES - 1))
        d->tile.columns = TILE_LONG;
    else
        d->tile.turns = WIDE_TURNS;
}
static void choose_tile(Plan *p, const Step *s, DeviceDot *d) {
    bool warps = d->form == DOT_MMA;
    uint32_t most = dtype_bytes(d->as) > TILE_WORD ? TILE_LEAST : TILE_LONG;
    uint32_t least = d->form == DOT_FMA ? TILE_SHORT : MMA_SHORT;
    /* sums that are too short for parts */
    uint32_t smaller = d->form == DOT_FMA && dot_at_most(s->dot->k, 2 * PART_TERMS) ? TILE_SHORT : TILE_LEAST;
    d->tile.rows = length(d->loops[DOT_ROWS].extent, most, least);
    d->tile.columns = length(d->loops[DOT_COLUMNS].extent, most, least);
    while (dot_at_most(tiles(p, s), enough_tiles(d) - 1)) {
        uint32_t *longer = d->tile.rows > d->tile.columns ? &d->tile.rows : &d->tile.columns;
        if (*longer <= smaller) break;
        *longer /= 2;
    }
    /* what is evaluated on its way needs registers: tiles of 128 x 128 had 129 to 255, and those with 128 spilled some */
    bool evaluated = d->form == DOT_FMA && !dot_device_copied(d);
    if (evaluated && d->tile.columns == TILE_LONG && d->tile.rows == TILE_LONG) d->tile.rows = TILE_LEAST;
    bool longest = d->tile.rows == TILE_LONG && d->tile.columns == TILE_LONG;
    if (d->form == DOT_MMA_F64 && !dot_at_most(d->loops[DOT_COLUMNS].extent, TILE_LEAST) &&
        !dot_at_most(tiles(p, s), 2 * ENOUGH_TILES))
        d->tile.columns = TILE_LONG; /* 4096^3: 3789 us, so 3242; shared memory is read less often */
    bool few = longest || (evaluated && d->tile.rows >= TILE_LEAST && d->tile.columns >= TILE_LEAST);
    d->tile.terms = warps ? MMA_BYTES / dtype_bytes(d->as) : few ? LONG_TERMS : TILE_TERMS;
    d->tile.turns = warps ? MMA_TURNS : 2;
    if (warps && longest) widen(p, s, d);
    if (!streams(d)) return;
    if (!dot_at_most(s->dot->k, d->tile.terms)) d->tile.terms *= STREAM_BYTES / MMA_BYTES;
    uint32_t room = ROOM_BYTES / ((d->tile.rows + d->tile.columns) * d->tile.terms * dtype_bytes(d->as));
    d->tile.turns = room < STREAM_TURNS ? room : STREAM_TURNS;
}
/* Are the elements of a column beside each other where they are stored, and those of a row apart? */
static bool stores_across(Plan *p, const Step *s, const DeviceDot *d) {
    const DotLoops *rows = &d->loops[DOT_ROWS], *columns = &d->loops[DOT_COLUMNS];
    if (!rows->n || !columns->n) return false;
    each(Store, st, s->stores) {
        Ix index[MAX_RANK];
        bool a, b;
        step_at(p, s, st->v, index);
        Ix at = store_address(p, st, index);
        Dim row = ix_coef(p->ix, at, rows->at[rows->n - 1], &a),
            column = ix_coef(p->ix, at, columns->at[columns->n - 1], &b);
        if (row == 1 && column != 1 && !a && !b) return true;
    }
    return false;
}
/* Wide accesses write the elements of a run, if all runs are whole. */
void dot_device_run(Plan *p, const Step *s, DeviceDot *d) {
    uint32_t n = d->loops[DOT_COLUMNS].n;
    Dim extent = n ? loop_extent(p->ix, d->loops[DOT_COLUMNS].at[n - 1]) : 1;
    d->run = 1;
    d->across = stores_across(p, s, d);
    if (d->across || s->carried || TILE_RUN * s->cost > TILE_RUN_COST || dim_mod(p->cx->types, extent, TILE_RUN) != 0)
        return;
    d->run = TILE_RUN;
    d->runs = atom_loop(p->ix, dim_floordiv(p->cx->types, extent, TILE_RUN));
}
/* Long sums of few tiles are done in parts, as many as there are blocks to keep busy. */
static void choose_parts(Plan *p, Step *s, DeviceDot *d) {
    Dim n = tiles(p, s), k = s->dot->k;
    d->parts = 1;
    if (!dot_at_most(n, enough_tiles(d) / 2) || n == 0 || !dim_is_const(k) || k < 2 * PART_TERMS) return;
    int64_t most = k / PART_TERMS, wanted = enough_tiles(d) / n, turns = (k + d->tile.terms - 1) / d->tile.terms;
    int64_t parts = wanted < most ? wanted : most;
    d->part_turns = (uint32_t)((turns + parts - 1) / parts);
    d->parts = (uint32_t)((turns + d->part_turns - 1) / d->part_turns);
    if (d->parts == 1) return;
    Dim elements = dim_mul(p->cx->types, dot_device_elements(p, d), d->parts);
    s->parts = buf_new(p, BUF_WORK, dim_mul(p->cx->types, elements, dtype_bytes(d->sums)));
}
void dot_device_form(Plan *p, const Step *s, DeviceDot *d, Ix at[2][MAX_RANK]) {
    Dtype type[2], of[2];
    for (uint32_t side = 0; side < 2; side++) of[side] = val_array(p->cx, dot_device_operand(d, side))->dtype;
    Dtype acc = dot_accumulator(of[0], of[1], val_array(p->cx, d->e->out.at[0])->dtype);
    find_sides(p, s, d, at, type);
    choose_form(d, acc, type);
    d->sums = d->form == DOT_MMA && dtype_info[d->as].kind != DK_FLOAT ? DT_i32 : acc;
    find_plain(p, d);
}
uint32_t dot_device_block(Dim terms) { return dot_at_most(terms, DEVICE_SUM) ? 0 : DEVICE_TERMS; }
static void schedule_product(Plan *p, Step *s, DeviceDot *d) {
    Ix at[2][MAX_RANK];
    for (uint32_t side = 0; side < 2; side++) dot_device_index(p, s, side, at[side]);
    dot_device_form(p, s, d, at);
    choose_tile(p, s, d);
    d->warpgroups = p->target->device->warpgroups && d->form == DOT_MMA && d->tile.rows >= WARPGROUP_ROWS;
    if (d->warpgroups) d->tile.turns = GROUP_TURNS;
    dot_box_plan(p, s, d);
    if (d->warpgroups && !d->boxed && d->tile.columns == TILE_WIDE) d->tile.terms = BOX_LINE / dtype_bytes(d->as);
    dot_device_run(p, s, d);
    choose_parts(p, s, d);
    /* bytes transposed for both operands go through registers: with two blocks they spilled 8 to 212 bytes of them */
    bool bytewise = dtype_bytes(d->as) == 1 && !d->side[0].along_terms && !d->side[1].along_terms;
    bool several = (dot_device_copied(d) || d->form == DOT_MMA || d->as == DT_f32) && !bytewise;
    d->blocks = several && d->tile.columns < TILE_WIDE ? TILE_BLOCKS : 1;
    Dim terms = d->parts > 1 ? (Dim)d->part_turns * d->tile.terms : s->dot->k;
    if (wide_bytes(s->dot->acc, 1)) d->block = dot_device_block(terms);
}
void dot_device_schedule(Plan *p, Step *s) {
    DeviceDot *d = s->dot->device;
    for (uint32_t r = 0; r < DOT_ROLES; r++) d->loops[r].extent = 1;
    for (uint32_t i = 0; i < s->nkept; i++) {
        uint32_t r = role_of(p, s, s->kept[i]);
        d->loops[r].at[d->loops[r].n++] = s->kept[i];
        d->loops[r].extent = dim_mul(p->cx->types, d->loops[r].extent, loop_extent(p->ix, s->kept[i]));
    }
    if (d->attention)
        attention_schedule(p, s);
    else
        schedule_product(p, s, d);
}
