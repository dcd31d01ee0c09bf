/* References become values: at each point of the program the content of a reference is a value, and a write makes a new
   one. A program that takes references takes their contents instead, and returns their final contents as further
   results; in a loop, written references are carried, those that are only read are constants.

     { lambda ; r:Ref{f32[3]} i:i32[]. let r[i] <- 1.0:f32[] in () }
     { lambda ; r:f32[3] i:i32[]. let … u:f32[3] = dynamic_update_slice r … i in (u,) }

   References that the whole program takes are inputs, and their final contents are results after its own. */
#include "build.h"
#include "../typecheck/rule.h"
#include <stdlib.h>

typedef struct {
    Ctx *cx;
    ValMap map, now; /* values; and the current content of each reference */
    Memo memo;       /* programs without references: contents are inputs, and written ones are results */
    Memo arranged;   /* results of `arranged`, by all of its arguments */
    Builder b;       /* of the current program */
    bool failed;
} State;

typedef bool StateRule(State *, const Eqn *);
#define NO_LOWERING
#define STATE(f) static StateRule state_##f;
#define PRIM(id, text, arity, type, simplify, facts, jvp, transpose, vmap, lowering) lowering
#include "../prims.def"
#define STATE(f) state_##f
static StateRule *const rule_of[NPRIMS] = {
#define PRIM(id, text, arity, type, simplify, facts, jvp, transpose, vmap, lowering) [P_##id] = lowering,
#include "../prims.def"
};

static bool is_ref(const State *s, Val v) { return type_is_ref(s->cx, val_type(s->cx, v)); }
/* The value, or the content of a reference. */
static Val held(const State *s, Val v) {
    v = valmap_get(&s->map, v);
    return is_ref(s, v) ? valmap_get(&s->now, v) : v;
}
static void put(State *s, Val out, Val v) { val_replace(&s->map, &s->b.eqns, out, v); }
static void hold(State *s, Val ref, Val v) { valmap_put(&s->now, valmap_get(&s->map, ref), v); }
static Vals vals_new(State *s, uint32_t cap) { return (Vals){arena_new(s->cx->arena, Val, cap + 1), 0}; }
static void add(Vals *to, Val v) { to->at[to->n++] = v; }
static Vals vals_held(State *s, Vals vs) {
    Vals new = vals_new(s, vs.n);
    each(const Val, v, vs) add(&new, held(s, *v));
    return new;
}

/* ---- creating and freezing */
static bool state_new_ref(State *s, const Eqn *e) {
    hold(s, e->out.at[0], held(s, e->in.at[0]));
    return true;
}
/* Zeros: the content before the first write is undefined. */
static bool state_empty_ref(State *s, const Eqn *e) {
    const ArrayType *t = val_array(s->cx, e->out.at[0]);
    hold(s, e->out.at[0], b_full(&s->b, b_number(&s->b, t->dtype, 0), t->rank, t->dims));
    return true;
}
static bool state_freeze(State *s, const Eqn *e) {
    put(s, e->out.at[0], held(s, e->in.at[0]));
    return true;
}
static bool state_free_ref(State *s, const Eqn *e) { return true; }

/* ---- views: the brackets after a reference */
typedef struct {
    bool position; /* one element, or an array of them, whose axes stand for this one; else a range */
    bool all;      /* the whole range */
    Val v;         /* its index or start; 0: it is `at` */
    int64_t at;
    Dim size;       /* of the range */
    int64_t stride; /* of the range; 0 is 1 */
} Place;
typedef struct {
    Val x;         /* the array viewed */
    Str transform; /* {reshape([2, 3])}; or empty, with a place for each axis: */
    Place *places;
    bool whole, arrays; /* it is everything; a place is an array */
} View;
typedef struct {
    View *at;
    uint32_t n;
} Views;

