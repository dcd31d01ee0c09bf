/* Types and dimensions: f32[8,2*b + 1], key<fry>[2], Ref{f32[3]}, f32[8@x]{V:x}. The grammar takes a type as one
   terminal. */
#include "parser.h"

static bool expected(Parser *p, uint32_t i, const char *what) {
    const Tok *t = tok(p, i);
    Span span = toks_span(p, i, i + 1);
    if (t->kind == T_END) return unexpected_end(p, str_format(p->arena, " in a type, which needs %s", what).at);
    return diag(p->cx->diags, span, "unexpected '%.*s' in a type: expected %s", SF(tok_text(p, i)), what);
}

static bool is_char(const Parser *p, uint32_t i, char c) {
    const Tok *t = tok(p, i);
    return t->kind == (unsigned char)c || (t->kind == T_OTHER && t->n == 1 && p->text.at[t->at] == c);
}

static bool read_int(Parser *p, uint32_t i, int64_t *n) {
    Str s = tok_text(p, i);
    *n = 0;
    for (uint32_t k = 0; k < s.n; k++) {
        if (s.at[k] < '0' || s.at[k] > '9')
            return diag(p->cx->diags, toks_span(p, i, i + 1), "'%.*s' is not a dimension", SF(s));
        if (*n > (INT64_MAX / 4 - 9) / 10)
            return diag(p->cx->diags, toks_span(p, i, i + 1), "dimension %.*s is too large", SF(s));
        *n = 10 * *n + (s.at[k] - '0');
    }
    return true;
}

/* A symbol whose name is close to that of a variable that is a dimension: it may be misspelt. */
static void warn_similar(Parser *p, Str name, Span span) {
    enum { FEW = 100, LETTERS = 3 };
    Similar near = similar_to(name, edits_of(name, LETTERS));
    for (uint32_t i = 0; i < p->extents.n && i < FEW; i++)
        if (name_val(p, p->extents.at[i])) similar_offer(&near, p->names.at[p->extents.at[i]].text);
    if (near.best.n)
        diag_warn(p->cx->diags, W_similar_dimension, span,
                  "dimension '%.*s' is a symbol; did you mean the variable '%.*s'?", SF(name), SF(near.best));
}

/* ---- names that the inputs of the program use. JAX calls variables a, b, … whatever symbols are called: of programs
   hoisted before the main one, an input b may be an integer where the main one has f32[b]. */
/* The opening brace of the main jaxpr, behind those of hoisted ones; 0: there is none before it. */
static uint32_t main_behind_others(const Parser *p) {
    uint32_t depth = 0, first = UINT32_MAX, last = 0;
    for (uint32_t i = 0; i < p->toks.n; i++) {
        uint8_t c = tok(p, i)->kind;
        if (c == '{' && depth == 0) last = i, first = first < i ? first : i;
        depth += c == '{';
        depth -= c == '}' && depth;
    }
    return last > first ? last : 0;
}
typedef struct {
    Intern bound;   /* integers so far */
    bool variables; /* one of them is a dimension of another input */
    STACK(NameId) symbols;
} Inputs;
/* The name at i, in the shape of an input. */
static void in_shape(Parser *p, Inputs *in, uint32_t i) {
    Str name = tok_text(p, i);
    uint32_t found;
    if (is_char(p, i + 1, '(') || is_char(p, i + 1, '=')) return;
    if (intern_find(&in->bound, name.at, name.n, &found))
        in->variables = true;
    else
        push(p->arena, &in->symbols, name_id(p, name));
}
/* Is the name at i that of an integer? */
static bool is_integer(const Parser *p, uint32_t i) {
    if (!is_char(p, i + 1, ':') || !is_char(p, i + 3, '[') || !is_char(p, i + 4, ']')) return false;
    DtypeKind kind = dtype_info[dtype_named(tok_text(p, i + 2))].kind;
    return kind == DK_SINT || kind == DK_UINT;
}
/* The token after the axes of the mesh at i, @x or @(x,y). */
static uint32_t mesh_skip(const Parser *p, uint32_t i) {
    uint32_t end = tok_match(p, i + 1);
    return end > i + 1 ? end : i + 2;
}
void symbols_of_inputs(Parser *p) {
    Inputs in = {.bound.arena = p->arena};
    uint32_t depth = 0, from = main_behind_others(p);
    for (uint32_t i = from + 1; from && tok(p, i)->kind != T_END && !tok_is(p, i, "let"); i++) {
        if (is_char(p, i, '@')) i = mesh_skip(p, i);
        depth += is_char(p, i, '[');
        depth -= is_char(p, i, ']') && depth;
        if (tok(p, i)->kind != T_NAME) continue;
        if (depth)
            in_shape(p, &in, i);
        else if (is_integer(p, i))
            intern(&in.bound, tok_text(p, i).at, tok_text(p, i).n, NULL);
    }
    for (uint32_t i = 0; i < in.symbols.n && !in.variables; i++) p->names.at[in.symbols.at[i]].dim = DIM_FREE;
}

