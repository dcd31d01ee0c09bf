#include "reduce.h"
#include "../cost.h"
#include "loops.h"
#include "point.h"
#include "rows.h"
#include "threads.h"
#include "wide.h"
#include <assert.h>
#include <mlir-c/BuiltinTypes.h>

/* A sum of floats is cut into blocks of terms (sums.h). Adding n uniform terms in f32 has an error of 2.4e-8·√(n/3);
   errors of blocks average out, and so do those of lanes that are added up in the end. The worst of a million separate
   sums has five times that error, so lanes that are separate sums have shorter blocks. */

/* ---- reductions of one stage */
/* What is evaluated between the two is of one of the columns that a thread has. */
static Ix *column_begin(Kernel *k, uint32_t column) {
    Step *s = k->x.step;
    Indices *x = k->x.ix;
    Ix *axes = s->axes;
    if (!s->columns) return axes;
    Ix at = ix_add(x, ix_scale(x, ix_atom(x, s->runs), s->columns), ix_dim(x, column));
    s->axes = kernel_axes(k, s->run_loop, at);
    if (s->run_loop == s->lane) k->in_run = 1 + column;
    return axes;
}
static void column_end(Kernel *k, Ix *axes) { k->x.step->axes = axes, k->in_run = 0; }
static uint32_t columns_of(const Step *s) { return s->columns ? s->columns : 1; }
/* What all of them store, from all[0], all[apart], … on: how much. */
static uint32_t pending_of_columns(Kernel *k, Pending *all, uint32_t apart) {
    uint32_t n = columns_of(k->x.step), stores = 0;
    for (uint32_t i = 0; i < n; i++) {
        Ix *axes = column_begin(k, i);
        stores = kernel_pending(k, all + i * apart, n * apart);
        column_end(k, axes);
    }
    return n * stores;
}
void reduce_store(Kernel *k) {
    const Step *s = k->x.step;
    Pending *all = arena_new(k->x.plan->arena, Pending, columns_of(s) * (s->stores.n + 1));
    kernel_store_all(k, all, pending_of_columns(k, all, 1));
}
static Ix arg_axis(Kernel *k, const Eqn *e) {
    Ix index[MAX_RANK];
    step_at(k->x.plan, k->x.step, e->in.at[0], index);
    return index[param_ints(e, K_axes).at[0]];
}
/* Is the term of a sum a product that is not needed itself? Then it is added without being rounded. */
static bool product(Kernel *k, const Acc *c) {
    const Info *info = plan_info(k->x.plan, c->e->in.at[0]);
    bool member = info->class == VAL_MEMBER && info->step == k->x.step->number;
    bool here = (member || info->class == VAL_VIRTUAL) && !info->buf && info->e;
    bool wide = c->in == DT_f32 || c->in == DT_f64;
    bool fuses = k->e->target->fma && !k->x.plan->cx->options->no_contraction;
    return c->e->prim == P_reduce_sum && wide && fuses && here && kernel_is_product(info->e);
}
static void factors(Kernel *k, const Acc *c, const Ix *index, Reg *x) {
    const Eqn *e = plan_info(k->x.plan, c->e->in.at[0])->e;
    for (uint32_t i = 0; i < 2; i++) {
        Ix at[MAX_RANK];
        Val factor = e->in.at[i < e->in.n ? i : 0];
        eval_operand(k->x.plan, e, factor, index, at);
        x[i] = eval_value(&k->x, factor, at);
    }
}
static V add_product(Kernel *k, const Acc *c, const Ix *index, V sum) {
    Reg r[2];
    factors(k, c, index, r);
    V x[2] = {kernel_vector(k, r[0]), kernel_vector(k, r[1])};
    V y = em_fma(k->e, x[0], x[1], sum);
    return k->tail.ptr ? em_select(k->e, k->tail, y, sum) : y;
}
/* The next values of one accumulator. */
static void add_term(Kernel *k, const Acc *c, V *acc) {
    Emit *e = k->e;
    Ix index[MAX_RANK];
    step_at(k->x.plan, k->x.step, c->e->in.at[0], index);
    if (product(k, c)) {
        *acc = add_product(k, c, index, *acc);
        return;
    }
    V x = kernel_vector(k, eval_value(&k->x, c->e->in.at[0], index));
    if (k->tail.ptr) x = em_select(e, k->tail, x, point_identity(e, c->e->prim, c->in, k->w));
    if (!c->arg) {
        *acc = point_combine(e, c->e->prim, c->in, *acc, acc_mask(e, c, x));
        return;
    }
    V at = kernel_vector(k, kernel_index_lanes(k, arg_axis(k, c->e), c->index));
    V take = acc_better(e, c->e->prim, c->in, x, acc[0]);
    acc[0] = em_select(e, take, x, acc[0]);
    acc[1] = em_select(e, take, at, acc[1]);
}
static void add_terms(Kernel *k, const Accs *a, V *acc) {
    for (uint32_t i = 0; i < a->n; i++) {
        Ix *axes = column_begin(k, a->at[i].column);
        add_term(k, &a->at[i], acc);
        column_end(k, axes);
        acc += a->at[i].arg ? 2 : 1;
    }
}
/* One step of the innermost loop. */
static void accumulate(Kernel *k, const Accs *a, V *acc) {
    k->rows = false;
    reduce_store(k);
    add_terms(k, a, acc);
}
/* ---- loop nests over reduced axes. acc: nv values of the main width, then nv of the remainder's width; then, if sums
   are cut, their wide forms in the same order. */
