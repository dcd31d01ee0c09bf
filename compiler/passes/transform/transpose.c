/* transpose: a linear program backwards. */
#include "tx.h"

TransposeRule *const transpose_rules[NPRIMS] = {
#define PRIM(id, text, arity, type, simplify, facts, jvp, transpose, lowering) [P_##id] = transpose_##transpose,
#include "../../prims.def"
};

/* A contribution to a cotangent, and to which part of it. */
typedef enum { PART_WHOLE, PART_SLICE, PART_BLOCK, PART_SCATTERED } PartKind;
struct Part {
    PartKind kind;
    Val v;
    Dims start, limit; /* SLICE */
    Ints strides;      /* SLICE; n = 0: 1 */
    Vals starts;       /* BLOCK */
    Val indices;       /* SCATTERED */
    Places places;
};

static Acc *acc_of(Tx *tx, Val read) {
    while (read >= tx->accs.n) push(tx->cx->arena, &tx->accs, (Acc){0});
    return &tx->accs.at[read];
}

/* ---- parts */
static void add_part(Transpose *t, uint32_t i, Part p) {
    assert(t->linear[i]);
    if (!p.v || t->b->failed) return;
    Ctx *cx = t->tx->cx;
    assert(p.kind != PART_WHOLE ||
           type_plain(cx->types, val_type(cx, p.v)) == type_plain(cx->types, val_type(cx, t->e->in.at[i])));
    push(cx->arena, acc_of(t->tx, t->read->in.at[i]), p);
}
static void *copied(Transpose *t, const void *at, size_t bytes) {
    void *p = arena_new(t->tx->cx->arena, int64_t, bytes / sizeof(int64_t) + 1);
    return at ? memcpy(p, at, bytes) : NULL;
}
void ct_add(Transpose *t, uint32_t i, Val v) { add_part(t, i, (Part){.kind = PART_WHOLE, .v = v}); }
void ct_add_slice(Transpose *t, uint32_t i, Val v, const Dim *start, const Dim *limit, const int64_t *strides) {
    uint32_t n = ct_type(t, i)->rank;
    Part p = {.kind = PART_SLICE, .v = v, .start = {copied(t, start, n * sizeof *start), n}};
    p.limit = (Dims){copied(t, limit, n * sizeof *limit), n};
    p.strides = (Ints){copied(t, strides, n * sizeof *strides), strides ? n : 0};
    add_part(t, i, p);
}
void ct_add_at(Transpose *t, uint32_t i, Val v, const Val *starts) {
    uint32_t n = ct_type(t, i)->rank;
    add_part(t, i, (Part){.kind = PART_BLOCK, .v = v, .starts = {copied(t, starts, n * sizeof *starts), n}});
}
void ct_add_scattered(Transpose *t, uint32_t i, Val updates, Val indices, Places places) {
    add_part(t, i, (Part){.kind = PART_SCATTERED, .v = updates, .indices = indices, .places = places});
}
Val ct_result(Transpose *t, uint32_t k) { return t->ct[k] ? t->ct[k] : b_zeros_like(t->b, t->e->out.at[k]); }

