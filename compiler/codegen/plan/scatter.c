#include "scatter.h"
#include "../../typecheck/index.h"
#include <assert.h>

void scatter_order(Plan *p, Step *s) {
    const ArrayType *u = val_array(p->cx, s->e->in.at[2]);
    IndexNumbers n;
    uint32_t axis = 0, position = 0;
    bool known = index_numbers(p->cx, s->e, &n);
    assert(known);
    for (uint32_t d = 0; d < u->rank; d++) {
        bool ordered = !ints_have(n.windows, d) && !ints_have(n.index_batch, position);
        position += !ints_have(n.windows, d);
        if (u->dims[d] != 1) s->reduced[axis++] = ordered;
    }
}
Ix scatter_address(Plan *p, const Eqn *e, const Ix *index) {
    const ArrayType *x = val_array(p->cx, e->in.at[0]);
    Window w;
    Ix at = 0;
    window_at(p, e, index, &w);
    for (uint32_t d = 0; d < x->rank; d++) at = ix_add(p->ix, ix_scale(p->ix, at, x->dims[d]), w.operand[d]);
    return at;
}
/* The window of the update at the step's own index. */
const Window *scatter_window(Plan *p, const Step *s) {
    Window *w = arena_new(p->arena, Window, 1);
    Ix index[MAX_RANK];
    step_at(p, s, s->e->in.at[2], index);
    window_at(p, s->e, index, w);
    return w;
}
bool scatter_moves(Plan *p, const Window *w, Atom loop) {
    for (uint32_t i = 0; i < w->n; i++)
        for (uint32_t d = 0; d < w->position[i].rank; d++)
            if (ix_uses(p->ix, w->position[i].at[d], loop)) return true;
    return false;
}
/* Does the axis of the updates run along it, also as a part of a collapsed loop? */
static bool runs_along(Plan *p, const Step *s, uint32_t axis, Atom loop) {
    uint32_t domain = 0;
    const ArrayType *u = val_array(p->cx, s->e->in.at[2]);
    if (u->dims[axis] == 1) return false;
    for (uint32_t d = 0; d < axis; d++) domain += u->dims[d] != 1;
    const IxExpr *x = ix_at(p->ix, s->axes[domain]);
    for (uint32_t t = 0; t < x->n; t++) {
        Atom a = x->at[t].atom;
        while (atom_at(p->ix, a)->kind == ATOM_LOOP && atom_at(p->ix, a)->into) a = atom_at(p->ix, a)->into;
        if (a == loop) return true;
    }
    return false;
}
bool scatter_overlaps(Plan *p, const Step *s, Atom loop) {
    const ArrayType *x = val_array(p->cx, s->e->in.at[0]);
    IndexNumbers n;
    bool known = index_numbers(p->cx, s->e, &n);
    assert(known);
    for (uint32_t d = 0, window = 0; s->nred && d < x->rank; d++) {
        if (ints_have(n.dropped, d) || ints_have(n.batch, d)) continue;
        int64_t axis = n.windows.at[window++];
        if (ints_have(n.map, d) && runs_along(p, s, (uint32_t)axis, loop)) return true;
    }
    return false;
}
void scatter_schedule(Plan *p, Step *s, LoopScore *score, const void *user) {
    const Window *w = scatter_window(p, s);
    Ix index[MAX_RANK];
    bool other;
    int64_t best = INT64_MIN;
    step_at(p, s, s->e->in.at[2], index);
    Ix to = scatter_address(p, s->e, index);
    for (uint32_t i = 0; i < s->nkept; i++) {
        Dim coef = ix_coef(p->ix, to, s->kept[i], &other);
        if (other || coef == 0 || scatter_moves(p, w, s->kept[i])) continue;
        int64_t n = score(user, s->kept[i]);
        if (n >= best) best = n, s->lane = s->kept[i];
    }
    Atom *sorted = arena_new(p->arena, Atom, s->nkept + 1);
    uint32_t n = 0;
    for (uint32_t pass = 0; pass < 4; pass++)
        for (uint32_t i = 0; i < s->nkept; i++) {
            Atom a = s->kept[i];
            uint32_t own = a == s->lane ? 3 : scatter_moves(p, w, a) ? 0 : scatter_overlaps(p, s, a) ? 2 : 1;
            if (pass == own) sorted[n++] = a;
        }
    s->kept = sorted;
}
