/* vmap of arrays whose extents differ between the examples, such as the stacks of a loop that each of them runs as
   often as it needs (while.c).

   An extent that is batched is written twice: that of each example, which operands are, and the largest of them, which
   the arrays have. So the elements of an example come first along such an axis, and padding follows, which may be
   anything, also NaN. This is what the rules below keep: an equation that leaves each element where it is along the
   axis needs nothing else; one that combines elements takes a neutral one in place of padding; one whose places count
   from the end takes the end of each example. All other equations are refused. */
#include "scan.h"

/* ---- extents */
static Dim note_atom(void *user, Dim atom) {
    Tx *tx = user;
    const DimExpr *x = dim_at(tx->cx->types, atom);
    if (x->kind == DIM_BOUND && tx_marked(tx, x->val)) tx->batch.extent = x->val;
    return atom;
}
static bool differs(Tx *tx, Dim d) {
    tx->batch.extent = 0;
    if (!dim_is_const(d)) dim_substitute(tx->cx->types, d, note_atom, tx);
    return tx->batch.extent != 0;
}
static void note_extent(void *user, Val v) {
    Tx *tx = user;
    if (tx_marked(tx, v)) tx->batch.extent = v;
}
bool vmap_differs(Tx *tx, const Eqn *e) {
    tx->batch.extent = 0;
    eqn_extents(tx->cx, e, note_extent, tx);
    each(const Val, v, e->in) type_extents(tx->cx, val_type(tx->cx, *v), note_extent, tx);
    each(const Val, v, e->out) type_extents(tx->cx, val_type(tx->cx, *v), note_extent, tx);
    return tx->batch.extent != 0;
}
/* The first of these values that has padding along an axis whose extent is not in `but`; 0: none has. */
typedef struct {
    Tx *tx;
    const Intern *but;
} Padded;
static void note_unknown(void *user, Val v) {
    const Padded *p = user;
    if (!p->but || !is_among(p->but, v)) note_extent(p->tx, v);
}
static Val with_padding(Tx *tx, Vals vals, const Intern *but) {
    Padded p = {tx, but};
    tx->batch.extent = 0;
    for (uint32_t i = 0; i < vals.n; i++) {
        type_extents(tx->cx, val_type(tx->cx, vals.at[i]), note_unknown, &p);
        if (tx->batch.extent) return vals.at[i];
    }
    return 0;
}
static bool refuse(Tx *tx, Span at, const char *prim, Val v) {
    Ctx *cx = tx->cx;
    Str type = ctx_type_text(cx, val_type(cx, v)), name = val_name(cx, tx->batch.extent);
    return tx_error(tx, at, "%s%sthe extent '%.*s' of %.*s would differ between the examples", prim, *prim ? ": " : "",
                    SF(name), SF(type));
}
bool vmap_extents_agree(Tx *tx, Vals vals, const Intern *but, Span at) {
    Val v = with_padding(tx, vals, but);
    return !v || refuse(tx, at, "", v);
}
static bool refused(const Vmap *v) {
    const Eqn *e = v->read;
    Val x = with_padding(v->tx, e->in, NULL), y = x ? x : with_padding(v->tx, e->out, NULL);
    return refuse(v->tx, e->span, prim_name[e->prim], y ? y : e->out.at[0]);
}
/* At least 1: there may be no example. */
static Val longest_of(Builder *b, Val all) {
    Val most = b_reduce(b, P_reduce_max, all, 1, (int64_t[]){0});
    return b->failed ? VAL_FAILED : b_max(b, most, b_int(b, b_type(b, most)->dtype, 1));
}
void vmap_extent(Tx *tx, Builder *b, Val read) {
    Val all = valmap_get(&tx->map, read), longest = valmap_get(&tx->batch.longest, read);
    if (val_info(tx->cx, read)->lit || !dim_is_bound(b_types(b), read) || b_failed(b, all)) return;
    valmap_put(&tx->batch.lengths, read, read); /* what another batch of the program has left */
    valmap_put(&tx->batch.longest, read, read);
    if (!tx_marked(tx, read)) return;
    if (tx->batch.mask) /* what others of the examples only seem to run may be anything */
        all = b_select(b, tx->batch.mask, b_zeros_like(b, all), all);
    if (longest == read) longest = longest_of(b, all);
    valmap_put(&tx->batch.lengths, read, all);
    valmap_put(&tx->map, read, longest);
}
Dim vmap_dim(const Tx *tx, Dim read) {
    return type_at(tx->cx->types, type_rewrite(&tx->map, type_of(tx->cx->types, DT_bool, 1, &read)))->dims[0];
}
/* Is it largest where the extents are that it is computed from? */
static bool grows(Tx *tx, Dim d) {
    if (dim_is_const(d) || !differs(tx, d)) return true;
    const DimExpr *x = dim_at(tx->cx->types, d);
    bool all = x->kind == DIM_BOUND || x->kind == DIM_SUM;
    if (x->kind == DIM_MAX || x->kind == DIM_MIN) return grows(tx, x->a) && grows(tx, x->b);
    for (uint32_t i = 0; x->kind == DIM_SUM && i < x->nterms; i++)
        for (uint32_t k = 0; k < x->terms[i].natoms; k++)
            all &= grows(tx, x->terms[i].atoms[k]) && (x->terms[i].coef > 0 || !differs(tx, x->terms[i].atoms[k]));
    return all;
}
static bool all_grow(Tx *tx, Vals vals) {
    bool all = true;
    each(const Val, v, vals) {
        const ArrayType *t = val_array(tx->cx, *v);
        for (uint32_t d = 0; d < t->rank; d++) all &= grows(tx, t->dims[d]);
    }
    return all;
}
static Val sum_of_each(Vmap *v, const DimExpr *x) {
    Builder *b = v->b;
    Val sum = 0;
    for (uint32_t i = 0; i < x->nterms; i++) {
        Val term = b_int(b, DT_i64, x->terms[i].coef);
        for (uint32_t k = 0; k < x->terms[i].natoms; k++) {
            Val atom = vmap_length(v, x->terms[i].atoms[k]);
            if (!atom) return 0;
            term = b_mul(b, atom, term);
        }
        sum = sum ? b_add(b, sum, term) : term;
    }
    return sum;
}
Val vmap_length(Vmap *v, Dim read) {
    Tx *tx = v->tx;
    Builder *b = v->b;
    if (!differs(tx, read)) return b_dim(b, DT_i64, vmap_dim(tx, read));
    const DimExpr *x = dim_at(tx->cx->types, read);
    if (x->kind == DIM_BOUND) return b_convert(b, vmap_written(tx, x->val), DT_i64);
    if (x->kind == DIM_SUM) return sum_of_each(v, x);
    if (x->kind != DIM_MAX && x->kind != DIM_MIN) return refused(v), 0;
    Val y = vmap_length(v, x->a), z = vmap_length(v, x->b);
    return !y || !z ? 0 : x->kind == DIM_MAX ? b_max(b, y, z) : b_min(b, y, z);
}