static bool begins(Str s, const char *with) {
    size_t n = strlen(with);
    return s.n >= n && memcmp(s.at, with, n) == 0;
}
static void place_of(State *s, Place *p, const Value *v, Dim extent, Val (*next)(void *), void *user) {
    *p = (Place){.position = v && v->kind != V_PAIR, .size = extent};
    p->all = !v || (!p->position && v->list.at[0].kind == V_NONE && v->list.at[1].kind == V_NONE);
    if (p->all) return;
    const Value *from = p->position ? v : &v->list.at[0];
    int64_t end = 0;
    if (from->kind == V_WORD)
        p->v = next(user);
    else
        index_number(from, 0, &p->at);
    if (p->position) return;
    bool named = index_number(&v->list.at[1], 0, &end) && v->list.at[1].kind != V_NONE;
    if (str_is(v->s, "+"))
        p->size = end;
    else
        p->size = named ? end - p->at : dim_sub(s->cx->types, extent, p->at);
    p->all = !p->v && p->at == 0 && p->size == extent;
}
typedef struct {
    State *s;
    const Eqn *e;
    uint32_t operand;
} Operands;
static Val next_operand(void *user) {
    Operands *o = user;
    return held(o->s, o->e->in.at[o->operand++]);
}
static bool places_settle(State *s, View *view) {
    uint32_t rank = b_type(&s->b, view->x)->rank, most = rank;
    view->whole = true;
    for (uint32_t i = 0; i < rank; i++) {
        const Place *p = &view->places[i];
        uint32_t own = p->v ? b_type(&s->b, p->v)->rank : 0;
        view->whole = view->whole && p->all;
        view->arrays = view->arrays || (p->position && own) || p->stride > 1;
        if (own > most) most = own;
    }
    if (most > COMPILED_RANK)
        s->b.failed = !diag(s->cx->diags, s->b.span, "more than %d dimensions are not supported yet", COMPILED_RANK);
    return !s->b.failed;
}
static void places(State *s, View *view, const Value *index, Operands *o) {
    const ArrayType *t = b_type(&s->b, view->x);
    uint32_t n = index->list.n;
    view->places = arena_new(s->cx->arena, Place, t->rank + 1);
    if (n == 1 && index->list.at[0].kind == V_TEXT && str_is(index->list.at[0].s, "...")) n = 0;
    for (uint32_t i = 0; i < t->rank; i++)
        place_of(s, &view->places[i], i < n ? &index->list.at[i] : NULL, t->dims[i], next_operand, o);
    places_settle(s, view);
}
/* NDIndexer[(PyTreeDef((*, CustomNode(Slice[(0, 4, 1)], [None, None]))), (3, 4), ())]: `*` is a position, a slice has
   start, size and stride; a start that is an operand is None, and its node has a `*`. */
static bool places_of_tree(State *s, View *view, const Value *node, Operands *o) {
    const ArrayType *t = b_type(&s->b, view->x);
    const char *begin = "NDIndexer[(PyTreeDef((";
    Str text = node->kind == V_LIST && node->list.n && str_is(node->s, "CustomNode") ? node->list.at[0].s : (Str){0};
    if (!begins(text, begin)) return false;
    const char *c = str_c(s->cx->arena, text) + strlen(begin);
    view->places = arena_new(s->cx->arena, Place, t->rank + 1);
    for (uint32_t i = 0; i < t->rank; i++, c += strspn(c, ", ")) {
        Place *p = &view->places[i];
        *p = (Place){.position = *c == '*', .size = t->dims[i]};
        if (p->position) {
            p->v = next_operand(o);
            c++;
            continue;
        }
        long long start = 0, size, stride;
        int used = 0;
        bool moves =
            sscanf(c, "CustomNode(Slice[(None, %lld, %lld)], [*, None])%n", &size, &stride, &used) == 2 && used;
        if (!moves) sscanf(c, "CustomNode(Slice[(%lld, %lld, %lld)], [None, None])%n", &start, &size, &stride, &used);
        if (!used) return false;
        if (moves) p->v = next_operand(o);
        p->at = start, p->size = size, p->stride = stride;
        p->all = !moves && start == 0 && stride == 1 && p->size == t->dims[i];
        c += used;
    }
    return places_settle(s, view);
}

