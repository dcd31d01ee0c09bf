#include "../cost.h"
#include "attention.h"
#include "gemm.h"
#include "threads.h"
#include <assert.h>
#include <math.h>

/* Attention whose scores stay in registers, for tensor cores. A warp has 16 rows of the tile, and all keys: of the sums
   of a product a lane has those of two rows, l / 4 and 8 more, in columns 2 (l % 4) and the next one of each 8. So are
   the weights where the second product has them as its rows, so that nothing goes through shared memory. Four
   neighbouring lanes have a row. Keys and values come a tile at a time, into the other of two places; all threads meet
   once for each tile. */

enum { ROW_LANES = 4, HALVES = 2, HALF_ROWS = 8, IN_WORD = 2, CHAINS = 2 };
typedef struct {
    V max[HALVES], sum[HALVES]; /* f32, the latter of a block of keys */
} Rows;

V attend_held_row(const Attend *t, uint32_t pass) {
    const Product *p = &t->second;
    V lane = rest(p, thread_number(t->k), WARP), warp = over(p, thread_number(t->k), WARP);
    V first = em_add(t->e, times(p, warp, WARP_ROWS), over(p, lane, ROW_LANES));
    return em_add(t->e, first, em_i64(t->e, pass * HALF_ROWS));
}

/* ---- terms in shared memory: of the rows; of the keys, then of the values, of HELD_PLACES tiles. (Boxes that a thread
   asks for take no less time: the block waits for them as a whole too, and its barriers take registers.) */
static int64_t rows_bytes(const Attend *t) { return staged_bytes(&t->first, 0) * t->first.dot->tile.turns; }
static int64_t ring_terms(const Product *p) { return HELD_PLACES * p->dot->tile.turns * staged_bytes(p, 1); }
void attend_held_share(Attend *t) {
    Emit *e = t->e;
    int64_t all = rows_bytes(t) + ring_terms(&t->first) + ring_terms(&t->second), result = slab_bytes(&t->second);
    assert(all <= ATTENTION_BYTES && result <= ATTENTION_BYTES);
    t->passes = HALVES;
    t->first.rows = threads_share(t->k, all > result ? all : result);
    t->first.shared = em_gep(e, t->first.rows, em_i64(e, rows_bytes(t)), e->i8);
    t->second.shared = em_gep(e, t->first.shared, em_i64(e, ring_terms(&t->first)), e->i8);
}
static void bring_all(const Product *p, uint32_t side) {
    for (uint32_t i = 0; i < p->dot->tile.turns; i++) stage_side(p, side, em_add(p->e, p->from, em_i64(p->e, i)));
}
static void bring_next(const Attend *t, V tile, V tiles) {
    Product first = stage_tile(&t->first, tile), second = stage_tile(&t->second, tile);
    If any = kernel_if(t->k, em_cmpi(t->e, "slt", tile, tiles));
    bring_all(&first, 1);
    bring_all(&second, 1);
    kernel_if_end(t->k, &any);
    attend_commit(t);
}
void attend_held_open(Attend *t, V tiles) {
    bring_all(&t->first, 0);
    bring_next(t, em_i64(t->e, 0), tiles);
}

/* ---- scores, or what they are a multiple of: the sums of the first product */
static bool scaled(const Attend *t) { return t->a->scale != 0; }
V attend_held_max(const Attend *t, V max) {
    if (!scaled(t)) return max;
    kernel_enter(t->k);
    attend_remember(t, t->a->scores->out.at[0], t->at.scores, max);
    max = attend_value(t, t->a->score, t->at.score);
    kernel_leave(t->k);
    return max;
}

/* ---- weights: 2^(score·per − base), so that one instruction makes the power of a score. What is rounded in `base` is
   in all weights of a row alike. */
typedef struct {
    V per, base;
} Power;
/* By what is rounded in `base` all weights of a row are too large or too small: up to `far` by 2^8, which f16 has room
   for. Larger scores are equal, or so far apart that the weights of all but the largest are no more than 2^-16: so they
   are with half of the factor too. By a power of two nothing is rounded, nor does `base` overflow. */
