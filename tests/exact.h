/* The functions of stdlib/ to any precision, by MPFR. */
#ifndef JAXCC_EXACT_H
#define JAXCC_EXACT_H
#include <mpfr.h>
#include <stdbool.h>

/* y = f(x[0], x[1], …), right to far more than a double's digits; the precision is y's. False where
   the function is not looked at: outside of its domain, or where MPFR would take long. */
typedef bool Exact(mpfr_t y, const mpfr_t *x);

/* exact_NAME for every row STDLIB(NAME) of prims.def. */
#define NO_LOWERING
#define STDLIB(f) Exact exact_##f;
#define PRIM(id, text, arity, type, simplify, facts, jvp, transpose, vmap, lowering) lowering
#include "../compiler/prims.def"
/* Instructions of the machine. */
Exact exact_sqrt, exact_square, exact_floor, exact_ceil;

#endif
