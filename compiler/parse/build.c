/* Equations and jaxprs from the grammar's stacks; reading a whole text. */
#include "parser.h"
#include "gen/parse.h"

static const Use *uses_from(const Parser *p, uint32_t n) { return p->uses.at + p->uses.n - n; }

/* Marks operands called `_` as used, once it is clear which variables are meant. */
static void mark_used(const Parser *p, Vals vals) {
    each(Val, v, vals) val_info(p->cx, *v)->used = true;
}

static Vals vals_of(Parser *p, const Use *from, uint32_t n) {
    Vals v = {arena_new(p->arena, Val, n), n};
    for (uint32_t i = 0; i < n; i++) v.at[i] = from[i].val;
    return v;
}

static const Span *spans_of(Parser *p, const Use *from, uint32_t n) {
    Span *s = arena_new(p->arena, Span, n);
    for (uint32_t i = 0; i < n; i++) s[i] = from[i].at;
    return s;
}

static Span span_to(Span from, Span to) {
    if (to.at + to.n > from.at + from.n) from.n = to.at + to.n - from.at;
    return from;
}

/* ---- binders */

void head_semi(Parser *p) {
    Scope *s = scope_now(p);
    s->nlists++;
    s->nconsts = p->uses.n - s->uses;
}

/* The last list has the inputs, earlier ones the constants: in 2019 also those called free variables. */
void head_end(Parser *p) {
    Scope *s = scope_now(p);
    uint32_t n = p->uses.n - s->uses, consts = s->nconsts;
    Jaxpr *j = s->jaxpr = arena_new(p->arena, Jaxpr, 1);
    j->consts = vals_of(p, uses_from(p, n), consts);
    j->in = vals_of(p, uses_from(p, n - consts), n - consts);
    j->one_list = s->nlists == 0;
    p->uses.n = s->uses;
}

void prim_begin(Parser *p, Terminal t) {
    Span s = toks_span(p, t.at, t.end);
    scope_now(p)->prim = name_at(p, (Str){p->text.at + s.at, s.n})->prim;
}

/* From here on operands are read, among which the results do not count yet. */
void results_end(Parser *p, uint32_t n) {
    Scope *s = scope_now(p);
    s->first_result = uses_from(p, n)->val;
    s->end_result = s->first_result + n;
}

/* ---- operands called _: the nearest variable of that name whose type fits */

static bool same_type(const Ctx *cx, Type t, Type wanted) { return t == wanted; }

static bool scalar_of(const Ctx *cx, Type t, Type wanted) {
    const ArrayType *a = type_at(cx->types, t), *w = type_at(cx->types, wanted);
    return a->dtype == w->dtype && a->rank == 0;
}

/* What operands of elementwise primitives agree with: the result or, for predicates, each other. */
typedef enum { LIKE_NOTHING, LIKE_RESULT, LIKE_OPERANDS } Likeness;

static Likeness likeness(Prim prim) {
    if (prim_arity[prim] < 0) return LIKE_NOTHING;
    return prim_is(prim, PREDICATE) ? LIKE_OPERANDS : LIKE_RESULT;
}

static bool is_under(const Parser *p, Span s) { return s.n == 1 && p->text.at[s.at] == '_'; }

static void pick_unders(Parser *p, const Eqn *e) {
    Likeness like = likeness(e->prim);
    Jaxpr *body = param_jaxpr(e, K_jaxpr);
    for (uint32_t i = 0; i < e->in.n; i++) {
        if (!is_under(p, e->in_at[i])) continue;
        Type wanted = 0;
        if (like == LIKE_RESULT && e->out.n) wanted = val_type(p->cx, e->out.at[0]);
        if (like == LIKE_OPERANDS && e->in.n == 2 && !is_under(p, e->in_at[!i])) wanted = val_type(p->cx, e->in.at[!i]);
        if (body && body->in.n == e->in.n) wanted = val_type(p->cx, body->in.at[i]);
        if (!wanted) continue;
        Val v = name_under(p, same_type, wanted);
        if (v && val_type(p->cx, v) != wanted && like) v = name_under(p, scalar_of, wanted);
        if (v) e->in.at[i] = v;
    }
}

