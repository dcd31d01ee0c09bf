#include "call.h"
#include "../cost.h"
#include "../eval/record.h"
#include "attention.h"
#include "known.h"
#include "apart.h"
#include "scatter.h"
#include "sort.h"
#include <assert.h>

/* Fusion: equations become members of steps. An equation joins the latest step that computes one of its operands if its
   shape is that step's domain (or the domain's kept axes), if it reads members of that step only at their own index,
   and if everything else it reads is computed earlier. Index operations and cheap elementwise ones are virtual:
   computed wherever they are used. A value that another step needs is stored by the step that computes it: stores may
   be added to earlier steps until the code is written.

   The obvious way, fusing producers into each consumer, computes a value once per consumer, which is exponential in a
   chain of diamonds. Here every value of any cost is computed by exactly one step. */

/* ---- steps */
Step *step_new(Plan *p, Body *b, StepKind kind, const Eqn *e, const ArrayType *shape) {
    Step *s = arena_new(p->arena, Step, 1);
    s->kind = kind, s->e = e, s->body = b, s->number = b->steps.n + 1;
    uint32_t rank = shape ? shape->rank : 0;
    s->domain.at = arena_new(p->arena, Dim, rank + 1);
    s->axes = arena_new(p->arena, Ix, rank + 1);
    s->reduced = arena_new(p->arena, bool, rank + 1);
    for (uint32_t d = 0; d < rank; d++) {
        if (shape->dims[d] == 1) continue;
        s->axes[s->domain.n] = ix_atom(p->ix, atom_loop(p->ix, shape->dims[d]));
        s->domain.at[s->domain.n++] = shape->dims[d];
    }
    push(p->arena, &b->steps, s);
    return s;
}
static bool match(const Step *s, const ArrayType *t, bool row, Ix *index) {
    uint32_t a = 0;
    for (uint32_t d = 0; d < t->rank; d++) {
        index[d] = 0;
        if (t->dims[d] == 1) continue;
        while (row && a < s->domain.n && s->reduced[a]) a++;
        if (a == s->domain.n || s->domain.at[a] != t->dims[d]) return false;
        index[d] = s->axes[a++];
    }
    while (row && a < s->domain.n && s->reduced[a]) a++;
    return a == s->domain.n;
}
/* Has the step an element of this shape for each of its domain or, if it reduces, for each row? */
static bool fits(const Step *s, const ArrayType *t, Ix *index, bool *row) {
    *row = false;
    if (match(s, t, false, index)) return true;
    *row = true;
    return s->reduces && match(s, t, true, index);
}
bool step_index(Plan *p, const Step *s, Val v, Ix *index, bool *row) {
    ArrayType t = *val_array(p->cx, v);
    if (plan_stacks(p, s, v)) *index++ = plan_info(p, v)->turn, t.dims++, t.rank--;
    return fits(s, &t, index, row);
}
bool step_at(Plan *p, const Step *s, Val v, Ix *index) {
    bool row, fits = step_index(p, s, v, index, &row);
    assert(fits);
    return row;
}
void step_store(Plan *p, Step *s, Val v, Buf *b, Ix offset, const Dim *strides, Dtype as) {
    Store st = {.v = v, .buf = b, .offset = offset, .strides = strides, .as = as};
    push(p->arena, &s->stores, st);
}
Ix panels_at(Plan *p, const Panels *l, Ix index) {
    Ix block = ix_scale(p->ix, ix_div(p->ix, index, l->width), l->apart);
    return ix_add(p->ix, block, ix_mod(p->ix, index, l->width));
}
Ix store_address(Plan *p, const Store *s, const Ix *index) {
    const ArrayType *t = val_array(p->cx, s->v);
    if (s->scatter) return scatter_address(p, s->scatter, index);
    Ix at = s->offset;
    Dim stride = 1;
    for (uint32_t d = t->rank; d-- > 0;) {
        bool cut = s->panels.width && s->panels.axis == d;
        Ix part =
            cut ? panels_at(p, &s->panels, index[d]) : ix_scale(p->ix, index[d], s->strides ? s->strides[d] : stride);
        at = ix_add(p->ix, at, part);
        stride = dim_mul(p->cx->types, stride, t->dims[d]);
    }
    return at;
}
/* The innermost body among those of the values that v reads. */
typedef struct {
    Plan *p;
    Body *body, *deepest;
} Homes;
static void home(void *user, Val v, const Ix *index, Ix address) {
    Homes *h = user;
    if (!v) return;
    const Info *info = plan_info(h->p, v);
    Body *b = info->home && info->class == VAL_STORED ? info->home : h->body;
    if (!h->deepest || b->depth > h->deepest->depth) h->deepest = b;
}
Body *plan_home(Plan *p, Body *b, Val v) {
    const ArrayType *t = val_array(p->cx, v);
    Homes h = {.p = p, .body = b};
    Ix index[MAX_RANK];
    for (uint32_t i = 0; i < t->rank; i++) index[i] = ix_atom(p->ix, atom_loop(p->ix, t->dims[i]));
    plan_reads(p, v, index, home, &h);
    while (h.deepest && b->depth > h.deepest->depth && !b->conditional) b = b->outer;
    return b;
}
Buf *plan_materialise(Plan *p, Body *b, Val v, const Dim *strides, const Panels *panels, Dim elements, Dtype as) {
    const ArrayType *t = val_array(p->cx, v);
    Dtype d = as ? as : t->dtype;
    Buf *buf = buf_new(p, BUF_WORK, dim_mul(p->cx->types, elements, dtype_bytes(d)));
    Step *s = step_new(p, plan_home(p, b, v), STEP_LOOPS, NULL, t);
    step_store(p, s, v, buf, 0, strides, as);
    if (panels) s->stores.at[0].panels = *panels;
    return buf;
}

