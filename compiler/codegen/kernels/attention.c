#include "attention.h"
#include "../cost.h"
#include "gemm.h"
#include "grid.h"
#include "point.h"
#include "threads.h"
#include <assert.h>
#include <math.h>

/* Attention: a block has a tile of rows of the result, and the rows of q stay in shared memory. For each tile of keys
   in turn: the first product's sums go through shared memory; ROW_THREADS neighbouring threads have a row there,
   evaluate the scores, and then their weights, relative to the largest score so far, where the second product reads
   them. What was added up before is multiplied by a factor if that maximum has grown. The next keys come while weights
   are computed, the values of v while scores are. Only in the end come weights relative to what the program subtracts,
   so that they are at most 1 until then, whatever that is.

   A row whose scores so far are all −∞ has weights 0. If that is so in the end, its result is what the formula gives
   for one such score. */

enum { ROWS_AT_ONCE = MMA_SHORT, ROW_THREADS = TILE_THREADS / ROWS_AT_ONCE, AT_ONCE = 4 };
/* ---- terms in shared memory */
static void bring(const Attend *t, const Product *p, uint32_t side, V from) {
    For f = em_for(t->e, em_i64(t->e, 0), em_i64(t->e, p->dot->tile.turns), em_i64(t->e, 1), 0, NULL);
    kernel_enter(t->k);
    stage_side(p, side, em_add(p->e, from, em_arg(&f.scope, 0)));
    kernel_leave(t->k);
    em_for_end(t->e, &f, NULL, NULL);
}
static void bring_keys(const Attend *t, V from) {
    Product p = t->first;
    p.first[1] = from;
    bring(t, &p, 1, em_i64(t->e, 0));
}
static bool asynchronous(const Attend *t) {
    return stage_asynchronous(&t->first, 0) || stage_asynchronous(&t->first, 1) || stage_asynchronous(&t->second, 1);
}
void attend_commit(const Attend *t) {
    if (asynchronous(t)) threads_intrinsic(t->e, "llvm.nvvm.cp.async.commit.group", no_type, 0, NULL);
}
/* Waits for all threads, and for what they brought, but for the latest `left` groups. */
void attend_meet(const Attend *t, uint32_t left) {
    V n = em_int(t->e, t->e->i32, left);
    if (asynchronous(t)) threads_intrinsic(t->e, "llvm.nvvm.cp.async.wait.group", no_type, 1, &n);
    if (t->second.dot->warpgroups) threads_intrinsic(t->e, "llvm.nvvm.fence.proxy.async.shared_cta", no_type, 0, NULL);
    threads_meet(t->k);
}
/* Adds the products of all terms that are there. */
static void multiply(const Attend *t, const Product *p, uint32_t n, V *sums) {
    V next[TILE_SUMS];
    For f = em_for(t->e, em_i64(t->e, 0), em_i64(t->e, p->dot->tile.turns), em_i64(t->e, 1), n, sums);
    kernel_enter(t->k);
    for (uint32_t i = 0; i < n; i++) next[i] = em_arg(&f.scope, i + 1);
    product_multiply(p, stage_slot(p, em_arg(&f.scope, 0)), next);
    kernel_leave(t->k);
    em_for_end(t->e, &f, next, sums);
}

/* ---- values */
V attend_f32(const Attend *t, double x) { return em_float(t->e, t->e->f32, x); }
Dtype attend_dtype(const Attend *t, Val v) { return val_array(t->k->x.plan->cx, v)->dtype; }
void attend_remember(const Attend *t, Val v, const Ix *index, V x) {
    eval_remember(&t->k->x, v, index, reg(x, true, t->k->x.depth));
}
V attend_value(const Attend *t, Val v, const Ix *index) { return reg_v(eval_value(&t->k->x, v, index)); }
V attend_minus_infinity(const Attend *t, V x) { return em_cmpf(t->e, "oeq", x, attend_f32(t, -INFINITY)); }
V attend_larger(const Attend *t, V x, V y) {
    return point_combine(t->e, P_reduce_max, attend_dtype(t, t->a->score), x, y);
}
void attend_merge_max(Emit *e, void *user, V *x, const V *y) {
    x[0] = point_combine(e, P_reduce_max, *(Dtype *)user, x[0], y[0]);
}
void attend_merge_sum(Emit *e, void *user, V *x, const V *y) { x[0] = em_bin(e, "llvm.fadd", x[0], y[0]); }
/* e^x for x ≤ 0, 0 where it is subnormal: a weight of no importance. The instruction for 2^y has an error of 2 ulp.
   What the product y lacks of x / ln 2 is made good for f32: it is up to 70 ulp of the result; `narrow`: for fewer bits
   it is not. */
