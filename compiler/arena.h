/* Memory of one compilation: chunks that are released together. A function that takes no Arena does not allocate. */
#ifndef JAXCC_ARENA_H
#define JAXCC_ARENA_H
#include <stddef.h>
#include <stdint.h>

typedef struct Arena Arena;

Arena *arena_open(void);
/* The arena takes ownership of a block from malloc. */
void arena_adopt(Arena *, void *);
void arena_close(Arena *);

/* `n` zeroed objects of `size` bytes, aligned to `align` (a power of two, at most 64). Never NULL: when memory runs out
   the process ends with status 1 and a message. */
void *arena_alloc(Arena *, size_t size, size_t align, size_t n);

#define arena_new(arena, T, n) ((T *)arena_alloc(arena, sizeof(T), _Alignof(T), n))

/* A copy of these bytes, aligned for objects of any type; NULL for NULL. */
void *arena_copy(Arena *, const void *, size_t bytes);

/* A slice is a struct with `at`, `n`; one that grows has `cap` too. */
#define each(T, it, s) for (__typeof__(T) *it = (s).at, *it##_end = it + (s).n; it < it##_end; it++)

/* Appends `x` to the growing slice `*s` (fields at, n, cap); if it moves, the old array stays valid. */
#define push(arena, s, x)                                                                                              \
    ((s)->n == (s)->cap ? (s)->at = arena_grow(arena, (s)->at, (s)->n, &(s)->cap, sizeof *(s)->at) : (s)->at,          \
     (s)->at[(s)->n++] = (x))
void *arena_grow(Arena *, const void *old, uint32_t n, uint32_t *cap, size_t size);

#endif
