#include "../eval/record.h"
#include "attention.h"
#include "rows.h"
#include "scatter.h"
#include "sums.h"
#include "vectors.h"
#include "../cost.h"

/* The loops of a step: at first one for each axis of its domain; split if a reshape inside needs it, collapsed if all
   reads and writes allow it; then the lane loop is chosen; then the stages: a value that needs the result of a
   reduction over the same row belongs to the next stage, and values that a later stage needs again are recomputed or,
   if that costs too much, kept in a scratch row. */

typedef struct {
    Plan *p;
    Step *step;
    struct {
        Ix *at;
        uint32_t n, cap;
    } addresses, indices;
    uint32_t level;
    bool later; /* marks the values that stage `level` evaluates */
} Look;

static void look(void *user, Val v, const Ix *index, Ix address) {
    Look *l = user;
    if (!v) {
        push(l->p->arena, &l->indices, address);
        return;
    }
    if (plan_info(l->p, v)->class == VAL_SCALAR) return;
    uint32_t bytes = dtype_info[val_array(l->p->cx, v)->dtype].bits / 8;
    if (bytes < l->step->narrowest || !l->step->narrowest) l->step->narrowest = bytes;
    if (bytes > l->step->widest) l->step->widest = bytes;
    push(l->p->arena, &l->addresses, address);
}
/* Everything the step reads and writes; what a product on a CPU reads comes first, since loops are split by the first
   that asks for it, and panels must have loops of their own. */
static void look_all(Look *l) {
    Plan *p = l->p;
    Step *s = l->step;
    l->addresses.n = l->indices.n = 0;
    const Attention *a = s->dot && s->dot->device ? s->dot->device->attention : NULL;
    Ix index[MAX_RANK], scores[2][MAX_RANK];
    if (s->dot && !s->dot->device) {
        Ix at[2];
        dot_addresses(p, s, at);
        push(p->arena, &l->addresses, at[0]);
        push(p->arena, &l->addresses, at[1]);
    }
    if (a) attention_operands(p, s, scores);
    Eval *x = record(p, s, look, l);
    each(Val, v, s->members) {
        const Info *info = plan_info(p, *v);
        const Eqn *e = info->e;
        if (eqn_reduces(e) || prim_lower[e->prim] == LOWER_SORT) {
            step_at(p, s, e->in.at[0], index);
            eval_value(x, e->in.at[0], index);
        } else if (eqn_point(e)) {
            step_at(p, s, *v, index);
            eval_value(x, *v, index);
        }
    }
    each(Store, st, s->stores) {
        step_at(p, s, st->v, index);
        eval_value(x, st->v, index);
        record_place(x, st, index);
        look(l, st->v, NULL, store_address(p, st, index));
    }
    for (uint32_t side = 0; s->dot && s->dot->device && side < 2; side++) {
        dot_device_index(p, s, side, index);
        eval_value(x, dot_device_operand(s->dot->device, side), index);
    }
    for (uint32_t side = 0; a && side < 2; side++) eval_value(x, dot_device_operand(a->dot, side), scores[side]);
    record(p, NULL, NULL, NULL); /* l does not last as long as it */
}