/* ---- places along an axis */
/* The place of each element of an array of this type along an axis, and a scalar or one of each example. */
static Val places(Builder *b, const ArrayType *t, uint32_t axis) { return b_iota(b, DT_i64, t->rank, t->dims, axis); }
static Val all_over(Builder *b, const ArrayType *t, Val x) {
    if (b_failed(b, x)) return VAL_FAILED;
    return b_type(b, x)->rank ? b_broadcast(b, x, t->rank, t->dims, (int64_t[]){0}) : b_full(b, x, t->rank, t->dims);
}
/* Operand i with the neutral value of `prim` in place of the padding of an axis. */
static Val unpadded(Vmap *v, uint32_t i, Val x, int64_t axis, Prim prim) {
    Builder *b = v->b;
    Val n = vmap_length(v, val_array(v->tx->cx, v->read->in.at[i])->dims[axis]);
    if (!n || b_failed(b, x)) return VAL_FAILED;
    const ArrayType t = *b_type(b, x);
    Val own = b_lt(b, places(b, &t, (uint32_t)axis + 1), all_over(b, &t, n));
    return b_select(b, own, b_full(b, b_neutral(b, prim, t.dtype), t.rank, t.dims), x);
}
/* The same for those of these axes that have padding. */
static Val unpadded_axes(Vmap *v, uint32_t i, Ints axes, Prim prim) {
    Val x = vmap_operand(v, i);
    each(const int64_t, axis, axes)
        if (differs(v->tx, val_array(v->tx->cx, v->read->in.at[i])->dims[*axis])) x = unpadded(v, i, x, *axis, prim);
    return x;
}
/* The rule of the primitive, for these operands, which are batched. */
static bool vmap_with(Vmap *v, const Val *in) {
    Arena *arena = v->tx->cx->arena;
    Eqn e = *v->e;
    Vmap all = *v;
    bool *batched = arena_new(arena, bool, e.in.n + 1);
    memset(batched, true, e.in.n);
    e.in = vals_joined(arena, 1, (Vals[]){{(Val *)in, e.in.n}});
    all.e = &e, all.batched = batched;
    return vmap_rules[e.prim](&all);
}