/* ---- reads */
void plan_reads(Plan *p, Val v, const Ix *index, Seen *seen, void *user) {
    eval_value(record(p, NULL, seen, user), v, index);
}

const Ix *plan_any_index(Plan *p, Val v) {
    const ArrayType *t = val_array(p->cx, v);
    Ix *index = arena_new(p->arena, Ix, t->rank + 1);
    for (uint32_t d = 0; d < t->rank; d++) index[d] = ix_atom(p->ix, atom_loop(p->ix, t->dims[d]));
    return index;
}

typedef struct {
    Plan *p;
    Body *body;
    Step *step;
    bool terms;  /* it is over the whole domain of a step whose rows are apart */
    Apart apart; /* APART_NOT: it can */
} Probe;

/* Is a value that a candidate reads available when the step runs, and read at its own index if the step computes it? */
static void probe(void *user, Val v, const Ix *index, Ix address) {
    Probe *q = user;
    if (!v || q->apart) return;
    const Info *info = plan_info(q->p, v);
    bool member = info->class == VAL_MEMBER && info->step == q->step->number;
    if (!member) {
        if (info->step >= q->step->number) q->apart = APART_LATER;
        return;
    }
    Ix own[MAX_RANK];
    bool row;
    const ArrayType *t = val_array(q->p->cx, v);
    bool known = step_index(q->p, q->step, v, own, &row);
    if (!known || (t->rank && memcmp(own, index, t->rank * sizeof *own))) q->apart = APART_INDEX;
    if (known && row && q->terms) q->apart = APART_ROWS;
}
/* Collects the values that other steps would have to store. */
typedef struct {
    Plan *p;
    Body *body;
    uint32_t latest, nleaves;
    Step *step; /* the reader */
} Reads;
static void latest(void *user, Val v, const Ix *index, Ix address) {
    Reads *r = user;
    if (!v) return;
    const Info *info = plan_info(r->p, v);
    r->nleaves += info->class != VAL_SCALAR && !apart_result(r->p, r->body, v);
    if (info->step > r->latest) r->latest = info->step;
}
static void store_for(void *user, Val v, const Ix *index, Ix address) {
    Reads *r = user;
    if (!v) return;
    const Info *info = plan_info(r->p, v);
    bool member = info->class == VAL_MEMBER && !info->attention;
    bool own = member && info->step == r->step->number;
    r->nleaves += !own;
    if (!own && info->class != VAL_SCALAR) step_sees(r->p, r->step, address);
    if (member && !own) plan_laid(r->p, r->body, v);
}
void step_evaluates(Plan *p, Body *b, Step *s, Val v) {
    Reads r = {.p = p, .body = b, .step = s};
    plan_reads(p, v, plan_any_index(p, v), store_for, &r);
}
static void reads_all(Plan *p, const Eqn *e, uint32_t n, Seen *seen, void *user, const Ix *index) {
    const ArrayType *y = val_array(p->cx, e->out.at[0]);
    Eval *x = record(p, NULL, seen, user); /* one for all: shared values are reported once */
    if (prim_lower[e->prim] == LOWER_PROGRAM) {
        Ix none[MAX_RANK] = {0};
        eval_program(x, e, index ? index : none);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        const ArrayType *t = val_array(p->cx, e->in.at[i]);
        Ix at[MAX_RANK];
        for (uint32_t d = 0; d < t->rank; d++)
            at[d] = index && !(y->rank == t->rank && t->dims[d] == 1 && y->dims[d] != 1) ? index[d] : 0;
        eval_value(x, e->in.at[i], at);
    }
}

Buf *plan_stored(Plan *p, Body *b, Val v) {
    Info *info = plan_info(p, v);
    if (info->buf) return info->buf;
    if (info->class == VAL_MEMBER) {
        info->buf = buf_for(p, BUF_WORK, v);
        step_store(p, step_of(b, info), v, info->buf, 0, info->strides, DT_none);
        return info->buf;
    }
    /* virtual values, literals and scalars get a copy by a step of their own */
    Step *s = step_new(p, b, STEP_LOOPS, NULL, val_array(p->cx, v));
    Buf *buf = buf_for(p, BUF_WORK, v);
    Ix index[MAX_RANK];
    Reads r = {.p = p, .body = b, .step = s};
    step_at(p, s, v, index);
    plan_reads(p, v, index, store_for, &r);
    step_store(p, s, v, buf, 0, NULL, DT_none);
    if (info->class == VAL_VIRTUAL && !val_info(p->cx, v)->lit) info->buf = buf; /* kernels still compute it */
    return buf;
}

