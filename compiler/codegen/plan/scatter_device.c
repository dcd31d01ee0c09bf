#include "scatter.h"
#include "../../typecheck/index.h"
#include "../cost.h"

/* A scatter on a device. Batches and elements of windows that do not overlap are independent of each other. Positions are
   too if all differ, or if the updates that meet can be combined in any order; if they replace each other, the last
   one of each place is found first. Else a thread does all positions. */

static Dim positions(Plan *p, const Step *s) {
    Dim n = 1;
    for (uint32_t i = 0; i < s->nred; i++) n = dim_mul(p->cx->types, n, loop_extent(p->ix, s->red[i]));
    return n;
}
/* Does the order of the updates not matter for the bits of the result? */
static bool commutes(Prim how, Dtype d) {
    DtypeKind kind = dtype_info[d].kind;
    bool extreme = how == P_min || how == P_max;
    return kind == DK_BOOL || kind == DK_SINT || kind == DK_UINT || (kind == DK_FLOAT && extreme);
}
/* Atomic operations are of words: does the array consist of them? */
static bool has_words(Plan *p, Val v) {
    enum { WORD_BYTES = 4 };
    Dim n = type_size(p->cx->types, val_type(p->cx, v));
    uint32_t bytes = dtype_bytes(val_array(p->cx, v)->dtype);
    return bytes >= WORD_BYTES || (dim_is_const(n) && n * bytes % WORD_BYTES == 0);
}
static Meeting meeting_of(Plan *p, const Step *s) {
    const Eqn *e = s->e;
    Prim how = prim_combiner[e->prim];
    Dim n = positions(p, s);
    if (param_bool(e, K_unique_indices) && index_mode(e) != MODE_CLIP) return MEET_NEVER;
    bool any_order = commutes(how, val_array(p->cx, e->in.at[0])->dtype) && has_words(p, e->in.at[0]);
    if (how != P_none) return any_order ? MEET_ATOMIC : MEET_IN_ORDER;
    if (param_jaxpr(e, K_update_jaxpr) || (dim_is_const(n) && n <= SCATTER_FEW)) return MEET_IN_ORDER;
    return MEET_LAST;
}
static void add(Plan *p, Grid *g, Atom *loops, Atom loop) {
    g->loops = loops;
    loops[g->nloops++] = loop;
    g->items = dim_mul(p->cx->types, g->items, loop_extent(p->ix, loop));
}
/* Neighbouring threads are neighbours in windows, then in positions, then in batches. `claiming`: for the elements of
   windows that places are told apart by. */
static Grid grid_of(Plan *p, const Step *s, bool claiming) {
    const Window *w = scatter_window(p, s);
    Atom *loops = arena_new(p->arena, Atom, s->nkept + s->nred + 1);
    bool in_order = s->meeting == MEET_IN_ORDER;
    Grid g = {.items = 1};
    for (uint32_t i = 0; i < s->nkept; i++)
        if (scatter_moves(p, w, s->kept[i])) add(p, &g, loops, s->kept[i]);
    for (uint32_t i = 0; i < s->nred && !in_order; i++) add(p, &g, loops, s->red[i]);
    for (uint32_t i = 0; i < s->nkept; i++) {
        bool overlaps = scatter_overlaps(p, s, s->kept[i]);
        if (scatter_moves(p, w, s->kept[i])) continue;
        if (claiming ? overlaps : !in_order || !overlaps) add(p, &g, loops, s->kept[i]);
    }
    return g;
}

/* ---- claims */
/* Along an axis that is neither indexed nor a batch's, windows begin at 0: elements that differ there never meet. */
static bool tells_apart(const IndexNumbers *n, uint32_t axis) {
    return ints_have(n->map, axis) || ints_have(n->batch, axis);
}
Ix scatter_place(Plan *p, const Step *s, const Window *w) {
    const ArrayType *x = val_array(p->cx, s->e->in.at[0]);
    IndexNumbers n;
    Ix at = 0;
    if (!index_numbers(p->cx, s->e, &n)) return at;
    for (uint32_t d = 0; d < x->rank; d++)
        if (tells_apart(&n, d)) at = ix_add(p->ix, ix_scale(p->ix, at, x->dims[d]), w->operand[d]);
    return at;
}
Ix scatter_number(Plan *p, const Step *s) {
    Ix at = 0;
    for (uint32_t i = 0; i < s->nred; i++)
        at = ix_add(p->ix, ix_scale(p->ix, at, loop_extent(p->ix, s->red[i])), ix_atom(p->ix, s->red[i]));
    return at;
}
static void plan_claims(Plan *p, Step *s) {
    const ArrayType *x = val_array(p->cx, s->e->in.at[0]);
    Dim n = positions(p, s);
    IndexNumbers numbers;
    bool known = index_numbers(p->cx, s->e, &numbers);
    assert(known);
    s->claims.places = 1;
    for (uint32_t d = 0; d < x->rank; d++)
        if (tells_apart(&numbers, d)) s->claims.places = dim_mul(p->cx->types, s->claims.places, x->dims[d]);
    s->claims.as = dim_is_const(n) && n < INT32_MAX ? DT_u32 : DT_u64;
    s->claims.grid = grid_of(p, s, true);
    s->claims.buf = buf_new(p, BUF_WORK, dim_mul(p->cx->types, s->claims.places, dtype_bytes(s->claims.as)));
}
void scatter_decide(Plan *p, Step *s) {
    s->meeting = meeting_of(p, s);
    s->grid = grid_of(p, s, false);
    s->claims.grid.items = 1;
    if (s->meeting == MEET_LAST) plan_claims(p, s);
}
