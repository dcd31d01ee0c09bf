#include "loops.h"
#include "crossed.h"
#include "point.h"
#include "reduce.h"
#include "../plan/rows.h"
#include "rows.h"
#include "runs.h"
#include "threads.h"
#include <assert.h>
#include <mlir-c/BuiltinTypes.h>

/* The kernel of a LOOPS step: loops over the kept axes, and for each of their points (or vector of points) the stages,
   each a loop nest over the reduced axes. Vectors run along the innermost kept loop, short rows aside, or the innermost
   reduced one. Partial sums and their order depend only on extents and target: any split over threads gives the same
   bits. */

static V tail_mask(Kernel *k, V i, V hi) {
    Emit *e = k->e;
    V left = em_cast(e, "llvm.trunc", e->i32, em_bin(e, "llvm.sub", hi, i));
    return em_cmpi(e, "ult", em_lanes(e, e->i32, k->w), em_broadcast(e, left, k->w));
}
void loops_counted(Kernel *k, const Count *c, uint32_t n, V *acc, Inner *inner, void *user) {
    Emit *e = k->e;
    bool lane = c->loop == k->lane;
    uint32_t was = k->w;
    V outer = k->tail, next[MAX_CARRIED], lo = c->lo, hi = c->hi;
    bool shared = lane && k->block.group > 1;
    if (shared) lo = em_bin(e, "llvm.add", lo, member_number(k));
    if (shared && k->block.exists.ptr) hi = em_select(e, k->block.exists, hi, lo);
    For f = em_for(e, lo, hi, em_i64(e, shared ? k->block.group : c->w), n, acc);
    kernel_enter(k);
    if (lane) k->w = c->w;
    kernel_bind(k, c->loop, em_arg(&f.scope, 0));
    if (c->tail && c->w > 1) k->tail = tail_mask(k, em_arg(&f.scope, 0), c->hi);
    for (uint32_t i = 0; i < n; i++) next[i] = em_arg(&f.scope, i + 1);
    inner(k, user, next);
    k->tail = outer;
    if (lane) k->w = was;
    kernel_leave(k);
    em_for_end(e, &f, next, acc);
}
V loops_main_end(Kernel *k, V lo, V hi, const Widths *w) {
    Emit *e = k->e;
    if (!w->main) return lo;
    if (!w->tail) return hi;
    V rest = em_bin(e, "llvm.urem", em_bin(e, "llvm.sub", hi, lo), em_i64(e, w->main));
    return em_bin(e, "llvm.sub", hi, rest);
}

Ix *kernel_axes(Kernel *k, Atom loop, Ix at) {
    const Step *s = k->x.step;
    Indices *x = k->x.ix;
    Ix *axes = arena_new(k->x.plan->arena, Ix, s->domain.n + 1);
    bool row = s->held.turns && loop == s->lane;
    for (uint32_t d = 0; d < s->domain.n; d++)
        axes[d] = row ? row_at(x, s, s->axes[d], at) : ix_replaced(x, s->axes[d], loop, at, false);
    return axes;
}
void kernel_substituted(Kernel *k, Atom loop, Ix at, Inside *inside, void *user) {
    Step *s = k->x.step;
    Ix *axes = s->axes;
    s->axes = kernel_axes(k, loop, at);
    inside(k, user);
    s->axes = axes;
}

void kernel_jammed(Kernel *k, Inside *inside, void *user) {
    for (uint32_t i = 0; i < k->jam; i++) {
        Ix at = ix_add(k->x.ix, ix_atom(k->x.ix, k->first), ix_dim(k->x.ix, i));
        kernel_substituted(k, k->x.step->jam, at, inside, user);
    }
}

void loops_stages(Kernel *k) {
    if (k->x.step->held.turns) rows_bind(k);
    for (uint32_t level = 0; level < k->x.step->levels; level++) {
        k->x.level = level;
        k->rows = k->x.step->reduces;
        If one = by_one_thread(k);
        reduce_store(k);
        by_one_thread_end(k, &one);
        if (k->x.step->reduces) reduce_stage(k);
    }
}

