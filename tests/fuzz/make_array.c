/* Makers of equations on arrays: elementwise, shapes, reductions and contractions. */
#include "make.h"

/* ---- elementwise */

void make_unary(Gen *g, Prim p, unsigned kinds) {
    Val x = pick(g, kinds, 0);
    emit(g, p, &x, 1, (Set){0}, 1);
}
void make_binary(Gen *g, Prim p, unsigned kinds) {
    Val in[2] = {pick(g, kinds, 0)};
    in[1] = p == P_add_any || draw(g, 4) ? need(g, val_type(g->cx, in[0])) : scalar(g, array(g, in[0])->dtype);
    uint32_t flip = draw(g, 2);
    emit(g, p, (Val[]){in[flip], in[!flip]}, 2, (Set){0}, 1);
}
void make_ternary(Gen *g, Prim p, unsigned kinds) {
    Val x = pick(g, kinds, 0);
    Type t = val_type(g->cx, x);
    Val low = p == P_clamp && coin(g) ? scalar(g, array(g, x)->dtype) : need(g, t);
    emit(g, p, (Val[]){low, x, need(g, t)}, 3, (Set){0}, 1);
}
void make_integer_pow(Gen *g, Prim p, unsigned kinds) {
    Set s = {0};
    Val x = pick(g, kinds, 0);
    put_int(g, &s, K_y, (int64_t)draw(g, 8) - (kind_of(g, x) & INT ? 0 : 3));
    emit(g, p, &x, 1, s, 1);
}
void make_round(Gen *g, Prim p, unsigned kinds) {
    Set s = {0};
    Val x = pick(g, kinds, 0);
    put(g, &s, K_rounding_method, (Value){.kind = V_WORD, .s = coin(g) ? S("1") : S("0")});
    emit(g, p, &x, 1, s, 1);
}
void make_reduce_precision(Gen *g, Prim p, unsigned kinds) {
    Set s = {0};
    Val x = pick(g, kinds, 0);
    put_int(g, &s, K_exponent_bits, 2 + draw(g, 8));
    put_int(g, &s, K_mantissa_bits, 1 + draw(g, 30));
    emit(g, p, &x, 1, s, 1);
}
void make_convert(Gen *g, Prim p, unsigned kinds) {
    Set s = {0};
    Val x = pick(g, kinds, 0);
    put_dtype(g, &s, K_new_dtype, draw_dtype(g, kinds));
    put_int(g, &s, K_weak_type, draw(g, 2));
    if (p == P_bitcast_convert_type) s.n = 1;
    emit(g, p, &x, 1, s, 1);
}
void make_select_n(Gen *g, Prim p, unsigned kinds) {
    Val x = pick(g, kinds, 0), in[5];
    const ArrayType *a = array(g, x);
    Dtype d = coin(g) ? DT_bool : DT_i32;
    uint32_t n = d == DT_bool ? 2 : 1 + draw(g, 4);
    in[0] = draw(g, 3) ? need(g, type_of(g->cx->types, d, a->rank, a->dims)) : scalar(g, d);
    in[1] = x;
    for (uint32_t i = 2; i <= n; i++) in[i] = need(g, val_type(g->cx, x));
    emit(g, p, in, n + 1, (Set){0}, 1);
}
void make_barrier(Gen *g, Prim p, unsigned kinds) {
    Val in[3] = {pick(g, kinds, 0), pick(g, kinds, 0), pick(g, kinds, 0)};
    uint32_t n = 1 + draw(g, 3);
    emit(g, p, in, n, (Set){0}, n);
}

/* ---- shapes */

