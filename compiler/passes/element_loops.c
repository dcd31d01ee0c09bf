/* Loops of arrays as loops on the scalars of one element (elements.c). */
#include "elements.h"
#include "../typecheck/rule.h"

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
        if (!spread_parts(s, t, x->splat ? &like : x, &l->parts[i])) return false;
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
        const Parts *x = array_of(s, operands.at[i]);
        if (x) set_parts(s, to.at[i], *x);
    }
}
/* What is known of the values of a program on scalars. */
enum {
    NOT_HERE = 1, /* of a bool: it is false wherever `here` is */
    APART = 2,    /* it may differ between the elements: it depends on their carries, */
    RUNS_ON = 4,  /* or it depends on carries that change for elements that are not here too; */
    MIXED = 8     /* on both, and is no conjunction of bools that depend on one of them each */
};
typedef struct {
    Val here;
    Intern values;
    struct Fact {
        const Eqn *maker; /* the equation that computes it; NULL: none */
        uint8_t known;
    } *at;
    uint32_t n, cap;
} Facts;
static struct Fact fact(const Facts *f, Val v) {
    uint32_t i;
    struct Fact of = {0};
    if (intern_find(&f->values, &v, sizeof v, &i)) {
        assert(f->at && i < f->n);
        of = f->at[i];
    }
    of.known |= v == f->here ? NOT_HERE : 0;
    return of;
}
static void add_fact(Arena *arena, Facts *f, Val v, struct Fact of) {
    bool fresh;
    uint32_t i = intern(&f->values, &v, sizeof v, &fresh);
    if (fresh) push(arena, f, of);
    f->at[i] = of;
}
static void add_eqn_facts(Arena *arena, Facts *f, const Eqn *e) {
    struct Fact of = {e, 0};
    each(const Val, v, e->in) of.known |= fact(f, *v).known;
    if (e->prim != P_and) of.known &= (uint8_t)~NOT_HERE;
    if (e->prim != P_and && of.known & APART && of.known & RUNS_ON) of.known |= MIXED;
    each(const Val, v, e->out) add_fact(arena, f, *v, of);
}
static bool implies(const Facts *f, Val v) { return fact(f, v).known & NOT_HERE; }
/* Does it count how often an element is here? */
static bool adds_nothing(const Ctx *cx, const Facts *f, const Eqn *add, Val old) {
    const Eqn *e = fact(f, add->in.at[add->in.at[0] == old]).maker;
    bool both = add->in.at[0] == old || add->in.at[1] == old;
    if (!both || !e || e->prim != P_convert_element_type) return false;
    return (OF_INT >> dtype_info[val_array(cx, old)->dtype].kind & 1) && implies(f, e->in.at[0]);
}
/* Does an element that is not here keep its carry? */
static bool keeps(const Ctx *cx, const Facts *f, Val old, Val new) {
    const Eqn *e = fact(f, new).maker;
    if (new == old || (old == f->here && implies(f, new))) return true;
    if (!e || e->prim == P_add) return e && adds_nothing(cx, f, e, old);
    return e->prim == P_select_n && e->in.n == 3 && e->in.at[1] == old && implies(f, e->in.at[0]);
}
/* Does an iteration leave elements that are not here alone, as far as the results of the loop are used, and are they
   not here again later? `j` takes the carry last and returns the next one first. */
