#include "dot_device.h"
#include "gemm.h"
#include "grid.h"
#include "threads.h"
#include <assert.h>
#include <mlir-c/Dialect/LLVM.h>

/* The terms of a product in shared memory.

   For tensor cores a row is 64 or 128 bytes of terms, or a term is a row of rows or columns: what the array has beside
   each other is so here too, and ldmatrix brings it in order. Pieces of 16 bytes of eight rows are read at once, so
   those of row r are exchanged by r: then they are in different banks. What is 16 bytes in memory is copied
   asynchronously; all else is evaluated.

   Warpgroups read the same, from lines of at most BANKS_BYTES: a term's row is divided into such lines, each with those
   of all other terms behind it.

   Else a term is a row of rows or columns, and TILE_PAD elements more. */

enum { PIECE = 16, BANKS_BYTES = 128, AT_ONCE = 2 };

static bool by_warps(const Product *p) { return p->dot->form == DOT_MMA; }
static uint32_t bytes_of(const Product *p) { return dtype_bytes(p->dot->as); }
static uint32_t in_piece(const Product *p) { return PIECE / bytes_of(p); }
bool staged_along(const Product *p, uint32_t side) {
    return by_warps(p) && (p->dot->side[side].along_terms || bytes_of(p) == 1);
}
static uint32_t pitch(const Product *p, uint32_t side) {
    if (staged_along(p, side)) return p->dot->tile.terms * bytes_of(p);
    return (tile_length(p, side) + (by_warps(p) ? 0 : TILE_PAD)) * bytes_of(p);
}
int64_t staged_bytes(const Product *p, uint32_t side) {
    return (int64_t)pitch(p, side) * (staged_along(p, side) ? tile_length(p, side) : p->dot->tile.terms);
}

/* ---- places */
uint32_t staged_line(const Product *p, uint32_t side) {
    uint32_t width = pitch(p, side);
    return p->dot->warpgroups && width > BANKS_BYTES ? BANKS_BYTES : width;
}
uint32_t stage_ahead(const Product *p) { return p->dot->tile.turns - (p->dot->warpgroups ? 2 : 1); }
/* Of the rows' terms in a place of the ring. */
static int64_t rows_bytes(const Product *p) { return p->dot->held ? 0 : staged_bytes(p, 0); }
V stage_slot(const Product *p, V turn) {
    V slot = rest(p, em_bin(p->e, "llvm.sub", turn, p->from), p->dot->tile.turns);
    return em_gep(p->e, p->shared, times(p, slot, rows_bytes(p) + staged_bytes(p, 1)), p->e->i8);
}
/* The keys are the columns of the first product, and the terms of the second. */
Product stage_tile(const Product *p, V tile) {
    Product at = *p;
    uint32_t turns = p->dot->tile.turns;
    at.shared = em_gep(p->e, p->shared, times(p, rest(p, tile, HELD_PLACES), turns * staged_bytes(p, 1)), p->e->i8);
    if (p->dot->attention)
        at.from = times(p, tile, turns);
    else
        at.first[1] = times(p, tile, p->dot->tile.columns);
    return at;
}
static V slot_of(const Product *p, uint32_t side, V turn) {
    if (side || !p->dot->held) return stage_slot(p, turn);
    return em_gep(p->e, p->rows, times(p, turn, staged_bytes(p, 0)), p->e->i8);
}
V staged_at(const Product *p, uint32_t side, V slot, V at, V term) {
    Emit *e = p->e;
    bool along = staged_along(p, side);
    V row = along ? at : term, column = along ? term : at;
    uint32_t width = staged_line(p, side), pieces = width / PIECE;
    if (side) slot = em_gep(e, slot, em_i64(e, rows_bytes(p)), e->i8);
    if (!by_warps(p)) return em_gep(e, slot, em_add(p->e, times(p, row, width), times(p, column, bytes_of(p))), e->i8);
    if (width < pitch(p, side)) {
        V line = over(p, column, width / bytes_of(p));
        slot = em_gep(e, slot, times(p, line, (int64_t)width * p->dot->tile.terms), e->i8);
        column = rest(p, column, width / bytes_of(p));
    }
    uint32_t once = width < BANKS_BYTES ? BANKS_BYTES / width : 1; /* rows that are in different banks anyway */
    V turned = rest(p, over(p, row, once), pieces < 8 ? pieces : 8);
    V piece = em_bin(e, "llvm.xor", over(p, column, in_piece(p)), turned);
    V byte = em_add(p->e, times(p, piece, PIECE), times(p, rest(p, column, in_piece(p)), bytes_of(p)));
    return em_gep(e, slot, em_add(p->e, times(p, row, width), byte), e->i8);
}

