#include "ir.h"

const char *const prim_name[NPRIMS] = {
    [P_none] = "?",
#define PRIM(id, text, ...) [P_##id] = text,
#include "prims.def"
};
static const uint8_t prim_length[NPRIMS] = {
#define PRIM(id, text, ...) [P_##id] = sizeof(text) - 1,
#include "prims.def"
};
enum { ARITY_unary = 1, ARITY_binary = 2, ARITY_ternary = 3, ARITY_params = -1 };
const int8_t prim_arity[NPRIMS] = {
    [P_none] = ARITY_params,
#define PRIM(id, text, arity, ...) [P_##id] = ARITY_##arity,
#include "prims.def"
};
const uint16_t prim_facts[NPRIMS] = {
#define PRIM(id, text, arity, type, simplify, facts, ...) [P_##id] = facts,
#include "prims.def"
};
const char *const param_name[NPARAMS] = {
#define PARAM(id, kind, example) [K_##id] = #id,
#include "params.def"
    [K_other] = "?",
};
const ParamKind param_kind[NPARAMS] = {
#define PARAM(id, kind, example) [K_##id] = kind,
#include "params.def"
    [K_other] = PK_VALUE,
};

static const char *const param_examples[NPARAMS] = {
#define PARAM(id, kind, example) [K_##id] = example,
#include "params.def"
    [K_other] = "None",
};
static const struct {
    ValueKind value;
    const char *words;
} kind_info[] = {
#define KIND(kind, value, words) [kind] = {value, words},
#include "params.def"
};
_Static_assert(sizeof kind_info / sizeof *kind_info == PK_VALUE + 1, "a row for each kind");
bool kind_holds(ParamKind kind, const Value *v) {
    bool number = v->kind == V_BOOL || v->kind == V_FLOAT;
    if (kind == PK_LIST) return !number && v->kind != V_INT;
    if (kind == PK_NAME) return !number;
    return kind_info[kind].value == V_NONE || v->kind == kind_info[kind].value;
}
const char *kind_words(ParamKind kind) { return kind_info[kind].words; }

const char *param_example(Prim prim, ParamKey key) {
    static const struct {
        Prim prim;
        ParamKey key;
        const char *example;
    } own[] = {
#define EXAMPLE(prim, id, example) {P_##prim, K_##id, example},
#include "params.def"
    };
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (own[i].prim == prim && own[i].key == key) return own[i].example;
    return param_examples[key];
}

/* The rows of takes.def: words separated by blanks. */
static const struct {
    const char *names;
} prim_takes[NPRIMS] = {
#define TAKES(prim, names) [P_##prim] = {names},
#include "takes.def"
};
bool prim_param(Prim prim, const char **at, Str *name) {
    const char *from = *at ? *at : prim_takes[prim].names;
    if (!from || !*from) return false;
    *name = (Str){from, (uint32_t)strcspn(from, " ")};
    *at = from + name->n + (from[name->n] == ' ');
    return true;
}
bool prim_has(Prim prim, Str param) {
    Str name;
    for (const char *at = NULL; prim_param(prim, &at, &name);)
        if (str_eq(name, param)) return true;
    return false;
}

Prim prim_named(Str s) {
    for (Prim p = P_none + 1; p < NPRIMS; p++)
        if (prim_length[p] == s.n && memcmp(prim_name[p], s.at, s.n) == 0) return p;
    return P_none;
}

Prim prim_similar(Str s) {
    enum { LETTERS = 3 };
    Prim best = P_none;
    Similar near = similar_to(s, edits_of(s, LETTERS));
    for (Prim p = P_none + 1; p < NPRIMS; p++)
        if (!prim_is(p, INTERNAL) && similar_offer(&near, (Str){prim_name[p], prim_length[p]})) best = p;
    return best;
}

ParamKey param_named(Str s) {
    for (ParamKey k = 0; k < K_other; k++)
        if (str_is(s, param_name[k])) return k;
    return K_other;
}

