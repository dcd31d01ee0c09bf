#include "../cost.h"
#include "kernel.h"
#include "../plan/dot.h"
#include "../plan/sums.h"
#include "gemm.h"
#include "point.h"
#include <assert.h>
#include <mlir-c/BuiltinAttributes.h>

/* The kernel of a DOT step. A unit is a block of rows and columns at one point of the outer loops: its columns of B are
   packed if that pays, then tile after tile is computed in registers and finished at once: the epilogue of the step is
   evaluated on the tile's rows and stored. */

typedef struct {
    Kernel *k;
    Emit *e;
    const Dot *dot;
    V a, b;          /* addresses at the unit's outer index, of row 0, column 0 */
    V pack, partial; /* of the unit's packed columns, of its partial sums; ptr NULL: none */
    V folded, fold;  /* of their wide forms, ptr NULL: none; i1: the block's sums go there */
    V rows, group;   /* of the packed rows of a group of tiles, its first row; rows.ptr NULL: none */
    V row_stride, column_stride;
    V ka, kb, terms; /* with partial sums: the offsets in A and B and the number of the current terms */
    Dim known_terms;
    bool last;                /* these are the last terms */
    V any, several;           /* i1: is there a block of terms, is there more than one; NULL: certainly */
    V r0, r1, c0, c1, p0, p1; /* the unit's rows, columns and points */
    V point;                  /* with partial sums: the number of the point in the unit */
    V nunits;                 /* … and how many units these are */
    Ix index[MAX_RANK];       /* of the result */
    Val result;
} Unit;

static V plus(Unit *u, V a, V b) { return em_bin(u->e, "llvm.add", a, b); }
static V times(Unit *u, V a, V b) { return em_bin(u->e, "llvm.mul", a, b); }
static V num(Unit *u, int64_t n) { return em_i64(u->e, n); }

/* ---- finishing a tile */
static bool holds(Dtype y, Dtype x) {
    const FloatFormat *a = &float_format[x], *b = &float_format[y];
    return a->exponent <= b->exponent && a->mantissa <= b->mantissa;
}
Reg dot_result(Kernel *k, const Eqn *e, Dtype acc, Reg sum) {
    const Ctx *cx = k->x.plan->cx;
    Dtype x = val_array(cx, e->in.at[0])->dtype, y = val_array(cx, e->out.at[0])->dtype;
    Dtype own = holds(y, x) ? y : x;
    Dtype via[] = {dtype_arithmetic(own), own, y};
    for (uint32_t i = 0; i < 3; acc = via[i++]) sum = kernel_convert(k, sum, acc, via[i]);
    if (!point_is_float(y)) sum.v = em_round(k->e, y, reg_v(sum)).ptr;
    return sum;
}
static void finish_row(Unit *u, V row, V acc) {
    Kernel *k = u->k;
    kernel_enter(k);
    if (u->dot->row) kernel_bind(k, u->dot->row, row);
    Reg sum = reg(acc, !u->dot->column, k->x.depth);
    sum = dot_result(k, k->x.step->e, u->dot->acc, sum);
    eval_remember(&k->x, u->result, u->index, sum);
    kernel_stores(k);
    kernel_leave(k);
}
/* Rows [row, row + n), unrolled; with `valid` only that many of them, at least one. */
static void finish_written_out(Unit *u, V row, uint32_t n, V valid, const V *acc) {
    for (uint32_t i = 0; i < n; i++) {
        V r = plus(u, row, num(u, i));
        if (!valid.ptr || i == 0) {
            finish_row(u, r, acc[i]);
            continue;
        }
        If f = em_if(u->e, em_cmpi(u->e, "slt", num(u, i), valid));
        finish_row(u, r, acc[i]);
        em_else(u->e, &f, 0, NULL);
        em_if_end(u->e, &f, NULL, NULL);
    }
}
/* The same in a loop, through memory, if the epilogue is long. */
static void finish_in_loop(Unit *u, V row, uint32_t n, V valid, const V *acc) {
    Emit *e = u->e;
    Dtype d = u->dot->acc;
    uint32_t w = u->k->w;
    MlirType elem = em_memory_type(e, d);
    V scratch = kernel_buffer(u->k, u->dot->tile);
    for (uint32_t i = 0; i < n; i++)
        em_store(e, em_to_memory(e, d, acc[i]), em_gep(e, scratch, num(u, (int64_t)i * w), elem), dtype_bytes(d));
    For f = em_for(e, num(u, 0), valid.ptr ? valid : num(u, n), num(u, 1), 0, NULL);
    V i = em_arg(&f.scope, 0), p = em_gep(e, scratch, times(u, i, num(u, w)), elem);
    finish_row(u, plus(u, row, i), em_to_register(e, d, em_load(e, em_vec(e, elem, w), p, dtype_bytes(d))));
    em_for_end(e, &f, NULL, NULL);
}

