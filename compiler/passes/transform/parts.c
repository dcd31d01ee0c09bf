/* The sum of the contributions to a cotangent. Rules say what part of a value each belongs to, and all are put together
   when the last one is known: slices that lie beside each other are joined, so that those of a split become one
   concatenate; the others, if they are few or large, are padded with zeros, which costs no memory; small ones, and
   those at computed places, are added in place one after the other, so that reading an array n times by k elements
   costs n k operations, not n times the array. In a loop this holds for programs nested in it too: the sum that the
   loop carries goes through them. */
#include "tx.h"
#include <stdlib.h>

typedef enum { PART_WHOLE, PART_SLICE, PART_BLOCK, PART_SCATTERED } PartKind;
struct Part {
    PartKind kind;
    Val v;
    Dims start, limit; /* SLICE */
    Ints strides;      /* SLICE; n = 0: 1 */
    Vals starts;       /* BLOCK */
    Val indices;       /* SCATTERED */
    Places places;
};

static Acc *acc_of(Tx *tx, Val read) {
    while (read >= tx->accs.n) push(tx->cx->arena, &tx->accs, (Acc){0});
    return &tx->accs.at[read];
}
bool acc_empty(const Tx *tx, Val read) {
    return read >= tx->accs.n || (!tx->accs.at[read].n && !tx->accs.at[read].sum);
}
void acc_add(Tx *tx, Val read, Val ct) {
    if (ct) push(tx->cx->arena, acc_of(tx, read), ((Part){.kind = PART_WHOLE, .v = ct}));
}
void acc_begin(Tx *tx, Val read, Val sum) {
    assert(acc_empty(tx, read));
    acc_of(tx, read)->sum = sum;
}

/* ---- what rules add */
static void add_part(Transpose *t, uint32_t i, Part p) {
    assert(t->linear[i]);
    if (!p.v || t->b->failed) return;
    Ctx *cx = t->tx->cx;
    assert(p.kind != PART_WHOLE ||
           type_plain(cx->types, val_type(cx, p.v)) == type_plain(cx->types, val_type(cx, t->e->in.at[i])));
    Acc *acc = acc_of(t->tx, t->read->in.at[i]);
    if (!acc->cap) acc->at = arena_new(cx->arena, Part, 1), acc->cap = 1; /* most have only one */
    push(cx->arena, acc, p);
}
void ct_add(Transpose *t, uint32_t i, Val v) {
    add_part(t, i, (Part){.kind = PART_WHOLE, .v = b_as_declared(t->b, v, t->e->in.at[i])});
}
void ct_add_slice(Transpose *t, uint32_t i, Val v, const Dim *start, const Dim *limit, const int64_t *strides) {
    Arena *arena = t->tx->cx->arena;
    uint32_t n = ct_type(t, i)->rank;
    Part p = {.kind = PART_SLICE, .v = v, .start = {arena_copy(arena, start, n * sizeof *start), n}};
    p.limit = (Dims){arena_copy(arena, limit, n * sizeof *limit), n};
    p.strides = (Ints){arena_copy(arena, strides, n * sizeof *strides), strides ? n : 0};
    add_part(t, i, p);
}
void ct_add_at(Transpose *t, uint32_t i, Val v, const Val *starts) {
    uint32_t n = ct_type(t, i)->rank;
    Vals own = {arena_copy(t->tx->cx->arena, starts, n * sizeof *starts), n};
    add_part(t, i, n ? (Part){.kind = PART_BLOCK, .v = v, .starts = own} : (Part){.kind = PART_WHOLE, .v = v});
}
void ct_add_scattered(Transpose *t, uint32_t i, Val updates, Val indices, Places places) {
    add_part(t, i, (Part){.kind = PART_SCATTERED, .v = updates, .indices = indices, .places = places});
}
Val ct_take(Transpose *t, uint32_t i) {
    assert(t->linear[i]);
    Acc *acc = acc_of(t->tx, t->read->in.at[i]);
    Val sum = acc->sum;
    acc->sum = 0;
    return sum;
}
void ct_give(Transpose *t, uint32_t i, Val taken, Val sum) {
    sum = b_as_declared(t->b, sum, t->e->in.at[i]);
    acc_of(t->tx, t->read->in.at[i])->sum = sum;
    if (sum != taken) valmap_put(&t->tx->continues, sum, taken);
}
Val ct_result(Transpose *t, uint32_t k) { return t->ct[k] ? t->ct[k] : b_zeros_like(t->b, t->e->out.at[k]); }