_Static_assert(2 * (1 + WIDE_VALUES) * STEP_REDUCTIONS <= MAX_CARRIED, "sums of both widths with their wide forms");
_Static_assert(2 * MAX_ACCS <= MAX_CARRIED, "values of both widths");
typedef struct {
    Kernel *k;
    Accs *accs;
    Widths w;
    bool lane_red;
    uint32_t total, carried; /* accumulators; with the wide forms */
    V lo, hi;                /* of the outermost loop, if it is split over units */
    uint32_t cut;            /* how many loops are cut, the outermost ones */
} Nest;
static void nest(Nest *n, uint32_t level, V *acc);

/* The number of values in the wide form of an accumulator; 0: it has none. */
static uint32_t widens(const Acc *c) {
    return c->e->prim == P_reduce_sum && !prim_in_order(c->e->prim, c->in) ? wide_values(c->in) : 0;
}
/* Called for every accumulator with a wide form. */
typedef void Widened(Emit *, const Acc *, V *acc, V *wide);
static void widened(const Nest *n, V *acc, Widened *rule) {
    V *wide = acc + n->total, *end = wide;
    while (acc < end)
        for (uint32_t i = 0; i < n->accs->n; i++) {
            const Acc *c = &n->accs->at[i];
            if (widens(c)) rule(n->k->e, c, acc, wide);
            acc += c->arg ? 2 : 1, wide += widens(c);
        }
}
static void widen(Emit *e, const Acc *c, V *acc, V *wide) { wide_zero(e, c->in, em_width(*acc), wide); }
/* Adds the accumulator to its wide form and resets it. */
static void fold(Emit *e, const Acc *c, V *acc, V *wide) {
    wide_add(e, c->in, *acc, wide);
    *acc = point_identity(e, c->e->prim, c->in, em_width(*acc));
}
static void narrow(Emit *e, const Acc *c, V *acc, V *wide) { *acc = wide_value(e, c->in, wide); }
static void fold_narrow(Emit *e, const Acc *c, V *acc, V *wide) {
    V sum[WIDE_VALUES] = {wide[0], widens(c) > 1 ? wide[1] : wide[0]};
    wide_add(e, c->in, *acc, sum);
    narrow(e, c, acc, sum);
}
static void add_wide_forms(Nest *n, V *acc) {
    n->carried = n->total;
    for (uint32_t sets = n->total / n->accs->nv; sets; sets--)
        for (uint32_t i = 0; i < n->accs->n; i++) n->carried += widens(&n->accs->at[i]);
    widened(n, acc, widen);
}
static void apply_if(Nest *n, V condition, V *acc, Widened *rule, uint32_t values) {
    V yes[MAX_CARRIED] = {{NULL}};
    memcpy(yes, acc, n->carried * sizeof *acc);
    If f = em_if(n->k->e, condition);
    widened(n, yes, rule);
    em_else(n->k->e, &f, values, yes);
    em_if_end(n->k->e, &f, acc, acc);
}
/* The loops that are cut: none if no sum has a wide form. */
static void find_blocks(Nest *n) {
    bool any = false;
    n->carried = n->total;
    for (uint32_t i = 0; i < n->accs->n; i++) any |= widens(&n->accs->at[i]) > 0;
    n->cut = any ? n->k->x.step->cuts.n : 0;
}