/* ---- the share of a thread */
/* Number `i` of its elements, or pieces of `n` elements: the row or column of the tile, the term. */
typedef struct {
    V at, term;
} Where;
static Where share(const Product *p, uint32_t side, V i, uint32_t n) {
    bool along = p->dot->side[side].along_terms;
    uint32_t width = (along ? p->dot->tile.terms : tile_length(p, side)) / n;
    V thread = thread_number(p->k), number = em_add(p->e, thread, times(p, i, TILE_THREADS));
    V outer = over(p, number, width), inner = times(p, rest(p, number, width), n);
    if (TILE_THREADS % width == 0) { /* so that addresses differ by constants */
        outer = em_add(p->e, over(p, thread, width), times(p, i, TILE_THREADS / width));
        inner = times(p, rest(p, thread, width), n);
    }
    return along ? (Where){outer, inner} : (Where){inner, outer};
}
static uint32_t elements(const Product *p, uint32_t side) { return tile_length(p, side) * p->dot->tile.terms; }
/* Are whole pieces read, by all threads? With tensor cores also by some of them. */
static bool in_pieces(const Product *p, uint32_t side) {
    return p->dot->side[side].plain && (by_warps(p) || elements(p, side) % (TILE_THREADS * in_piece(p)) == 0);
}
static uint32_t turns_of(const Product *p, uint32_t side) {
    uint32_t all = elements(p, side) / (in_pieces(p, side) ? in_piece(p) : 1);
    return (all + TILE_THREADS - 1) / TILE_THREADS;
}

/* ---- reading */
/* The index `at`, or the last of which there are n from it on; all of a tile that is whole exist. */
static V clamped(const Product *p, V at, Dim all, uint32_t n, uint32_t tile) {
    if (dim_mod(p->k->x.plan->cx->types, all, tile) == 0) return at;
    return em_bin(p->e, "llvm.intr.smin", at, em_bin(p->e, "llvm.sub", kernel_dim(p->k, all), em_i64(p->e, n)));
}
/* Terms that are brought whether they exist or not: of one turn, in attention those of a tile of keys. */
static uint32_t terms_at_once(const Product *p) {
    return p->dot->tile.terms * (p->dot->attention ? p->dot->tile.turns : 1);
}
static bool all_terms(const Product *p) { return dim_mod(p->k->x.plan->cx->types, p->dot->k, terms_at_once(p)) == 0; }
/* Sets the loops of an operand at n elements of the arrays; is the term one? */
static V bind(const Product *p, uint32_t side, V first, Where w, uint32_t n) {
    Kernel *k = p->k;
    const DeviceDot *d = p->dot;
    bool along = d->side[side].along_terms;
    uint32_t role = side ? DOT_COLUMNS : DOT_ROWS;
    Dim extent = d->loops[role].extent, terms = d->k;
    V at = clamped(p, em_add(p->e, p->first[side], w.at), extent, along ? 1 : n, tile_length(p, side));
    V term = em_add(p->e, first, w.term);
    grid_bind(k, d->loops[role].at, d->loops[role].n, extent, at);
    grid_bind(k, d->summed, d->nsummed, terms, clamped(p, term, terms, along ? n : 1, terms_at_once(p)));
    return all_terms(p) ? em_int(p->e, p->e->i1, 1) : em_cmpi(p->e, "slt", term, kernel_dim(k, terms));
}
static V first_term(const Product *p, V turn) { return times(p, turn, p->dot->tile.terms); }
static V evaluated(const Product *p, uint32_t side, V first, Where w) {
    Kernel *k = p->k;
    Emit *e = p->e;
    Val v = dot_device_operand(p->dot, side);
    kernel_enter(k);
    V is = bind(p, side, first, w, 1), x = reg_v(eval_value(&k->x, v, p->index[side]));
    kernel_leave(k);
    x = gemm_convert(e, val_array(k->x.plan->cx, v)->dtype, p->dot->as, x);
    return em_to_memory(e, p->dot->as, em_select(e, is, x, gemm_zero(e, p->dot->as, 1)));
}
/* The address of a piece in memory, and whether its terms are any. */
static V piece_at(const Product *p, uint32_t side, V first, Where w, V *is) {
    Kernel *k = p->k;
    const DotOperand *from = &p->dot->side[side].at;
    kernel_enter(k);
    *is = bind(p, side, first, w, in_piece(p));
    V at = kernel_index(k, from->address);
    kernel_leave(k);
    return em_gep(p->e, kernel_buffer(k, from->buf), at, em_memory_type(p->e, from->dtype));
}
static V piece(const Product *p, uint32_t side, V first, Where w) {
    Emit *e = p->e;
    MlirType t = em_vec(e, em_memory_type(e, p->dot->as), in_piece(p));
    V is, at = piece_at(p, side, first, w, &is);
    return em_select(e, is, em_load(e, t, at, PIECE), em_1(e, "llvm.mlir.zero", t, 0, NULL, 0, NULL));
}