/* ---- slices without strides that lie beside each other along an axis */
typedef struct {
    Val v;
    Dim *start, *limit;
    uint32_t order; /* of equal ones */
    uint32_t axis, rank;
    uint32_t layer; /* of those that overlap, each is in another one */
} Slice;
typedef struct {
    Slice *at;
    uint32_t n, cap;
} Slices;

static int compare_dims(Dim x, Dim y) { return (x > y) - (x < y); }
/* By their ranges along other axes, then by their beginning along theirs. */
static int compare_slices(const void *one, const void *other) {
    const Slice *x = one, *y = other;
    int c = 0;
    for (uint32_t d = 0; d < x->rank && !c; d++) {
        if (d == x->axis) continue;
        c = compare_dims(x->start[d], y->start[d]);
        if (!c) c = compare_dims(x->limit[d], y->limit[d]);
    }
    if (!c) c = compare_dims(x->start[x->axis], y->start[x->axis]);
    if (!c) c = compare_dims(x->limit[x->axis], y->limit[x->axis]);
    return c ? c : compare_dims(x->order, y->order);
}
static bool beside(const Slice *x, const Slice *y) {
    for (uint32_t d = 0; d < x->rank; d++)
        if (d != x->axis && (x->start[d] != y->start[d] || x->limit[d] != y->limit[d])) return false;
    return true;
}
static bool starts_before(Types *ts, const Slice *x, const Slice *y) {
    Dim a = x->start[x->axis], b = y->start[y->axis];
    return a != b && dim_at_most(ts, a, b, false) == 1;
}
/* Sorts a group along the axis where some extents are symbols: merges runs of ever more slices. Starts that cannot be
   compared keep their order. */
static void sort_symbolic(Builder *b, Slice *s, uint32_t n) {
    bool numbers = true;
    for (uint32_t i = 0; i < n; i++) numbers &= dim_is_const(s[i].start[s[i].axis]);
    if (numbers) return;
    Slice *merged = arena_new(b->cx->arena, Slice, n);
    for (size_t run = 1; run < n; run *= 2) {
        for (size_t low = 0; low < n; low += 2 * run) {
            size_t middle = low + run < n ? low + run : n, high = middle + run < n ? middle + run : n;
            for (size_t to = low, i = low, k = middle; to < high; to++) {
                bool second = i == middle || (k < high && starts_before(b_types(b), &s[k], &s[i]));
                merged[to] = s[second ? k++ : i++];
            }
        }
        memcpy(s, merged, n * sizeof *s);
    }
}
/* Equal ranges are summed; then each slice is put on the first layer where it overlaps nothing. Returns how many slices
   are left; `layers` gets the number of layers. */
