#include "../plan/dot.h"
#include "kernel.h"
#include "../cost.h"
#include "threads.h"
#include "point.h"
#include <assert.h>
#include <inttypes.h>
#include <mlir-c/BuiltinAttributes.h>
#include <mlir-c/BuiltinTypes.h>
#include <mlir-c/Dialect/LLVM.h>

/* Loads and stores: how the address moves along the lanes decides what they are. */

/* The most vectors of a tile, and lanes of one of them: the words of a vector. */
enum { MAX_TILE = 16 };
/* Elements that lie beside each other and are shuffled as a whole; of more, squares are transposed. */
enum { MOST_INTERLEAVED = 4 };
_Static_assert(KEY_ROWS - MAX_TILE > KEY_DIM, "each row of a tile has a kind of key");

V kernel_buffer(Kernel *k, Buf *b) {
    uint32_t id = memo_id(&k->x, KEY_BUF, (uint64_t)b->number << 32 | UINT32_MAX, NULL, 0);
    Reg r;
    if (memo_get(&k->x, id, &r)) return reg_v(r);
    MlirBlock was = kernel_at(k, 0);
    bool shared = b->kind == BUF_ROW && k->block.group > 1; /* each element is written and read by one thread */
    r = reg(shared ? threads_row(k, b->bytes) : frame_buffer(k->frame, b), true, 0);
    k->e->block = was;
    return reg_v(memo_set(&k->x, id, r));
}
static bool written_here(Kernel *k, const Buf *b) {
    if (!k->x.step) return false;
    each(Store, s, k->x.step->stores)
        if (same_buf(s->buf, b)) return true;
    return false;
}
static V both(Kernel *k, V a, V b) {
    if (!a.ptr) return b;
    return b.ptr ? em_bin(k->e, "llvm.and", a, b) : a;
}
static V ones(Kernel *k, uint32_t w) { return em_int(k->e, em_vec(k->e, k->e->i1, w), 1); }

/* Loads one element under a condition, by a masked load of a single lane. */
static V load_one(Kernel *k, V p, Dtype d, V condition) {
    Emit *e = k->e;
    int64_t one = 1;
    MlirType t = em_memory_type(e, d), vt = mlirVectorTypeGet(1, &one, t);
    if (em_width(condition) > 1 || mlirTypeIsAVector(mlirValueGetType(condition)))
        condition = em_1(e, "llvm.intr.vector.reduce.or", e->i1, 1, &condition, 0, NULL);
    MlirType mt = mlirVectorTypeGet(1, &one, e->i1);
    V none = em_1(e, "llvm.mlir.zero", vt, 0, NULL, 0, NULL);
    V mask = em_insert(e, condition, em_1(e, "llvm.mlir.zero", mt, 0, NULL, 0, NULL), 0);
    V loaded = em_masked_load(e, vt, p, mask, none, dtype_align(d));
    return em_extract(e, loaded, 0);
}
/* Does a thread's run go along the address? Else it is of one of a few elements, which may be the last of the array. */
static bool along_run(const Kernel *k, Ix address) {
    const Step *s = k->x.step;
    const Atom runs[] = {s->runs, s->held.first, s->held.last, s->dot && s->dot->device ? s->dot->device->runs : 0};
    bool any = false;
    for (uint32_t i = 0; i < sizeof runs / sizeof *runs; i++) any |= runs[i] && ix_uses(k->x.ix, address, runs[i]);
    return any;
}
/* LLVM joins loads that lie beside each other, and reads what is missing to a power of two where the first one is
   aligned. So only those that begin a vector of a run, all of which is there, say how they are aligned. */
