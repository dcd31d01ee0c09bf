#include "kernel.h"
#include "point.h"
#include "threads.h"
#include "wide.h"
#include <assert.h>
#include <mlir-c/BuiltinTypes.h>

/* The kernel of a LOOPS step: loops over the kept axes, and for each of their points (or vector of
   points) the stages, each a loop nest over the reduced axes. Vectors run along the innermost kept or the innermost
   reduced loop. Partial sums and their order depend only on extents and target: any split over threads gives the same bits.

   A sum of floats is cut into blocks of terms (sums.h). Adding n uniform terms in f32 has an error of 2.4e-8·√(n/3);
   errors of blocks average out, and so do those of lanes that are added up in the end. The worst of a million separate
   sums has five times that error, so lanes that are separate sums have shorter blocks. */

enum { MAX_ACCS = 2 * STEP_REDUCTIONS /* argmax has two values */ };

/* ---- reductions of one stage */
typedef struct {
    Val v;
    const Eqn *e;
    Dtype in, out;
    bool arg;
    MlirType index; /* ARG: type of positions */
} Acc;
typedef struct {
    Acc at[STEP_REDUCTIONS];
    uint32_t n, nv; /* nv: carried values for one width */
    uint32_t depth;
} Accs;

static void collect(Kernel *k, Accs *a) {
    a->n = a->nv = 0;
    each(Val, v, k->x.step->members) {
        const Info *info = plan_info(k->x.plan, *v);
        if (!eqn_reduces(info->e) || info->level != k->x.level + 1) continue;
        assert(a->n < STEP_REDUCTIONS);
        Acc *c = &a->at[a->n++];
        *c = (Acc){.v = *v, .e = info->e};
        c->in = val_array(k->x.plan->cx, info->e->in.at[0])->dtype;
        c->out = val_array(k->x.plan->cx, *v)->dtype;
        c->arg = info->e->prim == P_argmax || info->e->prim == P_argmin;
        c->index = k->e->i64;
        Dim n = type_size(k->x.plan->cx->types, val_type(k->x.plan->cx, info->e->in.at[0]));
        if (dim_is_const(n) && n < INT32_MAX) c->index = k->e->i32;
        a->nv += c->arg ? 2 : 1;
    }
}
static void initial(Kernel *k, const Accs *a, uint32_t w, V *out) {
    for (uint32_t i = 0; i < a->n; i++) {
        *out++ = point_identity(k->e, a->at[i].e->prim, a->at[i].in, w);
        if (a->at[i].arg) *out++ = em_int(k->e, em_vec(k->e, a->at[i].index, w), 0);
    }
}
static bool is_float(Dtype d) { return dtype_info[d].kind == DK_FLOAT; }
/* y before x: strictly better, or the first NaN. */
static V better(Emit *e, Prim p, Dtype d, V y, V x) {
    bool max = p == P_argmax;
    if (!is_float(d)) {
        bool s = dtype_info[d].kind == DK_SINT;
        return em_cmpi(e, max ? (s ? "sgt" : "ugt") : (s ? "slt" : "ult"), y, x);
    }
    V more = em_cmpf(e, max ? "ogt" : "olt", y, x);
    V nan = em_bin(e, "llvm.and", em_cmpf(e, "uno", y, y), em_cmpf(e, "ord", x, x));
    return em_bin(e, "llvm.or", more, nan);
}
static V equally(Emit *e, Dtype d, V y, V x) {
    if (!is_float(d)) return em_cmpi(e, "eq", y, x);
    V nans = em_bin(e, "llvm.and", em_cmpf(e, "uno", y, y), em_cmpf(e, "uno", x, x));
    return em_bin(e, "llvm.or", em_cmpf(e, "oeq", y, x), nans);
}
/* The better of two (value, position) pairs in any order. */
static void merge_arg(Emit *e, const Acc *c, V *a, const V *b) {
    V before = em_bin(e, "llvm.and", equally(e, c->in, b[0], a[0]), em_cmpi(e, "slt", b[1], a[1]));
    V take = em_bin(e, "llvm.or", better(e, c->e->prim, c->in, b[0], a[0]), before);
    a[0] = em_select(e, take, b[0], a[0]);
    a[1] = em_select(e, take, b[1], a[1]);
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
    return c->e->prim == P_reduce_sum && wide && k->e->target->fma && here && info->e->prim == P_mul;
}
static V add_product(Kernel *k, const Acc *c, const Ix *index, V sum) {
    const Eqn *e = plan_info(k->x.plan, c->e->in.at[0])->e;
    V x[2];
    for (uint32_t i = 0; i < 2; i++) {
        Ix at[MAX_RANK];
        eval_operand(k->x.plan, e, e->in.at[i], index, at);
        x[i] = kernel_vector(k, eval_value(&k->x, e->in.at[i], at));
    }
    V y = em_fma(k->e, x[0], x[1], sum);
    return k->tail.ptr ? em_select(k->e, k->tail, y, sum) : y;
}
/* One step of the innermost loop: stores, and the next values of the accumulators. */
static void accumulate(Kernel *k, const Accs *a, V *acc) {
    Emit *e = k->e;
    k->rows = false;
    kernel_stores(k);
    for (uint32_t i = 0; i < a->n; i++) {
        const Acc *c = &a->at[i];
        Ix index[MAX_RANK];
        step_at(k->x.plan, k->x.step, c->e->in.at[0], index);
        if (product(k, c)) {
            *acc = add_product(k, c, index, *acc);
            acc++;
            continue;
        }
        V x = kernel_vector(k, eval_value(&k->x, c->e->in.at[0], index));
        if (k->tail.ptr) x = em_select(e, k->tail, x, point_identity(e, c->e->prim, c->in, k->w));
        if (!c->arg) {
            *acc = point_combine(e, c->e->prim, c->in, *acc, x);
            acc++;
            continue;
        }
        V at = kernel_vector(k, kernel_index_lanes(k, arg_axis(k, c->e), c->index));
        V take = better(e, c->e->prim, c->in, x, acc[0]);
        acc[0] = em_select(e, take, x, acc[0]);
        acc[1] = em_select(e, take, at, acc[1]);
        acc += 2;
    }
}
static void halve(Emit *e, V v, V *lo, V *hi) {
    int64_t lanes[MAX_LANES];
    uint32_t w = em_width(v) / 2;
    for (uint32_t i = 0; i < 2 * w; i++) lanes[i] = i;
    *lo = em_shuffle(e, v, v, w, lanes);
    *hi = em_shuffle(e, v, v, w, lanes + w);
    if (w == 1) *lo = em_extract(e, *lo, 0), *hi = em_extract(e, *hi, 0);
}
/* Combines all lanes into one, by halves. */
static void horizontal(Emit *e, const Accs *a, V *acc) {
    for (uint32_t i = 0; i < a->n; i++) {
        const Acc *c = &a->at[i];
        while (em_width(acc[0]) > 1) {
            V lo[2] = {acc[0]}, hi[2] = {acc[0]};
            halve(e, acc[0], &lo[0], &hi[0]);
            if (c->arg)
                halve(e, acc[1], &lo[1], &hi[1]), merge_arg(e, c, lo, hi), acc[1] = lo[1];
            else
                lo[0] = point_combine(e, c->e->prim, c->in, lo[0], hi[0]);
            acc[0] = lo[0];
        }
        acc += c->arg ? 2 : 1;
    }
}

