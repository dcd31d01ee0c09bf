/* Loops that treat each element of an array alone, as those of a batched program do, become one elementwise equation:

     y:f32[n] = while[… condition and body on arrays f32[n] …] x
     y:f32[n] = elementwise[jaxpr={ lambda ; a:f32[]. let b:f32[] = while[… the same on scalars …] a in (b,) }] x

   It is a part of a kernel like any other elementwise equation: carries stay in registers, and each vector of elements
   takes as many turns as its own elements need. The axes of the elements are those of the carries, the leading ones
   where a carry has more: an element then has several scalars, at most MOST_PARTS, such as the coordinates of a point
   or a small matrix. The body must be arithmetic on them, or move them between places that are known; or read and
   update them at places that it computes, which is a choice among them. An operand with more scalars is an array that
   can only be read. A scan reads what it scans so. What it stacks is an array for each element, which no other loop may
   be around:

     y:f32[m,n] = elementwise[jaxpr={ lambda ; a:f32[] x:f32[m]. let
         b:f32[] y:f32[m] = scan[…] x a
       in (y,) }] a x      x: f32[m,n]

   Factors of small matrices and solves with them are arithmetic too. Outside of loops they become such an equation
   together with all around them that treats each matrix alone, so that a system is solved in registers.

   A loop that runs while any element does must leave those alone that are done, as loops of a batch do: a carry becomes
   select_n(here, carry, …) or and(here, …), where `here` is the carry that is true for elements that are not done.
   Carries without the axes of the elements, such as counters, then have another value at the end for each element:
   nothing may use it, and an element that is done may not begin again because of them. */
#include "elements.h"
#include "../typecheck/rule.h"

typedef struct {
    Ctx *cx;
    ValMap map;
    Memo memo;
    uint32_t *uses; /* by value: how many equations and programs take it */
    Intern stay;    /* loops that are not tried again */
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
/* ---- an elementwise equation being made */
/* An operand of the equation, or a part of one, as the program takes it. */
typedef struct {
    Val whole;
    Parts parts; /* all of them, in the program */
    uint32_t k;  /* the number of this one */
    bool scanned;
} Operand;
typedef struct {
    Elements *m;
    Split s;
    Inner program;
    Intern inputs; /* values of the program that stand for operands, by number */
    struct {
        Operand *at;
        uint32_t n, cap;
    } operands;
} Making;

static void begin(Making *g, Elements *m, const Eqn *e, uint32_t rank, const Dim *dims) {
    Ctx *cx = m->cx;
    *g = (Making){.m = m, .inputs.arena = cx->arena};
    g->s = (Split){.cx = cx, .rank = rank, .dims = dims, .uses = m->uses};
    g->s.b = (Builder){.cx = cx, .span = e->span, .whole = e->whole};
    g->s.values.arena = g->s.lengths.arena = g->s.bodies.arena = cx->arena;
}
/* How an operand is taken: in scalars, or if there are many, as an array that is read at computed places, after the
   first axis of which the elements' come if it is scanned. */
static bool operand_form(const Split *s, const ArrayType *t, bool scanned, Parts *p, Room *r) {
    *p = (Parts){.along = t->rank && begins_with_elements(s, t)};
    if (!scanned && room_of(s, t, p, r)) return p->n = r->size, true;
    *p = (Parts){.n = 1, .first = scanned, .table = true};
    p->along = t->rank >= scanned + s->rank && !memcmp(t->dims + scanned, s->dims, s->rank * sizeof *s->dims);
    bool axes = t->rank > (p->along ? s->rank : 0);
    for (uint32_t i = 0; i < t->rank; i++) {
        bool empty = dim_is_const(t->dims[i]) && t->dims[i] < 1, known = !dim_has_bound(s->cx->types, t->dims[i]);
        if (!is_element_axis(s, p, i) && (empty || !known)) return false;
    }
    return axes && dtype_info[t->dtype].kind != DK_KEY;
}
/* The axes of a table inside the program, then those of the elements. */
static uint32_t table_axes(const Split *s, const ArrayType *t, const Parts *p, int64_t *order, Dim *dims) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->rank; i++)
        if (!is_element_axis(s, p, i)) dims[n] = t->dims[i], order[n++] = i;
    for (uint32_t i = 0; i < s->rank && p->along; i++) order[n + i] = p->first + i;
    return n;
}
/* Gives an operand parts that the program takes if it uses them. One that has none ends the attempt where it is
   used. */
