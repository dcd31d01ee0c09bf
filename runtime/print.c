/* debug_print: a message with values, formatted as by Python's str.format and numpy, for the host's printer or standard
   error. The message is described by a text (passes/rules/print.c writes it):

     EDGE THRESHOLD PRECISION WIDTH SUPPRESS LEAVES    numpy's options; the number of values, and for each
     KIND BYTES RANK NAME                              b bool, i u integers, f floats (2: a float rounded to 16 bits),
                                                       n narrow floats, m narrow integers, c two floats: real, imaginary
     t N:BYTES                                         pieces: text,
     s LEAF SPEC  r LEAF SPEC  f LEAF SPEC             a value by str, repr, format

   SPEC is 8 numbers: fill, align, sign, alternate, width, group, precision (-1: none), type; characters by their codes,
   0 for none. The arrays are the values, then the text; the sizes are their extents. */
#include "pool.h"
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- growing text */
typedef struct {
    char *at;
    size_t n, cap;
    bool failed;
} Out;
static void put(Out *o, const char *s, size_t n) {
    if (o->failed) return;
    if (!o->at || o->n + n + 1 > o->cap) {
        size_t cap = 2 * (o->n + n) + 256;
        char *at = realloc(o->at, cap);
        o->failed = !at;
        if (!at) return;
        o->at = at, o->cap = cap;
    }
    memcpy(o->at + o->n, s, n);
    o->at[o->n += n] = 0;
}
/* Text with its end, to what is no longer than what was there or has ROOM. */
static void set(char *to, const char *s) { memmove(to, s, strlen(s) + 1); }
static void puts_to(Out *o, const char *s) { put(o, s, strlen(s)); }
static void fill(Out *o, char c, int64_t n) {
    while (n-- > 0) put(o, &c, 1);
}

/* ---- what is printed */
typedef struct {
    int edge, threshold, precision, width, suppress, leaves;
} Style;
typedef struct {
    char kind, name[24];
    int bytes, rank;
    const char *data, *imaginary; /* for complex numbers: the second array */
    const int64_t *dims;
} Leaf;
typedef struct {
    int fill, align, sign, alternate, width, group, precision, type;
} Spec;

static int64_t count(const Leaf *l) {
    int64_t n = 1;
    for (int i = 0; i < l->rank; i++) n *= l->dims[i];
    return n;
}
static double number(const Leaf *l, int64_t i, bool imaginary) {
    const char *data = imaginary ? l->imaginary : l->data;
    float f;
    double d;
    if (l->kind == 'f' && l->bytes == 2) return memcpy(&f, data + 4 * i, 4), f;
    if (l->kind == 'n') return memcpy(&f, data + 4 * i, 4), f;
    if (l->bytes == 4) return memcpy(&f, data + 4 * i, 4), f;
    return memcpy(&d, data + 8 * i, 8), d;
}
/* The bits of an integer, sign extended. */
static int64_t integer(const Leaf *l, int64_t i) {
    uint64_t x = 0;
    memcpy(&x, l->data + i * l->bytes, (size_t)l->bytes);
    int shift = 64 - 8 * l->bytes;
    bool is_signed = l->kind == 'i' || l->kind == 'm';
    return is_signed ? (int64_t)(x << shift) >> shift : (int64_t)x;
}
static bool is_float(const Leaf *l) { return l->kind == 'f' || l->kind == 'c'; }

/* ---- digits */
enum { ROOM = 700 }; /* for any number: at most 309 digits before the point (1e308) and 300 after it */