/* Combines two sets of scalars into the first. */
static void merge(Emit *e, const Accs *a, V *x, const V *y) {
    for (uint32_t i = 0; i < a->n; i++) {
        const Acc *c = &a->at[i];
        if (c->arg)
            merge_arg(e, c, x, y);
        else
            x[0] = point_combine(e, c->e->prim, c->in, x[0], y[0]);
        x += c->arg ? 2 : 1, y += c->arg ? 2 : 1;
    }
}

/* ---- loop nests over reduced axes. acc: nv values of the main width, then nv of the remainder's width; then, if sums
   are cut, their wide forms in the same order. */
enum { MAX_CARRIED = 4 * MAX_ACCS };
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

static V tail_mask(Kernel *k, V i, V hi) {
    Emit *e = k->e;
    V left = em_cast(e, "llvm.trunc", e->i32, em_bin(e, "llvm.sub", hi, i));
    return em_cmpi(e, "ult", em_lanes(e, e->i32, k->w), em_broadcast(e, left, k->w));
}
typedef void Inner(Kernel *, void *user, V *acc);

/* for i = lo … hi by w; the tail: in lanes of which some may be beyond hi. */
typedef struct {
    Atom loop;
    V lo, hi;
    uint32_t w;
    bool tail;
} Count;
/* The inner part with `n` carried values. */
static void counted(Kernel *k, const Count *c, uint32_t n, V *acc, Inner *inner, void *user) {
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
/* Where the main loop ends. */
static V main_end(Kernel *k, V lo, V hi, const Widths *w) {
    Emit *e = k->e;
    if (!w->main) return lo;
    if (!w->tail) return hi;
    V rest = em_bin(e, "llvm.urem", em_bin(e, "llvm.sub", hi, lo), em_i64(e, w->main));
    return em_bin(e, "llvm.sub", hi, rest);
}
static void nest_inner(Kernel *k, void *user, V *acc) {
    Nest *n = user;
    n->accs->depth++;
    nest(n, n->accs->depth, acc);
    n->accs->depth--;
}
static void leaf(Kernel *k, void *user, V *acc) { accumulate(k, ((Nest *)user)->accs, acc); }

/* Iterations [lo, hi) of one loop, with those in it. */
static void span(Nest *n, uint32_t level, V lo, V hi, V *acc) {
    Kernel *k = n->k;
    Atom loop = k->x.step->red[level];
    if (loop != k->lane) {
        uint32_t carried = level + 1 < n->cut ? n->carried : n->total;
        counted(k, &(Count){loop, lo, hi, 1, false}, carried, acc, nest_inner, n);
        return;
    }
    V mid = main_end(k, lo, hi, &n->w);
    uint32_t nv = n->accs->nv;
    if (n->w.main) counted(k, &(Count){loop, lo, mid, n->w.main, false}, nv, acc, leaf, n);
    if (n->w.tail) counted(k, &(Count){loop, mid, hi, n->w.tail, true}, nv, n->w.main ? acc + nv : acc, leaf, n);
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
        Ix index[MAX_RANK];
        step_at(k->x.plan, k->x.step, c->v, index);
        V v = c->arg ? acc[1] : em_round(k->e, c->out, acc[0]);
        MlirType want = em_vec(k->e, em_register_type(k->e, c->out), em_width(v));
        if (c->arg && dtype_info[c->out].kind != DK_FLOAT) {
            uint32_t have = mlirIntegerTypeGetWidth(em_elem(v)), bits = dtype_info[c->out].bits;
            if (have != bits) v = em_cast(k->e, have < bits ? "llvm.zext" : "llvm.trunc", want, v);
            v = em_round(k->e, c->out, v);
        }
        eval_remember(&k->x, c->v, index, reg(v, em_width(v) == 1, k->x.depth));
        acc += c->arg ? 2 : 1;
    }
}
void kernel_substituted(Kernel *k, Atom loop, Ix at, Inside *inside, void *user) {
    Step *s = k->x.step;
    Ix *axes = s->axes;
    s->axes = arena_new(k->x.plan->arena, Ix, s->domain.n + 1);
    for (uint32_t d = 0; d < s->domain.n; d++) s->axes[d] = ix_substitute(k->x.ix, axes[d], loop, at);
    inside(k, user);
    s->axes = axes;
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
    V first[MAX_ACCS];
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
    n->hi = em_select(e, k->block.exists, n->hi, n->lo);
}
static void merge_threads(Emit *e, void *accs, V *x, const V *y) { merge(e, accs, x, y); }
/* The values of the accumulators over all reduced axes, or over [lo, hi) of the outermost. */
static void reduce(Kernel *k, Accs *accs, V lo, V hi, V *acc) {
    Nest n = {.k = k, .accs = accs, .lo = lo, .hi = hi};
    n.lane_red = k->x.step->nred && k->x.step->red[k->x.step->nred - 1] == k->x.step->lane;
    accs->depth = 0;
    if (k->block.chunks) own_chunk(&n);
    if (n.lane_red) n.w = k->x.step->widths;
    uint32_t first = n.lane_red ? (n.w.main ? n.w.main : n.w.tail) : k->w;
    initial(k, accs, first, acc);
    if (k->x.step->written_out) {
        write_out(k, accs, acc);
        return;
    }
    n.total = accs->nv;
    if (n.lane_red && n.w.main && n.w.tail) {
        initial(k, accs, n.w.tail, acc + accs->nv);
        n.total = 2 * accs->nv;
    }
    find_blocks(&n);
    (n.cut ? nest_cut(&n, acc) : nest(&n, 0, acc));
    if (k->block.together && accs->nv) threads_merge(k, accs->nv, acc, merge_threads, accs);
    if (!n.lane_red || k->block.together) return;
    horizontal(k->e, accs, acc);
    if (n.total == accs->nv) return;
    horizontal(k->e, accs, acc + accs->nv);
    merge(k->e, accs, acc, acc + accs->nv);
}
static void reduce_stage(Kernel *k) {
    Accs accs;
    V acc[MAX_CARRIED] = {{NULL}}, all = {NULL};
    collect(k, &accs);
    bool any = accs.n > 0;
    each(Store, s, k->x.step->stores) any |= s->level == k->x.level && !s->row;
    if (!any) return;
    reduce(k, &accs, all, all, acc);
    finish(k, &accs, acc);
}
static void stages(Kernel *k) {
    for (uint32_t level = 0; level < k->x.step->levels; level++) {
        k->x.level = level;
        k->rows = k->x.step->reduces;
        If one = by_one_thread(k);
        kernel_stores(k);
        by_one_thread_end(k, &one);
        if (k->x.step->reduces) reduce_stage(k);
    }
}

