#include "../eval/trend.h"
#include "attention.h"
#include "grid.h"
#include "threads.h"
#include <assert.h>
#include <math.h>

/* Tiles of keys whose scores are all the same number by a condition on the indices of row and key, as above the
   diagonal of a causal mask. If the condition moves only one way with rows, and with keys, one corner of the tile
   tells. Such a tile adds nothing if its weights are 0: if the number is −∞, or if it is so small and rows have so much
   larger scores already. But 0 times a value that is not finite would be no number: so the values of the tile are
   looked at. */

enum { PIECE = 16, WORD = 4 };
static const double small = -1e30, large = -1e29;

/* Where the condition shows a key if it does so anywhere: at the last row or key of the tile (1), or at the first. */
static bool find_corner(const Attend *t, int8_t corner[2]) {
    const Attention *a = t->a;
    const DotLoops *rows = &t->second.dot->loops[DOT_ROWS];
    if (!a->hidden || rows->n != 1 || !(a->hidden_score <= small)) return false;
    Atom loops[] = {rows->at[0], a->key};
    Trend trend = trend_of(t->k->x.plan, t->k->x.step, a->hidden->in.at[0], t->at.hidden, loops);
    for (uint32_t i = 0; i < 2; i++) {
        if (trend.of[i] == TREND_NONE) return false;
        /* operand 1 is that where the condition is false */
        corner[i] = a->number == 1 ? trend.of[i] : (int8_t)-trend.of[i];
    }
    return corner[0] || corner[1];
}
bool attend_hides(const Attend *t) {
    int8_t corner[2];
    return find_corner(t, corner);
}
/* Number `first`, or the last one of `n` from there on, of `all`. */
static V end_of(const Attend *t, V first, uint32_t n, Dim all, bool last) {
    V most = em_sub(t->e, kernel_dim(t->k, all), em_i64(t->e, 1));
    return em_least(t->e, last ? em_add(t->e, first, em_i64(t->e, n - 1)) : first, most);
}
/* i1: does the condition show a key of the tile? */
static V shows(const Attend *t, const int8_t corner[2]) {
    Kernel *k = t->k;
    const DeviceDot *d = t->second.dot;
    const DotLoops *rows = &d->loops[DOT_ROWS];
    kernel_enter(k);
    V row = end_of(t, t->second.first[0], d->tile.rows, rows->extent, corner[0] > 0);
    V key = end_of(t, t->from, t->keys, d->k, corner[1] > 0);
    grid_bind(k, rows->at, rows->n, rows->extent, row);
    kernel_bind(k, t->a->key, key);
    V yes = reg_v(eval_value(&k->x, t->a->hidden->in.at[0], t->at.hidden));
    kernel_leave(k);
    return t->a->number == 1 ? yes : em_bin(t->e, "llvm.xor", yes, em_int(t->e, t->e->i1, 1));
}
/* i1: is one of the thread's values of the tile not finite? In a word are two, whose highest bit is free: it becomes 1
   if 1 is added to an exponent of ones. */
static V not_finite(const Attend *t, const Product *values) {
    Emit *e = t->e;
    bool wide = values->dot->as == DT_bf16; /* the exponent */
    V mask = em_int(e, e->i32, wide ? 0x7f807f80 : 0x7c007c00), one = em_int(e, e->i32, wide ? 0x00800080 : 0x04000400);
    V any = em_int(e, e->i32, 0);
    int64_t bytes = values->dot->tile.turns * staged_bytes(values, 1);
    for (int64_t from = 0; from < bytes; from += (int64_t)TILE_THREADS * PIECE) {
        V at = em_add(e, times(values, thread_number(t->k), PIECE), em_i64(e, from));
        V piece = em_load(e, em_vec(e, e->i32, PIECE / WORD), em_gep(e, values->shared, at, e->i8), PIECE);
        for (uint32_t i = 0; i < PIECE / WORD; i++) {
            V exponents = em_bin(e, "llvm.and", em_extract(e, piece, i), mask);
            any = em_bin(e, "llvm.or", any, em_add(e, exponents, one));
        }
    }
    return em_cmpi(e, "ne", em_bin(e, "llvm.and", any, em_int(e, e->i32, 0x80008000)), em_int(e, e->i32, 0));
}
V attend_shown(const Attend *t, const Product *values, const V *max) {
    Emit *e = t->e;
    int8_t corner[2];
    V all[2] = {em_int(e, e->i32, 0)}, no, yes = em_int(e, e->i1, 1);
    bool hides = find_corner(t, corner);
    assert(hides);
    If f = em_if(e, shows(t, corner));
    em_else(e, &f, 1, &yes);
    all[1] = not_finite(t, values);
    for (uint32_t i = 0; i < t->passes && t->a->hidden_score != -INFINITY; i++)
        all[1] = em_bin(e, "llvm.or", all[1], em_cmpf(e, "ule", max[i], attend_f32(t, large)));
    no = threads_intrinsic(e, "llvm.nvvm.barrier.cta.red.or.aligned.all", e->i1, 2, all);
    em_if_end(e, &f, &no, &yes);
    return yes;
}
