#include "attention.h"
#include "../../passes/eval.h"
#include "../cost.h"
#include "../eval/record.h"
#include "sums.h"
#include <math.h>

/* ---- finding: from the second product back to the first */

/* At most: equations between the products; candidates for the first. */
enum { MOST_INNER = 96, MOST_SCORES = 4 };
/* The equation of this body that computes v; it is not planned yet. */
static const Eqn *maker(Plan *p, Val v) {
    if (val_info(p->cx, v)->lit) return NULL;
    const Info *info = plan_info(p, v);
    return info->class == VAL_UNSEEN && !info->attention ? info->e : NULL;
}
static bool is_view(const Eqn *e) { return e && prim_is(e->prim, VIEW) && prim_lower[e->prim] == LOWER_INDEX; }
static bool floats(Plan *p, const Eqn *e) {
    return dtype_info[val_array(p->cx, e->in.at[0])->dtype].kind == DK_FLOAT &&
           dtype_info[val_array(p->cx, e->out.at[0])->dtype].kind == DK_FLOAT;
}
/* The value of which v is a view, or, if `converted`, a conversion. */
static Val under(Plan *p, Val v, bool converted) {
    for (uint32_t n = 0; n < MOST_INNER; n++) {
        const Eqn *e = maker(p, v);
        bool conversion = converted && e && e->prim == P_convert_element_type && floats(p, e);
        if (!e || (!is_view(e) && !conversion)) break;
        v = e->in.at[0];
    }
    return v;
}
static const Eqn *made_by(Plan *p, Val v, Prim prim) {
    const Eqn *e = maker(p, v);
    return e && e->prim == prim ? e : NULL;
}
/* A walk from a value back through views and elementwise equations. */
typedef struct {
    Plan *p;
    Prim wanted;
    const Eqn *found[MOST_SCORES]; /* of that primitive */
    uint32_t nfound, steps;
} Origins;
static void trace(Origins *s, Val v) {
    const Eqn *e = maker(s->p, v);
    if (!e || s->steps++ > MOST_INNER) return;
    if (e->prim == s->wanted) {
        for (uint32_t i = 0; i < s->nfound; i++)
            if (s->found[i] == e) return;
        if (s->nfound < MOST_SCORES) s->found[s->nfound++] = e;
    } else if (is_view(e) || prim_elementwise(e->prim)) {
        each(Val, x, e->in) trace(s, *x);
    }
}
/* The only reduction of which v is made; NULL: there is not exactly one, or it is of several axes. */
static const Eqn *reduction(Plan *p, Val v, Prim prim) {
    Origins s = {.p = p, .wanted = prim};
    trace(&s, v);
    return s.nfound == 1 && param_ints(s.found[0], K_axes).n == 1 ? s.found[0] : NULL;
}
/* exp of a difference, divided by something, or multiplied by it. */
static bool find_weight(Plan *p, Attention *a) {
    a->share = maker(p, under(p, a->product->in.at[a->side], true));
    if (!a->share || (a->share->prim != P_div && a->share->prim != P_mul)) return false;
    a->weighted = a->share->prim == P_mul && !made_by(p, under(p, a->share->in.at[0], true), P_exp);
    a->weight = made_by(p, under(p, a->share->in.at[a->weighted], true), P_exp);
    a->difference = a->weight ? made_by(p, under(p, a->weight->in.at[0], false), P_sub) : NULL;
    return a->difference;
}
static bool find_softmax(Plan *p, Attention *a) {
    if (!find_weight(p, a)) return false;
    a->sum = reduction(p, attention_by(a), P_reduce_sum);
    a->max = reduction(p, a->difference->in.at[1], P_reduce_max);
    if (!a->sum || !a->max) return false;
    a->score = under(p, a->max->in.at[0], false);
    return a->score == under(p, a->difference->in.at[0], false) &&
           a->weight->out.at[0] == under(p, a->sum->in.at[0], true);
}
/* The largest of the products of numbers with a positive one is that of the largest number. So scores need not be
   multiplied one by one if `scale` can be a part of another factor: the rounding is missed, which for f32 is less than
   what the sums lack. */
