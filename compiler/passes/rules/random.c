/* Random numbers: keys are words of 32 bits, generators are arithmetic on them. Bit for bit as JAX 0.10.2 on the
   CPU. Threefry and Philox: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011). */
#include "../../options.h"
#include "../transform/transform.h"

typedef struct {
    Val w[4];
    uint32_t n;
} Words;

/* ---- arithmetic on words */
static Val like(Builder *b, Val x, uint32_t value) { return b_full_like(b, x, value); }
static Val plus(Builder *b, Val x, uint32_t value) { return b_add(b, x, like(b, x, value)); }
static Val rotate(Builder *b, Val x, uint32_t by) {
    Val left = b_shift_left(b, x, like(b, x, by)), right = b_shift_right_logical(b, x, like(b, x, 32 - by));
    return b_or(b, left, right);
}
/* `v` in the shape of `shape`: scalars and extents of 1 stretch. */
static Val stretch(Builder *b, Val v, Type shape) {
    static const int64_t axes[MAX_RANK] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                           16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
    if (b->failed) return VAL_FAILED;
    const ArrayType *t = type_at(b_types(b), shape), *x = b_type(b, v);
    if (x->rank == t->rank && memcmp(x->dims, t->dims, t->rank * sizeof *t->dims) == 0) return v;
    return b_broadcast(b, v, t->rank, t->dims, axes);
}

/* ---- the generators: words of one shape in, words of that shape out */
/* 20 rounds of Threefry-2x32. */
static void threefry2x32(Builder *b, const Val key[2], Val x[2]) {
    static const uint8_t rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
    Val k[3] = {key[0], key[1], b_xor(b, b_xor(b, key[0], key[1]), like(b, key[0], 0x1BD11BDA))};
    x[0] = b_add(b, x[0], k[0]), x[1] = b_add(b, x[1], k[1]);
    for (uint32_t group = 0; group < 5; group++) {
        for (uint32_t r = 0; r < 4; r++) {
            x[0] = b_add(b, x[0], x[1]);
            x[1] = b_xor(b, x[0], rotate(b, x[1], rotations[group % 2][r]));
        }
        x[0] = b_add(b, x[0], k[(group + 1) % 3]);
        x[1] = plus(b, b_add(b, x[1], k[(group + 2) % 3]), group + 1);
    }
}
/* 20 rounds of Threefry-4x32. */
static void threefry4x32(Builder *b, const Val key[4], Val x[4]) {
    static const uint8_t rotations[8][2] = {{10, 26}, {11, 21}, {13, 27}, {23, 5},
                                            {6, 20},  {17, 11}, {25, 10}, {18, 20}};
    Val k[5] = {key[0], key[1], key[2], key[3], like(b, key[0], 0x1BD11BDA)};
    for (uint32_t i = 0; i < 4; i++) k[4] = b_xor(b, k[4], key[i]), x[i] = b_add(b, x[i], k[i]);
    for (uint32_t r = 0; r < 20; r++) {
        uint32_t other[2] = {r % 2 ? 3 : 1, r % 2 ? 1 : 3}; /* 0 and 2 are mixed with these */
        for (uint32_t i = 0; i < 2; i++) {
            x[2 * i] = b_add(b, x[2 * i], x[other[i]]);
            x[other[i]] = b_xor(b, x[2 * i], rotate(b, x[other[i]], rotations[r % 8][i]));
        }
        if (r % 4 != 3) continue;
        for (uint32_t i = 0; i < 4; i++) x[i] = b_add(b, x[i], k[(i + 1 + r / 4) % 5]);
        x[3] = plus(b, x[3], 1 + r / 4);
    }
}
/* 10 rounds of Philox-2x32 and -4x32; the key's words grow by the golden ratio and √3 - 1. */
static void philox2x32(Builder *b, Val key, Val x[2]) {
    for (uint32_t r = 0; r < 10; r++) {
        Val k = plus(b, key, r * 0x9E3779B9u), m = like(b, x[0], 0xD256D193);
        Val lo = b_mul(b, m, x[0]), hi = b_mulhi(b, m, x[0]);
        x[0] = b_xor(b, b_xor(b, hi, x[1]), k), x[1] = lo;
    }
}
static void philox4x32(Builder *b, const Val key[2], Val x[4]) {
    for (uint32_t r = 0; r < 10; r++) {
        Val k0 = plus(b, key[0], r * 0x9E3779B9u), k1 = plus(b, key[1], r * 0xBB67AE85u);
        Val m0 = like(b, x[0], 0xD2511F53), m1 = like(b, x[0], 0xCD9E8D57);
        Val lo0 = b_mul(b, m0, x[0]), hi0 = b_mulhi(b, m0, x[0]);
        Val lo1 = b_mul(b, m1, x[2]), hi1 = b_mulhi(b, m1, x[2]);
        x[0] = b_xor(b, b_xor(b, hi1, x[1]), k0), x[1] = lo1;
        x[2] = b_xor(b, b_xor(b, hi0, x[3]), k1), x[3] = lo0;
    }
}
/* The operands of `e`, all in the shape of its results. */
static void operands(Builder *b, const Eqn *e, Val *x) {
    for (uint32_t i = 0; i < e->in.n; i++) x[i] = stretch(b, e->in.at[i], val_type(b->cx, e->out.at[0]));
}
bool expand_threefry2x32(Builder *b, const Eqn *e, Val *out) {
    Val x[4];
    operands(b, e, x);
    threefry2x32(b, x, x + 2);
    memcpy(out, x + 2, 2 * sizeof *out);
    return true;
}
bool expand_threefry4x32(Builder *b, const Eqn *e, Val *out) {
    Val x[8];
    operands(b, e, x);
    threefry4x32(b, x, x + 4);
    memcpy(out, x + 4, 4 * sizeof *out);
    return true;
}
bool expand_philox2x32(Builder *b, const Eqn *e, Val *out) {
    Val x[3];
    operands(b, e, x);
    philox2x32(b, x[0], x + 1);
    memcpy(out, x + 1, 2 * sizeof *out);
    return true;
}
bool expand_philox4x32(Builder *b, const Eqn *e, Val *out) {
    Val x[6];
    operands(b, e, x);
    philox4x32(b, x, x + 2);
    memcpy(out, x + 2, 4 * sizeof *out);
    return true;
}

