/* --remat=sqrt and levels:L: a loop of T iterations becomes one of T div K segments, each a remat of a loop of K
   iterations, and a remat of the T mod K that are left. Backwards, the carry is there at the beginning of each segment,
   and the iterations of one segment at a time are computed again and stacked. With L levels K is k^(L-1), where k is
   T^(1/L), and a segment consists of k segments of k^(L-2) in turn: only the rest has a rest itself, so that there are
   L²/2 loops and not 2^L.

   Whole arrays are constants of the segments' loop, which takes K rows of them at a time from an offset that it
   carries; stacked results are carried, and each segment writes its rows. */
#include "flow.h"
#include "scan.h"
#include <math.h>

typedef struct {
    SplitEqn *s;
    Builder x;  /* the equations to be divided */
    Scan loop;  /* its operands as values of these, its results as read */
    Dim *power; /* power[l]: k^l, the iterations of a segment of l levels; 0 for all levels */
} Segments;

bool tx_wrote(const Tx *tx, const Jaxpr *j) {
    uint32_t k;
    return intern_find(&tx->written, &j, sizeof j, &k);
}
static Jaxpr *note_written(Tx *tx, Jaxpr *j) {
    tx->written.arena = tx->cx->arena;
    intern(&tx->written, &j, sizeof j, NULL);
    return j;
}

/* ---- lengths */
/* T^(1/L), rounded up. */
static int64_t root(int64_t turns, int64_t levels) {
    int64_t k = 1;
    for (int64_t step = INT64_C(1) << 62; step; step /= 2)
        if (pow((double)(k + step - 1), (double)levels) < (double)turns) k += step;
    return k;
}
static Dim computed(Builder *b, Val v) { return b->failed ? 1 : dim_bound(b_types(b), v); }
static void find_powers(Segments *g, Dim turns, int64_t levels) {
    Builder *b = &g->x;
    g->power = arena_new(b->cx->arena, Dim, levels + 1);
    g->power[0] = 1;
    if (dim_is_const(turns)) {
        Dim k = (Dim)root(turns, levels);
        for (int64_t l = 1; l < levels; l++) g->power[l] = k * g->power[l - 1];
        return;
    }
    Val t = b_convert(b, b_dim(b, DT_i64, turns), DT_f64);
    Val k = levels == 2 ? b_sqrt(b, t) : b_pow(b, t, b_float(b, DT_f64, 1 / (double)levels));
    k = b_max(b, b_convert(b, b_ceil(b, k), DT_i64), b_int(b, DT_i64, 1));
    Val power = k;
    for (int64_t l = 1; l < levels; l++, power = b_mul(b, power, k)) g->power[l] = computed(b, power);
}
/* T div K and T mod K. */
static void divide_turns(Builder *b, Dim turns, Dim length, Dim *segments, Dim *rest) {
    if (dim_is_const(turns)) {
        *segments = turns / length, *rest = turns % length;
        return;
    }
    Val t = b_dim(b, DT_i64, turns), k = b_dim(b, DT_i64, length), n = b_div(b, t, k);
    *segments = computed(b, n), *rest = computed(b, b_sub(b, t, b_mul(b, n, k)));
}

