/* Extents are text over dimensions and integer scalar inputs, such as "2*b + 1", "floordiv(b, 2)", "max(b - 1, 0)".
   They are computed, and solved for dimensions given the shapes of arrays. */
#ifndef JAXCC_EXTENT_H
#define JAXCC_EXTENT_H
#include "jaxcc.h"
#include <stdbool.h>
#include <stddef.h>

typedef struct {
    const char *name;
    bool known;
    int64_t value;
} jaxcc_rt_variable;
typedef struct {
    jaxcc_rt_variable *at; /* the program's dimensions, then the inputs that are integer scalars */
    uint32_t n;
} jaxcc_rt_variables;
typedef enum {
    EXTENT_KNOWN,   /* c */
    EXTENT_LINEAR,  /* c + k · variable, k ≠ 0 */
    EXTENT_OTHER,   /* depends on unknown variables in another way */
    EXTENT_FOREIGN, /* has a name that is not a variable: the program computes it */
    EXTENT_WRONG    /* not an expression, or it overflows 64 bits, or divides by zero */
} jaxcc_rt_extent_kind;
typedef struct {
    jaxcc_rt_extent_kind kind;
    int64_t c, k;
    uint32_t variable;
} jaxcc_rt_extent;
jaxcc_rt_extent jaxcc_rt_extent_of(const jaxcc_rt_variables *, const char *text);

/* One pass over the extents of n types whose arrays have these shapes: each that is linear in one unknown variable
   gives its value. True if there was one: then another pass may find more. */
bool jaxcc_rt_solve_more(const jaxcc_type *, int32_t n, const int64_t *const *shapes, jaxcc_rt_variables *);

/* Does the type forbid an array with `is` elements along axis k? Then `why` says "extent 1, '2*b', is 6, where b = 3".
   Not if a variable that it needs is unknown. */
bool jaxcc_rt_extent_differs(const jaxcc_rt_variables *, const jaxcc_type *, int32_t k, int64_t is, char *why,
                             size_t room);

#endif