static Power power_of(const Attend *t, V max) {
    static const double far = 1 << 28;
    double per = 1.4426950408889634 * (scaled(t) ? t->a->scale : 1);
    Emit *e = t->e;
    V large = em_cmpf(e, "ogt", em_un(e, "llvm.intr.fabs", max), attend_f32(t, far / per));
    V by = em_select(e, large, attend_f32(t, ldexp(1, ilogb(per))), attend_f32(t, per));
    V base = em_select(e, attend_minus_infinity(t, max), attend_f32(t, 0), em_bin(e, "llvm.fmul", max, by));
    return (Power){by, base};
}
static V power(const Attend *t, V x) { return threads_intrinsic(t->e, "llvm.nvvm.ex2.approx.ftz", t->e->f32, 1, &x); }
V attend_held_factor(const Attend *t, V old, V new) {
    Emit *e = t->e;
    Power to = power_of(t, new);
    V by = power(t, em_bin(e, "llvm.fsub", em_bin(e, "llvm.fmul", old, to.per), to.base));
    return em_select(e, attend_minus_infinity(t, old), attend_f32(t, 1), by);
}
/* The column of sum i of the first product. */
static V column_of(const Attend *t, uint32_t i) {
    V pair = times(&t->first, rest(&t->first, thread_number(t->k), ROW_LANES), 2);
    return em_add(t->e, pair, em_i64(t->e, i / 4 * 8 + i % 2));
}
static bool in_half(uint32_t i, uint32_t half) { return i / 2 % 2 == half; }
/* Replaces the sums of one row by scores; their maximum. */
static V score_row(const Attend *t, uint32_t half, uint32_t n, V *x) {
    Dtype d = attend_dtype(t, t->a->score);
    V most[CHAINS] = {attend_f32(t, -INFINITY), attend_f32(t, -INFINITY)};
    for (uint32_t i = 0; i < n; i++) {
        if (!in_half(i, half)) continue;
        kernel_enter(t->k);
        x[i] = attend_score(t, column_of(t, i), x[i], scaled(t));
        most[i % CHAINS] = attend_larger(t, most[i % CHAINS], x[i]);
        kernel_leave(t->k);
    }
    V largest = attend_larger(t, most[0], most[1]);
    threads_merge_lanes(t->k, ROW_LANES, 1, &largest, attend_merge_max, &d);
    return largest;
}
/* Replaces its scores by weights; the sum of the thread's. */
static V weigh_row(const Attend *t, uint32_t half, uint32_t n, Power by, V *x) {
    Emit *e = t->e;
    Val weighed = t->a->weight->out.at[0];
    V sums[CHAINS] = {attend_f32(t, 0), attend_f32(t, 0)};
    for (uint32_t i = 0; i < n; i++) {
        if (!in_half(i, half)) continue;
        kernel_enter(t->k);
        V y = power(t, em_fma(e, x[i], by.per, em_un(e, "llvm.fneg", by.base)));
        attend_remember(t, weighed, t->at.weight, em_round(e, attend_dtype(t, weighed), y));
        x[i] = attend_value(t, t->a->sum->in.at[0], t->at.summed);
        sums[i % CHAINS] = em_bin(e, "llvm.fadd", sums[i % CHAINS], x[i]);
        kernel_leave(t->k);
    }
    return em_bin(e, "llvm.fadd", sums[0], sums[1]);
}
static void weigh(const Attend *t, uint32_t n, V *x, Rows *r, V *factors) {
    Emit *e = t->e;
    for (uint32_t half = 0; half < HALVES; half++) {
        attend_open_row(t, half);
        V old = r->max[half], max = attend_larger(t, old, score_row(t, half, n, x));
        factors[half] = attend_held_factor(t, old, max);
        V sum = weigh_row(t, half, n, power_of(t, max), x);
        r->sum[half] = em_fma(e, r->sum[half], factors[half], sum), r->max[half] = max;
        kernel_leave(t->k);
    }
}
/* Pairs of weights as the second product reads them. */
static void pack_weights(const Attend *t, uint32_t n, const V *x, V *words) {
    Emit *e = t->e;
    const DeviceDot *d = t->second.dot;
    Dtype from = attend_dtype(t, dot_device_operand(d, 0));
    MlirType half = d->as == DT_bf16 ? e->bf16 : e->f16;
    for (uint32_t i = 0; i < n; i += IN_WORD) {
        V both = em_1(e, "llvm.mlir.poison", em_vec(e, e->f32, IN_WORD), 0, NULL, 0, NULL);
        for (uint32_t j = 0; j < IN_WORD; j++) {
            V y = x[i + j];
            if (from != d->as) y = reg_v(kernel_convert(t->k, reg(y, true, t->k->x.depth), DT_f32, from));
            both = em_insert(e, y, both, j);
        }
        words[i / IN_WORD] =
            em_cast(e, "llvm.bitcast", e->i32, em_cast(e, "llvm.fptrunc", em_vec(e, half, IN_WORD), both));
    }
}
/* What was added up so far, relative to the new maxima. Those of a warp's rows rarely grow after the first tiles. */
static void rescale(const Attend *t, const V *factors, V *result) {
    Emit *e = t->e;
    V one = attend_f32(t, 1), scaled[TILE_SUMS];
    V any = em_bin(e, "llvm.or", em_cmpf(e, "une", factors[0], one), em_cmpf(e, "une", factors[1], one));
    V o[2] = {em_int(e, e->i32, -1), any};
    If f = em_if(e, threads_intrinsic(e, "llvm.nvvm.vote.any.sync", e->i1, 2, o));
    for (uint32_t i = 0; i < t->nsums; i++) scaled[i] = em_bin(e, "llvm.fmul", result[i], factors[i / 2 % 2]);
    em_else(e, &f, t->nsums, scaled);
    em_if_end(e, &f, result, result);
}

