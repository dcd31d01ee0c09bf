#include "crossed.h"
#include "../plan/crossed.h"
#include "../cost.h"
#include "runs.h"
#include "threads.h"
#include <assert.h>
#include <mlir-c/BuiltinTypes.h>

/* Shared memory has, for each iteration of `across`, the tile's elements along the lanes, those of less than a word
   together in one cell, and one cell more, so that neighbouring iterations are in different banks. */

enum { MOST_READS = 8, MOST_IN_CELL = 4 }; /* of a thread at once; elements of a cell */

typedef struct {
    const Crossed *c;
    MlirType cell;        /* of shared memory */
    uint32_t bits, apart; /* of an element; cells between iterations of `across` */
    V lane, across;       /* the first iterations */
    V memory[MOST_CROSSED];
    V row, first;                /* where a run's elements are: its iteration of `across`, its first cell */
    uint32_t next[MOST_CROSSED]; /* the element of a run that is stored next … */
    V part[MOST_CROSSED];        /* … and those before it that are of one cell with it */
} Tile;

static V times(Kernel *k, V a, uint32_t n) { return em_mul(k->e, a, em_i64(k->e, n)); }
static V over(Kernel *k, V a, uint32_t n) { return em_bin(k->e, "llvm.udiv", a, em_i64(k->e, n)); }
static V modulo(Kernel *k, V a, uint32_t n) { return em_bin(k->e, "llvm.urem", a, em_i64(k->e, n)); }
/* The number of the thread's access `i` of those of the block. */
static V number_of(Kernel *k, uint32_t i) {
    return em_add(k->e, thread_number(k), em_i64(k->e, (int64_t)i * k->block.threads));
}
static bool is_store(const Tile *t, uint32_t m) { return t->c->at[m].kind == PLACE_STORE; }
static Dim length(const Kernel *k, Atom loop) { return loop_extent(k->x.ix, loop); }

/* ---- cells */
static uint32_t cell_bytes(const Tile *t) { return t->c->bytes * crossed_together(t->c); }
static MlirType element_bits(Kernel *k, const Tile *t) { return mlirIntegerTypeGet(k->e->mlir, t->bits); }
static V cell_at(Kernel *k, const Tile *t, uint32_t m, V at, uint32_t more) {
    return em_gep(k->e, t->memory[m], em_add(k->e, at, em_i64(k->e, more)), t->cell);
}
/* Lane l of a cell. */
static V out_of_cell(Kernel *k, const Tile *t, V cell, uint32_t l) {
    if (l) cell = em_bin(k->e, "llvm.lshr", cell, em_int(k->e, t->cell, (int64_t)l * t->bits));
    return crossed_together(t->c) > 1 ? em_cast(k->e, "llvm.trunc", element_bits(k, t), cell) : cell;
}
/* Adds an element to a cell as its lane l; the cell has those before. */
static V into_cell(Kernel *k, const Tile *t, V cell, V element, uint32_t l) {
    Emit *e = k->e;
    if (crossed_together(t->c) > 1) element = em_cast(e, "llvm.zext", t->cell, element);
    if (l) element = em_bin(e, "llvm.shl", element, em_int(e, t->cell, (int64_t)l * t->bits));
    return l ? em_bin(e, "llvm.or", cell, element) : element;
}

/* ---- accesses of memory: 16 bytes along `across` for each lane of a cell */
typedef struct {
    V read, word;                      /* in the tile: its number along `across`, the cell along the lanes */
    V got[MOST_CROSSED][MOST_IN_CELL]; /* the elements */
} Access;
static uint32_t accesses(const Kernel *k, const Crossed *c) {
    return c->across_side / crossed_read(c) * (c->lane_side / crossed_together(c)) / k->block.threads;
}
static Access access_of(Kernel *k, const Tile *t, uint32_t number) {
    V i = number_of(k, number);
    uint32_t n = t->c->across_side / crossed_read(t->c);
    return (Access){.read = modulo(k, i, n), .word = over(k, i, n)};
}
/* Their numbers along the loops. */
static V read_of(Kernel *k, const Tile *t, const Access *a) {
    return em_add(k->e, over(k, t->across, crossed_read(t->c)), a->read);
}
static V word_of(Kernel *k, const Tile *t, const Access *a) {
    return em_add(k->e, over(k, t->lane, crossed_together(t->c)), a->word);
}
/* Where the elements of lane l lie of the access whose numbers are bound. */
static V place_of(Kernel *k, const Tile *t, const ArrayPlace *p, uint32_t l) {
    const Crossed *c = t->c;
    Indices *x = k->x.ix;
    Ix lane = ix_add(x, ix_scale(x, ix_atom(x, c->words), crossed_together(c)), ix_dim(x, l));
    Ix at = ix_substitute(x, p->address, c->across, ix_scale(x, ix_atom(x, c->reads), crossed_read(c)));
    V index = kernel_index(k, ix_substitute(x, at, k->lane, lane));
    return em_gep(k->e, kernel_buffer(k, p->buf), index, em_memory_type(k->e, p->dtype));
}
static V first_cell(Kernel *k, const Tile *t, const Access *a) {
    return em_add(k->e, times(k, a->read, crossed_read(t->c) * t->apart), a->word);
}