static double find_scale(Plan *p, const Attention *a) {
    static const double least = 1.0 / (1ll << 32);
    Val sum = a->scores->out.at[0];
    const Eqn *e = maker(p, under(p, a->score, false));
    if (e == a->scores) return 1;
    if (!e || (e->prim != P_mul && e->prim != P_div)) return 0;
    for (uint32_t i = 0; i < (e->prim == P_mul ? 2 : 1); i++) {
        Scalar by = {0};
        int exponent;
        if (under(p, e->in.at[i], false) != sum || !scalar_of(p->cx, e->in.at[!i], &by)) continue;
        double scale = e->prim == P_mul ? scalar_float(by) : 1 / scalar_float(by);
        bool exact = val_array(p->cx, sum)->dtype == DT_f32 || frexp(scale, &exponent) == 0.5;
        return exact && scale >= least && scale <= 1 ? scale : 0;
    }
    return 0;
}
/* A score that is one of two by a condition, such as that of a causal mask. */
static void find_hidden(Plan *p, Attention *a) {
    const Eqn *e = maker(p, under(p, a->score, false));
    if (!e || e->prim != P_select_n || e->in.n != 3) return;
    for (uint32_t i = 1; i <= 2; i++) {
        Scalar s = {0};
        if (!scalar_of(p->cx, under(p, e->in.at[i], true), &s) || dtype_info[s.dtype].kind != DK_FLOAT) continue;
        a->hidden = e, a->number = i, a->hidden_score = scalar_float(s);
    }
}

/* ---- what is between the products: all that depends on the scores; nothing else uses it */
typedef struct {
    Plan *p;
    const Attention *a;
    struct {
        Val v;
        bool inner;
        uint32_t uses; /* by inner values and the second product */
    } at[MOST_INNER];
    uint32_t n;
    bool ok;
} Inner;
static uint32_t visit(Inner *w, Val v) {
    for (uint32_t i = 0; i < w->n; i++)
        if (w->at[i].v == v) return i;
    if (w->n == MOST_INNER) return w->ok = false, 0;
    uint32_t own = w->n++;
    const Eqn *e = maker(w->p, v);
    bool through = e && (is_view(e) || prim_elementwise(e->prim) || e == w->a->max || e == w->a->sum), any = false;
    w->at[own].v = v, w->at[own].inner = false, w->at[own].uses = 0;
    for (uint32_t i = 0; through && w->ok && i < e->in.n; i++) {
        uint32_t x = visit(w, e->in.at[i]);
        w->at[x].uses++;
        any |= w->at[x].inner;
    }
    w->at[own].inner = any || e == w->a->scores;
    return own;
}
/* Uses by outer equations that were visited count too: then an outer value would depend on the scores. */
static bool used_alone(Inner *w) {
    Val v = w->a->product->in.at[w->a->side];
    uint32_t last = visit(w, v);
    w->at[last].uses++;
    for (uint32_t i = 0; i < w->n && w->ok; i++)
        w->ok = !w->at[i].inner || w->at[i].uses == plan_info(w->p, w->at[i].v)->uses;
    return w->ok && w->at[last].inner;
}