/* ---- keys */
static Dtype key_dtype(const Builder *b, Val key) { return b_type(b, key)->dtype; }
static Words key_words(Builder *b, Val key) {
    Words k = {.n = b->failed ? 0 : dtype_info[key_dtype(b, key)].bits / 32};
    if (b->failed) return k;
    const ArrayType *t = b_type(b, key);
    Val all = b1(b, P_random_unwrap, key);
    for (uint32_t i = 0; i < k.n; i++) k.w[i] = b_reshape(b, b_slice_axis(b, all, t->rank, i, i + 1), t->rank, t->dims);
    return k;
}
/* Words of one shape, as a new last axis. */
static Val stacked(Builder *b, uint32_t n, const Val *w) {
    Dim dims[MAX_RANK + 1];
    Val parts[4] = {0};
    if (b->failed) return VAL_FAILED;
    const ArrayType *t = b_type(b, w[0]);
    if (t->rank) memcpy(dims, t->dims, t->rank * sizeof *dims);
    dims[t->rank] = 1;
    for (uint32_t i = 0; i < n; i++) parts[i] = b_reshape(b, w[i], t->rank + 1, dims);
    return b_concatenate(b, n, parts, t->rank);
}
static Val wrapped(Builder *b, const Words *k, Dtype key) {
    Val all = stacked(b, k->n, k->w);
    Param impl = p_impl(key);
    return build(b, P_random_wrap, 1, &all, 1, &impl);
}
static Dim product(Builder *b, Dims shape) {
    Dim n = 1;
    each(Dim, d, shape) n = dim_mul(b_types(b), n, *d);
    return n;
}
/* 0, 1, 2, … in an array of these extents, as two words: high, low. */
static void counts(Builder *b, Dims shape, Val out[2]) {
    Dim n = product(b, shape);
    bool narrow = dim_is_const(n) && n <= UINT32_MAX;
    Val i = b_reshape(b, b_iota(b, narrow ? DT_u32 : DT_u64, 1, &n, 0), shape.n, shape.at);
    out[1] = b_convert(b, i, DT_u32);
    if (narrow)
        out[0] = like(b, i, 0);
    else
        out[0] = b_convert(b, b_shift_right_logical(b, i, b_full_like(b, i, 32)), DT_u32);
}
/* Batches of keys and counts for each: both in the shape keys × counts. */
static Type keys_by(Builder *b, Val key, Dims shape, Dtype d) {
    Dim dims[MAX_RANK];
    const ArrayType *t = b_type(b, key);
    if (t->rank + shape.n > MAX_RANK) {
        b->failed = !diag(b->cx->diags, b->span, "more than %d dimensions", MAX_RANK);
        return 0;
    }
    if (t->rank) memcpy(dims, t->dims, t->rank * sizeof *dims);
    if (shape.n) memcpy(dims + t->rank, shape.at, shape.n * sizeof *dims);
    return type_of(b_types(b), d, t->rank + shape.n, dims);
}
static Val behind(Builder *b, Val v, uint32_t lead, Type type) { /* v's axes are the last ones */
    int64_t axes[MAX_RANK];
    if (b->failed) return VAL_FAILED;
    for (uint32_t i = 0; i < MAX_RANK; i++) axes[i] = lead + i;
    const ArrayType *t = type_at(b_types(b), type);
    return b_broadcast(b, v, t->rank, t->dims, axes);
}
/* Threefry of each key and each count 0 … of `shape`. */
static void hashed(Builder *b, const Val k[2], Val key, Dims shape, Val x[2]) {
    x[0] = x[1] = VAL_FAILED;
    if (b->failed) return;
    Type t = keys_by(b, key, shape, DT_u32);
    if (b->failed) return;
    uint32_t lead = b_type(b, key)->rank;
    Val wide[2] = {stretch(b, k[0], t), stretch(b, k[1], t)};
    counts(b, shape, x);
    for (uint32_t i = 0; i < 2; i++) x[i] = behind(b, x[i], lead, t);
    threefry2x32(b, wide, x);
}
/* JAX before 0.5.0: Threefry of 0 … n - 1, whose first half are first words and second half second ones, 0 at the end
   where n is odd; one row for each key. */