/* ---- costs */
uint32_t eqn_cost(const Eqn *e) {
    if (prim_is(e->prim, COSTLY)) return COSTLY_COST;
    if (prim_lower[e->prim] == LOWER_PROGRAM) return PROGRAM_COST;
    return prim_lower[e->prim] == LOWER_STDLIB ? STDLIB_COST : eqn_point(e);
}
static uint32_t total_cost(Plan *p, const Eqn *e) {
    uint32_t c = eqn_cost(e);
    each(Val, v, e->in)
        if (!val_info(p->cx, *v)->lit) c += plan_info(p, *v)->cost;
    return c < MOST_COST ? c : MOST_COST;
}

/* The number of pieces of concatenations that evaluating a value may read; 1 if it is not virtual. */
static uint32_t pieces_of(Plan *p, Val v) {
    const Info *info = plan_info(p, v);
    bool virtual = !val_info(p->cx, v)->lit && info->class == VAL_VIRTUAL;
    return virtual && info->pieces > 1 ? info->pieces : 1;
}
/* The same for the result of a virtual equation. */
static uint32_t pieces(Plan *p, const Eqn *e) {
    uint32_t n = 0;
    each(Val, v, e->in) {
        uint32_t more = pieces_of(p, *v);
        n += more > 1 || prim_is(e->prim, JOINS) ? more : 0;
        if (n > MOST_PIECES) return MOST_PIECES + 1;
    }
    return n;
}

/* ---- joining */
/* APART_NOT: the equation may join the step. */
static Apart apart(Plan *p, Body *b, Step *s, const Eqn *e, const ArrayType *shape, uint32_t nread) {
    Probe q = {.p = p, .body = b, .step = s};
    Ix index[MAX_RANK];
    if (!sort_takes_members(s)) return APART_KIND;
    if (s->cost > STEP_COST || s->nreads > STEP_READS) return APART_LONG;
    bool row;
    if (!fits(s, shape, index, &row)) return APART_SHAPE;
    q.terms = !row && apart_step(p, s);
    reads_all(p, e, nread, probe, &q, index);
    return q.apart;
}
static void join(Plan *p, Body *b, Step *s, const Eqn *e, uint32_t nread, const Ix *index) {
    Reads r = {.p = p, .body = b, .step = s};
    reads_all(p, e, nread, store_for, &r, index);
    uint32_t cost = eqn_cost(e);
    Edged edged = eqn_edged(p, e);
    s->cost += cost;
    if (edged > s->edged) s->edged = edged;
    s->nreads += r.nleaves;
    each(Val, v, e->out) {
        Info *info = plan_info(p, *v);
        info->class = VAL_MEMBER;
        info->step = s->number;
        push(p->arena, &s->members, *v);
    }
}
static void latest_bound(void *user, uint32_t val) { latest(user, val, NULL, 0); }
/* The step of the last scalar that extents follow from, of all that the equation goes through. */
static uint32_t after(Plan *p, const Eqn *e) {
    Reads r = {.p = p};
    plan_bounds(p, e, latest_bound, &r);
    each(const Val, v, e->in) {
        if (val_info(p->cx, *v)->lit) continue;
        const Info *info = plan_info(p, *v);
        uint32_t needs = info->class == VAL_VIRTUAL ? info->after : info->class == VAL_SCALAR ? info->step : 0;
        if (needs > r.latest) r.latest = needs;
    }
    return r.latest;
}
static uint32_t latest_step(Plan *p, Body *b, const Eqn *e, uint32_t nread, uint32_t *leaves) {
    Reads r = {.p = p, .body = b, .latest = after(p, e)};
    reads_all(p, e, nread, latest, &r, NULL);
    *leaves = r.nleaves;
    return r.latest;
}
static bool same_axes(Plan *p, const Step *s, const ArrayType *t, const bool *reduced) {
    uint32_t a = 0;
    for (uint32_t d = 0; d < t->rank; d++)
        if (t->dims[d] != 1 && s->reduced[a++] != reduced[d]) return false;
    return true;
}
static bool any_row(Plan *p, const Step *s) {
    Ix index[MAX_RANK];
    each(Val, v, s->members)
        if (!match(s, val_array(p->cx, *v), false, index)) return true;
    return false;
}
static bool reduces_in(Plan *p, const Step *s, const ArrayType *t, const bool *reduced) {
    Ix index[MAX_RANK];
    return match(s, t, false, index) && (s->reduces ? same_axes(p, s, t, reduced) : !any_row(p, s)) &&
           s->nreductions < STEP_REDUCTIONS;
}
/* The step that whoever reads the result has to wait for, as far as is known: the latest one that computes another
   operand of its first reader or, if that has none yet, of the first reader of this one's result, and so on. 0: none
   is. Not through what joins arrays or has many operands: planning is linear in all operands. */
