/* Literals: Python's repr of a scalar. Integers are kept exactly, up to 64 bits and a sign; a
   literal with a type must fit it. */
#include "parser.h"
#include <math.h>
#include <stdlib.h>

/* ---- which tokens */

static bool is_imaginary(const Parser *p, uint32_t i) {
    Str s = tok_text(p, i);
    uint8_t kind = tok(p, i)->kind;
    return kind == T_NUMBER ? s.at[s.n - 1] == 'j' : tok_is(p, i, "infj") || tok_is(p, i, "nanj");
}

/* "-1.5", "nan", "2j" */
static uint32_t real_end(const Parser *p, uint32_t i) {
    uint32_t k = i;
    if (tok(p, k)->kind == '-') {
        k++;
        if (!tok_sticks(p, k)) return i;
    }
    bool number = tok(p, k)->kind == T_NUMBER || tok_is(p, k, "inf") || tok_is(p, k, "nan") || is_imaginary(p, k);
    return number ? k + 1 : i;
}

/* "1+2j", or a real number */
static uint32_t complex_end(const Parser *p, uint32_t i) {
    uint32_t k = real_end(p, i);
    uint8_t sign = tok(p, k)->kind;
    if (k == i || (sign != '+' && sign != '-') || !tok_sticks(p, k) || !tok_sticks(p, k + 1)) return k;
    uint32_t end = real_end(p, k + 1);
    return end > k + 1 && is_imaginary(p, end - 1) ? end : k;
}

uint32_t literal_end(const Parser *p, uint32_t i) {
    switch (tok(p, i)->kind) {
    case T_NAME:
        if (tok_is(p, i, "True") || tok_is(p, i, "False")) return i + 1;
        if (tok_is(p, i, "Literal") && tok(p, i + 1)->kind == '(') return tok_match(p, i + 1);
        return real_end(p, i);
    case T_NUMBER:
    case '-': return complex_end(p, i);
    case '[': return tok(p, i + 1)->kind == T_ELLIPSIS && tok(p, i + 2)->kind == ']' ? i + 3 : i;
    case '(': {
        if (tok_is(p, i + 1, "b") && tok(p, i + 2)->kind == T_STRING) return tok_match(p, i);
        uint32_t end = complex_end(p, i + 1);
        bool closed = end > i + 1 && tok(p, end)->kind == ')' && is_imaginary(p, end - 1);
        return closed ? end + 1 : i;
    }
    default: return i;
    }
}

/* ---- their values */

static bool digits(Str s, uint32_t *k) {
    uint32_t from = *k;
    while (*k < s.n && s.at[*k] >= '0' && s.at[*k] <= '9') ++*k;
    return *k > from;
}

/* digits [ "." [ digits ] ] [ "e" [ sign ] digits ] [ "j" ], or "." digits …: as Python writes numbers */
static bool well_formed(Str s, bool *integer) {
    uint32_t k = 0;
    bool some = digits(s, &k);
    *integer = k == s.n;
    if (k < s.n && s.at[k] == '.') k++, some |= digits(s, &k);
    if (!some) return false;
    if (k < s.n && (s.at[k] == 'e' || s.at[k] == 'E')) {
        k++;
        if (k < s.n && (s.at[k] == '+' || s.at[k] == '-')) k++;
        if (!digits(s, &k)) return false;
    }
    if (k < s.n && s.at[k] == 'j') k++;
    return k == s.n;
}

typedef struct {
    double value;
    uint64_t magnitude;
    bool negative, integer, imaginary;
    bool huge; /* an integer beyond 64 bits */
} Number;

static bool read_number(Parser *p, uint32_t i, Number *n) {
    *n = (Number){.imaginary = is_imaginary(p, i)};
    Str s = tok_text(p, i);
    if (tok(p, i)->kind == T_NAME) return n->value = s.at[0] == 'i' ? INFINITY : NAN, true;
    if (!well_formed(s, &n->integer))
        return diag(p->cx->diags, toks_span(p, i, i + 1), "'%.*s' is not a number", SF(s));
    n->value = strtod(str_c(p->arena, s), NULL);
    for (uint32_t k = 0; n->integer && k < s.n; k++) {
        uint64_t d = (uint64_t)(s.at[k] - '0');
        n->huge = n->huge || __builtin_mul_overflow(n->magnitude, 10, &n->magnitude) ||
                  __builtin_add_overflow(n->magnitude, d, &n->magnitude);
    }
    return true;
}

/* Reads a sign and a number, and advances past them. */
static bool read_signed(Parser *p, uint32_t *i, Number *n) {
    bool minus = tok(p, *i)->kind == '-';
    if (minus || tok(p, *i)->kind == '+') ++*i;
    if (!read_number(p, (*i)++, n)) return false;
    n->negative = minus;
    if (minus) n->value = -n->value;
    return true;
}

