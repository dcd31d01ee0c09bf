/* Sorting and the first elements of an order, along the last axis of arrays: calls of runtime/sort.c; on a device,
   positions of keys in order. */
#include "../../../runtime/sort.h"
#include "../transform/transform.h"
#include <math.h>

/* The bits of infinity: exponents of `exponent` ones above `mantissa` zeros. */
static int64_t infinity(int exponent, int mantissa) { return (((int64_t)1 << exponent) - 1) << mantissa; }
static Dim bytes_of(Dtype d) { return dtype_info[d].bits / 8; }
static int64_t order_of(Dtype d) {
    switch (d) {
    case DT_bf16: return infinity(8, 7);
    case DT_f16: return infinity(5, 10);
    case DT_f32: return infinity(8, 23);
    case DT_f64: return infinity(11, 52);
    default: return dtype_info[d].kind == DK_SINT ? ORDER_SIGNED : ORDER_UNSIGNED;
    }
}
/* A type that the runtime cannot order is ordered as a wider one. As in XLA, formats whose NaN is a negative zero have
   it first, and the NaNs of two other formats differ only by sign. */
static Val ordered(Builder *b, Val x) {
    Dtype d = b->failed ? DT_none : b_type(b, x)->dtype;
    if (!dtype_is_narrow(d)) return x;
    if (dtype_info[d].kind == DK_SINT) return b_convert(b, x, DT_i8);
    if (dtype_info[d].kind == DK_UINT) return b_convert(b, x, DT_u8);
    Val key = b_convert(b, x, DT_bf16), nan = 0;
    if (d == DT_f8_e4m3b11fnuz || d == DT_f8_e4m3fnuz || d == DT_f8_e5m2fnuz)
        nan = b_full_like(b, key, -(double)INFINITY);
    if (d == DT_f8_e3m4 || d == DT_f8_e4m3) {
        Val bits = b_bitcast(b, key, DT_u16);
        bits = b_and(b, bits, b_full_like(b, bits, 0xff80));
        nan = b_bitcast(b, b_or(b, bits, b_full_like(b, bits, 0x40)), DT_bf16);
    }
    return nan ? b_select(b, b_ne(b, x, x), key, nan) : key;
}

/* ---- moving the axis to the end and back */
static Val to_last(Builder *b, Val x, int64_t axis) {
    if (b_failed(b, x)) return VAL_FAILED;
    int64_t p[MAX_RANK], n = b_type(b, x)->rank;
    assert(n > 0 && axis < n);
    for (int64_t i = 0; i < n; i++) p[i] = i < axis ? i : i + 1;
    p[n - 1] = axis;
    return b_transpose(b, x, p);
}
static Val from_last(Builder *b, Val x, int64_t axis) {
    if (b_failed(b, x)) return VAL_FAILED;
    int64_t p[MAX_RANK], n = b_type(b, x)->rank;
    for (int64_t i = 0; i < n; i++) p[i] = i < axis ? i : i - 1;
    p[axis] = n - 1;
    return b_transpose(b, x, p);
}