/* ---- equations */

/* Parameters get their final address here, so the slots for hoisted jaxprs are registered here. */
void eqn_add(Parser *p, Eqn e) {
    each(Param, param, e.params) {
        Value *v = &param->value;
        if (v->kind == V_JAXPR && !v->jaxpr) fixup_add(p, &v->jaxpr, v->span);
    }
    push(p->arena, &p->eqns, e);
}

static Params params_from(Parser *p, uint32_t from) {
    Params params = {arena_new(p->arena, Param, p->params.n - from), p->params.n - from};
    if (params.n) memcpy(params.at, p->params.at + from, params.n * sizeof *params.at);
    p->params.n = from;
    return params;
}

/* The body that follows an equation of 2019 becomes a parameter, and everything it binds an operand. */
static void add_body(Parser *p, Eqn *e, const Apply *a) {
    Jaxpr *j = a->body;
    uint32_t bound = a->nconsts + a->nfree, n = a->noperands;
    Vals in = {arena_new(p->arena, Val, j->consts.n + j->in.n), j->consts.n + j->in.n};
    if (j->consts.n) memcpy(in.at, j->consts.at, j->consts.n * sizeof(Val));
    if (j->in.n) memcpy(in.at + j->consts.n, j->in.at, j->in.n * sizeof(Val));
    j->consts.n = 0;
    j->in = in;
    Use *moved = arena_new(p->arena, Use, n + bound);
    const Use *first = uses_from(p, n + bound);
    if (bound) memcpy(moved, first + n, bound * sizeof *moved);
    if (n) memcpy(moved + bound, first, n * sizeof *moved);
    e->in = vals_of(p, moved, n + bound);
    e->in_at = spans_of(p, moved, n + bound);
    push(p->arena, &p->params,
         ((Param){K_call_jaxpr, e->span, S("call_jaxpr"), {.kind = V_JAXPR, .span = j->span, .jaxpr = j}}));
}

void eqn_apply(Parser *p, uint32_t nresults, Apply a) {
    uint32_t n = a.noperands + a.nconsts + a.nfree;
    Span span = toks_span(p, a.prim.at, a.prim.end);
    Str text = {p->text.at + span.at, span.n};
    Eqn e = {.prim = name_at(p, text)->prim, .span = span, .whole = span};
    if (!e.prim) e.unknown = text;
    e.out = vals_of(p, uses_from(p, n + nresults), nresults);
    e.in = vals_of(p, uses_from(p, n), n);
    e.in_at = spans_of(p, uses_from(p, n), n);
    if (a.body) add_body(p, &e, &a);
    e.params = params_from(p, a.params);
    if (nresults) e.whole = span_to(uses_from(p, n + nresults)->at, span);
    if (e.params.n) e.whole = span_to(e.whole, e.params.at[e.params.n - 1].value.span);
    if (n) e.whole = span_to(e.whole, e.in_at[n - 1]);
    p->uses.n -= n + nresults;
    pick_unders(p, &e);
    mark_used(p, e.in);
    Scope *s = scope_now(p);
    s->first_result = s->end_result = 0;
    dialect_add(p, e);
}

void eqn_broken(Parser *p) {
    Scope *s = scope_now(p);
    s->damaged |= p->uses.n == s->uses;
    s->first_result = s->end_result = 0;
    p->uses.n = s->uses;
    p->params.n = s->params;
    p->values.n = s->values;
}

/* ---- refs: get, swap and addupdate keep their indices as a parameter `index`, a list with a value
   for each bracket: {…} is text; […] a list of …, :, numbers, a:b, a:b+n, where an operand of the
   equation is the word `*` */

static Value index_atom(Parser *p, uint32_t *i) {
    Span s = toks_span(p, *i, *i + 1);
    uint32_t end = literal_end(p, *i);
    Value v = {.kind = V_NONE, .span = s};
    if (tok(p, *i)->kind == T_NAME && (end == *i || name_is_bound(p, *i))) {
        use_push(p, name_use(p, *i), s);
        v.kind = V_WORD;
        v.s = S("*");
        ++*i;
    } else if (end > *i) {
        v.kind = V_TEXT;
        v.span = toks_span(p, *i, end);
        v.s = (Str){p->text.at + v.span.at, v.span.n};
        *i = end;
    }
    return v;
}

