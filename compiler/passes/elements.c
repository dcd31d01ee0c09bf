/* Loops that treat each element of an array alone, as those of a batched program do, become one elementwise equation:

     y:f32[n] = while[… condition and body on arrays f32[n] …] x
     y:f32[n] = elementwise[jaxpr={ lambda ; a:f32[]. let b:f32[] = while[… the same on scalars …] a in (b,) }] x

   It is a part of a kernel like any other elementwise equation: carries stay in registers, and each vector of elements
   takes as many turns as its own elements need. The axes of the elements are those of the carries, the leading ones where
   a carry has more: an element then has several scalars, at most MOST_PARTS, such as the coordinates of a point or a small
   matrix. The body must be arithmetic on them, or move them between places that are known.

   A loop that runs while any element does must leave those alone that are done, as loops of a batch do: a carry becomes
   select_n(here, carry, …) or and(here, …), where `here` is the carry that is true for elements that are not done.
   Carries without the axes of the elements, such as counters, then have another value at the end for each element:
   nothing may use it. */
#include "elements.h"
#include "../typecheck/rule.h"

/* ---- loops */
typedef struct {
    Val *at;
    uint32_t n, cap;
} List;
/* Parts of an array of this type as those of `like`: a splat is repeated. */
static bool spread(Split *s, const ArrayType *t, const Parts *like, Parts *p) {
    Room r;
    if (!p->splat) return p->along == like->along && (!p->along || p->first == like->first);
    Val v = p->at[0];
    if (!room_of(s, t, like, &r)) return false;
    *p = room_for(s, *like, &r);
    for (uint32_t i = 0; i < r.size; i++) p->at[i] = v;
    return true;
}
/* A loop being split. The carries of scalars follow each other, a counter before them if it is a scan. */
typedef struct {
    Vals carry, end;
    Parts *parts; /* by carry: the operands', one list for each */
    List init;
    Type *types;
    bool counts;
} Loops;
static bool open_loop(Split *s, Loops *l) {
    Arena *arena = s->cx->arena;
    l->parts = arena_new(arena, Parts, l->carry.n + 1);
    if (l->counts) push(arena, &l->init, b_int(&s->b, DT_i64, 0));
    for (uint32_t i = 0; i < l->carry.n; i++) {
        const Parts *x = parts_of(s, l->carry.at[i]);
        const ArrayType *t = val_array(s->cx, l->carry.at[i]);
        if (!x) return false;
        l->parts[i] = *x;
        Parts like = {.along = t->rank > 0 && begins_with_elements(s, t)};
        if (!spread(s, t, x->splat ? &like : x, &l->parts[i])) return false;
        for (uint32_t k = 0; k < l->parts[i].n; k++) push(arena, &l->init, l->parts[i].at[k]);
    }
    l->types = arena_new(arena, Type, l->init.n + 1);
    for (uint32_t i = 0; i < l->init.n; i++)
        l->types[i] = type_of(s->cx->types, val_array(s->cx, l->init.at[i])->dtype, 0, NULL);
    return true;
}
/* Gives the inputs or results of a program, or of the loop, these scalars. */
static void bind(Split *s, const Loops *l, Vals to, const Val *scalars) {
    scalars += l->counts;
    for (uint32_t i = 0; i < to.n; i++) {
        Parts p = l->parts[i];
        p.at = (Val *)scalars;
        scalars += p.n;
        set_parts(s, to.at[i], p);
    }
}
/* One without parts ends the attempt where it is used. */
static void bind_consts(Split *s, Vals to, Vals operands) {
    for (uint32_t i = 0; i < to.n; i++) {
        const Parts *x = parts_of(s, operands.at[i]);
        if (x) set_parts(s, to.at[i], *x);
    }
}
/* In a program on scalars: the equation that computes v; NULL: none. */
static const Eqn *maker(const Jaxpr *j, Val v) {
    for (uint32_t i = j->eqns.n; i-- > 0;)
        if (j->eqns.at[i].out.at[0] == v) return &j->eqns.at[i];
    return NULL;
}
/* Is the bool v false wherever `here` is? */
static bool implies(const Jaxpr *j, Val v, Val here) {
    const Eqn *e = v == here ? NULL : maker(j, v);
    return v == here || (e && e->prim == P_and && (implies(j, e->in.at[0], here) || implies(j, e->in.at[1], here)));
}
/* Does it count how often an element is here? */
static bool adds_nothing(const Ctx *cx, const Jaxpr *j, const Eqn *add, Val here, Val old) {
    const Eqn *e = maker(j, add->in.at[add->in.at[0] == old]);
    bool both = add->in.at[0] == old || add->in.at[1] == old;
    if (!both || !e || e->prim != P_convert_element_type) return false;
    return (OF_INT >> dtype_info[val_array(cx, old)->dtype].kind & 1) && implies(j, e->in.at[0], here);
}
/* Does an element that is not here keep its carry? */
static bool keeps(const Ctx *cx, const Jaxpr *j, Val here, Val old, Val new) {
    const Eqn *e = maker(j, new);
    if (new == old || (old == here && implies(j, new, here))) return true;
    if (!e || e->prim == P_add) return e && adds_nothing(cx, j, e, here, old);
    return e->prim == P_select_n && e->in.n == 3 && e->in.at[1] == old && implies(j, e->in.at[0], here);
}
/* Does an iteration leave elements that are not here alone, as far as the results of the loop are used? `j` takes the
   carry last and returns the next one first. */
