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
    uint32_t words, read; /* of what reductions read of an element: it is kept; its bytes in memory */
    ArrayPlace near[ROW_ARRAYS];
    uint32_t nnear, bytes; /* bytes: of an element in all of these */
    bool far;              /* reductions read more than these */
    bool near_by;          /* these may be in shared memory */
    bool clusters;         /* of blocks may share a row */
} Row;

static bool stored_here(const Step *s, const Buf *b) {
    each(Store, st, s->stores)
        if (same_buf(st->buf, b)) return true;
    return false;
}
/* The array may be read along the whole row before the first stage. */
static void add_term(Row *r, const ArrayPlace *a) {
    bool other, along = ix_coef(r->p->ix, a->address, r->step->lane, &other) == 1 && !other;
    for (uint32_t i = 0; i < r->nnear; i++)
        if (same_buf(r->near[i].buf, a->buf) && r->near[i].address == a->address) return;
    r->far |= a->guarded || !along || ix_at(r->p->ix, a->address)->data || r->nnear == ROW_ARRAYS ||
              stored_here(r->step, a->buf);
    if (r->far) return;
    r->near[r->nnear++] = *a;
    r->bytes += dtype_bytes(a->dtype);
}
static void add(void *user, const ArrayPlace *a) {
    Row *r = user;
    neighbours_add(r->p, r->step, &r->lanes, a);
    if (a->kind != PLACE_TERM || !ix_uses(r->p->ix, a->address, r->step->lane)) return;
    r->words += (dtype_bytes(a->dtype) + 3) / 4, r->read += dtype_bytes(a->dtype);
    add_term(r, a);
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
/* The threads for a row, of which each has at most `most` elements in registers: if there are many rows half of them,
   but as many bytes of narrow ones: a layer norm of 4096 bf16 in 134 us, not 140. */
static uint32_t group_of(const Row *r, Dim n, uint32_t most, bool many) {
    uint32_t group = LEAST_GROUP, few = most < ROW_ITEMS ? most : ROW_ITEMS, own = few;
    bool narrow = r->words && 4 * r->words >= 2 * r->read;
    if (many && most > HELD_EACH) own = narrow ? most : most / 2;
    while (group < WARP && (Dim)group * few < n) group *= 2;
    if (many && n <= (Dim)WARP * most) return group;
    while (group < HELD_THREADS && (Dim)group * own < n) group *= 2;
    return group;
}
static Dim row_length(Plan *p, const Step *s) {
    Dim n = 1;
    for (uint32_t i = 0; i < s->nred; i++) n = dim_mul(p->cx->types, n, loop_extent(p->ix, s->red[i]));
    return n;
}
/* The loops of a row are to become the last of them. */
static void find_loops(Plan *p, const Step *s, HeldRow *h) {
    h->nloops = s->nred;
    h->loops = arena_new(p->arena, Atom, s->nred), h->extents = arena_new(p->arena, Dim, s->nred);
    for (uint32_t i = 0; i < s->nred; i++) h->loops[i] = s->red[i], h->extents[i] = loop_extent(p->ix, s->red[i]);
}
/* They do. Nothing is evaluated at it but by row_at. */
static void merge(Plan *p, Step *s, Dim n) {
    if (s->nred == 1) return;
    atom_at(p->ix, s->lane)->run = n, atom_at(p->ix, s->lane)->merged = true;
    s->red[0] = s->lane, s->nred = 1;
}
Ix row_at(Indices *x, const Step *s, Ix i, Ix element) {
    const HeldRow *h = &s->held;
    for (uint32_t k = h->nloops; k-- > 0;) {
        Ix own = element, left = 0;
        if (k) ix_divide_runs(x, element, h->extents[k], &left, &own);
        i = ix_replaced(x, i, h->loops[k], own, true);
        element = left;
    }
    return i;
}
/* Are copies of a run to shared memory of 4 bytes and more? */
static bool copied(const Row *r) {
    enum { LEAST_COPY = 4 };
    Indices *x = r->p->ix;
    const HeldRow *h = &r->step->held;
    Ix at = ix_scale(x, ix_atom(x, h->first), h->run);
    for (uint32_t i = 0; i < r->nnear; i++) {
        const ArrayPlace *a = &r->near[i];
        Ix begin = row_at(x, r->step, a->address, at);
        if (h->run * dtype_bytes(a->dtype) < LEAST_COPY) return false;
        if (address_align(r->p, a->buf, a->dtype, begin) < LEAST_COPY) return false;
    }
    return !r->far && r->nnear;
}
Dim rows_near_elements(Dim rest, uint32_t blocks, Dim at_once) {
    return blocks > 1 ? (rest + at_once * blocks - 1) / (at_once * blocks) * at_once : rest;
}
/* Is there room in the shared memory of each block for what so many threads of it do not have in registers? */
static bool fits(const Row *r, Dim n, uint32_t blocks, uint32_t threads, uint32_t most, uint32_t room) {
    uint32_t all = r->p->target->device->shared;
    if (room > all) room = all;
    Dim here = rows_near_elements(n - (Dim)blocks * threads * most, blocks, (Dim)threads * r->step->held.run);
    return here * r->bytes + (Dim)HELD_SCRATCH * r->step->nreductions <= room;
}
/* Do so many blocks of HELD_TWICE threads have the row, each no more than this of it in shared memory? */
static bool have(const Row *r, Dim n, uint32_t blocks, uint32_t most, uint32_t room) {
    return r->near_by ? fits(r, n, blocks, HELD_TWICE, most, room) : n <= (Dim)blocks * HELD_TWICE * most;
}
/* How many blocks are a cluster that has a row, so that enough of them run; 0: no number is right. */
static uint32_t cluster_of(const Row *r, Dim n, Dim rows, uint32_t most, uint32_t room) {
    for (uint32_t blocks = 1; blocks <= (r->clusters ? HELD_CLUSTER : 1); blocks *= 2) {
        bool enough = !dim_is_const(rows) || rows * blocks >= HELD_BLOCKS || blocks == HELD_CLUSTER;
        if (enough && have(r, n, blocks, most, room)) return blocks;
    }
    return 0;
}
/* If a block with a row fills a multiprocessor: smaller ones, of which two do not wait for memory at the same time,
   with few registers for the row if there is room for so much in shared memory. */
static void halve(const Row *r, HeldRow *h, Dim n, Dim rows, uint32_t *most) {
    uint32_t few = HELD_NEAR / (r->words ? r->words : 1) / h->run * h->run, room = HELD_ROOM;
    bool here = n <= (Dim)HELD_THREADS * *most, idle = r->clusters && rows < HELD_BLOCKS;
    if (here && !r->near_by && !idle) return;
    uint32_t blocks = cluster_of(r, n, rows, *most, room);
    if (!blocks && r->clusters && have(r, n, HELD_CLUSTER, *most, UINT32_MAX)) blocks = HELD_CLUSTER, room = UINT32_MAX;
    if (!blocks) return;
    if (few && few < *most && have(r, n, blocks, few, room)) *most = few;
    h->group = HELD_TWICE * blocks, h->cluster = blocks > 1 ? blocks : 0;
}
enum { ADDRESS_WORDS = 2 };
void rows_decide(Plan *p, Step *s) {
    Row r = {.p = p, .step = s};
    HeldRow *h = &s->held;
    if (s->kind != STEP_LOOPS || !threads_share_lanes(p, s) || s->unrolled || s->carried) return;
    Dim n = row_length(p, s), rows = 1;
    if (!dim_is_const(n) || !rows_read_again(s)) return;
    for (uint32_t i = 0; i < s->nkept; i++) rows = dim_mul(p->cx->types, rows, loop_extent(p->ix, s->kept[i]));
    step_places(p, s, true, add, &r);
    uint32_t words = r.words ? r.words : 1, most = HELD_WORDS / words, cheap = HELD_COST / (s->cost ? s->cost : 1);
    if (cheap < most) most = cheap;
    uint32_t run = run_of(&r, loop_extent(p->ix, s->lane), most);
    if (s->nred > 1) most = most * run * words / (run * words + ADDRESS_WORDS); /* its address is kept too */
    most = most / run * run;
    r.clusters = p->target->device->clusters && dim_is_const(rows) && rows > 0 && rows <= MOST_BLOCKS / HELD_CLUSTER;
    if (!most) return;
    find_loops(p, s, h);
    h->run = run;
    h->first = atom_loop(p->ix, n / run);
    h->last = atom_loop(p->ix, n / run);
    h->group = group_of(&r, n, most, !dim_is_const(rows) || rows >= LEAST_WARP_ROWS);
    bool costly = s->cost > AGAIN_COST; /* to compute again */
    r.near_by = !costly && copied(&r);
    if (h->group > HELD_TWICE) halve(&r, h, n, rows, &most);
    if (n > (Dim)h->group * (costly ? most : SHARED_TURNS)) { /* longer sums are to be cut */
        *h = (HeldRow){0};
        return;
    }
    merge(p, s, n);
    int64_t at_once = (int64_t)h->group * h->run, blocks = h->cluster ? h->cluster : 1;
    h->turns = n > h->group * most ? most / h->run : (uint32_t)((n + at_once - 1) / at_once);
    if (n <= h->group * most) return;
    h->rest = at_once * h->turns;
    if (!r.near_by || !fits(&r, n, (uint32_t)blocks, (uint32_t)(h->group / blocks), most, UINT32_MAX)) return;
    memcpy(h->near, r.near, sizeof r.near);
    h->nnear = r.nnear;
}
