/* Sums over the iterations of a loop, which leave it. */
#ifndef JAXCC_ACCUMULATE_H
#define JAXCC_ACCUMULATE_H
#include "scan.h"

/* Where the values of all iterations are stacked: among the loop's scanned operands, or its stacked results. */
typedef struct {
    bool result;
    uint32_t at;
} Factor;
/* A contribution to the cotangent of constant `to`, for all iterations: the sum of a value, of the product of two, or
   of a dot_general of two; `after` is applied to that. */
typedef struct {
    uint32_t to, nfactors;
    Factor factors[2];
    Ints axes;      /* summed in an iteration; not of a dot_general */
    const Eqn *dot; /* NULL: none */
    const struct After {
        const Eqn *e;
        const struct After *next;
    } *after;
} Deferred;
/* An iteration that has been written but for its end. */
typedef struct {
    Ctx *cx;
    Builder *b;
    Vals consts;       /* its inputs that do not vary */
    Vals xs;           /* its scanned inputs; */
    uint32_t residual; /* so many of them, the first, are residuals */
    const Val *acc;    /* inputs: the sums so far; 0: none */
    uint32_t nacc;
    struct {
        Val *at;
        uint32_t n, cap;
    } ys; /* its stacked results */
    struct {
        Deferred *at;
        uint32_t n, cap;
    } deferred;
    const ValMap *continues; /* sums that nested programs returned → those that they took */
    ValMap map;              /* values of the iteration that have been replaced */
} Accumulate;
/* Takes the contributions that can be summed afterwards out of the iteration, and stacks their factors where that takes
   no more memory than the residuals do. */
void accumulate_later(Accumulate *);
/* Their sum, after the loop. */
Val b_deferred(Builder *, const Deferred *, Vals xs, Vals ys);

#endif