/* A scalar index as JAX takes it: 32 bits, counted from the end if negative. */
static Val wrapped(State *s, Val i, Dim extent) {
    Builder *b = &s->b;
    const ArrayType *t = b_type(b, i);
    Dtype d = t->dtype;
    if (dtype_info[d].kind == DK_UINT) return i;
    Val n = b_full(b, b_dim(b, d, extent), t->rank, t->dims), zero = b_full_like(b, i, 0);
    return b_select(b, b_lt(b, i, zero), i, b_add(b, i, n));
}
static Val start_of(State *s, const Place *p, Dim extent) {
    return p->v ? wrapped(s, b_convert(&s->b, p->v, DT_i32), extent) : b_int(&s->b, DT_i32, p->at);
}
/* The extents of a block: 1 for a position. */
static Dim *block(State *s, const View *w, bool *moves) {
    uint32_t rank = b_type(&s->b, w->x)->rank;
    Dim *sizes = arena_new(s->cx->arena, Dim, rank + 1);
    *moves = false;
    for (uint32_t i = 0; i < rank; i++) {
        sizes[i] = w->places[i].position ? 1 : w->places[i].size;
        *moves = *moves || w->places[i].v;
    }
    return sizes;
}
static Val read_block(State *s, const View *w) {
    Builder *b = &s->b;
    const ArrayType *t = b_type(b, w->x);
    bool moves;
    Dim *sizes = block(s, w, &moves);
    Vals starts = vals_new(s, t->rank);
    Dim *kept = arena_new(s->cx->arena, Dim, 3 * (t->rank + 1)), *from = kept + t->rank, *to = from + t->rank;
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->rank; i++) {
        if (moves) add(&starts, start_of(s, &w->places[i], t->dims[i]));
        from[i] = w->places[i].at;
        to[i] = dim_add(s->cx->types, from[i], sizes[i]);
        if (!w->places[i].position) kept[n++] = sizes[i];
    }
    Val part = moves ? b_dynamic_slice(b, w->x, starts.at, sizes) : b_slice(b, w->x, from, to, NULL);
    return b_reshape(b, part, n, kept);
}
static Val write_block(State *s, const View *w, Val v) {
    Builder *b = &s->b;
    const ArrayType *t = b_type(b, w->x);
    bool moves;
    Vals starts = vals_new(s, t->rank);
    v = b_reshape(b, v, t->rank, block(s, w, &moves));
    for (uint32_t i = 0; i < t->rank; i++) add(&starts, start_of(s, &w->places[i], t->dims[i]));
    return b_dynamic_update_slice(b, w->x, v, starts.at);
}

/* ---- places that are arrays: a gather or scatter. Whole ranges are windows; all other axes are indexed, ranges by
   their numbers. The axes of the arrays are together in the place of the first position, or in front if the positions
   are not adjacent. */
typedef struct {
    uint32_t rank, nbatch, nindexed; /* of the view; its axes that are not windows; the indexed axes of x */
    Dim batch[2 * MAX_RANK];         /* their extents */
    int64_t window[MAX_RANK], axes[MAX_RANK],
        at[MAX_RANK]; /* axes of the result that are windows; of x that are indexed; by axis of x: the axis
                                              of the batch where it begins */
    uint32_t nwindow;
} Layout;

static Layout layout_of(State *s, const View *w) {
    Builder *b = &s->b;
    const ArrayType *x = b_type(b, w->x), *array = NULL;
    Layout l = {0};
    uint32_t kept = 0, first = 0, last = 0, positions = 0, at, ranges = 0;
    for (uint32_t i = 0; i < x->rank; i++) {
        const Place *p = &w->places[i];
        if (p->position && p->v && b_type(b, p->v)->rank) array = b_type(b, p->v);
        if (!p->all) l.axes[l.nindexed++] = i;
        if (p->position && !positions++) first = kept;
        if (p->position)
            last = kept;
        else
            kept++;
    }
    at = first == last ? first : 0;
    for (uint32_t i = 0; i <= x->rank; i++) {
        if (ranges == at && array) { /* the place of the arrays' axes */
            for (uint32_t k = 0; k < x->rank; k++)
                if (w->places[k].position) l.at[k] = l.nbatch;
            for (uint32_t k = 0; k < array->rank; k++) l.batch[l.nbatch++] = array->dims[k];
            l.rank += array->rank;
            array = NULL;
        }
        if (i == x->rank || w->places[i].position) continue;
        ranges++;
        if (w->places[i].all) {
            l.window[l.nwindow++] = l.rank++;
            continue;
        }
        l.rank++;
        l.at[i] = l.nbatch;
        l.batch[l.nbatch++] = w->places[i].size;
    }
    return l;
}
/* The indices: [batch, indexed axes]. */
static Val indices(State *s, const View *w, const Layout *l) {
    Builder *b = &s->b;
    Val *parts = arena_new(s->cx->arena, Val, l->nindexed + 1);
    Dtype d = DT_i32;
    for (uint32_t i = 0; i < l->nindexed; i++) {
        const Place *p = &w->places[l->axes[i]];
        const DtypeInfo *info = p->v ? &dtype_info[b_type(b, p->v)->dtype] : NULL;
        if (info && info->bits + (info->kind == DK_UINT) > 32) d = DT_i64;
    }
    for (uint32_t i = 0; i < l->nindexed; i++) {
        const Place *p = &w->places[l->axes[i]];
        Dim extent = b_type(b, w->x)->dims[l->axes[i]];
        Val v = p->v ? wrapped(s, b_convert(b, p->v, d), extent) : b_int(b, d, p->at);
        if (!p->position) {
            Val numbers = b_iota(b, d, 1, &p->size, 0);
            if (p->stride > 1) numbers = b_mul(b, numbers, b_full(b, b_int(b, d, p->stride), 1, &p->size));
            v = b_add(b, numbers, b_full(b, v, 1, &p->size));
        }
        int64_t axes[MAX_RANK];
        uint32_t rank = v ? b_type(b, v)->rank : 0;
        for (uint32_t k = 0; k < rank; k++) axes[k] = l->at[l->axes[i]] + k;
        Dim dims[2 * MAX_RANK + 1];
        memcpy(dims, l->batch, l->nbatch * sizeof *dims);
        dims[l->nbatch] = 1;
        parts[i] = b_broadcast(b, v, l->nbatch + 1, dims, axes);
    }
    return b_concatenate(b, l->nindexed, parts, l->nbatch);
}
static Places places_at(const Layout *l, const char *mode) {
    const Ints axes = {(int64_t *)l->axes, l->nindexed}, windows = {(int64_t *)l->window, l->nwindow};
    return (Places){.n = {.windows = windows, .dropped = axes, .map = axes}, .mode = str(mode)};
}
static Val gathered(State *s, const View *w) {
    Builder *b = &s->b;
    Layout l = layout_of(s, w);
    const ArrayType *x = b_type(b, w->x);
    Dim sizes[MAX_RANK];
    for (uint32_t i = 0; i < x->rank; i++) sizes[i] = w->places[i].all ? x->dims[i] : 1;
    return b_gather(b, w->x, indices(s, w, &l), sizes, places_at(&l, "GatherScatterMode.PROMISE_IN_BOUNDS"));
}
/* P_scatter or P_scatter_add. */
static Val scattered(State *s, const View *w, Val v, Prim how) {
    Layout l = layout_of(s, w);
    return b_scatter(&s->b, how, w->x, indices(s, w, &l), v, places_at(&l, "GatherScatterMode.FILL_OR_DROP"));
}

