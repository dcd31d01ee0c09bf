/* Attention while its code is written (attention.c): what both ways to keep scores have in common. */
#ifndef JAXCC_KERNEL_ATTENTION_H
#define JAXCC_KERNEL_ATTENTION_H
#include "../plan/attention.h"
#include "dot_device.h"

enum { MOST_PASSES = 2 };
/* What a thread carries from tile to tile: the maxima of scores, and the sums of weights, f64, of its rows; its sums of
   the second product. */
typedef struct {
    V max[MOST_PASSES], sum[MOST_PASSES], result[TILE_SUMS];
} State;
typedef struct {
    Kernel *k;
    Emit *e;
    const Attention *a;
    AttentionIndex at;
    Product first, second;
    Product scores;         /* the first, whose sums are at `shared` */
    V factors;              /* f32, for each row of the tile */
    uint32_t passes, nsums; /* rows of a thread; sums of the second product */
    uint32_t keys;          /* of a tile */
    V from;                 /* the first key of the tile */
    V member;               /* which of the threads of a row */
} Attend;

/* ---- values */
V attend_f32(const Attend *, double);
Dtype attend_dtype(const Attend *, Val);
void attend_remember(const Attend *, Val, const Ix *index, V);
V attend_value(const Attend *, Val, const Ix *index);
V attend_minus_infinity(const Attend *, V); /* i1: is it that? */
V attend_larger(const Attend *, V, V);      /* of two scores */
/* Merge for threads_merge_lanes; max: `user` is the type of scores. */
void attend_merge_max(Emit *, void *user, V *x, const V *y);
void attend_merge_sum(Emit *, void *user, V *x, const V *y);
/* x·per + more in f64, of two f32. */
V attend_add_f64(const Attend *, V x, V per, V more);

/* ---- rows: a thread has `passes` */
/* Binds the loops of the rows to that of a pass, in a scope which kernel_leave closes. */
void attend_open_row(const Attend *, uint32_t pass);
/* The score of the key in this column of the tile, made of the product's sum, or that sum itself; −∞ for keys beyond
   the last. */
V attend_score(const Attend *, V column, V sum, bool itself);

/* ---- terms in shared memory */
void attend_commit(const Attend *);
/* Waits for all threads, and for what they brought, but for the latest `left` groups. */
void attend_meet(const Attend *, uint32_t left);

/* ---- tiles whose keys are hidden from all rows (attention_hidden.c) */
bool attend_hides(const Attend *); /* may there be any? */
/* i1: may the tile add anything? `values`: the second product of the tile; the maxima of scores so far. All threads
   must come here. */
V attend_shown(const Attend *, const Product *values, const V *max);

/* ---- scores in registers (attention_held.c) */
void attend_held_share(Attend *);
void attend_held_open(Attend *, V tiles); /* brings the rows, and the first keys if there are any */
void attend_held_tiles(Attend *, V from, V to, V tiles, State *);
V attend_held_row(const Attend *, uint32_t pass); /* of the tile */
V attend_held_max(const Attend *, V max);         /* that of the scores, from the state's */
/* By what weights relative to the maximum `old` are multiplied to be relative to `new`: what was rounded in both is in
   them. */
V attend_held_factor(const Attend *, V old, V new);

#endif
