/* The builder: reading and writing at computed places. */
#include "../typecheck/rule.h"
#include "build.h"

static Val at_starts(Builder *b, Prim prim, uint32_t n, const Val *first, const Val *starts, uint32_t nparams,
                     const Param *params) {
    uint32_t rank = b_type(b, first[0])->rank;
    Val *in = arena_new(b->cx->arena, Val, n + rank);
    memcpy(in, first, n * sizeof *in);
    if (rank) memcpy(in + n, starts, rank * sizeof *in);
    return build(b, prim, n + rank, in, nparams, params);
}
Val b_dynamic_slice(Builder *b, Val v, const Val *starts, const Dim *sizes) {
    if (b_failed(b, v)) return VAL_FAILED;
    Param p = p_dims(b, K_slice_sizes, b_type(b, v)->rank, sizes);
    return at_starts(b, P_dynamic_slice, 1, &v, starts, 1, &p);
}
Val b_dynamic_update_slice(Builder *b, Val v, Val block, const Val *starts) {
    if (b_failed(b, v)) return VAL_FAILED;
    return at_starts(b, P_dynamic_update_slice, 2, (Val[]){v, block}, starts, 0, NULL);
}

/* ---- gather, scatter */
static Param numbers(Builder *b, const char *name, const IndexFields *f, const IndexNumbers *n) {
    const char *const fields[] = {f->windows, f->dropped, f->map, f->batch, f->index_batch};
    return p_record(b, K_dimension_numbers, name, 5, fields,
                    (Ints[]){n->windows, n->dropped, n->map, n->batch, n->index_batch});
}
Param p_index_numbers(Builder *b, Prim p, const IndexNumbers *n) {
    return p == P_gather ? numbers(b, "GatherDimensionNumbers", &gather_fields, n)
                         : numbers(b, "ScatterDimensionNumbers", &scatter_fields, n);
}
static Param mode_of(const Places *p) {
    Str mode = p->mode.n ? p->mode : S("GatherScatterMode.FILL_OR_DROP");
    return (Param){.key = K_mode, .value = {.kind = V_WORD, .s = mode}};
}
bool places_of(Ctx *cx, const Eqn *e, Places *p) {
    double fill[2];
    *p = (Places){.mode = param_word(e, K_mode), .update = param_jaxpr(e, K_update_jaxpr)};
    p->sorted = param_bool(e, K_indices_are_sorted), p->unique = param_bool(e, K_unique_indices);
    p->zeros = e->prim == P_gather && gather_fill(cx, e, fill) && fill[0] == 0 && fill[1] == 0;
    return index_numbers(cx, e, &p->n);
}
Val b_gather(Builder *b, Val v, Val indices, const Dim *sizes, Places at) {
    if (b_failed(b, v)) return VAL_FAILED;
    Param p[6] = {p_index_numbers(b, P_gather, &at.n),
                  at.zeros ? p_int(K_fill_value, 0) : p_none(K_fill_value),
                  p_bool(K_indices_are_sorted, at.sorted),
                  mode_of(&at),
                  p_dims(b, K_slice_sizes, b_type(b, v)->rank, sizes),
                  p_bool(K_unique_indices, at.unique)};
    return build(b, P_gather, 2, (Val[]){v, indices}, 6, p);
}
Val b_scatter(Builder *b, Prim how, Val v, Val indices, Val updates, Places at) {
    Param p[6] = {p_index_numbers(b, P_scatter, &at.n),
                  p_bool(K_indices_are_sorted, at.sorted),
                  mode_of(&at),
                  p_bool(K_unique_indices, at.unique),
                  {.key = K_update_consts, .value = {.kind = V_LIST, .open = '('}},
                  at.update ? p_jaxpr(K_update_jaxpr, at.update) : p_none(K_update_jaxpr)};
    return build(b, how, 3, (Val[]){v, indices, updates}, 6, p);
}