static uint32_t load_align(Kernel *k, const Buf *b, Dtype d, Ix address) {
    bool begins = k->in_run && (k->in_run - 1) * dtype_bytes(d) % DEVICE_ALIGN == 0;
    return begins && along_run(k, address) ? address_align(k->x.plan, b, d, address) : dtype_align(d);
}
static Reg load_uniform(Kernel *k, Buf *b, Dtype d, Ix address) {
    Emit *e = k->e;
    V near = k->elsewhere ? k->elsewhere->load(k, b, d, address) : (V){NULL};
    if (near.ptr) return reg(em_to_register(e, d, near), true, k->x.depth);
    V base = kernel_buffer(k, b);
    Reg i = kernel_index_reg(k, address);
    uint32_t depth = written_here(k, b) || k->x.guard.v ? k->x.depth : i.depth;
    if (depth < k->least) depth = k->least;
    MlirBlock was = kernel_at(k, depth);
    V p = em_gep(e, base, reg_v(i), em_memory_type(e, d));
    if (frame_waits(k->frame)) {
        Reg r = reg(frame_load(k->frame, d, p), true, depth);
        e->block = was;
        return r;
    }
    V m = k->x.guard.v ? load_one(k, p, d, reg_v(k->x.guard))
                       : em_load(e, em_memory_type(e, d), p, load_align(k, b, d, address));
    V r = em_to_register(e, d, m);
    e->block = was;
    return reg(r, true, depth);
}
static V reversed(Kernel *k, V v) {
    int64_t lanes[MAX_LANES];
    for (uint32_t i = 0; i < k->w; i++) lanes[i] = k->w - 1 - i;
    return em_shuffle(k->e, v, v, k->w, lanes);
}
/* Are all lanes in the array wherever its loops are, even where the guard does not hold? */
static bool always_inside(Kernel *k, Dtype d, Ix address, Dim bytes) {
    int64_t lo, hi;
    return ix_bounds(k->x.ix, address, &lo, &hi) && dim_is_const(bytes) && lo >= 0 && hi < bytes / dtype_bytes(d);
}
/* Lanes that lie beside each other, or backwards. What is read where the guard does not hold is of no use: a mask is
   needed only if that may be outside of the array. A load whose mask has no lanes takes a CPU hundreds of cycles if its
   page is not there, so it is from the array's start where no lane is known to have an element: a sum of neighbours in
   64 rows of 64 between unmapped pages in 2 us, not 14. */
static V load_vector(Kernel *k, V base, Dtype d, Ix address, Dim bytes, bool backwards) {
    Emit *e = k->e;
    MlirType element = em_memory_type(e, d), t = em_vec(e, element, k->w);
    V at = kernel_index(k, address), mask = k->tail;
    if (backwards) at = em_bin(e, "llvm.sub", at, em_i64(e, k->w - 1));
    if (k->x.guard.v && !always_inside(k, d, address, bytes)) {
        V any = {k->x.guard.uniform ? k->x.guard.v : k->x.guard.any};
        if (any.ptr) at = em_select(e, any, at, em_i64(e, 0));
        mask = both(k, kernel_vector(k, k->x.guard), mask);
    }
    V p = em_gep(e, base, at, element), v;
    if (mask.ptr) {
        V none = em_1(e, "llvm.mlir.zero", t, 0, NULL, 0, NULL);
        v = em_masked_load(e, t, p, backwards ? reversed(k, mask) : mask, none, dtype_align(d));
    } else {
        v = em_load(e, t, p, dtype_align(d));
    }
    return backwards ? reversed(k, v) : v;
}
/* ---- reads ahead. The CPU itself reads ahead within a page, and as far as the instructions it has in flight go: a
   body that does much with what it reads waits at the start of every page. */
/* Do the loop of the lanes and those around it go through so much memory in order? */
static bool in_order(const Kernel *k, Ix address, uint32_t size) {
    const Step *s = k->x.step;
    Types *ts = k->x.plan->cx->types;
    uint32_t i = s->nkept + s->nred;
    Dim run = 1;
    while (i && step_loop(s, i - 1) != k->lane) i--;
    for (; i && dim_is_const(run) && run * size < AHEAD_RUN; i--) {
        bool other;
        Atom loop = step_loop(s, i - 1);
        if (ix_coef(k->x.ix, address, loop, &other) != run || other) return false;
        run = dim_mul(ts, run, loop_extent(k->x.ix, loop));
    }
    return !dim_is_const(run) || run * size >= AHEAD_RUN;
}
/* Does the memory wait for the body? It does much, or it only reads and the last cache has all of that. */
static bool takes_long(const Kernel *k, Dim bytes) {
    const Step *s = k->x.step;
    if (s->cost - s->row_cost >= AHEAD_COST) return true;
    each(const Store, st, s->stores)
        if (!st->row) return false;
    each(const Val, v, s->members)
        if (prim_lower[plan_info(k->x.plan, *v)->e->prim] == LOWER_ARG) return true;
    return bytes <= LAST_CACHE_BYTES / (s->nreads ? s->nreads : 1);
}
/* Is it the first read of an array of so many bytes, in the innermost loop? */
static bool reads_ahead(Kernel *k, const Buf *b, Dtype d, Ix address, Dim bytes, uint32_t *id) {
    Reg r;
    bool loops = k->x.step && k->x.step->kind == STEP_LOOPS && !k->tile && !k->tail.ptr && !k->e->on_device &&
                 !written_here(k, b);
    if (!loops || !dim_is_const(bytes) || bytes < AHEAD_LEAST || !takes_long(k, bytes)) return false;
    if (k->w * dtype_bytes(d) < CACHE_LINE / 2 || !in_order(k, address, dtype_bytes(d))) return false;
    if (kernel_index_reg(k, ix_atom(k->x.ix, k->lane)).depth != k->x.depth) return false;
    *id = memo_id(&k->x, KEY_AHEAD, (uint64_t)b->number << 32 | UINT32_MAX, NULL, 0);
    return !memo_get(&k->x, *id, &r);
}
static void read_ahead(Kernel *k, Buf *b, Dtype d, Ix address, Dim bytes) {
    Emit *e = k->e;
    uint32_t id;
    if (!reads_ahead(k, b, d, address, bytes, &id)) return;
    V base = kernel_buffer(k, b), at = kernel_index(k, address);
    for (uint32_t i = 0; i < k->w * dtype_bytes(d); i += CACHE_LINE)
        em_prefetch(
            e, em_gep(e, base, em_add(e, at, em_i64(e, (AHEAD_BYTES + i) / dtype_bytes(d))), em_memory_type(e, d)));
    memo_set(&k->x, id, reg(base, true, 0));
}