/* Where as many whole steps of `by` end as there are, if any. */
static V whole_end(Kernel *k, V lo, V hi, uint32_t by) {
    Emit *e = k->e;
    V turns = em_bin(e, "llvm.intr.smax", em_bin(e, "llvm.sub", hi, lo), em_i64(e, 0));
    return em_bin(e, "llvm.sub", em_bin(e, "llvm.add", lo, turns), em_bin(e, "llvm.urem", turns, em_i64(e, by)));
}
static void nest_inner(Kernel *k, void *user, V *acc) {
    Nest *n = user;
    n->accs->depth++;
    nest(n, n->accs->depth, acc);
    n->accs->depth--;
}
static void leaf(Kernel *k, void *user, V *acc) { accumulate(k, ((Nest *)user)->accs, acc); }

/* Several iterations of the innermost loop: what all of them add is evaluated before the first adds or stores anything,
   so that memory is asked for it at the same time. That comes first in the code too: ptxas moves few loads across
   additions. */
typedef struct {
    const Accs *accs;
    V *acc;
    Pending *all; /* by store, then by iteration */
    uint32_t i, of, stores;
} Several;
static void evaluate_one(Kernel *k, void *user) {
    Several *t = user;
    t->stores = pending_of_columns(k, t->all + t->i, t->of);
    for (uint32_t i = 0; i < t->accs->n; i++) {
        const Acc *c = &t->accs->at[i];
        Ix index[MAX_RANK], *axes = column_begin(k, c->column);
        Reg x[2];
        step_at(k->x.plan, k->x.step, c->e->in.at[0], index);
        if (product(k, c))
            factors(k, c, index, x);
        else
            eval_value(&k->x, c->e->in.at[0], index);
        column_end(k, axes);
    }
}
static void add_one(Kernel *k, void *user) {
    Several *t = user;
    add_terms(k, t->accs, t->acc);
}
static void several(Kernel *k, void *user, V *acc) {
    Nest *n = user;
    const Step *s = k->x.step;
    Indices *x = k->x.ix;
    Atom loop = s->red[s->nred - 1];
    Atom first = atom_loop(x, dim_sub(k->x.plan->cx->types, loop_extent(x, loop), s->terms - 1));
    Pending *all = arena_new(k->x.plan->arena, Pending, s->terms * columns_of(s) * (s->stores.n + 1));
    Several t = {.accs = n->accs, .acc = acc, .all = all, .of = s->terms};
    kernel_bind(k, first, kernel_index(k, ix_atom(x, loop)));
    k->rows = false;
    for (uint32_t pass = 0; pass < 2; pass++)
        for (t.i = 0; t.i < t.of; t.i++) {
            Ix at = ix_add(x, ix_atom(x, first), ix_dim(x, t.i));
            kernel_substituted(k, loop, at, pass ? add_one : evaluate_one, &t);
        }
    kernel_store_all(k, all, t.stores * t.of);
}

/* Iterations [lo, hi) of one loop, with those in it. */
static void span(Nest *n, uint32_t level, V lo, V hi, V *acc) {
    Kernel *k = n->k;
    Atom loop = k->x.step->red[level];
    if (loop != k->lane) {
        uint32_t carried = level + 1 < n->cut ? n->carried : n->total;
        uint32_t terms = level + 1 == k->x.step->nred ? k->x.step->terms : 0;
        V from = terms > 1 ? whole_end(k, lo, hi, terms) : lo;
        if (terms > 1) loops_counted(k, &(Count){loop, lo, from, terms, false}, carried, acc, several, n);
        loops_counted(k, &(Count){loop, from, hi, 1, false}, carried, acc, nest_inner, n);
        return;
    }
    V mid = loops_main_end(k, lo, hi, &n->w);
    uint32_t nv = n->accs->nv;
    if (n->w.main) loops_counted(k, &(Count){loop, lo, mid, n->w.main, false}, nv, acc, leaf, n);
    if (n->w.tail) loops_counted(k, &(Count){loop, mid, hi, n->w.tail, true}, nv, n->w.main ? acc + nv : acc, leaf, n);
}
/* The length of a loop's blocks, in its own steps. */
static Dim block_of(const Nest *n, uint32_t level) {
    const Kernel *k = n->k;
    uint32_t all = k->block.group ? k->block.group : n->w.main ? n->w.main : n->w.tail;
    uint32_t w = k->x.step->red[level] == k->lane ? all : 1;
    return dim_mul(n->k->x.plan->cx->types, n->k->x.step->cuts.block[level], w);
}
/* An inner loop may be short and run often: then its last block has separate code, whose bounds are computed outside
   the enclosing loops. */