static uint32_t step_of_readers(Plan *p, Body *b, const Eqn *e) {
    Reads r = {.p = p, .body = b};
    for (uint32_t i = 0; i < READER_HOPS && !r.latest; i++) {
        Val y = e->out.at[0];
        e = e->out.n == 1 ? plan_info(p, y)->reader : NULL;
        if (!e || e->in.n > READER_OPERANDS || prim_is(e->prim, JOINS)) break;
        if (!eqn_point(e) && !eqn_reduces(e) && prim_lower[e->prim] != LOWER_INDEX) break;
        each(const Val, v, e->in)
            if (*v != y && (val_info(p->cx, *v)->lit || plan_info(p, *v)->class != VAL_UNSEEN))
                plan_reads(p, *v, plan_any_index(p, *v), latest, &r);
    }
    return r.latest;
}
/* Why it may not join the step, of which it reduces these axes; NULL: none. */
static Apart apart_reducing(Plan *p, Body *b, Step *s, const Eqn *e, const ArrayType *shape, uint32_t nread,
                            const bool *reduced) {
    if (reduced && s->kind != STEP_LOOPS) return APART_KIND;
    Apart why = apart(p, b, s, e, shape, nread);
    if (why || !reduced) return why;
    if (!reduces_in(p, s, shape, reduced)) return APART_REDUCTION;
    bool first = !s->reduces;
    return first && edges_apart(p, s->edged, shape->rank, shape->dims, reduced) ? APART_EDGES : APART_NOT;
}
/* Does it take what is computed of nothing in it? */
static bool takes_others(Plan *p, const Step *s, const Eqn *e) {
    if (s->kind != STEP_LOOPS || s->beside) return false;
    bool adds = s->reduces && !eqn_reduces(e);
    return !adds || !edges_apart(p, eqn_edged(p, e), s->domain.n, s->domain.at, s->reduced);
}
/* The step an equation of this shape joins; NULL: none, and why. If that which computes its operands cannot be, it is
   one that its readers will need, or one of the latest. */
static Step *step_for(Plan *p, Body *b, const Eqn *e, const ArrayType *shape, uint32_t nread, const bool *reduced,
                      Begun *begun) {
    uint32_t leaves, from = latest_step(p, b, e, nread, &leaves), wanted;
    *begun = (Begun){APART_NOT, from};
    if (!p->fuse) return NULL;
    if (from > 0) {
        Step *s = b->steps.at[from - 1];
        begun->why = apart_reducing(p, b, s, e, shape, nread, reduced);
        if (!begun->why) return s;
    }
    if (p->target->device && begun->why == APART_REDUCTION) return NULL;
    if (!p->target->device && from < b->steps.n && (wanted = step_of_readers(p, b, e)) > from) {
        Step *s = b->steps.at[wanted - 1];
        if (takes_others(p, s, e) && !apart_reducing(p, b, s, e, shape, nread, reduced)) return s;
    }
    for (uint32_t i = b->steps.n, tries = 0; i > from && tries < JOIN_TRIES; i--, tries++) {
        Step *s = b->steps.at[i - 1];
        Apart why = takes_others(p, s, e) ? apart_reducing(p, b, s, e, shape, nread, reduced) : APART_KIND;
        if (!why) return s;
        if (p->target->device && why == APART_REDUCTION) {
            *begun = (Begun){why, s->number};
            return NULL;
        }
    }
    return NULL;
}

/* ---- equations by kind */
/* Is it one operation on at most two stored values, for two slices alone that are read once? Storing and reading it
   takes longer than computing it for both: second differences of 500 rows of 1000 in 110 us, not 196. */