/* ---- one tile */
_Static_assert((int)GEMM_LOOPS >= COMPILED_RANK, "a loop for each axis that is contracted");
/* The terms of packed operands lie one after the other, so that one loop can go through all of them. */
static void merge_loops(const Unit *u, Contraction *c, uint32_t n, uint32_t w, V terms) {
    Dim all = 1;
    for (uint32_t i = 0; i < c->n; i++) all = dim_mul(u->k->x.plan->cx->types, all, c->known[i]);
    if (!dim_is_const(all)) return;
    c->n = 1, c->known[0] = all, c->count[0] = terms;
    c->sa[0] = em_i64(u->e, n), c->sb[0] = em_i64(u->e, w);
}
/* A term of an operand that is packed takes n or w elements; 0: it is read in place. */
static Contraction contraction(Unit *u, uint32_t n, uint32_t w) {
    const Dot *dot = u->dot;
    Contraction c = {.a = n ? dot->acc : dot->a.dtype, .b = w ? dot->acc : dot->b.dtype, .acc = dot->acc};
    c.words = dot->words, c.halves = dot->halves, c.swapped = dot->swapped;
    c.at_once = dot->rows_meet ? TERMS_MEETING : TERMS_AT_ONCE;
    V terms = num(u, 1);
    c.n = dot->sums.n;
    assert(c.n <= GEMM_LOOPS);
    for (uint32_t i = c.n; i-- > 0;) {
        const DotSum *s = &dot->sums.at[i];
        c.known[i] = s->extent;
        c.count[i] = kernel_dim(u->k, s->extent);
        c.sa[i] = n ? times(u, terms, num(u, n)) : kernel_dim(u->k, s->a);
        c.sb[i] = w ? times(u, terms, num(u, w)) : kernel_dim(u->k, s->b);
        if (n || w) terms = times(u, terms, c.count[i]);
    }
    if (n && w && !dot->cut && !u->partial.ptr) merge_loops(u, &c, n, w, terms);
    if (dot->cut) {
        c.cut = dot->cut, c.several = dot->several;
        c.wide = kernel_buffer(u->k, dot->wide);
    }
    for (uint32_t i = 0; i < dot->cut; i++) {
        c.known_block[i] = dot->block[i];
        c.block[i] = kernel_dim(u->k, dot->block[i]);
    }
    if (u->partial.ptr) { /* the sums from k_level on */
        for (uint32_t i = dot->k_level; i < c.n; i++) {
            uint32_t to = i - dot->k_level;
            c.known[to] = c.known[i], c.count[to] = c.count[i];
            c.sa[to] = c.sa[i], c.sb[to] = c.sb[i];
        }
        c.n -= dot->k_level;
        c.known[0] = u->known_terms, c.count[0] = u->terms;
    }
    return c;
}
static V element(Unit *u, V base, Dtype d, V offset) { return em_gep(u->e, base, offset, em_memory_type(u->e, d)); }

/* The place of a tile: rows [row, row + n), of which `valid` exist (NULL: all), columns [column, column + w) in the
   mask (NULL: all). */
typedef struct {
    V row, valid, column, mask;
    uint32_t n, w;
    V packed; /* the rows of A, [term][n]; NULL: they are read in place */
} Place;

static void row_addresses(Unit *u, const Place *t, V *rows) {
    if (t->packed.ptr) {
        for (uint32_t i = 0; i < t->n; i++) rows[i] = element(u, t->packed, u->dot->acc, num(u, i));
        return;
    }
    V last = t->valid.ptr ? em_bin(u->e, "llvm.sub", plus(u, t->row, t->valid), num(u, 1)) : t->valid;
    for (uint32_t i = 0; i < t->n; i++) {
        V r = plus(u, t->row, num(u, i));
        if (last.ptr) r = em_bin(u->e, "llvm.intr.smin", r, last);
        V at = times(u, r, u->row_stride);
        if (u->partial.ptr) at = plus(u, at, u->ka);
        rows[i] = element(u, u->a, u->dot->a.dtype, at);
    }
}
/* Is a tile with n rows, or lanes, no whole one, and are they few of all? */
static bool is_remainder(uint32_t n, uint32_t whole, Dim all) {
    return n < whole && dim_is_const(all) && n <= all / REMAINDER_SHARE;
}
static uint32_t *tiles_so_far(const Unit *u) { return &u->e->nproducts[u->e->target - u->e->targets->at]; }
/* Has the module so many that the next one is to have less code? */
static bool many_tiles(const Unit *u) { return *tiles_so_far(u) >= PRODUCTS_INLINE; }
/* Are the sums a call? After many tiles of the module they are, if they are long or the product is small and no loop
   does it again and again: one loop with whole turns and one set of sums, in memory as they are in registers. */
