/* On a CPU, arrays of many short rows are computed several rows at a time, so that vectors are whole:

     y = add x (broadcast_in_dim b)     becomes   w = stored (reshape (broadcast_in_dim b))       b, 16 times
                                                  u = reshape x                                   f32[3750,80]
                                                  y = reshape (add u (broadcast_in_dim w))        f32[60000,5]
     s = reduce_sum[axes=(0,)] x        becomes   s = reduce_sum[axes=(0,)] (reshape (reduce_sum[axes=(0,)] u))

   with x:f32[60000,5] and b:f32[5]; reshapes are only other indices. Rows that are left over are computed by themselves.

   What is connected by elementwise equations on values of one shape is a group; so are the reductions of these values.
   It is folded as a whole or not at all: each value that it reads is in memory, or the same for all rows, or a member,
   and what else reads its members reads memory. So no kernel is divided and nothing is computed twice. What the step of
   a product computes is in memory for what depends on later values too. Axes before `outer`, along which something that
   is stretched differs, stay; those between them and the short one become one. */
#include "build.h"
#include "../options.h"

/* The longest row; elements that make whole vectors of any width. */
enum { MOST_ROW = 32, WHOLE = 16 };
enum { MOST_VIRTUAL = 4096 }; /* elements of concatenations that are not written to memory */
/* Elements of the array, from which on all that was measured takes less time: 256 rows of 5 half of it; of the folded
   row if enough of them are left: 60000 rows of 5 as rows of 160 in 33 us, as rows of 80 in 41. */
enum { LEAST_ELEMENTS = 1024, LEAST_WIDTH = 128 };
/* Elements of an array that gains microseconds; no more groups of those are folded, since each takes 3 to 9 ms more to
   compile. */
enum { SMALL_GROUP = 1 << 16, MOST_GROUPS = 64 };
/* Folded rows: the fewest, also for each index of the outer axes; the fewest if others are left over: 767 rows of 3 take
   as long as before; as many for each index as there should be, so that sums of them are short: 100 pictures of 16 x 16
   pixels in 25 us, not 41. */
enum { LEAST_ROWS = 4, LEAST_UNEVEN = 32, MANY_ROWS = 16 };

/* A value in folded form: [outer…, rows / m, m k], and what is left over: [outer…, rows % m, k], or 0. */
typedef struct {
    Val main, rest;
} Folded;
typedef struct {
    const Eqn *def; /* what computes it; NULL: an input */
    Val next;       /* another one of its group, nearer to its root; 0: it is the root */
    bool part;      /* it is computed by an equation of a group, */
    bool member;    /* an elementwise one */
    bool product;   /* it is computed in the step of a product or of prefixes, and in memory for others */
    uint32_t at;    /* the number of its equation; of what is small, or a view, that of the latest of its operands */
    /* of a root: */
    Val like;       /* a value of the group's shape; 0: there is no group */
    uint32_t outer; /* axes that stay */
    bool stays, pays, counted;
    /* while its program is written: */
    Folded folded; /* for the group `of` */
    Val of;
    uint32_t place; /* after so many equations it is known */
} Node;
typedef struct {
    uint32_t outer;
    Dim dims[MAX_RANK + 2]; /* of the outer axes; two more follow */
    Dim count, m, rest, k;
} Shape;
/* An equation that is put before that with the number `place`. */
typedef struct {
    uint32_t place;
    Eqn e;
} Early;
typedef struct {
    Early *at;
    uint32_t n, cap;
} Earlies;
typedef struct {
    Ctx *cx;
    ValMap map;
    Memo memo;
    Node *nodes; /* by value */
    uint32_t at; /* of the last equation taken */
    Earlies early;
    bool any;
} Flatten;

/* ---- groups */
static Val root_of(Flatten *f, Val v) {
    Node *n = f->nodes;
    for (; n[v].next; v = n[v].next)
        if (n[n[v].next].next) n[v].next = n[n[v].next].next;
    return v;
}
static Node *group_of(Flatten *f, Val v) { return &f->nodes[root_of(f, v)]; }
static void unite(Flatten *f, Val a, Val b) {
    Val from = root_of(f, a), to = root_of(f, b);
    Node *x = &f->nodes[from], *y = &f->nodes[to];
    if (from == to) return;
    x->next = to;
    if (!y->like) y->like = x->like;
    y->outer = x->outer > y->outer ? x->outer : y->outer;
    y->stays |= x->stays, y->pays |= x->pays;
}

