/* Keys used twice (JAX enhancement proposal 9263). Drawing from a key or splitting it uses the key; random_fold_in
   gives a new key and leaves the old one fresh, as in jax.experimental.key_reuse. Two values are the same key if they
   are made in the same way: by equal slices of one array of keys, by folding one number into one key. So a key is a
   number, interned by how it was made; a slice is part of the array it is taken from, and using either uses the other.
   How a nested program uses the keys among its inputs is determined once and applied to the operands of every call. */
#include "control.h"
#include "lint.h"

typedef uint32_t Key; /* 0: none */

/* A place where a key is used. */
typedef struct {
    Span at;         /* the operand; n = 0: not used */
    Str name;        /* of the operand */
    Span by;         /* the primitive; for a use in a nested program, its call */
    const Eqn *e;    /* the equation of the program being examined … */
    uint32_t branch; /* … and which of its branches: only one of them runs */
} Use;

enum { MOST_INPUTS = 4, MOST_SIZE = 32, MOST_USES = 32 };

typedef struct {
    Val root;      /* a value that no equation makes; 0: made by `e`, or a literal */
    const Eqn *e;  /* NULL: a literal */
    uint64_t what; /* primitive, parameters and result of e; the value of a literal */
    uint32_t n, size;
    Key in[MOST_INPUTS];
    Use used, part_used;
    const Eqn *warned; /* the equation that was reported last */
} KeyInfo;

/* Uses of keys that come from a program's inputs. */
typedef struct {
    struct {
        Key key;
        Use use;
    } at[MOST_USES];
    uint32_t n;
} Uses;

typedef struct {
    Ctx *cx;
    Intern ids, texts; /* of keys; of parameters */
    struct {
        KeyInfo *at;
        uint32_t n, cap;
    } keys;
    Key *key;           /* by value; 0: not computed yet */
    uint32_t *position; /* by value: 1 + number among its program's inputs; 0: none */
    Intern programs;    /* Jaxpr pointers */
    struct {
        Uses **at;
        uint32_t n, cap;
    } uses;    /* by program */
    Uses *now; /* of the program being examined */
} Keys;

/* ---- how values are made */

typedef enum {
    MAKES_NEW,
    MAKES_SAME, /* the same keys, in another form */
    MAKES_PART, /* some of the keys of operand 0 */
    MAKES_LIKE, /* keys that are equal if operands and parameters are */
} Makes;
static const uint8_t makes[NPRIMS] = {
    [P_reshape] = MAKES_SAME,
    [P_squeeze] = MAKES_SAME,
    [P_expand_dims] = MAKES_SAME,
    [P_transpose] = MAKES_SAME,
    [P_broadcast_in_dim] = MAKES_SAME,
    [P_copy] = MAKES_SAME,
    [P_device_put] = MAKES_SAME,
    [P_convert_element_type] = MAKES_SAME,
    [P_random_wrap] = MAKES_SAME,
    [P_random_unwrap] = MAKES_SAME,
    [P_slice] = MAKES_PART,
    [P_dynamic_slice] = MAKES_PART,
    [P_gather] = MAKES_PART,
    [P_split] = MAKES_PART,
    [P_unstack] = MAKES_PART,
    [P_random_fold_in] = MAKES_LIKE,
};

static Key key_intern(Keys *k, KeyInfo info) {
    struct {
        uint64_t what;
        Val root;
        uint32_t n;
        Key in[MOST_INPUTS];
    } id = {.what = info.what, .root = info.root, .n = info.n};
    bool fresh;
    memcpy(id.in, info.in, sizeof id.in);
    info.used = info.part_used = (Use){0};
    info.warned = NULL;
    Key key = 1 + intern(&k->ids, &id, sizeof id, &fresh);
    if (fresh) push(k->cx->arena, &k->keys, info);
    return key;
}

static KeyInfo *info_of(Keys *k, Key key) { return &k->keys.at[key - 1]; }

