#include "sort.h"
#include "../cost.h"

static uint32_t tile_for(Dim n) {
    uint32_t tile = SORT_LEAST;
    while (tile < SORT_TILE && (!dim_is_const(n) || tile < n)) tile *= 2;
    return tile;
}
Dim sort_tiles(Plan *p, const Sort *so) {
    return dim_floordiv(p->cx->types, dim_add(p->cx->types, so->n, so->tile - 1), so->tile);
}
/* What merging needs, unless rows are certainly single tiles. */
static void plan_merging(Plan *p, Sort *so, const Eqn *e) {
    if (dim_is_const(so->n) && so->n <= so->tile) return;
    so->places[1] = buf_for(p, BUF_WORK, e->out.at[0]);
    for (uint32_t i = 0; i < 2; i++) {
        so->keys[i] = buf_for(p, BUF_WORK, e->in.at[0]);
        so->from[i] = buf_new(p, BUF_SLOT, 0);
        so->to[i] = buf_new(p, BUF_SLOT, 0);
    }
    so->run = val_new(p->cx, type_of(p->cx->types, DT_i64, 0, NULL), e->span);
    plan_grow(p);
}
void plan_sort(Plan *p, Body *b, const Eqn *e) {
    const ArrayType *t = val_array(p->cx, e->in.at[0]);
    Step *s = step_new(p, b, STEP_SORT, e, t);
    Sort *so = s->sort = arena_new(p->arena, Sort, 1);
    step_evaluates(p, b, s, e->in.at[0]);
    so->key = t->dtype;
    so->n = t->dims[t->rank - 1];
    so->rows = 1;
    for (uint32_t d = 0; d + 1 < t->rank; d++) so->rows = dim_mul(p->cx->types, so->rows, t->dims[d]);
    so->tile = tile_for(so->n);
    so->places[0] = buf_for(p, BUF_WORK, e->out.at[0]);
    plan_merging(p, so, e);
    step_store(p, s, e->in.at[0], so->places[0], 0, NULL, DT_none);
    step_result(p, s, 0, so->places[0]);
}
void sort_decide(Plan *p, Step *s) {
    Sort *so = s->sort;
    Dim tiles = dim_mul(p->cx->types, so->rows, sort_tiles(p, so));
    uint32_t threads = so->tile / SORT_EACH;
    so->elements = (Grid){.loops = s->kept, .nloops = s->nkept, .items = dim_mul(p->cx->types, so->rows, so->n)};
    if (threads < SORT_LEAST) threads = SORT_LEAST;
    s->grid = (Grid){.items = tiles, .together = true, .threads = threads, .group = threads};
}
