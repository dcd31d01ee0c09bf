/* Equations on known scalars become literals, a cond with a known index becomes its branch, and identities are applied.
   One walk from the first equation to the last: when it reaches an equation, its operands have been simplified. */
#include "simplify.h"
#include "count.h"
#include "transform/transform.h"

typedef struct {
    Ctx *cx;
    ValMap map;
    Defs defs;
    Memo memo;
    Counts counts;
    Rewrite *rewrite; /* NULL: none */
    Intern left;      /* programs that it leaves alone */
    bool leaves;      /* now */
    uint32_t depth;   /* of what it wrote */
    bool failed;      /* an error was reported */
} Fold;

static Jaxpr *fold_jaxpr(void *user, const Jaxpr *j);

static void def_put(Fold *f, const Eqn *e) {
    each(const Val, v, e->out) {
        if (*v >= f->defs.n) {
            uint32_t n = f->cx->nvals + f->cx->nvals / 2;
            const Eqn **defs = arena_new(f->cx->arena, const Eqn *, n);
            if (f->defs.n) memcpy(defs, f->defs.defs, f->defs.n * sizeof *defs);
            f->defs.defs = defs, f->defs.n = n;
        }
        f->defs.defs[*v] = e;
    }
}

/* The literal result of an equation on literals. */
static Val evaluated(Fold *f, const Eqn *e) {
    enum { MOST_OPERANDS = 8 };
    Scalar in[MOST_OPERANDS], out;
    if (e->in.n > MOST_OPERANDS || e->out.n != 1) return 0;
    for (uint32_t i = 0; i < e->in.n; i++)
        if (!scalar_of(f->cx, e->in.at[i], &in[i])) return 0;
    if (!eval_point(f->cx, e, in, &out)) return 0;
    return val_literal(f->cx, val_type(f->cx, e->out.at[0]), scalar_lit(out), e->span);
}

static void fold_eqns(Fold *f, Eqns *to, Consts *consts, Eqns eqns);

/* Replaces the cond `e` by the branch that it takes. */
static void fold_branch(Fold *f, Eqns *to, Consts *consts, const Eqn *e, const Jaxpr *taken, Vals operands) {
    Eqns spliced = {0};
    Jaxpr *body = fold_jaxpr(f, taken);
    if (f->failed) return;
    if (count_of(&f->counts, taken)->function) {
        push(f->cx->arena, to, eqn_call(&f->map, e, body, operands));
        return;
    }
    add_consts(f->cx->arena, consts, body->consts);
    f->failed = !jaxpr_splice_call(&f->map, &spliced, body, vals_rewrite(&f->map, operands), e);
    if (f->failed) return;
    fold_eqns(f, to, consts, spliced);
    for (uint32_t i = 0; i < e->out.n; i++) { /* the results of the spliced equations */
        Val inner = valmap_get(&f->map, e->out.at[i]);
        if (inner != e->out.at[i]) valmap_put(&f->map, e->out.at[i], valmap_get(&f->map, inner));
    }
}

/* ---- uses, for `rewrite` */
static uint32_t *uses_of(Fold *f, Val v) {
    while (v >= f->defs.uses.n) push(f->cx->arena, &f->defs.uses, 0);
    return &f->defs.uses.at[v];
}
static void count_uses(Fold *f, const Jaxpr *j) {
    Jaxprs all = jaxprs_within(f->cx->arena, j);
    each(Jaxpr *, k, all) {
        each(const Val, v, (*k)->out) ++*uses_of(f, *v);
        each(const Eqn, e, (*k)->eqns)
            each(const Val, v, e->in) ++*uses_of(f, *v);
    }
}

