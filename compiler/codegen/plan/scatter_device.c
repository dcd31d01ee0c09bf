#include "scatter.h"
#include "sort.h"
#include "../../typecheck/index.h"
#include "../cost.h"

/* A scatter on a device. Batches and elements of windows that do not overlap are independent of each other. Positions
   are too if all differ, or if the updates that meet can be combined in any order; if they replace each other, the last
   one of each place is found first. Else they are sorted by place, or if they are few, a thread does all of them. */

static Dim positions(Plan *p, const Step *s) {
    Dim n = 1;
    for (uint32_t i = 0; i < s->nred; i++) n = dim_mul(p->cx->types, n, loop_extent(p->ix, s->red[i]));
    return n;
}
/* Along an axis that is neither indexed nor a batch's, windows begin at 0: elements that differ there never meet. */
static bool tells_apart(const IndexNumbers *n, uint32_t axis) {
    return ints_have(n->map, axis) || ints_have(n->batch, axis);
}
static Dim places_of(Plan *p, const Step *s) {
    const ArrayType *x = val_array(p->cx, s->e->in.at[0]);
    IndexNumbers n;
    Dim places = 1;
    if (!index_numbers(p->cx, s->e, &n)) return places;
    for (uint32_t d = 0; d < x->rank; d++)
        if (tells_apart(&n, d)) places = dim_mul(p->cx->types, places, x->dims[d]);
    return places;
}
/* Does the order of the updates not matter for the bits of the result? */
static bool commutes(Prim how, Dtype d) {
    DtypeKind kind = dtype_info[d].kind;
    bool extreme = how == P_min || how == P_max;
    return kind == DK_BOOL || kind == DK_SINT || kind == DK_UINT || (kind == DK_FLOAT && extreme);
}
Prim scatter_reduction(Prim how) {
    static const struct {
        Prim how, reduce;
    } reductions[] = {{P_add, P_reduce_sum}, {P_min, P_reduce_min}, {P_max, P_reduce_max}};
    for (uint32_t i = 0; i < sizeof reductions / sizeof *reductions; i++)
        if (reductions[i].how == how) return reductions[i].reduce;
    return P_none;
}
/* Are there many updates of few whole numbers? */
static bool shared_pays(Plan *p, const Step *s) {
    Val x = s->e->in.at[0];
    Dim places = type_size(p->cx->types, val_type(p->cx, x));
    Dim n = type_size(p->cx->types, val_type(p->cx, s->e->in.at[2]));
    const DtypeInfo *t = &dtype_info[val_array(p->cx, x)->dtype];
    bool whole = (t->kind == DK_SINT || t->kind == DK_UINT) && t->bits >= 32;
    bool many = dim_is_const(n) && n >= 2 * SHARED_UPDATES && dim_is_const(places) && places <= SHARED_PLACES;
    return whole && many && scatter_reduction(prim_combiner[s->e->prim]) != P_none;
}
/* Atomic operations are of words: does the array consist of them? */
static bool has_words(Plan *p, Val v) {
    enum { WORD_BYTES = 4 };
    Dim n = type_size(p->cx->types, val_type(p->cx, v));
    uint32_t bytes = dtype_bytes(val_array(p->cx, v)->dtype);
    return bytes >= WORD_BYTES || (dim_is_const(n) && n * bytes % WORD_BYTES == 0);
}
/* An array of claims is not much longer than the updates. */
static bool claims_pay(Plan *p, const Step *s) {
    Dim places = places_of(p, s), n = positions(p, s);
    return !dim_is_const(places) || !dim_is_const(n) || places / CLAIMS_EACH <= n;
}
/* Does one thread do few updates, in order? */
static bool few_in_order(Plan *p, const Step *s) {
    Dim n = positions(p, s);
    for (uint32_t i = 0; i < s->nkept; i++)
        if (scatter_overlaps(p, s, s->kept[i])) n = dim_mul(p->cx->types, n, loop_extent(p->ix, s->kept[i]));
    return dim_is_const(n) && n <= SCATTER_FEW;
}
static Meeting meeting_of(Plan *p, const Step *s) {
    const Eqn *e = s->e;
    Prim how = prim_combiner[e->prim];
    if ((param_bool(e, K_unique_indices) && index_mode(e) != MODE_CLIP) || scatter_apart(p, s)) return MEET_NEVER;
    if (how != P_none && commutes(how, val_array(p->cx, e->in.at[0])->dtype) && has_words(p, e->in.at[0]))
        return shared_pays(p, s) ? MEET_SHARED : MEET_ATOMIC;
    if (few_in_order(p, s)) return MEET_IN_ORDER;
    return how == P_none && !param_jaxpr(e, K_update_jaxpr) && claims_pay(p, s) ? MEET_LAST : MEET_SORTED;
}
static void add(Plan *p, Grid *g, Atom *loops, Atom loop) {
    g->loops = loops;
    loops[g->nloops++] = loop;
    g->items = dim_mul(p->cx->types, g->items, loop_extent(p->ix, loop));
}
/* The elements that places are told apart by: positions of all batches, and elements of windows that may overlap. */
static Grid elements_of(Plan *p, const Step *s) {
    const Window *w = scatter_window(p, s);
    Atom *loops = arena_new(p->arena, Atom, s->nkept + s->nred + 1);
    Grid g = {.items = 1};
    for (uint32_t i = 0; i < s->nkept; i++)
        if (scatter_moves(p, w, s->kept[i])) add(p, &g, loops, s->kept[i]);
    for (uint32_t i = 0; i < s->nred; i++) add(p, &g, loops, s->red[i]);
    for (uint32_t i = 0; i < s->nkept; i++)
        if (!scatter_moves(p, w, s->kept[i]) && scatter_overlaps(p, s, s->kept[i])) add(p, &g, loops, s->kept[i]);
    return g;
}
/* Neighbouring threads are neighbours in windows, then in positions, then in batches. */
static Grid grid_of(Plan *p, const Step *s) {
    const Window *w = scatter_window(p, s);
    Atom *loops = arena_new(p->arena, Atom, s->nkept + s->nred + 1);
    bool sorted = s->meeting == MEET_SORTED, in_order = s->meeting == MEET_IN_ORDER;
    Grid g = {.items = 1};
    for (uint32_t i = 0; i < s->nkept && !sorted; i++)
        if (scatter_moves(p, w, s->kept[i])) add(p, &g, loops, s->kept[i]);
    for (uint32_t i = 0; i < s->nred && !sorted && !in_order; i++) add(p, &g, loops, s->red[i]);
    if (sorted) add(p, &g, loops, s->sort->slot);
    for (uint32_t i = 0; i < s->nkept; i++) {
        bool alone = (sorted || in_order) && scatter_overlaps(p, s, s->kept[i]);
        if (!scatter_moves(p, w, s->kept[i]) && !alone) add(p, &g, loops, s->kept[i]);
    }
    return g;
}

