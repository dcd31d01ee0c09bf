/* The rules that are text: stdlib/jvp.jaxpr, which is read once in a compilation. Its programs have no types: their
   equations are written by the builder, which infers them, for the operands of the equation differentiated. */
#include "tx.h"

enum { MOST_OPERANDS = 3 };
struct TextRules {
    const Jaxpr *at[NPRIMS][MOST_OPERANDS];
    const Jaxpr *highest[NPRIMS]; /* of operand 0, for accuracy=AccuracyMode.HIGHEST */
};

static bool drop_suffix(Str *name, Str suffix) {
    if (name->n <= suffix.n || memcmp(name->at + name->n - suffix.n, suffix.at, suffix.n) != 0) return false;
    name->n -= suffix.n;
    return true;
}
/* The place of the program of this name. */
static const Jaxpr **rule_named(struct TextRules *rules, Str name) {
    assert(name.n > 2 && !memcmp(name.at, "d_", 2));
    Str id = {name.at + 2, name.n - 2};
    uint32_t operand = 0;
    if (drop_suffix(&id, S("_highest"))) return &rules->highest[prim_named(id)];
    Prim prim = prim_named(id);
    if (prim == P_none) {
        operand = (uint32_t)(id.at[id.n - 1] - '0');
        id.n -= 2;
        prim = prim_named(id);
    }
    assert(prim != P_none && operand < MOST_OPERANDS);
    return &rules->at[prim][operand];
}
static const struct TextRules *text_rules(Ctx *cx) {
    if (cx->text_rules) return cx->text_rules;
    cx->text_rules = arena_new(cx->arena, struct TextRules, 1);
    const Jaxpr *file = stdlib_read(cx, "jvp");
    assert(file);
    for (uint32_t i = 0; i < file->nlets; i++) *rule_named(cx->text_rules, file->lets[i]->name) = file->lets[i];
    return cx->text_rules;
}
static const Jaxpr *rule_for(Ctx *cx, const Eqn *e, uint32_t operand) {
    const struct TextRules *rules = text_rules(cx);
    const Param *accuracy = param_find(e, K_accuracy);
    if (accuracy && rules->highest[e->prim] && str_is(accuracy->value.s, "AccuracyMode.HIGHEST"))
        return rules->highest[e->prim];
    return operand < MOST_OPERANDS ? rules->at[e->prim][operand] : NULL;
}

/* ---- one equation of a rule */
/* The element type of the first operand from `first` on that has one. */
static Dtype neighbour(Builder *b, Vals in, uint32_t first) {
    for (uint32_t i = first; i < in.n; i++)
        if (val_type(b->cx, in.at[i])) return b_type(b, in.at[i])->dtype;
    return DT_none;
}
/* A literal of the text as one of that element type. */
static Val typed(Builder *b, Val v, Dtype d) {
    const Lit *lit = val_info(b->cx, v)->lit;
    assert(lit && lit->kind == LIT_FLOAT);
    return b_number(b, d, lit->re);
}
/* select_n stretches nothing: its cases get the extents of the largest of the operands. */
static void stretch_cases(Builder *b, Vals in) {
    const ArrayType *to = b_type(b, in.at[0]);
    for (uint32_t i = 1; i < in.n; i++)
        if (b_type(b, in.at[i])->rank > to->rank) to = b_type(b, in.at[i]);
    Dim dims[MAX_RANK];
    if (to->rank) memcpy(dims, to->dims, to->rank * sizeof *dims);
    for (uint32_t i = 0; i < in.n; i++) {
        const ArrayType *t = b_type(b, in.at[i]);
        assert(t->rank <= to->rank);
        for (uint32_t d = 0; d < t->rank; d++)
            if (dims[d] == 1) dims[d] = t->dims[d];
    }
    for (uint32_t i = b_type(b, in.at[0])->rank == 0; i < in.n; i++) in.at[i] = b_stretch(b, in.at[i], to->rank, dims);
}
/* Literals take the type of their neighbours, or of the tangent. */
static void write_eqn(Builder *b, ValMap *map, const Eqn *e, Dtype tangent) {
    Eqn new = *e;
    bool select = e->prim == P_select_n;
    new.in = vals_joined(b->cx->arena, 1, (Vals[]){vals_rewrite(map, e->in)});
    Dtype d = neighbour(b, new.in, select);
    for (uint32_t i = 0; i < new.in.n; i++)
        if (!val_type(b->cx, new.in.at[i])) new.in.at[i] = typed(b, new.in.at[i], d ? d : tangent);
    if (select && !b->failed) stretch_cases(b, new.in);
    valmap_put(map, e->out.at[0], b_eqn(b, &new, 1, NULL).at[0]);
}

bool jvp_text(Jvp *d) {
    const Eqn *e = d->e;
    Builder *b = d->b;
    Val r = jvp_result(d, 0), sum = 0;
    const ArrayType *t = b_type(b, r);
    for (uint32_t i = 0; i < e->in.n; i++) {
        if (!d->t[i]) continue;
        const Jaxpr *rule = rule_for(d->tx->cx, e, i);
        if (!rule)
            return tx_error(d->tx, operand_span(d->read, i), "%s has no derivative in operand %u", prim_name[e->prim],
                            i);
        ValMap map = {.cx = b->cx, .sparse = true};
        assert(rule->in.n == 2 + e->in.n);
        valmap_put(&map, rule->in.at[0], d->t[i]);
        valmap_put(&map, rule->in.at[1], r);
        for (uint32_t k = 0; k < e->in.n; k++) valmap_put(&map, rule->in.at[2 + k], e->in.at[k]);
        each(const Eqn, f, rule->eqns) write_eqn(b, &map, f, t->dtype);
        if (b->failed) return false;
        if (rule->out.n) sum = tx_sum(b, sum, b_stretch(b, valmap_get(&map, rule->out.at[0]), t->rank, t->dims));
    }
    d->dt[0] = sum;
    return !b->failed;
}