/* ---- reading at positions */
/* The elements of v at these positions along the axis, which are inside and differ. */
static Val take_along(Builder *b, Val v, Val positions, int64_t axis) {
    if (b_failed(b, v) || b_failed(b, positions)) return VAL_FAILED;
    const ArrayType *t = b_type(b, positions);
    int64_t last = t->rank, others[MAX_RANK];
    Dim sizes[MAX_RANK];
    uint32_t n = 0;
    for (uint32_t a = 0; a < t->rank; a++) {
        sizes[a] = 1;
        if (a != axis) others[n++] = a;
    }
    Places at = {.mode = S("GatherScatterMode.PROMISE_IN_BOUNDS"), .unique = true};
    at.n = (IndexNumbers){.dropped = {&axis, 1}, .map = {&axis, 1}, .batch = {others, n}, .index_batch = {others, n}};
    return b_gather(b, v, b_expand_dims(b, positions, 1, &last), sizes, at);
}
/* ---- keys on a device: unsigned integers in the order of runtime/keys.h */
static Val full(Builder *b, Val like, int64_t value) {
    if (b_failed(b, like)) return VAL_FAILED;
    const ArrayType *t = b_type(b, like);
    return b_full(b, b_int(b, t->dtype, value), t->rank, t->dims);
}
/* The bits of a float as an integer that is in the same order. */
static Val float_key(Builder *b, Val bits, int64_t order) {
    int64_t most = dtype_limit(b_type(b, bits)->dtype, true);
    Val magnitudes = full(b, bits, most), zero = full(b, bits, 0);
    Val key = b_select(b, b_lt(b, bits, zero), bits, b_xor(b, bits, magnitudes));
    if (order == ORDER_TOTAL) return key;
    key = b_select(b, b_eq(b, b_and(b, bits, magnitudes), zero), key, zero);
    Val nan = b_gt(b, b_and(b, bits, magnitudes), full(b, bits, order));
    return b_select(b, nan, key, magnitudes);
}
static Dtype key_type(uint32_t bits) { return bits <= 8 ? DT_u8 : bits <= 16 ? DT_u16 : bits <= 32 ? DT_u32 : DT_u64; }
static Dtype signed_of(Dtype d) {
    static const Dtype whole[] = {[1] = DT_i8, [2] = DT_i16, [4] = DT_i32, [8] = DT_i64};
    return whole[bytes_of(d)];
}
static Val key_of(Builder *b, Val x, int64_t order, bool flip) {
    if (b_failed(b, x)) return VAL_FAILED;
    Dtype d = b_type(b, x)->dtype, with_sign = signed_of(d), key = key_type(8 * (uint32_t)bytes_of(d));
    if (order == ORDER_UNSIGNED) {
        x = b_convert(b, x, key);
    } else {
        x = b_bitcast(b, x, with_sign);
        if (order != ORDER_SIGNED) x = float_key(b, x, order);
        x = b_bitcast(b, b_xor(b, x, full(b, x, dtype_limit(with_sign, false))), key);
    }
    return flip ? b_not(b, x) : x;
}
static uint32_t bits_of(Builder *b, Val key) { return b->failed ? 0 : dtype_info[b_type(b, key)->dtype].bits; }
/* The last key of n, and before it as many others as 64 bits hold; *used: how many, *bits: of the key. */
static Val last_keys(Builder *b, uint32_t n, const Val *x, const int64_t *order, bool flip, uint32_t *used,
                     uint32_t *bits) {
    Val key = key_of(b, x[n - 1], order[n - 1], flip);
    *bits = bits_of(b, key);
    for (*used = 1; *used < n && !b->failed; ++*used) {
        uint32_t at = n - 1 - *used;
        Val high = key_of(b, x[at], order[at], flip);
        uint32_t more = bits_of(b, high);
        if (*bits + more > 64) break;
        Dtype both = key_type(*bits + more);
        high = b_convert(b, high, both);
        key = b_or(b, b_shift_left(b, high, full(b, high, *bits)), b_convert(b, key, both));
        *bits += more;
    }
    return key;
}
/* The positions, u32, of the elements along the last axis in the order of keys of so many bits; equal ones stay in
   their order. */
static Val sorted_positions(Builder *b, Val key, uint32_t bits) {
    if (b_failed(b, key)) return VAL_FAILED;
    const ArrayType *t = b_type(b, key);
    Type type = type_of(b_types(b), DT_u32, t->rank, t->dims);
    Param p = p_int(K_bit_width, bits);
    return build_many(b, P_sort_positions, 1, &key, 1, &p, 1, &type).at[0];
}
/* The same, in the order of n keys. */
static Val positions_by(Builder *b, uint32_t n, const Val *x, const int64_t *order, bool flip) {
    Val at = 0;
    for (uint32_t used, bits; n; n -= used) {
        Val key = last_keys(b, n, x, order, flip, &used, &bits);
        if (b_failed(b, key)) return VAL_FAILED;
        int64_t last = b_type(b, key)->rank - 1;
        if (at) key = take_along(b, key, at, last);
        Val next = sorted_positions(b, key, bits);
        at = at ? take_along(b, at, next, last) : next;
    }
    return at;
}