static bool same_dims(const ArrayType *a, const ArrayType *b) {
    return a->rank == b->rank && !memcmp(a->dims, b->dims, a->rank * sizeof *a->dims);
}
/* The same but for axes of extent 1? */
static bool same_long(const ArrayType *a, const ArrayType *b) {
    uint32_t i = 0, k = 0;
    for (;;) {
        while (i < a->rank && a->dims[i] == 1) i++;
        while (k < b->rank && b->dims[k] == 1) k++;
        if (i == a->rank || k == b->rank) return i == a->rank && k == b->rank;
        if (a->dims[i++] != b->dims[k++]) return false;
    }
}
/* Has it many rows, which are short? Unknown numbers of them are axes that stay. */
static bool is_short(Ctx *cx, Type type) {
    const ArrayType *t = type_at(cx->types, type);
    Dim n = type_size(cx->types, type), k = t->rank > 1 ? t->dims[t->rank - 1] : 0;
    if (!dim_is_const(k) || k < 2 || k > MOST_ROW || k % WHOLE == 0 || dtype_info[t->dtype].kind == DK_KEY)
        return false;
    for (uint32_t i = 0; i < t->rank; i++)
        if (dim_has_bound(cx->types, t->dims[i])) return false;
    return !dim_is_const(n) || n >= LEAST_ELEMENTS;
}
static bool is_reshape(const Eqn *e) {
    bool units = e->prim == P_squeeze || e->prim == P_expand_dims;
    return units || (e->prim == P_reshape && !param_ints(e, K_dimensions).n);
}
static bool is_first(const ArrayType *t, int64_t axis) {
    for (int64_t i = 0; i < axis; i++)
        if (t->dims[i] != 1) return false;
    return true;
}
static bool has_at_most(const Ctx *cx, Val v, Dim most) {
    Dim n = type_size(cx->types, val_type(cx, v));
    return dim_is_const(n) && n <= most;
}
/* Is it a slice whose elements lie in one piece? */
static bool is_piece(Ctx *cx, const Eqn *e) {
    if (e->prim != P_slice && e->prim != P_dynamic_slice) return false;
    Ints strides = param_ints(e, K_strides);
    for (uint32_t i = 0; i < strides.n; i++)
        if (strides.at[i] != 1) return false;
    const ArrayType *x = val_array(cx, e->in.at[0]), *y = val_array(cx, e->out.at[0]);
    uint32_t cut = 0;
    while (cut < y->rank && y->dims[cut] == 1) cut++;
    for (uint32_t i = cut + 1; i < y->rank; i++)
        if (x->dims[i] != y->dims[i]) return false;
    return true;
}
/* Does it lie in memory in order, whatever is computed beside it? */
static bool in_memory(const Flatten *f, Val v) {
    static const bool written[LOWER_STATE + 1] = {[LOWER_WHILE] = true,  [LOWER_SCAN] = true,    [LOWER_COND] = true,
                                                  [LOWER_CALL] = true,   [LOWER_RUNTIME] = true, [LOWER_UPDATE] = true,
                                                  [LOWER_SCATTER] = true};
    const Eqn *e = f->nodes[v].def;
    while (e && (is_reshape(e) || is_piece(f->cx, e))) e = f->nodes[e->in.at[0]].def;
    bool joined = e && prim_is(e->prim, JOINS) && !has_at_most(f->cx, e->out.at[0], MOST_VIRTUAL);
    return !e || joined || e->prim == P_stored || f->nodes[e->out.at[0]].product || written[prim_lower[e->prim]];
}
/* What is stretched varies along this axis of the group's shape. */
static void stretch(Node *group, uint32_t rank, int64_t axis) {
    if (axis + 1 == rank)
        group->pays = true;
    else if (axis >= group->outer)
        group->outer = (uint32_t)axis + 1;
}
/* Axes of unknown extents stay. */
static void stretch_unknown(Node *group, const ArrayType *t) {
    for (uint32_t i = 0; i + 1 < t->rank; i++)
        if (!dim_is_const(t->dims[i])) stretch(group, t->rank, i);
}
/* If x, an operand in equations on arrays of this shape, is stretched to it: the value that is, whose axis i becomes
   axis to[i] of the shape. 0: x is not. */