/* 1:3, :2, b:b+2, 0 */
static Value index_item(Parser *p, uint32_t *i) {
    Value parts[2] = {index_atom(p, i)};
    if (tok(p, *i)->kind != ':') return parts[0];
    ++*i;
    uint32_t uses = p->uses.n;
    parts[1] = index_atom(p, i);
    bool window = tok(p, *i)->kind == '+';
    if (window) {
        p->uses.n = uses; /* a repetition of the start, not another operand */
        ++*i;
        parts[1] = index_atom(p, i);
    }
    Value v = {.kind = V_PAIR, .span = parts[0].span, .s = window ? S("+") : S(":")};
    v.list.at = arena_new(p->arena, Value, 2);
    v.list.n = 2;
    memcpy(v.list.at, parts, sizeof parts);
    return v;
}

uint32_t ref_index(Parser *p, Terminal t) {
    Span span = toks_span(p, t.at, t.end);
    Value v = {.kind = V_TEXT, .span = span, .s = {p->text.at + span.at, span.n}};
    if (tok(p, t.at)->kind == '{') return value_push(p, v), 0;
    uint32_t i = t.at + 1, end = t.end - 1, mark = p->values.n, uses = p->uses.n;
    while (i < end) {
        if (tok(p, i)->kind == T_ELLIPSIS)
            value_text(p, V_TEXT, (Terminal){i, i + 1, 0}), i++;
        else
            value_push(p, index_item(p, &i));
        if (i < end && tok(p, i)->kind != ',') {
            diag(p->cx->diags, toks_span(p, i, i + 1), "unexpected '%.*s' in an index", SF(tok_text(p, i)));
            break;
        }
        i++;
    }
    uint32_t n = p->values.n - mark;
    v = (Value){.kind = V_LIST, .open = '[', .span = span, .list = {arena_new(p->arena, Value, n), n}};
    if (n) memcpy(v.list.at, p->values.at + mark, n * sizeof(Value));
    p->values.n = mark;
    value_push(p, v);
    return p->uses.n - uses;
}

/* Are they the same except for blanks? */
static bool same_text(Str a, Str b) {
    uint32_t i = 0, k = 0;
    for (;; i++, k++) {
        while (i < a.n && strchr(" \t\r\n", a.at[i])) i++;
        while (k < b.n && strchr(" \t\r\n", b.at[k])) k++;
        if (i == a.n || k == b.n) return i == a.n && k == b.n;
        if (a.at[i] != b.at[k]) return false;
    }
}

/* Drops the second reference of a swap, which repeats the first. */
static void drop_second(Parser *p, uint32_t mark, uint32_t n) {
    const Value *first = &p->values.at[mark], *again = first + 1;
    const Use *u = uses_from(p, n);
    bool same = p->values.n - mark - 1 == first->list.n;
    for (uint32_t i = 0; same && i < first->list.n; i++) {
        Span a = first->list.at[i].span, b = again[i].span;
        same = same_text((Str){p->text.at + a.at, a.n}, (Str){p->text.at + b.at, b.n});
    }
    Val other = same ? u[-(int)n].val : 0;
    if (other != u->val && !name_is_missing(p, other) && !name_is_missing(p, u->val))
        diag(p->cx->diags, u->at, "a swap writes the ref that it reads, with the same indices");
    p->values.n = mark + 1;
}

uint32_t ref_end(Parser *p, uint32_t n) {
    uint32_t mark = scope_now(p)->values;
    uint32_t count = p->values.n - mark;
    bool second = count && p->values.at[mark].kind == V_LIST && p->values.at[mark].open == 0;
    if (second) return drop_second(p, mark, n), n;
    Value v = {.kind = V_LIST, .list = {arena_new(p->arena, Value, count), count}};
    if (count) memcpy(v.list.at, p->values.at + mark, count * sizeof(Value));
    p->values.n = mark;
    value_push(p, v);
    return n;
}

