/* The residuals of a program that cost least: a minimum cut. */
#ifndef JAXCC_CUT_H
#define JAXCC_CUT_H
#include "../../arena.h"
#include <stdbool.h>
#include <stdint.h>

/* A network of values. Each may be stored, at its cost; a value that has no other source must be, or what needs it. */
typedef struct {
    Arena *arena;
    struct CutEdge *edges;
    uint32_t nedges, cap;
    int32_t *first; /* by node: its last edge, or -1 */
    uint32_t nodes;
} Cut;
#define CUT_NEVER (INT64_C(1) << 60) /* the cost of what cannot be stored */

Cut cut_new(Arena *, uint32_t values);
void cut_cost(Cut *, uint32_t v, int64_t cost);
void cut_source(Cut *, uint32_t v);                 /* v cannot be computed again */
void cut_uses(Cut *, uint32_t v, uint32_t operand); /* v can be computed from this one and others */
void cut_needed(Cut *, uint32_t v);
/* Marks the values to be stored: of the sets of least cost that with which least is computed again. False if there is
   none, or the network is too large to find it. */
bool cut_least(Cut *, bool *stored);

#endif
