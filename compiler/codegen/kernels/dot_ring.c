#include "dot_device.h"
#include "grid.h"
#include "threads.h"
#include <mlir-c/Dialect/LLVM.h>

/* Terms that come as boxes of both arrays (plan/dot_box.c), into a ring of places: one thread asks for them, and nobody
   is occupied with copying. Each place has two barriers in shared memory. `full` has one arrival, of the thread that
   asks, and expects the bytes of the boxes; all threads wait for it. `empty` has one of each warp, when its products of
   the place have ended; only the thread that asks waits for it. A phase of a barrier is waited for by its parity: a use
   of the place is one phase of both.

   An operand whose rows or columns are beside each other comes as one box for each line of them. */

enum { MAP_BYTES = 128, TILE_WARPS = TILE_THREADS / WARP };
typedef enum { FULL, EMPTY, BARRIERS } Which;

static uint32_t places(const Product *p) { return p->dot->tile.turns; }
int64_t ring_bytes(const Product *p) { return (int64_t)BARRIERS * places(p) * 8; }
static V in_space(const Product *p, V pointer, uint32_t space) {
    return em_cast(p->e, "llvm.addrspacecast", mlirLLVMPointerTypeGet(p->e->mlir, space), pointer);
}
static V word(const Product *p, V index) { return em_cast(p->e, "llvm.trunc", p->e->i32, index); }
static V since(const Product *p, V turn) { return em_bin(p->e, "llvm.sub", turn, p->from); }
static V barrier(const Product *p, Which which, V place) {
    V at = em_add(p->e, place, em_i64(p->e, (int64_t)which * places(p)));
    return in_space(p, em_gep(p->e, p->barriers, at, p->e->i64), SHARED_SPACE);
}
static V barrier_of(const Product *p, Which which, V turn) {
    return barrier(p, which, rest(p, since(p, turn), places(p)));
}
/* Is this one thread of n? */
static V one_of(const Product *p, uint32_t n) {
    return em_cmpi(p->e, "eq", rest(p, thread_number(p->k), n), em_i64(p->e, 0));
}
/* Waits until the phase of the turn has ended. */
static void wait(const Product *p, Which which, V turn) {
    Emit *e = p->e;
    V phase = over(p, since(p, turn), places(p)), o[2] = {barrier_of(p, which, turn), word(p, rest(p, phase, 2))};
    Scope before = em_begin(e, 0, NULL), after;
    V ended = threads_intrinsic(e, "llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta", e->i1, 2, o);
    V again = em_bin(e, "llvm.xor", ended, em_int(e, e->i1, 1));
    em_op(e, "scf.condition", &(Op){0, NULL, 1, &again, 0, NULL, 0, NULL});
    em_end(e, &before);
    after = em_begin(e, 0, NULL);
    em_op(e, "scf.yield", &(Op){0, NULL, 0, NULL, 0, NULL, 0, NULL});
    em_end(e, &after);
    em_while(e, 0, NULL, &before, &after);
}

