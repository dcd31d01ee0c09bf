/* Raw tokens → terminals of the grammar. The text of a jaxpr has no terminators and few keywords. Where an equation
   starts, whether `in` is a keyword or a variable, and whether a bracket opens parameters or an index are decided by
   rules, marked T1 to T7 below and in param.c, that look ahead. They are here, so that the grammar is LALR(1) without
   conflicts. */
#include "parser.h"
#include "gen/parse.h"

Span toks_span(const Parser *p, uint32_t from, uint32_t to) {
    const Tok *a = tok(p, from), *b = to > from ? tok(p, to - 1) : a;
    return (Span){p->file, a->at, b->at + b->n - a->at};
}

uint32_t tok_match(const Parser *p, uint32_t i) {
    enum { FAR = 4096 };
    uint32_t depth = 0;
    for (uint32_t k = i; k < i + FAR && tok(p, k)->kind != T_END; k++) {
        uint8_t c = tok(p, k)->kind;
        depth += c == '(' || c == '[' || c == '{';
        if (c == ')' || c == ']' || c == '}') depth--;
        if (depth == 0) return k + 1;
    }
    return i;
}

static Frame *top(Parser *p) { return &p->frames.at[p->frames.n - 1]; }

static void frame_push(Parser *p, FrameKind kind, char close) {
    Frame f = {.kind = kind, .close = close, .open = p->pos, .run_end = p->pos};
    push(p->arena, &p->frames, f);
    if (p->frames.n > 2 * MOST_NESTING && !p->stop) {
        diag(p->cx->diags, toks_span(p, p->pos, p->pos + 1), "nested more than %d deep", MOST_NESTING);
        p->stop = true;
    }
}

static int take(Parser *p, int kind, uint32_t n) {
    p->last.at = p->pos;
    p->last.end = p->pos += n;
    return kind;
}

/* After a syntax error: skips to where the innermost jaxpr can go on, which is the end of the equation or, in binders
   and results, the end of the jaxpr. */
static void panic(Parser *p) {
    if (p->panic) return;
    p->panic = true;
    p->panic_depth = p->old_depth;
    p->panic_closes = p->old_kind != F_EQNS;
    if (p->scopes.n) scope_now(p)->broken = true;
    if (top(p)->kind == F_EQNS && p->depth == p->panic_depth) top(p)->state = IN_OPERANDS;
}

/* An error that has been reported. */
static int take_error(Parser *p, uint32_t n) {
    panic(p);
    return take(p, TK_JAXCC_YYerror, n);
}

/* A raw token that does not fit where it is. One that may only occur in the text of a parameter is a separate error. */
static int take_bad(Parser *p) {
    const Tok *t = tok(p, p->pos);
    if (t->kind != T_OTHER) {
        static const int same[TOKEN_KINDS] = {[';'] = TK_SEMI, [','] = TK_COMMA,   ['('] = TK_LPAR,    [')'] = TK_RPAR,
                                              ['['] = TK_LBRK, [']'] = TK_RBRK,    ['='] = TK_EQ,      ['.'] = TK_DOT,
                                              ['*'] = TK_STAR, [T_NAME] = TK_WORD, [T_NUMBER] = TK_NUM};
        return t->kind == T_END ? (take(p, 0, 0), 0) : take(p, same[t->kind] ? same[t->kind] : TK_OP, 1);
    }
    unsigned char c = (unsigned char)p->text.at[t->at];
    Span span = toks_span(p, p->pos, p->pos + 1);
    if (c < ' ' || c == 127)
        diag(p->cx->diags, span, "unexpected byte '\\x%02x'", c);
    else
        diag(p->cx->diags, span, "unexpected character '%.*s'", SF(tok_text(p, p->pos)));
    return take_error(p, 1);
}

static int take_type(Parser *p) {
    uint32_t i = p->pos + 1;
    Type type;
    if (!type_read(p, &i, &type)) return take_error(p, i - p->pos);
    p->last.type = type;
    return take(p, TK_TYPE, i - p->pos);
}

static bool opens_jaxpr(const Parser *p, uint32_t i) {
    return tok(p, i)->kind == '{' && tok_is(p, i + 1, "lambda") && tok(p, i + 2)->kind != '>';
}