void make_iota(Gen *g, Prim p, unsigned kinds) {
    Set s = {0};
    const ArrayType *a = type_at(g->cx->types, draw_type(g, kinds));
    if (p == P_iota) put_int(g, &s, K_dimension, draw(g, a->rank));
    put_dtype(g, &s, K_dtype, a->dtype);
    put_ints(g, &s, K_shape, a->dims, a->rank);
    if (g->runs && p != P_iota) return; /* any content */
    emit(g, p, NULL, 0, s, 1);
}
/* Distinct axes of [0, rank), in increasing order; some of those that `may` (NULL: all) says. */
uint32_t some_axes(Gen *g, uint32_t rank, const bool *may, int64_t *axes) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < rank; i++)
        if ((!may || may[i]) && coin(g)) axes[n++] = i;
    return n;
}
void permute(Gen *g, int64_t *axes, uint32_t n) {
    for (uint32_t i = n; i > 1; i--) {
        uint32_t k = draw(g, i);
        int64_t t = axes[k];
        axes[k] = axes[i - 1], axes[i - 1] = t;
    }
}
void make_broadcast(Gen *g, Prim p, unsigned kinds) {
    Set s = {0};
    Val x = pick(g, kinds, 0);
    const ArrayType *a = array(g, x);
    int64_t axes[8], dims[16];
    uint32_t n = 0, rank = 0;
    while (n < a->rank || (rank < 5 && draw(g, 3) == 1)) {
        bool old = n < a->rank && draw(g, 4);
        if (old) axes[n] = rank;
        dims[rank++] = old && (a->dims[n] != 1 || coin(g)) ? a->dims[n] : draw_dim(g);
        n += old;
        if (rank == 15) return;
    }
    put_ints(g, &s, K_broadcast_dimensions, axes, n);
    put_ints(g, &s, K_shape, dims, rank);
    emit(g, p, &x, 1, s, 1);
}
/* Extents merged, split and moved; extents 1 come. */
void make_reshape(Gen *g, Prim p, unsigned kinds) {
    Set s = {0};
    Val x = pick(g, kinds, 0);
    const ArrayType *a = array(g, x);
    int64_t dims[16];
    uint32_t n = 0;
    for (uint32_t i = 0; i < a->rank; i++) {
        Dim d = a->dims[i];
        if (n && coin(g)) {
            dims[n - 1] = dim_mul(g->cx->types, dims[n - 1], d);
        } else if (dim_is_const(d) && d > 2 && d % 2 == 0 && coin(g)) {
            dims[n++] = 2, dims[n++] = d / 2;
        } else {
            dims[n++] = d;
        }
        if (draw(g, 5) == 1) dims[n++] = 1;
    }
    if (!a->rank && coin(g)) dims[n++] = 1;
    permute(g, dims, draw(g, 4) == 1 ? n : 0);
    put_ints(g, &s, K_new_sizes, dims, n);
    emit(g, p, &x, 1, s, 1);
}
void make_squeeze(Gen *g, Prim p, unsigned kinds) {
    Set s = {0};
    Val x = pick(g, kinds, 0);
    const ArrayType *a = array(g, x);
    int64_t axes[16];
    bool one[16];
    for (uint32_t i = 0; i < a->rank; i++) one[i] = a->dims[i] == 1;
    uint32_t n = p == P_squeeze ? some_axes(g, a->rank, one, axes) : some_axes(g, 3, NULL, axes);
    put_ints(g, &s, K_dimensions, axes, n);
    emit(g, p, &x, 1, s, 1);
}
void make_transpose(Gen *g, Prim p, unsigned kinds) {
    Set s = {0};
    Val x = pick(g, kinds, 2);
    int64_t axes[16];
    uint32_t n = array(g, x)->rank;
    for (uint32_t i = 0; i < n; i++) axes[i] = i;
    permute(g, axes, n);
    put_ints(g, &s, K_permutation, axes, n);
    emit(g, p, &x, 1, s, 1);
}
void make_rev(Gen *g, Prim p, unsigned kinds) {
    Set s = {0};
    Val x = pick(g, kinds, 1);
    int64_t axes[16];
    put_ints(g, &s, K_dimensions, axes, some_axes(g, array(g, x)->rank, NULL, axes));
    emit(g, p, &x, 1, s, 1);
}
void make_slice(Gen *g, Prim p, unsigned kinds) {
    Set s = {0};
    Val x = pick(g, kinds, 1);
    const ArrayType *a = array(g, x);
    int64_t start[16], limit[16], stride[16];
    for (uint32_t i = 0; i < a->rank; i++) {
        uint32_t n = dim_is_const(a->dims[i]) ? (uint32_t)a->dims[i] : 0;
        start[i] = draw(g, n + 1);
        limit[i] = n ? start[i] + draw(g, n - (uint32_t)start[i] + 1) : a->dims[i];
        stride[i] = 1 + draw(g, 3);
    }
    put_ints(g, &s, K_start_indices, start, a->rank);
    put_ints(g, &s, K_limit_indices, limit, a->rank);
    put_ints(g, &s, K_strides, stride, a->rank);
    if (coin(g)) s.at[2].value = (Value){.kind = V_NONE};
    emit(g, p, &x, 1, s, 1);
}
void make_pad(Gen *g, Prim p, unsigned kinds) {
    Set s = {0};
    Val x = pick(g, kinds, 1), in[2] = {x, scalar(g, array(g, x)->dtype)};
    int64_t config[48];
    uint32_t n = 3 * array(g, x)->rank;
    for (uint32_t i = 0; i < n; i++) config[i] = i % 3 == 2 ? draw(g, 3) : (int64_t)draw(g, 5) - 2;
    put_ints(g, &s, K_padding_config, config, n);
    emit(g, p, in, 2, s, 1);
}
void make_concatenate(Gen *g, Prim p, unsigned kinds) {
    Set s = {0};
    Val in[4] = {pick(g, kinds, p == P_stack ? 0 : 1)};
    const ArrayType *a = array(g, in[0]);
    uint32_t n = 1 + draw(g, 4), axis = draw(g, a->rank + (p == P_stack));
    for (uint32_t i = 1; i < n; i++) {
        Dim dims[8];
        for (uint32_t k = 0; k < a->rank; k++)
            dims[k] = k == axis && p != P_stack && coin(g) ? draw_dim(g) : a->dims[k];
        in[i] = need(g, type_of(g->cx->types, a->dtype, a->rank, dims));
    }
    put_int(g, &s, p == P_stack ? K_axis : K_dimension, axis);
    emit(g, p, in, n, s, 1);
}
void make_split(Gen *g, Prim p, unsigned kinds) {
    Set s = {0};
    Val x = pick(g, kinds, 1);
    const ArrayType *a = array(g, x);
    uint32_t axis = draw(g, a->rank);
    Dim extent = a->dims[axis];
    if (!dim_is_const(extent)) return;
    int64_t first = draw(g, (uint32_t)extent + 1), sizes[2] = {first, extent - first};
    if (p == P_split) put_ints(g, &s, K_sizes, sizes, 2);
    put_int(g, &s, K_axis, axis);
    if (p == P_split || extent <= 8) emit(g, p, &x, 1, s, p == P_split ? 2 : (uint32_t)extent);
}
void make_tile(Gen *g, Prim p, unsigned kinds) {
    Set s = {0};
    Val x = pick(g, kinds, 1);
    int64_t reps[8];
    for (uint32_t i = 0; i < array(g, x)->rank; i++) reps[i] = draw(g, 4);
    put_ints(g, &s, K_reps, reps, array(g, x)->rank);
    emit(g, p, &x, 1, s, 1);
}
/* dynamic_slice and dynamic_update_slice */
void make_dynamic(Gen *g, Prim p, unsigned kinds) {
    Set s = {0};
    Val in[16] = {pick(g, kinds, 0)};
    const ArrayType *a = array(g, in[0]);
    Dim sizes[8];
    uint32_t n = 1;
    for (uint32_t i = 0; i < a->rank; i++)
        sizes[i] = dim_is_const(a->dims[i]) && coin(g) ? draw(g, (uint32_t)a->dims[i] + 1) : a->dims[i];
    if (p == P_dynamic_slice)
        put_ints(g, &s, K_slice_sizes, sizes, a->rank);
    else
        in[n++] = need(g, type_of(g->cx->types, a->dtype, a->rank, sizes));
    Dtype d = draw_dtype(g, INT);
    for (uint32_t i = 0; i < a->rank; i++) in[n++] = scalar(g, d);
    emit(g, p, in, n, s, 1);
}
void make_dim_as_value(Gen *g, Prim p, unsigned kinds) {
    Set s = {0};
    put_int(g, &s, K_dim, draw_dim(g));
    if (!dim_is_const(s.at[0].value.dim) || coin(g)) emit(g, p, NULL, 0, s, 1);
}

