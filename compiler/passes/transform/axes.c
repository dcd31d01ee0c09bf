/* The parameters in which an equation names its axes or lists extents, and how they change when an axis for the
   examples comes first. */
#include "tx.h"

typedef enum {
    SAME_AXES,
    LATER,  /* numbers of axes: they grow by one */
    WITH_0, /* one for each axis: the same, and 0 comes first */
    SIZE,   /* extents: the number of examples comes first */
    FROM_0, /* a 0 comes first, */
    STEP_1, /* a 1, */
    PAIR_0  /* a pair of zeros */
} Change;
enum { MOST_CHANGES = 5 };
typedef struct {
    ParamKey key;
    Change change;
} Changed;
#define WINDOWS                                                                                                        \
    {                                                                                                                  \
        {K_window_dimensions, STEP_1}, {K_window_strides, STEP_1}, {K_padding, PAIR_0}, {K_base_dilation, STEP_1}, {   \
            K_window_dilation, STEP_1                                                                                  \
        }                                                                                                              \
    }
static const Changed changes[NPRIMS][MOST_CHANGES] = {
    [P_reshape] = {{K_new_sizes, SIZE}, {K_dimensions, WITH_0}},
    [P_squeeze] = {{K_dimensions, LATER}},
    [P_expand_dims] = {{K_dimensions, LATER}},
    [P_rev] = {{K_dimensions, LATER}},
    [P_transpose] = {{K_permutation, WITH_0}},
    [P_slice] = {{K_start_indices, FROM_0}, {K_limit_indices, SIZE}, {K_strides, STEP_1}},
    [P_concatenate] = {{K_dimension, LATER}},
    [P_tile] = {{K_reps, STEP_1}},
    [P_split] = {{K_axis, LATER}},
    [P_stack] = {{K_axis, LATER}},
    [P_unstack] = {{K_axis, LATER}},
    [P_reduce_sum] = {{K_axes, LATER}},
    [P_reduce_prod] = {{K_axes, LATER}},
    [P_reduce_max] = {{K_axes, LATER}},
    [P_reduce_min] = {{K_axes, LATER}},
    [P_reduce_and] = {{K_axes, LATER}},
    [P_reduce_or] = {{K_axes, LATER}},
    [P_reduce_xor] = {{K_axes, LATER}},
    [P_argmax] = {{K_axes, LATER}},
    [P_argmin] = {{K_axes, LATER}},
    [P_cumsum] = {{K_axis, LATER}},
    [P_cumprod] = {{K_axis, LATER}},
    [P_cummax] = {{K_axis, LATER}},
    [P_cummin] = {{K_axis, LATER}},
    [P_cumlogsumexp] = {{K_axis, LATER}},
    [P_sort] = {{K_dimension, LATER}},
    [P_all_gather] = {{K_all_gather_dimension, LATER}},
    [P_all_gather_invariant] = {{K_all_gather_dimension, LATER}},
    [P_all_gather_reduced] = {{K_all_gather_dimension, LATER}},
    [P_reduce_scatter] = {{K_scatter_dimension, LATER}},
    [P_unreduced_reduce_scatter] = {{K_scatter_dimension, LATER}},
    [P_all_to_all] = {{K_split_axis, LATER}, {K_concat_axis, LATER}},
    [P_psum] = {{K_axes, LATER}},
    [P_psum2] = {{K_axes, LATER}},
    [P_psum_invariant] = {{K_axes, LATER}},
    [P_unreduced_psum] = {{K_axes, LATER}},
    [P_pmax] = {{K_axes, LATER}},
    [P_pmin] = {{K_axes, LATER}},
    [P_top_k] = {{K_axis, LATER}},
    [P_approx_top_k] = {{K_reduction_dimension, LATER}},
    [P_reduce] = {{K_dimensions, LATER}},
    [P_reduce_window] = WINDOWS,
    [P_reduce_window_sum] = WINDOWS,
    [P_reduce_window_max] = WINDOWS,
    [P_reduce_window_min] = WINDOWS,
    [P_select_and_gather_add] = WINDOWS,
    [P_select_and_scatter_add] = WINDOWS,
    [P_select_and_scatter] = WINDOWS,
    [P_windows] = {{K_axes, LATER}},
};
/* They repeat what the types say, or place the result on devices. */
static const char *const repeated[] = {"array_shape",  "input_shape", "old_sizes",    "operand_shape", "operand_shapes",
                                       "out_sharding", "sharding",    "update_shape", "updates_shape"};

static int64_t *list_of(Value *v, uint32_t **n) {
    bool dims = v->kind == V_DIMS;
    assert(dims || v->kind == V_INTS);
    *n = dims ? &v->dims.n : &v->ints.n;
    return dims ? v->dims.at : v->ints.at;
}
static void change(const Tx *tx, Value *v, Change how) {
    static const struct {
        bool later, size;
        uint32_t first; /* how many come first */
        int64_t is;
    } of[] = {[LATER] = {.later = true}, [WITH_0] = {.later = true, .first = 1}, [SIZE] = {.size = true, .first = 1},
              [FROM_0] = {.first = 1},   [STEP_1] = {.first = 1, .is = 1},       [PAIR_0] = {.first = 2}};
    if (v->kind == V_NONE) return;
    if (v->kind == V_LIST) { /* numbers of axes among names of devices' axes */
        Value *all = arena_new(tx->cx->arena, Value, v->list.n + 1);
        for (uint32_t i = 0; i < v->list.n; i++) {
            all[i] = v->list.at[i];
            if (all[i].kind == V_INT) change(tx, &all[i], how);
        }
        v->list.at = all;
        return;
    }
    if (v->kind == V_INT) {
        assert(how == LATER);
        v->i += v->i >= 0;
        return;
    }
    uint32_t *n, first = of[how].first;
    const int64_t *old = list_of(v, &n);
    int64_t *new = arena_new(tx->cx->arena, int64_t, *n + first + 1);
    for (uint32_t i = 0; i < first; i++) new[i] = of[how].size ? tx->batch.size : of[how].is;
    for (uint32_t i = 0; i < *n; i++) new[first + i] = old[i] + (of[how].later && old[i] >= 0);
    if (of[how].size && v->kind == V_INTS)
        v->kind = V_DIMS, v->dims = (Dims){new, *n + first};
    else if (v->kind == V_DIMS)
        v->dims = (Dims){new, *n + first};
    else
        v->ints = (Ints){new, *n + first};
}
static bool is_repeated(const Param *p) {
    Str name = p->key == K_other ? p->name : str(param_name[p->key]);
    bool found = false;
    for (size_t i = 0; i < sizeof repeated / sizeof *repeated; i++) found |= str_is(name, repeated[i]);
    return found;
}
Eqn vmap_axes(const Vmap *v, const Eqn *e) {
    Eqn new = *e;
    new.params = (Params){arena_new(v->tx->cx->arena, Param, e->params.n + 1), 0};
    each(const Param, p, e->params) {
        if (is_repeated(p)) continue;
        Param *own = &new.params.at[new.params.n++];
        *own = *p;
        for (const Changed *c = changes[e->prim]; c < changes[e->prim] + MOST_CHANGES && c->change; c++)
            if (c->key == p->key) change(v->tx, &own->value, c->change);
    }
    return new;
}
