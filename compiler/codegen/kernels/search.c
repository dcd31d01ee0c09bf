#include "search.h"

V search_first(Emit *e, V lo, V hi, Earlier *earlier, const void *user) {
    V one = em_i64(e, 1), init[2] = {lo, hi}, next[2];
    MlirType types[2] = {e->i64, e->i64};
    Scope before = em_begin(e, 2, types);
    lo = em_arg(&before, 0), hi = em_arg(&before, 1);
    em_op(e, "scf.condition", &(Op){0, NULL, 3, (V[]){em_less(e, lo, hi), lo, hi}, 0, NULL, 0, NULL});
    em_end(e, &before);
    Scope after = em_begin(e, 2, types);
    lo = em_arg(&after, 0), hi = em_arg(&after, 1);
    V middle = em_bin(e, "llvm.lshr", em_add(e, lo, hi), one), later = earlier(user, middle);
    next[0] = em_select(e, later, em_add(e, middle, one), lo), next[1] = em_select(e, later, hi, middle);
    em_op(e, "scf.yield", &(Op){0, NULL, 2, next, 0, NULL, 0, NULL});
    em_end(e, &after);
    return em_while(e, 2, init, &before, &after)[0];
}