/* Lanes `rows` apart, in whole rows: the rows are loaded once, and each column is a shuffle of them. */
static V load_column(Kernel *k, Buf *b, Dtype d, Ix address, Dim rows) {
    Emit *e = k->e;
    int64_t lanes[MAX_LANES];
    Dim column = ix_at(k->x.ix, address)->c;
    Ix first = ix_sub(k->x.ix, address, ix_dim(k->x.ix, column));
    uint32_t id = memo_id(&k->x, KEY_ROWS, (uint64_t)b->number << 32 | first, NULL, 0);
    Reg r;
    if (!memo_get(&k->x, id, &r)) {
        MlirType t = em_memory_type(e, d);
        V p = em_gep(e, kernel_buffer(k, b), kernel_index(k, first), t);
        r = memo_set(&k->x, id,
                     reg(em_load(e, em_vec(e, t, k->w * (uint32_t)rows), p, dtype_align(d)), false, k->x.depth));
    }
    for (uint32_t i = 0; i < k->w; i++) lanes[i] = column + i * rows;
    return em_shuffle(e, reg_v(r), reg_v(r), k->w, lanes);
}
static bool column_of_rows(Kernel *k, Ix address, Dim coef, Dim rows) {
    const IxExpr *x = ix_at(k->x.ix, address);
    if (rows < 2 || rows > 4 || rows * k->w > MAX_LANES) return false;
    if (coef != rows || k->tail.ptr || k->x.guard.v) return false;
    for (uint32_t i = 0; i < x->n; i++)
        if (dim_mod(k->x.plan->cx->types, x->at[i].coef, rows) != 0) return false;
    return dim_is_const(x->c) && x->c >= 0 && x->c < rows;
}
/* Lanes 2 to 4 apart: everything from the first to the last is loaded and shuffled, the last vector ending with the
   last lane, so that nothing beyond it is read. */
static bool few_apart(const Kernel *k, Dim coef) { return dim_is_const(coef) && coef >= 2 && coef <= 4 && k->w >= 4; }
static V load_apart(Kernel *k, Buf *b, Dtype d, Ix address, uint32_t by) {
    Emit *e = k->e;
    MlirType t = em_memory_type(e, d), vt = em_vec(e, t, k->w);
    V base = kernel_buffer(k, b), at = kernel_index(k, address), v = {NULL};
    uint32_t w = k->w, last = (w - 1) * by + 1 - w;
    for (uint32_t i = 0; i < by; i++) {
        int64_t lanes[MAX_LANES];
        uint32_t from = i + 1 < by ? i * w : last;
        V part = em_load(e, vt, em_gep(e, base, em_bin(e, "llvm.add", at, em_i64(e, from)), t), dtype_align(d));
        for (uint32_t l = 0; l < w; l++) {
            bool here = l * by >= (i ? i * w : 0) && l * by < (i + 1) * w;
            lanes[l] = here ? (i ? w : 0) + l * by - from : l;
        }
        v = i ? em_shuffle(e, v, part, w, lanes) : em_shuffle(e, part, part, w, lanes);
    }
    return v;
}
/* w vectors, transposed: halves are exchanged at distances w/2, …, 1. */
static void transpose(Emit *e, V *v, uint32_t w) {
    for (uint32_t half = w / 2; half; half /= 2)
        for (uint32_t i = 0; i < w; i++) {
            if (i & half) continue;
            int64_t lo[MAX_TILE], hi[MAX_TILE];
            for (uint32_t l = 0; l < w; l++) {
                lo[l] = l & half ? w + l - half : l;
                hi[l] = l & half ? w + l : l + half;
            }
            V a = v[i], b = v[i + half];
            v[i] = em_shuffle(e, a, b, w, lo);
            v[i + half] = em_shuffle(e, a, b, w, hi);
        }
}
/* ---- rows of 5 to 16 elements, which lie beside each other: as many as a square has are transposed at a time */
/* Columns [from, from + n) of rows of `row` elements, which vectors of `side` lanes hold. */
typedef struct {
    uint32_t from, n, side, row;
} Columns;
/* The columns of the row from `from` on that are one square: at most a vector register of them, or as many as lanes. */
static Columns columns_from(const Kernel *k, Dtype d, uint32_t from, uint32_t row) {
    uint32_t most = k->x.plan->target->vector_bytes / dtype_bytes(d), n = row - from;
    if (most > MAX_TILE) most = MAX_TILE;
    if (most > k->w) most = k->w;
    Columns c = {from, n < most ? n : most, 2, row};
    while (c.side < c.n) c.side *= 2;
    return c;
}
static V row_address(Kernel *k, V base, MlirType t, V at, int64_t offset) {
    return em_gep(k->e, base, em_bin(k->e, "llvm.add", at, em_i64(k->e, offset)), t);
}
/* Are vectors of lanes transposed for rows of this length? LLVM 22 dies on vectors of elements of 128 bits. */
static bool has_squares(const Kernel *k, Dtype d, Dim row) {
    bool few = dim_is_const(row) && row > MOST_INTERLEAVED && row <= MAX_TILE;
    return few && k->w > 1 && !k->tail.ptr && dtype_bytes(d) <= 8;
}
/* Are the lanes rows of so many elements, as of an array of small matrices, and is the address at a known place of
   them? */
