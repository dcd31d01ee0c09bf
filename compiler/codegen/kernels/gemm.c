/* Register tiles of matrix products. A tile keeps its sums in registers over the whole contraction, or over a block of
   it and then adds them to their wide forms in memory; the order of the additions depends only on the shape. */
#include "gemm.h"
#include "../cost.h"
#include "point.h"
#include "wide.h"
#include <assert.h>
#include <inttypes.h>
#include <mlir-c/BuiltinAttributes.h>
#include <mlir-c/BuiltinTypes.h>

/* ---- arithmetic of the accumulator */
static bool is_float(Dtype d) { return dtype_info[d].kind == DK_FLOAT; }

V gemm_fma(Emit *e, Dtype acc, V x, V y, V sum) {
    if (is_float(acc) && e->target->fma) return em_fma(e, x, y, sum);
    if (is_float(acc)) return em_bin(e, "llvm.fadd", sum, em_bin(e, "llvm.fmul", x, y));
    if (acc == DT_bool) return em_bin(e, "llvm.or", sum, em_bin(e, "llvm.and", x, y));
    return em_bin(e, "llvm.add", sum, em_bin(e, "llvm.mul", x, y));
}
V gemm_add(Emit *e, Dtype acc, V x, V y) {
    return em_bin(e, is_float(acc) ? "llvm.fadd" : acc == DT_bool ? "llvm.or" : "llvm.add", x, y);
}
V gemm_zero(Emit *e, Dtype acc, uint32_t w) {
    MlirType t = em_vec(e, em_register_type(e, acc), w);
    return is_float(acc) ? em_float(e, t, 0) : em_int(e, t, 0);
}
V gemm_convert(Emit *e, Dtype from, Dtype acc, V x) {
    Point p = {.in = from, .out = acc};
    return point_convert_element_type(e, &p, &x);
}

/* ---- the wide forms */
/* The address of value `i` of the wide forms of w lanes. */
static V wide_part(Emit *e, V p, uint32_t w, uint32_t i) { return i ? em_gep(e, p, em_i64(e, i * w), e->f64) : p; }
/* Volatile: LLVM would promote the stack memory to far more registers than there are. */
static void wide_load(Emit *e, Dtype acc, V p, uint32_t w, V *wide) {
    Attr a[2] = {{"alignment", mlirIntegerAttrGet(e->i64, 8)}, {"volatile_", mlirUnitAttrGet(e->mlir)}};
    for (uint32_t i = 0; i < wide_values(acc); i++) {
        V at = wide_part(e, p, w, i);
        wide[i] = em_1(e, "llvm.load", em_vec(e, e->f64, w), 1, &at, 2, a);
    }
}
static void wide_store(Emit *e, Dtype acc, V p, const V *wide) {
    Attr a[2] = {{"alignment", mlirIntegerAttrGet(e->i64, 8)}, {"volatile_", mlirUnitAttrGet(e->mlir)}};
    for (uint32_t i = 0; i < wide_values(acc); i++) {
        V o[2] = {wide[i], wide_part(e, p, em_width(wide[i]), i)};
        em_op(e, "llvm.store", &(Op){0, NULL, 2, o, 2, a, 0, NULL});
    }
}
void gemm_clear_bytes(Emit *e, V p, V bytes) {
    V o[3] = {p, em_int(e, e->i8, 0), bytes};
    Attr fixed = {"isVolatile", mlirIntegerAttrGet(e->i1, 0)};
    em_op(e, "llvm.intr.memset", &(Op){0, NULL, 3, o, 1, &fixed, 0, NULL});
}
/* LLVM makes a loop over bytes of a memset on a device. */
void gemm_clear(Emit *e, V p, int64_t bytes) {
    V zero = em_float(e, e->f64, 0);
    if (!e->target->device) gemm_clear_bytes(e, p, em_i64(e, bytes));
    for (int64_t i = 0; i < bytes / 8 && e->target->device; i++) em_store(e, zero, wide_part(e, p, 1, (uint32_t)i), 8);
}
void gemm_widen(Emit *e, Dtype acc, V p, V x) {
    V wide[WIDE_VALUES];
    wide_load(e, acc, p, em_width(x), wide);
    wide_add(e, acc, x, wide);
    wide_store(e, acc, p, wide);
}
V gemm_narrow(Emit *e, Dtype acc, V p, V x) {
    V wide[WIDE_VALUES];
    wide_load(e, acc, p, em_width(x), wide);
    wide_add(e, acc, x, wide);
    return wide_value(e, acc, wide);
}