static V power(const Attend *t, V x, bool narrow) {
    Emit *e = t->e;
    static const double per = 1.442695, lost = 1.9259630335e-8, ln2 = 0.6931471805599453;
    if (!narrow) x = em_bin(e, "llvm.intr.maximum", x, attend_f32(t, -104));
    V y = em_bin(e, "llvm.fmul", x, attend_f32(t, per));
    V all = threads_intrinsic(e, "llvm.nvvm.ex2.approx.ftz", e->f32, 1, &y);
    if (narrow) return all;
    V rest = em_fma(e, x, attend_f32(t, per), em_un(e, "llvm.fneg", y));
    rest = em_bin(e, "llvm.fmul", em_fma(e, x, attend_f32(t, lost), rest), attend_f32(t, ln2));
    return em_fma(e, all, rest, all);
}
/* By what weights relative to the maximum `old` are multiplied to be relative to `new`. */
static V factor(const Attend *t, V old, V new) {
    if (t->second.dot->held) return attend_held_factor(t, old, new);
    V by = power(t, em_bin(t->e, "llvm.fsub", old, new), false);
    return em_select(t->e, attend_minus_infinity(t, old), attend_f32(t, 1), by);
}

/* ---- rows: those of pass i are ROWS_AT_ONCE apart */
static V row_of(const Attend *t, uint32_t pass) {
    if (t->second.dot->held) return attend_held_row(t, pass);
    return em_add(t->e, over(&t->second, thread_number(t->k), ROW_THREADS), em_i64(t->e, pass * ROWS_AT_ONCE));
}
/* Rows beyond the last are that one again. */
void attend_open_row(const Attend *t, uint32_t pass) {
    const DotLoops *rows = &t->second.dot->loops[DOT_ROWS];
    Emit *e = t->e;
    kernel_enter(t->k);
    V last = em_bin(e, "llvm.sub", kernel_dim(t->k, rows->extent), em_i64(e, 1));
    V row = em_bin(e, "llvm.intr.smin", em_add(t->e, t->second.first[0], row_of(t, pass)), last);
    grid_bind(t->k, rows->at, rows->n, rows->extent, row);
}
static V factor_at(const Attend *t, V row) { return em_gep(t->e, t->factors, row, t->e->f32); }
static void leave_factor(const Attend *t, V row, V x) {
    If first = kernel_if(t->k, em_cmpi(t->e, "eq", t->member, em_i64(t->e, 0)));
    em_store(t->e, x, factor_at(t, row), 4);
    kernel_if_end(t->k, &first);
}
/* The factor of each of the thread's sums; several of them are in a row. */
static void read_factors(const Attend *t, V *to) {
    for (uint32_t i = 0; i < t->nsums; i++)
        to[i] = em_load(t->e, t->e->f32, factor_at(t, product_row(&t->second, i)), 4);
}

