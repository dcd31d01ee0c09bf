/* Binary search, in kernels. */
#ifndef JAXCC_SEARCH_H
#define JAXCC_SEARCH_H
#include "../emit/emit.h"

/* i1: does element i (i64) come before what is searched for? If it does, so do all elements before it. */
typedef V Earlier(const void *user, V i);
/* The first element of [lo, hi) that does not; hi: there is none. */
V search_first(Emit *, V lo, V hi, Earlier *, const void *user);

#endif
