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
    while (t->cap - t->n < n)
        t->at = arena_grow(t->arena, t->at, t->n, &t->cap, 1);
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

/* The table of Levenshtein, one row at a time, with the swap of two neighbours (Damerau) as one
 * step. */
uint32_t str_distance(Str a, Str b) {
    enum { MOST = 64 };
    if (a.n > MOST || b.n > MOST) return MOST;
    uint32_t rows[3][MOST + 1] = {{0}}, *before = rows[0], *last = rows[1], *row = rows[2];
    for (uint32_t j = 0; j <= b.n; j++)
        last[j] = j;
    for (uint32_t i = 1; i <= a.n; i++) {
        row[0] = i;
        for (uint32_t j = 1; j <= b.n; j++) {
            uint32_t d = last[j - 1] + (a.at[i - 1] != b.at[j - 1]);
            if (last[j] + 1 < d) d = last[j] + 1;
            if (row[j - 1] + 1 < d) d = row[j - 1] + 1;
            bool swapped =
                i > 1 && j > 1 && a.at[i - 1] == b.at[j - 2] && a.at[i - 2] == b.at[j - 1];
            if (swapped && before[j - 2] + 1 < d) d = before[j - 2] + 1;
            row[j] = d;
        }
        uint32_t *free_row = before;
        before = last, last = row, row = free_row;
    }
    return last[b.n];
}

Str str_quoted(Arena *arena, Str s) {
    Text t = {.arena = arena};
    text_put(&t, S("'"));
    for (uint32_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.at[i];
        if (c == '\'' || c == '\\' || c < ' ' || c == 0x7F) text_add(&t, "\\x%02x", c);
        else text_put(&t, (Str){s.at + i, 1});
    }
    text_put(&t, S("'"));
    return (Str){t.at, t.n};
}
static unsigned hex(char c) { return c <= '9' ? (unsigned)(c - '0') : (unsigned)((c | 32) - 'a' + 10) & 15; }
Str str_unquoted(Arena *arena, Str s) {
    Text t = {.arena = arena};
    for (uint32_t i = 1; i + 1 < s.n; i++) {
        char c = s.at[i];
        if (c == '\\' && i + 4 < s.n && s.at[i + 1] == 'x') c = (char)(hex(s.at[i + 2]) << 4 | hex(s.at[i + 3])), i += 3;
        text_put(&t, (Str){&c, 1});
    }
    return (Str){t.at, t.n};
}
