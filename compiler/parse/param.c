/* Values of parameters. They are printed by Python's str() and have no grammar of their own: the grammar groups them by
   brackets; here the items become trees, and the trees get the form that params.def gives the parameter. Anything else
   is kept as text and printed unchanged. */
#include "parser.h"
#include <assert.h>
#include <stdlib.h>

enum { OPERATOR = 'o' }; /* `open` of an item that is punctuation */

static bool is_op(const Value *v, char c) { return v->kind == V_TEXT && v->open == OPERATOR && v->s.at[0] == c; }
static bool touches(const Value *a, const Value *b) { return a->span.at + a->span.n == b->span.at; }

void value_push(Parser *p, Value v) { push(p->arena, &p->values, v); }

static Value text_value(Parser *p, ValueKind kind, Span span) {
    return (Value){.kind = kind, .span = span, .s = {p->text.at + span.at, span.n}};
}

static Value word_value(Parser *p, Span span) {
    Value v = text_value(p, V_WORD, span);
    if (str_is(v.s, "None")) v.kind = V_NONE;
    if (str_is(v.s, "True") || str_is(v.s, "False")) v = (Value){.kind = V_BOOL, .span = span, .i = v.s.n == 4};
    return v;
}

void value_word(Parser *p, Terminal t) { value_push(p, word_value(p, toks_span(p, t.at, t.end))); }

void value_text(Parser *p, ValueKind kind, Terminal t) {
    value_push(p, text_value(p, kind, toks_span(p, t.at, t.end)));
}

void value_operator(Parser *p, Terminal t) {
    Value v = text_value(p, V_TEXT, toks_span(p, t.at, t.end));
    v.open = OPERATOR;
    value_push(p, v);
}

/* An integer of 64 bits, a float that keeps its spelling, or just text. */
static Value number_value(Parser *p, Span span) {
    Value v = text_value(p, V_INT, span);
    int64_t n = 0;
    bool minus = v.s.at[0] == '-', integer = true;
    for (uint32_t k = minus; k < v.s.n; k++) {
        int64_t d = v.s.at[k] - '0';
        if (d < 0 || d > 9 || __builtin_mul_overflow(n, 10, &n) || __builtin_sub_overflow(n, d, &n)) integer = false;
        if (!integer) break;
    }
    if (integer && (minus || n > INT64_MIN)) return (Value){.kind = V_INT, .span = span, .i = minus ? n : -n};
    char *end, *c = str_c(p->arena, v.s);
    v.f = strtod(c, &end);
    bool hex = strpbrk(c, "xX") != NULL;
    v.kind = *end || hex ? V_TEXT : V_FLOAT;
    return v;
}

void value_number(Parser *p, Terminal t) { value_push(p, number_value(p, toks_span(p, t.at, t.end))); }

/* ---- items → one value */

static Span span_of(const Value *from, const Value *to) {
    Span s = from->span;
    if (to > from) s.n = to[-1].span.at + to[-1].span.n - s.at;
    return s;
}

static Value list_of(Parser *p, char open, const Value *from, uint32_t n, Span span) {
    Value v = {.kind = V_LIST, .open = open, .span = span, .list = {arena_new(p->arena, Value, n), n}};
    if (n) memcpy(v.list.at, from, n * sizeof *from);
    return v;
}

/* A slice of the source; a line break and the blanks around it are one blank. */
static Value slice_value(Parser *p, Span span) {
    Value v = text_value(p, V_TEXT, span);
    /* A comment needs the end of its line. */
    if (!memchr(v.s.at, '\n', v.s.n) || memchr(v.s.at, '#', v.s.n)) return v;
    char *to = arena_new(p->arena, char, v.s.n), *start = to;
    for (uint32_t i = 0; i < v.s.n; i++) {
        char c = v.s.at[i];
        if (c == '\n' || c == '\r') {
            while (to > start && to[-1] == ' ') to--;
            while (i + 1 < v.s.n && strchr(" \t\r\n", v.s.at[i + 1])) i++;
            c = ' ';
        }
        *to++ = c;
    }
    v.s = (Str){start, (uint32_t)(to - start)};
    return v;
}

/* np.int64(1) is 1, anywhere in the value. */
static void numpy_ints(Value *v) {
    if (v->kind != V_LIST && v->kind != V_PAIR) return;
    bool numpy = v->kind == V_LIST && v->s.n > 3 && memcmp(v->s.at, "np.", 3) == 0;
    for (uint32_t i = 0; i < v->list.n; i++) numpy_ints(&v->list.at[i]);
    if (!numpy || v->list.n != 1 || v->list.at[0].kind != V_INT) return;
    Value inner = v->list.at[0];
    inner.span = v->span;
    *v = inner;
}