static bool square_rows(Kernel *k, Dtype d, Ix address, Dim row, Dim bytes) {
    Types *ts = k->x.plan->cx->types;
    const IxExpr *x = ix_at(k->x.ix, address);
    if (k->x.guard.v || k->tile || !has_squares(k, d, row)) return false;
    if (!bytes || dim_mod(ts, bytes, row * dtype_bytes(d)) != 0) return false; /* is the last row whole? */
    for (uint32_t i = 0; i < x->n; i++)
        if (dim_mod(ts, x->at[i].coef, row) != 0) return false;
    return dim_is_const(x->c) && x->c >= 0 && x->c < row;
}
static V joined_all(Emit *e, const V *v, uint32_t n) {
    return n == 1 ? v[0] : em_joined(e, joined_all(e, v, n / 2), joined_all(e, v + n / 2, n / 2));
}
/* A vector of the row from these columns on: of what follows them in memory too, but in the last row of a square of
   what is before them. */
static V load_row(Kernel *k, V base, MlirType t, V at, Columns c, uint32_t row, uint32_t align) {
    Emit *e = k->e;
    MlirType vt = em_vec(e, t, c.side);
    bool last = row % c.side + 1 == c.side;
    uint32_t more = last ? c.side - c.n : 0;
    V v = em_load(e, vt, row_address(k, base, t, at, (int64_t)row * c.row + c.from - more), align);
    return more ? em_part(e, v, more, c.side) : v;
}
static V load_square(Kernel *k, Buf *b, Dtype d, Ix address, uint32_t row) {
    Emit *e = k->e;
    uint32_t column = (uint32_t)ix_at(k->x.ix, address)->c, id[MAX_TILE] = {0};
    Ix first = ix_sub(k->x.ix, address, ix_dim(k->x.ix, column));
    MlirType t = em_memory_type(e, d);
    V parts[MAX_TILE][MAX_LANES / 2], rows[MAX_TILE];
    Reg r;
    for (uint32_t i = 0; i < row; i++)
        id[i] = memo_id(&k->x, KEY_ROWS - 1 - i, (uint64_t)b->number << 32 | first, NULL, 0);
    if (memo_get(&k->x, id[column], &r)) return reg_v(r);
    V base = kernel_buffer(k, b), at = kernel_index(k, first);
    Columns c = columns_from(k, d, 0, row);
    while (column >= c.from + c.n) c = columns_from(k, d, c.from + c.n, row);
    uint32_t squares = k->w / c.side;
    for (uint32_t g = 0; g < squares; g++) {
        for (uint32_t i = 0; i < c.side; i++) rows[i] = load_row(k, base, t, at, c, g * c.side + i, dtype_align(d));
        transpose(e, rows, c.side);
        for (uint32_t i = 0; i < c.n; i++) parts[i][g] = rows[i];
    }
    for (uint32_t i = 0; i < c.n; i++)
        memo_set(&k->x, id[c.from + i], reg(joined_all(e, parts[i], squares), false, k->x.depth));
    memo_get(&k->x, id[column], &r);
    return reg_v(r);
}
/* Elements [0, n) of a vector. */
static void store_first(Kernel *k, V v, uint32_t n, V p, Dtype d) {
    MlirType t = em_memory_type(k->e, d);
    for (uint32_t at = 0, part; at < n; at += part) {
        part = n - at;
        while (part & (part - 1)) part &= part - 1;
        V one = part > 1 ? em_part(k->e, v, at, part) : em_extract(k->e, v, at);
        em_store(k->e, one, em_gep(k->e, p, em_i64(k->e, at), t), dtype_align(d));
    }
}
/* Vectors of lanes as the elements of rows. The last columns come first: a vector of fewer elements than it has lanes
   is stored as a whole, over what is written later of the next row; only the last of a square is not. */