static int take_jaxpr(Parser *p) {
    frame_push(p, F_HEAD, '}');
    p->depth++;
    return take(p, TK_JOPEN, 2);
}

static int end_jaxpr(Parser *p) {
    p->frames.n--;
    p->depth--;
    return take(p, TK_JCLOSE, 1);
}

/* ---- the program, and lets inside parameters */

static int read_top(Parser *p, Frame *f) {
    const Tok *t = tok(p, p->pos);
    switch (f->state) {
    case LET_NAME: {
        uint32_t i = p->pos;
        while (tok(p, i)->kind != '=' && tok(p, i)->kind != T_END && tok(p, i)->kind != '{') i++;
        f->state = LET_BODY;
        return i > p->pos ? take(p, TK_SHNAME, i - p->pos) : take_bad(p);
    }
    case LET_BODY:
        if (t->kind == '=') return take(p, TK_EQ, 1);
        break;
    case AT_END:
        if (tok_is(p, p->pos, "in")) return f->state = AT_START, take(p, TK_IN, 1);
        if (f->nested) return p->frames.n--, -1;
        break;
    default:
        if (tok_is(p, p->pos, "let")) return f->state = LET_NAME, take(p, TK_SHARED_LET, 1);
    }
    if (opens_jaxpr(p, p->pos)) return f->state = AT_END, take_jaxpr(p);
    return take_bad(p);
}

static int read_head(Parser *p, Frame *f) {
    enum { MOST_LISTS = 4 };
    const Tok *t = tok(p, p->pos);
    switch (t->kind) {
    case T_NAME: return take(p, TK_NAME, 1);
    case '*': return take(p, TK_STAR, 1);
    case ':': return take_type(p);
    case '}': return end_jaxpr(p);
    case ';':
        if (++f->semis < MOST_LISTS) return take(p, TK_SEMI, 1);
        diag(p->cx->diags, toks_span(p, p->pos, p->pos + 1),
             "unexpected ';': a jaxpr has at most three lists of binders");
        return take_error(p, 1);
    case '.': *f = (Frame){.kind = F_EQNS, .close = '}', .open = f->open, .run_end = p->pos}; return take(p, TK_DOT, 1);
    default: return take_bad(p);
    }
}

/* ---- equations */

/* T4: parameters, not an index. */
static bool opens_params(const Parser *p, uint32_t i) {
    if (tok(p, i)->kind != '[') return false;
    if (tok(p, i + 1)->kind == T_NAME) return tok(p, i + 2)->kind == '=' && tok(p, i + 3)->kind != '=';
    uint8_t after = tok(p, i + 2)->kind;
    return tok(p, i + 1)->kind == ']' && after != T_ARROW && after != T_PLUSEQ;
}

/* The token after an operand at i; i if there is none. */
static uint32_t atom_end(const Parser *p, uint32_t i) {
    uint32_t end = literal_end(p, i);
    if (end == i && (tok(p, i)->kind == T_NAME || tok(p, i)->kind == '*')) end = i + 1;
    return end > i && tok(p, end)->kind == ':' ? type_skip(p, end + 1) : end;
}

/* T2: `in` is the keyword where results can follow. A variable `in` before a complex number is an operand. */
static bool is_in(Parser *p, uint32_t i) {
    if (!tok_is(p, i, "in")) return false;
    const Tok *next = tok(p, i + 1);
    switch (next->kind) {
    case '}': return true;
    case '(': {
        uint32_t end = literal_end(p, i + 1);
        return end == i + 1 || tok(p, end)->kind == '}' || !name_is_bound(p, i);
    }
    case '[': return next->flags & AFTER_BLANK && tok(p, i + 2)->kind != T_ELLIPSIS;
    default: {
        uint32_t end = atom_end(p, i + 1);
        return end > i + 1 && tok(p, end)->kind == '}';
    }
    }
}

static bool is_binder(const Parser *p, uint32_t i) { return tok(p, i)->kind == T_NAME || tok(p, i)->kind == '*'; }