static Key key_of(Keys *k, Val v) {
    const Lit *l = val_info(k->cx, v)->lit;
    bool integer = l && (l->kind == LIT_INT || l->kind == LIT_BOOL);
    if (k->key[v]) return k->key[v];
    KeyInfo info = {.root = integer ? 0 : v, .size = 1};
    if (integer) info.what = l->negative ? -l->i : l->i;
    return k->key[v] = key_intern(k, info);
}

/* The number of the parameters' text: equal text has equal numbers. */
static uint32_t params_number(Keys *k, const Eqn *e) {
    if (!e->params.n) return 0;
    Span from = e->params.at[0].span, to = e->params.at[e->params.n - 1].value.span;
    if (to.at + to.n <= from.at) return 0;
    Str text = diags_text(k->cx->diags, from.file);
    return 1 + intern(&k->texts, text.at + from.at, to.at + to.n - from.at, NULL);
}

static void make(Keys *k, const Eqn *e) {
    if (makes[e->prim] == MAKES_SAME && e->in.n && e->out.n == 1) {
        k->key[e->out.at[0]] = key_of(k, e->in.at[0]);
        return;
    }
    KeyInfo info = {.e = e, .n = e->in.n, .size = 1};
    for (uint32_t i = 0; i < e->in.n && i < MOST_INPUTS; i++) {
        info.in[i] = key_of(k, e->in.at[i]);
        info.size += info_of(k, info.in[i])->size;
    }
    if (e->in.n > MOST_INPUTS || info.size > MOST_SIZE) return;
    for (uint32_t i = 0; i < e->out.n && i <= UINT16_MAX; i++) {
        info.what = (uint64_t)params_number(k, e) << 32 | i << 16 | e->prim;
        k->key[e->out.at[i]] = key_intern(k, info);
    }
}

/* The array of keys that it is part of; 0: none. */
static Key whole_of(Keys *k, Key key) {
    const KeyInfo *info = info_of(k, key);
    return info->e && makes[info->e->prim] == MAKES_PART ? info->in[0] : 0;
}

/* ---- uses */

/* An earlier use of the key, of a part of it or of its whole, such that both may run. */
static const Use *earlier_use(Keys *k, Key key, const Use *use) {
    const KeyInfo *info = info_of(k, key);
    const Use *found[2 + MOST_SIZE] = {&info->used, &info->part_used};
    uint32_t n = 2;
    for (Key whole = whole_of(k, key); whole && n < 2 + MOST_SIZE; whole = whole_of(k, whole))
        found[n++] = &info_of(k, whole)->used;
    for (uint32_t i = 0; i < n; i++)
        if (found[i]->at.n && !(found[i]->e == use->e && found[i]->branch != use->branch)) return found[i];
    return NULL;
}

/* 1 + the number of the input that the key is or is derived from; 0: it is derived from a constant or from a computed
   value. */
static uint32_t source(Keys *k, Key key) {
    const KeyInfo *info = info_of(k, key);
    while (!info->root && info->n) info = info_of(k, info->in[0]);
    return k->position[info->root];
}

static void mark(Keys *k, Key key, const Use *use) {
    KeyInfo *info = info_of(k, key);
    if (info->used.at.n) return;
    info->used = *use;
    for (Key whole = whole_of(k, key); whole; whole = whole_of(k, whole))
        if (!info_of(k, whole)->part_used.at.n) info_of(k, whole)->part_used = *use;
    if (k->now->n == MOST_USES || !source(k, key)) return;
    k->now->at[k->now->n].key = key;
    k->now->at[k->now->n++].use = *use;
}

static void note_inner(Keys *k, const Use *use) {
    if (use->by.at != use->e->span.at) diag_note(k->cx->diags, use->by, "used here");
}

