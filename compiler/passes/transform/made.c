/* Nested programs made by jvp, split, transpose and vmap: each once for each pattern, so that a program that is called
   a thousand times stays shared, and nested control flow costs linear time. */
#include "flow.h"

typedef enum { MAKE_JVP, MAKE_SPLIT, MAKE_TRANSPOSE, MAKE_VMAP } What;
/* What is made is determined by this. */
typedef struct {
    What what;
    const Jaxpr *j;
    Bits in, ct, force; /* of inputs; transpose: of results; */
    Bits sums;          /* transpose: of inputs */
    Groups groups;
    Bits longest_in, longest_out; /* vmap */
    bool masked, in_rule;
} Pattern;
struct Made {
    union {
        MadeJvp jvp;
        MadeSplit split;
        MadeTranspose transpose;
        MadeVmap vmap;
    };
    Vals consts; /* that the programs capture */
};

/* ---- once */
static size_t put_bits(char *to, Bits bits) {
    bool some = bits_some(bits); /* forcing nothing is one pattern */
    *to++ = (char)some;
    for (uint32_t i = 0; i < bits.n && some; i++) *to++ = (char)bits.at[i];
    return 1 + (some ? bits.n : 0);
}
static bool is_while(const Eqn *e, Jaxprs within) { return e->prim == P_while; }
static bool is_loop(const Eqn *e, Jaxprs within) { return e->prim == P_while || e->prim == P_scan; }
/* Where it is divided: this counts for programs with loops only. */
static uint64_t place_of(Tx *tx, const Pattern *p) {
    enum { LOOP = 1, REMAT_OF_PROGRAM = 2 };
    Flow *f = flow_of(tx);
    const Options *o = tx->cx->options;
    uint64_t place = 0;
    if (p->what != MAKE_SPLIT) return 0;
    if (tx->in_loop && !o->tape && jaxpr_contains(&f->whiles, p->j, is_while)) place |= LOOP;
    if (tx->in_remat && o->keep != KEEP_LEAST && jaxpr_contains(&f->loops, p->j, is_loop)) place |= REMAT_OF_PROGRAM;
    return place;
}
static bool is_masked(const Eqn *e, Jaxprs within) {
    return e->prim == P_while || acts(e) || e->prim == P_dynamic_update_slice || prim_lower[e->prim] == LOWER_SCATTER ||
           (e->prim == P_scan && !dim_is_const(scan_of(e).length));
}
bool takes_mask(Tx *tx, const Jaxpr *j) { return jaxpr_contains(&flow_of(tx)->masked, j, is_masked); }
static bool is_shielded(const Eqn *e, Jaxprs within) { return e->in.n > 1 || acts(e); }
bool takes_shield(Tx *tx, const Jaxpr *j) { return jaxpr_contains(&flow_of(tx)->shielded, j, is_shielded); }
static struct Made **slot_of(Tx *tx, const Builder *b, const Pattern *p) {
    Flow *f = flow_of(tx);
    Arena *arena = tx->cx->arena;
    bool fresh;
    const uint64_t fixed[] = {p->what,       (uintptr_t)p->j, (uintptr_t)b->mesh, p->groups.in[0], p->groups.in[1],
                              p->groups.out, place_of(tx, p), p->masked,          p->in_rule};
    char *key = arena_new(arena, char,
                          sizeof fixed + p->in.n + p->ct.n + p->force.n + p->sums.n + p->longest_in.n +
                              p->longest_out.n + 6),
         *end = key + sizeof fixed;
    memcpy(key, fixed, sizeof fixed);
    end += put_bits(end, p->in);
    end += put_bits(end, p->ct);
    end += put_bits(end, p->force);
    end += put_bits(end, p->sums);
    end += put_bits(end, p->longest_in);
    end += put_bits(end, p->longest_out);
    uint32_t k = intern(&f->made_keys, key, (size_t)(end - key), &fresh);
    if (fresh) push(arena, &f->made, NULL);
    return &f->made.at[k];
}
static bool forced(Bits force, uint32_t i) { return i < force.n && force.at[i]; }

typedef bool Make(Tx *, Builder *, const Pattern *, struct Made *);
static const struct Made *made(Tx *tx, Builder *b, const Pattern *p, Make *make) {
    if (tx->failed || b->failed) return NULL;
    struct Made *m = *slot_of(tx, b, p);
    if (!m) {
        Builder own = {
            .cx = tx->cx, .mesh = b->mesh, .tables = b_tables(b), .span = p->j->span.n ? p->j->span : b->span};
        m = arena_new(tx->cx->arena, struct Made, 1);
        tx->failed |= !make(tx, &own, p, m) || own.failed;
        if (tx->failed) return NULL;
        m->consts = (Vals){own.consts.at, own.consts.n};
        *slot_of(tx, b, p) = m;
    }
    add_consts(tx->cx->arena, &b->consts, m->consts);
    return m;
}