ParamKey param_similar(Str s) {
    enum { LETTERS = 4 };
    ParamKey best = K_other;
    Similar near = similar_to(s, edits_of(s, LETTERS));
    for (ParamKey k = 0; k < K_other; k++)
        if (similar_offer(&near, str(param_name[k]))) best = k;
    return best;
}

/* ---- values: in blocks, so that a ValInfo never moves */

Ctx *ctx_new(Arena *arena) {
    Ctx *cx = arena_new(arena, Ctx, 1);
    *cx = (Ctx){.arena = arena, .diags = diags_new(arena), .types = types_new(arena), .values = arena};
    cx->dim_names.arena = arena;
    val_new(cx, 0, (Span){0}); /* number 0 is none, */
    val_new(cx, 0, (Span){0}); /* the next one VAL_FAILED */
    return cx;
}

Val val_new(Ctx *cx, Type type, Span span) {
    uint32_t block = cx->nvals / VAL_BLOCK;
    if (cx->nvals % VAL_BLOCK == 0) {
        if ((block & (block - 1)) == 0) {
            ValInfo **blocks = arena_new(cx->values, ValInfo *, block ? 2 * (size_t)block : 1);
            if (block) memcpy(blocks, cx->blocks, block * sizeof *blocks);
            cx->blocks = blocks;
        }
        cx->blocks[block] = arena_new(cx->values, ValInfo, VAL_BLOCK);
    }
    cx->blocks[block][cx->nvals % VAL_BLOCK] = (ValInfo){.type = type, .span = span};
    return cx->nvals++;
}

Val val_literal(Ctx *cx, Type type, Lit lit, Span span) {
    Lit *kept = arena_new(cx->arena, Lit, 1);
    *kept = lit;
    Val v = val_new(cx, type, span);
    val_info(cx, v)->lit = kept;
    return v;
}

Str val_name(const Ctx *cx, Val v) {
    const ValInfo *info = val_info(cx, v);
    if (info->name.n) return info->name;
    return str_format(cx->arena, "%%%u", v);
}

static Str name_of(const void *cx, uint32_t val) { return val_name(cx, val); }

Str ctx_type_text(const Ctx *cx, Type t) { return type_text(cx->arena, cx->types, t, name_of, cx); }
Str ctx_dim_text(const Ctx *cx, Dim d) { return dim_text(cx->arena, cx->types, d, name_of, cx); }

/* ---- parameters */

const Param *param_find(const Eqn *e, ParamKey key) {
    each(const Param, p, e->params)
        if (p->key == key) return p;
    return NULL;
}

static const Value *value_of(const Eqn *e, ParamKey key, ValueKind kind) {
    const Param *p = param_find(e, key);
    return p && p->value.kind == kind ? &p->value : NULL;
}

int64_t param_int(const Eqn *e, ParamKey key, int64_t otherwise) {
    const Value *v = value_of(e, key, V_INT);
    if (v) return v->i;
    v = value_of(e, key, V_DIM);
    return v && dim_is_const(v->dim) ? v->dim : otherwise;
}

int64_t param_number(const Eqn *e, ParamKey key) {
    const Value *v = &param_find(e, key)->value;
    assert(v->kind == V_INT || (v->kind == V_DIM && dim_is_const(v->dim)));
    return v->kind == V_INT ? v->i : v->dim;
}

bool param_bool(const Eqn *e, ParamKey key) {
    const Value *v = value_of(e, key, V_BOOL);
    return v && v->i;
}

Ints param_ints(const Eqn *e, ParamKey key) {
    const Value *v = value_of(e, key, V_INTS);
    return v ? v->ints : (Ints){0};
}

Dims param_dims(const Eqn *e, ParamKey key) {
    const Value *v = value_of(e, key, V_DIMS);
    return v ? v->dims : (Dims){0};
}

Dtype param_dtype(const Eqn *e, ParamKey key) {
    const Value *v = value_of(e, key, V_DTYPE);
    return v ? (Dtype)v->i : DT_none;
}

