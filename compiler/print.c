/* Programs as text, in today's spelling. Jaxprs that were hoisted or occur more than once come before the program as
   `let NAME = … in`. Values keep their names from the text where these are unambiguous. */
#include "print.h"
#include <math.h>
#include <stdlib.h>

typedef struct {
    const Jaxpr *jaxpr;
    uint32_t uses;
    Str name; /* under which it is hoisted; empty if printed in place */
    bool in_record;
} Shared;

typedef struct {       /* one spelling of a variable or symbolic dimension */
    uint32_t taken;    /* the last jaxpr with a variable of this name, from 1 */
    bool symbol, seen; /* a symbolic dimension has this name; and it has been printed */
} Spelling;

#define STACK(T)                                                                                                       \
    struct {                                                                                                           \
        T *at;                                                                                                         \
        uint32_t n, cap;                                                                                               \
    }

typedef struct {
    const Ctx *cx;
    Arena *arena;
    Text *out;
    Intern ids; /* of Jaxpr pointers: index into all */
    STACK(Shared) all;
    STACK(uint32_t) order; /* of `all`: the jaxprs that a jaxpr uses come before it */
    Intern let_ids;        /* names of hoisted jaxprs, and the next number to append to each: */
    STACK(uint32_t) let_next;
    Str *names; /* by Val */
    Intern spelling_ids;
    STACK(Spelling) spellings;
    uint32_t fresh, scopes;
} Printer;

/* ---- floating point as Python's repr: the fewest digits that read back as the same number */