static void take_operand(Making *g, Val v, bool scanned) {
    Split *s = &g->s;
    Ctx *cx = s->cx;
    Operand o = {.whole = valmap_get(&g->m->map, v), .scanned = scanned};
    const ArrayType *t = val_array(cx, o.whole);
    int64_t order[COMPILED_RANK];
    Dim dims[COMPILED_RANK];
    Room r;
    if (val_info(cx, o.whole)->lit) set_parts(s, v, splat(s, o.whole));
    if (array_of(s, v) || !operand_form(s, t, scanned, &o.parts, &r)) return;
    uint32_t rank = o.parts.table ? table_axes(s, t, &o.parts, order, dims) : 0;
    o.parts.at = arena_new(cx->arena, Val, o.parts.n);
    for (o.k = 0; o.k < o.parts.n; o.k++) {
        Val input = o.parts.at[o.k] = val_new(cx, type_of(cx->types, t->dtype, rank, dims), s->b.span);
        intern(&g->inputs, &input, sizeof input, NULL);
        push(cx->arena, &g->operands, o);
    }
    set_parts(s, v, o.parts);
}
/* The array that the equation takes for an input of the program: with the axes of the elements last, if it has them. */
static Val operand_value(Split *s, const Operand *o) {
    const ArrayType *t = val_array(s->cx, o->whole);
    Builder *b = &s->b;
    int64_t place[COMPILED_RANK];
    Dim lo[COMPILED_RANK] = {0}, hi[COMPILED_RANK];
    Room r;
    if (o->parts.table) {
        table_axes(s, t, &o->parts, place, hi);
        Val v = o->parts.along ? b_transpose(b, o->whole, place) : o->whole;
        return o->scanned ? b_stored(b, v) : v;
    }
    uint32_t own = o->parts.along ? s->rank : 0; /* its leading axes stay */
    if (own == t->rank) return o->whole;
    bool fits = room_of(s, t, &o->parts, &r);
    assert(fits);
    place_of(&r, o->k, place);
    for (uint32_t i = 0; i < t->rank; i++) {
        lo[i] = i < own ? 0 : place[i];
        hi[i] = i < own ? t->dims[i] : place[i] + 1;
    }
    return b_reshape(b, b_slice(b, o->whole, lo, hi, NULL), own, t->dims);
}
/* A result with the axes of the elements from its parts. */
static Val whole(Split *s, const ArrayType *t, uint32_t n, const Val *parts) {
    uint32_t rank = val_array(s->cx, parts[0])->rank;
    if (t->rank == rank) return parts[0];
    Val all = build(&s->b, P_stack, n, parts, 1, (Param[]){p_int(K_axis, rank)});
    return b_reshape(&s->b, all, t->rank, t->dims);
}
/* What the program takes: operands, or scalars of the equations before it. False: no operand has the elements' axes. */
static bool program_operands(Making *g, Vals *in) {
    Split *s = &g->s;
    bool along = false;
    *in = (Vals){arena_new(s->cx->arena, Val, g->program.captured.n + 1), g->program.captured.n};
    for (uint32_t i = 0, k; i < in->n; i++) {
        Val v = g->program.captured.at[i];
        bool operand = intern_find(&g->inputs, &v, sizeof v, &k);
        along |= operand && g->operands.at[k].parts.along;
        in->at[i] = operand ? operand_value(s, &g->operands.at[k]) : v;
    }
    return along;
}
/* Appends the equation, whose results are those of these that something uses; false: it cannot be. */
static bool finish(Making *g, Eqns *to, Vals out) {
    Split *s = &g->s;
    Ctx *cx = s->cx;
    List results = {0};
    Vals in;
    uint32_t n = 0;
    if (s->arrays && s->deepest + 2 > ELEMENT_NEST) return false;
    each(const Val, v, out) {
        const Parts *p = parts_of(s, *v);
        Parts all = p ? *p : (Parts){0};
        if (!g->m->uses[*v]) continue;
        bool stack = p && p->along && p->first == 1 && s->whole;
        if (!p || (!stack && !spread_parts(s, val_array(cx, *v), &(Parts){.along = true}, &all))) return false;
        set_parts(s, *v, all);
        for (uint32_t k = 0; k < all.n; k++) push(cx->arena, &results, all.at[k]);
    }
    if (!results.n) return false;
    b_inner_end(&s->b, &g->program, results.n, results.at);
    if (!program_operands(g, &in)) return false;
    Param jaxpr = p_jaxpr(K_jaxpr, g->program.j);
    Vals y = build_many(&s->b, P_elementwise, in.n, in.at, 1, &jaxpr, results.n, NULL);
    each(const Val, v, out) {
        if (!g->m->uses[*v]) continue;
        valmap_put(&g->m->map, *v, whole(s, val_array(cx, *v), parts_of(s, *v)->n, y.at + n));
        n += parts_of(s, *v)->n;
    }
    assert(!s->b.failed && !s->b.consts.n);
    each(const Eqn, q, s->b.eqns) push(cx->arena, to, *q);
    return true;
}