Str value_name(const Value *v) {
    bool quoted = v->kind == V_STR && v->s.n >= 2;
    return quoted ? (Str){v->s.at + 1, v->s.n - 2} : v->s;
}
Str param_word(const Eqn *e, ParamKey key) {
    const Value *v = value_of(e, key, V_WORD);
    return v ? v->s : S("");
}

bool rounds_to_even(const Eqn *e) {
    Str s = param_word(e, K_rounding_method);
    return str_is(s, "1") || (s.n > 4 && memcmp(s.at + s.n - 4, "EVEN", 4) == 0);
}

Jaxpr *param_jaxpr(const Eqn *e, ParamKey key) {
    const Value *v = value_of(e, key, V_JAXPR);
    return v ? v->jaxpr : NULL;
}

Jaxprs param_jaxprs(const Eqn *e, ParamKey key) {
    const Value *v = value_of(e, key, V_JAXPRS);
    return v ? (Jaxprs){v->jaxprs.at, v->jaxprs.n} : (Jaxprs){0};
}

const Value *value_field(const Value *record, const char *field) {
    if (record->kind != V_LIST) return NULL;
    for (uint32_t i = 0; i < record->list.n; i++) {
        const Value *v = &record->list.at[i];
        if (v->kind == V_PAIR && v->list.n == 1 && str_is(v->s, field)) return &v->list.at[0];
    }
    return NULL;
}

Jaxpr *value_jaxpr(const Value *record, const char *field) {
    const Value *v = value_field(record, field);
    while (v && v->kind == V_LIST && v->list.n) v = &v->list.at[v->list.n - 1];
    return v && v->kind == V_JAXPR ? v->jaxpr : NULL;
}

typedef struct {
    Jaxpr **at;
    uint32_t n, cap;
} JaxprList;

static void collect(Arena *arena, const Value *v, JaxprList *found) {
    if (v->kind == V_JAXPR && v->jaxpr) push(arena, found, v->jaxpr);
    if (v->kind == V_JAXPRS)
        for (uint32_t i = 0; i < v->jaxprs.n; i++) push(arena, found, v->jaxprs.at[i]);
    if (v->kind == V_LIST || v->kind == V_PAIR)
        for (uint32_t i = 0; i < v->list.n; i++) collect(arena, &v->list.at[i], found);
}

Jaxprs value_jaxprs(Arena *arena, const Value *v) {
    JaxprList found = {0};
    collect(arena, v, &found);
    return (Jaxprs){found.at, found.n};
}

bool value_has_jaxpr(const Value *v) {
    if (v->kind == V_JAXPR || v->kind == V_JAXPRS) return true;
    if (v->kind != V_LIST && v->kind != V_PAIR) return false;
    for (uint32_t i = 0; i < v->list.n; i++)
        if (value_has_jaxpr(&v->list.at[i])) return true;
    return false;
}
Jaxprs eqn_jaxprs(Arena *arena, const Eqn *e) {
    JaxprList found = {0};
    each(const Param, p, e->params) collect(arena, &p->value, &found);
    return (Jaxprs){found.at, found.n};
}

typedef struct {
    Intern seen;
    JaxprList found;
} Within;
static void find_within(Within *w, const Jaxpr *j) {
    bool fresh;
    intern(&w->seen, &j, sizeof j, &fresh);
    if (!fresh) return;
    each(const Eqn, e, j->eqns) {
        Jaxprs inner = e->params.n ? eqn_jaxprs(w->seen.arena, e) : (Jaxprs){0};
        each(Jaxpr *, k, inner) find_within(w, *k);
    }
    push(w->seen.arena, &w->found, (Jaxpr *)j);
}
Jaxprs jaxprs_within(Arena *arena, const Jaxpr *j) {
    Within w = {.seen.arena = arena};
    find_within(&w, j);
    return (Jaxprs){w.found.at, w.found.n};
}
bool jaxpr_uses(Arena *a, const Jaxpr *j, Prim prim) {
    Jaxprs all = jaxprs_within(a, j);
    each(Jaxpr *, k, all)
        each(const Eqn, e, (*k)->eqns)
            if (e->prim == prim) return true;
    return false;
}