/* ---- runs: all values, then all stores; on a device LLVM makes wide accesses of those of neighbouring elements, else those
   that lie beside each other are stored together */
typedef struct {
    Pending *all;   /* by store, then by iteration */
    uint32_t i, of; /* the iteration */
    uint32_t n;     /* stores of one */
} Run;
/* The elements of the runs that a thread does at once. */
static uint32_t run_elements(const Step *s) { return s->run * s->run_turns; }
static void evaluate(Kernel *k, void *user) {
    Run *r = user;
    k->in_run = k->x.step->run ? 1 + r->i % k->x.step->run : 0;
    r->n = kernel_pending(k, r->all + r->i, r->of);
    k->in_run = 0;
}
static Run run_of(const Kernel *k, uint32_t elements) {
    Pending *all = arena_new(k->x.plan->arena, Pending, elements * (k->x.step->stores.n + 1));
    return (Run){all, 0, elements, 0};
}
static void whole_runs(Kernel *k) {
    Step *s = k->x.step;
    Indices *x = k->x.ix;
    Run r = run_of(k, run_elements(s));
    for (; r.i < r.of; r.i++) {
        Dim place = (Dim)(r.i / s->run) * s->grid.threads * s->run + r.i % s->run;
        Ix at = ix_add(x, ix_scale(x, ix_atom(x, s->runs), s->run), ix_dim(x, place));
        kernel_substituted(k, s->run_loop, at, evaluate, &r);
    }
    kernel_store_all(k, r.all, r.n * r.of);
}
/* The same one by one, as far as there are any. */
static void single_elements(Kernel *k, V first, V n) {
    Emit *e = k->e;
    V run = em_i64(e, k->x.step->run), apart = em_i64(e, (int64_t)k->x.step->grid.threads * k->x.step->run);
    V end = em_bin(e, "llvm.add", first, em_bin(e, "llvm.mul", apart, em_i64(e, k->x.step->run_turns)));
    For f = em_for(e, first, em_bin(e, "llvm.intr.smin", end, n), apart, 0, NULL);
    kernel_enter(k);
    V from = em_arg(&f.scope, 0), to = em_bin(e, "llvm.intr.smin", em_bin(e, "llvm.add", from, run), n);
    For g = em_for(e, from, to, em_i64(e, 1), 0, NULL);
    kernel_enter(k);
    kernel_bind(k, k->x.step->run_loop, em_arg(&g.scope, 0));
    kernel_stores(k);
    kernel_leave(k);
    em_for_end(e, &g, NULL, NULL);
    kernel_leave(k);
    em_for_end(e, &f, NULL, NULL);
}
/* A block has run_turns times its threads' runs: neighbouring threads have neighbouring ones. */
static void bind_run(Kernel *k) {
    Emit *e = k->e;
    const Step *s = k->x.step;
    V item = kernel_index(k, ix_atom(k->x.ix, s->grid.loops[s->grid.nloops - 1])), n = em_i64(e, s->grid.threads);
    if (s->run_turns == 1) return;
    V block = em_bin(e, "llvm.udiv", item, n), more = em_i64(e, (int64_t)s->grid.threads * (s->run_turns - 1));
    kernel_bind(k, s->runs, em_bin(e, "llvm.add", item, em_bin(e, "llvm.mul", block, more)));
}
static void runs(Kernel *k) {
    Emit *e = k->e;
    Step *s = k->x.step;
    Dim n = loop_extent(k->x.ix, s->run_loop),
        all = (Dim)s->run * (s->run_turns > 1 ? s->run_turns * s->grid.threads : 1);
    bind_run(k);
    if (dim_mod(k->x.plan->cx->types, n, all) == 0) {
        whole_runs(k);
        return;
    }
    int64_t last = (int64_t)s->run * ((s->run_turns - 1) * s->grid.threads + 1);
    V run = em_i64(e, s->run), first = em_bin(e, "llvm.mul", kernel_index(k, ix_atom(k->x.ix, s->runs)), run);
    uint32_t least = k->least;
    If f = em_if(e, em_cmpi(e, "sle", em_bin(e, "llvm.add", first, em_i64(e, last)), kernel_dim(k, n)));
    kernel_enter(k);
    k->least = k->x.depth;
    whole_runs(k);
    k->least = least;
    kernel_leave(k);
    em_else(e, &f, 0, NULL);
    kernel_enter(k);
    single_elements(k, first, kernel_dim(k, n));
    kernel_leave(k);
    em_if_end(e, &f, NULL, NULL);
}