/* ---- claims */
Ix scatter_place(Plan *p, const Step *s, const Window *w) {
    const ArrayType *x = val_array(p->cx, s->e->in.at[0]);
    IndexNumbers n;
    Ix at = 0;
    if (!index_numbers(p->cx, s->e, &n)) return at;
    for (uint32_t d = 0; d < x->rank; d++)
        if (tells_apart(&n, d)) at = ix_add(p->ix, ix_scale(p->ix, at, x->dims[d]), w->operand[d]);
    return at;
}
/* The largest number that divides all terms, if they are known. */
static Dim unit_of(Plan *p, Ix at) {
    const IxExpr *x = ix_at(p->ix, at);
    Dim unit = dim_is_const(x->c) ? x->c : 1;
    for (uint32_t i = 0; i < x->n; i++) {
        Dim n = dim_is_const(x->at[i].coef) ? x->at[i].coef : 1;
        while (n) {
            Dim rest = unit % n;
            unit = n, n = rest;
        }
    }
    return unit > 0 ? unit : 1;
}
static Ix divided(Plan *p, Ix at, Dim unit) {
    const IxExpr x = *ix_at(p->ix, at);
    if (unit == 1) return at;
    Ix sum = ix_dim(p->ix, x.c / unit);
    for (uint32_t i = 0; i < x.n; i++)
        sum = ix_add(p->ix, sum, ix_scale(p->ix, ix_atom(p->ix, x.at[i].atom), x.at[i].coef / unit));
    return sum;
}
/* Windows that overlap are told apart by element, so it is an address; loops of elements that are done together are at
   0. */