/* ---- through registers */
static void read_held(const Product *p, uint32_t side, V turn, V *to) {
    assert(turns_of(p, side) <= HELD / 2);
    for (uint32_t i = 0; i < turns_of(p, side); i++) {
        Where w = share(p, side, em_i64(p->e, i), in_pieces(p, side) ? in_piece(p) : 1);
        to[i] = (in_pieces(p, side) ? piece : evaluated)(p, side, first_term(p, turn), w);
    }
}
static void write_element(const Product *p, uint32_t side, V slot, Where w, V x) {
    em_store(p->e, x, staged_at(p, side, slot, w.at, w.term), bytes_of(p));
}
/* A piece of terms is divided among the rows of shared memory. */
static void write_piece(const Product *p, uint32_t side, V slot, Where w, V x) {
    if (!p->dot->side[side].along_terms) {
        em_store(p->e, x, staged_at(p, side, slot, w.at, w.term), PIECE);
        return;
    }
    for (uint32_t i = 0; i < in_piece(p); i++)
        write_element(p, side, slot, (Where){w.at, em_add(p->e, w.term, em_i64(p->e, i))}, em_extract(p->e, x, i));
}
static void write_held(const Product *p, uint32_t side, V turn, const V *x) {
    for (uint32_t i = 0; i < turns_of(p, side); i++) {
        Where w = share(p, side, em_i64(p->e, i), in_pieces(p, side) ? in_piece(p) : 1);
        (in_pieces(p, side) ? write_piece : write_element)(p, side, stage_slot(p, turn), w, x[i]);
    }
}

/* ---- for tensor cores */
static V in_space(Emit *e, V pointer, uint32_t space) {
    return em_cast(e, "llvm.addrspacecast", mlirLLVMPointerTypeGet(e->mlir, space), pointer);
}
/* Is there such a row or column? What a tile has beyond the last one is not read in its place. */
static V any_of_tile(const Product *p, uint32_t side, Where w) {
    Dim all = p->dot->loops[side ? DOT_COLUMNS : DOT_ROWS].extent;
    if (dim_mod(p->k->x.plan->cx->types, all, tile_length(p, side)) == 0) return em_int(p->e, p->e->i1, 1);
    return em_cmpi(p->e, "slt", em_add(p->e, p->first[side], w.at), kernel_dim(p->k, all));
}
static void copy_piece(const Product *p, uint32_t side, V turn, uint32_t i) {
    Emit *e = p->e;
    Where w = share(p, side, em_i64(e, i), in_piece(p));
    V is, from = piece_at(p, side, first_term(p, turn), w, &is);
    is = em_bin(e, "llvm.and", is, any_of_tile(p, side, w));
    V bytes = em_select(e, is, em_int(e, e->i32, PIECE), em_int(e, e->i32, 0));
    V o[3] = {in_space(e, staged_at(p, side, slot_of(p, side, turn), w.at, w.term), SHARED_SPACE),
              in_space(e, from, GLOBAL_SPACE), bytes};
    threads_intrinsic(e, "llvm.nvvm.cp.async.cg.shared.global.16.s", no_type, 3, o);
}
static void copy_pieces(const Product *p, uint32_t side, V turn) {
    Emit *e = p->e;
    uint32_t all = elements(p, side) / in_piece(p);
    for (uint32_t i = 0; i < turns_of(p, side); i++) {
        uint32_t left = all - i * TILE_THREADS;
        if (left >= TILE_THREADS) {
            copy_piece(p, side, turn, i);
            continue;
        }
        If some = em_if(e, em_cmpi(e, "ult", thread_number(p->k), em_i64(e, left)));
        kernel_enter(p->k);
        copy_piece(p, side, turn, i);
        kernel_leave(p->k);
        em_else(e, &some, 0, NULL);
        em_if_end(e, &some, NULL, NULL);
    }
}
/* Elements that are evaluated, AT_ONCE of them at a time. */
static void write_evaluated(const Product *p, uint32_t side, V turn) {
    Emit *e = p->e;
    V x[AT_ONCE], slot = slot_of(p, side, turn);
    uint32_t all = turns_of(p, side), n = all < AT_ONCE ? all : AT_ONCE;
    For f = em_for(e, em_i64(e, 0), em_i64(e, all), em_i64(e, n), 0, NULL);
    kernel_enter(p->k);
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < n; i++) {
            Where w = share(p, side, em_add(p->e, em_arg(&f.scope, 0), em_i64(e, i)), 1);
            if (pass)
                write_element(p, side, slot, w, x[i]);
            else
                x[i] = evaluated(p, side, first_term(p, turn), w);
        }
    kernel_leave(p->k);
    em_for_end(e, &f, NULL, NULL);
}

