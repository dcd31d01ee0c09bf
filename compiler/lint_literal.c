/* Literals whose value is lost, by the type that rounds them or by the operation that takes them. */
#include "lint.h"
#include <math.h>
#include <stdlib.h>

/* ---- rounding */

/* The value of that type nearest to x. */
static double nearest(Dtype d, double x) {
    if (d == DT_f32 || d == DT_c64) return (float)x;
    const FloatFormat *f = &float_format[d];
    return f->exponent && d != DT_f64 ? float_decode(f, float_encode(f, x)) : x;
}

static double number(const Lit *l) {
    double magnitude = (double)l->i;
    return l->kind == LIT_INT ? l->negative ? -magnitude : magnitude : l->re;
}

/* As Python prints it: the fewest digits that read back as x. */
static const char *shortest(const Ctx *cx, double x) {
    enum { ALL = 17 };
    for (int digits = 1;; digits++) {
        Str s = str_format(cx->arena, "%.*g", digits, x);
        if (digits == ALL || strtod(s.at, NULL) == x)
            return str_format(cx->arena, "%.*s%s", SF(s), strpbrk(s.at, ".en") ? "" : ".0").at;
    }
}

static Str text_at(const Ctx *cx, Span s) { return (Str){diags_text(cx->diags, s.file).at + s.at, s.n}; }

/* Does the text give the literal a type? Then it was printed exactly, unless it was written by hand. */
static bool typed(const Ctx *cx, Span s) {
    Str text = diags_text(cx->diags, s.file);
    return s.at + s.n < text.n && text.at[s.at + s.n] == ':';
}

/* A nonzero number that becomes 0, or a whole number that becomes another, is rarely meant; that 0.1 is not a binary
   fraction is well known. */
static void lint_rounding(Ctx *cx, Dtype d, double x, Span at) {
    double y = nearest(d, x);
    if (y == x || isnan(x)) return;
    bool lost = y == 0 || (x == trunc(x) && fabs(x) < 0x1p63);
    if (!lost && !typed(cx, at)) return;
    diag_warn(cx->diags, lost ? W_suspicious_literal : W_inexact_literal, at, "%.*s is no value of %s: it becomes %s",
              SF(text_at(cx, at)), dtype_info[d].name, shortest(cx, y));
}

/* ---- operations */

static bool is_integer(Dtype d) { return dtype_info[d].kind == DK_SINT || dtype_info[d].kind == DK_UINT; }

/* A float that is not near any integer of the new type. */
static void lint_conversion(Ctx *cx, const Eqn *e, double x, Span at) {
    Dtype to = param_dtype(e, K_new_dtype);
    if (!is_integer(to)) return;
    bool is_signed = dtype_info[to].kind == DK_SINT;
    double end = ldexp(1, (int)dtype_info[to].width - is_signed), y = trunc(x);
    if (!(y < end && y >= (is_signed ? -end : 0)))
        diag_warn(cx->diags, W_suspicious_literal, at, "%.*s does not fit %s", SF(text_at(cx, at)),
                  dtype_info[to].name);
}

void lint_literals(Ctx *cx, const Eqn *e) {
    for (unsigned i = 0; i < e->in.n && e->in_at; i++) {
        const Lit *l = val_info(cx, e->in.at[i])->lit;
        if (!l || l->kind > LIT_COMPLEX || l->kind == LIT_BOOL) continue;
        Dtype d = val_array(cx, e->in.at[i])->dtype;
        Span at = e->in_at[i];
        if (is_integer(d)) {
            bool divides = i == 1 && (e->prim == P_div || e->prim == P_rem);
            if (divides && l->kind == LIT_INT && l->i == 0)
                diag_warn(cx->diags, W_suspicious_literal, at, "%s by 0", prim_name[e->prim]);
            continue;
        }
        lint_rounding(cx, d, number(l), at);
        if (l->kind == LIT_COMPLEX) lint_rounding(cx, d, l->im, at);
        if (e->prim == P_convert_element_type) lint_conversion(cx, e, number(l), at);
    }
}