static Val hashed_halves(Builder *b, const Val k[2], Val key, Dim n) {
    Types *ts = b_types(b);
    if (b->failed) return VAL_FAILED;
    Dim half = dim_floordiv(ts, dim_add(ts, n, 1), 2);
    uint32_t lead = b_type(b, key)->rank;
    Type t = keys_by(b, key, (Dims){&half, 1}, DT_u32);
    if (b->failed) return VAL_FAILED;
    Val i = b_iota(b, DT_u32, 1, &half, 0), x[2];
    Val j = b_add(b, i, b_full(b, b_dim(b, DT_u32, half), 1, &half));
    Val last = b_full(b, b_dim(b, DT_u32, n), 1, &half);
    j = b_select(b, b_lt(b, j, last), like(b, j, 0), j);
    x[0] = behind(b, i, lead, t), x[1] = behind(b, j, lead, t);
    Val wide[2] = {stretch(b, k[0], t), stretch(b, k[1], t)};
    threefry2x32(b, wide, x);
    return b_slice_axis(b, b_concatenate(b, 2, x, lead), lead, 0, n);
}
static bool partitionable(const Builder *b) { return !b->cx->options->threefry_original; }

/* ---- random_seed, _split, _fold_in, _clone */
/* The two words of an integer. */
static void seed_words(Builder *b, Val seed, Val out[2]) {
    out[0] = out[1] = VAL_FAILED;
    if (b->failed) return;
    out[1] = b_convert(b, seed, DT_u32);
    if (dtype_info[b_type(b, seed)->dtype].bits == 64)
        out[0] = b_convert(b, b_shift_right_logical(b, seed, b_full_like(b, seed, 32)), DT_u32);
    else
        out[0] = b_full_like(b, out[1], 0);
}
bool expand_random_seed(Builder *b, const Eqn *e, Val *out) {
    Dtype d = val_array(b->cx, e->out.at[0])->dtype;
    Words k = {.n = dtype_info[d].bits / 32};
    seed_words(b, e->in.at[0], k.w);
    if (k.n == 4) k.w[2] = k.w[0], k.w[3] = k.w[1];
    out[0] = wrapped(b, &k, d);
    return true;
}
/* The words of keys as rng_bit_generator's state: of the first key, where there are several; 0 where there is none. */
static Val generator_state(Builder *b, const Words *k) {
    Val one[4];
    Dim words = 4;
    for (uint32_t i = 0; i < 4 && !b->failed; i++) {
        const ArrayType *t = b_type(b, k->w[i]);
        Dim zero[MAX_RANK] = {0}, ones[MAX_RANK], config[3 * MAX_RANK] = {0};
        bool some = true;
        for (uint32_t d = 0; d < t->rank; d++) {
            ones[d] = 1;
            config[3 * d + 1] = !dim_is_const(t->dims[d]) || !t->dims[d];
            some = some && !config[3 * d + 1];
        }
        Val w = some ? k->w[i] : b_pad(b, k->w[i], b_int(b, DT_u32, 0), config);
        one[i] = b_reshape(b, t->rank ? b_slice(b, w, zero, ones, NULL) : w, 0, NULL);
    }
    return b_reshape(b, stacked(b, 4, one), 1, &words);
}
static Val generated(Builder *b, Val state, uint32_t rank, const Dim *dims, Dtype d) {
    Param p[3] = {p_word(K_algorithm, "RNG_DEFAULT"), p_dtype(K_dtype, d), p_dims(b, K_shape, rank, dims)};
    return build_many(b, P_rng_bit_generator, 1, &state, 3, p, 2, NULL).at[1];
}
/* Of urbg: every tenth row of words, "ten rounds" of the generator. */
static Words tenth_rows(Builder *b, const Words *k, Type type) {
    const ArrayType *t = type_at(b_types(b), type);
    Dim n = dim_mul(b_types(b), 10, product(b, (Dims){(Dim *)t->dims, t->rank})), rows[2] = {n, 4}, start[2] = {0, 0};
    Val all = generated(b, generator_state(b, k), 2, rows, DT_u32);
    Words out = {.n = 4};
    for (uint32_t i = 0; i < 4; i++) {
        start[1] = i;
        Val column = b_slice(b, all, start, (Dim[]){n, i + 1}, (int64_t[]){10, 1});
        out.w[i] = b_reshape(b, column, t->rank, t->dims);
    }
    return out;
}
static Words split_threefry(Builder *b, const Words *k, Val key, Dims shape) {
    Words out = {.n = k->n};
    for (uint32_t half = 0; half < k->n && !b->failed; half += 2) {
        if (partitionable(b)) {
            hashed(b, k->w + half, key, shape, out.w + half);
            continue;
        }
        uint32_t lead = b_type(b, key)->rank;
        Type type = keys_by(b, key, shape, DT_u32);
        if (b->failed) break;
        const ArrayType *t = type_at(b_types(b), type);
        Dim n = product(b, shape), rows[MAX_RANK];
        if (lead) memcpy(rows, t->dims, lead * sizeof *rows);
        rows[lead] = n, rows[lead + 1] = 2;
        Val all = b_reshape(b, hashed_halves(b, k->w + half, key, dim_mul(b_types(b), n, 2)), lead + 2, rows);
        for (uint32_t i = 0; i < 2; i++)
            out.w[half + i] = b_reshape(b, b_slice_axis(b, all, lead + 1, i, i + 1), t->rank, t->dims);
    }
    return out;
}
bool expand_random_split(Builder *b, const Eqn *e, Val *out) {
    Val key = e->in.at[0];
    Words k = key_words(b, key), new = {0};
    Dims shape = param_dims(e, K_shape);
    if (b->failed) return false;
    if (key_dtype(b, key) == DT_key_urbg)
        new = tenth_rows(b, &k, keys_by(b, key, shape, DT_u32));
    else
        new = split_threefry(b, &k, key, shape);
    out[0] = wrapped(b, &new, key_dtype(b, key));
    return true;
}
/* Of urbg: the last of ten rows that the data as a state gives; of the first data, where there are several. */
static Words folded_urbg(Builder *b, const Words *k, const Val data[2]) {
    Words state = {.w = {data[0], data[1], data[0], data[1]}, .n = 4}, out = {.n = 4};
    Dim rows[2] = {10, 4};
    Val all = generated(b, generator_state(b, &state), 2, rows, DT_u32);
    for (uint32_t i = 0; i < 4 && !b->failed; i++) {
        Val word = b_slice(b, all, (Dim[]){9, i}, (Dim[]){10, i + 1}, NULL);
        out.w[i] = b_xor(b, k->w[i], stretch(b, b_reshape(b, word, 0, NULL), val_type(b->cx, k->w[i])));
    }
    return out;
}
bool expand_random_fold_in(Builder *b, const Eqn *e, Val *out) {
    Val key = e->in.at[0], x[2];
    Words k = key_words(b, key), new = {.n = k.n};
    if (b->failed) return false;
    const ArrayType *t = val_array(b->cx, e->out.at[0]), *msg = b_type(b, e->in.at[1]);
    Type type = type_of(b_types(b), DT_u32, t->rank, t->dims);
    seed_words(b, b_convert(b, e->in.at[1], DT_u32), x);
    if (key_dtype(b, key) == DT_key_urbg && msg->rank)
        return diag(b->cx->diags, e->span, "random_fold_in: an array of data for keys of urbg is not supported");
    for (uint32_t i = 0; i < k.n; i++) k.w[i] = stretch(b, k.w[i], type);
    if (key_dtype(b, key) == DT_key_urbg)
        new = folded_urbg(b, &k, x);
    else
        for (uint32_t half = 0; half < k.n; half += 2) {
            for (uint32_t i = 0; i < 2; i++) new.w[half + i] = stretch(b, x[i], type);
            threefry2x32(b, k.w + half, new.w + half);
        }
    out[0] = wrapped(b, &new, key_dtype(b, key));
    return true;
}
bool expand_random_clone(Builder *b, const Eqn *e, Val *out) {
    out[0] = e->in.at[0];
    return true;
}