static bool last_apart(const Nest *n, uint32_t level) {
    const Step *s = n->k->x.step;
    return level > 0 && level + 1 == s->nred && !dim_is_const(loop_extent(n->k->x.ix, s->red[level]));
}
/* The start of the last block of a loop of n iterations. */
static Dim last_block(Types *ts, Dim n, Dim block) {
    Dim before = dim_max(ts, dim_sub(ts, n, 1), 0);
    return dim_mul(ts, dim_floordiv(ts, before, block), block);
}
/* Block by block; the last one is left in the accumulators. */
static void in_blocks(Nest *n, uint32_t level, V lo, V hi, V *acc) {
    Kernel *k = n->k;
    Emit *e = k->e;
    Dim block = block_of(n, level);
    V step = kernel_dim(k, block), next[MAX_CARRIED], end = hi;
    bool apart = last_apart(n, level);
    if (apart) {
        Dim extent = loop_extent(k->x.ix, k->x.step->red[level]);
        end = kernel_dim(k, last_block(k->x.plan->cx->types, extent, block));
    }
    For f = em_for(e, lo, end, step, n->carried, acc);
    kernel_enter(k);
    V from = em_arg(&f.scope, 0), to = em_bin(e, "llvm.add", from, step);
    if (!apart) to = em_bin(e, "llvm.intr.smin", to, hi);
    for (uint32_t i = 0; i < n->carried; i++) next[i] = em_arg(&f.scope, i + 1);
    span(n, level, from, to, next);
    if (apart)
        widened(n, next, fold);
    else
        apply_if(n, em_cmpi(e, "slt", to, hi), next, fold, n->carried);
    kernel_leave(k);
    em_for_end(e, &f, next, acc);
    if (apart) span(n, level, end, hi, acc);
}
static void nest(Nest *n, uint32_t level, V *acc) {
    Kernel *k = n->k;
    if (level == k->x.step->nred) {
        accumulate(k, n->accs, acc);
        return;
    }
    V lo = em_i64(k->e, 0), hi = kernel_dim(k, loop_extent(k->x.ix, k->x.step->red[level]));
    if (level == 0 && n->lo.ptr) lo = n->lo, hi = n->hi;
    (level < n->cut ? in_blocks : span)(n, level, lo, hi, acc);
}
/* The nest with cut sums: the wide forms of the blocks plus the last block, if there are several. */
static void nest_cut(Nest *n, V *acc) {
    Kernel *k = n->k;
    Emit *e = k->e;
    add_wide_forms(n, acc);
    nest(n, 0, acc);
    if (k->x.step->cuts.several) {
        widened(n, acc, fold_narrow);
        return;
    }
    V any = em_int(e, e->i1, 0);
    for (uint32_t i = 0; i < n->cut; i++) {
        V turns = kernel_dim(k, loop_extent(k->x.ix, k->x.step->red[i]));
        any = em_bin(e, "llvm.or", any, em_cmpi(e, "sgt", turns, kernel_dim(k, block_of(n, i))));
    }
    apply_if(n, any, acc, fold_narrow, n->total);
}
static void finish(Kernel *k, const Accs *a, const V *acc) {
    for (uint32_t i = 0; i < a->n; i++) {
        const Acc *c = &a->at[i];
        Ix index[MAX_RANK], *axes = column_begin(k, c->column);
        step_at(k->x.plan, k->x.step, c->v, index);
        V v = c->arg ? acc[1] : em_round(k->e, c->out, acc[0]);
        MlirType want = em_vec(k->e, em_register_type(k->e, c->out), em_width(v));
        if (c->arg && dtype_info[c->out].kind != DK_FLOAT) {
            uint32_t have = mlirIntegerTypeGetWidth(em_elem(v)), bits = dtype_info[c->out].bits;
            if (have != bits) v = em_cast(k->e, have < bits ? "llvm.zext" : "llvm.trunc", want, v);
            v = em_round(k->e, c->out, v);
        }
        eval_remember(&k->x, c->v, index, reg(v, em_width(v) == 1, k->x.depth));
        column_end(k, axes);
        acc += c->arg ? 2 : 1;
    }
}
/* Unrolled loops over the reduced axes. Longer sums are two chains. */
typedef struct {
    const Accs *accs;
    V *acc;
    V *first; /* sums of the first half */
    uint32_t level;
    Dim done, half; /* iterations; half 0: one chain */
} Turns;
static void first_half(Kernel *k, Turns *t) {
    V *acc = t->acc;
    for (uint32_t i = 0; i < t->accs->n; i++) {
        const Acc *c = &t->accs->at[i];
        t->first[i] = *acc;
        if (widens(c)) *acc = point_identity(k->e, c->e->prim, c->in, em_width(*acc));
        acc += c->arg ? 2 : 1;
    }
}
static void both_halves(Kernel *k, const Turns *t) {
    V *acc = t->acc;
    for (uint32_t i = 0; i < t->accs->n; i++) {
        const Acc *c = &t->accs->at[i];
        if (widens(c)) *acc = point_combine(k->e, c->e->prim, c->in, t->first[i], *acc);
        acc += c->arg ? 2 : 1;
    }
}
static void turns(Kernel *k, void *user) {
    Turns *t = user;
    if (t->level == k->x.step->nred) {
        if (t->half && t->done++ == t->half) first_half(k, t);
        accumulate(k, t->accs, t->acc);
        return;
    }
    Atom loop = k->x.step->red[t->level++];
    for (Dim i = 0; i < loop_extent(k->x.ix, loop); i++) kernel_substituted(k, loop, ix_dim(k->x.ix, i), turns, t);
    t->level--;
}
static void write_out(Kernel *k, const Accs *accs, V *acc) {
    V first[MAX_ACCS] = {{NULL}};
    Turns t = {.accs = accs, .acc = acc, .first = first, .half = k->x.step->half};
    turns(k, &t);
    if (t.half) both_halves(k, &t);
}
/* The chunk of the outermost loop that this thread has: none if there is no item for it. */
static void own_chunk(Nest *n) {
    Kernel *k = n->k;
    Emit *e = k->e;
    if (!n->lo.ptr) n->lo = em_i64(e, 0), n->hi = kernel_dim(k, loop_extent(k->x.ix, k->x.step->red[0]));
    V turns = em_bin(e, "llvm.sub", n->hi, n->lo), chunks = em_i64(e, k->block.chunks);
    V length = em_bin(e, "llvm.udiv", em_bin(e, "llvm.add", turns, em_i64(e, k->block.chunks - 1)), chunks);
    n->lo = em_bin(e, "llvm.add", n->lo, em_bin(e, "llvm.mul", chunk_number(k), length));
    n->hi = em_bin(e, "llvm.intr.smin", em_bin(e, "llvm.add", n->lo, length), n->hi);
    if (k->block.exists.ptr) n->hi = em_select(e, k->block.exists, n->hi, n->lo);
}
static void merge_threads(Emit *e, void *accs, V *x, const V *y) { accs_merge(e, accs, x, y); }
static void held_terms(Kernel *k, void *accs, V *acc) { add_terms(k, accs, acc); }
/* The values of the accumulators over all reduced axes, or over [lo, hi) of the outermost. */
static void reduce(Kernel *k, Accs *accs, V lo, V hi, V *acc) {
    Nest n = {.k = k, .accs = accs, .lo = lo, .hi = hi};
    n.lane_red = k->x.step->nred && k->x.step->red[k->x.step->nred - 1] == k->x.step->lane;
    accs->depth = 0;
    if (k->block.chunks) own_chunk(&n);
    if (n.lane_red) n.w = k->x.step->widths;
    uint32_t first = n.lane_red ? (n.w.main ? n.w.main : n.w.tail) : k->w;
    accs_initial(k, accs, first, acc);
    if (k->x.step->written_out) {
        write_out(k, accs, acc);
        accs_booleans(k->e, accs, acc);
        return;
    }
    n.total = accs->nv;
    if (n.lane_red && n.w.main && n.w.tail) {
        accs_initial(k, accs, n.w.tail, acc + accs->nv);
        n.total = 2 * accs->nv;
    }
    find_blocks(&n);
    if (k->x.step->held.turns)
        rows_held(k, accs->nv, acc, held_terms, accs);
    else
        (n.cut ? nest_cut(&n, acc) : nest(&n, 0, acc));
    accs_booleans(k->e, accs, acc);
    if (n.total > accs->nv) accs_booleans(k->e, accs, acc + accs->nv);
    if (k->block.together && accs->nv) threads_merge(k, accs->nv, acc, merge_threads, accs);
    if (!n.lane_red || k->block.together) return;
    accs_horizontal(k->e, accs, acc);
    if (n.total == accs->nv) return;
    accs_horizontal(k->e, accs, acc + accs->nv);
    accs_merge(k->e, accs, acc, acc + accs->nv);
}
/* Does the stage sum or store terms? */
static bool any_terms(const Kernel *k, const Accs *accs) {
    bool any = accs->n > 0;
    each(const Store, s, k->x.step->stores) any |= s->level == k->x.level && !s->row;
    return any;
}
void reduce_stage(Kernel *k) {
    Accs accs;
    V acc[MAX_CARRIED] = {{NULL}}, all = {NULL};
    accs_collect(k, &accs);
    if (!any_terms(k, &accs)) return;
    reduce(k, &accs, all, all, acc);
    finish(k, &accs, acc);
}
/* ---- sums of columns, a few rows of terms at a time: the accumulators are in s->lines, one after another for all
   columns, those of all stages and then the wide forms of one. The terms of a sum are added in the same order as in any
   other nest. */