static uint32_t lay(Builder *b, Slice *s, uint32_t n, uint32_t *layers) {
    Types *ts = b_types(b);
    Dim *end = arena_new(b->cx->arena, Dim, n);
    uint32_t left = 0, axis = s->axis;
    *layers = 0;
    for (uint32_t i = 0; i < n; i++) {
        Slice *last = left ? &s[left - 1] : NULL;
        if (last && last->start[axis] == s[i].start[axis] && last->limit[axis] == s[i].limit[axis]) {
            last->v = tx_sum(b, last->v, s[i].v);
            continue;
        }
        uint32_t layer = 0;
        while (layer < *layers && dim_at_most(ts, end[layer], s[i].start[axis], false) != 1) layer++;
        *layers += layer == *layers;
        end[layer] = s[i].limit[axis];
        s[left] = s[i];
        s[left++].layer = layer;
    }
    return left;
}
/* May zeros be put between the slices of a list? They must not be more than the elements. */
static bool few_gaps(const Slice *s, uint32_t n) {
    uint32_t axis = s->axis;
    Dim elements = 0, covered = s[n - 1].limit[axis] - s->start[axis];
    for (uint32_t i = 0; i < n; i++) {
        if (!dim_is_const(s[i].start[axis]) || !dim_is_const(s[i].limit[axis])) return false;
        elements += s[i].limit[axis] - s[i].start[axis];
    }
    return covered <= 2 * elements;
}
/* Slices of one layer, in order, with zeros between them, as one. */
static Slice joined(Builder *b, const Slice *s, uint32_t n) {
    Arena *arena = b->cx->arena;
    Types *ts = b_types(b);
    Slice all = s[0];
    Val *in = arena_new(arena, Val, 2 * (size_t)n);
    uint32_t k = 0, axis = s->axis;
    Dim dims[MAX_RANK];
    for (uint32_t i = 0; i < n && !b->failed; i++) {
        const ArrayType *t = b_type(b, s[i].v);
        if (i && s[i].start[axis] != s[i - 1].limit[axis]) {
            memcpy(dims, t->dims, t->rank * sizeof *dims);
            dims[axis] = dim_sub(ts, s[i].start[axis], s[i - 1].limit[axis]);
            in[k++] = b_full(b, b_number(b, t->dtype, 0), t->rank, dims);
        }
        in[k++] = s[i].v;
    }
    all.v = b_concatenate(b, k, in, axis);
    all.limit = arena_copy(arena, all.limit, all.rank * sizeof *all.limit);
    all.limit[axis] = s[n - 1].limit[axis];
    return all;
}
static void join_layer(Builder *b, const Slice *s, uint32_t n, Slices *to) {
    uint32_t axis = s->axis;
    bool gaps = few_gaps(s, n);
    for (uint32_t first = 0, end; first < n; first = end) {
        end = first + 1;
        while (end < n && (gaps || s[end].start[axis] == s[end - 1].limit[axis])) end++;
        push(b->cx->arena, to, end - first > 1 ? joined(b, s + first, end - first) : s[first]);
    }
}
/* Slices with the same ranges along other axes. */
static void join_group(Builder *b, Slice *s, uint32_t n, Slices *to) {
    uint32_t layers;
    sort_symbolic(b, s, n);
    n = lay(b, s, n, &layers);
    Slice *one = arena_new(b->cx->arena, Slice, n);
    for (uint32_t layer = 0; layer < layers; layer++) {
        uint32_t m = 0;
        for (uint32_t i = 0; i < n; i++)
            if (s[i].layer == layer) one[m++] = s[i];
        join_layer(b, one, m, to);
    }
}
static Slices join_axis(Builder *b, Slices s, uint32_t axis) {
    Slices to = {0};
    for (uint32_t i = 0; i < s.n; i++) s.at[i].axis = axis, s.at[i].order = i;
    qsort(s.at, s.n, sizeof *s.at, compare_slices);
    for (uint32_t first = 0, end; first < s.n; first = end) {
        end = first + 1;
        while (end < s.n && beside(&s.at[first], &s.at[end])) end++;
        join_group(b, s.at + first, end - first, &to);
    }
    return to;
}