void eqn_ref(Parser *p, Prim prim, Span span, uint32_t nresults, uint32_t nref, uint32_t nagain) {
    bool stores = prim != P_get;
    uint32_t ref_at = nresults, n = nref + stores, height = nresults + nref + nagain + stores;
    const Use *u = uses_from(p, height);
    Use *in = arena_new(p->arena, Use, n); /* ref, value, indices */
    in[0] = u[ref_at];
    if (stores) in[1] = u[height - 1];
    for (uint32_t i = 1; i < nref; i++) in[i + stores] = u[ref_at + i];
    Eqn e = {.prim = prim, .span = span, .whole = span_to(span_to(u[0].at, span), u[height - 1].at)};
    e.in = vals_of(p, in, n);
    e.in_at = spans_of(p, in, n);
    mark_used(p, e.in);
    e.out = vals_of(p, u, nresults);
    if (prim == P_swap && !nresults) { /* a store drops the old value */
        Val v = val_new(p->cx, 0, span);
        val_info(p->cx, v)->name = S("_");
        e.out = (Vals){arena_new(p->arena, Val, 1), 1};
        e.out.at[0] = v;
    }
    if (nresults > 1) diag(p->cx->diags, u[1].at, "what is read from a reference has one name");
    Value index = p->values.at[--p->values.n];
    index.span = span;
    push(p->arena, &p->params, ((Param){K_other, span, S("index"), index}));
    e.params = params_from(p, p->params.n - 1);
    p->uses.n -= height;
    scope_now(p)->first_result = scope_now(p)->end_result = 0;
    eqn_add(p, e);
}

/* ---- jaxprs */

/* A result called _ is the nearest variable of that name that fits the result of the enclosing equation. */
static void pick_results(Parser *p, uint32_t n) {
    const Scope *around = p->scopes.n > 1 ? scope_now(p) - 1 : NULL;
    if (!around || around->end_result - around->first_result != n) return;
    for (uint32_t i = 0; i < n; i++) {
        Use *u = &p->uses.at[p->uses.n - n + i];
        Type wanted = val_type(p->cx, around->first_result + i);
        Val v = is_under(p, u->at) ? name_under(p, same_type, wanted) : 0;
        if (v) u->val = v;
    }
}

Jaxpr *jaxpr_end(Parser *p, uint32_t nresults, Terminal effects, uint32_t close) {
    Scope *s = scope_now(p);
    pick_results(p, nresults);
    Jaxpr *j = s->jaxpr;
    j->span = toks_span(p, s->open, close + 1);
    j->out = vals_of(p, uses_from(p, nresults), nresults);
    j->out_at = spans_of(p, uses_from(p, nresults), nresults);
    mark_used(p, j->out);
    if (effects.end > effects.at) {
        Span text = toks_span(p, effects.at + 1, effects.end);
        j->effects = (Str){p->text.at + text.at, text.n};
    }
    j->eqns.n = j->eqns.cap = p->eqns.n - s->eqns;
    j->eqns.at = arena_new(p->arena, Eqn, j->eqns.n);
    if (j->eqns.n) memcpy(j->eqns.at, p->eqns.at + s->eqns, j->eqns.n * sizeof(Eqn));
    p->eqns.n = s->eqns;
    p->uses.n = s->uses;
    scope_close(p);
    return j;
}

Jaxpr *jaxpr_broken(Parser *p, uint32_t close) {
    Scope *s = scope_now(p);
    if (!s->broken) diag(p->cx->diags, toks_span(p, close, close + 1), "expected 'in' and the results before '}'");
    if (!s->jaxpr) s->jaxpr = arena_new(p->arena, Jaxpr, 1);
    p->uses.n = s->uses;
    p->params.n = s->params;
    p->values.n = s->values;
    return jaxpr_end(p, 0, (Terminal){0}, close);
}

void let_end(Parser *p, Terminal name, Jaxpr *j) {
    Span s = toks_span(p, name.at, name.end);
    j->name = (Str){p->text.at + s.at, s.n};
    push(p->arena, &p->hoisted, ((Hoisted){j->name, j, s}));
    push(p->arena, &p->lets, j);
}

