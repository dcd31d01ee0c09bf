/* remat, remat2, checkpoint: what the backward part needs of their program is computed again there, but for what the
   policy saves. The policy is known by its text only. */
#include "scan.h"

/* ---- policies */
typedef enum { SAVE_NOTHING, SAVE_EVERYTHING, SAVE_DOTS, SAVE_PLAIN_DOTS, SAVE_NAMES, SAVE_OTHER_NAMES } Saves;
typedef struct {
    Saves saves;
    Str text;
} Policy;
/* What a text holds, and what that saves; the first that fits. */
static const struct {
    const char *text;
    Saves saves;
} policies[] = {
    {"nothing_saveable", SAVE_NOTHING},
    {"everything_saveable", SAVE_EVERYTHING},
    {"only_if_no_batch_dims=False", SAVE_DOTS},
    {"only_if_no_batch_dims=True", SAVE_PLAIN_DOTS},
    {"dots_with_no_batch_dims", SAVE_PLAIN_DOTS},
    {"dot_with_no_batch_dims", SAVE_PLAIN_DOTS},
    {"dots_saveable", SAVE_DOTS},
    {"checkpoint_dots", SAVE_DOTS},
    {"SaveOnlyTheseNames", SAVE_NAMES},
    {"SaveAnyNamesButThese", SAVE_OTHER_NAMES},
};
static bool holds(Str text, Str part) { return part.n && memmem(text.at, text.n, part.at, part.n) != NULL; }
static void put_text(Text *to, const Value *v) {
    text_put(to, v->s);
    if (v->kind == V_BOOL) text_put(to, v->i ? S("True") : S("False"));
    if (v->kind == V_PAIR) text_put(to, S("="));
    for (uint32_t i = 0; (v->kind == V_LIST || v->kind == V_PAIR) && i < v->list.n; i++) put_text(to, &v->list.at[i]);
}
static Policy policy_of(Tx *tx, const Eqn *e) {
    const Param *p = param_find(e, K_policy);
    Text text = {.arena = tx->cx->arena};
    if (!p || p->value.kind == V_NONE) return (Policy){SAVE_NOTHING, {0}};
    put_text(&text, &p->value);
    const Str whole = {text.at, text.n};
    if (!holds(whole, S("<locals>")))
        for (size_t i = 0; i < sizeof policies / sizeof *policies; i++)
            if (holds(whole, (Str){policies[i].text, (uint32_t)strlen(policies[i].text)}))
                return (Policy){policies[i].saves, whole};
    diag_warn(tx->cx->diags, W_unknown_policy, e->span,
              "%s: what its policy saves is not in the text: it saves nothing", prim_name[e->prim]);
    return (Policy){SAVE_NOTHING, whole};
}
static bool saves(const Ctx *cx, const Policy *p, const Eqn *e) {
    bool dot = e->prim == P_dot_general, named = e->prim == P_name;
    switch (p->saves) {
    case SAVE_NOTHING: return false;
    case SAVE_EVERYTHING: return true;
    case SAVE_DOTS: return dot || e->prim == P_conv_general_dilated;
    case SAVE_PLAIN_DOTS: return dot && !param_find(e, K_dimension_numbers)->value.list.at[2].ints.n;
    default: break;
    }
    Str quoted = str_format(cx->arena, "'%.*s'", SF(param_word(e, K_name)));
    return named && holds(p->text, quoted) == (p->saves == SAVE_NAMES);
}

/* ---- split */
typedef struct {
    Inner known;   /* takes the known inputs; returns the known results, then those saved */
    Inner unknown; /* takes the known inputs, those saved, the unknown inputs */
    Bits out;
    uint32_t saved;
} MadeRemat;
typedef struct {
    Tx *tx;
    const MadeSplit *split;
    const Jaxpr *j;    /* the known program, calls that give residuals opened */
    Val *residuals;    /* as values of `j` */
    uint32_t captured; /* inputs */
    Intern needed;
    Vals list; /* those saved */
    bool *again;
    bool apart; /* the known program shares nothing with what is computed again, which needs more of loops */
} Remat;

