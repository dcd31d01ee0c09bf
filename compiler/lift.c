/* The inputs that a program takes for its nested programs come before its own, so that its body is rewritten once even
   if several equations share it. Programs that are not bodies of calls, loops or branches keep their constants. */
#include "lift.h"
#include "control.h"
#include <stdlib.h>

/* A constant of a nested program, or an array literal, and the variable that holds it here. */
typedef struct {
    Val origin, here;
} Taken;
typedef struct {
    Taken *at;
    uint32_t n, cap;
    Intern origins;
    bool widened; /* also takes what the other branches of its equation take */
} Takes;
typedef struct {
    Ctx *cx;
    Intern seen; /* Jaxpr pointers */
    struct {
        Takes **at;
        uint32_t n, cap;
    } takes; /* by number in `seen` */
} Lift;

static Takes *lift(Lift *, Jaxpr *);

static Val take(Lift *l, Takes *t, Val origin) {
    bool fresh;
    uint32_t id = intern(&t->origins, &origin, sizeof origin, &fresh);
    if (!fresh) return t->at[id].here;
    const ValInfo from = *val_info(l->cx, origin);
    Val here = val_new(l->cx, from.type, from.span);
    val_info(l->cx, here)->name = from.lit ? S("const") : from.name;
    push(l->cx->arena, t, ((Taken){origin, here}));
    return here;
}

static void insert(Arena *arena, Vals *vals, uint32_t at, const Val *new, uint32_t n) {
    Vals all = {arena_new(arena, Val, (size_t)vals->n + n), vals->n + n};
    if (at > vals->n) at = vals->n;
    for (uint32_t i = 0; i < all.n; i++) all.at[i] = i < at ? vals->at[i] : i < at + n ? new[i - at] : vals->at[i - n];
    *vals = all;
}

/* The inputs that `inner` takes become operands of an equation in the program whose inputs are `around`. */
static void add_operands(Lift *l, Takes *around, Eqn *e, uint32_t at, const Takes *inner) {
    Arena *arena = l->cx->arena;
    Val *new = arena_new(arena, Val, inner->n);
    Span *places = arena_new(arena, Span, (size_t)e->in.n + inner->n);
    if (at > e->in.n) at = e->in.n;
    for (uint32_t i = 0; i < inner->n; i++) new[i] = take(l, around, inner->at[i].origin);
    for (uint32_t i = 0; i < e->in.n + inner->n; i++)
        places[i] = i < at ? e->in_at[i] : i < at + inner->n ? e->span : e->in_at[i - inner->n];
    insert(arena, &e->in, at, new, inner->n);
    e->in_at = places;
}

/* ---- equations that hold programs */

static void lift_programs(Lift *l, Takes *around, Eqn *e) {
    OwnConsts own;
    for (uint32_t k = 0; own_consts(e, k, &own); k++) {
        const Takes *inner = lift(l, own.program);
        add_operands(l, around, e, own.first, inner);
        if (own.n)
            *own.n += inner->n;
        else if (inner->n)
            count_consts(l->cx->arena, e, inner->n);
    }
}

/* A branch also takes what the others take, without using it. */
static bool widen(Lift *l, Jaxpr *j, Takes *own, const Takes *const *all, uint32_t n, uint32_t k) {
    uint32_t sizes[2] = {0};
    for (uint32_t i = 0; i < n; i++)
        if (i != k) sizes[i > k] += all[i]->n;
    if (!sizes[0] && !sizes[1]) return true;
    if (own->widened) return false;
    own->widened = true;
    for (uint32_t i = 0, at = 0; i < n; at += all[i++]->n) {
        Val *new = arena_new(l->cx->arena, Val, all[i]->n);
        for (uint32_t m = 0; m < all[i]->n; m++)
            new[m] = val_new(l->cx, val_type(l->cx, all[i]->at[m].origin), j->span);
        if (i != k) insert(l->cx->arena, &j->in, at, new, all[i]->n);
    }
    return true;
}

static void lift_branches(Lift *l, Takes *around, Eqn *e) {
    uint32_t first;
    Jaxprs branches = cond_branches(e, &first);
    const Takes **all = arena_new(l->cx->arena, const Takes *, branches.n);
    for (uint32_t i = 0; i < branches.n; i++) all[i] = lift(l, branches.at[i]);
    for (uint32_t i = 0, at = first; i < branches.n; at += all[i++]->n) {
        add_operands(l, around, e, at, all[i]);
        if (!widen(l, branches.at[i], (Takes *)all[i], all, branches.n, i)) {
            diag(l->cx->diags, e->span,
                 "constants of branches that several equations have are not supported yet: "
                 "--consts gives their values");
            return;
        }
    }
}

/* ---- programs */

static void lift_literals(Lift *l, Takes *t, Vals vals) {
    each(Val, v, vals) {
        const ValInfo *i = val_info(l->cx, *v);
        if (i->lit && i->lit->kind == LIT_ARRAY && !i->data) *v = take(l, t, *v);
    }
}

static void lift_body(Lift *l, Takes *t, Jaxpr *j) {
    each(Eqn, e, j->eqns) {
        lift_literals(l, t, e->in);
        if (e->prim == P_cond)
            lift_branches(l, t, e);
        else
            lift_programs(l, t, e);
    }
    lift_literals(l, t, j->out);
}

static Takes *lift(Lift *l, Jaxpr *j) {
    bool fresh;
    Arena *arena = l->cx->arena;
    uint32_t id = intern(&l->seen, &j, sizeof j, &fresh);
    if (!fresh) return l->takes.at[id];
    Takes *t = arena_new(arena, Takes, 1);
    t->origins.arena = arena;
    push(arena, &l->takes, t);
    uint32_t units = 0; /* of type *, 2019: they have no value */
    each(Val, v, j->consts) {
        if (val_array(l->cx, *v)->dtype == DT_unit) {
            j->consts.at[units++] = *v;
            continue;
        }
        intern(&t->origins, v, sizeof *v, &fresh);
        push(arena, t, ((Taken){*v, *v}));
    }
    j->consts.n = units;
    lift_body(l, t, j);
    Val *all = arena_new(arena, Val, t->n);
    for (uint32_t i = 0; i < t->n; i++) all[i] = t->at[i].here;
    insert(arena, &j->in, 0, all, t->n);
    return t;
}

static int by_place(const void *x, const void *y) {
    Val a = ((const Taken *)x)->origin, b = ((const Taken *)y)->origin;
    return (a > b) - (a < b); /* values are numbered in the order of the text */
}

void consts_lift(Ctx *cx, Jaxpr *j) {
    Lift l = {.cx = cx, .seen = {.arena = cx->arena}};
    Takes t = {.origins = {.arena = cx->arena}};
    lift_body(&l, &t, j);
    if (t.n) qsort(t.at, t.n, sizeof *t.at, by_place);
    Val *all = arena_new(cx->arena, Val, t.n);
    for (uint32_t i = 0; i < t.n; i++) all[i] = t.at[i].here;
    insert(cx->arena, &j->consts, j->consts.n, all, t.n);
}
