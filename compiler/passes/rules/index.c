/* Derivatives of reading and writing at computed places. */
#include "../../typecheck/rule.h"
#include "../transform/transform.h"

/* ---- blocks */
static const Val *starts_of(const Eqn *e, uint32_t first) { return e->in.at + first; }

bool transpose_dynamic_slice(Transpose *t) {
    ct_add_at(t, 0, t->ct[0], starts_of(t->e, 1));
    return true;
}
bool transpose_dynamic_update_slice(Transpose *t) {
    const ArrayType *block = ct_type(t, 1);
    const Val *starts = starts_of(t->e, 2);
    if (t->linear[0]) {
        Val zeros = b_full(t->b, b_number(t->b, block->dtype, 0), block->rank, block->dims);
        ct_add(t, 0, b_dynamic_update_slice(t->b, t->ct[0], zeros, starts));
    }
    if (t->linear[1]) ct_add(t, 1, b_dynamic_slice(t->b, t->ct[0], starts, block->dims));
    return true;
}

/* ---- gather */
bool jvp_gather(Jvp *d) {
    Places at;
    if (!d->t[0]) return true;
    if (!places_of(d->b->cx, d->e, &at)) return false;
    at.zeros = true;
    d->dt[0] = b_gather(d->b, d->t[0], d->e->in.at[1], param_dims(d->e, K_slice_sizes).at, at);
    return !d->b->failed;
}
bool transpose_gather(Transpose *t) {
    Places at;
    if (!places_of(t->b->cx, t->e, &at)) return false;
    ct_add_scattered(t, 0, t->ct[0], t->e->in.at[1], at);
    return true;
}

/* ---- scatter: operand, indices, updates */
/* Reads what a scatter of updates of this type writes. */
static Val gather_written(Builder *b, Val v, Val indices, const ArrayType *updates, Places at) {
    bool gone[MAX_RANK] = {false};
    Dim sizes[MAX_RANK];
    if (b_failed(b, v)) return VAL_FAILED;
    each(const int64_t, axis, at.n.dropped) gone[*axis] = true;
    each(const int64_t, axis, at.n.batch) gone[*axis] = true;
    uint32_t window = 0;
    for (uint32_t a = 0; a < b_type(b, v)->rank; a++) sizes[a] = gone[a] ? 1 : updates->dims[at.n.windows.at[window++]];
    return b_gather(b, v, indices, sizes, at);
}
/* The Places of a scatter without its program, for other primitives. */
static bool plain_places(Ctx *cx, const Eqn *e, Places *at) {
    if (!places_of(cx, e, at)) return false;
    at->update = NULL;
    return true;
}
/* How JAX's rules read back what a scatter of any mode wrote: windows that are not inside are moved there when they are
   read, and their cotangents dropped. */
static Places promised(Places at) { return (Places){.n = at.n, .mode = S("GatherScatterMode.PROMISE_IN_BOUNDS")}; }

/* Sums: without a tangent of the updates the operand's stays. */
static bool jvp_scatter_sum(Jvp *d) {
    if (d->t[2]) return jvp_linear(d);
    d->dt[0] = d->t[0];
    return true;
}
bool jvp_scatter_add(Jvp *d) { return jvp_scatter_sum(d); }
bool jvp_scatter_sub(Jvp *d) { return jvp_scatter_sum(d); }

static bool transpose_scatter_sum(Transpose *t, bool negative) {
    Places at;
    if (t->linear[0]) ct_add(t, 0, t->ct[0]);
    if (!t->linear[2]) return true;
    if (!plain_places(t->b->cx, t->e, &at)) return false;
    at.zeros = true;
    at.sorted = at.unique = false; /* a gather is the same with them */
    Val v = gather_written(t->b, t->ct[0], t->e->in.at[1], ct_type(t, 2), at);
    ct_add(t, 2, negative ? b_neg(t->b, v) : v);
    return true;
}
bool transpose_scatter_add(Transpose *t) { return transpose_scatter_sum(t, false); }
bool transpose_scatter_sub(Transpose *t) { return transpose_scatter_sum(t, true); }

