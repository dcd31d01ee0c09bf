/* The words of PTX. */
#include "parse.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_NUMBER = 64 };

void wrong(Parser *p, const char *format, ...) {
    int n = snprintf(p->error, p->error_size, "line %u: ", p->line);
    va_list list;
    va_start(list, format);
    if (n >= 0 && (size_t)n < p->error_size) vsnprintf(p->error + n, p->error_size - (size_t)n, format, list);
    va_end(list);
    longjmp(p->out, 1);
}
static void skip_comment(Parser *p) {
    for (p->at += 2; p->at[0] && !(p->at[0] == '*' && p->at[1] == '/'); p->at++) p->line += *p->at == '\n';
    if (*p->at) p->at += 2;
}
char peek(Parser *p) {
    for (;; p->at++) {
        while (p->at[0] == '/' && p->at[1] == '*') skip_comment(p);
        if (p->at[0] == '/' && p->at[1] == '/') p->at += strcspn(p->at, "\n");
        if (*p->at == '\n')
            p->line++;
        else if (*p->at != ' ' && *p->at != '\t' && *p->at != '\r')
            return *p->at;
    }
}
bool accept(Parser *p, const char *s) {
    peek(p);
    size_t n = strlen(s);
    if (strncmp(p->at, s, n)) return false;
    p->at += n;
    return true;
}
void expect(Parser *p, const char *s) {
    if (!accept(p, s)) wrong(p, "'%s' is expected before '%.20s'", s, p->at);
}
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$%"
static Str span(Parser *p, const char *characters) {
    peek(p);
    Str s = {p->at, (uint32_t)strspn(p->at, characters)};
    p->at += s.n;
    return s;
}
Str word(Parser *p) { return span(p, LETTERS); }
Str dotted_word(Parser *p) { return span(p, LETTERS ".:"); }

/* 0fXXXXXXXX and 0dXXXXXXXXXXXXXXXX are bits of floats. */
bool number_of(Str s, uint64_t *v) {
    char text[MAX_NUMBER], *end;
    bool negative = s.n && s.at[0] == '-';
    const char *digits = s.at + negative;
    uint32_t n = s.n - negative;
    if (n == 0 || n >= MAX_NUMBER || *digits < '0' || *digits > '9') return false;
    memcpy(text, digits, n);
    text[n] = 0;
    bool bits = n > 2 && *digits == '0' && strchr("fFdD", digits[1]);
    *v = bits ? strtoull(text + 2, &end, 16) : strtoull(text, &end, 0);
    if (*end == 'U') end++;
    if (negative) *v = 0 - *v;
    return *end == 0;
}
bool is_number(Parser *p) {
    char c = peek(p);
    return c == '-' || (c >= '0' && c <= '9');
}
uint64_t number(Parser *p) {
    uint64_t v;
    peek(p);
    const char *from = p->at;
    if (*p->at == '-') p->at++;
    word(p);
    if (!number_of((Str){from, (uint32_t)(p->at - from)}, &v)) wrong(p, "a number is expected before '%.20s'", from);
    return v;
}
uint32_t small_number(Parser *p) {
    uint64_t v = number(p);
    if (v > INT32_MAX) wrong(p, "%lld is too large", (long long)v);
    return (uint32_t)v;
}
void skip_line(Parser *p) { p->at += strcspn(p->at, "\n"); }
void skip_braces(Parser *p) {
    expect(p, "{");
    for (uint32_t depth = 1; depth; p->at++) {
        switch (peek(p)) {
        case '{': depth++; break;
        case '}': depth--; break;
        case 0: wrong(p, "a { is not closed");
        }
    }
}
void skip_statement(Parser *p) {
    while (peek(p) && *p->at != ';') p->at++;
    expect(p, ";");
}

Parts parts_of(Parser *p, Str opcode) {
    Parts x = {.all = opcode};
    for (uint32_t from = 0, k = 0; k <= opcode.n; k++) {
        if (k < opcode.n && opcode.at[k] != '.') continue;
        if (x.n == MAX_PARTS) wrong(p, "%.*s has more than %d parts", SF(opcode), MAX_PARTS);
        x.at[x.n++] = (Str){opcode.at + from, k - from};
        from = k + 1;
    }
    return x;
}
bool has(const Parts *x, const char *part) {
    for (uint32_t k = 1; k < x->n; k++)
        if (str_is(x->at[k], part)) return true;
    return false;
}
int which_of(const Parts *x, const char *const *names) {
    for (int k = 0; names[k]; k++)
        if (has(x, names[k])) return k;
    return -1;
}

static const TypeInfo types[] = {
    {"b8", 1, 'b'},  {"u8", 1, 'u'},   {"s8", 1, 's'},  {"b16", 2, 'b'}, {"u16", 2, 'u'},   {"s16", 2, 's'},
    {"f16", 2, 'f'}, {"bf16", 2, 'g'}, {"b32", 4, 'b'}, {"u32", 4, 'u'}, {"s32", 4, 's'},   {"f32", 4, 'f'},
    {"b64", 8, 'b'}, {"u64", 8, 'u'},  {"s64", 8, 's'}, {"f64", 8, 'f'}, {"f16x2", 4, '2'}, {"bf16x2", 4, '2'},
};
const TypeInfo *type_info(Str s) {
    for (size_t k = 0; k < sizeof types / sizeof *types; k++)
        if (str_is(s, types[k].name)) return &types[k];
    return NULL;
}
const TypeInfo *last_type(Parser *p, const Parts *x) {
    const TypeInfo *t = type_info(x->at[x->n - 1]);
    if (!t) wrong(p, "%.*s: '%.*s' is not a type", SF(x->all), SF(x->at[x->n - 1]));
    return t;
}