/* ---- indices */
typedef struct {
    Plan *p;
    Val v;
    Ix *at;
    uint32_t rank, times;
    bool same;
} Found;
static void found(void *user, Val v, const Ix *index, Ix address) {
    Found *f = user;
    if (v != f->v) return;
    if (!f->times++)
        memcpy(f->at, index, f->rank * sizeof *index);
    else
        f->same &= !f->rank || !memcmp(f->at, index, f->rank * sizeof *index);
}
/* At which index v is evaluated where `from` is; false: at none or several. */
static bool within(Plan *p, Val from, const Ix *at, Val v, Ix *out) {
    Info *info = plan_info(p, v);
    ValClass was = info->class;
    Found f = {.p = p, .v = v, .at = out, .rank = val_array(p->cx, v)->rank, .same = true};
    info->class = VAL_MEMBER;
    plan_reads(p, from, at, found, &f);
    info->class = was;
    return f.times && f.same;
}
/* The index of a reduction's operand, with the keys along the reduced axis; false: that has others too. */
static bool along(Plan *p, const Eqn *reduce, const Ix *row, Atom key, Ix *out) {
    const ArrayType *t = val_array(p->cx, reduce->in.at[0]);
    int64_t axis = param_ints(reduce, K_axes).at[0];
    for (uint32_t d = 0; d < t->rank; d++) out[d] = (int64_t)d == axis ? ix_atom(p->ix, key) : *row++;
    return t->dims[axis] == loop_extent(p->ix, key);
}
static bool same_index(Plan *p, Val v, const Ix *x, const Ix *y) {
    uint32_t rank = val_array(p->cx, v)->rank;
    return !rank || !memcmp(x, y, rank * sizeof *x);
}
bool attention_index(Plan *p, const Attention *a, const Ix *share, AttentionIndex *x) {
    Ix at[MAX_RANK], other[MAX_RANK];
    Val weight = a->weight->out.at[0];
    if (!within(p, a->product->in.at[a->side], share, a->share->out.at[0], at)) return false;
    eval_operand(p, a->share, attention_by(a), at, x->by);
    eval_operand(p, a->share, a->share->in.at[a->weighted], at, other);
    if (!within(p, a->share->in.at[a->weighted], other, weight, x->weight)) return false;
    if (!within(p, attention_by(a), x->by, a->sum->out.at[0], x->sum)) return false;
    if (!along(p, a->sum, x->sum, a->key, x->summed)) return false;
    if (!within(p, a->sum->in.at[0], x->summed, weight, other) || !same_index(p, weight, x->weight, other))
        return false;
    if (!within(p, a->weight->in.at[0], x->weight, a->difference->out.at[0], x->difference)) return false;
    eval_operand(p, a->difference, a->difference->in.at[1], x->difference, x->shift);
    eval_operand(p, a->difference, a->difference->in.at[0], x->difference, other);
    if (!within(p, a->difference->in.at[0], other, a->score, x->score)) return false;
    if (!within(p, a->difference->in.at[1], x->shift, a->max->out.at[0], x->max)) return false;
    if (!along(p, a->max, x->max, a->key, at)) return false;
    if (!within(p, a->max->in.at[0], at, a->score, other) || !same_index(p, a->score, x->score, other)) return false;
    if (a->hidden) {
        if (!within(p, a->score, x->score, a->hidden->out.at[0], other)) return false;
        eval_operand(p, a->hidden, a->hidden->in.at[0], other, x->hidden);
    }
    return within(p, a->score, x->score, a->scores->out.at[0], x->scores);
}