/* ---- the pass */
/* Appends what the loop becomes if the elements have these axes; false if it stays. */
static bool to_elements(Elements *m, Eqns *to, const Eqn *e, uint32_t rank, const Dim *dims) {
    Making g;
    Vals xs = e->prim == P_scan ? scan_of(e).xs : (Vals){0};
    begin(&g, m, e, rank, dims);
    g.s.whole = e, g.s.stay = &m->stay;
    split_lengths(&g.s, e);
    g.program = b_inner(&g.s.b, 0, NULL);
    for (uint32_t i = 0; i < e->in.n; i++) take_operand(&g, e->in.at[i], xs.n && e->in.at + i >= xs.at);
    return split_element_loop(&g.s, e) && finish(&g, to, e->out);
}
static Jaxpr *elements_jaxpr(void *user, const Jaxpr *j);
static void elements_eqn(Elements *m, Eqns *to, const Eqn *e) {
    bool loop = e->prim == P_while || e->prim == P_scan;
    const Dim *dims = NULL;
    uint32_t k;
    for (uint32_t rank = loop ? element_axes(m->cx, e, &dims) : 0; rank > 0; rank--) {
        if (intern_find(&m->stay, &e, sizeof e, &k)) break;
        if (to_elements(m, to, e, rank, dims)) return;
    }
    push(m->cx->arena, to, eqn_rewrite(&m->map, e, elements_jaxpr, m));
}

static void take(void *user, Val v) { intern(user, &v, sizeof v, NULL); }

/* ---- small matrices: their equations, and those around them that treat each element alone */
typedef struct {
    Intern *bound;
    bool any;
} Depends;
static void depends(void *user, Val v) {
    Depends *d = user;
    uint32_t i;
    d->any |= intern_find(d->bound, &v, sizeof v, &i);
}
static void unuse(void *user, Val v) { ((Elements *)user)->uses[v]--; }
static void use(void *user, Val v) { ((Elements *)user)->uses[v]++; }

/* The equations of a program from `first` on become one, up to the first that cannot be a part of it and needs what
   is; others before that are put before it. Returns how many these are; 0: there are none with a matrix, and `*next` is
   the first after which it may be tried again. */