/* ---- turns */
static bool asynchronous(const Product *p) { return by_warps(p) && (in_pieces(p, 0) || in_pieces(p, 1)); }
static void read_turn(const Product *p, V turn, Held *h) {
    for (uint32_t side = 0; side < 2; side++)
        if (!by_warps(p))
            read_held(p, side, turn, h->x + h->n), h->n += turns_of(p, side);
        else
            (in_pieces(p, side) ? copy_pieces : write_evaluated)(p, side, turn);
}
/* Are there terms for certain? Then threads that read into registers do the last turn again in place of one after it:
   behind a condition, ptxas would read only after most of the products, with nothing left to do until the terms
   come. */
static bool reads_always(const Product *p) {
    return !by_warps(p) && dim_at_most(p->k->x.plan->cx->types, 1, p->dot->k, true) == 1;
}
/* Is what a turn after the last reads inside anyway, for both operands by the same limit? With another one products of
   f32 that are contiguous along rows and columns spilled 20 to 40 bytes on sm_90. */
static bool stays_inside(const Product *p) {
    return !all_terms(p) && !p->dot->side[0].along_terms && !p->dot->side[1].along_terms;
}
void stage_begin(const Product *p, V turn, V turns, Held *h) {
    Emit *e = p->e;
    V none[HELD];
    h->n = 0;
    h->any = em_cmpi(e, "slt", turn, turns);
    if (reads_always(p)) {
        V last = em_bin(e, "llvm.sub", turns, em_i64(e, 1));
        read_turn(p, stays_inside(p) ? turn : em_bin(e, "llvm.intr.smin", turn, last), h);
        return;
    }
    If any = em_if(e, h->any);
    kernel_enter(p->k);
    read_turn(p, turn, h);
    kernel_leave(p->k);
    em_else(e, &any, h->n, h->x);
    for (uint32_t i = 0; i < h->n; i++)
        none[i] = em_1(e, "llvm.mlir.poison", mlirValueGetType(h->x[i]), 0, NULL, 0, NULL);
    em_if_end(e, &any, none, h->x);
    if (asynchronous(p)) threads_intrinsic(e, "llvm.nvvm.cp.async.commit.group", no_type, 0, NULL);
}
void stage_end(const Product *p, V turn, const Held *h) {
    if (!h->n) return;
    bool always = reads_always(p);
    If any = {0};
    if (!always) any = kernel_if(p->k, h->any);
    write_held(p, 0, turn, h->x);
    write_held(p, 1, turn, h->x + turns_of(p, 0));
    if (!always) kernel_if_end(p->k, &any);
}
void stage_side(const Product *p, uint32_t side, V turn) {
    V held[HELD];
    if (by_warps(p)) {
        (in_pieces(p, side) ? copy_pieces : write_evaluated)(p, side, turn);
        return;
    }
    read_held(p, side, turn, held);
    write_held(p, side, turn, held);
}
bool stage_asynchronous(const Product *p, uint32_t side) { return by_warps(p) && in_pieces(p, side); }
void stage_wait(const Product *p, bool all) {
    V left = em_int(p->e, p->e->i32, all ? 0 : stage_ahead(p) - 1);
    if (asynchronous(p)) threads_intrinsic(p->e, "llvm.nvvm.cp.async.wait.group", no_type, 1, &left);
    if (p->dot->warpgroups) threads_intrinsic(p->e, "llvm.nvvm.fence.proxy.async.shared_cta", no_type, 0, NULL);
    threads_meet(p->k);
}