/* ---- the first k of many on a device: in groups of neighbours, the first k are in the k groups whose first elements
   come first; of groups whose first elements are equal, in the earlier ones. So all are read once, and few are
   sorted. */
enum {
    FEW = 4,         /* groups and elements of k groups are at most this part of all that sorting would sort */
    SORTED = 1 << 10 /* as many are sorted by one kernel, while groups take ten */
};
static int64_t group_for(Dim n, Dim k) { /* elements; 0: sorting is as good */
    if (!dim_is_const(n) || !dim_is_const(k) || n <= SORTED) return 0;
    int64_t group = 1;
    while (group * group < n / k) group *= 2;
    return n / group + group * k <= n / FEW ? group : 0;
}
/* The elements of an array […, n] at […, k] groups of neighbours: their positions, […, k group]. */
static Val positions_in(Builder *b, Val groups, int64_t group) {
    if (b_failed(b, groups)) return VAL_FAILED;
    const ArrayType *t = b_type(b, groups);
    int64_t axes[MAX_RANK];
    Dim dims[MAX_RANK];
    assert(t->rank && t->rank < MAX_RANK);
    for (uint32_t i = 0; i < t->rank; i++) axes[i] = i, dims[i] = t->dims[i];
    dims[t->rank] = group;
    Val begin = b_broadcast(b, b_mul(b, groups, full(b, groups, group)), t->rank + 1, dims, axes);
    Val at = b_add(b, begin, b_iota(b, DT_u32, t->rank + 1, dims, t->rank));
    dims[t->rank - 1] = dim_mul(b_types(b), t->dims[t->rank - 1], group);
    return b_reshape(b, at, t->rank, dims);
}
/* Its last axis as groups, which divide it. */
static Val grouped(Builder *b, Val v, int64_t group) {
    const ArrayType *t = b_type(b, v);
    Dim dims[MAX_RANK];
    assert(t->rank && t->rank < MAX_RANK);
    memcpy(dims, t->dims, t->rank * sizeof *dims);
    dims[t->rank - 1] = t->dims[t->rank - 1] / group, dims[t->rank] = group;
    return b_reshape(b, v, t->rank + 1, dims);
}
/* With elements that come after all others, so that groups divide the last axis. */
static Val whole_groups(Builder *b, Val key, int64_t group) {
    const ArrayType *t = b_type(b, key);
    Dim config[3 * MAX_RANK] = {0}, n = t->dims[t->rank - 1];
    config[3 * (t->rank - 1) + 1] = (n + group - 1) / group * group - n;
    return b_pad(b, key, b_int(b, t->dtype, dtype_limit(t->dtype, true)), config);
}
/* Of x, whose keys are computed again where only few are read. */
static Val first_positions(Builder *b, Val x, int64_t order, bool flip, Dim k) {
    Val key = key_of(b, x, order, flip);
    if (b_failed(b, key)) return VAL_FAILED;
    uint32_t bits = bits_of(b, key), last = b_type(b, key)->rank - 1;
    Dim n = b_type(b, key)->dims[last];
    int64_t group = last + 1 < COMPILED_RANK ? group_for(n, k) : 0;
    if (!group) return b_slice_axis(b, sorted_positions(b, key, bits), last, 0, k);
    Val all = n % group ? grouped(b, whole_groups(b, key, group), group) : key_of(b, grouped(b, x, group), order, flip);
    Val firsts = b_reduce(b, P_reduce_min, all, 1, (int64_t[]){last + 1});
    Val groups = first_positions(b, firsts, ORDER_UNSIGNED, false, k);
    groups = take_along(b, groups, sorted_positions(b, groups, dtype_info[DT_u32].bits), last);
    Val at = positions_in(b, groups, group), end = full(b, at, n - 1);
    key = key_of(b, take_along(b, x, b_min(b, at, end), last), order, flip);
    if (n % group) key = b_select(b, b_gt(b, at, end), key, full(b, key, dtype_limit(b_type(b, key)->dtype, true)));
    return take_along(b, at, b_slice_axis(b, sorted_positions(b, key, bits), last, 0, k), last);
}