/* ---- {reshape([4, 3])}, {transpose([1, 0])}, {bitcast(int32)} */
static bool unknown_view(State *s, const View *w) {
    if (!s->b.failed)
        diag(s->cx->diags, s->b.span, "a reference seen by '%.*s' is not supported yet", SF(w->transform));
    s->b.failed = true;
    return false;
}
static Val transformed(State *s, const View *w) {
    Builder *b = &s->b;
    Dims given = text_numbers(s->cx, w->transform);
    if (begins(w->transform, "{reshape(")) return b_reshape(b, w->x, given.n, given.at);
    if (begins(w->transform, "{transpose(")) return b_transpose(b, w->x, given.at);
    return unknown_view(s, w);
}
static Val transformed_back(State *s, const View *w, Val v) {
    Builder *b = &s->b;
    const ArrayType *t = b_type(b, w->x);
    Dims given = text_numbers(s->cx, w->transform);
    if (begins(w->transform, "{reshape(")) return b_reshape(b, v, t->rank, t->dims);
    int64_t *back = arena_new(s->cx->arena, int64_t, t->rank + 1);
    for (uint32_t i = 0; i < t->rank; i++) back[given.at[i]] = i;
    return b_transpose(b, v, back);
}

static Val seen(State *s, const View *w) {
    if (s->b.failed) return VAL_FAILED;
    if (w->transform.n) return transformed(s, w);
    return w->whole ? w->x : w->arrays ? gathered(s, w) : read_block(s, w);
}
static Val written(State *s, const View *w, Val v) {
    if (s->b.failed) return VAL_FAILED;
    if (w->transform.n) return transformed_back(s, w, v);
    return w->whole ? v : w->arrays ? scattered(s, w, v, P_scatter) : write_block(s, w, v);
}
/* The view of an equation, through all of its brackets. */
static Val views(State *s, const Eqn *e, uint32_t operands, Views *views) {
    const Value *list = tree_of(e);
    bool tree = list != NULL;
    each(const Param, q, e->params)
        if (q->key == K_other && str_is(q->name, "index")) list = &q->value, tree = false;
    uint32_t n = list ? list->list.n : 0;
    *views = (Views){arena_new(s->cx->arena, View, n + 1), n};
    Operands o = {s, e, operands};
    Val x = held(s, e->in.at[0]);
    for (uint32_t i = 0; i < n && !s->b.failed; i++) {
        const Value *v = &list->list.at[i];
        View *w = &views->at[i];
        *w = (View){.x = x};
        if (tree && !places_of_tree(s, w, v, &o))
            s->b.failed =
                !diag(s->cx->diags, e->span, "%s: what 'tree' describes is not supported yet", prim_name[e->prim]);
        else if (!tree && v->kind == V_TEXT)
            w->transform = v->s;
        else if (!tree)
            places(s, w, v, &o);
        x = seen(s, w);
    }
    return x;
}
static void write_through(State *s, const Eqn *e, const Views *views, uint32_t n, Val v) {
    for (uint32_t i = n; i-- > 0;) v = written(s, &views->at[i], v);
    hold(s, e->in.at[0], v);
}

