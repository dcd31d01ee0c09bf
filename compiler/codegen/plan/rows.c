#include "rows.h"
#include "../cost.h"
#include "../eval/record.h"
#include "threads.h"

/* Rows that several stages read, as in a softmax: maximum, sum, quotients. If the extent is known and a thread's share
   fits into its registers, all of that is written out, in runs for wide accesses: then what one stage has read or
   computed is there for the later ones. Of a longer row that is cheap to compute again a part is there. */

typedef struct {
    Plan *p;
    const Step *step;
    bool apart;      /* an element is elsewhere than beside its neighbour's, or an array begins anywhere */
    uint32_t widest; /* bytes of the elements that lie beside each other */
    bool kept;       /* what is read now is of use to a later stage */
    uint32_t words;  /* of what is kept of an element */
} Row;

static void place(Row *r, const Buf *b, Dtype d, Ix address) {
    bool other;
    Dim apart = ix_coef(r->p->ix, address, r->step->lane, &other);
    if (!other && apart == 0) return;
    r->apart |= other || apart != 1 || address_align(r->p, b, d, 0) < DEVICE_ALIGN;
    if (dtype_bytes(d) > r->widest) r->widest = dtype_bytes(d);
}
static void read_place(void *user, Val v, const Ix *index, Ix address) {
    Row *r = user;
    const Info *info = v ? plan_info(r->p, v) : NULL; /* not an index that is a value */
    if (!v || info->class == VAL_SCALAR || !ix_uses(r->p->ix, address, r->step->lane)) return;
    Dtype d = val_array(r->p->cx, v)->dtype;
    place(r, info->buf, d, address);
    if (r->kept) r->words += (dtype_bytes(d) + 3) / 4; /* each is reported once */
}
/* What reductions read is kept; what only results need is read when these are stored. */
static void find_places(Row *r) {
    Plan *p = r->p;
    Step *s = (Step *)r->step;
    Eval *x = record(p, s, read_place, r);
    Ix index[MAX_RANK];
    r->kept = true;
    each(Val, v, s->members) {
        const Eqn *e = plan_info(p, *v)->e;
        if (!eqn_reduces(e)) continue;
        step_at(p, s, e->in.at[0], index);
        eval_value(x, e->in.at[0], index);
    }
    r->kept = false;
    each(Store, st, s->stores) {
        bool row = step_at(p, s, st->v, index);
        eval_value(x, st->v, index);
        record_place(x, st, index);
        if (!row) place(r, st->buf, st->as ? st->as : val_array(p->cx, st->v)->dtype, store_address(p, st, index));
    }
    record(p, NULL, NULL, NULL); /* r does not last as long as it */
}
/* Is a row read by more than one stage? */
static bool read_again(Plan *p, const Step *s) {
    if (s->levels > 2) return true;
    each(Store, st, s->stores)
        if (!st->row && st->level > 0) return true;
    return false;
}
/* Neighbouring elements that lie beside each other in each row. */
static uint32_t run_of(const Row *r, Dim n, uint32_t most) {
    uint32_t run = r->apart || !r->widest ? 1 : DEVICE_ALIGN / r->widest;
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
    if (!dim_is_const(n) || !read_again(p, s)) return;
    for (uint32_t i = 0; i < s->nkept; i++) rows = dim_mul(p->cx->types, rows, loop_extent(p->ix, s->kept[i]));
    find_places(&r);
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
