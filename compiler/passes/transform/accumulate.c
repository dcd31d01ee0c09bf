/* Contributions to the cotangent of a loop's constant that leave the loop. The weight gradient of a recurrent network
   is one matrix product of stacks, not a small one and a sum in each iteration: where an iteration adds dot_general(x,
   y), its factors are stacked, if they are not already, and one dot_general over (turns, contracted) follows. Sums and
   products of what is stacked anyway leave too. */
#include "accumulate.h"

typedef struct {
    Accumulate *a;
    Intern numbers; /* results of equations and inputs */
    struct Item {
        const Eqn *e; /* that computes it; NULL: an input */
        uint32_t uses;
        bool varies;
    } *items;
    struct { /* results of equations that were dropped */
        Val *at;
        uint32_t n, cap;
    } dropped;
    int64_t room; /* bytes that may still be stacked */
    bool dots;    /* of this pass: dot_general; else what is stacked already */
} Walk;
static struct Item *item_of(const Walk *w, Val v) {
    uint32_t k;
    if (val_info(w->a->cx, v)->lit || !intern_find(&w->numbers, &v, sizeof v, &k)) return NULL;
    return &w->items[k];
}
static struct Item *add_item(Walk *w, Val v) { return &w->items[intern(&w->numbers, &v, sizeof v, NULL)]; }
static void read_items(Walk *w) {
    const Accumulate *a = w->a;
    const Eqns *eqns = &a->b->eqns;
    uint32_t most = a->consts.n + a->xs.n;
    each(const Eqn, e, *eqns) most += e->out.n;
    w->numbers.arena = a->cx->arena;
    w->items = arena_new(a->cx->arena, struct Item, most + 1);
    each(const Val, v, a->consts) add_item(w, *v);
    each(const Val, v, a->xs) add_item(w, *v)->varies = true;
    each(const Eqn, e, *eqns) {
        bool varies = false;
        each(const Val, v, e->in) {
            struct Item *item = item_of(w, *v);
            if (item) item->uses++;
            varies |= item ? item->varies : !val_info(a->cx, *v)->lit && !val_info(a->cx, *v)->data;
        }
        each(const Val, v, e->out) *add_item(w, *v) = (struct Item){e, 0, varies};
    }
    each(const Val, v, a->ys) {
        struct Item *item = item_of(w, *v);
        if (item) item->uses++;
    }
}

/* ---- factors */
static bool plain(const Ctx *cx, Val v) {
    const ArrayType *t = val_array(cx, v);
    bool is = true;
    for (uint32_t d = 0; d < t->rank; d++) is &= !dim_has_bound(cx->types, t->dims[d]);
    return is;
}
static bool factor_of(const Walk *w, Val v, Factor *f) {
    for (uint32_t i = 0; i < w->a->xs.n; i++)
        if (w->a->xs.at[i] == v) return *f = (Factor){false, i}, true;
    for (uint32_t i = 0; i < w->a->ys.n; i++)
        if (w->a->ys.at[i] == v) return *f = (Factor){true, i}, true;
    return false;
}
static bool may_stack(const Walk *w, Val v) {
    const struct Item *item = item_of(w, v);
    return item && item->varies && plain(w->a->cx, v);
}
/* The factors of a dot_general, stacked if there is room. */
static bool dot_factors(Walk *w, const Eqn *dot, Factor *f) {
    Accumulate *a = w->a;
    int64_t more = 0;
    for (uint32_t i = 0; i < 2; i++) {
        if (!may_stack(w, dot->in.at[i])) return false;
        if (!factor_of(w, dot->in.at[i], &f[i])) more += scan_bytes(a->cx, dot->in.at[i]);
    }
    if (more > w->room) return false;
    w->room -= more;
    for (uint32_t i = 0; i < 2; i++) {
        if (factor_of(w, dot->in.at[i], &f[i])) continue;
        f[i] = (Factor){true, a->ys.n};
        push(a->cx->arena, &a->ys, dot->in.at[i]);
    }
    return true;
}
/* A sum of what is stacked, or of the product of two such arrays. */
static bool sum_factors(Walk *w, Val v, Deferred *d) {
    const struct Item *item = item_of(w, v);
    const Ctx *cx = w->a->cx;
    if (!item || !item->varies || !plain(cx, v)) return false;
    if (item->e && item->e->prim == P_reduce_sum) {
        d->axes = param_ints(item->e, K_axes);
        v = item->e->in.at[0], item = item_of(w, v);
        if (!item || !plain(cx, v)) return false;
    }
    d->nfactors = 1;
    if (factor_of(w, v, &d->factors[0])) return true;
    const Eqn *e = item->e;
    if (!e || e->prim != P_mul) return false;
    d->nfactors = 2;
    for (uint32_t i = 0; i < 2; i++)
        if (val_type(cx, e->in.at[i]) != val_type(cx, v) || !factor_of(w, e->in.at[i], &d->factors[i])) return false;
    return true;
}

/* ---- contributions */
static bool is_shape(Prim p) {
    return p == P_transpose || p == P_reshape || p == P_squeeze || p == P_expand_dims || p == P_convert_element_type ||
           p == P_neg || p == P_copy;
}
/* May this contribution leave? Then it is in a->deferred, in several parts if it is a sum. `d`: what is applied to
   it. */