static Ix sorted_place(Plan *p, const Step *s) {
    const Window *w = scatter_window(p, s);
    Ix index[MAX_RANK];
    step_at(p, s, s->e->in.at[2], index);
    Ix at = scatter_address(p, s->e, index);
    for (uint32_t i = 0; i < s->nkept; i++)
        if (!scatter_moves(p, w, s->kept[i]) && !scatter_overlaps(p, s, s->kept[i]))
            at = ix_substitute(p->ix, at, s->kept[i], ix_dim(p->ix, 0));
    return at;
}
Ix scatter_number(Plan *p, const Step *s) {
    Ix at = 0;
    for (uint32_t i = 0; i < s->nred; i++)
        at = ix_add(p->ix, ix_scale(p->ix, at, loop_extent(p->ix, s->red[i])), ix_atom(p->ix, s->red[i]));
    return at;
}
static Dtype number_for(Dim most) { return dim_is_const(most) && most < UINT32_MAX ? DT_u32 : DT_u64; }
static void plan_claims(Plan *p, Step *s) {
    s->claims.places = places_of(p, s);
    s->claims.as = number_for(positions(p, s));
    s->claims.grid = elements_of(p, s);
    s->claims.buf = buf_new(p, BUF_WORK, dim_mul(p->cx->types, s->claims.places, dtype_bytes(s->claims.as)));
}
/* A thread has neighbouring elements of the windows, if they lie beside each other: what it finds out about its place
   holds for all of them. */
