/* Splitting the equations of a loop into equations on the scalars of one element (elements.c). */
#ifndef JAXCC_ELEMENTS_H
#define JAXCC_ELEMENTS_H
#include "build.h"

/* Scalars of a value; equations on scalars of one loop. */
enum { MOST_PARTS = 16, MOST_EQUATIONS = 1024 };

/* What an element has of a value: its scalars, in the order of the axes that are not those of the elements. */
typedef struct {
    Val *at;
    uint32_t n;
    bool along;     /* the value has the axes of the elements, */
    uint32_t first; /* from this one on */
    bool splat;     /* it is this scalar everywhere, whatever its shape; n = 1 */
} Parts;
typedef struct {
    Ctx *cx;
    Builder b;
    uint32_t rank; /* the axes of the elements */
    const Dim *dims;
    Intern values; /* those that have parts, by number */
    struct {
        const Parts **at;
        uint32_t n, cap;
    } parts;
    Intern lengths; /* of scans, where they are symbols */
    struct {
        Val *at;
        uint32_t n, cap;
    } length;
    Intern bodies; /* of the loops so far */
    uint32_t written;
    bool test;        /* a condition is being split, */
    Val here;         /* which asks whether this is true of any element */
    const bool *used; /* by value: an equation or a program takes it */
} Split;

/* NULL: the value has none. A literal is a splat. */
const Parts *parts_of(Split *, Val);
void set_parts(Split *, Val, Parts);
Parts splat(Split *, Val);

/* Are the axes of the elements its first? */
bool begins_with_elements(const Split *, const ArrayType *);

/* The places of an array that one element has. */
typedef struct {
    uint32_t rank, size;
    int64_t extent[COMPILED_RANK]; /* an axis of the elements: 1 */
} Room;
/* False: there are more than MOST_PARTS, or as many as a symbol says. */
bool room_of(const Split *, const ArrayType *, const Parts *, Room *);
void place_of(const Room *, uint32_t number, int64_t *place);
/* `p` with memory for the scalars. */
Parts room_for(Split *, Parts p, const Room *);

/* Splits the equations; false: one of them is more than arithmetic on scalars and moves between known places. */
bool split_elements(Split *, Eqns);
bool split_element_loop(Split *, const Eqn *); /* elements.c */

#endif