static bool calls_product(const Unit *u, const Place *t, const Contraction *c, const GemmTile *tile) {
    const Plan *p = u->k->x.plan;
    const Step *s = u->k->x.step;
    Dim n = c->known[0];
    bool floats = c->acc == DT_f32 || c->acc == DT_f64, every = !t->valid.ptr && !tile->mask.ptr;
    bool one = c->n == 1 && !c->cut && tile->sets == 1 && dim_is_const(n) && n % c->at_once == 0;
    if (!many_tiles(u) || !floats || !every || !one) return false;
    return n >= PRODUCT_TERMS || (s->body == p->top && product_is_small(p, s));
}
static void outer_sums(Unit *u, const Place *t, const V *rows, V *acc) {
    const Dot *dot = u->dot;
    bool packed = u->pack.ptr;
    Contraction c = contraction(u, t->packed.ptr ? t->n : 0, packed ? t->w : 0);
    V at = packed ? times(u, em_bin(u->e, "llvm.sub", t->column, u->c0), kernel_dim(u->k, dot->packed_terms))
                  : times(u, t->column, u->column_stride);
    if (u->partial.ptr && !packed) at = plus(u, at, u->kb);
    V b = element(u, packed ? u->pack : u->b, c.b, at), none = {NULL};
    if (is_remainder(t->n, dot->mr, dot->rows) || is_remainder(t->w, dot->w, dot->columns)) c.at_once = 1;
    bool past = !packed && dot_reads_past(dot), whole = packed || past;
    assert(t->w <= dot->w); /* as much may be read past B */
    GemmTile tile = {.a = rows, .b = &b, .rows = t->n, .w = t->w, .sets = dot->sets, .mask = whole ? none : t->mask};
    if (calls_product(u, t, &c, &tile)) {
        tile.row = t->packed.ptr ? num(u, 1) : u->row_stride;
        tile.area = kernel_buffer(u->k, dot->tile);
    }
    ++*tiles_so_far(u);
    gemm_outer(u->e, &c, &tile, acc);
    for (uint32_t i = 0; i < t->n && t->mask.ptr && past; i++)
        acc[i] = em_select(u->e, t->mask, acc[i], gemm_zero(u->e, dot->acc, t->w));
}
static void inner_sums(Unit *u, const Place *t, const V *rows, V *acc) {
    Contraction c = contraction(u, 0, 0);
    V columns[GEMM_TILE], last = em_bin(u->e, "llvm.sub", u->c1, num(u, 1));
    for (uint32_t i = 0; i < t->w; i++) {
        V at = plus(u, t->column, num(u, i));
        if (t->mask.ptr) at = em_bin(u->e, "llvm.intr.smin", at, last);
        columns[i] = element(u, u->b, c.b, times(u, at, u->column_stride));
    }
    GemmTile tile = {rows, columns, .rows = t->n, .columns = t->w, .w = u->dot->lanes, .sets = u->dot->sets};
    gemm_inner(u->e, &c, &tile, acc);
}
/* The elements of partial sums where the rows of a tile begin. */
static void partial_rows(Unit *u, const Place *t, V *at) {
    const Dot *dot = u->dot;
    V before = times(u, em_bin(u->e, "llvm.sub", t->column, u->c0), num(u, dot->rows * dot->point_block));
    V row = plus(u, times(u, u->point, num(u, dot->rows)), t->row);
    for (uint32_t i = 0; i < t->n; i++) at[i] = plus(u, before, times(u, plus(u, row, num(u, i)), num(u, dot->w)));
}
static V wide_form(Unit *u, V at) {
    return element(u, u->folded, DT_f64, times(u, at, num(u, wide_bytes(u->dot->acc, 1) / 8)));
}
static void store_partial(Unit *u, V at, V sum) {
    Dtype d = u->dot->acc;
    em_store(u->e, em_to_memory(u->e, d, sum), element(u, u->partial, d, at), dtype_bytes(d));
}
/* Stores the sums of n rows, or adds them to their wide forms. */
static void keep_partial(Unit *u, uint32_t n, const V *at, const V *sum) {
    Dtype d = u->dot->acc;
    If f;
    if (u->folded.ptr) {
        f = em_if(u->e, u->fold);
        for (uint32_t i = 0; i < n; i++) {
            gemm_widen(u->e, d, wide_form(u, at[i]), sum[i]);
            store_partial(u, at[i], gemm_zero(u->e, d, em_width(sum[i])));
        }
        em_else(u->e, &f, 0, NULL);
    }
    for (uint32_t i = 0; i < n; i++) store_partial(u, at[i], sum[i]);
    if (u->folded.ptr) em_if_end(u->e, &f, NULL, NULL);
}
/* Adds earlier partial sums, and keeps the sums if terms are left; true if these were the last. */
static bool add_partial(Unit *u, const Place *t, V *acc) {
    Emit *e = u->e;
    Dtype d = u->dot->acc;
    bool asks = u->last && u->several.ptr;
    If f;
    V sum[GEMM_TILE], at[GEMM_TILE];
    if (asks) f = em_if(e, u->several);
    partial_rows(u, t, at);
    for (uint32_t i = 0; i < t->n; i++) {
        MlirType type = em_vec(e, em_memory_type(e, d), em_width(acc[i]));
        V before = em_load(e, type, element(u, u->partial, d, at[i]), dtype_bytes(d));
        sum[i] = gemm_add(e, d, acc[i], em_to_register(e, d, before));
        if (u->last && u->folded.ptr) sum[i] = gemm_narrow(e, d, wide_form(u, at[i]), sum[i]);
    }
    if (!u->last) keep_partial(u, t->n, at, sum);
    if (asks) {
        em_else(e, &f, t->n, sum);
        em_if_end(e, &f, acc, acc);
    } else
        memcpy(acc, sum, t->n * sizeof *acc);
    return u->last;
}
static void tile(Unit *u, const Place *t) {
    Kernel *k = u->k;
    V rows[GEMM_TILE], acc[GEMM_TILE];
    kernel_enter(k);
    if (u->dot->column) kernel_bind(k, u->dot->column, t->column);
    k->w = t->w, k->tail = t->mask;
    row_addresses(u, t, rows);
    (u->dot->inner ? inner_sums : outer_sums)(u, t, rows, acc);
    if (!u->partial.ptr || add_partial(u, t, acc))
        (u->dot->in_loop && t->n > 1 ? finish_in_loop : finish_written_out)(u, t->row, t->n, t->valid, acc);
    kernel_leave(k);
}