/* ---- reads into shared memory */
/* Where the tile goes beyond the loops' ends, the last elements are read again. */
static V within(Kernel *k, V at, Atom loop, uint32_t at_once) {
    if (length(k, loop) % at_once == 0) return at;
    return em_bin(k->e, "llvm.intr.umin", at, em_i64(k->e, length(k, loop) - 1));
}
static Access read_access(Kernel *k, const Tile *t, uint32_t number) {
    const Crossed *c = t->c;
    Emit *e = k->e;
    Access a = access_of(k, t, number);
    uint32_t n = crossed_read(c), q = crossed_together(c);
    kernel_enter(k);
    kernel_bind(k, c->reads, within(k, read_of(k, t, &a), c->reads, c->across_side / n));
    kernel_bind(k, c->words, within(k, word_of(k, t, &a), c->words, c->lane_side / q));
    for (uint32_t m = 0; m < c->n; m++)
        for (uint32_t l = 0; l < q && !is_store(t, m); l++)
            a.got[m][l] = em_load(e, em_vec(e, element_bits(k, t), n), place_of(k, t, &c->at[m], l), DEVICE_ALIGN);
    kernel_leave(k);
    return a;
}
static void leave_access(Kernel *k, const Tile *t, const Access *a) {
    V first = first_cell(k, t, a), cell = {NULL};
    for (uint32_t m = 0; m < t->c->n; m++)
        for (uint32_t j = 0; j < crossed_read(t->c) && !is_store(t, m); j++) {
            for (uint32_t l = 0; l < crossed_together(t->c); l++)
                cell = into_cell(k, t, cell, em_extract(k->e, a->got[m][l], j), l);
            em_store(k->e, cell, cell_at(k, t, m, first, j * t->apart), cell_bytes(t));
        }
}
static void fetch(Kernel *k, const Tile *t) {
    uint32_t n = accesses(k, t->c), most = MOST_READS / (t->c->n * crossed_together(t->c));
    Access a[MOST_READS];
    for (uint32_t from = 0; from < n; from += most) {
        uint32_t now = n - from < most ? n - from : most;
        for (uint32_t i = 0; i < now; i++) a[i] = read_access(k, t, from + i);
        for (uint32_t i = 0; i < now; i++) leave_access(k, t, &a[i]);
    }
}

/* ---- runs along the lanes */
/* Is this the place of element j of the run? */
static bool is_place(Kernel *k, const ArrayPlace *p, const Buf *b, Dtype d, Ix address, uint32_t j) {
    const Step *s = k->x.step;
    Indices *x = k->x.ix;
    Ix lane = ix_add(x, ix_scale(x, ix_atom(x, s->runs), s->run), ix_dim(x, j));
    if (!same_buf(p->buf, b) || p->dtype != d) return false;
    return ix_substitute(x, p->address, k->lane, lane) == crossed_address(x, s, address);
}
static V cell_in_run(Kernel *k, const Tile *t, uint32_t m, uint32_t j) {
    return cell_at(k, t, m, em_add(k->e, times(k, t->row, t->apart), t->first), j / crossed_together(t->c));
}
static V load(Kernel *k, const Buf *b, Dtype d, Ix address) {
    const Tile *t = k->elsewhere->user;
    for (uint32_t m = 0; k->in_run && m < t->c->n; m++) {
        uint32_t j = k->in_run - 1;
        if (is_store(t, m) || !is_place(k, &t->c->at[m], b, d, address, j)) continue;
        V v = em_load(k->e, t->cell, cell_in_run(k, t, m, j), cell_bytes(t));
        v = out_of_cell(k, t, v, j % crossed_together(t->c));
        MlirType type = em_memory_type(k->e, d);
        return mlirTypeIsAInteger(type) ? v : em_cast(k->e, "llvm.bitcast", type, v);
    }
    return (V){NULL};
}
static bool store(Kernel *k, const Buf *b, Dtype d, Ix address, V v) {
    Tile *t = k->elsewhere->user;
    for (uint32_t m = 0; m < t->c->n; m++) {
        uint32_t j = t->next[m], q = crossed_together(t->c);
        if (!is_store(t, m) || !is_place(k, &t->c->at[m], b, d, address, j)) continue;
        if (!mlirTypeIsAInteger(mlirValueGetType(v))) v = em_cast(k->e, "llvm.bitcast", element_bits(k, t), v);
        t->part[m] = into_cell(k, t, t->part[m], v, j % q);
        if (j % q == q - 1) em_store(k->e, t->part[m], cell_in_run(k, t, m, j), cell_bytes(t));
        t->next[m]++;
        return true;
    }
    return false;
}
/* i1: is that iteration there? NULL: it is. */
static V is_inside(Kernel *k, V at, Dim n, uint32_t at_once) {
    return n % at_once == 0 ? (V){NULL} : em_cmpi(k->e, "ult", at, em_i64(k->e, n));
}
/* A scope of its own, which is entered if both are true. */
static If enter_if(Kernel *k, V a, V b) {
    V is = !a.ptr ? b : !b.ptr ? a : em_both(k->e, a, b);
    if (is.ptr) return kernel_if(k, is);
    kernel_enter(k);
    return (If){0};
}
static void leave_if(Kernel *k, If *f, bool condition) {
    if (condition)
        kernel_if_end(k, f);
    else
        kernel_leave(k);
}
static void run_of(Kernel *k, Tile *t, uint32_t number) {
    const Step *s = k->x.step;
    const Crossed *c = t->c;
    uint32_t runs = c->lane_side / s->run, least = k->least;
    V i = number_of(k, number), run = modulo(k, i, runs);
    t->row = over(k, i, runs), t->first = times(k, run, s->run / crossed_together(c));
    V across = em_add(k->e, t->across, t->row), at = em_add(k->e, over(k, t->lane, s->run), run);
    V a = is_inside(k, across, length(k, c->across), c->across_side), b = is_inside(k, at, length(k, s->runs), runs);
    If f = enter_if(k, a, b);
    k->least = k->x.depth;
    kernel_bind(k, c->across, across);
    kernel_bind(k, s->runs, at);
    memset(t->next, 0, sizeof t->next);
    kernel_whole_run(k);
    for (uint32_t m = 0; m < c->n; m++) assert(!is_store(t, m) || t->next[m] == s->run);
    k->least = least;
    leave_if(k, &f, a.ptr || b.ptr);
}