/* ---- loads */
typedef struct {
    Emit *e;
    const Contraction *c;
    const V *a, *b;
    uint32_t rows, columns, w, sets;
    V mask;
    bool whole; /* the innermost loop certainly consists of whole vectors */
    bool apart; /* its last block has separate code, whose bounds are computed outside the tiles */
} Tile;

static V load(const Tile *t, Dtype d, V p, V offset, uint32_t w) {
    Emit *e = t->e;
    MlirType elem = em_memory_type(e, d), type = em_vec(e, elem, w);
    V at = em_gep(e, p, offset, elem), v;
    if (t->mask.ptr && w > 1) {
        V none = em_1(e, "llvm.mlir.zero", type, 0, NULL, 0, NULL);
        v = em_masked_load(e, type, at, t->mask, none, dtype_bytes(d));
    } else
        v = em_load(e, type, at, dtype_bytes(d));
    return gemm_convert(e, d, t->c->acc, em_to_register(e, d, v));
}

/* ---- words */
static V lanes_of(Emit *e, V v, uint32_t from, uint32_t n) {
    return em_width(v) == 1 ? em_broadcast(e, v, n) : em_part(e, v, from, n);
}
/* An instruction on whole vectors, with i32 results. */
static V instruction(Emit *e, const char *name, uint32_t n, const V *o, uint32_t words) {
    int32_t segments[2] = {(int32_t)n, 0};
    Attr a[3] = {{"intrin", mlirStringAttrGet(e->mlir, mlirStringRefCreateFromCString(name))},
                 {"operandSegmentSizes", mlirDenseI32ArrayGet(e->mlir, 2, segments)},
                 {"op_bundle_sizes", mlirDenseI32ArrayGet(e->mlir, 0, NULL)}};
    return em_1(e, "llvm.call_intrinsic", em_vec(e, e->i32, words), n, o, 3, a);
}
/* The products of the parts of each word, added to `sum`: of one vector. */
typedef V VectorRule(Emit *, V x, V y, V sum);
/* Unsigned bytes by signed ones. */
static V bytes_vector(Emit *e, V x, V y, V sum) {
    uint32_t words = em_width(sum);
    MlirType t = em_vec(e, e->i8, 4 * words);
    V o[3] = {sum, em_cast(e, "llvm.bitcast", t, x), em_cast(e, "llvm.bitcast", t, y)};
    return instruction(e, "llvm.x86.avx512.vpdpbusd.512", 3, o, words);
}
/* Signed halves. */
static V halves_vector(Emit *e, V x, V y, V sum) {
    uint32_t words = em_width(sum);
    MlirType t = em_vec(e, e->i16, 2 * words);
    V o[2] = {em_cast(e, "llvm.bitcast", t, x), em_cast(e, "llvm.bitcast", t, y)};
    const char *name = words == 16  ? "llvm.x86.avx512.pmaddw.d.512"
                       : words == 8 ? "llvm.x86.avx2.pmadd.wd"
                                    : "llvm.x86.sse2.pmadd.wd";
    return em_bin(e, "llvm.add", instruction(e, name, 2, o, words), sum);
}
static V dot_parts(Emit *e, VectorRule *rule, V x, V y, V sum) {
    uint32_t words = e->target->vector_bytes / 4, w = em_width(sum), parts = w > words ? w / words : 1;
    V part[MAX_LANES];
    for (uint32_t i = 0; i < parts; i++) {
        uint32_t from = i * words;
        part[i] = rule(e, lanes_of(e, x, from, words), lanes_of(e, y, from, words), lanes_of(e, sum, from, words));
    }
    for (; parts > 1; parts /= 2)
        for (uint32_t i = 0; i < parts / 2; i++) part[i] = em_joined(e, part[2 * i], part[2 * i + 1]);
    return w == 1 ? em_extract(e, part[0], 0) : w < words ? lanes_of(e, part[0], 0, w) : part[0];
}
/* x of A times y of B, added to `sum`. */
static V term(const Tile *t, V x, V y, V sum) {
    const Contraction *c = t->c;
    if (c->halves) return dot_parts(t->e, halves_vector, x, y, sum);
    if (!c->words) return gemm_fma(t->e, c->acc, x, y, sum);
    assert(t->e->target->words);
    return c->swapped ? dot_parts(t->e, bytes_vector, y, x, sum) : dot_parts(t->e, bytes_vector, x, y, sum);
}