/* ---- the whole text */

/* Jaxprs may name hoisted ones before their definition: does any contain itself, and how deeply do they nest? */
typedef struct {
    Parser *p;
    Intern ids;             /* of Jaxpr pointers */
    STACK(uint32_t) height; /* by id; 0 while it is being measured */
} Measure;

static uint32_t measure(Measure *m, const Jaxpr *j, uint32_t depth) {
    _Bool fresh;
    uint32_t id = intern(&m->ids, &j, sizeof j, &fresh), height = 1;
    if (depth > MOST_NESTING) return depth;
    if (!fresh) {
        if (m->height.at[id]) return m->height.at[id];
        diag(m->p->cx->diags, j->span, "jaxpr '%.*s' is part of itself", SF(j->name));
        return 1;
    }
    push(m->p->arena, &m->height, 0);
    each(const Eqn, e, j->eqns) {
        if (!e->params.n) continue;
        Jaxprs inner = eqn_jaxprs(m->p->arena, e);
        for (uint32_t i = 0; i < inner.n; i++) {
            uint32_t h = 1 + measure(m, inner.at[i], depth + 1);
            if (h > height) height = h;
        }
    }
    return m->height.at[id] = height;
}

static char closing(char open) { return open == '(' ? ')' : open == '[' ? ']' : '}'; }

/* The brackets that are open at the end of the text, the innermost last. Closing an outer bracket closes those inside
   it; a bracket that closes nothing is ignored. */
static uint32_t open_brackets(const Parser *p, uint32_t *open, uint32_t most) {
    uint32_t n = 0, unclosed[TOKEN_KINDS] = {0}; /* by the bracket that is missing */
    for (uint32_t i = 0; i < p->toks.n; i++) {
        uint8_t c = tok(p, i)->kind;
        bool opens = c == '(' || c == '[' || c == '{', closes = c == ')' || c == ']' || c == '}';
        if (opens && n < most) {
            open[n++] = i;
            unclosed[(uint8_t)closing((char)c)]++;
        }
        for (bool more = closes && unclosed[c]; more;) {
            char last = closing((char)tok(p, open[--n])->kind);
            unclosed[(uint8_t)last]--;
            more = last != (char)c;
        }
    }
    return n;
}

enum { BRACKETS_SHOWN = 4 };

static void note_open(Parser *p, const uint32_t *open, uint32_t n) {
    for (uint32_t i = 0; i < n && i < BRACKETS_SHOWN; i++) {
        uint32_t at = open[n - 1 - i];
        diag_note(p->cx->diags, toks_span(p, at, at + 1), "this '%c' is still open at the end of the file",
                  tok(p, at)->kind);
    }
    p->ended = true;
}

bool unexpected_end(Parser *p, const char *where) {
    if (p->ended) return false;
    Text say = {.arena = p->arena};
    uint32_t *open = arena_new(p->arena, uint32_t, MOST_NESTING), n = open_brackets(p, open, MOST_NESTING);
    for (uint32_t i = 0; i < n && i < BRACKETS_SHOWN; i++)
        text_add(&say, "%s'%c'", i ? ", " : "", closing((char)tok(p, open[n - 1 - i])->kind));
    Span end = toks_span(p, p->toks.n - 1, p->toks.n);
    if (p->toks.n == 1) return diag(p->cx->diags, end, "the text is empty: expected '{ lambda'");
    if (!n) return diag(p->cx->diags, end, "unexpected end of file%s", *where ? where : ": expected '{ lambda'");
    diag(p->cx->diags, end, "unexpected end of file%s: %.*s%s missing", where, SF(say), n > 1 ? " are" : " is");
    note_open(p, open, n);
    return false;
}

/* A note after an error that may be caused by an unclosed bracket. */
static void note_brackets(Parser *p) {
    uint32_t *open = arena_new(p->arena, uint32_t, MOST_NESTING);
    note_open(p, open, open_brackets(p, open, MOST_NESTING));
}

static bool among(const char *word, const char *const *expected, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(expected[i], word) == 0) return true;
    return false;
}