/* ---- parts of programs */
static Val *values(Tx *tx, uint32_t n) { return arena_new(tx->cx->arena, Val, n + 1); }
/* An input like one of the program read, and in place of it. */
static Val input_like(Tx *tx, Val read, ValList *inputs) {
    Val v = tx_placeholder(tx, read);
    push(tx->cx->arena, inputs, v);
    return v;
}
static Val primal_like(Tx *tx, Val read, ValList *inputs) {
    Val v = input_like(tx, read, inputs);
    valmap_put(&tx->map, read, v);
    return v;
}
static void end(Builder *b, Inner *i, const Jaxpr *read, const char *what, ValList out) {
    Str name = read->name;
    Jaxpr *j = b_inner_end(b, i, out.n, out.at);
    if (name.n) j->name = str_format(b->cx->arena, "%.*s_%s", SF(name), what);
}

/* ---- jvp */
static bool make_jvp(Tx *tx, Builder *b, const Pattern *p, struct Made *m) {
    const Jaxpr *j = p->j;
    Inner i = b_inner(b, 0, NULL);
    Val *in = values(tx, j->in.n), *t = values(tx, j->in.n), *out = values(tx, j->out.n), *dt = values(tx, j->out.n);
    ValList inputs = {0}, results = {0};
    const uint32_t in_ends[] = {0, p->groups.in[0], p->groups.in[0] + p->groups.in[1], j->in.n};
    const uint32_t out_ends[] = {0, p->groups.out, j->out.n};
    for (int g = 0; g < 3; g++) {
        for (uint32_t k = in_ends[g]; k < in_ends[g + 1]; k++) in[k] = primal_like(tx, j->in.at[k], &inputs);
        for (uint32_t k = in_ends[g]; k < in_ends[g + 1]; k++)
            if (p->in.at[k]) t[k] = input_like(tx, j->in.at[k], &inputs);
    }
    i.in = list_vals(inputs);
    if (!jvp_into(tx, b, j, in, t, out, dt)) return false;
    for (uint32_t k = 0; k < j->out.n; k++)
        if (forced(p->force, k) && !dt[k]) dt[k] = b_zeros_like(b, out[k]);
    for (int g = 0; g < 2; g++) {
        uint32_t n = out_ends[g + 1] - out_ends[g];
        for (uint32_t k = 0; k < n; k++) push(tx->cx->arena, &results, out[out_ends[g] + k]);
        add_nonzero(tx, &results, n, dt + out_ends[g]);
    }
    end(b, &i, j, "jvp", results);
    m->jvp = (MadeJvp){.program = i, .out = bits_of(tx, j->out.n, dt)};
    return true;
}
const MadeJvp *made_jvp(Tx *tx, Builder *b, const Jaxpr *j, Bits in, Bits force, Groups groups) {
    Pattern p = {.what = MAKE_JVP, .j = j, .in = in, .force = force, .groups = groups};
    assert(in.n == j->in.n);
    const struct Made *m = made(tx, b, &p, make_jvp);
    return m ? &m->jvp : NULL;
}

/* ---- split */
/* Positions of values; the first one of a value that is put twice. */
typedef struct {
    Intern seen;
    uint32_t *at; /* by its number */
} Positions;
static void put_positions(Tx *tx, Positions *p, const Val *at, uint32_t n) {
    p->seen.arena = tx->cx->arena;
    p->at = arena_new(tx->cx->arena, uint32_t, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        bool fresh = false;
        uint32_t k = at[i] ? intern(&p->seen, &at[i], sizeof *at, &fresh) : 0;
        if (fresh) p->at[k] = i;
    }
}
static bool position(const Positions *p, Val v, uint32_t *at) {
    bool found = intern_find(&p->seen, &v, sizeof v, at);
    if (found) *at = p->at[*at];
    return found;
}
/* Where the unknown program gets these values of the known one from; results that it must return besides are added. */
static const Residual *residuals_of(Tx *tx, const Builder *b, const Val *in, uint32_t nin, Vals vals,
                                    ValList *results) {
    Positions inputs = {0}, known = {0};
    Residual *rs = arena_new(tx->cx->arena, Residual, vals.n + 1);
    put_positions(tx, &inputs, in, nin);
    put_positions(tx, &known, results->at, results->n);
    for (uint32_t k = 0; k < vals.n; k++) {
        Residual *r = &rs[k];
        Val v = vals.at[k];
        r->value = v;
        if (intern_find(&b->consts.seen, &v, sizeof v, &r->at))
            r->kind = RESIDUAL_CONST;
        else if (position(&inputs, v, &r->at))
            r->kind = RESIDUAL_INPUT;
        else {
            r->kind = RESIDUAL_RESULT, r->at = results->n;
            if (!position(&known, v, &r->at)) push(tx->cx->arena, results, v);
        }
    }
    return rs;
}
/* Programs that run one program twice, which does the same, have as many residuals as all their copies: more than the
   text has equations, each program once. A few are kept however short it is: to compute them again takes time. */