/* Examines a run `a:f32[] b:f32[] …` once: does it end at `=`, and which of its names is the last to start a line? */
static void look_at_run(Parser *p, Frame *f, uint32_t i) {
    if (i < f->run_end) return;
    f->run_line = i;
    uint32_t k = i;
    while (is_binder(p, k) && tok(p, k + 1)->kind == ':') {
        uint32_t end = type_skip(p, k + 2);
        if (end == k + 2) break;
        if (k > i && tok(p, k)->flags & LINE_FIRST) f->run_line = k;
        k = end;
    }
    uint8_t c = tok(p, k)->kind;
    f->run_end = k > i ? k : i + 1;
    f->run_binds = c == '=' || c == T_ARROW || c == ',';
}

/* Are there only names up to an `=`, all on the line that token i starts? */
static bool line_of_binders(const Parser *p, uint32_t i) {
    if (!(tok(p, i)->flags & LINE_FIRST)) return false;
    uint32_t k = i + 1;
    while (is_binder(p, k) && !(tok(p, k)->flags & LINE_FIRST)) k++;
    return tok(p, k)->kind == '=' && !(tok(p, k)->flags & LINE_FIRST);
}

static bool has_inner_under(Str s) {
    for (uint32_t i = 1; i + 1 < s.n; i++)
        if (s.at[i] == '_') return true;
    return false;
}

/* "(d e) =" of 2019. */
static bool opens_results(const Parser *p, uint32_t i) {
    uint32_t k = i + 1;
    while (is_binder(p, k)) k++;
    return k > i + 1 && tok(p, k)->kind == ')' && tok(p, k + 1)->kind == '=';
}

/* T1: does the name at i, among operands, start the next equation? */
static bool starts_equation(Parser *p, Frame *f, uint32_t i) {
    const Tok *next = tok(p, i + 1);
    switch (next->kind) {
    case '=':
    case T_ARROW:
    case T_PLUSEQ:
    case ',': return true;
    case '[':
    case '{':
        if (!(next->flags & AFTER_BLANK)) return true;
        break;
    case ':': look_at_run(p, f, i); return f->run_binds && (f->run_line <= i || !name_is_bound(p, i));
    default: break;
    }
    if (line_of_binders(p, i)) return true;
    return tok(p, i)->flags & LINE_FIRST && has_inner_under(tok_text(p, i)) && !name_is_bound(p, i);
}

/* T5: inf and nan, and the words that are never variables. */
static bool is_literal_name(Parser *p, Frame *f, uint32_t i) {
    Str s = tok_text(p, i);
    if (str_is(s, "True") || str_is(s, "False")) return true;
    if (str_is(s, "Literal")) return tok(p, i + 1)->kind == '(';
    bool number = str_is(s, "inf") || str_is(s, "nan"), imaginary = str_is(s, "infj") || str_is(s, "nanj");
    if (!number && !imaginary) return false;
    if (tok(p, i + 1)->kind != ':') return !name_is_bound(p, i);
    if (f->kind != F_EQNS) return true;
    look_at_run(p, f, i);
    return !f->run_binds || f->run_line > i;
}

static int read_operand(Parser *p, Frame *f);

/* The first terminal of an equation; the tokens after its names decide what they are. */
static int read_start(Parser *p, Frame *f) {
    const Tok *t = tok(p, p->pos);
    f->binds = f->typed = false;
    if (t->kind == '(' && opens_results(p, p->pos)) return f->state = IN_RESULTS, f->binds = true, take(p, TK_LPAR, 1);
    if (!is_binder(p, p->pos)) return f->state = IN_OPERANDS, read_operand(p, f);
    uint32_t k = p->pos, n = 0;
    for (bool typed = false; is_binder(p, k) && !(n && typed && tok(p, k + 1)->kind != ':'); n++) {
        if (n && !typed && tok(p, k)->flags & LINE_FIRST) break;
        typed = tok(p, k + 1)->kind == ':';
        k = typed ? type_skip(p, k + 2) : k + 1;
    }
    uint8_t end = tok(p, k)->kind;
    bool one = n == 1, typed = tok(p, p->pos + 1)->kind == ':';
    f->binds = end == '=' || typed || (one && (end == T_ARROW || end == ','));
    f->state = AT_PRIM;
    if (f->binds)
        f->state = IN_RESULTS;
    else if (one && (end == T_PLUSEQ || ((end == '[' || end == '{') && tok_sticks(p, k) && !opens_params(p, k))))
        f->state = IN_REF;
    return -1;
}