static void note(void *user, Val v) { intern(user, &v, sizeof v, NULL); }
/* What is saved, each after the scalars that are its extents, and which equations run again. */
static void choose(Remat *r, const Policy *p) {
    Ctx *cx = r->tx->cx;
    uint32_t most = 0;
    Intern extents = {.arena = cx->arena}; /* of what is saved */
    r->needed.arena = cx->arena;
    for (uint32_t i = 0; i < r->split->nresiduals; i++) note(&r->needed, r->residuals[i]);
    each(const Eqn, e, r->j->eqns) most += e->out.n;
    Vals saved = vals_new(cx->arena, most);
    r->again = arena_new(cx->arena, bool, r->j->eqns.n + 1);
    for (uint32_t i = r->j->eqns.n; i-- > 0;) {
        const Eqn *e = &r->j->eqns.at[i];
        bool once = saves(cx, p, e) || effect_kept(r->tx, e);
        for (uint32_t k = e->out.n; k-- > 0;) {
            Val v = e->out.at[k];
            bool extent = is_among(&extents, v);
            if (extent || (once && is_among(&r->needed, v))) {
                vals_push(&saved, v);
                type_extents(cx, val_type(cx, v), note, &extents);
            } else {
                r->again[i] |= is_among(&r->needed, v);
            }
        }
        if (r->again[i]) eqn_takes(cx, e, note, &r->needed);
    }
    r->list = vals_new(cx->arena, most);
    while (saved.n) vals_push(&r->list, saved.at[--saved.n]);
}
/* The program with values of its own, those of nested programs included. */
typedef struct {
    Ctx *cx;
    Memo memo;
} Own;
static Jaxpr *own_program(void *user, const Jaxpr *j) {
    Own *own = user;
    if (*memo_slot(&own->memo, j)) return *memo_slot(&own->memo, j);
    const ValMap same = {.cx = own->cx, .sparse = true};
    ValMap map = same;
    Eqns eqns = eqns_for(own->cx, j);
    each(const Eqn, e, j->eqns) push(own->cx->arena, &eqns, eqn_rewrite(&same, e, own_program, own));
    const Jaxpr *with = jaxpr_with(own->cx, j, eqns, j->out);
    return *memo_slot(&own->memo, j) = (Jaxpr *)program_copied(own->cx, with, &map, NULL, 0);
}
/* A program without what its results do not need, apart from the other programs that run what it runs. */
static Jaxpr *alone(Ctx *cx, const Jaxpr *j) {
    Own own = {cx, {.arena = cx->arena}};
    return own_program(&own, pass_dce(cx, j));
}
/* The known program, which returns what is saved in place of the residuals. */
static Inner known_again(const Remat *r) {
    const Jaxpr *j = r->j;
    Inner known = r->split->known;
    Vals results = vals_part(j->out, 0, j->out.n - r->split->nmore);
    known.j = jaxpr_with(r->tx->cx, j, j->eqns, vals_joined(r->tx->cx->arena, 2, (Vals[]){results, r->list}));
    if (r->apart) known.j = alone(r->tx->cx, known.j);
    known.in = vals_part(known.j->in, r->captured, j->in.n - r->captured);
    return known;
}
/* The unknown program, which takes the known inputs, what is saved, whose extents they may be, and the unknown ones. */
static Inner unknown_again(const Remat *r, Builder *b) {
    Arena *arena = b->cx->arena;
    ValMap map = {.cx = b->cx, .sparse = true};
    const Jaxpr *u = r->split->unknown.j;
    Inner i = b_inner(b, 0, NULL);
    i.in = vals_new(arena, r->list.n + r->j->in.n + u->in.n);
    Val *in = arena_new(arena, Val, u->in.n + 1);
    for (uint32_t k = 0; k < r->captured; k++) valmap_put(&map, r->j->in.at[k], r->split->known.captured.at[k]);
    for (uint32_t k = r->captured; k < r->j->in.n; k++) vals_push(&i.in, b_input_like(b, &map, r->j->in.at[k]));
    each(const Val, v, r->list) vals_push(&i.in, b_input_like(b, &map, *v));
    for (uint32_t k = 0; k < r->j->eqns.n; k++)
        if (r->again[k]) b_copied_pure(r->tx, b, &map, &r->j->eqns.at[k]);
    for (uint32_t k = 0; k < r->split->nresiduals; k++) {
        in[k] = valmap_get(&map, r->residuals[k]);
        valmap_put(&map, u->in.at[k], in[k]);
    }
    for (uint32_t k = r->split->nresiduals; k < u->in.n; k++) {
        in[k] = b_input_like(b, &map, u->in.at[k]);
        vals_push(&i.in, in[k]);
    }
    Vals out = b_call(b, u, u->in.n, in);
    b_inner_end(b, &i, out.n, out.at);
    return i;
}
/* What is computed again of the known program of `split`, by a policy. */
static bool chosen_again(Tx *tx, const MadeSplit *split, const Policy *p, Remat *r) {
    Ctx *cx = tx->cx;
    *r = (Remat){.tx = tx, .split = split, .captured = split->known.captured.n};
    ValMap opened = {.cx = cx, .sparse = true};
    r->residuals = arena_new(cx->arena, Val, split->nresiduals + 1);
    for (uint32_t i = 0; i < split->nresiduals; i++) r->residuals[i] = split->residuals[i].value;
    r->j = program_copied(cx, split->known.j, &opened, r->residuals, split->nresiduals);
    if (p->saves != SAVE_NOTHING) r->j = calls_opened(cx, r->j, &opened, r->residuals, split->nresiduals);
    if (r->j) choose(r, p);
    return r->j != NULL;
}
static const MadeRemat *make(Tx *tx, Builder *b, const Eqn *e, const Jaxpr *body, const MadeSplit *split) {
    Ctx *cx = tx->cx;
    Policy p = policy_of(tx, e);
    MadeRemat *m = arena_new(cx->arena, MadeRemat, 1);
    Remat r;
    if (!chosen_again(tx, split, &p, &r)) return NULL;
    r.apart = tx_wrote(tx, body);
    m->known = known_again(&r), m->out = split->out, m->saved = r.list.n;
    Builder own = {.cx = cx, .mesh = b->mesh, .span = e->span};
    m->unknown = unknown_again(&r, &own);
    return own.failed ? NULL : m;
}
static const MadeRemat *made_remat(SplitEqn *s, const Jaxpr *body) {
    bool outer = s->tx->in_remat;
    s->tx->in_remat |= !tx_wrote(s->tx, body);
    const MadeSplit *split = made_split(s->tx, s->b, body, (Bits){s->unknown, s->e->in.n}, (Bits){0});
    s->tx->in_remat = outer;
    if (!split) return NULL;
    const Param *policy = param_find(s->e, K_policy);
    const void *key[] = {split, policy ? &policy->value : NULL};
    const void **slot = loop_slot(s->tx, key, sizeof key);
    if (!*slot) *slot = make(s->tx, s->b, s->e, body, split);
    s->tx->failed |= !*slot;
    return *slot;
}

