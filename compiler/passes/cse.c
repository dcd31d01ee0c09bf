/* Replaces an equation by an earlier one with the same primitive, operands, parameters and result types. Equal literals
   are the same operand; operands of commutative primitives are compared in sorted order. Each program is walked by
   itself, shared ones once; values of enclosing programs do not matter. */
#include "rewrite.h"
#include "../control.h"

typedef struct {
    Ctx *cx;
    ValMap map;
    Memo memo;
    Intern literals; /* type and value → number */
    Effects effects;
} Cse;

/* The equations of one program, by key. */
typedef struct {
    Intern table;
    struct {
        Vals *at; /* results */
        uint32_t n, cap;
    } known;
} Scope;

static void put(Text *key, const void *bytes, size_t n) { text_put(key, (Str){bytes, (uint32_t)n}); }

static void put_value(Text *key, const Value *v) {
    put(key, &v->kind, sizeof v->kind);
    bool numbers = v->kind == V_INTS || v->kind == V_DIMS; /* in any brackets */
    if (!numbers) put(key, &v->open, 1);
    put(key, &v->s.n, sizeof v->s.n);
    text_put(key, v->s);
    switch (v->kind) {
    case V_BOOL:
    case V_INT:
    case V_DTYPE: put(key, &v->i, sizeof v->i); break;
    case V_FLOAT: put(key, &v->f, sizeof v->f); break;
    case V_DIM: put(key, &v->dim, sizeof v->dim); break;
    case V_INTS:
        put(key, &v->ints.n, sizeof v->ints.n);
        put(key, v->ints.at, v->ints.n * sizeof *v->ints.at);
        break;
    case V_DIMS:
        put(key, &v->dims.n, sizeof v->dims.n);
        put(key, v->dims.at, v->dims.n * sizeof *v->dims.at);
        break;
    case V_JAXPR: put(key, &v->jaxpr, sizeof v->jaxpr); break;
    case V_JAXPRS:
        put(key, &v->jaxprs.n, sizeof v->jaxprs.n);
        put(key, v->jaxprs.at, v->jaxprs.n * sizeof *v->jaxprs.at);
        break;
    case V_LIST:
    case V_PAIR:
        put(key, &v->list.n, sizeof v->list.n);
        for (uint32_t i = 0; i < v->list.n; i++) put_value(key, &v->list.at[i]);
        break;
    default:
        break; /* V_NONE has no content; that of the others, V_WORD, V_STR, …, is the text `s`, which was put first */
    }
}

/* A number for an operand: the value of a variable, or a number that equal literals share. */
static uint64_t operand_key(Cse *c, Val v) {
    const ValInfo *info = val_info(c->cx, v);
    const Lit *lit = info->lit;
    if (!lit || lit->kind == LIT_ARRAY) return v;
    uint64_t key[] = {info->type, lit->kind, lit->negative, lit->i, 0, 0};
    memcpy(&key[4], &lit->re, sizeof lit->re);
    memcpy(&key[5], &lit->im, sizeof lit->im);
    return (uint64_t)intern(&c->literals, key, sizeof key, NULL) + ((uint64_t)1 << 32);
}

static void eqn_key(Cse *c, const Eqn *e, Text *key) {
    uint32_t head[] = {e->prim, e->in.n, e->out.n};
    put(key, head, sizeof head);
    uint64_t pair[2];
    bool commutes = prim_is(e->prim, COMMUTES);
    for (uint32_t i = 0; i < e->in.n; i++) {
        uint64_t k = operand_key(c, e->in.at[i]);
        if (i < 2) pair[i] = k;
        if (i >= 2 || !commutes) put(key, &k, sizeof k);
    }
    if (commutes && e->in.n == 2) {
        uint64_t sorted[2] = {pair[0] < pair[1] ? pair[0] : pair[1], pair[0] < pair[1] ? pair[1] : pair[0]};
        put(key, sorted, sizeof sorted);
    }
    each(const Val, v, e->out) {
        Type t = val_type(c->cx, *v);
        put(key, &t, sizeof t);
    }
    each(const Param, p, e->params) {
        if (calls_function(e) && p->key == K_name) continue; /* the name of a call does not matter */
        if (p->value.kind == V_NONE) continue;               /* as if it were not there */
        put(key, &p->key, sizeof p->key);
        uint32_t n = p->key == K_other ? p->name.n : 0;
        put(key, &n, sizeof n);
        put(key, p->name.at, n);
        put_value(key, &p->value);
    }
}

static Jaxpr *cse_jaxpr(void *user, const Jaxpr *j) {
    Cse *c = user;
    Arena *arena = c->cx->arena;
    if (*memo_slot(&c->memo, j)) return *memo_slot(&c->memo, j);
    Scope scope = {.table.arena = arena};
    Text key = {.arena = arena};
    Eqns eqns = eqns_for(c->cx, j);
    each(const Eqn, old, j->eqns) {
        Eqn e = eqn_rewrite(&c->map, old, cse_jaxpr, c);
        bool fresh = true;
        uint32_t n = 0;
        bool extent = false;
        each(const Val, v, e.out) extent |= dim_is_bound(c->cx->types, *v); /* types refer to it */
        if (e.prim != P_none && e.prim != P_again && !extent && !eqn_has_effects(&c->effects, &e)) {
            key.n = 0;
            eqn_key(c, &e, &key);
            n = intern(&scope.table, key.at, key.n, &fresh);
            if (fresh) push(arena, &scope.known, e.out);
        }
        if (fresh) push(arena, &eqns, e);
        for (uint32_t i = 0; i < e.out.n && !fresh; i++) valmap_put(&c->map, e.out.at[i], scope.known.at[n].at[i]);
    }
    Jaxpr *new = jaxpr_with(c->cx, j, eqns, vals_rewrite(&c->map, j->out));
    return *memo_slot(&c->memo, j) = new;
}

Jaxpr *pass_cse(Ctx *cx, const Jaxpr *j) {
    Cse c = {.cx = cx, .map.cx = cx, .memo.arena = cx->arena, .literals.arena = cx->arena, .effects.cx = cx};
    return cse_jaxpr(&c, j);
}