static bool leaves(const Split *s, const Loops *l, const Jaxpr *j, Val here) {
    uint32_t n = 0, first = j->in.n - l->init.n;
    for (uint32_t i = 0; i < l->carry.n; i++) {
        const Parts *p = &l->parts[i];
        if (!p->along && s->used[l->end.at[i]]) return false;
        for (uint32_t k = 0; k < p->n; k++, n++)
            if (p->along && !keeps(s->cx, j, here, j->in.at[first + n], j->out.at[n])) return false;
    }
    return true;
}
/* The condition, as a scalar, and in s->here what it asks of the elements; 0: nothing. It is false where that is. */
static bool split_test(Split *s, const Jaxpr *cond, Val *test) {
    bool inner = s->test;
    s->here = 0, s->test = true;
    bool ok = split_elements(s, cond->eqns);
    const Parts *p = parts_of(s, cond->out.at[0]);
    s->test = inner;
    if (!ok || !p || p->n != 1 || p->along) return false;
    *test = p->at[0];
    return !s->here || implies(&(Jaxpr){.eqns = s->b.eqns}, *test, s->here);
}
/* The results of one iteration, as scalars. */
static bool split_turn(Split *s, const Loops *l, Vals out, const Inner *turn, Val *next) {
    uint32_t n = 0;
    if (l->counts) {
        Val counter = turn->in.at[0];
        next[n++] = b_add(&s->b, counter, b_int(&s->b, DT_i64, 1));
    }
    for (uint32_t i = 0; i < out.n; i++) {
        const Parts *x = parts_of(s, out.at[i]);
        if (!x) return false;
        Parts p = *x;
        if (!spread(s, val_array(s->cx, out.at[i]), &l->parts[i], &p) || p.n != l->parts[i].n) return false;
        for (uint32_t k = 0; k < p.n; k++) next[n++] = p.at[k];
    }
    return !s->b.failed;
}
static bool finish_loop(Split *s, Loops *l, const Inner *test, const Inner *turn) {
    Vals y = b_while(&s->b, test, turn, l->init.n, l->init.at);
    if (s->b.failed) return false;
    bind(s, l, l->end, y.at);
    return true;
}
/* What an inner program gives for these operands, beside those that it captured. */
static Val applied(Split *s, const Inner *program, Vals operands) {
    Vals in = vals_joined(s->cx->arena, 2, (Vals[]){program->captured, operands});
    return b_call(&s->b, program->j, in.n, in.at).at[0];
}
/* An iteration that computes itself, as the condition does, which elements are here gets this from the one before. */
static bool carry_condition(Split *s, Loops *l, const Inner *test, const Inner *turn) {
    Ctx *cx = s->cx;
    uint32_t n = l->init.n;
    Vals init = {l->init.at, n};
    Jaxpr *j = pass_cse(cx, turn->j);
    Val here = j->out.at[n];
    ValMap map = {.cx = cx, .sparse = true};
    Type *types = arena_new(cx->arena, Type, n + 1);
    if (!leaves(s, l, j, here)) return false;
    memcpy(types, l->types, n * sizeof *types);
    types[n] = type_of(cx->types, DT_bool, 0, NULL);
    push(cx->arena, &l->init, applied(s, test, init));
    Inner more = b_inner(&s->b, n + 1, types);
    b_inner_end(&s->b, &more, 1, &more.in.at[n]);
    Inner body = b_inner(&s->b, n + 1, types);
    Vals carry = vals_part(body.in, 0, n), in = vals_joined(cx->arena, 2, (Vals[]){turn->captured, carry});
    for (uint32_t i = 0; i < in.n; i++) valmap_put(&map, j->in.at[i], in.at[i]);
    each(const Eqn, e, j->eqns) {
        Eqn copy = eqn_rewrite(&map, e, NULL, NULL);
        Val y = e->out.n == 1 && e->out.at[0] == here ? body.in.at[n] : 0;
        Vals new = y ? (Vals){&y, 1} : b_eqn(&s->b, &copy, e->out.n, NULL);
        for (uint32_t i = 0; i < e->out.n; i++) valmap_put(&map, e->out.at[i], new.at[i]);
    }
    Vals next = vals_rewrite(&map, j->out);
    next.at[n] = b_and(&s->b, body.in.at[n], applied(s, test, vals_part(next, 0, n)));
    b_inner_end(&s->b, &body, n + 1, next.at);
    return finish_loop(s, l, &more, &body);
}
static bool split_while(Split *s, const Eqn *e) {
    While w = while_of(e), turn = while_turn(&w, w.cond, w.body);
    Loops l = {.carry = w.carry, .end = w.end};
    Val out;
    if (!open_loop(s, &l)) return false;
    uint32_t n = l.init.n, at = 0;
    Inner test = b_inner(&s->b, n, l.types);
    bind_consts(s, turn.cond_consts, w.cond_consts);
    bind(s, &l, turn.tested, test.in.at);
    if (!split_test(s, w.cond, &out)) return false;
    bool any = s->here != 0;
    while (at < n && test.in.at[at] != s->here) at++;
    b_inner_end(&s->b, &test, 1, &out);
    Inner body = b_inner(&s->b, n, l.types);
    Val *next = arena_new(s->cx->arena, Val, n + 1);
    if (any) next[n] = at < n ? body.in.at[at] : applied(s, &test, body.in);
    bind_consts(s, turn.body_consts, w.body_consts);
    bind(s, &l, turn.carry, body.in.at);
    if (!split_elements(s, w.body->eqns) || !split_turn(s, &l, turn.end, &body, next)) return false;
    bool again = any && at == n;
    b_inner_end(&s->b, &body, n + again, next);
    if (again) return carry_condition(s, &l, &test, &body);
    return (!any || leaves(s, &l, body.j, body.j->in.at[body.captured.n + at])) && finish_loop(s, &l, &test, &body);
}
/* The number of iterations of a scan: a scalar of the program, or of the equations before it, which `add_lengths` has
   written; 0: it is neither. */