static void whole_turns(Kernel *k) {
    Step *s = k->x.step;
    Run r = run_of(k, (uint32_t)loop_extent(k->x.ix, s->unrolled));
    assert(!s->reduces && s->levels == 1);
    k->x.level = 0, k->rows = false;
    for (; r.i < r.of; r.i++) kernel_substituted(k, s->unrolled, ix_dim(k->x.ix, r.i), evaluate, &r);
    kernel_store_all(k, r.all, r.n * r.of);
}

static void point(Kernel *k) { (k->x.step->run ? runs : stages)(k); }
static void all_stages(Kernel *k, void *user) { point(k); }
/* The stages: once for each iteration of the unrolled loop, each row of a tile, each iteration done at once. */
static void body(Kernel *k) {
    Step *s = k->x.step;
    if (k->tile)
        for (k->tile_at = 0; k->tile_at < k->tile; k->tile_at++)
            kernel_substituted(k, s->tile, ix_add(k->x.ix, ix_atom(k->x.ix, s->tile), ix_dim(k->x.ix, k->tile_at)),
                               all_stages, NULL);
    else if (s->interleaved)
        whole_turns(k);
    else if (s->unrolled)
        for (Dim i = 0; i < loop_extent(k->x.ix, s->unrolled); i++)
            kernel_substituted(k, s->unrolled, ix_dim(k->x.ix, i), all_stages, NULL);
    else if (k->jam)
        for (uint32_t i = 0; i < k->jam; i++)
            kernel_substituted(k, s->jam, ix_add(k->x.ix, ix_atom(k->x.ix, k->first), ix_dim(k->x.ix, i)), all_stages,
                               NULL);
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
    if (k->jam && loop == k->x.step->jam) kernel_bind(k, k->first, kernel_index(k, ix_atom(k->x.ix, loop)));
    bool main = !k->x.step->jam || k->jam;
    (loop == k->x.step->edge_loop && main ? nest_at_edges : nest_rest)(k, n);
}
/* `width` iterations at a time, with *now set to that, and the remainder one by one. */
static void nest_in_blocks(Kernel *k, Nesting n, V lo, V hi, uint32_t width, uint32_t *now) {
    V rest = em_bin(k->e, "llvm.urem", em_bin(k->e, "llvm.sub", hi, lo), em_i64(k->e, width));
    V mid = em_bin(k->e, "llvm.sub", hi, rest);
    Atom loop = n.loops[0];
    *now = width;
    counted(k, &(Count){loop, lo, mid, width, false}, 0, NULL, nest_next, &n);
    *now = 0;
    counted(k, &(Count){loop, mid, hi, 1, false}, 0, NULL, nest_next, &n);
}
void kernel_nest(Kernel *k, Nesting n, V lo, V hi) {
    Atom loop = n.loops[0];
    if (loop == k->x.step->tile) {
        nest_in_blocks(k, n, lo, hi, k->x.step->rows, &k->tile);
        return;
    }
    if (loop == k->x.step->jam) {
        k->first = atom_loop(k->x.ix, dim_sub(k->x.plan->cx->types, loop_extent(k->x.ix, loop), k->x.step->turns - 1));
        nest_in_blocks(k, n, lo, hi, k->x.step->turns, &k->jam);
        return;
    }
    if (loop != k->lane) {
        counted(k, &(Count){loop, lo, hi, 1, false}, 0, NULL, nest_next, &n);
        return;
    }
    Widths w = k->x.step->widths;
    V mid = main_end(k, lo, hi, &w);
    if (w.main) counted(k, &(Count){loop, lo, mid, w.main, false}, 0, NULL, nest_next, &n);
    if (w.tail) counted(k, &(Count){loop, mid, hi, w.tail, true}, 0, NULL, nest_next, &n);
}
void kernel_blocks(Kernel *k, Atom loop, uint32_t block, V *lo, V *hi) {
    Emit *e = k->e;
    V n = kernel_dim(k, loop_extent(k->x.ix, loop)), b = em_i64(e, block);
    *lo = em_bin(e, "llvm.mul", *lo, b);
    *hi = em_bin(e, "llvm.intr.smin", em_bin(e, "llvm.mul", *hi, b), n);
}
/* ---- parts of the outermost loop leave their accumulators in s->parts, one word each, and kernel_combine combines
   them, on a CPU in the order of the parts, whichever threads computed them. */
