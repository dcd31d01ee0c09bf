#include "intern.h"
#define uthash_malloc(bytes) arena_alloc(table->arena, 1, 16, bytes)
#define uthash_free(p, bytes) ((void)(p))
#include <uthash.h>

typedef struct InternEntry {
    UT_hash_handle hh;
    uint32_t id;
    unsigned char bytes[];
} InternEntry;

/* NOLINTNEXTLINE(readability-function-size): the macros of uthash nest */
static InternEntry *entry(Intern *table, const void *bytes, size_t n, _Bool add) {
    InternEntry *e;
    unsigned hash;
    HASH_VALUE(bytes, n, hash);
    HASH_FIND_BYHASHVALUE(hh, table->head, bytes, n, hash, e);
    if (e || !add) return e;
    e = arena_alloc(table->arena, 1, _Alignof(InternEntry), sizeof *e + n);
    if (n) memcpy(e->bytes, bytes, n);
    e->id = table->n++;
    HASH_ADD_KEYPTR_BYHASHVALUE(hh, table->head, e->bytes, (unsigned)n, hash, e);
    return e;
}

uint32_t intern(Intern *table, const void *bytes, size_t n, _Bool *fresh) {
    uint32_t before = table->n, id = entry(table, bytes, n, 1)->id;
    if (fresh) *fresh = id == before;
    return id;
}

_Bool intern_find(const Intern *table, const void *bytes, size_t n, uint32_t *id) {
    const InternEntry *e = entry((Intern *)table, bytes, n, 0);
    if (e) *id = e->id;
    return e;
}