static void warn_second(Keys *k, const Use *use, const Use *before) {
    Diags *d = k->cx->diags;
    diag_warn(d, W_key_reuse, use->at, "key '%.*s' is used a second time", SF(use->name));
    note_inner(k, use);
    if (str_eq(use->name, before->name))
        diag_note(d, before->at, "first here");
    else
        diag_note(d, before->at, "first here, as '%.*s'", SF(before->name));
    note_inner(k, before);
}

static void use_key(Keys *k, Key key, Use use) {
    const Use *before = earlier_use(k, key, &use);
    if (before && info_of(k, key)->warned != use.e) {
        warn_second(k, &use, before);
        info_of(k, key)->warned = use.e;
    }
    mark(k, key, &use);
}

/* ---- nested programs */

/* A nested program and the operands that its inputs are. In a loop `consts` do not change. */
typedef struct {
    const Eqn *e;
    const Jaxpr *j;
    Vals consts, others;
    uint32_t ncarry; /* of a loop: the first of `others` */
    uint32_t branch;
} Call;

static Val operand_of(const Call *c, uint32_t i) {
    return i < c->consts.n ? c->consts.at[i] : c->others.at[i - c->consts.n];
}
/* Where it stands. */
static Span operand_at(const Call *c, uint32_t i) {
    assert(i < c->consts.n || c->others.at);
    const Val *v = i < c->consts.n ? c->consts.at + i : c->others.at + (i - c->consts.n);
    return lint_at(c->e, (unsigned)(v - c->e->in.at));
}

/* The caller's key for a key of the nested program; 0: none. */
static Key outward(Keys *k, const Call *c, Key key) {
    KeyInfo info = *info_of(k, key);
    if (info.root) {
        uint32_t i = k->position[info.root];
        return i ? key_of(k, operand_of(c, i - 1)) : 0;
    }
    info.size = 1;
    for (uint32_t i = 0; i < info.n; i++) {
        info.in[i] = outward(k, c, info.in[i]);
        if (!info.in[i]) return 0;
        info.size += info_of(k, info.in[i])->size;
    }
    return info.size > MOST_SIZE ? 0 : key_intern(k, info);
}

/* Does carried value i stay the same? */
static bool stays(Keys *k, const Call *c, uint32_t i) {
    return i < c->ncarry && i < c->j->out.n && key_of(k, c->j->out.at[i]) == key_of(k, c->j->in.at[c->consts.n + i]);
}

/* Is the key the same in every iteration? */
static bool invariant(Keys *k, const Call *c, Key key) {
    const KeyInfo *info = info_of(k, key);
    if (info->root) {
        uint32_t i = k->position[info->root] - 1;
        return i < c->consts.n || stays(k, c, i - c->consts.n);
    }
    for (uint32_t i = 0; i < info->n; i++)
        if (!invariant(k, c, info->in[i])) return false;
    return true;
}

static void look(Keys *k, const Jaxpr *j);

static Uses *uses_of(Keys *k, const Jaxpr *j) {
    look(k, j);
    return k->uses.at[intern(&k->programs, &j, sizeof j, NULL)];
}

static void call(Keys *k, const Call *c, bool loop) {
    const Uses *uses = uses_of(k, c->j);
    for (uint32_t i = 0; i < uses->n; i++) {
        Key inner = uses->at[i].key, key = outward(k, c, inner);
        if (!key) continue;
        uint32_t input = source(k, inner) - 1;
        Use use = {.at = operand_at(c, input),
                   .name = val_name(k->cx, operand_of(c, input)),
                   .by = uses->at[i].use.by,
                   .e = c->e,
                   .branch = c->branch};
        if (!loop || !invariant(k, c, inner)) {
            use_key(k, key, use);
            continue;
        }
        diag_warn(k->cx->diags, W_key_reuse, use.at, "%s: key '%.*s' is used again at every turn",
                  prim_name[c->e->prim], SF(use.name));
        note_inner(k, &use);
        mark(k, key, &use);
    }
}