static Val length_of(Split *s, Dim n) {
    uint32_t i;
    if (dim_is_const(n)) return b_int(&s->b, DT_i64, n);
    const DimExpr *x = dim_at(s->cx->types, n);
    const Parts *p = x->kind == DIM_BOUND ? parts_of(s, x->val) : NULL;
    if (p) return b_convert(&s->b, p->at[0], DT_i64);
    return intern_find(&s->lengths, &n, sizeof n, &i) ? s->length.at[i] : 0;
}
static void add_length(Split *s, const Eqn *e) {
    Dim n = e->prim == P_scan ? scan_of(e).length : 0;
    bool fresh = false;
    if (!dim_is_const(n) && !dim_has_bound(s->cx->types, n)) intern(&s->lengths, &n, sizeof n, &fresh);
    if (fresh) push(s->cx->arena, &s->length, b_dim(&s->b, DT_i64, n));
}
static void add_lengths(Split *s, const Eqn *e) {
    add_length(s, e);
    Jaxprs all = jaxprs_within(s->cx->arena, e->prim == P_scan ? scan_of(e).body : while_of(e).body);
    each(Jaxpr *, j, all)
        each(const Eqn, q, (*j)->eqns) add_length(s, q);
}
/* A scan without scanned arrays, as a while that counts. */
static bool split_scan(Split *s, const Eqn *e) {
    Scan c = scan_of(e), turn = scan_turn(&c, c.body);
    Loops l = {.carry = c.carry, .end = c.end, .counts = true};
    if (c.xs.n || c.ys.n || !open_loop(s, &l)) return false;
    Val length = length_of(s, c.length);
    if (!length) return false;
    Inner test = b_inner(&s->b, l.init.n, l.types);
    Val more = b_lt(&s->b, test.in.at[0], length);
    b_inner_end(&s->b, &test, 1, &more);
    Inner body = b_inner(&s->b, l.init.n, l.types);
    Val *next = arena_new(s->cx->arena, Val, l.init.n + 1);
    bind_consts(s, turn.consts, c.consts);
    bind(s, &l, turn.carry, body.in.at);
    if (!split_elements(s, c.body->eqns) || !split_turn(s, &l, turn.end, &body, next)) return false;
    b_inner_end(&s->b, &body, l.init.n, next);
    return finish_loop(s, &l, &test, &body);
}
/* A program that several loops share, and that has loops itself, is not copied for each. */
bool split_element_loop(Split *s, const Eqn *e) {
    const Jaxpr *body = e->prim == P_scan ? scan_of(e).body : while_of(e).body;
    bool fresh, loops = false;
    intern(&s->bodies, &body, sizeof body, &fresh);
    each(const Eqn, q, body->eqns) loops |= q->prim == P_while || q->prim == P_scan;
    if (++s->written > MOST_EQUATIONS || (!fresh && loops)) return false;
    return e->prim == P_while ? split_while(s, e) : split_scan(s, e);
}