/* One step of the contraction, at offsets oa and ob from the rows and columns; `sums` has rows·columns registers. */
typedef void StepRule(const Tile *, V oa, V ob, V *sums);

static void outer_step(const Tile *t, V oa, V ob, V *sums) {
    V y = load(t, t->c->b, t->b[0], ob, t->w);
    for (uint32_t r = 0; r < t->rows; r++) {
        V x = em_broadcast(t->e, load(t, t->c->a, t->a[r], oa, 1), t->w);
        sums[r] = term(t, x, y, sums[r]);
    }
}
static void inner_step(const Tile *t, V oa, V ob, V *sums) {
    V y[GEMM_TILE];
    for (uint32_t i = 0; i < t->columns; i++) y[i] = load(t, t->c->b, t->b[i], ob, t->w);
    for (uint32_t r = 0; r < t->rows; r++) {
        V x = load(t, t->c->a, t->a[r], oa, t->w);
        for (uint32_t i = 0; i < t->columns; i++) {
            V *s = &sums[r * t->columns + i];
            *s = term(t, x, y[i], *s);
        }
    }
}

/* ---- the loops of the contraction */

/* The innermost loop: `stride` elements a step, from offsets oa and ob on; a set of sums is `per_set` registers. */
typedef struct {
    StepRule *rule;
    uint32_t stride, per_set;
    V oa, ob;
} Steps;
/* Steps [from, from + n·stride), written out; the k-th adds to set k mod sets. */
static void unrolled(const Tile *t, const Steps *s, V from, uint32_t n, V *sums) {
    Emit *e = t->e;
    const Contraction *c = t->c;
    uint32_t l = c->n - 1;
    for (uint32_t u = 0; u < n; u++) {
        V k = u ? em_add(e, from, em_i64(e, u * s->stride)) : from;
        V a = em_add(e, s->oa, em_mul(e, k, c->sa[l])), b = em_add(e, s->ob, em_mul(e, k, c->sb[l]));
        s->rule(t, a, b, sums + u % t->sets * s->per_set);
    }
}
static void loop(const Tile *t, const Steps *s, V lo, V hi, uint32_t n, V *sums) {
    uint32_t total = s->per_set * t->sets;
    For f = em_for(t->e, lo, hi, em_i64(t->e, n * s->stride), total, sums);
    V next[GEMM_SUMS] = {{NULL}};
    for (uint32_t i = 0; i < total; i++) next[i] = em_arg(&f.scope, i + 1);
    unrolled(t, s, em_arg(&f.scope, 0), n, next);
    em_for_end(t->e, &f, next, sums);
}
/* The innermost loop, `stride` elements per step; *done: where it stopped. */
static V innermost(const Tile *t, StepRule *rule, uint32_t stride, V oa, V ob, uint32_t per_set, V *sums) {
    Emit *e = t->e;
    const Contraction *c = t->c;
    Dim k = c->known[c->n - 1];
    const Steps all_steps = {rule, stride, per_set, oa, ob};
    uint32_t group = t->sets > c->at_once ? t->sets : c->at_once;
    V zero = em_i64(e, 0), count = c->count[c->n - 1];
    if (c->whole_turns) {
        loop(t, &all_steps, zero, count, group, sums);
        return count;
    }
    if (dim_is_const(k)) {
        uint32_t few = TURNS_WRITTEN_OUT * c->at_once;
        uint32_t steps = (uint32_t)(k / stride > few ? k / stride % group : k / stride);
        Dim main = (k / stride - steps) * stride;
        if (main) loop(t, &all_steps, zero, em_i64(e, main), group, sums);
        unrolled(t, &all_steps, em_i64(e, main), steps, sums);
        return em_i64(e, main + (Dim)steps * stride);
    }
    V main = em_bin(e, "llvm.sub", count, em_bin(e, "llvm.srem", count, em_i64(e, group * stride)));
    V all = em_bin(e, "llvm.sub", count, em_bin(e, "llvm.srem", count, em_i64(e, stride)));
    loop(t, &all_steps, zero, main, group, sums);
    loop(t, &all_steps, main, all, 1, sums);
    return all;
}

