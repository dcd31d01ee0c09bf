#include "gather.h"
#include "../../typecheck/index.h"
#include <assert.h>

/* Gather moves no data: the result at an index is the operand at another, some of whose terms are elements of an array.
   They are clamped, so that nothing outside the operand is read; if the mode asks for it, elements outside are replaced
   afterwards. */

void window_at(Plan *p, const Eqn *e, const Ix *index, Window *w) {
    Ctx *cx = p->cx;
    const ArrayType *x = val_array(cx, e->in.at[0]), *indices = val_array(cx, e->in.at[1]);
    bool gather = e->prim == P_gather;
    const ArrayType *y = val_array(cx, gather ? e->out.at[0] : e->in.at[2]);
    IndexNumbers n;
    Ix batch[MAX_RANK];
    Dim most[MAX_RANK];
    uint32_t nbatch = 0, window = 0;
    bool known = index_numbers(cx, e, &n); /* checked by typecheck */
    assert(known && n.map.n <= x->rank);
    for (uint32_t d = 0; d < y->rank; d++)
        if (!ints_have(n.windows, d)) batch[nbatch++] = index[d];
    for (uint32_t d = 0; d < x->rank; d++) {
        bool whole = ints_have(n.dropped, d) || ints_have(n.batch, d);
        int64_t axis = whole ? 0 : n.windows.at[window++];
        w->operand[d] = whole ? 0 : index[axis];
        most[d] = dim_sub(cx->types, x->dims[d], whole ? 1 : y->dims[axis]);
    }
    for (uint32_t i = 0; i < n.batch.n; i++) w->operand[n.batch.at[i]] = batch[n.index_batch.at[i]];
    assert(nbatch + 1 == indices->rank);
    w->n = n.map.n;
    for (uint32_t i = 0; i < w->n; i++) {
        memcpy(w->at[i], batch, nbatch * sizeof *batch);
        w->at[i][nbatch] = ix_dim(p->ix, i);
        int64_t d = n.map.at[i];
        w->position[i] = (IxValue){e->in.at[1], indices->rank, w->at[i], most[d], index_wraps(e, x)};
        w->operand[d] = ix_add(p->ix, w->operand[d], ix_value(p->ix, w->position[i]));
    }
}

Reg window_inside(Eval *x, const Window *w) {
    Reg all = {0};
    for (uint32_t i = 0; i < w->n; i++) {
        Reg one = x->op->inside(x, &w->position[i], eval_element(x, &w->position[i]));
        all = i ? x->op->both(x, all, one) : one;
    }
    return all;
}
Reg index_gather(Eval *x, const Eqn *e, uint32_t out, const Ix *index) {
    Window w;
    window_at(x->plan, e, index, &w);
    Reg inside = {0};
    bool some = w.n && gather_fills(e);
    for (uint32_t i = 0; i < w.n; i++) x->op->place(x, &w.position[i]);
    if (some) inside = window_inside(x, &w);
    Reg y = eval_value(x, e->in.at[0], w.operand);
    return some ? x->op->choose(x, inside, y, x->op->fill(x, e)) : y;
}