/* ---- random_bits */
static Val joined_words(Builder *b, Val hi, Val lo) {
    Val h = b_convert(b, hi, DT_u64), l = b_convert(b, lo, DT_u64);
    return b_or(b, b_shift_left(b, h, b_full_like(b, h, 32)), l);
}
/* JAX before 0.5.0: as many words as the bits need, cut into elements. */
static Val bits_original(Builder *b, const Words *k, Val key, Dims shape, int64_t width, Type type) {
    static const Dtype of_width[] = {[8] = DT_u8, [16] = DT_u16};
    Types *ts = b_types(b);
    const ArrayType *t = type_at(ts, type);
    uint32_t lead = b_type(b, key)->rank;
    Dim n = product(b, shape), words = dim_floordiv(ts, dim_add(ts, dim_mul(ts, n, width), 31), 32);
    Val bits = hashed_halves(b, k->w, key, words);
    if (width == 64) bits = joined_words(b, b_slice_axis(b, bits, lead, 0, n), b_slice_axis(b, bits, lead, n, words));
    if (width < 32) {
        uint32_t per = 32 / (uint32_t)width;
        Dim dims[MAX_RANK + 1];
        int64_t axes[MAX_RANK + 1];
        for (uint32_t i = 0; i < lead; i++) dims[i] = t->dims[i];
        dims[lead] = words, dims[lead + 1] = per;
        for (uint32_t i = 0; i <= lead; i++) axes[i] = i;
        Val all = b_broadcast(b, bits, lead + 2, dims, axes), by = b_iota(b, DT_u32, lead + 2, dims, lead + 1);
        by = b_mul(b, by, like(b, by, (uint32_t)width));
        bits = b_convert(b, b_shift_right_logical(b, all, by), of_width[width]);
        dims[lead] = dim_mul(ts, words, per);
        bits = b_slice_axis(b, b_reshape(b, bits, lead + 1, dims), lead, 0, n);
    }
    return b_reshape(b, bits, t->rank, t->dims);
}
bool expand_random_bits(Builder *b, const Eqn *e, Val *out) {
    Val key = e->in.at[0], x[2];
    Type type = val_type(b->cx, e->out.at[0]);
    const ArrayType *t = type_at(b_types(b), type);
    Dims shape = param_dims(e, K_shape);
    int64_t width = param_int(e, K_bit_width, 32);
    Words k = key_words(b, key);
    if (b->failed) return false;
    if (key_dtype(b, key) != DT_key_fry)
        out[0] = generated(b, generator_state(b, &k), t->rank, t->dims, t->dtype);
    else if (!partitionable(b))
        out[0] = bits_original(b, &k, key, shape, width, type);
    else {
        hashed(b, k.w, key, shape, x);
        out[0] = width == 64 ? joined_words(b, x[0], x[1]) : b_convert(b, b_xor(b, x[0], x[1]), t->dtype);
    }
    return true;
}
bool expand_iota_2x32_shape(Builder *b, const Eqn *e, Val *out) {
    counts(b, param_dims(e, K_shape), out);
    return true;
}