/* ---- reading and writing */
static bool state_get(State *s, const Eqn *e) {
    Views w;
    put(s, e->out.at[0], views(s, e, 1, &w));
    return !s->b.failed;
}
static bool state_swap(State *s, const Eqn *e) {
    Views w;
    Val new = held(s, e->in.at[1]);
    put(s, e->out.at[0], views(s, e, 2, &w));
    write_through(s, e, &w, w.n, new);
    return !s->b.failed;
}
static bool state_addupdate(State *s, const Eqn *e) {
    Views w;
    Val old = views(s, e, 2, &w), v = held(s, e->in.at[1]);
    const View *last = w.n ? &w.at[w.n - 1] : NULL;
    if (s->b.failed) return false;
    if (last && last->arrays) /* an element that occurs twice is added to twice */
        write_through(s, e, &w, w.n - 1, scattered(s, last, v, P_scatter_add));
    else
        write_through(s, e, &w, w.n, b_add(&s->b, old, v));
    return !s->b.failed;
}

/* ---- programs */
static Jaxpr *state_jaxpr(void *user, const Jaxpr *j);

/* The final contents of references, by input of `old`: they follow its results, in the order of its references; 0 for
   those that are not written. */
static Val *finals(State *s, const Jaxpr *old, const Jaxpr *new) {
    Val *v = arena_new(s->cx->arena, Val, old->in.n + 1);
    uint32_t k = old->out.n;
    for (uint32_t i = 0; i < old->in.n; i++) {
        if (!is_ref(s, old->in.at[i])) continue;
        Val end = new->out.at[k++];
        if (end != new->in.at[i]) v[i] = end;
    }
    return v;
}
/* A copy of `j` with these inputs, in this order, and these results; values that are not inputs of `j` become further
   inputs. */
static Jaxpr *arranged(State *s, const Jaxpr *j, Vals in, Vals out) {
    ValMap map = {.cx = s->cx, .sparse = true};
    Eqns eqns = {0};
    Vals fresh = vals_new(s, j->in.n);
    for (uint32_t i = 0; i < j->in.n; i++) {
        add(&fresh, val_new(s->cx, val_type(s->cx, j->in.at[i]), val_info(s->cx, j->in.at[i])->span));
        valmap_put(&map, j->in.at[i], fresh.at[i]);
    }
    Text key = {.arena = s->cx->arena};
    text_put(&key, (Str){(const char *)&j, sizeof j});
    text_put(&key, (Str){(const char *)&in.n, sizeof in.n});
    each(const Val, v, in) {
        uint32_t part[2] = {*v, 0};
        if (valmap_get(&map, *v) == *v) part[0] = 0, part[1] = val_type(s->cx, *v);
        text_put(&key, (Str){(const char *)part, sizeof part});
    }
    text_put(&key, (Str){(const char *)out.at, out.n * sizeof *out.at});
    if (*memo_at(&s->arranged, key.at, key.n)) return *memo_at(&s->arranged, key.at, key.n);
    if (!jaxpr_splice(&map, &eqns, j, fresh, j->span)) s->failed = true;
    Jaxpr *new = jaxpr_with(s->cx, j, eqns, vals_rewrite(&map, out));
    new->in = vals_rewrite(&map, in);
    new->out_at = NULL;
    new->name = (Str){0};
    return *memo_at(&s->arranged, key.at, key.n) = new;
}
/* A result that is the new content of the reference. */
static Val new_content(State *s, Val ref, const Eqn *e) {
    Val v = val_new(s->cx, type_plain(s->cx->types, val_type(s->cx, valmap_get(&s->map, ref))), e->span);
    hold(s, ref, v);
    return v;
}