/* ---- tiles of keys */
static void multiply(const Attend *t, const Product *first, const Product *second, Rows *r, V *result) {
    V sums[TILE_SUMS], words[TILE_SUMS / IN_WORD], factors[HALVES];
    uint32_t n = product_sums(first);
    product_all(first, NULL, true, sums);
    product_all_end(first, 0, sums);
    weigh(t, n, sums, r, factors);
    pack_weights(t, n, sums, words);
    rescale(t, factors, result);
    product_all(second, words, false, result);
    product_all_end(second, 0, result);
}
/* What a thread carries: n values. */
enum { HELD_VALUES = 2 * HALVES + TILE_SUMS };
static uint32_t pack(const Attend *t, const Rows *r, const V *result, V *to) {
    memcpy(to, r, sizeof *r);
    memcpy(to + 2 * HALVES, result, t->nsums * sizeof *to);
    return 2 * HALVES + t->nsums;
}
static void unpack(const Attend *t, const V *from, Rows *r, V *result) {
    memcpy(r, from, sizeof *r);
    memcpy(result, from + 2 * HALVES, t->nsums * sizeof *from);
}
static void add_tile(Attend *t, V tile, V tiles, Rows *r, V *result) {
    Product first = stage_tile(&t->first, tile), second = stage_tile(&t->second, tile);
    V all[HELD_VALUES], next[HELD_VALUES];
    t->from = first.first[1];
    attend_meet(t, 0);
    bring_next(t, em_add(t->e, tile, em_i64(t->e, 1)), tiles);
    if (!attend_hides(t)) {
        multiply(t, &first, &second, r, result);
        return;
    }
    uint32_t n = pack(t, r, result, all);
    If f = em_if(t->e, attend_shown(t, &second, r->max));
    kernel_enter(t->k);
    multiply(t, &first, &second, r, result);
    kernel_leave(t->k);
    pack(t, r, result, next);
    em_else(t->e, &f, n, next);
    em_if_end(t->e, &f, all, all);
    unpack(t, all, r, result);
}
void attend_held_tiles(Attend *t, V from, V to, V tiles, State *s) {
    Emit *e = t->e;
    V all[HELD_VALUES], next[HELD_VALUES], result[TILE_SUMS];
    Rows r;
    for (uint32_t i = 0; i < HALVES; i++) r.max[i] = s->max[i], r.sum[i] = attend_f32(t, 0);
    uint32_t n = pack(t, &r, s->result, all);
    For f = em_for(e, from, to, em_i64(e, 1), n, all);
    kernel_enter(t->k);
    for (uint32_t i = 0; i < n; i++) next[i] = em_arg(&f.scope, i + 1);
    unpack(t, next, &r, result);
    add_tile(t, em_arg(&f.scope, 0), tiles, &r, result);
    pack(t, &r, result, next);
    kernel_leave(t->k);
    em_for_end(e, &f, next, all);
    unpack(t, all, &r, s->result);
    for (uint32_t i = 0; i < HALVES; i++) {
        threads_merge_lanes(t->k, ROW_LANES, 1, &r.sum[i], attend_merge_sum, NULL);
        s->sum[i] = attend_add_f64(t, s->sum[i], attend_held_factor(t, s->max[i], r.max[i]), r.sum[i]);
        s->max[i] = r.max[i];
    }
}