typedef void Innermost(const Tile *, V oa, V ob, V *sums, uint32_t n);

/* Adds up the sets of partial sums, a power of two of them. */
static void add_sets(const Tile *t, uint32_t n, V *sums) {
    for (uint32_t half = t->sets / 2; half; half /= 2)
        for (uint32_t i = 0; i < half * n; i++) sums[i] = gemm_add(t->e, t->c->acc, sums[i], sums[i + half * n]);
}
static V wide_at(const Tile *t, uint32_t i, uint32_t w) {
    return em_gep(t->e, t->c->wide, em_i64(t->e, (int64_t)i * w * wide_values(t->c->acc)), t->e->f64);
}
/* Adds the n sums to their wide forms and resets them, unless the block is the last. */
static void fold(const Tile *t, V last, V *sums, uint32_t n) {
    Emit *e = t->e;
    uint32_t w = em_width(sums[0]), one = n / t->sets;
    V sum[GEMM_SUMS];
    memcpy(sum, sums, n * sizeof *sums);
    If f = em_if(e, last);
    em_else(e, &f, n, sums);
    add_sets(t, one, sum);
    for (uint32_t i = 0; i < one; i++) gemm_widen(e, t->c->acc, wide_at(t, i, w), sum[i]);
    for (uint32_t i = 0; i < n; i++) sum[i] = gemm_zero(e, t->c->acc, w);
    em_if_end(e, &f, sum, sums);
}
static void nest(const Tile *t, uint32_t level, Innermost *body, V oa, V ob, V *sums, uint32_t n);

