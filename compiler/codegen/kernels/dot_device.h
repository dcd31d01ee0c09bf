/* A tile of a matrix product while its code is written: rows × columns elements of the result, computed by a block of
   threads (dot_device.c). */
#ifndef JAXCC_DOT_DEVICE_H
#define JAXCC_DOT_DEVICE_H
#include "../plan/dot.h"
#include "kernel.h"

/* Of a thread, at most: sums; registers that it has read of a step of the terms. */
enum { TILE_THREADS = 256, TILE_SUMS = 128, MOST_READ = 48 };
typedef struct {
    Kernel *k;
    Emit *e;
    const Step *step;
    const DeviceDot *dot;
    Dtype acc;             /* of the sums while they are added up */
    V first[2];            /* row and column of the tile */
    V batch, part;         /* part.ptr NULL: all terms */
    V from;                /* the first turn */
    V barriers;            /* of the ring, if terms come as boxes (dot_ring.c) */
    V shared;              /* tile.turns times the terms of both operands, later the sums */
    V rows;                /* dot->held: the terms of the rows that stay in shared memory, one turn after the other */
    Ix index[2][MAX_RANK]; /* of the operands */
    uint32_t run;          /* columns that a thread finishes at once */
} Product;

static inline V times(const Product *p, V a, int64_t n) { return em_mul(p->e, a, em_i64(p->e, n)); }
static inline V over(const Product *p, V a, int64_t n) { return em_bin(p->e, "llvm.udiv", a, em_i64(p->e, n)); }
static inline V rest(const Product *p, V a, int64_t n) { return em_bin(p->e, "llvm.urem", a, em_i64(p->e, n)); }
static inline uint32_t tile_length(const Product *p, uint32_t side) {
    return side ? p->dot->tile.columns : p->dot->tile.rows;
}

/* ---- shared memory (dot_stage.c) */
/* Bytes of an operand's terms of one turn. */
int64_t staged_bytes(const Product *, uint32_t side);
/* Are an operand's terms beside each other there? Else rows or columns are. */
bool staged_along(const Product *, uint32_t side);
/* The address of 16 bytes (form DOT_MMA) or of an element of an operand in the terms at `slot`, at a row or column of
   the tile and a term. With DOT_MMA one of both is a multiple of what 16 bytes hold. */
V staged_at(const Product *, uint32_t side, V slot, V at, V term);
/* Bytes of a line there, whose pieces of 16 bytes are exchanged by its number. */
uint32_t staged_line(const Product *, uint32_t side);
/* How many turns are on their way while one is multiplied. */
uint32_t stage_ahead(const Product *);
/* Where the terms of a turn are. */
V stage_slot(const Product *, V turn);
/* Elements of a turn that were read and are not yet in shared memory. */
enum { HELD = 16 };
typedef struct {
    V x[HELD], any; /* i1: there is such a turn */
    uint32_t n;
} Held;
/* Begins to bring the terms of a turn there, if there are so many turns, and ends it; terms beyond the last are 0.
   Between both the thread may compute what does not need them. */
void stage_begin(const Product *, V turn, V turns, Held *);
void stage_end(const Product *, V turn, const Held *);
/* Waits until the terms of a turn, and all threads, are there. `all`: of all turns. */
void stage_wait(const Product *, bool all);

/* dot->held: the product of a tile of keys, by its number; of them there are HELD_PLACES in the ring. */
Product stage_tile(const Product *, V tile);

/* Brings the terms of one operand there, by asynchronous copies or at once. */
void stage_side(const Product *, uint32_t side, V turn);
bool stage_asynchronous(const Product *, uint32_t side);

/* ---- terms that come as boxes (dot_ring.c) */
int64_t ring_bytes(const Product *); /* of its barriers */
/* Begins to bring the first terms. Then for each turn: waits until its terms are there; after the products of a turn
   were begun and those of the one before have ended, begins to bring the terms that come next in place of the
   latter. */
void ring_open(const Product *, V turns);
void ring_wait(const Product *, V turn);
void ring_turn(const Product *, V turn, V turns);
/* All have been waited for: there may be another tile, and other things in the places. */
void ring_close(const Product *);

/* ---- what multiplies, by form (dot_multiply.c) */
uint32_t product_sums(const Product *);       /* of a thread */
V product_row(const Product *, uint32_t sum); /* of the tile, in which the thread's sum of that number is */
/* Adds the terms at `slot`, which may be replaced when the next ones have been added; product_end: the sums are
   there. */
void product_multiply(const Product *, V slot, V *sums);
void product_end(const Product *, V *sums);
/* The same in steps, so that the first of the next turn is read while the last is multiplied. How many registers are
   read of a step; 0: not so. product_read: of the first step at `slot`; product_multiply_read: all steps but the last,
   which is `read` afterwards; product_multiply_last: that one. */
uint32_t product_reads(const Product *);
void product_read(const Product *, V slot, V *read);
void product_multiply_read(const Product *, V slot, V *read, V *sums);
void product_multiply_last(const Product *, const V *read, V *sums);
/* dot->held: begins to add the products of all turns that are in the ring from p->from on. `rows`: four registers of
   each step, as mma.sync has them; NULL: they are at p->rows. `fresh`: the sums are 0 before. product_all_end waits
   until they are there, if no more than so many products have begun since. */
void product_all(const Product *, const V *rows, bool fresh, V *sums);
void product_all_end(const Product *, uint32_t since, V *sums);
/* The same by warpgroups; n: the number of sums (dot_warpgroup.c). */
void product_warpgroups(const Product *, V slot, uint32_t n, V *sums);
void product_warpgroups_end(const Product *, uint32_t since, uint32_t n, V *sums);
void product_warpgroups_all(const Product *, const V *rows, uint32_t nrows, bool fresh, uint32_t n, V *sums);
/* The rows of the tile are in shared memory a slab at a time, for all threads: the number of slabs and of their rows;
   which row of the tile a row of a slab is. */
uint32_t product_slabs(const Product *);
uint32_t slab_rows(const Product *);
V slab_row(const Product *, uint32_t slab, V row);
int64_t slab_bytes(const Product *);
/* The address of a sum. */
V slab_at(const Product *, V row, V column);
/* Writes the thread's sums of a slab. */
void slab_store(const Product *, uint32_t slab, const V *sums);

/* ---- the tile (dot_device.c) */
/* Number `unit` of the tiles: its rows and columns, and the batch, which is bound. */
Product product_of(Kernel *, V unit);
/* Stores the elements of the tile; n sums of each thread. */
void product_finish(const Product *, const V *sums);
/* A unit is a tile of the second product, with all terms of both (attention.c). */
KernelRule device_attention;

#endif
