/* How often nested programs occur in a program, and which of them become functions: those whose copies would be too
   much code. */
#ifndef JAXCC_COUNT_H
#define JAXCC_COUNT_H
#include "../ir.h"

typedef struct {
    const Jaxpr *program;
    uint32_t places; /* parameters that contain it, in all equations of all programs */
    uint32_t copies; /* occurrences in the whole if every place had a copy, within what jit calls once it is a function;
                        what a program holds that becomes a function now is counted as if that one were copied */
    uint32_t size;   /* its equations and those of nested programs, once for each place: for a call those of the
                        called program, for a function only the call; in eighths of an equation of arrays */
    bool function;
} Count;

/* Counts saturate at COUNT_MOST. */
enum { COUNT_MOST = 1 << 30 };

typedef struct {
    Intern numbers; /* of programs */
    struct {
        Count *at;
        uint32_t n, cap;
    } all; /* by number */
} Counts;

/* May the program be a function? */
typedef bool MayBeFunction(void *user, const Jaxpr *);

/* Who asks: what is too much depends on what copies cost. */
typedef enum {
    COUNT_CALLS,    /* inline: copies of what calls hold are equations among others, which are fused with them */
    COUNT_BRANCHES, /* fold: the same of branches */
    COUNT_LOOPS,    /* share: every copy of what loops and branches hold is code of its own */
    NCOUNTINGS
} Counting;

/* Counts `j` and all within. Functions are those programs that `may` be and of which copies would be too much; after
   inline besides those that jit calls, which stand once. */
Counts counts_of(Ctx *, const Jaxpr *j, Counting, MayBeFunction *may, void *user);
/* The count of `j` or of a nested program. */
const Count *count_of(Counts *, const Jaxpr *);
/* Gives `new`, which was made from `j`, the count of `j`. */
void count_as(Counts *, const Jaxpr *new, const Jaxpr *j);

#endif
