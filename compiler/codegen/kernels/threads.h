/* The threads of a block, in kernels for a GPU. */
#ifndef JAXCC_THREADS_H
#define JAXCC_THREADS_H
#include "../plan/threads.h"
#include "kernel.h"

/* An intrinsic of LLVM; no result if its type is none. */
V threads_intrinsic(Emit *, const char *name, MlirType, uint32_t n, const V *operands);
enum { GLOBAL_SPACE = 1, SHARED_SPACE = 3, CLUSTER_SPACE = 7 }; /* of addresses */
/* i64: the number of this thread in its block, of this block in the grid, of all blocks. */
V thread_number(Kernel *);
/* The first again, read here: what follows from it is computed here too, not before the loop over units, where it would
   take registers from one unit to the next. */
V thread_number_again(Kernel *);
/* Of its warp; of this thread in its warp. */
V thread_warp(Kernel *);
V thread_lane(Kernel *);
/* Its number among the threads that share the lane loop of an item; of its chunk. */
V member_number(Kernel *);
V chunk_number(Kernel *);
V block_number(Kernel *);
V block_count(Kernel *);
/* Of this cluster in the grid, and of this block in it. */
V cluster_number(Kernel *);
V block_rank(Kernel *);
/* All threads of the block wait for each other; they must all come here. */
void threads_meet(Kernel *);
/* Where a kernel with clusters begins: its blocks write to each other's memory only when all have come here. */
void cluster_arrive(Kernel *);
/* The same for those of a warp. */
void threads_meet_in_warp(Kernel *);
/* `bytes` more of the block's shared memory, aligned to 16. */
V threads_share(Kernel *, int64_t bytes);
/* The same for each item that the block does at once; this one's. */
V threads_row(Kernel *, int64_t bytes);
/* A value of another thread of the warp. `mode`: "bfly", the one whose number differs in the bits `by` (i32); "up",
   the one `by` before, or its own value if there is none; "idx", thread `by`. */
V threads_shuffle(Kernel *, const char *mode, V value, V by);
/* A value as words of i32, at most 4, the lowest first. */
uint32_t threads_words_in(Emit *, MlirType);
void threads_to_words(Emit *, V, V *words);
V threads_from_words(Emit *, MlirType, const V *words);
enum { MAX_MERGED = 2 * STEP_REDUCTIONS };
/* Combines n values of each thread that does the same item: afterwards all of them have the same ones. Threads of a
   warp combine theirs in a tree, then the results of the warps, or else the chunks, are combined in order, then those
   of the blocks of a cluster. All must come here. */
typedef void Merge(Emit *, void *user, V *x, const V *y); /* y into x */
void threads_merge(Kernel *, uint32_t n, V *values, Merge *, void *user);
/* The same for that many neighbouring threads, a power of two up to a warp. */
void threads_merge_lanes(Kernel *, uint32_t lanes, uint32_t n, V *values, Merge *, void *user);
/* The same for those as many lanes of a warp apart as this, a power of two. */
void threads_merge_apart(Kernel *, uint32_t apart, uint32_t n, V *values, Merge *, void *user);
/* What a lane of the warp has. */
V threads_from_lane(Kernel *, V value, uint32_t lane);
/* What the threads before this one have, combined in order, `none` for the first; *all: what all have. `none` is
   neutral. All threads must come here. */
V threads_prefix(Kernel *, V value, V none, Merge *, void *user, V *all);
/* The same for n values of each thread: value i of all threads of a warp comes before value i + 1 of any, and all
   values of a warp before those of the next. */
enum { MOST_PREFIXES = 16 };
void threads_prefixes(Kernel *, uint32_t n, V *values, V none, Merge *, void *user, V *all);
/* The same within each warp, for each value apart. */
void threads_prefixes_apart(Kernel *, uint32_t n, V *values, V none, Merge *, void *user, V *all);
/* Items have as many chunks as a warp has lanes, and the block as many items as warps: lane i of warp w gets the
   values of chunk i of the block's item w. With `back`, once, what it then has goes back to where those came from. */
void threads_swap_chunks(Kernel *, bool back, uint32_t n, V *values);
/* Between them is what one of the threads that do an item together does. */
If by_one_thread(Kernel *);
void by_one_thread_end(Kernel *, If *);

#endif