/* Rounds to the 11 significant bits of a 16-bit float. */
static double half(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int e = (int)(bits >> 52 & 2047) - 1022; /* 2^(e-1) <= |x| < 2^e */
    if (x == 0 || e > 1023) return x;
    bits = (uint64_t)((e < -13 ? -13 : e) - 11 + 1023) << 52;
    double unit;
    memcpy(&unit, &bits, sizeof unit);
    double y = jaxcc_rt_roundeven(x / unit) * unit;
    return fabs(y) > 65504 ? copysign(INFINITY, x) : y;
}
static double rounded(double x, int bytes) { return bytes == 8 ? x : bytes == 4 ? (double)(float)x : half(x); }
/* From here on numpy writes an array with exponents. */
static double large(int bytes) { return bytes == 8 ? 1e8 : bytes == 4 ? 1e6 : 1e3; }
/* The fewest digits, as d.ddde±dd, that read back as the same float of `bytes`; returns the number after the point. */
static int shortest(char *to, double x, int bytes, int *exponent) {
    int after = 0;
    do snprintf(to, ROOM, "%.*e", after, x);
    while (rounded(strtod(to, NULL), bytes) != x && ++after < 17);
    *exponent = atoi(strchr(to, 'e') + 1);
    return after;
}
/* 12.5 with at most `most` digits after the point, fewer if they suffice; always with a point: "12." */
static void positional(char *to, double x, int bytes, int most) {
    int exponent, digits = shortest(to, x, bytes, &exponent), after = digits > exponent ? digits - exponent : 0;
    if (after > most) after = most;
    int n = snprintf(to, ROOM, "%.*f", after, x);
    if (after == 0) return set(to + n, ".");
    while (to[n - 1] == '0') to[--n] = 0;
}
/* 1.25e+01 with at most `most` digits after the point, at least `least`. */
static void scientific(char *to, double x, int bytes, int least, int most) {
    int exponent, digits = shortest(to, x, bytes, &exponent);
    if (digits > most) digits = most;
    if (digits < least) digits = least;
    char e[16];
    for (;; digits--) { /* rounding may leave zeros */
        snprintf(to, ROOM, "%.*e", digits, x);
        char *mark = strchr(to, 'e');
        snprintf(e, sizeof e, "%s", mark);
        *mark = 0;
        if (digits <= least || digits == 0 || mark[-1] != '0') break;
    }
    if (digits == 0) set(to + strlen(to), ".");
    set(to + strlen(to), e);
}

