/* A tile of keys, and of the places that they come from, that a block sorts in shared memory, while its code is
   written. */
#ifndef JAXCC_SORT_DEVICE_H
#define JAXCC_SORT_DEVICE_H
#include "../plan/sort.h"
#include "kernel.h"

typedef struct {
    Kernel *k;
    Emit *e;
    const Sort *so;
    MlirType key;
    uint32_t each;   /* elements of a thread */
    V thread, count; /* i32, as all numbers of elements in the tile: its elements */
    V keys, places;  /* shared memory: sorting_share */
    V row, tile, first,
        n;           /* i64: the row's first element; the tile's number in it and first element; the row's length */
    V number, tiles; /* i64: the row's number; tiles of a row */
} Sorting;
typedef struct {
    V key, place;
} Keyed;

/* The tile that is item number `item` of so->grid; shared memory for it. */
Sorting sorting_of(Kernel *, V item);
void sorting_share(Sorting *);
static inline V sort_i32(const Sorting *o, int64_t n) { return em_int(o->e, o->e->i32, n); }
static inline V sort_narrowed(const Sorting *o, V wide) { return em_cast(o->e, "llvm.trunc", o->e->i32, wide); }
static inline V sort_widened(const Sorting *o, V narrow) { return em_cast(o->e, "llvm.zext", o->e->i64, narrow); }
/* Elements of arrays in shared or global memory. */
V sort_key_at(const Sorting *, V keys, V i);
V sort_word_at(const Sorting *, V words, V i); /* a place, or another number of 32 bits */
/* `keys` or `places` NULL: they are not stored, and not there. */
void sort_put(const Sorting *, V keys, V places, V i, Keyed);
Keyed sort_at(const Sorting *, V keys, V places, V i);
V sort_buffer(const Sorting *, Buf *); /* NULL if there is none */
/* Keys in memory are elements' bits, if they are alone. Those as different unsigned numbers in their order, and back;
   floats: the number of the negative zero is the order's infinity, after which the other zero comes; NaNs are from
   sort_nan on. */
bool sort_is_float(const Sorting *);
V sort_number(const Sorting *, V bits);
V sort_bits(const Sorting *, V number);
int64_t sort_nan(const Sorting *);
/* The same number for bits that are equal. */
V sort_rank(const Sorting *, V bits);
void sort_put_if(const Sorting *, V condition, V keys, V places, V i, Keyed);
/* Where element i of a thread is, with neighbouring elements in neighbouring threads. */
V sort_own(const Sorting *, uint32_t i);
/* What the program gives at an element of the tile; behind the row a key whose number is the last. */
Keyed sort_given(const Sorting *, V at);

#endif