/* Does the text end after an opening bracket, or in the middle of the following word, as in `{ lam`? */
static bool ends_behind(const Parser *p, uint32_t i) {
    uint8_t c = tok(p, i)->kind;
    if (c != '{' && c != '[' && c != '(') return false;
    return tok(p, i + 1 + (tok(p, i + 1)->kind == T_NAME))->kind == T_END;
}

void syntax_error(Parser *p, const char *const *expected, uint32_t n) {
    enum { FEW = 4 };
    if (p->stop) return;
    if (p->last.at >= p->toks.n - 1 || ends_behind(p, p->last.at)) {
        unexpected_end(p, "");
        p->stop = true;
        return;
    }
    Text say = {.arena = p->arena};
    if (among("'='", expected, n)) {
        text_add(&say, "'='");
    } else if (among("'in'", expected, n)) {
        text_add(&say, "an operand, the next equation or 'in'");
    } else if (n && n <= FEW) {
        for (uint32_t i = 0; i < n; i++) text_add(&say, "%s%s", i == 0 ? "" : i + 1 < n ? ", " : " or ", expected[i]);
    }
    bool lambda = tok(p, p->last.at)->kind == '{' && tok(p, p->last.at + 1)->kind == T_NAME &&
                  !tok_is(p, p->last.at + 1, "lambda") && str_distance(tok_text(p, p->last.at + 1), S("lambda")) <= 2;
    uint32_t end = p->last.end > p->last.at ? p->last.end : p->last.at + 1;
    Span s = toks_span(p, p->last.at, end);
    diag(p->cx->diags, s, "unexpected '%.*s'%s%.*s%s", s.n < 40 ? (int)s.n : 40, p->text.at + s.at,
         say.n ? ": expected " : "", SF(say), lambda ? "; did you mean 'lambda'?" : "");
    parser_panic(p);
}

static bool parser_open(Parser *p, Ctx *cx, uint32_t file) {
    *p = (Parser){.cx = cx, .arena = cx->arena, .file = file, .text = diags_text(cx->diags, file)};
    p->name_ids.arena = cx->arena;
    return lex(cx, file, &p->toks);
}

Jaxpr *parse(Ctx *cx, uint32_t file, Jaxpr **misnamed) {
    uint32_t errors = diag_errors(cx->diags);
    Parser *p = arena_new(cx->arena, Parser, 1);
    if (!parser_open(p, cx, file)) return NULL;
    push(p->arena, &p->frames, ((Frame){.kind = F_TOP}));
    symbols_of_inputs(p);
    jaxcc_yyparse(p);
    bool read = diag_errors(cx->diags) - errors <= p->misnamed;
    if (!read && !p->ended) note_brackets(p);
    if (!read || !p->program) return NULL;
    fixups_resolve(p, 0, 0, true);
    p->program->lets = p->lets.at;
    p->program->nlets = p->lets.n;
    if (!p->recent) p->program->before = p->before;
    if (diag_errors(cx->diags) - errors > p->misnamed) return NULL;
    Measure m = {.p = p, .ids = {.arena = p->arena}};
    if (measure(&m, p->program, 0) > MOST_NESTING)
        diag(cx->diags, p->program->span, "jaxprs nest more than %d deep", MOST_NESTING);
    if (diag_errors(cx->diags) == errors) return p->program;
    if (misnamed && diag_errors(cx->diags) - errors == p->misnamed) *misnamed = p->program;
    return NULL;
}

bool parse_types(Ctx *cx, uint32_t file, Type **types, uint32_t *n) {
    Parser *p = arena_new(cx->arena, Parser, 1);
    STACK(Type) list = {0};
    if (!parser_open(p, cx, file)) return false;
    for (uint32_t i = 0; tok(p, i)->kind != T_END;) {
        Type t;
        if (!type_read(p, &i, &t)) return false;
        push(p->arena, &list, t);
        if (tok(p, i)->kind == T_END) break;
        if (tok(p, i)->kind != ',') return diag(cx->diags, toks_span(p, i, i + 1), "expected ',' between types");
        i++;
    }
    *types = list.at;
    *n = list.n;
    return true;
}