static bool is_for_two_slices(const Info *info, uint32_t leaves) {
    return info->cost <= 1 && leaves <= 2 && info->slices == 2 && info->uses == 2;
}
static void plan_point(Plan *p, Body *b, const Eqn *e) {
    Val y = e->out.at[0];
    Info *info = plan_info(p, y);
    const ArrayType whole = *val_array(p->cx, y), *t = &whole;
    ArrayType element = whole;
    uint32_t leaves, cost = total_cost(p, e);
    if (prim_lower[e->prim] == LOWER_PROGRAM) { /* a stack has one more axis */
        element.rank = program_rank(p->cx, e), element.dims += whole.rank - element.rank, t = &element;
        program_stacks(p, e);
    }
    for (uint32_t i = 0; i < e->out.n; i++) {
        Info *of = plan_info(p, e->out.at[i]);
        of->e = e, of->out = i, of->cost = cost;
    }
    latest_step(p, b, e, e->in.n, &leaves);
    bool cheap = e->prim == P_stored ? dot_reads_in_place(p, e->in.at[0])
                                     : (info->cost <= VIRTUAL_COST && leaves <= 1) || is_for_two_slices(info, leaves);
    if (p->fuse && cheap) {
        info->class = VAL_VIRTUAL;
        info->pieces = pieces(p, e), info->edged = eqn_edged(p, e);
        return;
    }
    Begun begun;
    Step *s = step_for(p, b, e, t, e->in.n, NULL, &begun);
    if (!s) s = step_new(p, b, STEP_LOOPS, NULL, t), s->begun = begun;
    Ix index[MAX_RANK] = {0};
    bool row, found = fits(s, t, index, &row);
    assert(found);
    join(p, b, s, e, e->in.n, index);
    if (row) s->row_cost += eqn_cost(e);
    if (prim_lower[e->prim] != LOWER_PROGRAM) return;
    const Jaxpr *program = param_jaxpr(e, K_jaxpr);
    uint32_t most = program_carries(program);
    s->carried = most > s->carried ? most : s->carried;
    s->crowded |= program_crowded(p, program);
}
static void set_axes(Step *s, const ArrayType *t, const bool *reduced) {
    uint32_t a = 0;
    for (uint32_t d = 0; d < t->rank; d++)
        if (t->dims[d] != 1) s->reduced[a++] = reduced[d];
    s->reduces = true;
}
static void plan_reduce(Plan *p, Body *b, const Eqn *e) {
    const ArrayType *t = val_array(p->cx, e->in.at[0]);
    Ints axes = param_ints(e, K_axes);
    bool *reduced = arena_new(p->arena, bool, t->rank + 1);
    each(int64_t, a, axes) reduced[*a] = true;
    Begun begun;
    Step *s = step_for(p, b, e, t, 1, reduced, &begun);
    Ix index[MAX_RANK];
    if (!s) s = step_new(p, b, STEP_LOOPS, NULL, t), s->begun = begun;
    set_axes(s, t, reduced);
    match(s, t, false, index);
    plan_info(p, e->out.at[0])->e = e;
    Reads r = {.p = p, .body = b, .step = s};
    plan_reads(p, e->in.at[0], index, store_for, &r);
    s->cost += 1;
    s->nreductions++;
    Info *info = plan_info(p, e->out.at[0]);
    info->class = VAL_MEMBER;
    info->step = s->number;
    push(p->arena, &s->members, e->out.at[0]);
}
void plan_cut(Plan *p, Body *b, Val v) {
    Info *info = plan_info(p, v);
    Step *s = step_new(p, b, STEP_LOOPS, NULL, val_array(p->cx, v));
    Ix index[MAX_RANK];
    Reads r = {.p = p, .body = b, .step = s};
    step_at(p, s, v, index);
    plan_reads(p, v, index, store_for, &r);
    s->edged = info->edged;
    info->class = VAL_MEMBER;
    info->step = s->number;
    info->cut = b;
    info->depth = 0;
    push(p->arena, &s->members, v);
}
static void plan_virtual(Plan *p, Body *b, const Eqn *e) {
    uint32_t cost = total_cost(p, e), depth = 0, n = pieces(p, e);
    bool twice = e->prim == P_gather && cost > GATHER_COST; /* both operands are evaluated: 2^n */
    each(Val, v, e->in)
        if (plan_info(p, *v)->depth > depth) depth = plan_info(p, *v)->depth;
    for (uint32_t i = 0; i < e->out.n; i++) {
        Info *info = plan_info(p, e->out.at[i]);
        info->class = VAL_VIRTUAL;
        info->e = e, info->out = i, info->cost = cost, info->depth = depth + 1, info->pieces = n;
        info->edged = eqn_edged(p, e);
        if (info->depth > VIRTUAL_DEPTH || n > MOST_PIECES || twice) plan_cut(p, b, e->out.at[i]);
    }
}
static bool all_scalar(Plan *p, const Eqn *e) {
    each(Val, v, e->out)
        if (!plan_register(p, *v)) return false;
    return true;
}
static void plan_scalar(Plan *p, Body *b, const Eqn *e) {
    Step *s = step_new(p, b, STEP_SCALAR, e, NULL);
    Reads r = {.p = p, .body = b, .step = s};
    for (uint32_t i = 0; i < e->out.n; i++) {
        Info *info = plan_info(p, e->out.at[i]);
        *info = (Info){.class = VAL_VIRTUAL, .e = e, .out = i, .uses = info->uses};
        plan_reads(p, e->out.at[i], NULL, store_for, &r);
        info->class = VAL_SCALAR;
        info->step = s->number;
    }
}
void plan_scalar_reads(Plan *p, const Step *s, Seen *seen, void *user) {
    each(Val, v, s->e->out) {
        Info *info = plan_info(p, *v);
        info->class = VAL_VIRTUAL;
        plan_reads(p, *v, NULL, seen, user);
        info->class = VAL_SCALAR;
    }
}
static void plan_dot_or_cum(Plan *p, Body *b, const Eqn *e, StepKind kind) {
    each(Val, v, e->in) {
        Info *info = plan_info(p, *v);
        if (info->class == VAL_MEMBER)
            plan_laid(p, b, *v);
        else if (info->class == VAL_VIRTUAL) {
            const ArrayType *t = val_array(p->cx, *v);
            Ix at[MAX_RANK];
            for (uint32_t d = 0; d < t->rank; d++) at[d] = ix_atom(p->ix, atom_loop(p->ix, t->dims[d]));
            Reads r = {.p = p, .body = b, .step = &(Step){.number = UINT32_MAX}};
            plan_reads(p, *v, at, store_for, &r);
        }
    }
    Step *s = step_new(p, b, kind, e, val_array(p->cx, e->out.at[0]));
    Info *info = plan_info(p, e->out.at[0]);
    info->e = e;
    if (kind == STEP_DOT) {
        b->steps.n--; /* steps scheduled by dot_plan come before */
        if (p->target->device)
            dot_device_plan(p, b, s);
        else
            dot_plan(p, b, s);
        s->number = b->steps.n + 1;
        push(p->arena, &b->steps, s);
        if (s->dot->device && s->dot->device->attention) attention_own(p, s);
    }
    info->class = VAL_MEMBER;
    info->step = s->number;
    push(p->arena, &s->members, e->out.at[0]);
}
Buf *plan_dense(Plan *p, Body *b, Val v) {
    Buf *buf = plan_stored(p, b, v);
    const Info *info = plan_info(p, v);
    if (!same_buf(info->buf, buf) || (!info->offset && !info->strides)) return buf;
    return plan_materialise(p, b, v, NULL, NULL, type_size(p->cx->types, val_type(p->cx, v)), DT_none);
}
void step_result(Plan *p, Step *s, uint32_t k, Buf *buf) {
    Val y = s->e->out.at[k];
    Info *info = plan_info(p, y);
    ValClass class = plan_register(p, y) ? VAL_SCALAR : VAL_STORED;
    *info = (Info){.class = class, .e = s->e, .out = k, .step = s->number, .uses = info->uses, .buf = buf};
}
static bool small(Plan *p, Val v) {
    Dim n = type_size(p->cx->types, val_type(p->cx, v));
    return dim_is_const(n) && n <= SMALL_SIZE;
}
/* May the step store the value, at its own index, of its own members or of what earlier ones compute? */
static bool may_store(Plan *p, Body *b, Step *s, Val v) {
    Probe q = {.p = p, .body = b, .step = s};
    Ix index[MAX_RANK];
    if (!sort_takes_members(s) || s->cost > STEP_COST || s->nreads > STEP_READS) return false;
    if (!val_info(p->cx, v)->lit && plan_info(p, v)->after >= s->number) return false; /* its extents come later */
    bool row;
    if (!fits(s, val_array(p->cx, v), index, &row)) return false;
    q.terms = !row && apart_step(p, s);
    plan_reads(p, v, index, probe, &q);
    return !q.apart;
}
/* The step that computes the first operand of those that steps compute. */
static Step *step_of_operand(Plan *p, Body *b, const Eqn *e) {
    each(Val, v, e->in)
        if (!val_info(p->cx, *v)->lit && plan_info(p, *v)->class == VAL_MEMBER) return step_of(b, plan_info(p, *v));
    return NULL;
}
/* The step that writes a piece: one of its own or one shared with pieces of the same shape, if their elements lie
   `beside` each other, or if there are many small ones; `from`: the number of the first step that may be shared,
   UINT32_MAX if none may. */
