/* split of cond. The known branches give, besides their results, the residuals of all, in slots: a slot holds a
   residual of its type of whichever branch runs. A branch without one gives zeros, which nobody reads. */
#include "flow.h"

typedef struct {
    Val of;         /* a residual that it holds, as a value of the known program of branch `owner` */
    uint32_t owner; /* the first branch that has one */
    Type type;      /* as the equation sees it; 0: an extent of it is computed in the branch */
    bool own;       /* no other branch uses it: it is such an extent, or has one */
    Val result;     /* of the known cond */
} Slot;
typedef struct { /* slots of one type, which several branches use */
    uint32_t *at;
    uint32_t n, cap;
    uint32_t next; /* that the branch looked at has not used */
} Shared;
typedef struct {
    const MadeSplit *made;
    uint32_t nknown; /* results */
    uint32_t *slot;  /* of each further residual */
    Val *residuals;  /* as the equation sees them */
} Branch;
typedef struct {
    SplitEqn *s;
    Tx *tx;
    Cond c;
    Bits in, out; /* the unknown operands, without the index, and results */
    Branch *branches;
    ValList known, unknown; /* operands, without the index */
    Val *results;           /* of the known cond: the known ones, as those of each branch */
    struct {
        Slot *at;
        uint32_t n, cap;
    } slots;
    Intern types;
    struct {
        Shared *at;
        uint32_t n, cap;
    } shared; /* by number of their type */
} Split;

static Val further(const Branch *b, uint32_t k) { return b->made->known.j->out.at[b->nknown + k]; }
/* Inputs of the branch's known program → operands of the equation. */
static ValMap outward(const Split *s, const Branch *b) {
    ValMap map = {.cx = s->tx->cx, .sparse = true};
    const Inner *known = &b->made->known;
    Vals in = vals_joined(s->tx->cx->arena, 2, (Vals[]){known->captured, list_vals(s->known)});
    for (uint32_t i = 0; i < in.n; i++) valmap_put(&map, known->j->in.at[i], in.at[i]);
    return map;
}

/* ---- slots */
typedef struct {
    const ValMap *inputs;
    bool inside;
} Extents;
static void visit_extent(void *user, Val v) {
    Extents *x = user;
    x->inside |= valmap_get(x->inputs, v) == v;
}
/* `map`: of `outward`. */
static uint32_t slot_for(Split *s, uint32_t branch, Val v, const ValMap *map) {
    Ctx *cx = s->tx->cx;
    Extents x = {map, false};
    bool fresh;
    type_extents(cx, val_type(cx, v), visit_extent, &x);
    bool own = x.inside || dim_is_bound(cx->types, v);
    Type type = x.inside ? 0 : type_plain(cx->types, type_rewrite(map, val_type(cx, v)));
    uint32_t k = intern(&s->types, &type, sizeof type, &fresh), slot = s->slots.n;
    if (fresh) push(cx->arena, &s->shared, (Shared){0});
    Shared *shared = &s->shared.at[k];
    if (!own && shared->next < shared->n) return shared->at[shared->next++];
    if (!own) {
        push(cx->arena, shared, slot);
        shared->next++;
    }
    push(cx->arena, &s->slots, ((Slot){.of = v, .type = type, .own = own, .owner = branch}));
    return slot;
}
static void find_slots(Split *s) {
    Arena *arena = s->tx->cx->arena;
    s->types.arena = arena;
    for (uint32_t k = 0; k < s->c.branches.n; k++) {
        Branch *b = &s->branches[k];
        ValMap map = outward(s, b);
        each(Shared, shared, s->shared) shared->next = 0;
        b->slot = arena_new(arena, uint32_t, b->made->nmore + 1);
        for (uint32_t i = 0; i < b->made->nmore; i++) b->slot[i] = slot_for(s, k, further(b, i), &map);
    }
}

/* ---- the known cond */