/* ---- elements of a row: a thread has pairs of neighbours, AT_ONCE elements at a time */
/* What is stored of an element; it adds to what is carried. */
typedef V Element(const Attend *, V row, V column, V x, V *carried);
typedef void Pair(const Attend *, V row, V column, const V *x);
static V pair_of(Emit *e, const V *x) {
    V both = em_1(e, "llvm.mlir.poison", em_vec(e, mlirValueGetType(x[0]), 2), 0, NULL, 0, NULL);
    return em_insert(e, x[1], em_insert(e, x[0], both, 0), 1);
}
static V each_element(const Attend *t, V row, V start, Element *rule, Pair *store) {
    Emit *e = t->e;
    uint32_t n = t->keys / ROW_THREADS;
    For f = em_for(e, em_i64(e, 0), em_i64(e, n), em_i64(e, AT_ONCE), 1, &start);
    kernel_enter(t->k);
    V carried = em_arg(&f.scope, 1), x[AT_ONCE], column[AT_ONCE];
    for (uint32_t i = 0; i < AT_ONCE; i += 2) {
        V first = em_add(e, times(&t->first, em_arg(&f.scope, 0), ROW_THREADS), em_i64(e, (int64_t)i * ROW_THREADS));
        column[i] = em_add(e, first, times(&t->first, t->member, 2));
        column[i + 1] = em_add(e, column[i], em_i64(e, 1));
        V both = em_load(e, em_vec(e, e->f32, 2), slab_at(&t->scores, row, column[i]), 8);
        for (uint32_t j = 0; j < 2; j++) x[i + j] = em_extract(e, both, j);
    }
    for (uint32_t i = 0; i < AT_ONCE; i++) {
        kernel_enter(t->k);
        x[i] = rule(t, row, column[i], x[i], &carried);
        kernel_leave(t->k);
        if (i % 2) store(t, row, column[i - 1], &x[i - 1]);
    }
    kernel_leave(t->k);
    em_for_end(e, &f, &carried, &start);
    return start;
}
V attend_score(const Attend *t, V column, V sum, bool itself) {
    Emit *e = t->e;
    Kernel *k = t->k;
    const Eqn *scores = t->a->scores;
    V all = kernel_dim(k, t->second.dot->k), key = em_add(t->e, t->from, column);
    kernel_bind(k, t->a->key, em_bin(e, "llvm.intr.smin", key, em_bin(e, "llvm.sub", all, em_i64(e, 1))));
    Reg x = dot_result(k, scores, DT_f32, reg(sum, true, k->x.depth));
    eval_remember(&k->x, scores->out.at[0], t->at.scores, x);
    V score = itself ? reg_v(x) : attend_value(t, t->a->score, t->at.score);
    if (dim_mod(k->x.plan->cx->types, t->second.dot->k, t->keys) != 0)
        score = em_select(e, em_cmpi(e, "slt", key, all), score, attend_f32(t, -INFINITY));
    return score;
}
/* The score; the larger one. */
static V element_score(const Attend *t, V row, V column, V sum, V *largest) {
    V score = attend_score(t, column, sum, false);
    *largest = attend_larger(t, *largest, score);
    return score;
}
static void store_scores(const Attend *t, V row, V column, const V *x) {
    em_store(t->e, pair_of(t->e, x), slab_at(&t->scores, row, column), 8);
}
/* The weight as the second product reads it; the sum. */
static V element_weight(const Attend *t, V row, V column, V score, V *sum) {
    Emit *e = t->e;
    const Product *p = &t->second;
    Dtype d = attend_dtype(t, dot_device_operand(p->dot, 0));
    V max = attend_value(t, t->a->max->out.at[0], t->at.max);
    Val weighed = t->a->weight->out.at[0];
    V by = power(t, em_bin(e, "llvm.fsub", score, max), attend_dtype(t, weighed) != DT_f32);
    attend_remember(t, weighed, t->at.weight, point_result(e, P_exp, attend_dtype(t, weighed), by));
    V weight = em_select(e, attend_minus_infinity(t, max), attend_f32(t, 0),
                         attend_value(t, t->a->sum->in.at[0], t->at.summed));
    V x = reg_v(kernel_convert(t->k, reg(weight, true, t->k->x.depth), DT_f32, d));
    *sum = em_bin(e, "llvm.fadd", *sum, weight);
    return em_to_memory(e, p->dot->as, gemm_convert(e, d, p->dot->as, x));
}
static void store_weights(const Attend *t, V row, V column, const V *x) {
    const Product *p = &t->second;
    uint32_t bytes = dtype_bytes(p->dot->as), apart = staged_along(p, 0) ? 1 : 2;
    for (uint32_t i = 0; i < apart; i++) {
        V at = em_add(t->e, column, em_i64(t->e, i));
        V slot = stage_slot(p, over(p, at, p->dot->tile.terms)), term = rest(p, at, p->dot->tile.terms);
        V to = staged_at(p, 0, slot, row, term);
        em_store(t->e, apart == 1 ? pair_of(t->e, x) : x[i], to, apart == 1 ? 2 * bytes : bytes);
    }
}
V attend_add_f64(const Attend *t, V x, V by, V more) {
    Emit *e = t->e;
    V sum[] = {x, em_cast(e, "llvm.fpext", e->f64, by), em_cast(e, "llvm.fpext", e->f64, more)};
    return em_fma(e, sum[0], sum[1], sum[2]);
}
static void weigh(const Attend *t, uint32_t pass, State *s) {
    Dtype d = attend_dtype(t, t->a->score);
    V row = row_of(t, pass), old = s->max[pass];
    attend_open_row(t, pass);
    V largest = each_element(t, row, attend_f32(t, -INFINITY), element_score, store_scores);
    threads_merge_lanes(t->k, ROW_THREADS, 1, &largest, attend_merge_max, &d);
    V max = point_combine(t->e, P_reduce_max, d, old, largest), by = factor(t, old, max);
    leave_factor(t, row, by);
    attend_remember(t, t->a->max->out.at[0], t->at.max, max);
    V sum = each_element(t, row, attend_f32(t, 0), element_weight, store_weights);
    threads_merge_lanes(t->k, ROW_THREADS, 1, &sum, attend_merge_sum, NULL);
    s->max[pass] = max, s->sum[pass] = attend_add_f64(t, s->sum[pass], by, sum);
    kernel_leave(t->k);
}