/* ---- does each value depend on what it should? */
typedef struct {
    const Attention *a;
    Plan *p;
    bool key, scores, max, sum;
} Depends;
static void depends(void *user, Val v, const Ix *index, Ix address) {
    Depends *d = user;
    const Indices *x = d->p->ix;
    d->key |= !v && ix_uses(x, address, d->a->key);
    for (uint32_t i = 0; v && index && i < val_array(d->p->cx, v)->rank; i++) d->key |= ix_uses(x, index[i], d->a->key);
    d->scores |= v == d->a->scores->out.at[0];
    d->max |= v == d->a->max->out.at[0];
    d->sum |= v == d->a->sum->out.at[0];
}
static Depends reads_of(Plan *p, const Attention *a, Val v, const Ix *at) {
    Depends d = {.a = a, .p = p};
    plan_reads(p, v, at, depends, &d);
    return d;
}
static bool depend_well(Plan *p, const Attention *a, const AttentionIndex *x) {
    Depends of[] = {reads_of(p, a, a->score, x->score), reads_of(p, a, a->difference->in.at[1], x->shift),
                    reads_of(p, a, attention_by(a), x->by)};
    for (uint32_t i = 0; i < 3; i++)
        if (of[i].scores != (i == 0) || of[i].max != (i == 1) || of[i].sum != (i == 2) || (i && of[i].key))
            return false;
    return true;
}
static bool uses_any(Plan *p, const Ix *index, uint32_t rank, const Atom *loops, uint32_t n) {
    for (uint32_t i = 0; i < rank * n; i++)
        if (loops[i % n] && ix_uses(p->ix, index[i / n], loops[i % n])) return true;
    return false;
}
/* The loops over the axes of the shares: those that the second product sums over or has in its batches, and rows. */
typedef struct {
    Ix at[MAX_RANK];
    Atom rows[MAX_RANK];
    uint32_t nrows;
    Dim all_rows, batches, keys;
} Shares;
static bool open_shares(Plan *p, Attention *a, Shares *s) {
    const ArrayType *t = val_array(p->cx, a->product->in.at[a->side]);
    const Value *v = &param_find(a->product, K_dimension_numbers)->value;
    Ints terms = v->list.at[a->side].ints, batch = v->list.at[2 + a->side].ints;
    s->all_rows = s->batches = 1;
    for (uint32_t d = 0; d < t->rank; d++) {
        Atom loop = t->dims[d] == 1 ? 0 : atom_loop(p->ix, t->dims[d]);
        bool term = ints_have(terms, d);
        s->at[d] = loop ? ix_atom(p->ix, loop) : 0;
        if (term) a->key = loop, s->keys = t->dims[d];
        if (term) continue;
        Dim *of = ints_have(batch, d) ? &s->batches : &s->all_rows;
        *of = dim_mul(p->cx->types, *of, t->dims[d]);
        if (loop && of == &s->all_rows) s->rows[s->nrows++] = loop;
    }
    return terms.n == 1 && a->key;
}
/* Are there enough blocks, or so few keys that three kernels take no less time? */
static bool worth(Plan *p, const Shares *s) {
    Dim blocks = dim_mul(p->cx->types, s->batches, dot_blocks(p, s->all_rows, MMA_SHORT));
    if (dot_at_most(s->all_rows, ATTENTION_FEW - 1)) return false;
    return dot_at_most(s->keys, ATTENTION_SHORT) || !dot_at_most(blocks, ATTENTION_BLOCKS - 1);
}
/* Which operand of the first product has the rows? It does not move with the keys, and the other one does not with
   rows. */
static bool find_rows(Plan *p, Attention *a, const Shares *s, const AttentionIndex *x) {
    for (uint32_t swapped = 0; swapped < 2; swapped++) {
        a->dot->swapped = swapped;
        Ix at[2][MAX_RANK];
        uint32_t rank[2];
        for (uint32_t side = 0; side < 2; side++) {
            dot_device_index_at(p, a->dot, side, x->scores, at[side]);
            rank[side] = val_array(p->cx, dot_device_operand(a->dot, side))->rank;
        }
        if (!uses_any(p, at[0], rank[0], &a->key, 1) && !uses_any(p, at[1], rank[1], s->rows, s->nrows)) return true;
    }
    return false;
}