/* ---- rng_bit_generator, as XLA's CPU gives it: Philox-4x32 by default */
/* The state's two numbers of 64 bits: the key, and where the counter stands. */
static void state_numbers(Builder *b, Val state, Val out[2]) {
    out[0] = out[1] = VAL_FAILED;
    if (b->failed) return;
    const ArrayType *t = b_type(b, state);
    for (uint32_t i = 0; i < 2; i++) {
        Val w[2];
        uint32_t n = t->dtype == DT_u64 ? 1 : 2;
        for (uint32_t k = 0; k < n; k++)
            w[k] = b_reshape(b, b_slice_axis(b, state, 0, n * i + k, n * i + k + 1), 0, NULL);
        out[i] = n == 1 ? w[0] : joined_words(b, w[1], w[0]);
    }
}
static Val high(Builder *b, Val x) { return b_convert(b, b_shift_right_logical(b, x, b_full_like(b, x, 32)), DT_u32); }
static Val low(Builder *b, Val x) { return b_convert(b, x, DT_u32); }
static Val next_state(Builder *b, Val state, const Val s[2], Dim turns) {
    Val last = b_add(b, s[1], b_dim(b, DT_u64, turns)),
        w[4] = {low(b, s[0]), high(b, s[0]), low(b, last), high(b, last)};
    if (b->failed) return VAL_FAILED;
    const ArrayType *t = b_type(b, state);
    Val two[2] = {s[0], last};
    return b_reshape(b, t->dtype == DT_u64 ? stacked(b, 2, two) : stacked(b, 4, w), t->rank, t->dims);
}
/* Philox of the counters c, c + 1, … of 128 bits, whose upper half starts as the key: four words each. */
static Val philox_bits(Builder *b, const Val s[2], Dim n, Dtype d, Dims shape, Dim *turns) {
    Types *ts = b_types(b);
    bool wide = dtype_info[d].bits == 64;
    Dim blocks = *turns = dim_floordiv(ts, dim_add(ts, wide ? dim_mul(ts, n, 2) : n, 3), 4);
    Val i = b_iota(b, DT_u64, 1, &blocks, 0), start = b_full(b, s[1], 1, &blocks);
    Val lo = b_add(b, start, i), carry = b_convert(b, b_lt(b, lo, start), DT_u64);
    Val hi = b_add(b, b_full(b, s[0], 1, &blocks), carry);
    Val key[2] = {b_full(b, low(b, s[0]), 1, &blocks), b_full(b, high(b, s[0]), 1, &blocks)};
    Val x[4] = {low(b, lo), high(b, lo), low(b, hi), high(b, hi)}, all;
    philox4x32(b, key, x);
    if (wide) {
        Val two[2] = {joined_words(b, x[1], x[0]), joined_words(b, x[3], x[2])};
        all = stacked(b, 2, two);
    } else
        all = stacked(b, 4, x);
    Dim flat = dim_mul(ts, blocks, wide ? 2 : 4);
    all = b_slice_axis(b, b_reshape(b, all, 1, &flat), 0, 0, n);
    return b_convert(b, b_reshape(b, all, shape.n, shape.at), d);
}
/* Threefry of the counters c, c + 1, …; two words each, which are neighbours along the first axis of even extent, or
   else the first of the longest. */