/* ---- tiles of keys */
static void add_keys(Attend *t, V tile, V tiles, State *s) {
    Emit *e = t->e;
    V sums[TILE_SUMS], factors[TILE_SUMS], next = em_add(t->e, tile, em_i64(e, 1));
    uint32_t n = product_sums(&t->first);
    t->from = times(&t->first, tile, t->keys);
    attend_meet(t, 0);
    bring(t, &t->second, 1, times(&t->second, tile, t->second.dot->tile.turns));
    attend_commit(t);
    for (uint32_t i = 0; i < n; i++) sums[i] = gemm_zero(e, DT_f32, 1);
    multiply(t, &t->first, n, sums);
    slab_store(&t->scores, 0, sums);
    threads_meet(t->k);
    If more = kernel_if(t->k, em_cmpi(e, "slt", next, tiles));
    bring_keys(t, times(&t->first, next, t->keys));
    kernel_if_end(t->k, &more);
    attend_commit(t);
    for (uint32_t i = 0; i < t->passes; i++) weigh(t, i, s);
    attend_meet(t, 1);
    read_factors(t, factors);
    for (uint32_t i = 0; i < t->nsums; i++) s->result[i] = em_bin(e, "llvm.fmul", s->result[i], factors[i]);
    multiply(t, &t->second, t->nsums, s->result);
}
enum { MOST_STATE = 2 * MOST_PASSES + TILE_SUMS };
static uint32_t pack(const Attend *t, const State *s, bool result, V *to) {
    memcpy(to, s->max, t->passes * sizeof *to);
    memcpy(to + t->passes, s->sum, t->passes * sizeof *to);
    if (result) memcpy(to + 2 * t->passes, s->result, t->nsums * sizeof *to);
    return 2 * t->passes + (result ? t->nsums : 0);
}
static void unpack(const Attend *t, const V *from, bool result, State *s) {
    memcpy(s->max, from, t->passes * sizeof *from);
    memcpy(s->sum, from + t->passes, t->passes * sizeof *from);
    if (result) memcpy(s->result, from + 2 * t->passes, t->nsums * sizeof *from);
}
/* A loop that carries the state; with or without the sums of the second product. */
static For loop(Attend *t, V from, V to, uint32_t step, bool result, State *s) {
    V all[MOST_STATE];
    uint32_t n = pack(t, s, result, all);
    V *kept = arena_new(t->e->arena, V, n);
    memcpy(kept, all, n * sizeof *all);
    For f = em_for(t->e, from, to, em_i64(t->e, step), n, kept);
    kernel_enter(t->k);
    for (uint32_t i = 0; i < n; i++) all[i] = em_arg(&f.scope, i + 1);
    unpack(t, all, result, s);
    return f;
}
static void loop_end(Attend *t, For *f, bool result, State *s) {
    V next[MOST_STATE], all[MOST_STATE];
    pack(t, s, result, next);
    kernel_leave(t->k);
    em_for_end(t->e, f, next, all);
    unpack(t, all, result, s);
}
static void add_tiles(Attend *t, V from, V to, V tiles, State *s) {
    if (t->second.dot->held) {
        attend_held_tiles(t, from, to, tiles, s);
        return;
    }
    For f = loop(t, from, to, 1, true, s);
    add_keys(t, em_arg(&f.scope, 0), tiles, s);
    loop_end(t, &f, true, s);
}
static void clear(const Attend *t, State *s) {
    for (uint32_t i = 0; i < t->nsums; i++) s->result[i] = gemm_zero(t->e, DT_f32, 1);
}
/* Gives each of the thread's sums what `by` has for its row. */
static void spread(const Attend *t, const V *by, V *to) {
    if (t->second.dot->held) {
        for (uint32_t i = 0; i < t->nsums; i++) to[i] = by[i / 2 % 2];
        return;
    }
    threads_meet(t->k);
    for (uint32_t i = 0; i < t->passes; i++) leave_factor(t, row_of(t, i), by[i]);
    threads_meet(t->k);
    read_factors(t, to);
}
/* Blocks of tiles; their sums are added to wide forms in the thread's own memory. */
static void add_blocks(Attend *t, V tiles, State *s) {
    Emit *e = t->e;
    MlirBlock was = kernel_at(t->k, 0);
    V wide = em_alloca(e, 8 * (int64_t)t->nsums, 8), factors[TILE_SUMS], old[MOST_PASSES], by[MOST_PASSES];
    e->block = was;
    gemm_clear(e, wide, 8 * (int64_t)t->nsums);
    For f = loop(t, em_i64(e, 0), tiles, t->a->block, false, s);
    V from = em_arg(&f.scope, 0), to = em_add(t->e, from, em_i64(e, t->a->block));
    memcpy(old, s->max, sizeof old);
    clear(t, s);
    add_tiles(t, from, em_bin(e, "llvm.intr.smin", to, tiles), tiles, s);
    for (uint32_t i = 0; i < t->passes; i++) by[i] = factor(t, old[i], s->max[i]);
    spread(t, by, factors);
    for (uint32_t i = 0; i < t->nsums; i++) {
        V at = em_gep(e, wide, em_i64(e, i), e->f64);
        em_store(e, attend_add_f64(t, em_load(e, e->f64, at, 8), factors[i], s->result[i]), at, 8);
    }
    loop_end(t, &f, false, s);
    for (uint32_t i = 0; i < t->nsums; i++) {
        V x = em_load(e, e->f64, em_gep(e, wide, em_i64(e, i), e->f64), 8);
        s->result[i] = em_cast(e, "llvm.fptrunc", e->f32, x);
    }
}