static void store_square(Kernel *k, V base, V at, Dtype d, const V *v, Columns c) {
    Emit *e = k->e;
    MlirType t = em_memory_type(e, d);
    if (c.from + c.n < c.row) store_square(k, base, at, d, v, columns_from(k, d, c.from + c.n, c.row));
    for (uint32_t g = 0; g < k->w / c.side; g++) {
        V rows[MAX_TILE];
        for (uint32_t i = 0; i < c.side; i++)
            rows[i] = i < c.n ? em_part(e, v[c.from + i], g * c.side, c.side)
                              : em_1(e, "llvm.mlir.poison", em_vec(e, t, c.side), 0, NULL, 0, NULL);
        transpose(e, rows, c.side);
        for (uint32_t i = 0; i < c.side; i++) {
            V p = row_address(k, base, t, at, (int64_t)(g * c.side + i) * c.row + c.from);
            if (i + 1 < c.side || c.n == c.side)
                em_store(e, rows[i], p, dtype_align(d));
            else
                store_first(k, rows[i], c.n, p, d);
        }
    }
}
static V lane_address(Kernel *k, V base, MlirType t, V at, V stride, uint32_t lane) {
    return em_gep(k->e, base, em_add(k->e, at, em_bin(k->e, "llvm.mul", stride, em_i64(k->e, lane))), t);
}
/* Elements far apart along the lanes but contiguous along the tile: at its first row, all rows are loaded and
   transposed. */
static V load_tile(Kernel *k, Buf *b, Dtype d, Ix address, Dim coef) {
    Emit *e = k->e;
    MlirType t = em_memory_type(e, d);
    Ix first = ix_sub(k->x.ix, address, ix_dim(k->x.ix, k->tile_at));
    uint32_t ids[MAX_TILE], n = k->tile;
    Reg r;
    assert(n && n <= MAX_TILE);
    for (uint32_t i = 0; i < n; i++)
        ids[i] = memo_id(&k->x, KEY_ROWS - 1 - i, (uint64_t)b->number << 32 | first, NULL, 0);
    if (memo_get(&k->x, ids[k->tile_at], &r)) return reg_v(r);
    assert(k->x.step);
    V v[MAX_TILE], base = kernel_buffer(k, b), at = kernel_index(k, first), stride = kernel_dim(k, coef);
    for (uint32_t i = 0; i < n; i++) {
        v[i] = em_load(e, em_vec(e, t, n), lane_address(k, base, t, at, stride, i), dtype_align(d));
    }
    transpose(e, v, n);
    for (uint32_t i = 0; i < n; i++) memo_set(&k->x, ids[i], reg(v[i], false, k->x.depth));
    return v[k->tile_at];
}
/* Lanes at a known distance are read and written one by one on CPUs without masks, with neither tail nor guard: they
   have no scatter, whose addresses would be extracted from vectors, and their gather is no faster (fft_64k 350 us, so
   316). */
static bool one_by_one(const Kernel *k) { return !k->x.plan->target->masks && !k->tail.ptr && !k->x.guard.v; }
/* Puts the element at p into lane l of v, which has those before. Elements of 128 bits are pairs of words: LLVM 22 dies
   on vectors of two of them. */
static V with_lane(Kernel *k, V v, uint32_t l, V p, Dtype d) {
    Emit *e = k->e;
    MlirType t = em_memory_type(e, d);
    uint32_t words = mlirTypeEqual(t, e->i128) ? 2 : 1;
    if (words == 2) t = e->i64;
    if (!l) v = em_1(e, "llvm.mlir.zero", em_vec(e, t, words * k->w), 0, NULL, 0, NULL);
    for (uint32_t i = 0; i < words; i++) {
        V at = i ? em_gep(e, p, em_i64(e, i), t) : p;
        v = em_insert(e, em_load(e, t, at, dtype_align(d) / words), v, words * l + i);
    }
    return v;
}
static V all_lanes(Kernel *k, V v, Dtype d) {
    MlirType t = em_vec(k->e, em_memory_type(k->e, d), k->w);
    return mlirTypeEqual(mlirValueGetType(v), t) ? v : em_cast(k->e, "llvm.bitcast", t, v);
}
static V lanes_from(Kernel *k, V base, Dtype d, V at, V stride) {
    MlirType t = em_memory_type(k->e, d);
    V v = {NULL};
    for (uint32_t l = 0; l < k->w; l++) v = with_lane(k, v, l, lane_address(k, base, t, at, stride, l), d);
    return all_lanes(k, v, d);
}
/* The lanes as a separate function of where the first one is, for elements at this distance. */
static V call_lanes(Kernel *k, V first, Dtype d, Dim coef) {
    Emit *e = k->e;
    MlirType t = em_memory_type(e, d), whole = em_vec(e, t, k->w);
    Str symbol = str_format(e->arena, "lanes.%s.%u.%" PRId64 "%s", dtype_info[d].name, k->w, coef, e->level);
    bool fresh;
    intern(&e->declared, symbol.at, symbol.n, &fresh);
    if (fresh) {
        MlirType *arg = arena_new(e->arena, MlirType, 1);
        *arg = e->ptr;
        Function f = em_function(e, symbol, whole, 1, arg, false);
        em_function_end(e, &f, lanes_from(k, em_arg(&f.scope, 0), d, em_i64(e, 0), em_i64(e, coef)));
    }
    return em_call_local(e, symbol, whole, 1, &first);
}
static V load_lanes(Kernel *k, V base, Dtype d, Ix address, Dim coef) {
    MlirType t = em_memory_type(k->e, d);
    V at = kernel_index(k, address), stride = kernel_dim(k, coef);
    if (kernel_calls(k) && dim_is_const(coef)) return call_lanes(k, em_gep(k->e, base, at, t), d, coef);
    return lanes_from(k, base, d, at, stride);
}
/* Lanes at any places, which are inside the array: LLVM would compute vectors of addresses (interpolation takes 1520 us
   so, not 1940). */