/* ---- Python's format of one number */
/* repr: 0.1, 1.0, 1e+16. */
static void python_repr(char *to, double x, bool point) {
    int exponent, digits;
    if (!isfinite(x)) return set(to, isnan(x) ? "nan" : x < 0 ? "-inf" : "inf");
    digits = shortest(to, x, 8, &exponent);
    if (exponent < -4 || exponent >= 16) return;
    int after = digits > exponent ? digits - exponent : 0;
    int n = snprintf(to, ROOM, "%.*f", after, x);
    if (after == 0 && point) set(to + n, ".0");
}
static void format_float(char *to, double x, const Spec *s) {
    char type = (char)s->type, code[8] = {'%', 0};
    int precision = s->precision < 0 ? 6 : s->precision;
    if (!type && s->precision < 0) return python_repr(to, x, true);
    if (!isfinite(x)) {
        bool upper = type == 'F' || type == 'E' || type == 'G';
        set(to, isnan(x) ? (upper ? "NAN" : "nan") : upper ? (x < 0 ? "-INF" : "INF") : x < 0 ? "-inf" : "inf");
        if (type == '%') set(to + strlen(to), "%");
        return;
    }
    if (type == '%') {
        snprintf(to, ROOM, "%.*f%%", precision, 100 * x);
        return;
    }
    if (precision > 300) precision = 300;
    if (!type) { /* as g, but with a digit after the point, and an exponent one digit earlier */
        if (precision == 0) precision = 1;
        snprintf(to, ROOM, "%.*e", precision - 1, x);
        int exponent = atoi(strchr(to, 'e') + 1);
        bool early = exponent == precision - 1;
        if (early) { /* 1.23e+02 */
            char *e = strchr(to, 'e'), tail[16];
            snprintf(tail, sizeof tail, "%s", e);
            while (strchr(to, '.') && e > to && e[-1] == '0' && strchr(to, '.') < e) e--;
            if (e[-1] == '.') e--;
            set(e, tail);
            return;
        }
        snprintf(to, ROOM, "%.*g", precision, x);
        if (!strpbrk(to, ".e")) set(to + strlen(to), ".0");
        return;
    }
    set(code + 1, s->alternate ? "#.*" : ".*");
    code[strlen(code)] = type == 'n' ? 'g' : type;
    snprintf(to, ROOM, code, precision, x);
}
static void format_integer(char *to, const Leaf *l, const Spec *s) {
    int64_t x = l->kind == 'b' ? *l->data != 0 : integer(l, 0);
    bool minus = x < 0 && l->kind != 'u';
    uint64_t n = minus ? -(uint64_t)x : (uint64_t)x;
    char type = (char)s->type;
    if (type && strchr("eEfFgG%", type)) return format_float(to, minus ? -(double)n : (double)n, s);
    if (type == 'c') {
        to[0] = (char)n, to[1] = 0;
        return;
    }
    unsigned base = type == 'b' ? 2 : type == 'o' ? 8 : type == 'x' || type == 'X' ? 16 : 10;
    char digits[72], *d = digits + sizeof digits;
    *--d = 0;
    do *--d = (type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef")[n % base];
    while (n /= base);
    snprintf(to, ROOM, "%s%s%.1s%s", minus ? "-" : "", s->alternate && base != 10 ? "0" : "",
             s->alternate && base != 10 ? &type : "", d);
}
/* 1234567.5 → 1,234,567.5 */
static void group_digits(char *text, const Spec *s) {
    char out[2 * ROOM];
    size_t first = strspn(text, "-+ "), n = 0, digits;
    bool hex = s->type == 'x' || s->type == 'X';
    size_t prefix = s->alternate && strchr("boxX", s->type) && s->type ? 2 : 0,
           each = hex || s->type == 'b' || s->type == 'o' ? 4 : 3;
    first += prefix;
    digits = strspn(text + first, hex ? "0123456789abcdefABCDEF" : "0123456789");
    memcpy(out, text, first);
    n = first;
    for (size_t i = 0; i < digits; i++) {
        if (i && (digits - i) % each == 0) out[n++] = (char)s->group;
        out[n++] = text[first + i];
    }
    set(out + n, text + first + digits);
    memcpy(text, out, strlen(out) + 1);
}
static void padded(Out *o, const char *text, const Spec *s, char align) {
    int64_t length = 0;
    for (const char *c = text; *c; c++) length += (*c & 0xC0) != 0x80; /* characters, not bytes */
    int64_t n = s->width - length;
    char with = (char)(s->fill ? s->fill : ' ');
    if (s->align) align = (char)s->align;
    if (n < 0) n = 0;
    if (align == '=') {
        size_t sign = strspn(text, "+- ");
        if (sign > 1) sign = 1;
        if (s->alternate && s->type && strchr("boxX", s->type)) sign += 2;
        put(o, text, sign);
        fill(o, with, n);
        return puts_to(o, text + sign);
    }
    fill(o, with, align == '<' ? 0 : align == '^' ? n / 2 : n);
    puts_to(o, text);
    fill(o, with, align == '<' ? n : align == '^' ? n - n / 2 : 0);
}
static void put_signed(char *to, const char *text, int sign) {
    if (sign && sign != '-' && *text != '-') *to++ = sign == '+' ? '+' : ' ';
    set(to, text);
}
static void format_complex(char *to, const Leaf *l, const Spec *s) {
    double re = number(l, 0, false), im = number(l, 0, true);
    char a[ROOM + 2], b[ROOM + 2], c[ROOM + 2];
    bool bare = !s->type && re == 0 && !signbit(re);
    Spec part = *s;
    if (!s->type && s->precision >= 0) part.type = 'g';
    if (part.type)
        format_float(a, re, &part), format_float(b, im, &part);
    else
        python_repr(a, re, false), python_repr(b, im, false);
    put_signed(c, a, s->sign);
    memcpy(a, c, sizeof a);
    put_signed(c, b, bare ? s->sign : '+');
    snprintf(to, 2 * ROOM + 8, bare ? "%s%sj" : s->type ? "%s%sj" : "(%s%sj)", bare ? "" : a, c);
}
static void format_scalar(Out *o, const Leaf *l, const Spec *s) {
    char text[2 * ROOM + 8], with_sign[2 * ROOM + 8];
    bool plain = !s->width && !s->type && s->precision < 0 && !s->sign && !s->group && !s->alternate && !s->align;
    if (l->kind == 'b' && plain) return puts_to(o, *l->data ? "True" : "False");
    if (l->kind == 'c')
        format_complex(text, l, s);
    else if (l->kind == 'f' || l->kind == 'n')
        format_float(text, number(l, 0, false), s);
    else
        format_integer(text, l, s);
    if (l->kind == 'c') return padded(o, text, s, '>');
    put_signed(with_sign, text, s->sign);
    if (s->group) group_digits(with_sign, s);
    padded(o, with_sign, s, s->type == 'c' ? '<' : '>');
}

/* ---- numpy's arrays */
typedef struct {
    const Leaf *l;
    const Style *style;
    const char *separator;
    bool brief;
    int left, right, exponent,
        precision; /* of floats: widths before and after the point; digits of the exponent, 0: positional */
    int imaginary_left, imaginary_right, imaginary_exponent, imaginary_precision;
    int width; /* of others */
    Out line;
} Array;

typedef void Visit(Array *, int64_t element);
/* Visits every element that is printed. */
static void visit(Array *a, int axis, int64_t at, Visit *see) {
    if (axis == a->l->rank) return see(a, at);
    int64_t n = a->l->dims[axis];
    for (int64_t i = 0; i < n; i++) {
        if (a->brief && n > 2 * a->style->edge && i == a->style->edge) i = n - a->style->edge;
        visit(a, axis + 1, at * n + i, see);
    }
}
typedef struct {
    double most, least;
    bool some, infinite_minus, other, infinite;
} Range;
typedef struct {
    Array a;
    Range range;
    bool imaginary;
    int left, right, exponent;
} Measure;
static void measure_range(Array *a, int64_t i) {
    Measure *m = (Measure *)a;
    double x = number(a->l, i, m->imaginary), y = fabs(x);
    if (!isfinite(x)) {
        m->range.other = true;
        m->range.infinite |= isinf(x);
        m->range.infinite_minus |= isinf(x) && x < 0;
    } else if (y != 0) {
        if (!m->range.some || y > m->range.most) m->range.most = y;
        if (!m->range.some || y < m->range.least) m->range.least = y;
        m->range.some = true;
    }
}
static void measure_digits(Array *a, int64_t i) {
    Measure *m = (Measure *)a;
    char text[ROOM], sign[ROOM + 2];
    double x = number(a->l, i, m->imaginary);
    if (!isfinite(x)) return;
    int bytes = a->l->bytes, most = a->style->precision;
    if (m->exponent)
        scientific(text, x, bytes, 0, most);
    else
        positional(text, x, bytes, a->style->precision);
    put_signed(sign, text, m->imaginary ? '+' : 0);
    char *e = strchr(sign, 'e'), *point = strchr(sign, '.');
    int right = (int)((e ? e : sign + strlen(sign)) - point - 1), left = (int)(point - sign);
    if (e && (int)strlen(e) - 2 > m->exponent) m->exponent = (int)strlen(e) - 2;
    if (left > m->left) m->left = left;
    if (right > m->right) m->right = right;
}
/* The common widths of all elements. */
static Measure measured(const Array *a, bool imaginary) {
    Measure m = {.a = *a, .imaginary = imaginary};
    visit(&m.a, 0, 0, measure_range);
    const Range *r = &m.range;
    int bytes = a->l->bytes;
    double wide = rounded(r->most / (r->some ? r->least : 1), bytes), tiny = rounded(1e-4, bytes);
    bool scientific_form =
        r->some && (r->most >= large(bytes) || (!a->style->suppress && (r->least < tiny || wide > 1000)));
    m.exponent = scientific_form;
    visit(&m.a, 0, 0, measure_digits);
    int precision = m.right;
    if (scientific_form) m.right += m.exponent + 2;
    if (r->other) {
        int need = 3 - (m.right + 1), more = 3 + (r->infinite_minus || imaginary) - (m.right + 1);
        if (need > m.left) m.left = need;
        if (more > m.left) m.left = more;
    }
    m.a.precision = precision;
    return m;
}
/* The real part of element i, or the imaginary one with its sign, in its column. */
static void put_float(Out *o, const Array *a, int64_t i, bool imaginary) {
    double x = number(a->l, i, imaginary);
    int bytes = a->l->bytes, left = imaginary ? a->imaginary_left : a->left,
        right = imaginary ? a->imaginary_right : a->right;
    int exponent = imaginary ? a->imaginary_exponent : a->exponent;
    int precision = imaginary ? a->imaginary_precision : a->precision;
    char text[ROOM], sign[ROOM + 2];
    if (!isfinite(x)) {
        snprintf(sign, sizeof sign, "%s%s", x < 0 ? "-" : imaginary ? "+" : "", isnan(x) ? "nan" : "inf");
        fill(o, ' ', left + right + 1 - (int)strlen(sign));
        return puts_to(o, sign);
    }
    if (exponent)
        scientific(text, x, bytes, precision, precision);
    else
        positional(text, x, bytes, a->style->precision);
    put_signed(sign, text, imaginary ? '+' : 0);
    char *e = strchr(sign, 'e');
    int before = (int)(strchr(sign, '.') - sign), after = (int)strlen(sign) - before - 1;
    if (e && (int)strlen(e) - 2 < exponent) { /* e+05 → e+005 */
        char digits[16];
        snprintf(digits, sizeof digits, "%s", e + 2);
        after += exponent - (int)strlen(digits);
        snprintf(e + 2, 16, "%0*d", exponent, atoi(digits));
    }
    fill(o, ' ', left - before);
    puts_to(o, sign);
    fill(o, ' ', right - after);
}
static void element(Array *a, int64_t i, Out *o) {
    const Leaf *l = a->l;
    char text[ROOM];
    switch (l->kind) {
    case 'b': snprintf(text, sizeof text, "%s", l->data[i] ? "True" : "False"); break;
    case 'f':
    case 'c':
        put_float(o, a, i, false);
        if (l->kind == 'f') return;
        put_float(o, a, i, true);
        size_t end = o->n;
        while (end && o->at[end - 1] == ' ') end--;
        put(o, "j", 1);
        if (!o->failed) memmove(o->at + end + 1, o->at + end, o->n - 1 - end), o->at[end] = 'j';
        return;
    case 'n': snprintf(text, sizeof text, "%g", number(l, i, false)); break;
    case 'u': snprintf(text, sizeof text, "%llu", (unsigned long long)integer(l, i)); break;
    default: snprintf(text, sizeof text, "%lld", (long long)integer(l, i));
    }
    fill(o, ' ', a->width - (int)strlen(text));
    puts_to(o, text);
}
static void measure_width(Array *a, int64_t i) {
    Out o = {0};
    element(a, i, &o);
    Measure *m = (Measure *)a;
    if ((int)o.n > m->left) m->left = (int)o.n;
    free(o.at);
}
/* Puts a word on the line, or on the next if it does not fit. */
static void extend(Out *o, Out *line, const char *word, size_t n, int width, int indent) {
    if (line->n + n > (size_t)(width > 0 ? width : 0) && line->n > (size_t)indent) {
        while (line->n && line->at[line->n - 1] == ' ') line->n--;
        put(o, line->at, line->n);
        put(o, "\n", 1);
        line->n = 0;
        fill(line, ' ', indent);
    }
    put(line, word, n);
}
/* One axis and what is below it. `indent`: of the lines within; `width`: of a line. */
static void rows(Array *a, Out *o, int axis, int64_t at, int indent, int width) {
    const Style *style = a->style;
    int64_t n = a->l->dims[axis];
    int below = a->l->rank - axis - 1;
    bool brief = a->brief && n > 2 * style->edge;
    size_t bare = strlen(a->separator);
    while (bare && a->separator[bare - 1] == ' ') bare--;
    Out line = {0};
    put(o, "[", 1);
    if (!below) fill(&line, ' ', indent);
    size_t start = o->n;
    for (int64_t i = 0; i < n; i++) {
        bool dots = brief && i == style->edge;
        if (dots) i = n - style->edge - 1;
        if (below) {
            if (i) fill(o, ' ', indent);
            if (dots)
                puts_to(o, "...");
            else
                rows(a, o, axis + 1, at * n + i, indent + 1, width - 1);
            if (i + 1 == n) break;
            put(o, a->separator, bare);
            fill(o, '\n', below);
            continue;
        }
        Out word = {0};
        if (dots)
            puts_to(&word, "...");
        else
            element(a, at * n + i, &word);
        extend(o, &line, word.at ? word.at : "", word.n, width - 1, indent);
        o->failed |= word.failed || line.failed;
        free(word.at);
        if (i + 1 < n) puts_to(&line, a->separator);
    }
    if (!below) {
        put(o, line.at, line.n);
        if (!o->failed && o->n >= start + (size_t)indent) { /* the bracket replaces the indent of the first line */
            memmove(o->at + start, o->at + start + indent, o->n - start - (size_t)indent + 1);
            o->n -= (size_t)indent;
        }
    }
    free(line.at);
    put(o, "]", 1);
}
static void put_array(Out *o, const Leaf *l, const Style *style, int prefix, const char *separator, int suffix) {
    if (count(l) == 0) return puts_to(o, "[]");
    Array a = {.l = l, .style = style, .separator = separator, .brief = count(l) > style->threshold};
    if (is_float(l)) {
        Measure m = measured(&a, false);
        a.left = m.left, a.right = m.right, a.exponent = m.exponent, a.precision = m.a.precision;
    }
    if (l->kind == 'c') {
        Measure m = measured(&a, true);
        a.imaginary_left = m.left, a.imaginary_right = m.right, a.imaginary_exponent = m.exponent;
        a.imaginary_precision = m.a.precision;
    }
    if (!is_float(l) && l->kind != 'n' && l->kind != 'm') {
        Measure m = {.a = a};
        visit(&m.a, 0, 0, measure_width);
        a.width = l->rank ? (l->kind == 'b' ? 5 : m.left) : 0;
    }
    if (l->rank == 0)
        element(&a, 0, o);
    else
        rows(&a, o, 0, 0, 1 + prefix, style->width - suffix);
}

/* ---- str and repr of a value */
static void put_str(Out *o, const Leaf *l, const Style *style) {
    if (l->rank) return put_array(o, l, style, 0, " ", 0);
    char text[ROOM];
    if (is_float(l)) { /* numpy's scalars: the digits of their type */
        for (int part = 0; part <= (l->kind == 'c'); part++) {
            double x = number(l, 0, part);
            bool bare = l->kind == 'c' && !part && x == 0 && !signbit(x);
            int exponent;
            if (l->kind == 'c' && !part && !bare) put(o, "(", 1);
            if (!isfinite(x))
                set(text, isnan(x) ? "nan" : x < 0 ? "-inf" : "inf");
            else if (x == 0 || (fabs(x) >= 1e-4 && fabs(x) < (l->bytes == 8 ? 1e16 : large(l->bytes))))
                positional(text, x, l->bytes, 400);
            else
                shortest(text, x, l->bytes, &exponent);
            size_t n = strlen(text);
            if (text[n - 1] == '.') set(text + n - (l->kind == 'c'), l->kind == 'c' ? "" : "0");
            bool whole = l->kind == 'c' && number(l, 0, false) == 0 && !signbit(number(l, 0, false));
            if (part && !whole && *text != '-') put(o, "+", 1);
            if (!bare) puts_to(o, text);
            if (part) puts_to(o, whole ? "j" : "j)");
        }
        return;
    }
    put_array(o, l, style, 0, " ", 0);
}
/* Array([1., 2.], dtype=float32) */
static void put_repr(Out *o, const Leaf *l, const Style *style) {
    static const char prefix[] = "Array(";
    puts_to(o, prefix);
    size_t array = o->n;
    if (count(l)) {
        put_array(o, l, style, sizeof prefix - 1, ", ", 1);
    } else {
        puts_to(o, "[], shape=(");
        for (int i = 0; i < l->rank; i++) {
            char n[24];
            snprintf(n, sizeof n, i ? ", %lld" : "%lld", (long long)l->dims[i]);
            puts_to(o, n);
        }
        puts_to(o, l->rank == 1 ? ",)" : ")");
    }
    if (o->failed) return;
    size_t line = o->n;
    while (line > array && o->at[line - 1] != '\n') line--;
    size_t last = o->n - line + 2, dtype = strlen(l->name) + 7;
    puts_to(o, ",");
    if (last + dtype + 1 > (size_t)style->width)
        fill(o, ' ', sizeof prefix - 1);
    else
        puts_to(o, " ");
    puts_to(o, "dtype="), puts_to(o, l->name), puts_to(o, ")");
}

/* ---- the message */
static Spec read_spec(const char **c) {
    int v[8];
    for (int i = 0; i < 8; i++) v[i] = (int)strtol(*c, (char **)c, 10);
    return (Spec){v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]};
}
static void value(Out *o, const Leaf *l, const Style *style, char how, const Spec *spec) {
    if (how == 'f' && l->rank == 0) return format_scalar(o, l, spec);
    Out text = {0};
    if (how == 'r')
        put_repr(&text, l, style);
    else
        put_str(&text, l, style);
    o->failed |= text.failed;
    if (spec->precision >= 0 && (size_t)spec->precision < text.n) text.at[spec->precision] = 0;
    if (!o->failed) padded(o, text.at, spec, '<');
    free(text.at);
}
static void message(Out *o, void *const *arrays, const int64_t *sizes, const char *c, Leaf *leaves, Style style) {
    for (int i = 0; i < style.leaves; i++) {
        Leaf *l = &leaves[i];
        int used;
        sscanf(c, " %c %d %d %23s%n", &l->kind, &l->bytes, &l->rank, l->name, &used);
        c += used;
        l->data = *arrays++;
        if (l->kind == 'c') l->imaginary = *arrays++;
        l->dims = sizes;
        sizes += l->rank;
    }
    while (*(c += strspn(c, " \n"))) {
        char how = *c++;
        long n = strtol(c, (char **)&c, 10);
        if (how == 't') {
            put(o, c + 1, (size_t)n);
            c += 1 + n;
            continue;
        }
        Spec spec = read_spec(&c);
        value(o, &leaves[n], &style, how, &spec);
    }
}
void jaxcc_rt_print(jaxcc_rt_heap *call, void *const *arrays, const int64_t *sizes) {
    int64_t operands = *sizes++;
    const char *text = arrays[operands];
    Style style = {0};
    int used = 0;
    sscanf(text, "%d %d %d %d %d %d%n", &style.edge, &style.threshold, &style.precision, &style.width, &style.suppress,
           &style.leaves, &used);
    Out o = {0};
    Leaf *leaves = calloc((size_t)style.leaves + 1, sizeof *leaves);
    o.failed = !leaves;
    if (leaves) message(&o, arrays, sizes, text + used, leaves, style);
    jaxcc_print *print = jaxcc_rt_host_print;
    if (!print) put(&o, "\n", 1);
    if (!o.failed && print) print(jaxcc_rt_host_printer, o.at ? o.at : "");
    if (!o.failed && !print) fwrite(o.at, 1, o.n, stderr);
    free(leaves);
    free(o.at);
    if (o.failed) jaxcc_rt_stop(call, JAXCC_MEMORY, "no memory for what debug_print prints");
}