/* Steps [from, from + count) of a loop, the offsets in the operands before it. */
typedef struct {
    uint32_t level;
    V oa, ob, from, count;
    Dim known; /* of count */
} Range;
static void in_range(const Tile *t, Range r, Innermost *body, V *sums, uint32_t n) {
    Emit *e = t->e;
    Contraction block = *t->c;
    Tile part = *t;
    uint32_t l = r.level;
    block.known[l] = r.known, block.count[l] = r.count;
    block.block[l] = (V){NULL};
    part.c = &block;
    part.whole |= l + 1 == block.n && dim_is_const(r.known) && r.known % t->w == 0;
    nest(&part, l, body, em_add(e, r.oa, em_mul(e, r.from, block.sa[l])),
         em_add(e, r.ob, em_mul(e, r.from, block.sb[l])), sums, n);
}
/* The blocks of a cut loop; the last one stays in the registers. */
static void in_blocks(const Tile *t, Range r, Innermost *body, V *sums, uint32_t n) {
    Emit *e = t->e;
    V count = r.count, step = t->c->block[r.level], next[GEMM_SUMS], last = count;
    Dim known = r.known, size = t->c->known_block[r.level], rest = GEMM_UNKNOWN;
    bool both = dim_is_const(known) && dim_is_const(size), even = both && known % size == 0;
    bool apart = t->apart && r.level + 1 == t->c->n && !even;
    if (apart) {
        V before = em_bin(e, "llvm.sub", count, em_i64(e, 1));
        last = em_bin(e, "llvm.sub", before, em_bin(e, "llvm.srem", before, step));
    }
    For f = em_for(e, em_i64(e, 0), last, step, n, sums);
    V to = em_add(e, em_arg(&f.scope, 0), step);
    r.from = em_arg(&f.scope, 0);
    r.count = step, r.known = size;
    if (!apart && !even) {
        r.count = em_bin(e, "llvm.sub", em_bin(e, "llvm.intr.smin", to, count), r.from);
        r.known = GEMM_UNKNOWN;
    }
    for (uint32_t i = 0; i < n; i++) next[i] = em_arg(&f.scope, i + 1);
    in_range(t, r, body, next, n);
    fold(t, apart ? em_int(e, e->i1, 0) : em_cmpi(e, "sge", to, count), next, n);
    em_for_end(e, &f, next, sums);
    if (!apart) return;
    if (both) rest = known - (known - 1) / size * size;
    r.from = last, r.count = em_bin(e, "llvm.sub", count, last), r.known = rest;
    in_range(t, r, body, sums, n);
}
/* The loops around the innermost one, which `body` writes. */
static void nest(const Tile *t, uint32_t level, Innermost *body, V oa, V ob, V *sums, uint32_t n) {
    Emit *e = t->e;
    const Contraction *c = t->c;
    if (level < c->cut && c->block[level].ptr) {
        Range all = {level, oa, ob, {NULL}, c->count[level], c->known[level]};
        in_blocks(t, all, body, sums, n);
        return;
    }
    if (level + 1 >= c->n) {
        body(t, oa, ob, sums, n);
        return;
    }
    For f = em_for(e, em_i64(e, 0), c->count[level], em_i64(e, 1), n, sums);
    V next[GEMM_SUMS], k = em_arg(&f.scope, 0);
    for (uint32_t i = 0; i < n; i++) next[i] = em_arg(&f.scope, i + 1);
    nest(t, level + 1, body, em_add(e, oa, em_mul(e, k, c->sa[level])), em_add(e, ob, em_mul(e, k, c->sb[level])), next,
         n);
    em_for_end(e, &f, next, sums);
}
/* Is there more than one block? */
static V several(const Tile *t) {
    Emit *e = t->e;
    V any = em_int(e, e->i1, t->c->several);
    for (uint32_t i = 0; i < t->c->cut && !t->c->several; i++)
        any = em_bin(e, "llvm.or", any, em_cmpi(e, "sgt", t->c->count[i], t->c->block[i]));
    return any;
}
/* The whole contraction: n registers for each of the sets, then n in all. */
static void contract(const Tile *t, Innermost *body, uint32_t n, V *sums) {
    Emit *e = t->e;
    Dtype acc = t->c->acc;
    V zero = em_i64(e, 0), any = {NULL};
    assert(t->rows <= GEMM_TILE && t->columns <= GEMM_TILE && n * t->sets <= GEMM_SUMS && t->c->n <= GEMM_LOOPS);
    for (uint32_t i = 0; i < n * t->sets; i++) sums[i] = gemm_zero(e, acc, t->w);
    if (t->c->cut) {
        any = several(t);
        If f = em_if(e, any);
        gemm_clear(e, t->c->wide, wide_bytes(acc, n * t->w));
        em_else(e, &f, 0, NULL);
        em_if_end(e, &f, NULL, NULL);
    }
    nest(t, 0, body, zero, zero, sums, n * t->sets);
    add_sets(t, n, sums);
    if (!t->c->cut) return;
    V all[GEMM_SUMS];
    If f = em_if(e, any);
    for (uint32_t i = 0; i < n; i++) all[i] = gemm_narrow(e, acc, wide_at(t, i, t->w), sums[i]);
    em_else(e, &f, n, all);
    em_if_end(e, &f, sums, sums);
}

