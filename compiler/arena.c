#include "arena.h"
#include <sanitizer/asan_interface.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Chunks come zeroed from calloc and are never reused, so that all objects are zeroed. */
typedef struct Chunk {
    struct Chunk *before;
    size_t used, size;
    unsigned char bytes[];
} Chunk;

/* Blocks from malloc that were adopted. */
typedef struct Adopted {
    struct Adopted *before;
    void *at;
} Adopted;

struct Arena {
    Chunk *last;
    Adopted *adopted;
};

enum { FIRST_CHUNK = 1 << 16, LARGEST_CHUNK = 1 << 24 };

/* Under AddressSanitizer unused memory is poisoned, and objects have gaps between them. */
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
enum { GAP = 16 };
#else
enum { GAP = 0 };
#endif

static _Noreturn void out_of_memory(void) {
    fputs("jaxcc: error: out of memory\n", stderr);
    exit(1);
}

Arena *arena_open(void) {
    Arena *a = calloc(1, sizeof *a);
    if (!a) out_of_memory();
    return a;
}

void arena_adopt(Arena *a, void *at) {
    Adopted *x = arena_new(a, Adopted, 1);
    *x = (Adopted){a->adopted, at};
    a->adopted = x;
}

void arena_close(Arena *a) {
    for (Adopted *x = a->adopted; x; x = x->before) free(x->at);
    for (Chunk *c = a->last; c;) {
        Chunk *before = c->before;
        free(c);
        c = before;
    }
    free(a);
}

/* Chunks double, so that their number is logarithmic; an object larger than a chunk gets its own. */
static Chunk *chunk_new(Arena *a, size_t need) {
    size_t size = a->last ? 2 * a->last->size : FIRST_CHUNK;
    if (size > LARGEST_CHUNK) size = LARGEST_CHUNK;
    if (size < need) size = need;
    Chunk *c = calloc(1, sizeof *c + size);
    if (!c) out_of_memory();
    *c = (Chunk){a->last, 0, size};
    ASAN_POISON_MEMORY_REGION(c->bytes, size);
    return a->last = c;
}

void *arena_alloc(Arena *a, size_t size, size_t align, size_t n) {
    size_t total;
    if (__builtin_mul_overflow(size, n, &total) || total > SIZE_MAX / 2) out_of_memory();
    Chunk *c = a->last;
    for (;;) {
        if (c) {
            size_t at = (size_t)(-(uintptr_t)(c->bytes + c->used + GAP)) & (align - 1);
            at += GAP;
            if (at + total <= c->size - c->used) {
                unsigned char *p = c->bytes + c->used + at;
                c->used += at + total;
                ASAN_UNPOISON_MEMORY_REGION(p, total);
                return p;
            }
        }
        c = chunk_new(a, total + GAP + align);
    }
}

void *arena_grow(Arena *a, const void *old, uint32_t n, uint32_t *cap, size_t size) {
    if (*cap > UINT32_MAX / 2) out_of_memory();
    *cap = *cap ? 2 * *cap : 8;
    void *p = arena_alloc(a, size, _Alignof(max_align_t), *cap);
    if (n) memcpy(p, old, n * size);
    return p;
}

void *arena_copy(Arena *a, const void *at, size_t bytes) {
    return at ? memcpy(arena_alloc(a, 1, _Alignof(max_align_t), bytes), at, bytes) : NULL;
}
