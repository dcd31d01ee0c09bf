#include "signature.h"
#include "../consts.h"
#include "../print.h"

/* The position of each value in the lists of a signature, counted from 1. */
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

static void number(uint32_t *at, Vals vals) {
    for (uint32_t i = 0; i < vals.n; i++)
        if (!at[vals.at[i]]) at[vals.at[i]] = i + 1;
}

/* The last type comes first, so that an extent is known before the scalar that it names. */
static void print_list(Printer *p, Vals list, Text *out) {
    Str *text = arena_new(p->cx->arena, Str, list.n);
    bool *implicit = arena_new(p->cx->arena, bool, list.n);
    p->extent = arena_new(p->cx->arena, bool, p->cx->nvals);
    for (uint32_t i = list.n; i-- > 0;) {
        implicit[i] = p->extent[list.at[i]];
        text[i] = type_text(p->cx->arena, p->cx->types, val_type(p->cx, list.at[i]), position, p);
    }
    for (uint32_t i = 0; i < list.n; i++)
        text_add(out, "%s(%.*s, %s)", i ? ", " : "", SF(text[i]), implicit[i] ? "False" : "True");
    text_put(out, S("\n"));
}

/* The constants without data, then the inputs. */
static Vals all_inputs(Ctx *cx, const Jaxpr *j) {
    Vals all = {arena_new(cx->arena, Val, (size_t)j->consts.n + j->in.n), 0};
    each(Val, v, j->consts)
        if (!val_info(cx, *v)->data) all.at[all.n++] = *v;
    each(Val, v, j->in) all.at[all.n++] = *v;
    return all;
}

static void print_one(Ctx *cx, const Jaxpr *j, Text *out) {
    Printer p = {.cx = cx};
    Vals in = all_inputs(cx, j);
    p.in = arena_new(cx->arena, uint32_t, cx->nvals);
    p.out = arena_new(cx->arena, uint32_t, cx->nvals);
    number(p.in, in);
    number(p.out, j->out);
    text_put(out, S("in_type: "));
    print_list(&p, in, out);
    p.outputs = true;
    text_put(out, S("out_type: "));
    print_list(&p, j->out, out);
}

/* If there are constants in nested programs: all constants, in the order of --consts. */
static void print_constants(Ctx *cx, const Jaxpr *j, Text *out) {
    Constants all = consts_of(cx, j);
    for (uint32_t i = 0; i < all.n && all.n > all.own; i++) {
        LineCol at = diag_where(cx->diags, val_info(cx, all.at[i].val)->span);
        text_add(out, "const%u: %.*s at %u:%u%s\n", i, SF(constant_text(cx, all.at[i].val)), at.line, at.col,
                 all.at[i].unused ? ", unused" : "");
    }
}

static void print_nested(Ctx *cx, const Jaxpr *j, Intern *seen, Text *out) {
    each(const Eqn, e, j->eqns)
        each(const Param, q, e->params) {
            Jaxprs inner = value_jaxprs(cx->arena, &q->value);
            each(Jaxpr *, k, inner) {
                bool fresh;
                intern(seen, k, sizeof *k, &fresh);
                if (!fresh) continue;
                LineCol at = diag_where(cx->diags, (*k)->span);
                text_add(out, "%u:%u %s.%.*s\n", at.line, at.col, prim_name[e->prim], SF(param_text(q)));
                print_one(cx, *k, out);
                print_nested(cx, *k, seen, out);
            }
        }
}

void signature_print(Ctx *cx, const Jaxpr *j, bool nested, Text *out) {
    Intern seen = {.arena = cx->arena};
    print_one(cx, j, out);
    print_constants(cx, j, out);
    if (nested) print_nested(cx, j, &seen, out);
}