/* ---- results */
/* What the results of a row are divided or multiplied by. */
static V last_factor(const Attend *t, V max, V sum) {
    Emit *e = t->e;
    V none = attend_minus_infinity(t, max);
    attend_remember(t, t->a->max->out.at[0], t->at.max, max);
    attend_remember(t, t->a->score, t->at.score, max);
    V one = attend_value(t, t->a->sum->in.at[0], t->at.summed); /* the weight of the largest score in the program */
    V all = em_bin(e, "llvm.fmul", em_cast(e, "llvm.fptrunc", e->f32, sum), one);
    attend_remember(t, t->a->sum->out.at[0], t->at.sum, em_select(e, none, one, all));
    V by = attend_value(t, attention_by(t->a), t->at.by);
    const char *op = t->a->share->prim == P_div ? "llvm.fdiv" : "llvm.fmul";
    by = em_select(e, none, em_bin(e, "llvm.fadd", by, one), em_bin(e, op, by, one));
    V any = em_cmpi(e, "slt", em_i64(e, 0), kernel_dim(t->k, t->second.dot->k)); /* else the sum of no products is 0 */
    return em_select(e, any, by, attend_f32(t, 1));
}
static void scale(const Attend *t, State *s) {
    const char *op = t->a->share->prim == P_div ? "llvm.fdiv" : "llvm.fmul";
    V by[MOST_PASSES], own[TILE_SUMS];
    attend_meet(t, 0); /* without keys nobody has waited for the rows */
    for (uint32_t i = 0; i < t->passes; i++) {
        attend_open_row(t, i);
        V max = t->second.dot->held ? attend_held_max(t, s->max[i]) : s->max[i];
        by[i] = last_factor(t, max, s->sum[i]);
        kernel_leave(t->k);
    }
    spread(t, by, own);
    for (uint32_t i = 0; i < t->nsums; i++) s->result[i] = em_bin(t->e, op, s->result[i], own[i]);
    threads_meet(t->k);
}