/* ---- rules */
/* Each element stays where it is along the axis. */
static bool kept(Vmap *v) {
    Tx *tx = v->tx;
    bool some = false;
    for (uint32_t i = 0; i < v->e->in.n; i++) some |= v->batched[i];
    if (some) return vmap_rules[v->e->prim](v);
    Vals out = tx_copy(tx, v->b, v->read);
    memcpy(v->out, out.at, out.n * sizeof *out.at);
    memset(v->out_batched, false, out.n);
    return true;
}
/* An operand that is an extent is not known by its place. */
static bool filled(Vmap *v) { return v->e->in.n > (v->e->prim == P_broadcast_in_dim) ? refused(v) : kept(v); }
static bool dim_of_each(Vmap *v) { return (v->out[0] = vmap_length(v, param_find(v->read, K_dim)->value.dim)) != 0; }
/* Axes up to the last one with padding stay, but for those of extent 1. */
static bool reshaped(Vmap *v) {
    const ArrayType *x = val_array(v->tx->cx, v->read->in.at[0]), *y = val_array(v->tx->cx, v->read->out.at[0]);
    bool same = !param_has(v->read, K_dimensions);
    for (uint32_t i = 0, k = 0; i < x->rank || k < y->rank; i++, k++) {
        while (i < x->rank && x->dims[i] == 1) i++;
        while (k < y->rank && y->dims[k] == 1) k++;
        Dim from = i < x->rank ? x->dims[i] : 1, to = k < y->rank ? y->dims[k] : 1;
        same &= from == to;
        if (!same && (differs(v->tx, from) || differs(v->tx, to))) return refused(v);
    }
    return kept(v);
}
static bool reduced(Vmap *v) {
    Val x = unpadded_axes(v, 0, param_ints(v->read, K_axes), v->read->prim);
    return !v->b->failed && vmap_with(v, &x);
}
static bool cumulated(Vmap *v) {
    int64_t axis = param_int(v->read, K_axis, 0);
    if (!param_bool(v->read, K_reverse)) return kept(v);
    Val x = unpadded_axes(v, 0, (Ints){&axis, 1}, v->read->prim);
    return !v->b->failed && vmap_with(v, &x);
}
static bool contracted(Vmap *v) {
    const Value *lists = param_find(v->read, K_dimension_numbers)->value.list.at;
    Val in[2];
    bool some = false;
    for (uint32_t i = 0; i < 2; i++)
        each(const int64_t, axis, lists[i].ints)
            some |= differs(v->tx, val_array(v->tx->cx, v->read->in.at[i])->dims[*axis]);
    if (!some) return kept(v);
    for (uint32_t i = 0; i < 2; i++) in[i] = unpadded_axes(v, i, lists[i].ints, P_reduce_sum);
    return !v->b->failed && vmap_with(v, in);
}
/* Blocks at places that are clamped by the extent of each example. */
static bool at_places(Vmap *v) {
    Tx *tx = v->tx;
    Builder *b = v->b;
    bool update = v->e->prim == P_dynamic_update_slice;
    uint32_t first = update ? 2 : 1, n = v->e->in.n;
    const ArrayType *x = val_array(tx->cx, v->read->in.at[0]);
    const ArrayType *block = val_array(tx->cx, update ? v->read->in.at[1] : v->read->out.at[0]);
    Eqn e = *v->e;
    Vmap own = *v;
    bool *batched = arena_new(tx->cx->arena, bool, n + 1);
    memcpy(batched, v->batched, n);
    e.in = vals_joined(tx->cx->arena, 1, &v->e->in);
    for (uint32_t d = 0; d < x->rank; d++) {
        Dim size = block->dims[d];
        Val *at = &e.in.at[first + d];
        Dtype type = val_array(tx->cx, v->read->in.at[first + d])->dtype;
        if (!differs(tx, x->dims[d]) && !differs(tx, size)) continue;
        if (size == x->dims[d]) {
            *at = b_int(b, type, 0), batched[first + d] = false;
            continue;
        }
        Val room = differs(tx, size) ? 0 : vmap_length(v, dim_sub(b_types(b), x->dims[d], size));
        if (!room) return refused(v);
        Val most = b_convert(b, room, type), place = batched[first + d] ? *at : vmap_broadcast(tx, b, *at);
        *at = b_max(b, b_min(b, place, most), b_zeros_like(b, place)), batched[first + d] = true;
        if (b->failed) return false;
    }
    own.e = &e, own.batched = batched;
    return vmap_rules[e.prim](&own);
}
/* From a place that differs, as a block. */
static bool sliced(Vmap *v) {
    Tx *tx = v->tx;
    Arena *arena = tx->cx->arena;
    const Dims start = param_dims(v->read, K_start_indices);
    const Dim *sizes = val_array(tx->cx, v->read->out.at[0])->dims;
    bool placed = false, *batched = arena_new(arena, bool, start.n + 1);
    for (uint32_t d = 0; d < start.n; d++) placed |= differs(tx, start.at[d]);
    if (!placed) return kept(v);
    if (param_ints(v->read, K_strides).n) return refused(v);
    Eqn e = *v->e;
    Vmap block = *v;
    e.in = vals_joined(arena, 2, (Vals[]){v->e->in, {arena_new(arena, Val, start.n), start.n}});
    batched[0] = v->batched[0];
    for (uint32_t d = 0; d < start.n; d++) {
        if (differs(tx, start.at[d]) && differs(tx, sizes[d])) return refused(v);
        Val at = e.in.at[1 + d] = vmap_length(v, start.at[d]);
        if (!at || b_failed(v->b, at)) return false;
        batched[1 + d] = b_type(v->b, at)->rank > 0;
    }
    block.e = &e, block.batched = batched;
    return vmap_dynamic_slice(&block);
}
/* What comes after padding is put where that begins: single elements can be. */
static bool concatenated(Vmap *v) {
    Tx *tx = v->tx;
    Builder *b = v->b;
    int64_t axis = param_int(v->read, K_dimension, 0);
    Dim start = 0;
    if (!kept(v)) return false;
    for (uint32_t i = 0; i < v->e->in.n; i++) {
        Dim n = val_array(tx->cx, v->read->in.at[i])->dims[axis];
        if (differs(tx, start)) {
            Val from = n == 1 ? vmap_length(v, start) : 0;
            if (!from || b->failed) return refused(v);
            Val all = v->out_batched[0] ? v->out[0] : vmap_broadcast(tx, b, v->out[0]), x = vmap_operand(v, i);
            const ArrayType t = *b_type(b, all);
            Val here = b_eq(b, places(b, &t, (uint32_t)axis + 1), all_over(b, &t, from));
            v->out[0] = b_select(b, here, all, b_stretch(b, x, t.rank, t.dims));
            v->out_batched[0] = true;
        }
        start = dim_add(b_types(b), start, n);
    }
    return !b->failed;
}
/* The value is put where no element is. An axis of extent 1 before which the padding differs is stretched. */
static bool padded(Vmap *v) {
    Tx *tx = v->tx;
    Builder *b = v->b;
    const ArrayType *from = val_array(tx->cx, v->read->in.at[0]);
    const Dims config = param_dims(v->read, K_padding_config);
    Dim fixed[3 * (MAX_RANK + 1)] = {0};
    Val x = vmap_operand(v, 0), value = v->e->in.at[1], own = 0;
    for (uint32_t d = 0; d < from->rank; d++) {
        const Dim *c = config.at + 3 * d;
        bool before = differs(tx, c[0]), one = from->dims[d] == 1;
        if ((before && !one) || c[2] != 0) return refused(v);
        for (uint32_t i = 0; i < 2 && !before; i++) fixed[3 * (d + 1) + i] = vmap_dim(tx, c[i]);
    }
    if (b_failed(b, x)) return false;
    x = b_pad(b, x, b_number(b, from->dtype, 0), fixed);
    const ArrayType t = *type_at(b_types(b), vmap_batched(tx, vmap_result_type(v, 0)));
    x = b_stretch(b, x, t.rank, t.dims);
    for (uint32_t d = 0; d < from->rank && !b->failed; d++) {
        Val low = vmap_length(v, config.at[3 * d]), n = vmap_length(v, from->dims[d]);
        if (!low || !n) return false;
        Val at = b_sub(b, places(b, &t, d + 1), all_over(b, &t, low));
        Val here = b_and(b, b_ge(b, at, b_int(b, DT_i64, 0)), b_lt(b, at, all_over(b, &t, n)));
        own = own ? b_and(b, own, here) : here;
    }
    v->out[0] = own ? b_select(b, own, all_over(b, &t, value), x) : x;
    return !b->failed;
}
static bool scanned(Vmap *v) {
    const Scan s = scan_of(v->read);
    return differs(v->tx, scan_length(v->tx->cx, &s)) ? vmap_scan_apart(v) : vmap_scan(v);
}