/* An update that replaces the old element, which older texts write as a program. */
static bool replaces(const Jaxpr *update) {
    return !update ||
           (!update->eqns.n && update->out.n == 1 && update->in.n == 2 && update->out.at[0] == update->in.at[1]);
}
/* Every update has a number above 0. Which of several for one element is written is known by writing the numbers to
   zeros, and reading them back. */
static Val numbers_of(Builder *b, const ArrayType *updates, Places at, Dtype *type) {
    Dim dims[MAX_RANK], n = 1;
    memcpy(dims, updates->dims, updates->rank * sizeof *dims);
    each(const int64_t, axis, at.n.windows) dims[*axis] = 1;
    int64_t axes[MAX_RANK];
    for (uint32_t a = 0; a < updates->rank; a++) n = dim_mul(b_types(b), n, dims[a]), axes[a] = a;
    *type = dim_at_most(b_types(b), n, UINT32_MAX - 1, false) == 1 ? DT_u32 : DT_u64;
    Val count = b_add(b, b_iota(b, *type, 1, &n, 0), b_int(b, *type, 1));
    return b_broadcast(b, b_reshape(b, count, updates->rank, dims), updates->rank, updates->dims, axes);
}
static bool jvp_scatter_overlapping(Jvp *d, Places at) {
    Builder *b = d->b;
    Val x = d->e->in.at[0], indices = d->e->in.at[1], u = d->e->in.at[2];
    const ArrayType *xt = b_type(b, x), *ut = b_type(b, u);
    Dtype type;
    jvp_result(d, 0);
    Val own = numbers_of(b, ut, at, &type);
    Val none = b_full(b, b_int(b, type, 0), xt->rank, xt->dims);
    Val winners = b_scatter(b, P_scatter, none, indices, own, at), sum = 0;
    if (d->t[0]) {
        Val kept = b_eq(b, winners, none);
        sum = b_select(b, kept, b_zeros_like(b, x), d->t[0]);
    }
    if (d->t[2]) {
        Val winner = gather_written(b, winners, indices, ut, promised(at));
        Val wins = b_eq(b, own, winner);
        Val updates = b_select(b, wins, b_zeros_like(b, u), d->t[2]);
        sum = b_scatter(b, P_scatter_add, sum ? sum : b_zeros_like(b, x), indices, updates, at);
    }
    d->dt[0] = sum;
    return !b->failed;
}
bool jvp_scatter(Jvp *d) {
    Places at;
    if (!places_of(d->b->cx, d->e, &at)) return false;
    if (!replaces(at.update)) return tx_error(d->tx, d->e->span, "scatter with update_jaxpr has no derivative");
    at.update = NULL;
    return at.unique ? jvp_linear(d) : jvp_scatter_overlapping(d, at);
}
/* The updates are at different places: the operand's cotangent is what they leave. */
bool transpose_scatter(Transpose *t) {
    Places at;
    Builder *b = t->b;
    if (!places_of(t->b->cx, t->e, &at)) return false;
    if (!at.unique || !replaces(at.update)) return transpose_none(t);
    const ArrayType *updates = ct_type(t, 2);
    Val indices = t->e->in.at[1];
    if (t->linear[0]) {
        Val zeros = b_full(b, b_number(b, updates->dtype, 0), updates->rank, updates->dims);
        ct_add(t, 0, b_scatter(b, P_scatter, t->ct[0], indices, zeros, at));
    }
    if (!t->linear[2]) return true;
    at.zeros = true, at.unique = at.sorted = false, at.update = NULL;
    ct_add(t, 2, gather_written(b, t->ct[0], indices, updates, at));
    return true;
}