static void choose_elements(Plan *p, Step *s) {
    Types *ts = p->cx->types;
    Grid *g = &s->grid;
    Atom loop = g->loops[g->nloops - 1], *loops = arena_new(p->arena, Atom, g->nloops);
    Dim n = loop_extent(p->ix, loop), run = DEVICE_ALIGN / dtype_bytes(val_array(p->cx, s->e->in.at[0])->dtype);
    Ix index[MAX_RANK];
    bool other;
    if (g->nloops < 2 || run < 2 || dim_mod(ts, n, run) != 0 || run * s->cost > RUN_COST) return;
    if (dim_is_const(g->items) && g->items < run * RUN_THREADS) return;
    step_at(p, s, s->e->in.at[2], index);
    if (ix_coef(p->ix, scatter_address(p, s->e, index), loop, &other) != 1 || other) return;
    s->run = (uint32_t)run, s->run_turns = 1, s->run_loop = loop, s->runs = atom_loop(p->ix, dim_floordiv(ts, n, run));
    memcpy(loops, g->loops, g->nloops * sizeof *loops);
    loops[g->nloops - 1] = s->runs;
    g->loops = loops, g->items = dim_floordiv(ts, g->items, run);
}
/* Updates that can be combined among themselves are done in parts, by part and by element of windows. */
static void plan_parts(Plan *p, Step *s) {
    Types *ts = p->cx->types;
    Sort *so = s->sort;
    Dim n = dim_floordiv(ts, dim_add(ts, so->n, SLOT_PART - 1), SLOT_PART);
    Dtype d = val_array(p->cx, s->e->in.at[0])->dtype;
    if (prim_combiner[s->e->prim] == P_none || (dim_is_const(n) && n <= 1)) return;
    Atom *loops = arena_new(p->arena, Atom, s->grid.nloops + 1);
    so->part = atom_loop(p->ix, n);
    so->part_grid = (Grid){.items = 1};
    add(p, &so->part_grid, loops, so->part);
    for (uint32_t i = 1; i < s->grid.nloops; i++) add(p, &so->part_grid, loops, s->grid.loops[i]);
    so->parts = buf_new(p, BUF_WORK, dim_mul(ts, so->part_grid.items, dtype_bytes(d) * (s->run ? s->run : 1)));
}
/* As many as numbers below `most` have, and one more, of ones. */
static uint32_t bits_for(Dim most) {
    uint32_t bits = 1;
    while (bits < 64 && (!dim_is_const(most) || most >> bits)) bits++;
    return bits;
}
/* Are equal positions neighbours as they come? If windows were moved inside, others could be between them. */
static bool in_order(Plan *p, const Step *s) {
    const Window *w = scatter_window(p, s);
    if (!param_bool(s->e, K_indices_are_sorted) || index_mode(s->e) == MODE_CLIP) return false;
    for (uint32_t i = 0; i < s->nkept; i++)
        if (scatter_moves(p, w, s->kept[i]) || scatter_overlaps(p, s, s->kept[i])) return false;
    return true;
}
static void plan_sorted(Plan *p, Step *s) {
    Grid all = elements_of(p, s);
    Ix place = sorted_place(p, s);
    Dim places = type_size(p->cx->types, val_type(p->cx, s->e->in.at[0])), unit = unit_of(p, place);
    if (dim_is_const(places) && unit > 1) places = (places + unit - 1) / unit;
    uint32_t bits = bits_for(places);
    s->sort =
        in_order(p, s) ? sort_in_order(p, all.items, bits, s->e) : sort_new(p, 1, all.items, bits, SORT_BOTH, s->e);
    s->sort->place = divided(p, place, unit), s->sort->unit = unit;
    s->sort->slots = 1, s->sort->slot = atom_loop(p->ix, all.items);
    sort_decide(p, s->sort, all.loops, all.nloops);
}
/* Most sorted positions are not the first of their place: a thread looks for those that are among several. */
static void choose_slots(Plan *p, Step *s) {
    Types *ts = p->cx->types;
    Sort *so = s->sort;
    Grid *g = &s->grid;
    Atom *loops = arena_new(p->arena, Atom, g->nloops);
    so->slots = SLOTS_EACH;
    while (so->slots > 1 && dim_is_const(g->items) && g->items < (Dim)so->slots * RUN_THREADS) so->slots /= 2;
    so->slot = atom_loop(p->ix, dim_floordiv(ts, dim_add(ts, so->n, so->slots - 1), so->slots));
    memcpy(loops, g->loops, g->nloops * sizeof *loops);
    g->items = loop_extent(p->ix, loops[0] = so->slot), g->loops = loops;
    for (uint32_t i = 1; i < g->nloops; i++) g->items = dim_mul(ts, g->items, loop_extent(p->ix, loops[i]));
}
static void plan_shared(Plan *p, Step *s) {
    enum { THREADS = 256 };
    Dim n = dim_floordiv(p->cx->types, dim_add(p->cx->types, s->grid.items, SHARED_UPDATES - 1), SHARED_UPDATES);
    s->updates = s->grid;
    s->grid = (Grid){.items = n, .together = true, .threads = THREADS, .group = THREADS};
}
void scatter_decide(Plan *p, Step *s) {
    s->meeting = meeting_of(p, s);
    s->claims.grid.items = 1;
    if (s->meeting == MEET_LAST) plan_claims(p, s);
    if (s->meeting == MEET_SORTED) plan_sorted(p, s);
    s->grid = grid_of(p, s);
    if (s->meeting == MEET_SHARED) plan_shared(p, s);
    if (s->meeting != MEET_SORTED) return;
    choose_elements(p, s);
    plan_parts(p, s);
    choose_slots(p, s);
    s->grid.blocks = s->sort->part_grid.blocks = SLOT_BLOCKS;
}