/* ---- the tile of a block */
enum { HALF_BYTES = 2 }; /* of what tensor cores multiply with sums in f32 */
static int64_t padded(int64_t n, int64_t to) { return (n + to - 1) / to * to; }
/* Bytes that an operand of so many rows or columns and so many terms has in shared memory. */
static int64_t staged(bool mma, int64_t length, int64_t terms) {
    return mma ? length * padded(terms, MMA_BYTES / HALF_BYTES) * HALF_BYTES
               : (length + TILE_PAD) * padded(terms, TILE_TERMS) * TILE_WORD;
}
typedef struct {
    bool mma[2];         /* are the first and the second product done by tensor cores? */
    int64_t terms;       /* of a score */
    int64_t columns;     /* of the result, a power of two */
    uint32_t rows, keys; /* of the tile */
} Tile;
static int64_t bytes_of(const Tile *t) {
    int64_t first = staged(t->mma[0], t->rows, t->terms) + staged(t->mma[0], t->keys, t->terms);
    int64_t second = staged(t->mma[1], t->rows, t->keys) + staged(t->mma[1], t->columns, t->keys);
    int64_t scores = (int64_t)t->rows * (t->keys + SLAB_PAD) * TILE_WORD;
    int64_t result = (int64_t)t->rows * (t->columns + SLAB_PAD) * TILE_WORD;
    int64_t all = first + second + scores + (int64_t)t->rows * TILE_WORD;
    return all > result ? all : result;
}
static bool few_blocks(Plan *p, Dim batches, Dim rows, Dim tile) {
    return dot_at_most(dim_mul(p->cx->types, batches, dot_blocks(p, rows, tile)), ENOUGH_TILES - 1);
}
/* The largest tile that fits and leaves enough blocks; false: none fits. */
static bool choose_tile(Plan *p, Tile *t, Dim batches, Dim rows) {
    static const struct {
        uint32_t rows, keys;
    } tiles[] = {{64, 64}, {64, 32}, {32, 32}};
    if (t->columns > (t->mma[1] ? ATTENTION_COLUMNS : ATTENTION_COLUMNS / 2)) return false;
    for (uint32_t i = 0; i < sizeof tiles / sizeof *tiles; i++) {
        t->rows = tiles[i].rows, t->keys = tiles[i].keys;
        while (t->rows > MMA_SHORT && (dot_at_most(rows, t->rows / 2) || few_blocks(p, batches, rows, t->rows)))
            t->rows /= 2;
        if (bytes_of(t) <= ATTENTION_BYTES) return true;
    }
    return false;
}
static bool by_tensor_cores(Dtype x, Dtype y) { return x == y && (x == DT_bf16 || x == DT_f16); }
static bool same_types(Plan *p, const Eqn *e) {
    return by_tensor_cores(val_array(p->cx, e->in.at[0])->dtype, val_array(p->cx, e->in.at[1])->dtype);
}
static bool in_f32(Plan *p, const Eqn *e) {
    Dtype x = val_array(p->cx, e->in.at[0])->dtype, y = val_array(p->cx, e->in.at[1])->dtype;
    return dot_accumulator(x, y, val_array(p->cx, e->out.at[0])->dtype) == DT_f32;
}
static Dim extent_of(Plan *p, const Eqn *e, uint32_t side, bool free) {
    const ArrayType *t = val_array(p->cx, e->in.at[side]);
    const Value *v = &param_find(e, K_dimension_numbers)->value;
    Dim n = 1;
    for (uint32_t d = 0; d < t->rank; d++) {
        bool term = ints_have(v->list.at[side].ints, d), batch = ints_have(v->list.at[2 + side].ints, d);
        if (free ? !term && !batch : term) n = dim_mul(p->cx->types, n, t->dims[d]);
    }
    return n;
}
/* The size of a tile for both products; false: it is not known, or too large. */
static bool tile_for(Plan *p, const Attention *a, const bool mma[2], Dim batches, Dim rows, Tile *t) {
    Dim terms = extent_of(p, a->scores, 0, false), columns = extent_of(p, a->product, !a->side, true);
    if (!dim_is_const(terms) || !dim_is_const(columns) || terms < 1 || columns < 1 || columns > ATTENTION_COLUMNS)
        return false;
    *t = (Tile){.mma = {mma[0], mma[1]}, .terms = terms, .columns = MMA_SHORT};
    while (t->columns < columns) t->columns *= 2;
    return choose_tile(p, t, batches, rows);
}
static bool float_word(Plan *p, Val v) {
    Dtype d = val_array(p->cx, v)->dtype;
    return d == DT_f32 || d == DT_bf16 || d == DT_f16;
}
static bool suits(Plan *p, const Attention *a, const Shares *s) {
    Tile t;
    bool mma[] = {same_types(p, a->scores), same_types(p, a->product)};
    Dtype sum = val_array(p->cx, a->sum->in.at[0])->dtype;
    return in_f32(p, a->scores) && in_f32(p, a->product) && float_word(p, a->score) && sum == DT_f32 &&
           float_word(p, a->share->out.at[0]) && tile_for(p, a, mma, s->batches, s->all_rows, &t);
}