/* A name is a bound dimension if at its first occurrence in any shape an integer scalar of that name is bound in the
   scope; otherwise it is a symbol, everywhere in the text. */
static bool read_name(Parser *p, uint32_t i, Dim *d) {
    Ctx *cx = p->cx;
    Span span = toks_span(p, i, i + 1);
    NameId id = name_id(p, tok_text(p, i));
    Val v = name_val(p, id);
    Str name = p->names.at[id].text;
    const ArrayType *a = v ? val_array(cx, v) : NULL;
    DtypeKind kind = a ? dtype_info[a->dtype].kind : DK_VOID;
    bool whole = kind == DK_SINT || kind == DK_UINT, integer = whole && a->rank == 0;
    bool unseen = p->names.at[id].dim == DIM_UNSEEN;
    if (unseen) p->names.at[id].dim = integer ? DIM_VARIABLE : DIM_FREE;
    if (p->names.at[id].dim == DIM_FREE) {
        if (unseen && a && a->dtype && (a->rank == 0 || whole)) /* an array may have the name of a symbol */
            return diag(cx->diags, span, "dimension '%.*s' is %.*s, not an integer scalar", SF(name),
                        SF(ctx_type_text(cx, val_type(cx, v))));
        if (unseen && p->extents.n) warn_similar(p, name, span);
        *d = dim_symbol(cx->types, name);
        return true;
    }
    if (unseen) push(p->arena, &p->extents, id);
    if (!v) {
        if (scope_now(p)->damaged) return *d = dim_symbol(cx->types, name), true;
        return diag(cx->diags, span, "dimension variable '%.*s' is not defined in this jaxpr", SF(name));
    }
    if (!integer)
        return diag(cx->diags, span, "dimension '%.*s' is %.*s, not an integer scalar", SF(name),
                    SF(ctx_type_text(cx, val_type(cx, v))));
    *d = dim_bound(cx->types, v);
    return true;
}

static bool read_sum(Parser *p, uint32_t *i, unsigned depth, Dim *d);

/* floordiv(a, b) and the like; DBIdx(val=0) and the like. */
static bool read_call(Parser *p, uint32_t *i, unsigned depth, Dim *d) {
    static const struct {
        const char *name;
        Dim (*make)(Types *, Dim, Dim);
        DimKind kind;
    } calls[] = {{"floordiv", dim_floordiv, 0},
                 {"mod", dim_mod, 0},
                 {"max", dim_max, 0},
                 {"min", dim_min, 0},
                 {"DBIdx", NULL, DIM_DBIDX},
                 {"InDBIdx", NULL, DIM_INDBIDX},
                 {"OutDBIdx", NULL, DIM_OUTDBIDX}};
    Types *ts = p->cx->types;
    for (unsigned k = 0; k < sizeof calls / sizeof *calls; k++) {
        if (!tok_is(p, *i, calls[k].name)) continue;
        Dim a, b;
        *i += 2;
        if (!calls[k].make) {
            if (tok_is(p, *i, "val") && is_char(p, *i + 1, '=')) *i += 2;
            if (tok(p, *i)->kind != T_NUMBER) return expected(p, *i, "a position");
            if (!read_int(p, (*i)++, &a)) return false;
            *d = dim_special(ts, calls[k].kind, a);
        } else {
            if (!read_sum(p, i, depth + 1, &a)) return false;
            if (!is_char(p, *i, ',')) return expected(p, *i, "','");
            ++*i;
            if (!read_sum(p, i, depth + 1, &b)) return false;
            if (calls[k].make == dim_floordiv || calls[k].make == dim_mod)
                if (b == 0) return diag(p->cx->diags, toks_span(p, *i - 1, *i), "division by 0 in a dimension");
            *d = calls[k].make(ts, a, b);
        }
        return is_char(p, *i, ')') ? ++*i, true : expected(p, *i, "')'");
    }
    return expected(p, *i, "a dimension");
}

