/* Products of a matrix by several vectors become one product, which reads the matrix once:

     u = dot_general(m, x)                 w = dot_general([x, y], m)
     v = dot_general(m, y)       becomes   u = w[0], v = w[1]

   Derivatives have many of these: the value and the tangent of a product, or those of its transpose. Reading the matrix
   takes most of the time of such a product. The vectors must be known where the first of the products is. */
#include "build.h"

/* Elements of a matrix, and those of each of its sides, below which nothing is won; the most vectors. */
enum { LEAST_MATRIX = 4096, LEAST_SIDE = 16, MOST_VECTORS = 8 };

typedef struct {
    uint32_t before; /* the equations before the first product */
    uint32_t n;
    const Eqn *products[MOST_VECTORS];
    uint32_t side[MOST_VECTORS]; /* which operand of each is the vector */
} Group;

typedef struct {
    Ctx *cx;
    ValMap map;
    Memo memo;
    uint32_t *place; /* by value: the position of the equation that computes it, from 1; 0: an input or a constant */
} Merge;

static const Value *axis_lists(const Eqn *dot) { return param_find(dot, K_dimension_numbers)->value.list.at; }

static bool at_least(Ctx *cx, Val v, int64_t least) {
    Dim n = type_size(cx->types, val_type(cx, v));
    return dim_is_const(n) && n >= least;
}
/* Is `e` the product of a matrix and a vector? Either may have several axes. */
static bool is_product(Ctx *cx, const Eqn *e, uint32_t *side) {
    if (e->prim != P_dot_general || axis_lists(e)[2].ints.n > 0) return false;
    if (!at_least(cx, e->out.at[0], LEAST_SIDE)) return false;
    for (*side = 0; *side < 2; ++*side) {
        Val v = e->in.at[*side], matrix = e->in.at[1 - *side];
        bool vector = val_array(cx, v)->rank == axis_lists(e)[*side].ints.n;
        if (vector && at_least(cx, v, LEAST_SIDE) && at_least(cx, matrix, LEAST_MATRIX)) return true;
    }
    return false;
}
/* Products with equal keys differ only in their vectors. */
static void product_key(Ctx *cx, const Eqn *e, uint32_t side, Text *key) {
    uint32_t head[] = {e->in.at[1 - side], val_type(cx, e->in.at[side]), val_type(cx, e->out.at[0])};
    key->n = 0;
    text_put(key, (Str){(const char *)head, sizeof head});
    for (uint32_t i = 0; i < 2; i++) {
        Ints axes = axis_lists(e)[i ^ side].ints;
        text_put(key, (Str){(const char *)axes.at, axes.n * sizeof *axes.at});
    }
}
/* The group of each equation; NULL for one that is no such product. */
static Group **find_groups(Merge *m, const Jaxpr *j) {
    Arena *arena = m->cx->arena;
    Group **of = arena_new(arena, Group *, j->eqns.n + 1), **latest = arena_new(arena, Group *, j->eqns.n + 1);
    Intern keys = {.arena = arena};
    Text key = {.arena = arena};
    for (uint32_t i = 0, side; i < j->eqns.n; i++) {
        const Eqn *e = &j->eqns.at[i];
        each(const Val, v, e->out) m->place[*v] = i + 1;
        if (!is_product(m->cx, e, &side)) continue;
        product_key(m->cx, e, side, &key);
        Group **g = &latest[intern(&keys, key.at, key.n, NULL)];
        if (!*g || (*g)->n == MOST_VECTORS || m->place[e->in.at[side]] > (*g)->before) {
            *g = arena_new(arena, Group, 1);
            **g = (Group){.before = i};
        }
        (*g)->side[(*g)->n] = side;
        (*g)->products[(*g)->n++] = e;
        of[i] = *g;
    }
    return of;
}
/* Writes the one product; the map then has its rows for the results of the products. */
static void write_product(Merge *m, const Group *g, Eqns *to) {
    const Eqn *first = g->products[0];
    uint32_t side = g->side[0];
    Builder b = {.cx = m->cx, .span = first->span};
    Val rows[MOST_VECTORS], matrix = valmap_get(&m->map, first->in.at[1 - side]);
    Ints axes = axis_lists(first)[side].ints, further = {arena_new(m->cx->arena, int64_t, axes.n + 1), axes.n};
    for (uint32_t i = 0; i < axes.n; i++) further.at[i] = axes.at[i] + 1;
    int64_t leading = 0;
    for (uint32_t i = 0; i < g->n; i++)
        rows[i] = b_expand_dims(&b, valmap_get(&m->map, g->products[i]->in.at[g->side[i]]), 1, &leading);
    Contraction c = {.contracted = {further, axis_lists(first)[1 - side].ints},
                     .preferred = val_array(m->cx, first->out.at[0])->dtype,
                     .precision = param_find(first, K_precision)};
    Val all = b_dot_general(&b, b_concatenate(&b, g->n, rows, 0), matrix, c);
    for (uint32_t i = 0; i < g->n; i++) {
        Val row = b_slice_axis(&b, all, 0, i, i + 1);
        valmap_put(&m->map, g->products[i]->out.at[0], b_squeeze(&b, row, 1, &leading));
    }
    assert(!b.failed);
    each(const Eqn, e, b.eqns) push(m->cx->arena, to, *e);
}
static Jaxpr *merge_jaxpr(void *user, const Jaxpr *j) {
    Merge *m = user;
    if (*memo_slot(&m->memo, j)) return *memo_slot(&m->memo, j);
    Group **of = find_groups(m, j);
    Eqns eqns = eqns_for(m->cx, j);
    for (uint32_t i = 0; i < j->eqns.n; i++) {
        const Eqn *e = &j->eqns.at[i];
        bool merged = of[i] && of[i]->n > 1;
        if (merged && of[i]->products[0] == e) write_product(m, of[i], &eqns);
        if (!merged) push(m->cx->arena, &eqns, eqn_rewrite(&m->map, e, merge_jaxpr, m));
    }
    Jaxpr *new = jaxpr_with(m->cx, j, eqns, vals_rewrite(&m->map, j->out));
    return *memo_slot(&m->memo, j) = new;
}
Jaxpr *pass_merge(Ctx *cx, const Jaxpr *j) {
    Merge m = {.cx = cx, .map.cx = cx, .memo.arena = cx->arena, .place = arena_new(cx->arena, uint32_t, cx->nvals)};
    return merge_jaxpr(&m, j);
}