/* ---- stores from shared memory */
static void write_access(Kernel *k, const Tile *t, uint32_t number) {
    const Crossed *c = t->c;
    Emit *e = k->e;
    Access a = access_of(k, t, number);
    uint32_t n = crossed_read(c), q = crossed_together(c);
    V read = read_of(k, t, &a), word = word_of(k, t, &a), first = first_cell(k, t, &a);
    V x = is_inside(k, read, length(k, c->reads), c->across_side / n);
    V y = is_inside(k, word, length(k, c->words), c->lane_side / q);
    If f = enter_if(k, x, y);
    kernel_bind(k, c->reads, read);
    kernel_bind(k, c->words, word);
    for (uint32_t m = 0; m < c->n; m++)
        for (uint32_t l = 0; l < q && is_store(t, m); l++) {
            V all = em_1(e, "llvm.mlir.zero", em_vec(e, element_bits(k, t), n), 0, NULL, 0, NULL);
            for (uint32_t j = 0; j < n; j++) {
                V cell = em_load(e, t->cell, cell_at(k, t, m, first, j * t->apart), cell_bytes(t));
                all = em_insert(e, out_of_cell(k, t, cell, l), all, j);
            }
            em_store(e, all, place_of(k, t, &c->at[m], l), DEVICE_ALIGN);
        }
    leave_if(k, &f, x.ptr || y.ptr);
}

static Tile tile_of(Kernel *k, const Crossed *c) {
    Emit *e = k->e;
    uint32_t bits = 8 * c->bytes, q = crossed_together(c);
    Tile t = {.c = c, .bits = bits, .cell = mlirIntegerTypeGet(e->mlir, bits * q), .apart = c->lane_side / q + 1};
    assert(q <= MOST_IN_CELL && accesses(k, c));
    t.lane = times(k, kernel_index(k, ix_atom(k->x.ix, c->lane_tiles)), c->lane_side);
    t.across = times(k, kernel_index(k, ix_atom(k->x.ix, c->across_tiles)), c->across_side);
    for (uint32_t m = 0; m < c->n; m++)
        t.memory[m] = threads_share(k, (int64_t)c->across_side * t.apart * cell_bytes(&t));
    return t;
}
void kernel_crossed(Kernel *k) {
    const Step *s = k->x.step;
    const Crossed *c = &s->crossed;
    uint32_t n = c->across_side * (c->lane_side / s->run) / k->block.threads;
    Tile t = tile_of(k, c);
    bool reads = false, stores = false;
    for (uint32_t m = 0; m < c->n; m++) *(is_store(&t, m) ? &stores : &reads) = true;
    if (reads) fetch(k, &t), threads_meet(k);
    k->elsewhere = &(Elsewhere){load, store, &t};
    for (uint32_t i = 0; i < n; i++) run_of(k, &t, i);
    k->elsewhere = NULL;
    if (stores) threads_meet(k);
    for (uint32_t i = 0; stores && i < accesses(k, c); i++) write_access(k, &t, i);
    if (!s->grid.once) threads_meet(k); /* before the next tile */
}
