#include "signature.h"

/* Where the lists of a signature hold each value, counted from 1. */
typedef struct {
    Ctx *cx;
    uint32_t *in, *out; /* by value */
    bool *extent;       /* by value: a dimension of the list being printed */
    bool outputs;       /* which list that is */
} Printer;

static Str position(const void *user, uint32_t v) {
    const Printer *p = user;
    Arena *arena = p->cx->arena;
    p->extent[v] = true;
    if (!p->outputs) return str_format(arena, "DBIdx(%u)", p->in[v] - 1);
    if (p->in[v]) return str_format(arena, "InDBIdx(%u)", p->in[v] - 1);
    return p->out[v] ? str_format(arena, "OutDBIdx(%u)", p->out[v] - 1) : val_name(p->cx, v);
}

static void number(uint32_t *at, Vals vals, uint32_t *n) {
    each(Val, v, vals) {
        ++*n;
        if (!at[*v]) at[*v] = *n;
    }
}

/* The last is read first, so that an extent is known before the scalar that it names. */
static void print_list(Printer *p, Vals a, Vals b, Text *out) {
    uint32_t n = a.n + b.n;
    Str *text = arena_new(p->cx->arena, Str, n + 1);
    bool *implicit = arena_new(p->cx->arena, bool, n + 1);
    p->extent = arena_new(p->cx->arena, bool, p->cx->nvals);
    for (uint32_t i = n; i-- > 0;) {
        Val v = i < a.n ? a.at[i] : b.at[i - a.n];
        implicit[i] = p->extent[v];
        text[i] = type_text(p->cx->arena, p->cx->types, val_type(p->cx, v), position, p);
    }
    for (uint32_t i = 0; i < n; i++)
        text_add(out, "%s(%.*s, %s)", i ? ", " : "", SF(text[i]), implicit[i] ? "False" : "True");
    text_put(out, S("\n"));
}

void signature_print(Ctx *cx, const Jaxpr *j, Text *out) {
    Printer p = {.cx = cx};
    Vals consts = j->consts, none = {0};
    uint32_t n = 0, nout = 0;
    if (cx->nvals && consts.n && val_info(cx, consts.at[0])->data)
        consts = none; /* --consts: no inputs */
    p.in = arena_new(cx->arena, uint32_t, cx->nvals);
    p.out = arena_new(cx->arena, uint32_t, cx->nvals);
    number(p.in, consts, &n);
    number(p.in, j->in, &n);
    number(p.out, j->out, &nout);
    text_put(out, S("in_type: "));
    print_list(&p, consts, j->in, out);
    p.outputs = true;
    text_put(out, S("out_type: "));
    print_list(&p, j->out, none, out);
}