static V gather_lanes(Kernel *k, V base, Dtype d, Ix address) {
    Emit *e = k->e;
    V at = kernel_lane_indices(k, address), v = {NULL};
    for (uint32_t l = 0; l < k->w; l++) {
        V one = em_extract(e, at, l);
        if (mlirTypeEqual(mlirValueGetType(one), e->i32)) one = em_cast(e, "llvm.sext", e->i64, one);
        v = with_lane(k, v, l, em_gep(e, base, one, em_memory_type(e, d)), d);
    }
    return all_lanes(k, v, d);
}
static void store_lanes(Kernel *k, V base, Dtype d, V v, Ix address, Dim coef) {
    Emit *e = k->e;
    MlirType t = em_memory_type(e, d);
    V at = kernel_index(k, address), stride = kernel_dim(k, coef);
    for (uint32_t l = 0; l < k->w; l++)
        em_store(e, em_extract(e, v, l), lane_address(k, base, t, at, stride, l), dtype_align(d));
}
/* Are all rows of the tile in the array? One that is padded or joined may be read for some alone. */
static bool has_rows(const Kernel *k, const Buf *b, Dtype d, Ix address) {
    const Step *s = k->x.step;
    int64_t lo, hi;
    if (!s->tile_tested || (k->x.inside && !s->tile_apart)) return true;
    if (!ix_bounds(k->x.ix, address, &lo, &hi) || !dim_is_const(b->bytes)) return false;
    return lo >= k->tile_at && hi - k->tile_at + k->tile <= b->bytes / dtype_bytes(d);
}
static bool tiled(Kernel *k, Ix address) {
    bool other;
    if (!k->tile || k->w != k->tile || k->tail.ptr || k->x.guard.v) return false;
    assert(k->x.step);
    return ix_coef(k->x.ix, address, k->first, &other) == 1 && !other;
}