static int read_results(Parser *p, Frame *f) {
    switch (tok(p, p->pos)->kind) {
    case T_NAME:
        if (f->typed && tok(p, p->pos + 1)->kind != ':') return take(p, TK_PRIM, 1);
        return take(p, TK_NAME, 1);
    case '*': return take(p, TK_STAR, 1);
    case ':': return f->typed = true, take_type(p);
    case ')': return take(p, TK_RPAR, 1);
    case '=': return f->state = AT_PRIM, take(p, TK_EQ, 1);
    case T_ARROW: return f->state = IN_REF, take(p, TK_ARROW, 1);
    case ',': return f->state = IN_REF, take(p, TK_COMMA, 1);
    default: return f->state = IN_OPERANDS, read_operand(p, f);
    }
}

/* A name with `-` inside is one name: scatter-add. */
static int read_prim(Parser *p, Frame *f) {
    f->state = AFTER_PRIM;
    uint8_t after = tok(p, p->pos + 1)->kind;
    if (tok(p, p->pos)->kind != T_NAME || after == '=' || after == ':') return f->state = IN_OPERANDS, take_bad(p);
    uint32_t k = p->pos + 1;
    while (tok(p, k)->kind == '-' && tok_sticks(p, k) && tok(p, k + 1)->kind == T_NAME && tok_sticks(p, k + 1)) k += 2;
    return take(p, TK_PRIM, k - p->pos);
}

static int read_ref(Parser *p, Frame *f) {
    const Tok *t = tok(p, p->pos), *next = tok(p, p->pos + 1);
    uint32_t end;
    switch (t->kind) {
    case T_NAME:
        if (p->last_kind == TK_INDEX || p->last_kind == TK_REFNAME) break; /* the ref ended */
        if ((f->binds && p->last_kind == TK_ARROW) ||
            ((next->kind == '[' || next->kind == '{') && tok_sticks(p, p->pos + 1)) || next->kind == T_PLUSEQ)
            return take(p, TK_REFNAME, 1);
        break;
    case '[':
    case '{':
        end = tok_match(p, p->pos);
        if (tok_sticks(p, p->pos) && end > p->pos) return take(p, TK_INDEX, end - p->pos);
        break;
    case T_ARROW: return take(p, TK_ARROW, 1);
    case T_PLUSEQ: return take(p, TK_PLUSEQ, 1);
    case ',': return f->binds = false, take(p, TK_COMMA, 1);
    default: break;
    }
    f->state = IN_OPERANDS;
    return -1;
}

static int new_equation(Parser *p, Frame *f) {
    f->state = AT_START;
    return take(p, TK_SEP, 0);
}

static int read_name(Parser *p, Frame *f) {
    if (is_in(p, p->pos)) {
        *f = (Frame){.kind = F_OUTS, .close = '}', .open = f->open};
        return take(p, TK_IN, 1);
    }
    uint32_t end = literal_end(p, p->pos);
    if (end > p->pos && is_literal_name(p, f, p->pos)) return take(p, TK_LIT, end - p->pos);
    if (f->state == IN_OPERANDS && starts_equation(p, f, p->pos)) return new_equation(p, f);
    return take(p, TK_NAME, 1);
}

static int read_operand(Parser *p, Frame *f) {
    const Tok *t = tok(p, p->pos);
    uint32_t end;
    switch (t->kind) {
    case T_NAME: return read_name(p, f);
    case '*': return line_of_binders(p, p->pos) ? new_equation(p, f) : take(p, TK_STAR, 1);
    case ':': return take_type(p);
    case '}': return end_jaxpr(p);
    case ';': return f->state == IN_TAIL ? take(p, TK_SEMI, 1) : (f->state = AT_START, take(p, TK_SEP, 1));
    case ',': return take(p, TK_COMMA, 1);
    case '{':
        if (opens_jaxpr(p, p->pos)) return f->state = IN_TAIL, take_jaxpr(p);
        return take_bad(p);
    case ']':
        if (f->state == IN_TAIL) f->state = IN_OPERANDS;
        return take(p, TK_RBRK, 1);
    case '(':
        if (opens_results(p, p->pos)) return new_equation(p, f); /* fallthrough */
    default: end = literal_end(p, p->pos); return end > p->pos ? take(p, TK_LIT, end - p->pos) : take_bad(p);
    }
}