/* ---- the pass */
typedef struct {
    Ctx *cx;
    ValMap map;
    Memo memo;
    bool *used;
} Elements;

/* The most axes that the elements may have: those that the condition asks about, else those that all carries begin
   with. */
static uint32_t common_axes(const Ctx *cx, Vals carry, const Dim **dims) {
    uint32_t n = UINT32_MAX;
    each(const Val, v, carry) {
        const ArrayType *t = val_array(cx, *v);
        if (!t->rank) continue;
        uint32_t k = 0;
        while (n != UINT32_MAX && k < n && k < t->rank && t->dims[k] == (*dims)[k]) k++;
        n = n == UINT32_MAX ? t->rank : k;
        *dims = t->dims;
    }
    return n == UINT32_MAX ? 0 : n;
}
static uint32_t element_axes(const Ctx *cx, const Eqn *e, const Dim **dims) {
    const Jaxpr *cond = e->prim == P_while ? while_of(e).cond : NULL;
    for (uint32_t i = 0; cond && i < cond->eqns.n; i++) {
        const Eqn *q = &cond->eqns.at[i];
        if (q->prim != P_reduce_or || val_array(cx, q->out.at[0])->rank) continue;
        const ArrayType *t = val_array(cx, q->in.at[0]);
        *dims = t->dims;
        return t->rank;
    }
    return common_axes(cx, e->prim == P_while ? while_of(e).carry : scan_of(e).carry, dims);
}
/* The operands of the elementwise equation: an array with the axes of the elements, or a scalar, for each part. */
static bool operand_parts(Split *s, Val v, Parts *p) {
    const ArrayType *t = val_array(s->cx, v);
    Builder *b = &s->b;
    Room r;
    *p = (Parts){.along = t->rank && begins_with_elements(s, t)};
    if (!room_of(s, t, p, &r)) return false;
    *p = room_for(s, *p, &r);
    uint32_t own = p->along ? s->rank : 0; /* its leading axes stay */
    for (uint32_t k = 0; k < r.size; k++) {
        int64_t place[COMPILED_RANK];
        Dim lo[COMPILED_RANK] = {0}, hi[COMPILED_RANK];
        place_of(&r, k, place);
        for (uint32_t i = 0; i < t->rank; i++) {
            lo[i] = i < own ? 0 : place[i];
            hi[i] = i < own ? t->dims[i] : place[i] + 1;
        }
        p->at[k] = own == t->rank ? v : b_reshape(b, b_slice(b, v, lo, hi, NULL), own, t->dims);
    }
    return true;
}
/* A result with the axes of the elements from its parts. */
static Val whole(Split *s, const ArrayType *t, uint32_t n, const Val *parts) {
    if (t->rank == s->rank) return parts[0];
    Val all = build(&s->b, P_stack, n, parts, 1, (Param[]){p_int(K_axis, s->rank)});
    return b_reshape(&s->b, all, t->rank, t->dims);
}
/* Appends what the loop becomes if the elements have these axes; false if it stays. */
static bool to_elements(Elements *m, Eqns *to, const Eqn *e, uint32_t rank, const Dim *dims) {
    Ctx *cx = m->cx;
    Split s = {.cx = cx, .rank = rank, .dims = dims, .used = m->used};
    s.b = (Builder){.cx = cx, .span = e->span, .whole = e->whole};
    s.values.arena = s.lengths.arena = s.bodies.arena = cx->arena;
    add_lengths(&s, e);
    List operands = {0}, results = {0};
    Parts *own = arena_new(cx->arena, Parts, e->in.n + 1);
    for (uint32_t i = 0; i < e->in.n; i++) {
        Val v = valmap_get(&m->map, e->in.at[i]);
        bool can = !val_info(cx, v)->lit && operand_parts(&s, v, &own[i]);
        for (uint32_t k = 0; k < own[i].n && can; k++) push(cx->arena, &operands, own[i].at[k]);
        if (!can) own[i].n = 0;
        if (val_info(cx, v)->lit) set_parts(&s, e->in.at[i], splat(&s, v));
    }
    Type *types = arena_new(cx->arena, Type, operands.n + 1);
    for (uint32_t i = 0; i < operands.n; i++)
        types[i] = type_of(cx->types, val_array(cx, operands.at[i])->dtype, 0, NULL);
    Inner program = b_inner(&s.b, operands.n, types);
    for (uint32_t i = 0, n = 0; i < e->in.n; i++) {
        if (!own[i].n) continue;
        Parts p = own[i];
        p.at = program.in.at + n;
        n += p.n;
        set_parts(&s, e->in.at[i], p);
    }
    if (!split_element_loop(&s, e)) return false;
    each(const Val, v, e->out) {
        const Parts *p = parts_of(&s, *v);
        if (!m->used[*v]) continue;
        if (!p->along) return false;
        for (uint32_t k = 0; k < p->n; k++) push(cx->arena, &results, p->at[k]);
    }
    if (!results.n) return false;
    b_inner_end(&s.b, &program, results.n, results.at);
    Vals in = vals_joined(cx->arena, 2, (Vals[]){program.captured, {operands.at, operands.n}});
    Vals y = build_many(&s.b, P_elementwise, in.n, in.at, 1, (Param[]){p_jaxpr(K_jaxpr, program.j)}, results.n, NULL);
    uint32_t n = 0;
    each(const Val, v, e->out) {
        if (!m->used[*v]) continue;
        valmap_put(&m->map, *v, whole(&s, val_array(cx, *v), parts_of(&s, *v)->n, y.at + n));
        n += parts_of(&s, *v)->n;
    }
    assert(!s.b.failed && !s.b.consts.n);
    each(const Eqn, q, s.b.eqns) push(cx->arena, to, *q);
    return true;
}