static void cond_values(State *s, const Eqn *e) {
    Arena *arena = s->cx->arena;
    Cond old = cond_of(e), new = old;
    uint32_t n = old.in.n;
    Val **ends = arena_new(arena, Val *, old.branches.n);
    bool *changes = arena_new(arena, bool, n + 1);
    new.branches.at = arena_new(arena, Jaxpr *, old.branches.n);
    for (uint32_t k = 0; k < old.branches.n; k++) {
        new.branches.at[k] = state_jaxpr(s, old.branches.at[k]);
        if (s->failed) return;
        ends[k] = finals(s, old.branches.at[k], new.branches.at[k]);
        for (uint32_t i = 0; i < n; i++) changes[i] = changes[i] || ends[k][i];
    }
    for (uint32_t k = 0; k < old.branches.n; k++) {
        Jaxpr **j = &new.branches.at[k];
        Vals results = vals_new(s, old.out.n + n);
        for (uint32_t i = 0; i < old.out.n; i++) add(&results, (*j)->out.at[i]);
        for (uint32_t i = 0; i < n; i++)
            if (changes[i]) add(&results, ends[k][i] ? ends[k][i] : (*j)->in.at[i]);
        *j = arranged(s, *j, (*j)->in, results);
    }
    new.index = vals_held(s, old.index);
    new.in = vals_held(s, old.in);
    new.out = vals_new(s, old.out.n + n);
    each(Val, v, old.out) add(&new.out, *v);
    for (uint32_t i = 0; i < n; i++)
        if (changes[i]) add(&new.out, new_content(s, old.in.at[i], e));
    push(arena, &s->b.eqns, cond_eqn(arena, e, &new));
}

/* The condition and the body take constants, including references, and carries. References that the body writes become
   carries, which the condition takes too. */
static void while_values(State *s, const Eqn *e) {
    Arena *arena = s->cx->arena;
    const While old = while_of(e);
    Jaxpr *test = state_jaxpr(s, old.cond), *body = state_jaxpr(s, old.body);
    if (s->failed) return;
    const While turn = while_turn(&old, test, body);
    Val *test_ends = finals(s, old.cond, test), *ends = finals(s, old.body, body);
    uint32_t nc = old.cond_consts.n, nb = old.body_consts.n, n = nb + old.carry.n;
    While new = {.cond_consts = vals_new(s, nc), .body_consts = vals_new(s, nb), .carry = vals_new(s, n)}, in = new;
    in.cond_consts = vals_new(s, nc), in.body_consts = vals_new(s, nb), in.carry = vals_new(s, n);
    in.tested = vals_new(s, n), new.end = vals_new(s, n), in.end = vals_new(s, n);
    for (uint32_t i = 0; i < nc; i++) {
        if (test_ends[i])
            s->failed =
                !diag(s->cx->diags, e->span, "while: a condition that writes to a reference is not supported yet");
        bool carried = false;
        for (uint32_t k = 0; k < nb; k++) carried |= ends[k] && old.body_consts.at[k] == old.cond_consts.at[i];
        if (carried) continue;
        add(&new.cond_consts, held(s, old.cond_consts.at[i]));
        add(&in.cond_consts, turn.cond_consts.at[i]);
    }
    for (uint32_t k = 0; k < old.carry.n; k++) {
        add(&new.carry, held(s, old.carry.at[k])), add(&new.end, old.end.at[k]);
        add(&in.tested, turn.tested.at[k]), add(&in.carry, turn.carry.at[k]), add(&in.end, turn.end.at[k]);
    }
    for (uint32_t k = 0; k < nb; k++)
        if (!ends[k])
            add(&new.body_consts, held(s, old.body_consts.at[k])), add(&in.body_consts, turn.body_consts.at[k]);
    for (uint32_t k = 0; k < nb; k++) {
        if (!ends[k]) continue;
        Val ref = old.body_consts.at[k], input = turn.body_consts.at[k], seen_by_test = 0;
        for (uint32_t i = 0; i < nc; i++)
            if (old.cond_consts.at[i] == ref) seen_by_test = turn.cond_consts.at[i];
        if (!seen_by_test) seen_by_test = val_new(s->cx, val_type(s->cx, input), e->span);
        add(&new.carry, held(s, ref)), add(&new.end, new_content(s, ref, e));
        add(&in.tested, seen_by_test), add(&in.carry, input), add(&in.end, ends[k]);
    }
    new.cond = arranged(s, test, vals_joined(arena, 2, (Vals[]){in.cond_consts, in.tested}), test->out);
    new.body = arranged(s, body, vals_joined(arena, 2, (Vals[]){in.body_consts, in.carry}), in.end);
    push(arena, &s->b.eqns, while_eqn(arena, e, &new));
}

/* References may be constants or scanned operands; for the latter an iteration has a reference to a slice. Constants
   that the body writes become carries, slices become results. */