static Step *step_for_piece(Plan *p, Body *b, Val x, bool beside, uint32_t from) {
    const ArrayType *t = val_array(p->cx, x);
    Dim n = type_size(p->cx->types, val_type(p->cx, x));
    uint32_t more = pieces_of(p, x);
    Ix index[MAX_RANK];
    for (uint32_t i = b->steps.n, tries = 0; (beside || small(p, x)) && i >= from && tries < PIECE_TRIES;
         i--, tries++) {
        Step *s = b->steps.at[i - 1];
        bool room = s->cost + more <= STEP_PIECES && (beside || (s->stores.n + 1) * n <= SMALL_SIZE);
        if (room && match(s, t, false, index)) return s;
    }
    return step_new(p, b, STEP_LOOPS, NULL, t);
}
Step *step_beside(Plan *p, Body *b, Val v) {
    Reads r = {.p = p, .body = b};
    plan_reads(p, v, plan_any_index(p, v), latest, &r);
    if (!p->fuse || val_info(p->cx, v)->lit || plan_info(p, v)->class != VAL_VIRTUAL || !r.latest) return NULL;
    Step *s = b->steps.at[r.latest - 1];
    return may_store(p, b, s, v) ? s : NULL;
}
/* Each operand is written to its part of the result. */
static void plan_join_arrays(Plan *p, Body *b, const Eqn *e) {
    Info *info = plan_info(p, e->out.at[0]);
    bool beside = joined_beside(p, e), shared = beside || pieces(p, e) > MOST_PIECES, inside = info->into;
    uint32_t from = shared ? b->steps.n + 1 : UINT32_MAX;
    Step *computes = beside && p->fuse ? step_of_operand(p, b, e) : NULL;
    Joined home = plan_join(p, e);
    Dim at = 0;
    for (uint32_t k = 0; k < e->in.n; k++) {
        Joined part = plan_part(p, e, k, &at, home);
        Val x = joined_under(p, e, k, &part);
        const Info *xi = plan_info(p, x);
        bool literal = val_info(p->cx, x)->lit;
        if (!literal && xi->class == VAL_STORED && xi->buf == part.buf && xi->strides && xi->offset == part.offset)
            continue;
        if (!literal && xi->class == VAL_MEMBER) {
            step_store(p, step_of(b, xi), x, part.buf, part.offset, part.strides, DT_none);
            step_of(b, xi)->beside |= beside && !p->target->device;
            continue;
        }
        Step *s = computes && may_store(p, b, computes, x) ? computes : step_beside(p, b, x);
        if (!s) s = step_for_piece(p, b, x, beside, from);
        Ix index[MAX_RANK];
        step_at(p, s, x, index);
        Reads r = {.p = p, .body = b, .step = s};
        plan_reads(p, x, index, store_for, &r);
        step_store(p, s, x, part.buf, part.offset, part.strides, DT_none);
        if (shared) s->cost += pieces_of(p, x);
    }
    *info = (Info){.class = VAL_STORED, .e = e, .step = b->steps.n, .uses = info->uses, .buf = home.buf};
    if (inside) info->offset = home.offset, info->strides = home.strides;
}
/* Does the reduction only reduce axes of extent 1, which moves no data? */
static bool trivial_reduction(Plan *p, const Eqn *e) {
    const ArrayType *t = val_array(p->cx, e->in.at[0]);
    Ints axes = param_ints(e, K_axes);
    each(int64_t, a, axes)
        if (t->dims[*a] != 1) return false;
    return true;
}
/* The indices of one gather of single elements, joined from their entries: it reads these where they are computed. */
static bool joins_entries(Plan *p, const Eqn *e) {
    const Info *info = plan_info(p, e->out.n ? e->out.at[0] : 0);
    const Eqn *reader = info->once ? info->reader : NULL;
    if (!reader || reader->prim != P_gather || reader->in.at[1] != e->out.at[0] || !prim_is(e->prim, JOINS))
        return false;
    bool single = val_array(p->cx, reader->out.at[0])->rank + 1 == val_array(p->cx, e->out.at[0])->rank;
    return single && joined_beside(p, e);
}
static bool plan_eqn(Plan *p, Body *b, const Eqn *e) {
    if (e->out.n && plan_info(p, e->out.at[0])->attention) return true;
    Lower how = prim_lower[e->prim];
    bool joins =
        prim_is(e->prim, JOINS) && !joins_entries(p, e) &&
        (!small(p, e->out.at[0]) || pieces(p, e) > MOST_PIECES || (e->prim == P_stack && joined_where_computed(p, e)));
    switch (how) {
    case LOWER_EXPAND:
    case LOWER_SAME:
    case LOWER_STATE:
    case LOWER_NONE: assert(!"supported() has refused it"); return false;
    case LOWER_COND:
    case LOWER_WHILE:
    case LOWER_SCAN: return plan_control(p, b, e);
    case LOWER_CALL: return plan_call(p, b, e);
    case LOWER_DOT: plan_dot_or_cum(p, b, e, STEP_DOT); break;
    case LOWER_CUM:
        if (val_array(p->cx, e->in.at[0])->dims[param_number(e, K_axis)] == 1)
            plan_virtual(p, b, e);
        else
            plan_dot_or_cum(p, b, e, STEP_CUM);
        break;
    case LOWER_UPDATE: plan_update(p, b, e); break;
    case LOWER_SCATTER: return plan_scatter(p, b, e);
    case LOWER_SORT: plan_sort(p, b, e); break;
    case LOWER_RUNTIME:
    case LOWER_SPMD: return plan_runtime(p, b, e);
    case LOWER_REDUCE:
    case LOWER_ARG:
        if (!trivial_reduction(p, e))
            plan_reduce(p, b, e);
        else if (all_scalar(p, e))
            plan_scalar(p, b, e);
        else
            plan_virtual(p, b, e);
        break;
    case LOWER_PROGRAM: plan_point(p, b, e); break;
    default:
        if (all_scalar(p, e))
            plan_scalar(p, b, e);
        else if (joins)
            plan_join_arrays(p, b, e);
        else if (how == LOWER_INDEX)
            plan_virtual(p, b, e);
        else
            plan_point(p, b, e);
        if (e->prim == P_stored) program_stored(p, b, e);
    }
    return true;
}