/* ---- blocks: whole tiles, then the remainder */

typedef void Body1(Unit *, V at, uint32_t n, V left, void *user);

enum { PART = 0 }; /* a block of unknown length */

/* Calls `body` for each [at, at + step) in [lo, hi), where lo is a multiple of step; for the remainder, if there is
   one, `left` is its length, and n is `extent % step` if that is known, else step. */
static void in_steps(Unit *u, V lo, V hi, uint32_t step, Dim extent, Dim block, Body1 *body, void *user) {
    Emit *e = u->e;
    V none = {NULL};
    bool known = dim_is_const(extent);
    int64_t rest = known ? extent % step : 0, whole = known ? extent - rest : 0;
    V end =
        known && extent == block ? num(u, whole) : em_bin(e, "llvm.sub", hi, em_bin(e, "llvm.urem", hi, num(u, step)));
    if (known && whole == step && extent == block)
        body(u, lo, step, none, user);
    else if (!known || whole) {
        For f = em_for(e, lo, end, num(u, step), 0, NULL);
        kernel_enter(u->k);
        body(u, em_arg(&f.scope, 0), step, none, user);
        kernel_leave(u->k);
        em_for_end(e, &f, NULL, NULL);
    }
    if (known && !rest) return;
    V left = em_bin(e, "llvm.sub", hi, end);
    uint32_t n = known ? (uint32_t)rest : step;
    if (known && extent == block) {
        body(u, end, n, num(u, rest), user);
        return;
    }
    If f = em_if(e, em_cmpi(e, "sgt", left, num(u, 0)));
    kernel_enter(u->k);
    body(u, end, n, known ? num(u, rest) : left, user);
    kernel_leave(u->k);
    em_else(e, &f, 0, NULL);
    em_if_end(e, &f, NULL, NULL);
}
/* The width of the vector that holds n columns; the mask of its lanes that exist. */
static uint32_t width_of(const Unit *u, uint32_t n) {
    uint32_t w = 1;
    while (w < n) w *= 2;
    return w < u->dot->w ? w : u->dot->w;
}
static V mask_of(Unit *u, uint32_t w, uint32_t n, V left) {
    Emit *e = u->e;
    if (!left.ptr || (w == n && dim_is_const(u->dot->columns))) return (V){NULL};
    V lanes = em_lanes(e, e->i32, w);
    return em_cmpi(e, "slt", lanes, em_broadcast(e, em_cast(e, "llvm.trunc", e->i32, left), w));
}
static void column_body(Unit *u, V at, uint32_t n, V left, void *user) {
    Place t = *(Place *)user;
    t.column = at;
    t.w = width_of(u, n);
    t.mask = mask_of(u, t.w, n, left);
    tile(u, &t);
}
static V packed_rows(Unit *u, V row) {
    V before = times(u, em_bin(u->e, "llvm.sub", row, u->group), kernel_dim(u->k, u->dot->packed_terms));
    return element(u, u->rows, u->dot->acc, before);
}
static void row_body(Unit *u, V at, uint32_t n, V left, void *user) {
    Place t = {.row = at, .n = n};
    if (!dim_is_const(u->dot->rows)) t.valid = left;
    if (u->rows.ptr) t.packed = packed_rows(u, at);
    in_steps(u, u->c0, u->c1, u->dot->w, u->dot->columns, u->dot->column_block, column_body, &t);
}

/* ---- packing rows */

