#include "str.h"
#include <stdarg.h>
#include <stdio.h>

char *str_c(Arena *a, Str s) {
    char *c = arena_new(a, char, (size_t)s.n + 1);
    if (s.n) memcpy(c, s.at, s.n);
    return c;
}

Str str_format(Arena *a, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (n < 0) return S("");
    char *c = arena_new(a, char, (size_t)n + 1);
    va_start(args, fmt);
    vsnprintf(c, (size_t)n + 1, fmt, args);
    va_end(args);
    return (Str){c, (uint32_t)n};
}

static void text_reserve(Text *t, uint32_t n) {
    while (t->cap - t->n < n) t->at = arena_grow(t->arena, t->at, t->n, &t->cap, 1);
}

void text_add(Text *t, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (n <= 0) return;
    text_reserve(t, (uint32_t)n + 1);
    va_start(args, fmt);
    vsnprintf(t->at + t->n, (size_t)n + 1, fmt, args);
    va_end(args);
    t->n += (uint32_t)n;
}

void text_put(Text *t, Str s) {
    if (s.n == 0) return;
    text_reserve(t, s.n);
    memcpy(t->at + t->n, s.at, s.n);
    t->n += s.n;
}

/* ---- distances: Levenshtein's table, one row at a time, with the swap of two neighbours (Damerau) as one step. The
   kind of an edit adds to its cost and decides between names at the same distance. */

enum {
    MOST_LETTERS = 64,
    EDIT = 64, /* the cost of an edit, plus */
    IS_LEFT_OUT = 2,
    IS_SWAPPED = 1,
    IS_WRONG = 3,
    IS_FIRST = 1,  /* the name begins with it */
    OTHER_CASE = 1 /* not an edit */
};

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + 'a' - 'A') : c == '-' ? '_' : c; }
static uint32_t min(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* The cost of leaving out letter i of `s`, which is lower for a doubled one. */
static uint32_t left_out(Str s, uint32_t i) {
    bool doubled = i && lower(s.at[i]) == lower(s.at[i - 1]);
    return EDIT + (doubled ? 0 : IS_LEFT_OUT) + (i ? 0 : IS_FIRST);
}

static uint32_t replaced(char a, char b, bool first) {
    if (a == b) return 0;
    if (lower(a) == lower(b)) return OTHER_CASE;
    return EDIT + IS_WRONG + (first ? IS_FIRST : 0);
}

static bool swapped(Str a, uint32_t i, Str b, uint32_t j) {
    return i > 1 && j > 1 && lower(a.at[i - 1]) == lower(b.at[j - 2]) && lower(a.at[i - 2]) == lower(b.at[j - 1]);
}

static uint32_t edits_cost(Str a, Str b) {
    if (a.n > MOST_LETTERS || b.n > MOST_LETTERS) return MOST_LETTERS * EDIT;
    uint32_t rows[3][MOST_LETTERS + 1] = {{0}}, *before = rows[0], *last = rows[1], *row = rows[2];
    for (uint32_t j = 1; j <= b.n; j++) last[j] = last[j - 1] + left_out(b, j - 1);
    for (uint32_t i = 1; i <= a.n; i++) {
        row[0] = last[0] + left_out(a, i - 1);
        for (uint32_t j = 1; j <= b.n; j++) {
            uint32_t cost = last[j - 1] + replaced(a.at[i - 1], b.at[j - 1], i == 1 && j == 1);
            cost = min(cost, min(last[j] + left_out(a, i - 1), row[j - 1] + left_out(b, j - 1)));
            if (swapped(a, i, b, j)) cost = min(cost, before[j - 2] + EDIT + IS_SWAPPED + (i == 2 ? IS_FIRST : 0));
            row[j] = cost;
        }
        uint32_t *free_row = before;
        before = last, last = row, row = free_row;
    }
    return last[b.n];
}

uint32_t str_distance(Str a, Str b) { return edits_cost(a, b) / EDIT; }

uint32_t edits_of(Str s, uint32_t letters) { return s.n < 3 ? 0 : s.n < letters ? 1 : s.n / letters; }

Similar similar_to(Str given, uint32_t edits) { return (Similar){given, edits ? (edits + 1) * EDIT : 0, {"", 0}}; }

bool similar_offer(Similar *s, Str candidate) {
    uint32_t apart = candidate.n < s->given.n ? s->given.n - candidate.n : candidate.n - s->given.n;
    if (!candidate.n || apart * EDIT >= s->cost || str_eq(s->given, candidate)) return false;
    uint32_t cost = edits_cost(s->given, candidate);
    if (cost >= s->cost) return false;
    s->best = candidate, s->cost = cost;
    return true;
}

Str str_quoted(Arena *arena, Str s) {
    Text t = {.arena = arena};
    text_put(&t, S("'"));
    for (uint32_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.at[i];
        if (c == '\'' || c == '\\' || c < ' ' || c == 0x7F)
            text_add(&t, "\\x%02x", c);
        else
            text_put(&t, (Str){s.at + i, 1});
    }
    text_put(&t, S("'"));
    return (Str){t.at, t.n};
}
static unsigned hex(char c) { return c <= '9' ? (unsigned)(c - '0') : (unsigned)((c | 32) - 'a' + 10) & 15; }
Str str_unquoted(Arena *arena, Str s) {
    Text t = {.arena = arena};
    for (uint32_t i = 1; i + 1 < s.n; i++) {
        char c = s.at[i];
        if (c == '\\' && i + 4 < s.n && s.at[i + 1] == 'x')
            c = (char)(hex(s.at[i + 2]) << 4 | hex(s.at[i + 3])), i += 3;
        text_put(&t, (Str){&c, 1});
    }
    return (Str){t.at, t.n};
}