/* What a branch gives for a slot that it does not use; `y`: its results. */
static Val nothing(Split *s, Slot *slot, ValMap *extents, Vals y) {
    Builder *b = s->s->b;
    const Branch *owner = &s->branches[slot->owner];
    Type type = slot->type;
    if (!type) {
        ValMap map = outward(s, owner);
        for (uint32_t i = 0; i < owner->made->known.j->out.n; i++) {
            Val out = owner->made->known.j->out.at[i];
            valmap_put(&map, out, i < owner->nknown ? y.at[i] : valmap_get(extents, out));
        }
        type = type_rewrite(&map, val_type(s->tx->cx, slot->of));
    }
    const ArrayType *t = type_at(s->tx->cx->types, type);
    Val zero = b_number(b, t->dtype, 0);
    if (!slot->own || t->rank) return b_full(b, zero, t->rank, t->dims);
    zero = b_variable(b, zero);
    valmap_put(extents, slot->of, zero);
    return zero;
}
static bool in_place(const Split *s, const Branch *b) {
    bool same = b->made->nmore == s->slots.n;
    for (uint32_t i = 0; i < b->made->nmore && same; i++) same = b->slot[i] == i;
    return same;
}
static Inner known_of(Split *s, uint32_t k) {
    Branch *branch = &s->branches[k];
    const Inner *known = &branch->made->known;
    Builder *b = s->s->b;
    Arena *arena = s->tx->cx->arena;
    if (in_place(s, branch)) return *known;
    Inner i = b_inner_like(b, s->known.n, s->known.at);
    Vals in = vals_joined(arena, 2, (Vals[]){known->captured, i.in}), y = b_call(b, known->j, in.n, in.at);
    Val *out = arena_new(arena, Val, branch->nknown + s->slots.n + 1), *held = out + branch->nknown;
    bool computed = false;
    each(const Slot, slot, s->slots) computed |= !slot->type;
    for (uint32_t n = 0; n < branch->nknown; n++) out[n] = y.at[n] = computed ? b_variable(b, y.at[n]) : y.at[n];
    for (uint32_t n = 0; n < branch->made->nmore; n++) held[branch->slot[n]] = y.at[branch->nknown + n];
    ValMap extents = {.cx = s->tx->cx, .sparse = true};
    for (uint32_t n = 0; n < s->slots.n; n++)
        if (!held[n]) held[n] = nothing(s, &s->slots.at[n], &extents, y);
    b_inner_end(b, &i, branch->nknown + s->slots.n, out);
    return i;
}
/* The type of a slot's result, after those before it. */
static Type slot_type(const Split *s, const Slot *slot) {
    const Branch *owner = &s->branches[slot->owner];
    if (slot->type) return slot->type;
    ValMap map = outward(s, owner);
    Vals out = owner->made->known.j->out;
    for (uint32_t i = 0; i < out.n; i++) {
        Val v = i < owner->nknown ? s->results[i] : s->slots.at[owner->slot[i - owner->nknown]].result;
        if (v && valmap_get(&map, out.at[i]) == out.at[i]) valmap_put(&map, out.at[i], v);
    }
    return type_rewrite(&map, val_type(s->tx->cx, slot->of));
}
static bool known_cond(Split *s) {
    Tx *tx = s->tx;
    Builder *b = s->s->b;
    ValList out = {0};
    Inner *branches = arena_new(tx->cx->arena, Inner, s->c.branches.n + 1);
    bool worth = false;
    for (uint32_t k = 0; k < s->c.branches.n; k++) {
        branches[k] = known_of(s, k);
        if (b->failed) return false;
        worth |= worth_running(tx, branches[k].j);
    }
    if (!worth) return true;
    Eqn e = cond_like(tx, b, s->s->e, branches, s->known);
    for (uint32_t i = 0; i < s->out.n; i++) {
        if (s->out.at[i]) continue;
        Val read = s->s->e->out.at[i];
        s->s->out[i] = s->results[out.n] = tx_placeholder(tx, read);
        valmap_put(&tx->map, read, s->s->out[i]); /* types of later results may name it */
        push(tx->cx->arena, &out, s->s->out[i]);
    }
    each(Slot, slot, s->slots) {
        slot->result = val_new(tx->cx, slot_type(s, slot), b->span);
        push(tx->cx->arena, &out, slot->result);
    }
    e.out = list_vals(out);
    push(tx->cx->arena, &b->eqns, e);
    return true;
}