/* ---- lanes along the columns */
static void outer_body(const Tile *t, V oa, V ob, V *sums, uint32_t n) {
    innermost(t, outer_step, 1, oa, ob, t->rows, sums);
}
static void outer_sums(Emit *e, const Contraction *c, const GemmTile *tile, V *acc) {
    Tile t = {.e = e, .c = c, .a = tile->a, .b = tile->b, .rows = tile->rows, .columns = 1};
    t.w = tile->w, t.sets = tile->sets, t.mask = tile->mask;
    V sums[GEMM_SUMS] = {{NULL}};
    contract(&t, outer_body, t.rows, sums);
    for (uint32_t i = 0; i < t.rows; i++) acc[i] = sums[i];
}

/* The same by a function of where A and B begin, of memory for the sums, of the number of terms and of those strides
   that are not built into it. */
enum { CALL_A, CALL_B, CALL_SUMS, CALL_TERMS, CALL_STRIDES };
enum { ROW_STRIDE, A_STRIDE, B_STRIDE, STRIDES };
typedef struct {
    V at[STRIDES];
    bool given[STRIDES]; /* by an argument */
    uint32_t n;          /* of those */
} Strides;
static Strides strides_of(const Contraction *c, const GemmTile *tile, Text *name) {
    Strides s = {.at = {tile->row, c->sa[0], c->sb[0]}};
    for (uint32_t i = 0; i < STRIDES; i++) {
        int64_t n = 0;
        s.given[i] = !em_known(s.at[i], &n) || n < 0 || n > tile->w; /* those of packed operands are no more */
        s.n += s.given[i];
        if (s.given[i])
            text_put(name, S(".s"));
        else
            text_add(name, ".%" PRId64, n);
    }
    return s;
}
static V sum_at(Emit *e, const Contraction *c, const GemmTile *tile, V area, uint32_t row) {
    return em_gep(e, area, em_i64(e, (int64_t)row * tile->w), em_memory_type(e, c->acc));
}
static void write_outer(Emit *e, const Contraction *c, const GemmTile *tile, const Strides *s, Str name) {
    MlirType *types = arena_new(e->arena, MlirType, CALL_STRIDES + STRIDES);
    for (uint32_t i = 0; i < CALL_STRIDES + s->n; i++) types[i] = i < CALL_TERMS ? e->ptr : e->i64;
    Function f = em_function(e, name, (MlirType){NULL}, CALL_STRIDES + s->n, types, false);
    V stride[STRIDES], rows[GEMM_TILE], b = em_arg(&f.scope, CALL_B), sums[GEMM_TILE];
    for (uint32_t i = 0, next = CALL_STRIDES; i < STRIDES; i++) {
        int64_t known = 0;
        em_known(s->at[i], &known);
        stride[i] = s->given[i] ? em_arg(&f.scope, next++) : em_i64(e, known);
    }
    Contraction own = *c;
    own.sa[0] = stride[A_STRIDE], own.sb[0] = stride[B_STRIDE], own.count[0] = em_arg(&f.scope, CALL_TERMS);
    own.known[0] = GEMM_UNKNOWN, own.whole_turns = true;
    for (uint32_t r = 0; r < tile->rows; r++)
        rows[r] =
            em_gep(e, em_arg(&f.scope, CALL_A), em_mul(e, stride[ROW_STRIDE], em_i64(e, r)), em_memory_type(e, c->a));
    GemmTile inner = {.a = rows, .b = &b, .rows = tile->rows, .w = tile->w, .sets = 1};
    outer_sums(e, &own, &inner, sums);
    for (uint32_t r = 0; r < tile->rows; r++)
        em_store(e, sums[r], sum_at(e, c, tile, em_arg(&f.scope, CALL_SUMS), r), dtype_bytes(c->acc));
    em_function_end(e, &f, (V){NULL});
}
static void call_outer(Emit *e, const Contraction *c, const GemmTile *tile, V *acc) {
    Text text = {.arena = e->arena};
    assert(c->n == 1 && !c->cut && tile->sets == 1 && !tile->mask.ptr && c->known[0] % c->at_once == 0);
    text_add(&text, "product.%s.%s.%s.%ux%u", dtype_info[c->acc].name, dtype_info[c->a].name, dtype_info[c->b].name,
             tile->rows, tile->w);
    Strides s = strides_of(c, tile, &text);
    text_add(&text, ".%u%s", c->at_once, e->level);
    Str name = {text.at, text.n};
    bool fresh;
    intern(&e->declared, name.at, name.n, &fresh);
    if (fresh) write_outer(e, c, tile, &s, name);
    V args[CALL_STRIDES + STRIDES] = {tile->a[0], tile->b[0], tile->area, c->count[0]};
    for (uint32_t i = 0, n = CALL_STRIDES; i < STRIDES; i++)
        if (s.given[i]) args[n++] = s.at[i];
    em_call_local(e, name, (MlirType){NULL}, CALL_STRIDES + s.n, args);
    MlirType type = em_vec(e, em_memory_type(e, c->acc), tile->w);
    for (uint32_t r = 0; r < tile->rows; r++)
        acc[r] = em_load(e, type, sum_at(e, c, tile, tile->area, r), dtype_bytes(c->acc));
}
void gemm_outer(Emit *e, const Contraction *c, const GemmTile *tile, V *acc) {
    (tile->area.ptr ? call_outer : outer_sums)(e, c, tile, acc);
}

