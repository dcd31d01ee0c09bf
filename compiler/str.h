/* Strings with a length, not terminated. */
#ifndef JAXCC_STR_H
#define JAXCC_STR_H
#include "arena.h"
#include <stdbool.h>
#include <string.h>

typedef struct {
    const char *at;
    uint32_t n;
} Str;

#define S(literal) ((Str){literal, sizeof(literal) - 1})
#define SF(s) (int)(s).n, (s).at /* for printf's %.*s */

static inline Str str(const char *c) { return (Str){c, (uint32_t)strlen(c)}; }
static inline bool str_eq(Str a, Str b) { return a.n == b.n && (a.n == 0 || memcmp(a.at, b.at, a.n) == 0); }
static inline bool str_is(Str a, const char *c) { return str_eq(a, str(c)); }

/* A terminated copy. */
char *str_c(Arena *, Str);
/* printf into the arena; terminated too. */
__attribute__((format(printf, 2, 3))) Str str_format(Arena *, const char *fmt, ...);

/* In quotes, with escapes for the bytes that a string in a program cannot contain; and back. */
Str str_quoted(Arena *, Str);
Str str_unquoted(Arena *, Str);

/* Edit distance: the number of single-character edits from one to the other, a swap of neighbours being one edit. Case
   and `-` for `_` do not count. 64 if a string is longer than that. */
uint32_t str_distance(Str, Str);
/* "Did you mean": of the names offered, the one that a misspelt name most likely means. Among names at the same
   distance, a doubled letter is closest, then a swap, a missing or an additional letter, then a wrong letter; a common
   beginning is closer. */
typedef struct {
    Str given;
    uint32_t cost; /* of `best`; the next one must be below it */
    Str best;      /* empty: none is close */
} Similar;
Similar similar_to(Str given, uint32_t edits); /* at most so many edits away */
/* The edits to allow for a name: one for every `letters` letters, at least one; none below three letters. */
uint32_t edits_of(Str given, uint32_t letters);
bool similar_offer(Similar *, Str candidate); /* is it the best so far? */

/* A growing string. */
typedef struct {
    Arena *arena;
    char *at;
    uint32_t n, cap;
} Text;
__attribute__((format(printf, 2, 3))) void text_add(Text *, const char *fmt, ...);
void text_put(Text *, Str);

#endif
