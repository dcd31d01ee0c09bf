/* The two programs of --linearize, called one after the other: the arrays of one file are the inputs, then the
   tangents, those of another the outputs, then theirs. */
#ifndef JAXCC_LINEAR_H
#define JAXCC_LINEAR_H
#include <stdbool.h>

typedef struct {
    int inputs, tangents, outputs, residuals, derivatives; /* how many */
} Linear;
/* Of the library `so` and the file `in`. Each function returns false after a message. */
bool linear_of(const char *so, const char *forward, const char *linear, const char *in, Linear *);
/* Writes the inputs alone; ... */
bool linear_point(const Linear *, const char *in, const char *to);
/* ... the residuals, from what the first program gave, and the tangents; ... */
bool linear_tangents(const Linear *, const char *given, const char *in, const char *to);
/* ... the outputs and what the second one gave. */
bool linear_results(const Linear *, const char *given, const char *derivatives, const char *to);

#endif