/* ---- products */
static bool want_unique(Tx *tx, const Eqn *e, const Places *at) {
    return at->unique || tx_error(tx, operand_span(e, 2),
                                  "scatter-mul with unique_indices=False has no derivative in "
                                  "operand 2");
}
bool jvp_scatter_mul(Jvp *d) {
    Places at;
    Builder *b = d->b;
    const Val *in = d->e->in.at;
    if (!plain_places(d->b->cx, d->e, &at)) return false;
    if (d->t[2] && !want_unique(d->tx, d->read, &at)) return false;
    if (d->t[0]) d->dt[0] = jvp_apply(d, (Val[]){d->t[0], in[1], in[2]}).at[0];
    if (d->t[2]) {
        Val sum = b_scatter(b, P_scatter_add, b_zeros_like(b, in[0]), in[1], d->t[2], at);
        d->dt[0] = tx_sum(b, d->dt[0], b_mul(b, in[0], sum));
    }
    return !b->failed;
}
bool transpose_scatter_mul(Transpose *t) {
    Places at;
    const Val *in = t->e->in.at;
    if (!places_of(t->b->cx, t->e, &at)) return false;
    if (t->linear[0] && t->linear[2]) return transpose_none(t);
    if (t->linear[0]) ct_add(t, 0, b_scatter(t->b, P_scatter_mul, t->ct[0], in[1], in[2], at));
    if (!t->linear[2]) return true;
    if (!want_unique(t->tx, t->read, &at)) return false;
    at.zeros = true, at.unique = at.sorted = false, at.update = NULL;
    Val v = b_mul(t->b, t->ct[0], in[0]);
    ct_add(t, 2, gather_written(t->b, v, in[1], ct_type(t, 2), at));
    return true;
}

/* ---- extrema: an element that k updates and the operand share gets the mean of their tangents.
   w, v, g: result, operand and its tangent, read where the updates write; t, s: 1 where the operand, the update is w;
   n, k: of the updates for the place, how many are w, how many there are. To the operand's tangent is added
   g (t/(n + 1) - 1)/k + g_u s/(n + t). */
typedef struct {
    Builder *b;
    Val indices;
    const ArrayType *updates;
    Places at;
} Extremum;
static Val read_back(const Extremum *m, Val v) {
    return gather_written(m->b, v, m->indices, m->updates, promised(m->at));
}
/* JAX's rule counts windows that are inside, whatever the mode. */
static Val counted(const Extremum *m, Val like, Val marks) {
    Places inside = {.n = m->at.n};
    return read_back(m, b_scatter(m->b, P_scatter_add, b_zeros_like(m->b, like), m->indices, marks, inside));
}
static Val reciprocal(Builder *b, Val v) { return b_div(b, b_full_like(b, v, 1), v); }
static Val extremum_tangents(Jvp *d, const Extremum *m) {
    Builder *b = d->b;
    Val x = d->e->in.at[0], u = d->e->in.at[2], result = jvp_result(d, 0), sum = 0;
    Val zeros = b_zeros_like(b, u), ones = b_full_like(b, u, 1);
    Val w = read_back(m, result), wins = b_eq(b, u, w), stays = b_eq(b, read_back(m, x), w);
    Val n = counted(m, x, b_select(b, wins, zeros, ones));
    Val share = reciprocal(b, b_add(b, n, ones));
    Val k = counted(m, x, ones);
    if (d->t[0]) {
        Val kept = b_select(b, stays, zeros, share);
        Val factor = b_div(b, b_add(b, b_full_like(b, u, -1), kept), k);
        sum = b_mul(b, read_back(m, d->t[0]), factor);
    }
    if (d->t[2]) {
        Val alone = reciprocal(b, n);
        Val factor = b_select(b, wins, zeros, b_select(b, stays, alone, share));
        sum = tx_sum(b, sum, b_mul(b, d->t[2], factor));
    }
    return sum;
}
static bool jvp_extremum(Jvp *d) {
    Places at;
    Builder *b = d->b;
    Val indices = d->e->in.at[1];
    if (!plain_places(d->b->cx, d->e, &at)) return false;
    Extremum m = {b, indices, b_type(b, d->e->in.at[2]), at};
    Val updates = extremum_tangents(d, &m);
    d->dt[0] = b_scatter(b, P_scatter_add, jvp_tangent(d, 0), indices, updates, at);
    return !b->failed;
}
bool jvp_scatter_min(Jvp *d) { return jvp_extremum(d); }
bool jvp_scatter_max(Jvp *d) { return jvp_extremum(d); }

