/* What the arrays of a case say about a library that it was compiled to. */
#ifndef JAXCC_LOADED_H
#define JAXCC_LOADED_H
#include "../runtime/jaxcc.h"
#include "../runtime/npz.h"

typedef struct {
    void *library;
    const jaxcc_program *program; /* NULL: there is none */
} Loaded;
/* The program `name` of the library `so`, until it is closed. */
Loaded loaded(const char *so, const char *name);
void loaded_close(Loaded);

/* Array `prefix`k of a file; NULL if there is none. */
const NpzArray *nth_array(const Npz *, const char *prefix, int k);

/* What fixes the sizes of batches: "-Dbatch=3". */
enum { MOST_BATCHES = 8 };
typedef struct {
    char *define[MOST_BATCHES];
    int n;
} BatchSizes;
/* The sizes that the arrays of the file `in` have along the dimensions of the program that a --vmap among the words
   made. */
BatchSizes batch_sizes(const char *so, const char *name, const char *in, char *const *words, int n);

#endif