/* "Traced<ShapedArray(int32[])>with<…>": JAX 0.4 prints a dimension that is an expression like this; taken as a
   symbol. */
static Dim read_traced(Parser *p, uint32_t *i) {
    uint32_t from = *i;
    while (!is_char(p, *i, ',') && !is_char(p, *i, ']') && tok(p, *i)->kind != T_END &&
           (*i == from || tok_sticks(p, *i))) {
        uint32_t end = is_char(p, *i, '(') || is_char(p, *i, '[') ? tok_match(p, *i) : *i;
        *i = end > *i ? end : *i + 1;
    }
    Span s = toks_span(p, from, *i);
    return dim_symbol(p->cx->types, (Str){p->text.at + s.at, s.n});
}

static bool read_factor(Parser *p, uint32_t *i, unsigned depth, Dim *d) {
    const Tok *t = tok(p, *i);
    if (depth > 100) return diag(p->cx->diags, toks_span(p, *i, *i + 1), "a dimension nests too deep");
    if (t->kind == T_NAME && is_char(p, *i + 1, '(')) return read_call(p, i, depth, d);
    if (tok_is(p, *i, "Traced") && is_char(p, *i + 1, '<')) return *d = read_traced(p, i), true;
    if (t->kind == T_NAME) return read_name(p, (*i)++, d);
    if (t->kind == T_NUMBER) return read_int(p, (*i)++, d);
    if (is_char(p, *i, '-')) {
        ++*i;
        if (!read_factor(p, i, depth + 1, d)) return false;
        *d = dim_sub(p->cx->types, 0, *d);
        return true;
    }
    if (!is_char(p, *i, '(')) return expected(p, *i, "a dimension");
    ++*i;
    if (!read_sum(p, i, depth + 1, d)) return false;
    return is_char(p, *i, ')') ? ++*i, true : expected(p, *i, "')'");
}

enum { FAR = 4096 }; /* tokens: no dimension has so many */

/* b^2*c */
static bool read_product(Parser *p, uint32_t *i, unsigned depth, Dim *d) {
    uint32_t from = *i;
    *d = 1;
    for (;; ++*i) {
        Dim x;
        int64_t power = 1;
        if (*i - from > FAR) return diag(p->cx->diags, toks_span(p, *i, *i + 1), "a dimension is too long");
        if (!read_factor(p, i, depth, &x)) return false;
        if (is_char(p, *i, '^')) {
            ++*i;
            if (tok(p, *i)->kind != T_NUMBER || !read_int(p, *i, &power) || power < 1 || power > 64)
                return expected(p, *i, "a small power");
            ++*i;
        }
        while (power--) *d = dim_mul(p->cx->types, *d, x);
        if (!is_char(p, *i, '*')) return true;
    }
}

static bool read_sum(Parser *p, uint32_t *i, unsigned depth, Dim *d) {
    uint32_t from = *i;
    if (!read_product(p, i, depth, d)) return false;
    while (is_char(p, *i, '+') || is_char(p, *i, '-')) {
        bool minus = is_char(p, (*i)++, '-');
        if (*i - from > FAR) return diag(p->cx->diags, toks_span(p, *i, *i + 1), "a dimension is too long");
        Dim x;
        if (!read_product(p, i, depth, &x)) return false;
        *d = minus ? dim_sub(p->cx->types, *d, x) : dim_add(p->cx->types, *d, x);
    }
    return true;
}

