#include "kernel.h"

/* The number of iterations of a loop done at once; 0: it is not bound, and all are. */
static Dim at_once(const Kernel *k, Atom loop) {
    const Step *s = k->x.step;
    for (uint32_t i = 0; i < s->nkept; i++) {
        if (s->kept[i] != loop) continue;
        uint32_t n = loop == s->lane ? k->w : loop == s->jam ? k->jam : loop == s->tile ? k->tile : 1;
        return n ? n : 1;
    }
    return 0;
}
V edge_inside(Kernel *k) {
    Types *ts = k->x.plan->cx->types;
    V all = {NULL};
    for (uint32_t i = 0; i < k->x.step->nedges; i++) {
        const Edge *edge = &k->x.step->edges[i];
        const IxExpr x = *ix_at(k->x.ix, edge->index);
        Ix base = edge->index;
        Dim below = 0, above = 0; /* how far the index gets from base */
        for (uint32_t t = 0; t < x.n; t++) {
            Atom loop = x.at[t].atom;
            if (atom_at(k->x.ix, loop)->into) continue;
            Dim n = at_once(k, loop);
            if (n == 0) base = ix_substitute(k->x.ix, base, loop, 0), n = loop_extent(k->x.ix, loop);
            Dim far = dim_mul(ts, x.at[t].coef, dim_sub(ts, n, 1));
            if (x.at[t].coef < 0)
                below = dim_add(ts, below, far);
            else
                above = dim_add(ts, above, far);
        }
        V at = kernel_index(k, base);
        V first = em_cmpi(k->e, "sge", at, kernel_dim(k, dim_sub(ts, edge->lo, below)));
        V last = em_cmpi(k->e, "slt", at, kernel_dim(k, dim_sub(ts, edge->hi, above)));
        V both = em_bin(k->e, "llvm.and", first, last);
        all = all.ptr ? em_bin(k->e, "llvm.and", all, both) : both;
    }
    return all;
}