static Val stretched_from(const Flatten *f, Val x, const ArrayType *shape, int64_t *to) {
    const Eqn *e = f->nodes[x].def;
    for (uint32_t i = 0; i < shape->rank; i++) to[i] = i;
    if (!same_dims(val_array(f->cx, x), shape)) return x;
    if (!e || e->prim != P_broadcast_in_dim || e->in.n != 1) return 0;
    Ints axes = param_ints(e, K_broadcast_dimensions);
    for (uint32_t i = 0; i < axes.n; i++) to[i] = axes.at[i];
    return e->in.at[0];
}
static void take_operand(Flatten *f, Val y, Val x) {
    const ArrayType *shape = val_array(f->cx, y);
    int64_t to[MAX_RANK];
    if (!val_array(f->cx, x)->rank) return;
    Val from = stretched_from(f, x, shape, to);
    if (from) {
        const ArrayType *t = val_array(f->cx, from);
        for (uint32_t i = 0; i < t->rank; i++)
            if (t->dims[i] != 1) stretch(group_of(f, y), shape->rank, to[i]);
    } else {
        if (!f->nodes[x].member && !in_memory(f, x)) group_of(f, y)->stays = true;
        unite(f, x, y);
    }
}
static bool take_point(Flatten *f, const Eqn *e) {
    if (!prim_elementwise(e->prim) || e->prim == P_stored || e->prim == P_again || e->out.n != 1) return false;
    Val y = e->out.at[0];
    const ArrayType *shape = val_array(f->cx, y);
    if (!is_short(f->cx, val_type(f->cx, y))) return false;
    each(const Val, x, e->in) {
        const ArrayType *t = val_array(f->cx, *x);
        for (uint32_t i = 0; i < t->rank; i++)
            if (t->rank != shape->rank || (t->dims[i] != 1 && t->dims[i] != shape->dims[i])) return false;
    }
    f->nodes[y].part = f->nodes[y].member = true, f->nodes[y].like = y;
    stretch_unknown(group_of(f, y), shape);
    each(const Val, x, e->in) take_operand(f, y, *x);
    return true;
}
static uint32_t later(uint32_t a, uint32_t b) { return a > b ? a : b; }
/* What is computed elementwise of a product, and of nothing that comes after it, is in its step. */
static bool take_product(Flatten *f, const Eqn *e) {
    const Node *from = NULL;
    uint32_t at = 0;
    bool view = is_reshape(e) && same_long(val_array(f->cx, e->in.at[0]), val_array(f->cx, e->out.at[0]));
    if (!view && (!prim_elementwise(e->prim) || e->prim == P_stored || e->out.n != 1)) return false;
    each(const Val, x, e->in) {
        const Node *n = &f->nodes[*x];
        at = later(at, n->at);
        if (n->product && (!from || n->at > from->at)) from = n;
    }
    Node *y = &f->nodes[e->out.at[0]];
    if (!from || from->at < at) return false;
    y->product = true, y->at = at;
    return true;
}
/* Narrow floats would be rounded once more. */
static bool rounds_twice(const Eqn *e, Dtype d) {
    bool sum = prim_combiner[e->prim] == P_add || prim_combiner[e->prim] == P_mul;
    return sum && dtype_info[d].kind == DK_FLOAT && dtype_info[d].bits < 32;
}
static bool take_reduction(Flatten *f, const Eqn *e) {
    if (prim_lower[e->prim] != LOWER_REDUCE || prim_combiner[e->prim] == P_none) return false;
    Val x = e->in.at[0];
    const ArrayType *t = val_array(f->cx, x);
    Ints axes = param_ints(e, K_axes);
    if (!is_short(f->cx, val_type(f->cx, x)) || rounds_twice(e, t->dtype)) return false;
    bool rows = t->dims[t->rank - 2] == 1 || ints_have(axes, t->rank - 2); /* are they what is reduced? */
    if (!f->nodes[x].member && (!rows || !in_memory(f, x))) return false;
    Node *group = group_of(f, x);
    group->like = x, f->nodes[e->out.at[0]].part = true;
    stretch_unknown(group, t);
    for (uint32_t i = 0; i < t->rank; i++)
        if (t->dims[i] != 1 && !ints_have(axes, i)) stretch(group, t->rank, i);
    return true;
}
/* Would it read them from memory anyway? */
static bool reads_memory(Flatten *f, const Eqn *e) {
    static const bool reads[LOWER_STATE + 1] = {[LOWER_WHILE] = true, [LOWER_SCAN] = true,    [LOWER_COND] = true,
                                                [LOWER_CALL] = true,  [LOWER_RUNTIME] = true, [LOWER_DOT] = true,
                                                [LOWER_CUM] = true};
    static const bool moves[NPRIMS] = {[P_slice] = true, [P_dynamic_slice] = true, [P_gather] = true,
                                       [P_rev] = true,   [P_pad] = true,           [P_windows] = true};
    bool other = is_reshape(e) && !same_long(val_array(f->cx, e->in.at[0]), val_array(f->cx, e->out.at[0]));
    bool joined = e->prim == P_concatenate && is_first(val_array(f->cx, e->out.at[0]), param_number(e, K_dimension));
    return moves[e->prim] || other || joined || reads[prim_lower[e->prim]];
}
static void take(Flatten *f, const Eqn *e) {
    Lower how = prim_lower[e->prim];
    bool small = prim_elementwise(e->prim) && e->out.n == 1 && has_at_most(f->cx, e->out.at[0], LEAST_ELEMENTS - 1);
    bool anywhere = small || (how == LOWER_INDEX && !prim_is(e->prim, JOINS));
    uint32_t at = anywhere ? 0 : ++f->at;
    for (uint32_t i = 0; anywhere && i < e->in.n; i++) at = later(at, f->nodes[e->in.at[i]].at);
    each(const Val, v, e->out) f->nodes[*v].def = e, f->nodes[*v].at = at;
    each(const Val, v, e->out) f->nodes[*v].product = how == LOWER_DOT || how == LOWER_CUM;
    if (take_product(f, e) || take_point(f, e) || take_reduction(f, e) || reads_memory(f, e)) return;
    each(const Val, v, e->in)
        if (f->nodes[*v].member) group_of(f, *v)->stays = true;
}