bool dim_read(Parser *p, uint32_t *i, Dim *d) { return read_sum(p, i, 0, d); }

/* The token after the `>` for the `<` at i; i if there is none nearby. */
static uint32_t angle_end(const Parser *p, uint32_t i) {
    enum { NEAR = 16 };
    for (uint32_t k = i; k < i + NEAR; k++)
        if (tok(p, k)->kind == '>') return k + 1;
    return i;
}

uint32_t type_skip(const Parser *p, uint32_t i) {
    if (tok(p, i)->kind == '*') return i + 1;
    if (tok(p, i)->kind != T_NAME) return i;
    i++;
    if (tok(p, i)->kind == '<' && tok_sticks(p, i)) i = angle_end(p, i);
    for (;;) {
        uint8_t c = tok(p, i)->kind;
        if ((c != '[' && c != '{') || !tok_sticks(p, i)) return i;
        uint32_t end = tok_match(p, i);
        if (end == i) return i;
        i = end;
    }
}

/* The text of a bracket with its content; empty if none follows directly. */
static Str read_text(Parser *p, uint32_t *i, char open) {
    uint32_t from = *i;
    if (!is_char(p, from, open) || !tok_sticks(p, from)) return S("");
    *i = open == '<' ? angle_end(p, from) : tok_match(p, from);
    if (*i == from) return S("");
    Span s = toks_span(p, from, *i);
    return (Str){p->text.at + s.at, s.n};
}

typedef struct {
    uint32_t rank;
    Str *shards; /* NULL while there are none */
    TypeExtra extra;
    Dim dims[MOST_RANK];
} Reading;

/* dims = [ dim { "," dim } [ ";" name ":" int … ] ] "]", behind the bracket */
static bool read_dims(Parser *p, uint32_t *i, Reading *r) {
    if (is_char(p, *i, ']')) return ++*i, true;
    while (!is_char(p, *i, ';')) {
        Dim d;
        uint32_t at = *i;
        if (r->rank == MOST_RANK)
            return diag(p->cx->diags, toks_span(p, *i, *i + 1), "a type has more than %d dimensions", MOST_RANK);
        if (tok_is(p, *i, "None"))
            d = dim_special(p->cx->types, DIM_HOLE, r->rank), ++*i;
        else if (!read_sum(p, i, 0, &d))
            return false;
        else if (dim_is_const(d) && d < 0)
            return diag(p->cx->diags, toks_span(p, at, *i), "a dimension is negative");
        if (is_char(p, *i, '@')) {
            uint32_t from = ++*i;
            *i = is_char(p, from, '(') ? tok_match(p, from) : from + 1;
            Span s = toks_span(p, from, *i);
            if (!r->shards) r->shards = arena_new(p->arena, Str, MOST_RANK);
            r->shards[r->rank] = (Str){p->text.at + s.at, s.n};
        }
        r->dims[r->rank++] = d;
        if (is_char(p, *i, ']')) return ++*i, true;
        if (is_char(p, *i, ';')) break;
        if (!is_char(p, *i, ',')) return expected(p, *i, "',' or ']'");
        ++*i;
    }
    uint32_t from = *i;
    while (tok(p, *i)->kind != T_END && !is_char(p, *i, ']')) ++*i;
    Span s = toks_span(p, from, *i);
    r->extra.named = (Str){p->text.at + s.at, s.n};
    return is_char(p, *i, ']') ? ++*i, true : expected(p, *i, "']'");
}

/* An unknown type is printed unchanged. */
static Type read_opaque(Parser *p, uint32_t from, uint32_t *i) {
    *i = type_skip(p, from);
    Span s = toks_span(p, from, *i);
    TypeExtra extra = {.opaque = {p->text.at + s.at, s.n}};
    return type_with_extra(p->cx->types, type_of(p->cx->types, DT_opaque, 0, NULL), &extra);
}