/* ---- the sum of the parts */
static Val padded(Builder *b, const Part *p, const ArrayType *t) {
    Dim config[3 * MAX_RANK];
    const ArrayType *v = b_type(b, p->v);
    for (uint32_t d = 0; d < t->rank; d++) {
        int64_t stride = p->strides.n ? p->strides.at[d] : 1;
        Dim covered = dim_dilated(b_types(b), v->dims[d], stride);
        config[3 * d] = p->start.at[d];
        config[3 * d + 1] = dim_sub(b_types(b), dim_sub(b_types(b), t->dims[d], p->start.at[d]), covered);
        config[3 * d + 2] = stride - 1;
    }
    return b_pad(b, p->v, b_number(b, t->dtype, 0), config);
}
static Val updated(Builder *b, const Part *p, Val base) {
    if (p->kind == PART_SCATTERED) return b_scatter(b, P_scatter_add, base, p->indices, p->v, p->places);
    Val old = b_dynamic_slice(b, base, p->starts.at, b_type(b, p->v)->dims);
    return b_dynamic_update_slice(b, base, b_add_any(b, old, p->v), p->starts.at);
}
/* "x_ct" after the tangent "x_t", for those who read the program. */
static void name_cotangent(Ctx *cx, Val ct, Val tangent) {
    Str name = val_info(cx, tangent)->name;
    if (!ct || ct == VAL_FAILED || val_info(cx, ct)->name.n || !name.n) return;
    if (name.n > 2 && memcmp(name.at + name.n - 2, "_t", 2) == 0) name.n -= 2;
    val_info(cx, ct)->name = str_format(cx->arena, "%.*s_ct", SF(name));
}
/* Parts that are whole and slices first, then the updates in place. */
static Val acc_close(Tx *tx, Builder *b, Val read) {
    Acc *acc = acc_of(tx, read);
    Val sum = 0, like = valmap_get(&tx->map, read);
    for (uint32_t i = 0; i < acc->n && !b->failed; i++) {
        const Part *p = &acc->at[i];
        if (p->kind == PART_WHOLE) sum = tx_sum(b, sum, p->v);
        if (p->kind == PART_SLICE) sum = tx_sum(b, sum, padded(b, p, b_type(b, like)));
    }
    for (uint32_t i = 0; i < acc->n && !b->failed; i++) {
        const Part *p = &acc->at[i];
        if (p->kind == PART_WHOLE || p->kind == PART_SLICE) continue;
        if (!sum) sum = b_zeros_like(b, like);
        sum = updated(b, p, sum);
    }
    *acc = (Acc){0};
    name_cotangent(tx->cx, sum, read);
    return b->failed ? VAL_FAILED : sum;
}

/* ---- the program */
static bool some_linear(const Tx *tx, Vals vals) {
    bool some = false;
    each(const Val, v, vals) some |= tx_marked(tx, *v);
    return some;
}
static void transpose_eqn(Tx *tx, Builder *b, const Eqn *e) {
    Arena *arena = tx->cx->arena;
    bool *linear = arena_new(arena, bool, e->in.n + 1), some = false;
    Val *ct = arena_new(arena, Val, e->out.n + 1);
    b->span = e->span, b->whole = e->whole;
    for (uint32_t i = 0; i < e->out.n; i++) some |= (ct[i] = acc_close(tx, b, e->out.at[i])) != 0;
    if (!some || tx->failed || b->failed) return;
    for (uint32_t i = 0; i < e->in.n; i++) linear[i] = tx_marked(tx, e->in.at[i]);
    Eqn here = eqn_rewrite(&tx->map, e, NULL, NULL);
    here.out = vals_rewrite(&tx->map, e->out);
    Transpose t = {.tx = tx, .b = b, .e = &here, .read = e, .linear = linear, .ct = ct};
    if (!transpose_rules[e->prim](&t)) tx->failed = true;
}
bool transpose_into(Tx *tx, Builder *b, const Jaxpr *j, const Val *in, const Val *ct, Val *ct_in) {
    Arena *arena = tx->cx->arena;
    Span span = b->span, whole = b->whole;
    add_consts(arena, &b->consts, j->consts);
    for (uint32_t i = 0; i < j->in.n; i++) {
        tx_mark(tx, j->in.at[i], !in[i]);
        valmap_put(&tx->map, j->in.at[i], in[i] ? in[i] : tx_placeholder(tx, j->in.at[i]));
    }
    each(const Eqn, e, j->eqns) {
        bool linear = some_linear(tx, e->in);
        b->span = e->span, b->whole = e->whole;
        if (!linear) tx_copy(tx, b, e);
        each(const Val, v, e->out) {
            tx_mark(tx, *v, linear);
            if (linear) valmap_put(&tx->map, *v, tx_placeholder(tx, *v));
        }
    }
    for (uint32_t i = 0; i < j->out.n; i++) {
        Val v = j->out.at[i];
        if (ct[i] && tx_marked(tx, v)) push(arena, acc_of(tx, v), ((Part){.kind = PART_WHOLE, .v = ct[i]}));
    }
    for (uint32_t i = j->eqns.n; i-- > 0;) {
        const Eqn *e = &j->eqns.at[i];
        if (some_linear(tx, e->in)) transpose_eqn(tx, b, e);
    }
    b->span = span, b->whole = whole;
    for (uint32_t i = 0; i < j->in.n; i++) ct_in[i] = in[i] ? 0 : acc_close(tx, b, j->in.at[i]);
    tx->failed |= b->failed;
    return !tx->failed;
}

bool transpose_none(Transpose *t) {
    return tx_error(t->tx, t->e->span, "%s of this program has no transpose", prim_name[t->e->prim]);
}
