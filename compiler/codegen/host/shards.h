/* The functions of a long module, shared out among several object files of one library, which threads make side by
   side: in every one there is a part of the functions, and in the first one all else. Which function is where depends
   on the module alone. */
#ifndef JAXCC_SHARDS_H
#define JAXCC_SHARDS_H
#include "writer.h"

typedef struct Shards Shards;

/* Into how many object files a module is to be cut. */
uint32_t shards_of(const Writer *, Programs);
/* Begins to make the others of n ≥ 2 objects. The module keeps what is in the first one; its symbols are now the
   library's. */
Shards *shards_start(Writer *, Programs, uint32_t n);
/* Until all are made. */
void shards_wait(Shards *);
/* Writes objects 1 … n − 1 of the library `path` to files of these names; false after a diagnostic. */
bool shards_write(Shards *, const char *path, const char *const *files);

#endif