static bool too_long(Builder *b, const Eqn *e, Dim n) {
    if (!options_for_device(b->cx->options) || !dim_is_const(n) || n <= UINT32_MAX) return false;
    return !diag(b->cx->diags, e->span, "%s: an axis of %lld elements is too long", prim_name[e->prim], (long long)n);
}

/* ---- scratch memory: a slot for each of the threads that may take groups of rows */
enum { MOST_SLOTS = 16 };
typedef struct {
    Dim rows, slots, slot;
    Type type;
} Scratch;
static Scratch scratch_for(Builder *b, const ArrayType *t, int64_t axis, Dim key_bytes, bool positions) {
    Types *ts = b_types(b);
    Dim rows = 1, n = t->dims[axis];
    for (uint32_t i = 0; i < t->rank; i++)
        if (i != axis) rows = dim_mul(ts, rows, t->dims[i]);
    Dim elements = dim_max(ts, n, dim_mul(ts, GROUP, dim_min(ts, n, SHORT)));
    Dim record = (key_bytes <= 4 ? 4 : 8) * (positions ? 2 : 1), each_element = 2 * record + (positions ? 8 : 0);
    Dim slot = dim_mul(ts, dim_floordiv(ts, dim_add(ts, elements, 3), 4), 4 * each_element);
    Scratch s = {rows, dim_min(ts, rows, MOST_SLOTS), slot, 0};
    s.type = type_of(ts, DT_u8, 2, (Dim[]){s.slots, slot});
    return s;
}
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
/* Real operands, the first `keys` of them keys. A complex number is its parts, the real one before the imaginary
   one. */
static List real_operands(Builder *b, const Eqn *e, uint32_t *keys) {
    List l = {0, arena_new(b->cx->arena, Val, 3 * e->in.n)};
    uint32_t given = (uint32_t)param_int(e, K_num_keys, 1);
    *keys = 0;
    for (uint32_t i = 0; i < e->in.n; i++) {
        Val x = e->in.at[i];
        if (i == given) *keys = l.n;
        if (dtype_info[b_type(b, x)->dtype].kind == DK_COMPLEX) {
            l.at[l.n++] = b_real(b, x);
            l.at[l.n++] = b_imag(b, x);
        } else {
            l.at[l.n++] = x;
        }
    }
    if (given >= e->in.n) *keys = l.n;
    return l;
}
/* The only operand on a device, as its bits: kernels know their order, which is two numbers of ones and zeros after
   them. The result has the operand's type. */