Reg kernel_load(Kernel *k, Buf *b, Dtype d, Ix address, Dense dense) {
    Emit *e = k->e;
    bool other;
    if (!k->lane || !ix_uses(k->x.ix, address, k->lane)) return load_uniform(k, b, d, address);
    if (k->w == 1) {
        Reg r = load_uniform(k, b, d, address);
        r.uniform = false;
        return r;
    }
    Dim coef = ix_coef(k->x.ix, address, k->lane, &other);
    Dim bytes = dense.all ? dim_mul(k->x.plan->cx->types, dense.all, dtype_bytes(d)) : b->bytes;
    V base = kernel_buffer(k, b), m;
    MlirType t = em_memory_type(e, d);
    if (!other && (coef == 1 || coef == -1)) {
        if (coef == 1) read_ahead(k, b, d, address, bytes);
        m = load_vector(k, base, d, address, bytes, coef < 0);
        return reg(em_to_register(e, d, m), false, k->x.depth);
    }
    V guard = k->x.guard.v ? kernel_vector(k, k->x.guard) : (V){NULL}, mask = both(k, guard, k->tail);
    if (!other && column_of_rows(k, address, coef, dense.rows)) {
        m = load_column(k, b, d, address, dense.rows);
    } else if (!other && tiled(k, address) && has_rows(k, b, d, address)) {
        m = load_tile(k, b, d, address, coef);
    } else if (!other && !mask.ptr && few_apart(k, coef)) {
        m = load_apart(k, b, d, address, (uint32_t)coef);
    } else if (!other && square_rows(k, d, address, coef, bytes)) {
        m = load_square(k, b, d, address, (uint32_t)coef);
    } else if (!other && one_by_one(k)) {
        m = load_lanes(k, base, d, address, coef);
    } else if (one_by_one(k)) {
        m = gather_lanes(k, base, d, address);
    } else {
        MlirType vt = em_vec(e, t, k->w);
        V none = em_1(e, "llvm.mlir.zero", vt, 0, NULL, 0, NULL);
        m = em_gather(e, vt, base, kernel_lane_indices(k, address), t, mask.ptr ? mask : ones(k, k->w), none,
                      dtype_align(d));
    }
    return reg(em_to_register(e, d, m), false, k->x.depth);
}
void kernel_store(Kernel *k, Buf *b, Dtype d, Ix address, Reg r) {
    Emit *e = k->e;
    bool other = false;
    bool lanes = k->lane && k->w > 1 && ix_uses(k->x.ix, address, k->lane);
    MlirType t = em_memory_type(e, d);
    V base = kernel_buffer(k, b), i = kernel_index(k, address);
    if (!lanes) {
        const Elsewhere *to = k->elsewhere;
        V v = r.uniform || k->w == 1 ? reg_v(r) : em_extract(e, reg_v(r), 0);
        V p = em_gep(e, base, i, t), m = em_to_memory(e, d, v);
        if (!to || !to->store || !to->store(k, b, d, address, m))
            em_store(e, m, p, address_align(k->x.plan, b, d, address));
        return;
    }
    V m = em_to_memory(e, d, kernel_vector(k, r));
    Dim coef = ix_coef(k->x.ix, address, k->lane, &other);
    if (!other && coef == 1) {
        V p = em_gep(e, base, i, t);
        if (k->tail.ptr)
            em_masked_store(e, m, p, k->tail, dtype_align(d));
        else
            em_store(e, m, p, dtype_align(d));
        return;
    }
    if (!other && one_by_one(k)) {
        store_lanes(k, base, d, m, address, coef);
        return;
    }
    V p = em_gep(e, base, kernel_lane_indices(k, address), t);
    V o[3] = {m, p, k->tail.ptr ? k->tail : ones(k, k->w)};
    Attr a = {"alignment", mlirIntegerAttrGet(e->i32, dtype_align(d))};
    em_op(e, "llvm.intr.masked.scatter", &(Op){0, NULL, 3, o, 1, &a, 0, NULL});
}

/* ---- stores of values whose elements lie beside each other: as many as the lanes are apart */
/* Writes them: 2 to 4 interleaved, or more as rows. `first`: the address of the first. */
static void store_beside(Kernel *k, Buf *b, Dtype d, Ix first, const Reg *r, uint32_t n) {
    Emit *e = k->e;
    MlirType t = em_memory_type(e, d);
    V base = kernel_buffer(k, b), at = kernel_index(k, first), v[MAX_TILE];
    for (uint32_t i = 0; i < n; i++) v[i] = em_to_memory(e, d, kernel_vector(k, r[i]));
    if (n <= MOST_INTERLEAVED) {
        int64_t lanes[MAX_LANES];
        V low = em_joined(e, v[0], v[1]), high = n > 2 ? em_joined(e, v[2], v[n - 1]) : low;
        for (uint32_t i = 0; i < n * k->w; i++) lanes[i] = i % n * k->w + i / n;
        em_store(e, em_shuffle(e, low, high, n * k->w, lanes), em_gep(e, base, at, t), dtype_align(d));
        return;
    }
    store_square(k, base, at, d, v, columns_from(k, d, 0, n));
}
/* How many values lie beside each other where the lanes are `coef` apart; 0: they are stored one by one. */
static uint32_t beside(const Kernel *k, Dtype d, Dim coef) {
    bool few = coef >= 2 && coef <= MOST_INTERLEAVED && coef * k->w <= MAX_LANES && !k->tail.ptr;
    return k->w > 1 && (few || has_squares(k, d, coef)) ? (uint32_t)coef : 0;
}
/* Elements of the rows of a tile that lie beside each other, far apart along the lanes: transposed. */
static void store_tile(Kernel *k, Buf *b, Dtype d, Ix first, Dim coef, const Reg *r) {
    Emit *e = k->e;
    MlirType t = em_memory_type(e, d);
    V base = kernel_buffer(k, b), at = kernel_index(k, first), stride = kernel_dim(k, coef), v[MAX_TILE];
    for (uint32_t i = 0; i < k->tile; i++) v[i] = em_to_memory(e, d, kernel_vector(k, r[i]));
    transpose(e, v, k->tile);
    for (uint32_t i = 0; i < k->tile; i++) {
        em_store(e, v[i], lane_address(k, base, t, at, stride, i), dtype_align(d));
    }
}
/* The stores that begin with this one and lie beside each other, together; else this one alone. */
static void store_pending(Kernel *k, Pending *all, uint32_t n, uint32_t i) {
    bool other = true;
    const Pending p = all[i];
    Dim coef = k->lane ? ix_coef(k->x.ix, p.address, k->lane, &other) : 0;
    bool rows = !other && coef != 0 && tiled(k, p.address);
    uint32_t want = other ? 0 : rows ? k->tile : beside(k, p.d, coef), found = 0, at[MAX_TILE];
    Reg r[MAX_TILE];
    for (uint32_t m = 0; m < n && found < want; m++) { /* they come in order */
        bool next = !all[m].done && same_buf(all[m].buf, p.buf) && all[m].d == p.d &&
                    all[m].address == ix_add(k->x.ix, p.address, ix_dim(k->x.ix, found));
        if (next) r[found] = all[m].r, at[found++] = m;
    }
    if (!want || found < want) {
        kernel_store(k, p.buf, p.d, p.address, p.r);
        all[i].done = true;
        return;
    }
    if (rows)
        store_tile(k, p.buf, p.d, p.address, coef, r);
    else
        store_beside(k, p.buf, p.d, p.address, r, want);
    for (uint32_t m = 0; m < want; m++) all[at[m]].done = true;
}
void kernel_store_all(Kernel *k, Pending *all, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (!all[i].done) store_pending(k, all, n, i);
}
uint32_t kernel_pending(Kernel *k, Pending *all, uint32_t apart) {
    Step *step = k->x.step;
    uint32_t n = 0;
    each(Store, s, step->stores) {
        Dtype d = val_array(k->x.plan->cx, s->v)->dtype;
        Ix index[MAX_RANK];
        if (s->level != k->x.level || s->row != k->rows) continue;
        step_at(k->x.plan, step, s->v, index);
        Reg r = eval_value(&k->x, s->v, index);
        if (plan_stacks(k->x.plan, step, s->v)) continue; /* it is written */
        Ix address = store_address(k->x.plan, s, index);
        all[apart * n++] = (Pending){s->buf, s->as ? s->as : d, address, kernel_convert(k, r, d, s->as), false};
    }
    return n;
}
/* Evaluates all values first: one of them may overwrite memory that another is computed from. */
void kernel_stores(Kernel *k) {
    Pending *all = arena_new(k->x.plan->arena, Pending, k->x.step->stores.n + 1);
    kernel_store_all(k, all, kernel_pending(k, all, 1));
}