static void point(Kernel *k) { (k->x.step->run ? kernel_runs : loops_stages)(k); }
static void all_stages(Kernel *k, void *user) { point(k); }
/* The stages: once for each iteration of the unrolled loop, each row of a tile, each iteration done at once. */
static void body(Kernel *k) {
    Step *s = k->x.step;
    if (k->tile)
        kernel_turns(k, s->tile, ix_atom(k->x.ix, k->first), k->tile);
    else if (s->interleaved)
        kernel_turns(k, s->unrolled, 0, (uint32_t)loop_extent(k->x.ix, s->unrolled));
    else if (s->unrolled)
        for (Dim i = 0; i < loop_extent(k->x.ix, s->unrolled); i++)
            kernel_substituted(k, s->unrolled, ix_dim(k->x.ix, i), all_stages, NULL);
    else if (k->jam)
        kernel_jammed(k, all_stages, NULL);
    else
        point(k);
}

/* ---- loops over kept axes */
static void nest_rest(Kernel *k, Nesting n) {
    if (n.n)
        kernel_nest(k, n, em_i64(k->e, 0), kernel_dim(k, loop_extent(k->x.ix, n.loops[0])));
    else
        n.inside(k, n.user);
}
/* Where no padding is read, the loops have a body that does not test for it. */
static void nest_at_edges(Kernel *k, Nesting n) {
    If f = em_if(k->e, edge_inside(k));
    uint32_t least = k->least;
    kernel_enter(k);
    k->x.inside = true, k->least = k->x.depth;
    nest_rest(k, n);
    k->x.inside = false, k->least = least;
    kernel_leave(k);
    em_else(k->e, &f, 0, NULL);
    kernel_enter(k);
    nest_rest(k, n);
    kernel_leave(k);
    em_if_end(k->e, &f, NULL, NULL);
}
static void nest_next(Kernel *k, void *user, V *acc) {
    Nesting n = *(Nesting *)user;
    Atom loop = *n.loops++;
    n.n--;
    const Step *s = k->x.step;
    bool several = (k->jam && loop == s->jam) || (k->tile && loop == s->tile);
    if (several) kernel_bind(k, k->first, kernel_index(k, ix_atom(k->x.ix, loop)));
    bool main = !s->jam || k->jam || s->kind == STEP_SCATTER;
    (loop == s->edge_loop && main ? nest_at_edges : nest_rest)(k, n);
}
/* `width` iterations at a time, with *now set to that, and the remainder one by one. */
static void nest_in_blocks(Kernel *k, Nesting n, V lo, V hi, uint32_t width, uint32_t *now) {
    V rest = em_bin(k->e, "llvm.urem", em_bin(k->e, "llvm.sub", hi, lo), em_i64(k->e, width));
    V mid = em_bin(k->e, "llvm.sub", hi, rest);
    Atom loop = n.loops[0];
    k->first = atom_loop(k->x.ix, dim_sub(k->x.plan->cx->types, loop_extent(k->x.ix, loop), width - 1));
    *now = width;
    loops_counted(k, &(Count){loop, lo, mid, width, false}, 0, NULL, nest_next, &n);
    *now = 0;
    loops_counted(k, &(Count){loop, mid, hi, 1, false}, 0, NULL, nest_next, &n);
}
static void nest_in_tiles(Kernel *k, Nesting n, V lo, V hi) { nest_in_blocks(k, n, lo, hi, k->x.step->rows, &k->tile); }
/* Whole cache lines are written to each row before the next, and few rows are read at a time, in order. */
static void nest_in_strips(Kernel *k, Nesting n, V lo, V hi) {
    Emit *e = k->e;
    V all = kernel_dim(k, loop_extent(k->x.ix, k->lane)), length = em_i64(e, k->x.step->strip);
    For f = em_for(e, em_i64(e, 0), all, length, 0, NULL);
    kernel_enter(k);
    k->strip_from = em_arg(&f.scope, 0), k->strip_to = em_least(e, em_add(e, k->strip_from, length), all);
    nest_in_tiles(k, n, lo, hi);
    k->strip_from = k->strip_to = (V){NULL};
    kernel_leave(k);
    em_for_end(e, &f, NULL, NULL);
}