/* ---- for a batch of examples */
static bool some_batched(const Vmap *v, uint32_t first) {
    bool some = false;
    for (uint32_t i = first; i < v->e->in.n; i++) some |= v->batched[i];
    return some;
}
/* Each axis plus one, after a 0 if it is wanted. */
static Ints later(Vmap *v, Ints axes, bool with_0) {
    Ints out = {arena_new(v->b->cx->arena, int64_t, axes.n + 2), 0};
    if (with_0) out.at[out.n++] = 0;
    each(const int64_t, axis, axes) out.at[out.n++] = *axis + 1;
    return out;
}
static Ints axes_from(Vmap *v, int64_t first, uint32_t n) {
    Ints out = {arena_new(v->b->cx->arena, int64_t, n + 1), n};
    for (uint32_t i = 0; i < n; i++) out.at[i] = first + i;
    return out;
}
/* The starts of a block in each example, from operand `first` on, as the indices of a gather: [examples, axes]. */
static Val stacked_starts(Vmap *v, uint32_t first) {
    Builder *b = v->b;
    uint32_t n = v->e->in.n - first;
    Val *column = arena_new(b->cx->arena, Val, n + 1);
    Dtype d = b_type(b, v->e->in.at[first])->dtype;
    for (uint32_t i = 0; i < n; i++) {
        Val start = b_convert(b, vmap_operand(v, first + i), d);
        column[i] = b_expand_dims(b, start, 1, (int64_t[]){1});
    }
    return b_concatenate(b, n, column, 1);
}
/* For a gather it is the same. */
static Places any_order(Places at) {
    at.sorted = at.unique = false;
    return at;
}
/* A block in each example, as of a gather or scatter: all axes are those of windows. */
static Places blocks(Vmap *v, uint32_t rank, bool batched) {
    static int64_t zero[1];
    Places at = {.mode = S("GatherScatterMode.CLIP"), .unique = true};
    at.n.windows = axes_from(v, 1, rank);
    at.n.map = axes_from(v, batched, rank);
    if (batched) at.n.batch = at.n.index_batch = (Ints){zero, 1};
    return at;
}
static Val *with_first_start(Vmap *v, uint32_t first) {
    uint32_t n = v->e->in.n - first;
    Val *starts = arena_new(v->b->cx->arena, Val, n + 1);
    starts[0] = b_int(v->b, n ? b_type(v->b, v->e->in.at[first])->dtype : DT_i32, 0);
    if (n) memcpy(starts + 1, v->e->in.at + first, n * sizeof *starts);
    return starts;
}
bool vmap_dynamic_slice(Vmap *v) {
    Builder *b = v->b;
    const ArrayType *x = vmap_type(v, 0);
    Dim sizes[MAX_RANK + 1] = {vmap_size(v)};
    if (x->rank) memcpy(sizes + 1, vmap_result_type(v, 0)->dims, x->rank * sizeof *sizes);
    if (!some_batched(v, 1)) {
        v->out[0] = b_dynamic_slice(b, v->e->in.at[0], with_first_start(v, 1), sizes);
    } else {
        sizes[0] = 1;
        Places at = blocks(v, x->rank, v->batched[0]);
        v->out[0] = b_gather(b, v->e->in.at[0], stacked_starts(v, 1), sizes + !v->batched[0], at);
    }
    return !b->failed;
}
bool vmap_dynamic_update_slice(Vmap *v) {
    Builder *b = v->b;
    Val x = vmap_operand(v, 0), u = vmap_operand(v, 1);
    if (b->failed) return false;
    const ArrayType block = *b_type(b, u);
    if (!some_batched(v, 2)) {
        const Val *starts = with_first_start(v, 2);
        if (vmap_keeps(v)) u = vmap_kept(v, b_dynamic_slice(b, x, starts, block.dims), u);
        v->out[0] = b_dynamic_update_slice(b, x, u, starts);
    } else {
        Val starts = stacked_starts(v, 2);
        Places at = blocks(v, vmap_type(v, 0)->rank, true);
        if (vmap_keeps(v)) u = vmap_kept(v, gather_written(b, x, starts, &block, any_order(at)), u);
        v->out[0] = b_scatter(b, P_scatter, x, starts, u, at);
    }
    return !b->failed;
}