static Val sorted_alone(Builder *b, Val x, int64_t order) {
    if (b_failed(b, x)) return VAL_FAILED;
    Dtype d = b_type(b, x)->dtype;
    uint32_t bits = 8 * (uint32_t)bytes_of(d);
    int64_t ones = 0, zeros = 0;
    for (int64_t rest = order; rest; rest >>= 1) *(rest & 1 ? &ones : &zeros) += 1;
    Val key = order == ORDER_UNSIGNED ? b_convert(b, x, key_type(bits)) : b_bitcast(b, x, key_type(bits));
    if (b_failed(b, key)) return VAL_FAILED;
    Param p[3] = {p_int(K_bit_width, bits), p_int(K_exponent_bits, ones), p_int(K_mantissa_bits, zeros)};
    Type type = val_type(b->cx, x);
    return build_many(b, P_sort_keys, 1, &key, 3, p, 1, &type).at[0];
}
static void sort_on_device(Builder *b, uint32_t n, Val *x, uint32_t keys, int64_t axis) {
    int64_t *order = arena_new(b->cx->arena, int64_t, keys + 1);
    for (uint32_t i = 0; i < n; i++) {
        if (i < keys) order[i] = order_of(b_type(b, x[i])->dtype);
        x[i] = to_last(b, x[i], axis);
    }
    if (n == 1) {
        x[0] = from_last(b, sorted_alone(b, x[0], order[0]), axis);
        return;
    }
    Val at = positions_by(b, keys, x, order, false);
    for (uint32_t i = 0; i < n && !b->failed; i++)
        x[i] = from_last(b, take_along(b, x[i], at, b_type(b, at)->rank - 1), axis);
}
static void call_sort(Builder *b, uint32_t n, Val *x, uint32_t keys, int64_t axis) {
    const ArrayType *t = b_type(b, x[0]);
    Dim *sizes = arena_new(b->cx->arena, Dim, 6 + 2 * n), bytes = 0;
    Type *types = arena_new(b->cx->arena, Type, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        Dtype d = b_type(b, x[i])->dtype;
        sizes[6 + 2 * i] = bytes_of(d), sizes[7 + 2 * i] = order_of(d);
        if (i < keys && bytes_of(d) > bytes) bytes = bytes_of(d);
        x[i] = to_last(b, x[i], axis);
        types[i] = val_type(b->cx, x[i]);
    }
    Scratch s = scratch_for(b, t, axis, bytes, n > 1);
    types[n] = s.type;
    Dim head[6] = {s.rows, t->dims[axis], s.slots, s.slot, n, keys};
    memcpy(sizes, head, sizeof head);
    Vals y = b_runtime(b, "sort", 6 + 2 * n, sizes, n, x, n + 1, types);
    for (uint32_t i = 0; i < n; i++) x[i] = from_last(b, y.at[i], axis);
}
bool expand_sort(Builder *b, const Eqn *e, Val *out) {
    int64_t axis = param_number(e, K_dimension);
    if (no_elements(b_type(b, e->in.at[0]))) {
        memcpy(out, e->in.at, e->in.n * sizeof *out);
        return true;
    }
    uint32_t keys, extra = 0;
    if (too_long(b, e, b_type(b, e->in.at[0])->dims[axis])) return false;
    List l = real_operands(b, e, &keys);
    /* keys of other types go before the operands */
    Val *x = arena_new(b->cx->arena, Val, 2 * l.n);
    for (uint32_t i = 0; i < keys && !b->failed; i++) extra |= ordered(b, l.at[i]) != l.at[i];
    if (extra)
        for (extra = 0; extra < keys; extra++) x[extra] = ordered(b, l.at[extra]);
    memcpy(x + extra, l.at, l.n * sizeof *x);
    if (b->failed) return false;
    (options_for_device(b->cx->options) ? sort_on_device : call_sort)(b, extra + l.n, x, keys, axis);
    for (uint32_t i = 0, k = extra; i < e->in.n; i++) {
        bool complex = dtype_info[b_type(b, e->in.at[i])->dtype].kind == DK_COMPLEX;
        out[i] = complex ? b_complex(b, x[k], x[k + 1]) : x[k];
        k += complex ? 2 : 1;
    }
    return true;
}