static Val threefry_bits(Builder *b, const Val s[2], Dim n, Dtype d, Dims shape, Dim *turns) {
    Types *ts = b_types(b);
    bool wide = dtype_info[d].bits == 64;
    uint32_t split = 0;
    Dim dims[MAX_RANK + 1] = {1};
    if (shape.n) memcpy(dims, shape.at, shape.n * sizeof *dims);
    uint32_t rank = shape.n ? shape.n : 1;
    for (uint32_t i = 1; i < rank; i++)
        if (dim_is_const(dims[i]) && dims[i] > dims[split]) split = i;
    for (uint32_t i = rank; i-- > 0;)
        if (dim_mod(ts, dims[i], 2) == 0) split = i;
    Dim whole = dims[split], half = wide ? n : dim_floordiv(ts, dim_add(ts, whole, 1), 2);
    if (!wide) dims[split] = half;
    Dim count = *turns = product(b, (Dims){dims, rank});
    Val at = b_add(b, b_full(b, s[1], 1, &count), b_iota(b, DT_u64, 1, &count, 0));
    Val key[2] = {b_full(b, low(b, s[0]), 1, &count), b_full(b, high(b, s[0]), 1, &count)},
        x[2] = {low(b, at), high(b, at)};
    threefry2x32(b, key, x);
    if (wide) return b_reshape(b, joined_words(b, x[1], x[0]), shape.n, shape.at);
    Dim pairs[MAX_RANK + 1];
    for (uint32_t i = 0; i <= rank; i++) pairs[i] = i <= split ? dims[i] : i == split + 1 ? 1 : dims[i - 1];
    for (uint32_t i = 0; i < 2; i++) x[i] = b_reshape(b, x[i], rank + 1, pairs);
    dims[split] = dim_mul(ts, half, 2);
    Val all = b_slice_axis(b, b_reshape(b, b_concatenate(b, 2, x, split + 1), rank, dims), split, 0, whole);
    return b_convert(b, b_reshape(b, all, shape.n, shape.at), d);
}
bool expand_rng_bit_generator(Builder *b, const Eqn *e, Val *out) {
    Val s[2];
    const ArrayType *t = val_array(b->cx, e->out.at[1]);
    Dims shape = {(Dim *)t->dims, t->rank};
    Dim n = product(b, shape), turns = 0;
    const Param *algorithm = param_find(e, K_algorithm);
    bool threefry = algorithm && (algorithm->value.kind == V_INT ? algorithm->value.i == 1
                                                                 : str_is(algorithm->value.s, "RNG_THREE_FRY"));
    state_numbers(b, e->in.at[0], s);
    out[1] = (threefry ? threefry_bits : philox_bits)(b, s, n, t->dtype, shape, &turns);
    out[0] = next_state(b, e->in.at[0], s, turns);
    return true;
}

/* ---- rng_uniform: unrepeatable numbers; Philox from a state that the library advances */
bool expand_rng_uniform(Builder *b, const Eqn *e, Val *out) {
    static const Dtype unsigned_of[] = {[8] = DT_u8, [16] = DT_u16, [32] = DT_u32, [64] = DT_u64};
    const ArrayType *t = val_array(b->cx, e->out.at[0]);
    Val lo = b_full(b, e->in.at[0], t->rank, t->dims), hi = b_full(b, e->in.at[1], t->rank, t->dims);
    uint32_t bits = dtype_info[t->dtype].bits;
    Dim two = 2,
        sizes[2] = {product(b, (Dims){(Dim *)t->dims, t->rank}), b->cx->nvals}; /* the second: no two are one */
    Type state_type = type_of(b_types(b), DT_u64, 1, &two);
    Val state = b_runtime(b, "rng_state", 2, sizes, 0, NULL, 1, &state_type).at[0];
    if (dtype_info[t->dtype].kind == DK_FLOAT) {
        Dtype wide = bits == 64 ? DT_f64 : DT_f32;
        Val u = generated(b, state, t->rank, t->dims, unsigned_of[bits == 64 ? 64 : 32]);
        u = b_shift_right_logical(b, u, b_full_like(b, u, bits == 64 ? 11 : 8));
        u = b_convert(b, u, wide);
        u = b_convert(b, b_mul(b, u, b_full_like(b, u, bits == 64 ? 0x1p-53 : 0x1p-24)), t->dtype);
        out[0] = b_add(b, b_mul(b, u, b_sub(b, hi, lo)), lo);
        return true;
    }
    Dtype whole = unsigned_of[bits];
    Val u = generated(b, state, t->rank, t->dims, whole), span = b_bitcast(b, b_sub(b, hi, lo), whole);
    out[0] = b_add(b, lo, b_bitcast(b, b_rem(b, u, span), t->dtype));
    return true;
}

/* ---- random_gamma: a key for each element, all elements at once. Marsaglia and Tsang, "A simple method for generating
   gamma variables" (ACM TOMS 26, 2000); alpha < 1 is drawn as alpha + 1 and scaled by u^(1/alpha). */