static void scan_values(State *s, const Eqn *e) {
    Arena *arena = s->cx->arena;
    const Scan old = scan_of(e);
    Jaxpr *body = state_jaxpr(s, old.body);
    if (s->failed) return;
    const Scan turn = scan_turn(&old, body);
    const Val *ends = finals(s, old.body, body), *part_ends = ends + old.consts.n + old.carry.n;
    uint32_t nk = old.consts.n, nc = old.carry.n, nx = old.xs.n, ny = old.ys.n;
    Scan new = old, in = old;
    new.consts = vals_new(s, nk), new.carry = vals_new(s, nk + nc), new.xs = vals_held(s, old.xs);
    in.consts = vals_new(s, nk), in.carry = vals_new(s, nk + nc);
    new.end = vals_new(s, nk + nc), new.ys = vals_new(s, ny + nx);
    in.end = vals_new(s, nk + nc), in.ys = vals_new(s, ny + nx);
    for (uint32_t i = 0; i < nc; i++) {
        add(&new.carry, held(s, old.carry.at[i])), add(&new.end, old.end.at[i]);
        add(&in.carry, turn.carry.at[i]), add(&in.end, turn.end.at[i]);
    }
    for (uint32_t i = 0; i < nk; i++)
        if (!ends[i]) add(&new.consts, held(s, old.consts.at[i])), add(&in.consts, turn.consts.at[i]);
    for (uint32_t i = 0; i < nk; i++) {
        if (!ends[i]) continue;
        add(&new.carry, held(s, old.consts.at[i])), add(&new.end, new_content(s, old.consts.at[i], e));
        add(&in.carry, turn.consts.at[i]), add(&in.end, ends[i]);
    }
    for (uint32_t i = 0; i < ny; i++) add(&in.ys, turn.ys.at[i]), add(&new.ys, old.ys.at[i]);
    for (uint32_t i = 0; i < nx; i++)
        if (part_ends[i]) add(&in.ys, part_ends[i]), add(&new.ys, new_content(s, old.xs.at[i], e));
    new.body = arranged(s, body, vals_joined(arena, 3, (Vals[]){in.consts, in.carry, turn.xs}),
                        vals_joined(arena, 2, (Vals[]){in.end, in.ys}));
    push(arena, &s->b.eqns, scan_eqn(arena, e, &new));
}

/* ---- programs that run on references of their own, whose final contents are the results */
static void run_ended(State *s, const Eqn *e, uint32_t i, Val v) {
    bool outer = is_ref(s, e->in.at[i]);
    if (outer) hold(s, e->in.at[i], v);
    put(s, e->out.at[i], outer ? valmap_get(&s->map, e->in.at[i]) : v);
}
static bool state_run_state(State *s, const Eqn *e) {
    Jaxpr *old = param_jaxpr(e, K_jaxpr), *body = state_jaxpr(s, old);
    if (s->failed) return false;
    Vals in = vals_held(s, e->in);
    Vals out = b_call(&s->b, body, in.n, in.at);
    for (uint32_t i = 0; i < out.n && !s->b.failed; i++) run_ended(s, e, i, out.at[i]);
    return !s->b.failed;
}
/* for i in 0 … nsteps - 1, or in reverse: a scan that carries the index and the written references. */
static bool state_for(State *s, const Eqn *e) {
    Builder *b = &s->b;
    Jaxpr *old = param_jaxpr(e, K_jaxpr), *body = state_jaxpr(s, old);
    if (s->failed) return false;
    Val *ends = finals(s, old, body);
    uint32_t n = e->in.n, *where = arena_new(s->cx->arena, uint32_t, n + 1);
    Vals carry = vals_new(s, n + 1), args = vals_new(s, n + 1), out = vals_new(s, n + 1);
    Dtype d = b_type(b, body->in.at[0])->dtype;
    add(&carry, b_int(b, d, 0));
    for (uint32_t i = 0; i < n; i++)
        if (ends[i + 1]) where[i] = carry.n, add(&carry, held(s, e->in.at[i]));
    const Param *steps = param_find(e, K_nsteps);
    Dim length = steps->value.kind == V_DIM ? steps->value.dim : steps->value.i;
    Inner turn = b_inner_like(b, carry.n, carry.at);
    Val index = turn.in.at[0];
    add(&args, param_bool(e, K_reverse) ? b_sub(b, b_dim(b, d, dim_sub(s->cx->types, length, 1)), index) : index);
    for (uint32_t i = 0; i < n; i++) add(&args, ends[i + 1] ? turn.in.at[where[i]] : held(s, e->in.at[i]));
    Vals results = b_call(b, body, args.n, args.at);
    add(&out, b_add(b, index, b_int(b, d, 1)));
    for (uint32_t i = 0; i < n; i++)
        if (ends[i + 1]) add(&out, results.at[i]);
    b_inner_end(b, &turn, out.n, out.at);
    Vals all = b_scan(b, &turn, (Loop){.length = length, .carries = carry.n}, carry.n, carry.at);
    for (uint32_t i = 0; i < n && !b->failed; i++)
        run_ended(s, e, i, ends[i + 1] ? all.at[where[i]] : held(s, e->in.at[i]));
    return !b->failed;
}