static bool leaves(Split *s, const Loops *l, const Jaxpr *j, Val here) {
    Arena *arena = s->cx->arena;
    Facts f = {.here = here, .values.arena = arena};
    uint32_t n = 0, first = j->in.n - l->init.n;
    for (uint32_t i = 0; i < first; i++) add_fact(arena, &f, j->in.at[i], (struct Fact){NULL, APART});
    for (uint32_t i = 0; i < l->carry.n; i++)
        for (uint32_t k = 0; k < l->parts[i].n; k++, n++) {
            Val v = j->in.at[first + n];
            bool runs_on = !l->parts[i].along && j->out.at[n] != v;
            add_fact(arena, &f, v, (struct Fact){NULL, runs_on ? RUNS_ON : APART});
        }
    each(const Eqn, e, j->eqns) add_eqn_facts(arena, &f, e);
    if (fact(&f, here).known & MIXED) return false;
    n = 0;
    for (uint32_t i = 0; i < l->carry.n; i++) {
        const Parts *p = &l->parts[i];
        if (!p->along && s->uses[l->end.at[i]]) return false;
        for (uint32_t k = 0; k < p->n; k++, n++)
            if (p->along && !keeps(s->cx, &f, j->in.at[first + n], j->out.at[n])) return false;
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
    Facts f = {.here = s->here, .values.arena = s->cx->arena};
    for (uint32_t i = 0; i < s->b.eqns.n && s->here; i++) add_eqn_facts(s->cx->arena, &f, &s->b.eqns.at[i]);
    return !s->here || implies(&f, *test);
}
/* The results of one iteration, as scalars. */
static bool split_turn(Split *s, const Loops *l, Vals out, const Inner *turn, Val *next) {
    uint32_t n = 0;
    if (l->counts) {
        assert(next);
        Val counter = turn->in.at[0];
        next[n++] = b_add(&s->b, counter, b_int(&s->b, DT_i64, 1));
    }
    for (uint32_t i = 0; i < out.n; i++) {
        const Parts *x = parts_of(s, out.at[i]);
        if (!x) return false;
        Parts p = *x;
        if (!spread_parts(s, val_array(s->cx, out.at[i]), &l->parts[i], &p) || p.n != l->parts[i].n) return false;
        assert(next || !p.n);
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
/* The number of iterations of a scan: a scalar of the program, or of the equations before it, which `split_lengths` has
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
void split_lengths(Split *s, const Eqn *e) {
    add_length(s, e);
    Jaxprs all = jaxprs_within(s->cx->arena, e->prim == P_scan ? scan_of(e).body : while_of(e).body);
    each(Jaxpr *, j, all)
        each(const Eqn, q, (*j)->eqns) add_length(s, q);
}
/* The slices of scanned arrays in one turn of the scan, which counts the turns first. */
static bool bind_slices(Split *s, const Scan *c, const Scan *turn, Val counter, Val length) {
    Val at = counter;
    if (c->xs.n && c->reverse) at = b_sub(&s->b, b_sub(&s->b, length, b_int(&s->b, DT_i64, 1)), counter);
    for (uint32_t i = 0; i < c->xs.n; i++) {
        Parts y;
        if (!split_scanned(s, c->xs.at[i], at, val_array(s->cx, turn->xs.at[i]), &y)) return false;
        set_parts(s, turn->xs.at[i], y);
    }
    return true;
}
/* Appends what one turn stacks to its results. */
static bool push_stacked(Split *s, Vals ys, List *next) {
    each(Val, v, ys) {
        const Parts *x = parts_of(s, *v);
        Parts like = {.along = true};
        if (!x || !begins_with_elements(s, val_array(s->cx, *v))) return false;
        Parts p = *x;
        if (!spread_parts(s, val_array(s->cx, *v), &like, &p)) return false;
        for (uint32_t k = 0; k < p.n; k++) push(s->cx->arena, next, p.at[k]);
    }
    return true;
}
/* The scan of scalars, whose stacks have the scan's turns as their first axis. */
static bool finish_stacks(Split *s, Loops *l, const Scan *c, const Scan *turn, const Inner *body) {
    Loop how = {.length = c->length, .carries = l->init.n, .reverse = c->reverse};
    Vals y = b_scan(&s->b, body, how, l->init.n, l->init.at);
    if (s->b.failed) return false;
    s->arrays = true;
    bind(s, l, l->end, y.at);
    Val *at = y.at + l->init.n;
    for (uint32_t i = 0; i < c->ys.n; i++) {
        Room r;
        Parts p = {.at = at, .along = true};
        bool fits = room_of(s, val_array(s->cx, turn->ys.at[i]), &p, &r);
        assert(fits);
        p.n = r.size, p.first = 1;
        at += p.n;
        set_parts(s, c->ys.at[i], p);
    }
    return true;
}
/* Without what is stacked for nothing. */
static void keep_used(const Split *s, Scan *c, Scan *turn) {
    bool *used = arena_new(s->cx->arena, bool, c->ys.n + 1);
    for (uint32_t i = 0; i < c->ys.n; i++) used[i] = s->uses[c->ys.at[i]] > 0;
    turn->ys = vals_where(s->cx->arena, turn->ys, used, true);
    c->ys = vals_where(s->cx->arena, c->ys, used, true);
}
/* Only the whole loop may, whose length is known before it. That of one turn is no loop for the generator. */
static bool may_stack(const Split *s, const Eqn *e, Dim length) {
    bool loops = dim_is_const(length) ? length > 1 : !dim_has_bound(s->cx->types, length);
    return e == s->whole && loops;
}
/* A scan as a while that counts, or as a scan if it stacks. */
static bool split_scan(Split *s, const Eqn *e) {
    Scan c = scan_of(e), turn = scan_turn(&c, c.body);
    Loops l = {.carry = c.carry, .end = c.end, .counts = true};
    c.length = scan_length(s->cx, &c);
    keep_used(s, &c, &turn);
    if ((c.ys.n && !may_stack(s, e, c.length)) || !open_loop(s, &l)) return false;
    Val length = length_of(s, c.length);
    if (!length) return false;
    Inner test = b_inner(&s->b, l.init.n, l.types);
    Val more = b_lt(&s->b, test.in.at[0], length);
    b_inner_end(&s->b, &test, 1, &more);
    Inner body = b_inner(&s->b, l.init.n, l.types);
    List next = {0};
    for (uint32_t i = 0; i < l.init.n; i++) push(s->cx->arena, &next, 0);
    bind_consts(s, turn.consts, c.consts);
    bind(s, &l, turn.carry, body.in.at);
    if (!bind_slices(s, &c, &turn, body.in.at[0], length)) return false;
    if (!split_elements(s, c.body->eqns) || !split_turn(s, &l, turn.end, &body, next.at)) return false;
    if (!push_stacked(s, turn.ys, &next)) return false;
    b_inner_end(&s->b, &body, next.n, next.at);
    return c.ys.n ? finish_stacks(s, &l, &c, &turn, &body) : finish_loop(s, &l, &test, &body);
}
/* A program that several loops share, and that has loops itself, is not copied for each. */
bool split_element_loop(Split *s, const Eqn *e) {
    const Jaxpr *body = e->prim == P_scan ? scan_of(e).body : while_of(e).body;
    bool fresh, loops = false;
    intern(&s->bodies, &body, sizeof body, &fresh);
    each(const Eqn, q, body->eqns) loops |= q->prim == P_while || q->prim == P_scan;
    if (++s->written > MOST_EQUATIONS || (!fresh && loops)) return false;
    if (++s->nest > s->deepest) s->deepest = s->nest;
    bool done = e->prim == P_while ? split_while(s, e) : split_scan(s, e);
    s->nest--;
    if (!done && s->never && s->stay) intern(s->stay, &e, sizeof e, NULL);
    return done;
}