/* ---- reductions and contractions */

void make_reduce(Gen *g, Prim p, unsigned kinds) {
    Set s = {0};
    Val x = pick(g, kinds, 0);
    int64_t axes[16];
    put_ints(g, &s, K_axes, axes, some_axes(g, array(g, x)->rank, NULL, axes));
    emit(g, p, &x, 1, s, 1);
}
void make_arg(Gen *g, Prim p, unsigned kinds) {
    Set s = {0};
    Val x = pick(g, kinds, 1);
    int64_t axis = draw(g, array(g, x)->rank);
    put_ints(g, &s, K_axes, &axis, 1);
    put_dtype(g, &s, K_index_dtype, draw(g, 3) ? DT_i32 : draw_dtype(g, INT));
    emit(g, p, &x, 1, s, 1);
}
void make_cumulative(Gen *g, Prim p, unsigned kinds) {
    Set s = {0};
    Val x = pick(g, kinds, 1);
    put_int(g, &s, K_axis, draw(g, array(g, x)->rank));
    put_int(g, &s, K_reverse, draw(g, 2));
    emit(g, p, &x, 1, s, 1);
}
/* Axis i of the first operand is batched, contracted or free; the second has the former two, in an
 * order of its own. */
void make_dot(Gen *g, Prim p, unsigned kinds) {
    Set s = {0};
    Val in[2] = {pick(g, kinds, draw(g, 3))};
    const ArrayType *a = array(g, in[0]);
    int64_t lists[4][16], order[16];
    uint32_t n[4] = {0}, rank = 0;
    Dim dims[16];
    for (uint32_t i = 0; i < a->rank; i++) {
        uint32_t role = draw(g, 3); /* 0 contracted, 1 batched, 2 free */
        if (role < 2) lists[2 * role][n[2 * role]++] = i, order[rank++] = i;
    }
    uint32_t shared = rank, fresh = draw(g, 3);
    for (uint32_t i = 0; i < fresh; i++) order[rank++] = -1;
    permute(g, order, rank);
    for (uint32_t i = 0; i < rank; i++) dims[i] = order[i] < 0 ? draw_dim(g) : a->dims[order[i]];
    for (uint32_t role = 0; role < 4; role += 2)
        for (uint32_t i = 0; i < n[role]; i++)
            for (uint32_t k = 0; k < rank; k++)
                if (order[k] == lists[role][i]) lists[role + 1][n[role + 1]++] = k;
    if (shared > 6) return;
    in[1] = need(g, type_of(g->cx->types, a->dtype, rank, dims));
    Value v = {.kind = V_LIST, .open = '(', .list = {arena_new(g->cx->arena, Value, 4), 4}};
    for (uint32_t i = 0; i < 4; i++) {
        int64_t *at = arena_new(g->cx->arena, int64_t, n[i] + 1);
        memcpy(at, lists[i], n[i] * sizeof *at);
        v.list.at[i] = (Value){.kind = V_INTS, .open = '[', .ints = {at, n[i]}};
    }
    put(g, &s, K_dimension_numbers, v);
    if (coin(g)) put_dtype(g, &s, K_preferred_element_type, draw(g, 3) ? a->dtype : draw_dtype(g, kinds));
    emit(g, p, in, 2, s, 1);
}