static int read_equations(Parser *p, Frame *f) {
    if (p->last_kind == TK_DOT && tok_is(p, p->pos, "let") && tok(p, p->pos + 1)->kind != ':' &&
        tok(p, p->pos + 1)->kind != '=')
        return take(p, TK_LET, 1);
    switch (f->state) {
    case AT_START: return is_in(p, p->pos) ? read_name(p, f) : read_start(p, f);
    case IN_RESULTS: return read_results(p, f);
    case AT_PRIM: return read_prim(p, f);
    case IN_REF: return read_ref(p, f);
    case AFTER_PRIM:
        f->state = IN_OPERANDS;
        if (!opens_params(p, p->pos)) return -1;
        frame_push(p, F_PARAMS, ']');
        return take(p, TK_POPEN, 1);
    default: return read_operand(p, f);
    }
}

static int read_results_list(Parser *p, Frame *f) {
    const Tok *t = tok(p, p->pos);
    uint32_t end = t->kind == T_NAME && !is_literal_name(p, f, p->pos) ? p->pos : literal_end(p, p->pos);
    bool first = p->last_kind == TK_IN;
    if (t->kind == '(' && first && end > p->pos && tok(p, end)->kind != '}' && tok(p, end)->kind != ':') end = p->pos;
    if (end > p->pos) return take(p, TK_LIT, end - p->pos);
    switch (t->kind) {
    case T_NAME: return take(p, TK_NAME, 1);
    case '*': return take(p, TK_STAR, 1);
    case '(': return take(p, TK_LPAR, 1);
    case '[': return take(p, TK_LBRK, 1);
    case ')': return f->state = AT_END, take(p, TK_RPAR, 1);
    case ']': return f->state = AT_END, take(p, TK_RBRK, 1);
    case ',': return take(p, TK_COMMA, 1);
    case '}': return end_jaxpr(p);
    case ':':
        if (f->state != AT_END) return take_type(p);
        end = tok_match(p, p->pos + 1);
        return end > p->pos + 1 ? take(p, TK_EFFECTS, end - p->pos) : take_bad(p);
    default: return take_bad(p);
    }
}

/* ---- parameters */

static const char *bracket_name(char close) { return close == ')' ? ")" : close == ']' ? "]" : "}"; }

/* A bracket that does not match the open one: closes what it can, within the jaxpr. */
static int mismatch(Parser *p, Frame *f, char c) {
    if (!p->panic) {
        diag(p->cx->diags, toks_span(p, p->pos, p->pos + 1), "expected '%s' before '%c'", bracket_name(f->close), c);
        diag_note(p->cx->diags, toks_span(p, f->open, f->open + 1), "to match this");
    }
    uint32_t n = p->frames.n, consumed = 1;
    while (n && p->frames.at[n - 1].close != c && p->frames.at[n - 1].kind >= F_PARAMS) n--;
    if (n && p->frames.at[n - 1].close == c) {
        p->frames.n = n;
        if (top(p)->kind >= F_PARAMS)
            p->frames.n--;
        else
            consumed = 0;
    }
    return take_error(p, consumed);
}

static bool opens_let(const Parser *p, uint32_t i) {
    enum { WORDS = 64 };
    if (!tok_is(p, i, "let")) return false;
    for (uint32_t k = i + 1; k < i + WORDS; k++) {
        uint8_t c = tok(p, k)->kind;
        if (c == '=') return !tok_sticks(p, k) && opens_jaxpr(p, k + 1);
        if (c == T_END || c == ',' || c == ')' || c == ']' || c == '}') return false;
    }
    return false;
}