/* ---- how many rows are put into one */
/* The least power of two that makes whole vectors, or more, so that a folded row is long. `apart`: there are outer
   axes. */
static Dim rows_in_one(Dim rows, Dim k, bool apart) {
    Dim m = WHOLE;
    while (m > 1 && m / 2 * k % WHOLE == 0) m /= 2;
    Dim least = rows % m ? LEAST_UNEVEN : apart ? MANY_ROWS : 1;
    while (m * k < LEAST_WIDTH && (rows % m || rows % (2 * m) == 0) && rows / (2 * m) >= least) m *= 2;
    return m;
}
/* False: the group stays as it is. Rows of an outer axis that are left over would be apart in the result. */
static bool shape_of(Flatten *f, Val v, Shape *s) {
    const Node *group = group_of(f, v);
    if (!group->like || group->stays || !group->pays) return false;
    const ArrayType *t = val_array(f->cx, group->like);
    Dim rows = 1, k = t->dims[t->rank - 1];
    for (uint32_t i = group->outer; i + 1 < t->rank; i++) rows *= t->dims[i];
    Dim m = rows_in_one(rows, k, group->outer);
    *s = (Shape){.outer = group->outer, .count = rows / m, .m = m, .rest = rows % m, .k = k};
    for (uint32_t i = 0; i < s->outer; i++) s->dims[i] = t->dims[i];
    return s->count >= (s->rest ? LEAST_UNEVEN : LEAST_ROWS) && !(s->rest && s->outer);
}

