#include "crossed.h"
#include "../cost.h"
#include "places.h"
#include "threads.h"

/* As in a transpose: a block has a tile of iterations of the two loops. Its threads read what lies beside each other
   along `across` by accesses of 16 bytes into shared memory; after a barrier they have runs along the lanes, as
   elsewhere, and take these elements from there. Stores go the other way. So memory is read and written 256 bytes at
   a time (8192 x 8192 f32: 159 us, so 135; a copy takes 130). */

enum { WORD_BYTES = 4 };
uint32_t crossed_together(const Crossed *c) { return c->bytes < WORD_BYTES ? WORD_BYTES / c->bytes : 1; }
uint32_t crossed_read(const Crossed *c) { return DEVICE_ALIGN / c->bytes; }

typedef struct {
    Plan *p;
    const Step *step;
    Crossed c;
    uint32_t widest;
    bool fits;
} Places;
static Atom loop_beside(const Places *r, Ix address) {
    bool other;
    for (uint32_t i = 0; i < r->step->nkept; i++) {
        Atom loop = r->step->kept[i];
        if (loop != r->step->lane && ix_coef(r->p->ix, address, loop, &other) == 1 && !other) return loop;
    }
    return 0;
}
Ix crossed_address(Indices *x, const Step *s, Ix address) {
    for (uint32_t i = 0; i < s->nkept; i++)
        for (Atom a = atom_at(x, s->kept[i])->outer; a; a = atom_at(x, a)->outer)
            address = ix_substitute(x, address, a, 0);
    return address;
}
static void add_crossed(Places *r, const ArrayPlace *a) {
    Crossed *c = &r->c;
    Atom across = loop_beside(r, a->address);
    bool same = !c->n || (c->across == across && c->bytes == dtype_bytes(a->dtype));
    if (!a->buf || !across || !same || c->n == MOST_CROSSED || a->guarded) {
        r->fits = false;
        return;
    }
    c->across = across, c->bytes = dtype_bytes(a->dtype);
    c->at[c->n] = *a;
    c->at[c->n++].address = crossed_address(r->p->ix, r->step, a->address);
}
static void add(void *user, const ArrayPlace *a) {
    Places *r = user;
    bool other;
    Dim moves = ix_coef(r->p->ix, a->address, r->step->lane, &other);
    if (!other && moves == 0) return;
    if (dtype_bytes(a->dtype) > r->widest) r->widest = dtype_bytes(a->dtype);
    if (!other && moves == 1) return;
    if (other || !dim_is_const(moves))
        r->fits = false;
    else
        add_crossed(r, a);
}
/* Iterations of a loop in a tile, a power of two; 0: the loop is too short. */
static uint32_t side_of(const Places *r, Dim n) {
    uint32_t side = CROSSED_BYTES / r->widest;
    if (side > CROSSED_SIDE) side = CROSSED_SIDE;
    while (side > n) side /= 2;
    return side * r->widest >= CROSSED_BYTES / 4 ? side : 0;
}
/* Has each thread of a block something to read, and a run? */
static bool accesses(const Places *r, uint32_t run) {
    uint32_t cells = r->c.lane_side * r->c.across_side;
    return cells / run >= BLOCK_THREADS && cells / (crossed_read(&r->c) * crossed_together(&r->c)) >= BLOCK_THREADS;
}
/* Is everything there by whole accesses? */
static bool whole(Places *r) {
    Indices *x = r->p->ix;
    Crossed *c = &r->c;
    for (uint32_t i = 0; i < c->n; i++) {
        const ArrayPlace *a = &c->at[i];
        Ix at = ix_substitute(x, a->address, c->across, ix_scale(x, ix_atom(x, c->reads), crossed_read(c)));
        if (address_align(r->p, a->buf, a->dtype, at) < DEVICE_ALIGN) return false;
    }
    return true;
}
/* Blocks do tiles. */
static Grid grid_of(Plan *p, const Step *s, const Crossed *c) {
    Atom *loops = arena_new(p->arena, Atom, s->nkept);
    Grid g = {.loops = loops, .nloops = s->nkept, .items = 1};
    for (uint32_t i = 0; i < s->nkept; i++) {
        loops[i] = s->kept[i] == s->lane ? c->lane_tiles : s->kept[i] == c->across ? c->across_tiles : s->kept[i];
        g.items = dim_mul(p->cx->types, g.items, loop_extent(p->ix, loops[i]));
    }
    g.together = true, g.threads = g.group = BLOCK_THREADS;
    g.once = dim_is_const(g.items) && g.items <= MOST_BLOCKS;
    return g;
}
bool crossed_decide(Plan *p, Step *s) {
    Places r = {.p = p, .step = s, .fits = true};
    Crossed *c = &r.c;
    if (s->reduces || s->carried || s->unrolled || s->nkept < 2) return false;
    step_places(p, s, false, add, &r);
    if (!r.fits || !c->n || c->bytes > CROSSED_WIDEST || s->cost * DEVICE_ALIGN / r.widest > RUN_COST) return false;
    Dim n = loop_extent(p->ix, s->lane), m = loop_extent(p->ix, c->across);
    uint32_t run = DEVICE_ALIGN / r.widest;
    if (!dim_is_const(n) || !dim_is_const(m) || n % run || m % crossed_read(c) || run % crossed_together(c))
        return false;
    c->lane_side = side_of(&r, n), c->across_side = side_of(&r, m);
    if (!c->lane_side || !c->across_side || !accesses(&r, run)) return false;
    c->reads = atom_loop(p->ix, m / crossed_read(c)), c->words = atom_loop(p->ix, n / crossed_together(c));
    if (!whole(&r)) return false;
    c->lane_tiles = atom_loop(p->ix, (n + c->lane_side - 1) / c->lane_side);
    c->across_tiles = atom_loop(p->ix, (m + c->across_side - 1) / c->across_side);
    const Grid g = grid_of(p, s, c);
    if (dim_is_const(g.items) && g.items < CROSSED_TILES) return false;
    s->crossed = *c, s->grid = g;
    s->run = run, s->run_turns = 1, s->run_loop = s->lane, s->runs = atom_loop(p->ix, n / run);
    return true;
}