/* The rows of a group being packed: one term of the sum, and its place in A. */
typedef struct {
    V from, term;
    Contraction c;
} Rows;
static void pack_tile(Unit *u, V at, uint32_t n, V left, void *user) {
    Emit *e = u->e;
    Rows *r = user;
    Dtype d = u->dot->a.dtype, acc = u->dot->acc;
    Place t = {.row = at, .n = n};
    V rows[GEMM_TILE], to = packed_rows(u, at);
    if (!dim_is_const(u->dot->rows)) t.valid = left;
    row_addresses(u, &t, rows);
    bool vector = u->dot->row_neighbours && !t.valid.ptr;
    for (uint32_t i = 0; i < (vector ? 1 : n); i++) {
        MlirType elem = em_memory_type(e, d), type = vector ? em_vec(e, elem, n) : elem;
        V x = em_to_register(e, d, em_load(e, type, element(u, rows[i], d, r->from), dtype_bytes(d)));
        V place = plus(u, times(u, r->term, num(u, n)), num(u, i));
        em_store(e, em_to_memory(e, acc, gemm_convert(e, d, acc, x)), element(u, to, acc, place), dtype_bytes(acc));
    }
}
/* Rows [lo, hi): the loops over the terms are outermost, since the rows of a term share cache lines. */
static void pack_rows(Unit *u, V lo, V hi, uint32_t level, const Rows *r) {
    Emit *e = u->e;
    Rows next = *r;
    if (level == r->c.n) {
        in_steps(u, lo, hi, u->dot->mr, u->dot->rows, PART, pack_tile, &next);
        return;
    }
    For f = em_for(e, num(u, 0), r->c.count[level], num(u, 1), 0, NULL);
    V i = em_arg(&f.scope, 0);
    next.from = plus(u, r->from, times(u, i, r->c.sa[level]));
    next.term = plus(u, times(u, r->term, r->c.count[level]), i);
    kernel_enter(u->k);
    pack_rows(u, lo, hi, level + 1, &next);
    kernel_leave(u->k);
    em_for_end(e, &f, NULL, NULL);
}
/* The unit's rows, packed in groups. */
static void groups(Unit *u) {
    Emit *e = u->e;
    const Dot *dot = u->dot;
    For f = em_for(e, u->r0, u->r1, num(u, dot->group_rows), 0, NULL);
    u->group = em_arg(&f.scope, 0);
    V end = em_bin(e, "llvm.intr.smin", u->r1, plus(u, u->group, num(u, dot->group_rows)));
    kernel_enter(u->k);
    Rows r = {.from = num(u, 0), .term = num(u, 0), .c = contraction(u, 0, 0)};
    pack_rows(u, u->group, end, 0, &r);
    in_steps(u, u->group, end, dot->mr, dot->rows, PART, row_body, NULL);
    kernel_leave(u->k);
    em_for_end(e, &f, NULL, NULL);
}

/* ---- packing */
enum { MOST_SQUARE = 16 }; /* the most lanes of a block that is transposed in registers */

/* A panel of B being packed: columns [column, column + w). In the panel each term of the sum is a row of w elements;
   `term` is the first term being packed now, and `from` its place in B. */
typedef struct {
    V column, mask, from, term, to; /* to: the panel */
    uint32_t w, n;                  /* n: the width of a transposed block, in lanes */
    Contraction c;
} Panel;