/* ---- writing */
typedef struct {
    Flatten *f;
    Builder b;
    Val group;
    Shape s;
} Writer;

static const Dim *dims_with(Shape *s, Dim rows, Dim row) {
    s->dims[s->outer] = rows, s->dims[s->outer + 1] = row;
    return s->dims;
}
static Val shaped(Writer *w, Val v, Dim rows, Dim row) {
    return b_reshape(&w->b, v, w->s.outer + 2, dims_with(&w->s, rows, row));
}
static Folded fold_array(Writer *w, Val v) {
    const Shape *s = &w->s;
    Dim even = s->count * s->m, rows = even + s->rest;
    Folded y = {0};
    if (s->rest) {
        v = shaped(w, v, rows, s->k);
        y.rest = b_slice_axis(&w->b, v, s->outer, even, rows);
        v = b_slice_axis(&w->b, v, s->outer, 0, even);
    }
    y.main = shaped(w, v, s->count, s->m * s->k);
    return y;
}
/* m copies of each row of v seen as an array of these extents, beside each other in memory; written where v is known,
   since what is computed after it cannot join steps before it. */
static Val copies(Writer *w, Val v, uint32_t place, uint32_t rank, const Dim *of) {
    Builder b = {.cx = w->f->cx, .span = w->b.span, .whole = w->b.whole};
    int64_t axes[MAX_RANK];
    Dim dims[MAX_RANK];
    uint32_t last = rank - 1;
    v = b_reshape(&b, v, rank, of);
    for (uint32_t i = 0; i < last; i++) axes[i] = i, dims[i] = of[i];
    axes[last] = last + 1, dims[last] = w->s.m, dims[last + 1] = w->s.k;
    v = b_broadcast(&b, v, rank + 1, dims, axes);
    dims[last] = w->s.m * w->s.k;
    v = b_stored(&b, b_reshape(&b, v, rank, dims));
    assert(!b.failed);
    each(const Eqn, e, b.eqns) push(b.cx->arena, &w->f->early, ((Early){place, *e}));
    return v;
}
/* Of a value that is stretched, whose axis i is axis to[i] of `rank`. */
static Folded fold_stretched(Writer *w, Val x, uint32_t rank, const int64_t *to) {
    Shape *s = &w->s;
    Val v = valmap_get(&w->f->map, x);
    const ArrayType *t = b_type(&w->b, v);
    int64_t axes[MAX_RANK] = {0};
    Dim dims[MAX_RANK];
    uint32_t n = 0;
    bool has = false;
    for (uint32_t i = 0; i < t->rank; i++) {
        if (t->dims[i] == 1) continue;
        has = to[i] + 1 == rank;
        axes[n] = has ? s->outer + 1 : to[i], dims[n++] = t->dims[i];
    }
    Folded y = {0};
    if (s->rest || !has) y.main = b_reshape(&w->b, v, n, dims);
    if (s->rest) y.rest = b_broadcast(&w->b, y.main, s->outer + 2, dims_with(s, s->rest, s->k), axes);
    if (has) y.main = copies(w, v, w->f->nodes[x].place, n, dims);
    y.main = b_broadcast(&w->b, y.main, s->outer + 2, dims_with(s, s->count, s->m * s->k), axes);
    return y;
}
static Folded folded(Writer *w, Val x) {
    Flatten *f = w->f;
    Node *n = &f->nodes[x];
    const ArrayType *t = val_array(f->cx, x), *like = val_array(f->cx, f->nodes[w->group].like);
    Val v = valmap_get(&f->map, x);
    int64_t to[MAX_RANK];
    if (!t->rank) return (Folded){v, v};
    if (n->of == w->group) return n->folded;
    Val from = stretched_from(f, x, like, to);
    n->folded = from ? fold_stretched(w, from, like->rank, to) : fold_array(w, v);
    n->of = w->group;
    return n->folded;
}
static Val unfolded(Writer *w, const ArrayType *t, Folded y) {
    const Shape *s = &w->s;
    if (s->rest) {
        Val parts[2] = {shaped(w, y.main, s->count * s->m, s->k), y.rest};
        y.main = b_concatenate(&w->b, 2, parts, s->outer);
    }
    return b_reshape(&w->b, y.main, t->rank, t->dims);
}
static Val write_point(Writer *w, const Eqn *e) {
    Node *y = &w->f->nodes[e->out.at[0]];
    Val *in = arena_new(w->f->cx->arena, Val, 2 * e->in.n), *rest = in + e->in.n;
    for (uint32_t i = 0; i < e->in.n; i++) {
        Folded x = folded(w, e->in.at[i]);
        in[i] = x.main, rest[i] = x.rest;
    }
    y->of = w->group;
    y->folded = (Folded){.main = build(&w->b, e->prim, e->in.n, in, e->params.n, e->params.at)};
    if (w->s.rest) y->folded.rest = build(&w->b, e->prim, e->in.n, rest, e->params.n, e->params.at);
    return unfolded(w, val_array(w->f->cx, e->out.at[0]), y->folded);
}
/* Of f32 the sums of the folded rows are added in f64, as those of a long sum are (plan/sums.h). */
static Val write_reduction(Writer *w, const Eqn *e) {
    Val x = e->in.at[0];
    const Shape *s = &w->s;
    const ArrayType *t = val_array(w->f->cx, x), *y = val_array(w->f->cx, e->out.at[0]);
    Ints reduced = param_ints(e, K_axes);
    bool whole = ints_have(reduced, t->rank - 1);
    Dtype as = prim_combiner[e->prim] == P_add && t->dtype == DT_f32 ? DT_f64 : t->dtype;
    int64_t axes[MAX_RANK];
    Dim dims[MAX_RANK + 1];
    uint32_t n = 0, kept = 0;
    for (uint32_t i = 0; i < s->outer; i++)
        if (ints_have(reduced, i))
            axes[n++] = i;
        else
            dims[kept++] = s->dims[i];
    axes[n++] = s->outer;
    if (whole) axes[n++] = s->outer + 1;
    Folded part = folded(w, x);
    Val v = b_reduce(&w->b, e->prim, part.main, n, axes);
    dims[kept] = s->m, dims[kept + 1] = s->k;
    if (!whole) v = b_convert(&w->b, b_reshape(&w->b, v, kept + 2, dims), as);
    if (!whole) v = b_reduce(&w->b, e->prim, v, 1, (int64_t[]){kept});
    if (s->rest) {
        Val more = b_reduce(&w->b, e->prim, part.rest, n, axes);
        v = b2(&w->b, prim_combiner[e->prim], b_convert(&w->b, v, as), b_convert(&w->b, more, as));
    }
    return b_convert(&w->b, b_reshape(&w->b, v, y->rank, y->dims), y->dtype);
}
/* Appends what a folded equation becomes; false: it stays as it is. */
static bool write(Flatten *f, Eqns *to, const Eqn *e) {
    Writer w = {.f = f, .b = {.cx = f->cx, .span = e->span, .whole = e->whole}};
    if (e->out.n != 1 || !f->nodes[e->out.at[0]].part) return false;
    bool point = f->nodes[e->out.at[0]].member;
    w.group = root_of(f, point ? e->out.at[0] : e->in.at[0]);
    if (!shape_of(f, w.group, &w.s)) return false;
    Val old = e->out.at[0], v = point ? write_point(&w, e) : write_reduction(&w, e);
    assert(!w.b.failed);
    val_info(f->cx, v)->name = val_info(f->cx, old)->name;
    valmap_put(&f->map, old, v);
    each(const Eqn, made, w.b.eqns) push(f->cx->arena, to, *made);
    f->nodes[old].place = to->n;
    return f->any = true;
}
/* The equations with those put between them that are early. */
static Eqns placed(Flatten *f, Eqns eqns) {
    uint32_t *first = arena_new(f->cx->arena, uint32_t, eqns.n + 2);
    Eqns all = {.at = arena_new(f->cx->arena, Eqn, eqns.n + f->early.n + 1), .cap = eqns.n + f->early.n + 1};
    if (!f->early.n) return eqns;
    for (uint32_t i = 0; i < f->early.n; i++) first[f->early.at[i].place + 1]++;
    for (uint32_t i = 0; i <= eqns.n; i++) first[i + 1] += first[i];
    uint32_t *next = arena_new(f->cx->arena, uint32_t, f->early.n);
    uint32_t *at = arena_copy(f->cx->arena, first, (eqns.n + 2) * sizeof *at);
    for (uint32_t i = 0; i < f->early.n; i++) next[at[f->early.at[i].place]++] = i;
    for (uint32_t i = 0; i <= eqns.n; i++) {
        for (uint32_t k = first[i]; k < first[i + 1]; k++) push(f->cx->arena, &all, f->early.at[next[k]].e);
        if (i < eqns.n) push(f->cx->arena, &all, eqns.at[i]);
    }
    return all;
}
/* Is a group of the program folded? Of small ones the first MOST_GROUPS are. */
static bool folds(Flatten *f, const Jaxpr *j) {
    Shape s;
    uint32_t nsmall = 0;
    bool any = false;
    each(const Eqn, e, j->eqns) {
        if (e->out.n != 1 || !f->nodes[e->out.at[0]].part) continue;
        Val v = f->nodes[e->out.at[0]].member ? e->out.at[0] : e->in.at[0];
        Node *group = group_of(f, v);
        if (group->counted || !shape_of(f, v, &s)) continue;
        group->counted = true;
        bool small = has_at_most(f->cx, group->like, SMALL_GROUP);
        group->stays = small && nsmall == MOST_GROUPS;
        nsmall += small && !group->stays;
        any |= !group->stays;
    }
    return any;
}
typedef struct {
    const Flatten *f;
    uint32_t place;
} Latest;
static void latest(void *user, Val v) {
    Latest *l = user;
    if (l->f->nodes[v].place > l->place) l->place = l->f->nodes[v].place;
}
/* What is computed of few elements is put where its operands are known, as the copies of it are; false: it is more than
   that. */
