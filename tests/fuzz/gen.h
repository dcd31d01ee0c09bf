/* Well-typed programs, drawn from bytes or from a seed. */
#ifndef JAXCC_FUZZ_GEN_H
#define JAXCC_FUZZ_GEN_H
#include "compiler/ir.h"

/* Where decisions come from: bytes while there are some, then `state`; 0 for ever when that is 0.
 */
typedef struct {
    const uint8_t *at;
    size_t n;
    uint64_t state;
} Dice;
/* 0 ≤ draw < n */
uint32_t dice_draw(Dice *, uint32_t n);

/* A program of any rows of prims.def, or of those alone that compile. RUNS: of those whose results are defined and
   whose loops end soon; DERIVED: a short one of rows that have derivatives, mostly of floats. Both may hold. */
enum { DRAW_ANY = 0, DRAW_RUNS = 1, DRAW_DERIVED = 2 };
Jaxpr *program_draw(Ctx *, Dice *, unsigned kind);

/* The rows that no program has. */
void rows_missing(FILE *);

#endif