static int read_item(Parser *p, Frame *f) {
    const Tok *t = tok(p, p->pos);
    char c = (char)t->kind;
    switch (t->kind) {
    case T_NAME:
        if (!opens_let(p, p->pos)) return take(p, TK_WORD, 1);
        frame_push(p, F_TOP, 0);
        top(p)->nested = true;
        return -1;
    case T_NUMBER: return take(p, TK_NUM, 1);
    case T_STRING: return take(p, TK_STR, 1);
    case T_RAW: return take(p, TK_RAW, 1);
    case '{':
        if (opens_jaxpr(p, p->pos)) return take_jaxpr(p); /* fallthrough */
    case '(':
    case '[': frame_push(p, F_GROUP, c == '(' ? ')' : c == '[' ? ']' : '}'); return take(p, TK_GOPEN, 1);
    case ')':
    case ']':
    case '}':
        if (c != f->close) return mismatch(p, f, c);
        p->frames.n--;
        return take(p, c == ']' && f->kind == F_PARAMS ? TK_PCLOSE : TK_GCLOSE, 1);
    case T_END: return take(p, 0, 0);
    default: return take(p, TK_OP, 1);
    }
}

/* T6: `word=` after a blank starts the next parameter, except inside <…>, which objects print as, on one line. */
static int read_param(Parser *p, Frame *f) {
    const Tok *t = tok(p, p->pos), *next = tok(p, p->pos + 1);
    if (t->flags & LINE_FIRST) f->angle = 0;
    bool first = p->pos == f->open + 1 || t->flags & AFTER_BLANK;
    if (f->angle == 0 && first && t->kind == T_NAME && next->kind == '=' && tok_sticks(p, p->pos + 1) &&
        tok(p, p->pos + 2)->kind != '=')
        return take(p, TK_KEY, 2);
    if (t->kind == '<') f->angle++;
    if (t->kind == '>' && f->angle) f->angle--;
    return read_item(p, f);
}

/* ---- the next terminal */

static int read_any(Parser *p) {
    for (;;) {
        if (p->stop) return take(p, 0, 0);
        Frame *f = top(p);
        int kind = f->kind == F_TOP      ? read_top(p, f)
                   : f->kind == F_HEAD   ? read_head(p, f)
                   : f->kind == F_EQNS   ? read_equations(p, f)
                   : f->kind == F_OUTS   ? read_results_list(p, f)
                   : f->kind == F_PARAMS ? read_param(p, f)
                                         : read_item(p, f);
        if (kind >= 0) return p->last_kind = kind;
    }
}

static FrameKind jaxpr_kind(const Parser *p) {
    uint32_t n = p->frames.n;
    while (n > 1 && p->frames.at[n - 1].kind >= F_PARAMS) n--;
    return p->frames.at[n - 1].kind;
}

void parser_panic(Parser *p) {
    panic(p);
    bool closes = p->last_kind == TK_JCLOSE, goes_on = p->last_kind == TK_SEP || p->last_kind == TK_IN;
    p->resend = closes || (goes_on && !p->panic_closes);
}

/* May the terminal just read end the skipping? */
static bool ends_panic(const Parser *p, int kind) {
    if (kind == TK_JAXCC_YYerror || p->old_depth != p->panic_depth) return false;
    bool line = p->last.end > p->last.at || tok(p, p->pos)->flags & LINE_FIRST; /* of a SEP that is not written */
    return kind == TK_JCLOSE || (!p->panic_closes && (kind == TK_IN || (kind == TK_SEP && line)));
}

int jaxcc_yylex(JAXCC_YYSTYPE *value, Parser *p) {
    for (;;) {
        int kind = p->last_kind;
        bool panicked = p->panic;
        if (!p->resend) {
            p->old_depth = p->depth;
            p->old_kind = jaxpr_kind(p);
            kind = read_any(p);
        }
        bool ends = p->resend || ends_panic(p, kind);
        p->resend = false;
        value->t = p->last;
        if (panicked && ends) p->panic = false;
        if (!panicked || ends || kind == 0) return kind;
        if (kind == TK_EQ && p->scopes.n) scope_now(p)->damaged = true;
    }
}
