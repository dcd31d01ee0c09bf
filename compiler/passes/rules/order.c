/* Sorting and the first elements of an order: calls of runtime/sort.c, along the last axis of arrays. */
#include "../../../runtime/sort.h"
#include "../build.h"

/* The bits of infinity: exponents of `exponent` ones above `mantissa` zeros. */
static int64_t infinity(int exponent, int mantissa) { return (((int64_t)1 << exponent) - 1) << mantissa; }
static int64_t order_of(Dtype d) {
    switch (d) {
    case DT_bf16: return infinity(8, 7);
    case DT_f16: return infinity(5, 10);
    case DT_f32: return infinity(8, 23);
    case DT_f64: return infinity(11, 52);
    default: return dtype_info[d].kind == DK_SINT ? ORDER_SIGNED : ORDER_UNSIGNED;
    }
}
/* A floating-point type that the runtime does not order is ordered as a wider one. */
static Val ordered(Builder *b, Val x) {
    Dtype d = b_type(b, x)->dtype;
    return dtype_info[d].kind == DK_FLOAT && dtype_info[d].bits < 16 ? b_convert(b, x, DT_bf16) : x;
}

/* ---- the axis becomes the last one, and comes back */
static Val to_last(Builder *b, Val x, int64_t axis) {
    if (b->failed || !x) return 0;
    int64_t p[32], n = b_type(b, x)->rank;
    for (int64_t i = 0; i < n; i++) p[i] = i < axis ? i : i + 1;
    p[n - 1] = axis;
    return b_transpose(b, x, p);
}
static Val from_last(Builder *b, Val x, int64_t axis) {
    if (b->failed || !x) return 0;
    int64_t p[32], n = b_type(b, x)->rank;
    for (int64_t i = 0; i < n; i++) p[i] = i < axis ? i : i - 1;
    p[axis] = n - 1;
    return b_transpose(b, x, p);
}

/* ---- scratch memory: a slot for each of the threads that may take rows, `words` of 16 bytes per slot */
enum { MOST_SLOTS = 16 };
typedef struct {
    Dim rows, slots;
    Type type;
} Scratch;
static Scratch scratch_for(Builder *b, const ArrayType *t, int64_t axis, Dim words) {
    Types *ts = b_types(b);
    Dim rows = 1;
    for (uint32_t i = 0; i < t->rank; i++)
        if (i != axis) rows = dim_mul(ts, rows, t->dims[i]);
    Scratch s = {rows, dim_min(ts, rows, MOST_SLOTS), 0};
    s.type = type_of(ts, DT_u64, 2, (Dim[]){s.slots, dim_mul(ts, words, 2)});
    return s;
}
static Dim bytes_of(Dtype d) { return dtype_info[d].bits / 8; }
static bool no_elements(const ArrayType *t) {
    for (uint32_t i = 0; i < t->rank; i++)
        if (t->dims[i] == 0) return true;
    return false;
}

/* ---- sort */
typedef struct {
    uint32_t n;
    Val *at;
} List;
/* Real operands, the first `keys` of them keys. A complex number is its parts, the real one before the imaginary one. */
static List real_operands(Builder *b, const Eqn *e, uint32_t *keys) {
    List l = {0, arena_new(b->cx->arena, Val, 3 * e->in.n)};
    uint32_t given = (uint32_t)param_int(e, K_num_keys, 1);
    *keys = 0;
    for (uint32_t i = 0; i < e->in.n; i++) {
        Val x = e->in.at[i];
        if (i == given) *keys = l.n;
        if (dtype_info[b_type(b, x)->dtype].kind == DK_COMPLEX) {
            l.at[l.n++] = b1(b, P_real, x);
            l.at[l.n++] = b1(b, P_imag, x);
        } else {
            l.at[l.n++] = x;
        }
    }
    if (given >= e->in.n) *keys = l.n;
    return l;
}
static void call_sort(Builder *b, uint32_t n, Val *x, uint32_t keys, int64_t axis) {
    const ArrayType *t = b_type(b, x[0]);
    Types *ts = b_types(b);
    Dim *sizes = arena_new(b->cx->arena, Dim, 6 + 2 * n), bytes = 0;
    Type *types = arena_new(b->cx->arena, Type, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        Dtype d = b_type(b, x[i])->dtype;
        sizes[6 + 2 * i] = bytes_of(d), sizes[7 + 2 * i] = order_of(d);
        if (i < keys && bytes_of(d) > bytes) bytes = bytes_of(d);
        x[i] = to_last(b, x[i], axis);
        types[i] = x[i] ? val_type(b->cx, x[i]) : 0;
    }
    /* twice the records: keys alone, or with positions; and two arrays of positions, of which each begins at a multiple of 16 */
    Dim extent = t->dims[axis], quarter = dim_floordiv(ts, dim_add(ts, extent, 3), 4);
    Dim record = (bytes <= 4 ? 4 : 8) * (n > 1 ? 2 : 1);
    Dim words = n == 1 ? dim_mul(ts, quarter, 2 * record / 4) : dim_mul(ts, quarter, 2 + 2 * record / 4);
    Scratch s = scratch_for(b, t, axis, words);
    types[n] = s.type;
    Dim head[6] = {s.rows, extent, s.slots, dim_mul(ts, words, 16), n, keys};
    memcpy(sizes, head, sizeof head);
    Vals y = b_runtime(b, "sort", 6 + 2 * n, sizes, n, x, n + 1, types);
    for (uint32_t i = 0; i < n; i++) x[i] = from_last(b, y.at[i], axis);
}
bool expand_sort(Builder *b, const Eqn *e, Val *out) {
    int64_t axis = param_int(e, K_dimension, 0);
    if (no_elements(b_type(b, e->in.at[0]))) {
        memcpy(out, e->in.at, e->in.n * sizeof *out);
        return true;
    }
    uint32_t keys, extra = 0;
    List l = real_operands(b, e, &keys);
    /* keys of other types go before the operands */
    Val *x = arena_new(b->cx->arena, Val, 2 * l.n);
    for (uint32_t i = 0; i < keys && !b->failed; i++) extra |= ordered(b, l.at[i]) != l.at[i];
    if (extra)
        for (extra = 0; extra < keys; extra++) x[extra] = ordered(b, l.at[extra]);
    memcpy(x + extra, l.at, l.n * sizeof *x);
    if (b->failed) return false;
    call_sort(b, extra + l.n, x, keys, axis);
    for (uint32_t i = 0, k = extra; i < e->in.n; i++) {
        bool complex = dtype_info[b_type(b, e->in.at[i])->dtype].kind == DK_COMPLEX;
        out[i] = complex ? b2(b, P_complex, x[k], x[k + 1]) : x[k];
        k += complex ? 2 : 1;
    }
    return true;
}

