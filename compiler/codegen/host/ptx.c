#include "ptx.h"
#include <assert.h>
#include <ctype.h>

enum { MOST_VALUES = 8, LEAST_BITS = 16 }; /* of a store; of a register */

/* [@PREDICATE] st….bN [ADDRESS], VALUE; or {VALUE, VALUE}; */
typedef struct {
    Str before; /* the values */
    uint32_t bits, n;
    Str values[MOST_VALUES];
} Store;

static uint32_t register_bits(Str name) {
    static const struct {
        Str begin;
        uint32_t bits;
    } classes[] = {{S("%rd"), 64}, {S("%rs"), 16}, {S("%r"), 32}};
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        Str b = classes[i].begin;
        if (name.n > b.n && !memcmp(name.at, b.at, b.n) && isdigit((unsigned char)name.at[b.n])) return classes[i].bits;
    }
    return 0; /* a constant */
}
static bool begins(const char *p, const char *end, Str with) {
    return (size_t)(end - p) >= with.n && !memcmp(p, with.at, with.n);
}
static const char *past(const char *p, const char *end, char c) {
    const char *at = memchr(p, c, (size_t)(end - p));
    return at ? at + 1 : end;
}
/* The number at the end of an opcode, which its type ends with. */
static uint32_t last_number(Str opcode) {
    uint32_t n = 0, unit = 1;
    for (uint32_t i = opcode.n; i > 0 && isdigit((unsigned char)opcode.at[i - 1]); i--, unit *= 10)
        n += unit * (uint32_t)(opcode.at[i - 1] - '0');
    return n;
}
static bool is_of_value(char c) { return c == '%' || isalnum((unsigned char)c); }
static bool read_store(Str line, Store *s) {
    const char *p = line.at, *end = p + line.n;
    while (p < end && *p == '\t') p++;
    if (p < end && *p == '@') p = past(p, end, ' ');
    if (!begins(p, end, S("st."))) return false;
    const char *opcode = p;
    while (p < end && !isspace((unsigned char)*p)) p++;
    s->bits = last_number((Str){opcode, (uint32_t)(p - opcode)});
    p = past(p, end, ']');
    if (begins(p, end, S(", "))) p += 2;
    s->before = (Str){line.at, (uint32_t)(p - line.at)};
    for (s->n = 0; p < end && *p != ';'; p++) {
        const char *from = p;
        while (p < end && is_of_value(*p)) p++;
        if (p == from) continue;
        assert(s->n < MOST_VALUES);
        s->values[s->n++] = (Str){from, (uint32_t)(p - from)};
        p--;
    }
    return begins(p, end, S(";\n")); /* nothing else in the line */
}
static bool is_wide(const Store *s, uint32_t i) { return register_bits(s->values[i]) > s->bits; }
static bool any_wide(const Store *s) {
    bool any = false;
    for (uint32_t i = 0; i < s->n; i++) any |= is_wide(s, i);
    return any;
}
static void put_store(Text *to, const Store *s) {
    uint32_t bits = s->bits < LEAST_BITS ? LEAST_BITS : s->bits;
    text_add(to, "\t{\n\t.reg .b%u \t%%narrow<%u>;\n", bits, s->n);
    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t from = register_bits(s->values[i]);
        if (!is_wide(s, i)) continue;
        if (from == bits)
            text_add(to, "\tmov.b%u", bits);
        else
            text_add(to, "\tcvt.u%u.u%u", bits, from);
        text_add(to, " \t%%narrow%u, %.*s;\n", i, SF(s->values[i]));
    }
    text_put(to, s->before);
    text_put(to, s->n > 1 ? S("{") : S(""));
    for (uint32_t i = 0; i < s->n; i++) {
        text_put(to, i ? S(", ") : S(""));
        if (is_wide(s, i))
            text_add(to, "%%narrow%u", i);
        else
            text_put(to, s->values[i]);
    }
    text_put(to, s->n > 1 ? S("};\n\t}\n") : S(";\n\t}\n"));
}
Str ptx_with_narrow_stores(Arena *a, Str ptx) {
    Text to = {.arena = a};
    const char *kept = ptx.at, *end = ptx.at + ptx.n;
    for (const char *line = kept, *next; line < end; line = next) {
        Store s;
        next = past(line, end, '\n');
        if (!read_store((Str){line, (uint32_t)(next - line)}, &s) || !any_wide(&s)) continue;
        text_put(&to, (Str){kept, (uint32_t)(line - kept)});
        put_store(&to, &s);
        kept = next;
    }
    text_put(&to, (Str){kept, (uint32_t)(end - kept)});
    return (Str){to.at, to.n};
}