typedef struct {
    Nest n;
    Accs accs;
    uint32_t first; /* of its accumulators among all */
} LineStage;
typedef struct {
    LineStage *stages;
    uint32_t level;
    V from, to;    /* rows */
    Widened *rule; /* after a block of them, or after all */
} Lines;
/* Where accumulator `i` of a stage, or its wide forms, are for the vector of columns; how many bytes one has: 8 are
   reserved. */
static V line_at(Kernel *k, const LineStage *s, uint32_t i, uint32_t *bytes) {
    Emit *e = k->e;
    bool wide = i >= s->n.total;
    uint32_t number = wide ? k->x.step->nreductions + i - s->n.total : s->first + i;
    Dim all = loop_extent(k->x.ix, k->lane) + MAX_LANES;
    *bytes = wide ? 8 : dtype_bytes(s->accs.at[i].in);
    assert(number < (1 + WIDE_VALUES) * k->x.step->nreductions);
    V column = em_bin(e, "llvm.mul", kernel_index(k, ix_atom(k->x.ix, k->lane)), em_i64(e, *bytes));
    return em_gep(e, kernel_buffer(k, k->x.step->lines), em_add(e, column, em_i64(e, all * 8 * number)), e->i8);
}
static void initial(Kernel *k, LineStage *s, V *acc) {
    accs_initial(k, &s->accs, k->w, acc);
    if (s->n.cut) add_wide_forms(&s->n, acc);
}
static void load_line(Kernel *k, LineStage *s, uint32_t n, V *acc) {
    uint32_t bytes;
    initial(k, s, acc); /* for the types */
    for (uint32_t i = 0; i < n; i++) {
        V p = line_at(k, s, i, &bytes);
        acc[i] = em_load(k->e, mlirValueGetType(acc[i]), p, bytes);
    }
}
static void store_line(Kernel *k, const LineStage *s, uint32_t n, const V *acc) {
    uint32_t bytes;
    for (uint32_t i = 0; i < n; i++) {
        V p = line_at(k, s, i, &bytes);
        em_store(k->e, acc[i], p, bytes);
    }
}
/* What earlier stages have found. */
static void restore_lines(Kernel *k, Lines *l) {
    for (k->x.level = 0; k->x.level < l->level; k->x.level++) {
        LineStage *s = &l->stages[k->x.level];
        V acc[MAX_CARRIED] = {{NULL}};
        load_line(k, s, s->n.total, acc);
        finish(k, &s->accs, acc);
    }
}
/* Passes over the columns: before the terms, for some rows of them, after a block of them or all. */
static void line_begin(Kernel *k, void *user, V *none) {
    Lines *l = user;
    LineStage *s = &l->stages[l->level];
    V acc[MAX_CARRIED] = {{NULL}};
    restore_lines(k, l);
    k->rows = true;
    reduce_store(k);
    initial(k, s, acc);
    store_line(k, s, s->n.carried, acc);
}
static void line_rows(Kernel *k, void *user, V *none) {
    Lines *l = user;
    LineStage *s = &l->stages[l->level];
    V acc[MAX_CARRIED] = {{NULL}};
    restore_lines(k, l);
    load_line(k, s, s->n.total, acc);
    span(&s->n, 0, l->from, l->to, acc);
    store_line(k, s, s->n.total, acc);
}
static void line_widened(Kernel *k, void *user, V *none) {
    Lines *l = user;
    LineStage *s = &l->stages[l->level];
    V acc[MAX_CARRIED] = {{NULL}};
    load_line(k, s, s->n.carried, acc);
    widened(&s->n, acc, l->rule);
    store_line(k, s, s->n.carried, acc);
}
static void over_columns(Kernel *k, Inner *pass, Lines *l, V lo, V hi) {
    Widths w = k->x.step->widths;
    V mid = loops_main_end(k, lo, hi, &w);
    if (w.main) loops_counted(k, &(Count){k->lane, lo, mid, w.main, false}, 0, NULL, pass, l);
    if (w.tail) loops_counted(k, &(Count){k->lane, mid, hi, w.tail, true}, 0, NULL, pass, l);
}
static void over_rows(Kernel *k, Lines *l, V from, V to, V lo, V hi) {
    Emit *e = k->e;
    For f = em_for(e, from, to, em_i64(e, LINE_TERMS), 0, NULL);
    kernel_enter(k);
    l->from = em_arg(&f.scope, 0), l->to = em_least(e, em_add(e, l->from, em_i64(e, LINE_TERMS)), to);
    over_columns(k, line_rows, l, lo, hi);
    kernel_leave(k);
    em_for_end(e, &f, NULL, NULL);
}
/* One stage of the columns [lo, hi). */
static void stage_in_lines(Kernel *k, Lines *l, V lo, V hi) {
    Emit *e = k->e;
    LineStage *s = &l->stages[l->level];
    Dim rows = loop_extent(k->x.ix, k->x.step->red[0]), block = s->n.cut ? block_of(&s->n, 0) : 1;
    Dim last = s->n.cut ? last_block(k->x.plan->cx->types, rows, block) : 0;
    over_columns(k, line_begin, l, lo, hi);
    if (!any_terms(k, &s->accs)) return;
    V size = kernel_dim(k, block), whole = kernel_dim(k, last);
    For f = em_for(e, em_i64(e, 0), whole, size, 0, NULL);
    kernel_enter(k);
    V from = em_arg(&f.scope, 0);
    over_rows(k, l, from, em_add(e, from, size), lo, hi);
    l->rule = fold;
    over_columns(k, line_widened, l, lo, hi);
    kernel_leave(k);
    em_for_end(e, &f, NULL, NULL);
    over_rows(k, l, whole, kernel_dim(k, rows), lo, hi);
    l->rule = fold_narrow;
    if (s->n.cut) over_columns(k, line_widened, l, lo, hi);
}
static LineStage *line_stages(Kernel *k) {
    const Step *step = k->x.step;
    LineStage *stages = arena_new(k->x.plan->arena, LineStage, step->levels);
    uint32_t first = 0;
    for (k->x.level = 0; k->x.level < step->levels; k->x.level++) {
        LineStage *s = &stages[k->x.level];
        s->n = (Nest){.k = k, .accs = &s->accs}, s->first = first;
        accs_collect(k, &s->accs);
        s->accs.depth = 0;
        s->n.total = s->accs.nv;
        find_blocks(&s->n);
        first += s->accs.n;
        assert(s->accs.nv == s->accs.n && first <= step->nreductions);
    }
    return stages;
}
void reduce_lines(Kernel *k, V lo, V hi) {
    Emit *e = k->e;
    Lines l = {.stages = line_stages(k)};
    For f = em_for(e, lo, hi, em_i64(e, LINE_CHUNK), 0, NULL);
    kernel_enter(k);
    V from = em_arg(&f.scope, 0), to = em_least(e, em_add(e, from, em_i64(e, LINE_CHUNK)), hi);
    for (l.level = 0; l.level < k->x.step->levels; l.level++) {
        k->x.level = l.level;
        stage_in_lines(k, &l, from, to);
    }
    kernel_leave(k);
    em_for_end(e, &f, NULL, NULL);
}