static bool too_many(Tx *tx, const Jaxpr *j, const MadeSplit *m) {
    enum { FEW_RESIDUALS = 64 };
    uint64_t size = 0;
    if (m->nresiduals <= FEW_RESIDUALS) return false;
    Jaxprs text = jaxprs_within(tx->cx->arena, j);
    each(Jaxpr *, k, text) size += (*k)->eqns.n;
    return m->nresiduals > size;
}
static bool make_split(Tx *tx, Builder *b, const Pattern *p, struct Made *m) {
    const Jaxpr *j = p->j;
    Inner known = b_inner(b, 0, NULL), lin;
    Val *in = values(tx, j->in.n), *out = values(tx, j->out.n);
    ValList inputs = {0}, results = {0};
    bool *unknown = arena_new(tx->cx->arena, bool, j->out.n + 1), *force = arena_new(tx->cx->arena, bool, j->out.n + 1);
    for (uint32_t k = 0; k < j->in.n; k++)
        if (!p->in.at[k]) in[k] = primal_like(tx, j->in.at[k], &inputs);
    for (uint32_t k = 0; k < j->out.n; k++) force[k] = forced(p->force, k);
    known.in = list_vals(inputs);
    if (!split_into(tx, b, j, in, force, out, &lin)) return false;
    for (uint32_t k = 0; k < j->out.n; k++) unknown[k] = !out[k] || force[k];
    m->split = (MadeSplit){.out = {unknown, j->out.n}, .nresiduals = lin.captured.n};
    add_where(tx, &results, out, m->split.out, false);
    uint32_t nknown = results.n;
    m->split.residuals = residuals_of(tx, b, in, j->in.n, lin.captured, &results);
    m->split.nmore = results.n - nknown;
    end(b, &known, j, "known", results);
    if (j->name.n) lin.j->name = str_format(tx->cx->arena, "%.*s_lin", SF(j->name));
    lin.in = lin.j->in, lin.captured = (Vals){0};
    m->split.known = known, m->split.unknown = lin;
    return !too_many(tx, j, &m->split) || split_again(tx, b, p->in, &m->split);
}
const MadeSplit *made_split(Tx *tx, Builder *b, const Jaxpr *j, Bits unknown, Bits force) {
    Pattern p = {.what = MAKE_SPLIT, .j = j, .in = unknown, .force = force};
    assert(unknown.n == j->in.n);
    const struct Made *m = made(tx, b, &p, make_split);
    return m ? &m->split : NULL;
}

/* ---- transpose */
static bool make_transpose(Tx *tx, Builder *b, const Pattern *p, struct Made *m) {
    const Jaxpr *j = p->j;
    Inner i = b_inner(b, 0, NULL);
    Val *in = values(tx, j->in.n), *ct = values(tx, j->out.n), *ct_in = values(tx, j->in.n);
    ValList inputs = {0}, results = {0};
    for (uint32_t k = 0; k < j->in.n; k++)
        if (!p->in.at[k]) in[k] = primal_like(tx, j->in.at[k], &inputs);
    for (uint32_t k = 0; k < j->out.n; k++)
        if (p->ct.at[k]) ct[k] = input_like(tx, j->out.at[k], &inputs);
    for (uint32_t k = 0; k < p->sums.n; k++)
        if (p->sums.at[k]) acc_begin(tx, j->in.at[k], input_like(tx, j->in.at[k], &inputs));
    i.in = list_vals(inputs);
    if (!transpose_into(tx, b, j, in, ct, ct_in)) return false;
    for (uint32_t k = 0; k < j->in.n; k++)
        if (forced(p->force, k) && !ct_in[k]) ct_in[k] = b_zeros_like(b, valmap_get(&tx->map, j->in.at[k]));
    add_nonzero(tx, &results, j->in.n, ct_in);
    end(b, &i, j, "t", results);
    m->transpose = (MadeTranspose){.program = i, .in = bits_of(tx, j->in.n, ct_in)};
    return true;
}
const MadeTranspose *made_transpose(Tx *tx, Builder *b, const Jaxpr *j, Bits linear, Bits ct, Bits force, Bits sums) {
    Pattern p = {.what = MAKE_TRANSPOSE, .j = j, .in = linear, .ct = ct, .force = force, .sums = sums};
    assert(linear.n == j->in.n && ct.n == j->out.n);
    const struct Made *m = made(tx, b, &p, make_transpose);
    return m ? &m->transpose : NULL;
}

