/* Bytes → dense number: equal bytes have equal numbers, counted from 0. */
#ifndef JAXCC_INTERN_H
#define JAXCC_INTERN_H
#include "arena.h"

typedef struct {
    Arena *arena;
    struct InternEntry *head; /* uthash */
    uint32_t n;
} Intern;

/* The number of these bytes; `*fresh` (may be NULL) says whether they were new. The bytes are copied. */
uint32_t intern(Intern *, const void *bytes, size_t n, _Bool *fresh);
/* Are they in the table? Their number. */
_Bool intern_find(const Intern *, const void *bytes, size_t n, uint32_t *id);

#endif