/* ---- top_k, approx_top_k */
static Type type_with(Builder *b, Val like, Dtype d, int64_t axis, Dim n) {
    const ArrayType *t = b_type(b, like);
    Dim dims[MAX_RANK];
    memcpy(dims, t->dims, t->rank * sizeof *dims);
    dims[axis] = n;
    return type_of(b_types(b), d, t->rank, dims);
}
/* The first k along an axis, and their positions. `total`: see runtime/sort.h. */
static bool first(Builder *b, const Eqn *e, Val *out, int64_t axis, Dim k, bool largest, bool total) {
    uint32_t rank = b_type(b, e->in.at[0])->rank;
    if (axis < 0) axis += rank;
    const ArrayType *y = type_at(b_types(b), type_with(b, e->in.at[0], DT_i32, axis, k));
    Dtype given = b_type(b, e->in.at[0])->dtype;
    if (no_elements(y)) {
        out[0] = b_full(b, b_number(b, given, 0), rank, y->dims);
        out[1] = b_full(b, b_int(b, DT_i32, 0), rank, y->dims);
        return true;
    }
    Val x = to_last(b, ordered(b, e->in.at[0]), axis);
    if (b->failed) return false;
    const ArrayType *t = b_type(b, x);
    Dtype d = t->dtype;
    int64_t order = order_of(d);
    if (total && order > ORDER_TOTAL) order = ORDER_TOTAL;
    if (options_for_device(b->cx->options)) {
        if (too_long(b, e, t->dims[rank - 1])) return false;
        Val at = first_positions(b, x, order, largest, k);
        out[0] = b_convert(b, from_last(b, take_along(b, x, at, rank - 1), axis), given);
        out[1] = from_last(b, b_convert(b, at, DT_i32), axis);
        return !b->failed;
    }
    Scratch s = scratch_for(b, t, rank - 1, bytes_of(d), true);
    Dim sizes[8] = {s.rows, t->dims[rank - 1], s.slots, s.slot, k, largest, bytes_of(d), order};
    Type types[3] = {type_with(b, x, d, rank - 1, k), type_with(b, x, DT_i32, rank - 1, k), s.type};
    Vals found = b_runtime(b, "top_k", 8, sizes, 1, &x, 3, types);
    out[0] = b_convert(b, from_last(b, found.at[0], axis), given);
    out[1] = from_last(b, found.at[1], axis);
    return true;
}
/* The largest first, equal ones in their order. Numbers are in IEEE 754's total order: NaNs are above the others, or
   below with a sign. */
bool expand_top_k(Builder *b, const Eqn *e, Val *out) {
    return first(b, e, out, param_int(e, K_axis, -1), param_find(e, K_k)->value.dim, true, true);
}
/* Exact, as JAX is on a CPU; there XLA takes the largest of f32 by top_k, anything else by a sort in which zeros are
   equal. Without aggregation there are as many results as the binder has. */
bool expand_approx_top_k(Builder *b, const Eqn *e, Val *out) {
    int64_t axis = param_int(e, K_reduction_dimension, -1);
    const ArrayType *y = val_array(b->cx, e->out.at[0]);
    if (axis < 0) axis += y->rank;
    bool largest = param_bool(e, K_is_max_k);
    return first(b, e, out, axis, y->dims[axis], largest, largest && y->dtype == DT_f32);
}

/* ---- derivatives: tangents are read at the positions of the elements */
/* The positions are those of an iota that is sorted with the operands. */
bool jvp_sort(Jvp *d) {
    Builder *b = d->b;
    Eqn e = *d->e;
    int64_t axis = param_number(&e, K_dimension);
    const ArrayType *t = b_type(b, e.in.at[0]);
    bool small = dim_is_const(t->dims[axis]) && t->dims[axis] <= UINT32_MAX;
    Val iota = b_iota(b, small ? DT_u32 : DT_u64, t->rank, t->dims, axis);
    e.in = vals_joined(d->b->cx->arena, 2, (Vals[]){d->e->in, {&iota, 1}});
    Vals sorted = b_eqn(b, &e, e.in.n, NULL);
    for (uint32_t i = 0; i < d->e->out.n; i++) {
        d->out[i] = sorted.at[i];
        if (d->t[i]) d->dt[i] = take_along(b, d->t[i], sorted.at[d->e->in.n], axis);
    }
    return !b->failed;
}
static bool jvp_first(Jvp *d, int64_t axis) {
    Val positions = jvp_result(d, 1);
    if (axis < 0) axis += b_type(d->b, d->e->in.at[0])->rank;
    d->dt[0] = take_along(d->b, d->t[0], positions, axis);
    return !d->b->failed;
}
bool jvp_top_k(Jvp *d) { return jvp_first(d, param_int(d->e, K_axis, -1)); }
bool jvp_approx_top_k(Jvp *d) { return jvp_first(d, param_int(d->e, K_reduction_dimension, -1)); }
