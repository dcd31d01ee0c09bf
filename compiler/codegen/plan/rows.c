#include "rows.h"
#include "../cost.h"
#include "places.h"
#include "threads.h"

/* Rows that several stages read, as in a softmax: maximum, sum, quotients. If the extent is known and a thread's share
   fits into its registers, all of that is written out, in runs for wide accesses: then what one stage has read or
   computed is there for the later ones. Of a longer row that is cheap to compute again a part is there. */

typedef struct {
    Plan *p;
    const Step *step;
    Neighbours lanes;
    uint32_t words; /* of what reductions read of an element: it is kept */
} Row;

static void add(void *user, PlaceKind kind, const Buf *b, Dtype d, Ix address) {
    Row *r = user;
    neighbours_add(r->p, r->step, &r->lanes, b, d, address);
    if (kind == PLACE_TERM && ix_uses(r->p->ix, address, r->step->lane)) r->words += (dtype_bytes(d) + 3) / 4;
}
bool rows_read_again(const Step *s) {
    if (s->levels > 2) return true;
    each(Store, st, s->stores)
        if (!st->row && st->level > 0) return true;
    return false;
}
/* Neighbouring elements that lie beside each other in each row. */
static uint32_t run_of(const Row *r, Dim n, uint32_t most) {
    uint32_t run = r->lanes.apart || !r->lanes.widest ? 1 : DEVICE_ALIGN / r->lanes.widest;
    while (run > 1 && (run > most || n % run != 0)) run /= 2;
    return run ? run : 1;
}
/* The threads for a row, of which each has at most `most` elements in registers. */
static uint32_t group_of(Dim n, uint32_t most, bool many) {
    uint32_t group = LEAST_GROUP, each = many && most > HELD_EACH ? most / 2 : most < ROW_ITEMS ? most : ROW_ITEMS;
    while (group < WARP && (Dim)group * ROW_ITEMS < n) group *= 2;
    if (many && n <= (Dim)WARP * most) return group;
    while (group < HELD_THREADS && (Dim)group * each < n) group *= 2;
    return group;
}
void rows_decide(Plan *p, Step *s) {
    Row r = {.p = p, .step = s};
    if (s->kind != STEP_LOOPS || !threads_share_lanes(p, s) || s->nred != 1 || s->unrolled || s->carried) return;
    Dim n = loop_extent(p->ix, s->lane), rows = 1;
    if (!dim_is_const(n) || !rows_read_again(s)) return;
    for (uint32_t i = 0; i < s->nkept; i++) rows = dim_mul(p->cx->types, rows, loop_extent(p->ix, s->kept[i]));
    step_places(p, s, true, add, &r);
    uint32_t most = HELD_WORDS / (r.words ? r.words : 1), cheap = HELD_COST / (s->cost ? s->cost : 1);
    if (cheap < most) most = cheap;
    uint32_t run = run_of(&r, n, most), group = group_of(n, most, !dim_is_const(rows) || rows >= LEAST_WARP_ROWS);
    bool rest = n > (Dim)group * most;
    bool long_sums = n > (Dim)group * SHARED_TURNS; /* which are to be cut */
    if (!most || long_sums || (rest && s->cost > AGAIN_COST)) return;
    int64_t at_once = (int64_t)group * run;
    s->held =
        (HeldRow){.run = run, .turns = rest ? most / run : (uint32_t)((n + at_once - 1) / at_once), .group = group};
    if (rest) s->held.rest = at_once * s->held.turns;
    s->held.first = atom_loop(p->ix, n / run);
    s->held.last = atom_loop(p->ix, n / run);
}
