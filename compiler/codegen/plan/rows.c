#include "rows.h"
#include "../cost.h"
#include "places.h"
#include "threads.h"

/* Rows that several stages read, as in a softmax: maximum, sum, quotients. If the extent is known and a thread's share
   fits into its registers, all of that is written out, in runs for wide accesses: then what one stage has read or
   computed is there for the later ones. Of a longer row that is cheap to compute again a part is there, and what the
   rest is computed from comes to shared memory, if there is room. */

typedef struct {
    Plan *p;
    const Step *step;
    Neighbours lanes;
    uint32_t words; /* of what reductions read of an element: it is kept */
    RowArray near[ROW_ARRAYS];
    uint32_t nnear, bytes; /* bytes: of an element in all of these */
    bool far;              /* reductions read more than these */
} Row;

static bool stored_here(const Step *s, const Buf *b) {
    each(Store, st, s->stores)
        if (same_buf(st->buf, b)) return true;
    return false;
}
/* The array may be read along the whole row before the first stage. */
static void add_term(Row *r, PlaceKind kind, const Buf *b, Dtype d, Ix address) {
    bool other, along = ix_coef(r->p->ix, address, r->step->lane, &other) == 1 && !other;
    for (uint32_t i = 0; i < r->nnear; i++)
        if (same_buf(r->near[i].buf, b) && r->near[i].address == address) return;
    r->far |= kind == PLACE_GUARDED || !along || ix_at(r->p->ix, address)->data || r->nnear == ROW_ARRAYS ||
              stored_here(r->step, b);
    if (r->far) return;
    r->near[r->nnear++] = (RowArray){b, d, address};
    r->bytes += dtype_bytes(d);
}

static void add(void *user, PlaceKind kind, const Buf *b, Dtype d, Ix address) {
    Row *r = user;
    neighbours_add(r->p, r->step, &r->lanes, b, d, address);
    if (kind > PLACE_GUARDED || !ix_uses(r->p->ix, address, r->step->lane)) return;
    r->words += (dtype_bytes(d) + 3) / 4;
    add_term(r, kind, b, d, address);
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
/* Are copies of a run to shared memory of 4 bytes and more? */
static bool copied(Row *r, uint32_t run, Atom first) {
    enum { LEAST_COPY = 4 };
    Indices *x = r->p->ix;
    Ix at = ix_scale(x, ix_atom(x, first), run);
    for (uint32_t i = 0; i < r->nnear; i++) {
        const RowArray *a = &r->near[i];
        Ix begin = ix_substitute(x, a->address, r->step->lane, at);
        if (run * dtype_bytes(a->dtype) < LEAST_COPY) return false;
        if (address_align(r->p, a->buf, a->dtype, begin) < LEAST_COPY) return false;
    }
    return !r->far && r->nnear;
}
/* Is there room in shared memory for what so many threads do not have in registers? */
static bool fits(const Row *r, Dim n, uint32_t threads, uint32_t most, uint32_t room) {
    uint32_t all = r->p->target->device->shared;
    if (room > all) room = all;
    return (n - (Dim)threads * most) * r->bytes + HELD_SCRATCH <= room;
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
    s->held.first = atom_loop(p->ix, n / run);
    s->held.last = atom_loop(p->ix, n / run);
    bool near = copied(&r, run, s->held.first) && s->cost <= AGAIN_COST,
         many = !dim_is_const(rows) || rows >= HELD_ROWS;
    if (group > HELD_TWICE && most && near && many && fits(&r, n, HELD_TWICE, most / run * run, HELD_ROOM))
        group = HELD_TWICE;
    bool rest = n > (Dim)group * most;
    bool long_sums = n > (Dim)group * SHARED_TURNS; /* which are to be cut */
    if (!most || long_sums || (rest && s->cost > AGAIN_COST)) return;
    int64_t at_once = (int64_t)group * run;
    s->held.run = run, s->held.turns = rest ? most / run : (uint32_t)((n + at_once - 1) / at_once),
    s->held.group = group;
    if (!rest) return;
    s->held.rest = at_once * s->held.turns;
    if (!near || !fits(&r, n, group, most / run * run, UINT32_MAX)) return;
    memcpy(s->held.near, r.near, sizeof r.near);
    s->held.nnear = r.nnear;
}