/* ---- asking */
/* Where the box begins of an operand's line that is so many rows or columns further. */
static void begin_box(const Product *p, uint32_t side, V row, V term, V *at) {
    Kernel *k = p->k;
    const DeviceDot *d = p->dot;
    const DotBox *b = &d->side[side].box;
    const DotLoops *own = &d->loops[side ? DOT_COLUMNS : DOT_ROWS];
    bool along = d->side[side].along_terms;
    kernel_enter(k);
    grid_bind(k, own->at, own->n, own->extent, row);
    grid_bind(k, d->summed, d->nsummed, p->step->dot->k, term);
    for (uint32_t i = 0; i < b->rank; i++) {
        bool counted = i < 2 && !b->axis[i].at;
        at[i] = word(p, counted ? (along == (i == 0) ? term : row) : kernel_index(k, b->axis[i].at));
    }
    kernel_leave(k);
}
static void copy_line(const Product *p, uint32_t side, V turn, uint32_t line) {
    enum { BEFORE = 3, AFTER = 5 }; /* operands */
    Emit *e = p->e;
    const DotBox *b = &p->dot->side[side].box;
    V further = em_i64(e, (int64_t)line * b->axis[0].box);
    V to = staged_at(p, side, stage_slot(p, turn), further, em_i64(e, 0));
    V o[BEFORE + BOX_RANK + AFTER] = {in_space(p, to, CLUSTER_SPACE), barrier_of(p, FULL, turn),
                                      em_gep(e, p->k->block.maps, em_i64(e, (int64_t)side * MAP_BYTES), e->i8)};
    begin_box(p, side, em_add(p->e, p->first[side], further), times(p, turn, p->dot->tile.terms), o + BEFORE);
    V *none = o + BEFORE + b->rank; /* masks and policies */
    none[0] = em_int(e, e->i16, 0), none[1] = em_i64(e, 0), none[2] = none[3] = em_int(e, e->i1, 0);
    none[4] = em_int(e, e->i32, 0);
    Str name = str_format(e->arena, "llvm.nvvm.cp.async.bulk.tensor.g2s.tile.%ud", b->rank);
    threads_intrinsic(e, name.at, no_type, BEFORE + b->rank + AFTER, o);
}
/* The terms of a turn; by one thread. */
static void ask(const Product *p, V turn) {
    Emit *e = p->e;
    V o[2] = {barrier_of(p, FULL, turn), em_int(e, e->i32, staged_bytes(p, 0) + staged_bytes(p, 1))};
    threads_intrinsic(e, "llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta", e->i64, 2, o);
    for (uint32_t side = 0; side < 2; side++) {
        uint32_t box = p->dot->side[side].box.axis[0].box;
        uint32_t lines = p->dot->side[side].along_terms ? 1 : tile_length(p, side) / box;
        for (uint32_t i = 0; i < lines; i++) copy_line(p, side, turn, i);
    }
}
static void ask_if(const Product *p, V turn, V turns) {
    If any = kernel_if(p->k, em_cmpi(p->e, "slt", turn, turns));
    ask(p, turn);
    kernel_if_end(p->k, &any);
}

/* ---- the ring */
static void open_barriers(const Product *p) {
    Emit *e = p->e;
    for (uint32_t i = 0; i < BARRIERS * places(p); i++) {
        bool full = i < places(p);
        V o[2] = {barrier(p, FULL, em_i64(e, i)), em_int(e, e->i32, full ? 1 : TILE_WARPS)};
        threads_intrinsic(e, "llvm.nvvm.mbarrier.init.shared", no_type, 2, o);
    }
    threads_intrinsic(e, "llvm.nvvm.fence.mbarrier_init.release.cluster", no_type, 0, NULL);
}
/* The fence: threads may have written sums of another tile to the places before. */
void ring_open(const Product *p, V turns) {
    Emit *e = p->e;
    If first = kernel_if(p->k, one_of(p, TILE_THREADS));
    open_barriers(p);
    kernel_if_end(p->k, &first);
    threads_intrinsic(e, "llvm.nvvm.fence.proxy.async.shared_cta", no_type, 0, NULL);
    threads_meet(p->k);
    If asks = kernel_if(p->k, one_of(p, TILE_THREADS));
    for (uint32_t i = 0; i < places(p); i++) ask_if(p, em_add(p->e, p->from, em_i64(e, i)), turns);
    kernel_if_end(p->k, &asks);
}
void ring_wait(const Product *p, V turn) { wait(p, FULL, turn); }
void ring_turn(const Product *p, V turn, V turns) {
    Emit *e = p->e;
    V before = em_bin(e, "llvm.sub", turn, em_i64(e, 1)), next = em_add(p->e, before, em_i64(e, places(p)));
    V o[2] = {barrier_of(p, EMPTY, before), em_int(e, e->i32, 1)};
    If any = kernel_if(p->k, em_cmpi(e, "sgt", turn, p->from));
    If warp = kernel_if(p->k, one_of(p, WARP));
    threads_intrinsic(e, "llvm.nvvm.mbarrier.arrive.scope.cta.space.cta", e->i64, 2, o);
    kernel_if_end(p->k, &warp);
    V asks = em_bin(e, "llvm.and", one_of(p, TILE_THREADS), em_cmpi(e, "slt", next, turns));
    If asked = kernel_if(p->k, asks);
    wait(p, EMPTY, before);
    ask(p, next);
    kernel_if_end(p->k, &asked);
    kernel_if_end(p->k, &any);
}
void ring_close(const Product *p) {
    Emit *e = p->e;
    threads_meet(p->k);
    if (p->step->grid.once) return;
    If first = kernel_if(p->k, one_of(p, TILE_THREADS));
    for (uint32_t i = 0; i < BARRIERS * places(p); i++) {
        V at = barrier(p, FULL, em_i64(e, i));
        threads_intrinsic(e, "llvm.nvvm.mbarrier.inval.shared", no_type, 1, &at);
    }
    kernel_if_end(p->k, &first);
}