/* ---- loops */
static bool wants_split(Plan *p, Ix i, Atom *loop, Dim *by) {
    const IxExpr x = *ix_at(p->ix, i);
    for (uint32_t t = 0; t < x.n; t++) {
        const AtomInfo a = *atom_at(p->ix, x.at[t].atom);
        if (a.kind != ATOM_DIV && a.kind != ATOM_MOD) continue;
        const IxExpr y = *ix_at(p->ix, a.a);
        if (wants_split(p, a.a, loop, by)) return true;
        for (uint32_t u = 0; u < y.n; u++) {
            const AtomInfo q = *atom_at(p->ix, y.at[u].atom);
            if (q.kind != ATOM_LOOP || !dim_is_const(y.at[u].coef) || y.at[u].coef < 1) continue;
            if (dim_mod(p->cx->types, a.b, y.at[u].coef) != 0) continue;
            Dim d = dim_floordiv(p->cx->types, a.b, y.at[u].coef);
            if (d == 1 || d == q.extent || dim_mod(p->cx->types, q.extent, d) != 0) continue;
            *loop = y.at[u].atom, *by = d;
            return true;
        }
    }
    return false;
}
static bool split_once(Look *l, Atom **loops, uint32_t *n, bool **red) {
    Plan *p = l->p;
    Atom loop;
    Dim by;
    bool found = false;
    for (uint32_t i = 0; i < l->addresses.n && !found; i++) found = wants_split(p, l->addresses.at[i], &loop, &by);
    for (uint32_t i = 0; i < l->indices.n && !found; i++) found = wants_split(p, l->indices.at[i], &loop, &by);
    uint32_t at = 0;
    while (found && at < *n && (*loops)[at] != loop) at++;
    if (!found || at == *n) return false;
    Atom outer = atom_loop(p->ix, dim_floordiv(p->cx->types, atom_at(p->ix, loop)->extent, by));
    Atom inner = atom_loop(p->ix, by);
    Ix both = ix_add(p->ix, ix_scale(p->ix, ix_atom(p->ix, outer), by), ix_atom(p->ix, inner));
    for (uint32_t d = 0; d < l->step->domain.n; d++)
        l->step->axes[d] = ix_substitute(p->ix, l->step->axes[d], loop, both);
    Atom *more = arena_new(p->arena, Atom, *n + 1);
    bool *reds = arena_new(p->arena, bool, *n + 1);
    for (uint32_t i = 0, k = 0; i < *n; i++) {
        reds[k] = (*red)[i];
        if (i != at)
            more[k++] = (*loops)[i];
        else
            more[k++] = outer, reds[k] = (*red)[i], more[k++] = inner;
    }
    *loops = more, *red = reds, *n += 1;
    return true;
}
static bool collapses(const Look *l, Atom a, Atom b) {
    const Indices *x = l->p->ix;
    Dim extent = loop_extent(x, b);
    for (uint32_t i = 0; i < l->addresses.n + l->indices.n; i++) {
        Ix at = i < l->addresses.n ? l->addresses.at[i] : l->indices.at[i - l->addresses.n];
        bool oa, ob;
        Dim ca = ix_coef_outside(x, at, a, &oa), cb = ix_coef_outside(x, at, b, &ob);
        if (oa || ob || ca != dim_mul(l->p->cx->types, cb, extent)) return false;
    }
    return true;
}
static void collapse(Look *l, Atom *loops, uint32_t *n) {
    for (uint32_t i = *n; i-- > 1;)
        if (collapses(l, loops[i - 1], loops[i])) {
            Dim extent = dim_mul(l->p->cx->types, loop_extent(l->p->ix, loops[i - 1]), loop_extent(l->p->ix, loops[i]));
            Atom last = loops[i];
            while (atom_at(l->p->ix, last)->outer) last = atom_at(l->p->ix, last)->outer;
            atom_at(l->p->ix, last)->outer = loops[i - 1];
            atom_at(l->p->ix, loops[i - 1])->into = loops[i];
            atom_at(l->p->ix, loops[i])->run = extent;
            atom_at(l->p->ix, loops[i])->merged = true;
            for (uint32_t k = i; k < *n; k++) loops[k - 1] = loops[k];
            *n -= 1;
        }
}
/* As many vectors of terms are worth less than what joining their lanes costs in the end; 0: none. */
static uint32_t joined_vectors(const Look *l) {
    uint32_t vectors = 0;
    each(const Val, v, l->step->members) {
        Prim reduce = plan_info(l->p, *v)->e->prim;
        bool arg = reduce == P_argmax || reduce == P_argmin, extreme = reduce == P_reduce_max || reduce == P_reduce_min;
        uint32_t n = arg ? ARG_VECTORS : extreme ? EXTREME_VECTORS : 0;
        if (n > vectors) vectors = n;
    }
    return vectors;
}
/* Are the sums so short that vectors along them have many idle lanes, and is so much computed that this counts more
   than reads and writes that lie apart? `lanes`, of 4 bytes, are right for 8 too: of 12 to 30 f64 terms a softmax would
   be 1.1 to 1.25 times slower. */