static Jaxpr *elements_jaxpr(void *user, const Jaxpr *j);
static bool elements_eqn(void *user, Eqns *to, Consts *consts, const Eqn *e) {
    Elements *m = user;
    bool loop = e->prim == P_while || e->prim == P_scan;
    const Dim *dims = NULL;
    for (uint32_t rank = loop ? element_axes(m->cx, e, &dims) : 0; rank > 0; rank--)
        if (to_elements(m, to, e, rank, dims)) return true;
    push(m->cx->arena, to, eqn_rewrite(&m->map, e, elements_jaxpr, m));
    return true;
}
static Jaxpr *elements_jaxpr(void *user, const Jaxpr *j) {
    Elements *m = user;
    return jaxpr_rewrite(&m->map, &m->memo, j, elements_eqn, m);
}
static void use(void *user, Val v) { ((Elements *)user)->used[v] = true; }

Jaxpr *pass_elements(Ctx *cx, const Jaxpr *j) {
    if (cx->stdlib_passes) return (Jaxpr *)j;
    Elements m = {.cx = cx, .map.cx = cx, .memo.arena = cx->arena, .used = arena_new(cx->arena, bool, cx->nvals)};
    Jaxprs all = jaxprs_within(cx->arena, j);
    each(Jaxpr *, k, all) {
        each(const Eqn, e, (*k)->eqns) eqn_takes(cx, e, use, &m);
        each(const Val, v, (*k)->out) use(&m, *v);
    }
    return elements_jaxpr(&m, j);
}
