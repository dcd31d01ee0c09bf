/* Names and scopes. A jaxpr sees only its own constants, inputs and results; a name knows its variable in the innermost
   scope that binds it, and hidden bindings are restored when a scope closes, so that every lookup is one step. */
#include "parser.h"

NameId name_id(Parser *p, Str s) {
    _Bool fresh;
    NameId id = intern(&p->name_ids, s.at, s.n, &fresh);
    if (fresh) push(p->arena, &p->names, ((Name){.text = s}));
    return id;
}

Name *name_at(Parser *p, Str s) {
    NameId id = name_id(p, s); /* may move the names */
    Name *n = &p->names.at[id];
    if (n->looked_up) return n;
    n->looked_up = true;
    n->prim = prim_named(s);
    if (prim_is(n->prim, INTERNAL) && !p->cx->passes) n->prim = P_none; /* not allowed in input */
    n->key = param_named(s);
    return n;
}

void scope_open(Parser *p, uint32_t open) {
    push(p->arena, &p->scopes,
         ((Scope){.number = ++p->nscopes,
                  .open = open,
                  .hidden = p->hidden.n,
                  .unders = p->unders.n,
                  .uses = p->uses.n,
                  .eqns = p->eqns.n,
                  .params = p->params.n,
                  .values = p->values.n,
                  .fixups = p->fixups.n}));
}

void scope_close(Parser *p) {
    Scope *s = scope_now(p);
    while (p->hidden.n > s->hidden) {
        const Hidden *h = &p->hidden.at[--p->hidden.n];
        p->names.at[h->name].val = h->val;
        p->names.at[h->name].scope = h->scope;
    }
    p->unders.n = s->unders;
    p->scopes.n--;
}

Val name_val(Parser *p, NameId id) {
    const Name *n = &p->names.at[id];
    return p->scopes.n && n->scope == scope_now(p)->number ? n->val : 0;
}

bool name_is_bound(Parser *p, uint32_t token) { return name_val(p, name_id(p, tok_text(p, token))) != 0; }

bool name_is_missing(Parser *p, Val v) {
    Str name = v ? val_info(p->cx, v)->name : S("");
    return name.n && p->names.at[name_id(p, name)].missing == v;
}

Val name_bind(Parser *p, uint32_t token, Type type) {
    Str text = tok_text(p, token);
    Span span = toks_span(p, token, token + 1);
    Val v = val_new(p->cx, type, span);
    val_info(p->cx, v)->name = text;
    if (str_is(text, "*")) return v;
    if (str_is(text, "_")) {
        push(p->arena, &p->unders, v);
        return v;
    }
    NameId id = name_id(p, text);
    Name *n = &p->names.at[id];
    Val before = name_val(p, id);
    if (before && before == n->missing) return n->val = v; /* its earlier use has been reported */
    if (before) {
        diag(p->cx->diags, span, "'%.*s' is bound twice", SF(text));
        p->misnamed++;
        diag_note(p->cx->diags, val_info(p->cx, before)->span, "first here");
        return v;
    }
    push(p->arena, &p->hidden, ((Hidden){id, n->val, n->scope}));
    n->val = v;
    n->scope = scope_now(p)->number;
    return v;
}

Val name_under(Parser *p, bool fits(const Ctx *, Type, Type), Type wanted) {
    const Scope *s = scope_now(p);
    uint32_t from = s->unders, end = p->unders.n;
    while (end > from && p->unders.at[end - 1] >= s->first_result && p->unders.at[end - 1] < s->end_result) end--;
    for (uint32_t i = end; fits && wanted && i-- > from;)
        if (fits(p->cx, val_type(p->cx, p->unders.at[i]), wanted)) return p->unders.at[i];
    return end > from ? p->unders.at[end - 1] : 0;
}

/* The closest name in scope. */
static Str similar(Parser *p, Str s) {
    enum { ENOUGH = 20, LETTERS = 3 };
    Similar near = similar_to(s, edits_of(s, LETTERS));
    if (diag_errors(p->cx->diags) > ENOUGH) return near.best; /* nobody reads that many */
    each(const Name, n, p->names)
        if (n->scope == scope_now(p)->number && n->val && n->val != n->missing) similar_offer(&near, n->text);
    return near.best;
}

Val name_use(Parser *p, uint32_t token) {
    Str text = tok_text(p, token);
    Span span = toks_span(p, token, token + 1);
    NameId id = name_id(p, text);
    Val v = str_is(text, "_") ? name_under(p, NULL, 0) : name_val(p, id);
    const Scope *s = scope_now(p);
    if (v && !(v >= s->first_result && v < s->end_result)) return v;
    if (s->damaged) return val_new(p->cx, 0, span);
    Str near = similar(p, text);
    p->misnamed++;
    if (near.n)
        diag(p->cx->diags, span, "'%.*s' is not defined; did you mean '%.*s'?", SF(text), SF(near));
    else
        diag(p->cx->diags, span, "'%.*s' is not defined%s", SF(text), v ? " before this equation" : "");
    Val outer = p->names.at[id].val;
    if (outer && !v) {
        diag_note(p->cx->diags, val_info(p->cx, outer)->span,
                  "'%.*s' belongs to the jaxpr around; a jaxpr sees only its own variables", SF(text));
    }
    Val made = val_new(p->cx, 0, span); /* so that it is reported only once */
    val_info(p->cx, made)->name = text;
    if (!v && !str_is(text, "_")) {
        Name *n = &p->names.at[id];
        push(p->arena, &p->hidden, ((Hidden){id, n->val, n->scope}));
        n->val = n->missing = made;
        n->scope = scope_now(p)->number;
    }
    return made;
}