static bool short_terms(const Look *l, Atom loop) {
    const Step *s = l->step;
    Dim n = loop_extent(l->p->ix, loop), lanes = l->p->target->vector_bytes / 4;
    bool reduced = s->nred == 1 && s->red[0] == loop;
    if (l->p->target->device || !reduced || !s->nkept || !dim_is_const(n)) return false;
    if (n < lanes * joined_vectors(l)) return true;
    if (s->cost < SPILL_COST) return false;
    if (s->row_cost >= SPILL_COST && n <= ROW_TERMS * s->row_cost) return true;
    return n < 2 * lanes || (n % lanes != 0 && n < SHORT_TERMS * lanes);
}
static bool is_of_terms(const Look *l, Ix address) {
    bool uses = false;
    for (uint32_t i = 0; i < l->step->nred; i++) uses |= ix_uses(l->p->ix, address, l->step->red[i]);
    return uses;
}
/* Accesses that are contiguous along this loop, and would be apart along others that they depend on. */
static uint32_t contiguous_accesses(const Look *l, Atom loop) {
    const Step *s = l->step;
    uint32_t n = 0;
    for (uint32_t i = 0; i < l->addresses.n; i++) {
        bool other, moves = false;
        for (uint32_t k = 0; k < s->nkept; k++)
            moves |= s->kept[k] != loop && ix_uses(l->p->ix, l->addresses.at[i], s->kept[k]);
        n += moves && ix_coef(l->p->ix, l->addresses.at[i], loop, &other) == 1 && !other;
    }
    return n;
}
/* Is a loop without sums so short that what idle lanes of its last vector compute, and the mask of that, cost more than
   accesses that lie apart? Another one has to have lanes, then. */
static bool short_row(const Look *l, Atom loop) {
    const Step *s = l->step;
    const Target *t = l->p->target;
    if (t->device || t->masks || s->nred || s->cost < ROW_COST || !stores_floats(l->p, s)) return false;
    Dim n = loop_extent(l->p->ix, loop), lanes = vector_of(l->p, s), half = lanes / 2;
    if (!half || !dim_is_const(n) || n <= half || n > SHORT_TERMS * lanes || n % half == 0) return false;
    uint32_t accesses = contiguous_accesses(l, loop);
    if (accesses > ROW_ACCESSES || (accesses > 1 && n > 2 * lanes)) return false;
    bool others = false;
    for (uint32_t i = 0; i < s->nkept; i++)
        others |= s->kept[i] != loop && !dot_at_most(loop_extent(l->p->ix, s->kept[i]), SHORT_TERMS * lanes);
    Dim rest = n % lanes, mask = rest > half ? MASK_COST : rest > half / 2 ? MASK_COST / 2 : 0;
    return others && (lanes - rest) * s->cost + lanes * mask > accesses * n * APART_COST;
}
/* The lane loop is the innermost of the kept ones, but for short rows inside it: all elements of a few rows are written
   while they are in the first cache. */
static void lane_inside(const Look *l) {
    Step *s = l->step;
    uint32_t at = 0;
    while (at < s->nkept && s->kept[at] != s->lane) at++;
    for (uint32_t i = at + 1; i < s->nkept; i++) {
        Atom loop = s->kept[i];
        if (short_row(l, loop)) continue;
        memmove(s->kept + at + 1, s->kept + at, (i - at) * sizeof *s->kept);
        s->kept[at++] = loop;
    }
}
/* Where it writes an element. */
static Ix stored_at(const Look *l, const Store *st) {
    Ix index[MAX_RANK];
    step_at(l->p, l->step, st->v, index);
    return store_address(l->p, st, index);
}
/* Does a store write rows of this loop beside each other, which are then interleaved? */
static bool stores_dense(const Look *l, Atom loop, Dim n) {
    const Step *s = l->step;
    bool other, found = false;
    each(const Store, st, s->stores) {
        Ix at = stored_at(l, st);
        for (uint32_t k = 0; k < s->nkept; k++)
            found |= s->kept[k] != loop && ix_coef(l->p->ix, at, s->kept[k], &other) == n && !other;
    }
    return found;
}
/* Is the loop a short row, along which all accesses are contiguous, and along no other? Then rows are copied one by one,
   if little is computed, where masks are slow. */