/* ---- lanes along the contraction */

/* Lanes 0, 2, 4, … plus lanes 1, 3, 5, … of a, then of b: n lanes. */
static V add_pairs(Emit *e, Dtype acc, V a, V b, uint32_t n) {
    int64_t even[MAX_LANES], odd[MAX_LANES];
    for (uint32_t l = 0; l < n; l++) even[l] = 2 * l, odd[l] = 2 * l + 1;
    return gemm_add(e, acc, em_shuffle(e, a, b, n, even), em_shuffle(e, a, b, n, odd));
}
/* The sums over the lanes of n vectors, as one vector of n lanes; n and the width are powers of two, n ≤ width. */
static V sum_lanes(Emit *e, Dtype acc, V *v, uint32_t n) {
    uint32_t w = em_width(v[0]);
    for (uint32_t m = n; m > 1; m /= 2)
        for (uint32_t i = 0; i < m / 2; i++) v[i] = add_pairs(e, acc, v[2 * i], v[2 * i + 1], w);
    V sum = v[0];
    for (; w > n && w > 2; w /= 2) sum = add_pairs(e, acc, sum, sum, w / 2);
    return w > n ? gemm_add(e, acc, em_extract(e, sum, 0), em_extract(e, sum, 1)) : sum;
}
/* Whole vectors, then the remainder in one masked step. */
static void inner_body(const Tile *t, V oa, V ob, V *sums, uint32_t n) {
    Emit *e = t->e;
    const Contraction *c = t->c;
    uint32_t l = c->n - 1;
    V done = innermost(t, inner_step, t->w, oa, ob, t->rows * t->columns, sums);
    if (t->whole) return;
    V left = em_bin(e, "llvm.sub", c->count[l], done);
    V n32 = em_broadcast(e, em_cast(e, "llvm.trunc", e->i32, left), t->w);
    Tile rest = *t;
    rest.mask = em_cmpi(e, "slt", em_lanes(e, e->i32, t->w), n32);
    inner_step(&rest, em_add(e, oa, done), em_add(e, ob, done), sums);
}
void gemm_inner(Emit *e, const Contraction *c, const GemmTile *tile, V *acc) {
    Tile t = {.e = e, .c = c, .a = tile->a, .b = tile->b, .rows = tile->rows, .columns = tile->columns};
    t.w = tile->w, t.sets = tile->sets;
    Dim k = c->known[c->n - 1];
    t.whole = t.w == 1 || (dim_is_const(k) && k % t.w == 0);
    t.apart = true;
    V sums[GEMM_SUMS] = {{NULL}};
    contract(&t, inner_body, t.rows * t.columns, sums);
    for (uint32_t r = 0; r < t.rows; r++) acc[r] = sum_lanes(e, c->acc, sums + r * t.columns, t.columns);
}