/* Word m of the 2·of words of hashed_halves, for each key. */
static Val word_of_halves(Builder *b, const Val k[2], uint32_t of, uint32_t m) {
    Val x[2] = {like(b, k[0], m % of), like(b, k[0], of + m % of)};
    threefry2x32(b, k, x);
    return x[m / of];
}
/* Key number `i` of the `of` that each key splits into. */
static Words split_one(Builder *b, const Words *k, Dtype key, uint32_t of, uint32_t i) {
    Words out = {.n = k->n};
    if (key == DT_key_urbg) { /* row 10·i of Philox; the counter's low half is the key's last two words */
        Val at = b_add(b, joined_words(b, k->w[3], k->w[2]), b_full_like(b, joined_words(b, k->w[3], k->w[2]), 10 * i));
        Val carry = b_convert(b, b_lt(b, at, b_full_like(b, at, 10 * i)), DT_u64);
        Val hi = b_add(b, joined_words(b, k->w[1], k->w[0]), carry);
        Val x[4] = {low(b, at), high(b, at), low(b, hi), high(b, hi)};
        philox4x32(b, k->w, x);
        memcpy(out.w, x, sizeof x);
        return out;
    }
    for (uint32_t half = 0; half < k->n; half += 2) {
        if (!partitionable(b)) {
            for (uint32_t w = 0; w < 2; w++) out.w[half + w] = word_of_halves(b, k->w + half, of, 2 * i + w);
            continue;
        }
        out.w[half] = like(b, k->w[half], 0), out.w[half + 1] = like(b, k->w[half], i);
        threefry2x32(b, k->w + half, out.w + half);
    }
    return out;
}
/* In [0, 1): a bit pattern of 1.x, less 1. */
static Val uniform(Builder *b, const Words *k, Dtype key, Type type) {
    static const struct {
        Dtype bits;
        uint32_t keep, drop;
        uint64_t one;
    } of[NDTYPES] = {[DT_f32] = {DT_u32, 23, 9, 0x3F800000},
                     [DT_f64] = {DT_u64, 52, 12, 0x3FF0000000000000},
                     [DT_f16] = {DT_u16, 10, 6, 0x3C00},
                     [DT_bf16] = {DT_u16, 7, 1, 0x3F80}}; /* bf16: of 8 bits */
    Dtype d = type_at(b_types(b), type)->dtype;
    Val x[4], bits;
    if (key == DT_key_fry) {
        bool halves = !partitionable(b);
        x[0] = like(b, k->w[0], 0), x[1] = like(b, k->w[0], halves && d == DT_f64);
        threefry2x32(b, k->w, x);
        bits = d == DT_f64 ? joined_words(b, x[0], x[1]) : halves ? x[0] : b_xor(b, x[0], x[1]);
    } else {
        memcpy(x, (Val[]){k->w[2], k->w[3], k->w[0], k->w[1]}, sizeof x);
        philox4x32(b, k->w, x);
        bits = d == DT_f64 ? joined_words(b, x[1], x[0]) : x[0];
    }
    bits = d == DT_bf16 ? b_convert(b, b_convert(b, bits, DT_u8), DT_u16) : b_convert(b, bits, of[d].bits);
    bits = b_shift_right_logical(b, bits, b_full_like(b, bits, of[d].drop));
    const ArrayType *t = type_at(b_types(b), type);
    bits = b_or(b, bits, b_full(b, b_int(b, of[d].bits, (int64_t)of[d].one), t->rank, t->dims));
    Val f = b_bitcast(b, bits, d);
    return b_sub(b, f, b_full_like(b, f, 1));
}
/* By the inverse of the distribution function, of a uniform one in (-1, 1). */
static Val normal(Builder *b, const Words *k, Dtype key, Type type) {
    Val u = uniform(b, k, key, type), minus = b_full_like(b, u, -1), lo = b_nextafter(b, minus, b_full_like(b, u, 0));
    Val span = b_sub(b, b_full_like(b, u, 1), lo);
    u = b_max(b, lo, b_add(b, b_mul(b, u, span), lo));
    return b_mul(b, b_full_like(b, u, 1.4142135623730951), b_erf_inv(b, u));
}
typedef struct {
    Builder *b;
    Dtype key;
    Type type;
    uint32_t n; /* words of a key */
} Gamma;
static Words words_at(const Gamma *g, const Val *v) {
    Words k = {.n = g->n};
    memcpy(k.w, v, g->n * sizeof *v);
    return k;
}
/* v ≤ 0: x and v = 1 + c·x are drawn again. Carry: key, x, v. */
static Vals positive(Gamma *g, const Words *key, Val c) {
    Builder *b = g->b;
    uint32_t n = g->n;
    Val carry[6], out[6];
    memcpy(carry, key->w, n * sizeof *carry);
    carry[n] = b_full_like(b, c, 0), carry[n + 1] = b_full_like(b, c, -1);
    Inner test = b_inner_like(b, n + 2, carry);
    Val v = test.in.at[n + 1], more = b_le(b, v, b_full_like(b, v, 0));
    b_inner_end(b, &test, 1, &more);
    Inner turn = b_inner_like(b, n + 2, carry);
    Words k = words_at(g, turn.in.at), next = split_one(b, &k, g->key, 2, 0), sub = split_one(b, &k, g->key, 2, 1);
    memcpy(out, next.w, n * sizeof *out);
    out[n] = normal(b, &sub, g->key, g->type);
    out[n + 1] = b_add(b, b_full_like(b, c, 1), b_mul(b, out[n], c));
    b_inner_end(b, &turn, n + 2, out);
    return b_while(b, &test, &turn, n + 2, carry);
}
/* Are x², v and u not accepted? */
static Val refused(Builder *b, Val X, Val V, Val U, Val d) {
    Val one = b_full_like(b, X, 1);
    Val squeeze = b_sub(b, one, b_mul(b, b_full_like(b, X, 0.0331), b_mul(b, X, X)));
    Val bound = b_add(b, b_sub(b, one, V), b_log(b, V));
    bound = b_add(b, b_mul(b, X, b_full_like(b, X, 0.5)), b_mul(b, d, bound));
    return b_and(b, b_ge(b, U, squeeze), b_ge(b, b_log(b, U), bound));
}
/* Repeats until x², v³ and u are accepted; returns v³. Carry: key, x², v³, u. */
static Val accepted(Gamma *g, const Words *key, Val c, Val d) {
    Builder *b = g->b;
    uint32_t n = g->n;
    Val carry[7], out[7];
    memcpy(carry, key->w, n * sizeof *carry);
    for (uint32_t i = 0; i < 3; i++) carry[n + i] = b_full_like(b, c, i);
    Inner test = b_inner_like(b, n + 3, carry);
    Val more = refused(b, test.in.at[n], test.in.at[n + 1], test.in.at[n + 2], d);
    b_inner_end(b, &test, 1, &more);
    Inner turn = b_inner_like(b, n + 3, carry);
    Words k = words_at(g, turn.in.at), next = split_one(b, &k, g->key, 3, 0), xk = split_one(b, &k, g->key, 3, 1);
    Words uk = split_one(b, &k, g->key, 3, 2);
    Vals kxv = positive(g, &xk, c);
    Val x = kxv.at[n], v = kxv.at[n + 1];
    memcpy(out, next.w, n * sizeof *out);
    out[n] = b_mul(b, x, x), out[n + 1] = b_mul(b, b_mul(b, v, v), v);
    out[n + 2] = uniform(b, &uk, g->key, g->type);
    b_inner_end(b, &turn, n + 3, out);
    return b_while(b, &test, &turn, n + 3, carry).at[n + 1];
}
bool expand_random_gamma(Builder *b, const Eqn *e, Val *out) {
    Val key = e->in.at[0], alpha = e->in.at[1];
    const ArrayType *t = b_type(b, alpha);
    uint32_t lead = b_type(b, key)->rank;
    if (lead > t->rank) return diag(b->cx->diags, e->span, "random_gamma: more axes of keys than of parameters");
    Gamma g = {.b = b, .key = key_dtype(b, key), .type = val_type(b->cx, alpha)};
    Dims shape = {(Dim *)t->dims + lead, t->rank - lead};
    Words k = key_words(b, key);
    if (g.key == DT_key_urbg)
        k = tenth_rows(b, &k, keys_by(b, key, shape, DT_u32));
    else
        k = split_threefry(b, &k, key, shape);
    g.n = k.n;
    Val one = b_full_like(b, alpha, 1), third = b_full_like(b, alpha, 1. / 3), large = b_ge(b, alpha, one);
    Val a = b_select(b, large, b_add(b, alpha, one), alpha), d = b_sub(b, a, third);
    Val c = b_div(b, third, b_sqrt(b, d));
    Words next = split_one(b, &k, g.key, 2, 0), sub = split_one(b, &k, g.key, 2, 1);
    Val V = accepted(&g, &next, c, d), u = uniform(b, &sub, g.key, g.type), inverse = b_div(b, one, alpha);
    if (param_bool(e, K_log_space)) {
        Val s = b_log1p(b, b_neg(b, u)), zero = b_full_like(b, alpha, 0);
        Val none = b_or(b, large, b_eq(b, s, zero)), boost = b_select(b, none, b_mul(b, s, inverse), zero);
        out[0] = b_add(b, b_add(b, b_log(b, d), b_log(b, V)), boost);
    } else {
        Val boost = b_select(b, large, b_pow(b, b_sub(b, one, u), inverse), one);
        out[0] = b_mul(b, b_mul(b, d, V), boost);
    }
    return true;
}
/* By the parameter: random_gamma_grad of the sample, divided by it if the result is its logarithm. */
bool jvp_random_gamma(Jvp *d) {
    Builder *b = d->b;
    Val a = d->e->in.at[1], sample = jvp_result(d, 0);
    bool logarithm = param_bool(d->e, K_log_space);
    if (logarithm) {
        Dtype type = b_type(b, sample)->dtype;
        double least = type == DT_f64 ? 0x1p-1022 : type == DT_f16 ? 0x1p-14 : 0x1p-126; /* normal number */
        sample = b_exp(b, sample);
        sample = b_select(b, b_eq(b, sample, b_zeros_like(b, sample)), sample, b_full_like(b, sample, least));
    }
    Val slope = b_random_gamma_grad(b, a, sample);
    if (logarithm) slope = b_div(b, slope, sample);
    d->dt[0] = b_mul(b, d->t[1], slope);
    return !b->failed;
}