static bool copies_rows(const Look *l, Atom loop) {
    const Step *s = l->step;
    Dim n = loop_extent(l->p->ix, loop);
    bool other, slow = !l->p->target->device && !l->p->target->masks;
    if (!slow || s->nred || s->nkept < 2 || s->cost > COPY_COST || !dim_is_const(n) || n < 2) return false;
    if (n < COPIED_TURNS && stores_dense(l, loop, n)) return false;
    for (uint32_t i = 0; i < l->addresses.n; i++) {
        if (ix_coef(l->p->ix, l->addresses.at[i], loop, &other) != 1 || other) return false;
        for (uint32_t k = 0; k < s->nkept; k++) {
            Dim c = ix_coef(l->p->ix, l->addresses.at[i], s->kept[k], &other);
            if (s->kept[k] != loop && (other || c == 1)) return false;
        }
    }
    return l->addresses.n > 0;
}
/* How well vectors along this loop suit the reads and writes. Those of terms occur more often than those of sums. */
static int64_t suits(const void *user, Atom loop) {
    const Look *l = user;
    int64_t score = 0;
    if (short_terms(l, loop) || short_row(l, loop)) return INT64_MIN;
    for (uint32_t i = 0; i < l->addresses.n; i++) {
        bool other;
        Dim c = ix_coef(l->p->ix, l->addresses.at[i], loop, &other);
        int64_t apart = is_of_terms(l, l->addresses.at[i]) ? -4 * TERMS_EACH : -4;
        score += other ? apart : c == 1 ? 4 : c == 0 ? 1 : apart;
    }
    Dim extent = loop_extent(l->p->ix, loop);
    if (dim_is_const(extent) && extent < LANE_TURNS && !copies_rows(l, loop))
        score -= 2 * (LANE_TURNS - extent) * (int64_t)(l->addresses.n + 1);
    return score;
}
/* Does a vector read or write elements that do not lie beside each other? */
static bool lanes_apart(const Look *l) {
    bool other, apart = false;
    for (uint32_t i = 0; i < l->addresses.n; i++) {
        Dim c = ix_coef(l->p->ix, l->addresses.at[i], l->step->lane, &other);
        apart |= other || (c != 0 && c != 1);
    }
    return apart;
}
/* Does a store write the elements of this loop beside each other, and the lanes as far apart as they are many? */
static bool interleaves(const Look *l, Atom loop, Dim n) {
    const Step *s = l->step;
    bool other, found = false;
    each(const Store, st, s->stores) {
        Ix at = stored_at(l, st);
        if (ix_coef(l->p->ix, at, s->lane, &other) != n || other) continue;
        found |= ix_coef(l->p->ix, at, loop, &other) == 1 && !other;
    }
    return found;
}
/* A short loop that selects the operand of a concatenation is unrolled: then each copy reads one operand; and one whose
   elements can be stored together. */
static void choose_unrolled(Look *l) {
    Step *s = l->step;
    for (uint32_t i = 0; i < s->nkept && !s->unrolled; i++) {
        Dim n = loop_extent(l->p->ix, s->kept[i]);
        bool used = false;
        for (uint32_t k = 0; k < l->indices.n; k++) used |= ix_uses(l->p->ix, l->indices.at[k], s->kept[i]);
        if (s->kept[i] == s->lane || !dim_is_const(n) || n > UNROLLED_TURNS) continue;
        s->interleaved = !l->p->target->device && s->lane && !s->reduces && interleaves(l, s->kept[i], n);
        if (used || s->interleaved) s->unrolled = s->kept[i];
    }
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->nkept; i++)
        if (s->kept[i] != s->unrolled) s->kept[n++] = s->kept[i];
    s->nkept = n;
}
/* A loop along which an access is contiguous that is far apart along the lanes: both run together in square tiles. */
static void choose_tile(Look *l) {
    Step *s = l->step;
    const Indices *x = l->p->ix;
    if (s->reduces || s->unrolled || !s->lane || s->cost > TILE_COST) return;
    for (uint32_t i = 0; i < l->addresses.n; i++) {
        bool other;
        Dim lane = ix_coef(x, l->addresses.at[i], s->lane, &other);
        if (other || (dim_is_const(lane) && lane >= -4 && lane <= 4)) continue;
        for (uint32_t k = 0; k < s->nkept; k++) {
            Dim n = loop_extent(x, s->kept[k]);
            if (s->kept[k] == s->lane || (dim_is_const(n) && n < TILE_TURNS)) continue;
            if (ix_coef(x, l->addresses.at[i], s->kept[k], &other) == 1 && !other) s->tile = s->kept[k];
        }
    }
    for (uint32_t i = 0; s->tile && i + 2 < s->nkept; i++) /* next to the lane loop */
        if (s->kept[i] == s->tile) s->kept[i] = s->kept[i + 1], s->kept[i + 1] = s->tile;
}