/* ---- parts of the outermost loop leave their accumulators in s->parts, one word each, and kernel_combine combines
   them, on a CPU in the order of the parts, whichever threads computed them. */
void reduce_part(Kernel *k, Accs *accs, V part, V item, V length) {
    Emit *e = k->e;
    V n = kernel_dim(k, loop_extent(k->x.ix, k->x.step->red[0])), parts = kernel_buffer(k, k->x.step->parts);
    V from = em_bin(e, "llvm.mul", part, length), acc[MAX_CARRIED] = {{NULL}};
    V to = em_bin(e, "llvm.intr.smin", em_bin(e, "llvm.add", from, length), n);
    reduce(k, accs, from, to, acc);
    V word = em_bin(e, "llvm.mul", item, em_i64(e, accs->nv));
    If one = by_one_thread(k);
    for (uint32_t i = 0; i < accs->nv; i++) {
        V p = em_gep(e, parts, em_bin(e, "llvm.add", word, em_i64(e, i)), e->i64);
        em_store(e, acc[i], p, 8);
    }
    by_one_thread_end(k, &one);
}
void reduce_parts(Kernel *k, V lo, V hi) {
    Emit *e = k->e;
    Accs accs;
    V length = em_i64(e, k->x.step->block);
    accs_collect(k, &accs);
    For f = em_for(e, lo, hi, em_i64(e, 1), 0, NULL);
    kernel_enter(k);
    reduce_part(k, &accs, em_arg(&f.scope, 0), em_arg(&f.scope, 0), length);
    kernel_leave(k);
    em_for_end(e, &f, NULL, NULL);
}
/* Which parts a thread combines, and where they are: those of one sum are `apart` apart, the first is number `item`;
   NULL: they are all that there is. */