static VmapRule *rule_of(Prim p) {
    static VmapRule *const rules[NPRIMS] = {
        [P_transpose] = kept,
        [P_expand_dims] = kept,
        [P_squeeze] = kept,
        [P_iota] = filled,
        [P_broadcast_in_dim] = filled,
        [P_dim_as_value] = dim_of_each,
        [P_reshape] = reshaped,
        [P_reduce_sum] = reduced,
        [P_reduce_prod] = reduced,
        [P_reduce_max] = reduced,
        [P_reduce_min] = reduced,
        [P_reduce_and] = reduced,
        [P_reduce_or] = reduced,
        [P_reduce_xor] = reduced,
        [P_argmax] = reduced,
        [P_argmin] = reduced,
        [P_cumsum] = cumulated,
        [P_cumprod] = cumulated,
        [P_cummax] = cumulated,
        [P_cummin] = cumulated,
        [P_cumlogsumexp] = cumulated,
        [P_dot_general] = contracted,
        [P_dynamic_slice] = at_places,
        [P_dynamic_update_slice] = at_places,
        [P_slice] = sliced,
        [P_concatenate] = concatenated,
        [P_pad] = padded,
        [P_scan] = scanned,
        [P_while] = kept,
        [P_cond] = kept,
    };
    VmapRule *rule = vmap_rules[p];
    bool alone = prim_elementwise(p) || rule == vmap_point || rule == vmap_same || rule == vmap_each;
    alone |= rule == vmap_call || rule == vmap_custom;
    return alone ? kept : rules[p];
}
bool vmap_padded(Vmap *v) {
    VmapRule *rule = rule_of(v->read->prim);
    bool known = rule && all_grow(v->tx, v->read->in) && all_grow(v->tx, v->read->out);
    return known ? rule(v) : refused(v);
}