/* GatherScatterMode.CLIP; Name(…): a word, dots and words, and possibly a bracket without a blank before it. */
static bool fold_name(Parser *p, const Value *from, const Value *to, Value *out) {
    const Value *v = from;
    if (v->kind != V_WORD) return false;
    while (v + 2 < to && is_op(v + 1, '.') && v[2].kind == V_WORD && touches(v, v + 1) && touches(v + 1, v + 2)) v += 2;
    Span name = span_of(from, v + 1);
    if (v + 1 == to) return *out = text_value(p, V_WORD, name), true;
    if (v + 2 != to || v[1].kind != V_LIST || v[1].open != '(' || v[1].s.n || !touches(v, v + 1)) return false;
    *out = v[1];
    out->s = (Str){p->text.at + name.at, name.n};
    out->span = span_of(from, to);
    return true;
}

static Value fold(Parser *p, const Value *from, const Value *to, char open);

/* `key=value` in a record, `key: value` in a dict */
static bool fold_pair(Parser *p, const Value *from, const Value *to, char open, Value *out) {
    if (to - from < 3 || !open) return false;
    bool colon = is_op(from + 1, ':'), equals = is_op(from + 1, '=') && from->kind == V_WORD;
    if ((!colon && !equals) || is_op(from, '<')) return false;
    Value parts[2] = {fold(p, equals ? from + 2 : from, equals ? to : from + 1, 0)};
    if (colon) parts[1] = fold(p, from + 2, to, 0);
    *out = list_of(p, 0, parts, colon ? 2 : 1, span_of(from, to));
    out->kind = V_PAIR;
    out->s = equals ? from->s : S(":");
    return true;
}

/* Jaxprs, and names of jaxprs, without commas. */
static Value fold_row(Parser *p, const Value *from, const Value *to, Span span) {
    for (const Value *i = from; i < to; i++)
        if (i->kind != V_JAXPR && i->kind != V_WORD) {
            diag(p->cx->diags, i->span, "unexpected '%.*s' beside a jaxpr", i->span.n < 40 ? (int)i->span.n : 40,
                 p->text.at + i->span.at);
            break;
        }
    return list_of(p, 0, from, (uint32_t)(to - from), span);
}

static Value fold(Parser *p, const Value *from, const Value *to, char open) {
    Value v;
    Span span = span_of(from, to);
    if (to - from == 1) return v = *from, v.open = is_op(from, from->s.n ? from->s.at[0] : 0) ? 0 : v.open, v;
    if (to - from == 2 && is_op(from, '-') && touches(from, from + 1)) {
        if (from[1].kind == V_INT || from[1].kind == V_FLOAT) return number_value(p, span);
        if (from[1].kind == V_WORD && from[1].s.n == 3) return text_value(p, V_WORD, span); /* -inf */
    }
    if (fold_name(p, from, to, &v) || fold_pair(p, from, to, open, &v)) return v;
    for (const Value *i = from; i < to; i++)
        if (value_has_jaxpr(i)) return fold_row(p, from, to, span);
    return slice_value(p, span);
}

/* The items from `mark` on, separated by commas, which may be missing between jaxprs in parentheses. */
static Value fold_bracket(Parser *p, uint32_t mark, char open, Span span, bool *trailing, uint32_t *commas) {
    const Value *items = p->values.at + mark, *end = p->values.at + p->values.n, *from = items;
    STACK(Value) parts = {0};
    bool all_jaxprs = items < end;
    *commas = 0;
    for (const Value *i = items; i < end; i++) all_jaxprs &= i->kind == V_JAXPR;
    for (const Value *i = items; items < end && i <= end; i++) {
        bool comma = i < end && is_op(i, ',');
        *commas += comma;
        if (i < end && !comma && !(all_jaxprs && i > from)) continue;
        if (i > from)
            push(p->arena, &parts, fold(p, from, i, open));
        else if (comma)
            diag(p->cx->diags, i->span, "unexpected ','");
        from = comma ? i + 1 : i;
    }
    *trailing = end > items && is_op(end - 1, ',');
    return (Value){.kind = V_LIST, .open = open, .span = span, .list = {parts.at, parts.n}};
}