static V packed_form(Unit *u, V memory) {
    Dtype d = u->dot->b.dtype, acc = u->dot->acc;
    return em_to_memory(u->e, acc, gemm_convert(u->e, d, acc, em_to_register(u->e, d, memory)));
}
static void put(Unit *u, const Panel *p, V memory, V term, V column) {
    Dtype acc = u->dot->acc;
    V at = plus(u, times(u, plus(u, p->term, term), num(u, p->w)), column);
    em_store(u->e, packed_form(u, memory), element(u, p->to, acc, at), dtype_bytes(acc));
}
static void copy_row(Unit *u, const Panel *p) {
    Emit *e = u->e;
    Dtype d = u->dot->b.dtype;
    MlirType t = em_vec(e, em_memory_type(e, d), p->w);
    V at = element(u, u->b, d, plus(u, p->from, times(u, p->column, u->column_stride))), v;
    if (p->mask.ptr) {
        V none = em_1(e, "llvm.mlir.zero", t, 0, NULL, 0, NULL);
        v = em_masked_load(e, t, at, p->mask, none, dtype_bytes(d));
    } else
        v = em_load(e, t, at, dtype_bytes(d));
    put(u, p, v, num(u, 0), num(u, 0));
}
/* The start of column `i` of the panel; beyond the last column, its start. */
static V column_start(Unit *u, const Panel *p, V i) {
    V last = em_bin(u->e, "llvm.sub", u->c1, num(u, 1));
    return times(u, em_bin(u->e, "llvm.intr.smin", plus(u, p->column, i), last), u->column_stride);
}
/* v[i][j] → v[j][i] for n vectors of n lanes, n a power of two: each round interleaves two halves. */
static void transpose(Emit *e, V *v, uint32_t n) {
    int64_t low[GEMM_TILE], high[GEMM_TILE];
    V next[GEMM_TILE];
    assert(n <= GEMM_TILE);
    for (uint32_t l = 0; l < n; l++) {
        low[l] = l / 2 + (l % 2 ? n : 0);
        high[l] = low[l] + n / 2;
    }
    for (uint32_t round = 1; round < n; round *= 2) {
        for (uint32_t i = 0; i < n / 2; i++) {
            next[2 * i] = em_shuffle(e, v[i], v[i + n / 2], n, low);
            next[2 * i + 1] = em_shuffle(e, v[i], v[i + n / 2], n, high);
        }
        memcpy(v, next, n * sizeof *v);
    }
}
/* Copies n terms from `k` on of n columns from `i` on. */
static void copy_square(Unit *u, const Panel *p, V k, V i) {
    Emit *e = u->e;
    Dtype d = u->dot->b.dtype;
    V v[GEMM_TILE];
    for (uint32_t j = 0; j < p->n; j++) {
        V at = plus(u, plus(u, p->from, k), column_start(u, p, plus(u, i, num(u, j))));
        v[j] = em_load(e, em_vec(e, em_memory_type(e, d), p->n), element(u, u->b, d, at), dtype_bytes(d));
    }
    transpose(e, v, p->n);
    for (uint32_t j = 0; j < p->n; j++) put(u, p, v[j], plus(u, k, num(u, j)), i);
}
static void copy_element(Unit *u, const Panel *p, V k, V i) {
    Dtype d = u->dot->b.dtype;
    V at = element(u, u->b, d, plus(u, plus(u, p->from, k), column_start(u, p, i)));
    put(u, p, em_load(u->e, em_memory_type(u->e, d), at, dtype_bytes(d)), k, i);
}
/* All columns of the panel, terms [lo, hi), in blocks of n × n. */
static void copy_blocks(Unit *u, const Panel *p, V lo, V hi, uint32_t n) {
    Emit *e = u->e;
    For fk = em_for(e, lo, hi, num(u, n), 0, NULL);
    For fi = em_for(e, num(u, 0), num(u, p->w), num(u, n), 0, NULL);
    (n > 1 ? copy_square : copy_element)(u, p, em_arg(&fk.scope, 0), em_arg(&fi.scope, 0));
    em_for_end(e, &fi, NULL, NULL);
    em_for_end(e, &fk, NULL, NULL);
}
static void copy_transposed(Unit *u, const Panel *p) {
    assert(p->n);
    V all = p->c.count[p->c.n - 1], left = em_bin(u->e, "llvm.urem", all, num(u, p->n));
    V whole = em_bin(u->e, "llvm.sub", all, left);
    Dim known = p->c.known[p->c.n - 1];
    if (p->n > 1) copy_blocks(u, p, num(u, 0), whole, p->n);
    if (!dim_is_const(known) || known % p->n || p->n == 1) copy_blocks(u, p, p->n > 1 ? whole : num(u, 0), all, 1);
}
static void pack_panel(Unit *u, V at, uint32_t n, V left, void *user) {
    Panel p = *(Panel *)user;
    assert(p.c.n && p.c.n <= GEMM_LOOPS);
    p.column = at;
    p.w = width_of(u, n);
    p.mask = mask_of(u, p.w, n, left);
    V before = times(u, em_bin(u->e, "llvm.sub", at, u->c0), kernel_dim(u->k, u->dot->packed_terms));
    p.to = element(u, u->pack, u->dot->acc, before);
    Dim known = p.c.known[p.c.n - 1];
    p.n = u->dot->lanes < p.w ? u->dot->lanes : p.w;
    while (p.n > MOST_SQUARE || (dim_is_const(known) && p.n > known && p.n > 1)) p.n /= 2;
    (u->dot->transposed ? copy_transposed : copy_row)(u, &p);
}
/* The loops over the terms are outermost: B is read in rows as long as the unit. */
static void pack(Unit *u, uint32_t level, Panel *p) {
    Emit *e = u->e;
    if (level + u->dot->transposed == p->c.n) {
        in_steps(u, u->c0, u->c1, u->dot->w, u->dot->columns, u->dot->column_block, pack_panel, p);
        return;
    }
    V inner = num(u, 1);
    for (uint32_t i = level + 1; i < p->c.n; i++) inner = times(u, inner, p->c.count[i]);
    For f = em_for(e, num(u, 0), p->c.count[level], num(u, 1), 0, NULL);
    V i = em_arg(&f.scope, 0);
    Panel next = *p;
    next.from = plus(u, p->from, times(u, i, p->c.sb[level]));
    next.term = plus(u, p->term, times(u, i, inner));
    kernel_enter(u->k);
    pack(u, level + 1, &next);
    kernel_leave(u->k);
    em_for_end(e, &f, NULL, NULL);
}
/* The unit's columns, the current terms of them, which begin at `from`. */
static void pack_columns(Unit *u, V from) {
    Panel p = {.from = from, .term = num(u, 0), .c = contraction(u, 0, 0)};
    pack(u, 0, &p);
}

/* ---- units */
/* The next digit of *rest, which is below n; all of *rest if `last`. */
static V digit(Unit *u, V *rest, Dim n, bool last) {
    if (n == 1) return num(u, 0);
    V all = *rest;
    if (last) return all;
    V by = kernel_dim(u->k, n);
    *rest = em_bin(u->e, "llvm.udiv", all, by);
    return em_bin(u->e, "llvm.urem", all, by);
}
/* Binds n loops to the digits of a number, the last loop fastest. */
static void bind_digits(Unit *u, V number, const Atom *loops, uint32_t n) {
    for (uint32_t i = n; i-- > 0;)
        kernel_bind(u->k, loops[i], digit(u, &number, loop_extent(u->k->x.ix, loops[i]), i == 0));
}
static void block_range(Unit *u, V i, Dim extent, Dim block, V *lo, V *hi) {
    *lo = num(u, 0), *hi = kernel_dim(u->k, extent);
    if (block == extent) return;
    *lo = times(u, i, kernel_dim(u->k, block));
    *hi = em_bin(u->e, "llvm.intr.smin", *hi, plus(u, *lo, kernel_dim(u->k, block)));
}
static V operand(Unit *u, const DotOperand *o, V *row_stride, Atom row) {
    Kernel *k = u->k;
    bool other;
    Ix at = row ? ix_substitute(k->x.ix, o->address, row, 0) : o->address;
    *row_stride = row ? kernel_dim(k, ix_coef(k->x.ix, o->address, row, &other)) : num(u, 0);
    return element(u, kernel_buffer(k, o->buf), o->dtype, kernel_index(k, at));
}
/* ---- the last rows */
typedef struct {
    Plan *p;
    const Step *step;
    bool found;
} Written;
static bool writes(const Step *s, const Buf *b) {
    each(const Store, st, s->stores)
        if (same_buf(st->buf, b)) return true;
    return false;
}
static void saw_read(void *user, Val v, const Ix *index, Ix address) {
    Written *w = user;
    if (!v) return;
    each(const Val, m, w->step->members)
        if (*m == v) return; /* computed for this element, also where it is stored */
    w->found |= writes(w->step, plan_info(w->p, v)->buf);
}
/* Does what follows the product read what the step writes? */
static bool reads_written(Plan *p, Step *s) {
    assert(!writes(s, s->dot->a.buf) && !writes(s, s->dot->b.buf));
    Written w = {p, s, false};
    step_reads(p, s, saw_read, &w);
    return w.found;
}
/* Does the last tile of rows begin earlier, so that it is a whole one, too? It computes some rows again: few of them,
   to the same values in the same unit. So the code of a tile is there once, which is worth up to a hundredth of the
   time of a product after many tiles of the module. */