static bool hoist(Flatten *f, const Eqn *e) {
    Latest l = {.f = f};
    if (e->out.n != 1 || !has_at_most(f->cx, e->out.at[0], LEAST_ELEMENTS - 1)) return false;
    if (!prim_elementwise(e->prim) && prim_lower[e->prim] != LOWER_INDEX) return false;
    eqn_takes(f->cx, e, latest, &l);
    push(f->cx->arena, &f->early, ((Early){l.place, eqn_rewrite(&f->map, e, NULL, NULL)}));
    f->nodes[e->out.at[0]].place = l.place;
    return true;
}
static Jaxpr *flatten_jaxpr(void *user, const Jaxpr *j) {
    Flatten *f = user;
    if (*memo_slot(&f->memo, j)) return *memo_slot(&f->memo, j);
    Eqns eqns = eqns_for(f->cx, j);
    each(const Eqn, e, j->eqns) take(f, e);
    Earlies outer = f->early;
    bool any = folds(f, j);
    f->early = (Earlies){0};
    each(const Eqn, e, j->eqns) {
        if (any && (hoist(f, e) || write(f, &eqns, e))) continue;
        push(f->cx->arena, &eqns, eqn_rewrite(&f->map, e, flatten_jaxpr, f));
        each(const Val, v, e->out) f->nodes[*v].place = eqns.n;
    }
    Jaxpr *new = jaxpr_with(f->cx, j, placed(f, eqns), vals_rewrite(&f->map, j->out));
    f->early = outer;
    return *memo_slot(&f->memo, j) = new;
}
/* Copies of one value are the same for all groups; what is not used in the other form is dropped. */
Jaxpr *pass_flatten(Ctx *cx, const Jaxpr *j) {
    if (options_for_device(cx->options) || cx->stdlib_passes) return jaxpr_with(cx, j, j->eqns, j->out);
    Flatten f = {.cx = cx, .map.cx = cx, .memo.arena = cx->arena, .nodes = arena_new(cx->arena, Node, cx->nvals)};
    Jaxpr *new = flatten_jaxpr(&f, j);
    return f.any ? pass_dce(cx, pass_cse(cx, new)) : jaxpr_with(cx, j, j->eqns, j->out);
}