/* ---- rows of arrays */
static const Val *starts(Builder *b, Val v, Val at) {
    uint32_t rank = b_type(b, v)->rank;
    Val *all = arena_new(b->cx->arena, Val, rank);
    for (uint32_t d = 0; d < rank; d++) all[d] = d ? b_int(b, DT_i64, 0) : at;
    return all;
}
static Vals rows_of(Builder *b, Vals arrays, Val at, Dim n) {
    Vals rows = vals_new(b->cx->arena, arrays.n);
    each(const Val, v, arrays) {
        const ArrayType *t = b_type(b, *v);
        Dim *sizes = arena_new(b->cx->arena, Dim, t->rank);
        memcpy(sizes, t->dims, t->rank * sizeof *sizes);
        sizes[0] = n;
        vals_push(&rows, b_dynamic_slice(b, *v, starts(b, *v, at), sizes));
    }
    return rows;
}
static Vals rows_written(Builder *b, Vals arrays, Val at, Vals rows) {
    Vals new = vals_new(b->cx->arena, arrays.n);
    for (uint32_t i = 0; i < arrays.n && !b->failed; i++)
        vals_push(&new, b_dynamic_update_slice(b, arrays.at[i], rows.at[i], starts(b, arrays.at[i], at)));
    return new;
}
/* Arrays for n iterations, like those stacked. */
static Vals zeros(Segments *g, Dim n) {
    Builder *b = &g->x;
    Vals arrays = vals_new(b->cx->arena, g->loop.ys.n);
    each(const Val, v, g->loop.ys) {
        const ArrayType *t = type_at(b->cx->types, type_rewrite(&g->s->tx->map, val_type(b->cx, *v)));
        Dim *dims = arena_new(b->cx->arena, Dim, t->rank);
        memcpy(dims, t->dims, t->rank * sizeof *dims);
        Dtype type = t->dtype;
        uint32_t rank = t->rank;
        dims[0] = n;
        Val zero = dtype_info[type].kind == DK_COMPLEX ? b_convert(b, b_int(b, DT_i32, 0), type) : b_number(b, type, 0);
        vals_push(&arrays, b_full(b, zero, rank, dims));
    }
    return arrays;
}

/* ---- the loops of at most k^levels iterations: results are the carry, then the arrays stacked */
static Vals run(Segments *g, Dim turns, int64_t levels, Vals carry, Vals xs);

static Vals run_plainly(Segments *g, Dim turns, Vals carry, Vals xs) {
    Builder *b = &g->x;
    Inner turn = b_program(b, g->loop.body, g->loop.consts.n, g->loop.consts.at);
    Vals in = vals_joined(b->cx->arena, 2, (Vals[]){carry, xs});
    int64_t unroll = param_int(g->s->e, K_unroll, 1);
    return b_scan(b, &turn, (Loop){turns, carry.n, g->loop.reverse, unroll, NULL}, in.n, in.at);
}
static Vals run_again(Segments *g, Dim turns, int64_t levels, Vals carry, Vals xs) {
    Builder *b = &g->x;
    Inner segment = b_inner(b, 0, NULL);
    Vals out = run(g, turns, levels, carry, xs);
    note_written(g->s->tx, b_inner_end(b, &segment, out.n, out.at));
    if (b->failed) return out;
    Param p[] = {p_bool(K_differentiated, false), p_jaxpr(K_jaxpr, segment.j), p_none(K_policy),
                 p_bool(K_prevent_cse, true)};
    Eqn e = {.prim = P_checkpoint, .params = {arena_new(b->cx->arena, Param, 4), 4}, .in = segment.captured};
    memcpy(e.params.at, p, sizeof p);
    return b_eqn(b, &e, out.n, NULL);
}
/* The segment of so many iterations that begins at offset `at`: the carry after it, then the arrays with its rows. */
static Vals run_segment(Segments *g, Dim turns, int64_t levels, Val at, Vals carry, Vals xs, Vals ys) {
    Builder *b = &g->x;
    Vals rows = rows_of(b, xs, at, turns);
    if (b->failed) return b_failures(b, carry.n + ys.n);
    Vals out = run_again(g, turns, levels, carry, rows);
    Vals written = rows_written(b, ys, at, vals_part(out, carry.n, ys.n));
    return vals_joined(b->cx->arena, 2, (Vals[]){vals_part(out, 0, carry.n), written});
}
static Vals run(Segments *g, Dim turns, int64_t levels, Vals carry, Vals xs) {
    enum { FEWEST = 4 };
    Builder *b = &g->x;
    Arena *arena = b->cx->arena;
    bool fixed = dim_is_const(turns);
    while (fixed && levels > 1 && turns <= g->power[levels - 1]) levels--;
    if (levels <= 1 || (fixed && turns < FEWEST)) return run_plainly(g, turns, carry, xs);
    Dim length = g->power[levels - 1], segments = g->power[1], rest = 0;
    if (turns != g->power[levels]) divide_turns(b, turns, length, &segments, &rest);
    /* Backwards, the first segment is the last rows, and the rest is the first ones. */
    Val step = b_dim(b, DT_i64, length), at = b_int(b, DT_i64, 0);
    if (g->loop.reverse) at = b_sub(b, b_dim(b, DT_i64, turns), step), step = b_neg(b, step);
    Vals ys = zeros(g, turns), state = vals_joined(arena, 3, (Vals[]){{&at, 1}, carry, ys});
    if (b->failed) return b_failures(b, carry.n + ys.n);
    Inner turn = b_inner_like(b, state.n, state.at);
    Val here = turn.in.at[0], next = b_add(b, here, step);
    Vals out = run_segment(g, length, levels - 1, here, vals_part(turn.in, 1, carry.n), xs,
                           vals_part(turn.in, 1 + carry.n, ys.n));
    out = vals_joined(arena, 2, (Vals[]){{&next, 1}, out});
    b_inner_end(b, &turn, out.n, out.at);
    out = b_scan(b, &turn, (Loop){segments, out.n, false, 1, NULL}, state.n, state.at);
    Vals end = vals_part(out, 1, carry.n), all = vals_part(out, 1 + carry.n, ys.n);
    if (dim_is_const(rest) && !rest) return vals_part(out, 1, carry.n + ys.n);
    Val last = g->loop.reverse ? b_int(b, DT_i64, 0) : out.at[0];
    return run_segment(g, rest, levels - 1, last, end, xs, all);
}