void value_group(Parser *p, uint32_t mark, uint32_t open, uint32_t close) {
    char c = p->text.at[tok(p, open)->at];
    Span span = toks_span(p, open, close + 1);
    bool trailing;
    uint32_t commas;
    Value v = fold_bracket(p, mark, c, span, &trailing, &commas);
    const Value *one = v.list.n == 1 ? v.list.at : NULL;
    bool tuple = c != '(' || commas || !one || one->kind == V_PAIR || one->kind == V_JAXPR;
    bool record = p->values.n && mark && p->values.at[mark - 1].kind == V_WORD &&
                  p->values.at[mark - 1].span.at + p->values.at[mark - 1].span.n == span.at;
    if (!tuple && !record && !value_has_jaxpr(&v)) v = slice_value(p, span); /* (1+2j) is no tuple */
    for (uint32_t i = 0; v.kind == V_LIST && i < v.list.n; i++)
        if (v.list.at[i].kind == V_TEXT && memchr(v.list.at[i].s.at, ' ', v.list.at[i].s.n) && c == '[' && commas == 0)
            v = slice_value(p, span); /* numpy's arrays have blanks for commas */
    p->values.n = mark;
    value_push(p, v);
}

/* ---- trees → the forms of params.def */

static bool all_ints(const Value *v) {
    if (v->kind != V_LIST || v->s.n) return false;
    for (uint32_t i = 0; i < v->list.n; i++)
        if (v->list.at[i].kind != V_INT && v->list.at[i].kind != V_BOOL) return false;
    return true;
}

static void to_ints(Parser *p, Value *v) {
    if (!all_ints(v)) return;
    Ints ints = {arena_new(p->arena, int64_t, v->list.n), v->list.n};
    for (uint32_t i = 0; i < v->list.n; i++) ints.at[i] = v->list.at[i].i;
    *v = (Value){.kind = V_INTS, .open = v->open, .span = v->span, .ints = ints};
}