/* Axes of both operands: batched, then free, then contracted, whose extents are blocks; scaled_dot has them in any
   order. */
void make_scaled(Gen *g, Prim p, unsigned kinds) {
    static const char *const lists[] = {"dimension_numbers=(((", "),(", ")),((", "),("};
    bool any = p == P_scaled_dot;
    uint32_t n[3] = {1, 1, 1}, rank = 0; /* batched, free, contracted */
    for (unsigned role = 0; role < 3; role++) rank += any ? n[role] = draw(g, 3) : 1;
    Types *ts = g->cx->types;
    int64_t at[2][6];
    Dim all[6], own[4][6];
    Val in[4];
    Set s = {0};
    Text t = {.arena = g->cx->arena};
    for (uint32_t i = 0; i < rank; i++) all[i] = draw_dim(g), at[0][i] = at[1][i] = i;
    for (unsigned k = 0; k < 2; k++) {
        if (any) permute(g, at[k], rank);
        for (uint32_t i = 0; i < rank; i++) {
            bool blocks = i >= n[0] + n[1];
            Dim of_block = any + 1 + draw(g, 3), extent = i >= n[0] && !blocks ? draw_dim(g) : all[i];
            if (blocks && !k) all[i] = extent = dim_mul(ts, extent, of_block);
            own[k][at[k][i]] = extent;
            own[k + 2][at[k][i]] = !blocks                     ? extent
                                   : dim_is_const(extent) && k ? 1
                                                               : dim_floordiv(ts, extent, of_block);
        }
    }
    for (unsigned k = 0; k < 4; k++) in[k] = need(g, type_of(ts, draw_dtype(g, kinds), rank, own[k]));
    for (unsigned k = 0; k < 4 && any; k++) {
        text_add(&t, "%s", lists[k]);
        for (uint32_t i = k < 2 ? n[0] + n[1] : 0; i < (k < 2 ? rank : n[0]); i++)
            text_add(&t, "%u,", (unsigned)at[k % 2][i]);
    }
    if (any) text_put(&t, S(")))"));
    put_text(g, &s, p, (Str){t.at, t.n});
    if (!any || coin(g)) put_dtype(g, &s, K_preferred_element_type, draw_dtype(g, kinds));
    emit(g, p, in, 4, s, 1);
}