/* ---- too many residuals */
bool split_again(Tx *tx, Builder *b, Bits unknown, MadeSplit *m) {
    const MadeSplit full = *m;
    Remat r;
    if (!chosen_again(tx, &full, &(Policy){SAVE_NOTHING, {0}}, &r)) return false;
    uint32_t n = 0, nknown = r.j->out.n - full.nmore;
    Residual *all = arena_new(tx->cx->arena, Residual, r.captured + r.list.n + r.j->in.n + 1);
    m->known = known_again(&r), m->unknown = unknown_again(&r, b);
    each(const Val, v, m->unknown.captured) all[n++] = (Residual){.kind = RESIDUAL_CONST, .value = *v};
    for (uint32_t i = 0, k = r.captured; i < unknown.n; i++)
        if (!unknown.at[i]) all[n++] = (Residual){.kind = RESIDUAL_INPUT, .value = r.j->in.at[k++], .at = i};
    for (uint32_t k = 0; k < r.list.n; k++)
        all[n++] = (Residual){.kind = RESIDUAL_RESULT, .value = r.list.at[k], .at = nknown + k};
    m->unknown.in = m->unknown.j->in, m->unknown.captured = (Vals){0};
    m->residuals = all, m->nresiduals = n, m->nmore = r.list.n;
    return !b->failed;
}

/* ---- the equation */

/* The equation as it is in the backward part. */
static Eqn differentiated(Arena *arena, const Eqn *e) {
    Eqn new = *e;
    new.params = (Params){arena_new(arena, Param, e->params.n + 1), 0};
    each(const Param, p, e->params)
        if (p->key != K_differentiated) new.params.at[new.params.n++] = *p;
    new.params.at[new.params.n++] = p_bool(K_differentiated, true);
    return new;
}
bool split_remat(SplitEqn *s) {
    Tx *tx = s->tx;
    const Eqn *e = s->e;
    Vals operands;
    const Jaxpr *body = eqn_body(tx->cx->arena, e, &operands);
    const MadeRemat *m = made_remat(s, body);
    ValList in = {0};
    if (!m) return false;
    Vals y = split_known(s, &m->known, m->out);
    add_where(tx, &in, e->in.at, (Bits){s->unknown, e->in.n}, false);
    add_nonzero(tx, &in, m->saved, y.n ? y.at + y.n - m->saved : NULL);
    if (m->unknown.j->out.n) add_consts(tx->cx->arena, &s->u->consts, m->unknown.captured);
    Eqn like = differentiated(tx->cx->arena, e);
    return split_unknown(s, &like, &m->unknown, m->out, in);
}