bool prim_in_order(Prim reduce, Dtype d) {
    bool sum = prim_combiner[reduce] == P_add || prim_combiner[reduce] == P_mul;
    return sum && dtype_info[d].kind == DK_FLOAT && dtype_is_narrow(d);
}
bool step_in_order(Plan *p, const Step *s) {
    each(Val, v, s->members) {
        const Eqn *e = plan_info(p, *v)->e;
        if (eqn_reduces(e) && prim_in_order(e->prim, val_array(p->cx, *v)->dtype)) return true;
    }
    return false;
}
/* Loops over reduced axes with few iterations are unrolled. If a kept loop and one of those move over the same
   elements, as windows do, several iterations of the kept loop are done at once, which load each element once. */
static void choose_jam(Look *l) {
    Step *s = l->step;
    const Indices *x = l->p->ix;
    Dim turns = 1;
    if (!s->reduces || !s->nred || s->red[s->nred - 1] == s->lane || s->tile || s->unrolled) return;
    for (uint32_t i = 0; i < s->nred; i++) {
        Dim n = loop_extent(x, s->red[i]);
        if (!dim_is_const(n) || n < 1 || n > MOST_TURNS / turns) return;
        turns *= n;
    }
    bool long_apart = s->apart && turns > APART_TURNS;
    s->written_out = l->p->target->device || (turns * s->cost <= WRITTEN_COST && !long_apart);
    if (!s->written_out) return;
    for (uint32_t i = 0; i < s->nkept && turns > 1; i++) {
        Dim extent = loop_extent(x, s->kept[i]);
        if (s->kept[i] == s->lane || (dim_is_const(extent) && extent < JAM_TURNS)) continue;
        for (uint32_t k = 0; k < l->addresses.n * s->nred; k++) {
            bool a, b;
            Atom red = s->red[k % s->nred];
            Dim kept = ix_coef(x, l->addresses.at[k / s->nred], s->kept[i], &a),
                step = ix_coef(x, l->addresses.at[k / s->nred], red, &b);
            if (a || b || !dim_is_const(kept) || !dim_is_const(step) || kept <= 0 || step <= 0) continue;
            if (kept % step == 0 && kept / step < loop_extent(x, red)) s->jam = s->kept[i];
        }
    }
    for (uint32_t i = 0; s->jam && i + 2 < s->nkept && !l->p->target->device; i++) /* next to the lane loop */
        if (s->kept[i] == s->jam) s->kept[i] = s->kept[i + 1], s->kept[i + 1] = s->jam;
    if (!s->jam && s->nred == 1 && turns > MOST_ROWS) s->written_out = false;
    s->half = turns > OWN_TURNS ? turns / 2 : 0;
}

static void find_loops(Look *l) {
    Plan *p = l->p;
    Step *s = l->step;
    uint32_t n = 0;
    Atom *loops = arena_new(p->arena, Atom, s->domain.n + 1);
    bool *red = arena_new(p->arena, bool, s->domain.n + 1);
    for (uint32_t d = 0; d < s->domain.n; d++) {
        red[n] = s->reduced[d];
        loops[n++] = ix_loop(p->ix, s->axes[d]);
    }
    look_all(l);
    for (uint32_t tries = 0; tries < STEP_SPLITS && split_once(l, &loops, &n, &red); tries++) look_all(l);
    assert(n <= STEP_NEST);
    s->kept = arena_new(p->arena, Atom, n + 1);
    s->red = arena_new(p->arena, Atom, n + 1);
    for (uint32_t i = 0; i < n; i++)
        if (red[i])
            s->red[s->nred++] = loops[i];
        else
            s->kept[s->nkept++] = loops[i];
    if (s->kind != STEP_CUM) collapse(l, s->kept, &s->nkept);
    if (s->kind != STEP_LOOPS && s->kind != STEP_SCATTER) return;
    collapse(l, s->red, &s->nred);
    if (s->kind == STEP_SCATTER) {
        scatter_schedule(p, s, suits, l);
        return;
    }
    int64_t best = INT64_MIN;
    uint32_t choices = s->nkept + (step_in_order(p, s) ? 0 : s->nred);
    for (uint32_t i = 0; i < choices; i++) {
        Atom a = step_loop(s, i);
        int64_t score = suits(l, a);
        if (score >= best) best = score, s->lane = a;
    }
    lane_inside(l);
    for (uint32_t i = 0; i + 1 < s->nred; i++)
        if (s->red[i] == s->lane) s->red[i] = s->red[i + 1], s->red[i + 1] = s->lane;
    s->apart = lanes_apart(l);
    choose_unrolled(l);
    if (!p->target->device) choose_tile(l);
    choose_jam(l);
}