/* ---- for a batch of examples: as in JAX the first state draws for all of them, and its successor takes its place */
bool vmap_rng_bit_generator(Vmap *v) {
    Builder *b = v->b;
    const ArrayType *state = vmap_type(v, 0), *bits = vmap_result_type(v, 1);
    Dim shape[MAX_RANK + 1] = {vmap_size(v)};
    Dim rows[2] = {vmap_size(v), state->dims[0]}, one[2] = {1, state->dims[0]}, none[2] = {0}, config[6] = {0, 1};
    Val zero = b_number(b, state->dtype, 0);
    if (bits->rank) memcpy(shape + 1, bits->dims, bits->rank * sizeof *shape);
    Eqn e = vmap_axes(v, v->e);
    each(Param, p, e.params)
        if (p->key == K_shape) *p = p_dims(b, K_shape, bits->rank + 1, shape);
    Val padded = b_pad(b, v->e->in.at[0], zero, config); /* there may be no example */
    Val first = b_slice(b, padded, none, one, NULL);
    e.in = (Vals){(Val[]){b_reshape(b, first, 1, state->dims)}, 1};
    e.in = vals_joined(b->cx->arena, 1, &e.in);
    Vals out = b_eqn(b, &e, 2, NULL);
    Val number = b_iota(b, DT_i32, 2, rows, 0), other = b_gt(b, number, b_int(b, DT_i32, 0));
    v->out[0] = b_select(b, other, b_broadcast(b, out.at[0], 2, rows, (int64_t[]){1}), v->e->in.at[0]);
    v->out[1] = out.at[1];
    return !b->failed;
}
