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
    for (uint32_t pass = 0; pass < 3; pass++)
        for (uint32_t i = 0; i < s->nkept; i++) {
            Atom a = s->kept[i];
            if (pass == (a == s->lane ? 2u : scatter_moves(p, w, a) ? 0u : 1u)) sorted[n++] = a;
        }
    s->kept = sorted;
}