static bool defer(Walk *w, Val v, Deferred d) {
    Accumulate *a = w->a;
    for (;;) {
        const struct Item *item = item_of(w, v);
        const Eqn *e = item ? item->e : NULL;
        if (!e || item->uses != 1 || !plain(a->cx, v)) break;
        if (e->prim == P_add_any) return defer(w, e->in.at[0], d) && defer(w, e->in.at[1], d);
        if (!is_shape(e->prim)) break;
        struct After *after = arena_new(a->cx->arena, struct After, 1);
        *after = (struct After){e, d.after};
        d.after = after;
        v = e->in.at[0];
    }
    const struct Item *item = item_of(w, v);
    bool dot = item && item->e && item->e->prim == P_dot_general && item->uses == 1 && plain(a->cx, v);
    if (w->dots && dot) {
        d.dot = item->e, d.nfactors = 2;
        if (!dot_factors(w, d.dot, d.factors)) return false;
    } else if (w->dots || !sum_factors(w, v, &d)) {
        return false;
    }
    push(a->cx->arena, &a->deferred, d);
    return true;
}
/* One walk: equations that add to an accumulator what may leave are dropped. */
static void walk(Walk *w) {
    Accumulate *a = w->a;
    Eqns left = {0};
    ValMap sums = {.cx = a->cx, .sparse = true}; /* value → the accumulator that it is, with contributions */
    for (uint32_t i = 0; i < a->nacc; i++)
        if (a->acc[i]) valmap_put(&sums, a->acc[i], i + 1);
    each(const Eqn, old, a->b->eqns) {
        Eqn e = eqn_rewrite(&a->map, old, NULL, NULL);
        Val base = e.prim == P_add_any ? e.in.at[0] : 0;
        uint32_t k = base ? valmap_get(&sums, base) : 0, deferred = a->deferred.n, ys = a->ys.n;
        bool sum = base && k != base;
        if (sum && defer(w, e.in.at[1], (Deferred){.to = k - 1})) {
            valmap_put(&a->map, e.out.at[0], base);
            push(a->cx->arena, &w->dropped, e.out.at[0]);
            continue;
        }
        a->deferred.n = deferred, a->ys.n = ys;
        if (sum) valmap_put(&sums, e.out.at[0], k);
        each(const Val, v, e.out) {
            Val from = valmap_get(a->continues, *v), of = valmap_get(&sums, from);
            if (from != *v && of != from) valmap_put(&sums, *v, of);
        }
        push(a->cx->arena, &left, e);
    }
    a->b->eqns = left;
}
void accumulate_later(Accumulate *a) {
    a->map = (ValMap){.cx = a->cx, .sparse = true};
    if (a->b->failed) return;
    int64_t room = 0;
    for (uint32_t i = 0; i < a->residual; i++) room += scan_bytes(a->cx, a->xs.at[i]);
    Walk dots = {.a = a, .room = room, .dots = true}, sums = {.a = a, .room = room};
    read_items(&dots);
    walk(&dots);
    read_items(&sums);
    walk(&sums);
    each(const Val, v, dots.dropped) /* what stands for it may have been dropped later */
        valmap_put(&a->map, *v, valmap_get(&a->map, valmap_get(&a->map, *v)));
}

/* ---- after the loop */
static Ints with_turns(Arena *arena, Ints axes) {
    Ints all = {arena_new(arena, int64_t, axes.n + 1), axes.n + 1};
    for (uint32_t i = 0; i < axes.n; i++) all.at[i + 1] = axes.at[i] + 1;
    return all;
}
/* The same axes of arrays that have one more before them. */
static Ints further(Arena *arena, Ints axes) {
    Ints all = with_turns(arena, axes);
    return (Ints){all.at + 1, axes.n};
}
static Val dot_of_stacks(Builder *b, const Eqn *dot, const Val *in, Dtype preferred) {
    Arena *arena = b->cx->arena;
    const Value *lists = param_find(dot, K_dimension_numbers)->value.list.at;
    Contraction c = {.preferred = preferred, .precision = param_find(dot, K_precision)};
    for (uint32_t i = 0; i < 2; i++) {
        c.contracted[i] = with_turns(arena, lists[i].ints);
        c.batch[i] = further(arena, lists[2 + i].ints);
    }
    return b_dot_general(b, in[0], in[1], c);
}
Val b_deferred(Builder *b, const Deferred *d, Vals xs, Vals ys) {
    Val in[2] = {0}, v;
    for (uint32_t i = 0; i < d->nfactors; i++) in[i] = (d->factors[i].result ? ys : xs).at[d->factors[i].at];
    if (d->dot) {
        v = dot_of_stacks(b, d->dot, in, val_array(b->cx, d->dot->out.at[0])->dtype);
    } else {
        Ints axes = with_turns(b->cx->arena, d->axes);
        v = b_reduce(b, P_reduce_sum, d->nfactors == 2 ? b_mul(b, in[0], in[1]) : in[0], axes.n, axes.at);
    }
    for (const struct After *after = d->after; after && !b->failed; after = after->next) {
        Eqn e = *after->e;
        e.in = vals_joined(b->cx->arena, 1, &(Vals){&v, 1});
        v = b_eqn(b, &e, 1, NULL).at[0];
    }
    return v;
}