/* ---- vmap */
static Val batched_like(Tx *tx, Val read, ValList *inputs) {
    Type one = type_rewrite(&tx->map, val_type(tx->cx, read));
    Val v = val_new(tx->cx, vmap_batched(tx, type_at(tx->cx->types, one)), val_info(tx->cx, read)->span);
    push(tx->cx->arena, inputs, v);
    return v;
}
/* The largest extent, which comes before that of each example. */
static void add_longest(Tx *tx, Val read, ValList *inputs) {
    valmap_put(&tx->batch.longest, read, primal_like(tx, read, inputs));
}
/* Extents that a program takes or gives may be those of others that it takes or gives. */
static bool extents_known(Tx *tx, Vals vals, Bits longest, Intern *known, Span at) {
    for (uint32_t k = 0; k < longest.n; k++)
        if (longest.at[k]) intern(known, &vals.at[k], sizeof(Val), NULL);
    return vmap_extents_agree(tx, vals, known, at);
}
static bool batch_into(Tx *tx, Builder *b, const Pattern *p, const Val *in, Val *out, bool *batched) {
    Intern known = {.arena = tx->cx->arena};
    for (uint32_t k = 0; k < p->j->in.n; k++) tx_mark(tx, p->j->in.at[k], p->in.at[k]);
    return extents_known(tx, p->j->in, p->longest_in, &known, b->span) &&
           vmap_into(tx, b, p->j, in, p->in, out, batched) &&
           extents_known(tx, p->j->out, p->longest_out, &known, b->span);
}
static bool make_vmap(Tx *tx, Builder *b, const Pattern *p, struct Made *m) {
    const Jaxpr *j = p->j;
    Inner i = b_inner(b, 0, NULL);
    Val *in = values(tx, j->in.n), *out = values(tx, j->out.n), mask = tx->batch.mask;
    bool *batched = arena_new(tx->cx->arena, bool, j->out.n + 1),
         *longest = arena_new(tx->cx->arena, bool, j->out.n + 1);
    ValList inputs = {0}, results = {0};
    tx->batch.mask = 0;
    if (p->masked) {
        tx->batch.mask = val_new(tx->cx, mask_type(tx), b->span);
        push(tx->cx->arena, &inputs, tx->batch.mask);
    }
    for (uint32_t k = 0; k < j->in.n; k++)
        if (forced(p->longest_in, k)) add_longest(tx, j->in.at[k], &inputs);
    for (uint32_t k = 0; k < j->in.n; k++)
        in[k] = p->in.at[k] ? batched_like(tx, j->in.at[k], &inputs) : primal_like(tx, j->in.at[k], &inputs);
    i.in = list_vals(inputs);
    if (!batch_into(tx, b, p, in, out, batched)) return false;
    for (uint32_t k = 0; k < j->out.n; k++) {
        if (forced(p->force, k) && !batched[k]) {
            out[k] = vmap_broadcast(tx, b, out[k]);
            batched[k] = true;
        }
        longest[k] = batched[k] && forced(p->longest_out, k);
        if (longest[k]) push(tx->cx->arena, &results, valmap_get(&tx->map, j->out.at[k]));
    }
    for (uint32_t k = 0; k < j->out.n; k++) push(tx->cx->arena, &results, out[k]);
    end(b, &i, j, "vmap", results);
    m->vmap = (MadeVmap){i, {batched, j->out.n}, p->longest_in, {longest, j->out.n}, p->masked};
    tx->batch.mask = mask;
    return true;
}
const MadeVmap *made_vmap(Tx *tx, Builder *b, const Jaxpr *j, Batched how) {
    Pattern p = {.what = MAKE_VMAP, .j = j, .in = how.in, .force = how.force, .masked = how.masked && tx->batch.mask};
    p.longest_in = how.longest_in, p.longest_out = how.longest_out, p.in_rule = tx->batch.in_rule;
    assert(how.in.n == j->in.n);
    const struct Made *m = made(tx, b, &p, make_vmap);
    return m ? &m->vmap : NULL;
}