static bool rows_again(const Unit *u) {
    const Dot *dot = u->dot;
    Dim rows = dot->rows, block = dot->row_block, mr = dot->mr;
    if (!many_tiles(u) || !dim_is_const(rows) || !dim_is_const(block) || u->rows.ptr || u->partial.ptr) return false;
    Dim again = (mr - rows % mr) % mr, last = rows % block ? rows % block : block;
    bool few = again && again <= rows / REMAINDER_SHARE, fits = rows >= mr && last >= mr;
    return few && fits && !reads_written(u->k->x.plan, u->k->x.step);
}
static void whole_tiles(Unit *u) {
    Emit *e = u->e;
    V none = {NULL}, step = num(u, u->dot->mr), last = em_bin(e, "llvm.sub", u->r1, step);
    For f = em_for(e, u->r0, u->r1, step, 0, NULL);
    kernel_enter(u->k);
    row_body(u, em_least(e, em_arg(&f.scope, 0), last), u->dot->mr, none, NULL);
    kernel_leave(u->k);
    em_for_end(e, &f, NULL, NULL);
}
/* All tiles of the unit, point by point. */
static void tiles(Unit *u) {
    const Dot *dot = u->dot;
    For f = em_for(u->e, u->p0, u->p1, num(u, 1), 0, NULL);
    V point = em_arg(&f.scope, 0);
    kernel_enter(u->k);
    bind_digits(u, point, dot->again, dot->nagain);
    u->a = operand(u, &dot->a, &u->row_stride, dot->row);
    u->point = em_bin(u->e, "llvm.sub", point, u->p0);
    if (u->rows.ptr)
        groups(u);
    else if (rows_again(u))
        whole_tiles(u);
    else
        in_steps(u, u->r0, u->r1, dot->mr, dot->rows, dot->row_block, row_body, NULL);
    kernel_leave(u->k);
    em_for_end(u->e, &f, NULL, NULL);
}
/* The unit's part of a buffer: `n` elements of `bytes` each. */
static V unit_part(Unit *u, Buf *b, V number, Dim n, uint32_t bytes) {
    Dim size = dim_mul(u->k->x.plan->cx->types, n, bytes);
    V at = times(u, number, kernel_dim(u->k, size));
    return em_gep(u->e, kernel_buffer(u->k, b), at, u->e->i8);
}
/* The terms of a block, if that is known: all blocks but those at the end of a loop are whole. */
static Dim terms_of_block(const Dot *dot, bool last) {
    Dim extent = dot->sums.at[dot->k_level].extent, rest = dim_is_const(extent) ? extent % dot->k_block : GEMM_UNKNOWN;
    if (dot->k_level) return rest == 0 ? dot->k_block : GEMM_UNKNOWN;
    return !last || rest == 0 ? dot->k_block : rest;
}
/* The tiles with the terms of one block, number `number` of all, the blocks of the innermost loop fastest. Without any
   block the last one has no terms. */
