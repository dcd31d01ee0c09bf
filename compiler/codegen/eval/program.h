/* The program of an elementwise equation or of stdlib/: which of its values differ between the lanes, which are used,
   and what it reads of arrays. */
#ifndef JAXCC_PROGRAM_H
#define JAXCC_PROGRAM_H
#include "evaluate.h"

/* Its values, including those of its loop bodies, n of them, by number less `first`. */
typedef struct {
    Plan *plan;
    Val first;
    uint32_t n;
    bool *varies;       /* it differs between the lanes */
    uint8_t *uses;      /* at most 2 */
    const Eqn **makers; /* what computes it, or NULL */
    /* of an elementwise equation: */
    const Eqn *e;
    const Ix *element; /* the index of the elements, of `rank` axes */
    uint32_t rank;
    uint32_t *arrays; /* it is this operand of e, plus 1, an array that is read at computed places; 0: it is none */
} Marks;
/* `inputs`: which differ between the lanes. */
Marks program_marks(Plan *, const Jaxpr *, const bool *inputs);
/* Those of an equation's program at an index of its elements. */
Marks program_marks_at(Plan *, const Eqn *, const Ix *element, const bool *inputs);
static inline bool program_varies(const Marks *m, Val v) {
    return !val_info(m->plan->cx, v)->lit && m->varies[v - m->first];
}
static inline uint32_t program_array(const Marks *m, Val v) {
    return val_info(m->plan->cx, v)->lit || !m->arrays ? 0 : m->arrays[v - m->first];
}
/* Of an equation of the program, or of the body of a loop: the select_n of which one case alone needs what it computes.
   The predicate is the same in all lanes, and what one of the cases alone needs costs at least CASE_COST. */
typedef struct {
    const Eqn *select; /* NULL: others need it as well, or its cases are cheap */
    uint32_t taken, next;
    /* Such a select_n itself: the first equation, plus 1, of each of its cases, from which `next` leads to the others; 0:
       there is none. */
    bool parted;
    uint32_t first[2];
} Case;
/* NULL: there are none. */
Case *program_cases(const Marks *, const Jaxpr *);
/* Does it read or stack arrays? */
bool program_has_arrays(const Ctx *, const Eqn *);
/* What an `element` of the program reads. Its places are read as elements of arrays: an instance that computes them has
   them remembered. */
Reg program_read(Eval *, const Marks *, const Eqn *element);
/* Reads what all of them read, in the program and in its loops. */
void program_read_all(Eval *, const Marks *, Eqns);

#endif