/* A kernel without a grid: its references are the operands, then the results, then scratch. For a grid the text does
   not say which blocks its iterations see. */
static bool state_pallas_call(State *s, const Eqn *e) {
    Jaxpr *old = param_jaxpr(e, K_jaxpr), *body = old ? state_jaxpr(s, old) : NULL;
    if (s->failed) return false;
    bool ok = body && kernel_runs_once(e);
    Vals in = vals_new(s, ok ? old->in.n : 0);
    for (uint32_t i = 0; ok && i < old->in.n; i++) {
        const ArrayType *t = b_type(&s->b, body->in.at[i]);
        Val outer = i < e->in.n ? e->in.at[i] : i < e->in.n + e->out.n ? e->out.at[i - e->in.n] : 0;
        ok = is_ref(s, old->in.at[i]) &&
             (!outer || shapes_agree(s->cx, val_type(s->cx, outer), val_type(s->cx, body->in.at[i]), e->span));
        if (ok) add(&in, i < e->in.n ? held(s, outer) : b_full(&s->b, b_number(&s->b, t->dtype, 0), t->rank, t->dims));
    }
    if (!ok)
        return diag(s->cx->diags, e->span,
                    "pallas_call with a grid is not supported yet: the text does not say what its blocks are");
    Vals out = b_call(&s->b, body, in.n, in.at);
    for (uint32_t i = 0; i < e->out.n && !s->b.failed; i++) put(s, e->out.at[i], out.at[e->in.n + i]);
    return !s->b.failed;
}

static bool takes_ref(const State *s, const Eqn *e) {
    each(const Val, v, e->in)
        if (is_ref(s, *v)) return true;
    return false;
}
static void state_eqn(State *s, const Eqn *e) {
    s->b.span = e->span, s->b.whole = e->whole;
    if (rule_of[e->prim]) {
        s->failed = !rule_of[e->prim](s, e) || s->failed || s->b.failed;
        return;
    }
    if (!takes_ref(s, e)) {
        Eqn new = eqn_rewrite(&s->map, e, state_jaxpr, s);
        push(s->cx->arena, &s->b.eqns, new);
        return;
    }
    Lower how = prim_lower[e->prim];
    if (how == LOWER_COND)
        cond_values(s, e);
    else if (how == LOWER_WHILE)
        while_values(s, e);
    else if (how == LOWER_SCAN)
        scan_values(s, e);
    else
        s->failed = !diag(s->cx->diags, e->span, "%s of a reference is not supported yet", prim_name[e->prim]);
}
/* The values for the operands: the contents of references. */
static Vals values(State *s, Vals vs) {
    Vals new = vals_new(s, vs.n);
    each(Val, v, vs) {
        if (!is_ref(s, *v)) {
            add(&new, *v);
            continue;
        }
        ValInfo info = *val_info(s->cx, *v);
        info.type = type_plain(s->cx->types, info.type);
        Val x = val_new(s->cx, info.type, info.span);
        *val_info(s->cx, x) = info;
        hold(s, *v, x);
        add(&new, x);
    }
    return new;
}
static Jaxpr *state_jaxpr(void *user, const Jaxpr *j) {
    State *s = user;
    if (*memo_slot(&s->memo, j)) return *memo_slot(&s->memo, j);
    Builder outer = s->b;
    s->b = (Builder){.cx = s->cx};
    Vals in = values(s, j->in);
    add_consts(s->cx->arena, &s->b.consts, values(s, j->consts));
    for (uint32_t i = 0; i < j->eqns.n && !s->failed; i++) state_eqn(s, &j->eqns.at[i]);
    Vals out = vals_new(s, j->out.n + j->consts.n + j->in.n);
    each(const Val, v, j->out) add(&out, held(s, *v));
    each(const Val, v, j->consts)
        if (is_ref(s, *v)) add(&out, held(s, *v));
    each(const Val, v, j->in)
        if (is_ref(s, *v)) add(&out, held(s, *v));
    Jaxpr *new = jaxpr_with(s->cx, j, s->b.eqns, out);
    new->in = in;
    new->consts = (Vals){s->b.consts.at, s->b.consts.n};
    if (out.n > j->out.n) new->effects = (Str){0}; /* no references are left to read or write */
    s->b = outer;
    return *memo_slot(&s->memo, j) = new;
}
Jaxpr *pass_state(Ctx *cx, const Jaxpr *j) {
    State s = {.cx = cx, .map.cx = cx, .now.cx = cx, .memo.arena = cx->arena, .arranged.arena = cx->arena};
    Jaxpr *new = state_jaxpr(&s, j);
    return s.failed ? NULL : new;
}