/* "Ref<smem>{f32[8]}": the type inside, marked; of a type that cannot be marked, text. */
static bool read_reference(Parser *p, uint32_t *i, uint32_t from, Type *t) {
    Types *ts = p->cx->types;
    Span s = toks_span(p, from, *i);
    ++*i;
    if (!type_read(p, i, t)) return false;
    if (!is_char(p, *i, '}')) return expected(p, *i, "'}'");
    ++*i;
    TypeExtra extra = *type_extra(ts, *t);
    if (extra.ref.n || extra.opaque.n) return *t = read_opaque(p, from, i), true;
    extra.ref = (Str){p->text.at + s.at, s.n};
    *t = type_with_extra(ts, type_plain(ts, *t), &extra);
    return true;
}

static Dtype read_dtype(Parser *p, uint32_t *i, TypeExtra *extra) {
    Str name = tok_text(p, *i);
    if (str_is(name, "key") && is_char(p, *i + 1, '<')) {
        ++*i;
        Str impl = read_text(p, i, '<');
        return dtype_named(str_format(p->arena, "key%.*s", SF(impl)));
    }
    ++*i;
    if (str_is(name, "bint")) return extra->bound = read_text(p, i, '{'), DT_i32;
    Dtype d = dtype_named(name);
    if (d) extra->space = read_text(p, i, '<');
    return d;
}

static bool unknown_type(Parser *p, uint32_t i) {
    uint32_t behind = i + 1;
    if (tok_is(p, i, "key") && (read_text(p, &behind, '<').n || is_char(p, behind, '['))) {
        Span key = toks_span(p, i, behind);
        return diag(
            p->cx->diags, key,
            "unknown type '%.*s' of random keys: there are key<fry> (threefry), key<rbg>, key<urbg> (unsafe_rbg)",
            (int)key.n, p->text.at + key.at);
    }
    if (tok(p, i + 1)->kind == T_END) return expected(p, i + 1, "'[' and a shape");
    Dtype near = dtype_similar(tok_text(p, i));
    return diag(p->cx->diags, toks_span(p, i, i + 1), "unknown type '%.*s'%s%s%s", SF(tok_text(p, i)),
                near ? "; did you mean '" : "", near ? dtype_info[near].name : "", near ? "'?" : "");
}

bool type_read(Parser *p, uint32_t *i, Type *t) {
    Types *ts = p->cx->types;
    uint32_t from = *i;
    *t = 0;
    if (is_char(p, from, '*')) return ++*i, *t = type_of(ts, DT_unit, 0, NULL), true;
    if (tok(p, from)->kind != T_NAME) return expected(p, from, "an element type");
    if (tok_is(p, from, "Tok")) return ++*i, *t = type_of(ts, DT_tok, 0, NULL), true;
    Reading r;
    r.rank = 0, r.shards = NULL, r.extra = (TypeExtra){0};
    Dtype dtype = read_dtype(p, i, &r.extra);
    if (!dtype) {
        *i = from + 1;
        read_text(p, i, '<');
        bool ref = is_char(p, *i, '{') && tok_sticks(p, *i) && tok_text(p, from).n >= 3 &&
                   memcmp(tok_text(p, from).at + tok_text(p, from).n - 3, "Ref", 3) == 0;
        if (ref) return read_reference(p, i, from, t);
        bool opaque = is_char(p, *i, '[') || is_char(p, *i, '{');
        if (!opaque || tok_is(p, from, "key") || dtype_similar(tok_text(p, from))) return unknown_type(p, from);
        return *t = read_opaque(p, from, i), true;
    }
    if (!is_char(p, *i, '[') || !tok_sticks(p, *i)) return expected(p, *i, "'[' and a shape");
    ++*i;
    if (!read_dims(p, i, &r)) return false;
    r.extra.varying = read_text(p, i, '{');
    *t = type_of(ts, dtype, r.rank, r.dims);
    if (r.shards) r.extra.shards = r.shards, r.extra.nshards = r.rank;
    const TypeExtra *x = &r.extra;
    if (r.shards || x->space.n || x->varying.n || x->named.n || x->bound.n) *t = type_with_extra(ts, *t, x);
    return true;
}
