/* Derivatives of collectives, the primitives by which devices exchange data: all are linear, and their transposes are
   collectives again. Where types say over which axes a value varies, psum_invariant and pvary are each other's
   transpose; psum, whose result is taken to vary as its operand does, is its own. */
#include "../transform/transform.h"

/* Applied to the tangents of those operands that have one. */
bool jvp_exchanged(Jvp *d) {
    Arena *arena = d->b->cx->arena;
    Eqn e = *d->e;
    Type *types = arena_new(arena, Type, e.out.n + 1);
    e.in = (Vals){arena_new(arena, Val, d->e->in.n + 1), 0};
    for (uint32_t i = 0; i < d->e->in.n; i++) {
        if (!d->t[i]) continue;
        types[e.in.n] = val_type(d->b->cx, jvp_result(d, i));
        e.in.at[e.in.n++] = d->t[i];
    }
    const Val *out = b_eqn(d->b, &e, e.in.n, types).at;
    for (uint32_t i = 0; i < d->e->out.n; i++)
        if (d->t[i]) d->dt[i] = *out++;
    return !d->b->failed;
}

/* ---- transposes */
typedef struct {
    Param at[8];
    uint32_t n;
} List;
/* Parameter `key` of the equation, as `as`; nothing if it has none. */
static void take(const Transpose *t, List *to, ParamKey key, ParamKey as) {
    const Param *p = param_find(t->e, key);
    assert(to->n < sizeof to->at / sizeof *to->at);
    if (p) to->at[to->n++] = (Param){.key = as, .value = p->value};
}
static Val exchange(Transpose *t, Prim p, Val v, const List *params) {
    return build(t->b, p, 1, &v, params->n, params->at);
}
/* Adds a value of the type of operand i, whose extents may be spelt otherwise. */
static void add(Transpose *t, uint32_t i, Val v) { ct_add(t, i, b_as_declared(t->b, v, t->e->in.at[i])); }
/* The names among the axes that are summed over, and the axes of the array. */
static Value summed_axes(const Transpose *t, int64_t *own, uint32_t *nown) {
    const Param *p = param_has(t->e, K_axes) ? param_find(t->e, K_axes) : param_find(t->e, K_axis_name);
    Value names = p->value;
    *nown = 0;
    if (names.kind == V_STR || names.kind == V_WORD) {
        Value *one = arena_copy(t->b->cx->arena, &names, sizeof names);
        return (Value){.kind = V_LIST, .open = '(', .list = {one, 1}};
    }
    if (names.kind == V_INTS)
        for (; *nown < names.ints.n; ++*nown) own[*nown] = names.ints.at[*nown];
    if (names.kind != V_LIST) return (Value){.kind = V_LIST, .open = '('};
    names.list.at = arena_copy(t->b->cx->arena, names.list.at, names.list.n * sizeof *names.list.at);
    names.list.n = 0;
    for (uint32_t i = 0; i < p->value.list.n; i++) {
        const Value *v = &p->value.list.at[i];
        if (v->kind == V_INT)
            own[(*nown)++] = v->i;
        else
            names.list.at[names.list.n++] = *v;
    }
    return names;
}
/* What is summed over axes of the operand gets them back, with equal elements. */
static Val with_axes(Transpose *t, uint32_t i, Val v, uint32_t n, const int64_t *own) {
    const ArrayType *x = ct_type(t, i);
    int64_t kept[MAX_RANK];
    uint32_t nkept = 0;
    for (uint32_t a = 0; a < x->rank; a++) {
        bool gone = false;
        for (uint32_t k = 0; k < n; k++) gone |= own[k] == a;
        if (!gone) kept[nkept++] = a;
    }
    return n ? b_broadcast(t->b, v, x->rank, x->dims, kept) : v;
}
/* Over named axes by `p`; no primitive is needed if there are none. */
static bool sum_transposed(Transpose *t, Prim p) {
    int64_t own[MAX_RANK];
    uint32_t nown;
    Value names = summed_axes(t, own, &nown);
    List params = {{{.key = K_axes, .value = names}}, 1};
    if (p == P_psum) take(t, &params, K_axis_index_groups, K_axis_index_groups);
    for (uint32_t i = 0; i < t->e->in.n; i++) {
        if (!t->linear[i] || !t->ct[i]) continue;
        Val v = names.list.n ? exchange(t, p, t->ct[i], &params) : t->ct[i];
        add(t, i, with_axes(t, i, v, nown, own));
    }
    return true;
}
bool transpose_psum(Transpose *t) { return sum_transposed(t, P_psum); }
bool transpose_psum_invariant(Transpose *t) { return sum_transposed(t, P_pvary); }
bool transpose_pvary(Transpose *t) { return sum_transposed(t, P_psum_invariant); }
bool transpose_preduced(Transpose *t) { return sum_transposed(t, P_unreduced_psum); }
bool transpose_unreduced_psum(Transpose *t) { return sum_transposed(t, P_preduced); }
bool transpose_reduced_vary_cast_p(Transpose *t) { return sum_transposed(t, P_vary_unreduced_cast_p); }
bool transpose_vary_unreduced_cast_p(Transpose *t) { return sum_transposed(t, P_reduced_vary_cast_p); }