/* Nothing takes the results of `e` any more, and of its operands what it was the last to take. */
static void unuse(Fold *f, const Eqn *e) {
    each(const Val, x, e->in) {
        const Eqn *maker = --*uses_of(f, *x) == 0 ? def_of(&f->defs, *x) : NULL;
        if (maker && maker->out.n == 1) unuse(f, maker);
    }
}
/* What `rewrite` writes for `e`, folded in turn; 0: nothing. */
static Val rewritten(Fold *f, Eqns *to, Consts *consts, const Eqn *e) {
    enum { MOST_DEPTH = 16 };
    if (!f->rewrite || f->leaves || f->depth == MOST_DEPTH || e->out.n != 1) return 0;
    Builder b = {.cx = f->cx, .span = e->span, .whole = e->whole};
    Val old = f->cx->nvals, v = f->rewrite(&f->defs, &b, e);
    f->failed |= b.failed;
    if (!v || f->failed) return 0;
    each(const Eqn, new, b.eqns)
        each(const Val, x, new->in) ++*uses_of(f, *x);
    unuse(f, e);
    f->depth++;
    fold_eqns(f, to, consts, b.eqns);
    f->depth--;
    v = valmap_get(&f->map, v);
    ValInfo *info = val_info(f->cx, v);
    if (v >= old && !info->name.n && !info->lit) info->name = val_info(f->cx, e->out.at[0])->name;
    return v;
}

/* Between transformations: the result has no tangent, though what it is equal to may have one, as the operand of two
   bitcast_convert_type that cancel. */
static bool without_tangent(const Fold *f, const Eqn *e) {
    return f->rewrite && jvp_rules[e->prim] == jvp_zero && e->out.n &&
           has_tangent(f->cx, val_type(f->cx, e->out.at[0]));
}
static void fold_eqn(Fold *f, Eqns *to, Consts *consts, const Eqn *e) {
    Vals operands;
    const Jaxpr *taken = known_branch(&f->map, e, &operands);
    if (taken) {
        fold_branch(f, to, consts, e, taken, operands);
        return;
    }
    Eqn new = eqn_rewrite(&f->map, e, fold_jaxpr, f);
    Val v = evaluated(f, &new);
    if (!v && !without_tangent(f, e)) v = simplify(&f->defs, &new);
    bool extent = e->out.n && dim_is_bound(f->cx->types, e->out.at[0]);
    if (!v && !extent) v = rewritten(f, to, consts, &new);
    if (v && !extent) {
        valmap_put(&f->map, e->out.at[0], v);
        if (f->rewrite) *uses_of(f, v) += *uses_of(f, e->out.at[0]);
        return;
    }
    push(f->cx->arena, to, new);
    def_put(f, &to->at[to->n - 1]);
}

static void fold_eqns(Fold *f, Eqns *to, Consts *consts, Eqns eqns) {
    for (uint32_t i = 0; i < eqns.n && !f->failed; i++) fold_eqn(f, to, consts, &eqns.at[i]);
}

static Jaxpr *fold_jaxpr(void *user, const Jaxpr *j) {
    Fold *f = user;
    if (*memo_slot(&f->memo, j)) return *memo_slot(&f->memo, j);
    Eqns eqns = eqns_for(f->cx, j);
    Consts consts = {0};
    bool outer = f->leaves;
    f->leaves = f->rewrite && intern_find(&f->left, &j, sizeof j, &(uint32_t){0});
    add_consts(f->cx->arena, &consts, j->consts);
    fold_eqns(f, &eqns, &consts, j->eqns);
    f->leaves = outer;
    Jaxpr *new = jaxpr_with(f->cx, j, eqns, vals_rewrite(&f->map, j->out));
    new->consts = (Vals){consts.at, consts.n};
    *memo_slot(&f->memo, new) = new; /* the programs of a spliced branch are folded already */
    count_as(&f->counts, new, j);
    return *memo_slot(&f->memo, j) = new;
}

Jaxpr *fold_with(Ctx *cx, const Jaxpr *j, Rewrite *rewrite) {
    Fold f = {.cx = cx, .map.cx = cx, .defs.cx = cx, .memo.arena = cx->arena, .rewrite = rewrite};
    if (rewrite) {
        count_uses(&f, j);
        f.left = programs_of_rules(cx, j);
    }
    f.counts = counts_of(cx, j, COUNT_BRANCHES, may_stay_call, cx);
    Jaxpr *new = fold_jaxpr(&f, j);
    return f.failed ? NULL : new;
}
Jaxpr *pass_fold(Ctx *cx, const Jaxpr *j) { return fold_with(cx, j, NULL); }
