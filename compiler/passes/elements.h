/* Splitting the equations of a loop into equations on the scalars of one element (elements.c). */
#ifndef JAXCC_ELEMENTS_H
#define JAXCC_ELEMENTS_H
#include "build.h"

/* Scalars of a value; equations on scalars of one loop. */
enum { MOST_PARTS = 16, MOST_EQUATIONS = 1024 };

typedef struct {
    Val *at;
    uint32_t n, cap;
} List;

/* What an element has of a value: its scalars, in the order of the axes that are not those of the elements. */
typedef struct {
    Val *at;
    uint32_t n;
    bool along;     /* the value has the axes of the elements, */
    uint32_t first; /* from this one on */
    bool splat;     /* it is this scalar everywhere, whatever its shape; n = 1 */
    bool table; /* there are no scalars but an array of all axes that are not those of the elements, which is read at
                       computed places; n = 1 */
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
    const Eqn *whole;       /* the loop that becomes an equation: the one that may stack */
    uint32_t nest, deepest; /* loops around what is being split; the most of them */
    bool arrays;            /* something is read at computed places, or stacked */
    bool test;              /* a condition is being split, */
    Val here;               /* which asks whether this is true of any element */
    const uint32_t *uses;   /* by value: how many equations and programs take it */
    bool never;             /* it stopped at an equation that is never split: */
    Intern *stay;           /* loops with such an equation, which are not tried again; NULL: not noted */
} Split;

/* NULL: the value has none. A literal is a splat. A table has no parts: array_of gives either. */
const Parts *parts_of(Split *, Val);
const Parts *array_of(Split *, Val);
void set_parts(Split *, Val, Parts);
Parts splat(Split *, Val);

/* Are the axes of the elements its first? Is this one of them? */
bool begins_with_elements(const Split *, const ArrayType *);
bool is_element_axis(const Split *, const Parts *, uint32_t axis);

/* The places of an array that one element has. */
typedef struct {
    uint32_t rank, size;
    int64_t extent[COMPILED_RANK]; /* an axis of the elements: 1 */
} Room;
/* False: there are more than MOST_PARTS, or as many as a symbol says. */
bool room_of(const Split *, const ArrayType *, const Parts *, Room *);
void place_of(const Room *, uint32_t number, int64_t *place);
Val part_at(const Parts *, const Room *, const int64_t *place);
/* `p` with memory for the scalars. */
Parts room_for(Split *, Parts p, const Room *);

/* Parts of an array of this type as those of `like`, from *p: a splat is repeated; false: they are others. */
bool spread_parts(Split *, const ArrayType *, const Parts *like, Parts *p);

/* Splits the equations; false: one of them is more than arithmetic on scalars and moves between known places. */
bool split_elements(Split *, Eqns);
bool split_element_eqn(Split *, const Eqn *);
bool split_element_loop(Split *, const Eqn *); /* element_loops.c */
/* Of an equation that is never split: false. */
static inline bool split_none(Split *s) { return s->never = true, false; }
/* Before the program begins: the scalars that are lengths of the loop and of those in it. */
void split_lengths(Split *, const Eqn *);
/* Calls of the runtime for matrices, with so many axes of batches (element_linalg.c). */
bool split_linalg(Split *, const Eqn *);
bool is_small_linalg(const Eqn *);
uint32_t linalg_batch(const Ctx *, const Eqn *);

/* ---- element_places.c: rules of equations that read or update at computed places, whose result has the type t */
typedef bool PlaceRule(Split *, const Eqn *, const ArrayType *t, Parts *y);
PlaceRule split_dynamic_slice, split_gather, split_dynamic_update, split_scatter;
/* The slice, of type t, of a scanned array in turn `counter`. */
bool split_scanned(Split *, Val, Val counter, const ArrayType *t, Parts *y);

#endif