/* The lane loop written out: vectors from each of its edges to the next, of which a long piece has a loop. */
typedef struct {
    Nesting n;
    Ix at;
} Piece;
static void piece_inside(Kernel *k, void *user, V *acc) {
    const Piece *piece = user;
    kernel_substituted(k, k->x.step->lane, piece->at, piece->n.inside, piece->n.user);
}
static void nest_in_pieces(Kernel *k, Nesting n) {
    const Step *s = k->x.step;
    uint32_t was = k->w;
    for (uint32_t i = 0; i + 1 < s->nends; i++) {
        Dim left, turn;
        for (Dim at = s->ends[i]; at < s->ends[i + 1]; at += turn) {
            left = s->ends[i + 1] - at, k->w = s->widths.main;
            while (k->w > left) k->w /= 2;
            turn = left > CUT_LANES ? left - left % k->w : k->w;
            k->lane = atom_loop(k->x.ix, turn);
            Piece piece = {n, ix_add(k->x.ix, ix_atom(k->x.ix, k->lane), ix_dim(k->x.ix, at))};
            V from = em_i64(k->e, 0);
            if (turn > k->w) {
                loops_counted(k, &(Count){k->lane, from, em_i64(k->e, turn), k->w, false}, 0, NULL, piece_inside,
                              &piece);
                continue;
            }
            kernel_enter(k);
            kernel_bind(k, k->lane, from);
            piece_inside(k, &piece, NULL);
            kernel_leave(k);
        }
    }
    k->w = was, k->lane = s->lane;
}

void kernel_nest(Kernel *k, Nesting n, V lo, V hi) {
    Atom loop = n.loops[0];
    if (k->x.step->lines) {
        reduce_lines(k, lo, hi);
        return;
    }
    if (loop == k->x.step->tile) {
        (k->x.step->strip && n.n > 1 && n.loops[1] == k->lane ? nest_in_strips : nest_in_tiles)(k, n, lo, hi);
        return;
    }
    if (loop == k->x.step->jam) {
        nest_in_blocks(k, n, lo, hi, k->x.step->turns, &k->jam);
        return;
    }
    if (loop == k->lane && k->x.step->nends) {
        nest_in_pieces(k, n);
        return;
    }
    if (loop != k->lane) {
        loops_counted(k, &(Count){loop, lo, hi, 1, false}, 0, NULL, nest_next, &n);
        return;
    }
    Widths w = k->x.step->widths;
    if (k->strip_from.ptr) lo = k->strip_from, hi = k->strip_to;
    V mid = loops_main_end(k, lo, hi, &w);
    if (w.main) loops_counted(k, &(Count){loop, lo, mid, w.main, false}, 0, NULL, nest_next, &n);
    if (w.tail) loops_counted(k, &(Count){loop, mid, hi, w.tail, true}, 0, NULL, nest_next, &n);
}
void kernel_blocks(Kernel *k, Atom loop, uint32_t block, V *lo, V *hi) {
    Emit *e = k->e;
    V n = kernel_dim(k, loop_extent(k->x.ix, loop)), b = em_i64(e, block);
    *lo = em_bin(e, "llvm.mul", *lo, b);
    *hi = em_bin(e, "llvm.intr.smin", em_bin(e, "llvm.mul", *hi, b), n);
}

static void body_inside(Kernel *k, void *user) { body(k); }

static void all_loops(Kernel *k, V lo, V hi) {
    Step *s = k->x.step;
    k->lane = s->lane;
    if (s->parts) {
        reduce_parts(k, lo, hi);
        return;
    }
    if (!s->nkept) {
        body(k);
        return;
    }
    if (s->block > 1) kernel_blocks(k, s->kept[0], s->block, &lo, &hi);
    kernel_nest(k, (Nesting){s->kept, s->nkept, body_inside, NULL}, lo, hi);
}
void kernel_loops(Kernel *k, V lo, V hi) {
    Val predicate = k->x.step->unswitched;
    if (!predicate) {
        all_loops(k, lo, hi);
        return;
    }
    assert(k->x.depth == 0 && !k->least);
    If f = em_if(k->e, reg_v(eval_value(&k->x, predicate, NULL)));
    for (uint32_t taken = 2; taken-- > 0;) {
        kernel_enter(k);
        k->least = k->x.depth, k->x.decided = (Decided){predicate, taken, k->x.depth};
        all_loops(k, lo, hi);
        kernel_leave(k);
        if (taken) em_else(k->e, &f, 0, NULL);
    }
    k->least = 0, k->x.decided = (Decided){0};
    em_if_end(k->e, &f, NULL, NULL);
}
void device_loops(Kernel *k, V item, V unused) {
    const Division *d = &k->x.step->division;
    Accs accs;
    if (k->x.step->crossed.n) {
        kernel_crossed(k);
        return;
    }
    if (!k->x.step->parts) {
        body(k);
        return;
    }
    accs_collect(k, &accs);
    reduce_part(k, &accs, kernel_index(k, ix_atom(k->x.ix, d->loop)), item, kernel_dim(k, d->length));
}