/* The axes of gather and scatter with other operands: the examples are a window axis of the operand, or a batch axis of
   it and of the indices, or one of the indices alone. */
static IndexNumbers numbers_with(Vmap *v, IndexNumbers n, bool operand, bool indices) {
    n.windows = later(v, n.windows, !indices);
    if (operand) n.dropped = later(v, n.dropped, false);
    if (operand) n.map = later(v, n.map, false);
    if (operand) n.batch = later(v, n.batch, indices);
    if (indices) n.index_batch = later(v, n.index_batch, operand);
    return n;
}
static bool vmap_places(Vmap *v, bool operand, bool indices, const Val *in) {
    Builder *b = v->b;
    Eqn e = vmap_axes(v, v->e);
    Places at;
    if (!places_of(b->cx, v->e, &at)) return false;
    IndexNumbers n = numbers_with(v, at.n, operand, indices);
    each(Param, p, e.params) {
        if (p->key == K_dimension_numbers)
            *p = p_index_numbers(b, e.prim, &n);
        else if (indices && (p->key == K_indices_are_sorted || (p->key == K_unique_indices && !operand)))
            *p = p_bool(p->key, false);
        else if (operand && p->key == K_slice_sizes) {
            Dim sizes[MAX_RANK + 1] = {indices ? 1 : vmap_size(v)};
            Dims own = p->value.dims;
            if (own.n) memcpy(sizes + 1, own.at, own.n * sizeof *sizes);
            *p = p_dims(b, K_slice_sizes, own.n + 1, sizes);
        }
    }
    return vmap_apply(v, &e, in);
}
bool vmap_gather(Vmap *v) { return vmap_places(v, v->batched[0], v->batched[1], v->e->in.at); }
/* Updates that leave what is there as it is. */
static Val idle(Vmap *v, const Val *in) {
    static const Prim reductions[NPRIMS] = {
        [P_scatter_mul] = P_reduce_prod, [P_scatter_min] = P_reduce_min, [P_scatter_max] = P_reduce_max};
    Builder *b = v->b;
    Places at;
    Prim p = v->e->prim;
    if (!plain_places(b->cx, v->e, &at)) return VAL_FAILED;
    const ArrayType u = *b_type(b, in[2]);
    at.n = numbers_with(v, at.n, true, v->batched[1]);
    if (p == P_scatter) return gather_written(b, in[0], in[1], &u, any_order(at));
    Val one = b_neutral(b, reductions[p] ? reductions[p] : P_reduce_sum, u.dtype);
    if (p == P_scatter_add && OF_INEXACT >> dtype_info[u.dtype].kind & 1) one = b_neg(b, one); /* -0.0 + -0.0 is -0.0 */
    return b_full(b, one, u.rank, u.dims);
}
bool vmap_scatter(Vmap *v) {
    Val in[3] = {vmap_operand(v, 0), v->e->in.at[1], vmap_operand(v, 2)};
    if (v->b->failed) return false;
    if (vmap_keeps(v)) in[2] = vmap_kept(v, idle(v, in), in[2]);
    return vmap_places(v, true, v->batched[1], in);
}