static void look_scan(Keys *k, const Eqn *e) {
    const Scan s = scan_of(e);
    if (!s.body) return;
    Vals others = vals_part(e->in, s.consts.n, s.carry.n + s.xs.n);
    Call c = {.e = e, .j = s.body, .consts = s.consts, .others = others, .ncarry = s.carry.n};
    call(k, &c, !dim_is_const(s.length) || s.length > 1);
    for (uint32_t i = 0; i < s.carry.n; i++)
        if (stays(k, &c, i)) k->key[s.end.at[i]] = key_of(k, s.carry.at[i]);
}

static void look_while(Keys *k, const Eqn *e) {
    const While w = while_of(e);
    if (!w.body) return;
    Call c = {.e = e, .j = w.cond, .consts = w.cond_consts, .others = w.carry};
    Call b = {.e = e, .j = w.body, .consts = w.body_consts, .others = w.carry, .ncarry = w.carry.n};
    call(k, &c, true);
    call(k, &b, true);
    for (uint32_t i = 0; i < w.carry.n; i++)
        if (stays(k, &b, i)) k->key[w.end.at[i]] = key_of(k, w.carry.at[i]);
}

/* One of the branches runs. The key of a result is known if all of them give the same one. */
static void look_cond(Keys *k, const Eqn *e) {
    const Cond cond = cond_of(e);
    for (uint32_t b = 0; b < cond.branches.n; b++) {
        const Jaxpr *j = cond.branches.at[b];
        Call c = {.e = e, .j = j, .others = cond.in, .branch = b};
        call(k, &c, false);
        for (uint32_t i = 0; i < cond.out.n; i++) {
            Key key = outward(k, &c, key_of(k, j->out.at[i]));
            k->key[cond.out.at[i]] = b == 0 || k->key[cond.out.at[i]] == key ? key : 0;
        }
    }
}

static void look_call(Keys *k, const Eqn *e, const Jaxpr *j) {
    Call c = {.e = e, .j = j, .others = e->in};
    if (j->in.n != e->in.n || j->out.n != e->out.n) return;
    if (!param_bool(e, K_differentiated)) call(k, &c, false);
    for (uint32_t i = 0; i < e->out.n; i++) k->key[e->out.at[i]] = outward(k, &c, key_of(k, j->out.at[i]));
}

static void look_nested(Keys *k, const Eqn *e) {
    Jaxprs inner = eqn_jaxprs(k->cx->arena, e);
    each(Jaxpr *, j, inner) look(k, *j);
    if (!inner.n) return;
    const Jaxpr *body = eqn_program(e);
    if (e->prim == P_scan)
        look_scan(k, e);
    else if (e->prim == P_while)
        look_while(k, e);
    else if (e->prim == P_cond)
        look_cond(k, e);
    else if (body)
        look_call(k, e, body);
}

static void look(Keys *k, const Jaxpr *j) {
    bool fresh;
    intern(&k->programs, &j, sizeof j, &fresh);
    if (!fresh) return;
    Uses *around = k->now;
    k->now = arena_new(k->cx->arena, Uses, 1);
    push(k->cx->arena, &k->uses, k->now);
    for (uint32_t i = 0; i < j->in.n; i++) k->position[j->in.at[i]] = i + 1;
    each(const Eqn, e, j->eqns) {
        if (prim_is(e->prim, USES_KEY) && e->in.n)
            use_key(k, key_of(k, e->in.at[0]), (Use){lint_at(e, 0), val_name(k->cx, e->in.at[0]), e->span, e, 0});
        if (makes[e->prim]) make(k, e);
        if (e->params.n) look_nested(k, e);
    }
    k->now = around;
}

void lint_keys(Ctx *cx, const Jaxpr *j) {
    Arena *a = cx->arena;
    Keys k = {.cx = cx};
    k.ids.arena = k.texts.arena = k.programs.arena = a;
    k.key = arena_new(a, Key, cx->nvals);
    k.position = arena_new(a, uint32_t, cx->nvals);
    look(&k, j);
}