/* ---- stages */
typedef struct {
    Plan *p;
    Step *step;
    uint32_t level, first, need;
} Stage;
static void level_of(void *user, Val v, const Ix *index, Ix address) {
    Stage *g = user;
    if (!v) return;
    const Info *info = plan_info(g->p, v);
    if (info->class == VAL_MEMBER && info->step == g->step->number && info->level > g->level) g->level = info->level;
}
static void need_of(void *user, Val v, const Ix *index, Ix address) {
    Stage *g = user;
    if (!v) return;
    Info *info = plan_info(g->p, v);
    if (info->class != VAL_MEMBER || info->step != g->step->number) return;
    if (info->need < g->need) info->need = g->need;
    if (info->first > g->first) info->first = g->first;
}
static void operands(Plan *p, Step *s, Val v, Seen *seen, void *user) {
    const Eqn *e = plan_info(p, v)->e;
    Ix index[MAX_RANK];
    if (!eqn_reduces(e) && !eqn_point(e)) return;
    Val like = eqn_reduces(e) ? e->in.at[0] : v;
    step_at(p, s, like, index);
    if (prim_lower[e->prim] == LOWER_PROGRAM) {
        eval_program(record(p, NULL, seen, user), e, index + plan_info(p, v)->stack);
        return;
    }
    for (uint32_t i = 0; i < e->in.n; i++) {
        const ArrayType *t = val_array(p->cx, e->in.at[i]), *y = val_array(p->cx, like);
        Ix at[MAX_RANK];
        for (uint32_t d = 0; d < t->rank; d++) at[d] = t->dims[d] == 1 && y->dims[d] != 1 ? 0 : index[d];
        plan_reads(p, e->in.at[i], at, seen, user);
    }
}
/* Were loops collapsed over axes that have one of the other kind between them? Then these axes are not in the order of
   the domain in memory. */
static bool collapsed_across(Plan *p, const Step *s) {
    for (uint32_t a = 0; a < s->domain.n; a++) {
        const IxExpr x = *ix_at(p->ix, s->axes[a]);
        for (uint32_t i = 0; i < x.n; i++) {
            Atom into = atom_at(p->ix, x.at[i].atom)->into;
            for (uint32_t b = a + 1, other = 0; into && b < s->domain.n; b++) {
                if (other && ix_uses(p->ix, s->axes[b], into)) return true;
                other |= s->reduced[b] != s->reduced[a];
            }
        }
    }
    return false;
}
/* The strides of v, of the domain's shape, with the axes that are reduced, or are not, innermost. */
static const Dim *strides_apart(Plan *p, const Step *s, Val v, bool reduced) {
    const ArrayType *t = val_array(p->cx, v);
    Dim *strides = arena_new(p->arena, Dim, t->rank + 1), stride = 1;
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t a = s->domain.n, d = t->rank; d-- > 0;) {
            if (t->dims[d] == 1 || (s->reduced[--a] == reduced) != (pass == 0)) continue;
            strides[d] = stride, stride = dim_mul(p->cx->types, stride, t->dims[d]);
        }
    return strides;
}
/* Is m `result` or, through elementwise equations that alone read it, a part of the result's element at the same
   index? */
static bool computes_only(Plan *p, Val m, Val result) {
    while (m != result) {
        const Info *info = plan_info(p, m);
        bool alone = info->once && !info->buf && !eqn_reduces(info->e);
        if (!alone || !info->reader || !eqn_point(info->reader) || info->reader->out.n != 1) return false;
        m = info->reader->out.at[0];
    }
    return true;
}
/* Does a later stage read v at another index than that of the result, or not for the result `only`? */
typedef struct {
    Plan *p;
    Val v;
    const Ix *index; /* NULL: at none */
    bool elsewhere;
} Readers;
static void reads_elsewhere(void *user, Val v, const Ix *index, Ix address) {
    Readers *r = user;
    if (v != r->v) return;
    uint32_t rank = val_array(r->p->cx, v)->rank;
    r->elsewhere |= !r->index || memcmp(index, r->index, rank * sizeof *index) != 0;
}
static bool reads_besides(Plan *p, Step *s, Val v, const Store *only, const Ix *index) {
    Readers r = {p, v, NULL, false};
    Ix at[MAX_RANK];
    uint32_t level = plan_info(p, v)->level; /* what is of this stage reads v before the result is computed */
    each(Val, m, s->members) {
        const Info *info = plan_info(p, *m);
        bool now = info->need <= level || (eqn_reduces(info->e) && info->level == level + 1);
        r.index = computes_only(p, *m, only->v) ? index : NULL;
        if (*m != v && !now) operands(p, s, *m, reads_elsewhere, &r);
    }
    each(Store, st, s->stores) {
        step_at(p, s, st->v, at);
        r.index = st == only ? index : NULL;
        plan_reads(p, st->v, at, reads_elsewhere, &r);
    }
    return r.elsewhere;
}
static bool stored_alone(const Step *s, const Store *st) {
    each(Store, other, s->stores)
        if (other != st && other->buf == st->buf) return false;
    return true;
}
/* The memory of a result of the step that alone is computed from v later, element by element: v may lie there until
   then. The result is not computed again later: it costs no less than v, which is worth keeping. */