/* ---- top_k, approx_top_k */
static bool first(Builder *b, const Eqn *e, Val *out, int64_t axis, Dim k, bool largest, bool total) {
    Val x = e->in.at[0], keys = ordered(b, x);
    const ArrayType *t = b_type(b, x);
    Types *ts = b_types(b);
    if (axis < 0) axis += t->rank;
    Dim *dims = arena_new(b->cx->arena, Dim, t->rank);
    memcpy(dims, t->dims, t->rank * sizeof *dims);
    dims[axis] = k;
    Type value = type_of(ts, t->dtype, t->rank, dims), position = type_of(ts, DT_i32, t->rank, dims);
    if (no_elements(type_at(ts, value))) {
        out[0] = b_full(b, b_number(b, t->dtype, 0), t->rank, dims);
        out[1] = b_full(b, b_int(b, DT_i32, 0), t->rank, dims);
        return true;
    }
    if (keys != x) return diag(b->cx->diags, e->span, "%s of %s is not supported yet", prim_name[e->prim], dtype_info[t->dtype].name);
    Dtype d = t->dtype;
    int64_t order = order_of(d);
    if (total && order > ORDER_TOTAL) order = ORDER_TOTAL;
    x = to_last(b, x, axis);
    const ArrayType *last = b_type(b, x);
    if (b->failed) return false;
    memcpy(dims, last->dims, t->rank * sizeof *dims);
    dims[t->rank - 1] = k;
    value = type_of(ts, d, t->rank, dims), position = type_of(ts, DT_i32, t->rank, dims);
    Dim quarter = dim_floordiv(ts, dim_add(ts, t->dims[axis], 3), 4), words = dim_mul(ts, quarter, bytes_of(d) <= 4 ? 4 : 8);
    Scratch s = scratch_for(b, t, axis, words);
    Dim sizes[8] = {s.rows, t->dims[axis], s.slots, dim_mul(ts, words, 16), k, largest, bytes_of(d), order};
    Vals y = b_runtime(b, "top_k", 8, sizes, 1, &x, 3, (Type[]){value, position, s.type});
    out[0] = from_last(b, y.at[0], axis);
    out[1] = from_last(b, y.at[1], axis);
    return true;
}
/* Largest first, equal ones in their order; NaNs with and without sign, and zeros, as numbers above and below the others. */
bool expand_top_k(Builder *b, const Eqn *e, Val *out) {
    return first(b, e, out, param_int(e, K_axis, -1), param_find(e, K_k)->value.dim, true, true);
}
/* Exact, as on JAX's CPU. Without aggregation there are as many results as the binder has. */
bool expand_approx_top_k(Builder *b, const Eqn *e, Val *out) {
    int64_t axis = param_int(e, K_reduction_dimension, -1);
    const ArrayType *y = val_array(b->cx, e->out.at[0]);
    if (axis < 0) axis += y->rank;
    return first(b, e, out, axis, y->dims[axis], param_bool(e, K_is_max_k), true);
}