/* ---- the unknown cond */
static void find_residuals(Split *s) {
    for (uint32_t k = 0; k < s->c.branches.n; k++) {
        Branch *b = &s->branches[k];
        Val *y = arena_new(s->tx->cx->arena, Val, b->nknown + b->made->nmore + 1);
        if (b->nknown) memcpy(y, s->results, b->nknown * sizeof *y);
        for (uint32_t i = 0; i < b->made->nmore; i++) y[b->nknown + i] = s->slots.at[b->slot[i]].result;
        b->residuals = residual_values(s->tx, b->made, s->c.in.at, y);
    }
}
static bool same_residuals(const Split *s) {
    const Branch *first = s->branches;
    bool same = true;
    for (uint32_t k = 1; k < s->c.branches.n && same; k++) {
        const Branch *b = first + k;
        uint32_t n = b->made->nresiduals;
        same = n == first->made->nresiduals && (!n || !memcmp(b->residuals, first->residuals, n * sizeof(Val)));
    }
    return same;
}
static Inner unknown_of(Split *s, const Branch *branch, ValList operands) {
    Builder *u = s->s->u;
    uint32_t n = branch->made->nresiduals, shared = operands.n - s->unknown.n;
    ValMap inside = {.cx = s->tx->cx, .sparse = true};
    Inner i = b_inner_like(u, operands.n, operands.at);
    for (uint32_t k = 0; k < shared; k++) valmap_put(&inside, operands.at[k], i.in.at[k]);
    Vals in = vals_rewrite(&inside, (Vals){branch->residuals, n});
    in = vals_joined(s->tx->cx->arena, 2, (Vals[]){in, vals_part(i.in, shared, s->unknown.n)});
    Vals y = b_call(u, branch->made->unknown.j, in.n, in.at);
    b_inner_end(u, &i, y.n, y.at);
    return i;
}
static bool unknown_cond(Split *s) {
    Tx *tx = s->tx;
    ValList operands = {0}, out = {0};
    Intern seen = {.arena = tx->cx->arena};
    bool same = same_residuals(s);
    if (!bits_some(s->out)) return true;
    for (uint32_t k = 0; k < (same ? 1 : s->c.branches.n); k++)
        for (uint32_t i = 0; i < s->branches[k].made->nresiduals; i++) {
            Val v = s->branches[k].residuals[i];
            bool fresh;
            intern(&seen, &v, sizeof v, &fresh);
            if (fresh || same) push(tx->cx->arena, &operands, v);
        }
    add_nonzero(tx, &operands, s->unknown.n, s->unknown.at);
    Inner *branches = arena_new(tx->cx->arena, Inner, s->c.branches.n + 1);
    for (uint32_t k = 0; k < s->c.branches.n; k++)
        branches[k] = same ? s->branches[k].made->unknown : unknown_of(s, &s->branches[k], operands);
    if (s->s->u->failed) return false;
    Eqn e = cond_like(tx, s->s->u, s->s->e, branches, operands);
    for (uint32_t i = 0; i < s->out.n; i++) {
        if (!s->out.at[i]) continue;
        s->s->out[i] = tx_placeholder(tx, s->s->e->out.at[i]);
        push(tx->cx->arena, &out, s->s->out[i]);
    }
    e.out = list_vals(out);
    push(tx->cx->arena, &s->s->u->eqns, e);
    return true;
}

static bool split_as_whole(SplitEqn *s) {
    Vals out = tx_copy(s->tx, s->u, s->e);
    for (uint32_t i = 0; i < out.n; i++) s->out[i] = out.at[i], s->out_unknown[i] = true;
    return true;
}
bool split_cond(SplitEqn *eqn) {
    Tx *tx = eqn->tx;
    Arena *arena = tx->cx->arena;
    if (eqn->unknown[0]) return split_as_whole(eqn);
    Split s = {.s = eqn, .tx = tx, .c = cond_of(eqn->e)};
    uint32_t nout = s.c.out.n, n = s.c.branches.n;
    s.in = (Bits){eqn->unknown + 1, s.c.in.n}, s.out = (Bits){eqn->out_unknown, nout};
    each(Jaxpr *, j, s.c.branches) bits_unite(eqn->out_unknown, taint(tx, TAINT_SPLIT, *j, s.in));
    s.branches = arena_new(arena, Branch, n + 1), s.results = arena_new(arena, Val, nout + 1);
    for (uint32_t k = 0; k < n; k++) {
        Branch *b = &s.branches[k];
        b->made = made_split(tx, eqn->b, s.c.branches.at[k], s.in, s.out);
        if (!b->made) return false;
        b->nknown = b->made->known.j->out.n - b->made->nmore;
    }
    add_where(tx, &s.known, s.c.in.at, s.in, false);
    add_where(tx, &s.unknown, s.c.in.at, s.in, true);
    find_slots(&s);
    if (!known_cond(&s)) return false;
    find_residuals(&s);
    return unknown_cond(&s);
}