/* ---- all conditions */
static void mark(Plan *p, const Inner *w, Attention *a) {
    for (uint32_t i = 0; i < w->n; i++) {
        if (!w->at[i].inner) continue;
        Info *info = plan_info(p, w->at[i].v);
        bool kept = info->e == a->scores || info->e == a->max || info->e == a->sum;
        info->class = !a->dot ? VAL_UNSEEN : kept ? VAL_MEMBER : VAL_VIRTUAL;
        info->attention = a->dot ? a : NULL;
    }
}
static bool fits(Plan *p, Attention *a) {
    Inner *w = arena_new(p->arena, Inner, 1);
    Shares s = {.nrows = 0};
    AttentionIndex x;
    *w = (Inner){.p = p, .a = a, .ok = true};
    if (!used_alone(w) || !open_shares(p, a, &s) || !worth(p, &s) || !suits(p, a, &s)) return false;
    DeviceDot *d = a->dot = arena_new(p->arena, DeviceDot, 1);
    a->scale = find_scale(p, a);
    find_hidden(p, a);
    d->e = a->scores;
    dot_device_terms(p, d);
    mark(p, w, a);
    if (attention_index(p, a, s.at, &x) && depend_well(p, a, &x) && find_rows(p, a, &s, &x)) return true;
    a->dot = NULL;
    mark(p, w, a);
    return false;
}
static bool find(Plan *p, const Eqn *e, uint32_t side) {
    Attention a = {.product = e, .side = side};
    if (!find_softmax(p, &a)) return false;
    Origins s = {.p = p, .wanted = P_dot_general};
    trace(&s, a.score);
    for (uint32_t i = 0; i < s.nfound; i++) {
        Attention *own = arena_new(p->arena, Attention, 1);
        *own = a, own->scores = s.found[i];
        if (fits(p, own)) return true;
    }
    return false;
}
void attention_find(Plan *p, const Jaxpr *j) {
    each(Eqn, e, j->eqns)
        for (uint32_t i = 0; i < e->out.n; i++) plan_info(p, e->out.at[i])->e = e;
    each(Eqn, e, j->eqns)
        if (e->prim == P_dot_general && !find(p, e, 0)) find(p, e, 1);
}

/* ---- planning */
Attention *attention_of(Plan *p, const Eqn *e) {
    for (uint32_t i = 0; i < 2; i++) {
        Attention *a = val_info(p->cx, e->in.at[i])->lit ? NULL : plan_info(p, e->in.at[i])->attention;
        if (a && a->product == e) return a;
    }
    return NULL;
}
static void store_computed(Plan *p, Body *b, Step *s, Val v, bool often) {
    step_evaluates(p, b, s, v);
    Val x = dot_computed(p, v, &often);
    if (!x || !often) return;
    plan_cut(p, b, x);
    plan_stored(p, b, x);
}
void attention_plan(Plan *p, Body *b, Step *s) {
    DeviceDot *d = s->dot->device;
    uint32_t side = d->swapped;
    bool often = !dot_at_most(extent_of(p, d->e, side, true), TILE_OFTEN);
    store_computed(p, b, s, dot_device_operand(d, 1), often);
    store_computed(p, b, s, dot_device_operand(d->attention->dot, 1), often);
    store_computed(p, b, s, dot_device_operand(d->attention->dot, 0), false);
    d->summed[0] = d->attention->key;
}
void attention_own(Plan *p, const Step *s) {
    const Attention *a = s->dot->device->attention;
    const Eqn *own[] = {a->scores, a->max, a->sum};
    for (uint32_t i = 0; i < sizeof own / sizeof *own; i++) plan_info(p, own[i]->out.at[0])->step = s->number;
}
void attention_reads(Plan *p, const Attention *a, Seen *seen, void *user) {
    each(Val, v, a->scores->in) {
        const ArrayType *t = val_array(p->cx, *v);
        Ix at[MAX_RANK];
        for (uint32_t d = 0; d < t->rank; d++) at[d] = ix_atom(p->ix, atom_loop(p->ix, t->dims[d]));
        plan_reads(p, *v, at, seen, user);
    }
}