/* What the transpose takes of the parameters of what moves arrays, and what it calls it. */
static List moved(const Transpose *t) {
    static const struct {
        ParamKey key, as;
    } taken[] = {{K_axis_name, K_axis_name},
                 {K_axis_index_groups, K_axis_index_groups},
                 {K_axis_size, K_axis_size},
                 {K_all_gather_dimension, K_scatter_dimension},
                 {K_scatter_dimension, K_all_gather_dimension},
                 {K_split_axis, K_concat_axis},
                 {K_concat_axis, K_split_axis},
                 {K_tiled, K_tiled},
                 {K_perm, K_perm}};
    List params = {0};
    for (uint32_t i = 0; i < sizeof taken / sizeof *taken; i++) take(t, &params, taken[i].key, taken[i].as);
    return params;
}
/* Parts that are put together come from their devices; whole arrays that are cut up go to them. */
static bool parts_transposed(Transpose *t, Prim p) {
    List params = moved(t);
    add(t, 0, exchange(t, p, t->ct[0], &params));
    return true;
}
bool transpose_all_gather(Transpose *t) { return parts_transposed(t, P_reduce_scatter); }
bool transpose_all_gather_reduced(Transpose *t) { return parts_transposed(t, P_unreduced_reduce_scatter); }
bool transpose_reduce_scatter(Transpose *t) { return parts_transposed(t, P_all_gather); }
bool transpose_unreduced_reduce_scatter(Transpose *t) { return parts_transposed(t, P_all_gather_reduced); }
bool transpose_all_to_all(Transpose *t) { return parts_transposed(t, P_all_to_all); }
/* The device's place along the axes of the equation. */
static Val own_place(Transpose *t) {
    List params = {0};
    take(t, &params, param_has(t->e, K_axis_name) ? K_axis_name : K_axes, K_axis_name);
    return build(t->b, P_axis_index, 0, NULL, params.n, params.at);
}
/* All devices have the whole array and the same cotangent of it: each takes that of its part, after pvary, since their
   parts differ. */
bool transpose_all_gather_invariant(Transpose *t) {
    Builder *b = t->b;
    const ArrayType *whole = b_type(b, t->ct[0]), *part = ct_type(t, 0);
    int64_t axis = param_int(t->e, K_all_gather_dimension, 0);
    bool tiled = param_bool(t->e, K_tiled);
    int64_t own[MAX_RANK];
    uint32_t nown;
    List params = {{{.key = K_axes, .value = summed_axes(t, own, &nown)}}, 1};
    Val starts[MAX_RANK], varying = exchange(t, P_pvary, t->ct[0], &params);
    Dim dims[MAX_RANK];
    for (uint32_t i = 0; i < whole->rank; i++) starts[i] = b_int(b, DT_i32, 0), dims[i] = whole->dims[i];
    dims[axis] = tiled ? part->dims[axis] : 1;
    starts[axis] = b_mul(b, own_place(t), b_dim(b, DT_i32, dims[axis]));
    Val v = b_dynamic_slice(b, varying, starts, dims);
    add(t, 0, tiled ? v : b_squeeze(b, v, 1, &axis));
    return true;
}

/* Each array goes back to where it came from. */
bool transpose_ppermute(Transpose *t) {
    Arena *arena = t->b->cx->arena;
    List params = moved(t);
    assert(params.n > 0 && params.at[params.n - 1].key == K_perm);
    Value *perm = &params.at[params.n - 1].value;
    perm->list.at = arena_copy(arena, perm->list.at, perm->list.n * sizeof *perm->list.at);
    for (uint32_t i = 0; i < perm->list.n; i++) {
        Value *pair = &perm->list.at[i];
        bool ints = pair->kind == V_INTS;
        if (ints) {
            pair->ints.at = arena_copy(arena, (int64_t[]){pair->ints.at[1], pair->ints.at[0]}, 2 * sizeof(int64_t));
        } else {
            Value back[] = {pair->list.at[1], pair->list.at[0]};
            pair->list.at = arena_copy(arena, back, sizeof back);
        }
    }
    for (uint32_t i = 0; i < t->e->in.n; i++)
        if (t->linear[i] && t->ct[i]) add(t, i, exchange(t, P_ppermute, t->ct[i], &params));
    return true;
}
/* The source gets the sum over all devices, the others nothing. In older text, without `source`, this is pvary. */
bool transpose_pbroadcast(Transpose *t) {
    Builder *b = t->b;
    if (!param_has(t->e, K_source)) return transpose_pvary(t);
    int64_t own[MAX_RANK];
    uint32_t nown;
    List params = {{{.key = K_axes, .value = summed_axes(t, own, &nown)}}, 1};
    Val is_source = b_eq(b, own_place(t), b_int(b, DT_i32, param_number(t->e, K_source)));
    for (uint32_t i = 0; i < t->e->in.n; i++) {
        if (!t->linear[i] || !t->ct[i]) continue;
        Val sum = exchange(t, P_psum, t->ct[i], &params);
        add(t, i, b_select(b, is_source, b_zeros_like(b, sum), sum));
    }
    return true;
}