typedef struct {
    V first, step, apart, item;
} Share;
/* The accumulators of part number `at`. */
static void load_part(Kernel *k, uint32_t n, const Share *t, V at, V *values) {
    Emit *e = k->e;
    V parts = kernel_buffer(k, k->x.step->parts);
    if (t->apart.ptr) at = em_bin(e, "llvm.add", em_bin(e, "llvm.mul", at, t->apart), t->item);
    V word = em_bin(e, "llvm.mul", at, em_i64(e, n));
    for (uint32_t i = 0; i < n; i++) {
        V p = em_gep(e, parts, em_bin(e, "llvm.add", word, em_i64(e, i)), e->i64);
        values[i] = em_load(e, mlirValueGetType(values[i]), p, 8);
    }
}
/* Those from `from` on, `n` of them in each turn. */
static void combine_turns(Kernel *k, const Nest *n, const Share *t, V from, V to, uint32_t turns, V *acc) {
    Emit *e = k->e;
    V sums[MAX_CARRIED] = {{NULL}}, next[PARTS_READ][2 * MAX_ACCS];
    For f = em_for(e, from, to, em_bin(e, "llvm.mul", t->step, em_i64(e, turns)), n->carried, acc);
    for (uint32_t i = 0; i < turns; i++) {
        memcpy(next[i], acc, n->accs->nv * sizeof *acc); /* their types matter */
        V more = em_bin(e, "llvm.mul", t->step, em_i64(e, i));
        load_part(k, n->accs->nv, t, em_bin(e, "llvm.add", em_arg(&f.scope, 0), more), next[i]);
    }
    for (uint32_t i = 0; i < n->carried; i++) sums[i] = em_arg(&f.scope, i + 1);
    for (uint32_t i = 0; i < turns; i++) accs_merge(e, n->accs, sums, next[i]), widened(n, sums, fold);
    em_for_end(e, &f, sums, acc);
}
static void combine_share(Kernel *k, Nest *n, const Share *t, V *acc) {
    Emit *e = k->e;
    V from = t->first, to = kernel_dim(k, step_parts(k->x.plan, k->x.step));
    if (k->block.together) {
        uint32_t at_once = PARTS_READ;
        while (at_once > 1 && at_once * n->accs->nv > TERMS_HELD) at_once /= 2;
        V turns = em_bin(e, "llvm.sub", em_bin(e, "llvm.add", to, t->step), em_bin(e, "llvm.add", from, em_i64(e, 1)));
        V own = em_bin(e, "llvm.udiv", em_bin(e, "llvm.intr.smax", turns, em_i64(e, 0)), t->step);
        V end = em_bin(e, "llvm.mul", whole_end(k, em_i64(e, 0), own, at_once), t->step);
        end = em_bin(e, "llvm.add", from, end);
        combine_turns(k, n, t, from, end, at_once, acc);
        from = end;
    }
    combine_turns(k, n, t, from, to, 1, acc);
    widened(n, acc, narrow);
}
static void combine_parts(Kernel *k, const Share *t) {
    Step *s = k->x.step;
    Accs accs;
    V acc[MAX_CARRIED] = {{NULL}};
    k->lane = s->lane;
    accs_collect(k, &accs);
    accs_initial(k, &accs, 1, acc);
    Nest n = {.k = k, .accs = &accs, .total = accs.nv};
    add_wide_forms(&n, acc);
    combine_share(k, &n, t, acc);
    if (k->block.together) threads_merge(k, accs.nv, acc, merge_threads, &accs);
    k->rows = true;
    for (k->x.level = 0; k->x.level < s->levels; k->x.level++) {
        if (k->x.level == 1) finish(k, &accs, acc);
        If one = by_one_thread(k);
        reduce_store(k);
        by_one_thread_end(k, &one);
    }
}
void kernel_combine(Kernel *k, V lo, V hi) {
    combine_parts(k, &(Share){.first = em_i64(k->e, 0), .step = em_i64(k->e, 1)});
}
void device_combine(Kernel *k, V item, V unused) {
    uint32_t chunks = k->block.chunks, sharing = chunks ? chunks : k->block.group;
    V first = chunks ? chunk_number(k) : member_number(k), apart = kernel_dim(k, k->x.step->division.items);
    combine_parts(k, &(Share){first, em_i64(k->e, sharing), apart, item});
}