/* ---- the sum */
static Val padded(Builder *b, const Part *p, const ArrayType *t) {
    Dim config[3 * MAX_RANK];
    const ArrayType *v = b_type(b, p->v);
    for (uint32_t d = 0; d < t->rank; d++) {
        int64_t stride = p->strides.n ? p->strides.at[d] : 1;
        Dim covered = dim_dilated(b_types(b), v->dims[d], stride);
        config[3 * d] = p->start.at[d];
        config[3 * d + 1] = dim_sub(b_types(b), dim_sub(b_types(b), t->dims[d], p->start.at[d]), covered);
        config[3 * d + 2] = stride - 1;
    }
    return b_pad(b, p->v, b_number(b, t->dtype, 0), config);
}
static Val updated(Builder *b, const Part *p, Val like, Val sum) {
    Val base = sum ? sum : b_zeros_like(b, like);
    if (p->kind == PART_SCATTERED) return b_scatter(b, P_scatter_add, base, p->indices, p->v, p->places);
    Val block = p->v;
    if (sum && !b_failed(b, sum))
        block = b_add_any(b, b_dynamic_slice(b, sum, p->starts.at, b_type(b, p->v)->dims), p->v);
    return b_dynamic_update_slice(b, base, block, p->starts.at);
}
/* Is adding the slice in place cheaper than adding an array of zeros with it? */
static bool is_small(const Slice *s, const ArrayType *t) {
    enum { FRACTION = 16 };
    bool some = false;
    for (uint32_t d = 0; d < s->rank && !some; d++) {
        if (!dim_is_const(s->start[d]) || !dim_is_const(s->limit[d])) continue;
        some = !dim_is_const(t->dims[d]) || FRACTION * (s->limit[d] - s->start[d]) <= t->dims[d];
    }
    return some;
}
static Val updated_slice(Builder *b, const Slice *s, Val like, Val sum) {
    Val starts[MAX_RANK];
    for (uint32_t d = 0; d < s->rank; d++) starts[d] = b_dim(b, DT_i64, s->start[d]);
    Part p = {.kind = PART_BLOCK, .v = s->v, .starts = {starts, s->rank}};
    return updated(b, &p, like, sum);
}
/* Adds the slices that have no strides. */
static Val add_slices(Builder *b, Slices s, Val like, Val sum) {
    enum { FEW = 4 }; /* additions of padded slices are one loop over the array */
    const ArrayType *t = b_type(b, like);
    if (s.n > 1)
        for (uint32_t d = t->rank; d-- > 0;) s = join_axis(b, s, d);
    uint32_t nsmall = 0;
    for (uint32_t i = 0; i < s.n; i++) nsmall += is_small(&s.at[i], t);
    for (uint32_t pass = 0; pass < 2; pass++) /* those that are updates last */
        for (uint32_t i = 0; i < s.n && !b->failed; i++) {
            const Slice *one = &s.at[i];
            bool update = nsmall > FEW && is_small(one, t);
            Part p = {.v = one->v, .start = {one->start, one->rank}};
            if (pass == 0 && !update) sum = tx_sum(b, sum, padded(b, &p, t));
            if (pass == 1 && update) sum = updated_slice(b, one, like, sum);
        }
    return sum;
}
/* "x_ct" after the tangent "x_t", for those who read the program. */
static void name_cotangent(Ctx *cx, Val ct, Val tangent) {
    Str name = val_info(cx, tangent)->name;
    if (!ct || ct == VAL_FAILED || val_info(cx, ct)->name.n || !name.n) return;
    if (name.n > 2 && memcmp(name.at + name.n - 2, "_t", 2) == 0) name.n -= 2;
    val_info(cx, ct)->name = str_format(cx->arena, "%.*s_ct", SF(name));
}
Val acc_close(Tx *tx, Builder *b, Val read) {
    Acc acc = *acc_of(tx, read);
    Val sum = acc.sum, like = valmap_get(&tx->map, read);
    Slices slices = {0};
    *acc_of(tx, read) = (Acc){0};
    for (uint32_t i = 0; i < acc.n && !b->failed; i++) {
        const Part *p = &acc.at[i];
        if (p->kind == PART_WHOLE) sum = tx_sum(b, sum, p->v);
        if (p->kind == PART_SLICE && p->strides.n) sum = tx_sum(b, sum, padded(b, p, b_type(b, like)));
        if (p->kind == PART_SLICE && !p->strides.n)
            push(tx->cx->arena, &slices, ((Slice){.v = p->v, p->start.at, p->limit.at, .rank = p->start.n}));
    }
    if (!b->failed) sum = add_slices(b, slices, like, sum);
    for (uint32_t i = 0; i < acc.n && !b->failed; i++)
        if (acc.at[i].kind > PART_SLICE) sum = updated(b, &acc.at[i], like, sum);
    name_cotangent(tx->cx, sum, read);
    return b->failed ? VAL_FAILED : sum;
}
