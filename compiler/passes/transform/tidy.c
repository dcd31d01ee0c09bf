/* Simplifies what a transformation wrote; calls stay calls. Equal equations become one first, so that what fold
   compares are the same values, and once more after it. */
#include "identities.h"
#include "tx.h"

Jaxpr *pass_tidy(Ctx *cx, const Jaxpr *j) {
    Jaxpr *new = fold_with(cx, pass_cse(cx, j), identity);
    if (new) new = tidy_nested(cx, new);
    if (new) new = pass_cse(cx, new);
    return new ? pass_dce(cx, new) : NULL;
}
