/* Text with a length; not terminated. */
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
static inline bool str_is(Str a, const char *c) { return a.n == strlen(c) && memcmp(a.at, c, a.n) == 0; }

/* A terminated copy. */
char *str_c(Arena *, Str);
/* printf into the arena; terminated too. */
__attribute__((format(printf, 2, 3))) Str str_format(Arena *, const char *fmt, ...);

/* In quotes, with escapes for what a string in a program cannot hold; and back. */
Str str_quoted(Arena *, Str);
Str str_unquoted(Arena *, Str);

/* How many single-character edits lead from one to the other, the swap of two neighbours being one; 64 and more are
   one. Letters in another case, `-` for `_` cost nothing. */
uint32_t str_distance(Str, Str);
/* "Did you mean": of the names that are offered the one that a misspelt one is most likely meant for. Of names at one
   distance, what only doubles a letter is nearest, then what swaps two, leaves one out or adds one, then a wrong
   letter; what begins as it does is nearer. */
typedef struct {
    Str given;
    uint32_t cost; /* that the next one must stay below; `best` has it */
    Str best;      /* empty: none is near */
} Similar;
Similar similar_to(Str given, uint32_t edits); /* no more of them lead to it */
/* One of so many letters may be wrong; none of a name of less than three. */
uint32_t edits_of(Str given, uint32_t letters);
bool similar_offer(Similar *, Str candidate); /* Is it the best so far? */

/* Text that grows. */
typedef struct {
    Arena *arena;
    char *at;
    uint32_t n, cap;
} Text;
__attribute__((format(printf, 2, 3))) void text_add(Text *, const char *fmt, ...);
void text_put(Text *, Str);

#endif