/* ---- split */
bool scan_divides(const Tx *tx, const Scan *loop) {
    each(const Val, v, loop->ys) {
        DtypeKind kind = dtype_info[val_array(tx->cx, *v)->dtype].kind;
        if (kind == DK_KEY || kind == DK_VOID) return false;
    }
    return !tx_wrote(tx, loop->body) && keeps(tx, loop->body) == KEEP_SEGMENTS;
}
/* The operands: those that are unknown become values of the program read. */
static Vals operands(Segments *g, const Val *first, Vals part) {
    Tx *tx = g->s->tx;
    Vals own = vals_joined(tx->cx->arena, 1, &part);
    for (uint32_t i = 0; i < part.n; i++) {
        if (!g->s->unknown[part.at - first + i]) continue;
        own.at[i] = val_new(tx->cx, val_type(tx->cx, part.at[i]), g->s->e->span);
        valmap_put(&tx->map, own.at[i], part.at[i]);
        tx_mark(tx, own.at[i], true);
    }
    return own;
}
bool split_in_segments(SplitEqn *s, Dim turns) {
    Tx *tx = s->tx;
    const Val *first = s->e->in.at;
    const int64_t levels = tx->cx->options->levels;
    Segments g = {.s = s, .loop = scan_of(s->e)};
    g.x = (Builder){.cx = tx->cx, .mesh = s->b->mesh, .span = s->e->span, .whole = s->e->whole};
    const Jaxpr *body = g.loop.body;
    g.loop.body =
        note_written(tx, jaxpr_with(tx->cx, body, body->eqns, body->out)); /* the text may run the other too */
    g.loop.consts = operands(&g, first, g.loop.consts);
    g.loop.carry = operands(&g, first, g.loop.carry);
    g.loop.xs = operands(&g, first, g.loop.xs);
    find_powers(&g, turns, levels);
    Vals out = run(&g, turns, levels, g.loop.carry, g.loop.xs);
    if (g.x.failed) return false;
    add_consts(tx->cx->arena, &s->b->consts, (Vals){g.x.consts.at, g.x.consts.n});
    split_eqns(tx, s->b, s->u, g.x.eqns);
    for (uint32_t i = 0; i < out.n && !tx->failed; i++) {
        s->out[i] = valmap_get(&tx->map, out.at[i]);
        s->out_unknown[i] = tx_marked(tx, out.at[i]);
    }
    return !tx->failed;
}