static bool read_lit(Parser *p, uint32_t from, uint32_t to, Lit *lit, bool *huge) {
    *lit = (Lit){0};
    Number a, b = {0};
    if (tok(p, from)->kind == '[') return lit->kind = LIT_ARRAY, true;
    if (tok_is(p, from, "True") || tok_is(p, from, "False"))
        return lit->kind = LIT_BOOL, lit->i = tok_is(p, from, "True"), true;
    if (tok_is(p, from, "Literal")) return lit->kind = LIT_ARRAY, true;
    if (tok(p, from)->kind == '(') {
        if (tok_is(p, from + 1, "b")) return lit->kind = LIT_FLOAT0, true;
        from++, to--;
    }
    if (!read_signed(p, &from, &a)) return false;
    if (from < to && !read_signed(p, &from, &b)) return false;
    *huge = a.huge;
    if (a.imaginary || b.imaginary)
        *lit = (Lit){LIT_COMPLEX, .re = a.imaginary ? 0.0 : a.value, .im = a.imaginary ? a.value : b.value};
    else if (a.integer)
        *lit = (Lit){LIT_INT, .negative = a.negative, .i = a.magnitude, .re = a.value};
    else
        *lit = (Lit){LIT_FLOAT, .re = a.value};
    return true;
}

/* ---- whether they fit */

static double largest(Dtype d) {
    if (d == DT_c64) d = DT_f32;
    if (d == DT_f32) return 0x1.fffffep127;
    const FloatFormat *f = &float_format[d];
    bool small = f->exponent && d != DT_f64;
    return small ? float_decode(f, float_most(f)) : 0x1.fffffffffffffp1023;
}

/* Does the text name an infinity? (A finite number that overflows reads as one too.) */
static bool names_infinity(const Parser *p, uint32_t from, uint32_t to) {
    for (; from < to; from++)
        if (tok_is(p, from, "inf") || tok_is(p, from, "infj")) return true;
    return false;
}

static bool int_fits(const Lit *lit, Dtype d) {
    unsigned bits = dtype_info[d].width;
    if (dtype_info[d].kind == DK_UINT) return (!lit->negative || !lit->i) && (bits == 64 || lit->i >> bits == 0);
    return lit->i < (uint64_t)1 << (bits - 1) || (lit->negative && lit->i == (uint64_t)1 << (bits - 1));
}

/* Gives the literal the kind of its element type; false if the type lacks its value. */
static bool fit(const Parser *p, uint32_t from, uint32_t to, Lit *lit, Dtype d, bool huge) {
    if (lit->kind == LIT_ARRAY || d == DT_opaque) return d != DT_unit && d != DT_tok;
    if (lit->kind == LIT_FLOAT0) return d == DT_float0;
    bool real = lit->kind == LIT_INT || lit->kind == LIT_FLOAT || lit->kind == LIT_BOOL;
    double value = lit->kind == LIT_BOOL ? (double)lit->i : lit->re;
    switch (dtype_info[d].kind) {
    case DK_BOOL:
        if (lit->kind == LIT_INT && lit->i <= 1 && !huge) lit->kind = LIT_BOOL;
        return lit->kind == LIT_BOOL;
    case DK_SINT:
    case DK_UINT:
        if (lit->kind == LIT_BOOL) lit->kind = LIT_INT;
        return lit->kind == LIT_INT && !huge && int_fits(lit, d);
    case DK_FLOAT:
    case DK_COMPLEX:
        if (dtype_info[d].kind == DK_FLOAT && !real) return false;
        *lit = (Lit){dtype_info[d].kind == DK_FLOAT ? LIT_FLOAT : LIT_COMPLEX, .re = value, .im = lit->im};
        if (names_infinity(p, from, to)) return true;
        return !(fabs(lit->re) > largest(d) || fabs(lit->im) > largest(d));
    default: return false;
    }
}

Val literal_val(Parser *p, uint32_t from, uint32_t to, Type type) {
    Ctx *cx = p->cx;
    Lit lit;
    bool huge = false;
    Span span = toks_span(p, from, to);
    Str text = {p->text.at + span.at, span.n};
    p->recent |= type != 0;
    if (!read_lit(p, from, to, &lit, &huge)) {
        lit = (Lit){0};
    } else if (type && lit.kind <= LIT_COMPLEX && type_at(cx->types, type)->rank) {
        Dtype d = type_at(cx->types, type)->dtype;
        diag(cx->diags, span,
             "%.*s is a scalar, but its type is %.*s: the type of a scalar is %s[], and broadcast_in_dim makes an "
             "array of it",
             SF(text), SF(ctx_type_text(cx, type)), dtype_info[d].name);
    } else if (type) {
        Dtype d = type_at(cx->types, type)->dtype;
        bool whole = lit.kind != LIT_FLOAT || dtype_info[d].kind > DK_UINT;
        if (!fit(p, from, to, &lit, d, huge))
            diag(cx->diags, span, whole ? "%.*s does not fit %.*s" : "%.*s is not an integer, but its type is %.*s",
                 SF(text), SF(ctx_type_text(cx, type)));
    } else if (huge || (lit.kind == LIT_FLOAT && isinf(lit.re) && !names_infinity(p, from, to))) {
        diag(cx->diags, span, "%.*s does not fit any type", SF(text));
    }
    Val v = val_literal(cx, type, lit, span);
    if (lit.kind == LIT_ARRAY && text.at[0] == 'L') val_info(cx, v)->name = text;
    return v;
}