static void put_real(Text *out, double x, bool point) {
    if (isnan(x) || isinf(x)) {
        text_put(out, isnan(x) ? S("nan") : x < 0 ? S("-inf") : S("inf"));
        return;
    }
    enum { PRECISE = 17, ROOM = PRECISE + sizeof "-.e-308" };
    char digits[ROOM];
    int precision = fabs(x) < 0x1p-1022 ? 0 : 14; /* if fewer digits suffice, so do 15, except for subnormals */
    do snprintf(digits, sizeof digits, "%.*e", precision, x);
    while (strtod(digits, NULL) != x && ++precision < PRECISE);
    char *e = strchr(digits, 'e'), *d = digits;
    int exponent = atoi(e + 1), n = 0;
    if (*d == '-') text_put(out, S("-")), d++;
    char mantissa[ROOM];
    for (; d < e; d++)
        if (*d != '.') mantissa[n++] = *d;
    assert(n > 0); /* digits stand before the e */
    while (n > 1 && mantissa[n - 1] == '0') n--;
    if (exponent < -4 || exponent >= 16) {
        text_add(out, "%c", mantissa[0]);
        if (n > 1) text_add(out, ".%.*s", n - 1, mantissa + 1);
        text_add(out, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
    } else if (exponent < 0) {
        text_add(out, "0.%.*s%.*s", -exponent - 1, "0000", n, mantissa);
    } else {
        for (int i = 0; i <= exponent || i < n; i++)
            text_add(out, "%s%c", i == exponent + 1 ? "." : "", i < n ? mantissa[i] : '0');
        if (n <= exponent + 1 && point) text_put(out, S(".0"));
    }
}

static void put_complex(Text *out, const Lit *l) {
    bool imaginary_only = l->re == 0 && !signbit(l->re);
    if (!imaginary_only) {
        text_put(out, S("("));
        put_real(out, l->re, false);
        if (!signbit(l->im) || isnan(l->im)) text_put(out, S("+"));
    }
    put_real(out, l->im, false);
    text_put(out, imaginary_only ? S("j") : S("j)"));
}

static void put_literal(Printer *p, Val v) {
    const ValInfo *info = val_info(p->cx, v);
    const Lit *l = info->lit;
    switch (l->kind) {
    case LIT_INT:
        if (info->type && dtype_info[val_array(p->cx, v)->dtype].kind == DK_FLOAT)
            put_real(p->out, l->negative ? -(double)l->i : (double)l->i, true); /* in untyped text */
        else
            text_add(p->out, "%s%llu", l->negative ? "-" : "", (unsigned long long)l->i);
        break;
    case LIT_BOOL: text_put(p->out, l->i ? S("True") : S("False")); break;
    case LIT_FLOAT: put_real(p->out, l->re, true); break;
    case LIT_COMPLEX: put_complex(p->out, l); break;
    case LIT_ARRAY: text_put(p->out, info->name.n ? info->name : S("[...]")); break;
    case LIT_FLOAT0: text_put(p->out, S("(b'',)")); break;
    case LIT_UNIT: text_put(p->out, S("*")); return;
    }
}

/* ---- names */

static Str name_of(const void *printer, uint32_t val) {
    const Printer *p = printer;
    return p->names[val].n ? p->names[val] : val_name(p->cx, val);
}

static Spelling *spell(Printer *p, Str s) {
    _Bool fresh;
    uint32_t id = intern(&p->spelling_ids, s.at, s.n, &fresh);
    if (fresh) push(p->arena, &p->spellings, (Spelling){0});
    return &p->spellings.at[id];
}

static void mark_symbols(Printer *p, Dim d, bool seen) {
    if (dim_is_const(d)) return;
    const DimExpr *e = dim_at(p->cx->types, d);
    switch (e->kind) {
    case DIM_SYMBOL: {
        Spelling *s = spell(p, e->name);
        s->symbol = true;
        s->seen |= seen;
        return;
    }
    case DIM_SUM:
        for (uint32_t i = 0; i < e->nterms; i++)
            for (uint32_t k = 0; k < e->terms[i].natoms; k++) mark_symbols(p, e->terms[i].atoms[k], seen);
        return;
    case DIM_FLOORDIV:
    case DIM_MOD:
    case DIM_MAX:
    case DIM_MIN:
        mark_symbols(p, e->a, seen);
        mark_symbols(p, e->b, seen);
        return;
    default: return;
    }
}

static void mark_type(Printer *p, Val v, bool seen) {
    Type t = val_type(p->cx, v);
    if (!t) return;
    const ArrayType *a = type_at(p->cx->types, t);
    for (uint32_t i = 0; i < a->rank; i++) mark_symbols(p, a->dims[i], seen);
}

/* Words that the reader would treat specially. */
static bool is_reserved(Str s) {
    static const char *const words[] = {"in",   "let",   "lambda", "inf",     "nan", "infj", "nanj",
                                        "True", "False", "None",   "Literal", "_",   "*"};
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
        if (str_is(s, words[i])) return true;
    return s.n == 0;
}

/* Number n in base 26 with the digits a … z, as JAX names variables. */
static Str fresh_name(Printer *p, uint32_t scope) {
    for (;;) {
        char digits[8], *d = digits + sizeof digits;
        uint32_t n = p->fresh++;
        do *--d = (char)('a' + n % 26);
        while (n /= 26);
        Str s = {d, (uint32_t)(digits + sizeof digits - d)};
        Spelling *spelling = spell(p, s);
        if (spelling->symbol || spelling->taken == scope || is_reserved(s)) continue;
        spelling->taken = scope;
        return (Str){str_c(p->arena, s), s.n};
    }
}

/* Keeps the name from the text, unless another value of the scope has it, or a symbolic dimension that is printed
   later. */
static void keep_name(Printer *p, uint32_t scope, Val v) {
    Str name = val_info(p->cx, v)->name;
    mark_type(p, v, true);
    if (p->names[v].n || is_reserved(name)) return;
    Spelling *s = spell(p, name);
    if (s->taken == scope || (s->symbol && !s->seen)) return;
    s->taken = scope;
    p->names[v] = name;
}

/* `_` names unused values; if a value with that name is used it gets another name, since `_` would be ambiguous. */
static void name_unders(Printer *p, const Jaxpr *j) {
    for (uint32_t i = 0; i < j->in.n; i++)
        if (str_is(val_info(p->cx, j->in.at[i])->name, "_")) p->names[j->in.at[i]] = S("_");
    each(const Eqn, e, j->eqns)
        for (uint32_t i = 0; i < e->out.n; i++)
            if (str_is(val_info(p->cx, e->out.at[i])->name, "_")) p->names[e->out.at[i]] = S("_");
    each(const Eqn, e, j->eqns)
        for (uint32_t i = 0; i < e->in.n; i++)
            if (str_is(p->names[e->in.at[i]], "_")) p->names[e->in.at[i]] = S("");
    for (uint32_t i = 0; i < j->out.n; i++)
        if (str_is(p->names[j->out.at[i]], "_")) p->names[j->out.at[i]] = S("");
}

static void name_vals(Printer *p, uint32_t scope, const Vals *vals, bool keep) {
    for (uint32_t i = 0; i < vals->n; i++) {
        Val v = vals->at[i];
        if (keep)
            keep_name(p, scope, v);
        else if (!p->names[v].n)
            p->names[v] = fresh_name(p, scope);
    }
}

static void name_all(Printer *p, const Jaxpr *j) {
    uint32_t scope = ++p->scopes;
    name_unders(p, j);
    for (int keep = 1; keep >= 0; keep--) {
        name_vals(p, scope, &j->consts, keep);
        name_vals(p, scope, &j->in, keep);
        each(const Eqn, e, j->eqns) name_vals(p, scope, &e->out, keep);
    }
}

/* ---- the parameters that are printed: those that carry information */

static bool all_of(const Value *v, const char *word) {
    if (v->kind == V_NONE) return true;
    if (v->kind != V_LIST) return false;
    for (uint32_t i = 0; i < v->list.n; i++) {
        const Value *x = &v->list.at[i];
        if (x->kind != V_NONE && !(x->kind == V_WORD && str_is(x->s, word))) return false;
    }
    return true;
}

static bool no_bits(const Value *v) {
    if (v->kind != V_INTS) return false;
    for (uint32_t i = 0; i < v->ints.n; i++)
        if (v->ints.at[i]) return false;
    return true;
}

static bool is_default_of_jit(const Param *q) {
    const Value *v = &q->value;
    switch (q->key) {
    case K_inline:
    case K_keep_unused: return v->kind == V_BOOL && !v->i;
    case K_donated_invars: return no_bits(v);
    case K_in_shardings:
    case K_out_shardings:
    case K_in_layouts:
    case K_out_layouts: return all_of(v, "UnspecifiedValue");
    case K_ctx_mesh: return v->kind == V_NONE || (v->kind == V_LIST && v->list.n == 0 && str_is(v->s, "Mesh"));
    case K_compiler_options_kvs: return v->kind == V_NONE || (v->kind == V_LIST && v->list.n == 0);
    default: return false;
    }
}

/* Parameters that are omitted if they are None. */
static const struct {
    Prim prim;
    ParamKey key;
} silent[] = {
    {P_mul, K_out_dtype},         {P_convert_element_type, K_sharding}, {P_broadcast_in_dim, K_sharding},
    {P_dot_general, K_precision}, {P_dot_general, K_out_sharding},      {P_dot_general, K_preferred_element_type},
};

static bool is_dot(Prim p) { return p == P_dot_general || p == P_dot_words || p == P_dot_halves; }
/* A shape without axes is given by the type, unless operands are extents of it. */
static bool broadcast_prints(const Ctx *cx, const Eqn *e, const Param *q) {
    const Value *v = &q->value;
    if (q->key == K_broadcast_dimensions && v->kind == V_INTS) return v->ints.n > 0;
    if (q->key != K_shape || v->kind != V_DIMS || e->out.n != 1 || !val_type(cx, e->out.at[0])) return true;
    return e->in.n > 1 || val_array(cx, e->out.at[0])->rank != v->dims.n;
}

bool param_prints(const Ctx *cx, const Eqn *e, const Param *q) {
    bool none = q->value.kind == V_NONE;
    if (q->key == K_accuracy) return !none;
    for (unsigned i = 0; i < sizeof silent / sizeof *silent && none; i++)
        if (silent[i].prim == e->prim && silent[i].key == q->key) return false;
    if (e->prim == P_jit) return !is_default_of_jit(q);
    return e->prim != P_broadcast_in_dim || broadcast_prints(cx, e, q);
}

/* The text of fmt comes first, and ends where has_placeholders follows. */
static Str sorted_as(const Param *q) {
    Str s = param_text(q);
    return q->key == K_fmt ? S("") : str_is(s, "has_placeholders") ? S(" ") : s;
}

static int by_name(const void *a, const void *b) {
    const Param *x = *(const Param *const *)a, *y = *(const Param *const *)b;
    Str s = sorted_as(x), t = sorted_as(y);
    uint32_t n = s.n < t.n ? s.n : t.n;
    int order = memcmp(s.at, t.at, n);
    return order ? order : (s.n > t.n) - (s.n < t.n);
}

Str param_text(const Param *q) { return q->key == K_other ? q->name : str(param_name[q->key]); }

/* Alphabetical, but `name` comes first in equations that are known by a name. */
const Param **params_in_order(Arena *arena, const Ctx *cx, const Eqn *e, uint32_t *n) {
    const Param **list = arena_new(arena, const Param *, e->params.n);
    *n = 0;
    each(const Param, q, e->params)
        if (param_prints(cx, e, q)) list[(*n)++] = q;
    qsort(list, *n, sizeof *list, by_name);
    if (e->prim != P_jit && e->prim != P_custom_jvp_call && e->prim != P_custom_vjp_call) return list;
    for (uint32_t i = 1; i < *n; i++) {
        if (list[i]->key != K_name) continue;
        const Param *name = list[i];
        memmove(list + 1, list, i * sizeof *list);
        list[0] = name;
    }
    return list;
}

/* ---- values of parameters */

static void put_jaxpr(Printer *p, const Jaxpr *j, uint32_t indent);

static void put_shared(Printer *p, const Jaxpr *j, uint32_t indent) {
    const Shared *s = &p->all.at[intern(&p->ids, &j, sizeof j, NULL)];
    if (s->name.n)
        text_put(p->out, s->name);
    else
        put_jaxpr(p, j, indent);
}

static void put_break(Printer *p, uint32_t indent) { text_add(p->out, "\n%*s", (int)indent, ""); }

static void put_dim(Printer *p, Dim d) {
    if (!dim_is_const(d) && dim_at(p->cx->types, d)->kind == DIM_HOLE)
        text_put(p->out, S("None"));
    else
        text_put(p->out, dim_text(p->arena, p->cx->types, d, name_of, p));
}

static void put_dims(Printer *p, const Dim *at, uint32_t n) {
    text_put(p->out, S("("));
    for (uint32_t i = 0; i < n; i++) {
        if (i) text_put(p->out, S(", "));
        put_dim(p, at[i]);
    }
    text_put(p->out, n == 1 ? S(",)") : S(")"));
}

static void put_padding(Printer *p, Dims dims, uint32_t width) {
    text_put(p->out, S("("));
    for (uint32_t i = 0; i < dims.n; i += width) {
        if (i) text_put(p->out, S(", "));
        put_dims(p, dims.at + i, width);
    }
    text_put(p->out, dims.n == width ? S(",)") : S(")"));
}

static void put_ints(Printer *p, Ints ints, bool bits, char open) {
    text_put(p->out, open == '[' ? S("[") : S("("));
    for (uint32_t i = 0; i < ints.n; i++) {
        if (i) text_put(p->out, S(", "));
        if (bits)
            text_put(p->out, ints.at[i] ? S("True") : S("False"));
        else
            text_add(p->out, "%lld", (long long)ints.at[i]);
    }
    text_put(p->out, open == '[' ? S("]") : ints.n == 1 ? S(",)") : S(")"));
}

static void put_value(Printer *p, const Value *v, uint32_t indent);

/* ( … ) [ … ] { … } Name( … ), or just items */
static void put_list(Printer *p, const Value *v, uint32_t indent) {
    char open = v->s.n && !v->open ? '(' : v->open;
    text_put(p->out, v->s);
    if (open) text_add(p->out, "%c", open);
    for (uint32_t i = 0; i < v->list.n; i++) {
        if (i) text_put(p->out, open ? S(", ") : S(" "));
        put_value(p, &v->list.at[i], indent + 2);
    }
    bool one = open == '(' && !v->s.n && v->list.n == 1;
    if (open) text_add(p->out, "%s%c", one ? "," : "", open == '(' ? ')' : open == '[' ? ']' : '}');
}

static void put_jaxprs(Printer *p, const Value *v, uint32_t indent) {
    text_put(p->out, S("("));
    for (uint32_t i = 0; i < v->jaxprs.n; i++) {
        put_break(p, indent + 2);
        put_shared(p, v->jaxprs.at[i], indent + 2);
    }
    if (v->jaxprs.n) put_break(p, indent);
    text_put(p->out, S(")"));
}

static void put_value(Printer *p, const Value *v, uint32_t indent) {
    switch (v->kind) {
    case V_NONE: text_put(p->out, S("None")); break;
    case V_BOOL: text_put(p->out, v->i ? S("True") : S("False")); break;
    case V_INT: text_add(p->out, "%lld", (long long)v->i); break;
    case V_FLOAT: text_put(p->out, v->s); break;
    case V_DIM: put_dim(p, v->dim); break;
    case V_INTS: put_ints(p, v->ints, false, v->open); break;
    case V_DIMS: put_dims(p, v->dims.at, v->dims.n); break;
    case V_DTYPE: text_put(p->out, str(dtype_info[v->i].long_name)); break;
    case V_WORD:
    case V_STR:
    case V_TEXT: text_put(p->out, v->s); break;
    case V_LIST: put_list(p, v, indent); break;
    case V_PAIR:
        if (str_is(v->s, ":"))
            put_value(p, &v->list.at[0], indent), text_put(p->out, S(": ")), put_value(p, &v->list.at[1], indent);
        else
            text_add(p->out, "%.*s=", SF(v->s)), put_value(p, &v->list.at[0], indent);
        break;
    case V_JAXPR: put_shared(p, v->jaxpr, indent); break;
    case V_JAXPRS: put_jaxprs(p, v, indent); break;
    }
}

static void put_param(Printer *p, const Eqn *e, const Param *q, uint32_t indent) {
    const Value *v = &q->value;
    text_add(p->out, "%.*s=", SF(param_text(q)));
    if (v->kind == V_INTS && param_kind[q->key] == PK_BOOLS) {
        put_ints(p, v->ints, true, '(');
    } else if (v->kind == V_DIMS && param_kind[q->key] == PK_PADDING) {
        put_padding(p, v->dims, 3);
    } else if (v->kind == V_DIMS && param_kind[q->key] == PK_PAIRS) {
        put_padding(p, v->dims, 2);
    } else if (is_dot(e->prim) && q->key == K_dimension_numbers && v->kind == V_LIST && v->list.n == 4) {
        text_put(p->out, S("(("));
        for (uint32_t i = 0; i < 4; i++) {
            put_ints(p, v->list.at[i].ints, false, '[');
            text_put(p->out, i == 1 ? S("), (") : i == 3 ? S("))") : S(", "));
        }
    } else {
        put_value(p, v, indent);
    }
}

static bool holds_jaxprs(const Value *v) {
    if (v->kind == V_JAXPR || v->kind == V_JAXPRS) return true;
    for (uint32_t i = 0; (v->kind == V_LIST || v->kind == V_PAIR) && i < v->list.n; i++)
        if (holds_jaxprs(&v->list.at[i])) return true;
    return false;
}

/* Is a `<` left open in it? The reader takes everything up to its `>`, or the end of the line, as one value. */
static bool leaves_open(const Value *v) {
    uint32_t depth = 0;
    for (uint32_t i = 0; i < v->s.n; i++) {
        depth += v->s.at[i] == '<';
        depth -= v->s.at[i] == '>' && depth;
    }
    return depth;
}

/* Does its text contain line breaks? */
static bool has_lines(const Param *q) {
    return q->key == K_fmt && q->value.s.n && memchr(q->value.s.at, '\n', q->value.s.n);
}

/* On one line if they fit and contain no line breaks, else one per line. */
static void put_params(Printer *p, const Eqn *e, uint32_t indent) {
    enum { WIDTH = 100 };
    uint32_t n;
    const Param **list = params_in_order(p->arena, p->cx, e, &n);
    bool lines = false;
    if (n == 0) return;
    for (uint32_t i = 0; i < n; i++)
        lines |= holds_jaxprs(&list[i]->value) || leaves_open(&list[i]->value) || has_lines(list[i]);
    uint32_t start = p->out->n;
    text_put(p->out, S("["));
    for (uint32_t i = 0; i < n; i++) {
        if (lines)
            put_break(p, indent + 2);
        else if (i)
            text_put(p->out, S(" "));
        put_param(p, e, list[i], indent + 2);
        if (lines || p->out->n - start < WIDTH || n == 1) continue;
        p->out->n = start; /* again, one per line */
        text_put(p->out, S("["));
        lines = true, i = UINT32_MAX;
    }
    if (lines) put_break(p, indent);
    text_put(p->out, S("]"));
}

/* ---- equations */

static void put_type(Printer *p, Val v) {
    Type t = val_type(p->cx, v);
    if (t && type_at(p->cx->types, t)->dtype != DT_unit)
        text_add(p->out, ":%.*s", SF(type_text(p->arena, p->cx->types, t, name_of, p)));
}

static void put_binders(Printer *p, const Vals *vals) {
    for (uint32_t i = 0; i < vals->n; i++) {
        Val v = vals->at[i];
        if (i) text_put(p->out, S(" "));
        text_put(p->out, str_is(val_info(p->cx, v)->name, "*") ? S("*") : name_of(p, v));
        put_type(p, v);
    }
}

static void put_atom(Printer *p, Val v) {
    if (!val_info(p->cx, v)->lit) {
        text_put(p->out, name_of(p, v));
        return;
    }
    put_literal(p, v);
    put_type(p, v);
}

/* An index inside the brackets of a reference: literals are printed without a type, operands taken in order. */
static void put_index(Printer *p, const Eqn *e, const Value *v, uint32_t *next) {
    bool window = v->kind == V_PAIR && str_is(v->s, "+");
    switch (v->kind) {
    case V_WORD:
        if (*next < e->in.n) text_put(p->out, name_of(p, e->in.at[(*next)++]));
        break;
    case V_TEXT: text_put(p->out, v->s); break;
    case V_LIST:
        text_put(p->out, S("["));
        for (uint32_t i = 0; i < v->list.n; i++) {
            if (i) text_put(p->out, S(","));
            put_index(p, e, &v->list.at[i], next);
        }
        text_put(p->out, S("]"));
        break;
    case V_PAIR: {
        uint32_t again = *next;
        put_index(p, e, &v->list.at[0], next);
        text_put(p->out, S(":"));
        if (window) put_index(p, e, &v->list.at[0], &again), text_put(p->out, S("+"));
        put_index(p, e, &v->list.at[1], next);
        break;
    }
    default: break;
    }
}

static const Value *index_of(const Eqn *e) {
    if (e->prim != P_get && e->prim != P_swap && e->prim != P_addupdate) return NULL;
    each(const Param, q, e->params)
        if (q->key == K_other && str_is(q->name, "index") && q->value.kind == V_LIST) return &q->value;
    return NULL;
}

static void put_ref(Printer *p, const Eqn *e, const Value *index) {
    uint32_t next = e->prim == P_get ? 1 : 2;
    text_put(p->out, name_of(p, e->in.at[0]));
    for (uint32_t i = 0; i < index->list.n; i++) put_index(p, e, &index->list.at[i], &next);
}

/* a <- r[i], r[i] <- v, a, r[i] <- r[i], v, r[i] += v */
static void put_state(Printer *p, const Eqn *e, const Value *index) {
    bool store = e->prim == P_swap && str_is(name_of(p, e->out.at[0]), "_");
    if (e->prim != P_addupdate && !store) {
        put_binders(p, &e->out);
        text_put(p->out, e->prim == P_get ? S(" <- ") : S(", "));
    }
    put_ref(p, e, index);
    if (e->prim == P_get) return;
    text_put(p->out, e->prim == P_addupdate ? S(" += ") : S(" <- "));
    if (e->prim == P_swap && !store) put_ref(p, e, index), text_put(p->out, S(", "));
    put_atom(p, e->in.at[1]);
}

static void put_eqn(Printer *p, const Eqn *e, uint32_t indent) {
    const Value *index = index_of(e);
    if (index && e->in.n && (e->prim == P_addupdate || e->out.n == 1)) {
        put_state(p, e, index);
        return;
    }
    put_binders(p, &e->out);
    if (e->out.n) text_put(p->out, S(" = "));
    Str prim = e->prim ? str(prim_name[e->prim]) : e->unknown;
    text_put(p->out, prim);
    uint32_t before = p->out->n;
    put_params(p, e, indent);
    bool bare = e->out.n == 0 && p->out->n == before;
    if (bare && (prim.n < 3 || !memchr(prim.at + 1, '_', prim.n - 2)))
        text_put(p->out, S("[]")); /* shows that it is not an operand (has_inner_under of parse/read.c) */
    for (uint32_t i = 0; i < e->in.n; i++) {
        text_put(p->out, S(" "));
        put_atom(p, e->in.at[i]);
    }
}

/* ---- jaxprs */

/* Does the first result lack a type that another one has? Then its name would look like an operand of the previous
   equation. */
static bool mixed_types(const Printer *p, const Eqn *e) {
    bool typed = false;
    for (uint32_t i = 1; i < e->out.n; i++) typed |= val_type(p->cx, e->out.at[i]) != 0;
    Val first = e->out.n ? e->out.at[0] : 0;
    return typed && (!val_type(p->cx, first) || str_is(val_info(p->cx, first)->name, "*"));
}

static void put_jaxpr(Printer *p, const Jaxpr *j, uint32_t indent) {
    name_all(p, j);
    text_put(p->out, S("{ lambda "));
    put_binders(p, &j->consts);
    text_put(p->out, S("; "));
    put_binders(p, &j->in);
    text_put(p->out, S(". let"));
    each(const Eqn, e, j->eqns) {
        if (e > j->eqns.at && mixed_types(p, e)) text_put(p->out, S(";"));
        put_break(p, indent + 4);
        put_eqn(p, e, indent + 4);
    }
    put_break(p, indent + 2);
    text_put(p->out, S("in ("));
    for (uint32_t i = 0; i < j->out.n; i++) {
        if (i) text_put(p->out, S(", "));
        put_atom(p, j->out.at[i]);
    }
    text_put(p->out, j->out.n == 1 ? S(",)") : S(")"));
    if (j->effects.n) text_add(p->out, " : %.*s", SF(j->effects));
    text_put(p->out, S(" }"));
}

/* ---- hoisted jaxprs */

static void mark_value(Printer *p, const Value *v) {
    if (v->kind == V_DIM) mark_symbols(p, v->dim, false);
    for (uint32_t i = 0; v->kind == V_DIMS && i < v->dims.n; i++) mark_symbols(p, v->dims.at[i], false);
    for (uint32_t i = 0; (v->kind == V_LIST || v->kind == V_PAIR) && i < v->list.n; i++) mark_value(p, &v->list.at[i]);
}

/* Marks the symbolic dimensions of its types and parameters: variables must not have their names. */
static void mark_all(Printer *p, const Jaxpr *j) {
    const Vals *lists[] = {&j->consts, &j->in};
    for (unsigned k = 0; k < 2; k++)
        for (uint32_t i = 0; i < lists[k]->n; i++) mark_type(p, lists[k]->at[i], false);
    each(const Eqn, e, j->eqns) {
        for (uint32_t i = 0; i < e->out.n; i++) mark_type(p, e->out.at[i], false);
        each(const Param, q, e->params) mark_value(p, &q->value);
    }
}

/* Is it in a place where a word is not read as the name of a jaxpr: in a record of another value, in an unknown
   parameter? */
static bool in_record(const Eqn *e, const Jaxpr *j) {
    for (uint32_t i = 0; i < e->params.n; i++) {
        const Value *v = &e->params.at[i].value;
        ParamKind kind = param_kind[e->params.at[i].key];
        if (v->kind == V_JAXPR && v->jaxpr == j && kind == PK_JAXPR) return false;
        for (uint32_t k = 0; v->kind == V_JAXPRS && kind == PK_JAXPRS && k < v->jaxprs.n; k++)
            if (v->jaxprs.at[k] == j) return false;
    }
    return true;
}
static void count_uses(Printer *p, const Jaxpr *j) {
    mark_all(p, j);
    each(const Eqn, e, j->eqns) {
        if (!e->params.n) continue;
        Jaxprs inner = eqn_jaxprs(p->arena, e);
        for (uint32_t i = 0; i < inner.n; i++) {
            _Bool fresh;
            const Jaxpr *k = inner.at[i];
            uint32_t id = intern(&p->ids, &k, sizeof k, &fresh);
            if (fresh) {
                push(p->arena, &p->all, ((Shared){.jaxpr = k}));
                count_uses(p, k);
                push(p->arena, &p->order, id);
            }
            p->all.at[id].uses++;
            p->all.at[id].in_record |= in_record(e, k);
            if (!p->all.at[id].name.n) p->all.at[id].name = k->name.n ? k->name : param_word(e, K_name);
        }
    }
}

/* A name that the reader takes as one word, and that no other jaxpr has. */
static Str let_name(Printer *p, Str wish) {
    Text t = {.arena = p->arena};
    for (uint32_t i = 0; i < wish.n; i++) {
        char c = wish.at[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (t.n && c >= '0' && c <= '9');
        if (letter || t.n) text_add(&t, "%c", letter ? c : '_');
    }
    while (t.n && wish.at[wish.n - 1] == '>' && t.at[t.n - 1] == '_') t.n--;
    Str base = t.n ? (Str){t.at, t.n} : S("jaxpr"), name = base;
    for (;;) {
        _Bool fresh;
        intern(&p->let_ids, name.at, name.n, &fresh);
        if (fresh) push(p->arena, &p->let_next, 1);
        if (fresh) return name;
        uint32_t id = intern(&p->let_ids, base.at, base.n, NULL);
        name = str_format(p->arena, "%.*s%u", SF(base), p->let_next.at[id]++);
    }
}

void jaxpr_print(const Ctx *cx, const Jaxpr *j, Text *out) {
    Arena *arena = arena_open();
    Printer *p = arena_new(arena, Printer, 1);
    *p = (Printer){.cx = cx, .arena = arena, .out = out};
    p->ids.arena = p->let_ids.arena = p->spelling_ids.arena = arena;
    p->names = arena_new(arena, Str, cx->nvals);
    count_uses(p, j);
    for (uint32_t i = 0; i < p->order.n; i++) {
        Shared *s = &p->all.at[p->order.at[i]];
        bool hoisted = (s->uses > 1 || s->jaxpr->name.n) && !s->in_record;
        s->name = hoisted ? let_name(p, s->name) : S("");
    }
    for (uint32_t i = 0; i < p->order.n; i++) {
        const Shared *s = &p->all.at[p->order.at[i]];
        if (!s->name.n) continue;
        text_add(out, "let %.*s = ", SF(s->name));
        put_jaxpr(p, s->jaxpr, 0);
        text_put(out, S(" in\n"));
    }
    put_jaxpr(p, j, 0);
    text_put(out, S("\n"));
    arena_close(arena);
}
