/* --report: what became of the programs, as JSON. */
#ifndef JAXCC_REPORT_H
#define JAXCC_REPORT_H
#include "plan.h"

/* The member "plans" of the report: an object for each plan made for the library.

     name       of the function
     cpu        for which it was planned
     machine    the nominal one: { launch: ns, memory: [[bytes, bytes per ns]] }: so fast up to so many bytes
     workspace  bytes
     buffers    of the workspace: { value, offset, bytes, first, last }, live in the positions [first, last]
     kernels    in the order they run:
       number      "3"; of the step 2 in a body of step 3: "3.2", in another branch "3b.2"
       calls       of a call, or of a program for several devices: the name of its plan
       kind        loops, product, prefixes, scatter, sort, runtime, devices, call, scalar, cond, while, scan
       symbol      of its code, which equal kernels share; missing: it is a part of the function's
       first, last positions
       turns       how often its bodies run; null: that is known during the call
       equations   { primitive, type, line, column, again }; again: it is computed wherever it is read
       reads       { value, type, bytes, from }: what other kernels, in this body, or the caller made
       writes      { value, type, bytes, to }
       operations  operations on elements: an elementary function counts as 20, a product of matrices as 2
                   for each term, and a loop that a kernel runs for each element as one turn
       bytes       read and written, if each element of an array, or of its part that is used, moves once
       rate        operations per ns on the nominal machine (cost.h); it, operations and the next two are missing where
                   the work is done by bodies, a function of the library or C code; bytes of bodies too
       nanoseconds there: the longer of arithmetic and memory; null: the sizes are unknown
       bound       "arithmetic" or "memory"; null as well
       lanes       of its vectors; units: independent parts; on a device threads and blocks
       scratch     bytes of rows that a kernel keeps for itself
       apart       why it is not a part of the kernel `beside`; null: nothing to say
       bodies      of a loop, a cond: their kernels

   Numbers that depend on symbolic dimensions are strings, as "4*b"; those of more than 63 bits are null. The members
   are described for users in man/jaxcc.1. */
/* Of a value: the last step in which its equation was, or it was read, and then which of the step's reads it is. */
typedef struct {
    uint32_t step, read;
} Stamp;
typedef struct Report {
    Text plans;
    uint32_t step; /* the steps written so far */
    struct {
        Stamp *at;
        uint32_t n, cap;
    } seen; /* by Val */
} Report;
Report *report_new(Arena *);
void report_plan(Report *, Plan *, Str name);
/* A string of JSON, in quotes. */
void report_string(Text *, Str);

#endif