static const Store *result_over(Plan *p, Step *s, Val v) {
    Ix index[MAX_RANK];
    each(Store, st, s->stores) {
        bool whole = !st->scatter && !st->offset && !st->panels.width && st->as == DT_none;
        if (!whole || st->v == v || val_type(p->cx, st->v) != val_type(p->cx, v)) continue;
        if ((st->buf->kind != BUF_OUT && st->buf->kind != BUF_WORK) || !stored_alone(s, st)) continue;
        step_at(p, s, v, index);
        if (!reads_besides(p, s, v, st, index)) return st;
    }
    return NULL;
}
static void spill(Plan *p, Step *s, Val v, Info *info) {
    const ArrayType *t = val_array(p->cx, v);
    Types *ts = p->cx->types;
    bool lane_kept = s->nkept && s->lane == s->kept[s->nkept - 1];
    Dim row = dtype_bytes(t->dtype);
    Dim *strides = arena_new(p->arena, Dim, t->rank + 1), stride = 1;
    for (uint32_t a = s->domain.n, d = t->rank; d-- > 0;) {
        if (t->dims[d] == 1) continue;
        if (!s->reduced[--a]) continue;
        row = dim_mul(ts, row, t->dims[d]);
        strides[d] = stride;
        stride = dim_mul(ts, stride, t->dims[d]);
    }
    const Store *over = lane_kept || !p->target->device ? result_over(p, s, v) : NULL;
    if (!over && !lane_kept && dim_is_const(row) && s->row_bytes + row <= ROW_BYTES) {
        s->row_bytes += row;
        info->buf = buf_new(p, BUF_ROW, row);
        info->strides = strides;
        step_store(p, s, v, info->buf, 0, strides, DT_none);
        return;
    }
    if (p->target->device && !lane_kept && info->cost <= AGAIN_COST) return; /* it is computed again */
    info->buf = over ? over->buf : buf_for(p, BUF_WORK, v);
    info->strides = over ? over->strides : strides_as_read(p, s, v);
    if (!over && !info->strides && collapsed_across(p, s)) info->strides = strides_apart(p, s, v, !lane_kept);
    step_store(p, s, v, info->buf, 0, info->strides, DT_none);
}
static void find_store_levels(Plan *p, Step *s) {
    Ix index[MAX_RANK];
    each(Store, st, s->stores) {
        Stage g = {.p = p, .step = s};
        st->row = step_at(p, s, st->v, index);
        plan_reads(p, st->v, index, level_of, &g);
        st->level = g.level;
    }
}
static void find_stages(Plan *p, Step *s) {
    Ix index[MAX_RANK];
    s->levels = 1;
    each(Val, v, s->members) {
        Stage g = {.p = p, .step = s};
        Info *info = plan_info(p, *v);
        info->row = step_at(p, s, *v, index);
        operands(p, s, *v, level_of, &g);
        bool reduction = eqn_reduces(info->e);
        info->row |= reduction;
        info->level = info->need = g.level + reduction, info->first = UINT32_MAX;
        if (info->level + 1 > s->levels) s->levels = info->level + 1;
    }
    find_store_levels(p, s);
    if (p->target->device) rows_decide(p, s);
    each(Store, st, s->stores) {
        Stage g = {.p = p, .step = s, .first = st->level, .need = st->level};
        step_at(p, s, st->v, index);
        plan_reads(p, st->v, index, need_of, &g);
    }
    for (uint32_t i = s->members.n; i-- > 0 && s->levels > 1;) {
        Val v = s->members.at[i];
        Info *info = plan_info(p, v);
        bool reduction = eqn_reduces(info->e);
        bool several = info->need > info->level && info->need > info->first;
        bool again = !info->buf && !info->row && several && info->cost >= SPILL_COST;
        if (again && !s->held.turns) spill(p, s, v, info);
        Stage g = {.p = p, .step = s, .first = info->first, .need = info->need};
        if (reduction || info->buf) g.first = g.need = info->level - reduction;
        operands(p, s, v, need_of, &g);
    }
    find_store_levels(p, s);
}
Dim step_parts(Plan *p, const Step *s) {
    Dim n = loop_extent(p->ix, s->division.loop ? s->division.loop : s->red[0]);
    if (s->division.loop) return n;
    assert(s->block);
    return dim_floordiv(p->cx->types, dim_add(p->cx->types, n, s->block - 1), s->block);
}
Atom cum_axis(Plan *p, const Step *s) {
    Ix index[MAX_RANK];
    step_at(p, s, s->e->out.at[0], index);
    return ix_loop(p->ix, index[param_number(s->e, K_axis)]);
}
uint32_t cum_part_words(Plan *p, const Step *s) {
    Dtype d = val_array(p->cx, s->e->out.at[0])->dtype;
    uint32_t wide = s->e->prim == P_cumsum ? wide_values(d) : 0;
    return wide ? wide : d == DT_f64 ? 1 : (dtype_bytes(d) + 3) / 4;
}
uint32_t step_part_words(Plan *p, const Step *s) {
    uint32_t words = 0;
    if (s->kind != STEP_LOOPS || !s->reduces || s->unrolled || !s->nred || s->levels < 2 || step_in_order(p, s))
        return 0;
    each(Store, st, s->stores)
        if (!st->row && st->level > 0) return 0;
    each(Val, v, s->members) {
        const Info *info = plan_info(p, *v);
        if (!eqn_reduces(info->e)) continue;
        if (info->level != 1) return 0;
        words += 1 + (prim_lower[info->e->prim] == LOWER_ARG);
    }
    assert(words <= 2 * STEP_REDUCTIONS);
    return words;
}
Dim loop_extents(Plan *p, const Atom *loops, uint32_t n) {
    Dim all = 1;
    for (uint32_t i = 0; i < n; i++) all = dim_mul(p->cx->types, all, loop_extent(p->ix, loops[i]));
    return all;
}
int64_t loop_turns(Dim inner, int64_t elements) {
    return !dim_is_const(inner) || inner >= elements ? 1 : elements / (inner ? inner : 1);
}
/* Iterations of the outermost loop in a part. */
static uint32_t part_length(Plan *p, const Step *s) {
    uint32_t elements = PART_COST / (s->cost + 1), whole = s->red[0] == s->lane ? PART_STEP : 1;
    if (elements > PART_LANES) elements = PART_LANES;
    uint32_t n = (uint32_t)loop_turns(loop_extents(p, s->red + 1, s->nred - 1), elements);
    return n > whole ? n - n % whole : whole;
}
/* A large full reduction, followed only by scalars, is done in parts. */
static void choose_parts(Plan *p, Step *s) {
    Types *ts = p->cx->types;
    uint32_t words = step_part_words(p, s);
    if (!words || s->nkept || p->target->device) return;
    Dim n = loop_extents(p, s->red, s->nred);
    if (dim_is_const(n) && n <= PARTS_FROM / (s->cost + 1)) return;
    s->block = part_length(p, s);
    s->parts = buf_new(p, BUF_WORK, dim_mul(ts, step_parts(p, s), 8 * (Dim)words));
}
void schedule_step(Plan *p, Body *b, Step *s) {
    Look l = {.p = p, .step = s};
    static const bool has_loops[STEP_KINDS] = {
        [STEP_LOOPS] = true, [STEP_DOT] = true, [STEP_CUM] = true, [STEP_SCATTER] = true, [STEP_SORT] = true};
    if (!has_loops[s->kind]) return;
    find_loops(&l);
    find_stages(p, s);
    if (s->kind == STEP_LOOPS && !p->target->device) plan_edges(p, s);
    plan_unswitch(p, s);
    choose_parts(p, s);
    p->target->decide(p, s);
}