/* ---- a body: its equations, then its results, stored where they must be */
/* Does a reader still to come evaluate the equation, which reads its operands then? */
static bool evaluated_later(Plan *p, const Eqn *e) {
    each(const Val, v, e->out) {
        const Info *info = plan_info(p, *v);
        if ((info->class == VAL_VIRTUAL || info->attention) && info->uses) return true;
    }
    return false;
}
static void release(Plan *p, Val v) {
    Info *info = plan_info(p, v);
    if (val_info(p->cx, v)->lit || info->uses == 0) return;
    info->uses--;
    if (info->uses > 0 || !info->e || evaluated_later(p, info->e)) return;
    if (info->class == VAL_VIRTUAL || info->attention)
        each(Val, x, info->e->in) release(p, *x);
}
static void result(Plan *p, Body *b, Val v, Buf *want) {
    Val under = plan_same_order(p, v);
    ValClass class = val_info(p->cx, under)->lit ? VAL_VIRTUAL : plan_info(p, under)->class;
    bool stays = class == VAL_STORED && same_buf(plan_info(p, under)->buf, want->before); /* and v is not where it is */
    if (class == VAL_MEMBER || (class == VAL_STORED && !stays)) v = under;
    Info *info = plan_info(p, v);
    if (val_info(p->cx, v)->lit == NULL && info->class == VAL_MEMBER && !info->buf) {
        info->buf = want;
        step_store(p, step_of(b, info), v, want, 0, NULL, DT_none);
        return;
    }
    bool in_place = info->class == VAL_STORED && same_buf(info->buf, want->before);
    if (in_place) return;
    bool later = want->kind == BUF_OUT && p->computed[want->k]; /* its size is not known before v is computed */
    bool movable = !info->borrowed && !later && info->buf && info->buf->kind == BUF_WORK && want->kind != BUF_WORK &&
                   !info->offset && !info->strides;
    if (movable && !info->buf->k) { /* its buffer becomes the requested one */
        *info->buf = *want;
        return;
    }
    if (info->class == VAL_MEMBER) {
        step_store(p, step_of(b, info), v, want, 0, NULL, DT_none);
        return;
    }
    if (plan_transposed(p, b, plan_same_order(p, v), want)) return;
    Step *s = step_beside(p, b, v);
    if (!s) s = step_new(p, b, STEP_LOOPS, NULL, val_array(p->cx, v));
    Ix index[MAX_RANK];
    step_at(p, s, v, index);
    Reads r = {.p = p, .body = b, .step = s};
    plan_reads(p, v, index, store_for, &r);
    step_store(p, s, v, want, 0, NULL, DT_none);
}
void plan_count_uses(Plan *p, const Jaxpr *j) {
    each(Eqn, e, j->eqns)
        each(Val, v, e->in) plan_info(p, *v)->uses++;
    each(Val, v, j->out) plan_info(p, *v)->uses++;
}
static void find_readers(Plan *p, const Jaxpr *j) {
    plan_count_uses(p, j);
    each(Eqn, e, j->eqns) {
        each(Val, v, e->in) {
            Info *info = plan_info(p, *v);
            info->once = info->uses == 1;
            if (!info->reader) info->reader = e;
        }
    }
    each(Eqn, e, j->eqns) {
        const Info *info = e->prim == P_slice ? plan_info(p, e->out.at[0]) : NULL;
        if (info && info->once && info->reader && eqn_point(info->reader)) plan_info(p, e->in.at[0])->slices++;
        plan_note_mover(p, e);
        p->unswitches |= eqn_predicate(p->cx, e) != 0;
        bool joins = prim_is(e->prim, JOINS) && !small(p, e->out.at[0]) && !joins_entries(p, e);
        each(Val, v, e->in)
            if (joins && !val_info(p->cx, *v)->lit) plan_info(p, *v)->into = e;
    }
}
/* Does the equation overwrite operand 0? */
static bool writes_over(const Eqn *e) {
    return prim_lower[e->prim] == LOWER_UPDATE || prim_lower[e->prim] == LOWER_SCATTER;
}
bool plan_body(Plan *p, Body *b) {
    const Jaxpr *j = b->j;
    find_readers(p, j);
    if (p->target->device && p->fuse) attention_find(p, j);
    each(Eqn, e, j->eqns) {
        bool over = writes_over(e);
        if (over)
            each(Val, v, e->in) release(p, *v);
        if (!plan_eqn(p, b, e)) return false;
        each(const Val, v, e->out) {
            plan_info(p, *v)->after = after(p, e);
            if (plan_mover_divides(p, *v)) plan_cut(p, b, *v);
        }
        if (!over && !evaluated_later(p, e))
            each(Val, v, e->in) release(p, *v);
    }
    for (uint32_t i = 0; i < j->out.n; i++)
        if (b->out_slots[i])
            result(p, b, j->out.at[i], b->out_slots[i]);
        else if (plan_info(p, j->out.at[i])->class == VAL_MEMBER ||
                 (p->target->device && plan_info(p, j->out.at[i])->class == VAL_VIRTUAL))
            plan_stored(p, b, j->out.at[i]);
    each(Step *, s, b->steps) schedule_step(p, b, *s);
    plan_weigh(b);
    return true;
}