/* The raw token that starts at byte `at`. */
static uint32_t token_at(const Parser *p, uint32_t at) {
    uint32_t lo = 0, hi = p->toks.n;
    while (hi - lo > 1) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (p->toks.at[mid].at <= at)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

/* Reads a value as a dimension; false if it is not one. None is a hole. */
static bool to_dim(Parser *p, const Value *v, uint32_t holes, Dim *d) {
    if (v->kind == V_NONE) return *d = dim_special(p->cx->types, DIM_HOLE, holes), true;
    if (v->kind == V_INT && dim_is_const(v->i)) return *d = v->i, true;
    if (v->kind != V_WORD && v->kind != V_TEXT && !(v->kind == V_LIST && v->s.n)) return false;
    if (v->kind == V_WORD && memchr(v->s.at, '.', v->s.n)) return false;
    uint32_t i = token_at(p, v->span.at);
    return dim_read(p, &i, d) && tok(p, i - 1)->at + tok(p, i - 1)->n == v->span.at + v->span.n;
}

static void to_dims(Parser *p, Value *v) {
    if (v->kind != V_LIST || v->s.n) return;
    Dims dims = {arena_new(p->arena, Dim, v->list.n), v->list.n};
    uint32_t holes = 0;
    for (uint32_t i = 0; i < v->list.n; i++) {
        if (!to_dim(p, &v->list.at[i], holes, &dims.at[i])) return;
        holes += v->list.at[i].kind == V_NONE;
    }
    *v = (Value){.kind = V_DIMS, .open = v->open, .span = v->span, .dims = dims};
}

/* ((low, high, interior), …) → low, high, interior, …: tuples of `width` */
static void to_padding(Parser *p, Value *v, uint32_t width) {
    if (v->kind != V_LIST || v->s.n) return;
    Dims dims = {arena_new(p->arena, Dim, width * (size_t)v->list.n), width * v->list.n};
    for (uint32_t i = 0; i < v->list.n; i++) {
        const Value *axis = &v->list.at[i];
        if (axis->kind != V_LIST || axis->list.n != width) return;
        for (uint32_t k = 0; k < width; k++)
            if (!to_dim(p, &axis->list.at[k], 0, &dims.at[width * i + k])) return;
    }
    *v = (Value){.kind = V_DIMS, .open = v->open, .span = v->span, .dims = dims};
}

/* ((lhs contracting, rhs contracting), (lhs batch, rhs batch)) → four lists of numbers */
static void to_dotdims(Parser *p, Value *v) {
    Value four[4];
    if (v->kind != V_LIST || v->list.n != 2) return;
    for (uint32_t i = 0; i < 4; i++) {
        const Value *pair = &v->list.at[i / 2];
        if (pair->kind != V_LIST || pair->list.n != 2 || !all_ints(&pair->list.at[i % 2])) return;
        four[i] = pair->list.at[i % 2];
        to_ints(p, &four[i]);
    }
    *v = list_of(p, '(', four, 4, v->span);
}

/* float32, f32, numpy.float32, <class 'numpy.float32'>, dtype('float32'), key<fry> */
static void to_dtype(Parser *p, Value *v) {
    Str s = {p->text.at + v->span.at, v->span.n};
    if (v->kind != V_WORD && v->kind != V_TEXT && v->kind != V_STR && v->kind != V_LIST) return;
    Dtype d = dtype_named(s);
    for (uint32_t i = 0; !d && i < s.n; i++) { /* the longest word of it that is one */
        bool start = i == 0 || strchr(".'\"( ", s.at[i - 1]);
        uint32_t n = 0;
        while (i + n < s.n && (s.at[i + n] == '_' || (s.at[i + n] >= '0' && s.at[i + n] <= '9') ||
                               ((s.at[i + n] | 32) >= 'a' && (s.at[i + n] | 32) <= 'z')))
            n++;
        if (start && n) d = dtype_named((Str){s.at + i, n});
    }
    if (d) *v = (Value){.kind = V_DTYPE, .span = v->span, .i = d};
}

void fixup_add(Parser *p, Jaxpr **slot, Span span) {
    push(p->arena, &p->fixups, ((Fixup){slot, {p->text.at + span.at, span.n}, span}));
}

/* Rule T7: a bare word in the place of a jaxpr is the name of a hoisted one, which may come later: eqn_add resolves
   it. */
static void to_jaxpr(Value *v) {
    if (v->kind == V_WORD || v->kind == V_TEXT) *v = (Value){.kind = V_JAXPR, .span = v->span};
}

typedef STACK(Value) Values;

/* Adds a jaxpr, or those named by the words of a text; false for anything else. */
static bool add_jaxprs(Parser *p, const Value *v, Values *found) {
    if (v->kind == V_JAXPR) return push(p->arena, found, *v), true;
    if (v->kind != V_WORD && v->kind != V_TEXT) return false;
    uint32_t i = token_at(p, v->span.at), end = v->span.at + v->span.n;
    for (; tok(p, i)->kind != T_END && tok(p, i)->at < end; i++)
        if (tok(p, i)->kind == T_NAME)
            push(p->arena, found, ((Value){.kind = V_JAXPR, .span = toks_span(p, i, i + 1)}));
    return true;
}

/* ( {…} f {…} ): jaxprs and names of jaxprs; names in a row were folded into one text. */
static void to_jaxprs(Parser *p, Value *v) {
    Values found = {0};
    if (v->kind == V_TEXT && !add_jaxprs(p, v, &found)) return;
    if (v->kind != V_LIST && v->kind != V_TEXT) return;
    for (uint32_t i = 0; v->kind == V_LIST && i < v->list.n; i++) {
        const Value *item = &v->list.at[i];
        bool row = item->kind == V_LIST;
        for (uint32_t k = 0; k < (row ? item->list.n : 1); k++)
            if (!add_jaxprs(p, row ? &item->list.at[k] : item, &found)) return;
    }
    Jaxpr **at = arena_new(p->arena, Jaxpr *, found.n);
    for (uint32_t i = 0; i < found.n; i++) {
        at[i] = found.at[i].jaxpr;
        if (!at[i]) fixup_add(p, &at[i], found.at[i].span);
    }
    *v = (Value){.kind = V_JAXPRS, .open = '(', .span = v->span, .jaxprs = {at, found.n}};
}

static void to_word(Parser *p, Value *v) {
    if (v->kind == V_TEXT || v->kind == V_INT) {
        Value word = text_value(p, V_WORD, v->span);
        if (v->kind == V_TEXT) word.s = v->s;
        *v = word;
    }
}

static void to_kind(Parser *p, ParamKind kind, Value *v) {
    switch (kind) {
    case PK_DIM:
        if (v->kind == V_NONE) return;
        Dim d;
        if (to_dim(p, v, 0, &d)) *v = (Value){.kind = V_DIM, .span = v->span, .dim = d};
        return;
    case PK_INTS:
    case PK_BOOLS: to_ints(p, v); return;
    case PK_DIMS: to_dims(p, v); return;
    case PK_DTYPE: to_dtype(p, v); return;
    case PK_JAXPR: to_jaxpr(v); return;
    case PK_JAXPRS: to_jaxprs(p, v); return;
    case PK_PADDING: to_padding(p, v, 3); return;
    case PK_PAIRS: to_padding(p, v, 2); return;
    case PK_WORD: to_word(p, v); return;
    case PK_INTLISTS:
        for (uint32_t i = 0; v->kind == V_LIST && i < v->list.n; i++) to_ints(p, &v->list.at[i]);
        return;
    default: return;
    }
}

void param_add(Parser *p, Prim prim, uint32_t key, uint32_t mark) {
    Span span = toks_span(p, key, key + 1);
    Name *name = name_at(p, tok_text(p, key));
    Param param = {.key = name->key, .name = name->text, .span = span};
    const Value *from = p->values.at + mark, *to = p->values.at + p->values.n;
    if (to > from && (param.key == K_fmt || param.key == K_error_message)) /* always text, often a T_RAW */
        param.value = text_value(p, V_TEXT, span_of(from, to));
    else if (to > from)
        param.value = fold(p, from, to, 0);
    else
        param.value = text_value(p, V_TEXT, (Span){p->file, span.at + span.n + 1, 0});
    p->values.n = mark;
    if (param_kind[param.key] != PK_TYPED) numpy_ints(&param.value);
    if (param.key == K_dimension_numbers && (prim == P_dot_general || prim == P_dot_words || prim == P_dot_halves))
        to_dotdims(p, &param.value);
    else
        to_kind(p, param_kind[param.key], &param.value);
    if (p->params.n - scope_now(p)->params == MOST_PARAMS) {
        diag(p->cx->diags, span, "an equation has more than %d parameters", MOST_PARAMS);
        p->stop = true;
    }
    for (uint32_t i = p->params.n; i-- > scope_now(p)->params;)
        if (str_eq(p->params.at[i].name, param.name)) {
            diag(p->cx->diags, span, "parameter '%.*s' is given twice", SF(param.name));
            diag_note(p->cx->diags, p->params.at[i].span, "first here");
            break;
        }
    push(p->arena, &p->params, param);
}

/* ---- names of hoisted jaxprs */

static void undefined_jaxpr(Parser *p, const Fixup *f, uint32_t hoisted) {
    enum { LETTERS = 3 };
    Similar near = similar_to(f->name, edits_of(f->name, LETTERS));
    bool few = diag_errors(p->cx->diags) < 20; /* nobody reads more than that */
    for (uint32_t i = hoisted; i < p->hoisted.n && few; i++) similar_offer(&near, p->hoisted.at[i].name);
    if (near.best.n)
        diag(p->cx->diags, f->span, "jaxpr '%.*s' is not defined; did you mean '%.*s'?", SF(f->name), SF(near.best));
    else
        diag(p->cx->diags, f->span, "jaxpr '%.*s' is not defined", SF(f->name));
}

/* Fills the slots of the fixups from `from` on whose names are among the jaxprs hoisted from
   `hoisted` on. At the end of the text the others are errors. */
void fixups_resolve(Parser *p, uint32_t from, uint32_t hoisted, bool last) {
    Intern names = {.arena = p->arena};
    STACK(Jaxpr *) jaxprs = {0};
    for (uint32_t i = hoisted; i < p->hoisted.n; i++) {
        const Hoisted *h = &p->hoisted.at[i];
        _Bool fresh;
        intern(&names, h->name.at, h->name.n, &fresh);
        if (fresh)
            push(p->arena, &jaxprs, h->jaxpr);
        else
            diag(p->cx->diags, h->span, "jaxpr '%.*s' is defined twice", SF(h->name));
    }
    uint32_t kept = from;
    for (uint32_t i = from; i < p->fixups.n; i++) {
        Fixup f = p->fixups.at[i];
        _Bool fresh;
        uint32_t id = intern(&names, f.name.at, f.name.n, &fresh);
        if (fresh) push(p->arena, &jaxprs, NULL);
        assert(id < jaxprs.n);
        *f.slot = jaxprs.at[id];
        if (*f.slot) continue;
        if (last && fresh) undefined_jaxpr(p, &f, hoisted);
        p->fixups.at[kept++] = f;
    }
    p->fixups.n = kept;
    p->hoisted.n = hoisted;
}