/* ---- once the loops are final */
void attention_at(Plan *p, const Step *s, AttentionIndex *x) {
    Ix share[MAX_RANK];
    dot_device_index(p, s, 0, share);
    bool known = attention_index(p, s->dot->device->attention, share, x);
    assert(known);
}
void attention_operands(Plan *p, const Step *s, Ix at[2][MAX_RANK]) {
    AttentionIndex x;
    attention_at(p, s, &x);
    for (uint32_t side = 0; side < 2; side++)
        dot_device_index_at(p, s->dot->device->attention->dot, side, x.scores, at[side]);
}
static void set_tile(DeviceDot *d, uint32_t rows, uint32_t columns, int64_t terms) {
    d->tile.rows = rows, d->tile.columns = columns;
    d->tile.terms = d->form == DOT_MMA ? MMA_BYTES / dtype_bytes(d->as) : TILE_TERMS;
    d->tile.turns = (uint32_t)((terms + d->tile.terms - 1) / d->tile.terms);
    d->parts = 1;
}
/* ---- scores in registers */
/* Bytes in shared memory: the rows of a tile, two tiles of keys and of values; in the end the result. */
static int64_t held_bytes(const Tile *t) {
    int64_t rows = staged(true, t->rows, t->terms), keys = staged(true, t->keys, t->terms);
    int64_t all = rows + HELD_PLACES * (keys + staged(true, t->columns, t->keys));
    int64_t result = (int64_t)t->rows * (t->columns + SLAB_PAD) * TILE_WORD;
    return all > result ? all : result;
}
/* With as many keys as fit; false: none. Scores that are evaluated one by one need registers. */
static bool hold_tile(const Attention *a, const DeviceDot *d, Tile *t) {
    if (!t->mma[0] || !t->mma[1] || dot_at_most(d->loops[DOT_ROWS].extent, HELD_LEAST)) return false;
    Tile held = *t;
    held.rows = HELD_ROWS, held.keys = HELD_KEYS;
    if (a->scale == 0 || dot_at_most(d->k, HELD_KEYS / 2) || held_bytes(&held) > ATTENTION_BYTES) held.keys /= 2;
    if (held_bytes(&held) > ATTENTION_BYTES) return false;
    *t = held;
    return true;
}
/* Terms of a turn: a line of shared memory of 128 bytes, if those of a score fill such lines. */
static void hold_scores(Plan *p, DeviceDot *d, int64_t terms) {
    d->held = true, d->warpgroups = p->target->device->warpgroups;
    if (padded(terms, 2 * d->tile.terms) > padded(terms, d->tile.terms)) return;
    d->tile.terms *= 2, d->tile.turns /= 2;
}
void attention_schedule(Plan *p, Step *s) {
    DeviceDot *d = s->dot->device;
    Attention *a = d->attention;
    a->dot->loops[DOT_ROWS] = d->loops[DOT_ROWS], a->dot->loops[DOT_BATCHES] = d->loops[DOT_BATCHES];
    a->dot->loops[DOT_COLUMNS] = (DotLoops){.at = {a->key}, .n = 1, .extent = d->k};
    Ix at[2][MAX_RANK];
    attention_operands(p, s, at);
    dot_device_form(p, s, a->dot, at);
    for (uint32_t side = 0; side < 2; side++) dot_device_index(p, s, side, at[side]);
    dot_device_form(p, s, d, at);
    Tile t;
    bool mma[] = {a->dot->form == DOT_MMA, d->form == DOT_MMA};
    bool fits = tile_for(p, a, mma, d->loops[DOT_BATCHES].extent, d->loops[DOT_ROWS].extent, &t);
    assert(fits);
    bool held = hold_tile(a, d, &t);
    set_tile(a->dot, t.rows, t.keys, t.terms);
    set_tile(d, t.rows, (uint32_t)t.columns, t.keys);
    d->blocks = t.columns > TILE_LONG ? 1 : TILE_BLOCKS;
    if (held) {
        hold_scores(p, a->dot, t.terms);
        hold_scores(p, d, t.keys);
    }
    d->side[0].along_terms = d->form == DOT_MMA, d->side[0].plain = false;
    a->block = dot_device_block(d->k) / a->dot->tile.columns;
    dot_device_run(p, s, d);
}