static void write_part(Kernel *k, Accs *accs, V part, V item, V length) {
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
static void write_parts(Kernel *k, V lo, V hi) {
    Emit *e = k->e;
    Accs accs;
    V length = em_i64(e, k->x.step->block);
    collect(k, &accs);
    For f = em_for(e, lo, hi, em_i64(e, 1), 0, NULL);
    kernel_enter(k);
    write_part(k, &accs, em_arg(&f.scope, 0), em_arg(&f.scope, 0), length);
    kernel_leave(k);
    em_for_end(e, &f, NULL, NULL);
}
/* Which parts a thread combines, and where they are: those of one sum are `apart` apart, the first is number `item`;
   NULL: they are all that there is. */
typedef struct {
    V first, step, apart, item;
} Share;
static void combine_share(Kernel *k, Nest *n, const Share *t, V *acc) {
    Emit *e = k->e;
    const Accs *accs = n->accs;
    V parts = kernel_buffer(k, k->x.step->parts), next[2 * MAX_ACCS] = {{NULL}}, sums[MAX_CARRIED] = {{NULL}};
    For f = em_for(e, t->first, kernel_dim(k, step_parts(k->x.plan, k->x.step)), t->step, n->carried, acc);
    V at = em_arg(&f.scope, 0);
    if (t->apart.ptr) at = em_bin(e, "llvm.add", em_bin(e, "llvm.mul", at, t->apart), t->item);
    V word = em_bin(e, "llvm.mul", at, em_i64(e, accs->nv));
    for (uint32_t i = 0; i < accs->nv; i++) {
        V p = em_gep(e, parts, em_bin(e, "llvm.add", word, em_i64(e, i)), e->i64);
        next[i] = em_load(e, mlirValueGetType(acc[i]), p, 8);
    }
    for (uint32_t i = 0; i < n->carried; i++) sums[i] = em_arg(&f.scope, i + 1);
    merge(e, accs, sums, next);
    widened(n, sums, fold);
    em_for_end(e, &f, sums, acc);
    widened(n, acc, narrow);
}
static void combine_parts(Kernel *k, const Share *t) {
    Step *s = k->x.step;
    Accs accs;
    V acc[MAX_CARRIED] = {{NULL}};
    k->lane = s->lane;
    collect(k, &accs);
    initial(k, &accs, 1, acc);
    Nest n = {.k = k, .accs = &accs, .total = accs.nv};
    add_wide_forms(&n, acc);
    combine_share(k, &n, t, acc);
    if (k->block.together) threads_merge(k, accs.nv, acc, merge_threads, &accs);
    k->rows = true;
    for (k->x.level = 0; k->x.level < s->levels; k->x.level++) {
        if (k->x.level == 1) finish(k, &accs, acc);
        If one = by_one_thread(k);
        kernel_stores(k);
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

static void body_inside(Kernel *k, void *user) { body(k); }

void kernel_loops(Kernel *k, V lo, V hi) {
    Step *s = k->x.step;
    k->lane = s->lane;
    if (s->parts) {
        write_parts(k, lo, hi);
        return;
    }
    if (!s->nkept) {
        body(k);
        return;
    }
    if (s->block > 1) kernel_blocks(k, s->kept[0], s->block, &lo, &hi);
    kernel_nest(k, (Nesting){s->kept, s->nkept, body_inside, NULL}, lo, hi);
}
void device_loops(Kernel *k, V item, V unused) {
    const Division *d = &k->x.step->division;
    Accs accs;
    if (!k->x.step->parts) {
        body(k);
        return;
    }
    collect(k, &accs);
    write_part(k, &accs, kernel_index(k, ix_atom(k->x.ix, d->loop)), item, kernel_dim(k, d->length));
}