static uint32_t to_region(Elements *m, Eqns *to, Eqns eqns, const Eqn *matrix, uint32_t *next) {
    Ctx *cx = m->cx;
    const ArrayType *t = val_array(cx, matrix->out.at[0]);
    Making g;
    Intern bound = {.arena = cx->arena};
    Eqns inside = {0}, before = {0};
    List out = {0};
    uint32_t i = 0;
    *next = eqns.n;
    if (!linalg_batch(cx, matrix)) return 0;
    begin(&g, m, matrix, linalg_batch(cx, matrix), t->dims);
    g.program = b_inner(&g.s.b, 0, NULL);
    for (; i < eqns.n; i++) {
        const Eqn *e = &eqns.at[i];
        Depends d = {.bound = &bound};
        bool plain = e->prim != P_while && e->prim != P_scan;
        for (uint32_t k = 0; plain && k < e->in.n; k++) take_operand(&g, e->in.at[k], false);
        bool part = plain && split_element_eqn(&g.s, e), along = e->out.n > 0;
        each(const Val, v, e->out) along &= begins_with_elements(&g.s, val_array(cx, *v));
        if (part && along) {
            push(cx->arena, &inside, *e);
            each(const Val, v, e->out) take(&bound, *v), push(cx->arena, &out, *v);
            continue;
        }
        eqn_takes(cx, e, depends, &d);
        if (d.any) break;
        push(cx->arena, &before, *e); /* what is the same for all elements may be a part of both */
    }
    *next = i;
    if (matrix >= eqns.at + i) return 0;
    each(const Eqn, e, inside) eqn_takes(cx, e, unuse, m);
    Eqns made = {0};
    bool done = finish(&g, &made, (Vals){out.at, out.n});
    each(const Eqn, e, inside) eqn_takes(cx, e, use, m);
    if (!done) return 0;
    each(const Eqn, e, before) elements_eqn(m, to, e);
    each(Eqn, e, made) { /* a loop among those before may now have other results */
        e->in = vals_rewrite(&m->map, e->in);
        push(cx->arena, to, *e);
    }
    return i;
}
static Jaxpr *elements_jaxpr(void *user, const Jaxpr *j) {
    Elements *m = user;
    if (*memo_slot(&m->memo, j)) return *memo_slot(&m->memo, j);
    Eqns eqns = eqns_for(m->cx, j);
    uint32_t n = j->eqns.n, matrix = 0;
    for (uint32_t i = 0, again = 0, next = 0; i < n;) {
        if (matrix < i) matrix = i;
        while (matrix < n && !is_small_linalg(&j->eqns.at[matrix])) matrix++;
        bool tries = matrix < n && i >= again;
        Eqns rest = {.at = j->eqns.at + i, .n = n - i};
        uint32_t made = tries ? to_region(m, &eqns, rest, &j->eqns.at[matrix], &next) : 0;
        if (tries) again = i + next;
        if (!made) elements_eqn(m, &eqns, rest.at);
        i += made ? made : 1;
    }
    Jaxpr *new = jaxpr_with(m->cx, j, eqns, vals_rewrite(&m->map, j->out));
    return *memo_slot(&m->memo, j) = new;
}

Jaxpr *pass_elements(Ctx *cx, const Jaxpr *j) {
    if (cx->stdlib_passes) return (Jaxpr *)j;
    Elements m = {.cx = cx, .map.cx = cx, .memo.arena = cx->arena, .uses = arena_new(cx->arena, uint32_t, cx->nvals)};
    Jaxprs all = jaxprs_within(cx->arena, j);
    m.stay.arena = cx->arena;
    each(Jaxpr *, k, all) {
        each(const Eqn, e, (*k)->eqns) eqn_takes(cx, e, use, &m);
        each(const Val, v, (*k)->out) use(&m, *v);
    }
    return elements_jaxpr(&m, j);
}