static void tiles_of_block(Unit *u, V number, bool last) {
    const Dot *dot = u->dot;
    Types *ts = u->k->x.plan->cx->types;
    uint32_t n = dot->k_level;
    Dim extent = dot->sums.at[n].extent, blocks = dot_blocks(u->k->x.plan, extent, dot->k_block);
    u->ka = u->kb = num(u, 0), u->last = last, u->known_terms = terms_of_block(dot, last);
    for (uint32_t i = n + 1; i-- > 0;) {
        const DotSum *s = &dot->sums.at[i];
        V at = digit(u, &number, dim_max(ts, i == n ? blocks : s->extent, 1), i == 0);
        if (i == n) {
            V lo, hi;
            block_range(u, at, extent, dot->k_block, &lo, &hi);
            u->terms = em_bin(u->e, "llvm.sub", hi, lo);
            if (u->any.ptr) u->terms = em_select(u->e, u->any, u->terms, num(u, 0));
            at = lo;
        }
        u->ka = plus(u, u->ka, times(u, at, kernel_dim(u->k, s->a)));
        u->kb = plus(u, u->kb, times(u, at, kernel_dim(u->k, s->b)));
    }
    if (dot->pack) pack_columns(u, u->kb);
    tiles(u);
}
static void clear(Unit *u, V p, uint32_t each) {
    Dim unit = u->dot->rows * u->dot->point_block * u->dot->stored_columns * each;
    gemm_clear_bytes(u->e, p, times(u, u->nunits, num(u, unit)));
}
static void clear_partial(Unit *u) {
    If f;
    if (u->several.ptr) f = em_if(u->e, u->several);
    clear(u, u->partial, dtype_bytes(u->dot->acc));
    if (u->folded.ptr) clear(u, u->folded, wide_bytes(u->dot->acc, 1));
    if (!u->several.ptr) return;
    em_else(u->e, &f, 0, NULL);
    em_if_end(u->e, &f, NULL, NULL);
}
static void tiles_by_terms(Unit *u) {
    Emit *e = u->e;
    const Dot *dot = u->dot;
    Types *ts = u->k->x.plan->cx->types;
    Dim blocks = dot_blocks(u->k->x.plan, dot->sums.at[dot->k_level].extent, dot->k_block);
    for (uint32_t i = 0; i < dot->k_level; i++) blocks = dim_mul(ts, blocks, dot->sums.at[i].extent);
    V last = em_bin(e, "llvm.sub", kernel_dim(u->k, blocks), num(u, 1));
    if (!dim_is_const(blocks)) {
        u->any = em_cmpi(e, "sge", last, num(u, 0));
        last = em_bin(e, "llvm.intr.smax", last, num(u, 0));
        u->several = em_cmpi(e, "sgt", last, num(u, 0));
    }
    clear_partial(u);
    For f = em_for(e, num(u, 0), last, num(u, 1), 0, NULL);
    V number = em_arg(&f.scope, 0), place = em_bin(e, "llvm.urem", number, num(u, SUMMED_BLOCKS));
    kernel_enter(u->k);
    u->fold = em_cmpi(e, "eq", place, num(u, SUMMED_BLOCKS - 1));
    tiles_of_block(u, number, false);
    kernel_leave(u->k);
    em_for_end(e, &f, NULL, NULL);
    tiles_of_block(u, last, true);
}
/* The units [number, end): one, or neighbours whose columns are a longer unit's. */
static void units(Unit *u, V number, V end) {
    Kernel *k = u->k;
    Types *ts = k->x.plan->cx->types;
    const Dot *dot = u->dot;
    Dim nrows = dot_blocks(k->x.plan, dot->rows, dot->row_block),
        ncolumns = dot_blocks(k->x.plan, dot->columns, dot->column_block),
        npoints = dot_blocks(k->x.plan, dot->points, dot->point_block);
    V rest = number;
    V cb = digit(u, &rest, ncolumns, nrows == 1 && npoints == 1 && !dot->nouter),
      rb = digit(u, &rest, nrows, npoints == 1 && !dot->nouter), pb = digit(u, &rest, npoints, !dot->nouter);
    bind_digits(u, rest, dot->outer, dot->nouter);
    block_range(u, rb, dot->rows, dot->row_block, &u->r0, &u->r1);
    block_range(u, cb, dot->columns, dot->column_block, &u->c0, &u->c1);
    if (dot->together)
        u->c1 = em_least(u->e, kernel_dim(k, dot->columns), times(u, end, kernel_dim(k, dot->column_block)));
    block_range(u, pb, dot->points, dot->point_block, &u->p0, &u->p1);
    u->b = operand(u, &dot->b, &u->column_stride, dot->column);
    if (dot->pack) {
        Dim elements = dim_mul(ts, dot->stored_columns, dot->packed_terms);
        u->pack = unit_part(u, dot->pack, number, elements, dtype_bytes(dot->acc));
    }
    if (dot->pack_rows)
        u->rows = unit_part(u, dot->pack_rows, number, dim_mul(ts, dot->group_rows, dot->packed_terms),
                            dtype_bytes(dot->acc));
    if (!dot->partial) {
        if (dot->pack) pack_columns(u, num(u, 0));
        tiles(u);
        return;
    }
    Dim rows = dim_mul(ts, dot->rows, dot->point_block);
    Dim sums = dim_mul(ts, dot->stored_columns, rows);
    u->nunits = em_bin(u->e, "llvm.sub", end, number);
    u->partial = unit_part(u, dot->partial, number, sums, dtype_bytes(dot->acc));
    if (dot->folded) u->folded = unit_part(u, dot->folded, number, sums, wide_bytes(dot->acc, 1));
    tiles_by_terms(u);
}
void kernel_dot(Kernel *k, V lo, V hi) {
    Emit *e = k->e;
    Unit u = {.k = k, .e = e, .dot = k->x.step->dot, .result = k->x.step->e->out.at[0]};
    step_at(k->x.plan, k->x.step, u.result, u.index);
    k->lane = u.dot->column;
    if (u.dot->together) {
        units(&u, lo, hi);
        return;
    }
    V one = em_i64(e, 1);
    For f = em_for(e, lo, hi, one, 0, NULL);
    V number = em_arg(&f.scope, 0);
    kernel_enter(k);
    units(&u, number, plus(&u, number, one));
    kernel_leave(k);
    em_for_end(e, &f, NULL, NULL);
}