/* ---- stores of a GPU that leave its last cache soon: rows of 512 bytes from a table of 25 MB in 184 us, not 201 */
enum { STREAM_WORDS = DEVICE_ALIGN / 4, LEAST_STREAMED = 2 /* bytes of an element */ };
static bool is_streamed(Kernel *k, const Pending *run, uint32_t n) {
    bool wide = dtype_bytes(run->d) >= LEAST_STREAMED && n * dtype_bytes(run->d) == DEVICE_ALIGN;
    if (!wide || address_align(k->x.plan, run->buf, run->d, run->address) < DEVICE_ALIGN) return false;
    for (uint32_t i = 1; i < n; i++)
        if (run[i].address != ix_add(k->x.ix, run->address, ix_dim(k->x.ix, i))) return false;
    return true;
}
void kernel_stream(Kernel *k, Pending *run, uint32_t n) {
    static const char text[] = "st.global.cs.v4.b32 [$0], {$1, $2, $3, $4};";
    Emit *e = k->e;
    MlirType t = em_memory_type(e, run->d);
    if (!is_streamed(k, run, n)) return;
    V at = em_gep(e, kernel_buffer(k, run->buf), kernel_index(k, run->address), t), all = {NULL};
    for (uint32_t i = 0; i < n; i++) {
        V one = em_to_memory(e, run[i].d, reg_v(run[i].r));
        all = i ? em_insert(e, one, all, i) : em_broadcast(e, one, n);
        run[i].done = true;
    }
    all = em_cast(e, "llvm.bitcast", em_vec(e, e->i32, STREAM_WORDS), all);
    V o[1 + STREAM_WORDS] = {em_cast(e, "llvm.addrspacecast", mlirLLVMPointerTypeGet(e->mlir, GLOBAL_SPACE), at)};
    for (uint32_t i = 0; i < STREAM_WORDS; i++) o[1 + i] = em_extract(e, all, i);
    Attr attrs[3] = {{"asm_string", mlirStringAttrGet(e->mlir, mlirStringRefCreateFromCString(text))},
                     {"constraints", mlirStringAttrGet(e->mlir, mlirStringRefCreateFromCString("l,r,r,r,r,~{memory}"))},
                     {"has_side_effects", mlirUnitAttrGet(e->mlir)}};
    em_op(e, "llvm.inline_asm", &(Op){0, NULL, 1 + STREAM_WORDS, o, 3, attrs, 0, NULL});
}
