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
Sort *sort_new(Plan *p, Dim rows, Dim n, Dtype key, bool kept, Span span) {
    Types *ts = p->cx->types;
    Sort *so = arena_new(p->arena, Sort, 1);
    *so = (Sort){.rows = rows, .n = n, .key = key, .kept = kept, .tile = tile_for(n)};
    bool one_tile = dim_is_const(n) && n <= so->tile;
    Dim all = dim_mul(ts, rows, n), bytes = dim_mul(ts, all, dtype_bytes(key));
    so->places[0] = buf_new(p, BUF_WORK, dim_mul(ts, all, dtype_bytes(DT_u32)));
    if (kept || !one_tile) so->keys[0] = buf_new(p, BUF_WORK, bytes);
    if (one_tile) return so;
    so->places[1] = buf_new(p, BUF_WORK, dim_mul(ts, all, dtype_bytes(DT_u32)));
    so->keys[1] = buf_new(p, BUF_WORK, bytes);
    for (uint32_t i = 0; i < 2; i++) so->from[i] = buf_new(p, BUF_SLOT, 0), so->to[i] = buf_new(p, BUF_SLOT, 0);
    so->run = val_new(p->cx, type_of(ts, DT_i64, 0, NULL), span);
    plan_grow(p);
    return so;
}
void plan_sort(Plan *p, Body *b, const Eqn *e) {
    const ArrayType *t = val_array(p->cx, e->in.at[0]);
    Step *s = step_new(p, b, STEP_SORT, e, t);
    Dim rows = 1;
    for (uint32_t d = 0; d + 1 < t->rank; d++) rows = dim_mul(p->cx->types, rows, t->dims[d]);
    step_evaluates(p, b, s, e->in.at[0]);
    s->sort = sort_new(p, rows, t->dims[t->rank - 1], t->dtype, false, e->span);
    step_store(p, s, e->in.at[0], s->sort->places[0], 0, NULL, DT_none);
    step_result(p, s, 0, s->sort->places[0]);
}
void sort_decide(Plan *p, Sort *so, const Atom *loops, uint32_t n) {
    Types *ts = p->cx->types;
    uint32_t threads = so->tile / SORT_EACH;
    so->elements = (Grid){.loops = loops, .nloops = n, .items = dim_mul(ts, so->rows, so->n)};
    so->grid = (Grid){.items = dim_mul(ts, so->rows, sort_tiles(p, so)), .together = true};
    so->grid.threads = so->grid.group = threads < SORT_LEAST ? SORT_LEAST : threads;
}
