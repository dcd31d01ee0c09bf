/* Simplifies what a transformation wrote; calls stay calls. */
#include "tx.h"

Pass pass_fold, pass_cse, pass_dce;

Jaxpr *pass_tidy(Ctx *cx, const Jaxpr *j) {
    Jaxpr *new = pass_fold(cx, j);
    if (new) new = pass_cse(cx, new);
    return new ? pass_dce(cx, new) : NULL;
}