/* ---- units */
static int64_t terms_bytes(const Product *p) { return (staged_bytes(p, 0) + staged_bytes(p, 1)) * p->dot->tile.turns; }
/* Shared memory: the terms of both products, the scores, the factors; in the end the result. */
static void share(Attend *t) {
    Emit *e = t->e;
    int64_t at[] = {terms_bytes(&t->first), terms_bytes(&t->second), slab_bytes(&t->first),
                    (int64_t)t->first.dot->tile.rows * 4};
    int64_t all = at[0] + at[1] + at[2] + at[3], result = slab_bytes(&t->second);
    assert(all <= ATTENTION_BYTES && result <= ATTENTION_BYTES);
    t->first.shared = threads_share(t->k, all > result ? all : result);
    t->second.shared = em_gep(e, t->first.shared, em_i64(e, at[0]), e->i8);
    t->scores = t->first;
    t->scores.shared = em_gep(e, t->second.shared, em_i64(e, at[1]), e->i8);
    t->factors = em_gep(e, t->scores.shared, em_i64(e, at[2]), e->i8);
}
static Attend attend(Kernel *k, V unit) {
    Plan *p = k->x.plan;
    const DeviceDot *d = k->x.step->dot->device;
    Attend t = {.k = k, .e = k->e, .a = d->attention, .second = product_of(k, unit)};
    attention_at(p, k->x.step, &t.at);
    t.first = t.second;
    t.first.dot = t.a->dot, t.first.acc = t.a->dot->sums;
    attention_operands(p, k->x.step, t.first.index);
    t.keys = t.a->dot->tile.columns;
    t.nsums = product_sums(&t.second);
    assert(t.nsums <= TILE_SUMS);
    if (d->held) {
        attend_held_share(&t);
        return t;
    }
    t.passes = d->tile.rows / ROWS_AT_ONCE;
    assert(t.passes >= 1 && t.passes <= MOST_PASSES && t.keys % (ROW_THREADS * AT_ONCE) == 0);
    t.member = rest(&t.first, thread_number(k), ROW_THREADS);
    share(&t);
    return t;
}
/* Brings the rows, and the first keys if there are any. */
static void open_terms(Attend *t, V tiles) {
    V zero = em_i64(t->e, 0);
    bring(t, &t->first, 0, zero);
    If any = kernel_if(t->k, em_cmpi(t->e, "slt", zero, tiles));
    bring_keys(t, zero);
    kernel_if_end(t->k, &any);
    attend_commit(t);
}
void device_attention(Kernel *k, V unit, V end) {
    Emit *e = k->e;
    Attend t = attend(k, unit);
    State s;
    V zero = em_i64(e, 0), tiles = kernel_dim(k, dot_blocks(k->x.plan, t.second.dot->k, t.keys));
    (t.second.dot->held ? attend_held_open : open_terms)(&t, tiles);
    for (uint32_t i = 0; i < t.passes; i++) s.max[i] = attend_f32(&t, -INFINITY), s.sum[i] = em_float(e, e->f64, 0);
    clear(&t, &s);
    if (t.a->block)
        add_blocks(&t, tiles, &s);
    else
        add_tiles(&t, zero, tiles, tiles, &s);
    scale(&t, &s);
    Product result = t.second;
    result.shared = t.second.dot->held ? t.first.rows : t.first.shared;
    product_finish(&result, s.result);
}
